//! The actions of rules: they set variables and attributes, create instances and fill templates.

use super::budget::{FRAME, OUTPUT_FRAME, json_size, size};
use super::calc::EvalError;
use super::compile::{ActionPlan, Assign, Attribute, CompiledGuide, Op};
use super::eval::GuideRun;
use super::run::{Effects, Output, OutputOrigin, OutputValue};
use super::value::{Coded, Ordinal, Proportion, Quantity, Value, integer, real};
use super::variable_state::{PartialProportion, Pending, VariableState};
use super::{calc, fill};
use hashbrown::HashSet;
use std::sync::Arc;

/// The instance of a binding that receives a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// The instance that exists from the start of the run.
    Existing,
    /// An instance that `create` begins: the variable has no attributes yet.
    New,
    /// An instance that an earlier assignment of the same `create` has begun.
    Created,
}

/// The state of a variable before an assignment.
#[derive(Clone, Copy)]
struct Base<'s> {
    value: &'s Value,
    /// The parts of its next value.
    pending: Option<&'s Pending>,
}

/// The state of a variable after an assignment.
enum Changed {
    Value(Value),
    /// The parts of a value that is not complete.
    Parts(Pending),
}

impl GuideRun<'_> {
    /// Carries out one action. Instances and templates that it makes are added to `effects`.
    pub fn execute(&mut self, action: &ActionPlan, effects: &mut Effects) {
        match action {
            ActionPlan::Assign(assign) => {
                self.assign(assign, Target::Existing);
            }
            ActionPlan::Create { binding, values } => self.create(*binding, values, effects),
            ActionPlan::UseTemplate { template, values } => {
                let values: Vec<(String, Vec<Value>)> = values
                    .iter()
                    .map(|(name, id)| (name.clone(), vec![self.eval(*id, None).into_owned()]))
                    .collect();
                self.use_template(*template, &values, effects);
            }
            ActionPlan::UseTemplateEach {
                template,
                conditions,
                values,
            } => self.use_template_each(*template, conditions, values, effects),
            ActionPlan::Nothing => {}
        }
    }

    /// Fills a template once for each index of the listed variables. Shorter lists supply null.
    fn use_template_each(
        &mut self,
        template: usize,
        conditions: &[usize],
        values: &[(String, Vec<usize>)],
        effects: &mut Effects,
    ) {
        let lengths = values.iter().map(|(_, slots)| slots.len());
        // The longest list decides: a shorter one has no value at the later indexes.
        for index in 0..lengths.max().unwrap_or_default() {
            if !self.budget.spend_steps(1 + values.len()) {
                return;
            }
            let slot_at = |slots: &[usize]| self.slots.get(*slots.get(index)?);
            let condition = slot_at(conditions).map(VariableState::current);
            if !conditions.is_empty() && condition != Some(&Value::Boolean(true)) {
                continue;
            }
            let value_at =
                |slots| slot_at(slots).map_or(Value::Null, |slot| slot.current().clone());
            let local: Vec<(String, Vec<Value>)> = values
                .iter()
                .map(|(name, slots)| (name.clone(), vec![value_at(slots)]))
                .collect();
            self.use_template(template, &local, effects);
        }
    }

    fn use_template(
        &mut self,
        template: usize,
        local: &[(String, Vec<Value>)],
        effects: &mut Effects,
    ) {
        let Some(template) = self.guide.guide.templates.get(template) else {
            self.budget.broken("an action has no template");
            return;
        };
        if !self.budget.spend_bytes(FRAME + json_size(&template.object)) {
            return;
        }
        let object = fill::filled(&template.object, &|code, attribute| {
            self.placeholder_values(code, attribute, local, &effects.created)
        });
        if let Some(object) = object {
            effects
                .objects
                .push((template.id.clone(), Arc::new(object)));
        }
    }

    /// Returns the values of a placeholder such as `{$gt0009.magnitude}`: all values with `all`,
    /// otherwise the one that a rule reads. For the code of a binding, `all` returns its instances,
    /// followed by the `created` ones. The values count as written. Once the budget is exceeded, the
    /// list is empty.
    pub fn placeholder_values(
        &self,
        code: &str,
        attribute: Option<&str>,
        local: &[(String, Vec<Value>)],
        created: &[Output],
    ) -> Vec<Value> {
        // The cost of the search in `local` is counted too, because templates repeat placeholders.
        if !self.budget.spend_steps(1 + local.len()) {
            return Vec::new();
        }
        // A variable wins over a binding of the same code.
        let own = local.iter().any(|(name, _)| name == code) || self.guide.slot_of(code).is_some();
        let of_binding = if own || attribute != Some("all") {
            None
        } else {
            self.instances_as_values(code, created)
        };
        let found = of_binding.unwrap_or_else(|| self.slot_values(code, attribute, local));
        if found.iter().all(|value| self.budget.spend_value(value)) {
            found
        } else {
            Vec::new()
        }
    }

    /// Returns the values of a placeholder of a card. A note reports a variable without value.
    pub fn placeholder_or_note(
        &self,
        code: &str,
        attribute: Option<&str>,
        local: &[(String, Vec<Value>)],
        created: &[Output],
    ) -> Vec<Value> {
        let found = self.placeholder_values(code, attribute, local, created);
        if found.is_empty() && attribute != Some("all") {
            self.add_note(EvalError::NoValue(Arc::from(code)));
        }
        found
    }

    /// Returns the instances that the predicates of a binding keep, followed by the instances that
    /// the guide created. Each is an object of its values by variable. `None` if no binding has
    /// this code.
    fn instances_as_values(&self, code: &str, created: &[Output]) -> Option<Vec<Value>> {
        let mut bindings = self.guide.guide.bindings.iter();
        let binding = bindings.position(|b| b.id == code)?;
        let columns = &self.guide.bindings.get(binding)?.columns;
        // The selection changes the place for its own notes.
        let place = self.place.get();
        let selected = self.output_at_once(self.select_instances(binding, None));
        self.place.set(place);
        let cells = selected.len().saturating_mul(1 + columns.len());
        if !self.budget.spend_steps(cells.saturating_add(created.len())) {
            return Some(Vec::new());
        }
        let instances = self.input.instances_of(binding);
        let mut all = Vec::with_capacity(selected.len());
        for instance in selected.iter().filter_map(|i| instances.get(*i)) {
            let cells = columns.iter().zip(&instance.values);
            let named = cells.filter_map(|(column, value)| Some((column.named.as_ref()?, value)));
            all.push(object_of(named.map(|((code, _), value)| (&**code, value))));
        }
        let own = created.iter().filter(|output| *output.id == *code);
        all.extend(own.map(|output| object_of(output.values.iter().map(|v| (&*v.code, &v.value)))));
        Some(all)
    }

    fn slot_values(
        &self,
        code: &str,
        attribute: Option<&str>,
        local: &[(String, Vec<Value>)],
    ) -> Vec<Value> {
        if matches!(attribute, Some("term")) {
            let term = self.guide.term_index.get(code);
            return term.map(|t| self.term(*t)).into_iter().collect();
        }
        let own = local.iter().find(|(name, _)| name == code);
        let own = own.map(|(_, values)| values);
        let slot = self.guide.slot_of(code).and_then(|s| self.slots.get(s));
        if attribute == Some("all") {
            self.budget
                .spend_steps(slot.map_or(0, VariableState::count));
            return match own {
                Some(own) => own.clone(),
                None => slot
                    .into_iter()
                    .flat_map(|s| s.elements().cloned())
                    .collect(),
            };
        }
        let aggregate = attribute
            .and_then(Attribute::parse)
            .filter(|a| matches!(a, Attribute::Count | Attribute::Sum));
        if let (None, Some(aggregate), Some(slot)) = (own, aggregate, self.guide.slot_of(code)) {
            let value = self.read(slot, aggregate).into_owned();
            return Some(value).filter(|v| !v.is_null()).into_iter().collect();
        }
        let now = || match code {
            "currentDateTime" => Some(Value::moment(self.input.clock.now)),
            "currentDate" => self.input.clock.today().map(Value::moment),
            _ => None,
        };
        let value = own
            .and_then(|v| v.last().cloned())
            .or_else(now)
            .or_else(|| slot.map(|s| s.current().clone()));
        let value = value.filter(|v| !v.is_null());
        match (value, attribute) {
            (None, _) => Vec::new(),
            (Some(value), None) => vec![value],
            (Some(value), Some(name)) => {
                let attribute = Attribute::parse(name).unwrap_or(Attribute::Whole);
                calc::attribute(&value, attribute).into_iter().collect()
            }
        }
    }

    fn create(&mut self, binding: Option<usize>, values: &[Assign], effects: &mut Effects) {
        let Some(begun) = self.begin(values) else {
            return;
        };
        let Some(plan) = binding.and_then(|i| self.guide.bindings.get(i)) else {
            return;
        };
        let value_of = |(column, slot): &(usize, usize)| {
            let (code, path) = plan.columns.get(*column)?.named.clone()?;
            let held = self.slots.get(*slot)?;
            let (value, original) = (held.last.clone(), held.original(held.earlier.len()));
            if !value.is_finite() || !begun.contains(slot) {
                return None;
            }
            let bytes = begun.len() + OUTPUT_FRAME + path.len() + size(&value);
            self.budget.spend_bytes(bytes).then_some(OutputValue {
                code,
                path,
                value,
                original,
            })
        };
        let values: Vec<OutputValue> = plan.outputs.iter().filter_map(value_of).collect();
        if !values.is_empty() {
            let output = Output::from_binding(plan, OutputOrigin::Created, values);
            effects.created.push(output);
        }
    }

    /// Sets the variables of an instance to create. Returns those that have a value, or `None` once
    /// the budget is exceeded.
    fn begin(&mut self, values: &[Assign]) -> Option<Vec<usize>> {
        // The slots start a new activation, so that the first assignment adds a value to each.
        for assign in values {
            if let Some(slot) = self.slots.get_mut(assign.slot) {
                slot.set_in = 0;
                slot.pending = None;
            }
        }
        let mut begun: Vec<usize> = Vec::new();
        for assign in values {
            // `contains` is linear in the variables that were begun, so they count as work.
            if !self.budget.spend_steps(1 + begun.len()) {
                return None;
            }
            let target = match begun.contains(&assign.slot) {
                true => Target::Created,
                false => Target::New,
            };
            if self.assign(assign, target) {
                begun.push(assign.slot);
            }
        }
        Some(begun)
    }

    /// Returns the stored data value that an assignment copies, if the value lacks a part of it.
    fn copied_original(&self, assign: &Assign) -> Option<Arc<serde_json::Value>> {
        let source = copied_slot(self.guide, assign)?;
        self.slots.get(source)?.current_original()
    }

    /// Sets a variable. Returns whether a value was stored.
    fn assign(&mut self, assign: &Assign, target: Target) -> bool {
        let value = self.eval(assign.value, None).into_owned();
        if value.is_null() || !self.budget.spend_value(&value) {
            return false;
        }
        let info = self.guide.slots.get(assign.slot);
        let is_quantity = info.and_then(|s| s.quantity).unwrap_or_default();
        let Some(slot) = self.slots.get(assign.slot) else {
            self.budget.broken("an assignment has no variable");
            return false;
        };
        // A null flavor explains a missing value, so it does not create one.
        if assign.attribute == Attribute::NullFlavor {
            if let Some(slot) = self.slots.get_mut(assign.slot) {
                slot.null_flavor = Some(Box::new(value));
            }
            return false;
        }
        let own = match target {
            Target::New => &Value::Null,
            Target::Existing if slot.only_created => &Value::Null,
            Target::Existing => slot.existing_value(),
            Target::Created => &slot.last,
        };
        let base = Base {
            value: own,
            pending: slot.pending.as_ref(),
        };
        match self.changed(base, assign.attribute, value, is_quantity) {
            Ok(Changed::Value(new)) => self.store_rounded(assign, new, target),
            Ok(Changed::Parts(parts)) => {
                if let Some(slot) = self.slots.get_mut(assign.slot) {
                    slot.pending = Some(parts);
                }
                false
            }
            Err(error) => {
                self.add_note(error);
                false
            }
        }
    }

    /// Stores a value, rounded to its precision if the run rounds. Returns true, as a value was
    /// stored.
    fn store_rounded(&mut self, assign: &Assign, new: Value, target: Target) -> bool {
        if !new.is_finite() {
            self.add_note(EvalError::Infinite);
        }
        let new = match new {
            Value::Quantity(q) if self.input.options.round_on_store => Value::Quantity(q.rounded()),
            other => other,
        };
        self.store(assign, new, target);
        true
    }

    fn store(&mut self, assign: &Assign, new: Value, target: Target) {
        let activation = self.activation;
        let original = self.copied_original(assign);
        let Some(slot) = self.slots.get_mut(assign.slot) else {
            return;
        };
        // Within one rule, assignments of attributes change one value; each rule adds a value of
        // its own. `$a=1`, then `$out.create($a=2)`, adds 2 for the created instance and notes in
        // `existing_index` that index 0 has the value of the existing instance. A later
        // `$a.unit=…` of the existing instance must not change the 2, so it adds a value.
        let last_is_created = slot.only_created || slot.existing_index.is_some();
        let continues_last = target != Target::Existing || !last_is_created;
        if slot.set_in == activation && assign.attribute != Attribute::Whole && continues_last {
            slot.replace_last(new);
        } else {
            // The value of the existing instance keeps its index when the first value of a created
            // one follows.
            let leaves_existing = target != Target::Existing && slot.assigned && !last_is_created;
            let index = leaves_existing.then_some(slot.earlier.len());
            slot.existing_index = index.or(slot.existing_index);
            slot.push(new);
        }
        if target == Target::Existing {
            slot.existing_index = None;
        }
        if let Some(original) = original {
            slot.keep_original(original);
        }
        slot.only_created = target != Target::Existing && (slot.only_created || !slot.assigned);
        slot.pending = None;
        slot.set_in = activation;
        slot.assigned = true;
    }

    /// Returns the value of a variable after an assignment to the whole value or to one of its
    /// attributes.
    ///
    /// Unit and precision without a number are not a value, and neither is a numerator without a
    /// denominator: such parts wait for the others.
    fn changed(
        &self,
        base: Base<'_>,
        attribute: Attribute,
        value: Value,
        is_quantity: bool,
    ) -> Result<Changed, EvalError> {
        let imitates_published_engine = self.input.options.imitates_published_engine;
        let is_proportion = matches!(base.value, Value::Proportion(_));
        let pending = base.pending.filter(|_| !imitates_published_engine);
        match (attribute, pending) {
            // The engine behind the published fixtures made counts of the parts of a proportion.
            (Attribute::Numerator | Attribute::Denominator, _)
                if imitates_published_engine && !is_proportion =>
            {
                let n = value.number().ok_or(EvalError::Types)?;
                magnitude(base.value, n, is_quantity).map(Changed::Value)
            }
            (Attribute::Numerator | Attribute::Denominator | Attribute::Type, pending) => {
                let n = value.number().ok_or(EvalError::Types)?;
                partial_proportion(base.value, pending).with_part(attribute, n)
            }
            (Attribute::Precision, Some(Pending::Proportion(parts))) => {
                let precision = Some(decimals_of(&value)?);
                PartialProportion {
                    precision,
                    ..*parts
                }
                .changed()
            }
            (Attribute::Precision, None) if is_proportion => {
                let precision = Some(decimals_of(&value)?);
                let parts = partial_proportion(base.value, None);
                PartialProportion { precision, ..parts }.changed()
            }
            // A proportion has no unit.
            (Attribute::Unit, None) if is_proportion => Err(EvalError::Types),
            (Attribute::Unit | Attribute::Precision, pending) => {
                let (quantity, has_number) = match pending {
                    Some(Pending::Quantity(quantity)) => (quantity.clone(), false),
                    Some(Pending::Proportion(_)) => (quantity_of(&Value::Null), false),
                    None => (quantity_of(base.value), base.value.number().is_some()),
                };
                let quantity = match attribute {
                    Attribute::Unit => with_unit(quantity, value)?,
                    _ => Quantity {
                        precision: Some(decimals_of(&value)?),
                        ..quantity
                    },
                };
                Ok(if has_number || imitates_published_engine {
                    Changed::Value(Value::Quantity(quantity))
                } else {
                    Changed::Parts(Pending::Quantity(quantity))
                })
            }
            (_, Some(Pending::Quantity(quantity))) => {
                let base = Value::Quantity(quantity.clone());
                let changed = self.changed_value(&base, attribute, value, is_quantity);
                changed.map(Changed::Value)
            }
            _ => {
                let changed = self.changed_value(base.value, attribute, value, is_quantity);
                changed.map(Changed::Value)
            }
        }
    }

    /// Returns the value of a variable after an assignment to the whole value, or to an attribute
    /// that makes a value.
    fn changed_value(
        &self,
        base: &Value,
        attribute: Attribute,
        value: Value,
        is_quantity: bool,
    ) -> Result<Value, EvalError> {
        match attribute {
            Attribute::Whole => self.whole(base, value, is_quantity),
            Attribute::Value => self.with_value(base, value, is_quantity),
            Attribute::Magnitude | Attribute::Count | Attribute::Sum => {
                magnitude(base, value.number().ok_or(EvalError::Types)?, is_quantity)
            }
            Attribute::Code => {
                let Value::Text(code) = value else {
                    return Err(EvalError::Types);
                };
                Ok(with_code(base, code))
            }
            _ => Err(EvalError::Types),
        }
    }

    /// Returns the date-time at a number of milliseconds since 1970; null where there is none.
    fn moment(&self, millis: f64) -> Value {
        let moment = integer(millis).and_then(|millis| self.input.clock.at(millis));
        moment.map_or(Value::Null, Value::moment)
    }

    /// Returns the value after an assignment to `.value`, whose meaning depends on the class.
    fn with_value(
        &self,
        base: &Value,
        value: Value,
        is_quantity: bool,
    ) -> Result<Value, EvalError> {
        Ok(match (base, value) {
            (_, Value::Millis(ms)) => self.moment(ms),
            (Value::Ordinal(o), Value::Number(n)) => Value::Ordinal(Arc::new(Ordinal {
                value: integer(n).ok_or(EvalError::Range)?,
                symbol: o.symbol.clone(),
            })),
            (Value::Coded(c), Value::Text(text)) => Value::Coded(Arc::new(Coded {
                text,
                ..c.as_ref().clone()
            })),
            (base, value) => self.whole(base, value, is_quantity)?,
        })
    }

    /// Prepares a whole value for storing: a term of the guide gets its text, a number the class of
    /// the variable.
    fn whole(&self, base: &Value, value: Value, is_quantity: bool) -> Result<Value, EvalError> {
        Ok(match value {
            Value::Coded(code) if &*code.terminology == "local" && code.code.starts_with("gt") => {
                let text = self
                    .guide
                    .term_index
                    .get(&*code.code)
                    .map(|t| self.term(*t));
                match text {
                    Some(Value::Text(text)) => Value::Coded(Arc::new(Coded {
                        text,
                        ..code.as_ref().clone()
                    })),
                    _ => Value::Coded(code),
                }
            }
            Value::Number(n) | Value::Span(n) => match base {
                Value::Quantity(q) if !q.unit.is_empty() || q.precision.is_some() => {
                    Value::Quantity(Quantity {
                        magnitude: n,
                        ..q.clone()
                    })
                }
                _ if is_quantity => Value::quantity(n, ""),
                // It would be a count, which is an integer.
                _ if n.is_finite() && integer(n).is_none() => return Err(EvalError::Range),
                _ => Value::Number(n),
            },
            Value::Millis(ms) => self.moment(ms),
            other => other,
        })
    }
}

