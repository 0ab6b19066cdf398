//! Many change sets in one request: a line each, an answer a line each.
//!
//! `POST {base}/ehr/bulk` takes newline-delimited JSON. A line names an EHR and one of:
//!
//! | member beside `ehr_id` | meaning |
//! |---|---|
//! | `composition` | a COMPOSITION to create |
//! | `contribution` | a CONTRIBUTION as `POST /ehr/{ehr_id}/contribution` takes it |
//! | `ehr_status` | the EHR_STATUS of an EHR to create under this id; `null` for the default one |
//!
//! Each line is a contribution of its own: what is wrong with one does not touch the others. With the header
//! `Idempotency-Key` a line has the same contribution uid whenever it is sent with this key at this place, so a load that
//! broke off can be sent again; `first` says at which place its first line stands.
//!
//! A host may cut a long body between lines and hand over the pieces one after another ([`piece`]), with `first` moved on.

use super::Service;
use super::auth::Subject;
use super::call::Call;
use super::commit::{Change, ChangeSet};
use super::committal::{Audit, CREATION};
use super::content::{check_plain, malformed, read_text};
use super::contribution::Sent;
use super::controlled::{COMPOSITION, EHR_STATUS};
use super::ehr::DEFAULT_STATUS;
use super::error::Failure;
use super::http::{Request, Response};
use super::ids::{VersionUid, is_uuid};
use super::negotiate::{Format, is_ndjson};
use super::owner::Owner;
use super::time::iso;
use crate::document::digest_of_text;
use crate::rm::class::Cls;
use crate::rm::json::{self, members};
use crate::store::repository::{Commit, Ehr, Repository, StoreError};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Most change sets of a transaction, and most bytes of their lines.
const TOGETHER: usize = 250;
const BYTES: usize = 2_000_000;

/// The media type of the answers.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// Bytes of a piece of a body that is written, and of a list of EHRs: those of a thousand.
const PIECES: [usize; 2] = [4_000_000, 39_000];

/// How many bytes a host may hand over at a time of the body of a request, cut between lines: the answers then follow each other.
/// Guides are run on all pieces at one moment, `now` (microseconds since 1970) unless the request names another.
#[must_use]
pub fn piece(request: &mut Request, now: i64) -> Option<usize> {
    let path = request.path.trim_end_matches('/');
    let [written, listed] = PIECES;
    match request.method == "POST" {
        true if ["/ehr/bulk", "/ehrs/bulk", "/admin/import"].iter().any(|end| path.ends_with(end)) => Some(written),
        true if path.ends_with("/gdl/query") && is_ndjson(request) => {
            if request.query_value("now").is_none() {
                request.query.push((String::from("now"), iso(now)));
            }
            Some(listed)
        }
        _ => None,
    }
}

/// A line that is ready to be committed.
pub(crate) struct Ready {
    /// What is written.
    pub commit: Commit,
    /// What is answered when it is written.
    pub answer: Value,
    /// What stands there already under this uid must be the same to the letter; else the same number of versions.
    pub exact: bool,
}

/// Lines on their way, and the answers to those before them.
#[derive(Default)]
pub(crate) struct Lines {
    pending: Vec<(u64, Ready)>,
    bytes: usize,
    out: String,
}

impl Lines {
    /// The answers.
    pub fn into_text(self) -> String {
        self.out
    }

    /// Adds the answer to a line.
    pub fn answer(&mut self, line: u64, status: u16, mut answer: Value) {
        if let Some(members) = answer.as_object_mut() {
            members.insert("line".into(), line.into());
            members.insert("status".into(), status.into());
        }
        self.out.push_str(&answer.to_string());
        self.out.push('\n');
    }

    /// Adds the answer to a line that is wrong.
    pub fn refuse(&mut self, line: u64, failure: &Failure) {
        self.answer(line, failure.status, failure.body());
    }
}

/// What is remembered of a line while it is committed.
struct Sending {
    ehr_id: String,
    uid: String,
    document: String,
    answer: Value,
    exact: bool,
}

impl Sending {
    fn of(ready: &Ready) -> Sending {
        let commit = &ready.commit;
        let (ehr_id, uid, document) = (commit.ehr_id.clone(), commit.contribution_uid.clone(), commit.contribution.clone());
        Sending { ehr_id, uid, document, answer: ready.answer.clone(), exact: ready.exact }
    }
}

