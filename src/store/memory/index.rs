//! Stored contributions.

use super::{CONTRIBUTION, UID, missing_document};
use crate::document::{Batch, Doc};
use crate::rm::class::Attr;
use crate::store::canonical;
use crate::store::repository::StoreError;

/// A contribution.
pub(super) struct StoredContribution {
    /// The number of its owner in the batch.
    pub(super) owner: u32,
    /// The numbers of its first version and of the one after its last.
    pub(super) documents: (u32, u32),
    /// Its uid and its document, if they cannot be derived from its versions.
    pub(super) own: Option<Box<(String, String)>>,
}

impl StoredContribution {
    /// Returns its uid; `None` if it has none of its own, and none can be derived from its versions.
    pub(super) fn uid<'a>(&'a self, batch: &'a Batch) -> Option<&'a str> {
        match &self.own {
            Some(own) => Some(&own.0),
            None => {
                let first = batch.doc(self.documents.0)?;
                batch.text_along(first.version, CONTRIBUTION)
            }
        }
    }

    /// Returns the document of the contribution.
    ///
    /// # Errors
    /// If it has no document of its own, and none can be derived from its versions.
    pub(super) fn document(&self, batch: &Batch) -> Result<String, StoreError> {
        match &self.own {
            Some(own) => Ok(own.1.clone()),
            None => self.derived_document(batch).ok_or_else(missing_document),
        }
    }

    /// Derives the document of a contribution, with the audit of its first version.
    pub(super) fn derived_document(&self, batch: &Batch) -> Option<String> {
        let first = batch.doc(self.documents.0)?.version;
        let mut audit = String::new();
        batch.write_json(
            first,
            batch
                .table(first.table)?
                // Item 0 of a layout is its root.
                .layout()
                .child(0, Attr::COMMIT_AUDIT)?,
            &mut audit,
        );
        let class = |doc: Doc| {
            // The class of the data decides. A deletion has none and counts as the class of its
            // kind.
            doc.data
                .and_then(|data| batch.table(data.table))
                .map_or(doc.row.kind.class(), |table| table.layout().class())
                .name()
        };
        let version = |doc: Doc| Some((batch.text_along(doc.version, UID)?, class(doc)));
        let versions: Option<Vec<_>> = (self.documents.0..self.documents.1)
            .map(|document| batch.doc(document).and_then(version))
            .collect();
        Some(canonical::contribution(
            batch.text_along(first, CONTRIBUTION)?,
            &versions?,
            &audit,
        ))
    }
}
