//! Seals: what a row tells of itself, so that one that was altered or damaged is refused and never
//! answered from.

use crate::document::{Packed, checksum, digest_of_text};
use crate::store::repository::StoreError;

/// A document as a row of `version` or `contribution` holds it.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    /// The ehr_id of its owner; empty where that is no EHR.
    pub owner: &'a str,
    /// The texts that its row has anyway, to which the document refers; its uid first.
    pub known: &'a [&'a str],
    /// The document in its packed form.
    pub text: &'a str,
}

impl Stored<'_> {
    /// The seal of these parts of a row; the document is made of layouts of these digests.
    pub(super) fn seal<'s>(&'s self, layouts: impl Iterator<Item = &'s str>) -> String {
        checksum(
            [self.owner]
                .into_iter()
                .chain(self.known.iter().copied())
                .chain(layouts)
                .chain([self.text]),
        )
    }

    /// The row is not what was written, or what it needs is gone.
    pub(super) fn altered(&self) -> StoreError {
        StoreError::Altered {
            uid: self.known.first().copied().unwrap_or_default().to_owned(),
            ehr_id: self.owner.to_owned(),
        }
    }
}

/// True for a seal that earlier releases stored: a digest of the document, or of its canonical
/// JSON, by the first ones whole.
pub(super) fn is_earlier(seal: &str, document: &Packed) -> bool {
    seal == document.digest()
        || seal.len() >= 32 && seal.get(..32) == digest_of_text(&document.to_json()).get(..32)
}
