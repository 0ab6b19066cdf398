//! Writer of canonical XML that is valid against a published XSD.
//!
//! The namespace is v1, or v2 for content that only the later schema allows.

use super::super::build::{Step, path_text};
use super::super::class::{Attr, AttrDef, Cls, XmlForm};
use super::super::tree::{Kind, NodeRef};
use super::schema::needs_v2;
use super::{INSTANCE, V1, V2};
use crate::diag::Finding;

/// Returns the canonical XML of an object with root element `root`, such as `composition` or
/// `version`.
///
/// # Errors
/// RM0108 with its path if a text has a character that XML 1.0 cannot represent.
pub fn write(node: NodeRef<'_>, root: &str) -> Result<String, Finding> {
    write_as(node, root, AuditTerms::Kept)
}

/// Writes like [`write()`], but omits the `preferred_term` of codes in audits and lifecycle states.
///
/// It repeats the rubric, and the v1 schema does not define it.
///
/// # Errors
/// See [`write()`].
pub fn write_without_audit_terms(node: NodeRef<'_>, root: &str) -> Result<String, Finding> {
    write_as(node, root, AuditTerms::Omitted)
}

/// The treatment of `preferred_term` in codes of audits and lifecycle states.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AuditTerms {
    Kept,
    Omitted,
}

impl AuditTerms {
    /// Returns whether `preferred_term` is omitted in the code at this attribute.
    pub(super) fn are_omitted_at(self, cls: Cls, attr: Attr) -> bool {
        let is_code = (attr == Attr::CHANGE_TYPE && cls.is_a(Cls::AUDIT_DETAILS))
            || (attr == Attr::LIFECYCLE_STATE && cls.is_a(Cls::VERSION));
        self == AuditTerms::Omitted && is_code
    }
}

fn write_as(node: NodeRef<'_>, root: &str, terms: AuditTerms) -> Result<String, Finding> {
    let mut writer = Writer {
        out: String::with_capacity(4096),
        path: Vec::new(),
        problem: None,
        terms,
        in_audit_code: false,
    };
    writer
        .out
        .push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
    writer.out.push_str(root);
    for (name, value) in [
        (" xmlns=\"", if needs_v2(node, terms) { V2 } else { V1 }),
        (" xmlns:xsi=\"", INSTANCE),
    ] {
        writer.out.push_str(name);
        writer.out.push_str(value);
        writer.out.push('"');
    }
    writer.object(
        node,
        Cls::parse(&root.to_ascii_uppercase()).unwrap_or(Cls::ANY),
    );
    writer.close(root);
    match writer.problem {
        None => Ok(writer.out),
        Some(finding) => Err(finding),
    }
}

/// Returns the first character of a text that an XML 1.0 document cannot contain.
pub fn not_in_xml(text: &str) -> Option<char> {
    // A byte scan rejects almost all texts quickly. Control characters are one byte; U+FFFE and
    // U+FFFF begin with EF.
    let may_be = |b: u8| b == 0xef || (b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r'));
    if text.bytes().any(may_be) {
        text.chars().find(|c| !is_xml(*c))
    } else {
        None
    }
}

/// Creates the finding about a character that XML cannot represent.
pub(crate) fn not_in_xml_finding(path: &[Step], c: char) -> Finding {
    Finding::error(
        "RM0108",
        path_text(path),
        "XML 1.0 cannot carry this character",
    )
    .found(format!("U+{:04X}", u32::from(c)))
}

/// Returns whether an XML 1.0 document may contain a character.
pub(super) fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

struct Writer {
    out: String,
    path: Vec<Step>,
    /// The finding about the first character that could not be written.
    problem: Option<Finding>,
    terms: AuditTerms,
    /// Whether the writer is inside an audit code whose `preferred_term` is omitted.
    in_audit_code: bool,
}

impl Writer {
    /// Writes the rest of a start tag and the content of an object.
    fn object(&mut self, node: NodeRef<'_>, declared: Cls) {
        let cls = node.class();
        if cls != declared {
            // The schema knows the declared class, so only another one is named.
            self.out.push_str(" xsi:type=\"");
            self.out.push_str(cls.name());
            self.out.push('"');
        }
        // XML attributes precede all elements, so the children are visited twice.
        for child in node.children() {
            if let Some(def) = definition(cls, child).filter(|d| d.xml == XmlForm::Attribute) {
                self.path.push(Step::Attr(def.attr));
                self.out.push(' ');
                self.out.push_str(def.attr.name());
                self.out.push_str("=\"");
                self.escape(child.text(), true);
                self.out.push('"');
                self.path.pop();
            }
        }
        self.out.push('>');
        for child in node.children() {
            if let Some(def) = definition(cls, child).filter(|d| d.xml != XmlForm::Attribute) {
                self.attribute(cls, child, def);
            }
        }
    }

    fn attribute(&mut self, cls: Cls, node: NodeRef<'_>, def: &AttrDef) {
        if self.in_audit_code && def.attr == Attr::PREFERRED_TERM {
            return;
        }
        // The state outside is restored at the end of this attribute.
        let outside = self.in_audit_code;
        self.in_audit_code |= self.terms.are_omitted_at(cls, def.attr);
        self.path.push(Step::Attr(def.attr));
        if node.kind() == Kind::List {
            for (index, child) in node.children().enumerate() {
                self.path.push(Step::Index(index));
                self.element(child, def);
                self.path.pop();
            }
        } else {
            self.element(node, def);
        }
        self.path.pop();
        self.in_audit_code = outside;
    }

    fn element(&mut self, node: NodeRef<'_>, def: &AttrDef) {
        let name = def.attr.name();
        self.out.push('<');
        self.out.push_str(name);
        if node.is_leaf() {
            self.out.push('>');
            self.escape(node.text(), false);
        } else {
            self.object(node, def.ty);
        }
        self.close(name);
    }

    fn close(&mut self, name: &str) {
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    fn escape(&mut self, text: &str, in_attribute: bool) {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                // A parser turns a plain carriage return into a line feed, so it is written as a
                // reference.
                '\r' => self.out.push_str("&#13;"),
                '"' if in_attribute => self.out.push_str("&quot;"),
                // A parser turns white space in attributes into blanks, unless it is written as a
                // reference.
                '\n' if in_attribute => self.out.push_str("&#10;"),
                '\t' if in_attribute => self.out.push_str("&#9;"),
                c if is_xml(c) => self.out.push(c),
                c => drop(
                    // Only the first problem is kept: the caller discards the output.
                    self.problem
                        .get_or_insert_with(|| not_in_xml_finding(&self.path, c)),
                ),
            }
        }
    }
}

pub(super) fn definition(cls: Cls, child: NodeRef<'_>) -> Option<&'static AttrDef> {
    child.attr().and_then(|attr| cls.attr(attr))
}
