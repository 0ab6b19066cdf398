//! Spelling suggestions: the known words nearest to an unknown one.

use crate::order;

/// The maximum number of suggestions.
const MOST: usize = 5;

/// Returns the candidate with the smallest edit distance, if it is at most a third of the word's
/// length, or 1.
pub fn nearest<'a>(word: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = letters(word);
    let most = (word.len() / 3).max(1);
    let near = candidates
        .map(|c| (distance(&word, &letters(c)), c))
        // At least one letter must agree, otherwise every short word would be near.
        .filter(|(d, c)| *d <= most && *d < c.chars().count());
    near.min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// Returns up to five candidates with a small edit distance or a common prefix, nearest first.
pub fn near<'a>(word: &str, candidates: &mut dyn Iterator<Item = &'a str>) -> Vec<&'a str> {
    let given = letters(word);
    let most = (given.len() / 3).max(2);
    let has_front = |c: &str| !word.is_empty() && (c.starts_with(word) || word.starts_with(c));
    let found = candidates
        .map(|c| (distance(&given, &letters(c)), c))
        .filter(|(d, c)| *d <= most || has_front(c));
    order::distinct(found)
        .into_iter()
        .take(MOST)
        .map(|(_, c)| c)
        .collect()
}

fn letters(word: &str) -> Vec<char> {
    // The distance is quadratic in the length, so the length is limited.
    word.chars().flat_map(char::to_lowercase).take(64).collect()
}

/// Returns the optimal string alignment distance: insertions, deletions, substitutions and swaps of
/// neighbors.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut last_a = None;
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(above.len());
        row.push(i + 1);
        let mut last_b = None;
        for (j, y) in b.iter().enumerate() {
            // One less than the maximum, so that adding a cost of 1 cannot overflow.
            let at = |r: &[usize], k: usize| r.get(k).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&above, j) + usize::from(x != y))
                .min(at(&above, j + 1) + 1)
                .min(at(&row, j) + 1);
            // Two neighbors that are swapped count as one edit.
            if last_a == Some(y) && last_b == Some(x) && j > 0 {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
            last_b = Some(y);
        }
        before = std::mem::replace(&mut above, row);
        last_a = Some(x);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ignores_distant_words() {
        let words = ["data", "state", "protocol", "name"];
        assert_eq!(nearest("dta", &mut words.into_iter()), Some("data"));
        assert_eq!(nearest("sttae", &mut words.into_iter()), Some("state"));
        assert_eq!(nearest("xyz", &mut words.into_iter()), None);
    }

    #[test]
    fn near_sorts_by_distance() {
        let ids = ["systolic", "diastolic", "comment", "time"];
        assert_eq!(
            near("sistolic", &mut ids.into_iter()),
            ["systolic", "diastolic"]
        );
        assert_eq!(near("tim", &mut ids.into_iter()), ["time"]);
        assert!(near("xyz", &mut ids.into_iter()).is_empty());
        assert_eq!(distance(&letters("kitten"), &letters("sitting")), 3);
    }
}
