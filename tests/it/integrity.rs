//! Writes never lose or alter a record: bulk loads, imports, locked EHRs. Refusals reveal nothing
//! about other patients.

mod imports;

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use crate::upgrade::text;
use aqlite::document::digest_of_text;
use aqlite::service::auth::Caller;
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::block_on;
use aqlite::store::repository::Repository;
use serde_json::{Value, json};

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const OTHER: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430ff";
const NOWHERE: &str = "00000000-0000-4000-8000-00000000ffff";
const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

struct House<R: Repository>(Service<R>, Ticks);

fn on_memory() -> House<Memory> {
    House::over(Memory::new())
}

fn on_sqlite() -> House<impl Repository> {
    House::over(Sqlite::in_memory().repository())
}

impl<R: Repository> House<R> {
    /// Creates a service with a template and two EHRs.
    fn over(repository: R) -> House<R> {
        let config = Config {
            auth: Auth::Known,
            admin: true,
            system_id: String::from("test.example"),
            ..Config::default()
        };
        let mut house = House(Service::new(repository, config), Ticks::new());
        house.made(
            "POST",
            "definition/template/adl1.4",
            "application/xml",
            &text("template/small.opt"),
        );
        for ehr in [EHR, OTHER] {
            house.made("PUT", &format!("ehr/{ehr}"), JSON, "");
        }
        house
    }

    fn send(&mut self, request: &Request) -> Response {
        block_on(self.0.serve(request, Ok(&Caller::everyone()), &mut self.1))
            .expect("a synchronous repository")
    }

    fn ask(&mut self, method: &str, path: &str, media_type: &str, body: &str) -> Response {
        self.send(
            &Request::new(method, &format!("/rest/openehr/v1/{path}")).with_body(media_type, body),
        )
    }

    fn made(&mut self, method: &str, path: &str, media_type: &str, body: &str) -> String {
        let response = self.ask(method, path, media_type, body);
        assert!(
            response.status < 300,
            "{method} {path}: {}",
            shown(&response)
        );
        response
            .header("ETag")
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned()
    }

    fn composition(&mut self, ehr: &str) -> String {
        self.made(
            "POST",
            &format!("ehr/{ehr}/composition"),
            JSON,
            &text("rest/weight.json"),
        )
    }

    /// Returns status and text of the answer to each line.
    fn lines(&mut self, path: &str, key: &str, lines: &[String]) -> Vec<(u16, String)> {
        let request = Request::new("POST", &format!("/rest/openehr/v1/{path}"))
            .with_header("Idempotency-Key", key);
        let response = self.send(&request.with_body(LINES, lines.join("\n")));
        assert_eq!(response.status, 200, "{}", shown(&response));
        let status = |line: &str| {
            serde_json::from_str::<Value>(line).expect("an answer")["status"]
                .as_u64()
                .expect("a status") as u16
        };
        shown(&response)
            .lines()
            .map(|line| (status(line), line.to_owned()))
            .collect()
    }

    fn bulk(&mut self, key: &str, lines: &[String]) -> Vec<u16> {
        self.lines("ehr/bulk", key, lines)
            .into_iter()
            .map(|(status, _)| status)
            .collect()
    }

    fn count(&mut self, ehr: &str) -> i64 {
        let path = format!(
            "query/aql?ehr_id={ehr}&q=SELECT%20count(*)%20FROM%20EHR%20e%20CONTAINS%20COMPOSITION%20c"
        );
        let answer: Value =
            serde_json::from_str(&shown(&self.ask("GET", &path, JSON, ""))).expect("rows");
        answer["rows"][0][0].as_i64().expect("a number")
    }

