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
//! the header `Idempotency-Key`, the key, the line number and the text of a line identify it, so an
//! interrupted load can be sent again. A line that was written before gets status 200, and nothing
//! is written. A line with another text that would write existing data is rejected with 409.
//! `first` is the number of the first line.
//!
//! A host may cut a long body between lines and pass the parts one after another ([`part_size`]), with
//! an increased `first`.

use super::auth::Subject;
use super::call::Call;
use super::commit::ChangeSet;
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
use crate::store::repository::{Commit, Ehr, Repository, StoreError};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

/// The maximum number of change sets of a transaction, and the maximum bytes of their lines. In
/// workerd the database shares its thread with requests, which wait during a transaction.
const TOGETHER: usize = 100;
const BYTES: usize = 4_000_000;

/// Bytes of lines between two pauses, and the bytes that a line counts in addition to its length.
const PAUSE: usize = 100_000;
const LINE: usize = 400;

/// Blank lines that a body, or a part of a long one, may have in any case.
const BLANK: usize = 100;

/// The media type of the responses.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// Bytes of a part of a body that is written (it occupies a worker for about 40 ms, and others
/// wait), and of a list of EHRs: those of a thousand.
const PIECES: [usize; 2] = [500_000, 39_000];

/// Returns the bytes that a host may pass at a time of the body of a request, cut between lines, or
/// `None` if it must pass the body at once. The responses then follow one another. Guides run on
/// all parts at one time, `now` (microseconds since 1970), unless the request has another.
#[must_use]
pub fn part_size(request: &mut Request, now: i64) -> Option<usize> {
    let size = size_of_parts(request)?;
    let [_, listed] = PIECES;
    if size == listed && request.query_value("now").is_none() {
        request.query.push((String::from("now"), iso(now)));
    }
    Some(size)
}

/// Returns whether a host may pass the body of a request in parts.
pub(crate) fn is_read_in_parts(request: &Request) -> bool {
    size_of_parts(request).is_some()
}

fn size_of_parts(request: &Request) -> Option<usize> {
    let path = request.path.trim_end_matches('/');
    let [written, listed] = PIECES;
    match request.method == "POST" {
        true if ["/ehr/bulk", "/ehrs/bulk", "/admin/import"]
            .iter()
            .any(|end| path.ends_with(end)) =>
        {
            Some(written)
        }
        true if path.ends_with("/gdl/query") && is_ndjson(request) => Some(listed),
        _ => None,
    }
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
        self.answer(sent.line, status, &summary);
    }
}

/// A load in progress.
#[derive(Default)]
struct Load<'a> {
    lines: Lines<'a>,
    /// The EHRs of the lines so far.
    ehrs: HashMap<String, Rc<Ehr>>,
}

/// The properties of a line that is being committed.
struct PendingLine<'a> {
    line: u64,
    text: &'a str,
    ehr_id: String,
    uid: String,
    created: Option<String>,
    identity: LineIdentity,
}

