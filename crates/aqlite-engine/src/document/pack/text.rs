//! The compact text form of packed documents, as repositories store it.

use super::{Packed, PackedFragment};
use crate::document::layout::{ItemKind, Layout};
use aqlite_rm::Token;
use aqlite_rm::json::{Scanner, quote_into};
use aqlite_rm::tree::Kind;
use hashbrown::HashMap;
use std::fmt::Write;
use std::sync::Arc;

impl Packed {
    /// Writes the compact text form: `[layout, leaf, leaf, [fragment, fragment], …]`, with leaf
    /// values and repeated groups in document order.
    ///
    /// Numbers and booleans are written as they were sent, texts as JSON strings. A number in the
    /// place of a text is a reference: `n` to `known[n]`, which the reader needs too, and `-n` to
    /// the n-th string of this text, counted from 1.
    ///
    /// In `[7,120,"mm[Hg]",[[9,"sitting"],[9,-2]],-1]`, layout 7 has a number, a text, a repeated
    /// group and a text. The group has two fragments of layout 9 with the text `sitting`, the second
    /// string. The last text is `mm[Hg]`, the first string.
    ///
    /// Returns `None` if `id_of` has no id for a layout of the document.
    pub fn to_text(
        &self,
        id_of: &dyn Fn(&Layout) -> Option<u64>,
        known: &[&str],
    ) -> Option<String> {
        let out = String::with_capacity(self.text.len() * 2);
        let mut writer = Writer {
            packed: self,
            id_of,
            known,
            strings: 0,
            // There is about one text in twelve bytes, so the table hardly grows.
            first: HashMap::with_capacity(self.text.len() / 12),
            out,
        };
        writer.fragment(&self.root)?;
        Some(writer.out)
    }

    /// Parses the text that [`Packed::to_text`] wrote, with the same `known`.
    ///
    /// # Errors
    /// If the text is damaged, or names a layout that `layout_of` does not know.
    pub fn from_text(
        text: &str,
        layout_of: &dyn Fn(u64) -> Option<Arc<Layout>>,
        known: &[&str],
    ) -> Result<Packed, String> {
        let mut reader = Reader {
            scanner: Scanner::new(text),
            layout_of,
            text: String::with_capacity(text.len()),
            known: Vec::new(),
            strings: Vec::new(),
        };
        // Known texts are copied to the front, so that all leaf values are ranges of one text.
        reader.known = known.iter().map(|text| reader.keep(text)).collect();
        let root = reader.fragment()?;
        Ok(Packed {
            text: reader.text,
            root,
        })
    }
}

/// A writer of the text form.
struct Writer<'a> {
    packed: &'a Packed,
    id_of: &'a dyn Fn(&Layout) -> Option<u64>,
    known: &'a [&'a str],
    /// The number of strings that were written.
    strings: usize,
    /// The number of the string that was the first occurrence of each text.
    first: HashMap<&'a str, usize>,
    out: String,
}

/// The shortest text, in bytes, that a reference can shorten.
const WORTH_A_REFERENCE: usize = 4;

impl<'a> Writer<'a> {
    /// Writes a fragment; `None` if a layout has no id.
    fn fragment(&mut self, fragment: &'a PackedFragment) -> Option<()> {
        let _ = write!(self.out, "[{}", (self.id_of)(&fragment.layout)?);
        for item in fragment.layout.items() {
            match item.kind {
                ItemKind::Leaf(kind, leaf) => {
                    self.out.push(',');
                    let text = self.packed.leaf_text(fragment, leaf);
                    if kind == Kind::Text {
                        self.text(text)
                    } else {
                        self.out.push_str(text)
                    }
                }
                ItemKind::Group(group) => self.group(fragment.groups.get(group as usize))?,
                // Constants belong to the layout and are not written.
                _ => {}
            }
        }
        self.out.push(']');
        Some(())
    }

    /// Writes the child fragments of a repeated group.
    fn group(&mut self, children: Option<&'a Vec<PackedFragment>>) -> Option<()> {
        self.out.push_str(",[");
        for (i, inner) in children.into_iter().flatten().enumerate() {
            self.out.push_str(if i > 0 { "," } else { "" });
            self.fragment(inner)?;
        }
        self.out.push(']');
        Some(())
    }

    fn text(&mut self, text: &'a str) {
        if let Some(number) = self.known.iter().position(|known| *known == text) {
            let _ = write!(self.out, "{number}");
        } else if let Some(first) = self.first.get(text) {
            let _ = write!(self.out, "-{first}");
        } else {
            quote_into(&mut self.out, text);
            // Short strings are counted too, because the reader numbers every string.
            self.strings += 1;
            if text.len() >= WORTH_A_REFERENCE {
                self.first.insert(text, self.strings);
            }
        }
    }
}

struct Reader<'a> {
    scanner: Scanner<'a>,
    layout_of: &'a dyn Fn(u64) -> Option<Arc<Layout>>,
    text: String,
    /// The ranges in `text` of the known texts.
    known: Vec<(u32, u32)>,
    /// The ranges in `text` of the strings so far.
    strings: Vec<(u32, u32)>,
}

const BROKEN: &str = "a packed document is broken";

impl Reader<'_> {
    fn fragment(&mut self) -> Result<PackedFragment, String> {
        self.expect(Token::ArrayStart)?;
        self.rest_of_fragment()
    }

    fn rest_of_fragment(&mut self) -> Result<PackedFragment, String> {
        let Ok(Token::Number(id)) = self.scanner.next_token() else {
            return Err(BROKEN.to_owned());
        };
        let layout = id
            .parse()
            .ok()
            .and_then(self.layout_of)
            .ok_or_else(|| format!("there is no layout {id}"))?;
        let mut leaves = Vec::with_capacity(layout.leaves().len());
        let mut groups = Vec::with_capacity(layout.groups().len());
        for item in layout.items() {
            match item.kind {
                ItemKind::Leaf(kind, _) => leaves.push(self.leaf(kind)?),
                ItemKind::Group(_) => groups.push(self.group()?),
                _ => {}
            }
        }
        self.expect(Token::ArrayEnd)?;
        Ok(PackedFragment {
            layout: Arc::clone(&layout),
            leaves,
            groups,
        })
    }

    fn leaf(&mut self, kind: Kind) -> Result<(u32, u32), String> {
        self.expect(Token::Comma)?;
        match self.scanner.next_token() {
            Ok(Token::String(text)) if kind == Kind::Text => {
                let place = self.keep(&text);
                self.strings.push(place);
                Ok(place)
            }
            Ok(Token::Number(number)) if kind == Kind::Text => {
                self.referred(number).ok_or_else(|| BROKEN.to_owned())
            }
            Ok(Token::Number(text)) if kind == Kind::Number => Ok(self.keep(text)),
            Ok(Token::Boolean(flag)) if kind == Kind::Boolean => {
                Ok(self.keep(if flag { "true" } else { "false" }))
            }
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
            // References to earlier strings count from 1, because 0 has no sign.
            Some(back) => self
                .strings
                .get(back.parse::<usize>().ok()?.checked_sub(1)?)
                .copied(),
            None => self.known.get(number.parse::<usize>().ok()?).copied(),
        }
    }

    fn group(&mut self) -> Result<Vec<PackedFragment>, String> {
        self.expect(Token::Comma)?;
        self.expect(Token::ArrayStart)?;
        let mut fragments = Vec::new();
        loop {
            // A group has at least one fragment, so an empty array is an error.
            fragments.push(self.fragment()?);
            match self.scanner.next_token() {
                Ok(Token::Comma) => {}
                Ok(Token::ArrayEnd) => return Ok(fragments),
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
