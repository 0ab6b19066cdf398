//! Many change sets in one request: one on each line, with one line of the response for each.
//!
//! [`Lines`] holds the lines of a bulk load (module `load`) and of an import (module `transfer`)
//! while they are committed together. A list of EHRs on which guides run is cut into parts by the
//! same functions. Each line is a contribution of its own: an error of one line does not affect the
//! others.
//!
//! A host may cut a long body between lines and pass the parts one after another ([`part_size`]).
//! The parameter `first` of a part has the number of its first line.

#[cfg(feature = "server")]
mod load;

use super::Service;
use super::call::Call;
use super::error::Failure;
use super::http::Request;
use super::members::Members;
use super::negotiate::is_ndjson;
use super::route::needs_permission;
use super::stored_size::stored_limit;
use super::templates::FactSource;
use super::time::iso;
use crate::diag::line_ends;
#[cfg(feature = "server")]
use crate::rm::id::object_id_of;
use crate::rm::json;
use crate::store::canonical::object;
#[cfg(feature = "server")]
use crate::store::repository::VersionSelector;
use crate::store::repository::{Commit, EarlierCommits, Repository, StoreError};
use serde_json::Value;
use std::cell::Cell;
use std::fmt::Write;
use std::rc::Rc;

/// The sizes of the parts and transactions of a load. Larger ones cost less for each line, because
/// a transaction has a fixed cost. During smaller ones, other requests wait for less time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadSizes {
    /// Maximum bytes of a part of a body, unless a line is longer.
    pub part: usize,
    /// Maximum lines of a part. Each costs work and a response, however short it is.
    pub lines: u64,
    /// Maximum change sets of a transaction.
    pub commits: usize,
    /// Maximum bytes of the lines of a transaction.
    pub bytes: usize,
}

/// The default sizes are those of workerd, where requests wait during a transaction, because the
/// database shares their thread. A part occupies a worker for about 40 ms, and a line for at least
/// 40 µs.
const PART: usize = 500_000;
const LINES: u64 = 1_000;
const TOGETHER: usize = 100;
const BYTES: usize = 4_000_000;

impl Default for LoadSizes {
    fn default() -> LoadSizes {
        LoadSizes {
            part: PART,
            lines: LINES,
            commits: TOGETHER,
            bytes: BYTES,
        }
    }
}

/// Bytes of lines between two pauses.
const PAUSE: usize = 100_000;
/// Bytes that a line counts in addition to its length, because its parse and its row cost time.
const LINE: usize = 400;

/// Blank lines that a body, or a part of a long one, may have even if it has fewer other lines.
const MAX_BLANK: u64 = 100;

/// The highest number of a line. The uids of lines have the number in 32 bits, and ascend with it.
const LAST_LINE: u64 = u32::MAX as u64;

/// The media type of the responses.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// Bytes of a part of a list of EHRs: a thousand lines of an id in quotes and a line end.
const EHRS_PART: usize = 39_000;

/// Returns the maximum bytes of a part of the body of a request, which a host cuts between lines;
/// `None` if it must pass the body as a whole. The host sends the responses to the parts one after
/// another. Guides run on all parts with the time `now` (microseconds since 1970), unless the
/// request has another.
#[must_use]
pub fn part_size(request: &mut Request, now: i64, sizes: LoadSizes) -> Option<usize> {
    let lines = lines_of(request)?;
    if lines == BodyLines::Ehrs && request.query_value("now").is_none() {
        request.query.push((String::from("now"), iso(now)));
    }
    Some(match lines {
        BodyLines::Changes | BodyLines::Records => sizes.part,
        BodyLines::Ehrs => EHRS_PART,
    })
}

/// Returns whether the response to a part of a body may have a rest ([`super::Response::rest`]).
#[must_use]
pub fn may_have_rest(part: &Request) -> bool {
    lines_of(part) == Some(BodyLines::Ehrs)
}

/// Bytes of a line of an import beside the text that it carries: the rest of its record, and tags.
const RECORD: usize = 1_000_000;

