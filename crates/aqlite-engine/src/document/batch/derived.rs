//! Objects that are derived from all documents of an EHR: its lists of references, and its
//! versioned objects.
//!
//! Both are fragments in tables of their own, whose numbers begin at [`DERIVED`]. They are computed
//! when a query first needs them, and discarded by every change. A batch without old versions lacks
//! the objects that only occur in old versions.

use super::{Batch, Doc, Fragment, ObjectKind};
use crate::document::pack::pack;
use crate::document::rule::NothingKnown;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::tree::{Kind, NodeId, Tree};
use std::collections::HashMap;

/// The number of the first table of derived objects.
pub(super) const DERIVED: u32 = 1 << 31;

/// The invariant that does not hold if a document has no object id.
const NO_OBJECT_ID: &str = "a document has no object id";

/// A VERSIONED_OBJECT and its versions.
#[derive(Debug)]
pub struct VersionedObject {
    /// The fragment of the VERSIONED_OBJECT. Its table stores the first version as its document.
    pub fragment: Fragment,
    /// The documents of its versions, oldest first.
    pub docs: Vec<u32>,
}

/// The derived fragments of a batch.
#[derive(Debug)]
pub(super) struct Derived {
    pub batch: Batch,
    /// The fragment with the references of each EHR.
    references: Vec<Option<Fragment>>,
    /// The versioned objects of each EHR, in order of creation.
    versioned_objects: Vec<Vec<VersionedObject>>,
}

impl Batch {
    /// Returns the object with the references of an EHR: its attributes `contributions`,
    /// `directory`, `folders` and `compositions`.
    pub fn references(&self, ehr: u32) -> Option<Fragment> {
        self.derived()
            .references
            .get(ehr as usize)
            .copied()
            .flatten()
    }

    /// Returns the versioned objects of an EHR, in order of creation.
    pub fn versioned_objects(&self, ehr: u32) -> &[VersionedObject] {
        self.derived()
            .versioned_objects
            .get(ehr as usize)
            .map_or(&[], Vec::as_slice)
    }

    fn derived(&self) -> &Derived {
        self.derived.get_or_init(|| Box::new(self.derive()))
    }

    fn derive(&self) -> Derived {
        let mut derived = Derived {
            batch: Batch {
                base: DERIVED,
                ..Batch::default()
            },
            references: Vec::new(),
            versioned_objects: Vec::new(),
        };
        for ehr in 0..self.ehrs.len() as u32 {
            // A removed EHR keeps its index, because the lists are indexed by number.
            let exists = self.has_ehr(ehr);
            let objects = if exists {
                self.objects_of(ehr)
            } else {
                Some(Vec::new())
            };
            let Some(objects) = objects else {
                derived.batch.broken = Some(NO_OBJECT_ID);
                return derived;
            };
            let references = exists.then(|| self.references_tree(ehr, &objects));
            if references.as_ref().is_some_and(Option::is_none) {
                derived.batch.broken = Some(NO_OBJECT_ID);
            }
            let references = references.flatten();
            let references = references.and_then(|tree| derived.batch.add_tree(ehr, &tree));
            derived.references.push(references);
            let versioned_objects = self.versioned_objects_of(ehr, objects, &mut derived.batch);
            derived.versioned_objects.push(versioned_objects);
        }
        derived
    }

    /// Adds the versioned objects of an EHR to `batch`. `objects` has the documents of each of
    /// them.
    fn versioned_objects_of(
        &self,
        ehr: u32,
        objects: Vec<Vec<u32>>,
        batch: &mut Batch,
    ) -> Vec<VersionedObject> {
        let Some(owner) = self.ehr_id(ehr) else {
            batch.broken = Some("an EHR has no id");
            return Vec::new();
        };
        let mut versioned_objects = Vec::with_capacity(objects.len());
        for docs in objects {
            let first = docs.first().copied();
            let number = first.and_then(|number| Some((number, self.doc(number)?)));
            let tree = number.and_then(|(number, doc)| {
                let tree = self.container_tree(number, doc, owner)?;
                batch.add_tree(number, &tree)
            });
            match tree {
                Some(fragment) => versioned_objects.push(VersionedObject { fragment, docs }),
                None => batch.broken = Some("an object has no version, no time or no id"),
            }
        }
        versioned_objects
    }

    fn add_tree(&mut self, doc: u32, tree: &Tree) -> Option<Fragment> {
        let packed = pack(tree.root()?, &NothingKnown, &self.layouts);
        Some(self.add_root(doc, &packed))
    }

    /// Returns the documents of each versioned object of an EHR, in order of creation. `None` if a
    /// document has no object id: documents without one must not become one object.
    fn objects_of(&self, ehr: u32) -> Option<Vec<Vec<u32>>> {
        let mut objects: Vec<Vec<u32>> = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for number in self.docs_of(ehr) {
            let at = *known
                .entry(self.find_object_id(*number)?)
                .or_insert_with(|| {
                    objects.push(Vec::new());
                    objects.len() - 1
                });
            objects.get_mut(at)?.push(*number);
        }
        Some(objects)
    }

