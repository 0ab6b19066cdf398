//! The plan cache: results about layouts, which later documents, batches and runs of a plan reuse.

use super::plan::PathSet;
use crate::document::{ItemKind, Layout, Table};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Weak};

/// The largest number of cached layouts. A full cache is cleared.
const MAX_LAYOUTS: usize = 1 << 16;

/// The largest number of cached lists of anchor tables. A new list replaces the oldest one.
const MAX_ANCHOR_TABLES: usize = 256;

/// The cache of a plan: by layout, and by batch schema.
#[derive(Default)]
pub(super) struct PlanCache {
    by_address: RefCell<HashMap<usize, Rc<CachedLayout>>>,
    /// By variable and batch schema, the newest one last.
    anchor_tables: RefCell<VecDeque<(usize, Rc<AnchorTables>)>>,
}

/// The tables of one batch schema whose fragments a variable can be bound to.
pub(super) struct AnchorTables {
    /// The identifier of the batch schema: see `Batch::schema_id`.
    pub schema_id: u64,
    pub tables: Vec<u32>,
}

/// The cached results about one layout.
#[derive(Default)]
pub(super) struct CachedLayout {
    /// Keeps the address of the layout from being reused, without keeping the layout.
    _layout: Weak<Layout>,
    candidates: RefCell<Vec<(usize, Rc<[Candidate]>)>>,
    passing: RefCell<Vec<(usize, Option<bool>)>>,
    variants: RefCell<Vec<(StepBinding, Rc<DecisionTree>)>>,
}

/// The largest number of cached variants of a step. Rows of further variants are walked.
const MAX_VARIANTS: usize = 64;

/// A layout variant: the expansion of a step for all rows with the same outcomes of presence tests.
pub(super) struct LayoutVariant {
    /// The presence bitmaps that were tested, each with the outcome.
    pub tests: Vec<(u32, bool)>,
    pub expansion: Expansion,
}

impl LayoutVariant {
    /// Returns whether a row has this variant.
    pub fn is_of(&self, table: &Table, row: u32) -> bool {
        self.tests
            .iter()
            .all(|(bitmap, is_present)| table.is_present(*bitmap, row) == *is_present)
    }

    /// Returns the row templates; `None` if the expansion is of another kind.
    pub fn rows(&self) -> Option<&[Cells]> {
        match &self.expansion {
            Expansion::Rows(rows) => Some(rows),
            _ => None,
        }
    }
}

/// A step of the paths of a variable, bound to an item, with the paths that match there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StepBinding {
    pub variable: usize,
    pub step: usize,
    pub item: u32,
    pub matching: PathSet,
}

/// An item that a variable can be bound to, or a repeated group that must be searched.
#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub item: u32,
    pub group: Option<u32>,
    /// The nearest archetype root above it within the fragment.
    pub above: Option<u32>,
}

/// The cells of a row template.
pub(super) type Cells = Rc<[ProjectedCell]>;

/// A cell of a row template: a column of the row, and the item of the layout that fills it.
#[derive(Clone, Copy)]
pub(super) struct ProjectedCell {
    pub column: usize,
    pub item: u32,
    pub leaf: Option<u32>,
}

impl ProjectedCell {
    /// Creates the cell of a column that an item of a layout fills.
    pub fn of(layout: &Layout, column: usize, item: u32) -> ProjectedCell {
        let leaf = match layout.item(item).map(|i| i.kind) {
            Some(ItemKind::Leaf(_, leaf)) => Some(leaf),
            _ => None,
        };
        ProjectedCell { column, item, leaf }
    }
}

/// The expansion of a step for one layout variant.
pub(super) enum Expansion {
    /// Row templates: fixed rows, each with the items that fill its cells.
    Rows(Vec<Cells>),
    /// One row for each row of the child rows of a repeated group.
    Group(GroupExpansion),
    /// The rows depend on leaf values or on several repeated groups, so each fragment is walked.
    Walk,
}

/// The repeated group on which the expansion of a layout variant depends.
pub(super) struct GroupExpansion {
    pub group: u32,
    /// The step whose instances the child rows are.
    pub step: usize,
    pub matching: PathSet,
    /// The cells that the parent row contributes to the rows of its child rows.
    pub parent_cells: Cells,
    /// The cells of the only row of a parent row whose child rows result in no row.
    pub childless_cells: Cells,
}

