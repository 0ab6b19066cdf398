//! The trace of a run: why each rule fired or not, with every condition, its result and the values
//! that it read.

use super::bind::Instance;
use super::budget::{FRAME, size};
use super::calc::EvalError;
use super::compile::{BindingPlan, Column, ConditionPlan};
use super::eval::{GuideRun, Place};
use super::fill::readable;
use super::guide::{Binding, Direction};
use super::value::Value;
use serde::Serialize;
use std::collections::HashMap;

/// The trace of a run.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Trace {
    /// The id of the guide.
    pub guide_id: String,
    /// The preconditions. If one is not true, nothing else was executed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pre_conditions: Vec<ConditionTrace>,
    /// The rules in the order of their evaluation.
    pub rules: Vec<RuleTrace>,
    /// The variables that the default actions set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub default_actions: Vec<VariableTrace>,
    /// The sources of the data of each binding.
    pub inputs: Vec<InputTrace>,
    /// Variables of INPUT bindings without any value.
    pub missing: Vec<VariableTrace>,
    /// The statements whose values could not be computed, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A statement whose value could not be computed. It counted as unknown.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct Note {
    /// The id of the guide.
    pub guide_id: String,
    /// The place of the statement: `rule gt0012`, `default actions`, `pre-conditions`, `predicates
    /// of gt0002`, `cards of gt0012`.
    pub place: String,
    /// The statement as written.
    pub statement: String,
    /// The reason why it has no value.
    pub reason: String,
}

/// A rule.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct RuleTrace {
    /// Its gt-code.
    pub rule: String,
    /// The name in the language of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the actions were executed.
    pub fired: bool,
    /// Its conditions.
    pub conditions: Vec<ConditionTrace>,
    /// The variables that its actions set, if it fired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<VariableTrace>,
}

/// A condition.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ConditionTrace {
    /// The text as written.
    pub text: String,
    /// True, false, or unknown (absent). A rule fires only if all its conditions are true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<bool>,
    /// The variables that it reads, with their values at that moment.
    pub variables: Vec<VariableTrace>,
}

/// A variable.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct VariableTrace {
    /// Its gt-code.
    pub variable: String,
    /// The name in the language of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The value for people. Absent if the variable had none.
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
    /// The number of instances before the predicates.
    pub found: usize,
    /// The instances that passed the predicates.
    pub used: Vec<SourceTrace>,
}

/// The source of an instance.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SourceTrace {
    /// The uid of the composition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composition: Option<String>,
    /// The time of the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The values that it supplied.
    pub values: Vec<ValueTrace>,
}

/// A value at a path of an instance.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ValueTrace {
    /// The variable that the value feeds. Absent if only a predicate reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The path in the archetype.
    pub path: String,
    /// The value for people.
    pub value: String,
}

impl Note {
    fn size(&self) -> usize {
        FRAME + self.guide_id.len() + self.place.len() + self.statement.len()
    }
}

/// The records of a run by rule. Empty if no trace is requested. Before the first rule, the rule is
/// `None`.
#[derive(Default)]
pub(crate) struct Record {
    conditions: HashMap<Option<usize>, Vec<ConditionTrace>>,
    set: HashMap<Option<usize>, Vec<VariableTrace>>,
}

impl Record {
    /// Records a condition with the present values of its variables.
    pub fn condition(
        &mut self,
        guide_run: &GuideRun<'_>,
        rule: Option<usize>,
        test: &ConditionPlan,
        result: Option<bool>,
    ) {
        if guide_run.input.options.trace && guide_run.budget.spend_bytes(FRAME + test.text.len()) {
            let variables = test
                .reads
                .iter()
                .map(|slot| variable(guide_run, *slot))
                .collect();
            self.conditions
                .entry(rule)
                .or_default()
                .push(ConditionTrace {
                    text: test.text.to_string(),
                    result,
                    variables,
                });
        }
    }

