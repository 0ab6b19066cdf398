//! From bindings to AQL, and from result rows back to the instances that a guide reads.
//!
//! Nothing here runs a query. A [`BindingQuery`] holds the query and the meaning of its columns,
//! and converts the cells of the answer to values.

use super::compile::{Column, CompiledGuide};
use super::guide::Direction;
use super::run::Options;
use super::stored::{ValueReader, millis_of, original_of_json, value_of_json};
use super::time::{Clock, Moment};
use super::value::Value;
use aqlite_aql::{MAX_CONDITIONS, RowValue};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;
use std::sync::Arc;

/// The conditions of a query beside its columns and the predicates of the binding.
const RESERVED: usize = 10;

/// One occurrence of a model in the data: the values of the columns of its binding.
#[derive(Clone, Debug, Default)]
pub struct Instance {
    /// One value for each column of the binding, null where the data has none.
    pub values: Vec<Value>,
    /// The time of the event, if the data contain one.
    pub time: Option<Moment>,
    /// The text of the time, if that is not the text of the moment.
    pub recorded_time: Option<Arc<str>>,
    /// The uid of the composition that contains the occurrence.
    pub source: Option<Arc<str>>,
    /// The numbers of the elements that hold the values, by column. Elements that repeat within one
    /// occurrence of a model make several instances, which share the other elements; `count` and
    /// `sum` take each element once. Empty if the elements are not known: then each value is of an
    /// element of its own.
    pub elements: Vec<u32>,
    /// The stored values of columns that the guide copies, where the value of the guide lacks a
    /// part of them: the index of the column and the stored value.
    pub originals: Vec<(usize, Arc<serde_json::Value>)>,
    /// Whether the instance is a result of earlier guides of a chain. It is later than data of the
    /// same time.
    pub is_result: bool,
}

impl PartialEq for Instance {
    /// Compares the data. The numbers of elements depend on the way in which they were read.
    fn eq(&self, other: &Instance) -> bool {
        self.values == other.values && self.time == other.time && self.source == other.source
    }
}

/// The data of one model by path.
#[derive(Clone, Debug, PartialEq)]
pub struct DataInstance {
    /// The archetype or resource class.
    pub model_id: String,
    /// Values by path.
    pub values: Vec<(String, Value)>,
}

/// The query of one binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingQuery {
    /// The gt-code of the binding.
    pub id: String,
    /// The index of the binding in the guide, and of its instances in [`super::RunInput`].
    pub binding: usize,
    /// The archetype that is read.
    pub model_id: String,
    /// The query for one EHR, which is the parameter `$ehr_id`. Its columns are
    /// [`BindingQuery::columns`].
    pub aql: String,
    /// The query for all EHRs at once. It has one more column at the end: the id of the EHR.
    pub population_aql: String,
    /// The meaning of each column.
    pub columns: Vec<QueryColumn>,
}

/// The meaning of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryColumn {
    /// A value at a path of the model and the variable that it feeds. The variable is `None` for a
    /// path that only a predicate reads.
    Value {
        /// The path in the archetype.
        path: String,
        /// The gt-code of the variable.
        variable: Option<String>,
        /// Whether the value is the time of the instance.
        is_time: bool,
    },
    /// The time of the instance, if no value column contains it.
    Time,
    /// The uid of the composition.
    Source,
}

/// A function that returns the conditions of a binding (by index), given the spelling of its
/// columns in the query.
type Pushed<'a> = &'a dyn Fn(usize, &dyn Fn(&str) -> String) -> Vec<String>;

/// The identified paths of the columns of a binding.
pub(crate) struct QueryPaths {
    /// Whether the binding is of a COMPOSITION itself.
    is_composition: bool,
    /// The path to the time of the one event that has the values.
    event_time: Option<String>,
}

impl QueryPaths {
    /// Creates the paths of a class, whose events are not known.
    pub fn of_class(class: &str) -> QueryPaths {
        QueryPaths {
            is_composition: class == "COMPOSITION",
            event_time: None,
        }
    }

