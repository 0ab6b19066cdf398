//! The storage interface of the service, and its records. It is asynchronous.
//!
//! Implementations: [`super::memory`] (browser, tests) and [`super::sql`] (D1, SQLite). The service
//! is the only caller.

pub use super::division::{Division, ScanPart};
pub use super::error::StoreError;
pub use super::sink::{BatchSink, Pause, ScanReads, Sink};

use super::scan::{Scan, Snapshot};
use crate::document::{ObjectKind, Packed};
use crate::rm::class::Cls;
use crate::rm::id::object_id_of;
use aqlite_rm::order;
use std::pin::Pin;
use std::rc::Rc;

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
    /// Returns the values that the EHR has from its EHR_STATUS.
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
    /// The EHR that owns it; empty for a demographic party.
    pub ehr_id: String,
    /// The class of the object.
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
    /// The stored template that the document names and was checked against.
    pub template_id: Option<String>,
    /// The complete VERSION, packed. A deletion has no `data`. An IMPORTED_VERSION has its stored
    /// form: uid, lifecycle_state and data at the root, and the item without data.
    pub packed: Packed,
    /// The tags of the version and of its object. In a commit: lists that replace those of their
    /// targets.
    pub tags: Vec<TagList>,
}

/// The tags of one target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TagList {
    /// VERSIONED_OBJECT.uid.value or VERSION.uid.value.
    pub target: String,
    /// Ordered by key and path.
    pub tags: Vec<ItemTag>,
}

/// An ITEM_TAG. Key and path are unique in a list.
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
    /// Creates a list in the stored order.
    pub fn new(target: String, mut tags: Vec<ItemTag>) -> TagList {
        order::sort(&mut tags);
        TagList { target, tags }
    }
}

/// A page of a list: the items that were read together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListPage<T> {
    /// The items; at least one if the list has more.
    pub items: Vec<T>,
    /// Whether more items may follow.
    pub more: bool,
}

/// The metadata of a version: all columns of its row but the document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionMetadata {
    /// The class of the object.
    pub kind: ObjectKind,
    /// VERSION.uid.value: `object_id::system_id::number`.
    pub version_uid: String,
    /// The number at the end of the uid, from 1.
    pub number: u32,
    /// VERSION.commit_audit.time_committed.value, in UTC with milliseconds.
    pub time_committed: String,
    /// VERSION.lifecycle_state code.
    pub lifecycle: String,
    /// The stored template that the document names and was checked against.
    pub template_id: Option<String>,
    /// The approximate size of the stored document in bytes.
    pub bytes: usize,
}

/// A version that was requested with a bound on the size of its document.
#[derive(Clone, Debug)]
pub enum BoundedVersion {
    /// The document is within the bound.
    Complete(Box<Version>),
    /// The document is longer.
    Large(Box<LargeVersion>),
}

/// A version whose document was not read.
#[derive(Clone, Debug)]
pub struct LargeVersion {
    /// The metadata.
    pub head: VersionMetadata,
    /// The tags of the version and of its object.
    pub tags: Vec<TagList>,
}

impl BoundedVersion {
    /// Creates a version, with its document if that has at most `most` bytes.
    pub(crate) fn of(version: Version, most: usize) -> BoundedVersion {
        if version.packed.size() <= most {
            return BoundedVersion::Complete(Box::new(version));
        }
        let tags = version.tags.clone();
        let head = VersionMetadata::of(version);
        BoundedVersion::Large(Box::new(LargeVersion { head, tags }))
    }

    /// Returns the approximate size of the stored document in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            BoundedVersion::Complete(version) => version.packed.size(),
            BoundedVersion::Large(large) => large.head.bytes,
        }
    }

    /// Returns the metadata.
    pub fn head(self) -> VersionMetadata {
        match self {
            BoundedVersion::Complete(version) => VersionMetadata::of(*version),
            BoundedVersion::Large(large) => large.head,
        }
    }
}