    /// Creates the object with the references of an EHR. `None` if a document has no object id.
    fn references_tree(&self, ehr: u32, objects: &[Vec<u32>]) -> Option<Tree> {
        let mut tree = Tree::new();
        let root = tree.push_object(None, None, Cls::EHR);
        let contributions = self.contributions_of(ehr);
        push_references(
            &mut tree,
            root,
            Attr::CONTRIBUTIONS,
            &contributions,
            "CONTRIBUTION",
        );
        let last = |docs: &Vec<u32>| docs.last().and_then(|d| Some((*d, self.doc(*d)?)));
        let of_kind = |kind: ObjectKind| {
            objects
                .iter()
                .filter_map(last)
                .filter(move |(_, doc)| doc.row.kind == kind)
        };
        if let Some((directory, _)) = of_kind(ObjectKind::Folder).find(|(_, doc)| !doc.row.deleted)
        {
            push_reference(
                &mut tree,
                root,
                Some(Attr::DIRECTORY),
                self.find_object_id(directory)?,
                Cls::VERSIONED_FOLDER.name(),
            );
        }
        for (attr, kind) in [
            (Attr::FOLDERS, ObjectKind::Folder),
            (Attr::COMPOSITIONS, ObjectKind::Composition),
        ] {
            let ids = of_kind(kind).map(|(number, _)| self.find_object_id(number));
            let ids: Vec<&str> = ids.collect::<Option<_>>()?;
            push_references(&mut tree, root, attr, &ids, container_class(kind).name());
        }
        tree.close(root);
        Some(tree)
    }

    /// Returns the ids of the contributions of an EHR, in commit order.
    fn contributions_of(&self, ehr: u32) -> Vec<&str> {
        let path = [Attr::CONTRIBUTION, Attr::ID, Attr::VALUE];
        let mut contributions: Vec<&str> = Vec::new();
        for version in self.docs_of(ehr).iter().filter_map(|d| self.doc(*d)) {
            let uid = self.text_along(version.version, &path);
            // Documents are in commit order, so versions of one contribution are neighbors.
            contributions.extend(uid.filter(|uid| contributions.last() != Some(uid)));
        }
        contributions
    }

    /// Creates the versioned object of a first version; `None` if the version has no time or no
    /// object id.
    fn container_tree(&self, number: u32, first: Doc, owner: &str) -> Option<Tree> {
        let committed = [Attr::COMMIT_AUDIT, Attr::TIME_COMMITTED, Attr::VALUE];
        let created = self.leaf_along(first.version, &committed)?.as_text()?;
        let mut tree = Tree::new();
        let root = tree.push_object(None, None, container_class(first.row.kind));
        push_value(
            &mut tree,
            root,
            Attr::UID,
            Cls::HIER_OBJECT_ID,
            self.find_object_id(number)?,
        );
        push_reference(
            &mut tree,
            root,
            Some(Attr::OWNER_ID),
            owner,
            Cls::EHR.name(),
        );
        push_value(
            &mut tree,
            root,
            Attr::TIME_CREATED,
            Cls::DV_DATE_TIME,
            &created,
        );
        tree.close(root);
        Some(tree)
    }
}

fn container_class(kind: ObjectKind) -> Cls {
    match kind {
        ObjectKind::Composition => Cls::VERSIONED_COMPOSITION,
        ObjectKind::EhrStatus => Cls::VERSIONED_EHR_STATUS,
        ObjectKind::Folder => Cls::VERSIONED_FOLDER,
        ObjectKind::Party => Cls::VERSIONED_PARTY,
    }
}

fn push_references(tree: &mut Tree, parent: NodeId, attr: Attr, ids: &[&str], referred: &str) {
    if !ids.is_empty() {
        let list = tree.push_list(parent, attr, Cls::OBJECT_REF);
        ids.iter()
            .for_each(|id| push_reference(tree, list, None, id, referred));
    }
}

fn push_reference(tree: &mut Tree, parent: NodeId, attr: Option<Attr>, id: &str, referred: &str) {
    let reference = tree.push_object(Some(parent), attr, Cls::OBJECT_REF);
    push_value(tree, reference, Attr::ID, Cls::HIER_OBJECT_ID, id);
    for (attr, text) in [(Attr::NAMESPACE, "local"), (Attr::TYPE, referred)] {
        tree.push_leaf(Some(reference), Some(attr), Cls::STRING, Kind::Text, text);
    }
    tree.close(reference);
}

/// Adds an object with a `value` as an attribute of another one.
pub(super) fn push_value(tree: &mut Tree, parent: NodeId, attr: Attr, class: Cls, text: &str) {
    let object = tree.push_object(Some(parent), Some(attr), class);
    tree.push_leaf(
        Some(object),
        Some(Attr::VALUE),
        Cls::STRING,
        Kind::Text,
        text,
    );
}
