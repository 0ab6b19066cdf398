//! Assignment of objects to constraints: by class, by node or archetype id, and by name among
//! constraints with the same id.

use super::leaf::is_listed_as;
use super::pattern::Pattern;
use super::slot;
use super::tree::{Attribute, Constraint, Node, Template};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;
use aqlite_rm::tree::NodeRef;
use std::cell::OnceCell;
use std::collections::HashMap;

/// The relation of an object to a constraint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Match {
    /// The constraint applies to the object.
    Applies,
    /// The id is that of the constraint, but the class differs.
    WrongClass,
    /// The constraint does not apply.
    Differs,
}

/// Compares an object with a constraint by id and class, ignoring its name.
pub(super) fn compare(object: NodeRef<'_>, node: &Node) -> Match {
    // The id decides first: an object with another id is checked against another constraint.
    if !identifies(object, node) {
        Match::Differs
    } else if class_fits(object, node) {
        Match::Applies
    } else {
        Match::WrongClass
    }
}

/// The number of comparisons with the only constraint of an attribute: id and class.
pub(super) const ONLY: usize = 8;

/// Returns the constraint of an attribute that has one only, unless it is a slot.
///
/// Most attributes have one constraint. An index would cost more than the comparison with it.
pub(super) fn only_node(attribute: &Attribute) -> Option<&Node> {
    match attribute.children.as_slice() {
        [only] if !matches!(only.constraint, Constraint::Slot { .. }) => Some(only),
        _ => None,
    }
}

/// An index of the constraints below one attribute by the ids of objects.
///
/// Comparing each member of a list with each constraint would be quadratic.
pub(super) struct Siblings<'t> {
    attribute: &'t Attribute,
    template: &'t Template,
    /// The indexes of the constraints for a node code or an archetype.
    by_code: HashMap<&'t str, Vec<usize>>,
    by_archetype: HashMap<&'t str, Vec<usize>>,
    /// The indexes of slots and of constraints without an id, which are compared with each object.
    open: Vec<usize>,
    /// The states of the expressions of slots. Each character of an archetype id may cost this
    /// number of comparisons.
    steps: usize,
    /// The names of the constraints, computed when a constraint first competes with another.
    names: Vec<OnceCell<Names<'t>>>,
    /// The groups of constraints with the same id that no name distinguishes.
    rivals: OnceCell<Vec<Vec<usize>>>,
}

/// The runtime names that a constraint permits.
#[derive(PartialEq)]
struct Names<'t> {
    listed: Vec<&'t str>,
    codes: Vec<&'t str>,
    /// The texts of its term in each language, if the constraint lists neither names nor codes.
    terms: Vec<&'t str>,
}

