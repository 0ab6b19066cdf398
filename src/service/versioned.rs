//! Versions of objects: selection by uid or time, responses, and the VERSIONED_OBJECT resources.

use super::Service;
use super::admission::LARGE;
use super::call::Call;
use super::document_class::Controlled;
use super::error::{Failure, root_of};
use super::http::Response;
use super::ids::{Target, VersionUid};
use super::owner::Owner;
use super::route::Part;
use super::time::version_at_time;
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::imported::standard_form;
use crate::rm::json;
use crate::rm::tree::{NodeRef, Tree};
use crate::store::canonical::{object, quoted, reference};
use crate::store::repository::{
    BoundedVersion, ListPage, Repository, Version, VersionMetadata, VersionSelector,
};

/// The maximum bytes of a REVISION_HISTORY.
const MAX_HISTORY: usize = 8_000_000;

impl<R: Repository> Service<R> {
    /// Returns the version that a path selects: by its uid, or by its object and `version_at_time`,
    /// or the latest of its object.
    pub(crate) async fn find_version(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
        target: &Target,
    ) -> Result<Version, Failure> {
        match self.find_bounded(call, owner, what, target).await? {
            BoundedVersion::Complete(version) => Ok(*version),
            BoundedVersion::Large(large) => {
                Ok(*self.read_complete(call, owner, &large.head).await?)
            }
        }
    }

    /// Like [`Service::find_version`], but without the document if that is long.
    pub(crate) async fn find_bounded(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
        target: &Target,
    ) -> Result<BoundedVersion, Failure> {
        let at = version_at_time(call.request)?;
        let uid;
        let (object, which) = match (target, &at) {
            (Target::Version(version), _) => {
                uid = version.to_string();
                (&version.object_id, VersionSelector::Uid(&uid))
            }
            (Target::Object(object), Some(at)) => (object, VersionSelector::At(at)),
            (Target::Object(object), None) => (object, VersionSelector::Latest),
        };
        let found = self
            .bounded(call, (owner, object), which, what)
            .await?
            .ok_or_else(|| missing(what))?;
        let template = match &found {
            BoundedVersion::Complete(version) => &version.template_id,
            BoundedVersion::Large(large) => &large.head.template_id,
        };
        // After reading, because only the version has its template. A missing version is 404 for
        // every caller.
        call.check_permission_in(owner, what.kind, template.as_deref())?;
        Ok(found)
    }

    /// Reads a version of an object of an owner, without its document if that is long. A party is
    /// always read with its document, which alone determines its class.
    async fn bounded(
        &self,
        call: &Call<'_>,
        (owner, object): (&str, &str),
        which: VersionSelector<'_>,
        what: &Controlled,
    ) -> Result<Option<BoundedVersion>, Failure> {
        let found = self
            .repository
            .version_within(owner, object, which, LARGE)
            .await
            .map_err(Failure::of_store)?;
        let found = match found {
            Some(BoundedVersion::Large(large)) if what.kind == ObjectKind::Party => Some(
                BoundedVersion::Complete(self.read_complete(call, owner, &large.head).await?),
            ),
            found => found,
        };
        Ok(found.filter(|found| what.may_be(found)))
    }

    /// Reads a version with its long document, as soon as there is memory for it.
    pub(crate) async fn read_complete(
        &self,
        call: &Call<'_>,
        owner: &str,
        head: &VersionMetadata,
    ) -> Result<Box<Version>, Failure> {
        call.room(head.bytes).await?;
        let uid = VersionSelector::Uid(&head.version_uid);
        let found = self.repository.version(owner, head.object_id(), uid).await;
        let gone = || Failure::not_found("the version was deleted meanwhile");
        found
            .map_err(Failure::of_store)?
            .map(Box::new)
            .ok_or_else(gone)
    }

    /// Reads the preceding version of a change. Its document is read too, because no commit follows
    /// an altered version.
    pub(crate) async fn preceding_version(
        &self,
        call: &Call<'_>,
        (owner, object): (&str, &str),
        which: VersionSelector<'_>,
        what: &Controlled,
    ) -> Result<Option<VersionMetadata>, Failure> {
        Ok(
            match self.bounded(call, (owner, object), which, what).await? {
                Some(BoundedVersion::Large(large)) => {
                    self.read_complete(call, owner, &large.head).await?;
                    Some(large.head)
                }
                found => found.map(BoundedVersion::head),
            },
        )
    }

