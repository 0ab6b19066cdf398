//! Checksums of rows. A row that was altered or damaged is refused and never returned.

use crate::document::{Packed, checksum, digest_of_text};
use crate::store::repository::StoreError;

/// A document as a row of `version` or `contribution` holds it.
#[derive(Clone, Copy)]
pub(super) struct StoredDocument<'a> {
    /// The ehr_id of its owner; empty if the owner is no EHR.
    pub owner: &'a str,
    /// The texts of other columns of the row, to which the document refers; its uid first.
    pub known: &'a [&'a str],
    /// The document in its packed form.
    pub text: &'a str,
}

impl StoredDocument<'_> {
    /// Returns the checksum of these parts of a row and of the digests of the layouts of the
    /// document.
    pub(super) fn checksum<'s>(&'s self, layouts: impl Iterator<Item = &'s str>) -> String {
        checksum(
            [self.owner]
                .into_iter()
                .chain(self.known.iter().copied())
                .chain(layouts)
                .chain([self.text]),
        )
    }

    /// Returns the error for a row that does not match its checksum, or whose layouts are missing.
    pub(super) fn corrupt(&self) -> StoreError {
        StoreError::Corrupt {
            uid: self.known.first().copied().unwrap_or_default().to_owned(),
            ehr_id: self.owner.to_owned(),
        }
    }
}

/// Returns whether a checksum has a form of earlier releases: a digest of the document, or of its
/// canonical JSON, which the first ones stored at full length.
pub(super) fn is_former_checksum(checksum: &str, document: &Packed) -> bool {
    checksum == document.digest()
        || checksum.len() >= 32
            && checksum.get(..32) == digest_of_text(&document.to_json()).get(..32)
}
