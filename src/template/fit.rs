//! Which constraint an object belongs to: by class, by node or archetype id, among equals by name.

use super::pattern::Pattern;
use super::tree::{Attribute, Constraint, Node, Template};
use crate::order;
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::NodeRef;
use std::collections::HashMap;

/// How an object relates to a constraint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// It is meant by it.
    Yes,
    /// It has the id, but not the class.
    WrongClass,
    /// It is something else.
    No,
}

/// Whether a constraint means this object; its name is not looked at.
pub(super) fn of(object: NodeRef<'_>, node: &Node) -> Fit {
    if !identifies(object, node) {
        Fit::No
    } else if class_fits(object, node) {
        Fit::Yes
    } else {
        Fit::WrongClass
    }
}

/// The index of the constraint for a member of a list, given how many each has got already.
///
/// Where several constraints share an id and one of them names its objects, the name decides for all of them: one without
/// a name of its own goes by its term. Where none does, the name is only preferred. Among equals the one that still lacks
/// objects comes first. Where only one has the id, nothing else is asked.
pub(super) fn choose(object: NodeRef<'_>, attribute: &Attribute, template: &Template, counts: &[usize]) -> Option<usize> {
    let all = attribute.children.iter().enumerate().map(|(index, node)| Candidate { index, node, fit: of(object, node) });
    let mut fits = all.filter(|c| c.fit != Fit::No);
    let (first, second) = (fits.next()?, fits.next());
    if second.is_none() {
        return (first.fit == Fit::Yes || !first.is_slot()).then_some(first.index);
    }
    let (slots, nodes): (Vec<Candidate<'_>>, Vec<Candidate<'_>>) = [first].into_iter().chain(second).chain(fits).partition(Candidate::is_slot);
    let slot = slots.iter().find(|c| c.fit == Fit::Yes).map(|c| c.index);
    let name_decides = nodes.len() > 1 && nodes.iter().any(|c| is_named(c.node));
    let full = object.text_along(&[Attr::NAME, Attr::VALUE]).unwrap_or_default();
    let count = |c: &Candidate<'_>| counts.get(c.index).map_or(0, |n| u32::try_from(*n).unwrap_or(u32::MAX));
    let mut own: Vec<(Rank, &Candidate<'_>)> = Vec::new();
    for candidate in &nodes {
        let is_named_so = has_name(object, candidate.node, template);
        if is_named_so || !name_decides {
            let lacks_some = count(candidate) < candidate.node.occurrences.lower;
            own.push(((!candidate.node.names().contains(&full), !is_named_so, !lacks_some), candidate));
        }
    }
    order::sort_by_key(&mut own, |(rank, _)| *rank);
    let has_room = |c: &&Candidate<'_>| c.node.occurrences.upper.is_none_or(|upper| count(c) < upper);
    let fitting = || own.iter().map(|(_, c)| *c).filter(|c| c.fit == Fit::Yes);
    let best = fitting().find(has_room).or_else(|| fitting().next()).map(|c| c.index);
    best.or(slot).or_else(|| own.first().map(|(_, c)| c.index))
}

/// What makes one constraint come before another: another full name, another name, enough objects already.
type Rank = (bool, bool, bool);

/// How many comparisons it takes to choose a constraint for a member of a list.
pub(super) struct Costs {
    /// Each constraint is looked at.
    every: usize,
    /// Steps of the expressions of slots: each character of the archetype id may be compared with each.
    steps: usize,
}

impl Costs {
    pub fn of(attribute: &Attribute, template: &Template) -> Costs {
        let mut sharing: HashMap<&str, usize> = HashMap::new();
        attribute.children.iter().for_each(|child| *sharing.entry(child.id()).or_default() += 1);
        // Those that share an id are told apart by their names, in every language.
        let rivals = sharing.into_values().max().unwrap_or_default().saturating_sub(1);
        let slots = attribute.children.iter().map(|child| match &child.constraint {
            Constraint::Slot { includes, excludes } => includes.iter().chain(excludes).map(Pattern::steps).sum(),
            _ => 0,
        });
        Costs { every: attribute.children.len() + rivals.saturating_mul(8 + template.languages.len()), steps: slots.sum() }
    }

    pub fn of_member(&self, object: NodeRef<'_>) -> usize {
        let id = object.text_at(Attr::ARCHETYPE_NODE_ID).map_or(0, str::len);
        let archetype = object.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::ARCHETYPE_ID, Attr::VALUE]).map_or(0, str::len);
        self.every.saturating_add(self.steps.saturating_mul(id.max(archetype)) / 4)
    }
}

struct Candidate<'t> {
    index: usize,
    node: &'t Node,
    fit: Fit,
}

impl Candidate<'_> {
    fn is_slot(&self) -> bool {
        matches!(self.node.constraint, Constraint::Slot { .. })
    }
}

fn is_named(node: &Node) -> bool {
    !node.names().is_empty() || !node.name_codes().is_empty()
}

