//! A composition that is loaded in bulk is stored, and comes back, as one that is committed alone.

use crate::rest::Ticks;
use crate::sqlite::Sqlite;
use aqlite::samples::{Generator, templates};
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::ready::block_on;
use aqlite::store::sql::SqlRepository;
use std::fmt::Write;

/// What a repository stores of each composition and of its contribution, in the order of commits.
const STORED: &str =
    "SELECT json_array(e.ehr_id, v.kind, v.number, v.system, v.time_committed, v.lifecycle, v.template, v.profile, v.shapes, v.chunks,
    v.document, c.uid, c.shapes, c.document) FROM version v JOIN ehr e ON e.id = v.ehr JOIN contribution c ON c.id = v.contribution
    WHERE v.template IS NOT NULL ORDER BY v.id";

struct House {
    database: Sqlite,
    service: Service<SqlRepository<Sqlite>>,
    ticks: Ticks,
}

impl House {
    /// With templates and EHRs of sample data.
    fn of(generator: &Generator) -> House {
        let database = Sqlite::in_memory();
        let config = Config { auth: Auth::Open, admin: true, ..Config::default() };
        let mut house = House { service: Service::new(database.repository(), config), database, ticks: Ticks::new() };
        for template in templates() {
            house.send(Request::new("POST", "/v1/definition/template?type=opt14").with_body("application/xml", template.text));
        }
        for ehr in 0..generator.ehrs() {
            house.send(Request::new("PUT", &format!("/v1/ehr/{}", generator.ehr(ehr).ehr_id)));
        }
        house
    }

    fn send(&mut self, request: Request) -> Response {
        let response = block_on(self.service.handle(&request, &mut self.ticks)).expect("a synchronous repository");
        assert!(response.status < 300, "{} {}: {response:?}", request.method, request.path);
        response
    }

    fn one_by_one(&mut self, compositions: &[(String, String)]) {
        for (ehr, text) in compositions {
            self.send(Request::new("POST", &format!("/v1/ehr/{ehr}/composition")).with_body("application/json", text.as_str()));
        }
    }

    fn in_bulk(&mut self, compositions: &[(String, String)]) {
        let lines = compositions.iter().enumerate().fold(String::new(), |mut lines, (number, (ehr, text))| {
            // The members of a line, and those of the composition in it, may stand in any order.
            let _ = match number % 2 {
                0 => writeln!(lines, r#"{{"ehr_id":"{ehr}","composition":{text}}}"#),
                _ => writeln!(lines, r#" {{ "composition" : {text} , "ehr_id" : "{}" }} "#, ehr.to_uppercase()),
            };
            lines
        });
        let answer = self.send(Request::new("POST", "/v1/ehr/bulk").with_body("application/x-ndjson", lines));
        let answers = String::from_utf8(answer.body).expect("text");
        assert!(answers.lines().all(|line| line.ends_with(r#""status":201}"#)), "{answers}");
    }

    /// The compositions as they are stored behind the first `skip`, and as they are exported, without what chance and clock give.
    fn told(&mut self, skip: usize) -> (Vec<String>, Vec<String>) {
        let stored = self.database.texts(STORED).into_iter().skip(skip);
        let exported = String::from_utf8(self.send(Request::new("GET", "/v1/admin/export?limit=1000")).body).expect("text");
        // The digest of a line is that of a text in which times and ids stand.
        let records = exported.lines().filter_map(|line| line.split_once(r#","record":"#)).map(|(_, record)| record.to_owned());
        let compositions = records.filter(|record| record.contains(r#""_type":"COMPOSITION""#)).skip(skip);
        (stored.map(|row| leveled(&row)).collect(), compositions.map(|record| leveled(&record)).collect())
    }
}

/// A text in which each new id has the number of its first appearance, and each time of a commit is the same.
fn leveled(text: &str) -> String {
    let mut ids: Vec<&str> = text.match_indices("00000000-0000-4000-8000-").filter_map(|(at, _)| text.get(at..at + 36)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.sort_by_key(|id| text.find(id));
    let times = text.match_indices("2026-11-30T").filter_map(|(at, _)| text.get(at..at + 24));
    let leveled = ids.iter().enumerate().fold(text.to_owned(), |text, (number, id)| text.replace(id, &format!("<id {number}>")));
    times.fold(leveled, |text, time| text.replace(time, "<time>"))
}

#[test]
fn a_composition_is_stored_the_same_in_bulk_and_alone() {
    let generator = Generator::new(5, 10, 120);
    let ehr_of = |number: usize| (0..generator.ehrs()).find(|ehr| generator.compositions_of(*ehr).contains(&number)).expect("an EHR");
    let compositions: Vec<(String, String)> =
        (0..120).map(|number| (generator.ehr(ehr_of(number)).ehr_id, generator.composition(number).json)).collect();
    let mut alone = House::of(&generator);
    alone.one_by_one(&compositions);
    let (stored, exported) = alone.told(0);
    assert_eq!((stored.len(), exported.len()), (120, 120));
    // Over the same shapes the rows are the same to the letter.
    alone.in_bulk(&compositions);
    assert!(alone.told(120).0 == stored);
    let mut bulk = House::of(&generator);
    bulk.in_bulk(&compositions);
    assert!(bulk.told(0).1 == exported);
}
