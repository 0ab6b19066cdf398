//! Warnings about a guide that can run: unresolved names, values that are never shown, values that
//! do not fit together, rules that never fire.

use super::compile::{CompiledGuide, conjuncts};
use super::expr::ast::{Action, Expr, Operator, Variable};
use super::guide::{Direction, Guide, MAX_PROBLEMS, shown};
use super::reach::Reach;
use super::value::{Coded, Value};
use aqlite_rm::diag::{Diagnostic, Span};
use std::collections::{HashMap, HashSet};

/// Adds the findings to the problems of the guide.
pub(crate) fn check(compiled: &mut CompiledGuide) {
    let known = known(&compiled.guide);
    let mut lint = Lint::of(&compiled.guide, &known);
    let guide = &compiled.guide;
    let predicates = guide.bindings.iter().flat_map(|b| &b.predicates);
    let conditions = predicates
        .chain(&guide.pre_conditions)
        .chain(guide.rules.iter().flat_map(|r| &r.when));
    conditions
        .filter_map(|c| Some((c.expr.as_ref()?, c.span)))
        .for_each(|(expr, span)| lint.expr(expr, span));
    let predicates = guide.bindings.iter().flat_map(|b| &b.predicates);
    predicates
        .filter_map(|p| Some((p.expr.as_ref()?, p.span)))
        .for_each(|(expr, span)| lint.predicate(expr, span));
    guide
        .steps()
        .filter_map(|s| Some((s.action.as_ref()?, s.span)))
        .for_each(|(action, span)| lint.action(action, span));
    lint.rules();
    let found = lint.problems;
    compiled.problems.extend(found);
}

/// Returns the codes that name a variable: bound, internal, or set by the guide.
fn known(guide: &Guide) -> HashSet<&str> {
    let mut known: HashSet<&str> = guide
        .bindings
        .iter()
        .flat_map(|b| &b.elements)
        .map(|e| e.id.as_str())
        .collect();
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
    let of = |wanted: fn(Direction) -> bool| {
        guide
            .bindings
            .iter()
            .filter(move |b| wanted(b.direction))
            .flat_map(|b| &b.elements)
            .map(|e| e.id.as_str())
    };
    let written: HashSet<&str> = of(|d| d != Direction::Input).collect();
    of(|d| d == Direction::Input)
        .filter(|id| !written.contains(id))
        .collect()
}

/// Returns the class of each variable whose class the guide states.
fn types(guide: &Guide) -> HashMap<&str, &str> {
    guide
        .bindings
        .iter()
        .flat_map(|b| &b.elements)
        .filter_map(|e| Some((e.id.as_str(), e.data_type.as_deref()?)))
        .collect()
}

/// Returns whether values of a class have an attribute. An unknown class has every attribute.
fn has_attribute(class: &str, attribute: &str) -> bool {
    let is_one_of = |classes: &[&str]| classes.contains(&class);
    match attribute {
        _ if !is_one_of(&[
            "DV_QUANTITY",
            "DV_COUNT",
            "DV_ORDINAL",
            "DV_CODED_TEXT",
            "DV_TEXT",
            "DV_BOOLEAN",
        ]) =>
        {
            true
        }
        "magnitude" => is_one_of(&["DV_QUANTITY", "DV_COUNT", "DV_ORDINAL"]),
        "unit" | "units" | "precision" => class == "DV_QUANTITY",
        "code" | "terminologyId" => is_one_of(&["DV_ORDINAL", "DV_CODED_TEXT"]),
        "symbol" => class == "DV_ORDINAL",
        "numerator" | "denominator" | "type" | "year" | "month" | "day" => false,
        _ => true,
    }
}

/// Returns the kind of value that a use of an attribute implies, if it implies exactly one.
fn kind_by_attribute(attribute: &str) -> Option<&'static str> {
    Some(match attribute {
        "unit" | "units" => "a quantity",
        "numerator" | "denominator" => "a proportion",
        "symbol" | "code" | "terminologyId" => "a code",
        "year" | "month" | "day" => "a point in time",
        _ => return None,
    })
}

fn kind_by_value(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Quantity(_) => "a quantity",
        Value::Proportion(_) => "a proportion",
        Value::Ordinal(_) | Value::Coded(_) => "a code",
        Value::Boolean(_) => "a truth value",
        Value::Moment(..) => "a point in time",
        _ => return None,
    })
}

/// Returns whether an attribute is a text (true) or a number (false). `None` for any other
/// attribute.
fn is_text(attribute: &str) -> Option<bool> {
    match attribute {
        "unit" | "units" | "code" | "terminologyId" | "string" => Some(true),
        "magnitude" | "precision" | "numerator" | "denominator" | "year" | "month" | "day"
        | "count" | "sum" => Some(false),
        _ => None,
    }
}

