//! The plan of a query: its scan, and everything that is computed once for all documents.

use super::counting::CountingQuery;
use super::plan_cache::PlanCache;
use super::query::{
    ClassExpr, ColumnValue, CompareOp, Condition, Contains, Expr, IdentifiedPath, Literal,
    Predicate, PredicateValue, Query, Source, Step, Versions, Window,
};
use super::semi_join::SemiJoin;
use super::trie::{ExistsPlan, Trie};
use crate::answer::scan::{ArchetypeGroup, Scan};
use crate::document::ObjectKind;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::id::is_archetype_id;
use aqlite_rm::order;
use aqlite_rm::pattern::Pattern;

/// The largest number of distinct paths of a query.
pub const MAX_PATHS: usize = 256;

/// A planned query.
#[derive(Debug)]
pub struct Plan {
    pub(super) query: Query,
    pub(super) tries: Vec<Trie>,
    /// The plan of each path of [`Query::exists`], under the same index.
    pub(super) exists: Vec<ExistsPlan>,
    /// The number of columns of a row: all paths, then captured steps. At least 1, so that rows
    /// without paths can be counted.
    pub(super) width: usize,
    /// Whether each row belongs to one document only.
    pub(super) single: bool,
    /// Whether archetype ids match by equality only, without specializations.
    pub(super) exact: bool,
    pub(super) regexes: Vec<(String, Pattern)>,
    /// Whether rows can cost so much that all of them are tested before the first is output: see
    /// [`is_costly`].
    pub(super) costly: bool,
    pub(super) plan_cache: PlanCache,
    /// The plan that counts the rows, for a query that leaves out its first rows.
    pub(super) counting: Option<Box<Plan>>,
    /// The semi-joins of a query that joins documents.
    pub(super) semi_join: Option<Box<SemiJoin>>,
    scan: Scan,
}

/// A set of paths of one query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathSet([u64; MAX_PATHS / 64]);

impl PathSet {
    pub fn insert(&mut self, path: usize) {
        // `plan` rejects queries with more paths, so every path has a word.
        if let Some(word) = self.0.get_mut(path / 64) {
            *word |= 1 << (path % 64);
        }
    }

    pub fn contains(&self, path: usize) -> bool {
        self.0
            .get(path / 64)
            .is_some_and(|word| word & (1 << (path % 64)) != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; MAX_PATHS / 64]
    }
}

/// The code of a broken invariant in a query or its plan. A host reports it as an internal error.
pub const BROKEN_INVARIANT: &str = "AQL0901";

/// Returns the error of a broken invariant.
fn broken(what: &str) -> Diagnostic {
    let message = format!("an invariant of the engine is broken: {what}");
    Diagnostic::error(BROKEN_INVARIANT, Span::default(), message)
        .with_help("this is a defect of aqlite; report the query")
}

/// Plans a checked query.
///
/// `ehr` limits it to one EHR; `exact` compares archetype ids by equality only.
///
/// # Errors
/// If the query exceeds a limit of the engine, or reads a class that cannot be bound.
pub fn plan(query: Query, ehr: Option<&str>, exact: bool) -> Result<Plan, Vec<Diagnostic>> {
    check_answerable(&query)?;
    let counting = CountingQuery::of(&query);
    let every: Vec<usize> = (0..query.paths.len()).collect();
    let mut plan = plan_paths(query, &every, ehr, exact)?;
    if let Some(CountingQuery { query, paths }) = counting.filter(|_| plan.single) {
        plan.counting = Some(Box::new(plan_paths(query, &paths, ehr, exact)?));
    }
    plan.semi_join = SemiJoin::of(&plan, exact)?.map(Box::new);
    Ok(plan)
}

/// Plans a query of which only some paths are read, given by their indexes.
pub(super) fn plan_paths(
    query: Query,
    paths: &[usize],
    ehr: Option<&str>,
    exact: bool,
) -> Result<Plan, Vec<Diagnostic>> {
    let mut tries = path_tries(&query, paths);
    // A row without columns could not be counted.
    let mut width = query.paths.len().max(1);
    let exists = exists_plans(&query, &mut tries, &mut width)?;
    let regexes = regexes(&query)?;
    let derived = uses_derived(&query);
    // The status and derived objects are not part of a document, so their rows need other
    // documents.
    let single = is_single(&query.from) && !uses_status(&query) && !derived;
    let mut scan = scan(&query, ehr, single);
    // Derived objects are computed from old versions too.
    scan.all_versions |= derived;
    scan.derived = derived;
    Ok(Plan {
        costly: is_costly(&query),
        query,
        tries,
        exists,
        width,
        single,
        exact,
        regexes,
        plan_cache: PlanCache::default(),
        counting: None,
        semi_join: None,
        scan,
    })
}

