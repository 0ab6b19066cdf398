//! Values: literals, parameters, functions, patterns, value sets.

use super::number::is_number;
use super::{Checker, MAX_MEMBERS, MAX_PATTERN, Parameter, did_you_mean};
use crate::aql::ast;
use crate::aql::query::{Expr, LikeItem, LikePattern, Literal};
use crate::aql::signature::{SIGNATURES, Signature, signature};
use crate::aql::terminology::{TerminologyAnswer, TerminologyCall, TerminologyError};
use crate::aql::token::{Escapes, unescape};
use crate::diag::Span;

impl Checker<'_> {
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Option<Expr> {
        match expr {
            ast::Expr::Path(path) => self.path(path).map(Expr::Path),
            ast::Expr::Literal(value) => Some(Expr::Literal(literal(value))),
            ast::Expr::Parameter(name) => self.bound(name).map(Expr::Literal),
            ast::Expr::Call(call) => self.call(call),
            ast::Expr::Terminology(call) => match self.answer(&TerminologyCall::of(call), call.at.0)? {
                TerminologyAnswer::Truth(value) => Some(Expr::Literal(Literal::Boolean(value))),
                TerminologyAnswer::Text(text) => Some(Expr::Literal(Literal::Text(text))),
                TerminologyAnswer::Codes(_) => self.error(
                    "AQL0503",
                    call.at.0,
                    "a value set cannot stand here",
                    "a list of codes stands behind MATCHES: `path matches TERMINOLOGY(…)`",
                ),
            },
        }
    }

    fn call(&mut self, call: &ast::Call) -> Option<Expr> {
        let name = &call.name;
        let arguments: Vec<Option<Expr>> = call.arguments.iter().map(|a| self.expr(a)).collect();
        let Some(signature) = signature(&name.text) else {
            if self.is_full() {
                return None;
            }
            let help = did_you_mean(&name.text, &mut SIGNATURES.iter().map(|s| s.name), || {
                format!("the functions are {}", SIGNATURES.iter().map(|s| s.name).collect::<Vec<_>>().join(", "))
            });
            return self.error("AQL0205", name.span(), format!("`{}` is not a function of AQL", name.text), help);
        };
        let given = call.arguments.len();
        if given < signature.least || signature.most.is_some_and(|most| given > most) {
            let message = format!("{} takes {}, not {given}", signature.name, arity(signature));
            return self.error("AQL0206", call.at.0, message, format!("write `{}{}`", signature.name, signature.arguments));
        }
        Some(Expr::Call(signature.function, arguments.into_iter().collect::<Option<Vec<Expr>>>()?))
    }

    /// The single value that a parameter is bound to.
    pub(super) fn bound(&mut self, name: &ast::Name) -> Option<Literal> {
        match self.parameters.get(&name.text) {
            Some(Parameter::List(_)) => {
                let message = format!("the list `${}` cannot stand here", name.text);
                self.error("AQL0302", name.span(), message, format!("a list stands behind MATCHES: `path matches {{${}}}`", name.text))
            }
            Some(value) => scalar(value),
            None if self.options.draft => Some(Literal::Null),
            None => {
                self.unbound.push((name.text.clone(), name.span()));
                None
            }
        }
    }

    /// The text that a parameter is bound to; `what` says what it should be.
    pub(super) fn bound_text(&mut self, name: &ast::Name, what: &str) -> Option<String> {
        match self.bound(name)? {
            Literal::Text(text) | Literal::Untyped(text) => Some(text),
            Literal::Null if self.options.draft => Some(String::new()),
            _ => self.error("AQL0303", name.span(), format!("`${}` is not bound to a text", name.text), format!("bind it to {what}")),
        }
    }

    /// The pattern of LIKE; the inner `None` is NULL.
    pub(super) fn like(&mut self, operand: &ast::LikeOperand) -> Option<Option<LikePattern>> {
        let (text, span) = match operand {
            ast::LikeOperand::Text(raw) => (unescape(&raw.text, Escapes::Pattern).0, raw.span()),
            ast::LikeOperand::Parameter(name) => match self.bound(name)? {
                Literal::Null => return Some(None),
                Literal::Text(text) | Literal::Untyped(text) | Literal::Number(text) => (text, name.span()),
                Literal::Boolean(_) => {
                    return self.error("AQL0303", name.span(), format!("`${}` is not bound to a text", name.text), "LIKE compares texts");
                }
            },
        };
        if text.contains('%') && !text.contains(['*', '?']) {
            self.warn("AQL0602", span, "`%` is no wildcard", "in AQL `*` is any run of characters, `?` one character");
        }
        if text.chars().nth(MAX_PATTERN).is_some() {
            let message = format!("the LIKE pattern has more than {MAX_PATTERN} characters");
            return self.error("AQL0403", span, message, "shorten it, or compare with whole texts by `=` or `matches`");
        }
        match pattern(&text) {
            Ok(pattern) => Some(Some(pattern)),
            Err(bad) => self.error(
                "AQL0403",
                span,
                format!("invalid LIKE pattern: `{bad}` escapes nothing"),
                "a backslash stands before `*`, `?` or another backslash only (and is itself doubled in a string of the query)",
            ),
        }
    }

    /// The members of the list behind MATCHES.
    pub(super) fn members(&mut self, operand: &ast::MatchesOperand) -> Option<Vec<Literal>> {
        match operand {
            ast::MatchesOperand::Uri(uri) => self.codes(&TerminologyCall::Uri(uri.text.clone()), uri.span()),
            ast::MatchesOperand::Terminology(call) => self.codes(&TerminologyCall::of(call), call.at.0),
            ast::MatchesOperand::List(items) => {
                self.short_enough(items)?;
                let all: Vec<Option<Vec<Literal>>> = items.iter().map(|i| self.member(i)).collect();
                Some(all.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
            }
        }
    }

    /// Refuses a list of too many values before any of them is read.
    fn short_enough(&mut self, items: &[ast::MatchesItem]) -> Option<()> {
        let mut members = 0;
        for item in items {
            members += match item {
                ast::MatchesItem::Parameter(name) => match self.parameters.get(&name.text) {
                    Some(Parameter::List(values)) => values.len(),
                    _ => 1,
                },
                _ => 1,
            };
            if members > MAX_MEMBERS {
                let span = match item {
                    ast::MatchesItem::Parameter(name) => name.span(),
                    ast::MatchesItem::Literal(literal) => literal.at.0,
                    ast::MatchesItem::Terminology(call) => call.at.0,
                };
                let message = format!("the list has more than {MAX_MEMBERS} values");
                return self.error("AQL0304", span, message, "store them as a value set, or ask in several queries");
            }
        }
        Some(())
    }

    fn member(&mut self, item: &ast::MatchesItem) -> Option<Vec<Literal>> {
        match item {
            ast::MatchesItem::Literal(value) => Some(vec![literal(value)]),
            ast::MatchesItem::Terminology(call) => self.codes(&TerminologyCall::of(call), call.at.0),
            ast::MatchesItem::Parameter(name) => {
                let Some(Parameter::List(values)) = self.parameters.get(&name.text) else {
                    return self.bound(name).map(|value| vec![value]);
                };
                let all: Option<Vec<Literal>> = values.iter().map(scalar).collect();
                if all.is_some() {
                    return all;
                }
                self.error("AQL0302", name.span(), format!("`${}` is a list of lists", name.text), "bind it to a list of texts, numbers or booleans")
            }
        }
    }

    fn codes(&mut self, call: &TerminologyCall, span: Span) -> Option<Vec<Literal>> {
        match self.answer(call, span)? {
            TerminologyAnswer::Codes(codes) => Some(codes.into_iter().map(Literal::Text).collect()),
            TerminologyAnswer::Truth(_) if self.options.draft => Some(Vec::new()),
            TerminologyAnswer::Truth(_) | TerminologyAnswer::Text(_) => self.error(
                "AQL0503",
                span,
                "the terminology does not answer with codes",
                "ask it to `expand` a value set, or compare the answer: `TERMINOLOGY(…) = true`",
            ),
        }
    }

    fn answer(&mut self, call: &TerminologyCall, span: Span) -> Option<TerminologyAnswer> {
        if self.options.draft {
            return Some(TerminologyAnswer::Truth(true));
        }
        let listed = || Err(TerminologyError::Absent("list the codes: `path matches {'a', 'b'}`".to_owned()));
        let answer = call.built_in().unwrap_or_else(|| self.options.terminology.map_or_else(listed, |t| t.ask(call)));
        match answer {
            Ok(answer) => Some(answer),
            Err(TerminologyError::Absent(remedy)) => {
                self.error("AQL0501", span, format!("no terminology service answers for `{}`", call.service()), remedy)
            }
            Err(TerminologyError::Refused(reason)) => self.error("AQL0502", span, "the terminology does not answer", reason),
            Err(TerminologyError::Failed(reason)) => self.error("AQL0505", span, "the terminology service fails", reason),
            Err(TerminologyError::Late(reason)) => self.error("AQL0506", span, "the terminology service takes too long", reason),
        }
    }
}

