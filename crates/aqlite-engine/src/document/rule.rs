//! The rules of packing: which leaves are constants of the layout, and which objects are fragments
//! of their own. The rules depend on class and attribute only, so packing is deterministic.
//!
//! Patients share layouts, and layouts outlive documents. A text therefore becomes a constant only
//! if a definition contains it: the Reference Model and the openEHR terminology (closed lists,
//! below), a definition that the caller knows ([`Known`]), or an archetype (node ids and archetype
//! ids, which are recognized by their form). The length of a text is never a criterion. The store
//! removes layouts that no document uses, and with them ids of archetypes without a definition.

use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::id::{is_archetype_id, is_node_code};
use aqlite_rm::terminology::{CHARACTER_SETS, COUNTRIES, LANGUAGES};
use aqlite_rm::tree::{Kind, NodeRef};
use hashbrown::HashSet;

/// The texts that can be constants of a layout, because a definition contains them.
pub trait Known {
    /// Returns whether a template or an archetype contains the text.
    fn knows(&self, text: &str) -> bool;
}

/// The empty set of texts: only codes of the Reference Model become constants.
#[derive(Clone, Copy, Debug, Default)]
pub struct NothingKnown;

impl Known for NothingKnown {
    fn knows(&self, _: &str) -> bool {
        false
    }
}

/// The texts of a template.
#[derive(Clone, Debug, Default)]
pub struct Texts(HashSet<String>);

impl FromIterator<String> for Texts {
    fn from_iter<I: IntoIterator<Item = String>>(texts: I) -> Texts {
        Texts(texts.into_iter().collect())
    }
}

impl Known for Texts {
    fn knows(&self, text: &str) -> bool {
        self.0.contains(text)
    }
}

/// The position of a leaf, which decides whether it is a constant.
#[derive(Clone, Copy)]
pub(super) struct LeafPosition {
    /// The class of the object that has the leaf.
    pub class: Cls,
    /// The attribute of the leaf.
    pub attr: Attr,
    /// The attribute that the leaf describes: for a code or text within a DV_TEXT or CODE_PHRASE,
    /// the attribute that holds the outermost of them.
    pub role: Option<Attr>,
}

/// Attributes whose texts and codes describe structure rather than the patient.
const STRUCTURAL: [Attr; 9] = [
    Attr::NAME,
    Attr::LANGUAGE,
    Attr::ENCODING,
    Attr::TERRITORY,
    Attr::CATEGORY,
    Attr::NULL_FLAVOUR,
    Attr::MATH_FUNCTION,
    Attr::LIFECYCLE_STATE,
    Attr::CHANGE_TYPE,
];

/// The texts of the Reference Model: identifiers of terminologies and code sets, and rubrics of the
/// openEHR terminology (structural groups).
const OPENEHR_TEXTS: [&str; 56] = [
    // Identifiers of terminologies and code sets, and an encoding.
    "openehr",
    "local",
    "ISO_639-1",
    "ISO_3166-1",
    "IANA_character-sets",
    "IANA_media-types",
    "SNOMED-CT",
    "LOINC",
    "ICD10",
    "UTF-8",
    // Categories of compositions, and their codes.
    "event",
    "persistent",
    "episodic",
    "report",
    "433",
    "431",
    "451",
    "815",
    // Lifecycle states of versions, and their codes.
    "complete",
    "incomplete",
    "deleted",
    "532",
    "553",
    "523",
    // Null flavours, each with its code.
    "unknown",
    "253",
    "no information",
    "271",
    "masked",
    "272",
    "not applicable",
    "273",
    // Math functions of intervals, and the codes of some.
    "minimum",
    "maximum",
    "mode",
    "median",
    "mean",
    "change",
    "total",
    "variation",
    "actual",
    "146",
    "145",
    "147",
    "144",
    "267",
    // Change types of audits, each with its code.
    "creation",
    "249",
    "amendment",
    "250",
    "modification",
    "251",
    "synthesis",
    "252",
    "attestation",
    "666",
];

/// Releases of the Reference Model, as documents name them.
const RM_RELEASES: [&str; 12] = [
    "1.0", "1.0.0", "1.0.1", "1.0.2", "1.0.3", "1.0.4", "1.1", "1.1.0", "1.2", "1.2.0", "1.3.0",
    "2.0.0",
];

