//! Evaluation of expressions during a run: three-valued logic over variables that hold lists of
//! values.

use super::bind::Instance;
use super::budget::{Budget, size};
use super::calc::{self, EvalError};
use super::compile::{Attribute, CompiledGuide, Op, OpId};
use super::conversion::Conversions;
use super::expr::ast::Operator;
use super::run::RunInput;
use super::value::{Value, real};
use super::variable_state::VariableState;
use aqlite_rm::terminology::{is_same_terminology, name_and_version};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

const MAX_NOTES: usize = 100;

/// The steps of a lookup whether a code is subsumed by another.
const ANCESTOR_STEPS: usize = 10;

/// The statement that is being executed, for notes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// A predicate: the index of the binding, and that of the predicate in the guide.
    Predicate(usize, usize),
    PreCondition(usize),
    DefaultAction(usize),
    When(usize, usize),
    Then(usize, usize),
    Cards(usize),
    /// The data of a binding, before its predicates.
    Data(usize),
    Outputs,
    Trace,
}

/// A statement that has no value, and the reason.
pub(crate) type RunNote = (Place, EvalError);

/// Adds a note, unless it was added before: a predicate fails on many instances alike. Notes beyond
/// `MAX_NOTES` are dropped.
pub(crate) fn add_note(notes: &mut Vec<RunNote>, note: RunNote) {
    if notes.len() < MAX_NOTES && !notes.contains(&note) {
        notes.push(note);
    }
}

/// A run in progress.
pub(crate) struct GuideRun<'a> {
    pub guide: &'a CompiledGuide,
    pub input: &'a RunInput<'a>,
    pub slots: Vec<VariableState>,
    pub fired: Vec<bool>,
    pub fired_order: Vec<usize>,
    pub language: Option<usize>,
    /// The number of the current group of actions: 1 for the default actions, then one more for each
    /// rule that fires.
    pub activation: u32,
    pub place: Cell<Place>,
    pub notes: RefCell<Vec<RunNote>>,
    /// The consumption of the run. Once it exceeds a limit, every operation returns null at once,
    /// and the run ends without a result.
    pub budget: Budget,
    conversions: Conversions,
    pinned: Cell<bool>,
}

