//! One trie per variable: which steps of different paths are the same node, and how instances are
//! joined.

use aqlite::aql::query::{CompareOp, Literal, Predicate, PredicateValue, Query, Step};
use aqlite::rm::class::{Attr, Cls};
use std::collections::BTreeSet;

/// The tries of a query in order of first use, and the number of columns of a row.
pub struct Tries<'q> {
    pub of: Vec<(usize, Trie<'q>)>,
    pub width: usize,
}

pub struct Trie<'q> {
    pub attr: Attr,
    /// The column of the row that holds the instance.
    pub column: usize,
    /// The paths through it, each with its own predicate here.
    pub paths: Vec<(usize, Option<&'q Predicate>)>,
    /// The paths that end here.
    pub ends: Vec<usize>,
    pub kids: Vec<Trie<'q>>,
    pub mode: Mode,
    is_structural: bool,
    key: Key,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Left join.
    Left,
    /// Inner join.
    Chain,
}

/// The key that makes two steps the same node. `None`: every step at the attribute is the same.
type Key = Option<BTreeSet<Identifying>>;

/// The node id and name that a disjunct of a predicate requires.
type Identifying = (Option<String>, Option<String>);

pub fn of_query(query: &Query) -> Tries<'_> {
    let mut tries = Tries {
        of: Vec::new(),
        width: query.paths.len(),
    };
    for path in &query.paths {
        if tries.of.iter().all(|(v, _)| *v != path.variable) {
            let paths = query
                .paths
                .iter()
                .enumerate()
                .filter(|(_, p)| p.variable == path.variable)
                .map(|(i, p)| (i, p.root.as_ref()))
                .collect();
            let classes = BTreeSet::from([query.variables[path.variable].class]);
            let trie = build(
                query,
                Start {
                    attr: Attr::DATA,
                    is_structural: true,
                    key: None,
                    classes,
                    paths,
                },
                0,
                &mut tries.width,
            );
            tries.of.push((path.variable, trie));
        }
    }
    tries
}

struct Start<'q> {
    attr: Attr,
    is_structural: bool,
    key: Key,
    classes: BTreeSet<Cls>,
    paths: Vec<(usize, Option<&'q Predicate>)>,
}

fn build<'q>(query: &'q Query, start: Start<'q>, level: usize, width: &mut usize) -> Trie<'q> {
    let column = *width;
    *width += 1;
    let steps = |path: usize| &query.paths[path].steps;
    let ends: Vec<usize> = start
        .paths
        .iter()
        .map(|(p, _)| *p)
        .filter(|p| steps(*p).len() == level)
        .collect();
    let longer: Vec<usize> = start
        .paths
        .iter()
        .map(|(p, _)| *p)
        .filter(|p| steps(*p).len() > level)
        .collect();
    let step = |path: usize| &steps(path)[level];
    type Member<'q> = (usize, Option<&'q Predicate>);
    let mut groups: Vec<(Attr, Key, Vec<Member<'q>>)> = Vec::new();
    for path in &longer {
        let attr = step(*path).attr;
        let all: Vec<Vec<Identifying>> = longer
            .iter()
            .filter(|p| step(**p).attr == attr)
            .map(|p| disjuncts(step(*p).predicate.as_ref()))
            .collect();
        let key = identity(&disjuncts(step(*path).predicate.as_ref()), &all);
        let member = (*path, step(*path).predicate.as_ref());
        match groups.iter_mut().find(|(a, k, _)| *a == attr && *k == key) {
            Some((.., members)) => members.push(member),
            None => groups.push((attr, key, vec![member])),
        }
    }
    let mut kids = Vec::new();
    for (attr, key, paths) in groups {
        let classes = targets(&start.classes, attr);
        let is_structural = classes.iter().any(|c| is_structural(*c));
        kids.push(build(
            query,
            Start {
                attr,
                is_structural,
                key,
                classes,
                paths,
            },
            level + 1,
            width,
        ));
    }
    let is_chain = level > 0 && ends.is_empty() && kids.len() == 1 && kids[0].is_structural;
    let mode = if is_chain { Mode::Chain } else { Mode::Left };
    Trie {
        attr: start.attr,
        column,
        paths: start.paths,
        ends,
        kids,
        mode,
        is_structural: start.is_structural,
        key: start.key,
    }
}

