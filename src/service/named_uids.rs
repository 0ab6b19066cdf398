//! Uids of versions in VERSIONs and their data.

use crate::rm::class::{Attr, Cls};
use crate::rm::tree::{Kind, NodeRef, Tree};

/// Sets an attribute of the root to the uid of a version.
pub(crate) fn name_version(tree: &mut Tree, attr: Attr, uid: &str) {
    let id = version_id(uid);
    if let (Some(root), Some(id)) = (tree.root().map(NodeRef::id), id.root()) {
        tree.put(root, attr, id);
    }
}

/// Sets the uid of the data of a version that is stored with its own uid, if they have none. All
/// stored documents have a uid, because queries name them by it.
pub(crate) fn complete_data_uid(version: &mut Tree) {
    let Some(root) = version.root() else { return };
    let original = match root.class() {
        Cls::IMPORTED_VERSION => root.get(Attr::ITEM),
        _ => Some(root),
    };
    let uid = original.and_then(|version| version.text_along(&[Attr::UID, Attr::VALUE]));
    let data = original.and_then(|version| version.get(Attr::DATA));
    let unnamed = data.filter(|data| data.get(Attr::UID).is_none());
    let Some((uid, data)) = uid.map(version_id).zip(unnamed.map(NodeRef::id)) else {
        return;
    };
    if let Some(uid) = uid.root() {
        version.put(data, Attr::UID, uid);
    }
}

fn version_id(uid: &str) -> Tree {
    let mut id = Tree::object(Cls::OBJECT_VERSION_ID);
    if let Some(node) = id.root().map(NodeRef::id) {
        id.push_leaf(Some(node), Some(Attr::VALUE), Cls::STRING, Kind::Text, uid);
    }
    id
}
