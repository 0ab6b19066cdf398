//! The syntax tree of a query, as written, with the position of every part in the text.
//!
//! Trees are equal if they have the same content: positions ([`At`]) are not compared.

use super::query::{AggregateFunction, CompareOp};
use aqlite_rm::diag::Span;

/// The position of a part in the source text. All positions are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct At(pub Span);

impl PartialEq for At {
    fn eq(&self, _: &At) -> bool {
        true
    }
}

/// A whole query (AQL § 3.13).
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The clause SELECT.
    pub select: Select,
    /// The clause FROM.
    pub from: Containment,
    /// The clause WHERE.
    pub condition: Option<Condition>,
    /// The keys of ORDER BY, most significant first; empty without the clause.
    pub order: Vec<OrderKey>,
    /// The clause LIMIT.
    pub limit: Option<Limit>,
}

/// `SELECT [DISTINCT] [TOP n] columns`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// Whether DISTINCT is present.
    pub distinct: bool,
    /// TOP, the deprecated form of LIMIT.
    pub top: Option<Top>,
    /// The columns, at least one.
    pub columns: Vec<Column>,
    /// From SELECT to the last column.
    pub at: At,
}

/// `TOP n [FORWARD | BACKWARD]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Top {
    /// The number n, as written.
    pub count: Name,
    /// Whether BACKWARD is present.
    pub backward: bool,
    /// The clause, from TOP on.
    pub at: At,
}

/// `LIMIT n [OFFSET m]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The number n, as written.
    pub count: Name,
    /// The number m, as written.
    pub offset: Option<Name>,
    /// The clause, from LIMIT on.
    pub at: At,
}

/// A text that the author chose: a variable, an alias, an attribute, a parameter without its `$`,
/// or digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The text, as written.
    pub text: String,
    /// The position.
    pub at: At,
}

/// `expression [AS alias]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The value of the column.
    pub value: ColumnValue,
    /// The alias.
    pub alias: Option<Name>,
    /// The source range.
    pub at: At,
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValue {
    /// A path, a literal or a single-row function.
    Expr(Expr),
    /// An aggregate function.
    Aggregate(Aggregate),
}

/// An aggregate function with its argument: `COUNT(*)`, `MAX(path)` …
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The function.
    pub function: AggregateFunction,
    /// Whether DISTINCT precedes the path.
    pub distinct: bool,
    /// The argument; `None` for `*`.
    pub path: Option<Path>,
    /// The source range.
    pub at: At,
}

/// A value of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A path from a variable.
    Path(Path),
    /// A literal.
    Literal(Literal),
    /// `$name`.
    Parameter(Name),
    /// A single-row function.
    Call(Call),
    /// `TERMINOLOGY(…)`.
    Terminology(Terminology),
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// The value.
    pub value: LiteralValue,
    /// The position.
    pub at: At,
}

/// The value of a literal, as written.
#[derive(Clone, Debug, PartialEq)]
pub enum LiteralValue {
    /// `NULL`.
    Null,
    /// `true`, `false`.
    Boolean(bool),
    /// A number: its digits as written, with its sign.
    Number(String),
    /// A string as written, with its quotes and escapes.
    Text(String),
}

/// `name(arguments)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function's name as written.
    pub name: Name,
    /// Its arguments.
    pub arguments: Vec<Expr>,
    /// The source range.
    pub at: At,
}

/// `TERMINOLOGY(operation, service, parameters)`: three strings, with their quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminology {
    /// The operation: `expand`, `validate`, `subsumes` …
    pub operation: String,
    /// The service: `hl7.org/fhir/4.0` …
    pub service: String,
    /// The parameters of the operation.
    pub parameters: String,
    /// The source range.
    pub at: At,
}

/// A containment of FROM (§ 3.13.2).
#[derive(Clone, Debug, PartialEq)]
pub enum Containment {
    /// One class expression.
    Class(Box<ClassExpr>),
    /// Two or more, joined by AND.
    And(Vec<Containment>),
    /// Two or more, joined by OR.
    Or(Vec<Containment>),
}

/// `CLASS variable[predicate] [NOT] CONTAINS …`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassExpr {
    /// The class name as written; `VERSION` too.
    pub class: Name,
    /// The variable.
    pub variable: Option<Name>,
    /// The predicate in brackets.
    pub predicate: Option<ClassPredicate>,
    /// The right side of CONTAINS.
    pub contains: Option<Contains>,
}

/// The predicate of a class expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassPredicate {
    /// `[LATEST_VERSION]`.
    LatestVersion,
    /// `[ALL_VERSIONS]`.
    AllVersions,
    /// Any other predicate.
    Node(Predicate),
}

