//! Semi-joins: the plan of a query that joins documents of an EHR.
//!
//! An EHR has rows only if it has a document for each class expression that it must contain. Only
//! documents that satisfy the conditions about them alone can be joined. These documents are found
//! first, by a separate plan without a join for each class expression. The join then reads no other
//! documents.
//!
//! A class expression that contributes nothing to the result is left out of the join if repeated
//! rows make no difference.

use super::plan::{MAX_PATHS, Plan, each_class, is_single, plan_paths, uses_status};
use super::query::{
    Aggregate, ClassExpr, Column, ColumnValue, Condition, Contains, Expr, IdentifiedPath, OrderBy,
    Query, Source,
};
use super::reads::Reads;
use aqlite_rm::class::Cls;
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::order;

/// The plan of a join, and the plans that find the documents which it can join.
#[derive(Debug)]
pub(super) struct SemiJoin {
    /// The plan of the join.
    pub plan: Plan,
    /// The class expressions whose documents are found first.
    pub sides: Vec<JoinSide>,
    /// Whether the join leaves out some of the sides.
    pub is_smaller: bool,
    /// Whether the join reads the documents of the sides only.
    pub is_closed: bool,
    /// The variable of the first side, if the join leaves it out. Its documents still determine the
    /// default order.
    pub order_variable: Option<usize>,
}

/// A class expression whose documents are found before the join.
#[derive(Debug)]
pub(super) struct JoinSide {
    /// The variable of the class expression.
    pub variable: usize,
    /// The plan that returns an object of each joinable document.
    pub plan: Plan,
}

impl SemiJoin {
    /// Plans the semi-joins of a query; `None` if no class expression can be evaluated alone.
    ///
    /// # Errors
    /// If a part of the query cannot be planned.
    pub fn of(plan: &Plan, exact: bool) -> Result<Option<SemiJoin>, Vec<Diagnostic>> {
        let (query, scan) = (&plan.query, plan.scan());
        let is_fit = !plan.single && !scan.derived && !scan.all_versions;
        let Some(found) = Sides::of(query).filter(|_| is_fit) else {
            return Ok(None);
        };
        let mut sides = Vec::with_capacity(found.members.len());
        for side in found.members.iter().filter(|side| side.is_single) {
            let Some((alone, paths)) = side.alone(query) else {
                return Ok(None);
            };
            sides.push(JoinSide {
                variable: side.expr.variable,
                plan: plan_paths(alone, &paths, scan.ehr(), exact)?,
            });
        }
        let (joined, paths) = found.joined(query);
        let order = found.members.first().filter(|first| first.is_dropped);
        let joined = plan_paths(joined, &paths, None, exact)?;
        let semi_join = SemiJoin {
            is_smaller: found.members.iter().any(|side| side.is_dropped),
            is_closed: found.members.iter().all(|side| side.is_single) && !uses_status(query),
            order_variable: order.map(|first| first.expr.variable),
            plan: joined.for_join_of(scan),
            sides,
        };
        Ok(Some(semi_join).filter(|found| !found.sides.is_empty()))
    }
}

/// The class expressions that an EHR must contain, with the conditions of the query.
struct Sides<'q> {
    members: Vec<Side<'q>>,
}

/// A class expression that an EHR must contain.
struct Side<'q> {
    expr: &'q ClassExpr,
    variables: Vec<usize>,
    /// Whether each of its rows belongs to one document.
    is_single: bool,
    /// Whether the join leaves it out.
    is_dropped: bool,
}

impl<'q> Sides<'q> {
    /// Returns the class expressions that the EHR of a query must contain; `None` if there is a
    /// choice.
    fn of(query: &'q Query) -> Option<Sides<'q>> {
        let Source::Class(ehr) = &query.from else {
            return None;
        };
        let Contains::Some(inner) = &ehr.contains else {
            return None;
        };
        let mut sides = Sides {
            members: Vec::new(),
        };
        sides.collect(inner).filter(|()| ehr.class == Cls::EHR)?;
        // A row of the join is repeated for each document of a class expression. If the expression
        // is left out, the row occurs once.
        let may_drop = ignores_repetition(query) && sides.members.iter().all(|side| side.is_single);
        if may_drop {
            for side in &mut sides.members {
                side.is_dropped = !side.is_shown(query);
            }
        }
        Some(sides)
    }

    fn collect(&mut self, source: &'q Source) -> Option<()> {
        match source {
            Source::And(left, right) => {
                self.collect(left)?;
                self.collect(right)
            }
            // A choice requires none of its branches, so none of them restricts the EHRs.
            Source::Or(..) => None,
            Source::Class(expr) => {
                let mut variables = Vec::new();
                each_class(source, &mut |expr| variables.push(expr.variable));
                self.members.push(Side {
                    is_single: expr.class != Cls::EHR && is_single(source),
                    is_dropped: false,
                    variables,
                    expr,
                });
                Some(())
            }
        }
    }

    /// Returns the query without the class expressions that the join leaves out, and the paths that
    /// it reads.
    fn joined(&self, query: &Query) -> (Query, Vec<usize>) {
        let is_dropped = |variable: usize| {
            let mut dropped = self.members.iter().filter(|side| side.is_dropped);
            dropped.any(|side| side.variables.contains(&variable))
        };
        let kept = self.members.iter().filter(|side| !side.is_dropped);
        let kept = kept.map(|side| Source::Class(Box::new(side.expr.clone())));
        let inner = kept.reduce(|left, right| Source::And(Box::new(left), Box::new(right)));
        let mut joined = query.clone();
        if let Source::Class(ehr) = &mut joined.from {
            ehr.contains = inner.map_or(Contains::Nothing, Contains::Some);
        }
        let is_kept = |condition: &&Condition| {
            let reads = Reads::of(condition, query);
            !reads.variables.iter().any(|variable| is_dropped(*variable))
        };
        joined.condition = all_of(query.conjuncts().filter(is_kept));
        let of_joined = |path: &&IdentifiedPath| !is_dropped(path.variable);
        let paths = (0..).zip(&query.paths);
        let paths = paths.filter(|(_, path)| of_joined(path));
        (joined, paths.map(|(index, _)| index).collect())
    }
}

impl Side<'_> {
    /// Returns whether the result depends on it: by a column, or by a condition that also concerns
    /// other class expressions.
    fn is_shown(&self, query: &Query) -> bool {
        let is_own = |path: usize| {
            let path = query.paths.get(path);
            path.is_none_or(|path| self.variables.contains(&path.variable))
        };
        let shown = query.select.iter().any(|column| match &column.value {
            ColumnValue::Expr(expr) => reads_any(expr, &is_own),
            ColumnValue::Aggregate(aggregate) => aggregate.path().is_some_and(is_own),
        });
        let ordered = query.order.iter().any(|by| match by.key {
            OrderBy::Path(path) => is_own(path),
            OrderBy::Column(_) => false,
        });
        let joins = |condition: &Condition| {
            let reads = Reads::of(condition, query);
            let own = |variable: &usize| self.variables.contains(variable);
            reads.variables.iter().any(own) && !self.decides(&reads)
        };
        shown || ordered || query.conjuncts().any(joins)
    }

