//! One run of a guide: predicates, preconditions, default actions, rules by priority, results.

use super::bind::Instance;
use super::budget::{Exceeded, Limits, OUTPUT_FRAME, Spent, json_size, size};
use super::calc::EvalError;
use super::compile::{BindingHead, BindingPlan, CompiledGuide, RulePlan};
use super::eval::{GuideRun, Place};
use super::guide::Direction;
use super::pause::{NextPause, WAITS, at_once};
use super::time::Clock;
use super::trace::{self, Note, Trace};
use super::value::Value;
use hashbrown::HashSet;
use serde::Serialize;
use std::sync::Arc;

/// The cells of a binding that are counted at a time.
const CELLS: usize = 200_000;

/// A source of subsumption between codes, which the guide does not contain.
pub trait Terminology {
    /// Returns whether `ancestor` subsumes `code` or equals it; `None` if the terminology is
    /// unknown.
    fn subsumes(&self, terminology: &str, ancestor: &str, code: &str) -> Option<bool>;
}

/// Options and limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Round quantities to their precision when they are stored. Later rules then read the rounded
    /// value.
    pub round_on_store: bool,
    /// Also return the instances of INPUT bindings that were used.
    pub include_input: bool,
    /// Return a trace: the reason why each rule fired or not.
    pub trace: bool,
    /// Imitate the engine that produced the published fixtures where it invents values: a unit or
    /// precision before any number makes a quantity of 0, and each part of a proportion is a count.
    /// Without this option, missing values stay missing.
    pub imitates_published_engine: bool,
    /// Convert quantities of compatible UCUM units in comparisons: 0.5 kg is more than 400 g.
    /// Without this option, a comparison of different units is unknown, and a note names both
    /// units. Units of time are always compared by the calendar.
    pub convert_units: bool,
    /// The limits of the run.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            round_on_store: true,
            include_input: false,
            trace: false,
            imitates_published_engine: false,
            convert_units: false,
            limits: Limits::default(),
        }
    }
}

/// The input of a run.
#[derive(Clone, Copy)]
pub struct RunInput<'a> {
    /// The instances of each binding in the order of the bindings, oldest first.
    pub instances: &'a [Vec<Instance>],
    /// The time of evaluation, and the time zone of its calendar and of the results.
    pub clock: Clock<'a>,
    /// The language of texts, such as `en`.
    pub language: &'a str,
    /// Options and limits.
    pub options: Options,
    /// Subsumption of codes. Without a terminology, a code is subsumed by its prefixes.
    pub terminology: Option<&'a dyn Terminology>,
}

#[cfg(test)]
impl RunInput<'_> {
    /// Returns the input of a run without data, in 1970.
    pub fn without_data() -> RunInput<'static> {
        RunInput {
            instances: &[],
            clock: super::time::Moment::from_millis(0, 0).into(),
            language: "en",
            options: Options::default(),
            terminology: None,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The results: one instance for each OUTPUT binding that has values, the created instances, and
    /// the filled templates. An instance with a variable that was set after `create` set it follows
    /// the created instances, otherwise it precedes them.
    pub outputs: Vec<Output>,
    /// The rules that fired, in order.
    pub fired: Vec<Arc<str>>,
    /// The cards of the rules that fired.
    pub cards: Vec<CardOut>,
    /// The reasons why rules fired or not, if requested.
    pub trace: Option<Trace>,
    /// The statements whose values could not be computed, and so counted as unknown.
    pub notes: Vec<Note>,
    /// Whether the preconditions were true. Otherwise nothing else was executed.
    pub started: bool,
    /// The consumption of the run.
    pub spent: Spent,
    values: Vec<(Value, bool)>,
}

/// An instance that the guide made.
#[derive(Clone, Debug)]
pub struct Output {
    /// The code of the binding or template.
    pub id: Arc<str>,
    /// The archetype or resource class.
    pub model_id: Arc<str>,
    /// The template of the data, if the guide names one that is not an archetype.
    pub template_id: Option<Arc<str>>,
    /// The origin of the instance.
    pub origin: OutputOrigin,
    /// The values of the instance.
    pub values: Vec<OutputValue>,
}

