//! FROM: class expressions and their variables.

use super::{Checker, did_you_mean};
use crate::aql::ast;
use crate::aql::classes::Classes;
use crate::aql::query::{ClassExpr, Contains, Source, Variable, Versions};
use crate::rm::class::Cls;

impl Checker<'_> {
    pub(super) fn source(&mut self, containment: &ast::Containment) -> Option<Source> {
        match containment {
            ast::Containment::Class(class) => Some(Source::Class(Box::new(self.class_expr(class)?))),
            ast::Containment::And(all) => self.sources(all, Source::And),
            ast::Containment::Or(any) => self.sources(any, Source::Or),
        }
    }

    fn sources(&mut self, all: &[ast::Containment], join: fn(Box<Source>, Box<Source>) -> Source) -> Option<Source> {
        let all: Vec<Option<Source>> = all.iter().map(|c| self.source(c)).collect();
        balanced(all.into_iter().collect::<Option<Vec<Source>>>()?, join)
    }

    fn class_expr(&mut self, expr: &ast::ClassExpr) -> Option<ClassExpr> {
        let class = self.class(&expr.class);
        let name = expr.variable.as_ref().map(|v| v.text.clone());
        if let Some(variable) = &expr.variable
            && self.variables.iter().any(|v| v.name.as_deref() == Some(&variable.text))
        {
            let message = format!("the variable `{}` is declared twice", variable.text);
            let _ = self.error::<()>("AQL0204", variable.span(), message, "give each class expression a variable of its own");
        }
        let variable = self.variables.len();
        self.variables.push(Variable { name, class: class.unwrap_or(Cls::ANY) });
        let predicate = match (&expr.predicate, class) {
            (Some(ast::ClassPredicate::Node(node)), Some(class)) => Some(self.predicate(node, &Classes::of(class))),
            (_, Some(_)) => None,
            (_, None) => {
                self.doubtful.push(variable);
                None
            }
        };
        let contains = match &expr.contains {
            None => Some(Contains::Nothing),
            Some(contains) if contains.negated => self.source(&contains.inner).map(Contains::None),
            Some(contains) => self.source(&contains.inner).map(Contains::Some),
        };
        let versions = match (&expr.predicate, class == Some(Cls::VERSION)) {
            (Some(ast::ClassPredicate::AllVersions), _) | (Some(ast::ClassPredicate::Node(_)), true) => Versions::All,
            _ => Versions::Latest,
        };
        Some(ClassExpr {
            variable,
            class: class?,
            versions,
            predicate: match predicate {
                Some(predicate) => Some(predicate?),
                None => None,
            },
            contains: contains?,
        })
    }

    fn class(&mut self, name: &ast::Name) -> Option<Cls> {
        if let Some(class) = Cls::parse_any_case(&name.text).filter(|c| !c.is_primitive()) {
            return Some(class);
        }
        let help = did_you_mean(&name.text, Cls::all().filter(|c| !c.is_primitive()).map(Cls::name), || {
            "FROM names classes such as EHR, COMPOSITION, OBSERVATION, CLUSTER, ELEMENT".to_owned()
        });
        self.error("AQL0201", name.span(), format!("`{}` is not a class of the Reference Model", name.text), help)
    }
}

/// Joins a long list without a deep tree; both connectives are associative.
fn balanced(mut all: Vec<Source>, join: fn(Box<Source>, Box<Source>) -> Source) -> Option<Source> {
    if all.len() < 2 {
        return all.pop();
    }
    let right = all.split_off(all.len().div_ceil(2));
    Some(join(Box::new(balanced(all, join)?), Box::new(balanced(right, join)?)))
}