impl VersionMetadata {
    /// Returns VERSIONED_OBJECT.uid.value: the part of the version uid before `::`.
    pub fn object_id(&self) -> &str {
        object_id_of(&self.version_uid)
    }

    /// Returns the metadata of a version.
    pub(crate) fn of(version: Version) -> VersionMetadata {
        VersionMetadata {
            bytes: version.packed.size(),
            kind: version.kind,
            version_uid: version.version_uid,
            number: version.number,
            time_committed: version.time_committed,
            lifecycle: version.lifecycle,
            template_id: version.template_id,
        }
    }

    /// Returns whether this version is a deletion of its object.
    pub fn is_deletion(&self) -> bool {
        self.lifecycle == "523"
    }
}

/// The parts of contributions to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContributionDetail {
    /// Only the CONTRIBUTIONs. Their `versions` are empty.
    WithoutVersions,
    /// The CONTRIBUTIONs with their versions.
    WithVersions,
}

/// A contribution as it was committed, with its versions.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// The EHR of the versions; empty for demographic parties.
    pub ehr_id: String,
    /// CONTRIBUTION.uid.value.
    pub uid: String,
    /// The CONTRIBUTION as canonical JSON.
    pub document: String,
    /// Its versions that still exist, in commit order.
    pub versions: Vec<Version>,
}

impl Version {
    /// Returns whether this version is a deletion of its object.
    pub fn is_deletion(&self) -> bool {
        self.lifecycle == "523"
    }
}

/// A change set. All of it is committed, or nothing.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The EHR to create first; `None` if it exists.
    pub new_ehr: Option<Ehr>,
    /// The EHR of the versions; empty for demographic parties.
    pub ehr_id: String,
    /// CONTRIBUTION.uid.value.
    pub contribution_uid: String,
    /// The CONTRIBUTION as canonical JSON, with its audit and the references to its versions.
    pub contribution: String,
    /// The time of the commit, as in [`Version::time_committed`].
    pub time_committed: String,
    /// The versions in commit order.
    pub versions: Vec<Version>,
    /// The flags and the subject of the EHR after this commit, if it has a version of the
    /// EHR_STATUS.
    pub status: Option<EhrFlags>,
    /// A record for the access log. It is written with the change set or not at all.
    pub access: Option<AccessRecord>,
    /// The state that the author of the commit relies on.
    pub preconditions: Preconditions,
    /// Identifies the line of a bulk load that this commit writes: the same line under the same
    /// idempotency key has the same value. The text is empty if the uid of the contribution has
    /// this value, and `None` for all other commits.
    pub idempotency: Option<String>,
}

impl Commit {
    /// Returns whether the commit writes content, which an EHR with `is_modifiable = false`
    /// refuses: anything but the EHR_STATUS of an existing EHR.
    pub(crate) fn needs_modifiable(&self) -> bool {
        self.new_ehr.is_none()
            && self
                .versions
                .iter()
                .any(|version| version.kind != ObjectKind::EhrStatus)
    }
}

/// State that the author of a commit knows from a cache. A commit writes nothing unless all of it
/// still holds.
///
/// The default names nothing. Every commit requires that its EHR exists and allows the
/// modification.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Preconditions {
    /// The templates that its documents were checked against.
    pub templates: Vec<Rc<TemplateState>>,
    /// The version that its only version follows.
    pub predecessor: Option<Predecessor>,
}

/// The stored definitions of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateState {
    /// Its id.
    pub template: String,
    /// Version, time and storing id of each definition of this name, sorted.
    pub stored: Vec<String>,
}

/// The latest version of an object, as the author of its next version knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Predecessor {
    /// VERSION.uid.value.
    pub version_uid: String,
    /// Whether it must also be the newest version of its kind in its EHR. For kinds whose paths
    /// name no object, the object of the newest version is the addressed one.
    pub is_newest_of_kind: bool,
    /// The row of the version, which must be unaltered: see [`VerifiedVersion::row`]. `None` if the
    /// author has just read the version.
    pub row: Option<Rc<str>>,
}

