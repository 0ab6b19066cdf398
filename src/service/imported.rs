//! IMPORTED_VERSION: versions of other systems, stored unchanged in a commit of this one.
//!
//! A member of a contribution may be an IMPORTED_VERSION. Its `item`, the ORIGINAL_VERSION with its
//! foreign uid, audit, contribution and signature, is stored as sent. The commit_audit and the
//! contribution around it are those of this system.
//!
//! The Reference Model defines the functions `uid`, `preceding_version_uid`, `lifecycle_state` and
//! `data` of an IMPORTED_VERSION, which return those of the item. The stored form has their results
//! as attributes of the root, and an item without data. Every version therefore has its uid and its
//! data at the same paths, for queries, repositories and the service. Clients read the standard
//! form.

use super::Service;
use super::auth::{Action, Permission, Resource, Subject};
use super::call::Call;
use super::commit::Change;
use super::committal::{
    Audit, CREATION, Code, CommitMetadata, DELETED, MODIFICATION, check_parts, lifecycle,
};
use super::content::{ValidationLevel, model_findings, read_part};
use super::document_class::kind_of;
use super::error::Failure;
use super::followed::FollowedObjects;
use super::identity::{LIFECYCLE_CODE, check_data_uid, preceding_uid};
use super::ids::VersionUid;
use super::member_data::MemberData;
use super::named_uids::complete_data_uid;
use super::negotiate::Format;
use super::owner::Owner;
use super::time::check_past;
use super::update_form::{Rewritten, canonical_version};
use crate::diag::Severity;
use crate::rm::class::{Attr, Cls};
use crate::rm::imported::stored_form;
use crate::rm::tree::{NodeRef, Tree};
use crate::store::repository::{Repository, VersionSelector};
use std::borrow::Cow;

/// Returns whether the first tag of an element has the attribute `xsi:type` with IMPORTED_VERSION.
/// The reader, which needs the expected class, checks the rest.
fn claims_to_be_imported(xml: &str) -> bool {
    xml.split('>').next().is_some_and(|tag| {
        tag.contains("\"IMPORTED_VERSION\"") || tag.contains("'IMPORTED_VERSION'")
    })
}

/// Returns a VERSION as a text of the Reference Model, with its class. Without a class it is an
/// ORIGINAL_VERSION.
fn canonical_text(text: &str, format: Format) -> Result<(Cow<'_, str>, Cls), Failure> {
    let (text, class) = match format {
        Format::Json => {
            let Rewritten { json, class } = canonical_version(text)?;
            (json, class)
        }
        Format::Xml => (
            Cow::Borrowed(text),
            claims_to_be_imported(text).then_some(Cls::IMPORTED_VERSION),
        ),
    };
    Ok((text, class.unwrap_or(Cls::ORIGINAL_VERSION)))
}

/// Reads a VERSION of the Reference Model or, in JSON, of ITS-REST.
pub(crate) fn read_version(text: &str, format: Format) -> Result<Tree, Failure> {
    let (text, class) = canonical_text(text, format)?;
    let tree = read_part(&text, format, class, "version")?;
    let of_item = [
        Attr::UID,
        Attr::PRECEDING_VERSION_UID,
        Attr::LIFECYCLE_STATE,
        Attr::DATA,
    ];
    let has = |root: NodeRef<'_>| of_item.iter().any(|attr| root.get(*attr).is_some());
    let root = tree
        .root()
        .filter(|root| root.class() == Cls::IMPORTED_VERSION);
    if root.is_some_and(has) {
        return Err(Failure::bad_request(
            "an IMPORTED_VERSION has uid, preceding_version_uid, lifecycle_state and data in its `item`, the ORIGINAL_VERSION",
        ));
    }
    Ok(tree)
}

/// An item that was checked.
struct Item<'t> {
    node: NodeRef<'t>,
    uid: VersionUid,
    /// Its preceding version in its own system.
    preceding: Option<VersionUid>,
}

impl<R: Repository> Service<R> {
    /// Checks a member of a contribution that is an IMPORTED_VERSION.
    ///
    /// # Errors
    /// 403 without the role `import`; 400 for an item that breaks a rule, with its findings; 409 for
    /// a deletion whose preceding version does not exist here, or is a deletion. The commit checks
    /// the order of versions.
    pub(super) async fn imported_change(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        version: NodeRef<'_>,
        contribution: &CommitMetadata,
        followed: &mut FollowedObjects,
    ) -> Result<Change, Failure> {
        call.caller.within(
            Permission {
                resource: Resource::Import,
                act: Action::Create,
            },
            Subject::Nameless,
            owner.id(),
        )?;
        let item = read_item(call, version)?;
        let data = item.node.get(Attr::DATA);
        let object = item.uid.object_id.as_str();
        let follows = item.preceding.is_some()
            && self
                .followed_object(call, owner, object, followed)
                .await?
                .is_some();
        // A version whose predecessors were not imported creates the object here.
        let preceding = item.preceding.filter(|_| follows);
        let kind = match data {
            Some(data) => kind_of(data.class())?,
            None => {
                self.kind_of_followed(call, owner, preceding.as_ref(), followed)
                    .await?
            }
        };
        let by_default = match (data, &preceding) {
            (None, _) => DELETED,
            (Some(_), Some(_)) => MODIFICATION,
            (Some(_), None) => CREATION,
        };
        let audit = audit_of_import(call, (version, item.node), contribution, by_default)?;
        let member = MemberData {
            kind,
            data,
            preceding: preceding.as_ref(),
            level: ValidationLevel::from_audit(&audit),
        };
        let content = self.check_member_data(call, owner, member, followed).await;
        let content = content.map_err(|failure| failure.below("/item"))?;
        let mut extra = version.to_tree();
        complete_data_uid(&mut extra);
        Ok(Change {
            kind,
            uid: item.uid,
            preceding: preceding.map(|uid| uid.to_string()),
            audit,
            content,
            extra: Some(extra),
            tags: Vec::new(),
        })
    }

