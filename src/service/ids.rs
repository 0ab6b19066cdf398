//! Identifiers in paths and headers.

use super::error::Failure;
#[cfg(feature = "server")]
use crate::document::sha256;
use crate::document::sha256_of;
use crate::store::commit_rules::split_uid;

/// VERSION.uid.value as its three parts: `object_id::system_id::number`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct VersionUid {
    /// VERSIONED_OBJECT.uid.value.
    pub object_id: String,
    /// The creating system of the version.
    pub system_id: String,
    /// The number of the version, from 1.
    pub number: u32,
}

impl VersionUid {
    /// Parses a version uid. Returns `None` unless it has three parts, of which the first is a UUID
    /// and the last a number from 1.
    pub fn parse(text: &str) -> Option<VersionUid> {
        let parts = split_uid(text)?;
        is_uuid(parts.object).then(|| VersionUid {
            object_id: parts.object.to_ascii_lowercase(),
            system_id: parts.system.to_owned(),
            number: parts.number,
        })
    }

    /// Parses a version uid. The error describes its form.
    pub fn read(text: &str, what: &str) -> Result<VersionUid, Failure> {
        let expected = || {
            format!(
                "{what} is not a version uid: expected `<uuid>::<system id>::<number>`, the number from 1 to {}",
                u32::MAX
            )
        };
        VersionUid::parse(text).ok_or_else(|| Failure::bad_request(expected()))
    }

    /// Parses a version uid that was checked before: one of the database or of an earlier step.
    ///
    /// # Errors
    /// 500 for another text.
    pub fn of_checked(text: &str) -> Result<VersionUid, Failure> {
        let broken = || Failure::broken("a checked version uid has another form");
        VersionUid::parse(text).ok_or_else(broken)
    }

    /// Parses a version uid of a document that is stored as sent. It must have its stored form: the
    /// UUID in lower case.
    pub fn read_stored(text: &str, what: &str) -> Result<VersionUid, Failure> {
        let uid = VersionUid::read(text, what)?;
        check_system_id(&uid.system_id)?;
        let is_same = uid.to_string() == text;
        if is_same {
            Ok(uid)
        } else {
            Err(Failure::bad_request(format!(
                "{what} is `{text}`: a UUID is stored in lower case, as `{uid}`"
            )))
        }
    }

    /// Returns the uid of the next version, created by this system; 409 after the highest number.
    pub fn next(&self, system_id: &str) -> Result<VersionUid, Failure> {
        let full = || {
            let message = format!(
                "{self} cannot be followed: {} is the highest number of a version; create another object",
                u32::MAX
            );
            Failure::new(409, message)
        };
        let number = self.number.checked_add(1).ok_or_else(full)?;
        Ok(VersionUid {
            object_id: self.object_id.clone(),
            system_id: system_id.to_owned(),
            number,
        })
    }

    /// Checks that this uid can follow another: that of an earlier version of the same object.
    pub fn check_follows(&self, preceding: &VersionUid) -> Result<(), Failure> {
        if self.object_id == preceding.object_id && preceding.number < self.number {
            return Ok(());
        }
        Err(Failure::bad_request(format!(
            "{self} cannot follow {preceding}: a version follows an earlier one, by its number, of the same object"
        )))
    }
}

impl std::fmt::Display for VersionUid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}::{}", self.object_id, self.system_id, self.number)
    }
}

/// The maximum bytes of the id of a system: the longest name of a host.
pub(crate) const MAX_SYSTEM_ID: usize = 255;

/// Checks that the id of a system can be part of a version uid, which occurs in entity tags and
/// paths: visible ASCII without quotes (RFC 9110 §8.8.3), of a length that headers allow.
pub(crate) fn check_system_id(system_id: &str) -> Result<(), Failure> {
    let is_tag = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
    if !system_id.is_empty() && system_id.len() <= MAX_SYSTEM_ID && system_id.bytes().all(is_tag) {
        return Ok(());
    }
    let shown: String = system_id.chars().take(40).collect();
    Err(Failure::bad_request(format!(
        "`{}` cannot be the id of a system: expected 1 to {MAX_SYSTEM_ID} visible ASCII characters other than `\"`, because version uids are part of entity tags and paths",
        shown.escape_debug()
    )))
}

/// The `uid_based_id` of a path: an object or a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A versioned object.
    Object(String),
    /// A version.
    Version(VersionUid),
}

impl Target {
    /// Parses the id of an object or of a version. Any other text names nothing.
    pub fn parse(text: &str) -> Option<Target> {
        if is_uuid(text) {
            return Some(Target::Object(text.to_ascii_lowercase()));
        }
        VersionUid::parse(text).map(Target::Version)
    }
}

