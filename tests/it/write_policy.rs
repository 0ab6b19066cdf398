//! The policy of writes: a write relies on cached facts, and its commit names them as preconditions.
//! Its round trips are counted. A fact that another instance changed, at any moment before the
//! commit, leads to the same answer as if it had been read.

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use aqlite::service::{Auth, Config, Environment, Request, Response, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::sql::{LayoutCatalog, Row, Sql, SqlError, SqlRepository, Statement};
use std::cell::RefCell;
use std::rc::Rc;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const TEMPLATE: &str = include_str!("../cases/template/small.opt");
const WEIGHT: &str = include_str!("../cases/rest/weight.json");
const DIRECTORY: &str = include_str!("../cases/rest/directory.json");
const PERSON: &str = include_str!("../cases/rest/person.json");
const STATUS: &str = include_str!("../cases/rest/status.json");
const AUDIT: &str = include_str!("../cases/rest/audit.json");

/// A change by another instance.
type Change = Box<dyn FnOnce()>;

/// A database in which another instance makes a change before the n-th batch from now.
#[derive(Clone)]
struct Interrupted {
    database: Sqlite,
    change: Rc<RefCell<Option<(usize, Change)>>>,
}

impl Interrupted {
    fn over(database: &Sqlite) -> Interrupted {
        Interrupted {
            database: database.clone(),
            change: Rc::default(),
        }
    }
}

impl Sql for Interrupted {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, SqlError> {
        match self.change.take() {
            Some((0, change)) => change(),
            left => drop(self.change.replace(left.map(|(n, change)| (n - 1, change)))),
        }
        self.database.batch(statements).await
    }
}

/// An instance of the service with caches of its own.
struct Instance<S: Sql> {
    service: Service<SqlRepository<S>>,
    ticks: Ticks,
}

impl<S: Sql> Instance<S> {
    fn over(sql: S) -> Instance<S> {
        let config = Config {
            auth: Auth::Open,
            admin: true,
            log: false,
            system_id: String::from("test.example"),
            ..Config::default()
        };
        let repository = SqlRepository::new(sql, Rc::new(LayoutCatalog::default()));
        Instance {
            service: Service::new(repository, config),
            ticks: Ticks::new(),
        }
    }

    /// Skips identifiers that another instance uses.
    fn skipping(mut self, identifiers: usize) -> Instance<S> {
        (0..identifiers).for_each(|_| drop(self.ticks.new_uuid()));
        self
    }

    fn send(&mut self, request: &Request) -> Response {
        now_or_never(self.service.handle(request, &mut self.ticks))
            .expect("a synchronous repository")
    }

    /// Sends a request that succeeds. Returns the entity tag of the answer.
    fn done(&mut self, request: &Request) -> String {
        let answer = self.send(request);
        assert!(
            answer.status < 300,
            "{} {}: {answer:?}",
            request.method,
            request.path
        );
        let tag = answer.header("ETag").unwrap_or_default();
        tag.trim_matches('"').to_owned()
    }

    /// Stores the template and an EHR with a composition. Returns its version uid.
    fn filled(&mut self) -> String {
        self.done(
            &Request::new("POST", "/rest/openehr/v1/definition/template/adl1.4")
                .with_body("application/xml", TEMPLATE),
        );
        self.done(&json("PUT", "", ""));
        self.done(&json("POST", "/composition", weight("60")))
    }

    /// Creates, updates and deletes a composition, so that the instance knows template and layouts.
    fn warmed(mut self) -> Instance<S> {
        let made = self.done(&json("POST", "/composition", weight("60")));
        let second = self.done(&update(&made, "61"));
        self.done(&contribution(&second));
        let third = second.replace("::2", "::3");
        self.done(&json("DELETE", &format!("/composition/{third}"), ""));
        self
    }
}

/// Returns a request below the EHR.
fn json(method: &str, path: &str, body: impl Into<Vec<u8>>) -> Request {
    Request::new(method, &format!("/rest/openehr/v1/ehr/{EHR}{path}"))
        .with_body("application/json", body)
}

fn weight(kilograms: &str) -> String {
    WEIGHT.replace("72.50", kilograms)
}

fn object(version_uid: &str) -> &str {
    version_uid.split("::").next().unwrap_or_default()
}

/// Returns an update of the composition with this version.
fn update(latest: &str, kilograms: &str) -> Request {
    let path = format!("/composition/{}", object(latest));
    json("PUT", &path, weight(kilograms)).with_header("If-Match", latest)
}

/// Returns a contribution that creates a composition, and updates the one with this version.
fn contribution(latest: &str) -> Request {
    let modification = AUDIT
        .replace("249", "251")
        .replace("creation", "modification");
    let (composition, preceding) = (
        weight("65"),
        format!(r#"{{"_type":"OBJECT_VERSION_ID","value":"{latest}"}}"#),
    );
    let body = format!(
        r#"{{"versions":[{{"_type":"ORIGINAL_VERSION","commit_audit":{AUDIT},"data":{composition}}},
        {{"_type":"ORIGINAL_VERSION","preceding_version_uid":{preceding},"commit_audit":{modification},"data":{composition}}}],"audit":{AUDIT}}}"#
    );
    json("POST", "/contribution", body)
}

