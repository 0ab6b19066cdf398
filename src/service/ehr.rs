//! EHR: creation with its EHR_STATUS, and reading.

use super::Service;
use super::call::{Call, ChangedResource};
use super::commit::ChangeSet;
use super::committal::CREATION;
use super::content::{CheckedDocument, ValidationLevel, read_body, read_text};
use super::error::{Failure, root_of};
use super::http::Response;
use super::ids::{is_uuid, uuid_of};
use super::negotiate::Format;
use super::query::MORE;
use super::validators::{check_preconditions, has_preconditions};
use super::versioned::own;
use crate::document::ObjectKind;
use crate::rm::class::Cls;
use crate::rm::tree::Tree;
use crate::store::canonical::{object, quoted, reference};
use crate::store::repository::{Ehr, Repository, VersionMetadata, VersionSelector};

/// The EHR_STATUS of an EHR that is created without one (ITS-REST, EHR creation).
pub(crate) const DEFAULT_STATUS: &str = r#"{"_type":"EHR_STATUS","archetype_node_id":"openEHR-EHR-EHR_STATUS.generic.v1",
"name":{"_type":"DV_TEXT","value":"EHR Status"},"archetype_details":{"_type":"ARCHETYPED",
"archetype_id":{"_type":"ARCHETYPE_ID","value":"openEHR-EHR-EHR_STATUS.generic.v1"},"rm_version":"1.1.0"},
"subject":{"_type":"PARTY_SELF"},"is_queryable":true,"is_modifiable":true}"#;

impl<R: Repository> Service<R> {
    /// POST /ehr
    pub(super) async fn ehr_create(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr_id = call.new_uuid();
        self.create_ehr(call, &ehr_id).await
    }

    /// PUT /ehr/{ehr_id}
    pub(super) async fn ehr_create_with_id(&self, call: &Call<'_>) -> Result<Response, Failure> {
        if !is_uuid(call.param(0)?) {
            return Err(Failure::bad_request("the ehr_id in the path is not a UUID"));
        }
        let ehr_id = call.param(0)?.to_ascii_lowercase();
        if has_preconditions(call.request) {
            let stored = self.repository.ehr(&ehr_id).await;
            let stored = stored.map_err(Failure::of_store)?;
            check_preconditions(call.request, stored.as_ref().map(|ehr| &*ehr.ehr_id))?;
        }
        self.create_ehr(call, &ehr_id).await
    }

    /// GET /ehr?subject_id=…&subject_namespace=…; without both, the list of all EHRs
    pub(super) async fn ehr_by_subject(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let names_subject = |key| call.request.query_value(key).is_some();
        if !["subject_id", "subject_namespace"]
            .into_iter()
            .any(names_subject)
        {
            return self.ehr_list(call).await;
        }
        let parameter = |key| call.request.query_value(key).filter(|v| !v.is_empty());
        let (Some(id), Some(namespace)) = (parameter("subject_id"), parameter("subject_namespace"))
        else {
            return Err(Failure::bad_request(
                "the parameters `subject_id` and `subject_namespace` are both needed",
            ));
        };
        let found = self
            .repository
            .ehr_by_subject(id, namespace)
            .await
            .map_err(Failure::of_store)?;
        let missing = || Failure::not_found("there is no EHR of this subject");
        let ehr = found.ok_or_else(missing)?;
        // A caller without access gets the same answer as for an unknown subject, so that it does
        // not reveal that the subject has an EHR.
        call.check_permission_in(&ehr.ehr_id, ObjectKind::EhrStatus, None)
            .map_err(|_| missing())?;
        call.trail.add_ehr(&ehr.ehr_id);
        self.show_ehr(call, &ehr).await
    }

