//! What is probably wrong with a guide that can run: names that lead nowhere, values that nobody sees.

use super::compile::CompiledGuide;
use super::expr::ast::{Action, Expr, Variable};
use super::guide::{Condition, Direction, Guide};
use crate::diag::{Diagnostic, Span};
use std::collections::{HashMap, HashSet};

/// Adds the findings to the problems of the guide.
pub(crate) fn check(compiled: &mut CompiledGuide) {
    let guide = &compiled.guide;
    let mut lint = Lint { known: known(guide), inputs: inputs(guide), types: types(guide), problems: Vec::new(), told: HashSet::new() };
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

/// The class of each variable for which the guide says it.
fn types(guide: &Guide) -> HashMap<&str, &str> {
    guide.bindings.iter().flat_map(|b| &b.elements).filter_map(|e| Some((e.id.as_str(), e.data_type.as_deref()?))).collect()
}

/// Whether values of a class have an attribute; classes that are not known here have all.
fn has_attribute(class: &str, attribute: &str) -> bool {
    let is_one_of = |classes: &[&str]| classes.contains(&class);
    match attribute {
        _ if !is_one_of(&["DV_QUANTITY", "DV_COUNT", "DV_ORDINAL", "DV_CODED_TEXT", "DV_TEXT", "DV_BOOLEAN"]) => true,
        "magnitude" => is_one_of(&["DV_QUANTITY", "DV_COUNT", "DV_ORDINAL"]),
        "unit" | "units" | "precision" => class == "DV_QUANTITY",
        "code" | "terminologyId" => is_one_of(&["DV_ORDINAL", "DV_CODED_TEXT"]),
        "symbol" => class == "DV_ORDINAL",
        "numerator" | "denominator" | "type" | "year" | "month" | "day" => false,
        _ => true,
    }
}

struct Lint<'g> {
    known: HashSet<&'g str>,
    inputs: HashSet<&'g str>,
    types: HashMap<&'g str, &'g str>,
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
            self.fits(target, span);
            self.expr(value, span);
        }
    }

    fn fits(&mut self, variable: &Variable, span: Span) {
        let (Some(class), Some(attribute)) = (self.types.get(variable.code.as_str()), variable.attribute.as_deref()) else { return };
        if !has_attribute(class, attribute) {
            let message = format!("`{}` is a {class} and has no `.{attribute}`", variable.code);
            self.tell("GDL0405", span, message, "use an attribute of its class, or mend `data_type`");
        }
    }

    fn expr(&mut self, expr: &'g Expr, span: Span) {
        let mut unknown = Vec::new();
        let mut read = Vec::new();
        expr.variables(&mut |v| {
            read.push(v);
            let is_term = v.attribute.as_deref() == Some("term");
            if !is_term && !self.known.contains(v.code.as_str()) {
                unknown.push(v.code.clone());
            }
        });
        read.into_iter().for_each(|v| self.fits(v, span));
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
