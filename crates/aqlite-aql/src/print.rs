//! The formatter: syntax tree → text. The text parses to the same tree.
//!
//! Each clause, column, class and condition has a line of its own; a group in parentheses has one
//! line if it fits. Words of the language are in upper case, in brackets in lower case as in
//! published paths. Names, quotes and digits remain as the author wrote them.

use super::ast::*;
use super::parse::parse;
use super::token::{Token, TokenKind, tokens};
use super::vocabulary::{Clause, Keyword};
use aqlite_rm::diag::{Diagnostic, Span};
use std::fmt::Write;

/// The width in characters above which the group of a line is broken up.
const WIDTH: usize = 100;

/// Writes a query without comments, which are not part of the tree. [`format()`] keeps them.
pub fn print(query: &Query) -> String {
    Printer {
        out: String::new(),
        comments: Vec::new(),
    }
    .query(query)
}

/// Formats a text. A comment remains in front of the column, class or condition that follows it.
///
/// # Errors
/// The errors of the text, if it is not a query.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let (query, diagnostics) = parse(text);
    let Some(query) = query else {
        return Err(diagnostics);
    };
    let comments = tokens(text).0.into_iter();
    let comments = comments.filter(|t| t.kind == TokenKind::Comment);
    let with_text = |t: Token| {
        let comment = text.get(t.span.start..t.span.end);
        // The span is that of a token of this text, so the default is never used.
        (t.span.start, comment.unwrap_or_default().trim_end())
    };
    let printer = Printer {
        out: String::new(),
        // The first comment comes last, where it can be popped.
        comments: comments.map(with_text).rev().collect(),
    };
    Ok(printer.query(&query))
}

struct Printer<'a> {
    out: String,
    /// The comments that are not yet written, in reverse order: the start of each, and its text.
    comments: Vec<(usize, &'a str)>,
}

