//! Contributions with many versions: the statements that they take, the pauses of their work, their
//! limit, and chains of versions of one object.

use crate::rest::Counting;
use crate::sqlite::Sqlite;
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;
use serde_json::Value;
use std::fmt::Write;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const SYSTEM: &str = "test.example";
const PERSON: &str = include_str!("../cases/rest/person.json");
const DIRECTORY: &str = include_str!("../cases/rest/directory.json");
const AUDIT: &str = include_str!("../cases/rest/audit.json");

/// The number of versions in a large contribution: the limit.
const MANY: usize = 1_000;

struct Host<R: Repository> {
    service: Service<R>,
    environment: Counting,
}

impl<R: Repository> Host<R> {
    fn over(repository: R) -> Host<R> {
        let config = Config {
            auth: Auth::Open,
            log: false,
            system_id: SYSTEM.to_owned(),
            ..Config::default()
        };
        Host {
            service: Service::new(repository, config),
            environment: Counting::new(false),
        }
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Response {
        let request = Request::new(method, &format!("/rest/openehr/v1/{path}"))
            .with_body("application/json", body);
        now_or_never(self.service.handle(&request, &mut self.environment))
            .expect("a synchronous repository")
    }

    /// Sends a contribution. Returns its answer.
    fn contribute(&mut self, owner: &str, versions: &[String]) -> Response {
        let body = format!(r#"{{"versions":[{}],"audit":{AUDIT}}}"#, versions.join(","));
        self.send("POST", &format!("{owner}contribution"), &body)
    }

    fn status(&mut self, owner: &str, versions: &[String]) -> u16 {
        self.contribute(owner, versions).status
    }

    fn with_ehr(mut self) -> Host<R> {
        let made = self.send("PUT", &format!("ehr/{EHR}"), "");
        assert_eq!(made.status, 201, "{made:?}");
        self
    }
}

fn object(number: usize) -> String {
    format!("11111111-1111-4111-8111-{number:012x}")
}

/// The change type of a version.
#[derive(Clone, Copy)]
enum Kind {
    Creation,
    Modification,
    Deletion,
}

/// Returns a VERSION of an object: the one after version `before`.
fn version(object: &str, before: usize, kind: Kind, data: &str) -> String {
    let mut version = String::from(r#"{"_type":"ORIGINAL_VERSION","#);
    let (code, rubric) = match kind {
        Kind::Creation => ("249", "creation"),
        Kind::Modification => ("251", "modification"),
        Kind::Deletion => ("523", "deleted"),
    };
    let audit = AUDIT.replace("249", code).replace("creation", rubric);
    if before == 0 {
        let uid =
            format!(r#""uid":{{"_type":"OBJECT_VERSION_ID","value":"{object}::{SYSTEM}::1"}},"#);
        version += &uid;
    } else {
        let _ = write!(
            version,
            r#""preceding_version_uid":{{"_type":"OBJECT_VERSION_ID","value":"{object}::{SYSTEM}::{before}"}},"#
        );
    }
    if !matches!(kind, Kind::Deletion) {
        let _ = write!(version, r#""data":{data},"#);
    }
    let _ = write!(version, r#""commit_audit":{audit}}}"#);
    version
}

/// Returns a chain of versions of one object.
fn chain(object: &str, length: usize, data: &str) -> Vec<String> {
    let kind = |before| match before {
        0 => Kind::Creation,
        _ => Kind::Modification,
    };
    (0..length)
        .map(|before| version(object, before, kind(before), data))
        .collect()
}

/// The versions of many parties, all with the same predecessor number.
fn parties(before: usize, kind: Kind) -> Vec<String> {
    (0..MANY)
        .map(|number| version(&object(number), before, kind, PERSON))
        .collect()
}

#[test]
fn contribution_of_many_versions_takes_few_statements_and_pauses() {
    let database = Sqlite::in_memory();
    let mut host = Host::over(database.repository()).with_ehr();
    for (title, owner, versions, trips, statements) in [
        (
            "creation",
            "demographic/",
            parties(0, Kind::Creation),
            30,
            40,
        ),
        (
            "change",
            "demographic/",
            parties(1, Kind::Modification),
            30,
            40,
        ),
        (
            "deletion",
            "demographic/",
            parties(2, Kind::Deletion),
            30,
            40,
        ),
        (
            "chain of a directory",
            &*format!("ehr/{EHR}/"),
            chain(&object(MANY), MANY, DIRECTORY),
            10,
            20,
        ),
        (
            "chain of a party",
            "demographic/",
            chain(&object(MANY + 1), MANY, PERSON),
            10,
            20,
        ),
    ] {
        database.trips();
        database.executed();
        host.environment.pauses = 0;
        let answer = host.contribute(owner, &versions);
        assert_eq!(answer.status, 201, "{title}: {answer:?}");
        let (made, executed) = (database.trips(), database.executed());
        assert!(made <= trips, "{title}: {made} round trips");
        assert!(executed <= statements, "{title}: {executed} statements");
        // Each pause is due after 100,000 bytes of work, which counts 2,000 for each version.
        assert!(host.environment.pauses >= 3 * MANY / 60, "{title}");
    }
    // The table of the versions under its names in the statements.
    for name in ["version", "v", "n", "l", "p", "o"] {
        assert_eq!(database.scans_of(name), [""; 0]);
    }
}

#[test]
fn contribution_with_too_many_versions_is_rejected() {
    fn check<R: Repository>(repository: R) {
        let mut host = Host::over(repository).with_ehr();
        let owner = format!("ehr/{EHR}/");
        let answer = host.contribute(&owner, &chain(&object(0), MANY + 1, DIRECTORY));
        assert_eq!(answer.status, 413, "{answer:?}");
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(body.contains("more versions than the 1000"), "{body}");
        let found = host.send("GET", &format!("ehr/{EHR}/directory"), "");
        assert_eq!(found.status, 404);
    }
    check(Memory::new());
    check(Sqlite::in_memory().repository());
}

/// A sequence of versions in one contribution, and its status.
struct Sequence {
    title: &'static str,
    versions: Vec<String>,
    status: u16,
}

fn sequences() -> Vec<Sequence> {
    use Kind::{Creation, Deletion, Modification};
    let person = |number, before, kind| version(&object(number), before, kind, PERSON);
    let agent = PERSON.replace("PERSON", "AGENT");
    let sequence = |title, status, versions| Sequence {
        title,
        versions,
        status,
    };
    vec![
        sequence(
            "creation and deletion",
            201,
            vec![person(0, 0, Creation), person(0, 1, Deletion)],
        ),
        sequence(
            "creation, deletion and restoration",
            201,
            vec![
                person(1, 0, Creation),
                person(1, 1, Deletion),
                person(1, 2, Modification),
            ],
        ),
        sequence(
            "two chains side by side",
            201,
            vec![
                person(2, 0, Creation),
                person(3, 0, Creation),
                person(2, 1, Modification),
                person(3, 1, Deletion),
                person(2, 2, Deletion),
            ],
        ),
        sequence(
            "two deletions",
            409,
            vec![
                person(4, 0, Creation),
                person(4, 1, Deletion),
                person(4, 2, Deletion),
            ],
        ),
        sequence(
            "a deletion before the creation",
            409,
            vec![person(5, 1, Deletion), person(5, 0, Creation)],
        ),
        sequence(
            "two versions that follow the same one",
            409,
            vec![
                person(6, 0, Creation),
                person(6, 1, Modification),
                person(6, 1, Modification),
            ],
        ),
        sequence(
            "two creations of one object",
            409,
            vec![person(7, 0, Creation), person(7, 0, Creation)],
        ),
        sequence(
            "a version of another class",
            400,
            vec![
                person(8, 0, Creation),
                version(&object(8), 1, Modification, &agent),
            ],
        ),
        sequence(
            "a version of another class behind a deletion",
            400,
            vec![
                person(9, 0, Creation),
                person(9, 1, Deletion),
                version(&object(9), 2, Modification, &agent),
            ],
        ),
    ]
}

#[test]
fn versions_of_one_contribution_follow_each_other() {
    fn check<R: Repository>(repository: R) -> Vec<(u16, u16)> {
        let mut host = Host::over(repository);
        let mut seen = Vec::new();
        for (number, sequence) in sequences().iter().enumerate() {
            let answer = host.contribute("demographic/", &sequence.versions);
            assert_eq!(
                answer.status, sequence.status,
                "{}: {answer:?}",
                sequence.title
            );
            let found = host.send("GET", &format!("demographic/person/{}", object(number)), "");
            seen.push((answer.status, found.status));
            // Split into contributions of one version each, the sequence ends alike.
            let mut alone = Host::over(Memory::new());
            let refused = sequence
                .versions
                .iter()
                .map(|version| alone.status("demographic/", std::slice::from_ref(version)))
                .find(|status| *status != 201);
            assert_eq!(
                refused.unwrap_or(201),
                sequence.status,
                "{}",
                sequence.title
            );
        }
        seen
    }
    let seen = check(Memory::new());
    assert_eq!(seen, check(Sqlite::in_memory().repository()));
}

#[test]
fn directories_of_one_contribution_replace_each_other_in_order() {
    use Kind::{Creation, Deletion, Modification};
    fn check<R: Repository>(repository: R) {
        let mut host = Host::over(repository).with_ehr();
        let owner = format!("ehr/{EHR}/");
        let folder = |number, before, kind| version(&object(number), before, kind, DIRECTORY);
        for (title, status, versions) in [
            (
                "two directories",
                409,
                vec![folder(0, 0, Creation), folder(1, 0, Creation)],
            ),
            (
                "a directory that another replaces",
                201,
                vec![
                    folder(0, 0, Creation),
                    folder(0, 1, Modification),
                    folder(0, 2, Deletion),
                    folder(1, 0, Creation),
                ],
            ),
            (
                "a new directory before the old one is deleted",
                409,
                vec![folder(2, 0, Creation), folder(1, 1, Deletion)],
            ),
            (
                "a new directory behind the deletion of a stored one",
                201,
                vec![folder(1, 1, Deletion), folder(2, 0, Creation)],
            ),
        ] {
            let answer = host.contribute(&owner, &versions);
            assert_eq!(answer.status, status, "{title}: {answer:?}");
        }
        let found = host.send("GET", &format!("{owner}directory"), "");
        let found: Value = serde_json::from_slice(&found.body).expect("JSON");
        let uid = found["uid"]["value"].as_str().unwrap_or_default();
        assert_eq!(uid, format!("{}::{SYSTEM}::1", object(2)));
    }
    check(Memory::new());
    check(Sqlite::in_memory().repository());
}
