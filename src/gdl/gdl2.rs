//! The JSON form of guides (GDL2), read with positions.
//!
//! `serde_json` judges the syntax and words the message; a second pass over text that is known to be sound keeps where
//! each value stands, which `serde_json` does not tell.

use super::item::{Item, Kind};
use crate::diag::{Diagnostic, LineIndex, Span};
use serde::de::IgnoredAny;

const MAX_DEPTH: usize = 128;

/// Reads the JSON text of a guide; `base` is where it starts in the file (behind a byte order mark).
pub(crate) fn read(text: &str, base: usize) -> Result<Item, Diagnostic> {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(syntax_error(text, base, &error));
    }
    let mut reader = Reader { text, at: 0, base, depth: 0, too_deep: None };
    let item = reader.value();
    match reader.too_deep {
        None => Ok(item),
        Some(at) => Err(Diagnostic::error("GDL0103", Span::new(base + at, base + at + 1), format!("nested deeper than {MAX_DEPTH} levels"))
            .with_help("a guide has about ten levels; this is not one")),
    }
}

fn syntax_error(text: &str, base: usize, error: &serde_json::Error) -> Diagnostic {
    let line_start = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let at = base + (line_start + error.column().saturating_sub(1)).min(text.len());
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    let (line, column) = LineIndex::new(text).line_column(at - base);
    Diagnostic::error("GDL0101", Span::new(at, at), format!("not JSON: {message}"))
        .with_help(format!("mend the text at line {line}, column {column}"))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    base: usize,
    depth: usize,
    too_deep: Option<usize>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> u8 {
        let rest = self.rest().trim_start_matches([' ', '\t', '\r', '\n', ',', ':']);
        self.at = self.text.len() - rest.len();
        rest.as_bytes().first().copied().unwrap_or(b'}')
    }

    fn value(&mut self) -> Item {
        let first = self.peek();
        let start = self.at;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.too_deep = Some(start);
            self.at = self.text.len();
        }
        let kind = match first {
            _ if self.too_deep.is_some() => Kind::Null,
            b'{' => self.map(),
            b'[' => self.list(),
            b'"' => Kind::Text(self.string()),
            _ => self.scalar(),
        };
        self.depth -= 1;
        Item { span: Span::new(self.base + start, self.base + self.at), kind }
    }

    fn map(&mut self) -> Kind {
        self.at += 1;
        let mut members = Vec::new();
        while self.peek() != b'}' {
            let name = self.string();
            members.push((name, self.value()));
        }
        self.at = (self.at + 1).min(self.text.len());
        Kind::Map(members)
    }

    fn list(&mut self) -> Kind {
        self.at += 1;
        let mut items = Vec::new();
        while !matches!(self.peek(), b']' | b'}') {
            items.push(self.value());
        }
        self.at = (self.at + 1).min(self.text.len());
        Kind::List(items)
    }

    fn string(&mut self) -> String {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.bytes().enumerate().skip(1).find(|(_, b)| {
            let ends = *b == b'"' && !escaped;
            escaped = *b == b'\\' && !escaped;
            ends
        });
        let len = end.map_or(rest.len(), |(i, _)| i + 1);
        self.at += len;
        let raw = rest.get(..len).unwrap_or_default();
        if raw.contains('\\') {
            return serde_json::from_str(raw).unwrap_or_default();
        }
        raw.trim_matches('"').to_owned()
    }

    fn scalar(&mut self) -> Kind {
        let rest = self.rest();
        let len = rest.find([',', '}', ']', ' ', '\t', '\r', '\n']).unwrap_or(rest.len()).max(1);
        self.at = (self.at + len).min(self.text.len());
        match rest.get(..len).unwrap_or_default() {
            "true" => Kind::Boolean(true),
            "false" => Kind::Boolean(false),
            "null" => Kind::Null,
            number => Kind::Number(number.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_where_they_stand() {
        let text = r#"{"a": ["x\"y", -1.50, null], "b": {}}"#;
        let item = read(text, 0).unwrap();
        let list = item.get("a").unwrap().elements();
        assert_eq!(list[0].text(), Some("x\"y"));
        assert_eq!(&text[list[0].span.start..list[0].span.end], r#""x\"y""#);
        assert_eq!(list[1].text(), Some("-1.50"));
        assert!(item.get("b").unwrap().members().is_empty());
    }

    #[test]
    fn broken_text_names_the_place() {
        let error = read("{\"a\": [1,\n }", 0).unwrap_err();
        assert_eq!(error.span.start, 11);
        assert!(read(&"[".repeat(10_000), 0).is_err());
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(read(&deep, 0).unwrap_err().code, "GDL0103");
    }
}
