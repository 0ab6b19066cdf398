//! Scans: pages of rows, pruned by profile, made into batches.
//!
//! A scan sees the repository as it was when it began: versions that are committed meanwhile are left out, and those
//! that they supersede still count as the latest ones.

use super::SqlRepository;
use super::catalogue::Matching;
use super::read::known_texts;
use super::seal::Stored;
use super::value::{Fields, Row, Sql, Statement, json_list, kind_of, unexpected};
use crate::document::{Batch, DocRow, EhrRow, short_digest};
use crate::store::conflict::join_uid;
use crate::store::repository::{Sink, StoreError, send, state_to_read};
use crate::store::scan::{Scan, Snapshot};
use std::collections::{BTreeSet, HashMap};

/// Rows that a page aims at.
const PAGE_ROWS: u64 = 1000;
/// Bytes of packed documents that a page aims at.
const PAGE_BYTES: u64 = 2 << 20;
/// Above every id.
const NO_BOUND: u64 = 1 << 52;

/// The newest state, as [`Snapshot`] has it.
const NEWEST: &str = "SELECT max((SELECT coalesce(max(id), 0) FROM version), (SELECT value FROM meta WHERE name = 'last_version')) AS version,
    (SELECT coalesce(max(id), 0) FROM ehr) AS ehr, (SELECT coalesce(max(id), 0) FROM removal) AS removals,
    (SELECT value FROM meta WHERE name = 'revision') AS revision";
/// Whether one of the deletions behind `?1` removed a version up to `?2`: of the EHRs with the digests `?3`, or of any where that is NULL.
const REMOVED: &str = "SELECT EXISTS (SELECT 1 FROM removal r WHERE r.id > ?1 AND r.first_version <= ?2
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

/// `?1` matching profiles, `?2` the last judged one, `?3` all versions, `?4` behind this id, `?5` up to this id, `?6` the newest
/// version of the scan, `?7` most rows, `?8` whether EHRs may be unqueryable; for named EHRs `?5` the newest EHR, and `?9` the id of
/// the one, or the ids of some.
macro_rules! page {
    ($from:literal, $condition:literal, $rest:expr) => {
        concat!(
            "SELECT e.id AS ehr, e.ehr_id, e.system_id, e.time_created, ",
            queryable!(),
            " OR ?8 AS is_queryable, v.id AS ordinal, v.kind, v.object, v.system, v.number, v.time_committed,
               v.successor IS NULL OR v.successor > ?6 AS latest, v.lifecycle = '523' AS deleted, v.shapes, v.digest, v.chunks, v.document
             FROM ",
            $from,
            " AND (?3 OR ((v.successor IS NULL OR v.successor > ?6) AND v.lifecycle <> '523')) AND ",
            $condition,
            $rest
        )
    };
}

/// The documents of one EHR.
const OF_EHR: &str = page!(
    "ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id > ?4 AND v.id <= ?6",
    "(v.profile > ?2 OR v.profile IN (SELECT value FROM json_each(?1)))",
    concat!(" WHERE e.ehr_id = ?9 AND e.id > 0 AND (", queryable!(), " OR ?8) ORDER BY v.id LIMIT ?7")
);
/// Some EHRs with their documents.
const OF_EHRS: &str = page!(
    "json_each(?9) s CROSS JOIN ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id <= ?6",
    "v.profile IN (SELECT value FROM json_each(?1))",
    concat!(" WHERE e.ehr_id = s.value AND e.id > 0 AND e.id <= ?5 AND (", queryable!(), " OR ?8) ORDER BY e.id, v.id LIMIT ?7")
);
/// EHRs of a range of ids with their documents.
const BY_EHR: &str = page!(
    "ehr e LEFT JOIN version v ON v.ehr = e.id AND v.id <= ?6",
    "v.profile IN (SELECT value FROM json_each(?1))",
    concat!(" WHERE e.id > ?4 AND e.id <= ?5 AND (", queryable!(), " OR ?8) ORDER BY e.id, v.id LIMIT ?7")
);
/// Documents of a range of ids, found by their profiles.
const BY_PROFILE: &str = page!(
    "json_each(?1) s CROSS JOIN version v CROSS JOIN ehr e WHERE v.profile = s.value AND v.id > ?4 AND v.id <= ?5",
    "e.id = v.ehr",
    concat!(" AND e.id > 0 AND (", queryable!(), " OR ?8) ORDER BY v.id LIMIT ?7")
);
/// How much to ask for next: as much as keeps pages near their aims, judged by the last one.
struct Pace {
    /// Ids in the range of the next page.
    range: u64,
    /// Most rows of the next page.
    rows: u64,
}

/// A row of a page: an EHR, and a document of it where there is one.
struct Line {
    ehr: u64,
    row: EhrRow,
    doc: Option<Doc>,
}