/// A version whose row an instance has compared with its checksum, or has written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedVersion {
    /// Its metadata.
    pub metadata: VersionMetadata,
    /// The class of its data, if it is a party: the other kinds have one class each.
    pub party: Option<Cls>,
    /// The columns that the checks of the next version rely on, and the document, as one text. Only
    /// the repository that made it can interpret it.
    pub row: Rc<str>,
}

impl TemplateState {
    /// Returns the state of a template with these definitions.
    pub fn of<'d>(
        template: &str,
        stored: impl IntoIterator<Item = &'d Definition>,
    ) -> TemplateState {
        let mut stored: Vec<String> = stored
            .into_iter()
            .map(|d| format!("{} {} {}", d.version, d.created, d.storing_id))
            .collect();
        order::sort(&mut stored);
        TemplateState {
            template: template.to_owned(),
            stored,
        }
    }
}

/// An audit record of the access log: caller, operation, time and EHR. It contains no clinical
/// value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessRecord {
    /// The time, in UTC with milliseconds.
    pub time: String,
    /// The caller; empty if the caller was not authenticated.
    pub who: String,
    /// The issuer of the caller's token; may be empty.
    pub issuer: String,
    /// Method and path pattern: `GET ehr/{ehr_id}`.
    pub operation: String,
    /// The object of the operation: a uid, or the name of a definition.
    pub object: Option<String>,
    /// EHR.ehr_id.value.
    pub ehr_id: Option<String>,
    /// A digest of the query text.
    pub query: Option<String>,
    /// The status of the response; 102 for an administrative operation that is about to begin.
    pub status: u16,
    /// The id of the request, as in the response.
    pub request_id: String,
    /// The number of requests of unauthenticated callers that this record summarizes; `None` in a
    /// record of one request.
    pub refused: Option<u64>,
}

/// A selection of records of the access log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccessFilter<'a> {
    /// The first time (text form of [`AccessRecord::time`]).
    pub from: Option<&'a str>,
    /// The end of the times, exclusive.
    pub to: Option<&'a str>,
    /// The EHR.
    pub ehr_id: Option<&'a str>,
    /// The caller.
    pub who: Option<&'a str>,
    /// Records after the one with this number, in the order of time.
    pub after: u64,
    /// The maximum number of records.
    pub limit: u64,
}

/// The values of an EHR_STATUS that apply to its EHR.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EhrFlags {
    /// See [`Ehr::subject`].
    pub subject: Option<(String, String)>,
    /// See [`Ehr::is_queryable`].
    pub is_queryable: bool,
    /// See [`Ehr::is_modifiable`].
    pub is_modifiable: bool,
}

/// Selects a version of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionSelector<'a> {
    /// The newest version, which may be a deletion.
    Latest,
    /// The version with this uid.
    Uid(&'a str),
    /// The newest version that was committed at or before this time (text form of
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
    /// The time of storing.
    pub created: String,
    /// An identifier of this act of storing. The repository makes a new one for each definition
    /// that is stored, even with the same name, version and time. Caches use it as their key, so
    /// they never return another definition. Ignored in [`Repository::define`].
    pub storing_id: String,
    /// A small JSON object with the fields that lists show (concept, archetype_id, …).
    pub summary: String,
    /// The approximate size of the stored text in bytes; lists return it without reading the text.
    /// Ignored in [`Repository::define`].
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
    /// Value sets. Their version counts revisions.
    ValueSet,
}

impl DefinitionKind {
    /// Returns the number that the database stores.
    pub fn number(self) -> u64 {
        match self {
            DefinitionKind::Template => 1,
            DefinitionKind::Query => 2,
            DefinitionKind::Guide => 3,
            DefinitionKind::ValueSet => 4,
        }
    }

