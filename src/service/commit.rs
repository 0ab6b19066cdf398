//! Change sets: documents become versions, versions a contribution, and the contribution one
//! commit.

use super::Service;
use super::admission::LARGE;
use super::auth::{Action, Permission, Reach, Resource, Subject};
use super::call::Call;
use super::committal::Audit;
use super::content::CheckedDocument;
use super::error::{Failure, root_of};
use super::ids::{VersionUid, check_subject};
use super::imported_form::wrapped;
use super::members::{Members, in_member};
use super::named_uids::name_version;
use super::stored_size::StoredSize;
use crate::document::{Known, NothingKnown, ObjectKind, Packed, pack};
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::{NodeRef, Tree};
use crate::store::canonical::{self};
use crate::store::repository::{
    Commit, Ehr, EhrFlags, Preconditions, Predecessor, Repository, StoreError, TagList, Version,
};
use aqlite_rm::order;
use std::collections::HashMap;

/// Objects whose latest versions one statement reads. With their documents these are a few
/// megabytes.
pub(crate) const OBJECTS: usize = 50;

/// Bytes that a version of a change set counts in addition to its document until the next pause:
/// its checks and its row cost time too.
pub(crate) const VERSION: usize = 2_000;

/// A version to commit.
pub(crate) struct Change {
    /// The class of the object.
    pub kind: ObjectKind,
    /// Its uid.
    pub uid: VersionUid,
    /// The preceding version.
    pub preceding: Option<String>,
    /// Its audit.
    pub audit: Audit,
    /// The document; `None` for a deletion.
    pub content: Option<CheckedDocument>,
    /// A VERSION as sent. The commit keeps the signature, attestations and other inputs of an
    /// ORIGINAL_VERSION, and the complete item of an IMPORTED_VERSION.
    pub extra: Option<Tree>,
    /// Tags of the version and of its object.
    pub tags: Vec<TagList>,
}

/// The properties that all versions of a change set share.
#[derive(Clone, Copy)]
struct VersionOrigin<'a> {
    ehr_id: &'a str,
    contribution_uid: &'a str,
    /// The time of the commit.
    time: &'a str,
    /// Whether the client sent a CONTRIBUTION, so that errors name the version.
    is_contribution: bool,
}

/// Versions that are committed together.
pub(crate) struct ChangeSet {
    /// Its EHR.
    pub ehr_id: String,
    /// Whether the commit creates the EHR.
    pub creates_ehr: bool,
    /// The uid of the contribution, if the client supplied one.
    pub contribution_uid: Option<String>,
    /// The audit of the contribution.
    pub audit: Audit,
    /// Whether the client named the version that it read last. A newer version then breaks its
    /// precondition (412).
    pub conditional: bool,
    /// The versions, in order.
    pub changes: Vec<Change>,
    /// Whether the templates of its documents are preconditions of the commit: they come from a
    /// cache, or were read long before.
    pub names_templates: bool,
    /// The version that its only version follows, if it comes from a cache.
    pub predecessor: Option<Predecessor>,
    /// See [`Commit::idempotency`].
    pub idempotency: Option<String>,
    /// Whether the client sent a CONTRIBUTION. Errors about its members name them.
    pub is_contribution: bool,
}

/// The first change of a commit that was made.
#[derive(Clone)]
pub(crate) struct CommittedChange {
    /// The uid of the version.
    pub uid: VersionUid,
    /// Whether it is the first version of its object.
    pub created: bool,
    /// The tags of the version and of its object.
    pub tags: Vec<TagList>,
}

/// The result of a commit.
pub(crate) struct Committed {
    /// The EHR that was written to; empty for demographic parties.
    pub ehr_id: String,
    /// The first change.
    pub first: Option<CommittedChange>,
    /// The time of the commit, ISO 8601.
    pub time: String,
    /// CONTRIBUTION.uid.value.
    pub contribution_uid: String,
    /// The CONTRIBUTION as canonical JSON.
    pub contribution: String,
    /// The ORIGINAL_VERSIONs, in order.
    pub versions: Vec<Tree>,
}

