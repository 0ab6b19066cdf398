//! The checked form of a query: names are resolved, classes known, parameters bound, and spans
//! removed.
//!
//! The checker lowers the syntax tree to it, and the engine compiles it. Terms are those of AQL
//! Release 1.1.0, chapter 3.

pub use super::functions::{
    Aggregate, AggregateEntry, AggregateFunction, FormalParameter, Function, FunctionEntry,
    FunctionGroup, Occurrence, ValueType,
};
pub use super::members::{List, Members, ShortUid};
use aqlite_rm::class::{Attr, Cls};
use std::cmp::Ordering;
use std::sync::Arc;

/// A whole query that can be planned.
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
    /// Returns whether the rows of the result are those that FROM and WHERE find, in the same
    /// order: without ORDER BY, DISTINCT, aggregates and `TOP … BACKWARD`.
    pub fn keeps_found_order(&self) -> bool {
        let is_cut_at_end = matches!(self.window, Some(Window::Last { .. }));
        !self.is_grouped() && !self.distinct && !is_cut_at_end && self.order.is_empty()
    }

    /// Returns whether the query has an aggregate.
    pub fn is_grouped(&self) -> bool {
        let is_aggregate = |column: &Column| matches!(column.value, ColumnValue::Aggregate(_));
        self.select.iter().any(is_aggregate)
    }
}

impl Query {
    /// Limits the window to a page of at most `rows` rows, after `offset` others. A page does not
    /// exceed the LIMIT of the query. Returns false and changes nothing for `TOP … BACKWARD`, which
    /// has no pages.
    pub fn narrow_to_page(&mut self, offset: u64, rows: u64) -> bool {
        let (limit, start) = match self.window {
            Some(Window::Last { .. }) => return false,
            Some(Window::First { limit, offset }) => (limit, offset),
            None => (u64::MAX, 0),
        };
        self.window = Some(Window::First {
            // The rows of earlier pages count for LIMIT too.
            limit: rows.min(limit.saturating_sub(offset)),
            offset: start.saturating_add(offset),
        });
        true
    }

    /// Returns the query for a part of the documents. The rows before the window stay, because they
    /// can be in the window of the whole result, or count for it.
    #[must_use]
    pub fn of_part(&self) -> Query {
        let window = match self.window {
            Some(Window::First { limit, offset }) => Some(Window::First {
                limit: limit.saturating_add(offset),
                offset: 0,
            }),
            other => other,
        };
        Query {
            window,
            ..self.clone()
        }
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

/// FROM: class expressions with their containment.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// One class expression with the classes that it must or must not contain.
    Class(Box<ClassExpr>),
    /// The conjunction of two sources.
    And(Box<Source>, Box<Source>),
    /// The disjunction of two sources. The variables of a branch without a match stay unbound.
    Or(Box<Source>, Box<Source>),
}

/// `CLASS variable[predicate] CONTAINS …`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassExpr {
    /// Index into [`Query::variables`]. Anonymous expressions have one too.
    pub variable: usize,
    /// The class. `EHR`, `VERSION` and VERSIONED_x bind other objects than nodes of documents.
    pub class: Cls,
    /// The versions that a VERSION expression binds.
    pub versions: Versions,
    /// The predicate in brackets.
    pub predicate: Option<Predicate>,
    /// The containment below the class expression.
    pub contains: Contains,
}

/// The versions that a VERSION expression binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// The latest versions that are not deleted: the default, and `[LATEST_VERSION]`.
    Latest,
    /// `[ALL_VERSIONS]`, or a predicate in brackets.
    All,
}

/// The right side of CONTAINS.
#[derive(Clone, Debug, PartialEq)]
pub enum Contains {
    /// No containment.
    Nothing,
    /// `CONTAINS …`.
    Some(Source),
    /// `NOT CONTAINS …`.
    None(Source),
}

/// A predicate in brackets. It is two-valued: unknown counts as false.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// The conjunction.
    And(Vec<Predicate>),
    /// The disjunction.
    Or(Vec<Predicate>),
    /// `[at0004]`, `[id5.1]`, `[openEHR-EHR-OBSERVATION.x.v1]`: a value of `archetype_node_id`, or
    /// a specialization of it.
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
    /// A path from the same node.
    Path(Vec<Step>),
    /// The short form of a version uid, which `=` and `!=` compare with the uid of a version.
    Uid(Members),
}

