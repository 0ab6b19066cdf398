//! Sets of rows of a table as bitmaps.
//!
//! [`Bitmap`] is a selection of rows. [`PresenceBitmap`] contains the rows that have an optional
//! item, and maps such a row to its index in the dense column of the item (its rank).

use crate::document::column::push;
use std::ops::Range;

/// A set of rows with one bit for each row.
///
/// Only the 64-bit words between the first and the last row of the set are stored.
#[derive(Clone, Debug, Default)]
pub struct Bitmap {
    /// The number of empty words before the first stored word.
    first: usize,
    words: Vec<u64>,
}

impl Bitmap {
    /// Creates the set of the rows of a range.
    pub fn from_range(range: &Range<u32>) -> Bitmap {
        let first = range.start as usize / 64;
        let mut words = vec![u64::MAX; (range.end as usize).div_ceil(64).saturating_sub(first)];
        // Clears the bits below the first row.
        words
            .first_mut()
            .into_iter()
            .for_each(|word| *word &= u64::MAX << (range.start % 64));
        // Clears the bits from the end on. `-end mod 64` is the number of unused bits of the last
        // word, and 0 if the word is full.
        words
            .last_mut()
            .into_iter()
            .for_each(|word| *word &= u64::MAX >> (range.end.wrapping_neg() % 64));
        Bitmap { first, words }
    }

    /// Creates the set of the listed rows, which may be in any order.
    pub fn from_rows(rows: &[u32]) -> Bitmap {
        let (least, most) = rows.iter().fold((u32::MAX, 0), |(least, most), row| {
            (least.min(*row), most.max(*row))
        });
        if least > most {
            return Bitmap::default();
        }
        let first = least as usize / 64;
        let mut bits = Bitmap {
            first,
            words: vec![0; most as usize / 64 + 1 - first],
        };
        rows.iter().for_each(|row| {
            bits.word_of(*row)
                .into_iter()
                .for_each(|word| *word |= 1 << (row % 64))
        });
        bits
    }

    /// Removes a row.
    pub fn clear(&mut self, row: u32) {
        self.word_of(row)
            .into_iter()
            .for_each(|word| *word &= !(1 << (row % 64)));
    }

    /// Moves the rows that `presence` contains to a new set.
    ///
    /// Returns the new set and its number of rows.
    pub fn split(&mut self, presence: &PresenceBitmap) -> (Bitmap, usize) {
        let (mut words, mut count) = (Vec::with_capacity(self.words.len()), 0);
        let other = presence.words.get(self.first..).unwrap_or_default();
        words.extend(self.words.iter_mut().zip(other).map(|(left, presence)| {
            let own = *left & presence;
            // `own` is a subset of `left`, so XOR removes exactly these bits.
            *left ^= own;
            count += own.count_ones() as usize;
            own
        }));
        // The bitmap has no words after its last row: later rows lack the item.
        words.resize(self.words.len(), 0);
        (
            Bitmap {
                first: self.first,
                words,
            },
            count,
        )
    }

    /// Splits the set into `pieces` sets that span equally many rows.
    pub fn pieces(&self, pieces: usize) -> impl Iterator<Item = Bitmap> {
        let most = self.words.len().div_ceil(pieces.max(1)).max(1);
        let starts = (self.first..).step_by(most);
        self.words
            .chunks(most)
            .zip(starts)
            .map(|(words, first)| Bitmap {
                first,
                words: words.to_vec(),
            })
    }

    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Returns the number of stored 64-bit words.
    pub fn words_held(&self) -> usize {
        self.words.len()
    }

    /// Returns the words with at least one row, each with the row of its lowest bit.
    pub fn words(&self) -> impl Iterator<Item = (u32, u64)> {
        (self.first as u32..)
            .zip(&self.words)
            .filter(|(_, word)| **word != 0)
            .map(|(at, word)| (at * 64, *word))
    }

    /// Returns all rows in ascending order; `count` is their number.
    pub fn rows(&self, count: usize) -> Vec<u32> {
        let mut rows = Vec::with_capacity(count);
        for (start, mut left) in self.words() {
            while left != 0 {
                rows.push(start + left.trailing_zeros());
                // Clears the lowest bit that is set.
                left &= left - 1;
            }
        }
        rows
    }

    fn word_of(&mut self, row: u32) -> Option<&mut u64> {
        self.words
            .get_mut((row as usize / 64).checked_sub(self.first)?)
    }
}