fn magnitude(base: &Value, n: f64, is_quantity: bool) -> Result<Value, EvalError> {
    match base {
        Value::Quantity(q) => Ok(Value::Quantity(Quantity {
            magnitude: n,
            ..q.clone()
        })),
        _ if is_quantity => Ok(Value::quantity(n, "")),
        _ => integer(n).map(Value::Count).ok_or(EvalError::Range),
    }
}

fn quantity_of(base: &Value) -> Quantity {
    match base {
        Value::Quantity(q) => q.clone(),
        other => Quantity {
            magnitude: other.number().unwrap_or_default(),
            unit: Arc::from(""),
            precision: None,
        },
    }
}

fn with_unit(quantity: Quantity, unit: Value) -> Result<Quantity, EvalError> {
    match unit {
        Value::Text(unit) => Ok(Quantity { unit, ..quantity }),
        _ => Err(EvalError::Types),
    }
}

/// Returns the value of a precision.
fn decimals_of(precision: &Value) -> Result<u8, EvalError> {
    let n = precision
        .number()
        .and_then(integer)
        .ok_or(EvalError::Types)?;
    // A double has no more than 15 reliable decimal digits.
    let precision = u8::try_from(n).ok().filter(|p| *p <= 15);
    precision.ok_or(EvalError::Range)
}