impl Committed {
    /// Returns the document of the first version.
    pub fn data(&self) -> Option<NodeRef<'_>> {
        self.versions
            .first()
            .and_then(Tree::root)
            .and_then(|v| v.get(Attr::DATA))
    }
}

impl ChangeSet {
    /// Returns the flags of the EHR_STATUS, if the set has one. Of several versions in one
    /// contribution the last one counts.
    fn last_status(&self) -> Option<EhrFlags> {
        let mut latest = self.changes.iter().rev();
        let status = latest.find(|c| c.kind == ObjectKind::EhrStatus)?;
        status.content.as_ref().map(|content| flags(&content.tree))
    }

    /// Returns the object and the status of the response in the access log.
    fn recorded(&self, call: &Call<'_>, contribution_uid: &str) -> (String, u16) {
        let first = self.changes.first();
        let created = first.is_some_and(|c| c.preceding.is_none());
        let deleted = first.is_some_and(|c| c.content.is_none());
        let object = match self.changes.as_slice() {
            [only] => only.uid.to_string(),
            _ => contribution_uid.to_owned(),
        };
        (object, call.status_of_change(created, deleted))
    }

    /// Creates a change set of one version.
    pub fn single(ehr_id: &str, change: Change) -> ChangeSet {
        ChangeSet {
            ehr_id: ehr_id.to_owned(),
            creates_ehr: false,
            contribution_uid: None,
            audit: change.audit.clone(),
            conditional: false,
            changes: vec![change],
            names_templates: false,
            predecessor: None,
            idempotency: None,
            is_contribution: false,
        }
    }

    /// Returns the preconditions of its commit.
    fn preconditions(&mut self, call: &Call<'_>) -> Result<Preconditions, Failure> {
        let templates = match self.names_templates {
            true => {
                let contents = self.changes.iter().filter_map(|c| c.content.as_ref());
                let ids = contents.filter_map(|content| content.template_id.as_deref());
                call.templates.borrow().states(ids)?
            }
            false => Vec::new(),
        };
        Ok(Preconditions {
            templates,
            predecessor: self.predecessor.take(),
        })
    }

    /// Returns the members of a contribution, for the errors of its commit.
    pub fn members(&self) -> Members {
        let mut members = Members::default();
        for change in self.changes.iter().filter(|_| self.is_contribution) {
            members.add(
                change.uid.to_string(),
                change.kind,
                change.preceding.is_none(),
                change.content.is_some(),
            );
        }
        members
    }
}

/// Returns an error about the change at an index, with its place in a contribution.
fn failure_of_change(is_contribution: bool, index: usize, failure: Failure) -> Failure {
    match is_contribution {
        true => in_member(index, failure),
        false => failure,
    }
}

impl<R: Repository> Service<R> {
    /// Packs, verifies and commits a change set.
    pub(crate) async fn commit(
        &self,
        call: &Call<'_>,
        set: ChangeSet,
    ) -> Result<Committed, Failure> {
        let (conditional, ehr_id) = (set.conditional, set.ehr_id.clone());
        let first = set.changes.first().map(|change| CommittedChange {
            uid: change.uid.clone(),
            created: change.preceding.is_none(),
            tags: change.tags.clone(),
        });
        let members = set.members();
        let (commit, versions) = self.ready(call, set).await?;
        let (time, contribution_uid, contribution) = (
            commit.time_committed.clone(),
            commit.contribution_uid.clone(),
            commit.contribution.clone(),
        );
        match self.repository.commit(commit).await {
            Ok(()) => {
                call.trail.set_recorded();
                Ok(Committed {
                    ehr_id,
                    first,
                    time,
                    contribution_uid,
                    contribution,
                    versions,
                })
            }
            // A version was committed between the check of If-Match and this commit.
            Err(StoreError::Stale { latest, .. }) if conditional => Err(stale(&latest)),
            Err(error) if conditional => Err(Failure::of_update(call.dialect, error)),
            Err(error) => Err(members.failure_of_store(error)),
        }
    }

