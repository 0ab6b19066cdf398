//! CONTRIBUTION: several versions committed together, all or none.

use super::Service;
use super::admission::LARGE;
use super::call::{Call, ChangedResource};
use super::commit::{Change, ChangeSet, KEPT, VERSION, class_name};
use super::committal::{Audit, CREATION, Code, CommitMetadata, DELETED, MODIFICATION, check_parts};
use super::content::{ValidationLevel, read_part};
use super::document_class::kind_of;
use super::error::{Failure, root_of, shortened};
use super::followed::{FollowedObjects, objects_to_read};
use super::http::Response;
use super::identity::{check_following_uids, given_member_id};
use super::ids::{VersionUid, is_uuid};
use super::imported::read_version;
use super::member_data::MemberData;
use super::members::{EarlierMembers, in_member};
use super::negotiate::{Format, body_format};
use super::owner::Owner;
use super::update_form::{canonical_audit, check_contribution_type};
use super::versioned::own;
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::json::{TOO_MANY, elements_within, members};
use crate::rm::tree::{Kind, NodeId, NodeRef, Tree};
use crate::rm::xml;
use crate::store::repository::{Repository, StoreError, VersionMetadata, VersionSelector};
use std::borrow::Cow;

/// Change types that require an existing object.
const FOLLOWING: [&str; 5] = ["250", "251", "523", "666", "816"];

/// The maximum number of versions of a contribution. Its transaction does not pause.
const MAX_VERSIONS: usize = 1_000;

impl<R: Repository> Service<R> {
    /// POST /ehr/{ehr_id}/contribution, POST /demographic/contribution
    pub(super) async fn contribution_create(&self, call: &Call<'_>) -> Result<Response, Failure> {
        call.check_acceptable()?;
        let format = body_format(call.request);
        let committed = self
            .commit_with_preconditions(call, async |facts| {
                let owner = self.owner_from(call, facts).await?;
                let sent = SentContribution::read(call, call.text()?, format).await?;
                self.change_set(call, &owner, sent).await
            })
            .await?;
        let tree = own(&committed.contribution, Cls::CONTRIBUTION)?;
        let (owner, uid) = (&committed.ehr_id, committed.contribution_uid.as_str());
        let resolved = match tree.root() {
            Some(root) => self.resolved(call, owner, root).await,
            None => Ok(None),
        };
        let mut path = Owner::segments(owner);
        path.extend(["contribution", uid]);
        let uri = (!owner.is_empty()).then(|| format!("ehr:/{owner}/{uid}"));
        Ok(call.changed(ChangedResource {
            created: true,
            path: call.address(&path),
            uri,
            uid,
            time: &committed.time,
            node: tree.root(),
            shown: resolved,
        }))
    }

