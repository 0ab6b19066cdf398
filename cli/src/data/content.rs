//! The content of a file, which its text determines and not its name.

use aqlite::rm::json::members;

/// The content of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// An operational template: OPT 1.4 or ADL 2, as XML or text.
    Template,
    /// A document as canonical XML.
    Xml,
    /// A document as canonical JSON.
    Json,
    /// A composition as FLAT.
    Flat,
    /// A composition as STRUCTURED.
    Structured,
    /// A line of a bulk load: a document with its EHR.
    BulkLine,
    /// A line of an export: a record with its digest.
    ExportLine,
    /// A JSON array of documents.
    List,
    /// A guide: GDL or GDL2.
    Guide,
    /// A query.
    Aql,
    /// Anything else.
    Unknown,
}

/// The words that begin a template or archetype in ADL.
const ADL: [&str; 5] = [
    "operational_template",
    "template",
    "archetype",
    "template_overlay",
    "operational_archetype",
];

impl Content {
    /// Determines the content of a text. Costs one pass over JSON that is not canonical.
    pub fn of(text: &str) -> Content {
        let text = body(text);
        match text.chars().next() {
            Some('<') => of_xml(text),
            Some('[') => Content::List,
            Some('{') => of_json(text),
            Some('(') => Content::Guide,
            _ => of_words(text),
        }
    }

    /// Determines whether the beginning of a text is that of a template.
    pub fn is_template(beginning: &str) -> bool {
        let text = body(beginning);
        match text.chars().next() {
            Some('<') => of_xml(text) == Content::Template,
            Some('[' | '{') => false,
            _ => of_words(text) == Content::Template,
        }
    }
}

/// Returns a text without its byte order mark and the white space before its first character.
pub fn body(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim_start()
}

fn of_xml(text: &str) -> Content {
    match root_of(text) {
        "template" | "operational_template" | "archetype" | "OPERATIONAL_TEMPLATE" => {
            Content::Template
        }
        "" => Content::Unknown,
        _ => Content::Xml,
    }
}

/// Returns the local name of the root element; empty if there is none.
fn root_of(text: &str) -> &str {
    let mut rest = text;
    loop {
        let Some((_, behind)) = rest.split_once('<') else {
            return "";
        };
        let end = match behind {
            _ if behind.starts_with('?') => "?>",
            _ if behind.starts_with("!--") => "-->",
            _ if behind.starts_with('!') => ">",
            _ => {
                let is_end = |c: char| c.is_whitespace() || matches!(c, '>' | '/');
                let name = behind.split(is_end).next().unwrap_or_default();
                return name.rsplit(':').next().unwrap_or_default();
            }
        };
        let Some((_, behind)) = behind.split_once(end) else {
            return "";
        };
        rest = behind;
    }
}

fn of_json(text: &str) -> Content {
    // Most documents begin with their class: then the text is not read twice.
    let compact = text.trim_start_matches('{').trim_start();
    if compact.starts_with("\"_type\"") {
        return Content::Json;
    }
    let Ok(members) = members(text) else {
        // The reader of documents reports where the text is not JSON.
        return Content::Json;
    };
    let has = |name: &str| members.iter().any(|(key, _)| key == name);
    if has("_type") || has("archetype_node_id") {
        Content::Json
    } else if has("ehr_id")
        && ["composition", "ehr_status", "contribution"]
            .iter()
            .any(|key| has(key))
    {
        Content::BulkLine
    } else if has("digest") && has("record") {
        Content::ExportLine
    } else if has("gdl_version") || has("definition") && has("concept") {
        Content::Guide
    } else if members.iter().any(|(key, _)| key.contains(['/', '|'])) {
        Content::Flat
    } else if members
        .iter()
        .any(|(key, value)| key == "ctx" || value.starts_with(['{', '[']))
    {
        Content::Structured
    } else {
        Content::Unknown
    }
}

fn of_words(text: &str) -> Content {
    let is_end = |c: char| c.is_whitespace() || c == '(';
    let word = text.split(is_end).next().unwrap_or_default();
    if ADL.contains(&word) {
        return Content::Template;
    }
    if word.eq_ignore_ascii_case("SELECT") || word.starts_with("--") {
        return Content::Aql;
    }
    Content::Unknown
}

#[cfg(test)]
mod tests {
    use super::Content;

    #[test]
    fn text_decides_what_a_file_is() {
        let cases = [
            (
                "<?xml version=\"1.0\"?>\n<!-- a -->\n<template xmlns=\"x\">",
                Content::Template,
            ),
            ("\u{feff}<composition xmlns=\"x\"/>", Content::Xml),
            (
                "operational_template (adl_version=2.0.6)",
                Content::Template,
            ),
            ("{\"_type\":\"COMPOSITION\"}", Content::Json),
            ("{\"name\":{},\"archetype_node_id\":\"x\"}", Content::Json),
            ("{\"ctx/language\":\"en\",\"a/b:0|x\":1}", Content::Flat),
            ("{\"a|raw\":{\"b\":1}}", Content::Flat),
            (
                "{\"ctx\":{\"language\":\"en\"},\"a\":{\"b\":[1]}}",
                Content::Structured,
            ),
            ("{\"ehr_id\":\"e\",\"composition\":{}}", Content::BulkLine),
            ("{\"id\":\"g\",\"gdl_version\":\"2.0\"}", Content::Guide),
            ("(GUIDE) <", Content::Guide),
            ("-- about\nSELECT c FROM COMPOSITION c", Content::Aql),
            ("[{}]", Content::List),
            ("{\"a\":1}", Content::Unknown),
            ("", Content::Unknown),
        ];
        for (text, expected) in cases {
            assert_eq!(Content::of(text), expected, "{text}");
        }
    }
}
