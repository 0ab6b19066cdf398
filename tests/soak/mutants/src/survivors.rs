//! The list of survivors: mutants that no test can catch, each group with its reason.

use crate::list::Mutant;
use crate::run::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Compares the survivors of a run with a list. Lines that start with `#` are reasons.
///
/// # Errors
/// The survivors that the list does not have, and the mutants of the list that a test catches.
pub fn compare(
    list: &Path,
    mutants: &[Mutant],
    outcomes: &BTreeMap<u32, Outcome>,
) -> Result<(), String> {
    let text = std::fs::read_to_string(list).map_err(|e| format!("{}: {e}", list.display()))?;
    let lines = text.lines().map(str::trim);
    let known: BTreeSet<&str> = lines
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .collect();
    let mut wrong = Vec::new();
    for mutant in mutants {
        let is_known = known.contains(mutant.key.as_str());
        match outcomes.get(&mutant.id) {
            Some(Outcome::Survived | Outcome::Unreached) if !is_known => {
                wrong.push(format!("survives: {}\n    {}", mutant.name, mutant.key));
            }
            Some(Outcome::Caught) if is_known => {
                wrong.push(format!(
                    "is caught, remove it from the list: {}",
                    mutant.key
                ));
            }
            _ => {}
        }
    }
    println!("{} survivors are listed with a reason", known.len());
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}
