//! The forms of an IMPORTED_VERSION in commits and answers: see `imported`.

use super::error::{Failure, root_of};
use crate::document::Packed;
use crate::rm::class::{Attr, Cls};
use crate::rm::imported::{standard_form, stored_form};
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