/// Returns whether an expression can be true. A text, a number or a computation never is.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value) => matches!(value, Value::Boolean(_)),
        Expr::Binary(operator, ..) => operator.precedence() < Operator::Plus.precedence(),
        Expr::Negate(_) | Expr::Call(..) | Expr::Reference(..) => false,
        _ => true,
    }
}

/// Normalizes a label: removes differences of letter case, white space and punctuation.
fn bare(label: &str) -> String {
    label
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The names of one code in the languages of the guide.
#[derive(Default)]
struct Terms<'g> {
    /// The term in the language of the author, or in the language used instead.
    own: Option<&'g str>,
    /// The terms of all languages, normalized.
    bare: HashSet<String>,
}

/// Returns the terms of the guide by code.
fn terms(guide: &Guide) -> HashMap<&str, Terms<'_>> {
    let mut terms: HashMap<&str, Terms<'_>> = HashMap::new();
    for term in guide.terms.iter().flat_map(|t| &t.terms) {
        let entry = terms.entry(&term.id).or_default();
        entry.bare.insert(bare(&term.text));
    }
    for term in guide.terms_in(&guide.original_language) {
        let entry = terms.entry(&term.id).or_default();
        entry.own = entry.own.or(Some(&term.text));
    }
    terms
}

/// Returns the terms that are bound to codes of terminologies or to value sets.
fn bound(guide: &Guide) -> HashSet<&str> {
    let mut bound = HashSet::new();
    for binding in &guide.term_bindings {
        let codes = binding.codes.iter().filter(|(_, codes)| !codes.is_empty());
        bound.extend(codes.map(|(term, _)| term.as_str()));
        bound.extend(binding.sets.iter().map(|(term, _)| term.as_str()));
    }
    bound
}

struct Lint<'g> {
    guide: &'g Guide,
    known: &'g HashSet<&'g str>,
    terms: HashMap<&'g str, Terms<'g>>,
    /// The terms that are bound to codes or value sets.
    bound: HashSet<&'g str>,
    inputs: HashSet<&'g str>,
    types: HashMap<&'g str, &'g str>,
    /// The kind of each variable that its first unambiguous use implies.
    kinds: HashMap<&'g str, &'static str>,
    problems: Vec<Diagnostic>,
    reported: HashSet<String>,
}

