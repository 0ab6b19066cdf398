//! Factors between units, computed from their UCUM expressions.
//!
//! Source: UCUM 2.1 (sections 2.1 to 2.4 for the grammar, the tables of units for the definitions).
//! The table has the units of clinical data, not all of UCUM; a year and a month are left out because
//! they have no fixed length. Quantities that UCUM equates but medicine does not have base units of
//! their own here: amount of substance, equivalents, osmoles, absorbed dose, dose equivalent,
//! radioactivity and arbitrary units.

use crate::order;
use std::sync::{LazyLock, OnceLock};

/// The units: a name, `*` if the unit takes prefixes, and the definition. Base units have none.
const TABLE: &str = include_str!("ucum.txt");

/// The number of base units, which are the first lines of the table.
const BASES: usize = 16;
const MASS: usize = 1;
const LENGTH: usize = 0;
const AMOUNT: usize = 3;

const PREFIXES: [(&str, i32); 22] = [
    ("da", 1),
    ("Y", 24),
    ("Z", 21),
    ("E", 18),
    ("P", 15),
    ("T", 12),
    ("G", 9),
    ("M", 6),
    ("k", 3),
    ("h", 2),
    ("d", -1),
    ("c", -2),
    ("m", -3),
    ("u", -6),
    ("\u{b5}", -6),
    ("\u{3bc}", -6),
    ("n", -9),
    ("p", -12),
    ("f", -15),
    ("a", -18),
    ("z", -21),
    ("y", -24),
];

/// The maximum length of a unit in bytes. It bounds the depth of brackets and the work of parsing.
pub const MAX_LENGTH: usize = 100;
/// The maximum magnitude of an exponent of a unit or of ten.
const MAX_EXPONENT: i32 = 40;

/// A conversion between two units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conversion {
    /// The zero of a scale of temperature in kelvins of its degree; 0 for other units.
    zero: f64,
    numerator: f64,
    denominator: f64,
    /// The power of ten that does not fit into the fraction; 1 if it fits.
    power: f64,
    /// The zero of the scale of the result.
    zero_of_result: f64,
}

impl Conversion {
    /// Converts a magnitude.
    pub fn apply(&self, magnitude: f64) -> f64 {
        let fraction = (magnitude + self.zero) * self.numerator / self.denominator;
        fraction * self.power - self.zero_of_result
    }
}

/// Returns the conversion between units of one dimension and one kind. `None` if a unit is unknown,
/// or if the two do not measure the same.
pub(super) fn conversion(from: &str, to: &str) -> Option<Conversion> {
    let (a, b) = (Measure::parse(from)?, Measure::parse(to)?);
    if !a.is_like(&b) {
        return None;
    }
    // A temperature on a scale with a zero of its own is converted by way of kelvin.
    let kelvins = |unit: &str| match unit {
        "Cel" => Some(273.15),
        "[degF]" => Some(459.67),
        _ => None,
    };
    // A scale within a larger unit, or with an annotation, has no meaning that UCUM defines.
    let is_scale = |unit: &str| unit.contains("Cel") || unit.contains("[degF]");
    if [from, to]
        .iter()
        .any(|unit| is_scale(unit) && kelvins(unit).is_none())
    {
        return None;
    }
    let ratio = a.factor.times(b.factor.inverse()?)?;
    let ratio = ratio.rounded();
    Some(Conversion {
        zero: kelvins(from).unwrap_or_default(),
        numerator: ratio.numerator,
        denominator: ratio.denominator,
        power: ratio.power,
        zero_of_result: kelvins(to).unwrap_or_default(),
    })
}

/// Returns whether a text is the expression of a known unit.
pub(super) fn is_known(unit: &str) -> bool {
    Measure::parse(unit).is_some()
}

/// A positive rational number times a power of ten.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Factor {
    numerator: u128,
    denominator: u128,
    exponent: i32,
}

impl Factor {
    const ONE: Factor = Factor::ten(0);

    const fn ten(exponent: i32) -> Factor {
        Factor {
            numerator: 1,
            denominator: 1,
            exponent,
        }
    }

    fn inverse(self) -> Option<Factor> {
        (self.numerator != 0).then_some(Factor {
            numerator: self.denominator,
            denominator: self.numerator,
            exponent: -self.exponent,
        })
    }