    /// Returns the kind with a number.
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

/// Returns the state that a scan reads: the requested snapshot, else the newest state. `removed` is
/// true if data of the snapshot were physically deleted, or may not be queried any more.
pub(super) fn state_to_read(
    requested: Option<Snapshot>,
    newest: Snapshot,
    removed: bool,
) -> Result<Snapshot, StoreError> {
    match requested {
        None => Ok(newest),
        Some(_) if removed => Err(StoreError::SnapshotGone),
        Some(requested)
            if requested.version > newest.version
                || requested.ehr > newest.ehr
                || requested.removals > newest.removals
                || requested.revision > newest.revision =>
        {
            Err(StoreError::NoSuchSnapshot)
        }
        Some(requested) => Ok(requested),
    }
}

/// A future of the commits that must precede others: true once they are written, false if the
/// others must not be written.
pub type EarlierCommits = Pin<Box<dyn Future<Output = bool>>>;

/// Returns the outcomes of commits that must not be written.
pub(super) fn not_written(count: usize) -> Vec<Result<(), StoreError>> {
    let why = StoreError::Unavailable("an earlier part of the load was rejected".into());
    vec![Err(why); count]
}

/// The maximum size in bytes of the stored documents that are read together, unless a single one is
/// larger: a page of a scan or of a list.
pub const MAX_PAGE_BYTES: u64 = 2_097_152;

/// A store of EHRs, versions and definitions.
#[allow(
    async_fn_in_trait,
    reason = "futures of a worker are not Send, and nothing spawns them"
)]
pub trait Repository {
    /// Commits a change set, or changes nothing.
    async fn commit(&self, commit: Commit) -> Result<(), StoreError>;

    /// Commits change sets in order. Each has its own outcome.
    async fn commit_all(&self, commits: Vec<Commit>) -> Vec<Result<(), StoreError>>;

    /// Commits like [`Repository::commit_all`], once `earlier` resolves to true. Work that does not
    /// depend on the earlier commits may be done before. If `earlier` resolves to false, nothing is
    /// written.
    async fn commit_all_after(
        &self,
        commits: Vec<Commit>,
        earlier: EarlierCommits,
    ) -> Vec<Result<(), StoreError>> {
        match earlier.await {
            true => self.commit_all(commits).await,
            false => not_written(commits.len()),
        }
    }

    /// Returns contributions in commit order, of one EHR, or of all EHRs and the demographic
    /// service: at most `limit` behind the one with the uid `after`, and at most
    /// [`MAX_PAGE_BYTES`], but at least one.
    ///
    /// # Errors
    /// [`StoreError::NoSuchContribution`] if the contribution `after` does not exist.
    async fn contributions(
        &self,
        ehr_id: Option<&str>,
        after: Option<&str>,
        limit: u64,
        detail: ContributionDetail,
    ) -> Result<ListPage<Contribution>, StoreError>;

    /// Returns the EHR with this id.
    async fn ehr(&self, ehr_id: &str) -> Result<Option<Ehr>, StoreError>;

    /// Returns EHRs in the order of their creation: at most `limit` after the one with the id
    /// `after`.
    ///
    /// # Errors
    /// [`StoreError::NoSuchEhr`] if the EHR `after` does not exist.
    async fn ehrs(&self, after: Option<&str>, limit: u64) -> Result<Vec<Ehr>, StoreError>;

    /// Returns the EHR of this subject.
    async fn ehr_by_subject(&self, id: &str, namespace: &str) -> Result<Option<Ehr>, StoreError>;

    /// Returns the EHRs whose subject has this id in any namespace, queryable or not: the first
    /// `limit` of them in the order of the namespaces.
    async fn ehrs_by_subject_id(&self, id: &str, limit: u64) -> Result<Vec<Ehr>, StoreError>;

