//! The rules of a change set, shared by both repositories.
//!
//! The memory repository checks them before it writes. The SQL repository writes under constraints
//! of the database, and checks afterwards to find the rule that a failed constraint enforces.

use super::repository::{Commit, StoreError, Version};
use crate::document::ObjectKind;
use crate::rm::class::Attr;
use std::collections::HashMap;

/// The path of the archetype node id in a version.
pub(crate) const ARCHETYPE_NODE_ID: [Attr; 2] = [Attr::DATA, Attr::ARCHETYPE_NODE_ID];
/// The path of the code of a COMPOSITION's category in a version.
pub(crate) const CATEGORY: [Attr; 4] = [
    Attr::DATA,
    Attr::CATEGORY,
    Attr::DEFINING_CODE,
    Attr::CODE_STRING,
];
/// The code of the category `persistent`.
const PERSISTENT: &str = "431";

/// The properties of a document that all versions of its object share.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct KeptProperties {
    /// The template that its document was checked against. The first one that a version has is kept.
    pub(crate) template_id: Option<String>,
    /// COMPOSITION.archetype_node_id, by the invariant `Archetype_node_id_valid` of
    /// VERSIONED_COMPOSITION (RM EHR IM). `None` for other classes, and in rows of earlier
    /// releases.
    pub(crate) archetype_node_id: Option<String>,
    /// COMPOSITION.is_persistent(), by the invariant `Persistent_valid` of VERSIONED_COMPOSITION.
    /// `None` for other classes, without a category, and in rows of earlier releases.
    pub(crate) is_persistent: Option<bool>,
}

impl KeptProperties {
    /// Returns the properties of a document of a kind. `text_along` reads a text of the version.
    pub(crate) fn read<'t>(
        kind: ObjectKind,
        template_id: Option<&str>,
        text_along: impl Fn(&[Attr]) -> Option<&'t str>,
    ) -> KeptProperties {
        let text_along = |path| text_along(path).filter(|_| kind == ObjectKind::Composition);
        KeptProperties {
            template_id: template_id.map(str::to_owned),
            archetype_node_id: text_along(&ARCHETYPE_NODE_ID).map(str::to_owned),
            is_persistent: text_along(&CATEGORY).map(|code| code == PERSISTENT),
        }
    }

    /// Returns the properties of a version that is no deletion.
    pub(crate) fn of(version: &Version) -> KeptProperties {
        KeptProperties::read(version.kind, version.template_id.as_deref(), |path| {
            version.packed.text_along(path)
        })
    }

    /// Checks that a version with data has these properties too. An unknown one is not compared.
    fn check(&self, version: &Version) -> Result<(), StoreError> {
        let own = KeptProperties::of(version);
        let version_uid = || version.version_uid.clone();
        if let Some(kept) = &self.template_id
            && own.template_id.as_ref() != Some(kept)
        {
            return Err(StoreError::OtherTemplate {
                version_uid: version_uid(),
                template_id: kept.clone(),
            });
        }
        match (&self.archetype_node_id, &own.archetype_node_id) {
            (Some(kept), Some(other)) if kept != other => {
                return Err(StoreError::OtherArchetype {
                    version_uid: version_uid(),
                    archetype_node_id: kept.clone(),
                });
            }
            _ => {}
        }
        match (self.is_persistent, own.is_persistent) {
            (Some(is_persistent), Some(other)) if is_persistent != other => {
                Err(StoreError::OtherPersistence {
                    version_uid: version_uid(),
                    is_persistent,
                })
            }
            _ => Ok(()),
        }
    }
}

/// The latest version of an object.
#[derive(Clone, Debug)]
pub(crate) struct LatestVersion {
    /// The EHR that owns the object.
    pub(crate) ehr_id: String,
    /// The version uid.
    pub(crate) version_uid: String,
    /// The kind of the object.
    pub(crate) kind: ObjectKind,
    /// The properties of the last version with data. `None` if no version has data.
    pub(crate) kept: Option<KeptProperties>,
}

