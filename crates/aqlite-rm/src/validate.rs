//! Validation of a document against the Reference Model, without a template.
//!
//! Checked are mandatory attributes, forms of texts, invariants, and codes of the openEHR
//! terminology. The code of a finding has the kind of the fault: RM01xx for a text that cannot be
//! read as its class (an invalid date), RM02xx for a violated rule. Messages about invariants use
//! the wording of other openEHR servers, because clients match on it.

use super::build::{MAX_FINDINGS, Step, path_text, shorten};
use super::class::{Attr, AttrDef, Card, Cls};
use super::invariant::{CODED, Coded, INVARIANTS, Invariant};
use super::number;
use super::terminology::{self, CodeGroup};
use super::time::{Temporal, TemporalKind};
use super::tree::{Kind, NodeRef};
use super::xml;
use crate::diag::{Finding, Severity};
use std::sync::LazyLock;

/// Validates a document and returns all findings, warnings included, in document order.
///
/// At most 1,000 errors and 1,000 warnings are returned. The walk ends at the last error that is
/// kept.
pub fn validate(root: NodeRef<'_>) -> Vec<Finding> {
    let mut walk = Walk {
        path: Vec::new(),
        findings: Vec::new(),
        errors: 0,
    };
    walk.visit(root);
    walk.findings
}

/// Returns whether a finding is about an unreadable text (codes RM00xx and RM01xx) rather than a
/// violated rule.
pub fn is_unreadable(finding: &Finding) -> bool {
    finding.code.starts_with("RM00") || finding.code.starts_with("RM01")
}

/// Mandatory attributes whose absence is accepted.
///
/// The server sets the uid of a party, and an interval without flags includes its bounds.
const FORGIVEN: [(Cls, Attr); 3] = [
    (Cls::PARTY, Attr::UID),
    (Cls::DV_INTERVAL, Attr::LOWER_INCLUDED),
    (Cls::DV_INTERVAL, Attr::UPPER_INCLUDED),
];

/// Attributes that are optional in the class table and mandatory in the text of the specification.
const DEMANDED: [(Cls, Attr); 1] = [(Cls::OBJECT_REF, Attr::NAMESPACE)];

/// The rules for objects of one class.
#[derive(Default)]
struct Rules {
    mandatory: Vec<&'static AttrDef>,
    /// Whether the attribute `value` must have the form of a date, time, duration or URI.
    formed: bool,
    invariants: Vec<&'static Invariant>,
    coded: Vec<&'static Coded>,
}

impl Rules {
    fn of(cls: Cls) -> &'static Rules {
        static ALL: LazyLock<Vec<Rules>> =
            LazyLock::new(|| Cls::all().map(Rules::collect).collect());
        static NONE: LazyLock<Rules> = LazyLock::new(Rules::default);
        ALL.get(usize::from(cls.number())).unwrap_or(&NONE)
    }

    fn collect(cls: Cls) -> Rules {
        let must_be = |d: &&AttrDef| {
            (d.card.is_mandatory() && !listed(&FORGIVEN, cls, d.attr))
                || listed(&DEMANDED, cls, d.attr)
        };
        Rules {
            mandatory: cls.attrs().iter().filter(must_be).collect(),
            formed: TemporalKind::for_class(cls).is_some() || cls.is_a(Cls::DV_URI),
            invariants: INVARIANTS.iter().filter(|i| cls.is_a(i.cls)).collect(),
            coded: CODED.iter().filter(|r| cls.is_a(r.cls)).collect(),
        }
    }
}

struct Walk {
    path: Vec<Step>,
    findings: Vec<Finding>,
    /// The number of findings that are errors. The others are warnings.
    errors: usize,
}

impl Walk {
    /// Adds a finding, unless there are [`MAX_FINDINGS`] of its severity already.
    fn report(&mut self, finding: Finding) {
        let is_error = finding.severity == Severity::Error;
        // Errors and warnings have a limit each, so that warnings never displace errors.
        let found = if is_error {
            self.errors
        } else {
            self.findings.len() - self.errors
        };
        if found < MAX_FINDINGS {
            self.errors += usize::from(is_error);
            self.findings.push(finding);
        }
    }

    fn visit(&mut self, node: NodeRef<'_>) {
        let is_list = node.kind() == Kind::List;
        if node.kind() == Kind::Object {
            self.object(node);
        }
        for (index, child) in node.children().enumerate() {
            if self.errors >= MAX_FINDINGS {
                return;
            }
            match child.attr() {
                _ if is_list => self.path.push(Step::Index(index)),
                Some(attr) => self.path.push(Step::Attr(attr)),
                None => continue,
            }
            if child.is_leaf() {
                self.leaf(child);
            } else {
                self.visit(child);
            }
            self.path.pop();
        }
    }