/// Returns the maximum bytes of the body of a request, or of each line if the body is read in
/// parts. `body` is the maximum of all bodies but imports, whose lines are records of an export.
///
/// A request that needs no permission, such as `OPTIONS`, is answered by its headers. Its body has
/// the maximum 0, so that strangers cannot fill the memory with bodies.
#[must_use]
pub fn body_limit(request: &Request, body: usize) -> usize {
    match lines_of(request) {
        _ if !needs_permission(request) => 0,
        Some(BodyLines::Records) => stored_limit(body).saturating_add(RECORD),
        _ => body,
    }
}

/// Returns the number of the first line that is longer than a limit, if the body is read in parts.
pub(crate) fn too_long_line(request: &Request, limit: usize) -> Option<u64> {
    lines_of(request)?;
    let first = request.query_value("first");
    let first = first.and_then(|first| first.parse::<u64>().ok());
    let lines = request.body.split(|byte| *byte == b'\n');
    let mut lines = (first.unwrap_or(1)..).zip(lines);
    lines
        .find(|(_, line)| line.len() > limit)
        .map(|(number, _)| number)
}

/// Returns whether a host may pass the body of a request in parts.
pub(crate) fn is_read_in_parts(request: &Request) -> bool {
    lines_of(request).is_some()
}

/// The lines of a body that a host may pass in parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyLines {
    /// Changes to the repository.
    Changes,
    /// Records of an export.
    Records,
    /// The EHRs on which guides run.
    Ehrs,
}

fn lines_of(request: &Request) -> Option<BodyLines> {
    // Any mount may precede these paths.
    let path = request.path.trim_end_matches('/');
    let written = ["/ehr/bulk", "/ehrs/bulk"];
    match request.method == "POST" {
        true if path.ends_with("/admin/import") => Some(BodyLines::Records),
        true if written.iter().any(|end| path.ends_with(end)) => Some(BodyLines::Changes),
        true if path.ends_with("/gdl/query") && is_ndjson(request) => Some(BodyLines::Ehrs),
        _ => None,
    }
}

/// A line of a body that is not blank.
#[derive(Clone, Copy)]
pub(crate) struct SentLine<'a> {
    /// Its number. Blank lines count.
    pub number: u64,
    pub text: &'a str,
}

/// A line that is ready to commit.
pub(crate) struct ReadyLine {
    /// The change set.
    pub commit: Commit,
    /// The uid of the version that the response names.
    pub created: Option<String>,
    /// Identifies a line that was written before.
    pub identity: LineIdentity,
    /// The members of its contribution, if it has one.
    pub members: Members,
}

/// The identification of a line that was written before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LineIdentity {
    /// Lines have no identity: a line that would write existing data is rejected.
    None,
    /// A UUID of key, number and text of the line.
    #[cfg(feature = "server")]
    Key(String),
    /// The text of the line, which must equal the stored one.
    Text,
}

/// Lines in progress, and the responses to those before them.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    /// Resolves when the parts of the body before this one are answered; `None` once it was
    /// awaited.
    earlier: Option<EarlierCommits>,
    commits: Vec<Commit>,
    sent: Vec<PendingLine<'a>>,
    bytes: usize,
    /// Bytes of lines since the last pause.
    unpaused: usize,
    out: String,
    /// The source of the templates of the lines. With cached ones, a line whose precondition fails
    /// is read again among [`Lines::retried`].
    facts: FactSource,
    retried: Vec<u64>,
    /// Whether a change set was committed.
    has_committed: bool,
}