impl<'a> GuideRun<'a> {
    pub fn new(guide: &'a CompiledGuide, input: &'a RunInput<'a>) -> GuideRun<'a> {
        let terms = &guide.guide.terms;
        let find = |language: &str| {
            let mut languages = terms.iter().map(|t| &t.language);
            languages.position(|l| l.eq_ignore_ascii_case(language))
        };
        let language = find(input.language).or_else(|| find(&guide.guide.original_language));
        let budget = Budget::new(input.options.limits);
        // Allocating the slots is work: a guide may have 10,000 of them and run for many EHRs.
        budget.spend_steps(guide.slots.len());
        GuideRun {
            guide,
            input,
            slots: vec![VariableState::empty(); guide.slots.len()],
            fired: vec![false; guide.rules.len()],
            fired_order: Vec::new(),
            language,
            activation: 1,
            place: Cell::new(Place::PreCondition(0)),
            notes: RefCell::default(),
            budget,
            conversions: Conversions::default(),
            pinned: Cell::new(false),
        }
    }

    /// Evaluates a condition: true, false or unknown (`None`).
    pub fn test(&self, id: Option<OpId>, instance: Option<&Instance>) -> Option<bool> {
        id.and_then(|id| truth(&self.eval(id, instance)))
    }

    /// Releases the indexes that `any` has found.
    pub fn unpin(&self) {
        if self.pinned.replace(false) {
            self.budget.spend_steps(self.slots.len());
            self.slots.iter().for_each(VariableState::unpin);
        }
    }

    fn value_or_note(&self, result: Result<Value, EvalError>) -> Value {
        result.unwrap_or_else(|error| {
            self.add_note(error);
            Value::Null
        })
    }

    /// Adds a note with the reason why the current statement has no value.
    pub fn add_note(&self, error: EvalError) {
        self.keep_note((self.place.get(), error));
    }

    /// Adds a note of another statement.
    pub fn keep_note(&self, note: RunNote) {
        add_note(&mut self.notes.borrow_mut(), note);
    }

    /// Evaluates an operation. Paths of predicates read `instance`.
    pub fn eval<'s>(&'s self, id: OpId, instance: Option<&'s Instance>) -> Cow<'s, Value> {
        let op = usize::try_from(id).ok().and_then(|i| self.guide.ops.get(i));
        let Some(op) = op else {
            return Cow::Owned(self.broken("an expression has no operation"));
        };
        // Checked once for each operation, so an expression stops soon after the limit.
        if !self.budget.spend_steps(1) {
            return Cow::Owned(Value::Null);
        }
        match *op {
            Op::Constant(index) => self.constant(index),
            Op::Read(slot, attribute) => self.read(slot, attribute),
            Op::Column(column, attribute) => match instance.and_then(|i| i.values.get(column)) {
                Some(value) => self.attribute_of(value, attribute),
                None => Cow::Owned(Value::Null),
            },
            op => Cow::Owned(self.computed(op, instance)),
        }
    }

    /// Evaluates an operation whose value is not stored.
    fn computed(&self, op: Op, instance: Option<&Instance>) -> Value {
        match op {
            Op::Now(attribute) => {
                let now = Value::moment(self.input.clock.now);
                self.value_or_note(calc::attribute(&now, attribute))
            }
            Op::Today(attribute) => {
                let today = self.input.clock.today().map_or(Value::Null, Value::moment);
                self.value_or_note(calc::attribute(&today, attribute))
            }
            Op::Term(term) => self.term(term),
            Op::Not(a) => {
                let truth = truth(&self.eval(a, instance));
                truth.map_or(Value::Null, |t| Value::Boolean(!t))
            }
            Op::Negate(a) => self.negated(&self.eval(a, instance)),
            Op::IsNull { operand, is_equal } => {
                Value::Boolean(self.eval(operand, instance).is_null() == is_equal)
            }
            Op::Fired(rule) => match self.fired.get(rule) {
                Some(fired) => Value::Boolean(*fired),
                None => self.broken("`fired` names a rule that there is not"),
            },
            Op::Call(function, a) => {
                let a = self.eval(a, instance);
                if !self.budget.spend_reading(&a) {
                    return Value::Null;
                }
                self.value_or_note(calc::function(function, &a))
            }
            Op::Extreme {
                is_max,
                left,
                right,
            } => {
                let (a, b) = (self.eval(left, instance), self.eval(right, instance));
                let b = self.comparable(&a, b);
                if !(self.budget.spend_reading(&a) && self.budget.spend_reading(&b)) {
                    return Value::Null;
                }
                self.value_or_note(calc::extreme(is_max, &a, &b, self.input.clock))
            }
            Op::Binary(operator, a, b) => self.binary(operator, a, b, instance),
            Op::Any(first, count, condition) => {
                self.quantified(first, count, condition, instance, true)
            }
            Op::ForAll(first, count, condition) => {
                self.quantified(first, count, condition, instance, false)
            }
            Op::Constant(_) | Op::Read(..) | Op::Column(..) | Op::ListVariable { .. } => {
                self.broken("an operation on a stored value is computed")
            }
        }
    }

    fn constant(&self, index: u32) -> Cow<'_, Value> {
        let value = usize::try_from(index)
            .ok()
            .and_then(|i| self.guide.constants.get(i));
        value.map_or_else(
            || Cow::Owned(self.broken("an expression has no constant")),
            Cow::Borrowed,
        )
    }

    /// Ends the run because the compiled guide is inconsistent.
    fn broken(&self, what: &'static str) -> Value {
        self.budget.broken(what);
        Value::Null
    }

