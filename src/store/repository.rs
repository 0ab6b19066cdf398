//! What a host must be able to store: the one asynchronous trait of the project, and its records.
//!
//! Implementations: [`super::memory`] (browser, tests) and [`super::sql`] (D1, SQLite). The service
//! is the only caller.

use super::scan::{Progress, Scan, Snapshot};
use crate::document::{Batch, ObjectKind, Packed};
use aqlite_rm::order;
use std::fmt;
use std::pin::Pin;

/// An EHR, the record of one patient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ehr {
    /// EHR.ehr_id.value, a UUID in lower case.
    pub ehr_id: String,
    /// EHR.system_id.value.
    pub system_id: String,
    /// EHR.time_created.value, ISO 8601 extended with zone.
    pub time_created: String,
    /// EHR_STATUS.subject.external_ref: `(id, namespace)` of the latest status; unique where
    /// present.
    pub subject: Option<(String, String)>,
    /// EHR_STATUS.is_queryable of the latest status.
    pub is_queryable: bool,
    /// EHR_STATUS.is_modifiable of the latest status.
    pub is_modifiable: bool,
}

impl Ehr {
    /// What its EHR_STATUS says about it.
    pub(crate) fn flags(&self) -> EhrFlags {
        EhrFlags {
            subject: self.subject.clone(),
            is_queryable: self.is_queryable,
            is_modifiable: self.is_modifiable,
        }
    }
}

/// One version of a versioned object, as committed.
#[derive(Clone, Debug)]
pub struct Version {
    /// The EHR that owns it (for a demographic party: empty).
    pub ehr_id: String,
    /// What it is a version of.
    pub kind: ObjectKind,
    /// VERSIONED_OBJECT.uid.value.
    pub object_id: String,
    /// VERSION.uid.value: `object_id::system_id::number`.
    pub version_uid: String,
    /// The number at the end of the uid, from 1.
    pub number: u32,
    /// VERSION.preceding_version_uid.value; absent on the first version.
    pub preceding: Option<String>,
    /// CONTRIBUTION.uid.value.
    pub contribution: String,
    /// VERSION.commit_audit.time_committed.value, in UTC with milliseconds, so that text order is
    /// time order.
    pub time_committed: String,
    /// VERSION.lifecycle_state code: 532, 553, 523, …
    pub lifecycle: String,
    /// COMPOSITION.archetype_details.template_id.value.
    pub template_id: Option<String>,
    /// The whole VERSION, packed; a deletion has no `data` in it. An IMPORTED_VERSION is in its
    /// stored form: uid, lifecycle_state and data at the root, and the item without data.
    pub packed: Packed,
    /// The tags on it and on its object; in a commit: lists that replace those of their targets.
    pub tags: Vec<TagList>,
}

/// The tags of one target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagList {
    /// VERSIONED_OBJECT.uid.value or VERSION.uid.value.
    pub target: String,
    /// By key and path.
    pub tags: Vec<ItemTag>,
}

/// An ITEM_TAG; key and path are unique in a list.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ItemTag {
    /// ITEM_TAG.key.
    pub key: String,
    /// ITEM_TAG.target_path.
    pub path: Option<String>,
    /// ITEM_TAG.value.
    pub value: Option<String>,
}

impl TagList {
    /// A list in the order in which lists are kept.
    pub fn new(target: String, mut tags: Vec<ItemTag>) -> TagList {
        order::sort(&mut tags);
        TagList { target, tags }
    }
}

/// A piece of a list: what was read together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece<T> {
    /// The items, at least one where there are any.
    pub items: Vec<T>,
    /// True where more items may follow.
    pub more: bool,
}

/// What the row of a version says beside its document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionHead {
    /// As in [`Version`].
    pub kind: ObjectKind,
    /// As in [`Version`].
    pub version_uid: String,
    /// As in [`Version`].
    pub number: u32,
    /// As in [`Version`].
    pub time_committed: String,
    /// As in [`Version`].
    pub lifecycle: String,
    /// As in [`Version`].
    pub template_id: Option<String>,
    /// Bytes of the stored document, about.
    pub bytes: usize,
}

/// A version that was asked for with a bound on the bytes of its document.
#[derive(Clone, Debug)]
pub enum Bounded {
    /// Its document stays within the bound.
    Whole(Box<Version>),
    /// Its document is longer.
    Large(Box<LargeVersion>),
}

