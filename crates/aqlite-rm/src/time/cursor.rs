//! A cursor over the text of a date, a time or a duration (ISO 8601).

use super::calendar::days_in_month;
use super::{Fraction, Parts};

pub(super) struct Cursor<'a> {
    pub rest: &'a [u8],
}

impl Cursor<'_> {
    pub fn eat(&mut self, byte: u8) -> bool {
        let Some((first, rest)) = self.rest.split_first().filter(|(first, _)| **first == byte)
        else {
            return false;
        };
        let _ = first;
        self.rest = rest;
        true
    }

    /// Parses exactly `count` digits whose value is in `range`.
    fn digits(&mut self, count: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        let value = decimal(digits)?;
        self.rest = rest;
        range.contains(&value).then_some(value)
    }

    fn at_digit(&self) -> bool {
        self.rest.first().is_some_and(u8::is_ascii_digit)
    }

    pub fn date(&mut self, parts: &mut Parts) -> Option<()> {
        let year = self.digits(4, 1..=9999)?;
        parts.year = Some(year);
        let extended = self.eat(b'-');
        // A hyphen requires a month. `2019-` is invalid, and so is a form that mixes basic and
        // extended.
        if !extended && !self.at_digit() {
            return Some(());
        }
        let month = self.digits(2, 1..=12)?;
        parts.month = Some(month);
        if if extended {
            self.eat(b'-')
        } else {
            self.at_digit()
        } {
            parts.day = Some(self.digits(2, 1..=days_in_month(year, month))?);
        }
        Some(())
    }

    pub fn time(&mut self, parts: &mut Parts) -> Option<()> {
        parts.hour = Some(self.digits(2, 0..=23)?);
        let extended = self.eat(b':');
        if extended || self.at_digit() {
            parts.minute = Some(self.digits(2, 0..=59)?);
            if if extended {
                self.eat(b':')
            } else {
                self.at_digit()
            } {
                // Leap seconds (60) are not accepted.
                parts.second = Some(self.digits(2, 0..=59)?);
                if matches!(self.rest.first(), Some(b'.' | b',')) {
                    parts.fraction = Some(self.fraction()?);
                }
            }
        }
        parts.zone = self.zone()?;
        Some(())
    }

    /// Parses the zone in minutes. The inner `None` means that the text has no zone.
    pub fn zone(&mut self) -> Option<Option<i64>> {
        if self.eat(b'Z') {
            return Some(Some(0));
        }
        // The limits of hours: BASE 1.2.0, foundation_types, Time_definitions.
        let (sign, limit) = match (self.eat(b'+'), self.eat(b'-')) {
            (true, _) => (1, 14),
            (_, true) => (-1, 12),
            _ => return Some(None),
        };
        let hours = self.digits(2, 0..=limit)?;
        let minutes = if self.eat(b':') || self.at_digit() {
            self.digits(2, 0..=59)?
        } else {
            0
        };
        Some(Some(sign * (hours * 60 + minutes)))
    }

    /// Parses a decimal mark and at least one digit.
    pub fn fraction(&mut self) -> Option<Fraction> {
        if !self.eat(b'.') && !self.eat(b',') {
            return None;
        }
        let count = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        // Missing digits count as zeros: `.5` is 500,000 microseconds.
        let mut figures = digits
            .iter()
            .chain(std::iter::repeat(&b'0'))
            .map(|d| i64::from(d - b'0'));
        let mut take = |n| {
            figures
                .by_ref()
                .take(n)
                .fold(0, |value, figure| value * 10 + figure)
        };
        // 18 digits always fit in an `i64`. Digits beyond the 24th are ignored.
        let (micros, finer) = (take(6), if count > 6 { take(18) } else { 0 });
        (count > 0).then_some(Fraction { micros, finer })
    }

    /// Parses a whole number of a duration. Returns `None` and consumes nothing if no digit
    /// follows.
    pub fn number(&mut self) -> Option<i64> {
        let count = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at_checked(count)?;
        let value = decimal(digits)?;
        self.rest = rest;
        Some(value)
    }

    /// Parses a whole number and the designator `letter`. Returns `None` and consumes nothing if
    /// they do not follow.
    pub fn component(&mut self, letter: u8) -> Option<i64> {
        let before = self.rest;
        let value = self.number();
        if value.is_some() && self.eat(letter) {
            return value;
        }
        self.rest = before;
        None
    }
}

/// Returns the value of up to 18 digits.
fn decimal(digits: &[u8]) -> Option<i64> {
    // 18 digits always fit in an `i64`, so the fold below cannot overflow.
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        digits
            .iter()
            .fold(0, |value, d| value * 10 + i64::from(d - b'0')),
    )
}
