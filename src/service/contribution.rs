//! CONTRIBUTION: several versions committed together, all or none.

use super::Service;
use super::call::{Call, Changed};
use super::commit::{Change, ChangeSet};
use super::committal::{Audit, CREATION, DELETED};
use super::content::{check_plain, read_text};
use super::ehr::not_modifiable;
use super::error::Failure;
use super::http::Response;
use super::ids::{VersionUid, is_uuid};
use super::negotiate::{Format, json_body};
use super::versioned::own;
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::json::{elements, members};
use crate::rm::tree::{NodeRef, Tree};
use crate::store::repository::{Ehr, Repository, Which};

/// Change types that only make sense for an object that exists.
const FOLLOWING: [&str; 5] = ["250", "251", "523", "666", "816"];

impl<R: Repository> Service<R> {
    /// POST /ehr/{ehr_id}/contribution
    pub(super) async fn contribution_create(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.can_answer()?;
        json_body(call.request)?;
        let ehr = self.need_ehr(call).await?;
        let sent = Sent::read(call.text()?)?;
        let mut changes = Vec::new();
        for (index, version) in sent.versions.iter().enumerate() {
            let change = self.change_of(call, &ehr, version, &sent.audit).await;
            changes.push(change.map_err(|f| f.within(&format!("versions[{index}]")))?);
        }
        let set =
            ChangeSet { ehr_id: ehr.ehr_id.clone(), creates_ehr: false, contribution_uid: sent.uid, audit: sent.audit, conditional: false, changes };
        let committed = self.commit(call, set).await?;
        let tree = own(&committed.contribution, Cls::CONTRIBUTION)?;
        let uid = committed.contribution_uid.as_str();
        let path = call.address(&["ehr", &ehr.ehr_id, "contribution", uid]);
        call.changed(&Changed { created: true, path, uid, time: &committed.time, node: tree.root() })
    }

    /// GET /ehr/{ehr_id}/contribution/{uid}
    pub(super) async fn contribution_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.need_ehr(call).await?;
        let uid = call.param(1).to_ascii_lowercase();
        let missing = || Failure::missing("there is no such contribution in this EHR");
        let stored = self.repository.contribution(&ehr.ehr_id, &uid).await.map_err(Failure::of_store)?.ok_or_else(missing)?;
        let tree = own(&stored, Cls::CONTRIBUTION)?;
        let root = tree.root().ok_or_else(missing)?;
        let time = root.text_along(&[Attr::AUDIT, Attr::TIME_COMMITTED, Attr::VALUE]).unwrap_or_default();
        call.resource(root, &uid, time)
    }

    /// One member of a contribution, checked.
    async fn change_of(&self, call: &Call<'_>, ehr: &Ehr, version: &Tree, contribution: &Audit) -> Result<Change, Failure> {
        let root = version.root().ok_or_else(|| Failure::bad("the version is empty"))?;
        let audit = match root.get(Attr::COMMIT_AUDIT) {
            Some(sent) => Audit::of_node(sent, root.get(Attr::LIFECYCLE_STATE))?,
            None => contribution.clone(),
        };
        let preceding = root.text_along(&[Attr::PRECEDING_VERSION_UID, Attr::VALUE]).filter(|uid| !uid.is_empty());
        let preceding = preceding.map(|uid| VersionUid::read(uid, "preceding_version_uid")).transpose()?;
        match (&preceding, audit.change_type) {
            (Some(_), CREATION) => return Err(Failure::bad("a creation has no preceding_version_uid")),
            (None, change) if FOLLOWING.contains(&change.code) => {
                return Err(Failure::bad(format!("the change type `{}` needs a preceding_version_uid", change.rubric)));
            }
            _ => {}
        }
        let data = root.get(Attr::DATA).filter(|_| audit.change_type != DELETED);
        let kind = match data {
            Some(data) => kind_of(data.class())?,
            None if audit.change_type == DELETED => self.kind_of_object(&ehr.ehr_id, preceding.as_ref()).await?,
            None => return Err(Failure::bad("the version has no data")),
        };
        if !ehr.is_modifiable && kind != ObjectKind::EhrStatus {
            return Err(not_modifiable());
        }
        if kind == ObjectKind::EhrStatus && (preceding.is_none() || data.is_none()) {
            return Err(Failure::bad("an EHR has one EHR_STATUS: it can only be modified"));
        }
        let content = match data {
            Some(data) => Some(self.check_member(call, kind, data).await?),
            None => None,
        };
        let uid = match &preceding {
            Some(uid) => uid.next(&self.config.system_id),
            None => VersionUid { object_id: call.new_uuid(), system_id: self.config.system_id.clone(), number: 1 },
        };
        Ok(Change { kind, uid, preceding: preceding.map(|uid| uid.to_string()), audit, content, extra: Some(version.clone()) })
    }

    /// The content of a member: 400 when it is invalid, the code of the mount when its template is unknown.
    async fn check_member(&self, call: &Call<'_>, kind: ObjectKind, data: NodeRef<'_>) -> Result<super::content::Checked, Failure> {
        let tree = data.to_tree();
        let checked = match kind {
            ObjectKind::Composition => self.check_composition(call, tree).await,
            ObjectKind::EhrStatus => check_plain(call, tree, "EHR_STATUS"),
            ObjectKind::Folder | ObjectKind::Party => check_plain(call, tree, "directory"),
        };
        checked.map_err(|failure| match failure.status {
            422 if !failure.names("SVC0202") => failure.with_status(400),
            _ => failure,
        })
    }

    async fn kind_of_object(&self, ehr_id: &str, uid: Option<&VersionUid>) -> Result<ObjectKind, Failure> {
        let unknown = || Failure::new(409, "the preceding version does not exist in this EHR");
        let object = &uid.ok_or_else(unknown)?.object_id;
        let latest = self.repository.version(ehr_id, object, Which::Latest).await.map_err(Failure::of_store)?.ok_or_else(unknown)?;
        if latest.is_deletion() { Err(Failure::new(409, "the object is deleted already")) } else { Ok(latest.kind) }
    }
}

