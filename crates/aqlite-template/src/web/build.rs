//! From the constraint tree to the web template: removal of structural levels, additional nodes,
//! and merged alternatives.

use super::{Level, Step, WebCardinality, WebNode, WebTemplate, id};
use crate::leaf::is_listed_as;
use crate::tree::{Attribute, Constraint, Multiplicity, Node, Template};
use aqlite_rm::class::{Attr, AttrDef, Card, Cls};
use aqlite_rm::order;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

const MANDATORY: Multiplicity = Multiplicity {
    lower: 1,
    upper: Some(1),
};
const OPTIONAL: Multiplicity = Multiplicity {
    lower: 0,
    upper: Some(1),
};

/// The classes that an unconstrained ELEMENT may have as value, in the order of the ids.
const ANY_VALUE: [Cls; 18] = [
    Cls::DV_CODED_TEXT,
    Cls::DV_TEXT,
    Cls::DV_MULTIMEDIA,
    Cls::DV_PARSABLE,
    Cls::DV_STATE,
    Cls::DV_BOOLEAN,
    Cls::DV_IDENTIFIER,
    Cls::DV_URI,
    Cls::DV_EHR_URI,
    Cls::DV_DURATION,
    Cls::DV_QUANTITY,
    Cls::DV_COUNT,
    Cls::DV_PROPORTION,
    Cls::DV_DATE_TIME,
    Cls::DV_DATE,
    Cls::DV_TIME,
    Cls::DV_ORDINAL,
    Cls::DV_SCALE,
];

/// Mandatory attributes that readers complete from other sources.
const FILLED: [(Cls, Attr); 3] = [
    (Cls::HISTORY, Attr::ORIGIN),
    (Cls::LOCATABLE, Attr::NAME),
    (Cls::LOCATABLE, Attr::ARCHETYPE_NODE_ID),
];

/// The attributes of a transition, in the order of the ids.
const TRANSITION: [(Attr, Multiplicity); 3] = [
    (Attr::CURRENT_STATE, MANDATORY),
    (Attr::TRANSITION, OPTIONAL),
    (Attr::CAREFLOW_STEP, OPTIONAL),
];

/// The classes of the whole tree that are never nodes of their own.
pub(super) fn is_structure(class: Cls) -> bool {
    class.is_a(Cls::ITEM_STRUCTURE) || class.is_a(Cls::HISTORY)
}

pub(super) fn web_template(template: &Template) -> WebTemplate {
    let builder = WebBuilder {
        template,
        left: Cell::new(MAX_NODE_BYTES),
    };
    let root = &template.definition;
    let step = builder.step(Attr::DATA, root, None);
    let mut tree = builder.node(step, root, "");
    tree.occurrences = root.occurrences;
    tree.name = builder
        .label(root)
        .or_else(|| Some(template.concept.clone()));
    id::assign(&mut tree, Cls::ANY);
    WebTemplate {
        tree,
        bytes: MAX_NODE_BYTES - builder.left.get(),
        is_complete: builder.left.get() > 0,
    }
}

/// The maximum size in bytes of all nodes. The content below a node with coded names is repeated
/// for each name, so nested ones multiply.
const MAX_NODE_BYTES: usize = 15_000_000;

struct WebBuilder<'t> {
    template: &'t Template,
    /// The remaining bytes for nodes; 0 once they are exhausted.
    left: Cell<usize>,
}

impl<'t> WebBuilder<'t> {
    /// Charges a level of a node to the budget. Returns false once the web template is too large.
    fn affords(&self, step: &Step) -> bool {
        let texts = step.id.len()
            + step.code.len()
            + step.label.as_ref().map_or(0, String::len)
            + step.names.iter().map(String::len).sum::<usize>();
        self.left.set(
            self.left
                .get()
                .saturating_sub(size_of::<Step>() + size_of::<WebNode>() + texts),
        );
        self.left.get() > 0
    }

    fn label(&self, node: &Node) -> Option<String> {
        crate::describe::label(self.template, node, &self.template.language).map(str::to_owned)
    }

    /// Returns the text of a code in the terms of a node.
    fn term(&self, node: &Node, code: &str) -> Option<String> {
        self.template
            .term(node, &self.template.language, code)
            .map(|t| t.text.trim().to_owned())
    }

