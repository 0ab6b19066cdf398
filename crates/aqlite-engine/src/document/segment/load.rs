//! Loading of the structure, the child lists and the columns of a table into a batch of a segment.
//!
//! The checksum of a part detects damage of the stored bytes. The checks in this file detect parts
//! that do not fit together. Values of such parts would be read as absent ones, and results would be
//! wrong without an error.

use super::form::{StoredChildLists, StoredColumn, StoredStructure};
use super::{DAMAGED, decode_part};
use crate::document::Batch;
use crate::document::batch::{Structure, Table};
use aqlite_rm::class::Cls;
use std::sync::Arc;

/// Shares the loaded parts of a batch with another batch of the same segment.
pub fn share_parts(from: &Batch, to: &Batch) {
    for (old, table) in from.tables.iter().zip(&to.tables) {
        if let Some(structure) = old.structure.share() {
            // Hidden rows depend on the state of the batch, so they are computed again.
            table.hidden.get_or_init(|| hidden(to, table, &structure));
            table.structure.load(structure);
        }
        let lists = old.child_lists.share();
        lists
            .into_iter()
            .for_each(|part| table.child_lists.load(part));
        for (old, column) in old.columns.iter().zip(&table.columns) {
            old.share().into_iter().for_each(|part| column.load(part));
        }
    }
    let pages = from.dictionary.texts().pages().iter();
    for (old, page) in pages.zip(to.dictionary.texts().pages()) {
        old.share().into_iter().for_each(|part| page.load(part));
    }
    let versions = from.docs.versions.share();
    versions
        .into_iter()
        .for_each(|part| to.docs.versions.load(part));
    let data = from.docs.data.share();
    data.into_iter().for_each(|part| to.docs.data.load(part));
}

/// Loads the structure of a table.
///
/// # Errors
/// If the bytes are damaged, if a row belongs to a document or an EHR that does not exist, or if the
/// loaded columns or child lists have other numbers of values or lists.
pub(super) fn load_structure(
    batch: &Batch,
    table: &Table,
    bytes: &[u8],
) -> Result<(), &'static str> {
    let stored: StoredStructure = decode_part(bytes)?;
    let structure = stored.structure(table.len())?;
    let owners = match table.layout().class() {
        Cls::EHR => batch.ehrs.len(),
        _ => batch.docs.len(),
    };
    // A row of an unknown document would be hidden, and so be missing from every result.
    let has_owner = |doc: &u32| (*doc as usize) < owners;
    if !structure.docs.iter().all(has_owner) || !table.is_structure(&structure) {
        return Err(DAMAGED);
    }
    // Hidden rows are set first, because a loaded structure must never be read without them.
    let _ = table.hidden.set(hidden(batch, table, &structure));
    table.structure.load(Arc::new(structure));
    Ok(())
}

/// Loads the child lists of a table.
///
/// # Errors
/// If the bytes are damaged, if a list has a row that does not exist, or if the number of lists does
/// not fit the structure of the table.
pub(super) fn load_child_lists(
    batch: &Batch,
    table: &Table,
    bytes: &[u8],
) -> Result<(), &'static str> {
    let stored: StoredChildLists = decode_part(bytes)?;
    let lists = stored.lists(table.groups() as usize, batch.base)?;
    // The structure is compared with the child lists when it is loaded.
    let structure = table.structure.present();
    if structure.is_some_and(|structure| !table.has_child_lists(&lists, structure)) {
        return Err(DAMAGED);
    }
    table.child_lists.load(Arc::new(lists));
    Ok(())
}

/// Returns the rows of documents that population queries do not read. Rows of EHRs are never
/// hidden.
fn hidden(batch: &Batch, table: &Table, structure: &Structure) -> Vec<u32> {
    if table.layout().class() == Cls::EHR {
        return Vec::new();
    }
    let live = batch.docs.live();
    // `load_structure` has checked that each document exists.
    let is_live = |doc: &u32| live.get(*doc as usize) == Some(&true);
    let rows = (0..).zip(&structure.docs);
    rows.filter(|(_, doc)| !is_live(doc))
        .map(|(row, _)| row)
        .collect()
}

