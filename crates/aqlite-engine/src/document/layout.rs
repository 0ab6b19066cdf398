//! Layouts: the structures that fragments share, with their constant texts.

use super::digest::short_digest;
use aqlite_rm::Token;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::id::is_archetype_id;
use aqlite_rm::json::{Scanner, quote_into};
use aqlite_rm::tree::Kind;
use hashbrown::HashMap;
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// The layout of a fragment, in document order: classes, attributes, constants, and the positions
/// of leaf values and child rows.
///
/// The merged layout of a table has the items of all its fragments. A fragment can lack optional
/// items.
#[derive(Debug, Default)]
pub struct Layout {
    pub(super) items: Vec<Item>,
    pub(super) texts: String,
    pub(super) leaves: Vec<u32>,
    pub(super) groups: Vec<u32>,
    digest: OnceLock<String>,
}

impl PartialEq for Layout {
    fn eq(&self, other: &Layout) -> bool {
        // Leaves, groups and the digest are derived from the items and texts.
        (&self.items, &self.texts) == (&other.items, &other.texts)
    }
}

impl Eq for Layout {}

/// An item of a layout: an object, a list, a leaf or a repeated group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The attribute that holds it. Elements of a list have the attribute of the list; the root has
    /// none.
    pub attr: Option<Attr>,
    /// The class of an object or leaf; the declared class of the elements of a list.
    pub class: Cls,
    /// The kind of the item.
    pub kind: ItemKind,
    /// The index of the item that contains it; the root contains itself.
    pub parent: u32,
    /// The index behind the last item of its subtree.
    pub end: u32,
    /// The number of the presence bitmap of the rows that have the item; `None` if all rows have
    /// it.
    pub presence: Option<u32>,
}

/// The kind of an item of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// An RM object.
    Object,
    /// A list.
    List,
    /// A leaf with the same text in every fragment.
    Constant {
        /// The kind of the leaf.
        kind: Kind,
        /// The start of the text in the texts of the layout, in bytes.
        start: u32,
        /// The length of the text, in bytes.
        len: u32,
    },
    /// A leaf with a value in each fragment: the number of the leaf value.
    Leaf(Kind, u32),
    /// A repeated group of fragments, by number: elements of a list, or the single value of an
    /// attribute.
    Group(u32),
}

/// An interner of layouts, which stores each layout once.
#[derive(Debug, Default)]
pub struct LayoutStore {
    by_key: RefCell<HashMap<Rc<[u8]>, Arc<Layout>>>,
}

/// The largest number of interned layouts. A full store is cleared: if layouts hardly repeat,
/// sharing saves nothing.
const MAX_LAYOUTS: usize = 1 << 13;

impl Layout {
    /// Returns the items in document order. The first is the root.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns an item by index.
    pub fn item(&self, index: u32) -> Option<&Item> {
        self.items.get(index as usize)
    }

    /// Returns the class of the root.
    pub fn class(&self) -> Cls {
        self.items.first().map_or(Cls::ANY, |i| i.class)
    }

    /// Returns the items of the leaf values, by the number of the leaf value.
    pub fn leaves(&self) -> &[u32] {
        &self.leaves
    }

    /// Returns the items of the repeated groups, by the number of the group.
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Returns the text of a constant; the empty text for other items.
    pub fn text(&self, item: &Item) -> &str {
        match item.kind {
            ItemKind::Constant { start, len, .. } => self
                .texts
                .get(start as usize..(start + len) as usize)
                .unwrap_or_default(),
            _ => "",
        }
    }

