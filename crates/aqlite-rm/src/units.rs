//! Units by physical property, with their UCUM codes and conversion factors.
//!
//! Source: property and unit data of the openEHR terminology (© openEHR Foundation,
//! specifications-TERM, CC BY-SA 3.0). Offsets and factors of temperatures are those of UCUM. The
//! unit of a stored value is never rewritten: the table serves validation and explicit conversion.

use super::number;

/// The table: property, text, UCUM code if it differs, factor, offset. One line for each unit.
const TABLE: &str = include_str!("units.tsv");

/// A unit of measurement of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The openEHR code of the property: `122` is length.
    pub property: &'static str,
    /// The conventional spelling.
    pub text: &'static str,
    /// The UCUM code. Equal to `text` if the table has no other.
    pub ucum: &'static str,
    /// The factor to the base unit of the property, if it is constant.
    pub factor: Option<f64>,
    /// The offset of zero in the base unit: 273.15 for `Cel`.
    pub offset: f64,
}

/// Returns every unit of the table, ordered by property.
pub fn all() -> impl Iterator<Item = Unit> {
    TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(unit)
}

/// Returns the units of a property, given by its openEHR code.
pub fn for_property(property: &str) -> impl Iterator<Item = Unit> {
    all().filter(move |unit| unit.property == property)
}

/// Returns whether a unit, given as text or UCUM code, measures a property.
///
/// Returns `None` if the table does not have the unit or the property, because UCUM allows more
/// units than any table lists.
pub fn measures(units: &str, property: &str) -> Option<bool> {
    let mut known = all().filter(|unit| unit.is(units)).peekable();
    // An unknown unit or property yields `None`: nothing is known about the pair.
    known.peek()?;
    for_property(property).next()?;
    Some(known.any(|unit| unit.property == property))
}

/// Converts a magnitude to another unit of the same property.
///
/// Units are given by UCUM code or by the text of the table. The result has the precision of a
/// double. Returns `None` if a unit is unknown or has no factor.
///
/// ```
/// use aqlite_rm::units::convert;
///
/// assert_eq!(convert(2.0, "h", "min"), Some(120.0));
/// assert_eq!(convert(0.0, "K", "Cel"), Some(-273.15));
/// assert_eq!(convert(1.0, "kg", "m"), None);
/// ```
pub fn convert(magnitude: f64, from: &str, to: &str) -> Option<f64> {
    let pairs = all().filter(|unit| unit.is(from)).flat_map(|a| {
        all()
            .filter(move |b| b.is(to) && b.property == a.property)
            .map(move |b| (a, b))
    });
    pairs
        // The offset is in the base unit: it is added to convert to the base, and subtracted to
        // convert from it.
        .filter_map(|(a, b)| Some((magnitude * a.factor? + a.offset - b.offset) / b.factor?))
        .next()
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
    Some(Unit {
        property,
        text,
        ucum,
        factor,
        offset: number().unwrap_or_default(),
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
    }

    #[test]
    fn every_line_of_the_table_is_valid() {
        for unit in all() {
            assert!(
                !unit.text.is_empty() && unit.property.bytes().all(|b| b.is_ascii_digit()),
                "{unit:?}"
            );
            assert!(
                unit.factor.is_none_or(|f| f.is_finite() && f > 0.0),
                "{unit:?}"
            );
        }
        assert!(all().count() > 450);
    }
}
