//! The suffixes of values and their positions in an object: one table for reading and writing.

use aqlite_rm::class::{Attr, Cls};
use std::borrow::Cow;

/// A suffix of a class.
pub(super) struct Suffix {
    /// The class. Descendants inherit the suffix.
    pub class: Cls,
    /// The suffix; empty for the main value.
    pub name: &'static str,
    /// The attributes that lead to the leaf.
    pub path: &'static [Attr],
    /// Whether the suffix is written as well as read.
    pub is_written: bool,
}

const fn both(class: Cls, name: &'static str, path: &'static [Attr]) -> Suffix {
    Suffix {
        class,
        name,
        path,
        is_written: true,
    }
}

const fn read(class: Cls, name: &'static str, path: &'static [Attr]) -> Suffix {
    Suffix {
        class,
        name,
        path,
        is_written: false,
    }
}

/// The paths of code and terminology of a coded text and, behind SYMBOL, of an ordinal.
pub(super) const CODE: &[Attr] = &[Attr::DEFINING_CODE, Attr::CODE_STRING];
pub(super) const TERMINOLOGY: &[Attr] = &[Attr::DEFINING_CODE, Attr::TERMINOLOGY_ID, Attr::VALUE];
pub(super) const SYMBOL_CODE: &[Attr] = &[Attr::SYMBOL, Attr::DEFINING_CODE, Attr::CODE_STRING];
pub(super) const SYMBOL_TERMINOLOGY: &[Attr] = &[
    Attr::SYMBOL,
    Attr::DEFINING_CODE,
    Attr::TERMINOLOGY_ID,
    Attr::VALUE,
];
const STATE_CODE: &[Attr] = &[Attr::VALUE, Attr::DEFINING_CODE, Attr::CODE_STRING];
const STATE_TERMINOLOGY: &[Attr] = &[
    Attr::VALUE,
    Attr::DEFINING_CODE,
    Attr::TERMINOLOGY_ID,
    Attr::VALUE,
];
const PARTY_ID: &[Attr] = &[Attr::EXTERNAL_REF, Attr::ID, Attr::VALUE];
const PARTY_SCHEME: &[Attr] = &[Attr::EXTERNAL_REF, Attr::ID, Attr::SCHEME];
const PARTY_NAMESPACE: &[Attr] = &[Attr::EXTERNAL_REF, Attr::NAMESPACE];

