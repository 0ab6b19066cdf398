//! Tokens → syntax tree: a recursive descent over AQL Release 1.1.0, chapter 3, with `CONTAINS(…)` as a function too.
//!
//! Every token that is asked for and not found is remembered, so an error names all that could have stood there. Behind
//! an error, reading goes on at the next clause (or column), so several errors show at once.

use super::ast::*;
use super::hint::{Place, hint};
use super::query::CompareOp;
use super::token::{DIAGNOSTICS_LIMIT, Keyword, Token, TokenKind, keyword, tokens};
use crate::diag::{Diagnostic, Span, nearest};
use crate::order;

/// The longest text that is read, in bytes.
pub const TEXT_LIMIT: usize = 256 * 1024;

/// How deep parentheses, CONTAINS, NOT, brackets and function calls nest.
pub const NESTING_LIMIT: usize = 64;

/// Reads a query. The tree is there when nothing is wrong; the diagnostics are in the order of the text.
///
/// Codes: AQL0001 too long, AQL0002 too deep, AQL0101 unexpected word, AQL0105 clauses out of order, AQL0106 a reserved
/// word as a name, and those of [`tokens`].
pub fn parse(text: &str) -> (Option<Query>, Vec<Diagnostic>) {
    if text.len() > TEXT_LIMIT {
        let message = format!("the query has {} bytes, more than {TEXT_LIMIT}", text.len());
        return (None, vec![Diagnostic::error("AQL0001", Span::new(0, 0), message)]);
    }
    let mut parser = Parser::new(text);
    let query = parser.query();
    let mut diagnostics = parser.diagnostics;
    order::sort_by_key(&mut diagnostics, |d| d.span.start);
    (query.filter(|_| diagnostics.is_empty()), diagnostics)
}