impl Printer<'_> {
    fn query(mut self, query: &Query) -> String {
        self.select(&query.select);
        self.line(0, containment_start(&query.from));
        let _ = write!(self.out, "{} ", Clause::From);
        self.containment(&query.from, 2);
        if let Some(condition) = &query.condition {
            self.line(0, condition_start(condition));
            let _ = write!(self.out, "{} ", Clause::Where);
            self.condition(condition, 2);
        }
        if let Some(first) = query.order.first() {
            self.line(0, first.path.span().start);
            let _ = write!(self.out, "{} ", Clause::OrderBy);
            joined(&mut self.out, &query.order, ", ", order_key);
        }
        if let Some(clause) = &query.limit {
            self.line(0, clause.at.0.start);
            limit(&mut self.out, clause);
        }
        self.line(0, usize::MAX);
        self.out
    }

    /// Starts a line, unless the present one is empty. The comments that precede the position
    /// `before` of the source are written first.
    fn line(&mut self, indent: usize, before: usize) {
        let fresh = |out: &mut String| {
            out.truncate(out.trim_end().len());
            if !out.is_empty() {
                out.push('\n');
            }
            out.extend(std::iter::repeat_n(' ', indent));
        };
        fresh(&mut self.out);
        // A comment extends to the end of its line, so the next token starts a line.
        while let Some((_, comment)) = self.comments.pop_if(|(start, _)| *start < before) {
            self.out.push_str(comment);
            fresh(&mut self.out);
        }
    }

    fn select(&mut self, select: &Select) {
        self.line(0, select.at.0.start);
        select_words(&mut self.out, select);
        if let Some(clause) = &select.top {
            self.out.push(' ');
            top(&mut self.out, clause);
        }
        for (i, column) in select.columns.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            if select.columns.len() > 1 {
                self.line(2, column.at.0.start);
            } else {
                self.out.push(' ');
            }
            write_column(&mut self.out, column);
        }
    }

    fn containment(&mut self, containment: &Containment, indent: usize) {
        let (all, word) = match containment {
            Containment::Class(class) => return self.class(class, indent),
            Containment::And(all) => (all, Keyword::And),
            Containment::Or(any) => (any, Keyword::Or),
        };
        for (i, inner) in all.iter().enumerate() {
            if i > 0 {
                self.line(indent, containment_start(inner));
                let _ = write!(self.out, "{word} ");
            }
            // CONTAINS applies to everything behind it, so only the last member may end in one
            // without parentheses.
            let last = i + 1 == all.len();
            let grouped = match inner {
                Containment::Class(class) => class.contains.is_some() && !last,
                Containment::And(_) => word == Keyword::And || open_to_the_right(inner) && !last,
                Containment::Or(_) => true,
            };
            if grouped {
                self.group(indent, |p, indent| p.containment(inner, indent));
            } else {
                self.containment(inner, indent + 2);
            }
        }
    }

    fn class(&mut self, class: &ClassExpr, indent: usize) {
        class_head(&mut self.out, class);
        let Some(contains) = &class.contains else {
            return;
        };
        self.line(indent, contains.at.0.start);
        contains_words(&mut self.out, contains);
        self.out.push(' ');
        match &contains.inner {
            Containment::Class(inner) => self.class(inner, indent + 2),
            inner => self.group(indent, |p, indent| p.containment(inner, indent)),
        }
    }

    /// Writes a group in parentheses, broken up over lines.
    fn group(&mut self, indent: usize, inner: impl FnOnce(&mut Self, usize)) {
        self.out.push('(');
        self.line(indent + 2, 0);
        inner(self, indent + 2);
        self.line(indent, 0);
        self.out.push(')');
    }

    fn condition(&mut self, whole: &Condition, indent: usize) {
        let (all, word, both) = match whole {
            Condition::And(all) => (all, Keyword::And, true),
            Condition::Or(any) => (any, Keyword::Or, false),
            single => return condition(&mut self.out, single),
        };
        for (i, inner) in all.iter().enumerate() {
            if i > 0 {
                self.line(indent, condition_start(inner));
                let _ = write!(self.out, "{word} ");
            }
            let mut inline = String::new();
            operand(&mut inline, inner, both);
            let is_group = matches!(inner, Condition::And(_) | Condition::Or(_));
            let is_wide = || indent + inline.chars().count() > WIDTH;
            // A comment ends with its line, so a group that contains one is broken up.
            if is_group && inline.starts_with('(') && (is_wide() || self.has_comment(inner)) {
                self.group(indent, |p, indent| p.condition(inner, indent));
            } else {
                self.out.push_str(&inline);
            }
        }
    }

    /// Returns whether the next comment is inside a condition.
    fn has_comment(&self, condition: &Condition) -> bool {
        let next = self.comments.last();
        next.is_some_and(|(start, _)| *start < condition_end(condition))
    }
}

/// Writes a class expression without its containment.
pub(super) fn class_head(out: &mut String, class: &ClassExpr) {
    out.push_str(&class.class.text);
    if let Some(variable) = &class.variable {
        let _ = write!(out, " {}", variable.text);
    }
    match &class.predicate {
        None => {}
        Some(ClassPredicate::LatestVersion) => {
            let _ = write!(out, "[{}]", Keyword::LatestVersion);
        }
        Some(ClassPredicate::AllVersions) => {
            let _ = write!(out, "[{}]", Keyword::AllVersions);
        }
        Some(ClassPredicate::Node(node)) => {
            // Published queries write `EHR [ehr_id/value=$ehr]` and `EHR e[…]`.
            if class.variable.is_none() {
                out.push(' ');
            }
            brackets(out, Some(node));
        }
    }
}

/// Returns whether the containment ends in a CONTAINS, which would apply to everything written
/// behind it.
fn open_to_the_right(containment: &Containment) -> bool {
    match containment {
        Containment::Class(class) => class.contains.is_some(),
        Containment::And(all) => all
            .last()
            .is_some_and(|last| matches!(last, Containment::Class(_)) && open_to_the_right(last)),
        Containment::Or(_) => false,
    }
}

fn containment_start(containment: &Containment) -> usize {
    match containment {
        Containment::Class(class) => class.class.span().start,
        Containment::And(all) | Containment::Or(all) => all.first().map_or(0, containment_start),
    }
}

