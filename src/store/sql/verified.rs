//! Versions that this instance has verified: it has written their rows, or compared them with their
//! checksums.
//!
//! An update must not follow an altered version, so it reads its predecessor first. The database
//! cannot compute a checksum, but it can compare a row with a text. The next version of a known one
//! is therefore committed without a read: the commit names the row as a precondition.

use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::NodeRef;
use crate::store::cache::Cache;
use crate::store::repository::{VerifiedVersion, Version, VersionMetadata};
use std::cell::RefCell;
use std::rc::Rc;

/// The maximum bytes of the versions in memory.
const MAX_VERIFIED: usize = 2_000_000;
/// The maximum bytes of the document of one of them. Longer ones are read again.
const MAX_DOCUMENT: usize = 20_000;
/// The approximate bytes of an entry beside its row.
const ENTRY: usize = 500;

/// The row of a version as one text, as [`row_text`] makes it. Only the template and the document
/// may have any text, and no template id has a line break.
macro_rules! verified_row {
    ($version:literal) => {
        concat!(
            $version,
            ".kind || char(10) || ",
            $version,
            ".lifecycle || char(10) || coalesce(",
            $version,
            ".template, '') || char(10) || ",
            $version,
            ".time_committed || char(10) || ",
            $version,
            ".chunks || char(10) || ",
            $version,
            ".shapes || char(10) || ",
            $version,
            ".digest || char(10) || ",
            $version,
            ".document"
        )
    };
}
pub(super) use verified_row;

/// The columns of the row of a short document that a version does not have.
pub(super) struct StoredColumns {
    /// The ids of its layouts as a JSON list.
    layouts: String,
    /// Its checksum.
    checksum: String,
    /// Its document.
    document: String,
}

impl StoredColumns {
    /// Copies the columns, unless the document is too long to stay in memory or has more `chunks`
    /// than the first.
    pub(super) fn of(
        layouts: &str,
        checksum: &str,
        document: &str,
        chunks: u64,
    ) -> Option<StoredColumns> {
        (chunks == 0 && document.len() <= MAX_DOCUMENT).then(|| StoredColumns {
            layouts: layouts.to_owned(),
            checksum: checksum.to_owned(),
            document: document.to_owned(),
        })
    }
}

/// The verified versions that were used last, by uid.
pub(super) struct VerifiedVersions(RefCell<Cache<String, KnownVersion>>);

/// A version with its EHR.
struct KnownVersion {
    ehr_id: String,
    version: VerifiedVersion,
}

impl Default for VerifiedVersions {
    fn default() -> VerifiedVersions {
        VerifiedVersions(RefCell::new(Cache::new(MAX_VERIFIED)))
    }
}

impl VerifiedVersions {
    /// Adds a version, unless it is a deletion. It replaces its predecessor, which no commit can
    /// follow any more.
    pub(super) fn add(&self, version: &Version, columns: &StoredColumns) {
        let is_ambiguous = |id: &String| id.contains('\n');
        if version.is_deletion() || version.template_id.as_ref().is_some_and(is_ambiguous) {
            return;
        }
        let known = KnownVersion {
            ehr_id: version.ehr_id.clone(),
            version: VerifiedVersion {
                metadata: VersionMetadata {
                    kind: version.kind,
                    version_uid: version.version_uid.clone(),
                    number: version.number,
                    time_committed: version.time_committed.clone(),
                    lifecycle: version.lifecycle.clone(),
                    template_id: version.template_id.clone(),
                    bytes: columns.document.len(),
                },
                party: party_of(version),
                row: Rc::from(row_text(version, columns)),
            },
        };
        let mut versions = self.0.borrow_mut();
        if let Some(preceding) = &version.preceding {
            versions.remove(preceding);
        }
        let bytes = ENTRY + known.version.row.len();
        versions.insert(version.version_uid.clone(), Rc::new(known), bytes);
    }

