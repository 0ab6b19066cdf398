//! From a document to keys, along the web template and the class table.
//!
//! The written keys are read again. If the shortest keys are read as another document, longer ones
//! are written: the class of an object, its attributes one by one instead of suffixes of the
//! enclosing object, or the absence of a value that readers complete. An object that no keys can
//! represent is written as canonical JSON under `|raw`.

use super::compare::{self, Detail};
use super::fill::usual_actions;
use super::form::{KeyTree, Shape, Value};
use super::{print, read, suffix};
use crate::tree::Template;
use crate::web::{Level, Step, WebNode, WebTemplate};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::json;
use aqlite_rm::number;
use aqlite_rm::order;
use aqlite_rm::time::{Temporal, TemporalKind};
use aqlite_rm::tree::{Kind, NodeId, NodeRef};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

mod matching;
mod value;

use matching::{has_step_id, is_nearest, is_value_of, matches_step, unnumbered};
use value::scalar;

/// The dialect of the keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum FlatDialect {
    /// The dialect of Better's libraries.
    #[default]
    Better,
    /// The dialect of EHRbase.
    Ehrbase,
}

/// One key with its value.
pub(super) struct Entry<'d> {
    pub key: String,
    pub value: Value<'d>,
    /// The class of the object that has the value.
    pub class: Cls,
}

/// An object that matches a node, and the value in it.
type Found<'d> = (NodeRef<'d>, Option<NodeRef<'d>>);

/// The bytes that are counted for a key and its value besides their texts.
const FRAME: usize = 8;

/// The maximum number of comparisons of objects with nodes in one attempt.
const MAX_WORK: usize = 20_000_000;

/// The number of attempts before the whole document is written as `|raw`.
const ROUNDS: usize = 8;

/// The attributes that the path of an object implies.
const IDENTITY: [Attr; 3] = [Attr::ARCHETYPE_NODE_ID, Attr::NAME, Attr::ARCHETYPE_DETAILS];

/// The classes whose attributes are segments without an underscore.
const PLAIN: [Cls; 7] = [
    Cls::DV_INTERVAL,
    Cls::REFERENCE_RANGE,
    Cls::TERM_MAPPING,
    Cls::FEEDER_AUDIT,
    Cls::FEEDER_AUDIT_DETAILS,
    Cls::EVENT,
    Cls::ISM_TRANSITION,
];

/// The other attributes whose segments have no underscore.
const PLAIN_ATTRIBUTES: [Attr; 3] = [Attr::RELATIONSHIP, Attr::EXPIRY_TIME, Attr::NARRATIVE];

/// The attributes of which EHRbase has nodes, also where the template does not constrain them.
const NODES_OF_EHRBASE: [Attr; 3] = [Attr::CONTEXT, Attr::START_TIME, Attr::SETTING];

/// Removes the indexes that are 0 from a key.
fn without_first(key: &str) -> String {
    key.replace(":0/", "/").trim_end_matches(":0").to_owned()
}

/// Writes a document as keys. Returns the text and the content that the keys cannot represent, or
/// `None` if the keys exceed `most` bytes or need too much work.
pub(super) fn write_document(
    document: NodeRef<'_>,
    shape: Shape,
    template: &Template,
    web: &WebTemplate,
    dialect: FlatDialect,
    most: usize,
) -> Option<(String, Vec<&'static str>)> {
    let (mut detail, mut rounds) = (Detail::default(), 0);
    loop {
        let writer = Writer::within(document, web, Some(template), dialect, &detail, most);
        if writer.is_full {
            return None;
        }
        let form = KeyTree::from_keys(writer.out.iter().map(|e| (e.key.as_str(), &e.value)));
        let outcome = match read::read_document(&form, template, web, None) {
            Ok(again) => compare::compare(document, again.root(), &writer.places, &detail),
            Err(findings) => {
                let owners =
                    writer.owners_of(findings.iter().map(|f| f.path.as_str()), document.id());
                compare::refused(document, &owners, &detail)
            }
        };
        // The loop ends: each round adds exceptions, and after `ROUNDS` the whole document is one.
        if outcome.more.is_empty() || rounds > ROUNDS {
            return Some((print::text(&writer.out, shape), outcome.left));
        }
        detail.extend(outcome.more);
        rounds += 1;
        if rounds == ROUNDS {
            detail.raw.insert(document.id());
        }
    }
}

