//! The test format of published guides: literals of values, their text form, and the comparison of
//! expected with actual values.

use super::bind::{DataInstance, Instance};
use super::compile::CompiledGuide;
use super::run::Run;
use super::time::{Moment, Precision};
use super::value::{Proportion, Quantity, Value, decimals, real, round_half_even};
use aqlite_rm::number;
use std::sync::Arc;

/// Reads a literal such as `30,kg`, `1|local::at0005|Low|`, `local::at0004|Yes|`, `42`, `true` or
/// `2019-08-12T09:18Z`.
pub fn literal(text: &str) -> Value {
    let text = text.trim();
    ordinal(text)
        .or_else(|| coded(text))
        .or_else(|| proportion(text))
        .or_else(|| quantity(text))
        .or_else(|| text.parse::<i64>().ok().map(Value::Count))
        .or_else(|| number(text).map(Value::Quantity))
        .or_else(|| (text == "true" || text == "false").then(|| Value::Boolean(text == "true")))
        .or_else(|| moment(text))
        .unwrap_or_else(|| Value::text(text))
}

fn ordinal(text: &str) -> Option<Value> {
    let (value, symbol) = text.split_once('|')?;
    let value = value.trim().parse().ok()?;
    match coded(symbol)? {
        Value::Coded(code) => Some(Value::ordinal(
            value,
            &code.terminology,
            &code.code,
            &code.text,
        )),
        _ => None,
    }
}

fn coded(text: &str) -> Option<Value> {
    let (terminology, rest) = text.split_once("::")?;
    let (code, label) = rest.split_once('|').unwrap_or((rest, ""));
    let is_word = |w: &str| {
        !w.is_empty()
            && w.chars()
                .all(|c| c.is_alphanumeric() || "-_.()".contains(c))
    };
    (is_word(terminology) && is_word(code))
        .then(|| Value::coded(terminology, code, label.strip_suffix('|').unwrap_or(label)))
}

/// Reads `96,100,2`: numerator, denominator, type.
fn proportion(text: &str) -> Option<Value> {
    let (numerator, rest) = text.split_once(',')?;
    let (denominator, kind) = rest.split_once(',')?;
    let kind = kind.parse().ok().filter(|k| (0..=4).contains(k))?;
    Some(Value::Proportion(Proportion {
        numerator: number(numerator)?.magnitude,
        denominator: number(denominator)?.magnitude,
        kind,
        precision: None,
    }))
}

fn quantity(text: &str) -> Option<Value> {
    let (n, unit) = text.split_once(',')?;
    let number = number(n)?;
    Some(Value::Quantity(Quantity {
        unit: Arc::from(unit.trim()),
        ..number
    }))
}

/// Returns a literal with a decimal point, if it has a decimal comma: `128,5,mm[Hg]`. Its unit would
/// begin with the decimals.
pub(crate) fn with_decimal_point(text: &str) -> Option<String> {
    let Value::Quantity(read) = literal(text) else {
        return None;
    };
    let unit = read.unit.trim_start_matches(|c: char| c.is_ascii_digit());
    // `1` is the unit of a ratio.
    let is_unit = unit.len() == read.unit.len() || &*read.unit == "1";
    let has_comma = !is_unit && (unit.is_empty() || unit.starts_with(','));
    has_comma.then(|| text.replacen(',', ".", 1))
}

/// Reads a number. Its precision is the number of its decimals.
fn number(text: &str) -> Option<Quantity> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let magnitude =
        number::parse(text).filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(Quantity {
        magnitude,
        unit: Arc::from(""),
        precision: Some(decimals(text)).filter(|d| *d <= 15),
    })
}

fn moment(text: &str) -> Option<Value> {
    let looks = text.len() >= 10
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.get(4..5) == Some("-");
    Moment::parse(text, 0)
        .filter(|m| looks && m.precision != Precision::Time)
        .map(Value::moment)
}

/// Prints a value in the notation of fixtures.
pub fn text_form(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Number(n) | Value::Millis(n) | Value::Span(n) => super::fill::decimal(*n, None),
        Value::Ordinal(o) => format!(
            "{}|{}::{}|{}|",
            o.value, o.symbol.terminology, o.symbol.code, o.symbol.text
        ),
        Value::Coded(c) => format!("{}::{}|{}|", c.terminology, c.code, c.text),
        Value::Count(n) => n.to_string(),
        Value::Object(o) => o.to_string(),
        // The notation has no partial times.
        Value::Moment(m, _) => m.text(),
        other => super::calc::shown(other),
    }
}

