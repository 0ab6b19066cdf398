//! Many change sets in one request: one on each line, with one line of the response for each.
//!
//! `POST {base}/ehr/bulk` reads newline-delimited JSON. A line names an EHR and one of:
//!
//! | member beside `ehr_id` | meaning |
//! |---|---|
//! | `composition` | a COMPOSITION to create |
//! | `contribution` | a CONTRIBUTION in the form of `POST /ehr/{ehr_id}/contribution` |
//! | `ehr_status` | the EHR_STATUS of an EHR to create under this id; `null` for the default one |
//!
//! Each line is a contribution of its own: an error of one line does not affect the others. With
//! the header `Idempotency-Key`, the key, the committal headers, the line number and the text of a
//! line identify it, so an interrupted load can be sent again. A line that was written before gets status 200, and nothing
//! is written. A line with another text that would write existing data is rejected with 409.
//! `first` is the number of the first line.
//!
//! A host may cut a long body between lines and pass the parts one after another ([`part_size`]), with
//! an increased `first`.

use super::auth::Subject;
use super::call::Call;
use super::commit::ChangeSet;
use super::committal::CommitMetadata;
use super::content::{Rigor, check_plain, malformed, read_text};
use super::contribution::SentContribution;
use super::document_class::{COMPOSITION, EHR_STATUS};
use super::ehr::DEFAULT_STATUS;
use super::error::Failure;
use super::http::{Request, Response};
use super::identity::given_object_id;
use super::ids::{is_uuid, uuid_of};
use super::negotiate::{Format, is_ndjson};
use super::owner::Owner;
use super::templates::Facts;
use super::time::iso;
use super::{Auth, Service};
use crate::rm::class::Cls;
use crate::rm::json::{self, Scanner, members_with};
use crate::rm::tree::Tree;
use crate::store::canonical::object;
use crate::store::repository::{Commit, EarlierCommits, Ehr, Repository, StoreError};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

/// The sizes of the pieces in which a host processes the lines of a load. Larger pieces cost less
/// for each line, because each has a transaction; during smaller ones others wait for less time.
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

/// The sizes in workerd, where the database shares its thread with requests: they wait during a
/// transaction. A part occupies a worker for about 40 ms, and a line for 40 µs at least.
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

/// Bytes of lines between two pauses, and the bytes that a line counts in addition to its length.
const PAUSE: usize = 100_000;
const LINE: usize = 400;

/// Blank lines that a body, or a part of a long one, may have in any case.
const BLANK: usize = 100;

/// The media type of the responses.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// Bytes of a part of a list of EHRs: those of a thousand.
const LISTED: usize = 39_000;

/// Returns the bytes that a host may pass at a time of the body of a request, cut between lines, or
/// `None` if it must pass the body at once. The responses then follow one another. Guides run on
/// all parts at one time, `now` (microseconds since 1970), unless the request has another.
#[must_use]
pub fn part_size(request: &mut Request, now: i64, sizes: LoadSizes) -> Option<usize> {
    let lines = lines_of(request)?;
    if lines == BodyLines::Ehrs && request.query_value("now").is_none() {
        request.query.push((String::from("now"), iso(now)));
    }
    Some(match lines {
        BodyLines::Changes => sizes.part,
        BodyLines::Ehrs => LISTED,
    })
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
    /// The EHRs on which guides run.
    Ehrs,
}

fn lines_of(request: &Request) -> Option<BodyLines> {
    let path = request.path.trim_end_matches('/');
    let written = ["/ehr/bulk", "/ehrs/bulk", "/admin/import"];
    match request.method == "POST" {
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
}

/// The identification of a line that was written before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum LineIdentity {
    /// Lines have no identity: a line that would write existing data is rejected.
    None,
    /// A UUID of key, number and text of the line.
    Key(String),
    /// The text of the line, which must equal the stored one.
    Text,
}

