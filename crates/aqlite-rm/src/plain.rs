//! JSON that is not a Reference Model document: envelopes, definitions, responses of other servers.
//!
//! It is read by the same scanner as documents.

use super::build::Limits;
use super::number;
use super::scan::{Malformed, Scanner, Token};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::collections::HashSet;

/// The message for a member whose name an earlier member of the same object has.
const REPEATED: &str = "an earlier member of the object has the same name: send each member once";
/// Members of an object from which repeated names are found by a set.
const FEW: usize = 16;
/// The maximum number of members of an object. Readers keep the names of all of them.
pub const MAX_MEMBERS: usize = 100_000;
/// The nodes that an object or a list counts as: it has about ten times the memory of a number.
const NODES: usize = 10;
/// The message for a list that has more elements than its reader accepts.
pub const TOO_MANY: &str = "the list has too many elements";

/// Parses a whole text as a tree.
///
/// # Errors
/// The text is not JSON, is nested too deep, repeats a member of an object, or has a number beyond
/// the range of doubles.
pub fn value(text: &str) -> Result<Value, Malformed> {
    value_within(text, usize::MAX)
}

/// Parses a whole text as a tree of at most `nodes` nodes. An object or a list counts as ten of
/// them, because a tree takes up to eighty times the memory of its text.
///
/// # Errors
/// As [`value`], and for a tree with more nodes.
pub fn value_within(text: &str, nodes: usize) -> Result<Value, Malformed> {
    let (mut scan, mut left) = (Scanner::new(text), nodes);
    let value = nested(&mut scan, Limits::default().depth, &mut left)?;
    expect_end(&mut scan).map(|()| value)
}

/// Returns the content of a JSON string, or `None` for any other JSON.
pub fn text(json: &str) -> Option<String> {
    let mut scan = Scanner::new(json);
    match (scan.next_token(), expect_end(&mut scan)) {
        (Ok(Token::String(text)), Ok(())) => Some(text.into_owned()),
        _ => None,
    }
}

/// Returns the strings of a JSON array of strings, or `None` for any other JSON.
pub fn parse_strings(json: &str) -> Option<Vec<String>> {
    elements(json).ok()?.into_iter().map(text).collect()
}

