//! The tokens of expressions: variables with labels, numbers, units, codes, texts, dates.

use crate::time::Moment;
use crate::value::{self, Proportion, Quantity, Value};
use aqlite_rm::number;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_till, take_while, take_while1};
use nom::character::complete::{char, digit1, one_of};
use nom::combinator::{map, map_opt, opt, recognize, verify};
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};
use std::sync::Arc;

/// `|free label|`: anything but a bar.
pub(crate) fn label(input: &str) -> IResult<&str, &str> {
    // `||` is an empty label only where no operand follows that OR could have.
    if let Some(rest) = input.strip_prefix("||") {
        let rest = rest.trim_start();
        let is_operator = rest.starts_with(['=', '<', '>', '*', '/', ')', ';', ',', '&', '|']);
        let is_label =
            rest.is_empty() || is_operator || rest.starts_with("!=") || attribute(rest).is_ok();
        if !is_label {
            return Err(nom::Err::Error(nom::error::Error::new(
                input,
                nom::error::ErrorKind::Not,
            )));
        }
    }
    delimited(char('|'), take_till(|c| c == '|'), char('|')).parse(input)
}

/// `gt0009`, `gt0002.1`, `currentDateTime`; a dot belongs to the code only before a digit.
pub(crate) fn code(input: &str) -> IResult<&str, &str> {
    let tail = (char('.'), digit1);
    recognize((
        take_while1(|c: char| c.is_ascii_alphanumeric() || c == '_'),
        opt(recognize(nom::multi::many0_count(tail))),
    ))
    .parse(input)
}

/// The name of an attribute.
pub(crate) fn attribute(input: &str) -> IResult<&str, &str> {
    preceded(
        char('.'),
        verify(
            take_while1(|c: char| c.is_ascii_alphanumeric() || c == '_'),
            |n: &str| n.starts_with(|c: char| c.is_ascii_alphabetic()),
        ),
    )
    .parse(input)
}

/// `'text'` with the escapes `\"`, `\'`, `\\`, `\n`, `\t`.
pub(crate) fn text(input: &str) -> IResult<&str, String> {
    let fail = || nom::Err::Error(nom::error::Error::new(input, nom::error::ErrorKind::Tag));
    let body = input.strip_prefix('\'').ok_or_else(fail)?;
    let mut out = String::new();
    let mut chars = body.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '\'' => return Ok((body.get(i + 1..).unwrap_or_default(), out)),
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, c @ ('"' | '\'' | '\\'))) => out.push(c),
                Some((_, other)) => out.extend(['\\', other]),
                None => return Err(fail()),
            },
            other => out.push(other),
        }
    }
    Err(fail())
}

/// Parses any literal that starts with a digit, a dot or a code. The order of the attempts matters:
/// a number is a prefix of most others.
pub(crate) fn literal(input: &str, in_arguments: bool) -> IResult<&str, Value> {
    if in_arguments {
        return alt((date_time, time, ordinal, coded, plain_number, text_value)).parse(input);
    }
    alt((
        date_time,
        time,
        ordinal,
        coded,
        proportion,
        quantity,
        plain_number,
        text_value,
    ))
    .parse(input)
}

/// Parses the unit behind a number and its comma: everything up to an operator, a bracket or white
/// space. A sign and `*` belong to the unit where UCUM has them: `kg.m-2`, `10*-3/L`.
pub(crate) fn unit(input: &str) -> IResult<&str, &str> {
    let (input, _) = (char(','), take_while(|c| c == ' ')).parse(input)?;
    let mut end = 0;
    while let Some(length) = unit_part(input.split_at(end)) {
        end += length;
    }
    let (unit, rest) = input.split_at(end);
    verify(nom::combinator::success(unit), |u: &str| !u.is_empty()).parse(rest)
}

/// Returns the length of the next part of a unit: a character, or an exponent with its sign.
fn unit_part((unit, rest): (&str, &str)) -> Option<usize> {
    match rest.chars().next()? {
        '+' | '-' => exponent(unit, rest),
        '*' => unit.ends_with("10").then_some(1),
        c => is_unit(c).then(|| c.len_utf8()),
    }
}

/// Returns the length of an exponent with its sign. One or two digits are an exponent, unless they
/// begin a number such as that of the difference `6,mg-1,mg`.
fn exponent(unit: &str, rest: &str) -> Option<usize> {
    let is_base = |c: char| c.is_alphabetic() || "]}^".contains(c);
    let digits: IResult<&str, char> = one_of("+-").parse(rest);
    let (behind, digits) = digit1::<_, nom::error::Error<&str>>(digits.ok()?.0).ok()?;
    let is_number =
        behind.starts_with(|c: char| c == ',' || c.is_alphabetic()) || number(behind).is_ok();
    let is_exponent = digits.len() <= 2 && !is_number;
    let has_base = unit.ends_with(is_base) || unit.ends_with("10*");
    (is_exponent && has_base).then_some(1 + digits.len())
}

