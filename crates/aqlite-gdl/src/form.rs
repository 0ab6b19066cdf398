//! The form for the inputs of a guide: a control for each variable, with its units and codes.
//!
//! Most guides do not state the class of a variable. The form derives it from the rules that use
//! the variable.

use super::compile::CompiledGuide;
use super::expr::ast::{Expr, Operator, Variable};
use super::fixture::{literal, text_form};
use super::guide::{Binding, Direction, Element, Guide};
use super::time::TimeUnit;
use super::value::Value;
use aqlite_rm::order;
use serde::Serialize;

/// An input variable as a form shows it.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Input {
    /// Its gt-code.
    pub variable: String,
    /// The name in the requested language.
    pub name: String,
    /// The description, if the guide has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The gt-code of the binding of the variable.
    pub binding: String,
    /// The path in the archetype.
    pub path: String,
    /// The control that accepts the value.
    pub control: Control,
    /// The units that the guide mentions, for a quantity.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<String>,
    /// The codes that the guide mentions, for an ordinal or a coded text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
}

/// The control that accepts a value, with an example of its literals.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Control {
    /// A number and a unit: `30,kg`.
    Quantity,
    /// A number: `3`.
    Count,
    /// A choice with a rank: `1|local::at0005|Low|`.
    Ordinal,
    /// A choice: `local::at0004|Yes|`.
    CodedText,
    /// Free text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// `2024-02-29T12:00:00+01:00`, or a date alone.
    DateTime,
    /// `96,100,2`: numerator, denominator, type.
    Proportion,
}

/// A code that may be chosen.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Choice {
    /// The literal for the guide.
    pub literal: String,
    /// The text for the user.
    pub text: String,
}

/// Returns the inputs of a guide in file order. A variable that is bound twice occurs once.
pub fn inputs(compiled: &CompiledGuide, language: &str) -> Vec<Input> {
    let guide = compiled.guide();
    let uses = Uses::collect(guide);
    let mut inputs: Vec<Input> = Vec::new();
    for binding in guide
        .bindings
        .iter()
        .filter(|b| b.direction != Direction::Output)
    {
        for element in &binding.elements {
            if !inputs.iter().any(|i| i.variable == element.id) {
                inputs.push(input(guide, &uses, binding, element, language));
            }
        }
    }
    inputs
}

fn input(
    guide: &Guide,
    uses: &Uses<'_>,
    binding: &Binding,
    element: &Element,
    language: &str,
) -> Input {
    let term = guide.terms_in(language).iter().find(|t| t.id == element.id);
    let values = uses.values_of(&element.id);
    // The declared class wins. The uses of the variable are only evidence.
    let control = declared(element)
        .or_else(|| uses.control(element, &values))
        .unwrap_or(Control::Text);
    let (mut units, mut choices) = (Vec::new(), Vec::new());
    match control {
        Control::Quantity => units = uses.units(element, &values),
        Control::Ordinal | Control::CodedText => {
            choices = options(guide, element, uses, &values, language);
        }
        _ => {}
    }
    Input {
        variable: element.id.clone(),
        name: term.map_or_else(|| element.id.clone(), |t| t.text.clone()),
        description: term.map(|t| t.description.clone()).unwrap_or_default(),
        binding: binding.id.clone(),
        path: element.path.clone(),
        units,
        options: choices,
        control,
    }
}

fn declared(element: &Element) -> Option<Control> {
    Some(match element.data_type.as_deref()? {
        "DV_QUANTITY" => Control::Quantity,
        "DV_COUNT" => Control::Count,
        "DV_ORDINAL" => Control::Ordinal,
        "DV_CODED_TEXT" => Control::CodedText,
        "DV_TEXT" => Control::Text,
        "DV_BOOLEAN" => Control::Boolean,
        "DV_DATE_TIME" | "DV_DATE" | "DV_TIME" => Control::DateTime,
        "DV_PROPORTION" => Control::Proportion,
        _ => return None,
    })
}

/// An operation on a variable and a literal.
struct LiteralOperation<'g> {
    variable: &'g Variable,
    operator: Operator,
    value: &'g Value,
}

/// The uses of variables in the statements of a guide.
struct Uses<'g> {
    variables: Vec<&'g Variable>,
    operations: Vec<LiteralOperation<'g>>,
    /// Variables that are added to or subtracted from the current time.
    dated: Vec<&'g str>,
}

impl<'g> Uses<'g> {
    fn collect(guide: &'g Guide) -> Uses<'g> {
        let mut uses = Uses {
            variables: Vec::new(),
            operations: Vec::new(),
            dated: Vec::new(),
        };
        guide.each_expr(&mut |expr| {
            expr.variables(&mut |v| uses.variables.push(v));
            expr.pairs(&mut |variable, operator, value| {
                uses.operations.push(LiteralOperation {
                    variable,
                    operator,
                    value,
                });
            });
            expr.walk(&mut |inner| uses.dates(inner));
        });
        uses
    }

    fn dates(&mut self, expr: &'g Expr) {
        let Expr::Binary(_, a, b) = expr else { return };
        // A variable that is added to the current time is a time itself, or a duration of it.
        let is_now = |e: &Expr| matches!(e, Expr::Variable(v) if v.code.starts_with("currentDate"));
        for (one, other) in [(a, b), (b, a)] {
            if let (Expr::Variable(v), true) = (one.as_ref(), is_now(other)) {
                self.dated.push(&v.code);
            }
        }
    }

    /// Returns the operations on a variable and a literal.
    fn of_variable(&self, code: &str) -> impl Iterator<Item = &LiteralOperation<'g>> {
        let all = self.operations.iter();
        all.filter(move |found| found.variable.code == code)
    }

