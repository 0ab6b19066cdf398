//! The rows of openEHR's conformance schedule about structures: numbers of members, attributes,
//! classes. They are part of the suite `rm.cnf`. The name of a case states the constraint, its row
//! the document.

use crate::corpus::text_of;
use serde_json::{Value, json};

/// A row as a constraint and a document of one class.
pub struct Structure {
    pub class: &'static str,
    /// The attributes that the template constrains, in OPT.
    pub attributes: String,
    pub document: Value,
}

/// Returns the constraint and the document of a row; `None` for other rows.
pub fn of(case: &str, row: &Value) -> Option<Structure> {
    let (kind, rules) = case.split_once('-')?;
    let rule = |name: &str| rules.split('-').find_map(|rule| rule.strip_prefix(name));
    match kind {
        "COMP" => composition(rule("content_card_")?, rule("context_")?, row),
        "OBS" => observation(rule("state_ex_")?, rule("protocol_ex_")?, row),
        "HIST" => history(rule("events_card_")?, rule("summary_ex_")?, row),
        "EVENT" => event(rule("type_")?, text_of(row, "event")),
        "ITEM_STR" => item_structure(rule("type_")?, text_of(row, "event")),
        _ => None,
    }
}

/// Returns lower and upper limit of a named range.
fn range(name: &str) -> Option<(u32, Option<u32>)> {
    match name {
        "any" => Some((0, None)),
        "opt" => Some((0, Some(1))),
        "mand" => Some((1, Some(1))),
        _ => match name.split_once("to") {
            Some((lower, upper)) => Some((lower.parse().ok()?, Some(upper.parse().ok()?))),
            None => Some((name.strip_suffix("plus")?.parse().ok()?, None)),
        },
    }
}

fn interval(tag: &str, (lower, upper): (u32, Option<u32>)) -> String {
    let upper = upper.map_or_else(
        || String::from("<upper_unbounded>true</upper_unbounded>"),
        |u| format!("<upper>{u}</upper>"),
    );
    format!("<{tag}><lower>{lower}</lower>{upper}</{tag}>")
}

fn list(name: &str, range: (u32, Option<u32>), child: &str) -> String {
    let existence = interval("existence", (range.0.min(1), Some(1)));
    let cardinality = interval("interval", range);
    format!(
        r#"<attributes xsi:type="C_MULTIPLE_ATTRIBUTE"><rm_attribute_name>{name}</rm_attribute_name>{existence}{child}<cardinality>{cardinality}</cardinality></attributes>"#
    )
}

fn single(name: &str, existence: (u32, Option<u32>), child: &str) -> String {
    let existence = interval("existence", existence);
    format!(
        r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>{name}</rm_attribute_name>{existence}{child}</attributes>"#
    )
}

fn child(class: &str, id: &str) -> String {
    format!(
        r#"<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>{class}</rm_type_name><node_id>{id}</node_id></children>"#
    )
}

fn node(class: &str, id: &str) -> Value {
    json!({ "_type": class, "archetype_node_id": id, "name": { "_type": "DV_TEXT", "value": "n" } })
}

fn with(mut object: Value, members: &[(&str, Value)]) -> Value {
    members
        .iter()
        .for_each(|(key, value)| object[*key] = value.clone());
    object
}

fn phrase(terminology: &str, code: &str) -> Value {
    json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": terminology }, "code_string": code })
}

fn openehr(code: &str, text: &str) -> Value {
    json!({ "_type": "DV_CODED_TEXT", "value": text, "defining_code": phrase("openehr", code) })
}

fn time() -> Value {
    json!({ "_type": "DV_DATE_TIME", "value": "2026-11-20T09:30:00Z" })
}

/// Returns the number of members in a row: `no entries`, `one event`, `three events`.
fn count(words: &str) -> Option<usize> {
    match words.split(' ').next()? {
        "no" => Some(0),
        "one" => Some(1),
        "three" => Some(3),
        _ => None,
    }
}

fn element(id: &str) -> Value {
    with(
        node("ELEMENT", id),
        &[("value", json!({ "_type": "DV_TEXT", "value": "a" }))],
    )
}

fn structure(class: &str, id: &str) -> Value {
    let tree = node(class, id);
    match class {
        "ITEM_SINGLE" => with(tree, &[("item", element("at9"))]),
        "ITEM_TABLE" => with(
            tree,
            &[(
                "rows",
                json!([with(
                    node("CLUSTER", "at8"),
                    &[("items", json!([element("at9")]))]
                )]),
            )],
        ),
        _ => with(tree, &[("items", json!([element("at9")]))]),
    }
}

fn event_of(class: &str, id: &str, data: Value) -> Value {
    let event = with(node(class, id), &[("time", time()), ("data", data)]);
    match class {
        "INTERVAL_EVENT" => with(
            event,
            &[
                ("width", json!({ "_type": "DV_DURATION", "value": "PT1H" })),
                ("math_function", openehr("146", "mean")),
            ],
        ),
        _ => event,
    }
}

