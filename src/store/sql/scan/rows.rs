//! The rows of a page of a scan, as the database returns them.

use super::page::LastVersion;
use super::{NO_BOUND, PageBounds};
use crate::document::{DocRow, EhrRow};
use crate::store::commit_rules::join_uid;
use crate::store::repository::StoreError;
use crate::store::sql::value::{Fields, Row, kind_of, unexpected};

/// A row of a page: an EHR, and one of its documents if it has any.
pub(super) struct ScanRow {
    /// The rows that the page would have without a limit on its bytes.
    pub found: u64,
    /// The size of the stored document in bytes.
    pub size: u64,
    pub ehr: u64,
    pub row: EhrRow,
    pub doc: Option<DocumentRow>,
}

pub(super) struct DocumentRow {
    pub row: DocRow,
    pub system: String,
    pub time_committed: String,
    pub layouts: Vec<u64>,
    pub checksum: String,
    pub chunks: u64,
    pub text: String,
}

/// The rows of a page.
pub(super) struct ScanPage {
    pub rows: Vec<ScanRow>,
    /// Whether more rows follow in the range of the page.
    pub is_cut: bool,
}

impl ScanPage {
    pub fn of(rows: Vec<Row>, most: u64) -> Result<ScanPage, StoreError> {
        let rows = rows
            .into_iter()
            .map(ScanRow::of)
            .collect::<Result<Vec<ScanRow>, StoreError>>()?;
        let found = rows.first().map_or(0, |row| row.found);
        Ok(ScanPage {
            is_cut: found > rows.len() as u64 || found == most,
            rows,
        })
    }

    /// Checks that each row lies within the bounds of the page and behind the row before it, so
    /// that no row of a scan is sent twice. `by_ehr`: whether the bounds are those of EHRs.
    ///
    /// # Errors
    /// If one does not: an answer could be wrong.
    pub fn check(&self, bounds: &PageBounds, by_ehr: bool) -> Result<(), StoreError> {
        let mut last = (bounds.after, NO_BOUND);
        if by_ehr {
            last = last.max((bounds.last.ehr, bounds.last.version));
        }
        for row in &self.rows {
            let position = row.position(by_ehr);
            if position <= last || position.0 > bounds.until {
                let what = "a row of a page is out of its order or beyond the bounds of the page";
                return Err(StoreError::Failed(what.to_owned()));
            }
            last = position;
        }
        Ok(())
    }

    /// Returns the total size of the stored documents in bytes.
    pub fn bytes(&self) -> u64 {
        self.rows.iter().map(|row| row.size).sum()
    }

    /// Returns the EHR and the version of the last row; [`NO_BOUND`] as the version if the EHR has
    /// no documents there.
    pub fn end(&self) -> Option<LastVersion> {
        let (ehr, version) = self.rows.last()?.position(true);
        Some(LastVersion { ehr, version })
    }
}

impl ScanRow {
    pub fn of(row: Row) -> Result<ScanRow, StoreError> {
        let mut fields = Fields::of(row);
        let (found, size) = (fields.number()?, fields.number()?);
        let ehr = fields.number()?;
        let row = EhrRow {
            ehr_id: fields.text()?,
            system_id: fields.text()?,
            time_created: fields.text()?,
            is_queryable: fields.flag()?,
        };
        let doc = fields
            .optional_number()?
            .map(|ordinal| DocumentRow::of(ordinal, fields))
            .transpose()?;
        Ok(ScanRow {
            found,
            size,
            ehr,
            row,
            doc,
        })
    }

    /// Returns the position of the row among all rows: by its EHR and then its version, or by its
    /// version alone. The version of an EHR without documents is [`NO_BOUND`].
    fn position(&self, by_ehr: bool) -> (u64, u64) {
        let version = self.doc.as_ref().map_or(NO_BOUND, |doc| doc.row.ordinal);
        if by_ehr {
            (self.ehr, version)
        } else {
            (version, 0)
        }
    }
}

impl DocumentRow {
    pub fn of(ordinal: u64, mut fields: Fields) -> Result<DocumentRow, StoreError> {
        let (kind, object_id, system) =
            (kind_of(fields.number()?)?, fields.text()?, fields.text()?);
        let number = u32::try_from(fields.number()?).map_err(|_| unexpected())?;
        let time_committed = fields.text()?;
        let row = DocRow {
            kind,
            object_id,
            number,
            ordinal,
            latest: fields.flag()?,
            deleted: fields.flag()?,
        };
        let (layouts, checksum) = (fields.numbers()?, fields.text()?);
        Ok(DocumentRow {
            row,
            system,
            time_committed,
            layouts,
            checksum,
            chunks: fields.number()?,
            text: fields.text()?,
        })
    }

    pub fn uid(&self) -> String {
        join_uid(&self.row.object_id, &self.system, self.row.number)
    }
}
