//! Identifiers: version uids, archetype ids, node codes, and the lexical rules of BASE for UIDs.

use std::fmt;

/// An OBJECT_VERSION_ID: `object::creating system::version tree`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ObjectVersionId {
    /// The id of the versioned object.
    pub object_id: String,
    /// The system that created the version.
    pub system_id: String,
    /// The version number.
    pub version: VersionTreeId,
}

/// A VERSION_TREE_ID: the trunk version, and for branches the branch number and its version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct VersionTreeId {
    /// The trunk version, from 1.
    pub trunk: u32,
    /// Branch number and version on the branch.
    pub branch: Option<(u32, u32)>,
}

/// An archetype id: `openEHR-EHR-OBSERVATION.blood_pressure-device.v2.0.1`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArchetypeId<'a> {
    /// The publisher and RM package: `openEHR`, or with a namespace `org.example::openEHR`.
    pub originator: &'a str,
    /// The RM model: `EHR`, `DEMOGRAPHIC`
    pub model: &'a str,
    /// The RM class: `OBSERVATION`.
    pub class: &'a str,
    /// The concept with its specializations: `blood_pressure-device`.
    pub concept: &'a str,
    /// The version without the `v`: `2` or `2.0.1`, with any release state (`0.0.1-alpha`).
    pub version: &'a str,
}

impl ObjectVersionId {
    /// Parses the three parts. Returns `None` if a part is missing or malformed.
    pub fn parse(text: &str) -> Option<ObjectVersionId> {
        let mut parts = text.split("::");
        let (object, system, version) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || !is_uid(object) || !is_uid(system) {
            return None;
        }
        Some(ObjectVersionId {
            object_id: object.to_owned(),
            system_id: system.to_owned(),
            version: VersionTreeId::parse(version)?,
        })
    }
}

/// Returns the id of the object that the uid of a version names: the part before the first `::`. The
/// id of an object names itself.
///
/// ```
/// use aqlite_rm::id::object_id_of;
///
/// assert_eq!(object_id_of("a::example.org::2"), "a");
/// assert_eq!(object_id_of("a"), "a");
/// ```
pub fn object_id_of(uid: &str) -> &str {
    uid.split_once("::").map_or(uid, |(object, _)| object)
}

impl fmt::Display for ObjectVersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}::{}::{}",
            self.object_id, self.system_id, self.version
        )
    }
}

impl VersionTreeId {
    /// Parses `3` or `3.1.2`. Numbers start at 1.
    pub fn parse(text: &str) -> Option<VersionTreeId> {
        let mut parts = text.split('.').map(|p| {
            is_number(p)
                .then(|| p.parse::<u32>().ok())
                .flatten()
                .filter(|n| *n > 0)
        });
        let trunk = parts.next()??;
        let branch = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => None,
            (Some(branch), Some(version), None) => Some((branch?, version?)),
            _ => return None,
        };
        Some(VersionTreeId { trunk, branch })
    }

    /// Returns whether this is version 1 of the trunk.
    pub fn is_first(self) -> bool {
        self.trunk == 1 && self.branch.is_none()
    }

    /// Returns the next version on the trunk.
    pub fn next(self) -> VersionTreeId {
        VersionTreeId {
            trunk: self.trunk.saturating_add(1),
            branch: None,
        }
    }
}

impl fmt::Display for VersionTreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.branch {
            None => write!(f, "{}", self.trunk),
            Some((branch, version)) => write!(f, "{}.{branch}.{version}", self.trunk),
        }
    }
}

impl<'a> ArchetypeId<'a> {
    /// Parses an archetype id. Returns `None` if the text has another form.
    pub fn parse(text: &'a str) -> Option<ArchetypeId<'a>> {
        // Most node ids are codes such as `at0004`. They have no hyphen, and this test ends early
        // for them.
        if !text.contains('-') {
            return None;
        }
        let namespaced = if text.contains(':') {
            text.rsplit_once("::")
        } else {
            None
        };
        let (entity, rest) = match namespaced {
            Some((namespace, id)) => {
                // The namespace has dots of its own, so the entity ends at the first dot after it.
                let (entity, rest) = id.split_once('.')?;
                (text.get(..namespace.len() + 2 + entity.len())?, rest)
            }
            None => text.split_once('.')?,
        };
        let (concept, version) = rest.split_once(".v")?;
        // The originator may contain hyphens, so model and class are split from the right.
        let (front, class) = entity.rsplit_once('-')?;
        let (originator, model) = front.rsplit_once('-')?;
        let named = !originator.is_empty() && is_word(model) && is_word(class);
        let concept_fits = !concept.is_empty()
            && concept.split('-').all(|part| {
                !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_')
            });
        (named && concept_fits && is_version(version)).then_some(ArchetypeId {
            originator,
            model,
            class,
            concept,
            version,
        })
    }

    /// Returns the major version: `2` of `v2.0.1`.
    pub fn major(self) -> &'a str {
        self.version
            .split(['.', '-', '+'])
            .next()
            .unwrap_or_default()
    }

