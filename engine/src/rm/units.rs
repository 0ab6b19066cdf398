//! Units by the physical property that they measure, with their UCUM codes and factors.
//!
//! Facts from the property and unit data of the openEHR terminology (© openEHR Foundation, specifications-TERM,
//! CC BY-SA 3.0); the offsets and factors of temperatures are UCUM's. The unit of a value is never rewritten: what is
//! known here serves validation, and conversion where somebody asks for it.

use super::number;

/// The table: property, text, UCUM code where it is another, factor, offset.
const TABLE: &str = include_str!("units.tsv");

/// A unit of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The openEHR code of the property: `122` is length.
    pub property: &'static str,
    /// How people write it.
    pub text: &'static str,
    /// Its UCUM code; the text where the table has no other.
    pub ucum: &'static str,
    /// What one of it is in the base unit of the property, where that is fixed.
    pub factor: Option<f64>,
    /// What zero of it is in the base unit: 273.15 for `Cel`.
    pub offset: f64,
}

/// Every unit of the table, in the order of properties.
pub fn all() -> impl Iterator<Item = Unit> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(unit)
}

/// The units of a property, by its openEHR code; none where the table has nothing of it.
pub fn of_property(property: &str) -> impl Iterator<Item = Unit> {
    all().filter(move |unit| unit.property == property)
}

/// Whether a unit, as text or UCUM code, measures a property; `None` where the table does not know the unit or has no
/// unit of the property, for UCUM can build more than any table lists.
pub fn measures(units: &str, property: &str) -> Option<bool> {
    let mut known = all().filter(|unit| unit.is(units)).peekable();
    known.peek()?;
    of_property(property).next()?;
    Some(known.any(|unit| unit.property == property))
}

/// A magnitude in another unit of the same property; `None` where one of them is unknown or the table has no factor.
///
/// Units go by UCUM code or by the text of the table; the digits are those of a double.
///
/// ```
/// use aqlite_engine::rm::units::convert;
///
/// assert_eq!(convert(2.0, "h", "min"), Some(120.0));
/// assert_eq!(convert(0.0, "K", "Cel"), Some(-273.15));
/// assert_eq!(convert(1.0, "kg", "m"), None);
/// ```
pub fn convert(magnitude: f64, from: &str, to: &str) -> Option<f64> {
    let pairs = all().filter(|unit| unit.is(from)).flat_map(|a| all().filter(move |b| b.is(to) && b.property == a.property).map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| Some((magnitude * a.factor? + a.offset - b.offset) / b.factor?)).next()
}

impl Unit {
    fn is(&self, name: &str) -> bool {
        self.ucum == name || self.text == name
    }
}

fn unit(line: &'static str) -> Option<Unit> {
    let mut cells = line.split('\t');
    let (property, text) = (cells.next()?, cells.next()?);
    let ucum = cells.next().filter(|code| !code.is_empty()).unwrap_or(text);
    let mut number = || cells.next().and_then(number::parse);
    let factor = number();
    Some(Unit { property, text, ucum, factor, offset: number().unwrap_or_default() })
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
        assert!(of_property("122").count() > 10);
    }

    #[test]
    fn conversion_is_within_a_property() {
        let close = |found: Option<f64>, expected: f64| {
            assert!(found.is_some_and(|f| (f - expected).abs() < 1e-9 * expected.abs().max(1.0)), "{found:?} {expected}")
        };
        close(convert(180.0, "cm", "m"), 1.8);
        close(convert(37.0, "Cel", "[degF]"), 98.6);
        close(convert(0.0, "K", "Cel"), -273.15);
        close(convert(2.0, "h", "min"), 120.0);
        close(convert(5.0, "kg", "g"), 5000.0);
        assert_eq!(convert(1.0, "kg", "m"), None);
        assert_eq!(convert(1.0, "mo", "d"), None);
    }

    #[test]
    fn every_line_is_a_unit() {
        for unit in all() {
            assert!(!unit.text.is_empty() && unit.property.bytes().all(|b| b.is_ascii_digit()), "{unit:?}");
            assert!(unit.factor.is_none_or(|f| f.is_finite() && f > 0.0), "{unit:?}");
        }
        assert!(all().count() > 450);
    }
}
