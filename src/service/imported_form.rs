//! The stored and the standard form of an IMPORTED_VERSION: see `imported`.

use super::error::{Failure, root_of};
use crate::document::Packed;
use crate::rm::class::{Attr, Cls};
use crate::rm::imported::{AROUND, standard_form};
use crate::rm::json;
use crate::rm::tree::{NodeRef, Tree};

/// Adds the contribution and the commit_audit of an envelope to the item of an IMPORTED_VERSION of
/// a client.
pub(crate) fn wrapped(envelope: NodeRef<'_>, sent: NodeRef<'_>, follows: bool) -> Tree {
    let mut tree = Tree::object(Cls::IMPORTED_VERSION);
    let Some(root) = tree.root().map(NodeRef::id) else {
        return tree;
    };
    for (source, attr) in [
        (envelope, Attr::CONTRIBUTION),
        (envelope, Attr::COMMIT_AUDIT),
        (sent, Attr::SIGNATURE),
        (sent, Attr::ITEM),
    ] {
        if let Some(value) = source.get(attr) {
            tree.put(root, attr, value);
        }
    }
    tree.root()
        .map_or_else(Tree::new, |root| stored_form(root, follows))
}

/// Returns the stored form of an IMPORTED_VERSION. `follows` is true if the preceding version of
/// the item is stored here too.
pub(crate) fn stored_form(standard: NodeRef<'_>, follows: bool) -> Tree {
    let mut tree = Tree::object(Cls::IMPORTED_VERSION);
    let (Some(root), Some(item)) = (tree.root().map(NodeRef::id), standard.get(Attr::ITEM)) else {
        return standard.to_tree();
    };
    for attr in AROUND {
        if let Some(value) = standard.get(attr) {
            tree.put(root, attr, value);
        }
    }
    let preceding = follows.then_some(Attr::PRECEDING_VERSION_UID);
    for attr in [
        Some(Attr::UID),
        preceding,
        Some(Attr::LIFECYCLE_STATE),
        Some(Attr::DATA),
    ]
    .into_iter()
    .flatten()
    {
        if let Some(value) = item.get(attr) {
            tree.put(root, attr, value);
        }
    }
    let mut bare = item.to_tree();
    if let Some(id) = bare.root().map(NodeRef::id) {
        bare.remove(id, Attr::DATA);
    }
    if let Some(bare) = bare.root() {
        tree.put(root, Attr::ITEM, bare);
    }
    tree
}

/// Returns the standard form of a stored version as canonical JSON.
///
/// # Errors
/// 500 for a document without a root.
pub(crate) fn standard_json(packed: &Packed) -> Result<String, Failure> {
    if packed.class() != Cls::IMPORTED_VERSION {
        return Ok(packed.to_json());
    }
    root_of(&standard_form(packed.unpack())).map(json::write)
}
