//! Conversion of stored values to the values of guides.

use super::time::{Moment, Precision};
use super::value::{Coded, Ordinal, Proportion, Quantity, Value, integer};
use aqlite_aql::RowValue;
use aqlite_engine::document::{Leaf, TimeText};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::json;
use aqlite_rm::number;
use aqlite_rm::time::from_unix_millis;
use aqlite_rm::tree::{Kind, NodeRef};
use hashbrown::HashSet;
use serde_json::Value as Json;
use std::borrow::Cow;
use std::sync::Arc;

/// The offset of times in the data without an offset, in seconds east of UTC, as in AQL.
pub const UTC: i32 = 0;

/// A converter of stored values. Repeated texts, such as units and codes, are stored once.
#[derive(Debug, Default)]
pub struct ValueReader {
    texts: HashSet<Arc<str>>,
}

/// A stored or received value: an object with attributes, or a leaf.
trait Stored<'a>: Copy {
    fn class(self) -> Cls;
    fn leaf(self) -> Option<Leaf<'a>>;
    fn get(self, attr: Attr) -> Option<Self>;

    fn text_at(self, attr: Attr) -> Option<Cow<'a, str>> {
        self.get(attr)?.leaf()?.as_text()
    }

    /// Returns the time at an attribute; `None` for a malformed one.
    fn moment_at(self, attr: Attr) -> Option<Value> {
        match self.get(attr)?.leaf()? {
            Leaf::Time(time) => {
                let offset = time.offset().map_or(UTC, |minutes| i32::from(minutes) * 60);
                let moment = Moment::from_millis(millis(time), offset);
                // The text of a plain time is that of its moment.
                let recorded = (!time.is_plain()).then(|| Arc::from(time.text()));
                Some(Value::Moment(moment, recorded))
            }
            leaf => Value::recorded(&leaf.as_text()?, UTC),
        }
    }

    fn number_at(self, attr: Attr) -> Option<f64> {
        match self.get(attr)?.leaf()? {
            Leaf::Number(number) => Some(number),
            _ => None,
        }
    }

    fn integer_at(self, attr: Attr) -> Option<i64> {
        self.number_at(attr).and_then(integer)
    }

    fn precision(self) -> Option<u8> {
        self.integer_at(Attr::PRECISION)
            .and_then(|p| u8::try_from(p).ok())
            .filter(|p| *p <= 15)
    }
}

impl<'b> Stored<'b> for RowValue<'b> {
    fn class(self) -> Cls {
        RowValue::class(self)
    }

    fn leaf(self) -> Option<Leaf<'b>> {
        RowValue::leaf(self)
    }

    fn get(self, attr: Attr) -> Option<RowValue<'b>> {
        RowValue::get(self, attr)
    }
}

impl<'a> Stored<'a> for NodeRef<'a> {
    fn class(self) -> Cls {
        NodeRef::class(self)
    }

    fn leaf(self) -> Option<Leaf<'a>> {
        match self.kind() {
            Kind::Object | Kind::List => None,
            Kind::Number => number::parse(self.text()).map(Leaf::Number),
            Kind::Boolean => Some(Leaf::Boolean(self.text() == "true")),
            _ => Some(Leaf::Text(self.text())),
        }
    }

    fn get(self, attr: Attr) -> Option<NodeRef<'a>> {
        NodeRef::get(self, attr)
    }
}

impl ValueReader {
    /// Converts a cell of a query result: a data value, an ELEMENT with a data value, or a leaf.
    /// Anything else becomes null.
    pub fn value(&mut self, found: RowValue<'_>) -> Value {
        if found.is_null() {
            return Value::Null;
        }
        match self.stored(found) {
            Value::Null if is_opaque(found) => {
                let original = original_of(found, &Value::Boolean(false));
                original.map_or(Value::Null, Value::Object)
            }
            value => value,
        }
    }

