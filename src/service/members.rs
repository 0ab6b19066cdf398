//! The members of a contribution, which errors name by their place: `versions[2]`.

use super::error::Failure;
use crate::document::ObjectKind;
use crate::store::repository::{StoreError, Version};
use std::collections::HashMap;

/// The members of a contribution in their order. Empty for a change at its own address, whose
/// request has one document only.
#[derive(Clone, Default)]
pub(crate) struct Members(Vec<Member>);

#[derive(Clone)]
struct Member {
    version_uid: String,
    kind: ObjectKind,
    creates: bool,
    has_data: bool,
}

impl Members {
    /// Returns the members of a contribution of these versions.
    pub fn of_versions(versions: &[Version]) -> Members {
        let mut members = Members::default();
        for version in versions {
            members.add(
                version.version_uid.clone(),
                version.kind,
                version.preceding.is_none(),
                !version.is_deletion(),
            );
        }
        members
    }

    /// Adds the member with a version uid. `creates` is true for the first version of an object.
    pub fn add(&mut self, version_uid: String, kind: ObjectKind, creates: bool, has_data: bool) {
        self.0.push(Member {
            version_uid,
            kind,
            creates,
            has_data,
        });
    }

    /// Returns an error of a repository, with the place of the member that it rejects.
    pub fn failure_of_store(&self, error: StoreError) -> Failure {
        let rejected = self.rejected(&error);
        let failure = Failure::of_store(error);
        match rejected {
            Some(index) => in_member(index, failure),
            None => failure,
        }
    }

    /// Returns the index of the member that a repository rejects. Some errors name only a rule:
    /// then it is the last member to which that rule applies.
    fn rejected(&self, error: &StoreError) -> Option<usize> {
        let is_rejected: &dyn Fn(&Member) -> bool = match error {
            StoreError::OtherKind { version_uid, .. }
            | StoreError::OtherTemplate { version_uid, .. }
            | StoreError::OtherArchetype { version_uid, .. }
            | StoreError::OtherPersistence { version_uid, .. }
            | StoreError::Stale { version_uid, .. }
            | StoreError::UidExists(version_uid) => &|member| member.version_uid == *version_uid,
            StoreError::StatusExists => {
                &|member| member.kind == ObjectKind::EhrStatus && member.creates
            }
            StoreError::SubjectExists => {
                &|member| member.kind == ObjectKind::EhrStatus && member.has_data
            }
            StoreError::DirectoryExists => {
                &|member| member.kind == ObjectKind::Folder && member.has_data
            }
            _ => return None,
        };
        self.0.iter().rposition(is_rejected)
    }
}

/// The members of a contribution before the one that is checked.
#[derive(Default)]
pub(crate) struct EarlierMembers {
    /// For each version that a member follows, the index of that member.
    followers: HashMap<String, usize>,
    /// The index of the member that creates the directory of the EHR.
    directory: Option<usize>,
}

impl EarlierMembers {
    /// Adds the member at an index. `preceding` is the version that it follows, and `has_data` is
    /// false for a deletion.
    ///
    /// # Errors
    /// 409 if an earlier member follows the same version, or creates a directory too. The database
    /// would report the earlier member as a stored version, which the client could not read.
    pub fn add(
        &mut self,
        index: usize,
        kind: ObjectKind,
        preceding: Option<&str>,
        has_data: bool,
    ) -> Result<(), Failure> {
        if let Some(preceding) = preceding
            && let Some(earlier) = self.followers.insert(preceding.to_owned(), index)
        {
            return Err(Failure::new(
                409,
                format!(
                    "versions[{earlier}] follows the version {preceding} too: let each member follow the one before it, or send one of them"
                ),
            ));
        }
        if kind != ObjectKind::Folder {
            return Ok(());
        }
        match (self.directory, preceding) {
            // A deletion makes room for another directory.
            _ if !has_data => self.directory = None,
            (Some(earlier), None) => {
                return Err(Failure::new(
                    409,
                    format!(
                        "versions[{earlier}] creates a directory too, and an EHR has one: send one of them"
                    ),
                ));
            }
            (None, None) => self.directory = Some(index),
            (_, Some(_)) => {}
        }
        Ok(())
    }
}

/// Returns an error about the member of a contribution at an index, with its place.
pub(crate) fn in_member(index: usize, failure: Failure) -> Failure {
    let place = format!("versions[{index}]");
    failure.below(&format!("/{place}")).within(&place)
}