    /// Packs and verifies a change set, and checks the permissions of the caller. Returns the
    /// commit, and its ORIGINAL_VERSIONs in order.
    pub(crate) async fn ready(
        &self,
        call: &Call<'_>,
        mut set: ChangeSet,
    ) -> Result<(Commit, Vec<Tree>), Failure> {
        // Checked before anything is packed, so a rejected change costs little.
        self.check_permission(call, &set).await?;
        let preconditions = set.preconditions(call)?;
        let time = call.commit_time().to_string();
        let contribution_uid = set
            .contribution_uid
            .clone()
            .unwrap_or_else(|| call.new_uuid());
        let contribution = contribution_json(
            &contribution_uid,
            &call.envelope(&set.audit)?.audit_json,
            &set.changes,
        );
        let status = set.last_status();
        check_subject(status.as_ref().and_then(|flags| flags.subject.as_ref()))?;
        let new_ehr = status
            .clone()
            .filter(|_| set.creates_ehr)
            .map(|status| self.new_ehr(&set.ehr_id, &time, status));
        let (object, outcome) = set.recorded(call, &contribution_uid);
        let (changes, ehr_id) = (set.changes, set.ehr_id);
        let mut size = StoredSize::new(call);
        let origin = VersionOrigin {
            ehr_id: &ehr_id,
            contribution_uid: &contribution_uid,
            time: &time,
            is_contribution: set.is_contribution,
        };
        let made = self.make_versions(call, changes, origin, &mut size);
        let (versions, trees) = made.await?;
        size.check(call, &contribution, &trees).await?;
        // Only a change set that can be committed is recorded by its commit.
        let is_recorded = cfg!(feature = "server") && self.config.log;
        let access = is_recorded.then(|| call.trail.commit_record(&ehr_id, &object, outcome));
        let commit = Commit {
            new_ehr,
            ehr_id,
            contribution_uid,
            contribution,
            time_committed: time,
            versions,
            // A new EHR already has the flags of its first EHR_STATUS.
            status: status.filter(|_| !set.creates_ehr),
            preconditions,
            idempotency: set.idempotency,
            access,
        };
        Ok((commit, trees))
    }

    /// Makes the versions of changes of an EHR, in their order, with their ORIGINAL_VERSIONs. Adds
    /// their sizes to `total`.
    async fn make_versions(
        &self,
        call: &Call<'_>,
        changes: Vec<Change>,
        origin: VersionOrigin<'_>,
        total: &mut StoredSize,
    ) -> Result<(Vec<Version>, Vec<Tree>), Failure> {
        let (mut versions, mut trees) = (Vec::new(), Vec::new());
        let mut unpaused = 0;
        for (index, change) in changes.into_iter().enumerate() {
            let in_place = |failure| failure_of_change(origin.is_contribution, index, failure);
            unpaused += change.size() + VERSION;
            if unpaused > LARGE {
                unpaused = 0;
                call.pause().await;
            }
            let envelope = call.envelope(&change.audit).map_err(in_place)?;
            let mut envelope = envelope.version.clone();
            set_text_at(
                &mut envelope,
                &[Attr::CONTRIBUTION, Attr::ID, Attr::VALUE],
                origin.contribution_uid,
            )?;
            // Packing a long document takes many milliseconds without a pause.
            let turn = call.turn(change.size()).await?;
            let (version, tree) = self
                .version_of(origin, envelope, change)
                .map_err(in_place)?;
            // Other requests run between two documents of a contribution.
            drop(turn);
            total.add(&tree)?;
            versions.push(version);
            trees.push(tree);
        }
        Ok((versions, trees))
    }

    /// Returns the change that creates an object.
    pub(crate) fn first_version(
        &self,
        kind: ObjectKind,
        object_id: String,
        content: CheckedDocument,
        audit: Audit,
    ) -> Change {
        let uid = VersionUid {
            object_id,
            system_id: self.config.system_id.clone(),
            number: 1,
        };
        Change {
            kind,
            uid,
            preceding: None,
            audit,
            content: Some(content),
            extra: None,
            tags: Vec::new(),
        }
    }

