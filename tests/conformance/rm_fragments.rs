//! Suites `rm.constraint_fragments` and `rm.webtemplate_nodes`: constraints on one value, from unit
//! tests of other makers.
//!
//! A constraint fragment becomes a template of one ELEMENT. The values listed here must be accepted
//! or refused, and the form of the template must preserve every accepted value. A node of a web
//! template becomes the constraint that its fields describe. The web template of that constraint
//! must have the same fields.

use crate::corpus::{Corpus, text_of};
use crate::report::Case;
use crate::rm_json::findings_text;
use aqlite::diag::{Finding, Severity};
use aqlite::rm::class::Cls;
use aqlite::rm::{self, json};
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{Template, WebTemplate, validate};
use serde_json::{Value, json};

const NOW: &str = "2026-11-20T09:30:00Z";

/// Returns the values of a fragment: accepted ones, and refused ones.
fn values(name: &str) -> (Vec<Value>, Vec<Value>) {
    let coded = |terminology: &str, code: &str| {
        let phrase = json!({ "_type": "CODE_PHRASE", "terminology_id": { "_type": "TERMINOLOGY_ID", "value": terminology }, "code_string": code });
        json!({ "_type": "DV_CODED_TEXT", "value": "a", "defining_code": phrase })
    };
    let duration = |text: &str| json!({ "_type": "DV_DURATION", "value": text });
    let proportion = |kind: i64, numerator: f64, denominator: f64| json!({ "_type": "DV_PROPORTION", "numerator": numerator, "denominator": denominator, "type": kind });
    let interval = |lower: Value, upper: Value| {
        json!({ "_type": "DV_INTERVAL", "lower": lower, "upper": upper, "lower_included": true, "upper_included": true,
            "lower_unbounded": false, "upper_unbounded": false })
    };
    let count = |number: i64| json!({ "_type": "DV_COUNT", "magnitude": number });
    let time = |text: &str| json!({ "_type": "DV_DATE_TIME", "value": text });
    let text = || json!({ "_type": "DV_TEXT", "value": "a" });
    match name {
        "dvcodedtext" => (
            vec![coded("local", "at0006"), coded("local", "at0008")],
            vec![coded("local", "at0009"), coded("other", "at0006"), text()],
        ),
        "dvduration_excluded" => (
            vec![],
            vec![
                duration("P0D"),
                duration("P1D"),
                duration("P2D"),
                duration("PT1H"),
            ],
        ),
        "dvduration_range2" => (
            vec![duration("P0Y"), duration("P200Y"), duration("P3M")],
            vec![duration("P201Y")],
        ),
        "dvduration_upper" => (
            vec![duration("P30D"), duration("P1W")],
            vec![duration("P31D"), duration("PT1H")],
        ),
        "dvidentifier" => (
            vec![
                json!({ "_type": "DV_IDENTIFIER", "id": "1", "issuer": "i", "assigner": "a", "type": "t" }),
            ],
            vec![text()],
        ),
        "dvproportion" => (
            vec![
                proportion(0, 1.5, 2.0),
                proportion(2, 7.0, 100.0),
                proportion(3, 1.0, 2.0),
            ],
            vec![proportion(1, 1.0, 1.0), proportion(3, 1.5, 2.0)],
        ),
        "dvuri" => (
            vec![json!({ "_type": "DV_URI", "value": "https://example.org/a?b=c" })],
            vec![text()],
        ),
        "fhir_valueset" => (
            vec![coded(
                "http://terminology.hl7.org/CodeSystem/v3-EntityNameUseR2",
                "ANON",
            )],
            vec![text()],
        ),
        "interval_dvcount" => (
            vec![interval(count(1), count(2))],
            vec![
                interval(count(2), count(1)),
                interval(time("2026-01-01T00:00:00"), count(1)),
            ],
        ),
        "interval_dvdatetime" => (
            vec![interval(
                time("2026-01-01T10:00:00"),
                time("2026-01-02T10:00:00"),
            )],
            vec![
                interval(time("2026-01-03T10:00:00"), time("2026-01-02T10:00:00")),
                interval(count(1), count(2)),
            ],
        ),
        _ => (Vec::new(), Vec::new()),
    }
}

