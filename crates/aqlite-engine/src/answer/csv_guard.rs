//! Protection of texts in CSV against execution as formulas, whatever separator a spreadsheet uses.
//!
//! A spreadsheet executes a cell that begins with `=`, `+`, `-` or `@`, after spaces and quotes
//! that it trims. Unicode properties define the start of a formula: a character with the property
//! Dash, or one whose compatibility form is one of the other signs, behind any white space,
//! controls, quotation marks and default ignorable characters.
//!
//! The cells depend on the reader. Where the decimal sign is a comma, it splits at `;`, and a quote
//! inside a cell then quotes nothing. Every *piece* of a text that some reader may treat as a cell
//! is therefore examined by itself, and a piece that would be executed gets an apostrophe in front.
//! Commas need no pieces: a reader that splits at them respects the quotes of RFC 4180, which
//! enclose every such text.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The characters besides `,` at which readers split: their separators, and the ends of lines. All
/// are ASCII, so they are found by their bytes.
const SEPARATORS: [u8; 5] = [b';', b'\t', b'|', b'\r', b'\n'];

/// Characters with the property Dash (Unicode 16, PropList.txt), minus signs among them.
const DASHES: [RangeInclusive<char>; 24] = [
    '-'..='-',
    '\u{58a}'..='\u{58a}',
    '\u{5be}'..='\u{5be}',
    '\u{1400}'..='\u{1400}',
    '\u{1806}'..='\u{1806}',
    '\u{2010}'..='\u{2015}',
    '\u{2053}'..='\u{2053}',
    '\u{207b}'..='\u{207b}',
    '\u{208b}'..='\u{208b}',
    '\u{2212}'..='\u{2212}',
    '\u{2e17}'..='\u{2e17}',
    '\u{2e1a}'..='\u{2e1a}',
    '\u{2e3a}'..='\u{2e3b}',
    '\u{2e40}'..='\u{2e40}',
    '\u{2e5d}'..='\u{2e5d}',
    '\u{301c}'..='\u{301c}',
    '\u{3030}'..='\u{3030}',
    '\u{30a0}'..='\u{30a0}',
    '\u{fe31}'..='\u{fe32}',
    '\u{fe58}'..='\u{fe58}',
    '\u{fe63}'..='\u{fe63}',
    '\u{ff0d}'..='\u{ff0d}',
    '\u{10d6e}'..='\u{10d6e}',
    '\u{10ead}'..='\u{10ead}',
];

/// Characters whose compatibility decomposition (NFKC) is `=`, `+` or `@`.
const SIGNS: [char; 14] = [
    '=', '+', '@', '⁺', '⁼', '₊', '₌', '\u{fb29}', '﹢', '﹦', '﹫', '＋', '＝', '＠',
];

/// Characters with the property Default_Ignorable_Code_Point (Unicode 16,
/// DerivedCoreProperties.txt): they are invisible.
const IGNORABLE: [RangeInclusive<char>; 17] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fff8}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// Characters with the property Quotation_Mark, and the accents that are typed for them.
const QUOTES: [RangeInclusive<char>; 16] = [
    '"'..='"',
    '\''..='\'',
    '`'..='`',
    '«'..='«',
    '´'..='´',
    '»'..='»',
    '\u{2018}'..='\u{201f}',
    '\u{2039}'..='\u{203a}',
    '\u{2e42}'..='\u{2e42}',
    '\u{300c}'..='\u{300f}',
    '\u{301d}'..='\u{301f}',
    '\u{fe41}'..='\u{fe44}',
    '\u{ff02}'..='\u{ff02}',
    '\u{ff07}'..='\u{ff07}',
    '\u{ff40}'..='\u{ff40}',
    '\u{ff62}'..='\u{ff63}',
];

fn is_in(ranges: &[RangeInclusive<char>], c: char) -> bool {
    ranges.iter().any(|range| range.contains(&c))
}

/// Returns the text with an apostrophe before each piece that a spreadsheet would execute.
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

/// Returns whether a text has no character that separates cells, quotes, calls a function or
/// combines operands. All other texts are written in quotes.
///
/// If the first cell of a line is a number, a reader that splits at `;` may see it and the next
/// text as one cell, such as `-1,2+A1`. A quote before the text ends a formula there.
pub(super) fn is_plain(text: &str) -> bool {
    let is_plain_byte = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(
                byte,
                b' ' | b'_' | b'.' | b'-' | b':' | b'/' | b'#' | b'[' | b']'
            )
    };
    // Bytes are read several times faster than characters, and most texts are ASCII.
    let beyond_ascii = text.bytes().position(|byte| !is_plain_byte(byte));
    let rest = beyond_ascii.and_then(|at| text.get(at..)).unwrap_or("");
    rest.chars().all(|c| match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => is_plain_byte(byte),
        _ => c.is_alphanumeric(),
    })
}

