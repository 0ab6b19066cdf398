//! Rules about classes that the class table does not express: type parameters, and the class that
//! an archetype id names.

use super::Walk;
use crate::build::{Step, path_text};
use crate::class::{Attr, Cls};
use crate::diag::Finding;
use crate::id::ArchetypeId;
use crate::tree::{Kind, NodeRef};

/// An attribute of class DV_INTERVAL, or of REFERENCE_RANGE, whose limits have a known class.
pub(super) struct RangeRule {
    pub(super) cls: Cls,
    attr: Attr,
    parameter: Parameter,
}

/// The type parameter of an interval.
#[derive(Clone, Copy)]
enum Parameter {
    /// The class of the object that has the attribute.
    Own,
    Class(Cls),
}

const fn range(cls: Cls, attr: Attr, parameter: Parameter) -> RangeRule {
    RangeRule {
        cls,
        attr,
        parameter,
    }
}

/// The type parameters of RM 1.1.0. Descendants of DV_ORDERED redefine those of DV_ORDERED.
pub(super) static RANGES: &[RangeRule] = &[
    range(Cls::DV_ORDERED, Attr::NORMAL_RANGE, Parameter::Own),
    range(
        Cls::DV_ORDERED,
        Attr::OTHER_REFERENCE_RANGES,
        Parameter::Own,
    ),
    range(
        Cls::PARTICIPATION,
        Attr::TIME,
        Parameter::Class(Cls::DV_DATE_TIME),
    ),
    range(
        Cls::CONTACT,
        Attr::TIME_VALIDITY,
        Parameter::Class(Cls::DV_DATE),
    ),
    range(
        Cls::ROLE,
        Attr::TIME_VALIDITY,
        Parameter::Class(Cls::DV_DATE),
    ),
    range(
        Cls::CAPABILITY,
        Attr::TIME_VALIDITY,
        Parameter::Class(Cls::DV_DATE),
    ),
    range(
        Cls::PARTY_RELATIONSHIP,
        Attr::TIME_VALIDITY,
        Parameter::Class(Cls::DV_DATE),
    ),
];

impl Walk {
    /// Checks the limits of the intervals that an attribute holds.
    pub(super) fn ranges(&mut self, node: NodeRef<'_>, rule: &RangeRule) {
        let Some(held) = node.get(rule.attr) else {
            return;
        };
        let expected = match rule.parameter {
            Parameter::Own => node.class(),
            Parameter::Class(cls) => cls,
        };
        self.path.push(Step::Attr(rule.attr));
        if held.kind() == Kind::List {
            for (index, member) in held.children().enumerate() {
                self.path.push(Step::Index(index));
                self.reference_range(member, expected);
                self.path.pop();
            }
        } else {
            self.limits(held, expected);
        }
        self.path.pop();
    }

    fn reference_range(&mut self, member: NodeRef<'_>, expected: Cls) {
        if let Some(range) = member.get(Attr::RANGE) {
            self.path.push(Step::Attr(Attr::RANGE));
            self.limits(range, expected);
            self.path.pop();
        }
    }

    fn limits(&mut self, interval: NodeRef<'_>, expected: Cls) {
        for attr in [Attr::LOWER, Attr::UPPER] {
            let Some(limit) = interval.get(attr).filter(|l| !l.class().is_a(expected)) else {
                continue;
            };
            self.path.push(Step::Attr(attr));
            let message = format!("not a limit of DV_INTERVAL<{expected}>");
            self.report(
                Finding::error("RM0204", path_text(&self.path), message)
                    .expected(expected.name())
                    .found(limit.class().name()),
            );
            self.path.pop();
        }
    }

    /// Warns if the data of the events of a HISTORY have several classes: its type parameter is one
    /// ITEM_STRUCTURE.
    pub(super) fn history(&mut self, node: NodeRef<'_>) {
        let data = |event: NodeRef<'_>| event.get(Attr::DATA).map(|data| data.class());
        let mut classes = node.values(Attr::EVENTS).map(data).enumerate();
        let Some(first) = classes.find_map(|(_, class)| class) else {
            return;
        };
        let other = classes.find_map(|(index, class)| {
            class
                .filter(|class| *class != first)
                .map(|class| (index, class))
        });
        if let Some((index, class)) = other {
            let steps = [
                Step::Attr(Attr::EVENTS),
                Step::Index(index),
                Step::Attr(Attr::DATA),
            ];
            let mut path = self.path.clone();
            path.extend(steps);
            let message = "the events of a history have data of several classes";
            self.report(
                Finding::warning("RM0204", path_text(&path), message)
                    .expected(first.name())
                    .found(class.name()),
            );
        }
    }

    /// Checks the class that the archetype id of an object names: the class of the object or an
    /// ancestor (AOM, rule VARDT). A class that the model lacks is not compared. The rule is one of
    /// archetypes, and real systems send an ITEM_SINGLE with an id of an ITEM_TREE: a warning.
    pub(super) fn archetype_class(&mut self, node: NodeRef<'_>) {
        let node_id = [Attr::ARCHETYPE_NODE_ID];
        let details = [Attr::ARCHETYPE_DETAILS, Attr::ARCHETYPE_ID, Attr::VALUE];
        let found = [&node_id[..], &details[..]]
            .into_iter()
            .find_map(|path| Some((path, named_class(node, path)?)));
        let Some((path, named)) = found.filter(|(_, named)| !node.class().is_a(*named)) else {
            return;
        };
        let mut place = self.path.clone();
        place.extend(path.iter().copied().map(Step::Attr));
        let message = format!("the archetype is one of {named}");
        self.report(
            Finding::warning("RM0205", path_text(&place), message)
                .expected(format!("an archetype of {}", node.class()))
                .found(node.text_along(path).unwrap_or_default()),
        );
    }
}

/// Returns the class that the archetype id at a path names.
fn named_class(node: NodeRef<'_>, path: &[Attr]) -> Option<Cls> {
    let id = ArchetypeId::parse(node.text_along(path)?)?;
    Cls::parse(id.class)
}
