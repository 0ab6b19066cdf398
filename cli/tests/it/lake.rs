//! The command `lake`: the views of templates hold every value of their example documents.

use super::program::{Folder, corpus, write_definitions};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The number of templates of the corpus that are tried.
const TEMPLATES: usize = 24;

/// Classes of which a view has one attribute as a column.
const MAIN: [(&str, &str); 6] = [
    ("DV_COUNT", "magnitude"),
    ("DV_BOOLEAN", "value"),
    ("DV_DATE_TIME", "value"),
    ("DV_DATE", "value"),
    ("DV_TIME", "value"),
    ("DV_DURATION", "value"),
];

/// Adds the data values and parties of a document. The names of nodes are not leaves.
fn add_leaves(node: &Value, path: &str, out: &mut Vec<(String, Value)>) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| add_leaves(item, path, out)),
        Value::Object(members) => {
            let class = node["_type"].as_str().unwrap_or_default();
            if ["DV_", "CODE_PHRASE", "PARTY_"]
                .iter()
                .any(|start| class.starts_with(start))
            {
                out.push((path.to_owned(), node.clone()));
                return;
            }
            for (name, member) in members {
                if !["name", "archetype_details", "uid"].contains(&name.as_str()) {
                    add_leaves(member, &format!("{path}/{name}"), out);
                }
            }
        }
        _ => {}
    }
}

/// Returns the cells of all views of the template in a folder, on its document.
fn cells(folder: &Folder) -> HashSet<String> {
    let views = std::fs::read_dir(folder.path().join("views")).unwrap();
    let views: Vec<PathBuf> = views.map(|entry| entry.unwrap().path()).collect();
    let script: String = (0..)
        .zip(&views)
        .map(|(number, view)| {
            let text = std::fs::read_to_string(view).unwrap().replace('\n', " ");
            format!(".format json\n.output rows/{number}.json\n{text};\n")
        })
        .collect();
    std::fs::create_dir_all(folder.path().join("rows")).unwrap();
    let ran = folder.shell(&["data"], &script);
    assert_eq!(ran.err, "", "a view is no valid query");
    let mut cells = HashSet::new();
    for number in 0..views.len() {
        let text = std::fs::read_to_string(folder.path().join(format!("rows/{number}.json")));
        let table: Value = serde_json::from_str(&text.unwrap()).unwrap();
        for row in table["rows"].as_array().unwrap() {
            cells.extend(row.as_array().unwrap().iter().map(Value::to_string));
        }
    }
    cells
}

/// Tries a template. Returns the number of leaves of its example, and those that no view has; `None`
/// if it is no template of compositions.
fn tried(template: &Path) -> Option<(usize, Vec<String>)> {
    let folder = Folder::new();
    let file = template.to_string_lossy();
    let views = folder.run(&["lake", "views", &file, "-o", "views"]);
    if views.code != Some(0) {
        let is_other = views.err.contains("no template of compositions");
        assert!(
            is_other || views.err.contains("not supported"),
            "{file}: {}",
            views.err
        );
        return None;
    }
    std::fs::create_dir_all(folder.path().join("data/p")).unwrap();
    let example = folder.run(&["example", &file, "-o", "data/p/example.json"]);
    assert_eq!(example.code, Some(0), "{file}: {}", example.err);
    let document = std::fs::read_to_string(folder.path().join("data/p/example.json")).unwrap();
    let mut leaves = Vec::new();
    add_leaves(&serde_json::from_str(&document).unwrap(), "", &mut leaves);
    let cells = cells(&folder);
    let is_missing = |value: &Value| {
        let main = MAIN.iter().find(|(class, _)| value["_type"] == *class);
        let main = main.map(|(_, attribute)| value[attribute].to_string());
        !cells.contains(&value.to_string()) && !main.is_some_and(|main| cells.contains(&main))
    };
    let missing = leaves.iter().filter(|(_, value)| is_missing(value));
    let missing = missing
        .map(|(path, value)| format!("{file}{path}: {value}"))
        .collect();
    Some((leaves.len(), missing))
}