    /// Multiplies exactly. `None` if the product does not fit.
    fn times(self, other: Factor) -> Option<Factor> {
        let numerator = self.numerator.checked_mul(other.numerator)?;
        let denominator = self.denominator.checked_mul(other.denominator)?;
        let divisor = common_divisor(numerator, denominator);
        Some(Factor {
            numerator: numerator.checked_div(divisor)?,
            denominator: denominator.checked_div(divisor)?,
            exponent: self.exponent.checked_add(other.exponent)?,
        })
    }

    /// Returns the fraction and a power of ten as doubles. The power joins the fraction while it
    /// fits, so that a product has one rounding for each of its two operations.
    #[allow(clippy::cast_precision_loss)]
    fn rounded(self) -> RoundedFactor {
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let grown = |n: u128| power.and_then(|power| n.checked_mul(power));
        let whole = match self.exponent >= 0 {
            true => grown(self.numerator).map(|n| (n, self.denominator)),
            false => grown(self.denominator).map(|d| (self.numerator, d)),
        };
        let ((numerator, denominator), power) = match whole {
            Some(whole) => (whole, 1.0),
            None => (
                (self.numerator, self.denominator),
                10_f64.powi(self.exponent),
            ),
        };
        RoundedFactor {
            numerator: numerator as f64,
            denominator: denominator as f64,
            power,
        }
    }
}

/// A factor as doubles: a fraction, and a power of ten.
struct RoundedFactor {
    numerator: f64,
    denominator: f64,
    power: f64,
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a.checked_rem(b).unwrap_or_default());
    }
    a
}

/// A unit in terms of base units.
#[derive(Clone, PartialEq, Debug)]
struct Measure<'u> {
    factor: Factor,
    /// The exponents of the base units in the numerator and in the denominator.
    above: [i32; BASES],
    below: [i32; BASES],
    annotations: Vec<&'u str>,
}

impl<'u> Measure<'u> {
    fn number(factor: Factor) -> Measure<'u> {
        Measure {
            factor,
            above: [0; BASES],
            below: [0; BASES],
            annotations: Vec::new(),
        }
    }

    fn parse(unit: &'u str) -> Option<Measure<'u>> {
        let mut rest = unit;
        let parsed =
            (unit.len() <= MAX_LENGTH && !unit.is_empty()).then(|| product(&mut rest))??;
        rest.is_empty().then_some(parsed)
    }

    /// Returns whether two units have one dimension and one kind.
    ///
    /// Annotations and what cancels out decide the kind: a mass per mass is no percentage, and a
    /// rate of heart beats is no rate of breaths.
    fn is_like(&self, other: &Measure<'_>) -> bool {
        let dimension = |m: &Measure<'_>, base: usize| {
            let at = |list: &[i32; BASES]| list.get(base).copied().unwrap_or_default();
            (at(&m.above) - at(&m.below), at(&m.above).min(at(&m.below)))
        };
        let same = |base: usize| {
            let ((a, cancelled), (b, other_cancelled)) =
                (dimension(self, base), dimension(other, base));
            // Length cancels out in pressure, for example, where a mass determines the kind.
            let determines = match base {
                MASS | AMOUNT => true,
                LENGTH => a == 0 && dimension(self, MASS).0 == 0,
                _ => false,
            };
            a == b && (!determines || cancelled == other_cancelled)
        };
        (0..BASES).all(same) && self.annotations == other.annotations
    }

    fn times(mut self, other: Measure<'u>) -> Option<Measure<'u>> {
        self.factor = self.factor.times(other.factor)?;
        let add = |to: &mut [i32; BASES], from: [i32; BASES]| {
            to.iter_mut().zip(from).for_each(|(a, b)| *a += b);
        };
        add(&mut self.above, other.above);
        add(&mut self.below, other.below);
        self.annotations.extend(other.annotations);
        Some(self)
    }

    /// Raises to a power by squaring: an expression may have dozens of great exponents.
    fn power(self, exponent: i32) -> Option<Measure<'u>> {
        let mut square = match exponent < 0 {
            true => self.inverse()?,
            false => self,
        };
        let mut product = Measure::number(Factor::ONE);
        let mut rest = exponent.unsigned_abs();
        loop {
            if rest & 1 == 1 {
                product = product.times(square.clone())?;
            }
            rest >>= 1;
            // No square is greater than the product, so none fails to fit alone.
            if rest == 0 {
                return Some(product);
            }
            let twin = square.clone();
            square = square.times(twin)?;
        }
    }

    fn inverse(mut self) -> Option<Measure<'u>> {
        self.factor = self.factor.inverse()?;
        std::mem::swap(&mut self.above, &mut self.below);
        Some(self)
    }

    /// Cancels base units. The definition of a unit with a name of its own, such as the watt, does not
    /// decide its kind.
    fn reduced(mut self) -> Measure<'u> {
        for (above, below) in self.above.iter_mut().zip(&mut self.below) {
            let common = (*above).min(*below);
            *above -= common;
            *below -= common;
        }
        self
    }
}

