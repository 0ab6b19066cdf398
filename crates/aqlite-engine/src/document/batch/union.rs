//! Unions: several batches that are read as one, so that rows can join documents of different
//! batches.
//!
//! The documents of an EHR are in many segments, in commit order. A union lists them by EHR. It
//! copies no table, column or text: tables keep their numbers, which are unique among the batches.
//! A read of an absent part wants the part in the batch that it belongs to.

use super::{Batch, Doc, Fragment, Table};
use aqlite_rm::class::Cls;
use aqlite_rm::order;
use std::rc::Rc;

/// The invariant that does not hold if batches cannot be united.
const UNFIT: &str = "batches of a union do not fit together";

/// The number of an EHR that is not in the union.
const NONE: u32 = u32::MAX;

/// A batch with its EHRs, from which a union is created.
pub struct UnionPart<'e> {
    /// The batch.
    pub batch: Rc<Batch>,
    /// For each EHR of the batch its number in the repository.
    pub ehrs: &'e [u64],
}

/// The batches of a union.
#[derive(Debug)]
pub(in crate::document) struct Union {
    /// The batches in commit order.
    parts: Vec<UnionMember>,
    /// The number of the first table of each batch, ascending, with the number of the batch.
    tables: Vec<(u32, u32)>,
    /// The number of documents.
    len: u32,
    /// For each EHR the end of its documents in `documents`.
    ends: Vec<u32>,
    /// The documents of all EHRs, EHR by EHR.
    documents: Vec<u32>,
}

#[derive(Debug)]
struct UnionMember {
    batch: Rc<Batch>,
    /// The number in the union of its first document.
    first: u32,
    /// For each EHR of the batch its number in the union, or [`NONE`].
    ehrs: Vec<u32>,
}

impl Batch {
    /// Unites batches of successive ranges of commits. EHRs are in the order of their numbers in
    /// the repository, and EHRs with numbers above `newest` are left out. Only the latest versions
    /// of objects are listed by EHR, without deletions.
    ///
    /// # Errors
    /// If a batch has another number of EHRs than its list, is itself a union, or has the number of
    /// a table of another batch.
    pub fn union(parts: &[UnionPart<'_>], newest: u64) -> Result<Batch, &'static str> {
        let fits = |part: &UnionPart<'_>| {
            part.batch.united.is_none() && part.ehrs.len() == part.batch.ehrs.len()
        };
        if !parts.iter().all(fits) {
            return Err(UNFIT);
        }
        let numbers = UnionEhrs::of(parts, newest)?;
        let mut batch = Batch {
            ehrs: vec![None; numbers.len],
            ehr_fragments: vec![Fragment::NONE; numbers.len],
            is_late: parts.iter().any(|part| part.batch.is_late),
            schema_id: super::new_schema_id(),
            ..Batch::default()
        };
        let mut first = 0u32;
        let mut united = Vec::with_capacity(parts.len());
        for part in parts {
            let ehrs: Vec<u32> = part.ehrs.iter().map(|id| numbers.get(*id)).collect();
            batch.add_ehrs_of(&part.batch, &ehrs).ok_or(UNFIT)?;
            let next = u32::try_from(part.batch.len()).ok();
            let next = next.and_then(|documents| first.checked_add(documents));
            united.push(UnionMember {
                batch: Rc::clone(&part.batch),
                first,
                ehrs,
            });
            first = next.ok_or(UNFIT)?;
        }
        let tables = first_tables(&united).ok_or(UNFIT)?;
        let (ends, documents) = by_ehr(&united, numbers.len).ok_or(UNFIT)?;
        batch.united = Some(Box::new(Union {
            parts: united,
            tables,
            len: first,
            ends,
            documents,
        }));
        Ok(batch)
    }

    /// Adds the EHRs of a batch; `numbers` are their numbers in the union.
    fn add_ehrs_of(&mut self, part: &Batch, numbers: &[u32]) -> Option<()> {
        let ehrs = part.ehrs.iter().zip(&part.ehr_fragments).zip(numbers);
        for ((state, fragment), number) in ehrs.filter(|(_, number)| **number != NONE) {
            let own = self.ehrs.get_mut(*number as usize)?;
            // An EHR is left out of population queries if one batch leaves it out.
            *own = match (*own, *state) {
                (Some(false), _) => Some(false),
                (_, state) => state,
            };
            *self.ehr_fragments.get_mut(*number as usize)? = *fragment;
        }
        Some(())
    }

    /// Returns whether the batch is a union of others.
    pub fn is_union(&self) -> bool {
        self.united.is_some()
    }

    /// Returns the identity of the documents of a union and of their numbers; `None` for any other
    /// batch.
    pub fn united_ranges(&self) -> Option<Ranges> {
        let union = self.united.as_deref()?;
        let ranges = union.parts.iter().map(|part| {
            let ordinal = |document: u32| part.batch.docs.ordinal(document);
            let documents = part.batch.docs.len() as u32;
            let last = documents.checked_sub(1).and_then(ordinal);
            PartRange {
                first: ordinal(0),
                last,
                documents,
            }
        });
        Some(Ranges {
            of_parts: ranges.collect(),
            ehrs: self.ehrs.len(),
        })
    }
}

/// The identity of the documents of a union. Two unions of one state of a repository have the same
/// documents under the same numbers if their identities are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    of_parts: Vec<PartRange>,
    ehrs: usize,
}

