//! Supersets: a shape that has the items of several, so that their fragments stand in one table.
//!
//! Attributes and elements of lists may be in some fragments only. What stands at one attribute must be alike in all, else the
//! shapes do not unite; elements that are not alike stand beside one another.

use super::shape::{Item, ItemKind, Shape};
use crate::order;
use crate::rm::class::Attr;

/// A superset has at most this many items.
const MOST_ITEMS: usize = 1 << 12;

/// What comes of laying a shape into a superset.
pub(super) struct Union {
    /// The superset that has both; `None` where it had all items before.
    pub shape: Option<Shape>,
    /// For each new flag: who of the fragments that are there have the item.
    pub flags: Vec<Before>,
    /// The numbers in the superset of the shape's slots.
    pub slots: Vec<u32>,
    /// The numbers in the superset of the shape's runs.
    pub runs: Vec<u32>,
    /// The flags that stand for fragments of the shape.
    pub set: Vec<u32>,
}

/// Which of the fragments that are there have an item that from now on has a flag.
pub(super) enum Before {
    /// None.
    None,
    /// All for which this flag stands; all, where there is none.
    With(Option<u32>),
}

/// Lays `own` into a superset; `flags` are the flags that it has. `None` where they do not unite.
pub(super) fn unite(all: &Shape, own: &Shape, flags: u32) -> Option<Union> {
    let mut laid = Laid { all, own, pairs: Vec::with_capacity(all.items.len()) };
    (laid.lay(0, 0) && laid.pairs.len() <= MOST_ITEMS).then(|| laid.within().unwrap_or_else(|| laid.union(flags)))
}

/// An item of the united shape: where it is in the superset, and where in the shape.
type Pair = (Option<u32>, Option<u32>);

/// Two shapes, one laid upon the other.
struct Laid<'a> {
    all: &'a Shape,
    own: &'a Shape,
    pairs: Vec<Pair>,
}

