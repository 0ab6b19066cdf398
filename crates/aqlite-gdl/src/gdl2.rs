//! Reader of the JSON form of guides (GDL2), with positions.

use super::item::{Item, Kind};
use aqlite_rm::Token;
use aqlite_rm::diag::{Diagnostic, LineIndex, Span};
use aqlite_rm::json::{self, Malformed, Scanner};

const MAX_DEPTH: usize = 128;

/// Reads the JSON text of a guide. `base` is its byte offset in the file (behind a byte order
/// mark).
pub(crate) fn read(text: &str, base: usize) -> Result<Item, Diagnostic> {
    let mut scan = Scanner::new(text);
    let read = item(&mut scan, base, MAX_DEPTH)
        .and_then(|item| json::expect_end(&mut scan).map(|()| item));
    read.map_err(|problem| refusal(text, base, problem))
}

fn refusal(text: &str, base: usize, problem: Malformed) -> Diagnostic {
    let at = base + problem.offset;
    if problem.too_deep {
        let diagnostic = Diagnostic::error(
            "GDL0103",
            Span::new(at, at + 1),
            format!("nested deeper than {MAX_DEPTH} levels"),
        );
        return diagnostic.with_help("a guide has about ten levels; this is not one");
    }
    let (line, column) = LineIndex::new(text).line_column(problem.offset);
    Diagnostic::error(
        "GDL0101",
        Span::new(at, at),
        format!("not JSON: {}", problem.message),
    )
    .with_help(format!("mend the text at line {line}, column {column}"))
}

fn item(scan: &mut Scanner<'_>, base: usize, depth: usize) -> Result<Item, Malformed> {
    scan.peek();
    let before = *scan;
    let kind = match scan.next_token()? {
        Token::Null => Kind::Null,
        Token::Boolean(flag) => Kind::Boolean(flag),
        Token::Number(digits) => Kind::Number(digits.to_owned()),
        Token::String(text) => Kind::Text(text.into_owned()),
        Token::ObjectStart | Token::ArrayStart if depth == 0 => {
            return Err(Malformed {
                too_deep: true,
                ..before.error("nested too deep")
            });
        }
        Token::ObjectStart => {
            let mut members = Vec::new();
            *scan = before;
            json::read_bracketed(scan, Token::ObjectStart, Token::ObjectEnd, &mut |scan| {
                members.push((scan.key()?.into_owned(), item(scan, base, depth - 1)?));
                Ok(())
            })?;
            Kind::Map(members)
        }
        Token::ArrayStart => {
            let mut items = Vec::new();
            *scan = before;
            json::read_bracketed(scan, Token::ArrayStart, Token::ArrayEnd, &mut |scan| {
                items.push(item(scan, base, depth - 1)?);
                Ok(())
            })?;
            Kind::List(items)
        }
        _ => return Err(before.error("expected a value")),
    };
    Ok(Item {
        span: Span::new(base + before.offset(), base + scan.offset()),
        kind,
    })
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