    fn new_ehr(&self, ehr_id: &str, time: &str, status: EhrFlags) -> Ehr {
        Ehr {
            ehr_id: ehr_id.to_owned(),
            system_id: self.config.system_id.clone(),
            time_created: time.to_owned(),
            subject: status.subject,
            is_queryable: status.is_queryable,
            is_modifiable: status.is_modifiable,
        }
    }

    /// Makes the version of a change from its envelope. Unpacking its packed form must return the
    /// same tree.
    fn version_of(
        &self,
        origin: VersionOrigin<'_>,
        mut tree: Tree,
        change: Change,
    ) -> Result<(Version, Tree), Failure> {
        let Change {
            kind,
            uid,
            preceding,
            audit,
            content,
            extra,
            tags,
        } = change;
        let version_uid = uid.to_string();
        let imported = extra
            .as_ref()
            .and_then(Tree::root)
            .filter(|root| root.class() == Cls::IMPORTED_VERSION);
        set_text_at(&mut tree, &[Attr::UID, Attr::VALUE], &version_uid)?;
        if let Some(preceding) = &preceding {
            name_version(&mut tree, Attr::PRECEDING_VERSION_UID, preceding);
        }
        keep(&mut tree, extra.as_ref());
        let (data, template_id, known) = match content {
            Some(document) => (
                Some(document.tree),
                document.template_id,
                Some(document.known),
            ),
            None => (None, None, None),
        };
        match imported {
            // The data of an imported version stay in its item.
            Some(sent) => tree = wrapped(root_of(&tree)?, sent, preceding.is_some()),
            None => put_data(&mut tree, data, &version_uid)?,
        }
        let packed = match known {
            Some(known) => self.packed(&tree, &*known)?,
            // A deletion has no document, so no template has known texts of it.
            None => self.packed(&tree, &NothingKnown)?,
        };
        let version = Version {
            ehr_id: origin.ehr_id.to_owned(),
            kind,
            object_id: uid.object_id,
            version_uid,
            number: uid.number,
            preceding,
            contribution: origin.contribution_uid.to_owned(),
            time_committed: origin.time.to_owned(),
            lifecycle: audit.lifecycle.code.to_owned(),
            template_id,
            packed,
            tags,
        };
        Ok((version, tree))
    }

    /// Returns the packed form of a version. Unpacking it must return the same tree.
    pub(crate) fn packed(&self, tree: &Tree, known: &dyn Known) -> Result<Packed, Failure> {
        let lost = || {
            Failure::new(
                500,
                "the packed form of the version does not unpack to the same version; nothing was written",
            )
        };
        let root = tree.root().ok_or_else(lost)?;
        let packed = pack(root, known, &self.layouts);
        // The last line of defence: a version that would not unpack to the same tree is never
        // written.
        if packed.is_equal_to(root) {
            Ok(packed)
        } else {
            Err(lost())
        }
    }

    /// Checks that the caller may make all these changes. A COMPOSITION needs permission for its
    /// template, before and after the change. All else needs permission for everything. An
    /// administrator may load any document.
    async fn check_permission(&self, call: &Call<'_>, set: &ChangeSet) -> Result<(), Failure> {
        if call.permission.resource == Resource::Admin {
            return Ok(());
        }
        if set.creates_ehr
            && matches!(
                call.caller.reach(call.permission, Subject::Nameless)?,
                // A caller who is confined to one EHR must not create others.
                Reach::One(_)
            )
        {
            return Err(call.caller.refused_for_patient(call.permission));
        }
        let mut before = None;
        for (index, change) in set.changes.iter().enumerate() {
            let in_place = |failure| failure_of_change(set.is_contribution, index, failure);
            let permission = change.permission();
            let unrestricted = call
                .caller
                .within(permission, Subject::Nameless, &set.ehr_id);
            // Permission for everything, named or not. Otherwise only compositions of permitted
            // templates.
            let Err(refusal) = unrestricted else {
                let kept = self.check_subject_kept(call, set, change).await;
                kept.map_err(in_place)?;
                continue;
            };
            if change.kind != ObjectKind::Composition {
                return Err(in_place(refusal));
            }
            let before = match &mut before {
                Some(read) => read,
                unread => unread.insert(self.templates_before(call, set).await?),
            };
            let before = change
                .preceding
                .as_ref()
                .and_then(|_| before.get(&change.uid.object_id));
            let after = change.content.as_ref().map(|c| &c.template_id);
            for template in before.into_iter().chain(after) {
                let subject = Subject::from_name(template.as_deref());
                let permitted = call.caller.within(permission, subject, &set.ehr_id);
                permitted.map_err(in_place)?;
            }
        }
        Ok(())
    }
}