/// The origin of an instance of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OutputOrigin {
    /// The variables of an OUTPUT binding.
    Binding,
    /// `create`, which makes an instance of its own.
    Created,
    /// A filled template.
    Template,
    /// An instance of the input, see [`Options::include_input`].
    Input,
}

/// A value that the guide made.
#[derive(Clone, Debug)]
pub struct OutputValue {
    /// The variable.
    pub code: Arc<str>,
    /// The path in the model; `/` for a whole resource.
    pub path: Arc<str>,
    /// The value; never null.
    pub value: Value,
    /// The stored value that the guide copied, if [`OutputValue::value`] lacks a part of it, such as
    /// the magnitude status.
    pub original: Option<Arc<serde_json::Value>>,
}

/// A card of CDS Hooks.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct CardOut {
    /// The summary: one line.
    pub summary: String,
    /// The detail, of several lines: GitHub Flavored Markdown, in which the values are literal text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `info`, `warning` or `critical`.
    pub indicator: String,
    /// The author of the advice.
    pub source: LinkOut,
    /// The suggested actions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<SuggestionOut>,
    /// Links to further information.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkOut>,
}

/// A link of a card.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct LinkOut {
    /// The text of the link.
    pub label: String,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The address of an icon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// The kind of link: `absolute` or `smart`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A suggestion of a card.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct SuggestionOut {
    /// The text of the suggestion.
    pub label: String,
    /// The id of the suggestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The actions of the suggestion.
    pub actions: Vec<ActionOut>,
}

/// An action of a suggestion.
#[derive(Clone, Debug, Serialize, PartialEq)]
pub struct ActionOut {
    /// The kind of action: `create`, `update` or `delete`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The action in words.
    pub description: String,
    /// The resource with its placeholders filled. None for the deletion of a resource with an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<serde_json::Value>,
    /// The relative reference of the resource to delete, such as `MedicationRequest/5`.
    #[serde(rename = "resourceId", skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
}

/// Instances, resources and cards that actions create besides values of variables.
#[derive(Default)]
pub(crate) struct Effects {
    pub created: Vec<Output>,
    pub objects: Vec<(String, Arc<serde_json::Value>)>,
    pub cards: Vec<CardOut>,
}

impl<'a> RunInput<'a> {
    /// Returns the instances of a binding; none if the input has none for it.
    pub(crate) fn instances_of(&self, binding: usize) -> &'a [Instance] {
        let instances = self.instances.get(binding);
        instances.map(Vec::as_slice).unwrap_or_default()
    }
    pub(crate) fn subsumes(&self, terminology: &str, ancestor: &str, code: &str) -> bool {
        self.terminology
            .and_then(|t| t.subsumes(terminology, ancestor, code))
            .unwrap_or_else(|| code.starts_with(ancestor))
    }
}

impl Output {
    pub(crate) fn from_binding(
        plan: &BindingPlan,
        origin: OutputOrigin,
        values: Vec<OutputValue>,
    ) -> Output {
        let BindingHead {
            id,
            model_id,
            template_id,
        } = plan.head.clone();
        Output {
            id,
            model_id,
            template_id,
            origin,
            values,
        }
    }
}

impl Run {
    /// Returns the last value of a variable after the run.
    pub fn value(&self, guide: &CompiledGuide, code: &str) -> Option<&Value> {
        self.values
            .get(guide.slot_of(code)?)
            .map(|(v, _)| v)
            .filter(|v| !v.is_null())
    }

    /// Returns whether a rule or default action has set the variable in this run.
    pub fn was_set(&self, guide: &CompiledGuide, code: &str) -> bool {
        guide
            .slot_of(code)
            .and_then(|s| self.values.get(s))
            .is_some_and(|(_, set)| *set)
    }
}

impl CompiledGuide {
    /// Returns the guide that was compiled.
    pub fn guide(&self) -> &super::guide::Guide {
        &self.guide
    }

