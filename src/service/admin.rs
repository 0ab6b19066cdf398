//! Administration, available only if the configuration enables it: loading under fixed ids,
//! physical deletion, reset.
//!
//! `POST {base}/admin/load` reads one JSON object, or one on each line (`application/x-ndjson`).
//! Each object is a version:
//!
//! | member | meaning |
//! |---|---|
//! | `ehr_id` | the EHR; the first version of its EHR_STATUS creates it |
//! | `version_uid` | the uid of the version: `<uuid>::<system id>::<number>` |
//! | `kind` | `COMPOSITION`, `EHR_STATUS` or `FOLDER`; by default the class of `data` |
//! | `change` | change type by code or rubric; by default creation, modification (with `preceding`) or deleted (without `data`) |
//! | `lifecycle` | lifecycle state by code or rubric; by default complete, or deleted (without `data`) |
//! | `preceding` | the preceding version |
//! | `contribution_uid` | the uid of the contribution; successive lines with the same one are committed together |
//! | `audit` | an AUDIT_DETAILS or an ATTESTATION; the server sets time and system |
//! | `data` | the document, without the VERSION around it; absent for a deletion |
//!
//! `change` and `lifecycle` precede `audit`, and that precedes the committal headers of the request.
//!
//! Lines are committed as they are read, each contribution in a transaction of its own: a load may
//! be longer than any transaction. The first error ends the load; its response states the number of
//! lines that are stored (`SVC0301`), and the client sends the others again.
//!
//! Versions follow their predecessors as in any commit. A document comes from a system that has
//! accepted it. Findings of the model or of its template are therefore reported (`findings` of the
//! response, the first hundred) and do not reject it, if its classes and attributes are those of
//! the model and its template is known.

mod load;

use super::auth::AccessTrail;
use super::call::{Call, IncomingRequest};
use super::commit::{Change, ChangeSet, class_name};
use super::committal::{Audit, CREATION, CommitMetadata, DELETED, MODIFICATION};
use super::content::{CheckedDocument, ValidationLevel};
use super::contribution::check_change_type;
use super::document_class::Controlled;
use super::document_class::kind_of;
use super::error::Failure;
use super::http::{Request, Response};
use super::identity::{check_data_uid, check_deletable};
use super::ids::{Target, VersionUid, check_system_id, is_uuid};
use super::negotiate::choose;
use super::route::{self, Operation, RouteTarget};
use super::template::ALL;
use super::validators::{NO_ETAG, check_preconditions, definition_etag, has_preconditions};
use super::versioned::missing;
use super::{Environment, Service};
use crate::diag::Finding;
use crate::document::ObjectKind;
use crate::rm::class::Cls;
use crate::rm::tree::Tree;
use crate::store::repository::{DefinitionKind, Repository, StoreError, VersionSelector};
use aqlite_rm::order;
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// The maximum number of findings in the response to a load.
const MAX_FINDINGS: usize = 100;

/// A document to load: the first version of a COMPOSITION, or the EHR_STATUS that creates an EHR.
pub struct Loaded {
    /// The EHR.
    pub ehr_id: String,
    /// The uid of the version: `<uuid>::<system id>::1`.
    pub version_uid: String,
    /// The document.
    pub data: Tree,
}

/// The number of lines between two pauses.
const PAUSE: usize = 20;

impl<R: Repository> Service<R> {
    /// Loads documents that a host has as trees, like `POST /v1/admin/load` with a line for each.
    pub async fn load(
        &self,
        documents: Vec<Loaded>,
        environment: &mut dyn Environment,
    ) -> Response {
        let request = Request::new("POST", "/v1/admin/load");
        let trail = AccessTrail::default();
        let answer = match route::find(&request) {
            Ok(RouteTarget::Operation(found)) => {
                let incoming = IncomingRequest {
                    request: &request,
                    config: &self.config,
                    trail: &trail,
                    now: environment.now(),
                };
                let call = Call::new(incoming, found, &self.everyone, environment);
                self.load_records(
                    &call,
                    &mut documents
                        .into_iter()
                        .map(|document| Ok(Record::from(document))),
                )
                .await
            }
            Ok(_) => Err(Failure::not_found("the path of the load has no operation")),
            Err(failure) => Err(failure),
        };
        answer.unwrap_or_else(|failure| failure.into_response(&request))
    }

