//! Keys that are possible at a position, for findings about unknown segments and suffixes.

use super::follow::FOLLOWED;
use super::read::{DocumentReader, attr_of, position};
use super::write::{FlatDialect, has_plain_segment};
use super::{shown, suffix};
use crate::web::{DURATION_FIELDS, WebNode};
use aqlite_rm::class::{Attr, AttrDef, Cls};
use aqlite_rm::diag::near;

/// The maximum number of candidates of a finding.
const MAX_CANDIDATES: usize = 5;

/// The suffixes of participations that the table of suffixes does not have.
const OF_PARTICIPATION: [&str; 5] = ["mode", "name", "id", "id_scheme", "id_namespace"];

/// The numbered suffixes of parties.
const OF_PARTY: [&str; 4] = [
    "identifiers_issuer",
    "identifiers_assigner",
    "identifiers_id",
    "identifiers_type",
];

/// The segments of an OBSERVATION that are no attributes.
const OF_OBSERVATION: [&str; 3] = [
    "history_origin",
    "data_history_origin",
    "state_history_origin",
];

/// Returns whether the template sets an attribute, so that it has no key.
pub(super) fn is_of_template(attr: Attr) -> bool {
    matches!(attr, Attr::ARCHETYPE_NODE_ID | Attr::ARCHETYPE_DETAILS)
}

impl DocumentReader<'_, '_> {
    /// Reports a segment that is neither a node nor an attribute.
    pub fn refuse_segment(&mut self, segment: &str, class: Cls, web: Option<&WebNode>) {
        if self.is_full() {
            return;
        }
        let (key, found) = (format!("{}/{segment}", self.path), shown(segment));
        let given = suffix::attribute(class, segment);
        if web.is_some() && given.is_some_and(|def| is_of_template(def.attr)) {
            let message = format!("`{found}` has no key: it follows from the template");
            return self.refuse("FLT0101", &key, message, &[]);
        }
        let mut near = self.similar_keys(segment, class, web);
        // A unique node elsewhere with this id is the most probable intention.
        if let [elsewhere] = places(&self.web.tree, segment).as_slice() {
            near.push(elsewhere.clone());
        }
        let near: Vec<&str> = near.iter().map(String::as_str).collect();
        let message = match web.filter(|web| !web.children.is_empty()) {
            Some(_) => format!("`{found}` is neither a node nor an attribute here"),
            None => format!("`{found}` is not an attribute of {class}"),
        };
        self.refuse("FLT0101", &key, message, &near);
    }

    /// Reports a suffix that the class does not have.
    pub fn refuse_suffix(&mut self, name: &str, class: Cls, web: Option<&WebNode>) {
        if self.is_full() {
            return;
        }
        let (key, message) = if name.is_empty() {
            let message = format!("a value of {class} needs a suffix");
            (self.path.clone(), message)
        } else {
            let message = format!("`|{}` is not a suffix of {class}", shown(name));
            (format!("{}|{name}", self.path), message)
        };
        let mut help = match name {
            "" => Vec::new(),
            name => self.similar_keys(&format!("|{name}"), class, web),
        };
        // Without a similar key, all suffixes are shown.
        if help.is_empty() {
            let names = suffix::of(class).map(|s| s.name.to_owned());
            help = names.filter(|name| !name.is_empty()).collect();
        }
        let help: Vec<&str> = help.iter().map(String::as_str).collect();
        self.refuse("FLT0102", &key, message, &help);
    }

    /// Returns the keys at the current position that resemble a segment or, with its bar, a suffix.
    /// The nearest are first; of equal ones those of the same kind.
    fn similar_keys(&self, word: &str, class: Cls, web: Option<&WebNode>) -> Vec<String> {
        let mark = |text: &str| text.chars().find(|c| matches!(c, '_' | '|'));
        let keys = keys_of(class, web);
        let mut names = keys.iter().map(|key| bare(key));
        let mut similar = Vec::new();
        for name in near(bare(word), &mut names) {
            let alike = || keys.iter().filter(|key| bare(key) == name);
            let is_same = |key: &&String| mark(key) == mark(word);
            similar.extend(alike().filter(is_same));
            similar.extend(alike().filter(|key| !is_same(key)));
        }
        let path = |key: &String| match key.starts_with('|') {
            true => format!("{}{key}", self.path),
            false => format!("{}/{key}", self.path),
        };
        similar.into_iter().take(MAX_CANDIDATES).map(path).collect()
    }
}

