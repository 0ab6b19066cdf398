//! Sorting, compiled once for all types of items.
//!
//! The standard library compiles its stable sort again for each type of item, about 5 kB of wasm
//! each. In all, that is 60 kB of the page's module after compression.
//! In wasm, these functions therefore sort indices and move each item once. Native builds call the
//! standard library. Hot loops other than the sort of result rows call it on every target.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Sorts items by a key. Items with equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, |a, b| key(a).cmp(&key(b)));
}

/// Sorts items. Equal items keep their order.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, T::cmp);
}

/// Sorts items by a comparison. Equal items keep their order.
#[cfg(not(target_family = "wasm"))]
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    items.sort_by(compare);
}

/// Sorts items by a comparison. Equal items keep their order.
#[cfg(target_family = "wasm")]
pub fn sort_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order = sorted_indices(items.len(), &|a, b| {
        let pair = items.get(a).zip(items.get(b));
        pair.map_or(Ordering::Equal, |(a, b)| compare(a, b))
    });
    arrange(&mut order, &mut |a, b| items.swap(a, b));
}

/// Moves items into an order by swaps, at most one for each item.
#[cfg(target_family = "wasm")]
fn arrange(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        // Follows one cycle of the permutation. Positions that are done hold their own index, so
        // that each is visited once.
        while let Some(from) = order
            .get_mut(at)
            .map(|from| std::mem::replace(from, at))
            .filter(|from| *from != start)
        {
            swap(at, from);
            at = from;
        }
    }
}

/// Returns the indices of `count` items in the order of a comparison. Being no generic function, it
/// is compiled once.
#[cfg(target_family = "wasm")]
fn sorted_indices(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..count).collect();
    indices.sort_by(|a, b| compare(*a, *b));
    indices
}

/// Sorts items and removes repetitions.
pub fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    sort(&mut items);
    items.dedup();
    items
}

/// Collects pairs into a map. The last one of several with equal keys remains.
///
/// `collect` sorts the pairs before it builds the map, so it has a stable sort of its own for each
/// type of pair.
pub fn map<K: Ord, V>(pairs: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(pairs);
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_equal_keys_keep_their_order() {
        let mut items = vec![(2, 'a'), (1, 'b'), (2, 'c'), (1, 'd'), (0, 'e')];
        sort_by_key(&mut items, |(key, _)| *key);
        assert_eq!(items, [(0, 'e'), (1, 'b'), (1, 'd'), (2, 'a'), (2, 'c')]);
    }

    #[test]
    fn a_long_list_is_sorted_as_by_the_standard_library() {
        let mut items: Vec<(u32, usize)> = (0..1_000_usize)
            .map(|at| ((at as u32).wrapping_mul(2_654_435_761) >> 24, at))
            .collect();
        let mut expected = items.clone();
        expected.sort_by_key(|(key, _)| *key);
        sort_by_key(&mut items, |(key, _)| *key);
        assert_eq!(items, expected);
    }

    #[test]
    fn last_of_equal_keys_remains_in_a_map() {
        let map = map([(2, 'a'), (1, 'b'), (2, 'c')]);
        assert!(map.into_iter().eq([(1, 'b'), (2, 'c')]));
    }

    #[test]
    fn distinct_items_are_sorted_and_single() {
        assert_eq!(distinct([3, 1, 2, 3, 1]), [1, 2, 3]);
        assert!(distinct(Vec::<u8>::new()).is_empty());
    }
}