    /// Commits records in order. Adjacent records of one contribution are one change set.
    ///
    /// # Errors
    /// That of the first record that cannot be loaded, with its line. The records before it are
    /// stored.
    async fn load_records(
        &self,
        call: &Call<'_>,
        records: &mut dyn Iterator<Item = Result<Record, Failure>>,
    ) -> Result<Response, Failure> {
        let (mut pending, mut found): (Option<ChangeSet>, Vec<Value>) = (None, Vec::new());
        let (mut loaded, mut stored): (usize, usize) = (0, 0);
        for record in records {
            loaded += 1;
            if loaded.is_multiple_of(PAUSE) {
                call.pause().await;
            }
            let at_line = |f: Failure| failure_of_load(f, loaded..=loaded, stored);
            let (next, findings) = self
                .load_record(call, record.map_err(at_line)?)
                .await
                .map_err(at_line)?;
            // The response is bounded, the load is not: later findings are not reported, and reject
            // nothing.
            let room = MAX_FINDINGS.saturating_sub(found.len());
            let shown = |f: &Finding| json!({ "line": loaded, "finding": f.one_line() });
            found.extend(findings.iter().take(room).map(shown));
            pending = match pending {
                // Adjacent lines only: a contribution is committed as soon as another one begins.
                Some(mut set) if belongs(&set, &next) => {
                    set.changes.extend(next.changes);
                    Some(set)
                }
                Some(set) => {
                    let committed = self.commit(call, set).await;
                    committed.map_err(|f| failure_of_load(f, stored + 1..=loaded - 1, stored))?;
                    stored = loaded - 1;
                    Some(next)
                }
                None => Some(next),
            };
        }
        if let Some(set) = pending {
            let committed = self.commit(call, set).await;
            committed.map_err(|f| failure_of_load(f, stored + 1..=loaded, stored))?;
        }
        Ok(Response::json(
            200,
            json!({ "loaded": loaded, "findings": found }),
        ))
    }

    /// POST /admin/reset
    pub(super) async fn admin_reset(&self, call: &Call<'_>) -> Result<Response, Failure> {
        check_preconditions(call.request, Some(NO_ETAG))?;
        self.repository.reset().await.map_err(Failure::of_store)?;
        self.definition_cache.clear();
        Ok(Response::new(204))
    }

    /// DELETE /admin/ehr/{ehr_id}, DELETE /admin/ehr/all?ehr_id=…
    pub(super) async fn admin_delete_ehr(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ids = named_ehrs(call)?;
        if ids.is_empty() {
            return Err(Failure::bad_request(
                "the parameter `ehr_id` is missing: name the EHRs to delete; POST /admin/reset removes everything",
            ));
        }
        // All are looked up before the first is deleted: a request that ends in an error has
        // changed nothing.
        for id in &ids {
            self.ehr_with_id(id).await?;
        }
        // The entity tag of an EHR is its id. That of several EHRs does not exist.
        let etag = match call.param(0)? {
            ALL => NO_ETAG,
            _ => ids.first().map_or(NO_ETAG, String::as_str),
        };
        check_preconditions(call.request, Some(etag))?;
        for id in &ids {
            self.repository
                .delete_ehr(id)
                .await
                .map_err(Failure::of_store)?;
        }
        Ok(Response::new(204))
    }