/// Lines in progress, and the responses to those before them.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    /// The parts of the body before this one, until they are answered.
    earlier: Option<EarlierCommits>,
    commits: Vec<Commit>,
    sent: Vec<PendingLine<'a>>,
    bytes: usize,
    /// Bytes of lines since the last pause.
    unpaused: usize,
    out: String,
    /// The source of the templates of the lines. With cached ones, a line whose precondition fails
    /// is read again among [`Lines::retried`].
    facts: Facts,
    retried: Vec<u64>,
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
        // Nothing after the rejected part is written.
        self.earlier = Some(Box::pin(std::future::ready(false)));
        let message = "an earlier part of the load was rejected";
        Err(Failure::new(503, message))
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
        self.unpaused += LINE + text.len();
        if self.unpaused >= PAUSE {
            self.unpaused = 0;
            call.pause().await;
        }
    }

    /// Adds the response to a line: a JSON object, which gets line number and status.
    pub fn answer(&mut self, line: u64, status: u16, object: &str) {
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

/// A load in progress.
#[derive(Default)]
struct Load<'a> {
    lines: Lines<'a>,
    /// The EHRs of the lines so far.
    ehrs: HashMap<String, Rc<Ehr>>,
    /// The target of the line in progress, as soon as it is known and the caller may write to it.
    /// It is needed if the line has an error too.
    target: Option<LineTarget>,
}

/// The contribution that a line writes.
struct LineTarget {
    ehr_id: String,
    /// The uid that the client supplied.
    contribution_uid: Option<String>,
}

/// The properties of a line that is being committed.
struct PendingLine<'a> {
    sent: SentLine<'a>,
    ehr_id: String,
    /// The uid of the contribution.
    uid: String,
    created: Option<String>,
    identity: LineIdentity,
}

/// The members of a line of `POST /ehr/bulk`.
struct BulkLine<'a> {
    ehr_id: String,
    content: Option<LineContent<'a>>,
    /// The composition of the line, if it is valid.
    composition: Option<Tree>,
}

/// The member of a line that has its content.
struct LineContent<'a> {
    /// `composition`, `contribution` or `ehr_status`.
    name: Cow<'a, str>,
    json: &'a str,
}

impl<'a> BulkLine<'a> {
    fn read(text: &'a str) -> Result<BulkLine<'a>, Failure> {
        let (mut ehr_id, mut content, mut composition) = (None, None, None);
        // A valid composition is read where it occurs. Errors of an invalid one are reported after
        // the complete line was read.
        let mut take = |key: &str, scan: &mut Scanner<'_>| {
            if key == "composition" && composition.is_none() {
                composition = json::read_next(scan, Cls::COMPOSITION);
                return composition.is_some();
            }
            false
        };
        let members = members_with(text, &mut take);
        for (name, json) in members.map_err(|problem| malformed("line", text, problem))? {
            match &*name {
                "ehr_id" => ehr_id = json::text(json).filter(|id| is_uuid(id)),
                "composition" | "contribution" | "ehr_status" if content.is_none() => {
                    content = Some(LineContent { name, json });
                }
                other => {
                    return Err(Failure::bad_request(format!(
                        "`{other}` does not belong here: expected `ehr_id` and one of composition, contribution, ehr_status"
                    )));
                }
            }
        }
        let missing = || Failure::bad_request("`ehr_id` is missing, or is not a UUID");
        Ok(BulkLine {
            ehr_id: ehr_id.ok_or_else(missing)?.to_ascii_lowercase(),
            content,
            composition,
        })
    }
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
    Err(Failure::new(500, message))
}

/// Returns the uids of the versions that a CONTRIBUTION lists.
fn uids(document: &str) -> Option<Vec<String>> {
    let value: Value = json::value(document).ok()?;
    Some(
        value
            .get("versions")?
            .as_array()?
            .iter()
            .filter_map(|v| Some(v.pointer("/id/value")?.as_str()?.to_owned()))
            .collect(),
    )
}

impl<R: Repository> Service<R> {
    /// POST /ehr/bulk
    ///
    /// Known templates are not read again: the database rejects a commit if its template has
    /// changed. Such a line, and a line that is invalid by a known template, is checked again with
    /// the definitions of the database.
    pub(super) async fn bulk(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.commit_headers()?;
        let mut load = Load {
            lines: Lines {
                facts: Facts::Cached,
                ..Lines::begin(call)
            },
            ..Load::default()
        };
        call.templates.borrow_mut().rely_on(Facts::Cached);
        for line in numbered(call)? {
            self.add_sent(call, &mut load, line).await;
            load.lines.pause(call, line.text).await;
        }
        self.flush(&mut load.lines).await;
        self.commit_optimistic_lines(call, &mut load).await;
        let retried = std::mem::take(&mut load.lines.retried);
        for line in numbered(call)?.filter(|line| retried.contains(&line.number)) {
            self.add_sent(call, &mut load, line).await;
            load.lines.pause(call, line.text).await;
        }
        self.flush(&mut load.lines).await;
        Ok(Response::new(200).with_body(NDJSON, load.lines.out))
    }