/// The maximum bytes of the id of a template, a guide or a value set, which is part of addresses
/// and headers.
const MAX_ID: usize = 1_000;

/// The maximum bytes of the id, and of the namespace, of the subject of an EHR. Lists of EHRs read
/// those of all their EHRs at once.
const MAX_SUBJECT: usize = 1_000;

/// Checks the length of the subject of an EHR: id and namespace.
pub(crate) fn check_subject(subject: Option<&(String, String)>) -> Result<(), Failure> {
    let Some((id, namespace)) = subject else {
        return Ok(());
    };
    match id.len().max(namespace.len()) > MAX_SUBJECT {
        true => Err(Failure::bad_request(format!(
            "`subject/external_ref` of the EHR_STATUS has an id or a namespace of more than {MAX_SUBJECT} bytes: refer to the subject by a shorter one"
        ))),
        false => Ok(()),
    }
}

/// Checks that a name in a body can be part of the path of a URL.
///
/// Clients remove a segment `.` or `..` from a path before they send it, percent-encoded or not
/// (WHATWG URL, "double-dot URL path segment"). Clients and proxies remove or reject control
/// characters.
pub(crate) fn check_addressable(what: &str, name: &str) -> Result<(), Failure> {
    if name.len() > MAX_ID {
        return Err(Failure::bad_request(format!(
            "the id of the {what} has more than {MAX_ID} bytes; give it another id"
        )));
    }
    if name.is_empty() || name == "." || name == ".." || name.chars().any(char::is_control) {
        let shown = name.escape_debug();
        let rule =
            "it is a segment of paths, which cannot be empty, `.`, `..` or have control characters";
        return Err(Failure::bad_request(format!(
            "`{shown}` cannot be the id of a {what}: {rule}; give it another id"
        )));
    }
    Ok(())
}

