//! Canonical XML: a tolerant reader and a strict writer over the class table.
//!
//! Read: namespace v1, v2 or none, any prefix, elements in any order, white space in texts kept; no document type, no
//! entities of its own. Written: namespace v1, or v2 for content that only the later schema allows, so that it is valid
//! against a published XSD; elements in the order of the XSD, `xsi:type` where the class is not the declared one,
//! `archetype_node_id` as the only attribute (ITS-XML Release 1.0.2 and its successor for RM 1.1.0).

use super::build::{Builder, Limits, Members, Step, described, path_text, shorten};
use super::class::{Attr, AttrDef, Cls, XmlForm};
use super::json::Scanner;
use super::tree::{Kind, NodeId, NodeRef, Tree};
use crate::diag::{Finding, LineIndex};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::borrow::Cow;

const V1: &str = "http://schemas.openehr.org/v1";
const V2: &str = "http://schemas.openehr.org/v2";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Reads an object of class `expected`, or of a descendant that `xsi:type` names. With [`Cls::ANY`] the name of the
/// root element may name the class (`composition`, `ehr_status`).
///
/// # Errors
/// Everything that the class table forbids, each with its path, all together (codes RM0101–RM0107); or one finding with
/// line and column where the text is not well-formed XML or nested too deep (RM0003, RM0002).
pub fn read(text: &str, expected: Cls) -> Result<Tree, Vec<Finding>> {
    read_within(text, expected, Limits::default())
}

/// [`read`] under other limits.
///
/// # Errors
/// As [`read`].
pub fn read_within(text: &str, expected: Cls, limits: Limits) -> Result<Tree, Vec<Finding>> {
    let body = text.trim_start_matches('\u{feff}');
    let reader = Reader::from_str(body);
    let mut document = Document { reader, build: Builder::new(body.len() / 2, limits), open: Vec::new(), skipping: 0, rooted: false, expected };
    match document.run() {
        Ok(()) => document.build.finish(),
        Err(broken) => {
            let code = if broken.too_deep { "RM0002" } else { "RM0003" };
            Err(vec![unreadable(body, code, broken.offset, &broken.message)])
        }
    }
}

/// The elements inside the root element, by local name, each as the text of a document of its own.
///
/// # Errors
/// The text is not well-formed, or nested too deep (RM0003, RM0002), with line and column.
pub fn elements(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, Finding> {
    let body = text.trim_start_matches('\u{feff}');
    let mut reader = Reader::from_str(body);
    let (mut found, mut depth, mut begun) = (Vec::new(), 0_usize, (String::new(), 0));
    loop {
        let before = offset_of(reader.buffer_position());
        let event = reader.read_event().map_err(|e| unreadable(body, "RM0003", offset_of(reader.error_position()), &e.to_string()))?;
        let (step, whole) = match &event {
            Event::Start(tag) => {
                if depth == 1 {
                    begun = (tag.local_name().as_ref().to_owned(), before);
                }
                (1, false)
            }
            Event::Empty(tag) => {
                if depth == 1 {
                    begun = (tag.local_name().as_ref().to_owned(), before);
                }
                (0, depth == 1)
            }
            Event::End(_) => (-1, depth == 2),
            Event::DocType(_) => return Err(unreadable(body, "RM0003", before, "a document type is not accepted")),
            Event::Eof if depth > 0 => return Err(unreadable(body, "RM0003", before, "the document ends too early")),
            Event::Eof => return Ok(found),
            _ => (0, false),
        };
        if whole {
            let text = body.get(begun.1..offset_of(reader.buffer_position())).unwrap_or_default();
            found.push((Cow::Owned(std::mem::take(&mut begun.0)), text));
        }
        depth = depth.saturating_add_signed(step);
        if depth > Limits::default().depth {
            return Err(unreadable(body, "RM0002", before, "nested too deep"));
        }
    }
}

fn offset_of(position: u64) -> usize {
    usize::try_from(position).unwrap_or_default()
}

fn unreadable(body: &str, code: &'static str, offset: usize, message: &str) -> Finding {
    let (line, column) = LineIndex::new(body).line_column(offset);
    Finding::error(code, "", format!("not readable as XML: line {line}, column {column}: {message}"))
}

/// The canonical XML of an object under a root element such as `composition` or `version`.
///
/// # Errors
/// A text has a character that XML 1.0 cannot carry (RM0108), with its path.
pub fn write(node: NodeRef<'_>, root: &str) -> Result<String, Finding> {
    write_as(node, root, AuditTerms::Kept)
}

/// Writes an object like [`write`], but without the `preferred_term` of the codes of audits and lifecycle states: it repeats their rubric,
/// and the v1 schema does not know it.
///
/// # Errors
/// See [`write`].
pub fn write_without_audit_terms(node: NodeRef<'_>, root: &str) -> Result<String, Finding> {
    write_as(node, root, AuditTerms::Omitted)
}

/// Whether the codes of audits and lifecycle states keep their `preferred_term`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AuditTerms {
    Kept,
    Omitted,
}

