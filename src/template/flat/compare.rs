//! Whether what was written gives back the document: which objects must be written otherwise, and what is let pass.

use crate::order;
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::{Kind, NodeId, NodeRef};
use crate::template::fit::plain_name;
use std::collections::{HashMap, HashSet};

/// What a comparison found.
#[derive(Default)]
pub(super) struct Outcome {
    /// Objects whose keys do not give them back.
    pub lost: HashSet<NodeId>,
    /// What the formats have no place for, and the document has.
    pub left: Vec<&'static str>,
}

/// What readers complete, so that a document may have it afterwards only.
const COMPLETED: [Attr; 7] =
    [Attr::ARCHETYPE_DETAILS, Attr::PRECISION, Attr::SIZE, Attr::LOWER_INCLUDED, Attr::UPPER_INCLUDED, Attr::LOWER_UNBOUNDED, Attr::UPPER_UNBOUNDED];

/// Compares a document with what its keys are read as; `places` has the objects with a key of their own, of which those in
/// `raw` were written as they are.
pub(super) fn compare(document: NodeRef<'_>, again: Option<NodeRef<'_>>, places: &HashMap<NodeId, String>, raw: &HashSet<NodeId>) -> Outcome {
    let mut comparison = Comparison { places, raw, outcome: Outcome::default() };
    match again {
        Some(again) => comparison.nodes(document, again, document.id()),
        None => drop(comparison.outcome.lost.insert(document.id())),
    }
    let Outcome { lost, left } = comparison.outcome;
    Outcome { lost, left: order::distinct(left) }
}

struct Comparison<'p> {
    places: &'p HashMap<NodeId, String>,
    raw: &'p HashSet<NodeId>,
    outcome: Outcome,
}

impl Comparison<'_> {
    /// `owner` is the innermost object around that can still be written otherwise.
    fn nodes(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        let is_place = self.places.contains_key(&given.id()) && !self.raw.contains(&given.id());
        let owner = if is_place { given.id() } else { owner };
        match given.kind() {
            Kind::Object if given.class() == again.class() => self.objects(given, again, owner),
            Kind::List if again.kind() == Kind::List => self.lists(given, again, owner),
            Kind::Object | Kind::List => self.lose(owner),
            _ if given.text() == again.text() => {}
            _ => self.leaves(given, again, owner),
        }
    }

    fn lose(&mut self, owner: NodeId) {
        self.outcome.lost.insert(owner);
    }

    fn objects(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        let is_level = given.class().is_a(Cls::LOCATABLE) && !self.places.contains_key(&given.id());
        for child in given.children() {
            let Some(attr) = child.attr() else { continue };
            let twin = again.get(attr);
            if attr == Attr::NAME && is_level && child.class() == Cls::DV_TEXT && !twin.is_some_and(|t| t.same_as(child)) {
                self.outcome.left.push("names of structures");
                continue;
            }
            match twin {
                Some(twin) if attr == Attr::ARCHETYPE_DETAILS => self.details(child, twin, owner),
                Some(twin) if attr == Attr::UID => self.uids(child, twin, owner),
                Some(twin) => self.nodes(child, twin, owner),
                None => self.lose(owner),
            }
        }
        let is_added = |child: NodeRef<'_>| child.attr().is_some_and(|attr| !COMPLETED.contains(&attr) && given.get(attr).is_none());
        if again.children().any(is_added) {
            self.lose(owner);
        }
    }

    fn details(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        let id = |node: NodeRef<'_>| node.text_along(&[Attr::ARCHETYPE_ID, Attr::VALUE]).map(str::to_owned);
        match given.same_as(again) {
            true => {}
            false if id(given) != id(again) => self.lose(owner),
            false => self.outcome.left.push("template ids and versions of inner archetypes"),
        }
    }

    fn uids(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        match given.text_at(Attr::VALUE) == again.text_at(Attr::VALUE) {
            true if given.class() == again.class() => {}
            true => self.outcome.left.push("classes of uids"),
            false => self.lose(owner),
        }
    }

    fn leaves(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        match given.attr() {
            Some(Attr::RM_VERSION) => {}
            Some(Attr::TYPE) if again.text() == "PARTY" => self.outcome.left.push("types of references to parties"),
            Some(Attr::VALUE) if plain_name(given.text()) == again.text() => self.outcome.left.push("numbers behind names"),
            _ => self.lose(owner),
        }
    }

    /// Members of one id keep their order; those of different ids come in that of the template.
    fn lists(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        let mut waiting: HashMap<(Cls, &str), Vec<(usize, NodeRef<'_>)>> = HashMap::new();
        for (index, member) in again.children().enumerate() {
            waiting.entry(identity(&member)).or_default().push((index, member));
        }
        waiting.values_mut().for_each(|members| members.reverse());
        for (index, member) in given.children().enumerate() {
            match waiting.get_mut(&identity(&member)).and_then(Vec::pop) {
                Some((place, twin)) => {
                    if place != index {
                        self.outcome.left.push("the order among different nodes");
                    }
                    self.nodes(member, twin, owner);
                }
                None => self.lose(owner),
            }
        }
        if waiting.values().any(|left| !left.is_empty()) {
            self.lose(owner);
        }
    }
}

/// What members of a list are told apart by: class and node id.
fn identity<'t>(member: &NodeRef<'t>) -> (Cls, &'t str) {
    let is_locatable = member.class().is_a(Cls::LOCATABLE);
    (member.class(), member.text_at(Attr::ARCHETYPE_NODE_ID).filter(|_| is_locatable).unwrap_or_default())
}
