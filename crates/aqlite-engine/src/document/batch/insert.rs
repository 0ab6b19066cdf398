//! Insertion of packed documents into a batch: each fragment becomes a row of a table.

use super::docs::{Doc, DocRow, DocState};
use super::table::{FragmentPosition, LayoutMapping, TableRoot};
use super::{Batch, Fragment, Table, new_schema_id};
use crate::document::layout::Layout;
use crate::document::pack::{Packed, PackedFragment};
use aqlite_rm::class::Attr;
use aqlite_rm::id::is_archetype_id;
use std::rc::Rc;
use std::sync::Arc;

/// The largest number of cached mappings. A full cache is emptied.
const MAX_MAPPINGS: usize = 1 << 13;

/// The largest number of tables that are tried for a new layout before it gets a table of its own.
const MAX_CANDIDATE_TABLES: usize = 64;

/// The properties that a fragment has from its parent row.
#[derive(Clone, Copy)]
struct Inherited {
    /// The number of the archetype that the fragment belongs to; `None` outside of archetypes.
    archetype: Option<u32>,
    /// The pre-order number of the parent row; that of the fragment for a root.
    parent_preorder: u32,
}

impl Batch {
    /// Adds a packed ORIGINAL_VERSION, and returns its number.
    pub fn add(&mut self, ehr: u32, row: DocRow, packed: &Packed) -> u32 {
        self.derived.take();
        let number = self.docs.len() as u32;
        let version = self.add_root(number, packed);
        let data = self.child_at(version, Attr::DATA);
        let DocRow {
            kind,
            object_id,
            number: nth,
            ordinal,
            latest,
            deleted,
        } = row;
        let row = DocState {
            kind,
            number: nth,
            ordinal,
            latest,
            deleted,
        };
        // The uid of a version usually begins with the object id. Other object ids are stored.
        if self.object_in_uid(version) != Some(&object_id) {
            self.explicit_object_ids.insert(number, object_id);
        }
        let doc = Doc {
            document: number,
            ehr,
            row,
            version,
            data,
        };
        if !self.docs.push(&doc) {
            self.broken = Some("a document is added to a batch of a segment");
        }
        self.update_live(number);
        self.by_ehr.add(ehr, number);
        number
    }

    /// Adds a fragment without a parent row.
    pub(super) fn add_root(&mut self, doc: u32, packed: &Packed) -> Fragment {
        self.add_fragment(
            doc,
            packed,
            packed.root(),
            Inherited {
                archetype: None,
                parent_preorder: self.fragments,
            },
        )
    }

    /// Adds a fragment and its child rows.
    fn add_fragment(
        &mut self,
        doc: u32,
        packed: &Packed,
        fragment: &PackedFragment,
        inherited: Inherited,
    ) -> Fragment {
        let Inherited {
            archetype,
            parent_preorder,
        } = inherited;
        // A fragment precedes its child rows.
        let preorder = self.fragments;
        self.fragments += 1;
        // Child rows are added first, because the parent row stores references to them.
        let groups = self.add_groups(doc, packed, fragment, archetype, preorder);
        // Looked up again: adding child rows may have widened the table of this fragment.
        let mapping = self.mapping(&fragment.layout, archetype);
        let number = mapping.table;
        let table = self.tables.get_mut((number - self.base) as usize);
        let texts = (0..fragment.leaves.len() as u32).map(|leaf| packed.leaf_text(fragment, leaf));
        let at = FragmentPosition {
            doc,
            preorder,
            parent_preorder,
        };
        let row =
            table.and_then(|table| table.add(at, &mapping, texts, &groups, &mut self.dictionary));
        let Some(row) = row else {
            self.broken = Some("a fragment does not fit the columns of its table");
            return Fragment::NONE;
        };
        self.add_origins(&mapping, &groups);
        Fragment { table: number, row }
    }

    /// Adds the child rows of a fragment, by repeated group.
    fn add_groups(
        &mut self,
        doc: u32,
        packed: &Packed,
        fragment: &PackedFragment,
        archetype: Option<u32>,
        preorder: u32,
    ) -> Vec<Vec<Fragment>> {
        if fragment.groups.is_empty() {
            return Vec::new();
        }
        let within = Inherited {
            archetype: self.mapping(&fragment.layout, archetype).archetype,
            parent_preorder: preorder,
        };
        let mut add = |child: &PackedFragment| self.add_fragment(doc, packed, child, within);
        let groups = fragment.groups.iter();
        groups
            .map(|group| group.iter().map(&mut add).collect())
            .collect()
    }

