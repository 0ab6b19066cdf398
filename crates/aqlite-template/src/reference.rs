//! References inside of a definition: ARCHETYPE_INTERNAL_REF of ADL 1.4 and `use_node` of ADL 2.
//!
//! A reader reads a reference as its target, so the tree has no references. Sources: AOM 1.4 section
//! 4.2.6, AOM 2 section 4.3.5.

use super::limits::TemplateMeter;
use super::tree::{Multiplicity, Node};
use super::xml::{MAX_DEPTH, Xml};

/// The objects around the one that is read.
#[derive(Default)]
pub(super) struct References<'t> {
    /// The objects around it, outermost first.
    around: Vec<Enclosing<'t>>,
    /// The targets that are being read, as offsets in the source. A reference to one of them would
    /// never end.
    open: Vec<usize>,
}

struct Enclosing<'t> {
    xml: Xml<'t>,
    is_archetype: bool,
}

impl<'t> References<'t> {
    /// Enters an object. Paths of references are relative to the root of an archetype.
    pub fn enter(&mut self, xml: Xml<'t>, is_archetype: bool) {
        let is_archetype = is_archetype || self.around.is_empty();
        self.around.push(Enclosing { xml, is_archetype });
    }

    /// Leaves the object that was entered last.
    pub fn leave(&mut self) {
        self.around.pop();
    }

    /// Returns the target of a path: of the nearest archetype that has the path. The caller calls
    /// [`References::arrive`] once the target is read.
    ///
    /// A target that contains the reference, or that would make the tree too deep or too large, is
    /// not returned. Targets with references to each other would double the tree at each step.
    pub fn target(&mut self, path: &str, meter: &TemplateMeter) -> Option<Xml<'t>> {
        let archetypes = self.around.iter().rev().filter(|e| e.is_archetype);
        let found = archetypes
            .filter_map(|e| target(e.xml, path))
            .next()
            .filter(|target| self.is_usable(*target, meter));
        // The offset of a missing target is no position, so each arrival removes one entry.
        self.open
            .push(found.map_or(usize::MAX, |target| target.span().start));
        found
    }

    fn is_usable(&self, target: Xml<'t>, meter: &TemplateMeter) -> bool {
        let start = target.span().start;
        let contains = self.around.iter().any(|e| e.xml.span().start == start);
        !contains
            && !self.open.contains(&start)
            && self.around.len() < MAX_DEPTH / 2
            && meter.has_room()
    }

    /// Ends the reading of a target.
    pub fn arrive(&mut self) {
        self.open.pop();
    }
}

/// Returns the object at a path such as `/data[at0001]/items[at0004]`.
fn target<'t>(root: Xml<'t>, path: &str) -> Option<Xml<'t>> {
    let steps = steps(path);
    let steps = steps.iter().map(|step| step.trim());
    let mut steps = steps.filter(|step| !step.is_empty()).peekable();
    steps.peek()?;
    steps.try_fold(root, |object, step| {
        let (name, id) = step.split_once('[').unwrap_or((step, ""));
        // The predicate may have a name behind the id, which distinguishes no targets.
        let id = id.split([']', ',', ' ']).next().unwrap_or_default();
        let attributes = object.all("attributes");
        let mut children = attributes
            .filter(|attribute| named(*attribute) == Some(name))
            .flat_map(|attribute| attribute.all("children"));
        children.find(|child| id.is_empty() || has_id(*child, id))
    })
}

/// Splits a path at its slashes outside of predicates.
fn steps(path: &str) -> Vec<&str> {
    let mut is_inside = false;
    let split = path.split(|c| {
        is_inside = (is_inside || c == '[') && c != ']';
        c == '/' && !is_inside
    });
    split.collect()
}

fn named<'t>(attribute: Xml<'t>) -> Option<&'t str> {
    let name = attribute.attribute("rm_attribute_name");
    name.or_else(|| attribute.text_along(&["rm_attribute_name"]))
}

/// Returns whether an object has a node id or archetype id, as elements (ADL 1.4) or as attributes
/// (ADL 2).
fn has_id(object: Xml<'_>, id: &str) -> bool {
    let ids = [
        object.attribute("node_id"),
        object.attribute("archetype_ref"),
        object.text_along(&["node_id"]),
        object.text_along(&["archetype_id", "value"]),
    ];
    ids.contains(&Some(id))
}

impl Node {
    /// Returns the target of a reference, with the id and the occurrences of the reference if it has
    /// them.
    pub(super) fn referred(mut self, id: Option<&str>, occurrences: Option<Multiplicity>) -> Node {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            id.clone_into(&mut self.node_id);
        }
        self.occurrences = occurrences.unwrap_or(self.occurrences);
        self
    }
}
