//! The subsumption questions that `is_a` needs for codes beyond the guide. A host answers them
//! before the run, from a terminology.

use super::compile::{CompiledGuide, Op};
use super::expr::ast::Operator;
use super::run::Terminology;
use super::value::Value;
use aqlite_rm::order;
use aqlite_rm::terminology::name_and_version;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// A question: does a code have this ancestor in its terminology, or is it a member of this value
/// set?
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Subsumption {
    /// The name of the terminology, such as `SNOMED-CT`, without a version.
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
    pub fn answer(&mut self, question: Subsumption, holds: bool) {
        match self.place(&question.terminology, &question.ancestor, &question.code) {
            Ok(at) => self
                .0
                .get_mut(at)
                .into_iter()
                .for_each(|(_, known)| *known = holds),
            Err(at) => self.0.insert(at, (question, holds)),
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
            .map(|(_, holds)| *holds)
    }
}

/// The questions that a run may need, grouped by ancestor. Their number is a product of the codes of
/// the data and the codes of the guide, so they are not kept: a host reads what it can answer.
#[derive(Debug)]
pub struct SubsumptionQuestions<'q> {
    /// By name, ascending.
    terminologies: Vec<TerminologyCodes<'q>>,
}

/// The codes of the data in one terminology, and the ancestors that the guide binds in it.
#[derive(Debug)]
struct TerminologyCodes<'q> {
    name: &'q str,
    /// Different codes, ascending.
    codes: Vec<&'q str>,
    /// Names that differ in case share the ancestors.
    ancestors: Rc<[Ancestor<'q>]>,
}

/// An ancestor, and whether it is a value set. Ordered by code.
type Ancestor<'q> = (&'q str, bool);

/// The questions about one ancestor, one for each code.
#[derive(Clone, Copy, Debug)]
pub struct AncestorQuestions<'q> {
    /// The name of the terminology in the data.
    pub terminology: &'q str,
    /// The code, or the address of the value set, that is bound to a term of the guide.
    pub ancestor: &'q str,
    /// Whether the ancestor is a value set.
    pub is_set: bool,
    codes: &'q [&'q str],
}

impl SubsumptionQuestions<'_> {
    /// Iterates over the ancestors, in the order of terminologies and ancestors.
    pub fn ancestors(&self) -> impl Iterator<Item = AncestorQuestions<'_>> {
        self.terminologies.iter().flat_map(|terminology| {
            let ancestors = terminology.ancestors.iter();
            ancestors.map(|&(ancestor, is_set)| AncestorQuestions {
                terminology: terminology.name,
                ancestor,
                is_set,
                codes: &terminology.codes,
            })
        })
    }
}

impl<'q> AncestorQuestions<'q> {
    /// Iterates over the questions, in the order of codes. A code is its own ancestor without a
    /// question.
    pub fn questions(self) -> impl Iterator<Item = Subsumption> + 'q {
        let codes = self
            .codes
            .iter()
            .filter(move |code| **code != self.ancestor);
        codes.map(move |code| Subsumption {
            terminology: self.terminology.to_owned(),
            ancestor: self.ancestor.to_owned(),
            is_set: self.is_set,
            code: (*code).to_owned(),
        })
    }
}

impl CompiledGuide {
    /// Returns the questions that a run on these values may need: for each code of the values, and
    /// each term on the right of an `is_a` that is bound in the terminology of the code.
    pub fn subsumptions<'q>(
        &'q self,
        values: impl IntoIterator<Item = &'q Value>,
    ) -> SubsumptionQuestions<'q> {
        let ancestors = self.ancestors_by_terminology();
        let mut codes: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
        if !ancestors.is_empty() {
            let values = values.into_iter().chain(&self.constants);
            for (name, code) in values.filter_map(key) {
                if let Some(known) = codes.get_mut(name) {
                    known.insert(code);
                } else if ancestors.contains_key(&name.to_ascii_lowercase()) {
                    codes.insert(name, HashSet::from([code]));
                }
            }
        }
        let terminologies = codes.into_iter().filter_map(|(name, codes)| {
            let ancestors = ancestors.get(&name.to_ascii_lowercase())?.clone();
            let codes = order::distinct(codes);
            Some(TerminologyCodes {
                name,
                codes,
                ancestors,
            })
        });
        SubsumptionQuestions {
            terminologies: terminologies.collect(),
        }
    }

    /// Returns the codes and value sets that the terms of `is_a` are bound to, by the name of the
    /// terminology in lower case.
    fn ancestors_by_terminology(&self) -> HashMap<String, Rc<[Ancestor<'_>]>> {
        let terms: HashSet<&str> = self.terms_of_is_a().into_iter().collect();
        let mut found: HashMap<String, Vec<Ancestor<'_>>> = HashMap::new();
        for binding in &self.guide.term_bindings {
            let sets: HashSet<&str> = binding.sets.iter().map(|(_, set)| &**set).collect();
            let codes = binding.codes.iter().map(|(term, codes)| (term, &**codes));
            let addresses = binding.sets.iter();
            let addresses = addresses.map(|(term, set)| (term, std::slice::from_ref(set)));
            let bound = codes
                .chain(addresses)
                .filter(|(term, _)| terms.contains(&***term));
            let bound = bound.flat_map(|(_, codes)| codes.iter().map(|code| &**code));
            let (name, _) = name_and_version(&binding.terminology);
            let name = name.to_ascii_lowercase();
            let ancestors = bound.map(|code: &str| (code, sets.contains(code)));
            found.entry(name).or_default().extend(ancestors);
        }
        let found = found
            .into_iter()
            .filter(|(_, ancestors)| !ancestors.is_empty());
        found
            .map(|(name, ancestors)| (name, order::distinct(ancestors).into()))
            .collect()
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

/// Returns the name of the terminology and the code of a coded value.
fn key(value: &Value) -> Option<(&str, &str)> {
    let code = value.code()?;
    Some((name_and_version(&code.terminology).0, &code.code))
}
