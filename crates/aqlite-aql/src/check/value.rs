//! Values: literals, parameters, functions, patterns, value sets.

use super::{Checker, MAX_MEMBERS, MAX_NUMBER, MAX_PATTERN, Parameter, did_you_mean};
use crate::ast;
use crate::query::{
    AggregateFunction, Expr, Function, FunctionEntry, LikeItem, LikePattern, List, Literal, Members,
};
use crate::terminology::{TerminologyAnswer, TerminologyCall, TerminologyError};
use crate::token::{Escapes, unescape};
use crate::vocabulary::function_named;
use aqlite_rm::diag::Span;
use std::rc::Rc;
use std::sync::Arc;

impl Checker<'_> {
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Option<Expr> {
        match expr {
            ast::Expr::Path(path) => self.path(path).map(Expr::Path),
            ast::Expr::Literal(value) => self.literal(value).map(Expr::Literal),
            ast::Expr::Parameter(name) => self.bound(name).map(Expr::Literal),
            ast::Expr::Call(call) => self.call(call),
            ast::Expr::Terminology(call) => {
                match &*self.answer(&TerminologyCall::from_syntax(call), call.at.0)? {
                    TerminologyAnswer::Truth(value) => {
                        Some(Expr::Literal(Literal::Boolean(*value)))
                    }
                    TerminologyAnswer::Text(text) => {
                        Some(Expr::Literal(Literal::Text(text.as_str().into())))
                    }
                    TerminologyAnswer::Codes(_) => self.error(
                        "AQL0503",
                        call.at.0,
                        "a value set cannot stand here",
                        "write a list of codes behind MATCHES: `path matches TERMINOLOGY(…)`",
                    ),
                }
            }
        }
    }

    fn call(&mut self, call: &ast::Call) -> Option<Expr> {
        let name = &call.name;
        // All arguments are checked, so that all errors are reported.
        let arguments: Vec<Option<Expr>> = call.arguments.iter().map(|a| self.expr(a)).collect();
        let Some(function) = function_named(&name.text) else {
            return self.unknown_function(name);
        };
        let (entry, given) = (function.entry(), call.arguments.len());
        let too_many = entry.max_arguments().is_some_and(|most| given > most);
        if given < entry.min_arguments() || too_many {
            let message = format!("{} takes {}, not {given}", entry.name, arity(entry));
            let help = format!("write `{}`", entry.usage());
            return self.error("AQL0206", call.at.0, message, help);
        }
        let arguments = arguments.into_iter().collect::<Option<Vec<Expr>>>()?;
        Some(Expr::Call(function, arguments))
    }

    fn unknown_function<T>(&mut self, name: &ast::Name) -> Option<T> {
        // Searching for a similar name costs time, so it is not done for errors that are dropped.
        if self.is_full() {
            return None;
        }
        let names = || Function::ALL.iter().map(|function| function.name());
        let aggregates = AggregateFunction::ALL.iter().map(|name| name.name());
        let help = did_you_mean(&name.text, &mut names().chain(aggregates), || {
            format!(
                "the functions are {}",
                names().collect::<Vec<_>>().join(", ")
            )
        });
        let message = format!("`{}` is not a function of AQL", name.text);
        self.error("AQL0205", name.span(), message, help)
    }

    /// Checks a literal, and resolves its escapes.
    pub(super) fn literal(&mut self, literal: &ast::Literal) -> Option<Literal> {
        Some(match &literal.value {
            ast::LiteralValue::Null => Literal::Null,
            ast::LiteralValue::Boolean(value) => Literal::Boolean(*value),
            ast::LiteralValue::Number(text) if text.len() > MAX_NUMBER => {
                return self.number_too_long(literal.at.0);
            }
            ast::LiteralValue::Number(text) => Literal::Number(json_number(text).into()),
            ast::LiteralValue::Text(raw) => Literal::Text(unescape(raw, Escapes::Text).0.into()),
        })
    }

    /// Reports a number that is too long.
    pub(super) fn number_too_long<T>(&mut self, span: Span) -> Option<T> {
        let message = format!("the number has more than {MAX_NUMBER} characters");
        self.error(
            "AQL0003",
            span,
            message,
            "seventeen digits tell every number from every other",
        )
    }

    /// Returns the text that a parameter is bound to; `what` describes the text for the help.
    pub(super) fn bound_text(&mut self, name: &ast::Name, what: &str) -> Option<Arc<str>> {
        match self.bound(name)? {
            Literal::Text(text) | Literal::Untyped(text) => Some(text),
            // A draft is never executed, so the value of an unbound parameter is not used.
            Literal::Null if self.options.draft => Some("".into()),
            _ => self.error(
                "AQL0303",
                name.span(),
                format!("`${}` is not bound to a text", name.text),
                format!("bind it to {what}"),
            ),
        }
    }

    /// Returns the pattern of LIKE; the inner `None` is NULL.
    pub(super) fn like(&mut self, operand: &ast::LikeOperand) -> Option<Option<LikePattern>> {
        match operand {
            ast::LikeOperand::Text(raw) => {
                let text = unescape(&raw.text, Escapes::Pattern).0;
                self.like_pattern(&text, raw.span()).map(Some)
            }
            ast::LikeOperand::Parameter(name) => self.bound_pattern(name),
        }
    }

    /// Returns the pattern that a parameter is bound to; the inner `None` is NULL.
    fn bound_pattern(&mut self, name: &ast::Name) -> Option<Option<LikePattern>> {
        let text = match self.bound(name)? {
            Literal::Null => return Some(None),
            Literal::Text(text) | Literal::Untyped(text) | Literal::Number(text) => text,
            Literal::Boolean(_) => {
                let message = format!("`${}` is not bound to a text", name.text);
                return self.error("AQL0303", name.span(), message, "LIKE compares texts");
            }
        };
        // A parameter that occurs many times is compiled once.
        if let Some(known) = self.bound.patterns.get(&name.text) {
            return Some(Some(known.clone()));
        }
        let pattern = self.like_pattern(&text, name.span())?;
        let patterns = &mut self.bound.patterns;
        patterns.insert(name.text.clone(), pattern.clone());
        Some(Some(pattern))
    }

    /// Compiles a LIKE pattern, and reports errors and probable mistakes.
    fn like_pattern(&mut self, text: &str, span: Span) -> Option<LikePattern> {
        // A pattern is compared with each row, and its cost grows with its length.
        if text.chars().nth(MAX_PATTERN).is_some() {
            let message = format!("the LIKE pattern has more than {MAX_PATTERN} characters");
            let help = "shorten it, or compare with whole texts by `=` or `matches`";
            return self.error("AQL0403", span, message, help);
        }
        // `%` alone is a habit from SQL; beside `*` or `?` it is probably meant as a character.
        if text.contains('%') && !text.contains(['*', '?']) {
            let help = "in AQL `*` is any run of characters, `?` one character";
            self.warn("AQL0602", span, "`%` is no wildcard", help);
        }
        pattern(text).map_or_else(
            |bad| {
                let message = format!("invalid LIKE pattern: `{bad}` escapes nothing");
                let help = "a backslash is allowed before `*`, `?` or another backslash only (and is itself doubled in a string of the query)";
                self.error("AQL0403", span, message, help)
            },
            Some,
        )
    }

    /// Returns the members of the list behind MATCHES.
    pub(super) fn members(&mut self, operand: &ast::MatchesOperand) -> Option<Members> {
        match operand {
            ast::MatchesOperand::Uri(uri) => {
                let call = TerminologyCall::Uri(uri.text.clone());
                Some(Members::new(vec![self.codes(&call, uri.span())?]))
            }
            ast::MatchesOperand::Terminology(call) => {
                let codes = self.codes(&TerminologyCall::from_syntax(call), call.at.0)?;
                Some(Members::new(vec![codes]))
            }
            ast::MatchesOperand::List(items) => {
                self.short_enough(items)?;
                let mut lists = MemberLists::default();
                let all: Vec<Option<()>> =
                    items.iter().map(|i| self.member(i, &mut lists)).collect();
                all.into_iter().collect::<Option<Vec<()>>>()?;
                Some(Members::new(lists.finished()))
            }
        }
    }

    /// Refuses a list of too many values before any of them is read.
    fn short_enough(&mut self, items: &[ast::MatchesItem]) -> Option<()> {
        let mut members = 0;
        for item in items {
            let (count, span) = match item {
                ast::MatchesItem::Parameter(name) => match self.parameters.get(&name.text) {
                    Some(Parameter::List(values)) => (values.len(), name.span()),
                    _ => (1, name.span()),
                },
                ast::MatchesItem::Literal(literal) => (1, literal.at.0),
                ast::MatchesItem::Terminology(call) => (1, call.at.0),
            };
            members += count;
            if members > MAX_MEMBERS {
                let message = format!("the list has more than {MAX_MEMBERS} values");
                let help = "store them as a value set, or ask in several queries";
                return self.error("AQL0304", span, message, help);
            }
        }
        Some(())
    }

    fn member(&mut self, item: &ast::MatchesItem, lists: &mut MemberLists) -> Option<()> {
        match item {
            ast::MatchesItem::Literal(value) => lists.single(self.literal(value)?),
            ast::MatchesItem::Terminology(call) => {
                lists.shared(self.codes(&TerminologyCall::from_syntax(call), call.at.0)?);
            }
            ast::MatchesItem::Parameter(name) => match self.bound_list(name) {
                Some(bound) => lists.shared(bound?.list),
                None => match self.bound(name)? {
                    Literal::Text(text) | Literal::Untyped(text) if text.len() > LONG => {
                        lists.shared(self.single(name)?);
                    }
                    literal => lists.single(literal),
                },
            },
        }
        Some(())
    }

    fn codes(&mut self, call: &TerminologyCall, span: Span) -> Option<Arc<List>> {
        match &*self.answer(call, span)? {
            TerminologyAnswer::Codes(codes) => Some(self.value_set(call, codes)),
            TerminologyAnswer::Truth(_) if self.options.draft => Some(List::new(Vec::new())),
            TerminologyAnswer::Truth(_) | TerminologyAnswer::Text(_) => self.error(
                "AQL0503",
                span,
                "the terminology does not answer with codes",
                "ask it to `expand` a value set, or compare the answer: `TERMINOLOGY(…) = true`",
            ),
        }
    }

    fn answer(&mut self, call: &TerminologyCall, span: Span) -> Option<Rc<TerminologyAnswer>> {
        if self.options.draft {
            return Some(Rc::new(TerminologyAnswer::Truth(true)));
        }
        match self.request(call) {
            Ok(answer) => Some(answer),
            Err(TerminologyError::Absent(remedy)) => self.error(
                "AQL0501",
                span,
                format!("no terminology service answers for `{}`", call.service()),
                remedy,
            ),
            Err(TerminologyError::Refused(reason)) => {
                self.error("AQL0502", span, "the terminology does not answer", reason)
            }
            Err(TerminologyError::Failed(reason)) => {
                self.error("AQL0505", span, "the terminology service fails", reason)
            }
            Err(TerminologyError::Late(reason)) => self.error(
                "AQL0506",
                span,
                "the terminology service takes too long",
                reason,
            ),
        }
    }
}

