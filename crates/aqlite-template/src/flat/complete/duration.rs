//! Durations that are given in parts: `|year`, `|month`, … `|second`.

use super::super::form::KeyTree;
use super::super::read::{DocumentReader, whole};
use super::super::shown;
use crate::draft::Draft;
use crate::web::DURATION_FIELDS;
use aqlite_rm::class::Attr;

/// Returns whether a suffix names a part of a duration.
pub(super) fn is_duration_part(suffix: &str) -> bool {
    DURATION_FIELDS.iter().any(|field| field.name == suffix)
}

impl<'r> DocumentReader<'r, '_> {
    /// Puts the parts of a duration together, unless its whole value is given.
    pub(super) fn complete_duration(&mut self, draft: &mut Draft<'r>, form: &'r KeyTree<'_>) {
        if draft.get(Attr::VALUE).is_some() {
            return self.refuse_parts_of_duration(form);
        }
        let (mut text, mut is_clock) = (String::from("P"), false);
        for field in DURATION_FIELDS {
            let Some(value) = form.value(field.name) else {
                continue;
            };
            let Some(number) = part_of_duration(field.name, value.text()) else {
                return self.refuse_part_of_duration(field.name, value.text());
            };
            if field.is_clock && !std::mem::replace(&mut is_clock, true) {
                text.push('T');
            }
            text.push_str(number);
            text.push(field.letter);
        }
        if text.len() > 1 {
            draft.put(Attr::VALUE, Draft::text(text));
        }
    }

    fn refuse_part_of_duration(&mut self, name: &str, text: &str) {
        let expected = match name {
            "second" => "a number from 0",
            _ => "a whole number from 0",
        };
        let message = format!("`|{name}` is `{}`, expected {expected}", shown(text));
        let key = format!("{}|{name}", self.path);
        self.refuse("FLT0104", &key, message, &[]);
    }

    /// Reports a part of a duration that is given besides the whole.
    fn refuse_parts_of_duration(&mut self, form: &KeyTree<'_>) {
        let mut names = DURATION_FIELDS.iter().map(|field| field.name);
        if let Some(name) = names.find(|name| form.value(name).is_some()) {
            let message =
                format!("`|{name}` is given besides the whole duration: remove one of them");
            self.refuse_here("FLT0107", message, &[]);
        }
    }
}

/// Returns the number of a part of a duration. Only seconds may have a fraction (ISO 8601-1 as
/// restricted by openEHR BASE).
fn part_of_duration<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    let number = whole(text.trim());
    let (count, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let may_have_fraction = name == "second" || !number.contains('.');
    (is_digits(count) && is_digits(fraction) && may_have_fraction).then_some(number)
}
