//! A least-recently-used cache, bounded by the weights of its values.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

/// A least-recently-used cache: evicts values once their weights exceed `MAX_WEIGHT` together.
///
/// The value that was inserted last is never evicted, whatever its weight: the request that
/// inserted it uses it.
pub(crate) struct Cache<K, V, const MAX_WEIGHT: usize> {
    entries: HashMap<K, Entry<V>>,
    weight: usize,
    /// The number of uses so far. The entry with the lowest number is the least recently used one.
    uses: u64,
}

struct Entry<V> {
    value: Rc<V>,
    weight: usize,
    used: u64,
}

impl<K, V, const MAX_WEIGHT: usize> Default for Cache<K, V, MAX_WEIGHT> {
    fn default() -> Cache<K, V, MAX_WEIGHT> {
        Cache {
            entries: HashMap::new(),
            weight: 0,
            uses: 0,
        }
    }
}

impl<K: Hash + Eq + Clone, V, const MAX_WEIGHT: usize> Cache<K, V, MAX_WEIGHT> {
    /// Returns the value of a key, and marks it as used.
    pub fn get(&mut self, key: &K) -> Option<Rc<V>> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(Rc::clone(&entry.value))
    }

    /// Inserts a value with a weight in bytes, and evicts others until the rest fits.
    ///
    /// Costs one pass over the entries for each evicted one.
    pub fn insert(&mut self, key: K, value: Rc<V>, weight: usize) {
        self.uses += 1;
        self.weight += weight;
        // The weight is added before the replaced entry is subtracted, so the sum never underflows.
        if let Some(replaced) = self.entries.insert(
            key,
            Entry {
                value,
                weight,
                used: self.uses,
            },
        ) {
            self.weight -= replaced.weight;
        }
        // The newest entry always stays, even if it alone exceeds the limit.
        while self.weight > MAX_WEIGHT && self.entries.len() > 1 {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.used)
                .map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.remove(&oldest);
        }
    }

    /// Removes the value of a key.
    pub fn remove(&mut self, key: &K) {
        // Each entry was added with the same weight, so the sum never underflows.
        let removed = self.entries.remove(key);
        self.weight -= removed.map_or(0, |entry| entry.weight);
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        *self = Cache::default();
    }

    /// Returns the sum of the weights as it is counted, and as the entries have it.
    #[cfg(test)]
    pub fn weights(&self) -> (usize, usize) {
        let weights = self.entries.values().map(|entry| entry.weight);
        (self.weight, weights.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::Cache;
    use std::rc::Rc;

    /// The maximum weight of the caches of these tests.
    const MAX_WEIGHT: usize = 20_000_000;

    fn cache(weights: &[usize]) -> Cache<usize, usize, MAX_WEIGHT> {
        let mut cache = Cache::default();
        weights
            .iter()
            .enumerate()
            .for_each(|(key, weight)| cache.insert(key, Rc::new(key), *weight));
        cache
    }

    #[test]
    fn value_used_longest_ago_is_evicted_first() {
        let third = MAX_WEIGHT / 3;
        let mut cache = cache(&[third, third, third]);
        assert!(cache.get(&0).is_some());
        cache.insert(3, Rc::new(3), third);
        assert_eq!(
            [0, 1, 2, 3].map(|key| cache.get(&key).is_some()),
            [true, false, true, true]
        );
    }

    #[test]
    fn value_heavier_than_the_bound_is_kept_alone() {
        let mut cache = cache(&[1, 2, MAX_WEIGHT * 2]);
        assert_eq!(
            [0, 1, 2].map(|key| cache.get(&key).is_some()),
            [false, false, true]
        );
        cache.insert(3, Rc::new(3), 1);
        assert_eq!([2, 3].map(|key| cache.get(&key).is_some()), [false, true]);
    }

    #[test]
    fn replaced_value_gives_its_weight_back() {
        let mut cache = cache(&[1]);
        for _ in 0..10 {
            cache.insert(1, Rc::new(7), MAX_WEIGHT - 1);
        }
        assert_eq!([0, 1].map(|key| cache.get(&key).is_some()), [true, true]);
        cache.clear();
        assert_eq!((cache.weight, cache.get(&1).is_none()), (0, true));
    }
}
