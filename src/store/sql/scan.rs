//! Scans: pages of rows, pruned by profile, assembled into batches.
//!
//! A scan reads the repository as it was when the scan began. It leaves out versions that are
//! committed meanwhile. The versions that those supersede still count as the latest ones.

mod gather;
mod listed;
mod page;
mod prefetch;
mod rows;
mod state;

use super::SqlRepository;
use super::catalog::{LoadedLayouts, MatchingProfiles};
use super::checksum::StoredDocument;
use super::read::known_texts;
use super::segments::{CopiedRows, KnownChanges, NamedEhrs, SegmentScan, Segments, is_joined};
use super::value::{Answers, Fields, Row, Sql, Statement, json_list, unexpected};
use crate::document::Batch;
use crate::store::repository::{ScanPart, Sink, StoreError};
use crate::store::scan::{Scan, Snapshot};
use crate::store::sink::{ScanReads, send};
use aqlite_rm::order;
pub(super) use gather::{GatherBounds, GatheredBatch};
use page::{
    BY_EHR, BY_PROFILE, LISTED, NEW_OF_EHRS, OF_EHR, OF_EHRS, PAGE_ROWS, PageBounds, PageSize, page,
};
use prefetch::{PagePrefetch, PrefetchedPage};
use rows::{DocumentRow, ScanPage, ScanRow};
use state::{EhrState, NTH_OF_EHR, newest_of_ehr, state_of_ehr};
pub(super) use state::{NEWEST, newest_of, removed, state_of};
use std::collections::HashMap;
use std::rc::Rc;

/// Bytes of stored text between pauses while documents are unpacked.
const PAUSE_BYTES: u64 = 1 << 20;
/// Bytes of memory for each byte of stored text while its document is read and unpacked, estimated:
/// the response of the database, its values, the joined text, the document.
const MEMORY_PER_BYTE: u64 = 4;
/// Higher than every id.
const NO_BOUND: u64 = 1 << 52;

/// A batch under construction: pages are added until it can be sent.
#[derive(Default)]
struct BatchBuilder {
    batch: Batch,
    /// The numbers of its EHRs in the batch, by their ids.
    numbers: HashMap<u64, u32>,
}

impl BatchBuilder {
    /// Returns an estimate of the bytes of memory of the batch and of rows while they are added.
    fn bytes_with(&self, rows: &[ScanRow]) -> usize {
        let read: u64 = rows.iter().map(|row| row.size).sum();
        let bytes = MEMORY_PER_BYTE.saturating_mul(read);
        let held = (self.batch.bytes() as u64).saturating_add(bytes);
        usize::try_from(held).unwrap_or(usize::MAX)
    }
}

/// The reads of segments in the first batch of a scan.
struct SegmentReads<'s> {
    segments: Rc<Segments>,
    source: CopiedRows,
    /// The changes to which the rows of the batch add later ones.
    known: KnownChanges,
    /// The EHRs that the scan names.
    named: Option<NamedEhrs<'s>>,
    /// The first page of rows behind the segments.
    prefetch: Option<PagePrefetch<'s>>,
}

impl<S: Sql> SqlRepository<S> {
    pub(super) async fn send(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        match scan.ehr() {
            Some(ehr_id) => self.send_ehr(scan, ehr_id, sink).await,
            None => self.send_many(scan, ScanPart::ALL, sink).await,
        }
    }

    /// Scans one EHR. Makes a single round trip if its profiles and layouts are known, it fits into
    /// a page, and the newest state is requested.
    async fn send_ehr(
        &self,
        scan: &Scan,
        ehr_id: &str,
        sink: Sink<'_>,
    ) -> Result<Snapshot, StoreError> {
        let mut known = None;
        if let Some(requested) = scan.snapshot {
            let requested = self.state_of_snapshot(scan, ehr_id, requested).await?;
            // The snapshot was taken before the EHR existed.
            if requested.state.version == 0 {
                return Ok(requested.state);
            }
            known = Some(requested);
        }
        let mut page_bounds = PageBounds::between(0, NO_BOUND);
        let mut builder = BatchBuilder::default();
        loop {
            let read = self.read_page_of_ehr(scan, ehr_id, &page_bounds, known);
            let (of_ehr, page) = read.await?;
            known = Some(of_ehr);
            let (is_cut, open) = (page.is_cut, page_bounds.last.ehr);
            if let Some(last) = page.end() {
                page_bounds.after = last.version;
                page_bounds.last = last;
            }
            if !self.take(&mut builder, page, scan, open, sink).await? || !is_cut {
                return Ok(of_ehr.state);
            }
            sink.pause().await;
        }
    }