    /// Returns a version of an object of this EHR.
    async fn version(
        &self,
        ehr_id: &str,
        object_id: &str,
        which: VersionSelector<'_>,
    ) -> Result<Option<Version>, StoreError> {
        let found = self.version_within(ehr_id, object_id, which, usize::MAX);
        Ok(found.await?.and_then(|found| match found {
            BoundedVersion::Complete(version) => Some(*version),
            BoundedVersion::Large(_) => None,
        }))
    }

    /// Like [`Repository::version`], but without the document if that has more than `most` bytes. A
    /// longer text is not read.
    async fn version_within(
        &self,
        ehr_id: &str,
        object_id: &str,
        which: VersionSelector<'_>,
        most: usize,
    ) -> Result<Option<BoundedVersion>, StoreError>;

    /// Returns the latest version of each of these objects of this EHR, and of a deleted object
    /// also the last version with data, in any order. A document with more than `most` bytes is not
    /// read. Objects that do not exist have no version. Implementations use one round trip if they
    /// can.
    async fn latest_versions(
        &self,
        ehr_id: &str,
        object_ids: &[&str],
        most: usize,
    ) -> Result<Vec<BoundedVersion>, StoreError>;

    /// Returns a version of this EHR if this instance knows it and has verified its document. Makes
    /// no round trip. The version may not be the latest one any more, or may be removed: a commit
    /// names it as a precondition ([`Predecessor`]). Deletions are not returned.
    fn verified_version(&self, ehr_id: &str, version_uid: &str) -> Option<VerifiedVersion> {
        let _ = (ehr_id, version_uid);
        None
    }

    /// Returns the versions of an object with higher numbers than `after`, oldest first, at most
    /// [`MAX_PAGE_BYTES`]. Empty if there are none.
    async fn versions(
        &self,
        ehr_id: &str,
        object_id: &str,
        after: u32,
    ) -> Result<ListPage<Version>, StoreError>;

    /// Returns the metadata of every version of an object, oldest first. Empty if there are none.
    async fn version_metadata(
        &self,
        ehr_id: &str,
        object_id: &str,
    ) -> Result<Vec<VersionMetadata>, StoreError>;