fn is_unit(c: char) -> bool {
    !c.is_whitespace() && !"()<>=!&|;,+-'\"$".contains(c)
}

fn text_value(input: &str) -> IResult<&str, Value> {
    map(text, |t| Value::text(&t)).parse(input)
}

fn plain_number(input: &str) -> IResult<&str, Value> {
    map(number, Value::Number).parse(input)
}

/// `5`, `.5`, `1.5`, `2e3`; without sign, and within the range of doubles.
pub(crate) fn number(input: &str) -> IResult<&str, f64> {
    let exponent = (one_of("eE"), opt(one_of("+-")), digit1);
    let whole = recognize((digit1, opt((char('.'), opt(digit1)))));
    let fraction = recognize((char('.'), digit1));
    let parsed = recognize((alt((whole, fraction)), opt(exponent)));
    map_opt(parsed, |t: &str| {
        number::parse(t).filter(|n| is_in_range(t, *n))
    })
    .parse(input)
}

/// Returns whether digits have a finite value, which is 0 only if each digit before the exponent is.
fn is_in_range(digits: &str, value: f64) -> bool {
    let mut mantissa = digits
        .bytes()
        .take_while(|b| !b.eq_ignore_ascii_case(&b'e'));
    value.is_finite() && (value != 0.0 || !mantissa.any(|b| matches!(b, b'1'..=b'9')))
}

fn signed(input: &str) -> IResult<&str, f64> {
    map((opt(char('-')), number), |(minus, n)| {
        if minus.is_some() { -n } else { n }
    })
    .parse(input)
}

fn quantity(input: &str) -> IResult<&str, Value> {
    map(
        (nom::combinator::consumed(number), unit),
        |((digits, n), unit)| {
            Value::Quantity(Quantity {
                magnitude: n,
                unit: Arc::from(unit),
                precision: precision(digits),
            })
        },
    )
    .parse(input)
}

/// Returns the precision of a quantity with these digits. `None` for a whole number, which fits any
/// precision, and for a precision beyond that of doubles.
fn precision(digits: &str) -> Option<u8> {
    Some(value::decimals(digits)).filter(|d| *d > 0 && *d <= 15)
}

/// Returns the greatest precision of the numbers in an expression.
pub(crate) fn precision_of_all(expression: &str) -> Option<u8> {
    let (mut rest, mut most) = (expression, None);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit() || c == '.') {
        let from = rest.get(at..).unwrap_or_default();
        let parsed: IResult<&str, (&str, f64)> = nom::combinator::consumed(number).parse(from);
        rest = match parsed {
            Ok((behind, (digits, _))) => {
                most = most.max(precision(digits));
                behind
            }
            // A point may begin no number. It is one byte, so the search continues behind it.
            Err(_) => from.get(1..).unwrap_or_default(),
        };
    }
    most
}

/// `96,100,2`: numerator, denominator, type.
fn proportion(input: &str) -> IResult<&str, Value> {
    let kind = map_opt(digit1, |d: &str| d.parse().ok().filter(|k: &i64| *k < 5));
    let end = |i| {
        nom::combinator::not(verify(nom::character::complete::anychar, |c| is_unit(*c))).parse(i)
    };
    map(
        (
            number,
            preceded(char(','), number),
            preceded(char(','), kind),
            end,
        ),
        |(numerator, denominator, kind, ())| {
            Value::Proportion(Proportion {
                numerator,
                denominator,
                kind,
                precision: None,
            })
        },
    )
    .parse(input)
}

/// `1|local::at0031|Present|`
fn ordinal(input: &str) -> IResult<&str, Value> {
    let value = map_opt(recognize((opt(char('-')), digit1)), |t: &str| {
        t.parse::<i64>().ok()
    });
    map(
        (value, preceded(char('|'), phrase), opt(label_text)),
        |(value, (terminology, code), text)| {
            Value::ordinal(value, terminology, code, text.unwrap_or(""))
        },
    )
    .parse(input)
}

/// `local::at0051|Present|`, or the code alone.
pub(crate) fn coded(input: &str) -> IResult<&str, Value> {
    map((phrase, opt(label_text)), |((terminology, code), text)| {
        Value::coded(terminology, code, text.unwrap_or(""))
    })
    .parse(input)
}

