//! The command `check`.

use super::program::{Folder, generator, sample, write_definitions};
use serde_json::{Value, json};

#[test]
fn valid_files_have_no_errors() {
    let folder = sample();
    let ran = folder.run(&["check", "templates", "guides", "data"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
}

#[test]
fn wrong_query_is_shown_with_its_line() {
    let folder = Folder::new();
    folder.write("q/a.aql", "SELECT c\nFROM COMPOSITON c\n");
    folder.write("q/b.aql", "SELECT c FROM COMPOSITION c\n");
    let ran = folder.run(&["check", "q"]);
    assert_eq!(ran.code, Some(1));
    for expected in ["error[AQL0201]", "--> q/a.aql:2:6", "2 | FROM COMPOSITON c"] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    assert!(!ran.out.contains("b.aql"));
}

#[test]
fn warnings_alone_do_not_fail() {
    let folder = Folder::new();
    let query = "SELECT c FROM COMPOSITION c WHERE c/name/value LIKE 'Blood%'";
    folder.write("q.aql", query);
    let ran = folder.run(&["check", "q.aql"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("warning[AQL0602]"), "{}", ran.out);
}

/// A composition of the sample whose systolic pressure has another unit.
fn wrong_unit() -> String {
    let generator = generator();
    let has_pressure = |json: &String| json.contains("\"mm[Hg]\"");
    let json = (0..generator.compositions())
        .map(|index| generator.composition(index).json)
        .find(has_pressure)
        .unwrap();
    json.replacen("\"mm[Hg]\"", "\"furlong\"", 1)
        .replace("},{", "},\n{")
}

#[test]
fn composition_is_checked_against_its_template() {
    let folder = Folder::new();
    write_definitions(&folder);
    folder.write("c.json", &wrong_unit());
    let ran = folder.run(&["check", "-d", "templates", "c.json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.out.contains("furlong"), "{}", ran.out);
    let line = ran
        .out
        .lines()
        .find(|line| line.contains("--> c.json:"))
        .unwrap();
    assert!(!line.ends_with("c.json:1:1"), "the place is known: {line}");
    let ran = folder.run(&["check", "c.json"]);
    assert_eq!(
        ran.code,
        Some(0),
        "without template only the model counts: {}",
        ran.out
    );
    let ran = folder.run(&[
        "check",
        "-d",
        "templates/sample.problem_list.v1.opt",
        "c.json",
    ]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("warning[CLI0105]"), "{}", ran.out);
}

/// Returns an ORIGINAL_VERSION of a composition with one change: a pointer, and the value there or
/// `null` for none.
fn version_with(pointer: &str, value: Value) -> String {
    let coded = |text: &str, code: &str| {
        let terminology = json!({"_type": "TERMINOLOGY_ID", "value": "openehr"});
        json!({"_type": "DV_CODED_TEXT", "value": text, "defining_code":
            {"_type": "CODE_PHRASE", "terminology_id": terminology, "code_string": code}})
    };
    let audit = json!({"_type": "ATTESTATION", "system_id": "s", "is_pending": false,
        "time_committed": {"_type": "DV_DATE_TIME", "value": "2026-01-01T00:00:00Z"},
        "change_type": coded("creation", "249"), "reason": coded("signed", "240"),
        "committer": {"_type": "PARTY_IDENTIFIED", "name": "Jane Doe"},
        "attested_view": {"_type": "DV_MULTIMEDIA", "size": 1, "uri": {"_type": "DV_URI", "value": "file:/a"},
            "media_type": {"_type": "CODE_PHRASE", "code_string": "text/plain",
                "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "IANA_media-types"}}},
        "items": [{"_type": "DV_EHR_URI", "value": "ehr:/a"}]});
    let data: Value = serde_json::from_str(&generator().composition(0).json).unwrap();
    let contribution = json!({"_type": "OBJECT_REF", "namespace": "local", "type": "CONTRIBUTION",
        "id": {"_type": "HIER_OBJECT_ID", "value": "8849182c-82ad-4088-a07f-48ead4180515"}});
    let mut version = json!({"_type": "ORIGINAL_VERSION", "contribution": contribution,
        "uid": {"_type": "OBJECT_VERSION_ID", "value": "8849182c-82ad-4088-a07f-48ead4180515::s::1"},
        "lifecycle_state": coded("complete", "532"), "commit_audit": audit.clone(),
        "attestations": [audit], "data": data});
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = version
        .pointer_mut(parent)
        .unwrap()
        .as_object_mut()
        .unwrap();
    match value.is_null() {
        true => parent.remove(name),
        false => parent.insert(name.to_owned(), value),
    };
    version.to_string()
}

#[test]
fn version_is_checked_around_its_document() {
    let folder = Folder::new();
    let check = |pointer: &str, value: Value| {
        folder.write("v.json", &version_with(pointer, value));
        folder.run(&["check", "v.json"])
    };
    let ran = check("/signature", Value::Null);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    for (pointer, value, path) in [
        ("/commit_audit", Value::Null, "/commit_audit"),
        ("/uid", Value::Null, "/uid"),
        ("/uid/value", json!("x"), "/uid"),
        (
            "/lifecycle_state/defining_code/code_string",
            json!("249"),
            "/: ",
        ),
        (
            "/commit_audit/change_type/defining_code/code_string",
            json!("532"),
            "/commit_audit: ",
        ),
        ("/commit_audit/system_id", json!(""), "/commit_audit"),
        (
            "/commit_audit/committer/name",
            Value::Null,
            "/commit_audit/committer",
        ),
        (
            "/attestations/0/is_pending",
            Value::Null,
            "/attestations[0]/is_pending",
        ),
        (
            "/attestations/0/reason/defining_code/code_string",
            json!("999"),
            "/attestations[0]: ",
        ),
        (
            "/attestations/0/items/0/value",
            json!("http://x"),
            "/attestations[0]/items[0]",
        ),
        (
            "/attestations/0/attested_view/uri",
            Value::Null,
            "/attestations[0]/attested_view",
        ),
        (
            "/data/category/defining_code/code_string",
            json!("9"),
            "/data: ",
        ),
    ] {
        let ran = check(pointer, value);
        assert_eq!(ran.code, Some(1), "{pointer}: {}", ran.out);
        assert!(
            ran.out.contains(&format!("]: {path}")),
            "{pointer}: {}",
            ran.out
        );
    }
}

#[test]
fn incomplete_version_may_lack_mandatory_content() {
    let folder = Folder::new();
    let small = include_str!("../../../tests/cases/template/small.opt");
    folder.write("small.opt", small);
    let example = ["example", "small.opt", "--now", "2026-01-31T08:00:00Z"];
    let example = folder
        .run(&[&example[..], &["--kind", "full"]].concat())
        .out;
    let mut data: Value = serde_json::from_str(&example).unwrap();
    let tree = data.pointer_mut("/content/0/data/events/0/data").unwrap();
    tree.as_object_mut().unwrap().remove("items");
    let state = "/lifecycle_state/defining_code/code_string";
    for (code, exit) in [("532", 1), ("553", 0), ("801", 0)] {
        let version = version_with(state, json!(code));
        let mut version: Value = serde_json::from_str(&version).unwrap();
        version["data"] = data.clone();
        let member = json!({"data": data, "lifecycle_state": version["lifecycle_state"]});
        let line = json!({"ehr_id": "1", "contribution": {"versions": [member]}});
        folder.write("v.json", &version.to_string());
        folder.write("c.ndjson", &line.to_string());
        for (file, place) in [
            ("v.json", "/data"),
            ("c.ndjson", "/contribution/versions[0]/data"),
        ] {
            let ran = folder.run(&["check", "-d", "small.opt", file]);
            assert_eq!(ran.code, Some(exit), "{code}: {}", ran.out);
            let finding = format!("error[TPL0503]: {place}/content[0]/data/events[0]/data/items[");
            assert_eq!(ran.out.contains(&finding), exit == 1, "{}", ran.out);
        }
    }
}

#[test]
fn malformed_json_template_and_guide_are_reported_at_their_place() {
    let folder = Folder::new();
    folder.write("a.json", "{\"_type\":\"COMPOSITION\",\n  \"name\": }");
    folder.write(
        "b.opt",
        "<template xmlns=\"http://schemas.openehr.org/v1\">\n<wrong/></template>",
    );
    folder.write("c.json", "{\"id\":\"g\",\"gdl_version\":\"2.0\",\n\"definition\":{\"rules\":{\"gt1\":{\"when\":[\"$gt0009 >\"],\"then\":[]}}}}");
    folder.write("d.json", "{\"a\":1}");
    folder.write("lines.ndjson", "\n{\"_type\":\"COMPOSITION\"\n");
    for (file, expected) in [
        ("a.json", "--> a.json:2:"),
        ("b.opt", "--> b.opt:"),
        ("c.json", "--> c.json:2:"),
        ("d.json", "CLI0104"),
        ("lines.ndjson", "--> lines.ndjson:2:"),
    ] {
        let ran = folder.run(&["check", file]);
        assert_eq!(ran.code, Some(1), "{file}: {}", ran.out);
        assert!(ran.out.contains(expected), "{file}: {}", ran.out);
    }
}

#[test]
fn json_and_sarif_have_the_region() {
    let folder = Folder::new();
    folder.write("a b.aql", "SELECT c\nFROM COMPOSITON c\n");
    let ran = folder.run(&["check", "a b.aql", "--format", "json"]);
    let list: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(ran.code, Some(1));
    assert_eq!(list[0]["path"], "a b.aql");
    let of = |name: &str| list[0][name].as_u64().unwrap();
    assert_eq!(
        ["line", "column", "endLine", "endColumn"].map(of),
        [2, 6, 2, 16]
    );
    let ran = folder.run(&["check", "a b.aql", "--format", "sarif"]);
    let log: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(
        (result["ruleId"].as_str(), result["level"].as_str()),
        (Some("AQL0201"), Some("error"))
    );
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a%20b.aql");
    assert_eq!(place["region"]["startLine"], 2);
}

/// A query over the sample with the archetype in another version, and a unit that is not permitted.
const QUERY: &str = "SELECT o\nFROM OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v1]\n";

#[test]
fn query_is_compared_with_templates() {
    let folder = Folder::new();
    write_definitions(&folder);
    folder.write("q.aql", QUERY);
    let ran = folder.run(&["check", "q.aql"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    let ran = folder.run(&["check", "--template", "templates", "q.aql"]);
    assert_eq!(ran.code, Some(0));
    for expected in ["warning[AQL0606]", "--> q.aql:2:20", "blood_pressure.v2`?"] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    let ran = folder.run(&["check", "-d", "templates", "q.aql", "--format", "json"]);
    let list: Value = serde_json::from_str(&ran.out).unwrap();
    let near = "openEHR-EHR-OBSERVATION.blood_pressure.v2";
    assert_eq!(list[0]["fix"]["text"], near);
    assert_eq!(
        (&list[0]["fix"]["line"], &list[0]["fix"]["column"]),
        (&2.into(), &20.into())
    );
    let ran = folder.run(&["check", "-d", "templates", "q.aql", "--format", "sarif"]);
    let log: Value = serde_json::from_str(&ran.out).unwrap();
    let run = &log["runs"][0];
    assert_eq!(
        run["tool"]["driver"]["rules"][0]["name"],
        "archetype-version"
    );
    let change = &run["results"][0]["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["insertedContent"]["text"], near);
    assert_eq!(change["deletedRegion"]["startColumn"], 20);
}

#[test]
fn a_line_with_invalid_bytes_does_not_hide_the_others() {
    let folder = Folder::new();
    let wrong = "{\"_type\":\"COMPOSITION\"}\n";
    let bytes = [wrong.as_bytes(), b"{\"\xff\":1}\n", wrong.as_bytes()].concat();
    std::fs::write(folder.path().join("b.ndjson"), bytes).unwrap();
    let ran = folder.run(&["check", "b.ndjson"]);
    assert_eq!(ran.code, Some(1));
    for expected in [
        "--> b.ndjson:1:",
        "error[CLI0002]",
        "--> b.ndjson:2:1",
        "--> b.ndjson:3:",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
}
