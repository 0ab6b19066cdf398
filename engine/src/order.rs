//! Lists in an order, by one routine for all types: it sorts places, then moves each item once. The sort of the standard library is written
//! anew for every type, some kilobytes each time, and this library is loaded over a network. What sorts many rows goes by the standard.

use std::cmp::Ordering;

/// Sorts by a key; items with equal keys keep their order.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    sort_by(items, &|a, b| key(a).cmp(&key(b)));
}

/// Sorts; equal items keep their order.
pub fn sort<T: Ord>(items: &mut [T]) {
    sort_by(items, &T::cmp);
}

/// Sorts by a comparison; equal items keep their order.
pub fn sort_by<T>(items: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let of_places = |a: usize, b: usize| items.get(a).zip(items.get(b)).map_or(Ordering::Equal, |(a, b)| compare(a, b));
    let places = sorted_places(items.len(), &of_places);
    arrange(places, &mut |a, b| items.swap(a, b));
}

/// The items of a list in their order, each once.
pub fn distinct<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    sort(&mut items);
    items.dedup();
    items
}

/// Values by text, in the order of the texts. The trees of the standard library are some kilobytes for each type of value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByText<V>(Vec<(String, V)>);

impl<V> ByText<V> {
    /// Nothing yet.
    pub const fn new() -> ByText<V> {
        ByText(Vec::new())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| own.as_str().cmp(key))
    }

    /// The value of a text.
    pub fn get(&self, key: &str) -> Option<&V> {
        self.0.get(self.place(key).ok()?).map(|(_, value)| value)
    }

    /// The value of a text, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let at = self.place(key).ok()?;
        self.0.get_mut(at).map(|(_, value)| value)
    }

    /// True when a text has a value.
    pub fn contains_key(&self, key: &str) -> bool {
        self.place(key).is_ok()
    }

    /// Gives a text a value in place of the one that it has, which is given back.
    pub fn insert(&mut self, key: String, value: V) -> Option<V> {
        match self.place(&key) {
            Ok(at) => self.0.get_mut(at).map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Takes the value of a text out.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        self.place(key).ok().map(|at| self.0.remove(at).1)
    }

    /// The texts with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &V)> {
        self.into_iter()
    }

    /// The texts.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(key, _)| key)
    }

    /// The values.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}

impl<V> Default for ByText<V> {
    fn default() -> ByText<V> {
        ByText::new()
    }
}

impl<V> Extend<(String, V)> for ByText<V> {
    fn extend<I: IntoIterator<Item = (String, V)>>(&mut self, pairs: I) {
        for (key, value) in pairs {
            self.insert(key, value);
        }
    }
}

impl<V> FromIterator<(String, V)> for ByText<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(pairs: I) -> ByText<V> {
        let mut all = ByText::new();
        all.extend(pairs);
        all
    }
}

impl<V, const N: usize> From<[(String, V); N]> for ByText<V> {
    fn from(pairs: [(String, V); N]) -> ByText<V> {
        pairs.into_iter().collect()
    }
}