/// The uids of the versions that a CONTRIBUTION lists.
fn uids(document: &str) -> Option<Vec<Value>> {
    let value: Value = json::value(document).ok()?;
    Some(value.get("versions")?.as_array()?.iter().filter_map(|v| v.pointer("/id/value").cloned()).collect())
}

impl<R: Repository> Service<R> {
    /// POST /ehr/bulk
    pub(super) async fn bulk(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let key = call.request.header("Idempotency-Key").filter(|key| !key.is_empty());
        let (mut lines, mut ehrs) = (Lines::default(), HashMap::new());
        for (number, text) in numbered(call)? {
            let uid = key.map(|key| uuid_of(&format!("{key}\n{number}\n{text}")));
            match self.bulk_line(call, text, uid, &mut ehrs).await {
                Ok(ready) => self.add_line(&mut lines, number, ready, text.len()).await,
                Err(failure) => {
                    self.flush(&mut lines).await;
                    lines.refuse(number, &failure);
                }
            }
        }
        self.flush(&mut lines).await;
        Ok(Response::new(200).with_body(NDJSON, lines.out))
    }

    /// Takes a line in; commits when there are enough.
    pub(crate) async fn add_line(&self, lines: &mut Lines, number: u64, ready: Ready, bytes: usize) {
        lines.pending.push((number, ready));
        lines.bytes += bytes;
        if lines.pending.len() >= TOGETHER || lines.bytes >= BYTES {
            self.flush(lines).await;
        }
    }

    /// Commits what is pending and answers its lines.
    pub(crate) async fn flush(&self, lines: &mut Lines) {
        let (numbers, ready): (Vec<u64>, Vec<Ready>) = std::mem::take(&mut lines.pending).into_iter().unzip();
        lines.bytes = 0;
        if ready.is_empty() {
            return;
        }
        let sent: Vec<Sending> = ready.iter().map(Sending::of).collect();
        let outcomes = self.repository.commit_all(ready.into_iter().map(|r| r.commit).collect()).await;
        for ((number, sending), outcome) in numbers.into_iter().zip(sent).zip(outcomes) {
            match outcome {
                Ok(()) => lines.answer(number, 201, sending.answer),
                Err(error) => match self.written_before(&sending, &error).await {
                    Some(before) => lines.answer(number, 200, before),
                    None => lines.refuse(number, &Failure::of_store(error)),
                },
            }
        }
    }

    /// What a line has made when it was sent before.
    async fn written_before(&self, sent: &Sending, error: &StoreError) -> Option<Value> {
        if !matches!(error, StoreError::UidExists(_) | StoreError::EhrExists | StoreError::Stale { .. } | StoreError::DirectoryExists) {
            return None;
        }
        let stored = self.repository.contribution(&sent.ehr_id, &sent.uid).await.ok().flatten()?;
        let (before, now) = (uids(&stored)?, uids(&sent.document)?);
        let same = if sent.exact { stored == sent.document } else { before.len() == now.len() };
        same.then(|| json!({ "uid": before.first(), "contribution": sent.uid }))
    }

    async fn bulk_line(&self, call: &Call<'_>, text: &str, uid: Option<String>, ehrs: &mut HashMap<String, Ehr>) -> Result<Ready, Failure> {
        let (mut ehr_id, mut content) = (None, None);
        for (key, value) in members(text).map_err(|problem| malformed("line", text, problem))? {
            match &*key {
                "ehr_id" => ehr_id = json::text(value).filter(|id| is_uuid(id)).map(|id| id.to_ascii_lowercase()),
                "composition" | "contribution" | "ehr_status" if content.is_none() => content = Some((key, value)),
                other => {
                    return Err(Failure::bad(format!(
                        "`{other}` does not belong here: expected `ehr_id` and one of composition, contribution, ehr_status"
                    )));
                }
            }
        }
        let ehr_id = ehr_id.ok_or_else(|| Failure::bad("`ehr_id` is missing, or is not a UUID"))?;
        call.caller.within(call.need, Subject::Some, &ehr_id)?;
        let (kind, value) = content.ok_or_else(|| Failure::bad("the line has none of composition, contribution, ehr_status"))?;
        let object = uid.as_ref().map_or_else(|| call.new_uuid(), |uid| uuid_of(uid));
        let mut set = match &*kind {
            "ehr_status" => self.bulk_ehr(call, &ehr_id, object, value)?,
            "composition" => self.bulk_composition(call, &ehr_id, object, value).await?,
            _ => {
                let owner = self.bulk_owner(ehr_id, ehrs).await?;
                self.change_set(call, &owner, Sent::read(value, Format::Json)?).await?
            }
        };
        set.contribution_uid = set.contribution_uid.or(uid);
        let created = set.changes.first().map(|change| change.uid.to_string());
        let (commit, _) = self.ready(call, set).await?;
        if let Some(ehr) = &commit.new_ehr {
            ehrs.insert(ehr.ehr_id.clone(), ehr.clone());
        }
        let answer = json!({ "uid": created, "contribution": commit.contribution_uid });
        Ok(Ready { commit, answer, exact: false })
    }

