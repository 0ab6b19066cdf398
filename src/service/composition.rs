//! COMPOSITION: create, read (latest, by version, at a time), update, delete; each change through a CONTRIBUTION.

use super::Service;
use super::call::{Call, Changed};
use super::commit::{Change, ChangeSet};
use super::committal::{Audit, CREATION, DELETED, MODIFICATION};
use super::content::read_body;
use super::error::Failure;
use super::http::Response;
use super::ids::{Target, VersionUid, is_uuid};
use super::versioned::{address, document_address, missing, uid_of};
use crate::diag::Finding;
use crate::document::ObjectKind;
use crate::rm::class::Cls;
use crate::store::repository::{Repository, Version, Which};

const KIND: ObjectKind = ObjectKind::Composition;

impl<R: Repository> Service<R> {
    /// POST /ehr/{ehr_id}/composition
    pub(super) async fn composition_create(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.can_answer()?;
        let ehr = self.need_modifiable_ehr(call).await?;
        let content = self.check_composition(call, read_body(call, Cls::COMPOSITION, "composition")?).await?;
        let uid = VersionUid { object_id: call.new_uuid(), system_id: self.config.system_id.clone(), number: 1 };
        let audit = Audit::of_headers(call.request, CREATION)?;
        let change = Change { kind: KIND, uid, preceding: None, audit, content: Some(content), extra: None };
        self.composition_commit(call, &ehr.ehr_id, change).await
    }

    /// GET /ehr/{ehr_id}/composition/{object or version uid}?version_at_time=…
    pub(super) async fn composition_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.need_ehr(call).await?;
        let target = Target::parse(call.param(1)).ok_or_else(|| missing(KIND))?;
        let version = self.find_version(call, &ehr.ehr_id, KIND, &target).await?;
        self.show_document(call, &version)
    }

    /// PUT /ehr/{ehr_id}/composition/{object uid}
    pub(super) async fn composition_update(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.can_answer()?;
        let ehr = self.need_modifiable_ehr(call).await?;
        if !is_uuid(call.param(1)) {
            return Err(Failure::bad("the path of an update names the composition without a version; the version stands in If-Match"));
        }
        let object = call.param(1).to_ascii_lowercase();
        let latest = self.matching_latest(call, &ehr.ehr_id, KIND, Some(&object)).await?;
        if latest.is_deletion() {
            return Err(Failure::missing("the composition is deleted"));
        }
        let tree = read_body(call, Cls::COMPOSITION, "composition")?;
        if tree
            .root()
            .and_then(uid_of)
            .is_some_and(|uid| !uid.eq_ignore_ascii_case(&object) && VersionUid::parse(uid).is_none_or(|u| u.object_id != object))
        {
            return Err(Failure::new(412, "the uid in the body belongs to another composition than the path"));
        }
        let content = self.check_composition(call, tree).await?;
        if content.template_id != latest.template_id {
            let finding = Finding::error("SVC0203", "/archetype_details/template_id/value", "an update must keep the template of the composition");
            return Err(Failure::invalid(call.dialect, "composition", &[finding]));
        }
        let uid = VersionUid::read(&latest.version_uid, "the stored uid")?.next(&self.config.system_id);
        let audit = Audit::of_headers(call.request, MODIFICATION)?;
        let change = Change { kind: KIND, uid, preceding: Some(latest.version_uid), audit, content: Some(content), extra: None };
        self.composition_commit(call, &ehr.ehr_id, change).await
    }

    /// DELETE /ehr/{ehr_id}/composition/{version uid}
    pub(super) async fn composition_delete(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.need_modifiable_ehr(call).await?;
        let latest = match Target::parse(call.param(1)) {
            Some(Target::Version(uid)) => self.deletable(call, &ehr.ehr_id, &uid).await?,
            Some(Target::Object(_)) => return Err(Failure::bad("the path of a deletion names the latest version: `<uuid>::<system id>::<number>`")),
            None => return Err(missing(KIND)),
        };
        let uid = VersionUid::read(&latest.version_uid, "the stored uid")?.next(&self.config.system_id);
        let audit = Audit::of_headers(call.request, DELETED)?;
        let change = Change { kind: KIND, uid, preceding: Some(latest.version_uid), audit, content: None, extra: None };
        self.composition_commit(call, &ehr.ehr_id, change).await
    }

    async fn deletable(&self, call: &Call<'_>, ehr_id: &str, uid: &VersionUid) -> Result<Version, Failure> {
        let latest = self.repository.version(ehr_id, &uid.object_id, Which::Latest).await.map_err(Failure::of_store)?;
        let latest = latest.filter(|v| v.kind == KIND).ok_or_else(|| missing(KIND))?;
        call.allowed_in(ehr_id, latest.template_id.as_deref())?;
        let known = latest.version_uid == uid.to_string()
            || self.repository.version(ehr_id, &uid.object_id, Which::Uid(&uid.to_string())).await.map_err(Failure::of_store)?.is_some();
        match () {
            () if !known => Err(missing(KIND)),
            () if latest.is_deletion() => Err(Failure::bad("the composition is deleted already")),
            () if latest.version_uid != uid.to_string() => {
                Err(Failure::new(409, format!("the version is not the latest one, which is {}", latest.version_uid))
                    .header("ETag", format!("\"{}\"", latest.version_uid))
                    .header("Location", address(call, ehr_id, &latest)))
            }
            () => Ok(latest),
        }
    }

    async fn composition_commit(&self, call: &Call<'_>, ehr_id: &str, change: Change) -> Result<Response, Failure> {
        let uid = change.uid.to_string();
        let created = change.preceding.is_none();
        let conditional = change.preceding.is_some() && change.content.is_some();
        let committed = self.commit(call, ChangeSet { conditional, ..ChangeSet::of(ehr_id, change) }).await?;
        let path = document_address(call, ehr_id, KIND, &uid);
        call.changed(&Changed { created, path, uid: &uid, time: &committed.time, node: committed.data() })
    }
}
