//! Diagnostics with the line of the source.

use crate::printable::printable;
use crate::terminal::report_line;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use aqlite::diag::{Diagnostic, Finding, Severity, Span};
use std::io::IsTerminal;

/// A problem of a text: of this program, or of a repository that has checked it.
pub struct ReportedProblem<'d> {
    /// Whether the text is rejected.
    pub is_error: bool,
    /// The code of the rule.
    pub code: &'d str,
    /// The message.
    pub message: &'d str,
    /// The bytes of the text that the message is about.
    pub span: Span,
    /// The remedy, if one is known.
    pub help: Option<&'d str>,
}

impl<'d> From<&'d Diagnostic> for ReportedProblem<'d> {
    fn from(diagnostic: &'d Diagnostic) -> ReportedProblem<'d> {
        ReportedProblem {
            is_error: diagnostic.severity == Severity::Error,
            code: diagnostic.code,
            message: &diagnostic.message,
            span: diagnostic.span,
            help: diagnostic.help.as_deref(),
        }
    }
}

/// Returns the line of a finding without its code, for reports that show the code before it.
pub fn line_without_code(finding: &Finding) -> String {
    let line = finding.one_line();
    let code = format!(" ({})", finding.code);
    line.strip_suffix(&code).unwrap_or(&line).to_owned()
}

/// Returns the text of a diagnostic: message, line of the source and help. The text begins at a line
/// of the file with this path.
pub fn render_at(
    source: &str,
    (path, line): (&str, usize),
    shown: &ReportedProblem<'_>,
    is_colored: bool,
) -> String {
    let level = match shown.is_error {
        true => Level::ERROR,
        false => Level::WARNING,
    };
    let start = shown.span.start.min(source.len());
    let end = shown.span.end.clamp(start, source.len());
    let title = level.primary_title(shown.message).id(shown.code);
    let mark = AnnotationKind::Primary.span(start..end);
    let path = printable(path);
    let snippet = Snippet::source(source)
        .path(path.as_ref())
        .line_start(line)
        .annotation(mark);
    let mut group = title.element(snippet);
    if let Some(help) = shown.help {
        group = group.element(Level::HELP.message(help));
    }
    let renderer = if is_colored {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}

/// Writes some diagnostics on the standard error.
pub fn show(source: &str, path: &str, found: &[Diagnostic]) {
    show_all(source, path, found.iter().map(ReportedProblem::from));
}

/// Writes some problems on the standard error.
pub fn show_all<'d>(source: &str, path: &str, all: impl IntoIterator<Item = ReportedProblem<'d>>) {
    let is_colored = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for shown in all {
        report_line!("{}", render_at(source, (path, 1), &shown, is_colored));
    }
}
