//! Web templates: the constraint tree as application developers see it.
//!
//! Structural levels are removed, and each node has an id that is a segment of the keys of FLAT and
//! STRUCTURED.

mod build;
mod id;
mod input;
mod print;
mod text;

use super::tree::{Constraint, Multiplicity, Node, Template, terminology_of};
use aqlite_rm::class::{Attr, Cls};

pub(super) use input::{DURATION_FIELDS, blank, proportion_kinds};
pub(super) use text::JsonText;

/// A web template.
#[derive(Clone, Debug)]
pub struct WebTemplate {
    /// The root node.
    pub tree: WebNode,
    /// The approximate bytes of memory of all nodes.
    pub bytes: usize,
    /// Whether the web template is within the size limit. Otherwise nodes are missing and it must
    /// not be used.
    pub is_complete: bool,
}

/// A node of a web template.
#[derive(Clone, Debug)]
pub struct WebNode {
    /// The id, unique among siblings: a segment of the keys.
    pub id: String,
    /// The positional id of an alternative: `value`, `value2`, ….
    pub alias: Option<String>,
    /// The name in the original language, or `None` if the template defines neither a term nor a
    /// name.
    pub name: Option<String>,
    /// The class of the objects. An ELEMENT with one type of value has the class of the value.
    pub class: Cls,
    /// The displayed class, with the parameter of an interval.
    pub class_text: String,
    /// The permitted number of occurrences below its parent.
    pub occurrences: Multiplicity,
    /// The steps from the parent's object: levels that were removed, then the object itself.
    pub steps: Vec<Step>,
    /// Whether applications fill the node without user input: times, languages, parties.
    pub in_context: bool,
    /// Whether a text is permitted in place of a code.
    pub has_other: bool,
    /// Cardinalities that are stricter than the occurrences of the members.
    pub cardinalities: Vec<WebCardinality>,
    /// The constraint on the value, or `None` if the template does not constrain it.
    pub value: Option<Box<Node>>,
    /// The alternatives of the transition of an ACTION: careflow step (empty if the template lists
    /// none), current states.
    pub transitions: Vec<(String, Vec<String>)>,
    /// The nodes below.
    pub children: Vec<WebNode>,
    /// The structures below that are not nodes: data, protocol, a single event.
    pub levels: Vec<Level>,
}

/// A structure between a node and its children that is not a node itself, and the structures in it.
///
/// Its objects are addressed by their attributes: `_data/_event:0/_data/_uid`.
#[derive(Clone, Debug)]
pub struct Level {
    /// The attribute and the constrained objects.
    pub step: Step,
    /// The structures inside.
    pub below: Vec<Level>,
}

/// One level of the constraint tree.
#[derive(Clone, Debug)]
pub struct Step {
    /// The attribute of the objects.
    pub attr: Attr,
    /// The class of the objects, possibly abstract.
    pub class: Cls,
    /// The archetype id or the node id. Empty if there is neither.
    pub id: String,
    /// The node id of the term. Empty if there is none.
    pub code: String,
    /// The index of the archetype whose terms apply.
    pub root: usize,
    /// The permitted runtime names.
    pub names: Vec<String>,
    /// The required code of a coded runtime name.
    pub name_code: Option<String>,
    /// The runtime name of a new object: that of the constraint, else the term.
    pub label: Option<String>,
    /// The permitted number of occurrences.
    pub occurrences: Multiplicity,
    /// Whether the template does not mention the attribute.
    pub is_added: bool,
}

/// The permitted number of members of a container.
#[derive(Clone, Debug)]
pub struct WebCardinality {
    /// The number of members.
    pub interval: Multiplicity,
    /// The common beginning of the members' paths, from the root.
    path: String,
}

impl WebTemplate {
    /// Derives the web template. An opaque template results in a root node only.
    pub fn of(template: &Template) -> WebTemplate {
        build::web_template(template)
    }

    /// Returns the web template as JSON of the media type `application/openehr.wt+json`, with the
    /// names in all languages.
    pub fn to_json(&self, template: &Template) -> String {
        print::to_json(self, template, usize::MAX).unwrap_or_default()
    }

