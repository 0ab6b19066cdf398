//! JSON that is no document, read by the scanner of documents: envelopes, definitions, what other servers answer.

use super::build::Limits;
use super::number;
use super::scan::{Malformed, Scanner, Token};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;

/// A whole text as a tree; a member that is given twice is what it was given last.
///
/// # Errors
/// The text is not JSON, is nested too deep, or has a number beyond all doubles.
pub fn value(text: &str) -> Result<Value, Malformed> {
    let mut scan = Scanner::new(text);
    let value = nested(&mut scan, Limits::default().depth)?;
    ended(&mut scan).map(|()| value)
}

/// The text that a JSON string holds; `None` for what is no string.
pub fn text(json: &str) -> Option<String> {
    let mut scan = Scanner::new(json);
    match (scan.next_token(), ended(&mut scan)) {
        (Ok(Token::String(text)), Ok(())) => Some(text.into_owned()),
        _ => None,
    }
}

/// The texts of a JSON array of strings; `None` for anything else.
pub fn texts(json: &str) -> Option<Vec<String>> {
    elements(json).ok()?.into_iter().map(text).collect()
}

/// The members of a JSON object with their values as text: for envelopes around RM documents, whose digits must stay.
///
/// # Errors
/// The text is not one JSON object.
pub fn members(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, Malformed> {
    members_taking(text, &mut |_, _| false)
}

/// The same, where a value may be read as it is met: `take` goes past it then, and says so.
///
/// # Errors
/// As [`members`].
pub fn members_taking<'a>(text: &'a str, take: &mut dyn FnMut(&str, &mut Scanner<'a>) -> bool) -> Result<Vec<(Cow<'a, str>, &'a str)>, Malformed> {
    let (mut out, mut scan) = (Vec::new(), Scanner::new(text));
    inside(&mut scan, Token::ObjectStart, Token::ObjectEnd, &mut |scan| {
        let key = scan.key()?;
        scan.peek();
        let start = scan.offset();
        if !take(&key, scan) {
            scan.skip_value(Limits::default().depth)?;
        }
        out.push((key, text.get(start..scan.offset()).unwrap_or_default()));
        Ok(())
    })?;
    ended(&mut scan).map(|()| out)
}

/// The elements of a JSON array as text.
///
/// # Errors
/// The text is not one JSON array.
pub fn elements(text: &str) -> Result<Vec<&str>, Malformed> {
    let (mut out, mut scan) = (Vec::new(), Scanner::new(text));
    inside(&mut scan, Token::ArrayStart, Token::ArrayEnd, &mut |scan| {
        out.push(scan.skip_value(Limits::default().depth)?);
        Ok(())
    })?;
    ended(&mut scan).map(|()| out)
}

/// Takes what stands between two brackets, separated by commas.
///
/// # Errors
/// Another token where the first bracket, a comma or the last one must stand, or what `take` refuses.
pub fn inside<'a>(
    scan: &mut Scanner<'a>,
    start: Token<'_>,
    end: Token<'_>,
    take: &mut dyn FnMut(&mut Scanner<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let before = *scan;
    if scan.next_token()? != start {
        return Err(before.error(if end == Token::ObjectEnd { "expected an object" } else { "expected a list" }));
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

/// Makes sure that nothing stands behind here.
///
/// # Errors
/// Something does.
pub fn ended(scan: &mut Scanner<'_>) -> Result<(), Malformed> {
    if scan.next_token()? == Token::End { Ok(()) } else { Err(scan.error("expected the end of the document")) }
}

fn nested(scan: &mut Scanner<'_>, depth: usize) -> Result<Value, Malformed> {
    let before = *scan;
    Ok(match scan.next_token()? {
        Token::Null => Value::Null,
        Token::Boolean(flag) => Value::Bool(flag),
        Token::String(text) => Value::String(text.into_owned()),
        Token::Number(digits) => Value::Number(amount(digits).ok_or_else(|| before.error("a number beyond the range of a double"))?),
        Token::ObjectStart | Token::ArrayStart if depth == 0 => return Err(before.too_deep()),
        Token::ObjectStart => {
            let mut members = Map::new();
            *scan = before;
            inside(scan, Token::ObjectStart, Token::ObjectEnd, &mut |scan| {
                let key = scan.key()?.into_owned();
                members.insert(key, nested(scan, depth - 1)?);
                Ok(())
            })?;
            Value::Object(members)
        }
        Token::ArrayStart => {
            let mut items = Vec::new();
            *scan = before;
            inside(scan, Token::ArrayStart, Token::ArrayEnd, &mut |scan| {
                items.push(nested(scan, depth - 1)?);
                Ok(())
            })?;
            Value::Array(items)
        }
        _ => return Err(before.error("expected a value")),
    })
}

/// A number token: whole where it has neither point nor exponent and fits.
fn amount(digits: &str) -> Option<Number> {
    match (digits.parse::<i64>(), digits.parse::<u64>()) {
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
    fn a_text_is_read_as_serde_json_reads_it() {
        let deep = "[".repeat(100) + &"]".repeat(100);
        let texts = [
            "null",
            " [1, -2, 3.5, 1e3, -0, -0.0, 18446744073709551615, 18446744073709551616, 0.1e-400] ",
            r#"{"b":{"a":[]},"a":{},"b":"\u00e9\n\ud83d\ude00"}"#,
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
            assert_eq!(value(text).ok(), serde_json::from_str::<Value>(text).ok(), "{text}");
        }
        assert!(value(&("[".repeat(100_000) + &"]".repeat(100_000))).is_err_and(|problem| problem.too_deep));
    }

    #[test]
    fn members_and_elements_keep_their_text() {
        assert_eq!(members(r#"{"a": 1.50, "b": [1, {}]}"#).unwrap(), [("a".into(), "1.50"), ("b".into(), "[1, {}]")]);
        assert_eq!(elements("[1.0 , \"x\"]").unwrap(), ["1.0", "\"x\""]);
        assert_eq!((texts(r#"["a", "b"]"#), texts("[1]"), text("\"a\" 1")), (Some(vec!["a".into(), "b".into()]), None, None));
        assert!(members("[]").is_err() && elements("{}").is_err() && elements("[1] 2").is_err() && members("").is_err());
    }
}
