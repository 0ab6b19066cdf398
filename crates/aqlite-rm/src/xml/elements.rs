//! The child elements of a long document, each as a text of its own.

use super::super::build::{Builder, Limits};
use super::super::class::Cls;
use super::namespaces::Namespaces;
use super::read::{attributes, named_class, offset_of, unreadable};
use super::root::{may_be_root, unknown_root};
use crate::diag::Finding;
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::borrow::Cow;

/// Returns the child elements of the root element by local name, each as a text for
/// [`super::read_element`]. The root element is an object of class `class`.
///
/// # Errors
/// All findings about the root element: its name, its class, its attributes, and texts between its
/// children (RM0101, RM0103, RM0104, RM0106). Or one finding with line and column if the text is not
/// well-formed, has an element of another namespace, or is nested too deep (RM0003, RM0002).
pub fn elements(text: &str, class: Cls) -> Result<Vec<(Cow<'_, str>, &str)>, Vec<Finding>> {
    children(text, Some(class))
}

/// Returns the child elements of an element of any name, for places in a document that another reader
/// checks.
///
/// # Errors
/// As [`elements`], without findings about the element itself.
pub fn child_elements(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, Vec<Finding>> {
    children(text, None)
}

fn children(text: &str, class: Option<Cls>) -> Result<Vec<(Cow<'_, str>, &str)>, Vec<Finding>> {
    let body = text.trim_start_matches('\u{feff}');
    let mut reader = Reader::from_str(body);
    let mut document = Elements {
        body,
        class,
        build: Builder::new(0, Limits::default()),
        namespaces: Namespaces::default(),
        depth: 0,
        rooted: false,
        begun: (String::new(), 0),
        found: Vec::new(),
    };
    loop {
        let before = offset_of(reader.buffer_position());
        let event = reader.read_event().map_err(|error| {
            let offset = offset_of(reader.error_position());
            vec![unreadable(body, "RM0003", offset, &error.to_string())]
        })?;
        let after = offset_of(reader.buffer_position());
        let is_end = document.take(&event, before, after);
        let is_end = is_end
            .map_err(|Broken { code, message }| vec![unreadable(body, code, before, &message)])?;
        if is_end {
            // The tree is empty: the builder only collects the findings.
            document.build.finish()?;
            return Ok(document.found);
        }
    }
}

/// A document that cannot be read on.
struct Broken {
    code: &'static str,
    message: String,
}

impl Broken {
    fn malformed(message: impl Into<String>) -> Broken {
        Broken {
            code: "RM0003",
            message: message.into(),
        }
    }
}

struct Elements<'a> {
    body: &'a str,
    /// The class of the root element; `None` if it is not checked.
    class: Option<Cls>,
    build: Builder,
    namespaces: Namespaces,
    depth: usize,
    rooted: bool,
    /// Name and offset of the child that is open.
    begun: (String, usize),
    found: Vec<(Cow<'a, str>, &'a str)>,
}

impl Elements<'_> {
    /// Takes the event between two offsets. Returns whether it is the end of the document.
    fn take(&mut self, event: &Event<'_>, before: usize, after: usize) -> Result<bool, Broken> {
        match event {
            Event::Start(tag) => {
                self.start(tag, before)?;
                self.depth += 1;
                if self.depth > Limits::default().depth {
                    return Err(Broken {
                        code: "RM0002",
                        message: "nested too deep".to_owned(),
                    });
                }
            }
            Event::Empty(tag) => {
                self.start(tag, before)?;
                self.end(after);
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                self.end(after);
            }
            Event::Text(text) => self.text(&text.xml10_content())?,
            Event::CData(text) => self.text(&text.xml10_content())?,
            Event::GeneralRef(reference) => {
                self.text(&format!("&{};", reference.xml10_content()))?;
            }
            Event::DocType(_) => {
                return Err(Broken::malformed("a document type is not accepted"));
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof if self.depth > 0 || !self.rooted => {
                return Err(Broken::malformed("the document ends too early"));
            }
            Event::Eof => return Ok(true),
        }
        Ok(false)
    }

    fn start(&mut self, tag: &BytesStart<'_>, offset: usize) -> Result<(), Broken> {
        self.namespaces.enter(tag).map_err(Broken::malformed)?;
        match self.depth {
            0 => self.root(tag),
            1 => {
                self.begun = (tag.local_name().as_ref().to_owned(), offset);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks the root element.
    fn root(&mut self, tag: &BytesStart<'_>) -> Result<(), Broken> {
        if std::mem::replace(&mut self.rooted, true) {
            return Err(Broken::malformed("a second root element"));
        }
        let attributes = attributes(tag).map_err(Broken::malformed)?;
        let Some(class) = self.class else {
            return Ok(());
        };
        let local = tag.local_name();
        let name: &str = local.as_ref();
        if !may_be_root(name, class) {
            self.build.report(unknown_root(name, class));
        }
        if let Some(named) = named_class(&attributes) {
            self.build.class_of(class, Some(named));
        }
        for (name, _) in attributes.iter().filter(|(name, _)| name != "type") {
            self.build.unknown_attribute(class, name);
        }
        Ok(())
    }

    /// Ends an element, whose parent has the current depth.
    fn end(&mut self, offset: usize) {
        self.namespaces.leave();
        if self.depth == 1 {
            let (name, begun) = std::mem::take(&mut self.begun);
            let text = self.body.get(begun..offset).unwrap_or_default();
            self.found.push((Cow::Owned(name), text));
        }
    }

    /// Takes a text. Those inside of the children are checked with them.
    fn text(&mut self, text: &str) -> Result<(), Broken> {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        match self.depth {
            0 => return Err(Broken::malformed("text outside of the root element")),
            1 if self.class.is_some() => self.build.stray_text(text),
            _ => {}
        }
        Ok(())
    }
}
