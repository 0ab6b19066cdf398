//! Filters of the texts and UUIDs of data files. If an id becomes that of a patient, they show which
//! files may have it already, so that no others are read.
//!
//! A filter is a Bloom filter with 20 bits for each token and 10 probes: one file in 10,000 is read in
//! vain for an id. A token that a file has is always found. The hashes have no key, because a filter
//! reveals no more than its file.

use super::pseudonym::{Token, each_token};
use aqlite::aql::Cell;
use std::collections::HashSet;
use twox_hash::XxHash64;
use uuid::Uuid;

/// The bits for each token.
const BITS: usize = 20;

/// The bits that are set for a token.
const PROBES: u64 = 10;

/// The most tokens of a filter: 32 MB while they are collected. A file with more of them has none, and
/// is always read.
const TOKENS: usize = 2_097_152;

/// The tokens of a file that is being written.
#[derive(Default)]
pub struct Tokens {
    hashes: HashSet<u64>,
    is_full: bool,
}

/// The filter of a file.
#[derive(Debug, PartialEq)]
pub struct TokenFilter(Vec<u8>);

impl Tokens {
    /// Adds those of a cell.
    pub fn add(&mut self, cell: Cell<&str>) {
        if self.is_full {
            return;
        }
        each_token(cell, &mut |token| {
            self.hashes.insert(hash(&token));
        });
        if self.hashes.len() > TOKENS {
            self.is_full = true;
            self.hashes = HashSet::new();
        }
    }

    /// Removes all tokens, and returns their filter; `None` if they were too many.
    pub fn take(&mut self) -> Option<TokenFilter> {
        let Tokens { hashes, is_full } = std::mem::take(self);
        if is_full {
            return None;
        }
        let mut filter = TokenFilter(vec![0; (hashes.len() * BITS).div_ceil(8).max(1)]);
        hashes.iter().for_each(|hash| filter.insert(*hash));
        Some(filter)
    }
}

impl TokenFilter {
    /// Reads a filter from its bytes; `None` if they are damaged.
    pub fn read(bytes: Vec<u8>, checksum: u64) -> Option<TokenFilter> {
        let filter = TokenFilter(bytes);
        (filter.checksum() == checksum && !filter.0.is_empty()).then_some(filter)
    }

    /// Returns the checksum of the bytes.
    pub fn checksum(&self) -> u64 {
        XxHash64::oneshot(0, &self.0)
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Returns whether the file may have an id, as a text or as a UUID. Never false if it has it.
    pub fn may_have(&self, id: &str) -> bool {
        let uuid = Uuid::try_parse(id).ok().map(Token::Uuid);
        let tokens = [Some(Token::Text(id)), uuid].into_iter().flatten();
        tokens.map(|token| hash(&token)).any(|hash| self.has(hash))
    }

    fn insert(&mut self, hash: u64) {
        for (byte, mask) in self.places(hash) {
            if let Some(byte) = self.0.get_mut(byte) {
                *byte |= mask;
            }
        }
    }

    fn has(&self, hash: u64) -> bool {
        let mut places = self.places(hash).into_iter();
        places.all(|(byte, mask)| self.0.get(byte).is_some_and(|byte| byte & mask != 0))
    }

    /// Returns the bits of a token: the index of the byte, and the bit in it.
    fn places(&self, hash: u64) -> Vec<(usize, u8)> {
        let bits = self.0.len() as u64 * 8;
        // Double hashing (Kirsch and Mitzenmacher 2006). The step is odd, so that it is never zero.
        let (start, step) = (hash, hash.rotate_right(32) | 1);
        let place = |probe: u64| {
            let bit = start.wrapping_add(probe.wrapping_mul(step)) % bits;
            (usize::try_from(bit / 8).unwrap_or_default(), 1 << (bit % 8))
        };
        (0..PROBES).map(place).collect()
    }
}

/// Returns the hash of a token. Texts and UUIDs have different seeds.
fn hash(token: &Token<'_>) -> u64 {
    match token {
        Token::Text(text) => XxHash64::oneshot(1, text.as_bytes()),
        Token::Uuid(id) => XxHash64::oneshot(2, id.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EHR: &str = "7d44b88c-4199-4bad-97dc-d78268e01398";

    fn filter(cells: &[Cell<&str>]) -> TokenFilter {
        let mut tokens = Tokens::default();
        cells.iter().for_each(|cell| tokens.add(*cell));
        tokens.take().unwrap()
    }

    #[test]
    fn every_id_of_a_file_is_found() {
        let upper = format!("see {}.", EHR.to_uppercase());
        let json = format!(
            r#"{{"name":["pat-1","a\"b","x{}y"]}}"#,
            EHR.replace('-', "")
        );
        let cases = [
            (Cell::Text(upper.as_str()), EHR),
            (Cell::Text(EHR), EHR),
            (Cell::Text("pat 1"), "pat 1"),
            (Cell::Text("EHR:/pat-1/b?c#d"), "pat-1"),
            (Cell::Json(json.as_str()), EHR),
            (Cell::Json(json.as_str()), "pat-1"),
            (Cell::Json(json.as_str()), "a\"b"),
        ];
        for (cell, id) in cases {
            let filter = filter(&[cell, Cell::Text("other")]);
            assert!(filter.may_have(id), "{id}");
            assert!(!filter.may_have("17"), "{id}");
            assert!(!filter.may_have("name"), "names of members are no ids");
            let (checksum, bytes) = (filter.checksum(), filter.0.clone());
            assert_eq!(TokenFilter::read(bytes.clone(), checksum), Some(filter));
            assert_eq!(TokenFilter::read(bytes, 7), None);
        }
        assert!(!filter(&[]).may_have(EHR));
    }

    #[test]
    fn other_ids_are_found_rarely() {
        let texts: Vec<String> = (0..10_000).map(|number| format!("text {number}")).collect();
        let cells: Vec<Cell<&str>> = texts.iter().map(|text| Cell::Text(text.as_str())).collect();
        let filter = filter(&cells);
        assert!(texts.iter().all(|text| filter.may_have(text)));
        let others = (0..100_000).map(|number| format!("other {number}"));
        let found = others.filter(|other| filter.may_have(other)).count();
        assert!(found < 40, "{found} of 100,000");
    }
}
