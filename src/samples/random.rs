//! Counter-based random numbers. Every tuple (seed, EHR, composition) has its own stream, so any
//! composition can be generated again alone.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Creates the stream of a tuple.
    pub(super) fn new(tuple: [u64; 4]) -> Random {
        Random(
            tuple
                .into_iter()
                .fold(0x6a09_e667_f3bc_c909, |state, part| {
                    mix(state ^ mix(part.wrapping_add(0x9e37_79b9_7f4a_7c15)))
                }),
        )
    }

    /// Returns the next 64 bits (splitmix64).
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number from 0 to `end`, exclusive.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high - low + 1).unwrap_or(1);
        low + i64::try_from(self.below(span)).unwrap_or_default()
    }

    /// Returns true with a probability of `per_mille` / 1000.
    pub(super) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// Returns an element of a list, which is never empty.
    pub(super) fn pick<T: Copy + Default>(&mut self, list: &[T]) -> T {
        let index =
            usize::try_from(self.below(u64::try_from(list.len()).unwrap_or(1))).unwrap_or_default();
        list.get(index).copied().unwrap_or_default()
    }

    /// Returns a number of repetitions: mostly one, with a tail up to `most`.
    pub(super) fn repeats(&mut self, most: u64) -> u64 {
        if self.chance(900) {
            return 1;
        }
        let most = if self.chance(100) { most } else { 3 };
        1 + self.below(most)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let take = |tuple| Random::new(tuple).below(1000);
        assert_eq!(take([1, 2, 3, 4]), take([1, 2, 3, 4]));
        assert_ne!(
            Random::new([1, 2, 3, 4]).bits(),
            Random::new([1, 3, 2, 4]).bits()
        );
        let mut random = Random::new([0; 4]);
        let ones = (0..10_000).filter(|_| random.chance(100)).count();
        assert!((900..1100).contains(&ones), "{ones}");
    }
}
