//! The text in an editor, which may be half written: its tokens, the variables of FROM, and the
//! classes and node that a path leads to. It needs no syntax tree.

use super::classes::{Classes, archetype_class};
use super::labels::LabelStep;
use super::parse::NESTING_LIMIT;
use super::token::{Token, TokenKind, tokens};
use super::vocabulary::{Clause, Keyword};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Span;

/// A text that is being written, with its tokens and variables.
pub(crate) struct Draft<'t> {
    text: &'t str,
    /// The tokens without comments and without the end.
    pub tokens: Vec<Token>,
    /// The variables of FROM.
    pub variables: Vec<Declared>,
}

/// A variable as FROM declares it.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// The name.
    pub name: String,
    /// The class.
    pub class: Cls,
    /// The archetype in brackets, if there is one.
    pub archetype: Option<String>,
}

/// The end of a path: the values that it can lead to.
#[derive(Clone, Debug)]
pub(crate) struct PathEnd {
    /// The classes that the values can have.
    pub classes: Classes,
    /// The nearest archetype above the end.
    pub archetype: Option<String>,
    /// The steps from the root of that archetype.
    pub steps: Vec<LabelStep>,
}

/// A word of a path, with the bracket that opens behind it.
#[derive(Clone, Copy)]
struct DraftStep {
    word: usize,
    bracket: Option<usize>,
}

impl<'t> Draft<'t> {
    pub fn new(text: &'t str) -> Draft<'t> {
        let (mut all, _) = tokens(text);
        // Invalid tokens remain: they are words in the making.
        all.retain(|t| !matches!(t.kind, TokenKind::Comment | TokenKind::End));
        let mut draft = Draft {
            text,
            tokens: all,
            variables: Vec::new(),
        };
        draft.variables = draft.declared();
        draft
    }

    pub fn kind(&self, index: usize) -> Option<TokenKind> {
        self.tokens.get(index).map(|t| t.kind)
    }

    pub fn word(&self, index: usize) -> &'t str {
        let span = self.tokens.get(index).map_or(Span::default(), |t| t.span);
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    fn is_sign(&self, index: usize, sign: char) -> bool {
        self.kind(index) == Some(TokenKind::Sign(sign))
    }

    /// Returns the text up to ORDER BY, which is a query by itself.
    pub fn before_order(&self) -> &'t str {
        let order = self
            .tokens
            .iter()
            .rev()
            .find(|t| t.kind == TokenKind::Keyword(Keyword::Order));
        self.text
            .get(..order.map_or(self.text.len(), |t| t.span.start))
            .unwrap_or_default()
    }

    /// Returns the class that a token names.
    pub fn class(&self, index: usize) -> Option<Cls> {
        match self.kind(index)? {
            TokenKind::Identifier | TokenKind::Keyword(Keyword::Version) => {
                Cls::parse_any_case(self.word(index)).filter(|c| !c.is_primitive())
            }
            _ => None,
        }
    }

    fn declared(&self) -> Vec<Declared> {
        let mut out = Vec::new();
        let mut in_from = false;
        let mut open = 0usize;
        for index in 0..self.tokens.len() {
            match self.kind(index) {
                Some(TokenKind::Keyword(word)) => {
                    if let Some(clause) = word.clause() {
                        in_from = clause == Clause::From;
                        open = 0;
                    }
                }
                Some(TokenKind::Sign('[')) => open += 1,
                Some(TokenKind::Sign(']')) => open = open.saturating_sub(1),
                _ => {}
            }
            if in_from && open == 0 {
                out.extend(self.declared_at(index));
            }
        }
        out
    }

    /// Returns the variable that a class with a name behind it declares.
    fn declared_at(&self, index: usize) -> Option<Declared> {
        let class = self.class(index)?;
        if self.kind(index + 1) != Some(TokenKind::Identifier) {
            return None;
        }
        let has_bracket = self.is_sign(index + 2, '[');
        Some(Declared {
            name: self.word(index + 1).to_owned(),
            class,
            archetype: has_bracket.then(|| self.archetype_in(index + 2)).flatten(),
        })
    }

    /// Returns the archetype id directly behind an opening bracket.
    fn archetype_in(&self, open: usize) -> Option<String> {
        (self.kind(open + 1) == Some(TokenKind::Archetype)).then(|| self.word(open + 1).to_owned())
    }