#[test]
fn warm_instance_writes_in_one_round_trip() {
    let database = Sqlite::in_memory();
    let mut host = Instance::over(database.clone());
    let first = host.filled();
    // Layouts are written once, before the first commit that needs them.
    let changed = DIRECTORY.replace("episodes", "admissions");
    let warm = host.done(&json("POST", "/directory", DIRECTORY));
    let put = json("PUT", "/directory", &*changed).with_header("If-Match", &warm);
    let warm = host.done(&put);
    host.done(&json("DELETE", "/directory", "").with_header("If-Match", &warm));
    let status = host.done(&json("GET", "/ehr_status", ""));
    host.done(&json("PUT", "/ehr_status", STATUS).with_header("If-Match", &status));
    let second = host.done(&update(&first, "61"));
    host.done(&contribution(&second));
    let third = second.replace("::2", "::3");
    host.done(&json("DELETE", &format!("/composition/{third}"), ""));
    let mut counted = |title: &str, expected: usize, request: Request| {
        database.trips();
        let tag = host.done(&request);
        assert_eq!(database.trips(), expected, "{title}");
        tag
    };
    let made = counted("creation", 1, json("POST", "/composition", weight("60")));
    let second = counted("update", 1, update(&made, "61"));
    let third = counted("update of an update", 1, update(&second, "62"));
    counted("contribution", 1, contribution(&third));
    let fourth = third.replace("::3", "::4");
    let path = format!("/composition/{fourth}");
    counted("deletion", 1, json("DELETE", &path, ""));
    let made = counted("new directory", 1, json("POST", "/directory", DIRECTORY));
    let put = json("PUT", "/directory", changed).with_header("If-Match", &made);
    let second = counted("update of the directory", 1, put);
    let delete = json("DELETE", "/directory", "").with_header("If-Match", &second);
    counted("deletion of the directory", 1, delete);
    let status = counted("read of the EHR_STATUS", 2, json("GET", "/ehr_status", ""));
    let put = json("PUT", "/ehr_status", STATUS).with_header("If-Match", &status);
    counted("update of the EHR_STATUS", 1, put);
}

#[test]
fn warm_instance_writes_a_party_in_one_round_trip() {
    let request = |method: &str, path: &str, latest: &str| {
        let path = format!("/rest/openehr/v1/demographic/{path}");
        let request = Request::new(method, &path).with_header("If-Match", latest);
        request.with_body("application/json", PERSON)
    };
    let database = Sqlite::in_memory();
    let mut host = Instance::over(database.clone());
    let warm = host.done(&request("POST", "person", ""));
    let warm = host.done(&request("PUT", &format!("person/{}", object(&warm)), &warm));
    host.done(&request("DELETE", &format!("person/{warm}"), ""));
    let made = host.done(&request("POST", "person", ""));
    // A known version of another class is not found.
    let agent = request("PUT", &format!("agent/{}", object(&made)), &made);
    let agent = agent.with_body("application/json", PERSON.replace("PERSON", "AGENT"));
    assert_eq!(host.send(&agent).status, 404);
    database.trips();
    let second = host.done(&request("PUT", &format!("person/{}", object(&made)), &made));
    assert_eq!(database.trips(), 1);
    host.done(&request("DELETE", &format!("person/{second}"), ""));
    assert_eq!(database.trips(), 1);
}

