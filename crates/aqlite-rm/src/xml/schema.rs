//! The choice of the schema of a document: v1, or v2 for content that only the later schema can
//! hold.
//!
//! The published schemas differ in classes, in attributes, and in the patterns of a few texts. Each
//! difference that a document can meet is an entry of a table below (ITS-XML Release 1.0.2, and its
//! successor for RM 1.1.0).

use super::super::class::{Attr, Cls};
use super::super::tree::{Kind, NodeRef};
use super::write::{AuditTerms, definition};
use crate::pattern::Pattern;
use std::sync::LazyLock;

/// Classes that the v1 schema does not define. Their descendants are missing too.
const CLASSES_OF_V2: [Cls; 12] = [
    Cls::DV_SCALE,
    Cls::PARTY,
    Cls::PARTY_IDENTITY,
    Cls::PARTY_RELATIONSHIP,
    Cls::CONTACT,
    Cls::ADDRESS,
    Cls::CAPABILITY,
    Cls::EHR,
    Cls::EHR_ACCESS,
    Cls::EHR_STATUS,
    Cls::CONTRIBUTION,
    Cls::VERSIONED_OBJECT,
];

/// Attributes older than RM 1.1.0 that the v1 schema does not define, at least not under the name
/// of the model.
const MISSING_IN_V1: [(Cls, Attr); 3] = [
    (Cls::ISM_TRANSITION, Attr::REASON),
    (Cls::DV_PARSABLE, Attr::SIZE),
    (Cls::ENTRY, Attr::WORKFLOW_ID),
];

/// Attributes that are mandatory in the v1 schema only.
const DEMANDED_BY_V1: [(Cls, Attr); 5] = [
    (Cls::ACTIVITY, Attr::TIMING),
    (Cls::DV_IDENTIFIER, Attr::ISSUER),
    (Cls::DV_IDENTIFIER, Attr::ASSIGNER),
    (Cls::DV_IDENTIFIER, Attr::TYPE),
    (Cls::PARTICIPATION, Attr::MODE),
];

/// Returns whether an object needs the v2 schema: it has a class, an attribute or a text that v1
/// does not allow, or lacks content that v1 requires.
pub(super) fn needs_v2(node: NodeRef<'_>, terms: AuditTerms) -> bool {
    let cls = node.class();
    let is_object = node.kind() == Kind::Object;
    if is_object && (is_class_of_v2(cls) || is_incomplete(node)) {
        return true;
    }
    // A code that is not written cannot require the later schema.
    let is_counted = |child: &NodeRef<'_>| {
        !child
            .attr()
            .is_some_and(|attr| terms.are_omitted_at(cls, attr))
    };
    node.children()
        .filter(is_counted)
        .any(|child| is_later(cls, child) || (!child.is_leaf() && needs_v2(child, terms)))
}

fn is_class_of_v2(cls: Cls) -> bool {
    CLASSES_OF_V2.iter().any(|missing| cls.is_a(*missing))
}

fn is_incomplete(node: NodeRef<'_>) -> bool {
    DEMANDED_BY_V1
        .iter()
        .any(|(owner, attr)| node.class().is_a(*owner) && node.get(*attr).is_none())
}

/// Returns whether an attribute of a class is newer than the v1 schema, or is a text that only v2
/// allows.
fn is_later(cls: Cls, child: NodeRef<'_>) -> bool {
    let Some(def) = definition(cls, child) else {
        return false;
    };
    def.since == "1.1.0"
        || MISSING_IN_V1
            .iter()
            .any(|(owner, attr)| *attr == def.attr && cls.is_a(*owner))
        || (child.is_leaf() && is_text_of_v2(cls, def.attr, child.text()))
}

/// The simple types whose patterns in v2 allow texts that those of v1 refuse.
///
/// The other simple types are alike in both schemas (`Iso8601Duration`, `PROPORTION_KIND`), or v2
/// only refuses more (`Iso8601Date`, texts that must not be empty).
struct TextTypes {
    node_id: TextType,
    date_time: TextType,
    time: TextType,
    activity_id: TextType,
}

static TEXT_TYPES: LazyLock<TextTypes> = LazyLock::new(|| TextTypes {
    node_id: TextType::new(NODE_ID_V1, NODE_ID_V2),
    date_time: TextType::new(DATE_TIME_V1, DATE_TIME_V2),
    time: TextType::new(TIME_V1, TIME_V2),
    activity_id: TextType::new(AT_CODE_V1, ".+"),
});

