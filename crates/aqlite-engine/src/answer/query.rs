//! The checked form of a query: names resolved, classes known, parameters bound, no errors left, no
//! spans.
//!
//! `check` lowers the syntax tree to it; the engine compiles it. Vocabulary of AQL Release 1.1.0,
//! chapter 3.

pub use super::functions::{
    Aggregate, AggregateEntry, AggregateFunction, FormalParameter, Function, FunctionEntry,
    FunctionGroup, Occurrence, ValueType,
};
pub use super::members::{List, Members, ShortUid};
use aqlite_rm::class::{Attr, Cls};
use std::sync::Arc;

/// A whole query, ready to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The source of the rows (§ FROM).
    pub from: Source,
    /// The variables of FROM, in textual order; [`Variable`] indexes point here.
    pub variables: Vec<Variable>,
    /// Every identified path of SELECT, WHERE and ORDER BY in order of first use, equal paths once.
    pub paths: Vec<IdentifiedPath>,
    /// The paths of the EXISTS conditions of WHERE, left to right. They are not among
    /// [`Query::paths`], because EXISTS never multiplies rows.
    pub exists: Vec<IdentifiedPath>,
    /// The output columns.
    pub select: Vec<Column>,
    /// `SELECT DISTINCT`.
    pub distinct: bool,
    /// `WHERE`.
    pub condition: Option<Condition>,
    /// `ORDER BY`, most significant key first.
    pub order: Vec<OrderKey>,
    /// `LIMIT n OFFSET m`, or the deprecated `TOP`.
    pub window: Option<Window>,
}

impl Query {
    /// Returns whether the rows are those that FROM and WHERE find, one by one and in the order in
    /// which they are found: without ORDER BY, DISTINCT, aggregates and `TOP … BACKWARD`.
    pub fn keeps_found_order(&self) -> bool {
        let is_aggregate = |column: &Column| matches!(column.value, ColumnValue::Aggregate(_));
        let is_cut_at_end = matches!(self.window, Some(Window::Last { .. }));
        let is_grouped = self.select.iter().any(is_aggregate);
        !is_grouped && !self.distinct && !is_cut_at_end && self.order.is_empty()
    }
}

impl Query {
    /// Narrows the window to a page: at most `rows` rows, behind `offset` others. A page does not
    /// reach beyond the LIMIT of the query. Returns false, and changes nothing, for `TOP …
    /// BACKWARD`, which has no pages.
    pub fn narrow_to_page(&mut self, offset: u64, rows: u64) -> bool {
        let (limit, start) = match self.window {
            Some(Window::Last { .. }) => return false,
            Some(Window::First { limit, offset }) => (limit, offset),
            None => (u64::MAX, 0),
        };
        self.window = Some(Window::First {
            // The rows of LIMIT that earlier pages have are not counted again.
            limit: rows.min(limit.saturating_sub(offset)),
            offset: start.saturating_add(offset),
        });
        true
    }
}

/// A variable of FROM, or an anonymous class expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name as written; `None` for an anonymous class expression.
    pub name: Option<String>,
    /// Its declared class.
    pub class: Cls,
}

/// FROM: what contains what.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// One class expression with the classes that it must or must not contain.
    Class(Box<ClassExpr>),
    /// Both.
    And(Box<Source>, Box<Source>),
    /// One or both; the variables of an absent branch stay unbound.
    Or(Box<Source>, Box<Source>),
}

/// `CLASS variable[predicate] CONTAINS …`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassExpr {
    /// Index into [`Query::variables`] (anonymous expressions have one too).
    pub variable: usize,
    /// The class; `EHR`, `VERSION` and the VERSIONED_x containers bind more than document nodes.
    pub class: Cls,
    /// For VERSION: which versions.
    pub versions: Versions,
    /// The predicate in brackets.
    pub predicate: Option<Predicate>,
    /// The containment below the class expression.
    pub contains: Contains,
}

/// Which versions a VERSION expression binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// The latest, not deleted ones: the default, and `[LATEST_VERSION]`.
    Latest,
    /// `[ALL_VERSIONS]`, or a predicate in brackets.
    All,
}

/// The right side of CONTAINS.
#[derive(Clone, Debug, PartialEq)]
pub enum Contains {
    /// Nothing is asked.
    Nothing,
    /// `CONTAINS …`.
    Some(Source),
    /// `NOT CONTAINS …`.
    None(Source),
}

/// A predicate in brackets; two-valued (unknown counts as false).
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// All of them.
    And(Vec<Predicate>),
    /// One of them.
    Or(Vec<Predicate>),
    /// `[at0004]`, `[id5.1]`, `[openEHR-EHR-OBSERVATION.x.v1]`: `archetype_node_id`, by
    /// specialisation too.
    NodeId(Arc<str>),
    /// `[path op value]`; `name/value = 'x'` is the long form of `[…, 'x']`.
    Compare(Vec<Step>, CompareOp, PredicateValue),
    /// `[path matches {/regex/}]`.
    Regex(Vec<Step>, String),
}

/// The right side of a comparison in brackets.
#[derive(Clone, Debug, PartialEq)]
pub enum PredicateValue {
    /// A literal or a bound parameter.
    Literal(Literal),
    /// Another path from the same node.
    Path(Vec<Step>),
}

/// `variable[root predicate]/step/step`.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentifiedPath {
    /// Index into [`Query::variables`].
    pub variable: usize,
    /// The predicate directly behind the variable.
    pub root: Option<Predicate>,
    /// The steps; none for a bare variable.
    pub steps: Vec<Step>,
    /// The path as the author wrote it, normalised in white space, with the variable:
    /// `o/data[at0001]/origin/value`.
    pub text: String,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The attribute.
    pub attr: Attr,
    /// The predicate in brackets.
    pub predicate: Option<Predicate>,
}

