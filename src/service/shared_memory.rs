//! Memory that the services of one process share, so that a limit of the process holds however many
//! there are.

#[cfg(feature = "server")]
use super::RefusalCounts;
use super::admission::{Admission, Concurrency, Rooms};
use super::query_memory::QueryMemory;

/// The memory for long texts and for running queries, and the counts of refused requests. Its clones
/// are the same memory.
///
/// ```
/// use aqlite::service::{Concurrency, SharedMemory, Work};
///
/// let memory = SharedMemory::new(10_000_000, 10_000_000);
/// let [one, other] = [(); 2].map(|()| memory.admission(Concurrency::default()));
/// let held = one.enter("ann", Work::Room(8_000_000), 0).unwrap();
/// let waits = other.enter("bob", Work::Room(8_000_000), 0).unwrap();
/// assert!(held.renew(0).is_admitted() && !waits.renew(0).is_admitted());
/// ```
#[derive(Clone, Default)]
pub struct SharedMemory {
    rooms: Rooms,
    queries: QueryMemory,
    #[cfg(feature = "server")]
    refusals: RefusalCounts,
}

impl SharedMemory {
    /// Creates memory: the bytes for long texts and everything made of them, and those for the
    /// documents, rows and results of queries.
    #[must_use]
    pub fn new(texts: usize, queries: usize) -> SharedMemory {
        SharedMemory {
            rooms: Rooms::new(texts),
            queries: QueryMemory::new(queries),
            #[cfg(feature = "server")]
            refusals: RefusalCounts::default(),
        }
    }

    /// Returns admission control of a host that shares this memory.
    #[must_use]
    pub fn admission(&self, bounds: Concurrency) -> Admission {
        Admission::with_rooms(bounds, self.rooms.clone())
    }

    /// Returns the counts of refused requests.
    #[cfg(feature = "server")]
    pub(super) fn refusals(&self) -> RefusalCounts {
        self.refusals.clone()
    }

    /// Returns the memory for queries.
    pub(super) fn queries(&self) -> QueryMemory {
        self.queries.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Service};
    use super::*;
    use crate::store::memory::Memory;

    #[test]
    fn services_of_one_memory_limit_their_queries_together() {
        let memory = SharedMemory::new(0, 100_000_000);
        let service = || Service::new(Memory::new(), Config::default());
        let [one, other] = [(); 2].map(|()| service().with_memory(&memory));
        let [held, refused] = [&one, &other].map(|service| service.query_memory.share());
        assert!(held.hold(80_000_000, 0).is_ok());
        let status = |failure: super::super::error::Failure| failure.status;
        assert_eq!(refused.hold(80_000_000, 0).map_err(status), Err(429));
        drop(held);
        assert!(refused.hold(80_000_000, 0).is_ok());
    }
}
