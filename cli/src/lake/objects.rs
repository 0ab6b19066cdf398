//! The index of the objects of a dataset: which versions its rows come from.
//!
//! A dataset may have millions of objects. The index is therefore a sorted list with 64 bytes for
//! each of them, which is searched by halves.

use super::files::Removed;
use crate::outcome::Failure;
use bitcode::{Decode, Encode};
use std::collections::{HashMap, HashSet};
use std::fmt;
use twox_hash::XxHash64;
use uuid::Uuid;

/// The id of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum ObjectId {
    /// A UUID in its usual form: 36 characters in lower case.
    Uuid([u8; 16]),
    /// Any other text.
    Text(String),
}

/// The objects of a dataset. EHRs have the ids that the dataset has: pseudonyms, if it has them.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    stored: StoredObjects,
    /// The numbers of the EHRs by their ids.
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
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
struct StoredObjects {
    ehrs: Vec<String>,
    /// The ids of the objects, ascending.
    ids: Vec<ObjectId>,
    /// The entries of the objects, in the order of `ids`.
    entries: Vec<ObjectEntry>,
}

impl ObjectId {
    /// Returns the id that a text is.
    pub fn of(text: &str) -> ObjectId {
        let mut canonical = Uuid::encode_buffer();
        match Uuid::try_parse(text) {
            // Other spellings of a UUID stay texts, so that each id is printed back as it was.
            Ok(uuid) if uuid.hyphenated().encode_lower(&mut canonical) == text => {
                ObjectId::Uuid(uuid.into_bytes())
            }
            _ => ObjectId::Text(text.to_owned()),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectId::Uuid(bytes) => Uuid::from_bytes(*bytes).hyphenated().fmt(out),
            ObjectId::Text(text) => out.write_str(text),
        }
    }
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
        if stored.ids.len() != stored.entries.len() || !stored.ids.is_sorted() {
            return Err(damaged());
        }
        let numbers = (0..).zip(&stored.ehrs);
        Ok(Objects {
            numbers: numbers.map(|(number, ehr)| (ehr.clone(), number)).collect(),
            stored,
        })
    }

    /// Returns the bytes of the index.
    pub fn bytes(&self) -> Vec<u8> {
        bitcode::encode(&self.stored)
    }

    /// Returns the number of an EHR, which is added if it is new.
    pub fn ehr(&mut self, ehr_id: &str) -> u32 {
        if let Some(number) = self.numbers.get(ehr_id) {
            return *number;
        }
        let number = u32::try_from(self.stored.ehrs.len()).unwrap_or(u32::MAX);
        self.stored.ehrs.push(ehr_id.to_owned());
        self.numbers.insert(ehr_id.to_owned(), number);
        number
    }

    /// Returns the number of EHRs.
    pub fn ehrs(&self) -> usize {
        self.stored.ehrs.len()
    }

    /// Returns the id of an EHR.
    pub fn ehr_id(&self, number: u32) -> &str {
        let id = self.stored.ehrs.get(number as usize);
        id.map_or("", String::as_str)
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.stored.ids.len()
    }

    /// Returns the position of an object.
    pub fn find(&self, id: &ObjectId) -> Option<usize> {
        self.stored.ids.binary_search(id).ok()
    }

    /// Returns the entry at a position.
    pub fn entry(&self, position: usize) -> Option<&ObjectEntry> {
        self.stored.entries.get(position)
    }

    /// The objects with their entries, in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ObjectId, &ObjectEntry)> {
        self.stored.ids.iter().zip(&self.stored.entries)
    }

    /// Returns the index with new entries, whose EHRs have numbers of this index.
    ///
    /// # Errors
    /// If an object has two new entries.
    pub fn with(self, mut new: Vec<(ObjectId, ObjectEntry)>) -> Result<Objects, Failure> {
        new.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        if let Some([(twice, _), ..]) = new.windows(2).find(|pair| is_same(pair)) {
            return Err(Failure::Data(format!(
                "the rows of the object {twice} do not follow one another"
            )));
        }
        let StoredObjects { ehrs, ids, entries } = self.stored;
        let count = ids.len() + new.len();
        let mut merged = StoredObjects {
            ehrs,
            ids: Vec::with_capacity(count),
            entries: Vec::with_capacity(count),
        };
        let mut new = new.into_iter().peekable();
        for (id, entry) in ids.into_iter().zip(entries) {
            while let Some((id, entry)) = new.next_if(|(next, _)| *next < id) {
                merged.push(id, entry);
            }
            match new.next_if(|(next, _)| *next == id) {
                Some((id, entry)) => merged.push(id, entry),
                None => merged.push(id, entry),
            }
        }
        new.for_each(|(id, entry)| merged.push(id, entry));
        Ok(Objects {
            stored: merged,
            numbers: self.numbers,
        })
    }

    /// Returns the EHRs that the dataset has, and that are not among `present`.
    pub fn absent_ehrs(&self, present: &HashSet<String>) -> HashSet<String> {
        let ehrs = self.stored.ehrs.iter();
        let absent = ehrs.filter(|ehr| !present.contains(*ehr));
        absent.cloned().collect()
    }

    /// Returns the ids of the objects whose last rows have one of some EHRs.
    pub fn of_ehrs<'o>(&'o self, ehrs: &'o HashSet<String>) -> impl Iterator<Item = &'o ObjectId> {
        let of_ehrs =
            move |(_, entry): &(&ObjectId, &ObjectEntry)| ehrs.contains(self.ehr_id(entry.ehr));
        self.iter().filter(of_ehrs).map(|(id, _)| id)
    }

    /// Returns the index without the removed objects. EHRs that are not removed stay, also those
    /// without an object: files may have earlier rows of objects that moved to another EHR.
    pub fn without(&self, removed: &Removed) -> Objects {
        let mut kept = Objects::default();
        for ehr in &self.stored.ehrs {
            if !removed.ehrs.contains(ehr) {
                kept.ehr(ehr);
            }
        }
        for (id, entry) in self.iter() {
            let ehr = self.ehr_id(entry.ehr);
            if !removed.ehrs.contains(ehr) && !removed.objects.contains(&id.to_string()) {
                let ehr = kept.ehr(ehr);
                kept.stored.push(id.clone(), ObjectEntry { ehr, ..*entry });
            }
        }
        kept
    }
}

