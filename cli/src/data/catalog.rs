//! The catalog of a data set: everything about it beside the columns of its segments.

use crate::printable::printable;
use bitcode::{Decode, Encode};
use std::collections::HashMap;
use twox_hash::XxHash64;

/// An EHR of a data set.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct EhrFacts {
    /// EHR.ehr_id.value.
    pub ehr_id: String,
    /// Its number in segments: [`ehr_number`].
    pub number: u64,
    /// The ordinal of its first document.
    pub first: u64,
    /// Whether population queries read it, as its newest EHR_STATUS says.
    pub is_queryable: bool,
    /// Whether the data have an EHR_STATUS of it.
    pub has_status: bool,
    /// Id and namespace of the patient, from a mapping file.
    pub subject: Option<(String, String)>,
}

/// A version of an object, to find those that a later one supersedes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct VersionFacts {
    /// The hash of the id of the object.
    pub object: u128,
    /// The number of the EHR.
    pub ehr: u64,
    /// The number of the version.
    pub number: u32,
    /// The ordinal of the document.
    pub ordinal: u64,
    /// Whether a second version of the same number is an error: not of an EHR_STATUS.
    pub is_unique: bool,
}

/// A problem of a file.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct FileProblem {
    /// The path of the file as the arguments name it.
    pub path: String,
    /// The line from 1; 0 where none is known.
    pub line: u32,
    /// `error` or `warning`.
    pub severity: String,
    /// A stable code such as `RM0102`.
    pub code: String,
    /// The message with the path in the document.
    pub message: String,
}

/// The code of a file or folder that the system does not let be read.
pub const UNREADABLE: &str = "CLI0001";

impl FileProblem {
    /// Returns whether a document or a template was not read.
    pub fn is_error(&self) -> bool {
        self.severity == "error"
    }
}

impl std::fmt::Display for FileProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", printable(&self.path))?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        let message = printable(&self.message);
        write!(f, ": {}[{}]: {message}", self.severity, self.code)
    }
}

/// The places of documents that contradict others, as `path` or `path:line`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub struct Conflicts {
    /// The first document with a version that an earlier one has.
    pub repeated: Option<String>,
    /// The first document of an object that belongs to another EHR by an earlier one.
    pub foreign: Option<String>,
    /// The number of the latter documents.
    pub foreign_documents: u64,
}

/// A segment of the data set.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct SegmentFacts {
    /// The place of the head.
    pub head: Place,
    /// The places of the values with the parts.
    pub values: Vec<Place>,
    /// The number of documents.
    pub documents: u32,
}

/// A range of bytes in an index file, or in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Place {
    /// The first byte.
    pub start: u64,
    /// The number of bytes.
    pub length: u64,
}

/// The catalog of a data set.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub struct Catalog {
    /// EHRs in the order of their first documents.
    pub ehrs: Vec<EhrFacts>,
    /// The segments in the order of their documents.
    pub segments: Vec<SegmentFacts>,
    /// The ordinals of versions that have a later one, ascending.
    pub superseded: Vec<u64>,
    /// The ordinals of versions that occur twice, ascending. No query reads them.
    pub repeated: Vec<u64>,
    /// The places of the first version that occurs twice, and of the first one of an object that also
    /// has versions in another EHR.
    pub conflicts: Conflicts,
    /// The problems of files, in the order of the files.
    pub problems: Vec<FileProblem>,
    /// EHR.time_created of all EHRs: the oldest file.
    pub created: String,
    /// The number of documents that were read from files.
    pub documents: u64,
    /// The indices of the files that are templates.
    pub templates: Vec<u32>,
}

/// Returns the number of an EHR in segments: a hash, so that threads need not agree on numbers.
pub fn ehr_number(ehr_id: &str) -> u64 {
    XxHash64::oneshot(0, ehr_id.as_bytes())
}

/// Returns the hash of the id of an object. 128 bits never collide in practice.
pub fn object_hash(object_id: &str) -> u128 {
    let (high, low) = (
        XxHash64::oneshot(1, object_id.as_bytes()),
        XxHash64::oneshot(2, object_id.as_bytes()),
    );
    u128::from(high) << 64 | u128::from(low)
}

/// The versions that are not the newest ones of their objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Precedence {
    /// The ordinals of versions with a later one, ascending. Repeated ones are among them.
    pub superseded: Vec<u64>,
    /// The ordinals of versions that occur twice, ascending.
    pub repeated: Vec<u64>,
    /// The ordinals of versions whose object has an earlier document of another EHR, ascending.
    pub foreign: Vec<u64>,
}

impl Precedence {
    /// Determines the newest version of each object. `versions` are in ascending order of ordinals.
    pub fn of(versions: &[VersionFacts]) -> Precedence {
        let mut newest: HashMap<u128, VersionFacts> = HashMap::with_capacity(versions.len());
        let mut seen: HashMap<u128, Vec<u32>> = HashMap::new();
        let mut found = Precedence::default();
        for version in versions {
            let Some(other) = newest.get_mut(&version.object) else {
                newest.insert(version.object, *version);
                continue;
            };
            if version.ehr != other.ehr {
                found.foreign.push(version.ordinal);
            }
            let numbers = seen
                .entry(version.object)
                .or_insert_with(|| vec![other.number]);
            if version.is_unique && numbers.contains(&version.number) {
                found.repeated.push(version.ordinal);
                found.superseded.push(version.ordinal);
                continue;
            }
            numbers.push(version.number);
            if version.number >= other.number {
                found.superseded.push(other.ordinal);
                *other = *version;
            } else {
                found.superseded.push(version.ordinal);
            }
        }
        found.superseded.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Precedence, VersionFacts};

    #[test]
    fn newest_version_of_an_object_has_the_greatest_number() {
        let version = |object, number, ordinal, is_unique| VersionFacts {
            object,
            ehr: u64::from(ordinal > 4),
            number,
            ordinal,
            is_unique,
        };
        let found = Precedence::of(&[
            version(1, 2, 1, true),
            version(1, 1, 2, true),
            version(1, 3, 3, true),
            version(1, 2, 4, true),
            version(2, 1, 5, true),
            version(3, 1, 6, false),
            version(3, 1, 7, false),
            version(1, 4, 8, true),
        ]);
        assert_eq!(found.superseded, [1, 2, 3, 4, 6]);
        assert_eq!(found.repeated, [4]);
        assert_eq!(found.foreign, [8], "the last document is of another EHR");
    }
}
