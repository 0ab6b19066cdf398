//! Shapes: the skeletons that fragments share.

use super::digest::short_digest;
use crate::rm::Token;
use crate::rm::class::{Attr, Cls};
use crate::rm::id::is_archetype_id;
use crate::rm::json::{Scanner, quote_into};
use crate::rm::tree::Kind;
use hashbrown::HashMap;
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// The skeleton of a fragment, in document order: classes, attributes, constants, and where slots and parts stand.
///
/// That of a table has the items of all its fragments; some of them not all fragments have.
#[derive(Debug, Default)]
pub struct Shape {
    pub(super) items: Vec<Item>,
    pub(super) texts: String,
    pub(super) slots: Vec<u32>,
    pub(super) parts: Vec<u32>,
    digest: OnceLock<String>,
}

impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        (&self.items, &self.texts) == (&other.items, &other.texts)
    }
}

impl Eq for Shape {}

/// One node of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The attribute at which it stands; elements of a list carry that of the list, the root none.
    pub attr: Option<Attr>,
    /// Its class; for a list the declared class of the elements.
    pub class: Cls,
    /// What it is.
    pub kind: ItemKind,
    /// The item that contains it; the root contains itself.
    pub parent: u32,
    /// Behind the last item of its subtree.
    pub end: u32,
    /// The number of the flag that tells which fragments have it; `None` where all do.
    pub flag: Option<u32>,
}

/// What an item of a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// An RM object.
    Object,
    /// A list attribute.
    List,
    /// A leaf with the same text in every fragment: where its text stands.
    Constant(Kind, u32, u32),
    /// A leaf with a value of its own: the number of the slot.
    Slot(Kind, u32),
    /// A run of fragments: elements of a list, or the one value of an attribute.
    Parts(u32),
}

/// An interner of shapes: each skeleton is held once.
#[derive(Debug, Default)]
pub struct Shapes {
    by_key: RefCell<HashMap<Rc<[u8]>, Arc<Shape>>>,
}

/// So many shapes are known at once; then all are forgotten, for where they hardly repeat there is nothing to share.
const MOST: usize = 1 << 13;

impl Shape {
    /// The items in document order; the first is the root.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// One item.
    pub fn item(&self, index: u32) -> Option<&Item> {
        self.items.get(index as usize)
    }

    /// The class of the root.
    pub fn class(&self) -> Cls {
        self.items.first().map_or(Cls::ANY, |i| i.class)
    }

    /// The items that are slots, by slot number.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The items that are runs of parts, by number.
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }

    /// The text of a constant; empty for other items.
    pub fn text(&self, item: &Item) -> &str {
        match item.kind {
            ItemKind::Constant(_, start, len) => self.texts.get(start as usize..(start + len) as usize).unwrap_or_default(),
            _ => "",
        }
    }

    /// 32 hexadecimal digits of the SHA-256 of the skeleton: equal for equal shapes only.
    pub fn digest(&self) -> &str {
        self.digest.get_or_init(|| short_digest(&self.to_text()))
    }

    /// Bytes held, about.
    pub(super) fn bytes(&self) -> usize {
        std::mem::size_of_val(self.items()) + self.texts.capacity() + (self.slots.capacity() + self.parts.capacity()) * 4
    }

    /// The children of an item, in document order.
    pub fn children(&self, index: u32) -> impl Iterator<Item = u32> {
        let end = self.item(index).map_or(0, |i| i.end);
        let mut at = index + 1;
        std::iter::from_fn(move || {
            let item = (at < end).then(|| self.item(at)).flatten()?;
            let child = at;
            at = item.end;
            Some(child)
        })
    }

    /// The child of an object at an attribute.
    pub fn child(&self, index: u32, attr: Attr) -> Option<u32> {
        self.children(index).find(|c| self.item(*c).is_some_and(|i| i.attr == Some(attr)))
    }

    /// The constant text of an attribute of an object.
    pub fn constant(&self, index: u32, attr: Attr) -> Option<&str> {
        let item = self.item(self.child(index, attr)?)?;
        matches!(item.kind, ItemKind::Constant(..)).then(|| self.text(item))
    }

    /// The archetype ids that stand in the shape as node ids.
    pub fn archetypes(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter(|i| i.attr == Some(Attr::ARCHETYPE_NODE_ID)).map(|i| self.text(i)).filter(|t| is_archetype_id(t))
    }

    /// The skeleton as JSON: objects with `_type`, slots as `{"_slot":"number"}`, runs of parts as `{"_parts":0}`.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(self.items.len() * 24);
        self.write(0, &mut out);
        out
    }

    fn write(&self, index: u32, out: &mut String) {
        let Some(item) = self.item(index) else { return };
        match item.kind {
            ItemKind::Object => {
                let _ = write!(out, "{{\"_type\":\"{}\"", item.class);
                for child in self.children(index) {
                    let _ = write!(out, ",\"{}\":", self.item(child).and_then(|c| c.attr).map_or("?", Attr::name));
                    self.write(child, out);
                }
                out.push('}');
            }
            ItemKind::List => {
                out.push('[');
                for (i, child) in self.children(index).enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    self.write(child, out);
                }
                out.push(']');
            }
            ItemKind::Constant(Kind::Text, ..) => quote_into(out, self.text(item)),
            ItemKind::Constant(..) => out.push_str(self.text(item)),
            ItemKind::Slot(kind, _) => {
                let _ = write!(out, "{{\"_slot\":\"{}\"}}", slot_name(kind));
            }
            ItemKind::Parts(_) => out.push_str("{\"_parts\":1}"),
        }
    }
}

