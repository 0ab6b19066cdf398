//! Suite `rm.webtemplate`: web templates of applications compared with those derived from their
//! operational templates: the same nodes in the same order, with the same ids, classes, counts,
//! paths, names and inputs.
//!
//! The rules of this project apply where the makers differ. Predicates are compared without their
//! names, an unconstrained value ends in `/value`, and counts of members that a given file lost
//! with a removed level are accepted.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use aqlite::template::{Template, WebTemplate};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The fields that are compared of every node. `inputs`, `dependsOn` and `cardinalities` have rules
/// of their own.
const FIELDS: [&str; 8] = [
    "id",
    "name",
    "localizedName",
    "rmType",
    "nodeId",
    "min",
    "max",
    "inContext",
];

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let cases = corpus.json_lines("rm/better_compat/cases.jsonl");
    let pairs: BTreeMap<String, String> = cases
        .iter()
        .filter(|c| !text_of(c, "template").is_empty())
        .map(|c| {
            (
                text_of(c, "webtemplate").to_owned(),
                text_of(c, "template").to_owned(),
            )
        })
        .collect();
    let compared = |(web, template): (&String, &String)| {
        let found = compare(corpus, web, template);
        // Bindings are a case of their own, because some makers look them up in the wrong
        // archetype.
        let about_bindings = |is_about: bool| {
            found.clone().map(|all| {
                all.into_iter()
                    .filter(|d| d.contains(" termBindings: ") == is_about)
                    .collect()
            })
        };
        [
            Case::check(web, || none(about_bindings(false))),
            Case::check(format!("{web} bindings"), || none(about_bindings(true))),
        ]
    };
    pairs.iter().flat_map(compared).collect()
}

/// Checks that no difference is left.
fn none(found: Result<Vec<String>, String>) -> Result<(), String> {
    let found = found?;
    if found.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} differences: {}",
        found.len(),
        found
            .iter()
            .take(12)
            .cloned()
            .collect::<Vec<_>>()
            .join("; ")
    ))
}

