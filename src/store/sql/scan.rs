//! Scans: pages of rows, pruned by profile, made into batches.
//!
//! A scan sees the repository as it was when it began: versions that are committed meanwhile are
//! left out, and those that they supersede still count as the latest ones.

use super::SqlRepository;
use super::catalogue::Matching;
use super::list::size_of_version;
use super::read::known_texts;
use super::seal::Stored;
use super::value::{Fields, Row, Sql, Statement, json_list, kind_of, unexpected};
use crate::document::{Batch, DocRow, EhrRow, short_digest};
use crate::store::conflict::join_uid;
use crate::store::repository::{PIECE_BYTES, Sink, StoreError, send, state_to_read};
use crate::store::scan::{Scan, Snapshot};
use std::collections::{BTreeSet, HashMap};

/// Rows of a page at most.
const PAGE_ROWS: u64 = 1000;
/// Bytes of stored text after which others have their turn while documents are unpacked.
const UNPACKED: u64 = 1 << 20;
/// Bytes of memory that a byte of stored text takes while its document is read and unpacked, about:
/// the answer of the database, its values, the joined text, the document.
const HELD: u64 = 4;
/// Above every id.
const NO_BOUND: u64 = 1 << 52;

/// The newest state, as [`Snapshot`] has it.
pub(super) const NEWEST: &str = "SELECT max((SELECT coalesce(max(id), 0) FROM version), (SELECT value FROM meta WHERE name = 'last_version')) AS version,
    (SELECT coalesce(max(id), 0) FROM ehr) AS ehr, (SELECT coalesce(max(id), 0) FROM removal) AS removals,
    (SELECT value FROM meta WHERE name = 'revision') AS revision";
/// Whether one of the deletions behind `?1` removed a version up to `?2`: of the EHRs with the
/// digests `?3`, or of any where that is NULL.
const REMOVED: &str =
    "SELECT EXISTS (SELECT 1 FROM removal r WHERE r.id > ?1 AND r.first_version <= ?2
      AND (?3 IS NULL OR r.ehr IS NULL OR r.ehr IN (SELECT value FROM json_each(?3)))) AS removed";

/// The newest state of the EHR `?1` with the digest `?2`, and its newest version.
const NEWEST_OF_EHR: &str = "SELECT count(*) AS versions, (SELECT count(*) FROM removal WHERE ehr IS NULL OR ehr = ?2) AS removals,
    coalesce(max(v.id), 0) AS newest FROM version v JOIN ehr e ON e.id = v.ehr WHERE e.ehr_id = ?1";
/// The `?2`th version of an EHR.
const NTH_OF_EHR: &str = "SELECT v.id FROM version v JOIN ehr e ON e.id = v.ehr WHERE e.ehr_id = ?1 ORDER BY v.id LIMIT 1 OFFSET ?2 - 1";

/// Whether an EHR was queryable in the state that is read.
macro_rules! queryable {
    () => {
        "coalesce((SELECT q.is_queryable FROM queryable_before q WHERE q.ehr = e.id AND q.version > ?6 ORDER BY q.version LIMIT 1), e.is_queryable)"
    };
}

/// `?1` matching profiles, `?2` the last judged one, `?3` all versions, `?4` behind this id, `?5`
/// up to this id, `?6` the newest version of the scan, `?7` most rows, `?8` whether EHRs may be
/// unqueryable, `?9` the id of the EHR or the ids of some, `?10` most bytes, `?11` and `?12` an EHR
/// and the version in it behind which the page begins.
///
/// The sizes of the documents decide how many of them are read: the first one, and those that
/// stay within the bytes of a page together with all before them. `found` counts all that the inner
/// query listed.
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
/// Documents of a range of ids, found by their profiles.
const BY_PROFILE: &str = page!(
    "json_each(?1) s CROSS JOIN version v CROSS JOIN ehr e WHERE v.profile = s.value AND v.id > ?4 AND v.id <= ?5",
    "e.id = v.ehr",
    " AND e.id > 0",
    "id",
    "p.id"
);
/// How much to ask for next: as much as keeps pages near their aims, judged by the last one.
struct Pace {
    /// Ids in the range of the next page.
    range: u64,
    /// Most rows of the next page.
    rows: u64,
}