    fn export(&mut self) -> Vec<String> {
        shown(&self.ask("GET", "admin/export?limit=1000", JSON, ""))
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

fn shown(response: &Response) -> String {
    String::from_utf8_lossy(&response.body).into_owned()
}

fn file(name: &str) -> Value {
    serde_json::from_str(&text(name)).expect("a document")
}

fn audit(code: &str) -> Value {
    serde_json::from_str(&text("rest/audit.json").replace("249", code)).expect("an audit")
}

/// Returns a member of a contribution. `preceding` is empty for a first version.
fn member(preceding: &str, data: Value) -> Value {
    match preceding {
        "" => json!({ "commit_audit": audit("249"), "data": data }),
        preceding => {
            json!({ "preceding_version_uid": { "value": preceding }, "commit_audit": audit("251"), "data": data })
        }
    }
}

fn deletion(preceding: &str) -> Value {
    json!({ "preceding_version_uid": { "value": preceding }, "commit_audit": audit("523") })
}

fn contribution(uid: Option<&str>, members: &[Value]) -> Value {
    let mut body = json!({ "audit": audit("249"), "versions": members });
    if let Some(uid) = uid {
        body["uid"] = json!({ "_type": "HIER_OBJECT_ID", "value": uid });
    }
    body
}

fn line(ehr: &str, member: &str, value: &Value) -> String {
    json!({ "ehr_id": ehr, member: value }).to_string()
}

fn weight(kilograms: &str) -> Value {
    serde_json::from_str(&text("rest/weight.json").replace("72.50", kilograms))
        .expect("a composition")
}

fn status(is_modifiable: bool) -> Value {
    let mut status = file("rest/status.json");
    status["is_modifiable"] = is_modifiable.into();
    status
}

#[test]
fn only_the_same_line_under_the_same_key_is_a_repetition() {
    fn check<R: Repository>(mut house: House<R>) {
        let uid = "cccccccc-1111-4111-8111-111111111111";
        let created = house.composition(EHR);
        let before = house.count(EHR);
        let first = line(
            EHR,
            "contribution",
            &contribution(Some(uid), &[member("", weight("60"))]),
        );
        assert_eq!(house.bulk("one", std::slice::from_ref(&first)), [201]);
        assert_eq!(
            house.bulk("one", std::slice::from_ref(&first)),
            [200],
            "the same again"
        );
        let (other_content, other_number) = (
            line(
                EHR,
                "contribution",
                &contribution(Some(uid), &[member("", weight("61"))]),
            ),
            line(
                EHR,
                "contribution",
                &contribution(
                    Some(uid),
                    &[member("", weight("60")), member("", weight("61"))],
                ),
            ),
        );
        for (key, refused) in [
            ("one", &other_content),
            ("one", &other_number),
            ("two", &first),
            ("", &first),
        ] {
            assert_eq!(
                house.bulk(key, std::slice::from_ref(refused)),
                [409],
                "{key}: {refused}"
            );
        }
        assert_eq!(
            house.bulk("one", &[" ".to_owned(), first.clone()]),
            [409],
            "at another place"
        );
        assert_eq!(
            house.bulk("one", &[first.clone(), first]),
            [200, 409],
            "twice in one body"
        );
        assert_eq!(house.count(EHR), before + 1);
        // A change of an existing object under a fixed contribution uid: the versions have the same
        // uids whatever their content.
        let update = "cccccccc-2222-4222-8222-222222222222";
        let changed = |weight: Value| {
            line(
                EHR,
                "contribution",
                &contribution(Some(update), &[member(&created, weight)]),
            )
        };
        assert_eq!(house.bulk("one", &[changed(weight("62"))]), [201]);
        assert_eq!(house.bulk("one", &[changed(weight("62"))]), [200]);
        assert_eq!(house.bulk("one", &[changed(weight("63"))]), [409]);
        assert_eq!(house.bulk("two", &[changed(weight("62"))]), [409]);
        // A deletion finds that the object was deleted by itself before.
        let second = created.replace("::1", "::2");
        let gone = line(
            EHR,
            "contribution",
            &contribution(None, &[deletion(&second)]),
        );
        assert_eq!(house.bulk("one", std::slice::from_ref(&gone)), [201]);
        assert_eq!(house.bulk("one", std::slice::from_ref(&gone)), [200]);
        assert_eq!(house.bulk("two", &[gone]), [409]);
        // The writes of a locking line are recognized as a repetition after it, too.
        let (content, lock) = (
            line(EHR, "composition", &weight("64")),
            status_line(&mut house, false),
        );
        assert_eq!(
            house.bulk("three", &[content.clone(), lock.clone()]),
            [201, 201]
        );
        assert_eq!(house.bulk("three", &[content.clone(), lock]), [200, 200]);
        assert_eq!(house.bulk("four", &[content]), [409]);
    }
    check(on_memory());
    check(on_sqlite());
}

/// Returns a line that locks or unlocks the EHR behind its present EHR_STATUS.
fn status_line<R: Repository>(house: &mut House<R>, is_modifiable: bool) -> String {
    let latest = house.made("GET", &format!("ehr/{EHR}/ehr_status"), JSON, "");
    line(
        EHR,
        "contribution",
        &contribution(None, &[member(&latest, status(is_modifiable))]),
    )
}

#[test]
fn lines_behind_a_locking_line_are_refused() {
    fn check<R: Repository>(mut house: House<R>) {
        let uid = house.composition(EHR);
        let lock = status_line(&mut house, false);
        let (composition, folder) = (
            line(EHR, "composition", &weight("60")),
            contribution(None, &[member("", file("rest/directory.json"))]),
        );
        let update = line(
            EHR,
            "contribution",
            &contribution(None, &[member(&uid, weight("61"))]),
        );
        let elsewhere = line(OTHER, "composition", &weight("60"));
        let sent = [
            composition.clone(),
            lock,
            composition.clone(),
            line(EHR, "contribution", &folder),
            update.clone(),
            elsewhere,
        ];
        assert_eq!(house.bulk("", &sent), [201, 201, 409, 409, 409, 201]);
        assert_eq!((house.count(EHR), house.count(OTHER)), (2, 1));
        // Lines behind an unlocking line are accepted.
        let open = status_line(&mut house, true);
        assert_eq!(
            house.bulk(
                "",
                &[
                    composition.clone(),
                    update.clone(),
                    open,
                    composition,
                    update
                ]
            ),
            [409, 409, 201, 201, 201]
        );
        assert_eq!(house.count(EHR), 3);
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn a_directory_is_readable_however_many_were_before_it() {
    let mut house = on_memory();
    let path = format!("ehr/{EHR}/directory");
    for cycle in 0..1_001 {
        let uid = house.made("POST", &path, JSON, &text("rest/directory.json"));
        let delete = Request::new("DELETE", &format!("/rest/openehr/v1/{path}"))
            .with_header("If-Match", &uid);
        assert_eq!(house.send(&delete).status, 204, "{cycle}");
    }
    let uid = house.made("POST", &path, JSON, &text("rest/directory.json"));
    let read = house.ask("GET", &path, JSON, "");
    assert_eq!(
        (read.status, read.header("ETag")),
        (200, Some(format!("\"{uid}\"").as_str()))
    );
    assert!(
        shown(&house.ask("GET", &format!("ehr/{EHR}"), JSON, ""))
            .contains(uid.split("::").next().unwrap_or_default())
    );
}

#[test]
fn a_refusal_reveals_nothing_about_another_patient() {
    fn check<R: Repository>(mut house: House<R>) {
        let foreign = house.composition(OTHER);
        let folder = house.made(
            "POST",
            &format!("ehr/{OTHER}/directory"),
            JSON,
            &text("rest/directory.json"),
        );
        let made = house.ask(
            "POST",
            &format!("ehr/{OTHER}/contribution"),
            JSON,
            &contribution(None, &[member("", weight("60"))]).to_string(),
        );
        let foreign_contribution = made
            .header("ETag")
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned();
        let own_status = house.made("GET", &format!("ehr/{EHR}/ehr_status"), JSON, "");
        let foreign_status = house.made("GET", &format!("ehr/{OTHER}/ehr_status"), JSON, "");
        let with_subject = Request::new("PUT", &format!("/rest/openehr/v1/ehr/{OTHER}/ehr_status"))
            .with_header("If-Match", &foreign_status);
        assert_eq!(
            house
                .send(&with_subject.with_body(JSON, status(true).to_string()))
                .status,
            204,
            "the subject patient-7 is taken"
        );
        let app = Caller::with_roles("p", "", &[]).narrowed(
            "patient/composition-*.cruds",
            Some(EHR),
            false,
        );
        let absent = format!("{NOWHERE}::test.example::1");
        let object_of = |uid: &str| uid.split("::").next().unwrap_or_default().to_owned();
        let mut answer_to =
            |method: &str, path: &str, media_type: &str, body: &str, if_match: &str| {
                let request = Request::new(method, &format!("/rest/openehr/v1/{path}"))
                    .with_body(media_type, body)
                    .with_header("If-Match", if_match);
                let answer =
                    block_on(house.0.serve(&request, Ok(&app), &mut house.1)).expect("an answer");
                let headers: Vec<_> = answer
                    .headers
                    .iter()
                    .filter(|(name, _)| name == "ETag" || name == "Location")
                    .cloned()
                    .collect();
                (answer.status, shown(&answer), headers)
            };
        // Each pair consists of a request about data of another EHR and the same request about
        // missing data.
        for (there, kind) in [
            (&foreign, "composition"),
            (&folder, "directory"),
            (&foreign_status, "ehr_status"),
        ] {
            let data = match kind {
                "composition" => weight("60"),
                "directory" => file("rest/directory.json"),
                _ => status(true),
            };
            let versions = |uid: &str| [member(uid, data.clone()), deletion(uid)];
            for (with_there, with_absent) in versions(there).into_iter().zip(versions(&absent)) {
                let [a, b] = [with_there, with_absent].map(|member| contribution(None, &[member]));
                let path = format!("ehr/{EHR}/contribution");
                let answers =
                    [&a, &b].map(|body| answer_to("POST", &path, JSON, &body.to_string(), ""));
                assert!(answers[0].0 == 409 || answers[0].0 == 403, "{answers:?}");
                let [there_text, absent_text] = [
                    (&answers[0].1, there.as_str()),
                    (&answers[1].1, absent.as_str()),
                ]
                .map(|(text, uid)| text.replace(&object_of(uid), "<object>"));
                assert_eq!(
                    (answers[0].0, there_text, &answers[0].2),
                    (answers[1].0, absent_text, &answers[1].2),
                    "{kind}"
                );
                let answers = [&a, &b].map(|body| {
                    answer_to(
                        "POST",
                        "ehr/bulk",
                        LINES,
                        &line(EHR, "contribution", body),
                        "",
                    )
                });
                assert_eq!(
                    answers[0].1.replace(&object_of(there), ""),
                    answers[1].1.replace(NOWHERE, ""),
                    "{kind} in bulk"
                );
            }
        }
        for method in ["GET", "PUT", "DELETE"] {
            let path = |uid: &str| match method {
                "PUT" => format!("ehr/{EHR}/composition/{}", object_of(uid)),
                _ => format!("ehr/{EHR}/composition/{uid}"),
            };
            let answers = [&foreign, &absent]
                .map(|uid| answer_to(method, &path(uid), JSON, &weight("60").to_string(), uid));
            assert_eq!(
                (answers[0].0, &answers[0].1),
                (answers[1].0, &answers[1].1),
                "{method}"
            );
        }
        // The uid of a contribution and the subject are unique among all EHRs, so a caller with
        // access to one EHR cannot choose them.
        let chosen = |uid: &str| contribution(Some(uid), &[member("", weight("60"))]);
        for (path, media_type, wrap) in [
            (format!("ehr/{EHR}/contribution"), JSON, false),
            (String::from("ehr/bulk"), LINES, true),
        ] {
            let body = |uid: &str| {
                if wrap {
                    line(EHR, "contribution", &chosen(uid))
                } else {
                    chosen(uid).to_string()
                }
            };
            let answers = [foreign_contribution.as_str(), NOWHERE]
                .map(|uid| answer_to("POST", &path, media_type, &body(uid), ""));
            assert_eq!(answers[0], answers[1], "{path}");
            assert!(answers[0].1.contains("403"), "{answers:?}");
        }
        // The same rule applies to the uid of a new object.
        let named = |uid: &str| {
            let mut data = weight("60");
            data["uid"] = json!({ "_type": "HIER_OBJECT_ID", "value": uid });
            data
        };
        let foreign_object = object_of(&foreign);
        let created = |uid: &str| contribution(None, &[member("", named(uid))]);
        type Way<'w> = (String, &'w str, &'w dyn Fn(&str) -> String);
        let ways: [Way<'_>; 4] = [
            (format!("ehr/{EHR}/composition"), JSON, &|uid| {
                named(uid).to_string()
            }),
            (format!("ehr/{EHR}/contribution"), JSON, &|uid| {
                created(uid).to_string()
            }),
            (String::from("ehr/bulk"), LINES, &|uid| {
                line(EHR, "composition", &named(uid))
            }),
            (String::from("ehr/bulk"), LINES, &|uid| {
                line(EHR, "contribution", &created(uid))
            }),
        ];
        for (path, media_type, body) in ways {
            let answers = [foreign_object.as_str(), NOWHERE]
                .map(|uid| answer_to("POST", &path, media_type, &body(uid), ""));
            assert_eq!(answers[0], answers[1], "{path}");
            assert!(
                answers[0].1.contains("403") && answers[0].1.contains("leave `uid` out"),
                "{answers:?}"
            );
        }
        let subject = |id: &str| status(true).to_string().replace("patient-7", id);
        let answers = ["patient-7", "patient-8"].map(|id| {
            answer_to(
                "PUT",
                &format!("ehr/{EHR}/ehr_status"),
                JSON,
                &subject(id),
                &own_status,
            )
        });
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].0, 403);
        // The caller may change all other parts of the EHR_STATUS.
        let mut plain = status(true);
        plain["subject"] = json!({ "_type": "PARTY_SELF" });
        assert_eq!(
            answer_to(
                "PUT",
                &format!("ehr/{EHR}/ehr_status"),
                JSON,
                &plain.to_string(),
                &own_status
            )
            .0,
            204
        );
        assert_eq!(
            answer_to(
                "POST",
                &format!("ehr/{EHR}/contribution"),
                JSON,
                &contribution(None, &[member("", weight("60"))]).to_string(),
                ""
            )
            .0,
            201
        );
    }
    check(on_memory());
    check(on_sqlite());
}
