//! The alternatives that the grammar has at a place of a text. Diagnostics list them, and
//! completion offers them.

use super::vocabulary::{Clause, Keyword};
use std::borrow::Cow;

/// One alternative of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A clause, by its first words.
    Clause(Clause),
    /// A reserved word.
    Word(Keyword),
    /// `NOT CONTAINS`, which is one operator.
    NotContains,
    /// A sign.
    Sign(char),
    /// The end of the text.
    End,
    /// A column of SELECT.
    Column,
    /// A name behind AS.
    Name,
    /// The alias of a column.
    Alias,
    /// The number of TOP, LIMIT or OFFSET.
    WholeNumber,
    /// A number behind a sign.
    Number,
    /// A class of FROM.
    ClassName,
    /// A variable of FROM.
    Variable,
    /// An identified path.
    Path,
    /// A path or function, on the left of a comparison.
    PathOrFunction,
    /// A function, on the left of a comparison.
    Function,
    /// The right side of a comparison.
    Value,
    /// An argument of a function.
    Argument,
    /// A literal.
    Literal,
    /// A parameter.
    Parameter,
    /// A quoted string.
    Text,
    /// The first argument of TERMINOLOGY.
    Operation,
    /// The second argument of TERMINOLOGY.
    Service,
    /// The third argument of TERMINOLOGY.
    ServiceParameters,
    /// The address of a value set.
    Uri,
    /// A comparison operator.
    Comparison,
    /// An attribute of a path.
    Attribute,
    /// A predicate in brackets.
    Predicate,
    /// The name of a node, behind its id.
    NodeName,
    /// A regular expression in braces.
    Regex,
}

impl Expected {
    /// Returns the alternative as a diagnostic names it: words and signs in back-ticks, others as
    /// phrases.
    pub fn text(self) -> Cow<'static, str> {
        let phrase = match self {
            Expected::Clause(clause) => return format!("`{}`", clause.title()).into(),
            Expected::Word(word) => return format!("`{}`", word.text()).into(),
            Expected::Sign(sign) => return format!("`{sign}`").into(),
            Expected::NotContains => "`NOT CONTAINS`",
            Expected::End => "the end of the query",
            Expected::Column => "a column",
            Expected::Name => "a name",
            Expected::Alias => "a column's alias",
            Expected::WholeNumber => "a whole number",
            Expected::Number => "a number",
            Expected::ClassName => "a class name",
            Expected::Variable => "a variable",
            Expected::Path => "a path",
            Expected::PathOrFunction => "a path or function",
            Expected::Function => "a function",
            Expected::Value => "a value",
            Expected::Argument => "an argument",
            Expected::Literal => "a literal",
            Expected::Parameter => "a parameter",
            Expected::Text => "a string",
            Expected::Operation => "a string (the operation)",
            Expected::Service => "a string (the service)",
            Expected::ServiceParameters => "a string (the parameters)",
            Expected::Uri => "a URI",
            Expected::Comparison => "a comparison",
            Expected::Attribute => "an attribute",
            Expected::Predicate => "a predicate",
            Expected::NodeName => "a node name",
            Expected::Regex => "a regular expression `{/…/}`",
        };
        phrase.into()
    }

    /// Returns whether the alternative is written as it is shown: a word or a sign.
    pub fn is_verbatim(self) -> bool {
        matches!(
            self,
            Expected::Clause(_) | Expected::Word(_) | Expected::Sign(_) | Expected::NotContains
        )
    }

    /// Returns whether the alternative is an argument of TERMINOLOGY.
    pub fn is_terminology_argument(self) -> bool {
        matches!(
            self,
            Expected::Operation | Expected::Service | Expected::ServiceParameters
        )
    }
}