    /// Returns the metadata of a version of any kind. Its document is read if it is short.
    pub(crate) async fn version_metadata(
        &self,
        owner: &str,
        object: &str,
        which: VersionSelector<'_>,
    ) -> Result<Option<VersionMetadata>, Failure> {
        let found = self
            .repository
            .version_within(owner, object, which, LARGE)
            .await
            .map_err(Failure::of_store)?;
        Ok(found.map(BoundedVersion::head))
    }

    /// GET …/versioned_{composition|ehr_status|party}…
    pub(super) async fn versioned(
        &self,
        call: &Call<'_>,
        what: &Controlled,
        part: Part,
    ) -> Result<Response, Failure> {
        let owner = self.owner(call).await?;
        let owner = owner.id();
        if part == Part::Version {
            let target = Target::Version(named_version(call, what)?);
            return self.show_version(call, owner, what, &target).await;
        }
        let object = match (what.single, part) {
            (false, _) => Some(call.sub_param(0)?.to_ascii_lowercase()),
            (true, Part::AtTime) => self.object_at_time(call, owner, what.kind).await?,
            (true, _) => self.object_of(owner, what.kind).await?,
        };
        let object = object.ok_or_else(|| missing(what))?;
        match part {
            Part::Container => self.show_container(call, owner, what, &object).await,
            Part::History => self.show_history(call, owner, what, &object).await,
            Part::AtTime | Part::Version => {
                self.show_version(call, owner, what, &Target::Object(object))
                    .await
            }
        }
    }

    async fn show_version(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
        target: &Target,
    ) -> Result<Response, Failure> {
        let version = self.find_version(call, owner, what, target).await?;
        let _turn = call.turn(version.packed.json_size()).await?;
        let tree = standard_form(version.packed.unpack());
        let root = root_of(&tree)?;
        call.resource(root, None, &version.version_uid, &version.time_committed)
    }

    /// Returns the response with a VERSIONED_OBJECT.
    async fn show_container(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
        object_id: &str,
    ) -> Result<Response, Failure> {
        let heads = self.all_metadata(call, owner, what, object_id).await?;
        let (Some(first), Some(last)) = (heads.first(), heads.last()) else {
            return Err(missing(what));
        };
        let (owner, owner_class) = if owner.is_empty() {
            (self.config.system_id.as_str(), "SYSTEM")
        } else {
            (owner, "EHR")
        };
        let text = format!(
            r#"{{"_type":"VERSIONED_{}","uid":{},"owner_id":{},"time_created":{{"_type":"DV_DATE_TIME","value":{}}}}}"#,
            what.class.name(),
            object(&[("_type", "HIER_OBJECT_ID"), ("value", object_id)]),
            reference("HIER_OBJECT_ID", owner, owner_class),
            quoted(&first.time_committed),
        );
        let tree = own(&text, Cls::VERSIONED_OBJECT)?;
        let root = root_of(&tree)?;
        call.resource(root, None, object_id, &last.time_committed)
    }

