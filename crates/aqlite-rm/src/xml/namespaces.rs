//! Namespaces of canonical XML: those of openEHR, or none.
//!
//! Two documents that differ only in a namespace have different meanings. An element of another
//! vocabulary must not be read as one of the Reference Model because its local name is the same.

use super::{INSTANCE, V1, V2};
use quick_xml::XmlVersion;
use quick_xml::events::BytesStart;

/// The namespace of the prefix `xml`.
const XML: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of the types of leaf values, such as `xs:string`.
const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The maximum number of declarations in scope. Each name is compared with them.
const MAX_DECLARATIONS: usize = 256;

/// The declarations of namespaces in scope.
#[derive(Default)]
pub(super) struct Namespaces {
    declared: Vec<Declaration>,
    depth: usize,
}

struct Declaration {
    /// The depth of its element.
    depth: usize,
    /// The prefix; empty for the default namespace.
    prefix: String,
    uri: String,
}

impl Namespaces {
    /// Enters an element: adds its declarations, and checks its name, the names of its attributes
    /// and the value of `xsi:type`.
    ///
    /// # Errors
    /// The rule that is broken, and its remedy.
    pub(super) fn enter(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        self.depth += 1;
        let (mut names, mut types) = (Vec::new(), Vec::new());
        // The reader of the attributes reports repeated ones.
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|e| e.to_string())?;
            let key: &str = attribute.key.as_ref();
            let declares = match key.split_once(':') {
                Some(("xmlns", prefix)) => Some(prefix),
                None if key == "xmlns" => Some(""),
                _ => None,
            };
            let is_type = key.rsplit(':').next() == Some("type");
            if declares.is_some() || is_type {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                let value = value.map_err(|e| e.to_string())?.into_owned();
                match declares {
                    Some(prefix) => self.declare(prefix, value)?,
                    None => types.push(value),
                }
            }
            if declares.is_none() {
                names.extend(key.split_once(':').map(|(prefix, _)| prefix.to_owned()));
            }
        }
        let name = tag.name();
        self.check_element(name.as_ref())?;
        for prefix in names {
            self.check_attribute(&prefix)?;
        }
        types.iter().try_for_each(|value| self.check_type(value))
    }

    /// Leaves an element.
    pub(super) fn leave(&mut self) {
        let depth = self.depth;
        self.declared.retain(|declared| declared.depth < depth);
        self.depth = depth.saturating_sub(1);
    }

    fn declare(&mut self, prefix: &str, uri: String) -> Result<(), String> {
        // Some writers repeat the declarations at each element.
        if self.declared_uri(prefix) == Some(&uri) {
            return Ok(());
        }
        if self.declared.len() >= MAX_DECLARATIONS {
            return Err(format!(
                "more than {MAX_DECLARATIONS} declarations of namespaces: declare them once, at the root"
            ));
        }
        self.declared.push(Declaration {
            depth: self.depth,
            prefix: prefix.to_owned(),
            uri,
        });
        Ok(())
    }

    fn declared_uri(&self, prefix: &str) -> Option<&String> {
        let found = self.declared.iter().rev().find(|d| d.prefix == prefix);
        found.map(|declared| &declared.uri)
    }

    /// Returns the namespace of a prefix.
    fn uri(&self, prefix: &str) -> Result<&str, String> {
        match self.declared_uri(prefix) {
            Some(uri) => Ok(uri),
            None if prefix.is_empty() => Ok(""),
            None if prefix == "xml" => Ok(XML),
            None => Err(format!(
                "the prefix `{}` is not declared: declare it by `xmlns:`, or leave it out",
                shortened(prefix)
            )),
        }
    }

    fn check_element(&self, name: &str) -> Result<(), String> {
        let (prefix, local) = split(name)?;
        match self.uri(prefix)? {
            "" | V1 | V2 => Ok(()),
            other => Err(format!(
                "the element `{}` is of the namespace `{}`: elements of the Reference Model are of `{V1}`, of `{V2}` or of none",
                shortened(local),
                shortened(other)
            )),
        }
    }

    fn check_attribute(&self, prefix: &str) -> Result<(), String> {
        match self.uri(prefix)? {
            V1 | V2 | INSTANCE | XML => Ok(()),
            other => Err(format!(
                "an attribute is of the namespace `{}`: leave it out, or declare the prefix of `type` as `{INSTANCE}`",
                shortened(other)
            )),
        }
    }

    /// Checks the value of `xsi:type`: the name of a class, with a prefix or none.
    fn check_type(&self, value: &str) -> Result<(), String> {
        let (prefix, _) = split(value.trim())?;
        if prefix.is_empty() {
            return Ok(());
        }
        match self.uri(prefix)? {
            V1 | V2 | SCHEMA => Ok(()),
            other => Err(format!(
                "the type `{}` is of the namespace `{}`: classes of the Reference Model are of `{V1}` or `{V2}`",
                shortened(value),
                shortened(other)
            )),
        }
    }
}

/// Splits a qualified name (Namespaces in XML 1.0, section 4) into prefix and local name.
fn split(name: &str) -> Result<(&str, &str), String> {
    let (prefix, local) = match name.split_once(':') {
        Some((prefix, local)) if !prefix.is_empty() => (prefix, local),
        None => ("", name),
        Some(_) => ("", ":"),
    };
    if local.contains(':') || local.is_empty() {
        return Err(format!(
            "`{}` is no qualified name: expected a name, or one prefix, a colon and a name",
            shortened(name)
        ));
    }
    Ok((prefix, local))
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}