    pub(crate) fn read(&self, slot: usize, attribute: Attribute) -> Cow<'_, Value> {
        let Some(slot) = self.slots.get(slot) else {
            return Cow::Owned(self.broken("an expression has no variable"));
        };
        match attribute {
            Attribute::Whole => Cow::Borrowed(slot.current()),
            Attribute::Count => Cow::Owned(Value::Number(real(
                i64::try_from(slot.elements_count()).unwrap_or(i64::MAX),
            ))),
            Attribute::Sum => Cow::Owned(self.sum(slot)),
            Attribute::NullFlavor => slot
                .null_flavor
                .as_deref()
                .map_or(Cow::Owned(Value::Null), Cow::Borrowed),
            _ => self.attribute_of(slot.current(), attribute),
        }
    }

    /// Returns the sum of all values of a variable, 0 if there are none. Null if the units differ.
    ///
    /// The sum is kept until the variable changes: a statement may name it a thousand times.
    fn sum(&self, slot: &VariableState) -> Value {
        if slot.summed.get() > 0 {
            return Value::Number(slot.total.get());
        }
        if !self.budget.spend_steps(slot.count()) {
            return Value::Null;
        }
        let last = unit_of(&slot.last);
        // Numbers of different units have no sum, and `sum` does not convert.
        if let Some(other) = slot.elements().map(unit_of).find(|unit| *unit != last) {
            let own = |unit: Option<&Arc<str>>| unit.cloned().unwrap_or_default();
            self.add_note(EvalError::Units(own(other), own(last)));
            return Value::Null;
        }
        let total: Option<f64> = slot.elements().map(Value::number).sum();
        match total {
            Some(n) if n.is_finite() => {
                slot.total.set(n);
                slot.summed.set(slot.count());
                Value::Number(n)
            }
            _ => {
                self.add_note(EvalError::Types);
                Value::Null
            }
        }
    }

    fn attribute_of<'s>(&'s self, value: &'s Value, attribute: Attribute) -> Cow<'s, Value> {
        match attribute {
            Attribute::Whole => Cow::Borrowed(value),
            // The text is copied.
            Attribute::String if !self.budget.spend_reading(value) => Cow::Owned(Value::Null),
            _ => Cow::Owned(self.value_or_note(calc::attribute(value, attribute))),
        }
    }

    /// Returns the text of a guide term in the language of the run, or else in any language.
    pub fn term(&self, term: usize) -> Value {
        let Some(texts) = self.guide.terms.get(term) else {
            return self.broken("an expression has no term");
        };
        let own = self.language.and_then(|l| texts.get(l)?.as_ref());
        own.or_else(|| texts.iter().flatten().next())
            .map_or(Value::Null, |t| Value::Text(t.clone()))
    }

    fn negated(&self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            Value::Quantity(q) => Value::quantity(-q.magnitude, &q.unit),
            other => self.value_or_note(
                other
                    .number()
                    .map(|n| Value::Number(-n))
                    .ok_or(EvalError::Types),
            ),
        }
    }

    fn binary(&self, operator: Operator, a: OpId, b: OpId, instance: Option<&Instance>) -> Value {
        let left = self.eval(a, instance);
        match operator {
            Operator::And | Operator::Or => {
                self.logical(operator == Operator::Or, truth(&left), b, instance)
            }
            Operator::IsA | Operator::IsNotA => {
                let is_a = self.is_a(&left, &self.eval(b, instance));
                is_a.map_or(Value::Null, |t| {
                    Value::Boolean(t == (operator == Operator::IsA))
                })
            }
            Operator::Plus
            | Operator::Minus
            | Operator::Times
            | Operator::Divided
            | Operator::Modulo
            | Operator::Power => {
                let right = self.eval(b, instance);
                // The sum may be a text: its length is checked before the text is allocated.
                let fits = operator != Operator::Plus
                    || self
                        .budget
                        .spend_text(size(&left).saturating_add(size(&right)));
                if !fits {
                    return Value::Null;
                }
                self.value_or_note(calc::arithmetic(operator, &left, &right, self.input.clock))
            }
            _ => {
                let right = self.comparable(&left, self.eval(b, instance));
                if !(self.budget.spend_reading(&left) && self.budget.spend_reading(&right)) {
                    return Value::Null;
                }
                // A predicate keeps no instance without the value, unlike a rule with `x != y`.
                if instance.is_some() && (left.is_null() || right.is_null()) {
                    return Value::Null;
                }
                let result = calc::compare(operator, &left, &right, self.input.clock);
                self.value_or_note(result.map(|t| t.map_or(Value::Null, Value::Boolean)))
            }
        }
    }

    /// Evaluates AND or OR by Kleene logic: `true or unknown` is true, `false and unknown` is false.
    /// The right side is not evaluated if the left side is `dominant`: true for OR, false for AND.
    fn logical(
        &self,
        dominant: bool,
        left: Option<bool>,
        right: OpId,
        instance: Option<&Instance>,
    ) -> Value {
        if left == Some(dominant) {
            return Value::Boolean(dominant);
        }
        match (left, truth(&self.eval(right, instance))) {
            (_, Some(right)) if right == dominant => Value::Boolean(dominant),
            (Some(_), Some(right)) => Value::Boolean(right),
            _ => Value::Null,
        }
    }

    /// Returns the right side of a comparison, converted to the unit of the left side if the run
    /// converts units.
    fn comparable<'v>(&self, left: &Value, right: Cow<'v, Value>) -> Cow<'v, Value> {
        if !self.input.options.convert_units {
            return right;
        }
        let converted = self.conversions.in_unit_of(left, &right, &self.budget);
        converted.map_or(right, Cow::Owned)
    }

    /// Returns whether a code is subsumed by the codes of a guide term. Unknown without a code.
    fn is_a(&self, left: &Value, right: &Value) -> Option<bool> {
        // A code without bindings is not unknown but outside the term; only null is unknown.
        if left.is_null() {
            return None;
        }
        let (Some(code), Value::Coded(term)) = (left.code(), right) else {
            return Some(false);
        };
        let bindings = self
            .guide
            .guide
            .term_bindings
            .iter()
            .filter(|b| is_same_terminology(&b.terminology, &code.terminology));
        if !bindings
            .clone()
            .all(|b| self.budget.spend_steps(1 + b.codes.len() + b.sets.len()))
        {
            return None;
        }
        // Hosts know terminologies by their names.
        let (name, _) = name_and_version(&code.terminology);
        let mut bound = bindings.flat_map(|b| b.bound_to(&term.code));
        let holds = |ancestor: &String| {
            // A lookup for each of thousands of bound codes is more than one step.
            self.budget
                .spend_steps(ANCESTOR_STEPS + code.code.len() / 16)
                && self.input.subsumes(name, ancestor, &code.code)
        };
        Some(bound.any(holds))
    }

    /// Evaluates `any` and `for_all`: the condition at each index of the variables. Those of one
    /// binding are read by instance, null where the instance has no value. A shorter list continues
    /// with its last value.
    fn quantified(
        &self,
        first: OpId,
        count: u32,
        condition: OpId,
        instance: Option<&Instance>,
        any: bool,
    ) -> Value {
        // The compiler emits the variables as consecutive operations, see `Op::Any`.
        let slots = || (first..first.saturating_add(count)).filter_map(|id| self.listed(id));
        let lengths = slots().map(|(slot, by_instance)| slot.visits(by_instance));
        let len = lengths.max().unwrap_or_default();
        let cost = usize::try_from(count).unwrap_or(usize::MAX);
        // Over no values the result is unknown, not the `true` of mathematics: nothing was
        // recorded.
        let mut unknown = len == 0;
        self.pinned.set(true);
        for index in 0..len {
            if !self.budget.spend_steps(cost) {
                break;
            }
            // Pinning makes reads of these variables return the value at `index` while the
            // condition runs.
            slots().for_each(|(slot, by_instance)| slot.pin(index, by_instance));
            // An instance of other variables alone says nothing about these.
            if slots().all(|(slot, _)| slot.current().is_null()) {
                continue;
            }
            match truth(&self.eval(condition, instance)) {
                // `any` keeps the indexes pinned, so that the actions of the rule read the values
                // it found.
                Some(true) if any => return Value::Boolean(true),
                Some(false) if !any => {
                    slots().for_each(|(slot, _)| slot.unpin());
                    return Value::Boolean(false);
                }
                None => unknown = true,
                Some(_) => {}
            }
        }
        slots().for_each(|(slot, _)| slot.unpin());
        if unknown || self.budget.is_exceeded() {
            Value::Null
        } else {
            Value::Boolean(!any)
        }
    }

    /// Returns a variable of `any` or `for_all`, and whether it is read by instance.
    fn listed(&self, id: OpId) -> Option<(&VariableState, bool)> {
        match self.guide.ops.get(usize::try_from(id).ok()?) {
            Some(Op::ListVariable { slot, by_instance }) => {
                Some((self.slots.get(*slot)?, *by_instance))
            }
            _ => None,
        }
    }
}