    fn stored<'a>(&mut self, stored: impl Stored<'a>) -> Value {
        match stored.leaf() {
            Some(Leaf::Number(number)) => Value::Number(number),
            Some(Leaf::Boolean(flag)) => Value::Boolean(flag),
            Some(Leaf::Text(text)) => Value::text(text),
            Some(Leaf::Time(time)) => Value::text(&time.text()),
            None if stored.class() == Cls::ELEMENT => stored
                .get(Attr::VALUE)
                .and_then(|value| self.object(value))
                .unwrap_or_default(),
            // An object without a data value, such as a CLUSTER, is null.
            None => self.object(stored).unwrap_or_default(),
        }
    }

    fn object<'a>(&mut self, object: impl Stored<'a>) -> Option<Value> {
        let text = || object.text_at(Attr::VALUE);
        Some(match object.class() {
            Cls::DV_QUANTITY => Value::Quantity(Quantity {
                magnitude: object.number_at(Attr::MAGNITUDE)?,
                unit: self.shared(object.text_at(Attr::UNITS).as_deref()),
                precision: object.precision(),
            }),
            Cls::DV_COUNT => Value::Count(object.integer_at(Attr::MAGNITUDE)?),
            Cls::DV_ORDINAL => {
                let (value, symbol) = (
                    object.integer_at(Attr::VALUE)?,
                    self.coded(object.get(Attr::SYMBOL)?),
                );
                Value::Ordinal(Arc::new(Ordinal { value, symbol }))
            }
            // GDL has no scale. Its rank is not an integer, so it becomes a number.
            Cls::DV_SCALE => Value::Number(object.number_at(Attr::VALUE)?),
            Cls::DV_CODED_TEXT => Value::Coded(Arc::new(self.coded(object))),
            Cls::CODE_PHRASE => Value::Coded(Arc::new(self.phrase(object, None))),
            Cls::DV_BOOLEAN => match object.get(Attr::VALUE)?.leaf()? {
                Leaf::Boolean(flag) => Value::Boolean(flag),
                _ => return None,
            },
            Cls::DV_DATE_TIME | Cls::DV_DATE | Cls::DV_TIME => {
                // A malformed time is null, so that it counts as missing.
                object.moment_at(Attr::VALUE)?
            }
            Cls::DV_DURATION => Value::Duration(Arc::from(&*text()?)),
            Cls::DV_PROPORTION => Value::Proportion(Proportion {
                numerator: object.number_at(Attr::NUMERATOR)?,
                denominator: object.number_at(Attr::DENOMINATOR)?,
                kind: object.integer_at(Attr::TYPE).unwrap_or_default(),
                precision: object.precision(),
            }),
            // Any other data value is read as its text.
            _ => Value::text(&text()?),
        })
    }

    fn coded<'a>(&mut self, object: impl Stored<'a>) -> Coded {
        match object.get(Attr::DEFINING_CODE) {
            Some(code) => self.phrase(code, object.text_at(Attr::VALUE).as_deref()),
            None => Coded {
                text: self.shared(object.text_at(Attr::VALUE).as_deref()),
                ..Coded::default()
            },
        }
    }

    fn phrase<'a>(&mut self, phrase: impl Stored<'a>, text: Option<&str>) -> Coded {
        let terminology = phrase
            .get(Attr::TERMINOLOGY_ID)
            .and_then(|id| id.text_at(Attr::VALUE));
        Coded {
            terminology: self.shared(terminology.as_deref()),
            code: self.shared(phrase.text_at(Attr::CODE_STRING).as_deref()),
            text: self.shared(text),
        }
    }

    /// Returns a shared copy of a text that is likely to occur again.
    fn shared(&mut self, text: Option<&str>) -> Arc<str> {
        let text = text.unwrap_or_default();
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.texts.insert(Arc::clone(&new));
        new
    }
}

/// Returns the milliseconds of a stored time since 1970.
fn millis(time: TimeText) -> i64 {
    (time.micros() - from_unix_millis(0)).div_euclid(1000)
}

/// Returns the milliseconds of a cell with a date or time; `None` for any other cell, and for a time
/// that is stored as text.
pub(crate) fn millis_of(found: RowValue<'_>) -> Option<i64> {
    match (found.class(), found.get(Attr::VALUE)?.leaf()?) {
        (Cls::DV_DATE_TIME | Cls::DV_DATE | Cls::DV_TIME, Leaf::Time(time)) => Some(millis(time)),
        _ => None,
    }
}

/// Returns whether a cell has a data value of a class that guides cannot read, such as DV_INTERVAL
/// or DV_IDENTIFIER. It is an object then: it exists, guides can copy it, and a note reports that
/// it cannot be compared.
fn is_opaque<'a>(stored: impl Stored<'a>) -> bool {
    match stored.class() {
        Cls::ELEMENT => stored.get(Attr::VALUE).is_some_and(is_opaque),
        class => {
            class.is_a(Cls::DV_INTERVAL)
                || matches!(
                    class,
                    Cls::DV_IDENTIFIER | Cls::DV_MULTIMEDIA | Cls::DV_STATE
                )
        }
    }
}

/// Returns the stored data value of a cell, if `value` lacks a part of it.
pub(crate) fn original_of(found: RowValue<'_>, value: &Value) -> Option<Arc<Json>> {
    let data = match found.class() {
        Cls::ELEMENT => found.get(Attr::VALUE)?,
        _ => found,
    };
    if data.is_null() || data.leaf().is_some() {
        return None;
    }
    let mut text = String::new();
    data.write_json(&mut text);
    original(serde_json::from_str(&text).ok()?, value)
}

/// Returns the stored data value of a cell in JSON, if `value` lacks a part of it.
pub(crate) fn original_of_json(cell: &str, value: &Value) -> Option<Arc<Json>> {
    let json: Json = serde_json::from_str(cell).ok()?;
    let class = json.get("_type").and_then(Json::as_str);
    let data = match class {
        Some("ELEMENT") => json.get("value")?.clone(),
        _ => json,
    };
    data.is_object().then(|| original(data, value))?
}

fn original(stored: Json, value: &Value) -> Option<Arc<Json>> {
    let is_lossless = value.is_null() || super::output::rm_json(value) == stored;
    (!is_lossless).then(|| Arc::new(stored))
}