/// The identity of the documents of one batch of a union.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PartRange {
    /// The ordinal of the first document; `None` if the batch has no documents.
    first: Option<u64>,
    /// The ordinal of the last document; `None` if the batch has no documents.
    last: Option<u64>,
    /// The number of documents.
    documents: u32,
}

/// The numbers of EHRs in a union by their numbers in the repository, which are dense.
struct UnionEhrs {
    numbers: Vec<u32>,
    len: usize,
}

impl UnionEhrs {
    fn of(parts: &[UnionPart<'_>], newest: u64) -> Result<UnionEhrs, &'static str> {
        let greatest = parts.iter().flat_map(|part| part.ehrs).max();
        let greatest = greatest.copied().unwrap_or(0).min(newest);
        let mut numbers = vec![NONE; usize::try_from(greatest).map_err(|_| UNFIT)? + 1];
        for id in parts.iter().flat_map(|part| part.ehrs) {
            let number = numbers.get_mut(usize::try_from(*id).unwrap_or(usize::MAX));
            number.into_iter().for_each(|number| *number = 0);
        }
        let mut len = 0;
        for number in numbers.iter_mut().filter(|number| **number != NONE) {
            *number = len;
            len += 1;
        }
        let len = len as usize;
        Ok(UnionEhrs { numbers, len })
    }

    fn get(&self, id: u64) -> u32 {
        let number = usize::try_from(id).ok().and_then(|id| self.numbers.get(id));
        number.copied().unwrap_or(NONE)
    }
}

/// Returns the first table of each batch; `None` if two batches share the number of a table.
fn first_tables(parts: &[UnionMember]) -> Option<Vec<(u32, u32)>> {
    let of = |(number, part): (u32, &UnionMember)| (part.batch.base, number);
    let mut tables: Vec<(u32, u32)> = (0..).zip(parts).map(of).collect();
    order::sort(&mut tables);
    let end_of = |(base, number): &(u32, u32)| {
        let part = parts.get(*number as usize)?;
        base.checked_add(part.batch.tables.len() as u32)
    };
    let follows = |pair: &[(u32, u32)]| match pair {
        [one, (next, _)] => end_of(one).is_some_and(|end| end <= *next),
        _ => true,
    };
    tables.windows(2).all(follows).then_some(tables)
}

/// Returns for each EHR the end of its documents, and all documents: the latest versions that are
/// not deleted.
fn by_ehr(parts: &[UnionMember], ehrs: usize) -> Option<(Vec<u32>, Vec<u32>)> {
    let current = || {
        parts.iter().flat_map(|part| {
            let documents = 0..part.batch.docs.len() as u32;
            let current = documents.filter(|document| part.batch.docs.is_current(*document));
            current.filter_map(move |document| {
                let ehr = *part.ehrs.get(part.batch.docs.ehr(document)? as usize)?;
                (ehr != NONE).then_some((ehr, part.first + document))
            })
        })
    };
    // A counting sort: first the number of documents of each EHR, then the position of each
    // document.
    let mut ends = vec![0u32; ehrs];
    for (ehr, _) in current() {
        *ends.get_mut(ehr as usize)? += 1;
    }
    let mut total = 0;
    for end in &mut ends {
        let start = total;
        total += *end;
        *end = start;
    }
    let mut documents = vec![0; total as usize];
    for (ehr, document) in current() {
        let end = ends.get_mut(ehr as usize)?;
        *documents.get_mut(*end as usize)? = document;
        *end += 1;
    }
    Some((ends, documents))
}

impl Union {
    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn broken(&self) -> Option<&'static str> {
        self.parts.iter().find_map(|part| part.batch.broken())
    }

    pub fn bytes(&self) -> usize {
        let batches: usize = self.parts.iter().map(|part| part.batch.bytes()).sum();
        let numbers = self.parts.iter().map(|part| part.ehrs.len()).sum::<usize>();
        batches + (numbers + self.ends.len() + self.documents.len()) * size_of::<u32>()
    }

    pub fn tables(&self) -> impl Iterator<Item = (u32, &Table)> {
        self.parts.iter().flat_map(|part| part.batch.own_tables())
    }

    /// Returns the batch that has a table.
    pub fn part_of(&self, table: u32) -> Option<&Batch> {
        self.numbered(table).map(|part| &*part.batch)
    }

    fn numbered(&self, table: u32) -> Option<&UnionMember> {
        let behind = self.tables.partition_point(|(first, _)| *first <= table);
        let (_, number) = self.tables.get(behind.checked_sub(1)?)?;
        self.parts.get(*number as usize)
    }

    /// Returns the batch that has a document, and the number of the document in it.
    fn place_of(&self, document: u32) -> Option<(&UnionMember, u32)> {
        let behind = self.parts.partition_point(|part| part.first <= document);
        let part = self.parts.get(behind.checked_sub(1)?)?;
        Some((part, document - part.first))
    }

    pub fn doc(&self, document: u32) -> Option<Doc> {
        let (part, own) = self.place_of(document)?;
        let doc = part.batch.doc(own)?;
        let ehr = *part.ehrs.get(doc.ehr as usize)?;
        Some(Doc {
            document,
            ehr,
            ..doc
        })
    }

    pub fn find_object_id(&self, document: u32) -> Option<&str> {
        let (part, own) = self.place_of(document)?;
        part.batch.find_object_id(own)
    }

    pub fn ordinal_of(&self, document: u32) -> Option<u64> {
        let (part, own) = self.place_of(document)?;
        part.batch.docs.ordinal(own)
    }

    pub fn ehr_of(&self, document: u32) -> Option<u32> {
        let (part, own) = self.place_of(document)?;
        let ehr = *part.ehrs.get(part.batch.docs.ehr(own)? as usize)?;
        (ehr != NONE).then_some(ehr)
    }

    pub fn part(&self, number: usize) -> Option<(&Batch, u32)> {
        let part = self.parts.get(number)?;
        Some((&part.batch, part.first))
    }

    pub fn docs_of(&self, ehr: u32) -> &[u32] {
        let ehr = ehr as usize;
        let start = ehr.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(ehr).copied().unwrap_or(0) as usize;
        let range = start.copied().unwrap_or(0) as usize..end;
        self.documents.get(range).unwrap_or_default()
    }

    /// Returns the number in the union of the document or EHR that is `owner` in the part with a
    /// table.
    pub fn owner(&self, table: &Table, number: u32, owner: u32) -> Option<u32> {
        let part = self.numbered(number)?;
        if table.layout().class() == Cls::EHR {
            let ehr = part.ehrs.get(owner as usize).copied();
            return ehr.filter(|ehr| *ehr != NONE);
        }
        part.first.checked_add(owner)
    }
}