/// Parses components joined by `.` and `/`. Each `/` applies to the next component only.
fn product<'u>(rest: &mut &'u str) -> Option<Measure<'u>> {
    let mut measure = Measure::number(Factor::ONE);
    let mut divides = eat(rest, "/");
    loop {
        let next = component(rest)?;
        measure = measure.times(if divides { next.inverse()? } else { next })?;
        divides = eat(rest, "/");
        if !divides && !eat(rest, ".") {
            return Some(measure);
        }
    }
}

fn component<'u>(rest: &mut &'u str) -> Option<Measure<'u>> {
    let mut measure = if eat(rest, "(") {
        let inner = product(rest)?;
        eat(rest, ")").then_some(inner)?
    } else if eat(rest, "10*") || eat(rest, "10^") {
        Measure::number(Factor::ten(exponent(rest)?.unwrap_or(1)))
    } else if rest.starts_with(|c: char| c.is_ascii_digit()) {
        let digits = taken(rest, |c| c.is_ascii_digit());
        Measure::number(Factor {
            numerator: digits.parse::<u64>().ok()?.into(),
            ..Factor::ONE
        })
    } else if rest.starts_with('{') {
        Measure::number(Factor::ONE)
    } else {
        let unit = named(symbol(rest))?;
        unit.power(exponent(rest)?.unwrap_or(1))?
    };
    if eat(rest, "{") {
        let (annotation, after) = rest.split_once('}')?;
        measure.annotations.push(annotation);
        *rest = after;
    }
    Some(measure)
}

/// Consumes the name of a unit, in which square brackets may enclose digits.
fn symbol<'u>(rest: &mut &'u str) -> &'u str {
    let mut enclosed = false;
    taken(rest, |c| {
        enclosed = (enclosed || c == '[') && c != ']';
        enclosed || !(c.is_ascii_digit() || "./(){}+-".contains(c))
    })
}

/// Consumes an exponent. `Some(None)` if there is none, `None` if it is too great.
#[allow(clippy::option_option)]
fn exponent(rest: &mut &str) -> Option<Option<i32>> {
    let is_negative = eat(rest, "-");
    let is_signed = is_negative || eat(rest, "+");
    let digits = taken(rest, |c| c.is_ascii_digit());
    if digits.is_empty() {
        return (!is_signed).then_some(None);
    }
    let n: i32 = digits.parse().ok().filter(|n| *n <= MAX_EXPONENT)?;
    Some(Some(if is_negative { -n } else { n }))
}

/// A line of the table.
struct Unit {
    name: &'static str,
    /// Whether it takes prefixes.
    is_metric: bool,
    /// The number of the line, which is that of a base unit if there is no definition.
    line: usize,
    definition: Option<&'static str>,
    /// The parsed definition. It needs other units, so it is parsed when it is first read.
    measure: OnceLock<Option<Measure<'static>>>,
}

/// The units by name, ascending.
static UNITS: LazyLock<Vec<Unit>> = LazyLock::new(|| {
    let mut units: Vec<Unit> = (0..).zip(TABLE.lines()).map(Unit::read).collect();
    order::sort_by_key(&mut units, |unit| unit.name);
    units
});

impl Unit {
    fn read((line, text): (usize, &'static str)) -> Unit {
        let (name, definition) = match text.split_once(' ') {
            Some((name, definition)) => (name, Some(definition)),
            None => (text, None),
        };
        let metric = name.strip_suffix('*');
        Unit {
            name: metric.unwrap_or(name),
            is_metric: metric.is_some(),
            line,
            definition,
            measure: OnceLock::new(),
        }
    }

    /// Returns the unit in terms of base units.
    fn measure(&self) -> Option<Measure<'static>> {
        let parsed = self.measure.get_or_init(|| match self.definition {
            Some(definition) => Some(Measure::parse(definition)?.reduced()),
            None => {
                let mut base = Measure::number(Factor::ONE);
                *base.above.get_mut(self.line)? = 1;
                Some(base)
            }
        });
        parsed.clone()
    }
}

