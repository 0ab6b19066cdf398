//! Guides on a population, over segments: the outcomes are those of a service that reads rows, and of
//! runs on single EHRs. The repository changes between compactions: versions are updated and deleted,
//! EHRs become queryable or not, and are deleted physically.

use crate::rest::Ticks;
use crate::sql::Dice;
use crate::sqlite::{Sqlite, compact};
use aqlite::samples::{self, Generator};
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::ready::now_or_never;
use aqlite::store::sql::SqlRepository;
use serde_json::{Value, json};
use std::cell::Cell;

const BASE: &str = "/rest/openehr/v1";
const NOW: &str = "2030-01-01T00:00:00Z";
/// An id that no EHR has.
const ABSENT: &str = "44444444-4444-4444-8444-444444444444";

/// A service over a database.
struct Host {
    service: Service<SqlRepository<Sqlite>>,
    ticks: Ticks,
}

impl Host {
    fn over(repository: SqlRepository<Sqlite>) -> Host {
        let config = Config {
            auth: Auth::Open,
            admin: true,
            ..Config::default()
        };
        Host {
            service: Service::new(repository, config),
            ticks: Ticks::new(),
        }
    }

    fn send(&mut self, request: &Request) -> Response {
        now_or_never(self.service.handle(request, &mut self.ticks))
            .expect("a synchronous repository")
    }

    /// Sends a request that must succeed.
    fn done(&mut self, request: Request) -> Response {
        let response = self.send(&request);
        let body = String::from_utf8_lossy(&response.body).into_owned();
        assert!(
            response.status < 300,
            "{} {}: {body}",
            request.method,
            request.path
        );
        response
    }

    /// Runs guides on lines. Returns the lines of the response.
    fn run(&mut self, guides: &[&str], lines: &[String]) -> Vec<Value> {
        let ids = guides.iter().map(|id| format!("guide_id={id}&"));
        let path = format!("/v1/gdl/query?{}now={NOW}", ids.collect::<String>());
        let request = Request::new("POST", &path);
        let response = self.done(request.with_body("application/x-ndjson", lines.join("\n")));
        let text = String::from_utf8_lossy(&response.body);
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    /// Runs a guide on one EHR. Returns the rules that fired and the results.
    fn run_on_one(&mut self, guide: &str, ehr_id: &str) -> Option<Value> {
        let request = Request::new("GET", &format!("/v1/gdl/query/{ehr_id}/{guide}?now={NOW}"));
        let response = self.send(&request);
        let answer: Value = serde_json::from_slice(&response.body).expect("JSON");
        (response.status == 200).then(|| {
            json!([
                answer["execution_details"]["rules_executed"],
                answer["results"]
            ])
        })
    }
}

/// A population in one database, with a service that reads rows and one that reads segments.
struct Population {
    database: Sqlite,
    rows: Host,
    segments: Host,
    generator: Generator,
    ehrs: Vec<String>,
    /// The latest versions of compositions: their EHR, and their uid.
    versions: Vec<(String, String)>,
    serial: Cell<u64>,
}

impl Population {
    fn new(seed: u64) -> Population {
        let database = Sqlite::in_memory();
        let generator = Generator::new(seed, 12, 300);
        let mut population = Population {
            rows: Host::over(database.repository()),
            segments: Host::over(database.segmented()),
            ehrs: (0..generator.ehrs())
                .map(|ehr| generator.ehr(ehr).ehr_id)
                .collect(),
            database,
            generator,
            versions: Vec::new(),
            serial: Cell::new(0),
        };
        for template in samples::templates() {
            let upload = Request::new("POST", &format!("{BASE}/definition/template/adl1.4"));
            population
                .rows
                .done(upload.with_body("application/xml", template.text));
        }
        for guide in samples::guides() {
            let upload = Request::new("POST", "/v1/definition/gdl");
            population
                .rows
                .done(upload.with_body("application/json", guide.text));
        }
        for ehr in 0..population.ehrs.len() {
            population.create(ehr);
        }
        population
    }