impl StoredObjects {
    fn push(&mut self, id: ObjectId, entry: ObjectEntry) {
        self.ids.push(id);
        self.entries.push(entry);
    }
}

/// Returns whether two entries are those of one object.
fn is_same(pair: &[(ObjectId, ObjectEntry)]) -> bool {
    matches!(pair, [(one, _), (other, _)] if one == other)
}

/// Returns the checksum of the bytes of an index.
pub fn checksum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "7d44b88c-4199-4bad-97dc-d78268e01398";

    fn entry(ehr: u32, digest: u64) -> ObjectEntry {
        ObjectEntry {
            ehr,
            version: 1,
            committed: Some(7),
            digest: Some(digest),
        }
    }

    fn objects(entries: &[(&str, &str, u64)]) -> Objects {
        let mut objects = Objects::default();
        let mut new = Vec::new();
        for (id, ehr, digest) in entries {
            let ehr = objects.ehr(ehr);
            new.push((ObjectId::of(id), entry(ehr, *digest)));
        }
        objects.with(new).unwrap()
    }

    fn digests(objects: &Objects) -> Vec<(String, u64)> {
        let all = objects.iter();
        all.map(|(id, entry)| (id.to_string(), entry.digest.unwrap()))
            .collect()
    }

    #[test]
    fn ids_are_printed_as_they_were_read() {
        assert_eq!(size_of::<ObjectId>() + size_of::<ObjectEntry>(), 64);
        assert!(matches!(ObjectId::of(UUID), ObjectId::Uuid(_)));
        for id in [
            UUID.to_uppercase(),
            UUID.replace('-', ""),
            format!("{{{UUID}}}"),
            String::from("17"),
            String::new(),
        ] {
            assert_eq!(ObjectId::of(&id), ObjectId::Text(id.clone()));
            assert_eq!(ObjectId::of(&id).to_string(), id);
        }
        assert_eq!(ObjectId::of(UUID).to_string(), UUID);
    }

    #[test]
    fn new_entries_replace_old_ones_and_are_found() {
        let before = objects(&[("b", "e", 1), ("d", "e", 2), (UUID, "f", 3)]);
        let new = vec![
            (ObjectId::of("e"), entry(0, 6)),
            (ObjectId::of("a"), entry(0, 4)),
            (ObjectId::of("d"), entry(1, 5)),
        ];
        let after = before.with(new).unwrap();
        let expected = [(UUID, 3), ("a", 4), ("b", 1), ("d", 5), ("e", 6)];
        assert_eq!(
            digests(&after),
            expected.map(|(id, digest)| (id.to_owned(), digest))
        );
        let read = Objects::read(&after.bytes(), checksum(&after.bytes())).unwrap();
        assert_eq!(digests(&read), digests(&after));
        let position = read.find(&ObjectId::of("d")).unwrap();
        assert_eq!(read.entry(position), Some(&entry(1, 5)));
        assert_eq!(read.find(&ObjectId::of("c")), None);
        assert!(Objects::read(&after.bytes(), 0).is_err());
    }

    #[test]
    fn object_with_two_entries_is_an_error() {
        let new = vec![
            (ObjectId::of("a"), entry(0, 1)),
            (ObjectId::of("a"), entry(0, 2)),
        ];
        assert!(Objects::default().with(new).is_err());
    }

    #[test]
    fn removed_ehrs_and_objects_leave_the_index() {
        let before = objects(&[("a", "e", 1), ("b", "f", 2), ("c", "g", 3)]);
        let removed = Removed {
            ehrs: HashSet::from([String::from("e")]),
            objects: HashSet::from([String::from("b")]),
            ..Removed::default()
        };
        let kept = before.without(&removed);
        assert_eq!(digests(&kept), [(String::from("c"), 3)]);
        assert_eq!((kept.ehrs(), kept.ehr_id(0), kept.ehr_id(1)), (2, "f", "g"));
        let of_ehrs: Vec<&ObjectId> = before.of_ehrs(&removed.ehrs).collect();
        assert_eq!(of_ehrs, [&ObjectId::of("a")]);
    }
}
