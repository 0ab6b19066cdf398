//! Identifiers in paths and headers.

use super::error::Failure;
use crate::document::sha256;

/// VERSION.uid.value in its three parts: `object_id::system_id::number`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VersionUid {
    /// VERSIONED_OBJECT.uid.value.
    pub object_id: String,
    /// The system that made the version.
    pub system_id: String,
    /// The number of the version, from 1.
    pub number: u32,
}

impl VersionUid {
    /// Reads one; `None` unless it has three parts, a UUID in front and a number from 1 at the end.
    pub fn parse(text: &str) -> Option<VersionUid> {
        let mut parts = text.split("::");
        let (object_id, system_id, number) = (parts.next()?, parts.next()?, parts.next()?);
        let number = number.parse().ok().filter(|n| *n > 0 && !number.starts_with(['0', '+']))?;
        (parts.next().is_none() && is_uuid(object_id) && !system_id.is_empty()).then(|| VersionUid {
            object_id: object_id.to_ascii_lowercase(),
            system_id: system_id.to_owned(),
            number,
        })
    }

    /// Reads one, or says what a version uid looks like.
    pub fn read(text: &str, what: &str) -> Result<VersionUid, Failure> {
        VersionUid::parse(text).ok_or_else(|| Failure::bad(format!("{what} is not a version uid: expected `<uuid>::<system id>::<number>`")))
    }

    /// The uid of the version that follows, made by this system.
    pub fn next(&self, system_id: &str) -> VersionUid {
        VersionUid { object_id: self.object_id.clone(), system_id: system_id.to_owned(), number: self.number.saturating_add(1) }
    }
}

impl std::fmt::Display for VersionUid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}::{}", self.object_id, self.system_id, self.number)
    }
}

/// The `uid_based_id` of a path: an object, or one version of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A versioned object.
    Object(String),
    /// A version.
    Version(VersionUid),
}

impl Target {
    /// Reads one; what is neither does not exist.
    pub fn parse(text: &str) -> Option<Target> {
        if is_uuid(text) {
            return Some(Target::Object(text.to_ascii_lowercase()));
        }
        VersionUid::parse(text).map(Target::Version)
    }
}

/// True for a UUID in its hyphenated form.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// Derives a UUID from a text: equal texts give equal UUIDs.
pub(crate) fn uuid_of(text: &str) -> String {
    let digest = sha256(text);
    let bytes = digest.first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// A complete SEMVER of three numbers (a pre-release is allowed).
pub(crate) fn is_version(text: &str) -> bool {
    semver::Version::parse(text).is_ok()
}

/// The highest of these versions that a pattern selects: absent, `1`, `1.2` or `1.2.3`.
pub(crate) fn select_version<'v>(versions: impl Iterator<Item = &'v str>, pattern: Option<&str>) -> Option<&'v str> {
    let fits = |version: &str| match pattern.map(str::trim) {
        None | Some("") => true,
        Some(pattern) => {
            version == pattern || version.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.') && !pattern.contains(['-', '+']))
        }
    };
    versions.filter(|v| fits(v)).max_by_key(|v| semver::Version::parse(v).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_uids_have_three_parts() {
        let uid = "8849182c-82ad-4088-a07f-48ead4180515::cdr.example.org::2";
        assert_eq!(VersionUid::parse(uid).unwrap().to_string(), uid);
        assert_eq!(VersionUid::parse(uid).unwrap().next("here").to_string(), "8849182c-82ad-4088-a07f-48ead4180515::here::3");
        for bad in [
            "8849182c-82ad-4088-a07f-48ead4180515::8",
            "x::y::1",
            "8849182c-82ad-4088-a07f-48ead4180515::y::0",
            "8849182c-82ad-4088-a07f-48ead4180515::y::1::2",
        ] {
            assert_eq!(VersionUid::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn partial_versions_select_the_highest() {
        let versions = ["1.0.0", "1.2.0", "1.10.1", "2.0.0"];
        let select = |pattern| select_version(versions.into_iter(), pattern);
        assert_eq!(select(None), Some("2.0.0"));
        assert_eq!(select(Some("1")), Some("1.10.1"));
        assert_eq!(select(Some("1.2")), Some("1.2.0"));
        assert_eq!(select(Some("1.1")), None);
        assert_eq!(select(Some("1.0.0")), Some("1.0.0"));
    }
}