/// All suffixes. If a class has a name twice, the first one applies.
pub(super) static SUFFIXES: [Suffix; 107] = [
    both(Cls::DV_CODED_TEXT, "code", CODE),
    both(Cls::DV_CODED_TEXT, "value", &[Attr::VALUE]),
    both(Cls::DV_CODED_TEXT, "terminology", TERMINOLOGY),
    read(Cls::DV_CODED_TEXT, "terminology_id", TERMINOLOGY),
    both(
        Cls::DV_CODED_TEXT,
        "preferred_term",
        &[Attr::DEFINING_CODE, Attr::PREFERRED_TERM],
    ),
    both(Cls::DV_TEXT, "", &[Attr::VALUE]),
    read(Cls::DV_TEXT, "value", &[Attr::VALUE]),
    both(Cls::DV_TEXT, "formatting", &[Attr::FORMATTING]),
    both(Cls::DV_STATE, "code", STATE_CODE),
    both(Cls::DV_STATE, "value", &[Attr::VALUE, Attr::VALUE]),
    both(Cls::DV_STATE, "terminology", STATE_TERMINOLOGY),
    read(Cls::DV_STATE, "terminology_id", STATE_TERMINOLOGY),
    both(Cls::DV_STATE, "is_terminal", &[Attr::IS_TERMINAL]),
    both(Cls::CODE_PHRASE, "code", &[Attr::CODE_STRING]),
    read(Cls::CODE_PHRASE, "", &[Attr::CODE_STRING]),
    both(
        Cls::CODE_PHRASE,
        "terminology",
        &[Attr::TERMINOLOGY_ID, Attr::VALUE],
    ),
    read(
        Cls::CODE_PHRASE,
        "terminology_id",
        &[Attr::TERMINOLOGY_ID, Attr::VALUE],
    ),
    both(Cls::CODE_PHRASE, "preferred_term", &[Attr::PREFERRED_TERM]),
    both(Cls::TERM_MAPPING, "match", &[Attr::MATCH]),
    both(Cls::DV_QUANTITY, "magnitude", &[Attr::MAGNITUDE]),
    read(Cls::DV_QUANTITY, "", &[Attr::MAGNITUDE]),
    read(Cls::DV_QUANTITY, "value", &[Attr::MAGNITUDE]),
    both(Cls::DV_QUANTITY, "unit", &[Attr::UNITS]),
    read(Cls::DV_QUANTITY, "units", &[Attr::UNITS]),
    both(Cls::DV_QUANTITY, "precision", &[Attr::PRECISION]),
    both(Cls::DV_QUANTITY, "unit_system", &[Attr::UNITS_SYSTEM]),
    read(Cls::DV_QUANTITY, "units_system", &[Attr::UNITS_SYSTEM]),
    both(
        Cls::DV_QUANTITY,
        "unit_display_name",
        &[Attr::UNITS_DISPLAY_NAME],
    ),
    read(
        Cls::DV_QUANTITY,
        "units_display_name",
        &[Attr::UNITS_DISPLAY_NAME],
    ),
    both(Cls::DV_COUNT, "", &[Attr::MAGNITUDE]),
    read(Cls::DV_COUNT, "magnitude", &[Attr::MAGNITUDE]),
    read(Cls::DV_COUNT, "value", &[Attr::MAGNITUDE]),
    both(Cls::DV_PROPORTION, "numerator", &[Attr::NUMERATOR]),
    both(Cls::DV_PROPORTION, "denominator", &[Attr::DENOMINATOR]),
    both(Cls::DV_PROPORTION, "type", &[Attr::TYPE]),
    both(Cls::DV_PROPORTION, "precision", &[Attr::PRECISION]),
    both(Cls::DV_ORDINAL, "code", SYMBOL_CODE),
    both(Cls::DV_ORDINAL, "value", &[Attr::SYMBOL, Attr::VALUE]),
    both(Cls::DV_ORDINAL, "ordinal", &[Attr::VALUE]),
    both(Cls::DV_ORDINAL, "terminology", SYMBOL_TERMINOLOGY),
    read(Cls::DV_ORDINAL, "terminology_id", SYMBOL_TERMINOLOGY),
    both(Cls::DV_SCALE, "code", SYMBOL_CODE),
    both(Cls::DV_SCALE, "value", &[Attr::SYMBOL, Attr::VALUE]),
    both(Cls::DV_SCALE, "scale", &[Attr::VALUE]),
    both(Cls::DV_SCALE, "terminology", SYMBOL_TERMINOLOGY),
    read(Cls::DV_SCALE, "terminology_id", SYMBOL_TERMINOLOGY),
    both(Cls::DV_BOOLEAN, "", &[Attr::VALUE]),
    read(Cls::DV_BOOLEAN, "value", &[Attr::VALUE]),
    both(Cls::DV_URI, "", &[Attr::VALUE]),
    read(Cls::DV_URI, "value", &[Attr::VALUE]),
    both(Cls::DV_TEMPORAL, "", &[Attr::VALUE]),
    read(Cls::DV_TEMPORAL, "value", &[Attr::VALUE]),
    // DV_DURATION is an amount and not a descendant of DV_TEMPORAL.
    both(Cls::DV_DURATION, "", &[Attr::VALUE]),
    read(Cls::DV_DURATION, "value", &[Attr::VALUE]),
    both(Cls::DV_IDENTIFIER, "", &[Attr::ID]),
    read(Cls::DV_IDENTIFIER, "id", &[Attr::ID]),
    both(Cls::DV_IDENTIFIER, "issuer", &[Attr::ISSUER]),
    both(Cls::DV_IDENTIFIER, "assigner", &[Attr::ASSIGNER]),
    both(Cls::DV_IDENTIFIER, "type", &[Attr::TYPE]),
    both(Cls::DV_PARSABLE, "", &[Attr::VALUE]),
    read(Cls::DV_PARSABLE, "value", &[Attr::VALUE]),
    both(Cls::DV_PARSABLE, "formalism", &[Attr::FORMALISM]),
    both(Cls::DV_MULTIMEDIA, "", &[Attr::URI, Attr::VALUE]),
    read(Cls::DV_MULTIMEDIA, "url", &[Attr::URI, Attr::VALUE]),
    read(Cls::DV_MULTIMEDIA, "uri", &[Attr::URI, Attr::VALUE]),
    read(Cls::DV_MULTIMEDIA, "value", &[Attr::URI, Attr::VALUE]),
    both(
        Cls::DV_MULTIMEDIA,
        "mediatype",
        &[Attr::MEDIA_TYPE, Attr::CODE_STRING],
    ),
    read(
        Cls::DV_MULTIMEDIA,
        "mimetype",
        &[Attr::MEDIA_TYPE, Attr::CODE_STRING],
    ),
    read(
        Cls::DV_MULTIMEDIA,
        "media_type",
        &[Attr::MEDIA_TYPE, Attr::CODE_STRING],
    ),
    both(Cls::DV_MULTIMEDIA, "size", &[Attr::SIZE]),
    both(Cls::DV_MULTIMEDIA, "alternatetext", &[Attr::ALTERNATE_TEXT]),
    both(Cls::DV_MULTIMEDIA, "data", &[Attr::DATA]),
    both(
        Cls::DV_MULTIMEDIA,
        "compression_algorithm",
        &[Attr::COMPRESSION_ALGORITHM, Attr::CODE_STRING],
    ),
    both(
        Cls::DV_MULTIMEDIA,
        "integrity_check",
        &[Attr::INTEGRITY_CHECK],
    ),
    both(
        Cls::DV_MULTIMEDIA,
        "integrity_check_algorithm",
        &[Attr::INTEGRITY_CHECK_ALGORITHM, Attr::CODE_STRING],
    ),
    both(Cls::DV_INTERVAL, "lower_included", &[Attr::LOWER_INCLUDED]),
    both(Cls::DV_INTERVAL, "upper_included", &[Attr::UPPER_INCLUDED]),
    both(
        Cls::DV_INTERVAL,
        "lower_unbounded",
        &[Attr::LOWER_UNBOUNDED],
    ),
    both(
        Cls::DV_INTERVAL,
        "upper_unbounded",
        &[Attr::UPPER_UNBOUNDED],
    ),
    both(
        Cls::DV_ORDERED,
        "normal_status",
        &[Attr::NORMAL_STATUS, Attr::CODE_STRING],
    ),
    both(
        Cls::DV_QUANTIFIED,
        "magnitude_status",
        &[Attr::MAGNITUDE_STATUS],
    ),
    both(Cls::DV_AMOUNT, "accuracy", &[Attr::ACCURACY]),
    both(
        Cls::DV_AMOUNT,
        "accuracy_is_percent",
        &[Attr::ACCURACY_IS_PERCENT],
    ),
    both(Cls::PARTY_IDENTIFIED, "name", &[Attr::NAME]),
    both(Cls::PARTY_PROXY, "id", PARTY_ID),
    both(Cls::PARTY_PROXY, "id_scheme", PARTY_SCHEME),
    both(Cls::PARTY_PROXY, "id_namespace", PARTY_NAMESPACE),
    read(Cls::PARTY_PROXY, "namespace", PARTY_NAMESPACE),
    both(Cls::OBJECT_ID, "", &[Attr::VALUE]),
    read(Cls::OBJECT_ID, "value", &[Attr::VALUE]),
    both(Cls::GENERIC_ID, "scheme", &[Attr::SCHEME]),
    both(Cls::OBJECT_REF, "id", &[Attr::ID, Attr::VALUE]),
    both(Cls::OBJECT_REF, "id_scheme", &[Attr::ID, Attr::SCHEME]),
    read(Cls::OBJECT_REF, "scheme", &[Attr::ID, Attr::SCHEME]),
    both(Cls::OBJECT_REF, "namespace", &[Attr::NAMESPACE]),
    both(Cls::OBJECT_REF, "type", &[Attr::TYPE]),
    both(Cls::LINK, "type", &[Attr::TYPE, Attr::VALUE]),
    both(Cls::LINK, "meaning", &[Attr::MEANING, Attr::VALUE]),
    both(Cls::LINK, "target", &[Attr::TARGET, Attr::VALUE]),
    both(Cls::FEEDER_AUDIT_DETAILS, "system_id", &[Attr::SYSTEM_ID]),
    both(Cls::FEEDER_AUDIT_DETAILS, "version_id", &[Attr::VERSION_ID]),
    both(
        Cls::FEEDER_AUDIT_DETAILS,
        "time",
        &[Attr::TIME, Attr::VALUE],
    ),
    both(
        Cls::INSTRUCTION_DETAILS,
        "composition_uid",
        &[Attr::INSTRUCTION_ID, Attr::ID, Attr::VALUE],
    ),
    both(
        Cls::INSTRUCTION_DETAILS,
        "path",
        &[Attr::INSTRUCTION_ID, Attr::PATH],
    ),
    both(
        Cls::INSTRUCTION_DETAILS,
        "activity_id",
        &[Attr::ACTIVITY_ID],
    ),
    both(Cls::INTERVAL_EVENT, "sample_count", &[Attr::SAMPLE_COUNT]),
    both(
        Cls::PARTICIPATION,
        "function",
        &[Attr::FUNCTION, Attr::VALUE],
    ),
];