pub fn constraints(corpus: &Corpus) -> Vec<Case> {
    let mut cases = Vec::new();
    for file in corpus.files("rm/constraint_fragments") {
        let name = file
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".xml")
            .to_owned();
        let text = corpus.text(&file).unwrap_or_default();
        // In a template, a constraint is an element `children` without prefixes.
        let fragment = text
            .replace("v1:", "")
            .replace("xml-fragment", "children")
            .replace(" xmlns:v1=", " xmlns:v=");
        let (good, bad) = values(&name);
        if good.is_empty() && bad.is_empty() {
            cases.push(Case::check(&name, || {
                Err(String::from("no values are listed for this fragment"))
            }));
        }
        for value in good {
            cases.push(Case::check(
                format!("{name} accepts {}", short(&value)),
                || accepts(&fragment, &value),
            ));
        }
        for value in bad {
            cases.push(Case::check(
                format!("{name} refuses {}", short(&value)),
                || match problems(&fragment, &value)?.is_empty() {
                    true => Err(String::from("it was accepted")),
                    false => Ok(()),
                },
            ));
        }
    }
    cases
}

/// Prints a value without the members that every value of its class has.
fn short(value: &Value) -> String {
    let parts: Vec<String> = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !key.contains('_'))
        .map(|(_, v)| v.to_string())
        .collect();
    format!("{} {}", text_of(value, "_type"), parts.join(" "))
        .chars()
        .take(120)
        .collect()
}