    /// Returns 32 hexadecimal digits of the SHA-256 of the layout, which only equal layouts share.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| short_digest(&self.to_text()))
    }

    /// Returns an estimate of the bytes in use.
    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of_val(self.items())
            + self.texts.capacity()
            + (self.leaves.capacity() + self.groups.capacity()) * 4
    }

    /// Returns the children of an item in document order.
    pub fn children(&self, index: u32) -> impl Iterator<Item = u32> {
        let end = self.item(index).map_or(0, |i| i.end);
        let mut at = index + 1;
        // The end of a child is the index of its next sibling.
        std::iter::from_fn(move || {
            let item = (at < end).then(|| self.item(at)).flatten()?;
            let child = at;
            at = item.end;
            Some(child)
        })
    }

    /// Returns the child of an object at an attribute.
    pub fn child(&self, index: u32, attr: Attr) -> Option<u32> {
        self.children(index)
            .find(|c| self.item(*c).is_some_and(|i| i.attr == Some(attr)))
    }

    /// Returns the constant text at an attribute of an object.
    pub fn constant(&self, index: u32, attr: Attr) -> Option<&str> {
        let item = self.item(self.child(index, attr)?)?;
        matches!(item.kind, ItemKind::Constant { .. }).then(|| self.text(item))
    }

    /// Returns the archetype ids among the node ids of the layout.
    pub fn archetypes(&self) -> impl Iterator<Item = &str> {
        self.items
            .iter()
            .filter(|i| i.attr == Some(Attr::ARCHETYPE_NODE_ID))
            .map(|i| self.text(i))
            .filter(|t| is_archetype_id(t))
    }

    /// Returns the layout as JSON: objects with `_type`, leaf values as `{"_slot":"number"}`,
    /// repeated groups as `{"_parts":1}`.
    ///
    /// `_slot` and `_parts` are earlier names of leaf values and repeated groups. They are stored,
    /// so they never change.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(self.items.len() * 24);
        self.write(0, &mut out);
        out
    }

    fn write(&self, index: u32, out: &mut String) {
        let Some(item) = self.item(index) else { return };
        match item.kind {
            ItemKind::Object => self.write_object(index, item.class, out),
            ItemKind::List => {
                out.push('[');
                for (i, child) in self.children(index).enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    self.write(child, out);
                }
                out.push(']');
            }
            ItemKind::Constant {
                kind: Kind::Text, ..
            } => quote_into(out, self.text(item)),
            ItemKind::Constant { .. } => out.push_str(self.text(item)),
            ItemKind::Leaf(kind, _) => {
                let _ = write!(out, "{{\"_slot\":\"{}\"}}", leaf_kind_name(kind));
            }
            ItemKind::Group(_) => out.push_str("{\"_parts\":1}"),
        }
    }

    /// Writes an object with its `_type`.
    fn write_object(&self, index: u32, class: Cls, out: &mut String) {
        let _ = write!(out, "{{\"_type\":\"{class}\"");
        for child in self.children(index) {
            let attr = self.item(child).and_then(|c| c.attr);
            let _ = write!(out, ",\"{}\":", attr.map_or("?", Attr::name));
            self.write(child, out);
        }
        out.push('}');
    }
}

fn leaf_kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        _ => "text",
    }
}

impl LayoutStore {
    /// Creates an empty store.
    pub fn new() -> LayoutStore {
        LayoutStore::default()
    }

    /// Returns the number of layouts.
    pub fn len(&self) -> usize {
        self.by_key.borrow().len()
    }

    /// Returns whether the store is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the interned layout that a [`LayoutKey`] encodes.
    pub(super) fn intern(&self, key: &[u8]) -> Arc<Layout> {
        if let Some(layout) = self.by_key.borrow().get(key) {
            return Arc::clone(layout);
        }
        let layout = Arc::new(build(key));
        let mut known = self.by_key.borrow_mut();
        if known.len() >= MAX_LAYOUTS {
            known.clear();
        }
        known.insert(Rc::from(key), Arc::clone(&layout));
        layout
    }

    /// Parses the text that [`Layout::to_text`] returns.
    ///
    /// # Errors
    /// If the text is no layout, or names classes or attributes that this release does not know.
    pub fn read(&self, text: &str) -> Result<Arc<Layout>, String> {
        let mut parser = LayoutParser {
            scan: Scanner::new(text),
            key: LayoutKey::default(),
        };
        parser.value(None, Cls::ANY, MAX_DEPTH)?;
        if parser.token()? != Token::End {
            return Err(broken());
        }
        Ok(self.intern(parser.key.bytes()))
    }
}

/// The largest nesting depth of objects and lists, which is more than a document may have.
const MAX_DEPTH: usize = 1_000;

/// A parser of the text of a layout.
struct LayoutParser<'a> {
    scan: Scanner<'a>,
    key: LayoutKey,
}

impl<'a> LayoutParser<'a> {
    fn value(&mut self, attr: Option<Attr>, declared: Cls, depth: usize) -> Result<(), String> {
        // The limit bounds the recursion: damaged text must not exhaust the stack.
        let depth = depth.checked_sub(1).ok_or_else(broken)?;
        match self.token()? {
            Token::ObjectStart => return self.object(attr, declared, depth),
            Token::ArrayStart => return self.list(attr, declared, depth),
            Token::String(text) => self.key.constant(attr, declared, Kind::Text, &text),
            Token::Number(text) => self.key.constant(attr, declared, Kind::Number, text),
            Token::Boolean(value) => self.key.constant(
                attr,
                declared,
                Kind::Boolean,
                if value { "true" } else { "false" },
            ),
            _ => return Err(broken()),
        }
        Ok(())
    }

