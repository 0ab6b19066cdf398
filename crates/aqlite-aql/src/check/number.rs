//! Parameters that are compared with numbers. A text that is not a number is refused, because it
//! would match nothing.

use super::{Checker, MAX_NUMBER};
use crate::ast;
use crate::classes::Classes;
use crate::query::{Expr, Literal, Step, ValueType};
use aqlite_rm::class::Cls;
use aqlite_rm::number;

impl Checker<'_> {
    /// Checks both sides of a comparison, as written and as resolved.
    pub(super) fn check_compared(
        &mut self,
        written: [&ast::Expr; 2],
        sides: [&Expr; 2],
    ) -> Option<()> {
        let ([left, right], [written_left, written_right]) = (sides, written);
        for (written, value, other) in [(written_left, left, right), (written_right, right, left)] {
            if let (ast::Expr::Parameter(name), Expr::Literal(literal)) = (written, value)
                && self.is_number(other)
            {
                self.check_bound_number(name, literal)?;
            }
        }
        Some(())
    }

    /// Checks the parameters in the list behind MATCHES.
    pub(super) fn check_members(
        &mut self,
        path: usize,
        operand: &ast::MatchesOperand,
    ) -> Option<()> {
        let ast::MatchesOperand::List(items) = operand else {
            return Some(());
        };
        if !self.is_number(&Expr::Path(path)) {
            return Some(());
        }
        for item in items {
            let ast::MatchesItem::Parameter(name) = item else {
                continue;
            };
            let wrong = match self.bound_list(name) {
                Some(bound) => bound?.not_number,
                None => Some(self.bound(name)?),
            };
            if let Some(wrong) = wrong {
                self.check_bound_number(name, &wrong)?;
            }
        }
        Some(())
    }

    /// Checks the parameter of a predicate such as `[value/magnitude > $limit]`.
    pub(super) fn check_predicate(
        &mut self,
        value: &ast::PredicateValue,
        literal: &Literal,
        path: &[Step],
        from: &Classes,
    ) -> Option<()> {
        match value {
            ast::PredicateValue::Parameter(name) if ends_in_number(path, from.clone()) => {
                self.check_bound_number(name, literal)
            }
            _ => Some(()),
        }
    }

    fn check_bound_number(&mut self, name: &ast::Name, literal: &Literal) -> Option<()> {
        let (Literal::Text(text) | Literal::Untyped(text)) = literal else {
            return Some(());
        };
        if is_number(text) || self.options.draft {
            return Some(());
        }
        let shown: String = text.chars().take(40).collect();
        let message = format!(
            "`${}` is bound to the text `{shown}` and is compared with a number",
            name.text
        );
        self.error(
            "AQL0305",
            name.span(),
            message,
            "bind it to a number, or to a text that is one",
        )
    }

    /// Returns whether the values of an expression are numbers in every document.
    fn is_number(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Path(index) => self.paths.get(*index).is_some_and(|path| {
                let class = self
                    .variables
                    .get(path.variable)
                    .map(|variable| variable.class);
                class.is_some_and(|class| ends_in_number(&path.steps, Classes::single(class)))
            }),
            Expr::Call(function, _) => function.entry().result == ValueType::Number,
            Expr::Literal(literal) => matches!(literal, Literal::Number(_)),
        }
    }
}

/// Returns whether every class at the end of a path is a number. Predicates only narrow the classes,
/// so they are not needed.
fn ends_in_number(steps: &[Step], from: Classes) -> bool {
    let end = steps
        .iter()
        .try_fold(from, |classes, step| classes.step(step.attr));
    end.is_some_and(|end| {
        !end.declared().is_empty()
            && end
                .declared()
                .iter()
                .all(|class| matches!(*class, Cls::INTEGER | Cls::INTEGER64 | Cls::REAL))
    })
}

/// Returns whether a text is a number that a query may have.
pub(super) fn is_number(text: &str) -> bool {
    text.len() <= MAX_NUMBER && number::parse(text.trim()).is_some()
}
