//! The paths of one variable, merged into a trie. It determines which steps of different paths are
//! the same node, and how rows are combined.
//!
//! Paths that share a step concern the same object there: `items[at0004]/value` and
//! `items[at0004]/name` are columns of one ELEMENT. The steps that paths share are determined once for
//! each query, from the predicates of all paths together. The example is in `eval/expand.rs`.

use super::query::{CompareOp, IdentifiedPath, Literal, Predicate, PredicateValue, Step};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;
use std::sync::Arc;

/// The merged paths of one variable.
#[derive(Debug)]
pub struct Trie {
    /// Index of the variable in the query.
    pub variable: usize,
    /// The nodes. The first is the variable itself.
    pub nodes: Vec<TrieNode>,
}

/// A step that several paths can share.
#[derive(Debug)]
pub struct TrieNode {
    /// The attribute; without a meaning for the root.
    pub attr: Attr,
    /// The paths that pass the node or end at it, each with its own predicate at this step.
    pub paths: Vec<(usize, Option<Predicate>)>,
    /// The paths that end at the node.
    pub ends: Vec<usize>,
    /// The indexes of the child nodes.
    pub children: Vec<usize>,
    /// The way in which rows of its instances are combined with rows of child nodes.
    pub mode: Mode,
    /// Whether the step leads to a structural object, and not to a value.
    pub structural: bool,
    /// The key that steps of several paths must have to share the node; `None` if every step has
    /// it.
    pub(super) key: Option<StepKey>,
    /// The column of a row that holds the instance, if a condition needs it.
    pub capture: Option<usize>,
}

/// The combination of the rows of an instance with the rows of its children, as a kind of join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Left join: an instance has a row, and children without rows are NULL.
    Left,
    /// Inner join, for purely structural steps: an instance without rows below has no row.
    Inner,
}

/// The identifying parts of a predicate: node id and name of each alternative.
pub(super) type StepKey = Vec<(Option<Arc<str>>, Option<Arc<str>>)>;

/// The plan of an EXISTS path: the nodes of it that a row can bind.
///
/// A row of NULLs binds fewer nodes than others. The steps behind the last node that it binds are
/// evaluated below that node.
#[derive(Debug)]
pub(super) struct ExistsPlan {
    /// The columns of the nodes, from that of the variable on; `None` for a node that is never the
    /// last bound one and has no predicate.
    pub columns: Vec<Option<usize>>,
}

impl Trie {
    /// Merges the paths of a variable, given by their indexes in `all`.
    pub(super) fn build(
        variable: usize,
        class: Cls,
        all: &[IdentifiedPath],
        paths: &[usize],
    ) -> Trie {
        let mut trie = Trie {
            variable,
            nodes: Vec::new(),
        };
        let members = paths
            .iter()
            .filter_map(|p| all.get(*p).map(|path| (*p, path.root.clone())))
            .collect();
        trie.grow(
            Growth {
                attr: Attr::DATA,
                classes: vec![class],
                members,
                level: 0,
                structural: true,
                key: None,
            },
            all,
        );
        trie
    }