/// Checks that the query is within the limits of the engine, and reads only classes that can be
/// bound.
fn check_answerable(query: &Query) -> Result<(), Vec<Diagnostic>> {
    let refusal = too_many_paths(query)
        .or_else(|| unanswerable_class_in_from(query))
        .or_else(|| path_without_variable(query));
    refusal.map_or(Ok(()), |refusal| Err(vec![refusal]))
}

/// Returns the error of a query with more than [`MAX_PATHS`] paths.
fn too_many_paths(query: &Query) -> Option<Diagnostic> {
    let count = query.paths.len();
    (count > MAX_PATHS).then(|| {
        let message =
            format!("a query may use at most {MAX_PATHS} different paths, this one uses {count}");
        Diagnostic::error("AQL0003", Span::default(), message)
            .with_help("select whole objects, or split the query")
    })
}

/// Returns the error of a query with a class in FROM that cannot be bound. The checker has reported
/// it with its position.
fn unanswerable_class_in_from(query: &Query) -> Option<Diagnostic> {
    let mut classes = query.variables.iter().map(|variable| variable.class);
    classes.find_map(|class| unanswerable_class(class, Span::default()))
}

/// Returns the error of a class in FROM, written at `span`, that cannot be bound: CONTRIBUTION and
/// the classes of the demographic model.
pub fn unanswerable_class(class: Cls, span: Span) -> Option<Diagnostic> {
    let (reason, help) = if class.is_a(Cls::CONTRIBUTION) {
        (
            "",
            "use VERSION: `v/contribution/id/value` names the contribution, `v/commit_audit` tells who, when and why",
        )
    } else if is_demographic(class) {
        (
            ": queries read EHRs, and demographic parties are in none",
            "read parties by `demographic/person/{uid}` and its siblings; in an EHR, `PARTY_IDENTIFIED` names a person",
        )
    } else {
        return None;
    };
    let message = format!("`{class}` cannot be queried{reason}");
    Some(Diagnostic::error("AQL0504", span, message).with_help(help))
}

/// Returns the error of a query with a path that starts at no variable. The checker rejects such
/// paths.
fn path_without_variable(query: &Query) -> Option<Diagnostic> {
    let starts_nowhere = |p: &IdentifiedPath| query.variables.get(p.variable).is_none();
    let mut paths = query.paths.iter().chain(&query.exists);
    paths
        .any(starts_nowhere)
        .then(|| broken("a path starts at no variable of FROM"))
}

/// Builds one trie for each variable that has some of these paths, in order of first use.
fn path_tries(query: &Query, paths: &[usize]) -> Vec<Trie> {
    let variable = |path: &usize| query.paths.get(*path).map(|p| p.variable);
    let mut tries: Vec<Trie> = Vec::new();
    for own in paths.iter().filter_map(variable) {
        if !tries.iter().any(|t| t.variable == own) {
            let is_own = |path: &&usize| variable(path) == Some(own);
            let of_variable: Vec<usize> = paths.iter().filter(is_own).copied().collect();
            let class = class_of(query, own);
            tries.push(Trie::build(own, class, &query.paths, &of_variable));
        }
    }
    tries
}

/// Plans the paths of EXISTS. Adds the columns that their plans capture to `width`.
fn exists_plans(
    query: &Query,
    tries: &mut Vec<Trie>,
    width: &mut usize,
) -> Result<Vec<ExistsPlan>, Vec<Diagnostic>> {
    let mut exists = Vec::with_capacity(query.exists.len());
    for path in &query.exists {
        // A variable may occur in EXISTS only. Its trie then is the root alone at first.
        if !tries.iter().any(|t| t.variable == path.variable) {
            let class = class_of(query, path.variable);
            tries.push(Trie::build(path.variable, class, &[], &[]));
        }
        // Each path must get a plan: conditions refer to the plans by index.
        let Some(trie) = tries.iter_mut().find(|t| t.variable == path.variable) else {
            return Err(vec![broken("a path of EXISTS has no trie")]);
        };
        exists.push(trie.share(path, width));
    }
    Ok(exists)
}

