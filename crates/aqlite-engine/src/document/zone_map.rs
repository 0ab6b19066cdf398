//! Zone maps: the range of the values of a column. The head of a segment has the zone maps, so that
//! a comparison which no value can pass loads no column.

use bitcode::{Decode, Encode};

/// The range of the values of a column, including superseded and hidden rows.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub enum ZoneMap {
    /// The minimum and the maximum number.
    Numbers(f64, f64),
    /// The first and the last start of a date-time, in microseconds since 0001-01-01T00:00Z.
    Moments(i64, i64),
}

impl ZoneMap {
    /// Returns the range of numbers; `None` for an empty list, or if one of them is NaN.
    pub(super) fn of_numbers(numbers: &[f64]) -> Option<ZoneMap> {
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
        (!has_nan).then_some(ZoneMap::Numbers(least, greatest))
    }

    /// Returns the range of the starts of date-times; `None` for an empty list, or if a text is
    /// no date-time.
    pub(super) fn of_date_times(starts: impl Iterator<Item = Option<i64>>) -> Option<ZoneMap> {
        let mut range = None;
        for start in starts {
            let start = start?;
            range = match range {
                None => Some((start, start)),
                Some((first, last)) => Some((start.min(first), start.max(last))),
            };
        }
        range.map(|(first, last)| ZoneMap::Moments(first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_map_of_numbers_is_their_range() {
        let zone_map = ZoneMap::of_numbers(&[3.0, -1.5, 8.0]);
        assert_eq!(zone_map, Some(ZoneMap::Numbers(-1.5, 8.0)));
        assert_eq!(ZoneMap::of_numbers(&[]), None);
        for numbers in [[f64::NAN, 1.0], [1.0, f64::NAN]] {
            assert_eq!(ZoneMap::of_numbers(&numbers), None, "{numbers:?}");
        }
    }

    #[test]
    fn a_text_that_is_no_date_time_leaves_no_zone_map() {
        let zone_map = |starts: &[Option<i64>]| ZoneMap::of_date_times(starts.iter().copied());
        assert_eq!(
            zone_map(&[Some(5), Some(-2), Some(9)]),
            Some(ZoneMap::Moments(-2, 9))
        );
        assert_eq!(zone_map(&[Some(5), None]), None);
        assert_eq!(zone_map(&[]), None);
    }
}