impl AuditTerms {
    /// True for the code of an audit or of a lifecycle state whose `preferred_term` is omitted.
    fn are_omitted_at(self, cls: Cls, attr: Attr) -> bool {
        let is_code = (attr == Attr::CHANGE_TYPE && cls.is_a(Cls::AUDIT_DETAILS)) || (attr == Attr::LIFECYCLE_STATE && cls.is_a(Cls::VERSION));
        self == AuditTerms::Omitted && is_code
    }
}

fn write_as(node: NodeRef<'_>, root: &str, terms: AuditTerms) -> Result<String, Finding> {
    let mut writer = Writer { out: String::with_capacity(4096), path: Vec::new(), problem: None, terms, in_audit_code: false };
    writer.out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<");
    writer.out.push_str(root);
    for (name, value) in [(" xmlns=\"", if is_root_of_v2(node.class()) || needs_v2(node, terms) { V2 } else { V1 }), (" xmlns:xsi=\"", INSTANCE)] {
        writer.out.push_str(name);
        writer.out.push_str(value);
        writer.out.push('"');
    }
    writer.object(node, Cls::parse(&root.to_ascii_uppercase()).unwrap_or(Cls::ANY));
    writer.close(root);
    match writer.problem {
        None => Ok(writer.out),
        Some(finding) => Err(finding),
    }
}

/// Attributes older than RM 1.1.0 that the v1 schema does not have, at least not under the name of the model.
const MISSING_IN_V1: [(Cls, Attr); 3] = [(Cls::ISM_TRANSITION, Attr::REASON), (Cls::DV_PARSABLE, Attr::SIZE), (Cls::ENTRY, Attr::WORKFLOW_ID)];

/// Attributes that only the v1 schema demands.
const DEMANDED_BY_V1: [(Cls, Attr); 5] = [
    (Cls::ACTIVITY, Attr::TIMING),
    (Cls::DV_IDENTIFIER, Attr::ISSUER),
    (Cls::DV_IDENTIFIER, Attr::ASSIGNER),
    (Cls::DV_IDENTIFIER, Attr::TYPE),
    (Cls::PARTICIPATION, Attr::MODE),
];

/// Classes of the data of a version that the v1 schema does not have.
const CLASSES_OF_V2: [Cls; 3] = [Cls::PARTY, Cls::EHR_STATUS, Cls::EHR_ACCESS];

/// True for classes of whole resources that the v1 schema does not have, although it has their parts.
fn is_root_of_v2(class: Cls) -> bool {
    const ROOTS: [Cls; 3] = [Cls::EHR, Cls::CONTRIBUTION, Cls::VERSIONED_OBJECT];
    ROOTS.iter().chain(&CLASSES_OF_V2).any(|root| class.is_a(*root))
}

