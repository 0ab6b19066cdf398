//! Guides on generated records, and on rows whose units are converted.

use crate::gdl::{NOW, compiled, instance, run};
use aqlite::aql::{Budget, Cell, Parameter, Plan, QueryOptions, ResultSet, RowVisit, prepare};
use aqlite::document::{Batch, DocRow, EhrRow, LayoutStore, NothingKnown, ObjectKind, pack};
use aqlite::gdl::stored::{ValueReader, value_of_json};
use aqlite::gdl::time::Moment;
use aqlite::gdl::value::Value;
use aqlite::gdl::{self, CompiledGuide, Options, RunInput};
use aqlite::rm::class::Cls;
use aqlite::samples::Generator;
use serde_json::json;

/// Returns the generated data in one batch, as a repository stores them.
pub(crate) fn batch(generator: &Generator) -> Batch {
    let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
    for ehr in 0..generator.ehrs() {
        let sample = generator.ehr(ehr);
        let row = EhrRow {
            is_queryable: sample.is_queryable,
            ..ehr_row(&sample.ehr_id)
        };
        let ehr_row = batch.add_ehr(row);
        for index in generator.compositions_of(ehr) {
            let sample = generator.composition(index);
            add_composition(
                &mut batch,
                ehr_row,
                index,
                sample.uid,
                &sample.json,
                &layouts,
            );
        }
    }
    batch
}

/// Returns the row of an EHR that queries may read.
pub(crate) fn ehr_row(ehr_id: &str) -> EhrRow {
    EhrRow {
        ehr_id: ehr_id.into(),
        system_id: "test".into(),
        time_created: "2012-01-01T00:00:00Z".into(),
        is_queryable: true,
    }
}

/// Adds a composition in its first version.
pub(crate) fn add_composition(
    batch: &mut Batch,
    ehr: u32,
    number: usize,
    uid: String,
    json: &str,
    layouts: &LayoutStore,
) {
    let version = format!(
        r#"{{"_type":"ORIGINAL_VERSION","uid":{{"value":"{uid}::test::1"}},"data":{json}}}"#
    );
    let tree = aqlite::rm::json::read(&version, Cls::VERSION)
        .unwrap_or_else(|f| panic!("{}", f[0].one_line()));
    let packed = pack(tree.root().unwrap(), &NothingKnown, layouts);
    let ordinal = u64::try_from(number).unwrap();
    batch.add(
        ehr,
        DocRow {
            kind: ObjectKind::Composition,
            object_id: uid,
            number: 1,
            ordinal,
            latest: true,
            deleted: false,
        },
        &packed,
    );
}

/// Returns the rows of a query in the form in which guides read them. They are the values of the
/// cells that the same query writes.
pub(crate) fn rows(aql: &str, ehr_id: Option<&str>, batch: &Batch) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut reader = ValueReader::default();
    each(aql, ehr_id, batch, &mut |_, row| {
        rows.push(
            row.iter()
                .map(|value| reader.value(*value))
                .collect::<Vec<Value>>(),
        )
    });
    let written = asked(aql, ehr_id, &mut |run| assert!(run.push(batch)));
    let value = |cell: Cell<&str>| {
        let mut json = String::new();
        cell.write_json(&mut json);
        value_of_json(&json)
    };
    assert_eq!(
        rows,
        written
            .rows()
            .map(|row| row.iter().map(value).collect::<Vec<Value>>())
            .collect::<Vec<_>>(),
        "{aql}"
    );
    rows
}

fn each(aql: &str, ehr_id: Option<&str>, batch: &Batch, visit: RowVisit<'_>) {
    assert!(asked(aql, ehr_id, &mut |run| assert!(run.push_each(batch, visit))).is_empty());
}