/// Loads a column of a table, given by the number of its leaf.
///
/// # Errors
/// If the bytes are damaged, if the column has a text that does not exist, or if the number of its
/// values does not fit the structure of the table.
pub(super) fn load_column(
    batch: &Batch,
    table: &Table,
    leaf: usize,
    bytes: &[u8],
) -> Result<(), &'static str> {
    let part = table.columns.get(leaf).ok_or(DAMAGED)?;
    let stored: StoredColumn = decode_part(bytes)?;
    let column = stored.column()?;
    let texts = batch.dictionary.len();
    let has_texts = column.text_ids().all(|id| (id as usize) < texts);
    let fits = match table.structure.present() {
        Some(structure) => table.values_of(leaf, structure) == Some(column.len()),
        // The structure is compared with the column when it is loaded.
        None => column.len() <= table.len(),
    };
    if !has_texts || !fits {
        return Err(DAMAGED);
    }
    part.load(Arc::new(column));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{SegmentState, encode_part};
    use super::*;
    use crate::document::batch::{ChildLists, RepeatedGroup};
    use crate::document::{EhrRow, Fragment, Segment};

    /// Returns the batch of a segment of one EHR, without its parts. Its only table has one row.
    fn batch_without_parts() -> Batch {
        let mut batch = Batch::new();
        batch.add_ehr(EhrRow {
            ehr_id: "e".into(),
            system_id: "s".into(),
            time_created: "2026-01-01T00:00:00Z".into(),
            is_queryable: true,
        });
        let encoded = batch.to_segment(&[1]).unwrap();
        let segment = Segment::read(&encoded.head).unwrap();
        segment.batch(&SegmentState::default()).unwrap()
    }

    fn texts(ids: &[u32]) -> Vec<u8> {
        encode_part(&StoredColumn::Text(ids.to_vec()))
    }

    fn structure(owner: u32) -> Vec<u8> {
        encode_part(&StoredStructure::of(&Structure {
            docs: vec![owner],
            preorder: vec![0],
            parent_preorder: vec![0],
            bitmaps: Vec::new(),
        }))
    }

    #[test]
    fn column_with_an_unknown_text_is_refused() {
        let batch = batch_without_parts();
        let (known, table) = (batch.dictionary.len() as u32, &batch.tables[0]);
        assert!(load_column(&batch, table, 0, &texts(&[known])).is_err());
        assert!(table.columns[0].present().is_none());
        assert!(load_column(&batch, table, 0, &texts(&[known - 1])).is_ok());
    }

    #[test]
    fn column_that_does_not_fit_the_structure_is_refused() {
        let batch = batch_without_parts();
        let table = &batch.tables[0];
        assert!(load_column(&batch, table, 0, &texts(&[0, 0])).is_err());
        assert!(load_structure(&batch, table, &structure(0)).is_ok());
        assert!(load_column(&batch, table, 0, &texts(&[])).is_err());
        assert!(load_column(&batch, table, usize::MAX, &texts(&[0])).is_err());
        assert!(load_column(&batch, table, 0, &texts(&[0])).is_ok());
    }

    #[test]
    fn child_lists_that_do_not_fit_together_are_refused() {
        let batch = batch_without_parts();
        let table = &batch.tables[0];
        let lists = |groups: &[&[u32]]| {
            let group = |ends: &&[u32]| RepeatedGroup {
                ends: ends.to_vec(),
                rows: vec![Fragment { table: 0, row: 0 }; 2],
            };
            StoredChildLists::of(&ChildLists(groups.iter().map(group).collect()))
        };
        assert!(lists(&[&[1, 2]]).lists(1, 0).is_ok());
        for ends in [[2, 1].as_slice(), &[1], &[1, 3]] {
            assert!(lists(&[ends]).lists(1, 0).is_err(), "{ends:?}");
        }
        // An EHR has no repeated group.
        let one = encode_part(&lists(&[&[2]]));
        assert!(load_child_lists(&batch, table, &one).is_err());
        assert!(table.child_lists.present().is_none());
        assert!(load_child_lists(&batch, table, &encode_part(&lists(&[]))).is_ok());
    }

    #[test]
    fn structure_that_does_not_fit_a_column_is_refused() {
        let batch = batch_without_parts();
        let table = &batch.tables[0];
        assert!(
            load_structure(&batch, table, &structure(1)).is_err(),
            "an unknown EHR"
        );
        assert!(load_column(&batch, table, 0, &texts(&[])).is_ok());
        assert!(load_structure(&batch, table, &structure(0)).is_err());
        assert!(table.structure.present().is_none());
    }
}
