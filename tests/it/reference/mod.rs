//! The reference evaluator: it evaluates queries naively over document trees, as the expected
//! result for the engine.
//!
//! It follows the definition of rows step by step: assignments of FROM, one trie per variable,
//! expansion, WHERE, groups, order, distinct, window. It shares only the checked query with the
//! engine. Every comparison, function and date is implemented again, for clarity rather than speed.
//! Everything is materialized; too many rows result in no answer.

mod derived;
mod number;
mod output;
mod time;
mod trie;
mod value;

use super::notation::Repository;
use aqlite::aql::query::{
    ClassExpr, CompareOp, Condition, Contains, Expr, IdentifiedPath, Literal, Members, Predicate,
    PredicateValue, Query, ShortUid, Source, Step, Versions,
};
use aqlite::document::{EhrRow, ObjectKind};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::rm::tree::{Kind, NodeRef, Tree};
use std::cell::Cell;
use value::{Value, compare};

/// The parts of a request besides the query.
pub struct Options<'a> {
    pub ehr: Option<&'a str>,
    pub exact: bool,
    pub now: &'a str,
}

/// Returns the rows of a query, each as a JSON array. `None` if there are too many intermediate
/// rows.
pub fn rows(query: &Query, repository: &Repository, options: &Options<'_>) -> Option<Vec<String>> {
    let ehrs: Vec<Tree> = repository.ehrs.iter().map(ehr_tree).collect();
    let (references, containers) = derived::of(repository);
    let world = World {
        query,
        repository,
        ehrs: &ehrs,
        references: &references,
        containers: &containers,
        exact: options.exact,
        now: options.now,
        overflow: Cell::new(false),
    };
    let scope = options.ehr.map(str::to_owned).or_else(|| world.named_ehr());
    let tries = trie::of_query(query);
    let mut kept: Vec<(Vec<(u64, u64)>, Row<'_>)> = Vec::new();
    for (number, ehr) in repository.ehrs.iter().enumerate() {
        let visible = scope
            .as_ref()
            .map_or(ehr.is_queryable, |id| *id == ehr.ehr_id);
        if !visible {
            continue;
        }
        for assignment in world.bind(&query.from, Parent::Ehr(number)) {
            let key: Vec<(u64, u64)> = assignment
                .iter()
                .map(|found| found.map_or((u64::MAX, u64::MAX), |f| f.place))
                .collect();
            for row in world.rows_of(&assignment, &tries) {
                if query
                    .condition
                    .as_ref()
                    .is_none_or(|c| world.truth(c, &assignment, &tries, &row) == Some(true))
                {
                    kept.push((key.clone(), row));
                }
                if kept.len() > MOST {
                    return None;
                }
            }
        }
    }
    kept.sort_by(|a, b| a.0.cmp(&b.0));
    let rows: Vec<Row<'_>> = kept.into_iter().map(|(_, row)| row).collect();
    (!world.overflow.get()).then(|| output::finish(&world, &rows))
}

const MOST: usize = 15_000;

struct World<'a> {
    query: &'a Query,
    repository: &'a Repository,
    ehrs: &'a [Tree],
    references: &'a [Tree],
    containers: &'a [derived::Container],
    exact: bool,
    now: &'a str,
    overflow: Cell<bool>,
}

/// A node of a document, or a leaf, with the class of the object that contains it.
#[derive(Clone, Copy)]
struct At<'a> {
    node: NodeRef<'a>,
    holder: Cls,
    ehr: usize,
}

/// A node that is bound to a variable, and its place in the default order.
#[derive(Clone, Copy)]
struct Found<'a> {
    at: At<'a>,
    /// The document, if the node is its version or its root.
    document: Option<usize>,
    place: (u64, u64),
}

/// One entry for each variable of FROM.
type Assignment<'a> = Vec<Option<Found<'a>>>;

/// One entry for each path of the query, then one for each step of the tries.
type Row<'a> = Vec<Option<At<'a>>>;