#[test]
fn update_of_an_unknown_version_reads_it_and_nothing_else() {
    let database = Sqlite::in_memory();
    let mut host = Instance::over(database.clone());
    let first = host.filled();
    host = host.warmed();
    // The other instance does not know the version.
    let mut other = Instance::over(database.clone()).skipping(1_000).warmed();
    database.trips();
    let second = other.done(&update(&first, "61"));
    assert_eq!(database.trips(), 2);
    // A read of the version is as good as its commit.
    host.done(&json("GET", &format!("/composition/{second}"), ""));
    database.trips();
    host.done(&update(&second, "62"));
    assert_eq!(database.trips(), 1);
}

#[test]
fn of_two_updates_of_one_version_one_is_rejected() {
    let database = Sqlite::in_memory();
    let mut one = Instance::over(database.clone());
    let first = one.filled();
    // Both instances know the version.
    let mut two = Instance::over(database.clone()).skipping(1_000).warmed();
    two.done(&json("GET", &format!("/composition/{first}"), ""));
    let second = one.done(&update(&first, "61"));
    let before = database.records();
    let refused = two.send(&update(&first, "62"));
    assert_eq!(refused.status, 412, "{refused:?}");
    assert_eq!(refused.header("ETag"), Some(&*format!("\"{second}\"")));
    assert!(
        database.records() == before,
        "a rejected update writes nothing"
    );
}

/// A change by another instance, and the statuses of the writes that it interrupts.
struct Interruption {
    title: &'static str,
    change: fn(&Sqlite, &str),
    update: u16,
    deletion: u16,
    contribution: u16,
}

/// A write that an interruption may affect.
struct Write {
    title: &'static str,
    request: fn(&str) -> Request,
    status: fn(&Interruption) -> u16,
    /// The number of batches if the instance knows the version, and if not.
    batches: [usize; 2],
}

const WRITES: [Write; 3] = [
    Write {
        title: "update",
        request: |latest| update(latest, "61"),
        status: |interruption| interruption.update,
        batches: [1, 2],
    },
    Write {
        title: "deletion",
        request: |latest| json("DELETE", &format!("/composition/{latest}"), ""),
        status: |interruption| interruption.deletion,
        batches: [1, 2],
    },
    Write {
        title: "contribution",
        request: contribution,
        status: |interruption| interruption.contribution,
        batches: [1, 1],
    },
];

fn other(database: &Sqlite) -> Instance<Sqlite> {
    Instance::over(database.clone()).skipping(10_000)
}

