//! Conditions of WHERE, and the operands of their operators.

use super::{Parsed, Parser, one_or};
use crate::ast::*;
use crate::expected::Expected;
use crate::query::CompareOp;
use crate::token::TokenKind;
use crate::vocabulary::Keyword;

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Parsed<Condition> {
        let mut all = vec![self.condition_all()?];
        while self.eat_keyword(Keyword::Or) {
            all.push(self.condition_all()?);
        }
        Ok(one_or(all, Condition::Or))
    }

    fn condition_all(&mut self) -> Parsed<Condition> {
        let mut all = vec![self.condition_one()?];
        while self.eat_keyword(Keyword::And) {
            all.push(self.condition_one()?);
        }
        Ok(one_or(all, Condition::And))
    }

    fn condition_one(&mut self) -> Parsed<Condition> {
        if self.eat_keyword(Keyword::Not) {
            return Ok(Condition::Not(Box::new(self.nested(Self::condition_one)?)));
        }
        if self.eat_sign('(') {
            let inner = self.nested(Self::condition)?;
            self.need(')')?;
            return Ok(inner);
        }
        if self.eat_keyword(Keyword::Exists) {
            return Ok(Condition::Exists(self.path(Expected::Path)?));
        }
        // A literal cannot be the left side. Without this test it would be parsed, and the error
        // would be at the operator behind it.
        if begins_literal(self.kind()) || self.kind() == TokenKind::Parameter {
            self.expected.push(Expected::Function);
            return self.want(Expected::Path);
        }
        match self.expr(Expected::PathOrFunction)? {
            Expr::Path(path) if self.eat_keyword(Keyword::Like) => {
                Ok(Condition::Like(path, self.like_operand()?))
            }
            Expr::Path(path) if self.eat_keyword(Keyword::Matches) => {
                Ok(Condition::Matches(path, self.matches_operand()?))
            }
            left => {
                let op = self.comparison()?;
                let right = self.expr(Expected::Value)?;
                Ok(Condition::Compare(Box::new(Compare { left, op, right })))
            }
        }
    }

    pub(super) fn comparison(&mut self) -> Parsed<CompareOp> {
        if !self.at(TokenKind::Comparison, Expected::Comparison) {
            return self.unexpected();
        }
        let sign = self.slice(self.span());
        let Some(op) = CompareOp::ALL.into_iter().find(|op| op.text() == sign) else {
            return self.unexpected();
        };
        self.bump();
        Ok(op)
    }

    fn like_operand(&mut self) -> Parsed<LikeOperand> {
        if self.at(TokenKind::Parameter, Expected::Parameter) {
            return Ok(LikeOperand::Parameter(self.take_parameter()));
        }
        Ok(LikeOperand::Text(
            self.word(TokenKind::Text, Expected::Text)?,
        ))
    }

    fn matches_operand(&mut self) -> Parsed<MatchesOperand> {
        if self.at(
            TokenKind::Keyword(Keyword::Terminology),
            Expected::Word(Keyword::Terminology),
        ) {
            return Ok(MatchesOperand::Terminology(self.terminology()?));
        }
        self.need('{')?;
        if self.at(TokenKind::Uri, Expected::Uri) {
            let uri = self.take_word();
            self.need('}')?;
            return Ok(MatchesOperand::Uri(uri));
        }
        // The grammar has no empty list.
        let mut items = vec![self.matches_item()?];
        while self.eat_sign(',') {
            items.push(self.matches_item()?);
        }
        self.need('}')?;
        Ok(MatchesOperand::List(items))
    }

    fn matches_item(&mut self) -> Parsed<MatchesItem> {
        if self.at(TokenKind::Parameter, Expected::Parameter) {
            return Ok(MatchesItem::Parameter(self.take_parameter()));
        }
        if self.at(
            TokenKind::Keyword(Keyword::Terminology),
            Expected::Word(Keyword::Terminology),
        ) {
            return Ok(MatchesItem::Terminology(self.terminology()?));
        }
        match self.literal()? {
            Some(literal) => Ok(MatchesItem::Literal(literal)),
            None => self.want(Expected::Literal),
        }
    }
}

/// Returns whether a token begins a literal.
fn begins_literal(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Text
            | TokenKind::Integer
            | TokenKind::Real
            | TokenKind::Boolean
            | TokenKind::Keyword(Keyword::Null)
            | TokenKind::Sign('-')
    )
}