impl<'a> Lines<'a> {
    /// Creates the state before the first line of a body, or of a part of it.
    pub fn begin(call: &Call<'_>) -> Lines<'a> {
        Lines {
            earlier: call.earlier_parts(),
            ..Lines::default()
        }
    }

    /// Waits for the parts of the body before this one. Awaited before data are read that they may
    /// change.
    ///
    /// # Errors
    /// 503 if one of them was rejected, which ends the load.
    pub async fn await_earlier_parts(&mut self) -> Result<(), Failure> {
        let Some(earlier) = self.earlier.take() else {
            return Ok(());
        };
        if earlier.await {
            return Ok(());
        }
        self.write_nothing();
        let message = "an earlier part of the load was rejected";
        Err(Failure::new(503, message))
    }

    /// Makes all further commits fail, because an earlier part of the body was rejected.
    fn write_nothing(&mut self) {
        self.earlier = Some(Box::pin(std::future::ready(false)));
    }

    /// Returns whether a pending line writes a version of one of these objects of an EHR, which are
    /// sorted.
    #[cfg(feature = "server")]
    fn has_pending(&self, ehr_id: &str, objects: &[String]) -> bool {
        let commits = self.commits.iter().filter(|commit| commit.ehr_id == ehr_id);
        let mut versions = commits.flat_map(|commit| &commit.versions);
        !objects.is_empty()
            && versions.any(|version| objects.binary_search(&version.object_id).is_ok())
    }

    /// Returns the responses.
    pub fn into_text(self) -> String {
        self.out
    }

    /// Returns the size of the responses so far in bytes.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Yields to other requests after some lines. `text` is the line that was read.
    pub async fn pause(&mut self, call: &Call<'_>, text: &str) {
        // A short line costs a parse and a row as well, hence the constant part.
        self.unpaused += LINE + text.len();
        if self.unpaused >= PAUSE {
            self.unpaused = 0;
            call.pause().await;
        }
    }

    /// Adds the response to a line: a JSON object, which gets line number and status.
    pub fn answer(&mut self, line: u64, status: u16, object: &str) {
        // Line number and status are appended as text, because the object is written already.
        let members = object.strip_suffix('}').unwrap_or_default();
        let comma = if members.ends_with('{') { "" } else { "," };
        let _ = writeln!(
            self.out,
            r#"{members}{comma}"line":{line},"status":{status}}}"#
        );
    }

    /// Adds the response to a line with an error.
    pub fn refuse(&mut self, line: u64, failure: &Failure) {
        self.answer(line, failure.status, &failure.body().to_string());
    }

    /// Adds the response to a line that was written.
    fn confirm(&mut self, sent: &PendingLine<'_>, status: u16, created: Option<&String>) {
        let contribution = ("contribution", sent.uid.as_str());
        let summary = created.map_or_else(
            || object(&[contribution]),
            |uid| object(&[("uid", uid), contribution]),
        );
        self.answer(sent.sent.number, status, &summary);
    }
}

/// The properties of a line that is being committed.
struct PendingLine<'a> {
    sent: SentLine<'a>,
    ehr_id: String,
    /// The uid of the contribution.
    uid: String,
    created: Option<String>,
    identity: LineIdentity,
    /// The members of its contribution, if it has one.
    members: Members,
}

/// Returns whether an error may mean that the commit was made before.
fn may_be_duplicate(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::Unavailable(_)
            | StoreError::Corrupt { .. }
            | StoreError::Failed(_)
            | StoreError::NoSuchEhr
    )
}

/// Checks that the repository returned one outcome for each commit.
///
/// # Errors
/// 500 if not: it is then unknown which lines were written.
fn check_outcomes(commits: usize, outcomes: usize) -> Result<(), Failure> {
    if commits == outcomes {
        return Ok(());
    }
    let message = format!(
        "the storage returned {outcomes} outcomes of {commits} commits; read first whether the line was written"
    );
    Err(Failure::broken(&message))
}

/// Returns the uids of the versions that the stored CONTRIBUTION of a line lists.
///
/// # Errors
/// 500 if it cannot be read.
fn uids(sent: &PendingLine<'_>, stored: &str) -> Result<Vec<String>, Failure> {
    let damaged = || StoreError::Corrupt {
        uid: sent.uid.clone(),
        ehr_id: sent.ehr_id.clone(),
    };
    listed_uids(stored).ok_or_else(|| Failure::of_store(damaged()))
}

/// Returns the uids of the versions that a CONTRIBUTION lists; `None` if one has no uid.
fn listed_uids(contribution: &str) -> Option<Vec<String>> {
    let value: Value = json::value(contribution).ok()?;
    let uid = |version: &Value| Some(version.pointer("/id/value")?.as_str()?.to_owned());
    value.get("versions")?.as_array()?.iter().map(uid).collect()
}

