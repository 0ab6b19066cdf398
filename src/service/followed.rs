//! The objects that members of a contribution change: read together before the members are checked,
//! and changed by each member, so that later members may follow earlier ones.

use super::Service;
use super::admission::LARGE;
use super::call::Call;
use super::commit::{Change, OBJECTS};
use super::committal::{DELETED, change_type, sent_code};
use super::error::Failure;
use super::ids::VersionUid;
use super::owner::Owner;
use crate::diag::Finding;
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::{NodeRef, Tree};
use crate::store::repository::{BoundedVersion, Repository, VersionMetadata};
use aqlite_rm::order;
use std::collections::HashMap;

/// An object before the next member.
#[derive(Clone)]
pub(super) struct FollowedObject {
    /// Its kind.
    pub kind: ObjectKind,
    /// Whether its latest version is a deletion.
    pub is_deleted: bool,
    /// The class of its data, which only a document determines: known for parties.
    class: Option<Cls>,
    /// The last version with data, if its document is too long to be read with others.
    unread: Option<VersionMetadata>,
}

/// The objects that members of a contribution change, by object id. `None` means that an object
/// does not exist.
#[derive(Default)]
pub(super) struct FollowedObjects(HashMap<String, Option<FollowedObject>>);

impl FollowedObjects {
    /// Changes the object of a member that was checked.
    pub fn change(&mut self, change: &Change) {
        let object = self.0.entry(change.uid.object_id.clone()).or_default();
        let before = object.take();
        let data = change.content.as_ref().and_then(|c| c.tree.root());
        let class = data.map(NodeRef::class);
        *object = Some(FollowedObject {
            kind: change.kind,
            is_deleted: class.is_none(),
            unread: before.as_ref().and_then(|before| before.unread.clone()),
            // The class of the first version with data applies to all later ones.
            class: before.and_then(|before| before.class).or(class),
        });
    }

    /// Returns whether an object was read, or does not exist.
    pub fn is_known(&self, object: &str) -> bool {
        self.0.contains_key(object)
    }

    /// Adds a version of a party that may be committed or refused. An object that was read keeps
    /// its class. If two versions create one object with different classes, only their commits
    /// decide which of them exists, so the object is not known any more.
    pub fn add_created(&mut self, object: &str, class: Cls) {
        let Some(known) = self.0.get_mut(object) else {
            return;
        };
        match known {
            None => {
                *known = Some(FollowedObject {
                    kind: ObjectKind::Party,
                    is_deleted: false,
                    class: Some(class),
                    unread: None,
                });
            }
            Some(known) if known.class == Some(class) => {}
            Some(_) => drop(self.0.remove(object)),
        }
    }

    /// Adds the objects of versions. Those without versions do not exist.
    fn add(&mut self, objects: &[&str], found: Vec<BoundedVersion>) {
        for object in objects {
            self.0.insert((*object).to_owned(), None);
        }
        let mut found: Vec<_> = found
            .into_iter()
            .map(|version| {
                let is_large = matches!(version, BoundedVersion::Large(_));
                (class_of(&version), is_large, version.head())
            })
            .collect();
        // Of a deleted object, the last version with data is read too: the latest one comes last.
        order::sort_by(&mut found, |(.., one), (.., other)| {
            one.number.cmp(&other.number)
        });
        for (class, is_large, head) in found {
            let Some(known) = self.0.get_mut(head.object_id()) else {
                continue;
            };
            let before = known.take();
            let is_deleted = head.is_deletion();
            *known = Some(FollowedObject {
                kind: head.kind,
                is_deleted,
                class: before.as_ref().and_then(|before| before.class).or(class),
                unread: match before {
                    Some(before) if is_deleted => before.unread,
                    _ => (is_large && !is_deleted).then_some(head),
                },
            });
        }
    }
}

impl<R: Repository> Service<R> {
    /// Reads objects, [`OBJECTS`] of them by one statement.
    pub(super) async fn read_all_followed(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        objects: &[&str],
    ) -> Result<FollowedObjects, Failure> {
        let mut followed = FollowedObjects::default();
        for (number, objects) in objects.chunks(OBJECTS).enumerate() {
            if number > 0 {
                call.pause().await;
            }
            self.read_followed(owner, objects, &mut followed).await?;
        }
        Ok(followed)
    }

    async fn read_followed(
        &self,
        owner: &Owner,
        objects: &[&str],
        followed: &mut FollowedObjects,
    ) -> Result<(), Failure> {
        // Only the class of a party depends on its document.
        let most = match owner {
            Owner::Demographic => LARGE,
            _ => 0,
        };
        let found = self
            .repository
            .latest_versions(owner.id(), objects, most)
            .await
            .map_err(Failure::of_store)?;
        followed.add(objects, found);
        Ok(())
    }

