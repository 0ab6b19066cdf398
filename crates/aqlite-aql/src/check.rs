//! The checker: syntax tree → checked query. It resolves names, classes and attributes, and binds
//! parameters.
//!
//! All errors of a query are reported together. Their codes:
//!
//! | codes | subject |
//! |---|---|
//! | AQL02xx | names |
//! | AQL03xx | parameters |
//! | AQL04xx | valid syntax that AQL does not allow |
//! | AQL0501 | no source for a terminology |
//! | AQL0502 | a request that a terminology refuses |
//! | AQL0503 | an answer of the wrong kind |
//! | AQL0504 | data that cannot be queried |
//! | AQL0505 | a terminology service that fails |
//! | AQL0506 | a terminology service that does not answer in time |
//! | AQL06xx | warnings |
//! | AQL0901 | a broken invariant: a defect of aqlite |

mod bound;
mod fold;
mod from;
mod number;
mod path;
mod uid;
mod value;

use super::BROKEN_INVARIANT;
use super::ast;
use super::query::{
    Aggregate, Column, ColumnValue, Condition, Expr, IdentifiedPath, Literal, OrderBy, OrderKey,
    Query, Variable, Window,
};
use super::terminology::Terminology;
use super::token::DIAGNOSTICS_LIMIT;
use aqlite_rm::diag::{Diagnostic, Fix, Severity, Span, nearest};
use aqlite_rm::order;
use aqlite_rm::pattern::Pattern;
use bound::BoundValues;
use std::collections::{BTreeMap, HashSet};
use uid::UidPaths;

/// The most values that a list behind MATCHES may have, beside those of value sets.
pub const MAX_MEMBERS: usize = 50_000;

/// The most columns of SELECT.
pub const MAX_COLUMNS: usize = 1_000;

/// The most conditions of a query: comparisons, LIKE, MATCHES and EXISTS of WHERE, and the
/// predicates in brackets. The values behind one MATCHES are not counted.
pub const MAX_CONDITIONS: usize = 1_000;
/// The maximum number of steps of the regular expressions of a query. Each takes 24 bytes, and
/// repetitions multiply them.
const MAX_REGEX_STEPS: usize = 200_000;

/// The most characters of a pattern behind LIKE, and the most bytes of a text that is compared in
/// brackets.
pub const MAX_PATTERN: usize = 10_000;

/// The most bytes of an archetype id or node code.
pub const MAX_ID: usize = 1_000;

/// The most characters of a number: it is parsed for each row.
pub const MAX_NUMBER: usize = 1_000;

/// The most steps of all paths of a query. The length of the text bounds them, except where ORDER BY
/// continues the path behind an alias: there, copies multiply the steps.
pub const MAX_STEPS: usize = 100_000;

/// The most steps of one path. Plans and runs follow a path by recursion, so this bounds the stack.
/// Documents nest at most 128 levels deep, and VERSION adds few attributes around them.
pub const MAX_PATH_STEPS: usize = 200;

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// JSON null.
    Null,
    /// JSON true, false.
    Boolean(bool),
    /// A JSON number: its text as sent.
    Number(String),
    /// A JSON string.
    Text(String),
    /// A text of a URL. It has the type of the value that it is compared with.
    Untyped(String),
    /// A JSON array; only for `matches {$list}`.
    List(Vec<Parameter>),
}

/// The parameters of a request by name, without `$`.
pub type Parameters = BTreeMap<String, Parameter>;

/// The options of a check.
#[derive(Clone, Copy, Default)]
pub struct CheckOptions<'a> {
    /// The source of answers to TERMINOLOGY() beside openEHR's own groups and code sets. Without a
    /// source, other requests are the error AQL0501.
    pub terminology: Option<&'a dyn Terminology>,
    /// The names that the request binds to null. They are not bound; a diagnostic mentions it.
    pub nulls: &'a [String],
    /// The names that the request binds and that are no placeholders of the query.
    pub unused: &'a [String],
    /// Whether the text is being written: unbound parameters and unanswered terminologies are no
    /// errors. The resulting query must not be executed.
    pub draft: bool,
}