    /// Adds a node with the nodes below it, and returns its index.
    fn grow(&mut self, g: Growth, all: &[IdentifiedPath]) -> usize {
        let index = self.nodes.len();
        let length = |p: usize| all.get(p).map_or(0, |path| path.steps.len());
        let of_length = |is_wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
            let members = g.members.iter().map(|(p, _)| *p);
            members.filter(|p| is_wanted(length(*p))).collect()
        };
        let ends = of_length(&|length| length == g.level);
        let longer = of_length(&|length| length > g.level);
        // The node is added before its children, so the root has index 0.
        self.nodes.push(TrieNode {
            attr: g.attr,
            paths: g.members,
            ends,
            children: Vec::new(),
            mode: Mode::Left,
            structural: g.structural,
            key: g.key,
            capture: None,
        });
        let children = self.grow_children(&g.classes, g.level, &longer, all);
        self.set_children(index, g.level, children);
        index
    }

    /// Adds the child nodes of a node with these classes, for the paths with further steps.
    fn grow_children(
        &mut self,
        classes: &[Cls],
        level: usize,
        longer: &[usize],
        all: &[IdentifiedPath],
    ) -> Vec<usize> {
        split(all, longer, level)
            .into_iter()
            .map(|(step, key, members)| {
                let (classes, structural) = targets(classes, step);
                self.grow(
                    Growth {
                        attr: step,
                        classes,
                        members,
                        level: level + 1,
                        structural,
                        key,
                    },
                    all,
                )
            })
            .collect()
    }

    /// Sets the children of a node, and the mode that follows from them. A step without a path that
    /// ends at it has no row of its own if it leads only to one structural step.
    fn set_children(&mut self, index: usize, level: usize, children: Vec<usize>) {
        let only_structural = matches!(children.as_slice(), [child] if self.nodes.get(*child).is_some_and(|k| k.structural));
        if let Some(node) = self.nodes.get_mut(index) {
            node.mode = if level > 0 && only_structural && node.ends.is_empty() {
                Mode::Inner
            } else {
                Mode::Left
            };
            node.children = children;
        }
    }

    /// Plans an EXISTS path. Its longest prefix that is a node of this trie is shared, and the
    /// nodes are captured in columns from `next` on.
    pub(super) fn share(&mut self, path: &IdentifiedPath, next: &mut usize) -> ExistsPlan {
        let mut columns = vec![Some(self.capture(0, next))];
        let mut at = 0;
        for step in &path.steps {
            let Some(child) = self.child_for(at, step) else {
                break;
            };
            at = child;
            // A row that binds an instance of an inner join also binds the node below it.
            let is_left = self
                .nodes
                .get(child)
                .is_some_and(|node| node.mode == Mode::Left);
            let is_read = is_left || step.predicate.is_some();
            columns.push(is_read.then(|| self.capture(child, next)));
        }
        if let Some(last) = columns.last_mut() {
            *last = Some(self.capture(at, next));
        }
        ExistsPlan { columns }
    }

    fn child_for(&self, at: usize, step: &Step) -> Option<usize> {
        let wanted = alternatives(step.predicate.as_ref());
        self.nodes.get(at)?.children.iter().copied().find(|child| {
            self.nodes.get(*child).is_some_and(|k| {
                k.attr == step.attr && k.key.as_ref().is_none_or(|key| covers(key, &wanted))
            })
        })
    }

    fn capture(&mut self, node: usize, next: &mut usize) -> usize {
        let Some(node) = self.nodes.get_mut(node) else {
            return 0;
        };
        // A node that several conditions need is captured in one column.
        *node.capture.get_or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }
}

struct Growth {
    attr: Attr,
    classes: Vec<Cls>,
    members: Vec<(usize, Option<Predicate>)>,
    level: usize,
    structural: bool,
    key: Option<StepKey>,
}

type StepGroup = (Attr, Option<StepKey>, Vec<(usize, Option<Predicate>)>);

/// Groups paths by attribute and key of their next step, in order of first use.
fn split(all: &[IdentifiedPath], paths: &[usize], level: usize) -> Vec<StepGroup> {
    let steps: Vec<(usize, &Step)> = paths
        .iter()
        .filter_map(|p| all.get(*p)?.steps.get(level).map(|s| (*p, s)))
        .collect();
    let mut groups: Vec<StepGroup> = Vec::new();
    for (path, step) in &steps {
        let same_attr: Vec<Option<&Predicate>> = steps
            .iter()
            .filter(|(_, s)| s.attr == step.attr)
            .map(|(_, s)| s.predicate.as_ref())
            .collect();
        let key = identity(step.predicate.as_ref(), &same_attr);
        let member = (*path, step.predicate.clone());
        match groups
            .iter_mut()
            .find(|(attr, k, _)| *attr == step.attr && *k == key)
        {
            Some((_, _, members)) => members.push(member),
            None => groups.push((step.attr, key, vec![member])),
        }
    }
    groups
}

