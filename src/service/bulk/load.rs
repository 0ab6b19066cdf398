//! Bulk loads: `POST {base}/ehr/bulk` reads newline-delimited JSON. A line names an EHR and one of:
//!
//! | member beside `ehr_id` | meaning |
//! |---|---|
//! | `composition` | a COMPOSITION to create |
//! | `contribution` | a CONTRIBUTION in the form of `POST /ehr/{ehr_id}/contribution` |
//! | `ehr_status` | the EHR_STATUS of an EHR to create under this id; `null` for the default one |
//!
//! Each line is a contribution of its own: an error of one line does not affect the others. With
//! the header `Idempotency-Key`, the key, the committal headers, the line number and the text of a
//! line identify it, so an interrupted load can be sent again. A line that was written before gets
//! status 200, and nothing is written. A line with another text that would write existing data is
//! rejected with 409. The parameter `first` is the number of the first line of the body.

use super::super::auth::Subject;
use super::super::call::Call;
use super::super::commit::{ChangeSet, check_write};
use super::super::committal::{CREATION, CommitMetadata};
use super::super::content::{ValidationLevel, malformed, named_template, read_text};
use super::super::contribution::SentContribution;
use super::super::document_class::{COMPOSITION, EHR_STATUS};
use super::super::ehr::DEFAULT_STATUS;
use super::super::error::{Failure, shortened};
use super::super::http::Response;
use super::super::identity::given_object_id;
use super::super::ids::{LineUuids, is_uuid, uuid_beside};
use super::super::members::Members;
use super::super::negotiate::{Format, check_ndjson_acceptable};
use super::super::owner::Owner;
use super::super::templates::FactSource;
use super::super::{Auth, Service};
use super::{LineIdentity, Lines, NDJSON, PendingLine, ReadyLine, SentLine, numbered, stored_key};
use crate::rm::class::Cls;
use crate::rm::json::{self, Scanner, members_with};
use crate::rm::tree::Tree;
use crate::store::repository::{Ehr, Repository};
use serde_json::json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

/// A load in progress.
#[derive(Default)]
struct Load<'a> {
    lines: Lines<'a>,
    /// Identifies the lines, if the request has an idempotency key.
    uuids: Option<LineUuids>,
    /// The EHRs of the lines so far.
    ehrs: HashMap<String, Rc<Ehr>>,
    /// The target of the line in progress, once it is known and the caller may write to it. A line
    /// with an error needs it too, to look up an earlier commit of the line.
    target: Option<LineTarget>,
}