/// The parent below which a class expression is searched.
#[derive(Clone, Copy)]
enum Parent<'a> {
    Ehr(usize),
    Version(usize),
    Object(usize),
    Folder(At<'a>),
    Node(At<'a>),
}

fn ehr_tree(ehr: &EhrRow) -> Tree {
    let text = format!(
        r#"{{"_type":"EHR","system_id":{{"value":"{}"}},"ehr_id":{{"value":"{}"}},"time_created":{{"value":"{}"}}}}"#,
        ehr.system_id, ehr.ehr_id, ehr.time_created
    );
    json::read(&text, Cls::EHR).expect("an EHR")
}

impl<'a> World<'a> {
    // --- FROM

    fn bind(&self, source: &Source, parent: Parent<'a>) -> Vec<Assignment<'a>> {
        match source {
            Source::And(left, right) => {
                self.product(&self.bind(left, parent), &self.bind(right, parent))
            }
            Source::Or(left, right) => {
                let (left, right) = (self.bind(left, parent), self.bind(right, parent));
                if left.is_empty() || right.is_empty() {
                    [left, right].concat()
                } else {
                    self.product(&left, &right)
                }
            }
            Source::Class(expr) => self.bind_class(expr, parent),
        }
    }

    fn bind_class(&self, expr: &ClassExpr, parent: Parent<'a>) -> Vec<Assignment<'a>> {
        let mut out = Vec::new();
        for found in self.candidates(expr, parent) {
            if !expr
                .predicate
                .as_ref()
                .is_none_or(|p| self.holds(p, found.at))
            {
                continue;
            }
            let mut own = vec![None; self.query.variables.len()];
            own[expr.variable] = Some(found);
            let below = match found.at.node.class() {
                Cls::EHR => Parent::Ehr(found.at.ehr),
                class if class.is_a(Cls::VERSION) => {
                    Parent::Version(found.document.expect("a version"))
                }
                class if class.is_a(Cls::VERSIONED_OBJECT) => {
                    Parent::Object(found.document.expect("a first version"))
                }
                Cls::FOLDER => Parent::Folder(found.at),
                _ => Parent::Node(found.at),
            };
            match &expr.contains {
                Contains::Nothing => out.push(own),
                Contains::Some(inner) => out.extend(self.product(&[own], &self.bind(inner, below))),
                Contains::None(inner) if self.bind(inner, below).is_empty() => out.push(own),
                Contains::None(_) => {}
            }
            if out.len() > MOST {
                self.overflow.set(true);
                return Vec::new();
            }
        }
        out
    }

    fn product(&self, left: &[Assignment<'a>], right: &[Assignment<'a>]) -> Vec<Assignment<'a>> {
        if left.len() * right.len() > MOST {
            self.overflow.set(true);
            return Vec::new();
        }
        left.iter()
            .flat_map(|l| right.iter().map(|r| merged(l, r)))
            .collect()
    }

    fn candidates(&self, expr: &ClassExpr, parent: Parent<'a>) -> Vec<Found<'a>> {
        let class = expr.class;
        if class == Cls::EHR {
            return match parent {
                Parent::Ehr(ehr) => vec![Found {
                    at: self.root(&self.ehrs[ehr], ehr),
                    document: None,
                    place: (0, 0),
                }],
                _ => Vec::new(),
            };
        }
        if class.is_a(Cls::VERSION) {
            return self.version_candidates(expr, parent);
        }
        if class.is_a(Cls::VERSIONED_OBJECT) {
            return self.container_candidates(class, parent);
        }
        let mut out = Vec::new();
        match parent {
            Parent::Ehr(ehr) => self
                .documents_of(ehr)
                .filter(|d| self.is_current(*d))
                .for_each(|d| self.of_document(d, &mut out)),
            Parent::Version(document) => self.of_document(document, &mut out),
            Parent::Object(first) => self
                .versions_of(first)
                .filter(|d| self.is_current(*d))
                .for_each(|d| self.of_document(d, &mut out)),
            Parent::Folder(folder) => {
                descend(folder, false, &mut out);
                for document in self.listed(folder) {
                    self.of_document(document, &mut out);
                }
            }
            Parent::Node(node) => descend(
                node,
                expr.predicate.as_ref().is_some_and(pins_local_code),
                &mut out,
            ),
        }
        if !matches!(parent, Parent::Ehr(_)) {
            out.iter_mut()
                .enumerate()
                .for_each(|(i, found)| found.place = (i as u64, 0));
        }
        out.retain(|f| f.at.node.class().is_a(class));
        out
    }

    fn version_candidates(&self, expr: &ClassExpr, parent: Parent<'a>) -> Vec<Found<'a>> {
        let class = expr.class;
        let wanted = |d: &usize| expr.versions == Versions::All || self.is_current(*d);
        let documents: Vec<usize> = match parent {
            Parent::Ehr(ehr) => self.documents_of(ehr).filter(wanted).collect(),
            Parent::Folder(folder) => self
                .listed_objects(folder)
                .into_iter()
                .flat_map(|d| self.versions_of(d))
                .filter(wanted)
                .collect(),
            Parent::Object(first) => self.versions_of(first).filter(wanted).collect(),
            _ => Vec::new(),
        };
        let versions = documents.into_iter().enumerate().map(|(i, d)| {
            let document = &self.repository.documents[d];
            let place = if let Parent::Folder(_) = parent {
                (i as u64, 0)
            } else {
                (document.row.ordinal, 0)
            };
            Found {
                at: self.root(&document.tree, document.ehr),
                document: Some(d),
                place,
            }
        });
        versions.filter(|f| f.at.node.class().is_a(class)).collect()
    }

    fn container_candidates(&self, class: Cls, parent: Parent<'a>) -> Vec<Found<'a>> {
        let firsts: Vec<usize> = match parent {
            Parent::Ehr(ehr) => self
                .containers
                .iter()
                .map(|c| c.first)
                .filter(|d| self.repository.documents[*d].ehr == ehr)
                .collect(),
            Parent::Folder(folder) => self
                .listed(folder)
                .into_iter()
                .filter_map(|d| self.versions_of(d).next())
                .collect(),
            _ => Vec::new(),
        };
        let all = firsts.into_iter().enumerate().filter_map(|(i, first)| {
            let container = self.containers.iter().find(|c| c.first == first)?;
            let document = &self.repository.documents[first];
            let place = if let Parent::Ehr(_) = parent {
                document.row.ordinal
            } else {
                i as u64
            };
            Some(Found {
                at: self.root(&container.tree, document.ehr),
                document: Some(first),
                place: (place, 0),
            })
        });
        all.filter(|f| f.at.node.class().is_a(class)).collect()
    }

    /// Adds the root of the data of a version and everything below.
    fn of_document(&self, number: usize, out: &mut Vec<Found<'a>>) {
        let document = &self.repository.documents[number];
        let start = out.len();
        for data in document
            .tree
            .root()
            .into_iter()
            .flat_map(|v| v.values(Attr::DATA))
        {
            let at = At {
                node: data,
                holder: Cls::ANY,
                ehr: document.ehr,
            };
            out.push(Found {
                at,
                document: Some(number),
                place: (0, 0),
            });
            descend(at, false, out);
        }
        out.iter_mut()
            .skip(start)
            .enumerate()
            .for_each(|(i, found)| found.place = (document.row.ordinal, i as u64));
    }

    fn documents_of(&self, ehr: usize) -> impl Iterator<Item = usize> {
        let documents = &self.repository.documents;
        (0..documents.len()).filter(move |d| documents[*d].ehr == ehr)
    }

    /// Returns the versions of the object of a document, oldest first.
    fn versions_of(&self, document: usize) -> impl Iterator<Item = usize> {
        let documents = &self.repository.documents;
        let object = &documents[document].row.object_id;
        (0..documents.len()).filter(move |d| documents[*d].row.object_id == *object)
    }

    fn is_current(&self, document: usize) -> bool {
        let row = &self.repository.documents[document].row;
        row.latest && !row.deleted
    }

    /// Returns the latest versions of the compositions in a folder, then of those in its
    /// sub-folders.
    fn listed(&self, folder: At<'a>) -> Vec<usize> {
        self.listed_objects(folder)
            .into_iter()
            .filter_map(|first| self.versions_of(first).find(|d| self.is_current(*d)))
            .collect()
    }

    /// Returns the first versions of the compositions in a folder, then of those in its
    /// sub-folders.
    fn listed_objects(&self, folder: At<'a>) -> Vec<usize> {
        let mut out = Vec::new();
        for item in folder.node.values(Attr::ITEMS) {
            let id = item
                .text_along(&[Attr::ID, Attr::VALUE])
                .unwrap_or_default();
            let object = id.split("::").next().unwrap_or_default();
            out.extend(self.documents_of(folder.ehr).find(|d| {
                let row = &self.repository.documents[*d].row;
                row.kind == ObjectKind::Composition && row.object_id == object
            }));
        }
        for inner in folder.node.values(Attr::FOLDERS) {
            out.extend(self.listed_objects(At {
                node: inner,
                ..folder
            }));
        }
        out
    }

    fn root(&self, tree: &'a Tree, ehr: usize) -> At<'a> {
        At {
            node: tree.root().expect("a tree"),
            holder: Cls::ANY,
            ehr,
        }
    }

    /// Returns the EHR that the query itself names.
    fn named_ehr(&self) -> Option<String> {
        let of_predicate = |p: &Predicate| match p {
            Predicate::Compare(path, CompareOp::Eq, PredicateValue::Literal(Literal::Text(id)))
                if attrs(path) == [Attr::EHR_ID, Attr::VALUE] =>
            {
                Some(id.to_string())
            }
            _ => None,
        };
        let of_source = |source: &Source| match source {
            Source::Class(expr) if expr.class == Cls::EHR => match &expr.predicate {
                Some(Predicate::And(all)) => all.iter().find_map(of_predicate),
                other => other.as_ref().and_then(of_predicate),
            },
            _ => None,
        };
        let of_condition = |condition: &Condition| match condition {
            Condition::Compare(
                Expr::Path(path),
                CompareOp::Eq,
                Expr::Literal(Literal::Text(id)),
            ) => {
                let path = &self.query.paths[*path];
                let is_id = self.query.variables[path.variable].class == Cls::EHR
                    && path.root.is_none()
                    && attrs(&path.steps) == [Attr::EHR_ID, Attr::VALUE];
                is_id.then(|| id.to_string())
            }
            _ => None,
        };
        of_source(&self.query.from).or_else(|| match &self.query.condition {
            Some(Condition::And(all)) => all.iter().find_map(of_condition),
            other => other.as_ref().and_then(of_condition),
        })
    }

    // --- paths and predicates

    /// Returns the values at an attribute. The step from an EHR to its status follows the
    /// reference.
    fn step(&self, at: At<'a>, attr: Attr) -> Vec<At<'a>> {
        let class = at.node.class();
        if class == Cls::EHR && attr == Attr::EHR_STATUS {
            let status = self.documents_of(at.ehr).find(|d| {
                self.is_current(*d)
                    && self.repository.documents[*d].row.kind == ObjectKind::EhrStatus
            });
            let data =
                status.and_then(|d| self.repository.documents[d].tree.root()?.get(Attr::DATA));
            return data
                .into_iter()
                .map(|node| At {
                    node,
                    holder: class,
                    ehr: at.ehr,
                })
                .collect();
        }
        let referred = self
            .references
            .get(at.ehr)
            .and_then(Tree::root)
            .filter(|_| class == Cls::EHR);
        let values = at
            .node
            .values(attr)
            .chain(referred.into_iter().flat_map(|r| r.values(attr)));
        values
            .map(|node| At {
                node,
                holder: class,
                ehr: at.ehr,
            })
            .collect()
    }

    fn reach(&self, at: At<'a>, path: &[Step]) -> Vec<At<'a>> {
        path.iter().fold(vec![at], |nodes, step| {
            let next = nodes.into_iter().flat_map(|n| self.step(n, step.attr));
            next.filter(|n| step.predicate.as_ref().is_none_or(|p| self.holds(p, *n)))
                .collect()
        })
    }

    /// Evaluates a node predicate with two values: unknown is false, and one matching value at a
    /// path is sufficient.
    fn holds(&self, predicate: &Predicate, at: At<'a>) -> bool {
        let values = |path: &[Step]| -> Vec<Value> {
            self.reach(at, path).into_iter().map(Value::of).collect()
        };
        match predicate {
            Predicate::And(all) => all.iter().all(|p| self.holds(p, at)),
            Predicate::Or(any) => any.iter().any(|p| self.holds(p, at)),
            Predicate::NodeId(id) => at
                .node
                .text_at(Attr::ARCHETYPE_NODE_ID)
                .is_some_and(|own| is_kind_of(own, id, self.exact)),
            Predicate::Compare(path, op, PredicateValue::Literal(literal)) => values(path)
                .iter()
                .any(|v| compare(v, *op, &Value::literal(literal)) == Some(true)),
            Predicate::Compare(path, op, PredicateValue::Uid(members)) => {
                let expected = Some(*op == CompareOp::Eq);
                values(path).iter().any(|v| matches(v, members) == expected)
            }
            Predicate::Compare(path, op, PredicateValue::Path(other)) => {
                values(path).iter().any(|l| {
                    values(other)
                        .iter()
                        .any(|r| compare(l, *op, r) == Some(true))
                })
            }
            Predicate::Regex(path, pattern) => {
                let regex =
                    regex_lite::Regex::new(&format!("^(?:{pattern})$")).expect("a checked pattern");
                values(path)
                    .iter()
                    .any(|v| v.text().is_some_and(|text| regex.is_match(&text)))
            }
        }
    }

    // --- rows

    fn rows_of(&self, assignment: &Assignment<'a>, tries: &trie::Tries<'_>) -> Vec<Row<'a>> {
        let mut rows = vec![vec![None; tries.width]];
        for (variable, trie) in &tries.of {
            let at = assignment[*variable].map(|f| f.at);
            let alive: Vec<usize> = match at {
                Some(at) => trie
                    .paths
                    .iter()
                    .filter(|(_, p)| p.is_none_or(|p| self.holds(p, at)))
                    .map(|(path, _)| *path)
                    .collect(),
                None => Vec::new(),
            };
            let more = self.expand(trie, at, &alive, tries.width);
            rows = self.row_product(&rows, &more);
        }
        rows
    }

    fn row_product(&self, left: &[Row<'a>], right: &[Row<'a>]) -> Vec<Row<'a>> {
        if left.len() * right.len() > MOST {
            self.overflow.set(true);
            return Vec::new();
        }
        left.iter()
            .flat_map(|l| right.iter().map(|r| merged(l, r)))
            .collect()
    }

    /// Expands one instance of a step (none: the step vanishes), or its absence.
    fn expand(
        &self,
        trie: &trie::Trie<'_>,
        at: Option<At<'a>>,
        alive: &[usize],
        width: usize,
    ) -> Vec<Row<'a>> {
        let mut own = vec![None; width];
        own[trie.column] = at;
        for path in trie.ends.iter().filter(|p| alive.contains(p)) {
            own[*path] = at;
        }
        let mut rows = vec![own];
        for kid in &trie.kids {
            let mut below = Vec::new();
            for instance in at.into_iter().flat_map(|at| self.step(at, kid.attr)) {
                let passing = kid.paths.iter().filter(|(path, p)| {
                    alive.contains(path) && p.is_none_or(|p| self.holds(p, instance))
                });
                let passing: Vec<usize> = passing.map(|(path, _)| *path).collect();
                if !passing.is_empty() {
                    below.extend(self.expand(kid, Some(instance), &passing, width));
                }
            }
            if below.is_empty() {
                if trie.mode == trie::Mode::Chain {
                    return Vec::new();
                }
                below.push(vec![None; width]);
            }
            rows = self.row_product(&rows, &below);
        }
        rows
    }

    // --- WHERE

    fn truth(
        &self,
        condition: &Condition,
        assignment: &Assignment<'a>,
        tries: &trie::Tries<'_>,
        row: &Row<'a>,
    ) -> Option<bool> {
        let truths = |all: &[Condition]| -> Vec<Option<bool>> {
            all.iter()
                .map(|c| self.truth(c, assignment, tries, row))
                .collect()
        };
        match condition {
            Condition::And(all) => match truths(all) {
                t if t.contains(&Some(false)) => Some(false),
                t if t.contains(&None) => None,
                _ => Some(true),
            },
            Condition::Or(any) => match truths(any) {
                t if t.contains(&Some(true)) => Some(true),
                t if t.contains(&None) => None,
                _ => Some(false),
            },
            Condition::Not(inner) => self.truth(inner, assignment, tries, row).map(|t| !t),
            Condition::Compare(left, op, right) => {
                compare(&self.value(left, row), *op, &self.value(right, row))
            }
            Condition::Like(expr, pattern) => {
                let text: Vec<char> = self.value(expr, row).text()?.chars().collect();
                Some(value::is_like(&text, pattern.items()))
            }
            Condition::Matches(expr, members) => matches(&self.value(expr, row), members),
            Condition::Exists(index) => {
                let path = &self.query.exists[*index];
                Some(self.exists(path, assignment, tries, row))
            }
            Condition::Constant(truth) => *truth,
        }
    }

    fn exists(
        &self,
        path: &IdentifiedPath,
        assignment: &Assignment<'a>,
        tries: &trie::Tries<'_>,
        row: &Row<'a>,
    ) -> bool {
        let passes =
            |at: At<'a>, p: &Option<Predicate>| p.as_ref().is_none_or(|p| self.holds(p, at));
        let Some(mut at) = assignment[path.variable].map(|f| f.at) else {
            return false;
        };
        if !passes(at, &path.root) {
            return false;
        }
        let mut trie = tries
            .of
            .iter()
            .find(|(v, _)| *v == path.variable)
            .map(|(_, t)| t);
        for (level, step) in path.steps.iter().enumerate() {
            trie = trie.and_then(|t| t.kid_for(step));
            // A row of NULLs does not bind the node. The data are then looked for below the last
            // node that it binds.
            match trie.and_then(|trie| row[trie.column]) {
                Some(node) if passes(node, &step.predicate) => at = node,
                Some(_) => return false,
                None => return !self.reach(at, &path.steps[level..]).is_empty(),
            }
        }
        true
    }

    fn value(&self, expr: &Expr, row: &Row<'a>) -> Value {
        match expr {
            Expr::Path(path) => row[*path].map_or(Value::Null, Value::of),
            Expr::Literal(literal) => Value::literal(literal),
            Expr::Call(function, arguments) => {
                let arguments: Vec<(Value, Option<String>)> = arguments
                    .iter()
                    .map(|a| (self.value(a, row), digits(a, row)))
                    .collect();
                value::call(*function, &arguments, self.now).unwrap_or(Value::Null)
            }
        }
    }
}

/// Evaluates MATCHES. A list of short uids also matches the uids of their versions.
fn matches(value: &Value, members: &Members) -> Option<bool> {
    let mut found: Vec<Option<bool>> = members
        .literals()
        .map(|m| compare(value, CompareOp::Eq, &Value::literal(m)))
        .collect();
    let short = |s: &ShortUid, uid: &str| match uid.split("::").collect::<Vec<_>>().as_slice() {
        [object, _, number] => {
            s.object == **object && s.number.as_ref().is_none_or(|n| n == number)
        }
        _ => false,
    };
    let short_uids: Vec<ShortUid> = members
        .literals()
        .filter(|_| members.is_by_short_uid())
        .filter_map(ShortUid::of)
        .collect();
    found.extend(
        short_uids
            .iter()
            .map(|s| value.text().map(|uid| short(s, &uid))),
    );
    if found.contains(&Some(true)) {
        Some(true)
    } else if found.contains(&None) {
        None
    } else {
        Some(false)
    }
}

/// Returns the digits of a numeric expression as stored or written.
fn digits(expr: &Expr, row: &Row<'_>) -> Option<String> {
    match expr {
        Expr::Path(path) => row[*path].and_then(value::digits),
        Expr::Literal(Literal::Number(token)) => Some(token.to_string()),
        _ => None,
    }
}

fn merged<T: Copy>(left: &[Option<T>], right: &[Option<T>]) -> Vec<Option<T>> {
    left.iter().zip(right).map(|(l, r)| r.or(*l)).collect()
}

fn attrs(path: &[Step]) -> Vec<Attr> {
    path.iter().map(|s| s.attr).collect()
}

/// Returns the objects below a node in document order. `local` excludes those below a nested
/// archetype root.
fn descend<'a>(at: At<'a>, local: bool, out: &mut Vec<Found<'a>>) {
    for child in at.node.children() {
        let elements: Vec<NodeRef<'a>> = if child.kind() == Kind::List {
            child.children().collect()
        } else {
            vec![child]
        };
        for node in elements.into_iter().filter(|n| n.kind() == Kind::Object) {
            let below = At {
                node,
                holder: at.node.class(),
                ehr: at.ehr,
            };
            out.push(Found {
                at: below,
                document: None,
                place: (0, 0),
            });
            if !(local
                && node
                    .text_at(Attr::ARCHETYPE_NODE_ID)
                    .is_some_and(|id| archetype(id).is_some()))
            {
                descend(below, local, out);
            }
        }
    }
}

/// Returns whether every alternative constrains `archetype_node_id` to a code.
fn pins_local_code(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::And(all) => all.iter().any(pins_local_code),
        Predicate::Or(any) => any.iter().all(pins_local_code),
        Predicate::NodeId(id) => archetype(id).is_none(),
        Predicate::Compare(path, CompareOp::Eq, PredicateValue::Literal(Literal::Text(id))) => {
            attrs(path) == [Attr::ARCHETYPE_NODE_ID] && archetype(id).is_none()
        }
        _ => false,
    }
}

/// Splits `openEHR-EHR-OBSERVATION.a-b.v1.2` into (`openEHR-EHR-OBSERVATION`, `a-b`, `1.2`).
fn archetype(id: &str) -> Option<(&str, &str, &str)> {
    let (front, version) = id
        .rsplit_once(".v")
        .filter(|(_, v)| v.starts_with(|c: char| c.is_ascii_digit()))?;
    let (class, concept) = front.split_once('.')?;
    (class.matches('-').count() == 2).then_some((class, concept, version))
}

/// Tests equality, and unless `exact` specialization: of a concept in the same class and version,
/// of a code by `.n`.
fn is_kind_of(own: &str, wanted: &str, exact: bool) -> bool {
    if own == wanted || exact {
        return own == wanted;
    }
    match (archetype(own), archetype(wanted)) {
        (Some((class, concept, version)), Some((c, parent, v))) => {
            // An id with minor and patch version matches only itself, which was tested above.
            let concept_fits = concept == parent || concept.starts_with(&format!("{parent}-"));
            let version_fits =
                !v.contains('.') && (version == v || version.starts_with(&format!("{v}.")));
            class == c && concept_fits && version_fits
        }
        (None, None) => own.starts_with(&format!("{wanted}.")),
        _ => false,
    }
}
