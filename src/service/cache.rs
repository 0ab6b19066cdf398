//! A cache of compiled definitions, bounded by the size of their texts.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

/// The maximum total size in bytes of the texts from which the values of one cache were compiled.
///
/// A compiled template takes about two and a half times the memory of its text. A thousand
/// templates of usual size fit.
pub(crate) const COMPILED: usize = 20_000_000;

/// A least-recently-used cache: evicts values once their weights exceed [`COMPILED`] together.
///
/// The value that was inserted last is never evicted, whatever its weight: the request that
/// compiled it uses it.
pub(crate) struct Cache<K, V> {
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

impl<K, V> Default for Cache<K, V> {
    fn default() -> Cache<K, V> {
        Cache {
            entries: HashMap::new(),
            weight: 0,
            uses: 0,
        }
    }
}

impl<K: Hash + Eq + Clone, V> Cache<K, V> {
    /// Returns the value of a key, and marks it as used.
    pub fn get(&mut self, key: &K) -> Option<Rc<V>> {
        let entry = self.entries.get_mut(key)?;
        self.uses += 1;
        entry.used = self.uses;
        Some(Rc::clone(&entry.value))
    }

    /// Inserts a value that was compiled from a text of `weight` bytes, and evicts others until the
    /// rest fits.
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
        while self.weight > COMPILED && self.entries.len() > 1 {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.used)
                .map(|(key, _)| key.clone());
            let Some(evicted) = oldest.and_then(|key| self.entries.remove(&key)) else {
                break;
            };
            self.weight -= evicted.weight;
        }
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        *self = Cache::default();
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPILED, Cache};
    use std::rc::Rc;

    fn cache(weights: &[usize]) -> Cache<usize, usize> {
        let mut cache = Cache::default();
        weights
            .iter()
            .enumerate()
            .for_each(|(key, weight)| cache.insert(key, Rc::new(key), *weight));
        cache
    }

    #[test]
    fn value_used_longest_ago_is_evicted_first() {
        let third = COMPILED / 3;
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
        let mut cache = cache(&[1, 2, COMPILED * 2]);
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
            cache.insert(1, Rc::new(7), COMPILED - 1);
        }
        assert_eq!([0, 1].map(|key| cache.get(&key).is_some()), [true, true]);
        cache.clear();
        assert_eq!((cache.weight, cache.get(&1).is_none()), (0, true));
    }
}