fn asked(
    aql: &str,
    ehr_id: Option<&str>,
    push: &mut dyn FnMut(&mut aqlite::aql::Run<'_>),
) -> ResultSet {
    run_plan(&plan(aql, ehr_id), push)
}

pub(crate) fn plan(aql: &str, ehr_id: Option<&str>) -> Plan {
    let parameters = ehr_id
        .map(|id| ("ehr_id".to_owned(), Parameter::Text(id.to_owned())))
        .into_iter()
        .collect();
    prepare(
        aql,
        &parameters,
        &QueryOptions {
            ehr: ehr_id,
            ..QueryOptions::default()
        },
    )
    .unwrap_or_else(|p| panic!("{}", p[0].one_line(aql)))
}

fn run_plan(plan: &Plan, push: &mut dyn FnMut(&mut aqlite::aql::Run<'_>)) -> ResultSet {
    let go_on = || false;
    let mut run = aqlite::aql::Run::new(plan, "2030-01-01T00:00:00Z", Budget::default(), &go_on);
    push(&mut run);
    run.finish().unwrap()
}

/// Reads the data of a guide about these EHRs, queryable or not, in one pass.
fn population_of<'g>(
    guide: &'g CompiledGuide,
    ehrs: &[String],
    batch: &Batch,
    now: Moment,
) -> gdl::Population<'g> {
    let mut population = gdl::Population::new(
        guide,
        now,
        Options {
            trace: true,
            ..Options::default()
        },
    );
    let queries: Vec<String> = population
        .queries()
        .iter()
        .map(|query| query.population_aql.clone())
        .collect();
    for (index, query) in queries.iter().enumerate() {
        run_plan(&plan(query, None).among(ehrs), &mut |run| {
            assert!(run.push_each(batch, &mut |at, row| population.add(index, at, row)))
        });
    }
    population
}

/// Runs a guide on generated compositions through its queries and compares the results with an
/// independent truth. One pass over all EHRs, or some, must equal separate runs.
#[test]
fn a_guide_runs_on_generated_records() {
    let generator = Generator::new(11, 40, 600);
    let batch = batch(&generator);
    let now = Moment::parse("2030-01-01T00:00:00Z", 0).unwrap();
    let (mut with_value, mut fired) = (0, 0);
    for sample in aqlite::samples::guides() {
        let guide = gdl::parse(sample.text).unwrap().compile();
        let queries = guide.queries();
        let mut population = gdl::Population::new(
            &guide,
            now,
            Options {
                trace: true,
                ..Options::default()
            },
        );
        for (index, query) in queries.iter().enumerate() {
            each(&query.population_aql, None, &batch, &mut |at, row| {
                population.add(index, at, row)
            });
        }
        let ids: Vec<String> = (0..generator.ehrs())
            .map(|ehr| generator.ehr(ehr).ehr_id)
            .collect();
        let some =
            [1, 3, 17].map(|step| ids.iter().step_by(step).cloned().collect::<Vec<String>>());
        let mut named = some
            .each_ref()
            .map(|ehrs| population_of(&guide, ehrs, &batch, now));
        named.iter().zip(&some).for_each(|(population, ehrs)| {
            assert!(population.ehr_ids().iter().all(|id| ehrs.contains(id)))
        });
        for ehr in 0..generator.ehrs() {
            let id = generator.ehr(ehr).ehr_id;
            let mut instances = vec![Vec::new(); guide.guide().bindings.len()];
            for query in &queries {
                instances[query.binding] =
                    query.instances(rows(&query.aql, Some(&id), &batch), now);
            }
            if generator.ehr(ehr).is_queryable {
                assert_eq!(population.instances(&id).unwrap(), instances, "{id}");
            }
            for (population, _) in named
                .iter_mut()
                .zip(&some)
                .filter(|(_, ehrs)| ehrs.contains(&id))
            {
                assert_eq!(
                    population.instances(&id).unwrap(),
                    instances,
                    "{id} among others"
                );
            }
            let run = run(&guide, &instances, "2030-01-01T00:00:00Z");
            fired += run.fired.len();
            if sample.id == "Sample_blood_pressure_category.v1" {
                let expected = generator
                    .latest_blood_pressure(ehr)
                    .and_then(|p| p.systolic);
                assert_eq!(
                    run.value(&guide, "gt0003").and_then(Value::number),
                    expected,
                    "systolic of {id}"
                );
                with_value += usize::from(expected.is_some());
            }
        }
    }
    assert!(with_value > 10 && fired > 40, "{with_value} {fired}");
}