/// What could be written next, at the end of the beginning of a query: words in back-ticks and descriptions.
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
        Parser { text, tokens, position: 0, depth: 0, clause: 0, expected: Vec::new(), at_end: Vec::new(), diagnostics }
    }

    fn query(&mut self) -> Option<Query> {
        let mut clauses = Clauses::default();
        let mut next = 0;
        let mut selected = false;
        loop {
            let (kind, span) = (self.kind(), self.span());
            let found = CLAUSES.iter().position(|(k, _)| kind == TokenKind::Keyword(*k));
            let Some(found) = found else {
                self.expected.extend(CLAUSES.iter().skip(next).take(if next < 2 { 1 } else { 5 }).map(|(_, name)| *name));
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
                self.diagnostics.push(Diagnostic::error("AQL0105", span, "a second `SELECT`").with_help(help));
                return None;
            }
            if found < next {
                self.misplaced(found, next - 1, span);
            }
            selected |= found == 0;
            next = next.max(found + 1);
            self.clause(found, &mut clauses);
        }
        Some(Query { select: clauses.select?, from: clauses.from?, condition: clauses.condition, order: clauses.order, limit: clauses.limit })
    }

    /// Tells which of the mandatory clauses were passed over and do not stand further on either.
    fn missing(&mut self, passed: std::ops::Range<usize>) {
        for (keyword, name) in CLAUSES.iter().take(passed.end).skip(passed.start) {
            if !self.tokens.iter().any(|t| t.kind == TokenKind::Keyword(*keyword)) {
                self.expected.push(name);
                let _ = self.unexpected::<()>();
            }
        }
    }

    fn misplaced(&mut self, found: usize, last: usize, span: Span) {
        let name = |i: usize| CLAUSES.get(i).map_or("", |c| c.1);
        let message = if found == last { format!("{} stands twice", name(found)) } else { format!("{} stands behind {}", name(found), name(last)) };
        let help = "the order is SELECT, FROM, WHERE, ORDER BY, LIMIT, each once";
        self.diagnostics.push(Diagnostic::error("AQL0105", span, message).with_help(help));
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
        Ok(Select { distinct, top, columns, at: self.since(start) })
    }

    fn top(&mut self) -> Parsed<Option<Top>> {
        let start = self.span();
        if !self.eat_keyword(Keyword::Top, "`TOP`") {
            return Ok(None);
        }
        let count = self.word(TokenKind::Integer, "a whole number")?;
        let forward = self.eat_keyword(Keyword::Forward, "`FORWARD`");
        let backward = !forward && self.eat_keyword(Keyword::Backward, "`BACKWARD`");
        Ok(Some(Top { count, backward, at: self.since(start) }))
    }

    fn column(&mut self) -> Parsed<Column> {
        let start = self.span();
        let value = match self.kind() {
            TokenKind::Keyword(k @ (Keyword::Count | Keyword::Min | Keyword::Max | Keyword::Sum | Keyword::Avg)) => {
                ColumnValue::Aggregate(self.aggregate(k)?)
            }
            TokenKind::Parameter => return self.want("a column"),
            _ => ColumnValue::Expr(self.expr("a column")?),
        };
        let alias = if self.eat_keyword(Keyword::As, "`AS`") { Some(self.alias()?) } else { None };
        Ok(Column { value, alias, at: self.since(start) })
    }

    fn alias(&mut self) -> Parsed<Name> {
        let (span, what) = match self.kind() {
            TokenKind::Keyword(_) | TokenKind::Boolean => (self.span(), "a reserved word"),
            TokenKind::Code => (self.span(), "a node code"),
            _ => return self.word(TokenKind::Identifier, "a name"),
        };
        let message = format!("`{}` is {what} and cannot name a column", self.slice(span));
        let help = "choose another name: a letter, then letters, digits or `_`";
        self.diagnostics.push(Diagnostic::error("AQL0106", span, message).with_help(help));
        self.bump();
        Err(Failed)
    }

    fn aggregate(&mut self, function: Keyword) -> Parsed<Aggregate> {
        let start = self.span();
        self.bump();
        self.need('(', "`(`")?;
        let count = function == Keyword::Count;
        let distinct = count && self.eat_keyword(Keyword::Distinct, "`DISTINCT`");
        let path = if count && !distinct && self.eat(TokenKind::Sign('*'), "`*`") { None } else { Some(self.path("a path")?) };
        self.need(')', "`)`")?;
        Ok(Aggregate { function, distinct, path, at: self.since(start) })
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
            if !self.eat_keyword(Keyword::Asc, "`ASC`") && !self.eat_keyword(Keyword::Ascending, "`ASCENDING`") {
                descending = self.eat_keyword(Keyword::Desc, "`DESC`") || self.eat_keyword(Keyword::Descending, "`DESCENDING`");
            }
            keys.push(OrderKey { path, descending });
            if !self.eat(TokenKind::Sign(','), "`,`") {
                return Ok(keys);
            }
        }
    }

    fn limit(&mut self, start: Span) -> Parsed<Limit> {
        let count = self.word(TokenKind::Integer, "a whole number")?;
        let offset = if self.eat_keyword(Keyword::Offset, "`OFFSET`") { Some(self.word(TokenKind::Integer, "a whole number")?) } else { None };
        Ok(Limit { count, offset, at: self.since(start) })
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
        let variable = if self.at(TokenKind::Identifier, "a variable") { Some(self.take_word()) } else { None };
        let predicate = if self.eat(TokenKind::Sign('['), "`[`") { Some(self.class_predicate(is_version)?) } else { None };
        let start = self.span();
        let negated = self.next_is(TokenKind::Keyword(Keyword::Contains)) && self.eat_keyword(Keyword::Not, "`NOT CONTAINS`");
        let contains = if self.eat_keyword(Keyword::Contains, "`CONTAINS`") {
            let at = self.since(start);
            Some(Contains { negated, inner: self.nested(Self::containment)?, at })
        } else {
            None
        };
        Ok(Containment::Class(Box::new(ClassExpr { class, variable, predicate, contains })))
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
        let literal =
            matches!(self.kind(), TokenKind::Text | TokenKind::Integer | TokenKind::Real | TokenKind::Boolean | TokenKind::Keyword(Keyword::Null));
        if literal || matches!(self.kind(), TokenKind::Parameter | TokenKind::Sign('-')) {
            self.expected.push("a function");
            return self.want("a path");
        }
        match self.expr("a path or function")? {
            Expr::Path(path) if self.eat_keyword(Keyword::Like, "`LIKE`") => Ok(Condition::Like(path, self.like_operand()?)),
            Expr::Path(path) if self.eat_keyword(Keyword::Matches, "`MATCHES`") => Ok(Condition::Matches(path, self.matches_operand()?)),
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
            TokenKind::Identifier if self.next_is(TokenKind::Sign('(')) => Ok(Expr::Call(self.call()?)),
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
        Ok(Call { name, arguments, at: self.since(start) })
    }

    fn terminology(&mut self) -> Parsed<Terminology> {
        let start = self.span();
        self.bump();
        self.need('(', "`(`")?;
        let operation = self.word(TokenKind::Text, "a string (the operation)")?.text;
        self.need(',', "`,`")?;
        let service = self.word(TokenKind::Text, "a string (the service)")?.text;
        self.need(',', "`,`")?;
        let parameters = self.word(TokenKind::Text, "a string (the parameters)")?.text;
        self.need(')', "`)`")?;
        Ok(Terminology { operation, service, parameters, at: self.since(start) })
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
            TokenKind::Integer | TokenKind::Real => LiteralValue::Number(format!("{}{}", if negative { "-" } else { "" }, self.slice(self.span()))),
            _ if signed => return self.want("a number"),
            TokenKind::Text => LiteralValue::Text(self.slice(start).to_owned()),
            TokenKind::Boolean => LiteralValue::Boolean(self.slice(start).eq_ignore_ascii_case("true")),
            TokenKind::Keyword(Keyword::Null) => LiteralValue::Null,
            _ => return Ok(None),
        };
        self.bump();
        Ok(Some(Literal { value, at: self.since(start) }))
    }

    // paths and predicates

    fn path(&mut self, what: &'static str) -> Parsed<Path> {
        let start = self.span();
        let variable = self.word(TokenKind::Identifier, what)?;
        let root = self.brackets()?;
        let steps = if self.eat(TokenKind::Sign('/'), "`/`") { self.steps()? } else { Vec::new() };
        Ok(Path { variable, root, steps, at: self.since(start) })
    }

    fn steps(&mut self) -> Parsed<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            let attribute = self.word(TokenKind::Identifier, "an attribute")?;
            steps.push(Step { attribute, predicate: self.brackets()? });
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
        let name = if self.eat(TokenKind::Sign(','), "`,`") { Some(self.node_name()?) } else { None };
        Ok(Predicate::Node(NodePredicate { id, name, at: At(span) }))
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
            return Ok(Predicate::Regex(RegexPredicate { path, regex: self.word(TokenKind::Regex, "a regular expression `{/…/}`")? }));
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
        Ok(Predicate::Compare(Box::new(ComparePredicate { path, op, value, at: self.since(start) })))
    }
}