/// Where a page begins and ends.
struct Place {
    /// Behind this id of an EHR or a version.
    behind: u64,
    /// Up to this id.
    until: u64,
    /// The EHR that the page before ended in, and the last version that it had of it.
    open: (u64, u64),
}

/// A row of a page: an EHR, and a document of it where there is one.
struct Line {
    /// Rows that the page would have without a bound on its bytes.
    found: u64,
    /// Bytes of the stored document.
    size: u64,
    ehr: u64,
    row: EhrRow,
    doc: Option<Doc>,
}

struct Doc {
    row: DocRow,
    system: String,
    time_committed: String,
    layouts: Vec<u64>,
    seal: String,
    chunks: u64,
    text: String,
}

/// The rows of a page.
struct Page {
    lines: Vec<Line>,
    /// True where more rows follow in the range of the page.
    is_cut: bool,
}

/// A batch that pages are added to until it can be sent.
#[derive(Default)]
struct Assembly {
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

    /// One EHR: a single round trip when its profiles and layouts are known, it has no more than a
    /// page, and the newest state is asked for.
    async fn send_ehr(
        &self,
        scan: &Scan,
        ehr_id: &str,
        sink: Sink<'_>,
    ) -> Result<Snapshot, StoreError> {
        let (mut state, mut newest) = (None, NO_BOUND);
        if let Some(asked) = scan.snapshot {
            let (read, bound) = self.state_of_snapshot(scan, ehr_id, asked).await?;
            if read.version == 0 {
                return Ok(read);
            }
            (state, newest) = (Some(read), bound);
        }
        let mut place = Place {
            behind: 0,
            until: NO_BOUND,
            open: (0, 0),
        };
        let mut assembly = Assembly::default();
        loop {
            let matching = self.catalogue.matching(scan);
            let bounds = (newest, PAGE_ROWS);
            let page = page(OF_EHR, scan, &matching, &place, bounds, Some(ehr_id));
            let mut batch = vec![self.catalogue.ask_news()];
            if state.is_none() {
                batch.push(newest_of_ehr(ehr_id));
            }
            batch.push(page);
            let mut answers = self.batch(batch).await?.into_iter();
            let mut next = || answers.next().unwrap_or_default();
            self.catalogue.take_news(next())?;
            let read = if let Some(state) = state {
                state
            } else {
                let (read, bound) = state_of_ehr(scan, next())?;
                newest = bound;
                read
            };
            state = Some(read);
            let page = Page::of(next(), PAGE_ROWS)?;
            let (is_cut, open) = (page.is_cut, place.open.0);
            if let Some((ehr, version)) = page.end() {
                place.behind = version;
                place.open = (ehr, version);
            }
            if !self.take(&mut assembly, page, scan, open, sink).await? || !is_cut {
                return Ok(read);
            }
            sink.pause().await;
        }
    }

    /// The state of one EHR that a snapshot names, and the newest version in it.
    async fn state_of_snapshot(
        &self,
        scan: &Scan,
        ehr_id: &str,
        asked: Snapshot,
    ) -> Result<(Snapshot, u64), StoreError> {
        let nth = Statement::new(NTH_OF_EHR).bind(ehr_id).bind(asked.version);
        let mut answers = self
            .batch(vec![newest_of_ehr(ehr_id), nth])
            .await?
            .into_iter();
        let (read, _) = state_of_ehr(scan, answers.next().unwrap_or_default())?;
        if read.version == 0 {
            return Ok((read, NO_BOUND));
        }
        let row = answers.next().and_then(|rows| rows.into_iter().next());
        Ok((read, Fields::of(row.unwrap_or_default()).number()?))
    }