    /// Returns the stored form of a version of an export. `is_pending` is true for versions that
    /// are written together with it.
    pub(super) async fn as_stored(
        &self,
        call: &Call<'_>,
        owner: &str,
        version: Tree,
        is_pending: impl Fn(&str) -> bool,
    ) -> Result<Tree, Failure> {
        let Some(root) = version
            .root()
            .filter(|root| root.class() == Cls::IMPORTED_VERSION)
        else {
            return Ok(version);
        };
        let Item { uid, preceding, .. } = read_item(call, root)?;
        let follows = self
            .follows_here(owner, &uid, preceding.as_ref(), is_pending)
            .await?;
        Ok(stored_form(root, follows))
    }

    /// Returns whether a version that follows another in its own system follows it here too. If no
    /// version of its object is stored, it creates the object. The commit checks which version it
    /// must follow.
    async fn follows_here(
        &self,
        owner: &str,
        uid: &VersionUid,
        preceding: Option<&VersionUid>,
        is_pending: impl Fn(&str) -> bool,
    ) -> Result<bool, Failure> {
        let Some(preceding) = preceding else {
            return Ok(false);
        };
        // The preceding version is written by the same commit.
        if is_pending(&preceding.to_string()) {
            return Ok(true);
        }
        let latest = self
            .version_metadata(owner, &uid.object_id, VersionSelector::Latest)
            .await?;
        Ok(latest.is_some())
    }
}

/// Returns the audit of the import of a version.
fn audit_of_import(
    call: &Call<'_>,
    (version, item): (NodeRef<'_>, NodeRef<'_>),
    contribution: &CommitMetadata,
    by_default: Code,
) -> Result<Audit, Failure> {
    let own = version
        .get(Attr::COMMIT_AUDIT)
        .map_or_else(|| Ok(CommitMetadata::default()), CommitMetadata::of_audit)
        .map_err(|failure| failure.below("/commit_audit"))?;
    let state = item.text_along(&LIFECYCLE_CODE).unwrap_or_default();
    // The change type describes the import, not the change in the other system.
    own.or_unless_type(call.commit_headers()?)
        .or_unless_type(contribution)
        .import_audit(by_default, lifecycle(state)?)
}

/// Reads and checks the item of an IMPORTED_VERSION. The caller checks its data, like those of any
/// member.
fn read_item<'t>(call: &Call<'_>, version: NodeRef<'t>) -> Result<Item<'t>, Failure> {
    let node = version
        .get(Attr::ITEM)
        .ok_or_else(|| Failure::bad_request("the IMPORTED_VERSION has no `item`"))?;
    let uid = node
        .text_along(&[Attr::UID, Attr::VALUE])
        .unwrap_or_default();
    let uid = VersionUid::read_stored(uid, "the uid of the item")?;
    if uid.system_id.eq_ignore_ascii_case(&call.config.system_id) {
        return Err(Failure::bad_request(format!(
            "the item {uid} claims to be a version of this system: an IMPORTED_VERSION is one of another system; commit an ORIGINAL_VERSION, or restore an export by `admin/import`"
        )));
    }
    check_data_uid(&uid, node.get(Attr::DATA))?;
    let preceding = preceding_uid(node, &uid, "preceding_version_uid of the item")?;
    check_item(node).map_err(|failure| failure.below("/item"))?;
    check_parts(version, "IMPORTED_VERSION", &[Attr::SIGNATURE])?;
    let time = [Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE];
    if let Some(time) = node.text_along(&time) {
        check_past("time_committed of the item", time, call.now)?;
    }
    let state = node.text_along(&LIFECYCLE_CODE).unwrap_or_default();
    if (state == DELETED.code) != node.get(Attr::DATA).is_none() {
        return Err(Failure::bad_request(format!(
            "the lifecycle state of the item is `{state}`: it has no data when that is `523` (deleted), and only then"
        )));
    }
    Ok(Item {
        node,
        uid,
        preceding,
    })
}

/// Checks an item without its data against the Reference Model.
fn check_item(item: NodeRef<'_>) -> Result<(), Failure> {
    let mut bare = item.to_tree();
    if let Some(id) = bare.root().map(NodeRef::id) {
        bare.remove(id, Attr::DATA);
    }
    let mut findings = model_findings(&bare)?;
    findings.retain(|finding| finding.severity == Severity::Error);
    if findings.is_empty() {
        return Ok(());
    }
    Err(Failure::unreadable(
        "item of the IMPORTED_VERSION",
        &findings,
    ))
}