/// Returns the key of a predicate among all predicates on the same attribute; `None` if all of them
/// share one node.
fn identity(own: Option<&Predicate>, all: &[Option<&Predicate>]) -> Option<StepKey> {
    let everyone: Vec<StepKey> = all.iter().map(|p| alternatives(*p)).collect();
    let every = || everyone.iter().flatten();
    // A predicate without a node id can match any node. All steps then share one node, unless each
    // predicate has a name.
    let names_only = every().all(|(id, name)| id.is_none() && name.is_some());
    if !names_only && every().any(|(id, _)| id.is_none()) {
        return None;
    }
    // A name distinguishes nodes only if every predicate with this node id has one.
    let is_named = |id: &Option<Arc<str>>| {
        every()
            .filter(|(other, _)| other == id)
            .all(|(_, name)| name.is_some())
    };
    Some(order::distinct(alternatives(own).into_iter().map(
        |(id, name)| {
            if is_named(&id) {
                (id, name)
            } else {
                (id, None)
            }
        },
    )))
}

/// Returns whether steps with the wanted parts share the node with a key.
fn covers(key: &StepKey, wanted: &StepKey) -> bool {
    let as_key = |(id, name): &(Option<Arc<str>>, Option<Arc<str>>)| {
        let unnamed = (id.clone(), None);
        if id.is_some() && key.contains(&unnamed) {
            unnamed
        } else {
            (id.clone(), name.clone())
        }
    };
    order::distinct(wanted.iter().map(as_key)) == *key
}

/// Returns the identifying parts of each alternative; `(None, None)` for an alternative without
/// any.
fn alternatives(predicate: Option<&Predicate>) -> StepKey {
    match predicate {
        None => vec![(None, None)],
        Some(Predicate::Or(terms)) => terms.iter().flat_map(|t| alternatives(Some(t))).collect(),
        // AND combines the alternatives of its terms. The first node id and the first name are
        // kept.
        Some(Predicate::And(terms)) => terms.iter().fold(vec![(None, None)], |found, term| {
            let more = alternatives(Some(term));
            found
                .iter()
                .flat_map(|(id, name)| {
                    more.iter()
                        .map(move |(i, n)| (id.clone().or(i.clone()), name.clone().or(n.clone())))
                })
                .collect()
        }),
        Some(Predicate::NodeId(id)) => vec![(Some(id.clone()), None)],
        Some(Predicate::Compare(
            path,
            CompareOp::Eq,
            PredicateValue::Literal(Literal::Text(text)),
        )) => match path_attrs(path).as_slice() {
            [Attr::ARCHETYPE_NODE_ID] => vec![(Some(text.clone()), None)],
            [Attr::NAME, Attr::VALUE] => vec![(None, Some(text.clone()))],
            _ => vec![(None, None)],
        },
        Some(_) => vec![(None, None)],
    }
}

fn path_attrs(path: &[Step]) -> Vec<Attr> {
    path.iter().map(|s| s.attr).collect()
}

/// Returns the classes that a step can lead to from some classes, and whether one of them is
/// structural.
fn targets(classes: &[Cls], attr: Attr) -> (Vec<Cls>, bool) {
    let mut found: Vec<Cls> = Vec::new();
    let mut structural = false;
    for class in Cls::all().filter(|c| classes.iter().any(|d| c.is_a(*d))) {
        if let Some(target) = target(class, attr) {
            if !found.contains(&target) {
                found.push(target);
            }
            structural |= is_structural(target);
        }
    }
    (found, structural)
}

/// Returns the declared class of an attribute. EHR/ehr_status leads to the EHR_STATUS itself,
/// instead of the reference.
pub(super) fn target(class: Cls, attr: Attr) -> Option<Cls> {
    match (class, attr) {
        (Cls::EHR, Attr::EHR_STATUS) => Some(Cls::EHR_STATUS),
        _ => class.attr(attr).map(|def| def.ty),
    }
}

/// Returns whether objects of a class are structural: LOCATABLE, EVENT_CONTEXT,
/// INSTRUCTION_DETAILS, FEEDER_AUDIT, or a class that can be one of these.
fn is_structural(class: Cls) -> bool {
    const ROOTS: [Cls; 5] = [
        Cls::LOCATABLE,
        Cls::EVENT_CONTEXT,
        Cls::INSTRUCTION_DETAILS,
        Cls::FEEDER_AUDIT,
        Cls::FEEDER_AUDIT_DETAILS,
    ];
    class != Cls::ANY
        && ROOTS
            .iter()
            .any(|root| class.is_a(*root) || root.is_a(class))
}
