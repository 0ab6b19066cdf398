//! The rules of slots: which archetypes they permit.

use super::pattern::Pattern;

/// Returns whether a slot permits an archetype.
///
/// An excluded archetype is refused if no rule includes others only: there is no inclusion, or one
/// of any archetype. Otherwise the inclusions decide, and the exclusion is that of the rest.
pub(super) fn permits(includes: &[Pattern], excludes: &[Pattern], archetype: &str) -> bool {
    let is_refused = |is_binding: &dyn Fn(&Pattern) -> bool| {
        let mut rules = excludes.iter().filter(|rule| is_binding(rule));
        rules.any(|rule| rule.matches(archetype))
    };
    if includes.is_empty() {
        return !is_refused(&|_| true);
    }
    if includes.iter().any(is_any) {
        return !is_refused(&|rule| !is_any(rule));
    }
    includes.iter().any(|rule| rule.matches(archetype))
}

/// Returns whether a slot includes an archetype by a rule that does not include any archetype.
pub(super) fn recommends(includes: &[Pattern], archetype: &str) -> bool {
    let mut rules = includes.iter().filter(|rule| !is_any(rule));
    rules.any(|rule| rule.matches(archetype))
}

/// Returns whether a rule matches any archetype.
pub(super) fn is_any(rule: &Pattern) -> bool {
    matches!(rule.source().trim_matches(['^', '$']), ".*" | ".+")
}