/// Returns a unit by its name, with or without a prefix.
fn named(name: &str) -> Option<Measure<'static>> {
    if let Some(unit) = defined(name) {
        return unit.measure();
    }
    PREFIXES.iter().find_map(|(prefix, exponent)| {
        let unit = defined(name.strip_prefix(prefix)?).filter(|unit| unit.is_metric)?;
        unit.measure()?
            .times(Measure::number(Factor::ten(*exponent)))
    })
}

/// Returns a unit of the table.
fn defined(name: &str) -> Option<&'static Unit> {
    let at = UNITS.binary_search_by(|unit| unit.name.cmp(name)).ok()?;
    UNITS.get(at)
}

fn eat(rest: &mut &str, token: &str) -> bool {
    let after = rest.strip_prefix(token);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

fn taken<'u>(rest: &mut &'u str, accepts: impl FnMut(char) -> bool) -> &'u str {
    let mut accepts = accepts;
    let end = rest.find(|c| !accepts(c)).unwrap_or(rest.len());
    let (taken, after) = rest.split_at(end);
    *rest = after;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_has_a_factor() {
        for unit in UNITS.iter() {
            assert!(unit.measure().is_some(), "{}", unit.name);
        }
        assert_eq!(UNITS.len(), TABLE.lines().count());
        assert!(UNITS.is_sorted_by(|a, b| a.name < b.name));
        let bases = TABLE.lines().take_while(|line| !line.contains(' '));
        assert_eq!(bases.count(), BASES);
    }

    fn convert(magnitude: f64, from: &str, to: &str) -> Option<f64> {
        conversion(from, to).map(|conversion| conversion.apply(magnitude))
    }

    #[test]
    fn factors_are_exact() {
        for (from, to, factor) in [
            ("l/h", "ml/min", 50.0 / 3.0),
            ("g", "dg", 10.0),
            ("l", "mm3", 1e6),
            ("Hz", "/min", 60.0),
            ("kg/m3", "g/l", 1.0),
            ("Sv", "mSv", 1000.0),
            ("m/s", "km/h", 3.6),
            ("mmol/l", "umol/l", 1000.0),
            ("mmol/l", "mmol/L", 1.0),
            ("mg/dl", "g/l", 0.01),
            ("/min", "/h", 60.0),
            ("10*9/l", "10*12/l", 0.001),
            ("10^9/l", "10*3/ul", 1.0),
            ("U/l", "kU/l", 0.001),
            ("mg/kg", "ug/kg", 1000.0),
            ("J", "kJ", 0.001),
            ("kcal", "kJ", 4.184),
            ("mm[Hg]", "Pa", 133.322),
            ("[lb_av]", "g", 453.59237),
            ("mL/min/(173.10*-2.m2)", "l/s/m2", 1e-3 / 60.0 / 1.73),
            ("µg", "mg", 0.001),
            ("W.s", "J", 1.0),
            ("km12/m11", "m", 1e36),
            ("km11", "m11", 1e33),
            ("m-11", "km-11", 1e33),
            ("[lb_av]3", "g3", 453.592_37 * 453.592_37 * 453.592_37),
            ("{beats}/min", "{beats}/h", 60.0),
        ] {
            let found = convert(1.0, from, to);
            let close = found.is_some_and(|n| (n / factor - 1.0).abs() < 1e-15);
            assert!(close, "{from} {to} {found:?} {factor}");
        }
        assert_eq!(convert(98.6, "[degF]", "Cel").map(f64::round), Some(37.0));
    }

    #[test]
    fn other_dimensions_and_kinds_do_not_convert() {
        for (from, to) in [
            ("kg", "m"),
            ("Hz", "Bq"),
            ("Gy", "Sv"),
            ("mg/kg", "%"),
            ("mmol/mol", "%"),
            ("ml/l", "mg/g"),
            ("mmol", "meq"),
            ("mmol/l", "mosm/l"),
            ("{beats}/min", "{breaths}/min"),
            ("[iU]/l", "U/l"),
            ("mo", "d"),
            ("a", "d"),
            ("[drp]/min", "ml/h"),
            ("Cel/h", "K/h"),
            ("Cel{oral}", "[degF]{oral}"),
            ("", "1"),
            ("0.kg", "0.g"),
            ("m99", "m99"),
            ("10*99", "1"),
            ("g*", "g"),
            ("mol*", "mol"),
            ("Pa* N/m2", "Pa"),
        ] {
            assert_eq!(convert(1.0, from, to), None, "{from} {to}");
        }
        let deep = "(".repeat(200);
        assert_eq!(convert(1.0, &deep, "m"), None);
    }
}