    /// Reads a page of one EHR, and its state if that is not known.
    async fn read_page_of_ehr(
        &self,
        scan: &Scan,
        ehr_id: &str,
        page_bounds: &PageBounds,
        known: Option<EhrState>,
    ) -> Result<(EhrState, ScanPage), StoreError> {
        // Again for each page: the page before may have brought new profiles.
        let matching = self.catalog.matching(scan);
        let newest = known.map_or(NO_BOUND, |known| known.newest);
        let bounds = (newest, &PageSize::ALL);
        let page = page(OF_EHR, scan, &matching, page_bounds, bounds, Some(ehr_id));
        let mut batch = vec![self.catalog.read_new_profiles()];
        if known.is_none() {
            batch.push(newest_of_ehr(ehr_id));
        }
        batch.push(page);
        let mut answers = self.batch(batch).await?;
        if !self.catalog.add_new_profiles(answers.next()?)? {
            // Once: the database has the state that was just read.
            return Box::pin(self.read_page_of_ehr(scan, ehr_id, page_bounds, known)).await;
        }
        let of_ehr = match known {
            Some(known) => known,
            None => state_of_ehr(scan, answers.next()?)?,
        };
        let page = ScanPage::of(answers.next()?, PAGE_ROWS)?;
        page.check(page_bounds, false)?;
        Ok((of_ehr, page))
    }

    /// Returns the state of one EHR in a snapshot.
    async fn state_of_snapshot(
        &self,
        scan: &Scan,
        ehr_id: &str,
        requested: Snapshot,
    ) -> Result<EhrState, StoreError> {
        let nth = Statement::new(NTH_OF_EHR)
            .bind(ehr_id)
            .bind(requested.version);
        let mut answers = self.batch(vec![newest_of_ehr(ehr_id), nth]).await?;
        let EhrState { state, .. } = state_of_ehr(scan, answers.next()?)?;
        if state.version == 0 {
            let newest = NO_BOUND;
            return Ok(EhrState { state, newest });
        }
        let mut fields = Fields::of_only(answers.next()?)?;
        let (newest, is_withdrawn) = (fields.number()?, fields.flag()?);
        if is_withdrawn && !scan.unqueryable {
            return Err(StoreError::SnapshotGone);
        }
        Ok(EhrState { state, newest })
    }

    /// Scans the EHRs that the scan names, or else all EHRs, or a part of their documents. Reads
    /// segments where they serve the scan, and rows otherwise.
    pub(super) async fn send_many(
        &self,
        scan: &Scan,
        part: ScanPart,
        sink: Sink<'_>,
    ) -> Result<Snapshot, StoreError> {
        let mut batch = vec![
            self.catalog.read_new_profiles(),
            Statement::new(NEWEST),
            removed(scan),
        ];
        let reads = self.segment_reads((scan, part), &mut batch, sink);
        let mut answers = self.batch(batch).await?;
        if !self.catalog.add_new_profiles(answers.next()?)? {
            // Once: the database has the state that was just read.
            return Box::pin(self.send_many(scan, part, sink)).await;
        }
        let newest = newest_of(answers.next()?)?;
        let state = state_of(scan, newest, answers.next()?)?;
        let matching = self.catalog.matching(scan);
        if matching.profiles.is_empty() && !scan.empty_ehrs {
            return Ok(state);
        }
        let mut rows = RowScan::of((scan, part), matching, state);
        let (mut held, mut prefetch) = (None, None);
        if let Some(reads) = reads {
            let opening = self.open_first(reads, answers, newest, &mut rows, sink);
            (held, prefetch) = opening.await?;
        }
        self.send_opened(held, &mut rows, prefetch, sink).await?;
        sink.observe(&rows.reads);
        Ok(state)
    }