    async fn add_sent<'a>(&self, call: &Call<'a>, load: &mut Load<'a>, line: SentLine<'a>) {
        call.templates.borrow_mut().forget_many();
        let key = line_key(call, line);
        load.target = None;
        let mut ready = self.bulk_line(call, line.text, key.as_ref(), load).await;
        // The error may come from an outdated template.
        if ready.is_err() && load.lines.facts == Facts::Cached {
            self.commit_optimistic_lines(call, load).await;
            ready = self.bulk_line(call, line.text, key.as_ref(), load).await;
        }
        match ready {
            Ok(ready) => self.add_line(&mut load.lines, line, ready).await,
            Err(failure) => self.answer_invalid(load, line, key, failure).await,
        }
    }

    /// Adds the response to a line that cannot be committed.
    async fn answer_invalid<'a>(
        &self,
        load: &mut Load<'a>,
        line: SentLine<'a>,
        key: Option<String>,
        failure: Failure,
    ) {
        // Responses have the order of lines, so pending lines are answered first.
        self.flush(&mut load.lines).await;
        match (key, load.target.take()) {
            // The line itself may have changed the object since, so its conditions may no longer
            // hold.
            (Some(key), Some(target)) if failure.status == 409 => {
                if let Err(ended) = load.lines.await_earlier_parts().await {
                    return load.lines.refuse(line.number, &ended);
                }
                let pending = PendingLine {
                    sent: line,
                    ehr_id: target.ehr_id,
                    uid: target.contribution_uid.unwrap_or_else(|| key.clone()),
                    created: None,
                    identity: LineIdentity::Key(key),
                };
                let lines = &mut load.lines;
                self.answer_unwritten(lines, &pending, &failure).await;
            }
            _ => load.lines.refuse(line.number, &failure),
        }
    }

    /// Adds the response to a line that was not written now: the versions that it wrote before, or
    /// the error.
    async fn answer_unwritten(
        &self,
        lines: &mut Lines<'_>,
        line: &PendingLine<'_>,
        failure: &Failure,
    ) {
        match self.written_before(line).await {
            Ok(Some(before)) => lines.confirm(line, 200, before.first()),
            Ok(None) => lines.refuse(line.sent.number, failure),
            // Whether the line was written is unknown: 409 would be a definite answer.
            Err(unknown) => lines.refuse(line.sent.number, &unknown),
        }
    }

    /// Commits the lines that rely on cached templates. Later lines rely on stored ones.
    async fn commit_optimistic_lines(&self, call: &Call<'_>, load: &mut Load<'_>) {
        if load.lines.facts == Facts::Cached {
            self.flush(&mut load.lines).await;
            load.lines.facts = Facts::Stored;
            call.templates.borrow_mut().rely_on(Facts::Stored);
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
        } = ready;
        lines.sent.push(PendingLine {
            sent,
            ehr_id: commit.ehr_id.clone(),
            uid: commit.contribution_uid.clone(),
            created,
            identity,
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
        let commits = std::mem::take(&mut lines.commits);
        let outcomes = match lines.earlier.take() {
            None => self.repository.commit_all(commits).await,
            Some(earlier) => self.repository.commit_all_after(commits, earlier).await,
        };
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
                Ok(()) => lines.confirm(&line, 201, line.created.as_ref()),
                Err(StoreError::PreconditionFailed) if lines.facts == Facts::Cached => {
                    lines.retried.push(line.sent.number)
                }
                Err(error) if may_be_duplicate(&error) => {
                    let failure = Failure::of_store(error);
                    self.answer_unwritten(lines, &line, &failure).await;
                }
                Err(error) => lines.refuse(line.sent.number, &Failure::of_store(error)),
            }
        }
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
            LineIdentity::Key(key) => self.has_key(sent, key).await?,
            LineIdentity::Text => {
                self.is_stored(&sent.ehr_id, &stored, sent.sent.text)
                    .await?
            }
        };
        Ok(is_same.then(|| uids(&stored)).flatten())
    }

    /// Returns whether the stored contribution of a line was written under this key.
    async fn has_key(&self, sent: &PendingLine<'_>, key: &String) -> Result<bool, Failure> {
        // A uid that was derived from the key is that of this line.
        if sent.uid == *key {
            return Ok(true);
        }
        let stored = self.repository.idempotency(&sent.ehr_id, &sent.uid).await;
        Ok(stored.map_err(Failure::of_store)?.as_ref() == Some(key))
    }

    /// Reads and checks a line. `key` identifies it. The target of the load becomes that of the line
    /// as soon as it is known.
    async fn bulk_line(
        &self,
        call: &Call<'_>,
        text: &str,
        key: Option<&String>,
        load: &mut Load<'_>,
    ) -> Result<ReadyLine, Failure> {
        let turn = call.turn(text.len()).await?;
        let line = BulkLine::read(text)?;
        drop(turn);
        call.caller
            .within(call.permission, Subject::Some, &line.ehr_id)?;
        // Only after the permission check: a later error may look up the line in this EHR.
        load.target = Some(LineTarget {
            ehr_id: line.ehr_id.clone(),
            contribution_uid: None,
        });
        let object_id = key.map_or_else(|| call.new_uuid(), |key| uuid_of(key));
        let mut set = self.bulk_change_set(call, line, object_id, load).await?;
        set.idempotency = key.cloned().filter(|_| set.contribution_uid.is_some());
        set.contribution_uid = set.contribution_uid.or_else(|| key.cloned());
        let created = set.changes.first().map(|change| change.uid.to_string());
        let (commit, _) = self.ready(call, set).await?;
        if let Some(ehr) = &commit.new_ehr {
            load.ehrs.insert(ehr.ehr_id.clone(), Rc::new(ehr.clone()));
        }
        Ok(ReadyLine {
            commit,
            created,
            identity: key.map_or(LineIdentity::None, |key| LineIdentity::Key(key.clone())),
        })
    }

    /// Returns the change set of a line. `object_id` is the id of an object that the line creates
    /// outside a contribution.
    async fn bulk_change_set(
        &self,
        call: &Call<'_>,
        line: BulkLine<'_>,
        object_id: String,
        load: &mut Load<'_>,
    ) -> Result<ChangeSet, Failure> {
        let ehr_id = line.ehr_id;
        let LineContent { name, json } = line.content.ok_or_else(|| {
            Failure::bad_request("the line has none of composition, contribution, ehr_status")
        })?;
        if name == "contribution" {
            return self.bulk_contribution(call, ehr_id, json, load).await;
        }
        let turn = call.turn(json.len()).await?;
        if name == "ehr_status" {
            return self.bulk_ehr(call, &ehr_id, object_id, json);
        }
        let tree = line.composition.map_or_else(
            || read_text(json, Format::Json, Cls::COMPOSITION, COMPOSITION.name),
            Ok,
        )?;
        drop(turn);
        self.bulk_composition(call, &ehr_id, object_id, tree).await
    }

    async fn bulk_contribution(
        &self,
        call: &Call<'_>,
        ehr_id: String,
        json: &str,
        load: &mut Load<'_>,
    ) -> Result<ChangeSet, Failure> {
        // The templates of a contribution are no preconditions of its commit, so cached ones do not
        // suffice.
        self.commit_optimistic_lines(call, load).await;
        load.lines.await_earlier_parts().await?;
        let sent = SentContribution::read(call, json, Format::Json).await?;
        load.target = Some(LineTarget {
            ehr_id: ehr_id.clone(),
            contribution_uid: sent.uid.clone(),
        });
        let owner = self.bulk_owner(ehr_id, load).await?;
        self.change_set(call, &owner, sent).await
    }

    fn bulk_ehr(
        &self,
        call: &Call<'_>,
        ehr_id: &str,
        object_id: String,
        value: &str,
    ) -> Result<ChangeSet, Failure> {
        let text = if value == "null" {
            DEFAULT_STATUS
        } else {
            value
        };
        let status = check_plain(
            call,
            read_text(text, Format::Json, Cls::EHR_STATUS, EHR_STATUS.name)?,
            EHR_STATUS.name,
        )?;
        let change = self.first_version(call, EHR_STATUS.kind, object_id, status)?;
        Ok(ChangeSet {
            creates_ehr: true,
            ..ChangeSet::single(ehr_id, change)
        })
    }

    /// The EHR is not read: the database rejects the commit if there is none, or if it is not
    /// modifiable.
    async fn bulk_composition(
        &self,
        call: &Call<'_>,
        ehr_id: &str,
        object_id: String,
        tree: Tree,
    ) -> Result<ChangeSet, Failure> {
        let rigor = Rigor::from_audit(&call.creation_audit()?);
        let content = self.check_composition(call, tree, rigor).await?;
        let object_id = given_object_id(call, content.tree.root())?.unwrap_or(object_id);
        let change = self.first_version(call, COMPOSITION.kind, object_id, content)?;
        Ok(ChangeSet {
            // Also with stored templates: many lines may come between the read and the commit.
            names_templates: true,
            ..ChangeSet::single(ehr_id, change)
        })
    }

    /// Returns the EHR of a line, which an earlier line may create. Earlier lines may also change
    /// `is_modifiable`, so the commit checks it, and not this function.
    async fn bulk_owner(&self, ehr_id: String, load: &mut Load<'_>) -> Result<Owner, Failure> {
        let known = match load.ehrs.get(&ehr_id) {
            Some(known) => Rc::clone(known),
            None => Rc::new(self.ehr_with_id(&ehr_id).await?),
        };
        load.ehrs.insert(ehr_id, Rc::clone(&known));
        Ok(Owner::Ehr(Ehr {
            is_modifiable: true,
            ..Ehr::clone(&known)
        }))
    }
}