/// A literal with its escapes resolved; a number becomes one that JSON can write.
pub(super) fn literal(literal: &ast::Literal) -> Literal {
    match &literal.value {
        ast::LiteralValue::Null => Literal::Null,
        ast::LiteralValue::Boolean(value) => Literal::Boolean(*value),
        ast::LiteralValue::Number(text) => Literal::Number(json_number(text)),
        ast::LiteralValue::Text(raw) => Literal::Text(unescape(raw, Escapes::Text).0),
    }
}

/// `.5` → `0.5`, `007` → `7`.
fn json_number(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let digits = digits.trim_start_matches('0');
    let zero = if digits.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
    format!("{sign}{zero}{digits}")
}

fn scalar(value: &Parameter) -> Option<Literal> {
    Some(match value {
        Parameter::Null => Literal::Null,
        Parameter::Boolean(value) => Literal::Boolean(*value),
        Parameter::Number(text) => Literal::Number(text.clone()),
        // JSON clients send numbers and booleans as texts too: such a text takes the type of what it is compared with, as in a URL.
        Parameter::Text(text) if is_number(text) || text.trim().parse::<bool>().is_ok() => Literal::Untyped(text.clone()),
        Parameter::Text(text) => Literal::Text(text.clone()),
        Parameter::Untyped(text) => Literal::Untyped(text.clone()),
        Parameter::List(_) => return None,
    })
}

/// Compiles a LIKE pattern; the error is the escape that escapes nothing.
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
        if wildcard == LikeItem::One || items.last() != Some(&LikeItem::Any) {
            items.push(wildcard);
        }
    }
    if !run.is_empty() {
        items.push(LikeItem::Text(run));
    }
    Ok(LikePattern::new(items))
}

fn arity(signature: &Signature) -> String {
    let plural = |n: usize| {
        if n == 1 { "1 argument".to_owned() } else { format!("{n} arguments") }
    };
    match signature.most {
        Some(most) if most == signature.least => plural(most),
        Some(most) => format!("{} to {}", signature.least, plural(most)),
        None => format!("at least {}", plural(signature.least)),
    }
}