/// The number of tests above which a query is costly, and of columns with other expressions than
/// paths.
const MAX_CHEAP_TESTS: usize = 16;

/// Returns whether the rows of a query cost much more than reading them: by LIKE, functions, many
/// conditions or aggregates, or many columns that are compared.
fn is_costly(query: &Query) -> bool {
    let columns = query.select.iter().map(|column| match &column.value {
        ColumnValue::Aggregate(_) => 1,
        ColumnValue::Expr(expr) => calls_in(expr),
    });
    let is_grouped = query
        .select
        .iter()
        .any(|column| matches!(column.value, ColumnValue::Aggregate(_)));
    let compares = query.distinct || is_grouped || !query.order.is_empty();
    let is_wide = compares && query.select.len().max(query.order.len()) > MAX_CHEAP_TESTS;
    let condition = query.condition.as_ref();
    is_wide
        || columns.sum::<usize>() > MAX_CHEAP_TESTS
        || condition.map_or(0, tests_in) > MAX_CHEAP_TESTS
}

/// Returns the number of tests in a condition. LIKE and function calls count as many tests.
fn tests_in(condition: &Condition) -> usize {
    match condition {
        Condition::And(terms) | Condition::Or(terms) => terms.iter().map(tests_in).sum(),
        Condition::Not(inner) => tests_in(inner),
        // One LIKE or function call is sufficient to make a query costly.
        Condition::Like(..)
        | Condition::Compare(Expr::Call(..), ..)
        | Condition::Compare(_, _, Expr::Call(..)) => MAX_CHEAP_TESTS + 1,
        _ => 1,
    }
}

/// Returns the number of function calls in an expression.
fn calls_in(expr: &Expr) -> usize {
    if let Expr::Call(_, arguments) = expr {
        1 + arguments.iter().map(calls_in).sum::<usize>()
    } else {
        0
    }
}

/// Returns whether a class belongs to the demographic model, which no document of an EHR contains
/// (RM, Demographic Information Model).
fn is_demographic(class: Cls) -> bool {
    const PARTS: [Cls; 7] = [
        Cls::PARTY,
        Cls::PARTY_IDENTITY,
        Cls::CONTACT,
        Cls::ADDRESS,
        Cls::CAPABILITY,
        Cls::PARTY_RELATIONSHIP,
        Cls::VERSIONED_PARTY,
    ];
    PARTS.into_iter().any(|part| class.is_a(part))
}

impl Plan {
    /// Returns the scan: the data that the query needs from a repository.
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Returns whether the rows of a document do not depend on other documents and are in document
    /// order. The rows of several batches then are those of each batch, one after the other.
    pub fn has_independent_rows(&self) -> bool {
        self.single && self.query.keeps_found_order() && self.query.window.is_none()
    }

    /// Returns whether the query can be evaluated on consecutive parts of the documents, each by
    /// [`Query::of_part`], whose results are merged by [`Run::absorb`](super::Run::absorb).
    pub fn is_divisible(&self) -> bool {
        let scan = &self.scan;
        let needs_ehrs = scan.ehrs.is_some() || scan.whole_ehrs || scan.empty_ehrs || scan.derived;
        self.single && self.semi_join.is_none() && !needs_ehrs && !scan.kinds.is_empty()
    }

    /// Returns whether the first documents can be sufficient, because any rows fill the window.
    pub fn may_end_early(&self) -> bool {
        let query = &self.query;
        let is_first = matches!(query.window, Some(Window::First { .. }));
        is_first && !query.is_grouped() && query.order.is_empty()
    }

    /// Returns whether archetype ids are compared by equality only.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns whether this is the plan of a query, without the argument `ehr` of [`plan`].
    pub fn is_of(&self, query: &Query, exact: bool) -> bool {
        self.scan.ehr().is_none() && self.exact == exact && self.query == *query
    }

    /// Returns the number of layouts for which the plan has cached results.
    pub fn cached_layouts(&self) -> usize {
        let semi_join = self.semi_join.as_ref().map(|join| &join.plan);
        let others = self.counting.as_deref().into_iter().chain(semi_join);
        let others: usize = others.map(Plan::cached_layouts).sum();
        self.plan_cache.len() + others
    }