/// The v1 schema stopped at RM 1.0.2: whether an object has what that cannot hold, or lacks what it demands.
fn needs_v2(node: NodeRef<'_>, terms: AuditTerms) -> bool {
    let cls = node.class();
    let is_later = |child: NodeRef<'_>| {
        let Some(def) = definition(cls, child) else { return false };
        def.since == "1.1.0"
            || MISSING_IN_V1.iter().any(|(owner, attr)| *attr == def.attr && cls.is_a(*owner))
            || (def.attr == Attr::DATA && CLASSES_OF_V2.iter().any(|c| child.class().is_a(*c)))
            || (def.attr == Attr::ACTIVITY_ID && !is_at_code(child.text()))
    };
    let is_incomplete = || DEMANDED_BY_V1.iter().any(|(owner, attr)| cls.is_a(*owner) && node.get(*attr).is_none());
    let is_counted = |child: &NodeRef<'_>| !child.attr().is_some_and(|attr| terms.are_omitted_at(cls, attr));
    let mut children = node.children().filter(is_counted);
    (node.kind() == Kind::Object && is_incomplete()) || children.any(|child| is_later(child) || (!child.is_leaf() && needs_v2(child, terms)))
}

/// The form to which the v1 schema holds an `activity_id`.
fn is_at_code(text: &str) -> bool {
    let mut parts = text.strip_prefix("at").unwrap_or_default().split('.');
    let first = parts.next().unwrap_or_default();
    let digits = |part: &str, most: usize| (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let is_added = first == "0" && parts.next().is_some_and(|part| digits(part, 4));
    (is_added || (first.len() == 4 && digits(first, 4))) && parts.all(|part| digits(part, 3))
}

/// More attributes than any element has; namespaces are not counted.
const MAX_ATTRIBUTES: usize = 16;
/// Start tags longer than this are not searched for repeated attributes.
const MAX_ATTRIBUTE_BYTES: usize = 16 << 10;

struct Broken {
    offset: usize,
    message: String,
    too_deep: bool,
}

/// An element that has begun and not ended.
enum Open {
    Object { members: Members, lists: Vec<List>, steps: usize },
    Leaf { place: Place, text: String, steps: usize },
}

/// A list attribute of an open object.
struct List {
    position: usize,
    id: NodeId,
    len: usize,
}

/// Where a value goes.
#[derive(Clone, Copy)]
struct Place {
    parent: Option<NodeId>,
    attr: Option<Attr>,
    ty: Cls,
}

struct Document<'a> {
    reader: Reader<&'a [u8]>,
    build: Builder,
    open: Vec<Open>,
    /// Elements inside one another below a refused one.
    skipping: usize,
    rooted: bool,
    expected: Cls,
}