fn label_text(input: &str) -> IResult<&str, &str> {
    label(input)
}

fn phrase(input: &str) -> IResult<&str, (&str, &str)> {
    let terminology = take_while1(|c: char| c.is_alphanumeric() || "-_.()".contains(c));
    let terminology = verify(terminology, |t: &str| t.starts_with(char::is_alphabetic));
    let code = take_while1(|c: char| c.is_alphanumeric() || "-_./:^".contains(c));
    (terminology, preceded(tag("::"), code)).parse(input)
}

/// `2014-01-01`, `2014-01-01T00:00:00+01:00`. The zone is known only when the guide runs, so the
/// text is kept.
fn date_time(input: &str) -> IResult<&str, Value> {
    let shape = recognize((
        take_digits(4),
        char('-'),
        take_digits(2),
        char('-'),
        take_digits(2),
        opt((
            char('T'),
            take_while1(|c: char| c.is_ascii_digit() || ":.,".contains(c)),
            opt(zone),
        )),
    ));
    moment(shape).parse(input)
}

/// `09:00`, `09:00:00`, `09:00:00.5+01:00`
fn time(input: &str) -> IResult<&str, Value> {
    let fraction = (char('.'), digit1);
    let seconds = (char(':'), take_digits(2), opt(fraction));
    moment(recognize((
        take_digits(2),
        char(':'),
        take_digits(2),
        opt(seconds),
        opt(zone),
    )))
    .parse(input)
}

fn moment<'a>(
    shape: impl Parser<&'a str, Output = &'a str, Error = nom::error::Error<&'a str>>,
) -> impl Parser<&'a str, Output = Value, Error = nom::error::Error<&'a str>> {
    map_opt(shape, |t: &str| Moment::parse(t, 0).map(Value::moment))
}

fn zone(input: &str) -> IResult<&str, &str> {
    alt((
        tag("Z"),
        recognize((
            one_of("+-"),
            take_digits(2),
            opt((opt(char(':')), take_digits(2))),
        )),
    ))
    .parse(input)
}

fn take_digits<'a>(
    n: usize,
) -> impl Parser<&'a str, Output = &'a str, Error = nom::error::Error<&'a str>> {
    nom::bytes::complete::take_while_m_n(n, n, |c: char| c.is_ascii_digit())
}

/// `-5` or `-5,mmol/l` in brackets: the old notation of a negative number.
pub(crate) fn negative(input: &str) -> IResult<&str, Value> {
    let signed = verify(nom::combinator::consumed(signed), |(_, n)| *n < 0.0);
    let number = delimited(
        (char('('), take_while(|c| c == ' ')),
        signed,
        (take_while(|c| c == ' '), char(')')),
    );
    let quantity = |magnitude, digits, unit: &str| {
        Value::Quantity(Quantity {
            magnitude,
            unit: Arc::from(unit),
            precision: precision(digits),
        })
    };
    map((number, opt(unit)), |((digits, n), unit)| {
        unit.map_or(Value::Number(n), |unit| quantity(n, digits, unit))
    })
    .parse(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Value {
        let (rest, value) = literal(text, false).unwrap();
        assert_eq!(rest, "", "{text}");
        value
    }

    #[test]
    fn literals_have_their_types() {
        assert_eq!(whole("30,kg/m2"), Value::quantity(30.0, "kg/m2"));
        assert!(
            matches!(whole("5.20,10*9/l"), Value::Quantity(q) if &*q.unit == "10*9/l" && q.precision == Some(2))
        );
        assert!(matches!(whole("1.45,1"), Value::Quantity(q) if &*q.unit == "1"));
        assert_eq!(
            whole("-2|local::at0031|<50|"),
            Value::ordinal(-2, "local", "at0031", "<50")
        );
        assert_eq!(whole("ICD10::I48.0"), Value::coded("ICD10", "I48.0", ""));
        assert!(matches!(whole("96,100,2"), Value::Proportion(p) if p.kind == 2));
        assert_eq!(whole("2.72399E-4"), Value::Number(2.72399e-4));
        assert!(matches!(whole("2014-01-01T00:00:00"), Value::Moment(..)));
        assert_eq!(whole(r"'a \'b\' c'"), Value::text("a 'b' c"));
    }

    #[test]
    fn labels_take_everything_up_to_the_bar() {
        assert_eq!(
            label("|a'b (c) && d|!=null"),
            Ok(("!=null", "a'b (c) && d"))
        );
    }
}
