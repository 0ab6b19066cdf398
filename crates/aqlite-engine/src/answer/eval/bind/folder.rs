//! The compositions that a folder lists by reference.

use super::{Binder, is_current};
use crate::answer::eval::node::Node;
use crate::answer::eval::work::STEP;
use crate::document::{Doc, ObjectKind};
use aqlite_rm::class::Attr;
use aqlite_rm::id::object_id_of;
use hashbrown::HashMap;
use std::ops::ControlFlow;

impl<'b> Binder<'_, 'b> {
    /// Returns the versions of each composition of the EHR, oldest first, by object id.
    fn compositions(&self) -> &HashMap<&'b str, Vec<u32>> {
        self.compositions_by_id.get_or_init(|| {
            let batch = self.view.batch;
            let mut found: HashMap<&'b str, Vec<u32>> = HashMap::new();
            for document in batch.docs_of(self.ehr) {
                self.view.count(STEP);
                let doc = self.view.doc(*document);
                if doc.is_none_or(|doc| doc.row.kind != ObjectKind::Composition) {
                    continue;
                }
                match batch.find_object_id(*document) {
                    Some(id) => found.entry(id).or_default().push(*document),
                    None => self.view.note_broken("a document has no object id"),
                }
            }
            found
        })
    }

    /// Returns the latest versions of the compositions that a folder references, then of those that
    /// its sub-folders reference. A composition occurs once for each reference.
    pub(super) fn latest_in_folder(
        &self,
        folder: Node,
        visit: &mut dyn FnMut(Doc) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.objects_in_folder(folder, &mut |documents| {
            let mut current = documents
                .iter()
                .filter_map(|document| self.view.doc(*document))
                .filter(is_current);
            current
                .next()
                .map_or(ControlFlow::Continue(()), &mut *visit)
        })
    }

    /// Returns the versions of each composition that a folder references, then of those that its
    /// sub-folders reference. A composition occurs once for each reference.
    pub(super) fn objects_in_folder(
        &self,
        folder: Node,
        visit: &mut dyn FnMut(&[u32]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut items = Vec::new();
        self.view.each(folder, Attr::ITEMS, &mut |item| {
            items.extend(
                self.view
                    .single(item, Attr::ID)
                    .and_then(|id| self.view.text_at(id, Attr::VALUE)),
            );
            true
        });
        for id in items {
            // The id may be that of a version.
            if let Some(documents) = self.compositions().get(object_id_of(id)) {
                visit(documents)?;
            }
        }
        let mut folders = Vec::new();
        self.view.each(folder, Attr::FOLDERS, &mut |inner| {
            folders.push(inner);
            true
        });
        folders
            .into_iter()
            .try_for_each(|inner| self.objects_in_folder(inner, visit))
    }
}