    /// GET /ehr/{ehr_id}/contribution/{uid}, GET /demographic/contribution/{uid}
    pub(super) async fn contribution_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let owner = self.owner(call).await?;
        let uid = call.sub_param(0)?.to_ascii_lowercase();
        let stored = self
            .repository
            .contribution(owner.id(), &uid)
            .await
            .map_err(Failure::of_store)?
            .ok_or_else(|| Failure::not_found("there is no such contribution here"))?;
        let tree = own(&stored, Cls::CONTRIBUTION)?;
        let root = root_of(&tree)?;
        let time = root.text_along(&[Attr::AUDIT, Attr::TIME_COMMITTED, Attr::VALUE]);
        let damaged = || StoreError::Corrupt {
            uid: uid.clone(),
            ehr_id: owner.id().to_owned(),
        };
        let time = time.ok_or_else(|| Failure::of_store(damaged()))?;
        call.resource(
            root,
            self.resolved(call, owner.id(), root).await?,
            &uid,
            time,
        )
    }

    /// Checks the members of a contribution and returns their change set.
    pub(crate) async fn change_set(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        sent: SentContribution,
    ) -> Result<ChangeSet, Failure> {
        if sent.uid.is_some() && call.caller.is_confined(call.permission) {
            // Uids are unique in the whole repository: reporting a duplicate would reveal another
            // EHR.
            return Err(Failure::new(
                403,
                "a caller with access to one EHR cannot choose the uid of a contribution: leave `uid` out",
            ));
        }
        let changes = self.changes_of(call, owner, &sent).await?;
        let ehr_id = owner.id().to_owned();
        let audit = sent
            .audit
            .or(call.commit_headers()?)
            .member_audit(common_change_type(&changes))?;
        Ok(ChangeSet {
            ehr_id,
            creates_ehr: false,
            contribution_uid: sent.uid,
            audit,
            conditional: false,
            changes,
            names_templates: false,
            predecessor: None,
            idempotency: None,
            is_contribution: true,
        })
    }

    /// Checks the members of a contribution in their order.
    async fn changes_of(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        sent: &SentContribution,
    ) -> Result<Vec<Change>, Failure> {
        let wanted = sent.objects_to_read(call, owner)?;
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let mut followed = self.read_all_followed(call, owner, &wanted).await?;
        let (mut changes, mut unpaused) = (Vec::new(), 0);
        let mut earlier = EarlierMembers::default();
        for (index, version) in sent.versions.iter().enumerate() {
            unpaused += version.size() + VERSION;
            if unpaused > LARGE {
                unpaused = 0;
                call.pause().await;
            }
            let imported = version
                .root()
                .filter(|root| root.class() == Cls::IMPORTED_VERSION);
            let (audit, followed_here) = (&sent.audit, &mut followed);
            let change = match imported {
                Some(root) => {
                    self.imported_change(call, owner, root, audit, followed_here)
                        .await
                }
                None => {
                    self.change_of(call, owner, version, audit, followed_here)
                        .await
                }
            };
            let change = change.and_then(|change| {
                let (preceding, has_data) = (change.preceding.as_deref(), change.content.is_some());
                earlier.add(index, change.kind, preceding, has_data)?;
                Ok(change)
            });
            let change = change.map_err(|failure| in_member(index, failure))?;
            // A later member may follow this one, which the database does not have yet.
            followed.change(&change);
            changes.push(change);
        }
        Ok(changes)
    }

    /// Checks one member of a contribution.
    async fn change_of(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        version: &Tree,
        contribution: &CommitMetadata,
        followed: &mut FollowedObjects,
    ) -> Result<Change, Failure> {
        let root = version
            .root()
            .ok_or_else(|| Failure::bad_request("the version is empty"))?;
        let preceding = preceding_of(root)?;
        let stated = CommitMetadata::of_version(root)?
            .or(call.commit_headers()?)
            .or(contribution);
        let audit = stated.member_audit(if preceding.is_some() {
            MODIFICATION
        } else {
            CREATION
        })?;
        check_change_type(&audit, preceding.is_some(), "preceding_version_uid")?;
        let sent_data = root.get(Attr::DATA);
        let data = sent_data.filter(|_| audit.change_type != DELETED);
        let kind = match data {
            Some(data) => kind_of(data.class())?,
            None if audit.change_type == DELETED => {
                // A deletion stores no data, so the stored object determines the kind.
                let kind = self
                    .kind_of_followed(call, owner, preceding.as_ref(), followed)
                    .await?;
                check_data_of_deletion(kind, sent_data)?;
                kind
            }
            None => return Err(Failure::bad_request("the version has no data")),
        };
        let member = MemberData {
            kind,
            data,
            preceding: preceding.as_ref(),
            level: ValidationLevel::from_audit(&audit),
        };
        let content = self
            .check_member_data(call, owner, member, followed)
            .await?;
        let uid = self.uid_of_member(call, kind, root, preceding.as_ref())?;
        let mut extra = version.clone();
        complete_attestations(&mut extra, &self.config.system_id, &call.commit_time());
        if let Some(root) = extra.root() {
            check_parts(root, "version", &KEPT)?;
        }
        Ok(Change {
            kind,
            uid,
            preceding: preceding.map(|uid| uid.to_string()),
            audit,
            content,
            extra: Some(extra),
            tags: Vec::new(),
        })
    }

    /// Returns the uid of a member: the next one of its object, or the first of a new object.
    fn uid_of_member(
        &self,
        call: &Call<'_>,
        kind: ObjectKind,
        version: NodeRef<'_>,
        preceding: Option<&VersionUid>,
    ) -> Result<VersionUid, Failure> {
        if let Some(preceding) = preceding {
            let uid = preceding.next(&self.config.system_id)?;
            check_following_uids(version, kind, preceding, &uid)?;
            return Ok(uid);
        }
        Ok(VersionUid {
            object_id: given_member_id(call, version)?.unwrap_or_else(|| call.new_uuid()),
            system_id: self.config.system_id.clone(),
            number: 1,
        })
    }

    /// Returns the class of the data of a version.
    pub(super) async fn class_of_data(
        &self,
        owner: &str,
        head: &VersionMetadata,
    ) -> Result<Option<Cls>, Failure> {
        let which = VersionSelector::Uid(&head.version_uid);
        let version = self
            .repository
            .version(owner, head.object_id(), which)
            .await
            .map_err(Failure::of_store)?;
        Ok(version.and_then(|version| {
            let tree = version.packed.unpack();
            tree.root()
                .and_then(|root| root.get(Attr::DATA))
                .map(NodeRef::class)
        }))
    }
}