    /// Adds the statements that read the segments of a scan to its first batch; `None` if no
    /// segments serve the scan.
    fn segment_reads<'s>(
        &self,
        (scan, part): (&'s Scan, ScanPart),
        batch: &mut Vec<Statement>,
        sink: Sink<'_>,
    ) -> Option<SegmentReads<'s>> {
        let (segments, source) = self.segments_for(scan, sink)?;
        let (statements, known) = segments.statements(source, self.catalog.breaks());
        batch.extend(statements);
        // The state of a part is that of its division, which is the newest in nearly all cases.
        let requested = scan.snapshot.filter(|_| part == ScanPart::ALL);
        let past = requested.map(|requested| segments.past_statements(requested));
        batch.extend(past.into_iter().flatten());
        let named = NamedEhrs::of(scan);
        batch.extend(named.as_ref().map(NamedEhrs::statement));
        let covered_to = segments.covered_to(source).filter(|_| !is_joined(scan));
        let prefetch =
            covered_to.and_then(|after| PagePrefetch::of(scan, self.catalog.matching(scan), after));
        batch.extend(prefetch.as_ref().map(PagePrefetch::statement));
        Some(SegmentReads {
            segments,
            source,
            known,
            named,
            prefetch,
        })
    }

    /// Opens the segments of a scan by the answers to its first batch. Returns no segments if rows
    /// are read instead. Returns the page that was prefetched, too.
    async fn open_first<'s>(
        &self,
        reads: SegmentReads<'s>,
        mut answers: Answers,
        newest: Snapshot,
        rows: &mut RowScan<'_>,
        sink: Sink<'_>,
    ) -> Result<
        (
            Option<(Rc<Segments>, SegmentScan)>,
            Option<PagePrefetch<'s>>,
        ),
        StoreError,
    > {
        let SegmentReads {
            segments,
            source,
            known,
            named,
            mut prefetch,
        } = reads;
        let of_segments = [answers.next()?, answers.next()?, answers.next()?];
        let opened = (of_segments, known);
        let opened = self.open_segments(&segments, (source, rows.part), newest, opened);
        let mut opened = opened.await?;
        let is_past = rows.state != newest;
        let changes = match rows.scan.snapshot {
            Some(_) if rows.part == ScanPart::ALL => Some([answers.next()?, answers.next()?]),
            Some(requested) if is_past => {
                let statements = segments.past_statements(requested);
                let mut later = self.batch(statements.into()).await?;
                Some([later.next()?, later.next()?])
            }
            _ => None,
        };
        if let Some(changes) = changes.filter(|_| is_past) {
            segments.in_past(&mut opened, (rows.scan, rows.state), changes)?;
        }
        let opened = match named {
            None => Some(opened),
            Some(named) => restricted(opened, named, answers.next()?, rows, sink)?,
        };
        if let Some(prefetch) = &mut prefetch {
            prefetch.read(answers.next()?)?;
        }
        Ok((opened.map(|opened| (segments, opened)), prefetch))
    }

    /// Sends segments, if there are any, and the rows behind them.
    async fn send_opened(
        &self,
        segments: Option<(Rc<Segments>, SegmentScan)>,
        rows: &mut RowScan<'_>,
        prefetch: Option<PagePrefetch<'_>>,
        sink: Sink<'_>,
    ) -> Result<(), StoreError> {
        let mut after = rows.part.after;
        if let Some((segments, mut held)) = segments {
            let sent = if is_joined(rows.scan) {
                let read = (rows.state, &mut rows.reads);
                self.send_joined(&segments, &mut held, (rows.scan, read), sink)
                    .await
            } else {
                self.send_segments(&segments, &mut held, rows, sink).await
            };
            held.count(&mut rows.reads);
            match sent? {
                Some(covered) => after = covered,
                None => return Ok(()),
            }
        }
        // If no segment was sent, the documents of named EHRs are read EHR by EHR.
        if after == rows.part.after {
            rows.read_ids_of(None);
        }
        rows.prefetch = prefetch.and_then(|prefetch| prefetch.page(after, &rows.matching));
        let end = rows.end();
        self.send_rows(rows, (after, end), sink).await.map(drop)
    }

    /// Sends segments, and the rows between them, in the order of their ids. Returns the last id
    /// that was sent, the one before the part if all must be sent as rows; `None` if the sink wants
    /// no more.
    async fn send_segments(
        &self,
        segments: &Segments,
        held: &mut SegmentScan,
        rows: &mut RowScan<'_>,
        sink: Sink<'_>,
    ) -> Result<Option<u64>, StoreError> {
        let wants_more = segments.send(held, sink).await;
        let begin = rows.part.after;
        if let Some(covered) = held.covered(begin) {
            return Ok(wants_more.then_some(covered));
        }
        // There are rows between the segments. The first pass has loaded the parts of the segments,
        // and the second one sends segments and rows in order. So these rows are read once, and not
        // again after each loading of parts.
        if !sink.restart() {
            return Ok(None);
        }
        let mut after = begin;
        for number in 0..held.len() {
            let (first, last) = held.range(number).ok_or_else(unexpected)?;
            if !self.send_rows(rows, (after, first - 1), sink).await? {
                return Ok(None);
            }
            match segments.send_one(held, number, sink).await {
                Some(true) => after = last,
                Some(false) => return Ok(None),
                // Because of the rows between the segments, the query needs a part that the first
                // pass did not load: all is sent again as rows.
                None => return Ok(sink.restart().then_some(begin)),
            }
        }
        Ok(Some(after))
    }

    /// Sends the rows with ids behind `after` and up to `end`, page by page. If named EHRs are read
    /// one by one, both are positions in the list of these EHRs. Returns whether the sink wants
    /// more.
    async fn send_rows(
        &self,
        rows: &mut RowScan<'_>,
        (mut after, end): (u64, u64),
        sink: Sink<'_>,
    ) -> Result<bool, StoreError> {
        while after < end {
            let prefetch = rows.prefetch.take();
            // A page that was prefetched ends at the id up to which it was requested. The size of
            // pages may have changed since, and with another end, rows would be sent twice or not
            // at all.
            let range_end = prefetch
                .as_ref()
                .map_or(after + rows.size.range, |p| p.until);
            let (range, page) = ((after, range_end.min(end)), prefetch.map(|p| p.page));
            match self.send_range(rows, range, page, sink).await? {
                Some(reached) => after = reached,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Sends rows of a range; `first` is its first page, if it was read already. Returns the last
    /// id that was sent; `None` if the sink wants no more.
    async fn send_range(
        &self,
        rows: &mut RowScan<'_>,
        (after, until): (u64, u64),
        mut first: Option<ScanPage>,
        sink: Sink<'_>,
    ) -> Result<Option<u64>, StoreError> {
        let (scan, state, by_ehr) = (rows.scan, rows.state, rows.by_ehr);
        let named = rows.named(after, until)?;
        let mut page_bounds = PageBounds::between(after, until);
        // The list selects the EHRs, so the page needs no bound on their numbers.
        if named.is_some() && by_ehr {
            page_bounds = PageBounds::between(0, state.ehr);
        }
        let (mut builder, mut reached) = (BatchBuilder::default(), until);
        let (mut found, mut bytes) = (0, 0);
        loop {
            let page = match first.take() {
                Some(page) => page,
                None => {
                    let read = self.read_page(rows, &page_bounds, named.as_deref(), sink);
                    read.await?
                }
            };
            page.check(&page_bounds, by_ehr)?;
            let (is_cut, open, page_end) = (page.is_cut, page_bounds.last.ehr, page.end());
            found += page.rows.len() as u64;
            rows.reads.pages += 1;
            rows.reads.rows += page.rows.len() as u64;
            bytes += page.bytes();
            rows.size.learn_length(found, bytes);
            if !self.take(&mut builder, page, scan, open, sink).await? {
                return Ok(None);
            }
            match page_end.filter(|_| is_cut) {
                Some(last) if by_ehr => page_bounds.continue_after(last),
                Some(last) => {
                    reached = last.version;
                    break;
                }
                None => break,
            }
        }
        rows.size.learn(found, bytes, reached - after, by_ehr);
        Ok(Some(reached))
    }

    /// Reads a page, after a pause if it is not the first page of the scan.
    async fn read_page(
        &self,
        rows: &mut RowScan<'_>,
        page_bounds: &PageBounds,
        named: Option<&str>,
        sink: Sink<'_>,
    ) -> Result<ScanPage, StoreError> {
        // A database on the thread of the host, as in workerd, answers before other requests
        // continue, so pause first.
        if std::mem::replace(&mut rows.is_begun, true) {
            sink.pause().await;
        }
        let bounds = (rows.state.version, &rows.size);
        let (query, scan) = (rows.query, rows.scan);
        let statement = page(query, scan, &rows.matching, page_bounds, bounds, named);
        ScanPage::of(self.rows(statement).await?, rows.size.rows)
    }

    /// Adds a page to a batch, and sends the complete EHRs. Returns false if the sink needs no
    /// more. `open` is the last EHR of the page before.
    async fn take(
        &self,
        builder: &mut BatchBuilder,
        page: ScanPage,
        scan: &Scan,
        open: u64,
        sink: Sink<'_>,
    ) -> Result<bool, StoreError> {
        let last = page.rows.last().map_or(0, |row| row.ehr);
        let keeps = page.is_cut && scan.whole_ehrs;
        let mut rows = page.rows;
        // The last EHR of a cut page may continue on the next page, and must be sent in one batch.
        let complete = if keeps {
            rows.iter().take_while(|row| row.ehr != last).count()
        } else {
            rows.len()
        };
        let rest = rows.split_off(complete);
        if !self.add(builder, rows, scan, open, sink).await? {
            return Ok(false);
        }
        let is_open = keeps && last == open;
        let is_due = !is_open && !builder.numbers.is_empty();
        if is_due && !send(sink, &std::mem::take(builder).batch).await {
            return Ok(false);
        }
        self.add(builder, rest, scan, open, sink).await
    }

    /// Adds documents to a batch, with pauses. Returns false if the sink has no memory for
    /// them.
    async fn add(
        &self,
        builder: &mut BatchBuilder,
        rows: Vec<ScanRow>,
        scan: &Scan,
        open: u64,
        sink: Sink<'_>,
    ) -> Result<bool, StoreError> {
        if rows.is_empty() {
            return Ok(true);
        }
        if !sink.admit(builder.bytes_with(&rows)) {
            return Ok(false);
        }
        let docs = || rows.iter().filter_map(|row| row.doc.as_ref());
        let layouts = docs().flat_map(|doc| &doc.layouts).copied();
        let layouts = self.load(&order::distinct(layouts)).await?;
        let mut rest = self
            .read_document_chunks(docs().filter(|d| d.chunks > 0).map(DocumentRow::uid))
            .await?;
        let mut unpacked = 0;
        for ScanRow { ehr, row, doc, .. } in rows {
            // An EHR without further documents, which the page before has already added.
            if doc.is_none() && (!scan.empty_ehrs || ehr == open) {
                continue;
            }
            let BatchBuilder { batch, numbers } = &mut *builder;
            let number = *numbers.entry(ehr).or_insert_with(|| batch.add_ehr(row));
            let Some(mut doc) = doc else { continue };
            if doc.chunks > 0 {
                // If chunks are missing, the checksum of the document does not match.
                let chunks = rest.remove(&format!("v/{}", doc.uid()));
                doc.text.push_str(&chunks.unwrap_or_default());
            }
            unpacked += doc.text.len() as u64;
            add_document(batch, number, doc, &layouts)?;
            if unpacked >= PAUSE_BYTES {
                unpacked = 0;
                sink.pause().await;
            }
        }
        Ok(true)
    }
}

/// Unpacks a document and adds it to the batch that has its EHR under a number.
fn add_document(
    batch: &mut Batch,
    ehr: u32,
    doc: DocumentRow,
    layouts: &LoadedLayouts,
) -> Result<(), StoreError> {
    let uid = doc.uid();
    let stored = StoredDocument {
        owner: batch.ehr_id(ehr).ok_or_else(unexpected)?,
        known: &known_texts(&uid, &doc.time_committed),
        text: &doc.text,
    };
    let packed = layouts.unpack(stored, &doc.layouts, Some(&doc.checksum))?;
    batch.add(ehr, doc.row, &packed);
    Ok(())
}

/// Restricts segments to the EHRs that a scan names, and its rows to those in no segment. `None` if
/// reading rows costs less, or if the sink takes no segments of named EHRs.
fn restricted(
    mut opened: SegmentScan,
    mut named: NamedEhrs<'_>,
    numbers: Vec<Row>,
    rows: &mut RowScan<'_>,
    sink: Sink<'_>,
) -> Result<Option<SegmentScan>, StoreError> {
    named.read(numbers)?;
    if !named.prefers(&opened, rows.state) || !sink.receive_named_ehrs(&mut named.existing()) {
        return Ok(None);
    }
    named.restrict(&mut opened);
    rows.read_ids_of(Some(named.list));
    Ok(Some(opened))
}

/// Returns whether the rows of a scan are read EHR by EHR, rather than by the ids of versions.
fn is_by_ehr(scan: &Scan) -> bool {
    scan.ehrs.is_some() || scan.whole_ehrs || scan.empty_ehrs
}

/// Returns the query of the pages of a scan that names no EHR.
fn population_query(by_ehr: bool) -> &'static str {
    if by_ehr { BY_EHR } else { BY_PROFILE }
}

/// A scan of rows, with the size of its next page.
struct RowScan<'s> {
    scan: &'s Scan,
    /// The part of the documents that is read.
    part: ScanPart,
    matching: MatchingProfiles,
    query: &'static str,
    state: Snapshot,
    by_ehr: bool,
    /// The named EHRs as a list, if their documents are found by the ids of versions.
    list: Option<String>,
    size: PageSize,
    is_begun: bool,
    /// The first page of the next range, if it was read already.
    prefetch: Option<PrefetchedPage>,
    /// The counts of what was read.
    reads: ScanReads,
}