/// Returns templates at equal distances in the list of all.
fn templates() -> Vec<PathBuf> {
    let Some(corpus) = corpus() else {
        return Vec::new();
    };
    let mut all: Vec<PathBuf> = std::fs::read_dir(corpus.join("rm/opt"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "opt"))
        .collect();
    all.sort();
    let step = (all.len() / TEMPLATES).max(1);
    all.into_iter().step_by(step).collect()
}

#[test]
fn views_hold_every_value_of_example_documents() {
    let samples = Folder::new();
    write_definitions(&samples);
    let own = std::fs::read_dir(samples.path().join("templates")).unwrap();
    let own = own.map(|entry| entry.unwrap().path());
    let corpus = templates();
    let has_corpus = !corpus.is_empty();
    let (mut documents, mut all, mut missing) = (0, 0, Vec::new());
    for template in own.chain(corpus) {
        let Some((leaves, absent)) = tried(&template) else {
            continue;
        };
        documents += 1;
        all += leaves;
        missing.extend(absent);
    }
    assert!(
        missing.is_empty(),
        "{} of {all}: {missing:#?}",
        missing.len()
    );
    assert!(
        documents >= if has_corpus { 20 } else { 3 },
        "{documents} documents"
    );
    assert!(
        all > 20 * documents,
        "{all} leaves of {documents} documents"
    );
}

#[test]
fn repeated_nodes_are_tables_with_keys() {
    let folder = Folder::new();
    write_definitions(&folder);
    let ran = folder.run(&["lake", "views", "templates/sample.laboratory_report.v1.opt"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let names: Vec<&str> = ran
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("-- "))
        .collect();
    assert_eq!(names.first(), Some(&"sample_laboratory_report_v1"));
    let event = "sample_laboratory_report_v1_laboratory_test_result_any_event";
    let (_, rest) = ran.out.split_once(&format!("-- {event}\n")).unwrap();
    let query = rest.split("\n-- ").next().unwrap();
    for column in [
        " e/ehr_id/value AS ehr_id,",
        " c/uid/value AS composition_uid,",
        "/name/value AS laboratory_test_result_name,",
        "/time/value AS any_event_at,",
        "/items[at0005]/value AS test_name,",
        "\n  AND EXISTS c/content[openEHR-EHR-OBSERVATION.laboratory_test_result.v1]/data[at0001]/events[at0002]",
    ] {
        assert!(query.contains(column), "{column}: {query}");
    }
}

#[test]
fn template_that_cannot_have_views_is_an_error() {
    let folder = Folder::new();
    folder.write("broken.opt", "<template/>");
    let ran = folder.run(&["lake", "views", "broken.opt"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let ran = folder.run(&["lake", "views", "absent.opt"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("absent.opt"), "{}", ran.err);
}

/// A template with SECTIONs of one archetype: those with the name `First`, those with `Second`, others.
const NAMED: &str = include_str!("../../../tests/cases/template/named.opt");

/// Returns a COMPOSITION of [`NAMED`] with SECTIONs of these names.
fn sections(names: &[&str]) -> String {
    let section = |name: &&str| {
        format!(
            r#"{{"_type":"SECTION","archetype_node_id":"openEHR-EHR-SECTION.topic.v1","name":{{"_type":"DV_TEXT","value":"{name}"}},
            "archetype_details":{{"archetype_id":{{"value":"openEHR-EHR-SECTION.topic.v1"}},"rm_version":"1.0.4"}}}}"#
        )
    };
    let sections: Vec<String> = names.iter().map(section).collect();
    format!(
        r#"{{"_type":"COMPOSITION","archetype_node_id":"openEHR-EHR-COMPOSITION.report.v1","name":{{"_type":"DV_TEXT","value":"Report"}},
        "archetype_details":{{"archetype_id":{{"value":"openEHR-EHR-COMPOSITION.report.v1"}},"template_id":{{"value":"named.v1"}},"rm_version":"1.0.4"}},
        "language":{{"terminology_id":{{"value":"ISO_639-1"}},"code_string":"en"}},
        "territory":{{"terminology_id":{{"value":"ISO_3166-1"}},"code_string":"GB"}},
        "category":{{"value":"event","defining_code":{{"terminology_id":{{"value":"openehr"}},"code_string":"433"}}}},
        "composer":{{"_type":"PARTY_SELF"}},"content":[{}]}}"#,
        sections.join(",")
    )
}

