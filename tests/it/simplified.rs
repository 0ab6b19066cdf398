//! FLAT and STRUCTURED: documents with too many keys are refused by one clear error, and random
//! documents are preserved.

use crate::random_document::{Random, document};
use crate::rest::Ticks;
use aqlite::diag::Severity;
use aqlite::rm::json;
use aqlite::rm::tree::NodeRef;
use aqlite::samples::templates;
use aqlite::service::{Auth, Config, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{Template, WebTemplate, validate};
use serde_json::Value;

const EHR: &str = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
const HEAD: &str = r#""ctx/territory":"SE","ctx/composer_self":true"#;

#[test]
fn a_hundred_thousand_keys_are_refused_by_one_error_and_nothing_is_written() {
    let service = Service::new(
        Memory::new(),
        Config {
            auth: Auth::Open,
            log: false,
            ..Config::default()
        },
    );
    let mut environment = Ticks::new();
    let mut send = |method: &str, path: &str, kind: &str, body: String| -> Response {
        let request =
            Request::new(method, &format!("/rest/openehr/v1/{path}")).with_body(kind, body);
        now_or_never(service.handle(&request, &mut environment)).unwrap()
    };
    let template = include_str!("../cases/template/small.opt").to_owned();
    assert_eq!(
        send(
            "POST",
            "definition/template/adl1.4",
            "application/xml",
            template
        )
        .status,
        201
    );
    assert_eq!(
        send(
            "PUT",
            &format!("ehr/{EHR}"),
            "application/json",
            String::new()
        )
        .status,
        201
    );

    let keys = |key: &dyn Fn(usize) -> String| (0..100_000).map(key).collect::<String>();
    let flat = keys(&|i| {
        format!(
            r#","encounter/body_weight/events_at0003:{}/weight|magnitude":{i}"#,
            i % 10_000
        )
    });
    let same =
        keys(&|_| String::from(r#","encounter/body_weight/events_at0003:0/weight|magnitude":70"#));
    let lists = keys(&|i| {
        format!(
            r#"{}{{"weight":[{{"|magnitude":{i}}}]}}"#,
            if i == 0 { "" } else { "," }
        )
    });
    for (form, body) in [
        ("flat", format!("{{{HEAD}{flat}}}")),
        ("flat", format!("{{{HEAD}{same}}}")),
        (
            "structured",
            format!(
                r#"{{"ctx":{{"territory":"SE"}},"encounter":{{"body_weight":[{{"events_at0003":[{lists}]}}]}}}}"#
            ),
        ),
    ] {
        let path = format!("ehr/{EHR}/composition?templateId=weight.en.v2");
        let response = send(
            "POST",
            &path,
            &format!("application/openehr.wt.{form}+json"),
            body,
        );
        let answer: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(
            (response.status, answer["errors"].as_array().map(Vec::len)),
            (400, Some(1)),
            "{answer}"
        );
        assert!(answer.to_string().contains("too many"), "{answer}");
    }
    let query = serde_json::json!({ "q": "SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c" });
    let found = send("POST", "query/aql", "application/json", query.to_string());
    assert_eq!(
        serde_json::from_slice::<Value>(&found.body).unwrap()["rows"],
        serde_json::json!([])
    );
}

/// Random documents of the project's own templates, with varying alternatives and optional
/// attributes.
#[test]
fn random_documents_survive_both_formats_without_raw_parts() {
    let small = [
        include_str!("../cases/template/small.opt"),
        include_str!("../cases/template/order.opt"),
        include_str!("../cases/template/named.opt"),
    ];
    let samples = templates().map(|sample| sample.text);
    let mut tested = 0;
    for text in small.into_iter().chain(samples) {
        let template = Template::parse(text).unwrap();
        let web = WebTemplate::of(&template);
        for seed in 1..=40 {
            let Some(tree) = document(&template, &mut Random::new(seed)) else {
                continue;
            };
            let root = tree.root().unwrap();
            let mut findings = aqlite::rm::validate::validate(root);
            findings.extend(validate(root, &template));
            if findings.iter().any(|f| f.severity == Severity::Error) {
                continue;
            }
            tested += 1;
            for (shape, dialect) in [
                (Shape::Flat, FlatDialect::Better),
                (Shape::Structured, FlatDialect::Better),
                (Shape::Flat, FlatDialect::Ehrbase),
            ] {
                let written = flat::write(root, shape, &template, &web, dialect).unwrap();
                // The content of a slot has no node, so it is below an attribute of the Reference
                // Model.
                let keys = written
                    .text
                    .split("|raw\":")
                    .map(|front| front.rsplit('"').next().unwrap_or_default());
                let with_node = keys
                    .filter(|key| {
                        key.contains('/')
                            && !key.rsplit('/').next().unwrap_or_default().starts_with('_')
                    })
                    .count();
                let count = if shape == Shape::Flat {
                    written.text.split("|raw\":").count() - 1
                } else {
                    0
                };
                assert!(
                    count == 0 || with_node <= 1,
                    "{} seed {seed}: {}",
                    template.template_id,
                    written.text
                );
                let again = flat::read(
                    &written.text,
                    shape,
                    &template,
                    &web,
                    "2026-11-20T09:30:00Z",
                )
                .unwrap_or_else(|f| {
                    panic!(
                        "{} seed {seed}: {f:?}: {}",
                        template.template_id, written.text
                    )
                });
                let (given, mut made) = (plain(root), plain(again.root().unwrap()));
                without_completed_precisions(&mut made, &given);
                assert_eq!(
                    made, given,
                    "{} seed {seed} {shape:?}: {}",
                    template.template_id, written.text
                );
            }
        }
    }
    assert!(tested > 100, "{tested}");
}

/// Removes the precisions that the given document lacks: readers take them from the template.
fn without_completed_precisions(made: &mut Value, given: &Value) {
    match (made, given) {
        (Value::Array(made), Value::Array(given)) => made
            .iter_mut()
            .zip(given)
            .for_each(|(made, given)| without_completed_precisions(made, given)),
        (Value::Object(made), Value::Object(given)) => {
            if made.get("_type") == Some(&Value::from("DV_QUANTITY"))
                && !given.contains_key("precision")
            {
                made.remove("precision");
            }
            for (key, value) in made {
                if let Some(given) = given.get(key) {
                    without_completed_precisions(value, given);
                }
            }
        }
        _ => {}
    }
}

/// Returns a document without the details of archetypes, which readers complete, the names of
/// structures, the numbers behind names, and the order among different nodes.
/// docs/simplified-formats.md lists them.
fn plain(root: NodeRef<'_>) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Array(members) => {
                members.iter_mut().for_each(strip);
                let text = |member: &Value, pointer: &str| {
                    member
                        .pointer(pointer)
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                };
                members.sort_by_key(|member| {
                    (
                        text(member, "/archetype_node_id"),
                        text(member, "/name/value"),
                    )
                });
            }
            Value::Object(members) => {
                members.remove("archetype_details");
                let class = members
                    .get("_type")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                if class == "HISTORY" || class.starts_with("ITEM_") || class.ends_with("_EVENT") {
                    members.remove("name");
                }
                if let Some(Value::String(name)) = members
                    .get_mut("name")
                    .and_then(|name| name.get_mut("value"))
                {
                    *name = name.split(" #").next().unwrap_or_default().to_owned();
                }
                members.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    let mut value = serde_json::from_str(&json::write(root)).unwrap();
    strip(&mut value);
    value
}