    /// GET /ehr/{ehr_id}
    pub(super) async fn ehr_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let ehr = self.ehr_with_id(call.param(0)?).await?;
        self.show_ehr(call, &ehr).await
    }

    /// Creates an EHR under an id, with the EHR_STATUS of the body or the default one.
    async fn create_ehr(&self, call: &Call<'_>, ehr_id: &str) -> Result<Response, Failure> {
        call.check_acceptable()?;
        let status = self.initial_status(call).await?;
        let change = self.first_version(
            ObjectKind::EhrStatus,
            call.new_uuid(),
            status,
            call.direct_audit(CREATION)?,
        );
        let references = References {
            status: Some(change.uid.to_string()),
            names_access: true,
            ..References::default()
        };
        let set = ChangeSet {
            creates_ehr: true,
            ..ChangeSet::single(ehr_id, change)
        };
        let committed = self.commit(call, set).await?;
        let tree = ehr_document(&self.config.system_id, ehr_id, &committed.time, &references)?;
        let path = call.address(&["ehr", ehr_id]);
        let resolved = match tree.root() {
            Some(root) => self.resolved(call, ehr_id, root).await,
            None => Ok(None),
        };
        let uri = Some(format!("ehr:/{ehr_id}"));
        Ok(call.changed(ChangedResource {
            created: true,
            path,
            uri,
            uid: ehr_id,
            time: &committed.time,
            node: tree.root(),
            shown: resolved,
        }))
    }

    /// Returns the response with an EHR as a document.
    async fn show_ehr(&self, call: &Call<'_>, ehr: &Ehr) -> Result<Response, Failure> {
        let status = self
            .newest_of_kind(&ehr.ehr_id, ObjectKind::EhrStatus)
            .await?;
        let directory = self.newest_of_kind(&ehr.ehr_id, ObjectKind::Folder).await?;
        // The times of all repositories have one form, so their texts have the order of the times.
        let mut changed = ehr.time_created.clone();
        for (_, latest) in [&status, &directory].into_iter().flatten() {
            changed = changed.max(latest.time_committed.clone());
        }
        let directory = directory.filter(|(_, latest)| !latest.is_deletion());
        let compositions =
            self.repository
                .objects(&ehr.ehr_id, ObjectKind::Composition, 0, MAX_REFERENCES + 1);
        let mut compositions = compositions.await.map_err(Failure::of_store)?;
        let has_more = compositions.len() as u64 > MAX_REFERENCES;
        compositions.truncate(MAX_REFERENCES as usize);
        let references = References {
            status: status.map(|(_, latest)| latest.version_uid),
            names_access: true,
            directory: directory.map(|(object, _)| object),
            compositions,
        };
        let tree = ehr_tree(ehr, &references)?;
        let root = root_of(&tree)?;
        let shown = self.resolved(call, &ehr.ehr_id, root).await?;
        // ITS-REST prescribes the ehr_id as entity tag, which remains when the content changes.
        let response = call.whole_resource(root, shown, &ehr.ehr_id, &changed)?;
        Ok(match has_more {
            true => response.with_header(MORE, "true"),
            false => response,
        })
    }

    /// Returns the newest object of a kind in an EHR, and the metadata of its latest version.
    async fn newest_of_kind(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
    ) -> Result<Option<(String, VersionMetadata)>, Failure> {
        let Some(object) = self.object_of(ehr_id, kind).await? else {
            return Ok(None);
        };
        let latest = self.version_metadata(ehr_id, &object, VersionSelector::Latest);
        Ok(latest.await?.map(|latest| (object, latest)))
    }

    /// Returns the EHR_STATUS of a new EHR: that of the body, or the default one.
    async fn initial_status(&self, call: &Call<'_>) -> Result<CheckedDocument, Failure> {
        let tree = {
            let _turn = call.turn_for_body().await?;
            match call.request.body.trim_ascii() {
                [] => read_text(DEFAULT_STATUS, Format::Json, Cls::EHR_STATUS, "EHR_STATUS")?,
                _ => read_body(call, Cls::EHR_STATUS, "EHR_STATUS")?,
            }
        };
        let level = ValidationLevel::from_audit(&call.direct_audit(CREATION)?);
        self.check_plain(call, tree, "EHR_STATUS", level).await
    }
}

/// The maximum number of references to compositions in an EHR, the oldest ones.
const MAX_REFERENCES: u64 = 10_000;

/// The references in the document of an EHR.
#[derive(Default)]
pub(super) struct References {
    status: Option<String>,
    /// Whether to name an EHR_ACCESS, as the schema of XML and the Reference Model require. None is
    /// stored, because roles and scopes decide about access. The reference is derived from the
    /// ehr_id and cannot be resolved.
    names_access: bool,
    directory: Option<String>,
    compositions: Vec<String>,
}

/// Returns an EHR as a document of the interface.
pub(super) fn ehr_tree(ehr: &Ehr, references: &References) -> Result<Tree, Failure> {
    ehr_document(&ehr.system_id, &ehr.ehr_id, &ehr.time_created, references)
}

fn ehr_document(
    system_id: &str,
    ehr_id: &str,
    time_created: &str,
    references: &References,
) -> Result<Tree, Failure> {
    let hier = |value: &str| object(&[("_type", "HIER_OBJECT_ID"), ("value", value)]);
    let mut text = format!(
        r#"{{"_type":"EHR","system_id":{},"ehr_id":{},"time_created":{{"_type":"DV_DATE_TIME","value":{}}}"#,
        hier(system_id),
        hier(ehr_id),
        quoted(time_created)
    );
    let mut add = |name: &str, json: String| text.push_str(&format!(r#","{name}":{json}"#));
    if references.names_access {
        // The same EHR has the same reference in each answer.
        let object = uuid_of(&format!("{ehr_id}\nEHR_ACCESS"));
        let uid = format!("{object}::{system_id}::1");
        let access = reference("OBJECT_VERSION_ID", &uid, "EHR_ACCESS");
        add("ehr_access", access);
    }
    if let Some(status) = &references.status {
        let status = reference("OBJECT_VERSION_ID", status, "EHR_STATUS");
        add("ehr_status", status);
    }
    if let Some(directory) = &references.directory {
        let directory = reference("HIER_OBJECT_ID", directory, "VERSIONED_FOLDER");
        add("directory", directory);
    }
    if !references.compositions.is_empty() {
        let composition = |id: &String| reference("HIER_OBJECT_ID", id, "VERSIONED_COMPOSITION");
        let list: Vec<String> = references.compositions.iter().map(composition).collect();
        add("compositions", format!("[{}]", list.join(",")));
    }
    text.push('}');
    own(&text, Cls::EHR)
}
