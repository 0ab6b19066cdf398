//! Guides: read, compiled, run.

use crate::measure::{GUIDES, allocated, assert_time, processor_time};
use crate::random::Random;
use aqlite::gdl::{
    self, CompiledGuide, Exceeded, Limit, Limits, Options, Run, RunInput, fixture, suite::Suite,
    time::Moment,
};
use serde_json::{Value, json};

fn now() -> Moment {
    Moment::parse("2026-01-01T12:00:00Z", 0).unwrap()
}

/// Returns a guide with one rule of these actions.
fn guide(actions: &[String]) -> Value {
    let element = |id: &str| {
        (
            id.to_owned(),
            json!({"path": format!("/data[at0001]/items[{id}]")}),
        )
    };
    let elements = |ids: &[&str]| {
        ids.iter()
            .map(|id| element(id))
            .collect::<serde_json::Map<String, Value>>()
    };
    json!({"id": "bomb.v1", "definition": {
        "data_bindings": {
            "gt0002": {"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "elements": elements(&["gt0003", "gt0004"])},
            "gt0005": {"model_id": "openEHR-EHR-OBSERVATION.out.v1", "type": "OUTPUT", "elements": elements(&["gt0006", "gt0007", "gt0008"])}},
        "templates": {"gt0009": {"name": "n", "model_id": "Task", "template_id": "t", "object": {"text": "{$gt0006} and {$gt0006}", "all": ["{$gt0006.all}", "{$gt0007.all}"]}}},
        "rules": {"gt0010": {"priority": 1, "when": [], "then": actions,
            "cards": [{"summary": "{$gt0006}", "detail": "{$gt0006}{$gt0006}{$gt0006}", "indicator": "info", "source": {"label": "s"}}]}}},
        "ontology": {"term_definitions": {"en": {"terms": {"gt0010": {"text": "Grow"}}}}}})
}

fn compiled(text: &str) -> CompiledGuide {
    let guide = gdl::parse(text)
        .unwrap_or_else(|p| panic!("{}", p[0].one_line(text)))
        .compile();
    let unread: Vec<String> = guide
        .problems
        .iter()
        .filter(|p| p.code.starts_with("GDL02"))
        .map(|p| p.one_line(text))
        .collect();
    assert!(unread.is_empty(), "{unread:?}");
    guide
}

fn run(guide: &CompiledGuide, given: usize) -> Result<Run, Exceeded> {
    let values = [
        (
            "/data[at0001]/items[gt0003]".to_owned(),
            fixture::literal("a text of some length"),
        ),
        (
            "/data[at0001]/items[gt0004]".to_owned(),
            fixture::literal("72.5,kg"),
        ),
    ];
    let instance = gdl::DataInstance {
        model_id: String::from("openEHR-EHR-OBSERVATION.in.v1"),
        values: values.to_vec(),
    };
    let instances = guide.instances_of(&vec![instance; given]);
    let options = Options {
        trace: true,
        ..Options::default()
    };
    guide.run(&RunInput {
        instances: &instances,
        clock: now().into(),
        language: "en",
        options,
        terminology: None,
    })
}

fn doubling(times: usize) -> Vec<String> {
    std::iter::once(String::from("$gt0006='ten bytes.'"))
        .chain((0..times).map(|_| String::from("$gt0006=$gt0006+$gt0006")))
        .collect()
}

fn repeated(first: &[&str], again: &str, times: usize) -> Vec<String> {
    first
        .iter()
        .map(|s| (*s).to_owned())
        .chain((0..times).map(|_| again.to_owned()))
        .collect()
}

/// Returns a guide with a card that shows a text of 40,960 bytes, made of `ten` bytes, 100 times.
fn repeating_card(ten: &str) -> Value {
    let mut actions = doubling(12);
    actions[0] = format!("$gt0006='{ten}'");
    let mut guide = guide(&actions);
    guide["definition"]["rules"]["gt0010"]["cards"][0]["detail"] = "{$gt0006}".repeat(100).into();
    guide
}

/// The guides that exceed a limit: name, guide, instances, limit.
fn bombs() -> Vec<(&'static str, Value, usize, Option<Limit>)> {
    let quantified = format!(
        "$gt0007=any[$gt0003](any[$gt0004]({}))",
        ["$gt0003=='x'"; 20].join(" || ")
    );
    vec![
        (
            "a text that doubles 26 times",
            guide(&doubling(26)),
            1,
            Some(Limit::Text),
        ),
        (
            "a text that doubles 30 times",
            guide(&doubling(30)),
            1,
            Some(Limit::Text),
        ),
        (
            "a text that grows within its limit",
            guide(&doubling(12)),
            1,
            None,
        ),
        (
            "a long text that is kept many times",
            guide(
                &repeated(&["$gt0007='x'"], "$gt0006=$gt0006+$gt0007", 0)
                    .into_iter()
                    .chain(doubling(16))
                    .chain(repeated(&[], "$gt0007=$gt0006", 200))
                    .collect::<Vec<_>>(),
            ),
            1,
            Some(Limit::Bytes),
        ),
        (
            "a template that repeats a list",
            guide(
                &doubling(12)
                    .into_iter()
                    .chain(repeated(&[], "use_template($gt0009)", 400))
                    .collect::<Vec<_>>(),
            ),
            1,
            Some(Limit::Bytes),
        ),
        (
            "instances that are created again and again",
            guide(
                &doubling(12)
                    .into_iter()
                    .chain(repeated(
                        &[],
                        "$gt0005.create($gt0007=$gt0006;$gt0008=$gt0006)",
                        3_000,
                    ))
                    .collect::<Vec<_>>(),
            ),
            1,
            Some(Limit::Bytes),
        ),
        (
            "a card that repeats a text",
            repeating_card("ten bytes."),
            1,
            None,
        ),
        (
            "a card that repeats a text of which Markdown makes six times as many bytes",
            repeating_card(&"\"".repeat(10)),
            1,
            Some(Limit::Bytes),
        ),
        (
            "a quantifier inside of another",
            guide(&[quantified]),
            3_000,
            Some(Limit::Statement),
        ),
        (
            "numbers that grow",
            guide(&repeated(
                &["$gt0007.magnitude=10"],
                "$gt0007.magnitude=$gt0007.magnitude^2",
                100,
            )),
            1,
            None,
        ),
        (
            "durations beyond every calendar",
            guide(&repeated(
                &[],
                "$gt0007=$currentDateTime+999999999999999999,a",
                100,
            )),
            1,
            None,
        ),
    ]
}

fn named_bombs() {
    for (what, guide, given, limit) in bombs() {
        let text = guide.to_string();
        let mut ended = None;
        GUIDES.check(what, text.len(), || {
            ended = run(&compiled(&text), given).err()
        });
        assert_eq!(ended.as_ref().map(|e| e.limit), limit, "{what}: {ended:?}");
        if let Some(exceeded) = ended {
            assert!(
                exceeded.to_string().contains("bomb.v1")
                    && exceeded.code().starts_with("GDL060")
                    && !exceeded.help().is_empty(),
                "{exceeded}"
            );
        }
    }
    let ended = run(&compiled(&guide(&doubling(26)).to_string()), 1).unwrap_err();
    assert_eq!(
        (ended.place.as_str(), ended.statement.as_str(), ended.code()),
        ("rule gt0010", "$gt0006=$gt0006+$gt0006", "GDL0601")
    );
}

/// The caller sets the limits, and a later run has what an earlier one left.
fn limits_are_those_of_the_caller() {
    let guide = compiled(&guide(&doubling(10)).to_string());
    let run = |limits: Limits| {
        let options = Options {
            limits,
            ..Options::default()
        };
        guide.run(&RunInput {
            instances: &[],
            clock: now().into(),
            language: "en",
            options,
            terminology: None,
        })
    };
    let spent = run(Limits::default()).unwrap().spent;
    assert!(
        run(Limits {
            text: 10_240,
            bytes: spent.bytes,
            steps: spent.steps
        })
        .is_ok()
    );
    assert_eq!(
        run(Limits {
            text: 10_239,
            ..Limits::default()
        })
        .unwrap_err()
        .limit,
        Limit::Text
    );
    assert_eq!(
        run(Limits {
            bytes: spent.bytes - 1,
            ..Limits::default()
        })
        .unwrap_err()
        .limit,
        Limit::Bytes
    );
    assert_eq!(
        run(Limits {
            steps: spent.steps - 1,
            ..Limits::default()
        })
        .unwrap_err()
        .limit,
        Limit::Steps
    );
    let left = Limits::default().without(spent);
    assert_eq!(
        (left.bytes, left.steps),
        (
            Limits::default().bytes - spent.bytes,
            Limits::default().steps - spent.steps
        )
    );
}

/// Texts that are expensive to read, not to run.
fn long_texts() {
    let rules = |count: usize| -> String {
        (0..count)
            .map(|i| format!("\"gt{i:05}\": {{\"priority\": {i}, \"when\": [\"$gt0003=={i}\"], \"then\": [\"$gt0006.magnitude={i}\"]}}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    let texts = [
        (
            "many rules and constants",
            format!(
                "{{\"id\": \"x\", \"definition\": {{\"rules\": {{{}}}}}}}",
                rules(20_000)
            ),
        ),
        (
            "brackets inside one another",
            guide(&[format!(
                "$gt0006={}1{}",
                "(".repeat(100_000),
                ")".repeat(100_000)
            )])
            .to_string(),
        ),
        ("lists inside one another", "[".repeat(1_000_000)),
        ("blocks inside one another", "a = <".repeat(200_000)),
        (
            "one condition of many",
            guide(&[format!(
                "$gt0007={}",
                vec!["$gt0003=='x'"; 50_000].join(" || ")
            )])
            .to_string(),
        ),
        (
            "many members with one name",
            format!(
                "{{\"id\": \"x\", \"definition\": {{{}}}}}",
                "\"rules\": {},".repeat(50_000).trim_end_matches(',')
            ),
        ),
    ];
    for (what, text) in texts.into_iter().chain(unknown_members()) {
        GUIDES.check(what, text.len(), || {
            if let Ok(guide) = gdl::parse(&text) {
                let _ = run(&guide.compile(), 1);
            }
        });
    }
    let yaml = format!(
        "guidelines:\n  \"1\": bomb.v1\ntest_cases:\n{}",
        (0..20_000)
            .map(|i| format!("- id: case {i}\n  input:\n    \"1\":\n      gt0003: x\n"))
            .collect::<String>()
    );
    GUIDES.check("a fixture with many cases", yaml.len(), || {
        drop(Suite::read(&yaml))
    });
    let keys = format!(
        "guidelines:\n  \"1\": bomb.v1\ntest_cases:\n- id: x\n  input:\n    \"1\":\n{}",
        (0..20_000)
            .map(|i| format!("      gt{i}: x\n"))
            .collect::<String>()
    );
    GUIDES.check("a fixture with many keys", keys.len(), || {
        drop(Suite::read(&keys))
    });
}

/// Guides with members that guides do not have. Each is compared with the known names.
fn unknown_members() -> [(&'static str, String); 3] {
    let unknown = |count: usize, name: &str| {
        let members = (0..count).map(|i| format!("\"{name}{i}\":1"));
        members.collect::<Vec<_>>().join(",")
    };
    let in_definition = |members: String| format!("{{\"id\":\"x\",\"definition\":{{{members}}}}}");
    let in_rule = format!("\"rules\":{{\"r\":{{{}}}}}", unknown(90_000, "prior"));
    [
        (
            "a definition with unknown members",
            in_definition(unknown(150_000, "k")),
        ),
        (
            "a definition with members that resemble known ones",
            in_definition(unknown(90_000, "rule")),
        ),
        ("a rule with unknown members", in_definition(in_rule)),
    ]
}

/// Returns `count` rules with conditions and actions by number.
fn numbered_rules(
    count: usize,
    when: &dyn Fn(usize) -> Value,
    then: &dyn Fn(usize) -> Value,
) -> Value {
    let rules: serde_json::Map<String, Value> = (0..count)
        .map(|i| {
            let rule = json!({"priority": i, "when": when(i), "then": then(i)});
            (format!("gt{}", 10_000 + i), rule)
        })
        .collect();
    rules.into()
}

/// Returns the text of a guide with these rules, terms and further members of the definition.
fn guide_with(rules: Value, terms: Value, more: Value) -> String {
    let mut guide = guide(&[]);
    guide["definition"]["rules"] = rules;
    guide["ontology"]["term_definitions"] = terms;
    for (name, value) in more.as_object().into_iter().flatten() {
        guide["definition"][name.as_str()] = value.clone();
    }
    guide.to_string()
}

fn numbered_terms(count: usize) -> Value {
    let term = |i: usize| {
        (
            format!("gt{}", 10_000 + i),
            json!({"text": format!("Term {i}")}),
        )
    };
    json!({"en": {"terms": (0..count).map(term).collect::<serde_json::Map<_, _>>()}})
}

/// Returns a binding with thousands of elements, and as many predicates on them in reverse order.
fn binding_with_predicates() -> Value {
    let paths = |i: usize| json!({"path": format!("/data[at0001]/events[at0006]/data[at0003]/items[at{i}]")});
    let elements = (0..9_000).map(|i| (format!("gt3{i}"), paths(i)));
    let predicate = |i: usize| {
        format!(
            "/data[at0001]/events[at0006]/data[at0003]/items[at{}]/value/magnitude>1",
            8_999 - i
        )
    };
    json!({"data_bindings": {"gt0001": {
        "model_id": "openEHR-EHR-OBSERVATION.x.v1", "type": "INPUT",
        "elements": elements.collect::<serde_json::Map<_, _>>(),
        "predicates": (0..9_000).map(predicate).collect::<Vec<_>>()}}})
}

/// Guides whose check needs many lookups, or finds many problems.
fn guides_that_are_hard_to_check() -> [(&'static str, String); 6] {
    let nothing = |_: usize| json!([]);
    let labels = |i: usize| {
        let read = |k: usize| format!("$gt{}|Term {}|==1", 10_000 + i * 9 + k, i * 9 + k);
        json!((0..9).map(read).collect::<Vec<_>>())
    };
    [
        (
            "malformed rules",
            guide_with(
                numbered_rules(1_900, &|_| json!(["((((((("]), &|_| {
                    json!(["$$$$ == =", "abc".repeat(200)])
                }),
                json!({}),
                json!({}),
            ),
        ),
        (
            "labels of thousands of terms",
            guide_with(
                numbered_rules(2_000, &labels, &nothing),
                numbered_terms(18_000),
                json!({}),
            ),
        ),
        (
            "a long term that thousands of labels contradict",
            guide_with(
                numbered_rules(
                    1_900,
                    &|_| json!(["$gt0003|x|==1", "$gt0003|y|==1"]),
                    &nothing,
                ),
                json!({"en": {"terms": {"gt0003": {"text": "x".repeat(1_000_000)}}}}),
                json!({}),
            ),
        ),
        (
            "predicates of thousands of paths",
            guide_with(json!({}), json!({}), binding_with_predicates()),
        ),
        (
            "a condition of many demands on one variable",
            guide_with(
                numbered_rules(
                    1,
                    &|_| json!([vec!["$gt0003.magnitude>1"; 60_000].join("&&")]),
                    &nothing,
                ),
                json!({}),
                json!({}),
            ),
        ),
        (
            "units of thousands of variables in one rule",
            guide_with(
                numbered_rules(1, &nothing, &|_| {
                    json!(
                        (0..18_000)
                            .map(|i| format!("$gt5{i}.unit='kg'"))
                            .collect::<Vec<_>>()
                    )
                }),
                json!({}),
                json!({}),
            ),
        ),
    ]
}

/// Lookups during the check of a guide use indexes, and its problems are bounded.
fn hard_to_check() {
    for (what, text) in guides_that_are_hard_to_check() {
        let started = processor_time();
        let mut problems = 0;
        let bytes = allocated(|| {
            let compiled = gdl::parse(&text).map(|guide| guide.compile());
            problems = compiled.map_or(0, |guide| guide.problems.len());
        });
        let time = processor_time().saturating_sub(started);
        if std::env::var_os("AQLITE_WORK_FIGURES").is_some() {
            println!(
                "{what}: {} bytes, {bytes} allocated, {time:?}, {problems} problems",
                text.len()
            );
        }
        assert!(
            bytes < 100 * text.len() + 50_000_000,
            "{what}: {bytes} bytes for {}",
            text.len()
        );
        assert_time(what, time, std::time::Duration::from_secs(10));
        assert!(problems <= gdl::guide::MAX_PROBLEMS, "{what}: {problems}");
    }
    let sum = format!("$gt0006={}", ["1"; 900].join("+"));
    let sums = numbered_rules(900, &|_| json!([]), &|_| json!([sum]));
    let text = json!({"id": "x.v1", "definition": {"rules": sums}}).to_string();
    // The expressions up to the limit of 200,000 bytes are parsed, and a node of one byte takes a
    // hundred.
    refused_with_few_bytes(&text, 50_000_000);
    let link = json!({"label_reference": "$ref[1].label"});
    let mut guide = guide(&[]);
    guide["description"] = json!({"references": [{"label": "x".repeat(500_000), "url": "u"}]});
    guide["definition"]["rules"]["gt0010"]["cards"][0]["links"] = json!(vec![link; 20_000]);
    refused_with_few_bytes(&guide.to_string(), 200_000_000);
}

/// Checks that a guide is refused as too large, and that less than `most` bytes are allocated.
fn refused_with_few_bytes(text: &str, most: usize) {
    let bytes = allocated(|| {
        let refused = gdl::parse(text).map(drop).unwrap_err();
        assert_eq!(refused.first().map(|p| p.code), Some("GDL0604"));
    });
    assert!(bytes < most, "{bytes} bytes");
}

fn random_guides() {
    const STATEMENTS: [&str; 14] = [
        "$gt0006=$gt0006+$gt0006",
        "$gt0006=$gt0006+$gt0007",
        "$gt0007=$gt0006+$gt0003",
        "$gt0008=$gt0008+$gt0008+$gt0008+'.'",
        "$gt0008=$gt0006+'x'",
        "$gt0007.magnitude=$gt0004.magnitude*$gt0007.magnitude",
        "$gt0007.unit='a unit'",
        "$gt0006.code=$gt0008",
        "$gt0006=$gt0003",
        "$gt0005.create($gt0006=$gt0008;$gt0007=$gt0006+$gt0006)",
        "use_template($gt0009)",
        "$gt0007=any($gt0003=='x')",
        "$gt0007=$gt0003.count^$gt0003.count^$gt0003.count",
        "$gt0008=$gt0006.string+$gt0004.string",
    ];
    let mut random = Random::new(9);
    let mut ended = 0;
    for round in 0..150 {
        let first = ["$gt0006='a text'", "$gt0007='b'", "$gt0008='another one'"].map(str::to_owned);
        let actions: Vec<String> = first
            .into_iter()
            .chain((0..random.below(200)).map(|_| random.pick(&STATEMENTS).to_owned()))
            .collect();
        let (text, given) = (guide(&actions).to_string(), random.below(200));
        GUIDES.check(&format!("round {round}"), text.len(), || {
            ended += usize::from(run(&compiled(&text), given).is_err())
        });
    }
    assert!(
        (5..150).contains(&ended),
        "both kinds of guides are tried: {ended} ended early"
    );
}

/// Runs a guide with one rule on instances of these literals, with conversion of units.
fn run_on_literals(when: &[String], bindings: Value, literals: &[String]) -> Result<Run, Exceeded> {
    let mut guide = guide(&[]);
    guide["definition"]["rules"]["gt0010"]["when"] = json!(when);
    guide["ontology"]["term_bindings"] = bindings;
    let guide = compiled(&guide.to_string());
    let instance = |literal: &String| gdl::DataInstance {
        model_id: String::from("openEHR-EHR-OBSERVATION.in.v1"),
        values: vec![(
            "/data[at0001]/items[gt0003]".to_owned(),
            fixture::literal(literal),
        )],
    };
    let instances: Vec<gdl::DataInstance> = literals.iter().map(instance).collect();
    guide.run(&RunInput {
        instances: &guide.instances_of(&instances),
        clock: now().into(),
        language: "en",
        options: Options {
            convert_units: true,
            ..Options::default()
        },
        terminology: None,
    })
}

/// A conversion of units counts as work, and a pair of units is parsed once in a run.
fn conversions_of_units() {
    let conversions = |times: usize| {
        let all = vec!["for_all($gt0003<5,kg)"; times].join("&&");
        let grams = vec![String::from("1000,g"); 1_000];
        let run = run_on_literals(&[all], json!({}), &grams).unwrap();
        assert_eq!(run.fired.len(), 1);
        run.spent.steps
    };
    let (few, many) = (conversions(10), conversions(50));
    assert!(many > 50 * 1_000 * 50, "{many} steps");
    // The first of the 10,000 conversions parses the units, and no other.
    assert!(few * 5 - many < 20_000, "{few} and {many} steps");
    let unit = |i: usize| format!("1,{}m{i}", "m40.s-40.g40.".repeat(7));
    let units: Vec<String> = (0..1_000).map(unit).collect();
    let condition = [String::from("for_all($gt0003<5,kg)")];
    let ended = run_on_literals(&condition, json!({}), &units).unwrap_err();
    assert_eq!(ended.limit, Limit::Statement, "units that differ");
}

/// The codes of the data times those of the guide are neither kept nor free.
fn codes_of_many_terms() {
    let codes: Vec<String> = (0..5_000).map(|i| format!("SNOMED-CT::{i}")).collect();
    let bindings = json!({"SNOMED-CT": {"bindings": {"gt0020": {"codes": codes}}}});
    let condition = "any($gt0003 is_a local::gt0020|Statin|)";
    let mut guide = guide(&[]);
    guide["definition"]["rules"]["gt0010"]["when"] = json!([condition]);
    guide["ontology"]["term_bindings"] = bindings.clone();
    let guide = compiled(&guide.to_string());
    let literals: Vec<String> = (0..2_000)
        .map(|i| format!("SNOMED-CT::x{i}|drug|"))
        .collect();
    let values: Vec<_> = literals.iter().map(|l| fixture::literal(l)).collect();
    let mut asked = 0;
    let bytes = allocated(|| {
        let questions = guide.subsumptions(&values);
        asked = questions.ancestors().count();
    });
    assert_eq!(asked, 5_000);
    assert!(bytes < 5_000_000, "{bytes} bytes");
    let ended = run_on_literals(&[condition.to_owned()], bindings, &literals).unwrap_err();
    assert_eq!(ended.limit, Limit::Statement, "codes that are compared");
}

pub fn all() {
    conversions_of_units();
    codes_of_many_terms();
    limits_are_those_of_the_caller();
    named_bombs();
    long_texts();
    hard_to_check();
    random_guides();
}
