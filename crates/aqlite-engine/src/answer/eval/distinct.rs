//! DISTINCT: removal of duplicate rows as they arrive.

use super::cells::identity;
use super::work::{CELL, Work};
use crate::answer::result::{CellRef, ResultBuffer};
use crate::document::Dictionary;
use hashbrown::{HashMap, HashSet};

/// The rows that were seen.
///
/// A row is known by the numbers of its cells' identities: equal content is kept once, however
/// often it is shown.
#[derive(Clone, Default)]
pub(super) struct Distinct {
    identities: Dictionary,
    /// The identities of texts of the result buffer, by what their cells are kept as.
    of_texts: HashMap<(u8, u32), u32>,
    /// The identities of words of the batch, by their numbers.
    of_words: HashMap<u32, u32>,
    seen: HashSet<Box<[u32]>>,
    bytes: usize,
    buffer: String,
}

/// Bytes that finding a row takes, beside its key.
const ENTRY: usize = 32;

impl Distinct {
    /// Returns whether this is a row whose content was not seen before.
    pub fn is_new(&mut self, result_buffer: &ResultBuffer, row: u32, work: &Work) -> bool {
        let cells = result_buffer.row(row);
        if cells.is_empty() {
            work.note_broken("a row of DISTINCT is not in the result buffer");
        }
        work.add(CELL * cells.len() as u64);
        let key: Box<[u32]> = cells
            .iter()
            .map(|held| self.number_of(result_buffer, *held, work))
            .collect();
        let bytes = size_of_val(&*key) + ENTRY;
        let is_new = self.seen.insert(key);
        self.bytes += if is_new { bytes } else { 0 };
        is_new
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        // The factor 2 accounts for the spare room of hash maps.
        self.bytes
            + self.identities.size()
            + (self.of_texts.len() * size_of::<((u8, u32), u32)>()
                + self.of_words.len() * size_of::<(u32, u32)>())
                * 2
    }

    /// The texts of the result buffer have other numbers from now on.
    pub fn forget_texts(&mut self) {
        self.of_texts.clear();
    }

    /// The words are those of another batch from now on.
    pub fn forget_words(&mut self) {
        self.of_words.clear();
    }

    fn number_of(&mut self, result_buffer: &ResultBuffer, held: CellRef, work: &Work) -> u32 {
        // The tag keeps texts of different kinds apart that have the same number.
        let text = match held {
            CellRef::Token(id) => Some((0, id)),
            CellRef::Text(id) => Some((1, id)),
            CellRef::Json(id) => Some((2, id)),
            _ => None,
        };
        // The identity of a word or text is computed once and then found by number.
        let known = match held {
            CellRef::Word(id) => self.of_words.get(&id),
            _ => text.and_then(|text| self.of_texts.get(&text)),
        };
        if let Some(known) = known {
            return *known;
        }
        self.buffer.clear();
        identity(&result_buffer.cell(held), &mut self.buffer);
        work.add(self.buffer.len() as u64);
        let number = self.identities.number_of(&self.buffer);
        if let CellRef::Word(id) = held {
            self.of_words.insert(id, number);
        }
        if let Some(text) = text {
            self.of_texts.insert(text, number);
        }
        number
    }
}
