//! Proportions: the kind, the denominator, and a numerator without suffix.

use super::super::single_value::only_real;
use super::*;
use crate::web::proportion_kinds;

impl<'r> DocumentReader<'r, '_> {
    /// Completes kind, numerator and denominator. A value without suffix is the numerator, unless
    /// numerator or denominator are given. The writer adds the quotient to them, which is ignored.
    pub(super) fn complete_proportion(
        &mut self,
        draft: &mut Draft<'r>,
        form: &'r KeyTree<'_>,
        web: Option<&'r WebNode>,
    ) {
        self.check_plain_values(Cls::REAL, form);
        let has_parts = [Attr::NUMERATOR, Attr::DENOMINATOR].map(|attr| draft.get(attr).is_some());
        let plain = plain_value(form).filter(|_| has_parts == [false, false]);
        if let Some(numerator) = plain.and_then(|plain| self.read_leaf(Cls::REAL, plain.text())) {
            draft.put(Attr::NUMERATOR, numerator);
        }
        let kinds = web.map_or_else(|| (0..5).collect(), proportion_kinds);
        let only = web.and_then(|web| only_real(web, "denominator"));
        if let (None, Some(only)) = (draft.get(Attr::DENOMINATOR), only) {
            draft.put(
                Attr::DENOMINATOR,
                Draft::leaf(Cls::REAL, number::shortest(only)),
            );
        }
        if draft.get(Attr::TYPE).is_none() {
            if plain.is_some() && kinds.len() > 1 && only.is_none() {
                let message = "a value without suffix is the numerator, and the denominator depends \
                     on the kind: give `|type`, or `|numerator` and `|denominator`";
                return self.refuse_here("FLT0108", message, &[]);
            }
            let kind = usual_kind(&kinds, draft).to_string();
            draft.put(Attr::TYPE, Draft::leaf(Cls::INTEGER, kind));
        }
        // Percentages and unitary proportions have a fixed denominator.
        let fixed = match draft.text_along(&[Attr::TYPE]) {
            Some("2") => Some("100"),
            Some("1") => Some("1"),
            Some("0") if plain.is_some() => Some("1"),
            _ => None,
        };
        if let (None, Some(fixed)) = (draft.get(Attr::DENOMINATOR), fixed) {
            draft.put(Attr::DENOMINATOR, Draft::leaf(Cls::REAL, fixed));
        }
        for attr in [Attr::NUMERATOR, Attr::DENOMINATOR] {
            // An unusable numerator without suffix has a finding.
            let is_stated = attr == Attr::NUMERATOR && plain.is_some();
            if draft.get(attr).is_none() && !is_stated {
                self.refuse_here("FLT0108", format!("`|{attr}` is missing"), &[]);
            }
        }
    }
}

/// Returns the number of the kind of a proportion, if the sender names none: the most frequent one
/// that the numbers permit.
fn usual_kind(kinds: &[i64], draft: &Draft<'_>) -> i64 {
    let value = |attr| draft.text_along(&[attr]).and_then(number::parse);
    let (numerator, denominator) = (value(Attr::NUMERATOR), value(Attr::DENOMINATOR));
    let is_whole = |number: Option<f64>| number.is_none_or(|number| number.fract() == 0.0);
    let is_possible = |kind: &i64| match kind {
        1 => denominator.is_none_or(|denominator| denominator == 1.0),
        2 => denominator.is_none_or(|denominator| denominator == 100.0),
        3 | 4 => is_whole(numerator) && is_whole(denominator),
        _ => true,
    };
    // Percent, then ratio, are the most frequent kinds.
    let frequent = [2, 0].into_iter().filter(|kind| kinds.contains(kind));
    let mut all = frequent.chain(kinds.iter().copied());
    let first = all.clone().next();
    all.find(is_possible).or(first).unwrap_or(0)
}
