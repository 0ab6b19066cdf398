//! Diagnostics about source texts (span, code, help) and findings about documents (path, rule,
//! expected, found).

mod suggest;

pub use suggest::{near, nearest};

use std::cell::OnceCell;
use std::fmt::{self, Write};
use std::ops::{Deref, DerefMut};

/// A range of bytes in a source text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

/// The severity of a problem.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The text or document is rejected.
    Error,
    /// The text or document is accepted, but is probably not what its author meant.
    Warning,
}

/// A problem in a source text (AQL, GDL, ODIN, a template).
///
/// The functions of a reader return it as their error. Its fields are in a box, so that these
/// results are small.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic(Box<DiagnosticFields>);

/// The fields of a [`Diagnostic`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiagnosticFields {
    /// The severity.
    pub severity: Severity,
    /// A stable code such as `AQL0203`.
    pub code: &'static str,
    /// The message. It starts in lower case, has no full stop, and quotes source words in
    /// back-ticks.
    pub message: String,
    /// The range of the source that the message is about.
    pub span: Span,
    /// The remedy, if one is known.
    pub help: Option<String>,
    /// The change of the text that follows the remedy, if one change does.
    pub fix: Option<Fix>,
}

/// A change of a source text that removes a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    /// The range that is replaced. It is empty for an insertion.
    pub span: Span,
    /// The replacement.
    pub text: String,
}

/// A problem in a Reference Model document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// A stable code such as `RM0102`.
    pub code: &'static str,
    /// The RM path in the document, such as `/content[0]/data/events[1]/time/value`.
    pub path: String,
    /// The violated rule, in words.
    pub message: String,
    /// The value that the rule requires.
    pub expected: Option<String>,
    /// The value found: a class, a count, a code or a number, never a text that a person wrote.
    pub found: Option<String>,
    /// The clinical label of the node in the template's language.
    pub label: Option<String>,
}

impl Span {
    /// Returns the range from `start` up to, but not including, `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Returns the smallest span that contains both.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// Formats the message and the code. [`Diagnostic::one_line`] also has the position.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Diagnostic {}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.one_line())
    }
}

impl std::error::Error for Finding {}

impl Deref for Diagnostic {
    type Target = DiagnosticFields;

    fn deref(&self) -> &DiagnosticFields {
        &self.0
    }
}

impl DerefMut for Diagnostic {
    fn deref_mut(&mut self) -> &mut DiagnosticFields {
        &mut self.0
    }
}

impl Diagnostic {
    /// Creates an error without help.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic(Box::new(DiagnosticFields {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            help: None,
            fix: None,
        }))
    }

    /// Creates a warning without help.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        let mut warning = Diagnostic::error(code, span, message);
        warning.severity = Severity::Warning;
        warning
    }

    /// Returns the fields, to move values out of them.
    pub fn into_fields(self) -> DiagnosticFields {
        *self.0
    }

    /// Adds the remedy.
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds the change that follows the remedy.
    pub fn with_fix(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        let text = text.into();
        self.fix = Some(Fix { span, text });
        self
    }

    /// Formats the diagnostic as one line: `line 1, column 8: message (AQL0203); help: …`.
    ///
    /// Costs one pass over the text. [`Diagnostic::line_of`] avoids it for further problems.
    pub fn one_line(&self, source: &str) -> String {
        self.line_of(&LineIndex::new(source))
    }

    /// Formats the line of [`Diagnostic::one_line`] with an index of the text.
    pub fn line_of(&self, index: &LineIndex<'_>) -> String {
        let (line, column) = index.line_column(self.span.start);
        let mut out = format!(
            "line {line}, column {column}: {} ({})",
            self.message, self.code
        );
        if let Some(help) = &self.help {
            let _ = write!(out, "; help: {help}");
        }
        out
    }
}

impl Finding {
    /// Creates an error about the node at `path`.
    pub fn error(
        code: &'static str,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding {
            severity: Severity::Error,
            code,
            path: path.into(),
            message: message.into(),
            expected: None,
            found: None,
            label: None,
        }
    }

    /// Creates a warning about the node at `path`.
    pub fn warning(
        code: &'static str,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding {
            severity: Severity::Warning,
            ..Finding::error(code, path, message)
        }
    }

    /// Adds the expected value.
    pub fn expected(self, expected: impl Into<String>) -> Finding {
        Finding {
            expected: Some(expected.into()),
            ..self
        }
    }

    /// Adds the value that was found.
    pub fn found(self, found: impl Into<String>) -> Finding {
        Finding {
            found: Some(found.into()),
            ..self
        }
    }

    /// Formats the finding as one line: `/path: message; expected …, found … (RM0102)`.
    pub fn one_line(&self) -> String {
        let mut out = format!(
            "{}: {}",
            if self.path.is_empty() {
                "/"
            } else {
                &self.path
            },
            self.message
        );
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

/// An index of the lines of a text, which converts byte offsets to lines and columns.
#[derive(Clone, Debug)]
pub struct LineIndex<'a> {
    source: &'a str,
    starts: Vec<usize>,
    /// The UTF-16 units before each multiple of `STRIDE` bytes. Counted on first use.
    units: OnceCell<Vec<usize>>,
    /// The characters before each multiple of `STRIDE` bytes. Counted on first use.
    characters: OnceCell<Vec<usize>>,
}

/// The distance in bytes between offsets whose UTF-16 units are stored. A lookup counts at most
/// this number of bytes.
const STRIDE: usize = 256;

