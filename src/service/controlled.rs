//! Change-controlled documents: COMPOSITION, EHR_STATUS, the directory and demographic parties. All
//! are created, read, updated and deleted by the same functions. Each change goes through a
//! CONTRIBUTION.

use super::admission::Turn;
use super::call::{Call, ChangedResource, validated};
use super::commit::{Change, ChangeSet, Committed, CommittedChange, check_write, flags};
use super::committal::{Audit, CREATION, DELETED, MODIFICATION};
use super::content::{CheckedDocument, ValidationLevel, named_template, with_status_of};
use super::document_class::Controlled;
use super::error::Failure;
use super::http::Response;
use super::identity::{check_object, given_object_id};
use super::ids::{Target, VersionUid, is_uuid};
use super::negotiate::{Form, Return, none_match, required_if_match};
use super::owner::Owner;
use super::simplified::check_acceptable;
use super::templates::FactSource;
use super::validators::check_preconditions;
use super::versioned::{address, missing};
use super::{Service, tag};
use crate::diag::Finding;
use crate::document::ObjectKind;
use crate::rm::class::Attr;
use crate::rm::id::object_id_of;
use crate::rm::tree::{NodeRef, Tree};
use crate::store::repository::{
    BoundedVersion, LargeVersion, Predecessor, Repository, VerifiedVersion, Version,
    VersionMetadata, VersionSelector,
};

/// The version that a change follows.
struct Followed {
    latest: VersionMetadata,
    /// Its precondition, if it was not read as the latest version in this attempt.
    predecessor: Option<Predecessor>,
}

impl From<VersionMetadata> for Followed {
    fn from(latest: VersionMetadata) -> Followed {
        Followed {
            latest,
            predecessor: None,
        }
    }
}

/// A change of a document at its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DocumentChange {
    Create,
    Update,
    Delete,
}

impl<R: Repository> Service<R> {
    /// POST …/{composition|directory|person|…}, PUT …/{composition|person|…}/{object uid},
    /// PUT …/{ehr_status|directory}, and the same addresses with DELETE. If-Match has the preceding
    /// version.
    pub(super) async fn change(
        &self,
        call: &Call<'_>,
        what: &Controlled,
        change: DocumentChange,
    ) -> Result<Response, Failure> {
        if change != DocumentChange::Delete {
            check_acceptable(call)?;
        }
        let change_set = async |facts| match change {
            DocumentChange::Create => self.creation(call, what, facts).await,
            DocumentChange::Update => self.updating(call, what, facts).await,
            DocumentChange::Delete => self.deletion(call, what, facts).await,
        };
        let committed = self.commit_with_preconditions(call, change_set).await;
        let committed = committed.map_err(|failure| with_latest_address(call, what, failure))?;
        self.change_response(call, what, &committed).await
    }

    /// Checks a new document, and returns its change set.
    async fn creation(
        &self,
        call: &Call<'_>,
        what: &Controlled,
        facts: FactSource,
    ) -> Result<ChangeSet, Failure> {
        // The error is kept until the owner was checked: a missing EHR precedes a malformed body.
        let body = self.read_document(call, what, None).await;
        let owner = match facts {
            FactSource::Cached => Owner::unread(call)?,
            FactSource::Stored => {
                self.owner_with_preconditions(call, body.as_ref().ok())
                    .await?
            }
        };
        owner.check_modifiable(what.kind)?;
        let (body, audit) = (body?, call.direct_audit(CREATION)?);
        let content = self.check(call, owner.id(), what, body, &audit).await?;
        self.creation_change_set(call, owner.id(), what, (content, audit))
    }

    /// Returns the change set that creates a document.
    fn creation_change_set(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
        (content, audit): (CheckedDocument, Audit),
    ) -> Result<ChangeSet, Failure> {
        let (new_object, contribution) = (call.new_uuid(), call.new_uuid());
        let object_id = given_object_id(call, content.tree.root())?.unwrap_or(new_object);
        let change = self.first_version(what.kind, object_id, content, audit);
        let tags = tag::of_headers(call, &change.uid)?;
        Ok(ChangeSet {
            contribution_uid: Some(contribution),
            ..ChangeSet::single(owner, Change { tags, ..change })
        })
    }