/// A version whose document was not read.
#[derive(Clone, Debug)]
pub struct LargeVersion {
    /// Everything beside the document.
    pub head: VersionHead,
    /// As in [`Version`].
    pub tags: Vec<TagList>,
}

impl Bounded {
    /// A version, with its document if that has at most `most` bytes.
    pub(crate) fn of(version: Version, most: usize) -> Bounded {
        if version.packed.size() <= most {
            return Bounded::Whole(Box::new(version));
        }
        let tags = version.tags.clone();
        let head = VersionHead::of(version);
        Bounded::Large(Box::new(LargeVersion { head, tags }))
    }

    /// Bytes of the stored document, about.
    pub fn bytes(&self) -> usize {
        match self {
            Bounded::Whole(version) => version.packed.size(),
            Bounded::Large(large) => large.head.bytes,
        }
    }

    /// Everything beside the document.
    pub fn head(self) -> VersionHead {
        match self {
            Bounded::Whole(version) => VersionHead::of(*version),
            Bounded::Large(large) => large.head,
        }
    }
}

impl VersionHead {
    /// VERSIONED_OBJECT.uid.value.
    pub fn object_id(&self) -> &str {
        self.version_uid.split("::").next().unwrap_or_default()
    }

    /// A version without its document.
    pub(crate) fn of(version: Version) -> VersionHead {
        VersionHead {
            bytes: version.packed.size(),
            kind: version.kind,
            version_uid: version.version_uid,
            number: version.number,
            time_committed: version.time_committed,
            lifecycle: version.lifecycle,
            template_id: version.template_id,
        }
    }

    /// True when this version says that the object is deleted.
    pub fn is_deletion(&self) -> bool {
        self.lifecycle == "523"
    }
}

/// What is read of contributions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// The CONTRIBUTIONs alone: their `versions` are empty.
    Alone,
    /// The CONTRIBUTIONs with their versions.
    WithVersions,
}

/// A contribution as it was committed, with its versions.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// The EHR that was written to; empty for demographic parties.
    pub ehr_id: String,
    /// CONTRIBUTION.uid.value.
    pub uid: String,
    /// The CONTRIBUTION as canonical JSON.
    pub document: String,
    /// Its versions that still exist, in commit order.
    pub versions: Vec<Version>,
}

impl Version {
    /// True when this version says that the object is deleted.
    pub fn is_deletion(&self) -> bool {
        self.lifecycle == "523"
    }
}

/// A change set: all of it is committed, or nothing.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The EHR to create first; absent when it exists.
    pub new_ehr: Option<Ehr>,
    /// The EHR that is written to; empty for demographic parties.
    pub ehr_id: String,
    /// CONTRIBUTION.uid.value.
    pub contribution_uid: String,
    /// The CONTRIBUTION as canonical JSON, with its audit and the references to its versions.
    pub contribution: String,
    /// When, as in [`Version::time_committed`].
    pub time_committed: String,
    /// The versions, in order; their order is the commit order.
    pub versions: Vec<Version>,
    /// The EHR's own flags and subject after this commit, when an EHR_STATUS is among the versions.
    pub status: Option<EhrFlags>,
    /// A line for the access log, which is written with the change set or not at all.
    pub access: Option<Access>,
    /// What its maker took for granted.
    pub preconditions: Option<Preconditions>,
    /// Identifies the bulk line that it was made of, where its uid does not: the same text under
    /// the same key gives the same.
    pub idempotency: Option<String>,
}

impl Commit {
    /// True when it writes content, which an EHR with `is_modifiable = false` refuses: anything but
    /// the EHR_STATUS of an EHR that exists.
    pub(crate) fn needs_modifiable(&self) -> bool {
        self.new_ehr.is_none()
            && self
                .versions
                .iter()
                .any(|version| version.kind != ObjectKind::EhrStatus)
    }
}

/// State that the author of a commit read from a cache: the EHR allows modification, and these
/// definitions of the template are stored. A commit writes nothing unless it still holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preconditions {
    /// COMPOSITION.archetype_details.template_id.value.
    pub template: String,
    /// Version, time and id of storing of each definition of this name, in the order of these
    /// texts.
    pub stored: Vec<String>,
}

impl Preconditions {
    /// The preconditions that hold while these are the definitions of a template.
    pub fn of<'d>(
        template: &str,
        stored: impl IntoIterator<Item = &'d Definition>,
    ) -> Preconditions {
        let mut stored: Vec<String> = stored
            .into_iter()
            .map(|d| format!("{} {} {}", d.version, d.created, d.storing_id))
            .collect();
        order::sort(&mut stored);
        Preconditions {
            template: template.to_owned(),
            stored,
        }
    }
}