    /// Returns whether data of archetype `data` conform to this archetype: it is the same or a
    /// specialization.
    ///
    /// Class and major version must be equal, and the concept of the data must be this concept, or
    /// begin with it and a `-`. `v1` matches every `v1.x.y`. An id with minor and patch version
    /// matches exactly that archetype, without specializations.
    pub fn subsumes(self, data: ArchetypeId<'_>) -> bool {
        if self.version != self.major() {
            return self == data;
        }
        let entity =
            (self.originator, self.model, self.class) == (data.originator, data.model, data.class);
        let rest = data.concept.strip_prefix(self.concept);
        entity
            && self.major() == data.major()
            // The hyphen prevents that `lab` subsumes `laboratory`.
            && rest.is_some_and(|r| r.is_empty() || r.starts_with('-'))
    }
}

/// Returns whether `asked` and `data` are archetype ids, and `data` is the same archetype or a
/// specialization of it (see [`ArchetypeId::subsumes`]).
///
/// ```
/// use aqlite_rm::id::archetype_id_subsumes;
///
/// let asked = "openEHR-EHR-OBSERVATION.laboratory_test.v1";
/// assert!(archetype_id_subsumes(asked, "openEHR-EHR-OBSERVATION.laboratory_test-cbc.v1.0.2"));
/// assert!(!archetype_id_subsumes(asked, "openEHR-EHR-OBSERVATION.laboratory_test.v2"));
/// ```
pub fn archetype_id_subsumes(asked: &str, data: &str) -> bool {
    // The id of a specialization begins with entity and concept of its parent, which end before a
    // `.v`. Most other ids differ in them, and a comparison takes a tenth of the time of parsing.
    let front = asked.find(".v").and_then(|end| asked.get(..end));
    front.is_some_and(|front| data.starts_with(front))
        && ArchetypeId::parse(asked)
            .zip(ArchetypeId::parse(data))
            .is_some_and(|(asked, data)| asked.subsumes(data))
}

/// Returns whether a text has the form of an archetype id.
pub fn is_archetype_id(text: &str) -> bool {
    ArchetypeId::parse(text).is_some()
}

