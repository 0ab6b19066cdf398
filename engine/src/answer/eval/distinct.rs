//! DISTINCT: rows told apart by their content, while they come.

use super::output::identity;
use crate::answer::result::{Held, Sheet};
use crate::document::Dictionary;
use hashbrown::{HashMap, HashSet};

/// The rows that were seen.
///
/// A row is known by the numbers of its cells' identities: equal content is kept once, however often it is shown.
#[derive(Default)]
pub(super) struct Distinct {
    identities: Dictionary,
    /// The identities of objects, by the number of their text in the sheet.
    of_objects: HashMap<u32, u32>,
    seen: HashSet<Box<[u32]>>,
    bytes: usize,
    buffer: String,
}

/// Bytes that finding a row takes, beside its key.
const ENTRY: usize = 32;

impl Distinct {
    /// True for a row whose content was not seen before.
    pub fn is_new(&mut self, sheet: &Sheet, row: u32) -> bool {
        let key: Box<[u32]> = sheet.row(row).iter().map(|held| self.number_of(sheet, *held)).collect();
        let bytes = size_of_val(&*key) + ENTRY;
        let is_new = self.seen.insert(key);
        self.bytes += if is_new { bytes } else { 0 };
        is_new
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        self.bytes + self.identities.size() + self.of_objects.len() * size_of::<(u32, u32)>() * 2
    }

    /// The texts of the sheet have other numbers from now on.
    pub fn forget_texts(&mut self) {
        self.of_objects.clear();
    }

    fn number_of(&mut self, sheet: &Sheet, held: Held) -> u32 {
        let object = if let Held::Json(id) = held { Some(id) } else { None };
        if let Some(known) = object.and_then(|id| self.of_objects.get(&id)) {
            return *known;
        }
        self.buffer.clear();
        identity(&sheet.cell(held), &mut self.buffer);
        let number = self.identities.number_of(&self.buffer);
        if let Some(id) = object {
            self.of_objects.insert(id, number);
        }
        number
    }
}