impl Suffix {
    fn is_of(&self, class: Cls) -> bool {
        class.is_a(self.class)
            // DV_CODED_TEXT inherits from DV_TEXT, but its text has the suffix `value`.
            && !(class == Cls::DV_CODED_TEXT && self.class == Cls::DV_TEXT && self.name.is_empty())
    }
}

/// Returns the suffixes of a class, those of descendants before those of ancestors.
pub(super) fn of(class: Cls) -> impl Iterator<Item = &'static Suffix> {
    SUFFIXES.iter().filter(move |s| s.is_of(class))
}

/// Returns the suffix of a class with this name.
pub(super) fn named(class: Cls, name: &str) -> Option<&'static Suffix> {
    // The first byte rejects most rows before the more expensive test of the class.
    let first = name.as_bytes().first();
    SUFFIXES
        .iter()
        .find(|s| s.name.as_bytes().first() == first && s.is_of(class) && s.name == name)
}

/// Returns the attribute of a segment: `_link` is `links`, `_work_flow_id` is `workflow_id`.
pub(super) fn attribute(class: Cls, segment: &str) -> Option<&'static aqlite_rm::class::AttrDef> {
    let name = attribute_name(segment);
    let single = class.attr_named(name);
    single.or_else(|| {
        // A list attribute is named in the singular.
        class
            .attrs()
            .iter()
            .find(|d| d.card.is_list() && singular(d.attr.name()) == name)
    })
}

