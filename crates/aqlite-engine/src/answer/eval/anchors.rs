//! Analysis of FROM and WHERE for the anchor scan: the anchors, and the conjuncts that concern one
//! anchor alone.

use super::bind::pins_local_code;
use crate::answer::plan::Plan;
use crate::answer::query::{
    ClassExpr, CompareOp, Condition, Contains, Expr, Literal, Source, Versions,
};
use crate::answer::reads::Reads;
use aqlite_rm::class::Cls;
use aqlite_rm::exact::WIDE;
use aqlite_rm::number;
use aqlite_rm::time::{Temporal, TemporalKind};

/// The class expressions of FROM, as the anchor scan distinguishes them.
#[derive(Debug)]
pub(super) struct Anchors<'p> {
    /// The class expressions that bind a document as a whole: EHR, VERSION, COMPOSITION.
    pub above: Vec<&'p ClassExpr>,
    /// The anchors: entries in textual order, or the last class expression of `above` if it
    /// contains no entries.
    pub entries: Vec<&'p ClassExpr>,
}

impl<'p> Anchors<'p> {
    /// Finds the anchors of a query. Returns `None` if row templates cannot evaluate the query.
    pub fn of(plan: &'p Plan) -> Option<Anchors<'p>> {
        let mut anchors = Anchors {
            above: Vec::new(),
            entries: Vec::new(),
        };
        let mut source = &plan.query.from;
        loop {
            match source {
                Source::Class(expr) if rank(expr).is_some() => {
                    // The levels must descend: EHR, then VERSION, then the document.
                    if anchors
                        .above
                        .last()
                        .is_some_and(|outer| rank(outer) >= rank(expr))
                    {
                        return None;
                    }
                    anchors.above.push(expr);
                    match &expr.contains {
                        Contains::Some(inner) => source = inner,
                        // Without a contained entry, the document itself is the anchor.
                        Contains::Nothing
                            if matches!(expr.class, Cls::COMPOSITION | Cls::EHR_STATUS) =>
                        {
                            anchors.entries.push(expr);
                            break;
                        }
                        _ => return None,
                    }
                }
                _ => {
                    collect_entries(source, &mut anchors.entries)?;
                    break;
                }
            }
        }
        (plan.single && anchors.entries.len() <= 3).then_some(anchors)
    }
}

/// Returns the level of a class expression that binds a document as a whole: EHR 0, VERSION 1,
/// document 2.
fn rank(expr: &ClassExpr) -> Option<u8> {
    match expr.class {
        Cls::EHR => Some(0),
        class if class.is_a(Cls::VERSION) && expr.versions == Versions::Latest => Some(1),
        Cls::COMPOSITION | Cls::EHR_STATUS => Some(2),
        _ => None,
    }
}

fn collect_entries<'p>(source: &'p Source, entries: &mut Vec<&'p ClassExpr>) -> Option<()> {
    match source {
        Source::And(left, right) => {
            collect_entries(left, entries)?;
            collect_entries(right, entries)
        }
        Source::Class(expr) if expr.contains == Contains::Nothing && is_anywhere(expr) => {
            entries.push(expr);
            Some(())
        }
        _ => None,
    }
}

/// Returns whether an expression binds entries or sections at any depth of a document.
fn is_anywhere(expr: &ClassExpr) -> bool {
    expr.class.is_a(Cls::CONTENT_ITEM) && !expr.predicate.as_ref().is_some_and(pins_local_code)
}

/// A conjunct of WHERE.
#[derive(Clone)]
pub(super) struct Conjunct<'p> {
    pub condition: &'p Condition,
    /// The variables that it reads.
    pub variables: Vec<usize>,
    /// The paths that it reads; `None` if it reads more than paths.
    pub paths: Option<Vec<usize>>,
    /// The comparison, if it compares a path with a number or a date-time.
    pub comparison: Option<Comparison>,
}

/// A comparison of a path with a constant number or date-time.
#[derive(Clone, Copy)]
pub(super) struct Comparison {
    pub path: usize,
    pub op: CompareOp,
    pub bound: ComparedValue,
}

/// The constant of a comparison.
#[derive(Clone, Copy)]
pub(super) enum ComparedValue {
    Number(f64),
    /// A date or date-time.
    Time(Temporal),
}

impl Comparison {
    /// Converts a condition; `None` if it is no comparison of a path with a number or a date-time.
    fn of(condition: &Condition) -> Option<Comparison> {
        let Condition::Compare(Expr::Path(path), op, Expr::Literal(literal)) = condition else {
            return None;
        };
        let bound = match literal {
            // Larger numbers are stored as the nearest doubles, so ranges of doubles decide nothing
            // about them.
            Literal::Number(token) => {
                ComparedValue::Number(number::parse(token).filter(|number| number.abs() < WIDE)?)
            }
            Literal::Text(text) => {
                ComparedValue::Time(Temporal::parse_literal(TemporalKind::DateTime, text)?)
            }
            _ => return None,
        };
        Some(Comparison {
            path: *path,
            op: *op,
            bound,
        })
    }
}

/// The conjuncts of WHERE.
pub(super) struct Conjuncts<'p> {
    /// The conjuncts that concern one anchor alone, in the order of the anchors.
    pub per_anchor: Vec<Vec<Conjunct<'p>>>,
    /// The other conjuncts.
    pub rest: Vec<Conjunct<'p>>,
}

impl<'p> Anchors<'p> {
    /// Splits WHERE into its conjuncts.
    pub fn split(&self, plan: &'p Plan) -> Conjuncts<'p> {
        let mut split = Conjuncts {
            per_anchor: self.entries.iter().map(|_| Vec::new()).collect(),
            rest: Vec::new(),
        };
        for condition in plan.query.conjuncts() {
            let read = Reads::of(condition, &plan.query);
            // A condition without variables belongs to the first anchor, since it is the same for
            // all rows.
            let anchor = self
                .entries
                .iter()
                .position(|e| read.variables.iter().all(|v| *v == e.variable));
            let conjuncts = anchor.and_then(|a| split.per_anchor.get_mut(a));
            conjuncts.unwrap_or(&mut split.rest).push(Conjunct {
                condition,
                variables: read.variables,
                paths: (!read.has_exists).then_some(read.paths),
                comparison: Comparison::of(condition),
            });
        }
        split
    }
}