/// Returns whether an actual value agrees with the expected text. Codes are compared without
/// labels, numbers at the printed precision with equal units, and texts without regard to white
/// space.
pub fn agrees(expected: &str, actual: &Value) -> bool {
    let expected = expected.trim();
    let expected = expected
        .strip_prefix("DvText(value=")
        .and_then(|e| e.strip_suffix(')'))
        .unwrap_or(expected);
    match (literal(expected), actual) {
        (Value::Ordinal(e), Value::Ordinal(a)) => {
            e.value == a.value && e.symbol.code == a.symbol.code
        }
        (Value::Coded(e), Value::Coded(a)) => e.is_same(a),
        (Value::Boolean(e), Value::Boolean(a)) => e == *a,
        (Value::Moment(e, _), Value::Moment(a, _)) => e.millis == a.millis,
        (Value::Count(e), Value::Count(a)) => e == *a,
        (Value::Proportion(e), Value::Proportion(a)) => {
            e.numerator == a.numerator && e.denominator == a.denominator && e.kind == a.kind
        }
        (e, actual) => match as_quantity(&e).zip(as_quantity(actual)) {
            Some((e, a)) => squeezed(&e.unit) == squeezed(&a.unit) && same_number(&e, &a),
            None => squeezed(expected) == squeezed(&text_form(actual)),
        },
    }
}

/// Returns a numeric value as a quantity. Counts, plain numbers and proportions have no unit. A
/// computed value has the precision of a double.
fn as_quantity(value: &Value) -> Option<Quantity> {
    let plain = |magnitude: f64, precision: u8| {
        Some(Quantity {
            magnitude,
            unit: Arc::from(""),
            precision: Some(precision),
        })
    };
    match value {
        Value::Quantity(q) => Some(q.clone()),
        Value::Count(n) => plain(real(*n), 0),
        Value::Number(n) => plain(*n, 15),
        Value::Proportion(_) => plain(value.number()?, 15),
        _ => None,
    }
}

fn same_number(expected: &Quantity, actual: &Quantity) -> bool {
    // A double has 15 significant decimal digits. More decimals would compare its noise.
    let shown = round_half_even(
        actual.magnitude,
        actual.precision.unwrap_or_default().min(15),
    );
    let decimals = expected.precision.unwrap_or_default();
    // Sums of decimal fractions differ from the expected text in the last bits.
    let tolerance = expected.magnitude.abs().max(1.0) * 1.0e-12;
    (shown - expected.magnitude).abs() <= tolerance
        || (round_half_even(shown, decimals) - expected.magnitude).abs() <= tolerance
}