    /// Returns the identified path for a path of the guide.
    pub fn of(&self, path: &str) -> String {
        let of_composition = path.starts_with("/context/") && !self.is_composition;
        let object = if of_composition { 'c' } else { 'o' };
        format!("{object}{}", self.in_event(path))
    }

    /// Returns the identified path to the time that dates an instance.
    fn of_time(&self, path: &str) -> String {
        match path {
            path if self.is_composition => format!("o{path}"),
            path @ "/context/start_time" => format!("c{path}"),
            path => format!("o{}", self.in_event(path)),
        }
    }

    /// Value and time must come from one event: a path to the time of any event would yield a
    /// product.
    fn in_event(&self, path: &str) -> String {
        match (&self.event_time, path) {
            (Some(time), "/data/events/time") => time.clone(),
            _ => column_path(path),
        }
    }
}

impl CompiledGuide {
    /// Returns the queries of the bindings that are read (INPUT, EHR, or without type). Models that
    /// are not archetypes have none.
    pub fn queries(&self) -> Vec<BindingQuery> {
        self.queries_with(&|_, _| Vec::new())
    }

    /// Returns the queries for a run at `clock`. The predicates of the bindings become conditions
    /// of the queries where that cannot change the result.
    pub fn queries_at<'c>(&self, clock: impl Into<Clock<'c>>) -> Vec<BindingQuery> {
        self.queries_for(clock, &Options::default())
    }

    /// Returns the queries for a run with `options`. Where the run converts units, no condition
    /// excludes quantities of other units.
    pub fn queries_for<'c>(
        &self,
        clock: impl Into<Clock<'c>>,
        options: &Options,
    ) -> Vec<BindingQuery> {
        let clock = clock.into();
        self.queries_with(&|index, place| {
            self.pushed_down(index, clock, options.convert_units, place)
        })
    }

    fn queries_with(&self, pushed: Pushed<'_>) -> Vec<BindingQuery> {
        let bindings = self.guide.bindings.iter().enumerate();
        bindings
            .filter(|(_, b)| b.direction != Direction::Output)
            .filter_map(|(i, _)| self.query(i, pushed))
            .collect()
    }

    fn query(&self, index: usize, pushed: Pushed<'_>) -> Option<BindingQuery> {
        let (binding, plan) = (self.guide.bindings.get(index)?, self.bindings.get(index)?);
        let class = class_of(&binding.model_id)?;
        let paths = QueryPaths {
            event_time: event_of(&plan.columns).map(|event| format!("{event}/time")),
            ..QueryPaths::of_class(class)
        };
        let place = |path: &str| paths.of(path);
        let dated_by = super::gdl1::time_path(&binding.model_id);
        let (mut columns, mut select): (Vec<_>, Vec<_>) = plan
            .columns
            .iter()
            .map(|column| {
                // A path that cannot be read has no value, and keeps its place in the rows.
                let text = match column.is_readable {
                    true => place(&column.path),
                    false => String::from("NULL"),
                };
                (self.value_column(column, dated_by), text)
            })
            .unzip();
        // A variable of the guide may already read the time that dates the instance.
        if !plan.columns.iter().any(|c| c.path == dated_by) {
            columns.push(QueryColumn::Time);
            select.push(paths.of_time(dated_by));
        }
        let composition = if paths.is_composition { 'o' } else { 'c' };
        columns.push(QueryColumn::Source);
        select.push(format!("{composition}/uid/value"));
        let select = select.join(", ");
        // Guides often repeat the archetype id as template id. It names no template.
        let template = binding.template_id.as_deref();
        let template = template.filter(|t| class_of(t).is_none()).map(quoted);
        let template =
            template.map(|t| format!("{composition}/archetype_details/template_id/value='{t}'"));
        // Predicates are optional conditions: those beyond the limit of the query are left out.
        let mut room = MAX_CONDITIONS.saturating_sub(conditions_of(&select) + RESERVED);
        let fits = |condition: &String| {
            let left = room.checked_sub(conditions_of(condition));
            left.inspect(|left| room = *left).is_some()
        };
        let pushed = pushed(index, &place).into_iter().filter(fits);
        let conditions: Vec<String> = template.into_iter().chain(pushed).collect();
        let from = from_and_where(class, &binding.model_id, &conditions);
        Some(BindingQuery {
            id: binding.id.clone(),
            binding: index,
            model_id: binding.model_id.clone(),
            aql: format!("SELECT {select} FROM EHR e[ehr_id/value=$ehr_id] CONTAINS {from}"),
            population_aql: format!("SELECT {select}, e/ehr_id/value FROM EHR e CONTAINS {from}"),
            columns,
        })
    }

    fn value_column(&self, column: &Column, dated_by: &str) -> QueryColumn {
        let slot = column.slot.and_then(|s| self.slots.get(s));
        QueryColumn::Value {
            path: column.path.clone(),
            variable: slot.map(|s| s.code.to_string()),
            is_time: column.path == dated_by,
        }
    }

    /// Returns the instances of every binding from data by path. Two bindings of one archetype
    /// share its data.
    pub fn instances_of(&self, data: &[DataInstance]) -> Vec<Vec<Instance>> {
        let mut all = Vec::with_capacity(self.bindings.len());
        for (binding, plan) in self.guide.bindings.iter().zip(&self.bindings) {
            let own = data.iter().filter(|d| d.model_id == binding.model_id);
            let read = |d: &DataInstance, path: &str| {
                d.values
                    .iter()
                    .rev()
                    // A repeated path has the last value, as in assignments.
                    .find(|(p, _)| normal_path(p) == path)
                    .map(|(_, v)| v.clone())
            };
            let instance = |d: &DataInstance| Instance {
                values: plan
                    .columns
                    .iter()
                    .map(|c| read(d, &c.path).unwrap_or_default())
                    .collect(),
                ..Instance::default()
            };
            all.push(own.map(instance).collect());
        }
        all
    }
}