/// One output column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The alias, or `#<index from 0>`.
    pub name: String,
    /// The path as written (with the variable) where the column is a path; else absent.
    pub path: Option<String>,
    /// The value of the column.
    pub value: ColumnValue,
}

/// The value of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValue {
    /// A path, literal or single-row function.
    Expr(Expr),
    /// An aggregate over the group.
    Aggregate(Aggregate),
}

/// An expression of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Index into [`Query::paths`].
    Path(usize),
    /// A literal or a bound parameter.
    Literal(Literal),
    /// A single-row function.
    Call(Function, Vec<Expr>),
}

/// A value written in the query or bound to a parameter.
///
/// Its text is shared: a query may name a parameter of megabytes a thousand times.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `NULL`.
    Null,
    /// `true`, `false`.
    Boolean(bool),
    /// A number: its text as written. The checker bounds its length, for it is parsed for each row.
    Number(Arc<str>),
    /// A string, unescaped; dates and times are strings that are classified by content and by the
    /// compared path.
    Text(Arc<str>),
    /// Text of a URL parameter: it is converted to the type of the other side of a comparison.
    Untyped(Arc<str>),
}

/// A condition of WHERE, in three-valued logic.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Left to right.
    And(Vec<Condition>),
    /// Left to right.
    Or(Vec<Condition>),
    /// Swaps true and false, keeps unknown.
    Not(Box<Condition>),
    /// `a op b`.
    Compare(Expr, CompareOp, Expr),
    /// `a LIKE pattern`; the pattern is checked.
    Like(Expr, LikePattern),
    /// `a matches {…}`: parameters expanded, value sets resolved.
    Matches(Expr, Members),
    /// `EXISTS path`: index into [`Query::exists`].
    Exists(usize),
    /// A condition known before any row is seen.
    Constant(Option<bool>),
}

/// A path that a condition reads.
pub(super) enum PathUse {
    /// Its value: index into [`Query::paths`].
    Value(usize),
    /// Whether it exists: index into [`Query::exists`].
    Existence(usize),
}

impl Condition {
    /// Visits the paths that the condition reads, from left to right.
    pub(super) fn each_path(&self, visit: &mut dyn FnMut(PathUse)) {
        match self {
            Condition::And(terms) | Condition::Or(terms) => {
                terms.iter().for_each(|term| term.each_path(visit));
            }
            Condition::Not(inner) => inner.each_path(visit),
            Condition::Compare(left, _, right) => {
                left.each_path(visit);
                right.each_path(visit);
            }
            Condition::Like(expr, _) | Condition::Matches(expr, _) => expr.each_path(visit),
            Condition::Exists(index) => visit(PathUse::Existence(*index)),
            Condition::Constant(_) => {}
        }
    }
}

impl Expr {
    fn each_path(&self, visit: &mut dyn FnMut(PathUse)) {
        match self {
            Expr::Path(path) => visit(PathUse::Value(*path)),
            Expr::Literal(_) => {}
            Expr::Call(_, arguments) => arguments.iter().for_each(|a| a.each_path(visit)),
        }
    }
}

/// A LIKE pattern: `*` any run, `?` one character. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct LikePattern {
    items: Arc<[LikeItem]>,
    least: usize,
}

impl LikePattern {
    /// A pattern of these items.
    pub fn new(items: Vec<LikeItem>) -> LikePattern {
        let bytes = |item: &LikeItem| match item {
            LikeItem::Text(text) => text.len(),
            // A character has at least one byte.
            LikeItem::One => 1,
            LikeItem::Any => 0,
        };
        let least = items.iter().map(bytes).sum();
        LikePattern {
            items: items.into(),
            least,
        }
    }

    /// The items, from left to right.
    pub fn items(&self) -> &[LikeItem] {
        &self.items
    }

    /// The bytes that a matching text has at least. A shorter text is not compared: searching it
    /// for a long part of the pattern would cost the length of that part.
    pub fn least(&self) -> usize {
        self.least
    }
}

/// A piece of a LIKE pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum LikeItem {
    /// Exactly this text.
    Text(String),
    /// One character.
    One,
    /// Any run of characters.
    Any,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl CompareOp {
    /// All operators.
    pub const ALL: [CompareOp; 6] = [
        CompareOp::Eq,
        CompareOp::Ne,
        CompareOp::Lt,
        CompareOp::Le,
        CompareOp::Gt,
        CompareOp::Ge,
    ];

    /// Returns the operator as AQL writes it.
    pub const fn text(self) -> &'static str {
        match self {
            CompareOp::Eq => "=",
            CompareOp::Ne => "!=",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }
}

/// One key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// The sort criterion.
    pub key: OrderBy,
    /// DESC.
    pub descending: bool,
}

/// A sort criterion of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderBy {
    /// Index into [`Query::paths`].
    Path(usize),
    /// Index into [`Query::select`]: an alias, or a path that is a column of a grouped query.
    Column(usize),
}

/// Which rows of the result are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// `LIMIT limit OFFSET offset`, `TOP limit FORWARD`.
    First {
        /// The largest number of rows.
        limit: u64,
        /// The number of rows to skip.
        offset: u64,
    },
    /// `TOP limit BACKWARD`: the last rows, in result order.
    Last {
        /// The largest number of rows.
        limit: u64,
    },
}
