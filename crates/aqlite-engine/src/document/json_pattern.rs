//! Fast parsing of documents that differ in leaf values only: the JSON of the first document is the
//! pattern for the others.

use super::layout::Layout;
use super::pack::{FragmentView, Packed, PackedFragment, write_json};
use aqlite_rm::json::quote_into;
use aqlite_rm::tree::Kind;
use std::cell::RefCell;
use std::sync::Arc;

/// A document of one fragment with its canonical JSON, and the position of each leaf value in it.
pub struct JsonPattern {
    packed: Packed,
    json: String,
    /// The start and end in `json` of each leaf value, ascending.
    leaf_ranges: Vec<(usize, usize)>,
}

impl JsonPattern {
    /// Creates the pattern of a document; `None` for a document with several fragments.
    pub fn of(packed: Packed) -> Option<JsonPattern> {
        if !packed.root().groups.is_empty() {
            return None;
        }
        let (mut json, recorder) = (
            String::new(),
            LeafRecorder {
                packed: &packed,
                leaf_ranges: RefCell::default(),
            },
        );
        write_json(&recorder, 0, &mut json);
        let leaf_ranges = recorder.leaf_ranges.into_inner();
        Some(JsonPattern {
            packed,
            json,
            leaf_ranges,
        })
    }

    /// Parses a text that matches the pattern. Returns `None` for any other text, and for a leaf
    /// value with an escape.
    pub fn read(&self, json: &str) -> Option<Packed> {
        let (mut at, mut rest) = (0, json);
        let (mut text, mut leaves) = (
            String::with_capacity(json.len() / 2),
            Vec::with_capacity(self.leaf_ranges.len()),
        );
        for (start, end) in &self.leaf_ranges {
            rest = rest.strip_prefix(self.json.get(at..*start)?)?;
            let value = read_leaf(self.json.get(*start..*end)?, &mut rest)?;
            leaves.push((text.len() as u32, (text.len() + value.len()) as u32));
            text.push_str(value);
            at = *end;
        }
        let layout = Arc::clone(&self.packed.root().layout);
        // The text behind the last leaf value must match too.
        if self.json.get(at..)? != rest {
            return None;
        }
        let root = PackedFragment {
            layout,
            leaves,
            groups: Vec::new(),
        };
        Packed::new(text, root)
    }
}

/// Parses the value at a position where the pattern has the value `own`: any string for a string,
/// otherwise the same text.
fn read_leaf<'a>(own: &str, rest: &mut &'a str) -> Option<&'a str> {
    let (value, behind) = match rest.strip_prefix('"').filter(|_| own.starts_with('"')) {
        Some(inner) => {
            // A value that ends at a backslash has an escape, because no quote follows it.
            let (value, behind) = inner.split_at_checked(inner.find(['"', '\\'])?)?;
            (value, behind.strip_prefix('"')?)
        }
        None => rest
            .split_at_checked(own.len())
            .filter(|(value, _)| *value == own)?,
    };
    *rest = behind;
    Some(value)
}

/// A writer of a document that records the positions of its leaf values.
struct LeafRecorder<'a> {
    packed: &'a Packed,
    leaf_ranges: RefCell<Vec<(usize, usize)>>,
}

impl FragmentView for LeafRecorder<'_> {
    fn layout(&self) -> &Layout {
        &self.packed.root().layout
    }

    fn has(&self, _: u32) -> bool {
        true
    }

    fn write_leaf(&self, leaf: u32, kind: Kind, out: &mut String) {
        let (start, text) = (out.len(), self.packed.leaf_text(self.packed.root(), leaf));
        if kind == Kind::Text {
            quote_into(out, text)
        } else {
            out.push_str(text)
        }
        self.leaf_ranges.borrow_mut().push((start, out.len()));
    }

    fn each_child(&self, _: u32, _: &mut dyn FnMut(&Self)) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{LayoutStore, NothingKnown, pack};
    use aqlite_rm::arbitrary::Generator;
    use aqlite_rm::class::Cls;
    use aqlite_rm::json;

    fn packed(text: &str) -> Packed {
        pack(
            json::read(text, Cls::ANY).unwrap().root().unwrap(),
            &NothingKnown,
            &LayoutStore::new(),
        )
    }

    #[test]
    fn pattern_reads_the_document_that_packing_returns() {
        let mut texts: Vec<String> = (0..150)
            .map(|seed| json::write(Generator::new(seed).tree().root().unwrap()))
            .collect();
        let identified = |id: &str, kind: &str| {
            format!(
                r#"{{"_type":"PARTY_REF","id":{{"_type":"GENERIC_ID","value":{id},"scheme":"s"}},"namespace":"n","type":"{kind}"}}"#
            )
        };
        texts.extend(
            [
                "\"1\"",
                "\"\"",
                "\"a\\\"b\"",
                "\"\\\\\"",
                "\"\u{e9}\u{1f600}\"",
            ]
            .map(|id| identified(id, "PERSON")),
        );
        texts.extend([
            identified("\"1\"", "PARTY"),
            identified("\"1\"", "ORGANISATION"),
        ]);
        texts.extend(
            ["1.50", "-2", "1e5"]
                .map(|n| format!(r#"{{"_type":"DV_QUANTITY","magnitude":{n},"units":"kg"}}"#)),
        );
        let mut read = 0;
        for form in texts
            .iter()
            .filter_map(|text| JsonPattern::of(packed(text)))
        {
            for (text, found) in texts
                .iter()
                .filter_map(|text| Some((text, form.read(text)?)))
            {
                assert_eq!(found.to_json(), *text);
                assert_eq!(found.digest(), packed(text).digest());
                read += usize::from(form.json != *text);
            }
            assert!(form.json.contains('\\') || form.read(&form.json).is_some());
            assert!(
                form.read(&form.json[..form.json.len() - 1]).is_none()
                    && form.read(&format!("{} ", form.json)).is_none()
            );
        }
        assert!(read > 2, "{read}");
    }
}
