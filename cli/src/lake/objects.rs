//! The index of the objects of a dataset: which versions its rows come from.

use super::files::Removed;
use crate::outcome::Failure;
use bitcode::{Decode, Encode};
use std::collections::{HashMap, HashSet};
use twox_hash::XxHash64;

/// The objects of a dataset. EHRs have the ids that the dataset has: pseudonyms, if it has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    by_id: HashMap<String, ObjectEntry>,
    ehrs: Vec<String>,
    numbers: HashMap<String, u32>,
}

/// The last rows of an object in the dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ObjectEntry {
    /// The number of its EHR in the index.
    pub ehr: u32,
    /// The number of the version that its last rows come from.
    pub version: u32,
    /// The time of its commit in microseconds since 0001-01-01, if it is known.
    pub committed: Option<i64>,
    /// The digest of these rows; `None` if the last row says that the object is deleted.
    pub digest: Option<u64>,
}

/// The index as it is stored.
#[derive(Encode, Decode)]
struct StoredObjects {
    ehrs: Vec<String>,
    ids: Vec<String>,
    entries: Vec<ObjectEntry>,
}

impl Objects {
    /// Reads the index from its bytes.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn read(bytes: &[u8], checksum: u64) -> Result<Objects, Failure> {
        let damaged = || {
            let problem = "the index is damaged: write the view again with --rebuild";
            Failure::Data(String::from(problem))
        };
        if self::checksum(bytes) != checksum {
            return Err(damaged());
        }
        let stored: StoredObjects = bitcode::decode(bytes).map_err(|_| damaged())?;
        let mut objects = Objects::default();
        for ehr in stored.ehrs {
            objects.ehr(ehr);
        }
        objects.by_id = stored.ids.into_iter().zip(stored.entries).collect();
        Ok(objects)
    }

    /// Returns the bytes of the index.
    pub fn bytes(&self) -> Vec<u8> {
        let mut sorted: Vec<(&String, &ObjectEntry)> = self.by_id.iter().collect();
        sorted.sort_unstable_by_key(|(id, _)| id.as_str());
        bitcode::encode(&StoredObjects {
            ehrs: self.ehrs.clone(),
            ids: sorted.iter().map(|(id, _)| (*id).clone()).collect(),
            entries: sorted.iter().map(|(_, entry)| **entry).collect(),
        })
    }

    /// Returns the number of an EHR, which is added if it is new.
    pub fn ehr(&mut self, ehr_id: String) -> u32 {
        let next = u32::try_from(self.ehrs.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(ehr_id.clone()).or_insert(next);
        if number == next {
            self.ehrs.push(ehr_id);
        }
        number
    }

    /// Returns the number of EHRs.
    pub fn ehrs(&self) -> usize {
        self.ehrs.len()
    }

    /// Returns the id of an EHR.
    pub fn ehr_id(&self, number: u32) -> &str {
        self.ehrs.get(number as usize).map_or("", String::as_str)
    }

    /// Returns the entry of an object.
    pub fn get(&self, id: &str) -> Option<&ObjectEntry> {
        self.by_id.get(id)
    }

    /// Sets the entry of an object.
    pub fn set(&mut self, id: String, entry: ObjectEntry) {
        self.by_id.insert(id, entry);
    }

    /// The objects with their entries, in any order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &ObjectEntry)> {
        self.by_id.iter()
    }

    /// Returns the EHRs that the dataset has, and that are not among `present`.
    pub fn absent_ehrs(&self, present: &HashSet<String>) -> HashSet<String> {
        let absent = self.ehrs.iter().filter(|ehr| !present.contains(*ehr));
        absent.cloned().collect()
    }

    /// Returns the index without the removed objects.
    pub fn without(&self, removed: &Removed) -> Objects {
        let mut kept = Objects::default();
        for (id, entry) in &self.by_id {
            let ehr = self.ehr_id(entry.ehr);
            if !removed.ehrs.contains(ehr) && !removed.objects.contains(id) {
                let ehr = kept.ehr(ehr.to_owned());
                kept.set(id.clone(), ObjectEntry { ehr, ..*entry });
            }
        }
        kept
    }
}

/// Returns the checksum of the bytes of an index.
pub fn checksum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}