    /// Parses an object, or the placeholder of a leaf value or of a repeated group.
    fn object(&mut self, attr: Option<Attr>, declared: Cls, depth: usize) -> Result<(), String> {
        let (first, value) = (self.scan.key().map_err(|_| broken())?, self.token()?);
        match (&*first, value) {
            ("_parts", Token::Number(_)) => self.key.group(attr, declared),
            ("_slot", Token::String(kind)) => self.key.leaf(attr, declared, leaf_kind(&kind)),
            ("_type", Token::String(name)) => {
                let class = Cls::parse(&name).ok_or_else(|| format!("there is no class {name}"))?;
                return self.members(attr, class, depth);
            }
            _ => return Err(broken()),
        }
        // A placeholder has a single member.
        if self.has_next(&Token::ObjectEnd)? {
            Err(broken())
        } else {
            Ok(())
        }
    }

    fn members(&mut self, attr: Option<Attr>, class: Cls, depth: usize) -> Result<(), String> {
        self.key.open(attr, class, Kind::Object);
        while self.has_next(&Token::ObjectEnd)? {
            let name = self.scan.key().map_err(|_| broken())?;
            let def = class
                .attr_named(&name)
                .ok_or_else(|| format!("{class} has no attribute {name}"))?;
            self.value(Some(def.attr), def.ty, depth)?;
        }
        self.key.close();
        Ok(())
    }

    fn list(&mut self, attr: Option<Attr>, declared: Cls, depth: usize) -> Result<(), String> {
        self.key.open(attr, declared, Kind::List);
        // Only an empty list ends right after the opening bracket.
        if self.scan.peek() == Some(b']') {
            self.token()?;
        } else {
            self.value(attr, declared, depth)?;
            while self.has_next(&Token::ArrayEnd)? {
                self.value(attr, declared, depth)?;
            }
        }
        self.key.close();
        Ok(())
    }

    fn token(&mut self) -> Result<Token<'a>, String> {
        self.scan.next_token().map_err(|_| broken())
    }

    /// Returns true before another member or element, and false at the end of the object or list.
    fn has_next(&mut self, end: &Token<'_>) -> Result<bool, String> {
        match self.token()? {
            Token::Comma => Ok(true),
            token if token == *end => Ok(false),
            _ => Err(broken()),
        }
    }
}

fn broken() -> String {
    String::from("the text of a layout is malformed")
}

fn leaf_kind(name: &str) -> Kind {
    match name {
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        _ => Kind::Text,
    }
}

/// A layout as bytes: cheap to build, to hash and to compare.
#[derive(Default)]
pub(super) struct LayoutKey(Vec<u8>);

const CLOSE: u8 = 0;
const OBJECT: u8 = 1;
const LIST: u8 = 2;
const GROUP: u8 = 3;
// Constants and leaves have three tags each, one for each kind of leaf.
const CONSTANT: u8 = 4;
const LEAF: u8 = 7;

