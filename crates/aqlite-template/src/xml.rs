//! An XML text as a tree of elements with their positions in the source, for the template readers.
//!
//! Namespaces and prefixes are ignored. Document types and custom entities are rejected. Depth and
//! size are limited. White space between elements is dropped.

use aqlite_rm::diag::{Diagnostic, Span};
use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// The maximum size of a template in bytes.
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// The maximum number of elements. Each needs many times the memory of its shortest text.
const MAX_ELEMENTS: usize = 500_000;
/// The maximum number of attributes of one element. Each is compared with those before it.
const MAX_ATTRIBUTES: usize = 64;
/// The maximum nesting of elements.
pub(crate) const MAX_DEPTH: usize = 128;

/// A parsed XML text.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    elements: Vec<Element<'a>>,
}

#[derive(Debug, Default)]
struct Element<'a> {
    name: &'a str,
    span: Span,
    attributes: Vec<(&'a str, String)>,
    text: String,
    children: Vec<usize>,
}

/// One element of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Xml<'d> {
    document: &'d Document<'d>,
    element: &'d Element<'d>,
}

impl<'a> Document<'a> {
    /// Parses a text. There is at most one diagnostic, because the rest of a malformed text is
    /// unreliable.
    pub(crate) fn parse(source: &'a str) -> Result<Document<'a>, Diagnostic> {
        if source.len() > MAX_BYTES {
            return Err(too_large(source));
        }
        let body = source.trim_start_matches('\u{feff}');
        let mut builder = XmlBuilder {
            source,
            base: source.len() - body.len(),
            reader: Reader::from_str(body),
            elements: Vec::new(),
            open: Vec::new(),
        };
        builder.run()?;
        let elements = builder.elements;
        if elements.is_empty() {
            let message = "the text has no XML element";
            let problem = Diagnostic::error("TPL0101", Span::new(0, source.len()), message);
            return Err(problem.with_help(
                "send an operational template (OPT 1.4): XML with the root element `template`",
            ));
        }
        Ok(Document { elements })
    }

    /// Returns the root element.
    pub(crate) fn root(&'a self) -> Option<Xml<'a>> {
        self.elements.first().map(|element| Xml {
            document: self,
            element,
        })
    }
}

/// A builder of documents, for readers of other syntaxes than XML.
#[derive(Default)]
pub(super) struct Elements<'a>(Vec<Element<'a>>);

impl<'a> Elements<'a> {
    /// Creates an empty builder, after checking the size of the source text.
    pub(super) fn of(source: &str) -> Result<Elements<'a>, Diagnostic> {
        if source.len() > MAX_BYTES {
            Err(too_large(source))
        } else {
            Ok(Elements::default())
        }
    }

    /// Adds an element below another one and returns its index.
    pub(super) fn add(
        &mut self,
        parent: Option<usize>,
        name: &'static str,
        span: Span,
    ) -> Result<usize, Diagnostic> {
        if self.0.len() >= MAX_ELEMENTS {
            return Err(too_many_elements(span));
        }
        let index = self.0.len();
        self.0.push(Element {
            name,
            span,
            ..Element::default()
        });
        if let Some(parent) = parent.and_then(|parent| self.0.get_mut(parent)) {
            parent.children.push(index);
        }
        Ok(index)
    }

    /// Adds an attribute to an element.
    pub(super) fn attribute(&mut self, element: usize, name: &'static str, value: &str) {
        if let Some(element) = self.0.get_mut(element) {
            element.attributes.push((name, value.to_owned()));
        }
    }

    /// Adds an element that contains only a text.
    pub(super) fn text_child(
        &mut self,
        parent: usize,
        name: &'static str,
        text: &str,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let index = self.add(Some(parent), name, span)?;
        if let Some(element) = self.0.get_mut(index) {
            text.clone_into(&mut element.text);
        }
        Ok(())
    }

    /// Returns the document.
    pub(super) fn into_document(self) -> Document<'a> {
        Document { elements: self.0 }
    }
}

