//! Reads canonical XML: namespace v1, v2 or none, elements in any order.

use super::super::build::{Builder, Limits, Members, Step, described, shorten};
use super::super::class::{Attr, Cls, XmlForm};
use super::super::json::Scanner;
use super::super::tree::{Kind, NodeId, Tree};
use super::is_xml;
use super::namespaces::Namespaces;
use super::root::{class_named, may_be_root, unknown_root};
use crate::diag::{Finding, LineIndex};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::borrow::Cow;

/// Reads an object of class `expected`, or of a descendant that `xsi:type` names.
///
/// With [`Cls::ANY`] the name of the root element may name the class (`composition`, `ehr_status`).
/// The root element must have a name that the Reference Model or its schema gives to an object of
/// the class: that of the class itself, of an ancestor or of a descendant, that of an attribute of
/// the class, or `items`, the root of any LOCATABLE in the schema.
///
/// # Errors
/// All violations of the class table, each with its path (codes RM0101–RM0107); or one finding with
/// line and column if the text is not well-formed XML or nested too deep (RM0003, RM0002).
pub fn read(text: &str, expected: Cls) -> Result<Tree, Vec<Finding>> {
    read_within(text, expected, Limits::default())
}

/// Reads like [`read`], with other limits.
///
/// # Errors
/// As [`read`].
pub fn read_within(text: &str, expected: Cls, limits: Limits) -> Result<Tree, Vec<Finding>> {
    let namespaces = Some(Namespaces::default());
    read_scoped(text, (expected, limits), namespaces)
}

/// Reads an element of a longer document like [`read`]. [`super::elements`] has checked its
/// namespaces, some of which the elements around it declare.
///
/// # Errors
/// As [`read`].
pub fn read_element(text: &str, expected: Cls) -> Result<Tree, Vec<Finding>> {
    read_scoped(text, (expected, Limits::default()), None)
}

fn read_scoped(
    text: &str,
    (expected, limits): (Cls, Limits),
    namespaces: Option<Namespaces>,
) -> Result<Tree, Vec<Finding>> {
    let body = text.trim_start_matches('\u{feff}');
    let reader = Reader::from_str(body);
    let mut document = Document {
        reader,
        // XML has a start and an end tag for each value, so about twice the bytes of JSON.
        build: Builder::new(body.len() / 2, limits),
        namespaces,
        open: Vec::new(),
        skipping: 0,
        rooted: false,
        expected,
        other_class: None,
    };
    match document.run() {
        Ok(()) => document.build.finish(),
        // The reader stops with an error once the findings are full. The findings are the result
        // then.
        Err(_) if document.build.is_full() => document.build.finish(),
        Err(broken) => {
            let code = if broken.too_deep { "RM0002" } else { "RM0003" };
            Err(vec![unreadable(body, code, broken.offset, &broken.message)])
        }
    }
}

pub(super) fn offset_of(position: u64) -> usize {
    usize::try_from(position).unwrap_or_default()
}

pub(super) fn unreadable(body: &str, code: &'static str, offset: usize, message: &str) -> Finding {
    let (line, column) = LineIndex::new(body).line_column(offset);
    Finding::error(
        code,
        "",
        format!("not readable as XML: line {line}, column {column}: {message}"),
    )
}

/// The maximum number of attributes of an element, namespaces not counted. The schema needs fewer.
const MAX_ATTRIBUTES: usize = 16;
/// The maximum length in bytes of a start tag that is checked for repeated attributes.
const MAX_ATTRIBUTE_BYTES: usize = 16 << 10;

struct Broken {
    offset: usize,
    message: String,
    too_deep: bool,
}

/// An element whose end tag has not been read.
enum Open {
    Object {
        members: Members,
        lists: Vec<List>,
        steps: usize,
    },
    Leaf {
        place: Place,
        text: String,
        steps: usize,
    },
}

/// A list attribute of an open object.
struct List {
    position: usize,
    id: NodeId,
    len: usize,
}