/// Values of DV_QUANTITY.precision, DV_PROPORTION.precision and DV_PROPORTION.type that become
/// constants.
const SMALL_NUMBERS: [&str; 11] = ["-1", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

/// The largest number of digits of a node code that no template defines. ADL 1.4 writes four; more
/// digits could be an identifier of a person.
const MAX_CODE_DIGITS: usize = 4;

/// Returns whether a leaf is a constant of the layout: a structural text that a definition
/// contains.
pub(super) fn is_constant(place: LeafPosition, kind: Kind, text: &str, known: &dyn Known) -> bool {
    match (kind, place.attr) {
        (Kind::Number, Attr::PRECISION | Attr::TYPE) => SMALL_NUMBERS.contains(&text),
        (Kind::Number, _) => false,
        // Only the booleans of intervals describe structure: whether bounds are included or
        // unbounded.
        (Kind::Boolean, _) => place.class == Cls::DV_INTERVAL,
        (_, Attr::ARCHETYPE_NODE_ID) => {
            is_short_code(text)
                || is_archetype_id(text)
                || (is_node_code(text) && known.knows(text))
        }
        (_, Attr::RM_VERSION) => RM_RELEASES.contains(&text),
        (_, Attr::VALUE) if place.class == Cls::ARCHETYPE_ID => is_archetype_id(text),
        (_, Attr::VALUE) if place.class.is_a(Cls::OBJECT_ID) => {
            matches!(place.class, Cls::TERMINOLOGY_ID | Cls::TEMPLATE_ID)
                && (known.knows(text) || is_openehr_text(text))
        }
        (_, Attr::UNITS) => known.knows(text),
        (_, Attr::TYPE) => Cls::parse(text).is_some() || matches!(text, "PARTY" | "ACTOR" | "ANY"),
        (_, Attr::NAMESPACE) => text == "local",
        (_, Attr::VALUE | Attr::CODE_STRING | Attr::PREFERRED_TERM) => {
            place.role.is_some_and(|role| {
                STRUCTURAL.contains(&role)
                    && (known.knows(text)
                        || is_openehr_text(text)
                        || is_code_of(role, place.attr, text))
            })
        }
        _ => false,
    }
}

fn is_openehr_text(text: &str) -> bool {
    OPENEHR_TEXTS.contains(&text)
}

/// Returns whether a text is a code of the set of languages, territories or character sets, at an
/// attribute with codes of this set.
fn is_code_of(role: Attr, attr: Attr, text: &str) -> bool {
    let set = match role {
        Attr::LANGUAGE => &LANGUAGES,
        Attr::TERRITORY => &COUNTRIES,
        Attr::ENCODING => &CHARACTER_SETS,
        _ => return false,
    };
    attr == Attr::CODE_STRING && set.contains(text)
}

/// Returns whether a text is a node code of one short number.
fn is_short_code(text: &str) -> bool {
    // Two letters precede the digits: `at0004`.
    is_node_code(text) && text.len() <= 2 + MAX_CODE_DIGITS && !text.contains('.')
}

/// Returns whether the single value of an attribute is always a fragment of its own.
pub(super) fn is_own_fragment(class: Cls, attr: Attr) -> bool {
    attr == Attr::DATA && class.is_a(Cls::VERSION)
}

/// Returns for each element of a list whether it is a fragment of its own, because it is an entry
/// or repeats.
pub(super) fn elements_with_own_fragment(list: NodeRef<'_>) -> Vec<bool> {
    let keys: Vec<(Kind, Cls, Option<&str>)> = list
        .children()
        .map(|e| (e.kind(), e.class(), e.text_at(Attr::ARCHETYPE_NODE_ID)))
        .collect();
    let repeats =
        // The key of an element equals itself, so a second equal key means that it repeats.
        |key| keys.len() > 1 && keys.iter().filter(|other| *other == key).nth(1).is_some();
    keys.iter()
        .map(|key| key.0 == Kind::Object && (key.1.is_a(Cls::CONTENT_ITEM) || repeats(key)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{LayoutStore, pack};
    use aqlite_rm::json;

    /// Returns the texts of the layouts of a document; `known` are the texts of a template.
    fn shared(json: &str, class: Cls, known: &[&str]) -> String {
        let (tree, known) = (
            json::read(json, class).unwrap(),
            known
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Texts>(),
        );
        pack(tree.root().unwrap(), &known, &LayoutStore::new())
            .layouts()
            .iter()
            .map(|layout| layout.to_text())
            .collect()
    }

    fn composition(name: &str) -> String {
        let code = |set: &str| {
            format!(
                r#"{{"_type":"CODE_PHRASE","terminology_id":{{"_type":"TERMINOLOGY_ID","value":"{name}"}},"code_string":"{set}"}}"#
            )
        };
        let coded = format!(
            r#"{{"_type":"DV_CODED_TEXT","value":"{name}","defining_code":{}}}"#,
            code(name)
        );
        format!(
            r#"{{"_type":"COMPOSITION","name":{{"_type":"DV_TEXT","value":"{name}","language":{0}}},"archetype_node_id":"openEHR-EHR-COMPOSITION.report.v1",
              "archetype_details":{{"_type":"ARCHETYPED","archetype_id":{{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-COMPOSITION.report.v1"}},
              "template_id":{{"_type":"TEMPLATE_ID","value":"{name}"}},"rm_version":"{name}"}},"language":{0},"territory":{0},"category":{1},
              "composer":{{"_type":"PARTY_IDENTIFIED","name":"{name}","external_ref":{{"_type":"PARTY_REF","id":{{"_type":"GENERIC_ID","value":"{name}","scheme":"{name}"}},
              "namespace":"{name}","type":"{name}"}}}},"content":[{{"_type":"EVALUATION","name":{{"_type":"DV_TEXT","value":"{name}"}},"archetype_node_id":"{name}",
              "language":{0},"encoding":{0},"subject":{{"_type":"PARTY_SELF"}},"data":{{"_type":"ITEM_TREE","name":{{"_type":"DV_TEXT","value":"{name}"}},"archetype_node_id":"at0001",
              "items":[{{"_type":"ELEMENT","name":{{"_type":"DV_TEXT","value":"{name}"}},"archetype_node_id":"at{name}","null_flavour":{1},
              "value":{{"_type":"DV_QUANTITY","magnitude":1,"units":"{name}"}}}}]}}}}]}}"#,
            code(name),
            coded
        )
    }

    #[test]
    fn undefined_text_of_any_length_is_no_constant() {
        for name in [
            "J",
            "JD",
            "QX",
            "Qx-Zy",
            "Xy-Zz",
            "Bob",
            "Qwyz Q",
            "1.9",
            "19850412",
            "1985.04.12",
            "Zebulon Quarrington",
        ] {
            let json = composition(name);
            assert!(json::read(&json, Cls::COMPOSITION).is_ok(), "{json}");
            assert!(
                !shared(&json, Cls::COMPOSITION, &[]).contains(name),
                "{name} is shared"
            );
        }
    }

    #[test]
    fn texts_of_definitions_are_constants() {
        let json = composition("Blood pressure");
        assert!(
            shared(&json, Cls::COMPOSITION, &["Blood pressure"])
                .matches("Blood pressure")
                .count()
                > 8
        );
        let language = r#"{"_type":"DV_TEXT","value":"x","language":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"ISO_639-1"},"code_string":"pt-br"}}"#;
        let entry = format!(
            r#"{{"_type":"EVALUATION","language":{}}}"#,
            language
                .split_once("\"language\":")
                .unwrap()
                .1
                .strip_suffix('}')
                .unwrap()
        );
        assert!(shared(&entry, Cls::EVALUATION, &[]).contains("pt-br"));
    }

    #[test]
    fn number_that_could_identify_a_person_is_no_constant() {
        let element = |id: &str, precision: &str| {
            format!(
                r#"{{"_type":"ELEMENT","archetype_node_id":"{id}","value":{{"_type":"DV_QUANTITY","magnitude":1,"units":"x","precision":{precision}}}}}"#
            )
        };
        let known = shared(&element("at0004", "2"), Cls::ELEMENT, &[]);
        assert!(known.contains("at0004") && known.contains("\"precision\":2"));
        let own = shared(&element("at19850412", "198"), Cls::ELEMENT, &[]);
        assert!(!own.contains("1985") && !own.contains("198"), "{own}");
        assert!(
            shared(&element("at19850412", "2"), Cls::ELEMENT, &["at19850412"])
                .contains("at19850412")
        );
    }
}
