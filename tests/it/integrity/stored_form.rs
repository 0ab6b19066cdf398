//! The stored form of documents: its uids, and its size, which may exceed that of the request.

use super::imports::{changed, record};
use super::*;
use chrono::{DateTime, TimeDelta};

/// The limit of bodies in these tests.
const BODY: usize = 60_000;

fn limited<R: Repository>(repository: R) -> Host<R> {
    let limits = Limits {
        body: BODY,
        ..Limits::default()
    };
    Host::within(repository, limits)
}

#[test]
fn imported_data_without_a_uid_have_that_of_their_version() {
    fn check<R: Repository>(mut host: Host<R>) {
        let uid = host.composition(EHR);
        let lines = host.export();
        let named = format!(r#""uid":{{"_type":"OBJECT_VERSION_ID","value":"{uid}"}},"#);
        let without_uid = |line: &String| {
            let (_, text) = line.split_once(r#","record":"#).expect("a record");
            let text = text.strip_suffix('}').expect("a record");
            let (head, data) = text.split_once(r#""data":{"#)?;
            let (before, after) = data.split_once(&named)?;
            Some(record(&format!(r#"{head}"data":{{{before}{after}"#)))
        };
        let changed: Vec<String> = lines
            .iter()
            .map(|line| without_uid(line).unwrap_or_else(|| line.clone()))
            .collect();
        let different = changed
            .iter()
            .zip(&lines)
            .filter(|(one, other)| one != other);
        assert_eq!(different.count(), 1);
        host.made("POST", "admin/reset", JSON, "{}");
        for expected in [201, 200] {
            let answers = host.lines("admin/import", "", &changed);
            assert!(
                answers.iter().all(|(status, _)| *status == expected),
                "{answers:?}"
            );
        }
        assert_eq!(host.export(), lines, "the uid is that of the original");
    }
    check(on_memory());
    check(on_sqlite());
}

#[test]
fn commit_of_the_longest_body_is_exported_and_imported() {
    fn check<R: Repository, S: Repository>(mut host: Host<R>, empty: Service<S>) {
        let mut composition = weight("72.50");
        let padding = BODY - composition.to_string().len();
        let name = format!("Nurse Berg{}", "g".repeat(padding));
        composition["composer"]["name"] = name.into();
        let text = composition.to_string();
        assert_eq!(text.len(), BODY);
        host.made("POST", &format!("ehr/{EHR}/composition"), JSON, &text);
        let exported = host.export();
        assert!(exported.iter().any(|line| line.len() > BODY));
        let mut other = Host(empty, Ticks::new());
        let answers = other.lines("admin/import", "", &exported);
        assert!(
            answers.iter().all(|(status, _)| *status < 300),
            "{answers:?}"
        );
        assert_eq!(other.export(), exported);
    }
    let limits = || Limits {
        body: BODY,
        ..Limits::default()
    };
    check(
        limited(Memory::new()),
        Service::new(Sqlite::in_memory().repository(), config(limits())),
    );
    check(
        limited(Sqlite::in_memory().repository()),
        Service::new(Memory::new(), config(limits())),
    );
}

#[test]
fn commit_that_grows_far_beyond_its_body_is_refused() {
    let mut host = limited(Memory::new());
    // Each member inherits the description.
    let mut audit = audit("249");
    audit["description"] = json!({ "_type": "DV_TEXT", "value": "d".repeat(50_000) });
    let body = |members: usize| {
        let members: Vec<Value> = (0..members)
            .map(|_| json!({ "data": weight("72.50") }))
            .collect();
        json!({ "audit": audit, "versions": members }).to_string()
    };
    let path = format!("ehr/{EHR}/contribution");
    let revision = host.export().len();
    let large = body(3);
    assert!(large.len() < BODY);
    let refused = host.ask("POST", &path, JSON, &large);
    assert_eq!(refused.status, 413, "{}", shown(&refused));
    assert!(shown(&refused).contains("the limit of 120000 bytes"));
    assert_eq!(host.export().len(), revision);
    assert_eq!(host.ask("POST", &path, JSON, &body(1)).status, 201);
}

#[test]
fn line_above_the_limit_of_an_import_is_named() {
    let mut host = limited(Memory::new());
    let body = format!("\n{{}}\n{}\n", "x".repeat(2 * BODY + 1_000_001));
    let request = Request::new("POST", "/rest/openehr/v1/admin/import?first=7");
    let refused = host.send(&request.with_body(LINES, body));
    assert_eq!(refused.status, 413);
    let error: Value = serde_json::from_str(&shown(&refused)).expect("an error");
    assert_eq!(error["errors"][0]["_line"], 9);
    assert_eq!(
        error["message"],
        "the line 9 is larger than the limit of 1120000 bytes"
    );
}

#[test]
fn update_is_no_earlier_than_the_version_that_it_follows() {
    fn check<R: Repository>(mut host: Host<R>) {
        let uid = host.composition(EHR);
        let lines = host.export();
        let line = lines.iter().find(|line| line.contains(&uid));
        let line = line.expect("the composition");
        let before = r#""time_committed":{"_type":"DV_DATE_TIME","value":""#;
        let time = line.split(before).nth(1).and_then(|rest| rest.get(..32));
        let time = time.expect("a time");
        // The clock of the server that exported was ahead.
        let later = DateTime::parse_from_rfc3339(time).expect("a time") + TimeDelta::hours(1);
        let later = later.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string();
        let changed: Vec<String> = lines
            .iter()
            .map(|other| match other == line {
                true => changed(line, time, &later),
                false => other.clone(),
            })
            .collect();
        host.made("POST", "admin/reset", JSON, "{}");
        let answers = host.lines("admin/import", "", &changed);
        assert!(
            answers.iter().all(|(status, _)| *status == 201),
            "{answers:?}"
        );
        let object = uid.split("::").next().unwrap_or_default();
        let root = format!("/rest/openehr/v1/ehr/{EHR}");
        let update = Request::new("PUT", &format!("{root}/composition/{object}"))
            .with_header("If-Match", &uid)
            .with_body(JSON, text("rest/weight.json"));
        assert_eq!(host.send(&update).status, 204);
        let path = format!("ehr/{EHR}/versioned_composition/{object}/version");
        let version: Value =
            serde_json::from_str(&shown(&host.ask("GET", &path, JSON, ""))).expect("a version");
        assert_eq!(version["commit_audit"]["time_committed"]["value"], later);
        assert_ne!(version["uid"]["value"], uid);
    }
    check(on_memory());
    check(on_sqlite());
}
