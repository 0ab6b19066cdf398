//! From bindings to AQL, and from result rows back to the instances that a guide reads.
//!
//! Nothing here runs a query: a [`BindingQuery`] says what to ask and what its columns mean, and takes the cells of the
//! answer as values of the Reference Model.

use super::compile::CompiledGuide;
use super::guide::Direction;
use super::time::Moment;
use super::value::{Coded, Ordinal, Proportion, Quantity, Value, integer};
use crate::aql::Cell;
use crate::rm::class::{Attr, Cls};
use crate::rm::json;
use crate::rm::tree::NodeRef;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

/// The zone of times in the data that name none, as in AQL.
pub const UTC: i32 = 0;

/// One occurrence of a model in the data: the values of the columns of its binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// One value for each column of the binding, null where the data has none.
    pub values: Vec<Value>,
    /// When it happened, where the data says so.
    pub time: Option<Moment>,
    /// The composition that it comes from.
    pub source: Option<Arc<str>>,
}

/// The data of a model by its paths, as guides pass them on to each other.
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
    /// The place of the binding in the guide, and so of its instances in [`super::RunInput`].
    pub binding: usize,
    /// The archetype that is read.
    pub model_id: String,
    /// For one EHR, the parameter `$ehr_id`; its columns are [`BindingQuery::columns`].
    pub aql: String,
    /// For all EHRs at once: the id of the EHR stands in one more column at the end.
    pub population_aql: String,
    /// What the columns mean.
    pub columns: Vec<QueryColumn>,
}

/// The meaning of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryColumn {
    /// A value at a path of the model, and the variable that it feeds (none where only a predicate needs it).
    Value {
        /// The path in the archetype.
        path: String,
        /// The gt-code.
        variable: Option<String>,
    },
    /// The time that dates the instance, where no value column does.
    Time,
    /// The uid of the composition.
    Source,
}

/// The conditions of a binding, for the places of its columns in the query.
type Pushed<'a> = &'a dyn Fn(usize, &dyn Fn(&str) -> String) -> Vec<String>;

impl CompiledGuide {
    /// The queries of the bindings that are read (INPUT, EHR, or without type). Models that are no archetypes have none.
    pub fn queries(&self) -> Vec<BindingQuery> {
        self.queries_with(&|_, _| Vec::new())
    }

    /// The same for a run at a moment, as they should be asked: predicates leave out in the query what they would leave out
    /// afterwards anyway.
    pub fn queries_at(&self, now: Moment) -> Vec<BindingQuery> {
        self.queries_with(&|index, place| self.pushed(index, now, place))
    }

    fn queries_with(&self, pushed: Pushed<'_>) -> Vec<BindingQuery> {
        let bindings = self.guide.bindings.iter().enumerate();
        bindings.filter(|(_, b)| b.direction != Direction::Output).filter_map(|(i, _)| self.query(i, pushed)).collect()
    }

