//! Completion of values: template ids, codes with their texts, units. They belong to the path on the
//! other side of a comparison.

use super::{Collector, CompletionKind};
use crate::draft::{Draft, PathEnd};
use crate::labels::{Label, LabelStep};
use crate::token::{TokenKind, tokens};
use crate::vocabulary::Keyword;
use aqlite_rm::diag::Span;

/// Returns the quoted text around an offset: to its closing quote, else up to the offset.
pub(super) fn open_text(text: &str, offset: usize) -> Option<Span> {
    let (all, _) = tokens(text);
    let inside = |span: Span| span.start < offset && offset < span.end;
    if let Some(token) = all.iter().find(|t| inside(t.span)) {
        return (token.kind == TokenKind::Text).then_some(token.span);
    }
    // A text without its end is an invalid token of its own.
    let (before, _) = tokens(text.get(..offset)?);
    let last = before.iter().rev().find(|t| t.kind != TokenKind::End)?;
    let is_open = last.kind == TokenKind::Invalid
        && text
            .get(last.span.start..)
            .is_some_and(|rest| rest.starts_with(['\'', '"']));
    is_open.then_some(Span::new(last.span.start, offset))
}

impl Collector<'_> {
    /// Offers the values that the compared path can have.
    pub(super) fn values(&mut self) {
        let Some(end) = compared(&self.before) else {
            return;
        };
        let found = match names_template(&end.steps) {
            true => self.labels.templates(root_of(&end)),
            false => self.values_of(&end),
        };
        for label in found {
            self.push_value(&label);
        }
    }

    fn values_of(&self, end: &PathEnd) -> Vec<Label> {
        let archetype = end.archetype.as_deref();
        archetype.map_or_else(Vec::new, |a| self.labels.values(a, &end.steps))
    }

    fn push_value(&mut self, label: &Label) {
        let shown = match label.text.is_empty() || label.text == label.id {
            true => label.id.clone(),
            false => format!("{} {}", label.id, label.text),
        };
        let quoted = format!("'{}'", label.id.replace('\\', "\\\\").replace('\'', "\\'"));
        self.push(CompletionKind::Literal, &shown, &quoted, &label.detail);
    }
}

/// Returns whether a path leads to the id of the template of a document.
fn names_template(steps: &[LabelStep]) -> bool {
    let names: Vec<&str> = steps.iter().map(|(name, _)| name.as_str()).collect();
    names.ends_with(&["archetype_details", "template_id", "value"])
}

/// Returns the archetype of the document, if the path starts at its root.
fn root_of(end: &PathEnd) -> Option<&str> {
    end.archetype.as_deref().filter(|_| end.steps.len() == 3)
}

/// Returns the end of the path on the left of the comparison that precedes the cursor: `=`, LIKE, or
/// the list of MATCHES.
fn compared(before: &Draft<'_>) -> Option<PathEnd> {
    let last = before.tokens.len().checked_sub(1)?;
    let operator = match before.kind(last)? {
        TokenKind::Comparison | TokenKind::Keyword(Keyword::Like) => last,
        TokenKind::Sign('{' | ',') => matches_of(before, last)?,
        _ => return None,
    };
    before.path_end_before(operator)
}

/// Returns the word MATCHES of the list that is open at a token.
fn matches_of(before: &Draft<'_>, last: usize) -> Option<usize> {
    let is_item = |index: &usize| {
        matches!(
            before.kind(*index),
            Some(TokenKind::Text | TokenKind::Sign(','))
        )
    };
    let mut items = (0..=last).rev().skip_while(is_item);
    let open = items.next()?;
    let word = open.checked_sub(1)?;
    let is_list = before.kind(open) == Some(TokenKind::Sign('{'))
        && before.kind(word) == Some(TokenKind::Keyword(Keyword::Matches));
    is_list.then_some(word)
}