impl BindingQuery {
    /// Builds the instances of one EHR from rows in commit order. Each row has one value for each
    /// of [`BindingQuery::columns`]. Instances dated after `now` and instances without any value
    /// are left out. The others are sorted by time, undated ones first.
    pub fn instances(
        &self,
        rows: impl IntoIterator<Item = Vec<Value>>,
        now: Moment,
    ) -> Vec<Instance> {
        let mut instances: Vec<Instance> = rows
            .into_iter()
            .map(|row| self.instance(row.into_iter()))
            .collect();
        in_order(&mut instances, now);
        instances
    }

    /// Builds the instances of one EHR as [`BindingQuery::instances`] does, from cells in JSON.
    /// Those of the columns `copied` keep their stored values.
    pub(crate) fn instances_of_json(
        &self,
        rows: &[Vec<&str>],
        copied: &[usize],
        now: Moment,
    ) -> Vec<Instance> {
        let instance = |row: &Vec<&str>| {
            let mut instance = self.instance(row.iter().map(|cell| value_of_json(cell)));
            for &column in copied {
                let cell = row.get(column).zip(instance.values.get(column));
                let original = cell.and_then(|(cell, value)| original_of_json(cell, value));
                instance
                    .originals
                    .extend(original.map(|original| (column, original)));
            }
            instance
        };
        let mut instances: Vec<Instance> = rows.iter().map(instance).collect();
        in_order(&mut instances, now);
        instances
    }

