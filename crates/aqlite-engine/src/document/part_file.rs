//! The file of a checkpoint, from which parts are read one by one.

use super::segment::checksum;
use crate::codec;
use std::cell::OnceCell;
use std::fmt;

/// Reads bytes of a file. The host implements it; a read never waits.
pub trait ReadBytes {
    /// Returns the bytes between two positions.
    ///
    /// # Errors
    /// A message for the user if the file is gone, or cannot be read.
    fn read(&self, start: u64, end: u64) -> Result<Vec<u8>, String>;
}

/// The place of a part in a file.
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
    /// Returns the place of bytes that are stored from a position on.
    pub(super) fn of(bytes: &[u8], start: u64) -> Region {
        Region {
            start,
            end: start + bytes.len() as u64,
            checksum: checksum(bytes),
        }
    }
}

/// A file of parts. The first failure is kept: nothing may be answered from the file after it.
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
    /// A file that is read by this function of the host.
    pub fn new(bytes: Box<dyn ReadBytes>) -> PartFile {
        PartFile {
            bytes,
            failure: OnceCell::new(),
        }
    }

    /// Returns why a part could not be read. What was computed since the file was opened is then
    /// invalid.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Reads a part; `None` if it cannot be read, which is recorded.
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