/// A line of the access log: who did what, when, to which EHR. No clinical value stands in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// When, in UTC with milliseconds.
    pub time: String,
    /// The caller; empty when nobody was recognised.
    pub who: String,
    /// Who vouches for the caller; may be empty.
    pub issuer: String,
    /// Method and pattern of the path: `GET ehr/{ehr_id}`.
    pub operation: String,
    /// What it was done to: a uid, or the name of a definition.
    pub object: Option<String>,
    /// EHR.ehr_id.value.
    pub ehr_id: Option<String>,
    /// A digest of the query text.
    pub query: Option<String>,
    /// The status of the answer; 102 for an administrative operation that is about to begin.
    pub status: u16,
    /// The id of the request, as the answer carries it.
    pub request_id: String,
    /// How many requests of callers that were not recognised this line stands for; absent in a line
    /// about one of anybody else.
    pub refused: Option<u64>,
}

/// Which lines of the access log are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccessFilter<'a> {
    /// From this time on (text form of [`Access::time`]).
    pub from: Option<&'a str>,
    /// Before this time.
    pub to: Option<&'a str>,
    /// Of this EHR.
    pub ehr_id: Option<&'a str>,
    /// Of this caller.
    pub who: Option<&'a str>,
    /// Behind the line of this number, in the order of time.
    pub after: u64,
    /// At most so many.
    pub limit: u64,
}

/// What an EHR_STATUS says about its EHR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EhrFlags {
    /// See [`Ehr::subject`].
    pub subject: Option<(String, String)>,
    /// See [`Ehr::is_queryable`].
    pub is_queryable: bool,
    /// See [`Ehr::is_modifiable`].
    pub is_modifiable: bool,
}

/// How a version of an object is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which<'a> {
    /// The newest, a deletion included.
    Latest,
    /// The one with this version uid.
    Uid(&'a str),
    /// The newest that was committed at or before this time (text form of
    /// [`Version::time_committed`]).
    At(&'a str),
}

/// A definition: template, stored query, guide or value set. Immutable per (name, version).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Template id, qualified query name, guide id.
    pub name: String,
    /// SEMVER `major.minor.patch`.
    pub version: String,
    /// `opt14`, `aql`, `gdl2`, …
    pub format: String,
    /// When it was stored.
    pub created: String,
    /// Names this storing of it: the repository makes another one whenever a definition is stored,
    /// also of the same name, version and time, so that what is kept elsewhere under it never
    /// serves for another definition. Ignored where a definition is stored.
    pub storing_id: String,
    /// Small JSON object with what lists show (concept, archetype_id, …).
    pub summary: String,
    /// Bytes of the stored text, about; lists tell it without reading the text. Ignored where a
    /// definition is stored.
    pub bytes: usize,
    /// The text as sent, byte for byte.
    pub body: String,
}

/// The kinds of definitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DefinitionKind {
    /// Operational templates.
    Template,
    /// Stored queries.
    Query,
    /// Guides.
    Guide,
    /// Value sets; the version counts revisions.
    ValueSet,
}

impl DefinitionKind {
    /// What stands for it where it is stored.
    pub(crate) fn number(self) -> u64 {
        match self {
            DefinitionKind::Template => 1,
            DefinitionKind::Query => 2,
            DefinitionKind::Guide => 3,
            DefinitionKind::ValueSet => 4,
        }
    }

    /// The kind that a number stands for.
    pub(crate) fn of_number(number: u64) -> Option<DefinitionKind> {
        [
            DefinitionKind::Template,
            DefinitionKind::Query,
            DefinitionKind::Guide,
            DefinitionKind::ValueSet,
        ]
        .into_iter()
        .find(|kind| kind.number() == number)
    }
}