/// Returns a template of one ELEMENT below an EVALUATION, whose value has this constraint.
fn template(constraint: &str) -> Result<Template, String> {
    let object = |class: &str, id: &str, attribute: &str, below: &str| {
        format!(
            r#"<rm_type_name>{class}</rm_type_name><occurrences><lower>1</lower><upper>1</upper></occurrences><node_id>{id}</node_id>
<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>{attribute}</rm_attribute_name>{below}</attributes>"#
        )
    };
    let child =
        |body: String| format!(r#"<children xsi:type="C_COMPLEX_OBJECT">{body}</children>"#);
    let terms: String = [
        "at0000", "at0001", "at0002", "at0006", "at0007", "at0008", "at0028", "at0029", "at1028",
    ]
    .iter()
    .map(|code| {
        format!(
            r#"<term_definitions code="{code}"><items id="text">{}</items></term_definitions>"#,
            label(code)
        )
    })
    .collect();
    let element = child(object("ELEMENT", "at0002", "value", constraint));
    let tree = child(object("ITEM_TREE", "at0001", "items", &element));
    let entry = object("EVALUATION", "at0000", "data", &tree);
    let entry = format!(
        r#"<children xsi:type="C_ARCHETYPE_ROOT">{entry}<archetype_id><value>openEHR-EHR-EVALUATION.e.v1</value></archetype_id>{terms}</children>"#
    );
    let root = object("COMPOSITION", "at0000", "content", &entry);
    let text = format!(
        r#"<template xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><language><code_string>en</code_string></language>
<template_id><value>t</value></template_id><concept>t</concept><definition>{root}<archetype_id><value>openEHR-EHR-COMPOSITION.c.v1</value></archetype_id>
<term_definitions code="at0000"><items id="text">c</items></term_definitions></definition></template>"#
    );
    Template::parse(&text).map_err(|errors| {
        errors
            .iter()
            .map(|e| e.one_line(&text))
            .collect::<Vec<_>>()
            .join("; ")
    })
}

/// Returns the name of a code in the files of the corpus.
fn label(code: &str) -> &str {
    match code {
        "at0028" => "First",
        "at0029" => "Second",
        "at0002" => "value",
        other => other,
    }
}

/// Returns a document of the template with the value.
fn document(value: &Value) -> String {
    let code = |terminology: &str, code: &str| json!({ "terminology_id": { "value": terminology }, "code_string": code });
    let details = |id: &str| json!({ "archetype_id": { "value": id }, "template_id": { "value": "t" }, "rm_version": "1.1.0" });
    let name = |text: &str| json!({ "_type": "DV_TEXT", "value": text });
    let openehr = |number: &str, text: &str| json!({ "_type": "DV_CODED_TEXT", "value": text, "defining_code": code("openehr", number) });
    json!({
        "_type": "COMPOSITION", "archetype_node_id": "openEHR-EHR-COMPOSITION.c.v1", "name": name("c"), "archetype_details": details("openEHR-EHR-COMPOSITION.c.v1"),
        "language": code("ISO_639-1", "en"), "territory": code("ISO_3166-1", "SE"), "category": openehr("433", "event"), "composer": { "_type": "PARTY_SELF" },
        "context": { "start_time": { "value": NOW }, "setting": openehr("238", "other care") },
        "content": [{
            "_type": "EVALUATION", "archetype_node_id": "openEHR-EHR-EVALUATION.e.v1", "name": name("at0000"), "archetype_details": details("openEHR-EHR-EVALUATION.e.v1"),
            "language": code("ISO_639-1", "en"), "encoding": code("IANA_character-sets", "UTF-8"), "subject": { "_type": "PARTY_SELF" },
            "data": { "_type": "ITEM_TREE", "archetype_node_id": "at0001", "name": name("at0001"),
                "items": [{ "_type": "ELEMENT", "archetype_node_id": "at0002", "name": name("value"), "value": value }] },
        }],
    })
    .to_string()
}

fn problems(constraint: &str, value: &Value) -> Result<Vec<Finding>, String> {
    let template = template(constraint)?;
    let tree = match json::read(&document(value), Cls::COMPOSITION) {
        Ok(tree) => tree,
        Err(findings) => return Ok(findings),
    };
    let root = tree.root().ok_or("the tree is empty")?;
    let mut findings = rm::validate::validate(root);
    findings.extend(validate(root, &template));
    findings.retain(|f| f.severity == Severity::Error);
    Ok(findings)
}

/// Checks that the value is valid and survives both simplified formats.
fn accepts(constraint: &str, value: &Value) -> Result<(), String> {
    let findings = problems(constraint, value)?;
    if !findings.is_empty() {
        return Err(findings_text(&findings));
    }
    let template = template(constraint)?;
    let web = WebTemplate::of(&template);
    let tree = json::read(&document(value), Cls::COMPOSITION).map_err(|f| findings_text(&f))?;
    let root = tree.root().ok_or("the tree is empty")?;
    for shape in [Shape::Flat, Shape::Structured] {
        let text = flat::write(root, shape, &template, &web, FlatDialect::Better)
            .map_err(|problem| problem.to_string())?
            .text;
        let again =
            flat::read(&text, shape, &template, &web, NOW).map_err(|f| findings_text(&f))?;
        let value_of = |text: String| {
            let parsed: Value = serde_json::from_str(&text).unwrap_or_default();
            parsed.pointer("/content/0/data/items/0/value").cloned()
        };
        let (given, made) = (
            value_of(json::write(root)),
            again.root().and_then(|r| value_of(json::write(r))),
        );
        if given != made || text.contains("|raw") {
            return Err(format!(
                "{shape:?}: {made:?} instead of {given:?}, by {text}"
            ));
        }
    }
    Ok(())
}

pub fn nodes(corpus: &Corpus) -> Vec<Case> {
    let files = corpus.files("rm/webtemplate_nodes");
    let case = |file: &String| {
        let name = file
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".json")
            .to_owned();
        Case::check(&name, || {
            let node: Value =
                serde_json::from_str(&corpus.text(file)?).map_err(|e| e.to_string())?;
            same_fields(
                &name,
                node.get("inputs")
                    .and_then(Value::as_array)
                    .map_or(&[], Vec::as_slice),
            )
        })
    };
    files.iter().map(case).collect()
}

/// Checks that the web template of the constraint described by the fields has these fields.
fn same_fields(name: &str, fields: &[Value]) -> Result<(), String> {
    let template = template(&constraint(name, fields)?)?;
    let made: Value = serde_json::from_str(&WebTemplate::of(&template).to_json(&template))
        .map_err(|e| e.to_string())?;
    let node = found(made.get("tree").unwrap_or(&made), "value")
        .ok_or("the web template has no node for the value")?;
    let made = node
        .get("inputs")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let given: Vec<Value> = fields.iter().map(plain).collect();
    let made: Vec<Value> = made.iter().map(plain).collect();
    if given == made {
        Ok(())
    } else {
        Err(format!(
            "{} instead of {}",
            Value::from(made),
            Value::from(given)
        ))
    }
}

fn found<'v>(node: &'v Value, id: &str) -> Option<&'v Value> {
    if text_of(node, "id") == id {
        return Some(node);
    }
    node.get("children")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find_map(|child| found(child, id))
}

