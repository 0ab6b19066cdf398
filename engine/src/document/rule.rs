//! Which leaves are slots and where a document is cut: fixed rules by class and attribute, so that packing is deterministic.

use crate::rm::class::{Attr, Cls};
use crate::rm::id::{is_archetype_id, is_node_code};
use crate::rm::tree::{Kind, NodeRef};
use hashbrown::HashSet;

/// Texts that may stand as constants in a shape that is shared between patients.
pub trait Known {
    /// True when the text comes from a template or an archetype.
    fn knows(&self, text: &str) -> bool;
}

/// Knows nothing beyond the RM's own codes.
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

/// Where a leaf stands: what decides whether it is a constant.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The class of the object that has the leaf.
    pub class: Cls,
    /// The attribute of the leaf.
    pub attr: Attr,
    /// The attribute that the leaf tells about: for a code or text within a DV_TEXT or CODE_PHRASE, that of the outermost of them.
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

/// The RM's own words: identifiers of terminologies and code sets, and rubrics of the openEHR terminology (structural groups).
const WORDS: [&str; 56] = [
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
    "event",
    "persistent",
    "episodic",
    "report",
    "433",
    "431",
    "451",
    "815",
    "complete",
    "incomplete",
    "deleted",
    "532",
    "553",
    "523",
    "unknown",
    "253",
    "no information",
    "271",
    "masked",
    "272",
    "not applicable",
    "273",
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

/// True when the leaf belongs to the shape: a structural text that is known, never a patient's own.
pub(super) fn is_constant(place: Place, kind: Kind, text: &str, known: &dyn Known) -> bool {
    match (kind, place.attr) {
        (Kind::Number, Attr::PRECISION | Attr::TYPE) => text.len() <= 3 && (text == "-1" || text.bytes().all(|b| b.is_ascii_digit())),
        (Kind::Number, _) => false,
        (Kind::Boolean, _) => place.class == Cls::DV_INTERVAL,
        (_, Attr::ARCHETYPE_NODE_ID) => is_node_code(text) || is_archetype_id(text),
        (_, Attr::RM_VERSION) => text.len() <= 8 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.'),
        (_, Attr::VALUE) if place.class == Cls::ARCHETYPE_ID => is_archetype_id(text),
        (_, Attr::VALUE) if place.class.is_a(Cls::OBJECT_ID) => {
            matches!(place.class, Cls::TERMINOLOGY_ID | Cls::TEMPLATE_ID) && (known.knows(text) || is_word(text))
        }
        (_, Attr::UNITS) => known.knows(text),
        (_, Attr::TYPE) => Cls::parse(text).is_some() || matches!(text, "PARTY" | "ACTOR" | "ANY"),
        (_, Attr::NAMESPACE) => text == "local",
        (_, Attr::VALUE | Attr::CODE_STRING | Attr::PREFERRED_TERM) => {
            place.role.is_some_and(|r| STRUCTURAL.contains(&r)) && (is_short_code(text) || is_word(text) || known.knows(text))
        }
        _ => false,
    }
}

fn is_word(text: &str) -> bool {
    WORDS.contains(&text)
}

/// Language and territory codes: `de`, `pt-BR`, `UY`.
fn is_short_code(text: &str) -> bool {
    matches!(text.as_bytes(), [a, b] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic())
        || matches!(text.as_bytes(), [a, b, b'-', c, d] if [a, b, c, d].iter().all(|x| x.is_ascii_alphabetic()))
}

/// True for an attribute whose one value is always a fragment of its own.
pub(super) fn is_cut(class: Cls, attr: Attr) -> bool {
    attr == Attr::DATA && class.is_a(Cls::VERSION)
}

/// For the elements of a list: true for those that are fragments of their own, because they are entries or repeat.
pub(super) fn cut_elements(list: NodeRef<'_>) -> Vec<bool> {
    let keys: Vec<(Kind, Cls, Option<&str>)> = list.children().map(|e| (e.kind(), e.class(), e.text_at(Attr::ARCHETYPE_NODE_ID))).collect();
    let repeats = |key| keys.len() > 1 && keys.iter().filter(|other| *other == key).nth(1).is_some();
    keys.iter().map(|key| key.0 == Kind::Object && (key.1.is_a(Cls::CONTENT_ITEM) || repeats(key))).collect()
}