/// Why a repository did not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
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
        /// The uid of the refused version.
        version_uid: String,
        /// The kind of the object.
        kind: ObjectKind,
    },
    /// A version has another template than the object that it belongs to.
    OtherTemplate {
        /// The uid of the refused version.
        version_uid: String,
        /// The template of the object.
        template_id: Option<String>,
    },
    /// The EHR has an EHR_STATUS already.
    StatusExists,
    /// The definitions of a template are others than the commit took for granted.
    TemplateChanged,
    /// The tags of the target are others than the change expected.
    TagsChanged,
    /// There is no such contribution to go on behind.
    NoSuchContribution,
    /// The preceding version is not the latest one (or, for a first version, the object exists):
    /// the latest version uid.
    Stale {
        /// The latest version uid of the object; empty when there is no such object.
        latest: String,
    },
    /// A contribution with this uid exists, or the object that this version uid would open exists
    /// in another EHR.
    UidExists(String),
    /// The EHR has a directory already.
    DirectoryExists,
    /// A definition with this name and version exists.
    DefinitionExists,
    /// Stored compositions name this template.
    TemplateInUse,
    /// What a snapshot would have to show was physically deleted.
    SnapshotGone,
    /// A snapshot is newer than the repository: another one gave it.
    NoSuchSnapshot,
    /// The storage did not answer: it is away, overloaded, too slow, or another writer was faster.
    /// The same may go later. The text never carries clinical values.
    Away(String),
    /// What is stored is not what was committed: somebody altered the database, or it is damaged.
    Altered {
        /// The uid of the version or the contribution.
        uid: String,
        /// The EHR that it stands in; empty where that is none.
        ehr_id: String,
    },
    /// What the storage holds or was told to hold is not as it should be; the text never carries
    /// clinical values.
    Failed(String),
}

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
                "the version {version_uid} would change the template of its object from {}: a version has the template that it \
                 follows; commit another document as an object of its own",
                template_id.as_ref().map_or_else(|| String::from("none"), |id| format!("`{id}`"))
            ),
            StoreError::StatusExists => f.write_str("the EHR has an EHR_STATUS already: commit the new one as a version of that"),
            StoreError::TemplateChanged => f.write_str("the template was changed while the document was checked against it: send it again"),
            StoreError::TagsChanged => f.write_str("the tags were changed by somebody else meanwhile: read them again"),
            StoreError::NoSuchContribution => f.write_str("there is no such contribution any more: start anew"),
            StoreError::Stale { latest } => write!(f, "the latest version is {latest}"),
            StoreError::UidExists(uid) => write!(f, "the uid {uid} is in use"),
            StoreError::DirectoryExists => f.write_str("a directory already exists for this EHR"),
            StoreError::DefinitionExists => f.write_str("a definition with this name and version exists"),
            StoreError::TemplateInUse => f.write_str("stored compositions name this template: it stays as long as they do"),
            StoreError::SnapshotGone => f.write_str("something that the snapshot shows was physically deleted: ask for the first page again"),
            StoreError::NoSuchSnapshot => f.write_str("the snapshot is not one of this repository: ask for the first page again"),
            StoreError::Away(why) => write!(f, "the storage does not answer as it should: {why}"),
            StoreError::Altered { uid, .. } => {
                write!(f, "what is stored as {uid} is not what was committed: the database was altered, or is damaged")
            }
            StoreError::Failed(why) => write!(f, "the storage failed: {why}"),
        }
    }
}

/// The state that a scan reads: the snapshot that it asks for, else the newest state. `removed`
/// says whether something of the snapshot is no longer there.
pub(super) fn state_to_read(
    asked: Option<Snapshot>,
    newest: Snapshot,
    removed: bool,
) -> Result<Snapshot, StoreError> {
    match asked {
        None => Ok(newest),
        Some(_) if removed => Err(StoreError::SnapshotGone),
        Some(asked)
            if asked.version > newest.version
                || asked.removals > newest.removals
                || asked.revision > newest.revision =>
        {
            Err(StoreError::NoSuchSnapshot)
        }
        Some(asked) => Ok(asked),
    }
}

/// Bytes of stored documents that are read together at most, where a single one is not larger: a
/// page of a scan, a piece of a list.
pub const PIECE_BYTES: u64 = 2_097_152;

/// Receives the batches of a scan, each in as many pieces as it likes.
pub trait BatchSink {
    /// Counts memory before documents are read: `bytes` is what those of the batch that is being
    /// made will take, about. False ends the scan like [`Progress::Enough`].
    fn admit(&mut self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }

    /// Takes a piece of a batch; after [`Progress::Paused`] it gets the same batch again.
    fn take(&mut self, batch: &Batch) -> Progress;

    /// Forgets all batches that were taken: they come again, with parts that were absent. Returns
    /// false if the sink cannot, or wants no more; it then gets whole documents only.
    fn restart(&mut self) -> bool {
        false
    }

