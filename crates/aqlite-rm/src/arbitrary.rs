//! Random documents over the class table, for property tests (feature `arbitrary`).

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    missing_docs,
    reason = "only tests compile this module"
)]

use crate::class::{Attr, Cls};
use crate::tree::{Kind, NodeId, Tree};

/// Texts that are known to break readers and writers.
const TEXTS: [&str; 12] = [
    "",
    " ",
    "  leading",
    "a\r\nb",
    "tab\tend ",
    "]]>",
    "<a>&amp;</a>",
    "\"\\/",
    "ä😀é",
    "{\"x\":1}",
    "\u{2028}",
    "at0001",
];
const REALS: [&str; 7] = [
    "0",
    "-0.0",
    "37.50",
    "1e5",
    "1E+5",
    "12345678901234567890123",
    "1.8e400",
];
const INTEGERS: [&str; 4] = ["0", "-1", "9007199254740993", "100"];

/// A deterministic generator of trees (SplitMix64).
pub struct Generator {
    state: u64,
    empty_lists: bool,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator {
            state: seed,
            empty_lists: true,
        }
    }

    /// Returns the generator without empty lists, which XML cannot distinguish from absent ones.
    pub fn without_empty_lists(self) -> Generator {
        Generator {
            empty_lists: false,
            ..self
        }
    }

    /// Returns a tree whose root is an object of a random class.
    pub fn tree(&mut self) -> Tree {
        let mut tree = Tree::new();
        let classes = concrete(Cls::ANY);
        let cls = *self.pick(&classes);
        self.object(&mut tree, None, None, cls, 0);
        tree
    }

    /// Returns the text with some characters changed, removed or doubled.
    pub fn damage(&mut self, text: &str) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=self.next(3) {
            let at = self.next(characters.len());
            match self.next(3) {
                0 => {
                    characters[at] = *self.pick(&[
                        '{', '}', '[', ']', '"', ',', ':', '<', '>', '/', '&', '\\', '0', '-', 'e',
                        '\0', 'é',
                    ])
                }
                1 => drop(characters.remove(at)),
                _ => characters.insert(at, characters[at]),
            }
        }
        characters.into_iter().collect()
    }

    pub fn next(&mut self, below: usize) -> usize {
        // SplitMix64: deterministic, so that a failure can be repeated from its seed.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // 31 bits remain, which also fit in the pointer size of wasm.
        usize::try_from((z ^ (z >> 31)) >> 33).unwrap() % below
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.next(from.len())]
    }

    fn object(
        &mut self,
        tree: &mut Tree,
        parent: Option<NodeId>,
        attr: Option<Attr>,
        cls: Cls,
        depth: usize,
    ) {
        let id = tree.push_object(parent, attr, cls);
        for def in cls.attrs() {
            // The probability decreases with depth, so that trees stay small.
            if depth > 6 || self.next(3 + depth) > 2 {
                continue;
            }
            if def.card.is_list() {
                let list = tree.push_list(id, def.attr, def.ty);
                for _ in 0..self.next(3).max(usize::from(!self.empty_lists)) {
                    self.value(tree, list, def.attr, def.ty, depth + 1);
                }
            } else {
                self.value(tree, id, def.attr, def.ty, depth + 1);
            }
        }
    }

    fn value(&mut self, tree: &mut Tree, parent: NodeId, attr: Attr, ty: Cls, depth: usize) {
        let (kind, text) = match ty {
            Cls::BOOLEAN => (Kind::Boolean, *self.pick(&["true", "false"])),
            Cls::REAL => (Kind::Number, *self.pick(&REALS)),
            Cls::INTEGER | Cls::INTEGER64 => (Kind::Number, *self.pick(&INTEGERS)),
            Cls::STRING | Cls::CHARACTER | Cls::OCTETS => (Kind::Text, *self.pick(&TEXTS)),
            _ => {
                let classes = concrete(ty);
                if !classes.is_empty() {
                    let cls = *self.pick(&classes);
                    self.object(tree, Some(parent), Some(attr), cls, depth);
                }
                return;
            }
        };
        tree.push_leaf(Some(parent), Some(attr), ty, kind, text);
    }
}

fn concrete(of: Cls) -> Vec<Cls> {
    Cls::all()
        .filter(|c| c.is_a(of) && !c.is_abstract() && !c.is_primitive())
        .collect()
}