    /// GET …/{composition|person|…}/{object or version uid}, GET …/{ehr_status|directory}[/{version
    /// uid}]
    pub(super) async fn read(
        &self,
        call: &Call<'_>,
        what: &Controlled,
    ) -> Result<Response, Failure> {
        let owner = if call.demographic {
            String::new()
        } else {
            call.param(0)?.to_ascii_lowercase()
        };
        let version = match self.read_addressed(call, &owner, what).await {
            Ok(BoundedVersion::Complete(version)) => version,
            Ok(BoundedVersion::Large(large)) => match self.without_document(call, what, &large)? {
                Some(response) => return Ok(response),
                None => self.read_large(call, &owner, &large.head).await?,
            },
            // Only after a failure: finds out whether the EHR or the document is missing.
            Err(failure) => return Err(self.owner(call).await.err().unwrap_or(failure)),
        };
        let turn = call.turn(version.packed.json_size()).await?;
        let tree = version.packed.unpack();
        drop(turn);
        let Some(data) = tree.root().and_then(|root| root.get(Attr::DATA)) else {
            let uid = &version.version_uid;
            let status = match none_match(call.request, uid) {
                true => 304,
                false => 204,
            };
            return Ok(validated(
                Response::new(status),
                uid,
                &version.time_committed,
            ));
        };
        let shown = match call.request.query_value("path") {
            // `path` selects a folder of a directory (ITS-REST, DIRECTORY).
            Some(path) if what.kind == ObjectKind::Folder => folder_at(data, path)?,
            _ => data,
        };
        let form = self.shown(call, &owner, shown).await?;
        let _turn = call.turn(tree.size()).await?;
        let response = call.resource(shown, form, &version.version_uid, &version.time_committed)?;
        Ok(tag::with_headers(response, &version.tags))
    }

    /// Checks an update, and returns its change set.
    async fn updating(
        &self,
        call: &Call<'_>,
        what: &Controlled,
        facts: FactSource,
    ) -> Result<ChangeSet, Failure> {
        let owner = self.owner_from(call, facts).await?;
        owner.check_modifiable(what.kind)?;
        let Followed {
            latest,
            predecessor,
        } = match facts {
            FactSource::Cached => {
                let expected = version_to_update(call, what)?;
                self.expected_latest(call, &owner, what, &expected).await?
            }
            FactSource::Stored => self.latest_to_update(call, &owner, what).await?.into(),
        };
        if latest.is_deletion() {
            return Err(Failure::not_found(format!("the {} is deleted", what.name)));
        }
        let tree = self
            .read_document(call, what, latest.template_id.as_deref())
            .await?;
        if let Some(document) = tree.root().filter(|_| !what.single) {
            let preceding = VersionUid::of_checked(&latest.version_uid)?;
            check_object(document, &preceding, &self.config.system_id, "the path")?;
        }
        let audit = call.direct_audit(MODIFICATION)?;
        let content = self.check(call, owner.id(), what, tree, &audit).await?;
        // A trigger of the database has the same rule. This check names the path of the difference.
        if latest.template_id.is_some() && content.template_id != latest.template_id {
            let finding = Finding::error(
                "SVC0203",
                "/archetype_details/template_id/value",
                format!("an update must keep the template of the {}", what.name),
            );
            let failure = Failure::invalid(call.dialect, what.name, &[finding]);
            return Err(with_status_of(what.class, failure));
        }
        // An EHR_STATUS that makes the EHR modifiable may bring tags in the same commit.
        let opens = what.kind == ObjectKind::EhrStatus && flags(&content.tree).is_modifiable;
        let change = self.next_change(call, latest, audit, Some(content))?;
        if !change.tags.is_empty() && !opens {
            owner.check_tags_modifiable(what.kind)?;
        }
        Ok(ChangeSet {
            // A version that is committed after the check above breaks If-Match too: 412, not 409.
            conditional: true,
            predecessor,
            ..ChangeSet::single(owner.id(), change)
        })
    }

    /// Returns the metadata of the version to update, which must equal If-Match.
    async fn latest_to_update(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        what: &Controlled,
    ) -> Result<VersionMetadata, Failure> {
        let object = match what.single {
            true => self.object_of(owner.id(), what.kind).await?,
            false if is_uuid(call.sub_param(0)?) => Some(call.sub_param(0)?.to_ascii_lowercase()),
            false => {
                return Err(Failure::bad_request(
                    "the path of an update names the object without a version: send the version in If-Match",
                ));
            }
        };
        self.matching_latest(call, owner, what, object.as_deref())
            .await
    }

