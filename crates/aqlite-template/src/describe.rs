//! A human-readable description of a template: a tree of data points with names, units, codes and
//! counts.

use super::pattern::Pattern;
use super::tree::{
    Attribute, Constraint, Interval, Multiplicity, Node, OrdinalItem, QuantityItem, Template,
};
use aqlite_rm::class::{Attr, AttrDef, Cls};
use aqlite_rm::number::TextForm;
use aqlite_rm::terminology;
use serde_json::{Value, json};
use std::fmt;

/// The description of a node of a template and of its children.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The path in AQL form from the root of the document, such as
    /// `/content[openEHR-EHR-OBSERVATION.body_weight.v2]`; empty at the root.
    pub path: String,
    /// The clinical name. Empty if the template has none, as for data values.
    pub label: String,
    /// The definition of the term in the archetype.
    pub description: String,
    /// The class, as the template writes it.
    pub class: String,
    /// The node id or archetype id; empty for data values.
    pub id: String,
    /// The permitted number of occurrences at its attribute.
    pub occurrences: Multiplicity,
    /// Whether the node, or one of its alternatives, is mandatory where its parent is present.
    pub is_mandatory: bool,
    /// The units of a quantity, with ranges of magnitude and precision.
    pub units: Vec<QuantityItem>,
    /// The permitted codes, in the order of the template.
    pub codes: Vec<CodeChoice>,
    /// Other constraints in words: ranges, date patterns, permitted texts, archetypes of a slot.
    pub limits: Vec<String>,
    /// The nodes below.
    pub children: Vec<Description>,
}

/// A permitted code.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeChoice {
    /// The numeric value of the code in an ordinal or a scale.
    pub value: Option<f64>,
    /// The terminology; `local` for the archetype's own.
    pub terminology: String,
    /// The code.
    pub code: String,
    /// The text of the code. Empty if the template does not define it.
    pub label: String,
}

/// Describes a template in a language, or in the original language if the template lacks it
/// ([`Template::languages`]).
pub fn describe(template: &Template, language: &str) -> Description {
    let reader = Reader { template, language };
    reader.node(&template.definition, String::new(), true)
}

/// Describes a node of a template, without its path and without the count of its occurrences in a
/// document.
pub fn describe_node(template: &Template, node: &Node, language: &str) -> Description {
    let reader = Reader { template, language };
    reader.node(node, String::new(), false)
}

struct Reader<'t> {
    template: &'t Template,
    language: &'t str,
}

impl Reader<'_> {
    fn node(&self, node: &Node, path: String, is_mandatory: bool) -> Description {
        let mut described = self.named(node, path, is_mandatory);
        let is_structure = node
            .class
            .is_some_and(|c| c.is_a(Cls::PATHABLE) || c.is_a(Cls::PARTY_PROXY));
        // Values are described by limits, structures by their attributes.
        if is_structure && !matches!(node.constraint, Constraint::Slot { .. }) {
            let attributes = node.attributes.iter();
            for attribute in attributes.filter(|a| a.attr != Some(Attr::NAME)) {
                self.attribute(node, attribute, &mut described);
            }
        } else {
            self.limits(node, &mut described);
        }
        described
    }

    /// Describes a node without its constraints and children.
    fn named(&self, node: &Node, path: String, is_mandatory: bool) -> Description {
        // A root has the term of its archetype's root code.
        let code = if node.node_id.is_empty() {
            "at0000"
        } else {
            &node.node_id
        };
        let term = Some(node)
            .filter(|n| !n.id().is_empty())
            .and_then(|n| self.template.term(n, self.language, code));
        let label = label(self.template, node, self.language).unwrap_or_default();
        Description {
            label: label.to_owned(),
            description: term.map(|t| t.description.clone()).unwrap_or_default(),
            class: node.class_text.clone(),
            id: node.id().to_owned(),
            occurrences: node.occurrences,
            is_mandatory,
            units: Vec::new(),
            codes: Vec::new(),
            limits: Vec::new(),
            children: Vec::new(),
            path,
        }
    }

    fn attribute(&self, owner: &Node, attribute: &Attribute, parent: &mut Description) {
        // An attribute that the model does not have may still have a cardinality.
        let definition: Option<&AttrDef> = attribute.attr.and_then(|attr| owner.class?.attr(attr));
        let is_list = definition.map_or(attribute.cardinality.is_some(), |d| d.card.is_list());
        let is_asked = attribute.existence.is_some_and(|e| e.lower > 0)
            || definition.is_some_and(|d| d.card.is_mandatory());
        // One of several alternatives is not mandatory by itself.
        let is_only = attribute.children.len() == 1;
        let single = Multiplicity {
            lower: u32::from(is_asked && is_only),
            upper: Some(1),
        };
        let children = attribute.children.iter();
        for child in children.filter(|c| c.occurrences.upper != Some(0)) {
            let is_mandatory = match is_list {
                true => child.occurrences.lower > 0,
                false => is_asked,
            };
            let selector = selector(child, &attribute.children);
            let path = format!("{}/{}{selector}", parent.path, attribute.name);
            let mut described = self.node(child, path, is_mandatory);
            if !is_list {
                described.occurrences = single;
            }
            parent.children.push(described);
        }
    }

    /// Adds the constraints on a data value, from whichever of its attributes have them.
    fn limits(&self, node: &Node, into: &mut Description) {
        match &node.constraint {
            Constraint::Code {
                terminology, codes, ..
            } if !codes.is_empty() => {
                let choice = |code: &String| self.code(node, terminology, code, None);
                into.codes.extend(codes.iter().map(choice));
            }
            Constraint::Quantity { list, .. } => into.units.extend_from_slice(list),
            Constraint::Ordinal { list } => {
                let pair = |item: &OrdinalItem| {
                    self.code(node, &item.terminology, &item.code, Some(item.value))
                };
                into.codes.extend(list.iter().map(pair));
            }
            other => into.limits.extend(in_words(other)),
        }
        node.attributes
            .iter()
            .flat_map(|a| &a.children)
            .for_each(|child| self.limits(child, into));
    }

    fn code(&self, node: &Node, terminology: &str, code: &str, value: Option<f64>) -> CodeChoice {
        let openehr = Some(code)
            .filter(|_| terminology == "openehr")
            .and_then(terminology::rubric);
        let label = openehr
            .or_else(|| {
                self.template
                    .term(node, self.language, code)
                    .map(|t| t.text.as_str())
            })
            .unwrap_or_default();
        CodeChoice {
            value,
            terminology: terminology.to_owned(),
            code: code.to_owned(),
            label: label.to_owned(),
        }
    }
}

