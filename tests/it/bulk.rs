//! A composition that is loaded in bulk is stored and returned like one that is committed alone.

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use aqlite::samples::{Generator, templates};
use aqlite::service::{Auth, Config, EarlierCommits, Environment, Request, Response, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::sql::SqlRepository;
use serde_json::Value;
use std::fmt::Write;

/// Selects the stored rows of each composition and of its contribution, in the order of commits.
const STORED: &str =
    "SELECT json_array(e.ehr_id, v.kind, v.number, v.system, v.time_committed, v.lifecycle, v.template, v.profile, v.shapes, v.chunks,
    v.document, c.uid, c.shapes, c.document) FROM version v JOIN ehr e ON e.id = v.ehr JOIN contribution c ON c.id = v.contribution
    WHERE v.template IS NOT NULL ORDER BY v.id";

struct Host {
    database: Sqlite,
    service: Service<SqlRepository<Sqlite>>,
    ticks: Ticks,
}

impl Host {
    /// Creates a service with templates and EHRs of sample data.
    fn of(generator: &Generator) -> Host {
        let database = Sqlite::in_memory();
        let config = Config {
            auth: Auth::Open,
            admin: true,
            ..Config::default()
        };
        let mut host = Host {
            service: Service::new(database.repository(), config),
            database,
            ticks: Ticks::new(),
        };
        for template in templates() {
            host.send(
                Request::new("POST", "/v1/definition/template?type=opt14")
                    .with_body("application/xml", template.text),
            );
        }
        for ehr in 0..generator.ehrs() {
            host.send(Request::new(
                "PUT",
                &format!("/v1/ehr/{}", generator.ehr(ehr).ehr_id),
            ));
        }
        host
    }

    /// Returns another instance on the same database, with empty caches.
    fn other(&self) -> Host {
        let config = Config {
            auth: Auth::Open,
            ..Config::default()
        };
        let mut ticks = Ticks::new();
        (0..100).for_each(|_| drop((ticks.now(), ticks.new_uuid())));
        Host {
            service: Service::new(self.database.repository(), config),
            database: self.database.clone(),
            ticks,
        }
    }

    fn ask(&mut self, request: &Request) -> Response {
        now_or_never(self.service.handle(request, &mut self.ticks))
            .expect("a synchronous repository")
    }

    fn send(&mut self, request: Request) -> Response {
        let response = self.ask(&request);
        assert!(
            response.status < 300,
            "{} {}: {response:?}",
            request.method,
            request.path
        );
        response
    }

    fn one_by_one(&mut self, compositions: &[(String, String)]) {
        for (ehr, text) in compositions {
            self.send(
                Request::new("POST", &format!("/v1/ehr/{ehr}/composition"))
                    .with_body("application/json", text.as_str()),
            );
        }
    }

