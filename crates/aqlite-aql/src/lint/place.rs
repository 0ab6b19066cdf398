//! Places in templates: the nodes that a path can reach.

use crate::classes::Classes;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::id::{ArchetypeId, node_code_subsumes};
use aqlite_rm::order;
use aqlite_template::Template;
use aqlite_template::tree::{Constraint, Node, OrdinalItem};

/// One of the alternatives at a step of a path: classes, and the constraint of a template.
#[derive(Clone, Debug)]
pub(super) struct State<'t> {
    /// The classes that a value can have.
    pub classes: Classes,
    /// The constraint.
    pub place: Place<'t>,
    /// The template and the archetype whose terms apply, as an index of [`Template::roots`].
    root: Option<(&'t Template, usize)>,
}

/// The constraint of a template on a value.
#[derive(Clone, Debug)]
pub(super) enum Place<'t> {
    /// No constraint is known.
    Open,
    /// A node of the constraint tree.
    Node(&'t Node),
    /// The symbol of an ordinal or its code phrase.
    Symbol(&'t [OrdinalItem]),
    /// A terminology of this list.
    Terminologies(Vec<&'t str>),
    /// A text of this list.
    Listed(Vec<&'t str>),
    /// Any code of this terminology, which is not that of an archetype.
    External(&'t str),
}

impl<'t> State<'t> {
    /// Creates the state of classes without a template.
    pub fn open(classes: Classes) -> State<'t> {
        State {
            classes,
            place: Place::Open,
            root: None,
        }
    }

    /// Returns whether the classes follow from the Reference Model alone.
    pub fn is_of_model(&self) -> bool {
        self.root.is_none()
    }

    fn of(template: &'t Template, node: &'t Node, declared: &Classes) -> State<'t> {
        State {
            classes: node.class.map_or_else(|| declared.clone(), Classes::single),
            place: match node.class {
                Some(_) => Place::Node(node),
                None => Place::Open,
            },
            root: Some((template, node.root)),
        }
    }

    /// Returns the node of the template.
    pub fn node(&self) -> Option<&'t Node> {
        match &self.place {
            Place::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the id of the archetype whose codes apply.
    pub fn archetype(&self) -> Option<&'t str> {
        let (template, root) = self.root?;
        Some(template.roots.get(root)?.archetype_id.as_str())
    }

    /// Returns the id of the node, and its name in the language of the template.
    pub fn labelled(&self) -> Option<(&'t str, &'t str)> {
        let (node, (template, _)) = (self.node()?, self.root?);
        let code = match node.node_id.as_str() {
            "" => "at0000",
            code => code,
        };
        let term = template.term(node, &template.language, code);
        let listed = node.names().first().copied();
        let label = listed.or(term.map(|term| term.text.as_str()));
        Some((node.id(), label.unwrap_or_default()))
    }

    /// Returns the text of a code of the archetype.
    pub fn term(&self, code: &str) -> Option<&'t str> {
        let (template, root) = self.root?;
        let terms = &template.roots.get(root)?.terms;
        Some(terms.get(&template.language)?.get(code)?.text.as_str())
    }

    /// Returns whether the archetype has a node code in its terms or its nodes.
    pub fn defines(&self, code: &str) -> bool {
        let Some((template, index)) = self.root else {
            return false;
        };
        let terms = template.roots.get(index).map(|root| root.terms.values());
        let mut codes = terms.into_iter().flatten().flat_map(|terms| terms.keys());
        if codes.any(|known| node_code_subsumes(code, known)) {
            return true;
        }
        let mut open = vec![&template.definition];
        while let Some(node) = open.pop() {
            if node.root == index && node_code_subsumes(code, &node.node_id) {
                return true;
            }
            open.extend(node.attributes.iter().flat_map(|a| &a.children));
        }
        false
    }

    /// Returns the alternatives behind an attribute. There are none if no value has the attribute.
    pub fn step(&self, attr: Attr) -> Vec<State<'t>> {
        let Some(classes) = self.classes.step(attr) else {
            return Vec::new();
        };
        let state = match (&self.place, attr) {
            (Place::Symbol(list), Attr::CODE_STRING) => {
                self.listed(classes, list.iter().map(|item| &item.code))
            }
            (Place::Symbol(list), Attr::DEFINING_CODE) => self.with(classes, Place::Symbol(list)),
            (Place::Symbol(list), Attr::TERMINOLOGY_ID) => {
                let terminologies = list.iter().map(|item| item.terminology.as_str());
                self.of_terminologies(classes, terminologies.collect())
            }
            (Place::Terminologies(texts), Attr::VALUE) => {
                self.with(classes, Place::Listed(texts.clone()))
            }
            (Place::Node(node), _) => return self.step_of_node(attr, classes, node),
            _ => self.with(classes, Place::Open),
        };
        vec![state]
    }

    /// Returns the alternatives behind an attribute of a node.
    fn step_of_node(&self, attr: Attr, classes: Classes, node: &'t Node) -> Vec<State<'t>> {
        let state = match (&node.constraint, attr) {
            (Constraint::Quantity { list, .. }, Attr::UNITS) if !list.is_empty() => {
                self.listed(classes, list.iter().map(|item| &item.units))
            }
            (Constraint::Ordinal { list }, Attr::SYMBOL) if !list.is_empty() => {
                self.with(classes, Place::Symbol(list))
            }
            (
                Constraint::Code {
                    terminology,
                    codes,
                    open: false,
                },
                Attr::CODE_STRING,
            ) if !codes.is_empty() || !matches!(terminology.as_str(), "" | "local") => {
                if codes.is_empty() {
                    self.with(classes, Place::External(terminology))
                } else {
                    self.listed(classes, codes.iter())
                }
            }
            (
                Constraint::Code {
                    terminology,
                    open: false,
                    ..
                },
                Attr::TERMINOLOGY_ID,
            ) => self.of_terminologies(classes, vec![terminology.as_str()]),
            // A runtime name may differ from that of the template.
            (_, Attr::NAME) => self.with(classes, Place::Open),
            _ => return self.children(attr, classes, node),
        };
        vec![state]
    }

    fn children(&self, attr: Attr, classes: Classes, node: &'t Node) -> Vec<State<'t>> {
        let children = node.attribute(attr.name()).map(|a| a.children.as_slice());
        match (self.root, children) {
            (Some((template, _)), Some(children)) if !children.is_empty() => {
                let state = |child| State::of(template, child, &classes);
                children.iter().map(state).collect()
            }
            _ => vec![self.with(classes, Place::Open)],
        }
    }

    fn with(&self, classes: Classes, place: Place<'t>) -> State<'t> {
        State {
            classes,
            place,
            root: self.root,
        }
    }

    /// Returns the state of the terminology of a code. Only `local` has one spelling: others occur
    /// with versions and under several names. A document of ADL 2 may have the code of another
    /// terminology that is bound to a local one.
    fn of_terminologies(&self, classes: Classes, texts: Vec<&'t str>) -> State<'t> {
        let root = self
            .root
            .and_then(|(template, root)| template.roots.get(root));
        let is_bound = root.is_none_or(|root| root.bindings.iter().any(|b| b.is_permitted_in_data));
        match !is_bound && texts.iter().all(|text| *text == "local") {
            true => self.with(classes, Place::Terminologies(texts)),
            false => self.with(classes, Place::Open),
        }
    }

    /// Returns the terminology of which every code is permitted, and no code of an archetype.
    pub fn external(&self) -> Option<&'t str> {
        match &self.place {
            Place::External(terminology) => Some(*terminology),
            _ => None,
        }
    }

    fn listed(&self, classes: Classes, texts: impl Iterator<Item = &'t String>) -> State<'t> {
        self.with(classes, Place::Listed(texts.map(String::as_str).collect()))
    }

    /// Returns the texts that the value may be; `None` if it may be any.
    pub fn texts(&self) -> Option<Vec<&'t str>> {
        match &self.place {
            Place::Listed(texts) => Some(texts.clone()),
            Place::Node(Node {
                constraint: Constraint::Text { list, open, .. },
                ..
            }) if !list.is_empty() && !open => Some(list.iter().map(String::as_str).collect()),
            _ => None,
        }
    }

    /// Returns the state of the nodes with an id in brackets, `None` if there are none. `class` is
    /// that of an archetype id.
    pub fn selected(&self, id: &str, class: Option<Cls>) -> Option<State<'t>> {
        let open = || {
            let classes = class.map_or_else(|| self.classes.clone(), |c| self.classes.narrowed(c));
            Some(self.with(classes, Place::Open))
        };
        let Some(node) = self.node() else {
            return open();
        };
        match &node.constraint {
            Constraint::Slot { .. } if class.is_some() => permits(node, id).then(open)?,
            Constraint::Slot { .. } => node_code_subsumes(id, &node.node_id).then(open)?,
            _ if node.id().is_empty() => open(),
            _ => is_named(node, id).then(|| self.clone()),
        }
    }
}

/// Returns whether a node has an id or a specialization of it.
fn is_named(node: &Node, id: &str) -> bool {
    let root = node.archetype_id.as_deref();
    let archetypes = ArchetypeId::parse(id).zip(root.and_then(ArchetypeId::parse));
    // The root of an archetype usually has the archetype id as node id, but not always.
    root == Some(id)
        || archetypes.is_some_and(|(wanted, found)| wanted.subsumes(found))
        || node_code_subsumes(id, &node.node_id)
}

/// Returns whether a slot may contain an archetype or a specialization of it.
fn permits(node: &Node, id: &str) -> bool {
    let Constraint::Slot { includes, excludes } = &node.constraint else {
        return false;
    };
    let class = crate::classes::archetype_class(id);
    let fits = class.zip(node.class).is_none_or(|(c, slot)| c.is_a(slot));
    let is_welcome = includes.iter().any(|pattern| pattern.matches(id));
    let is_refused = excludes.iter().any(|pattern| pattern.matches(id));
    // A pattern may name specializations of the archetype only.
    let concept = id.rsplit_once(".v").map_or(id, |(front, _)| front);
    let concept = concept.rsplit_once('.').map_or(concept, |(_, c)| c);
    let is_mentioned = includes.iter().any(|p| p.source().contains(concept));
    fits && (is_welcome || is_mentioned || (includes.is_empty() && !is_refused))
}

/// Returns the archetypes that have a node code, or a specialization of it, in their terms or their
/// nodes. Visits every node.
pub(super) fn archetypes_with<'t>(templates: &[&'t Template], code: &str) -> Vec<&'t str> {
    let mut found = Vec::new();
    for template in templates {
        for root in &template.roots {
            let mut codes = root.terms.values().flat_map(|terms| terms.keys());
            if codes.any(|known| node_code_subsumes(code, known)) {
                found.push(root.archetype_id.as_str());
            }
        }
        let mut open = vec![&template.definition];
        while let Some(node) = open.pop() {
            let root = template.roots.get(node.root);
            if let Some(root) = root.filter(|_| node_code_subsumes(code, &node.node_id)) {
                found.push(root.archetype_id.as_str());
            }
            open.extend(node.attributes.iter().flat_map(|a| &a.children));
        }
    }
    order::distinct(found)
}