/// The kind of object that a class of documents belongs to.
pub(crate) fn kind_of(class: Cls) -> Result<ObjectKind, Failure> {
    match class {
        Cls::COMPOSITION => Ok(ObjectKind::Composition),
        Cls::EHR_STATUS => Ok(ObjectKind::EhrStatus),
        Cls::FOLDER => Ok(ObjectKind::Folder),
        other => Err(Failure::bad(format!("a {other} cannot be committed to an EHR: expected COMPOSITION, EHR_STATUS or FOLDER"))),
    }
}

/// A contribution as a client sends it.
struct Sent {
    uid: Option<String>,
    versions: Vec<Tree>,
    audit: Audit,
}

impl Sent {
    fn read(text: &str) -> Result<Sent, Failure> {
        let malformed = |what: &str| Failure::bad(format!("the contribution cannot be read: {what}"));
        let (mut uid, mut versions, mut audit) = (None, None, None);
        for (key, value) in members(text).map_err(|m| super::content::malformed("contribution", text, m))? {
            match &*key {
                "versions" => versions = Some(elements(value).map_err(|m| super::content::malformed("contribution", text, m))?),
                "audit" => audit = Some(read_text(value, Format::Json, Cls::AUDIT_DETAILS, "audit of the contribution")?),
                "uid" if value != "null" => uid = Some(read_text(value, Format::Json, Cls::HIER_OBJECT_ID, "uid of the contribution")?),
                "_type" | "uid" => {}
                other => return Err(malformed(&format!("`{other}` is not an attribute of CONTRIBUTION"))),
            }
        }
        let versions = versions.filter(|v| !v.is_empty()).ok_or_else(|| malformed("Versions must not be empty"))?;
        let audit = audit.ok_or_else(|| malformed("`audit` is missing"))?;
        let uid = uid.as_ref().and_then(Tree::root).and_then(|u| u.text_at(Attr::VALUE)).map(str::to_ascii_lowercase);
        if uid.as_ref().is_some_and(|uid| !is_uuid(uid)) {
            return Err(malformed("its uid is not a UUID"));
        }
        let read = |text: &&str| read_text(text, Format::Json, Cls::ORIGINAL_VERSION, "version");
        Ok(Sent {
            uid,
            versions: versions.iter().map(read).collect::<Result<_, _>>()?,
            audit: Audit::of_node(audit.root().ok_or_else(|| malformed("`audit` is empty"))?, None)?,
        })
    }
}
