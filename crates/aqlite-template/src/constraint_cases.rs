//! Authored cases of constraints: a definition, and documents that it permits or refuses
//! (`tests/cases/template/constraints.txt`).

use super::{ExampleKind, Template, example, validate};
use aqlite_rm::class::Cls;
use aqlite_rm::diag::{Finding, Severity};
use aqlite_rm::json;
use std::fmt::Write;

const CASES: &str = include_str!("../../../tests/cases/template/constraints.txt");

#[test]
fn authored_constraints() {
    let mut wrong = String::new();
    let adl2_frame = section("adl2 frame");
    let opt14_frame = section("opt14 frame");
    for case in CASES.split("\n=== ").skip(1) {
        let (title, body) = case.split_once('\n').unwrap();
        let Some((form, body)) = body.split_once('\n').filter(|_| !title.ends_with(" frame"))
        else {
            continue;
        };
        let (definition, documents) = body.split_once("\n---\n").unwrap();
        let template = match form {
            "adl2" => Template::parse_opt2(&adl2_frame.replace("DEFINITION", definition)),
            "opt14" => Template::parse(&opt14_frame.replace("DEFINITION", definition)),
            other => panic!("{title}: `{other}` is no form of templates"),
        };
        let found = match template {
            Ok(template) => outcomes(&template, documents),
            Err(problems) => documents
                .lines()
                .filter(|line| !line.is_empty())
                .map(|_| format!("{} refused\n", problems[0].code))
                .collect(),
        };
        let expected = expectations(documents);
        if found.trim() != expected.trim() {
            let _ = write!(wrong, "{title}\nexpected:\n{expected}\nfound:\n{found}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn section(name: &str) -> &'static str {
    let start = format!("\n=== {name}\n");
    let (_, behind) = CASES.split_once(&start).unwrap();
    behind.split("\n=== ").next().unwrap()
}

/// Returns the expectations of a case, one for each line: those in front of the document.
fn expectations(documents: &str) -> String {
    let lines = documents.lines().filter(|line| !line.is_empty());
    let fronts = lines.map(|line| line.split_once(" {").map_or(line, |(front, _)| front));
    fronts.map(|front| format!("{}\n", front.trim())).collect()
}

fn outcomes(template: &Template, documents: &str) -> String {
    let lines = documents.lines().filter(|line| !line.is_empty());
    let outcomes = lines.map(|line| match line.split_once(" {") {
        Some((_, document)) => verdict(template, &format!("{{{document}")),
        None if line.starts_with("example") => example_text(template),
        None => template_warnings(template),
    });
    outcomes.map(|outcome| format!("{outcome}\n")).collect()
}

fn verdict(template: &Template, document: &str) -> String {
    let class = template.definition.class.unwrap();
    let tree = json::read(document, class).unwrap_or_else(|e| panic!("{document}: {e:?}"));
    let findings = validate(tree.root().unwrap(), template);
    if findings.is_empty() {
        return String::from("ok");
    }
    let code = |finding: &Finding| match finding.severity {
        Severity::Error => finding.code.to_owned(),
        _ => format!("{} warning", finding.code),
    };
    let codes: Vec<String> = findings.iter().map(code).collect();
    codes.join(", ")
}

/// Returns the codes of the full example.
fn example_text(template: &Template) -> String {
    let tree = example(template, ExampleKind::Full, None, "2026-11-20T09:30:00Z");
    let tree = tree.unwrap_or_else(|e| panic!("{e:?}"));
    let text = json::write(tree.root().unwrap());
    let is_code = |part: &&str| part.starts_with(":\"");
    let codes = text.split("\"code_string\"").skip(1).filter(is_code);
    let codes: Vec<&str> = codes.filter_map(|part| part.split('"').nth(1)).collect();
    format!("example {}", codes.join(" ")).trim().to_owned()
}

fn template_warnings(template: &Template) -> String {
    let codes: Vec<&str> = template.warnings.iter().map(|w| w.code).collect();
    format!("warnings {}", codes.join(" ")).trim().to_owned()
}

#[test]
fn references_cannot_multiply_a_definition_without_bound() {
    // Each object has two references to the next one: expanded, there would be 2^30 of them.
    let cluster = |n: usize| {
        let next = n + 1;
        format!(
            "CLUSTER[id{n}] matches {{ items matches {{ use_node CLUSTER[id9{n}] /items[id{next}]\n use_node CLUSTER[id8{n}] /items[id{next}]\n }} }}\n"
        )
    };
    let clusters: String = (10..40).map(cluster).collect();
    let definition =
        format!("CLUSTER[id1] matches {{ items matches {{ {clusters} ELEMENT[id40] }} }}");
    let text = section("adl2 frame").replace("DEFINITION", &definition);
    let template = Template::parse_opt2(&text).unwrap();
    assert!(!template.excesses().is_empty());
    assert_eq!(template.definition.class, Some(Cls::CLUSTER));
}
