//! Guides by example: `tests/cases/gdl/expressions.txt`, `guides.txt` and the guides with templates
//! and cards beside them.

use aqlite::gdl::fixture::{self, agrees, text_form};
use aqlite::gdl::stored::value_of_json;
use aqlite::gdl::time::Moment;
use aqlite::gdl::value::Value;
use aqlite::gdl::{
    self, CompiledGuide, DataInstance, Instance, Options, Run, RunInput, Terminology, output,
};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

pub(crate) const NOW: &str = "2024-02-29T12:00:00+01:00";

pub(crate) fn compiled(guide: &Json) -> CompiledGuide {
    let text = guide.to_string();
    gdl::parse(&text)
        .unwrap_or_else(|p| panic!("{}", p[0].one_line(&text)))
        .compile()
}

pub(crate) fn run(guide: &CompiledGuide, instances: &[Vec<Instance>], now: &str) -> Run {
    let options = Options {
        trace: true,
        ..Options::default()
    };
    guide
        .run(&RunInput {
            instances,
            clock: Moment::parse(now, 0).unwrap().into(),
            language: "en",
            options,
            terminology: None,
        })
        .unwrap()
}

pub(crate) fn ontology() -> Json {
    json!({
        "term_definitions": {"en": {"terms": {
            "gt0001": {"text": "Concept of the guide"}, "gt2001": {"text": "ACE inhibitor"}, "gt2002": {"text": "Statin"}}}},
        "term_bindings": {"ATC": {"bindings": {"gt2001": {"codes": ["ATC::C09AA", "ATC::C09B"]}, "gt2002": {"codes": ["ATC::C10AA"]}}}},
    })
}

