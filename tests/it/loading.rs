//! The sample data over the REST interface: every document is accepted, returned digit for digit,
//! and found by queries.

use crate::rest::Ticks;
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::samples::{Generator, guides, queries, templates};
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use serde_json::Value;

const JSON: &str = "application/json";

struct Client {
    service: Service<Memory>,
    environment: Ticks,
}

impl Client {
    fn new() -> Client {
        let config = Config {
            auth: Auth::Open,
            admin: true,
            ..Config::default()
        };
        Client {
            service: Service::new(Memory::new(), config),
            environment: Ticks::new(),
        }
    }

    fn send(&mut self, request: &Request) -> Response {
        now_or_never(self.service.handle(request, &mut self.environment)).unwrap()
    }

    /// Sends a request below `/v1` and checks its status.
    fn ask(&mut self, status: u16, method: &str, path: &str, kind: &str, body: &str) -> Response {
        let request = Request::new(method, &format!("/v1{path}"))
            .with_body(kind, body)
            .with_header("Accept", &format!("{kind}, application/json"));
        let response = self.send(&request);
        assert_eq!(
            response.status,
            status,
            "{method} {path}: {}",
            text(&response)
        );
        response
    }

    fn load(&mut self, generator: &Generator) -> Vec<String> {
        for template in templates() {
            self.ask(
                201,
                "POST",
                "/definition/template?type=opt14",
                "application/xml",
                template.text,
            );
        }
        for guide in guides() {
            self.ask(201, "POST", "/definition/gdl", JSON, guide.text);
        }
        let mut paths = Vec::new();
        for ehr in 0..generator.ehrs() {
            let id = generator.ehr(ehr).ehr_id;
            self.ask(201, "PUT", &format!("/ehr/{id}"), JSON, "");
            for composition in generator.compositions_of(ehr) {
                let created = self.ask(
                    201,
                    "POST",
                    &format!("/ehr/{id}/composition"),
                    JSON,
                    &generator.composition(composition).json,
                );
                let uid = created.header("ETag").unwrap().trim_matches('"').to_owned();
                paths.push(format!("/ehr/{id}/composition/{uid}"));
            }
        }
        paths
    }
}

/// Returns the rows of a window of a query.
fn window(client: &mut Client, q: &str, offset: usize, fetch: usize) -> Vec<Value> {
    let body = serde_json::json!({ "q": q, "offset": offset, "fetch": fetch }).to_string();
    let result: Value =
        serde_json::from_str(text(&client.ask(200, "POST", "/query/aql", JSON, &body))).unwrap();
    result["rows"].as_array().unwrap().clone()
}

fn text(response: &Response) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}

/// Returns a composition without the uid that its repository assigned.
fn without_uid(text: &str) -> String {
    let mut tree = json::read(text, Cls::COMPOSITION).unwrap();
    let root = tree.root().unwrap().id();
    tree.remove(root, Attr::UID);
    json::write(tree.root().unwrap())
}

#[test]
fn documents_are_returned_as_sent_also_through_xml() {
    let generator = Generator::new(7, 12, 60);
    let mut client = Client::new();
    let paths = client.load(&generator);
    assert_eq!(paths.len(), 60);
    for (i, path) in paths.iter().enumerate() {
        let sent = without_uid(&generator.composition(i).json);
        assert_eq!(
            without_uid(text(&client.ask(200, "GET", path, JSON, ""))),
            sent
        );
        let xml = client.ask(200, "GET", path, "application/xml", "");
        let (object, version) = path
            .rsplit_once('/')
            .map(|(ehr, uid)| (format!("{ehr}/{}", uid.split("::").next().unwrap()), uid))
            .unwrap();
        let update = Request::new("PUT", &format!("/v1{object}"))
            .with_body("application/xml", xml.body)
            .with_header("If-Match", version);
        let updated = client.send(&update);
        assert_eq!(updated.status, 204, "{path}: {}", text(&updated));
        assert_eq!(
            without_uid(text(&client.ask(200, "GET", &object, JSON, ""))),
            sent
        );
    }
}

