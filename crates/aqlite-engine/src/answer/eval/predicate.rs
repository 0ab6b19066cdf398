//! Evaluation of predicates in brackets, which are two-valued tests of one node.

use super::bind::may_hold;
use super::node::{Node, View};
use super::value::{Value, compare, compared_bytes, member};
use super::work::{STEP, of_texts};
use crate::answer::plan::Plan;
use crate::answer::query::{CompareOp, Predicate, PredicateValue, Step};
use crate::document::{ItemKind, Layout};
use aqlite_rm::class::Attr;
use aqlite_rm::path::Specialization;
use aqlite_rm::pattern::Pattern;

/// An evaluator of the predicates of one plan over nodes of one batch.
#[derive(Clone, Copy)]
pub(super) struct PredicateEvaluator<'p, 'b> {
    pub plan: &'p Plan,
    pub view: View<'b>,
}

impl<'p, 'b> PredicateEvaluator<'p, 'b> {
    /// Returns whether the node passes; unknown counts as false.
    pub fn holds(self, predicate: &Predicate, node: Node) -> bool {
        match predicate {
            Predicate::And(terms) => terms.iter().all(|t| self.holds(t, node)),
            Predicate::Or(terms) => terms.iter().any(|t| self.holds(t, node)),
            Predicate::NodeId(id) => self
                .view
                .text_at(node, Attr::ARCHETYPE_NODE_ID)
                .is_some_and(|text| matches_node_id(id, text, self.plan.exact)),
            Predicate::Compare(path, op, PredicateValue::Literal(literal)) => {
                let right = Value::of_literal(literal);
                self.any(node, path, &mut |left| self.compares(left, *op, &right))
            }
            Predicate::Compare(path, op, PredicateValue::Path(other)) => {
                self.any(node, path, &mut |left| {
                    self.any(node, other, &mut |right| self.compares(left, *op, right))
                })
            }
            Predicate::Compare(path, op, PredicateValue::Uid(members)) => {
                let expected = Some(*op == CompareOp::Eq);
                self.any(node, path, &mut |left| member(left, members) == expected)
            }
            Predicate::Regex(path, pattern) => self.regex(pattern).is_some_and(|regex| {
                self.any(node, path, &mut |left| {
                    left.as_text().is_some_and(|text| self.matches(regex, text))
                })
            }),
        }
    }

    /// Returns whether a comparison is true, and counts the bytes of its texts.
    #[inline]
    fn compares(self, left: &Value<'_>, op: CompareOp, right: &Value<'_>) -> bool {
        self.view.count(of_texts(compared_bytes(left, op, right)));
        compare(left, op, right) == Some(true)
    }

    /// Returns the compiled form of a regular expression.
    fn regex(self, pattern: &str) -> Option<&'p Pattern> {
        let mut regexes = self.plan.regexes.iter();
        let found = regexes.find(|(source, _)| source == pattern);
        if found.is_none() {
            self.view
                .note_broken("a regular expression was not compiled");
        }
        found.map(|(_, regex)| regex)
    }

    /// Matches a text with a regular expression. The work is at most the product of both lengths.
    fn matches(self, regex: &Pattern, text: &str) -> bool {
        let units = (text.len() as u64).saturating_mul(regex.steps() as u64);
        self.view
            .work()
            .is_none_or(|work| work.add_comparison(units, &mut 0))
            && regex.matches(text)
    }

    /// Returns whether a value at the end of a path passes a test.
    fn any(self, node: Node, path: &[Step], test: &mut dyn FnMut(&Value<'b>) -> bool) -> bool {
        self.reaches(node, path, &mut |n| test(&self.view.value(n)))
    }

    /// Returns whether a node at the end of a path passes a test.
    pub fn reaches(self, node: Node, path: &[Step], test: &mut dyn FnMut(Node) -> bool) -> bool {
        let Some((step, rest)) = path.split_first() else {
            return test(node);
        };
        self.view.count(STEP);
        let such = |layout: &Layout, item: u32| {
            let id = layout.constant(item, Attr::ARCHETYPE_NODE_ID);
            let is_object = layout
                .item(item)
                .is_some_and(|item| item.kind == ItemKind::Object);
            !is_object
                || step
                    .predicate
                    .as_ref()
                    .is_none_or(|p| may_hold(p, id, self.plan.exact))
        };
        !self.view.each_such(node, step.attr, &such, &mut |n| {
            !(step.predicate.as_ref().is_none_or(|p| self.holds(p, n))
                && self.reaches(n, rest, test))
        })
    }
}

/// Returns whether an archetype or node code equals the wanted one or, unless `exact`, specializes
/// it.
pub(super) fn matches_node_id(wanted: &str, text: &str, exact: bool) -> bool {
    let specialization = match exact {
        true => Specialization::Exact,
        false => Specialization::Subsume,
    };
    specialization.matches(wanted, text)
}