/// Returns every difference of a web template from the given one.
fn compare(corpus: &Corpus, web: &str, template: &str) -> Result<Vec<String>, String> {
    let text = corpus.text(&format!("rm/{template}"))?;
    let template = Template::parse(&text).map_err(|errors| {
        errors
            .iter()
            .map(|e| e.one_line(&text))
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    let made: Value = serde_json::from_str(&WebTemplate::of(&template).to_json(&template))
        .map_err(|e| e.to_string())?;
    let given: Value =
        serde_json::from_str(&corpus.text(&format!("rm/{web}"))?).map_err(|e| e.to_string())?;
    let mut found = Vec::new();
    let language = text_of(&given, "defaultLanguage");
    for key in ["templateId", "version", "defaultLanguage", "otherDetails"] {
        differ(&mut found, key, given.get(key), made.get(key));
    }
    let (Some(given), Some(made)) = (given.get("tree"), made.get("tree")) else {
        return Err(String::from("there is no tree"));
    };
    node(&mut found, text_of(given, "id"), given, made, language);
    Ok(found)
}

fn differ(found: &mut Vec<String>, place: &str, given: Option<&Value>, made: Option<&Value>) {
    let plain = |v: Option<&Value>| match v {
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(Value::String(text)) => Some(Value::from(
            text.split_whitespace().collect::<Vec<_>>().join(" "),
        )),
        other => other.cloned(),
    };
    if plain(given) != plain(made) {
        let short = |v: Option<&Value>| {
            v.map_or_else(
                || String::from("nothing"),
                |v| v.to_string().chars().take(160).collect(),
            )
        };
        found.push(format!(
            "{place}: {} instead of {}",
            short(made),
            short(given)
        ));
    }
}

fn node(found: &mut Vec<String>, place: &str, given: &Value, made: &Value, language: &str) {
    for field in FIELDS {
        differ(
            found,
            &format!("{place} {field}"),
            given.get(field),
            made.get(field),
        );
    }
    for field in ["localizedNames", "localizedDescriptions"] {
        let of = |v: &Value| v.pointer(&format!("/{field}/{language}")).cloned();
        differ(
            found,
            &format!("{place} {field}"),
            of(given).as_ref(),
            of(made).as_ref(),
        );
    }
    annotations(found, place, given, made);
    path(
        found,
        place,
        text_of(given, "aqlPath"),
        text_of(made, "aqlPath"),
    );
    let ids = |v: &Value| {
        let mut ids: Vec<String> = list(v, "dependsOn")
            .iter()
            .filter_map(|i| i.as_str().map(str::to_owned))
            .collect();
        ids.sort();
        Value::from(ids)
    };
    differ(
        found,
        &format!("{place} dependsOn"),
        Some(&ids(given)),
        Some(&ids(made)),
    );
    differ(
        found,
        &format!("{place} termBindings"),
        given.get("termBindings"),
        made.get("termBindings"),
    );
    if let Some(given) = given.get("cardinalities") {
        differ(
            found,
            &format!("{place} cardinalities"),
            Some(given),
            made.get("cardinalities"),
        );
    }
    inputs(found, place, given, made, language);
    let (given, made) = (list(given, "children"), list(made, "children"));
    if given.len() != made.len() {
        let ids = |l: &[Value]| {
            l.iter()
                .map(|c| text_of(c, "id").to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        found.push(format!(
            "{place}: {} children instead of {}: {} | {}",
            made.len(),
            given.len(),
            ids(made),
            ids(given)
        ));
    }
    for (given, made) in given.iter().zip(made) {
        node(
            found,
            &format!("{place}/{}", text_of(given, "id")),
            given,
            made,
            language,
        );
    }
}

/// Compares texts of annotations by their words.
fn annotations(found: &mut Vec<String>, place: &str, given: &Value, made: &Value) {
    let of = |v: &Value| match v.get("annotations") {
        Some(Value::Object(notes)) => notes.clone(),
        _ => Map::new(),
    };
    let (given, made) = (of(given), of(made));
    let keys: BTreeSet<&String> = given.keys().chain(made.keys()).collect();
    for key in keys {
        let place = format!("{place} annotations {key}");
        differ(found, &place, given.get(key), made.get(key));
    }
}

/// Below an unconstrained ELEMENT, some makers end paths in its name. Some write the node id that a
/// template has for the context, others omit it: an EVENT_CONTEXT has no `archetype_node_id`.
fn path(found: &mut Vec<String>, place: &str, given: &str, made: &str) {
    let given = &without_node_id_of_context(given);
    let is_open_value = made.strip_suffix("/value").is_some_and(|front| {
        given
            .strip_prefix(front)
            .is_some_and(|rest| !rest.contains('['))
    });
    if given != made && !is_open_value {
        found.push(format!("{place} aqlPath: {made} instead of {given}"));
    }
}

fn without_node_id_of_context(path: &str) -> String {
    let rest = path
        .strip_prefix("/context[")
        .and_then(|rest| rest.split_once(']'));
    rest.map_or_else(|| path.to_owned(), |(_, rest)| format!("/context{rest}"))
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn inputs(found: &mut Vec<String>, place: &str, given: &Value, made: &Value, language: &str) {
    let (given, made) = (list(given, "inputs"), list(made, "inputs"));
    if given.len() != made.len() {
        return found.push(format!(
            "{place} inputs: {} instead of {}",
            Value::from(made.to_vec()),
            Value::from(given.to_vec())
        ));
    }
    for (given, made) in given.iter().zip(made) {
        let place = format!("{place}|{}", text_of(given, "suffix"));
        for field in ["suffix", "type", "listOpen", "terminology", "validation"] {
            differ(
                found,
                &format!("{place} {field}"),
                given.get(field),
                made.get(field),
            );
        }
        default(
            found,
            &place,
            given.get("defaultValue"),
            made.get("defaultValue"),
        );
        entries(
            found,
            &place,
            list(given, "list"),
            list(made, "list"),
            language,
        );
    }
}

/// Compares numbers by value, within the precision of a 32-bit float, which the makers of the given
/// files use.
fn default(found: &mut Vec<String>, place: &str, given: Option<&Value>, made: Option<&Value>) {
    let number = |v: Option<&Value>| v.and_then(Value::as_f64);
    let is_near = number(given)
        .zip(number(made))
        .is_some_and(|(given, made)| (given - made).abs() <= 1e-6 * given.abs());
    if !is_near {
        differ(found, &format!("{place} defaultValue"), given, made);
    }
}

/// The states of a transition have no order; all other lists have one.
fn entries(found: &mut Vec<String>, place: &str, given: &[Value], made: &[Value], language: &str) {
    let sorted = |entries: &[Value]| {
        let mut entries = entries.to_vec();
        if place.ends_with("/current_state|code") {
            entries.sort_by_key(|e| text_of(e, "value").to_owned());
        }
        entries
    };
    let (given, made) = (sorted(given), sorted(made));
    if given.len() != made.len() {
        return found.push(format!(
            "{place} list: {} entries instead of {}",
            made.len(),
            given.len()
        ));
    }
    for (given, made) in given.iter().zip(&made) {
        let place = format!("{place} {}", text_of(given, "value"));
        for field in [
            "value",
            "label",
            "ordinal",
            "scale",
            "currentStates",
            "validation",
            "termBindings",
        ] {
            differ(
                found,
                &format!("{place} {field}"),
                given.get(field),
                made.get(field),
            );
        }
        let of = |v: &Value, field: &str| {
            v.pointer(&format!("/{field}/{language}"))
                .and_then(Value::as_str)
                .filter(|t| !t.is_empty())
                .map(Value::from)
        };
        for field in ["localizedLabels", "localizedDescriptions"]
            .into_iter()
            .filter(|f| of(given, f).is_some())
        {
            differ(
                found,
                &format!("{place} {field}"),
                of(given, field).as_ref(),
                of(made, field).as_ref(),
            );
        }
    }
}
