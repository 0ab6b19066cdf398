//! The syntax tree of a query, as written; every part knows its place in the text.
//!
//! Trees are equal when they say the same: places ([`At`]) do not count.

use super::query::{AggregateFunction, CompareOp};
use aqlite_rm::diag::Span;

/// The place of a part in the source text; all places are equal.
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
    /// SELECT.
    pub select: Select,
    /// FROM.
    pub from: Containment,
    /// WHERE.
    pub condition: Option<Condition>,
    /// ORDER BY.
    pub order: Vec<OrderKey>,
    /// LIMIT.
    pub limit: Option<Limit>,
}

/// `SELECT [DISTINCT] [TOP n] columns`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// DISTINCT stands.
    pub distinct: bool,
    /// TOP.
    pub top: Option<Top>,
    /// At least one.
    pub columns: Vec<Column>,
    /// From SELECT to the last column.
    pub at: At,
}

/// `TOP n [FORWARD | BACKWARD]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Top {
    /// n, as written.
    pub count: Name,
    /// BACKWARD stands.
    pub backward: bool,
    /// From TOP on.
    pub at: At,
}

/// `LIMIT n [OFFSET m]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// n, as written.
    pub count: Name,
    /// m, as written.
    pub offset: Option<Name>,
    /// From LIMIT on.
    pub at: At,
}

/// A word of the author: a variable, an alias, an attribute, a parameter without its `$`, digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// As written.
    pub text: String,
    /// Where.
    pub at: At,
}

/// `expression [AS alias]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What is shown.
    pub value: ColumnValue,
    /// The alias.
    pub alias: Option<Name>,
    /// All of it.
    pub at: At,
}

/// What a column shows.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValue {
    /// A path, a literal or a single-row function.
    Expr(Expr),
    /// An aggregate function.
    Aggregate(Aggregate),
}

/// `COUNT(*)`, `MAX(path)` …
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The function.
    pub function: AggregateFunction,
    /// Whether DISTINCT precedes the path.
    pub distinct: bool,
    /// The argument; `None` for `*`.
    pub path: Option<Path>,
    /// All of it.
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
    /// What it says.
    pub value: LiteralValue,
    /// Where.
    pub at: At,
}

/// The kinds of literal.
#[derive(Clone, Debug, PartialEq)]
pub enum LiteralValue {
    /// `NULL`.
    Null,
    /// `true`, `false`.
    Boolean(bool),
    /// Digits as written, with its sign.
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
    /// All of it.
    pub at: At,
}

/// `TERMINOLOGY(operation, service, parameters)`: three strings, with their quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminology {
    /// What is asked: `expand`, `validate`, `subsumes` …
    pub operation: String,
    /// Of which service: `hl7.org/fhir/4.0` …
    pub service: String,
    /// With which parameters.
    pub parameters: String,
    /// All of it.
    pub at: At,
}

/// FROM: what contains what (§ 3.13.2).
#[derive(Clone, Debug, PartialEq)]
pub enum Containment {
    /// One class expression.
    Class(Box<ClassExpr>),
    /// All of them: two or more.
    And(Vec<Containment>),
    /// One of them or more: two or more.
    Or(Vec<Containment>),
}

/// `CLASS variable[predicate] [NOT] CONTAINS …`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassExpr {
    /// The class name as written; `VERSION` too.
    pub class: Name,
    /// The variable.
    pub variable: Option<Name>,
    /// What stands in brackets.
    pub predicate: Option<ClassPredicate>,
    /// What stands behind CONTAINS.
    pub contains: Option<Contains>,
}

/// The brackets behind a class.
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
    /// NOT stands before.
    pub negated: bool,
    /// What is (not) contained.
    pub inner: Containment,
    /// The words themselves.
    pub at: At,
}

/// `variable[root predicate]/step/step`.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The variable.
    pub variable: Name,
    /// The predicate directly behind it.
    pub root: Option<Predicate>,
    /// The steps.
    pub steps: Vec<Step>,
    /// All of it.
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

/// What stands in brackets (§ 3.6).
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// Two or more, AND.
    And(Vec<Predicate>),
    /// Two or more, OR.
    Or(Vec<Predicate>),
    /// `at0001`, `openEHR-…`, `$p`, each with a name behind a comma perhaps.
    Node(NodePredicate),
    /// `path op value`.
    Compare(Box<ComparePredicate>),
    /// `path matches {/…/}`.
    Regex(RegexPredicate),
}

/// `at0001, 'name'`.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePredicate {
    /// The node.
    pub id: NodeId,
    /// Its name.
    pub name: Option<NodeName>,
    /// Where the id stands.
    pub at: At,
}

/// Which node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeId {
    /// An at- or id-code.
    Code(String),
    /// An archetype id.
    Archetype(String),
    /// A parameter that holds one of them.
    Parameter(Name),
}

/// Which name a node has.
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
    /// From the node.
    pub path: Vec<Step>,
    /// How.
    pub op: CompareOp,
    /// With what.
    pub value: PredicateValue,
    /// All of it.
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
    /// From the node.
    pub path: Vec<Step>,
    /// The braces and what is between them, as written.
    pub regex: Name,
}

/// WHERE (§ 3.13.3).
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Two or more.
    And(Vec<Condition>),
    /// Two or more.
    Or(Vec<Condition>),
    /// NOT.
    Not(Box<Condition>),
    /// EXISTS.
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
    /// How.
    pub op: CompareOp,
    /// Anything.
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
    /// DESC.
    pub descending: bool,
}

impl Name {
    /// A name at a place.
    pub fn new(text: impl Into<String>, span: Span) -> Name {
        Name {
            text: text.into(),
            at: At(span),
        }
    }

    /// Where it stands.
    pub fn span(&self) -> Span {
        self.at.0
    }
}

impl Path {
    /// Where it stands.
    pub fn span(&self) -> Span {
        self.at.0
    }
}
