//! A parser of ODIN in the form of published guides: `name = (TYPE) <…>`, keyed members, lists, texts
//! with raw line ends, and coded terms.

use super::item::{Item, Kind, check_names};
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::number;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::char;
use nom::sequence::delimited;
use nom::{IResult, Parser};

const MAX_DEPTH: usize = 128;

/// Reads an ODIN text. `base` is its byte offset in the file (behind a byte order mark). Type marks
/// are ignored.
pub(crate) fn read(text: &str, base: usize) -> Result<Item, Diagnostic> {
    let mut reader = OdinReader {
        text,
        at: 0,
        base,
        depth: 0,
    };
    reader.skip();
    let item = if matches!(reader.first(), Some('(' | '<')) {
        reader.block()?
    } else {
        reader.attributes()?
    };
    reader.skip();
    if reader.rest().is_empty() {
        Ok(item)
    } else {
        Err(reader.error("the end of the text"))
    }
}

struct OdinReader<'a> {
    text: &'a str,
    at: usize,
    base: usize,
    depth: usize,
}

impl<'a> OdinReader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn first(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, expected: &str) -> Diagnostic {
        let at = self.base + self.at;
        let found: String = self
            .rest()
            .chars()
            .take_while(|c| !c.is_whitespace())
            .take(20)
            .collect();
        let found = if found.is_empty() {
            "the end".to_owned()
        } else {
            format!("`{found}`")
        };
        Diagnostic::error(
            "GDL0102",
            Span::new(at, at),
            format!("expected {expected}, found {found}"),
        )
        .with_help("values of ODIN stand in angle brackets: `name = <value>`")
    }

    /// Skips white space and comments.
    fn skip(&mut self) {
        loop {
            let trimmed = self.rest().trim_start();
            self.at = self.text.len() - trimmed.len();
            if !trimmed.starts_with("--") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn take<T>(&mut self, parsed: IResult<&'a str, T>, expected: &str) -> Result<T, Diagnostic> {
        match parsed {
            Ok((rest, value)) => {
                self.at = self.text.len() - rest.len();
                self.skip();
                Ok(value)
            }
            Err(_) => Err(self.error(expected)),
        }
    }

    fn expect(&mut self, c: char) -> Result<(), Diagnostic> {
        let parsed = char(c).parse(self.rest());
        self.take(parsed, &format!("`{c}`")).map(drop)
    }

    /// Parses `(TYPE)? < … >`.
    fn block(&mut self) -> Result<Item, Diagnostic> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let at = self.base + self.at;
            return Err(Diagnostic::error(
                "GDL0103",
                Span::new(at, at + 1),
                format!("nested deeper than {MAX_DEPTH} levels"),
            )
            .with_help("a guide has about ten levels; this is not one"));
        }
        let start = self.base + self.at;
        if self.first() == Some('(') {
            let parsed =
                delimited(char('('), take_while(|c| c != ')'), char(')')).parse(self.rest());
            self.take(parsed, "a type mark such as `(RULE)`")?;
        }
        self.expect('<')?;
        let mut item = match self.first() {
            Some('>') => Item {
                span: Span::default(),
                kind: Kind::Null,
            },
            Some('[') if self.rest().starts_with("[\"") || self.keyed_by_number() => {
                self.keyed()?
            }
            Some(c) if c.is_ascii_alphabetic() && self.is_attribute() => self.attributes()?,
            _ => self.values()?,
        };
        self.depth -= 1;
        let close = self.base + self.at + 1;
        self.expect('>')?;
        if matches!(item.kind, Kind::Null | Kind::Map(_) | Kind::List(_)) {
            item.span = Span::new(start, close);
        }
        Ok(item)
    }

    fn keyed_by_number(&self) -> bool {
        self.rest()
            .strip_prefix('[')
            .is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
    }

    fn is_attribute(&self) -> bool {
        let name: IResult<&str, &str> = name(self.rest());
        name.is_ok_and(|(rest, _)| rest.trim_start().starts_with('='))
    }

    fn attributes(&mut self) -> Result<Item, Diagnostic> {
        let start = self.base + self.at;
        let mut members = Vec::new();
        while self.first().is_some_and(|c| c.is_ascii_alphabetic()) {
            let parsed = name(self.rest());
            let name = self.take(parsed, "an attribute name")?.to_owned();
            self.expect('=')?;
            members.push((name, self.block()?));
        }
        let span = Span::new(start, self.base + self.at);
        check_names(&members, span)?;
        Ok(Item {
            span,
            kind: Kind::Map(members),
        })
    }

    /// Parses keyed members. Their keys may be repeated: a published guide has two terms of one
    /// code, and two rules of one code are a problem of the guide (GDL0403).
    fn keyed(&mut self) -> Result<Item, Diagnostic> {
        let start = self.base + self.at;
        let mut members = Vec::new();
        while self.first() == Some('[') {
            self.expect('[')?;
            let key = self.primitive()?;
            let Some(name) = key.text() else {
                return Err(self.error("a key such as `[\"gt0001\"]`"));
            };
            let name = name.to_owned();
            self.expect(']')?;
            self.expect('=')?;
            members.push((name, self.block()?));
        }
        // Objects whose keys are the numbers from 1 are a list.
        let is_counted = members
            .iter()
            .enumerate()
            .all(|(i, (key, _))| *key == (i + 1).to_string());
        let kind = if is_counted {
            Kind::List(members.into_iter().map(|(_, item)| item).collect())
        } else {
            Kind::Map(members)
        };
        Ok(Item {
            span: Span::new(start, self.base + self.at),
            kind,
        })
    }

    /// Parses one value, or a list. A list of one element is written `"x", ...`.
    fn values(&mut self) -> Result<Item, Diagnostic> {
        let start = self.base + self.at;
        let mut items = vec![self.primitive()?];
        let mut is_list = false;
        while self.first() == Some(',') {
            self.expect(',')?;
            is_list = true;
            if self.rest().starts_with("...") {
                let parsed = tag("...").parse(self.rest());
                self.take(parsed, "`...`")?;
                break;
            }
            items.push(self.primitive()?);
        }
        match (is_list, items.pop()) {
            (false, Some(only)) => Ok(only),
            (_, last) => {
                items.extend(last);
                Ok(Item {
                    span: Span::new(start, self.base + self.at),
                    kind: Kind::List(items),
                })
            }
        }
    }

    fn primitive(&mut self) -> Result<Item, Diagnostic> {
        let start = self.at;
        let (kind, end) = match self.first() {
            Some('"') => self.string()?,
            Some('[') => {
                let parsed =
                    delimited(char('['), take_while1(|c| c != ']'), char(']')).parse(self.rest());
                let parsed: IResult<&str, &str> = parsed;
                let Ok((rest, code)) = parsed else {
                    return Err(self.error("a coded term such as `[ISO_639-1::en]`"));
                };
                (Kind::Text(code.to_owned()), self.text.len() - rest.len())
            }
            _ => {
                let parsed: IResult<&str, &str> =
                    take_while1(|c: char| c.is_alphanumeric() || "+-._:".contains(c))
                        .parse(self.rest());
                let Ok((rest, word)) = parsed else {
                    return Err(self.error("a value"));
                };
                let kind = match word {
                    "true" | "True" => Kind::Boolean(true),
                    "false" | "False" => Kind::Boolean(false),
                    digits if number::parse(digits).is_some() => Kind::Number(digits.to_owned()),
                    other => Kind::Text(other.to_owned()),
                };
                (kind, self.text.len() - rest.len())
            }
        };
        self.at = end;
        let span = Span::new(self.base + start, self.base + end);
        self.skip();
        Ok(Item { span, kind })
    }

    fn string(&self) -> Result<(Kind, usize), Diagnostic> {
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => return Ok((Kind::Text(out), self.at + i + 1)),
                '\\' => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, other)) => out.push(other),
                    None => break,
                },
                other => out.push(other),
            }
        }
        Err(self.error("a text that ends with `\"`"))
    }
}

fn name(input: &str) -> IResult<&str, &str> {
    take_while1(|c: char| c.is_ascii_alphanumeric() || c == '_').parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_in_use_are_read() {
        let text = "-- remark\n(GUIDE) <\n a = <1>\n b = (RULE) <\"x\ny\",...>\n c = <[\"gt1\"] = (TERM) <t = <[ISO_639-1::en]>>>\n d = <>\n>";
        let item = read(text, 0).unwrap();
        assert_eq!(item.text_of("a"), Some("1"));
        assert_eq!(item.get("b").unwrap().elements()[0].text(), Some("x\ny"));
        assert_eq!(
            item.get("c").unwrap().get("gt1").unwrap().text_of("t"),
            Some("ISO_639-1::en")
        );
        assert!(item.get("d").is_none());
    }

    #[test]
    fn broken_text_names_the_place() {
        assert_eq!(read("a = <\"x>", 0).unwrap_err().span.start, 5);
        assert_eq!(
            read(&"a = <".repeat(10_000), 0).unwrap_err().code,
            "GDL0103"
        );
    }
}
