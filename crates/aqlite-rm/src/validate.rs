//! Validation of a document against the Reference Model, without a template.
//!
//! Checked are mandatory attributes, forms of texts, invariants, and codes of the openEHR
//! terminology. The code of a finding has the kind of the fault: RM01xx for a text that cannot be
//! read as its class (an invalid date), RM02xx for a violated rule. Messages about invariants use
//! the wording of other openEHR servers, because clients match on it.

mod generic;

use super::build::{MAX_FINDINGS, Step, path_text, shorten};
use super::class::{Attr, AttrDef, Card, Cls};
use super::invariant::{CODED, Coded, INVARIANTS, Invariant, Mismatch};
use super::number;
use super::terminology::CodeGroup;
use super::time::{Temporal, TemporalKind};
use super::tree::{Kind, NodeRef};
use super::xml;
use crate::diag::{Finding, Severity};
use generic::{RANGES, RangeRule};
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

/// Returns the group of the openEHR terminology from which the Reference Model takes the code of an
/// attribute of a class, such as `null flavours` of `ELEMENT.null_flavour`; `None` if it has no code
/// of the terminology, or one of a code set.
pub fn prescribed_group(cls: Cls, attr: Attr) -> Option<&'static CodeGroup> {
    let mut coded = CODED.iter();
    let coded = coded.find(|coded| coded.attr == attr && cls.is_a(coded.cls))?;
    (!coded.group.is_code_set()).then_some(coded.group)
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
    ranges: Vec<&'static RangeRule>,
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
            ranges: RANGES.iter().filter(|r| cls.is_a(r.cls)).collect(),
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
                self.empty_list(node.class(), child);
                self.visit(child);
            }
            self.path.pop();
        }
    }

    /// Warns about an empty list, if an invariant of the class requires a member (RM 1.1.0, such as
    /// `Links_valid` of LOCATABLE).
    ///
    /// Serializers of many systems write empty lists where they have nothing, so such a document is
    /// accepted, and stored as it was sent.
    fn empty_list(&mut self, cls: Cls, list: NodeRef<'_>) {
        if list.kind() != Kind::List || list.children().next().is_some() {
            return;
        }
        let def = list.attr().and_then(|attr| cls.attr(attr));
        // A mandatory list without a member is an error of existence.
        if let Some(def) = def.filter(|def| def.is_filled && !def.card.is_mandatory()) {
            let message = format!("Attribute {} of class {cls} is an empty list", def.attr);
            let finding = Finding::warning("RM0202", path_text(&self.path), message);
            self.report(finding.expected("a member, or no list").found("no member"));
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
            self.violated(node, invariant);
        }
        for rule in &rules.coded {
            if let Some(mismatch) = rule.mismatch(node) {
                self.code(cls, rule.name, mismatch);
            }
        }
        for rule in &rules.ranges {
            self.ranges(node, rule);
        }
        if cls == Cls::HISTORY {
            self.history(node);
        }
        if cls.is_a(Cls::LOCATABLE) {
            self.archetype_class(node);
        }
    }

    fn violated(&mut self, node: NodeRef<'_>, invariant: &Invariant) {
        // DV_INTERVAL inherits these invariants from INTERVAL.
        let shown = if node.class() == Cls::DV_INTERVAL {
            "INTERVAL"
        } else {
            node.class().name()
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

    fn code(&mut self, cls: Cls, rule: &str, mismatch: Mismatch) {
        let finding = Finding::error(
            "RM0203",
            path_text(&self.path),
            format!("Invariant {rule} failed on type {cls}"),
        );
        let finding = finding
            .expected(mismatch.expected)
            .found(super::build::shorten(&mismatch.found));
        self.report(Finding {
            severity: mismatch.severity,
            ..finding
        });
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
    is_scheme && bytes.iter().enumerate().all(allowed) && has_valid_brackets(text)
}

/// Returns whether the host of a URI has brackets only around an IP literal (RFC 3986, section
/// 3.2.2). Paths of `ehr:` URIs have them around predicates.
fn has_valid_brackets(uri: &str) -> bool {
    let after_scheme = uri.split_once(':').map_or("", |(_, rest)| rest);
    let Some(rest) = after_scheme.strip_prefix("//") else {
        return true;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (literal, after) = match host.strip_prefix('[').map(|host| host.split_once(']')) {
        Some(Some((literal, port))) => (literal, port),
        Some(None) => return false,
        None => ("::", host),
    };
    is_ip_literal(literal) && !user.contains(['[', ']']) && !after.contains(['[', ']'])
}

/// Returns whether a text is an IPv6 address, with an optional zone (RFC 6874), or an address of a
/// later version: `v1.fe80`.
fn is_ip_literal(text: &str) -> bool {
    let address = text.split_once("%25").map_or(text, |(address, _)| address);
    let later = text
        .strip_prefix(['v', 'V'])
        .and_then(|t| t.split_once('.'));
    let is_later = later.is_some_and(|(version, rest)| {
        !version.is_empty() && version.bytes().all(|b| b.is_ascii_hexdigit()) && !rest.is_empty()
    });
    is_later || address.parse::<core::net::Ipv6Addr>().is_ok()
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
mod tests;
