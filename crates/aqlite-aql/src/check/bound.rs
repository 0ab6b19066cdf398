//! The values of parameters and value sets, made once for all their mentions in a query.
//!
//! A query may name a parameter of megabytes, or a list of 50,000 values, a thousand times. Each
//! mention shares one literal or one list with its indexes.

use super::number::is_number;
use super::{Checker, MAX_NUMBER, Parameter};
use crate::ast;
use crate::query::{LikePattern, List, Literal};
use crate::terminology::{TerminologyAnswer, TerminologyCall, TerminologyError};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// The values of the parameters and value sets that were mentioned so far.
#[derive(Default)]
pub(super) struct BoundValues {
    /// The literals of parameters with one value.
    literals: BTreeMap<String, Literal>,
    lists: BTreeMap<String, BoundList>,
    /// Lists of one long text each.
    singles: BTreeMap<String, Arc<List>>,
    /// The patterns of parameters behind LIKE.
    pub patterns: BTreeMap<String, LikePattern>,
    answers: HashMap<TerminologyCall, Result<Rc<TerminologyAnswer>, TerminologyError>>,
    value_sets: HashMap<TerminologyCall, Arc<List>>,
}

/// The list that a parameter is bound to.
#[derive(Clone)]
pub(super) struct BoundList {
    /// The values.
    pub list: Arc<List>,
    /// The first value that is a text but not a number.
    pub not_number: Option<Literal>,
}

impl Checker<'_> {
    /// Returns the single value that a parameter is bound to.
    pub(super) fn bound(&mut self, name: &ast::Name) -> Option<Literal> {
        if let Some(known) = self.bound.literals.get(&name.text) {
            return Some(known.clone());
        }
        let literal = match self.parameters.get(&name.text) {
            Some(Parameter::List(_)) => {
                let message = format!("the list `${}` cannot stand here", name.text);
                let help = format!(
                    "write a list behind MATCHES: `path matches {{${}}}`",
                    name.text
                );
                return self.error("AQL0302", name.span(), message, help);
            }
            Some(Parameter::Number(text)) if text.len() > MAX_NUMBER => {
                return self.number_too_long(name.span());
            }
            Some(value) => scalar(value)?,
            None if self.options.draft => return Some(Literal::Null),
            None => {
                self.unbound.push((name.text.clone(), name.span()));
                return None;
            }
        };
        self.bound
            .literals
            .insert(name.text.clone(), literal.clone());
        Some(literal)
    }

    /// Returns the single value that a parameter is bound to, as a list.
    pub(super) fn single(&mut self, name: &ast::Name) -> Option<Arc<List>> {
        if let Some(known) = self.bound.singles.get(&name.text) {
            return Some(Arc::clone(known));
        }
        let list = List::new(vec![self.bound(name)?]);
        let singles = &mut self.bound.singles;
        singles.insert(name.text.clone(), Arc::clone(&list));
        Some(list)
    }

    /// Returns the list that a parameter is bound to. The outer `None` means that it is not bound to a
    /// list, the inner one that an error was reported.
    pub(super) fn bound_list(&mut self, name: &ast::Name) -> Option<Option<BoundList>> {
        if let Some(known) = self.bound.lists.get(&name.text) {
            return Some(Some(known.clone()));
        }
        let Some(Parameter::List(values)) = self.parameters.get(&name.text) else {
            return None;
        };
        let too_long =
            |value: &Parameter| matches!(value, Parameter::Number(text) if text.len() > MAX_NUMBER);
        if values.iter().any(too_long) {
            return Some(self.number_too_long(name.span()));
        }
        let Some(literals) = values.iter().map(scalar).collect::<Option<Vec<Literal>>>() else {
            let message = format!("`${}` is a list of lists", name.text);
            let help = "bind it to a list of texts, numbers or booleans";
            return Some(self.error("AQL0302", name.span(), message, help));
        };
        let not_number = literals
            .iter()
            .find(|literal| match literal {
                Literal::Text(text) | Literal::Untyped(text) => !is_number(text),
                _ => false,
            })
            .cloned();
        let bound = BoundList {
            list: List::new(literals),
            not_number,
        };
        self.bound.lists.insert(name.text.clone(), bound.clone());
        Some(Some(bound))
    }

    /// Returns the answer of a terminology. Equal requests are sent once.
    pub(super) fn request(
        &mut self,
        call: &TerminologyCall,
    ) -> Result<Rc<TerminologyAnswer>, TerminologyError> {
        if let Some(known) = self.bound.answers.get(call) {
            return known.clone();
        }
        // Without a source for other services, the author can list the codes.
        let listed = || {
            Err(TerminologyError::Absent(
                "list the codes: `path matches {'a', 'b'}`".to_owned(),
            ))
        };
        let answer = call
            .built_in()
            .unwrap_or_else(|| {
                self.options
                    .terminology
                    .map_or_else(listed, |terminology| terminology.ask(call))
            })
            .map(Rc::new);
        self.bound.answers.insert(call.clone(), answer.clone());
        answer
    }

    /// Returns the codes of a value set as a list.
    pub(super) fn value_set(&mut self, call: &TerminologyCall, codes: &[String]) -> Arc<List> {
        if let Some(known) = self.bound.value_sets.get(call) {
            return Arc::clone(known);
        }
        let text = |code: &String| Literal::Text(code.as_str().into());
        let list = List::new(codes.iter().map(text).collect());
        self.bound
            .value_sets
            .insert(call.clone(), Arc::clone(&list));
        list
    }
}

/// Returns the literal of a parameter with one value; `None` for a list.
fn scalar(value: &Parameter) -> Option<Literal> {
    Some(match value {
        Parameter::Null => Literal::Null,
        Parameter::Boolean(value) => Literal::Boolean(*value),
        Parameter::Number(text) => Literal::Number(text.as_str().into()),
        // JSON clients send numbers and booleans as texts too. Such a text has the type of the value
        // that it is compared with, as in a URL.
        Parameter::Text(text) | Parameter::Untyped(text) if text.len() > MAX_NUMBER => {
            Literal::Text(text.as_str().into())
        }
        Parameter::Text(text) if is_number(text) || text.trim().parse::<bool>().is_ok() => {
            Literal::Untyped(text.as_str().into())
        }
        Parameter::Text(text) => Literal::Text(text.as_str().into()),
        Parameter::Untyped(text) => Literal::Untyped(text.as_str().into()),
        Parameter::List(_) => return None,
    })
}
