//! Guides by example: `tests/cases/gdl/expressions.txt`, `guides.txt` and the guides with templates and cards beside them.

use aqlite::aql::{Budget, Cell, Found, Parameter, Plan, QueryOptions, ResultSet, prepare};
use aqlite::document::{Batch, DocRow, EhrRow, NothingKnown, ObjectKind, Shapes, pack};
use aqlite::gdl::fixture::{self, agrees, text_form};
use aqlite::gdl::stored::{Reader, value_of_json};
use aqlite::gdl::time::Moment;
use aqlite::gdl::value::Value;
use aqlite::gdl::{self, CompiledGuide, DataInstance, Instance, Options, Run, RunInput, Terminology, output};
use aqlite::rm::class::Cls;
use aqlite::samples::Generator;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

const NOW: &str = "2024-02-29T12:00:00+01:00";

pub(crate) fn compiled(guide: &Json) -> CompiledGuide {
    let text = guide.to_string();
    gdl::parse(&text).unwrap_or_else(|p| panic!("{}", p[0].one_line(&text))).compile()
}

pub(crate) fn run(guide: &CompiledGuide, instances: &[Vec<Instance>], now: &str) -> Run {
    let options = Options { trace: true, ..Options::default() };
    guide.run(&RunInput { instances, clock: Moment::parse(now, 0).unwrap().into(), language: "en", options, terminology: None }).unwrap()
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
    let lines = || text.lines().enumerate().map(|(i, l)| (i + 1, l.trim())).filter(|(_, l)| !l.is_empty() && !l.starts_with('#'));
    let given = lines().filter_map(|(_, l)| l.strip_prefix("given ")).map(|l| l.split_once('=').unwrap());
    let given: Vec<(String, Value)> = given.map(|(name, v)| (name.trim().to_owned(), fixture::literal(v))).collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for (number, line) in lines().filter(|(_, l)| !l.starts_with("given ")) {
        let (expression, expected) = line.rsplit_once("=>").unwrap();
        let found = value_of(expression.trim(), &given);
        count += 1;
        if !same(expected.trim(), &found) {
            wrong.push(format!("line {number}: `{}`: expected `{}`, found `{found}`", expression.trim(), expected.trim()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 200, "{count}");
}

fn same(expected: &str, found: &str) -> bool {
    expected == found || !matches!(expected, "null" | "unknown" | "refused" | "true" | "false") && agrees(expected, &fixture::literal(found))
}

/// The truth of an expression as a condition, or else its value when it is assigned.
fn value_of(expression: &str, given: &[(String, Value)]) -> String {
    let elements = |names: &mut dyn Iterator<Item = String>| -> Map<String, Json> {
        names.map(|n| (n.clone(), json!({"path": format!("/data[at0001]/items[{n}]")}))).collect()
    };
    let inputs = elements(&mut given.iter().map(|(n, _)| n.clone()).chain(["nothing".into(), "nowhere".into()]));
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
    ["<", ">", "==", "!=", "&&", "||", "!", "is_a", "any", "for_all", "max(/"].iter().any(|o| text.contains(o))
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
    text.split(";;").map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect()
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |s: String| s.split_once('=').map(|(a, b)| (a.trim().to_owned(), b.trim().to_owned())).unwrap();
    statements(text).into_iter().map(pair).collect()
}

fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty() && !l.starts_with('#')) {
        let (key, rest) = line.split_once(':').unwrap_or_else(|| panic!("line {}: no `:`", number + 1));
        let words: Vec<&str> = key.split_whitespace().collect();
        if words[0] == "case" {
            cases.push(Case { line: number + 1, title: rest.trim().to_owned(), ..Case::default() });
            continue;
        }
        let case = cases.last_mut().expect("a case comes first");
        match words[0] {
            "input" | "output" => {
                let elements = rest.split_whitespace().map(str::to_owned).collect();
                case.bindings.insert(words[1].to_owned(), (words[0].to_uppercase(), elements, Vec::new()));
            }
            "predicate" => case.bindings.get_mut(words[1]).unwrap().2.push(rest.trim().to_owned()),
            "internal" => case.internal.push(json!({"id": words[1], "data_type": rest.trim()})),
            "before" => case.pre_conditions = statements(rest),
            "default" => case.defaults = statements(rest),
            "rule" => {
                let (when, then) = rest.split_once("=>").unwrap();
                case.rules.push((words[1].to_owned(), words[2].parse().unwrap(), statements(when), statements(then)));
            }
            "data" => case.data.push((words[1].to_owned(), pairs(rest))),
            "expect" => case.expect = pairs(rest),
            "fired" => case.fired = Some(rest.trim().to_owned()),
            "instances" => drop(case.instances.insert(words[1].to_owned(), rest.trim().parse().unwrap())),
            "note" => case.notes.push(rest.trim().to_owned()),
            "now" => case.now = Some(rest.trim().to_owned()),
            other => panic!("line {}: `{other}`?", number + 1),
        }
    }
    cases
}

#[test]
fn guides_do_as_told() {
    let text = std::fs::read_to_string("tests/cases/gdl/guides.txt").unwrap();
    let wrong: Vec<String> = cases(&text).iter().flat_map(|case| case.problems()).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

impl Case {
    fn guide(&self) -> CompiledGuide {
        let binding = |(name, (direction, elements, predicates)): (&String, &(String, Vec<String>, Vec<String>))| {
            let path = |e: &String| if e == "time" { "/data/events/time".to_owned() } else { format!("/data[at0001]/items[{e}]") };
            let elements: Map<String, Json> = elements.iter().map(|e| (e.clone(), json!({"path": path(e)}))).collect();
            let model_id = format!("openEHR-EHR-OBSERVATION.{}.v1", name.split('_').next().unwrap());
            (name.clone(), json!({"model_id": model_id, "type": direction, "elements": elements, "predicates": predicates}))
        };
        let rule = |(id, priority, when, then): &(String, i64, Vec<String>, Vec<String>)| {
            (id.clone(), json!({"id": id, "priority": priority, "when": when, "then": then}))
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
                values: values.iter().map(|(name, v)| (path_of(name), fixture::literal(v))).collect(),
            })
            .collect();
        let run = run(&guide, &guide.instances_of(&data), self.now.as_deref().unwrap_or(NOW));
        let mut wrong: Vec<String> = guide.problems.iter().filter(|p| p.code.starts_with("GDL02")).map(|p| p.message.clone()).collect();
        for (name, expected) in &self.expect {
            let found = run.value(&guide, name).map_or("nothing".to_owned(), text_form);
            if !(expected == &found || run.value(&guide, name).is_some_and(|v| expected != "nothing" && agrees(expected, v))) {
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
        wrong.extend(
            self.notes
                .iter()
                .filter(|n| !notes.iter().any(|m| format!("{} `{}`: {}", m.place, m.statement, m.reason).contains(*n)))
                .map(|n| format!("no note `{n}` in {notes:?}")),
        );
        wrong.iter().map(|w| format!("line {}: {}: {w}", self.line, self.title)).collect()
    }
}

fn path_of(name: &str) -> String {
    if name == "time" { "/data/events/time".to_owned() } else { format!("/data[at0001]/items[{name}]") }
}

fn file(name: &str) -> (String, CompiledGuide) {
    let text = std::fs::read_to_string(format!("tests/cases/gdl/{name}")).unwrap();
    let guide = gdl::parse(&text).unwrap_or_else(|p| panic!("{}", p[0].one_line(&text))).compile();
    (text, guide)
}

fn instance(model_id: &str, values: &[(&str, &str)]) -> DataInstance {
    let values = values.iter().map(|(path, v)| ((*path).to_owned(), fixture::literal(v))).collect();
    DataInstance { model_id: model_id.to_owned(), values }
}

#[test]
fn cards_and_templates_are_filled() {
    let (_, guide) = file("statin_advice.gdl2.json");
    assert!(guide.problems.is_empty(), "{:?}", guide.problems);
    let path = "/data[at0001]/events[at0002]/data[at0003]/items[at0004]";
    let data = [
        instance("openEHR-EHR-OBSERVATION.lipids_demo.v1", &[(path, "4.84,mmol/l"), ("/data/events/time", "2024-01-05T08:00:00Z")]),
        instance("openEHR-EHR-OBSERVATION.lipids_demo.v1", &[(path, "3.1,mmol/l"), ("/data/events/time", "2023-01-05T08:00:00Z")]),
    ];
    let run = run(&guide, &guide.instances_of(&data), NOW);
    assert_eq!(run.fired.join(" "), "gt0020 gt0021");
    let card = serde_json::to_value(&run.cards[0]).unwrap();
    assert_eq!(card["summary"], "LDL cholesterol is 4.8 mmol/l");
    assert_eq!(card["detail"], "Goal: below 3; {$gt0099} is unknown");
    assert_eq!(card["source"], json!({"label": "Lipid guideline", "url": "https://example.org/lipids"}));
    assert_eq!(card["links"][0], json!({"label": "Lipid guideline", "url": "https://example.org/lipids", "type": "absolute"}));
    assert_eq!(card["suggestions"][0]["actions"][0]["resource"]["dosageInstruction"], json!([{"text": "40 mg daily", "value": 40}]));
    let objects: Vec<&Value> = run.outputs.iter().filter(|o| &*o.id == "gt1002").map(|o| &o.values[0].value).collect();
    let expected = json!({"start": "2024-05-29T12:00:00+01:00", "note": ["Lipid guideline"], "none": null});
    let found = objects.iter().map(|v| output::rm_json(v)).collect::<Vec<_>>();
    assert_eq!(found[0]["start"], expected["start"]);
    assert_eq!(found[0]["note"], expected["note"]);
    assert_eq!(found[0]["none"], expected["none"]);
    assert_eq!(objects.len(), 1 + 2, "one by itself, two by index");
    assert_eq!(found[1], json!({"start": "2024-01-01T00:00:00Z", "note": [], "all": [], "none": null}));
}

#[test]
fn a_chain_of_guides_passes_results_on() {
    let (_, score) = file("chain_score.gdl2.json");
    let (_, advice) = file("chain_advice.gdl");
    let data = [instance("openEHR-EHR-OBSERVATION.answers_demo.v1", &[("/data[at0001]/items[at0002]", "3|local::at0010|Often|")])];
    let first = run(&score, &score.instances_of(&data), NOW);
    let mut instances = advice.instances_of(&data);
    advice.feed(&mut instances, &first.outputs, Moment::parse(NOW, 0).unwrap());
    let second = run(&advice, &instances, NOW);
    assert_eq!(second.value(&advice, "gt0007").map(text_form).as_deref(), Some("refer"));
}

#[test]
fn a_resource_that_a_guide_made_is_read_by_the_next() {
    let resource = |id: &str, start: &str, code: &str| {
        let coding = json!([{"system": "ATC", "code": code, "display": "a drug"}]);
        json!({"id": id, "model_id": "Plan", "object": {"id": id, "start": start, "count": 3, "open": true, "for": {"coding": coding}}})
    };
    let first = compiled(&json!({"id": "first", "definition": {
        "data_bindings": {},
        "templates": {"first": resource("first", "{$currentDateTime}", "C10AA01"), "second": resource("second", "2013-04-20", "C09AA05")},
        "rules": {"r": {"priority": 1, "when": [], "then": ["use_template($first)", "use_template($second)"]}}}}));
    let bound = |predicates: Json| {
        json!({"model_id": "Plan", "type": "INPUT", "predicates": predicates, "elements": {
            "start": {"path": "/start"}, "count": {"path": "/count"}, "open": {"path": "/open"}, "drug": {"path": "/for/coding[0]"}}})
    };
    let chosen = |predicates: Json| {
        let out = json!({"model_id": "Out", "type": "OUTPUT", "elements": {
            "when": {"path": "/a"}, "many": {"path": "/b"}, "is": {"path": "/c"}, "what": {"path": "/d"}}});
        let next = compiled(&json!({"id": "next", "ontology": ontology(), "definition": {
            "data_bindings": {"in": bound(predicates), "out": out},
            "rules": {"r": {"priority": 1, "when": ["$start!=null"], "then": ["$when=$start", "$many=$count", "$is=$open", "$what=$drug"]}}}}));
        let mut instances = next.instances_of(&[]);
        next.feed(&mut instances, &run(&first, &[], NOW).outputs, Moment::parse(NOW, 0).unwrap());
        let run = run(&next, &instances, NOW);
        ["when", "many", "is", "what"].map(|code| run.value(&next, code).map_or("nothing".to_owned(), text_form))
    };
    let second = ["2013-04-20", "3", "true", "ATC::C09AA05|a drug|"];
    assert_eq!(chosen(json!([])), second, "the last is read");
    assert_eq!(chosen(json!(["/id=='second'"])), second);
    assert_eq!(chosen(json!(["/for/coding[0] is_a local::gt2001|ACE inhibitor|"])), second);
    assert_eq!(chosen(json!(["max(/start)"]))[3], "ATC::C10AA01|a drug|");
    assert_eq!(chosen(json!(["min(/start)"])), second);
    assert_eq!(chosen(json!(["/id=='third'"])), ["nothing"; 4]);
}

#[test]
fn the_instances_that_predicates_left_are_returned_on_request() {
    let input = json!({"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "predicates": ["/data[at0001]/items[a]>70,kg"],
        "elements": {"a": {"path": "/data[at0001]/items[a]"}}});
    let guide = compiled(&json!({"id": "input", "definition": {"data_bindings": {"in": input},
        "rules": {"r": {"priority": 1, "when": ["$a!=null"], "then": []}}}}));
    let weights = ["80.5,kg", "65,kg", "71,kg"].map(|weight| instance("openEHR-EHR-OBSERVATION.in.v1", &[("/data[at0001]/items[a]", weight)]));
    let returned = |include_input: bool| {
        let options = Options { include_input, ..Options::default() };
        let (instances, clock) = (guide.instances_of(&weights), Moment::parse(NOW, 0).unwrap().into());
        let run = guide.run(&RunInput { instances: &instances, clock, language: "en", options, terminology: None }).unwrap();
        run.outputs.iter().map(|o| format!("{} {}", o.id, text_form(&o.values[0].value))).collect::<Vec<_>>()
    };
    assert_eq!(returned(true), ["in 80.5,kg", "in 71,kg"]);
    assert!(returned(false).is_empty());
}

/// What no published fixture shows stands in cases of our own.
#[test]
fn what_no_published_fixture_shows_has_two_hundred_cases() {
    let read = |name: &str| std::fs::read_to_string(format!("tests/cases/gdl/{name}")).unwrap();
    let count = |text: &str, titles: &[&str], is_case: fn(&str) -> bool| -> usize {
        let sections = text.split("\n# -- ").filter(|section| section.lines().next().is_some_and(|title| titles.contains(&title)));
        let found: Vec<usize> = sections.map(|section| section.lines().filter(|line| is_case(line)).count()).collect();
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
    let guides = count(&read("guides.txt"), &["many instances", "create", "the calendar"], |line| line.starts_with("case:"));
    let templates = read("templates.txt").matches("\ncase:").count();
    assert!(expressions + guides + templates >= 200, "{expressions} expressions, {guides} guides, {templates} templates and cards");
}

#[test]
fn bindings_become_queries_and_rows_instances() {
    let (_, guide) = file("chain_advice.gdl");
    let queries = guide.queries();
    assert_eq!(queries.len(), 1, "OUTPUT bindings are not asked for");
    let expected = "SELECT o/data[at0001]/items[at0003]/value, o/data/events/time, c/uid/value FROM EHR e[ehr_id/value=$ehr_id] \
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
    let rows = [row("9", "2024-01-02T00:00:00Z"), row("1", "2024-01-01T00:00:00Z"), row("7", "2025-01-01T00:00:00Z")];
    let instances = queries[0].instances(rows, Moment::parse(NOW, 0).unwrap());
    assert_eq!(instances.iter().map(|i| text_form(&i.values[0])).collect::<Vec<_>>(), ["1", "9"], "by time, the future left out");
    let run = run(&guide, &[instances], NOW);
    assert_eq!(run.value(&guide, "gt0007").map(text_form).as_deref(), Some("refer"));
    let trace = serde_json::to_value(run.trace.as_ref().unwrap()).unwrap();
    let values = json!([{"variable": "gt0005", "path": "/data[at0001]/items[at0003]", "value": "9"},
        {"path": "/data/events/time", "value": "2024-01-02T00:00:00Z"}]);
    assert_eq!(trace["inputs"][0]["used"], json!([{"composition": "u::s::1", "time": "2024-01-02T00:00:00Z", "values": values}]));
    assert_eq!(trace["rules"][0]["set"][0]["value"], "refer");
    assert_eq!(trace["rules"][0]["conditions"][0]["variables"][0], json!({"variable": "gt0005", "name": "Score", "value": "9"}));
    let queries =
        vec![output::QueryRun { id: "gt0004".into(), aql: queries[0].aql.clone(), time: 1.0, value: vec![("gt0005".into(), Value::Count(9))] }];
    let response = output::response(&guide, vec![output::EhrRun { ehr_id: "e1".into(), run, queries }], 2.0);
    let response = serde_json::to_value(&response).unwrap();
    let details = &response["execution_details"];
    assert_eq!(details["rules_executed"], json!(["gt0008"]));
    assert_eq!([&details["number_of_in_arguments"], &details["number_of_out_arguments"], &details["number_of_constants"]], [1, 1, 2]);
    assert_eq!(details["query_execution_details"]["queries"][0]["value"], json!({"gt0005": {"_type": "DV_COUNT", "magnitude": 9}}));
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
    let given = [("drug".to_owned(), Value::coded("ATC", "X1", ""))];
    let guide = compiled(&json!({"id": "t", "definition": {
        "data_bindings": {"in": {"model_id": "m", "type": "INPUT", "elements": {"drug": {"path": "/a"}}}},
        "rules": {"r": {"priority": 1, "when": ["$drug is_a local::gt2002|Statin|"]}}}, "ontology": ontology()}));
    let instances = fixture::instances(&guide, &given);
    let now = Moment::parse(NOW, 0).unwrap();
    let with = |terminology| {
        guide
            .run(&RunInput { instances: &instances, clock: now.into(), language: "en", options: Options::default(), terminology })
            .unwrap()
            .fired
            .len()
    };
    assert_eq!((with(None), with(Some(&Snomed as &dyn Terminology))), (0, 1));
}

#[test]
fn broken_guides_say_where() {
    let places = [
        ("{", "line 1, column 2"),
        ("[1,2]", "not a guide"),
        ("{\"resourceType\": \"Patient\"}", "not a guide"),
        ("(GUIDE) <\n id = <\"x\n>", "line 2, column 8"),
        ("(GUIDE) <\n id = <5>\n definition = 5", "line 3, column 15"),
        ("", "not a guide"),
    ];
    for (text, expected) in places {
        let problems = gdl::parse(text).unwrap_err();
        let lines: Vec<String> = problems.iter().map(|p| p.one_line(text)).collect();
        assert!(lines.iter().any(|l| l.contains(expected)), "{text}: {lines:?}");
    }
    let (text, _) = file("chain_score.gdl2.json");
    let broken = text.replace("$gt0003!=null", "$gt0003 != = null");
    let guide = gdl::parse(&broken).unwrap().compile();
    let problem = guide.problems.iter().find(|p| p.code == "GDL0201").unwrap();
    assert_eq!(broken.get(problem.span.start..).map(|t| &t[..6]), Some("= null"));
    assert!(guide.problems.iter().any(|p| p.code == "GDL0404"), "{:?}", guide.problems);
    let unknown = gdl::parse(&text.replace("\"$gt0003!=null", "\"$gt0033!=null")).unwrap().compile();
    assert!(unknown.problems.iter().any(|p| p.code == "GDL0401" && p.message.contains("gt0033")));
    let typed = text.replace("\"path\": \"/data[at0001]/items[at0003]\"", "\"path\": \"/data[at0001]/items[at0003]\", \"data_type\": \"DV_BOOLEAN\"");
    let typed = gdl::parse(&typed).unwrap().compile();
    assert!(typed.problems.iter().any(|p| p.code == "GDL0405" && p.message.contains("gt0005")), "{:?}", typed.problems);
}

/// Any damage to a guide ends in problems or in a run, never in a panic.
#[test]
fn damaged_guides_do_not_panic() {
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed % 1_000_003).unwrap() % n
    };
    let pieces = ["\"", "|", "(", ")", "'", "$", "<", ">", "=", "\\", "\u{e9}", "9e999", "null", "/", "[", "]", "{", "}", ",", "max(", "any[", "::"];
    for name in ["statin_advice.gdl2.json", "chain_score.gdl2.json", "chain_advice.gdl"] {
        let (text, _) = file(name);
        for _ in 0..300 {
            let mut chars: Vec<char> = text.chars().collect();
            for _ in 0..1 + next(4) {
                let at = next(chars.len());
                match next(3) {
                    0 => drop(chars.remove(at)),
                    1 => chars.splice(at..at, pieces[next(pieces.len())].chars()).for_each(drop),
                    _ => chars[at] = pieces[next(pieces.len())].chars().next().unwrap(),
                }
            }
            let damaged: String = chars.into_iter().collect();
            match gdl::parse(&damaged) {
                Ok(guide) => {
                    let guide = guide.compile();
                    guide.problems.iter().for_each(|p| drop(p.one_line(&damaged)));
                    drop(run(&guide, &guide.instances_of(&[]), NOW));
                }
                Err(problems) => problems.iter().for_each(|p| drop(p.one_line(&damaged))),
            }
        }
    }
}

/// The generated data in one batch, as a repository keeps it.
fn batch(generator: &Generator) -> Batch {
    let (mut batch, shapes) = (Batch::new(), Shapes::new());
    for ehr in 0..generator.ehrs() {
        let sample = generator.ehr(ehr);
        let row = EhrRow {
            ehr_id: sample.ehr_id,
            system_id: "test".into(),
            time_created: "2012-01-01T00:00:00Z".into(),
            is_queryable: sample.is_queryable,
        };
        let ehr_row = batch.add_ehr(row);
        for index in generator.compositions_of(ehr) {
            let sample = generator.composition(index);
            add_composition(&mut batch, ehr_row, index, sample.uid, &sample.json, &shapes);
        }
    }
    batch
}

/// Adds a composition in its first version.
pub(crate) fn add_composition(batch: &mut Batch, ehr: u32, number: usize, uid: String, json: &str, shapes: &Shapes) {
    let version = format!(r#"{{"_type":"ORIGINAL_VERSION","uid":{{"value":"{uid}::test::1"}},"data":{json}}}"#);
    let tree = aqlite::rm::json::read(&version, Cls::VERSION).unwrap_or_else(|f| panic!("{}", f[0].one_line()));
    let packed = pack(tree.root().unwrap(), &NothingKnown, shapes);
    let ordinal = u64::try_from(number).unwrap();
    batch.add(ehr, DocRow { kind: ObjectKind::Composition, object_id: uid, number: 1, ordinal, latest: true, deleted: false }, &packed);
}

/// The rows of a query, as guides read them where they are stored: the values of the cells that the same query writes.
pub(crate) fn rows(aql: &str, ehr_id: Option<&str>, batch: &Batch) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut reader = Reader::default();
    each(aql, ehr_id, batch, &mut |row| rows.push(row.iter().map(|value| reader.value(*value)).collect::<Vec<Value>>()));
    let written = asked(aql, ehr_id, &mut |run| assert!(run.push(batch)));
    let value = |cell: Cell<&str>| {
        let mut json = String::new();
        cell.write_json(&mut json);
        value_of_json(&json)
    };
    assert_eq!(rows, written.rows().map(|row| row.iter().map(value).collect::<Vec<Value>>()).collect::<Vec<_>>(), "{aql}");
    rows
}

fn each(aql: &str, ehr_id: Option<&str>, batch: &Batch, visit: &mut dyn FnMut(&[Found<'_>])) {
    assert!(asked(aql, ehr_id, &mut |run| assert!(run.push_each(batch, visit))).is_empty());
}

fn asked(aql: &str, ehr_id: Option<&str>, push: &mut dyn FnMut(&mut aqlite::aql::Run<'_>)) -> ResultSet {
    run_plan(&plan(aql, ehr_id), push)
}

fn plan(aql: &str, ehr_id: Option<&str>) -> Plan {
    let parameters = ehr_id.map(|id| ("ehr_id".to_owned(), Parameter::Text(id.to_owned()))).into_iter().collect();
    prepare(aql, &parameters, &QueryOptions { ehr: ehr_id, ..QueryOptions::default() }).unwrap_or_else(|p| panic!("{}", p[0].one_line(aql)))
}

fn run_plan(plan: &Plan, push: &mut dyn FnMut(&mut aqlite::aql::Run<'_>)) -> ResultSet {
    let go_on = || false;
    let mut run = aqlite::aql::Run::new(plan, "2030-01-01T00:00:00Z", Budget::default(), &go_on);
    push(&mut run);
    run.finish().unwrap()
}

/// What a guide reads of these EHRs, queryable or not, in one pass.
fn population_of<'g>(guide: &'g CompiledGuide, ehrs: &[String], batch: &Batch, now: Moment) -> gdl::Population<'g> {
    let mut population = gdl::Population::new(guide, now, Options { trace: true, ..Options::default() });
    let queries: Vec<String> = population.queries().iter().map(|query| query.population_aql.clone()).collect();
    for (index, query) in queries.iter().enumerate() {
        run_plan(&plan(query, None).among(ehrs), &mut |run| assert!(run.push_each(batch, &mut |row| population.add(index, row))));
    }
    population
}

/// From generated compositions through the queries of a guide to its results, beside the independent truth; all EHRs in
/// one pass, and some, give what each gives alone.
#[test]
fn a_guide_runs_on_generated_records() {
    let generator = Generator::new(11, 40, 600);
    let batch = batch(&generator);
    let now = Moment::parse("2030-01-01T00:00:00Z", 0).unwrap();
    let (mut with_value, mut fired) = (0, 0);
    for sample in aqlite::samples::guides() {
        let guide = gdl::parse(sample.text).unwrap().compile();
        let queries = guide.queries();
        let mut population = gdl::Population::new(&guide, now, Options { trace: true, ..Options::default() });
        for (index, query) in queries.iter().enumerate() {
            each(&query.population_aql, None, &batch, &mut |row| population.add(index, row));
        }
        let ids: Vec<String> = (0..generator.ehrs()).map(|ehr| generator.ehr(ehr).ehr_id).collect();
        let some = [1, 3, 17].map(|step| ids.iter().step_by(step).cloned().collect::<Vec<String>>());
        let mut named = some.each_ref().map(|ehrs| population_of(&guide, ehrs, &batch, now));
        named.iter().zip(&some).for_each(|(population, ehrs)| assert!(population.ehr_ids().iter().all(|id| ehrs.contains(id))));
        for ehr in 0..generator.ehrs() {
            let id = generator.ehr(ehr).ehr_id;
            let mut instances = vec![Vec::new(); guide.guide().bindings.len()];
            for query in &queries {
                instances[query.binding] = query.instances(rows(&query.aql, Some(&id), &batch), now);
            }
            if generator.ehr(ehr).is_queryable {
                assert_eq!(population.instances(&id), instances, "{id}");
            }
            for (population, _) in named.iter_mut().zip(&some).filter(|(_, ehrs)| ehrs.contains(&id)) {
                assert_eq!(population.instances(&id), instances, "{id} among others");
            }
            let run = run(&guide, &instances, "2030-01-01T00:00:00Z");
            fired += run.fired.len();
            if sample.id == "Sample_blood_pressure_category.v1" {
                let expected = generator.latest_blood_pressure(ehr).and_then(|p| p.2);
                assert_eq!(run.value(&guide, "gt0003").and_then(Value::number), expected, "systolic of {id}");
                with_value += usize::from(expected.is_some());
            }
        }
    }
    assert!(with_value > 10 && fired > 40, "{with_value} {fired}");
}

/// A guide with two weights in its data, and a rule with a condition.
fn weights(condition: &str) -> CompiledGuide {
    let element = |code: &str| json!({"path": format!("/data[at0001]/items[{code}]")});
    compiled(&json!({"id": "weights", "definition": {
        "data_bindings": {
            "in": {"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "elements": {"a": element("a"), "b": element("b")}},
            "out": {"model_id": "openEHR-EHR-OBSERVATION.out.v1", "type": "OUTPUT", "elements": {"x": element("x")}}},
        "rules": {"r": {"priority": 1, "when": [condition], "then": ["$x.magnitude=1"]}}}}))
}

#[test]
fn units_are_converted_only_where_the_caller_asks_for_it() {
    let fired = |condition: &str, a: &str, b: &str, convert_units: bool| {
        let guide = weights(condition);
        let values = [("/data[at0001]/items[a]", a), ("/data[at0001]/items[b]", b)];
        let options = Options { convert_units, ..Options::default() };
        let instances = guide.instances_of(&[instance("openEHR-EHR-OBSERVATION.in.v1", &values)]);
        let clock = Moment::parse(NOW, 0).unwrap().into();
        let run = guide.run(&RunInput { instances: &instances, clock, language: "en", options, terminology: None }).unwrap();
        (!run.fired.is_empty(), run.notes.iter().map(|n| n.reason.clone()).collect::<Vec<_>>().join("; "))
    };
    let told = |text: &str| (false, text.to_owned());
    for (condition, a, b, plain, converted) in [
        ("$a>$b", "0.5,kg", "400,g", told("the units differ: `kg` and `g`"), (true, String::new())),
        ("$a==$b", "1,m", "100,cm", told("the units differ: `m` and `cm`"), (true, String::new())),
        ("$a!=$b", "1,m", "101,cm", told("the units differ: `m` and `cm`"), (true, String::new())),
        ("$a<=37,Cel", "98.6,[degF]", "0,1", told("the units differ: `[degF]` and `Cel`"), (true, String::new())),
        ("!($a<$b)", "1,kg", "1,cm", told("the units differ: `kg` and `cm`"), told("the units differ: `kg` and `cm`")),
        ("$a>$b", "5,kg", "4,box", told("the units differ: `kg` and `box`"), told("the units differ: `kg` and `box`")),
        ("$a>$b", "40,d", "1,mo", (true, String::new()), (true, String::new())),
        ("max($a,$b)==$a", "1,kg", "999,g", told("the units differ: `kg` and `g`"), (true, String::new())),
    ] {
        assert_eq!((fired(condition, a, b, false), fired(condition, a, b, true)), (plain, converted), "{condition} {a} {b}");
    }
}

#[test]
fn queries_of_a_run_that_converts_units_leave_no_unit_out() {
    let guide = compiled(&json!({"id": "pushed", "definition": {"data_bindings": {
        "in": {"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "predicates": ["/data[at0001]/items[at0002]/value > 70,kg"],
            "elements": {"a": {"path": "/data[at0001]/items[at0002]"}}}}, "rules": {}}}));
    let now = Moment::parse(NOW, 0).unwrap();
    let aql = |convert_units: bool| guide.queries_for(now, &Options { convert_units, ..Options::default() })[0].aql.clone();
    assert!(aql(false).contains("'kg'") && !aql(true).contains("'kg'"), "{}\n{}", aql(false), aql(true));
}