fn lock(database: &Sqlite) {
    let mut other = other(database);
    let status = other.done(&json("GET", "/ehr_status", ""));
    let locked = STATUS.replace(r#""is_modifiable": true"#, r#""is_modifiable": false"#);
    other.done(&json("PUT", "/ehr_status", locked).with_header("If-Match", &status));
}

fn replace_template(database: &Sqlite) {
    let lighter = TEMPLATE.replacen(
        "<lower>0</lower><upper>1000</upper>",
        "<lower>-10</lower><upper>60</upper>",
        1,
    );
    let upload = Request::new("POST", "/v1/definition/template?type=opt14&version=9.0.0");
    other(database).done(&upload.with_body("application/xml", lighter));
}

const INTERRUPTIONS: [Interruption; 6] = [
    Interruption {
        title: "the composition is updated",
        change: |database, latest| drop(other(database).done(&update(latest, "59"))),
        update: 412,
        deletion: 409,
        contribution: 409,
    },
    Interruption {
        title: "the composition is deleted",
        change: |database, latest| {
            let path = format!("/composition/{latest}");
            drop(other(database).done(&json("DELETE", &path, "")));
        },
        update: 412,
        deletion: 400,
        contribution: 409,
    },
    Interruption {
        title: "the EHR is made unmodifiable",
        change: |database, _| lock(database),
        update: 409,
        deletion: 409,
        contribution: 409,
    },
    Interruption {
        title: "the EHR is removed",
        change: |database, _| {
            let path = format!("/rest/openehr/v1/admin/ehr/{EHR}");
            drop(other(database).done(&Request::new("DELETE", &path)));
        },
        update: 404,
        deletion: 404,
        contribution: 404,
    },
    Interruption {
        title: "the template is replaced by a stricter one",
        change: |database, _| replace_template(database),
        update: 422,
        deletion: 204,
        contribution: 400,
    },
    Interruption {
        title: "another composition is committed",
        change: |database, _| {
            drop(other(database).done(&json("POST", "/composition", weight("59"))))
        },
        update: 204,
        deletion: 204,
        contribution: 201,
    },
];

/// Interrupts a write before its n-th batch. `knows` is true if its instance knows the version.
/// Returns whether the write had that many batches.
fn interrupted(write: &Write, interruption: &Interruption, n: usize, knows: bool) -> bool {
    let database = Sqlite::in_memory();
    let first = Instance::over(database.clone()).filled();
    let sql = Interrupted::over(&database);
    let mut host = Instance::over(sql.clone()).skipping(1_000).warmed();
    if knows {
        host.done(&json("GET", &format!("/composition/{first}"), ""));
    }
    let (changed, latest) = (database.clone(), first.clone());
    let change = interruption.change;
    let after = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&after);
    sql.change.replace(Some((
        n,
        Box::new(move || {
            change(&changed, &latest);
            kept.replace(changed.records());
        }),
    )));
    let answer = host.send(&(write.request)(&first));
    let was_interrupted = sql.change.take().is_none();
    let (title, cause) = (write.title, interruption.title);
    let about = format!("{title}: {cause} before batch {n}: {answer:?}");
    if was_interrupted {
        assert_eq!(answer.status, (write.status)(interruption), "{about}");
    }
    // An error about one object that names its latest version has its address.
    if title != "contribution" {
        let has_address = answer.header("Location").is_some();
        assert_eq!(answer.header("ETag").is_some(), has_address, "{about}");
    }
    if answer.status >= 300 {
        assert!(database.records() == *after.borrow(), "{about}");
    }
    was_interrupted
}

#[test]
fn fact_that_changes_before_the_commit_is_noticed() {
    for write in &WRITES {
        for interruption in &INTERRUPTIONS {
            let batches = [true, false].map(|knows| {
                let is_interrupted = |n: &usize| interrupted(write, interruption, *n, knows);
                (0..).take_while(is_interrupted).count()
            });
            assert_eq!(
                batches, write.batches,
                "{}: {}",
                write.title, interruption.title
            );
        }
    }
}

#[test]
fn identifiers_do_not_depend_on_the_number_of_attempts() {
    let drawn = |outdated: bool| {
        let database = Sqlite::in_memory();
        let mut host = Instance::over(database.clone());
        let first = host.filled();
        if outdated {
            let upload = Request::new("POST", "/v1/definition/template?type=opt14&version=9.0.0");
            other(&database).done(&upload.with_body("application/xml", TEMPLATE));
        }
        let made = host.done(&json("POST", "/composition", weight("61")));
        host.done(&update(&first, "62"));
        let contributions = database.texts("SELECT uid FROM contribution ORDER BY id");
        (made, contributions, host.ticks.new_uuid())
    };
    assert_eq!(drawn(true), drawn(false));
}

#[test]
fn directory_is_checked_by_a_template_that_another_instance_replaced() {
    const STAYS: &str = include_str!("../cases/rest/folder.opt");
    let database = Sqlite::in_memory();
    let mut host = Instance::over(database.clone());
    host.done(&json("PUT", "", ""));
    let upload = |version: &str, text: String| {
        let path = format!("/v1/definition/template?type=opt14&version={version}");
        Request::new("POST", &path).with_body("application/xml", text)
    };
    host.done(&upload("1.0.0", STAYS.to_owned()));
    let folder = r#"{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.stays.v1","name":{"_type":"DV_TEXT","value":"Stays"},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-FOLDER.stays.v1"},"template_id":{"_type":"TEMPLATE_ID","value":"stays.v1"},"rm_version":"1.1.0"}}"#;
    let first = host.done(&json("POST", "/directory", folder));
    let wards = STAYS.replace("FOLDER.stays.v1", "FOLDER.wards.v1");
    other(&database).done(&upload("2.0.0", wards));
    let update = json("PUT", "/directory", folder).with_header("If-Match", &first);
    assert_eq!(host.send(&update).status, 400);
}

