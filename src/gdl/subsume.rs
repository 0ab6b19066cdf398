//! What `is_a` has to know of codes beyond the guide: asked before a run, answered by whoever knows terminologies.

use super::compile::{CompiledGuide, Op};
use super::expr::ast::Operator;
use super::run::Terminology;
use super::value::{Coded, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The question whether a code falls under another of its terminology, or is one of a value set.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Subsumption {
    /// Such as `SNOMED-CT`.
    pub terminology: String,
    /// The code, or the address of the value set, that a term of the guide is bound to.
    pub ancestor: String,
    /// True where it is a value set.
    pub is_set: bool,
    /// The code of the data.
    pub code: String,
}

/// Answers to such questions.
#[derive(Clone, Default, Debug)]
pub struct Subsumptions(BTreeMap<String, BTreeMap<String, BTreeMap<String, bool>>>);

impl Subsumptions {
    /// Adds an answer.
    pub fn answer(&mut self, question: Subsumption, falls: bool) {
        let Subsumption { terminology, ancestor, code, .. } = question;
        self.0.entry(terminology).or_default().entry(ancestor).or_default().insert(code, falls);
    }
}

impl Terminology for Subsumptions {
    fn subsumes(&self, terminology: &str, ancestor: &str, code: &str) -> Option<bool> {
        self.0.get(terminology)?.get(ancestor)?.get(code).copied()
    }
}

impl CompiledGuide {
    /// What a run on these values may ask a terminology: for each code of theirs whose terminology a term is bound in that stands
    /// right of an `is_a`, whether it falls under what the term is bound to.
    pub fn subsumptions<'v>(&self, values: impl IntoIterator<Item = &'v Value>) -> BTreeSet<Subsumption> {
        let terms = self.terms_of_is_a();
        let mut found = BTreeSet::new();
        if terms.is_empty() {
            return found;
        }
        let mut distinct: BTreeSet<&Coded> = BTreeSet::new();
        values.into_iter().for_each(|value| distinct.extend(value.code()));
        self.constants.iter().for_each(|value| distinct.extend(value.code()));
        distinct.into_iter().for_each(|code| self.asked_of(code, &terms, &mut found));
        found
    }

    fn asked_of(&self, code: &Coded, terms: &[&str], found: &mut BTreeSet<Subsumption>) {
        let bindings = self.guide.term_bindings.iter().filter(|b| b.terminology.eq_ignore_ascii_case(&code.terminology));
        for binding in bindings {
            for ancestor in terms.iter().flat_map(|term| binding.bound_to(term)).filter(|ancestor| **ancestor != *code.code) {
                let (terminology, code) = (code.terminology.to_string(), code.code.to_string());
                let is_set = binding.sets.iter().any(|(_, set)| set == ancestor);
                found.insert(Subsumption { terminology, ancestor: ancestor.clone(), is_set, code });
            }
        }
    }

    /// The terms that stand right of an `is_a`.
    fn terms_of_is_a(&self) -> Vec<&str> {
        let right = self.ops.iter().filter_map(|op| match op {
            Op::Binary(Operator::IsA | Operator::IsNotA, _, right) => self.ops.get(usize::try_from(*right).ok()?),
            _ => None,
        });
        let constants = right.filter_map(|op| match op {
            Op::Constant(index) => self.constants.get(usize::try_from(*index).ok()?)?.code(),
            _ => None,
        });
        constants.map(|term| &*term.code).collect()
    }
}
