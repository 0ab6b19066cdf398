//! Which constraint an object belongs to: by class, by node or archetype id, among equals by name.

use super::pattern::Pattern;
use super::tree::{Attribute, Constraint, Node, Template};
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::NodeRef;
use std::cell::OnceCell;
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

/// The constraints below one attribute, found by the ids of objects: comparing each member of a list with each constraint would take the
/// product of their numbers.
pub(super) struct Siblings<'t> {
    attribute: &'t Attribute,
    template: &'t Template,
    /// The numbers of the constraints that mean one node code, or one archetype.
    by_code: HashMap<&'t str, Vec<usize>>,
    by_archetype: HashMap<&'t str, Vec<usize>>,
    /// Those of slots, and of constraints without an id, which are looked at for each object.
    open: Vec<usize>,
    /// The steps of the expressions of slots: each character of an archetype id may be compared with each.
    steps: usize,
    /// The names of the constraints, each read when it first has a rival.
    names: Vec<OnceCell<Names<'t>>>,
}

/// The runtime names that a constraint allows.
struct Names<'t> {
    listed: Vec<&'t str>,
    codes: Vec<&'t str>,
    /// The texts of its term in each language, where it lists neither names nor codes.
    terms: Vec<&'t str>,
}

impl<'t> Names<'t> {
    fn of(node: &'t Node, template: &'t Template) -> Names<'t> {
        let (listed, codes) = (node.names(), node.name_codes());
        let is_named = !listed.is_empty() || !codes.is_empty();
        let terms = template.languages.iter().filter(|_| !is_named).filter_map(|l| template.term(node, l, &node.node_id));
        Names { terms: terms.map(|term| term.text.as_str()).collect(), listed, codes }
    }

    fn is_named(&self) -> bool {
        !self.listed.is_empty() || !self.codes.is_empty()
    }

    /// True when the runtime name is one that the constraint allows, or else the text of its term in any language.
    fn allow(&self, name: &Name<'_>) -> bool {
        if self.is_named() {
            return self.listed.iter().any(|n| *n == name.full || *n == name.plain) || name.code.is_some_and(|c| self.codes.contains(&c));
        }
        self.terms.contains(&name.plain)
    }

    fn len(&self) -> usize {
        self.listed.len() + self.codes.len() + self.terms.len()
    }
}

/// The runtime name of an object.
struct Name<'a> {
    full: &'a str,
    /// Without the number of a further object of its kind.
    plain: &'a str,
    code: Option<&'a str>,
}

impl<'a> Name<'a> {
    fn of(object: NodeRef<'a>) -> Name<'a> {
        let full = object.text_along(&[Attr::NAME, Attr::VALUE]).unwrap_or_default();
        Name { full, plain: plain_name(full), code: object.text_along(&[Attr::NAME, Attr::DEFINING_CODE, Attr::CODE_STRING]) }
    }
}

impl<'t> Siblings<'t> {
    /// Indexes the constraints of an attribute. Costs one pass over them.
    pub fn of(attribute: &'t Attribute, template: &'t Template) -> Siblings<'t> {
        let names = attribute.children.iter().map(|_| OnceCell::new()).collect();
        let (by_code, by_archetype, open) = (HashMap::new(), HashMap::new(), Vec::new());
        let mut siblings = Siblings { attribute, template, by_code, by_archetype, open, steps: 0, names };
        for (index, node) in attribute.children.iter().enumerate() {
            match (&node.constraint, &node.archetype_id) {
                (Constraint::Slot { includes, excludes }, _) => {
                    siblings.steps += includes.iter().chain(excludes).map(Pattern::steps).sum::<usize>();
                    siblings.open.push(index);
                }
                (_, Some(root)) => siblings.by_archetype.entry(root).or_default().push(index),
                (_, None) if node.node_id.is_empty() => siblings.open.push(index),
                (_, None) => siblings.by_code.entry(&node.node_id).or_default().push(index),
            }
        }
        siblings
    }