pub(super) struct Writer<'w, 'd> {
    dialect: FlatDialect,
    /// The template with the terms of structures in all languages. Without it their names are
    /// written even if they are terms.
    template: Option<&'w Template>,
    /// The objects for which the shortest keys are not sufficient.
    detail: &'w Detail,
    out: Vec<Entry<'d>>,
    /// The keys of objects that have one.
    pub places: HashMap<NodeId, String>,
    /// Objects that matched a node.
    done: HashSet<NodeId>,
    /// Structures without a node that were written.
    seen: HashSet<NodeId>,
    /// The remaining bytes for keys, values and places.
    bytes: usize,
    /// The remaining comparisons.
    work: usize,
    /// Whether either is exhausted. The output is then discarded.
    is_full: bool,
}

impl<'w, 'd> Writer<'w, 'd> {
    /// Writes the keys of a document of at most `most` bytes. Without such a limit, the work is not
    /// limited either.
    pub fn within(
        document: NodeRef<'d>,
        web: &'w WebTemplate,
        template: Option<&'w Template>,
        dialect: FlatDialect,
        detail: &'w Detail,
        most: usize,
    ) -> Writer<'w, 'd> {
        let mut writer = Writer {
            dialect,
            template,
            detail,
            out: Vec::new(),
            places: HashMap::new(),
            done: HashSet::new(),
            seen: HashSet::new(),
            bytes: most,
            work: if most == usize::MAX { most } else { MAX_WORK },
            is_full: false,
        };
        let composer = document.get(Attr::COMPOSER);
        let is_self = composer.is_some_and(|c| c.class() == Cls::PARTY_SELF);
        if is_self && !detail.raw.contains(&document.id()) {
            let key = String::from("ctx/composer_self");
            writer.push(key, Value::Boolean(true), Cls::DV_BOOLEAN);
        }
        writer.write_container(&web.tree, document, &web.tree.id);
        writer
    }

