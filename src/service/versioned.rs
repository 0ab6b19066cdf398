//! Versions of objects: finding them by uid or time, showing them, and the VERSIONED_OBJECT resources.

use super::Service;
use super::call::Call;
use super::commit::{class_name, quoted, reference, stale};
use super::committal::object;
use super::error::Failure;
use super::http::Response;
use super::ids::{Target, VersionUid};
use super::negotiate::if_match;
use super::route::Part;
use super::time::at_time;
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::json;
use crate::rm::tree::{NodeRef, Tree};
use crate::store::repository::{Repository, Version, Which};

impl<R: Repository> Service<R> {
    /// The version that a path names: by its uid, or by its object and `version_at_time`, or the latest of its object.
    pub(crate) async fn find_version(&self, call: &Call<'_>, ehr_id: &str, kind: ObjectKind, target: &Target) -> Result<Version, Failure> {
        let at = call.request.query_value("version_at_time").filter(|t| !t.is_empty()).map(at_time).transpose()?;
        let uid;
        let (object, which) = match (target, &at) {
            (Target::Version(version), _) => {
                uid = version.to_string();
                (&version.object_id, Which::Uid(&uid))
            }
            (Target::Object(object), Some(at)) => (object, Which::At(at)),
            (Target::Object(object), None) => (object, Which::Latest),
        };
        let found = self.repository.version(ehr_id, object, which).await.map_err(Failure::of_store)?;
        let version = found.filter(|v| v.kind == kind).ok_or_else(|| missing(kind))?;
        call.allowed_in(ehr_id, version.template_id.as_deref())?;
        Ok(version)
    }

    /// The document of a version; 204 when the version is a deletion.
    pub(crate) fn show_document(&self, call: &Call<'_>, version: &Version) -> Result<Response, Failure> {
        let tree = version.packed.unpack();
        match tree.root().and_then(|root| root.get(Attr::DATA)) {
            Some(data) => call.resource(data, &version.version_uid, &version.time_committed),
            None => Ok(Response::new(204).with_header("ETag", format!("\"{}\"", version.version_uid))),
        }
    }

    /// The latest version of an object, which must be the one that If-Match names: else 412.
    pub(crate) async fn matching_latest(&self, call: &Call<'_>, ehr_id: &str, kind: ObjectKind, object: Option<&str>) -> Result<Version, Failure> {
        let tag = if_match(call.request)?;
        let expected = VersionUid::read(&tag, "the header If-Match")?.to_string();
        let unknown = || Failure::new(412, format!("there is no {} that the header If-Match could match", class_name(kind)));
        let Some(object) = object else { return Err(unknown()) };
        let latest = self.repository.version(ehr_id, object, Which::Latest).await.map_err(Failure::of_store)?;
        let latest = latest.filter(|v| v.kind == kind).ok_or_else(unknown)?;
        call.allowed_in(ehr_id, latest.template_id.as_deref())?;
        if latest.version_uid == expected { Ok(latest) } else { Err(stale(&latest.version_uid).header("Location", address(call, ehr_id, &latest))) }
    }

    /// GET …/versioned_{composition|ehr_status}…
    pub(super) async fn versioned(&self, call: &Call<'_>, kind: ObjectKind, part: Part) -> Result<Response, Failure> {
        let ehr = self.need_ehr(call).await?;
        let (object, rest) = match kind {
            ObjectKind::EhrStatus => (self.object_of(&ehr.ehr_id, kind).await?, 1),
            _ => (Some(call.param(1).to_ascii_lowercase()), 2),
        };
        let object = object.ok_or_else(|| missing(kind))?;
        match part {
            Part::Container => self.show_container(call, &ehr.ehr_id, kind, &object).await,
            Part::History => self.show_history(call, &ehr.ehr_id, kind, &object).await,
            Part::AtTime => self.show_version(call, &ehr.ehr_id, kind, &Target::Object(object)).await,
            Part::Version => {
                let uid = VersionUid::parse(call.param(rest)).filter(|uid| uid.object_id == object).ok_or_else(|| missing(kind))?;
                self.show_version(call, &ehr.ehr_id, kind, &Target::Version(uid)).await
            }
        }
    }

