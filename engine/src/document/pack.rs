//! Packing: a document tree ⇄ fragments of shape and slots, lossless to the last digit.

use super::rule::{self, Known, Place};
use super::shape::{Item, ItemKind, Key, Shape, Shapes};
use crate::rm::Token;
use crate::rm::class::{Attr, Cls};
use crate::rm::json::{Scanner, quote_into};
use crate::rm::tree::{Kind, NodeId, NodeRef, Tree};
use hashbrown::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// A packed document: its root fragment with all parts.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The texts of all slots, one behind the other.
    text: String,
    root: Part,
}

/// One fragment of a packed document.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub shape: Arc<Shape>,
    /// Where the text of each slot stands.
    pub slots: Vec<(u32, u32)>,
    /// The fragments of each run.
    pub runs: Vec<Vec<Part>>,
}

/// Packs a document (or any object) into shapes and slots.
///
/// `known` are the texts of its template; other texts become slots, whatever the class table says of their attribute.
pub fn pack(node: NodeRef<'_>, known: &dyn Known, shapes: &Shapes) -> Packed {
    let mut packer = Packer { known, shapes, text: String::new(), spare: Vec::new() };
    let root = packer.part(node);
    Packed { text: packer.text, root }
}

struct Packer<'a> {
    known: &'a dyn Known,
    shapes: &'a Shapes,
    text: String,
    spare: Vec<Key>,
}

/// The fragment being packed.
#[derive(Default)]
struct Draft {
    key: Key,
    slots: Vec<(u32, u32)>,
    runs: Vec<Vec<Part>>,
}

impl Packer<'_> {
    fn part(&mut self, node: NodeRef<'_>) -> Part {
        let mut draft = Draft { key: self.spare.pop().unwrap_or_default(), ..Draft::default() };
        draft.key.clear();
        self.object(node, None, None, &mut draft);
        let shape = self.shapes.intern(draft.key.bytes());
        self.spare.push(draft.key);
        Part { shape, slots: draft.slots, runs: draft.runs }
    }

    fn object(&mut self, node: NodeRef<'_>, attr: Option<Attr>, role: Option<Attr>, draft: &mut Draft) {
        draft.key.open(attr, node.class(), Kind::Object);
        let role = if is_about(node.class()) { role.or(attr) } else { None };
        for child in node.children() {
            match child.kind() {
                Kind::Object if child.attr().is_some_and(|a| rule::is_cut(node.class(), a)) => {
                    draft.key.parts(child.attr(), child.class());
                    let part = self.part(child);
                    draft.runs.push(vec![part]);
                }
                Kind::Object => self.object(child, child.attr(), role, draft),
                Kind::List => self.list(child, draft),
                _ => self.leaf(child, node.class(), role, draft),
            }
        }
        draft.key.close();
    }

    fn list(&mut self, list: NodeRef<'_>, draft: &mut Draft) {
        draft.key.open(list.attr(), list.class(), Kind::List);
        let mut in_run = false;
        for (element, cut) in list.children().zip(rule::cut_elements(list)) {
            if !cut {
                in_run = false;
                match element.kind() {
                    Kind::Object | Kind::List => self.object(element, list.attr(), None, draft),
                    _ => self.leaf(element, list.class(), None, draft),
                }
                continue;
            }
            let part = self.part(element);
            match draft.runs.last_mut().filter(|_| in_run) {
                Some(run) => run.push(part),
                None => {
                    draft.key.parts(list.attr(), list.class());
                    draft.runs.push(vec![part]);
                }
            }
            in_run = true;
        }
        draft.key.close();
    }

    fn leaf(&mut self, leaf: NodeRef<'_>, class: Cls, role: Option<Attr>, draft: &mut Draft) {
        let attr = leaf.attr();
        let constant = attr.is_some_and(|attr| rule::is_constant(Place { class, attr, role }, leaf.kind(), leaf.text(), self.known));
        if constant {
            draft.key.constant(attr, leaf.class(), leaf.kind(), leaf.text());
        } else {
            draft.key.slot(attr, leaf.class(), leaf.kind());
            let start = self.text.len() as u32;
            self.text.push_str(leaf.text());
            draft.slots.push((start, self.text.len() as u32));
        }
    }
}

