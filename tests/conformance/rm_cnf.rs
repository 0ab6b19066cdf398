//! Suite `rm.cnf`: the rows of openEHR's conformance schedule. A row about a data value becomes a
//! template of one ELEMENT and a document of one ELEMENT, a row about a structure a template and a
//! document of that structure. The verdict must be that of the row.

use crate::corpus::{Corpus, text_of};
use crate::report::{Case, Status};
use crate::rm_cnf_structure::{self, Structure};
use crate::rm_json::findings_text;
use aqlite::diag::{Finding, Severity};
use aqlite::rm::class::Cls;
use aqlite::rm::{self, json};
use aqlite::template::{Template, validate};
use serde_json::{Map, Value};

pub fn run(corpus: &Corpus) -> Vec<Case> {
    let cases: Vec<Case> = corpus
        .json_lines("rm/cnf_content_cases.jsonl")
        .iter()
        .enumerate()
        .map(|(index, case)| one(index, case))
        .collect();
    let (values, structures): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.id.contains(" DV_"));
    let (intervals, singles): (Vec<&Case>, Vec<&Case>) = values
        .into_iter()
        .partition(|case| case.id.contains(" DV_INTERVAL_"));
    println!(
        "  rows of one DV_ class: {}; of its intervals: {}; of structures: {}; all: {}",
        share(&singles),
        share(&intervals),
        share(&structures),
        share(&cases.iter().collect::<Vec<_>>())
    );
    cases
}

/// Returns the share of the rows with a verdict that got it.
fn share(cases: &[&Case]) -> String {
    let count = |status| cases.iter().filter(|case| case.status == status).count();
    let (passed, all) = (
        count(Status::Passed),
        count(Status::Passed) + count(Status::Failed),
    );
    format!(
        "{passed} of {all} ({:.2} %)",
        passed as f64 * 100.0 / all.max(1) as f64
    )
}

fn one(index: usize, case: &Value) -> Case {
    let name = text_of(case, "case").trim_start_matches("CONT-");
    let id = format!("{index:04} {name}");
    let expected = text_of(case, "expected");
    let is_ragged = case
        .get("ragged")
        .and_then(Value::as_bool)
        .unwrap_or_default();
    if is_ragged || !matches!(expected, "accepted" | "rejected") {
        return Case::skipped(id, "the table gives no verdict");
    }
    if let Some(structure) = case
        .get("row")
        .and_then(|row| rm_cnf_structure::of(name, row))
    {
        return Case::check(id, || {
            let findings = structure_problems(&structure)?;
            match (findings.is_empty(), expected) {
                (true, "rejected") => Err(format!(
                    "it was accepted, against: {}",
                    text_of(&case["row"], "constraints violated")
                )),
                (false, "accepted") => Err(findings_text(&findings)),
                _ => Ok(()),
            }
        });
    }
    let class = name.split('-').next().unwrap_or_default();
    let (class, is_interval) = class
        .strip_prefix("DV_INTERVAL_")
        .map_or((class, false), |limit| (limit, true));
    let Some(cells) = case
        .get("row")
        .and_then(Value::as_object)
        .filter(|_| class.starts_with("DV_"))
    else {
        return Case::skipped(id, "the row is about more than one data value");
    };
    let row = Row {
        class,
        cells,
        side: "",
    };
    if !cells
        .keys()
        .any(|column| ["lower", "lower.value"].contains(&column.as_str()))
        && (is_interval || row.slots().is_empty())
    {
        return Case::skipped(id, "the table has no columns for the value");
    }
    Case::check(id, || {
        let (constraint, value) = if is_interval {
            interval(&row)
        } else {
            (row.constraint(), row.value())
        };
        let findings = problems(&constraint, &value.ok_or("the row has no value")?)?;
        match (findings.is_empty(), expected) {
            (true, "rejected") => Err(format!("it was accepted, against: {}", row.reason())),
            (false, "accepted") => Err(findings_text(&findings)),
            _ => Ok(()),
        }
    })
}

