//! The comparison of rows with the expected ones, by the rules of the corpus.

use serde_json::{Map, Value};

/// The rules for the rows of one case.
#[derive(Default)]
pub struct Rules {
    ordered: bool,
    ignore_case: bool,
    ignore_columns: Vec<usize>,
    ignore_keys: Vec<String>,
}

impl Rules {
    /// Reads the member `compare` of a case. Without it, order is not compared.
    pub fn of(case: &Value) -> Rules {
        let compare = case.get("compare");
        let list = |key: &str| {
            compare
                .and_then(|c| c.get(key))
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        Rules {
            ordered: compare
                .and_then(|c| c.get("row_order"))
                .and_then(Value::as_str)
                == Some("ordered"),
            ignore_case: compare
                .and_then(|c| c.get("ignore_string_case"))
                .and_then(Value::as_bool)
                .unwrap_or(false),
            ignore_columns: list("ignore_columns")
                .iter()
                .filter_map(Value::as_u64)
                .filter_map(|n| usize::try_from(n).ok())
                .collect(),
            ignore_keys: list("ignore_top_level_keys_in_object_cells")
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Compares all rows.
    pub fn compare(&self, expected: &[Value], found: &[Value]) -> Result<(), String> {
        if expected.len() != found.len() {
            return Err(format!(
                "{} rows instead of {}: {}",
                found.len(),
                expected.len(),
                short(&Value::from(found.to_vec()))
            ));
        }
        if self.ordered {
            self.in_order(expected, found)
        } else {
            self.as_multiset(expected, found)
        }
    }

    /// Compares the expected ordered rows with the found ones among them.
    pub fn compare_filtered(&self, expected: &[Value], found: &[Value]) -> Result<(), String> {
        let mut kept = found.to_vec();
        kept.retain(|row| expected.iter().any(|e| self.same_row(e, row)));
        self.in_order(expected, &kept)
    }

    fn in_order(&self, expected: &[Value], found: &[Value]) -> Result<(), String> {
        match expected
            .iter()
            .zip(found)
            .position(|(e, f)| !self.same_row(e, f))
        {
            Some(at) => Err(format!(
                "row {at} is {} instead of {}",
                of(found, at),
                of(expected, at)
            )),
            None if expected.len() != found.len() => Err(format!(
                "{} rows instead of {}",
                found.len(),
                expected.len()
            )),
            None => Ok(()),
        }
    }

    fn as_multiset(&self, expected: &[Value], found: &[Value]) -> Result<(), String> {
        let mut left: Vec<&Value> = found.iter().collect();
        for row in expected {
            match left.iter().position(|f| self.same_row(row, f)) {
                Some(at) => drop(left.swap_remove(at)),
                None => {
                    return Err(format!(
                        "the row {} is missing; left are {}",
                        short(row),
                        left.iter()
                            .take(2)
                            .map(|r| short(r))
                            .collect::<Vec<_>>()
                            .join(" ")
                    ));
                }
            }
        }
        Ok(())
    }

    fn same_row(&self, expected: &Value, found: &Value) -> bool {
        let (Some(expected), Some(found)) = (expected.as_array(), found.as_array()) else {
            return false;
        };
        expected.len() == found.len()
            && expected
                .iter()
                .zip(found)
                .enumerate()
                .all(|(i, (e, f))| self.ignore_columns.contains(&i) || self.same_cell(e, f))
    }

    fn same_cell(&self, expected: &Value, found: &Value) -> bool {
        match (expected, found) {
            (Value::Object(e), Value::Object(f)) => {
                let without = |object: &Map<String, Value>| {
                    object
                        .iter()
                        .filter(|(k, _)| !self.ignore_keys.contains(k))
                        .map(|(k, v)| (k.clone(), v.clone()))
                        .collect()
                };
                self.same_object(&without(e), &without(f))
            }
            _ => self.same(expected, found),
        }
    }

    fn same(&self, expected: &Value, found: &Value) -> bool {
        match (expected, found) {
            (Value::String(e), f) if e.starts_with("@RESP") => !f.is_null(),
            (Value::String(e), Value::String(f)) if e.starts_with("@time_") => is_time(f),
            (Value::String(e), Value::String(f)) if self.ignore_case => {
                e.to_lowercase() == f.to_lowercase()
            }
            (Value::Number(e), Value::Number(f)) => e == f || e.as_f64() == f.as_f64(),
            (Value::Array(e), Value::Array(f)) => {
                e.len() == f.len() && e.iter().zip(f).all(|(e, f)| self.same(e, f))
            }
            (Value::Object(e), Value::Object(f)) => self.same_object(e, f),
            _ => expected == found,
        }
    }

    /// Compares objects. A missing `_type` is the declared one, empty attributes may be absent, and
    /// a server may omit or add `uid`.
    fn same_object(&self, expected: &Map<String, Value>, found: &Map<String, Value>) -> bool {
        let keys = expected
            .keys()
            .chain(found.keys().filter(|k| !expected.contains_key(*k)));
        keys.into_iter().all(|key| {
            match (
                expected.get(key).filter(|v| !is_empty(v)),
                found.get(key).filter(|v| !is_empty(v)),
            ) {
                (Some(e), Some(f)) => self.same(e, f),
                (None, None) => true,
                _ => matches!(key.as_str(), "_type" | "uid"),
            }
        })
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(Map::is_empty)
}

/// Returns whether a text is an ISO 8601 date and time.
pub fn is_time(text: &str) -> bool {
    text.len() >= 16 && text.get(4..5) == Some("-") && text.get(10..11) == Some("T")
}

fn of(rows: &[Value], at: usize) -> String {
    rows.get(at).map_or_else(String::new, short)
}

/// Prints a value, cut after a line or two.
pub fn short(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}