/// Returns the parts of a constraint in words, except for units and listed codes.
fn in_words(constraint: &Constraint) -> Vec<String> {
    match constraint {
        Constraint::Open | Constraint::Quantity { .. } | Constraint::Ordinal { .. } => Vec::new(),
        Constraint::Slot { includes, excludes } => {
            let included = includes.iter().map(|p| ("archetypes", p.source()));
            let excluded = excludes.iter().map(|p| ("no archetypes", p.source()));
            let all = included.chain(excluded);
            all.map(|(kind, source)| format!("{kind} {source}"))
                .collect()
        }
        Constraint::Boolean {
            true_valid: true,
            false_valid: true,
        } => Vec::new(),
        Constraint::Boolean {
            true_valid: false,
            false_valid: false,
        } => vec![String::from("neither true nor false")],
        Constraint::Boolean { true_valid, .. } => vec![format!("only {true_valid}")],
        Constraint::Text {
            pattern,
            list,
            open,
        } => {
            let matches = |p: &Pattern| format!("text that matches {}", p.source());
            let kind = if *open { "for example" } else { "one of" };
            let listed = (!list.is_empty()).then(|| format!("{kind}: {}", list.join(", ")));
            pattern.iter().map(matches).chain(listed).collect()
        }
        Constraint::Integer { range, list } => range_or_list(range.as_ref(), list),
        Constraint::Real { range, list } => range_or_list(range.as_ref(), list),
        Constraint::Temporal { pattern, range, .. } => {
            let form = pattern.iter().map(|p| format!("of the form {p}"));
            form.chain(range.iter().map(ToString::to_string)).collect()
        }
        Constraint::Code { terminology, .. } => vec![format!("a code of {terminology}")],
        Constraint::CodeSet { reference } => vec![format!("a code of {reference}")],
    }
}

/// Returns the constraints of a number in words.
fn range_or_list<N: TextForm + PartialEq, T: TextForm>(
    range: Option<&Interval<N>>,
    list: &[T],
) -> Vec<String> {
    let texts: Vec<String> = list.iter().map(TextForm::to_text).collect();
    let listed = (!texts.is_empty()).then(|| format!("one of: {}", texts.join(", ")));
    let range = range.map(ToString::to_string);
    range.into_iter().chain(listed).collect()
}

/// Returns the display name of a node: the name that the template sets, else the term of its code.
///
/// Returns `None` for data values.
pub fn label<'t>(template: &'t Template, node: &'t Node, language: &str) -> Option<&'t str> {
    if let Some(name) = node.names().first() {
        return Some(name);
    }
    let code = match node.name_codes().first() {
        Some(code) => code,
        None if node.id().is_empty() => return None,
        None if node.node_id.is_empty() => "at0000",
        None => node.node_id.as_str(),
    };
    template
        .term(node, language, code)
        .map(|term| term.text.trim())
        .filter(|text| !text.is_empty())
}

