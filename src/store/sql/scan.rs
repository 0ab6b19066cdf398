//! Scans: pages of rows, pruned by profile, assembled into batches.
//!
//! A scan reads the repository as it was when the scan began. It leaves out versions that are
//! committed meanwhile. The versions that those supersede still count as the latest ones.

mod ahead;
mod listed;
mod rows;

use super::SqlRepository;
use super::catalog::MatchingProfiles;
use super::checksum::StoredDocument;
use super::list::size_of_version;
use super::read::known_texts;
use super::segments::{Known, NamedEhrs, SegmentScan, Segments, is_joined};
use super::value::{Fields, Row, Sql, Statement, json_list, unexpected};
use crate::document::{Batch, short_digest};
use crate::store::repository::{MAX_PAGE_BYTES, Sink, StoreError, state_to_read};
use crate::store::scan::{Scan, Snapshot};
use crate::store::sink::{ScanReads, send};
use ahead::Ahead;
use rows::{DocumentRow, ScanPage, ScanRow};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Maximum rows of a page.
const PAGE_ROWS: u64 = 1000;
/// The mean size of documents in bytes from which a population is read in smaller pages.
const LONG_DOCUMENTS: u64 = 50_000;
/// Bytes of such a page. A runtime of JavaScript releases texts of megabytes late, because it does
/// not keep them where it collects often.
const SMALL_PAGE_BYTES: u64 = 524_288;
/// Bytes of stored text between pauses while documents are unpacked.
const PAUSE_BYTES: u64 = 1 << 20;
/// Bytes of memory for each byte of stored text while its document is read and unpacked, estimated:
/// the response of the database, its values, the joined text, the document.
const MEMORY_PER_BYTE: u64 = 4;
/// Higher than every id.
const NO_BOUND: u64 = 1 << 52;

/// The newest state, in the fields of [`Snapshot`].
pub(super) const NEWEST: &str = "SELECT max((SELECT coalesce(max(id), 0) FROM version), (SELECT value FROM meta WHERE name = 'last_version')) AS version,
    (SELECT coalesce(max(id), 0) FROM ehr) AS ehr, (SELECT coalesce(max(id), 0) FROM removal) AS removals,
    (SELECT value FROM meta WHERE name = 'revision') AS revision";
/// Whether a deletion after the first `?1` removed a version up to `?2`, or an EHR that was
/// queryable in the state with the newest version `?2` and the newest EHR `?5` is not queryable now:
/// of the EHRs with the digests `?3` and the ids `?4`, or of any if NULL. `?6`: whether unqueryable
/// EHRs matter.
///
/// An EHR belongs to the state by its number or by a version, because both numbers come from a
/// client.
const REMOVED: &str =
    "SELECT EXISTS (SELECT 1 FROM removal r WHERE r.id > ?1 AND r.first_version <= ?2
      AND (?3 IS NULL OR r.ehr IS NULL OR r.ehr IN (SELECT value FROM json_each(?3))))
    OR (?6 AND EXISTS (SELECT 1 FROM queryable_before q CROSS JOIN ehr e ON e.id = q.ehr
      WHERE q.version > ?2 AND q.is_queryable AND NOT e.is_queryable
        AND NOT EXISTS (SELECT 1 FROM queryable_before f WHERE f.ehr = q.ehr AND f.version > ?2 AND f.version < q.version)
        AND (e.id <= ?5 OR EXISTS (SELECT 1 FROM version v WHERE v.ehr = e.id AND v.id <= ?2))
        AND (?4 IS NULL OR e.ehr_id IN (SELECT value FROM json_each(?4))))) AS removed";

/// The newest state of the EHR `?1` with the digest `?2`, and its newest version.
const NEWEST_OF_EHR: &str = "SELECT count(*) AS versions, (SELECT count(*) FROM removal WHERE ehr IS NULL OR ehr = ?2) AS removals,
    coalesce(max(v.id), 0) AS newest FROM version v JOIN ehr e ON e.id = v.ehr WHERE e.ehr_id = ?1";
