//! The answers are those of the service: each query of the test cases and of the sample, on the same
//! documents.

use super::program::{Folder, generator};
use aqlite::aql::{self, Budget, Parameters, QueryOptions, Run};
use aqlite::document::Batch;
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::samples::{Generator, queries, templates};
use aqlite::service::{Auth, Config, Loaded, ReplayEnvironment, Request, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository as _;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const NOW: &str = "2026-02-01T00:00:00Z";

const STATUS: &str = r#"{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1","name":{"_type":"DV_TEXT","value":"EHR Status"},"archetype_details":{"_type":"ARCHETYPED","archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-EHR_STATUS.generic.v1"},"rm_version":"1.1.0"},"subject":{"_type":"PARTY_SELF"},"is_queryable":true,"is_modifiable":true}"#;

/// Queries that the files and the service answer in another way, because times of commits, times of
/// EHRs and ids of contributions differ, and so does the present.
const ABOUT_COMMITS: [&str; 7] = [
    "CURRENT_",
    "NOW()",
    "time_created",
    "commit_audit",
    "contribution",
    "system_id",
    "VERSION",
];

/// Returns the service with the documents of the sample.
fn service(generator: &Generator) -> Service<Memory> {
    let config = Config {
        auth: Auth::Open,
        log: false,
        trusts_compositions: true,
        admin: true,
        ..Config::default()
    };
    let service = Service::new(Memory::new(), config);
    let mut environment = ReplayEnvironment::new(1.0, "parity");
    for template in templates() {
        let request = Request::new("POST", "/rest/openehr/v1/definition/template/adl1.4")
            .with_body("application/xml", template.text);
        let answer = now_or_never(service.handle(&request, &mut environment)).unwrap();
        assert!(answer.status < 300);
    }
    for ehr in 0..generator.ehrs() {
        let ehr_id = generator.ehr(ehr).ehr_id;
        let document = |uid: &str, data| Loaded {
            ehr_id: ehr_id.clone(),
            version_uid: format!("{uid}::aqlite.local::1"),
            data,
        };
        let status = json::read(STATUS, Cls::EHR_STATUS).unwrap();
        let uid = format!("00000000-0000-4000-8000-{ehr:012}");
        let mut all = vec![document(&uid, status)];
        let own = generator.compositions_of(ehr);
        all.extend(own.map(|i| document(&generator.uid(i), generator.document(i))));
        let answer = now_or_never(service.load(all, &mut environment)).unwrap();
        assert!(
            answer.status < 300,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
    }
    service
}

/// Returns the rows of the service as JSON.
fn rows(service: &Service<Memory>, text: &str) -> Option<String> {
    let plan = aql::prepare(text, &Parameters::new(), &QueryOptions::default()).ok()?;
    let mut run = Run::new(&plan, NOW, Budget::default(), &|| false);
    let mut sink = |batch: &Batch| run.push(batch);
    let scanned = service.repository().scan(plan.scan(), &mut sink);
    now_or_never(scanned).unwrap().unwrap();
    let mut out = String::new();
    run.finish().ok()?.write_rows(&mut out);
    Some(out)
}

/// Returns the texts of all queries, each on one line: those of the sample, and of the cases of
/// diagnostics, of which many are valid.
pub fn texts() -> Vec<String> {
    let mut all: Vec<String> = queries().iter().map(|q| q.aql.to_owned()).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/aql");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for block in text.split("\n== ").skip(1) {
            let case = block.split("\n=>").next().unwrap();
            let (_, query) = case.split_once('\n').unwrap_or((case, ""));
            all.push(query.to_owned());
        }
    }
    all.extend(OWN.iter().map(|text| (*text).to_owned()));
    let one_line = |text: &String| {
        let lines = text.lines().map(|line| line.split("--").next().unwrap());
        lines.collect::<Vec<_>>().join(" ").trim().to_owned()
    };
    all.iter().map(one_line).collect()
}