    fn query(&self, index: usize, pushed: Pushed<'_>) -> Option<BindingQuery> {
        let (binding, plan) = (self.guide.bindings.get(index)?, self.bindings.get(index)?);
        let class = class_of(&binding.model_id)?;
        let is_composition = class == "COMPOSITION";
        let mut columns = Vec::new();
        let mut select = String::new();
        let event_time = event_of(&plan.columns).map(|event| format!("{event}/time"));
        let in_event = |path: &str| match (&event_time, path) {
            (Some(time), "/data/events/time") => time.clone(),
            _ => column_path(path),
        };
        let place = |path: &str| format!("{}{}", if path.starts_with("/context/") && !is_composition { 'c' } else { 'o' }, in_event(path));
        for column in &plan.columns {
            let separator = if select.is_empty() { "" } else { ", " };
            let _ = write!(select, "{separator}{}", place(&column.path));
            let variable = column.slot.and_then(|s| self.slots.get(s)).map(|s| s.code.to_string());
            columns.push(QueryColumn::Value { path: column.path.clone(), variable });
        }
        let is_dated = plan.columns.iter().any(|c| c.path == super::gdl1::time_path(&binding.model_id));
        let time = match super::gdl1::time_path(&binding.model_id) {
            path if is_composition => format!("o{path}"),
            path @ "/context/start_time" => format!("c{path}"),
            path => format!("o{}", in_event(path)),
        };
        let composition = if is_composition { 'o' } else { 'c' };
        let separator = if select.is_empty() { "" } else { ", " };
        if !is_dated {
            columns.push(QueryColumn::Time);
            let _ = write!(select, "{separator}{time}");
        }
        columns.push(QueryColumn::Source);
        let _ = write!(select, ", {composition}/uid/value");
        let from = match is_composition {
            true => format!("COMPOSITION o[{}]", binding.model_id),
            false => format!("COMPOSITION c CONTAINS {class} o[{}]", binding.model_id),
        };
        let template = binding.template_id.as_deref().filter(|t| class_of(t).is_none());
        let template = template.map(|t| format!("{composition}/archetype_details/template_id/value='{}'", quoted(t)));
        let conditions: Vec<String> = template.into_iter().chain(pushed(index, &place)).collect();
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        Some(BindingQuery {
            id: binding.id.clone(),
            binding: index,
            model_id: binding.model_id.clone(),
            aql: format!("SELECT {select} FROM EHR e[ehr_id/value=$ehr_id] CONTAINS {from}{filter}"),
            population_aql: format!("SELECT {select}, e/ehr_id/value FROM EHR e CONTAINS {from}{filter}"),
            columns,
        })
    }

    /// Instances for every binding from data by path: an archetype that is bound twice shares its data.
    pub fn instances_of(&self, data: &[DataInstance]) -> Vec<Vec<Instance>> {
        let mut all = Vec::with_capacity(self.bindings.len());
        for (binding, plan) in self.guide.bindings.iter().zip(&self.bindings) {
            let own = data.iter().filter(|d| d.model_id == binding.model_id);
            let read = |d: &DataInstance, path: &str| d.values.iter().rev().find(|(p, _)| normal_path(p) == path).map(|(_, v)| v.clone());
            let instance = |d: &DataInstance| Instance {
                values: plan.columns.iter().map(|c| read(d, &c.path).unwrap_or_default()).collect(),
                ..Instance::default()
            };
            all.push(own.map(instance).collect());
        }
        all
    }
}

impl BindingQuery {
    /// The instances of one EHR from rows in commit order. Each row has one value for each of [`BindingQuery::columns`].
    /// Instances dated after `now` and those without any value are left out; the others come in the order of their time, undated ones first.
    pub fn instances(&self, rows: impl IntoIterator<Item = Vec<Value>>, now: Moment) -> Vec<Instance> {
        let mut instances: Vec<Instance> = rows.into_iter().map(|row| self.instance(row)).collect();
        in_order(&mut instances, now);
        instances
    }

    pub(crate) fn instance(&self, row: Vec<Value>) -> Instance {
        let mut instance = Instance { values: Vec::with_capacity(row.len()), ..Instance::default() };
        for (column, value) in self.columns.iter().zip(row) {
            match (column, value) {
                (QueryColumn::Value { path, .. }, value) => {
                    if let (Value::Moment(moment), true) = (&value, path == super::gdl1::time_path(&self.model_id)) {
                        instance.time = Some(*moment);
                    }
                    instance.values.push(value);
                }
                (QueryColumn::Time, Value::Moment(moment)) => instance.time = Some(moment),
                (QueryColumn::Source, Value::Text(uid)) => instance.source = Some(uid),
                _ => {}
            }
        }
        instance
    }
}

impl QueryColumn {
    /// The variable that the column feeds, else its path; none for columns that no statement reads.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            QueryColumn::Value { path, variable } => Some(variable.as_deref().unwrap_or(path)),
            QueryColumn::Time | QueryColumn::Source => None,
        }
    }
}