/// Returns the predicate of a node in a path: `[at0004]`, with the name if siblings share the id.
///
/// Classes other than LOCATABLE have no node id in documents, and therefore no predicate.
pub fn selector(node: &Node, siblings: &[Node]) -> String {
    let id = node.id();
    let is_without_id = node.class.is_some_and(|class| !class.is_a(Cls::LOCATABLE));
    if id.is_empty() || is_without_id {
        return String::new();
    }
    let twins = siblings.iter().filter(|s| s.id() == id).count();
    match node.names().first() {
        Some(name) if twins > 1 => format!(
            "[{id},'{}']",
            name.replace('\\', "\\\\").replace('\'', "\\'")
        ),
        _ => format!("[{id}]"),
    }
}

/// Formats a unit with its range.
fn unit(item: &QuantityItem) -> String {
    match &item.magnitude {
        Some(range) => format!("{} ({range})", item.units),
        None => item.units.clone(),
    }
}

impl CodeChoice {
    fn to_json(&self) -> Value {
        json!({
            "terminology": self.terminology,
            "code": self.code,
            "label": self.label,
            "value": self.value,
        })
    }
}

/// Formats a code with its text, as `1: local::at0005|Mild|`.
impl fmt::Display for CodeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = self.value {
            write!(f, "{}: ", value.to_text())?;
        }
        write!(f, "{}::{}|{}|", self.terminology, self.code, self.label)
    }
}

/// Formats one line for each node, indented by depth: name, class, occurrences, limits, path.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line(f, 0)
    }
}

impl Description {
    /// Converts the description to JSON.
    ///
    /// The form is `{path, label, description, class, id, occurrences, mandatory, units, codes:
    /// [{terminology, code, label, value}], limits, children}`. Empty members are omitted.
    pub fn to_json(&self) -> Value {
        let units: Vec<String> = self.units.iter().map(unit).collect();
        let codes: Vec<Value> = self.codes.iter().map(CodeChoice::to_json).collect();
        let children: Vec<Value> = self.children.iter().map(Description::to_json).collect();
        let mut all = json!({
            "path": self.path,
            "label": self.label,
            "description": self.description,
            "class": self.class,
            "id": self.id,
            "occurrences": self.occurrences.to_string(),
            "mandatory": self.is_mandatory,
            "units": units,
            "codes": codes,
            "limits": self.limits,
            "children": children,
        });
        let is_filled = |value: &Value| {
            value.as_str().is_none_or(|text| !text.is_empty())
                && value.as_array().is_none_or(|list| !list.is_empty())
        };
        if let Some(members) = all.as_object_mut() {
            members.retain(|_, value| is_filled(value));
        }
        all
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        write!(f, "{:indent$}", "", indent = depth * 2)?;
        if !self.label.is_empty() {
            write!(f, "{}: ", self.label)?;
        }
        let must = if self.is_mandatory { ", mandatory" } else { "" };
        write!(f, "{} {}{must}", self.class, self.occurrences)?;
        let units = self.units.iter().map(unit);
        let codes = self.codes.iter().map(ToString::to_string);
        let limits = self.limits.iter().cloned();
        let all: Vec<String> = units.chain(codes).chain(limits).collect();
        if !all.is_empty() {
            write!(f, "; {}", all.join("; "))?;
        }
        let space = if self.path.is_empty() { "" } else { "  " };
        writeln!(f, "{space}{}", self.path)?;
        self.children
            .iter()
            .try_for_each(|child| child.line(f, depth + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_of_template_has_names_limits_and_paths() {
        let template =
            Template::parse(include_str!("../../../tests/cases/template/small.opt")).unwrap();
        let shown = describe(&template, "sv").to_string();
        assert!(
            shown.contains(
                "Kroppsvikt: OBSERVATION 0..1  /content[openEHR-EHR-OBSERVATION.body_weight.v2]\n"
            ),
            "{shown}"
        );
        assert!(
            shown.contains("DV_QUANTITY 0..1; kg (at least 0 and at most 1000)"),
            "{shown}"
        );
        let json = describe(&template, "sv").to_json();
        let weight = json
            .pointer("/children")
            .and_then(|all| {
                all.as_array()?
                    .iter()
                    .find(|child| child["label"] == "Kroppsvikt")
            })
            .unwrap();
        assert_eq!(
            (
                &weight["class"],
                &weight["occurrences"],
                weight.get("units")
            ),
            (&json!("OBSERVATION"), &json!("0..1"), None)
        );
    }
}