    /// Records the repeated groups whose child rows are in each table.
    fn add_origins(&mut self, mapping: &LayoutMapping, groups: &[Vec<Fragment>]) {
        let children = groups
            .iter()
            .zip(&mapping.groups)
            .flat_map(|(children, group)| children.iter().map(move |child| (*group, child)));
        for (group, child) in children {
            let origin = (mapping.table, group);
            let origins = self
                .tables
                .get_mut((child.table - self.base) as usize)
                .map(|table| &mut table.origins);
            // Cached results depend on the groups from which a table receives rows, so a new group
            // changes the schema.
            if let Some(origins) = origins.filter(|origins| !origins.contains(&origin)) {
                origins.push(origin);
                self.schema_id = new_schema_id();
            }
        }
    }

    /// Returns the mapping of a layout into a table. It is computed again if the table was widened.
    fn mapping(&mut self, layout: &Arc<Layout>, within: Option<u32>) -> Rc<LayoutMapping> {
        let address = (Arc::as_ptr(layout) as usize, within);
        // An older mapping lacks the presence bitmaps that were added since.
        let is_new = |mapping: &LayoutMapping| {
            self.tables
                .get((mapping.table - self.base) as usize)
                .is_some_and(|table| table.layout_revision() == mapping.layout_revision)
        };
        if let Some((_, mapping)) = self
            .mappings
            .get(&address)
            .filter(|(_, mapping)| is_new(mapping))
        {
            return Rc::clone(mapping);
        }
        if self.mappings.len() >= MAX_MAPPINGS {
            self.mappings.clear();
        }
        let mapping = Rc::new(self.find_mapping(layout, within));
        self.mappings
            .insert(address, (Arc::downgrade(layout), Rc::clone(&mapping)));
        mapping
    }

    /// Finds or creates the table of a layout within an archetype, and maps the layout into it.
    fn find_mapping(&mut self, layout: &Arc<Layout>, within: Option<u32>) -> LayoutMapping {
        let id = layout.constant(0, Attr::ARCHETYPE_NODE_ID);
        let node_id = id.map(|id| self.number_of_root(id));
        // The meaning of a code depends on its archetype.
        let archetype = if id.is_some_and(is_archetype_id) {
            node_id
        } else {
            within
        };
        let root = TableRoot { node_id, archetype };
        let found = self.merge_layout(layout, root);
        // A new or widened table changes the schema. A layout that fits the table does not.
        if found
            .as_ref()
            .is_none_or(|(earlier, mapping)| *earlier < mapping.layout_revision)
        {
            self.schema_id = new_schema_id();
        }
        found.map(|(_, mapping)| mapping).unwrap_or_else(|| {
            self.tables.push(Table::new(Arc::clone(layout), root));
            LayoutMapping::identity(layout, self.base + self.tables.len() as u32 - 1, archetype)
        })
    }

    /// Maps a layout into the first table with this root that can merge it, which is widened if
    /// necessary. Returns the mapping with the earlier layout revision of the table.
    fn merge_layout(
        &mut self,
        layout: &Arc<Layout>,
        root: TableRoot,
    ) -> Option<(u32, LayoutMapping)> {
        let is_alike =
            |table: &Table| table.root() == root && table.layout().class() == layout.class();
        self.tables
            .iter_mut()
            .zip(self.base..)
            .filter(|(table, _)| is_alike(table))
            .take(MAX_CANDIDATE_TABLES)
            .find_map(|(table, number)| {
                let earlier = table.layout_revision();
                Some((earlier, table.merge_layout(layout, number)?))
            })
    }

    fn number_of_root(&mut self, id: &str) -> u32 {
        let known = self.root_ids.iter().position(|known| known == id);
        let number = known.unwrap_or_else(|| {
            self.root_ids.push(id.to_owned());
            self.root_ids.len() - 1
        });
        number as u32
    }
}