    async fn show_version(&self, call: &Call<'_>, ehr_id: &str, kind: ObjectKind, target: &Target) -> Result<Response, Failure> {
        let version = self.find_version(call, ehr_id, kind, target).await?;
        let tree = version.packed.unpack();
        let root = tree.root().ok_or_else(|| missing(kind))?;
        call.resource(root, &version.version_uid, &version.time_committed)
    }

    async fn show_container(&self, call: &Call<'_>, ehr_id: &str, kind: ObjectKind, object_id: &str) -> Result<Response, Failure> {
        let versions = self.all_versions(call, ehr_id, kind, object_id).await?;
        let (Some(first), Some(last)) = (versions.first(), versions.last()) else { return Err(missing(kind)) };
        let class = format!("VERSIONED_{}", class_name(kind));
        let text = format!(
            r#"{{"_type":"{class}","uid":{},"owner_id":{},"time_created":{{"_type":"DV_DATE_TIME","value":{}}}}}"#,
            object(&[("_type", "HIER_OBJECT_ID"), ("value", object_id)]),
            reference("HIER_OBJECT_ID", ehr_id, "EHR"),
            quoted(&first.time_committed),
        );
        let tree = own(&text, Cls::VERSIONED_OBJECT)?;
        call.resource(tree.root().ok_or_else(|| missing(kind))?, object_id, &last.time_committed)
    }

    async fn show_history(&self, call: &Call<'_>, ehr_id: &str, kind: ObjectKind, object_id: &str) -> Result<Response, Failure> {
        let versions = self.all_versions(call, ehr_id, kind, object_id).await?;
        let last = versions.last().ok_or_else(|| missing(kind))?;
        let items: Vec<String> = versions.iter().map(history_item).collect();
        let tree = own(&format!(r#"{{"_type":"REVISION_HISTORY","items":[{}]}}"#, items.join(",")), Cls::REVISION_HISTORY)?;
        call.resource(tree.root().ok_or_else(|| missing(kind))?, &last.version_uid, &last.time_committed)
    }

    async fn all_versions(&self, call: &Call<'_>, ehr_id: &str, kind: ObjectKind, object_id: &str) -> Result<Vec<Version>, Failure> {
        let mut versions = self.repository.versions(ehr_id, object_id).await.map_err(Failure::of_store)?;
        versions.retain(|v| v.kind == kind);
        match versions.iter().rev().find_map(|v| v.template_id.as_deref()) {
            Some(template) => call.allowed_in(ehr_id, Some(template))?,
            None if versions.is_empty() => {}
            None => call.allowed_in(ehr_id, None)?,
        }
        Ok(versions)
    }
}

fn history_item(version: &Version) -> String {
    let tree = version.packed.unpack();
    let audit = tree.root().and_then(|root| root.get(Attr::COMMIT_AUDIT)).map(json::write).unwrap_or_default();
    let id = object(&[("_type", "OBJECT_VERSION_ID"), ("value", &version.version_uid)]);
    format!(r#"{{"_type":"REVISION_HISTORY_ITEM","version_id":{id},"audits":[{audit}]}}"#)
}

/// Reads a document that the service wrote itself.
pub(crate) fn own(text: &str, class: Cls) -> Result<Tree, Failure> {
    json::read(text, class).map_err(|findings| Failure::new(500, findings.first().map_or_else(String::new, crate::diag::Finding::one_line)))
}

/// The address of a version.
pub(crate) fn address(call: &Call<'_>, ehr_id: &str, version: &Version) -> String {
    document_address(call, ehr_id, version.kind, &version.version_uid)
}

/// The address of a document by its version uid.
pub(crate) fn document_address(call: &Call<'_>, ehr_id: &str, kind: ObjectKind, version_uid: &str) -> String {
    let resource = match kind {
        ObjectKind::Folder => "directory",
        ObjectKind::EhrStatus => "ehr_status",
        ObjectKind::Composition | ObjectKind::Party => "composition",
    };
    call.address(&["ehr", ehr_id, resource, version_uid])
}

/// The uid at the root of a document.
pub(crate) fn uid_of(node: NodeRef<'_>) -> Option<&str> {
    node.text_along(&[Attr::UID, Attr::VALUE])
}

/// There is no such object or version.
pub(crate) fn missing(kind: ObjectKind) -> Failure {
    Failure::missing(format!("there is no such {} in this EHR", class_name(kind)))
}
