//! Positions that a text names by several segments, such as `start_time` and `_start_time`.
//!
//! Their keys are moved below one of the segments, so that the reader finds each position once, and
//! different values of it contradict each other like those of one key.

use super::form::{KeyTree, SegmentInstance};
use super::read::{attr_of, position};
use super::{MAX_FINDINGS, context, suffix};
use crate::web::WebNode;
use aqlite_rm::class::{Attr, AttrDef, Cls};

/// Merges the segments of each position. Returns the keys that have several different values.
pub(super) fn merge_segments(form: &mut KeyTree<'_>, root: &WebNode) -> Vec<String> {
    let mut merge = SegmentMerge::default();
    for part in form.parts_mut() {
        let place = match part.segment.as_ref() {
            "ctx" => ObjectNode::Context,
            segment if segment == root.id => ObjectNode::Object(root.class, Some(root)),
            _ => continue,
        };
        merge.visit_part(part, place);
    }
    merge.conflicts
}

/// The kind of object at a node of the key tree.
#[derive(Clone, Copy)]
enum ObjectNode<'w> {
    Context,
    /// An object of the class or a descendant, and its node if it has one.
    Object(Cls, Option<&'w WebNode>),
}

/// The meaning of a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The child of this index.
    Child(usize),
    Attribute(Attr),
    /// The key of `ctx` of this name.
    Setting(&'static str),
}

#[derive(Default)]
struct SegmentMerge {
    /// The key of the node of the key tree.
    path: String,
    conflicts: Vec<String>,
}

impl SegmentMerge {
    fn visit_part(&mut self, part: &mut SegmentInstance<'_>, place: ObjectNode<'_>) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('/');
        }
        self.path.push_str(&part.segment);
        if part.index > 0 {
            self.path.push_str(&format!(":{}", part.index));
        }
        self.visit(&mut part.form, place);
        self.path.truncate(length);
    }

    fn visit(&mut self, form: &mut KeyTree<'_>, place: ObjectNode<'_>) {
        if form.is_leaf() {
            return;
        }
        // A single segment has no other spelling.
        if form.segments().nth(1).is_some() {
            self.join(form, place);
        }
        for part in form.parts_mut() {
            if let Some(below) = below(place, &part.segment) {
                self.visit_part(part, below);
            }
        }
    }

    /// Joins the segments of a node that have the same position.
    fn join(&mut self, form: &mut KeyTree<'_>, place: ObjectNode<'_>) {
        let mut known: Vec<(Position, &str)> = Vec::new();
        let mut pairs = Vec::new();
        for (segment, _) in form.segments() {
            let Some(position) = position_of(place, segment) else {
                continue;
            };
            match known.iter().find(|(other, _)| *other == position) {
                Some((_, first)) => {
                    // The id is kept, because only it finds the node.
                    let kept = id_of(place, position).unwrap_or(first);
                    pairs.push(((*first).to_owned(), kept.to_owned()));
                    pairs.push((segment.to_owned(), kept.to_owned()));
                }
                None => known.push((position, segment)),
            }
        }
        if pairs.is_empty() {
            return;
        }
        let left = MAX_FINDINGS.saturating_sub(self.conflicts.len());
        let conflicts = form.rename(&pairs).into_iter().take(left);
        let path = &self.path;
        self.conflicts
            .extend(conflicts.map(|key| format!("{path}/{key}")));
    }
}

/// Returns the id of a node below.
fn id_of<'w>(place: ObjectNode<'w>, position: Position) -> Option<&'w str> {
    match (place, position) {
        (ObjectNode::Object(_, Some(web)), Position::Child(at)) => {
            web.children.get(at).map(|child| child.id.as_str())
        }
        _ => None,
    }
}

/// Returns the position that a segment names.
fn position_of(place: ObjectNode<'_>, segment: &str) -> Option<Position> {
    let (class, web) = match place {
        ObjectNode::Context => return context::key_named(segment).map(Position::Setting),
        ObjectNode::Object(class, web) => (class, web),
    };
    if let Some(child) = web.and_then(|web| position(web, segment)) {
        return Some(Position::Child(child));
    }
    let def = attribute(class, web, segment)?;
    let child = web.filter(|_| !def.card.is_list());
    let child = child.and_then(|web| child_of(web, def.attr));
    Some(child.map_or(Position::Attribute(def.attr), Position::Child))
}

/// Returns the kind of object below a segment.
fn below<'w>(place: ObjectNode<'w>, segment: &str) -> Option<ObjectNode<'w>> {
    let ObjectNode::Object(class, web) = place else {
        return None;
    };
    let child = web.and_then(|web| web.children.get(position(web, segment)?));
    match child {
        Some(child) => Some(ObjectNode::Object(child.class, Some(child))),
        None => attribute(class, web, segment).map(|def| ObjectNode::Object(def.ty, None)),
    }
}

/// Returns the attribute that a segment names in a class, in a descendant, or in the ELEMENT around
/// a value.
fn attribute(class: Cls, web: Option<&WebNode>, segment: &str) -> Option<&'static AttrDef> {
    // Most segments of values that the class does not have are no attributes of any class.
    let is_any = || suffix::is_attribute(segment);
    let classes = || is_any().then(Cls::all).into_iter().flatten();
    let descendants = || classes().filter(|other| other.is_a(class));
    let element = web.and_then(WebNode::element);
    let element = element.filter(|_| segment.starts_with('_'));
    suffix::attribute(class, segment)
        .or_else(|| descendants().find_map(|other| suffix::attribute(other, segment)))
        .or_else(|| element.and_then(|_| suffix::attribute(Cls::ELEMENT, segment)))
        .or_else(|| relationship(class, segment))
}

/// Returns the relationship of the performer, which is a segment of the participation.
fn relationship(class: Cls, segment: &str) -> Option<&'static AttrDef> {
    let is_one = class == Cls::PARTICIPATION && segment.trim_start_matches('_') == "relationship";
    Cls::PARTY_RELATED
        .attr(Attr::RELATIONSHIP)
        .filter(|_| is_one)
}

/// Returns the index of the child that is an attribute directly, unless there are several.
fn child_of(web: &WebNode, attr: Attr) -> Option<usize> {
    let is_direct = |child: &WebNode| child.steps.len() == 1 && attr_of(child) == attr;
    let mut children = web.children.iter().enumerate();
    let (at, _) = children.find(|(_, child)| is_direct(child))?;
    children.all(|(_, child)| !is_direct(child)).then_some(at)
}
