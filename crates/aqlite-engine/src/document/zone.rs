//! Zone maps: the range of the values of a column. The head of a segment has the zone maps, so that
//! a comparison which no value can pass loads no column.

use bitcode::{Decode, Encode};

/// The range of the values of a column, including superseded and hidden rows.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub enum Zone {
    /// The minimum and the maximum number.
    Numbers(f64, f64),
    /// The first and the last beginning of a date-time, in microseconds since 0001-01-01T00:00Z.
    Moments(i64, i64),
}

impl Zone {
    /// Returns the range of numbers; `None` for an empty list, or if one of them is NaN.
    pub(super) fn of_numbers(numbers: &[f64]) -> Option<Zone> {
        let (first, rest) = numbers.split_first()?;
        let (mut least, mut greatest) = (*first, *first);
        for number in rest {
            least = if *number < least { *number } else { least };
            greatest = if *number > greatest {
                *number
            } else {
                greatest
            };
        }
        let has_nan = numbers.iter().any(|number| number.is_nan());
        (!has_nan).then_some(Zone::Numbers(least, greatest))
    }

    /// Returns the range of the beginnings of date-times; `None` for an empty list, or if a text is
    /// no date-time.
    pub(super) fn of_moments(begins: impl Iterator<Item = Option<i64>>) -> Option<Zone> {
        let mut zone = None;
        for begin in begins {
            let begin = begin?;
            zone = match zone {
                None => Some((begin, begin)),
                Some((first, last)) => Some((begin.min(first), begin.max(last))),
            };
        }
        zone.map(|(first, last)| Zone::Moments(first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_of_numbers_is_their_range() {
        let zone = Zone::of_numbers(&[3.0, -1.5, 8.0]);
        assert_eq!(zone, Some(Zone::Numbers(-1.5, 8.0)));
        assert_eq!(Zone::of_numbers(&[]), None);
        for numbers in [[f64::NAN, 1.0], [1.0, f64::NAN]] {
            assert_eq!(Zone::of_numbers(&numbers), None, "{numbers:?}");
        }
    }

    #[test]
    fn a_text_that_is_no_date_time_leaves_no_zone() {
        let zone = |begins: &[Option<i64>]| Zone::of_moments(begins.iter().copied());
        assert_eq!(
            zone(&[Some(5), Some(-2), Some(9)]),
            Some(Zone::Moments(-2, 9))
        );
        assert_eq!(zone(&[Some(5), None]), None);
        assert_eq!(zone(&[]), None);
    }
}