    /// Returns the codes of the runtime name of a node; `None` for a name without a code. If the
    /// template also has a text for the name, only the code of this text remains.
    fn coded_names<'n>(&self, node: &'n Node) -> Vec<Option<&'n str>> {
        let (texts, mut codes) = (node.names(), node.name_codes());
        if !texts.is_empty() {
            let is_text = |term: String| texts.iter().any(|text| is_listed_as(text, &term));
            codes.retain(|code| self.term(node, code).is_some_and(is_text));
        }
        if codes.is_empty() {
            return vec![None];
        }
        codes.into_iter().map(Some).collect()
    }

    /// Returns the number of events that are nodes of their own: each coded name is one.
    fn count_events(&self, node: &Node) -> usize {
        let children = node.attributes.iter().flat_map(|a| &a.children);
        let events = children.filter(|c| !is_slot(c) && is_event(c));
        events.map(|c| self.coded_names(c).len()).sum()
    }

    fn step(&self, attr: Attr, node: &Node, name_code: Option<&str>) -> Step {
        Step {
            attr,
            class: node.class.unwrap_or(Cls::ANY),
            id: node.id().to_owned(),
            code: if node.node_id.is_empty() && node.archetype_id.is_some() {
                String::from("at0000")
            } else {
                node.node_id.clone()
            },
            root: node.root,
            names: node
                .names()
                .into_iter()
                .map(|name| name.trim().to_owned())
                .collect(),
            name_code: name_code.map(str::to_owned),
            label: name_code.map_or_else(|| self.label(node), |code| self.term(node, code)),
            occurrences: node.occurrences,
            is_added: false,
        }
    }

    /// Builds a node with everything below it except the ids. `path` is the path of the node.
    fn node(&self, step: Step, node: &'t Node, path: &str) -> WebNode {
        let class = node.class.unwrap_or(Cls::ANY);
        if !self.affords(&step) {
            return bare(class);
        }
        let mut web = WebNode {
            name: step.label.clone(),
            class_text: node.class_text.clone(),
            occurrences: node.occurrences,
            steps: vec![step],
            value: is_value(class).then(|| Box::new(with_united_codes(node))),
            ..bare(class)
        };
        if !class.is_a(Cls::DATA_VALUE) || class == Cls::DV_INTERVAL {
            self.children(&mut web, node, path);
        }
        web
    }

    fn children(&self, web: &mut WebNode, node: &'t Node, path: &str) {
        // Computed before the children: a single event is a level, several are nodes.
        let events = self.count_events(node);
        // Alternatives of names are nodes of their own, so `name` is not a child.
        let attributes = node.attributes.iter();
        for attribute in attributes.filter(|a| a.attr != Some(Attr::NAME)) {
            let Some(attr) = attribute.attr else { continue };
            if web.class == Cls::ACTION && attr == Attr::ISM_TRANSITION {
                web.children.push(self.transition(attribute));
                continue;
            }
            let children = attribute.children.iter();
            for child in children.filter(|c| !is_slot(c) && c.occurrences.upper != Some(0)) {
                // Each coded name has a copy of the node. The budget ends nested multiplication.
                for name in self
                    .coded_names(child)
                    .into_iter()
                    .take_while(|_| self.left.get() > 0)
                {
                    self.child(web, self.step(attr, child, name), child, path, events);
                }
            }
            web.cardinalities.extend(cardinality(attribute, path));
        }
        self.complete(web, node);
    }

    /// Adds a child, or the nodes below it if it is a structural level.
    fn child(&self, web: &mut WebNode, step: Step, node: &'t Node, path: &str, events: usize) {
        let path = format!("{path}{}", step.path());
        let mut child = self.node(step, node, &path);
        let attr = child.steps.first().map(|s| s.attr);
        child.in_context = web.class == Cls::COMPOSITION && attr == Some(Attr::CATEGORY);
        let is_single_event =
            child.class.is_a(Cls::EVENT) && child.occurrences.upper == Some(1) && events == 1;
        if is_structure(child.class) || is_single_event {
            self.lift(web, child);
        } else if child.class == Cls::ELEMENT && !child.children.is_empty() {
            web.children.push(element(child));
        } else if !child.children.is_empty() || !child.class.is_a(Cls::ITEM) {
            web.children.push(child);
        }
        // Any other child is a CLUSTER or ELEMENT without children, in which nothing can be entered.
    }

    /// Removes a level: its children move up and remember the steps.
    fn lift(&self, web: &mut WebNode, mut level: WebNode) {
        web.cardinalities.append(&mut level.cardinalities);
        web.levels.extend(level.steps.first().map(|step| Level {
            step: step.clone(),
            below: level.levels,
        }));
        for mut below in level.children {
            // Each child gets a copy of the steps, which counts against the budget.
            if !level.steps.iter().all(|step| self.affords(step)) {
                return;
            }
            below.steps.splice(0..0, level.steps.iter().cloned());
            web.children.push(below);
        }
    }

    /// Adds the attributes that an object of the class needs and the template does not mention.
    fn complete(&self, web: &mut WebNode, node: &'t Node) {
        let class = web.class;
        let has = |web: &WebNode, attr: Attr| {
            let mut direct = web.children.iter().filter(|c| c.steps.len() == 1);
            direct.any(|c| c.steps.iter().any(|s| s.attr == attr))
        };
        match class {
            Cls::ELEMENT => self.complete_element(web),
            Cls::INSTRUCTION if !has(web, Attr::EXPIRY_TIME) => {
                let mut expiry = added(Attr::EXPIRY_TIME, Cls::DV_DATE_TIME, OPTIONAL);
                expiry.name = Some(Attr::EXPIRY_TIME.name().to_owned());
                expiry.in_context = false;
                web.children.push(expiry);
            }
            _ => {}
        }
        if !class.is_a(Cls::PATHABLE) {
            return;
        }
        let is_missing = |def: &&AttrDef| node.attribute(def.attr.name()).is_none();
        let wanted = class.attrs().iter().filter(|def| is_wanted(class, def));
        let mut wanted: Vec<&AttrDef> = wanted.filter(is_missing).collect();
        order::sort_by_key(&mut wanted, |def| std::cmp::Reverse(depth(def.owner)));
        for def in wanted {
            let is_transition = class == Cls::ACTION && def.attr == Attr::ISM_TRANSITION;
            web.children.push(if is_transition {
                self.transition_of(&[])
            } else {
                added(def.attr, def.ty, MANDATORY)
            });
        }
        if class == Cls::COMPOSITION {
            order_category(&mut web.children);
        }
    }

    /// Adds all types of value to an ELEMENT without constraint, or with an abstract one.
    fn complete_element(&self, web: &mut WebNode) {
        let is_abstract = web.children.iter().any(|c| c.class == Cls::DATA_VALUE);
        if web.children.is_empty() || is_abstract {
            let bytes = ANY_VALUE.len() * (size_of::<WebNode>() + size_of::<Step>());
            self.left.set(self.left.get().saturating_sub(bytes));
            let value = |class| any_value(class, web.name.as_deref());
            web.children = ANY_VALUE.into_iter().map(value).collect();
        }
    }

    fn transition(&self, attribute: &'t Attribute) -> WebNode {
        self.transition_of(&attribute.children)
    }

    /// Merges the alternatives of a transition into one node.
    fn transition_of(&self, alternatives: &'t [Node]) -> WebNode {
        let mut web = added(Attr::ISM_TRANSITION, Cls::ISM_TRANSITION, MANDATORY);
        web.transitions = alternatives.iter().flat_map(steps_and_states).collect();
        if web.transitions.is_empty() {
            return web;
        }
        web.children = TRANSITION
            .into_iter()
            .map(|(attr, occurrences)| added(attr, Cls::DV_CODED_TEXT, occurrences))
            .collect();
        // The node has the occurrences that other servers print, its step those of the template.
        if alternatives.iter().all(requires_step) {
            let parts = web.children.iter_mut().flat_map(|c| &mut c.steps);
            let steps = parts.filter(|step| step.attr == Attr::CAREFLOW_STEP);
            steps.for_each(|step| step.occurrences = MANDATORY);
        }
        // The codes of all alternatives belong to the archetype of the first.
        if let Some(first) = alternatives.first() {
            let steps = web.children.iter_mut().flat_map(|c| &mut c.steps);
            steps
                .chain(&mut web.steps)
                .for_each(|s| s.root = first.root);
        }
        web
    }
}

