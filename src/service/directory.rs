//! The directory of an EHR: one versioned tree of FOLDERs.

use super::Service;
use super::call::{Call, Changed};
use super::commit::{Change, ChangeSet};
use super::committal::{Audit, CREATION, DELETED, MODIFICATION};
use super::content::{check_plain, read_body};
use super::error::Failure;
use super::http::Response;
use super::ids::{Target, VersionUid};
use super::versioned::{document_address, missing, uid_of};
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::NodeRef;
use crate::store::repository::{Repository, Version};

const KIND: ObjectKind = ObjectKind::Folder;

impl<R: Repository> Service<R> {
    /// POST /ehr/{ehr_id}/directory
    pub(super) async fn directory_create(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.can_answer()?;
        let ehr = self.need_modifiable_ehr(call).await?;
        let content = check_plain(call, read_body(call, Cls::FOLDER, "directory")?, "directory")?;
        let uid = VersionUid { object_id: call.new_uuid(), system_id: self.config.system_id.clone(), number: 1 };
        let audit = Audit::of_headers(call.request, CREATION)?;
        self.directory_commit(call, &ehr.ehr_id, Change { kind: KIND, uid, preceding: None, audit, content: Some(content), extra: None }).await
    }

    /// GET /ehr/{ehr_id}/directory?version_at_time=…&path=a/b
    pub(super) async fn directory_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.need_ehr(call).await?;
        let object = self.object_of(&ehr.ehr_id, KIND).await?.ok_or_else(|| missing(KIND))?;
        let version = self.find_version(call, &ehr.ehr_id, KIND, &Target::Object(object)).await?;
        self.show_folder(call, &version)
    }

    /// GET /ehr/{ehr_id}/directory/{version_uid}?path=a/b
    pub(super) async fn directory_get_version(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.need_ehr(call).await?;
        let uid = VersionUid::parse(call.param(1)).ok_or_else(|| missing(KIND))?;
        let version = self.find_version(call, &ehr.ehr_id, KIND, &Target::Version(uid)).await?;
        self.show_folder(call, &version)
    }

    /// PUT /ehr/{ehr_id}/directory
    pub(super) async fn directory_update(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.can_answer()?;
        let ehr = self.need_modifiable_ehr(call).await?;
        let object = self.object_of(&ehr.ehr_id, KIND).await?;
        let latest = self.matching_latest(call, &ehr.ehr_id, KIND, object.as_deref()).await?;
        let tree = read_body(call, Cls::FOLDER, "directory")?;
        if tree.root().and_then(uid_of).and_then(VersionUid::parse).is_some_and(|uid| uid.object_id != latest.object_id) {
            return Err(Failure::new(412, "the uid in the body belongs to another directory"));
        }
        let content = check_plain(call, tree, "directory")?;
        let uid = VersionUid::read(&latest.version_uid, "the stored uid")?.next(&self.config.system_id);
        let audit = Audit::of_headers(call.request, MODIFICATION)?;
        self.directory_commit(
            call,
            &ehr.ehr_id,
            Change { kind: KIND, uid, preceding: Some(latest.version_uid), audit, content: Some(content), extra: None },
        )
        .await
    }

    /// DELETE /ehr/{ehr_id}/directory
    pub(super) async fn directory_delete(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.need_modifiable_ehr(call).await?;
        let object = self.object_of(&ehr.ehr_id, KIND).await?;
        let latest = self.matching_latest(call, &ehr.ehr_id, KIND, object.as_deref()).await?;
        if latest.is_deletion() {
            return Err(Failure::bad("the directory is deleted already"));
        }
        let uid = VersionUid::read(&latest.version_uid, "the stored uid")?.next(&self.config.system_id);
        let audit = Audit::of_headers(call.request, DELETED)?;
        self.directory_commit(call, &ehr.ehr_id, Change { kind: KIND, uid, preceding: Some(latest.version_uid), audit, content: None, extra: None })
            .await
    }

    fn show_folder(&self, call: &Call<'_>, version: &Version) -> Result<Response, Failure> {
        let Some(path) = call.request.query_value("path").filter(|p| !p.trim_matches('/').is_empty()) else {
            return self.show_document(call, version);
        };
        let tree = version.packed.unpack();
        let Some(root) = tree.root().and_then(|root| root.get(Attr::DATA)) else { return self.show_document(call, version) };
        let folder = path.trim_matches('/').split('/').try_fold(root, |folder, name| folder.values(Attr::FOLDERS).find(|f| is_named(*f, name)));
        let folder = folder.ok_or_else(|| Failure::missing("the directory has no folder at this path"))?;
        call.resource(folder, &version.version_uid, &version.time_committed)
    }

    async fn directory_commit(&self, call: &Call<'_>, ehr_id: &str, change: Change) -> Result<Response, Failure> {
        let uid = change.uid.to_string();
        let created = change.preceding.is_none();
        let committed = self.commit(call, ChangeSet { conditional: !created, ..ChangeSet::of(ehr_id, change) }).await?;
        let path = document_address(call, ehr_id, KIND, &uid);
        call.changed(&Changed { created, path, uid: &uid, time: &committed.time, node: committed.data() })
    }
}

fn is_named(folder: NodeRef<'_>, name: &str) -> bool {
    folder.text_along(&[Attr::NAME, Attr::VALUE]) == Some(name)
}