    /// Those EHRs that the scan names, else all: by EHR where that is asked for, else by document.
    async fn send_many(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        let segments = self.segments_for(scan, sink);
        let mut batch = vec![
            self.catalogue.ask_news(),
            Statement::new(NEWEST),
            removed(scan),
        ];
        if let Some((segments, source)) = &segments {
            batch.extend(segments.statements(*source));
        }
        let mut answers = self.batch(batch).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default();
        self.catalogue.take_news(next())?;
        let newest = newest_of(next())?;
        let state = state_of(scan, newest, next())?;
        let of_segments = [next(), next(), next()];
        let matching = self.catalogue.matching(scan);
        let by_ehr = scan.ehrs.is_some() || scan.whole_ehrs || scan.empty_ehrs;
        if matching.profiles.is_empty() && !scan.empty_ehrs {
            return Ok(state);
        }
        let (query, end) = match &scan.ehrs {
            Some(ehrs) => (OF_EHRS, ehrs.len() as u64),
            None if by_ehr => (BY_EHR, state.ehr),
            None => (BY_PROFILE, state.version),
        };
        let mut pace = Pace {
            range: if by_ehr { 16 } else { PAGE_ROWS },
            rows: if by_ehr { PAGE_ROWS } else { PAGE_ROWS / 4 },
        };
        let (mut after, mut begun) = (0, false);
        // Segments show the newest state only.
        if let Some((segments, source)) = segments.filter(|_| state == newest) {
            let opened = self.open_segments(&segments, source, state, of_segments);
            let mut held = opened.await?;
            if !segments.send(&mut held, sink).await {
                return Ok(state);
            }
            after = held.covered();
        }
        while after < end {
            let until = (after + pace.range).min(end);
            let named = scan.ehrs.as_ref().map(|ehrs| {
                json_list(ehrs.get(after as usize..until as usize).unwrap_or_default())
            });
            let mut place = Place::between(after, until);
            if named.is_some() {
                place = Place::between(0, state.ehr);
            }
            let (mut assembly, mut reached) = (Assembly::default(), until);
            let (mut rows, mut bytes) = (0, 0);
            loop {
                // A database on the thread of the host, as in workerd, answers before anything else
                // is looked at.
                if std::mem::replace(&mut begun, true) {
                    sink.pause().await;
                }
                let bounds = (state.version, pace.rows);
                let statement = page(query, scan, &matching, &place, bounds, named.as_deref());
                let page = Page::of(self.rows(statement).await?, pace.rows)?;
                let (is_cut, open, page_end) = (page.is_cut, place.open.0, page.end());
                rows += page.lines.len() as u64;
                bytes += page.bytes();
                if !self.take(&mut assembly, page, scan, open, sink).await? {
                    return Ok(state);
                }
                match page_end.filter(|_| is_cut) {
                    Some((ehr, version)) if by_ehr => place.go_on(ehr, version),
                    Some((_, version)) => {
                        reached = version;
                        break;
                    }
                    None => break,
                }
            }
            pace.learn(rows, bytes, reached - after, by_ehr);
            after = reached;
        }
        Ok(state)
    }

    /// Adds a page to an assembly, and sends what is complete of it; false when no more is wanted.
    /// `open` is the EHR that the page before ended in.
    async fn take(
        &self,
        assembly: &mut Assembly,
        page: Page,
        scan: &Scan,
        open: u64,
        sink: Sink<'_>,
    ) -> Result<bool, StoreError> {
        let last = page.lines.last().map_or(0, |line| line.ehr);
        let keeps = page.is_cut && scan.whole_ehrs;
        let mut lines = page.lines;
        let complete = if keeps {
            lines.iter().take_while(|line| line.ehr != last).count()
        } else {
            lines.len()
        };
        let rest = lines.split_off(complete);
        if !self.add(assembly, lines, scan, open, sink).await? {
            return Ok(false);
        }
        let is_open = keeps && last == open;
        let is_due = !is_open && !assembly.numbers.is_empty();
        if is_due && !send(sink, &std::mem::take(assembly).batch).await {
            return Ok(false);
        }
        self.add(assembly, rest, scan, open, sink).await
    }