impl Laid<'_> {
    /// Lays an item upon another, with all below; nothing, when they are not alike.
    fn lay(&mut self, all: u32, own: u32) -> bool {
        let start = self.pairs.len();
        self.pairs.push((Some(all), Some(own)));
        let laid = self.is_alike(all, own) && self.lay_children(all, own);
        if !laid {
            self.pairs.truncate(start);
        }
        laid
    }

    /// True for items that differ in what is below them at most.
    fn is_alike(&self, all: u32, own: u32) -> bool {
        let (Some(a), Some(b)) = (self.all.item(all), self.own.item(own)) else { return false };
        (a.attr, a.class) == (b.attr, b.class)
            && match (a.kind, b.kind) {
                (ItemKind::Object, ItemKind::Object) | (ItemKind::List, ItemKind::List) | (ItemKind::Parts(_), ItemKind::Parts(_)) => true,
                (ItemKind::Slot(one, _), ItemKind::Slot(other, _)) => one == other,
                (ItemKind::Constant(one, ..), ItemKind::Constant(other, ..)) => one == other && self.all.text(a) == self.own.text(b),
                _ => false,
            }
    }

    fn lay_children(&mut self, all: u32, own: u32) -> bool {
        let is_list = self.own.item(own).is_some_and(|item| item.kind == ItemKind::List);
        let theirs: Vec<u32> = self.all.children(all).collect();
        let mut rest = theirs.as_slice();
        let mut waiting = Vec::new();
        for child in self.own.children(own) {
            let found = (0..rest.len()).find(|at| self.lay_behind(rest.get(..=*at).unwrap_or_default(), child, &waiting, own));
            match found {
                Some(at) => {
                    rest = rest.get(at + 1..).unwrap_or_default();
                    waiting.clear();
                }
                // An attribute that is elsewhere, or is another thing, has no second place; a node id belongs to what it names.
                None if !is_list && (self.is_node_id(self.own, child) || theirs.iter().any(|a| self.has_attr_of(*a, child))) => return false,
                None => waiting.push(child),
            }
        }
        let is_named = |shape: &Shape, mut children: std::slice::Iter<'_, u32>| children.any(|child| self.is_node_id(shape, *child));
        if !is_list && is_named(self.all, rest.iter()) {
            return false;
        }
        self.lay_between(rest, &waiting, own);
        true
    }

    /// Lays a child upon the last of some, behind the others and those that wait.
    fn lay_behind(&mut self, theirs: &[u32], child: u32, waiting: &[u32], parent: u32) -> bool {
        let Some((last, before)) = theirs.split_last() else { return false };
        if !self.may_match(*last, child) || before.iter().any(|a| self.is_node_id(self.all, *a)) {
            return false;
        }
        let start = self.pairs.len();
        self.lay_between(before, waiting, parent);
        let laid = self.lay(*last, child);
        if !laid {
            self.pairs.truncate(start);
        }
        laid
    }

    /// Takes what only one of both has, in an order that others are likely to have too: by node id, or as the class has its attributes.
    fn lay_between(&mut self, theirs: &[u32], ours: &[u32], parent: u32) {
        let class = self.own.item(parent).map(|item| item.class);
        let place = |shape: &Shape, item: u32| shape.item(item).and_then(|i| class?.position(i.attr?));
        let mut theirs = theirs.iter().copied().peekable();
        for own in ours {
            let is_first = |all: &u32| (place(self.all, *all), node_id(self.all, *all)) <= (place(self.own, *own), node_id(self.own, *own));
            while let Some(all) = theirs.next_if(is_first) {
                self.pairs.extend(subtree(self.all, all).map(|item| (Some(item), None)));
            }
            self.pairs.extend(subtree(self.own, *own).map(|item| (None, Some(item))));
        }
        for all in theirs {
            self.pairs.extend(subtree(self.all, all).map(|item| (Some(item), None)));
        }
    }

    /// False for children that are known not to be alike: most.
    fn may_match(&self, all: u32, own: u32) -> bool {
        self.is_alike(all, own) && node_id(self.all, all) == node_id(self.own, own)
    }

    fn is_node_id(&self, shape: &Shape, item: u32) -> bool {
        shape.item(item).is_some_and(|item| item.attr == Some(Attr::ARCHETYPE_NODE_ID))
    }

    fn has_attr_of(&self, all: u32, own: u32) -> bool {
        self.all.item(all).map(|item| item.attr) == self.own.item(own).map(|item| item.attr)
    }

    /// What the slots, runs and flags are in a superset that has the shape already.
    fn within(&self) -> Option<Union> {
        let mut union = Union { shape: None, flags: Vec::new(), slots: Vec::new(), runs: Vec::new(), set: Vec::new() };
        for (all, own) in &self.pairs {
            // Where the shape adds nothing, items of the superset are numbered as the pairs are.
            let item = self.all.item((*all)?)?;
            let (parent, has_parent) = (self.all.item(item.parent)?, self.pairs.get(item.parent as usize)?.1.is_some());
            match (own, item.kind) {
                (None, _) if has_parent && item.flag == parent.flag => return None,
                (None, _) => continue,
                (Some(_), ItemKind::Slot(_, slot)) => union.slots.push(slot),
                (Some(_), ItemKind::Parts(run)) => union.runs.push(run),
                _ => {}
            }
            union.set.extend(item.flag);
        }
        Some(Union { set: order::distinct(union.set), ..union })
    }

    /// The superset of both, and what the shape's slots, runs and flags are in it.
    fn union(&self, flags: u32) -> Union {
        let mut making = Making { flags, ..Making::of(self.all, self.own) };
        self.pairs.iter().for_each(|pair| making.push(self, *pair));
        for at in (1..making.shape.items.len()).rev() {
            let Some((parent, end)) = making.shape.items.get(at).map(|item| (item.parent, item.end)) else { continue };
            making.shape.items.get_mut(parent as usize).into_iter().for_each(|parent| parent.end = parent.end.max(end));
        }
        let set = order::distinct(making.set);
        Union { shape: Some(making.shape), flags: making.before, slots: making.own_slots, runs: making.own_runs, set }
    }
}

