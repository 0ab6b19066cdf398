//! The manifest: the list of the live segments of a database.

use crate::document::{Segment, SegmentState};
use crate::store::repository::StoreError;
use crate::store::sql::value::{Fields, Row};

/// A segment of the manifest.
pub(super) struct ManifestEntry {
    pub first: u64,
    pub last: u64,
    pub state: u64,
    /// The number of its documents, or of its EHRs.
    pub rows: u64,
    /// The segment id, which the keys of its blobs have.
    pub id: String,
    /// The bytes of memory that it took while it was written.
    pub memory: u64,
}

impl ManifestEntry {
    /// Reads the rows of the manifest.
    ///
    /// # Errors
    /// If two segments hold one id, because queries would count its row twice, or if a segment has
    /// ids that its state lacks.
    pub fn all(rows: Vec<Row>) -> Result<Vec<ManifestEntry>, StoreError> {
        let entries = rows.into_iter().map(ManifestEntry::of);
        let entries: Vec<ManifestEntry> = entries.collect::<Result<_, _>>()?;
        let is_range =
            |of: &ManifestEntry| 0 < of.first && of.first <= of.last && of.last <= of.state;
        if entries.iter().all(is_range) && entries.is_sorted_by(|one, next| one.last < next.first) {
            return Ok(entries);
        }
        let what = "the segments of the manifest overlap, or are newer than their states";
        Err(StoreError::Failed(what.to_owned()))
    }

    /// Returns whether a segment has as many documents, or EHRs if it has no document, as the
    /// manifest says, each once and with an id in its range.
    pub fn is_of(&self, segment: &Segment) -> bool {
        let Ok(batch) = segment.batch(&SegmentState::default()) else {
            return false;
        };
        let documents = 0..batch.len() as u32;
        let ids: Vec<u64> = match batch.is_empty() {
            true => segment.ehrs().to_vec(),
            false => documents.filter_map(|d| batch.ordinal_of(d)).collect(),
        };
        let ends = [ids.first(), ids.last()];
        let range = self.first..=self.last;
        ids.len() as u64 == self.rows
            && ids.is_sorted_by(|one, next| one < next)
            && ends.into_iter().flatten().all(|id| range.contains(id))
    }

    /// Reads a row of the manifest.
    fn of(row: Row) -> Result<ManifestEntry, StoreError> {
        let mut fields = Fields::of(row);
        Ok(ManifestEntry {
            first: fields.number()?,
            last: fields.number()?,
            state: fields.number()?,
            rows: fields.number()?,
            id: fields.text()?,
            memory: fields.number()?,
        })
    }
}