// The patterns are those of the schemas. `\w` includes the underscore: the authors of both schemas
// meant it, though XML Schema does not define it so.
const NODE_ID_V1: &str = r"([a-zA-Z][\w_]*-[\w][\w_]*-[\w][\w_]*\.[\w][\w_]*(-[\w][\w_]*)*\.v\d+(\.\d)*)|(at(0\.[0-9]{1,4}|[0-9]{4})(\.[0-9]{1,3})*)";
const NODE_ID_V2: &str = r"((?:(?:\w+(?:\.[\w-]+)+::)?(?:[a-zA-Z]\w+)-(?:[a-zA-Z]\w+)-(?:[a-zA-Z]\w+)\.(?:[a-zA-Z]\w+(?:-\w+)?)\.v\d+(?:\.\d+\.\d+)?(?:-(?:rc|alpha)(?:\.\d+)?)?)|(?:(?:at|id)\d+(?:\.\d+)*))";
const AT_CODE_V1: &str = r"at(0\.[0-9]{1,4}|[0-9]{4})(\.[0-9]{1,3})*";
const DATE_TIME_V1: &str = r"\d{4}((0[1-9]|1[0-2])((0[1-9]|[12]\d|3[01])(T?([01]\d|2[0-3])([0-5]\d([0-5]\d([,.]\d+)?)?)?(Z|([+\-]((0\d)|(1[0-2]))(00|30)?))?)?)?)?|\d{4}(\-(0[1-9]|1[0-2])(\-(0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d([,.]\d+)?)?)?(Z|([+\-]((0\d)|(1[0-2]))(:(00|30))?))?)?)?)?";
const DATE_TIME_V2: &str = r"\d{4}((0[1-9]|1[0-2])((0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3])([0-5]\d([0-5]\d([,.]\d+)?)?)?(Z|([+\-](0\d|1[0-4])(00|30|45)?))?)?)?)?|\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])(T([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d([,.]\d+)?)?)?(Z|([+\-](0\d|1[0-4])(:(00|30|45))?))?)?)?)?";
const TIME_V1: &str = r"([01]\d|2[0-3])([0-5]\d([0-5]\d([,.]\d+)?)?)?(Z|([+\-]((0\d)|(1[0-2]))(00|30)?))?|([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d([,.]\d+)?)?)?(Z|([+\-]((0\d)|(1[0-2]))(:(00|30))?))?";
const TIME_V2: &str = r"([01]\d|2[0-3])([0-5]\d([0-5]\d([,.]\d+)?)?)?(Z|([+\-](0\d|1[0-4])(00|30|45)?))?|([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d([,.]\d+)?)?)?(Z|([+\-](0\d|1[0-4])(:(00|30|45))?))?";

/// The maximum bytes of a text that is compared with patterns. No id or time has as many, and a
/// pattern costs about a microsecond for each character.
const MAX_TEXT: usize = 1_000;

/// A simple type of both schemas. A pattern that does not compile would be `None`, and would choose
/// v1; a test compiles all.
struct TextType {
    v1: Option<Pattern>,
    v2: Option<Pattern>,
}

impl TextType {
    fn new(v1: &str, v2: &str) -> TextType {
        TextType {
            v1: Pattern::compile(v1),
            v2: Pattern::compile(v2),
        }
    }

    /// Returns whether only v2 allows a text. One that neither schema allows does not need v2.
    fn is_of_v2(&self, text: &str) -> bool {
        if text.len() > MAX_TEXT {
            return false;
        }
        let matches = |pattern: &Option<Pattern>| pattern.as_ref().map(|p| p.matches(text));
        matches(&self.v1) == Some(false) && matches(&self.v2) == Some(true)
    }
}

/// Returns whether only v2 allows a text as the value of an attribute.
fn is_text_of_v2(cls: Cls, attr: Attr, text: &str) -> bool {
    match attr {
        Attr::ARCHETYPE_NODE_ID => !is_usual_node_id(text) && TEXT_TYPES.node_id.is_of_v2(text),
        Attr::VALUE if cls.is_a(Cls::DV_DATE_TIME) => {
            may_have_zone_of_v2(text) && TEXT_TYPES.date_time.is_of_v2(text)
        }
        Attr::VALUE if cls.is_a(Cls::DV_TIME) => {
            may_have_zone_of_v2(text) && TEXT_TYPES.time.is_of_v2(text)
        }
        Attr::ACTIVITY_ID => TEXT_TYPES.activity_id.is_of_v2(text),
        _ => false,
    }
}

