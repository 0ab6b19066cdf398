//! A reader of YAML as published fixtures use it: block maps and lists, plain and quoted scalars over
//! several lines, `? key`, `{}` and `[]`.
//!
//! Every scalar is a text. Anchors, tags, block scalars and non-empty flow collections are refused.
//! No fixture needs them, and a wrong reading would lead to a wrong test.

use super::item::{Item, Kind};
use aqlite_rm::diag::{Diagnostic, Span};
use std::collections::HashMap;

const MAX_DEPTH: usize = 32;

type Result<T> = std::result::Result<T, Diagnostic>;

/// Reads a YAML text.
pub(crate) fn read(text: &str) -> Result<Item> {
    let mut reader = YamlReader {
        text,
        lines: lines(text),
        at: 0,
        depth: 0,
    };
    match reader.lines.first() {
        None => Ok(Item {
            span: Span::default(),
            kind: Kind::Null,
        }),
        Some(first) => {
            let item = reader.block(first.indent)?;
            reader.line().map_or(Ok(item), |line| {
                Err(error(
                    line.start,
                    "not YAML: this line is indented less than what it belongs to",
                ))
            })
        }
    }
}

/// A line with content, without its indentation, line end and comment.
#[derive(Clone, Copy)]
struct Line {
    indent: usize,
    start: usize,
    end: usize,
}

/// Returns the lines of a text without empty lines, comments and document markers.
fn lines(text: &str) -> Vec<Line> {
    let (mut at, mut lines) = (0, Vec::new());
    for raw in text.split_inclusive('\n') {
        // A byte order mark occurs at the start of the file only; it is no indentation.
        let body = raw.trim_start_matches(['\u{feff}', ' ']);
        let start = at + raw.len() - body.len();
        let indent = raw.trim_start_matches('\u{feff}').len() - body.len();
        at += raw.len();
        let body = body.trim_end();
        if !body.is_empty()
            && !body.starts_with('#')
            && !(indent == 0 && (body == "---" || body == "..."))
        {
            lines.push(Line {
                indent,
                start,
                end: start + body.len(),
            });
        }
    }
    lines
}

fn error(at: usize, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("GDL0501", Span::new(at, at), message)
        .with_help("a fixture has `guidelines:` and `test_cases:`; see the documentation of guides")
}

struct YamlReader<'a> {
    text: &'a str,
    lines: Vec<Line>,
    at: usize,
    depth: usize,
}

impl<'a> YamlReader<'a> {
    fn line(&self) -> Option<Line> {
        self.lines.get(self.at).copied()
    }

