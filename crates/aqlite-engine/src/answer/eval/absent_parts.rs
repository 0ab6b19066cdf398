//! Absent parts: what a run reads of parts that the host has not loaded.
//!
//! An absent part of a segment reads as empty, and its read is counted on the thread
//! ([`absent_reads`]). A run that read one is *void*: its result is discarded, the host loads the
//! part, and the evaluation is attempted again. Until then the void run goes on, so that one attempt
//! finds many of the parts that the query needs. It visits a sample of the documents for that:
//!
//! ```text
//! attempts before   documents visited
//! 0 to 3            the first 256, then every 256th
//! 4 to 7            the first 256, then every 128th
//! …                 …
//! 32 and more       all
//! ```

use crate::document::absent_reads;
use std::cell::Cell;

/// The number of documents before the sample that a void run visits: some slices of a query for its
/// first rows (`Budget::slice`).
const UNSAMPLED: usize = 256;

/// The first stride of the sample, and the attempts after which it is halved.
const FIRST_STRIDE: usize = 256;
const ATTEMPTS_OF_STRIDE: u32 = 4;

/// The reads of absent parts by one run. Reads are counted for a thread, on which other runs are
/// evaluated between two pieces of this one, so only those within a piece are its own.
#[derive(Debug)]
pub(super) struct AbsentParts {
    /// Whether an earlier piece read an absent part.
    before: Cell<bool>,
    /// The count of [`absent_reads`] when the piece began.
    count: Cell<u64>,
    /// The number of earlier attempts at the same evaluation, which read absent parts.
    attempts: Cell<u32>,
}

impl Default for AbsentParts {
    /// Starts the first piece of a run.
    fn default() -> AbsentParts {
        AbsentParts {
            before: Cell::new(false),
            count: Cell::new(absent_reads()),
            attempts: Cell::new(0),
        }
    }
}

impl AbsentParts {
    /// Returns whether the run read an absent part.
    pub fn were_read(&self) -> bool {
        self.before.get() || absent_reads() != self.count.get()
    }

    /// Returns whether a run visits the document, EHR or fragment at an index. A run that read no
    /// absent part visits all. A void run visits the first ones, which are often sufficient for a
    /// query with LIMIT, and a sample of the others, because the documents of a population need
    /// mostly the same parts. The sample grows with each attempt up to all of them.
    pub fn samples(&self, index: usize) -> bool {
        let stride = FIRST_STRIDE >> (self.attempts.get() / ATTEMPTS_OF_STRIDE).min(31);
        index < UNSAMPLED || index.is_multiple_of(stride.max(1)) || !self.were_read()
    }

    /// Counts the attempts of an earlier run at the same evaluation, which read absent parts.
    pub fn follow(&self, earlier: &AbsentParts) {
        self.attempts.set(earlier.attempts.get().saturating_add(1));
    }

    /// Ends a piece. Other runs on this thread may read absent parts until the next piece.
    pub fn end_piece(&self) {
        self.before.set(self.were_read());
        self.begin_piece();
    }

    /// Starts the next piece.
    pub fn begin_piece(&self) {
        self.count.set(absent_reads());
    }

    /// Starts another attempt, from a state before the reads of this one.
    pub fn begin_attempt(&self) {
        self.before.set(false);
        self.begin_piece();
        self.attempts.set(self.attempts.get().saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::{ATTEMPTS_OF_STRIDE, AbsentParts, FIRST_STRIDE, UNSAMPLED};

    /// Returns the indexes of the next 1,024 that a run visits after a number of attempts.
    fn sampled(attempts: u32, is_void: bool) -> Vec<usize> {
        let absent = AbsentParts::default();
        absent.before.set(is_void);
        absent.attempts.set(attempts);
        assert!((0..UNSAMPLED).all(|index| absent.samples(index)));
        let indexes = UNSAMPLED..UNSAMPLED + 1_024;
        indexes.filter(|index| absent.samples(*index)).collect()
    }

    #[test]
    fn void_run_visits_a_sample_that_grows_with_each_attempt() {
        assert_eq!(sampled(0, true), [256, 512, 768, 1_024]);
        let mut before = 0;
        for attempts in (0..=10 * ATTEMPTS_OF_STRIDE).step_by(ATTEMPTS_OF_STRIDE as usize) {
            let count = sampled(attempts, true).len();
            assert!(count > before || count == 1_024);
            before = count;
            assert_eq!(sampled(attempts, false).len(), 1_024);
        }
        assert_eq!(before, 1_024);
        assert_eq!(sampled(u32::MAX, true).len(), 1_024);
        assert!(FIRST_STRIDE.is_power_of_two());
    }

    #[test]
    fn run_follows_the_attempts_of_an_earlier_one() {
        let (earlier, absent) = (AbsentParts::default(), AbsentParts::default());
        earlier.begin_attempt();
        absent.follow(&earlier);
        assert_eq!(absent.attempts.get(), 2);
    }
}