/// A bitmap of the rows of a table that have an optional item.
///
/// The number of rows before each word of 64 bits is stored, so a rank costs one `popcount`.
#[derive(Clone, Debug, Default)]
pub struct PresenceBitmap {
    words: Vec<u64>,
    ranks: Vec<u32>,
    count: u32,
}

impl PresenceBitmap {
    /// Creates the bitmap of a table with `fragments` rows, all of which have the item.
    pub(super) fn all_rows(fragments: u32) -> PresenceBitmap {
        let mut presence = PresenceBitmap::default();
        (0..fragments).for_each(|row| presence.set(row));
        presence
    }

    /// Creates the bitmap of the listed rows, which ascend.
    #[cfg(test)]
    pub fn of_rows(rows: &[u32]) -> PresenceBitmap {
        let mut presence = PresenceBitmap::default();
        rows.iter().for_each(|row| presence.set(*row));
        presence
    }

    /// Adds a row, which must be greater than all rows of the bitmap.
    pub(super) fn set(&mut self, row: u32) {
        // The rank of a new word is the number of all rows that were added before it.
        while self.words.len() <= row as usize / 64 {
            push(&mut self.words, 0);
            push(&mut self.ranks, self.count);
        }
        self.words
            .last_mut()
            .into_iter()
            .for_each(|word| *word |= 1 << (row % 64));
        self.count += 1;
    }

    /// Returns the bits of the rows, 64 in a word, the first row in the lowest bit.
    pub(in crate::document) fn to_words(&self) -> Vec<u64> {
        self.words.clone()
    }

    /// Creates the bitmap with these bits.
    pub(in crate::document) fn from_words(words: Vec<u64>) -> PresenceBitmap {
        let mut count = 0;
        let rank = |word: &u64| {
            let before = count;
            count += word.count_ones();
            before
        };
        let ranks = words.iter().map(rank).collect();
        PresenceBitmap {
            words,
            ranks,
            count,
        }
    }

    /// Returns whether a row has the item.
    pub fn contains(&self, row: u32) -> bool {
        // A word after the last one is 0, so later rows lack the item.
        self.word(row as usize / 64) >> (row % 64) & 1 == 1
    }

    /// Returns the number of rows before `row` that have the item.
    ///
    /// For a row with the item, this is the index of its value in the column.
    pub fn rank(&self, row: u32) -> u32 {
        // The mask keeps the bits below `row`. After the last word, the rank is the total.
        let word = self.word(row as usize / 64) & ((1 << (row % 64)) - 1);
        self.ranks
            .get(row as usize / 64)
            .map_or(self.count, |rank| rank + word.count_ones())
    }

    fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// Returns the values of the rows of `bits`, all of which must have the item.
    ///
    /// `values` is the dense column: one value for each row with the item.
    pub fn values_of(&self, bits: &Bitmap, values: &[f64]) -> Vec<f64> {
        let rank = |word: usize| self.ranks.get(word).copied().unwrap_or(self.count);
        // The values of the span are one slice. The values of unwanted rows cut it into stretches,
        // and each stretch is copied at once.
        let (mut start, end) = (rank(bits.first), rank(bits.first + bits.words.len()));
        let mut picked = Vec::with_capacity((end - start) as usize);
        let mut take = |start: u32, end: u32| {
            picked.extend_from_slice(values.get(start as usize..end as usize).unwrap_or_default())
        };
        let own = self.words.iter().zip(&self.ranks).skip(bits.first);
        for ((word, rank), wanted) in own.zip(&bits.words) {
            // Each row that has the item but is not wanted ends a stretch.
            let mut left_out = word & !wanted;
            while left_out != 0 {
                // The bits below the lowest remaining bit count the values before it in this word.
                let lower = (1 << left_out.trailing_zeros()) - 1;
                let at = rank + (word & lower).count_ones();
                take(start, at);
                start = at + 1;
                // Clears the lowest bit that is set.
                left_out &= left_out - 1;
            }
        }
        take(start, end);
        picked
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * 8 + self.ranks.capacity() * 4 + size_of::<PresenceBitmap>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bitmap, PresenceBitmap};
    use std::ops::Range;

    /// Numbers of rows around the borders of words.
    const LENGTHS: [u32; 8] = [0, 1, 63, 64, 65, 127, 128, 200];

    /// Returns the sets of rows below `len` that the tests combine, as one flag for each row.
    fn sets(len: u32) -> Vec<Vec<bool>> {
        let of = |test: &dyn Fn(u32) -> bool| (0..len).map(test).collect();
        vec![
            of(&|_| false),
            of(&|_| true),
            of(&|row| row % 2 == 0),
            of(&|row| row % 7 == 3),
            of(&|row| (63..=65).contains(&row)),
            of(&|row| row >= 64),
            of(&|row| row < 63),
            of(&|row| row + 1 == len),
        ]
    }