    /// Lets others work. A repository that can wait awaits it after [`Progress::Paused`].
    fn pause(&self) -> Pause {
        Box::pin(std::future::ready(()))
    }
}

/// Resolves after others had their turn.
pub type Pause = Pin<Box<dyn Future<Output = ()>>>;

/// Takes a batch whole; false stops the scan.
impl<F: FnMut(&Batch) -> bool> BatchSink for F {
    fn take(&mut self, batch: &Batch) -> Progress {
        if self(batch) {
            Progress::More
        } else {
            Progress::Enough
        }
    }
}

/// Where a scan sends its batches.
pub type Sink<'a> = &'a mut dyn BatchSink;

/// Sends a batch to a sink without waiting; false when no more is wanted.
pub(crate) fn send_at_once(sink: Sink<'_>, batch: &Batch) -> bool {
    loop {
        match sink.take(batch) {
            Progress::Paused => {}
            Progress::More => return true,
            Progress::Enough => return false,
        }
    }
}

/// Sends a batch to a sink, which lets others work between its pieces; false when no more is
/// wanted.
pub(crate) async fn send(sink: Sink<'_>, batch: &Batch) -> bool {
    loop {
        match sink.take(batch) {
            Progress::Paused => sink.pause().await,
            Progress::More => return true,
            Progress::Enough => return false,
        }
    }
}

/// A store of EHRs, versions and definitions.
#[allow(
    async_fn_in_trait,
    reason = "futures of a worker are not Send, and nothing spawns them"
)]
pub trait Repository {
    /// Commits a change set, or changes nothing.
    async fn commit(&self, commit: Commit) -> Result<(), StoreError>;

    /// Commits change sets in order; each has an outcome of its own.
    async fn commit_all(&self, commits: Vec<Commit>) -> Vec<Result<(), StoreError>>;

    /// The contributions of one EHR, or of all and of the demographic service, in commit order: at
    /// most `limit` that follow the one with this uid, and no more than [`PIECE_BYTES`] of them.
    async fn contributions(
        &self,
        ehr_id: Option<&str>,
        after: Option<&str>,
        limit: u64,
        extent: Extent,
    ) -> Result<Piece<Contribution>, StoreError>;

    /// The EHR with this id.
    async fn ehr(&self, ehr_id: &str) -> Result<Option<Ehr>, StoreError>;

    /// EHRs in the order of their creation, at most `limit` that follow the one with this id
    /// ([`StoreError::NoSuchEhr`] if it is gone).
    async fn ehrs(&self, after: Option<&str>, limit: u64) -> Result<Vec<Ehr>, StoreError>;

    /// The EHR of this subject.
    async fn ehr_by_subject(&self, id: &str, namespace: &str) -> Result<Option<Ehr>, StoreError>;

    /// A version of an object of this EHR.
    async fn version(
        &self,
        ehr_id: &str,
        object_id: &str,
        which: Which<'_>,
    ) -> Result<Option<Version>, StoreError> {
        let found = self.version_within(ehr_id, object_id, which, usize::MAX);
        Ok(found.await?.and_then(|found| match found {
            Bounded::Whole(version) => Some(*version),
            Bounded::Large(_) => None,
        }))
    }

    /// The same, without its document where that has more than `most` bytes: a long text is not
    /// read then.
    async fn version_within(
        &self,
        ehr_id: &str,
        object_id: &str,
        which: Which<'_>,
        most: usize,
    ) -> Result<Option<Bounded>, StoreError>;

    /// The versions of an object behind this number, oldest first, no more than [`PIECE_BYTES`] of
    /// them; empty when there is none.
    async fn versions(
        &self,
        ehr_id: &str,
        object_id: &str,
        after: u32,
    ) -> Result<Piece<Version>, StoreError>;

    /// Every version of an object without its document, oldest first; empty when there is none.
    async fn version_heads(
        &self,
        ehr_id: &str,
        object_id: &str,
    ) -> Result<Vec<VersionHead>, StoreError>;

