//! Conversion of IMPORTED_VERSION between the stored form and the form of the Reference Model.
//!
//! The Reference Model defines `uid`, `preceding_version_uid`, `lifecycle_state` and `data` of an
//! IMPORTED_VERSION as functions that return those of its item. The stored form has their results
//! as attributes of the root, and an item without data. Every class of version has them at the same
//! path therefore.

use super::class::{Attr, Cls};
use super::json;
use super::tree::{NodeRef, Tree};

/// The attributes of VERSION that an IMPORTED_VERSION has itself, not its item.
const AROUND: [Attr; 3] = [Attr::CONTRIBUTION, Attr::COMMIT_AUDIT, Attr::SIGNATURE];

/// Returns the stored form of an IMPORTED_VERSION in the form of the Reference Model.
///
/// `follows` is true if the preceding version of the item is stored in the same repository.
pub fn stored_form(standard: NodeRef<'_>, follows: bool) -> Tree {
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

/// Returns the form of the Reference Model, which clients read, of a stored version.
///
/// Other classes than IMPORTED_VERSION are returned unchanged.
pub fn standard_form(stored: Tree) -> Tree {
    let Some(version) = stored
        .root()
        .filter(|root| root.class() == Cls::IMPORTED_VERSION)
    else {
        return stored;
    };
    let mut tree = Tree::object(Cls::IMPORTED_VERSION);
    let (Some(root), Some(item)) = (tree.root().map(NodeRef::id), version.get(Attr::ITEM)) else {
        return stored;
    };
    for attr in AROUND {
        if let Some(value) = version.get(attr) {
            tree.put(root, attr, value);
        }
    }
    // The stored item has no data. Those of the root are put into the item.
    let mut whole = item.to_tree();
    if let (Some(id), Some(data)) = (whole.root().map(NodeRef::id), version.get(Attr::DATA)) {
        whole.put(id, Attr::DATA, data);
    }
    if let Some(whole) = whole.root() {
        tree.put(root, Attr::ITEM, whole);
    }
    tree
}

/// Returns the JSON of a stored IMPORTED_VERSION in the form of the Reference Model.
///
/// Returns `None` if `stored` is not a valid IMPORTED_VERSION.
pub fn standard_json(stored: &str) -> Option<String> {
    let tree = standard_form(json::read(stored, Cls::IMPORTED_VERSION).ok()?);
    tree.root().map(json::write)
}

/// Returns the JSON of the item of a stored IMPORTED_VERSION, with its data.
///
/// Returns `None` if `stored` is not a valid IMPORTED_VERSION.
pub fn standard_item_json(stored: &str) -> Option<String> {
    let tree = standard_form(json::read(stored, Cls::IMPORTED_VERSION).ok()?);
    tree.root()?.get(Attr::ITEM).map(json::write)
}