pub(super) fn condition_start(condition: &Condition) -> usize {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.first().map_or(0, condition_start),
        Condition::Not(inner) => condition_start(inner),
        Condition::Exists(path) | Condition::Like(path, _) | Condition::Matches(path, _) => {
            path.span().start
        }
        Condition::Compare(compare) => expr_span(&compare.left).start,
    }
}

/// Returns the start of the last condition within a condition.
pub(super) fn condition_end(condition: &Condition) -> usize {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.last().map_or(0, condition_end),
        Condition::Not(inner) => condition_end(inner),
        single => condition_start(single),
    }
}

/// Returns the position of a condition. The end of a list behind MATCHES is that of its last member.
pub(super) fn condition_span(condition: &Condition) -> Span {
    let end = match condition {
        Condition::And(all) | Condition::Or(all) => all.last().map_or(0, |c| condition_span(c).end),
        Condition::Not(inner) => condition_span(inner).end,
        Condition::Exists(path) => path.span().end,
        Condition::Compare(compare) => expr_span(&compare.right).end,
        Condition::Like(_, LikeOperand::Text(name) | LikeOperand::Parameter(name)) => {
            name.span().end
        }
        Condition::Matches(path, operand) => match operand {
            MatchesOperand::List(items) => items.last().map_or(path.span(), item_span).end,
            MatchesOperand::Terminology(call) => call.at.0.end,
            MatchesOperand::Uri(name) => name.span().end,
        },
    };
    Span::new(condition_start(condition), end)
}

fn item_span(item: &MatchesItem) -> Span {
    match item {
        MatchesItem::Literal(literal) => literal.at.0,
        MatchesItem::Parameter(name) => name.span(),
        MatchesItem::Terminology(call) => call.at.0,
    }
}

pub(super) fn expr_span(expr: &Expr) -> Span {
    match expr {
        Expr::Path(path) => path.span(),
        Expr::Literal(literal) => literal.at.0,
        Expr::Parameter(name) => name.span(),
        Expr::Call(call) => call.at.0,
        Expr::Terminology(call) => call.at.0,
    }
}

pub(super) fn condition(out: &mut String, whole: &Condition) {
    match whole {
        Condition::And(all) => {
            let between = format!(" {} ", Keyword::And);
            joined(out, all, &between, |out, c| operand(out, c, true));
        }
        Condition::Or(any) => {
            let between = format!(" {} ", Keyword::Or);
            joined(out, any, &between, |out, c| operand(out, c, false));
        }
        Condition::Not(inner) => {
            let _ = write!(out, "{} ", Keyword::Not);
            operand(out, inner, true);
        }
        Condition::Exists(what) => drop(write!(out, "{} {}", Keyword::Exists, path(what))),
        Condition::Compare(compare) => {
            expr(out, &compare.left);
            let _ = write!(out, " {} ", compare.op.text());
            expr(out, &compare.right);
        }
        Condition::Like(left, pattern) => {
            let _ = write!(out, "{} {} ", path(left), Keyword::Like);
            match pattern {
                LikeOperand::Text(text) => out.push_str(&text.text),
                LikeOperand::Parameter(name) => parameter(out, name),
            }
        }
        Condition::Matches(left, operand) => {
            let _ = write!(out, "{} {} ", path(left), Keyword::Matches);
            members(out, operand);
        }
    }
}

/// Writes the list behind MATCHES.
fn members(out: &mut String, operand: &MatchesOperand) {
    match operand {
        MatchesOperand::Terminology(call) => terminology(out, call),
        MatchesOperand::Uri(uri) => drop(write!(out, "{{{}}}", uri.text)),
        MatchesOperand::List(items) => {
            out.push('{');
            joined(out, items, ", ", |out, item| match item {
                MatchesItem::Literal(value) => literal(out, value),
                MatchesItem::Parameter(name) => parameter(out, name),
                MatchesItem::Terminology(call) => terminology(out, call),
            });
            out.push('}');
        }
    }
}

/// Writes a condition below AND or NOT (`tight`), or below OR, with parentheses if it needs them.
fn operand(out: &mut String, inner: &Condition, tight: bool) {
    let grouped = match inner {
        Condition::And(_) => tight,
        Condition::Or(_) => true,
        _ => false,
    };
    if grouped {
        out.push('(');
    }
    condition(out, inner);
    if grouped {
        out.push(')');
    }
}

