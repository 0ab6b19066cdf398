//! Stages of a query: the query with one part more in each, to count the rows that each part removes.

use super::ast::{
    Aggregate, At, ClassExpr, ClassPredicate, Column, ColumnValue, Condition, Containment,
    Contains, Query, Select,
};
use super::print;
use super::query::AggregateFunction;
use super::vocabulary::Keyword;
use aqlite_rm::diag::Span;

/// The most stages of a query. Each is one run.
pub const MAX_STAGES: usize = 40;

/// The part of a query that a stage adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageKind {
    /// A class of FROM.
    Class,
    /// The predicate of a class.
    Predicate,
    /// A containment that is negated or an alternative.
    Contains,
    /// A condition of WHERE.
    Condition,
}

/// A stage: all parts of a query up to one of them.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The kind of the last part.
    pub kind: StageKind,
    /// The last part as text.
    pub label: String,
    /// Its position.
    pub span: Span,
    parts: Parts,
}

/// The parts of a stage.
#[derive(Clone, Debug)]
enum Parts {
    /// A beginning of FROM.
    From(Containment),
    /// FROM, and the conjuncts of WHERE up to this index.
    Conditions(usize),
}

/// The stages of a query. The query of a stage is made when it is asked for: it is about as large as
/// the whole query.
#[derive(Clone, Debug)]
pub struct Stages {
    query: Query,
    all: Vec<Stage>,
}

impl Stages {
    /// Finds the stages of a query. Stages beyond [`MAX_STAGES`] are left out.
    pub fn of(query: Query) -> Stages {
        let of_from = prefixes(&query.from).into_iter().map(|prefix| Stage {
            kind: prefix.kind,
            label: prefix.label,
            span: prefix.span,
            parts: Parts::From(prefix.from),
        });
        let conditions = conditions(&query).iter().enumerate();
        let of_where = conditions.map(|(index, condition)| {
            let mut label = String::new();
            print::condition(&mut label, condition);
            Stage {
                kind: StageKind::Condition,
                label,
                span: print::condition_span(condition),
                parts: Parts::Conditions(index),
            }
        });
        let all = of_from.chain(of_where).take(MAX_STAGES).collect();
        Stages { query, all }
    }

    /// The stages in the order of the text: FROM, then the conjuncts of WHERE.
    pub fn all(&self) -> &[Stage] {
        &self.all
    }

    /// Returns the query that counts the rows of the parts of a stage.
    pub fn counting(&self, stage: &Stage) -> Query {
        match &stage.parts {
            Parts::From(from) => counting(from.clone(), Vec::new()),
            Parts::Conditions(index) => {
                let before = conditions(&self.query).get(..=*index);
                counting(self.query.from.clone(), before.unwrap_or_default().to_vec())
            }
        }
    }

    /// Returns the query that counts the rows of all parts but the condition of a stage; `None` if
    /// it has none, or the query has no other condition.
    pub fn counting_without(&self, stage: &Stage) -> Option<Query> {
        let Parts::Conditions(own) = stage.parts else {
            return None;
        };
        let all = conditions(&self.query).iter().enumerate();
        let others: Vec<Condition> = all
            .filter(|(index, _)| *index != own)
            .map(|(_, other)| other.clone())
            .collect();
        (!others.is_empty()).then(|| counting(self.query.from.clone(), others))
    }
}

/// The conjuncts of WHERE.
fn conditions(query: &Query) -> &[Condition] {
    match &query.condition {
        Some(Condition::And(all)) => all,
        Some(single) => std::slice::from_ref(single),
        None => &[],
    }
}

impl StageKind {
    /// Returns the name for interfaces.
    pub fn name(self) -> &'static str {
        match self {
            StageKind::Class => "class",
            StageKind::Predicate => "predicate",
            StageKind::Contains => "contains",
            StageKind::Condition => "condition",
        }
    }
}

/// A part of FROM, with everything before it.
struct Prefix {
    from: Containment,
    kind: StageKind,
    label: String,
    span: Span,
}

/// Returns the query that counts the rows of FROM with these conditions.
fn counting(from: Containment, mut conditions: Vec<Condition>) -> Query {
    let at = At::default();
    let count = Aggregate {
        function: AggregateFunction::Count,
        distinct: false,
        path: None,
        at,
    };
    let column = Column {
        value: ColumnValue::Aggregate(count),
        alias: None,
        at,
    };
    let columns = vec![column];
    Query {
        select: Select {
            distinct: false,
            top: None,
            columns,
            at,
        },
        from,
        condition: match conditions.len() {
            0 | 1 => conditions.pop(),
            _ => Some(Condition::And(conditions)),
        },
        order: Vec::new(),
        limit: None,
    }
}