    /// The numbers of the constraints that may mean an object, in order.
    pub fn candidates(&self, object: NodeRef<'_>) -> Vec<usize> {
        if !object.class().is_a(Cls::LOCATABLE) {
            return (0..self.attribute.children.len()).collect();
        }
        let id = object.text_at(Attr::ARCHETYPE_NODE_ID).unwrap_or_default();
        let archetype = object.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::ARCHETYPE_ID, Attr::VALUE]).filter(|archetype| *archetype != id);
        let lists = [self.by_code.get(id), self.by_archetype.get(id), archetype.and_then(|id| self.by_archetype.get(id)), Some(&self.open)];
        let mut found: Vec<usize> = lists.into_iter().flatten().flatten().copied().collect();
        found.sort_unstable();
        found
    }

    /// How many comparisons it takes to choose among candidates.
    pub fn cost(&self, object: NodeRef<'_>, candidates: &[usize]) -> usize {
        let id = object.text_at(Attr::ARCHETYPE_NODE_ID).map_or(0, str::len);
        let archetype = object.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::ARCHETYPE_ID, Attr::VALUE]).map_or(0, str::len);
        let slots = self.steps.saturating_mul(id.max(archetype)) / 4;
        let names = if candidates.len() < 2 { 0 } else { candidates.iter().map(|index| self.names(*index).map_or(0, Names::len)).sum() };
        slots.saturating_add(names).saturating_add(4 * candidates.len()).saturating_add(4)
    }

    fn names(&self, index: usize) -> Option<&Names<'t>> {
        let node = self.attribute.children.get(index)?;
        Some(self.names.get(index)?.get_or_init(|| Names::of(node, self.template)))
    }

    /// The index of the constraint for a member of a list among its candidates, given how many members each has got already.
    ///
    /// Where several constraints share an id and one of them names its objects, the name decides for all of them: one without
    /// a name of its own goes by its term. Where none does, the name is only preferred. Among equals the one that still lacks
    /// objects comes first. Where only one has the id, nothing else is asked.
    pub fn choose(&self, object: NodeRef<'_>, candidates: &[usize], counts: &[usize]) -> Option<usize> {
        let candidate = |index: &usize| {
            let node = self.attribute.children.get(*index)?;
            Some(Candidate { index: *index, node, fit: of(object, node) })
        };
        let mut fits = candidates.iter().filter_map(candidate).filter(|c| c.fit != Fit::No);
        let (first, second) = (fits.next()?, fits.next());
        if second.is_none() {
            return (first.fit == Fit::Yes || !first.is_slot()).then_some(first.index);
        }
        let (slots, nodes): (Vec<Candidate<'_>>, Vec<Candidate<'_>>) = [first].into_iter().chain(second).chain(fits).partition(Candidate::is_slot);
        let slot = slots.iter().find(|c| c.fit == Fit::Yes).map(|c| c.index);
        let named = |c: &Candidate<'_>| self.names(c.index).is_some_and(Names::is_named);
        let name_decides = nodes.len() > 1 && nodes.iter().any(named);
        let name = Name::of(object);
        let count = |c: &Candidate<'_>| counts.get(c.index).map_or(0, |n| u32::try_from(*n).unwrap_or(u32::MAX));
        let mut own: Vec<(Rank, &Candidate<'_>)> = Vec::new();
        for candidate in &nodes {
            let Some(names) = self.names(candidate.index) else { continue };
            let is_named_so = names.allow(&name);
            if is_named_so || !name_decides {
                let lacks_some = count(candidate) < candidate.node.occurrences.lower;
                own.push(((!names.listed.contains(&name.full), !is_named_so, !lacks_some), candidate));
            }
        }
        let has_room = |c: &Candidate<'_>| c.node.occurrences.upper.is_none_or(|upper| count(c) < upper);
        // Of equals the first: `min_by_key` returns that.
        let best_of =
            |wanted: &dyn Fn(&Candidate<'_>) -> bool| own.iter().filter(|(_, c)| wanted(c)).min_by_key(|(rank, _)| *rank).map(|(_, c)| c.index);
        let fitting = |c: &Candidate<'_>| c.fit == Fit::Yes;
        best_of(&|c| fitting(c) && has_room(c)).or_else(|| best_of(&fitting)).or(slot).or_else(|| best_of(&|_| true))
    }
}

/// What makes one constraint come before another: another full name, another name, enough objects already.
type Rank = (bool, bool, bool);

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
            let siblings = Siblings::of(attribute, &template);
            let candidates = siblings.candidates(tree.root().unwrap());
            assert_eq!(siblings.choose(tree.root().unwrap(), &candidates, &[0, 0, 0]), expected, "{name}");
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
        let siblings = Siblings::of(attribute, &template);
        let candidates = siblings.candidates(tree.root().unwrap());
        let chosen = |counts: &[usize]| siblings.choose(tree.root().unwrap(), &candidates, counts);
        assert_eq!((chosen(&[0, 0]), chosen(&[0, 1]), chosen(&[1, 1])), (Some(1), Some(0), Some(0)));
    }
}