impl<R: Repository> Service<R> {
    /// Adds the response to a line that this commit did not write: the versions of an earlier
    /// commit of the line, or the error.
    async fn answer_unwritten(
        &self,
        lines: &mut Lines<'_>,
        line: &PendingLine<'_>,
        failure: &Failure,
    ) {
        match self.written_before(line).await {
            Ok(Some(before)) => lines.confirm(line, 200, before.first()),
            Ok(None) => lines.refuse(line.sent.number, failure),
            // It is unknown whether the line was written, so this error replaces `failure`: a 409
            // would state that it was not.
            Err(unknown) => lines.refuse(line.sent.number, &unknown),
        }
    }

    /// Adds a line, and commits when there are enough.
    pub(crate) async fn add_line<'a>(
        &self,
        lines: &mut Lines<'a>,
        sent: SentLine<'a>,
        ready: ReadyLine,
    ) {
        let ReadyLine {
            commit,
            created,
            identity,
            members,
        } = ready;
        lines.sent.push(PendingLine {
            sent,
            ehr_id: commit.ehr_id.clone(),
            uid: commit.contribution_uid.clone(),
            created,
            identity,
            members,
        });
        lines.commits.push(commit);
        lines.bytes += sent.text.len();
        let sizes = self.config.load_sizes;
        if lines.commits.len() >= sizes.commits || lines.bytes >= sizes.bytes {
            self.flush(lines).await;
        }
    }

    /// Commits pending lines and adds their responses.
    pub(crate) async fn flush(&self, lines: &mut Lines<'_>) {
        if lines.commits.is_empty() {
            return;
        }
        lines.bytes = 0;
        // A transaction delays other requests like any other work.
        lines.unpaused = PAUSE;
        let outcomes = self.commit_pending(lines).await;
        let sent = std::mem::take(&mut lines.sent);
        if let Err(failure) = check_outcomes(sent.len(), outcomes.len()) {
            for line in sent {
                lines.refuse(line.sent.number, &failure);
            }
            return;
        }
        // Each change set has its own outcome, in the order of the lines.
        for (line, outcome) in sent.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => {
                    lines.has_committed = true;
                    lines.confirm(&line, 201, line.created.as_ref());
                }
                Err(StoreError::PreconditionFailed) if lines.facts == FactSource::Cached => {
                    lines.retried.push(line.sent.number)
                }
                Err(error) if may_be_duplicate(&error) => {
                    let failure = line.members.failure_of_store(error);
                    self.answer_unwritten(lines, &line, &failure).await;
                }
                Err(error) => {
                    lines.refuse(line.sent.number, &line.members.failure_of_store(error));
                }
            }
        }
    }

    /// Commits pending lines after the earlier parts of the body.
    async fn commit_pending(&self, lines: &mut Lines<'_>) -> Vec<Result<(), StoreError>> {
        let commits = std::mem::take(&mut lines.commits);
        let Some(earlier) = lines.earlier.take() else {
            return self.repository.commit_all(commits).await;
        };
        // The repository awaits `earlier` itself, right before its transaction. The cell reports
        // the outcome back.
        let is_rejected = Rc::new(Cell::new(false));
        let noted = Rc::clone(&is_rejected);
        let earlier = Box::pin(async move {
            let is_written = earlier.await;
            noted.set(!is_written);
            is_written
        });
        let outcomes = self.repository.commit_all_after(commits, earlier).await;
        if is_rejected.get() {
            lines.write_nothing();
        }
        outcomes
    }

    /// Returns the versions of an earlier commit of exactly the same line.
    ///
    /// # Errors
    /// If the repository does not answer.
    async fn written_before(&self, sent: &PendingLine<'_>) -> Result<Option<Vec<String>>, Failure> {
        if sent.identity == LineIdentity::None {
            return Ok(None);
        }
        let stored = self.repository.contribution(&sent.ehr_id, &sent.uid).await;
        let Some(stored) = stored.map_err(Failure::of_store)? else {
            return Ok(None);
        };
        let is_same = match &sent.identity {
            LineIdentity::None => false,
            #[cfg(feature = "server")]
            LineIdentity::Key(key) => {
                self.has_key(sent, key).await? && self.is_complete(sent, &stored).await?
            }
            LineIdentity::Text => {
                self.is_stored(&sent.ehr_id, &stored, sent.sent.text)
                    .await?
            }
        };
        is_same.then(|| uids(sent, &stored)).transpose()
    }

    /// Returns whether the stored contribution of a line was written under this key.
    ///
    /// Only the commit of a line stores a key. An equal uid is no proof: a client may choose the
    /// uid of a contribution, so another caller can commit other content under the uid of this
    /// line.
    #[cfg(feature = "server")]
    async fn has_key(&self, sent: &PendingLine<'_>, key: &str) -> Result<bool, Failure> {
        let stored = self.repository.idempotency(&sent.ehr_id, &sent.uid).await;
        let stored = stored.map_err(Failure::of_store)?;
        Ok(stored.as_deref() == Some(stored_key(key, &sent.uid)))
    }

    /// Returns whether a contribution still has all its versions. A physical deletion of one object
    /// leaves the contribution with the versions of other objects. Other content may have been
    /// stored under the uids of the deleted versions since.
    #[cfg(feature = "server")]
    async fn is_complete(&self, sent: &PendingLine<'_>, stored: &str) -> Result<bool, Failure> {
        let versions = uids(sent, stored)?;
        // A contribution without any version is removed.
        if versions.len() == 1 {
            return Ok(true);
        }
        for version in &versions {
            let (object_id, which) = (object_id_of(version), VersionSelector::Uid(version));
            let found = self
                .repository
                .version(&sent.ehr_id, object_id, which)
                .await;
            let found = found.map_err(Failure::of_store)?;
            if found.is_none_or(|found| found.contribution != sent.uid) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the text that the commit of a line stores to identify it: its key, or an empty text if
/// the key is the uid of its contribution too, which is the case for most lines.
#[cfg(feature = "server")]
fn stored_key<'k>(key: &'k str, contribution_uid: &str) -> &'k str {
    if key == contribution_uid { "" } else { key }
}