fn too_large(source: &str) -> Diagnostic {
    Diagnostic::error(
        "TPL0104",
        Span::new(0, source.len()),
        format!("the template has {} bytes", source.len()),
    )
    .with_help(format!("a template may have at most {MAX_BYTES} bytes"))
}

fn too_many_elements(span: Span) -> Diagnostic {
    let message = format!("the template has more than {MAX_ELEMENTS} elements");
    Diagnostic::error("TPL0104", span, message).with_help("split the template, or leave some out")
}

struct XmlBuilder<'a> {
    source: &'a str,
    /// The number of bytes before the parsed text: a byte order mark.
    base: usize,
    reader: Reader<&'a [u8]>,
    elements: Vec<Element<'a>>,
    open: Vec<usize>,
}

impl<'a> XmlBuilder<'a> {
    fn run(&mut self) -> Result<(), Diagnostic> {
        loop {
            let before = self.position();
            let event = self.reader.read_event();
            let span = Span::new(before, self.position());
            match event {
                Ok(Event::Start(tag)) => self.open(&tag, span)?,
                Ok(Event::Empty(tag)) => {
                    // An empty element has no end event.
                    self.open(&tag, span)?;
                    self.open.pop();
                }
                Ok(Event::End(_)) => drop(self.open.pop()),
                Ok(Event::Text(text)) => self.character_data(&text.xml10_content(), span)?,
                Ok(Event::CData(text)) => self.text(&text.xml10_content(), span)?,
                Ok(Event::GeneralRef(reference)) => {
                    let c = resolved(&reference).ok_or_else(|| foreign_entity(span))?;
                    self.text(c.encode_utf8(&mut [0; 4]), span)?;
                }
                // Entities of a document type could expand without bound.
                Ok(Event::DocType(_)) => {
                    let message = "the text declares a document type";
                    return Err(Diagnostic::error("TPL0102", span, message)
                        .with_help("remove the `<!DOCTYPE …>` declaration"));
                }
                Ok(Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => {}
                Ok(Event::Eof) => return self.end(),
                Err(e) => return Err(self.broken(&e.to_string())),
            }
        }
    }

    fn position(&self) -> usize {
        self.base + usize::try_from(self.reader.buffer_position()).unwrap_or_default()
    }

    fn end(&self) -> Result<(), Diagnostic> {
        let Some(open) = self.open.last().and_then(|i| self.elements.get(*i)) else {
            return Ok(());
        };
        Err(Diagnostic::error(
            "TPL0101",
            open.span,
            format!("`<{}>` is never closed", open.name),
        )
        .with_help("send the whole text"))
    }

    fn broken(&self, reason: &str) -> Diagnostic {
        let at = self.base + usize::try_from(self.reader.error_position()).unwrap_or_default();
        Diagnostic::error(
            "TPL0101",
            Span::new(at, self.position().max(at)),
            format!("the text is not well-formed XML: {reason}"),
        )
        .with_help("open the file in an XML editor and correct it there")
    }

    fn open(&mut self, tag: &BytesStart<'_>, span: Span) -> Result<(), Diagnostic> {
        self.check_place(span)?;
        // The name is a slice of the source text, so that elements need no copy.
        let qualified = tag.name().as_ref().len();
        let local = tag.local_name().as_ref().len();
        let end = span.start + 1 + qualified;
        let name = self
            .source
            .get(end.saturating_sub(local)..end)
            .unwrap_or_default();
        let index = self.elements.len();
        let attributes = self.attributes(tag, span)?;
        self.elements.push(Element {
            name,
            span,
            attributes,
            ..Element::default()
        });
        if let Some(parent) = self.open.last().and_then(|i| self.elements.get_mut(*i)) {
            parent.children.push(index);
        }
        self.open.push(index);
        Ok(())
    }

    /// Checks that one element more may be stored, before it is: each needs many times the memory of
    /// its text.
    fn check_place(&self, span: Span) -> Result<(), Diagnostic> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("elements are nested deeper than {MAX_DEPTH}");
            return Err(Diagnostic::error("TPL0103", span, message));
        }
        if self.elements.len() >= MAX_ELEMENTS {
            return Err(too_many_elements(span));
        }
        if self.open.is_empty() && !self.elements.is_empty() {
            let message = "the text has a second root element";
            return Err(Diagnostic::error("TPL0101", span, message));
        }
        Ok(())
    }

    fn attributes(
        &self,
        tag: &BytesStart<'_>,
        span: Span,
    ) -> Result<Vec<(&'a str, String)>, Diagnostic> {
        let mut found = Vec::new();
        // The parser compares each attribute with those before it, so the count is limited.
        for (count, attribute) in tag.attributes().enumerate() {
            if count >= MAX_ATTRIBUTES {
                let message = format!("the element has more than {MAX_ATTRIBUTES} attributes");
                return Err(Diagnostic::error("TPL0104", span, message)
                    .with_help("remove the attributes that templates do not use"));
            }
            let attribute = attribute.map_err(|e| {
                let message = format!("the text is not well-formed XML: {e}");
                Diagnostic::error("TPL0101", span, message)
            })?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|_| foreign_entity(span))?;
            let key = attribute.key.local_name();
            let known = ATTRIBUTES.iter().find(|name| **name == key.as_ref());
            found.extend(known.map(|name| (*name, value.into_owned())));
        }
        Ok(found)
    }

    /// Takes a text outside of CDATA sections. It must not contain the end of such a section (XML 1.0,
    /// section 2.4).
    fn character_data(&mut self, text: &str, span: Span) -> Result<(), Diagnostic> {
        if text.contains("]]>") {
            let message = "the text is not well-formed XML: `]]>` outside of a CDATA section";
            return Err(Diagnostic::error("TPL0101", span, message));
        }
        self.text(text, span)
    }

    fn text(&mut self, text: &str, span: Span) -> Result<(), Diagnostic> {
        match self.open.last().and_then(|i| self.elements.get_mut(*i)) {
            // White space between elements is not a text.
            Some(element) if !(element.text.is_empty() && text.trim().is_empty()) => {
                element.text.push_str(text)
            }
            None if !text.trim().is_empty() => {
                return Err(Diagnostic::error(
                    "TPL0101",
                    span,
                    "the text is not well-formed XML: text outside of the root element",
                ));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The XML attributes that templates use. All others (namespaces, schema locations) are ignored.
const ATTRIBUTES: [&str; 28] = [
    "type",
    "id",
    "code",
    "archetype_id",
    "language",
    "terminology",
    "path",
    "slot_node_id",
    // AOM 2 only.
    "rm_type_name",
    "rm_attribute_name",
    "node_id",
    "occurrences",
    "existence",
    "cardinality",
    "archetype_ref",
    "target_path",
    "pattern_constraint",
    "physical_id",
    "rm_publisher",
    "rm_package",
    "rm_class",
    "release_version",
    "lower",
    "upper",
    "lower_included",
    "upper_included",
    "lower_unbounded",
    "upper_unbounded",
];

fn named(entity: &str) -> Option<char> {
    [
        ("lt", '<'),
        ("gt", '>'),
        ("amp", '&'),
        ("apos", '\''),
        ("quot", '"'),
    ]
    .into_iter()
    .find(|(n, _)| *n == entity)
    .map(|(_, c)| c)
}

/// Returns the character of a reference. Only predefined entities are known: others need a document
/// type, which is rejected.
fn resolved(reference: &BytesRef<'_>) -> Option<char> {
    match reference.resolve_char_ref() {
        Ok(Some(c)) => Some(c),
        _ => named(&reference.xml10_content()),
    }
}

fn foreign_entity(span: Span) -> Diagnostic {
    Diagnostic::error(
        "TPL0102",
        span,
        "the text uses an entity that XML does not predefine",
    )
    .with_help("write the character itself, or `&#…;`")
}

/// Reads a boolean of XML Schema: `true`, `false`, `1` or `0`, in any case.
pub(crate) fn truth(text: &str) -> Option<bool> {
    let is = |word: &str| text.trim().eq_ignore_ascii_case(word);
    match (is("true") || is("1"), is("false") || is("0")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

impl<'d> Xml<'d> {
    /// Returns the local name without prefix.
    pub(crate) fn name(self) -> &'d str {
        self.element.name
    }

    /// Returns the position of the start tag.
    pub(crate) fn span(self) -> Span {
        self.element.span
    }

    /// Returns the value of an attribute by local name.
    pub(crate) fn attribute(self, name: &str) -> Option<&'d str> {
        self.element
            .attributes
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Returns the `xsi:type` without prefix.
    pub(crate) fn xsi_type(self) -> Option<&'d str> {
        self.attribute("type")
            .map(|t| t.trim().rsplit(':').next().unwrap_or_default())
    }

    /// Returns the text of this element itself without surrounding white space.
    pub(crate) fn text(self) -> &'d str {
        self.element.text.trim()
    }

    /// Returns the text of this element itself.
    pub(crate) fn exact_text(self) -> &'d str {
        &self.element.text
    }

    /// Returns all child elements.
    pub(crate) fn children(self) -> impl Iterator<Item = Xml<'d>> {
        let document = self.document;
        self.element
            .children
            .iter()
            .filter_map(move |i| document.elements.get(*i))
            .map(move |element| Xml { document, element })
    }

    /// Returns the child elements with this name.
    pub(crate) fn all(self, name: &'d str) -> impl Iterator<Item = Xml<'d>> {
        self.children().filter(move |c| c.name() == name)
    }

    /// Returns the first child element with this name.
    pub(crate) fn child(self, name: &str) -> Option<Xml<'d>> {
        self.children().find(|c| c.name() == name)
    }

    /// Returns the text at the end of a chain of child elements.
    pub(crate) fn text_along(self, names: &[&str]) -> Option<&'d str> {
        names
            .iter()
            .try_fold(self, |at, name| at.child(name))
            .map(Xml::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_longest_length() {
        let of_length = |length: usize| format!("<a/>{}", " ".repeat(length - 4));
        assert!(Document::parse(&of_length(MAX_BYTES)).is_ok());
        assert!(Document::parse(&of_length(MAX_BYTES + 1)).is_err());
    }

    #[test]
    fn prefixes_entities_and_cdata_are_resolved() {
        let document = Document::parse("\u{feff}<o:a xmlns:o='x' xsi:type='o:B'><o:c>1 &lt; 2<![CDATA[ & 3]]> &#228;</o:c><d/></o:a>").unwrap();
        let root = document.root().unwrap();
        assert_eq!((root.name(), root.xsi_type()), ("a", Some("B")));
        assert_eq!(root.text_along(&["c"]), Some("1 < 2 & 3 ä"));
        assert_eq!(root.child("d").map(Xml::span), Some(Span::new(77, 81)));
    }

    #[test]
    fn malformed_xml_is_reported_with_reason() {
        let deep = "<a>".repeat(200);
        let wide = format!(
            "<a {}/>",
            (0..200_000)
                .map(|i| format!("a{i}='' "))
                .collect::<String>()
        );
        for (text, code) in [
            ("", "TPL0101"),
            ("<a><b></a>", "TPL0101"),
            ("<a>", "TPL0101"),
            ("<a/><b/>", "TPL0101"),
            ("{}", "TPL0101"),
            ("<a>]]></a>", "TPL0101"),
            ("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "TPL0102"),
            ("<a>&x;</a>", "TPL0102"),
            (deep.as_str(), "TPL0103"),
            (wide.as_str(), "TPL0104"),
        ] {
            assert_eq!(
                Document::parse(text).err().map(|d| d.code),
                Some(code),
                "{}",
                text.get(..80).unwrap_or(text)
            );
        }
    }
}