    /// Builds the instance of one row. The uid of its composition is kept only if the run is
    /// `traced`.
    pub(crate) fn instance_of_row(
        &self,
        row: &[RowValue<'_>],
        reader: &mut ValueReader,
        traced: bool,
    ) -> Instance {
        let wanted = |column: &QueryColumn| traced || *column != QueryColumn::Source;
        let values = self.columns.iter().zip(row).map(|(column, found)| {
            if wanted(column) {
                reader.value(*found)
            } else {
                Value::Null
            }
        });
        self.instance(values)
    }

    /// Returns the time of a row in milliseconds, as its instance will have it; `None` if it is
    /// known only after the conversion of the row.
    pub(crate) fn millis_of(&self, row: &[RowValue<'_>]) -> Option<i64> {
        let is_time = |column: &QueryColumn| match column {
            QueryColumn::Value { is_time, .. } => *is_time,
            QueryColumn::Time => true,
            QueryColumn::Source => false,
        };
        let at = self.columns.iter().position(is_time)?;
        row.get(at).copied().and_then(millis_of)
    }

    fn instance(&self, row: impl Iterator<Item = Value>) -> Instance {
        let is_value = |column: &&QueryColumn| matches!(column, QueryColumn::Value { .. });
        let mut instance = Instance {
            values: Vec::with_capacity(self.columns.iter().filter(is_value).count()),
            ..Instance::default()
        };
        for (column, value) in self.columns.iter().zip(row) {
            match (column, value) {
                (QueryColumn::Value { is_time, .. }, value) => {
                    if let (Value::Moment(moment, recorded), true) = (&value, is_time) {
                        instance.time = Some(*moment);
                        instance.recorded_time.clone_from(recorded);
                    }
                    instance.values.push(value);
                }
                (QueryColumn::Time, Value::Moment(moment, recorded)) => {
                    instance.time = Some(moment);
                    instance.recorded_time = recorded;
                }
                (QueryColumn::Source, Value::Text(uid)) => instance.source = Some(uid),
                _ => {}
            }
        }
        instance
    }
}

impl QueryColumn {
    /// Returns the variable that the column feeds, or else its path. `None` for a column that no
    /// statement reads.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            QueryColumn::Value { path, variable, .. } => Some(variable.as_deref().unwrap_or(path)),
            QueryColumn::Time | QueryColumn::Source => None,
        }
    }
}

/// Returns a number that the conditions and predicates in a part of a query do not exceed. Each
/// follows a bracket or a blank.
fn conditions_of(part: &str) -> usize {
    1 + part.matches(['[', ' ']).count()
}

/// Returns the query behind `EHR e CONTAINS`: the model as `o`, in its composition `c`.
fn from_and_where(class: &str, model_id: &str, conditions: &[String]) -> String {
    let from = match class {
        "COMPOSITION" => format!("COMPOSITION o[{model_id}]"),
        _ => format!("COMPOSITION c CONTAINS {class} o[{model_id}]"),
    };
    if conditions.is_empty() {
        from
    } else {
        format!("{from} WHERE {}", conditions.join(" AND "))
    }
}

/// Removes instances dated after `now` and empty instances, and sorts the rest by time. The sort is
/// stable, so instances of one time keep their commit order.
pub(crate) fn in_order(instances: &mut Vec<Instance>, now: Moment) {
    instances.retain(|i| {
        i.time.is_none_or(|t| t.millis <= now.millis) && i.values.iter().any(|v| !v.is_null())
    });
    // `None` is less than every time, so instances without a time come first.
    order::sort_by_key(instances, |i| i.time.map(|t| t.millis));
}

/// Returns whether a character may occur in an archetype id. The id becomes a part of a query.
pub(crate) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.-".contains(c)
}

/// Returns the class in an archetype id such as `openEHR-EHR-OBSERVATION.body_weight.v2`; `None`
/// for any other text.
pub fn class_of(model_id: &str) -> Option<&str> {
    let (model, concept) = model_id.split_once('.')?;
    let mut parts = model.split('-');
    let class = parts.nth(2)?;
    let is_concept = !concept.is_empty() && concept.chars().all(is_plain);
    let is_archetype = parts.next().is_none() && is_concept && Cls::parse(class).is_some();
    is_archetype.then_some(class)
}

/// Normalizes the spelling of a path: `/event/time` of old guides becomes `/data/events/time`. An
/// RM attribute that holds a data value is read whole, so a `/value` behind it is dropped:
/// `/data/events/time/value` becomes `/data/events/time`, and compares as a time.
pub(crate) fn normal_path(path: &str) -> String {
    let path = path.trim().trim_end_matches('/');
    match path
        .strip_suffix("/value")
        .filter(|base| is_data_value(base))
        .unwrap_or(path)
    {
        "/event/time" => "/data/events/time".to_owned(),
        other => other.to_owned(),
    }
}