    /// Returns the ids of the objects of this kind in commit order: at most `limit`, after the
    /// first `offset`.
    async fn objects(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<String>, StoreError>;

    /// Returns the object of this kind that was committed to last, or `None` if the EHR never had
    /// one. With `at`, commits after this time (text form of [`Version::time_committed`]) do not
    /// count.
    async fn newest_object(
        &self,
        ehr_id: &str,
        kind: ObjectKind,
        at: Option<&str>,
    ) -> Result<Option<String>, StoreError>;

    /// Returns the [`Commit::idempotency`] of a contribution.
    async fn idempotency(
        &self,
        ehr_id: &str,
        contribution_uid: &str,
    ) -> Result<Option<String>, StoreError>;

    /// Returns a CONTRIBUTION as canonical JSON.
    async fn contribution(&self, ehr_id: &str, uid: &str) -> Result<Option<String>, StoreError>;

    /// Replaces the tags of a target. An empty list removes them.
    ///
    /// # Errors
    /// [`StoreError::TagsChanged`] if the present tags differ from `expected` (in the order of
    /// [`TagList::new`]).
    async fn set_tags(
        &self,
        ehr_id: &str,
        list: TagList,
        expected: Option<&[ItemTag]>,
    ) -> Result<(), StoreError>;

    /// Returns the tags of a target.
    async fn tags(&self, ehr_id: &str, target: &str) -> Result<Vec<ItemTag>, StoreError>;

    /// Returns a page of the tags in an EHR by target, starting after the target `after`. A target
    /// has all its tags on one page.
    async fn tag_lists(
        &self,
        ehr_id: &str,
        after: Option<&str>,
    ) -> Result<ListPage<TagList>, StoreError>;

    /// Sends the documents of a scan to a sink until it has enough. Returns the state that they
    /// belong to.
    ///
    /// The order is that of commits. With `whole_ehrs`, documents are grouped by EHR in the order
    /// of creation. Of several named EHRs, only the documents of each are in commit order.
    ///
    /// # Errors
    /// [`StoreError::SnapshotGone`] and [`StoreError::NoSuchSnapshot`], before anything is sent.
    async fn scan(&self, scan: &Scan, sink: Sink<'_>) -> Result<Snapshot, StoreError>;

    /// Divides a scan into at most `count` parts of about equal size, which several threads can
    /// read at once. `None` if the documents are too few, or the repository has one thread only.
    async fn divide(&self, scan: &Scan, count: usize) -> Result<Option<Division>, StoreError> {
        let _ = (scan, count);
        Ok(None)
    }

    /// Sends the documents of a part of a scan, like [`Repository::scan`]. The scan reads the state
    /// of the division.
    ///
    /// # Errors
    /// The errors of [`Repository::scan`]; [`StoreError::Failed`] if the repository divides no
    /// scan.
    async fn scan_part(
        &self,
        scan: &Scan,
        part: ScanPart,
        sink: Sink<'_>,
    ) -> Result<Snapshot, StoreError> {
        let _ = (scan, part, sink);
        Err(StoreError::Failed("scans are not divided".to_owned()))
    }

    /// Stores a new definition.
    async fn define(&self, kind: DefinitionKind, definition: Definition) -> Result<(), StoreError>;

    /// Returns the definitions whose names start with `prefix`, by name and SEMVER, without bodies.
    async fn definitions(
        &self,
        kind: DefinitionKind,
        prefix: &str,
    ) -> Result<Vec<Definition>, StoreError>;

    /// Returns every version of the definition with exactly this name, by SEMVER, without bodies.
    async fn definition_versions(
        &self,
        kind: DefinitionKind,
        name: &str,
    ) -> Result<Vec<Definition>, StoreError>;

    /// Returns the definitions with these names and versions, by name and SEMVER, with bodies.
    ///
    /// A body of more than `longest` bytes is cut to a quarter as many characters, which have
    /// `longest` bytes at most. Those that do not exist are left out.
    async fn definition_bodies(
        &self,
        kind: DefinitionKind,
        ids: &[(&str, &str)],
        longest: usize,
    ) -> Result<Vec<Definition>, StoreError>;

    /// Returns the preconditions of the first version of a document: its EHR, and all versions of
    /// its template, without bodies. Implementations use one round trip if they can.
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

    /// Returns one definition with its body.
    async fn definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<Option<Definition>, StoreError>;

    /// Removes a definition. Returns false if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::TemplateInUse`] for a template that a stored version names.
    async fn undefine(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<bool, StoreError>;

    /// Physically removes objects with all their versions and tags, and contributions that have no
    /// version left.
    async fn delete_objects(&self, ehr_id: &str, objects: &[String]) -> Result<(), StoreError>;

    /// Physically removes an EHR with everything in it. Returns false if it does not exist.
    async fn delete_ehr(&self, ehr_id: &str) -> Result<bool, StoreError>;

    /// Removes everything but the access log.
    async fn reset(&self) -> Result<(), StoreError>;

    /// Adds all these records to the access log, or none.
    async fn log_accesses(&self, accesses: Vec<AccessRecord>) -> Result<(), StoreError>;

    /// Adds records of refused requests to the access log, unless it has `most` of them from this
    /// day on (a date, as in [`AccessRecord::time`]). Returns whether they were added.
    async fn log_refused_accesses(
        &self,
        accesses: &[AccessRecord],
        day: &str,
        most: u64,
    ) -> Result<bool, StoreError>;

    /// Returns records of the access log with their numbers, ordered by time.
    async fn accesses(
        &self,
        filter: &AccessFilter<'_>,
    ) -> Result<Vec<(u64, AccessRecord)>, StoreError>;

    /// Returns a number that grows with every change of data or definitions.
    async fn revision(&self) -> Result<u64, StoreError>;
}