    fn in_bulk(&mut self, compositions: &[(String, String)]) {
        let lines = compositions.iter().enumerate().fold(
            String::new(),
            |mut lines, (number, (ehr, text))| {
                // The members of a line, and those of its composition, may be in any order.
                let _ = match number % 2 {
                    0 => writeln!(lines, r#"{{"ehr_id":"{ehr}","composition":{text}}}"#),
                    _ => writeln!(
                        lines,
                        r#" {{ "composition" : {text} , "ehr_id" : "{}" }} "#,
                        ehr.to_uppercase()
                    ),
                };
                lines
            },
        );
        let answer = self
            .send(Request::new("POST", "/v1/ehr/bulk").with_body("application/x-ndjson", lines));
        let answers = String::from_utf8(answer.body).expect("text");
        assert!(
            answers
                .lines()
                .all(|line| line.ends_with(r#""status":201}"#)),
            "{answers}"
        );
    }

    /// Returns the stored compositions behind the first `skip`, and their export. Random and
    /// time-dependent parts are normalized.
    fn stored_and_exported(&mut self, skip: usize) -> (Vec<String>, Vec<String>) {
        let stored = self.database.texts(STORED).into_iter().skip(skip);
        let exported = String::from_utf8(
            self.send(Request::new("GET", "/v1/admin/export?limit=1000"))
                .body,
        )
        .expect("text");
        // The digest of a line depends on times and ids, so it is left out.
        let records = exported
            .lines()
            .filter_map(|line| line.split_once(r#","record":"#))
            .map(|(_, record)| record.to_owned());
        let compositions = records
            .filter(|record| record.contains(r#""_type":"COMPOSITION""#))
            .skip(skip);
        (
            stored.map(|row| normalized(&row)).collect(),
            compositions.map(|record| normalized(&record)).collect(),
        )
    }
}

/// Replaces each new id by the number of its first appearance, and each commit time by a constant.
fn normalized(text: &str) -> String {
    let mut ids: Vec<&str> = text
        .match_indices("00000000-0000-4000-8000-")
        .filter_map(|(at, _)| text.get(at..at + 36))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids.sort_by_key(|id| text.find(id));
    let times = text
        .match_indices("2026-11-30T")
        .filter_map(|(at, _)| text.get(at..at + 24));
    let normalized = ids
        .iter()
        .enumerate()
        .fold(text.to_owned(), |text, (number, id)| {
            text.replace(id, &format!("<id {number}>"))
        });
    times.fold(normalized, |text, time| text.replace(time, "<time>"))
}

#[test]
fn a_composition_is_stored_the_same_in_bulk_and_alone() {
    let generator = Generator::new(5, 10, 120);
    let ehr_of = |number: usize| {
        (0..generator.ehrs())
            .find(|ehr| generator.compositions_of(*ehr).contains(&number))
            .expect("an EHR")
    };
    let compositions: Vec<(String, String)> = (0..120)
        .map(|number| {
            (
                generator.ehr(ehr_of(number)).ehr_id,
                generator.composition(number).json,
            )
        })
        .collect();
    let mut alone = Host::of(&generator);
    alone.one_by_one(&compositions);
    let (stored, exported) = alone.stored_and_exported(0);
    assert_eq!((stored.len(), exported.len()), (120, 120));
    // With the same layouts, the rows are equal byte for byte.
    alone.in_bulk(&compositions);
    assert!(alone.stored_and_exported(120).0 == stored);
    let mut bulk = Host::of(&generator);
    bulk.in_bulk(&compositions);
    assert!(bulk.stored_and_exported(0).1 == exported);
}

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const TEMPLATE: &str = include_str!("../cases/template/small.opt");
const WEIGHT: &str = include_str!("../cases/rest/weight.json");
const AUDIT: &str = include_str!("../cases/rest/audit.json");

/// Returns a line with a weight, and the same commit as one request. `C` marks a commit within a
/// contribution.
fn weighed(weight: &str) -> (String, Request) {
    let (kind, weight) = weight.split_once(' ').unwrap_or(("", weight));
    let composition = WEIGHT.replace("72.50", weight).replace('\n', " ");
    let contribution = format!(
        r#"{{"versions":[{{"_type":"ORIGINAL_VERSION","commit_audit":{AUDIT},"data":{composition}}}],"audit":{AUDIT}}}"#
    );
    let (member, body) = if kind == "C" {
        ("contribution", contribution)
    } else {
        ("composition", composition)
    };
    let request = Request::new("POST", &format!("/v1/ehr/{EHR}/{member}"))
        .with_body("application/json", body.as_str());
    (
        format!(
            r#"{{"ehr_id":"{EHR}","{member}":{}}}"#,
            body.replace('\n', " ")
        ),
        request,
    )
}

/// Returns a service with a cached template that another instance has replaced. The old one permits
/// weights up to 1000, the new one from -10 to 70.
fn with_an_old_template() -> Host {
    let upload = |text: &str, version: &str| {
        Request::new(
            "POST",
            &format!("/v1/definition/template?type=opt14&version={version}"),
        )
        .with_body("application/xml", text)
    };
    let mut host = Host::of(&Generator::new(1, 0, 0));
    host.send(upload(TEMPLATE, "2.0.0"));
    host.send(Request::new("PUT", &format!("/v1/ehr/{EHR}")));
    host.send(weighed("60").1);
    let newer = TEMPLATE.replacen(
        "<lower>0</lower><upper>1000</upper>",
        "<lower>-10</lower><upper>70</upper>",
        1,
    );
    host.other().send(upload(&newer, "2.1.0"));
    host
}

#[test]
fn a_load_goes_by_the_template_that_is_stored_now() {
    for weights in [
        &["60", "61"][..],
        &["60", "72.5"],
        &["72.5"],
        &["-5", "60"],
        &["60", "-5", "72.5", "60"],
        &["60", "C 72.5", "C -5", "72.5"],
    ] {
        let mut host = with_an_old_template();
        let (lines, requests): (Vec<String>, Vec<Request>) =
            weights.iter().copied().map(weighed).unzip();
        let answer = host.send(
            Request::new("POST", "/v1/ehr/bulk")
                .with_body("application/x-ndjson", lines.join("\n")),
        );
        let mut answers: Vec<Value> = answer
            .body
            .split(|b| *b == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        answers.sort_by_key(|answer| answer["line"].as_u64());
        assert_eq!(answers.len(), weights.len());
        let mut other = host.other();
        for ((answer, request), weight) in answers.iter().zip(&requests).zip(weights) {
            let alone = other.ask(request);
            let body: Value = serde_json::from_slice(&alone.body).unwrap_or_default();
            assert_eq!(
                answer["status"], alone.status,
                "{weights:?} {weight}: {answer}"
            );
            assert_eq!(
                (&answer["message"], &answer["errors"]),
                (&body["message"], &body["errors"]),
                "{weights:?} {weight}"
            );
            assert_eq!(
                alone.status == 201,
                !weight.contains("72.5"),
                "{weights:?} {weight}: {body}"
            );
        }
    }
}

#[test]
fn cached_facts_are_not_requested_again() {
    let mut host = Host::of(&Generator::new(1, 0, 0));
    host.send(
        Request::new("POST", "/v1/definition/template?type=opt14")
            .with_body("application/xml", TEMPLATE),
    );
    host.send(Request::new("PUT", &format!("/v1/ehr/{EHR}")));
    host.send(weighed("60").1);
    host.database.trips();
    let lines: Vec<String> = ["61", "62", "63"].map(|weight| weighed(weight).0).into();
    host.send(
        Request::new("POST", "/v1/ehr/bulk").with_body("application/x-ndjson", lines.join("\n")),
    );
    assert_eq!(host.database.trips(), 1);
}

/// A part of a load behind one that was rejected.
struct Rejected(Ticks);

impl Environment for Rejected {
    fn now(&mut self) -> i64 {
        self.0.now()
    }

    fn new_uuid(&mut self) -> String {
        self.0.new_uuid()
    }

    fn earlier_parts(&mut self) -> Option<EarlierCommits> {
        Some(Box::pin(std::future::ready(false)))
    }
}

#[test]
fn nothing_behind_a_rejected_part_is_written() {
    let mut host = Host::of(&Generator::new(1, 0, 0));
    host.send(
        Request::new("POST", "/v1/definition/template?type=opt14")
            .with_body("application/xml", TEMPLATE),
    );
    host.send(Request::new("PUT", &format!("/v1/ehr/{EHR}")));
    let revision = || {
        host.database
            .texts("SELECT value FROM meta WHERE name = 'revision'")
    };
    let before = revision();
    // Contributions commit the lines before them, so these lines are several transactions.
    let weights = ["60", "C 61", "62", "C 63", "64"];
    let lines: Vec<String> = weights.iter().map(|weight| weighed(weight).0).collect();
    let request =
        Request::new("POST", "/v1/ehr/bulk").with_body("application/x-ndjson", lines.join("\n"));
    let mut environment = Rejected(Ticks::new());
    let answer = now_or_never(host.service.handle(&request, &mut environment))
        .expect("a synchronous repository");
    let answers = String::from_utf8(answer.body).expect("text");
    assert_eq!(answers.lines().count(), weights.len(), "{answers}");
    for line in answers.lines() {
        assert!(line.ends_with(r#""status":503}"#), "{line}");
    }
    assert_eq!(revision(), before);
}