/// The machinery: looking, taking, telling, going on.
impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens.get(self.position).copied().unwrap_or(Token { kind: TokenKind::End, span: Span::new(self.text.len(), self.text.len()) })
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    fn span(&self) -> Span {
        self.token().span
    }

    fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// From a start to the end of the last token taken.
    fn since(&self, start: Span) -> At {
        let last = self.position.checked_sub(1).and_then(|i| self.tokens.get(i)).map_or(start, |t| t.span);
        At(start.to(last))
    }

    fn next_is(&self, kind: TokenKind) -> bool {
        self.tokens.get(self.position + 1).is_some_and(|t| t.kind == kind)
    }

    fn bump(&mut self) {
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
        self.expected.clear();
    }

    /// True when such a token stands here; if not, `what` is remembered as missing.
    fn at(&mut self, kind: TokenKind, what: &'static str) -> bool {
        let found = self.kind() == kind;
        if !found && !self.expected.contains(&what) {
            self.expected.push(what);
        }
        found
    }

    fn eat(&mut self, kind: TokenKind, what: &'static str) -> bool {
        let found = self.at(kind, what);
        if found {
            self.bump();
        }
        found
    }

    fn eat_keyword(&mut self, keyword: Keyword, what: &'static str) -> bool {
        self.eat(TokenKind::Keyword(keyword), what)
    }

    fn need(&mut self, sign: char, what: &'static str) -> Parsed<()> {
        if self.eat(TokenKind::Sign(sign), what) { Ok(()) } else { self.unexpected() }
    }

    fn word(&mut self, kind: TokenKind, what: &'static str) -> Parsed<Name> {
        if self.at(kind, what) { Ok(self.take_word()) } else { self.unexpected() }
    }

    fn take_word(&mut self) -> Name {
        let span = self.span();
        let name = Name::new(self.slice(span), span);
        self.bump();
        name
    }

    fn take_parameter(&mut self) -> Name {
        let name = self.take_word();
        Name { text: name.text.trim_start_matches('$').to_owned(), ..name }
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING_LIMIT {
            let message = format!("the query nests deeper than {NESTING_LIMIT} levels");
            self.diagnostics.push(Diagnostic::error("AQL0002", self.span(), message));
            return Err(Failed);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn note_end(&mut self) {
        if self.kind() == TokenKind::End && self.at_end.is_empty() {
            self.at_end.clone_from(&self.expected);
        }
    }

    /// Tells that `what` is missing here, beside all that was looked for.
    fn want<T>(&mut self, what: &'static str) -> Parsed<T> {
        if !self.expected.contains(&what) {
            self.expected.push(what);
        }
        self.unexpected()
    }

    fn unexpected<T>(&mut self) -> Parsed<T> {
        self.tell_unexpected();
        Err(Failed)
    }

    /// Tells what stands here and what should; silent where the lexer has spoken already.
    fn tell_unexpected(&mut self) {
        let Token { kind, span } = self.token();
        self.note_end();
        if kind == TokenKind::Invalid || self.diagnostics.len() >= DIAGNOSTICS_LIMIT {
            return;
        }
        let found = if kind == TokenKind::End { "the end of the query".to_owned() } else { format!("`{}`", shorten(self.slice(span))) };
        let message = format!("expected {}, found {found}", list(&self.expected));
        let before = self.position.checked_sub(1).and_then(|i| self.tokens.get(i)).map(|t| t.kind);
        let clause = CLAUSES.get(self.clause).filter(|_| self.position > 0).map(|c| c.0);
        let word = self.slice(span).to_ascii_lowercase();
        let mut words = self.expected.iter().map(|e| e.trim_matches('`')).filter(|e| e.len() > 2);
        let near = if kind == TokenKind::Identifier { nearest(&word, &mut words) } else { None };
        let help = match near {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None => hint(&Place { word: &word, kind, before, clause, expected: &self.expected }).map(str::to_owned),
        };
        self.diagnostics.push(Diagnostic { help, ..Diagnostic::error("AQL0101", span, message) });
    }

    fn skip_to_clause(&mut self) {
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Keyword(Keyword::Order) if self.next_is(TokenKind::Keyword(Keyword::By)) => {
                    return;
                }
                TokenKind::Keyword(Keyword::Select | Keyword::From | Keyword::Where | Keyword::Limit) => return,
                _ => self.bump(),
            }
        }
    }

    /// Goes to the next comma of the column list, over brackets of all kinds, or to the next clause.
    fn skip_to_comma(&mut self) {
        let mut open = 0usize;
        loop {
            match self.kind() {
                TokenKind::End | TokenKind::Keyword(Keyword::From | Keyword::Where) => return,
                TokenKind::Sign(',') if open == 0 => return,
                TokenKind::Sign('(' | '[' | '{') => open += 1,
                TokenKind::Sign(')' | ']' | '}') => open = open.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
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

/// `a`, `a or b`, `a, b or c`; the plain words first, what needs explaining last.
fn list(all: &[&str]) -> String {
    let (words, phrases): (Vec<&str>, Vec<&str>) = all.iter().partition(|w| w.starts_with('`'));
    let mut all: Vec<&str> = words.into_iter().chain(phrases).collect();
    match all.pop() {
        None => "something else".to_owned(),
        Some(only) if all.is_empty() => only.to_owned(),
        Some(last) => format!("{} or {last}", all.join(", ")),
    }
}

fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 40 { line.to_owned() } else { line.chars().take(39).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Query {
        let (query, diagnostics) = parse(text);
        query.unwrap_or_else(|| panic!("{text}: {diagnostics:?}"))
    }

    fn codes(text: &str) -> Vec<&'static str> {
        parse(text).1.iter().map(|d| d.code).collect()
    }

    #[test]
    fn contains_takes_everything_to_its_right() {
        let a = ok("SELECT a FROM EHR e CONTAINS COMPOSITION a CONTAINS OBSERVATION o AND EVALUATION v OR ACTION x");
        let b = ok("SELECT a FROM EHR e CONTAINS (COMPOSITION a CONTAINS ((OBSERVATION o AND EVALUATION v) OR ACTION x))");
        assert_eq!(a, b);
    }

    #[test]
    fn not_binds_tighter_than_and_tighter_than_or() {
        let a = ok("SELECT a FROM EHR a WHERE NOT a/x = 1 AND a/y = 2 OR a/z = 3");
        let b = ok("SELECT a FROM EHR a WHERE ((NOT (a/x = 1)) AND a/y = 2) OR a/z = 3");
        assert_eq!(a, b);
    }

    #[test]
    fn several_errors_show_at_once() {
        assert_eq!(codes("SELECT a/, b/name/ FROM EHR WHERE a/b <> 3 ORDER BY 1 LIMIT x"), ["AQL0101", "AQL0101", "AQL0102", "AQL0101", "AQL0101"]);
    }

    #[test]
    fn clauses_out_of_order_are_told_once() {
        assert_eq!(codes("SELECT c FROM COMPOSITION c LIMIT 5 ORDER BY c/name/value"), ["AQL0105"]);
        assert_eq!(codes("FROM EHR e SELECT e"), ["AQL0105"]);
        assert_eq!(codes("FROM EHR e"), ["AQL0101"]);
        assert_eq!(codes(""), ["AQL0101"]);
        assert_eq!(codes("asdf"), ["AQL0101"]);
        assert_eq!(codes("SELECT c"), ["AQL0101"]);
        assert_eq!(codes("SELECT c WHERE c/a = 1"), ["AQL0101"]);
    }

    #[test]
    fn deep_nesting_and_long_texts_are_refused() {
        let deep = |n: usize| format!("SELECT e FROM EHR e WHERE {}e/a = 1{}", "(".repeat(n), ")".repeat(n));
        assert!(codes(&deep(60)).is_empty());
        assert_eq!(codes(&deep(10_000)), ["AQL0002"]);
        assert_eq!(codes(&format!("SELECT e FROM EHR e WHERE {} e/a = 1", "NOT ".repeat(10_000))), ["AQL0002"]);
        assert_eq!(codes(&" ".repeat(TEXT_LIMIT + 1)), ["AQL0001"]);
        let wide = format!("SELECT e FROM EHR e WHERE e/a = 1{}", " OR e/a = 1".repeat(20_000));
        assert!(codes(&wide).is_empty());
    }

    #[test]
    fn an_error_names_what_could_stand_there() {
        let (_, diagnostics) = parse("SELECT c/name/value n FROM COMPOSITION c");
        let first = diagnostics.first().map(|d| d.message.as_str());
        assert_eq!(first, Some("expected `[`, `/`, `AS`, `,` or `FROM`, found `n`"));
    }
}