/// Returns the unit of a quantity.
fn unit_of(value: &Value) -> Option<&Arc<str>> {
    match value {
        Value::Quantity(quantity) => Some(&quantity.unit),
        _ => None,
    }
}

/// Returns the truth of a value; `None` is unknown.
pub(crate) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Boolean(b) => Some(*b),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Limit;
    use crate::{Options, time::Moment};

    #[test]
    fn a_guide_that_does_not_fit_itself_has_no_answer() {
        let text = r#"{"id":"x.v1","definition":{"data_bindings":{"gt0001":{"model_id":"openEHR-EHR-EVALUATION.a.v1","type":"OUTPUT",
            "elements":{"gt0002":{"path":"/data[at0001]/items[at0002]"}}}},
            "rules":{"gt0003":{"priority":1,"when":["1==1"],"then":["$gt0002.magnitude=5"]}}}}"#;
        let whole = crate::parse(text).unwrap().compile();
        let run = |guide: &CompiledGuide| {
            let input = RunInput::without_data();
            guide.run(&input).map(|run| run.fired.len())
        };
        assert_eq!(run(&whole), Ok(1));
        let damages: [fn(&mut CompiledGuide); 4] = [
            |guide| guide.ops.clear(),
            |guide| guide.constants.clear(),
            |guide| guide.slots.clear(),
            |guide| guide.guide.rules.clear(),
        ];
        for damage in damages {
            let mut damaged = whole.clone();
            damage(&mut damaged);
            let ended = run(&damaged).unwrap_err();
            assert!(matches!(ended.limit, Limit::Broken(_)), "{ended}");
            assert_eq!(ended.code(), "GDL0699");
        }
    }

    /// Runs a guide with `count` values of one variable and these statements.
    fn run_on_values(
        count: u32,
        when: &str,
        then: &[String],
    ) -> Result<crate::Run, crate::Exceeded> {
        let guide = serde_json::json!({"id": "x.v1", "definition": {
            "data_bindings": {
                "gt0001": {"model_id": "openEHR-EHR-EVALUATION.a.v1", "type": "INPUT",
                    "elements": {"gt0002": {"path": "/data[at0001]/items[at0002]"}}},
                "gt0003": {"model_id": "openEHR-EHR-EVALUATION.b.v1", "type": "OUTPUT",
                    "elements": {"gt0004": {"path": "/data[at0001]/items[at0002]"}}}},
            "rules": {"gt0005": {"priority": 1, "when": [when], "then": then}}}});
        let guide = crate::parse(&guide.to_string()).unwrap().compile();
        assert!(guide.problems.is_empty(), "{:?}", guide.problems);
        let instance = |n| Instance {
            values: vec![Value::quantity(f64::from(n), "kg")],
            ..Instance::default()
        };
        let run = guide.run(&RunInput {
            instances: &[(0..count).map(instance).collect(), Vec::new()],
            clock: Moment::from_millis(0, 0).into(),
            language: "en",
            options: Options::default(),
            terminology: None,
        })?;
        Ok(run)
    }

    #[test]
    fn the_sum_of_a_variable_is_computed_once_until_it_changes() {
        let sums = vec!["$gt0002.sum"; 200].join("+");
        let then = [format!("$gt0004.magnitude={sums}")];
        let run = run_on_values(2_000, "1==1", &then).unwrap();
        // One step for each value, and a few for each of 200 operands instead of 2,000.
        assert!(run.spent.steps < 10_000, "{}", run.spent.steps);
        assert_eq!(
            run.outputs[0].values[0].value,
            Value::Count(1_999_000 * 200)
        );
        let then = [
            "$gt0004.magnitude=1",
            "$gt0004=$gt0004.sum+1",
            "$gt0004=$gt0004.sum+1",
        ];
        let run = run_on_values(1, "1==1", &then.map(String::from)).unwrap();
        let last = run.outputs[0].values[0].value.number();
        assert_eq!(last, Some(4.0), "1, 2 and the sum of both");
    }

    #[test]
    fn the_work_on_long_texts_is_counted() {
        let steps = |text: &str, condition: &str| {
            let then = [format!("$gt0004='{text}'")];
            let steps_with = |when: &str| {
                let guide = serde_json::json!({"id": "x.v1", "definition": {"rules": {
                    "gt0005": {"priority": 2, "then": then},
                    "gt0006": {"priority": 1, "when": [when]}}}});
                let guide = crate::parse(&guide.to_string()).unwrap().compile();
                let run = guide.run(&RunInput {
                    instances: &[],
                    clock: Moment::from_millis(0, 0).into(),
                    language: "en",
                    options: Options::default(),
                    terminology: None,
                });
                run.unwrap().spent.steps
            };
            steps_with(condition) - steps_with("true")
        };
        let long = "1".repeat(16_000);
        for condition in [
            "$gt0004>5",
            "$gt0004=='x'",
            "$gt0004.string!=null",
            "floor($gt0004)>5",
            "max($gt0004,5)>5",
        ] {
            let (short, long) = (steps("1", condition), steps(&long, condition));
            assert!(long >= short + 1_000, "{condition}: {short}, {long}");
        }
    }

    #[test]
    fn a_guide_reads_all_values_of_a_long_record() {
        // An instance has two cells, so these are more than the work between two pauses.
        let then = [String::from("$gt0004.magnitude=$gt0002.sum")];
        let run = run_on_values(100_001, "1==1", &then).unwrap();
        assert_eq!(
            run.outputs[0].values[0].value,
            Value::Count(100_000 * 100_001 / 2)
        );
    }

    #[test]
    fn a_statement_that_cannot_pause_has_a_limit_of_its_own() {
        // `for_all` over every pair of values.
        let each = "for_all($gt0002.magnitude>=0)";
        let all = vec![each; 200].join("&&");
        let ended = run_on_values(10_000, &all, &[]).unwrap_err();
        assert_eq!((ended.limit, ended.code()), (Limit::Statement, "GDL0603"));
        assert!(ended.to_string().contains("one statement"), "{ended}");
        assert!(run_on_values(2_000, &vec![each; 100].join("&&"), &[]).is_ok());
    }
}
