//! The rules of a change set: what both repositories refuse, in one place.
//!
//! The memory repository asks before it writes; the SQL repository writes under guards of the database and asks
//! afterwards, to say which rule a failed guard stands for.

use super::repository::{Commit, StoreError, Version};
use crate::document::ObjectKind;
use std::collections::HashMap;

/// The latest version of an object.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The EHR that owns the object.
    pub(crate) ehr_id: String,
    /// Its uid.
    pub(crate) version_uid: String,
}

/// The parts of a version uid: object id, creating system, number.
pub(crate) fn split_uid(uid: &str) -> Option<(&str, &str, u32)> {
    let mut parts = uid.split("::");
    let (object, system, number) = (parts.next()?, parts.next()?, parts.next()?);
    let canonical = !object.is_empty() && !number.starts_with('0') && number.bytes().all(|b| b.is_ascii_digit());
    (canonical && parts.next().is_none()).then_some(())?;
    Some((object, system, number.parse().ok()?))
}

/// What [`split_uid`] takes apart.
pub(crate) fn join_uid(object: &str, system: &str, number: u32) -> String {
    format!("{object}::{system}::{number}")
}

/// Checks that the records of a commit agree with each other, which the service promises.
pub(crate) fn check_form(commit: &Commit) -> Result<(), StoreError> {
    let foreign_ehr = commit.new_ehr.as_ref().is_some_and(|ehr| ehr.ehr_id != commit.ehr_id);
    let fits = |version: &Version| {
        let own = split_uid(&version.version_uid);
        let before = version.preceding.as_deref().map(split_uid);
        (&version.ehr_id, &version.contribution) == (&commit.ehr_id, &commit.contribution_uid)
            && own.is_some_and(|(object, _, number)| object == version.object_id && number == version.number)
            && before.is_none_or(|p| p.is_some_and(|(o, _, n)| o == version.object_id && n < version.number))
    };
    if foreign_ehr || commit.versions.is_empty() || !commit.versions.iter().all(fits) {
        return Err(StoreError::Failed("the records of the commit do not fit together".into()));
    }
    Ok(())
}

/// Checks that each version follows the latest one of its object, and each first version opens an object.
pub(crate) fn check_chain(versions: &[Version], head: &dyn Fn(&str) -> Option<Head>) -> Result<(), StoreError> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, version) in versions.iter().enumerate() {
        let object = version.object_id.as_str();
        let before = places.insert(object, place).and_then(|before| versions.get(before));
        let of_commit = before.map(|v| Head { ehr_id: v.ehr_id.clone(), version_uid: v.version_uid.clone() });
        let latest = of_commit.or_else(|| head(object));
        match (&latest, &version.preceding) {
            (None, None) => {}
            (Some(latest), _) if latest.ehr_id != version.ehr_id => {
                return Err(StoreError::UidExists(version.version_uid.clone()));
            }
            (Some(latest), Some(preceding)) if latest.version_uid == *preceding => {}
            _ => return Err(StoreError::Stale { latest: latest.map(|l| l.version_uid).unwrap_or_default() }),
        }
    }
    Ok(())
}

/// Checks that an EHR has at most one directory that is not deleted, after each version in turn; `live` are those before.
pub(crate) fn check_directory(versions: &[Version], live: impl FnOnce() -> Vec<String>) -> Result<(), StoreError> {
    let folders: Vec<&Version> = versions.iter().filter(|v| v.kind == ObjectKind::Folder).collect();
    let mut live = if folders.is_empty() { Vec::new() } else { live() };
    for version in folders {
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
        assert_eq!(split_uid("a::b.c::12"), Some(("a", "b.c", 12)));
        for wrong in ["a::b", "a::b::0", "a::b::01", "a::b::+1", "a::b::1::2", "::b::1", "a::b::1.1.1"] {
            assert_eq!(split_uid(wrong), None, "{wrong}");
        }
    }
}