/// Returns the uid of the version that a member follows, if it states one.
fn preceding_of(version: NodeRef<'_>) -> Result<Option<VersionUid>, Failure> {
    version
        .text_along(&[Attr::PRECEDING_VERSION_UID, Attr::VALUE])
        .filter(|uid| !uid.is_empty())
        .map(|uid| VersionUid::read(uid, "preceding_version_uid"))
        .transpose()
}

/// Returns the change type of a contribution that states none: that of its members. A contribution
/// with members of several types modifies its EHR.
fn common_change_type(changes: &[Change]) -> Code {
    let mut types = changes.iter().map(|change| change.audit.change_type);
    let first = types.next().unwrap_or(CREATION);
    match types.all(|other| other == first) {
        true => first,
        false => MODIFICATION,
    }
}

/// Checks that a creation has no preceding version, and that a change of an existing object has
/// one. `member` is the member that names it.
pub(super) fn check_change_type(audit: &Audit, follows: bool, member: &str) -> Result<(), Failure> {
    match (follows, audit.change_type) {
        (true, CREATION) => Err(Failure::bad_request(format!("a creation has no {member}"))),
        (false, change) if FOLLOWING.contains(&change.code) => Err(Failure::bad_request(format!(
            "the change type `{}` needs a {member}",
            change.rubric
        ))),
        _ => Ok(()),
    }
}

/// Checks the data of a deletion, which UPDATE_VERSION of ITS-REST requires and no version stores:
/// they are an object of the kind that is deleted.
fn check_data_of_deletion(kind: ObjectKind, data: Option<NodeRef<'_>>) -> Result<(), Failure> {
    match data.map(NodeRef::class) {
        Some(class) if kind_of(class).ok() != Some(kind) => Err(Failure::bad_request(format!(
            "the change type is `523` (deleted) and the preceding version is a {}, but `data` is a {class}: leave `data` out, or state another change type",
            class_name(kind)
        ))),
        _ => Ok(()),
    }
}

/// Adds a text as an attribute of an object.
fn push_text(tree: &mut Tree, parent: NodeId, attr: Attr, text: &str) {
    tree.push_leaf(Some(parent), Some(attr), Cls::STRING, Kind::Text, text);
}

/// Sets system_id and time_committed of attestations that state none, as in UPDATE_ATTESTATION of
/// ITS-REST: they are made by this commit.
fn complete_attestations(version: &mut Tree, system_id: &str, time: &str) {
    let Some(root) = version.root() else {
        return;
    };
    let attestations: Vec<NodeId> = root.values(Attr::ATTESTATIONS).map(NodeRef::id).collect();
    for id in attestations {
        let lacks = |attr| version.at(id).get(attr).is_none();
        let (lacks_system, lacks_time) = (lacks(Attr::SYSTEM_ID), lacks(Attr::TIME_COMMITTED));
        if lacks_system {
            push_text(version, id, Attr::SYSTEM_ID, system_id);
        }
        if lacks_time {
            let made = version.push_object(Some(id), Some(Attr::TIME_COMMITTED), Cls::DV_DATE_TIME);
            push_text(version, made, Attr::VALUE, time);
        }
        version.close(id);
    }
}

/// A contribution as a client sends it.
pub(crate) struct SentContribution {
    /// Its uid, if the client supplied one.
    pub uid: Option<String>,
    versions: Vec<Tree>,
    audit: CommitMetadata,
}

impl SentContribution {
    /// Reads a contribution. Its versions are complete, in contrast to the references of a stored
    /// CONTRIBUTION.
    pub async fn read(
        call: &Call<'_>,
        text: &str,
        format: Format,
    ) -> Result<SentContribution, Failure> {
        let turn = call.turn(text.len()).await?;
        let parts = parts(text, format)?;
        drop(turn);
        check_count(parts.iter().filter(|(key, _)| key == "versions").count())?;
        let (mut read, mut unpaused) = (ReadParts::default(), 0);
        for (key, value) in parts {
            unpaused += value.len() + VERSION;
            if unpaused > LARGE {
                unpaused = 0;
                call.pause().await;
            }
            let turn = call.turn(value.len()).await?;
            read.add(&key, value, format)?;
            drop(turn);
        }
        read.complete()
    }

    /// Returns the stored objects that the check of the members reads.
    ///
    /// # Errors
    /// 400 for committal headers that cannot be read.
    pub fn objects_to_read(&self, call: &Call<'_>, owner: &Owner) -> Result<Vec<String>, Failure> {
        let by_default = call.commit_headers()?.clone().or(&self.audit);
        Ok(objects_to_read(owner, &self.versions, by_default.deletes()))
    }
}