    /// Returns the object with an id, as the members so far leave it.
    pub(super) async fn followed_object(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        object: &str,
        followed: &mut FollowedObjects,
    ) -> Result<Option<FollowedObject>, Failure> {
        // The object was not among those to read, or `add_created` removed it.
        if !followed.0.contains_key(object) {
            call.pause().await;
            self.read_followed(owner, &[object], followed).await?;
        }
        Ok(followed.0.get(object).cloned().flatten())
    }

    /// Returns the kind of the object that a deletion follows: its version has no data.
    pub(super) async fn kind_of_followed(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        preceding: Option<&VersionUid>,
        followed: &mut FollowedObjects,
    ) -> Result<ObjectKind, Failure> {
        let unknown = || Failure::new(409, "the preceding version does not exist");
        let object = &preceding.ok_or_else(unknown)?.object_id;
        let known = self.followed_object(call, owner, object, followed).await?;
        let known = known.ok_or_else(unknown)?;
        match known.is_deleted {
            true => Err(Failure::new(409, "the object is deleted already")),
            false => Ok(known.kind),
        }
    }

    /// Checks that a party keeps the class of its versions with data. VERSIONED_PARTY alone does
    /// not determine it. A missing preceding version is rejected by the commit.
    pub(super) async fn check_followed_class(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        (preceding, class): (&VersionUid, Cls),
        followed: &mut FollowedObjects,
    ) -> Result<(), Failure> {
        let object = preceding.object_id.as_str();
        let Some(known) = self.followed_object(call, owner, object, followed).await? else {
            return Ok(());
        };
        let before = self.class_of_followed(call, owner, known).await?;
        check_class(before, class)
    }

    /// Returns the class of the data of an object. For a party it is that of its document, which
    /// may have to be read.
    async fn class_of_followed(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        known: FollowedObject,
    ) -> Result<Option<Cls>, Failure> {
        match (known.class, known.unread) {
            (None, Some(head)) if known.kind == ObjectKind::Party => {
                let version = self.read_complete(call, owner.id(), &head).await?;
                Ok(class_of(&BoundedVersion::Complete(version)))
            }
            (class, _) => Ok(class),
        }
    }

    /// Returns the class of the documents of an object, or that of its kind if it has none.
    pub(super) async fn class_of_object(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        object: &str,
        followed: &mut FollowedObjects,
    ) -> Result<Cls, Failure> {
        let Some(known) = self.followed_object(call, owner, object, followed).await? else {
            return Ok(Cls::VERSIONED_OBJECT);
        };
        let kind = known.kind;
        let class = self.class_of_followed(call, owner, known).await?;
        Ok(class.unwrap_or_else(|| kind.class()))
    }
}

/// Checks the class of a document against that of the versions before it.
fn check_class(before: Option<Cls>, class: Cls) -> Result<(), Failure> {
    match before {
        Some(before) if before != class => {
            let rule = "a version is of the class that it follows; commit another document as an object of its own";
            let finding = Finding::error("SVC0204", "/data", rule)
                .expected(before.name())
                .found(class.name());
            Err(Failure::unreadable("version", &[finding]))
        }
        _ => Ok(()),
    }
}

/// Returns the class of the data of a version that was read.
fn class_of(version: &BoundedVersion) -> Option<Cls> {
    let BoundedVersion::Complete(version) = version else {
        return None;
    };
    let tree = version.packed.unpack();
    let data = tree.root().and_then(|root| root.get(Attr::DATA));
    data.map(NodeRef::class)
}

/// Returns the objects whose kind or class the check of these members needs.
/// `may_all_delete`: whether members without a change type are deletions.
pub(super) fn objects_to_read(
    owner: &Owner,
    versions: &[Tree],
    may_all_delete: bool,
) -> Vec<String> {
    let roots = versions.iter().filter_map(Tree::root);
    order::distinct(roots.filter_map(|root| object_to_read(owner, root, may_all_delete)))
}

/// Returns the object that the check of a member reads: that of a deletion, of an imported version
/// and of a party.
fn object_to_read(owner: &Owner, version: NodeRef<'_>, may_delete: bool) -> Option<String> {
    let is_imported = version.class() == Cls::IMPORTED_VERSION;
    let version = if is_imported {
        version.get(Attr::ITEM)?
    } else {
        version
    };
    let preceding = version.text_along(&[Attr::PRECEDING_VERSION_UID, Attr::VALUE])?;
    let is_needed = is_imported
        || may_delete
        || matches!(owner, Owner::Demographic)
        || version.get(Attr::DATA).is_none()
        || states_deletion(version);
    let object = VersionUid::parse(preceding)?.object_id;
    is_needed.then_some(object)
}

/// Returns whether the commit_audit of a version states a deletion. Such a version may have data,
/// which do not count.
fn states_deletion(version: NodeRef<'_>) -> bool {
    let audit = version.get(Attr::COMMIT_AUDIT);
    let coded = audit.and_then(|audit| audit.get(Attr::CHANGE_TYPE));
    coded.and_then(|coded| sent_code(coded, change_type)) == Some(Ok(DELETED))
}
