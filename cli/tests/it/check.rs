//! The command `check`.

use super::program::{Folder, generator, sample, write_definitions};
use serde_json::Value;

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