    pub(crate) fn slot_of(&self, code: &str) -> Option<usize> {
        self.slot_index.get(code).copied()
    }

    /// Runs the guide once. A value that cannot be computed is null, and a note states the reason.
    ///
    /// # Errors
    ///
    /// The run exceeded one of [`Limits`]. It then has no result.
    pub fn run(&self, input: &RunInput<'_>) -> Result<Run, Exceeded> {
        let run = at_once(self.run_with_pauses(input, &super::pause::none));
        run.unwrap_or_else(|| Err(Exceeded::broken(&self.guide.id, "run", WAITS)))
    }

    /// Runs the guide once, as [`CompiledGuide::run`] does. After some milliseconds of work, it
    /// awaits `next_pause` before the next statement, so that a host can answer others, or end the
    /// run.
    ///
    /// # Errors
    ///
    /// The run exceeded one of [`Limits`]. It then has no result.
    pub async fn run_with_pauses(
        &self,
        input: &RunInput<'_>,
        next_pause: NextPause<'_>,
    ) -> Result<Run, Exceeded> {
        let mut guide_run = GuideRun::new(self, input);
        let unread = self.unread.iter();
        unread.for_each(|place| guide_run.keep_note((*place, EvalError::Unreadable)));
        let used = guide_run.load_variables(next_pause).await;
        let mut effects = Effects::default();
        let mut record = trace::Record::default();
        let started = guide_run
            .check_pre_conditions(&mut record, next_pause)
            .await;
        if started {
            let rules = guide_run.run_rules(&mut effects, &mut record, next_pause);
            rules.await?;
        }
        guide_run.check_budget()?;
        guide_run.pause_if_due(next_pause).await;
        guide_run.finish(started, effects, record, &used)
    }
}