fn with_code(base: &Value, code: Arc<str>) -> Value {
    match base {
        Value::Ordinal(o) => Value::Ordinal(Arc::new(Ordinal {
            value: o.value,
            symbol: Coded {
                code,
                ..o.symbol.clone()
            },
        })),
        Value::Coded(c) => Value::Coded(Arc::new(Coded {
            code,
            ..c.as_ref().clone()
        })),
        Value::Text(text) => Value::Coded(Arc::new(Coded {
            terminology: Arc::from("local"),
            code,
            text: text.clone(),
        })),
        _ => Value::Coded(Arc::new(Coded {
            terminology: Arc::from("local"),
            code,
            text: Arc::from(""),
        })),
    }
}

/// Returns the parts of a proportion that a variable has.
fn partial_proportion(value: &Value, pending: Option<&Pending>) -> PartialProportion {
    match (pending, value) {
        (Some(Pending::Proportion(parts)), _) => *parts,
        // Only its unit distinguishes a quantity from a proportion.
        (Some(Pending::Quantity(quantity)), _) => PartialProportion {
            precision: quantity.precision,
            ..PartialProportion::default()
        },
        (None, Value::Proportion(p)) => PartialProportion {
            numerator: Some(p.numerator),
            denominator: Some(p.denominator),
            kind: p.kind,
            precision: p.precision,
        },
        _ => PartialProportion::default(),
    }
}