impl<'g> Lint<'g> {
    fn of(guide: &'g Guide, known: &'g HashSet<&'g str>) -> Lint<'g> {
        Lint {
            guide,
            known,
            terms: terms(guide),
            bound: bound(guide),
            inputs: inputs(guide),
            types: types(guide),
            kinds: HashMap::new(),
            problems: Vec::new(),
            reported: HashSet::new(),
        }
    }
    fn action(&mut self, action: &'g Action, span: Span) {
        let list: Vec<(&Variable, &Expr)> = match action {
            Action::Assign(v, e) => vec![(v, e)],
            Action::Create(_, list) => list.iter().map(|(v, e)| (v, e)).collect(),
            Action::UseTemplate(_, list) => {
                return list.iter().for_each(|(_, e)| self.expr(e, span));
            }
            Action::UseTemplateEach(..) => return,
        };
        for (target, value) in list {
            if self.inputs.contains(target.code.as_str()) {
                let message = format!("`{}` is set but belongs to an INPUT binding", target.code);
                let help = "results are returned for OUTPUT bindings only";
                self.warn("GDL0402", span, message, help);
            }
            self.use_of(target, span);
            if let Expr::Literal(literal) = value {
                self.beside(target, Operator::Equal, literal, span);
            }
            self.expr(value, span);
        }
    }

    fn expr(&mut self, expr: &'g Expr, span: Span) {
        let mut read = Vec::new();
        expr.variables(&mut |v| read.push(v));
        for variable in read {
            let is_term = variable.attribute.as_deref() == Some("term");
            if !is_term && !self.known.contains(variable.code.as_str()) {
                let message = format!("`{}` is bound to nothing and never set", variable.code);
                let help = "it is always null; bind it or mend the code";
                self.warn("GDL0401", span, message, help);
            }
            self.use_of(variable, span);
        }
        let mut pairs = Vec::new();
        expr.pairs(&mut |variable, operator, value| pairs.push((variable, operator, value)));
        for (variable, operator, value) in pairs {
            self.beside(variable, operator, value, span);
        }
        let is_own = |term: &Coded| &*term.terminology == "local" && term.code.starts_with("gt");
        expr.walk(&mut |inner| match inner {
            Expr::Fired(rule) => {
                self.label(&rule.code, rule.label.as_deref().unwrap_or_default(), span)
            }
            Expr::Literal(Value::Coded(term)) if is_own(term) => {
                self.term(&term.code, &term.text, span)
            }
            Expr::Binary(Operator::IsA | Operator::IsNotA, _, term) => self.bound(term, span),
            _ => {}
        });
    }

    /// Checks a predicate of a binding.
    fn predicate(&mut self, expr: &'g Expr, span: Span) {
        expr.walk(&mut |inner| match inner {
            Expr::Variable(variable) => self.filled_later(variable, span),
            Expr::Any(list, _) => list.iter().for_each(|v| self.filled_later(v, span)),
            Expr::Fired(rule) => self.too_early(&rule.code, span),
            _ => {}
        });
        if conjuncts(expr).into_iter().any(|part| !is_condition(part)) {
            let message = String::from("a predicate without a condition keeps no data");
            let help = "compare a path, such as `/data[at0001]/items[at0002] == 'text'`";
            self.warn("GDL0412", span, message, help);
        }
    }

    /// Reports a variable in a predicate. The clock is known there, and so are terms. A variable that
    /// is bound to nothing has another problem.
    fn filled_later(&mut self, variable: &Variable, span: Span) {
        let code = variable.code.as_str();
        let is_clock = code.starts_with("currentDate");
        let is_term = variable.attribute.as_deref() == Some("term");
        if !is_clock && !is_term && self.known.contains(code) {
            self.too_early(code, span);
        }
    }

    fn too_early(&mut self, code: &str, span: Span) {
        let message = format!("a predicate reads `{code}`");
        let help = "predicates select data before the variables are filled: compare a path of the model, or move the condition to a rule";
        self.warn("GDL0411", span, message, help);
    }

    /// Checks a variable that a statement reads or sets.
    fn use_of(&mut self, variable: &'g Variable, span: Span) {
        self.label(
            &variable.code,
            variable.label.as_deref().unwrap_or_default(),
            span,
        );
        let Some(attribute) = variable.attribute.as_deref() else {
            return;
        };
        match self.types.get(variable.code.as_str()) {
            Some(class) if !has_attribute(class, attribute) => {
                let message = format!("`{}` is a {class} and has no `.{attribute}`", variable.code);
                self.warn(
                    "GDL0405",
                    span,
                    message,
                    "use an attribute of its class, or mend `data_type`",
                );
            }
            _ => self.taken_for(variable, kind_by_attribute(attribute), span),
        }
    }

    /// Checks a variable that is compared with a literal.
    fn beside(&mut self, variable: &'g Variable, operator: Operator, value: &Value, span: Span) {
        if operator.precedence() >= Operator::Plus.precedence() || value.is_null() {
            return;
        }
        let attribute = variable.attribute.as_deref();
        let Some(is_text) = attribute.and_then(is_text) else {
            if attribute.is_none_or(|a| a == "value") {
                self.taken_for(variable, kind_by_value(value), span);
            }
            return;
        };
        let (kind, fits) = match is_text {
            true => ("a text", matches!(value, Value::Text(_))),
            false => ("a number", value.number().is_some()),
        };
        if !fits {
            let name = attribute.unwrap_or_default();
            let (code, found) = (&variable.code, value.rm_type());
            let message = format!("`.{name}` of `{code}` is {kind}, and is put beside {found}");
            let help = "compare and set an attribute with a literal of its own kind";
            self.warn("GDL0410", span, message, help);
        }
    }

    fn taken_for(&mut self, variable: &'g Variable, kind: Option<&'static str>, span: Span) {
        let Some(kind) = kind else { return };
        let first = *self.kinds.entry(&variable.code).or_insert(kind);
        if first != kind {
            let message = format!(
                "`{}` is taken for {kind} here, and for {first} elsewhere",
                variable.code
            );
            self.warn(
                "GDL0409",
                span,
                message,
                "one of the statements is never true or does nothing: use one class throughout",
            );
        }
    }

    /// Checks that the label of a variable or rule is its term in one of the languages.
    fn label(&mut self, code: &str, label: &str, span: Span) {
        let Some(terms) = self.terms.get(code) else {
            return;
        };
        let Some(own) = terms.own else { return };
        let label_of = bare(label);
        if !label_of.is_empty() && !terms.bare.contains(&label_of) {
            let message = format!(
                "`{code}` is labelled `{}`, its term is `{}`",
                shown(label),
                shown(own)
            );
            self.warn(
                "GDL0407",
                span,
                message,
                "mend the label, or the code before it",
            );
        }
    }

    /// Checks a term of the guide that is used as a value.
    fn term(&mut self, code: &str, label: &str, span: Span) {
        if !self.terms.contains_key(code) {
            return self.warn(
                "GDL0316",
                span,
                format!("`{}` has no term", shown(code)),
                "add it to the term definitions",
            );
        }
        self.label(code, label, span);
    }

    /// Checks the right side of `is_a`.
    fn bound(&mut self, term: &Expr, span: Span) {
        let Expr::Literal(Value::Coded(term)) = term else {
            return;
        };
        if !self.bound.contains(&*term.code) {
            let message = format!(
                "`{}` is bound to no code of a terminology",
                shown(&term.code)
            );
            self.warn(
                "GDL0408",
                span,
                message,
                "nothing falls under it: add its codes to the term bindings",
            );
        }
    }

    fn rules(&mut self) {
        let guide = self.guide;
        let (mut codes, mut priorities) = (HashSet::new(), HashMap::new());
        for rule in &guide.rules {
            if !codes.insert(rule.id.as_str()) {
                let message = format!("rule `{}` is defined twice", rule.id);
                let help = "give each rule a code of its own";
                self.warn("GDL0403", rule.span, message, help);
            }
            let first = *priorities.entry(rule.priority).or_insert(rule.id.as_str());
            if first != rule.id {
                let (first, own) = (shown(first), shown(&rule.id));
                let priority = rule.priority;
                let message =
                    format!("rules `{first}` and `{own}` both have the priority {priority}");
                let help =
                    "the first of them in the file runs first: give each a priority of its own";
                self.warn("GDL0406", rule.span, message, help);
            }
        }
        self.suggested_actions();
        self.unreachable();
    }

    /// Reports suggested actions whose template is not defined, and deletions of a resource that is
    /// not named.
    fn suggested_actions(&mut self) {
        let templates = self.guide.templates.iter();
        let templates: HashMap<&str, _> = templates.map(|t| (t.id.as_str(), &t.object)).collect();
        for rule in &self.guide.rules {
            let suggestions = rule.cards.iter().flat_map(|card| &card.suggestions);
            for action in suggestions.flat_map(|suggestion| &suggestion.actions) {
                let Some((id, _)) = &action.template else {
                    continue;
                };
                let object = templates.get(id.as_str());
                let has = |name: &str| {
                    let member = object.and_then(|object| object.get(name));
                    member.is_some_and(serde_json::Value::is_string)
                };
                if object.is_none() {
                    let message = format!("template `{}` is not defined", shown(id));
                    let help = "add it under `definition.templates`";
                    self.warn("GDL0312", rule.span, message, help);
                } else if action.kind == "delete" && !(has("resourceType") && has("id")) {
                    let message = format!("the resource `{}` to delete has no `id`", shown(id));
                    let help = "add `resourceType` and `id`: CDS Hooks names the resource by them";
                    self.warn("GDL0317", rule.span, message, help);
                }
            }
        }
    }

    /// Reports a guide that never does anything, and rules that can never fire.
    fn unreachable(&mut self) {
        let guide = self.guide;
        let reach = Reach::new(self.known);
        if let Some((condition, why)) = reach.never(&guide.pre_conditions) {
            let message = String::from("the guide never does anything");
            let help = format!("of its pre-conditions, {why}");
            self.warn("GDL0404", condition.span, message, &help);
        }
        for (rule, (_, why)) in reach.unreachable(guide) {
            if let Some(rule) = guide.rules.get(rule) {
                let message = format!("rule `{}` can never fire", rule.id);
                self.warn("GDL0404", rule.span, message, &why);
            }
        }
    }

    fn warn(&mut self, code: &'static str, span: Span, message: String, help: &str) {
        if self.problems.len() < MAX_PROBLEMS && self.reported.insert(message.clone()) {
            self.problems
                .push(Diagnostic::warning(code, span, message).with_help(help));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::has_attribute;

    #[test]
    fn attributes_are_those_of_the_class_if_the_class_is_known() {
        for (class, attribute, has) in [
            ("DV_QUANTITY", "unit", true),
            ("DV_COUNT", "unit", false),
            ("DV_COUNT", "magnitude", true),
            ("DV_TEXT", "magnitude", false),
            ("DV_ORDINAL", "symbol", true),
            ("DV_CODED_TEXT", "symbol", false),
            ("DV_CODED_TEXT", "code", true),
            ("DV_BOOLEAN", "code", false),
            ("DV_QUANTITY", "year", false),
            // The table has no attributes of other classes.
            ("DV_DATE", "year", true),
            ("DV_PROPORTION", "numerator", true),
            ("DV_PROPORTION", "unit", true),
        ] {
            assert_eq!(has_attribute(class, attribute), has, "{class} {attribute}");
        }
    }
}
