//! Assignment of objects to the nodes of the web template: by id, name, class and constraint.

use crate::fit::plain_name;
use crate::flat::read;
use crate::tree::{Constraint, QuantityItem};
use crate::web::{Step, WebNode, proportion_kinds};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::number;
use aqlite_rm::tree::NodeRef;

/// Returns whether an object has the id of a step.
pub(super) fn has_step_id(object: NodeRef<'_>, step: &Step) -> bool {
    if object.attr() != Some(step.attr) {
        return false;
    }
    // Data values have no id, and a step without an id accepts any object.
    if step.id.is_empty() || !object.class().is_a(Cls::LOCATABLE) {
        return true;
    }
    let id = object.text_at(Attr::ARCHETYPE_NODE_ID).unwrap_or_default();
    let archetype = object.text_along(&[Attr::ARCHETYPE_DETAILS, Attr::ARCHETYPE_ID, Attr::VALUE]);
    id == step.id || archetype == Some(step.id.as_str())
}

/// Returns whether an object matches a step of a node. If siblings share the id, the name decides.
pub(super) fn matches_step(object: NodeRef<'_>, step: &Step, web: &WebNode, kid: &WebNode) -> bool {
    let is_open = step.class == Cls::ANY || step.class.is_a(Cls::DATA_VALUE);
    if !has_step_id(object, step) || !is_open && !object.class().is_a(step.class) {
        return false;
    }
    let own = name_match(object, step);
    let mut rivals = rivals(step, web, kid).peekable();
    match own {
        NameMatch::None if step.constrained_name().is_some() => rivals.peek().is_none(),
        // A name that no node has may be the runtime name of any node.
        own => !rivals.any(|rival| name_match(object, rival) > own),
    }
}

/// The relation of the runtime name of an object to the name of a node, the weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NameMatch {
    None,
    /// The names are equal without the number of a repeated sibling.
    Plain,
    /// The names, or the codes of the names, are equal.
    Full,
}

fn name_match(object: NodeRef<'_>, step: &Step) -> NameMatch {
    let name = object.text_along(&[Attr::NAME, Attr::VALUE]);
    let name = name.unwrap_or_default();
    let code = object.text_along(&[Attr::NAME, Attr::DEFINING_CODE, Attr::CODE_STRING]);
    if let (Some(own), Some(code)) = (&step.name_code, code) {
        return if code == own {
            NameMatch::Full
        } else {
            NameMatch::None
        };
    }
    // A name in the template may itself end like the number of a repeated sibling.
    match name {
        full if permits(step, full) => NameMatch::Full,
        full if permits(step, plain_name(full)) => NameMatch::Plain,
        _ => NameMatch::None,
    }
}

/// Returns whether a name is the label of a node, or one of the names that the template permits.
fn permits(step: &Step, name: &str) -> bool {
    step.label.as_deref() == Some(name) || step.names.iter().any(|other| other == name)
}

/// Returns a runtime name without the number of a repeated sibling. A name that the template
/// requires is kept, even if it ends like such a number.
pub(super) fn unnumbered<'n>(name: &'n str, step: &Step) -> &'n str {
    let plain = plain_name(name);
    let is_kept = permits(step, name) || !step.names.is_empty() && !permits(step, plain);
    if is_kept { name } else { plain }
}

/// Returns the steps of other nodes with the same attribute and id, but another name.
fn rivals<'w>(
    step: &'w Step,
    web: &'w WebNode,
    kid: &'w WebNode,
) -> impl Iterator<Item = &'w Step> {
    let siblings = web.children.iter().filter(|k| !std::ptr::eq(*k, kid));
    siblings.flat_map(|k| &k.steps).filter(|s| {
        s.attr == step.attr
            && s.id == step.id
            && !step.id.is_empty()
            && (s.label != step.label || s.name_code != step.name_code)
    })
}