fn slot_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Number => "number",
        Kind::Boolean => "boolean",
        _ => "text",
    }
}

impl Shapes {
    /// An empty interner.
    pub fn new() -> Shapes {
        Shapes::default()
    }

    /// How many shapes it holds.
    pub fn len(&self) -> usize {
        self.by_key.borrow().len()
    }

    /// True when it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of a skeleton as [`Key`] writes it.
    pub(super) fn intern(&self, key: &[u8]) -> Arc<Shape> {
        if let Some(shape) = self.by_key.borrow().get(key) {
            return Arc::clone(shape);
        }
        let shape = Arc::new(build(key));
        let mut known = self.by_key.borrow_mut();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(Rc::from(key), Arc::clone(&shape));
        shape
    }

    /// Reads what [`Shape::to_text`] wrote.
    ///
    /// # Errors
    /// When the text is not a skeleton, or names classes or attributes that this release does not know.
    pub fn read(&self, text: &str) -> Result<Arc<Shape>, String> {
        let mut skeleton = Skeleton { scan: Scanner::new(text), key: Key::default() };
        skeleton.value(None, Cls::ANY, DEEPEST)?;
        if skeleton.token()? != Token::End {
            return Err(broken());
        }
        Ok(self.intern(skeleton.key.bytes()))
    }
}

/// Objects and lists that may lie inside one another: more than a document may have.
const DEEPEST: usize = 1_000;

/// Reads the text of a skeleton.
struct Skeleton<'a> {
    scan: Scanner<'a>,
    key: Key,
}

impl<'a> Skeleton<'a> {
    fn value(&mut self, attr: Option<Attr>, declared: Cls, depth: usize) -> Result<(), String> {
        let depth = depth.checked_sub(1).ok_or_else(broken)?;
        match self.token()? {
            Token::ObjectStart => return self.object(attr, declared, depth),
            Token::ArrayStart => return self.list(attr, declared, depth),
            Token::String(text) => self.key.constant(attr, declared, Kind::Text, &text),
            Token::Number(text) => self.key.constant(attr, declared, Kind::Number, text),
            Token::Boolean(flag) => self.key.constant(attr, declared, Kind::Boolean, if flag { "true" } else { "false" }),
            _ => return Err(broken()),
        }
        Ok(())
    }

    /// An object, or what stands for a slot or a run of parts.
    fn object(&mut self, attr: Option<Attr>, declared: Cls, depth: usize) -> Result<(), String> {
        let (first, value) = (self.scan.key().map_err(|_| broken())?, self.token()?);
        match (&*first, value) {
            ("_parts", Token::Number(_)) => self.key.parts(attr, declared),
            ("_slot", Token::String(kind)) => self.key.slot(attr, declared, slot_kind(&kind)),
            ("_type", Token::String(name)) => {
                let class = Cls::parse(&name).ok_or_else(|| format!("there is no class {name}"))?;
                return self.members(attr, class, depth);
            }
            _ => return Err(broken()),
        }
        if self.goes_on(&Token::ObjectEnd)? { Err(broken()) } else { Ok(()) }
    }

    fn members(&mut self, attr: Option<Attr>, class: Cls, depth: usize) -> Result<(), String> {
        self.key.open(attr, class, Kind::Object);
        while self.goes_on(&Token::ObjectEnd)? {
            let name = self.scan.key().map_err(|_| broken())?;
            let def = class.attr_named(&name).ok_or_else(|| format!("{class} has no attribute {name}"))?;
            self.value(Some(def.attr), def.ty, depth)?;
        }
        self.key.close();
        Ok(())
    }

    fn list(&mut self, attr: Option<Attr>, declared: Cls, depth: usize) -> Result<(), String> {
        self.key.open(attr, declared, Kind::List);
        if self.scan.peek() == Some(b']') {
            self.token()?;
        } else {
            self.value(attr, declared, depth)?;
            while self.goes_on(&Token::ArrayEnd)? {
                self.value(attr, declared, depth)?;
            }
        }
        self.key.close();
        Ok(())
    }

    fn token(&mut self) -> Result<Token<'a>, String> {
        self.scan.next_token().map_err(|_| broken())
    }

    /// True before another member or element, false behind the last one.
    fn goes_on(&mut self, end: &Token<'_>) -> Result<bool, String> {
        match self.token()? {
            Token::Comma => Ok(true),
            token if token == *end => Ok(false),
            _ => Err(broken()),
        }
    }
}