/// Classes whose leaves tell about the attribute at which the outermost of them stands.
fn is_about(class: Cls) -> bool {
    class.is_a(Cls::DV_TEXT) || class == Cls::CODE_PHRASE
}

impl Packed {
    pub(super) fn new(text: String, root: Part) -> Packed {
        Packed { text, root }
    }

    pub(super) fn root(&self) -> &Part {
        &self.root
    }

    pub(super) fn slot(&self, part: &Part, slot: u32) -> &str {
        let (start, end) = part.slots.get(slot as usize).copied().unwrap_or_default();
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The class of the document's root.
    pub fn class(&self) -> Cls {
        self.root.shape.class()
    }

    /// The distinct shapes, in order of first use, that of the root first.
    pub fn shapes(&self) -> Vec<Arc<Shape>> {
        let mut found: Vec<Arc<Shape>> = Vec::new();
        let mut waiting = vec![&self.root];
        while let Some(part) = waiting.pop() {
            if !found.iter().any(|s| Arc::ptr_eq(s, &part.shape)) {
                found.push(Arc::clone(&part.shape));
            }
            waiting.extend(part.runs.iter().flatten());
        }
        found
    }

    /// The compact text form: `[shape, slot, slot, [part, part], …]`, slots and runs in document order.
    ///
    /// Numbers and booleans stand as they were sent, texts as JSON strings; where a number stands for a text, it refers: `n`
    /// to `known[n]`, which the reader must be given too, and `-n` to the n-th string of this text, from 1.
    pub fn to_text(&self, id_of: &dyn Fn(&Shape) -> u64, known: &[&str]) -> String {
        let out = String::with_capacity(self.text.len() * 2);
        let mut writer = Writer { packed: self, id_of, known, strings: 0, first: HashMap::new(), out };
        writer.part(&self.root);
        writer.out
    }

    /// Reads what [`Packed::to_text`] wrote, with the same `known`.
    ///
    /// # Errors
    /// When the text is broken, or names a shape that `shape_of` does not know.
    pub fn from_text(text: &str, shape_of: &dyn Fn(u64) -> Option<Arc<Shape>>, known: &[&str]) -> Result<Packed, String> {
        let mut reader =
            Reader { scanner: Scanner::new(text), shape_of, text: String::with_capacity(text.len()), known: Vec::new(), strings: Vec::new() };
        reader.known = known.iter().map(|text| reader.keep(text)).collect();
        let root = reader.part()?;
        Ok(Packed { text: reader.text, root })
    }

    /// The document as a tree.
    pub fn unpack(&self) -> Tree {
        let mut tree = Tree::with_capacity(self.text.len() * 8);
        self.grow(&self.root, &mut tree, None, None);
        tree
    }

    fn grow(&self, part: &Part, tree: &mut Tree, parent: Option<NodeId>, attr: Option<Attr>) {
        let mut open: Vec<(u32, NodeId)> = Vec::new();
        for (index, item) in part.shape.items().iter().enumerate() {
            while open.last().is_some_and(|(end, _)| *end <= index as u32) {
                open.pop();
            }
            let above = open.last().map(|(_, id)| *id).or(parent);
            let at = if index == 0 { attr } else { item.attr };
            match self.node(part, item) {
                Ok((kind, text)) => open.push((item.end, tree.push(above, at, item.class, kind, text))),
                Err(run) => run.iter().for_each(|inner| self.grow(inner, tree, above, at)),
            }
        }
    }

    /// Kind and text of the node that an item is, or the fragments that it stands for.
    fn node<'a>(&'a self, part: &'a Part, item: &Item) -> Result<(Kind, &'a str), &'a [Part]> {
        match item.kind {
            ItemKind::Object => Ok((Kind::Object, "")),
            ItemKind::List => Ok((Kind::List, "")),
            ItemKind::Constant(kind, ..) => Ok((kind, part.shape.text(item))),
            ItemKind::Slot(kind, slot) => Ok((kind, self.slot(part, slot))),
            ItemKind::Parts(run) => Err(part.runs.get(run as usize).map_or(&[], Vec::as_slice)),
        }
    }

    /// True when it would unpack to just this tree: to the same classes, attributes and texts, in the same order.
    pub fn gives(&self, node: NodeRef<'_>) -> bool {
        self.is(&self.root, 0, node.attr(), node)
    }

    /// True when a node stands at an attribute and is what an item says, with all below it.
    fn is(&self, part: &Part, index: u32, attr: Option<Attr>, node: NodeRef<'_>) -> bool {
        let Some(Ok((item, (kind, text)))) = part.shape.item(index).map(|item| self.node(part, item).map(|found| (item, found))) else {
            return false;
        };
        if node.attr() != attr || node.class() != item.class || node.kind() != kind || node.text() != text {
            return false;
        }
        let mut inner = node.children();
        let mut is_next = |part: &Part, index: u32, attr| inner.next().is_some_and(|node| self.is(part, index, attr, node));
        let all = part.shape.children(index).all(|child| match part.shape.item(child).map(|item| (item.attr, item.kind)) {
            Some((attr, ItemKind::Parts(run))) => part.runs.get(run as usize).into_iter().flatten().all(|part| is_next(part, 0, attr)),
            Some((attr, _)) => is_next(part, child, attr),
            None => false,
        });
        all && inner.next().is_none()
    }

    /// The document as canonical JSON, every object with its `_type`.
    pub fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.text.len() * 8);
        write_json(&PackedView { packed: self, part: &self.root }, 0, &mut out);
        out
    }

    /// The part of the document at a single attribute of the root that is cut off, such as the data of a version.
    pub fn part_at(&self, attr: Attr) -> Option<Packed> {
        let index = self.root.shape.child(0, attr)?;
        let ItemKind::Parts(run) = self.root.shape.item(index)?.kind else { return None };
        let part = self.root.runs.get(run as usize)?.first()?;
        Some(Packed { text: self.text.clone(), root: part.clone() })
    }
}