/// True when the runtime name is one that the constraint allows, or else the text of its term in any language.
fn has_name(object: NodeRef<'_>, node: &Node, template: &Template) -> bool {
    let (names, codes) = (node.names(), node.name_codes());
    let full = object.text_along(&[Attr::NAME, Attr::VALUE]).unwrap_or_default();
    let name = plain_name(full);
    let code = object.text_along(&[Attr::NAME, Attr::DEFINING_CODE, Attr::CODE_STRING]);
    if is_named(node) {
        return names.iter().any(|n| *n == full || *n == name) || code.is_some_and(|c| codes.contains(&c));
    }
    template.languages.iter().filter_map(|l| template.term(node, l, &node.node_id)).any(|term| term.text == name)
}

/// A name without the ` #2` by which a further one of its kind is told apart.
pub(super) fn plain_name(name: &str) -> &str {
    match name.rsplit_once(" #") {
        Some((front, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => front,
        _ => name,
    }
}

fn identifies(object: NodeRef<'_>, node: &Node) -> bool {
    if !object.class().is_a(Cls::LOCATABLE) {
        return true;
    }
    let id = object.text_at(Attr::ARCHETYPE_NODE_ID).unwrap_or_default();
    let archetype = || object.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::ARCHETYPE_ID, Attr::VALUE]).unwrap_or(id);
    match (&node.constraint, &node.archetype_id) {
        (Constraint::Slot { includes, excludes }, _) => {
            let archetype = archetype();
            let is_root = crate::rm::id::is_archetype_id(archetype);
            let refused = excludes.iter().any(|e| e.matches(archetype));
            let welcome = includes.iter().any(|i| i.matches(archetype));
            is_root && (welcome || (includes.is_empty() && !refused))
        }
        (_, Some(root)) => id == root || archetype() == root,
        (_, None) => node.node_id.is_empty() || id == node.node_id,
    }
}

/// Whether the class of an object is the constraint's, or descends from it; the parameter of a generic class too.
pub(super) fn class_fits(object: NodeRef<'_>, node: &Node) -> bool {
    let Some(class) = node.class else { return false };
    let limits = [Attr::LOWER, Attr::UPPER];
    let parameter = |parameter: Cls| limits.iter().filter_map(|a| object.get(*a)).all(|limit| limit.class().is_a(parameter));
    let found = object.class();
    let same = found.is_a(class) || (class.is_primitive() && found.is_primitive());
    same && (found != Cls::DV_INTERVAL || node.parameter.is_none_or(parameter))
}

/// The class of an object as archetypes write it, with the parameter of an interval.
pub(super) fn class_text(object: NodeRef<'_>) -> String {
    let limit = object.get(Attr::LOWER).or_else(|| object.get(Attr::UPPER));
    match limit.filter(|_| object.class() == Cls::DV_INTERVAL) {
        Some(limit) => format!("DV_INTERVAL<{}>", limit.class()),
        None => object.class().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Multiplicity;
    use super::*;
    use crate::rm::json;

    const NAMED: &str = include_str!("../../tests/cases/template/named.opt");

    #[test]
    fn names_tell_equal_siblings_apart() {
        let template = Template::parse(NAMED).unwrap();
        let attribute = template.definition.attribute("content").unwrap();
        for (name, expected) in
            [("First", Some(0)), ("First #2", Some(0)), ("Second", Some(1)), ("Topic", Some(2)), ("Thema", Some(2)), ("Third", None)]
        {
            let text =
                format!(r#"{{"_type":"SECTION","archetype_node_id":"openEHR-EHR-SECTION.topic.v1","name":{{"_type":"DV_TEXT","value":"{name}"}}}}"#);
            let tree = json::read(&text, Cls::SECTION).unwrap();
            assert_eq!(choose(tree.root().unwrap(), attribute, &template, &[0, 0, 0]), expected, "{name}");
        }
    }

    #[test]
    fn equal_siblings_get_what_they_lack() {
        let mut template = Template::parse(NAMED).unwrap();
        let content = template.definition.attributes.iter_mut().find(|a| a.name == "content").unwrap();
        let mut optional = content.children[2].clone();
        optional.occurrences = Multiplicity::ANY;
        let mandatory = Node { occurrences: Multiplicity { lower: 1, upper: Some(1) }, ..optional.clone() };
        content.children = vec![optional, mandatory];
        let text = r#"{"_type":"SECTION","archetype_node_id":"openEHR-EHR-SECTION.topic.v1","name":{"_type":"DV_TEXT","value":"Topic"}}"#;
        let tree = json::read(text, Cls::SECTION).unwrap();
        let attribute = template.definition.attribute("content").unwrap();
        let chosen = |counts: &[usize]| choose(tree.root().unwrap(), attribute, &template, counts);
        assert_eq!((chosen(&[0, 0]), chosen(&[0, 1]), chosen(&[1, 1])), (Some(1), Some(0), Some(0)));
    }
}
