//! Flags: which fragments of a table have an item, a bit each.

use crate::document::column::push;
use std::ops::Range;

/// Fragments of a table, a bit each: only as many words as the stretch between the first and the last needs.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    /// How many words stand before.
    first: usize,
    words: Vec<u64>,
}

impl Bits {
    /// Those of a range.
    pub fn of_range(range: &Range<u32>) -> Bits {
        let first = range.start as usize / 64;
        let mut words = vec![u64::MAX; (range.end as usize).div_ceil(64).saturating_sub(first)];
        words.first_mut().into_iter().for_each(|word| *word &= u64::MAX << (range.start % 64));
        words.last_mut().into_iter().for_each(|word| *word &= u64::MAX >> (range.end.wrapping_neg() % 64));
        Bits { first, words }
    }

    /// Those of a list in any order.
    pub fn of_rows(rows: &[u32]) -> Bits {
        let (least, most) = rows.iter().fold((u32::MAX, 0), |(least, most), row| (least.min(*row), most.max(*row)));
        if least > most {
            return Bits::default();
        }
        let first = least as usize / 64;
        let mut bits = Bits { first, words: vec![0; most as usize / 64 + 1 - first] };
        rows.iter().for_each(|row| bits.word_of(*row).into_iter().for_each(|word| *word |= 1 << (row % 64)));
        bits
    }

    /// Takes one away.
    pub fn clear(&mut self, row: u32) {
        self.word_of(row).into_iter().for_each(|word| *word &= !(1 << (row % 64)));
    }

    /// Takes those away for which a flag stands, and gives them, with how many they are.
    pub fn split(&mut self, flag: &Flag) -> (Bits, usize) {
        let (mut words, mut count) = (Vec::with_capacity(self.words.len()), 0);
        let of_flag = flag.words.get(self.first..).unwrap_or_default();
        words.extend(self.words.iter_mut().zip(of_flag).map(|(left, flag)| {
            let own = *left & flag;
            *left ^= own;
            count += own.count_ones() as usize;
            own
        }));
        words.resize(self.words.len(), 0);
        (Bits { first: self.first, words }, count)
    }

    /// The same in so many pieces of equal span.
    pub fn pieces(&self, pieces: usize) -> impl Iterator<Item = Bits> {
        let most = self.words.len().div_ceil(pieces).max(1);
        let starts = (self.first..).step_by(most);
        self.words.chunks(most).zip(starts).map(|(words, first)| Bits { first, words: words.to_vec() })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// How many words they take.
    pub fn words_held(&self) -> usize {
        self.words.len()
    }

    /// The words that are not empty, each with the fragment of its lowest bit.
    pub fn words(&self) -> impl Iterator<Item = (u32, u64)> {
        (self.first as u32..).zip(&self.words).filter(|(_, word)| **word != 0).map(|(at, word)| (at * 64, *word))
    }

    /// All, of which there are so many, in order.
    pub fn rows(&self, count: usize) -> Vec<u32> {
        let mut rows = Vec::with_capacity(count);
        for (start, mut left) in self.words() {
            while left != 0 {
                rows.push(start + left.trailing_zeros());
                left &= left - 1;
            }
        }
        rows
    }

    fn word_of(&mut self, row: u32) -> Option<&mut u64> {
        self.words.get_mut((row as usize / 64).checked_sub(self.first)?)
    }
}

/// A bit for each fragment of a table, and how many stand before each 64 of them.
#[derive(Clone, Debug, Default)]
pub struct Flag {
    words: Vec<u64>,
    before: Vec<u32>,
    count: u32,
}

impl Flag {
    /// Stands for so many fragments.
    pub(super) fn of(fragments: u32) -> Flag {
        let mut flag = Flag::default();
        (0..fragments).for_each(|row| flag.set(row));
        flag
    }

    /// Stands for a fragment, behind all for which it stands.
    pub(super) fn set(&mut self, row: u32) {
        while self.words.len() <= row as usize / 64 {
            push(&mut self.words, 0);
            push(&mut self.before, self.count);
        }
        self.words.last_mut().into_iter().for_each(|word| *word |= 1 << (row % 64));
        self.count += 1;
    }

    /// True when it stands for a fragment.
    pub fn stands(&self, row: u32) -> bool {
        self.word(row as usize / 64) >> (row % 64) & 1 == 1
    }

    /// For how many fragments before one it stands.
    pub fn before(&self, row: u32) -> u32 {
        let word = self.word(row as usize / 64) & ((1 << (row % 64)) - 1);
        self.before.get(row as usize / 64).map_or(self.count, |before| before + word.count_ones())
    }

    fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// Of values, one for each fragment that it stands for, those of some fragments, which all are among them.
    pub fn pick(&self, bits: &Bits, values: &[f64]) -> Vec<f64> {
        let before = |word: usize| self.before.get(word).copied().unwrap_or(self.count);
        let (mut start, end) = (before(bits.first), before(bits.first + bits.words.len()));
        let mut picked = Vec::with_capacity((end - start) as usize);
        let mut take = |start: u32, end: u32| picked.extend_from_slice(values.get(start as usize..end as usize).unwrap_or_default());
        let own = self.words.iter().zip(&self.before).skip(bits.first);
        for ((word, before), wanted) in own.zip(&bits.words) {
            let mut left_out = word & !wanted;
            while left_out != 0 {
                let lower = (1 << left_out.trailing_zeros()) - 1;
                let at = before + (word & lower).count_ones();
                take(start, at);
                start = at + 1;
                left_out &= left_out - 1;
            }
        }
        take(start, end);
        picked
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * 8 + self.before.capacity() * 4 + size_of::<Flag>()
    }
}