/// Normalizes a field: whole numbers with their limits included, expressions without slashes,
/// labels in one language, no redundant members.
fn plain(field: &Value) -> Value {
    let mut field = field.clone();
    let is_whole = text_of(&field, "type") == "INTEGER";
    let Some(members) = field.as_object_mut() else {
        return field;
    };
    let has_list = members.contains_key("list");
    members.retain(|key, value| !(key == "listOpen" && !has_list && *value == false));
    if let Some(pattern) = members
        .get_mut("validation")
        .and_then(|v| v.get_mut("pattern"))
    {
        *pattern = Value::from(pattern.as_str().unwrap_or_default().trim_matches('/'));
    }
    if let Some(range) = members
        .get_mut("validation")
        .and_then(|v| v.get_mut("range"))
        .filter(|_| is_whole)
    {
        for (limit, op, exclusive, inclusive, step) in [
            ("min", "minOp", ">", ">=", 1),
            ("max", "maxOp", "<", "<=", -1),
        ] {
            if text_of(range, op) == exclusive {
                range[limit] = Value::from(range[limit].as_i64().unwrap_or_default() + step);
                range[op] = Value::from(inclusive);
            }
        }
    }
    if let Some(default) = members.get_mut("defaultValue").filter(|d| d.is_number()) {
        *default = Value::from(default.as_f64());
    }
    for entry in members
        .get_mut("list")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        entry.retain(|key, _| !matches!(key.as_str(), "localizedLabels" | "localizedDescriptions"));
        if let Some(validation) = entry.get_mut("validation") {
            *validation = numbers(validation);
        }
    }
    if let Some(validation) = members.get_mut("validation") {
        *validation = numbers(validation);
    }
    field
}

