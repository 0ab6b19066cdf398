//! A least-recently-used cache, bounded by the weights of its values.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

/// A least-recently-used cache: evicts values once their weights exceed a maximum together.
///
/// The value that was inserted last is never evicted, whatever its weight: the request that
/// inserted it uses it.
pub(crate) struct Cache<K, V> {
    entries: HashMap<K, Entry<V>>,
    weight: usize,
    max_weight: usize,
    /// The number of uses so far. The entry with the lowest number is the least recently used one.
    uses: u64,
}

struct Entry<V> {
    value: Rc<V>,
    weight: usize,
    used: u64,
}

impl<K: Hash + Eq + Clone, V> Cache<K, V> {
    /// Creates an empty cache.
    pub fn new(max_weight: usize) -> Cache<K, V> {
        Cache {
            entries: HashMap::new(),
            weight: 0,
            max_weight,
            uses: 0,
        }
    }

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
        self.evict();
    }

    /// Adds to the weight of a value that is in use and has grown, and evicts others until the rest
    /// fits. A value that has been evicted is left alone.
    pub fn grow(&mut self, value: &Rc<V>, weight: usize) {
        let mut entries = self.entries.values_mut();
        let Some(grown) = entries.find(|entry| Rc::ptr_eq(&entry.value, value)) else {
            return;
        };
        self.uses += 1;
        grown.used = self.uses;
        grown.weight += weight;
        self.weight += weight;
        self.evict();
    }

    /// Evicts the least recently used values until the rest fits.
    fn evict(&mut self) {
        // The newest entry always stays, even if it alone exceeds the limit.
        while self.weight > self.max_weight && self.entries.len() > 1 {
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
        *self = Cache::new(self.max_weight);
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

    fn cache(weights: &[usize]) -> Cache<usize, usize> {
        let mut cache = Cache::new(MAX_WEIGHT);
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
    fn value_that_grows_evicts_others() {
        let third = MAX_WEIGHT / 3;
        let mut cache = cache(&[third, third, third]);
        let first = cache.get(&0).unwrap();
        cache.grow(&first, third);
        assert_eq!(
            [0, 1, 2].map(|key| cache.get(&key).is_some()),
            [true, false, true]
        );
        assert_eq!(cache.weights(), (3 * third, 3 * third));
        cache.remove(&0);
        // It is no value of the cache any more.
        cache.grow(&first, third);
        assert_eq!(cache.weights(), (third, third));
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
