//! Diagnostics with the line of the source.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use aqlite::diag::{Diagnostic, Severity};
use std::io::IsTerminal;

/// Returns the text of a diagnostic: message, line of the source and help. The text begins at a line
/// of the file with this path.
pub fn render_at(
    source: &str,
    (path, line): (&str, usize),
    diagnostic: &Diagnostic,
    is_colored: bool,
) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let start = diagnostic.span.start.min(source.len());
    let end = diagnostic.span.end.clamp(start, source.len());
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code);
    let mark = AnnotationKind::Primary.span(start..end);
    let snippet = Snippet::source(source)
        .path(path)
        .line_start(line)
        .annotation(mark);
    let mut group = title.element(snippet);
    if let Some(help) = &diagnostic.help {
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
    let is_colored = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for diagnostic in found {
        eprintln!("{}", render_at(source, (path, 1), diagnostic, is_colored));
    }
}