    /// Records the variables that the actions have just set.
    pub fn actions(&mut self, guide_run: &GuideRun<'_>, rule: Option<usize>) {
        if guide_run.input.options.trace && guide_run.budget.spend_steps(guide_run.slots.len()) {
            let fresh = guide_run
                .slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| slot.set_in == guide_run.activation);
            self.set
                .entry(rule)
                .or_default()
                .extend(fresh.map(|(slot, _)| variable(guide_run, slot)));
        }
    }

    fn conditions_of(&mut self, rule: Option<usize>) -> Vec<ConditionTrace> {
        self.conditions.remove(&rule).unwrap_or_default()
    }

    fn set_by(&mut self, rule: Option<usize>) -> Vec<VariableTrace> {
        self.set.remove(&rule).unwrap_or_default()
    }
}

fn variable(guide_run: &GuideRun<'_>, slot: usize) -> VariableTrace {
    let code = guide_run
        .guide
        .slots
        .get(slot)
        .map(|s| s.code.to_string())
        .unwrap_or_default();
    let value = guide_run
        .slots
        .get(slot)
        .map(super::variable_state::VariableState::current)
        .filter(|v| !v.is_null());
    let value = value
        .filter(|value| guide_run.budget.spend_value(value))
        .map(readable);
    VariableTrace {
        name: name(guide_run, &code),
        variable: code,
        value,
    }
}

fn name(guide_run: &GuideRun<'_>, code: &str) -> Option<String> {
    let term = guide_run.guide.term_index.get(code)?;
    let text = guide_run.term(*term);
    guide_run
        .budget
        .spend_value(&text)
        .then(|| super::calc::shown(&text))
}

/// Builds the trace of a run.
pub(crate) fn build(
    guide_run: &GuideRun<'_>,
    started: bool,
    mut record: Record,
    used: &[Vec<usize>],
    notes: &[Note],
) -> Trace {
    let guide = guide_run.guide;
    guide_run
        .budget
        .spend_bytes(notes.iter().map(Note::size).sum());
    let pre_conditions = record.conditions_of(None);
    let default_actions = record.set_by(None);
    let rule = |(i, plan): (usize, &super::compile::RulePlan)| RuleTrace {
        rule: plan.id.to_string(),
        name: name(guide_run, &plan.id),
        fired: guide_run.fired.get(i).copied().unwrap_or_default(),
        conditions: record.conditions_of(Some(i)),
        set: record.set_by(Some(i)),
    };
    let rules = match started {
        true => guide.rules.iter().enumerate().map(rule).collect(),
        false => Vec::new(),
    };
    Trace {
        guide_id: guide.guide.id.clone(),
        pre_conditions,
        default_actions,
        rules,
        inputs: inputs(guide_run, used),
        missing: missing(guide_run),
        notes: notes.to_vec(),
    }
}

/// Returns the variables of INPUT bindings that have no value.
fn missing(guide_run: &GuideRun<'_>) -> Vec<VariableTrace> {
    let guide = guide_run.guide;
    let bindings = guide.guide.bindings.iter().zip(&guide.bindings);
    let inputs = bindings.filter(|(b, _)| b.direction == Direction::Input);
    let slots = inputs.flat_map(|(_, plan)| plan.columns.iter().filter_map(|c| c.slot));
    let is_empty = |s: &usize| guide_run.slots.get(*s).is_some_and(|s| s.count() == 0);
    slots
        .filter(is_empty)
        .map(|s| variable(guide_run, s))
        .collect()
}