struct Doc {
    row: DocRow,
    system: String,
    time_committed: String,
    shapes: Vec<u64>,
    seal: String,
    chunks: u64,
    text: String,
}

impl<S: Sql> SqlRepository<S> {
    pub(super) async fn send(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        match scan.ehr() {
            Some(ehr_id) => self.send_ehr(scan, ehr_id, sink).await,
            None => self.send_many(scan, sink).await,
        }
    }

    /// One EHR: a single round trip when its profiles and shapes are known, it has no more than a page, and the newest state is asked for.
    async fn send_ehr(&self, scan: &Scan, ehr_id: &str, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        let (mut state, mut newest) = (None, NO_BOUND);
        if let Some(asked) = scan.snapshot {
            let nth = Statement::new(NTH_OF_EHR).bind(ehr_id).bind(asked.version);
            let mut answers = self.batch(vec![newest_of_ehr(ehr_id), nth]).await?.into_iter();
            let (read, _) = state_of_ehr(scan, answers.next().unwrap_or_default())?;
            if read.version == 0 {
                return Ok(read);
            }
            state = Some(read);
            newest = Fields::of(answers.next().unwrap_or_default().into_iter().next().unwrap_or_default()).number()?;
        }
        let mut after = 0;
        loop {
            let matching = self.catalogue.matching(scan);
            let most = if scan.whole_ehrs { NO_BOUND } else { PAGE_ROWS };
            let page = page(OF_EHR, scan, &matching, (after, NO_BOUND), newest, most).bind(ehr_id);
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
            let lines = lines(next())?;
            state = Some(read);
            let count = lines.len() as u64;
            let first = after == 0;
            after = lines.last().and_then(|l| l.doc.as_ref()).map_or(NO_BOUND, |doc| doc.row.ordinal);
            if count > 0 && (first || after != NO_BOUND) && !send(sink, &self.batch_of(lines, scan.empty_ehrs).await?).await {
                return Ok(read);
            }
            if count < most || after == NO_BOUND {
                return Ok(read);
            }
        }
    }