/// Leaves out what is dated after `now` or holds nothing, and brings the rest into the order of time.
pub(crate) fn in_order(instances: &mut Vec<Instance>, now: Moment) {
    instances.retain(|i| i.time.is_none_or(|t| t.millis <= now.millis) && i.values.iter().any(|v| !v.is_null()));
    instances.sort_by_key(|i| i.time.map(|t| t.millis));
}

/// The class in an archetype id such as `openEHR-EHR-OBSERVATION.body_weight.v2`; `None` for anything else.
pub fn class_of(model_id: &str) -> Option<&str> {
    let (model, concept) = model_id.split_once('.')?;
    let mut parts = model.split('-');
    let class = parts.nth(2)?;
    let is_archetype = parts.next().is_none() && !concept.is_empty() && Cls::parse(class).is_some();
    is_archetype.then_some(class)
}

/// A path in the spelling of today: `/event/time` of old guides is `/data/events/time`.
pub(crate) fn normal_path(path: &str) -> String {
    match path.trim() {
        "/event/time" => "/data/events/time".to_owned(),
        other => other.trim_end_matches('/').to_owned(),
    }
}

/// A path as a column: an ELEMENT has its data value at `/value`, an attribute of the RM stands for itself.
pub(crate) fn column_path(path: &str) -> String {
    let last = path.rsplit('/').next().unwrap_or_default();
    let name = last.split('[').next().unwrap_or_default();
    match name {
        "items" | "item" => format!("{path}/value"),
        _ => path.to_owned(),
    }
}

/// The event that all columns with an event name, such as `/data[at0001]/events[at0006]`: its time is the one meant by a
/// path without code, so that value and time come from one event.
fn event_of(columns: &[super::compile::Column]) -> Option<&str> {
    let event = |path| -> Option<&str> {
        let path: &str = path;
        let at = path.find("/events[")?;
        let end = path.get(at..)?.find(']')?;
        path.get(..=at + end)
    };
    let mut events = columns.iter().filter_map(|c| event(&c.path));
    let first = events.next()?;
    events.all(|e| e == first).then_some(first)
}

pub(crate) fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// The value of a result cell given as canonical JSON (an object with `_type`, a text, a number, a truth value or null).
/// `zone` (seconds east of UTC) counts for times that name none.
pub fn value_of_json(cell: &str, zone: i32) -> Value {
    match cell.trim().as_bytes().first() {
        Some(b'{') => quick(cell, zone).unwrap_or_else(|| read_whole(cell, zone)),
        _ => match serde_json::from_str(cell) {
            Ok(serde_json::Value::Bool(b)) => Value::Boolean(b),
            Ok(serde_json::Value::Number(n)) => n.as_f64().map_or(Value::Null, Value::Number),
            Ok(serde_json::Value::String(text)) => Value::text(&text),
            _ => Value::Null,
        },
    }
}

fn read_whole(cell: &str, zone: i32) -> Value {
    json::read(cell, Cls::ANY).ok().and_then(|tree| tree.root().map(|root| value_of(root, zone))).unwrap_or_default()
}

/// The value of an object of a class that most cells have, taken from its members; `None` where it must be read whole. A
/// population has millions of cells.
fn quick(cell: &str, zone: i32) -> Option<Value> {
    let object = Object(json::members(cell).ok()?);
    match object.text("_type")? {
        "DV_QUANTITY" => {
            let precision = object.number("precision").and_then(integer).and_then(|p| u8::try_from(p).ok()).filter(|p| *p <= 15);
            Some(Value::Quantity(Quantity { magnitude: object.number("magnitude")?, unit: Arc::from(object.text("units")?), precision }))
        }
        "DV_COUNT" => object.number("magnitude").and_then(integer).map(Value::Count),
        "DV_DATE_TIME" | "DV_DATE" => Moment::parse(object.text("value")?, zone).map(Value::Moment),
        "DV_TEXT" => object.text("value").map(Value::text),
        "DV_CODED_TEXT" => object.coded().map(|code| Value::Coded(Arc::new(code))),
        "DV_ORDINAL" => {
            let (value, symbol) = (object.number("value").and_then(integer)?, object.object("symbol")?.coded()?);
            Some(Value::Ordinal(Arc::new(Ordinal { value, symbol })))
        }
        _ => None,
    }
}