/// A fragment whose slots and parts can be read: packed, or in the columns of a batch.
pub(super) trait FragmentView: Sized {
    fn shape(&self) -> &Shape;
    /// True for an item that the fragment has.
    fn has(&self, item: u32) -> bool;
    fn write_slot(&self, slot: u32, kind: Kind, out: &mut String);
    fn each_part(&self, run: u32, visit: &mut dyn FnMut(&Self));
}

struct PackedView<'a> {
    packed: &'a Packed,
    part: &'a Part,
}

impl FragmentView for PackedView<'_> {
    fn shape(&self) -> &Shape {
        &self.part.shape
    }

    fn has(&self, _: u32) -> bool {
        true
    }

    fn write_slot(&self, slot: u32, kind: Kind, out: &mut String) {
        let text = self.packed.slot(self.part, slot);
        if kind == Kind::Text { quote_into(out, text) } else { out.push_str(text) }
    }

    fn each_part(&self, run: u32, visit: &mut dyn FnMut(&Self)) {
        for part in self.part.runs.get(run as usize).into_iter().flatten() {
            visit(&PackedView { packed: self.packed, part });
        }
    }
}

/// Writes the subtree of one item as canonical JSON.
pub(super) fn write_json<V: FragmentView>(view: &V, index: u32, out: &mut String) {
    let shape = view.shape();
    let Some(item) = shape.item(index) else { return };
    match item.kind {
        ItemKind::Object => {
            out.push_str("{\"_type\":\"");
            out.push_str(item.class.name());
            out.push('"');
            for child in shape.children(index).filter(|child| view.has(*child)) {
                out.push_str(",\"");
                out.push_str(shape.item(child).and_then(|c| c.attr).map_or("?", Attr::name));
                out.push_str("\":");
                write_json(view, child, out);
            }
            out.push('}');
        }
        ItemKind::List => {
            out.push('[');
            for (i, child) in shape.children(index).filter(|child| view.has(*child)).enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write_json(view, child, out);
            }
            out.push(']');
        }
        ItemKind::Constant(Kind::Text, ..) => quote_into(out, shape.text(item)),
        ItemKind::Constant(..) => out.push_str(shape.text(item)),
        ItemKind::Slot(kind, slot) => view.write_slot(slot, kind, out),
        ItemKind::Parts(run) => write_run(view, run, out),
    }
}