/// Returns the lines of a body with their numbers, starting at `first` (1 by default), without
/// blank ones.
///
/// # Errors
/// 400 for a body with more blank lines than others.
pub(crate) fn numbered<'a>(call: &Call<'a>) -> Result<impl Iterator<Item = SentLine<'a>>, Failure> {
    if !is_ndjson(call.request) {
        return Err(Failure::new(
            415,
            format!("the lines come as {NDJSON}: one JSON object a line"),
        ));
    }
    let text = call.text()?;
    let first = first_number(call.request, text)?;
    check_blank_lines(text)?;
    Ok((first..)
        .zip(text.lines())
        .map(|(number, text)| SentLine { number, text })
        .filter(|line| !line.text.trim().is_empty()))
}

/// Returns the number of the first line of a text.
fn first_number(request: &Request, text: &str) -> Result<u64, Failure> {
    let first = request
        .query_value("first")
        .map_or(Ok(1), |text| text.parse::<u64>());
    first
        .ok()
        .filter(|first| first.checked_add(text.len() as u64 + 1).is_some())
        .ok_or_else(|| Failure::bad_request("`first` is not the number of a line: expected a whole number whose lines end below 2⁶⁴"))
}

fn check_blank_lines(text: &str) -> Result<(), Failure> {
    let (blank, all) = text.lines().fold((0, 0), |(blank, all), line| {
        (blank + usize::from(line.trim().is_empty()), all + 1)
    });
    if blank > BLANK && blank > all - blank {
        return Err(Failure::bad_request(format!(
            "{blank} of {all} lines are blank: send one JSON object a line"
        )));
    }
    Ok(())
}