/// Creates a node without constraints.
fn bare(class: Cls) -> WebNode {
    WebNode {
        id: String::new(),
        alias: None,
        name: None,
        class,
        class_text: class.name().to_owned(),
        occurrences: MANDATORY,
        steps: Vec::new(),
        in_context: false,
        has_other: false,
        cardinalities: Vec::new(),
        value: None,
        transitions: Vec::new(),
        children: Vec::new(),
        levels: Vec::new(),
    }
}

/// Creates a node for an attribute that the template does not mention.
fn added(attr: Attr, class: Cls, occurrences: Multiplicity) -> WebNode {
    let step = Step {
        attr,
        class,
        id: String::new(),
        code: String::new(),
        root: 0,
        names: Vec::new(),
        name_code: None,
        label: None,
        occurrences,
        is_added: true,
    };
    let (first, rest) = attr.name().split_at_checked(1).unwrap_or_default();
    WebNode {
        name: Some(first.to_ascii_uppercase() + rest),
        occurrences,
        steps: vec![step],
        in_context: true,
        ..bare(class)
    }
}

/// Returns the careflow steps of a transition with the codes of the states that they lead to.
///
/// The constraint on the careflow step lists the codes. Without it, the node id is the code of the
/// step by convention. A transition without both has an empty code, if it constrains the state.
fn steps_and_states(transition: &Node) -> Vec<(String, Vec<String>)> {
    let states = codes(transition, "current_state");
    let mut steps = codes(transition, "careflow_step");
    if steps.is_empty() && !(transition.node_id.is_empty() && states.is_empty()) {
        steps.push(transition.node_id.clone());
    }
    let with_states = |step| (step, states.clone());
    steps.into_iter().map(with_states).collect()
}

