//! `Prefer: resolve_refs`: references to objects of this repository are replaced by the objects,
//! one level deep.
//!
//! EHR: its EHR_STATUS, directory and first compositions. FOLDER: its items. CONTRIBUTION: its
//! VERSIONs. An object that cannot be read stays a reference, and so does everything after the
//! first [`MAX_RESOLVED`] references or [`MAX_RESOLVED_BYTES`] of documents. Only in JSON: the XML
//! schemas have references there.

use super::Service;
use super::admission::LARGE;
use super::auth::{Action, Permission, Resource, Subject};
use super::call::Call;
use super::error::{Failure, root_of};
use super::ids::Target;
use super::negotiate::{Format, wanted_format};
use super::representation::Representation;
use crate::rm::class::{Attr, Cls};
use crate::rm::imported::standard_form;
use crate::rm::json;
use crate::rm::tree::NodeRef;
use crate::store::repository::{BoundedVersion, Repository, Version, VersionSelector};
use aqlite_rm::order;

/// The maximum number of references that one response resolves.
const MAX_RESOLVED: usize = 100;
/// The maximum bytes of the stored documents that replace references in one response.
const MAX_RESOLVED_BYTES: usize = 4_000_000;

/// The documents that have replaced references of one response so far.
#[derive(Default)]
struct Taken {
    /// Bytes of the stored documents.
    bytes: usize,
    /// Bytes of stored documents for which the request has room.
    room: usize,
}

impl Taken {
    /// Adds a document, and waits for room if the documents outgrow it: for twice their bytes, so
    /// that few waits are needed and requests for short documents do not wait for each other.
    async fn add(&mut self, call: &Call<'_>, bytes: usize) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= LARGE && self.bytes > self.room {
            self.room = self.bytes.saturating_mul(2).min(MAX_RESOLVED_BYTES);
            call.room(self.room).await?;
        }
        Ok(())
    }
}

impl<R: Repository> Service<R> {
    /// Returns the JSON of a resource with its references resolved; `None` unless the client
    /// prefers that and accepts JSON.
    pub(crate) async fn resolved(
        &self,
        call: &Call<'_>,
        owner: &str,
        node: NodeRef<'_>,
    ) -> Result<Option<Representation>, Failure> {
        if !call.prefer.resolve_refs || wanted_format(call.request)? != Format::Json {
            return Ok(None);
        }
        let (mut references, mut documents) = (Vec::new(), Taken::default());
        collect(node, &mut references);
        let mut text = json::write(node);
        let mut places: Vec<(usize, usize, Option<String>)> = Vec::new();
        for reference in references.into_iter().take(MAX_RESOLVED) {
            let own = json::write(reference);
            let Some((at, _)) = text
                .match_indices(&own)
                // Equal references have equal texts, so each takes the next position.
                .find(|(at, _)| places.iter().all(|(taken, ..)| taken != at))
            else {
                continue;
            };
            let complete = node.class() == Cls::CONTRIBUTION;
            let found = self
                .referred(call, owner, reference, complete, &mut documents)
                .await?;
            call.pause().await;
            places.push((at, own.len(), found));
        }
        order::sort_by_key(&mut places, |(at, ..)| *at);
        // The preference was not applied if no reference could be resolved.
        let is_applied = places.iter().any(|(.., found)| found.is_some());
        // From the end, so that earlier positions stay valid.
        for (at, length, found) in places.into_iter().rev() {
            if let Some(found) = found {
                text.replace_range(at..at + length, &found);
            }
        }
        let mut headers = Vec::new();
        if is_applied {
            headers.push(("Preference-Applied", String::from("resolve_refs")));
        }
        Ok(Some(Representation {
            media_type: Format::Json.media_type(),
            body: text,
            headers,
        }))
    }

    /// Returns the document of a reference, or its complete VERSION.
    async fn referred(
        &self,
        call: &Call<'_>,
        owner: &str,
        reference: NodeRef<'_>,
        complete: bool,
        taken: &mut Taken,
    ) -> Result<Option<String>, Failure> {
        let Some(target) = reference
            .text_along(&[Attr::ID, Attr::VALUE])
            .and_then(Target::parse)
        else {
            return Ok(None);
        };
        let Some(found) = self.within_limit(call, owner, &target, taken).await? else {
            return Ok(None);
        };
        // The permission depends on the template, so the version is read first. Without permission
        // the reference stays.
        if !may_read(call, owner, &found) {
            return Ok(None);
        }
        let tree = found.packed.unpack();
        Ok(match complete {
            true => Some(json::write(root_of(&standard_form(tree))?)),
            false => tree
                .root()
                .and_then(|root| root.get(Attr::DATA))
                .map(json::write),
        })
    }

    /// Reads a version; `None` if there is none, or if the documents of the response would exceed
    /// [`MAX_RESOLVED_BYTES`].
    async fn within_limit(
        &self,
        call: &Call<'_>,
        owner: &str,
        target: &Target,
        taken: &mut Taken,
    ) -> Result<Option<Version>, Failure> {
        let uid;
        let (object, which) = match target {
            Target::Object(object) => (object, VersionSelector::Latest),
            Target::Version(version) => {
                uid = version.to_string();
                (&version.object_id, VersionSelector::Uid(&uid))
            }
        };
        let left = MAX_RESOLVED_BYTES.saturating_sub(taken.bytes);
        let found = self
            .repository
            .version_within(owner, object, which, left.min(LARGE))
            .await
            .map_err(Failure::of_store)?;
        let Some(found) = found.filter(|found| found.bytes() <= left) else {
            return Ok(None);
        };
        // Counted before the permission is checked: a rejected document costs the same work.
        taken.add(call, found.bytes()).await?;
        match found {
            BoundedVersion::Complete(version) => Ok(Some(*version)),
            BoundedVersion::Large(large) => {
                let uid = VersionSelector::Uid(&large.head.version_uid);
                let found = self.repository.version(owner, large.head.object_id(), uid);
                found.await.map_err(Failure::of_store)
            }
        }
    }
}

/// Returns whether the caller may read a version of an owner.
fn may_read(call: &Call<'_>, owner: &str, version: &Version) -> bool {
    let permission = Permission {
        resource: match owner {
            "" => Resource::Party,
            _ => Resource::Record,
        },
        act: Action::Read,
    };
    let subject = Subject::of_document(version.kind, version.template_id.as_deref());
    call.caller.within(permission, subject, owner).is_ok()
}

/// Appends the references of a resource, in order.
fn collect<'t>(node: NodeRef<'t>, found: &mut Vec<NodeRef<'t>>) {
    let attributes: &[Attr] = match node.class() {
        Cls::EHR => &[Attr::EHR_STATUS, Attr::DIRECTORY, Attr::COMPOSITIONS],
        Cls::CONTRIBUTION => &[Attr::VERSIONS],
        Cls::FOLDER => &[Attr::ITEMS],
        _ => &[],
    };
    for attribute in attributes {
        found.extend(node.values(*attribute));
    }
    for folder in node.values(Attr::FOLDERS) {
        collect(folder, found);
    }
}
