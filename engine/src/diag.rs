//! How problems are told: diagnostics in a text (span, code, help) and findings in a document (path, rule, expected, found).

mod suggest;

pub use suggest::{near, nearest};

use std::cell::OnceCell;
use std::fmt::Write;

/// A range of bytes in a source text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

/// How bad a problem is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// Nothing can be done with the text.
    Error,
    /// It works, but probably not as meant.
    Warning,
}

/// A problem in a source text (AQL, GDL, ODIN, a template).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code such as `AQL0203`.
    pub code: &'static str,
    /// Lower-case start, no full stop, source words in back-ticks.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to do about it.
    pub help: Option<String>,
}

/// A problem in an RM document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code such as `RM0102`.
    pub code: &'static str,
    /// The RM path in the document, such as `/content[0]/data/events[1]/time/value`.
    pub path: String,
    /// The rule that is broken, in words.
    pub message: String,
    /// What the rule asks for.
    pub expected: Option<String>,
    /// What stands there (a class, a count, a code, a number; never a whole text).
    pub found: Option<String>,
    /// The clinical label of the node in the template's language.
    pub label: Option<String>,
}

impl Span {
    /// The range from `start` up to, not including, `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Diagnostic {
    /// An error without help.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Error, code, message: message.into(), span, help: None }
    }

    /// A warning without help.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// The same with a line that says what to do.
    pub fn with_help(self, help: impl Into<String>) -> Diagnostic {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// One line: `line 1, column 8: message (AQL0203); help: …`.
    pub fn one_line(&self, source: &str) -> String {
        let (line, column) = LineIndex::new(source).line_column(self.span.start);
        let mut out = format!("line {line}, column {column}: {} ({})", self.message, self.code);
        if let Some(help) = &self.help {
            let _ = write!(out, "; help: {help}");
        }
        out
    }
}

impl Finding {
    /// An error at a path.
    pub fn error(code: &'static str, path: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Error, code, path: path.into(), message: message.into(), expected: None, found: None, label: None }
    }

    /// A warning at a path.
    pub fn warning(code: &'static str, path: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding { severity: Severity::Warning, ..Finding::error(code, path, message) }
    }

    /// The same, naming what was expected.
    pub fn expected(self, expected: impl Into<String>) -> Finding {
        Finding { expected: Some(expected.into()), ..self }
    }

    /// The same, naming what was found.
    pub fn found(self, found: impl Into<String>) -> Finding {
        Finding { found: Some(found.into()), ..self }
    }

    /// One line: `/path: message; expected …, found … (RM0102)`.
    pub fn one_line(&self) -> String {
        let mut out = format!("{}: {}", if self.path.is_empty() { "/" } else { &self.path }, self.message);
        match (&self.expected, &self.found) {
            (Some(e), Some(f)) => drop(write!(out, "; expected {e}, found {f}")),
            (Some(e), None) => drop(write!(out, "; expected {e}")),
            (None, Some(f)) => drop(write!(out, "; found {f}")),
            (None, None) => {}
        }
        let _ = write!(out, " ({})", self.code);
        out
    }
}

/// Turns byte offsets into lines and columns.
#[derive(Clone, Debug)]
pub struct LineIndex<'a> {
    source: &'a str,
    starts: Vec<usize>,
    /// UTF-16 units before every [`STRIDE`]th byte, counted when an offset is first asked for.
    units: OnceCell<Vec<usize>>,
}

/// Bytes between two offsets whose UTF-16 units are remembered: a lookup reads at most as many.
const STRIDE: usize = 256;

impl<'a> LineIndex<'a> {
    /// Indexes the lines of a text.
    pub fn new(source: &'a str) -> LineIndex<'a> {
        let starts = std::iter::once(0).chain(source.match_indices('\n').map(|(i, _)| i + 1)).collect();
        LineIndex { source, starts, units: OnceCell::new() }
    }

    /// Line and column (both from 1, the column in characters) of a byte offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|s| *s <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let column = self.source.get(start..offset.min(self.source.len())).map_or(0, |t| t.chars().count());
        (line, column + 1)
    }

    /// The offset in UTF-16 units that JavaScript uses for a byte offset.
    ///
    /// The first call reads the text once. Every call reads at most [`STRIDE`] bytes: an explanation asks for each token.
    pub fn utf16(&self, offset: usize) -> usize {
        let bytes = self.source.as_bytes();
        let offset = offset.min(bytes.len());
        let units = self.units.get_or_init(|| {
            let strides = bytes.chunks(STRIDE).scan(0, |sum, stride| Some(std::mem::replace(sum, *sum + utf16_units(stride))));
            strides.collect()
        });
        let stride = offset / STRIDE;
        // At the end of a text whose length is a multiple of the stride, the last stride is read whole.
        let stride = stride.min(units.len().saturating_sub(1));
        units.get(stride).copied().unwrap_or_default() + bytes.get(stride * STRIDE..offset).map_or(0, utf16_units)
    }
}

/// UTF-16 units of the characters that begin in these bytes of a text: two for a character of four bytes, one for any other.
fn utf16_units(bytes: &[u8]) -> usize {
    bytes.iter().map(|byte| usize::from(byte & 0xc0 != 0x80) + usize::from(*byte >= 0xf0)).sum()
}

/// How many lines end in a text.
#[inline(never)] // within a caller that is compiled for size it would go byte by byte
pub fn line_ends(text: &[u8]) -> u64 {
    text.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_utf16_counts_units() {
        let index = LineIndex::new("a\nä😀b");
        assert_eq!(index.line_column(8), (2, 3));
        assert_eq!(index.utf16(8), 5);
    }

    #[test]
    fn utf16_offsets_of_long_texts_are_those_of_counting() {
        for source in ["", "aä€😀\n", "x"] {
            let source = source.repeat(64 * STRIDE / source.len().max(1));
            let index = LineIndex::new(&source);
            let offsets = (0..=source.len()).filter(|offset| source.is_char_boundary(*offset));
            for offset in offsets.step_by(7).chain([source.len(), source.len() + 9]) {
                let prefix = source.get(..offset.min(source.len())).unwrap();
                assert_eq!(index.utf16(offset), prefix.encode_utf16().count(), "{offset}");
            }
        }
    }
}
