//! Units by physical property, with their UCUM codes, and conversion between units.
//!
//! Source: property and unit data of the openEHR terminology (© openEHR Foundation,
//! specifications-TERM, CC BY-SA 3.0), without its factors: several of them are wrong. Factors are
//! computed from the definitions of UCUM, see [`convert`]. Two codes that lack a letter (`l/min`,
//! cubic feet per minute) are corrected. The unit of a stored value is never rewritten: the table
//! serves validation and explicit conversion.

mod ucum;

use crate::order;
use std::sync::LazyLock;
pub use ucum::{Conversion, MAX_LENGTH};

/// The table: property, text, UCUM code if it differs. One line for each unit.
const TABLE: &str = include_str!("units.tsv");

/// A unit of measurement of a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// The openEHR code of the property: `122` is length.
    pub property: &'static str,
    /// The conventional spelling.
    pub text: &'static str,
    /// The UCUM code. Equal to `text` if the table has no other.
    pub ucum: &'static str,
}

/// The units of the table, ordered by property.
static UNITS: LazyLock<Vec<Unit>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(unit).collect()
});

/// The units by text and by UCUM code, ascending. Units of one name have the order of the table.
static BY_NAME: LazyLock<Vec<(&'static str, Unit)>> = LazyLock::new(|| {
    let codes = UNITS.iter().filter(|unit| unit.ucum != unit.text);
    let codes = codes.map(|unit| (unit.ucum, *unit));
    let texts = UNITS.iter().map(|unit| (unit.text, *unit));
    let mut names: Vec<(&str, Unit)> = texts.chain(codes).collect();
    order::sort_by_key(&mut names, |(name, _)| *name);
    names
});

/// Returns every unit of the table, ordered by property.
pub fn all() -> impl Iterator<Item = Unit> {
    UNITS.iter().copied()
}

/// Returns the units of a property, given by its openEHR code.
pub fn for_property(property: &str) -> impl Iterator<Item = Unit> {
    all().filter(move |unit| unit.property == property)
}

/// Returns the units with this text or UCUM code.
fn named(name: &str) -> impl Iterator<Item = Unit> {
    let first = BY_NAME.partition_point(|(other, _)| *other < name);
    let units = BY_NAME.iter().skip(first);
    units
        .take_while(move |(other, _)| *other == name)
        .map(|(_, unit)| *unit)
}

/// Returns whether a unit, given as text or UCUM code, measures a property.
///
/// Returns `None` if the table does not have the unit or the property, because UCUM allows more
/// units than any table lists.
pub fn measures(units: &str, property: &str) -> Option<bool> {
    let mut known = named(units).peekable();
    // An unknown unit or property yields `None`: nothing is known about the pair.
    known.peek()?;
    for_property(property).next()?;
    Some(known.any(|unit| unit.property == property))
}

/// Converts a magnitude to another unit of the same dimension and kind.
///
/// Units are given by UCUM code or by the text of the table. Returns `None` if a unit is unknown, has
/// no fixed factor (months, years), is ambiguous, or does not measure the same as the other. A mass
/// per mass is no percentage, an equivalent no mole, and a torque no energy.
///
/// ```
/// use aqlite_rm::units::convert;
///
/// assert_eq!(convert(2.0, "h", "min"), Some(120.0));
/// assert_eq!(convert(0.0, "K", "Cel"), Some(-273.15));
/// assert_eq!(convert(1.0, "kg", "m"), None);
/// ```
pub fn convert(magnitude: f64, from: &str, to: &str) -> Option<f64> {
    conversion(from, to).map(|conversion| conversion.apply(magnitude))
}

/// Returns the conversion between two units, for the magnitudes that [`convert`] converts. Parsing
/// the units costs much more than applying the conversion.
///
/// ```
/// let conversion = aqlite_rm::units::conversion("h", "min");
/// assert_eq!(conversion.map(|c| c.apply(2.0)), Some(120.0));
/// ```
pub fn conversion(from: &str, to: &str) -> Option<Conversion> {
    let (from, to) = (code_of(from)?, code_of(to)?);
    share_property(from, to).then(|| ucum::conversion(from, to))?
}

/// Returns the UCUM code of a unit. `None` if a text of the table is also the code of another unit:
/// `ft` is a foot there, and a femtotonne in UCUM.
fn code_of(name: &str) -> Option<&str> {
    let code = named(name).find(|unit| unit.text == name);
    let code = code.map(|unit| unit.ucum);
    let Some(code) = code.filter(|code| *code != name) else {
        return Some(name);
    };
    let is_equal = || ucum::conversion(name, code).is_some_and(|c| c.apply(1.0) == 1.0);
    let is_other = ucum::is_known(name) && !is_equal();
    (!is_other).then_some(code)
}

/// Returns whether two units belong to one property, as far as the table has them. Units of one
/// dimension may differ in kind: `N.m` is the unit of a torque, `J` that of an energy.
fn share_property(a: &str, b: &str) -> bool {
    // The table separates mass concentration (119) from density (350).
    let properties = |name: &str| -> Vec<&'static str> {
        let known = named(name).map(|unit| unit.property);
        known.map(|p| if p == "350" { "119" } else { p }).collect()
    };
    let (a, b) = (properties(a), properties(b));
    a.is_empty() || b.is_empty() || a.iter().any(|property| b.contains(property))
}

fn unit(line: &'static str) -> Option<Unit> {
    let mut cells = line.split('\t');
    let (property, text) = (cells.next()?, cells.next()?);
    let ucum = cells.next().filter(|code| !code.is_empty()).unwrap_or(text);
    Some(Unit {
        property,
        text,
        ucum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_measure_their_property() {
        for (units, property, expected) in [
            ("cm", "122", Some(true)),
            ("mg", "122", Some(false)),
            ("mm[Hg]", "125", Some(true)),
            ("Cel", "127", Some(true)),
            ("°C", "127", Some(true)),
            ("furlong", "122", None),
            ("cm", "99999", None),
        ] {
            assert_eq!(measures(units, property), expected, "{units} {property}");
        }
        assert!(for_property("122").count() > 10);
    }

    #[test]
    fn convert_requires_a_common_property() {
        let close = |found: Option<f64>, expected: f64| {
            assert!(
                found.is_some_and(|f| (f - expected).abs() < 1e-9 * expected.abs().max(1.0)),
                "{found:?} {expected}"
            )
        };
        close(convert(180.0, "cm", "m"), 1.8);
        close(convert(37.0, "Cel", "[degF]"), 98.6);
        close(convert(0.0, "K", "Cel"), -273.15);
        close(convert(2.0, "h", "min"), 120.0);
        close(convert(5.0, "kg", "g"), 5000.0);
        assert_eq!(convert(1.0, "kg", "m"), None);
        assert_eq!(convert(1.0, "mo", "d"), None);
        assert_eq!(convert(1.0, "N.m", "J"), None);
        assert_eq!(convert(1.0, "ft", "m"), None);
        close(convert(1.0, "mmHg", "kPa"), 0.133322);
        close(convert(1.0, "l/min", "ml/s"), 50.0 / 3.0);
        close(convert(1.0, "°C", "K"), 274.15);
        close(convert(1.0, "IU", "m[iU]"), 1000.0);
    }

    #[test]
    fn every_line_of_the_table_is_valid() {
        for unit in all() {
            assert!(
                !unit.text.is_empty() && unit.property.bytes().all(|b| b.is_ascii_digit()),
                "{unit:?}"
            );
        }
        assert!(all().count() > 450);
    }
}