    /// Checks a deletion, and returns its change set.
    async fn deletion(
        &self,
        call: &Call<'_>,
        what: &Controlled,
        facts: FactSource,
    ) -> Result<ChangeSet, Failure> {
        let owner = self.owner_from(call, facts).await?;
        owner.check_modifiable(what.kind)?;
        let Followed {
            latest,
            predecessor,
        } = match facts {
            FactSource::Cached => {
                let expected = version_to_delete(call, what)?;
                self.expected_latest(call, &owner, what, &expected).await?
            }
            FactSource::Stored if what.single => {
                let object = self.object_of(owner.id(), what.kind).await?;
                self.matching_latest(call, &owner, what, object.as_deref())
                    .await?
                    .into()
            }
            FactSource::Stored => self.named_latest(call, &owner, what).await?.into(),
        };
        if latest.is_deletion() {
            return Err(Failure::bad_request(format!(
                "the {} is deleted already",
                what.name
            )));
        }
        let audit = call.direct_audit(DELETED)?;
        let change = self.next_change(call, latest, audit, None)?;
        Ok(ChangeSet {
            conditional: what.single,
            predecessor,
            ..ChangeSet::single(owner.id(), change)
        })
    }

    /// Returns the version that a request expects to be the latest of its object. It is not read if
    /// this instance has verified it. The commit checks that it is the latest one.
    ///
    /// # Errors
    /// Any error means that the change must be tried with stored facts, which finds the error to
    /// report.
    async fn expected_latest(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        what: &Controlled,
        expected: &VersionUid,
    ) -> Result<Followed, Failure> {
        let version_uid = expected.to_string();
        let verified = self
            .repository
            .verified_version(owner.id(), &version_uid)
            // A verified version of another kind is not found at this address.
            .filter(|verified| what.is_of_verified(verified));
        let (latest, row) = match verified {
            Some(VerifiedVersion { metadata, row, .. }) => (metadata, Some(row)),
            None => {
                let object = (owner.id(), expected.object_id.as_str());
                let latest = self
                    .preceding_version(call, object, VersionSelector::Latest, what)
                    .await?
                    // A newer version means that the cached facts are outdated. The change is then
                    // repeated with stored ones.
                    .filter(|latest| latest.version_uid == version_uid);
                (latest.ok_or_else(|| missing(what))?, None)
            }
        };
        call.check_permission_in(owner.id(), latest.kind, latest.template_id.as_deref())?;
        let predecessor = Some(Predecessor {
            version_uid,
            // An EHR has one directory and one EHR_STATUS. The commit checks that no other object
            // of the kind is newer.
            is_newest_of_kind: what.single,
            row,
        });
        Ok(Followed {
            latest,
            predecessor,
        })
    }

    /// Reads the version that the path selects.
    async fn read_addressed(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
    ) -> Result<BoundedVersion, Failure> {
        let target = self.target(call, owner, what).await?;
        self.find_bounded(call, owner, what, &target).await
    }

    /// Returns the response to a read that needs no document: the client has it already, or
    /// requests headers only.
    fn without_document(
        &self,
        call: &Call<'_>,
        what: &Controlled,
        large: &LargeVersion,
    ) -> Result<Option<Response>, Failure> {
        let LargeVersion { head, tags } = large;
        // The class of a party and the folder at a path are known from the document only.
        if what.kind == ObjectKind::Party || call.request.query_value("path").is_some() {
            return Ok(None);
        }
        let Form::Canonical(format) = Form::wanted(call.request)? else {
            return Ok(None);
        };
        let response = match () {
            () if none_match(call.request, &head.version_uid) => Response::new(304),
            () if call.request.method == "HEAD" => {
                Response::new(200).with_header("Content-Type", format.media_type())
            }
            () => return Ok(None),
        };
        let response = validated(response, &head.version_uid, &head.time_committed);
        Ok(Some(tag::with_headers(response, tags)))
    }

    /// Reads a version with a long document, as soon as there is memory for it.
    async fn read_large(
        &self,
        call: &Call<'_>,
        owner: &str,
        head: &VersionMetadata,
    ) -> Result<Box<Version>, Failure> {
        // The template is read and compiled first, before there are two long texts in memory.
        if let (Form::Simplified(..), Some(template)) =
            (Form::wanted(call.request)?, &head.template_id)
        {
            self.template_of(call, template).await?;
        }
        self.read_complete(call, owner, head).await
    }

