//! The memory of the running queries, limited in total.
//!
//! Each query has its own budget of bytes. Concurrent queries share another one. If their total
//! exceeds it, the query that grows is stopped with 429, so that a worker of 128 MB is not ended
//! with all of its requests. A query that runs alone has its own budget only.

use super::error::Failure;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The default maximum bytes of documents, rows and results of all running queries, estimated. A
/// list that grows takes half as much again temporarily.
const MAX_BYTES: usize = 33_554_432;

/// A query with at most these bytes is never stopped because of others, so that a large query does
/// not stop small ones. The number of concurrent queries is limited too.
const SMALL: usize = 1_048_576;

/// Maximum bytes of memory for documents that a query needs at the same time, because it joins
/// those of an EHR.
const MAX_JOINED: usize = 67_108_864;

/// Microseconds after which a query without a call counts as lost: a host may forget a request
/// without dropping its work.
const LEASE: i64 = 120_000_000;

/// The memory of the running queries of a service, or of several services of one process.
#[derive(Clone)]
pub(super) struct QueryMemory {
    /// Maximum bytes of all queries.
    bytes: usize,
    shares: Arc<Mutex<Shares>>,
}

impl Default for QueryMemory {
    fn default() -> QueryMemory {
        QueryMemory::new(MAX_BYTES)
    }
}

#[derive(Default)]
struct Shares {
    next: u64,
    entries: Vec<Entry>,
}

struct Entry {
    number: u64,
    bytes: usize,
    seen: i64,
}

/// The memory of one query, returned when it is dropped.
pub(super) struct MemoryShare {
    memory: QueryMemory,
    number: u64,
}

impl QueryMemory {
    /// Creates memory of `bytes` bytes.
    pub fn new(bytes: usize) -> QueryMemory {
        QueryMemory {
            bytes,
            shares: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        // A panic ends the process, or its thread with its queries. The entries are consistent at
        // any time, so a poisoned lock is used.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the share of a query that begins.
    pub fn share(&self) -> MemoryShare {
        let mut held = self.lock();
        held.next += 1;
        MemoryShare {
            memory: self.clone(),
            number: held.next,
        }
    }
}

impl MemoryShare {
    /// Sets the bytes that the query uses at a time (microseconds since 1970).
    ///
    /// # Errors
    /// 429 if that is too much in addition to the other queries.
    pub fn hold(&self, bytes: usize, now: i64) -> Result<(), Failure> {
        let mut held = self.memory.lock();
        held.entries
            // The own entry is replaced below.
            .retain(|entry| entry.number != self.number && now.saturating_sub(entry.seen) < LEASE);
        let others: usize = held.entries.iter().map(|entry| entry.bytes).sum();
        // A single query is limited by its own budget only.
        let is_refusable = others > 0 && bytes > SMALL;
        if is_refusable && others.saturating_add(bytes) > self.memory.bytes {
            let message = "the queries that run take too much memory together: try again later, or narrow the query by WHERE, an EHR or LIMIT";
            return Err(Failure::new(429, message).header("Retry-After", "10"));
        }
        if bytes > 0 {
            held.entries.push(Entry {
                number: self.number,
                bytes,
                seen: now,
            });
        }
        Ok(())
    }
}

/// The documents that one query reads. Their memory is reserved before they are read.
pub(super) struct ReadBudget {
    pub share: MemoryShare,
    deadline: i64,
    /// Bytes of the documents that are read or evaluated at present.
    bytes: usize,
    /// The reason to stop reading.
    pub refusal: Option<StopReason>,
}

/// A reason to stop reading documents.
pub(super) enum StopReason {
    /// Its time is over.
    Late,
    /// There is no memory for them.
    NoRoom(Failure),
}

impl ReadBudget {
    /// Creates the state before reading. `deadline` is in microseconds since 1970.
    pub fn new(share: MemoryShare, deadline: i64) -> ReadBudget {
        ReadBudget {
            share,
            deadline,
            bytes: 0,
            refusal: None,
        }
    }

    /// Reserves memory for documents in addition to the `held` bytes of the query itself. Returns
    /// false if they must not be read.
    pub fn admit(&mut self, bytes: usize, held: usize, now: i64) -> bool {
        self.bytes = bytes;
        if now > self.deadline {
            self.refusal = Some(StopReason::Late);
            return false;
        }
        if bytes > MAX_JOINED {
            let message = format!(
                "the documents of an EHR that the query joins take more than {MAX_JOINED} bytes of memory: narrow it by archetypes, or ask for each class in a query of its own"
            );
            self.refusal = Some(StopReason::NoRoom(Failure::bad_request(message)));
            return false;
        }
        self.hold(held, now)
    }

    /// Clears a lack of memory, because all held memory is released. Returns false if the time of
    /// the query is over.
    pub fn restart(&mut self) -> bool {
        let is_late = matches!(self.refusal, Some(StopReason::Late));
        if !is_late {
            self.refusal = None;
        }
        !is_late
    }

    /// Sets the bytes of the query itself. Returns false if that is too much in addition to other
    /// queries.
    pub fn hold(&mut self, held: usize, now: i64) -> bool {
        let bytes = held.saturating_add(self.bytes);
        let refusal = self.share.hold(bytes, now).err();
        // An earlier reason stays.
        self.refusal = refusal.map(StopReason::NoRoom).or(self.refusal.take());
        self.refusal.is_none()
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.memory
            .lock()
            .entries
            .retain(|entry| entry.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_share_memory_and_one_alone_may_have_all() {
        let memory = QueryMemory::default();
        let (first, second) = (memory.share(), memory.share());
        assert!(
            first.hold(2 * MAX_BYTES, 0).is_ok(),
            "its own budget bounds a query that runs alone"
        );
        assert_eq!(
            second.hold(SMALL + 1, 1).map_err(|failure| failure.status),
            Err(429)
        );
        assert!(
            second.hold(SMALL, 1).is_ok(),
            "a small query is not stopped"
        );
        assert!(first.hold(MAX_BYTES / 2, 2).is_ok());
        assert!(second.hold(MAX_BYTES / 2, 3).is_ok());
        assert_eq!(
            first
                .hold(MAX_BYTES / 2 + 1, 4)
                .map_err(|failure| failure.status),
            Err(429)
        );
        drop(second);
        assert!(first.hold(MAX_BYTES, 5).is_ok());
        std::mem::forget(first);
        let third = memory.share();
        assert_eq!(
            third.hold(SMALL + 1, 6).map_err(|failure| failure.status),
            Err(429)
        );
        assert!(
            third.hold(SMALL + 1, LEASE + 6).is_ok(),
            "the memory of a lost query is free again"
        );
    }

    #[test]
    fn documents_are_admitted_up_to_a_limit_and_until_a_time() {
        let memory = QueryMemory::default();
        let mut reading = ReadBudget::new(memory.share(), 10);
        assert!(reading.admit(MAX_JOINED, 0, 10));
        assert!(!reading.admit(MAX_JOINED + 1, 0, 10));
        let status = match &reading.refusal {
            Some(StopReason::NoRoom(failure)) => failure.status,
            _ => 0,
        };
        assert_eq!(status, 400);
        assert!(!reading.admit(1, 0, 11));
        assert!(matches!(reading.refusal, Some(StopReason::Late)));
    }
}
