//! The cost of the service for its database: round trips, rows and bytes of a commit, round trips
//! of a read. The entry of the access log is part of a commit. A read writes it in one more round
//! trip.

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use crate::upgrade;
use aqlite::samples::{self, CompositionSample, Generator};
use aqlite::service::{Auth, Config, Environment, Request, Response, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::sql::SqlRepository;

const EHR: &str = "11111111-1111-4111-8111-111111111111";

/// A service over a database, its clock, and compositions to commit.
struct Host {
    database: Sqlite,
    service: Service<SqlRepository<Sqlite>>,
    ticks: Ticks,
}

impl Host {
    fn new() -> Host {
        let database = Sqlite::in_memory();
        let config = Config {
            auth: Auth::Open,
            ..Config::default()
        };
        let mut host = Host {
            service: Service::new(database.repository(), config),
            database,
            ticks: Ticks::new(),
        };
        for template in samples::templates() {
            let upload = Request::new("POST", "/rest/openehr/v1/definition/template/adl1.4");
            assert_eq!(
                host.send(upload.with_body("application/xml", template.text))
                    .status,
                201
            );
        }
        assert_eq!(
            host.send(Request::new("PUT", &format!("/rest/openehr/v1/ehr/{EHR}")))
                .status,
            201
        );
        host
    }

    fn send(&mut self, request: Request) -> Response {
        now_or_never(self.service.handle(&request, &mut self.ticks))
            .expect("a synchronous repository")
    }

    /// Commits a composition. Returns its version uid.
    fn commit(&mut self, sample: &CompositionSample) -> String {
        let request = Request::new("POST", &format!("/rest/openehr/v1/ehr/{EHR}/composition"));
        let answer = self.send(request.with_body("application/json", &*sample.json));
        assert_eq!(
            answer.status,
            201,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        answer
            .header("ETag")
            .expect("a tag")
            .trim_matches('"')
            .to_owned()
    }
}

#[test]
fn a_warm_service_asks_its_database_seldom() {
    let mut host = Host::new();
    let sample = Generator::new(1, 10, 100).composition(0);
    host.commit(&sample);
    host.database.trips();
    let uid = host.commit(&sample);
    assert_eq!(host.database.trips(), 1, "a commit: one batch");
    let config = Config {
        log: false,
        ..host.service.config().clone()
    };
    host.service = Service::new(host.database.repository(), config.clone());
    let path = format!("/rest/openehr/v1/ehr/{EHR}/composition/{uid}");
    assert_eq!(host.send(Request::new("GET", &path)).status, 200);
    assert_eq!(
        host.database.trips(),
        2,
        "a composition on a new instance: its shapes too"
    );
    assert_eq!(host.send(Request::new("GET", &path)).status, 200);
    assert_eq!(host.database.trips(), 1, "a composition");
    let query = format!(
        "SELECT c/context/start_time/value FROM EHR e[ehr_id/value='{EHR}'] CONTAINS COMPOSITION c"
    );
    let ask = |host: &mut Host| {
        let body = serde_json::json!({ "q": query }).to_string();
        assert_eq!(
            host.send(
                Request::new("POST", "/rest/openehr/v1/query/aql")
                    .with_body("application/json", body)
            )
            .status,
            200
        );
        host.database.trips()
    };
    ask(&mut host);
    assert_eq!(ask(&mut host), 1, "a query of one EHR");
    host.service = Service::new(host.database.repository(), config);
    assert_eq!(
        ask(&mut host),
        2,
        "the same on a new instance, which reads the shapes too"
    );
}

#[test]
fn a_guide_on_many_ehrs_asks_seldom_whether_queries_find_them_or_not() {
    let mut host = Host::new();
    let guide = samples::guides().into_iter().next().expect("a guide");
    assert_eq!(
        host.send(
            Request::new("POST", "/v1/definition/gdl").with_body("application/json", guide.text)
        )
        .status,
        201
    );
    let ids: Vec<String> = (0..40)
        .map(|i| format!("22222222-2222-4222-8222-2222222222{i:02}"))
        .collect();
    for (i, id) in ids.iter().enumerate() {
        let status = format!(
            r#"{{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1","name":{{"value":"Status"}},"subject":{{"_type":"PARTY_SELF"}},"is_queryable":{},"is_modifiable":true}}"#,
            i % 2 == 0
        );
        let put = Request::new("PUT", &format!("/rest/openehr/v1/ehr/{id}"));
        assert_eq!(
            host.send(put.with_body("application/json", status)).status,
            201
        );
    }
    let config = Config {
        log: false,
        ..host.service.config().clone()
    };
    host.service = Service::new(host.database.repository(), config);
    host.database.trips();
    let body = serde_json::json!({ "guide_id": guide.id, "ehr_ids": ids }).to_string();
    let answer =
        host.send(Request::new("POST", "/v1/gdl/query").with_body("application/json", body));
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    let trips = host.database.trips();
    assert!(trips <= 8, "{trips} round trips");
}

#[test]
fn changes_of_another_instance_are_seen() {
    let mut host = Host::new();
    let sample = Generator::new(1, 10, 100).composition(0);
    let first = host.commit(&sample);
    let mut other = Host {
        service: Service::new(host.database.repository(), host.service.config().clone()),
        database: host.database.clone(),
        ticks: Ticks::new(),
    };
    // Uids that the first service does not use.
    (0..1_000).for_each(|_| drop(other.ticks.new_uuid()));
    let path = format!("/rest/openehr/v1/ehr/{EHR}/ehr_status");
    let mut set_modifiable = |flag: bool| {
        let status = other.send(Request::new("GET", &path));
        let body = String::from_utf8_lossy(&status.body).replace(
            &format!("\"is_modifiable\":{}", !flag),
            &format!("\"is_modifiable\":{flag}"),
        );
        let put = Request::new("PUT", &path)
            .with_header("If-Match", status.header("ETag").expect("a tag"));
        assert!(other.send(put.with_body("application/json", body)).status < 300);
    };
    set_modifiable(false);
    let request = || {
        Request::new("POST", &format!("/rest/openehr/v1/ehr/{EHR}/composition"))
            .with_body("application/json", &*sample.json)
    };
    assert_eq!(host.send(request()).status, 409);
    set_modifiable(true);
    assert_ne!(host.commit(&sample), first);
    let unknown = EHR.replace('1', "3");
    let foreign = Request::new(
        "POST",
        &format!("/rest/openehr/v1/ehr/{unknown}/composition"),
    );
    assert_eq!(
        host.send(foreign.with_body("application/json", &*sample.json))
            .status,
        404
    );
}

#[test]
fn a_template_that_is_imported_anew_is_another_one_for_every_instance() {
    let database = Sqlite::in_memory();
    let (mut one, mut two) = (
        upgrade::Host::over(&database),
        upgrade::Host::over(&database),
    );
    (0..1_000).for_each(|_| drop(two.new_uuid()));
    let (json, weight, template) = (
        "application/json",
        upgrade::text("rest/weight.json"),
        upgrade::text("template/small.opt"),
    );
    one.made(
        "POST",
        "definition/template/adl1.4",
        "application/xml",
        &template,
        "",
    );
    one.made("PUT", &format!("ehr/{EHR}"), json, "", "");
    let path = format!("ehr/{EHR}/composition");
    // Both instances have cached the compiled template.
    one.made("POST", &path, json, &weight, "");
    two.made("POST", &path, json, &weight, "");
    let exported = one.send(Request::new("GET", "/v1/admin/export")).body;
    let exported = String::from_utf8(exported).expect("text");
    let record = exported
        .lines()
        .find(|line| line.contains(r#""definition":"template""#))
        .and_then(|line| line.split_once(r#""record":"#))
        .expect("a record")
        .1;
    assert!(template.contains(">kg<"));
    let other = record
        .strip_suffix('}')
        .expect("an object")
        .replace(">kg<", ">lb<");
    let line = format!(
        r#"{{"digest":"{}","record":{other}}}"#,
        aqlite::document::digest_of_text(&other)
    );
    assert_eq!(
        one.send(Request::new("POST", "/v1/admin/reset")).status,
        204
    );
    let imported =
        one.send(Request::new("POST", "/v1/admin/import").with_body("application/x-ndjson", line));
    assert!(
        String::from_utf8_lossy(&imported.body).contains(r#""status":201"#),
        "{imported:?}"
    );
    one.made("PUT", &format!("ehr/{EHR}"), json, "", "");
    for host in [&mut two, &mut one] {
        let bulk = format!(
            r#"{{"ehr_id":"{EHR}","composition":{}}}"#,
            weight.replace('\n', " ")
        );
        let answer =
            host.send(Request::new("POST", "/v1/ehr/bulk").with_body("application/x-ndjson", bulk));
        assert!(
            String::from_utf8_lossy(&answer.body).contains("kg"),
            "{answer:?}"
        );
        let answer = host.send(
            Request::new("POST", &format!("/rest/openehr/v1/{path}")).with_body(json, &*weight),
        );
        assert_eq!(
            answer.status, 422,
            "kilograms are not what the template allows now: {answer:?}"
        );
        let shown = host.send(
            Request::new(
                "GET",
                "/rest/openehr/v1/definition/template/adl1.4/weight.en.v2",
            )
            .with_header("Accept", "application/xml"),
        );
        assert!(String::from_utf8_lossy(&shown.body).contains(">lb<"));
    }
}

/// Returns the bytes of the pages of all tables and indexes except those of the access log.
fn bytes(database: &Sqlite) -> f64 {
    let pages = database.texts("SELECT sum(pgsize) FROM dbstat WHERE name NOT LIKE 'access_log%'");
    pages
        .first()
        .and_then(|text| text.parse().ok())
        .expect("a sum")
}

#[test]
fn a_composition_takes_less_than_a_kilobyte() {
    let mut host = Host::new();
    let generator = Generator::new(1, 10, 500);
    let samples: Vec<CompositionSample> = (0..generator.compositions())
        .map(|i| generator.composition(i))
        .collect();
    samples.iter().for_each(|sample| drop(host.commit(sample)));
    let before = bytes(&host.database);
    samples.iter().for_each(|sample| drop(host.commit(sample)));
    let each = (bytes(&host.database) - before) / samples.len() as f64;
    let sent = samples.iter().map(|s| s.json.len()).sum::<usize>() as f64 / samples.len() as f64;
    assert!(sent > 5_500.0, "{sent}");
    assert!(each < 1_000.0, "{each} bytes for a composition of {sent}");
}