    /// Returns the object or version that the path names.
    async fn target(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
    ) -> Result<Target, Failure> {
        let none = || missing(what);
        match call.optional_sub_param(0) {
            Some(uid) if what.single => {
                VersionUid::parse(uid).map(Target::Version).ok_or_else(none)
            }
            Some(uid) => Target::parse(uid).ok_or_else(none),
            None => self
                .object_at_time(call, owner, what.kind)
                .await?
                .map(Target::Object)
                .ok_or_else(none),
        }
    }

    /// Checks a document by the rules of its class, if the caller may write it.
    pub(crate) async fn check(
        &self,
        call: &Call<'_>,
        owner: &str,
        what: &Controlled,
        tree: Tree,
        audit: &Audit,
    ) -> Result<CheckedDocument, Failure> {
        let written = (what.kind, call.permission.act);
        check_write(call, owner, written, named_template(&tree))?;
        let level = ValidationLevel::from_audit(audit);
        match what.kind {
            ObjectKind::Composition => self.check_composition(call, tree, level).await,
            _ => self.check_plain(call, tree, what.name, level).await,
        }
    }

    /// Returns the change that follows the latest version of an object; a deletion without
    /// `content`.
    fn next_change(
        &self,
        call: &Call<'_>,
        latest: VersionMetadata,
        audit: Audit,
        content: Option<CheckedDocument>,
    ) -> Result<Change, Failure> {
        let uid = VersionUid::of_checked(&latest.version_uid)?.next(&self.config.system_id)?;
        let tags = tag::of_headers(call, &uid)?;
        call.follow_time(&latest.time_committed);
        Ok(Change {
            kind: latest.kind,
            uid,
            preceding: Some(latest.version_uid),
            audit,
            content,
            extra: None,
            tags,
        })
    }

    /// Returns the metadata of the latest version of an object.
    ///
    /// # Errors
    /// 412 if If-Match names another version, 404 for a missing object that the path names,
    /// whatever If-Match names.
    async fn matching_latest(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        what: &Controlled,
        object: Option<&str>,
    ) -> Result<VersionMetadata, Failure> {
        let latest = match object {
            Some(object) => {
                self.preceding_version(call, (owner.id(), object), VersionSelector::Latest, what)
                    .await?
            }
            None => None,
        };
        if latest.is_none() && !what.single {
            return Err(missing(what));
        }
        // After the 404 for a missing object, which needs no If-Match.
        let expected = versions_of_if_match(call)?;
        let unknown = || {
            Failure::new(
                412,
                format!(
                    "there is no {} that the header If-Match could match",
                    what.name
                ),
            )
        };
        let latest = latest.ok_or_else(unknown)?;
        call.check_permission_in(owner.id(), latest.kind, latest.template_id.as_deref())?;
        if expected
            .iter()
            .any(|uid| uid.to_string() == latest.version_uid)
        {
            Ok(latest)
        } else {
            Err(not_latest(412, call, owner, what, &latest))
        }
    }

    /// Returns the metadata of the latest version of an object.
    ///
    /// # Errors
    /// 409 if the path names another version, 412 if a precondition does not hold for the latest one.
    async fn named_latest(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        what: &Controlled,
    ) -> Result<VersionMetadata, Failure> {
        let uid = match Target::parse(call.sub_param(0)?) {
            Some(Target::Version(uid)) => uid,
            None if !is_uuid(object_id_of(call.sub_param(0)?)) => return Err(missing(what)),
            _ => {
                return Err(Failure::bad_request(
                    "the path of a deletion names the latest version: `<uuid>::<system id>::<number>`",
                ));
            }
        };
        let named = uid.to_string();
        let latest = self
            .preceding_version(
                call,
                (owner.id(), &uid.object_id),
                VersionSelector::Latest,
                what,
            )
            .await?;
        let latest = latest.ok_or_else(|| missing(what))?;
        call.check_permission_in(owner.id(), latest.kind, latest.template_id.as_deref())?;
        if latest.version_uid != named
            && self
                .version_metadata(owner.id(), &uid.object_id, VersionSelector::Uid(&named))
                .await?
                .is_none()
        {
            return Err(missing(what));
        }
        // If-Match is optional for a deletion by its path, but must not contradict the path.
        check_preconditions(call.request, Some(&latest.version_uid))?;
        match latest.is_deletion() || latest.version_uid == named {
            true => Ok(latest),
            false => Err(not_latest(409, call, owner, what, &latest)),
        }
    }

