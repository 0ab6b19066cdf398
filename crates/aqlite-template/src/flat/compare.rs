//! Comparison of a document with the document that its keys are read as. It decides which objects
//! need longer keys, and which differences are acceptable.

use crate::fit::plain_name;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;
use aqlite_rm::tree::{Kind, NodeId, NodeRef};
use std::collections::{HashMap, HashSet, VecDeque};

/// The objects for which the shortest keys are not sufficient.
#[derive(Default)]
pub(super) struct Detail {
    /// Objects that are written as canonical JSON.
    pub raw: HashSet<NodeId>,
    /// Objects that are written by keys of their own, because the suffixes of the enclosing object
    /// do not preserve them.
    pub long: HashSet<NodeId>,
    /// Objects that are written with their class.
    pub typed: HashSet<NodeId>,
    /// Attributes that a reader would complete, and that the object lacks.
    pub absent: HashMap<NodeId, Vec<Attr>>,
}

impl Detail {
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
            && self.long.is_empty()
            && self.typed.is_empty()
            && self.absent.is_empty()
    }

    pub fn extend(&mut self, more: Detail) {
        self.raw.extend(more.raw);
        self.long.extend(more.long);
        self.typed.extend(more.typed);
        for (object, attributes) in more.absent {
            self.absent.entry(object).or_default().extend(attributes);
        }
    }
}

/// The differences between a document and the document that its keys are read as.
#[derive(Default)]
pub(super) struct Outcome {
    /// Objects that need longer keys.
    pub more: Detail,
    /// Content of the document that the formats cannot represent.
    pub left: Vec<&'static str>,
}

/// Reference types that clients use for a party of any kind. Readers complete PARTY, so these
/// differences are accepted.
const ASSUMED: [&str; 2] = ["PERSON", "ANY"];

/// Attributes that readers complete. A document may have them after reading only.
const COMPLETED: [Attr; 7] = [
    Attr::ARCHETYPE_DETAILS,
    Attr::PRECISION,
    Attr::SIZE,
    Attr::LOWER_INCLUDED,
    Attr::UPPER_INCLUDED,
    Attr::LOWER_UNBOUNDED,
    Attr::UPPER_UNBOUNDED,
];

/// Compares a document with the document that its keys are read as. `places` holds the objects with
/// a key of their own, and `detail` those that were not written by the shortest keys.
pub(super) fn compare(
    document: NodeRef<'_>,
    again: Option<NodeRef<'_>>,
    places: &HashMap<NodeId, String>,
    detail: &Detail,
) -> Outcome {
    let mut comparison = Comparison {
        places,
        detail,
        outcome: Outcome::default(),
    };
    match again {
        Some(again) => comparison.nodes(document, again, document.id()),
        None => comparison.lose(document.id()),
    }
    let Outcome { more, left } = comparison.outcome;
    Outcome {
        more,
        left: order::distinct(left),
    }
}

/// Returns longer keys for objects whose keys were refused: first each part by keys of its own and
/// with its class, then canonical JSON.
pub(super) fn refused(document: NodeRef<'_>, owners: &HashSet<NodeId>, detail: &Detail) -> Outcome {
    let mut outcome = Outcome::default();
    expand(document, owners, detail, &mut outcome.more);
    outcome
}

fn expand(node: NodeRef<'_>, owners: &HashSet<NodeId>, detail: &Detail, more: &mut Detail) {
    if owners.contains(&node.id()) {
        let before = more.long.len();
        if !node.class().is_a(Cls::LOCATABLE) {
            node.children()
                .for_each(|child| lengthen(child, detail, more));
        }
        // Nothing is left to lengthen below this object, so only canonical JSON remains.
        if more.long.len() == before {
            more.raw.insert(node.id());
        }
    }
    node.children()
        .for_each(|child| expand(child, owners, detail, more));
}

/// Requests keys of their own for an object and the objects in it.
fn lengthen(node: NodeRef<'_>, detail: &Detail, more: &mut Detail) {
    if node.kind() == Kind::Object && !detail.long.contains(&node.id()) {
        more.long.insert(node.id());
        more.typed.insert(node.id());
    }
    node.children()
        .for_each(|child| lengthen(child, detail, more));
}

struct Comparison<'p> {
    places: &'p HashMap<NodeId, String>,
    detail: &'p Detail,
    outcome: Outcome,
}