// A pattern costs some microseconds, and a document has many node ids and times. The next two
// functions decide nearly all of them without one.

/// Returns whether a text is a code that v1 allows, or an archetype id without namespace whose
/// version is one number: v2 allows none of these that v1 refuses.
fn is_usual_node_id(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(code) = text.strip_prefix("at") {
        let mut parts = code.split('.');
        let is_first = |part: &str| part.len() == 4 && is_digits(part);
        return parts.next().is_some_and(is_first)
            && parts.all(|part| part.len() <= 3 && is_digits(part));
    }
    let version = text.rsplit_once(".v").map(|(_, version)| version);
    version.is_some_and(is_digits) && !text.contains("::")
}

/// Returns whether the digits behind the last sign may be a zone that only v2 allows.
fn may_have_zone_of_v2(text: &str) -> bool {
    let zone = text.rsplit(['+', '-']).next().unwrap_or_default();
    zone.starts_with("13") || zone.starts_with("14") || zone.ends_with("45")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let types = &*TEXT_TYPES;
        for text_type in [
            &types.node_id,
            &types.date_time,
            &types.time,
            &types.activity_id,
        ] {
            assert!(text_type.v1.is_some() && text_type.v2.is_some());
        }
    }

    /// Asserts which of the texts of an attribute need v2.
    fn assert_texts(cls: Cls, attr: Attr, v1: &[&str], v2: &[&str]) {
        for (texts, expected) in [(v1, false), (v2, true)] {
            for text in texts {
                assert_eq!(is_text_of_v2(cls, attr, text), expected, "{text}");
            }
        }
    }

    #[test]
    fn node_ids_of_adl_2_need_v2() {
        let ids_of_v1 = [
            "at0001",
            "at0000.1",
            "at0.1",
            "at0001.0.12",
            "openEHR-EHR-FOLDER.generic.v1",
            "openEHR-EHR-FOLDER.generic.v1.0.0",
            "openEHR-EHR-OBSERVATION.blood_pressure-my_own-x.v12",
            "openEHR-EHR-OBSERVATION.2-x.v1",
            // Neither schema allows these.
            "",
            "foo",
            "ac0001",
            "openEHR-EHR-FOLDER.generic.v1.0.0-unstable",
        ];
        let ids_of_v2 = [
            "id3",
            "id1.1",
            "at1",
            "at001",
            "at029",
            "at00001",
            "at0001.1234",
            "at01.1",
            "org.x::openEHR-EHR-FOLDER.generic.v1",
            "openEHR-EHR-FOLDER.generic.v1.10.2",
            "openEHR-EHR-FOLDER.generic.v1-alpha",
            "org.x::openEHR-EHR-FOLDER.blood_pressure.v1.0.0",
        ];
        let attr = Attr::ARCHETYPE_NODE_ID;
        assert_texts(Cls::FOLDER, attr, &ids_of_v1, &ids_of_v2);
    }

    #[test]
    fn zones_beyond_those_of_v1_need_v2() {
        let zones = [
            "", "Z", "+01:00", "-09:30", "+12:00", // Neither schema allows these.
            "+05:15", "+15:00",
        ];
        let zones_of_v2 = ["+13:00", "+14", "+05:45", "-12:45"];
        for (cls, start) in [
            (Cls::DV_DATE_TIME, "2026-11-20T08:30:00"),
            (Cls::DV_DATE_TIME, "2026-11-20T08:30:00,5"),
            (Cls::DV_TIME, "08:30"),
        ] {
            for (zones, expected) in [(&zones[..], false), (&zones_of_v2[..], true)] {
                for zone in zones {
                    let text = format!("{start}{zone}");
                    assert_eq!(is_text_of_v2(cls, Attr::VALUE, &text), expected, "{text}");
                }
            }
        }
        assert_texts(
            Cls::DV_TIME,
            Attr::VALUE,
            &["083000+0530"],
            &["083000+0545"],
        );
        // The value of another class has no such type.
        assert_texts(Cls::DV_TEXT, Attr::VALUE, &["08:30:00+13:00"], &[]);
    }
}