impl<R: Repository> Service<R> {
    /// Returns the templates of the latest versions of the objects of a change set.
    async fn templates_before(
        &self,
        call: &Call<'_>,
        set: &ChangeSet,
    ) -> Result<HashMap<String, Option<String>>, Failure> {
        let changed = set.changes.iter().filter(|c| c.preceding.is_some());
        // A contribution may change an object several times.
        let objects = order::distinct(changed.map(|c| c.uid.object_id.as_str()));
        let mut templates = HashMap::new();
        for (number, objects) in objects.chunks(OBJECTS).enumerate() {
            if number > 0 {
                call.pause().await;
            }
            let found = self
                .repository
                .latest_versions(&set.ehr_id, objects, 0)
                .await;
            for version in found.map_err(Failure::of_store)? {
                let head = version.head();
                // Of a deleted object, the version with data has the template.
                templates
                    .entry(head.object_id().to_owned())
                    .and_modify(|known: &mut Option<String>| {
                        *known = known.take().or_else(|| head.template_id.clone());
                    })
                    .or_insert(head.template_id);
            }
        }
        Ok(templates)
    }

    /// Checks that a caller with access to one EHR does not change its subject: a rejection would
    /// otherwise reveal whether another EHR has the same subject.
    async fn check_subject_kept(
        &self,
        call: &Call<'_>,
        set: &ChangeSet,
        change: &Change,
    ) -> Result<(), Failure> {
        let Some(status) = change
            .content
            .as_ref()
            .filter(|_| change.kind == ObjectKind::EhrStatus)
        else {
            return Ok(());
        };
        if !call.caller.is_confined(change.permission()) {
            return Ok(());
        }
        let ehr = self
            .repository
            .ehr(&set.ehr_id)
            .await
            .map_err(Failure::of_store)?;
        let subject = flags(&status.tree).subject;
        // An absent subject cannot collide with that of another EHR.
        if subject.is_none() || ehr.is_some_and(|ehr| ehr.subject == subject) {
            return Ok(());
        }
        let message = "only callers with access to all EHRs may change the subject of an EHR: send the EHR_STATUS with its present subject";
        Err(Failure::new(403, message))
    }
}

impl Change {
    /// Returns the size of the texts to pack.
    fn size(&self) -> usize {
        let parts = [self.content.as_ref().map(|c| &c.tree), self.extra.as_ref()];
        parts.into_iter().flatten().map(Tree::size).sum()
    }

    /// Returns the permission that the change needs.
    fn permission(&self) -> Permission {
        let act = match (&self.content, &self.preceding) {
            (None, _) => Action::Delete,
            (Some(_), Some(_)) => Action::Update,
            (Some(_), None) => Action::Create,
        };
        permission_of(self.kind, act)
    }
}

/// Returns the permission for an act on documents of a kind.
fn permission_of(kind: ObjectKind, act: Action) -> Permission {
    let resource = match kind {
        ObjectKind::Party => Resource::Party,
        _ => Resource::Record,
    };
    Permission { resource, act }
}

/// Checks that the caller may write a document of this kind and template to an EHR: 403, or 404.
///
/// Called as soon as the template is named, before it is looked up. Otherwise the answer would
/// reveal whether a template exists, and its rules, to a caller who may not use it. A composition
/// without a template is refused for that when it is checked.
pub(crate) fn check_write(
    call: &Call<'_>,
    owner: &str,
    (kind, act): (ObjectKind, Action),
    template: Option<&str>,
) -> Result<(), Failure> {
    let subject = match (kind, template) {
        // An administrator may load any document.
        _ if call.permission.resource == Resource::Admin => return Ok(()),
        (ObjectKind::Composition, None) => return Ok(()),
        (ObjectKind::Composition, Some(template)) => Subject::Named(template),
        _ => Subject::Nameless,
    };
    call.caller.within(permission_of(kind, act), subject, owner)
}