/// Returns whether a path ends in an RM attribute that holds a data value, such as
/// `/data/events/time`. The `value` of an ELEMENT is excluded, because a name behind it is an
/// attribute of the data value.
pub(crate) fn is_data_value(path: &str) -> bool {
    let attr = path
        .rsplit('/')
        .next()
        .filter(|name| *name != "value")
        .and_then(Attr::parse);
    attr.is_some_and(|attr| {
        Cls::all().any(|class| {
            class
                .attr(attr)
                .is_some_and(|def| def.ty.is_a(Cls::DATA_VALUE))
        })
    })
}

/// Returns a path as a column of the query: an ELEMENT is read at its `/value`, an RM attribute as
/// it is.
pub(crate) fn column_path(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    let name = last.split('[').next().unwrap_or_default();
    match name {
        "items" | "item" => format!("{path}/value"),
        _ => path.to_owned(),
    }
}

/// Returns the path to the null flavor of the ELEMENT that a path reads; `None` for an RM attribute,
/// which has none.
pub(crate) fn null_flavor_path(path: &str) -> Option<String> {
    let element = path.strip_suffix("/value").unwrap_or(path);
    let is_element = column_path(element) != element;
    is_element.then(|| format!("{element}/null_flavour"))
}

/// Returns the event in the paths of the columns, such as `/data[at0001]/events[at0006]`. A time
/// path without code refers to this event, so that value and time come from one event.
fn event_of(columns: &[super::compile::Column]) -> Option<&str> {
    let event = |path| -> Option<&str> {
        let path: &str = path;
        let at = path.find("/events[")?;
        let end = path.get(at..)?.find(']')?;
        path.get(..=at + end)
    };
    let columns = columns.iter().filter(|column| column.is_readable);
    let mut events = columns.filter_map(|c| event(&c.path));
    let first = events.next()?;
    events.all(|e| e == first).then_some(first)
}

pub(crate) fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_archetypes() {
        assert_eq!(
            class_of("openEHR-EHR-OBSERVATION.body_weight.v2"),
            Some("OBSERVATION")
        );
        assert_eq!(class_of("org.hl7.fhir.dstu3.model.Observation"), None);
        assert_eq!(class_of("Vital signs"), None);
    }

    #[test]
    fn value_behind_an_attribute_with_a_data_value_is_left_out() {
        for (path, expected) in [
            ("/data/events/time/value", "/data/events/time"),
            (" /event/time/value/ ", "/data/events/time"),
            (
                "/data[at0001]/events[at0002]/time/value",
                "/data[at0001]/events[at0002]/time",
            ),
            ("/context/start_time/value", "/context/start_time"),
            (
                "/ism_transition/current_state/value",
                "/ism_transition/current_state",
            ),
            ("/data[at0001]/origin/value", "/data[at0001]/origin"),
            ("/data[at1]/items[at2]/value", "/data[at1]/items[at2]/value"),
            (
                "/data[at1]/items[at2]/value/value",
                "/data[at1]/items[at2]/value/value",
            ),
            ("/uid/value", "/uid/value"),
            (
                "/archetype_details/template_id/value",
                "/archetype_details/template_id/value",
            ),
        ] {
            assert_eq!(normal_path(path), expected);
        }
    }

    #[test]
    fn elements_are_read_at_their_value() {
        assert_eq!(
            column_path("/data[at1]/items[at2]"),
            "/data[at1]/items[at2]/value"
        );
        assert_eq!(column_path("/data/events/time"), "/data/events/time");
        assert_eq!(
            column_path(
                "/activities[at1]/description[openEHR-EHR-ITEM_TREE.medication.v1]/items[at2]"
            ),
            "/activities[at1]/description[openEHR-EHR-ITEM_TREE.medication.v1]/items[at2]/value"
        );
    }
}