    fn object(&mut self, node: NodeRef<'_>) {
        let cls = node.class();
        let rules = Rules::of(cls);
        self.mandatory(node, &rules.mandatory);
        if rules.formed {
            self.form(node);
        }
        for invariant in rules.invariants.iter().filter(|i| !(i.holds)(node)) {
            // DV_INTERVAL inherits these invariants from INTERVAL.
            let shown = if cls == Cls::DV_INTERVAL {
                "INTERVAL"
            } else {
                cls.name()
            };
            let finding = Finding::error(
                "RM0202",
                path_text(&self.path),
                format!("Invariant {} failed on type {shown}", invariant.name),
            );
            let finding = finding.expected(invariant.expected);
            self.report(Finding {
                severity: invariant.severity,
                found: values_of(node),
                ..finding
            });
        }
        for rule in &rules.coded {
            if let Some(code) = node
                .get(rule.attr)
                .and_then(code_of)
                .filter(|code| !in_group(code, rule.group))
            {
                self.code(cls, rule.name, rule.group, code);
            }
        }
    }

    /// Checks the mandatory attributes.
    ///
    /// Attributes of the object and `mandatory` are both in canonical order, so one merge pass
    /// suffices. After a missing attribute the pass restarts.
    fn mandatory(&mut self, node: NodeRef<'_>, mandatory: &[&'static AttrDef]) {
        let mut children = node.children();
        for def in mandatory {
            let found = children.find(|child| child.attr() == Some(def.attr));
            if !is_filled(found, def) {
                self.existence(node, def);
                children = node.children();
            }
        }
    }

    fn existence(&mut self, node: NodeRef<'_>, def: &AttrDef) {
        let found = node.get(def.attr);
        if is_filled(found, def) {
            return;
        }
        let multiplicity = if def.card == Card::List1 {
            "1..*"
        } else {
            "1..1"
        };
        let message = format!(
            "Attribute {} of class {} does not match existence {multiplicity}",
            def.attr,
            node.class()
        );
        self.path.push(Step::Attr(def.attr));
        let found = found.map_or("nothing", |_| "no member");
        self.report(
            Finding::error("RM0201", path_text(&self.path), message)
                .expected(multiplicity)
                .found(found),
        );
        self.path.pop();
    }

    /// Checks texts whose form the class prescribes.
    fn form(&mut self, node: NodeRef<'_>) {
        let Some(value) = node.text_at(Attr::VALUE) else {
            return;
        };
        let cls = node.class();
        let expected = match TemporalKind::for_class(cls) {
            Some(kind) if Temporal::parse(kind, value).is_none() => match kind {
                TemporalKind::Date => "an ISO 8601 date",
                TemporalKind::Time => "an ISO 8601 time",
                TemporalKind::DateTime => "an ISO 8601 date-time",
                TemporalKind::Duration => "an ISO 8601 duration",
            },
            None if cls.is_a(Cls::DV_URI) && !is_uri(value) => "a URI",
            _ => return,
        };
        self.malformed(Attr::VALUE, expected, value);
    }

    fn leaf(&mut self, node: NodeRef<'_>) {
        let text = node.text();
        if let Some(c) = xml::not_in_xml(text) {
            self.report(xml::not_in_xml_finding(&self.path, c));
        }
        let expected = match node.class() {
            Cls::INTEGER if text.parse::<i32>().is_err() => "a 32-bit integer",
            Cls::INTEGER64 if text.parse::<i64>().is_err() => "a 64-bit integer",
            Cls::REAL if !number::parse(text).is_some_and(f64::is_finite) => {
                "a number within the range of a double"
            }
            Cls::CHARACTER if text.chars().count() != 1 => "one character",
            Cls::OCTETS if !is_base64(text) => "base64",
            _ => return,
        };
        let finding = Finding::error("RM0110", path_text(&self.path), format!("not {expected}"))
            .expected(expected);
        // Only numbers are repeated in a finding, not texts and base64 data.
        let quoted = node.kind() == Kind::Number;
        self.report(if quoted {
            finding.found(super::build::shorten(text))
        } else {
            finding
        });
    }

    fn malformed(&mut self, attr: Attr, expected: &str, found: &str) {
        self.path.push(Step::Attr(attr));
        let finding = Finding::error("RM0110", path_text(&self.path), format!("not {expected}"));
        self.report(
            finding
                .expected(expected)
                .found(super::build::shorten(found)),
        );
        self.path.pop();
    }

    fn code(&mut self, cls: Cls, rule: &str, group: &CodeGroup, code: Code<'_>) {
        let finding = Finding::error(
            "RM0203",
            path_text(&self.path),
            format!("Invariant {rule} failed on type {cls}"),
        );
        // These code sets grow outside openEHR, so a code that is not listed may be valid.
        let open = [&terminology::MEDIA_TYPES, &terminology::CHARACTER_SETS].contains(&group);
        let severity = if open {
            Severity::Warning
        } else {
            Severity::Error
        };
        let finding = Finding {
            severity,
            ..finding
        };
        self.report(
            finding
                .expected(format!("a code of `{}`", group.name))
                .found(super::build::shorten(code.code)),
        );
    }
}

