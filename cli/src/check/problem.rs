//! A problem of a file, with its place.

use crate::report;
use aqlite::diag::{Diagnostic, Finding, LineIndex, Severity, Span};
use std::rc::Rc;

/// A text that was checked: a file, or a line of one.
#[derive(Debug)]
pub struct CheckedText {
    /// The path of the file.
    pub path: String,
    /// The text.
    pub text: String,
    /// The number of its first line in the file, from 1.
    pub line: usize,
}

/// A problem of a file.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The text.
    pub source: Rc<CheckedText>,
    /// The problem with its range in the text.
    pub diagnostic: Diagnostic,
}

/// The range of a problem, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// The first line.
    pub line: usize,
    /// The first column, in characters.
    pub column: usize,
    /// The last line.
    pub end_line: usize,
    /// The column behind the last character.
    pub end_column: usize,
}

impl Problem {
    /// Returns whether the text is rejected.
    pub fn is_error(&self) -> bool {
        self.diagnostic.severity == Severity::Error
    }

    /// Creates the problem of a finding about a document, whose node has this range.
    pub fn of_finding(source: &Rc<CheckedText>, finding: &Finding, span: Option<Span>) -> Problem {
        let message = report::line_without_code(finding);
        let message = match &finding.label {
            Some(label) => format!("{message} ({label})"),
            None => message,
        };
        let span = span.unwrap_or_default();
        Problem {
            source: Rc::clone(source),
            diagnostic: match finding.severity {
                Severity::Error => Diagnostic::error(finding.code, span, message),
                Severity::Warning => Diagnostic::warning(finding.code, span, message),
            },
        }
    }

    /// Returns the range of the problem in the file.
    pub fn region(&self) -> Region {
        self.region_of(self.diagnostic.span)
    }

    /// Returns the change that removes the problem: a range in the file, and its replacement.
    pub fn fix(&self) -> Option<(Region, &str)> {
        let fix = self.diagnostic.fix.as_ref()?;
        Some((self.region_of(fix.span), &fix.text))
    }

    fn region_of(&self, span: Span) -> Region {
        let index = LineIndex::new(&self.source.text);
        let (line, column) = index.line_column(span.start);
        let (end_line, end_column) = index.line_column(span.end.max(span.start));
        let before = self.source.line - 1;
        Region {
            line: line + before,
            column,
            end_line: end_line + before,
            end_column,
        }
    }

    /// Returns the problem with the line of the source.
    pub fn text(&self, is_colored: bool) -> String {
        report::render_at(
            &self.source.text,
            (&self.source.path, self.source.line),
            &(&self.diagnostic).into(),
            is_colored,
        )
    }
}