/// Returns whether a text is a UUID in its hyphenated form.
pub(crate) fn is_uuid(text: &str) -> bool {
    // The parser also accepts UUIDs without hyphens, in braces and as URN.
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// Derives a UUID from a text: equal texts give equal UUIDs.
pub(crate) fn uuid_of(text: &str) -> String {
    custom_uuid(digest_of_parts(&[text]))
}

/// The identity of the lines of a load, from which their UUIDs derive.
#[cfg(feature = "server")]
pub(crate) struct LineUuids {
    /// The texts that the lines of the load have in common.
    shared: String,
    /// The first bytes of the digest of these texts.
    load: [u8; 2],
}

#[cfg(feature = "server")]
impl LineUuids {
    /// Creates the identity of a load.
    pub fn of(shared: String) -> LineUuids {
        let load = sha256(&shared).first_chunk().copied().unwrap_or_default();
        LineUuids { shared, load }
    }

    /// Returns the UUID of a line: equal lines of equal loads give equal UUIDs.
    ///
    /// Its first 48 bits are those of the load and the number of the line, so the lines of a load
    /// follow one another in the indexes of a database, which writes fewer pages then. All other
    /// bits are those of a digest.
    pub fn of_line(&self, number: u64, text: &str) -> String {
        let number_text = number.to_string();
        let mut bytes = digest_of_parts(&[&self.shared, "\n", &number_text, "\n", text]);
        // The highest byte first, so that the order of the UUIDs is that of the lines.
        let [.., a, b, c, d] = number.to_be_bytes();
        let [first, second] = self.load;
        for (byte, prefix) in bytes.iter_mut().zip([first, second, a, b, c, d]) {
            *byte = prefix;
        }
        custom_uuid(bytes)
    }
}

/// Derives a UUID from another one. It has the same first 48 bits.
///
/// # Errors
/// 500 for a text that is no UUID.
#[cfg(feature = "server")]
pub(crate) fn uuid_beside(uuid: &str) -> Result<String, Failure> {
    let broken = |_| Failure::broken("the id of a line is no UUID");
    let prefix = uuid::Uuid::try_parse(uuid).map_err(broken)?.into_bytes();
    let mut bytes = digest_of_parts(&[uuid]);
    // Six bytes: the load and the number of the line, see `LineUuids`.
    for (byte, prefix) in bytes.iter_mut().zip(prefix).take(6) {
        *byte = prefix;
    }
    Ok(custom_uuid(bytes))
}

fn digest_of_parts(parts: &[&str]) -> [u8; 16] {
    let digest = sha256_of(parts);
    digest.first_chunk().copied().unwrap_or_default()
}

fn custom_uuid(bytes: [u8; 16]) -> String {
    uuid::Builder::from_custom_bytes(bytes)
        .into_uuid()
        .to_string()
}

/// Returns whether a text is a complete SEMVER of three numbers (a pre-release is allowed).
pub(crate) fn is_version(text: &str) -> bool {
    semver::Version::parse(text).is_ok()
}

/// Returns the highest of these versions that a pattern selects: absent, `1`, `1.2` or `1.2.3`.
pub(crate) fn select_version<'v>(
    versions: impl Iterator<Item = &'v str>,
    pattern: Option<&str>,
) -> Option<&'v str> {
    let fits = |version: &str| match pattern.map(str::trim) {
        None | Some("") => true,
        Some(pattern) => {
            version == pattern
                || version
                    .strip_prefix(pattern)
                    // `1` selects `1.2.3`, but not `10.0.0`. A pre-release is selected by its
                    // complete version only.
                    .is_some_and(|rest| rest.starts_with('.') && !pattern.contains(['-', '+']))
        }
    };
    versions
        .filter(|v| fits(v))
        .max_by_key(|v| semver::Version::parse(v).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_of_lines_ascend_and_differ_by_all_that_identifies_a_line() {
        let load = LineUuids::of(String::from("key"));
        let numbers = [1, 2, 255, 256, 65_536, u64::from(u32::MAX)];
        let uuids: Vec<String> = numbers.map(|number| load.of_line(number, "text")).into();
        assert!(uuids.is_sorted() && uuids.iter().all(|uuid| is_uuid(uuid)));
        let again = LineUuids::of(String::from("key")).of_line(1, "text");
        assert_eq!(uuids.first(), Some(&again));
        let others = [
            load.of_line(1, "other"),
            LineUuids::of(String::from("other")).of_line(1, "text"),
            uuid_beside(&again).unwrap(),
        ];
        assert!(others.iter().all(|other| *other != again && is_uuid(other)));
        assert_eq!(others[2].get(..13), again.get(..13));
        assert_eq!(uuid_beside("x").map_err(|f| f.status), Err(500));
    }

    #[test]
    fn version_uids_have_three_parts() {
        let uid = "8849182c-82ad-4088-a07f-48ead4180515::cdr.example.org::2";
        assert_eq!(VersionUid::parse(uid).unwrap().to_string(), uid);
        assert_eq!(
            VersionUid::parse(uid)
                .unwrap()
                .next("here")
                .unwrap()
                .to_string(),
            "8849182c-82ad-4088-a07f-48ead4180515::here::3"
        );
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
    fn the_highest_version_number_has_no_successor() {
        let numbered = |number: u64| format!("8849182c-82ad-4088-a07f-48ead4180515::a::{number}");
        let last = VersionUid::parse(&numbered(4_294_967_295)).unwrap();
        assert_eq!(last.next("a").map_err(|f| f.status), Err(409));
        assert_eq!(
            VersionUid::parse(&numbered(4_294_967_294))
                .unwrap()
                .next("a")
                .unwrap(),
            last
        );
        assert_eq!(VersionUid::parse(&numbered(4_294_967_296)), None);
    }

    #[test]
    fn a_version_follows_an_earlier_one_of_its_object() {
        let uid = |object: char, number: u32| {
            VersionUid::parse(&format!(
                "{object}849182c-82ad-4088-a07f-48ead4180515::s::{number}"
            ))
            .unwrap()
        };
        assert!(uid('a', 3).check_follows(&uid('a', 1)).is_ok());
        for (own, preceding) in [
            (uid('a', 2), uid('b', 1)),
            (uid('a', 2), uid('a', 2)),
            (uid('a', 2), uid('a', 3)),
        ] {
            assert_eq!(
                own.check_follows(&preceding).map_err(|f| f.status),
                Err(400),
                "{own} behind {preceding}"
            );
        }
    }

    #[test]
    fn system_ids_that_no_entity_tag_can_carry_are_refused() {
        let longest = "s".repeat(MAX_SYSTEM_ID);
        for system in ["cdr.example.org", "1.2.840.113619", "a_b:c/d", &longest] {
            assert!(check_system_id(system).is_ok(), "{system}");
        }
        for system in [
            "",
            "a b",
            "a\"b",
            "ü.example",
            "a\tb",
            &format!("{longest}s"),
        ] {
            assert_eq!(
                check_system_id(system).map_err(|f| f.status),
                Err(400),
                "{system}"
            );
        }
    }

    #[test]
    fn names_that_no_path_can_carry_are_refused() {
        let long = "a".repeat(MAX_ID + 1);
        for name in ["", ".", "..", "a\tb", "\u{7f}", "line\n", &long] {
            assert_eq!(
                check_addressable("template", name).map_err(|f| f.status),
                Err(400),
                "{name:?}"
            );
        }
        for name in ["...", "a.b", "a/b", "%2e%2e", "Ärztin", " ", ".hidden"] {
            assert!(check_addressable("template", name).is_ok(), "{name:?}");
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