/// Returns the name of a list attribute in the singular: `link`, `activity`.
fn singular(plural: &str) -> Cow<'_, str> {
    match plural.strip_suffix("ies") {
        Some(stem) => Cow::Owned(format!("{stem}y")),
        None => Cow::Borrowed(plural.strip_suffix('s').unwrap_or(plural)),
    }
}

/// Returns whether a segment may name an attribute of some class.
pub(super) fn is_attribute(segment: &str) -> bool {
    let name = attribute_name(segment);
    let is_plural = |stem: &str, end: &str| Attr::parse(&format!("{stem}{end}")).is_some();
    Attr::parse(name).is_some()
        || is_plural(name, "s")
        || name
            .strip_suffix('y')
            .is_some_and(|stem| is_plural(stem, "ies"))
}

/// Returns the name of an attribute, or its singular, in a segment.
fn attribute_name(segment: &str) -> &str {
    match segment.strip_prefix('_').unwrap_or(segment) {
        // The simplified formats spell this attribute differently from the model.
        "work_flow_id" => "workflow_id",
        name => name,
    }
}

/// Returns the segment of an attribute.
pub(super) fn segment(attr: Attr, is_list: bool) -> String {
    let name = attr.name();
    match name {
        "workflow_id" => String::from("_work_flow_id"),
        // This attribute is the exception that keeps its plural.
        _ if is_list && name != "other_reference_ranges" => {
            format!("_{}", singular(name))
        }
        _ => format!("_{name}"),
    }
}