/// Returns a guide that reads two weights, with a rule for a condition.
fn weights(condition: &str) -> CompiledGuide {
    let element = |code: &str| json!({"path": format!("/data[at0001]/items[{code}]")});
    compiled(&json!({"id": "weights", "definition": {
        "data_bindings": {
            "in": {"model_id": "openEHR-EHR-OBSERVATION.in.v1", "type": "INPUT", "elements": {"a": element("a"), "b": element("b")}},
            "out": {"model_id": "openEHR-EHR-OBSERVATION.out.v1", "type": "OUTPUT", "elements": {"x": element("x")}}},
        "rules": {"r": {"priority": 1, "when": [condition], "then": ["$x.magnitude=1"]}}}}))
}

/// Runs a guide on two EHRs whose compositions repeat two elements within one occurrence.
#[test]
fn each_element_of_the_data_counts_once() {
    let element = |code: &str, magnitude: u32| {
        let value = json!({"_type": "DV_COUNT", "magnitude": magnitude});
        json!({"_type": "ELEMENT", "archetype_node_id": code, "name": {"value": code}, "value": value})
    };
    let composition = |uid: &str| {
        let a = [1, 2, 2].map(|n| element("at0002", n));
        let b = [10, 20].map(|n| element("at0003", n));
        let items: Vec<_> = a.into_iter().chain(b).collect();
        let evaluation = json!({"_type": "EVALUATION", "archetype_node_id": "openEHR-EHR-EVALUATION.a.v1",
            "name": {"value": "a"}, "data": {"_type": "ITEM_TREE", "archetype_node_id": "at0001",
                "name": {"value": "t"}, "items": items}});
        json!({"_type": "COMPOSITION", "archetype_node_id": "openEHR-EHR-COMPOSITION.c.v1",
            "uid": {"_type": "OBJECT_VERSION_ID", "value": uid}, "name": {"value": "c"}, "content": [evaluation]})
    };
    let path = |code: &str| json!({"path": format!("/data[at0001]/items[{code}]")});
    let guide = |predicates: serde_json::Value| {
        compiled(&json!({"id": "counts", "definition": {
            "data_bindings": {
                "in": {"model_id": "openEHR-EHR-EVALUATION.a.v1", "type": "INPUT", "predicates": predicates,
                    "elements": {"a": path("at0002"), "b": path("at0003")}},
                "out": {"model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT",
                    "elements": {"x": path("x"), "y": path("y"), "z": path("z")}}},
            "rules": {"r": {"priority": 1, "then":
                ["$x.magnitude=$a.count*1000+$a.sum", "$y.magnitude=$b.count*1000+$b.sum", "$z.magnitude=$b"]}}}}))
    };
    let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
    for ehr_id in ["one", "two"] {
        let ehr = batch.add_ehr(ehr_row(ehr_id));
        for number in 0..2 {
            let uid = format!("{ehr_id}-{number}");
            let json = composition(&format!("{uid}::test::1")).to_string();
            add_composition(&mut batch, ehr, number, uid, &json, &layouts);
        }
    }
    let now = Moment::parse("2030-01-01T00:00:00Z", 0).unwrap();
    for (predicates, expected) in [
        (json!([]), [6_010, 4_060, 20]),
        (
            json!(["/data[at0001]/items[at0003] > 10"]),
            [6_010, 2_040, 20],
        ),
    ] {
        let guide = guide(predicates);
        let ids = ["one", "two"].map(String::from);
        let mut population = population_of(&guide, &ids, &batch, now);
        for id in &ids {
            let run = run(&guide, &population.instances(id).unwrap(), NOW);
            let found = ["x", "y", "z"].map(|code| run.value(&guide, code).and_then(Value::number));
            assert_eq!(found, expected.map(|n: u16| Some(f64::from(n))), "{id}");
        }
    }
}