/// Returns the members of a JSON object with their values as JSON text.
///
/// Envelopes around RM documents are read like this, because the digits of numbers must be kept.
///
/// # Errors
/// The text is not one JSON object, repeats a member, or has more than 100,000 of them. Readers
/// differ in which of two members they use, so a check by one reader would not hold for another.
pub fn members(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, Malformed> {
    members_with(text, &mut |_, _| false)
}

/// Returns members like [`members`], and lets `take` read values while they are scanned.
///
/// `take` is called with each name and the scanner before the value. It either consumes the value
/// and returns true, or leaves the scanner unchanged and returns false.
///
/// # Errors
/// As [`members`].
pub fn members_with<'a>(
    text: &'a str,
    take: &mut dyn FnMut(&str, &mut Scanner<'a>) -> bool,
) -> Result<Vec<(Cow<'a, str>, &'a str)>, Malformed> {
    let (mut out, mut scan) = (Vec::<(Cow<'a, str>, &'a str)>::new(), Scanner::new(text));
    let mut names = HashSet::new();
    read_bracketed(
        &mut scan,
        Token::ObjectStart,
        Token::ObjectEnd,
        &mut |scan| {
            scan.peek();
            let before = *scan;
            let key = scan.key()?;
            if is_repeated(&out, &mut names, &key) {
                return Err(before.error(REPEATED));
            }
            if out.len() >= MAX_MEMBERS {
                return Err(before.error("the object has more than 100,000 members"));
            }
            scan.peek();
            let start = scan.offset();
            if !take(&key, scan) {
                scan.skip_value(Limits::default().depth)?;
            }
            out.push((key, text.get(start..scan.offset()).unwrap_or_default()));
            Ok(())
        },
    )?;
    expect_end(&mut scan).map(|()| out)
}

/// Returns whether a member before has this name. `names` has the names of many members.
fn is_repeated(before: &[(Cow<'_, str>, &str)], names: &mut HashSet<String>, key: &str) -> bool {
    // Most envelopes have few members, for which a search costs less than a set.
    if before.len() < FEW {
        return before.iter().any(|(name, _)| name == key);
    }
    if names.is_empty() {
        names.extend(before.iter().map(|(name, _)| name.as_ref().to_owned()));
    }
    !names.insert(key.to_owned())
}

/// Returns the elements of a JSON array as JSON text.
///
/// # Errors
/// The text is not one JSON array.
pub fn elements(text: &str) -> Result<Vec<&str>, Malformed> {
    elements_within(text, usize::MAX)
}

/// Returns at most `most` elements of a JSON array as JSON text.
///
/// # Errors
/// The text is not one JSON array, or has more elements ([`TOO_MANY`]).
pub fn elements_within(text: &str, most: usize) -> Result<Vec<&str>, Malformed> {
    let (mut out, mut scan) = (Vec::new(), Scanner::new(text));
    read_bracketed(&mut scan, Token::ArrayStart, Token::ArrayEnd, &mut |scan| {
        if out.len() >= most {
            return Err(scan.error(TOO_MANY));
        }
        out.push(scan.skip_value(Limits::default().depth)?);
        Ok(())
    })?;
    expect_end(&mut scan).map(|()| out)
}

/// Reads the items between two brackets, separated by commas.
///
/// # Errors
/// An unexpected token instead of a bracket or comma, or an error of `take`.
pub fn read_bracketed<'a>(
    scan: &mut Scanner<'a>,
    start: Token<'_>,
    end: Token<'_>,
    take: &mut dyn FnMut(&mut Scanner<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let before = *scan;
    if scan.next_token()? != start {
        return Err(before.error(if end == Token::ObjectEnd {
            "expected an object"
        } else {
            "expected a list"
        }));
    }
    let mut ahead = *scan;
    if ahead.next_token()? == end {
        *scan = ahead;
        return Ok(());
    }
    loop {
        take(scan)?;
        match scan.next_token()? {
            token if token == end => return Ok(()),
            Token::Comma => {}
            _ => return Err(scan.error("expected `,` or the end of the list or object")),
        }
    }
}

/// Checks that only white space follows.
///
/// # Errors
/// Another token follows.
pub fn expect_end(scan: &mut Scanner<'_>) -> Result<(), Malformed> {
    if scan.next_token()? == Token::End {
        Ok(())
    } else {
        Err(scan.error("expected the end of the document"))
    }
}

/// Reads a value, and subtracts its nodes from those that are `left`.
fn nested(scan: &mut Scanner<'_>, depth: usize, left: &mut usize) -> Result<Value, Malformed> {
    let before = *scan;
    let token = scan.next_token()?;
    let is_list = matches!(token, Token::ObjectStart | Token::ArrayStart);
    *left = left
        .checked_sub(if is_list { NODES } else { 1 })
        .ok_or_else(|| before.error("the text has too many values"))?;
    Ok(match token {
        Token::Null => Value::Null,
        Token::Boolean(flag) => Value::Bool(flag),
        Token::String(text) => Value::String(text.into_owned()),
        Token::Number(digits) => Value::Number(
            amount(digits).ok_or_else(|| before.error("a number beyond the range of a double"))?,
        ),
        Token::ObjectStart | Token::ArrayStart if depth == 0 => return Err(before.too_deep()),
        Token::ObjectStart => {
            let mut members = Map::new();
            // `read_bracketed` consumes the opening bracket itself.
            *scan = before;
            read_bracketed(scan, Token::ObjectStart, Token::ObjectEnd, &mut |scan| {
                scan.peek();
                let name = *scan;
                let key = scan.key()?.into_owned();
                match members.insert(key, nested(scan, depth - 1, left)?) {
                    Some(_) => Err(name.error(REPEATED)),
                    None => Ok(()),
                }
            })?;
            Value::Object(members)
        }
        Token::ArrayStart => {
            let mut items = Vec::new();
            // `read_bracketed` consumes the opening bracket itself.
            *scan = before;
            read_bracketed(scan, Token::ArrayStart, Token::ArrayEnd, &mut |scan| {
                items.push(nested(scan, depth - 1, left)?);
                Ok(())
            })?;
            Value::Array(items)
        }
        _ => return Err(before.error("expected a value")),
    })
}

/// Converts a number token. It is an integer if it has neither point nor exponent and fits 64 bits.
fn amount(digits: &str) -> Option<Number> {
    match (digits.parse::<i64>(), digits.parse::<u64>()) {
        // As an integer, `-0` would lose its sign.
        _ if digits == "-0" => Number::from_f64(-0.0),
        (Ok(whole), _) => Some(whole.into()),
        (_, Ok(whole)) => Some(whole.into()),
        _ => Number::from_f64(number::parse(digits)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_nodes_members_and_elements_are_limited() {
        let list = format!("[{}0]", "0,".repeat(9));
        assert!(value_within(&list, 20).is_ok());
        let refused = value_within(&list, 19).unwrap_err();
        assert_eq!(refused.message, "the text has too many values");
        assert_eq!(elements_within(&list, 10).map(|all| all.len()), Ok(10));
        let refused = elements_within(&list, 9).unwrap_err();
        assert_eq!((refused.message, refused.offset), (TOO_MANY, 19));
        let object = |count: usize| {
            let all: Vec<String> = (0..count).map(|i| format!("\"{i}\":0")).collect();
            format!("{{{}}}", all.join(","))
        };
        assert_eq!(members(&object(MAX_MEMBERS)).unwrap().len(), MAX_MEMBERS);
        assert!(members(&object(MAX_MEMBERS + 1)).is_err());
    }

    #[test]
    fn value_equals_the_result_of_serde_json() {
        let deep = "[".repeat(100) + &"]".repeat(100);
        let texts = [
            "null",
            " [1, -2, 3.5, 1e3, -0, -0.0, 18446744073709551615, 18446744073709551616, 0.1e-400] ",
            r#"{"b":{"a":[]},"a":{},"c":"\u00e9\n\ud83d\ude00"}"#,
            "true",
            "\"x\"",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":1,}",
            "{a:1}",
            "[",
            "",
            "1 2",
            "01",
            "1e400",
            "\"\\x\"",
            "nul",
            &deep,
        ];
        for text in texts {
            assert_eq!(
                value(text).ok(),
                serde_json::from_str::<Value>(text).ok(),
                "{text}"
            );
        }
        assert!(
            value(&("[".repeat(100_000) + &"]".repeat(100_000)))
                .is_err_and(|problem| problem.too_deep)
        );
    }

    #[test]
    fn repeated_members_are_rejected_with_their_position() {
        let many: Vec<String> = (0..100).map(|n| format!("\"a{n}\":1")).collect();
        let many = many.join(",");
        for (text, offset) in [
            (String::from(r#"{"a":1,"b":2,"a":1}"#), 13),
            (String::from(r#"{"a":1, "\u0061":2}"#), 8),
            (format!(r#"{{{many},"a77":1}}"#), many.len() + 2),
        ] {
            let problem = members(&text).unwrap_err();
            assert_eq!(
                (problem.message, problem.offset),
                (REPEATED, offset),
                "{text}"
            );
            assert_eq!(value(&text).unwrap_err(), problem);
            let problem = value(&format!("[{text}]")).unwrap_err();
            assert_eq!(problem.offset, offset + 1);
        }
        assert_eq!(members(&format!("{{{many}}}")).unwrap().len(), 100);
    }

    #[test]
    fn members_and_elements_return_the_original_text() {
        assert_eq!(
            members(r#"{"a": 1.50, "b": [1, {}]}"#).unwrap(),
            [("a".into(), "1.50"), ("b".into(), "[1, {}]")]
        );
        assert_eq!(elements("[1.0 , \"x\"]").unwrap(), ["1.0", "\"x\""]);
        assert_eq!(
            (
                parse_strings(r#"["a", "b"]"#),
                parse_strings("[1]"),
                text("\"a\" 1")
            ),
            (Some(vec!["a".into(), "b".into()]), None, None)
        );
        assert!(
            members("[]").is_err()
                && elements("{}").is_err()
                && elements("[1] 2").is_err()
                && members("").is_err()
        );
    }
}