/// Checks a query.
///
/// # Errors
/// The errors of the query, in the order of the text.
pub fn check(
    ast: &ast::Query,
    parameters: &Parameters,
    options: &CheckOptions<'_>,
) -> Result<Query, Vec<Diagnostic>> {
    let (query, mut diagnostics) = examine(ast, parameters, options);
    diagnostics.retain(|d| d.severity == Severity::Error);
    query.ok_or(diagnostics)
}

/// Checks a query as [`check`] does, and returns warnings too (AQL06xx): the query runs, but probably
/// not as meant. If no query is returned, the diagnostics contain an error.
pub fn examine(
    ast: &ast::Query,
    parameters: &Parameters,
    options: &CheckOptions<'_>,
) -> (Option<Query>, Vec<Diagnostic>) {
    let mut checker = Checker::new(ast, parameters, options);
    let query = checker.query(ast);
    let query = query.and_then(|query| checker.rewritten(query));
    checker.report_unbound();
    // Every method reports an error before it returns `None`.
    if query.is_none() && checker.errors.is_empty() {
        let _ = checker.broken::<()>(Span::default(), "it failed without a diagnostic");
    }
    // A wrong query is never returned, even if every clause has a result.
    let query = query.filter(|_| checker.errors.is_empty());
    let mut diagnostics = checker.warnings;
    diagnostics.append(&mut checker.errors);
    order::sort_by_key(&mut diagnostics, |d| d.span.start);
    (query, diagnostics)
}