impl Comparison<'_> {
    /// Compares two objects. `owner` is the innermost enclosing object with a key of its own.
    fn nodes(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        let is_place =
            self.places.contains_key(&given.id()) && !self.detail.raw.contains(&given.id());
        let inner = if is_place { given.id() } else { owner };
        match given.kind() {
            // Equal classes are compared further. A different class must be stated.
            Kind::Object if given.class() == again.class() => self.objects(given, again, inner),
            Kind::Object if again.kind() == Kind::Object => self.state_class(given, inner),
            Kind::List if again.kind() == Kind::List => self.lists(given, again, inner),
            _ => self.lose(inner),
        }
    }

    fn lose(&mut self, owner: NodeId) {
        self.outcome.more.raw.insert(owner);
    }

    /// Requests the class of an object, which also shows that the object exists.
    fn state_class(&mut self, object: NodeRef<'_>, owner: NodeId) {
        // The class was stated already and did not help, so only canonical JSON remains.
        if self.detail.typed.contains(&object.id()) {
            return self.lose(owner);
        }
        self.outcome.more.typed.insert(object.id());
        self.outcome.more.long.insert(object.id());
    }

    /// Requests keys of its own for an object.
    fn state_all(&mut self, object: NodeRef<'_>, owner: NodeId) {
        // An object with a key of its own cannot get longer keys.
        if object.id() == owner || self.detail.long.contains(&object.id()) {
            return self.lose(owner);
        }
        self.outcome.more.long.insert(object.id());
    }

    fn objects(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        let is_level = given.class().is_a(Cls::LOCATABLE) && !self.places.contains_key(&given.id());
        for child in given.children() {
            let Some(attr) = child.attr() else { continue };
            let twin = again.get(attr);
            let is_renamed = || !twin.is_some_and(|t| t.same_as(child));
            // The name of a structure that is a term in another language is not written, and readers
            // complete the term of the original language.
            let is_name = attr == Attr::NAME && child.class() == Cls::DV_TEXT;
            if is_level && is_name && is_renamed() {
                self.outcome.left.push("names of structures");
                continue;
            }
            match twin {
                Some(twin) if attr == Attr::ARCHETYPE_DETAILS => self.details(child, twin, owner),
                Some(twin)
                    if attr == Attr::UID
                        && child.text_at(Attr::VALUE) == twin.text_at(Attr::VALUE) =>
                {
                    if child.class() != twin.class() {
                        self.outcome.left.push("classes of uids");
                    }
                }
                Some(twin) if child.is_leaf() && twin.is_leaf() => {
                    self.leaves(given, child, twin, owner)
                }
                Some(twin) => self.nodes(child, twin, owner),
                None if child.kind() == Kind::Object => self.state_class(child, owner),
                None if child.kind() == Kind::List => child
                    .children()
                    .for_each(|member| self.state_class(member, owner)),
                None => self.state_all(given, owner),
            }
        }
        self.additions(given, again, owner);
    }

    /// Compares the attributes that the object has only after reading. Readers complete some.
    fn additions(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        let is_added = |attr: &Attr| !COMPLETED.contains(attr) && given.get(*attr).is_none();
        for child in again.children() {
            let Some(attr) = child.attr().filter(is_added) else {
                continue;
            };
            let stated = self.detail.absent.get(&given.id());
            // Only absent attributes of structures have a key that states their absence.
            if child.kind() == Kind::List
                || !given.class().is_a(Cls::PATHABLE)
                || stated.is_some_and(|stated| stated.contains(&attr))
            {
                self.lose(owner);
            } else {
                let absent = &mut self.outcome.more.absent;
                absent.entry(given.id()).or_default().push(attr);
            }
        }
    }

    fn details(&mut self, given: NodeRef<'_>, again: NodeRef<'_>, owner: NodeId) {
        let id = |node: NodeRef<'_>| {
            node.text_along(&[Attr::ARCHETYPE_ID, Attr::VALUE])
                .map(str::to_owned)
        };
        match given.same_as(again) {
            true => {}
            false if id(given) != id(again) => self.lose(owner),
            false => self
                .outcome
                .left
                .push("template ids and versions of inner archetypes"),
        }
    }

    /// Compares two leaves. `object` has the leaf `given`.
    fn leaves(
        &mut self,
        object: NodeRef<'_>,
        given: NodeRef<'_>,
        again: NodeRef<'_>,
        owner: NodeId,
    ) {
        match given.attr() {
            _ if given.text() == again.text() => {}
            // The release of the model is that of the reader.
            Some(Attr::RM_VERSION) => {}
            Some(Attr::TYPE) if again.text() == "PARTY" && ASSUMED.contains(&given.text()) => {
                self.outcome.left.push("types of references to parties")
            }
            Some(Attr::VALUE) if plain_name(given.text()) == again.text() => {
                self.outcome.left.push("numbers behind names")
            }
            _ => self.state_all(object, owner),
        }
    }

    /// Compares two lists. Members with equal id keep their order, those with equal names first.
    /// Members with different ids follow the order of the template.
    fn lists<'a>(&mut self, given: NodeRef<'a>, again: NodeRef<'a>, owner: NodeId) {
        let mut twins = Twins::of_list(again);
        // Members are paired in order by the name that they have after reading, then by order alone.
        // In a second round, so that no member takes the twin that has the name of another.
        let rounds: [fn(&Twins<'a>, NodeRef<'a>) -> Name<'a>; 2] =
            [|twins, member| Some(twins.name_of(member)), |_, _| None];
        let mut left: Vec<Member<'_>> = given.children().enumerate().collect();
        for name_in in rounds {
            for (index, member) in std::mem::take(&mut left) {
                let name = name_in(&twins, member);
                match twins.take((identity(&member), name)) {
                    Some(twin) => self.twins(index, member, twin, owner),
                    None => left.push((index, member)),
                }
            }
        }
        left.into_iter()
            .for_each(|(_, member)| self.state_class(member, owner));
        // The keys are read as more members than the document has.
        if twins.has_more() {
            self.lose(owner);
        }
    }

    fn twins(
        &mut self,
        index: usize,
        member: NodeRef<'_>,
        (place, twin): Member<'_>,
        owner: NodeId,
    ) {
        if place != index {
            self.outcome.left.push("the order among different nodes");
        }
        self.nodes(member, twin, owner);
    }
}