impl<'a> LineIndex<'a> {
    /// Indexes the lines of a text.
    pub fn new(source: &'a str) -> LineIndex<'a> {
        let starts = std::iter::once(0)
            .chain(source.match_indices('\n').map(|(i, _)| i + 1))
            .collect();
        LineIndex {
            source,
            starts,
            units: OnceCell::new(),
            characters: OnceCell::new(),
        }
    }

    /// Returns line and column of a byte offset, both from 1. The column counts characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|s| *s <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let characters = self.characters();
        // Characters before an offset: those before its stride, and those of the stride before it.
        let before = |offset: usize| {
            let stride = (offset / STRIDE).min(characters.len().saturating_sub(1));
            let bytes = self.source.as_bytes().get(stride * STRIDE..offset);
            characters.get(stride).copied().unwrap_or_default() + bytes.map_or(0, characters_of)
        };
        let offset = offset.min(self.source.len());
        (line, before(offset).saturating_sub(before(start)) + 1)
    }

    /// Characters before every `STRIDE`th byte.
    fn characters(&self) -> &[usize] {
        self.characters.get_or_init(|| {
            let strides = self.source.as_bytes().chunks(STRIDE);
            let counted = strides.scan(0, |sum, stride| {
                Some(std::mem::replace(sum, *sum + characters_of(stride)))
            });
            counted.collect()
        })
    }

    /// Converts a byte offset to the UTF-16 offset that JavaScript uses.
    ///
    /// The first call reads the text once. Every call counts at most `STRIDE` bytes, because an
    /// explanation of a query converts the offset of each token.
    pub fn utf16(&self, offset: usize) -> usize {
        let bytes = self.source.as_bytes();
        let offset = offset.min(bytes.len());
        let units = self.units.get_or_init(|| {
            let strides = bytes.chunks(STRIDE).scan(0, |sum, stride| {
                Some(std::mem::replace(sum, *sum + utf16_units(stride)))
            });
            strides.collect()
        });
        let stride = offset / STRIDE;
        // If the length of the text is a multiple of the stride, its end has no stride of its own.
        let stride = stride.min(units.len().saturating_sub(1));
        units.get(stride).copied().unwrap_or_default()
            + bytes.get(stride * STRIDE..offset).map_or(0, utf16_units)
    }
}

/// Returns the number of characters that begin in these bytes of a text.
fn characters_of(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Returns the UTF-16 units of the characters that begin in these bytes.
///
/// A character of four bytes (first byte ≥ 0xf0) is a surrogate pair; any other character is one
/// unit. Continuation bytes have the form 10xxxxxx and count nothing.
fn utf16_units(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .map(|byte| usize::from(byte & 0xc0 != 0x80) + usize::from(*byte >= 0xf0))
        .sum()
}

/// Returns the number of line feeds in a text.
pub fn line_ends(text: &[u8]) -> u64 {
    // Eight bytes at a time: a module that is compiled for size has no vector instructions here.
    let (chunks, rest) = text.as_chunks();
    let in_chunks = chunks.iter().map(|chunk| u64::from(line_feeds(*chunk)));
    let in_rest = rest.iter().filter(|byte| **byte == b'\n').count() as u64;
    in_chunks.sum::<u64>() + in_rest
}

/// Returns the number of line feeds in eight bytes.
fn line_feeds(bytes: [u8; 8]) -> u32 {
    const LOW: u64 = u64::from_ne_bytes([0x7f; 8]);
    // A line feed becomes 0. Adding 0x7f sets the highest bit of each byte whose lower seven bits
    // are not 0, without a carry into the next byte; `others` also keeps a highest bit that is set.
    let difference = u64::from_ne_bytes(bytes) ^ u64::from_ne_bytes([b'\n'; 8]);
    let others = ((difference & LOW) + LOW) | difference;
    (!others & !LOW).count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_of_random_bytes_are_those_of_counting() {
        let mut state = 7_u64;
        let bytes: Vec<u8> = (0..4_000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                [b'\n', 0, 0x8a, 0x0b, 0xff, 0x7f, 0x80, b'\n'][(state >> 61) as usize]
            })
            .collect();
        for (start, end) in [(0, 4_000), (1, 3_999), (3, 10), (5, 5), (8, 16)] {
            let part = &bytes[start..end];
            let counted = part.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(line_ends(part), counted as u64, "{start}..{end}");
        }
    }

    #[test]
    fn columns_count_characters_and_utf16_counts_units() {
        let index = LineIndex::new("a\nä😀b");
        assert_eq!(index.line_column(8), (2, 3));
        assert_eq!(index.utf16(8), 5);
    }

    #[test]
    fn columns_of_long_lines_are_those_of_counting() {
        let source = "aä€😀".repeat(STRIDE) + "\n" + &"xä".repeat(STRIDE);
        let index = LineIndex::new(&source);
        for offset in (0..=source.len()).filter(|offset| source.is_char_boundary(*offset)) {
            let prefix = source.get(..offset).unwrap();
            let line = prefix.matches('\n').count() + 1;
            let column = prefix.rsplit('\n').next().unwrap().chars().count() + 1;
            assert_eq!(index.line_column(offset), (line, column), "{offset}");
        }
    }

    #[test]
    fn utf16_offsets_of_long_texts_are_those_of_counting() {
        for source in ["", "aä€😀\n", "x"] {
            let source = source.repeat(64 * STRIDE / source.len().max(1));
            let index = LineIndex::new(&source);
            let offsets = (0..=source.len()).filter(|offset| source.is_char_boundary(*offset));
            for offset in offsets.step_by(7).chain([source.len(), source.len() + 9]) {
                let prefix = source.get(..offset.min(source.len())).unwrap();
                assert_eq!(
                    index.utf16(offset),
                    prefix.encode_utf16().count(),
                    "{offset}"
                );
            }
        }
    }
}
