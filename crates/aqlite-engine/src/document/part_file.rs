//! The file of a checkpoint, from which parts are read on demand.

use super::segment::checksum;
use crate::codec;
use std::cell::OnceCell;
use std::fmt;

/// Synchronous reads of a file, which the host implements.
pub trait ReadBytes {
    /// Returns the bytes between two positions.
    ///
    /// # Errors
    /// A message for the user if the file is gone, or cannot be read.
    fn read(&self, start: u64, end: u64) -> Result<Vec<u8>, String>;
}

/// The position of a part in a file, with its checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Region {
    start: u64,
    end: u64,
    checksum: u64,
}

codec!(Region {
    start,
    end,
    checksum
});

impl Region {
    /// Returns the region of bytes that are stored at a position.
    pub(super) fn of(bytes: &[u8], start: u64) -> Region {
        Region {
            start,
            end: start + bytes.len() as u64,
            checksum: checksum(bytes),
        }
    }
}

/// A file of parts. The first failure is kept, because results must not depend on the file after
/// it.
pub struct PartFile {
    bytes: Box<dyn ReadBytes>,
    failure: OnceCell<String>,
}

impl fmt::Debug for PartFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a file of parts, failed: {:?}", self.failure.get())
    }
}

impl PartFile {
    /// Creates a file that the host reads.
    pub fn new(bytes: Box<dyn ReadBytes>) -> PartFile {
        PartFile {
            bytes,
            failure: OnceCell::new(),
        }
    }

    /// Returns the reason why a part could not be read. Everything that was computed since the file
    /// was opened is then invalid.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Reads and decodes a part. Returns `None` and records the failure if that is impossible.
    pub(super) fn read<T>(
        &self,
        region: Region,
        restore: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> Option<T> {
        let read = || {
            let bytes = self.bytes.read(region.start, region.end)?;
            if bytes.len() as u64 != region.end.saturating_sub(region.start)
                || checksum(&bytes) != region.checksum
            {
                return Err(format!(
                    "the bytes {} to {} are damaged",
                    region.start, region.end
                ));
            }
            restore(&bytes).map_err(str::to_owned)
        };
        if self.failure.get().is_some() {
            return None;
        }
        match read() {
            Ok(value) => Some(value),
            Err(why) => {
                let _ = self.failure.set(why);
                None
            }
        }
    }
}
