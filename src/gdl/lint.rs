//! What is probably wrong with a guide that can run: names that lead nowhere, values that nobody sees.

use super::compile::CompiledGuide;
use super::expr::ast::{Action, Expr, Variable};
use super::guide::{Condition, Direction, Guide};
use crate::diag::{Diagnostic, Span};
use std::collections::HashSet;

/// Adds the findings to the problems of the guide.
pub(crate) fn check(compiled: &mut CompiledGuide) {
    let guide = &compiled.guide;
    let mut lint = Lint { known: known(guide), inputs: inputs(guide), problems: Vec::new(), told: HashSet::new() };
    let predicates = guide.bindings.iter().flat_map(|b| &b.predicates);
    let conditions = predicates.chain(&guide.pre_conditions).chain(guide.rules.iter().flat_map(|r| &r.when));
    conditions.for_each(|c| lint.condition(c));
    let steps = guide.default_actions.iter().chain(guide.rules.iter().flat_map(|r| &r.then));
    steps.for_each(|s| s.action.iter().for_each(|a| lint.action(a, s.span)));
    lint.rules(guide);
    let found = lint.problems;
    compiled.problems.extend(found);
}

/// The codes that name a variable: bound, internal, or set by the guide.
fn known(guide: &Guide) -> HashSet<&str> {
    let mut known: HashSet<&str> = guide.bindings.iter().flat_map(|b| &b.elements).map(|e| e.id.as_str()).collect();
    known.extend(guide.internal_variables.iter().map(|v| v.id.as_str()));
    known.extend(["currentDateTime", "currentDate"]);
    for action in guide.steps().filter_map(|s| s.action.as_ref()) {
        match action {
            Action::Assign(v, _) => drop(known.insert(&v.code)),
            Action::Create(_, list) => known.extend(list.iter().map(|(v, _)| v.code.as_str())),
            _ => {}
        }
    }
    known
}

fn inputs(guide: &Guide) -> HashSet<&str> {
    let of =
        |wanted: fn(Direction) -> bool| guide.bindings.iter().filter(move |b| wanted(b.direction)).flat_map(|b| &b.elements).map(|e| e.id.as_str());
    let written: HashSet<&str> = of(|d| d != Direction::Input).collect();
    of(|d| d == Direction::Input).filter(|id| !written.contains(id)).collect()
}

struct Lint<'g> {
    known: HashSet<&'g str>,
    inputs: HashSet<&'g str>,
    problems: Vec<Diagnostic>,
    told: HashSet<String>,
}

impl<'g> Lint<'g> {
    fn condition(&mut self, condition: &'g Condition) {
        if let Some(expr) = &condition.expr {
            self.expr(expr, condition.span);
        }
    }

    fn action(&mut self, action: &'g Action, span: Span) {
        let list: Vec<(&Variable, &Expr)> = match action {
            Action::Assign(v, e) => vec![(v, e)],
            Action::Create(_, list) => list.iter().map(|(v, e)| (v, e)).collect(),
            Action::UseTemplate(_, list) => return list.iter().for_each(|(_, e)| self.expr(e, span)),
            Action::UseTemplateEach(..) => return,
        };
        for (target, value) in list {
            if self.inputs.contains(target.code.as_str()) {
                let message = format!("`{}` is set but belongs to an INPUT binding", target.code);
                self.tell("GDL0402", span, message, "results are returned for OUTPUT bindings only");
            }
            self.expr(value, span);
        }
    }

    fn expr(&mut self, expr: &'g Expr, span: Span) {
        let mut unknown = Vec::new();
        expr.variables(&mut |v| {
            let is_term = v.attribute.as_deref() == Some("term");
            if !is_term && !self.known.contains(v.code.as_str()) {
                unknown.push(v.code.clone());
            }
        });
        for code in unknown {
            self.tell("GDL0401", span, format!("`{code}` is bound to nothing and never set"), "it is always null; bind it or mend the code");
        }
    }

    fn rules(&mut self, guide: &'g Guide) {
        let mut seen = HashSet::new();
        for rule in &guide.rules {
            if !seen.insert(rule.id.as_str()) {
                self.tell("GDL0403", rule.span, format!("rule `{}` is defined twice", rule.id), "give each rule a code of its own");
            }
            let never = |c: &Condition| matches!(c.expr, None | Some(Expr::Literal(super::value::Value::Boolean(false))));
            if rule.when.iter().any(never) {
                self.tell("GDL0404", rule.span, format!("rule `{}` can never fire", rule.id), "one of its conditions is never true");
            }
        }
    }

    fn tell(&mut self, code: &'static str, span: Span, message: String, help: &str) {
        if self.told.insert(message.clone()) {
            self.problems.push(Diagnostic::warning(code, span, message).with_help(help));
        }
    }
}