fn requires_step(transition: &Node) -> bool {
    let existence = transition.attribute("careflow_step").map(|a| a.existence);
    existence.flatten().is_some_and(|e| e.lower > 0)
}

/// Returns the codes that a template lists for a coded attribute of an object.
fn codes(object: &Node, attribute: &str) -> Vec<String> {
    let texts = object.attribute(attribute);
    let texts = texts.into_iter().flat_map(|a| &a.children);
    let phrases = texts.filter_map(|s| s.attribute("defining_code"));
    let constraints = phrases.flat_map(|a| &a.children).map(|c| &c.constraint);
    let codes = constraints.filter_map(|constraint| match constraint {
        Constraint::Code { codes, .. } => Some(codes),
        _ => None,
    });
    codes.flatten().cloned().collect()
}

fn any_value(class: Cls, name: Option<&str>) -> WebNode {
    let mut web = added(Attr::VALUE, class, OPTIONAL);
    web.name = name.map(str::to_owned);
    web
}

fn is_value(class: Cls) -> bool {
    class.is_a(Cls::DATA_VALUE) || class.is_primitive() || class.is_a(Cls::CODE_PHRASE)
}

fn is_slot(node: &Node) -> bool {
    matches!(node.constraint, Constraint::Slot { .. })
}

fn is_event(node: &Node) -> bool {
    node.class.is_some_and(|c| c.is_a(Cls::EVENT))
}

/// Returns whether an attribute is a node although the template does not mention it.
fn is_wanted(class: Cls, def: &AttrDef) -> bool {
    let is_filled = FILLED
        .iter()
        .any(|(owner, attr)| class.is_a(*owner) && *attr == def.attr)
        || (class, def.attr) == (Cls::COMPOSITION, Attr::CATEGORY);
    let is_needed = matches!(def.card, Card::One | Card::List1)
        || (class, def.attr) == (Cls::ACTIVITY, Attr::TIMING);
    let is_structure = def.ty.is_a(Cls::ITEM_STRUCTURE)
        || def.ty.is_a(Cls::HISTORY)
        || def.ty.is_a(Cls::LOCATABLE) && def.ty != Cls::ISM_TRANSITION;
    is_needed && !is_filled && !is_structure
}

/// Returns the number of ancestors of a class.
fn depth(class: Cls) -> usize {
    std::iter::successors(Some(class), |c| Some(c.parent()).filter(|p| p != c)).count()
}

/// Moves the category before the language.
fn order_category(children: &mut Vec<WebNode>) {
    let at = |children: &[WebNode], attr: Attr| {
        children
            .iter()
            .position(|c| c.steps.first().is_some_and(|s| s.attr == attr))
    };
    if let Some(category) = at(children, Attr::CATEGORY) {
        let node = children.remove(category);
        let place = at(children, Attr::LANGUAGE).unwrap_or(children.len());
        children.insert(place, node);
    }
}

/// Returns the cardinality, if it is stricter than the occurrences of the members.
fn cardinality(attribute: &Attribute, path: &str) -> Option<WebCardinality> {
    let interval = attribute.cardinality?.interval;
    let count = u32::try_from(attribute.children.len()).unwrap_or(u32::MAX);
    let is_plain = interval == MANDATORY && count == 1;
    let is_telling = interval.lower >= 1
        && !is_plain
        && (interval.lower > 1 || interval.upper.is_some_and(|u| u < count));
    is_telling.then(|| WebCardinality {
        interval,
        path: format!("{path}/{}", attribute.name),
    })
}