/// Queries of each source of batches.
const OWN: [&str; 9] = [
    "SELECT COUNT(*) FROM EHR e",
    "SELECT e/ehr_id/value FROM EHR e",
    "SELECT e/ehr_id/value, COUNT(*) FROM EHR e CONTAINS COMPOSITION c",
    "SELECT COUNT(*) FROM EHR e CONTAINS ((COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]) AND (COMPOSITION d CONTAINS EVALUATION p))",
    "SELECT e/ehr_id/value FROM EHR e NOT CONTAINS COMPOSITION c",
    "SELECT s FROM EHR e CONTAINS EHR_STATUS s",
    "SELECT c FROM COMPOSITION c ORDER BY c/context/start_time/value DESC LIMIT 3",
    "SELECT o/name/value, o/data FROM EHR e CONTAINS OBSERVATION o",
    "SELECT DISTINCT o/archetype_node_id FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o",
];

/// Answers all queries by one run of the shell.
fn answers(texts: &[String]) -> Vec<String> {
    let (folder, generator) = (Folder::new(), generator());
    super::program::write_definitions(&folder);
    let all = 0..generator.compositions();
    let lines: String = all
        .map(|i| super::program::bulk_line(&generator, i))
        .collect();
    folder.write("data.ndjson", &lines);
    let arguments = [
        "shell",
        "-d",
        "data.ndjson",
        "-d",
        "templates",
        "--format",
        "json",
    ];
    let mut command = folder.command(&arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let script: String = texts.iter().map(|text| format!("{text};\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Returns the export of the service: lines of records.
fn export(service: &Service<Memory>) -> String {
    let mut out = String::new();
    let mut after = None;
    loop {
        let mut request = Request::new("GET", "/v1/admin/export");
        request
            .query
            .extend(after.map(|id| (String::from("after"), id)));
        let mut environment = ReplayEnvironment::new(1.0, "export");
        let answer = now_or_never(service.handle(&request, &mut environment)).unwrap();
        assert_eq!(
            answer.status,
            200,
            "{}",
            String::from_utf8_lossy(&answer.body)
        );
        let page = String::from_utf8(answer.body.clone()).unwrap();
        out.push_str(&page);
        let last: serde_json::Value = serde_json::from_str(page.lines().last().unwrap()).unwrap();
        if last["record"]["end"].is_boolean() || last["record"].get("end").is_some() {
            return out;
        }
        after = last["record"]["contribution"]["uid"]["value"]
            .as_str()
            .map(str::to_owned);
        assert!(after.is_some(), "{last}");
    }
}

/// Imports versions of another system: of one object the versions 2 and 3, which deletes it, and of
/// another one the version 1.
fn import_versions(service: &Service<Memory>, ehr: &str, composition: &str) {
    let code = |code: &str| {
        format!(
            r#"{{"_type":"DV_CODED_TEXT","value":"as coded","defining_code":{{"_type":"CODE_PHRASE","terminology_id":{{"_type":"TERMINOLOGY_ID","value":"openehr"}},"code_string":"{code}"}}}}"#
        )
    };
    let imported = |object: u32, number: u32, data: &str, state: &str| {
        let uid = |number| {
            format!(
                r#"{{"_type":"OBJECT_VERSION_ID","value":"dddddddd-6666-4666-8666-{object:012}::far.example::{number}"}}"#
            )
        };
        let preceding = match number {
            1 => String::new(),
            _ => format!(r#""preceding_version_uid":{},"#, uid(number - 1)),
        };
        format!(
            r#"{{"_type":"IMPORTED_VERSION","item":{{"_type":"ORIGINAL_VERSION","contribution":{{"_type":"OBJECT_REF","namespace":"local","type":"CONTRIBUTION","id":{{"_type":"HIER_OBJECT_ID","value":"dddddddd-6666-4666-8666-000000000900"}}}},"commit_audit":{{"_type":"AUDIT_DETAILS","system_id":"far.example","committer":{{"_type":"PARTY_SELF"}},"time_committed":{{"_type":"DV_DATE_TIME","value":"1969-05-06T07:08:09Z"}},"change_type":{}}},"uid":{},{preceding}{data}"lifecycle_state":{}}}}}"#,
            code("249"),
            uid(number),
            code(state)
        )
    };
    let data = format!(r#""data":{composition},"#);
    let versions = [
        imported(1, 2, &data, "532"),
        imported(1, 3, "", "523"),
        imported(2, 1, &data, "532"),
    ];
    let body = format!(
        r#"{{"audit":{{"committer":{{"_type":"PARTY_SELF"}}}},"versions":[{}]}}"#,
        versions.join(",")
    );
    let request = Request::new("POST", &format!("/v1/ehr/{ehr}/contribution"))
        .with_body("application/json", body);
    let mut environment = ReplayEnvironment::new(3.0, "import");
    let answer = now_or_never(service.handle(&request, &mut environment)).unwrap();
    assert!(
        answer.status < 300,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
}

#[test]
fn export_of_the_service_answers_like_the_service() {
    let (service, generator) = (service(&generator()), generator());
    let ehr = generator.ehr(0).ehr_id;
    let uid = format!("{}::aqlite.local::1", generator.uid(0));
    let mut request = Request::new("DELETE", &format!("/v1/ehr/{ehr}/composition/{uid}"));
    request.headers.push((String::from("if-match"), uid));
    let mut environment = ReplayEnvironment::new(2.0, "deletion");
    let answer = now_or_never(service.handle(&request, &mut environment)).unwrap();
    assert!(
        answer.status < 300,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    import_versions(&service, &ehr, &generator.composition(1).json);
    let folder = Folder::new();
    let text = export(&service);
    folder.write("export.ndjson", &text);
    for query in [
        "SELECT COUNT(*) FROM COMPOSITION c",
        "SELECT v/commit_audit/time_committed/value, v/uid/value, v/contribution/id/value FROM EHR e CONTAINS VERSION v CONTAINS COMPOSITION c",
        "SELECT s FROM EHR e CONTAINS EHR_STATUS s",
        "SELECT v/uid/value, v/lifecycle_state/value FROM EHR e CONTAINS VERSION v[all_versions]",
        "SELECT v/uid/value, v/preceding_version_uid/value, v/commit_audit/change_type/value, v/commit_audit/system_id, v/item/commit_audit/system_id FROM EHR e CONTAINS VERSION v[all_versions]",
        "SELECT v FROM EHR e CONTAINS VERSION v[all_versions] WHERE v/item/commit_audit/system_id = 'far.example'",
    ] {
        let ran = folder.run(&["query", "-d", "export.ndjson", "--format", "json", query]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let (_, found) = ran.out.trim_end().split_once("\"rows\":").unwrap();
        let found = found.strip_suffix('}').unwrap();
        let expected = rows(&service, query).unwrap();
        assert!(expected != "[]", "{query}");
        assert!(sorted(found) == sorted(&expected), "{query}");
    }
    folder.write("altered.ndjson", &text.replacen("\"249\"", "\"251\"", 1));
    let ran = folder.run(&[
        "query",
        "-d",
        "altered.ndjson",
        "SELECT COUNT(*) FROM COMPOSITION c",
    ]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("altered.ndjson:") && ran.err.contains("CLI0106"),
        "{}",
        ran.err
    );
}

fn sorted(rows: &str) -> Vec<String> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(rows).unwrap();
    let mut rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    rows.sort();
    rows
}

#[test]
fn answers_are_those_of_the_service() {
    let service = service(&generator());
    let is_comparable =
        |text: &String| !text.is_empty() && !ABOUT_COMMITS.iter().any(|part| text.contains(part));
    let all = texts().into_iter().filter(is_comparable);
    let expected: Vec<(String, String)> = all
        .filter_map(|text| {
            let rows = rows(&service, &text)?;
            Some((text, rows))
        })
        .collect();
    assert!(expected.len() >= 50, "{}", expected.len());
    let filled = expected.iter().filter(|(_, rows)| rows != "[]").count();
    assert!(filled > 30, "{filled} of {}", expected.len());
    let texts: Vec<String> = expected.iter().map(|(text, _)| text.clone()).collect();
    let found = answers(&texts);
    assert_eq!(found.len(), expected.len());
    for ((text, expected), found) in expected.iter().zip(&found) {
        let (_, rows) = found
            .split_once(",\"rows\":")
            .or(found.split_once("\"rows\":"))
            .unwrap();
        let rows = rows.strip_suffix('}').unwrap();
        // EHR_STATUSes have other ids, so documents of them are compared without.
        if text.contains("EHR_STATUS") {
            assert_eq!(sorted(rows).len(), sorted(expected).len(), "{text}");
        } else if rows != expected {
            assert!(!text.contains("ORDER BY"), "{text}");
            assert!(sorted(rows) == sorted(expected), "{text}");
        }
    }
}