impl LatestVersion {
    /// Returns the latest version of an object after one more version.
    fn followed_by(before: Option<LatestVersion>, version: &Version) -> LatestVersion {
        let kept = match before {
            // A deletion has no data, so the object keeps the properties of its last data.
            Some(before) if version.is_deletion() => before.kept,
            _ => (!version.is_deletion()).then(|| KeptProperties::of(version)),
        };
        LatestVersion {
            ehr_id: version.ehr_id.clone(),
            version_uid: version.version_uid.clone(),
            kind: version.kind,
            kept,
        }
    }
}

/// The parts of a version uid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct UidParts<'u> {
    /// The id of the object.
    pub object: &'u str,
    /// The creating system.
    pub system: &'u str,
    /// The number of the version.
    pub number: u32,
}

/// Splits a version uid into its parts; `None` if it is no canonical version uid.
pub(crate) fn split_uid(uid: &str) -> Option<UidParts<'_>> {
    let mut parts = uid.split("::");
    let (object, system, number) = (parts.next()?, parts.next()?, parts.next()?);
    let canonical = !object.is_empty()
        && !system.is_empty()
        // A leading zero would let two texts name the same version.
        && !number.starts_with('0')
        && number.bytes().all(|b| b.is_ascii_digit());
    (canonical && parts.next().is_none()).then_some(())?;
    Some(UidParts {
        object,
        system,
        number: number.parse().ok()?,
    })
}

/// Joins the parts that [`split_uid`] returns.
pub(crate) fn join_uid(object: &str, system: &str, number: u32) -> String {
    format!("{object}::{system}::{number}")
}

/// Checks that the records of a commit agree with each other. The service guarantees this.
pub(crate) fn check_form(commit: &Commit) -> Result<(), StoreError> {
    let foreign_ehr = commit
        .new_ehr
        .as_ref()
        .is_some_and(|ehr| ehr.ehr_id != commit.ehr_id);
    let has_status = commit
        .versions
        .iter()
        .any(|version| version.kind == ObjectKind::EhrStatus);
    let fits = |version: &Version| {
        let own = split_uid(&version.version_uid);
        let before = version.preceding.as_deref().map(split_uid);
        (&version.ehr_id, &version.contribution) == (&commit.ehr_id, &commit.contribution_uid)
            // Parties, and only they, belong to no EHR.
            && commit.ehr_id.is_empty() == (version.kind == ObjectKind::Party)
            && own.is_some_and(|own| {
                own.object == version.object_id && own.number == version.number
            })
            && before.is_none_or(|before| {
                before.is_some_and(|p| p.object == version.object_id && p.number < version.number)
            })
    };
    if foreign_ehr
        || commit.versions.is_empty()
        || (commit.status.is_some() && !has_status)
        || !commit.versions.iter().all(fits)
    {
        return Err(StoreError::Failed(
            "the records of the commit do not fit together".into(),
        ));
    }
    Ok(())
}

/// Checks that each version follows the latest one of its object, and that each first version
/// creates an object.
///
/// A version that follows one of another EHR gets the same error as one that follows a version that
/// does not exist. The error reveals nothing about another EHR.
pub(crate) fn check_sequence(
    versions: &[Version],
    head: &dyn Fn(&str) -> Result<Option<LatestVersion>, StoreError>,
) -> Result<(), StoreError> {
    let mut heads: HashMap<&str, LatestVersion> = HashMap::new();
    for version in versions {
        let object = version.object_id.as_str();
        // An earlier version of this change set is the head for the next one.
        let latest = match heads.remove(object) {
            Some(latest) => Some(latest),
            None => head(object)?,
        };
        match (&latest, &version.preceding) {
            (None, None) => {}
            (Some(_), None) => return Err(StoreError::UidExists(version.version_uid.clone())),
            // The object belongs to another EHR, so its latest version is not disclosed.
            (Some(latest), Some(_)) if latest.ehr_id != version.ehr_id => {
                return Err(StoreError::Stale {
                    version_uid: version.version_uid.clone(),
                    latest: String::new(),
                });
            }
            (Some(latest), Some(preceding)) if latest.version_uid == *preceding => {}
            _ => {
                return Err(StoreError::Stale {
                    version_uid: version.version_uid.clone(),
                    latest: latest.map(|l| l.version_uid).unwrap_or_default(),
                });
            }
        }
        heads.insert(object, LatestVersion::followed_by(latest, version));
    }
    Ok(())
}

