//! Writes never lose or alter a record: bulk loads, imports, locked EHRs. Refusals reveal nothing
//! about other patients.

mod imports;
mod parties;
mod repetitions;
mod stored_form;

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use crate::upgrade::text;
use aqlite::document::digest_of_text;
use aqlite::service::auth::Caller;
use aqlite::service::{Auth, Config, Limits, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;
use serde_json::{Value, json};

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const OTHER: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430ff";
const NOWHERE: &str = "00000000-0000-4000-8000-00000000ffff";
const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

fn config(limits: Limits) -> Config {
    Config {
        auth: Auth::Known,
        admin: true,
        system_id: String::from("test.example"),
        limits,
        ..Config::default()
    }
}

struct Host<R: Repository>(Service<R>, Ticks);

fn on_memory() -> Host<Memory> {
    Host::over(Memory::new())
}

fn on_sqlite() -> Host<impl Repository> {
    Host::over(Sqlite::in_memory().repository())
}

impl<R: Repository> Host<R> {
    /// Creates a service with a template and two EHRs.
    fn over(repository: R) -> Host<R> {
        Host::within(repository, Limits::default())
    }

    fn within(repository: R, limits: Limits) -> Host<R> {
        let mut host = Host(Service::new(repository, config(limits)), Ticks::new());
        host.made(
            "POST",
            "definition/template/adl1.4",
            "application/xml",
            &text("template/small.opt"),
        );
        for ehr in [EHR, OTHER] {
            host.made("PUT", &format!("ehr/{ehr}"), JSON, "");
        }
        host
    }

    fn send(&mut self, request: &Request) -> Response {
        now_or_never(self.0.serve(request, Ok(&Caller::everyone()), &mut self.1))
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

    /// Returns status and text of the answer to each line. An empty key is not sent.
    fn lines(&mut self, path: &str, key: &str, lines: &[String]) -> Vec<(u16, String)> {
        let mut request = Request::new("POST", &format!("/rest/openehr/v1/{path}"));
        if !key.is_empty() {
            request = request.with_header("Idempotency-Key", key);
        }
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
    fn check<R: Repository>(mut host: Host<R>) {
        let uid = "cccccccc-1111-4111-8111-111111111111";
        let created = host.composition(EHR);
        let before = host.count(EHR);
        let first = line(
            EHR,
            "contribution",
            &contribution(Some(uid), &[member("", weight("60"))]),
        );
        assert_eq!(host.bulk("one", std::slice::from_ref(&first)), [201]);
        assert_eq!(
            host.bulk("one", std::slice::from_ref(&first)),
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
                host.bulk(key, std::slice::from_ref(refused)),
                [409],
                "{key}: {refused}"
            );
        }
        assert_eq!(
            host.bulk("one", &[" ".to_owned(), first.clone()]),
            [409],
            "at another place"
        );
        assert_eq!(
            host.bulk("one", &[first.clone(), first]),
            [200, 409],
            "twice in one body"
        );
        assert_eq!(host.count(EHR), before + 1);
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
        assert_eq!(host.bulk("one", &[changed(weight("62"))]), [201]);
        assert_eq!(host.bulk("one", &[changed(weight("62"))]), [200]);
        assert_eq!(host.bulk("one", &[changed(weight("63"))]), [409]);
        assert_eq!(host.bulk("two", &[changed(weight("62"))]), [409]);
        // A deletion finds that the object was deleted by itself before.
        let second = created.replace("::1", "::2");
        let gone = line(
            EHR,
            "contribution",
            &contribution(None, &[deletion(&second)]),
        );
        assert_eq!(host.bulk("one", std::slice::from_ref(&gone)), [201]);
        assert_eq!(host.bulk("one", std::slice::from_ref(&gone)), [200]);
        assert_eq!(host.bulk("two", &[gone]), [409]);
        // The writes of a locking line are recognized as a repetition after it, too.
        let (content, lock) = (
            line(EHR, "composition", &weight("64")),
            status_line(&mut host, false),
        );
        assert_eq!(
            host.bulk("three", &[content.clone(), lock.clone()]),
            [201, 201]
        );
        assert_eq!(host.bulk("three", &[content.clone(), lock]), [200, 200]);
        assert_eq!(host.bulk("four", &[content]), [409]);
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn an_idempotency_key_belongs_to_its_caller() {
    fn check<R: Repository>(mut host: Host<R>) {
        let callers = [("ann", "i"), ("bob", "i"), ("ann", "j")]
            .map(|(name, issuer)| Caller::with_roles(name, issuer, &["read", "write"]));
        let line = line(EHR, "composition", &weight("60"));
        let request = Request::new("POST", "/rest/openehr/v1/ehr/bulk")
            .with_header("Idempotency-Key", "one")
            .with_body(LINES, line);
        let mut uids = Vec::new();
        for (caller, status) in callers
            .iter()
            .map(|caller| (caller, 201))
            .chain(callers.iter().map(|caller| (caller, 200)))
        {
            let answer = now_or_never(host.0.serve(&request, Ok(caller), &mut host.1));
            let answer = shown(&answer.expect("an answer"));
            let answer: Value = serde_json::from_str(answer.trim()).expect("a line");
            assert_eq!(answer["status"], status, "{answer}");
            uids.push(answer["uid"].as_str().map(str::to_owned));
        }
        assert_eq!(uids[..3], uids[3..], "each caller repeats its own line");
        assert_eq!(host.count(EHR), 3);
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn a_repetition_has_the_same_committal_headers() {
    const COMMITTER: &str = "openEHR-AUDIT_DETAILS.committer";
    const OTHER_SPELLING: &str = "openehr-audit-details";
    fn check<R: Repository>(mut host: Host<R>) {
        let mut made = Vec::new();
        for (name, value, status) in [
            ("Accept", "*/*", 201),
            (COMMITTER, "name=\"Dr. Ek\"", 201),
            (COMMITTER, "name=\"Dr. Alm\"", 201),
            (
                "openEHR-VERSION.lifecycle_state",
                "code_string=\"553\"",
                201,
            ),
            ("Accept", "*/*", 200),
            (COMMITTER, "name=\"Dr. Ek\"", 200),
            (OTHER_SPELLING, "committer.name=\"Dr. Ek\"", 200),
        ] {
            let request = Request::new("POST", "/rest/openehr/v1/ehr/bulk")
                .with_header("Idempotency-Key", "one")
                .with_header(name, value)
                .with_body(LINES, line(EHR, "composition", &weight("60")));
            let answer = host.send(&request);
            let answer: Value = serde_json::from_str(shown(&answer).trim()).expect("a line");
            assert_eq!(answer["status"], status, "{name}: {value}: {answer}");
            made.push(answer["uid"].as_str().map(str::to_owned));
        }
        assert_eq!([&made[0], &made[1]], [&made[4], &made[5]]);
        assert_eq!(made[1], made[6], "another spelling of the same header");
        assert_eq!(host.count(EHR), 4);
        // A contribution with a uid exists, so other headers are a conflict.
        let created = serde_json::json!({
            "_type": "ORIGINAL_VERSION", "data": weight("60"), "commit_audit": audit("249"),
        });
        let named = |uid| contribution(Some(uid), std::slice::from_ref(&created));
        let uid = "33333333-3333-4333-8333-333333333333";
        for (committer, status) in [("Dr. Ek", 201), ("Dr. Ek", 200), ("Dr. Alm", 409)] {
            let request = Request::new("POST", "/rest/openehr/v1/ehr/bulk")
                .with_header("Idempotency-Key", "two")
                .with_header(COMMITTER, &format!("name=\"{committer}\""))
                .with_body(LINES, line(EHR, "contribution", &named(uid)));
            let answer = shown(&host.send(&request));
            assert!(
                answer.contains(&format!("\"status\":{status}")),
                "{committer}: {answer}"
            );
        }
    }
    check(on_memory());
    check(on_sqlite());
}

/// Returns a line that locks or unlocks the EHR behind its present EHR_STATUS.
fn status_line<R: Repository>(host: &mut Host<R>, is_modifiable: bool) -> String {
    let latest = host.made("GET", &format!("ehr/{EHR}/ehr_status"), JSON, "");
    line(
        EHR,
        "contribution",
        &contribution(None, &[member(&latest, status(is_modifiable))]),
    )
}

#[test]
fn lines_behind_a_locking_line_are_refused() {
    fn check<R: Repository>(mut host: Host<R>) {
        let uid = host.composition(EHR);
        let lock = status_line(&mut host, false);
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
        assert_eq!(host.bulk("", &sent), [201, 201, 409, 409, 409, 201]);
        assert_eq!((host.count(EHR), host.count(OTHER)), (2, 1));
        // Lines behind an unlocking line are accepted.
        let open = status_line(&mut host, true);
        assert_eq!(
            host.bulk(
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
        assert_eq!(host.count(EHR), 3);
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn a_directory_is_readable_however_many_were_before_it() {
    let mut host = on_memory();
    let path = format!("ehr/{EHR}/directory");
    for cycle in 0..1_001 {
        let uid = host.made("POST", &path, JSON, &text("rest/directory.json"));
        let delete = Request::new("DELETE", &format!("/rest/openehr/v1/{path}"))
            .with_header("If-Match", &uid);
        assert_eq!(host.send(&delete).status, 204, "{cycle}");
    }
    let uid = host.made("POST", &path, JSON, &text("rest/directory.json"));
    let read = host.ask("GET", &path, JSON, "");
    assert_eq!(
        (read.status, read.header("ETag")),
        (200, Some(format!("\"{uid}\"").as_str()))
    );
    assert!(
        shown(&host.ask("GET", &format!("ehr/{EHR}"), JSON, ""))
            .contains(uid.split("::").next().unwrap_or_default())
    );
}

/// Status, text, and the headers that identify a resource.
type Answer = (u16, String, Vec<(String, String)>);

/// A host in which an app with access to [`EHR`] sends requests. [`OTHER`] has one resource of each
/// kind.
struct Stranger<R: Repository> {
    host: Host<R>,
    app: Caller,
    composition: String,
    folder: String,
    contribution: String,
    status: String,
    own_status: String,
    /// The uid of a version that does not exist.
    absent: String,
}

impl<R: Repository> Stranger<R> {
    fn new(mut host: Host<R>) -> Stranger<R> {
        let composition = host.composition(OTHER);
        let path = format!("ehr/{OTHER}/directory");
        let folder = host.made("POST", &path, JSON, &text("rest/directory.json"));
        let body = contribution(None, &[member("", weight("60"))]).to_string();
        let made = host.ask("POST", &format!("ehr/{OTHER}/contribution"), JSON, &body);
        let contribution = made
            .header("ETag")
            .unwrap_or_default()
            .trim_matches('"')
            .to_owned();
        let own_status = host.made("GET", &format!("ehr/{EHR}/ehr_status"), JSON, "");
        let other_status = host.made("GET", &format!("ehr/{OTHER}/ehr_status"), JSON, "");
        let request = Request::new("PUT", &format!("/rest/openehr/v1/ehr/{OTHER}/ehr_status"))
            .with_header("If-Match", &other_status)
            .with_body(JSON, status(true).to_string());
        assert_eq!(
            host.send(&request).status,
            204,
            "the subject patient-7 is taken"
        );
        let scope = "patient/composition-*.cruds";
        Stranger {
            app: Caller::with_roles("p", "", &[]).narrowed(scope, Some(EHR), false),
            composition,
            folder,
            contribution,
            status: other_status,
            own_status,
            absent: format!("{NOWHERE}::test.example::1"),
            host,
        }
    }

    fn send(&mut self, method: &str, path: &str, kind: &str, body: &str, if_match: &str) -> Answer {
        let request = Request::new(method, &format!("/rest/openehr/v1/{path}"))
            .with_body(kind, body)
            .with_header("If-Match", if_match);
        let Host(service, ticks) = &mut self.host;
        let answer =
            now_or_never(service.serve(&request, Ok(&self.app), ticks)).expect("an answer");
        let headers = answer.headers.iter();
        let identifying = headers.filter(|(name, _)| name == "ETag" || name == "Location");
        (
            answer.status,
            shown(&answer),
            identifying.cloned().collect(),
        )
    }
}

fn object_of(uid: &str) -> String {
    uid.split("::").next().unwrap_or_default().to_owned()
}

/// Each pair consists of a request about data of another EHR and the same request about missing
/// data.
#[test]
fn refused_contributions_do_not_reveal_objects_of_another_ehr() {
    fn check<R: Repository>(host: Host<R>) {
        let mut stranger = Stranger::new(host);
        let objects = [
            (stranger.composition.clone(), weight("60")),
            (stranger.folder.clone(), file("rest/directory.json")),
            (stranger.status.clone(), status(true)),
        ];
        let absent = stranger.absent.clone();
        for (present, data) in objects {
            let members = |uid: &str| [member(uid, data.clone()), deletion(uid)];
            for (there, nowhere) in members(&present).into_iter().zip(members(&absent)) {
                let bodies = [(there, &present), (nowhere, &absent)]
                    .map(|(member, uid)| (contribution(None, &[member]), object_of(uid)));
                let path = format!("ehr/{EHR}/contribution");
                let answers = bodies.each_ref().map(|(body, object)| {
                    let (status, text, headers) =
                        stranger.send("POST", &path, JSON, &body.to_string(), "");
                    (status, text.replace(object, "<object>"), headers)
                });
                assert!(answers[0].0 == 409 || answers[0].0 == 403, "{answers:?}");
                assert_eq!(answers[0], answers[1]);
                let in_bulk = bodies.each_ref().map(|(body, object)| {
                    let line = line(EHR, "contribution", body);
                    let (_, text, _) = stranger.send("POST", "ehr/bulk", LINES, &line, "");
                    text.replace(object, "<object>")
                });
                assert_eq!(in_bulk[0], in_bulk[1]);
            }
        }
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn refused_requests_do_not_reveal_compositions_of_another_ehr() {
    fn check<R: Repository>(host: Host<R>) {
        let mut stranger = Stranger::new(host);
        let uids = [stranger.composition.clone(), stranger.absent.clone()];
        let body = weight("60").to_string();
        for method in ["GET", "PUT", "DELETE"] {
            let [(status, text, _), absent] = uids.each_ref().map(|uid| {
                let path = match method {
                    "PUT" => format!("ehr/{EHR}/composition/{}", object_of(uid)),
                    _ => format!("ehr/{EHR}/composition/{uid}"),
                };
                stranger.send(method, &path, JSON, &body, uid)
            });
            assert_eq!((status, text), (absent.0, absent.1), "{method}");
        }
    }
    check(on_memory());
    check(on_sqlite());
}

/// The uid of a contribution is unique among all EHRs, so a caller with access to one EHR cannot
/// choose it.
#[test]
fn refused_contribution_uids_do_not_reveal_those_of_another_ehr() {
    fn check<R: Repository>(host: Host<R>) {
        let mut stranger = Stranger::new(host);
        let uids = [stranger.contribution.clone(), NOWHERE.to_owned()];
        let chosen = |uid: &str| contribution(Some(uid), &[member("", weight("60"))]);
        let path = format!("ehr/{EHR}/contribution");
        let single = uids
            .each_ref()
            .map(|uid| stranger.send("POST", &path, JSON, &chosen(uid).to_string(), ""));
        let in_bulk = uids.each_ref().map(|uid| {
            let line = line(EHR, "contribution", &chosen(uid));
            stranger.send("POST", "ehr/bulk", LINES, &line, "")
        });
        for answers in [single, in_bulk] {
            assert_eq!(answers[0], answers[1]);
            assert!(answers[0].1.contains("403"), "{answers:?}");
        }
    }
    check(on_memory());
    check(on_sqlite());
}

/// The same rule applies to the uid of a new object.
#[test]
fn refused_object_uids_do_not_reveal_those_of_another_ehr() {
    fn check<R: Repository>(host: Host<R>) {
        let mut stranger = Stranger::new(host);
        let named = |uid: &str| {
            let mut data = weight("60");
            data["uid"] = json!({ "_type": "HIER_OBJECT_ID", "value": uid });
            data
        };
        let uids = [object_of(&stranger.composition), NOWHERE.to_owned()];
        let created = |uid: &str| contribution(None, &[member("", named(uid))]);
        let own = |path: &str| format!("ehr/{EHR}/{path}");
        let bulk = || String::from("ehr/bulk");
        type Write<'w> = (String, &'w str, &'w dyn Fn(&str) -> String);
        let writes: [Write<'_>; 4] = [
            (own("composition"), JSON, &|uid| named(uid).to_string()),
            (own("contribution"), JSON, &|uid| created(uid).to_string()),
            (bulk(), LINES, &|uid| line(EHR, "composition", &named(uid))),
            (bulk(), LINES, &|uid| {
                line(EHR, "contribution", &created(uid))
            }),
        ];
        for (path, kind, body) in writes {
            let answers = uids
                .each_ref()
                .map(|uid| stranger.send("POST", &path, kind, &body(uid), ""));
            assert_eq!(answers[0], answers[1], "{path}");
            let text = &answers[0].1;
            assert!(
                text.contains("403") && text.contains("leave `uid` out"),
                "{text}"
            );
        }
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn refused_subjects_do_not_reveal_those_of_another_ehr() {
    fn check<R: Repository>(host: Host<R>) {
        let mut stranger = Stranger::new(host);
        let path = format!("ehr/{EHR}/ehr_status");
        let own_status = stranger.own_status.clone();
        let answers = ["patient-7", "patient-8"].map(|id| {
            let body = status(true).to_string().replace("patient-7", id);
            stranger.send("PUT", &path, JSON, &body, &own_status)
        });
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].0, 403);
        // The caller may change all other parts of the EHR_STATUS, and commit to the own EHR.
        let mut plain = status(true);
        plain["subject"] = json!({ "_type": "PARTY_SELF" });
        let changed = stranger.send("PUT", &path, JSON, &plain.to_string(), &own_status);
        assert_eq!(changed.0, 204);
        let body = contribution(None, &[member("", weight("60"))]).to_string();
        let path = format!("ehr/{EHR}/contribution");
        assert_eq!(stranger.send("POST", &path, JSON, &body, "").0, 201);
    }
    check(on_memory());
    check(on_sqlite());
}