    /// Returns the response with a REVISION_HISTORY.
    async fn show_history(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
        object_id: &str,
    ) -> Result<Response, Failure> {
        let heads = self.all_metadata(call, owner, what, object_id).await?;
        let last = heads.last().ok_or_else(|| missing(what))?;
        let read: usize = heads.iter().map(|head| head.bytes).sum();
        let largest = heads
            .iter()
            .map(|head| head.bytes)
            .max()
            .unwrap_or_default();
        // The versions are read in pages, so at most a page, or the largest version, is in memory.
        call.room(read.min(MAX_HISTORY.max(largest))).await?;
        let items = self.history_items(call, owner, object_id).await?;
        let _turn = call.turn(items.len()).await?;
        let text = format!(r#"{{"_type":"REVISION_HISTORY","items":[{items}]}}"#);
        let tree = own(&text, Cls::REVISION_HISTORY)?;
        let root = root_of(&tree)?;
        call.resource(root, None, &last.version_uid, &last.time_committed)
    }

    /// Returns the items of a REVISION_HISTORY. The versions are read in pages, and only their
    /// audits are kept.
    async fn history_items(
        &self,
        call: &Call<'_>,
        owner: &str,
        object_id: &str,
    ) -> Result<String, Failure> {
        let (mut items, mut after) = (String::new(), 0);
        // The limit of a query bounds a history, too, which may read any number of versions.
        let deadline = call.now.saturating_add(self.config.limits.query_time);
        loop {
            let ListPage {
                items: versions,
                more,
            } = self
                .repository
                .versions(owner, object_id, after)
                .await
                .map_err(Failure::of_store)?;
            let bytes = versions.iter().map(|v| v.packed.json_size()).sum();
            let turn = call.turn(bytes).await?;
            for version in &versions {
                items.push_str(if items.is_empty() { "" } else { "," });
                items.push_str(&history_item(version));
                after = version.number;
            }
            drop(turn);
            if items.len() > MAX_HISTORY {
                return Err(Failure::new(
                    422,
                    format!(
                        "the revision history is larger than {MAX_HISTORY} bytes: read the versions one by one"
                    ),
                ));
            }
            if !more {
                return Ok(items);
            }
            if call.clock() > deadline {
                let seconds = self.config.limits.query_time / 1_000_000;
                let message = format!("the history took longer than {seconds} s to read");
                return Err(Failure::new(408, message));
            }
            call.pause().await;
        }
    }

    /// Returns the metadata of the versions of an object, oldest first; empty if the object is not
    /// of the class `what`.
    async fn all_metadata(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
        object_id: &str,
    ) -> Result<Vec<VersionMetadata>, Failure> {
        let heads = self
            .repository
            .version_metadata(owner, object_id)
            .await
            .map_err(Failure::of_store)?;
        // An object of another kind is answered like a missing one.
        if heads.iter().any(|head| head.kind != what.kind) {
            return Ok(Vec::new());
        }
        // All versions of a party have the same class, which only their documents determine.
        if what.kind == ObjectKind::Party
            && let Some(last) = heads.iter().rfind(|head| !head.is_deletion())
        {
            let class = self.class_of_data(owner, last).await?;
            if class.is_some_and(|class| !class.is_a(what.class)) {
                return Ok(Vec::new());
            }
        }
        // A deletion has no template, so the last version with data decides.
        let template = heads.iter().rev().find_map(|h| h.template_id.as_deref());
        if !heads.is_empty() {
            call.check_permission_in(owner, what.kind, template)?;
        }
        Ok(heads)
    }
}

/// Returns the version in the path of a VERSIONED_OBJECT. It belongs to the object that the path
/// names. A path of a directory names none: the EHR may have had several, one after another.
fn named_version(call: &Call<'_>, what: &Controlled) -> Result<VersionUid, Failure> {
    let (object, position) = match what.single {
        true => (None, 0),
        false => (Some(call.sub_param(0)?.to_ascii_lowercase()), 1),
    };
    VersionUid::parse(call.sub_param(position)?)
        .filter(|uid| object.is_none_or(|object| uid.object_id == object))
        .ok_or_else(|| missing(what))
}

/// Returns the REVISION_HISTORY_ITEM of a version. Its audits are the audit of the commit, and then
/// those of the attestations in their order (RM Common, REVISION_HISTORY_ITEM.audits).
fn history_item(version: &Version) -> String {
    let tree = version.packed.unpack();
    // An imported version has the audit of its import, and those of its original system.
    let around = tree.root();
    let audits = [around, around.and_then(|root| root.get(Attr::ITEM))]
        .into_iter()
        .flatten()
        .flat_map(|version| {
            let commit = version.get(Attr::COMMIT_AUDIT).into_iter();
            commit.chain(version.values(Attr::ATTESTATIONS))
        });
    let audits = audits.map(json::write).collect::<Vec<_>>().join(",");
    let id = object(&[
        ("_type", "OBJECT_VERSION_ID"),
        ("value", &version.version_uid),
    ]);
    format!(r#"{{"_type":"REVISION_HISTORY_ITEM","version_id":{id},"audits":[{audits}]}}"#)
}

/// Reads a document that the service has made, as an object of a class.
///
/// # Errors
/// 500 for a text that is no such object, which breaks an invariant.
pub(crate) fn own(text: &str, class: Cls) -> Result<Tree, Failure> {
    json::read(text, class).map_err(|findings| {
        let places: Vec<String> = findings
            .iter()
            .map(|f| format!("{} at {}", f.code, f.path))
            .collect();
        Failure::new(
            500,
            format!("the stored {class} cannot be read: {}", places.join(", ")),
        )
    })
}

/// Returns the URL of a document by its version uid.
pub(crate) fn address(
    call: &Call<'_>,
    owner: &str,
    what: &Controlled,
    version_uid: &str,
) -> String {
    let mut segments = Owner::segments(owner);
    segments.extend([what.segment, version_uid]);
    call.address(&segments)
}

/// Returns the uid at the root of a document.
pub(crate) fn uid_of(node: NodeRef<'_>) -> Option<&str> {
    node.text_along(&[Attr::UID, Attr::VALUE])
}

/// Returns the error for a missing object or version.
pub(crate) fn missing(what: &Controlled) -> Failure {
    Failure::not_found(format!("there is no such {} here", what.name))
}
