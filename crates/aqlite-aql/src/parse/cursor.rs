//! The token cursor of the parser: looking ahead, consuming, reporting errors, and skipping to a
//! token at which the parser can continue.

use super::{At, Failed, NESTING_LIMIT, Name, Parsed, Parser};
use crate::expected::Expected;
use crate::hint::{Unexpected, hint};
use crate::token::{DIAGNOSTICS_LIMIT, Token, TokenKind};
use crate::vocabulary::{Clause, Keyword};
use aqlite_rm::diag::{Diagnostic, Fix, Span, nearest};

impl Parser<'_> {
    pub(super) fn token(&self) -> Token {
        // The last token is END and is never consumed, so the alternative is never used.
        self.tokens.get(self.position).copied().unwrap_or(Token {
            kind: TokenKind::End,
            span: Span::new(self.text.len(), self.text.len()),
        })
    }

    pub(super) fn kind(&self) -> TokenKind {
        self.token().kind
    }

    pub(super) fn span(&self) -> Span {
        self.token().span
    }

    pub(super) fn slice(&self, span: Span) -> &str {
        // Every span is that of a token of this text, so the default is never used.
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Returns the position from a start to the end of the last consumed token.
    pub(super) fn since(&self, start: Span) -> At {
        let last = self
            .position
            .checked_sub(1)
            .and_then(|i| self.tokens.get(i))
            .map_or(start, |t| t.span);
        At(start.to(last))
    }

    pub(super) fn next_is(&self, kind: TokenKind) -> bool {
        self.tokens
            .get(self.position + 1)
            .is_some_and(|t| t.kind == kind)
    }

    pub(super) fn bump(&mut self) {
        if self.position + 1 < self.tokens.len() {
            self.position += 1;
        }
        // Alternatives belong to one token.
        self.expected.clear();
    }

    /// Returns whether the present token is of a kind. If not, `expected` is recorded as an
    /// alternative.
    pub(super) fn at(&mut self, kind: TokenKind, expected: Expected) -> bool {
        let found = self.kind() == kind;
        if !found {
            self.record(expected);
        }
        found
    }

    /// Records an alternative of the present token, once.
    fn record(&mut self, expected: Expected) {
        if !self.expected.contains(&expected) {
            self.expected.push(expected);
        }
    }

    pub(super) fn eat(&mut self, kind: TokenKind, expected: Expected) -> bool {
        let found = self.at(kind, expected);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        self.eat(TokenKind::Keyword(keyword), Expected::Word(keyword))
    }

    pub(super) fn eat_sign(&mut self, sign: char) -> bool {
        self.eat(TokenKind::Sign(sign), Expected::Sign(sign))
    }

    pub(super) fn need(&mut self, sign: char) -> Parsed<()> {
        if self.eat_sign(sign) {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    pub(super) fn word(&mut self, kind: TokenKind, expected: Expected) -> Parsed<Name> {
        if self.at(kind, expected) {
            Ok(self.take_word())
        } else {
            self.unexpected()
        }
    }

    pub(super) fn take_word(&mut self) -> Name {
        let span = self.span();
        let name = Name::new(self.slice(span), span);
        self.bump();
        name
    }

    pub(super) fn take_parameter(&mut self) -> Name {
        let name = self.take_word();
        Name {
            text: name.text.trim_start_matches('$').to_owned(),
            ..name
        }
    }

    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= NESTING_LIMIT {
            let message = format!("the query nests deeper than {NESTING_LIMIT} levels");
            self.diagnostics
                .push(Diagnostic::error("AQL0002", self.span(), message));
            return Err(Failed);
        }
        // The depth is restored after an error too, because the parser continues with the next
        // clause.
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn record_end(&mut self) {
        // Completion needs the alternatives of the first attempt: recovery from an error adds
        // others.
        if self.kind() == TokenKind::End && self.at_end.is_empty() {
            self.at_end.clone_from(&self.expected);
        }
    }

    /// Fails because `expected` is missing here, beside the alternatives that were tried.
    pub(super) fn want<T>(&mut self, expected: Expected) -> Parsed<T> {
        self.record(expected);
        self.unexpected()
    }

    pub(super) fn unexpected<T>(&mut self) -> Parsed<T> {
        self.report_unexpected();
        Err(Failed)
    }

    /// Reports the present token and the alternatives. A token that the lexer has reported is not
    /// reported again.
    fn report_unexpected(&mut self) {
        let Token { kind, span } = self.token();
        self.record_end();
        // The lexer has reported an invalid token.
        if kind == TokenKind::Invalid || self.diagnostics.len() >= DIAGNOSTICS_LIMIT {
            return;
        }
        let found = if kind == TokenKind::End {
            "the end of the query".to_owned()
        } else {
            format!("`{}`", shorten(self.slice(span)))
        };
        let message = format!("expected {}, found {found}", list(&self.expected));
        let mut diagnostic = Diagnostic::error("AQL0101", span, message);
        match self.near(kind, span) {
            Some((span, near)) => {
                diagnostic.help = Some(format!("did you mean `{near}`?"));
                diagnostic.fix = Some(Fix { span, text: near });
            }
            None => diagnostic.help = self.hint(kind, span),
        }
        self.diagnostics.push(diagnostic);
    }

    /// Returns the similar word of the language with the position that it replaces. It explains more
    /// than a hint: most unexpected names are misspelled words.
    fn near(&self, kind: TokenKind, span: Span) -> Option<(Span, String)> {
        if kind != TokenKind::Identifier {
            return None;
        }
        let words: Vec<_> = self.expected.iter().filter(|e| e.is_verbatim()).collect();
        let words: Vec<_> = words.iter().map(|e| e.text()).collect();
        let mut words = words
            .iter()
            .filter_map(|e| e.trim_matches('`').split(' ').next())
            // Every short word is similar to every other.
            .filter(|e| e.len() > 2);
        if let Some(near) = nearest(self.slice(span), &mut words) {
            return Some((span, near.to_owned()));
        }
        // A misspelled word before a path was read as a path of its own.
        let before = self.tokens.get(self.position.checked_sub(1)?)?;
        let mut words = [Keyword::Distinct, Keyword::Exists]
            .iter()
            .map(|w| w.text());
        let near = nearest(self.slice(before.span), &mut words)?;
        (before.kind == kind).then(|| (before.span, near.to_owned()))
    }

    /// Returns the help for an unexpected token without a similar word.
    fn hint(&self, kind: TokenKind, span: Span) -> Option<String> {
        let word = self.slice(span).to_ascii_lowercase();
        let before = self
            .position
            .checked_sub(1)
            .and_then(|i| self.tokens.get(i))
            .map(|t| t.kind);
        let unexpected = Unexpected {
            word: &word,
            kind,
            before,
            // At the first token no clause has begun.
            clause: (self.position > 0).then_some(self.clause),
            expected: &self.expected,
        };
        hint(&unexpected).map(str::to_owned)
    }

    /// Skips to the first word of a clause, or to the end.
    pub(super) fn skip_to_clause(&mut self) {
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Keyword(keyword) if self.begins_clause(keyword) => return,
                _ => self.bump(),
            }
        }
    }

    /// Returns whether the present word begins a clause. ORDER alone does not: it may be a name
    /// that the author did not know to be reserved.
    fn begins_clause(&self, keyword: Keyword) -> bool {
        match keyword.clause() {
            Some(Clause::OrderBy) => self.next_is(TokenKind::Keyword(Keyword::By)),
            Some(_) => true,
            None => false,
        }
    }

    /// Skips to the next comma of the column list, over brackets of all kinds, or to the next
    /// clause.
    pub(super) fn skip_to_comma(&mut self) {
        let mut open = 0usize;
        loop {
            match self.kind() {
                TokenKind::End | TokenKind::Keyword(Keyword::From | Keyword::Where) => return,
                // A comma inside parentheses or brackets does not separate columns.
                TokenKind::Sign(',') if open == 0 => return,
                TokenKind::Sign('(' | '[' | '{') => open += 1,
                TokenKind::Sign(')' | ']' | '}') => open = open.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
    }
}

/// Joins alternatives: `a`, `a or b`, `a, b or c`. Words and signs come first, then phrases.
fn list(all: &[Expected]) -> String {
    let (words, phrases): (Vec<Expected>, Vec<Expected>) =
        all.iter().partition(|e| e.is_verbatim());
    let mut all: Vec<_> = words.iter().chain(&phrases).map(|e| e.text()).collect();
    match all.pop() {
        None => "something else".to_owned(),
        Some(only) if all.is_empty() => only.into_owned(),
        Some(last) => format!("{} or {last}", all.join(", ")),
    }
}

fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 40 {
        line.to_owned()
    } else {
        line.chars().take(39).chain(['…']).collect()
    }
}