pub(super) fn is_value_of(object: NodeRef<'_>, kid: &WebNode) -> bool {
    let class = object.class();
    let fits_parameter = || {
        let parameter = read::parameter(Some(kid));
        let limit = object.get(Attr::LOWER).or_else(|| object.get(Attr::UPPER));
        parameter.zip(limit).is_none_or(|(p, l)| l.class().is_a(p))
    };
    let is_text = class == Cls::DV_TEXT && kid.has_other;
    (class.is_a(kid.class) && (class != Cls::DV_INTERVAL || fits_parameter()))
        || is_text
        || kid.class == Cls::ANY
}

/// Returns whether no alternative of the same position is nearer to a value than this one.
pub(super) fn is_nearest(object: NodeRef<'_>, web: &WebNode, kid: &WebNode) -> bool {
    let is_alternative = |other: &&WebNode| {
        !std::ptr::eq(*other, kid) && has_steps_of(other, kid) && is_value_of(object, other)
    };
    let own = nearness(object, kid);
    let mut others = web.children.iter().filter(is_alternative);
    !others.any(|other| nearness(object, other) > own)
}

/// Returns whether two nodes have the same position, and no id distinguishes them.
fn has_steps_of(a: &WebNode, b: &WebNode) -> bool {
    let pairs = || a.steps.iter().zip(&b.steps);
    let is_open = |step: &Step| step.id.is_empty() || !step.class.is_a(Cls::LOCATABLE);
    a.steps.len() == b.steps.len()
        && pairs().all(|(a, b)| a.attr == b.attr && (a.id == b.id || is_open(a) && is_open(b)))
        && a.last_step().is_some_and(is_open)
}

/// The nearness of a value to a node, the weakest first: equal class, then met constraint.
fn nearness(value: NodeRef<'_>, kid: &WebNode) -> (bool, bool) {
    (value.class() == kid.class, meets(value, kid))
}

/// Returns whether a value meets the constraint that distinguishes alternatives of its class.
fn meets(value: NodeRef<'_>, kid: &WebNode) -> bool {
    match value.class() {
        Cls::DV_QUANTITY => match kid.value.as_deref().map(|node| &node.constraint) {
            Some(Constraint::Quantity { list, .. }) if !list.is_empty() => {
                list.iter().any(|item| is_quantity_of(value, item))
            }
            _ => true,
        },
        Cls::DV_PROPORTION => value
            .text_at(Attr::TYPE)
            .and_then(|kind| kind.parse().ok())
            .is_none_or(|kind| proportion_kinds(kid).contains(&kind)),
        Cls::DV_CODED_TEXT => match kid.codes() {
            Some((terminology, codes)) => is_code_of(value, terminology, codes),
            None => true,
        },
        class if class.is_a(Cls::DATA_VALUE) || class.is_a(Cls::PATHABLE) => true,
        _ => kid.children.iter().all(|below| meets_below(value, below)),
    }
}

/// Returns whether an attribute of an object meets the constraint of its node.
fn meets_below(object: NodeRef<'_>, below: &WebNode) -> bool {
    match below.steps.as_slice() {
        [only] => {
            let value = object.get(only.attr);
            value.is_none_or(|value| is_value_of(value, below) && meets(value, below))
        }
        _ => true,
    }
}

fn is_quantity_of(value: NodeRef<'_>, item: &QuantityItem) -> bool {
    let magnitude = value.text_at(Attr::MAGNITUDE).and_then(number::parse);
    let range = item.magnitude.as_ref().zip(magnitude);
    value.text_at(Attr::UNITS) == Some(item.units.as_str())
        && range.is_none_or(|(range, magnitude)| range.contains(&magnitude))
}

fn is_code_of(value: NodeRef<'_>, terminology: &str, codes: &[String]) -> bool {
    let code = value.text_along(&[Attr::DEFINING_CODE, Attr::CODE_STRING]);
    let own = [Attr::DEFINING_CODE, Attr::TERMINOLOGY_ID, Attr::VALUE];
    let is_listed = |code: &str| codes.iter().any(|other| other == code);
    (codes.is_empty() || code.is_some_and(is_listed))
        && (terminology.is_empty() || value.text_along(&own) == Some(terminology))
}