impl<'t> Names<'t> {
    fn of(node: &'t Node, template: &'t Template) -> Names<'t> {
        let (listed, codes) = (node.names(), node.name_codes());
        let is_named = !listed.is_empty() || !codes.is_empty();
        let terms = template
            .languages
            .iter()
            .filter(|_| !is_named)
            .filter_map(|l| template.term(node, l, &node.node_id));
        Names {
            terms: terms.map(|term| term.text.as_str()).collect(),
            listed,
            codes,
        }
    }

    fn is_named(&self) -> bool {
        !self.listed.is_empty() || !self.codes.is_empty()
    }

    /// Returns whether the constraint permits the runtime name, or the name is its term in any
    /// language.
    fn allow(&self, name: &Name<'_>) -> bool {
        if self.is_named() {
            return self
                .listed
                .iter()
                .any(|n| is_listed_as(n, name.full) || is_listed_as(n, name.plain))
                || name.code.is_some_and(|c| self.codes.contains(&c));
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
    /// The name without the number of a repeated sibling.
    plain: &'a str,
    code: Option<&'a str>,
}

impl<'a> Name<'a> {
    fn of(object: NodeRef<'a>) -> Name<'a> {
        let full = object
            .text_along(&[Attr::NAME, Attr::VALUE])
            .unwrap_or_default();
        Name {
            full,
            plain: plain_name(full),
            code: object.text_along(&[Attr::NAME, Attr::DEFINING_CODE, Attr::CODE_STRING]),
        }
    }
}

impl<'t> Siblings<'t> {
    /// Indexes the constraints of an attribute in one pass.
    pub fn of(attribute: &'t Attribute, template: &'t Template) -> Siblings<'t> {
        let mut siblings = Siblings {
            attribute,
            template,
            by_code: HashMap::new(),
            by_archetype: HashMap::new(),
            open: Vec::new(),
            steps: 0,
            names: attribute.children.iter().map(|_| OnceCell::new()).collect(),
            rivals: OnceCell::new(),
        };
        // One pass over the constraints replaces a comparison of each member with each of them.
        for (index, node) in attribute.children.iter().enumerate() {
            siblings.add(index, node);
        }
        siblings
    }

    fn add(&mut self, index: usize, node: &'t Node) {
        let list = match (&node.constraint, &node.archetype_id) {
            (Constraint::Slot { includes, excludes }, _) => {
                let patterns = includes.iter().chain(excludes);
                self.steps += patterns.map(Pattern::steps).sum::<usize>();
                &mut self.open
            }
            (_, Some(root)) => self.by_archetype.entry(root).or_default(),
            (_, None) if node.node_id.is_empty() => &mut self.open,
            (_, None) => self.by_code.entry(&node.node_id).or_default(),
        };
        list.push(index);
    }

    /// Returns the indexes of the constraints that may apply to an object, in order.
    pub fn candidates(&self, object: NodeRef<'_>) -> Vec<usize> {
        // Objects without an id are compared by class with every constraint.
        if !object.class().is_a(Cls::LOCATABLE) {
            return (0..self.attribute.children.len()).collect();
        }
        let id = node_id(object);
        let lists = [
            self.by_code.get(id),
            self.by_archetype.get(id),
            Some(&self.open),
        ];
        // The lists are disjoint, so sorting restores the order of the template without duplicates.
        let mut found: Vec<usize> = lists.into_iter().flatten().flatten().copied().collect();
        order::sort(&mut found);
        found
    }

    /// Returns the groups of constraints with the same id that no name distinguishes.
    ///
    /// Groups with the same terms precede groups whose terms differ. So a member that meets no
    /// constraint leaves the other members of its group of terms alone only.
    pub fn rivals(&self) -> &[Vec<usize>] {
        self.rivals.get_or_init(|| {
            let groups = || {
                let groups = self.by_code.values().chain(self.by_archetype.values());
                // The names of a constraint without a rival are not needed, and take time.
                groups.filter(|group| group.len() > 1)
            };
            let same = groups().flat_map(|group| self.with_same_names(group));
            let mut rivals: Vec<Vec<usize>> = same.chain([self.without_names()]).collect();
            let mut unnamed: Vec<Vec<usize>> = groups().map(|group| self.unnamed(group)).collect();
            unnamed.retain(|group| !rivals.contains(group));
            for list in [&mut rivals, &mut unnamed] {
                list.retain(|group| group.len() > 1);
                // The order of a map is not that of the template.
                order::sort(list);
            }
            rivals.append(&mut unnamed);
            rivals
        })
    }

    /// Returns the constraints of a group that do not constrain the name. Their terms may differ: a
    /// term is no constraint (AOM 1.4).
    fn unnamed(&self, group: &[usize]) -> Vec<usize> {
        let is_unnamed = |index: &usize| self.names(*index).is_some_and(|n| !n.is_named());
        group.iter().copied().filter(is_unnamed).collect()
    }

    /// Returns the rivals that an object may be assigned to: those whose term is its name, or all if
    /// its name is no term of them, and in any case the slots of its class.
    pub fn rivals_of(&self, object: NodeRef<'_>, rivals: &[usize]) -> Vec<usize> {
        let (mut slots, nodes): (Vec<usize>, Vec<usize>) =
            rivals.iter().partition(|index| self.is_slot(**index));
        let name = Name::of(object);
        let is_so_named = |index: &usize| self.names(*index).is_some_and(|n| n.allow(&name));
        let named: Vec<usize> = nodes.iter().copied().filter(is_so_named).collect();
        slots.retain(|slot| {
            let node = self.attribute.children.get(*slot);
            node.is_some_and(|node| class_fits(object, node))
        });
        slots.extend(if named.is_empty() { nodes } else { named });
        slots
    }

    /// Returns whether the constraint with an index is a slot.
    pub fn is_slot(&self, index: usize) -> bool {
        let node = self.attribute.children.get(index);
        node.is_some_and(|node| matches!(node.constraint, Constraint::Slot { .. }))
    }

    /// Returns whether a constraint is the root of an archetype.
    pub fn has_root(&self, archetype: &str) -> bool {
        self.by_archetype.contains_key(archetype)
    }

    /// Returns the constraints for objects that have neither id nor name, such as PARTICIPATION.
    fn without_names(&self) -> Vec<usize> {
        let nodes = self.attribute.children.iter().enumerate();
        let is_nameless = |class: Cls| !class.is_a(Cls::LOCATABLE);
        let nameless = nodes.filter(|(_, node)| node.class.is_some_and(is_nameless));
        nameless.map(|(index, _)| index).collect()
    }

    /// Divides constraints with the same id into groups that permit the same names, or have the same
    /// terms.
    fn with_same_names(&self, group: &[usize]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for index in group {
            let names = self.names(*index);
            let is_same = |other: &&mut Vec<usize>| {
                let first = other.first().and_then(|first| self.names(*first));
                first == names
            };
            match groups.iter_mut().find(is_same) {
                Some(same) => same.push(*index),
                None => groups.push(vec![*index]),
            }
        }
        groups
    }

    /// Returns the number of comparisons that [`Siblings::choose`] needs for these candidates.
    pub fn cost(&self, object: NodeRef<'_>, candidates: &[usize]) -> usize {
        let slots = self.steps.saturating_mul(node_id(object).len()) / 4;
        let names = if candidates.len() < 2 {
            0
        } else {
            candidates
                .iter()
                .map(|index| self.names(*index).map_or(0, Names::len))
                .sum()
        };
        slots
            .saturating_add(names)
            .saturating_add(4 * candidates.len())
            .saturating_add(4)
    }

    fn names(&self, index: usize) -> Option<&Names<'t>> {
        let node = self.attribute.children.get(index)?;
        Some(
            self.names
                .get(index)?
                .get_or_init(|| Names::of(node, self.template)),
        )
    }

    /// Returns the index of the constraint for a member of a list, among its candidates.
    ///
    /// `candidates` share an id. One that constrains the name is chosen for its names only. One that
    /// does not is preferred for the name that is its term, and has the objects with every other
    /// name. Among equals, a constraint that still lacks objects is preferred. A single candidate is
    /// chosen without further comparison.
    pub fn choose(
        &self,
        object: NodeRef<'_>,
        candidates: &[usize],
        counts: &[usize],
    ) -> Option<usize> {
        let mut fits = candidates
            .iter()
            .filter_map(|index| self.candidate(object, *index, counts))
            .filter(|c| c.matched != Match::Differs);
        let first = fits.next()?;
        let Some(second) = fits.next() else {
            return (first.fits() || !first.is_slot()).then_some(first.index);
        };
        let (slots, nodes): (Vec<Candidate<'_>>, Vec<Candidate<'_>>) = [first, second]
            .into_iter()
            .chain(fits)
            .partition(Candidate::is_slot);
        let ranked = self.ranked(&Name::of(object), &nodes);
        let slot = best_slot(object, &slots);
        let slot_with_room = slot.filter(|slot| slot.has_room());
        // In this order: a constraint of the right class with room; a slot with room; a full
        // constraint of the right class; a full slot; a constraint with the id and another class,
        // whose error is then reported.
        best_of(&ranked, |c| c.fits() && c.has_room())
            .or(slot_with_room.map(|slot| slot.index))
            .or_else(|| best_of(&ranked, |c| c.fits()))
            .or(slot.map(|slot| slot.index))
            .or_else(|| best_of(&ranked, |_| true))
    }

    fn candidate(
        &self,
        object: NodeRef<'_>,
        index: usize,
        counts: &[usize],
    ) -> Option<Candidate<'t>> {
        let node = self.attribute.children.get(index)?;
        // A list has as many counts as constraints; a missing one means that nothing was assigned.
        let count = counts.get(index).copied().unwrap_or_default();
        Some(Candidate {
            index,
            node,
            matched: compare(object, node),
            count: u32::try_from(count).unwrap_or(u32::MAX),
        })
    }

    /// Ranks candidates by their names. Those with another name constraint are left out. A constraint
    /// without one permits every name.
    fn ranked<'c>(
        &self,
        name: &Name<'_>,
        nodes: &'c [Candidate<'t>],
    ) -> Vec<(Rank, &'c Candidate<'t>)> {
        let is_only = nodes.len() == 1;
        let rank = |candidate: &Candidate<'_>| -> Option<Rank> {
            let names = self.names(candidate.index)?;
            let is_named_so = names.allow(name);
            (is_named_so || is_only || !names.is_named()).then(|| Rank {
                has_other_full_name: !names.listed.iter().any(|n| is_listed_as(n, name.full)),
                has_other_name: !is_named_so,
                has_enough: !candidate.lacks_some(),
            })
        };
        nodes.iter().filter_map(|c| Some((rank(c)?, c))).collect()
    }
}