#[test]
fn a_contribution_stays_unchanged_when_one_of_its_objects_is_deleted() {
    let (generator, mut client) = (Generator::new(3, 1, 4), Client::new());
    client.load(&generator);
    let (ehr, uids) = (
        generator.ehr(0).ehr_id,
        [0, 1, 2].map(|index| generator.uid(index)),
    );
    let line = |index: usize, contribution: &str| {
        let (uid, data) = (&uids[index], generator.composition(index).json);
        format!(
            r#"{{"ehr_id":"{ehr}","version_uid":"{uid}::elsewhere::1","contribution_uid":"{contribution}","data":{data}}}"#
        )
    };
    let [together, alone] = [
        "11111111-0000-4000-8000-000000000001",
        "11111111-0000-4000-8000-000000000002",
    ];
    let lines = [line(0, together), line(1, together), line(2, alone)].join("\n");
    client.ask(200, "POST", "/admin/load", "application/x-ndjson", &lines);
    let paths = [together, alone].map(|uid| format!("/ehr/{ehr}/contribution/{uid}"));
    let before = paths
        .each_ref()
        .map(|path| text(&client.ask(200, "GET", path, JSON, "")).to_owned());
    assert!(
        before[0].contains(&format!("{}::elsewhere::1", uids[0]))
            && before[0].contains(&format!("{}::elsewhere::1", uids[1])),
        "{}",
        before[0]
    );
    client.ask(
        204,
        "DELETE",
        &format!("/admin/ehr/{ehr}/composition/{}", uids[0]),
        JSON,
        "",
    );
    let after = paths
        .each_ref()
        .map(|path| text(&client.ask(200, "GET", path, JSON, "")).to_owned());
    assert_eq!(after, before);
}

#[test]
fn queries_and_guides_find_the_loaded_data() {
    let generator = Generator::new(11, 30, 300);
    let mut client = Client::new();
    client.load(&generator);
    let ehr = generator.ehr(0).ehr_id;
    for query in queries() {
        let mut bound = serde_json::json!({ "ehr_id": ehr, "ehr": ehr });
        let own = query.parameters.iter().map(|(name, value)| {
            (
                (*name).to_owned(),
                serde_json::from_str(value).unwrap_or_else(|_| (*value).into()),
            )
        });
        bound.as_object_mut().unwrap().extend(own);
        let body = serde_json::json!({ "q": query.aql, "query_parameters": bound });
        let result: Value = serde_json::from_str(text(&client.ask(
            200,
            "POST",
            "/query/aql",
            JSON,
            &body.to_string(),
        )))
        .unwrap();
        assert!(
            result["columns"].as_array().is_some_and(|c| !c.is_empty()),
            "{}",
            query.aql
        );
    }
    let counted = client.ask(
        200,
        "POST",
        "/query/aql",
        JSON,
        r#"{"q":"SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c"}"#,
    );
    let counted: Value = serde_json::from_str(text(&counted)).unwrap();
    assert_eq!(counted["rows"][0][0], 300);
    for guide in guides() {
        let ehrs: Vec<String> = (0..generator.ehrs())
            .map(|e| generator.ehr(e).ehr_id)
            .collect();
        let body = serde_json::json!({ "guide_id": guide.id, "ehr_ids": ehrs });
        let run: Value = serde_json::from_str(text(&client.ask(
            200,
            "POST",
            "/gdl/query",
            JSON,
            &body.to_string(),
        )))
        .unwrap();
        assert!(
            run["results"].as_array().is_some_and(|r| !r.is_empty()),
            "{}",
            guide.id
        );
    }
}

#[test]
fn pages_form_the_whole_result_while_commits_continue() {
    let generator = Generator::new(13, 20, 200);
    let mut client = Client::new();
    let paths = client.load(&generator);
    let uid = |path: &str| Value::from(vec![path.rsplit('/').next().unwrap()]);
    let mut expected: Vec<Value> = paths.iter().map(|path| uid(path)).collect();
    let mut seen = Vec::new();
    loop {
        let page = window(
            &mut client,
            "SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c",
            seen.len(),
            37,
        );
        seen.extend_from_slice(&page);
        if page.len() < 37 {
            break;
        }
        let first = format!("/ehr/{}/composition", generator.ehr(0).ehr_id);
        let created = client.ask(
            201,
            "POST",
            &first,
            JSON,
            &generator.composition(seen.len()).json,
        );
        expected.push(uid(created.header("ETag").unwrap().trim_matches('"')));
    }
    assert_eq!(seen, expected);
    let sorted =
        "SELECT c/name/value, c/uid/value FROM EHR e CONTAINS COMPOSITION c ORDER BY c/name/value";
    let pages: Vec<Value> = (0..)
        .map(|n| window(&mut client, sorted, n * 37, 37))
        .take_while(|page| !page.is_empty())
        .flatten()
        .collect();
    assert_eq!(pages, window(&mut client, sorted, 0, 1_000));
}