/// Returns the roots of templates.
pub(super) fn roots<'t>(templates: &[&'t Template]) -> Vec<State<'t>> {
    let root = |template: &&'t Template| {
        State::of(template, &template.definition, &Classes::single(Cls::ANY))
    };
    templates.iter().map(root).collect()
}

/// Returns the nodes of an archetype at or below these nodes, and a state without constraint for
/// each place that may contain any such archetype.
pub(super) fn below<'t>(tops: &[State<'t>], id: &str) -> Vec<State<'t>> {
    let class = crate::classes::archetype_class(id);
    let classes = Classes::single(class.unwrap_or(Cls::LOCATABLE));
    let mut found = Vec::new();
    for top in tops {
        let (Some(top_node), Some((template, _))) = (top.node(), top.root) else {
            continue;
        };
        let mut open = vec![top_node];
        while let Some(node) = open.pop() {
            if permits(node, id) || contains_anything(node, class) {
                found.push(State::open(classes.clone()));
            } else if node.archetype_id.is_some() && is_named(node, id) {
                found.push(State::of(template, node, &classes));
            }
            open.extend(node.attributes.iter().flat_map(|a| &a.children));
        }
    }
    found
}

/// Returns whether the content of a node is not constrained: then it may have entries of any
/// archetype. Clusters occur almost anywhere, so for them a place must be a slot.
fn contains_anything(node: &Node, class: Option<Cls>) -> bool {
    let list = match node.class {
        Some(Cls::COMPOSITION) => "content",
        Some(Cls::SECTION) => "items",
        _ => return false,
    };
    let is_entry = class.is_some_and(|class| class.is_a(Cls::CONTENT_ITEM));
    let is_slot = matches!(node.constraint, Constraint::Slot { .. });
    let is_open = node.attribute(list).is_none_or(|a| a.children.is_empty());
    is_entry && is_open && !is_slot
}

/// Returns the attribute of a data value that queries read most.
pub(super) fn main_path(class: Cls) -> &'static str {
    match class {
        Cls::DV_QUANTITY | Cls::DV_COUNT => "magnitude",
        Cls::DV_PROPORTION => "numerator",
        Cls::DV_IDENTIFIER => "id",
        _ => "value",
    }
}
