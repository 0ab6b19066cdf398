//! The compositions that a folder lists by reference.

use super::{Binder, is_current};
use crate::answer::eval::node::Node;
use crate::answer::eval::work::STEP;
use crate::document::{Doc, ObjectKind};
use aqlite_rm::class::Attr;
use hashbrown::HashMap;
use std::ops::ControlFlow;

impl<'b> Binder<'_, 'b> {
    /// The compositions of the EHR by their object ids: their versions, oldest first.
    fn compositions(&self) -> &HashMap<&'b str, Vec<u32>> {
        self.listed.get_or_init(|| {
            let batch = self.view.batch;
            let mut found: HashMap<&'b str, Vec<u32>> = HashMap::new();
            for document in batch.docs_of(self.ehr) {
                self.view.count(STEP);
                if batch
                    .doc(*document)
                    .is_some_and(|doc| doc.row.kind == ObjectKind::Composition)
                {
                    found
                        .entry(batch.object_id(*document))
                        .or_default()
                        .push(*document);
                }
            }
            found
        })
    }

    /// The latest versions of the compositions that a folder lists, then of those that its
    /// sub-folders list, each listing counted.
    pub(super) fn listed(
        &self,
        folder: Node,
        visit: &mut dyn FnMut(Doc) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.listed_objects(folder, &mut |documents| {
            let mut current = documents
                .iter()
                .filter_map(|document| self.view.batch.doc(*document))
                .filter(is_current);
            current
                .next()
                .map_or(ControlFlow::Continue(()), &mut *visit)
        })
    }

    /// The versions of each composition that a folder lists, then of those that its sub-folders
    /// list, each listing counted.
    pub(super) fn listed_objects(
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
            // The id may be that of a version, which has the id of the object before the first
            // `::`.
            let object = id.split("::").next().unwrap_or(id);
            if let Some(documents) = self.compositions().get(object) {
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
            .try_for_each(|inner| self.listed_objects(inner, visit))
    }
}
