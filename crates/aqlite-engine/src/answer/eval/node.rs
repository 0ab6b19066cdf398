//! Navigation in stored documents without unpacking them: nodes of fragments, and the view of a
//! batch.

use super::execution_path::ExecutionPath;
use super::work::{BYTE, Work};
use crate::answer::plan::EHR_REFERENCES;
use crate::answer::result::CellRef;
use crate::document::{Batch, Doc, Fragment, ItemKind, Layout, Leaf, ObjectKind, Table};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::exact::{Exact, WIDE};
use aqlite_rm::imported::{standard_item_json, standard_json};
use aqlite_rm::json::quote_into;
use std::cell::{Cell, RefCell};

/// A node of a stored document: an object or a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Node {
    pub fragment: Fragment,
    pub item: u32,
}

impl Node {
    /// No node: an unbound variable, an absent value.
    pub const NONE: Node = Node {
        fragment: Fragment::NONE,
        item: 0,
    };

    /// The root of a fragment.
    pub fn root(fragment: Fragment) -> Node {
        Node { fragment, item: 0 }
    }

    pub fn is_none(self) -> bool {
        // The table of `Fragment::NONE`.
        self.fragment.table == u32::MAX
    }

    /// Returns `other`, or this node if `other` is no node.
    pub fn overlaid(self, other: Node) -> Node {
        if other.is_none() { self } else { other }
    }
}

/// Returns whether an item is absent from some fragments of its table.
fn is_optional(layout: &Layout, item: u32) -> bool {
    layout
        .item(item)
        .is_some_and(|item| item.presence.is_some())
}

/// Returns the attribute with the number that represents a whole data value, for classes that have
/// one.
fn main_number(class: Cls) -> Option<Attr> {
    match class {
        Cls::DV_QUANTITY | Cls::DV_COUNT => Some(Attr::MAGNITUDE),
        Cls::DV_ORDINAL | Cls::DV_SCALE => Some(Attr::VALUE),
        _ => None,
    }
}

/// A read view of a batch, which can count work and record dependencies on rows.
#[derive(Clone, Copy)]
pub(super) struct View<'b> {
    pub batch: &'b Batch,
    /// Is set when the view reads something that differs between the rows of one table: a leaf
    /// value or a repeated group.
    differs: Option<&'b Cell<bool>>,
    /// Records the presence tests, which then do not count as differences.
    recorded: Option<&'b PresenceTests>,
    /// The work counter of the run.
    work: Option<&'b Work>,
}

/// The presence tests of a fragment that an evaluation made, with their outcomes.
pub(super) struct PresenceTests {
    fragment: Fragment,
    tests: RefCell<Vec<(u32, bool)>>,
}

impl PresenceTests {
    /// Creates the empty list of tests of a fragment.
    pub fn of(fragment: Fragment) -> PresenceTests {
        PresenceTests {
            fragment,
            tests: RefCell::default(),
        }
    }

    /// Returns the tests, each with its outcome.
    pub fn tests(self) -> Vec<(u32, bool)> {
        self.tests.into_inner()
    }
}