fn write_run<V: FragmentView>(view: &V, run: u32, out: &mut String) {
    let mut first = true;
    view.each_part(run, &mut |part| {
        out.push_str(if first { "" } else { "," });
        first = false;
        write_json(part, 0, out);
    });
}

/// Writes the text form.
struct Writer<'a> {
    packed: &'a Packed,
    id_of: &'a dyn Fn(&Shape) -> u64,
    known: &'a [&'a str],
    /// How many strings have been written.
    strings: usize,
    /// Where a text was written first.
    first: HashMap<&'a str, usize>,
    out: String,
}

/// Shorter texts are written again: a reference would not be shorter.
const WORTH_A_REFERENCE: usize = 4;

impl<'a> Writer<'a> {
    fn part(&mut self, part: &'a Part) {
        let _ = write!(self.out, "[{}", (self.id_of)(&part.shape));
        for item in part.shape.items() {
            match item.kind {
                ItemKind::Slot(kind, slot) => {
                    self.out.push(',');
                    let text = self.packed.slot(part, slot);
                    if kind == Kind::Text { self.text(text) } else { self.out.push_str(text) }
                }
                ItemKind::Parts(run) => {
                    self.out.push_str(",[");
                    for (i, inner) in part.runs.get(run as usize).into_iter().flatten().enumerate() {
                        self.out.push_str(if i > 0 { "," } else { "" });
                        self.part(inner);
                    }
                    self.out.push(']');
                }
                _ => {}
            }
        }
        self.out.push(']');
    }

    fn text(&mut self, text: &'a str) {
        if let Some(number) = self.known.iter().position(|known| *known == text) {
            let _ = write!(self.out, "{number}");
        } else if let Some(first) = self.first.get(text) {
            let _ = write!(self.out, "-{first}");
        } else {
            quote_into(&mut self.out, text);
            self.strings += 1;
            if text.len() >= WORTH_A_REFERENCE {
                self.first.insert(text, self.strings);
            }
        }
    }
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    shape_of: &'a dyn Fn(u64) -> Option<Arc<Shape>>,
    text: String,
    /// Where the known texts stand in `text`.
    known: Vec<(u32, u32)>,
    /// Where the strings that were read stand.
    strings: Vec<(u32, u32)>,
}

const BROKEN: &str = "a packed document is broken";

