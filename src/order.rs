//! Lists in an order, by one routine for all types: it sorts places, then moves each item once. The sort of the standard library is written
//! anew for every type, some kilobytes each time, and this library is loaded over a network. What sorts many rows goes by the standard.

use std::cmp::Ordering;

/// Sorts by a key; items with equal keys keep their order.
pub(crate) fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, &|a, b| key(a).cmp(&key(b)));
}

/// Sorts; equal items keep their order.
pub(crate) fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, &T::cmp);
}

/// Sorts by a comparison; equal items keep their order.
pub(crate) fn sort_by<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let of_places = |a: usize, b: usize| items.get(a).zip(items.get(b)).map_or(Ordering::Equal, |(a, b)| compare(a, b));
    let places = sorted_places(items.len(), &of_places);
    arrange(places, &mut |a, b| items.swap(a, b));
}

/// The items of a list in their order, each once.
pub(crate) fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    sort(&mut items);
    items.dedup();
    items
}

fn sorted_places(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

/// Brings to each place what stands at the place that the list names there.
fn arrange(mut from: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..from.len() {
        let mut at = start;
        while let Some(source) = from.get_mut(at).map(|place| std::mem::replace(place, at)).filter(|source| *source != start) {
            swap(at, source);
            at = source;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look like chance.
    fn numbers(count: usize, seed: usize) -> Vec<(usize, usize)> {
        (0..count).map(|i| ((i * 7919 + seed * 104_729) % 31 % (seed + 1), i)).collect()
    }

    #[test]
    fn it_sorts_as_the_standard_library_does() {
        for seed in 0..40 {
            for count in [0, 1, 2, 3, 20, 200] {
                let (mut ours, mut theirs) = (numbers(count, seed), numbers(count, seed));
                sort_by_key(&mut ours, |(key, _)| *key);
                theirs.sort_by_key(|(key, _)| *key);
                assert_eq!(ours, theirs);
                sort_by(&mut ours, &|a, b| b.cmp(a));
                theirs.sort_by(|a, b| b.cmp(a));
                assert_eq!(ours, theirs);
            }
        }
    }

    #[test]
    fn distinct_items_stand_once() {
        assert_eq!(distinct(["b", "a", "b"]), ["a", "b"]);
        assert!(distinct::<u8>([]).is_empty());
    }
}
