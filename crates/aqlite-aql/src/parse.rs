//! Tokens → syntax tree: a recursive descent over AQL Release 1.1.0, chapter 3, with `CONTAINS(…)`
//! as a function too.
//!
//! Every token that is asked for and not found is remembered, so an error names all that could have
//! stood there. Behind an error, reading goes on at the next clause (or column), so several errors
//! show at once.

mod cursor;

use super::ast::*;
use super::query::CompareOp;
use super::token::{Keyword, Token, TokenKind, keyword, tokens};
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::order;

/// The longest text that is read, in bytes.
pub const TEXT_LIMIT: usize = 256 * 1024;

/// How deep parentheses, CONTAINS, NOT, brackets and function calls nest.
pub const NESTING_LIMIT: usize = 64;

/// Reads a query. The tree is there when nothing is wrong; the diagnostics are in the order of the
/// text.
///
/// Codes: AQL0001 too long, AQL0002 too deep, AQL0101 unexpected word, AQL0105 clauses out of
/// order, AQL0106 a reserved word as a name, and those of [`tokens`].
pub fn parse(text: &str) -> (Option<Query>, Vec<Diagnostic>) {
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
    order::sort_by_key(&mut diagnostics, |d| d.span.start);
    (query.filter(|_| diagnostics.is_empty()), diagnostics)
}

/// What could be written next, at the end of the beginning of a query: words in back-ticks and
/// descriptions.
pub(crate) fn expected_next(beginning: &str) -> Vec<&'static str> {
    if beginning.len() > TEXT_LIMIT {
        return Vec::new();
    }
    let mut parser = Parser::new(beginning);
    let _ = parser.query();
    parser.at_end
}

/// A problem that has been told already.
struct Failed;

type Parsed<T> = Result<T, Failed>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    position: usize,
    depth: usize,
    clause: usize,
    expected: Vec<&'static str>,
    /// What was expected where the text ended.
    at_end: Vec<&'static str>,
    diagnostics: Vec<Diagnostic>,
}

/// The clauses as far as they were read.
#[derive(Default)]
struct Clauses {
    select: Option<Select>,
    from: Option<Containment>,
    condition: Option<Condition>,
    order: Vec<OrderKey>,
    limit: Option<Limit>,
}