/// The rank of a constraint, smallest first. Ranks are compared by the fields in turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    has_other_full_name: bool,
    has_other_name: bool,
    /// Whether enough objects were assigned to the constraint already.
    has_enough: bool,
}

struct Candidate<'t> {
    index: usize,
    node: &'t Node,
    matched: Match,
    /// The number of objects that were assigned to the constraint before.
    count: u32,
}

/// Returns the index of the wanted candidate with the smallest rank.
fn best_of(
    ranked: &[(Rank, &Candidate<'_>)],
    wanted: impl Fn(&Candidate<'_>) -> bool,
) -> Option<usize> {
    // `min_by_key` returns the first of equal elements, which keeps the order of the template.
    let wanted = ranked.iter().filter(|(_, c)| wanted(c));
    wanted.min_by_key(|(rank, _)| *rank).map(|(_, c)| c.index)
}

impl Candidate<'_> {
    fn is_slot(&self) -> bool {
        matches!(self.node.constraint, Constraint::Slot { .. })
    }

    fn fits(&self) -> bool {
        self.matched == Match::Applies
    }

    /// Returns whether the constraint permits one object more.
    fn has_room(&self) -> bool {
        let upper = self.node.occurrences.upper;
        upper.is_none_or(|upper| self.count < upper)
    }

    /// Returns whether the constraint requires more objects.
    fn lacks_some(&self) -> bool {
        self.count < self.node.occurrences.lower
    }
}

/// Returns a name without the suffix ` #2` that distinguishes repeated siblings.
pub(super) fn plain_name(name: &str) -> &str {
    match name.rsplit_once(" #") {
        Some((front, number))
            if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            front
        }
        _ => name,
    }
}

/// Returns the slot for an object: one with room before a full one, then one that names its archetype
/// before one that permits any.
fn best_slot<'c, 't>(object: NodeRef<'_>, slots: &'c [Candidate<'t>]) -> Option<&'c Candidate<'t>> {
    let names_archetype = |candidate: &Candidate<'_>| match &candidate.node.constraint {
        Constraint::Slot { includes, .. } => slot::recommends(includes, node_id(object)),
        _ => false,
    };
    let fitting = slots.iter().filter(|c| c.fits());
    fitting.min_by_key(|c| (!c.has_room(), !names_archetype(c)))
}

/// Returns the node id of an object: at the root of an archetype its id (RM 1.1.0, common,
/// LOCATABLE).
pub(super) fn node_id(object: NodeRef<'_>) -> &str {
    object.text_at(Attr::ARCHETYPE_NODE_ID).unwrap_or_default()
}

fn identifies(object: NodeRef<'_>, node: &Node) -> bool {
    if !object.class().is_a(Cls::LOCATABLE) {
        return true;
    }
    let id = node_id(object);
    match (&node.constraint, &node.archetype_id) {
        (Constraint::Slot { includes, excludes }, _) => {
            aqlite_rm::id::is_archetype_id(id) && slot::permits(includes, excludes, id)
        }
        (_, Some(root)) => id == root,
        (_, None) => node.node_id.is_empty() || id == node.node_id,
    }
}

/// Returns whether the class of an object is that of the constraint or a descendant. The parameter
/// of a generic class must fit too.
pub(super) fn class_fits(object: NodeRef<'_>, node: &Node) -> bool {
    let Some(class) = node.class else {
        return false;
    };
    let limits = [Attr::LOWER, Attr::UPPER];
    let parameter = |parameter: Cls| {
        limits
            .iter()
            .filter_map(|a| object.get(*a))
            .all(|limit| limit.class().is_a(parameter))
    };
    let found = object.class();
    let same = found.is_a(class) || (class.is_primitive() && found.is_primitive());
    same && (found != Cls::DV_INTERVAL || node.parameter.is_none_or(parameter))
}

/// Returns the class of an object in the notation of archetypes, with the parameter of an interval.
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
    use aqlite_rm::json;

    const NAMED: &str = include_str!("../../../tests/cases/template/named.opt");

    #[test]
    fn siblings_with_equal_ids_are_assigned_by_name() {
        let template = Template::parse(NAMED).unwrap();
        let attribute = template.definition.attribute("content").unwrap();
        for (name, expected) in [
            ("First", Some(0)),
            ("First #2", Some(0)),
            ("Second", Some(1)),
            ("Topic", Some(2)),
            ("Thema", Some(2)),
            ("Third", Some(2)),
        ] {
            let text = format!(
                r#"{{"_type":"SECTION","archetype_node_id":"openEHR-EHR-SECTION.topic.v1","name":{{"_type":"DV_TEXT","value":"{name}"}}}}"#
            );
            let tree = json::read(&text, Cls::SECTION).unwrap();
            let siblings = Siblings::of(attribute, &template);
            let candidates = siblings.candidates(tree.root().unwrap());
            assert_eq!(
                siblings.choose(tree.root().unwrap(), &candidates, &[0, 0, 0]),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn siblings_with_equal_ids_are_filled_evenly() {
        let mut template = Template::parse(NAMED).unwrap();
        let content = template
            .definition
            .attributes
            .iter_mut()
            .find(|a| a.name == "content")
            .unwrap();
        let mut optional = content.children[2].clone();
        optional.occurrences = Multiplicity::ANY;
        let mandatory = Node {
            occurrences: Multiplicity {
                lower: 1,
                upper: Some(1),
            },
            ..optional.clone()
        };
        content.children = vec![optional, mandatory];
        let text = r#"{"_type":"SECTION","archetype_node_id":"openEHR-EHR-SECTION.topic.v1","name":{"_type":"DV_TEXT","value":"Topic"}}"#;
        let tree = json::read(text, Cls::SECTION).unwrap();
        let attribute = template.definition.attribute("content").unwrap();
        let siblings = Siblings::of(attribute, &template);
        let candidates = siblings.candidates(tree.root().unwrap());
        let chosen = |counts: &[usize]| siblings.choose(tree.root().unwrap(), &candidates, counts);
        assert_eq!(
            (chosen(&[0, 0]), chosen(&[0, 1]), chosen(&[1, 1])),
            (Some(1), Some(0), Some(0))
        );
    }
}