    fn body(&self, line: Line) -> &'a str {
        self.text.get(line.start..line.end).unwrap_or_default()
    }

    /// Parses the map, list or scalar whose lines start at this column.
    fn block(&mut self, indent: usize) -> Result<Item> {
        let Some(line) = self.line() else {
            return Ok(null(self.text.len()));
        };
        self.depth += 1;
        // Recursion is bounded, because the depth of the input is not.
        if self.depth > MAX_DEPTH {
            return Err(error(
                line.start,
                format!("nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        let body = self.body(line);
        let item = if is_entry(body) {
            self.list(indent)
        } else if is_explicit(body) || key_end(body).is_some() {
            self.map(indent)
        } else {
            self.scalar(line.start, indent.saturating_sub(1))
        };
        self.depth -= 1;
        item
    }

    fn list(&mut self, indent: usize) -> Result<Item> {
        let start = self.line().map_or(0, |l| l.start);
        let mut items = Vec::new();
        while let Some(line) = self
            .line()
            .filter(|l| l.indent == indent && is_entry(self.body(*l)))
        {
            items.push(self.nested(line, 1)?);
        }
        Ok(Item {
            span: Span::new(start, self.before()),
            kind: Kind::List(items),
        })
    }

    /// Parses the value behind a mark (`-`, `?`, `:`) of `mark` bytes: on the same line, or below
    /// it and indented further.
    fn nested(&mut self, line: Line, mark: usize) -> Result<Item> {
        let body = self.body(line);
        let rest = body.get(mark..).unwrap_or_default().trim_start();
        if is_blank(rest) {
            self.at += 1;
            return match self.line() {
                Some(next) if next.indent > line.indent => self.block(next.indent),
                _ => Ok(null(line.end)),
            };
        }
        let moved = body.len() - rest.len();
        let inner = Line {
            indent: line.indent + moved,
            start: line.start + moved,
            end: line.end,
        };
        // The rest of the line becomes a line of its own, so that `- key: value` parses as a map in
        // a list.
        if let Some(place) = self.lines.get_mut(self.at) {
            *place = inner;
        }
        match is_entry(rest) || is_explicit(rest) || key_end(rest).is_some() {
            true => self.block(inner.indent),
            false => self.scalar(inner.start, line.indent),
        }
    }

    fn map(&mut self, indent: usize) -> Result<Item> {
        let start = self.line().map_or(0, |l| l.start);
        let mut members = Members::default();
        while let Some(line) = self.line().filter(|l| l.indent == indent) {
            let body = self.body(line);
            let (key, value) = if is_explicit(body) {
                self.explicit_member(line)?
            } else if let Some((key, len)) = key_end(body) {
                (key, self.member(line, len)?)
            } else {
                return Err(error(line.start, "not YAML: expected `key: value`"));
            };
            members.set_member(key, value);
        }
        match self.line() {
            Some(line) if line.indent > indent => Err(error(
                line.start,
                "not YAML: this line is indented further than those before it",
            )),
            _ => Ok(Item {
                span: Span::new(start, self.before()),
                kind: Kind::Map(members.list),
            }),
        }
    }

    /// Parses a key behind `?`, and its value behind `:` on a line with the same indentation.
    fn explicit_member(&mut self, line: Line) -> Result<(String, Item)> {
        let key = self.nested(line, 1)?;
        let key = key.text().map(str::to_owned);
        let key = key.ok_or_else(|| error(line.start, "not a key: expected a text behind `?`"))?;
        let value = self.line().filter(|l| l.indent == line.indent);
        let value = value.filter(|l| self.body(*l).starts_with(':'));
        let value = value.ok_or_else(|| {
            error(
                line.start,
                "expected `:` below the key that starts with `?`",
            )
        })?;
        Ok((key, self.nested(value, 1)?))
    }

    /// Parses the value behind a key and its colon, which are `len` bytes of the line.
    fn member(&mut self, line: Line, len: usize) -> Result<Item> {
        let rest = self.body(line).get(len..).unwrap_or_default().trim_start();
        if !is_blank(rest) {
            return self.scalar(line.end - rest.len(), line.indent);
        }
        self.at += 1;
        match self.line() {
            Some(next)
                if next.indent > line.indent
                    // A list may start at the indentation of its key.
                    || (next.indent == line.indent && is_entry(self.body(next))) =>
            {
                self.block(next.indent)
            }
            _ => Ok(null(line.end)),
        }
    }

    /// Parses a scalar that starts on the current line. It continues over lines that are indented
    /// further than `indent`.
    fn scalar(&mut self, start: usize, indent: usize) -> Result<Item> {
        let rest = self.text.get(start..).unwrap_or_default();
        match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(start, quote),
            Some('{' | '[') => self.empty(start),
            Some(c @ ('&' | '*' | '!' | '|' | '>' | '%' | '@' | '`')) => Err(error(
                start,
                format!("`{c}` at the start of a value is not read"),
            )
            .with_help("put the value into quotes")),
            _ => self.plain(start, indent),
        }
    }

    fn plain(&mut self, start: usize, indent: usize) -> Result<Item> {
        let mut text = String::new();
        while let Some(line) = self.line().filter(|l| text.is_empty() || l.indent > indent) {
            let from = line.start.max(start);
            let part = self.text.get(from..line.end).unwrap_or_default();
            let part = part.split(" #").next().unwrap_or_default().trim_end();
            // YAML would reject it too. The usual cause is a missing line break or quote.
            if part.contains(": ") || part.ends_with(':') {
                return Err(error(from, "a colon inside of a value").with_help(
                    "put the value into quotes, or look whether the line is indented as meant",
                ));
            }
            text.push_str(if text.is_empty() { "" } else { " " });
            text.push_str(part);
            self.at += 1;
        }
        Ok(Item {
            span: Span::new(start, self.before()),
            kind: Kind::Text(text),
        })
    }

    fn quoted(&mut self, start: usize, quote: char) -> Result<Item> {
        let rest = self.text.get(start..).unwrap_or_default();
        let (text, len) = unquoted(rest, quote).map_err(|message| error(start, message))?;
        let end = start + len;
        // A quoted text may extend over several lines. Skips those that it ends on or behind.
        while self.line().is_some_and(|l| l.end < end) {
            self.at += 1;
        }
        let behind = self
            .line()
            .and_then(|l| self.text.get(end..l.end))
            .unwrap_or_default()
            .trim_start();
        if !is_blank(behind) {
            return Err(error(
                end,
                "not YAML: there is something behind the closing quote",
            ));
        }
        self.at += 1;
        Ok(Item {
            span: Span::new(start, end),
            kind: Kind::Text(text),
        })
    }

    /// Parses `{}` or `[]`.
    fn empty(&mut self, start: usize) -> Result<Item> {
        let end = self.line().map_or(start, |l| l.end);
        let body: String = self
            .text
            .get(start..end)
            .unwrap_or_default()
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        let kind = match body.as_str() {
            "{}" => Kind::Map(Vec::new()),
            "[]" => Kind::List(Vec::new()),
            _ => {
                return Err(error(start, "a collection in brackets is not read")
                    .with_help("write one member a line"));
            }
        };
        self.at += 1;
        Ok(Item {
            span: Span::new(start, end),
            kind,
        })
    }

    /// Returns the end of the line before the current one.
    fn before(&self) -> usize {
        self.at
            .checked_sub(1)
            .and_then(|i| self.lines.get(i))
            .map_or(0, |l| l.end)
    }
}

/// The members of a map, and the index of each key.
#[derive(Default)]
struct Members {
    list: Vec<(String, Item)>,
    places: HashMap<String, usize>,
}

impl Members {
    /// Sets a member. The later of two members with one name wins, as in other YAML readers.
    fn set_member(&mut self, key: String, value: Item) {
        let next = self.list.len();
        let place = *self.places.entry(key.clone()).or_insert(next);
        match self.list.get_mut(place) {
            Some((_, there)) => *there = value,
            None => self.list.push((key, value)),
        }
    }
}

fn null(at: usize) -> Item {
    Item {
        span: Span::new(at, at),
        kind: Kind::Null,
    }
}

/// Returns whether the rest of a line has no value: it is empty, or a comment.
fn is_blank(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('#')
}

fn is_entry(body: &str) -> bool {
    body == "-" || body.starts_with("- ")
}

fn is_explicit(body: &str) -> bool {
    body == "?" || body.starts_with("? ")
}

/// Parses the key at the start of a line. Returns the key and its length with the colon, in bytes.
fn key_end(body: &str) -> Option<(String, usize)> {
    if let Some(quote @ ('"' | '\'')) = body.chars().next() {
        let (key, len) = unquoted(body, quote).ok()?;
        // Only a quoted text directly before a colon is a key.
        let rest = body.get(len..)?.trim_start();
        let colon = body.len() - rest.len() + 1;
        return (rest == ":" || rest.starts_with(": ")).then_some((key, colon));
    }
    let end = if body.contains(": ") {
        body.find(": ")
    } else {
        body.strip_suffix(':').map(str::len)
    }?;
    Some((body.get(..end)?.trim_end().to_owned(), end + 1))
}

/// Parses the quoted text at the start of a text. Returns the text and its length in bytes. A line
/// end in it becomes a space.
fn unquoted(text: &str, quote: char) -> std::result::Result<(String, usize), &'static str> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                chars.next();
                out.push('\'');
            }
            c if c == quote => return Ok((out, i + c.len_utf8())),
            '\\' if quote == '"' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                // An escaped line end joins the lines without a space.
                Some((_, '\n')) => while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {},
                Some((_, c @ ('"' | '\\' | '/' | ' '))) => out.push(c),
                Some((at, 'u')) => {
                    let code = text
                        .get(at + 1..at + 5)
                        .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                        .and_then(char::from_u32);
                    out.push(code.ok_or("expected four hexadecimal digits behind `\\u`")?);
                    chars.nth(3);
                }
                _ => return Err("not a known escape: write `\\\\` for a backslash"),
            },
            '\n' => {
                while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
                // White space before the line end is not part of the text.
                out.truncate(out.trim_end().len());
                out.push(' ');
            }
            other => out.push(other),
        }
    }
    Err("the quote is never closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        read(text).map_or_else(|d| d.one_line(text), |item| item.to_json().to_string())
    }

    #[test]
    fn the_forms_in_use_are_read() {
        let cases = [
            ("a: b\nc: 'it''s'\n", r#"{"a":"b","c":"it's"}"#),
            ("# remark\n---\na:\n  \"1\": x:y\n", r#"{"a":{"1":"x:y"}}"#),
            (
                "a:\n- id: 1\n  b: {}\n- id: 2\n",
                r#"{"a":[{"id":"1","b":{}},{"id":"2"}]}"#,
            ),
            ("a: one\n  two # three\nb:\n", r#"{"a":"one two","b":null}"#),
            (
                "? long\n  key\n: v\nb: \"x\\\n   y\\\"\\u00b5\"",
                "{\"long key\":\"v\",\"b\":\"xy\\\"µ\"}",
            ),
            ("- - a\n  - b\n-\n  c: d\n", r#"[["a","b"],{"c":"d"}]"#),
            (
                "a:\n- # one: two\n  id: 1\n- # three\n",
                r#"{"a":[{"id":"1"},null]}"#,
            ),
            ("? # key\n  a\n: # value\n  b\n", r#"{"a":"b"}"#),
            ("gt1|a?|: local::at1|x|\n", r#"{"gt1|a?|":"local::at1|x|"}"#),
            ("", "null"),
            ("\u{feff}a:   \r\n  b: '1'\r\n", r#"{"a":{"b":"1"}}"#),
        ];
        for (text, expected) in cases {
            assert_eq!(json(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_read_names_the_place() {
        let cases = [
            ("a: &b c", "`&` at the start"),
            ("a: [1, 2]", "in brackets"),
            ("a: 'x\nb: y", "never closed"),
            ("a: b\n   c: d", "line 2, column 4"),
            ("a:\n  b: c\n d: e", "line 3, column 2"),
            ("a: >39%", "put the value"),
        ];
        for (text, expected) in cases {
            let found = read(text).map_or_else(
                |d| {
                    format!(
                        "{} {}",
                        d.one_line(text),
                        d.into_fields().help.unwrap_or_default()
                    )
                },
                |item| item.to_json().to_string(),
            );
            assert!(found.contains(expected), "{text}: {found}");
        }
        assert!(read(&"- ".repeat(10_000)).is_err());
        assert!(
            read(
                &(0..2_000)
                    .map(|i| format!("{}a:\n", " ".repeat(i)))
                    .collect::<String>()
            )
            .is_err()
        );
    }
}