impl Document<'_> {
    fn run(&mut self) -> Result<(), Broken> {
        loop {
            let event = self.reader.read_event().map_err(|e| {
                let offset = usize::try_from(self.reader.error_position()).unwrap_or_default();
                Broken { offset, message: e.to_string(), too_deep: false }
            })?;
            match event {
                Event::Start(tag) => self.start(&tag)?,
                Event::Empty(tag) => {
                    self.start(&tag)?;
                    self.end();
                }
                Event::End(_) => self.end(),
                Event::Text(text) => self.text(&text.xml10_content())?,
                Event::CData(text) => self.text(&text.xml10_content())?,
                Event::GeneralRef(reference) => {
                    let named = |name: &str| ENTITIES.iter().find(|(n, _)| *n == name).map(|(_, c)| *c);
                    let resolved =
                        if reference.is_char_ref() { reference.resolve_char_ref().ok().flatten() } else { named(&reference.xml10_content()) };
                    let character = resolved.ok_or_else(|| self.broken("an entity that XML does not predefine"))?;
                    self.text(character.encode_utf8(&mut [0; 4]))?;
                }
                Event::DocType(_) => return Err(self.broken("a document type is not accepted")),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::Eof if !self.open.is_empty() || self.skipping > 0 || !self.rooted => return Err(self.broken("the document ends too early")),
                Event::Eof => return Ok(()),
            }
        }
    }

    fn broken(&self, message: &str) -> Broken {
        Broken { offset: usize::try_from(self.reader.buffer_position()).unwrap_or_default(), message: message.to_owned(), too_deep: false }
    }

    fn start(&mut self, tag: &BytesStart<'_>) -> Result<(), Broken> {
        if self.open.len() + self.skipping >= self.build.limits.depth {
            return Err(Broken { too_deep: true, ..self.broken("nested too deep") });
        }
        let attributes = self.attributes(tag)?;
        if self.skipping > 0 {
            self.skipping += 1;
            return Ok(());
        }
        let name = tag.local_name();
        let name: &str = name.as_ref();
        let before = self.build.path.len();
        let accepted = match self.place(name)? {
            Some(place) if place.ty.is_primitive() => Some(self.leaf(place, &attributes, before)),
            Some(place) => self.object(place, &attributes, before),
            None => None,
        };
        match accepted {
            Some(open) => self.open.push(open),
            None => {
                self.build.path.truncate(before);
                self.skipping = 1;
            }
        }
        Ok(())
    }

    /// The XML attributes of an element by local name, without namespaces and hints for schemas.
    fn attributes(&self, tag: &BytesStart<'_>) -> Result<Vec<(String, String)>, Broken> {
        let mut out = Vec::new();
        let mut all = tag.attributes();
        // The reader compares each name with all before it.
        all.with_checks(tag.attributes_raw().len() <= MAX_ATTRIBUTE_BYTES);
        for attribute in all {
            let attribute = attribute.map_err(|e| self.broken(&e.to_string()))?;
            let local = attribute.key.local_name();
            let name: &str = local.as_ref();
            let full: &str = attribute.key.as_ref();
            if full == "xmlns"
                || full.starts_with("xmlns:")
                || full.starts_with("xml:")
                || matches!(name, "schemaLocation" | "noNamespaceSchemaLocation")
            {
                continue;
            }
            let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|e| self.broken(&e.to_string()))?;
            if !value.chars().all(is_xml) {
                return Err(self.broken("a character that XML 1.0 does not have"));
            }
            out.push((name.to_owned(), value.into_owned()));
            if out.len() > MAX_ATTRIBUTES {
                return Err(self.broken("an element has too many attributes"));
            }
        }
        Ok(out)
    }

    /// Where the element that begins goes, with the path set to it; `None` when it cannot be taken.
    fn place(&mut self, name: &str) -> Result<Option<Place>, Broken> {
        let Some(open) = self.open.last_mut() else {
            if std::mem::replace(&mut self.rooted, true) {
                return Err(self.broken("a second root element"));
            }
            let named = || Cls::parse(&name.to_ascii_uppercase()).filter(|c| !c.is_primitive()).unwrap_or(Cls::ANY);
            let ty = if self.expected == Cls::ANY { named() } else { self.expected };
            return Ok(Some(Place { parent: None, attr: None, ty }));
        };
        let Open::Object { members, lists, .. } = open else {
            self.build.wrong_kind("a text", format!("an element `{}`", shorten(name)));
            return Ok(None);
        };
        // The v1 schema spells one attribute otherwise than the model.
        let name = if name == "work_flow_id" { Attr::WORKFLOW_ID.name() } else { name };
        let Some((position, def)) = members.find(name) else {
            self.build.unknown_attribute(members.cls, name);
            return Ok(None);
        };
        let first = members.take(position);
        if first {
            members.place(position);
        }
        if !def.card.is_list() {
            if !first {
                self.build.duplicate(name);
                return Ok(None);
            }
            self.build.path.push(Step::Attr(def.attr));
            return Ok(Some(Place { parent: Some(members.id), attr: Some(def.attr), ty: def.ty }));
        }
        if first {
            lists.push(List { position, id: self.build.tree.push_list(members.id, def.attr, def.ty), len: 0 });
        }
        let Some(list) = lists.iter_mut().find(|l| l.position == position) else { return Ok(None) };
        self.build.path.extend([Step::Attr(def.attr), Step::Index(list.len)]);
        list.len += 1;
        Ok(Some(Place { parent: Some(list.id), attr: Some(def.attr), ty: def.ty }))
    }

    fn leaf(&mut self, place: Place, attributes: &[(String, String)], before: usize) -> Open {
        for (name, _) in attributes.iter().filter(|(name, _)| name != "type") {
            self.build.unknown_attribute(place.ty, name);
        }
        Open::Leaf { place, text: String::new(), steps: self.build.path.len() - before }
    }

    fn object(&mut self, place: Place, attributes: &[(String, String)], before: usize) -> Option<Open> {
        let value = |name: &str| attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.trim());
        let named = value("type").map(|t| t.rsplit(':').next().unwrap_or_default());
        let cls = self.build.class_of(place.ty, named)?;
        let id = self.build.tree.push_object(place.parent, place.attr, cls);
        let mut members = Members::new(cls, id);
        for (name, value) in attributes.iter().filter(|(name, _)| name != "type") {
            match members.find(name).filter(|(_, def)| def.xml == XmlForm::Attribute) {
                Some((position, def)) => {
                    members.take(position);
                    members.place(position);
                    self.build.tree.push_leaf(Some(id), Some(def.attr), def.ty, Kind::Text, value);
                }
                None => self.build.unknown_attribute(cls, name),
            }
        }
        Some(Open::Object { members, lists: Vec::new(), steps: self.build.path.len() - before })
    }

    fn text(&mut self, text: &str) -> Result<(), Broken> {
        if !text.chars().all(is_xml) {
            return Err(self.broken("a character that XML 1.0 does not have"));
        }
        let blank = text.trim_ascii().is_empty();
        match self.open.last_mut() {
            _ if self.skipping > 0 => {}
            Some(Open::Leaf { text: so_far, .. }) => so_far.push_str(text),
            Some(Open::Object { .. }) if !blank => self.build.wrong_kind("elements", "a text"),
            None if !blank => return Err(self.broken("text outside of the root element")),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) {
        if self.skipping > 0 {
            self.skipping -= 1;
            return;
        }
        let steps = match self.open.pop() {
            Some(Open::Object { members, steps, .. }) => {
                if !members.sorted {
                    self.build.tree.close(members.id);
                }
                steps
            }
            Some(Open::Leaf { place, text, steps }) => {
                self.put(place, &text);
                steps
            }
            None => 0,
        };
        self.build.path.truncate(self.build.path.len().saturating_sub(steps));
    }

    fn put(&mut self, place: Place, text: &str) {
        let (kind, value) = match place.ty {
            Cls::BOOLEAN => (Kind::Boolean, boolean(text.trim_ascii()).map(Cow::Borrowed)),
            Cls::REAL => (Kind::Number, number(text.trim_ascii())),
            Cls::INTEGER | Cls::INTEGER64 => (Kind::Number, number(text.trim_ascii()).filter(|n| !n.contains(['.', 'e', 'E']))),
            _ => (Kind::Text, Some(Cow::Borrowed(text))),
        };
        match value {
            Some(value) => drop(self.build.tree.push_leaf(place.parent, place.attr, place.ty, kind, &value)),
            None => self.build.wrong_kind(described(place.ty), format!("`{}`", shorten(text.trim_ascii()))),
        }
    }
}

