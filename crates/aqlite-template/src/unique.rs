//! Equality of the members of a list, for lists whose members must be distinct.

use aqlite_rm::class::Attr;
use aqlite_rm::tree::NodeRef;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns whether two of the objects are equal.
///
/// Digests are compared first, because comparing all pairs would be quadratic.
pub(super) fn has_equals(values: &[NodeRef<'_>]) -> bool {
    let mut seen: HashMap<u64, Vec<NodeRef<'_>>> = HashMap::new();
    values.iter().any(|value| {
        let mut hasher = DefaultHasher::new();
        digest(*value, &mut hasher);
        let alike = seen.entry(hasher.finish()).or_default();
        let is_there = alike.iter().any(|other| other.same_as(*value));
        alike.push(*value);
        is_there
    })
}

/// Hashes the content that [`NodeRef::same_as`] compares.
fn digest(node: NodeRef<'_>, hasher: &mut DefaultHasher) {
    node.class().number().hash(hasher);
    node.text().hash(hasher);
    for child in node.children() {
        child.attr().map(Attr::name).hash(hasher);
        digest(child, hasher);
    }
    node.children().count().hash(hasher);
}