/// The destination of a value: parent node, attribute and declared class.
#[derive(Clone, Copy)]
struct Place {
    parent: Option<NodeId>,
    attr: Option<Attr>,
    ty: Cls,
}

struct Document<'a> {
    reader: Reader<&'a [u8]>,
    build: Builder,
    /// `None` if they were checked before.
    namespaces: Option<Namespaces>,
    open: Vec<Open>,
    /// The depth below an element that was rejected.
    skipping: usize,
    rooted: bool,
    expected: Cls,
    /// The class that the name of the root element names, if it is not the expected one.
    other_class: Option<Cls>,
}

impl Document<'_> {
    fn run(&mut self) -> Result<(), Broken> {
        loop {
            let before = offset_of(self.reader.buffer_position());
            let event = self.reader.read_event().map_err(|e| {
                let offset = usize::try_from(self.reader.error_position()).unwrap_or_default();
                Broken {
                    offset,
                    message: e.to_string(),
                    too_deep: false,
                }
            })?;
            match event {
                Event::Start(tag) => self.start(&tag, before)?,
                Event::Empty(tag) => {
                    self.start(&tag, before)?;
                    self.end();
                }
                Event::End(_) => self.end(),
                Event::Text(text) => self.character_data(&text.xml10_content())?,
                Event::CData(text) => self.text(&text.xml10_content())?,
                // quick-xml reports each reference to an entity as an event between two texts.
                Event::GeneralRef(reference) => {
                    let named =
                        |name: &str| ENTITIES.iter().find(|(n, _)| *n == name).map(|(_, c)| *c);
                    let resolved = if reference.is_char_ref() {
                        reference.resolve_char_ref().ok().flatten()
                    } else {
                        named(&reference.xml10_content())
                    };
                    let character = resolved
                        .ok_or_else(|| self.broken("an entity that XML does not predefine"))?;
                    self.text(character.encode_utf8(&mut [0; 4]))?;
                }
                // A document type could define entities, whose expansion multiplies the length of
                // the input.
                Event::DocType(_) => return Err(self.broken("a document type is not accepted")),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::Eof if !self.open.is_empty() || self.skipping > 0 || !self.rooted => {
                    return Err(self.broken("the document ends too early"));
                }
                Event::Eof => return Ok(()),
            }
        }
    }

    fn broken(&self, message: &str) -> Broken {
        Broken {
            offset: usize::try_from(self.reader.buffer_position()).unwrap_or_default(),
            message: message.to_owned(),
            too_deep: false,
        }
    }

    /// Begins an element, whose tag is at an offset.
    fn start(&mut self, tag: &BytesStart<'_>, offset: usize) -> Result<(), Broken> {
        if self.build.is_full() {
            return Err(self.broken("too many findings"));
        }
        if self.open.len() + self.skipping >= self.build.limits.depth {
            return Err(Broken {
                too_deep: true,
                ..self.broken("nested too deep")
            });
        }
        if let Some(namespaces) = &mut self.namespaces {
            namespaces.enter(tag).map_err(|message| Broken {
                offset,
                message,
                too_deep: false,
            })?;
        }
        // The attributes of skipped elements are read too, because they must be well formed.
        let attributes = attributes(tag).map_err(|message| self.broken(&message))?;
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
        // A rejected element is skipped with everything below it.
        match accepted {
            Some(open) => self.open.push(open),
            None => {
                self.build.path.truncate(before);
                self.skipping = 1;
            }
        }
        Ok(())
    }

    /// Returns the destination of a starting element and updates the path. Returns `None` after
    /// reporting that the element is not allowed.
    fn place(&mut self, name: &str) -> Result<Option<Place>, Broken> {
        let Some(open) = self.open.last_mut() else {
            if std::mem::replace(&mut self.rooted, true) {
                return Err(self.broken("a second root element"));
            }
            return Ok(Some(self.root_place(name)));
        };
        let Open::Object { members, lists, .. } = open else {
            self.build
                .wrong_kind("a text", format!("an element `{}`", shorten(name)));
            return Ok(None);
        };
        Ok(place_in_object(&mut self.build, members, lists, name))
    }

    /// Returns the destination of the root element.
    ///
    /// The root of a part of a document was checked with the document, which names it by an
    /// attribute. A `contribution` is an OBJECT_REF there.
    fn root_place(&mut self, name: &str) -> Place {
        let named = class_named(name);
        let ty = if self.expected == Cls::ANY {
            named.unwrap_or(Cls::ANY)
        } else {
            self.expected
        };
        if self.namespaces.is_some() && !may_be_root(name, ty) {
            match named {
                Some(named) => self.other_class = Some(named),
                None => self.build.report(unknown_root(name, ty)),
            }
        }
        Place {
            parent: None,
            attr: None,
            ty,
        }
    }

    fn leaf(&mut self, place: Place, attributes: &[(String, String)], before: usize) -> Open {
        for (name, _) in attributes.iter().filter(|(name, _)| name != "type") {
            self.build.unknown_attribute(place.ty, name);
        }
        Open::Leaf {
            place,
            text: String::new(),
            steps: self.build.path.len() - before,
        }
    }

    fn object(
        &mut self,
        place: Place,
        attributes: &[(String, String)],
        before: usize,
    ) -> Option<Open> {
        let named = named_class(attributes);
        let other = self.other_class.filter(|_| place.parent.is_none());
        if let (Some(other), Some(_)) = (other, named) {
            let name = other.name().to_ascii_lowercase();
            self.build.report(unknown_root(&name, place.ty));
        }
        let named = named.or(other.map(Cls::name));
        let cls = self.build.class_of(place.ty, named)?;
        let attr = place.attr;
        let id = self.build.push_object(place.parent, attr, cls, named);
        let mut members = Members::new(cls, id);
        for (name, value) in attributes.iter().filter(|(name, _)| name != "type") {
            match members
                .find(name)
                .filter(|(_, def)| def.xml == XmlForm::Attribute)
            {
                Some((position, def)) => {
                    members.take(position);
                    members.place(position);
                    self.build
                        .tree
                        .push_leaf(Some(id), Some(def.attr), def.ty, Kind::Text, value);
                }
                None => self.build.unknown_attribute(cls, name),
            }
        }
        Some(Open::Object {
            members,
            lists: Vec::new(),
            steps: self.build.path.len() - before,
        })
    }

    /// Takes a text outside of CDATA sections. It must not contain the end of such a section (XML 1.0,
    /// section 2.4).
    fn character_data(&mut self, text: &str) -> Result<(), Broken> {
        if text.contains("]]>") {
            return Err(self.broken("`]]>` outside of a CDATA section"));
        }
        self.text(text)
    }

    fn text(&mut self, text: &str) -> Result<(), Broken> {
        if !text.chars().all(is_xml) {
            return Err(self.broken("a character that XML 1.0 does not have"));
        }
        let blank = text.trim_ascii().is_empty();
        match self.open.last_mut() {
            _ if self.skipping > 0 => {}
            Some(Open::Leaf { text: so_far, .. }) => so_far.push_str(text),
            Some(Open::Object { .. }) if !blank => self.build.stray_text(text),
            None if !blank => return Err(self.broken("text outside of the root element")),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) {
        if let Some(namespaces) = &mut self.namespaces {
            namespaces.leave();
        }
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
        self.build
            .path
            .truncate(self.build.path.len().saturating_sub(steps));
    }

    fn put(&mut self, place: Place, text: &str) {
        let (kind, value) = match place.ty {
            Cls::BOOLEAN => (Kind::Boolean, boolean(text.trim_ascii()).map(Cow::Borrowed)),
            Cls::REAL => (Kind::Number, number(text.trim_ascii())),
            Cls::INTEGER | Cls::INTEGER64 => (
                Kind::Number,
                number(text.trim_ascii()).filter(|n| !n.contains(['.', 'e', 'E'])),
            ),
            _ => (Kind::Text, Some(Cow::Borrowed(text))),
        };
        match value {
            Some(value) => {
                self.build
                    .tree
                    .push_leaf(place.parent, place.attr, place.ty, kind, &value);
            }
            None => self.build.wrong_kind(
                described(place.ty),
                format!("`{}`", shorten(text.trim_ascii())),
            ),
        }
    }
}