    /// Adds documents to an assembly, with pauses; false when the sink has no room for them.
    async fn add(
        &self,
        assembly: &mut Assembly,
        lines: Vec<Line>,
        scan: &Scan,
        open: u64,
        sink: Sink<'_>,
    ) -> Result<bool, StoreError> {
        if lines.is_empty() {
            return Ok(true);
        }
        let read: u64 = lines.iter().map(|line| line.size).sum();
        let held = (assembly.batch.bytes() as u64).saturating_add(HELD.saturating_mul(read));
        if !sink.admit(usize::try_from(held).unwrap_or(usize::MAX)) {
            return Ok(false);
        }
        let docs = || lines.iter().filter_map(|line| line.doc.as_ref());
        let layouts: BTreeSet<u64> = docs().flat_map(|doc| &doc.layouts).copied().collect();
        let layouts = self.load(&layouts).await?;
        let mut rest = self
            .read_document_rests(docs().filter(|d| d.chunks > 0).map(Doc::uid))
            .await?;
        let mut unpacked = 0;
        for Line { ehr, row, doc, .. } in lines {
            if doc.is_none() && (!scan.empty_ehrs || ehr == open) {
                continue;
            }
            let Assembly { batch, numbers } = &mut *assembly;
            let number = *numbers.entry(ehr).or_insert_with(|| batch.add_ehr(row));
            let Some(doc) = doc else { continue };
            let uid = doc.uid();
            let mut text = doc.text;
            if doc.chunks > 0 {
                // A document whose pieces are gone does not fit its checksum.
                text.push_str(&rest.remove(&format!("v/{uid}")).unwrap_or_default());
            }
            unpacked += text.len() as u64;
            let owner = batch.ehr_id(number);
            let stored = Stored {
                owner: owner.ok_or_else(unexpected)?,
                known: &known_texts(&uid, &doc.time_committed),
                text: &text,
            };
            let packed = layouts.unpack(stored, &doc.layouts, Some(&doc.seal))?;
            batch.add(number, doc.row, &packed);
            if unpacked >= UNPACKED {
                unpacked = 0;
                sink.pause().await;
            }
        }
        Ok(true)
    }
}

/// The documents of a range of ids, as one batch.
pub(super) struct Gathered {
    pub batch: Batch,
    /// The ids of its EHRs, by their numbers.
    pub ehrs: Vec<u64>,
    /// The last id of the range that was read.
    pub end: u64,
}

impl<S: Sql> SqlRepository<S> {
    /// Reads the documents of a scan with ids above `after` and up to `until`, in the state up to
    /// `newest`; of a scan of EHRs alone, the EHRs with such ids. Ends early when they take `most`
    /// bytes of memory, about.
    pub(super) async fn gather(
        &self,
        scan: &Scan,
        (after, until, newest): (u64, u64, u64),
        most: usize,
        sink: Sink<'_>,
    ) -> Result<Gathered, StoreError> {
        let matching = self.catalogue.matching(scan);
        let query = if scan.empty_ehrs { BY_EHR } else { BY_PROFILE };
        let (mut pace, mut assembly) = (
            Pace {
                range: PAGE_ROWS,
                rows: PAGE_ROWS,
            },
            Assembly::default(),
        );
        let mut end = after;
        while end < until && assembly.batch.bytes() < most {
            let to = (end + pace.range).min(until);
            let place = Place::between(end, to);
            let bounds = (newest, pace.rows);
            let statement = page(query, scan, &matching, &place, bounds, None);
            let page = Page::of(self.rows(statement).await?, pace.rows)?;
            let (rows, bytes) = (page.lines.len() as u64, page.bytes());
            let reached = match page.lines.last().filter(|_| page.is_cut) {
                Some(Line { ehr, doc: None, .. }) => *ehr,
                Some(Line { doc: Some(doc), .. }) => doc.row.ordinal,
                None => to,
            };
            self.add(&mut assembly, page.lines, scan, 0, sink).await?;
            pace.learn(rows, bytes, reached - end, false);
            end = reached;
            sink.pause().await;
        }
        let Assembly { batch, numbers } = assembly;
        let mut ehrs = vec![0; numbers.len()];
        for (id, number) in numbers {
            *ehrs.get_mut(number as usize).ok_or_else(unexpected)? = id;
        }
        Ok(Gathered { batch, ehrs, end })
    }
}

fn page(
    query: &'static str,
    scan: &Scan,
    matching: &Matching,
    place: &Place,
    (newest, rows): (u64, u64),
    ehrs: Option<&str>,
) -> Statement {
    Statement::new(query)
        .bind(json_list(&matching.profiles))
        .bind(matching.judged_to)
        .bind(scan.all_versions)
        .bind(place.behind)
        .bind(place.until)
        .bind(newest)
        .bind(rows)
        .bind(scan.unqueryable)
        .bind(ehrs)
        .bind(PIECE_BYTES)
        .bind(place.open.0)
        .bind(place.open.1)
}

/// Asks whether the snapshot of a scan can still be shown; without a snapshot no deletion is looked
/// at.
fn removed(scan: &Scan) -> Statement {
    let nothing = Snapshot {
        version: 0,
        ehr: 0,
        removals: NO_BOUND,
        revision: 0,
    };
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
        .bind(scan.ehrs.as_ref().map(digests))
}