pub(super) fn expr(out: &mut String, value: &Expr) {
    match value {
        Expr::Path(value) => out.push_str(&path(value)),
        Expr::Literal(value) => literal(out, value),
        Expr::Parameter(name) => parameter(out, name),
        Expr::Terminology(call) => terminology(out, call),
        Expr::Call(call) => {
            let _ = write!(out, "{}(", call.name.text);
            joined(out, &call.arguments, ", ", expr);
            out.push(')');
        }
    }
}

fn aggregate(out: &mut String, value: &Aggregate) {
    let _ = write!(out, "{}(", value.function.name());
    if value.distinct {
        let _ = write!(out, "{} ", Keyword::Distinct);
    }
    let argument = value.path.as_ref().map_or_else(|| "*".to_owned(), path);
    let _ = write!(out, "{argument})");
}

/// Writes `SELECT` or `SELECT DISTINCT`.
pub(super) fn select_words(out: &mut String, select: &Select) {
    let _ = write!(out, "{}", Clause::Select);
    if select.distinct {
        let _ = write!(out, " {}", Keyword::Distinct);
    }
}

/// Writes `TOP n`, with `BACKWARD` if it is present.
pub(super) fn top(out: &mut String, top: &Top) {
    let _ = write!(out, "{} {}", Keyword::Top, top.count.text);
    if top.backward {
        let _ = write!(out, " {}", Keyword::Backward);
    }
}

/// Writes a column with its alias.
pub(super) fn write_column(out: &mut String, column: &Column) {
    match &column.value {
        ColumnValue::Expr(value) => expr(out, value),
        ColumnValue::Aggregate(value) => aggregate(out, value),
    }
    if let Some(alias) = &column.alias {
        let _ = write!(out, " {} {}", Keyword::As, alias.text);
    }
}

/// Writes `CONTAINS` or `NOT CONTAINS`.
pub(super) fn contains_words(out: &mut String, contains: &Contains) {
    if contains.negated {
        let _ = write!(out, "{} ", Keyword::Not);
    }
    let _ = write!(out, "{}", Keyword::Contains);
}

/// Writes a key of ORDER BY.
pub(super) fn order_key(out: &mut String, key: &OrderKey) {
    out.push_str(&path(&key.path));
    if key.descending {
        let _ = write!(out, " {}", Keyword::Desc);
    }
}

/// Writes `LIMIT n`, with `OFFSET m` if it is present.
pub(super) fn limit(out: &mut String, limit: &Limit) {
    let _ = write!(out, "{} {}", Clause::Limit, limit.count.text);
    if let Some(offset) = &limit.offset {
        let _ = write!(out, " {} {}", Keyword::Offset, offset.text);
    }
}

fn terminology(out: &mut String, call: &Terminology) {
    let _ = write!(
        out,
        "{}({}, {}, {})",
        Keyword::Terminology,
        call.operation,
        call.service,
        call.parameters
    );
}

/// Returns a path on one line, without blanks except around words: `o/data[at0001]/events[at0002 and
/// name/value='x']`.
pub(crate) fn path(path: &Path) -> String {
    let mut out = path.variable.text.clone();
    brackets(&mut out, path.root.as_ref());
    for step in &path.steps {
        out.push('/');
        write_step(&mut out, step);
    }
    out
}

fn steps(out: &mut String, steps: &[Step]) {
    for (i, step) in steps.iter().enumerate() {
        if i > 0 {
            out.push('/');
        }
        write_step(out, step);
    }
}

fn write_step(out: &mut String, step: &Step) {
    out.push_str(&step.attribute.text);
    brackets(out, step.predicate.as_ref());
}

fn brackets(out: &mut String, inner: Option<&Predicate>) {
    if let Some(inner) = inner {
        out.push('[');
        predicate(out, inner);
        out.push(']');
    }
}