fn squeezed(text: &str) -> String {
    text.replace("\\n", " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Builds one instance for each binding from values by variable. Two bindings of one archetype
/// share its values.
pub fn instances(guide: &CompiledGuide, input: &[(String, Value)]) -> Vec<Vec<Instance>> {
    let value = |code: &str| {
        let found = input.iter().find(|(c, _)| c == code);
        found.map(|(_, v)| v.clone())
    };
    let mut data: Vec<DataInstance> = Vec::new();
    for binding in &guide.guide().bindings {
        let elements = binding.elements.iter();
        let values: Vec<(String, Value)> = elements
            .filter_map(|e| Some((e.path.clone(), value(&e.id)?)))
            .collect();
        if values.is_empty() {
            continue;
        }
        match data.iter_mut().find(|d| d.model_id == binding.model_id) {
            Some(known) => known.values.extend(values),
            None => data.push(DataInstance {
                model_id: binding.model_id.clone(),
                values,
            }),
        }
    }
    guide.instances_of(&data)
}

/// Returns the differences between the expected values and those of a run. Empty when they agree. An
/// empty literal expects that the guide does not set the variable.
pub fn differences(guide: &CompiledGuide, run: &Run, expected: &[(String, String)]) -> Vec<String> {
    if expected.is_empty() {
        return unexpected(guide, run);
    }
    let mut out = Vec::new();
    for (code, literal) in expected {
        match run.value(guide, code) {
            Some(actual) if literal.trim().is_empty() => {
                // A value of the input is no result.
                if run.was_set(guide, code) {
                    let found = text_form(actual);
                    out.push(format!("{code}: expected nothing, found `{found}`"));
                }
            }
            None if literal.trim().is_empty() => {}
            Some(actual) if agrees(literal, actual) => {}
            Some(actual) => out.push(format!(
                "{code}: expected `{literal}`, found `{}`",
                text_form(actual)
            )),
            None => out.push(format!("{code}: expected `{literal}`, found nothing")),
        }
    }
    out
}

/// Returns the differences of a case that expects nothing: the results that a rule has set.
fn unexpected(guide: &CompiledGuide, run: &Run) -> Vec<String> {
    if run.fired.is_empty() {
        return Vec::new();
    }
    let bindings = guide.guide().bindings.iter();
    let outputs = bindings.filter(|b| b.direction != super::guide::Direction::Input);
    let is_output = |code: &str| {
        let mut elements = outputs.clone().flat_map(|b| &b.elements);
        elements.any(|e| e.id == code)
    };
    let set = guide.slots.iter().filter(|s| run.was_set(guide, &s.code));
    set.filter(|s| is_output(&s.code))
        .map(|s| format!("{}: expected nothing, but it was set", s.code))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_shapes() {
        assert_eq!(
            literal("3|local::at0005|<50||"),
            Value::ordinal(3, "local", "at0005", "<50|")
        );
        assert_eq!(
            literal("local::at0004|a::b|"),
            Value::coded("local", "at0004", "a::b")
        );
        assert!(matches!(literal("100,10^6 /kg"), Value::Quantity(q) if &*q.unit == "10^6 /kg"));
        assert_eq!(literal("42"), Value::Count(42));
        assert!(matches!(literal("4.20"), Value::Quantity(q) if q.precision == Some(2)));
        assert!(matches!(literal("1949-03-07T14:57Z"), Value::Moment(..)));
        assert_eq!(literal("Yes, 3 times"), Value::text("Yes, 3 times"));
    }

    #[test]
    fn decimal_commas_are_found() {
        for (text, mended) in [
            ("128,5,mm[Hg]", Some("128.5,mm[Hg]")),
            ("-0,25", Some("-0.25")),
            ("128.5,mm[Hg]", None),
            ("96,100,2", None),
            ("1.45,1", None),
            ("5,10*9/L", None),
            ("Yes, 3 times", None),
        ] {
            assert_eq!(with_decimal_point(text).as_deref(), mended, "{text}");
        }
    }

    #[test]
    fn numbers_agree_at_the_printed_precision() {
        let actual = |m, p| {
            Value::Quantity(Quantity {
                magnitude: m,
                unit: Arc::from("%"),
                precision: p,
            })
        };
        assert!(agrees("1.6,%", &actual(1.6, Some(1))));
        assert!(!agrees("1.6,%", &actual(1.7, Some(1))));
        assert!(!agrees("1.6,a", &actual(1.6, Some(1))));
        let in_unit = |unit: &str| {
            Value::Quantity(Quantity {
                magnitude: 12.0,
                unit: Arc::from(unit),
                precision: Some(0),
            })
        };
        for (expected, unit) in [
            ("12,10^6  /kg", "10^6 /kg"),
            ("12, 10^6 /kg ", " 10^6\t/kg"),
            ("12,% lower limb", "%  lower limb"),
        ] {
            assert!(agrees(expected, &in_unit(unit)), "{expected}");
        }
        assert!(
            !agrees("12,10^6/kg", &in_unit("10^6 /kg"))
                && !agrees("12", &in_unit("kg"))
                && !agrees("12,kg", &Value::Count(12))
        );
    }

    #[test]
    fn numbers_of_any_kind_agree_as_numbers() {
        let proportion = |numerator: f64, denominator: f64, kind: i64| {
            Value::Proportion(Proportion {
                numerator,
                denominator,
                kind,
                precision: None,
            })
        };
        let unitless = |magnitude: f64, precision| {
            Value::Quantity(Quantity {
                magnitude,
                unit: Arc::from(""),
                precision,
            })
        };
        for actual in [
            Value::Count(3),
            Value::Number(3.0),
            unitless(3.0, None),
            unitless(3.0, Some(1)),
            proportion(6.0, 2.0, 0),
        ] {
            assert!(
                ["3", "3.0", "6,2,0"]
                    .iter()
                    .all(|expected| agrees(expected, &actual)
                        || matches!(actual, Value::Proportion(_))),
                "{actual:?}"
            );
            assert!(
                agrees("3", &actual) && agrees("3.00", &actual),
                "{actual:?}"
            );
            assert!(
                !agrees("4", &actual) && !agrees("3.1", &actual) && !agrees("3,mg", &actual),
                "{actual:?}"
            );
        }
        assert!(
            agrees("0.33", &proportion(1.0, 3.0, 0))
                && agrees("1,4,0", &Value::Number(0.25))
                && !agrees("1,4,0", &proportion(2.0, 8.0, 0))
        );
        assert!(agrees("DvText(value=ASA 1E)", &Value::text("ASA  1E")));
    }
}
