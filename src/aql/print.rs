//! The formatter: syntax tree → text. What it writes reads back as the same tree.

use super::ast::*;
use super::query::CompareOp;
use std::fmt::Write;

/// A path on one line, without blanks except around words: `o/data[at0001]/events[at0002 and name/value='x']`.
pub(crate) fn path(path: &Path) -> String {
    let mut out = path.variable.text.clone();
    brackets(&mut out, path.root.as_ref());
    for step in &path.steps {
        out.push('/');
        write_step(&mut out, step);
    }
    out
}

fn steps(out: &mut String, steps: &[Step]) {
    for (i, step) in steps.iter().enumerate() {
        if i > 0 {
            out.push('/');
        }
        write_step(out, step);
    }
}

fn write_step(out: &mut String, step: &Step) {
    out.push_str(&step.attribute.text);
    brackets(out, step.predicate.as_ref());
}

fn brackets(out: &mut String, inner: Option<&Predicate>) {
    if let Some(inner) = inner {
        out.push('[');
        predicate(out, inner);
        out.push(']');
    }
}

/// Brackets know no parentheses: an OR never stands inside an AND.
fn predicate(out: &mut String, inner: &Predicate) {
    match inner {
        Predicate::And(all) => joined(out, all, " and ", predicate),
        Predicate::Or(any) => joined(out, any, " or ", predicate),
        Predicate::Node(node) => {
            match &node.id {
                NodeId::Code(id) | NodeId::Archetype(id) => out.push_str(id),
                NodeId::Parameter(name) => parameter(out, name),
            }
            if let Some(name) = &node.name {
                out.push(',');
                match name {
                    NodeName::Text(text) | NodeName::Term(text) | NodeName::Code(text) => out.push_str(text),
                    NodeName::Parameter(name) => parameter(out, name),
                }
            }
        }
        Predicate::Compare(compare) => {
            steps(out, &compare.path);
            out.push_str(operator(compare.op));
            match &compare.value {
                PredicateValue::Literal(value) => literal(out, value),
                PredicateValue::Parameter(name) => parameter(out, name),
                PredicateValue::Path(path) => steps(out, path),
                PredicateValue::Code(code) => out.push_str(code),
            }
        }
        Predicate::Regex(regex) => {
            steps(out, &regex.path);
            let _ = write!(out, " matches {}", regex.regex.text);
        }
    }
}

fn joined<T>(out: &mut String, all: &[T], between: &str, one: impl Fn(&mut String, &T)) {
    for (i, item) in all.iter().enumerate() {
        if i > 0 {
            out.push_str(between);
        }
        one(out, item);
    }
}

fn parameter(out: &mut String, name: &Name) {
    let _ = write!(out, "${}", name.text);
}

fn literal(out: &mut String, literal: &Literal) {
    match &literal.value {
        LiteralValue::Null => out.push_str("NULL"),
        LiteralValue::Boolean(value) => drop(write!(out, "{value}")),
        LiteralValue::Number(text) | LiteralValue::Text(text) => out.push_str(text),
    }
}

fn operator(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "=",
        CompareOp::Ne => "!=",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
    }
}
