//! Parties and participations: missing parts, identifiers and references.

use super::complete::{code_in, put_code};
use super::fill::IDENTIFIER;
use super::form::KeyTree;
use super::read::DocumentReader;
use crate::draft::Draft;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;
use aqlite_rm::terminology;

impl<'r> DocumentReader<'r, '_> {
    pub fn complete_participation(&mut self, draft: &mut Draft<'r>, form: &'r KeyTree<'_>) {
        if draft.get(Attr::PERFORMER).is_none() {
            let performer = self.new_performer(form);
            draft.put(Attr::PERFORMER, performer);
        }
        // The Reference Model requires a function.
        if draft.get(Attr::FUNCTION).is_none() {
            draft.put(
                Attr::FUNCTION,
                Draft::holding(Cls::DV_TEXT, Attr::VALUE, "unknown"),
            );
        }
    }

    /// Creates the performer of a participation from the suffixes of the participation itself. Without
    /// any, it is the subject of the record: the Reference Model requires a performer.
    fn new_performer(&mut self, form: &'r KeyTree<'_>) -> Draft<'r> {
        let relationship = ["relationship", "_relationship"]
            .into_iter()
            .find_map(|name| self.only_instance(name, form.instances(name)));
        let is_given = form.values.iter().any(|given| is_party(&given.suffix))
            || !form.instances("_identifier").is_empty();
        let mut performer = Draft::object(match relationship {
            Some(_) => Cls::PARTY_RELATED,
            None if is_given => Cls::PARTY_IDENTIFIED,
            None => return Draft::object(Cls::PARTY_SELF),
        });
        for given in form.values.iter().filter(|given| is_party(&given.suffix)) {
            let text = given.value.text();
            self.read_suffix(&mut performer, &given.suffix, given.index, text, None);
        }
        if let Some(def) = Cls::PARTY_IDENTIFIED.attr(Attr::IDENTIFIERS) {
            let segment = "_identifier";
            let instances = form.instances(segment);
            self.read_attribute(&mut performer, segment, def, instances, None);
        }
        if let Some(form) = relationship {
            let made = self.at_segment("relationship", None, |r| {
                r.read_value(Cls::DV_CODED_TEXT, form, None, Attr::RELATIONSHIP)
            });
            made.into_iter()
                .for_each(|m| performer.put(Attr::RELATIONSHIP, m));
        }
        self.complete_party(&mut performer, form);
        performer
    }

    /// Completes a party: its numbered identifiers, and the parts of its reference.
    pub fn complete_party(&mut self, draft: &mut Draft<'r>, form: &'r KeyTree<'_>) {
        let suffixes = form.values.iter();
        let numbered = suffixes.filter(|given| given.suffix.starts_with("identifiers_"));
        for number in order::distinct(numbered.map(|given| given.index)) {
            let mut identifier = Draft::object(Cls::DV_IDENTIFIER);
            for (name, attr) in IDENTIFIER {
                let value = form.value_at(&format!("identifiers_{name}"), number);
                value
                    .into_iter()
                    .for_each(|v| identifier.put(attr, Draft::text(v.text())));
            }
            draft.add(Attr::IDENTIFIERS, identifier);
        }
        if let Some(value) = form.value("identifier") {
            draft.add(
                Attr::IDENTIFIERS,
                Draft::holding(Cls::DV_IDENTIFIER, Attr::ID, value.text()),
            );
        }
        if let Some(reference) = draft.get_mut(Attr::EXTERNAL_REF) {
            if reference.get(Attr::TYPE).is_none() {
                reference.put(Attr::TYPE, Draft::text("PARTY"));
            }
            self.complete_reference(reference);
        }
    }

    /// Completes scheme and namespace of a reference from the defaults of `ctx`, and reports missing
    /// parts.
    pub fn complete_reference(&mut self, reference: &mut Draft<'r>) {
        let scheme = self.context.text("id_scheme");
        let scheme = scheme.or_else(|| self.context.text("id_schema"));
        let mut missing = Vec::new();
        match reference.get_mut(Attr::ID) {
            Some(id) if lacks_scheme(id) => match scheme {
                Some(scheme) => id.put(Attr::SCHEME, Draft::text(scheme)),
                None => *id = id_without_scheme(id),
            },
            Some(_) => {}
            None => missing.push("|id"),
        }
        // Only a UUID needs no scheme.
        if reference.get(Attr::ID).is_some_and(lacks_scheme) {
            missing.push("|id_scheme");
        }
        if reference.get(Attr::NAMESPACE).is_none() {
            match self.context.text("id_namespace") {
                Some(namespace) => reference.put(Attr::NAMESPACE, Draft::text(namespace)),
                None => missing.push("|id_namespace"),
            }
        }
        if !missing.is_empty() {
            let missing = missing.join("`, `");
            let message = format!("a reference needs `{missing}`, here or as default in `ctx`");
            self.refuse_here("FLT0108", message, &[]);
        }
    }
}

/// Returns an id without a scheme: a HIER_OBJECT_ID if it is a UUID.
fn id_without_scheme<'d>(id: &Draft<'d>) -> Draft<'d> {
    let value = id.copy_along(&[Attr::VALUE]).unwrap_or_default();
    let class = if is_uuid(&value) {
        Cls::HIER_OBJECT_ID
    } else {
        Cls::GENERIC_ID
    };
    Draft::holding(class, Attr::VALUE, value)
}

/// Returns whether an id needs a scheme and has none.
fn lacks_scheme(id: &Draft<'_>) -> bool {
    id.class() == Cls::GENERIC_ID && id.get(Attr::SCHEME).is_none()
}

/// Returns whether a suffix of a party is an attribute of a DV_IDENTIFIER.
pub(super) fn is_identifier(name: &str) -> bool {
    matches!(
        name.strip_prefix("identifiers_"),
        Some("issuer" | "assigner" | "id" | "type")
    )
}

/// Returns whether a suffix of a participation concerns its party.
pub(super) fn is_party(name: &str) -> bool {
    matches!(
        name,
        "name" | "id" | "id_scheme" | "id_namespace" | "namespace"
    ) || name.starts_with("identifiers_")
}

pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(i, b)| {
            if matches!(i, 8 | 13 | 18 | 23) {
                b == b'-'
            } else {
                b.is_ascii_hexdigit()
            }
        })
}

/// Returns the mode of a participation, given its text, its code, or `text::openehr::code`.
pub(super) fn mode(text: &str) -> Draft<'_> {
    let parts: Vec<&str> = text.split("::").collect();
    let code = code_in(&terminology::PARTICIPATION_MODE, text);
    let (code, label) = match (code, parts.as_slice()) {
        (_, [label, _, code]) if code.bytes().all(|b| b.is_ascii_digit()) => (*code, *label),
        (Some(code), [_, _, label]) => (code, *label),
        (Some(code), _) if code == text => (code, terminology::rubric(code).unwrap_or(text)),
        // 193 is "not specified".
        (code, _) => (code.unwrap_or("193"), text),
    };
    let mut draft = Draft::object(Cls::DV_CODED_TEXT);
    put_code(
        &mut draft,
        "openehr".into(),
        code.into(),
        Some(label.into()),
    );
    draft
}
