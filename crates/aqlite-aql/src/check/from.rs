//! FROM: class expressions and their variables.

use super::{Checker, did_you_mean};
use crate::ast;
use crate::classes::Classes;
use crate::query::{ClassExpr, Contains, Predicate, Source, Variable, Versions};
use aqlite_engine::answer::unanswerable_class;
use aqlite_rm::class::Cls;

/// The most class expressions of FROM.
const CLASSES_LIMIT: usize = 200;

/// The classes that refer to the documents that they contain.
const REFERRING: [Cls; 4] = [Cls::EHR, Cls::FOLDER, Cls::VERSION, Cls::VERSIONED_OBJECT];

impl Checker<'_> {
    pub(super) fn source(&mut self, containment: &ast::Containment) -> Option<Source> {
        match containment {
            ast::Containment::Class(class) => {
                Some(Source::Class(Box::new(self.class_expr(class)?)))
            }
            ast::Containment::And(all) => self.sources(all, Source::And),
            ast::Containment::Or(any) => self.sources(any, Source::Or),
        }
    }

    fn sources(
        &mut self,
        all: &[ast::Containment],
        join: fn(Box<Source>, Box<Source>) -> Source,
    ) -> Option<Source> {
        let all: Vec<Option<Source>> = all.iter().map(|c| self.source(c)).collect();
        balanced(all.into_iter().collect::<Option<Vec<Source>>>()?, join)
    }

    /// Checks a class expression. Its variable precedes those of its containment.
    fn class_expr(&mut self, expr: &ast::ClassExpr) -> Option<ClassExpr> {
        if self.variables.len() >= CLASSES_LIMIT {
            let message = format!("the query names more than {CLASSES_LIMIT} classes");
            let span = expr.class.span();
            return self.error("AQL0003", span, message, "ask in several queries");
        }
        let class = self.class(&expr.class);
        self.check_answerable(&expr.class, class);
        let variable = self.declare(expr, class);
        if class.is_none() {
            self.unknown_class.push(variable);
        }
        let predicate = match self.class_predicate(expr, class) {
            // Nothing contains an EHR, and no alternative of none is true.
            Some(_) if class == Some(Cls::EHR) && self.enclosing > 0 => {
                Some(Some(Predicate::Or(Vec::new())))
            }
            predicate => predicate,
        };
        self.enclosing += 1;
        let contains = match &expr.contains {
            None => Some(Contains::Nothing),
            Some(contains) if contains.negated => self.source(&contains.inner).map(Contains::None),
            Some(contains) => self.source(&contains.inner).map(Contains::Some),
        };
        self.enclosing -= 1;
        if let Some((contains, class)) = expr.contains.as_ref().zip(class) {
            self.warn_of_absent(class, &contains.inner, contains.negated);
        }
        Some(ClassExpr {
            variable,
            class: class?,
            versions: versions(expr, class?),
            predicate: predicate?,
            contains: contains?,
        })
    }

    /// Reports a class whose objects no query can read, unless the query is a draft: another host may
    /// answer it.
    fn check_answerable(&mut self, name: &ast::Name, class: Option<Cls>) {
        if self.options.draft {
            return;
        }
        let refused = class.and_then(|class| unanswerable_class(class, name.span()));
        if let Some(refused) = refused {
            self.add_error(refused);
        }
    }

    /// Checks the brackets of a class of the Reference Model. The inner `None` means that it has
    /// none, the outer one that an error was reported.
    fn class_predicate(
        &mut self,
        expr: &ast::ClassExpr,
        class: Option<Cls>,
    ) -> Option<Option<Predicate>> {
        match (&expr.predicate, class) {
            (Some(ast::ClassPredicate::Node(node)), Some(class)) => {
                self.predicate(node, &Classes::single(class)).map(Some)
            }
            _ => Some(None),
        }
    }

    /// Declares the variable of a class expression, and returns its index.
    fn declare(&mut self, expr: &ast::ClassExpr, class: Option<Cls>) -> usize {
        let name = expr.variable.as_ref();
        let declared = |text: &str| {
            let mut names = self.variables.iter().map(|v| v.name.as_deref());
            names.any(|name| name == Some(text))
        };
        if let Some(name) = name.filter(|name| declared(&name.text)) {
            let message = format!("the variable `{}` is declared twice", name.text);
            let help = "give each class expression a variable of its own";
            let _ = self.error::<()>("AQL0204", name.span(), message, help);
        }
        self.variables.push(Variable {
            name: name.map(|name| name.text.clone()),
            class: class.unwrap_or(Cls::ANY),
        });
        self.variables.len() - 1
    }

    /// Warns of classes that no object of class `outer` contains (AQL § 3.14).
    fn warn_of_absent(&mut self, outer: Cls, inner: &ast::Containment, is_negated: bool) {
        let inner = match inner {
            ast::Containment::And(all) | ast::Containment::Or(all) => {
                return all
                    .iter()
                    .for_each(|c| self.warn_of_absent(outer, c, is_negated));
            }
            ast::Containment::Class(inner) => inner,
        };
        let class = Cls::parse_any_case(&inner.class.text);
        let Some(class) = class.filter(|class| never_contains(outer, *class)) else {
            return;
        };
        let help = match class {
            _ if is_negated => "NOT CONTAINS is always true here: leave it out".to_owned(),
            Cls::EHR => "EHR is the outermost class: `EHR e CONTAINS …`".to_owned(),
            _ if class.may_contain(outer) => {
                format!("the other way round: `{class} x CONTAINS {outer} y`")
            }
            _ => format!("join them in the EHR: `EHR e CONTAINS ({outer} x AND {class} y)`"),
        };
        let message = format!("{outer} never contains {class}");
        self.warn("AQL0604", inner.class.span(), message, help);
    }

    fn class(&mut self, name: &ast::Name) -> Option<Cls> {
        if let Some(class) = Cls::parse_any_case(&name.text).filter(|c| !c.is_primitive()) {
            return Some(class);
        }
        let help = did_you_mean(
            &name.text,
            &mut Cls::all().filter(|c| !c.is_primitive()).map(Cls::name),
            || {
                "FROM names classes such as EHR, COMPOSITION, OBSERVATION, CLUSTER, ELEMENT"
                    .to_owned()
            },
        );
        self.error(
            "AQL0201",
            name.span(),
            format!("`{}` is not a class of the Reference Model", name.text),
            help,
        )
    }
}

