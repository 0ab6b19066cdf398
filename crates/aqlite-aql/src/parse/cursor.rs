//! The token cursor of the parser: looking ahead, consuming, reporting, and skipping to where reading can
//! go on.

use super::{At, CLAUSES, Failed, NESTING_LIMIT, Name, Parsed, Parser};
use crate::hint::{Place, hint};
use crate::token::{DIAGNOSTICS_LIMIT, Keyword, Token, TokenKind};
use aqlite_rm::diag::{Diagnostic, Span, nearest};

/// The machinery: looking, taking, telling, going on.
impl Parser<'_> {
    pub(super) fn token(&self) -> Token {
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
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// From a start to the end of the last token taken.
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
        self.expected.clear();
    }

    /// True when such a token stands here; if not, `what` is remembered as missing.
    pub(super) fn at(&mut self, kind: TokenKind, what: &'static str) -> bool {
        let found = self.kind() == kind;
        if !found && !self.expected.contains(&what) {
            self.expected.push(what);
        }
        found
    }

    pub(super) fn eat(&mut self, kind: TokenKind, what: &'static str) -> bool {
        let found = self.at(kind, what);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn eat_keyword(&mut self, keyword: Keyword, what: &'static str) -> bool {
        self.eat(TokenKind::Keyword(keyword), what)
    }

    pub(super) fn need(&mut self, sign: char, what: &'static str) -> Parsed<()> {
        if self.eat(TokenKind::Sign(sign), what) {
            Ok(())
        } else {
            self.unexpected()
        }
    }

    pub(super) fn word(&mut self, kind: TokenKind, what: &'static str) -> Parsed<Name> {
        if self.at(kind, what) {
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
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    pub(super) fn note_end(&mut self) {
        if self.kind() == TokenKind::End && self.at_end.is_empty() {
            self.at_end.clone_from(&self.expected);
        }
    }

    /// Tells that `what` is missing here, beside all that was looked for.
    pub(super) fn want<T>(&mut self, what: &'static str) -> Parsed<T> {
        if !self.expected.contains(&what) {
            self.expected.push(what);
        }
        self.unexpected()
    }

    pub(super) fn unexpected<T>(&mut self) -> Parsed<T> {
        self.tell_unexpected();
        Err(Failed)
    }

    /// Tells what stands here and what should; silent where the lexer has spoken already.
    pub(super) fn tell_unexpected(&mut self) {
        let Token { kind, span } = self.token();
        self.note_end();
        if kind == TokenKind::Invalid || self.diagnostics.len() >= DIAGNOSTICS_LIMIT {
            return;
        }
        let found = if kind == TokenKind::End {
            "the end of the query".to_owned()
        } else {
            format!("`{}`", shorten(self.slice(span)))
        };
        let message = format!("expected {}, found {found}", list(&self.expected));
        let before = self
            .position
            .checked_sub(1)
            .and_then(|i| self.tokens.get(i))
            .map(|t| t.kind);
        let clause = CLAUSES
            .get(self.clause)
            .filter(|_| self.position > 0)
            .map(|c| c.0);
        let word = self.slice(span).to_ascii_lowercase();
        let mut words = self
            .expected
            .iter()
            .map(|e| e.trim_matches('`'))
            .filter(|e| e.len() > 2);
        let near = if kind == TokenKind::Identifier {
            nearest(&word, &mut words)
        } else {
            None
        };
        let help = match near {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None => hint(&Place {
                word: &word,
                kind,
                before,
                clause,
                expected: &self.expected,
            })
            .map(str::to_owned),
        };
        self.diagnostics.push(Diagnostic {
            help,
            ..Diagnostic::error("AQL0101", span, message)
        });
    }

    pub(super) fn skip_to_clause(&mut self) {
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Keyword(Keyword::Order)
                    if self.next_is(TokenKind::Keyword(Keyword::By)) =>
                {
                    return;
                }
                TokenKind::Keyword(
                    Keyword::Select | Keyword::From | Keyword::Where | Keyword::Limit,
                ) => return,
                _ => self.bump(),
            }
        }
    }

    /// Goes to the next comma of the column list, over brackets of all kinds, or to the next
    /// clause.
    pub(super) fn skip_to_comma(&mut self) {
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
    if line.chars().count() <= 40 {
        line.to_owned()
    } else {
        line.chars().take(39).chain(['…']).collect()
    }
}