/// Returns the XML attributes of an element by local name, without namespaces and schema locations.
///
/// # Errors
/// The rule that is broken.
pub(super) fn attributes(tag: &BytesStart<'_>) -> Result<Vec<(String, String)>, String> {
    let mut out = Vec::new();
    let mut all = tag.attributes();
    // The check of quick-xml is quadratic: it compares each name with all before it.
    all.with_checks(tag.attributes_raw().len() <= MAX_ATTRIBUTE_BYTES);
    for attribute in all {
        let attribute = attribute.map_err(|e| e.to_string())?;
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
        let value = attribute
            .normalized_value(XmlVersion::Implicit1_0)
            .map_err(|e| e.to_string())?;
        if !value.chars().all(is_xml) {
            return Err("a character that XML 1.0 does not have".to_owned());
        }
        out.push((name.to_owned(), value.into_owned()));
        if out.len() > MAX_ATTRIBUTES {
            return Err("an element has too many attributes".to_owned());
        }
    }
    Ok(out)
}

/// Returns the class that an element names: the value of `xsi:type` without its prefix
/// (`oe:DV_TEXT`).
pub(super) fn named_class(attributes: &[(String, String)]) -> Option<&str> {
    let (_, value) = attributes.iter().find(|(name, _)| name == "type")?;
    value.trim().rsplit(':').next()
}

