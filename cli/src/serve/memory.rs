//! The division of the memory of a server among its threads.
//!
//! | share | purpose |
//! |---|---|
//! | 1/2 | caches of the service threads: parts of segments, pages of SQLite, layouts, definitions |
//! | 1/8 | documents, rows and results of all running queries |
//! | 1/8 | long texts, and everything made of them |
//! | 1/8 | pages of the connections that write |
//! | 1/16 | parts of loads in progress |
//! | 1/16 | program, connections, compaction |
//!
//! Queries and texts of all threads share their memory. Caches are divided evenly. Most of them is
//! for parts of segments: without them a population query reads its segments again.

use aqlite::service::SharedMemory;

const MIB: usize = 1 << 20;

/// The least memory of a server in bytes: smaller caches would be read again for each request.
const LEAST: usize = 134_217_728;

/// Bytes of the pages of a connection at most. More would not make commits faster.
const PAGES: usize = 64 * MIB;

/// Bytes of the layouts of a thread at most. Few repositories have more.
const LAYOUTS: usize = 24 * MIB;

/// Bytes that a part of a load takes: its lines, their trees and packed documents, its statements.
const LOAD_PART: usize = 33_554_432;

/// The memory of a server.
#[derive(Clone)]
pub struct Memory {
    /// The memory that the service threads share.
    pub shared: SharedMemory,
    /// Bytes of the pages of a connection that writes.
    pub writer_pages: usize,
    /// Bytes of the pages of a connection that reads.
    pub reader_pages: usize,
    /// Bytes of the layouts of a thread.
    pub layouts: usize,
    /// Bytes of the compiled templates and guides of a thread.
    pub compiled: usize,
    /// Bytes of the parts of segments that a thread keeps between queries.
    pub kept_parts: usize,
    /// Bytes of the parts of segments that one query loads.
    pub loaded_parts: usize,
    /// Parts of one load in progress.
    pub load_parts: usize,
}

impl Memory {
    /// Divides `bytes` bytes among service threads.
    pub fn divide(bytes: usize, threads: usize) -> Memory {
        let threads = threads.max(1);
        let thread = bytes / 2 / threads;
        Memory {
            shared: SharedMemory::new(bytes / 8, bytes / 8),
            writer_pages: (bytes / 16).min(PAGES),
            reader_pages: (thread / 16).min(PAGES),
            layouts: (thread / 16).min(LAYOUTS),
            compiled: thread / 8,
            kept_parts: thread / 16 * 5,
            loaded_parts: thread / 8 * 3,
            load_parts: (bytes / 16 / LOAD_PART).clamp(1, threads),
        }
    }
}

/// Reads a number of bytes with a unit, such as `512M` or `2G`.
///
/// # Errors
/// If the text is no number with a unit, or is less than the least memory.
pub fn parse(text: &str) -> Result<usize, String> {
    let units = [("M", MIB), ("G", 1024 * MIB)];
    let found = units
        .iter()
        .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let number = found.and_then(|(number, size)| Some((number.parse::<usize>().ok()?, size)));
    let bytes = number
        .and_then(|(number, size)| number.checked_mul(*size))
        .ok_or("expected a whole number of megabytes or gigabytes, such as `512M` or `2G`")?;
    match bytes < LEAST {
        true => Err(format!("expected {}M at least", LEAST / MIB)),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_all_threads_are_the_whole_at_most() {
        let gib = 1024 * MIB;
        for (bytes, threads) in [(LEAST, 1), (LEAST, 64), (gib, 2), (64 * gib, 16)] {
            let memory = Memory::divide(bytes, threads);
            let readers = 2 * memory.reader_pages;
            let definitions = memory.layouts + memory.compiled;
            let caches = readers + definitions + memory.kept_parts + memory.loaded_parts;
            let divided = threads * caches + 2 * memory.writer_pages;
            // A part is in memory at least.
            let loads = (memory.load_parts - 1) * LOAD_PART;
            let shared = bytes / 8 + bytes / 8;
            assert!(
                divided + loads + shared <= bytes - bytes / 16,
                "{bytes} {threads}"
            );
        }
    }

    #[test]
    fn memory_has_a_unit_and_a_least_value() {
        assert_eq!(parse("512M"), Ok(512 * MIB));
        assert_eq!(parse("2G"), Ok(2048 * MIB));
        for wrong in ["", "512", "M", "-1G", "2GB", "127M", "99999999999999999G"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
