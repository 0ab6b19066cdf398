//! Identified paths and the predicates in their brackets.

use super::{Parsed, Parser, one_or};
use crate::ast::*;
use crate::expected::Expected;
use crate::token::TokenKind;
use crate::vocabulary::Keyword;

impl Parser<'_> {
    pub(super) fn path(&mut self, expected: Expected) -> Parsed<Path> {
        let start = self.span();
        let variable = self.word(TokenKind::Identifier, expected)?;
        let root = self.brackets()?;
        let steps = if self.eat_sign('/') {
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
            let attribute = self.word(TokenKind::Identifier, Expected::Attribute)?;
            steps.push(Step {
                attribute,
                predicate: self.brackets()?,
            });
            if !self.eat_sign('/') {
                return Ok(steps);
            }
        }
    }

    fn brackets(&mut self) -> Parsed<Option<Predicate>> {
        if !self.eat_sign('[') {
            return Ok(None);
        }
        let predicate = self.nested(Self::predicate)?;
        self.need(']')?;
        Ok(Some(predicate))
    }

    pub(super) fn predicate(&mut self) -> Parsed<Predicate> {
        let mut any = vec![self.predicate_all()?];
        while self.eat_keyword(Keyword::Or) {
            any.push(self.predicate_all()?);
        }
        Ok(one_or(any, Predicate::Or))
    }

    fn predicate_all(&mut self) -> Parsed<Predicate> {
        let mut all = vec![self.predicate_one()?];
        while self.eat_keyword(Keyword::And) {
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
            _ => return self.compare_predicate(true),
        };
        let name = if self.eat_sign(',') {
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
            _ => return self.want(Expected::NodeName),
        })
    }

    /// Parses a comparison of a path, or its test by a regular expression if it `may_match` one.
    pub(super) fn compare_predicate(&mut self, may_match: bool) -> Parsed<Predicate> {
        let start = self.span();
        if self.kind() != TokenKind::Identifier {
            return self.want(Expected::Predicate);
        }
        let path = self.steps()?;
        if may_match && self.eat_keyword(Keyword::Matches) {
            return Ok(Predicate::Regex(RegexPredicate {
                path,
                regex: self.word(TokenKind::Regex, Expected::Regex)?,
            }));
        }
        let op = self.comparison()?;
        let value = self.compared_value()?;
        Ok(Predicate::Compare(Box::new(ComparePredicate {
            path,
            op,
            value,
            at: self.since(start),
        })))
    }

    /// Parses the right side of a comparison in brackets.
    fn compared_value(&mut self) -> Parsed<PredicateValue> {
        Ok(match self.kind() {
            TokenKind::Parameter => PredicateValue::Parameter(self.take_parameter()),
            TokenKind::Code => PredicateValue::Code(self.take_word().text),
            TokenKind::Identifier => PredicateValue::Path(self.steps()?),
            _ => match self.literal()? {
                Some(literal) => PredicateValue::Literal(literal),
                None => return self.want(Expected::Value),
            },
        })
    }
}
