//! Flags: which fragments of a table have an item, a bit each.

use crate::document::column::push;

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

    /// Leaves of some bits, one a fragment, those of fragments for which it stands, or does not.
    pub fn narrow(&self, stands: bool, bits: &mut [u64]) {
        let turned = if stands { 0 } else { u64::MAX };
        let (known, beyond) = bits.split_at_mut(self.words.len().min(bits.len()));
        known.iter_mut().zip(&self.words).for_each(|(bits, word)| *bits &= word ^ turned);
        beyond.iter_mut().for_each(|bits| *bits &= turned);
    }

    fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// Of values, one for each fragment that it stands for, those of the fragments with these bits, which all are among them.
    pub fn pick(&self, bits: &[u64], values: &[f64]) -> Vec<f64> {
        let mut picked = Vec::with_capacity(values.len());
        let mut start = 0;
        let mut take = |start: u32, end: u32| picked.extend_from_slice(values.get(start as usize..end as usize).unwrap_or_default());
        for ((word, before), wanted) in self.words.iter().zip(&self.before).zip(bits) {
            let mut left_out = word & !wanted;
            while left_out != 0 {
                let lower = (1 << left_out.trailing_zeros()) - 1;
                let at = before + (word & lower).count_ones();
                take(start, at);
                start = at + 1;
                left_out &= left_out - 1;
            }
        }
        take(start, self.before.get(bits.len()).copied().unwrap_or(self.count));
        picked
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.capacity() * 8 + self.before.capacity() * 4 + size_of::<Flag>()
    }
}