/// The state of one check. Its methods return `None` after they reported an error.
struct Checker<'a> {
    parameters: &'a Parameters,
    options: &'a CheckOptions<'a>,
    aliases: &'a [ast::Column],
    variables: Vec<Variable>,
    /// The number of class expressions around the present one.
    enclosing: usize,
    /// Variables whose class is unknown. This is reported once, so their paths are not checked.
    unknown_class: Vec<usize>,
    paths: Vec<IdentifiedPath>,
    /// The paths of EXISTS so far.
    exists: Vec<IdentifiedPath>,
    /// The number of conditions and predicates so far.
    conditions: usize,
    /// The number of steps of the regular expressions so far.
    regex_steps: usize,
    /// The number of steps of paths so far.
    steps: usize,
    /// The values of the parameters and value sets that were mentioned so far.
    bound: BoundValues,
    unbound: Vec<(String, Span)>,
    errors: Vec<Diagnostic>,
    /// The warnings, which have a limit of their own: they must not displace errors.
    warnings: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    fn new(
        ast: &'a ast::Query,
        parameters: &'a Parameters,
        options: &'a CheckOptions<'a>,
    ) -> Checker<'a> {
        Checker {
            parameters,
            options,
            aliases: &ast.select.columns,
            variables: Vec::new(),
            enclosing: 0,
            unknown_class: Vec::new(),
            paths: Vec::new(),
            exists: Vec::new(),
            conditions: 0,
            regex_steps: 0,
            steps: 0,
            bound: BoundValues::default(),
            unbound: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }
    fn query(&mut self, ast: &'a ast::Query) -> Option<Query> {
        self.check_columns(ast)?;
        // FROM first: all paths refer to its variables.
        let from = self.source(&ast.from);
        // Every clause is checked before the first error ends the check, so that all errors are
        // reported.
        let columns = ast.select.columns.iter().enumerate();
        let select = all_or_none(columns.map(|(i, c)| self.column(i, c)));
        let condition = ast.condition.as_ref().map(|c| self.condition(c));
        let order = self.order(ast, select.as_deref());
        let window = self.window(ast);
        Some(Query {
            from: from?,
            select: select?,
            distinct: ast.select.distinct,
            condition: condition.map_or(Some(None), |c| c.map(Some))?,
            order: order?,
            window: window?,
            variables: std::mem::take(&mut self.variables),
            paths: std::mem::take(&mut self.paths),
            exists: std::mem::take(&mut self.exists),
        })
    }

    fn order(&mut self, ast: &ast::Query, select: Option<&[Column]>) -> Option<Vec<OrderKey>> {
        // With an aggregate, only columns have one value for each row of the result.
        let is_aggregate = |c: &ast::Column| matches!(c.value, ast::ColumnValue::Aggregate(_));
        let grouped = ast.select.columns.iter().any(is_aggregate);
        let keys = ast.order.iter().map(|k| self.order_key(k, select, grouped));
        all_or_none(keys).map(distinct_keys)
    }

    /// Rewrites conditions into others of the same meaning that cost less.
    fn rewritten(&mut self, mut query: Query) -> Option<Query> {
        let Some(uids) = UidPaths::new(&query) else {
            return self.broken(Span::default(), "a path starts at no variable");
        };
        uid::widen(&mut query, &uids);
        fold::join_equalities(&mut query, &uids);
        Some(query)
    }

    /// Refuses a query of too many columns before any of them is read.
    fn check_columns(&mut self, ast: &ast::Query) -> Option<()> {
        let Some(column) = ast.select.columns.get(MAX_COLUMNS) else {
            return Some(());
        };
        let message = format!(
            "the query has {} columns, more than {MAX_COLUMNS}",
            ast.select.columns.len()
        );
        self.error(
            "AQL0003",
            column.at.0,
            message,
            "select whole objects, or ask in several queries",
        )
    }

    /// Counts a condition or predicate; `None` if the query has too many, reported once.
    fn count_condition(&mut self, span: Span) -> Option<()> {
        self.conditions += 1;
        if self.conditions == MAX_CONDITIONS + 1 {
            let message = format!("the query has more than {MAX_CONDITIONS} conditions");
            let _ = self.error::<()>(
                "AQL0003",
                span,
                message,
                "compare a path with many values by `path matches {…}`, or ask in several queries",
            );
        }
        (self.conditions <= MAX_CONDITIONS).then_some(())
    }

    /// Counts the steps of a regular expression; `None` if those of the query have too many,
    /// reported once.
    fn count_regex_steps(&mut self, pattern: &Pattern, span: Span) -> Option<()> {
        let had_few = self.regex_steps <= MAX_REGEX_STEPS;
        self.regex_steps = self.regex_steps.saturating_add(pattern.steps());
        let has_few = self.regex_steps <= MAX_REGEX_STEPS;
        if had_few && !has_few {
            let message = format!(
                "the regular expressions of the query have more than {MAX_REGEX_STEPS} steps"
            );
            let _ = self.error::<()>(
                "AQL0003",
                span,
                message,
                "repetitions count as often as they may occur: write shorter ones",
            );
        }
        has_few.then_some(())
    }

    fn error<T>(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<Help>,
    ) -> Option<T> {
        let Help { text, near } = help.into();
        let mut error = Diagnostic::error(code, span, message).with_help(text);
        error.fix = near.map(|text| Fix { span, text });
        self.add_error(error);
        None
    }

    fn add_error(&mut self, error: Diagnostic) {
        if !self.is_full() {
            self.errors.push(error);
        }
    }

    fn warn(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.warnings.len() < DIAGNOSTICS_LIMIT {
            self.warnings
                .push(Diagnostic::warning(code, span, message).with_help(help));
        }
    }

    /// Returns whether the limit of errors is reached.
    fn is_full(&self) -> bool {
        self.errors.len() >= DIAGNOSTICS_LIMIT
    }

    fn column(&mut self, index: usize, column: &ast::Column) -> Option<Column> {
        let name = column
            .alias
            .as_ref()
            .map_or_else(|| format!("#{index}"), |alias| alias.text.clone());
        let path = match &column.value {
            ast::ColumnValue::Expr(ast::Expr::Path(path)) => Some(super::print::path(path)),
            _ => None,
        };
        let value = match &column.value {
            ast::ColumnValue::Expr(expr) => ColumnValue::Expr(self.expr(expr)?),
            ast::ColumnValue::Aggregate(aggregate) => {
                ColumnValue::Aggregate(self.aggregate(aggregate)?)
            }
        };
        Some(Column { name, path, value })
    }

    fn aggregate(&mut self, aggregate: &ast::Aggregate) -> Option<Aggregate> {
        let (entry, span) = (aggregate.function.entry(), aggregate.at.0);
        let Some(path) = &aggregate.path else {
            return match &entry.over_rows {
                Some(over_rows) => Some(over_rows.clone()),
                None => self.broken(span, "this aggregate function does not count rows"),
            };
        };
        let path = self.path(path)?;
        match (aggregate.distinct, entry.over_distinct) {
            (false, _) => Some((entry.over_path)(path)),
            (true, Some(over_distinct)) => Some(over_distinct(path)),
            (true, None) => self.broken(span, "this aggregate function has no DISTINCT"),
        }
    }

    /// Reports a broken invariant: the parser or the checker has a defect, not the query.
    fn broken<T>(&mut self, span: Span, found: &str) -> Option<T> {
        let message = format!("an invariant of the checker is broken: {found}");
        let help = "this is a defect of aqlite; report the query";
        self.error(BROKEN_INVARIANT, span, message, help)
    }

    fn condition(&mut self, condition: &ast::Condition) -> Option<Condition> {
        if !matches!(
            condition,
            ast::Condition::And(_) | ast::Condition::Or(_) | ast::Condition::Not(_)
        ) {
            let start = super::print::condition_start(condition);
            self.count_condition(Span::new(start, start))?;
        }
        Some(match condition {
            ast::Condition::And(all) => Condition::And(self.conditions(all)?),
            ast::Condition::Or(any) => Condition::Or(self.conditions(any)?),
            ast::Condition::Not(inner) => Condition::Not(Box::new(self.condition(inner)?)),
            ast::Condition::Exists(path) => {
                let path = self.identified(path)?;
                self.exists.push(path);
                Condition::Exists(self.exists.len() - 1)
            }
            ast::Condition::Compare(compare) => self.comparison(compare)?,
            ast::Condition::Like(path, operand) => {
                let (path, pattern) = (self.path(path), self.like(operand));
                let path = Expr::Path(path?);
                match pattern? {
                    Some(pattern) => Condition::Like(path, pattern),
                    // `LIKE NULL` is unknown for every row.
                    None => Condition::Constant(None),
                }
            }
            ast::Condition::Matches(path, operand) => self.matches(path, operand)?,
        })
    }

    fn comparison(&mut self, compare: &ast::Compare) -> Option<Condition> {
        let (left, right) = (self.expr(&compare.left), self.expr(&compare.right));
        if right == Some(Expr::Literal(Literal::Null))
            && let ast::Expr::Literal(null) = &compare.right
        {
            self.warn(
                "AQL0603",
                null.at.0,
                "a comparison with NULL is never true",
                "ask `EXISTS path` or `NOT EXISTS path`",
            );
        }
        let (left, right) = (left?, right?);
        self.check_compared([&compare.left, &compare.right], [&left, &right])?;
        Some(Condition::Compare(left, compare.op, right))
    }

    fn matches(&mut self, path: &ast::Path, operand: &ast::MatchesOperand) -> Option<Condition> {
        // A value set contains codes, so a path to a coded text continues to its code.
        let path = match has_value_set(operand) {
            true => self.coded_path(path),
            false => self.path(path),
        };
        let values = self.members(operand);
        let (path, values) = (path?, values?);
        self.check_members(path, operand)?;
        Some(Condition::Matches(Expr::Path(path), values))
    }

    fn conditions(&mut self, all: &[ast::Condition]) -> Option<Vec<Condition>> {
        all_or_none(all.iter().map(|c| self.condition(c)))
    }

    /// Resolves a key of ORDER BY. A name alone is first sought among the aliases, a name with a path
    /// first among the variables.
    fn order_key(
        &mut self,
        key: &ast::OrderKey,
        select: Option<&[Column]>,
        grouped: bool,
    ) -> Option<OrderKey> {
        let (path, descending) = (&key.path, key.descending);
        let alias = self.alias(&path.variable.text);
        let is_name = path.steps.is_empty() && path.root.is_none();
        if let Some(alias) = alias.filter(|_| is_name) {
            let key = OrderBy::Column(alias);
            return Some(OrderKey { key, descending });
        }
        let index = match (self.variable(&path.variable.text), alias) {
            // A variable precedes an alias with the same name, because a path starts at a variable
            // elsewhere too.
            (None, Some(alias)) => self.path_behind_alias(alias, path)?,
            _ => self.path(path)?,
        };
        let key = match grouped {
            false => OrderBy::Path(index),
            true => OrderBy::Column(self.column_of(index, path, select?)?),
        };
        Some(OrderKey { key, descending })
    }

    /// Returns the column that is a path, as ORDER BY needs it beside aggregate functions.
    fn column_of(&mut self, index: usize, path: &ast::Path, select: &[Column]) -> Option<usize> {
        let value = ColumnValue::Expr(Expr::Path(index));
        let column = select.iter().position(|c| c.value == value);
        if column.is_some() {
            return column;
        }
        let path_text = super::print::path(path);
        let message =
            format!("`{path_text}` is not a column of this query with aggregate functions");
        self.error(
            "AQL0405",
            path.span(),
            message,
            "add it to SELECT, or order by a column's alias",
        )
    }

    fn path_behind_alias(&mut self, alias: usize, path: &ast::Path) -> Option<usize> {
        let column = self.aliases.get(alias)?;
        let (ast::ColumnValue::Expr(ast::Expr::Path(start)), None) = (&column.value, &path.root)
        else {
            let message = format!(
                "nothing can be reached from the column `{}`",
                path.variable.text
            );
            return self.error(
                "AQL0405",
                path.span(),
                message,
                "only a column that is a path has attributes; order by the alias alone",
            );
        };
        // Resolving the path counts its steps. Above the limit, copying them would be wasted work.
        if self.steps > MAX_STEPS {
            return None;
        }
        let steps = start.steps.iter().chain(&path.steps).cloned().collect();
        // The steps behind the alias are those of the path in SELECT, as if it had been written
        // out.
        let whole = ast::Path {
            variable: start.variable.clone(),
            root: start.root.clone(),
            steps,
            at: path.at,
        };
        self.path(&whole)
    }

    /// Returns the column with this alias; see [`spelled`].
    fn alias(&self, name: &str) -> Option<usize> {
        let aliases = || {
            self.aliases
                .iter()
                .enumerate()
                .filter_map(|(i, c)| c.alias.as_ref().map(|a| (i, a.text.as_str())))
        };
        spelled(name, aliases)
    }

    fn window(&mut self, ast: &ast::Query) -> Option<Option<Window>> {
        let top = match &ast.select.top {
            Some(top) => Some((self.count(&top.count, "TOP")?, top)),
            None => None,
        };
        let limit = match &ast.limit {
            Some(limit) => Some((self.count(&limit.count, "LIMIT")?, limit)),
            None => None,
        };
        let (limit, offset) = match (top, limit) {
            (None, None) => return Some(None),
            (Some(_), Some((_, limit))) => {
                let message = "TOP and LIMIT exclude each other";
                return self.error(
                    "AQL0402",
                    limit.at.0,
                    message,
                    "TOP is deprecated: keep LIMIT",
                );
            }
            (Some((limit, top)), None) if top.backward => {
                return Some(Some(Window::Last { limit }));
            }
            // FORWARD is the default of TOP.
            (Some((limit, _)), None) => (limit, None),
            (None, Some((count, limit))) => (count, limit.offset.as_ref()),
        };
        let offset = match offset {
            Some(offset) => self.whole_number(offset, "OFFSET")?,
            None => 0,
        };
        Some(Some(Window::First { limit, offset }))
    }

    fn count(&mut self, number: &ast::Name, what: &str) -> Option<u64> {
        match self.whole_number(number, what)? {
            0 => self.error(
                "AQL0401",
                number.span(),
                format!("{what} 0 asks for no rows"),
                "the smallest number is 1",
            ),
            n => Some(n),
        }
    }

    fn whole_number(&mut self, number: &ast::Name, what: &str) -> Option<u64> {
        match number.text.parse() {
            Ok(n) => Some(n),
            Err(_) => self.error(
                "AQL0401",
                number.span(),
                format!("`{}` is not a number of rows", number.text),
                format!("{what} takes digits, up to {}", u64::MAX),
            ),
        }
    }

    fn report_unbound(&mut self) {
        // One diagnostic names all parameters, because a client binds them together.
        let Some((first, span)) = self.unbound.first().cloned() else {
            return;
        };
        let mut seen: HashSet<String> = HashSet::new();
        let mut names: Vec<String> = Vec::new();
        for (name, _) in std::mem::take(&mut self.unbound) {
            if seen.insert(name.clone()) {
                names.push(format!("`${name}`"));
            }
        }
        let message = match names.as_slice() {
            [one] => format!("the parameter {one} is not bound"),
            many => format!("the parameters {} are not bound", listed(many)),
        };
        let bound = || self.parameters.keys().chain(self.options.unused);
        let is_null = |name: &&String| names.contains(&format!("`${name}`"));
        let help = if let Some(name) = self.options.nulls.iter().find(is_null) {
            let text = "to null, which is no value: send a value";
            Help::from(format!("the request binds `{name}` {text}"))
        } else if let Some(near) = nearest(&first, &mut bound().map(String::as_str)) {
            Help {
                text: format!("the request binds `{near}`: did you mean `${near}`?"),
                near: Some(format!("${near}")),
            }
        } else if bound().next().is_none() {
            Help::from("the request binds no parameters")
        } else {
            let bound: Vec<String> = bound().map(|name| format!("`{name}`")).collect();
            Help::from(format!("the request binds {}", listed(&bound)))
        };
        let _ = self.error::<()>("AQL0301", span, message, help);
    }
}

