//! The errors of a repository.

use crate::document::ObjectKind;
use std::fmt;

/// An error of a repository.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// An EHR with this id exists.
    EhrExists,
    /// Another EHR has this subject.
    SubjectExists,
    /// There is no such EHR.
    NoSuchEhr,
    /// The EHR does not allow modification.
    NotModifiable,
    /// A version is of another kind than the object that it belongs to.
    OtherKind {
        /// The uid of the rejected version.
        version_uid: String,
        /// The kind of the object.
        kind: ObjectKind,
    },
    /// A version has another template than the object that it belongs to.
    OtherTemplate {
        /// The uid of the rejected version.
        version_uid: String,
        /// The template of the object.
        template_id: String,
    },
    /// A version of a COMPOSITION has another archetype node id than the object that it belongs to.
    OtherArchetype {
        /// The uid of the rejected version.
        version_uid: String,
        /// The archetype node id of the object.
        archetype_node_id: String,
    },
    /// A version of a COMPOSITION is persistent, and the object that it belongs to is not, or the
    /// reverse.
    OtherPersistence {
        /// The uid of the rejected version.
        version_uid: String,
        /// Whether the object is persistent.
        is_persistent: bool,
    },
    /// The EHR already has an EHR_STATUS.
    StatusExists,
    /// A template, or the preceding version, differs from the preconditions of the commit.
    PreconditionFailed,
    /// The tags of the target differ from the expected ones.
    TagsChanged,
    /// There is no contribution with the uid at which a list should continue.
    NoSuchContribution,
    /// The preceding version is not the latest one. For a first version: the object exists.
    Stale {
        /// The uid of the rejected version.
        version_uid: String,
        /// The latest version uid of the object; empty when there is no such object.
        latest: String,
    },
    /// A contribution with this uid exists, or the object of this version uid exists in another
    /// EHR.
    UidExists(String),
    /// The EHR already has a directory.
    DirectoryExists,
    /// A definition with this name and version exists.
    DefinitionExists,
    /// Stored versions name this template.
    TemplateInUse,
    /// Some data of the snapshot were physically deleted, or belong to an EHR that population
    /// queries may not read any more.
    SnapshotGone,
    /// The snapshot is newer than the repository, so it belongs to another one.
    NoSuchSnapshot,
    /// The storage did not answer: it is unreachable, overloaded or too slow, or another writer was
    /// faster. A later attempt may succeed. The text never contains clinical values.
    Unavailable(String),
    /// The stored data differ from the committed data: the database was altered, or it is damaged.
    Corrupt {
        /// The uid of the version or the contribution.
        uid: String,
        /// Its EHR; empty if it has none.
        ehr_id: String,
    },
    /// An invariant of the stored data or of a request is broken. The text never contains clinical
    /// values.
    Failed(String),
}

impl std::error::Error for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::EhrExists => f.write_str("an EHR with this ehr_id exists"),
            StoreError::SubjectExists => f.write_str("an EHR with this subject exists"),
            StoreError::NoSuchEhr => f.write_str("there is no EHR with this ehr_id"),
            StoreError::NotModifiable => f.write_str("the EHR does not allow modification: its EHR_STATUS says is_modifiable = false"),
            StoreError::OtherKind { version_uid, kind } => write!(
                f,
                "the version {version_uid} would change the kind of its object from {}: a version is of the kind that it follows; \
                 commit another document as an object of its own",
                kind.class().name()
            ),
            StoreError::OtherTemplate { version_uid, template_id } => write!(
                f,
                "the version {version_uid} would change the template of its object from `{template_id}`: a version has the template that it \
                 follows; commit another document as an object of its own"
            ),
            StoreError::OtherArchetype { version_uid, archetype_node_id } => write!(
                f,
                "the version {version_uid} would change the archetype of its COMPOSITION from `{archetype_node_id}` \
                 (Archetype_node_id_valid of VERSIONED_COMPOSITION): commit another document as an object of its own"
            ),
            StoreError::OtherPersistence { version_uid, is_persistent } => write!(
                f,
                "the version {version_uid} would change its COMPOSITION {} (Persistent_valid of VERSIONED_COMPOSITION): \
                 keep the category, or commit the document as an object of its own",
                match is_persistent {
                    true => "from persistent to another category",
                    false => "to persistent",
                }
            ),
            StoreError::StatusExists => f.write_str("the EHR has an EHR_STATUS already: commit the new one as a version of that"),
            StoreError::PreconditionFailed => f.write_str("the template was changed while the document was checked against it: send it again"),
            StoreError::TagsChanged => f.write_str("the tags were changed meanwhile: read them again"),
            StoreError::NoSuchContribution => f.write_str("there is no contribution with the uid in `after`, or it was removed: start with the first page"),
            StoreError::Stale { latest, .. } => write!(f, "the latest version is {latest}"),
            StoreError::UidExists(uid) => write!(f, "the uid {uid} is in use"),
            StoreError::DirectoryExists => f.write_str("a directory already exists for this EHR"),
            StoreError::DefinitionExists => f.write_str("a definition with this name and version exists"),
            StoreError::TemplateInUse => f.write_str("stored versions use this template: remove them first"),
            StoreError::SnapshotGone => f.write_str("data of the snapshot were physically deleted, or an EHR of it is not queryable any more: request the first page again"),
            StoreError::NoSuchSnapshot => f.write_str("the snapshot is not one of this repository: request the first page again"),
            StoreError::Unavailable(why) => write!(f, "the storage is not available: {why}"),
            StoreError::Corrupt { uid, .. } => {
                write!(f, "the stored document {uid} differs from the committed one: the database was altered, or is damaged")
            }
            StoreError::Failed(why) => write!(f, "the storage failed: {why}"),
        }
    }
}