    fn create(&mut self, ehr: usize) {
        let put = Request::new("PUT", &format!("{BASE}/ehr/{}", self.ehrs[ehr]));
        self.rows
            .done(put.with_body("application/json", status(!ehr.is_multiple_of(4))));
    }

    /// Changes the repository once. `number` is that of the next composition.
    fn change(&mut self, dice: &mut Dice, number: usize) {
        let ehr = dice.roll(self.ehrs.len() as u64) as usize;
        let at =
            (!self.versions.is_empty()).then(|| dice.roll(self.versions.len() as u64) as usize);
        match (dice.roll(16), at) {
            (0, Some(at)) => {
                let (ehr_id, uid) = self.versions.swap_remove(at);
                let path = format!("{BASE}/ehr/{ehr_id}/composition/{uid}");
                self.rows.done(Request::new("DELETE", &path));
            }
            (1 | 2, Some(at)) => self.update(at, number),
            (3, _) => {
                let path = format!("{BASE}/ehr/{}/ehr_status", self.ehrs[ehr]);
                let tag = self.rows.done(Request::new("GET", &path));
                let put = Request::new("PUT", &path)
                    .with_header("If-Match", tag.header("ETag").expect("a tag"));
                let status = status(dice.roll(2) == 0);
                self.rows.done(put.with_body("application/json", status));
            }
            (4, _) if dice.roll(3) == 0 => {
                let path = format!("/v1/admin/ehr/{}", self.ehrs[ehr]);
                self.rows.done(Request::new("DELETE", &path));
                let deleted = self.ehrs[ehr].clone();
                self.versions.retain(|(ehr_id, _)| *ehr_id != deleted);
                if dice.roll(2) == 0 {
                    self.create(ehr);
                } else {
                    self.ehrs.remove(ehr);
                }
            }
            _ => self.commit(ehr, number),
        }
    }

    fn commit(&mut self, ehr: usize, number: usize) {
        let ehr_id = self.ehrs[ehr].clone();
        let post = Request::new("POST", &format!("{BASE}/ehr/{ehr_id}/composition"));
        let sample = self.generator.composition(number);
        let response = self
            .rows
            .done(post.with_body("application/json", &*sample.json));
        let uid = response.header("ETag").expect("a tag").trim_matches('"');
        self.versions.push((ehr_id, uid.to_owned()));
    }

    /// Replaces a composition with another one of its template, if one follows soon.
    fn update(&mut self, at: usize, number: usize) {
        let (ehr_id, uid) = self.versions[at].clone();
        let get = Request::new("GET", &format!("{BASE}/ehr/{ehr_id}/composition/{uid}"));
        let old: Value = serde_json::from_slice(&self.rows.done(get).body).expect("JSON");
        let template = &old["archetype_details"]["template_id"]["value"];
        let mut samples = (number..number + 20).map(|n| self.generator.composition(n));
        let Some(sample) = samples.find(|sample| *template == sample.template_id) else {
            return;
        };
        let object = uid.split("::").next().expect("an id");
        let path = format!("{BASE}/ehr/{ehr_id}/composition/{object}");
        let put = Request::new("PUT", &path).with_header("If-Match", &format!("\"{uid}\""));
        // The uid of the sample is that of another object.
        let mut document: Value = serde_json::from_str(&sample.json).expect("JSON");
        document.as_object_mut().expect("an object").remove("uid");
        let response = self
            .rows
            .done(put.with_body("application/json", document.to_string()));
        let uid = response.header("ETag").expect("a tag").trim_matches('"');
        self.versions[at].1 = uid.to_owned();
    }

    fn compact(&self) {
        compact(self.segments.service.repository(), &self.serial);
    }