/// Returns whether a key addresses a node, or an attribute or a suffix of it.
pub(super) fn is_key(root: &WebNode, key: &str) -> bool {
    let (path, name) = key.split_once('|').unwrap_or((key, ""));
    let without_index = |piece: &'_ str| piece.split(':').next().unwrap_or_default().to_owned();
    let mut segments = path.split('/').map(without_index);
    if segments.next().as_deref() != Some(&root.id) {
        return false;
    }
    let mut web = root;
    for segment in segments {
        match position(web, &segment).and_then(|at| web.children.get(at)) {
            Some(kid) => web = kid,
            None => {
                let of_element = web.element().is_some().then_some(Cls::ELEMENT);
                let mut classes = [web.class].into_iter().chain(of_element);
                return classes.any(|class| suffix::attribute(class, &segment).is_some());
            }
        }
    }
    let name = without_index(name);
    name.is_empty()
        || suffix::named(web.class, &name).is_some()
        || special_suffixes(web.class).contains(&name.as_str())
}

/// Returns a segment or a suffix without its mark.
fn bare(key: &str) -> &str {
    key.trim_start_matches(['_', '|'])
}

/// Returns the keys of an object of a class: the ids of nodes below, suffixes with their bar, and
/// attributes of the Reference Model.
fn keys_of(class: Cls, web: Option<&WebNode>) -> Vec<String> {
    let ids = web.into_iter().flat_map(|web| &web.children);
    let mut keys: Vec<String> = ids.map(|kid| kid.id.clone()).collect();
    let suffixes = suffix::of(class).map(|s| s.name);
    let suffixes = suffixes.chain(special_suffixes(class));
    let suffixes = suffixes.filter(|name| !name.is_empty());
    keys.extend(suffixes.map(|name| format!("|{name}")));
    if class == Cls::OBSERVATION {
        keys.extend(OF_OBSERVATION.map(str::to_owned));
    }
    let is_of_element = web.is_some_and(|web| web.element().is_some());
    let of_element = is_of_element.then_some(Cls::ELEMENT);
    for class in [class].into_iter().chain(of_element) {
        // Nodes and suffixes are the shorter keys of the same attributes.
        let is_leaf = |attr: Attr| suffix::of(class).any(|s| s.path == [attr]);
        let has_other_key =
            |attr: Attr| is_of_template(attr) || is_leaf(attr) || is_node(web, attr);
        let attributes = class.attrs().iter().filter(|def| !has_other_key(def.attr));
        keys.extend(attributes.map(|def| segment_of(class, def, web)));
    }
    keys
}

/// Returns the segment of an attribute as the writer spells it.
fn segment_of(class: Cls, def: &AttrDef, web: Option<&WebNode>) -> String {
    let segment = suffix::segment(def.attr, def.card.is_list());
    match has_plain_segment(class, def.attr, web, FlatDialect::Better) {
        true => bare(&segment).to_owned(),
        false => segment,
    }
}

/// Returns whether a node below addresses an attribute directly.
fn is_node(web: Option<&WebNode>, attr: Attr) -> bool {
    let is_direct = |kid: &WebNode| kid.steps.len() == 1 && attr_of(kid) == attr;
    web.is_some_and(|web| web.children.iter().any(is_direct))
}

/// Returns the suffixes of a class that the table of suffixes does not have.
fn special_suffixes(class: Cls) -> Vec<&'static str> {
    match class {
        Cls::DV_DURATION => DURATION_FIELDS.map(|field| field.name).to_vec(),
        Cls::INSTRUCTION_DETAILS => FOLLOWED.to_vec(),
        Cls::PARTICIPATION => [&OF_PARTICIPATION[..], &OF_PARTY].concat(),
        class if class.is_a(Cls::PARTY_PROXY) => OF_PARTY.to_vec(),
        _ => Vec::new(),
    }
}

/// Returns the keys of nodes with an id. The search ends after two, because only a unique one is
/// useful.
fn places(root: &WebNode, id: &str) -> Vec<String> {
    fn walk<'w>(web: &'w WebNode, id: &str, path: &mut Vec<&'w str>, found: &mut Vec<String>) {
        if found.len() > 1 {
            return;
        }
        path.push(&web.id);
        if web.id == id {
            found.push(path.join("/"));
        }
        web.children
            .iter()
            .for_each(|child| walk(child, id, path, found));
        path.pop();
    }
    let mut found = Vec::new();
    walk(root, id, &mut Vec::new(), &mut found);
    found
}