/// Returns the pieces of a text, each with the separator at its end.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.bytes().position(|byte| SEPARATORS.contains(&byte));
        let (piece, behind) = rest.split_at_checked(end.map_or(rest.len(), |at| at + 1))?;
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Returns whether a spreadsheet would execute the piece as a formula.
fn is_run(piece: &str) -> bool {
    let first = piece.trim_start_matches(is_trimmed).chars().next();
    first.is_some_and(|c| SIGNS.contains(&c) || is_in(&DASHES, c))
}

/// Returns whether the first character other than spaces and quotes is a tab or an end of line,
/// which some readers drop.
fn begins_with_control(text: &str) -> bool {
    let blank = |c: char| c != '\t' && c != '\r' && c != '\n' && is_trimmed(c);
    text.trim_start_matches(blank)
        .starts_with(['\t', '\r', '\n'])
}

/// Returns whether a reader can drop a character at the start of a cell: white space, a control, an
/// invisible character, or a quote. Letters are tested first, because most texts begin with one.
fn is_trimmed(c: char) -> bool {
    !c.is_ascii_alphanumeric()
        && (c.is_whitespace() || c.is_control() || is_in(&QUOTES, c) || is_in(&IGNORABLE, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of which hostile cells are made.
    const NASTY: [char; 29] = [
        '=',
        '+',
        '-',
        '@',
        '\t',
        '\r',
        '\n',
        ' ',
        '"',
        '\'',
        ';',
        ',',
        '|',
        '1',
        'x',
        '(',
        '!',
        '＝',
        '﹢',
        '\u{feff}',
        '\u{a0}',
        '“',
        'é',
        '\u{200b}',
        '\u{ad}',
        '\u{2212}',
        '\u{3164}',
        '\u{2014}',
        '\u{e0020}',
    ];

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % bound
        }

        fn text(&mut self) -> String {
            let length = self.below(9);
            (0..length)
                .map(|_| NASTY[self.below(NASTY.len())])
                .collect()
        }
    }

    /// Returns a line of CSV as `table` writes it.
    fn line(texts: &[String]) -> String {
        let mut out = String::new();
        for (i, text) in texts.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            super::super::table::write_guarded(text, &mut out);
        }
        out
    }

    /// Returns the cells that a reader finds. It respects quotes at the start of a cell and splits
    /// at one separator.
    fn cells(text: &str, separator: char) -> Vec<String> {
        let (mut out, mut cell, mut quoted) = (Vec::new(), String::new(), false);
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
                '"' if quoted => quoted = false,
                '"' if cell.is_empty() => quoted = true,
                c if !quoted && (c == separator || c == '\r' || c == '\n') => {
                    out.push(std::mem::take(&mut cell))
                }
                c => cell.push(c),
            }
        }
        out.push(cell);
        out
    }

    /// Returns whether a spreadsheet would execute a cell, by a rule that is independent of the one
    /// above: the text after blanks and quotes begins a formula.
    fn runs(cell: &str) -> bool {
        let blank = |c: char| {
            c.is_whitespace()
                || c.is_control()
                || "\"\u{200b}\u{feff}“\u{ad}\u{3164}\u{e0020}".contains(c)
        };
        cell.trim_start_matches(blank)
            .starts_with(['=', '+', '-', '@', '＝', '﹢', '\u{2212}', '\u{2014}'])
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
                    assert!(
                        !runs(&cell),
                        "{texts:?} is written as {written:?}: at {separator:?} there is a cell {cell:?}"
                    );
                }
            }
            // A reader that knows no quotes at all, at the separators that the text may hold.
            for cell in written.split([';', '\t', '|', '\r', '\n']) {
                assert!(
                    !runs(cell),
                    "{texts:?} is written as {written:?}: without quotes there is a cell {cell:?}"
                );
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
            assert_eq!(
                cells(&line(&[text]), ','),
                [again],
                "it comes back through a reader of RFC 4180"
            );
        }
    }

    #[test]
    fn shared_cases_of_the_page_are_guarded() {
        for case in include_str!("../../../../tests/cases/csv/guard.ndjson").lines() {
            let of = aqlite_rm::json::members(case).unwrap();
            let value = |key: &str| {
                aqlite_rm::json::text(of.iter().find(|(k, _)| k == key).unwrap().1).unwrap()
            };
            let mut written = String::new();
            super::super::table::write_guarded(&value("text"), &mut written);
            assert_eq!(written, value("csv"), "{case}");
        }
    }
}