fn history_of(id: &str, events: usize) -> Value {
    let events: Vec<Value> = (0..events)
        .map(|_| event_of("POINT_EVENT", "at2", structure("ITEM_TREE", "at3")))
        .collect();
    let history = with(node("HISTORY", id), &[("origin", time())]);
    if events.is_empty() {
        history
    } else {
        with(history, &[("events", Value::from(events))])
    }
}

fn entry(class: &str, id: &str) -> Value {
    with(
        node(class, id),
        &[
            ("language", phrase("ISO_639-1", "en")),
            ("encoding", phrase("IANA_character-sets", "UTF-8")),
            ("subject", json!({ "_type": "PARTY_SELF" })),
            (
                "archetype_details",
                json!({ "_type": "ARCHETYPED", "archetype_id": { "_type": "ARCHETYPE_ID", "value": id }, "rm_version": "1.1.0" }),
            ),
        ],
    )
}

fn composition(content: &str, context: &str, row: &Value) -> Option<Structure> {
    let id = "openEHR-EHR-EVALUATION.e.v1";
    let entries: Vec<Value> = (0..count(text_of(row, "content"))?)
        .map(|_| {
            with(
                entry("EVALUATION", id),
                &[("data", structure("ITEM_TREE", "at1"))],
            )
        })
        .collect();
    let root = r#"<archetype_id><value>openEHR-EHR-EVALUATION.e.v1</value></archetype_id>"#;
    let entry_rule = format!(
        r#"<children xsi:type="C_ARCHETYPE_ROOT"><rm_type_name>EVALUATION</rm_type_name><node_id>at0000</node_id>{root}</children>"#
    );
    let existence = if context == "any" {
        (0, Some(1))
    } else {
        range(context)?
    };
    let attributes = list("content", range(content)?, &entry_rule)
        + &single("context", existence, &child("EVENT_CONTEXT", ""));
    let mut document = with(
        node("COMPOSITION", "at1"),
        &[
            ("language", phrase("ISO_639-1", "en")),
            ("territory", phrase("ISO_3166-1", "SE")),
            ("category", openehr("433", "event")),
            ("composer", json!({ "_type": "PARTY_SELF" })),
        ],
    );
    if !entries.is_empty() {
        document["content"] = Value::from(entries);
    }
    if text_of(row, "context") != "no context" {
        document["context"] = json!({ "_type": "EVENT_CONTEXT", "start_time": time(), "setting": openehr("238", "other care") });
    }
    if text_of(row, "context") == "context with other_context" {
        document["context"]["other_context"] = structure("ITEM_TREE", "at7");
    }
    Some(Structure {
        class: "COMPOSITION",
        attributes,
        document,
    })
}

fn observation(state: &str, protocol: &str, row: &Value) -> Option<Structure> {
    let attributes = [
        single("data", (1, Some(1)), &child("HISTORY", "at4")),
        single("state", range(state)?, &child("HISTORY", "at5")),
        single("protocol", range(protocol)?, &child("ITEM_TREE", "at6")),
    ];
    let mut document = entry("OBSERVATION", "at1");
    document.as_object_mut()?.remove("archetype_details");
    for (name, value) in [
        ("data", history_of("at4", 1)),
        ("state", history_of("at5", 1)),
        ("protocol", structure("ITEM_TREE", "at6")),
    ] {
        if text_of(row, name) == "present" {
            document[name] = value;
        }
    }
    Some(Structure {
        class: "OBSERVATION",
        attributes: attributes.concat(),
        document,
    })
}

fn history(events: &str, summary: &str, row: &Value) -> Option<Structure> {
    let attributes = list("events", range(events)?, &child("EVENT", "at2"))
        + &single("summary", range(summary)?, &child("ITEM_TREE", "at6"));
    let mut document = history_of("at1", count(text_of(row, "events"))?);
    if text_of(row, "summary") == "present" {
        document["summary"] = structure("ITEM_TREE", "at6");
    }
    Some(Structure {
        class: "HISTORY",
        attributes,
        document,
    })
}

/// Returns the class that a case allows: `any`, or the name of a class in lower case.
fn allowed(rule: &str, any: &str) -> String {
    if rule == "any" {
        any.to_owned()
    } else {
        rule.to_ascii_uppercase()
    }
}

fn event(rule: &str, class: &str) -> Option<Structure> {
    let attributes = list("events", (1, None), &child(&allowed(rule, "EVENT"), "at2"));
    let document = with(
        history_of("at1", 0),
        &[(
            "events",
            json!([event_of(class, "at2", structure("ITEM_TREE", "at3"))]),
        )],
    );
    Some(Structure {
        class: "HISTORY",
        attributes,
        document,
    })
}

fn item_structure(rule: &str, class: &str) -> Option<Structure> {
    let attributes = single(
        "data",
        (1, Some(1)),
        &child(&allowed(rule, "ITEM_STRUCTURE"), "at3"),
    );
    Some(Structure {
        class: "POINT_EVENT",
        attributes,
        document: event_of("POINT_EVENT", "at1", structure(class, "at3")),
    })
}
