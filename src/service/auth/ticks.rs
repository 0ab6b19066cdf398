//! The environment of the tests of access control.

use super::super::Environment;

/// A clock that advances by a millisecond each time it is read, and the number of the last id.
#[derive(Default)]
pub(super) struct Ticks(i64);

impl Environment for Ticks {
    fn now(&mut self) -> i64 {
        self.0 += 1_000;
        1_796_000_000_000_000 + self.0
    }

    fn new_uuid(&mut self) -> String {
        self.0 += 1;
        format!("00000000-0000-4000-8000-{:012x}", self.0)
    }
}