#[test]
fn expressions_have_their_values() {
    let text = std::fs::read_to_string("tests/cases/gdl/expressions.txt").unwrap();
    let lines = || {
        text.lines()
            .enumerate()
            .map(|(i, l)| (i + 1, l.trim()))
            .filter(|(_, l)| !l.is_empty() && !l.starts_with('#'))
    };
    let given = lines()
        .filter_map(|(_, l)| l.strip_prefix("given "))
        .map(|l| l.split_once('=').unwrap());
    let given: Vec<(String, Value)> = given
        .map(|(name, v)| (name.trim().to_owned(), fixture::literal(v)))
        .collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for (number, line) in lines().filter(|(_, l)| !l.starts_with("given ")) {
        let (expression, expected) = line.rsplit_once("=>").unwrap();
        let found = value_of(expression.trim(), &given);
        count += 1;
        if !same(expected.trim(), &found) {
            wrong.push(format!(
                "line {number}: `{}`: expected `{}`, found `{found}`",
                expression.trim(),
                expected.trim()
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 200, "{count}");
}

/// Guides in JSON and in ODIN: those of the samples and of the cases.
fn printed_guides() -> Vec<(String, String)> {
    let samples = aqlite::samples::guides();
    let mut guides: Vec<_> = samples
        .iter()
        .map(|guide| (guide.id.to_owned(), guide.text.to_owned()))
        .collect();
    for entry in std::fs::read_dir("tests/cases/gdl").unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if name.ends_with(".gdl") || name.ends_with(".gdl2.json") {
            guides.push((name, std::fs::read_to_string(path).unwrap()));
        }
    }
    guides
}

#[test]
fn printed_guides_are_read_again() {
    let json = |text: &str| -> Json { serde_json::from_str(text).unwrap() };
    let (mut from_json, mut from_odin) = (0, 0);
    for (name, text) in printed_guides() {
        let printed = gdl::print::json(&text).unwrap();
        if text.trim_start().starts_with('{') {
            assert_eq!(json(&printed), json(&text), "{name}");
            from_json += 1;
        } else {
            from_odin += 1;
        }
        // ODIN has no empty lists, so the texts differ; the corpus compares the guides themselves.
        let odin = gdl::print::odin(&text).unwrap();
        let problems = |text: &str| gdl::parse(text).unwrap().compile().problems.len();
        assert_eq!(problems(&odin), problems(&text), "{name}:\n{odin}");
    }
    assert!(from_json > 0 && from_odin > 0, "{from_json}, {from_odin}");
}

fn same(expected: &str, found: &str) -> bool {
    expected == found
        || !matches!(expected, "null" | "unknown" | "refused" | "true" | "false")
            && agrees(expected, &fixture::literal(found))
}

/// Returns the truth of an expression as a condition, or else its value in an assignment.
fn value_of(expression: &str, given: &[(String, Value)]) -> String {
    let elements = |names: &mut dyn Iterator<Item = String>| -> Map<String, Json> {
        names
            .map(|n| {
                (
                    n.clone(),
                    json!({"path": format!("/data[at0001]/items[{n}]")}),
                )
            })
            .collect()
    };
    let inputs = elements(
        &mut given
            .iter()
            .map(|(n, _)| n.clone())
            .chain(["nothing".into(), "nowhere".into()]),
    );
    let outputs = elements(&mut ["result".to_owned()].into_iter());
    let guide = json!({
        "id": "expression",
        "description": {"references": [{"label": "The paper", "url": "https://example.org/paper"}]},
        "definition": {
            "data_bindings": {
                "in": {"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "elements": inputs},
                "out": {"model_id": "openEHR-EHR-OBSERVATION.out.v1", "type": "OUTPUT", "elements": outputs}},
            "default_actions": [format!("$result={expression}")],
            "rules": {"r": {"priority": 1, "when": [expression]}},
        },
        "ontology": ontology(),
    });
    let guide = compiled(&guide);
    if guide.problems.iter().any(|p| p.code.starts_with("GDL02")) {
        return "refused".to_owned();
    }
    let run = run(&guide, &fixture::instances(&guide, given), NOW);
    let condition = &run.trace.as_ref().unwrap().rules[0].conditions[0];
    match (condition.result, run.value(&guide, "result")) {
        (Some(truth), _) => truth.to_string(),
        (None, Some(Value::Boolean(_)) | None) if is_condition(expression) => "unknown".to_owned(),
        (None, Some(Value::Quantity(q))) if q.precision.is_none() => q.magnitude.to_string(),
        (None, Some(value)) => text_form(value),
        (None, None) => "null".to_owned(),
    }
}

fn is_condition(expression: &str) -> bool {
    let text: String = expression.split('\'').step_by(2).collect();
    [
        "<", ">", "==", "!=", "&&", "||", "!", "is_a", "any", "for_all", "max(/",
    ]
    .iter()
    .any(|o| text.contains(o))
}

/// A case of `guides.txt`.
#[derive(Default)]
struct Case {
    line: usize,
    title: String,
    bindings: BTreeMap<String, (String, Vec<String>, Vec<String>)>,
    internal: Vec<Json>,
    pre_conditions: Vec<String>,
    defaults: Vec<String>,
    rules: Vec<(String, i64, Vec<String>, Vec<String>)>,
    data: Vec<(String, Vec<(String, String)>)>,
    expect: Vec<(String, String)>,
    fired: Option<String>,
    instances: BTreeMap<String, usize>,
    notes: Vec<String>,
    now: Option<String>,
}

fn statements(text: &str) -> Vec<String> {
    text.split(";;")
        .map(|s| s.trim().to_owned())
        .filter(|s| !s.is_empty())
        .collect()
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |s: String| {
        s.split_once('=')
            .map(|(a, b)| (a.trim().to_owned(), b.trim().to_owned()))
            .unwrap()
    };
    statements(text).into_iter().map(pair).collect()
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#'))
    {
        let (key, rest) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("line {}: no `:`", number + 1));
        let words: Vec<&str> = key.split_whitespace().collect();
        if words[0] == "case" {
            cases.push(Case {
                line: number + 1,
                title: rest.trim().to_owned(),
                ..Case::default()
            });
            continue;
        }
        let case = cases.last_mut().expect("a case comes first");
        match words[0] {
            "input" | "output" => {
                let elements = rest.split_whitespace().map(str::to_owned).collect();
                case.bindings.insert(
                    words[1].to_owned(),
                    (words[0].to_uppercase(), elements, Vec::new()),
                );
            }
            "predicate" => case
                .bindings
                .get_mut(words[1])
                .unwrap()
                .2
                .push(rest.trim().to_owned()),
            "internal" => case
                .internal
                .push(json!({"id": words[1], "data_type": rest.trim()})),
            "before" => case.pre_conditions = statements(rest),
            "default" => case.defaults = statements(rest),
            "rule" => {
                let (when, then) = rest.split_once("=>").unwrap();
                case.rules.push((
                    words[1].to_owned(),
                    words[2].parse().unwrap(),
                    statements(when),
                    statements(then),
                ));
            }
            "data" => case.data.push((words[1].to_owned(), pairs(rest))),
            "expect" => case.expect = pairs(rest),
            "fired" => case.fired = Some(rest.trim().to_owned()),
            "instances" => drop(
                case.instances
                    .insert(words[1].to_owned(), rest.trim().parse().unwrap()),
            ),
            "note" => case.notes.push(rest.trim().to_owned()),
            "now" => case.now = Some(rest.trim().to_owned()),
            other => panic!("line {}: `{other}`?", number + 1),
        }
    }
    cases
}

#[test]
fn guides_behave_as_their_cases_say() {
    let text = std::fs::read_to_string("tests/cases/gdl/guides.txt").unwrap();
    let wrong: Vec<String> = cases(&text)
        .iter()
        .flat_map(|case| case.problems())
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

impl Case {
    fn guide(&self) -> CompiledGuide {
        let binding = |(name, (direction, elements, predicates)): (
            &String,
            &(String, Vec<String>, Vec<String>),
        )| {
            let path = |e: &String| {
                if e == "time" {
                    "/data/events/time".to_owned()
                } else {
                    format!("/data[at0001]/items[{e}]")
                }
            };
            let elements: Map<String, Json> = elements
                .iter()
                .map(|e| (e.clone(), json!({"path": path(e)})))
                .collect();
            let model_id = format!(
                "openEHR-EHR-OBSERVATION.{}.v1",
                name.split('_').next().unwrap()
            );
            (
                name.clone(),
                json!({"model_id": model_id, "type": direction, "elements": elements, "predicates": predicates}),
            )
        };
        let rule = |(id, priority, when, then): &(String, i64, Vec<String>, Vec<String>)| {
            (
                id.clone(),
                json!({"id": id, "priority": priority, "when": when, "then": then}),
            )
        };
        compiled(&json!({
            "id": "case",
            "definition": {
                "data_bindings": self.bindings.iter().map(binding).collect::<Map<_, _>>(),
                "internal_variables": self.internal,
                "pre_conditions": self.pre_conditions,
                "default_actions": self.defaults,
                "rules": self.rules.iter().map(rule).collect::<Map<_, _>>(),
            },
            "ontology": ontology(),
        }))
    }

    fn problems(&self) -> Vec<String> {
        let guide = self.guide();
        let data: Vec<DataInstance> = self
            .data
            .iter()
            .map(|(model, values)| DataInstance {
                model_id: format!("openEHR-EHR-OBSERVATION.{model}.v1"),
                values: values
                    .iter()
                    .map(|(name, v)| (path_of(name), fixture::literal(v)))
                    .collect(),
            })
            .collect();
        let run = run(
            &guide,
            &guide.instances_of(&data),
            self.now.as_deref().unwrap_or(NOW),
        );
        let expects_unread = self.notes.iter().any(|n| n.contains("cannot be read"));
        let mut wrong: Vec<String> = guide
            .problems
            .iter()
            .filter(|p| p.code.starts_with("GDL02") && !expects_unread)
            .map(|p| p.message.clone())
            .collect();
        for (name, expected) in &self.expect {
            let found = run
                .value(&guide, name)
                .map_or("nothing".to_owned(), text_form);
            if !(expected == &found
                || run
                    .value(&guide, name)
                    .is_some_and(|v| expected != "nothing" && agrees(expected, v)))
            {
                wrong.push(format!("{name}: expected `{expected}`, found `{found}`"));
            }
        }
        let fired = run.fired.join(" ");
        if self.fired.as_ref().is_some_and(|f| *f != fired) {
            wrong.push(format!("fired: `{fired}`"));
        }
        for (binding, count) in &self.instances {
            let found = run.outputs.iter().filter(|o| *o.id == **binding).count();
            if found != *count {
                wrong.push(format!("{binding}: {found} instances instead of {count}"));
            }
        }
        let notes = &run.trace.as_ref().unwrap().notes;
        let is_silent = self.notes.iter().any(|note| note == "none");
        if is_silent && !notes.is_empty() {
            wrong.push(format!("notes: {notes:?}"));
        }
        wrong.extend(
            self.notes
                .iter()
                .filter(|n| {
                    !is_silent
                        && !notes.iter().any(|m| {
                            format!("{} `{}`: {}", m.place, m.statement, m.reason).contains(*n)
                        })
                })
                .map(|n| format!("no note `{n}` in {notes:?}")),
        );
        wrong
            .iter()
            .map(|w| format!("line {}: {}: {w}", self.line, self.title))
            .collect()
    }
}

fn path_of(name: &str) -> String {
    if name == "time" {
        "/data/events/time".to_owned()
    } else {
        let (code, attribute) = name.split_at(name.find('/').unwrap_or(name.len()));
        format!("/data[at0001]/items[{code}]{attribute}")
    }
}

pub(crate) fn file(name: &str) -> (String, CompiledGuide) {
    let text = std::fs::read_to_string(format!("tests/cases/gdl/{name}")).unwrap();
    let guide = gdl::parse(&text)
        .unwrap_or_else(|p| panic!("{}", p[0].one_line(&text)))
        .compile();
    (text, guide)
}

pub(crate) fn instance(model_id: &str, values: &[(&str, &str)]) -> DataInstance {
    let values = values
        .iter()
        .map(|(path, v)| ((*path).to_owned(), fixture::literal(v)))
        .collect();
    DataInstance {
        model_id: model_id.to_owned(),
        values,
    }
}

#[test]
fn cards_and_templates_are_filled() {
    let (_, guide) = file("statin_advice.gdl2.json");
    assert!(guide.problems.is_empty(), "{:?}", guide.problems);
    let path = "/data[at0001]/events[at0002]/data[at0003]/items[at0004]";
    let data = [
        instance(
            "openEHR-EHR-OBSERVATION.lipids_demo.v1",
            &[
                (path, "4.84,mmol/l"),
                ("/data/events/time", "2024-01-05T08:00:00Z"),
            ],
        ),
        instance(
            "openEHR-EHR-OBSERVATION.lipids_demo.v1",
            &[
                (path, "3.1,mmol/l"),
                ("/data/events/time", "2023-01-05T08:00:00Z"),
            ],
        ),
    ];
    let run = run(&guide, &guide.instances_of(&data), NOW);
    assert_eq!(run.fired.join(" "), "gt0020 gt0021");
    let card = serde_json::to_value(&run.cards[0]).unwrap();
    assert_eq!(card["summary"], "LDL cholesterol is 4.8 mmol/l");
    assert_eq!(card["detail"], "Goal: below 3;  is unknown");
    assert_eq!(
        card["source"],
        json!({"label": "Lipid guideline", "url": "https://example.org/lipids"})
    );
    assert_eq!(
        card["links"][0],
        json!({"label": "Lipid guideline", "url": "https://example.org/lipids", "type": "absolute"})
    );
    assert_eq!(
        card["suggestions"][0]["actions"][0]["resource"]["dosageInstruction"],
        json!([{"text": "40 mg daily", "value": 40}])
    );
    let objects: Vec<&Value> = run
        .outputs
        .iter()
        .filter(|o| &*o.id == "gt1002")
        .map(|o| &o.values[0].value)
        .collect();
    let expected =
        json!({"start": "2024-05-29T12:00:00+01:00", "note": ["Lipid guideline"], "none": null});
    let found = objects
        .iter()
        .map(|v| output::rm_json(v))
        .collect::<Vec<_>>();
    assert_eq!(found[0]["start"], expected["start"]);
    assert_eq!(found[0]["note"], expected["note"]);
    assert_eq!(found[0]["none"], expected["none"]);
    assert_eq!(objects.len(), 1 + 2, "one by itself, two by index");
    assert_eq!(
        found[1],
        json!({"start": "2024-01-01T00:00:00Z", "note": [], "all": [], "none": null})
    );
}

#[test]
fn the_instances_that_predicates_left_are_returned_on_request() {
    let input = json!({"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "predicates": ["/data[at0001]/items[a]>70,kg"],
        "elements": {"a": {"path": "/data[at0001]/items[a]"}}});
    let guide = compiled(
        &json!({"id": "input", "definition": {"data_bindings": {"in": input},
        "rules": {"r": {"priority": 1, "when": ["$a!=null"], "then": []}}}}),
    );
    let weights = ["80.5,kg", "65,kg", "71,kg"].map(|weight| {
        instance(
            "openEHR-EHR-OBSERVATION.in.v1",
            &[("/data[at0001]/items[a]", weight)],
        )
    });
    let returned = |include_input: bool| {
        let options = Options {
            include_input,
            ..Options::default()
        };
        let (instances, clock) = (
            guide.instances_of(&weights),
            Moment::parse(NOW, 0).unwrap().into(),
        );
        let run = guide
            .run(&RunInput {
                instances: &instances,
                clock,
                language: "en",
                options,
                terminology: None,
            })
            .unwrap();
        run.outputs
            .iter()
            .map(|o| format!("{} {}", o.id, text_form(&o.values[0].value)))
            .collect::<Vec<_>>()
    };
    assert_eq!(returned(true), ["in 80.5,kg", "in 71,kg"]);
    assert!(returned(false).is_empty());
}

/// Constructs that no published fixture contains have cases of our own.
#[test]
fn unpublished_constructs_have_two_hundred_cases() {
    let read = |name: &str| std::fs::read_to_string(format!("tests/cases/gdl/{name}")).unwrap();
    let count = |text: &str, titles: &[&str], is_case: fn(&str) -> bool| -> usize {
        let sections = text.split("\n# -- ").filter(|section| {
            section
                .lines()
                .next()
                .is_some_and(|title| titles.contains(&title))
        });
        let found: Vec<usize> = sections
            .map(|section| section.lines().filter(|line| is_case(line)).count())
            .collect();
        assert_eq!(found.len(), titles.len(), "{titles:?}");
        found.iter().sum()
    };
    let expressions = count(
        &read("expressions.txt"),
        &[
            "unknown",
            "the tables of three values",
            "points in time",
            "leap years, the ends of months, changes of the clock",
            "codes",
            "what falls under a term",
            "lists of one",
            "the greater and the lesser",
        ],
        |line| line.contains("=>"),
    );
    let guides = count(
        &read("guides.txt"),
        &["many instances", "create", "the calendar"],
        |line| line.starts_with("case:"),
    );
    let templates = read("templates.txt").matches("\ncase:").count();
    assert!(
        expressions + guides + templates >= 200,
        "{expressions} expressions, {guides} guides, {templates} templates and cards"
    );
}

#[test]
fn bindings_become_queries_and_rows_instances() {
    let (_, guide) = file("chain_advice.gdl");
    let queries = guide.queries();
    assert_eq!(queries.len(), 1, "OUTPUT bindings are not asked for");
    let expected = "SELECT o/protocol[at0001]/items[at0003]/value, o/data/events/time, c/uid/value FROM EHR e[ehr_id/value=$ehr_id] \
                    CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.score_demo.v1] \
                    WHERE c/archetype_details/template_id/value='Scores'";
    assert_eq!(queries[0].aql, expected);
    assert!(aqlite::aql::parse(&queries[0].aql).1.is_empty());
    assert!(aqlite::aql::parse(&queries[0].population_aql).1.is_empty());
    let row = |score: &str, time: &str| {
        let cells = [
            format!(r#"{{"_type":"DV_COUNT","magnitude":{score}}}"#),
            format!(r#"{{"_type":"DV_DATE_TIME","value":"{time}"}}"#),
            "\"u::s::1\"".into(),
        ];
        cells.iter().map(|c| value_of_json(c)).collect::<Vec<_>>()
    };
    let rows = [
        row("9", "2024-01-02T00:00:00Z"),
        row("1", "2024-01-01T00:00:00Z"),
        row("7", "2025-01-01T00:00:00Z"),
    ];
    let instances = queries[0].instances(rows, Moment::parse(NOW, 0).unwrap());
    assert_eq!(
        instances
            .iter()
            .map(|i| text_form(&i.values[0]))
            .collect::<Vec<_>>(),
        ["1", "9"],
        "by time, the future left out"
    );
    let run = run(&guide, &[instances], NOW);
    assert_eq!(
        run.value(&guide, "gt0007").map(text_form).as_deref(),
        Some("refer")
    );
    let trace = serde_json::to_value(run.trace.as_ref().unwrap()).unwrap();
    let values = json!([{"variable": "gt0005", "path": "/protocol[at0001]/items[at0003]", "value": "9"},
        {"path": "/data/events/time", "value": "2024-01-02T00:00:00Z"}]);
    assert_eq!(
        trace["inputs"][0]["used"],
        json!([{"composition": "u::s::1", "time": "2024-01-02T00:00:00Z", "values": values}])
    );
    assert_eq!(trace["rules"][0]["set"][0]["value"], "refer");
    assert_eq!(
        trace["rules"][0]["conditions"][0]["variables"][0],
        json!({"variable": "gt0005", "name": "Score", "value": "9"})
    );
    let queries = vec![output::QueryRun {
        id: "gt0004".into(),
        aql: queries[0].aql.clone(),
        time: 1.0,
        value: vec![("gt0005".into(), Value::Count(9))],
    }];
    let response = output::response(
        &guide,
        vec![output::EhrRun {
            ehr_id: "e1".into(),
            run,
            queries,
        }],
        2.0,
    );
    let response = serde_json::to_value(&response).unwrap();
    let details = &response["execution_details"];
    assert_eq!(details["rules_executed"], json!(["gt0008"]));
    assert_eq!(
        [
            &details["number_of_in_arguments"],
            &details["number_of_out_arguments"],
            &details["number_of_constants"]
        ],
        [1, 1, 2]
    );
    assert_eq!(
        details["query_execution_details"]["queries"][0]["value"],
        json!({"gt0005": {"_type": "DV_COUNT", "magnitude": 9}})
    );
    let result = json!([{"archetype_id": "openEHR-EHR-EVALUATION.advice_demo.v1", "_ehr_id": "e1",
        "rm_values": [{"path": "/data[at0001]/items[at0002]", "value": {"_type": "DV_TEXT", "value": "refer"}}]}]);
    assert_eq!(response["results"], result);
}

#[test]
fn a_terminology_from_outside_decides_first() {
    struct Snomed;
    impl Terminology for Snomed {
        fn subsumes(&self, terminology: &str, ancestor: &str, code: &str) -> Option<bool> {
            (terminology == "ATC").then_some(ancestor == "C10AA" && code == "X1")
        }
    }
    let given = [("drug".to_owned(), Value::coded("ATC(2024)", "X1", ""))];
    let guide = compiled(&json!({"id": "t", "definition": {
        "data_bindings": {"in": {"model_id": "m", "type": "INPUT", "elements": {"drug": {"path": "/a"}}}},
        "rules": {"r": {"priority": 1, "when": ["$drug is_a local::gt2002|Statin|"]}}}, "ontology": ontology()}));
    let instances = fixture::instances(&guide, &given);
    let now = Moment::parse(NOW, 0).unwrap();
    let with = |terminology| {
        guide
            .run(&RunInput {
                instances: &instances,
                clock: now.into(),
                language: "en",
                options: Options::default(),
                terminology,
            })
            .unwrap()
            .fired
            .len()
    };
    assert_eq!(
        (with(None), with(Some(&Snomed as &dyn Terminology))),
        (0, 1)
    );
}