    /// DELETE /admin/ehr/{ehr_id}/{composition|directory}/{uid}: removes the object with all its
    /// versions.
    pub(super) async fn admin_delete_object(
        &self,
        call: &Call<'_>,
        what: &Controlled,
    ) -> Result<Response, Failure> {
        let ehr = self.ehr_with_id(call.param(0)?).await?;
        let object = match Target::parse(call.sub_param(0)?).ok_or_else(|| missing(what))? {
            Target::Object(object) => object,
            Target::Version(uid) => uid.object_id,
        };
        // Checks that the object is of the class in the path, before it is removed.
        let latest = self
            .preceding_version(call, (&ehr.ehr_id, &object), VersionSelector::Latest, what)
            .await?
            .ok_or_else(|| missing(what))?;
        check_preconditions(call.request, Some(&latest.version_uid))?;
        self.repository
            .delete_objects(&ehr.ehr_id, &[object])
            .await
            .map_err(Failure::of_store)?;
        Ok(Response::new(204))
    }

    /// DELETE /admin/{template|query}/{name}[/{version}], DELETE /admin/gdl/{id}: removes one
    /// version, or without a version all. DELETE /admin/template/all: removes every template that
    /// no stored version names. The response has the number of removed versions.
    pub(super) async fn admin_delete_definition(
        &self,
        call: &Call<'_>,
        kind: DefinitionKind,
    ) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let name = call.param(0)?;
        let is_all =
            kind == DefinitionKind::Template && name == ALL && call.optional_param(1).is_none();
        if is_all {
            check_preconditions(call.request, Some(NO_ETAG))?;
        } else if has_preconditions(call.request) {
            self.check_definition_etag(call, kind).await?;
        }
        let removed = match call.optional_param(1) {
            Some(version) => self.remove_definition(call, kind, name, version).await,
            None if is_all => self.remove_unused_templates().await,
            None => self.remove_versions(call, kind, name).await,
        };
        self.definition_cache.clear();
        match removed? {
            0 if !is_all => Err(Failure::not_found(
                "there is no definition with this name and version",
            )),
            deleted => Ok(Response::json(200, json!({ "deleted": deleted }))),
        }
    }

    /// Checks the preconditions of a deletion. The entity tag is that of the version that the path
    /// names, or else of the latest one. No condition fails for a missing definition.
    async fn check_definition_etag(
        &self,
        call: &Call<'_>,
        kind: DefinitionKind,
    ) -> Result<(), Failure> {
        let (name, version) = (call.param(0)?, call.optional_param(1));
        let found = self.select_definition(kind, Some(call), name, version);
        match found.await? {
            Some(found) => check_preconditions(call.request, Some(&definition_etag(&found))),
            None => Ok(()),
        }
    }

    /// Removes all versions of a definition. Returns the number of removed versions.
    async fn remove_versions(
        &self,
        call: &Call<'_>,
        kind: DefinitionKind,
        name: &str,
    ) -> Result<usize, Failure> {
        let mut removed = 0;
        for definition in self.versions_of(kind, name).await? {
            removed += self
                .remove_definition(call, kind, name, &definition.version)
                .await?;
        }
        Ok(removed)
    }

    /// Removes one version of a definition. Returns the number of removed versions, 0 or 1.
    async fn remove_definition(
        &self,
        call: &Call<'_>,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<usize, Failure> {
        let removed = self
            .repository
            .undefine(kind, name, version)
            .await
            .map_err(|error| match error {
                StoreError::TemplateInUse => {
                    Failure::new(call.dialect.definition_in_use(), error.to_string())
                }
                other => Failure::of_store(other),
            })?;
        Ok(usize::from(removed))
    }

    /// Removes every version of a template that no stored version names. Returns the number of
    /// removed versions.
    async fn remove_unused_templates(&self) -> Result<usize, Failure> {
        let mut removed = 0;
        for definition in self.all_definitions(DefinitionKind::Template).await? {
            match self
                .repository
                .undefine(
                    DefinitionKind::Template,
                    &definition.name,
                    &definition.version,
                )
                .await
            {
                Ok(was_there) => removed += usize::from(was_there),
                // A template in use stays. `all` means all that can be removed.
                Err(StoreError::TemplateInUse) => {}
                Err(other) => return Err(Failure::of_store(other)),
            }
        }
        Ok(removed)
    }

    /// Checks a record. Returns its change set, and the findings that do not reject it.
    async fn load_record(
        &self,
        call: &Call<'_>,
        record: Record,
    ) -> Result<(ChangeSet, Vec<Finding>), Failure> {
        let uid = VersionUid::read(&record.version_uid, "version_uid")?;
        let kind = record.check(&uid)?;
        let audit = audit_of(call, &record)?;
        let level = ValidationLevel::from_audit(&audit);
        let document = self.loaded_document(call, record.data, kind, level).await;
        let (data, findings) = document.map_err(|failure| failure.below("/data"))?;
        let creates_ehr = kind == ObjectKind::EhrStatus && uid.number == 1;
        let preceding = record.preceding.map(|uid| uid.to_string());
        let change = Change {
            kind,
            uid,
            preceding,
            audit,
            content: data,
            extra: None,
            tags: Vec::new(),
        };
        let set = ChangeSet {
            creates_ehr,
            contribution_uid: record.contribution_uid,
            ..ChangeSet::single(&record.ehr_id.to_ascii_lowercase(), change)
        };
        Ok((set, findings))
    }

    /// Checks the document of a record. The findings of a composition do not reject it.
    async fn loaded_document(
        &self,
        call: &Call<'_>,
        data: Option<Tree>,
        kind: ObjectKind,
        level: ValidationLevel,
    ) -> Result<(Option<CheckedDocument>, Vec<Finding>), Failure> {
        let Some(tree) = data else {
            return Ok((None, Vec::new()));
        };
        if kind != ObjectKind::Composition {
            let checked = self.check_plain(call, tree, class_name(kind), level);
            return Ok((Some(checked.await?), Vec::new()));
        }
        let (checked, findings) = self.composition_findings(call, tree, level).await?;
        Ok((Some(checked), findings))
    }
}

