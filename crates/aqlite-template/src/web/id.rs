//! The ids of nodes: names converted to segments of keys.

use super::WebNode;
use aqlite_rm::class::Cls;
use std::collections::HashMap;

/// Assigns an id to every node below this one.
pub(super) fn assign(node: &mut WebNode, parent_class: Cls) {
    if node.id.is_empty() {
        node.id = segment(&text_of(node));
    }
    if parent_class == Cls::ANY {
        node.id = started(node.id.clone());
    }
    let class = node.class;
    let mut taken = Taken::default();
    for child in &mut node.children {
        if child.id.is_empty() {
            child.id = started(segment(&text_of(child)));
        }
        child.id = taken.free(&child.id);
        if let [only] = child.steps.as_slice()
            && child.alias.is_none()
            && child.id != only.attr.name()
            && !only.class.is_a(Cls::LOCATABLE)
        {
            // Better names a context by its node id, EHRbase by its attribute, as such objects have
            // no node id in documents.
            child.alias = Some(only.attr.name().to_owned());
        }
        assign(child, class);
    }
}

/// Returns the source text of an id: the name, else the last segment of the path.
fn text_of(node: &WebNode) -> String {
    let named = node.name.clone().filter(|n| !n.trim().is_empty());
    named.unwrap_or_else(|| {
        node.last_step()
            .map(|s| match s.class.is_a(Cls::LOCATABLE) {
                true => format!("{}{}", s.attr, s.predicate()),
                // ADL 2 has ids of data values and contexts too, which data do not have.
                false => s.attr.to_string(),
            })
            .unwrap_or_default()
    })
}

/// Converts a name to a segment: letters, digits, `.`, `-` and single underscores, in lower case.
pub(super) fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let kept = c.is_alphabetic() || c.is_ascii_digit() || matches!(c, '.' | '-');
        if kept {
            out.extend(c.to_lowercase());
        // Several characters that are not kept become one underscore.
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    let out = out.strip_prefix('_').unwrap_or(&out);
    out.strip_suffix('_').unwrap_or(out).to_owned()
}

/// Returns the segment of an alternative: `quantity_value`, `interval_of_quantity_value`.
pub(super) fn alternative(class_text: &str) -> String {
    let inner = class_text
        .strip_prefix("DV_INTERVAL<DV_")
        .and_then(|t| t.strip_suffix('>'));
    let text = inner.map_or_else(
        || {
            class_text
                .strip_prefix("DV_")
                .unwrap_or(class_text)
                .to_owned()
        },
        |i| format!("interval_of_{i}"),
    );
    format!("{}_value", text.to_ascii_lowercase())
}

/// Prefixes an id that is empty or begins with a digit.
fn started(id: String) -> String {
    match id.chars().next() {
        None => String::from("id"),
        // A segment must not begin with a digit.
        Some(c) if c.is_ascii_digit() => format!("a{id}"),
        Some(_) => id,
    }
}

/// The ids of siblings, each with the number at which the search for the next free one starts.
/// Lower numbers are taken.
#[derive(Default)]
struct Taken {
    ids: HashMap<String, usize>,
}

impl Taken {
    /// Returns the id, or the first of `id2`, `id3`, … that no sibling has.
    fn free(&mut self, id: &str) -> String {
        // The next number for each id is remembered. Otherwise many equal names would cost
        // quadratic time.
        let first = self.ids.get(id).copied().unwrap_or(1);
        let candidate = |n: usize| {
            if n < 2 {
                id.to_owned()
            } else {
                format!("{id}{n}")
            }
        };
        let (number, found) = (first..)
            .map(|n| (n, candidate(n)))
            .find(|(_, c)| !self.ids.contains_key(c))
            .unwrap_or_default();
        self.ids.insert(id.to_owned(), number + 1);
        // A generated id such as `name2` may also be the name of a later sibling.
        self.ids.entry(found.clone()).or_insert(2);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_segments() {
        for (name, expected) in [
            ("24 hour average", "a24_hour_average"),
            ("SpO₂", "spo"),
            ("Risk - a/b (1)", "risk_-_a_b_1"),
            ("Größe über alles", "größe_über_alles"),
            ("Давление", "давление"),
            ("½ dose", "dose"),
            ("  __x__  ", "x"),
            ("???", "id"),
            ("", "id"),
            ("Regular?", "regular"),
            ("Version 1.2-b", "version_1.2-b"),
            ("体重", "体重"),
        ] {
            assert_eq!(started(segment(name)), expected, "{name}");
        }
    }

    #[test]
    fn siblings_are_numbered_from_two_and_taken_ids_are_passed_over() {
        let mut taken = Taken::default();
        let ids: Vec<String> = ["x", "x", "x2", "x"]
            .iter()
            .map(|id| taken.free(id))
            .collect();
        assert_eq!(ids, ["x", "x2", "x22", "x3"]);
    }

    #[test]
    fn alternatives_are_named_by_their_class() {
        assert_eq!(alternative("DV_CODED_TEXT"), "coded_text_value");
        assert_eq!(
            alternative("DV_INTERVAL<DV_DATE_TIME>"),
            "interval_of_date_time_value"
        );
    }
}