impl PlanCache {
    /// Returns the cached results about a layout.
    pub fn of(&self, layout: &Arc<Layout>) -> Rc<CachedLayout> {
        // The weak reference below keeps the address in use, so it identifies the layout.
        let address = Arc::as_ptr(layout) as usize;
        let mut known = self.by_address.borrow_mut();
        if known.len() >= MAX_LAYOUTS {
            known.clear();
        }
        let cached_layout = known.entry(address).or_insert_with(|| {
            Rc::new(CachedLayout {
                _layout: Arc::downgrade(layout),
                ..CachedLayout::default()
            })
        });
        Rc::clone(cached_layout)
    }

    /// Returns the number of cached layouts.
    pub fn len(&self) -> usize {
        self.by_address.borrow().len()
    }

    /// Returns the tables whose fragments a variable can be bound to. They are computed once for
    /// each batch schema.
    pub fn anchor_tables(
        &self,
        variable: usize,
        schema_id: u64,
        find: impl FnOnce() -> AnchorTables,
    ) -> Rc<AnchorTables> {
        let is_known = |(of, anchor_tables): &&(usize, Rc<AnchorTables>)| {
            *of == variable && anchor_tables.schema_id == schema_id
        };
        let known = self
            .anchor_tables
            .borrow()
            .iter()
            .find(is_known)
            .map(|(_, anchor_tables)| Rc::clone(anchor_tables));
        known.unwrap_or_else(|| {
            let found = Rc::new(find());
            let mut anchor_tables = self.anchor_tables.borrow_mut();
            if anchor_tables.len() >= MAX_ANCHOR_TABLES {
                anchor_tables.pop_front();
            }
            anchor_tables.push_back((variable, Rc::clone(&found)));
            found
        })
    }
}

impl CachedLayout {
    /// Returns the candidates for a variable, which are computed once.
    pub fn candidates(
        &self,
        variable: usize,
        find: impl FnOnce() -> Vec<Candidate>,
    ) -> Rc<[Candidate]> {
        let known = self
            .candidates
            .borrow()
            .iter()
            .find(|(v, _)| *v == variable)
            .map(|(_, found)| Rc::clone(found));
        known.unwrap_or_else(|| {
            let found: Rc<[Candidate]> = find().into();
            self.candidates
                .borrow_mut()
                .push((variable, Rc::clone(&found)));
            found
        })
    }

    /// Returns whether the root passes the predicate of a variable; `None` if that depends on leaf
    /// values. Computed once.
    pub fn passes(&self, variable: usize, find: impl FnOnce() -> Option<bool>) -> Option<bool> {
        let known = self
            .passing
            .borrow()
            .iter()
            .find(|(v, _)| *v == variable)
            .map(|(_, found)| *found);
        known.unwrap_or_else(|| {
            let found = find();
            self.passing.borrow_mut().push((variable, found));
            found
        })
    }

    /// Returns the decision tree of a step.
    pub fn variants(&self, bound: StepBinding) -> Rc<DecisionTree> {
        let known = self
            .variants
            .borrow()
            .iter()
            .find(|(b, _)| *b == bound)
            .map(|(_, variants)| Rc::clone(variants));
        known.unwrap_or_else(|| {
            let variants = Rc::new(DecisionTree::default());
            self.variants
                .borrow_mut()
                .push((bound, Rc::clone(&variants)));
            variants
        })
    }
}

/// The decision tree of a step. Inner nodes test presence bitmaps, and leaves hold layout variants.
pub(super) struct DecisionTree {
    /// The branches of each test: absent, then present. The first element is no test: all rows
    /// enter the tree by its branch for absent.
    tree: RefCell<Vec<[Branch; 2]>>,
    known: Cell<usize>,
}

/// A branch of the tree: the number of its test, and whether it is the branch for present bits.
pub(super) type BranchId = (usize, bool);

/// A branch of the decision tree.
#[derive(Clone, Default)]
pub(super) enum Branch {
    /// The layout variant of the rows that reach this branch.
    LayoutVariant(Rc<LayoutVariant>),
    /// The number of the next test, and the presence bitmap that it tests.
    Test(usize, u32),
    /// A branch that no row has reached.
    #[default]
    Unknown,
}

impl Default for DecisionTree {
    fn default() -> DecisionTree {
        DecisionTree {
            tree: RefCell::new(vec![Default::default()]),
            known: Cell::new(0),
        }
    }
}

impl DecisionTree {
    /// The branch by which all rows enter the tree.
    pub const ENTRY: BranchId = (0, false);

    /// Returns a branch.
    pub fn at(&self, (number, is_present): BranchId) -> Branch {
        match self.tree.borrow().get(number) {
            Some([absent, present]) => (if is_present { present } else { absent }).clone(),
            None => Branch::Unknown,
        }
    }