impl LayoutKey {
    /// Creates an empty key with capacity for an entry.
    pub fn with_capacity() -> LayoutKey {
        LayoutKey(Vec::with_capacity(1_024))
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn head(&mut self, tag: u8, attr: Option<Attr>, class: Cls) {
        // The value 255 means that the item has no attribute.
        self.0
            .extend_from_slice(&[tag, attr.map_or(u8::MAX, Attr::number), class.number()]);
    }

    pub fn open(&mut self, attr: Option<Attr>, class: Cls, kind: Kind) {
        self.head(if kind == Kind::List { LIST } else { OBJECT }, attr, class);
    }

    pub fn close(&mut self) {
        self.0.push(CLOSE);
    }

    pub fn constant(&mut self, attr: Option<Attr>, class: Cls, kind: Kind, text: &str) {
        self.head(CONSTANT + kind_number(kind), attr, class);
        // The length precedes the text, so the text needs no escapes and no end mark.
        self.0
            .extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    pub fn leaf(&mut self, attr: Option<Attr>, class: Cls, kind: Kind) {
        self.head(LEAF + kind_number(kind), attr, class);
    }

    pub fn group(&mut self, attr: Option<Attr>, class: Cls) {
        self.head(GROUP, attr, class);
    }
}

/// Returns the number of a kind of leaves in keys of layouts and in heads of segments.
///
/// The numbers are stored, so they never change.
pub(super) fn kind_number(kind: Kind) -> u8 {
    match kind {
        Kind::Number => 1,
        Kind::Boolean => 2,
        _ => 0,
    }
}

/// Returns the kind of leaves with a number of [`kind_number`].
pub(super) fn kind_of(number: u8) -> Kind {
    match number {
        1 => Kind::Number,
        2 => Kind::Boolean,
        _ => Kind::Text,
    }
}

/// Decodes a key into a layout.
fn build(key: &[u8]) -> Layout {
    let mut layout = Layout::default();
    let mut open: Vec<u32> = Vec::new();
    let mut rest = key;
    while let Some((tag, tail)) = rest.split_first() {
        rest = tail;
        if *tag == CLOSE {
            // The subtree ends at the next item.
            let end = layout.items.len() as u32;
            if let Some(item) = open.pop().and_then(|i| layout.items.get_mut(i as usize)) {
                item.end = end;
            }
            continue;
        }
        let Some(([attr, class], tail)) = rest.split_first_chunk::<2>() else {
            break;
        };
        rest = tail;
        let index = layout.items.len() as u32;
        let Some(kind) = read_kind(&mut layout, *tag, &mut rest) else {
            break;
        };
        let parent = open.last().copied().unwrap_or(0);
        if matches!(kind, ItemKind::Object | ItemKind::List) {
            open.push(index);
        }
        layout.items.push(Item {
            attr: Attr::from_number(*attr),
            class: Cls::from_number(*class).unwrap_or(Cls::ANY),
            kind,
            parent,
            end: index + 1,
            presence: None,
        });
    }
    layout
}

/// Reads the kind of the next item from its tag, and the text of a constant from `rest`. Returns
/// `None` at the end of the key.
fn read_kind(layout: &mut Layout, tag: u8, rest: &mut &[u8]) -> Option<ItemKind> {
    let index = layout.items.len() as u32;
    Some(match tag {
        OBJECT => ItemKind::Object,
        LIST => ItemKind::List,
        GROUP => {
            layout.groups.push(index);
            ItemKind::Group(layout.groups.len() as u32 - 1)
        }
        LEAF.. => {
            layout.leaves.push(index);
            ItemKind::Leaf(kind_of(tag - LEAF), layout.leaves.len() as u32 - 1)
        }
        // The remaining tags are those of constants.
        _ => {
            let (len, tail) = rest.split_first_chunk::<4>()?;
            let len = u32::from_le_bytes(*len);
            let (text, tail) = tail.split_at_checked(len as usize).unwrap_or((&[], &[]));
            *rest = tail;
            let start = layout.texts.len() as u32;
            let text = std::str::from_utf8(text).unwrap_or_default();
            layout.texts.push_str(text);
            ItemKind::Constant {
                kind: kind_of(tag - CONSTANT),
                start,
                len,
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{NothingKnown, pack};
    use aqlite_rm::json;

    #[test]
    fn layout_text_round_trips() {
        let text = r#"{"_type":"ELEMENT","name":{"_type":"DV_TEXT","value":"a \"b\""},"archetype_node_id":"at0001","value":{"_type":"DV_QUANTITY","magnitude":1.50,"units":"kg"}}"#;
        let tree = json::read(text, Cls::ELEMENT).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &LayoutStore::new());
        for layout in packed.layouts() {
            assert_eq!(
                *LayoutStore::new().read(&layout.to_text()).unwrap(),
                *layout
            );
        }
    }

    #[test]
    fn text_that_is_no_layout_is_refused() {
        let deep = format!(
            "{}{}",
            r#"{"_type":"CLUSTER","items":["#.repeat(2_000),
            "]}".repeat(2_000)
        );
        let broken = [
            "",
            "{",
            "[]{",
            r#"{"_type":"NOTHING"}"#,
            r#"{"_type":"ELEMENT","colour":1}"#,
            r#"{"_slot":"text","_slot":"text"}"#,
            "null",
            &deep,
        ];
        for text in broken {
            assert!(LayoutStore::new().read(text).is_err(), "{text}");
        }
    }
}
