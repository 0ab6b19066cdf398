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
//! Each line is a contribution of its own: what is wrong with one does not touch the others. With
//! the header `Idempotency-Key` key, place and text of a line identify it, so a load that broke off
//! can be sent again: a line that was written is answered 200, and nothing is written. A line with
//! any other text that would write what exists is refused with 409. `first` says at which place the
//! first line stands.
//!
//! A host may cut a long body between lines and hand over the pieces one after another ([`piece`]),
//! with `first` moved on.

use super::auth::Subject;
use super::call::Call;
use super::commit::ChangeSet;
use super::content::{Rigor, check_plain, malformed, named_template, read_text};
use super::contribution::Sent;
use super::controlled::{COMPOSITION, EHR_STATUS};
use super::ehr::DEFAULT_STATUS;
use super::error::Failure;
use super::http::{Request, Response};
use super::identity::given_object_id;
use super::ids::{is_uuid, uuid_of};
use super::negotiate::{Format, is_ndjson};
use super::owner::Owner;
use super::time::iso;
use super::{Auth, Service};
use crate::rm::class::Cls;
use crate::rm::json::{self, Scanner, members_with};
use crate::rm::tree::Tree;
use crate::store::repository::{Commit, Ehr, Preconditions, Repository, StoreError};
use crate::store::statement::object;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fmt::Write;
use std::rc::Rc;

/// Most change sets of a transaction, and most bytes of their lines. Where the database shares its
/// thread with requests, as in workerd, others wait for a transaction.
const TOGETHER: usize = 100;
const BYTES: usize = 4_000_000;

/// Bytes of lines that are read between two pauses, and what a line counts beside its bytes.
const PAUSE: usize = 100_000;
const LINE: usize = 400;

/// Blank lines of a body, or of a piece of a long one, that are passed over whatever else it has.
const BLANK: usize = 100;

/// The media type of the answers.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// Bytes of a piece of a body that is written (a worker is busy with it for some 40 ms, and others
/// wait), and of a list of EHRs: those of a thousand.
const PIECES: [usize; 2] = [500_000, 39_000];

/// How many bytes a host may hand over at a time of the body of a request, cut between lines: the
/// answers then follow each other. Guides are run on all pieces at one moment, `now` (microseconds
/// since 1970) unless the request names another.
#[must_use]
pub fn piece(request: &mut Request, now: i64) -> Option<usize> {
    let size = size_of_pieces(request)?;
    let [_, listed] = PIECES;
    if size == listed && request.query_value("now").is_none() {
        request.query.push((String::from("now"), iso(now)));
    }
    Some(size)
}

/// True for a request whose body a host may hand over in pieces.
pub(crate) fn takes_pieces(request: &Request) -> bool {
    size_of_pieces(request).is_some()
}

fn size_of_pieces(request: &Request) -> Option<usize> {
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

/// A line that is ready to be committed.
pub(crate) struct Ready {
    /// What is written.
    pub commit: Commit,
    /// The uid of the version that is answered when it is written.
    pub created: Option<String>,
    /// What tells that the same line was written before.
    pub identity: Identity,
}

/// What tells that a line was written before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Identity {
    /// Nothing: a line that would write what exists is refused.
    None,
    /// A UUID of key, place and text of the line.
    Key(String),
    /// The text of the line, which must be what is stored.
    Text,
}

/// Lines on their way, and the answers to those before them.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    commits: Vec<Commit>,
    sent: Vec<Sending<'a>>,
    bytes: usize,
    /// Bytes of lines since the last pause.
    unpaused: usize,
    out: String,
    /// What is known of templates from before is taken for granted.
    trusting: bool,
    /// Lines whose template turned out to be another one.
    again: Vec<u64>,
}

impl<'a> Lines<'a> {
    /// The answers.
    pub fn into_text(self) -> String {
        self.out
    }