/// The members of an object, as text.
struct Object<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Object<'a> {
    fn member(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// A text without escapes.
    fn text(&self, name: &str) -> Option<&'a str> {
        self.member(name)?.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('\\'))
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.member(name)?.parse().ok()
    }

    fn object(&self, name: &str) -> Option<Object<'a>> {
        json::members(self.member(name)?).ok().map(Object)
    }

    fn coded(&self) -> Option<Coded> {
        let code = self.object("defining_code")?;
        let terminology = code.object("terminology_id")?;
        let (terminology, code) = (Arc::from(terminology.text("value")?), Arc::from(code.text("code_string")?));
        Some(Coded { terminology, code, text: Arc::from(self.text("value")?) })
    }
}

/// The value of a cell of a result; of several found at one path the first.
pub fn value_of_cell(cell: &Cell, zone: i32) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Boolean(b) => Value::Boolean(*b),
        Cell::Number(token) => token.parse().map_or(Value::Null, Value::Number),
        Cell::Text(text) => Value::text(text),
        Cell::Json(list) if list.starts_with('[') => {
            let first = json::elements(list).ok().and_then(|all| all.first().map(|first| value_of_json(first, zone)));
            first.unwrap_or_default()
        }
        Cell::Json(object) => value_of_json(object, zone),
    }
}

/// The value of a node of a document: a data value, an ELEMENT that has one, or a leaf. Anything else is null.
pub fn value_of(node: NodeRef<'_>, zone: i32) -> Value {
    if node.is_leaf() {
        return leaf(node, zone);
    }
    let text = |attr: Attr| node.text_at(attr);
    let number = |attr: Attr| text(attr).and_then(|t| t.parse::<f64>().ok());
    let precision = || number(Attr::PRECISION).and_then(integer).and_then(|p| u8::try_from(p).ok()).filter(|p| *p <= 15);
    let class = node.class();
    let found = match class {
        Cls::ELEMENT => return node.get(Attr::VALUE).map_or(Value::Null, |v| value_of(v, zone)),
        Cls::DV_QUANTITY => number(Attr::MAGNITUDE)
            .map(|magnitude| Value::Quantity(Quantity { magnitude, unit: Arc::from(text(Attr::UNITS).unwrap_or("")), precision: precision() })),
        Cls::DV_COUNT => number(Attr::MAGNITUDE).and_then(integer).map(Value::Count),
        Cls::DV_ORDINAL => node
            .get(Attr::SYMBOL)
            .zip(number(Attr::VALUE).and_then(integer))
            .map(|(symbol, value)| Value::Ordinal(Arc::new(Ordinal { value, symbol: coded(symbol) }))),
        Cls::DV_SCALE => number(Attr::VALUE).map(Value::Number),
        Cls::DV_CODED_TEXT => Some(Value::Coded(Arc::new(coded(node)))),
        Cls::CODE_PHRASE => Some(Value::Coded(Arc::new(phrase(node)))),
        Cls::DV_BOOLEAN => text(Attr::VALUE).map(|t| Value::Boolean(t == "true")),
        Cls::DV_DATE_TIME | Cls::DV_DATE | Cls::DV_TIME => text(Attr::VALUE).and_then(|t| Moment::parse(t, zone)).map(Value::Moment),
        Cls::DV_DURATION => text(Attr::VALUE).map(|t| Value::Duration(Arc::from(t))),
        Cls::DV_PROPORTION => number(Attr::NUMERATOR).zip(number(Attr::DENOMINATOR)).map(|(numerator, denominator)| {
            let kind = number(Attr::TYPE).and_then(integer).unwrap_or_default();
            Value::Proportion(Proportion { numerator, denominator, kind, precision: precision() })
        }),
        _ => text(Attr::VALUE).map(Value::text),
    };
    found.unwrap_or_default()
}