/// Returns the rows of a view of the template, on a document with sections of these names.
fn rows_of_view(template: &str, view: &str, names: &[&str]) -> Vec<String> {
    let folder = Folder::new();
    folder.write("named.opt", template);
    folder.write("data/p/1.json", &sections(names));
    let views = folder.run(&["lake", "views", "named.opt", "-o", "views"]);
    assert_eq!((views.code, views.err.as_str()), (Some(0), ""));
    let file = format!("views/{view}.aql");
    let query = ["query", "-d", "data", "-f", &file, "--format", "ndjson"];
    let ran = folder.run(&query);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", views.out);
    let name = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        row[format!("{}_name", view.trim_start_matches("named_v1_"))]
            .as_str()
            .unwrap()
            .to_owned()
    };
    ran.out.lines().map(name).collect()
}

#[test]
fn numbered_siblings_of_a_named_node_are_rows_of_its_table() {
    let names = ["First", "Second", "First #2", "First #x", "Second #10"];
    assert_eq!(
        rows_of_view(NAMED, "named_v1_first", &names),
        ["First", "First #2"]
    );
    assert_eq!(
        rows_of_view(NAMED, "named_v1_second", &names),
        ["Second", "Second #10"]
    );
    let other = NAMED.replace("<list>First</list>", "<list>First (a/b) it's</list>");
    let names = ["First (a/b) it's #2", "First (a/b) it's", "Second"];
    assert_eq!(
        rows_of_view(&other, "named_v1_first_a_b_it_s", &names),
        names[..2]
    );
}

#[test]
fn table_of_the_only_constraint_on_a_node_id_has_every_name() {
    let (first, _) = NAMED.split_once("\n      </children>\n").unwrap();
    let (_, rest) = NAMED
        .split_once("\n    </attributes>\n    <archetype_id>")
        .unwrap();
    let template =
        format!("{first}\n      </children>\n    </attributes>\n    <archetype_id>{rest}");
    let names = ["First", "First #2", "Premier"];
    assert_eq!(rows_of_view(&template, "named_v1_first", &names), names);
}

#[test]
fn tables_of_two_templates_have_different_names() {
    let folder = Folder::new();
    let long = "a name of a section that is longer than sixty characters together";
    let template = NAMED.replace("<list>First</list>", &format!("<list>{long}</list>"));
    folder.write("data/one.opt", &template.replace("named.v1", "one.v1"));
    folder.write("data/two.opt", &template.replace("named.v1", "two.v1"));
    folder.write("data/p/1.json", &sections(&["Second"]));
    let mut names = HashSet::new();
    for template in ["data/one.opt", "data/two.opt"] {
        let ran = folder.run(&["lake", "views", template, "-o", "views"]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        for name in ran.out.lines() {
            assert!(names.insert(name.to_owned()), "{name} is in both");
        }
    }
    let ran = folder.run(&["lake", "sync", "-d", "data", "--to", "lake"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn query_of_another_template_is_not_overwritten() {
    let folder = Folder::new();
    folder.write("one.opt", &NAMED.replace("named.v1", "a-b"));
    folder.write("two.opt", &NAMED.replace("named.v1", "a_b"));
    let views = |template: &str| folder.run(&["lake", "views", template, "-o", "views"]);
    assert_eq!(views("one.opt").code, Some(0));
    let before = std::fs::read_to_string(folder.path().join("views/a_b.aql")).unwrap();
    assert_eq!(
        views("one.opt").code,
        Some(0),
        "its own queries are renewed"
    );
    let ran = views("two.opt");
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("a_b.aql"), "{}", ran.err);
    let after = std::fs::read_to_string(folder.path().join("views/a_b.aql")).unwrap();
    assert_eq!(after, before);
}