/// The attributes of a contribution that were read.
#[derive(Default)]
struct ReadParts {
    uid: Option<Tree>,
    versions: Vec<Tree>,
    audit: Option<Tree>,
}

impl ReadParts {
    /// Reads an attribute, which for `versions` is one of them.
    fn add(&mut self, key: &str, value: &str, format: Format) -> Result<(), Failure> {
        let is_repeated = match key {
            "versions" => {
                let version = read_version(value, format);
                let index = self.versions.len();
                self.versions
                    .push(version.map_err(|failure| in_member(index, failure))?);
                false
            }
            "audit" => self.audit.replace(read_audit(value, format)?).is_some(),
            "uid" if value == "null" => false,
            "uid" => {
                let what = "uid of the contribution";
                let uid = read_part(value, format, Cls::HIER_OBJECT_ID, what)?;
                self.uid.replace(uid).is_some()
            }
            "_type" => {
                check_contribution_type(value)?;
                false
            }
            other => {
                let other = shortened(other);
                let what = format!("`{other}` is not an attribute of CONTRIBUTION");
                return Err(refused(&what));
            }
        };
        // The reader of JSON refuses repeated members itself.
        match is_repeated {
            true => Err(refused(&format!("`{key}` occurs there more than once"))),
            false => Ok(()),
        }
    }

    /// Returns the contribution with these attributes.
    fn complete(self) -> Result<SentContribution, Failure> {
        if self.versions.is_empty() {
            return Err(refused("Versions must not be empty"));
        }
        let audit = self.audit.ok_or_else(|| refused("`audit` is missing"))?;
        let uid = self.uid.as_ref().and_then(Tree::root);
        let uid = uid
            .and_then(|uid| uid.text_at(Attr::VALUE))
            .map(str::to_ascii_lowercase);
        if uid.as_ref().is_some_and(|uid| !is_uuid(uid)) {
            return Err(refused("its uid is not a UUID"));
        }
        let audit = audit.root().ok_or_else(|| refused("`audit` is empty"))?;
        let audit = CommitMetadata::of_audit(audit)
            .map_err(|failure| failure.below("/audit").within("audit"))?;
        Ok(SentContribution {
            uid,
            versions: self.versions,
            audit,
        })
    }
}

fn refused(what: &str) -> Failure {
    Failure::bad_request(format!("the contribution cannot be read: {what}"))
}

/// Reads the audit of a contribution.
fn read_audit(text: &str, format: Format) -> Result<Tree, Failure> {
    let text = match format {
        Format::Json => canonical_audit(text).map_err(|failure| failure.within("audit"))?,
        Format::Xml => Cow::Borrowed(text),
    };
    let read = read_part(
        &text,
        format,
        Cls::AUDIT_DETAILS,
        "audit of the contribution",
    );
    read.map_err(|failure| failure.below("/audit"))
}

/// Checks the number of versions.
fn check_count(versions: usize) -> Result<(), Failure> {
    match versions <= MAX_VERSIONS {
        true => Ok(()),
        false => Err(too_many_versions()),
    }
}

fn too_many_versions() -> Failure {
    Failure::new(
        413,
        format!(
            "the contribution has more versions than the {MAX_VERSIONS} that are committed together at most: send several contributions, or a bulk load"
        ),
    )
}

/// Returns the attributes of a contribution as texts, with an element for each version.
fn parts(text: &str, format: Format) -> Result<Vec<(Cow<'_, str>, &str)>, Failure> {
    if format == Format::Xml {
        return xml::elements(text, Cls::CONTRIBUTION)
            .map_err(|findings| Failure::unreadable("contribution", &findings));
    }
    let malformed = |problem| super::content::malformed("contribution", text, problem);
    if text.trim_start().starts_with('[') {
        return Err(refused(
            "the body is not an object with `versions` and `audit`",
        ));
    }
    let mut found = Vec::new();
    for (key, value) in members(text).map_err(malformed)? {
        if key == "versions" {
            if !value.starts_with('[') {
                return Err(refused("`versions` is not a list"));
            }
            // The list is not read whole before its number of versions is checked.
            let versions = elements_within(value, MAX_VERSIONS).map_err(|problem| {
                match problem.message == TOO_MANY {
                    true => too_many_versions(),
                    false => malformed(problem),
                }
            })?;
            found.extend(versions.into_iter().map(|version| (key.clone(), version)));
        } else {
            found.push((key, value));
        }
    }
    Ok(found)
}