fn leaf(node: NodeRef<'_>, zone: i32) -> Value {
    use crate::rm::tree::Kind;
    match node.kind() {
        Kind::Number => node.text().parse().map_or(Value::Null, Value::Number),
        Kind::Boolean => Value::Boolean(node.text() == "true"),
        _ if node.attr() == Some(Attr::VALUE) => Moment::parse(node.text(), zone).map_or_else(|| Value::text(node.text()), Value::Moment),
        _ => Value::text(node.text()),
    }
}

fn coded(node: NodeRef<'_>) -> Coded {
    let code = node.get(Attr::DEFINING_CODE).map(phrase).unwrap_or_default();
    Coded { text: Arc::from(node.text_at(Attr::VALUE).unwrap_or("")), ..code }
}

fn phrase(node: NodeRef<'_>) -> Coded {
    Coded {
        terminology: Arc::from(node.text_along(&[Attr::TERMINOLOGY_ID, Attr::VALUE]).unwrap_or("")),
        code: Arc::from(node.text_at(Attr::CODE_STRING).unwrap_or("")),
        text: Arc::from(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_values() {
        let quantity = value_of_json(r#"{"_type":"DV_QUANTITY","magnitude":70.50,"units":"kg","precision":1}"#, 0);
        assert!(matches!(&quantity, Value::Quantity(q) if q.magnitude == 70.5 && &*q.unit == "kg" && q.precision == Some(1)));
        let coded = r#"{"_type":"DV_CODED_TEXT","value":"Yes","defining_code":{"terminology_id":{"value":"local"},"code_string":"at0005"}}"#;
        assert_eq!(value_of_json(coded, 0), Value::coded("local", "at0005", "Yes"));
        let ordinal = format!(r#"{{"_type":"DV_ORDINAL","value":2,"symbol":{coded}}}"#);
        assert_eq!(value_of_json(&ordinal, 0), Value::ordinal(2, "local", "at0005", "Yes"));
        assert_eq!(value_of_json("null", 0), Value::Null);
        assert_eq!(value_of_json("{broken", 0), Value::Null);
        assert!(matches!(value_of_json(r#"{"_type":"DV_DATE","value":"2020-02-29"}"#, 3600), Value::Moment(m) if m.offset == 3600));
        let time = r#"{"_type":"DV_DATE_TIME","value":"2020-02-29T10:00:00"}"#;
        let text = r#"{"_type":"DV_TEXT","value":"a \"b\""}"#;
        let odd = r#"{"_type":"DV_QUANTITY","magnitude":1e400,"units":"1","precision":-1}"#;
        for cell in [coded, &ordinal, time, text, odd, r#"{"_type":"DV_COUNT","magnitude":5}"#, r#"{"_type":"DV_BOOLEAN","value":true}"#] {
            assert!(quick(cell, 0).is_none_or(|value| value == read_whole(cell, 0)), "{cell}");
        }
        assert!(quick(&ordinal, 0).is_some() && quick(time, 0).is_some() && quick(text, 0).is_none());
    }

    #[test]
    fn classes_of_archetypes() {
        assert_eq!(class_of("openEHR-EHR-OBSERVATION.body_weight.v2"), Some("OBSERVATION"));
        assert_eq!(class_of("org.hl7.fhir.dstu3.model.Observation"), None);
        assert_eq!(class_of("Vital signs"), None);
    }

    #[test]
    fn elements_are_read_at_their_value() {
        assert_eq!(column_path("/data[at1]/items[at2]"), "/data[at1]/items[at2]/value");
        assert_eq!(column_path("/data/events/time"), "/data/events/time");
        assert_eq!(
            column_path("/activities[at1]/description[openEHR-EHR-ITEM_TREE.medication.v1]/items[at2]"),
            "/activities[at1]/description[openEHR-EHR-ITEM_TREE.medication.v1]/items[at2]/value"
        );
    }
}
