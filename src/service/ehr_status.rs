//! EHR_STATUS: reading and updating; it stays writable in an EHR that does not allow modification.

use super::Service;
use super::call::{Call, Changed};
use super::commit::{Change, ChangeSet};
use super::committal::{Audit, MODIFICATION};
use super::content::{check_plain, read_body};
use super::error::Failure;
use super::http::Response;
use super::ids::{Target, VersionUid};
use super::versioned::{document_address, missing};
use crate::document::ObjectKind;
use crate::rm::class::Cls;
use crate::store::repository::Repository;

const KIND: ObjectKind = ObjectKind::EhrStatus;

impl<R: Repository> Service<R> {
    /// GET /ehr/{ehr_id}/ehr_status?version_at_time=…
    pub(super) async fn status_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.need_ehr(call).await?;
        let object = self.object_of(&ehr.ehr_id, KIND).await?.ok_or_else(|| missing(KIND))?;
        let version = self.find_version(call, &ehr.ehr_id, KIND, &Target::Object(object)).await?;
        self.show_document(call, &version)
    }

    /// GET /ehr/{ehr_id}/ehr_status/{version_uid}
    pub(super) async fn status_get_version(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.need_ehr(call).await?;
        let uid = VersionUid::parse(call.param(1)).ok_or_else(|| missing(KIND))?;
        let version = self.find_version(call, &ehr.ehr_id, KIND, &Target::Version(uid)).await?;
        self.show_document(call, &version)
    }

    /// PUT /ehr/{ehr_id}/ehr_status
    pub(super) async fn status_update(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.can_answer()?;
        let ehr = self.need_ehr(call).await?;
        let object = self.object_of(&ehr.ehr_id, KIND).await?;
        let latest = self.matching_latest(call, &ehr.ehr_id, KIND, object.as_deref()).await?;
        let status = check_plain(call, read_body(call, Cls::EHR_STATUS, "EHR_STATUS")?, "EHR_STATUS")?;
        let uid = VersionUid::read(&latest.version_uid, "the stored uid")?.next(&self.config.system_id);
        let audit = Audit::of_headers(call.request, MODIFICATION)?;
        let change = Change { kind: KIND, uid: uid.clone(), preceding: Some(latest.version_uid), audit, content: Some(status), extra: None };
        let committed = self.commit(call, ChangeSet { conditional: true, ..ChangeSet::of(&ehr.ehr_id, change) }).await?;
        let uid = uid.to_string();
        let path = document_address(call, &ehr.ehr_id, KIND, &uid);
        call.changed(&Changed { created: false, path, uid: &uid, time: &committed.time, node: committed.data() })
    }
}