    /// Returns the innermost objects around refused keys, or the document. A key may omit the index
    /// 0.
    fn owners_of<'k>(
        &self,
        keys: impl Iterator<Item = &'k str>,
        document: NodeId,
    ) -> HashSet<NodeId> {
        let mut places: HashMap<String, NodeId> = HashMap::new();
        let written = self.places.iter();
        for (id, place) in written.filter(|(id, _)| !self.detail.raw.contains(id)) {
            // An ELEMENT and its value share a key. The value is the inner one and has the greater
            // id.
            let inner = places.entry(without_first(place)).or_insert(*id);
            *inner = (*inner).max(*id);
        }
        let owner = |key: &str| {
            let key = without_first(key);
            let ends = key.match_indices(['/', '|', ':']).map(|(at, _)| at);
            let prefixes = ends.chain([key.len()]).filter_map(|end| key.get(..end));
            let mut owners = prefixes.filter_map(|prefix| places.get(prefix));
            owners.next_back().copied()
        };
        keys.map(|key| owner(key).unwrap_or(document)).collect()
    }

    /// Charges bytes and comparisons to the budget.
    fn spend(&mut self, bytes: usize, work: usize) {
        self.is_full |= bytes > self.bytes || work > self.work;
        (self.bytes, self.work) = (
            self.bytes.saturating_sub(bytes),
            self.work.saturating_sub(work),
        );
    }

    fn push(&mut self, key: String, value: Value<'d>, class: Cls) {
        self.spend(FRAME + key.len() + value.text().len(), 1);
        if self.is_full {
            return;
        }
        self.out.push(Entry { key, value, class });
    }

    /// Records the key of an object. Returns true if the object is written as canonical JSON, which
    /// it then is.
    fn write_if_raw(&mut self, node: NodeRef<'d>, path: &str) -> bool {
        self.spend(path.len(), 1);
        if self.is_full {
            return true;
        }
        self.places.insert(node.id(), path.to_owned());
        let is_raw = self.detail.raw.contains(&node.id());
        if is_raw {
            self.write_raw(node, path);
        }
        is_raw
    }

    /// Writes the class of an object for which readers would choose another class, or create no
    /// object.
    fn write_class(&mut self, node: NodeRef<'_>, path: &str) {
        if self.detail.typed.contains(&node.id()) {
            self.push(
                format!("{path}|_type"),
                Value::Text(Cow::Borrowed(node.class().name())),
                node.class(),
            );
        }
    }

    fn write_raw(&mut self, node: NodeRef<'_>, path: &str) {
        self.push(
            format!("{path}|raw"),
            Value::Json(Cow::Owned(json::write(node))),
            node.class(),
        );
    }

    /// Writes an object that is a node with nodes below it.
    fn write_container(&mut self, web: &'w WebNode, node: NodeRef<'d>, path: &str) {
        if self.write_if_raw(node, path) {
            return;
        }
        self.write_class(node, path);
        self.write_name(web.last_step(), node, path);
        self.write_suffixes(node, path, Some(web));
        let has_level = |attr: Attr| web.levels.iter().any(|level| level.step.attr == attr);
        let begins = |kid: &WebNode, attr| kid.steps.first().is_some_and(|s| s.attr == attr);
        let has_node = |attr: Attr| has_level(attr) || web.children.iter().any(|k| begins(k, attr));
        // Attributes before nodes, nodes before what no node matched: each step marks its objects
        // as done.
        for (attr, child) in attributes(node).filter(|(attr, _)| !has_node(*attr)) {
            self.write_attribute(node.class(), attr, child, path, Some(web));
        }
        for kid in &web.children {
            self.write_node(web, kid, node, path);
        }
        let with_nodes = |attr: Attr| has_node(attr) && !has_level(attr);
        for (attr, child) in attributes(node).filter(|(attr, _)| with_nodes(*attr)) {
            if child.kind() == Kind::List || child.class().is_a(Cls::LOCATABLE) {
                self.write_unmatched(attr, child, path);
            } else if !self.done.contains(&child.id()) {
                let path = format!("{path}/{}", suffix::segment(attr, false));
                self.write_attribute_value(child, &path);
            }
        }
        self.write_levels(&web.levels, node, path);
        self.write_origins(node, path);
        self.write_absent(web, node, path);
    }

    /// Writes objects at an attribute that match no node of the web template.
    fn write_unmatched(&mut self, attr: Attr, child: NodeRef<'d>, path: &str) {
        let is_list = child.kind() == Kind::List;
        let members: Vec<NodeRef<'d>> = if is_list {
            child.children().collect()
        } else {
            vec![child]
        };
        let is_left =
            |c: &NodeRef<'d>| !self.done.contains(&c.id()) && c.class().is_a(Cls::LOCATABLE);
        let left: Vec<NodeRef<'d>> = members.into_iter().filter(is_left).collect();
        for (index, member) in left.into_iter().enumerate() {
            self.write_raw(member, &member_path(path, attr, is_list.then_some(index)));
        }
    }

    /// Writes the attributes of structures without a node: `_data/_uid`.
    fn write_levels(&mut self, levels: &'w [Level], node: NodeRef<'d>, path: &str) {
        for level in levels {
            let attr = level.step.attr;
            let is_list = node.get(attr).is_some_and(|n| n.kind() == Kind::List);
            let mut objects = node.values(attr);
            if let Some(object) = objects.find(|object| has_step_id(*object, &level.step))
                && self.seen.insert(object.id())
            {
                let path = member_path(path, attr, is_list.then_some(0));
                self.write_level(level, object, &path);
            }
        }
        for attr in order::distinct(levels.iter().map(|level| level.step.attr)) {
            let is_list = node.get(attr).is_some_and(|n| n.kind() == Kind::List);
            for (index, object) in node.values(attr).enumerate() {
                if !self.seen.contains(&object.id()) && !self.done.contains(&object.id()) {
                    self.write_raw(object, &member_path(path, attr, is_list.then_some(index)));
                }
            }
        }
    }

    fn write_level(&mut self, level: &'w Level, object: NodeRef<'d>, path: &str) {
        let class = object.class();
        if !self.has_keys(object) && !self.detail.typed.contains(&object.id()) {
            // No other key may show that the structure exists.
            let name = Value::Text(Cow::Borrowed(class.name()));
            self.push(format!("{path}|_type"), name, class);
        }
        self.write_class(object, path);
        self.write_level_name(&level.step, object, path);
        let is_level = |attr: Attr| level.below.iter().any(|inner| inner.step.attr == attr);
        for child in object.children() {
            let attr = child.attr();
            let Some(attr) = attr.filter(|a| !IDENTITY.contains(a) && !is_level(*a)) else {
                continue;
            };
            if self.done.contains(&child.id()) || (class, attr) == (Cls::HISTORY, Attr::ORIGIN) {
                continue;
            }
            if child.class().is_a(Cls::LOCATABLE) {
                self.write_unmatched(attr, child, path);
            } else {
                self.write_attribute(class, attr, child, path, None);
            }
        }
        self.write_levels(&level.below, object, path);
    }

    /// Writes the runtime name of a structure, such as that of a single event.
    ///
    /// A term of the template is not written, in whichever language. Most documents in another
    /// language have them, and other systems refuse the keys of structures.
    fn write_level_name(&mut self, step: &Step, object: NodeRef<'d>, path: &str) {
        let Some(name) = object.get(Attr::NAME) else {
            return;
        };
        let text = unnumbered(name.text_at(Attr::VALUE).unwrap_or_default(), step);
        let is_plain = name.class() == Cls::DV_TEXT && name.children().count() == 1;
        let is_known = || {
            let terms = self
                .template
                .map(|template| template.terms_of(step.root, &step.code));
            text == step.label.as_deref().unwrap_or(&step.id)
                || terms.is_some_and(|mut terms| terms.any(|term| term == text))
        };
        let path = format!("{path}/_name");
        match is_plain && !self.is_long(name) {
            true if is_known() => {}
            true => self.push(path, Value::Text(Cow::Borrowed(text)), Cls::DV_TEXT),
            false => self.write_value(name, &path, None),
        }
    }

    /// Returns whether a node inside a structure matched an object.
    fn has_keys(&self, object: NodeRef<'_>) -> bool {
        object.children().any(|child| {
            self.done.contains(&child.id())
                || child.class().is_a(Cls::LOCATABLE) && self.has_keys(child)
        })
    }

    /// Writes the absence of values that readers would complete.
    fn write_absent(&mut self, web: &'w WebNode, node: NodeRef<'d>, path: &str) {
        let Some(missing) = self.detail.absent.get(&node.id()) else {
            return;
        };
        let mut missing = missing.clone();
        order::sort_by_key(&mut missing, |attr| attr.name());
        for attr in missing {
            let kid = web
                .children
                .iter()
                .find(|kid| matches!(kid.steps.as_slice(), [only] if only.attr == attr));
            let segment = kid.map_or_else(|| suffix::segment(attr, false), |kid| kid.id.clone());
            self.push(
                format!("{path}/{segment}|_absent"),
                Value::Boolean(true),
                Cls::BOOLEAN,
            );
        }
    }

    fn write_node(&mut self, web: &'w WebNode, kid: &'w WebNode, node: NodeRef<'d>, path: &str) {
        let mut found = Vec::new();
        self.find_objects(web, kid, &kid.steps, node, &mut found);
        if self.is_full {
            return;
        }
        if !kid.is_repeated() {
            // Further objects belong to siblings with the same name, or have no key.
            found.truncate(1);
        }
        for (index, (object, value)) in found.into_iter().enumerate() {
            let mut path = format!("{path}/{}", self.id_of(kid));
            if kid.is_repeated() {
                path.push(':');
                path.push_str(&index.to_string());
            }
            self.done.insert(object.id());
            // Readers complete this pattern, so it needs no key.
            let is_pattern = object.attr() == Some(Attr::ACTION_ARCHETYPE_ID);
            if !is_pattern || object.text() != usual_actions(web) {
                self.write_object(kid, object, value, &path);
            }
        }
    }

    /// Writes an object that matches a node.
    fn write_object(
        &mut self,
        kid: &'w WebNode,
        object: NodeRef<'d>,
        value: Option<NodeRef<'d>>,
        path: &str,
    ) {
        let start = self.out.len();
        match value {
            _ if kid.element().is_some() => self.write_element(kid, object, value, path),
            Some(value) if kid.class.is_a(Cls::PATHABLE) => self.write_container(kid, value, path),
            Some(value) => self.write_value(value, path, Some(kid)),
            None => {}
        }
        let is_member =
            kid.is_repeated() && kid.element().is_none() && kid.class.is_a(Cls::LOCATABLE);
        if is_member && self.out.len() == start {
            // Without a key, readers would not create this member of the list, and later members
            // would move up.
            let class = object.class();
            let name = Value::Text(Cow::Borrowed(class.name()));
            self.push(format!("{path}|_type"), name, class);
        }
    }

    fn id_of(&self, kid: &'w WebNode) -> Cow<'w, str> {
        match kid
            .class_text
            .strip_prefix("DV_INTERVAL<")
            .filter(|_| self.dialect == FlatDialect::Ehrbase && kid.alias.is_some())
        {
            Some(rest) => Cow::Owned(format!("interval<{}_value", rest.to_ascii_lowercase())),
            None => Cow::Borrowed(&kid.id),
        }
    }

    /// Writes an ELEMENT that is represented by its value.
    fn write_element(
        &mut self,
        kid: &'w WebNode,
        element: NodeRef<'d>,
        value: Option<NodeRef<'d>>,
        path: &str,
    ) {
        if self.write_if_raw(element, path) {
            return;
        }
        let start = self.out.len();
        self.write_class(element, path);
        self.write_name(kid.element(), element, path);
        let is_aside = |a: &Attr| !IDENTITY.contains(a) && *a != Attr::VALUE;
        for child in element.children() {
            if let Some(attr) = child.attr().filter(is_aside) {
                self.write_attribute(Cls::ELEMENT, attr, child, path, None);
            }
        }
        let Some(value) = value else { return };
        if self.detail.raw.contains(&value.id()) && self.out.len() > start {
            self.out.truncate(start);
            return self.write_raw(element, path);
        }
        self.write_value(value, path, Some(kid));
    }

    /// Finds the objects that match a node: those at the end of its steps, and their values.
    fn find_objects(
        &mut self,
        web: &WebNode,
        kid: &WebNode,
        steps: &[Step],
        node: NodeRef<'d>,
        found: &mut Vec<Found<'d>>,
    ) {
        let Some((step, rest)) = steps.split_first() else {
            return;
        };
        let is_element = kid.element().is_some() && rest.len() == 1;
        let is_last = rest.is_empty() || is_element;
        for object in node.values(step.attr) {
            // If siblings share an id, each name is compared with the names of all siblings.
            let rivals = if has_step_id(object, step) {
                web.children.len()
            } else {
                0
            };
            self.spend(0, 1 + rivals);
            if self.is_full {
                return;
            }
            let is_taken = is_last && self.done.contains(&object.id());
            if is_taken || !matches_step(object, step, web, kid) {
                continue;
            }
            // The levels between are not nodes, but they must not be written as raw.
            if !is_last {
                self.done.insert(object.id());
                self.find_objects(web, kid, rest, object, found);
                continue;
            }
            let value = match is_element {
                true => object.get(Attr::VALUE),
                false => Some(object),
            };
            if value.is_none_or(|v| is_value_of(v, kid) && is_nearest(v, web, kid)) {
                found.push((object, value));
            }
        }
    }

    /// Writes the runtime name, unless the template defines it for the node.
    fn write_name(&mut self, step: Option<&Step>, node: NodeRef<'d>, path: &str) {
        let (Some(step), Some(name)) = (step, node.get(Attr::NAME)) else {
            return;
        };
        let full = name.text_at(Attr::VALUE).unwrap_or_default();
        let text = unnumbered(full, step);
        let code = name.text_along(&[Attr::DEFINING_CODE, Attr::CODE_STRING]);
        let is_known = match code {
            Some(code) => step.name_code.as_deref() == Some(code),
            None => text == step.label.as_deref().unwrap_or(&step.id),
        };
        if is_known && !self.is_long(name) {
            return;
        }
        let path = format!("{path}/_name");
        if name.class() == Cls::DV_TEXT && name.children().count() == 1 && !self.is_long(name) {
            self.push(path, Value::Text(Cow::Borrowed(text)), Cls::DV_TEXT);
        } else {
            self.write_value(name, &path, None);
        }
    }

    /// Writes the origin of a history, unless it is the time of its first event.
    fn write_origins(&mut self, node: NodeRef<'d>, path: &str) {
        if node.class() != Cls::OBSERVATION {
            return;
        }
        for (attr, segment) in [
            (Attr::DATA, "data_history_origin"),
            (Attr::STATE, "state_history_origin"),
        ] {
            let Some(history) = node.get(attr) else {
                continue;
            };
            let Some(origin) = history.get(Attr::ORIGIN) else {
                continue;
            };
            let times = history
                .values(Attr::EVENTS)
                .filter_map(|e| e.text_along(&[Attr::TIME, Attr::VALUE]));
            let first = times.min_by_key(|t| {
                Temporal::parse(TemporalKind::DateTime, t).map_or(i64::MAX, |t| t.earliest)
            });
            if first != origin.text_at(Attr::VALUE) || origin.children().count() > 1 {
                self.write_value(origin, &format!("{path}/{segment}"), None);
            }
        }
    }

    /// Writes an attribute of the Reference Model that is not a node.
    fn write_attribute(
        &mut self,
        owner: Cls,
        attr: Attr,
        child: NodeRef<'d>,
        path: &str,
        web: Option<&WebNode>,
    ) {
        let is_list = child.kind() == Kind::List;
        let is_picture = attr == Attr::ORIGINAL_CONTENT && child.class() == Cls::DV_MULTIMEDIA;
        let path = if is_picture {
            format!("{path}/original_content_multimedia")
        } else if has_plain_segment(owner, attr, web, self.dialect) {
            let segment = suffix::segment(attr, is_list);
            format!("{path}/{}", segment.trim_start_matches('_'))
        } else {
            format!("{path}/{}", suffix::segment(attr, is_list))
        };
        if !is_list {
            return self.write_attribute_value(child, &path);
        }
        for (index, member) in child.children().enumerate() {
            self.write_attribute_value(member, &format!("{path}:{index}"));
        }
    }

    fn write_attribute_value(&mut self, child: NodeRef<'d>, path: &str) {
        if child.is_leaf() {
            self.push(path.to_owned(), scalar(child), child.class());
        } else if child.class().is_a(Cls::LOCATABLE) {
            self.write_raw(child, path);
        } else {
            self.write_value(child, path, None);
        }
    }
}

