//! The pseudonyms that a lake has issued. They outlive the ids that they replace: an id of a removed
//! patient that a document of another one names is recognized by its pseudonym, and keeps it.

use super::pseudonym::{PatientKind, Pseudonyms};
use bitcode::{Decode, Encode};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// The most texts that are kept as texts without an issued pseudonym.
const MISSES: usize = 65_536;

/// The bytes of the longest text that is kept as one.
const MAX_MISS_BYTES: usize = 64;

/// The pseudonyms of a lake, in the order in which their ids became known. The ids themselves are not
/// stored, and only the key shows whether an id is among them.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub struct Issued {
    /// The pseudonyms.
    all: Vec<[u8; 16]>,
    /// The pseudonyms of the usual forms of UUIDs whose ids have another form, with the pseudonyms of
    /// these ids.
    spellings: Vec<([u8; 16], [u8; 16])>,
}

/// The issued pseudonyms whose ids the data do not have any more.
#[derive(Default)]
pub struct Former {
    /// The pseudonyms that replace ids, by the pseudonyms of these ids.
    pseudonyms: HashMap<[u8; 16], Uuid>,
    /// Texts that are no ids. The strings of documents are mostly the same ones.
    misses: Mutex<HashSet<String>>,
}

impl Issued {
    /// Reads the list from its bytes; `None` if they are damaged.
    pub fn read(bytes: &[u8]) -> Option<Issued> {
        bitcode::decode(bytes).ok()
    }

    /// Returns the bytes of the list.
    pub fn bytes(&self) -> Vec<u8> {
        bitcode::encode(self)
    }

    /// Returns the number of pseudonyms.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the position of each pseudonym in the order of the list.
    pub fn positions(&self) -> HashMap<[u8; 16], usize> {
        self.all.iter().copied().zip(0..).collect()
    }

    /// Appends a pseudonym. `usual` is that of the usual form of a UUID, if the id has another form.
    pub fn push(&mut self, pseudonym: Uuid, usual: Option<Uuid>) {
        let pseudonym = pseudonym.into_bytes();
        self.all.push(pseudonym);
        if let Some(usual) = usual {
            self.spellings.push((usual.into_bytes(), pseudonym));
        }
    }

    /// Returns the pseudonyms that are not among those of the present ids.
    pub fn without(&self, present: &HashSet<[u8; 16]>) -> Former {
        let is_former = |pseudonym: &&[u8; 16]| !present.contains(*pseudonym);
        let own = self.all.iter().filter(is_former);
        let mut pseudonyms: HashMap<[u8; 16], Uuid> =
            own.map(|one| (*one, Uuid::from_bytes(*one))).collect();
        for (usual, pseudonym) in &self.spellings {
            if is_former(&pseudonym) {
                let id = Uuid::from_bytes(*pseudonym);
                pseudonyms.entry(*usual).or_insert(id);
            }
        }
        Former {
            pseudonyms,
            misses: Mutex::default(),
        }
    }
}

impl Former {
    /// Returns whether the data have all ids.
    pub fn is_empty(&self) -> bool {
        self.pseudonyms.is_empty()
    }

    /// Returns the pseudonym of a text that is the id of a former patient. Costs two keyed hashes,
    /// unless the text is known to be no id.
    pub fn find(&self, key: &Pseudonyms, text: &str) -> Option<String> {
        if self.is_empty() || text.is_empty() {
            return None;
        }
        let is_short = text.len() <= MAX_MISS_BYTES;
        if is_short && self.misses().contains(text) {
            return None;
        }
        // An id that is both has the pseudonym of the EHR.
        let kinds = [PatientKind::Ehr, PatientKind::Subject].into_iter();
        let mut pseudonyms = kinds.map(|kind| key.of(kind, text).into_bytes());
        let found = pseudonyms.find_map(|pseudonym| self.pseudonyms.get(&pseudonym));
        if found.is_none() && is_short {
            let mut misses = self.misses();
            if misses.len() >= MISSES {
                misses.clear();
            }
            misses.insert(text.to_owned());
        }
        found.map(|pseudonym| pseudonym.hyphenated().to_string())
    }

    fn misses(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.misses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
