//! The expression language of guides: conditions, actions and predicates.

pub(crate) mod ast;
pub(crate) mod parse;
pub(crate) mod token;