impl PartialProportion {
    /// Sets numerator, denominator or kind.
    fn with_part(mut self, attribute: Attribute, n: f64) -> Result<Changed, EvalError> {
        match attribute {
            Attribute::Numerator => self.numerator = Some(n),
            Attribute::Denominator if n == 0.0 => return Err(EvalError::ZeroDenominator),
            Attribute::Denominator => self.denominator = Some(n),
            _ => {
                self.kind = integer(n)
                    .filter(|k| (0..=4).contains(k) && real(*k) == n)
                    .ok_or(EvalError::Range)?
            }
        }
        self.changed()
    }

    /// Returns the proportion, if it is complete.
    fn changed(self) -> Result<Changed, EvalError> {
        Ok(match self.numerator.zip(self.denominator) {
            Some((numerator, denominator)) => Changed::Value(Value::Proportion(Proportion {
                numerator,
                denominator,
                kind: self.kind,
                precision: self.precision,
            })),
            None => Changed::Parts(Pending::Proportion(self)),
        })
    }
}

/// Returns the variable that an assignment copies as it is.
fn copied_slot(guide: &CompiledGuide, assign: &Assign) -> Option<usize> {
    let index = usize::try_from(assign.value).ok()?;
    match guide.ops.get(index)? {
        Op::Read(slot, Attribute::Whole) if assign.attribute == Attribute::Whole => Some(*slot),
        _ => None,
    }
}

/// Returns the variables that some action copies as they are.
pub(crate) fn copied_slots(guide: &CompiledGuide) -> HashSet<usize> {
    let rules = guide.rules.iter().flat_map(|rule| &rule.then);
    let actions = guide.default_actions.iter().chain(rules);
    let assigned = actions.flat_map(|action| match action {
        ActionPlan::Assign(assign) => std::slice::from_ref(assign),
        ActionPlan::Create { values, .. } => values,
        _ => &[],
    });
    assigned.filter_map(|a| copied_slot(guide, a)).collect()
}

/// Builds one object from named values, leaving out those that are null.
fn object_of<'v>(values: impl Iterator<Item = (&'v str, &'v Value)>) -> Value {
    let members = values
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), fill::to_json(value)));
    Value::Object(Arc::new(serde_json::Value::Object(members.collect())))
}
