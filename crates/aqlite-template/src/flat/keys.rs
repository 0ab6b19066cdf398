//! Translation of paths to keys, for clients that know a document by its keys only.

use super::FlatDialect;
use super::compare::Detail;
use super::write::Writer;
use crate::web::{WebNode, WebTemplate};
use aqlite_rm::class::Attr;
use aqlite_rm::order;
use aqlite_rm::tree::NodeRef;
use std::collections::BTreeMap;

/// The maximum size in bytes of all keys of a document. Beyond it, further places have no key.
const MAX_KEY_BYTES: usize = 50_000_000;

/// Returns the keys of places, given by paths of findings: `/content[0]/data/items[at0004]`.
pub(super) fn keys<'p>(
    document: NodeRef<'_>,
    web: &WebTemplate,
    paths: impl Iterator<Item = &'p str>,
) -> BTreeMap<String, String> {
    let nothing = Detail::default();
    let writer = Writer::within(
        document,
        web,
        None,
        FlatDialect::Better,
        &nothing,
        MAX_KEY_BYTES,
    );
    let keys = |path: &str| Some((path.to_owned(), key(document, web, &writer, path)?));
    order::map(paths.filter_map(keys))
}

/// Returns the key of the innermost existing object, with the id of the missing part.
fn key(
    document: NodeRef<'_>,
    web: &WebTemplate,
    writer: &Writer<'_, '_>,
    path: &str,
) -> Option<String> {
    let (mut at, mut key) = (document, writer.places.get(&document.id())?);
    for part in path.split('/').filter(|p| !p.is_empty()) {
        let (name, predicate) = part.split_once('[').unwrap_or((part, "0"));
        let predicate = predicate.trim_end_matches(']');
        let attr = at.class().attr_named(name)?.attr;
        let found = predicate
            .parse()
            .ok()
            .and_then(|index: usize| at.values(attr).nth(index));
        // The document lacks the item, so the web template supplies the rest of the key.
        let Some(found) = found else {
            return Some(missing(web, key, attr, predicate));
        };
        at = found;
        key = writer.places.get(&at.id()).unwrap_or(key);
    }
    Some(key.clone())
}

fn missing(web: &WebTemplate, key: &str, attr: Attr, predicate: &str) -> String {
    let id = predicate.split(',').next().unwrap_or(predicate);
    let is_meant = |kid: &&WebNode| {
        kid.steps
            .iter()
            .any(|s| s.attr == attr && (s.id == id || predicate == "0"))
    };
    let node = key.split('/').skip(1).try_fold(&web.tree, |node, segment| {
        node.child(segment.split(':').next().unwrap_or(segment))
    });
    match node.and_then(|node| node.children.iter().find(is_meant)) {
        Some(kid) => format!("{key}/{}", kid.id),
        None => key.to_owned(),
    }
}
