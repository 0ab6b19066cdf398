//! The store of the access log, beside [`Repository`](super::repository::Repository). Records are
//! only added, read, and removed by age.
//!
//! Implementations: [`MemoryLog`], and [`SqlLog`](super::sql::SqlLog) in a database of its own, so
//! that the log takes no room or time from the documents. The record of a change set is written
//! with it, into the database of the documents, and moved from there. Such a record has a key, so
//! moving it twice adds it once.

use super::repository::{AccessFilter, AccessRecord, StoreError};
use aqlite_rm::order;
use std::cell::RefCell;
use std::collections::HashSet;

/// An audit record to add to the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// An idempotency key, for a record that may be sent more than once.
    pub key: Option<String>,
    /// The record itself.
    pub access: AccessRecord,
}

/// A store of the access log.
#[allow(
    async_fn_in_trait,
    reason = "futures of a worker are not Send, and nothing spawns them"
)]
pub trait LogStore {
    /// Adds all these records, or none. Skips a record whose key was added before.
    async fn append(&self, entries: &[LogEntry]) -> Result<(), StoreError>;

    /// Adds records of refused requests, unless the log has `most` of them for this day. Returns
    /// whether they were added. `day` is the date in the text form of [`AccessRecord::time`].
    async fn append_refused(
        &self,
        entries: &[AccessRecord],
        day: &str,
        most: u64,
    ) -> Result<bool, StoreError>;

    /// Returns the records that match a filter, with their numbers, ordered by time, then by
    /// number.
    async fn read(&self, filter: &AccessFilter<'_>)
    -> Result<Vec<(u64, AccessRecord)>, StoreError>;

    /// Sets the retention in days. Younger records cannot be removed.
    async fn keep_for(&self, days: u32) -> Result<(), StoreError>;

    /// Removes at most `most` of the oldest records, if they are from before this time and older
    /// than the retention ([`LogStore::keep_for`]). Returns the number of removed records.
    async fn expire(&self, before: &str, most: u64) -> Result<u64, StoreError>;
}

/// An access log in memory.
#[derive(Debug, Default)]
pub struct MemoryLog(RefCell<Entries>);

/// The records of a log with their numbers, and the last number: the content of a checkpoint.
pub(super) type NumberedRecords = (Vec<(u64, AccessRecord)>, u64);

#[derive(Debug, Default)]
struct Entries {
    entries: Vec<(u64, AccessRecord)>,
    keys: HashSet<String>,
    last: u64,
}

impl Entries {
    fn push(&mut self, access: AccessRecord) {
        self.last += 1;
        self.entries.push((self.last, access));
    }
}

impl MemoryLog {
    /// Creates a log of records that were never sent with a key.
    pub(super) fn of((entries, last): NumberedRecords) -> MemoryLog {
        MemoryLog(RefCell::new(Entries {
            entries,
            keys: HashSet::new(),
            last,
        }))
    }

    /// Returns the records, for [`MemoryLog::of`].
    pub(super) fn numbered(&self) -> NumberedRecords {
        let log = self.0.borrow();
        (log.entries.clone(), log.last)
    }

    /// Adds records.
    pub(super) fn push(&self, accesses: impl IntoIterator<Item = AccessRecord>) {
        accesses
            .into_iter()
            .for_each(|access| self.0.borrow_mut().push(access));
    }

    /// Returns whether a day has fewer than `most` records of refused requests.
    pub(super) fn has_room(&self, day: &str, most: u64) -> bool {
        let log = self.0.borrow();
        (log.entries
            .iter()
            // The times have one text form, so their texts compare like the times.
            .filter(|(_, access)| access.refused.is_some() && access.time.as_str() >= day)
            .count() as u64)
            < most
    }

    /// Returns the records that match a filter.
    pub(super) fn select(&self, filter: &AccessFilter<'_>) -> Vec<(u64, AccessRecord)> {
        let log = self.0.borrow();
        let mut entries: Vec<&(u64, AccessRecord)> = log.entries.iter().collect();
        order::sort_by_key(&mut entries, |(number, access)| {
            (access.time.as_str(), *number)
        });
        // The position is a pair of time and number, because several records can have one time.
        let after = entries
            .iter()
            .find(|(number, _)| *number == filter.after)
            .map(|(number, access)| (access.time.as_str(), *number));
        let wanted = |(number, access): &&(u64, AccessRecord)| {
            after.is_none_or(|after| (access.time.as_str(), *number) > after)
                && filter.from.is_none_or(|from| access.time.as_str() >= from)
                && filter.to.is_none_or(|to| access.time.as_str() < to)
                && filter
                    .ehr_id
                    .is_none_or(|id| access.ehr_id.as_deref() == Some(id))
                && filter.who.is_none_or(|who| access.who == who)
        };
        let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
        entries
            .into_iter()
            .filter(wanted)
            .take(limit)
            .cloned()
            .collect()
    }
}

impl LogStore for MemoryLog {
    async fn append(&self, entries: &[LogEntry]) -> Result<(), StoreError> {
        let mut log = self.0.borrow_mut();
        for entry in entries {
            if entry
                .key
                .as_ref()
                // `insert` returns false for a key that was added before.
                .is_none_or(|key| log.keys.insert(key.clone()))
            {
                log.push(entry.access.clone());
            }
        }
        Ok(())
    }

    async fn append_refused(
        &self,
        entries: &[AccessRecord],
        day: &str,
        most: u64,
    ) -> Result<bool, StoreError> {
        let has_room = self.has_room(day, most);
        if has_room {
            self.push(entries.iter().cloned());
        }
        Ok(has_room)
    }

    async fn read(
        &self,
        filter: &AccessFilter<'_>,
    ) -> Result<Vec<(u64, AccessRecord)>, StoreError> {
        Ok(self.select(filter))
    }

    /// Does nothing: only [`LogStore::expire`] removes records here, and its caller knows the
    /// retention.
    async fn keep_for(&self, _days: u32) -> Result<(), StoreError> {
        Ok(())
    }

    async fn expire(&self, before: &str, most: u64) -> Result<u64, StoreError> {
        let (mut log, mut left) = (self.0.borrow_mut(), most);
        log.entries.retain(|(_, access)| {
            let goes = left > 0 && access.time.as_str() < before;
            left -= u64::from(goes);
            !goes
        });
        Ok(most - left)
    }
}
