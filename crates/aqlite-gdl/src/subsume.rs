//! The subsumption questions that `is_a` needs for codes beyond the guide. A host answers them
//! before the run, from a terminology.

use super::compile::{CompiledGuide, Op};
use super::expr::ast::Operator;
use super::run::Terminology;
use super::value::Value;
use aqlite_rm::order;
use std::collections::HashSet;

/// A question: does a code have this ancestor in its terminology, or is it a member of this value
/// set?
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Subsumption {
    /// The name of the terminology, such as `SNOMED-CT`.
    pub terminology: String,
    /// The code, or the address of the value set, that is bound to a term of the guide.
    pub ancestor: String,
    /// Whether the ancestor is a value set.
    pub is_set: bool,
    /// The code of the data.
    pub code: String,
}

/// Answers to subsumption questions.
#[derive(Clone, Default, Debug)]
pub struct Subsumptions(Vec<(Subsumption, bool)>);

impl Subsumptions {
    /// Adds an answer: whether the question holds.
    pub fn answer(&mut self, question: Subsumption, falls: bool) {
        match self.place(&question.terminology, &question.ancestor, &question.code) {
            Ok(at) => self
                .0
                .get_mut(at)
                .into_iter()
                .for_each(|(_, known)| *known = falls),
            Err(at) => self.0.insert(at, (question, falls)),
        }
    }

    fn place(&self, terminology: &str, ancestor: &str, code: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(s, _)| {
            (&*s.terminology, &*s.ancestor, &*s.code).cmp(&(terminology, ancestor, code))
        })
    }
}

impl Terminology for Subsumptions {
    fn subsumes(&self, terminology: &str, ancestor: &str, code: &str) -> Option<bool> {
        self.place(terminology, ancestor, code)
            .ok()
            .and_then(|at| self.0.get(at))
            .map(|(_, falls)| *falls)
    }
}

impl CompiledGuide {
    /// Returns the questions that a run on these values may need: for each code of the values, and
    /// each term on the right of an `is_a` that is bound in the terminology of the code.
    pub fn subsumptions<'v>(
        &self,
        values: impl IntoIterator<Item = &'v Value>,
    ) -> Vec<Subsumption> {
        let terms = self.terms_of_is_a();
        if terms.is_empty() {
            return Vec::new();
        }
        let mut different: HashSet<(&str, &str)> = HashSet::new();
        values
            .into_iter()
            .for_each(|value| different.extend(key(value)));
        self.constants
            .iter()
            .for_each(|value| different.extend(key(value)));
        order::distinct(
            different
                .into_iter()
                .flat_map(|(terminology, code)| self.asked_of(terminology, code, &terms)),
        )
    }

    fn asked_of(&self, terminology: &str, code: &str, terms: &[&str]) -> Vec<Subsumption> {
        let mut found = Vec::new();
        for binding in self
            .guide
            .term_bindings
            .iter()
            .filter(|b| b.terminology.eq_ignore_ascii_case(terminology))
        {
            for ancestor in terms
                .iter()
                .flat_map(|term| binding.bound_to(term))
                .filter(|ancestor| **ancestor != *code)
            {
                let is_set = binding.sets.iter().any(|(_, set)| set == ancestor);
                found.push(Subsumption {
                    terminology: terminology.to_owned(),
                    ancestor: ancestor.clone(),
                    is_set,
                    code: code.to_owned(),
                });
            }
        }
        found
    }

    /// Returns the terms on the right of an `is_a`.
    fn terms_of_is_a(&self) -> Vec<&str> {
        let right = self.ops.iter().filter_map(|op| match op {
            Op::Binary(Operator::IsA | Operator::IsNotA, _, right) => {
                self.ops.get(usize::try_from(*right).ok()?)
            }
            _ => None,
        });
        let constants = right.filter_map(|op| match op {
            Op::Constant(index) => self.constants.get(usize::try_from(*index).ok()?)?.code(),
            _ => None,
        });
        constants.map(|term| &*term.code).collect()
    }
}

/// Returns the terminology and the code of a coded value.
fn key(value: &Value) -> Option<(&str, &str)> {
    value.code().map(|code| (&*code.terminology, &*code.code))
}