impl<'b> View<'b> {
    pub fn new(batch: &'b Batch) -> View<'b> {
        View {
            batch,
            differs: None,
            recorded: None,
            work: None,
        }
    }

    /// Returns a view that counts the work of its reads.
    pub fn counting(self, work: &'b Work) -> View<'b> {
        View {
            work: Some(work),
            ..self
        }
    }

    /// Returns the work counter of the run.
    pub fn work(self) -> Option<&'b Work> {
        self.work
    }

    /// Ends the run with an error if it would hold more than the permitted bytes. Returns false then.
    pub fn allows_bytes(self, bytes: usize) -> bool {
        self.work.is_none_or(|work| work.allows_bytes(bytes))
    }

    /// Checks the work that was spent since a pause became due. Returns false if the run is over.
    pub fn allows_overdue_work(self) -> bool {
        self.work.is_none_or(Work::allows_overdue_work)
    }

    /// Returns whether the run has exceeded a limit.
    pub fn is_over(self) -> bool {
        self.work.is_some_and(Work::is_over)
    }

    /// Records a broken invariant. The run then ends with an error.
    pub fn note_broken(self, what: &'static str) {
        if let Some(work) = self.work {
            work.note_broken(what);
        }
    }

    /// Returns the node of a path in a row.
    ///
    /// A row has a node for every path of the query; the node is [`Node::NONE`] where the path
    /// leads nowhere. A row without the node is a broken invariant, which ends the run.
    pub fn node_at(self, row: &[Node], path: usize) -> Node {
        row.get(path).copied().unwrap_or_else(|| {
            self.note_broken("a row has no node for a path");
            Node::NONE
        })
    }

    /// Returns the cell of a column. A row that the column does not have is a broken invariant,
    /// which ends the run.
    pub fn cell_of_column(self, cell: Option<CellRef>) -> CellRef {
        cell.unwrap_or_else(|| {
            self.note_broken("a column has no value for a row");
            CellRef::Null
        })
    }

    /// Records that an execution path is taken.
    pub fn note(self, path: ExecutionPath) {
        if let Some(work) = self.work {
            work.taken.note(path);
        }
    }

    /// Counts units of work.
    pub fn count(self, units: u64) {
        if let Some(work) = self.work {
            work.add(units);
        }
    }

    /// Returns a view that sets `differs` when a value is read that can differ between the
    /// fragments of the table.
    pub fn watched(self, differs: &'b Cell<bool>) -> View<'b> {
        View {
            differs: Some(differs),
            ..self
        }
    }

    /// Returns a view like [`View::watched`] that also records presence tests in `recorded`. Its reads
    /// are the same for all fragments with the same outcomes of these tests.
    pub fn recording(self, differs: &'b Cell<bool>, recorded: &'b PresenceTests) -> View<'b> {
        View {
            differs: Some(differs),
            recorded: Some(recorded),
            ..self
        }
    }

    /// Returns whether a fragment has an item.
    pub fn has(self, fragment: Fragment, item: u32) -> bool {
        let Some(table) = self.batch.table(fragment.table) else {
            return false;
        };
        let Some(bitmap) = table.layout().item(item).and_then(|item| item.presence) else {
            return true;
        };
        let has = table.is_present(bitmap, fragment.row);
        match self
            .recorded
            .filter(|recorded| recorded.fragment == fragment)
            .map(|recorded| recorded.tests.borrow_mut())
        {
            // A recorded test is no difference: the result applies to all fragments with its
            // outcome.
            Some(mut tests) if !tests.contains(&(bitmap, has)) => tests.push((bitmap, has)),
            Some(_) => {}
            None => self.note_difference(),
        }
        has
    }

    fn note_difference(self) {
        if let Some(differs) = self.differs {
            differs.set(true);
        }
    }

    pub fn table(self, node: Node) -> Option<&'b Table> {
        self.batch.table(node.fragment.table)
    }

    /// Returns the class of an object, or the primitive type of a leaf.
    pub fn class(self, node: Node) -> Cls {
        self.table(node)
            .and_then(|t| t.layout().item(node.item))
            .map_or(Cls::ANY, |i| i.class)
    }