impl GuideRun<'_> {
    /// Collects the result of the run.
    fn finish(
        self,
        started: bool,
        effects: Effects,
        record: trace::Record,
        used: &[Vec<usize>],
    ) -> Result<Run, Exceeded> {
        self.place.set(Place::Outputs);
        let outputs = match started {
            true => self.collect_outputs(effects.created, effects.objects, used),
            false => Vec::new(),
        };
        let notes = trace::notes(&self);
        self.check_budget()?;
        self.place.set(Place::Trace);
        let trace = self.input.options.trace;
        let trace = trace.then(|| trace::build(&self, started, record, used, &notes));
        self.check_budget()?;
        let fired = self.fired_order.iter();
        let fired = fired
            .filter_map(|r| self.guide.rules.get(*r))
            .map(|r| &r.id);
        Ok(Run {
            outputs,
            fired: fired.cloned().collect(),
            cards: effects.cards,
            notes,
            trace,
            started,
            spent: self.budget.spent(),
            values: self
                .slots
                .into_iter()
                .map(|s| (s.last, s.assigned))
                .collect(),
        })
    }

    /// Returns the limit that the run has exceeded, if any, with the place of the last statement.
    pub(crate) fn check_budget(&self) -> Result<(), Exceeded> {
        let Some((limit, most)) = self.budget.excess() else {
            return Ok(());
        };
        // Statements of guides contain no data of patients, so they may appear in an error.
        let (place, statement) = trace::place_and_statement(self, self.place.get());
        let statement = statement.chars().take(200).collect();
        Err(Exceeded {
            guide_id: self.guide.guide.id.clone(),
            place,
            statement,
            limit,
            most,
        })
    }

    /// Fills the variables from the instances that pass the predicates. Returns the indexes of
    /// these instances by binding.
    async fn load_variables(&mut self, next_pause: NextPause<'_>) -> Vec<Vec<usize>> {
        let mut used = Vec::new();
        let keep = self.input.options.trace || self.input.options.include_input;
        for (i, plan) in self.guide.bindings.iter().enumerate() {
            let instances = self.input.instances_of(i);
            self.pause_if_due(next_pause).await;
            self.place.set(Place::Data(i));
            // The work is counted before the loop, which visits each cell of each instance.
            let cells = instances.len().saturating_mul(1 + plan.columns.len());
            if !self.count_cells(cells, next_pause).await {
                break;
            }
            // Without predicates all instances are chosen. `None` saves the list of their indexes.
            let has_predicates = !plan.predicates.is_empty();
            let selected = match has_predicates {
                false => None,
                true => Some(self.select_instances(i, Some(next_pause)).await),
            };
            self.reserve(plan, selected.as_ref().map_or(instances.len(), Vec::len));
            let known = &mut HashSet::new();
            match &selected {
                None => instances.iter().for_each(|i| self.load(plan, i, known)),
                Some(selected) => {
                    let chosen = selected.iter().filter_map(|n| instances.get(*n));
                    chosen.for_each(|i| self.load(plan, i, known));
                }
            }
            if keep {
                used.push(selected.unwrap_or_else(|| (0..instances.len()).collect()));
            }
        }
        used
    }

    /// Counts the cells of a binding. They are no statement, so they have no limit of their own.
    async fn count_cells(&self, mut cells: usize, next_pause: NextPause<'_>) -> bool {
        while cells > CELLS {
            cells -= CELLS;
            if !self.budget.spend_steps(CELLS) {
                return false;
            }
            self.pause_if_due(next_pause).await;
        }
        self.budget.spend_steps(cells)
    }

    /// Allocates the space for the values of some instances at once.
    fn reserve(&mut self, plan: &BindingPlan, instances: usize) {
        for slot in plan.columns.iter().filter_map(|column| column.slot) {
            if let Some(slot) = self.slots.get_mut(slot) {
                slot.earlier.reserve(instances);
            }
        }
    }

    /// Adds the values of an instance to the variables of its binding. `known` has the elements of
    /// the instances before it, by column.
    fn load(&mut self, plan: &BindingPlan, instance: &Instance, known: &mut HashSet<(usize, u32)>) {
        self.load_null_flavors(plan, instance);
        let cells = plan.columns.iter().zip(&instance.values).enumerate();
        for (index, (column, value)) in cells {
            let Some(slot) = column.slot else { continue };
            let Some(slot) = self.slots.get_mut(slot) else {
                return self.budget.broken("a column has no variable");
            };
            match instance.elements.get(index) {
                // Nulls are not pushed, so `count` and `last` see known values only.
                _ if value.is_null() => slot.skip(),
                Some(element) if !known.insert((index, *element)) => {
                    slot.push_repeated(value.clone());
                }
                _ => slot.push(value.clone()),
            }
            let original = instance.originals.iter().find(|(of, _)| *of == index);
            if let Some((_, original)) = original {
                slot.keep_original(original.clone());
            }
        }
    }

    /// Sets the null flavors of the variables of a binding to those of the latest elements.
    fn load_null_flavors(&mut self, plan: &BindingPlan, instance: &Instance) {
        for read in &plan.null_flavors {
            let cell = |index: usize| instance.values.get(index).filter(|v| !v.is_null());
            let flavor = cell(read.column);
            // An instance without the element says nothing about it.
            if (flavor.is_some() || cell(read.value).is_some())
                && let Some(slot) = self.slots.get_mut(read.slot)
            {
                slot.null_flavor = flavor.cloned().map(Box::new);
            }
        }
    }

    async fn check_pre_conditions(
        &mut self,
        record: &mut trace::Record,
        next_pause: NextPause<'_>,
    ) -> bool {
        let guide = self.guide;
        let mut all = true;
        for (i, test) in guide.pre_conditions.iter().enumerate() {
            if self.budget.is_exceeded() {
                break;
            }
            self.pause_if_due(next_pause).await;
            self.place.set(Place::PreCondition(i));
            let result = self.test(test.op, None);
            // No early return: the trace lists the results of all preconditions.
            all &= result == Some(true);
            record.condition(self, None, test, result);
            self.unpin();
        }
        all
    }

    async fn run_default_actions(
        &mut self,
        effects: &mut Effects,
        record: &mut trace::Record,
        next_pause: NextPause<'_>,
    ) {
        let guide = self.guide;
        for (i, action) in guide.default_actions.iter().enumerate() {
            self.pause_if_due(next_pause).await;
            self.place.set(Place::DefaultAction(i));
            self.execute(action, effects);
            if self.budget.is_exceeded() {
                return;
            }
        }
        record.actions(self, None);
        self.end_activation();
    }

    /// Ends a group of actions: the next assignment of a variable adds a value.
    fn end_activation(&mut self) {
        self.unpin();
        self.activation = self.activation.saturating_add(1);
    }

    /// Runs default actions and rules.
    async fn run_rules(
        &mut self,
        effects: &mut Effects,
        record: &mut trace::Record,
        next_pause: NextPause<'_>,
    ) -> Result<(), Exceeded> {
        self.run_default_actions(effects, record, next_pause).await;
        for rule in 0..self.guide.rules.len() {
            self.run_rule(rule, effects, record, next_pause).await;
            // Checked before the next step, because an excess must name the place where it
            // happened.
            self.check_budget()?;
        }
        Ok(())
    }

    async fn run_rule(
        &mut self,
        index: usize,
        effects: &mut Effects,
        record: &mut trace::Record,
        next_pause: NextPause<'_>,
    ) {
        let guide = self.guide;
        let Some(rule) = guide.rules.get(index) else {
            self.budget.broken("a rule has no plan");
            return;
        };
        let checked = self.check_conditions(index, rule, record, next_pause);
        let all = checked.await;
        if self.budget.is_exceeded() {
            return;
        }
        if all {
            for (i, action) in rule.then.iter().enumerate() {
                self.pause_if_due(next_pause).await;
                self.place.set(Place::Then(index, i));
                self.execute(action, effects);
                if self.budget.is_exceeded() {
                    return;
                }
            }
            // Cards are filled before `fired` is set and after the actions, whose values they show.
            self.pause_if_due(next_pause).await;
            self.show_cards(index, effects);
            if !self.budget.spend_bytes(rule.id.len()) {
                return;
            }
            if let Some(fired) = self.fired.get_mut(index) {
                *fired = true;
            }
            self.fired_order.push(index);
            record.actions(self, Some(index));
            self.end_activation();
        }
        self.unpin();
    }

    /// Evaluates the conditions of a rule. Returns whether all are true.
    async fn check_conditions(
        &mut self,
        index: usize,
        rule: &RulePlan,
        record: &mut trace::Record,
        next_pause: NextPause<'_>,
    ) -> bool {
        let mut all = true;
        for (i, test) in rule.when.iter().enumerate() {
            self.pause_if_due(next_pause).await;
            self.place.set(Place::When(index, i));
            let notes = self.notes.borrow().len();
            let result = self.test(test.op, None);
            // Only the trace needs the results of the conditions behind the first that is not true.
            // Their notes are dropped, because notes do not depend on the trace.
            if !all {
                self.notes.borrow_mut().truncate(notes);
            }
            all &= result == Some(true);
            record.condition(self, Some(index), test, result);
            let is_decided = !all && !self.input.options.trace;
            if is_decided || self.budget.is_exceeded() {
                break;
            }
        }
        all
    }

    fn collect_outputs(
        &self,
        created: Vec<Output>,
        objects: Vec<(String, Arc<serde_json::Value>)>,
        used: &[Vec<usize>],
    ) -> Vec<Output> {
        let (mut outputs, later) = self.binding_outputs(&created);
        outputs.extend(created);
        outputs.extend(later);
        let objects = objects.into_iter();
        outputs.extend(objects.filter_map(|(id, object)| self.output_of_template(id, object)));
        if self.input.options.include_input {
            outputs.extend(self.collect_used_inputs(used));
        }
        outputs
    }

    /// Returns the instances of bindings, those that follow the created instances apart.
    fn binding_outputs(&self, created: &[Output]) -> (Vec<Output>, Vec<Output>) {
        let (mut earlier, mut later) = (Vec::new(), Vec::new());
        let of_created = |code: &str| {
            let mut values = created.iter().flat_map(|output| &output.values);
            values.any(|value| &*value.code == code)
        };
        for plan in &self.guide.bindings {
            let values = plan.outputs.iter();
            let values: Vec<OutputValue> = values
                .filter_map(|(column, slot)| self.output_value(plan, *column, *slot))
                .collect();
            if values.is_empty() {
                continue;
            }
            let follows = |value: &OutputValue| {
                self.is_set_after_create(&value.code) && of_created(&value.code)
            };
            let outputs = match values.iter().any(follows) {
                true => &mut later,
                false => &mut earlier,
            };
            outputs.push(Output::from_binding(plan, OutputOrigin::Binding, values));
        }
        (earlier, later)
    }

    /// Returns whether the last value of a variable is not that of a created instance.
    fn is_set_after_create(&self, code: &str) -> bool {
        let slot = self.guide.slot_of(code).and_then(|s| self.slots.get(s));
        slot.is_some_and(|slot| slot.existing_index.is_none() && !slot.only_created)
    }

    /// Returns the value of a variable that the guide has set.
    fn output_value(&self, plan: &BindingPlan, column: usize, slot: usize) -> Option<OutputValue> {
        let slot = self.slots.get(slot)?;
        let (code, path) = plan.columns.get(column)?.named.clone()?;
        // A value that `create` set belongs to the created instance.
        let value = slot.existing_value();
        let (path, value) = match &slot.null_flavor {
            Some(flavor) if value.is_null() => (format!("{path}/null_flavour").into(), &**flavor),
            _ if slot.only_created => return None,
            _ => (path, value),
        };
        if value.is_null() || !value.is_finite() {
            return None;
        }
        let original = slot.original(slot.existing_index.unwrap_or(slot.earlier.len()));
        let original_size = original.as_deref().map_or(0, json_size);
        let bytes = OUTPUT_FRAME + path.len() + size(value) + original_size;
        self.budget.spend_bytes(bytes).then(|| OutputValue {
            code,
            path,
            value: value.clone(),
            original,
        })
    }

    /// Returns the output of a filled template, which has the object at the path `/`.
    fn output_of_template(&self, id: String, object: Arc<serde_json::Value>) -> Option<Output> {
        let mut templates = self.guide.guide.templates.iter();
        let template = templates.find(|t| t.id == id)?;
        let id: Arc<str> = Arc::from(id);
        let value = OutputValue {
            code: id.clone(),
            path: Arc::from("/"),
            value: Value::Object(object),
            original: None,
        };
        Some(Output {
            id,
            model_id: Arc::from(template.model_id.as_str()),
            template_id: template.template_id.as_deref().map(Arc::from),
            origin: OutputOrigin::Template,
            values: vec![value],
        })
    }

    fn collect_used_inputs(&self, used: &[Vec<usize>]) -> Vec<Output> {
        let bindings = self.guide.guide.bindings.iter().zip(&self.guide.bindings);
        let inputs = bindings.zip(used).enumerate();
        let inputs = inputs.filter(|(_, ((b, _), _))| b.direction == Direction::Input);
        let each = inputs.flat_map(|(i, ((_, plan), used))| {
            let instances = self.input.instances_of(i);
            let chosen = used.iter().filter_map(|n| instances.get(*n));
            chosen
                .take_while(|instance| {
                    let bytes = instance.values.iter().map(|v| OUTPUT_FRAME + size(v));
                    self.budget.spend_bytes(bytes.sum())
                })
                .map(move |instance| input_as_output(plan, instance))
        });
        each.collect()
    }
}

/// Returns the values of an instance as an output.
fn input_as_output(plan: &BindingPlan, instance: &Instance) -> Output {
    let cells = plan.columns.iter().zip(&instance.values);
    let known = cells.filter(|(_, v)| !v.is_null());
    let named = known.filter_map(|(column, v)| Some((column.named.clone()?, v)));
    let values = named.map(|((code, path), v)| OutputValue {
        code,
        path,
        value: v.clone(),
        original: None,
    });
    Output::from_binding(plan, OutputOrigin::Input, values.collect())
}
