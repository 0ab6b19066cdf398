//! The formalism and the text of a time specification.

use super::super::tree::{Constraint, Node};
use super::{Draft, constrained};
use aqlite_rm::class::{Attr, Cls};

/// Gives the value of a time specification the formalism that its class requires, and a text in it.
/// Parts that the template constrains remain.
///
/// Source: RM Data Types IM, `DV_PERIODIC_TIME_SPECIFICATION` and `DV_GENERAL_TIME_SPECIFICATION`,
/// invariant `Value_valid`.
pub(super) fn complete(draft: &mut Draft, class: Cls, node: Option<&Node>) {
    let (formalism, text) = match class {
        Cls::DV_PERIODIC_TIME_SPECIFICATION => ("HL7:PIVL", "[20261120093000;20261120103000]/(1d)"),
        Cls::DV_GENERAL_TIME_SPECIFICATION => ("HL7:GTS", "[20261120093000;20261120103000]"),
        _ => return,
    };
    let parsable = constrained(node, Attr::VALUE).and_then(|value| value.children.first());
    let Some(value) = draft.get_mut(Attr::VALUE) else {
        return;
    };
    for (attr, usual) in [(Attr::FORMALISM, formalism), (Attr::VALUE, text)] {
        if is_free(parsable, attr) {
            value.put(attr, Draft::text(usual));
        }
    }
}

/// Returns whether a template permits every text of an attribute.
fn is_free(object: Option<&Node>, attr: Attr) -> bool {
    let attribute = constrained(object, attr);
    let mut constraints = attribute.into_iter().flat_map(|a| &a.children);
    constraints.all(|child| match &child.constraint {
        Constraint::Open => true,
        Constraint::Text { pattern, list, .. } => pattern.is_none() && list.is_empty(),
        _ => false,
    })
}
