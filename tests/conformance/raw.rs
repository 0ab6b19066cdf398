//! JSON values without a class table, with numbers as text, for comparing documents.

use aqlite::rm::Token;
use aqlite::rm::json::{Malformed, Scanner};
use std::collections::BTreeMap;

/// A JSON value with its number text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Raw {
    Null,
    Boolean(bool),
    Number(String),
    Text(String),
    List(Vec<Raw>),
    Object(BTreeMap<String, Raw>),
}

impl Raw {
    /// Parses JSON text.
    pub fn parse(text: &str) -> Result<Raw, String> {
        value(&mut Scanner::new(text)).map_err(|e| format!("at byte {}: {}", e.offset, e.message))
    }

    /// Returns the first difference between two documents, ignoring the order of members. A null
    /// member counts as absent, a missing `_type` as any, and `X<Y>` as `X`.
    pub fn difference(&self, other: &Raw) -> Option<String> {
        differ("", self, other)
    }
}

fn value(scan: &mut Scanner<'_>) -> Result<Raw, Malformed> {
    Ok(match scan.next_token()? {
        Token::Null => Raw::Null,
        Token::Boolean(b) => Raw::Boolean(b),
        Token::Number(n) => Raw::Number(n.to_owned()),
        Token::String(s) => Raw::Text(s.into_owned()),
        Token::ArrayStart => {
            let mut list = Vec::new();
            while scan.peek() != Some(b']') {
                list.push(value(scan)?);
                if scan.peek() == Some(b',') {
                    scan.next_token()?;
                }
            }
            scan.next_token()?;
            Raw::List(list)
        }
        Token::ObjectStart => {
            let mut members = BTreeMap::new();
            while scan.peek() != Some(b'}') {
                let key = scan.key()?.into_owned();
                members.insert(key, value(scan)?);
                if scan.peek() == Some(b',') {
                    scan.next_token()?;
                }
            }
            scan.next_token()?;
            Raw::Object(members)
        }
        _ => return Err(scan.error("expected a value")),
    })
}

fn differ(path: &str, a: &Raw, b: &Raw) -> Option<String> {
    match (a, b) {
        (Raw::Object(a), Raw::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|k| !a.contains_key(*k)));
            keys.into_iter().find_map(|key| {
                let (a, b) = (
                    a.get(key).unwrap_or(&Raw::Null),
                    b.get(key).unwrap_or(&Raw::Null),
                );
                if key == "_type" {
                    differ_type(path, a, b)
                } else {
                    differ(&format!("{path}/{key}"), a, b)
                }
            })
        }
        (Raw::List(a), Raw::List(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(i, (a, b))| differ(&format!("{path}[{i}]"), a, b)),
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: {} became {}", brief(a), brief(b))),
    }
}

fn differ_type(path: &str, a: &Raw, b: &Raw) -> Option<String> {
    match (a, b) {
        (Raw::Text(a), Raw::Text(b)) if a.split('<').next() == b.split('<').next() => None,
        (Raw::Null, _) | (_, Raw::Null) => None,
        (a, b) => Some(format!("{path}/_type: {} became {}", brief(a), brief(b))),
    }
}

fn brief(value: &Raw) -> String {
    let text = match value {
        Raw::List(list) => format!("a list of {}", list.len()),
        Raw::Object(members) => format!("an object of {}", members.len()),
        other => format!("{other:?}"),
    };
    text.chars().take(80).collect()
}
