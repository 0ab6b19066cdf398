//! Printers of guides: as JSON with the names of GDL2, or as ODIN with the names of the source.
//! Everything except comments and layout is preserved.

use super::item::{Item, Kind};
use super::{gdl1, read};
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::json::Scanner;

/// Prints the guide as JSON. GDL1 is translated to GDL2: the names of bindings and their fields,
/// `EHR` and `CDS`, the function `LAST`, `.units` and the version of the language.
///
/// # Errors
///
/// The text is neither JSON nor ODIN (`GDL0101` to `GDL0103`).
pub fn json(text: &str) -> Result<String, Diagnostic> {
    let mut root = read::tree(text)?;
    root.drop_repeated_members();
    gdl1::translated(&mut root);
    let mut out = Writer::default();
    out.json(&root);
    Ok(out.text + "\n")
}

/// Prints the guide as ODIN. Resources of templates become texts with JSON.
///
/// # Errors
///
/// The text is neither JSON nor ODIN (`GDL0101` to `GDL0103`).
pub fn odin(text: &str) -> Result<String, Diagnostic> {
    let root = read::tree(text)?;
    let mut out = Writer::default();
    out.text.push_str("(GUIDE) ");
    out.block("", &root);
    Ok(out.text + "\n")
}

/// The type marks that published guides write: of a member, and of the entries of a member.
const MARKS: [(&str, &str); 4] = [
    ("language", "LANGUAGE"),
    ("description", "RESOURCE_DESCRIPTION"),
    ("definition", "GUIDE_DEFINITION"),
    ("ontology", "GUIDE_ONTOLOGY"),
];
const KEYED: [(&str, &str); 14] = [
    ("translations", "TRANSLATION_DETAILS"),
    ("details", "RESOURCE_DESCRIPTION_ITEM"),
    ("archetype_bindings", "ARCHETYPE_BINDING"),
    ("data_bindings", "DATA_BINDING"),
    ("elements", "ELEMENT_BINDING"),
    ("templates", "TEMPLATE"),
    ("rules", "RULE"),
    ("term_definitions", "TERM_DEFINITION"),
    ("terms", "TERM"),
    ("term_bindings", "TERM_BINDING"),
    ("bindings", "BINDING"),
    ("original_author", ""),
    ("other_details", ""),
    ("author", ""),
];
/// The members whose texts are codes, such as `[ISO_639-1::en]`.
const CODES: [&str; 3] = ["original_language", "language", "codes"];

fn marked(marks: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    marks
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, mark)| *mark)
}

