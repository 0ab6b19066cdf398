//! Labels: archetypes, nodes and paths with the names that clinicians use, from templates.

use aqlite_rm::class::Cls;
use aqlite_rm::order;
use aqlite_template::Template;
use aqlite_template::describe::{Description, describe_node, selector};
use aqlite_template::tree::Node;

/// The most labels of one answer. More cannot be read in an editor.
const MAX_LABELS: usize = 500;

/// An archetype, node or path with its name in clinical language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The text for the query: an archetype id, a node code or a path.
    pub id: String,
    /// The name: `Systolic`.
    pub text: String,
    /// The class, optionally with units.
    pub detail: String,
}

/// A step below an archetype: the attribute, and the node id if it is known.
pub type LabelStep = (String, Option<String>);

/// A source of clinical names for the editor.
pub trait Labels {
    /// Returns the archetypes on a class or its descendants.
    fn archetypes(&self, class: Cls) -> Vec<Label>;

    /// Returns the nodes that can occur at the end of a path below an archetype.
    fn nodes(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label>;

    /// Returns the paths to data below a node of an archetype, relative to that node. Equal names of
    /// several elements have the name of the event or cluster around each.
    fn paths(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label>;

    /// Returns the term of a node code in an archetype; its detail is the description.
    fn term(&self, archetype: &str, code: &str) -> Option<Label>;

    /// Returns the ids of the templates with their names, of one archetype of the root if given.
    fn templates(&self, archetype: Option<&str>) -> Vec<Label>;

    /// Returns the texts that a path below an archetype can lead to: codes with their texts, texts
    /// of codes, units.
    fn values(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label>;
}

/// The labels of no templates.
pub struct NoLabels;

impl Labels for NoLabels {
    fn archetypes(&self, _: Cls) -> Vec<Label> {
        Vec::new()
    }

    fn nodes(&self, _: &str, _: &[LabelStep]) -> Vec<Label> {
        Vec::new()
    }

    fn paths(&self, _: &str, _: &[LabelStep]) -> Vec<Label> {
        Vec::new()
    }

    fn term(&self, _: &str, _: &str) -> Option<Label> {
        None
    }

    fn templates(&self, _: Option<&str>) -> Vec<Label> {
        Vec::new()
    }

    fn values(&self, _: &str, _: &[LabelStep]) -> Vec<Label> {
        Vec::new()
    }
}

/// The labels of templates, in one language if they have it.
pub struct TemplateLabels<'t> {
    /// The templates.
    pub templates: Vec<&'t Template>,
    /// The language, such as `en`.
    pub language: &'t str,
}

/// A node with the template whose terms name it.
type Found<'t> = (&'t Template, &'t Node);

impl Labels for TemplateLabels<'_> {
    fn archetypes(&self, class: Cls) -> Vec<Label> {
        let mut out = Vec::new();
        for (template, node) in self
            .all(|_, node| node.archetype_id.is_some() && node.class.is_some_and(|c| c.is_a(class)))
        {
            push(&mut out, self.label(template, node, node.id().to_owned()));
        }
        out
    }

    fn nodes(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label> {
        let mut out = Vec::new();
        for (template, node) in self.walk(archetype, path) {
            if !node.id().is_empty() {
                push(&mut out, self.label(template, node, node.id().to_owned()));
            }
        }
        out
    }

    fn paths(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label> {
        let mut out = Vec::new();
        for (template, node) in self.walk(archetype, path) {
            let mut open: Vec<(&Node, String, String)> = vec![(node, String::new(), String::new())];
            while let Some((node, path, around)) = open.pop() {
                if node.class.is_some_and(|c| c.is_a(Cls::ELEMENT)) {
                    for value in data_paths(node) {
                        let label = self.label(template, node, joined(&path, value));
                        push(&mut out, (label, around.clone()));
                    }
                    continue;
                }
                let below = nodes_below(node, &path).into_iter().map(|(child, path)| {
                    let name = self.group_name(template, child);
                    (child, path, name.unwrap_or_else(|| around.clone()))
                });
                // The stack is popped at its end, so the first child is pushed last.
                open.extend(below.rev());
                if out.len() >= MAX_LABELS {
                    break;
                }
            }
        }
        with_groups(out)
    }

    fn term(&self, archetype: &str, code: &str) -> Option<Label> {
        self.templates.iter().find_map(|template| {
            let root = template
                .roots
                .iter()
                .find(|r| r.archetype_id == archetype)?;
            let terms = |language: &str| root.terms.get(language).and_then(|t| t.get(code));
            let term = terms(self.language).or_else(|| terms(&template.language))?;
            Some(Label {
                id: code.to_owned(),
                text: term.text.clone(),
                detail: term.description.clone(),
            })
        })
    }

    fn templates(&self, archetype: Option<&str>) -> Vec<Label> {
        let fits = |t: &&&Template| archetype.is_none_or(|a| t.archetype_id == a);
        let label = |template: &&Template| Label {
            id: template.template_id.clone(),
            text: template.concept.clone(),
            detail: template.archetype_id.clone(),
        };
        self.templates.iter().filter(fits).map(label).collect()
    }

    fn values(&self, archetype: &str, path: &[LabelStep]) -> Vec<Label> {
        let mut out = Vec::new();
        // The attributes of a data value are the last steps of a path.
        for length in 1..=path.len().min(DATA_VALUE_STEPS) {
            let (above, below) = path.split_at(path.len() - length);
            let below: Vec<&str> = below.iter().map(|(name, _)| name.as_str()).collect();
            for (template, node) in self.walk(archetype, above) {
                if node.class.is_some_and(|c| c.is_a(Cls::DATA_VALUE)) {
                    let described = describe_node(template, node, self.language);
                    for label in texts_of(&described, &below) {
                        push(&mut out, label);
                    }
                }
            }
        }
        out
    }
}

/// The most steps from a data value to one of its texts: `symbol/defining_code/code_string`.
const DATA_VALUE_STEPS: usize = 3;

/// Returns the texts that an attribute of a data value can have.
fn texts_of(value: &Description, path: &[&str]) -> Vec<Label> {
    match path {
        ["units"] => value.units.iter().map(|u| text_label(&u.units)).collect(),
        ["defining_code", "code_string"] | ["symbol", "defining_code", "code_string"] => {
            let codes = value.codes.iter();
            codes
                .map(|choice| Label {
                    id: choice.code.clone(),
                    text: choice.label.clone(),
                    detail: choice.terminology.clone(),
                })
                .collect()
        }
        // The value of an ordinal is a number, and that of its symbol a text.
        ["value"] | ["symbol", "value"] => value
            .codes
            .iter()
            .filter(|choice| !choice.label.is_empty())
            .filter(|choice| choice.value.is_none() == (path.len() == 1))
            .map(|choice| text_label(&choice.label))
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns the label of a text without a name.
fn text_label(text: &str) -> Label {
    Label {
        id: text.to_owned(),
        text: String::new(),
        detail: String::new(),
    }
}

impl<'t> TemplateLabels<'t> {
    /// Returns the wanted nodes of all templates, in document order.
    fn all(&self, wanted: impl Fn(&Template, &Node) -> bool) -> Vec<Found<'t>> {
        let mut out = Vec::new();
        for template in &self.templates {
            let mut open = vec![&template.definition];
            while let Some(node) = open.pop() {
                if wanted(template, node) {
                    out.push((*template, node));
                }
                open.extend(
                    node.attributes
                        .iter()
                        .rev()
                        .flat_map(|a| a.children.iter().rev()),
                );
            }
        }
        out
    }

    /// Returns the nodes at the end of a path below an archetype.
    fn walk(&self, archetype: &str, path: &[LabelStep]) -> Vec<Found<'t>> {
        let mut found = self.all(|_, node| node.archetype_id.as_deref() == Some(archetype));
        for (attribute, id) in path {
            found = found
                .into_iter()
                .flat_map(|(template, node)| {
                    node.attribute(attribute)
                        .into_iter()
                        .flat_map(move |a| a.children.iter().map(move |c| (template, c)))
                })
                .filter(|(_, child)| {
                    id.as_deref()
                        .is_none_or(|id| child.id() == id || child.node_id == id)
                })
                .collect();
        }
        found
    }

    /// Returns the name of an event or cluster; `None` for other nodes.
    fn group_name(&self, template: &Template, node: &Node) -> Option<String> {
        let is_group = |class: Cls| class.is_a(Cls::EVENT) || class.is_a(Cls::CLUSTER);
        let class = node.class.filter(|class| is_group(*class))?;
        let text = self.label(template, node, String::new()).text;
        Some(if text.is_empty() {
            class.name().to_owned()
        } else {
            text
        })
    }

    /// Returns the label of a node.
    fn label(&self, template: &Template, node: &Node, id: String) -> Label {
        let code = if node.node_id.is_empty() {
            "at0000"
        } else {
            &node.node_id
        };
        let term = template
            .term(node, self.language, code)
            .map(|t| t.text.clone());
        let name = node.names().first().map(|n| (*n).to_owned());
        let text = name.or(term).unwrap_or_default();
        let classes = order::distinct(values(node).map(|v| v.class_text.as_str()));
        let detail = if classes.is_empty() {
            node.class_text.clone()
        } else {
            classes.join(", ")
        };
        Label { id, text, detail }
    }
}

/// Adds an item, unless it is present or the list is full.
fn push<T: PartialEq>(out: &mut Vec<T>, item: T) {
    if out.len() < MAX_LABELS && !out.contains(&item) {
        out.push(item);
    }
}

/// Adds to each label whose text belongs to several groups the name of its own group.
fn with_groups(labels: Vec<(Label, String)>) -> Vec<Label> {
    let is_shared = |label: &Label, group: &String| {
        let mut others = labels.iter().filter(|(other, _)| other.text == label.text);
        !label.text.is_empty() && !group.is_empty() && others.any(|(_, other)| other != group)
    };
    let shared: Vec<bool> = labels
        .iter()
        .map(|(l, group)| is_shared(l, group))
        .collect();
    let named = |((mut label, group), is_shared): ((Label, String), bool)| {
        if is_shared {
            label.text = format!("{} ({group})", label.text);
        }
        label
    };
    labels.into_iter().zip(shared).map(named).collect()
}

/// Returns the children of a node that are LOCATABLE, each with its path.
fn nodes_below<'t>(node: &'t Node, path: &str) -> Vec<(&'t Node, String)> {
    let mut below = Vec::new();
    for attribute in &node.attributes {
        let is_node = |n: &&Node| n.class.is_some_and(|c| c.is_a(Cls::LOCATABLE));
        for child in attribute.children.iter().filter(is_node) {
            let selector = selector(child, &attribute.children);
            let step = format!("{}{selector}", attribute.name);
            below.push((child, joined(path, &step)));
        }
    }
    below
}

/// Returns the data values that an element may hold.
fn values(node: &Node) -> impl Iterator<Item = &Node> {
    let element = node.class.is_some_and(|c| c.is_a(Cls::ELEMENT));
    node.attribute("value")
        .filter(|_| element)
        .into_iter()
        .flat_map(|a| &a.children)
}

/// Returns the paths to the attributes of data values that queries read most.
fn data_paths(element: &Node) -> Vec<&'static str> {
    let path = |class: Cls| match class {
        Cls::DV_QUANTITY | Cls::DV_COUNT => "value/magnitude",
        Cls::DV_PROPORTION => "value/numerator",
        Cls::DV_CODED_TEXT => "value/defining_code/code_string",
        Cls::DV_IDENTIFIER => "value/id",
        Cls::DV_INTERVAL | Cls::DV_MULTIMEDIA => "value",
        _ => "value/value",
    };
    let paths = order::distinct(values(element).filter_map(|v| v.class).map(path));
    if paths.is_empty() {
        vec!["value"]
    } else {
        paths
    }
}

fn joined(path: &str, step: &str) -> String {
    if path.is_empty() {
        step.to_owned()
    } else {
        format!("{path}/{step}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_name_archetypes_nodes_and_paths() {
        let template =
            Template::parse(include_str!("../../../tests/cases/template/small.opt")).unwrap();
        let labels = TemplateLabels {
            templates: vec![&template],
            language: "sv",
        };
        let weight = "openEHR-EHR-OBSERVATION.body_weight.v2";
        let shown = |all: Vec<Label>| {
            all.into_iter()
                .map(|l| format!("{} {} {}", l.id, l.text, l.detail))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            shown(labels.archetypes(Cls::ENTRY)),
            [format!("{weight} Kroppsvikt OBSERVATION")]
        );
        let steps: Vec<LabelStep> = ["data", "events", "data", "items"]
            .map(|a| (a.to_owned(), None))
            .to_vec();
        assert_eq!(
            shown(labels.nodes(weight, &steps)),
            ["at0004 Weight DV_QUANTITY"]
        );
        assert_eq!(
            shown(labels.paths(weight, &[])),
            [
                "data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude Weight DV_QUANTITY"
            ]
        );
        let unit: Vec<LabelStep> = ["data", "events", "data", "items", "value", "units"]
            .map(|a| (a.to_owned(), None))
            .to_vec();
        assert_eq!(shown(labels.values(weight, &unit)), ["kg  "]);
        assert_eq!(shown(labels.values(weight, &steps)), Vec::<String>::new());
        assert_eq!(
            shown(labels.templates(None)),
            ["weight.en.v2 Weight openEHR-EHR-COMPOSITION.encounter.v1"]
        );
        assert_eq!(labels.templates(Some(weight)), []);
        assert_eq!(
            labels.term(weight, "at0004").map(|l| l.detail).as_deref(),
            Some("The measured mass.")
        );
    }

    #[test]
    fn equal_names_have_the_names_of_their_groups() {
        let label = |(text, group): (&str, &str)| {
            let (text, detail) = (text.to_owned(), String::from("DV_QUANTITY"));
            let id = format!("{group}/{text}");
            (Label { id, text, detail }, group.to_owned())
        };
        let all = [
            ("Systolic", "Any event"),
            ("Position", "Any event"),
            ("Systolic", "24 hour average"),
            ("Comment", ""),
        ];
        let named = with_groups(all.map(label).to_vec());
        let texts: Vec<&str> = named.iter().map(|label| label.text.as_str()).collect();
        let (first, second) = ("Systolic (Any event)", "Systolic (24 hour average)");
        assert_eq!(texts, [first, "Position", second, "Comment"]);
    }
}