/// Returns the findings of a template that constrains an ELEMENT only, for this value.
fn problems(constraint: &str, value: &str) -> Result<Vec<Finding>, String> {
    let text = format!(
        r#"<template xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><language><code_string>en</code_string></language>
<template_id><value>t</value></template_id><concept>t</concept><definition><rm_type_name>ELEMENT</rm_type_name><node_id>at1</node_id>
<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name>{constraint}</attributes></definition></template>"#
    );
    let document = format!(
        r#"{{"_type":"ELEMENT","archetype_node_id":"at1","name":{{"_type":"DV_TEXT","value":"n"}},"value":{value}}}"#
    );
    findings(&text, &document, Cls::ELEMENT)
}

/// Returns the findings of a template that constrains the attributes of a structure only.
fn structure_problems(structure: &Structure) -> Result<Vec<Finding>, String> {
    let Structure {
        class,
        attributes,
        document,
    } = structure;
    let text = format!(
        r#"<template xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><language><code_string>en</code_string></language>
<template_id><value>t</value></template_id><concept>t</concept><definition><rm_type_name>{class}</rm_type_name><node_id>at1</node_id>
{attributes}</definition></template>"#
    );
    findings(
        &text,
        &document.to_string(),
        Cls::parse(class).ok_or("no class")?,
    )
}

