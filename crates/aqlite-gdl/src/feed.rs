//! The results of earlier guides as input of the next guide of a chain.

use super::bind::{Instance, class_of, normal_path};
use super::compile::{BindingPlan, Column, CompiledGuide};

use super::run::{Output, OutputOrigin, OutputValue};
use super::stored::value_at;
use super::time::Moment;
use super::value::Value;
use aqlite_rm::path::path_steps;
use hashbrown::{HashMap, HashSet};

/// The end of the path of a null flavor, behind that of its element.
const NULL_FLAVOR: &str = "/null_flavour";

/// The event in a path of an OBSERVATION: the node ids of its HISTORY and of its EVENT.
type Event<'p> = (&'p str, &'p str);

impl CompiledGuide {
    /// Adds the results of all earlier guides of a chain to the input of this guide, as the latest
    /// instances of their models, dated `now`.
    ///
    /// The results of one model are one instance, in which the later value of an element wins. An
    /// instance that `create` made and a filled template stay instances of their own.
    pub fn feed(&self, instances: &mut Vec<Vec<Instance>>, earlier: &[Output], now: Moment) {
        instances.resize_with(self.bindings.len(), Vec::new);
        for result in merged(earlier) {
            let bindings = self.guide.bindings.iter().zip(&self.bindings);
            for ((binding, plan), own) in bindings.zip(instances.iter_mut()) {
                if binding.model_id == result.model_id {
                    own.push(result.instance(plan, now));
                }
            }
        }
    }
}

/// The values of one instance that earlier guides computed.
struct EarlierResult<'o> {
    model_id: &'o str,
    /// The values by the path of their element, each with its own path.
    values: HashMap<String, (String, &'o OutputValue)>,
    /// The events of the values.
    events: HashSet<Event<'o>>,
    /// The times among the values, by path.
    times: Vec<(&'o str, &'o Value)>,
}

/// Returns the instances that earlier guides made, the latest last.
fn merged(earlier: &[Output]) -> Vec<EarlierResult<'_>> {
    let mut instances: Vec<Option<EarlierResult<'_>>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for output in earlier {
        let own = match output.origin {
            OutputOrigin::Binding => places.insert(&output.model_id, instances.len()),
            _ => None,
        };
        // An instance moves behind those that were made before its latest value.
        let own = own.and_then(|place| instances.get_mut(place)?.take());
        let mut instance = own.unwrap_or_else(|| EarlierResult::empty(&output.model_id));
        output.values.iter().for_each(|value| instance.add(value));
        instances.push(Some(instance));
    }
    instances.into_iter().flatten().collect()
}

impl<'o> EarlierResult<'o> {
    fn empty(model_id: &'o str) -> EarlierResult<'o> {
        EarlierResult {
            model_id,
            values: HashMap::new(),
            events: HashSet::new(),
            times: Vec::new(),
        }
    }

    /// Adds a value. It replaces the value or the null flavor of its element.
    fn add(&mut self, value: &'o OutputValue) {
        self.events.extend(event_of(&value.path));
        if matches!(value.value, Value::Moment(..)) {
            self.times.push((&value.path, &value.value));
        }
        let path = normal_path(&value.path);
        let element = path.strip_suffix(NULL_FLAVOR).unwrap_or(&path).to_owned();
        self.values.insert(element, (path, value));
    }

    /// Returns the instance of a binding of this model.
    fn instance(&self, plan: &BindingPlan, now: Moment) -> Instance {
        let mut instance = Instance {
            values: Vec::with_capacity(plan.columns.len()),
            time: Some(now),
            is_result: true,
            ..Instance::default()
        };
        for (index, column) in plan.columns.iter().enumerate() {
            let found = self.value(column);
            let original = found.and_then(|value| value.original.clone());
            instance.originals.extend(original.map(|o| (index, o)));
            let value = found.map(|value| value.value.clone());
            let value = value.or_else(|| self.in_resource(column));
            let value = value.or_else(|| self.time(&column.path, now));
            instance.values.push(value.unwrap_or_default());
        }
        instance
    }

    /// Returns the value at the path of a column.
    fn value(&self, column: &Column) -> Option<&'o OutputValue> {
        let path = column.path.as_str();
        let element = path.strip_suffix(NULL_FLAVOR).unwrap_or(path);
        let (own, value) = self.values.get(element)?;
        (own == path).then_some(*value)
    }

    /// Returns the value at the path of a column in a filled template, which is a resource.
    fn in_resource(&self, column: &Column) -> Option<Value> {
        // `normal_path` of `/`.
        match &self.values.get("")?.1.value {
            Value::Object(resource) => value_at(resource, &column.path),
            _ => None,
        }
    }

    /// Returns the time at a path that dates an instance of this model: the one that a guide has
    /// set there, otherwise `now`. `None` for any other path.
    fn time(&self, path: &str, now: Moment) -> Option<Value> {
        let names = dating_names(self.model_id, path)?;
        let event = event_of(path);
        let is_own = |other: &Event<'_>| event.is_none_or(|event| are_compatible(event, *other));
        // A result at another event has no time at this one.
        if !self.events.is_empty() && !self.events.iter().any(is_own) {
            return None;
        }
        let is_same = |other: &str| {
            dating_names(self.model_id, other) == Some(names)
                && event_of(other).is_none_or(|other| is_own(&other))
        };
        let set = self.times.iter().rev().find(|(other, _)| is_same(other));
        Some(set.map_or_else(|| Value::moment(now), |(_, time)| (*time).clone()))
    }
}

/// Returns the path without predicates, if the time there dates an instance of this model.
fn dating_names(model_id: &str, path: &str) -> Option<&'static str> {
    const OF_CLASSES: [(&str, &str); 3] = [
        ("OBSERVATION", "/data/events/time"),
        ("OBSERVATION", "/data/origin"),
        ("ACTION", "/time"),
    ];
    let class = class_of(model_id);
    let own = OF_CLASSES.iter().filter(|(of, _)| Some(*of) == class);
    let mut paths = own.map(|(_, path)| *path).chain(["/context/start_time"]);
    let path = normal_path(path);
    let steps = path_steps(&path)?;
    paths.find(|dating| {
        let names = dating.split('/').skip(1);
        names.eq(steps.iter().map(|(name, _)| *name))
    })
}

/// Returns the event in a path.
fn event_of(path: &str) -> Option<Event<'_>> {
    match path_steps(path)?.as_slice() {
        [("data", history), ("events", event), ..] => Some((node_id(history), node_id(event))),
        _ => None,
    }
}

/// Returns the node id of a predicate, which may also have a name.
fn node_id(predicate: &str) -> &str {
    let end = predicate.find([' ', ',']).unwrap_or(predicate.len());
    predicate.get(..end).unwrap_or_default()
}

/// Returns whether two paths may lead to one event. A path without node ids leads to any event.
fn are_compatible(a: Event<'_>, b: Event<'_>) -> bool {
    let same = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
    same(a.0, b.0) && same(a.1, b.1)
}
