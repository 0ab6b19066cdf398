//! Imports accept no record that breaks a rule.

use super::*;

/// Returns a line for import from a record.
pub(super) fn record(record: &str) -> String {
    format!(
        r#"{{"digest":"{}","record":{record}}}"#,
        digest_of_text(record)
    )
}

/// Returns the record in a line of an export, with a text replaced.
pub(super) fn changed(line: &str, from: &str, to: &str) -> String {
    let text = line
        .split_once(r#","record":"#)
        .and_then(|(_, rest)| rest.strip_suffix('}'))
        .expect("a record");
    assert!(text.contains(from), "`{from}` is not in {text}");
    record(&text.replace(from, to))
}

const WEIGHT: &str = r#""magnitude":72.50"#;

/// The rule that is broken, the line, and a part of the refusal.
type BrokenRecord = (&'static str, String, &'static str);

/// An export of a repository with a COMPOSITION, a PERSON, a template and tags.
struct Exported {
    lines: Vec<String>,
    /// The uid of the COMPOSITION.
    uid: String,
    composition: String,
    party: String,
    template: String,
    /// The commit time of the COMPOSITION.
    time: String,
    contribution_uid: String,
}

impl Exported {
    fn create<R: Repository>(host: &mut Host<R>) -> Exported {
        let uid = host.composition(EHR);
        let body = text("rest/person.json");
        let person = host.made("POST", "demographic/person", JSON, &body);
        let object = uid.split("::").next().unwrap_or_default();
        let tags = format!("ehr/{EHR}/composition/{object}/tags");
        host.made("PUT", &tags, JSON, r#"[{"key":"ward"}]"#);
        let lines = host.export();
        let line_with = |text: &str| {
            let line = lines.iter().find(|line| line.contains(text));
            line.expect("a line of the export").clone()
        };
        let composition = line_with(&uid);
        let behind = |text: &str, length: usize| {
            let rest = composition.split(text).nth(1);
            let found = rest.and_then(|rest| rest.get(..length));
            found.expect("a member of the record").to_owned()
        };
        Exported {
            time: behind(r#""time_committed":{"_type":"DV_DATE_TIME","value":""#, 32),
            contribution_uid: behind(r#""uid":{"_type":"HIER_OBJECT_ID","value":""#, 36),
            party: line_with(&person),
            template: line_with(r#""definition":"template""#),
            uid,
            composition,
            lines,
        }
    }

    /// Imports everything except the COMPOSITION and the PERSON into an empty repository.
    fn reset<R: Repository>(&self, host: &mut Host<R>) {
        host.made("POST", "admin/reset", JSON, "{}");
        let lines = self.lines.iter();
        let kept: Vec<String> = lines
            .filter(|line| **line != self.composition && **line != self.party)
            .cloned()
            .collect();
        let answers = host.lines("admin/import", "", &kept);
        assert!(answers.iter().all(|(status, _)| *status == 201));
    }

    /// Returns the record of the COMPOSITION without its versions.
    fn without_versions(&self) -> String {
        let end = self
            .composition
            .rfind(r#","versions":["#)
            .expect("versions");
        let head = self.composition.get(..end).expect("a record");
        let (_, text) = head.split_once(r#","record":"#).expect("a record");
        record(&format!("{text}}}"))
    }

    /// Records with a wrong owner or commit time.
    fn broken_owners_and_times(&self) -> Vec<BrokenRecord> {
        vec![
            (
                "an ehr_id that is none",
                changed(
                    &self.composition,
                    &format!(r#""ehr_id":"{EHR}""#),
                    r#""ehr_id":"x""#,
                ),
                "not a UUID",
            ),
            (
                "no ehr_id",
                changed(&self.composition, &format!(r#""ehr_id":"{EHR}","#), ""),
                "a party",
            ),
            (
                "a party in an EHR",
                changed(
                    &self.party,
                    r#"{"contribution":"#,
                    &format!(r#"{{"ehr_id":"{EHR}","contribution":"#),
                ),
                "a party",
            ),
            ("no versions", self.without_versions(), "no `versions`"),
            (
                "times",
                changed(&self.composition, &self.time, "9999-99-99"),
                "9999-99-99",
            ),
            (
                "a time out of the calendar",
                changed(&self.composition, &self.time, "2026-02-30T10:00:00Z"),
                "2026-02-30",
            ),
        ]
    }

    /// Records with wrong identifiers or times.
    fn broken_ids(&self) -> Vec<BrokenRecord> {
        vec![
            (
                "a time to come",
                changed(&self.composition, &self.time, "2999-01-01T00:00:00Z"),
                "in the future",
            ),
            (
                "data with the uid of another version",
                changed(
                    &self.composition,
                    &format!(
                        r#""value":"Encounter"}},"uid":{{"_type":"OBJECT_VERSION_ID","value":"{}"}}"#,
                        self.uid
                    ),
                    r#""value":"Encounter"},"uid":{"_type":"OBJECT_VERSION_ID","value":"aaaaaaaa-4444-4444-8444-000000000001::test.example::1"}"#,
                ),
                "the data have the uid",
            ),
            (
                "a system that no entity tag can carry",
                changed(
                    &self.composition,
                    &self.uid,
                    &self
                        .uid
                        .replace("::test", &format!("::{}.test", "s".repeat(256))),
                ),
                "cannot be the id of a system",
            ),
            (
                "half a time",
                changed(&self.composition, &self.time, "2026-02"),
                "2026-02",
            ),
            (
                "a contribution uid in capitals",
                changed(
                    &self.composition,
                    &self.contribution_uid,
                    &self.contribution_uid.to_uppercase().replace("00", "0A"),
                ),
                "lower case",
            ),
        ]
    }

    /// Records whose versions break a rule.
    fn broken_data(&self) -> Vec<BrokenRecord> {
        vec![
            (
                "an invalid composition",
                changed(&self.composition, WEIGHT, r#""magnitude":-5"#),
                "magnitude",
            ),
            (
                "a composition that is not whole",
                changed(&self.composition, r#""territory":"#, r#""territori":"#),
                "territor",
            ),
            (
                "an unknown template",
                changed(&self.composition, "weight.en.v2", "weight.en.v9"),
                "SVC0202",
            ),
            (
                "a data class that is not listed",
                changed(
                    &self.composition,
                    r#""type":"COMPOSITION""#,
                    r#""type":"FOLDER""#,
                ),
                "another class",
            ),
            (
                "an unknown state",
                changed(
                    &self.composition,
                    r#""code_string":"532""#,
                    r#""code_string":"1""#,
                ),
                "lifecycle",
            ),
            (
                "a deletion with data",
                changed(
                    &self.composition,
                    r#""code_string":"532""#,
                    r#""code_string":"523""#,
                ),
                "no data",
            ),
            (
                "foreign tags",
                changed(&self.composition, r#""tags":[[""#, r#""tags":[["x"#),
                "no object or version",
            ),
        ]
    }

    /// Definitions that break a rule.
    fn broken_definitions(&self) -> Vec<BrokenRecord> {
        vec![
            (
                "a template under another name",
                changed(
                    &self.template,
                    r#""name":"weight.en.v2""#,
                    r#""name":"weight""#,
                ),
                "calls itself",
            ),
            (
                "a template with more nodes than an upload may demand",
                changed(
                    &self.template,
                    "<lower>1</lower><upper>1</upper>",
                    "<lower>2000000000</lower><upper>2000000000</upper>",
                ),
                "TPL0303",
            ),
            (
                "a template that is none",
                changed(&self.template, r#""body":"<?xml"#, r#""body":"<!xml"#),
                "template",
            ),
            (
                "a definition without a time",
                changed(&self.template, r#""created":"2026"#, r#""created":"20-26"#),
                "created",
            ),
        ]
    }
}

#[test]
fn an_import_refuses_every_record_that_breaks_a_rule() {
    fn check<R: Repository>(mut host: Host<R>) {
        let exported = Exported::create(&mut host);
        let cases = [
            exported.broken_owners_and_times(),
            exported.broken_ids(),
            exported.broken_data(),
            exported.broken_definitions(),
        ];
        for (what, line, rule) in cases.concat() {
            exported.reset(&mut host);
            let answers = host.lines("admin/import", "", std::slice::from_ref(&line));
            let [(status, text)] = answers.as_slice() else {
                panic!("{what}: {answers:?}")
            };
            assert!(
                (400..500).contains(status) && text.contains(rule),
                "{what}: {text}"
            );
            assert_eq!(host.count(EHR), 0, "{what}");
        }
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn an_import_accepts_an_ehr_id_in_capitals() {
    fn check<R: Repository>(mut host: Host<R>) {
        let exported = Exported::create(&mut host);
        exported.reset(&mut host);
        let id = |ehr: &str| format!(r#""ehr_id":"{ehr}""#);
        let line = changed(&exported.composition, &id(EHR), &id(&EHR.to_uppercase()));
        assert_eq!(host.lines("admin/import", "", &[line])[0].0, 201);
        let path = format!("ehr/{EHR}/composition/{}", exported.uid);
        assert_eq!(host.ask("GET", &path, JSON, "").status, 200);
    }
    check(on_memory());
    check(on_sqlite());
}

/// Errors in the data may be kept; errors in their envelope may not.
#[test]
fn an_import_keeps_findings_of_data_on_request() {
    fn check<R: Repository>(mut host: Host<R>) {
        let exported = Exported::create(&mut host);
        exported.reset(&mut host);
        let mut import = |line: String| host.lines("admin/import?findings=keep", "", &[line])[0].0;
        let composition = &exported.composition;
        let bad_time = changed(composition, &exported.time, "2026-02-30T10:00:00Z");
        assert_eq!(import(bad_time), 400);
        assert_eq!(
            import(changed(composition, WEIGHT, r#""magnitude":-5"#)),
            201
        );
        let unknown = host.ask("POST", "admin/import?findings=some", LINES, "");
        assert_eq!(unknown.status, 400);
    }
    check(on_memory());
    check(on_sqlite());
}

/// Findings name their place from the root of the record, also if the stored form of the version
/// differs from the sent one.
#[test]
fn errors_of_an_import_name_their_place_in_the_record() {
    const TEMPLATE: &str = r#""template_id":{"_type":"TEMPLATE_ID","value":"#;
    fn check<R: Repository>(mut host: Host<R>) {
        let exported = Exported::create(&mut host);
        exported.reset(&mut host);
        let object = "cccccccc-5555-4555-8555-000000000002";
        let path = format!("ehr/{EHR}/contribution");
        let foreign = imported(object, 3, &weight("61"));
        let body = contribution(None, &[foreign]).to_string();
        let of_contribution = host.made("POST", &path, JSON, &body);
        let lines = host.export();
        let foreign = lines.iter().find(|line| line.contains(&of_contribution));
        let foreign = foreign.expect("the imported version").clone();
        exported.reset(&mut host);
        let start = exported.composition.find(TEMPLATE).expect("a template") + TEMPLATE.len();
        let known = exported
            .composition
            .get(start..)
            .and_then(|text| text.split('"').nth(1));
        let known = format!("{TEMPLATE}\"{}\"", known.expect("the template's id"));
        let unknown = format!("{TEMPLATE}\"unknown.v1\"");
        let times = [&exported.time, "2026-02-30T10:00:00Z"];
        let magnitude = "/content[0]/data/events[0]/data/items[0]/value/magnitude";
        for (line, [from, to], place) in [
            (
                &exported.composition,
                [known.as_str(), unknown.as_str()],
                "/versions[0]/data/archetype_details/template_id/value",
            ),
            (
                &foreign,
                [known.as_str(), unknown.as_str()],
                "/versions[0]/item/data/archetype_details/template_id/value",
            ),
            (
                &exported.composition,
                [WEIGHT, r#""magnitude":-5"#],
                &format!("/versions[0]/data{magnitude}"),
            ),
            (
                &foreign,
                [r#""magnitude":61"#, r#""magnitude":-5"#],
                &format!("/versions[0]/item/data{magnitude}"),
            ),
            (
                &exported.composition,
                times,
                "/contribution/audit/time_committed/value",
            ),
        ] {
            let answers = host.lines("admin/import", "", &[changed(line, from, to)]);
            let (status, text) = answers.first().expect("an answer");
            let path = format!(r#""_path":"{place}""#);
            let value = format!(r#""value":"{place}: "#);
            assert!((400..500).contains(status), "{text}");
            assert!(
                text.contains(&path) && text.contains(&value),
                "{place}: {text}"
            );
        }
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn an_import_skips_existing_records_and_refuses_different_ones() {
    fn check<R: Repository>(mut host: Host<R>) {
        let uid = host.composition(EHR);
        let object = uid.split("::").next().unwrap_or_default();
        host.made(
            "PUT",
            &format!("ehr/{EHR}/composition/{object}/tags"),
            JSON,
            r#"[{"key":"ward","value":"7"}]"#,
        );
        let all = host.export();
        assert!(
            host.lines("admin/import", "", &all)
                .iter()
                .all(|(status, _)| *status == 200)
        );
        let composition = all
            .iter()
            .find(|line| line.contains(&uid))
            .expect("the composition");
        for (from, to) in [
            (r#""magnitude":72.50"#, r#""magnitude":72.51"#),
            (r#"["ward",null,"7"]"#, r#"["ward",null,"8"]"#),
        ] {
            assert_eq!(
                host.lines("admin/import", "", &[changed(composition, from, to)])[0].0,
                409,
                "{to}"
            );
        }
        assert_eq!(host.export(), all);
    }
    check(on_memory());
    check(on_sqlite());
}

/// Returns the line of an export with the version of this uid.
fn line_of_version(lines: &[String], uid: &str) -> String {
    let member = format!(r#""uid":{{"_type":"OBJECT_VERSION_ID","value":"{uid}""#);
    let line = lines.iter().find(|line| line.contains(&member));
    line.expect("a line of the export").clone()
}

/// Returns the entity tag of an answer, which is a version uid.
fn tag(response: &Response) -> String {
    let tag = response.header("ETag").unwrap_or_default();
    tag.trim_matches('"').to_owned()
}

/// An export with two versions of a COMPOSITION and of a PERSON, and a directory. The second
/// versions and the directory are not imported at first.
struct Successors {
    lines: Vec<String>,
    first: String,
    second: String,
    person: String,
    changed_person: String,
    folder: String,
}

impl Successors {
    fn create<R: Repository>(host: &mut Host<R>) -> Successors {
        let object_of = |uid: &str| uid.split("::").next().unwrap_or_default().to_owned();
        let update = |path: String, uid: &str, body: String| {
            Request::new("PUT", &format!("/rest/openehr/v1/{path}"))
                .with_header("If-Match", uid)
                .with_body(JSON, body)
        };
        let first = host.composition(EHR);
        let path = format!("ehr/{EHR}/composition/{}", object_of(&first));
        let second = tag(&host.send(&update(path, &first, weight("61").to_string())));
        let body = text("rest/person.json");
        let person = host.made("POST", "demographic/person", JSON, &body);
        let path = format!("demographic/person/{}", object_of(&person));
        let changed_person = tag(&host.send(&update(path, &person, body)));
        let path = format!("ehr/{EHR}/directory");
        let folder = host.made("POST", &path, JSON, &text("rest/directory.json"));
        Successors {
            lines: host.export(),
            first,
            second,
            person,
            changed_person,
            folder,
        }
    }

    fn line(&self, uid: &str) -> String {
        line_of_version(&self.lines, uid)
    }

    /// Imports everything except the second versions and the directory into an empty repository.
    fn reset<R: Repository>(&self, host: &mut Host<R>) {
        host.made("POST", "admin/reset", JSON, "{}");
        let left_out = [&self.second, &self.changed_person, &self.folder].map(|uid| self.line(uid));
        let lines = self.lines.iter();
        let start: Vec<String> = lines
            .filter(|line| !left_out.contains(line))
            .cloned()
            .collect();
        let answers = host.lines("admin/import", "", &start);
        assert!(answers.iter().all(|(status, _)| *status == 201));
    }
}

pub(super) fn assert_other_kind(answer: &(u16, String)) {
    assert!(
        answer.0 == 400 && answer.1.contains("SVC0204"),
        "{answer:?}"
    );
}

#[test]
fn an_import_keeps_kind_and_class_of_objects() {
    fn check<R: Repository>(mut host: Host<R>) {
        let export = Successors::create(&mut host);
        export.reset(&mut host);
        // The FOLDER as a version of the COMPOSITION.
        let folder = export.line(&export.folder);
        let folder = changed(&folder, &export.folder, &export.second);
        let preceding = format!(
            r#""preceding_version_uid":{{"_type":"OBJECT_VERSION_ID","value":"{}"}},"lifecycle_state""#,
            export.first
        );
        let folder = changed(&folder, r#""lifecycle_state""#, &preceding);
        assert_other_kind(&host.lines("admin/import", "", &[folder])[0]);
        // The PERSON as an ORGANISATION. Its first version may be in the same body.
        let second = export.line(&export.changed_person);
        let second = changed(&second, "PERSON", "ORGANISATION");
        for body in [
            vec![second.clone()],
            vec![export.line(&export.person), second],
        ] {
            let answers = host.lines("admin/import", "", &body);
            assert_other_kind(answers.last().expect("an answer"));
        }
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn an_import_keeps_archetype_and_persistence_of_compositions() {
    fn check<R: Repository>(mut host: Host<R>) {
        let export = Successors::create(&mut host);
        export.reset(&mut host);
        let second = export.line(&export.second);
        let persistent = changed(&second, r#""code_string":"433""#, r#""code_string":"431""#);
        let archetype = changed(&second, "COMPOSITION.encounter.v1", "COMPOSITION.report.v1");
        for (line, code) in [(persistent, "SVC0206"), (archetype, "SVC0205")] {
            let answers = host.lines("admin/import?findings=keep", "", &[line]);
            let (status, text) = answers.first().expect("an answer");
            assert!(*status == 400 && text.contains(code), "{text}");
            assert!(text.contains(r#""_path":"/versions[0]""#), "{text}");
        }
        assert_eq!(host.lines("admin/import", "", &[second])[0].0, 201);
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn an_import_respects_the_lock_of_an_ehr() {
    fn check<R: Repository>(mut host: Host<R>) {
        let export = Successors::create(&mut host);
        export.reset(&mut host);
        let lock = status_line(&mut host, false);
        assert_eq!(host.bulk("", &[lock]), [201]);
        let lines = [&export.second, &export.folder, &export.changed_person];
        let answers = host.lines("admin/import", "", &lines.map(|uid| export.line(uid)));
        let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, [409, 409, 201], "{answers:?}");
    }
    check(on_memory());
    check(on_sqlite());
}

/// Returns an IMPORTED_VERSION of another system.
fn imported(object: &str, number: u32, data: &Value) -> Value {
    let mut audit = audit(if number == 1 { "249" } else { "251" });
    audit["system_id"] = json!("far.example");
    audit["time_committed"] =
        json!({ "_type": "DV_DATE_TIME", "value": "2019-05-06T07:08:09.000Z" });
    let uid = |number: u32| json!({ "_type": "OBJECT_VERSION_ID", "value": format!("{object}::far.example::{number}") });
    let state = json!({ "terminology_id": { "value": "openehr" }, "code_string": "532" });
    let mut item = json!({
        "_type": "ORIGINAL_VERSION",
        "contribution": { "namespace": "local", "type": "CONTRIBUTION", "id": { "_type": "HIER_OBJECT_ID", "value": NOWHERE } },
        "commit_audit": audit, "signature": "far signature", "uid": uid(number), "data": data,
        "lifecycle_state": { "value": "complete", "defining_code": state },
    });
    if number > 1 {
        item["preceding_version_uid"] = uid(number - 1);
    }
    json!({ "_type": "IMPORTED_VERSION", "item": item })
}

#[test]
fn imported_versions_are_exported_byte_for_byte() {
    fn check<R: Repository, S: Repository>(mut host: Host<R>, empty: Service<S>) {
        let object = "cccccccc-5555-4555-8555-000000000001";
        let path = format!("ehr/{EHR}/contribution");
        // The first imported version follows one that is not imported. Later ones follow it in
        // their own and in other contributions.
        for members in [
            vec![
                imported(object, 3, &weight("61")),
                imported(object, 4, &weight("62")),
            ],
            vec![imported(object, 5, &weight("63"))],
        ] {
            host.made(
                "POST",
                &path,
                JSON,
                &contribution(None, &members).to_string(),
            );
        }
        host.made(
            "POST",
            &format!("ehr/{EHR}/directory"),
            JSON,
            &text("rest/directory.json"),
        );
        let exported = host.export();
        let mut other = Host(empty, Ticks::new());
        for _ in ["new", "passed over"] {
            assert!(
                other
                    .lines("admin/import", "", &exported)
                    .iter()
                    .all(|(status, _)| *status < 300)
            );
            assert_eq!(other.export(), exported);
        }
        let again = contribution(None, &[imported(object, 6, &weight("64"))]).to_string();
        assert_eq!(other.ask("POST", &path, JSON, &again).status, 201);
        let altered: Vec<String> = exported
            .iter()
            .map(|line| line.replace("far signature", "own signature"))
            .collect();
        assert!(
            other
                .lines("admin/import", "", &altered)
                .iter()
                .any(|(status, _)| *status == 400),
            "the digest of the line differs"
        );
    }
    let config = || Config {
        auth: Auth::Known,
        admin: true,
        system_id: String::from("test.example"),
        ..Config::default()
    };
    check(
        on_memory(),
        Service::new(Sqlite::in_memory().repository(), config()),
    );
    check(on_sqlite(), Service::new(Memory::new(), config()));
}

#[test]
fn versions_of_other_systems_need_the_role_import() {
    let mut host = on_memory();
    let object = "cccccccc-5555-4555-8555-000000000002";
    let body = contribution(None, &[imported(object, 1, &weight("61"))]).to_string();
    let mut status = |roles: &[&str], body: &str| {
        let request = Request::new("POST", &format!("/rest/openehr/v1/ehr/{EHR}/contribution"))
            .with_body(JSON, body);
        let answer = now_or_never(host.0.serve(
            &request,
            Ok(&Caller::with_roles("n", "", roles)),
            &mut host.1,
        ))
        .expect("an answer");
        (answer.status, shown(&answer))
    };
    let (refused, why) = status(&["read", "write", "admin"], &body);
    assert_eq!(refused, 403, "{why}");
    assert!(why.contains("the role import"), "{why}");
    assert_eq!(
        status(&["import"], &body).0,
        403,
        "importing is a way of writing"
    );
    assert_eq!(status(&["write", "import"], &body).0, 201);
    let plain = contribution(None, &[member("", weight("60"))]).to_string();
    assert_eq!(status(&["write"], &plain).0, 201);
}
