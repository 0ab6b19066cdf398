//! Texts in CSV that no spreadsheet takes for a formula, whatever separator it splits at.
//!
//! A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@`, after spaces and quotes that it trims. Which cells there are depends on the
//! reader: where the decimal sign is a comma it splits at `;`, and a quote inside of what it takes for a cell then quotes nothing. So
//! every *piece* of a text that some reader may take for a cell is looked at by itself, and one that would be run gets an apostrophe in front.
//! Commas need no pieces: a reader that splits at them honours the quotes of RFC 4180, in which every such text stands.

use std::borrow::Cow;

/// Where readers split besides `,`: their separators, and the ends of lines.
const SEPARATORS: [char; 5] = [';', '\t', '|', '\r', '\n'];

/// Begins a formula: ASCII, and the wide and small forms that spreadsheets take for the same.
const FORMULA: [char; 12] = ['=', '+', '-', '@', '＝', '＋', '－', '＠', '﹦', '﹢', '﹣', '﹫'];

/// The text with an apostrophe before each piece that a spreadsheet would run.
pub(super) fn guarded(text: &str) -> Cow<'_, str> {
    if !pieces(text).any(is_run) && !begins_with_control(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 4);
    for (i, piece) in pieces(text).enumerate() {
        if is_run(piece) || i == 0 && begins_with_control(text) {
            out.push('\'');
        }
        out.push_str(piece);
    }
    Cow::Owned(out)
}

/// True for texts without a character that separates cells, quotes, calls or combines: all others are written in quotes.
///
/// Behind a number in the first cell of a line a reader that splits at `;` sees one cell, such as `-1,2+A1`. A quote ends what it could run.
pub(super) fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '_' | '.' | '-' | ':' | '/' | '#' | '[' | ']'))
}

/// The pieces of a text, each with the separator at its end.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(SEPARATORS)
}

/// True when a spreadsheet would run the piece as a cell.
fn is_run(piece: &str) -> bool {
    piece.trim_start_matches(is_trimmed).starts_with(FORMULA)
}

/// True for a text whose first character other than spaces and quotes is a tab or an end of line: some readers drop those.
fn begins_with_control(text: &str) -> bool {
    let blank = |c: char| c != '\t' && c != '\r' && c != '\n' && is_trimmed(c);
    text.trim_start_matches(blank).starts_with(['\t', '\r', '\n'])
}

/// Characters that a reader may drop at the start of a cell: blanks, controls, marks without width, quotes.
fn is_trimmed(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '`' | '´' | '\u{2018}'..='\u{201f}' | '«' | '»' | '‹' | '›' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of which hostile cells are made.
    const NASTY: [char; 24] = [
        '=', '+', '-', '@', '\t', '\r', '\n', ' ', '"', '\'', ';', ',', '|', '1', 'x', '(', '!', '＝', '﹢', '\u{feff}', '\u{a0}', '“', 'é',
        '\u{200b}',
    ];

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % bound
        }

        fn text(&mut self) -> String {
            let length = self.below(9);
            (0..length).map(|_| NASTY[self.below(NASTY.len())]).collect()
        }
    }

    /// A line of CSV as `table` writes it.
    fn line(texts: &[String]) -> String {
        let mut out = String::new();
        for (i, text) in texts.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            super::super::table::write_guarded(text, &mut out);
        }
        out
    }

    /// The cells of a reader that honours quotes at the start of a cell and splits at one separator.
    fn cells(text: &str, separator: char) -> Vec<String> {
        let (mut out, mut cell, mut quoted) = (Vec::new(), String::new(), false);
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
                '"' if quoted => quoted = false,
                '"' if cell.is_empty() => quoted = true,
                c if !quoted && (c == separator || c == '\r' || c == '\n') => out.push(std::mem::take(&mut cell)),
                c => cell.push(c),
            }
        }
        out.push(cell);
        out
    }

    /// A spreadsheet's view, written apart from the rule above: what is left after blanks and quotes begins a formula.
    fn runs(cell: &str) -> bool {
        let blank = |c: char| c.is_whitespace() || c.is_control() || "\"\u{200b}\u{feff}“".contains(c);
        cell.trim_start_matches(blank).starts_with(['=', '+', '-', '@', '＝', '﹢'])
    }

    #[test]
    fn no_reader_finds_a_formula_in_any_text() {
        let mut random = Random(7);
        for _ in 0..200_000 {
            let count = 1 + random.below(3);
            let texts: Vec<String> = (0..count).map(|_| random.text()).collect();
            let written = line(&texts);
            for separator in [',', ';', '\t', '|'] {
                for cell in cells(&written, separator) {
                    assert!(!runs(&cell), "{texts:?} is written as {written:?}: at {separator:?} there is a cell {cell:?}");
                }
            }
            // A reader that knows no quotes at all, at the separators that the text may hold.
            for cell in written.split([';', '\t', '|', '\r', '\n']) {
                assert!(!runs(cell), "{texts:?} is written as {written:?}: without quotes there is a cell {cell:?}");
            }
        }
    }

    #[test]
    fn a_guarded_text_without_its_apostrophes_is_the_text() {
        let mut random = Random(11);
        for _ in 0..50_000 {
            let text = random.text().replace('\'', "");
            assert_eq!(guarded(&text).replace('\'', ""), text);
            let again = guarded(&text).into_owned();
            assert_eq!(cells(&line(&[text]), ','), [again], "it comes back through a reader of RFC 4180");
        }
    }

    #[test]
    fn the_cases_that_the_page_shares() {
        for case in include_str!("../../../tests/cases/csv/guard.ndjson").lines() {
            let of = crate::rm::json::members(case).unwrap();
            let value = |key: &str| crate::rm::json::text(of.iter().find(|(k, _)| k == key).unwrap().1).unwrap();
            let mut written = String::new();
            super::super::table::write_guarded(&value("text"), &mut written);
            assert_eq!(written, value("csv"), "{case}");
        }
    }
}
