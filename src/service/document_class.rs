//! The classes of change-controlled documents, and their names in URLs and errors.

use super::error::Failure;
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::store::repository::{BoundedVersion, VerifiedVersion, Version};

/// A class of documents with its own URLs.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Controlled {
    /// The kind of the stored object.
    pub kind: ObjectKind,
    /// The class of the document, or a superclass.
    pub class: Cls,
    /// The segment in paths.
    pub segment: &'static str,
    /// The name in errors.
    pub name: &'static str,
    /// Whether an EHR has at most one, so that paths need not name it.
    pub single: bool,
}

const fn party(class: Cls, segment: &'static str) -> Controlled {
    Controlled {
        kind: ObjectKind::Party,
        class,
        segment,
        name: segment,
        single: false,
    }
}

#[rustfmt::skip]
mod kinds {
    use super::{Cls, Controlled, ObjectKind, party};
    pub(crate) static COMPOSITION: Controlled = Controlled { kind: ObjectKind::Composition, class: Cls::COMPOSITION, segment: "composition", name: "composition", single: false };
    pub(crate) static EHR_STATUS: Controlled = Controlled { kind: ObjectKind::EhrStatus, class: Cls::EHR_STATUS, segment: "ehr_status", name: "EHR_STATUS", single: true };
    pub(crate) static DIRECTORY: Controlled = Controlled { kind: ObjectKind::Folder, class: Cls::FOLDER, segment: "directory", name: "directory", single: true };
    pub(crate) static AGENT: Controlled = party(Cls::AGENT, "agent");
    pub(crate) static GROUP: Controlled = party(Cls::GROUP, "group");
    pub(crate) static ORGANISATION: Controlled = party(Cls::ORGANISATION, "organisation");
    pub(crate) static PERSON: Controlled = party(Cls::PERSON, "person");
    pub(crate) static ROLE: Controlled = party(Cls::ROLE, "role");
    pub(crate) static PARTY: Controlled = party(Cls::PARTY, "party");
}
pub(crate) use kinds::*;

impl Controlled {
    /// Like [`Controlled::is_of`], for a version whose document may not have been read: then every
    /// party matches.
    pub fn may_be(&self, found: &BoundedVersion) -> bool {
        match found {
            BoundedVersion::Complete(version) => self.is_of(version),
            BoundedVersion::Large(large) => large.head.kind == self.kind,
        }
    }

    /// Like [`Controlled::is_of`], for a version that is no deletion and whose document is not at
    /// hand.
    pub fn is_of_verified(&self, version: &VerifiedVersion) -> bool {
        let of_class = || version.party.is_some_and(|class| class.is_a(self.class));
        version.metadata.kind == self.kind && (self.kind != ObjectKind::Party || of_class())
    }

    /// Returns whether a version belongs to this class. A deleted party has no document, so its
    /// class is unknown.
    pub fn is_of(&self, version: &Version) -> bool {
        let of_class = || {
            version
                .packed
                .unpack()
                .root()
                .and_then(|v| v.get(Attr::DATA))
                .is_none_or(|data| data.class().is_a(self.class))
        };
        version.kind == self.kind && (self.kind != ObjectKind::Party || of_class())
    }
}

/// Returns the kind of object of a class of documents.
pub(crate) fn kind_of(class: Cls) -> Result<ObjectKind, Failure> {
    match class {
        Cls::COMPOSITION => Ok(ObjectKind::Composition),
        Cls::EHR_STATUS => Ok(ObjectKind::EhrStatus),
        Cls::FOLDER => Ok(ObjectKind::Folder),
        party if party.is_a(Cls::PARTY) => Ok(ObjectKind::Party),
        other => Err(Failure::bad_request(format!(
            "a {other} cannot be committed: expected COMPOSITION, EHR_STATUS, FOLDER or a party"
        ))),
    }
}