/// The length in bytes above which a text has a list of its own, shared by all its mentions.
const LONG: usize = 64;

/// The lists behind one MATCHES. Values that are written one by one are collected into lists.
#[derive(Default)]
struct MemberLists {
    lists: Vec<Arc<List>>,
    singles: Vec<Literal>,
}

impl MemberLists {
    fn single(&mut self, literal: Literal) {
        self.singles.push(literal);
    }

    fn shared(&mut self, list: Arc<List>) {
        // The same list twice in a row adds no members.
        if self
            .lists
            .last()
            .is_some_and(|last| Arc::ptr_eq(last, &list))
        {
            return;
        }
        self.flush();
        self.lists.push(list);
    }

    fn flush(&mut self) {
        if !self.singles.is_empty() {
            self.lists
                .push(List::new(std::mem::take(&mut self.singles)));
        }
    }

    fn finished(mut self) -> Vec<Arc<List>> {
        self.flush();
        self.lists
    }
}

/// Returns a number in the syntax of JSON: `.5` → `0.5`, `007` → `7`.
fn json_number(text: &str) -> String {
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or(("", text), |digits| ("-", digits));
    let digits = digits.trim_start_matches('0');
    let zero = if digits.starts_with(|c: char| c.is_ascii_digit()) {
        ""
    } else {
        "0"
    };
    format!("{sign}{zero}{digits}")
}