    /// Returns whether a condition concerns this class expression alone.
    fn decides(&self, reads: &Reads) -> bool {
        let own = |variable: &usize| self.variables.contains(variable);
        !reads.has_exists && !reads.variables.is_empty() && reads.variables.iter().all(own)
    }

    /// Returns the query for an object of each joinable document, and the paths that it reads;
    /// `None` if it would have too many paths.
    fn alone(&self, query: &Query) -> Option<(Query, Vec<usize>)> {
        // The path to the object is added behind the paths of the query.
        let object = query.paths.len();
        if object >= MAX_PATHS {
            return None;
        }
        let conjuncts: Vec<(&Condition, Reads)> = query
            .conjuncts()
            .map(|condition| (condition, Reads::of(condition, query)))
            .filter(|(_, reads)| self.decides(reads))
            .collect();
        let paths_of_conjuncts = conjuncts
            .iter()
            .flat_map(|(_, reads)| reads.paths.iter().copied());
        let mut read = order::distinct(paths_of_conjuncts);
        // It is the greatest index, so the list stays ascending.
        read.push(object);
        let mut paths = query.paths.clone();
        paths.push(IdentifiedPath {
            variable: innermost(self.expr).variable,
            root: None,
            steps: Vec::new(),
            text: String::new(),
        });
        let alone = Query {
            from: Source::Class(Box::new(self.expr.clone())),
            variables: query.variables.clone(),
            paths,
            // No conjunct with EXISTS concerns one class expression alone: see `decides`.
            exists: Vec::new(),
            select: vec![Column {
                name: String::from("object"),
                path: None,
                value: ColumnValue::Expr(Expr::Path(object)),
            }],
            distinct: false,
            condition: all_of(conjuncts.into_iter().map(|(condition, _)| condition)),
            order: Vec::new(),
            window: None,
        };
        Some((alone, read))
    }
}

/// Returns the last class expression of the chain that begins with one. Each row binds it.
fn innermost(expr: &ClassExpr) -> &ClassExpr {
    let mut last = expr;
    while let Contains::Some(Source::Class(inner)) = &last.contains {
        last = inner;
    }
    last
}

fn all_of<'q>(conditions: impl Iterator<Item = &'q Condition>) -> Option<Condition> {
    let conditions: Vec<Condition> = conditions.cloned().collect();
    (!conditions.is_empty()).then_some(Condition::And(conditions))
}

fn reads_any(expr: &Expr, is_meant: &impl Fn(usize) -> bool) -> bool {
    match expr {
        Expr::Path(path) => is_meant(*path),
        Expr::Literal(_) => false,
        Expr::Call(_, arguments) => arguments.iter().any(|a| reads_any(a, is_meant)),
    }
}

/// Returns whether repeated rows make no difference to the result of a query.
fn ignores_repetition(query: &Query) -> bool {
    let mut aggregates = query
        .select
        .iter()
        .filter_map(|column| match &column.value {
            ColumnValue::Aggregate(aggregate) => Some(aggregate),
            ColumnValue::Expr(_) => None,
        });
    // Every function is listed, so that a new one that counts repetitions must be considered here.
    let ignores = |aggregate: &Aggregate| match aggregate {
        Aggregate::CountDistinct(_) | Aggregate::Min(_) | Aggregate::Max(_) => true,
        Aggregate::CountRows | Aggregate::Count(_) | Aggregate::Sum(_) | Aggregate::Avg(_) => false,
    };
    match aggregates.next() {
        Some(first) => ignores(first) && aggregates.all(ignores),
        None => query.distinct,
    }
}