impl<V> IntoIterator for ByText<V> {
    type Item = (String, V);
    type IntoIter = std::vec::IntoIter<(String, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, V> IntoIterator for &'a ByText<V> {
    type Item = (&'a String, &'a V);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (String, V)>, fn(&'a (String, V)) -> (&'a String, &'a V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(key, value)| (key, value))
    }
}

/// Sorts marks by their upper half; the lower halves of those with the same one must ascend already.
pub(crate) fn by_upper_half(marks: &mut Vec<u64>) {
    const MOST: usize = 11;
    if marks.len() < 64 {
        return sort_few(marks);
    }
    let width = if marks.len() < 1 << MOST { 8 } else { MOST };
    let most = marks.iter().max().map_or(0, |mark| mark >> 32);
    let (mut sorted, mut starts) = (vec![0; marks.len()], vec![0_u32; 1 << width]);
    for shift in (0..32).step_by(width).take_while(|shift| most >> shift > 0) {
        let digit = |mark: u64| (mark >> (32 + shift)) as usize % (1 << width);
        starts.fill(0);
        for mark in marks.iter() {
            starts.get_mut(digit(*mark)).into_iter().for_each(|count| *count += 1);
        }
        let mut start = 0;
        for count in &mut starts {
            start += std::mem::replace(count, start);
        }
        for mark in marks.iter() {
            if let Some(start) = starts.get_mut(digit(*mark)) {
                sorted.get_mut(*start as usize).into_iter().for_each(|place| *place = *mark);
                *start += 1;
            }
        }
        std::mem::swap(marks, &mut sorted);
    }
}

/// The number at a place of those in ascending order: byte by byte from the highest, those are kept that share one with it.
pub(crate) fn nth(mut numbers: Vec<i64>, mut place: usize) -> Option<i64> {
    for shift in (0..64).step_by(8).rev() {
        let byte = |number: i64| usize::from(((number ^ i64::MIN) >> shift) as u8);
        let mut counts = [0; 256];
        for number in &numbers {
            counts.get_mut(byte(*number)).into_iter().for_each(|count| *count += 1);
        }
        let mut before = |count: &usize| {
            let is_before = *count <= place;
            place -= if is_before { *count } else { 0 };
            is_before
        };
        let shared = counts.iter().take_while(|count| before(count)).count();
        if counts.get(shared) != Some(&numbers.len()) {
            numbers.retain(|number| byte(*number) == shared);
        }
    }
    numbers.first().copied()
}

/// Puts one after the other among those before it.
fn sort_few(marks: &mut [u64]) {
    for end in 1..=marks.len() {
        if let Some((last, sorted)) = marks.get_mut(..end).and_then(|some| some.split_last_mut()) {
            let place = sorted.partition_point(|mark| mark <= last);
            marks.get_mut(place..end).into_iter().for_each(|behind| behind.rotate_right(1));
        }
    }
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
    fn marks_are_sorted_by_their_upper_half() {
        for count in [0, 1, 63, 64, 2047, 5000] {
            for spread in [1, 7, 300, 70_000] {
                let marks: Vec<u64> = (0..count).map(|i| ((i * 104_729) % spread) << 32 | i).collect();
                let (mut ours, mut theirs) = (marks.clone(), marks);
                by_upper_half(&mut ours);
                theirs.sort_unstable();
                assert_eq!(ours, theirs);
            }
        }
    }

    #[test]
    fn values_by_text_are_those_of_a_map() {
        let (mut ours, mut theirs) = (ByText::new(), std::collections::BTreeMap::new());
        for (key, value) in numbers(200, 30) {
            let key = format!("k{key}");
            if value % 3 == 0 {
                assert_eq!(ours.remove(&key), theirs.remove(&key));
            } else {
                assert_eq!(ours.insert(key.clone(), value), theirs.insert(key.clone(), value));
            }
            assert_eq!((ours.get(&key), ours.contains_key(&key), ours.len()), (theirs.get(&key), theirs.contains_key(&key), theirs.len()));
        }
        assert!(ours.iter().eq(&theirs) && ours.keys().eq(theirs.keys()) && ours.values().eq(theirs.values()));
    }

    #[test]
    fn the_number_at_a_place_is_found() {
        let mut numbers: Vec<i64> = (0..500_i64).map(|i| (i * 104_729 % 331 - 165) << (i % 56)).chain([i64::MIN, i64::MAX, 0, 0]).collect();
        let found: Vec<Option<i64>> = (0..numbers.len()).map(|place| nth(numbers.clone(), place)).collect();
        numbers.sort_unstable();
        assert_eq!(found, numbers.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(nth(numbers, 504), None);
        assert_eq!(nth(Vec::new(), 0), None);
    }

    #[test]
    fn distinct_items_stand_once() {
        assert_eq!(distinct(["b", "a", "b"]), ["a", "b"]);
        assert!(distinct::<u8>([]).is_empty());
    }
}