#[derive(Default)]
struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    fn line(&mut self) {
        self.text.push('\n');
        (0..self.depth).for_each(|_| self.text.push_str("  "));
    }

    /// Calls `each` for every element, on a line of its own and indented by one level.
    fn lines<'a, T>(
        &mut self,
        items: &'a [T],
        between: &str,
        mut each: impl FnMut(&mut Self, &'a T),
    ) {
        self.depth += 1;
        for (i, item) in items.iter().enumerate() {
            self.text.push_str(if i == 0 { "" } else { between });
            self.line();
            each(self, item);
        }
        self.depth -= 1;
        if !items.is_empty() {
            self.line();
        }
    }

    fn json(&mut self, item: &Item) {
        match &item.kind {
            Kind::Null => self.text.push_str("null"),
            Kind::Boolean(b) => self.text.push_str(if *b { "true" } else { "false" }),
            Kind::Number(n) if is_json_number(n) => self.text.push_str(n),
            Kind::Number(text) | Kind::Text(text) => self.json_text(text),
            Kind::List(items) => {
                self.text.push('[');
                self.lines(items, ",", |out, item| out.json(item));
                self.text.push(']');
            }
            Kind::Map(members) => {
                self.text.push('{');
                self.lines(members, ",", |out, (name, item)| {
                    out.json_text(name);
                    out.text.push_str(": ");
                    out.json(item);
                });
                self.text.push('}');
            }
        }
    }

    fn json_text(&mut self, text: &str) {
        self.text
            .push_str(&serde_json::Value::from(text).to_string());
    }

    /// Prints `<…>`, the value of a member.
    fn block(&mut self, name: &str, item: &Item) {
        self.text.push('<');
        match &item.kind {
            Kind::Null => {}
            Kind::Map(_) if name == "object" => self.odin_text(&item.to_json().to_string()),
            Kind::Map(members) => {
                let mark = marked(&KEYED, name);
                let is_keyed = mark.is_some() || members.iter().any(|(name, _)| !is_name(name));
                self.lines(members, "", |out, member| {
                    out.member(member, is_keyed, mark)
                });
            }
            Kind::List(items) if items.iter().any(|i| !is_primitive(i)) => {
                let numbered: Vec<(String, &Item)> = items
                    .iter()
                    .enumerate()
                    .map(|(i, item)| ((i + 1).to_string(), item))
                    .collect();
                self.lines(&numbered, "", |out, (key, item)| out.entry(key, item, ""));
            }
            Kind::List(items) => {
                self.lines(items, ",", |out, item| out.primitive(name, item));
                if items.len() == 1 {
                    self.text.insert_str(self.text.trim_end().len(), ",...");
                }
            }
            _ => self.primitive(name, item),
        }
        self.text.push('>');
    }

    fn member(&mut self, (name, item): &(String, Item), is_keyed: bool, mark: Option<&str>) {
        if is_keyed {
            return self.entry(name, item, mark.unwrap_or_default());
        }
        self.text.push_str(name);
        self.text.push_str(" = ");
        self.mark(item, marked(&MARKS, name).unwrap_or_default());
        self.block(name, item);
    }

    fn entry(&mut self, key: &str, item: &Item, mark: &str) {
        self.text.push('[');
        self.odin_text(key);
        self.text.push_str("] = ");
        self.mark(item, mark);
        self.block("", item);
    }

    fn mark(&mut self, item: &Item, mark: &str) {
        if !mark.is_empty() && matches!(item.kind, Kind::Map(_)) {
            self.text.push('(');
            self.text.push_str(mark);
            self.text.push_str(") ");
        }
    }

    fn primitive(&mut self, name: &str, item: &Item) {
        match &item.kind {
            Kind::Boolean(b) => self.text.push_str(if *b { "true" } else { "false" }),
            Kind::Number(n) => self.text.push_str(n),
            Kind::Text(code) if CODES.contains(&name) && is_code(code) => {
                self.text.push('[');
                self.text.push_str(code);
                self.text.push(']');
            }
            Kind::Text(text) => self.odin_text(text),
            Kind::Null | Kind::List(_) | Kind::Map(_) => {}
        }
    }

    fn odin_text(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.text.extend(['\\', c]),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }
}

/// Returns whether JSON accepts the text as a number. ODIN also accepts `.5`, `+1` and `inf`.
fn is_json_number(text: &str) -> bool {
    Scanner::is_number(text)
}

fn is_primitive(item: &Item) -> bool {
    matches!(
        item.kind,
        Kind::Boolean(_) | Kind::Number(_) | Kind::Text(_)
    )
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_code(text: &str) -> bool {
    text.contains("::") && !text.contains([']', '[', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_repeated_keys_is_printed() {
        let term = |text: &str| format!("[\"gt0001\"] = (TERM) <text = <\"{text}\">>");
        let terms = term("first") + &term("second");
        let text = format!(
            r#"(GUIDE) <id = <"x.v1"> definition = <> ontology = <term_definitions = <["en"] = <terms = <{terms}>>>>>"#
        );
        let printed = json(&text).unwrap();
        assert!(
            printed.contains("first") && !printed.contains("second"),
            "{printed}"
        );
        for text in [&text, &printed] {
            let guide = crate::parse(text).unwrap();
            assert_eq!(guide.term("gt0001", "en"), Some("first"));
            assert_eq!(guide.terms_in("en").len(), 1, "{text}");
        }
    }
}