/// Writes a predicate. The grammar has no parentheses in brackets, so an AND never contains an OR.
fn predicate(out: &mut String, inner: &Predicate) {
    match inner {
        Predicate::And(all) => joined(out, all, " and ", predicate),
        Predicate::Or(any) => joined(out, any, " or ", predicate),
        Predicate::Node(node) => node_predicate(out, node),
        Predicate::Compare(compare) => {
            steps(out, &compare.path);
            out.push_str(compare.op.text());
            match &compare.value {
                PredicateValue::Literal(value) => literal(out, value),
                PredicateValue::Parameter(name) => parameter(out, name),
                PredicateValue::Path(path) => steps(out, path),
                PredicateValue::Code(code) => out.push_str(code),
            }
        }
        Predicate::Regex(regex) => {
            steps(out, &regex.path);
            let _ = write!(out, " matches {}", regex.regex.text);
        }
    }
}

/// Writes a node id with its name: `at0004,'Systolic'`.
fn node_predicate(out: &mut String, node: &NodePredicate) {
    match &node.id {
        NodeId::Code(id) | NodeId::Archetype(id) => out.push_str(id),
        NodeId::Parameter(name) => parameter(out, name),
    }
    let Some(name) = &node.name else { return };
    out.push(',');
    match name {
        NodeName::Text(text) | NodeName::Term(text) | NodeName::Code(text) => out.push_str(text),
        NodeName::Parameter(name) => parameter(out, name),
    }
}

fn joined<T>(out: &mut String, all: &[T], between: &str, one: impl Fn(&mut String, &T)) {
    for (i, item) in all.iter().enumerate() {
        if i > 0 {
            out.push_str(between);
        }
        one(out, item);
    }
}

fn parameter(out: &mut String, name: &Name) {
    let _ = write!(out, "${}", name.text);
}

fn literal(out: &mut String, literal: &Literal) {
    match &literal.value {
        LiteralValue::Null => out.push_str(Keyword::Null.text()),
        LiteralValue::Boolean(value) => drop(write!(out, "{value}")),
        LiteralValue::Number(text) | LiteralValue::Text(text) => out.push_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbitrary::Generator;

    #[test]
    fn what_is_printed_reads_back() {
        for seed in 0..1000 {
            let text = Generator::new(seed).query();
            let (query, diagnostics) = parse(&text);
            let query = query.unwrap_or_else(|| panic!("{text}\n{diagnostics:?}"));
            let printed = print(&query);
            assert_eq!(
                parse(&printed).0.as_ref(),
                Some(&query),
                "{text}\n=>\n{printed}"
            );
            let formatted = format(&text).unwrap();
            assert_eq!(
                parse(&formatted).0.as_ref(),
                Some(&query),
                "{text}\n=>\n{formatted}"
            );
            assert_eq!(format(&formatted).unwrap(), formatted, "{text}");
        }
    }

    #[test]
    fn a_query_is_laid_out() {
        let text = "-- all\nselect e/ehr_id/value, -- the value\n o/data[at0001,'x']/events/data/items[at0004 AND name/value=\"y\"]/value/magnitude as m, count(*) from ehr e \
                    contains composition c[openEHR-EHR-COMPOSITION.encounter.v1] contains (observation o or evaluation v contains element l and action a) \
                    where m/a >= 140 and not (o/x = 'a' or o/y like 'b*') and (o/a = 1 or o/b matches {1,2}) order by m desc, e/ehr_id/value limit 10 offset 5 -- end";
        let expected = "\
-- all
SELECT
  e/ehr_id/value,
  -- the value
  o/data[at0001,'x']/events/data/items[at0004 and name/value=\"y\"]/value/magnitude AS m,
  COUNT(*)
FROM ehr e
  CONTAINS composition c[openEHR-EHR-COMPOSITION.encounter.v1]
    CONTAINS (
      observation o
      OR evaluation v
        CONTAINS (
          element l
          AND action a
        )
    )
WHERE m/a >= 140
  AND NOT (o/x = 'a' OR o/y LIKE 'b*')
  AND (o/a = 1 OR o/b MATCHES {1, 2})
ORDER BY m DESC, e/ehr_id/value
LIMIT 10 OFFSET 5
-- end
";
        assert_eq!(format(text).unwrap(), expected);
    }
}