/// Returns whether a text is a node code of ADL 1.4 or 2: `at0004`, `at0004.1`, `id5.0.1`,
/// `ac0001`.
pub fn is_node_code(text: &str) -> bool {
    let digits = ["at", "id", "ac"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    digits.is_some_and(|d| d.split('.').all(is_number))
}

/// Returns whether node code `data` is `code` or a specialization of it: `at0004.1` of `at0004`.
pub fn node_code_subsumes(code: &str, data: &str) -> bool {
    data.strip_prefix(code)
        // The dot prevents that `at0004` subsumes `at00041`.
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns whether a text is a HIER_OBJECT_ID: a UID with an optional extension after `::`.
pub fn is_hier_object_id(text: &str) -> bool {
    let (root, extension) = text
        .split_once("::")
        .map_or((text, None), |(root, extension)| (root, Some(extension)));
    is_uid(root) && extension.is_none_or(|e| !e.is_empty())
}

/// Returns whether a text is a UUID, an ISO OID or an internet id.
pub fn is_uid(text: &str) -> bool {
    is_uuid(text) || is_oid(text) || is_internet_id(text)
}

/// Returns whether a text is a UUID in the form of 8-4-4-4-12 hexadecimal digits.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

/// Returns whether a text is an ISO OID: numbers without leading zeros, separated by dots.
pub fn is_oid(text: &str) -> bool {
    text.contains('.')
        && text
            .split('.')
            .all(|part| is_number(part) && (part == "0" || !part.starts_with('0')))
}

/// Returns whether a text is a reversed internet domain: parts of letters, digits, `_` and `-`
/// separated by dots, starting with a letter.
pub fn is_internet_id(text: &str) -> bool {
    let part = |p: &str| {
        p.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            && p.starts_with(|c: char| c.is_ascii_alphanumeric())
    };
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.split('.').all(part)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic())
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns whether a text is a version: `1`, `1.0.2`, with an optional release state such as
/// `-alpha.3`, or the older form `1draft`.
fn is_version(text: &str) -> bool {
    let (numbers, state) = text
        .split_once(['-', '+'])
        .map_or((text, None), |(n, s)| (n, Some(s)));
    let numbers = numbers.strip_suffix("draft").unwrap_or(numbers);
    numbers.split('.').count() <= 3
        && numbers.split('.').all(is_number)
        && state.is_none_or(|s| {
            !s.is_empty()
                && s.chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_uids_have_three_parts() {
        let uid = "8849182c-82ad-4088-a07f-48ead4180515::aqlite.local::2";
        let id = ObjectVersionId::parse(uid).unwrap();
        assert_eq!(
            (
                id.to_string().as_str(),
                id.version.next().to_string().as_str()
            ),
            (uid, "3")
        );
        assert_eq!(VersionTreeId::parse("1.2.3").unwrap().branch, Some((2, 3)));
        for text in [
            "8849182c-82ad-4088-a07f-48ead4180515",
            "a::b",
            "a::b::c",
            "a::b::1.2",
            "a::b::0",
            "a::b::1::x",
            "::b::1",
            "a b::c::1",
        ] {
            assert_eq!(ObjectVersionId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn subsumption_requires_equal_class_and_major_version() {
        let subsumes = |query: &str, data: &str| {
            let id = |id: &str| format!("openEHR-EHR-OBSERVATION.{id}");
            let (query, data) = (id(query), id(data));
            assert!(is_archetype_id(&query) && is_archetype_id(&data));
            let is_parent = archetype_id_subsumes(&query, &data);
            let of = |id: &str| format!("org.vendor::{id}");
            assert_eq!(archetype_id_subsumes(&of(&query), &of(&data)), is_parent);
            assert!(!archetype_id_subsumes(&of(&query), &data));
            is_parent
        };
        for data in [
            "laboratory_test.v1",
            "laboratory_test-cbc.v1",
            "laboratory_test.v1.2.0",
            "laboratory_test-a-b.v1.0.0-alpha",
        ] {
            assert!(subsumes("laboratory_test.v1", data), "{data}");
        }
        for data in [
            "laboratory_test-cbc.v2",
            "laboratory_testing.v1",
            "laboratory.v1",
            "laboratory_test.v11",
        ] {
            assert!(!subsumes("laboratory_test.v1", data), "{data}");
        }
        assert!(
            subsumes("a.v1.2.0", "a.v1.2.0")
                && !subsumes("a.v1.2.0", "a.v1.2.1")
                && !subsumes("a-b.v1", "a.v1")
        );
        assert!(
            !subsumes("a.v1.2.0", "a-b.v1.2.0")
                && !subsumes("a.v1.2.0", "a.v1")
                && !subsumes("a.v1.2.0-rc.1", "a.v1.2.0")
        );
    }

    #[test]
    fn archetype_ids_and_node_codes_are_recognized() {
        let ids = [
            "openEHR-EHR-COMPOSITION.report.v1",
            "openEHR-EHR-CLUSTER.a-b.v0.0.1-alpha",
            "org.openehr::openEHR-EHR-CLUSTER.x.v1",
            "openEHR-EHR-CLUSTER.x.v1draft",
        ];
        ids.iter()
            .for_each(|id| assert!(is_archetype_id(id), "{id}"));
        let others = [
            "at0001",
            "openEHR-EHR-CLUSTER.x",
            "openEHR-EHR-CLUSTER..v1",
            "openEHR-EHR-CLUSTER.x.vx",
            "EHR-CLUSTER.x.v1",
            "openEHR-EHR-CLUSTER.x y.v1",
            "",
        ];
        others
            .iter()
            .for_each(|id| assert!(!is_archetype_id(id), "{id}"));
        ["at0004", "at0004.1", "id5.0.1", "ac1"]
            .iter()
            .for_each(|c| assert!(is_node_code(c), "{c}"));
        ["at", "at0004.", "AT0001", "at00x1", "local", ""]
            .iter()
            .for_each(|c| assert!(!is_node_code(c), "{c}"));
        assert!(
            node_code_subsumes("at0004", "at0004.1") && !node_code_subsumes("at0004", "at00041")
        );
    }

    #[test]
    fn uids_are_uuids_oids_or_internet_ids() {
        assert!(
            is_uuid("8849182c-82ad-4088-a07f-48ead4180515")
                && !is_uuid("8849182c-82ad-4088-a07f-48ead418051g")
        );
        assert!(is_oid("1.2.840.113619") && !is_oid("1.02") && !is_oid("1"));
        assert!(
            is_internet_id("org.openehr") && !is_internet_id("1abc") && !is_internet_id("a..b")
        );
        assert!(is_hier_object_id("org.openehr::x") && !is_hier_object_id("org.openehr::"));
    }
}