/// Copies data values of an element to results, by assignment and by `create`.
#[test]
fn a_copy_is_the_same_value() {
    let values = [
        json!({"_type": "DV_DATE", "value": "2020-05"}),
        json!({"_type": "DV_DATE_TIME", "value": "2020-05-01T10:00:00.123456+02:00"}),
        json!({"_type": "DV_QUANTITY", "magnitude": 5.5, "units": "mg", "magnitude_status": "<"}),
        json!({"_type": "DV_COUNT", "magnitude": 9_007_199_254_740_993_i64}),
        json!({"_type": "DV_EHR_URI", "value": "ehr:/a"}),
        json!({"_type": "DV_PARSABLE", "value": "x", "formalism": "text/plain"}),
        json!({"_type": "DV_IDENTIFIER", "id": "1"}),
        json!({"_type": "DV_SCALE", "value": 1.5, "symbol": {"_type": "DV_CODED_TEXT", "value": "s",
            "defining_code": {"_type": "CODE_PHRASE", "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "local"}, "code_string": "at1"}}}),
        json!({"_type": "DV_INTERVAL", "lower": {"_type": "DV_COUNT", "magnitude": 1}, "upper_unbounded": true}),
    ];
    let path = json!({"path": "/data[at0001]/items[at0002]"});
    let guide = compiled(&json!({"id": "copies", "definition": {
        "data_bindings": {
            "in": {"model_id": "openEHR-EHR-EVALUATION.a.v1", "type": "INPUT", "elements": {"a": path}},
            "out": {"model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT", "elements": {"x": path}}},
        "rules": {
            "r": {"priority": 2, "then": ["$x=$a"]},
            "s": {"priority": 1, "then": ["$out.create($x=$a)"]}}}}));
    for value in values {
        let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
        let ehr = batch.add_ehr(ehr_row("one"));
        let json = json!({"_type": "COMPOSITION", "archetype_node_id": "openEHR-EHR-COMPOSITION.c.v1",
            "name": {"value": "c"}, "content": [{"_type": "EVALUATION", "name": {"value": "a"},
            "archetype_node_id": "openEHR-EHR-EVALUATION.a.v1", "data": {"_type": "ITEM_TREE",
            "archetype_node_id": "at0001", "name": {"value": "t"}, "items": [{"_type": "ELEMENT",
            "archetype_node_id": "at0002", "name": {"value": "e"}, "value": value}]}}]});
        add_composition(&mut batch, ehr, 0, "u".into(), &json.to_string(), &layouts);
        let now = Moment::parse("2030-01-01T00:00:00Z", 0).unwrap();
        let mut population = population_of(&guide, &[String::from("one")], &batch, now);
        let run = run(&guide, &population.instances("one").unwrap(), NOW);
        let copies: Vec<_> = run.outputs.iter().map(|o| o.values[0].to_json()).collect();
        assert_eq!(copies, [value.clone(), value.clone()], "{value}");
    }
}

#[test]
fn create_leaves_earlier_values_in_their_instance() {
    let path = |code: &str| json!({"path": format!("/data[at0001]/items[{code}]")});
    let guide = compiled(&json!({"id": "created", "definition": {
        "data_bindings": {"out": {"model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT",
            "elements": {"x": path("x"), "y": path("y"), "z": path("z")}}},
        "rules": {
            "r": {"priority": 3, "then": ["$x='before'", "$y.magnitude=1"]},
            "s": {"priority": 2, "then": ["$out.create($x='created';$y.magnitude=2)", "$out.create($y.magnitude=3)"]},
            "t": {"priority": 1, "then": ["$y.magnitude=$y.magnitude+1", "$z.null_flavor=openehr::271|no information|"]}}}}));
    let run = run(&guide, &[Vec::new()], NOW);
    let texts = run.outputs.iter().map(|output| {
        let values = output.values.iter();
        let values = values.map(|v| {
            format!(
                "{}={}",
                v.path,
                v.to_json()["value"]
                    .as_str()
                    .map_or_else(|| v.to_json()["magnitude"].to_string(), String::from)
            )
        });
        values.collect::<Vec<_>>().join(" ")
    });
    assert_eq!(
        texts.collect::<Vec<_>>(),
        [
            "/data[at0001]/items[x]=created /data[at0001]/items[y]=2",
            "/data[at0001]/items[y]=3",
            "/data[at0001]/items[x]=before /data[at0001]/items[y]=4 /data[at0001]/items[z]/null_flavour=no information",
        ]
    );
}

#[test]
fn units_are_converted_only_on_request() {
    let fired = |condition: &str, a: &str, b: &str, convert_units: bool| {
        let guide = weights(condition);
        let values = [("/data[at0001]/items[a]", a), ("/data[at0001]/items[b]", b)];
        let options = Options {
            convert_units,
            ..Options::default()
        };
        let instances = guide.instances_of(&[instance("openEHR-EHR-OBSERVATION.in.v1", &values)]);
        let clock = Moment::parse(NOW, 0).unwrap().into();
        let run = guide
            .run(&RunInput {
                instances: &instances,
                clock,
                language: "en",
                options,
                terminology: None,
            })
            .unwrap();
        (
            !run.fired.is_empty(),
            run.notes
                .iter()
                .map(|n| n.reason.clone())
                .collect::<Vec<_>>()
                .join("; "),
        )
    };
    let unknown = |text: &str| (false, text.to_owned());
    for (condition, a, b, plain, converted) in [
        (
            "$a>$b",
            "0.5,kg",
            "400,g",
            unknown("the units differ: `kg` and `g`"),
            (true, String::new()),
        ),
        (
            "$a==$b",
            "1,m",
            "100,cm",
            unknown("the units differ: `m` and `cm`"),
            (true, String::new()),
        ),
        (
            "$a!=$b",
            "1,m",
            "101,cm",
            unknown("the units differ: `m` and `cm`"),
            (true, String::new()),
        ),
        (
            "$a<=37,Cel",
            "98.6,[degF]",
            "0,1",
            unknown("the units differ: `[degF]` and `Cel`"),
            (true, String::new()),
        ),
        (
            "!($a<$b)",
            "1,kg",
            "1,cm",
            unknown("the units differ: `kg` and `cm`"),
            unknown("the units differ: `kg` and `cm`"),
        ),
        (
            "$a>$b",
            "5,kg",
            "4,box",
            unknown("the units differ: `kg` and `box`"),
            unknown("the units differ: `kg` and `box`"),
        ),
        (
            "$a>$b",
            "40,d",
            "1,mo",
            (true, String::new()),
            (true, String::new()),
        ),
        (
            "max($a,$b)==$a",
            "1,kg",
            "999,g",
            unknown("the units differ: `kg` and `g`"),
            (true, String::new()),
        ),
    ] {
        assert_eq!(
            (fired(condition, a, b, false), fired(condition, a, b, true)),
            (plain, converted),
            "{condition} {a} {b}"
        );
    }
}

#[test]
fn queries_of_a_run_that_converts_units_leave_no_unit_out() {
    let guide = compiled(&json!({"id": "pushed", "definition": {"data_bindings": {
        "in": {"model_id": "openEHR-EHR-EVALUATION.in.v1", "type": "INPUT", "predicates": ["/data[at0001]/items[at0002]/value > 70,kg"],
            "elements": {"a": {"path": "/data[at0001]/items[at0002]"}}}}, "rules": {}}}));
    let now = Moment::parse(NOW, 0).unwrap();
    let aql = |convert_units: bool| {
        guide.queries_for(
            now,
            &Options {
                convert_units,
                ..Options::default()
            },
        )[0]
        .aql
        .clone()
    };
    assert!(
        aql(false).contains("'kg'") && !aql(true).contains("'kg'"),
        "{}\n{}",
        aql(false),
        aql(true)
    );
}

/// Returns the data of one EHR: a composition for each list of elements, with an evaluation `a`.
fn evaluations(compositions: &[serde_json::Value]) -> Batch {
    let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
    let ehr = batch.add_ehr(ehr_row("one"));
    for (number, items) in compositions.iter().enumerate() {
        let json = json!({"_type": "COMPOSITION", "archetype_node_id": "openEHR-EHR-COMPOSITION.c.v1",
            "context": {"_type": "EVENT_CONTEXT", "start_time": {"_type": "DV_DATE_TIME", "value": "2022-02"}},
            "name": {"value": "c"}, "content": [{"_type": "EVALUATION", "name": {"value": "a"},
            "archetype_node_id": "openEHR-EHR-EVALUATION.a.v1", "data": {"_type": "ITEM_TREE",
            "archetype_node_id": "at0001", "name": {"value": "t"}, "items": items}}]});
        let uid = format!("u{number}");
        add_composition(&mut batch, ehr, number, uid, &json.to_string(), &layouts);
    }
    batch
}

fn element(code: &str, member: &str, value: &serde_json::Value) -> serde_json::Value {
    json!({"_type": "ELEMENT", "archetype_node_id": code, "name": {"value": "e"}, member: value})
}

/// Runs a guide on the EHR of [`evaluations`].
fn run_on(guide: &CompiledGuide, batch: &Batch) -> gdl::Run {
    let now = Moment::parse("2030-01-01T00:00:00Z", 0).unwrap();
    let mut population = population_of(guide, &[String::from("one")], batch, now);
    run(guide, &population.instances("one").unwrap(), NOW)
}

#[test]
fn a_null_flavor_of_the_record_is_read_where_a_guide_asks_for_it() {
    let path = |code: &str| json!({"path": format!("/data[at0001]/items[{code}]")});
    let guide = |when: &str| {
        compiled(&json!({"id": "flavors", "definition": {
            "data_bindings": {
                "in": {"model_id": "openEHR-EHR-EVALUATION.a.v1", "type": "INPUT",
                    "elements": {"a": path("at0002"), "b": path("at0003")}},
                "out": {"model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT", "elements": {"x": path("x")}}},
            "rules": {"r": {"priority": 1, "when": [when], "then": ["$x='fired'"]}}}}))
    };
    let flavor = json!({"_type": "DV_CODED_TEXT", "value": "no information", "defining_code": {
        "_type": "CODE_PHRASE", "terminology_id": {"_type": "TERMINOLOGY_ID", "value": "openehr"}, "code_string": "271"}});
    let count = json!({"_type": "DV_COUNT", "magnitude": 3});
    let unknown = evaluations(&[json!([
        element("at0002", "null_flavour", &flavor),
        element("at0003", "value", &count)
    ])]);
    let alone = evaluations(&[json!([element("at0002", "null_flavour", &flavor)])]);
    for (when, on_unknown, on_alone) in [
        ("$a.null_flavor==openehr::271|no information|", true, true),
        ("$a.null_flavour==openehr::253|unknown|", false, false),
        ("$a.null_flavor!=null && $a==null", true, true),
        ("$b.null_flavor==null && $b==3", true, false),
        ("$b.count==1", true, false),
    ] {
        let guide = guide(when);
        let reads = guide.queries()[0].aql.contains("null_flavour");
        assert_eq!(reads, when.contains("null_flavo"), "{when}");
        for (batch, expected) in [(&unknown, on_unknown), (&alone, on_alone)] {
            assert_eq!(
                run_on(&guide, batch).fired.len(),
                usize::from(expected),
                "{when}"
            );
        }
    }
}

/// The text of a stored time is shown as it was recorded, wherever a run shows it.
#[test]
fn a_stored_time_has_no_digits_that_were_not_recorded() {
    let path = |code: &str| json!({"path": format!("/data[at0001]/items[{code}]")});
    let guide = compiled(&json!({"id": "times", "definition": {
        "data_bindings": {
            "in": {"model_id": "openEHR-EHR-EVALUATION.a.v1", "type": "INPUT", "elements": {"a": path("at0002")}},
            "out": {"model_id": "openEHR-EHR-EVALUATION.out.v1", "type": "OUTPUT",
                "elements": {"x": path("x"), "y": path("y"), "z": path("z"), "w": path("w")}}},
        "templates": {"t": {"id": "t", "model_id": "T", "object": {"whole": "{$a}", "part": "on {$a}"}}},
        "rules": {"r": {"priority": 1, "then": ["$x='on '+$a", "$y=$a.string", "$z=max($a,$a)", "$w=$a+0,d", "use_template($t)"]}}}}));
    for (class, recorded, computed) in [
        ("DV_DATE", "2022-02", "2022-02-01"),
        ("DV_DATE", "2022", "2022-01-01"),
        ("DV_DATE", "2022-02-03", "2022-02-03"),
        (
            "DV_DATE_TIME",
            "2022-02-03T04:05:06",
            "2022-02-03T04:05:06Z",
        ),
        ("DV_DATE_TIME", "2022-02-03T04:05", "2022-02-03T04:05:00Z"),
        (
            "DV_DATE_TIME",
            "2022-02-03T04:05:06+00:00",
            "2022-02-03T04:05:06Z",
        ),
        (
            "DV_DATE_TIME",
            "2022-02-03T04:05:06.123456Z",
            "2022-02-03T04:05:06.123Z",
        ),
        (
            "DV_DATE_TIME",
            "2022-02-03T04:05:06+02:00",
            "2022-02-03T04:05:06+02:00",
        ),
        (
            "DV_DATE_TIME",
            "2022-02-03T04:05:06.120Z",
            "2022-02-03T04:05:06.120Z",
        ),
        (
            "DV_DATE_TIME",
            "2022-02-03T04:05:06.000Z",
            "2022-02-03T04:05:06Z",
        ),
        (
            "DV_DATE_TIME",
            "2022-02-03T04:05:06.1-00:30",
            "2022-02-03T04:05:06.100-00:30",
        ),
        ("DV_TIME", "04:05", "04:05:00Z"),
        ("DV_TIME", "04:05:06", "04:05:06Z"),
    ] {
        let value = json!({"_type": class, "value": recorded});
        let batch = evaluations(&[json!([element("at0002", "value", &value)])]);
        let now = Moment::parse("2030-01-01T00:00:00Z", 0).unwrap();
        let mut population = population_of(&guide, &[String::from("one")], &batch, now);
        let query = population.queries()[0].clone();
        let instances = population.instances("one").unwrap();
        let shown = query.values_of(instances[0].first());
        assert_eq!(gdl::output::rm_json(&shown[0].1), value);
        let run = run(&guide, &instances, NOW);
        let text =
            |code: &str| gdl::output::rm_json(run.value(&guide, code).unwrap())["value"].clone();
        assert_eq!(text("x"), json!(format!("on {recorded}")));
        assert_eq!(
            [text("y"), text("z"), text("w")],
            [recorded, recorded, computed]
        );
        let filled = run.outputs.last().unwrap().values[0].to_json();
        assert_eq!(
            filled,
            json!({"whole": recorded, "part": format!("on {recorded}")})
        );
        let trace = run.trace.as_ref().unwrap();
        let used = &trace.inputs[0].used[0];
        assert_eq!(used.values[0].value, recorded);
        assert_eq!(used.time.as_deref(), Some("2022-02"));
    }
}