    /// The bytes of the answers so far.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Lets others work after some lines; `text` is the line that was read.
    pub async fn pause(&mut self, call: &Call<'_>, text: &str) {
        self.unpaused += LINE + text.len();
        if self.unpaused >= PAUSE {
            self.unpaused = 0;
            call.pause().await;
        }
    }

    /// Adds the answer to a line: an object as JSON, to which place and status come.
    pub fn answer(&mut self, line: u64, status: u16, object: &str) {
        let members = object.strip_suffix('}').unwrap_or_default();
        let comma = if members.ends_with('{') { "" } else { "," };
        let _ = writeln!(
            self.out,
            r#"{members}{comma}"line":{line},"status":{status}}}"#
        );
    }

    /// Adds the answer to a line that is wrong.
    pub fn refuse(&mut self, line: u64, failure: &Failure) {
        self.answer(line, failure.status, &failure.body().to_string());
    }

    /// Adds the answer to a line that is written.
    fn written(&mut self, sent: &Sending<'_>, status: u16, created: Option<&String>) {
        let contribution = ("contribution", sent.uid.as_str());
        let told = created.map_or_else(
            || object(&[contribution]),
            |uid| object(&[("uid", uid), contribution]),
        );
        self.answer(sent.line, status, &told);
    }
}

/// A load on its way.
#[derive(Default)]
struct Load<'a> {
    lines: Lines<'a>,
    /// The EHRs that lines have named.
    ehrs: HashMap<String, Rc<Ehr>>,
    /// The templates that lines have named, as compositions are checked against them.
    preconditions: BTreeMap<String, Preconditions>,
}

/// What is remembered of a line while it is committed.
struct Sending<'a> {
    line: u64,
    text: &'a str,
    ehr_id: String,
    uid: String,
    created: Option<String>,
    identity: Identity,
}

/// EHR and contribution uid that a line gives.
type Named = (String, Option<String>);

/// True where a commit may have been refused because it was made before.
fn says_conflict(error: &StoreError) -> bool {
    !matches!(
        error,
        StoreError::Away(_)
            | StoreError::Altered { .. }
            | StoreError::Failed(_)
            | StoreError::NoSuchEhr
    )
}