    /// The lines of a request: EHRs in another order than that of their creation, one of them twice,
    /// one that does not exist, and one that is no id.
    fn lines(&self) -> Vec<String> {
        let mut ids: Vec<&str> = self.ehrs.iter().rev().map(String::as_str).collect();
        let third = ids.len() / 3;
        ids.rotate_left(third);
        ids.insert(2, ABSENT);
        ids.push(ids[0]);
        let mut lines: Vec<String> = ids.iter().map(|id| json!(id).to_string()).collect();
        lines.insert(1, String::from("17"));
        lines
    }

    /// Compares the outcomes over segments with those of rows. Returns them, guide by guide.
    fn check(&mut self) -> Vec<Vec<Value>> {
        let [pressure, score] = samples::guides().map(|guide| guide.id);
        let lines = self.lines();
        let chains = [&[pressure][..], &[score], &[pressure, score]];
        chains
            .map(|guides| {
                let found = self.segments.run(guides, &lines);
                assert_eq!(found, self.rows.run(guides, &lines), "{guides:?}");
                found
            })
            .to_vec()
    }

    /// Compares outcomes with those of runs on single EHRs. Returns the number of results.
    fn check_single(&mut self, outcomes: &[Vec<Value>]) -> usize {
        let mut results = 0;
        for (guide, lines) in samples::guides().iter().zip(outcomes) {
            for line in lines.iter().filter(|line| line["status"] == 200) {
                let ehr_id = line["_ehr_id"].as_str().expect("an id");
                let single = self.rows.run_on_one(guide.id, ehr_id).expect("a run");
                let own = json!([line["rules_executed"], line["results"]]);
                assert_eq!(own, single, "{} on {ehr_id}", guide.id);
                results += line["results"].as_array().map_or(0, Vec::len);
            }
        }
        results
    }
}

fn status(is_queryable: bool) -> String {
    json!({
        "_type": "EHR_STATUS",
        "archetype_node_id": "openEHR-EHR-EHR_STATUS.generic.v1",
        "name": {"value": "Status"},
        "subject": {"_type": "PARTY_SELF"},
        "is_queryable": is_queryable,
        "is_modifiable": true,
    })
    .to_string()
}

#[test]
fn outcomes_over_segments_are_those_of_rows_and_of_single_runs() {
    let mut results = 0;
    for seed in 1..=3 {
        let (mut population, mut dice) = (Population::new(seed), Dice::of(seed));
        for number in 0..120 {
            population.change(&mut dice, number);
            if dice.roll(8) == 0 {
                population.compact();
            }
            if dice.roll(16) == 0 {
                population.check();
            }
        }
        let outcomes = population.check();
        results += population.check_single(&outcomes);
        population.compact();
        assert_eq!(
            population.check(),
            outcomes,
            "seed {seed}: all is in segments"
        );
        let statuses = outcomes[0].iter().map(|line| line["status"].as_u64());
        let statuses: Vec<u64> = statuses.map(|status| status.expect("a status")).collect();
        assert!(
            [200, 400, 404]
                .iter()
                .all(|status| statuses.contains(status))
        );
    }
    assert!(results > 50, "{results} results");
}

#[test]
fn population_is_answered_without_its_rows() {
    let mut population = Population::new(4);
    for number in 0..60 {
        let ehr = number % population.ehrs.len();
        population.commit(ehr, number);
    }
    population.compact();
    let outcomes = population.check();
    let [guide, _] = samples::guides().map(|guide| guide.id);
    let lines = population.lines();
    population
        .database
        .behind("UPDATE version SET document = 'damaged'");
    assert_eq!(population.segments.run(&[guide], &lines), outcomes[0]);
    let ids = population.ehrs.clone();
    let body = json!({"guide_id": guide, "ehr_ids": ids}).to_string();
    let request = Request::new("POST", "/v1/gdl/query").with_body("application/json", body);
    assert_eq!(population.segments.send(&request).status, 200);
    assert_eq!(
        population.rows.send(&request).status,
        500,
        "rows are damaged"
    );
}