impl Reader<'_> {
    fn part(&mut self) -> Result<Part, String> {
        self.expect(Token::ArrayStart)?;
        self.rest_of_part()
    }

    fn rest_of_part(&mut self) -> Result<Part, String> {
        let Ok(Token::Number(id)) = self.scanner.next_token() else { return Err(BROKEN.to_owned()) };
        let shape = id.parse().ok().and_then(self.shape_of).ok_or_else(|| format!("there is no shape {id}"))?;
        let mut slots = Vec::with_capacity(shape.slots().len());
        let mut runs = Vec::with_capacity(shape.parts().len());
        for item in shape.items() {
            match item.kind {
                ItemKind::Slot(kind, _) => slots.push(self.slot(kind)?),
                ItemKind::Parts(_) => runs.push(self.run()?),
                _ => {}
            }
        }
        self.expect(Token::ArrayEnd)?;
        Ok(Part { shape: Arc::clone(&shape), slots, runs })
    }

    fn slot(&mut self, kind: Kind) -> Result<(u32, u32), String> {
        self.expect(Token::Comma)?;
        match self.scanner.next_token() {
            Ok(Token::String(text)) => {
                let place = self.keep(&text);
                self.strings.push(place);
                Ok(place)
            }
            Ok(Token::Number(number)) if kind == Kind::Text => self.referred(number).ok_or_else(|| BROKEN.to_owned()),
            Ok(Token::Number(text)) => Ok(self.keep(text)),
            Ok(Token::Boolean(flag)) => Ok(self.keep(if flag { "true" } else { "false" })),
            _ => Err(BROKEN.to_owned()),
        }
    }

    fn keep(&mut self, text: &str) -> (u32, u32) {
        let start = self.text.len() as u32;
        self.text.push_str(text);
        (start, self.text.len() as u32)
    }

    fn referred(&self, number: &str) -> Option<(u32, u32)> {
        match number.strip_prefix('-') {
            Some(back) => self.strings.get(back.parse::<usize>().ok()?.checked_sub(1)?).copied(),
            None => self.known.get(number.parse::<usize>().ok()?).copied(),
        }
    }

    fn run(&mut self) -> Result<Vec<Part>, String> {
        self.expect(Token::Comma)?;
        self.expect(Token::ArrayStart)?;
        let mut parts = Vec::new();
        loop {
            parts.push(self.part()?);
            match self.scanner.next_token() {
                Ok(Token::Comma) => {}
                Ok(Token::ArrayEnd) => return Ok(parts),
                _ => return Err(BROKEN.to_owned()),
            }
        }
    }

    fn expect(&mut self, token: Token<'_>) -> Result<(), String> {
        match self.scanner.next_token() {
            Ok(found) if found == token => Ok(()),
            _ => Err(BROKEN.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::NothingKnown;
    use crate::rm::arbitrary::Generator;
    use crate::rm::json;

    const TEXT: &str = r#"{"_type":"COMPOSITION","name":{"value":"Visit"},"archetype_node_id":"openEHR-EHR-COMPOSITION.encounter.v1",
        "language":{"terminology_id":{"value":"ISO_639-1"},"code_string":"en"},"territory":{"terminology_id":{"value":"ISO_3166-1"},"code_string":"UY"},
        "category":{"value":"event","defining_code":{"terminology_id":{"value":"openehr"},"code_string":"433"}},
        "composer":{"_type":"PARTY_IDENTIFIED","name":"Dr \"X\"\n"},
        "content":[{"_type":"ADMIN_ENTRY","name":{"value":"A"},"archetype_node_id":"openEHR-EHR-ADMIN_ENTRY.a.v1",
          "language":{"terminology_id":{"value":"ISO_639-1"},"code_string":"en"},"encoding":{"terminology_id":{"value":"IANA_character-sets"},"code_string":"UTF-8"},
          "subject":{"_type":"PARTY_SELF"},
          "data":{"_type":"ITEM_TREE","name":{"value":"Tree"},"archetype_node_id":"at0001","items":[
            {"_type":"ELEMENT","name":{"value":"Systolic"},"archetype_node_id":"at0004","value":{"_type":"DV_QUANTITY","magnitude":120.50,"units":"mm[Hg]"}},
            {"_type":"CLUSTER","name":{"value":"R"},"archetype_node_id":"at0005","items":[]},
            {"_type":"CLUSTER","name":{"value":"R"},"archetype_node_id":"at0005","items":[]},
            {"_type":"ELEMENT","name":{"value":"Flag"},"archetype_node_id":"at0006","value":{"_type":"DV_BOOLEAN","value":true}}]}}]}"#;

    #[test]
    fn a_document_comes_back_from_its_text_form() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        let shapes = Shapes::new();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &shapes);
        let used = packed.shapes();
        assert_eq!(used.len(), 3, "the composition, the entry, and one shape for both clusters");
        let id_of = |shape: &Shape| used.iter().position(|s| s.digest() == shape.digest()).unwrap() as u64;
        for known in [[].as_slice(), &["Dr \"X\"\n", "Flag"]] {
            let text = packed.to_text(&id_of, known);
            let again = Packed::from_text(&text, &|id| used.get(id as usize).cloned(), known).unwrap();
            assert!(tree.root().unwrap().same_as(again.unpack().root().unwrap()));
            assert_eq!(again.to_json(), json::write(tree.root().unwrap()));
        }
    }

    #[test]
    fn a_text_is_written_once() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &Shapes::new());
        let id_of = |shape: &Shape| packed.shapes().iter().position(|s| s.digest() == shape.digest()).unwrap() as u64;
        let text = packed.to_text(&id_of, &["Visit"]);
        assert_eq!(text, r#"[0,0,"Dr \"X\"\n",[[1,"A","Tree","Systolic",120.50,"mm[Hg]",[[2,"R"],[2,"R"]],"Flag",true]]]"#);
        let broken = ["[0,9]", "[0,-1]", "[0,1.5]", "[0,-0]", "[0,\"a\",-2]"];
        assert!(broken.iter().all(|text| Packed::from_text(text, &|_| packed.shapes().first().cloned(), &["Visit"]).is_err()));
    }

    #[test]
    fn text_forms_without_references_read_too() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &Shapes::new());
        let used = packed.shapes();
        let text = r#"[0,"Visit","Dr \"X\"\n",[[1,"A","Tree","Systolic",120.50,"mm[Hg]",[[2,"R"],[2,"R"]],"Flag",true]]]"#;
        let again = Packed::from_text(text, &|id| used.get(id as usize).cloned(), &["Visit", "A"]).unwrap();
        assert_eq!(again.to_json(), json::write(tree.root().unwrap()));
    }

    #[test]
    fn a_packed_form_gives_the_tree_that_it_unpacks_to_and_no_other() {
        let shapes = Shapes::new();
        let trees: Vec<Tree> = (0..150).map(|seed| Generator::new(seed).tree()).chain([json::read(TEXT, Cls::COMPOSITION).unwrap()]).collect();
        for tree in trees.iter().map(|tree| tree.root().unwrap()) {
            let packed = pack(tree, &NothingKnown, &shapes);
            assert!(packed.gives(tree) && packed.unpack().root().unwrap().same_as(tree));
            for other in trees.iter().map(|tree| tree.root().unwrap()) {
                assert_eq!(packed.gives(other), tree.same_as(other));
            }
        }
        let changed = ["120.50", "Systolic", "at0004", "mm[Hg]", r#","items":[]"#, "PARTY_SELF", "true", "Flag"];
        let packed = pack(trees.last().unwrap().root().unwrap(), &NothingKnown, &shapes);
        for (old, new) in changed.into_iter().zip(["120.5", "systolic", "at0005", "mm", "", "PARTY_IDENTIFIED", "false", ""]) {
            let other = json::read(&TEXT.replacen(old, new, 1), Cls::COMPOSITION).unwrap();
            assert!(!packed.gives(other.root().unwrap()), "{old}");
        }
    }

    #[test]
    fn a_shape_comes_back_from_its_text_form() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        for shape in pack(tree.root().unwrap(), &NothingKnown, &Shapes::new()).shapes() {
            let again = Shapes::new().read(&shape.to_text()).unwrap();
            assert_eq!(again, shape);
        }
    }

    #[test]
    fn free_texts_never_stand_in_a_shape() {
        let tree = json::read(TEXT, Cls::COMPOSITION).unwrap();
        let packed = pack(tree.root().unwrap(), &NothingKnown, &Shapes::new());
        assert!(packed.shapes().iter().all(|s| !s.to_text().contains("Dr ") && !s.to_text().contains("Systolic")));
    }
}