/// `variable[root predicate]/step/step`.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentifiedPath {
    /// Index into [`Query::variables`].
    pub variable: usize,
    /// The predicate directly behind the variable.
    pub root: Option<Predicate>,
    /// The steps; empty for a bare variable.
    pub steps: Vec<Step>,
    /// The path as written, with normalized white space and with the variable:
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
    /// The alias, or `#` and the index from 0.
    pub name: String,
    /// The path as written, with the variable; `None` if the column is no path.
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

/// An expression over one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Index into [`Query::paths`].
    Path(usize),
    /// A literal or a bound parameter.
    Literal(Literal),
    /// A single-row function.
    Call(Function, Vec<Expr>),
}

/// A value that is written in the query or bound to a parameter.
///
/// Its text is shared, because a query can name a parameter of megabytes a thousand times.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `NULL`.
    Null,
    /// `true`, `false`.
    Boolean(bool),
    /// A number as its text. The checker limits its length, because it is parsed for each row.
    Number(Arc<str>),
    /// A string without its escapes. Dates and times are strings, which are classified by content
    /// and by the path that they are compared with.
    Text(Arc<str>),
    /// The text of a URL parameter, which is converted to the type of the other side of a
    /// comparison.
    Untyped(Arc<str>),
}

/// A condition of WHERE, in three-valued logic.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The conjunction, evaluated from left to right.
    And(Vec<Condition>),
    /// The disjunction, evaluated from left to right.
    Or(Vec<Condition>),
    /// The negation; unknown stays unknown.
    Not(Box<Condition>),
    /// `a op b`.
    Compare(Expr, CompareOp, Expr),
    /// `a LIKE pattern`, with a checked pattern.
    Like(Expr, LikePattern),
    /// `a matches {…}`, with expanded parameters and value sets.
    Matches(Expr, Members),
    /// `EXISTS path`: an index into [`Query::exists`].
    Exists(usize),
    /// A condition whose outcome does not depend on a row; `None` is unknown.
    Constant(Option<bool>),
}

/// The use of a path in a condition.
pub(super) enum PathUse {
    /// The value of a path: an index into [`Query::paths`].
    Value(usize),
    /// The existence of a path: an index into [`Query::exists`].
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

/// A LIKE pattern: `*` matches any run of characters, `?` one character. A clone shares the items.
#[derive(Clone, Debug, PartialEq)]
pub struct LikePattern {
    items: Arc<[LikeItem]>,
    min_bytes: usize,
}

impl LikePattern {
    /// Creates a pattern from its items.
    pub fn new(items: Vec<LikeItem>) -> LikePattern {
        let bytes = |item: &LikeItem| match item {
            LikeItem::Text(text) => text.len(),
            // A character has at least one byte.
            LikeItem::One => 1,
            LikeItem::Any => 0,
        };
        let min_bytes = items.iter().map(bytes).sum();
        LikePattern {
            items: items.into(),
            min_bytes,
        }
    }

    /// Returns the items from left to right.
    pub fn items(&self) -> &[LikeItem] {
        &self.items
    }

    /// Returns the least number of bytes of a matching text. Shorter texts are not compared,
    /// because the search for a long item would cost the length of that item.
    pub fn min_bytes(&self) -> usize {
        self.min_bytes
    }
}

/// An item of a LIKE pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum LikeItem {
    /// This exact text.
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

    /// Returns whether values in this order satisfy the operator.
    #[must_use]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            CompareOp::Eq => order.is_eq(),
            CompareOp::Ne => order.is_ne(),
            CompareOp::Lt => order.is_lt(),
            CompareOp::Le => order.is_le(),
            CompareOp::Gt => order.is_gt(),
            CompareOp::Ge => order.is_ge(),
        }
    }
}

/// One key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey {
    /// The sort criterion.
    pub key: OrderBy,
    /// Whether the order is descending (`DESC`).
    pub descending: bool,
}

/// A sort criterion of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderBy {
    /// Index into [`Query::paths`].
    Path(usize),
    /// Index into [`Query::select`]: an alias, or a path that is a column of a query with groups.
    Column(usize),
}

/// The rows of the result that are returned.
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