    /// Returns the JSON, or `None` if it would exceed `most` bytes.
    pub fn to_json_within(&self, template: &Template, most: usize) -> Option<String> {
        print::to_json(self, template, most)
    }
}

impl WebNode {
    /// Returns the child with this id or alias.
    pub fn child(&self, id: &str) -> Option<&WebNode> {
        self.children.iter().find(|c| c.id == id).or_else(|| {
            self.children
                .iter()
                .find(|c| c.alias.as_deref() == Some(id))
        })
    }

    /// Returns whether keys of the instances have an index.
    pub fn is_repeated(&self) -> bool {
        self.occurrences.upper != Some(1)
    }

    /// Returns the last step: that of the object itself.
    pub fn last_step(&self) -> Option<&Step> {
        self.steps.last()
    }

    /// Returns the ELEMENT that this node represents by its only value.
    pub fn element(&self) -> Option<&Step> {
        let before = self
            .steps
            .len()
            .checked_sub(2)
            .and_then(|i| self.steps.get(i));
        before.filter(|s| s.class == Cls::ELEMENT && self.class.is_a(Cls::DATA_VALUE))
    }

    /// Returns the step that has the name: the ELEMENT of a value, else the last step.
    pub fn named_step(&self) -> Option<&Step> {
        self.element().or(self.last_step())
    }

    /// Returns the constraints at one of the attributes of the value.
    pub(super) fn constraints_at(&self, path: &[&str]) -> impl Iterator<Item = &Node> {
        let mut nodes: Vec<&Node> = self.value.as_deref().into_iter().collect();
        for name in path {
            nodes = nodes
                .into_iter()
                .filter_map(|n| n.attribute(name))
                .flat_map(|a| &a.children)
                .collect();
        }
        nodes.into_iter()
    }

    /// Returns the terminology and the permitted codes. An empty list permits any code of the
    /// terminology.
    pub fn codes(&self) -> Option<(&str, &[String])> {
        self.codes_with(|reference| terminology_of(reference).unwrap_or(reference))
    }

    /// Returns the same with the terminology as the web template displays it: with the subset of a
    /// value set.
    pub fn displayed_codes(&self) -> Option<(&str, &[String])> {
        self.codes_with(|reference| reference.strip_prefix("terminology:").unwrap_or(reference))
    }

    fn codes_with<'w>(
        &'w self,
        of_reference: impl Fn(&'w str) -> &'w str,
    ) -> Option<(&'w str, &'w [String])> {
        let own = self.value.as_deref().into_iter();
        own.chain(self.constraints_at(&["defining_code"]))
            .find_map(|node| match &node.constraint {
                Constraint::Code {
                    terminology, codes, ..
                } => Some((terminology.as_str(), codes.as_slice())),
                Constraint::CodeSet { reference } if reference.starts_with("ac") => {
                    Some(("", [].as_slice()))
                }
                Constraint::CodeSet { reference } => Some((of_reference(reference), [].as_slice())),
                _ => None,
            })
    }
}

impl Step {
    /// Returns the predicate that selects the objects in a path.
    pub fn predicate(&self) -> String {
        match (self.id.as_str(), self.constrained_name()) {
            ("", _) => String::new(),
            (id, Some(name)) => format!("[{id},'{name}']"),
            (id, None) => format!("[{id}]"),
        }
    }

    /// Returns the required runtime name.
    pub fn constrained_name(&self) -> Option<&str> {
        let is_constrained = !self.names.is_empty() || self.name_code.is_some();
        self.label.as_deref().filter(|_| is_constrained)
    }

    /// Returns the step as part of a path: `/items[at0004]`.
    pub fn path(&self) -> String {
        format!("/{}{}", self.attr, self.predicate())
    }

    /// Returns the step as part of a path of AQL.
    ///
    /// Only a LOCATABLE has an `archetype_node_id`, so a predicate selects nothing from other
    /// classes, although templates have node ids for them: `/context`, not `/context[at0002]`.
    pub fn aql_path(&self) -> String {
        // A class that the model lacks may be a LOCATABLE.
        if self.class.is_a(Cls::LOCATABLE) || self.class == Cls::ANY {
            self.path()
        } else {
            format!("/{}", self.attr)
        }
    }
}

#[cfg(test)]
mod tests;
