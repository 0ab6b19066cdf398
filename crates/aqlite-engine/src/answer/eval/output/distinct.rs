//! DISTINCT: removal of duplicate rows as they arrive.

use crate::answer::eval::cells::identity;
use crate::answer::eval::work::{CELL, Work};
use crate::answer::result::{CellRef, ResultBuffer};
use crate::document::Dictionary;
use hashbrown::{HashMap, HashSet};

/// The rows that DISTINCT has seen.
///
/// A row is a list of numbers, one for the identity of each cell. Each distinct content is stored
/// once.
#[derive(Clone, Default)]
pub(super) struct Distinct {
    identities: Dictionary,
    /// The numbers of the identities of texts of the result buffer, by the kind of their cells and
    /// their number.
    of_texts: HashMap<(u8, u32), u32>,
    /// The numbers of the identities of dictionary entries of the batch.
    of_dictionary_texts: HashMap<u32, u32>,
    seen: HashSet<Box<[u32]>>,
    bytes: usize,
    buffer: String,
}

/// An estimate of the bytes of a row in the set, in addition to its key.
const ENTRY_BYTES: usize = 32;

impl Distinct {
    /// Adds a row. Returns whether no earlier row has the same content.
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
        let bytes = size_of_val(&*key) + ENTRY_BYTES;
        let is_new = self.seen.insert(key);
        self.bytes += if is_new { bytes } else { 0 };
        is_new
    }

    /// Returns an estimate of the bytes held.
    pub fn bytes(&self) -> usize {
        // The factor 2 accounts for the spare room of hash maps.
        self.bytes
            + self.identities.size()
            + (self.of_texts.len() * size_of::<((u8, u32), u32)>()
                + self.of_dictionary_texts.len() * size_of::<(u32, u32)>())
                * 2
    }

    /// Discards the cached texts of the result buffer, whose numbers have changed.
    pub fn forget_texts(&mut self) {
        self.of_texts.clear();
    }

    /// Discards the cached dictionary entries, because another batch follows.
    pub fn forget_dictionary_texts(&mut self) {
        self.of_dictionary_texts.clear();
    }

    fn number_of(&mut self, result_buffer: &ResultBuffer, held: CellRef, work: &Work) -> u32 {
        // The tag keeps texts of different kinds apart that have the same number.
        let text = match held {
            CellRef::Token(id) => Some((0, id)),
            CellRef::Text(id) => Some((1, id)),
            CellRef::Json(id) => Some((2, id)),
            _ => None,
        };
        // The identity of a text is computed once and then found by number.
        let known = match held {
            CellRef::DictionaryText(id) => self.of_dictionary_texts.get(&id),
            _ => text.and_then(|text| self.of_texts.get(&text)),
        };
        if let Some(known) = known {
            return *known;
        }
        self.buffer.clear();
        identity(&result_buffer.cell(held), &mut self.buffer);
        work.add(self.buffer.len() as u64);
        let number = self.identities.number_of(&self.buffer);
        if let CellRef::DictionaryText(id) = held {
            self.of_dictionary_texts.insert(id, number);
        }
        if let Some(text) = text {
            self.of_texts.insert(text, number);
        }
        number
    }
}