/// The node id of an object; empty where it is a slot.
fn node_id(shape: &Shape, item: u32) -> Option<&str> {
    shape.child(item, Attr::ARCHETYPE_NODE_ID).and_then(|id| shape.item(id)).map(|id| shape.text(id))
}

fn subtree(shape: &Shape, item: u32) -> std::ops::Range<u32> {
    item..shape.item(item).map_or(item, |i| i.end)
}

/// A superset in the making.
struct Making {
    shape: Shape,
    /// How many flags there are.
    flags: u32,
    before: Vec<Before>,
    /// Where the items of the superset so far, and of the shape, are now.
    all: Vec<u32>,
    own: Vec<u32>,
    own_slots: Vec<u32>,
    own_runs: Vec<u32>,
    set: Vec<u32>,
}

impl Making {
    fn of(all: &Shape, own: &Shape) -> Making {
        let mut shape = Shape::default();
        (shape.slots, shape.parts) = (all.slots.clone(), all.parts.clone());
        let (all, own) = (vec![0; all.items.len()], vec![0; own.items.len()]);
        Making { shape, flags: 0, before: Vec::new(), all, own, own_slots: Vec::new(), own_runs: Vec::new(), set: Vec::new() }
    }

    fn push(&mut self, laid: &Laid<'_>, (all, own): Pair) {
        let index = self.shape.items.len() as u32;
        let old = all.and_then(|all| laid.all.item(all));
        let new = own.and_then(|own| laid.own.item(own));
        let (Some(item), Some(of)) = (old.or(new), if old.is_some() { Some(laid.all) } else { Some(laid.own) }) else { return };
        let place = |places: &[u32], item: &Item| places.get(item.parent as usize).copied().unwrap_or(0);
        let parent = new.map(|item| place(&self.own, item)).or(old.map(|item| place(&self.all, item))).unwrap_or(0);
        let kind = self.kind(of.text(item), item.kind, old.is_some());
        let flag = self.flag(laid, (all, own), parent);
        self.note(kind, index, own.is_some(), flag);
        all.and_then(|all| self.all.get_mut(all as usize)).into_iter().for_each(|place| *place = index);
        own.and_then(|own| self.own.get_mut(own as usize)).into_iter().for_each(|place| *place = index);
        self.shape.items.push(Item { kind, parent, end: index + 1, flag, ..*item });
    }

    /// The kind of an item here: slots and runs keep their numbers, new ones get the next.
    fn kind(&mut self, text: &str, kind: ItemKind, is_old: bool) -> ItemKind {
        match kind {
            ItemKind::Constant(kind, ..) => {
                let start = self.shape.texts.len() as u32;
                self.shape.texts.push_str(text);
                ItemKind::Constant(kind, start, text.len() as u32)
            }
            ItemKind::Slot(kind, _) if !is_old => {
                self.shape.slots.push(0);
                ItemKind::Slot(kind, self.shape.slots.len() as u32 - 1)
            }
            ItemKind::Parts(_) if !is_old => {
                self.shape.parts.push(0);
                ItemKind::Parts(self.shape.parts.len() as u32 - 1)
            }
            kind => kind,
        }
    }