    fn put(&self, (number, is_present): BranchId, branch: Branch) {
        if let Some([absent, present]) = self.tree.borrow_mut().get_mut(number) {
            *(if is_present { present } else { absent }) = branch;
        }
    }

    /// Returns the layout variant of a fragment with these presence bits. An unknown one is
    /// computed by `find`.
    pub fn variant(
        &self,
        is_present: impl Fn(u32) -> bool,
        find: impl FnOnce() -> LayoutVariant,
    ) -> Rc<LayoutVariant> {
        let mut place = DecisionTree::ENTRY;
        loop {
            match self.at(place) {
                Branch::LayoutVariant(variant) => return variant,
                Branch::Test(number, bitmap) => place = (number, is_present(bitmap)),
                Branch::Unknown => break,
            }
        }
        let variant = Rc::new(find());
        self.remember(is_present, &variant);
        variant
    }

    /// Computes the layout variant of a fragment that reached an unknown branch, and adds it to the
    /// tree. Returns false if the tree is full.
    pub fn learn(
        &self,
        is_present: impl Fn(u32) -> bool,
        find: impl FnOnce() -> LayoutVariant,
    ) -> bool {
        let has_room = self.known.get() < MAX_VARIANTS;
        if has_room {
            self.remember(is_present, &Rc::new(find()));
        }
        has_room
    }

    fn remember(&self, is_present: impl Fn(u32) -> bool, variant: &Rc<LayoutVariant>) {
        if self.known.get() >= MAX_VARIANTS {
            return;
        }
        // Existing tests are followed first, and only tests that they lack are added.
        let (mut place, mut tests) = (DecisionTree::ENTRY, Vec::new());
        while let Branch::Test(number, bitmap) = self.at(place) {
            place = (number, is_present(bitmap));
            tests.push(bitmap);
        }
        for (bitmap, is_present) in variant
            .tests
            .iter()
            .filter(|(bitmap, _)| !tests.contains(bitmap))
        {
            let number = self.tree.borrow().len();
            self.tree.borrow_mut().push(Default::default());
            self.put(place, Branch::Test(number, *bitmap));
            place = (number, *is_present);
        }
        self.put(place, Branch::LayoutVariant(Rc::clone(variant)));
        self.known.set(self.known.get() + 1);
    }
}

impl fmt::Debug for PlanCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cached results about {} layouts",
            self.by_address.borrow().len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqlite_rm::arbitrary::Generator;

    /// Creates a variant with random tests. Each outcome determines the next test.
    fn variant_of(flags: u32, random: &mut Generator) -> LayoutVariant {
        let (mut tests, mut at) = (Vec::new(), 0);
        while at < 12 {
            let is_present = flags >> at & 1 == 1;
            tests.push((at, is_present));
            at += 1 + u32::from(is_present) + random.next(2) as u32 * u32::from(at == 4);
        }
        LayoutVariant {
            tests,
            expansion: Expansion::Walk,
        }
    }

    #[test]
    fn decision_tree_returns_a_variant_of_the_fragment() {
        for seed in 0..100 {
            let (variants, mut random) = (DecisionTree::default(), Generator::new(seed));
            let mut found = Vec::new();
            for _ in 0..300 {
                let flags = random.next(1 << 12) as u32;
                let is_present = |bitmap: u32| flags >> bitmap & 1 == 1;
                let variant = variants.variant(is_present, || variant_of(flags, &mut random));
                assert!(
                    variant
                        .tests
                        .iter()
                        .all(|(bitmap, was_present)| is_present(*bitmap) == *was_present)
                );
                found.push((flags, variant));
            }
            let tree = variants.tree.borrow().clone();
            let known: Vec<&Rc<LayoutVariant>> = tree
                .iter()
                .flatten()
                .filter_map(|branch| {
                    if let Branch::LayoutVariant(variant) = branch {
                        Some(variant)
                    } else {
                        None
                    }
                })
                .collect();
            assert_eq!(known.len(), MAX_VARIANTS);
            let known =
                |variant: &Rc<LayoutVariant>| known.iter().any(|known| Rc::ptr_eq(known, variant));
            for (flags, variant) in found.iter().filter(|(_, variant)| known(variant)) {
                let again =
                    variants.variant(|bitmap| flags >> bitmap & 1 == 1, || panic!("it is known"));
                assert!(Rc::ptr_eq(variant, &again));
            }
            assert!(!variants.learn(|bitmap| bitmap == 0, || panic!("there is no room")));
        }
    }
}
