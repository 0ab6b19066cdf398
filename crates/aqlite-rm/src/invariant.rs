//! The invariants of the Reference Model as data, named as in the class definitions.

mod coded;
mod period;

use super::class::{Attr, Cls};
use super::id::{ObjectVersionId, is_archetype_id, is_hier_object_id, object_id_of};
use super::quantity::{compare, number, temporal};
use super::tree::{Kind, NodeRef};
use crate::diag::Severity;
pub(super) use coded::{CODED, Coded, Mismatch};

/// A condition on the objects of a class.
pub(super) struct Invariant {
    pub cls: Cls,
    pub name: &'static str,
    /// The requirement in words.
    pub expected: &'static str,
    pub holds: fn(NodeRef<'_>) -> bool,
    pub severity: Severity,
}

const fn rule(
    cls: Cls,
    name: &'static str,
    expected: &'static str,
    holds: fn(NodeRef<'_>) -> bool,
) -> Invariant {
    Invariant {
        cls,
        name,
        expected,
        holds,
        severity: Severity::Error,
    }
}

/// Creates an invariant whose violation is only a warning, because correct systems violate it
/// often.
const fn advice(
    cls: Cls,
    name: &'static str,
    expected: &'static str,
    holds: fn(NodeRef<'_>) -> bool,
) -> Invariant {
    Invariant {
        cls,
        name,
        expected,
        holds,
        severity: Severity::Warning,
    }
}

/// Values of the attribute `type` of DV_PROPORTION (PROPORTION_KIND).
const UNITARY: f64 = 1.0;
const PERCENT: f64 = 2.0;
const FRACTION: f64 = 3.0;
const INTEGER_FRACTION: f64 = 4.0;

/// The requirement of the invariants `Is_archetype_root`.
const ARCHETYPE_ROOT: &str = "`archetype_details`, for the class is the root of an archetype";

pub(super) static INVARIANTS: &[Invariant] = &[
    rule(
        Cls::DV_INTERVAL,
        "Lower_included_valid",
        "a limit, or `lower_included` false",
        |n| !(is_true(n, Attr::LOWER_UNBOUNDED) && is_true(n, Attr::LOWER_INCLUDED)),
    ),
    rule(
        Cls::DV_INTERVAL,
        "Upper_included_valid",
        "a limit, or `upper_included` false",
        |n| !(is_true(n, Attr::UPPER_UNBOUNDED) && is_true(n, Attr::UPPER_INCLUDED)),
    ),
    rule(
        Cls::DV_INTERVAL,
        "Lower_unbounded_valid",
        "a lower limit, or `lower_unbounded` true",
        |n| !is_false(n, Attr::LOWER_UNBOUNDED) || has(n, Attr::LOWER),
    ),
    rule(
        Cls::DV_INTERVAL,
        "Upper_unbounded_valid",
        "an upper limit, or `upper_unbounded` true",
        |n| !is_false(n, Attr::UPPER_UNBOUNDED) || has(n, Attr::UPPER),
    ),
    rule(
        Cls::DV_INTERVAL,
        "Limits_comparable",
        "limits of one class, of one unit and, of dates and times, none within the other",
        |n| limits(n).is_none_or(|(l, u)| are_comparable(l, u)),
    ),
    rule(
        Cls::DV_INTERVAL,
        "Limits_consistent",
        "a lower limit that is not above the upper one",
        |n| {
            limits(n)
                .and_then(|(l, u)| compare(l, u))
                .is_none_or(|o| o.is_le())
        },
    ),
    rule(
        Cls::DV_PROPORTION,
        "Type_validity",
        "a type from 0 to 4",
        |n| number(n, Attr::TYPE).is_none_or(|t| (0.0..=INTEGER_FRACTION).contains(&t)),
    ),
    rule(
        Cls::DV_PROPORTION,
        "Valid_denominator",
        "a denominator other than 0",
        |n| number(n, Attr::DENOMINATOR) != Some(0.0),
    ),
    rule(
        Cls::DV_PROPORTION,
        "Unitary_validity",
        "a denominator of 1, for the type is 1 (unitary)",
        |n| !is_proportion(n, UNITARY) || number(n, Attr::DENOMINATOR) == Some(1.0),
    ),
    rule(
        Cls::DV_PROPORTION,
        "Percent_validity",
        "a denominator of 100, for the type is 2 (percent)",
        |n| !is_proportion(n, PERCENT) || number(n, Attr::DENOMINATOR) == Some(100.0),
    ),
    rule(
        Cls::DV_PROPORTION,
        "Is_integral_validity",
        "whole numbers, for the type is a fraction",
        |n| !(is_proportion(n, FRACTION) || is_proportion(n, INTEGER_FRACTION)) || is_integral(n),
    ),
    rule(
        Cls::DV_PROPORTION,
        "Fraction_validity",
        "a precision of 0, for the type is a fraction",
        |n| {
            !(is_proportion(n, FRACTION) || is_proportion(n, INTEGER_FRACTION))
                || number(n, Attr::PRECISION).is_none_or(|p| p <= 0.0)
        },
    ),
    rule(
        Cls::DV_PROPORTION,
        "Precision_validity",
        "whole numbers, for the precision is 0",
        |n| number(n, Attr::PRECISION) != Some(0.0) || is_integral(n),
    ),
    rule(
        Cls::DV_ORDERED,
        "Normal_range_and_status_consistency",
        "the status N within the normal range, another one outside",
        normal_status_agrees,
    ),
    rule(
        Cls::REFERENCE_RANGE,
        "Range_is_simple",
        "limits without ranges of their own",
        |n| {
            n.get(Attr::RANGE)
                .is_none_or(|range| is_simple(lower(range)) && is_simple(upper(range)))
        },
    ),
    rule(
        Cls::DV_QUANTIFIED,
        "Magnitude_status_valid",
        "one of = < > <= >= ~",
        |n| one_of(n, Attr::MAGNITUDE_STATUS, &["=", "<", ">", "<=", ">=", "~"]),
    ),
    rule(
        Cls::DV_AMOUNT,
        "Accuracy_validity",
        "an accuracy from 0 to 100, for it is a percentage",
        |n| {
            !is_true(n, Attr::ACCURACY_IS_PERCENT)
                || number(n, Attr::ACCURACY).is_none_or(|a| (0.0..=100.0).contains(&a))
        },
    ),
    // Systems write an accuracy of 0 % where the accuracy is unknown.
    advice(
        Cls::DV_AMOUNT,
        "Accuracy_is_percent_validity",
        "an accuracy other than 0, for it is a percentage",
        |n| !is_true(n, Attr::ACCURACY_IS_PERCENT) || number(n, Attr::ACCURACY) != Some(0.0),
    ),
    rule(
        Cls::DV_QUANTITY,
        "Precision_valid",
        "a precision of -1 or more",
        |n| number(n, Attr::PRECISION).is_none_or(|p| p >= -1.0),
    ),
    rule(
        Cls::DV_IDENTIFIER,
        "Id_valid",
        "an id that is not empty",
        |n| not_empty(n, Attr::ID),
    ),
    rule(
        Cls::CODE_PHRASE,
        "Code_string_valid",
        "a code that is not empty",
        |n| not_empty(n, Attr::CODE_STRING),
    ),
    rule(
        Cls::DV_TEXT,
        "Value_valid",
        "a value that is not empty",
        |n| not_empty(n, Attr::VALUE),
    ),
    rule(
        Cls::DV_TEXT,
        "Formatting_valid",
        "a formatting that is not empty",
        |n| not_empty(n, Attr::FORMATTING),
    ),
    rule(
        Cls::DV_EHR_URI,
        "Scheme_valid",
        "a URI that begins with `ehr:`",
        |n| {
            // The scheme of a URI ignores case. `get` returns `None` if byte 4 is inside a
            // character.
            n.text_at(Attr::VALUE)
                .is_none_or(|v| v.get(..4).is_some_and(|s| s.eq_ignore_ascii_case("ehr:")))
        },
    ),
    rule(Cls::DV_MULTIMEDIA, "Not_empty", "`data` or a `uri`", |n| {
        has(n, Attr::DATA) || has(n, Attr::URI)
    }),
    rule(
        Cls::DV_MULTIMEDIA,
        "Size_valid",
        "a size of 0 or more",
        |n| number(n, Attr::SIZE).is_none_or(|s| s >= 0.0),
    ),
    rule(
        Cls::DV_MULTIMEDIA,
        "Integrity_check_validity",
        "an `integrity_check_algorithm` with the check",
        |n| !has(n, Attr::INTEGRITY_CHECK) || has(n, Attr::INTEGRITY_CHECK_ALGORITHM),
    ),
    rule(
        Cls::DV_PARSABLE,
        "Formalism_validity",
        "a formalism that is not empty",
        |n| not_empty(n, Attr::FORMALISM),
    ),
    rule(
        Cls::DV_PERIODIC_TIME_SPECIFICATION,
        "Value_valid",
        "the formalism HL7:PIVL or HL7:EIVL",
        |n| has_formalism(n, &["HL7:PIVL", "HL7:EIVL"]),
    ),
    rule(
        Cls::DV_GENERAL_TIME_SPECIFICATION,
        "Value_valid",
        "the formalism HL7:GTS",
        |n| has_formalism(n, &["HL7:GTS"]),
    ),
    rule(Cls::TERM_MAPPING, "Match_valid", "one of > = < ?", |n| {
        one_of(n, Attr::MATCH, &[">", "=", "<", "?"])
    }),
    rule(
        Cls::ELEMENT,
        "Inv_null_flavour_indicated",
        "either a value or a `null_flavour`",
        // Exclusive or: exactly one of the two is present.
        |n| has(n, Attr::VALUE) != has(n, Attr::NULL_FLAVOUR),
    ),
    rule(
        Cls::ELEMENT,
        "Inv_no_null_reason",
        "a `null_flavour` with the reason",
        |n| !has(n, Attr::NULL_REASON) || has(n, Attr::NULL_FLAVOUR),
    ),
    rule(Cls::HISTORY, "Events_valid", "events or a summary", |n| {
        n.values(Attr::EVENTS).next().is_some() || has(n, Attr::SUMMARY)
    }),
    rule(
        Cls::HISTORY,
        "Period_consistency",
        "events at multiples of the period after the origin",
        period::is_consistent,
    ),
    rule(
        Cls::ITEM_TABLE,
        "Valid_structure",
        "rows of one width with elements only",
        is_table,
    ),
    rule(
        Cls::EVENT_CONTEXT,
        "Location_valid",
        "a location that is not empty",
        |n| not_empty(n, Attr::LOCATION),
    ),
    rule(
        Cls::ACTIVITY,
        "Action_archetype_id_valid",
        "a pattern of archetype ids that is not empty",
        |n| not_empty(n, Attr::ACTION_ARCHETYPE_ID),
    ),
    rule(
        Cls::INSTRUCTION_DETAILS,
        "Activity_path_valid",
        "a path of an activity that is not empty",
        |n| not_empty(n, Attr::ACTIVITY_ID),
    ),
    rule(
        Cls::PARTY_IDENTIFIED,
        "Basic_validity",
        "a name, an identifier or an `external_ref`",
        |n| {
            // A PARTY_RELATED may have its relationship only.
            n.class() == Cls::PARTY_RELATED
                || has(n, Attr::NAME)
                || has(n, Attr::EXTERNAL_REF)
                || n.values(Attr::IDENTIFIERS).next().is_some()
        },
    ),
    rule(
        Cls::PARTY_IDENTIFIED,
        "Name_valid",
        "a name that is not empty",
        |n| not_empty(n, Attr::NAME),
    ),
    rule(
        Cls::PARTY_REF,
        "Type_validity",
        "one of PERSON, ORGANISATION, GROUP, AGENT, ROLE, PARTY, ACTOR, ANY",
        |n| {
            one_of(
                n,
                Attr::TYPE,
                &[
                    "PERSON",
                    "ORGANISATION",
                    "GROUP",
                    "AGENT",
                    "ROLE",
                    "PARTY",
                    "ACTOR",
                    "ANY",
                ],
            )
        },
    ),
    rule(
        Cls::ACCESS_GROUP_REF,
        "Type_validity",
        "ACCESS_GROUP",
        |n| one_of(n, Attr::TYPE, &["ACCESS_GROUP"]),
    ),
    rule(
        Cls::LOCATABLE_REF,
        "Path_valid",
        "a path that is not empty",
        |n| not_empty(n, Attr::PATH),
    ),
    rule(
        Cls::OBJECT_REF,
        "Type_exists",
        "the class of the object, which is not empty",
        |n| not_empty(n, Attr::TYPE),
    ),
    rule(
        Cls::GENERIC_ID,
        "Scheme_valid",
        "a scheme that is not empty",
        |n| not_empty(n, Attr::SCHEME),
    ),
    rule(
        Cls::OBJECT_REF,
        "Namespace_valid",
        "a letter, then letters, digits and _.:/&?=+-",
        |n| n.text_at(Attr::NAMESPACE).is_none_or(is_namespace),
    ),
    rule(
        Cls::AUDIT_DETAILS,
        "System_id_valid",
        "a system id that is not empty",
        |n| not_empty(n, Attr::SYSTEM_ID),
    ),
    rule(
        Cls::FEEDER_AUDIT_DETAILS,
        "System_id_valid",
        "a system id that is not empty",
        |n| not_empty(n, Attr::SYSTEM_ID),
    ),
    rule(
        Cls::ARCHETYPED,
        "Rm_version_validity",
        "a version that is not empty",
        |n| not_empty(n, Attr::RM_VERSION),
    ),
    rule(
        Cls::OBJECT_ID,
        "Value_valid",
        "a value that is not empty",
        |n| not_empty(n, Attr::VALUE),
    ),
    rule(
        Cls::OBJECT_VERSION_ID,
        "Version_id_valid",
        "object::system::version, such as 1 or 1.2.3",
        |n| {
            n.text_at(Attr::VALUE)
                .is_none_or(|v| ObjectVersionId::parse(v).is_some())
        },
    ),
    // Copies of single versions do not always name the version that they replace.
    advice(
        Cls::ORIGINAL_VERSION,
        "Preceding_version_uid_validity",
        "a `preceding_version_uid`, except of the first version",
        |n| {
            let uid = n.text_along(&[Attr::UID, Attr::VALUE]);
            uid.and_then(ObjectVersionId::parse)
                .is_none_or(|uid| uid.version.is_first() != has(n, Attr::PRECEDING_VERSION_UID))
        },
    ),
    advice(
        Cls::HIER_OBJECT_ID,
        "Root_valid",
        "a UUID, an OID or an internet name",
        |n| n.text_at(Attr::VALUE).is_none_or(is_hier_object_id),
    ),
    rule(
        Cls::ARCHETYPE_ID,
        "Archetype_id_valid",
        "an archetype id such as openEHR-EHR-OBSERVATION.weight.v2",
        |n| n.text_at(Attr::VALUE).is_none_or(is_archetype_id),
    ),
    rule(
        Cls::LOCATABLE,
        "Archetype_node_id_valid",
        "a node id that is not empty",
        |n| not_empty(n, Attr::ARCHETYPE_NODE_ID),
    ),
    rule(
        Cls::LOCATABLE,
        "Archetype_details_valid",
        "the archetype id that is the node id",
        |n| {
            // Details of other nodes are the subject of `Archetyped_valid`.
            detailed(n).is_none()
                || n.text_at(Attr::ARCHETYPE_NODE_ID) == detailed(n)
                || !is_root(n)
        },
    ),
    advice(
        Cls::LOCATABLE,
        "Archetyped_valid",
        "`archetype_details` at the root of an archetype, and there only",
        |n| {
            if is_root(n) {
                detailed(n).is_some()
            } else {
                !has(n, Attr::ARCHETYPE_DETAILS)
            }
        },
    ),
    advice(
        Cls::COMPOSITION,
        "Is_archetype_root",
        ARCHETYPE_ROOT,
        is_archetype_root,
    ),
    advice(
        Cls::ENTRY,
        "Is_archetype_root",
        ARCHETYPE_ROOT,
        is_archetype_root,
    ),
    advice(
        Cls::EHR_STATUS,
        "Is_archetype_root",
        ARCHETYPE_ROOT,
        is_archetype_root,
    ),
    // A new party has no uid yet, and a copy may keep the sources of its origin.
    advice(
        Cls::PARTY,
        "Relationships_validity",
        "relationships with this party as `source`",
        has_own_relationships,
    ),
    advice(
        Cls::PARTY,
        "Is_archetype_root",
        ARCHETYPE_ROOT,
        is_archetype_root,
    ),
];

fn has(node: NodeRef<'_>, attr: Attr) -> bool {
    node.get(attr).is_some()
}

/// Returns the lower limit of an interval. One beside `lower_unbounded` is none (BASE, Interval).
fn lower(interval: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let limit = interval.get(Attr::LOWER);
    limit.filter(|_| !is_true(interval, Attr::LOWER_UNBOUNDED))
}

/// Returns the upper limit of an interval, as [`lower`] does the lower one.
fn upper(interval: NodeRef<'_>) -> Option<NodeRef<'_>> {
    let limit = interval.get(Attr::UPPER);
    limit.filter(|_| !is_true(interval, Attr::UPPER_UNBOUNDED))
}

/// Returns the limits of an interval that has both.
fn limits(interval: NodeRef<'_>) -> Option<(NodeRef<'_>, NodeRef<'_>)> {
    lower(interval).zip(upper(interval))
}

/// Returns whether two values have the same class and, if quantities, the same unit, if proportions,
/// the same type, if dates or times, disjoint or equal intervals.
///
/// The order of 2021 and 2021-10 is undefined.
fn are_comparable(a: NodeRef<'_>, b: NodeRef<'_>) -> bool {
    let same = |attr| a.text_at(attr) == b.text_at(attr);
    let is_alike = a.class() == b.class() && same(Attr::UNITS) && same(Attr::TYPE);
    // Only temporal values can overlap without being equal.
    let (Some(x), Some(y)) = (temporal(a), temporal(b)) else {
        return is_alike;
    };
    // The order of two partial values is known only if their intervals are disjoint or equal.
    let is_apart = x.latest < y.earliest || y.latest < x.earliest;
    is_alike && (is_apart || (x.earliest, x.latest) == (y.earliest, y.latest))
}

fn is_false(node: NodeRef<'_>, attr: Attr) -> bool {
    node.text_at(attr) == Some("false")
}

fn is_true(node: NodeRef<'_>, attr: Attr) -> bool {
    // The kind is tested too, because a text leaf may also read `true`.
    node.get(attr)
        .is_some_and(|n| n.kind() == Kind::Boolean && n.text() == "true")
}

/// Returns whether a text is absent or not empty. Existence is checked by another rule.
fn not_empty(node: NodeRef<'_>, attr: Attr) -> bool {
    node.text_at(attr) != Some("")
}

fn one_of(node: NodeRef<'_>, attr: Attr, values: &[&str]) -> bool {
    node.text_at(attr).is_none_or(|text| values.contains(&text))
}

fn is_proportion(node: NodeRef<'_>, kind: f64) -> bool {
    number(node, Attr::TYPE) == Some(kind)
}

/// Returns whether numerator and denominator are integers.
fn is_integral(node: NodeRef<'_>) -> bool {
    [Attr::NUMERATOR, Attr::DENOMINATOR]
        .iter()
        .all(|attr| number(node, *attr).is_none_or(|v| v.fract() == 0.0))
}

/// Returns whether the rows of a table have one width and contain elements only.
fn is_table(table: NodeRef<'_>) -> bool {
    // A table without rows is valid: no width remains to compare with the first.
    let mut widths = table
        .values(Attr::ROWS)
        .map(|row| row.values(Attr::ITEMS).count());
    let first = widths.next();
    let mut cells = table
        .values(Attr::ROWS)
        .flat_map(|row| row.values(Attr::ITEMS));
    widths.all(|width| Some(width) == first) && cells.all(|cell| cell.class() == Cls::ELEMENT)
}

/// Returns whether a limit of an interval is absent or has no ranges.
fn is_simple(limit: Option<NodeRef<'_>>) -> bool {
    limit.is_none_or(|limit| {
        !has(limit, Attr::NORMAL_RANGE)
            && limit.values(Attr::OTHER_REFERENCE_RANGES).next().is_none()
    })
}

/// Returns whether the formalism of a time specification is absent or one of a list.
fn has_formalism(specification: NodeRef<'_>, formalisms: &[&str]) -> bool {
    specification
        .text_along(&[Attr::VALUE, Attr::FORMALISM])
        .is_none_or(|formalism| formalisms.contains(&formalism))
}

/// Returns whether the normal status is consistent with the normal range: `N` inside, any other
/// outside.
fn normal_status_agrees(node: NodeRef<'_>) -> bool {
    let (Some(range), Some(status)) = (
        node.get(Attr::NORMAL_RANGE),
        node.get(Attr::NORMAL_STATUS)
            .and_then(|s| s.text_at(Attr::CODE_STRING)),
    ) else {
        return true;
    };
    // If the values cannot be compared, for example because of their units, the rule holds.
    contains(range, node).is_none_or(|inside| inside == (status == "N"))
}

/// Returns whether an interval contains a value, or `None` if they cannot be compared.
fn contains(interval: NodeRef<'_>, value: NodeRef<'_>) -> Option<bool> {
    // A limit is included unless its flag is present and false.
    let excludes = |flag: Attr| interval.text_at(flag) == Some("false");
    let above = match lower(interval) {
        None => true,
        Some(lower) => compare(lower, value)
            .map(|o| o.is_lt() || (o.is_eq() && !excludes(Attr::LOWER_INCLUDED)))?,
    };
    let below = match upper(interval) {
        None => true,
        Some(upper) => compare(value, upper)
            .map(|o| o.is_lt() || (o.is_eq() && !excludes(Attr::UPPER_INCLUDED)))?,
    };
    Some(above && below)
}

/// Returns whether an object is the root of an archetype: its node id is the archetype id.
fn is_root(node: NodeRef<'_>) -> bool {
    node.text_at(Attr::ARCHETYPE_NODE_ID)
        .is_some_and(is_archetype_id)
}

/// Returns whether an object has `archetype_details`, or lacks them at an archetype id, which
/// `Archetyped_valid` reports.
fn is_archetype_root(node: NodeRef<'_>) -> bool {
    has(node, Attr::ARCHETYPE_DETAILS) || is_root(node)
}

/// Returns whether the relationships of a party that has a uid have it as source. A GENERIC_ID may
/// name the party in another system.
fn has_own_relationships(party: NodeRef<'_>) -> bool {
    let Some(own) = party.text_along(&[Attr::UID, Attr::VALUE]) else {
        return true;
    };
    party.values(Attr::RELATIONSHIPS).all(|relationship| {
        let source = relationship.get(Attr::SOURCE).and_then(|s| s.get(Attr::ID));
        source
            .filter(|id| id.class() != Cls::GENERIC_ID)
            .and_then(|id| id.text_at(Attr::VALUE))
            .is_none_or(|id| object_id_of(id) == object_id_of(own))
    })
}

/// Returns the archetype id in `archetype_details`.
fn detailed(node: NodeRef<'_>) -> Option<&str> {
    node.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::ARCHETYPE_ID, Attr::VALUE])
}

/// Returns whether a text is a letter followed by letters, digits and `_.:/&?=+-`.
fn is_namespace(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.:/&?=+-".contains(c))
}

#[cfg(test)]
mod tests;