impl<'s> RowScan<'s> {
    fn of(
        (scan, part): (&'s Scan, ScanPart),
        matching: MatchingProfiles,
        state: Snapshot,
    ) -> RowScan<'s> {
        let by_ehr = is_by_ehr(scan);
        RowScan {
            scan,
            part,
            matching,
            query: if scan.ehrs.is_some() {
                OF_EHRS
            } else {
                population_query(by_ehr)
            },
            state,
            by_ehr,
            list: None,
            size: PageSize::first(by_ehr),
            is_begun: false,
            prefetch: None,
            reads: ScanReads::default(),
        }
    }

    /// Makes a scan of named EHRs read its rows by ranges of ids of versions if `list` has the
    /// EHRs, and EHR by EHR if not. Changes nothing for a scan that names no EHRs.
    fn read_ids_of(&mut self, list: Option<String>) {
        if self.scan.ehrs.is_some() {
            self.by_ehr = list.is_none();
            self.query = if self.by_ehr { OF_EHRS } else { NEW_OF_EHRS };
            self.size = PageSize::first(self.by_ehr);
            self.list = list;
        }
    }

    /// Returns the last id of the scan; the number of named EHRs if they are read one by one.
    fn end(&self) -> u64 {
        match &self.scan.ehrs {
            Some(ehrs) if self.by_ehr => ehrs.len() as u64,
            None if self.by_ehr => self.state.ehr,
            _ => self.state.version.min(self.part.until),
        }
    }

    /// Returns the named EHRs of a page as a list in JSON; `None` for a scan that names none.
    fn named(&self, after: u64, until: u64) -> Result<Option<String>, StoreError> {
        let Some(ehrs) = self.scan.ehrs.as_ref().filter(|_| self.by_ehr) else {
            return Ok(self.list.clone());
        };
        let named = ehrs.get(after as usize..until as usize);
        Ok(Some(json_list(named.ok_or_else(unexpected)?)))
    }
}
