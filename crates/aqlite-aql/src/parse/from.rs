//! FROM: containments and class expressions.

use super::{Parsed, Parser, one_or};
use crate::ast::*;
use crate::expected::Expected;
use crate::token::TokenKind;
use crate::vocabulary::Keyword;

impl Parser<'_> {
    pub(super) fn containment(&mut self) -> Parsed<Containment> {
        let first = self.contained_all()?;
        let mut all = vec![first];
        while self.eat_keyword(Keyword::Or) {
            all.push(self.contained_all()?);
        }
        Ok(one_or(all, Containment::Or))
    }

    fn contained_all(&mut self) -> Parsed<Containment> {
        let first = self.contained()?;
        let mut all = vec![first];
        while self.eat_keyword(Keyword::And) {
            all.push(self.contained()?);
        }
        Ok(one_or(all, Containment::And))
    }

    fn contained(&mut self) -> Parsed<Containment> {
        if self.eat_sign('(') {
            let inner = self.nested(Self::containment)?;
            self.need(')')?;
            return Ok(inner);
        }
        let is_version = self.kind() == TokenKind::Keyword(Keyword::Version);
        let class = match is_version {
            true => self.take_word(),
            false => self.word(TokenKind::Identifier, Expected::ClassName)?,
        };
        let has_variable = self.at(TokenKind::Identifier, Expected::Variable);
        let variable = has_variable.then(|| self.take_word());
        let predicate = match self.eat_sign('[') {
            true => Some(self.class_predicate(is_version)?),
            false => None,
        };
        Ok(Containment::Class(Box::new(ClassExpr {
            class,
            variable,
            predicate,
            contains: self.contains()?,
        })))
    }

    /// Parses CONTAINS or NOT CONTAINS with its containment, if one starts here.
    fn contains(&mut self) -> Parsed<Option<Contains>> {
        let start = self.span();
        // NOT is consumed only in front of CONTAINS, so that other uses get the hint about NOT.
        let negated = self.next_is(TokenKind::Keyword(Keyword::Contains))
            && self.eat(TokenKind::Keyword(Keyword::Not), Expected::NotContains);
        if !self.eat_keyword(Keyword::Contains) {
            return Ok(None);
        }
        let at = self.since(start);
        let inner = self.nested(Self::containment)?;
        Ok(Some(Contains { negated, inner, at }))
    }

    fn class_predicate(&mut self, is_version: bool) -> Parsed<ClassPredicate> {
        let predicate = if !is_version {
            ClassPredicate::Node(self.nested(Self::predicate)?)
        } else if self.eat_keyword(Keyword::LatestVersion) {
            ClassPredicate::LatestVersion
        } else if self.eat_keyword(Keyword::AllVersions) {
            ClassPredicate::AllVersions
        } else {
            // A version has no node id, so its brackets contain a comparison only.
            ClassPredicate::Node(self.nested(|p| p.compare_predicate(false))?)
        };
        self.need(']')?;
        Ok(predicate)
    }
}