    /// Returns the checked query.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Returns the merged paths of each variable.
    pub fn tries(&self) -> &[Trie] {
        &self.tries
    }

    /// Limits the plan to some EHRs, including those that population queries do not read. The query
    /// must name none.
    #[must_use]
    pub fn among(mut self, ehrs: &[String]) -> Plan {
        self.narrow(ehrs);
        self
    }

    fn narrow(&mut self, ehrs: &[String]) {
        self.scan.ehrs = Some(ehrs.to_vec());
        self.scan.unqueryable = true;
        if let Some(semi_join) = &mut self.semi_join {
            semi_join.plan.narrow(ehrs);
            let sides = semi_join.sides.iter_mut();
            sides.for_each(|side| side.plan.narrow(ehrs));
        }
    }

    /// Returns the plan with the scan of a query that joins documents of an EHR.
    pub(super) fn for_join_of(self, scan: &Scan) -> Plan {
        Plan {
            single: false,
            scan: scan.clone(),
            ..self
        }
    }
}

/// The attributes of an EHR that are derived from its documents. An EHR_ACCESS is never stored.
pub(super) const EHR_REFERENCES: [Attr; 4] = [
    Attr::COMPOSITIONS,
    Attr::CONTRIBUTIONS,
    Attr::DIRECTORY,
    Attr::FOLDERS,
];

/// Returns whether a query reads objects that are derived from all versions of an EHR: its
/// references, or VERSIONED_OBJECTs.
fn uses_derived(query: &Query) -> bool {
    query
        .variables
        .iter()
        .any(|v| v.class.is_a(Cls::VERSIONED_OBJECT))
        || leaves_ehr_by(query, &EHR_REFERENCES)
}

/// Returns whether a path from an EHR, in a clause or a predicate, starts with one of some
/// attributes.
fn leaves_ehr_by(query: &Query, attrs: &[Attr]) -> bool {
    let mut found = false;
    each_class(&query.from, &mut |e| {
        found |= e.class == Cls::EHR
            && e.predicate
                .as_ref()
                .is_some_and(|p| predicate_starts(p, attrs))
    });
    let mut of_ehr = query
        .paths
        .iter()
        .chain(&query.exists)
        .filter(|p| class_of(query, p.variable) == Cls::EHR);
    found
        || of_ehr.any(|p| {
            starts(&p.steps, attrs)
                || p.root
                    .as_ref()
                    .is_some_and(|root| predicate_starts(root, attrs))
        })
}

fn predicate_starts(predicate: &Predicate, attrs: &[Attr]) -> bool {
    match predicate {
        Predicate::And(terms) | Predicate::Or(terms) => {
            terms.iter().any(|t| predicate_starts(t, attrs))
        }
        Predicate::NodeId(_) => false,
        Predicate::Compare(path, _, PredicateValue::Path(other)) => {
            starts(path, attrs) || starts(other, attrs)
        }
        Predicate::Compare(path, ..) | Predicate::Regex(path, _) => starts(path, attrs),
    }
}

fn starts(path: &[Step], attrs: &[Attr]) -> bool {
    path.first().is_some_and(|step| attrs.contains(&step.attr))
}

fn class_of(query: &Query, variable: usize) -> Cls {
    query.variables.get(variable).map_or(Cls::ANY, |v| v.class)
}

fn regexes(query: &Query) -> Result<Vec<(String, Pattern)>, Vec<Diagnostic>> {
    let mut patterns = Vec::new();
    each_class(&query.from, &mut |expr| {
        patterns.extend(expr.predicate.iter().flat_map(patterns_of))
    });
    for path in query.paths.iter().chain(&query.exists) {
        let predicates = path
            .root
            .iter()
            .chain(path.steps.iter().filter_map(|s| s.predicate.as_ref()));
        patterns.extend(predicates.flat_map(patterns_of));
    }
    // The checker has reported patterns that do not compile, with their positions.
    let compile = |pattern: String| match compile_pattern(&pattern, Span::default()) {
        Ok(compiled) => Ok((pattern, compiled)),
        Err(problem) => Err(vec![problem]),
    };
    let distinct = order::distinct(patterns);
    distinct.into_iter().map(compile).collect()
}