    /// Returns the response to a committed change. No error after the commit reaches the client:
    /// content that cannot be written is left out.
    ///
    /// # Errors
    /// 500 for a commit without versions.
    async fn change_response(
        &self,
        call: &Call<'_>,
        what: &Controlled,
        committed: &Committed,
    ) -> Result<Response, Failure> {
        let nothing = || Failure::broken("the commit has no versions");
        let CommittedChange { uid, created, tags } =
            committed.first.as_ref().ok_or_else(nothing)?;
        let (owner, created) = (committed.ehr_id.as_str(), *created);
        let shown = match committed
            .data()
            .filter(|_| call.prefer.returns == Return::Representation)
        {
            Some(data) => self.shown(call, owner, data).await,
            None => Ok(None),
        };
        let size = committed.versions.first().map_or(0, Tree::size);
        let (shown, _turn) = match call.turn(size).await {
            Ok(turn) => (shown, turn),
            Err(failure) => (Err(failure), Turn::default()),
        };
        let uri = (!owner.is_empty()).then(|| format!("ehr:/{owner}/{}", uid.object_id));
        let uid = uid.to_string();
        let path = address(call, owner, what, &uid);
        let response = call.changed(ChangedResource {
            created,
            path,
            uri,
            uid: &uid,
            time: &committed.time,
            node: committed.data(),
            shown,
        });
        Ok(tag::with_headers(response, tags))
    }
}

/// Returns the versions of If-Match, one of which must be the latest.
fn versions_of_if_match(call: &Call<'_>) -> Result<Vec<VersionUid>, Failure> {
    let tags = required_if_match(call.request)?;
    let read = |tag: &str| VersionUid::read(tag, "the header If-Match");
    tags.into_iter().map(read).collect()
}

/// Returns the version that an update expects to be the latest: that of If-Match, whose object the
/// path names unless its kind has one object in each EHR. If the header names several versions, the
/// stored one determines which of them it is: an error.
fn version_to_update(call: &Call<'_>, what: &Controlled) -> Result<VersionUid, Failure> {
    let mut named = versions_of_if_match(call)?.into_iter();
    match (named.next(), named.next()) {
        (Some(uid), None)
            if what.single || call.sub_param(0)?.eq_ignore_ascii_case(&uid.object_id) =>
        {
            Ok(uid)
        }
        _ => Err(missing(what)),
    }
}

/// Returns the version that a deletion expects to be the latest: that of the path, with which the
/// preconditions agree.
fn version_to_delete(call: &Call<'_>, what: &Controlled) -> Result<VersionUid, Failure> {
    if what.single {
        return version_to_update(call, what);
    }
    let uid = VersionUid::parse(call.sub_param(0)?).ok_or_else(|| missing(what))?;
    check_preconditions(call.request, Some(&uid.to_string()))?;
    Ok(uid)
}

/// Adds the address of the latest version to an error that names it by an entity tag alone: it was
/// committed after the check of this request.
fn with_latest_address(call: &Call<'_>, what: &Controlled, failure: Failure) -> Failure {
    let find = |name: &str| failure.headers.iter().find(|(key, _)| key == name);
    let (Some((_, etag)), None) = (find("ETag"), find("Location")) else {
        return failure;
    };
    let owner = match call.demographic {
        true => "",
        false => call.optional_param(0).unwrap_or_default(),
    };
    let path = address(
        call,
        &owner.to_ascii_lowercase(),
        what,
        etag.trim_matches('"'),
    );
    failure.header("Location", path)
}

/// Returns the error for a request that names another version than the latest one.
fn not_latest(
    status: u16,
    call: &Call<'_>,
    owner: &Owner,
    what: &Controlled,
    latest: &VersionMetadata,
) -> Failure {
    let uid = &latest.version_uid;
    let failure = Failure::new(
        status,
        format!("the version is not the latest one, which is {uid}"),
    );
    failure
        .header("ETag", format!("\"{uid}\""))
        .header("Location", address(call, owner.id(), what, uid))
}

/// Returns the first folder at a path of names, in the order of the document. Several folders of a
/// parent may have the same name, and each of them may have the rest of the path.
fn folder_at<'t>(root: NodeRef<'t>, path: &str) -> Result<NodeRef<'t>, Failure> {
    let named = |folder: &NodeRef<'t>, name: &str| {
        folder.text_along(&[Attr::NAME, Attr::VALUE]) == Some(name)
    };
    let mut found = vec![root];
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let children = found.iter().flat_map(|f| f.values(Attr::FOLDERS));
        found = children.filter(|folder| named(folder, name)).collect();
    }
    found
        .first()
        .copied()
        .ok_or_else(|| Failure::not_found("the directory has no folder at this path"))
}