    /// Those EHRs that the scan names, else all: by EHR where that is asked for, else by document.
    async fn send_many(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError> {
        let mut answers = self.batch(vec![self.catalogue.ask_news(), Statement::new(NEWEST), removed(scan)]).await?.into_iter();
        let mut next = || answers.next().unwrap_or_default();
        self.catalogue.take_news(next())?;
        let state = state_of(scan, next(), next())?;
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
        let mut pace = if by_ehr { Pace { range: 16, rows: NO_BOUND } } else { Pace { range: PAGE_ROWS, rows: PAGE_ROWS / 4 } };
        let mut after = 0;
        while after < end {
            // A database on the thread of the host, as in workerd, answers before anything else is looked at.
            if after > 0 {
                sink.pause().await;
            }
            let until = (after + pace.range).min(end);
            let range = (after, if scan.ehrs.is_some() { state.ehr } else { until });
            let page = page(query, scan, &matching, range, state.version, pace.rows);
            let named = scan.ehrs.as_ref().map(|ehrs| json_list(ehrs.get(after as usize..until as usize).unwrap_or_default()));
            let page = if let Some(named) = named { page.bind(named) } else { page };
            let lines = lines(self.rows(page).await?)?;
            let full = lines.len() as u64 == pace.rows;
            let reached = if full { lines.last().and_then(|l| l.doc.as_ref()).map_or(until, |doc| doc.row.ordinal) } else { until };
            pace.learn(&lines, reached - after, by_ehr);
            after = reached;
            if !lines.is_empty() && !send(sink, &self.batch_of(lines, scan.empty_ehrs).await?).await {
                break;
            }
        }
        Ok(state)
    }

    /// The batch of a page.
    async fn batch_of(&self, lines: Vec<Line>, empty_ehrs: bool) -> Result<Batch, StoreError> {
        let docs = || lines.iter().filter_map(|line| line.doc.as_ref());
        let shapes = self.load(&docs().flat_map(|doc| &doc.shapes).copied().collect::<BTreeSet<u64>>()).await?;
        let rest = self.read_document_rests(docs().filter(|d| d.chunks > 0).map(Doc::uid)).await?;
        let mut batch = Batch::new();
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        for Line { ehr, row, doc } in lines {
            if doc.is_none() && !empty_ehrs {
                continue;
            }
            let number = *numbers.entry(ehr).or_insert_with(|| batch.add_ehr(row));
            let Some(doc) = doc else { continue };
            let uid = doc.uid();
            let behind = if doc.chunks > 0 { rest.get(&format!("v/{uid}")).map_or("", String::as_str) } else { "" };
            let text = doc.text + behind;
            let stored =
                Stored { owner: batch.ehr(number).map_or("", |ehr| &ehr.ehr_id), known: &known_texts(&uid, &doc.time_committed), text: &text };
            let packed = shapes.unpack(stored, &doc.shapes, Some(&doc.seal))?;
            batch.add(number, doc.row, &packed);
        }
        Ok(batch)
    }
}

fn page(query: &'static str, scan: &Scan, matching: &Matching, range: (u64, u64), newest: u64, rows: u64) -> Statement {
    Statement::new(query)
        .bind(json_list(&matching.profiles))
        .bind(matching.judged_to)
        .bind(scan.all_versions)
        .bind(range.0)
        .bind(range.1)
        .bind(newest)
        .bind(rows)
        .bind(scan.unqueryable)
}

fn lines(rows: Vec<Row>) -> Result<Vec<Line>, StoreError> {
    rows.into_iter().map(Line::of).collect()
}

/// Asks whether the snapshot of a scan can still be shown; without a snapshot no deletion is looked at.
fn removed(scan: &Scan) -> Statement {
    let nothing = Snapshot { version: 0, ehr: 0, removals: NO_BOUND, revision: 0 };
    let snapshot = scan.snapshot.unwrap_or(nothing);
    let digests = |ehrs: &Vec<String>| json_list(&ehrs.iter().map(|ehr_id| short_digest(ehr_id)).collect::<Vec<String>>());
    Statement::new(REMOVED).bind(snapshot.removals).bind(snapshot.version).bind(scan.ehrs.as_ref().map(digests))
}

fn newest_of_ehr(ehr_id: &str) -> Statement {
    Statement::new(NEWEST_OF_EHR).bind(ehr_id).bind(short_digest(ehr_id))
}

/// The state of one EHR that a scan reads, and the newest version of the EHR, by what [`NEWEST_OF_EHR`] gave.
fn state_of_ehr(scan: &Scan, told: Vec<Row>) -> Result<(Snapshot, u64), StoreError> {
    let mut fields = Fields::of(told.into_iter().next().unwrap_or_default());
    let newest = Snapshot::of_ehr(fields.number()?, fields.number()?);
    let bound = fields.number()?;
    let removed = scan.snapshot.is_some_and(|asked| asked.version > 0 && asked.removals < newest.removals);
    Ok((state_to_read(scan.snapshot, newest, removed)?, bound))
}

/// The state that a scan reads, by what [`NEWEST`] and [`REMOVED`] gave.
fn state_of(scan: &Scan, newest: Vec<Row>, removed: Vec<Row>) -> Result<Snapshot, StoreError> {
    let mut fields = Fields::of(newest.into_iter().next().unwrap_or_default());
    let newest = Snapshot { version: fields.number()?, ehr: fields.number()?, removals: fields.number()?, revision: fields.number()? };
    let removed = Fields::of(removed.into_iter().next().unwrap_or_default()).flag()?;
    state_to_read(scan.snapshot, newest, removed)
}

impl Pace {
    /// Fits the next page to what `range` ids gave.
    fn learn(&mut self, lines: &[Line], range: u64, by_ehr: bool) {
        let rows = (lines.len() as u64).max(1);
        let bytes = lines.iter().filter_map(|l| l.doc.as_ref()).map(|doc| doc.text.len() as u64).sum::<u64>().max(1);
        let fitting = PAGE_ROWS.min(PAGE_BYTES.saturating_mul(rows) / bytes).max(1);
        self.range = (range.saturating_mul(fitting) / rows).clamp(1, range.saturating_mul(8).max(16));
        if !by_ehr {
            self.rows = fitting.min(self.rows.saturating_mul(8));
        }
    }
}

impl Line {
    fn of(row: Row) -> Result<Line, StoreError> {
        let mut fields = Fields::of(row);
        let ehr = fields.number()?;
        let row = EhrRow { ehr_id: fields.text()?, system_id: fields.text()?, time_created: fields.text()?, is_queryable: fields.flag()? };
        let doc = fields.optional_number()?.map(|ordinal| Doc::of(ordinal, fields)).transpose()?;
        Ok(Line { ehr, row, doc })
    }
}

impl Doc {
    fn of(ordinal: u64, mut fields: Fields) -> Result<Doc, StoreError> {
        let (kind, object_id, system) = (kind_of(fields.number()?)?, fields.text()?, fields.text()?);
        let number = u32::try_from(fields.number()?).map_err(|_| unexpected())?;
        let time_committed = fields.text()?;
        let row = DocRow { kind, object_id, number, ordinal, latest: fields.flag()?, deleted: fields.flag()? };
        let (shapes, seal) = (fields.numbers()?, fields.text()?);
        Ok(Doc { row, system, time_committed, shapes, seal, chunks: fields.number()?, text: fields.text()? })
    }

    fn uid(&self) -> String {
        join_uid(&self.row.object_id, &self.system, self.row.number)
    }
}