fn prefixes(from: &Containment) -> Vec<Prefix> {
    match from {
        Containment::Class(class) => of_class(class),
        Containment::And(all) => {
            let mut out = Vec::new();
            for (i, last) in all.iter().enumerate().take(MAX_STAGES) {
                let before = all.get(..i).unwrap_or_default();
                for prefix in prefixes(last) {
                    let mut parts = before.to_vec();
                    parts.push(prefix.from);
                    let from = match parts.len() {
                        1 => parts.remove(0),
                        _ => Containment::And(parts),
                    };
                    out.push(Prefix { from, ..prefix });
                }
            }
            out
        }
        Containment::Or(any) => {
            let heads: Vec<String> = any.iter().map(head).collect();
            let label = heads.join(&format!(" {} ", Keyword::Or));
            vec![Prefix {
                from: from.clone(),
                kind: StageKind::Contains,
                label,
                span: start(from),
            }]
        }
    }
}

/// Returns the parts of a class expression: the class, its predicate, its containment.
fn of_class(class: &ClassExpr) -> Vec<Prefix> {
    let alone = ClassExpr {
        predicate: None,
        contains: None,
        ..class.clone()
    };
    let bracketed = ClassExpr {
        predicate: class.predicate.clone(),
        ..alone.clone()
    };
    let prefix = |kind, expr: &ClassExpr, label, span| Prefix {
        from: Containment::Class(Box::new(expr.clone())),
        kind,
        label,
        span,
    };
    let span = class.class.span();
    // The words of VERSION select versions, so they belong to the class.
    let first = match &class.predicate {
        Some(ClassPredicate::Node(_)) => &alone,
        _ => &bracketed,
    };
    let mut out = vec![prefix(StageKind::Class, first, written(first), span)];
    if let Some(ClassPredicate::Node(_)) = &class.predicate {
        let label = written(&bracketed);
        let label = label.find('[').and_then(|at| label.get(at..));
        let label = label.unwrap_or_default().to_owned();
        out.push(prefix(StageKind::Predicate, &bracketed, label, span));
    }
    if let Some(contains) = &class.contains {
        out.extend(of_contains(&bracketed, contains));
    }
    out
}

/// Returns the parts of the containment of a class expression. `class` is the expression without
/// it.
fn of_contains(class: &ClassExpr, contains: &Contains) -> Vec<Prefix> {
    let with = |inner: Containment| {
        Containment::Class(Box::new(ClassExpr {
            contains: Some(Contains {
                inner,
                ..contains.clone()
            }),
            ..class.clone()
        }))
    };
    if contains.negated {
        return vec![Prefix {
            from: with(contains.inner.clone()),
            kind: StageKind::Contains,
            label: format!("NOT CONTAINS {}", head(&contains.inner)),
            span: contains.at.0,
        }];
    }
    let inner = prefixes(&contains.inner).into_iter();
    inner
        .map(|inner| Prefix {
            from: with(inner.from),
            ..inner
        })
        .collect()
}

fn written(class: &ClassExpr) -> String {
    let mut out = String::new();
    print::class_head(&mut out, class);
    out
}

/// Returns the first class of a containment as text.
fn head(from: &Containment) -> String {
    match from {
        Containment::Class(class) => written(class),
        Containment::And(all) | Containment::Or(all) => all.first().map(head).unwrap_or_default(),
    }
}

fn start(from: &Containment) -> Span {
    match from {
        Containment::Class(class) => class.class.span(),
        Containment::And(all) | Containment::Or(all) => all.first().map(start).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, print};

    #[test]
    fn each_stage_adds_one_part() {
        let text = "SELECT o FROM EHR e CONTAINS COMPOSITION c[openEHR-EHR-COMPOSITION.x.v1] \
            CONTAINS (OBSERVATION o AND EVALUATION v) WHERE c/name/value = 'a' AND o/name/value = 'b'";
        let query = parse(text).0.unwrap();
        let stages = Stages::of(query);
        let shown: Vec<String> = stages
            .all()
            .iter()
            .map(|s| format!("{}: {}", s.kind.name(), s.label))
            .collect();
        assert_eq!(
            shown,
            [
                "class: EHR e",
                "class: COMPOSITION c",
                "predicate: [openEHR-EHR-COMPOSITION.x.v1]",
                "class: OBSERVATION o",
                "class: EVALUATION v",
                "condition: c/name/value = 'a'",
                "condition: o/name/value = 'b'",
            ]
        );
        let last = stages.all().last().unwrap();
        assert_eq!(&text[last.span.start..last.span.end], "o/name/value = 'b'");
        let counted = print(&stages.counting(last));
        assert!(counted.starts_with("SELECT COUNT(*)"), "{counted}");
        let without = print(&stages.counting_without(last).unwrap());
        assert!(
            without.contains("'a'") && !without.contains("'b'"),
            "{without}"
        );
    }
}