    /// The flag of an item: that of its parent, unless it may be missing there.
    fn flag(&mut self, laid: &Laid<'_>, (all, own): Pair, parent: u32) -> Option<u32> {
        let above = self.shape.item(parent).and_then(|item| item.flag);
        let old = all.and_then(|all| laid.all.item(all));
        let old_above = old.and_then(|item| laid.all.item(item.parent)).and_then(|parent| parent.flag);
        let has_parent = |pairs: &dyn Fn(&Pair) -> bool| laid.pairs.get(parent as usize).is_some_and(pairs);
        match (old, own) {
            (Some(old), _) if old.flag != old_above => old.flag,
            (Some(_), None) if has_parent(&|(_, own)| own.is_some()) => Some(self.add_flag(Before::With(old_above))),
            (None, _) if has_parent(&|(all, _)| all.is_some()) => Some(self.add_flag(Before::None)),
            _ => above,
        }
    }

    fn add_flag(&mut self, before: Before) -> u32 {
        self.before.push(before);
        self.flags += 1;
        self.flags - 1
    }

    fn note(&mut self, kind: ItemKind, index: u32, is_own: bool, flag: Option<u32>) {
        let (places, own, number) = match kind {
            ItemKind::Slot(_, slot) => (&mut self.shape.slots, &mut self.own_slots, slot),
            ItemKind::Parts(run) => (&mut self.shape.parts, &mut self.own_runs, run),
            _ => return self.set.extend(flag.filter(|_| is_own)),
        };
        places.get_mut(number as usize).into_iter().for_each(|place| *place = index);
        own.extend(is_own.then_some(number));
        self.set.extend(flag.filter(|_| is_own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::shape::Shapes;

    fn list(elements: &[&str]) -> String {
        let element = |id: &&str| {
            format!(
                r#"{{"_type":"ELEMENT","archetype_node_id":"{id}","name":{{"_type":"DV_TEXT","value":"{id}"}},"value":{{"_type":"DV_COUNT","magnitude":{{"_slot":"number"}}}}}}"#
            )
        };
        let elements: Vec<String> = elements.iter().map(element).collect();
        format!(r#"{{"_type":"ITEM_LIST","archetype_node_id":"at0000","items":[{}]}}"#, elements.join(","))
    }

    fn united(lists: &[&[&str]]) -> (Shape, u32) {
        let shape = |elements: &[&str]| Shapes::new().read(&list(elements)).unwrap();
        let mut all = (shape(lists[0]), 0);
        for own in &lists[1..] {
            let union = unite(&all.0, &shape(own), all.1).unwrap();
            all.1 += union.flags.len() as u32;
            all.0 = union.shape.map_or(all.0, std::sync::Arc::new);
        }
        (std::sync::Arc::into_inner(all.0).unwrap(), all.1)
    }

    #[test]
    fn elements_find_their_places_between_those_of_others() {
        let lists: [&[&str]; 5] =
            [&["at2", "at5", "at9"], &["at1", "at2", "at7"], &["at3", "at5"], &["at9"], &["at1", "at2", "at3", "at5", "at7", "at9"]];
        let (shape, flags) = united(&lists);
        let expected = united(&[&["at1", "at2", "at3", "at5", "at7", "at9"]]).0;
        assert_eq!(flags, 6, "each may be missing");
        assert_eq!(shape.to_text(), expected.to_text());
    }

    #[test]
    fn another_order_has_places_of_its_own() {
        let (shape, _) = united(&[&["at1", "at2"], &["at2", "at1"]]);
        assert_eq!(shape.to_text(), united(&[&["at1", "at2", "at1"]]).0.to_text());
    }

    #[test]
    fn what_differs_at_one_attribute_does_not_unite() {
        let shape = |value: &str| Shapes::new().read(&format!(r#"{{"_type":"ELEMENT","archetype_node_id":"at1","value":{value}}}"#)).unwrap();
        let number = shape(r#"{"_type":"DV_COUNT","magnitude":{"_slot":"number"}}"#);
        assert!(unite(&number, &shape(r#"{"_type":"DV_TEXT","value":{"_slot":"text"}}"#), 0).is_none());
        assert!(unite(&number, &number, 0).is_some_and(|union| union.shape.is_none() && union.slots == [0]));
    }
}
