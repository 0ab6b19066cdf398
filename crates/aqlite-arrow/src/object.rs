//! Data values as the members of a struct: quantities and coded texts.
//!
//! No attribute is lost: those without a member of their own are a JSON object in the member
//! `other`.

use aqlite_rm::json::{members, quote_into};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A member of a JSON object: its name and its value as JSON.
type Member<'a> = (Cow<'a, str>, &'a str);

/// A data value that becomes a struct.
#[derive(Debug, PartialEq)]
pub(crate) enum DataValue<'a> {
    /// A DV_QUANTITY.
    Quantity(Quantity<'a>),
    /// A DV_CODED_TEXT or a CODE_PHRASE.
    Coded(Coded<'a>),
}

/// The members of a DV_QUANTITY.
#[derive(Debug, PartialEq)]
pub(crate) struct Quantity<'a> {
    /// The digits as sent.
    pub magnitude: &'a str,
    pub units: Option<Cow<'a, str>>,
    pub precision: Option<i64>,
    /// The attributes that have no other member, as a JSON object.
    pub other: Option<String>,
}

/// The members of a DV_CODED_TEXT or of a CODE_PHRASE.
#[derive(Debug, PartialEq, Default)]
pub(crate) struct Coded<'a> {
    /// The text; `None` for a CODE_PHRASE.
    pub value: Option<Cow<'a, str>>,
    pub code: Option<Cow<'a, str>>,
    pub terminology: Option<Cow<'a, str>>,
    /// The attributes that have no other member, as a JSON object.
    pub other: Option<String>,
}

/// The name of a class of coded texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum CodedClass {
    CodedText,
    CodePhrase,
}

impl CodedClass {
    /// Returns the name of the class.
    pub fn name(self) -> &'static str {
        match self {
            CodedClass::CodedText => "DV_CODED_TEXT",
            CodedClass::CodePhrase => "CODE_PHRASE",
        }
    }
}

impl Coded<'_> {
    /// Returns the class. A DV_CODED_TEXT has a value.
    pub fn class(&self) -> CodedClass {
        match self.value {
            Some(_) => CodedClass::CodedText,
            None => CodedClass::CodePhrase,
        }
    }
}

impl DataValue<'_> {
    /// Reads an object; `None` if it has another class, or lacks a member that its struct needs.
    pub fn read(json: &str) -> Option<DataValue<'_>> {
        let all = members(json).ok()?;
        match class_of(&all)? {
            "DV_QUANTITY" => Quantity::read(all).map(DataValue::Quantity),
            "DV_CODED_TEXT" => read_coded_text(all).map(DataValue::Coded),
            "CODE_PHRASE" => read_code_phrase(&all).map(DataValue::Coded),
            _ => None,
        }
    }
}

impl<'a> Quantity<'a> {
    fn read(all: Vec<Member<'a>>) -> Option<Quantity<'a>> {
        let (mut magnitude, mut units, mut precision) = (None, None, None);
        let mut other = Other::default();
        for (name, value) in all {
            match &*name {
                "_type" => {}
                "magnitude" if is_number(value) => magnitude = Some(value),
                "units" if value.starts_with('"') => units = Some(text(value)?),
                "precision" => match value.parse() {
                    Ok(number) => precision = Some(number),
                    Err(_) => other.add(&name, value),
                },
                _ => other.add(&name, value),
            }
        }
        Some(Quantity {
            magnitude: magnitude?,
            units,
            precision,
            other: other.finish(),
        })
    }
}

fn read_coded_text(all: Vec<Member<'_>>) -> Option<Coded<'_>> {
    let mut coded = Coded::default();
    let mut other = Other::default();
    for (name, value) in all {
        match &*name {
            "_type" => {}
            "value" if value.starts_with('"') => coded.value = Some(text(value)?),
            "defining_code" => {
                let phrase = members(value)
                    .ok()
                    .filter(|all| is_class(all, "CODE_PHRASE"));
                let phrase = phrase.and_then(|all| read_code_phrase(&all));
                if phrase.as_ref().is_none_or(|phrase| phrase.other.is_some()) {
                    other.add(&name, value);
                }
                let phrase = phrase.unwrap_or_default();
                (coded.code, coded.terminology) = (phrase.code, phrase.terminology);
            }
            _ => other.add(&name, value),
        }
    }
    coded.value.as_ref()?;
    coded.other = other.finish();
    Some(coded)
}

fn read_code_phrase<'a>(all: &[Member<'a>]) -> Option<Coded<'a>> {
    let mut coded = Coded::default();
    let mut other = Other::default();
    for (name, value) in all {
        match &**name {
            "_type" => {}
            "code_string" if value.starts_with('"') => coded.code = Some(text(value)?),
            "terminology_id" => match terminology(value) {
                Some(id) => coded.terminology = Some(id),
                None => other.add(name, value),
            },
            _ => other.add(name, value),
        }
    }
    coded.code.as_ref()?;
    coded.other = other.finish();
    Some(coded)
}