/// Checks that each version has the kind and the [`KeptProperties`] of its object. The caller has
/// called [`check_sequence`].
///
/// A deletion has no data. The version after it is compared with the last version that has data.
pub(crate) fn check_kind_and_properties(
    versions: &[Version],
    head: &dyn Fn(&str) -> Result<Option<LatestVersion>, StoreError>,
) -> Result<(), StoreError> {
    let mut heads: HashMap<&str, LatestVersion> = HashMap::new();
    for version in versions {
        let object = version.object_id.as_str();
        let before = match heads.remove(object) {
            // A new object has no head, so the lookup is saved.
            None if version.preceding.is_some() => head(object)?,
            known => known,
        };
        if let Some(before) = &before {
            if before.kind != version.kind {
                return Err(StoreError::OtherKind {
                    version_uid: version.version_uid.clone(),
                    kind: before.kind,
                });
            }
            if let Some(kept) = before.kept.as_ref().filter(|_| !version.is_deletion()) {
                kept.check(version)?;
            }
        }
        heads.insert(object, LatestVersion::followed_by(before, version));
    }
    Ok(())
}

/// Checks that no new object has the id of an EHR: an id identifies one thing.
pub(crate) fn check_ids(commit: &Commit, is_ehr: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    let created = commit.new_ehr.as_ref().map(|ehr| ehr.ehr_id.as_str());
    let taken = commit.versions.iter().find(|version| {
        let object = version.object_id.as_str();
        version.preceding.is_none() && (created == Some(object) || is_ehr(object))
    });
    match taken {
        Some(version) => Err(StoreError::UidExists(version.version_uid.clone())),
        None => Ok(()),
    }
}

/// Checks that an EHR keeps its one EHR_STATUS. `has_status` is called only if a commit creates an
/// EHR_STATUS.
pub(crate) fn check_status(
    versions: &[Version],
    has_status: impl FnOnce() -> bool,
) -> Result<(), StoreError> {
    let opens = versions
        .iter()
        .filter(|v| v.kind == ObjectKind::EhrStatus && v.preceding.is_none())
        .count();
    match opens {
        0 => Ok(()),
        // The repository is only asked if the change set creates a status.
        1 if !has_status() => Ok(()),
        _ => Err(StoreError::StatusExists),
    }
}

/// Checks that an EHR has at most one directory that is not deleted, after each version of the
/// commit. `live` returns the directories before the commit.
pub(crate) fn check_directory(
    versions: &[Version],
    live: impl FnOnce() -> Vec<String>,
) -> Result<(), StoreError> {
    let folders: Vec<&Version> = versions
        .iter()
        .filter(|v| v.kind == ObjectKind::Folder)
        .collect();
    // The list of directories is only read if the change set has one.
    if folders.is_empty() {
        return Ok(());
    }
    let mut live = live();
    for version in folders {
        // A deletion makes room for a new directory in the same change set.
        live.retain(|object| *object != version.object_id);
        if !version.is_deletion() {
            live.push(version.object_id.clone());
        }
        if live.len() > 1 {
            return Err(StoreError::DirectoryExists);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_uids_split_into_three_parts() {
        let parts = UidParts {
            object: "a",
            system: "b.c",
            number: 12,
        };
        assert_eq!(split_uid("a::b.c::12"), Some(parts));
        for wrong in [
            "a::b",
            "a::b::0",
            "a::b::01",
            "a::b::+1",
            "a::b::1::2",
            "::b::1",
            "a::::1",
            "a::b::1.1.1",
        ] {
            assert_eq!(split_uid(wrong), None, "{wrong}");
        }
    }
}
