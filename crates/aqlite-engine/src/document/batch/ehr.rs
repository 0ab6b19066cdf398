//! The metadata of an EHR, and the EHR object that queries read.

use super::derived::push_value;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::tree::Tree;

/// The metadata of an EHR in a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EhrRow {
    /// EHR.ehr_id.value.
    pub ehr_id: String,
    /// EHR.system_id.value.
    pub system_id: String,
    /// EHR.time_created.value.
    pub time_created: String,
    /// Whether population queries read the EHR.
    pub is_queryable: bool,
}

/// Creates the EHR object with the attributes that are known.
pub(super) fn ehr_tree(ehr: &EhrRow) -> Tree {
    let mut tree = Tree::new();
    let root = tree.push_object(None, None, Cls::EHR);
    let members = [
        (Attr::SYSTEM_ID, Cls::HIER_OBJECT_ID, &ehr.system_id),
        (Attr::EHR_ID, Cls::HIER_OBJECT_ID, &ehr.ehr_id),
        (Attr::TIME_CREATED, Cls::DV_DATE_TIME, &ehr.time_created),
    ];
    for (attr, class, text) in members {
        push_value(&mut tree, root, attr, class, text);
    }
    tree.close(root);
    tree
}