/// Compiles a LIKE pattern.
///
/// # Errors
/// The first invalid escape.
fn pattern(text: &str) -> Result<LikePattern, String> {
    let mut items = Vec::new();
    let mut run = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let wildcard = match c {
            '*' => LikeItem::Any,
            '?' => LikeItem::One,
            '\\' => {
                match chars.next() {
                    Some(escaped @ ('*' | '?' | '\\')) => run.push(escaped),
                    other => {
                        return Err(other.map_or_else(|| "\\".to_owned(), |c| format!("\\{c}")));
                    }
                }
                continue;
            }
            _ => {
                run.push(c);
                continue;
            }
        };
        if !run.is_empty() {
            items.push(LikeItem::Text(std::mem::take(&mut run)));
        }
        // Adjacent `*` match the same as one, and would cost time for each text.
        if wildcard == LikeItem::One || items.last() != Some(&LikeItem::Any) {
            items.push(wildcard);
        }
    }
    if !run.is_empty() {
        items.push(LikeItem::Text(run));
    }
    Ok(LikePattern::new(items))
}

/// Describes the numbers of arguments that a function accepts: `1 to 2 arguments`.
fn arity(entry: &FunctionEntry) -> String {
    let plural = |n: usize| {
        if n == 1 {
            "1 argument".to_owned()
        } else {
            format!("{n} arguments")
        }
    };
    let least = entry.min_arguments();
    match entry.max_arguments() {
        Some(most) if most == least => plural(most),
        Some(most) => format!("{least} to {}", plural(most)),
        None => format!("at least {}", plural(least)),
    }
}