#[test]
fn update_of_a_directory_that_is_not_the_newest_one_is_rejected() {
    let database = Sqlite::in_memory();
    let mut host = Instance::over(database.clone());
    host.filled();
    let old = host.done(&json("POST", "/directory", DIRECTORY));
    let deletion = json("DELETE", "/directory", "").with_header("If-Match", &old);
    host.done(&deletion);
    let new = host.done(&json("POST", "/directory", DIRECTORY));
    for (latest, status) in [(&old, 412), (&new, 204)] {
        let put = json("PUT", "/directory", DIRECTORY).with_header("If-Match", latest);
        assert_eq!(host.send(&put).status, status, "{latest}");
    }
}

#[test]
fn tags_of_a_locked_status_are_refused() {
    let database = Sqlite::in_memory();
    let mut host = Instance::over(database.clone());
    host.filled();
    lock(&database);
    let status = host.done(&json("GET", "/ehr_status", ""));
    let locked = STATUS.replace(r#""is_modifiable": true"#, r#""is_modifiable": false"#);
    let tagged = json("PUT", "/ehr_status", locked)
        .with_header("If-Match", &status)
        .with_header("openehr-item-tag", r#"key="ward""#);
    let before = database.records();
    assert_eq!(host.send(&tagged).status, 409);
    assert!(database.records() == before);
    let opened = json("PUT", "/ehr_status", STATUS)
        .with_header("If-Match", &status)
        .with_header("openehr-item-tag", r#"key="ward""#);
    assert_eq!(host.send(&opened).status, 204);
}

/// Returns an upload of a definition with a header, or without one if its name is empty.
fn upload(path: &str, body: &str, (name, value): (&str, &str)) -> Request {
    let request = Request::new("PUT", &format!("/rest/openehr/v1/definition/{path}"));
    match name {
        "" => request.with_body("application/json", body),
        name => request
            .with_header(name, value)
            .with_body("application/json", body),
    }
}

/// Two requests store a definition under one name. The second one gets the answer that it would
/// have got after the first one.
#[test]
fn definition_that_is_stored_meanwhile_breaks_preconditions_only() {
    const VALUE_SET: &str = "valueset/u%3Aa";
    const CODES: [&str; 2] = [
        r#"{"resourceType":"ValueSet","url":"u:a","expansion":{"contains":[{"code":"a"}]}}"#,
        r#"{"resourceType":"ValueSet","url":"u:a","expansion":{"contains":[{"code":"b"}]}}"#,
    ];
    const QUERY: [&str; 2] = [
        r#"{"q":"SELECT e/ehr_id/value FROM EHR e"}"#,
        r#"{"q":"SELECT count(*) FROM EHR e"}"#,
    ];
    const NONE: (&str, &str) = ("", "");
    const IS_NEW: (&str, &str) = ("If-None-Match", "*");
    let cases = [
        ("new value set", VALUE_SET, CODES, IS_NEW, 412),
        ("value set", VALUE_SET, CODES, NONE, 204),
        ("new query", "query/q/1.0.0", QUERY, IS_NEW, 412),
        ("query", "query/q/1.0.0", QUERY, NONE, 409),
        ("next version of a query", "query/q", QUERY, NONE, 200),
    ];
    for (title, path, [first, second], header, expected) in cases {
        let mut interrupted = 0;
        // Before each batch of the request in turn, also before its last one, which writes.
        for batch in 0..6 {
            let database = Sqlite::in_memory();
            let interrupting = Interrupted::over(&database);
            let mut host = Instance::over(interrupting.clone());
            // The first request only lets the instance read what it keeps.
            host.done(&Request::new("GET", "/rest/openehr/v1/definition/query"));
            let store = move || drop(other(&database).done(&upload(path, first, NONE)));
            let change: Change = Box::new(store);
            drop(interrupting.change.replace(Some((batch, change))));
            let answer = host.send(&upload(path, second, header));
            if interrupting.change.take().is_none() {
                interrupted += 1;
                assert_eq!(answer.status, expected, "{title}, {batch}: {answer:?}");
                assert_eq!(answer.header("ETag").is_some(), expected != 409, "{title}");
            }
        }
        assert!(interrupted > 1, "{title}: {interrupted}");
    }
}
