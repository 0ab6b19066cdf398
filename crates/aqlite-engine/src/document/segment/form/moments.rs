//! The encoded form of columns of date-times.

use super::UNEVEN;
use crate::codec;
use crate::document::moment::{MomentColumn, MomentParts, NO_MOMENT};
use bitcode::{Decode, Encode};

/// Date-times with the forms of their texts.
#[derive(Encode, Decode)]
pub(in crate::document::segment) struct StoredMoments {
    palette: Vec<u32>,
    forms: Vec<u8>,
    word_rows: Vec<u32>,
    words: Vec<u32>,
    begins: StoredBegins,
}

/// Positions in time: seconds as `base + unit * steps`, and the rest of each. Few times have a
/// fraction, so most rests are 0.
#[derive(Encode, Decode)]
struct StoredBegins {
    base: i64,
    unit: u64,
    steps: Vec<u64>,
    /// The parts of a second, in the unit of [`MomentParts::begins`].
    rests: Vec<u32>,
    /// The rows whose text is no date-time.
    without: Vec<u32>,
}

/// A second in the unit of [`MomentParts::begins`]: half a microsecond.
const SECOND: i64 = 2_000_000;

/// Date-times of the first version of checkpoints, whose texts all are in the dictionary. Their
/// positions are `base + unit * steps`.
pub(super) struct WordMoments {
    words: Vec<u32>,
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
            word_rows: parts.word_rows,
            words: parts.words,
            begins: StoredBegins::of(&parts.begins),
        }
    }

    pub fn moments(self) -> Result<MomentColumn, &'static str> {
        let parts = MomentParts {
            palette: self.palette,
            forms: self.forms,
            word_rows: self.word_rows,
            words: self.words,
            begins: self.begins.begins()?,
        };
        MomentColumn::from_parts(parts).ok_or(UNEVEN)
    }
}

impl WordMoments {
    /// Converts the date-times to the present form; `None` if the lists do not fit together.
    pub fn moments(self) -> Option<StoredMoments> {
        let begin = |steps: &u64| {
            let distance = steps.wrapping_mul(self.unit);
            self.base.wrapping_add(distance as i64)
        };
        let mut begins: Vec<i64> = self.steps.iter().map(begin).collect();
        for row in self.without {
            *begins.get_mut(row as usize)? = NO_MOMENT;
        }
        Some(StoredMoments::of(MomentParts::of_words(self.words, begins)))
    }
}

impl StoredBegins {
    fn of(begins: &[i64]) -> StoredBegins {
        let known = begins.iter().filter(|begin| **begin != NO_MOMENT);
        let seconds = || known.clone().map(|begin| begin.div_euclid(SECOND));
        let base = seconds().min().unwrap_or(0);
        // The base is the least second, so no distance is negative.
        let distance = |second: i64| (second - base) as u64;
        let unit = seconds().fold(0, |unit, second| greatest_divisor(unit, distance(second)));
        // If all times are in one second, the unit is 0 and must not be a divisor.
        let step = |begin: &i64| match *begin {
            NO_MOMENT => 0,
            begin => distance(begin.div_euclid(SECOND)) / unit.max(1),
        };
        let without = (0..).zip(begins).filter(|(_, begin)| **begin == NO_MOMENT);
        StoredBegins {
            base,
            unit,
            steps: begins.iter().map(step).collect(),
            rests: begins
                .iter()
                .map(|begin| begin.rem_euclid(SECOND) as u32)
                .collect(),
            without: without.map(|(row, _)| row).collect(),
        }
    }

    fn begins(self) -> Result<Vec<i64>, &'static str> {
        if self.rests.len() != self.steps.len() {
            return Err(UNEVEN);
        }
        let begin = |(steps, rest): (&u64, &u32)| {
            // Damaged numbers wrap around: the checksum of a part is tested before.
            let second = self.base.wrapping_add(steps.wrapping_mul(self.unit) as i64);
            second.wrapping_mul(SECOND).wrapping_add(i64::from(*rest))
        };
        let mut begins: Vec<i64> = self.steps.iter().zip(&self.rests).map(begin).collect();
        for row in self.without {
            *begins.get_mut(row as usize).ok_or(UNEVEN)? = NO_MOMENT;
        }
        Ok(begins)
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
    word_rows,
    words,
    begins,
});
codec!(StoredBegins {
    base,
    unit,
    steps,
    rests,
    without,
});
codec!(WordMoments {
    words,
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
        for begins in [
            vec![],
            vec![NO_MOMENT],
            vec![5, NO_MOMENT, 5],
            vec![-40, 60, NO_MOMENT, 20],
            vec![i64::MAX, i64::MIN + 1, 0],
        ] {
            assert_eq!(StoredBegins::of(&begins).begins(), Ok(begins));
        }
    }

    #[test]
    fn lists_that_do_not_fit_together_are_refused() {
        let moments = |rows, begins: &[i64]| StoredMoments {
            palette: Vec::new(),
            forms: vec![u8::MAX; rows],
            word_rows: vec![0],
            words: vec![1],
            begins: StoredBegins::of(begins),
        };
        assert!(moments(1, &[NO_MOMENT]).moments().is_ok());
        assert!(moments(1, &[]).moments().is_err(), "no time");
        assert!(moments(2, &[2, 4]).moments().is_err(), "no second word");
    }
}