fn broken() -> String {
    String::from("the skeleton of a shape is broken")
}

fn slot_kind(name: &str) -> Kind {
    match name {
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        _ => Kind::Text,
    }
}

/// A skeleton as bytes: cheap to build, to hash and to compare.
#[derive(Default)]
pub(super) struct Key(Vec<u8>);

const CLOSE: u8 = 0;
const OBJECT: u8 = 1;
const LIST: u8 = 2;
const PARTS: u8 = 3;
const CONSTANT: u8 = 4;
const SLOT: u8 = 7;

impl Key {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn head(&mut self, tag: u8, attr: Option<Attr>, class: Cls) {
        self.0.extend_from_slice(&[tag, attr.map_or(u8::MAX, Attr::number), class.number()]);
    }

    pub fn open(&mut self, attr: Option<Attr>, class: Cls, kind: Kind) {
        self.head(if kind == Kind::List { LIST } else { OBJECT }, attr, class);
    }

    pub fn close(&mut self) {
        self.0.push(CLOSE);
    }

    pub fn constant(&mut self, attr: Option<Attr>, class: Cls, kind: Kind, text: &str) {
        self.head(CONSTANT + kind_number(kind), attr, class);
        self.0.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    pub fn slot(&mut self, attr: Option<Attr>, class: Cls, kind: Kind) {
        self.head(SLOT + kind_number(kind), attr, class);
    }

    pub fn parts(&mut self, attr: Option<Attr>, class: Cls) {
        self.head(PARTS, attr, class);
    }
}

fn kind_number(kind: Kind) -> u8 {
    match kind {
        Kind::Number => 1,
        Kind::Boolean => 2,
        _ => 0,
    }
}

fn kind_of(number: u8) -> Kind {
    match number {
        1 => Kind::Number,
        2 => Kind::Boolean,
        _ => Kind::Text,
    }
}

/// Decodes a key into a shape.
fn build(key: &[u8]) -> Shape {
    let mut shape = Shape::default();
    let mut open: Vec<u32> = Vec::new();
    let mut rest = key;
    while let Some((tag, tail)) = rest.split_first() {
        rest = tail;
        if *tag == CLOSE {
            let end = shape.items.len() as u32;
            if let Some(item) = open.pop().and_then(|i| shape.items.get_mut(i as usize)) {
                item.end = end;
            }
            continue;
        }
        let Some(([attr, class], tail)) = rest.split_first_chunk::<2>() else { break };
        rest = tail;
        let index = shape.items.len() as u32;
        let kind = match *tag {
            OBJECT => ItemKind::Object,
            LIST => ItemKind::List,
            PARTS => {
                shape.parts.push(index);
                ItemKind::Parts(shape.parts.len() as u32 - 1)
            }
            SLOT.. => {
                shape.slots.push(index);
                ItemKind::Slot(kind_of(tag - SLOT), shape.slots.len() as u32 - 1)
            }
            _ => {
                let Some((len, tail)) = rest.split_first_chunk::<4>() else { break };
                let len = u32::from_le_bytes(*len);
                let (text, tail) = tail.split_at_checked(len as usize).unwrap_or((&[], &[]));
                rest = tail;
                let start = shape.texts.len() as u32;
                shape.texts.push_str(std::str::from_utf8(text).unwrap_or_default());
                ItemKind::Constant(kind_of(tag - CONSTANT), start, len)
            }
        };
        let parent = open.last().copied().unwrap_or(0);
        if matches!(kind, ItemKind::Object | ItemKind::List) {
            open.push(index);
        }
        let class = Cls::from_number(*class).unwrap_or(Cls::ANY);
        shape.items.push(Item { attr: Attr::from_number(*attr), class, kind, parent, end: index + 1, flag: None });
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{NothingKnown, pack};
    use crate::rm::json;

    #[test]
    fn a_skeleton_is_read_back_as_the_shape_that_wrote_it() {
        let text = r#"{"_type":"ELEMENT","name":{"_type":"DV_TEXT","value":"a \"b\""},"archetype_node_id":"at0001","value":{"_type":"DV_QUANTITY","magnitude":1.50,"units":"kg"}}"#;
        let tree = json::read(text, Cls::ELEMENT).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &Shapes::new());
        for shape in packed.shapes() {
            assert_eq!(*Shapes::new().read(&shape.to_text()).unwrap(), *shape);
        }
    }

    #[test]
    fn what_is_no_skeleton_is_refused() {
        let deep = format!("{}{}", r#"{"_type":"CLUSTER","items":["#.repeat(2_000), "]}".repeat(2_000));
        let broken =
            ["", "{", "[]{", r#"{"_type":"NOTHING"}"#, r#"{"_type":"ELEMENT","colour":1}"#, r#"{"_slot":"text","_slot":"text"}"#, "null", &deep];
        for text in broken {
            assert!(Shapes::new().read(text).is_err(), "{text}");
        }
    }
}