fn newest_of_ehr(ehr_id: &str) -> Statement {
    Statement::new(NEWEST_OF_EHR)
        .bind(ehr_id)
        .bind(short_digest(ehr_id))
}

/// The state of one EHR that a scan reads, and the newest version of the EHR, by what
/// [`NEWEST_OF_EHR`] gave.
fn state_of_ehr(scan: &Scan, told: Vec<Row>) -> Result<(Snapshot, u64), StoreError> {
    let mut fields = Fields::of(told.into_iter().next().unwrap_or_default());
    let newest = Snapshot::of_ehr(fields.number()?, fields.number()?);
    let bound = fields.number()?;
    let removed = scan
        .snapshot
        .is_some_and(|asked| asked.version > 0 && asked.removals < newest.removals);
    Ok((state_to_read(scan.snapshot, newest, removed)?, bound))
}

/// The newest state, by what [`NEWEST`] returned.
pub(super) fn newest_of(rows: Vec<Row>) -> Result<Snapshot, StoreError> {
    let mut fields = Fields::of(rows.into_iter().next().unwrap_or_default());
    Ok(Snapshot {
        version: fields.number()?,
        ehr: fields.number()?,
        removals: fields.number()?,
        revision: fields.number()?,
    })
}

/// The state that a scan reads, by what [`REMOVED`] returned.
fn state_of(scan: &Scan, newest: Snapshot, removed: Vec<Row>) -> Result<Snapshot, StoreError> {
    let removed = Fields::of(removed.into_iter().next().unwrap_or_default()).flag()?;
    state_to_read(scan.snapshot, newest, removed)
}

impl Pace {
    /// Fits the next page to what `range` ids gave.
    fn learn(&mut self, rows: u64, bytes: u64, range: u64, by_ehr: bool) {
        let (rows, bytes) = (rows.max(1), bytes.max(1));
        let fitting = PAGE_ROWS
            .min(PIECE_BYTES.saturating_mul(rows) / bytes)
            .max(1);
        self.range =
            (range.saturating_mul(fitting) / rows).clamp(1, range.saturating_mul(8).max(16));
        if !by_ehr {
            self.rows = fitting.min(self.rows.saturating_mul(8));
        }
    }
}

impl Place {
    fn between(behind: u64, until: u64) -> Place {
        Place {
            behind,
            until,
            open: (0, 0),
        }
    }

    /// Goes on behind a version of an EHR, or behind an EHR without any.
    fn go_on(&mut self, ehr: u64, version: u64) {
        if version == NO_BOUND {
            (self.behind, self.open) = (ehr, (0, 0));
        } else {
            (self.behind, self.open) = (ehr.saturating_sub(1), (ehr, version));
        }
    }
}

impl Page {
    fn of(rows: Vec<Row>, most: u64) -> Result<Page, StoreError> {
        let lines = rows
            .into_iter()
            .map(Line::of)
            .collect::<Result<Vec<Line>, StoreError>>()?;
        let found = lines.first().map_or(0, |line| line.found);
        Ok(Page {
            is_cut: found > lines.len() as u64 || found == most,
            lines,
        })
    }

    /// Bytes of the stored documents.
    fn bytes(&self) -> u64 {
        self.lines.iter().map(|line| line.size).sum()
    }

    /// The EHR and the version of the last row; [`NO_BOUND`] where that row is an EHR alone.
    fn end(&self) -> Option<(u64, u64)> {
        let last = self.lines.last()?;
        let version = last.doc.as_ref().map(|doc| doc.row.ordinal);
        Some((last.ehr, version.unwrap_or(NO_BOUND)))
    }
}

impl Line {
    fn of(row: Row) -> Result<Line, StoreError> {
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
            .map(|ordinal| Doc::of(ordinal, fields))
            .transpose()?;
        Ok(Line {
            found,
            size,
            ehr,
            row,
            doc,
        })
    }
}

impl Doc {
    fn of(ordinal: u64, mut fields: Fields) -> Result<Doc, StoreError> {
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
        let (layouts, seal) = (fields.numbers()?, fields.text()?);
        Ok(Doc {
            row,
            system,
            time_committed,
            layouts,
            seal,
            chunks: fields.number()?,
            text: fields.text()?,
        })
    }

    fn uid(&self) -> String {
        join_uid(&self.row.object_id, &self.system, self.row.number)
    }
}
