//! Pruning of documents by their layouts alone.

use super::scan::{ArchetypeGroup, Scan};
use crate::document::{Item, ItemKind, Layout, ObjectKind};
use crate::rm::class::Attr;
use crate::rm::id::archetype_id_subsumes;

/// Returns the archetype ids of a layout, or `None` if its documents may have others as leaf
/// values.
pub(crate) fn archetypes_of(layout: &Layout) -> Option<Vec<&str>> {
    let is_open = |item: &Item| {
        // A node id that is no constant differs between documents, so it cannot be used for
        // pruning.
        item.attr == Some(Attr::ARCHETYPE_NODE_ID)
            && !matches!(item.kind, ItemKind::Constant { .. })
    };
    if layout.items().iter().any(is_open) {
        None
    } else {
        Some(layout.archetypes().collect())
    }
}

/// Returns whether a document may contribute a row to a scan, as far as its kind and its archetypes
/// show. `archetypes` is `None` if its layouts do not determine them.
pub(crate) fn may_match(scan: &Scan, kind: ObjectKind, archetypes: Option<&[String]>) -> bool {
    let holds = |group: &ArchetypeGroup| {
        // Without known archetypes nothing is ruled out.
        archetypes.is_none_or(|held| {
            group
                .0
                .iter()
                .any(|requested| held.iter().any(|data| is_one(requested, data)))
        })
    };
    scan.kinds.contains(&kind)
        // The archetypes of a scan concern compositions only.
        && (kind != ObjectKind::Composition || scan.archetypes.iter().all(holds))
}

fn is_one(requested: &str, data: &str) -> bool {
    requested == data || archetype_id_subsumes(requested, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(groups: &[&[&str]]) -> Scan {
        let archetypes = groups
            .iter()
            .map(|g| ArchetypeGroup(g.iter().map(|s| (*s).to_owned()).collect()))
            .collect();
        Scan {
            kinds: vec![ObjectKind::Composition, ObjectKind::EhrStatus],
            archetypes,
            ..Scan::default()
        }
    }

    #[test]
    fn each_group_requires_one_archetype_or_a_specialization_of_it() {
        let held = [
            "openEHR-EHR-COMPOSITION.encounter.v1",
            "openEHR-EHR-OBSERVATION.laboratory_test-cbc.v1",
        ]
        .map(str::to_owned);
        let matches =
            |groups: &[&[&str]]| may_match(&scan(groups), ObjectKind::Composition, Some(&held));
        assert!(matches(&[]));
        assert!(matches(&[&["openEHR-EHR-OBSERVATION.laboratory_test.v1"]]));
        assert!(matches(&[&[
            "openEHR-EHR-OBSERVATION.pulse.v1",
            "openEHR-EHR-COMPOSITION.encounter.v1"
        ]]));
        assert!(!matches(&[&["openEHR-EHR-OBSERVATION.laboratory_test.v2"]]));
        assert!(!matches(&[
            &["openEHR-EHR-COMPOSITION.encounter.v1"],
            &["openEHR-EHR-OBSERVATION.pulse.v1"]
        ]));
    }

    #[test]
    fn only_compositions_are_pruned_by_archetypes_and_unknown_ones_stay() {
        let requested = scan(&[&["openEHR-EHR-OBSERVATION.pulse.v1"]]);
        assert!(may_match(&requested, ObjectKind::EhrStatus, Some(&[])));
        assert!(may_match(&requested, ObjectKind::Composition, None));
        assert!(!may_match(&requested, ObjectKind::Composition, Some(&[])));
        assert!(!may_match(&requested, ObjectKind::Folder, None));
    }
}
