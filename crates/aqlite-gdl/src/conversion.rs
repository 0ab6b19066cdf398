//! Conversion of units in comparisons. A run parses each pair of units once.

use super::budget::Budget;
use super::time::TimeUnit;
use super::value::{Quantity, Value};
use aqlite_rm::number;
use aqlite_rm::units::{self, Conversion, MAX_LENGTH};
use hashbrown::HashMap;
use std::cell::RefCell;
use std::sync::Arc;

/// The steps of a conversion: a lookup of the units, and a magnitude that is rounded as a text.
const STEPS: usize = 50;

/// The steps of a lookup of units in their tables.
const LOOKUP_STEPS: usize = 500;

/// The steps of parsing a byte of a unit. Brackets and exponents make the most expensive units, with
/// some microseconds for a byte.
const BYTE_STEPS: usize = 100;

/// The conversions that a run has looked up, by unit and resulting unit. `None` for units that do not
/// convert.
#[derive(Default)]
pub(crate) struct Conversions(RefCell<HashMap<UnitPair, Option<Conversion>>>);

#[derive(PartialEq, Eq, Hash)]
struct UnitPair {
    from: Arc<str>,
    to: Arc<str>,
}

impl Conversions {
    /// Converts a quantity to the unit of another. `None` if UCUM has no factor between the units,
    /// if nothing needs to be converted, or if the budget is exceeded. Units of time are left to the
    /// calendar.
    pub fn in_unit_of(&self, other: &Value, value: &Value, budget: &Budget) -> Option<Value> {
        let (Value::Quantity(wanted), Value::Quantity(given)) = (other, value) else {
            return None;
        };
        let is_time = |unit: &str| TimeUnit::parse(unit).is_some();
        if wanted.unit == given.unit || (is_time(&wanted.unit) && is_time(&given.unit)) {
            return None;
        }
        // No unit is longer, and a longer text would be expensive as a key.
        if wanted.unit.len().max(given.unit.len()) > MAX_LENGTH {
            return None;
        }
        let conversion = self.conversion(given.unit.clone(), wanted.unit.clone(), budget)?;
        let magnitude = Some(conversion.apply(given.magnitude)).filter(|m| m.is_finite())?;
        Some(Value::Quantity(Quantity {
            magnitude: rounded(magnitude)?,
            unit: wanted.unit.clone(),
            precision: None,
        }))
    }

    fn conversion(&self, from: Arc<str>, to: Arc<str>, budget: &Budget) -> Option<Conversion> {
        if !budget.spend_steps(STEPS) {
            return None;
        }
        let pair = UnitPair { from, to };
        if let Some(known) = self.0.borrow().get(&pair) {
            return *known;
        }
        let bytes = pair.from.len() + pair.to.len();
        if !budget.spend_steps(LOOKUP_STEPS + BYTE_STEPS * bytes) {
            return None;
        }
        let found = units::conversion(&pair.from, &pair.to);
        self.0.borrow_mut().insert(pair, found);
        found
    }
}

/// Rounds to twelve significant digits: enough for any measurement, fewer than the error of a
/// double.
///
/// Factors and offsets are decimal, doubles are not. Without rounding, 98.6 `[degF]` would be slightly
/// more than 37 `Cel`.
fn rounded(magnitude: f64) -> Option<f64> {
    let decimals = if magnitude == 0.0 {
        0.0
    } else {
        (11.0 - magnitude.abs().log10().floor()).clamp(0.0, 300.0)
    };
    number::parse(&number::fixed(magnitude, decimals as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Limits;

    #[test]
    fn a_pair_of_units_is_looked_up_once_and_costs_the_work_of_its_bytes() {
        let budget = Budget::new(Limits::default());
        let conversions = Conversions::default();
        let celsius = Value::quantity(37.0, "Cel");
        let convert = |fahrenheit: f64| {
            let before = budget.spent().steps;
            let given = Value::quantity(fahrenheit, "[degF]");
            let converted = conversions.in_unit_of(&celsius, &given, &budget);
            let number = converted.as_ref().and_then(Value::number);
            (number, budget.spent().steps - before)
        };
        // `[degF]` and `Cel` have nine bytes.
        assert_eq!(convert(98.6), (Some(37.0), 50 + 500 + 9 * 100));
        assert_eq!(convert(212.0), (Some(100.0), 50));
    }
}
