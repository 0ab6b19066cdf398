//! The values of one variable during a run.

use super::value::{Quantity, Value};
use std::cell::Cell;
use std::sync::Arc;

/// The parts of a value that is not complete.
#[derive(Clone, Debug)]
pub(crate) enum Pending {
    /// Unit and precision without a number.
    Quantity(Quantity),
    /// A proportion without numerator or denominator.
    Proportion(PartialProportion),
}

/// The parts of a proportion that were set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartialProportion {
    pub numerator: Option<f64>,
    pub denominator: Option<f64>,
    /// The kind; a ratio unless it is set.
    pub kind: i64,
    pub precision: Option<u8>,
}

/// The value of a list that reading the variable yields, as `any` and `for_all` have set it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pin {
    /// The last value.
    Last,
    /// The value at an index, or the last one for an index beyond the end.
    At(usize),
    /// Null: the instance has no value of the variable.
    Missing,
}

/// A gap of instances without a value of the variable.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// The number of the first instance behind the gap.
    end: usize,
    /// The number of instances without a value before `end`, those of earlier gaps included.
    missing: usize,
}

/// The values of one variable, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct VariableState {
    pub last: Value,
    pub earlier: Vec<Value>,
    pub null_flavor: Option<Box<Value>>,
    /// The parts that were set before the value is complete. The variable has no value yet.
    pub pending: Option<Pending>,
    /// The group of actions that set the variable last, as [`GuideRun::activation`]; 0 for none.
    /// Until that group ends, attributes change the value in place.
    ///
    /// [`GuideRun::activation`]: super::eval::GuideRun::activation
    pub set_in: u32,
    /// Whether the variable was set in this run.
    pub assigned: bool,
    /// Whether only `create` set the variable. The value then belongs to the created instance.
    pub only_created: bool,
    /// The index of the value of the instance that exists from the start, if `create` has set the
    /// variable since.
    pub existing_index: Option<usize>,
    /// The stored values of which values lack a part, by index in ascending order.
    originals: Vec<(usize, Arc<serde_json::Value>)>,
    pin: Cell<Pin>,
    /// The number of instances, those without the variable included. An assignment adds one.
    instances: usize,
    /// The gaps of instances without a value, ascending. If only the instances 0, 3 and 4 have a
    /// value, there is one gap, `{ end: 3, missing: 2 }`: instance 3 has the value at index 3 - 2,
    /// and instance 1 has none, because index 1 is not below 3 - 2.
    gaps: Vec<Gap>,
    /// The indexes of the values whose element an earlier value has, in ascending order.
    repeated: Vec<usize>,
    /// The number of values of which `total` is the sum; 0 if the sum is not known.
    pub summed: Cell<usize>,
    pub total: Cell<f64>,
}

impl VariableState {
    pub fn empty() -> VariableState {
        VariableState {
            last: Value::Null,
            earlier: Vec::new(),
            null_flavor: None,
            pending: None,
            set_in: 0,
            assigned: false,
            only_created: false,
            existing_index: None,
            originals: Vec::new(),
            pin: Cell::new(Pin::Last),
            instances: 0,
            gaps: Vec::new(),
            repeated: Vec::new(),
            summed: Cell::new(0),
            total: Cell::new(0.0),
        }
    }

    /// Replaces the last value, which is the one that is read from now on.
    pub fn replace_last(&mut self, value: Value) -> Value {
        let index = self.earlier.len();
        self.originals.retain(|(of, _)| *of != index);
        self.set_last(value)
    }

    fn set_last(&mut self, value: Value) -> Value {
        self.summed.set(0);
        self.unpin();
        std::mem::replace(&mut self.last, value)
    }

    /// Keeps the stored value of which the last value lacks a part. A quantity that was rounded when
    /// it was stored keeps the rounded magnitude.
    pub fn keep_original(&mut self, original: Arc<serde_json::Value>) {
        let mut original = original;
        if let Value::Quantity(quantity) = &self.last
            && original
                .get("magnitude")
                .and_then(serde_json::Value::as_f64)
                != Some(quantity.magnitude)
            && let Some(member) = Arc::make_mut(&mut original).get_mut("magnitude")
        {
            *member = quantity.magnitude.into();
        }
        self.originals.push((self.earlier.len(), original));
    }