/// Converts a cell of a result set in JSON: an object with `_type`, a text, a number, a boolean or
/// null.
pub fn value_of_json(cell: &str) -> Value {
    match cell.trim().as_bytes().first() {
        Some(b'{') => {
            let tree = json::read(cell, Cls::ANY).ok();
            let root = tree.as_ref().and_then(|tree| tree.root());
            match root {
                Some(root) if is_opaque(root) => object_of_json(cell, root.class()),
                Some(root) => ValueReader::default().stored(root),
                None => Value::Null,
            }
        }
        _ => match json::value(cell) {
            Ok(serde_json::Value::Bool(b)) => Value::Boolean(b),
            Ok(serde_json::Value::Number(n)) => n.as_f64().map_or(Value::Null, Value::Number),
            Ok(serde_json::Value::String(text)) => Value::text(&text),
            _ => Value::Null,
        },
    }
}

fn object_of_json(cell: &str, class: Cls) -> Value {
    let json = serde_json::from_str::<Json>(cell).ok();
    let data = match class {
        Cls::ELEMENT => json.and_then(|mut json| json.get_mut("value").map(Json::take)),
        _ => json,
    };
    data.map_or(Value::Null, |data| Value::Object(Arc::new(data)))
}

/// Returns the value at a path of a resource, such as `/code/coding[0]`. A code with its system
/// becomes a coded text, a text with a date or date-time a point in time.
pub(crate) fn value_at(resource: &Json, path: &str) -> Option<Value> {
    // A resource has paths of names and list indexes, not of archetypes.
    let mut at = resource;
    for step in path.split('/').filter(|step| !step.is_empty()) {
        let (name, index) = step
            .trim_end_matches(']')
            .split_once('[')
            .unwrap_or((step, ""));
        at = at.get(name)?;
        if !index.is_empty() {
            at = at.get(index.parse::<usize>().ok()?)?;
        }
    }
    let text = |name: &str| at.get(name).and_then(Json::as_str);
    Some(match at {
        Json::String(text) => {
            // A year alone is more likely a number, and a time alone needs a date.
            let is_date = text.get(4..5) == Some("-");
            let is_date = |value: &Value| {
                is_date && matches!(value, Value::Moment(m, _) if m.precision != Precision::Time)
            };
            let moment = Value::recorded(text, UTC).filter(is_date);
            moment.unwrap_or_else(|| Value::text(text))
        }
        Json::Object(_) => match text("code") {
            Some(code) => Value::coded(
                text("system").unwrap_or_default(),
                code,
                text("display").unwrap_or_default(),
            ),
            None => Value::Object(Arc::new(at.clone())),
        },
        other => value_of_json(&other.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_values() {
        let quantity = value_of_json(
            r#"{"_type":"DV_QUANTITY","magnitude":70.50,"units":"kg","precision":1}"#,
        );
        assert!(
            matches!(&quantity, Value::Quantity(q) if q.magnitude == 70.5 && &*q.unit == "kg" && q.precision == Some(1))
        );
        let coded = r#"{"_type":"DV_CODED_TEXT","value":"Yes","defining_code":{"terminology_id":{"value":"local"},"code_string":"at0005"}}"#;
        assert_eq!(value_of_json(coded), Value::coded("local", "at0005", "Yes"));
        assert_eq!(
            value_of_json(&format!(
                r#"{{"_type":"DV_ORDINAL","value":2,"symbol":{coded}}}"#
            )),
            Value::ordinal(2, "local", "at0005", "Yes")
        );
        assert_eq!(
            value_of_json(&format!(
                r#"{{"_type":"ELEMENT","archetype_node_id":"at1","value":{coded}}}"#
            )),
            Value::coded("local", "at0005", "Yes")
        );
        assert!(
            matches!(value_of_json(r#"{"_type":"DV_DATE","value":"2020-02-29"}"#), Value::Moment(m, None) if m.offset == 0)
        );
        assert!(
            matches!(value_of_json(r#"{"_type":"DV_QUANTITY","magnitude":1,"units":"1","precision":-1}"#), Value::Quantity(q) if q.precision.is_none())
        );
        assert_eq!(
            value_of_json(r#"{"_type":"DV_TEXT","value":"a \"b\""}"#),
            Value::text("a \"b\"")
        );
        assert_eq!(
            value_of_json(r#"{"_type":"DV_COUNT","magnitude":5}"#),
            Value::Count(5)
        );
        assert_eq!(
            value_of_json(r#"{"_type":"DV_BOOLEAN","value":true}"#),
            Value::Boolean(true)
        );
        let interval = r#"{"_type":"DV_INTERVAL","lower_unbounded":true,"upper_unbounded":true}"#;
        assert!(
            matches!(value_of_json(interval), Value::Object(o) if o["lower_unbounded"] == true)
        );
        for (cell, value) in [
            ("null", Value::Null),
            ("{broken", Value::Null),
            ("5", Value::Number(5.0)),
            ("\"a\"", Value::text("a")),
            ("true", Value::Boolean(true)),
        ] {
            assert_eq!(value_of_json(cell), value, "{cell}");
        }
    }
}