/// Compiles the pattern of a predicate, written at `span`, without the slashes around it.
///
/// # Errors
/// For a pattern that [`Pattern::compile`] does not support.
pub fn compile_pattern(pattern: &str, span: Span) -> Result<Pattern, Diagnostic> {
    Pattern::compile(pattern).ok_or_else(|| {
        let message = format!("`/{pattern}/` is not a regular expression that is known here");
        Diagnostic::error("AQL0210", span, message).with_help(
            "known are `.`, classes, groups, `|`, `* + ? {m,n}`, `\\d \\w \\s` and escaped signs",
        )
    })
}

fn patterns_of(predicate: &Predicate) -> Vec<String> {
    match predicate {
        Predicate::And(terms) | Predicate::Or(terms) => {
            terms.iter().flat_map(patterns_of).collect()
        }
        Predicate::Regex(_, pattern) => vec![pattern.clone()],
        _ => Vec::new(),
    }
}

/// Visits the class expressions of FROM, outermost first.
pub(super) fn each_class<'q>(source: &'q Source, visit: &mut dyn FnMut(&'q ClassExpr)) {
    match source {
        Source::And(left, right) | Source::Or(left, right) => {
            each_class(left, visit);
            each_class(right, visit);
        }
        Source::Class(expr) => {
            visit(expr);
            if let Contains::Some(inner) | Contains::None(inner) = &expr.contains {
                each_class(inner, visit);
            }
        }
    }
}

/// Returns whether FROM is a chain to one document: without joins, folders, and EHRs without
/// documents.
pub(super) fn is_single(from: &Source) -> bool {
    let Source::Class(expr) = from else {
        return false;
    };
    match (&expr.contains, expr.class) {
        (Contains::Some(inner), Cls::EHR) => is_single(inner),
        (_, Cls::EHR) => false,
        _ => {
            let mut folders = false;
            // A LOCATABLE with CONTAINS can be a folder, which contains the compositions that it
            // references.
            let lists = |e: &ClassExpr| {
                e.class == Cls::FOLDER
                    || (e.contains != Contains::Nothing && Cls::FOLDER.is_a(e.class))
            };
            each_class(from, &mut |e| folders |= lists(e));
            !folders
        }
    }
}

/// Returns whether a query reads the EHR_STATUS by a path from the EHR, or returns an EHR.
pub(super) fn uses_status(query: &Query) -> bool {
    let whole = |p: &IdentifiedPath| p.steps.is_empty() && class_of(query, p.variable) == Cls::EHR;
    query.paths.iter().any(whole) || leaves_ehr_by(query, &[Attr::EHR_STATUS])
}

fn scan(query: &Query, ehr: Option<&str>, single: bool) -> Scan {
    let mut all_versions = false;
    each_class(&query.from, &mut |e| {
        all_versions |= e.class.is_a(Cls::VERSION) && e.versions == Versions::All
    });
    let ehr = ehr.map(str::to_owned).or_else(|| named_ehr(query));
    Scan {
        // A query for one EHR reads it even if population queries leave it out.
        unqueryable: ehr.is_some(),
        ehrs: ehr.map(|ehr| vec![ehr]),
        kinds: kinds(query, single),
        all_versions,
        whole_ehrs: !single,
        derived: false,
        empty_ehrs: !single,
        // Documents without an archetype can be left out only if each row belongs to one document.
        archetypes: if single {
            archetypes(&query.from)
        } else {
            Vec::new()
        },
        snapshot: None,
    }
}

/// Returns the kinds of documents that a query can read; none if it reads EHRs only.
fn kinds(query: &Query, single: bool) -> Vec<ObjectKind> {
    let mut all = vec![
        ObjectKind::Composition,
        ObjectKind::EhrStatus,
        ObjectKind::Folder,
    ];
    all.retain(|kind| {
        if single {
            may_hold(&query.from, *kind)
        } else {
            may_touch(query, *kind)
        }
    });
    all
}

/// Returns false if neither a class of FROM nor a path from an EHR can lead to a document of a
/// kind.
fn may_touch(query: &Query, kind: ObjectKind) -> bool {
    let mut touched = uses_derived(query) || kind == ObjectKind::EhrStatus && uses_status(query);
    each_class(&query.from, &mut |e| {
        touched |= e.class != Cls::EHR && may_occur_in(e.class, kind)
    });
    touched
}

