//! The parser: tokens → syntax tree, by recursive descent over AQL Release 1.1.0, chapter 3, with
//! `CONTAINS(…)` as a function too.
//!
//! The parser records every alternative that it tried at a token, so an error lists them all. After
//! an error it continues at the next clause or column, so one answer reports several errors.

mod condition;
mod cursor;
mod from;
mod path;

use super::BROKEN_INVARIANT;
use super::ast::*;
use super::expected::Expected;
use super::query::AggregateFunction;
use super::token::{Token, TokenKind, tokens};
use super::vocabulary::{Clause, Keyword};
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::order;

/// The longest text that is read, in bytes: as the service reads it (`LIMIT_AQL`).
pub const TEXT_LIMIT: usize = 256_000;

/// The greatest depth of nested parentheses, CONTAINS, NOT, brackets and function calls. The parser
/// recurses for each level.
pub const NESTING_LIMIT: usize = 64;

/// Parses a query.
///
/// Returns a tree if there is no error. The diagnostics are in the order of the text. Their codes
/// are AQL0001 (too long), AQL0002 (too deep), AQL0101 (unexpected word), AQL0105 (order of the
/// clauses), AQL0106 (a reserved word as a name), and those of `tokens`. Without a tree there is at
/// least one diagnostic.
pub fn parse(text: &str) -> (Option<Query>, Vec<Diagnostic>) {
    // The limit comes before the lexer: tokens take more memory than the text.
    if text.len() > TEXT_LIMIT {
        let message = format!("the query has {} bytes, more than {TEXT_LIMIT}", text.len());
        return (
            None,
            vec![Diagnostic::error("AQL0001", Span::new(0, 0), message)],
        );
    }
    let mut parser = Parser::new(text);
    let query = parser.query();
    let mut diagnostics = parser.diagnostics;
    if query.is_none() && diagnostics.is_empty() {
        let message = "an invariant of the parser is broken: it failed without a diagnostic";
        diagnostics.push(Diagnostic::error(
            BROKEN_INVARIANT,
            Span::default(),
            message,
        ));
    }
    order::sort_by_key(&mut diagnostics, |d| d.span.start);
    (query.filter(|_| diagnostics.is_empty()), diagnostics)
}

/// Returns the alternatives of the grammar behind the beginning of a query.
pub(crate) fn expected_next(beginning: &str) -> Vec<Expected> {
    if beginning.len() > TEXT_LIMIT {
        return Vec::new();
    }
    let mut parser = Parser::new(beginning);
    let _ = parser.query();
    parser.at_end
}

/// A failure whose diagnostic is already recorded.
struct Failed;

type Parsed<T> = Result<T, Failed>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    position: usize,
    /// The present depth of nesting.
    depth: usize,
    clause: Clause,
    /// The alternatives that were tried at the present token.
    expected: Vec<Expected>,
    /// The alternatives where the text ended.
    at_end: Vec<Expected>,
    diagnostics: Vec<Diagnostic>,
}