/// The contribution that a line writes.
struct LineTarget {
    ehr_id: String,
    /// The uid that the client supplied.
    contribution_uid: Option<String>,
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
                // A second content falls through to the error below.
                "composition" | "contribution" | "ehr_status" if content.is_none() => {
                    content = Some(LineContent { name, json });
                }
                other => {
                    return Err(Failure::bad_request(format!(
                        "`{}` does not belong here: expected `ehr_id` and one of composition, contribution, ehr_status",
                        shortened(other)
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

impl<R: Repository> Service<R> {
    /// POST /ehr/bulk
    ///
    /// Known templates are not read again: the database rejects a commit if its template has
    /// changed. Such a line, and a line that is invalid by a known template, is checked again with
    /// the definitions of the database.
    pub(in crate::service) async fn bulk(&self, call: &Call<'_>) -> Result<Response, Failure> {
        check_ndjson_acceptable(call.request)?;
        call.commit_headers()?;
        check_key(call)?;
        let mut load = Load {
            lines: Lines {
                facts: FactSource::Cached,
                ..Lines::begin(call)
            },
            uuids: line_uuids(call),
            ..Load::default()
        };
        // The preconditions of the commits name the cached templates.
        call.templates.borrow_mut().rely_on(FactSource::Cached);
        let sent = numbered(call)?;
        for line in &sent {
            self.add_sent(call, &mut load, *line).await;
            load.lines.pause(call, line.text).await;
        }
        self.flush(&mut load.lines).await;
        self.commit_optimistic_lines(call, &mut load).await;
        // The facts are stored ones now, so a line is retried once at most.
        let retried = std::mem::take(&mut load.lines.retried);
        if !retried.is_empty() {
            for line in sent.iter().filter(|line| retried.contains(&line.number)) {
                self.add_sent(call, &mut load, *line).await;
                load.lines.pause(call, line.text).await;
            }
            self.flush(&mut load.lines).await;
        }
        if load.lines.has_committed {
            call.trail.set_recorded();
        }
        Ok(Response::new(200).with_body(NDJSON, load.lines.out))
    }

    /// Reads, checks and queues a line, or adds the response to a line that cannot be committed.
    async fn add_sent<'a>(&self, call: &Call<'a>, load: &mut Load<'a>, line: SentLine<'a>) {
        call.templates.borrow_mut().forget_many();
        let uuids = load.uuids.as_ref();
        let key = uuids.map(|uuids| uuids.of_line(line.number, line.text));
        load.target = None;
        let mut ready = self.bulk_line(call, line.text, key.as_ref(), load).await;
        // The error may come from an outdated template.
        if ready.is_err() && load.lines.facts == FactSource::Cached {
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
            // The line may have been written before. It has then changed the object itself, so its
            // preconditions no longer hold.
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
                    members: Members::default(),
                };
                let lines = &mut load.lines;
                self.answer_unwritten(lines, &pending, &failure).await;
            }
            _ => load.lines.refuse(line.number, &failure),
        }
    }

    /// Commits the lines that rely on cached templates. Later lines rely on stored ones.
    async fn commit_optimistic_lines(&self, call: &Call<'_>, load: &mut Load<'_>) {
        if load.lines.facts == FactSource::Cached {
            self.flush(&mut load.lines).await;
            load.lines.facts = FactSource::Stored;
            call.templates.borrow_mut().rely_on(FactSource::Stored);
        }
    }

    /// Reads and checks a line. `key` identifies it. The target of the load becomes that of the
    /// line as soon as it is known.
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
        // A load without any commit is recorded with the EHRs that its lines name.
        call.trail.add_ehr(&line.ehr_id);
        call.caller
            .within(call.permission, Subject::Some, &line.ehr_id)?;
        // Only after the permission check: a later error may look up the line in this EHR.
        load.target = Some(LineTarget {
            ehr_id: line.ehr_id.clone(),
            contribution_uid: None,
        });
        // With a key, the ids of the line follow from it: a repeated line would write the same
        // object, which the database rejects.
        let object_id = key.map_or_else(|| Ok(call.new_uuid()), |key| uuid_beside(key))?;
        let mut set = self.bulk_change_set(call, line, object_id, load).await?;
        // The key becomes the uid of the contribution, unless the client chose one.
        set.contribution_uid = set.contribution_uid.or_else(|| key.cloned());
        let chosen = set.contribution_uid.as_deref().unwrap_or_default();
        set.idempotency = key.map(|key| stored_key(key, chosen).to_owned());
        let created = set.changes.first().map(|change| change.uid.to_string());
        let members = set.members();
        let (commit, _) = self.ready(call, set).await?;
        if let Some(ehr) = &commit.new_ehr {
            // Later lines may write to this EHR before it is committed.
            load.ehrs.insert(ehr.ehr_id.clone(), Rc::new(ehr.clone()));
        }
        Ok(ReadyLine {
            commit,
            created,
            identity: key.map_or(LineIdentity::None, |key| LineIdentity::Key(key.clone())),
            members,
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
            return self.bulk_ehr(call, &ehr_id, object_id, json).await;
        }
        let tree = line.composition.map_or_else(
            || read_text(json, Format::Json, Cls::COMPOSITION, COMPOSITION.name),
            Ok,
        )?;
        drop(turn);
        self.bulk_composition(call, &ehr_id, object_id, tree).await
    }

    /// Returns the change set of a line with a contribution.
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
        // The check reads these objects from the database, which must have their latest versions.
        let read = sent.objects_to_read(call, &owner)?;
        if load.lines.has_pending(owner.id(), &read) {
            self.flush(&mut load.lines).await;
        }
        self.change_set(call, &owner, sent).await
    }

    /// Returns the change set of a line that creates an EHR. `null` is the default EHR_STATUS.
    async fn bulk_ehr(
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
        let status = read_text(text, Format::Json, Cls::EHR_STATUS, EHR_STATUS.name)?;
        let written = (EHR_STATUS.kind, call.permission.act);
        check_write(call, ehr_id, written, None)?;
        let audit = call.direct_audit(CREATION)?;
        let level = ValidationLevel::from_audit(&audit);
        let status = self
            .check_plain(call, status, EHR_STATUS.name, level)
            .await?;
        let change = self.first_version(EHR_STATUS.kind, object_id, status, audit);
        Ok(ChangeSet {
            creates_ehr: true,
            names_templates: true,
            ..ChangeSet::single(ehr_id, change)
        })
    }

    /// Returns the change set of a line with a composition.
    ///
    /// The EHR is not read: the database rejects the commit if the EHR does not exist or is not
    /// modifiable.
    async fn bulk_composition(
        &self,
        call: &Call<'_>,
        ehr_id: &str,
        object_id: String,
        tree: Tree,
    ) -> Result<ChangeSet, Failure> {
        let audit = call.direct_audit(CREATION)?;
        let written = (COMPOSITION.kind, call.permission.act);
        check_write(call, ehr_id, written, named_template(&tree))?;
        let content = self
            .check_composition(call, tree, ValidationLevel::from_audit(&audit))
            .await?;
        let object_id = given_object_id(call, content.tree.root())?.unwrap_or(object_id);
        let change = self.first_version(COMPOSITION.kind, object_id, content, audit);
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

/// Checks that the header `Idempotency-Key`, if it was sent, has a value. Without one, a repeated
/// load would be stored twice, which the client wants to prevent by the header.
///
/// # Errors
/// 400 for a blank value.
fn check_key(call: &Call<'_>) -> Result<(), Failure> {
    let key = call.request.header("Idempotency-Key");
    if key.is_some_and(|key| key.trim().is_empty()) {
        let message = "the header `Idempotency-Key` is blank: name a key, or leave the header out";
        return Err(Failure::new(400, message));
    }
    Ok(())
}

/// Returns the identity of the lines by the header `Idempotency-Key`.
///
/// All that determines the commit is part of the identity: the same key with another line, or with
/// other committal headers, is another request.
fn line_uuids(call: &Call<'_>) -> Option<LineUuids> {
    let key = call.request.header("Idempotency-Key")?;
    let (caller, committal) = (caller_key(call), committal_key(call));
    Some(LineUuids::of(format!("{caller}{committal}{key}")))
}

/// Returns the caller as a part of the identity of a line: the same key of another caller is
/// another key. A service without authentication has one caller.
fn caller_key(call: &Call<'_>) -> String {
    match call.config.auth {
        Auth::Open => String::new(),
        _ => format!("{}\n", json!([call.caller.issuer, call.caller.name])),
    }
}

/// Returns the committal headers as a part of the identity of a line; empty without any. Two
/// spellings of the same metadata are the same.
fn committal_key(call: &Call<'_>) -> String {
    match call.commit_headers() {
        Ok(stated) if *stated != CommitMetadata::default() => format!("{}\n", stated.identity()),
        // Headers that cannot be read reject the whole load.
        _ => String::new(),
    }
}
