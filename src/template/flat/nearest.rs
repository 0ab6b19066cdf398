//! The nearest of the words that could stand in place of a wrong one.

/// How many are told.
const MOST: usize = 5;

/// Up to five candidates: few letters away, or with the same beginning; the nearest first.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = (word.chars().count() / 3).max(2);
    let near = |candidate: &'a str| {
        let distance = distance(word, candidate);
        let has_front = !word.is_empty() && (candidate.starts_with(word) || word.starts_with(candidate));
        (distance <= limit || has_front).then_some((distance, candidate))
    };
    let mut found: Vec<(usize, &str)> = candidates.filter_map(near).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().take(MOST).map(|(_, candidate)| candidate).collect()
}

/// How many letters must be put in, taken away or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(100).enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let change = corner + usize::from(x != *y);
            corner = *cell;
            left = change.min(corner + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_first() {
        let ids = ["systolic", "diastolic", "comment", "time"];
        assert_eq!(nearest("sistolic", ids.into_iter()), ["systolic", "diastolic"]);
        assert_eq!(nearest("tim", ids.into_iter()), ["time"]);
        assert!(nearest("xyz", ids.into_iter()).is_empty());
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