/// Returns the errors of a document against the Reference Model and a template.
fn findings(template: &str, document: &str, class: Cls) -> Result<Vec<Finding>, String> {
    let template = Template::parse(template).map_err(|errors| {
        errors
            .iter()
            .map(|e| e.one_line(template))
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    let tree = match json::read(document, class) {
        Ok(tree) => tree,
        Err(findings) => return Ok(findings),
    };
    let root = tree.root().ok_or("the tree is empty")?;
    let mut findings = rm::validate::validate(root);
    findings.extend(validate(root, &template));
    findings.retain(|f| f.severity == Severity::Error);
    Ok(findings)
}

/// Returns the constraint and the value of an interval, from the columns of its limits.
fn interval(row: &Row<'_>) -> (String, Option<String>) {
    let [lower, upper] = ["lower", "upper"].map(|side| Row { side, ..*row });
    let limits = [&lower, &upper]
        .map(|limit| attribute(limit.side, &limit.constraint(), false))
        .concat();
    let mut members = vec![r#""_type":"DV_INTERVAL""#.to_owned()];
    members.extend(
        [&lower, &upper]
            .iter()
            .filter_map(|limit| Some(format!(r#""{}":{}"#, limit.side, limit.value()?))),
    );
    for flag in [
        "lower_unbounded",
        "upper_unbounded",
        "lower_included",
        "upper_included",
    ] {
        members.extend(row.cell(flag).map(|value| format!(r#""{flag}":{value}"#)));
    }
    let constraint = object(
        "C_COMPLEX_OBJECT",
        &format!("DV_INTERVAL&lt;{}&gt;", row.class),
        &limits,
    );
    (constraint, Some(format!("{{{}}}", members.join(","))))
}

/// The cells that concern one value: the whole row, or one limit of its interval.
#[derive(Clone, Copy)]
struct Row<'a> {
    class: &'a str,
    cells: &'a Map<String, Value>,
    side: &'a str,
}

/// The notation of an attribute.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Text,
    Plain,
    Coded,
    Media,
}

impl<'a> Row<'a> {
    fn cell(&self, column: &str) -> Option<&'a str> {
        let wanted = spelling(column);
        let found = self.cells.get(column).or_else(|| {
            self.cells
                .iter()
                .find(|(name, _)| spelling(name) == wanted)
                .map(|(_, cell)| cell)
        });
        let text = found?.as_str()?.trim();
        if text.eq_ignore_ascii_case("null") {
            None
        } else {
            Some(text.trim_matches(['\'', '"']))
        }
    }

    /// Returns the cell of a constraint. Its column may name the limit in several ways.
    fn rule(&self, column: &str) -> Option<&'a str> {
        match self.side {
            "" => self.cell(column),
            side => self
                .cell(&format!("{column} ({side})"))
                .or_else(|| self.cell(&format!("{side}.{column}"))),
        }
    }

    fn reason(&self) -> &'a str {
        ["constraints violated", "violated constraints"]
            .into_iter()
            .find_map(|column| self.cell(column))
            .unwrap_or_default()
    }

    /// Returns the attributes of the class for which the table has columns.
    fn slots(&self) -> Vec<(&'static str, Form)> {
        let all: &[(&str, Form)] = match self.class {
            "DV_BOOLEAN" => &[("value", Form::Plain)],
            "DV_COUNT" => &[("magnitude", Form::Plain)],
            "DV_QUANTITY" => &[("magnitude", Form::Plain), ("units", Form::Text)],
            "DV_ORDINAL" | "DV_SCALE" => &[("value", Form::Plain), ("symbol", Form::Coded)],
            "DV_PROPORTION" => &[
                ("type", Form::Plain),
                ("numerator", Form::Plain),
                ("denominator", Form::Plain),
                ("precision", Form::Plain),
            ],
            "DV_IDENTIFIER" => &[
                ("issuer", Form::Text),
                ("assigner", Form::Text),
                ("id", Form::Text),
                ("type", Form::Text),
            ],
            "DV_MULTIMEDIA" => &[("media_type", Form::Media), ("size", Form::Plain)],
            "DV_PARSABLE" => &[("value", Form::Text), ("formalism", Form::Text)],
            _ => &[("value", Form::Text)],
        };
        all.iter()
            .copied()
            .filter(|(name, _)| {
                self.side == "lower" || self.side == "upper" || self.cells.contains_key(*name)
            })
            .collect()
    }

    fn read(&self, attribute: &str) -> Option<String> {
        if self.side.is_empty() {
            return self.cell(attribute).map(str::to_owned);
        }
        let whole = || match (self.cell(self.side)?, attribute) {
            (cell, "units") => cell.split_once(' ').map(|(_, units)| units),
            (cell, _) => cell.split(' ').next(),
        };
        self.cell(&format!("{}.{attribute}", self.side))
            .or_else(whole)
            .map(str::to_owned)
    }

    /// Returns the value as JSON; `None` for a limit without cells.
    fn value(&self) -> Option<String> {
        let mut members = vec![format!(r#""_type":"{}""#, self.class)];
        for (name, form) in self.slots() {
            let Some(text) = self.read(name) else {
                continue;
            };
            let quoted = Value::from(text.as_str()).to_string();
            members.push(format!(r#""{name}":{}"#, match form {
                Form::Text => quoted,
                Form::Plain => text,
                Form::Media => format!(r#"{{"terminology_id":{{"value":"IANA_media-types"}},"code_string":{quoted}}}"#),
                Form::Coded => {
                    let (terminology, code) = text.split_once("::")?;
                    format!(r#"{{"_type":"DV_CODED_TEXT","value":"s","defining_code":{{"terminology_id":{{"value":"{terminology}"}},"code_string":"{code}"}}}}"#)
                }
            }));
        }
        if members.len() == 1 && !self.side.is_empty() {
            return None;
        }
        // Attributes that the Reference Model requires and the table omits.
        match self.class {
            "DV_IDENTIFIER" if !self.cells.contains_key("id") => {
                members.push(r#""id":"1""#.to_owned())
            }
            "DV_MULTIMEDIA" => members
                .push(r#""uri":{"_type":"DV_URI","value":"http://example.org/a"}"#.to_owned()),
            _ => {}
        }
        Some(format!("{{{}}}", members.join(",")))
    }

    /// Returns the constraint on the value in OPT.
    fn constraint(&self) -> String {
        let rules = |name: &str| {
            self.attribute_rule(name)
                .map_or_else(String::new, |item| attribute(name, &primitive(&item), true))
        };
        match self.class {
            "DV_QUANTITY" if self.rule("C_DV_QUANTITY.property").is_some() => {
                let code = self
                    .rule("C_DV_QUANTITY.property")
                    .unwrap_or_default()
                    .trim_start_matches("openehr::");
                let code = code.split(' ').next().unwrap_or_default();
                let property = format!(
                    "<property><terminology_id><value>openehr</value></terminology_id><code_string>{code}</code_string></property>"
                );
                let items = members(self.rule("C_DV_QUANTITY.list"))
                    .iter()
                    .map(|units| format!("<list><units>{units}</units></list>"))
                    .collect::<String>();
                object("C_DV_QUANTITY", self.class, &(property + &items))
            }
            "DV_ORDINAL" | "DV_SCALE" => match self.rule(&format!("C_{}.list", self.class)) {
                Some(list) => object(
                    &format!("C_{}", self.class),
                    self.class,
                    &list.split(", ").map(ordinal).collect::<String>(),
                ),
                None => object("C_COMPLEX_OBJECT", self.class, ""),
            },
            _ => object(
                "C_COMPLEX_OBJECT",
                self.class,
                &self
                    .slots()
                    .iter()
                    .map(|(name, _)| rules(name))
                    .collect::<String>(),
            ),
        }
    }

    /// Returns the item that constrains an attribute, if the table has one.
    fn attribute_rule(&self, name: &str) -> Option<String> {
        let with = |kind: &str, body: String| (!body.is_empty()).then(|| item(kind, &body));
        let texts = |suffix: &str| {
            let pattern = self
                .rule(&format!("C_STRING.pattern{suffix}"))
                .map(|p| format!("<pattern>{p}</pattern>"));
            let list = members(self.rule(&format!("C_STRING.list{suffix}")))
                .iter()
                .map(|text| format!("<list>{text}</list>"))
                .collect::<String>();
            with("C_STRING", pattern.unwrap_or_default() + &list)
        };
        let integers = || {
            let list = members(self.rule("C_INTEGER.list"))
                .iter()
                .map(|number| format!("<list>{number}</list>"))
                .collect::<String>();
            with(
                "C_INTEGER",
                list + &self.rule("C_INTEGER.range").map_or_else(String::new, range),
            )
        };
        match (self.class, name) {
            ("DV_BOOLEAN", _) => {
                let flag = |name: &str| {
                    self.rule(&format!("C_BOOLEAN.{name}"))
                        .map_or_else(String::new, |v| format!("<{name}>{v}</{name}>"))
                };
                with("C_BOOLEAN", flag("true_valid") + &flag("false_valid"))
            }
            ("DV_PROPORTION", "numerator") => with(
                "C_REAL",
                self.rule("C_REAL.range (num)")
                    .map_or_else(String::new, range),
            ),
            ("DV_PROPORTION", "denominator") => with(
                "C_REAL",
                self.rule("C_REAL.range (den)")
                    .map_or_else(String::new, range),
            ),
            ("DV_MULTIMEDIA", "media_type") => self.rule("C_CODE_PHRASE").map(|list| {
                let codes = members(Some(list))
                    .iter()
                    .map(|code| format!("<code_list>{code}</code_list>"))
                    .collect::<String>();
                format!("<terminology_id><value>IANA_media-types</value></terminology_id>{codes}")
            }),
            ("DV_COUNT", _) | ("DV_PROPORTION", "type") | ("DV_MULTIMEDIA", _) => integers(),
            ("DV_PARSABLE", _) => texts(&format!(" ({name})")),
            ("DV_DURATION", _) => with("C_DURATION", self.duration()),
            ("DV_DATE" | "DV_TIME" | "DV_DATE_TIME", _) => {
                let kind = self.class.replace("DV_", "C_");
                let range = self
                    .rule(&format!("{kind}.range"))
                    .map_or_else(String::new, range);
                with(&kind, self.date_pattern() + &range)
            }
            _ => texts(""),
        }
    }

    fn validity(&self, component: &str) -> Option<&'a str> {
        self.rule(&format!("{component}_validity"))
            .or_else(|| self.rule(&format!("{component}_val.")))
    }

    fn date_pattern(&self) -> String {
        let letter = |component: &str, written: &str| match self.validity(component) {
            Some("mandatory") => Some(written.to_owned()),
            Some("optional") => Some("?".repeat(2)),
            Some(_) => Some("XX".to_owned()),
            None => None,
        };
        let join = |components: [(&str, &str); 2], mark: &str| {
            components
                .iter()
                .filter_map(|(c, w)| Some(format!("{mark}{}", letter(c, w)?)))
                .collect::<String>()
        };
        let (date, clock) = (
            join([("month", "mm"), ("day", "dd")], "-"),
            join([("minute", "MM"), ("second", "SS")], ":"),
        );
        let pattern = match self.class {
            _ if date.is_empty() && clock.is_empty() => return String::new(),
            "DV_TIME" => format!("HH{clock}"),
            "DV_DATE" => format!("yyyy{date}"),
            _ => format!(
                "yyyy{date}T{}{clock}",
                letter("hour", "HH").unwrap_or_else(|| "HH".to_owned())
            ),
        };
        let rest = ["millisecond", "timezone"].map(|component| {
            let kind = match self.validity(component) {
                Some("mandatory") => "1001",
                Some("prohibited") => "1003",
                _ => "1002",
            };
            format!("<{component}_validity>{kind}</{component}_validity>")
        });
        format!("<pattern>{pattern}</pattern>{}", rest.concat())
    }

    fn duration(&self) -> String {
        let letters = |components: &[(&str, &str)]| {
            components
                .iter()
                .filter(|(c, _)| self.rule(&format!("{c}_allowed")) == Some("true"))
                .map(|(_, l)| *l)
                .collect::<String>()
        };
        let date = letters(&[
            ("years", "Y"),
            ("months", "M"),
            ("weeks", "W"),
            ("days", "D"),
        ]);
        let clock = letters(&[("hours", "H"), ("minutes", "M"), ("seconds", "S")]);
        let mut body = String::new();
        if self.rule("years_allowed").is_some() {
            body = format!("<pattern>P{date}T{clock}</pattern>");
        }
        if let Some(fraction) = self.rule("fractional_seconds_allowed") {
            body += &format!("<fractional_seconds_allowed>{fraction}</fractional_seconds_allowed>");
        }
        if let (Some(lower), Some(upper)) = (self.rule("range.lower"), self.rule("range.upper")) {
            body += &range(&format!("{lower}..{upper}"));
        }
        body
    }
}

/// Normalizes the name of a column: lower case, `a (b)` as `b.a`, whole words for abbreviations.
fn spelling(column: &str) -> String {
    let column = column
        .to_ascii_lowercase()
        .replace("_val.", "_validity")
        .replace("(num)", "(numerator)")
        .replace("(den)", "(denominator)");
    let words: String = column.split_whitespace().collect::<Vec<_>>().join(" ");
    match words
        .strip_suffix(')')
        .and_then(|front| front.split_once(" ("))
    {
        Some((name, side)) => format!("{side}.{name}"),
        None => words,
    }
}

/// Returns the members of `[a, b]`. Empty without a list.
fn members(list: Option<&str>) -> Vec<&str> {
    list.map(|l| {
        l.trim_matches(['[', ']'])
            .split(',')
            .map(str::trim)
            .collect()
    })
    .unwrap_or_default()
}

/// Converts `a..b`, `>=a` or `<=b`.
fn range(text: &str) -> String {
    let (lower, upper) = match text.split_once("..") {
        Some((lower, upper)) => (Some(lower), Some(upper)),
        None => (text.strip_prefix(">="), text.strip_prefix("<=")),
    };
    let limit = |name: &str, value: Option<&str>| match value {
        Some(value) => format!(
            "<{name}_included>true</{name}_included><{name}_unbounded>false</{name}_unbounded><{name}>{value}</{name}>"
        ),
        None => format!("<{name}_unbounded>true</{name}_unbounded>"),
    };
    format!(
        "<range>{}{}</range>",
        limit("lower", lower),
        limit("upper", upper)
    )
}

/// Converts `1|[local::at0005]`.
fn ordinal(pair: &str) -> String {
    let (value, symbol) = pair.split_once('|').unwrap_or((pair, ""));
    let (terminology, code) = symbol
        .trim_matches(['[', ']'])
        .split_once("::")
        .unwrap_or_default();
    format!(
        "<list><value>{value}</value><symbol><defining_code><terminology_id><value>{terminology}</value></terminology_id><code_string>{code}</code_string></defining_code></symbol></list>"
    )
}

fn object(kind: &str, class: &str, body: &str) -> String {
    format!(
        r#"<children xsi:type="{kind}"><rm_type_name>{class}</rm_type_name><node_id/>{body}</children>"#
    )
}

fn attribute(name: &str, children: &str, is_mandatory: bool) -> String {
    let lower = u8::from(is_mandatory);
    format!(
        r#"<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>{name}</rm_attribute_name><existence><lower>{lower}</lower><upper>1</upper></existence>{children}</attributes>"#
    )
}

fn item(kind: &str, body: &str) -> String {
    format!(r#"<item xsi:type="{kind}">{body}</item>"#)
}

/// Returns a constraint on a primitive value, or on a CODE_PHRASE, which has no `item`.
fn primitive(body: &str) -> String {
    if body.starts_with("<item") {
        object("C_PRIMITIVE_OBJECT", "STRING", body)
    } else {
        object("C_CODE_PHRASE", "CODE_PHRASE", body)
    }
}