    fn rows_of(flags: &[bool]) -> Vec<u32> {
        let rows = (0u32..).zip(flags);
        rows.filter_map(|(row, flag)| flag.then_some(row)).collect()
    }

    fn presence_of(flags: &[bool]) -> PresenceBitmap {
        PresenceBitmap::of_rows(&rows_of(flags))
    }

    fn all_rows(bitmap: &Bitmap) -> Vec<u32> {
        bitmap.rows(bitmap.count())
    }

    #[test]
    fn bitmap_of_a_range_has_exactly_its_rows() {
        for start in LENGTHS {
            for end in LENGTHS.into_iter().filter(|end| *end >= start) {
                let range: Range<u32> = start..end;
                let bitmap = Bitmap::from_range(&range);
                assert_eq!(all_rows(&bitmap), range.clone().collect::<Vec<_>>());
                assert_eq!(bitmap.count(), range.len());
            }
        }
    }

    #[test]
    fn bitmap_of_a_list_has_its_rows_in_ascending_order() {
        for flags in LENGTHS.into_iter().flat_map(sets) {
            let rows = rows_of(&flags);
            let reversed: Vec<u32> = rows.iter().rev().copied().collect();
            assert_eq!(all_rows(&Bitmap::from_rows(&reversed)), rows);
        }
    }

    #[test]
    fn cleared_rows_are_not_in_a_bitmap() {
        let mut bitmap = Bitmap::from_range(&(60..130));
        // The rows outside the stored words are not in the set anyhow.
        for row in [0, 63, 64, 65, 127, 128, 1000] {
            bitmap.clear(row);
        }
        let left: Vec<u32> = (60..130)
            .filter(|row| ![63, 64, 65, 127, 128].contains(row))
            .collect();
        assert_eq!(all_rows(&bitmap), left);
    }

    #[test]
    fn pieces_of_a_bitmap_have_its_rows() {
        for flags in LENGTHS.into_iter().flat_map(sets) {
            let bitmap = Bitmap::from_rows(&rows_of(&flags));
            for pieces in 1..6 {
                let found: Vec<u32> = bitmap
                    .pieces(pieces)
                    .flat_map(|piece| all_rows(&piece))
                    .collect();
                assert_eq!(found, rows_of(&flags));
            }
        }
    }

    #[test]
    fn split_separates_the_rows_with_the_item() {
        for len in LENGTHS {
            for flags in sets(len) {
                for present in LENGTHS.into_iter().flat_map(sets) {
                    let has = |row: &u32| present.get(*row as usize) == Some(&true);
                    let mut others = Bitmap::from_rows(&rows_of(&flags));
                    let (own, count) = others.split(&presence_of(&present));
                    let (with, without): (Vec<u32>, Vec<u32>) =
                        rows_of(&flags).iter().partition(|row| has(row));
                    assert_eq!((all_rows(&own), count), (with.clone(), with.len()));
                    assert_eq!(all_rows(&others), without);
                }
            }
        }
    }

    #[test]
    fn rank_is_the_number_of_earlier_rows_with_the_item() {
        for flags in LENGTHS.into_iter().flat_map(sets) {
            let presence = presence_of(&flags);
            let stored = PresenceBitmap::from_words(presence.to_words());
            for row in 0..flags.len() as u32 + 130 {
                let earlier = flags.iter().take(row as usize).filter(|flag| **flag);
                let rank = earlier.count() as u32;
                let has = flags.get(row as usize) == Some(&true);
                for presence in [&presence, &stored] {
                    assert_eq!((presence.rank(row), presence.contains(row)), (rank, has));
                }
            }
        }
    }

    #[test]
    fn values_are_those_of_the_wanted_rows() {
        for len in LENGTHS {
            for present in sets(len) {
                let rows = rows_of(&present);
                // Each row has its own number as the value.
                let values: Vec<f64> = rows.iter().copied().map(f64::from).collect();
                let presence = presence_of(&present);
                for wanted in sets(len) {
                    let wanted: Vec<u32> = rows_of(&wanted)
                        .into_iter()
                        .filter(|row| rows.contains(row))
                        .collect();
                    let found = presence.values_of(&Bitmap::from_rows(&wanted), &values);
                    let expected: Vec<f64> = wanted.iter().copied().map(f64::from).collect();
                    assert_eq!(found, expected);
                }
            }
        }
    }
}