const ENTITIES: [(&str, char); 5] = [("lt", '<'), ("gt", '>'), ("amp", '&'), ("apos", '\''), ("quot", '"')];

fn boolean(text: &str) -> Option<&'static str> {
    match text {
        "true" | "1" => Some("true"),
        "false" | "0" => Some("false"),
        _ => None,
    }
}

/// A number token as JSON writes it; the spellings that only XML has (`+1`, `.5`, `5.`, `007`) become the nearest one.
fn number(text: &str) -> Option<Cow<'_, str>> {
    if Scanner::is_number(text) {
        return Some(Cow::Borrowed(text));
    }
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.strip_prefix('+').unwrap_or(text)), |d| ("-", d));
    let (mantissa, exponent) = digits.find(['e', 'E']).map_or((digits, ""), |at| digits.split_at(at));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    let number = format!("{sign}{whole}{point}{fraction}{exponent}");
    (mantissa.contains(|c: char| c.is_ascii_digit()) && Scanner::is_number(&number)).then_some(Cow::Owned(number))
}

/// Returns the first character of a text that an XML 1.0 document cannot hold.
pub fn not_in_xml(text: &str) -> Option<char> {
    // Most texts have no byte that begins such a character: control characters are one byte, U+FFFE and U+FFFF begin with EF.
    let may_be = |b: u8| b == 0xef || (b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r'));
    if text.bytes().any(may_be) { text.chars().find(|c| !is_xml(*c)) } else { None }
}

/// The finding about a character that XML cannot carry.
pub(super) fn not_in_xml_finding(path: &[Step], c: char) -> Finding {
    Finding::error("RM0108", path_text(path), "XML 1.0 cannot carry this character").found(format!("U+{:04X}", u32::from(c)))
}

/// True for the characters that an XML 1.0 document may hold.
fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

struct Writer {
    out: String,
    path: Vec<Step>,
    /// The first character that could not be written.
    problem: Option<Finding>,
    terms: AuditTerms,
    /// True inside the code of an audit whose `preferred_term` is omitted.
    in_audit_code: bool,
}

impl Writer {
    /// The rest of a start tag and the content of an object.
    fn object(&mut self, node: NodeRef<'_>, declared: Cls) {
        let cls = node.class();
        if cls != declared {
            self.out.push_str(" xsi:type=\"");
            self.out.push_str(cls.name());
            self.out.push('"');
        }
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
                '\r' => self.out.push_str("&#13;"),
                '"' if in_attribute => self.out.push_str("&quot;"),
                '\n' if in_attribute => self.out.push_str("&#10;"),
                '\t' if in_attribute => self.out.push_str("&#9;"),
                c if is_xml(c) => self.out.push(c),
                c => drop(self.problem.get_or_insert_with(|| not_in_xml_finding(&self.path, c))),
            }
        }
    }
}