/// Returns the error for a change of a version that is not the latest one.
pub(crate) fn stale(latest: &str) -> Failure {
    Failure::new(
        412,
        format!("the version is not the latest one, which is {latest}"),
    )
    .header("ETag", format!("\"{latest}\""))
}

/// Returns the class name of the documents of a kind.
pub(crate) fn class_name(kind: ObjectKind) -> &'static str {
    kind.class().name()
}

/// Returns the CONTRIBUTION of some changes as canonical JSON. `audit` is its audit as JSON.
fn contribution_json(uid: &str, audit: &str, changes: &[Change]) -> String {
    let class = |change: &Change| {
        change
            .content
            .as_ref()
            .and_then(|c| c.tree.root())
            .map_or(change.kind.class(), NodeRef::class)
    };
    let versions: Vec<_> = changes
        .iter()
        .map(|change| (change.uid.to_string(), class(change).name()))
        .collect();
    let versions: Vec<_> = versions
        .iter()
        .map(|(uid, class)| (uid.as_str(), *class))
        .collect();
    canonical::contribution(uid, &versions, audit)
}

/// Attributes of a VERSION that a client may set, beside its audit and data.
pub(crate) const KEPT: [Attr; 3] = [
    Attr::OTHER_INPUT_VERSION_UIDS,
    Attr::ATTESTATIONS,
    Attr::SIGNATURE,
];

/// Copies the attributes of [`KEPT`].
fn keep(tree: &mut Tree, sent: Option<&Tree>) {
    let (Some(root), Some(sent)) = (tree.root().map(NodeRef::id), sent.and_then(Tree::root)) else {
        return;
    };
    for attr in KEPT {
        if let Some(value) = sent.get(attr) {
            tree.put(root, attr, value);
        }
    }
}

/// Puts a document into its version. A document has the uid of its version, as RM 1.0.4 recommends.
///
/// # Errors
/// An internal error if the document or the version has no root.
fn put_data(tree: &mut Tree, data: Option<Tree>, version_uid: &str) -> Result<(), Failure> {
    let Some(mut data) = data else { return Ok(()) };
    name_version(&mut data, Attr::UID, version_uid);
    let root = root_of(tree)?.id();
    tree.put(root, Attr::DATA, root_of(&data)?);
    Ok(())
}

/// Sets the text at a path of an envelope.
///
/// # Errors
/// An internal error if the envelope has no text there: a version would keep the text of another one.
fn set_text_at(tree: &mut Tree, path: &[Attr], text: &str) -> Result<(), Failure> {
    let leaf = path
        .iter()
        .try_fold(tree.root(), |node, attr| node.map(|node| node.get(*attr)))
        .flatten()
        .map(NodeRef::id);
    let leaf = leaf.ok_or_else(|| Failure::broken("an envelope lacks a text"))?;
    tree.set_text(leaf, text);
    Ok(())
}

/// Returns the flags of an EHR_STATUS. A missing flag is true.
pub(crate) fn flags(status: &Tree) -> EhrFlags {
    let root = status.root();
    let says_no = |attr| root.and_then(|r| r.text_at(attr)) == Some("false");
    let reference = root
        .and_then(|r| r.get(Attr::SUBJECT))
        .and_then(|s| s.get(Attr::EXTERNAL_REF));
    let subject = reference.and_then(|r| {
        Some((
            r.text_along(&[Attr::ID, Attr::VALUE])?.to_owned(),
            r.text_at(Attr::NAMESPACE)?.to_owned(),
        ))
    });
    EhrFlags {
        subject,
        is_queryable: !says_no(Attr::IS_QUERYABLE),
        is_modifiable: !says_no(Attr::IS_MODIFIABLE),
    }
}