/// The most names that a message lists.
const LISTED: usize = 20;

/// Joins the first names of a list, with the number of the others.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(LISTED).cloned().collect::<Vec<_>>();
    match names.len().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Returns all results, or `None` if one is missing. Every item is computed, so that all errors are
/// reported.
fn all_or_none<T>(items: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    let items: Vec<Option<T>> = items.collect();
    items.into_iter().collect()
}

/// Returns whether the list behind MATCHES has a value set.
fn has_value_set(operand: &ast::MatchesOperand) -> bool {
    match operand {
        ast::MatchesOperand::Terminology(_) | ast::MatchesOperand::Uri(_) => true,
        ast::MatchesOperand::List(items) => items
            .iter()
            .any(|i| matches!(i, ast::MatchesItem::Terminology(_))),
    }
}

/// Removes repeated keys. Rows that are equal by a key are equal by its repetition.
fn distinct_keys(keys: Vec<OrderKey>) -> Vec<OrderKey> {
    let mut distinct: Vec<OrderKey> = Vec::new();
    for key in keys {
        if distinct.iter().all(|before| before.key != key.key) {
            distinct.push(key);
        }
    }
    distinct
}

/// Returns the item with this name: as spelled, otherwise in any letter case if only one has it.
pub(super) fn spelled<'n, I: Iterator<Item = (usize, &'n str)>>(
    name: &str,
    items: impl Fn() -> I,
) -> Option<usize> {
    if let Some((found, _)) = items().find(|(_, n)| *n == name) {
        return Some(found);
    }
    // Two names that differ in letter case only are two variables, so neither matches a third
    // spelling.
    let mut similar = items().filter(|(_, n)| n.eq_ignore_ascii_case(name));
    match (similar.next(), similar.next()) {
        (Some((found, _)), None) => Some(found),
        _ => None,
    }
}

/// The remedy of an error.
struct Help {
    text: String,
    /// The word that was probably meant. It replaces the range of the error.
    near: Option<String>,
}

impl From<String> for Help {
    fn from(text: String) -> Help {
        Help { text, near: None }
    }
}

impl From<&str> for Help {
    fn from(text: &str) -> Help {
        Help::from(text.to_owned())
    }
}

/// Returns the help `did you mean `x`?` for a similar word, or the other help.
fn did_you_mean(
    word: &str,
    candidates: &mut dyn Iterator<Item = &str>,
    otherwise: impl FnOnce() -> String,
) -> Help {
    match nearest(word, candidates) {
        Some(near) => Help {
            text: format!("did you mean `{near}`?"),
            near: Some(near.to_owned()),
        },
        None => Help::from(otherwise()),
    }
}

#[cfg(test)]
mod tests;