/// The uids of the versions that a CONTRIBUTION lists.
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
    /// The database is not asked for templates that are known: it refuses a commit where a template
    /// is another one by now. Such a line, and one that is not sound by what is known, is read
    /// again by what the database says.
    pub(super) async fn bulk(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.alike.headers(call)?;
        let mut load = Load {
            lines: Lines {
                trusting: true,
                ..Lines::default()
            },
            ..Load::default()
        };
        for (number, text) in numbered(call)? {
            self.add_sent(call, &mut load, number, text).await;
            load.lines.pause(call, text).await;
        }
        self.flush(&mut load.lines).await;
        self.doubt(call, &mut load).await;
        let again = std::mem::take(&mut load.lines.again);
        for (number, text) in numbered(call)?.filter(|(number, _)| again.contains(number)) {
            self.add_sent(call, &mut load, number, text).await;
            load.lines.pause(call, text).await;
        }
        self.flush(&mut load.lines).await;
        Ok(Response::new(200).with_body(NDJSON, load.lines.out))
    }

    async fn add_sent<'a>(&self, call: &Call<'a>, load: &mut Load<'a>, number: u64, text: &'a str) {
        let key = call
            .request
            .header("Idempotency-Key")
            .filter(|key| !key.is_empty());
        let key = key.map(|key| uuid_of(&format!("{}{key}\n{number}\n{text}", callers(call))));
        let mut named = None;
        let mut ready = self
            .bulk_line(call, text, key.clone(), load, &mut named)
            .await;
        if ready.is_err() && load.lines.trusting {
            self.doubt(call, load).await;
            ready = self
                .bulk_line(call, text, key.clone(), load, &mut named)
                .await;
        }
        match ready {
            Ok(ready) => self.add_line(&mut load.lines, number, ready, text).await,
            Err(failure) => {
                self.flush(&mut load.lines).await;
                // What a line asks of an object may not be so any more because the line itself was
                // carried out.
                let before = match (key, named) {
                    (Some(key), Some((ehr_id, uid))) if failure.status == 409 => {
                        let created = None;
                        let sent = Sending {
                            line: number,
                            text,
                            ehr_id,
                            uid: uid.unwrap_or_else(|| key.clone()),
                            created,
                            identity: Identity::Key(key),
                        };
                        self.written_before(&sent)
                            .await
                            .map(|before| (sent, before))
                    }
                    _ => None,
                };
                match before {
                    Some((sent, before)) => load.lines.written(&sent, 200, before.first()),
                    None => load.lines.refuse(number, &failure),
                }
            }
        }
    }

    /// Commits what took something for granted; from now on nothing does.
    async fn doubt(&self, call: &Call<'_>, load: &mut Load<'_>) {
        if load.lines.trusting {
            self.flush(&mut load.lines).await;
            load.lines.trusting = false;
            load.preconditions = BTreeMap::default();
            call.templates.take();
        }
    }

    /// Takes a line in; commits when there are enough.
    pub(crate) async fn add_line<'a>(
        &self,
        lines: &mut Lines<'a>,
        line: u64,
        ready: Ready,
        text: &'a str,
    ) {
        let Ready {
            commit,
            created,
            identity,
        } = ready;
        let (ehr_id, uid) = (commit.ehr_id.clone(), commit.contribution_uid.clone());
        lines.sent.push(Sending {
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

    /// Commits what is pending and answers its lines.
    pub(crate) async fn flush(&self, lines: &mut Lines<'_>) {
        if lines.commits.is_empty() {
            return;
        }
        lines.bytes = 0;
        // Others wait for a transaction as for any other work.
        lines.unpaused = PAUSE;
        let outcomes = self
            .repository
            .commit_all(std::mem::take(&mut lines.commits))
            .await;
        for (sent, outcome) in std::mem::take(&mut lines.sent).into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => lines.written(&sent, 201, sent.created.as_ref()),
                Err(StoreError::TemplateChanged) if lines.trusting => lines.again.push(sent.line),
                Err(error) => {
                    let before = if says_conflict(&error) {
                        self.written_before(&sent).await
                    } else {
                        None
                    };
                    match before {
                        Some(before) => lines.written(&sent, 200, before.first()),
                        None => lines.refuse(sent.line, &Failure::of_store(error)),
                    }
                }
            }
        }
    }

    /// The versions that a line has made when it was sent before, to the letter.
    async fn written_before(&self, sent: &Sending<'_>) -> Option<Vec<String>> {
        if sent.identity == Identity::None {
            return None;
        }
        let stored = self
            .repository
            .contribution(&sent.ehr_id, &sent.uid)
            .await
            .ok()
            .flatten()?;
        let is_same = match &sent.identity {
            Identity::None => false,
            Identity::Key(key) if sent.uid == *key => true,
            Identity::Key(key) => {
                self.repository
                    .idempotency(&sent.ehr_id, &sent.uid)
                    .await
                    .ok()
                    .flatten()
                    .as_ref()
                    == Some(key)
            }
            Identity::Text => self.is_stored(&sent.ehr_id, &stored, sent.text).await,
        };
        is_same.then(|| uids(&stored)).flatten()
    }

    /// A line, read and checked; `key` identifies it. As soon as they are known, `named` has its
    /// EHR and the uid that it gives to its contribution.
    async fn bulk_line(
        &self,
        call: &Call<'_>,
        text: &str,
        key: Option<String>,
        load: &mut Load<'_>,
        named: &mut Option<Named>,
    ) -> Result<Ready, Failure> {
        let (mut ehr_id, mut content, mut composition) = (None, None, None);
        // A sound composition is read as it is met; what is wrong with another is told when all of
        // the line is known.
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
                    return Err(Failure::bad(format!(
                        "`{other}` does not belong here: expected `ehr_id` and one of composition, contribution, ehr_status"
                    )));
                }
            }
        }
        drop(turn);
        let ehr_id = ehr_id.ok_or_else(|| Failure::bad("`ehr_id` is missing, or is not a UUID"))?;
        call.caller.within(call.need, Subject::Some, &ehr_id)?;
        *named = Some((ehr_id.clone(), None));
        let (kind, value) = content.ok_or_else(|| {
            Failure::bad("the line has none of composition, contribution, ehr_status")
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
                self.bulk_composition(call, &ehr_id, object, tree, load)
                    .await?
            }
            _ => {
                self.doubt(call, load).await;
                let turn = call.turn(value.len()).await?;
                let sent = Sent::read(value, Format::Json)?;
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
        Ok(Ready {
            commit,
            created,
            identity: key.map_or(Identity::None, Identity::Key),
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
            ..ChangeSet::of(ehr_id, change)
        })
    }

    /// The EHR is not asked for: the database refuses the commit where there is none, or where it
    /// allows no modification.
    async fn bulk_composition(
        &self,
        call: &Call<'_>,
        ehr_id: &str,
        object_id: String,
        tree: Tree,
        load: &mut Load<'_>,
    ) -> Result<ChangeSet, Failure> {
        let preconditions = match named_template(&tree) {
            Some(template) => self.bulk_grounds(call, template, load).await?,
            None => None,
        };
        let rigor = Rigor::of(&call.alike.creation(call)?);
        let content = self.check_composition(call, tree, rigor).await?;
        let object_id = given_object_id(call, content.tree.root())?.unwrap_or(object_id);
        let change = self.first_version(call, COMPOSITION.kind, object_id, content)?;
        Ok(ChangeSet {
            preconditions,
            ..ChangeSet::of(ehr_id, change)
        })
    }

    /// What the check of a composition against its template stands on; the template is then what
    /// the call goes by.
    async fn bulk_grounds(
        &self,
        call: &Call<'_>,
        template: &str,
        load: &mut Load<'_>,
    ) -> Result<Option<Preconditions>, Failure> {
        if let Some(known) = load.preconditions.get(template) {
            return Ok(Some(known.clone()));
        }
        if !load.lines.trusting || self.library.latest(template).is_none() {
            self.template_of(call, template).await?;
        }
        let Some((preconditions, compiled)) = self.library.latest(template) else {
            return Ok(None);
        };
        call.templates
            .borrow_mut()
            .insert(template.to_owned(), Some(compiled));
        load.preconditions
            .insert(template.to_owned(), preconditions.clone());
        Ok(Some(preconditions))
    }

    /// The EHR of a line, which may be made by a line before it. Lines before it may also lock or
    /// unlock it, so whether it takes content is decided when the line is committed, and not here.
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

/// The lines of a body with their places, from `first` (1 by default). Blank lines are passed over;
/// a body with more of them than of others is refused: 400.
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
    let first = first.ok_or_else(|| Failure::bad("`first` is not the number of a line: expected a whole number whose lines end below 2⁶⁴"))?;
    let (blank, all) = text.lines().fold((0, 0), |(blank, all), line| {
        (blank + usize::from(line.trim().is_empty()), all + 1)
    });
    if blank > BLANK && blank > all - blank {
        return Err(Failure::bad(format!(
            "{blank} of {all} lines are blank: send one JSON object a line"
        )));
    }
    Ok((first..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty()))
}

/// The caller as a part of the identity of a line: a key of another caller is another key. An open
/// service has one caller.
fn callers(call: &Call<'_>) -> String {
    match call.config.auth {
        Auth::Open => String::new(),
        _ => format!("{:?} {:?}\n", call.caller.issuer, call.caller.name),
    }
}