impl<'q> Trie<'q> {
    /// Returns the node that a step of another path shares.
    pub fn kid_for(&self, step: &Step) -> Option<&Trie<'q>> {
        let wanted = disjuncts(step.predicate.as_ref());
        self.kids
            .iter()
            .filter(|k| k.attr == step.attr)
            .find(|kid| match &kid.key {
                None => true,
                Some(key) => {
                    let as_key = wanted.iter().map(|(id, name)| {
                        if id.is_some() && key.contains(&(id.clone(), None)) {
                            (id.clone(), None)
                        } else {
                            (id.clone(), name.clone())
                        }
                    });
                    as_key.collect::<BTreeSet<_>>() == *key
                }
            })
    }
}

/// Returns the key of one predicate among all at the same attribute.
fn identity(own: &[Identifying], all: &[Vec<Identifying>]) -> Key {
    let every: Vec<&Identifying> = all.iter().flatten().collect();
    if every
        .iter()
        .any(|(id, name)| id.is_none() && name.is_none())
    {
        return None;
    }
    if every.iter().all(|(id, _)| id.is_none()) {
        return Some(own.iter().cloned().collect());
    }
    if every.iter().any(|(id, _)| id.is_none()) {
        return None;
    }
    let always_named = |id: &Option<String>| {
        every
            .iter()
            .filter(|(other, _)| other == id)
            .all(|(_, name)| name.is_some())
    };
    Some(
        own.iter()
            .map(|(id, name)| (id.clone(), name.clone().filter(|_| always_named(id))))
            .collect(),
    )
}

/// Returns the identifying parts of each disjunct of a predicate.
fn disjuncts(predicate: Option<&Predicate>) -> Vec<Identifying> {
    match predicate {
        Some(Predicate::Or(any)) => any.iter().flat_map(|p| disjuncts(Some(p))).collect(),
        Some(Predicate::And(all)) => all.iter().fold(vec![(None, None)], |found, p| {
            let more = disjuncts(Some(p));
            let joined = |(id, name): &Identifying, (i, n): &Identifying| {
                (
                    id.clone().or_else(|| i.clone()),
                    name.clone().or_else(|| n.clone()),
                )
            };
            found
                .iter()
                .flat_map(|f| more.iter().map(|m| joined(f, m)).collect::<Vec<_>>())
                .collect()
        }),
        Some(Predicate::NodeId(id)) => vec![(Some(id.to_string()), None)],
        Some(Predicate::Compare(
            path,
            CompareOp::Eq,
            PredicateValue::Literal(Literal::Text(text)),
        )) => match path.iter().map(|s| s.attr).collect::<Vec<_>>().as_slice() {
            [Attr::ARCHETYPE_NODE_ID] => vec![(Some(text.to_string()), None)],
            [Attr::NAME, Attr::VALUE] => vec![(None, Some(text.to_string()))],
            _ => vec![(None, None)],
        },
        _ => vec![(None, None)],
    }
}

/// Returns the declared classes behind an attribute of any class that a value may have.
fn targets(classes: &BTreeSet<Cls>, attr: Attr) -> BTreeSet<Cls> {
    let possible = Cls::all().filter(|c| classes.iter().any(|declared| c.is_a(*declared)));
    let behind = |c: Cls| {
        if c == Cls::EHR && attr == Attr::EHR_STATUS {
            Some(Cls::EHR_STATUS)
        } else {
            c.attr(attr).map(|def| def.ty)
        }
    };
    possible.filter_map(behind).collect()
}

/// Returns whether an object of this declared class may be a structural node.
fn is_structural(declared: Cls) -> bool {
    const NODES: [Cls; 5] = [
        Cls::LOCATABLE,
        Cls::EVENT_CONTEXT,
        Cls::INSTRUCTION_DETAILS,
        Cls::FEEDER_AUDIT,
        Cls::FEEDER_AUDIT_DETAILS,
    ];
    declared != Cls::ANY
        && Cls::all().any(|c| c.is_a(declared) && NODES.iter().any(|node| c.is_a(*node)))
}