/// Returns the identifier of a line by the header `Idempotency-Key`.
///
/// All that determines the commit is part of the identity: the same key with another line, or with
/// other committal headers, is another request.
fn line_key(call: &Call<'_>, line: SentLine<'_>) -> Option<String> {
    let key = call.request.header("Idempotency-Key");
    let key = key.filter(|key| !key.is_empty())?;
    let SentLine { number, text } = line;
    let (caller, committal) = (caller_key(call), committal_key(call));
    Some(uuid_of(&format!(
        "{caller}{committal}{key}\n{number}\n{text}"
    )))
}

/// Returns the caller as a part of the identity of a line: the same key of another caller is
/// another key. A service without authentication has one caller.
fn caller_key(call: &Call<'_>) -> String {
    match call.config.auth {
        Auth::Open => String::new(),
        _ => format!("{:?} {:?}\n", call.caller.issuer, call.caller.name),
    }
}

/// Returns the committal headers as a part of the identity of a line; empty without any. Two
/// spellings of the same metadata are the same.
fn committal_key(call: &Call<'_>) -> String {
    match call.commit_headers() {
        Ok(stated) if *stated != CommitMetadata::default() => format!("{stated:?}\n"),
        // Headers that cannot be read reject the whole load.
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::check_outcomes;

    #[test]
    fn missing_or_surplus_outcomes_are_an_internal_error() {
        let status = |outcomes| check_outcomes(2, outcomes).map_err(|failure| failure.status);
        assert_eq!(
            [0, 1, 2, 3].map(status),
            [Err(500), Err(500), Ok(()), Err(500)]
        );
    }
}