    /// Returns the variable with this name: as spelled, otherwise in any letter case.
    pub fn variable(&self, name: &str) -> Option<&Declared> {
        let exact = self.variables.iter().find(|v| v.name == name);
        exact.or_else(|| {
            self.variables
                .iter()
                .find(|v| v.name.eq_ignore_ascii_case(name))
        })
    }

    /// Returns the innermost bracket that is open before a token.
    pub fn open_bracket(&self, before: usize) -> Option<usize> {
        let mut closed = 0usize;
        for index in (0..before).rev() {
            match self.kind(index)? {
                TokenKind::Sign(']') => closed += 1,
                TokenKind::Sign('[') if closed == 0 => return Some(index),
                TokenKind::Sign('[') => closed -= 1,
                // A half-written text may lack a closing bracket. No bracket extends over a clause.
                TokenKind::Keyword(word) if word.clause().is_some() => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the end of the path that ends before a token.
    pub fn path_end_before(&self, end: usize) -> Option<PathEnd> {
        self.path_end(end, 0)
    }

    /// Returns the end of the path that an attribute or predicate at a token continues.
    pub fn owner(&self, index: usize) -> Option<PathEnd> {
        match index.checked_sub(1) {
            Some(slash) if self.is_sign(slash, '/') => self.path_end_before(slash),
            _ => self.path_end_before(self.open_bracket(index)?),
        }
    }

    fn path_end(&self, end: usize, depth: usize) -> Option<PathEnd> {
        // Each level of brackets is one level of recursion, and the text may have any number.
        if depth > NESTING_LIMIT {
            return None;
        }
        let (head, mut steps) = self.path_before(end)?;
        let mut end_of_path = match self.open_bracket(head.word) {
            // Inside brackets, a path starts at the node in front of them.
            Some(open) => {
                steps.push(head);
                self.path_end(open, depth + 1)?
            }
            None => self.variable_or_class(head)?,
        };
        for step in steps.into_iter().rev() {
            end_of_path = self.step(end_of_path, step.word, step.bracket)?;
        }
        Some(end_of_path)
    }

    /// Reads a path backwards, from its end to its variable. Returns its first word, and the others
    /// from the last to the second.
    fn path_before(&self, mut end: usize) -> Option<(DraftStep, Vec<DraftStep>)> {
        let mut steps = Vec::new();
        loop {
            let mut bracket = None;
            if self.is_sign(end.checked_sub(1)?, ']') {
                end = self.open_bracket(end - 1)?;
                bracket = Some(end);
            }
            let word = end.checked_sub(1)?;
            let step = DraftStep { word, bracket };
            match word.checked_sub(1) {
                Some(slash) if self.is_sign(slash, '/') => end = slash,
                _ => return Some((step, steps)),
            }
            steps.push(step);
        }
    }

    /// Returns the node at which a path starts: a variable, or a class in FROM.
    fn variable_or_class(&self, head: DraftStep) -> Option<PathEnd> {
        let declared = self.variable(self.word(head.word));
        let class = declared.map(|d| d.class);
        let class = class.or_else(|| self.class(head.word))?;
        // Brackets behind the variable in SELECT and WHERE narrow it further than FROM.
        let archetype = head.bracket.and_then(|open| self.archetype_in(open));
        Some(PathEnd {
            classes: Classes::single(class),
            archetype: archetype.or_else(|| declared.and_then(|d| d.archetype.clone())),
            steps: Vec::new(),
        })
    }

    fn step(&self, from: PathEnd, word: usize, bracket: Option<usize>) -> Option<PathEnd> {
        let name = self.word(word);
        let classes = from.classes.step(Attr::parse(name)?)?;
        if let Some(archetype) = bracket.and_then(|open| self.archetype_in(open)) {
            let classes = archetype_class(&archetype)
                .map_or_else(|| classes.clone(), |class| classes.narrowed(class));
            return Some(PathEnd {
                classes,
                archetype: Some(archetype),
                steps: Vec::new(),
            });
        }
        let code = bracket
            .filter(|open| self.kind(open + 1) == Some(TokenKind::Code))
            .map(|open| self.word(open + 1).to_owned());
        let mut steps = from.steps;
        steps.push((name.to_owned(), code));
        Some(PathEnd {
            classes,
            archetype: from.archetype,
            steps,
        })
    }
}