/// A member of a list with its index.
type Member<'t> = (usize, NodeRef<'t>);

/// The name of a member; `None` for those of every name.
type Name<'t> = Option<&'t str>;

/// The members of a list that was read. Each becomes the twin of at most one member that is written.
struct Twins<'a> {
    /// The members by identity and name, and by identity alone. Each is in two queues.
    queues: HashMap<(Identity<'a>, Name<'a>), VecDeque<Member<'a>>>,
    /// The indexes of the twins that were found.
    taken: HashSet<usize>,
    count: usize,
}

impl<'a> Twins<'a> {
    fn of_list(list: NodeRef<'a>) -> Twins<'a> {
        let mut queues: HashMap<_, VecDeque<_>> = HashMap::new();
        let mut count = 0;
        for (index, member) in list.children().enumerate() {
            for name in [Some(name_of(member)), None] {
                let queue = queues.entry((identity(&member), name)).or_default();
                queue.push_back((index, member));
            }
            count += 1;
        }
        Twins {
            queues,
            taken: HashSet::new(),
            count,
        }
    }

    /// Returns the name that a member which is written has after reading: its own, if that was read,
    /// else that without the number.
    fn name_of(&self, member: NodeRef<'a>) -> &'a str {
        let full = name_of(member);
        match self.queues.contains_key(&(identity(&member), Some(full))) {
            true => full,
            false => plain_name(full),
        }
    }

    /// Takes the first member that has this identity, and this name if there is one.
    fn take(&mut self, key: (Identity<'a>, Name<'a>)) -> Option<Member<'a>> {
        let queue = self.queues.get_mut(&key)?;
        // Members that were taken from their other queue are still in this one.
        std::iter::from_fn(|| queue.pop_front()).find(|(index, _)| self.taken.insert(*index))
    }

    /// Returns whether members without a twin are left.
    fn has_more(&self) -> bool {
        self.taken.len() < self.count
    }
}

/// Returns the name of a node. Empty for an object without a name.
fn name_of(member: NodeRef<'_>) -> &str {
    let name = if member.class().is_a(Cls::LOCATABLE) {
        member.text_along(&[Attr::NAME, Attr::VALUE])
    } else {
        None
    };
    name.unwrap_or_default()
}

/// The properties that distinguish members of a list: class and node id.
type Identity<'t> = (Cls, &'t str);

/// Returns the identity of a member of a list.
fn identity<'t>(member: &NodeRef<'t>) -> Identity<'t> {
    let is_locatable = member.class().is_a(Cls::LOCATABLE);
    (
        member.class(),
        member
            .text_at(Attr::ARCHETYPE_NODE_ID)
            .filter(|_| is_locatable)
            .unwrap_or_default(),
    )
}