/// Completes an ELEMENT by its types of value. A single type represents the ELEMENT, several are
/// alternatives.
fn element(mut element: WebNode) -> WebNode {
    merge_text(&mut element);
    if element.children.len() == 1
        && let Some(mut value) = element.children.pop()
    {
        value.steps.splice(0..0, element.steps.iter().cloned());
        value.name = element.name;
        value.in_context = element.in_context;
        value.occurrences = element.occurrences;
        return value;
    }
    coded_first(&mut element.children);
    let mut position = 0;
    for child in &mut element.children {
        child.occurrences.lower = 0;
        if child.steps.iter().any(|s| s.attr == Attr::VALUE) {
            position += 1;
            child.id = id::alternative(&child.class_text);
            child.alias = Some(match position {
                1 => String::from("value"),
                later => format!("value{later}"),
            });
        } else {
            // EHRbase names a null flavour like an alternative of the value.
            child.alias = Some(id::alternative(&child.class_text));
        }
        if !child.steps.iter().any(|s| s.is_added) {
            child.name = None;
        }
    }
    element
}

/// Merges a code with a text beside it: one node that also takes a text.
///
/// The node is the list of codes, else the first alternative.
fn merge_text(element: &mut WebNode) {
    let [first, second] = element.children.as_slice() else {
        return;
    };
    let is_list = |web: &WebNode| match web.class {
        Cls::DV_ORDINAL | Cls::DV_SCALE => true,
        class => {
            class == Cls::DV_CODED_TEXT && web.codes().is_some_and(|(_, codes)| !codes.is_empty())
        }
    };
    let is_text = |web: &WebNode| matches!(web.class, Cls::DV_TEXT | Cls::DV_CODED_TEXT);
    let kept = match (first.class, second.class) {
        _ if is_list(first) && is_text(second) && !is_list(second) => 0,
        _ if is_list(second) && is_text(first) && !is_list(first) => 1,
        (Cls::DV_CODED_TEXT, Cls::DV_TEXT) | (Cls::DV_TEXT, Cls::DV_CODED_TEXT) => 0,
        _ => return,
    };
    let mut kept_node = element.children.swap_remove(kept);
    kept_node.has_other = true;
    let other = element.children.pop().and_then(|other| other.value);
    if let (Some(own), Some(other)) = (&mut kept_node.value, other) {
        // A code at the node of a text has the terminology of the other alternative.
        let mut codes = other.attributes;
        codes.retain(|a| own.class == Some(Cls::DV_TEXT) && a.attr == Some(Attr::DEFINING_CODE));
        own.attributes.extend(codes);
    }
    element.children = vec![kept_node];
}

/// Returns a copy of the constraint of a value in which alternative lists of codes of one terminology
/// are one list, because the field of a code has one list.
fn with_united_codes(node: &Node) -> Node {
    let mut united = node.clone();
    let attributes = united.attributes.iter_mut();
    for attribute in attributes.filter(|a| a.attr == Some(Attr::DEFINING_CODE)) {
        if attribute.children.len() > 1 {
            attribute.children = united_codes(std::mem::take(&mut attribute.children));
        }
    }
    united
}

fn united_codes(alternatives: Vec<Node>) -> Vec<Node> {
    let mut kept: Vec<Node> = Vec::new();
    let mut of_terminology: HashMap<String, usize> = HashMap::new();
    for node in alternatives {
        let Constraint::Code { terminology, .. } = &node.constraint else {
            kept.push(node);
            continue;
        };
        let at = *of_terminology
            .entry(terminology.clone())
            .or_insert(kept.len());
        match kept.get_mut(at) {
            Some(first) => add_codes(first, node),
            None => kept.push(node),
        }
    }
    for node in &mut kept {
        if let Constraint::Code { codes, .. } = &mut node.constraint {
            let mut seen = HashSet::new();
            codes.retain(|code| seen.insert(code.clone()));
        }
    }
    kept
}

/// Adds the codes of an alternative of the same terminology. An empty list permits every code.
fn add_codes(first: &mut Node, other: Node) {
    if let (
        Constraint::Code { codes, open, .. },
        Constraint::Code {
            codes: more,
            open: is_open,
            ..
        },
    ) = (&mut first.constraint, other.constraint)
    {
        match codes.is_empty() || more.is_empty() {
            true => codes.clear(),
            false => codes.extend(more),
        }
        *open |= is_open;
    }
}

fn coded_first(children: &mut [WebNode]) {
    let at = |class: Cls| children.iter().position(|c| c.class == class);
    if let (Some(coded), Some(text)) = (at(Cls::DV_CODED_TEXT), at(Cls::DV_TEXT))
        && text < coded
        && let Some(part) = children.get_mut(text..=coded)
    {
        part.rotate_right(1);
    }
}
