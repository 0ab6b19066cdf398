//! An index from texts to numbers that can be stored in a checkpoint.

use super::part::Part;
use super::part_file::{PartFile, Region};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use std::rc::Rc;
use twox_hash::XxHash64;

/// An index from texts to numbers. The texts are not stored in it: a function returns the text of a
/// number.
///
/// Numbers of a checkpoint are in a sorted list, which is read at the first lookup. Numbers that
/// are added later are in a hash table.
#[derive(Clone, Debug)]
pub struct TextIndex {
    sorted: Part<SortedHashes>,
    added: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// Numbers sorted by the hashes of their texts.
#[derive(Clone, Debug, Default)]
pub(super) struct SortedHashes {
    pub hashes: Vec<u32>,
    pub numbers: Vec<u32>,
}

impl Default for TextIndex {
    fn default() -> TextIndex {
        TextIndex {
            sorted: Part::Owned(SortedHashes::default()),
            added: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl SortedHashes {
    /// Returns the position of the number whose text is `text`.
    fn position<'t>(&self, text: &str, text_of: impl Fn(u32) -> &'t str) -> Option<usize> {
        // An index without a checkpoint, which is the usual one, needs no second hash of the text.
        if self.hashes.is_empty() {
            return None;
        }
        let hash = hash_of(text);
        let first = self.hashes.partition_point(|other| *other < hash);
        let hashes = self.hashes.get(first..)?.iter();
        let same = hashes.take_while(|other| **other == hash).count();
        // Hashes can collide, so the texts are compared.
        (first..first + same).find(|at| {
            let number = self.numbers.get(*at);
            number.is_some_and(|number| text_of(*number) == text)
        })
    }
}

/// Returns the hash by which stored numbers are sorted. It never changes, because files contain it.
fn hash_of(text: &str) -> u32 {
    (XxHash64::oneshot(0, text.as_bytes()) >> 32) as u32
}

/// Sorts numbers by their bytes, least significant first (radix sort). There are millions of
/// numbers, and a pass costs about as much as a copy.
fn radix_sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    let mut other = vec![0; numbers.len()];
    for shift in (0..u64::BITS).step_by(8) {
        let digit = |number: u64| (number >> shift) as usize & 0xff;
        let mut ends = [0; 256];
        for number in &numbers {
            if let Some(end) = ends.get_mut(digit(*number)) {
                *end += 1;
            }
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        // From here on, `ends` holds the position of the next number with each digit.
        for number in &numbers {
            let place = ends.get_mut(digit(*number)).map(|place| {
                *place += 1;
                *place - 1
            });
            if let Some(place) = place.and_then(|place| other.get_mut(place)) {
                *place = *number;
            }
        }
        std::mem::swap(&mut numbers, &mut other);
    }
    numbers
}

impl TextIndex {
    /// Creates the index from a region of a checkpoint.
    pub fn stored(file: &Rc<PartFile>, region: Region, len: u32) -> TextIndex {
        TextIndex {
            sorted: Part::stored(file, region, len),
            ..TextIndex::default()
        }
    }

    /// Returns the file and the region of an unchanged index.
    pub(super) fn unchanged(&self) -> Option<(&PartFile, Region)> {
        self.sorted.unchanged().filter(|_| self.added.is_empty())
    }

    /// Returns the number of a text.
    pub fn find<'t>(&self, text: &str, text_of: impl Fn(u32) -> &'t str) -> Option<u32> {
        let added = self.added.find(self.hasher.hash_one(text), |number| {
            text_of(*number) == text
        });
        if let Some(number) = added {
            return Some(*number);
        }
        let sorted = self.sorted.get()?;
        let at = sorted.position(text, text_of)?;
        sorted.numbers.get(at).copied()
    }

    /// Inserts a number. Replaces and returns the number with the same text, if any.
    pub fn put<'t>(&mut self, number: u32, text_of: impl Fn(u32) -> &'t str) -> Option<u32> {
        let text = text_of(number);
        let known = self.sorted.get();
        if let Some(at) = known.and_then(|sorted| sorted.position(text, &text_of)) {
            let known = self.sorted.owned()?.numbers.get_mut(at)?;
            return Some(std::mem::replace(known, number));
        }
        let hash = self.hasher.hash_one(text);
        let same = |other: &u32| text_of(*other) == text;
        if let Some(known) = self.added.find_mut(hash, same) {
            return Some(std::mem::replace(known, number));
        }
        self.add(text, number, text_of);
        None
    }

    /// Inserts a number whose text is not in the index.
    pub(super) fn add<'t>(&mut self, text: &str, number: u32, text_of: impl Fn(u32) -> &'t str) {
        let hasher = &self.hasher;
        // The table needs the texts of its entries for their hashes when it grows.
        self.added
            .insert_unique(hasher.hash_one(text), number, |other| {
                hasher.hash_one(text_of(*other))
            });
    }

    /// Returns all numbers in the order of a stored index; `None` if the stored part cannot be
    /// read.
    pub(super) fn sorted<'t>(&self, text_of: impl Fn(u32) -> &'t str) -> Option<SortedHashes> {
        let sorted = self.sorted.get()?;
        let stored = sorted.hashes.iter().zip(&sorted.numbers);
        let added = self.added.iter();
        let entry = |hash: u32, number: u32| u64::from(hash) << 32 | u64::from(number);
        let entries: Vec<u64> = stored
            .map(|(hash, number)| entry(*hash, *number))
            .chain(added.map(|number| entry(hash_of(text_of(*number)), *number)))
            .collect();
        let entries = radix_sorted(entries);
        Some(SortedHashes {
            hashes: entries.iter().map(|entry| (entry >> 32) as u32).collect(),
            numbers: entries.iter().map(|entry| *entry as u32).collect(),
        })
    }

    /// Estimates the bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let sorted = self.sorted.present();
        // An entry of the table takes 4 bytes and one control byte.
        sorted.map_or(0, |sorted| sorted.numbers.capacity() * 8) + self.added.capacity() * 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sorted() {
        let step = |n: &u64| Some(n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let numbers: Vec<u64> = std::iter::successors(Some(7), step).take(500).collect();
        let mut expected = [numbers.clone(), vec![0, 1, u64::MAX, 1]].concat();
        let sorted = radix_sorted(expected.clone());
        expected.sort_unstable();
        assert_eq!(sorted, expected);
        assert!(radix_sorted(Vec::new()).is_empty());
    }

    #[test]
    fn stored_numbers_are_found_among_equal_hashes() {
        let texts = ["one", "two", "three"];
        let same = hash_of("two");
        let sorted = SortedHashes {
            hashes: vec![same, same, same],
            numbers: vec![0, 1, 2],
        };
        let position = |text| sorted.position(text, |n| texts[n as usize]);
        assert_eq!((position("two"), position("four")), (Some(1), None));
    }
}
