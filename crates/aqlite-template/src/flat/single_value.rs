//! Values of which the template permits exactly one.

use super::complete::put_code;
use super::read::DocumentReader;
use crate::draft::Draft;
use crate::tree::{Constraint, Interval, Node};
use crate::web::WebNode;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::number;
use std::borrow::Cow;

impl<'r> DocumentReader<'r, '_> {
    /// Returns the value of a node, if the template permits exactly one.
    pub(super) fn only_value(&mut self, kid: &'r WebNode) -> Option<Draft<'r>> {
        match kid.class {
            Cls::DV_CODED_TEXT => self.only_coded_text(kid),
            Cls::DV_ORDINAL | Cls::DV_SCALE => self.only_ordinal(kid),
            Cls::DV_QUANTITY => self.only_quantity(kid),
            Cls::DV_TEXT => {
                let only = only_text(only_node(kid, "value")?)?;
                Some(Draft::holding(Cls::DV_TEXT, Attr::VALUE, only))
            }
            Cls::DV_BOOLEAN => {
                let only = only_boolean(only_node(kid, "value")?)?;
                Some(Draft::object(Cls::DV_BOOLEAN).with(Attr::VALUE, Draft::boolean(only)))
            }
            Cls::DV_COUNT => {
                let only = Draft::leaf(Cls::INTEGER64, only_integer(only_node(kid, "magnitude")?)?);
                Some(Draft::object(Cls::DV_COUNT).with(Attr::MAGNITUDE, only))
            }
            Cls::DV_DURATION => {
                let only = only_duration(kid)?;
                Some(Draft::holding(Cls::DV_DURATION, Attr::VALUE, only))
            }
            _ => None,
        }
    }

    fn only_coded_text(&self, kid: &'r WebNode) -> Option<Draft<'r>> {
        let (terminology, code) = only_code(kid)?;
        let label = self.label(Some(kid), terminology, code)?;
        let mut value = Draft::object(Cls::DV_CODED_TEXT);
        put_code(&mut value, terminology.into(), code.into(), Some(label));
        Some(value)
    }

    fn only_ordinal(&mut self, kid: &'r WebNode) -> Option<Draft<'r>> {
        let Constraint::Ordinal { list } = &kid.value.as_deref()?.constraint else {
            return None;
        };
        let [only] = list.as_slice() else {
            return None;
        };
        self.label(Some(kid), &only.terminology, &only.code)?;
        let mut value = Draft::object(kid.class);
        let class = kid.class.attr(Attr::VALUE)?.ty;
        value.put(
            Attr::VALUE,
            Draft::leaf(class, number::shortest(only.value)),
        );
        self.complete_ordinal(&mut value, Some(kid));
        Some(value)
    }

    fn only_quantity(&mut self, kid: &'r WebNode) -> Option<Draft<'r>> {
        let Constraint::Quantity { list, .. } = &kid.value.as_deref()?.constraint else {
            return None;
        };
        let [only] = list.as_slice() else {
            return None;
        };
        let magnitude = number::shortest(*only_limit(only.magnitude.as_ref()?)?);
        let mut value = Draft::object(Cls::DV_QUANTITY);
        value.put(Attr::MAGNITUDE, Draft::leaf(Cls::REAL, magnitude));
        self.complete_quantity(&mut value, Some(kid));
        Some(value)
    }
}

/// Returns the duration, if the template permits exactly one.
pub(super) fn only_duration(kid: &WebNode) -> Option<&str> {
    match &only_node(kid, "value")?.constraint {
        Constraint::Temporal {
            range: Some(range), ..
        } => only_limit(range).map(String::as_str),
        _ => None,
    }
}

/// Returns the number that an attribute of the value must have, if it is the only one.
pub(super) fn only_real(kid: &WebNode, attribute: &str) -> Option<f64> {
    match &only_node(kid, attribute)?.constraint {
        Constraint::Real { list, .. } if list.len() == 1 => list.first().copied(),
        Constraint::Real { range, .. } => only_limit(range.as_ref()?).copied(),
        _ => None,
    }
}

/// Returns the constraint on an attribute of the value, if there are no alternatives to it.
fn only_node<'w>(kid: &'w WebNode, attribute: &str) -> Option<&'w Node> {
    let path = [attribute];
    let mut nodes = kid.constraints_at(&path);
    nodes.next().filter(|_| nodes.next().is_none())
}

/// Returns the terminology and the code that the template permits, if it is the only one.
pub(super) fn only_code(kid: &WebNode) -> Option<(&str, &str)> {
    let own = kid.value.as_deref().into_iter();
    let own = own.filter(|node| matches!(node.constraint, Constraint::Code { .. }));
    let path = ["defining_code"];
    let mut nodes = own.chain(kid.constraints_at(&path));
    // A second constraint is an alternative, with other codes.
    let node = nodes.next().filter(|_| nodes.next().is_none())?;
    match &node.constraint {
        Constraint::Code {
            terminology,
            codes,
            open: false,
        } => match codes.as_slice() {
            [code] => Some((terminology, code)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the text that a constraint permits, if it is the only one.
fn only_text(node: &Node) -> Option<&str> {
    match &node.constraint {
        Constraint::Text {
            list, open: false, ..
        } => match list.as_slice() {
            [only] => Some(only),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the boolean that a constraint permits, if it is the only one.
fn only_boolean(node: &Node) -> Option<bool> {
    match node.constraint {
        Constraint::Boolean {
            true_valid,
            false_valid,
        } if true_valid != false_valid => Some(true_valid),
        _ => None,
    }
}

/// Returns the digits of the integer that a constraint permits, if it is the only one.
fn only_integer(node: &Node) -> Option<Cow<'static, str>> {
    let Constraint::Integer { range, list } = &node.constraint else {
        return None;
    };
    let only = match list.as_slice() {
        [only] => only.to_string(),
        [] => only_limit(range.as_ref()?)?.text(),
        _ => return None,
    };
    Some(Cow::Owned(only))
}

/// Returns the value that a range contains, if its limits are one value.
fn only_limit<T: PartialEq>(range: &Interval<T>) -> Option<&T> {
    let is_one = range.lower_included && range.upper_included && range.lower == range.upper;
    range.lower.as_ref().filter(|_| is_one)
}
