//! Plain text in GitHub Flavored Markdown, the format of the `detail` of a card (CDS Hooks 2.0).

/// An invisible character (WORD JOINER). GitHub Flavored Markdown makes links of bare addresses
/// such as `www.example.org`, which no backslash prevents, but this character does.
const JOINER: char = '\u{2060}';

/// Returns a text in the form that Markdown renders as this text, wherever it is inserted: inside a
/// line, at its start, in a list, a table, the title of a link or an element of HTML.
///
/// Line breaks remain; blank lines and superfluous spaces do not. Nothing in the result is a link.
pub(crate) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let lines = text.split(['\n', '\r']).map(str::trim);
    for line in lines.filter(|line| !line.is_empty()) {
        if !out.is_empty() {
            out.push_str("\\\n");
        }
        push_line(&mut out, line);
    }
    out
}

/// Appends one line.
fn push_line(out: &mut String, line: &str) {
    let mut before = None;
    for (at, c) in line.char_indices() {
        let next = line.get(at + c.len_utf8()..).unwrap_or_default();
        let ends_word = next.is_empty() || next.starts_with(char::is_whitespace);
        // Another value may end where this one starts, so a start counts as any character.
        let makes_link = match c {
            '@' => true,
            ':' => !next.starts_with(' ') && before.is_none_or(|b: char| b.is_ascii_alphabetic()),
            '.' => before.is_none_or(|b| b.eq_ignore_ascii_case(&'w')),
            _ => false,
        };
        if makes_link {
            out.push(JOINER);
        }
        let numbers_item = || before.is_some() && line.bytes().take(at).all(|b| b.is_ascii_digit());
        match c {
            // References instead of backslashes, because they also work in elements of HTML.
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            ' ' | '\0'..='\u{1f}' | '\u{7f}' if before == Some(' ') => {}
            ' ' | '\0'..='\u{1f}' | '\u{7f}' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '!' | '#' | '~' | '|' | '$' => {
                out.extend(['\\', c]);
            }
            '.' if ends_word && numbers_item() => out.push_str("\\."),
            _ if before.is_none() && c.is_ascii_punctuation() => out.extend(['\\', c]),
            _ => out.push(c),
        }
        before = Some(if c.is_ascii_control() { ' ' } else { c });
    }
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn punctuation_of_markdown_is_escaped() {
        for (text, expected) in [
            ("Weight 4.8 mmol/l, 50 %", "Weight 4.8 mmol/l, 50 %"),
            ("2024-01-05T08:00:00+01:00", "2024-01-05T08:00:00+01:00"),
            ("120 mm[Hg]", "120 mm\\[Hg\\]"),
            ("[x](https://a.b)", "\\[x\\]\\(https\u{2060}://a.b\\)"),
            ("![](//a.b/p.png)", "\\!\\[\\]\\(//a.b/p.png\\)"),
            ("<img src='x'>", "&lt;img src=&#39;x&#39;&gt;"),
            ("a \"&amp;\" b", "a &quot;&amp;amp;&quot; b"),
            ("*_~|`$\\", "\\*\\_\\~\\|\\`\\$\\\\"),
        ] {
            assert_eq!(literal(text), expected);
        }
    }

    #[test]
    fn start_of_a_line_begins_no_block() {
        for (text, expected) in [
            ("- a", "\\- a"),
            ("-5 kg", "\\-5 kg"),
            ("# a #", "\\# a \\#"),
            ("===", "\\==="),
            ("1. a", "1\\. a"),
            ("12) a", "12\\) a"),
            ("4.8", "4.8"),
            ("Class 2.", "Class 2."),
            ("2.", "2\\."),
            ("    code", "code"),
            ("a\n\n\r\n  - b \t c\n", "a\\\n\\- b c"),
            ("\n", ""),
            ("", ""),
        ] {
            assert_eq!(literal(text), expected, "{text:?}");
        }
    }

    #[test]
    fn addresses_become_no_links() {
        for (text, expected) in [
            ("http://a.b", "http\u{2060}://a.b"),
            ("javascript:x", "javascript\u{2060}:x"),
            ("Note: x", "Note: x"),
            ("WWW.a.b", "WWW\u{2060}.a.b"),
            ("m@a.b", "m\u{2060}@a.b"),
            // Two values may make one address.
            ("http:", "http\u{2060}:"),
            ("://a.b", "\u{2060}\\://a.b"),
            (".a.b", "\u{2060}\\.a.b"),
            ("w.a.b", "w\u{2060}.a.b"),
        ] {
            assert_eq!(literal(text), expected, "{text:?}");
        }
    }
}