    /// Returns a version of this EHR.
    pub(super) fn get(&self, ehr_id: &str, version_uid: &str) -> Option<VerifiedVersion> {
        let known = self.0.borrow_mut().get(&version_uid.to_owned())?;
        (known.ehr_id == ehr_id).then(|| known.version.clone())
    }

    /// Removes everything: after a physical deletion, no document stays in memory.
    pub(super) fn clear(&self) {
        self.0.borrow_mut().clear();
    }
}

/// Returns the class of the data of a party. Only its document determines it.
fn party_of(version: &Version) -> Option<Cls> {
    if version.kind != ObjectKind::Party {
        return None;
    }
    let tree = version.packed.unpack();
    let data = tree.root().and_then(|root| root.get(Attr::DATA));
    data.map(NodeRef::class)
}

/// Returns the text of [`verified_row`] for a version.
fn row_text(version: &Version, columns: &StoredColumns) -> String {
    let StoredColumns {
        layouts,
        checksum,
        document,
    } = columns;
    // The 0 is the number of chunks after the first.
    format!(
        "{}\n{}\n{}\n{}\n0\n{layouts}\n{checksum}\n{document}",
        version.kind.number(),
        version.lifecycle,
        version.template_id.as_deref().unwrap_or_default(),
        version.time_committed,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{LayoutStore, NothingKnown, pack};
    use crate::rm::json;

    fn version(number: u32, lifecycle: &str) -> Version {
        let tree = json::read(r#"{"_type":"DV_TEXT","value":"a"}"#, Cls::DV_TEXT).unwrap();
        Version {
            ehr_id: "e".into(),
            kind: ObjectKind::Composition,
            object_id: "o".into(),
            version_uid: format!("o::s::{number}"),
            number,
            preceding: (number > 1).then(|| format!("o::s::{}", number - 1)),
            contribution: "c".into(),
            time_committed: "t".into(),
            lifecycle: lifecycle.into(),
            template_id: None,
            packed: pack(tree.root().unwrap(), &NothingKnown, &LayoutStore::new()),
            tags: Vec::new(),
        }
    }

    fn columns(document: &str) -> StoredColumns {
        StoredColumns::of("[1]", "d", document, 0).unwrap()
    }

    #[test]
    fn version_replaces_the_one_that_it_follows() {
        let known = VerifiedVersions::default();
        known.add(&version(1, "532"), &columns("x"));
        known.add(&version(2, "532"), &columns("y"));
        assert_eq!(known.get("e", "o::s::1"), None);
        assert_eq!(known.get("other", "o::s::2"), None);
        let found = known.get("e", "o::s::2").unwrap();
        assert_eq!(&*found.row, "1\n532\n\nt\n0\n[1]\nd\ny");
        known.clear();
        assert_eq!(known.get("e", "o::s::2"), None);
    }

    #[test]
    fn deletions_and_long_documents_are_not_kept() {
        let known = VerifiedVersions::default();
        known.add(&version(2, "523"), &columns("x"));
        assert_eq!(known.get("e", "o::s::2"), None);
        let long = "x".repeat(MAX_DOCUMENT + 1);
        assert!(StoredColumns::of("[1]", "d", &long, 0).is_none());
        assert!(StoredColumns::of("[1]", "d", "x", 1).is_none());
    }

    #[test]
    fn memory_is_bounded_and_the_least_recently_used_version_is_evicted() {
        let known = VerifiedVersions::default();
        let text = "x".repeat(MAX_DOCUMENT);
        for number in (1..=2_000).step_by(2) {
            known.add(&version(number, "532"), &columns(&text));
            known.get("e", "o::s::1");
        }
        let (counted, summed) = known.0.borrow().weights();
        assert!(counted <= MAX_VERIFIED);
        assert_eq!(counted, summed);
        assert!(known.get("e", "o::s::1").is_some());
        assert!(known.get("e", "o::s::3").is_none());
        assert!(known.get("e", "o::s::1999").is_some());
    }
}
