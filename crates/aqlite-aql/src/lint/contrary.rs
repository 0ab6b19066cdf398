//! Queries for the contrary of a warning: a row refutes it.
//!
//! They keep class expressions and node ids only. Without names and other predicates they have more
//! rows, so a warning is rather dropped than wrong.

use crate::ast::{
    At, ClassExpr, ClassPredicate, Column, ColumnValue, Condition, Containment, Contains, Expr,
    Limit, Literal, LiteralValue, Name, NodePredicate, Path, Predicate, Query, Select, Step,
};
use aqlite_rm::diag::Span;

/// Returns the query for nested class expressions.
pub(super) fn of_classes(chain: &[&ClassExpr]) -> Query {
    first_row(nested(chain), None)
}

/// Returns the query for the first steps of a path, up to the step with an index.
pub(super) fn of_path(chain: &[&ClassExpr], path: &Path, last: usize) -> Query {
    let mut path = bare(path);
    path.steps.truncate(last + 1);
    let mut variable = path.variable.clone();
    let mut from = nested(chain);
    // The variable may be spelled in another letter case.
    if let Some(declared) = chain.last().and_then(|class| class.variable.clone()) {
        variable = declared;
    }
    path.variable = variable;
    // Only the innermost class has a variable, so that no name occurs twice.
    innermost(&mut from, &path.variable);
    first_row(from, Some(Condition::Exists(path)))
}

/// Returns the query for a condition on one variable.
pub(super) fn of_condition(chain: &[&ClassExpr], condition: Condition) -> Query {
    let mut from = nested(chain);
    if let Some(declared) = chain.last().and_then(|class| class.variable.clone()) {
        innermost(&mut from, &declared);
    }
    first_row(from, Some(condition))
}

/// Returns the query for nodes of the innermost class that have a code and no node id. There are
/// none: it is the query of a warning that no data refute.
pub(super) fn of_class_without_id(chain: &[&ClassExpr]) -> Query {
    let declared = chain.last().and_then(|class| class.variable.clone());
    let variable = declared.unwrap_or_else(|| Name::new("x", Span::default()));
    let mut from = nested(chain);
    innermost(&mut from, &variable);
    let node = Path {
        variable,
        root: None,
        steps: Vec::new(),
        at: At::default(),
    };
    first_row(from, Some(Condition::Not(Box::new(with_id(node)))))
}

/// Returns the query for the first steps of a path to nodes that have a code and no node id. It has
/// no rows, as that of [`of_class_without_id`].
pub(super) fn of_path_without_id(chain: &[&ClassExpr], path: &Path, last: usize) -> Query {
    let mut query = of_path(chain, path, last);
    if let Some(Condition::Exists(path)) = query.condition.take() {
        let without = Condition::Not(Box::new(with_id(path.clone())));
        query.condition = Some(Condition::And(vec![Condition::Exists(path), without]));
    }
    query
}

/// Returns the condition that a node has a node id.
fn with_id(mut node: Path) -> Condition {
    node.steps.push(Step {
        attribute: Name::new("archetype_node_id", Span::default()),
        predicate: None,
    });
    Condition::Exists(node)
}

/// Returns a query of FROM as it is, with another condition.
pub(super) fn of_query(from: &Containment, condition: Condition) -> Query {
    first_row(from.clone(), Some(condition))
}

/// Returns a path with the node ids of its brackets only.
pub(super) fn bare(path: &Path) -> Path {
    let step = |step: &Step| Step {
        attribute: step.attribute.clone(),
        predicate: step.predicate.as_ref().and_then(node_id),
    };
    Path {
        variable: path.variable.clone(),
        root: None,
        steps: path.steps.iter().map(step).collect(),
        at: path.at,
    }
}

fn first_row(from: Containment, condition: Option<Condition>) -> Query {
    let at = At::default();
    let value = LiteralValue::Number(String::from("1"));
    let literal = Expr::Literal(Literal { value, at });
    let column = Column {
        value: ColumnValue::Expr(literal),
        alias: None,
        at,
    };
    Query {
        select: Select {
            distinct: false,
            top: None,
            columns: vec![column],
            at,
        },
        from,
        condition,
        order: Vec::new(),
        limit: Some(Limit {
            count: Name::new("1", Span::default()),
            offset: None,
            at,
        }),
    }
}

/// Returns the class expressions, each in the one before it.
fn nested(chain: &[&ClassExpr]) -> Containment {
    let mut inner: Option<Containment> = None;
    for class in chain.iter().rev() {
        let predicate = match &class.predicate {
            Some(ClassPredicate::Node(predicate)) => node_id(predicate).map(ClassPredicate::Node),
            other => other.clone(),
        };
        let is_version = class.class.text.eq_ignore_ascii_case("VERSION");
        inner = Some(Containment::Class(Box::new(ClassExpr {
            class: class.class.clone(),
            variable: None,
            predicate: match (is_version, &class.predicate) {
                (true, Some(ClassPredicate::Node(_))) => Some(ClassPredicate::AllVersions),
                _ => predicate,
            },
            contains: inner.map(|inner| Contains {
                negated: false,
                inner,
                at: At::default(),
            }),
        })));
    }
    inner.unwrap_or(Containment::And(Vec::new()))
}

/// Gives the innermost class its variable.
fn innermost(from: &mut Containment, name: &Name) {
    if let Containment::Class(class) = from {
        match &mut class.contains {
            Some(contains) => innermost(&mut contains.inner, name),
            None => class.variable = Some(name.clone()),
        }
    }
}

/// Returns the node id of a predicate without its name.
fn node_id(predicate: &Predicate) -> Option<Predicate> {
    match predicate {
        Predicate::Node(node) => Some(Predicate::Node(NodePredicate {
            name: None,
            ..node.clone()
        })),
        Predicate::And(all) => all.iter().find_map(node_id),
        Predicate::Or(_) | Predicate::Compare(_) | Predicate::Regex(_) => None,
    }
}
