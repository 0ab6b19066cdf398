//! The size of a change set as it is stored.
//!
//! A document can be longer in its canonical form than a client sent it: FLAT has no classes, and
//! the members of a contribution share an audit that each version has. An export writes a change
//! set as one line, and an import limits its lines. So the stored form has a limit too, and each
//! commit can be exported and imported again.

use super::call::Call;
use super::error::Failure;
use crate::rm::json;
use crate::rm::tree::Tree;

/// The maximum ratio of the length of canonical JSON to [`Tree::size`]. A node counts sixteen bytes
/// in this size, and its name and class take up to eighty in JSON. A byte of a text takes up to
/// six, if it is escaped.
const LONGER: usize = 8;

/// Returns the maximum bytes that a request stores as one text, with `body` as the maximum bytes of
/// its body: a document that grows moderately is accepted, however long it is. A definition is no
/// longer either, as the JSON string of an export, where each quote and each line end takes two
/// bytes.
pub(crate) fn stored_limit(body: usize) -> usize {
    body.saturating_mul(2)
}

/// The size of a change set, as its versions are added.
pub(crate) struct StoredSize {
    /// The approximate bytes of the versions so far.
    bytes: usize,
    limit: usize,
}

impl StoredSize {
    /// Creates the size of a change set without versions.
    pub fn new(call: &Call<'_>) -> StoredSize {
        StoredSize {
            bytes: 0,
            limit: stored_limit(call.config.limits.body),
        }
    }

    /// Adds a version.
    ///
    /// # Errors
    /// 413 for a change set that is far above the limit: it is not held in memory.
    pub fn add(&mut self, version: &Tree) -> Result<(), Failure> {
        self.bytes += version.size();
        // The approximation may be a little above the length.
        if self.bytes / 2 > self.limit {
            return Err(self.failure());
        }
        Ok(())
    }

    /// Checks the complete change set.
    ///
    /// # Errors
    /// 413 if the CONTRIBUTION and its versions are longer than the limit.
    pub async fn check(
        &self,
        call: &Call<'_>,
        contribution: &str,
        versions: &[Tree],
    ) -> Result<(), Failure> {
        if contribution.len() + self.bytes.saturating_mul(LONGER) <= self.limit {
            return Ok(());
        }
        let mut length = contribution.len();
        for version in versions {
            let _turn = call.turn(version.size()).await?;
            length += version.root().map_or(0, |root| json::write(root).len());
        }
        if length > self.limit {
            return Err(self.failure());
        }
        Ok(())
    }

    fn failure(&self) -> Failure {
        Failure::new(
            413,
            format!(
                "what the request commits is larger, as canonical JSON with its audits, than the limit of {} bytes: send shorter documents, or fewer of them together",
                self.limit
            ),
        )
    }
}