    /// The object ids of this kind in commit order, at most `limit`, behind `offset`.
    async fn objects(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<String>, StoreError>;

    /// The object of this kind that was committed to last; absent when the EHR never had one.
    async fn newest_object(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
    ) -> Result<Option<String>, StoreError>;

    /// What [`Commit::idempotency`] said of a contribution.
    async fn idempotency(
        &self,
        ehr_id: &str,
        contribution_uid: &str,
    ) -> Result<Option<String>, StoreError>;

    /// A CONTRIBUTION as canonical JSON.
    async fn contribution(&self, ehr_id: &str, uid: &str) -> Result<Option<String>, StoreError>;

    /// Replaces the tags of a target; an empty list removes them. With `expected`, only if these
    /// are its present tags (in the order of [`TagList::new`]), else [`StoreError::TagsChanged`].
    async fn set_tags(
        &self,
        ehr_id: &str,
        list: TagList,
        expected: Option<&[ItemTag]>,
    ) -> Result<(), StoreError>;

    /// The tags of a target.
    async fn tags(&self, ehr_id: &str, target: &str) -> Result<Vec<ItemTag>, StoreError>;

    /// The tags of everything in an EHR, by target: of the targets behind this one, no more than
    /// [`PIECE_BYTES`] of them.
    async fn tag_lists(
        &self,
        ehr_id: &str,
        after: Option<&str>,
    ) -> Result<Piece<TagList>, StoreError>;

    /// Sends the documents that a scan asks for, in commit order (with `whole_ehrs`: grouped by EHR
    /// in creation order), until the sink has enough; gives the state that they belong to.
    ///
    /// # Errors
    /// [`StoreError::SnapshotGone`] and [`StoreError::NoSuchSnapshot`], before anything is sent.
    async fn scan(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError>;

    /// Stores a definition that must not exist yet.
    async fn define(&self, kind: DefinitionKind, definition: Definition) -> Result<(), StoreError>;

    /// The definitions whose names start with this, by name and SEMVER; without bodies.
    async fn definitions(
        &self,
        kind: DefinitionKind,
        prefix: &str,
    ) -> Result<Vec<Definition>, StoreError>;

    /// Every version of the definition with exactly this name, by SEMVER; without bodies.
    async fn definition_versions(
        &self,
        kind: DefinitionKind,
        name: &str,
    ) -> Result<Vec<Definition>, StoreError>;

    /// Bytes of the bodies of the definitions whose names start with this; none of them is read.
    async fn definition_bytes(
        &self,
        kind: DefinitionKind,
        prefix: &str,
    ) -> Result<usize, StoreError>;

    /// Like [`Repository::definitions`], with bodies; `None` where the bodies are longer than this
    /// many bytes in all. None of them is read then.
    async fn definition_bodies(
        &self,
        kind: DefinitionKind,
        prefix: &str,
        most: usize,
    ) -> Result<Option<Vec<Definition>>, StoreError>;

    /// What the first version of a document needs, in one round trip where the store can: its EHR,
    /// and all versions of its template, without bodies.
    async fn preconditions(
        &self,
        ehr_id: &str,
        template_id: &str,
    ) -> Result<(Option<Ehr>, Vec<Definition>), StoreError> {
        let ehr = self.ehr(ehr_id).await?;
        let mut templates = self
            .definitions(DefinitionKind::Template, template_id)
            .await?;
        templates.retain(|t| t.name == template_id);
        Ok((ehr, templates))
    }

    /// One definition with its body.
    async fn definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<Option<Definition>, StoreError>;

    /// Removes a definition; false when there was none. A template that a stored version names is
    /// kept.
    async fn undefine(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<bool, StoreError>;

    /// Physically removes objects with all their versions and tags, and contributions that are left
    /// without versions.
    async fn delete_objects(&self, ehr_id: &str, objects: &[String]) -> Result<(), StoreError>;

    /// Physically removes an EHR with everything in it; false when there was none.
    async fn delete_ehr(&self, ehr_id: &str) -> Result<bool, StoreError>;

    /// Removes everything but the access log.
    async fn reset(&self) -> Result<(), StoreError>;

    /// Adds lines to the access log: all of them, or none.
    async fn note(&self, accesses: Vec<Access>) -> Result<(), StoreError>;

    /// Adds lines about refused requests to the access log, unless it has `most` of them from this
    /// day on (a date, as in [`Access::time`]); true when they were added.
    async fn note_refused(
        &self,
        accesses: &[Access],
        day: &str,
        most: u64,
    ) -> Result<bool, StoreError>;

    /// Lines of the access log with their numbers, in the order of time.
    async fn accesses(&self, filter: &AccessFilter<'_>) -> Result<Vec<(u64, Access)>, StoreError>;

    /// A number that grows with every change of data or definitions.
    async fn revision(&self) -> Result<u64, StoreError>;
}