const ENTITIES: [(&str, char); 5] = [
    ("lt", '<'),
    ("gt", '>'),
    ("amp", '&'),
    ("apos", '\''),
    ("quot", '"'),
];

/// Returns the destination of an element in an open object and updates the path. Returns `None`
/// after reporting that the object has no such attribute, or has it already.
fn place_in_object(
    build: &mut Builder,
    members: &mut Members,
    lists: &mut Vec<List>,
    name: &str,
) -> Option<Place> {
    // The v1 schema spells this attribute differently from the model.
    let name = if name == "work_flow_id" {
        Attr::WORKFLOW_ID.name()
    } else {
        name
    };
    let Some((position, def)) = members.find(name) else {
        build.unknown_attribute(members.cls, name);
        return None;
    };
    let first = members.take(position);
    if first {
        members.place(position);
    }
    if !def.card.is_list() {
        if !first {
            build.duplicate(name);
            return None;
        }
        build.path.push(Step::Attr(def.attr));
        return Some(Place {
            parent: Some(members.id),
            attr: Some(def.attr),
            ty: def.ty,
        });
    }
    if first {
        lists.push(List {
            position,
            id: build.tree.push_list(members.id, def.attr, def.ty),
            len: 0,
        });
    }
    let list = lists.iter_mut().find(|l| l.position == position)?;
    build
        .path
        .extend([Step::Attr(def.attr), Step::Index(list.len)]);
    list.len += 1;
    Some(Place {
        parent: Some(list.id),
        attr: Some(def.attr),
        ty: def.ty,
    })
}

fn boolean(text: &str) -> Option<&'static str> {
    match text {
        "true" | "1" => Some("true"),
        "false" | "0" => Some("false"),
        _ => None,
    }
}

/// Converts an XML number to a JSON number token.
///
/// Spellings that only XML allows (`+1`, `.5`, `5.`, `007`) are normalized.
fn number(text: &str) -> Option<Cow<'_, str>> {
    if Scanner::is_number(text) {
        return Some(Cow::Borrowed(text));
    }
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text.strip_prefix('+').unwrap_or(text)), |d| ("-", d));
    let (mantissa, exponent) = digits
        .find(['e', 'E'])
        .map_or((digits, ""), |at| digits.split_at(at));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    let number = format!("{sign}{whole}{point}{fraction}{exponent}");
    (mantissa.contains(|c: char| c.is_ascii_digit()) && Scanner::is_number(&number))
        .then_some(Cow::Owned(number))
}
