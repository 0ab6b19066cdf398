//! Functions that must behave in wasm as they do natively. The same checks run in Node and in a
//! browser.

use aqlite::document::{Layout, LayoutStore, NothingKnown, Packed, pack};
use aqlite::rm::class::Cls;
use aqlite::rm::json;

/// A composition with digits, offsets and letters that a wrong reader would change.
pub const COMPOSITION: &str = include_str!("composition.json");

/// Reads a document and writes it again; `None` when it is refused.
pub fn round_trip(text: &str) -> Option<String> {
    let tree = json::read(text, Cls::COMPOSITION).ok()?;
    tree.root().map(json::write)
}

/// Packs a document to its layout and leaf values as text, and unpacks it.
pub fn pack_and_unpack(text: &str) -> Option<String> {
    let tree = json::read(text, Cls::COMPOSITION).ok()?;
    let layouts = LayoutStore::new();
    let packed = pack(tree.root()?, &NothingKnown, &layouts);
    let known = packed.layouts();
    let id_of = |layout: &Layout| {
        let place = known.iter().position(|k| k.digest() == layout.digest());
        place.map(|place| place as u64)
    };
    let text = packed.to_text(&id_of, &[])?;
    let layout_of = |id: u64| known.get(usize::try_from(id).ok()?).cloned();
    let again = Packed::from_text(&text, &layout_of, &[]).ok()?;
    again.unpack().root().map(json::write)
}