    fn bulk_ehr(&self, call: &Call<'_>, ehr_id: &str, object_id: String, value: &str) -> Result<ChangeSet, Failure> {
        let text = if value == "null" { DEFAULT_STATUS } else { value };
        let status = check_plain(call, read_text(text, Format::Json, Cls::EHR_STATUS, EHR_STATUS.name)?, EHR_STATUS.name)?;
        let uid = VersionUid { object_id, system_id: self.config.system_id.clone(), number: 1 };
        let audit = Audit::of_headers(call.request, CREATION)?;
        let change = Change { kind: EHR_STATUS.kind, uid, preceding: None, audit, content: Some(status), extra: None, tags: Vec::new() };
        Ok(ChangeSet { creates_ehr: true, ..ChangeSet::of(ehr_id, change) })
    }

    /// The EHR is not asked for: the database refuses the commit where there is none, or where it allows no modification.
    async fn bulk_composition(&self, call: &Call<'_>, ehr_id: &str, object_id: String, value: &str) -> Result<ChangeSet, Failure> {
        let content = self.check_composition(call, read_text(value, Format::Json, Cls::COMPOSITION, COMPOSITION.name)?).await?;
        let uid = VersionUid { object_id, system_id: self.config.system_id.clone(), number: 1 };
        let audit = Audit::of_headers(call.request, CREATION)?;
        let change = Change { kind: COMPOSITION.kind, uid, preceding: None, audit, content: Some(content), extra: None, tags: Vec::new() };
        let template = change.content.as_ref().and_then(|content| content.template_id.as_deref());
        let grounds = template.and_then(|id| self.library.latest(id)).map(|(grounds, _)| grounds);
        Ok(ChangeSet { grounds, ..ChangeSet::of(ehr_id, change) })
    }

    /// The EHR of a line, which may be made by a line before it.
    async fn bulk_owner(&self, ehr_id: String, ehrs: &mut HashMap<String, Ehr>) -> Result<Owner, Failure> {
        if let Some(known) = ehrs.get(&ehr_id) {
            return Ok(Owner::Ehr(known.clone()));
        }
        let ehr = self.ehr_with_id(&ehr_id).await?;
        ehrs.insert(ehr_id, ehr.clone());
        Ok(Owner::Ehr(ehr))
    }
}

/// The lines of a body with their places, from `first` (1 by default).
pub(crate) fn numbered<'a>(call: &Call<'a>) -> Result<impl Iterator<Item = (u64, &'a str)>, Failure> {
    if !is_ndjson(call.request) {
        return Err(Failure::new(415, format!("the lines come as {NDJSON}: one JSON object a line")));
    }
    let first = call.request.query_value("first").map_or(Ok(1), |text| text.parse::<u64>());
    let first = first.map_err(|_| Failure::bad("`first` is not the number of a line"))?;
    Ok((first..).zip(call.text()?.lines()).filter(|(_, line)| !line.trim().is_empty()))
}

/// A UUID that follows from a text.
fn uuid_of(text: &str) -> String {
    let digest = digest_of_text(text);
    let bytes = u128::from_str_radix(digest.get(..32).unwrap_or_default(), 16).unwrap_or_default().to_be_bytes();
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}