/// Returns the value of a TERMINOLOGY_ID that has nothing else.
fn terminology(json: &str) -> Option<Cow<'_, str>> {
    let all = members(json).ok()?;
    let value = all.iter().find(|(name, _)| name == "value")?.1;
    let is_plain = all.len() == 2 && is_class(&all, "TERMINOLOGY_ID");
    if is_plain { text(value) } else { None }
}

/// Returns the text of a JSON string that was read as a member, so it is well formed.
fn text(json: &str) -> Option<Cow<'_, str>> {
    let plain = json.strip_prefix('"')?.strip_suffix('"')?;
    match plain.contains('\\') {
        true => aqlite_rm::json::text(json).map(Cow::Owned),
        false => Some(Cow::Borrowed(plain)),
    }
}

fn class_of<'a>(all: &[Member<'a>]) -> Option<&'a str> {
    let (_, class) = all.iter().find(|(name, _)| name == "_type")?;
    class.strip_prefix('"')?.strip_suffix('"')
}

fn is_class(all: &[Member<'_>], class: &str) -> bool {
    class_of(all) == Some(class)
}

fn is_number(json: &str) -> bool {
    json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// A JSON object under construction.
#[derive(Default)]
pub(crate) struct Other(String);

impl Other {
    /// Adds a member, whose value is JSON.
    pub fn add(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        quote_into(&mut self.0, name);
        self.0.push(':');
        self.0.push_str(value);
    }

    /// Adds a member whose value is a text.
    pub fn add_text(&mut self, name: &str, value: &str) {
        let mut json = String::new();
        quote_into(&mut json, value);
        self.add(name, &json);
    }

    /// Returns the object; `None` if it has no member.
    pub fn finish(mut self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push('}');
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHRASE: &str = r#"{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"local"},"code_string":"at1"}"#;

    fn coded<'a>(value: Option<&'a str>, other: Option<&str>) -> DataValue<'a> {
        DataValue::Coded(Coded {
            value: value.map(Cow::from),
            code: Some(Cow::from("at1")),
            terminology: Some(Cow::from("local")),
            other: other.map(str::to_owned),
        })
    }

    #[test]
    fn attributes_without_a_member_are_kept_in_other() {
        let json = r#"{"_type":"DV_QUANTITY","magnitude":72.50,"units":"kg","precision":1,"normal_status":{"_type":"CODE_PHRASE"},"accuracy":0.5}"#;
        let expected = Quantity {
            magnitude: "72.50",
            units: Some(Cow::from("kg")),
            precision: Some(1),
            other: Some(String::from(
                r#"{"normal_status":{"_type":"CODE_PHRASE"},"accuracy":0.5}"#,
            )),
        };
        assert_eq!(DataValue::read(json), Some(DataValue::Quantity(expected)));
        assert_eq!(DataValue::read(PHRASE), Some(coded(None, None)));
        let text = format!(r#"{{"_type":"DV_CODED_TEXT","value":"a","defining_code":{PHRASE}}}"#);
        assert_eq!(DataValue::read(&text), Some(coded(Some("a"), None)));
    }

    #[test]
    fn code_with_a_preferred_term_is_kept_whole() {
        let phrase = PHRASE.replace(
            r#","code_string""#,
            r#","preferred_term":"b","code_string""#,
        );
        assert_ne!(phrase, PHRASE);
        let text = format!(r#"{{"_type":"DV_CODED_TEXT","value":"a","defining_code":{phrase}}}"#);
        let other = format!(r#"{{"defining_code":{phrase}}}"#);
        assert_eq!(DataValue::read(&text), Some(coded(Some("a"), Some(&other))));
    }

    #[test]
    fn object_without_its_main_member_is_no_struct() {
        for json in [
            r#"{"_type":"DV_QUANTITY","units":"kg"}"#,
            r#"{"_type":"DV_CODED_TEXT"}"#,
            r#"{"_type":"CODE_PHRASE"}"#,
            r#"{"_type":"DV_TEXT","value":"a"}"#,
            r#"{"magnitude":1}"#,
            "[1]",
        ] {
            assert_eq!(DataValue::read(json), None, "{json}");
        }
    }
}
