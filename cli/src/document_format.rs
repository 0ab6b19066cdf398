//! The formats of documents that the program writes.

use crate::data::templates::Templates;
use crate::outcome::Failure;
use aqlite::rm::class::Attr;
use aqlite::rm::tree::NodeRef;
use aqlite::rm::{json, xml};
use aqlite::template::flat::{self, FlatDialect, Shape, WriteError};
use clap::ValueEnum;

/// The format of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DocumentFormat {
    /// Canonical JSON
    Json,
    /// Canonical XML
    Xml,
    /// FLAT
    Flat,
    /// STRUCTURED
    Structured,
}

/// The dialect of the simplified formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Dialect {
    /// As Better's libraries write them
    Better,
    /// As EHRbase writes them
    Ehrbase,
}

impl DocumentFormat {
    /// Returns the ending of files of the format.
    pub fn ending(self) -> &'static str {
        match self {
            DocumentFormat::Xml => "xml",
            _ => "json",
        }
    }

    /// Writes a document, indented. The second part lists the content that the format cannot
    /// represent.
    ///
    /// # Errors
    /// [`Failure::Data`] if the format cannot represent a document of this class, or its template is absent.
    pub fn write(
        self,
        document: NodeRef<'_>,
        templates: &Templates,
        dialect: Dialect,
    ) -> Result<(String, Vec<&'static str>), Failure> {
        match self {
            DocumentFormat::Json => Ok((indented(&json::write(document)), Vec::new())),
            DocumentFormat::Xml => {
                let root = document.class().name().to_ascii_lowercase();
                let text = xml::write(document, &root)
                    .map_err(|finding| Failure::Data(finding.one_line()))?;
                Ok((text, Vec::new()))
            }
            DocumentFormat::Flat => simplified(document, Shape::Flat, templates, dialect),
            DocumentFormat::Structured => {
                simplified(document, Shape::Structured, templates, dialect)
            }
        }
    }
}

fn simplified(
    document: NodeRef<'_>,
    shape: Shape,
    templates: &Templates,
    dialect: Dialect,
) -> Result<(String, Vec<&'static str>), Failure> {
    // Checked first, because other documents may have no template.
    flat::check_class(document).map_err(unwritten)?;
    let id = [Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE];
    let id = document.text_along(&id).unwrap_or_default();
    let found = templates.get(id).ok_or_else(|| {
        Failure::Data(format!(
            "the template `{id}` is not among the data: name its file by -d"
        ))
    })?;
    let flat_dialect = match dialect {
        Dialect::Better => FlatDialect::Better,
        Dialect::Ehrbase => FlatDialect::Ehrbase,
    };
    let written = flat::write(document, shape, &found.template, found.web(), flat_dialect);
    let written = written.map_err(unwritten)?;
    Ok((indented(&written.text), written.left))
}

fn unwritten(problem: WriteError) -> Failure {
    Failure::Data(format!("{problem}: write it with --to json or --to xml"))
}

/// Indents JSON. Texts and numbers keep every character.
pub fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    Indenter::default().push(text, &mut out);
    out.push('\n');
    out
}

/// Indents a text of JSON that comes in parts.
#[derive(Default)]
pub struct Indenter {
    /// The number of open objects and arrays.
    depth: usize,
    /// Whether the next character is within a string.
    is_in_text: bool,
    /// Whether a backslash precedes the next character.
    is_escaped: bool,
}

impl Indenter {
    /// Appends a part, indented. An empty object or array is in one part.
    pub fn push(&mut self, part: &str, out: &mut String) {
        let mut characters = part.chars().peekable();
        while let Some(c) = characters.next() {
            if self.is_in_text {
                out.push(c);
                self.is_in_text = self.is_escaped || c != '"';
                self.is_escaped = !self.is_escaped && c == '\\';
                continue;
            }
            match c {
                '"' => {
                    self.is_in_text = true;
                    out.push(c);
                }
                '{' | '[' => {
                    out.push(c);
                    if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                        out.push(close);
                    } else {
                        self.depth += 1;
                        new_line(out, self.depth);
                    }
                }
                '}' | ']' => {
                    self.depth = self.depth.saturating_sub(1);
                    new_line(out, self.depth);
                    out.push(c);
                }
                ',' => {
                    out.push(c);
                    new_line(out, self.depth);
                }
                ':' => out.push_str(": "),
                space if space.is_whitespace() => {}
                other => out.push(other),
            }
        }
    }
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("  "));
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn indentation_keeps_texts_and_numbers() {
        let text = r#"{"a":[1.50,{"b":"x: {\"y\"},\\"}],"c":{},"d":[ ]}"#;
        let expected = "{\n  \"a\": [\n    1.50,\n    {\n      \"b\": \"x: {\\\"y\\\"},\\\\\"\n    }\n  ],\n  \"c\": {},\n  \"d\": [\n    \n  ]\n}\n";
        assert_eq!(indented(text), expected);
    }
}