/// `[NOT] CONTAINS …`.
#[derive(Clone, Debug, PartialEq)]
pub struct Contains {
    /// Whether NOT precedes CONTAINS.
    pub negated: bool,
    /// The containment that must exist, or must not.
    pub inner: Containment,
    /// The words `CONTAINS` or `NOT CONTAINS`.
    pub at: At,
}

/// `variable[root predicate]/step/step`.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The variable.
    pub variable: Name,
    /// The predicate directly behind the variable.
    pub root: Option<Predicate>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The source range.
    pub at: At,
}

/// `attribute[predicate]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The attribute.
    pub attribute: Name,
    /// The predicate.
    pub predicate: Option<Predicate>,
}

/// A predicate in brackets (§ 3.6).
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// Two or more, joined by AND.
    And(Vec<Predicate>),
    /// Two or more, joined by OR.
    Or(Vec<Predicate>),
    /// `at0001`, `openEHR-…` or `$p`, optionally with a name behind a comma.
    Node(NodePredicate),
    /// `path op value`.
    Compare(Box<ComparePredicate>),
    /// `path matches {/…/}`.
    Regex(RegexPredicate),
}

/// `at0001, 'name'`.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePredicate {
    /// The id of the node.
    pub id: NodeId,
    /// The name of the node.
    pub name: Option<NodeName>,
    /// The position of the id.
    pub at: At,
}

/// The id of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeId {
    /// An at- or id-code.
    Code(String),
    /// An archetype id.
    Archetype(String),
    /// A parameter that holds one of them.
    Parameter(Name),
}

/// The name of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeName {
    /// The runtime name: a string with its quotes.
    Text(String),
    /// A parameter that holds the runtime name.
    Parameter(Name),
    /// The code of a name: `terminology::code|rubric|` as written.
    Term(String),
    /// The code of a name in the local terminology.
    Code(String),
}

/// `path op value` in brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparePredicate {
    /// The path, relative to the node.
    pub path: Vec<Step>,
    /// The operator.
    pub op: CompareOp,
    /// The right side.
    pub value: PredicateValue,
    /// The source range.
    pub at: At,
}

/// The right side of a comparison in brackets.
#[derive(Clone, Debug, PartialEq)]
pub enum PredicateValue {
    /// A literal.
    Literal(Literal),
    /// A parameter.
    Parameter(Name),
    /// Another path from the node.
    Path(Vec<Step>),
    /// A bare at- or id-code.
    Code(String),
}

/// `path matches {/regex/}` in brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct RegexPredicate {
    /// The path, relative to the node.
    pub path: Vec<Step>,
    /// The expression with its braces, as written.
    pub regex: Name,
}

/// A condition of WHERE (§ 3.13.3).
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Two or more, joined by AND.
    And(Vec<Condition>),
    /// Two or more, joined by OR.
    Or(Vec<Condition>),
    /// `NOT condition`.
    Not(Box<Condition>),
    /// `EXISTS path`.
    Exists(Path),
    /// `left op right`; the left side is a path or a function.
    Compare(Box<Compare>),
    /// `path LIKE pattern`.
    Like(Path, LikeOperand),
    /// `path matches …`.
    Matches(Path, MatchesOperand),
}

/// `left op right`.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// A path or a function.
    pub left: Expr,
    /// The operator.
    pub op: CompareOp,
    /// Any expression.
    pub right: Expr,
}

/// The pattern of LIKE.
#[derive(Clone, Debug, PartialEq)]
pub enum LikeOperand {
    /// A string with its quotes.
    Text(Name),
    /// A parameter.
    Parameter(Name),
}

/// The right side of MATCHES.
#[derive(Clone, Debug, PartialEq)]
pub enum MatchesOperand {
    /// `{a, b}`.
    List(Vec<MatchesItem>),
    /// `TERMINOLOGY(…)` without braces.
    Terminology(Terminology),
    /// `{terminology://…}`.
    Uri(Name),
}

/// A member of the list behind MATCHES.
#[derive(Clone, Debug, PartialEq)]
pub enum MatchesItem {
    /// A literal.
    Literal(Literal),
    /// A parameter: one value or a list.
    Parameter(Name),
    /// The codes of a value set.
    Terminology(Terminology),
}

/// `path [ASC | DESC]`.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// A path, or a column's alias with a path behind it.
    pub path: Path,
    /// Whether DESC is present.
    pub descending: bool,
}

impl Name {
    /// Creates a name at a position.
    pub fn new(text: impl Into<String>, span: Span) -> Name {
        Name {
            text: text.into(),
            at: At(span),
        }
    }

    /// Returns the position.
    pub fn span(&self) -> Span {
        self.at.0
    }
}

impl Path {
    /// Returns the position.
    pub fn span(&self) -> Span {
        self.at.0
    }
}