/// Returns the EHRs in the parameter `ehr_id` of a deletion or an export, in lower case and without
/// repetitions. The value may be a list with commas. Other operations do not read the parameter.
pub(super) fn ehrs_of_parameters(call: &Call<'_>) -> Vec<String> {
    let reads_parameter = match call.operation {
        Operation::AdminDeleteEhr => call.optional_param(0) == Some(ALL),
        Operation::Export => true,
        _ => false,
    };
    let listed = call
        .request
        .query
        .iter()
        .filter(|(key, _)| reads_parameter && key == "ehr_id")
        .flat_map(|(_, value)| value.split(','))
        .map(|id| id.trim().to_ascii_lowercase());
    order::distinct(listed.filter(|id| !id.is_empty()))
}

/// Returns the EHRs that a deletion names.
fn named_ehrs(call: &Call<'_>) -> Result<Vec<String>, Failure> {
    Ok(match call.param(0)? {
        ALL => ehrs_of_parameters(call),
        one => vec![one.to_ascii_lowercase()],
    })
}

/// Adds the affected lines and the number of stored lines to an error of a load. Lines are
/// committed as they are read, so earlier ones remain after an error.
fn failure_of_load(failure: Failure, lines: RangeInclusive<usize>, stored: usize) -> Failure {
    let (first, last) = (lines.start(), lines.end());
    let failure = match first == last {
        true => failure.within(&format!("line {first}")),
        false => failure.within(&format!("lines {first} to {last}")),
    };
    match stored {
        0 => failure,
        stored => failure.after_lines(stored),
    }
}

/// Returns whether both change sets belong to the same contribution.
fn belongs(set: &ChangeSet, next: &ChangeSet) -> bool {
    set.contribution_uid.is_some()
        && set.contribution_uid == next.contribution_uid
        && set.ehr_id == next.ehr_id
}