/// Returns whether no object of class `outer` contains one of class `inner`.
fn never_contains(outer: Cls, inner: Cls) -> bool {
    let refers = |class: Cls| REFERRING.iter().any(|other| class.is_a(*other));
    let contains = |class: Cls| refers(class) || class.may_contain(inner);
    inner == Cls::EHR || !Classes::single(outer).possible().any(contains)
}

/// Returns the versions that a class expression binds.
fn versions(expr: &ast::ClassExpr, class: Cls) -> Versions {
    match &expr.predicate {
        Some(ast::ClassPredicate::AllVersions) => Versions::All,
        // A predicate of VERSION may select an old version, so all are considered (§ 3.13.2).
        Some(ast::ClassPredicate::Node(_)) if class == Cls::VERSION => Versions::All,
        Some(ast::ClassPredicate::Node(_) | ast::ClassPredicate::LatestVersion) | None => {
            Versions::Latest
        }
    }
}

/// Joins a long list as a balanced tree, which recursion can walk. Both connectives are associative.
fn balanced(mut all: Vec<Source>, join: fn(Box<Source>, Box<Source>) -> Source) -> Option<Source> {
    if all.len() < 2 {
        return all.pop();
    }
    let right = all.split_off(all.len().div_ceil(2));
    Some(join(
        Box::new(balanced(all, join)?),
        Box::new(balanced(right, join)?),
    ))
}
