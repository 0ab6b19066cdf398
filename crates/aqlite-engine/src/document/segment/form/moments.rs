//! The encoded form of columns of date-times.

use super::UNEVEN;
use crate::codec;
use crate::document::moment::{DateTimeColumn, MomentParts, NO_MOMENT};
use bitcode::{Decode, Encode};

/// Date-times with the forms of their texts.
#[derive(Encode, Decode)]
pub(in crate::document::segment) struct StoredMoments {
    palette: Vec<u32>,
    forms: Vec<u8>,
    text_rows: Vec<u32>,
    text_ids: Vec<u32>,
    starts: StoredStarts,
}

/// Positions in time: seconds as `base + unit * steps`, and the rest of each. Few times have a
/// fraction, so most rests are 0.
#[derive(Encode, Decode)]
struct StoredStarts {
    base: i64,
    unit: u64,
    steps: Vec<u64>,
    /// The parts of a second, in the unit of [`MomentParts::starts`].
    rests: Vec<u32>,
    /// The rows whose text is no date-time.
    without: Vec<u32>,
}

/// A second in the unit of [`MomentParts::starts`]: half a microsecond.
const SECOND: i64 = 2_000_000;

/// Date-times of the first version of checkpoints, whose texts all are in the dictionary. Their
/// positions are `base + unit * steps`.
pub(super) struct TextMoments {
    text_ids: Vec<u32>,
    base: i64,
    unit: u64,
    steps: Vec<u64>,
    without: Vec<u32>,
}

impl StoredMoments {
    pub fn of(parts: MomentParts) -> StoredMoments {
        StoredMoments {
            palette: parts.palette,
            forms: parts.forms,
            text_rows: parts.text_rows,
            text_ids: parts.text_ids,
            starts: StoredStarts::of(&parts.starts),
        }
    }

    pub fn moments(self) -> Result<DateTimeColumn, &'static str> {
        let parts = MomentParts {
            palette: self.palette,
            forms: self.forms,
            text_rows: self.text_rows,
            text_ids: self.text_ids,
            starts: self.starts.decode()?,
        };
        DateTimeColumn::from_parts(parts).ok_or(UNEVEN)
    }
}

impl TextMoments {
    /// Converts the date-times to the present form; `None` if the lists do not fit together.
    pub fn moments(self) -> Option<StoredMoments> {
        let start = |steps: &u64| {
            let distance = steps.wrapping_mul(self.unit);
            self.base.wrapping_add(distance as i64)
        };
        let mut starts: Vec<i64> = self.steps.iter().map(start).collect();
        for row in self.without {
            *starts.get_mut(row as usize)? = NO_MOMENT;
        }
        Some(StoredMoments::of(MomentParts::in_dictionary(
            self.text_ids,
            starts,
        )))
    }
}

impl StoredStarts {
    fn of(starts: &[i64]) -> StoredStarts {
        let known = starts.iter().filter(|start| **start != NO_MOMENT);
        let seconds = || known.clone().map(|start| start.div_euclid(SECOND));
        let base = seconds().min().unwrap_or(0);
        // The base is the least second, so no distance is negative.
        let distance = |second: i64| (second - base) as u64;
        let unit = seconds().fold(0, |unit, second| greatest_divisor(unit, distance(second)));
        // If all times are in one second, the unit is 0 and must not be a divisor.
        let step = |start: &i64| match *start {
            NO_MOMENT => 0,
            start => distance(start.div_euclid(SECOND)) / unit.max(1),
        };
        let rest = |start: &i64| match *start {
            NO_MOMENT => 0,
            start => start.rem_euclid(SECOND) as u32,
        };
        let without = (0..).zip(starts).filter(|(_, start)| **start == NO_MOMENT);
        StoredStarts {
            base,
            unit,
            steps: starts.iter().map(step).collect(),
            rests: starts.iter().map(rest).collect(),
            without: without.map(|(row, _)| row).collect(),
        }
    }

    fn decode(self) -> Result<Vec<i64>, &'static str> {
        if self.rests.len() != self.steps.len() {
            return Err(UNEVEN);
        }
        let start = |(steps, rest): (&u64, &u32)| {
            // Damaged numbers wrap around: the checksum of a part is tested before.
            let second = self.base.wrapping_add(steps.wrapping_mul(self.unit) as i64);
            second.wrapping_mul(SECOND).wrapping_add(i64::from(*rest))
        };
        let mut starts: Vec<i64> = self.steps.iter().zip(&self.rests).map(start).collect();
        for row in self.without {
            *starts.get_mut(row as usize).ok_or(UNEVEN)? = NO_MOMENT;
        }
        Ok(starts)
    }
}

/// Returns the greatest common divisor. The divisor of 0 and a number is the number.
fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

// The encoding of checkpoints.
codec!(StoredMoments {
    palette,
    forms,
    text_rows,
    text_ids,
    starts,
});
codec!(StoredStarts {
    base,
    unit,
    steps,
    rests,
    without,
});
codec!(TextMoments {
    text_ids,
    base,
    unit,
    steps,
    without,
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greatest_divisor_of_distances() {
        assert_eq!(greatest_divisor(0, 0), 0);
        assert_eq!(greatest_divisor(0, 12), 12);
        assert_eq!(greatest_divisor(18, 12), 6);
    }

    #[test]
    fn positions_in_time_round_trip() {
        for starts in [
            vec![],
            vec![NO_MOMENT],
            vec![5, NO_MOMENT, 5],
            vec![-40, 60, NO_MOMENT, 20],
            vec![i64::MAX, i64::MIN + 1, 0],
        ] {
            assert_eq!(StoredStarts::of(&starts).decode(), Ok(starts));
        }
    }

    #[test]
    fn texts_that_are_no_date_time_add_no_number_to_a_column_of_whole_seconds() {
        let stored = StoredStarts::of(&[3 * SECOND, NO_MOMENT, 7 * SECOND]);
        assert_eq!((stored.base, stored.unit), (3, 4));
        assert_eq!(stored.steps, [0, 0, 1]);
        assert_eq!(stored.rests, [0, 0, 0]);
        assert_eq!(stored.without, [1]);
    }

    #[test]
    fn lists_that_do_not_fit_together_are_refused() {
        let moments = |rows, starts: &[i64]| StoredMoments {
            palette: Vec::new(),
            forms: vec![u8::MAX; rows],
            text_rows: vec![0],
            text_ids: vec![1],
            starts: StoredStarts::of(starts),
        };
        assert!(moments(1, &[NO_MOMENT]).moments().is_ok());
        assert!(moments(1, &[]).moments().is_err(), "no time");
        assert!(moments(2, &[2, 4]).moments().is_err(), "no second text");
    }
}