const CLAUSES: [(Keyword, &str); 5] = [
    (Keyword::Select, "`SELECT`"),
    (Keyword::From, "`FROM`"),
    (Keyword::Where, "`WHERE`"),
    (Keyword::Order, "`ORDER BY`"),
    (Keyword::Limit, "`LIMIT`"),
];

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let (mut tokens, diagnostics) = tokens(text);
        tokens.retain(|t| t.kind != TokenKind::Comment);
        Parser {
            text,
            tokens,
            position: 0,
            depth: 0,
            clause: 0,
            expected: Vec::new(),
            at_end: Vec::new(),
            diagnostics,
        }
    }

    fn query(&mut self) -> Option<Query> {
        let mut clauses = Clauses::default();
        let mut next = 0;
        let mut selected = false;
        loop {
            let (kind, span) = (self.kind(), self.span());
            let found = CLAUSES
                .iter()
                .position(|(k, _)| kind == TokenKind::Keyword(*k));
            let Some(found) = found else {
                self.expected.extend(
                    CLAUSES
                        .iter()
                        .skip(next)
                        .take(if next < 2 { 1 } else { 5 })
                        .map(|(_, name)| *name),
                );
                if next >= 2 {
                    self.expected.push("the end of the query");
                }
                if kind == TokenKind::End && next >= 2 {
                    self.note_end();
                    break;
                }
                if kind != TokenKind::End || self.diagnostics.is_empty() {
                    let _ = self.unexpected::<()>();
                }
                if kind == TokenKind::End {
                    break;
                }
                self.skip_to_clause();
                next = next.max(1);
                continue;
            };
            self.missing(next..found.min(2));
            if found == 0 && selected {
                let help = "AQL has no subqueries and no UNION: one SELECT, FROM, WHERE, ORDER BY and LIMIT";
                self.diagnostics
                    .push(Diagnostic::error("AQL0105", span, "a second `SELECT`").with_help(help));
                return None;
            }
            if found < next {
                self.misplaced(found, next - 1, span);
            }
            selected |= found == 0;
            next = next.max(found + 1);
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

    /// Tells which of the mandatory clauses were passed over and do not stand further on either.
    fn missing(&mut self, passed: std::ops::Range<usize>) {
        for (keyword, name) in CLAUSES.iter().take(passed.end).skip(passed.start) {
            if !self
                .tokens
                .iter()
                .any(|t| t.kind == TokenKind::Keyword(*keyword))
            {
                self.expected.push(name);
                let _ = self.unexpected::<()>();
            }
        }
    }

    fn misplaced(&mut self, found: usize, last: usize, span: Span) {
        let name = |i: usize| CLAUSES.get(i).map_or("", |c| c.1);
        let message = if found == last {
            format!("{} stands twice", name(found))
        } else {
            format!("{} stands behind {}", name(found), name(last))
        };
        let help = "the order is SELECT, FROM, WHERE, ORDER BY, LIMIT, each once";
        self.diagnostics
            .push(Diagnostic::error("AQL0105", span, message).with_help(help));
    }

    fn clause(&mut self, which: usize, clauses: &mut Clauses) {
        let start = self.span();
        self.clause = which;
        self.bump();
        let done = match which {
            0 => self.select(start).map(|s| clauses.select = Some(s)),
            1 => self.containment().map(|f| clauses.from = Some(f)),
            2 => self.condition().map(|c| clauses.condition = Some(c)),
            3 => self.order().map(|o| clauses.order = o),
            _ => self.limit(start).map(|l| clauses.limit = Some(l)),
        };
        if done.is_err() {
            self.skip_to_clause();
        }
    }

    // SELECT, ORDER BY, LIMIT

    fn select(&mut self, start: Span) -> Parsed<Select> {
        let distinct = self.eat_keyword(Keyword::Distinct, "`DISTINCT`");
        let top = self.top()?;
        let mut columns = Vec::new();
        let mut failed = false;
        loop {
            match self.column() {
                Ok(column) => columns.push(column),
                Err(Failed) => {
                    failed = true;
                    self.skip_to_comma();
                }
            }
            if !self.eat(TokenKind::Sign(','), "`,`") {
                break;
            }
        }
        if failed {
            return Err(Failed);
        }
        Ok(Select {
            distinct,
            top,
            columns,
            at: self.since(start),
        })
    }

    fn top(&mut self) -> Parsed<Option<Top>> {
        let start = self.span();
        if !self.eat_keyword(Keyword::Top, "`TOP`") {
            return Ok(None);
        }
        let count = self.word(TokenKind::Integer, "a whole number")?;
        let forward = self.eat_keyword(Keyword::Forward, "`FORWARD`");
        let backward = !forward && self.eat_keyword(Keyword::Backward, "`BACKWARD`");
        Ok(Some(Top {
            count,
            backward,
            at: self.since(start),
        }))
    }

    fn column(&mut self) -> Parsed<Column> {
        let start = self.span();
        let value = match self.kind() {
            TokenKind::Keyword(
                k @ (Keyword::Count | Keyword::Min | Keyword::Max | Keyword::Sum | Keyword::Avg),
            ) => ColumnValue::Aggregate(self.aggregate(k)?),
            TokenKind::Parameter => return self.want("a column"),
            _ => ColumnValue::Expr(self.expr("a column")?),
        };
        let alias = if self.eat_keyword(Keyword::As, "`AS`") {
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
            TokenKind::Keyword(_) | TokenKind::Boolean => (self.span(), "a reserved word"),
            TokenKind::Code => (self.span(), "a node code"),
            _ => return self.word(TokenKind::Identifier, "a name"),
        };
        let message = format!("`{}` is {what} and cannot name a column", self.slice(span));
        let help = "choose another name: a letter, then letters, digits or `_`";
        self.diagnostics
            .push(Diagnostic::error("AQL0106", span, message).with_help(help));
        self.bump();
        Err(Failed)
    }

    fn aggregate(&mut self, function: Keyword) -> Parsed<Aggregate> {
        let start = self.span();
        self.bump();
        self.need('(', "`(`")?;
        let count = function == Keyword::Count;
        let distinct = count && self.eat_keyword(Keyword::Distinct, "`DISTINCT`");
        let path = if count && !distinct && self.eat(TokenKind::Sign('*'), "`*`") {
            None
        } else {
            Some(self.path("a path")?)
        };
        self.need(')', "`)`")?;
        Ok(Aggregate {
            function,
            distinct,
            path,
            at: self.since(start),
        })
    }

    fn order(&mut self) -> Parsed<Vec<OrderKey>> {
        if !self.eat_keyword(Keyword::By, "`BY`") {
            return self.unexpected();
        }
        let mut keys = Vec::new();
        loop {
            self.expected.push("a column's alias");
            let path = self.path("a path")?;
            let mut descending = false;
            if !self.eat_keyword(Keyword::Asc, "`ASC`")
                && !self.eat_keyword(Keyword::Ascending, "`ASCENDING`")
            {
                descending = self.eat_keyword(Keyword::Desc, "`DESC`")
                    || self.eat_keyword(Keyword::Descending, "`DESCENDING`");
            }
            keys.push(OrderKey { path, descending });
            if !self.eat(TokenKind::Sign(','), "`,`") {
                return Ok(keys);
            }
        }
    }

    fn limit(&mut self, start: Span) -> Parsed<Limit> {
        let count = self.word(TokenKind::Integer, "a whole number")?;
        let offset = if self.eat_keyword(Keyword::Offset, "`OFFSET`") {
            Some(self.word(TokenKind::Integer, "a whole number")?)
        } else {
            None
        };
        Ok(Limit {
            count,
            offset,
            at: self.since(start),
        })
    }

    // FROM

    fn containment(&mut self) -> Parsed<Containment> {
        let first = self.contained_all()?;
        let mut all = vec![first];
        while self.eat_keyword(Keyword::Or, "`OR`") {
            all.push(self.contained_all()?);
        }
        Ok(one_or(all, Containment::Or))
    }

    fn contained_all(&mut self) -> Parsed<Containment> {
        let first = self.contained()?;
        let mut all = vec![first];
        while self.eat_keyword(Keyword::And, "`AND`") {
            all.push(self.contained()?);
        }
        Ok(one_or(all, Containment::And))
    }

    fn contained(&mut self) -> Parsed<Containment> {
        if self.eat(TokenKind::Sign('('), "`(`") {
            let inner = self.nested(Self::containment)?;
            self.need(')', "`)`")?;
            return Ok(inner);
        }
        let (class, is_version) = match self.kind() {
            TokenKind::Keyword(Keyword::Version) => (self.take_word(), true),
            _ => (self.word(TokenKind::Identifier, "a class name")?, false),
        };
        let variable = if self.at(TokenKind::Identifier, "a variable") {
            Some(self.take_word())
        } else {
            None
        };
        let predicate = if self.eat(TokenKind::Sign('['), "`[`") {
            Some(self.class_predicate(is_version)?)
        } else {
            None
        };
        let start = self.span();
        let negated = self.next_is(TokenKind::Keyword(Keyword::Contains))
            && self.eat_keyword(Keyword::Not, "`NOT CONTAINS`");
        let contains = if self.eat_keyword(Keyword::Contains, "`CONTAINS`") {
            let at = self.since(start);
            Some(Contains {
                negated,
                inner: self.nested(Self::containment)?,
                at,
            })
        } else {
            None
        };
        Ok(Containment::Class(Box::new(ClassExpr {
            class,
            variable,
            predicate,
            contains,
        })))
    }

    fn class_predicate(&mut self, is_version: bool) -> Parsed<ClassPredicate> {
        let predicate = if !is_version {
            ClassPredicate::Node(self.nested(Self::predicate)?)
        } else if self.eat_keyword(Keyword::LatestVersion, "`LATEST_VERSION`") {
            ClassPredicate::LatestVersion
        } else if self.eat_keyword(Keyword::AllVersions, "`ALL_VERSIONS`") {
            ClassPredicate::AllVersions
        } else {
            ClassPredicate::Node(self.nested(Self::compare_predicate)?)
        };
        self.need(']', "`]`")?;
        Ok(predicate)
    }

    // WHERE

    fn condition(&mut self) -> Parsed<Condition> {
        let mut all = vec![self.condition_all()?];
        while self.eat_keyword(Keyword::Or, "`OR`") {
            all.push(self.condition_all()?);
        }
        Ok(one_or(all, Condition::Or))
    }

    fn condition_all(&mut self) -> Parsed<Condition> {
        let mut all = vec![self.condition_one()?];
        while self.eat_keyword(Keyword::And, "`AND`") {
            all.push(self.condition_one()?);
        }
        Ok(one_or(all, Condition::And))
    }

    fn condition_one(&mut self) -> Parsed<Condition> {
        if self.eat_keyword(Keyword::Not, "`NOT`") {
            return Ok(Condition::Not(Box::new(self.nested(Self::condition_one)?)));
        }
        if self.eat(TokenKind::Sign('('), "`(`") {
            let inner = self.nested(Self::condition)?;
            self.need(')', "`)`")?;
            return Ok(inner);
        }
        if self.eat_keyword(Keyword::Exists, "`EXISTS`") {
            return Ok(Condition::Exists(self.path("a path")?));
        }
        let literal = matches!(
            self.kind(),
            TokenKind::Text
                | TokenKind::Integer
                | TokenKind::Real
                | TokenKind::Boolean
                | TokenKind::Keyword(Keyword::Null)
        );
        if literal || matches!(self.kind(), TokenKind::Parameter | TokenKind::Sign('-')) {
            self.expected.push("a function");
            return self.want("a path");
        }
        match self.expr("a path or function")? {
            Expr::Path(path) if self.eat_keyword(Keyword::Like, "`LIKE`") => {
                Ok(Condition::Like(path, self.like_operand()?))
            }
            Expr::Path(path) if self.eat_keyword(Keyword::Matches, "`MATCHES`") => {
                Ok(Condition::Matches(path, self.matches_operand()?))
            }
            left => {
                let op = self.comparison()?;
                let right = self.expr("a value")?;
                Ok(Condition::Compare(Box::new(Compare { left, op, right })))
            }
        }
    }

    fn comparison(&mut self) -> Parsed<CompareOp> {
        if !self.at(TokenKind::Comparison, "a comparison") {
            return self.unexpected();
        }
        let op = match self.slice(self.span()) {
            "=" => CompareOp::Eq,
            "!=" => CompareOp::Ne,
            "<" => CompareOp::Lt,
            "<=" => CompareOp::Le,
            ">" => CompareOp::Gt,
            _ => CompareOp::Ge,
        };
        self.bump();
        Ok(op)
    }

    fn like_operand(&mut self) -> Parsed<LikeOperand> {
        if self.at(TokenKind::Parameter, "a parameter") {
            return Ok(LikeOperand::Parameter(self.take_parameter()));
        }
        Ok(LikeOperand::Text(self.word(TokenKind::Text, "a string")?))
    }

    fn matches_operand(&mut self) -> Parsed<MatchesOperand> {
        if self.at(TokenKind::Keyword(Keyword::Terminology), "`TERMINOLOGY`") {
            return Ok(MatchesOperand::Terminology(self.terminology()?));
        }
        self.need('{', "`{`")?;
        if self.at(TokenKind::Uri, "a URI") {
            let uri = self.take_word();
            self.need('}', "`}`")?;
            return Ok(MatchesOperand::Uri(uri));
        }
        let mut items = vec![self.matches_item()?];
        while self.eat(TokenKind::Sign(','), "`,`") {
            items.push(self.matches_item()?);
        }
        self.need('}', "`}`")?;
        Ok(MatchesOperand::List(items))
    }

    fn matches_item(&mut self) -> Parsed<MatchesItem> {
        if self.at(TokenKind::Parameter, "a parameter") {
            return Ok(MatchesItem::Parameter(self.take_parameter()));
        }
        if self.at(TokenKind::Keyword(Keyword::Terminology), "`TERMINOLOGY`") {
            return Ok(MatchesItem::Terminology(self.terminology()?));
        }
        match self.literal()? {
            Some(literal) => Ok(MatchesItem::Literal(literal)),
            None => self.want("a literal"),
        }
    }

    // values

    /// A path, literal, parameter or function; `what` names what is asked for here.
    fn expr(&mut self, what: &'static str) -> Parsed<Expr> {
        match self.kind() {
            TokenKind::Keyword(Keyword::Terminology) => Ok(Expr::Terminology(self.terminology()?)),
            TokenKind::Keyword(k) if k.is_single_row_function() => Ok(Expr::Call(self.call()?)),
            TokenKind::Identifier if self.next_is(TokenKind::Sign('(')) => {
                Ok(Expr::Call(self.call()?))
            }
            TokenKind::Identifier => Ok(Expr::Path(self.path(what)?)),
            TokenKind::Parameter => Ok(Expr::Parameter(self.take_parameter())),
            _ => match self.literal()? {
                Some(literal) => Ok(Expr::Literal(literal)),
                None => self.want(what),
            },
        }
    }

    fn call(&mut self) -> Parsed<Call> {
        let start = self.span();
        let mut name = self.take_word();
        if let Some(keyword) = keyword(&name.text) {
            name.text = keyword.text().to_owned();
        }
        self.need('(', "`(`")?;
        let mut arguments = Vec::new();
        if !self.eat(TokenKind::Sign(')'), "`)`") {
            loop {
                arguments.push(self.nested(|p| p.expr("an argument"))?);
                if !self.eat(TokenKind::Sign(','), "`,`") {
                    break;
                }
            }
            self.need(')', "`)`")?;
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
        self.need('(', "`(`")?;
        let operation = self.word(TokenKind::Text, "a string (the operation)")?.text;
        self.need(',', "`,`")?;
        let service = self.word(TokenKind::Text, "a string (the service)")?.text;
        self.need(',', "`,`")?;
        let parameters = self
            .word(TokenKind::Text, "a string (the parameters)")?
            .text;
        self.need(')', "`)`")?;
        Ok(Terminology {
            operation,
            service,
            parameters,
            at: self.since(start),
        })
    }

    /// A literal, if one starts here.
    fn literal(&mut self) -> Parsed<Option<Literal>> {
        let start = self.span();
        let mut negative = false;
        let mut signed = false;
        while self.kind() == TokenKind::Sign('-') {
            signed = true;
            negative = !negative;
            self.bump();
        }
        let value = match self.kind() {
            TokenKind::Integer | TokenKind::Real => LiteralValue::Number(format!(
                "{}{}",
                if negative { "-" } else { "" },
                self.slice(self.span())
            )),
            _ if signed => return self.want("a number"),
            TokenKind::Text => LiteralValue::Text(self.slice(start).to_owned()),
            TokenKind::Boolean => {
                LiteralValue::Boolean(self.slice(start).eq_ignore_ascii_case("true"))
            }
            TokenKind::Keyword(Keyword::Null) => LiteralValue::Null,
            _ => return Ok(None),
        };
        self.bump();
        Ok(Some(Literal {
            value,
            at: self.since(start),
        }))
    }

    // paths and predicates

    fn path(&mut self, what: &'static str) -> Parsed<Path> {
        let start = self.span();
        let variable = self.word(TokenKind::Identifier, what)?;
        let root = self.brackets()?;
        let steps = if self.eat(TokenKind::Sign('/'), "`/`") {
            self.steps()?
        } else {
            Vec::new()
        };
        Ok(Path {
            variable,
            root,
            steps,
            at: self.since(start),
        })
    }

    fn steps(&mut self) -> Parsed<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            let attribute = self.word(TokenKind::Identifier, "an attribute")?;
            steps.push(Step {
                attribute,
                predicate: self.brackets()?,
            });
            if !self.eat(TokenKind::Sign('/'), "`/`") {
                return Ok(steps);
            }
        }
    }

    fn brackets(&mut self) -> Parsed<Option<Predicate>> {
        if !self.eat(TokenKind::Sign('['), "`[`") {
            return Ok(None);
        }
        let predicate = self.nested(Self::predicate)?;
        self.need(']', "`]`")?;
        Ok(Some(predicate))
    }

    fn predicate(&mut self) -> Parsed<Predicate> {
        let mut any = vec![self.predicate_all()?];
        while self.eat_keyword(Keyword::Or, "`OR`") {
            any.push(self.predicate_all()?);
        }
        Ok(one_or(any, Predicate::Or))
    }

    fn predicate_all(&mut self) -> Parsed<Predicate> {
        let mut all = vec![self.predicate_one()?];
        while self.eat_keyword(Keyword::And, "`AND`") {
            all.push(self.predicate_one()?);
        }
        Ok(one_or(all, Predicate::And))
    }

    fn predicate_one(&mut self) -> Parsed<Predicate> {
        let span = self.span();
        let id = match self.kind() {
            TokenKind::Code => NodeId::Code(self.take_word().text),
            TokenKind::Archetype => NodeId::Archetype(self.take_word().text),
            TokenKind::Parameter => NodeId::Parameter(self.take_parameter()),
            _ => return self.compare_predicate(),
        };
        let name = if self.eat(TokenKind::Sign(','), "`,`") {
            Some(self.node_name()?)
        } else {
            None
        };
        Ok(Predicate::Node(NodePredicate {
            id,
            name,
            at: At(span),
        }))
    }

    fn node_name(&mut self) -> Parsed<NodeName> {
        Ok(match self.kind() {
            TokenKind::Text => NodeName::Text(self.take_word().text),
            TokenKind::Parameter => NodeName::Parameter(self.take_parameter()),
            TokenKind::Term => NodeName::Term(self.take_word().text),
            TokenKind::Code => NodeName::Code(self.take_word().text),
            _ => return self.want("a node name"),
        })
    }

    fn compare_predicate(&mut self) -> Parsed<Predicate> {
        let start = self.span();
        if self.kind() != TokenKind::Identifier {
            return self.want("a predicate");
        }
        let path = self.steps()?;
        if self.eat_keyword(Keyword::Matches, "`MATCHES`") {
            return Ok(Predicate::Regex(RegexPredicate {
                path,
                regex: self.word(TokenKind::Regex, "a regular expression `{/…/}`")?,
            }));
        }
        let op = self.comparison()?;
        let value = match self.kind() {
            TokenKind::Parameter => PredicateValue::Parameter(self.take_parameter()),
            TokenKind::Code => PredicateValue::Code(self.take_word().text),
            TokenKind::Identifier => PredicateValue::Path(self.steps()?),
            _ => match self.literal()? {
                Some(literal) => PredicateValue::Literal(literal),
                None => return self.want("a value"),
            },
        };
        Ok(Predicate::Compare(Box::new(ComparePredicate {
            path,
            op,
            value,
            at: self.since(start),
        })))
    }
}

/// The only member, or the whole of them.
fn one_or<T>(mut all: Vec<T>, whole: impl FnOnce(Vec<T>) -> T) -> T {
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
