//! `docs/rest.md`: every ruling has a case whose title begins with its name, and every such case
//! has a ruling.

use std::collections::BTreeSet;
use std::path::Path;

/// Returns whether a word is the name of a ruling: `A1`, `C12`, `R3`.
fn is_name(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| matches!(c, 'A' | 'C' | 'R'))
        && word.len() > 1
        && chars.all(|c| c.is_ascii_digit())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_ruling_has_a_case() {
    let page = read("docs/rest.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let present: BTreeSet<&str> = rows.filter(|word| is_name(word)).collect();
    let cases = read("tests/cases/rest/rulings.rest");
    let headings = cases.lines().filter_map(|line| line.strip_prefix("=== "));
    let shown: BTreeSet<&str> = headings
        .flat_map(|heading| heading.split(' ').take_while(|word| is_name(word)))
        .collect();
    let lacking: Vec<_> = present.difference(&shown).collect();
    let without_ruling: Vec<_> = shown.difference(&present).collect();
    assert!(
        lacking.is_empty() && without_ruling.is_empty(),
        "without a case: {lacking:?}; without a ruling: {without_ruling:?}"
    );
    assert!(present.len() > 40, "only {} rulings", present.len());
}
