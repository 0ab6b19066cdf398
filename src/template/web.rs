//! Web templates: the constraint tree as developers of applications see it, without the levels that carry nothing of
//! their own, each node with an id that stands in the keys of the formats FLAT and STRUCTURED.

mod build;
mod id;
mod input;
mod print;
mod text;

use super::tree::{Constraint, Multiplicity, Node, Template};
use crate::rm::class::{Attr, Cls};

pub(super) use input::{blank, proportion_kinds};
pub(super) use text::JsonText;

/// A web template.
#[derive(Clone, Debug)]
pub struct WebTemplate {
    /// The root node.
    pub tree: WebNode,
    /// False where the web template would be larger than any may be: nodes are missing then, and it must not be used.
    pub is_complete: bool,
}

/// A node of a web template.
#[derive(Clone, Debug)]
pub struct WebNode {
    /// The id, unique among its siblings: a segment of the keys.
    pub id: String,
    /// The id by position that an alternative also answers to: `value`, `value2`, ….
    pub alias: Option<String>,
    /// The name in the template's own language; absent where the template gives neither a term nor a name.
    pub name: Option<String>,
    /// The class of the objects; of an ELEMENT with one type of value the class of that.
    pub class: Cls,
    /// The class as it is told: with the parameter of an interval.
    pub class_text: String,
    /// How often it may occur below its parent.
    pub occurrences: Multiplicity,
    /// The way from the parent's object: the levels that were removed, then the object itself.
    pub steps: Vec<Step>,
    /// True for what an application fills without asking: times, languages, parties.
    pub in_context: bool,
    /// True where a text may stand instead of a code.
    pub has_other: bool,
    /// Counts of members that occurrences alone do not tell.
    pub cardinalities: Vec<WebCardinality>,
    /// The constraint on the value; absent where the template says nothing about it.
    pub value: Option<Box<Node>>,
    /// The alternatives of the transition of an ACTION: node id, current states.
    pub transitions: Vec<(String, Vec<String>)>,
    /// What belongs to it.
    pub children: Vec<WebNode>,
    /// The structures below it that are no nodes: data, protocol, the only event.
    pub levels: Vec<Level>,
}

/// A structure between a node and its children that has no node of its own, and the structures in it.
///
/// Its objects are addressed by their attributes: `_data/_event:0/_data/_uid`.
#[derive(Clone, Debug)]
pub struct Level {
    /// The attribute and the objects that are meant.
    pub step: Step,
    /// The structures in it.
    pub below: Vec<Level>,
}

/// One level of the constraint tree.
#[derive(Clone, Debug)]
pub struct Step {
    /// The attribute at which the objects stand.
    pub attr: Attr,
    /// Their class, perhaps an abstract one.
    pub class: Cls,
    /// The archetype id or the node id; empty for what has none.
    pub id: String,
    /// The node id by which terms are found; empty for what has none.
    pub code: String,
    /// Which archetype's terms apply.
    pub root: usize,
    /// The names to which the template constrains the objects.
    pub names: Vec<String>,
    /// The code of a coded name to which it constrains them.
    pub name_code: Option<String>,
    /// The name of a new object: that of the constraint, else of the term.
    pub label: Option<String>,
    /// How often the objects may occur.
    pub occurrences: Multiplicity,
    /// True for an attribute that the template does not mention.
    pub is_added: bool,
}

/// How many of some children there must be.
#[derive(Clone, Debug)]
pub struct WebCardinality {
    /// How many.
    pub interval: Multiplicity,
    /// The path that the children's paths begin with, from the root.
    path: String,
}

impl WebTemplate {
    /// Derives the web template; one of a template that is not understood has a root only.
    pub fn of(template: &Template) -> WebTemplate {
        build::web_template(template)
    }

    /// The web template as JSON of the media type `application/openehr.wt+json`, with the names of every language.
    pub fn to_json(&self, template: &Template) -> String {
        print::to_json(self, template, usize::MAX).unwrap_or_default()
    }

    /// The same, where it has at most `most` bytes.
    pub fn to_json_within(&self, template: &Template, most: usize) -> Option<String> {
        print::to_json(self, template, most)
    }
}

impl WebNode {
    /// The child with this id, or with this alias.
    pub fn child(&self, id: &str) -> Option<&WebNode> {
        self.children.iter().find(|c| c.id == id).or_else(|| self.children.iter().find(|c| c.alias.as_deref() == Some(id)))
    }

    /// True when the keys of its instances carry an index.
    pub fn is_repeated(&self) -> bool {
        self.occurrences.upper != Some(1)
    }

    /// The last level: that of the object itself.
    pub fn last_step(&self) -> Option<&Step> {
        self.steps.last()
    }

    /// The ELEMENT whose one value this node is.
    pub fn element(&self) -> Option<&Step> {
        let before = self.steps.len().checked_sub(2).and_then(|i| self.steps.get(i));
        before.filter(|s| s.class == Cls::ELEMENT && self.class.is_a(Cls::DATA_VALUE))
    }

    /// The level that names it: the ELEMENT of a value, else its own.
    pub fn named_step(&self) -> Option<&Step> {
        self.element().or(self.last_step())
    }

    /// The constraint at one of the attributes of the value.
    pub(super) fn constraints_at(&self, path: &[&str]) -> impl Iterator<Item = &Node> {
        let mut nodes: Vec<&Node> = self.value.as_deref().into_iter().collect();
        for name in path {
            nodes = nodes.into_iter().filter_map(|n| n.attribute(name)).flat_map(|a| &a.children).collect();
        }
        nodes.into_iter()
    }

    /// The codes that may stand here, with their terminology; without codes any of the terminology.
    pub fn codes(&self) -> Option<(&str, &[String])> {
        let own = self.value.as_deref().into_iter();
        own.chain(self.constraints_at(&["defining_code"])).find_map(|node| match &node.constraint {
            Constraint::Code { terminology, codes } => Some((terminology.as_str(), codes.as_slice())),
            Constraint::CodeSet { reference } if reference.starts_with("ac") => Some(("", [].as_slice())),
            Constraint::CodeSet { reference } => Some((reference.strip_prefix("terminology:").unwrap_or(reference), [].as_slice())),
            _ => None,
        })
    }
}

impl Step {
    /// The predicate that selects the objects in a path.
    pub fn predicate(&self) -> String {
        match (self.id.as_str(), self.constrained_name()) {
            ("", _) => String::new(),
            (id, Some(name)) => format!("[{id},'{name}']"),
            (id, None) => format!("[{id}]"),
        }
    }

    /// The name to which the template constrains the objects.
    pub fn constrained_name(&self) -> Option<&str> {
        let is_constrained = !self.names.is_empty() || self.name_code.is_some();
        self.label.as_deref().filter(|_| is_constrained)
    }

    /// The step as a part of a path: `/items[at0004]`.
    pub fn path(&self) -> String {
        format!("/{}{}", self.attr, self.predicate())
    }
}

#[cfg(test)]
mod tests;