    /// Returns the value of a leaf.
    pub fn leaf(self, node: Node) -> Option<Leaf<'b>> {
        let table = self.table(node)?;
        if let Some(ItemKind::Leaf(..)) = table.layout().item(node.item).map(|i| i.kind) {
            self.note_difference();
        }
        self.batch.leaf(node.fragment, node.item)
    }

    /// Returns the class of the object that has a leaf, and the attribute of the leaf. `None` for a
    /// leaf at the root of a fragment.
    pub fn holder(self, node: Node) -> Option<(Cls, Attr)> {
        let layout = self.table(node)?.layout();
        let item = layout.item(node.item)?;
        Some((layout.item(item.parent)?.class, item.attr?))
    }

    /// Returns the text of the leaf at an attribute of an object.
    pub fn text_at(self, node: Node, attr: Attr) -> Option<&'b str> {
        match self.leaf(self.single(node, attr)?)? {
            Leaf::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the exact number of a leaf; `double` is its nearest double.
    pub fn exact(self, node: Node, double: f64) -> Exact {
        if double.abs() < WIDE {
            return Exact::from(double);
        }
        let mut digits = String::new();
        self.write_token(node, &mut digits);
        Exact::of(double, &digits)
    }

    /// Returns the digits of the number of a node as stored: of a leaf, a quantity, a count, an
    /// ordinal or a scale. Returns `None` for any other node, and for a proportion, whose number is
    /// computed.
    pub fn digits(self, node: Node) -> Option<String> {
        let number = match self.leaf(node) {
            Some(_) => node,
            None => self.single(node, main_number(self.class(node))?)?,
        };
        let is_number = matches!(self.leaf(number), Some(Leaf::Number(_)));
        let mut out = String::new();
        if is_number {
            self.write_token(number, &mut out);
        }
        is_number.then_some(out)
    }

    /// Returns whether a node is a number of an integer type, or a data value with such a number
    /// (DV_COUNT, DV_ORDINAL).
    pub fn is_integer(self, node: Node) -> bool {
        let class = self.class(node);
        let number = main_number(class)
            .and_then(|attr| class.attr(attr))
            .map_or(class, |def| def.ty);
        matches!(number, Cls::INTEGER | Cls::INTEGER64)
    }

    /// Returns the first value at an attribute.
    pub fn single(self, node: Node, attr: Attr) -> Option<Node> {
        let mut found = None;
        self.each(node, attr, &mut |n| {
            found = Some(n);
            false
        });
        found
    }

    /// Visits the values at an attribute in list order until `visit` returns false. Returns false
    /// if it did.
    pub fn each(self, node: Node, attr: Attr, visit: &mut dyn FnMut(Node) -> bool) -> bool {
        self.each_such(node, attr, &|_, _| true, visit)
    }

    /// Visits values like [`View::each`], but skips items for which `such` returns false. `such`
    /// receives the layout and the item.
    pub fn each_such(
        self,
        node: Node,
        attr: Attr,
        such: &dyn Fn(&Layout, u32) -> bool,
        visit: &mut dyn FnMut(Node) -> bool,
    ) -> bool {
        let Some(table) = self.table(node) else {
            return true;
        };
        let layout = table.layout();
        let Some(child) = layout
            .child(node.item, attr)
            .filter(|child| self.has(node.fragment, *child))
        else {
            return match layout.class() {
                Cls::EHR => self.each_of_ehr(node, attr, visit),
                // The data of the item are stored in the IMPORTED_VERSION itself.
                Cls::IMPORTED_VERSION
                    if attr == Attr::DATA && is_item_of_imported(layout, node.item) =>
                {
                    self.each_such(Node::root(node.fragment), attr, such, visit)
                }
                _ => true,
            };
        };
        match layout.item(child).map(|i| i.kind) {
            Some(ItemKind::List) => {
                let is_there = |element: u32| {
                    !is_optional(layout, element)
                        || (such(layout, element) && self.has(node.fragment, element))
                };
                layout.children(child).all(|element| {
                    !is_there(element) || self.element(table, node.fragment, element, visit)
                })
            }
            Some(_) => self.element(table, node.fragment, child, visit),
            None => true,
        }
    }

    fn element(
        self,
        table: &Table,
        fragment: Fragment,
        item: u32,
        visit: &mut dyn FnMut(Node) -> bool,
    ) -> bool {
        match table.layout().item(item).map(|i| i.kind) {
            // Each fragment has its own number of rows of a group.
            Some(ItemKind::Group(group)) => {
                self.note_difference();
                self.batch
                    .child_rows(fragment, group)
                    .iter()
                    .all(|child| visit(Node::root(*child)))
            }
            Some(_) => visit(Node { fragment, item }),
            None => true,
        }
    }

    /// Visits the derived attributes of an EHR: its EHR_STATUS, and its lists of references.
    fn each_of_ehr(self, node: Node, attr: Attr, visit: &mut dyn FnMut(Node) -> bool) -> bool {
        self.note_difference();
        if attr == Attr::EHR_STATUS {
            return self.status_of(node).is_none_or(visit);
        }
        let references = || {
            self.batch
                .references(self.batch.owner_of(node.fragment)?)
                .map(Node::root)
        };
        match EHR_REFERENCES.contains(&attr).then(references).flatten() {
            // The object with the references has none of its own, which ends the recursion.
            Some(references) if references != node => self.each(references, attr, visit),
            _ => true,
        }
    }

    /// Returns the latest EHR_STATUS of the EHR with this object.
    fn status_of(self, node: Node) -> Option<Node> {
        let ehr = self.batch.owner_of(node.fragment)?;
        let mut statuses = self
            .docs_of(ehr)
            .filter(|d| d.row.kind == ObjectKind::EhrStatus && d.row.latest && !d.row.deleted);
        statuses.next().and_then(|d| d.data).map(Node::root)
    }

    /// Returns a document that another part of the batch names. A document that the batch does not
    /// have is a broken invariant, which ends the run.
    pub fn doc(self, document: u32) -> Option<Doc> {
        let doc = self.batch.doc(document);
        if doc.is_none() {
            self.note_broken("a document is not in its batch");
        }
        doc
    }

    /// Returns the documents of an EHR in commit order.
    pub fn docs_of(self, ehr: u32) -> impl Iterator<Item = Doc> {
        let documents = self.batch.docs_of(ehr).iter();
        documents.filter_map(move |document| self.doc(*document))
    }

    /// Appends a node as JSON: an object as stored, an IMPORTED_VERSION as in the Reference Model,
    /// a leaf as its token.
    pub fn write_json(self, node: Node, out: &mut String) {
        let Some(table) = self.table(node) else {
            out.push_str("null");
            return;
        };
        let before = out.len();
        match table.layout().class() {
            Cls::EHR if node.item == 0 => self.write_ehr(node, out),
            Cls::IMPORTED_VERSION if node.item == 0 => {
                self.write_imported(node.fragment, standard_json, out)
            }
            Cls::IMPORTED_VERSION if is_item_of_imported(table.layout(), node.item) => {
                self.write_imported(node.fragment, standard_item_json, out)
            }
            _ => self.batch.write_json(node.fragment, node.item, out),
        }
        self.count((out.len() - before) as u64 * BYTE);
    }

    /// Appends an IMPORTED_VERSION or its item in the form of the Reference Model.
    fn write_imported(
        self,
        fragment: Fragment,
        standard: fn(&str) -> Option<String>,
        out: &mut String,
    ) {
        let before = out.len();
        // The stored form is the root: the standard form of the item is made from it too.
        self.batch.write_json(fragment, 0, out);
        match out.get(before..).and_then(standard) {
            Some(standard) => {
                out.truncate(before);
                out.push_str(&standard);
            }
            None => self.note_broken("a stored IMPORTED_VERSION cannot be read"),
        }
    }

    /// Appends an EHR with a reference to its EHR_STATUS.
    fn write_ehr(self, node: Node, out: &mut String) {
        self.batch.write_json(node.fragment, node.item, out);
        let uid = self
            .status_of(node)
            .and_then(|status| self.single(status, Attr::UID))
            .and_then(|uid| self.text_at(uid, Attr::VALUE));
        if let Some(uid) = uid {
            // The closing brace of the EHR. The reference is its last member.
            out.pop();
            out.push_str(",\"ehr_status\":{\"_type\":\"OBJECT_REF\",\"id\":{\"_type\":\"OBJECT_VERSION_ID\",\"value\":");
            quote_into(out, uid);
            out.push_str("},\"namespace\":\"local\",\"type\":\"EHR_STATUS\"}}");
        }
    }

    /// Appends the digits of a number leaf as they were sent.
    pub fn write_token(self, node: Node, out: &mut String) {
        self.batch.write_leaf(node.fragment, node.item, out);
    }
}
/// Returns whether an item of the layout of an IMPORTED_VERSION is its ORIGINAL_VERSION. The data of
/// that version are stored in the IMPORTED_VERSION itself.
fn is_item_of_imported(layout: &Layout, item: u32) -> bool {
    layout
        .item(item)
        .is_some_and(|item| item.parent == 0 && item.attr == Some(Attr::ITEM))
}