/// The clauses that were parsed so far.
#[derive(Default)]
struct Clauses {
    select: Option<Select>,
    from: Option<Containment>,
    condition: Option<Condition>,
    order: Vec<OrderKey>,
    limit: Option<Limit>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let (mut tokens, diagnostics) = tokens(text);
        // The grammar has no comments. The formatter reads them from the text itself.
        tokens.retain(|t| t.kind != TokenKind::Comment);
        Parser {
            text,
            tokens,
            position: 0,
            depth: 0,
            clause: Clause::Select,
            expected: Vec::new(),
            at_end: Vec::new(),
            diagnostics,
        }
    }

    fn query(&mut self) -> Option<Query> {
        let mut clauses = Clauses::default();
        let mut last: Option<Clause> = None;
        let mut selected = false;
        loop {
            let Some(found) = self.clause_here() else {
                if self.between_clauses(last) {
                    break;
                }
                // Text that belongs to no clause is reported once, and SELECT is not requested
                // again behind it.
                last = last.or(Some(Clause::Select));
                continue;
            };
            self.report_missing(last, found);
            if found == Clause::Select && selected {
                self.report_second_select();
                return None;
            }
            match last {
                Some(last) if found <= last => self.report_order(found, last),
                _ => last = Some(found),
            }
            selected |= found == Clause::Select;
            self.clause(found, &mut clauses);
        }
        Some(Query {
            select: clauses.select?,
            from: clauses.from?,
            condition: clauses.condition,
            order: clauses.order,
            limit: clauses.limit,
        })
    }

    /// Returns the clause that the present token begins.
    fn clause_here(&self) -> Option<Clause> {
        match self.kind() {
            TokenKind::Keyword(keyword) => keyword.clause(),
            _ => None,
        }
    }

    /// Handles a token that begins no clause. Returns whether the text ends here.
    fn between_clauses(&mut self, last: Option<Clause>) -> bool {
        let is_end = self.kind() == TokenKind::End;
        let next = Clause::ALL.iter().filter(|c| last.is_none_or(|l| **c > l));
        // A mandatory clause must be the next one; of the others each may be.
        let next: Vec<Clause> = match next.clone().next() {
            Some(first) if first.is_mandatory() => vec![*first],
            _ => next.copied().collect(),
        };
        let is_complete = !next.iter().any(|c| c.is_mandatory());
        self.expected.extend(next.into_iter().map(Expected::Clause));
        if is_complete {
            self.expected.push(Expected::End);
        }
        if is_end && is_complete {
            self.record_end();
            return true;
        }
        if !is_end || self.diagnostics.is_empty() {
            let _ = self.unexpected::<()>();
        }
        if !is_end {
            self.skip_to_clause();
        }
        is_end
    }

    /// Reports the mandatory clauses between `last` and `found` that the text does not have further
    /// on either.
    fn report_missing(&mut self, last: Option<Clause>, found: Clause) {
        let skipped = |c: &&Clause| c.is_mandatory() && **c < found && last.is_none_or(|l| **c > l);
        for clause in Clause::ALL.iter().filter(skipped) {
            let keyword = TokenKind::Keyword(clause.keyword());
            if !self.tokens.iter().any(|t| t.kind == keyword) {
                self.expected.push(Expected::Clause(*clause));
                let _ = self.unexpected::<()>();
            }
        }
    }

    fn report_second_select(&mut self) {
        let help =
            "AQL has no subqueries and no UNION: one SELECT, FROM, WHERE, ORDER BY and LIMIT";
        self.diagnostics
            .push(Diagnostic::error("AQL0105", self.span(), "a second `SELECT`").with_help(help));
    }

    fn report_order(&mut self, found: Clause, last: Clause) {
        let message = if found == last {
            format!("`{}` occurs twice", found.title())
        } else {
            format!("`{}` is behind `{}`", found.title(), last.title())
        };
        let help = "the order is SELECT, FROM, WHERE, ORDER BY, LIMIT, each once";
        self.diagnostics
            .push(Diagnostic::error("AQL0105", self.span(), message).with_help(help));
    }

    fn clause(&mut self, clause: Clause, clauses: &mut Clauses) {
        let start = self.span();
        self.clause = clause;
        self.bump();
        let done = match clause {
            Clause::Select => self.select(start).map(|s| clauses.select = Some(s)),
            Clause::From => self.containment().map(|f| clauses.from = Some(f)),
            Clause::Where => self.condition().map(|c| clauses.condition = Some(c)),
            Clause::OrderBy => self.order().map(|o| clauses.order = o),
            Clause::Limit => self.limit(start).map(|l| clauses.limit = Some(l)),
        };
        if done.is_err() {
            self.skip_to_clause();
        }
    }

    // --- SELECT, ORDER BY, LIMIT

    fn select(&mut self, start: Span) -> Parsed<Select> {
        let distinct = self.eat_keyword(Keyword::Distinct);
        let top = self.top()?;
        let columns = self.columns()?;
        Ok(Select {
            distinct,
            top,
            columns,
            at: self.since(start),
        })
    }

    fn columns(&mut self) -> Parsed<Vec<Column>> {
        let mut columns = Vec::new();
        let mut failed = false;
        loop {
            match self.column() {
                Ok(column) => columns.push(column),
                Err(Failed) => {
                    failed = true;
                    // A wrong column does not hide the errors of the others.
                    self.skip_to_comma();
                }
            }
            if !self.eat_sign(',') {
                break;
            }
        }
        // All columns were parsed to report their errors, but the tree would be incomplete.
        if failed { Err(Failed) } else { Ok(columns) }
    }

    fn top(&mut self) -> Parsed<Option<Top>> {
        let start = self.span();
        if !self.eat_keyword(Keyword::Top) {
            return Ok(None);
        }
        let count = self.word(TokenKind::Integer, Expected::WholeNumber)?;
        let forward = self.eat_keyword(Keyword::Forward);
        // FORWARD and BACKWARD exclude each other; FORWARD is the default.
        let backward = !forward && self.eat_keyword(Keyword::Backward);
        Ok(Some(Top {
            count,
            backward,
            at: self.since(start),
        }))
    }

    fn column(&mut self) -> Parsed<Column> {
        let start = self.span();
        let value = match self.kind() {
            TokenKind::Keyword(Keyword::Aggregate(function)) => {
                ColumnValue::Aggregate(self.aggregate(function)?)
            }
            // `expr` would accept a parameter, but AQL has parameters in WHERE and in brackets
            // only.
            TokenKind::Parameter => return self.want(Expected::Column),
            _ => ColumnValue::Expr(self.expr(Expected::Column)?),
        };
        let alias = if self.eat_keyword(Keyword::As) {
            Some(self.alias()?)
        } else {
            None
        };
        Ok(Column {
            value,
            alias,
            at: self.since(start),
        })
    }

    fn alias(&mut self) -> Parsed<Name> {
        let (span, what) = match self.kind() {
            TokenKind::Keyword(Keyword::From) => return self.want(Expected::Name),
            TokenKind::Keyword(_) | TokenKind::Boolean => (self.span(), "a reserved word"),
            TokenKind::Code => (self.span(), "a node code"),
            _ => return self.word(TokenKind::Identifier, Expected::Name),
        };
        let message = format!("`{}` is {what} and cannot name a column", self.slice(span));
        let help = "choose another name: a letter, then letters, digits or `_`";
        self.diagnostics
            .push(Diagnostic::error("AQL0106", span, message).with_help(help));
        // The word was meant as the alias: continuing behind it avoids a second error.
        self.bump();
        Err(Failed)
    }

    fn aggregate(&mut self, function: AggregateFunction) -> Parsed<Aggregate> {
        let start = self.span();
        self.bump();
        self.need('(')?;
        let entry = function.entry();
        // DISTINCT and `*` are tried only for functions that have these forms, so that a diagnostic
        // does not list them for others.
        let distinct = entry.over_distinct.is_some() && self.eat_keyword(Keyword::Distinct);
        let path = if entry.over_rows.is_some() && !distinct && self.eat_sign('*') {
            None
        } else {
            Some(self.path(Expected::Path)?)
        };
        self.need(')')?;
        Ok(Aggregate {
            function,
            distinct,
            path,
            at: self.since(start),
        })
    }

    fn order(&mut self) -> Parsed<Vec<OrderKey>> {
        if !self.eat_keyword(Keyword::By) {
            return self.unexpected();
        }
        let mut keys = Vec::new();
        loop {
            // An alias is a path without steps for the grammar; the checker tells them apart.
            self.expected.push(Expected::Alias);
            let path = self.path(Expected::Path)?;
            let mut descending = false;
            if !self.eat_keyword(Keyword::Asc) && !self.eat_keyword(Keyword::Ascending) {
                descending =
                    self.eat_keyword(Keyword::Desc) || self.eat_keyword(Keyword::Descending);
            }
            keys.push(OrderKey { path, descending });
            if !self.eat_sign(',') {
                return Ok(keys);
            }
        }
    }

    fn limit(&mut self, start: Span) -> Parsed<Limit> {
        let count = self.word(TokenKind::Integer, Expected::WholeNumber)?;
        let offset = if self.eat_keyword(Keyword::Offset) {
            Some(self.word(TokenKind::Integer, Expected::WholeNumber)?)
        } else {
            None
        };
        Ok(Limit {
            count,
            offset,
            at: self.since(start),
        })
    }

    // --- Values

    /// Parses a path, literal, parameter or function; `expected` is reported if there is none.
    fn expr(&mut self, expected: Expected) -> Parsed<Expr> {
        match self.kind() {
            TokenKind::Keyword(Keyword::Terminology) => Ok(Expr::Terminology(self.terminology()?)),
            TokenKind::Keyword(k) if k.function().is_some() => Ok(Expr::Call(self.call()?)),
            // An unknown function is an error of the checker, which knows similar names.
            TokenKind::Identifier if self.next_is(TokenKind::Sign('(')) => {
                Ok(Expr::Call(self.call()?))
            }
            TokenKind::Identifier => Ok(Expr::Path(self.path(expected)?)),
            TokenKind::Parameter => Ok(Expr::Parameter(self.take_parameter())),
            _ => match self.literal()? {
                Some(literal) => Ok(Expr::Literal(literal)),
                None => self.want(expected),
            },
        }
    }

    fn call(&mut self) -> Parsed<Call> {
        let start = self.span();
        let mut name = self.take_word();
        // The formatter writes names of functions in upper case.
        if let Some(keyword) = Keyword::parse(&name.text) {
            name.text = keyword.text().to_owned();
        }
        self.need('(')?;
        let mut arguments = Vec::new();
        if !self.eat_sign(')') {
            loop {
                arguments.push(self.nested(|p| p.expr(Expected::Argument))?);
                if !self.eat_sign(',') {
                    break;
                }
            }
            self.need(')')?;
        }
        Ok(Call {
            name,
            arguments,
            at: self.since(start),
        })
    }

    fn terminology(&mut self) -> Parsed<Terminology> {
        let start = self.span();
        self.bump();
        self.need('(')?;
        let operation = self.word(TokenKind::Text, Expected::Operation)?.text;
        self.need(',')?;
        let service = self.word(TokenKind::Text, Expected::Service)?.text;
        self.need(',')?;
        let parameters = self
            .word(TokenKind::Text, Expected::ServiceParameters)?
            .text;
        self.need(')')?;
        Ok(Terminology {
            operation,
            service,
            parameters,
            at: self.since(start),
        })
    }

    /// Parses a literal, if one starts here. Signs are repeated at will: `- - 2` is 2.
    fn literal(&mut self) -> Parsed<Option<Literal>> {
        let start = self.span();
        let mut signs = 0;
        // The grammar has any number of signs (`numericPrimitive`).
        while self.kind() == TokenKind::Sign('-') {
            signs += 1;
            self.bump();
        }
        let text = self.slice(self.span());
        let value = match self.kind() {
            TokenKind::Integer | TokenKind::Real => {
                let sign = if signs % 2 == 1 { "-" } else { "" };
                LiteralValue::Number(format!("{sign}{text}"))
            }
            _ if signs > 0 => return self.want(Expected::Number),
            TokenKind::Text => LiteralValue::Text(text.to_owned()),
            TokenKind::Boolean => LiteralValue::Boolean(text.eq_ignore_ascii_case("true")),
            TokenKind::Keyword(Keyword::Null) => LiteralValue::Null,
            _ => return Ok(None),
        };
        self.bump();
        Ok(Some(Literal {
            value,
            at: self.since(start),
        }))
    }
}

/// Returns the only member, or joins several.
fn one_or<T>(mut all: Vec<T>, whole: impl FnOnce(Vec<T>) -> T) -> T {
    // A group of one member is the member itself, so that parentheses do not change the tree.
    match (all.len(), all.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            all.extend(last);
            whole(all)
        }
    }
}

#[cfg(test)]
mod tests;