fn is_locatable(attr: Attr) -> bool {
    matches!(attr, Attr::UID | Attr::LINKS | Attr::FEEDER_AUDIT)
}

/// Returns whether the segment of an attribute has no underscore, as those of nodes. `web` is the
/// node that has the attribute.
pub(super) fn has_plain_segment(
    owner: Cls,
    attr: Attr,
    web: Option<&WebNode>,
    dialect: FlatDialect,
) -> bool {
    let is_plain = PLAIN.iter().any(|c| owner.is_a(*c))
        && attr != Attr::REASON
        && !IDENTITY.contains(&attr)
        && !is_locatable(attr);
    // The segment of a node takes precedence, such as that of a SECTION with the name "Context".
    let is_free = || web.is_none_or(|web| web.child(attr.name()).is_none());
    let is_named = PLAIN_ATTRIBUTES.contains(&attr)
        || dialect == FlatDialect::Ehrbase && NODES_OF_EHRBASE.contains(&attr);
    is_plain || is_named && is_free()
}

/// Returns the path of an object that is no node; `index` is its index in a list.
fn member_path(path: &str, attr: Attr, index: Option<usize>) -> String {
    let segment = suffix::segment(attr, index.is_some());
    match index {
        Some(index) => format!("{path}/{segment}:{index}"),
        None => format!("{path}/{segment}"),
    }
}

/// Returns the attributes of an object that are not written as suffixes, each with its value.
fn attributes<'d>(node: NodeRef<'d>) -> impl Iterator<Item = (Attr, NodeRef<'d>)> {
    let has_suffix = move |attr: Attr| {
        let mut suffixes = suffix::of(node.class());
        suffixes.any(|s| s.path.first() == Some(&attr))
    };
    let children = node.children().filter_map(|c| Some((c.attr()?, c)));
    children.filter(move |(attr, _)| !IDENTITY.contains(attr) && !has_suffix(*attr))
}
