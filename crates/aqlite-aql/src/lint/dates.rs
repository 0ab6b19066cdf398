//! Texts that look like a date or time but are none: they compare as texts.

use super::place::State;
use super::{DATE, Linter};
use crate::ast;
use crate::query::CompareOp;
use aqlite_rm::class::Cls;
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::time::Temporal;

impl<'a> Linter<'a> {
    /// Checks a text that is compared with the `value` of a date or time.
    pub(super) fn misspelt_date(&mut self, path: &'a ast::Path, text: &str, right: &ast::Expr) {
        let Some((last, before)) = path.steps.split_last() else {
            return;
        };
        if last.attribute.text != "value" || !looks_like_date(text) {
            return;
        }
        let owners = self.path_before(path, before.len()).unwrap_or_default();
        let is_date = |class: Cls| [Cls::DV_DATE, Cls::DV_TIME, Cls::DV_DATE_TIME].contains(&class);
        if owners.is_empty() || !owners.iter().all(|s| s.classes.possible().all(is_date)) {
            return;
        }
        let is_certain = owners.iter().all(State::is_of_model);
        let span = crate::print::expr_span(right);
        let message = format!("`{text}` is no date or time, and compares as a text");
        let diagnostic = Diagnostic::warning(DATE, span, message);
        let diagnostic = with_spelling(diagnostic, text, span);
        // Stored dates are valid. Only a stored text of this spelling refutes the warning.
        let contrary = self.contrary(&ast::Compare {
            left: ast::Expr::Path(path.clone()),
            op: CompareOp::Eq,
            right: right.clone(),
        });
        self.warn(diagnostic, contrary, is_certain);
    }
}

fn with_spelling(diagnostic: Diagnostic, text: &str, span: Span) -> Diagnostic {
    match respelt(text) {
        Some(near) => {
            let help = format!("did you mean `{near}`?");
            diagnostic
                .with_help(help)
                .with_fix(span, format!("'{near}'"))
        }
        None => diagnostic.with_help("write `2020-01-31`, `2020-01-31T10:30:00` or `10:30:00`"),
    }
}

/// Returns whether a text has the digits and separators of a date or time, and is none.
fn looks_like_date(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_digit() || "-/.:TtZz+ ".contains(c);
    let groups = || {
        text.split(|c: char| !c.is_ascii_digit())
            .filter(|g| !g.is_empty())
    };
    let has_year = groups().any(|group| group.len() == 4);
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(is_allowed)
        && groups().count() >= 2
        && (has_year || text.contains(':'))
        && Temporal::classify(text).is_none()
}

/// Returns the valid spelling that is probably meant. A day that the calendar does not have, and one
/// that may be a month, have none.
fn respelt(text: &str) -> Option<String> {
    let text = text.trim();
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None if text.contains(':') => ("", Some(text)),
        None => (text, None),
    };
    let time = time.map(padded_time);
    let dates = match date {
        "" => vec![String::new()],
        date => dates(date),
    };
    let spellings = dates.into_iter().map(|date| match &time {
        Some(time) if date.is_empty() => time.clone(),
        Some(time) => format!("{date}T{time}"),
        None => date,
    });
    let mut valid = spellings.filter(|spelling| Temporal::classify(spelling).is_some());
    let first = valid.next()?;
    valid.all(|other| other == first).then_some(first)
}

/// Returns the spellings of a date in ISO 8601, in the order of their probability.
fn dates(date: &str) -> Vec<String> {
    let groups: Vec<&str> = date.split(['-', '/', '.']).collect();
    let written = |year: &str, month: &str, day: &str| format!("{year}-{month:0>2}-{day:0>2}");
    let is_short = |group: &str| matches!(group.len(), 1 | 2);
    match groups.as_slice() {
        [year, month] if year.len() == 4 && is_short(month) => vec![format!("{year}-{month:0>2}")],
        [year, month, day] if year.len() == 4 && is_short(month) && is_short(day) => {
            let usual = written(year, month, day);
            match Temporal::classify(&usual) {
                Some(_) => vec![usual],
                None => vec![written(year, day, month)],
            }
        }
        [one, other, year] if year.len() == 4 && is_short(one) && is_short(other) => {
            vec![written(year, other, one), written(year, one, other)]
        }
        _ => Vec::new(),
    }
}

/// Returns a time whose hours, minutes and seconds have two digits each.
fn padded_time(time: &str) -> String {
    let end = time.find(['Z', 'z', '+', '-', '.']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(end);
    let groups: Vec<String> = clock
        .trim()
        .split(':')
        .map(|g| format!("{g:0>2}"))
        .collect();
    format!("{}{}", groups.join(":"), zone.to_ascii_uppercase())
}