/// Returns the lines of a body with their numbers, starting at `first` (1 by default), without
/// blank ones.
///
/// # Errors
/// 400 for a body with more blank lines than others.
pub(crate) fn numbered<'a>(call: &Call<'a>) -> Result<Vec<SentLine<'a>>, Failure> {
    let text = call.text()?;
    // A last line end begins no line.
    let ends = line_ends(text.strip_suffix('\n').unwrap_or(text).as_bytes());
    let first = first_number(call.request, ends)?;
    let lines = (first..).zip(text.lines());
    let lines: Vec<SentLine<'_>> = lines
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(number, text)| SentLine { number, text })
        .collect();
    check_blank_lines(lines.len() as u64, ends + 1)?;
    Ok(lines)
}

/// Returns the number of the first line of a text with this number of line ends.
fn first_number(request: &Request, ends: u64) -> Result<u64, Failure> {
    let first = request
        .query_value("first")
        .map_or(Ok(1), |text| text.parse::<u64>());
    first
        .ok()
        .filter(|first| {
            let last = first.checked_add(ends);
            last.is_some_and(|last| last <= LAST_LINE)
        })
        .ok_or_else(|| {
            Failure::bad_request(format!(
                "`first` is not the number of a line: expected a whole number with which the last line has at most the number {LAST_LINE}"
            ))
        })
}

fn check_blank_lines(others: u64, all: u64) -> Result<(), Failure> {
    let blank = all - others;
    // Millions of newlines would cost a scan for nothing.
    if blank > MAX_BLANK && blank > others {
        return Err(Failure::bad_request(format!(
            "{blank} of {all} lines are blank: send one JSON object a line"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check_outcomes, listed_uids};

    #[test]
    fn contribution_with_a_version_without_uid_is_damaged() {
        let list = |versions: &str| listed_uids(&format!(r#"{{"versions":[{versions}]}}"#));
        let (known, empty) = (r#"{"id":{"value":"a::b::1"}}"#, r#"{"id":{}}"#);
        assert_eq!(list(known), Some(vec![String::from("a::b::1")]));
        assert_eq!(list(&format!("{known},{empty}")), None);
    }

    #[test]
    fn missing_or_surplus_outcomes_are_an_internal_error() {
        let status = |outcomes| check_outcomes(2, outcomes).map_err(|failure| failure.status);
        assert_eq!(
            [0, 1, 2, 3].map(status),
            [Err(500), Err(500), Ok(()), Err(500)]
        );
    }
}