/// Returns whether a mandatory attribute has a value, and a `1..*` list at least one member.
fn is_filled(found: Option<NodeRef<'_>>, def: &AttrDef) -> bool {
    found.is_some_and(|found| def.card != Card::List1 || found.children().next().is_some())
}

fn listed(list: &[(Cls, Attr)], cls: Cls, attr: Attr) -> bool {
    list.iter()
        .any(|(owner, listed)| *listed == attr && cls.is_a(*owner))
}

/// A code with its terminology.
#[derive(Clone, Copy)]
struct Code<'a> {
    terminology: &'a str,
    code: &'a str,
}

/// Returns the code of a CODE_PHRASE or DV_CODED_TEXT.
fn code_of(node: NodeRef<'_>) -> Option<Code<'_>> {
    let phrase = if node.class() == Cls::CODE_PHRASE {
        node
    } else {
        node.get(Attr::DEFINING_CODE)?
    };
    Some(Code {
        terminology: phrase.text_along(&[Attr::TERMINOLOGY_ID, Attr::VALUE])?,
        code: phrase.text_at(Attr::CODE_STRING)?,
    })
}

/// Returns whether a code is in the group, or belongs to a terminology without known codes.
///
/// A known terminology, such as `openehr`, does not extend the group that the Reference Model
/// names. A language code may have any region.
fn in_group(code: &Code<'_>, group: &CodeGroup) -> bool {
    let language = || {
        *group == terminology::LANGUAGES
            && code
                .code
                .split(['-', '_'])
                .next()
                .is_some_and(|main| group.contains(main))
    };
    group.contains(code.code) || language() || !terminology::is_known(code.terminology)
}

/// Returns whether a text is a URI of RFC 3986 with a scheme, or an IRI with characters beyond
/// ASCII.
fn is_uri(text: &str) -> bool {
    let bytes = text.as_bytes();
    let escaped = |at: usize| {
        bytes
            .get(at + 1..at + 3)
            .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    };
    let allowed = |(at, byte): (usize, &u8)| match byte {
        b'%' => escaped(at),
        b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`' => false,
        byte => *byte > b' ' && *byte != 0x7f,
    };
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    is_scheme && bytes.iter().enumerate().all(allowed)
}

/// Returns whether a text is base64. Line breaks are allowed.
fn is_base64(text: &str) -> bool {
    // White space may divide base64 into lines, so it does not count.
    let digits = text.bytes().filter(|b| !b.is_ascii_whitespace());
    let body = text.trim_ascii_end().trim_end_matches('=');
    digits.count() % 4 == 0
        && body
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/' || b.is_ascii_whitespace())
}

/// Formats the leaves of an object as attribute and value. Returns `None` if it has no leaf.
fn values_of(node: NodeRef<'_>) -> Option<String> {
    let named_value =
        |leaf: NodeRef<'_>| Some(format!("{} {}", leaf.attr()?, shorten(leaf.text())));
    let values: Vec<String> = node
        .children()
        .filter(|child| child.is_leaf())
        .filter_map(named_value)
        // Four values identify an object and keep the finding short.
        .take(4)
        .collect();
    (!values.is_empty()).then(|| values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn problems(text: &str) -> Vec<String> {
        let tree = json::read(text, Cls::ANY).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        validate(tree.root().unwrap())
            .iter()
            .map(Finding::one_line)
            .collect()
    }

    #[test]
    fn missing_mandatory_attributes_are_reported() {
        assert_eq!(
            problems(
                r#"{"_type":"CLUSTER","archetype_node_id":"at1","name":{"_type":"DV_TEXT"},"items":[]}"#
            ),
            [
                "/items: Attribute items of class CLUSTER does not match existence 1..*; expected 1..*, found no member (RM0201)",
                "/name/value: Attribute value of class DV_TEXT does not match existence 1..1; expected 1..1, found nothing (RM0201)",
            ]
        );
    }

    #[test]
    fn malformed_values_are_reported() {
        for (text, path) in [
            (
                r#"{"_type":"DV_DATE","value":"2021-02-30"}"#,
                "/value: not an ISO 8601 date;",
            ),
            (
                r#"{"_type":"DV_DURATION","value":"1Y"}"#,
                "/value: not an ISO 8601 duration;",
            ),
            (r#"{"_type":"DV_URI","value":"a b"}"#, "/value: not a URI;"),
            (r#"{"_type":"DV_URI","value":"xyz"}"#, "/value: not a URI;"),
            (
                r#"{"_type":"DV_ORDINAL","value":3000000000,"symbol":{"_type":"DV_CODED_TEXT","value":"x","defining_code":{"terminology_id":{"value":"l"},"code_string":"a"}}}"#,
                "/value: not a 32-bit integer;",
            ),
            (
                r#"{"_type":"DV_QUANTITY","magnitude":1.8e400,"units":"1"}"#,
                "/magnitude: not a number within",
            ),
        ] {
            let found = problems(text);
            assert!(
                found.len() == 1 && found[0].starts_with(path) && found[0].ends_with("(RM0110)"),
                "{found:?}"
            );
        }
        assert!(
            problems(r#"{"_type":"DV_URI","value":"ldap://[2001:db8::7]/c=GB?objectClass?one"}"#)
                .is_empty()
        );
        assert!(
            is_base64("QUJD\nREVG\n") && is_base64("QQ==") && !is_base64("Q") && !is_base64("Q=Q=")
        );
    }

    #[test]
    fn errors_and_warnings_have_separate_limits() {
        let warned = r#"{"_type":"DV_MULTIMEDIA","media_type":{"terminology_id":{"value":"IANA_media-types"},"code_string":"x/y"},"size":1}"#;
        let element = |value: &str| {
            format!(
                r#"{{"_type":"ELEMENT","archetype_node_id":"at1","name":{{"value":"n"}},"value":{value}}}"#
            )
        };
        let wrong = element(r#"{"_type":"DV_DATE","value":"x"}"#);
        let items = vec![element(warned); 1_500].join(",") + "," + &vec![wrong; 1_500].join(",");
        let text = format!(
            r#"{{"_type":"ITEM_TREE","archetype_node_id":"at0","name":{{"value":"n"}},"items":[{items}]}}"#
        );
        let tree = json::read(&text, Cls::ITEM_TREE).unwrap();
        let found = validate(tree.root().unwrap());
        let errors = found
            .iter()
            .filter(|f| f.severity == Severity::Error)
            .count();
        assert_eq!((errors, found.len()), (1_000, 2_000));
    }

    #[test]
    fn codes_outside_their_group_are_reported() {
        let null = |terminology: &str, code: &str| {
            format!(
                r#"{{"_type":"ELEMENT","archetype_node_id":"at1","name":{{"value":"n"}},"null_flavour":{{"value":"x","defining_code":{{"terminology_id":{{"value":"{terminology}"}},"code_string":"{code}"}}}}}}"#
            )
        };
        assert_eq!(
            problems(&null("openehr", "532")),
            [
                "/: Invariant Null_flavour_valid failed on type ELEMENT; expected a code of `null_flavours`, found 532 (RM0203)"
            ]
        );
        assert!(
            problems(&null("openehr", "253")).is_empty()
                && problems(&null("local", "at7")).is_empty()
        );
    }

    #[test]
    fn a_known_terminology_does_not_extend_the_group_of_an_attribute() {
        for (terminology, code, is_valid) in [
            ("openehr_normal_statuses", "HHH", true),
            ("openehr_normal_statuses", "X", false),
            ("openehr", "HHH", true),
            ("openehr", "X", false),
            ("openehr", "253", false),
            ("ISO_639-1", "en", false),
            ("local", "X", true),
            ("HL7-v2", "HU", true),
        ] {
            let status = format!(
                r#"{{"terminology_id":{{"value":"{terminology}"}},"code_string":"{code}"}}"#
            );
            let count = format!(r#"{{"_type":"DV_COUNT","magnitude":9,"normal_status":{status}}}"#);
            let expected = format!(
                "/: Invariant Normal_status_validity failed on type DV_COUNT; expected a code of `normal_statuses`, found {code} (RM0203)"
            );
            let expected = if is_valid { vec![] } else { vec![expected] };
            assert_eq!(problems(&count), expected, "{terminology}::{code}");
        }
    }
}
