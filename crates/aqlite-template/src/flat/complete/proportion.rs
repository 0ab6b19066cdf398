//! Proportions: the kind, the denominator, and the numerator of a magnitude.

use super::super::only::only_real;
use super::*;
use crate::web::proportion_kinds;

impl<'r> DocumentReader<'r, '_> {
    /// Completes kind, numerator and denominator. A value without suffix is the magnitude, that is
    /// the quotient (RM 1.1.0, data_types.quantity, DV_PROPORTION).
    pub(super) fn complete_proportion(
        &mut self,
        draft: &mut Draft<'r>,
        form: &'r KeyTree<'_>,
        web: Option<&'r WebNode>,
    ) {
        self.check_plain_values(Cls::REAL, form);
        let magnitude = plain_value(form).filter(|_| draft.get(Attr::NUMERATOR).is_none());
        let kinds = web.map_or_else(|| (0..5).collect(), proportion_kinds);
        let only = web.and_then(|web| only_real(web, "denominator"));
        if let (None, Some(only)) = (draft.get(Attr::DENOMINATOR), only) {
            draft.put(
                Attr::DENOMINATOR,
                Draft::leaf(Cls::REAL, number::shortest(only)),
            );
        }
        if draft.get(Attr::TYPE).is_none() {
            if magnitude.is_some() && kinds.len() > 1 && only.is_none() {
                let message = "a value without suffix is the magnitude, which several kinds of \
                     proportion can have: give `|type`, or `|numerator` and `|denominator`";
                return self.refuse_here("FLT0108", message, &[]);
            }
            let kind = usual_kind(&kinds, draft).to_string();
            draft.put(Attr::TYPE, Draft::leaf(Cls::INTEGER, kind));
        }
        // Percentages and unitary proportions have a fixed denominator.
        let fixed = match draft.text_along(&[Attr::TYPE]) {
            Some("2") => Some("100"),
            Some("1") => Some("1"),
            // The quotient with 1 is the magnitude.
            Some("0") if magnitude.is_some() => Some("1"),
            _ => None,
        };
        if let (None, Some(fixed)) = (draft.get(Attr::DENOMINATOR), fixed) {
            draft.put(Attr::DENOMINATOR, Draft::leaf(Cls::REAL, fixed));
        }
        if let Some(magnitude) = magnitude {
            self.set_magnitude(draft, magnitude.text());
        }
        for attr in [Attr::NUMERATOR, Attr::DENOMINATOR] {
            // A magnitude states the numerator.
            let is_stated = attr == Attr::NUMERATOR && magnitude.is_some();
            if draft.get(attr).is_none() && !is_stated {
                self.refuse_here("FLT0108", format!("`|{attr}` is missing"), &[]);
            }
        }
    }

    /// Sets the numerator that has this magnitude with the denominator.
    fn set_magnitude(&mut self, draft: &mut Draft<'r>, text: &'r str) {
        let Some(magnitude) = self.read_leaf(Cls::REAL, text) else {
            return;
        };
        let denominator = draft.text_along(&[Attr::DENOMINATOR]);
        let Some(denominator) = denominator.and_then(number::parse) else {
            return;
        };
        if (denominator - 1.0).abs() == 0.0 {
            draft.put(Attr::NUMERATOR, magnitude);
            return;
        }
        match number::parse(text.trim()).and_then(|number| product(number, denominator)) {
            Some(text) => draft.put(Attr::NUMERATOR, Draft::leaf(Cls::REAL, text)),
            None => self.refuse_here(
                "FLT0104",
                "the numerator, which is the magnitude times the denominator, exceeds the largest \
                 number",
                &[],
            ),
        }
    }
}

/// Returns the product, without the error of binary fractions in its last digits: 7, and not
/// 7.000000000000001, for 0.07 and 100. `None` if it exceeds the largest number.
fn product(magnitude: f64, denominator: f64) -> Option<String> {
    let rounded = number::parse(&format!("{:.14e}", magnitude * denominator))?;
    Some(number::shortest(rounded))
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
