//! Diagnostics with the line of the source, on the standard error.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use aqlite::diag::{Diagnostic, Severity};
use std::io::IsTerminal;

/// Returns the text of some diagnostics: message, line of the source and help for each.
pub fn render(source: &str, path: &str, found: &[Diagnostic], is_colored: bool) -> String {
    let renderer = if is_colored {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let mut out = String::new();
    for diagnostic in found {
        out.push_str(&one(&renderer, source, path, diagnostic));
        out.push('\n');
    }
    out
}

fn one(renderer: &Renderer, source: &str, path: &str, diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let start = diagnostic.span.start.min(source.len());
    let end = diagnostic.span.end.clamp(start, source.len());
    let mark = AnnotationKind::Primary.span(start..end);
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code);
    let snippet = Snippet::source(source).path(path).annotation(mark);
    let mut group = title.element(snippet);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    renderer.render(&[group])
}

/// Writes some diagnostics on the standard error.
pub fn show(source: &str, path: &str, found: &[Diagnostic]) {
    let is_colored = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    eprint!("{}", render(source, path, found, is_colored));
}
