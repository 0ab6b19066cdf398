//! An environment with a fixed clock and seeded identifiers, so that a request can be repeated with
//! the same result.

use super::{Environment, Pause, utc_only};
use crate::document::fnv;
use std::future::ready;

/// An environment whose clock and identifiers are derived from a time and a seed. A host that
/// stores both can repeat a request with the same result.
pub struct ReplayEnvironment {
    micros: i64,
    state: u64,
    zones: fn(&str, i64) -> Option<i32>,
    pause: fn() -> Pause,
}

impl ReplayEnvironment {
    /// Creates an environment. `now` is in milliseconds since 1970; `seed` is any text.
    pub fn new(now: f64, seed: &str) -> ReplayEnvironment {
        ReplayEnvironment {
            micros: (now * 1000.0) as i64,
            state: fnv(seed.bytes()),
            zones: utc_only,
            pause: || Box::pin(ready(())),
        }
    }

    /// Sets the host's time zones: see [`Environment::offset`].
    pub fn with_zones(self, zones: fn(&str, i64) -> Option<i32>) -> ReplayEnvironment {
        ReplayEnvironment { zones, ..self }
    }

    /// Sets the host's pauses: see [`Environment::pause`].
    pub fn with_pauses(self, pause: fn() -> Pause) -> ReplayEnvironment {
        ReplayEnvironment { pause, ..self }
    }

    /// Returns the next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Environment for ReplayEnvironment {
    fn now(&mut self) -> i64 {
        self.micros
    }

    fn new_uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        // RFC 9562: the version is 4 (bits 48 to 51), the variant binary 10 (bits 64 and 65).
        let bits = u128::from(high) << 64 | u128::from(low);
        let bits = bits & !(0xf << 76) | 0x4 << 76;
        let bits = bits & !(0x3 << 62) | 0x2 << 62;
        let hex = format!("{bits:032x}");
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        [
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32),
        ]
        .join("-")
    }

    fn pause(&mut self) -> Pause {
        (self.pause)()
    }

    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        (self.zones)(zone, millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_identifiers_and_they_are_of_version_four() {
        let uuids = |seed| {
            let mut environment = ReplayEnvironment::new(1_700_000_000_000.0, seed);
            [environment.new_uuid(), environment.new_uuid()]
        };
        let [first, second] = uuids("a");
        assert_eq!([first.clone(), second.clone()], uuids("a"));
        assert_ne!(first, second);
        assert_ne!(uuids("b"), uuids("a"));
        assert_eq!(first.len(), 36);
        assert_eq!(first.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&first.as_bytes()[19]));
    }
}