fn definition(cls: Cls, child: NodeRef<'_>) -> Option<&'static AttrDef> {
    child.attr().and_then(|attr| cls.attr(attr))
}

#[cfg(test)]
mod tests {
    use super::super::arbitrary::Generator;
    use super::super::json;
    use super::*;

    fn problems(text: &str, expected: Cls) -> Vec<String> {
        read(text, expected).err().unwrap_or_default().iter().map(Finding::one_line).collect()
    }

    /// JSON to XML and back must be the same JSON.
    fn round_trip(text: &str) -> String {
        let tree = json::read(text, Cls::ANY).unwrap();
        let root = tree.root().unwrap();
        let xml = write(root, "value").unwrap();
        let again = read(&xml, Cls::ANY).unwrap_or_else(|e| panic!("{xml}: {e:?}"));
        assert_eq!(json::write(again.root().unwrap()), text, "{xml}");
        xml
    }

    #[test]
    fn any_prefix_and_any_order_are_read() {
        let text = r#"<?xml version="1.0"?><o:name xmlns:o="http://schemas.openehr.org/v2" xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:type="o:DV_CODED_TEXT">
            <o:defining_code><o:code_string>at1</o:code_string><o:terminology_id><o:value>local</o:value></o:terminology_id></o:defining_code><o:value> a&#x20;<![CDATA[<b>]]>&amp;</o:value></o:name>"#;
        let tree = read(text, Cls::DV_TEXT).unwrap();
        assert_eq!(
            json::write(tree.root().unwrap()),
            r#"{"_type":"DV_CODED_TEXT","value":" a <b>&","defining_code":{"_type":"CODE_PHRASE","terminology_id":{"_type":"TERMINOLOGY_ID","value":"local"},"code_string":"at1"}}"#
        );
    }

    #[test]
    fn elements_are_written_in_schema_order_with_types_where_needed() {
        let text = r#"{"value":{"_type":"DV_QUANTITY","units":"mm[Hg]","magnitude":120.50},"name":{"value":"S"},"archetype_node_id":"at0004"}"#;
        let tree = json::read(text, Cls::ELEMENT).unwrap();
        let expected = concat!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<items xmlns=\"http://schemas.openehr.org/v1\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"",
            " xsi:type=\"ELEMENT\" archetype_node_id=\"at0004\"><name><value>S</value></name>",
            "<value xsi:type=\"DV_QUANTITY\"><magnitude>120.50</magnitude><units>mm[Hg]</units></value></items>"
        );
        assert_eq!(write(tree.root().unwrap(), "items").unwrap(), expected);
        assert!(!write(tree.root().unwrap(), "element").unwrap().contains("\"ELEMENT\""));
    }

    #[test]
    fn the_namespace_is_the_first_whose_schema_has_everything() {
        let identifier = r#"{"_type":"DV_IDENTIFIER","issuer":"i","assigner":"a","id":"1","type":"t"}"#;
        for (text, expected) in [
            (r#"{"_type":"DV_TEXT","value":"a"}"#, V1),
            (identifier, V1),
            (r#"{"_type":"DV_IDENTIFIER","id":"1"}"#, V2),
            (&format!(r#"{{"_type":"PARTY_IDENTIFIED","identifiers":[{identifier}]}}"#), V1),
            (r#"{"_type":"DV_SCALE","value":1.5}"#, V2),
            (r#"{"_type":"ELEMENT","null_reason":{"value":"r"}}"#, V2),
            (r#"{"_type":"DV_CODED_TEXT","value":"x","defining_code":{"code_string":"a","preferred_term":"p"}}"#, V2),
            (r#"{"_type":"INSTRUCTION_DETAILS","activity_id":"at0001"}"#, V1),
            (r#"{"_type":"INSTRUCTION_DETAILS","activity_id":"activities[at0001]"}"#, V2),
            (r#"{"_type":"ORIGINAL_VERSION","data":{"_type":"FOLDER"}}"#, V1),
            (r#"{"_type":"ORIGINAL_VERSION","data":{"_type":"EHR_STATUS"}}"#, V2),
            (r#"{"_type":"OBSERVATION","workflow_id":{"_type":"OBJECT_REF","type":"t"}}"#, V2),
        ] {
            let tree = json::read(text, Cls::ANY).unwrap();
            let written = write(tree.root().unwrap(), "value").unwrap();
            assert!(written.contains(&format!(" xmlns=\"{expected}\" ")), "{text}");
        }
        let older = read("<observation><work_flow_id><type>t</type></work_flow_id></observation>", Cls::ANY).unwrap();
        assert!(older.root().unwrap().get(Attr::WORKFLOW_ID).is_some());
    }

    #[test]
    fn a_carriage_return_survives_every_reader() {
        assert!(round_trip(r#"{"_type":"DV_TEXT","value":"a\r\nb"}"#).contains("a&#13;\nb"));
    }

    #[test]
    fn control_characters_are_a_finding_not_a_broken_document() {
        let tree = json::read(r#"{"_type":"CLUSTER","items":[{"_type":"ELEMENT","name":{"value":"a\u0001"}}]}"#, Cls::ANY).unwrap();
        let finding = write(tree.root().unwrap(), "items").unwrap_err();
        assert_eq!(finding.one_line(), "/items[0]/name/value: XML 1.0 cannot carry this character; found U+0001 (RM0108)");
        assert_eq!(problems("<dv_text><value>&#1;</value></dv_text>", Cls::ANY).len(), 1);
    }

    #[test]
    fn every_problem_is_told_with_its_path() {
        let text = r#"<element archetype_node_id="at1" other="x" xmlns:xsi="i">text<nome/><name><value>a<b/></value></name><name/>
            <value xsi:type="DV_COUNT"><magnitude>5.0</magnitude><magnitude_status>=</magnitude_status></value>
            <links><type xsi:type="CLUSTER"/></links><links><target><value/><valu/></target></links><uid><value>x</value></uid></element>"#;
        assert_eq!(
            problems(text, Cls::ELEMENT),
            [
                "/other: `ELEMENT` has no attribute `other` (RM0101)",
                "/: wrong kind of value; expected elements, found a text (RM0106)",
                "/nome: `ELEMENT` has no attribute `nome` (RM0101)",
                "/name/value: wrong kind of value; expected a text, found an element `b` (RM0106)",
                "/name: `name` stands here more than once (RM0105)",
                "/value/magnitude: wrong kind of value; expected an integer, found `5.0` (RM0106)",
                "/links[0]/type: an object of this class cannot stand here; expected DV_TEXT, found CLUSTER (RM0104)",
                "/links[1]/target/valu: `DV_EHR_URI` has no attribute `valu` (RM0101)",
                "/uid: `UID_BASED_ID` is abstract: the object must name its class; expected UID_BASED_ID (RM0102)",
            ]
        );
    }

    #[test]
    fn broken_texts_are_one_finding() {
        let deep = "<items>".repeat(10_000);
        let skipped = format!("<composition>{}", "<x>".repeat(10_000));
        for text in [
            "",
            "{}",
            "<composition>",
            "<composition></name>",
            "<composition/><composition/>",
            "<!DOCTYPE a [<!ENTITY x 'y'>]><composition/>",
            "<dv_text><value>&x;</value></dv_text>",
            "<composition/>text",
            "<a b='1' b='2'/>",
            &deep,
            &skipped,
        ] {
            let found = problems(text, Cls::COMPOSITION);
            assert!(found.len() == 1 && found[0].contains("not readable as XML: line "), "{:.40}: {found:?}", text);
        }
        assert!(problems(&deep, Cls::CLUSTER)[0].contains("RM0002"));
    }

    #[test]
    fn numbers_that_only_xml_has_become_numbers_of_json() {
        for (sent, kept) in [("+1", "1"), (".5", "0.5"), ("5.", "5"), ("007", "7"), ("-00.50", "-0.50"), ("1E4", "1E4"), (" 2 ", "2")] {
            let tree = read(&format!("<dv_quantity><magnitude>{sent}</magnitude></dv_quantity>"), Cls::ANY).unwrap();
            assert_eq!(tree.root().unwrap().text_at(Attr::MAGNITUDE), Some(kept));
        }
        for sent in ["NaN", "INF", "", ".", "1,5", "0x1", "1 2"] {
            assert_eq!(problems(&format!("<dv_quantity><magnitude>{sent}</magnitude></dv_quantity>"), Cls::ANY).len(), 1, "{sent}");
        }
    }

    #[test]
    fn damaged_texts_are_answered() {
        for seed in 0..300 {
            let mut generator = Generator::new(seed);
            let tree = generator.tree();
            let text = write(tree.root().unwrap(), "value").unwrap();
            for _ in 0..5 {
                let _ = read(&generator.damage(&text), Cls::ANY);
            }
        }
        let many: String = (0..20_000).map(|i| format!(" a{i}='x'")).collect();
        assert!(problems(&format!("<composition{many}/>"), Cls::COMPOSITION)[0].contains("too many attributes"));
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for seed in 0..400 {
            let tree = Generator::new(seed).without_empty_lists().tree();
            let root = tree.root().unwrap();
            let text = write(root, "value").unwrap();
            let again = read(&text, Cls::ANY).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!(json::write(again.root().unwrap()), json::write(root), "{text}");
        }
    }
}
