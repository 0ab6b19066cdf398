//! Why rules fired or did not, as data: every condition with its result and the values that it read.

use super::compile::Test;
use super::eval::{Machine, Place};
use super::fill::readable;
use serde::Serialize;

/// The trace of a run.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Trace {
    /// The guide.
    pub guide_id: String,
    /// The pre-conditions; when one is not true, nothing else was done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pre_conditions: Vec<ConditionTrace>,
    /// The rules in the order of their evaluation.
    pub rules: Vec<RuleTrace>,
    /// Where each binding took its data from.
    pub inputs: Vec<InputTrace>,
    /// Variables of INPUT bindings without any value.
    pub missing: Vec<VariableTrace>,
    /// What could not be computed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A rule.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RuleTrace {
    /// Its gt-code.
    pub rule: String,
    /// What it is called in the language of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether its actions were carried out.
    pub fired: bool,
    /// Its conditions.
    pub conditions: Vec<ConditionTrace>,
}

/// A condition.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ConditionTrace {
    /// As written.
    pub text: String,
    /// True, false, or unknown (absent): only true lets a rule fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<bool>,
    /// The variables that it reads, as they were then.
    pub variables: Vec<VariableTrace>,
}

/// A variable.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct VariableTrace {
    /// Its gt-code.
    pub variable: String,
    /// What it is called in the language of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its value for people; absent when it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The data of a binding.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct InputTrace {
    /// Its gt-code.
    pub binding: String,
    /// The archetype.
    pub model_id: String,
    /// How many instances there were.
    pub found: usize,
    /// The ones that passed the predicates.
    pub used: Vec<SourceTrace>,
}

/// Where an instance comes from.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SourceTrace {
    /// The uid of the composition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composition: Option<String>,
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

/// A condition that was evaluated, with the rule it belongs to (none for pre-conditions).
pub(crate) struct Tested {
    rule: Option<usize>,
    condition: ConditionTrace,
}

/// Takes down a condition while its variables are as it saw them.
pub(crate) fn tested(machine: &Machine<'_>, rule: Option<usize>, test: &Test, result: Option<bool>) -> Tested {
    let variables = test.reads.iter().map(|slot| variable(machine, *slot)).collect();
    Tested { rule, condition: ConditionTrace { text: test.text.to_string(), result, variables } }
}

fn variable(machine: &Machine<'_>, slot: usize) -> VariableTrace {
    let code = machine.guide.slots.get(slot).map(|s| s.code.to_string()).unwrap_or_default();
    let value = machine.slots.get(slot).map(|s| &s.last).filter(|v| !v.is_null()).map(readable);
    VariableTrace { name: name(machine, &code), variable: code, value }
}

fn name(machine: &Machine<'_>, code: &str) -> Option<String> {
    let term = machine.guide.term_index.get(code)?;
    Some(super::calc::shown(&machine.term(*term)))
}

/// Puts the trace of a run together.
pub(crate) fn of(machine: &Machine<'_>, started: bool, tests: Vec<Tested>, used: &[Vec<usize>]) -> Trace {
    let guide = machine.guide;
    let rule = |(i, plan): (usize, &super::compile::RulePlan)| RuleTrace {
        rule: plan.id.to_string(),
        name: name(machine, &plan.id),
        fired: machine.fired.get(i).copied().unwrap_or_default(),
        conditions: tests.iter().filter(|t| t.rule == Some(i)).map(|t| t.condition.clone()).collect(),
    };
    let rules = if started { guide.rules.iter().enumerate().map(rule).collect() } else { Vec::new() };
    let inputs = guide.guide.bindings.iter().enumerate().filter(|(_, b)| b.direction != super::guide::Direction::Output);
    let input = |(i, binding): (usize, &super::guide::Binding)| {
        let instances = machine.input.instances.get(i).map(Vec::as_slice).unwrap_or_default();
        let used = used.get(i).map(Vec::as_slice).unwrap_or_default().iter().filter_map(|n| instances.get(*n));
        let source = |i: &super::bind::Instance| SourceTrace {
            composition: i.source.as_deref().map(str::to_owned),
            time: i.time.map(super::time::Moment::text),
        };
        InputTrace { binding: binding.id.clone(), model_id: binding.model_id.clone(), found: instances.len(), used: used.map(source).collect() }
    };
    let slots = guide.guide.bindings.iter().zip(&guide.bindings).filter(|(b, _)| b.direction == super::guide::Direction::Input);
    let slots = slots.flat_map(|(_, plan)| plan.columns.iter().filter_map(|c| c.slot));
    let missing = slots.filter(|s| machine.slots.get(*s).is_some_and(|s| s.count() == 0)).map(|s| variable(machine, s));
    Trace {
        guide_id: guide.guide.id.clone(),
        missing: missing.collect(),
        inputs: inputs.map(input).collect(),
        rules,
        notes: machine.notes.borrow().iter().map(|(place, trouble)| format!("{}: {}", place_text(machine, *place), trouble.text())).collect(),
        pre_conditions: tests.into_iter().filter(|t| t.rule.is_none()).map(|t| t.condition).collect(),
    }
}

/// Names a statement by its rule and text.
fn place_text(machine: &Machine<'_>, place: Place) -> String {
    let guide = machine.guide;
    let source = |rule: usize| guide.rules.get(rule).and_then(|r| guide.guide.rules.get(r.source));
    let of_rule = |rule: usize, text: Option<&str>| format!("rule {} `{}`", source(rule).map_or("?", |r| &r.id), text.unwrap_or_default());
    match place {
        Place::Predicate(i) => format!("predicates of binding {}", guide.guide.bindings.get(i).map_or("?", |b| &b.id)),
        Place::PreCondition(i) => format!("pre-condition `{}`", guide.pre_conditions.get(i).map_or("?", |t| &t.text)),
        Place::DefaultAction(i) => format!("default action `{}`", guide.guide.default_actions.get(i).map_or("?", |s| &s.text)),
        Place::When(rule, i) => of_rule(rule, source(rule).and_then(|r| r.when.get(i)).map(|c| c.text.as_str())),
        Place::Then(rule, i) => of_rule(rule, source(rule).and_then(|r| r.then.get(i)).map(|s| s.text.as_str())),
        Place::Cards(rule) => of_rule(rule, Some("cards")),
    }
}