/// The `?2`th version of an EHR, and whether the EHR was queryable then and is not now.
const NTH_OF_EHR: &str = "SELECT v.id, NOT e.is_queryable AND coalesce((SELECT q.is_queryable FROM queryable_before q
      WHERE q.ehr = e.id AND q.version > v.id ORDER BY q.version LIMIT 1), 0) AS withdrawn
    FROM version v JOIN ehr e ON e.id = v.ehr WHERE e.ehr_id = ?1 ORDER BY v.id LIMIT 1 OFFSET ?2 - 1";

/// Whether an EHR was queryable in the requested state.
macro_rules! queryable {
    () => {
        "coalesce((SELECT q.is_queryable FROM queryable_before q WHERE q.ehr = e.id AND q.version > ?6 ORDER BY q.version LIMIT 1), e.is_queryable)"
    };
}

/// `?1` matching profiles, `?2` the last known profile, `?3` all versions, `?4` after this id, `?5`
/// up to this id, `?6` the newest version of the scan, `?7` maximum rows, `?8` whether EHRs may be
/// unqueryable, `?9` the id of the EHR or the ids of some, `?10` maximum bytes, `?11` and `?12` an
/// EHR and the version in it after which the page begins.
///
/// The sizes of the documents limit a page: it has the first document, and those after it while the
/// total is within the maximum. `found` counts all rows of the inner query.
macro_rules! page {
    ($from:literal, $condition:literal, $rest:literal, $order:literal, $outer:literal) => {
        concat!(
            "SELECT p.found, p.size, e.id AS ehr, e.ehr_id, e.system_id, e.time_created, ",
            queryable!(),
            " OR ?8 AS is_queryable, v.id AS ordinal, v.kind, v.object, v.system, v.number, v.time_committed,
               v.successor IS NULL OR v.successor > ?6 AS latest, v.lifecycle = '523' AS deleted, v.shapes, v.digest, v.chunks, v.document
             FROM (SELECT ehr, id, size, sum(size) OVER (ORDER BY ", $order, " ROWS UNBOUNDED PRECEDING) AS total, count(*) OVER () AS found
               FROM (SELECT e.id AS ehr, v.id AS id, coalesce(",
            size_of_version!(),
            ", 0) AS size FROM ",
            $from,
            " AND (?3 OR ((v.successor IS NULL OR v.successor > ?6) AND v.lifecycle <> '523')) AND ",
            $condition,
            $rest,
            " AND ?11 >= 0 AND ?12 >= 0 AND (",
            queryable!(),
            " OR ?8) ORDER BY ", $order, " LIMIT ?7)) p
             CROSS JOIN ehr e ON e.id = p.ehr LEFT JOIN version v ON v.id = p.id
             WHERE p.total <= ?10 OR p.total = p.size ORDER BY ", $outer
        )
    };
}

/// The documents of one EHR.
const OF_EHR: &str = page!(
    "ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id > ?4 AND v.id <= ?6",
    "(v.profile > ?2 OR v.profile IN (SELECT value FROM json_each(?1)))",
    " WHERE e.ehr_id = ?9 AND e.id > 0",
    "id",
    "p.id"
);
/// Some EHRs with their documents.
const OF_EHRS: &str = page!(
    "json_each(?9) s CROSS JOIN ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id <= ?6 AND v.id > CASE WHEN e.id = ?11 THEN ?12 ELSE 0 END",
    "v.profile IN (SELECT value FROM json_each(?1))",
    " WHERE e.ehr_id = s.value AND e.id > ?4 AND e.id <= ?5",
    "ehr, id",
    "p.ehr, p.id"
);
/// EHRs of a range of ids with their documents.
const BY_EHR: &str = page!(
    "ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id <= ?6 AND v.id > CASE WHEN e.id = ?11 THEN ?12 ELSE 0 END",
    "v.profile IN (SELECT value FROM json_each(?1))",
    " WHERE e.id > ?4 AND e.id <= ?5",
    "ehr, id",
    "p.ehr, p.id"
);
/// Documents of a range of ids that belong to some EHRs.
const NEW_OF_EHRS: &str = page!(
    "version v CROSS JOIN ehr e WHERE v.id > ?4 AND v.id <= ?5 AND v.profile IN (SELECT value FROM json_each(?1))",
    "e.id = v.ehr",
    " AND e.id > 0 AND e.ehr_id IN (SELECT value FROM json_each(?9))",
    "id",
    "p.id"
);
/// Documents of a range of ids, selected by their profiles.
const BY_PROFILE: &str = page!(
    "json_each(?1) s CROSS JOIN version v CROSS JOIN ehr e WHERE v.profile = s.value AND v.id > ?4 AND v.id <= ?5",
    "e.id = v.ehr",
    " AND e.id > 0",
    "id",
    "p.id"
);
/// Documents of a list of ids.
const LISTED: &str = page!(
    "json_each(?9) s CROSS JOIN version v CROSS JOIN ehr e WHERE v.id = s.value AND v.id > ?4 AND v.id <= ?5",
    "v.profile IN (SELECT value FROM json_each(?1))",
    " AND e.id = v.ehr AND e.id > 0 AND (e.id, v.id) > (?11, ?12)",
    "ehr, id",
    "p.ehr, p.id"
);
/// The size of the next page, adapted to the rows and bytes of the last one.
struct PageSize {
    /// Ids in the range of the next page.
    range: u64,
    /// Most rows of the next page.
    rows: u64,
    /// Most bytes of its documents, unless a single one is larger.
    bytes: u64,
}

/// The bounds of a page.
struct PageBounds {
    /// The page begins after this id of an EHR or a version.
    after: u64,
    /// The page ends at this id.
    until: u64,
    /// The last EHR of the page before, and its last version there.
    open: (u64, u64),
}

/// A batch under construction: pages are added until it can be sent.
#[derive(Default)]
struct BatchBuilder {
    batch: Batch,
    /// The numbers of its EHRs in the batch, by their ids.
    numbers: HashMap<u64, u32>,
}

impl<S: Sql> SqlRepository<S> {
    pub(super) async fn send(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        match scan.ehr() {
            Some(ehr_id) => self.send_ehr(scan, ehr_id, sink).await,
            None => self.send_many(scan, sink).await,
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
        let (mut state, mut newest) = (None, NO_BOUND);
        if let Some(requested) = scan.snapshot {
            let (read, bound) = self.state_of_snapshot(scan, ehr_id, requested).await?;
            // The snapshot was taken before the EHR existed.
            if read.version == 0 {
                return Ok(read);
            }
            (state, newest) = (Some(read), bound);
        }
        let mut page_bounds = PageBounds {
            after: 0,
            until: NO_BOUND,
            open: (0, 0),
        };
        let mut builder = BatchBuilder::default();
        loop {
            // Again for each page: the page before may have brought new profiles.
            let matching = self.catalog.matching(scan);
            let bounds = (newest, &PageSize::ALL);
            let page = page(OF_EHR, scan, &matching, &page_bounds, bounds, Some(ehr_id));
            let mut batch = vec![self.catalog.read_new_profiles()];
            if state.is_none() {
                batch.push(newest_of_ehr(ehr_id));
            }
            batch.push(page);
            let mut answers = self.batch(batch).await?;
            self.catalog.add_new_profiles(answers.next()?)?;
            let read = if let Some(state) = state {
                state
            } else {
                let (read, bound) = state_of_ehr(scan, answers.next()?)?;
                newest = bound;
                read
            };
            state = Some(read);
            let page = ScanPage::of(answers.next()?, PAGE_ROWS)?;
            let (is_cut, open) = (page.is_cut, page_bounds.open.0);
            if let Some((ehr, version)) = page.end() {
                page_bounds.after = version;
                page_bounds.open = (ehr, version);
            }
            if !self.take(&mut builder, page, scan, open, sink).await? || !is_cut {
                return Ok(read);
            }
            sink.pause().await;
        }
    }

    /// Returns the state of one EHR in a snapshot, and the newest version in it.
    async fn state_of_snapshot(
        &self,
        scan: &Scan,
        ehr_id: &str,
        requested: Snapshot,
    ) -> Result<(Snapshot, u64), StoreError> {
        let nth = Statement::new(NTH_OF_EHR)
            .bind(ehr_id)
            .bind(requested.version);
        let mut answers = self.batch(vec![newest_of_ehr(ehr_id), nth]).await?;
        let (read, _) = state_of_ehr(scan, answers.next()?)?;
        if read.version == 0 {
            return Ok((read, NO_BOUND));
        }
        let mut fields = Fields::of_only(answers.next()?)?;
        let (bound, is_withdrawn) = (fields.number()?, fields.flag()?);
        if is_withdrawn && !scan.unqueryable {
            return Err(StoreError::SnapshotGone);
        }
        Ok((read, bound))
    }

    /// Scans the EHRs that the scan names, else all: by EHR if requested, else by document.
    async fn send_many(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        let segments = self.segments_for(scan, sink);
        let named = segments.as_ref().and_then(|_| NamedEhrs::of(scan));
        let mut batch = vec![
            self.catalog.read_new_profiles(),
            Statement::new(NEWEST),
            removed(scan),
        ];
        let mut known = Known::default();
        if let Some((segments, source)) = &segments {
            let statements;
            (statements, known) = segments.statements(*source);
            batch.extend(statements);
            let past = scan
                .snapshot
                .map(|requested| segments.past_statements(requested));
            batch.extend(past.into_iter().flatten());
        }
        batch.extend(named.as_ref().map(NamedEhrs::statement));
        let paged = segments.as_ref().filter(|_| !is_joined(scan));
        let reach = paged.and_then(|(s, source)| s.reach(*source));
        let mut ahead = reach.and_then(|after| Ahead::of(scan, self.catalog.matching(scan), after));
        batch.extend(ahead.as_ref().map(Ahead::statement));
        let mut answers = self.batch(batch).await?;
        self.catalog.add_new_profiles(answers.next()?)?;
        let newest = newest_of(answers.next()?)?;
        let state = state_of(scan, newest, answers.next()?)?;
        let matching = self.catalog.matching(scan);
        if matching.profiles.is_empty() && !scan.empty_ehrs {
            return Ok(state);
        }
        let mut rows = RowScan::of(scan, matching, state);
        let mut held = None;
        if let Some((segments, source)) = segments {
            let of_segments = [answers.next()?, answers.next()?, answers.next()?];
            let opened = self.open_segments(&segments, source, newest, (of_segments, known));
            let mut opened = opened.await?;
            if scan.snapshot.is_some() {
                let changes = [answers.next()?, answers.next()?];
                if state != newest {
                    segments.in_past(&mut opened, (scan, state), changes)?;
                }
            }
            let opened = match named {
                None => Some(opened),
                Some(named) => restricted(opened, named, answers.next()?, &mut rows, sink)?,
            };
            if let Some(ahead) = &mut ahead {
                ahead.read(answers.next()?)?;
            }
            held = opened.map(|opened| (segments, opened));
        }
        self.send_opened(held, &mut rows, ahead, sink).await?;
        sink.observe(&rows.reads);
        Ok(state)
    }

    /// Sends segments, if there are any, and the rows behind them.
    async fn send_opened(
        &self,
        segments: Option<(Rc<Segments>, SegmentScan)>,
        rows: &mut RowScan<'_>,
        ahead: Option<Ahead<'_>>,
        sink: Sink<'_>,
    ) -> Result<(), StoreError> {
        let mut after = 0;
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
        // Without a segment, documents of named EHRs are found by EHR.
        if after == 0 {
            rows.read_ids_of(None);
        }
        rows.ahead = ahead.and_then(|ahead| ahead.page(after, &rows.matching));
        let end = rows.end();
        self.send_rows(rows, (after, end), sink).await.map(drop)
    }

    /// Sends segments, and the rows that lie between them, in the order of their ids. Returns the
    /// last id that was sent; `None` if no more are wanted.
    async fn send_segments(
        &self,
        segments: &Segments,
        held: &mut SegmentScan,
        rows: &mut RowScan<'_>,
        sink: Sink<'_>,
    ) -> Result<Option<u64>, StoreError> {
        let goes_on = segments.send(held, sink).await;
        if let Some(covered) = held.covered() {
            return Ok(goes_on.then_some(covered));
        }
        // The first pass has loaded the parts. It sent no rows between the segments, so that it
        // need not read these again for each part.
        if !sink.restart() {
            return Ok(None);
        }
        let mut after = 0;
        for number in 0..held.len() {
            let (first, last) = held.range(number).ok_or_else(unexpected)?;
            if !self.send_rows(rows, (after, first - 1), sink).await? {
                return Ok(None);
            }
            match segments.send_one(held, number, sink).await {
                Some(true) => after = last,
                Some(false) => return Ok(None),
                // With the rows in between, the query needs a part that it did not need before.
                None => return Ok(sink.restart().then_some(0)),
            }
        }
        Ok(Some(after))
    }

    /// Sends the rows with ids in a range, page by page; of named EHRs those with such places in
    /// the list. Returns whether more are wanted.
    async fn send_rows(
        &self,
        rows: &mut RowScan<'_>,
        (mut after, end): (u64, u64),
        sink: Sink<'_>,
    ) -> Result<bool, StoreError> {
        let (scan, state, by_ehr) = (rows.scan, rows.state, rows.by_ehr);
        while after < end {
            let until = (after + rows.size.range).min(end);
            let named = rows.named(after, until)?;
            let mut page_bounds = PageBounds::between(after, until);
            // The list selects the EHRs, so the page needs no bound on their numbers.
            if named.is_some() && by_ehr {
                page_bounds = PageBounds::between(0, state.ehr);
            }
            let (mut builder, mut reached) = (BatchBuilder::default(), until);
            let (mut found, mut bytes) = (0, 0);
            loop {
                let page = match rows.ahead.take() {
                    Some(page) => page,
                    None => {
                        let read = self.read_page(rows, &page_bounds, named.as_deref(), sink);
                        read.await?
                    }
                };
                let (is_cut, open, page_end) = (page.is_cut, page_bounds.open.0, page.end());
                found += page.rows.len() as u64;
                rows.reads.pages += 1;
                rows.reads.rows += page.rows.len() as u64;
                bytes += page.bytes();
                rows.size.learn_length(found, bytes);
                if !self.take(&mut builder, page, scan, open, sink).await? {
                    return Ok(false);
                }
                match page_end.filter(|_| is_cut) {
                    Some((ehr, version)) if by_ehr => page_bounds.continue_after(ehr, version),
                    Some((_, version)) => {
                        reached = version;
                        break;
                    }
                    None => break,
                }
            }
            rows.size.learn(found, bytes, reached - after, by_ehr);
            after = reached;
        }
        Ok(true)
    }

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
        let read: u64 = rows.iter().map(|row| row.size).sum();
        let held =
            (builder.batch.bytes() as u64).saturating_add(MEMORY_PER_BYTE.saturating_mul(read));
        if !sink.admit(usize::try_from(held).unwrap_or(usize::MAX)) {
            return Ok(false);
        }
        let docs = || rows.iter().filter_map(|row| row.doc.as_ref());
        let layouts: BTreeSet<u64> = docs().flat_map(|doc| &doc.layouts).copied().collect();
        let layouts = self.load(&layouts).await?;
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
            let Some(doc) = doc else { continue };
            let uid = doc.uid();
            let mut text = doc.text;
            if doc.chunks > 0 {
                // If chunks are missing, the checksum of the document does not match.
                text.push_str(&rest.remove(&format!("v/{uid}")).unwrap_or_default());
            }
            unpacked += text.len() as u64;
            let owner = batch.ehr_id(number);
            let stored = StoredDocument {
                owner: owner.ok_or_else(unexpected)?,
                known: &known_texts(&uid, &doc.time_committed),
                text: &text,
            };
            let packed = layouts.unpack(stored, &doc.layouts, Some(&doc.checksum))?;
            batch.add(number, doc.row, &packed);
            if unpacked >= PAUSE_BYTES {
                unpacked = 0;
                sink.pause().await;
            }
        }
        Ok(true)
    }
}

/// Restricts segments to the EHRs that a scan names, and its rows to those beside the segments.
/// `None` if rows serve the scan better, or if the sink takes no segments of named EHRs.
fn restricted(
    mut opened: SegmentScan,
    mut named: NamedEhrs<'_>,
    numbers: Vec<Row>,
    rows: &mut RowScan<'_>,
    sink: Sink<'_>,
) -> Result<Option<SegmentScan>, StoreError> {
    named.read(numbers)?;
    if !named.prefers(&opened, rows.state) || !sink.meet(&mut named.existing()) {
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

/// The query of the pages of a scan that names no EHR.
fn population_query(by_ehr: bool) -> &'static str {
    if by_ehr { BY_EHR } else { BY_PROFILE }
}

/// A scan of rows, with the size of its next page.
struct RowScan<'s> {
    scan: &'s Scan,
    matching: MatchingProfiles,
    query: &'static str,
    state: Snapshot,
    by_ehr: bool,
    /// The named EHRs as a list, if their documents are found by the ids of versions.
    list: Option<String>,
    size: PageSize,
    is_begun: bool,
    /// The first page, if it was read already.
    ahead: Option<ScanPage>,
    /// The counts of what was read.
    reads: ScanReads,
}

impl<'s> RowScan<'s> {
    fn of(scan: &'s Scan, matching: MatchingProfiles, state: Snapshot) -> RowScan<'s> {
        let by_ehr = is_by_ehr(scan);
        RowScan {
            scan,
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
            ahead: None,
            reads: ScanReads::default(),
        }
    }

    /// Reads documents of named EHRs by ranges of the ids of versions, if they are given as a list,
    /// else by EHR. Changes nothing for a scan that names none.
    fn read_ids_of(&mut self, list: Option<String>) {
        if self.scan.ehrs.is_some() {
            self.by_ehr = list.is_none();
            self.query = if self.by_ehr { OF_EHRS } else { NEW_OF_EHRS };
            self.size = PageSize::first(self.by_ehr);
            self.list = list;
        }
    }

    /// The last id of the scan; of named EHRs that are found by EHR, their number.
    fn end(&self) -> u64 {
        match &self.scan.ehrs {
            Some(ehrs) if self.by_ehr => ehrs.len() as u64,
            None if self.by_ehr => self.state.ehr,
            _ => self.state.version,
        }
    }

    /// The named EHRs of a page, as a list.
    fn named(&self, after: u64, until: u64) -> Result<Option<String>, StoreError> {
        let Some(ehrs) = self.scan.ehrs.as_ref().filter(|_| self.by_ehr) else {
            return Ok(self.list.clone());
        };
        let named = ehrs.get(after as usize..until as usize);
        Ok(Some(json_list(named.ok_or_else(unexpected)?)))
    }
}

/// The documents of a range of ids, as one batch.
#[derive(Default)]
pub(super) struct GatheredBatch {
    pub batch: Batch,
    /// The ids of its EHRs, indexed by their numbers.
    pub ehrs: Vec<u64>,
    /// The last id of the range that was read.
    pub end: u64,
    /// The number of pages.
    pub pages: u64,
}

impl<S: Sql> SqlRepository<S> {
    /// Reads the documents of a scan with ids above `after` and up to `until`, in the state up to
    /// `newest`, into an empty batch. A scan of EHRs alone reads the EHRs with such ids. Ends early
    /// when they take about `most` bytes of memory. `None` if the sink has no memory for them.
    pub(super) async fn gather(
        &self,
        scan: &Scan,
        (after, until, newest): (u64, u64, u64),
        (batch, most): (Batch, usize),
        sink: Sink<'_>,
    ) -> Result<Option<GatheredBatch>, StoreError> {
        let matching = self.catalog.matching(scan);
        let query = if scan.empty_ehrs { BY_EHR } else { BY_PROFILE };
        let (mut size, mut builder) = (
            PageSize::ALL,
            BatchBuilder {
                batch,
                ..BatchBuilder::default()
            },
        );
        let (mut end, mut pages) = (after, 0);
        while end < until && builder.batch.encoding_bytes() < most {
            let to = (end + size.range).min(until);
            let page_bounds = PageBounds::between(end, to);
            let bounds = (newest, &size);
            let statement = page(query, scan, &matching, &page_bounds, bounds, None);
            let page = ScanPage::of(self.rows(statement).await?, size.rows)?;
            let (rows, bytes) = (page.rows.len() as u64, page.bytes());
            let reached = match page.rows.last().filter(|_| page.is_cut) {
                Some(ScanRow { ehr, doc: None, .. }) => *ehr,
                Some(ScanRow { doc: Some(doc), .. }) => doc.row.ordinal,
                None => to,
            };
            pages += 1;
            if !self.add(&mut builder, page.rows, scan, 0, sink).await? {
                return Ok(None);
            }
            size.learn(rows, bytes, reached - end, false);
            end = reached;
            sink.pause().await;
        }
        let BatchBuilder { batch, numbers } = builder;
        let mut ehrs = vec![0; numbers.len()];
        for (id, number) in numbers {
            *ehrs.get_mut(number as usize).ok_or_else(unexpected)? = id;
        }
        Ok(Some(GatheredBatch {
            batch,
            ehrs,
            end,
            pages,
        }))
    }
}

fn page(
    query: &'static str,
    scan: &Scan,
    matching: &MatchingProfiles,
    page_bounds: &PageBounds,
    (newest, size): (u64, &PageSize),
    ehrs: Option<&str>,
) -> Statement {
    Statement::new(query)
        .bind(json_list(&matching.profiles))
        .bind(matching.known_to)
        .bind(scan.all_versions)
        .bind(page_bounds.after)
        .bind(page_bounds.until)
        .bind(newest)
        .bind(size.rows)
        .bind(scan.unqueryable)
        .bind(ehrs)
        .bind(size.bytes)
        .bind(page_bounds.open.0)
        .bind(page_bounds.open.1)
}

/// Returns the statement that tests whether the snapshot of a scan is complete. Without a snapshot
/// it reads no deletions.
fn removed(scan: &Scan) -> Statement {
    let nothing = Snapshot {
        version: 0,
        ehr: 0,
        removals: NO_BOUND,
        revision: 0,
    };
    // Without a snapshot, no deletion matters, of whichever EHR.
    let ehrs = scan.ehrs.as_ref().filter(|_| scan.snapshot.is_some());
    let snapshot = scan.snapshot.unwrap_or(nothing);
    let digests = |ehrs: &Vec<String>| {
        json_list(
            &ehrs
                .iter()
                .map(|ehr_id| short_digest(ehr_id))
                .collect::<Vec<String>>(),
        )
    };
    Statement::new(REMOVED)
        .bind(snapshot.removals)
        .bind(snapshot.version)
        .bind(ehrs.map(digests))
        .bind(ehrs.map(|ehrs| json_list(ehrs)))
        .bind(snapshot.ehr)
        .bind(scan.snapshot.is_some() && !scan.unqueryable)
}

fn newest_of_ehr(ehr_id: &str) -> Statement {
    Statement::new(NEWEST_OF_EHR)
        .bind(ehr_id)
        .bind(short_digest(ehr_id))
}

/// Returns the state of one EHR that a scan reads, and the newest version of the EHR, from the rows
/// of [`NEWEST_OF_EHR`].
fn state_of_ehr(scan: &Scan, rows: Vec<Row>) -> Result<(Snapshot, u64), StoreError> {
    let mut fields = Fields::of_only(rows)?;
    let newest = Snapshot::of_ehr(fields.number()?, fields.number()?);
    let bound = fields.number()?;
    let removed = scan
        .snapshot
        .is_some_and(|requested| requested.version > 0 && requested.removals < newest.removals);
    Ok((state_to_read(scan.snapshot, newest, removed)?, bound))
}

/// Returns the newest state from the rows of [`NEWEST`].
pub(super) fn newest_of(rows: Vec<Row>) -> Result<Snapshot, StoreError> {
    let mut fields = Fields::of_only(rows)?;
    Ok(Snapshot {
        version: fields.number()?,
        ehr: fields.number()?,
        removals: fields.number()?,
        revision: fields.number()?,
    })
}

/// Returns the state that a scan reads, from the rows of [`REMOVED`].
fn state_of(scan: &Scan, newest: Snapshot, removed: Vec<Row>) -> Result<Snapshot, StoreError> {
    let removed = Fields::of_only(removed)?.flag()?;
    state_to_read(scan.snapshot, newest, removed)
}

impl PageSize {
    /// The size of a page of all documents in a range, of one EHR or for a segment.
    const ALL: PageSize = PageSize {
        range: PAGE_ROWS,
        rows: PAGE_ROWS,
        bytes: MAX_PAGE_BYTES,
    };

    /// The size of the first page, which is a guess: an EHR has some tens of documents, and a quarter
    /// of a range of ids may match.
    fn first(by_ehr: bool) -> PageSize {
        PageSize {
            range: if by_ehr { 16 } else { PAGE_ROWS },
            rows: if by_ehr { PAGE_ROWS } else { PAGE_ROWS / 4 },
            bytes: MAX_PAGE_BYTES,
        }
    }

    /// Adapts the bytes of the next page to the mean size of the documents in a range of ids. A
    /// range without documents says nothing about the next one.
    fn learn_length(&mut self, rows: u64, bytes: u64) {
        self.bytes = match bytes.checked_div(rows) {
            None => self.bytes,
            Some(LONG_DOCUMENTS..) => SMALL_PAGE_BYTES,
            Some(_) => MAX_PAGE_BYTES,
        };
    }

    /// Adapts the size of the next page to the result for `range` ids.
    fn learn(&mut self, rows: u64, bytes: u64, range: u64, by_ehr: bool) {
        let (rows, bytes) = (rows.max(1), bytes.max(1));
        let fitting = PAGE_ROWS
            .min(self.bytes.saturating_mul(rows) / bytes)
            .max(1);
        self.range =
            (range.saturating_mul(fitting) / rows).clamp(1, range.saturating_mul(8).max(16));
        if !by_ehr {
            self.rows = fitting.min(self.rows.saturating_mul(8));
        }
    }
}

impl PageBounds {
    fn between(after: u64, until: u64) -> PageBounds {
        PageBounds {
            after,
            until,
            open: (0, 0),
        }
    }

    /// Continues after a version of an EHR, or after an EHR without versions.
    fn continue_after(&mut self, ehr: u64, version: u64) {
        if version == NO_BOUND {
            (self.after, self.open) = (ehr, (0, 0));
        } else {
            (self.after, self.open) = (ehr.saturating_sub(1), (ehr, version));
        }
    }
}