/// The EHR and the contribution uid of a line.
type Named = (String, Option<String>);

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
                ..Lines::default()
            },
            ..Load::default()
        };
        call.templates.borrow_mut().rely_on(Facts::Cached);
        for (number, text) in numbered(call)? {
            self.add_sent(call, &mut load, number, text).await;
            load.lines.pause(call, text).await;
        }
        self.flush(&mut load.lines).await;
        self.commit_optimistic_lines(call, &mut load).await;
        let retried = std::mem::take(&mut load.lines.retried);
        for (number, text) in numbered(call)?.filter(|(number, _)| retried.contains(number)) {
            self.add_sent(call, &mut load, number, text).await;
            load.lines.pause(call, text).await;
        }
        self.flush(&mut load.lines).await;
        Ok(Response::new(200).with_body(NDJSON, load.lines.out))
    }

    async fn add_sent<'a>(&self, call: &Call<'a>, load: &mut Load<'a>, number: u64, text: &'a str) {
        call.templates.borrow_mut().forget_many();
        let key = call
            .request
            .header("Idempotency-Key")
            .filter(|key| !key.is_empty());
        // Line number and text are part of the identity: the same key with another line is another
        // request.
        let key = key.map(|key| uuid_of(&format!("{}{key}\n{number}\n{text}", caller_key(call))));
        let mut named = None;
        let mut ready = self
            .bulk_line(call, text, key.clone(), load, &mut named)
            .await;
        // The error may come from an outdated template.
        if ready.is_err() && load.lines.facts == Facts::Cached {
            self.commit_optimistic_lines(call, load).await;
            ready = self
                .bulk_line(call, text, key.clone(), load, &mut named)
                .await;
        }
        match ready {
            Ok(ready) => self.add_line(&mut load.lines, number, ready, text).await,
            Err(failure) => {
                // Responses have the order of lines, so pending lines are answered first.
                self.flush(&mut load.lines).await;
                // The line itself may have changed the object since, so its conditions may no
                // longer hold.
                let before = match (key, named) {
                    (Some(key), Some((ehr_id, uid))) if failure.status == 409 => {
                        let created = None;
                        let sent = PendingLine {
                            line: number,
                            text,
                            ehr_id,
                            uid: uid.unwrap_or_else(|| key.clone()),
                            created,
                            identity: LineIdentity::Key(key),
                        };
                        self.written_before(&sent)
                            .await
                            .map(|before| (sent, before))
                    }
                    _ => None,
                };
                match before {
                    Some((sent, before)) => load.lines.confirm(&sent, 200, before.first()),
                    None => load.lines.refuse(number, &failure),
                }
            }
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
        line: u64,
        ready: ReadyLine,
        text: &'a str,
    ) {
        let ReadyLine {
            commit,
            created,
            identity,
        } = ready;
        let (ehr_id, uid) = (commit.ehr_id.clone(), commit.contribution_uid.clone());
        lines.sent.push(PendingLine {
            line,
            text,
            ehr_id,
            uid,
            created,
            identity,
        });
        lines.commits.push(commit);
        lines.bytes += text.len();
        if lines.commits.len() >= TOGETHER || lines.bytes >= BYTES {
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
        let outcomes = self.repository.commit_all(commits).await;
        let sent = std::mem::take(&mut lines.sent);
        if let Err(failure) = check_outcomes(sent.len(), outcomes.len()) {
            for line in sent {
                lines.refuse(line.line, &failure);
            }
            return;
        }
        for (sent, outcome) in sent.into_iter().zip(outcomes) {
            match outcome {
                // Each change set has its own outcome, in the order of the lines.
                Ok(()) => lines.confirm(&sent, 201, sent.created.as_ref()),
                Err(StoreError::PreconditionFailed) if lines.facts == Facts::Cached => {
                    lines.retried.push(sent.line)
                }
                Err(error) => {
                    let before = if may_be_duplicate(&error) {
                        self.written_before(&sent).await
                    } else {
                        None
                    };
                    match before {
                        Some(before) => lines.confirm(&sent, 200, before.first()),
                        None => lines.refuse(sent.line, &Failure::of_store(error)),
                    }
                }
            }
        }
    }

    /// Returns the versions of an earlier commit of exactly the same line.
    async fn written_before(&self, sent: &PendingLine<'_>) -> Option<Vec<String>> {
        if sent.identity == LineIdentity::None {
            return None;
        }
        let stored = self
            .repository
            .contribution(&sent.ehr_id, &sent.uid)
            .await
            .ok()
            .flatten()?;
        let is_same = match &sent.identity {
            LineIdentity::None => false,
            // The uid was derived from the key, so the stored contribution is this line.
            LineIdentity::Key(key) if sent.uid == *key => true,
            LineIdentity::Key(key) => {
                self.repository
                    .idempotency(&sent.ehr_id, &sent.uid)
                    .await
                    .ok()
                    .flatten()
                    .as_ref()
                    == Some(key)
            }
            LineIdentity::Text => self.is_stored(&sent.ehr_id, &stored, sent.text).await,
        };
        is_same.then(|| uids(&stored)).flatten()
    }

    /// Reads and checks a line. `key` identifies it. `named` gets its EHR and the uid of its
    /// contribution as soon as they are known, so that they are known after an error too.
    async fn bulk_line(
        &self,
        call: &Call<'_>,
        text: &str,
        key: Option<String>,
        load: &mut Load<'_>,
        named: &mut Option<Named>,
    ) -> Result<ReadyLine, Failure> {
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
        let turn = call.turn(text.len()).await?;
        for (key, value) in
            members_with(text, &mut take).map_err(|problem| malformed("line", text, problem))?
        {
            match &*key {
                "ehr_id" => {
                    ehr_id = json::text(value)
                        .filter(|id| is_uuid(id))
                        .map(|id| id.to_ascii_lowercase())
                }
                "composition" | "contribution" | "ehr_status" if content.is_none() => {
                    content = Some((key, value))
                }
                other => {
                    return Err(Failure::bad_request(format!(
                        "`{other}` does not belong here: expected `ehr_id` and one of composition, contribution, ehr_status"
                    )));
                }
            }
        }
        drop(turn);
        let ehr_id =
            ehr_id.ok_or_else(|| Failure::bad_request("`ehr_id` is missing, or is not a UUID"))?;
        call.caller
            .within(call.permission, Subject::Some, &ehr_id)?;
        // Only after the permission check: a later error may look up the line in this EHR.
        *named = Some((ehr_id.clone(), None));
        let (kind, value) = content.ok_or_else(|| {
            Failure::bad_request("the line has none of composition, contribution, ehr_status")
        })?;
        let object = key
            .as_ref()
            .map_or_else(|| call.new_uuid(), |key| uuid_of(key));
        let mut set = match &*kind {
            "ehr_status" => {
                let _turn = call.turn(value.len()).await?;
                self.bulk_ehr(call, &ehr_id, object, value)?
            }
            "composition" => {
                let turn = call.turn(value.len()).await?;
                let tree = composition.map_or_else(
                    || read_text(value, Format::Json, Cls::COMPOSITION, COMPOSITION.name),
                    Ok,
                )?;
                drop(turn);
                self.bulk_composition(call, &ehr_id, object, tree).await?
            }
            _ => {
                self.commit_optimistic_lines(call, load).await;
                let turn = call.turn(value.len()).await?;
                let sent = SentContribution::read(value, Format::Json)?;
                drop(turn);
                *named = Some((ehr_id.clone(), sent.uid.clone()));
                let owner = self.bulk_owner(ehr_id, load).await?;
                self.change_set(call, &owner, sent).await?
            }
        };
        set.idempotency = key.clone().filter(|_| set.contribution_uid.is_some());
        set.contribution_uid = set.contribution_uid.or_else(|| key.clone());
        let created = set.changes.first().map(|change| change.uid.to_string());
        let (commit, _) = self.ready(call, set).await?;
        if let Some(ehr) = &commit.new_ehr {
            load.ehrs.insert(ehr.ehr_id.clone(), Rc::new(ehr.clone()));
        }
        Ok(ReadyLine {
            commit,
            created,
            identity: key.map_or(LineIdentity::None, LineIdentity::Key),
        })
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
pub(crate) fn numbered<'a>(
    call: &Call<'a>,
) -> Result<impl Iterator<Item = (u64, &'a str)>, Failure> {
    if !is_ndjson(call.request) {
        return Err(Failure::new(
            415,
            format!("the lines come as {NDJSON}: one JSON object a line"),
        ));
    }
    let text = call.text()?;
    let first = call
        .request
        .query_value("first")
        .map_or(Ok(1), |text| text.parse::<u64>());
    let first = first
        .ok()
        .filter(|first| first.checked_add(text.len() as u64 + 1).is_some());
    let first = first.ok_or_else(|| Failure::bad_request("`first` is not the number of a line: expected a whole number whose lines end below 2⁶⁴"))?;
    let (blank, all) = text.lines().fold((0, 0), |(blank, all), line| {
        (blank + usize::from(line.trim().is_empty()), all + 1)
    });
    if blank > BLANK && blank > all - blank {
        return Err(Failure::bad_request(format!(
            "{blank} of {all} lines are blank: send one JSON object a line"
        )));
    }
    Ok((first..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty()))
}

/// Returns the caller as a part of the identity of a line: the same key of another caller is
/// another key. A service without authentication has one caller.
fn caller_key(call: &Call<'_>) -> String {
    match call.config.auth {
        Auth::Open => String::new(),
        _ => format!("{:?} {:?}\n", call.caller.issuer, call.caller.name),
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