    /// Returns the stored value of which the value at an index lacks a part.
    pub fn original(&self, index: usize) -> Option<Arc<serde_json::Value>> {
        let found = self.originals.iter().rev().find(|(of, _)| *of == index);
        found.map(|(_, original)| original.clone())
    }

    /// Returns the stored value of which the value that is read lacks a part.
    pub fn current_original(&self) -> Option<Arc<serde_json::Value>> {
        self.original(self.current_index()?)
    }

    /// Returns the value of the instance that exists from the start: the one that is read, unless
    /// `create` has set the variable since.
    pub fn existing_value(&self) -> &Value {
        let index = self.existing_index;
        index.map_or(self.current(), |index| self.at(index))
    }

    /// Appends a value, which is the one that is read from now on.
    pub fn push(&mut self, value: Value) {
        let before = self.set_last(value);
        if !before.is_null() {
            self.earlier.push(before);
        }
        let missing = self.instances.saturating_sub(self.earlier.len());
        if self.gaps.last().map_or(0, |gap| gap.missing) != missing {
            let end = self.instances;
            self.gaps.push(Gap { end, missing });
        }
        self.instances += 1;
    }

    /// Passes over an instance that has no value of the variable.
    pub fn skip(&mut self) {
        self.instances += 1;
    }

    /// Appends a value of an element that an earlier value has.
    pub fn push_repeated(&mut self, value: Value) {
        self.push(value);
        self.repeated.push(self.earlier.len());
    }

    /// The number of values, each element counted once.
    pub fn elements_count(&self) -> usize {
        self.count().saturating_sub(self.repeated.len())
    }

    /// Iterates over the values, the oldest first, with one value for each element.
    pub fn elements(&self) -> impl Iterator<Item = &Value> {
        let mut repeated = self.repeated.iter().peekable();
        self.all()
            .enumerate()
            .filter(move |(index, _)| repeated.next_if_eq(&index).is_none())
            .map(|(_, value)| value)
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        if self.last.is_null() {
            0
        } else {
            self.earlier.len() + 1
        }
    }

    /// Returns the value at an index, or the last value for an index beyond the end.
    pub fn at(&self, index: usize) -> &Value {
        self.earlier.get(index).unwrap_or(&self.last)
    }

    /// Iterates over all values, oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.earlier
            .iter()
            .chain(Some(&self.last))
            .filter(|v| !v.is_null())
    }

    /// Returns the value that reading the variable yields: the last one, or the one that `any`
    /// found.
    pub fn current(&self) -> &Value {
        self.current_index()
            .map_or(&Value::Null, |index| self.at(index))
    }

    fn current_index(&self) -> Option<usize> {
        let last = self.earlier.len();
        match self.pin.get() {
            Pin::Last => Some(last),
            Pin::At(index) => Some(index.min(last)),
            Pin::Missing => None,
        }
    }

    /// The number of values that `any` visits, or of instances if it visits them. None of them is
    /// visited for a variable without values.
    pub fn visits(&self, by_instance: bool) -> usize {
        match self.count() {
            0 => 0,
            _ if by_instance => self.instances,
            count => count,
        }
    }

    /// Lets reads yield the value at an index, or the value of the instance of this number. Beyond
    /// the end they yield the last value.
    pub fn pin(&self, index: usize, by_instance: bool) {
        self.pin.set(match by_instance && index < self.instances {
            true => self.pin_of_instance(index),
            false => Pin::At(index),
        });
    }

    fn pin_of_instance(&self, number: usize) -> Pin {
        let next = self.gaps.partition_point(|gap| gap.end <= number);
        let gap = next.checked_sub(1).and_then(|at| self.gaps.get(at));
        let index = number.saturating_sub(gap.map_or(0, |gap| gap.missing));
        let end = match self.gaps.get(next) {
            Some(gap) => gap.end.saturating_sub(gap.missing),
            None => self.count(),
        };
        match index < end {
            true => Pin::At(index),
            false => Pin::Missing,
        }
    }

    /// Lets reads yield the last value.
    pub fn unpin(&self) {
        self.pin.set(Pin::Last);
    }
}