/// Returns the audit of a record: its own members, then its `audit`, then the committal headers.
///
/// # Errors
/// 400 for an unknown code, for an audit or a change type that a commit would refuse, for a deletion
/// with data and any other change without.
fn audit_of(call: &Call<'_>, record: &Record) -> Result<Audit, Failure> {
    let by_default = match (&record.data, &record.preceding) {
        (None, _) => DELETED,
        (Some(_), Some(_)) => MODIFICATION,
        (Some(_), None) => CREATION,
    };
    let sent = record.audit.as_ref().and_then(Tree::root);
    let sent = sent.map(CommitMetadata::of_audit).transpose();
    let sent = sent.map_err(|failure| failure.below("/audit"))?;
    let headers = call.commit_headers()?;
    let headers = match record.data {
        Some(_) => headers.clone(),
        // The codes in headers are those of lines with data, and a deletion has its own.
        None => headers.without_codes(),
    };
    let audit = CommitMetadata::of_codes(record.change.as_deref(), record.lifecycle.as_deref())?
        .before(sent.unwrap_or_default())
        .or(&headers)
        .member_audit(by_default)?;
    if (audit.change_type == DELETED) != record.data.is_none() {
        return Err(Failure::bad_request(
            "a deletion must have no `data`, and every other change must have it",
        ));
    }
    check_change_type(&audit, record.preceding.is_some(), "preceding")?;
    Ok(audit)
}

/// A line of a load.
#[derive(Default)]
struct Record {
    ehr_id: String,
    version_uid: String,
    kind: Option<String>,
    change: Option<String>,
    lifecycle: Option<String>,
    preceding: Option<VersionUid>,
    contribution_uid: Option<String>,
    audit: Option<Tree>,
    data: Option<Tree>,
}

impl From<Loaded> for Record {
    fn from(loaded: Loaded) -> Record {
        Record {
            ehr_id: loaded.ehr_id,
            version_uid: loaded.version_uid,
            data: Some(loaded.data),
            ..Record::default()
        }
    }
}

/// Checks that a member is a UUID, if it is given.
fn check_uuid(name: &str, value: Option<&str>) -> Result<(), Failure> {
    match value {
        Some(value) if !is_uuid(value) => {
            Err(Failure::bad_request(format!("`{name}` is not a UUID")))
        }
        _ => Ok(()),
    }
}

impl Record {
    /// Checks the identifiers, and that the kind allows the change. Returns the kind.
    fn check(&self, uid: &VersionUid) -> Result<ObjectKind, Failure> {
        check_system_id(&uid.system_id)?;
        check_data_uid(uid, self.data.as_ref().and_then(Tree::root))?;
        check_uuid("ehr_id", Some(&self.ehr_id))?;
        if let Some(preceding) = &self.preceding {
            uid.check_follows(preceding)?;
        }
        check_uuid("contribution_uid", self.contribution_uid.as_deref())?;
        let kind = self.kind()?;
        if self.data.is_none() {
            check_deletable(kind, self.preceding.is_some())?;
        }
        if kind == ObjectKind::Party {
            return Err(Failure::bad_request(
                "a party does not belong to an EHR: create it below demographic",
            ));
        }
        Ok(kind)
    }

    fn kind(&self) -> Result<ObjectKind, Failure> {
        let class = match (&self.kind, self.data.as_ref().and_then(Tree::root)) {
            (Some(name), data) => Cls::parse(name)
                .filter(|class| data.is_none_or(|d| d.class() == *class))
                .ok_or_else(|| Failure::bad_request("`kind` is not the class of `data`"))?,
            (None, Some(data)) => data.class(),
            (None, None) => {
                return Err(Failure::bad_request(
                    "`kind` is needed where there is no `data`",
                ));
            }
        };
        kind_of(class)
    }
}