/// Normalizes limits by value, without the operators of a precision, which always includes its
/// limits.
fn numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64()),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let mut value = numbers(value);
                if let Some(precision) = value.as_object_mut().filter(|_| key == "precision") {
                    precision.retain(|key, _| !key.ends_with("Op"));
                }
                (key.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

fn object(kind: &str, class: &str, body: &str) -> String {
    format!(
        r#"<children xsi:type="{kind}"><rm_type_name>{class}</rm_type_name><node_id/>{body}</children>"#
    )
}

fn attribute(name: &str, child: &str) -> String {
    format!(
        r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>{name}</rm_attribute_name>{child}</attributes>"#
    )
}

/// Returns a constraint on a primitive attribute. Empty for an empty body.
fn primitive_attribute(attr: &str, kind: &str, body: &str) -> String {
    if body.is_empty() {
        return String::new();
    }
    let item = format!(r#"<item xsi:type="{kind}">{body}</item>"#);
    attribute(attr, &object("C_PRIMITIVE_OBJECT", "STRING", &item))
}

fn entries(field: &Value) -> Vec<Value> {
    let list = field.get("list").and_then(Value::as_array);
    list.cloned().unwrap_or_default()
}

/// Returns the class of a value, which the name of a node contains.
fn class_of(name: &str) -> Result<&'static str, String> {
    Ok(
        match name
            .trim_start_matches("dv_")
            .split('_')
            .next()
            .unwrap_or_default()
        {
            "boolean" => "DV_BOOLEAN",
            "codedtext" => "DV_CODED_TEXT",
            "count" => "DV_COUNT",
            "date" => "DV_DATE",
            "datetime" => "DV_DATE_TIME",
            "ordinal" => "DV_ORDINAL",
            "quantity" => "DV_QUANTITY",
            "state" => "DV_STATE",
            "text" => "DV_TEXT",
            "time" => "DV_TIME",
            other => return Err(format!("`{other}` is no known type of value")),
        },
    )
}

/// Returns the constraint that the fields of a node describe, in OPT.
fn constraint(name: &str, fields: &[Value]) -> Result<String, String> {
    let first = fields.first().ok_or("the node has no fields")?;
    let class = class_of(name)?;
    let pattern = first
        .pointer("/validation/pattern")
        .and_then(Value::as_str)
        .map_or_else(String::new, |p| format!("<pattern>{p}</pattern>"));
    let limits = first
        .pointer("/validation/range")
        .map_or_else(String::new, |r| range("range", r));
    let body = match class {
        "DV_COUNT" => primitive_attribute("magnitude", "C_INTEGER", &limits),
        "DV_DATE" | "DV_TIME" | "DV_DATE_TIME" => {
            let kind = class.replace("DV_", "C_");
            primitive_attribute("value", &kind, &(pattern + &limits))
        }
        "DV_TEXT" => text_constraint(first, &pattern),
        "DV_CODED_TEXT" | "DV_STATE" => coded_constraint(first),
        "DV_QUANTITY" => return quantity_constraint(first, fields),
        "DV_ORDINAL" => return Ok(object("C_DV_ORDINAL", class, "")),
        _ => String::new(),
    };
    Ok(object("C_COMPLEX_OBJECT", class, &body))
}

fn text_constraint(first: &Value, pattern: &str) -> String {
    let assumed = first.get("defaultValue").map_or_else(String::new, |v| {
        let text = v.as_str().unwrap_or_default();
        format!("<assumed_value>{text}</assumed_value>")
    });
    let list: String = entries(first)
        .iter()
        .map(|entry| format!("<list>{}</list>", text_of(entry, "value")))
        .collect();
    let open = if first.get("listOpen") == Some(&Value::Bool(true)) {
        "<list_open>true</list_open>"
    } else {
        ""
    };
    primitive_attribute("value", "C_STRING", &(assumed + pattern + &list + open))
}

fn coded_constraint(first: &Value) -> String {
    let codes: String = entries(first)
        .iter()
        .map(|entry| format!("<code_list>{}</code_list>", text_of(entry, "value")))
        .collect();
    let code = first.get("defaultValue").and_then(Value::as_str);
    let assumed = code.map_or_else(String::new, |code| {
        format!("<assumed_value><code_string>{code}</code_string></assumed_value>")
    });
    match text_of(first, "terminology") {
        "" if codes.is_empty() => String::new(),
        "" => {
            let inner =
                format!("{assumed}<terminology_id><value>local</value></terminology_id>{codes}");
            attribute(
                "defining_code",
                &object("C_CODE_PHRASE", "CODE_PHRASE", &inner),
            )
        }
        uri => {
            let inner = format!("{assumed}<referenceSetUri>terminology:{uri}</referenceSetUri>");
            attribute(
                "defining_code",
                &object("C_CODE_REFERENCE", "CODE_PHRASE", &inner),
            )
        }
    }
}

fn quantity_constraint(first: &Value, fields: &[Value]) -> Result<String, String> {
    let units = fields
        .iter()
        .find(|field| text_of(field, "suffix") == "unit")
        .ok_or("no field for the unit")?;
    let magnitude = first
        .get("defaultValue")
        .map_or_else(String::new, |v| format!("<magnitude>{v}</magnitude>"));
    let unit = units
        .get("defaultValue")
        .and_then(Value::as_str)
        .map_or_else(String::new, |u| format!("<units>{u}</units>"));
    let assumed = if magnitude.is_empty() {
        String::new()
    } else {
        format!("<assumed_value>{magnitude}{unit}</assumed_value>")
    };
    let item = |entry: &Value| {
        let limits = |key: &str| entry.pointer(&format!("/validation/{key}"));
        let magnitude = limits("range").map_or_else(String::new, |r| range("magnitude", r));
        let precision = limits("precision").map_or_else(String::new, |r| range("precision", r));
        format!(
            "<list>{magnitude}{precision}<units>{}</units></list>",
            text_of(entry, "value")
        )
    };
    Ok(object(
        "C_DV_QUANTITY",
        "DV_QUANTITY",
        &(assumed + &entries(units).iter().map(item).collect::<String>()),
    ))
}

/// Returns a range in OPT.
fn range(name: &str, limits: &Value) -> String {
    let limit = |side: &str, key: &str, op: &str| match limits.get(key) {
        Some(value) => {
            let is_included = !matches!(text_of(limits, op), ">" | "<");
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!(
                "<{side}_included>{is_included}</{side}_included><{side}_unbounded>false</{side}_unbounded><{side}>{text}</{side}>"
            )
        }
        None => format!("<{side}_unbounded>true</{side}_unbounded>"),
    };
    format!(
        "<{name}>{}{}</{name}>",
        limit("lower", "min", "minOp"),
        limit("upper", "max", "maxOp")
    )
}