/// Returns false if no document of a kind has an object of a class.
pub(super) fn may_occur_in(class: Cls, kind: ObjectKind) -> bool {
    match class {
        Cls::EHR_STATUS => kind == ObjectKind::EhrStatus,
        class if class == Cls::COMPOSITION || class.is_a(Cls::CONTENT_ITEM) => {
            kind == ObjectKind::Composition
        }
        _ => true,
    }
}

/// Returns false if no document of a kind can satisfy FROM.
fn may_hold(source: &Source, kind: ObjectKind) -> bool {
    match source {
        Source::And(left, right) => may_hold(left, kind) && may_hold(right, kind),
        Source::Or(left, right) => may_hold(left, kind) || may_hold(right, kind),
        Source::Class(expr) => {
            may_occur_in(expr.class, kind)
                && if let Contains::Some(inner) = &expr.contains {
                    may_hold(inner, kind)
                } else {
                    true
                }
        }
    }
}

/// Returns the archetypes that a document must have: those of the class expressions that each row
/// binds.
fn archetypes(source: &Source) -> Vec<ArchetypeGroup> {
    match source {
        Source::And(left, right) => [archetypes(left), archetypes(right)].concat(),
        // Either side can have rows, so neither is required.
        Source::Or(..) => Vec::new(),
        Source::Class(expr) => {
            let mut found: Vec<ArchetypeGroup> = expr
                .predicate
                .iter()
                .filter_map(pinned_archetypes)
                .map(ArchetypeGroup)
                .collect();
            if let Contains::Some(inner) = &expr.contains {
                found.extend(archetypes(inner));
            }
            found
        }
    }
}

/// Returns the archetype ids of which a node must have one to pass a predicate.
fn pinned_archetypes(predicate: &Predicate) -> Option<Vec<String>> {
    match predicate {
        Predicate::NodeId(id) if is_archetype_id(id) => Some(vec![id.to_string()]),
        // All terms must be true, so one term that requires an id is sufficient.
        Predicate::And(terms) => terms.iter().find_map(pinned_archetypes),
        // Each alternative must require an id, or documents without these ids could pass.
        Predicate::Or(terms) => terms
            .iter()
            .map(pinned_archetypes)
            .collect::<Option<Vec<_>>>()
            .map(|ids| ids.concat()),
        _ => None,
    }
}

/// Returns the EHR that a query names in the predicate of EHR, or in a conjunct of WHERE.
fn named_ehr(query: &Query) -> Option<String> {
    let found = match &query.from {
        Source::Class(expr) if expr.class == Cls::EHR => {
            expr.predicate.as_ref().and_then(ehr_of_predicate)
        }
        _ => None,
    };
    found.or_else(|| {
        query
            .condition
            .as_ref()
            .and_then(|c| ehr_of_condition(query, c))
    })
}

fn ehr_of_predicate(predicate: &Predicate) -> Option<String> {
    match predicate {
        Predicate::And(terms) => terms.iter().find_map(ehr_of_predicate),
        Predicate::Compare(path, CompareOp::Eq, PredicateValue::Literal(literal))
            if is_ehr_id(&path.iter().map(|s| s.attr).collect::<Vec<_>>()) =>
        {
            text_of(literal)
        }
        _ => None,
    }
}

fn ehr_of_condition(query: &Query, condition: &Condition) -> Option<String> {
    let names_ehr = |expr: &Expr| match expr {
        Expr::Path(p) => query.paths.get(*p).is_some_and(|path| {
            class_of(query, path.variable) == Cls::EHR
                && path.root.is_none()
                && is_ehr_id(&path.steps.iter().map(|s| s.attr).collect::<Vec<_>>())
        }),
        _ => false,
    };
    match condition {
        Condition::And(terms) => terms.iter().find_map(|t| ehr_of_condition(query, t)),
        Condition::Compare(left, CompareOp::Eq, Expr::Literal(literal)) if names_ehr(left) => {
            text_of(literal)
        }
        Condition::Matches(left, members) if names_ehr(left) => {
            // MATCHES with a single member is an equality.
            let mut literals = members.literals();
            match (literals.next(), literals.next()) {
                (Some(only), None) => text_of(only),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_ehr_id(path: &[Attr]) -> bool {
    matches!(path, [Attr::EHR_ID, Attr::VALUE])
}

fn text_of(literal: &Literal) -> Option<String> {
    match literal {
        Literal::Text(text) | Literal::Untyped(text) => Some(text.to_string()),
        _ => None,
    }
}