/// Returns the sources of the data of each binding that is read.
fn inputs(guide_run: &GuideRun<'_>, used: &[Vec<usize>]) -> Vec<InputTrace> {
    let guide = guide_run.guide;
    let bindings = guide.guide.bindings.iter().zip(&guide.bindings);
    let read = bindings.enumerate();
    let read = read.filter(|(_, (b, _))| b.direction != Direction::Output);
    let input = |(i, (binding, plan)): (usize, (&Binding, &BindingPlan))| {
        let instances = guide_run.input.instances_of(i);
        let used = used.get(i).into_iter().flatten();
        let used = used.filter_map(|n| instances.get(*n));
        let sources = used.map(|instance| source(guide_run, plan, instance));
        InputTrace {
            binding: binding.id.clone(),
            model_id: binding.model_id.clone(),
            found: instances.len(),
            used: sources.collect(),
        }
    };
    read.map(input).collect()
}

fn source(guide_run: &GuideRun<'_>, plan: &BindingPlan, instance: &Instance) -> SourceTrace {
    let given = plan
        .columns
        .iter()
        .zip(&instance.values)
        .filter(|(_, v)| !v.is_null());
    let given = given.take_while(|(column, value)| {
        guide_run
            .budget
            .spend_bytes(FRAME + column.path.len() + size(value))
    });
    let value = |(column, value): (&Column, &Value)| ValueTrace {
        variable: column
            .slot
            .and_then(|s| guide_run.guide.slots.get(s))
            .map(|s| s.code.to_string()),
        path: column.path.clone(),
        value: readable(value),
    };
    SourceTrace {
        composition: instance.source.as_deref().map(str::to_owned),
        time: match &instance.recorded_time {
            Some(recorded) => Some(recorded.to_string()),
            None => instance.time.map(super::time::Moment::text),
        },
        values: given.map(value).collect(),
    }
}

/// Returns the statements of a run whose values could not be computed.
pub(crate) fn notes(guide_run: &GuideRun<'_>) -> Vec<Note> {
    let note = |(place, error): &(Place, EvalError)| {
        let (place, statement) = place_and_statement(guide_run, *place);
        let statement = if guide_run.budget.spend_bytes(2 * FRAME + statement.len()) {
            statement
        } else {
            ""
        };
        Note {
            guide_id: guide_run.guide.guide.id.clone(),
            place,
            statement: statement.to_owned(),
            reason: error.text().into_owned(),
        }
    };
    guide_run.notes.borrow().iter().map(note).collect()
}

/// Returns the place and the text of a statement.
pub(crate) fn place_and_statement<'a>(guide_run: &GuideRun<'a>, place: Place) -> (String, &'a str) {
    let (plan, guide) = (guide_run.guide, &guide_run.guide.guide);
    let rule = |i: usize| plan.rules.get(i).and_then(|r| guide.rules.get(r.source));
    let rule_id = |i: usize| rule(i).map_or("?", |r| &r.id);
    let binding_id = |i: usize| guide.bindings.get(i).map_or("?", |b| &b.id);
    let name = match place {
        Place::Predicate(i, _) => format!("predicates of {}", binding_id(i)),
        Place::PreCondition(_) => String::from("pre-conditions"),
        Place::DefaultAction(_) => String::from("default actions"),
        Place::When(i, _) | Place::Then(i, _) => format!("rule {}", rule_id(i)),
        Place::Cards(i) => format!("cards of {}", rule_id(i)),
        Place::Data(i) => format!("data of {}", binding_id(i)),
        Place::Outputs => String::from("results"),
        Place::Trace => String::from("trace"),
    };
    let statement = match place {
        Place::Predicate(b, i) => guide
            .bindings
            .get(b)
            .and_then(|b| b.predicates.get(i))
            .map(|c| &c.text),
        Place::PreCondition(i) => guide.pre_conditions.get(i).map(|c| &c.text),
        Place::DefaultAction(i) => guide.default_actions.get(i).map(|s| &s.text),
        Place::When(r, i) => rule(r).and_then(|r| r.when.get(i)).map(|c| &c.text),
        Place::Then(r, i) => rule(r).and_then(|r| r.then.get(i)).map(|s| &s.text),
        _ => None,
    };
    (name, statement.map_or("", String::as_str))
}