    fn values_of(&self, code: &str) -> Vec<&'g Value> {
        self.of_variable(code).map(|found| found.value).collect()
    }

    fn reads(&self, code: &str, attributes: &[&str]) -> bool {
        self.variables.iter().any(|v| {
            v.code == code
                && v.attribute
                    .as_deref()
                    .is_some_and(|a| attributes.contains(&a))
        })
    }

    /// Returns the control that fits the uses of a variable. The most specific evidence is examined
    /// first.
    fn control(&self, element: &Element, values: &[&Value]) -> Option<Control> {
        let code = element.id.as_str();
        let beside = |is: fn(&Value) -> bool| values.iter().any(|v| is(v));
        let reads = |attributes: &[&str]| self.reads(code, attributes);
        let is_time = element.path.ends_with("time")
            || self.dated.contains(&code)
            || self.adds_period(code)
            || reads(&["year", "month", "day"])
            || beside(|v| matches!(v, Value::Moment(..)));
        let is_ordinal = beside(|v| matches!(v, Value::Ordinal(_))) || reads(&["symbol"]);
        let is_coded =
            beside(|v| matches!(v, Value::Coded(_))) || reads(&["code", "terminologyId"]);
        let is_quantity =
            beside(|v| matches!(v, Value::Quantity(_))) || reads(&["unit", "units", "precision"]);
        let is_count = reads(&["magnitude"]) || beside(|v| matches!(v, Value::Number(_)));
        // The order matters: an ordinal is also used as a code, a quantity as a number.
        let evidence = [
            (Control::Ordinal, is_ordinal),
            (Control::CodedText, is_coded),
            (Control::Boolean, beside(|v| matches!(v, Value::Boolean(_)))),
            (Control::Proportion, reads(&["numerator", "denominator"])),
            (Control::DateTime, is_time),
            (Control::Quantity, is_quantity),
            (Control::Count, is_count),
        ];
        let found = evidence.into_iter().find(|(_, holds)| *holds);
        found.map(|(control, _)| control)
    }

    /// Returns whether a period is added to a variable, or subtracted from it.
    fn adds_period(&self, code: &str) -> bool {
        let is_period =
            |v: &Value| matches!(v, Value::Quantity(q) if TimeUnit::parse(&q.unit).is_some());
        self.of_variable(code).any(|found| {
            matches!(found.operator, Operator::Plus | Operator::Minus) && is_period(found.value)
        })
    }

    fn units(&self, element: &Element, values: &[&Value]) -> Vec<String> {
        let compared = self.of_variable(&element.id).filter_map(|found| {
            match (found.variable.attribute.as_deref(), found.value) {
                (Some("unit" | "units"), Value::Text(unit)) => Some(unit.to_string()),
                _ => None,
            }
        });
        let of_values = values.iter().filter_map(|v| match v {
            Value::Quantity(q) => Some(q.unit.to_string()),
            _ => None,
        });
        // The declared units come first, so that they are the first choice in the form.
        let declared = element.units.iter().cloned();
        let mut units: Vec<String> = Vec::new();
        for unit in declared.chain(compared).chain(of_values) {
            if !units.contains(&unit) {
                units.push(unit);
            }
        }
        units
    }
}

/// Returns the choices: those that the binding allows, or else those that the rules compare with.
fn options(
    guide: &Guide,
    element: &Element,
    uses: &Uses<'_>,
    values: &[&Value],
    language: &str,
) -> Vec<Choice> {
    let mut found: Vec<Value> = element.allowed_values.iter().map(|v| literal(v)).collect();
    // The codes of the binding are complete. Those of the rules are used only without them.
    if found.is_empty() {
        let bound = uses
            .of_variable(&element.id)
            .filter(|found| matches!(found.operator, Operator::IsA | Operator::IsNotA));
        found.extend(bound.flat_map(|term| bound_codes(guide, term.value, language)));
        let is_choice = |v: &Value| matches!(v, Value::Ordinal(_)) || is_code(v);
        let compared = values.iter().filter(|v| is_choice(v));
        found.extend(compared.map(|v| (*v).clone()));
    }
    // Ordinals by rank. The sort is stable, so codes keep their order.
    order::sort_by_key(&mut found, |v| match v {
        Value::Ordinal(o) => o.value,
        _ => 0,
    });
    choices(&found)
}

/// Returns the choices for some values, without repetitions.
fn choices(values: &[Value]) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for value in values {
        // Codes are compared without their texts, which differ between rules.
        let is_same = |choice: &Choice| literal(&choice.literal).same_code(value);
        if !choices.iter().any(is_same) {
            choices.push(Choice {
                literal: text_form(value),
                text: super::calc::shown(value),
            });
        }
    }
    choices
}

/// Returns whether a value is a code of a terminology, not a term of the guide.
fn is_code(value: &Value) -> bool {
    matches!(value, Value::Coded(c) if !(&*c.terminology == "local" && c.code.starts_with("gt")))
}

/// Returns the codes that are bound to a term of the guide, with the text of the term.
fn bound_codes(guide: &Guide, term: &Value, language: &str) -> Vec<Value> {
    let Value::Coded(term) = term else {
        return Vec::new();
    };
    let text = guide.term(&term.code, language).unwrap_or(&term.text);
    let lists = guide
        .term_bindings
        .iter()
        .flat_map(|b| b.codes.iter().map(move |(gt, codes)| (b, gt, codes)));
    let own = lists.filter(|(_, gt, _)| **gt == *term.code);
    own.flat_map(|(b, _, codes)| {
        codes
            .iter()
            .map(|code| Value::coded(&b.terminology, code, text))
    })
    .collect()
}
