//! Node codes of an archetype that the query does not name.
//!
//! A code such as `at0001` has a meaning within its archetype only. Below a class without an
//! archetype it is compared with the codes of whatever archetype the data have there. A code of a
//! class in FROM is not found in archetypes that are nested in the class around it.

use super::{Linter, UNNAMED, contrary, place};
use crate::ast;
use crate::classes::{Classes, archetype_class};
use aqlite_rm::class::Cls;
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::id::is_node_code;

/// The most archetypes that a help lists.
const LISTED: usize = 3;

/// A code of an unknown archetype.
struct Unnamed<'a> {
    code: &'a str,
    span: Span,
    /// The class whose archetype has the code; `None` for any class.
    class: Option<Cls>,
    /// The objects with which the code is compared.
    compared: String,
    /// The class that can name the archetype.
    naming: Cls,
    /// The class expression that would name the archetype.
    expr: &'a ast::ClassExpr,
    /// Whether it would stand around the class expression.
    is_around: bool,
    /// Whether the code is of a class that is nested in another one.
    is_nested: bool,
}

impl Unnamed<'_> {
    /// Returns class expressions that name an archetype.
    fn example(&self, archetype_id: &str) -> String {
        let own = shown(self.expr);
        match self.is_around {
            true => {
                let class = archetype_class(archetype_id).unwrap_or(self.naming).name();
                format!("`{class} a[{archetype_id}] CONTAINS {own}[{}]`", self.code)
            }
            false => format!("`{own}[{archetype_id}]`"),
        }
    }

    /// Returns the help with archetypes that have the code.
    fn help_among(&self, archetypes: &[&str]) -> String {
        let some = archetypes.iter().take(LISTED);
        let mut all: Vec<String> = some.map(|id| self.example(id)).collect();
        if all.is_empty() {
            let id = format!("openEHR-EHR-{}.….v1", self.naming.name());
            all.push(self.example(&id));
        }
        format!("name the archetype: {}", all.join(" or "))
    }
}

impl<'a> Linter<'a> {
    /// Checks the code of the innermost class expression.
    pub(super) fn unnamed_class(&mut self) {
        let Some((&expr, around)) = self.chain.split_last() else {
            return;
        };
        let Some(name) = predicate_of(expr).and_then(|p| self.node_name(p)) else {
            return;
        };
        let class = Cls::parse_any_case(&expr.class.text).map(Classes::single);
        let has_id = class.is_some_and(|class| class.have_node_id());
        if !has_id || !is_node_code(name.id) || self.is_named(around) || is_elsewhere(&self.chain) {
            return;
        }
        let around: Vec<_> = around.iter().filter(|class| is_content(class)).collect();
        let found = Unnamed {
            code: name.id,
            span: name.span,
            class: around.last().and_then(|class| root_class(class)),
            compared: match around.last() {
                Some(class) => format!(
                    "in the archetype of each `{}` only, not in those nested in it",
                    shown(class)
                ),
                None => String::from("in every archetype"),
            },
            naming: Cls::OBSERVATION,
            expr,
            is_around: true,
            is_nested: !around.is_empty(),
        };
        let absent = contrary::of_classes(&self.chain);
        let never = contrary::of_class_without_id(&self.chain);
        self.unnamed(&found, absent, never);
        self.unnamed_scopes.push(self.scopes.len() - 1);
    }

    /// Checks the codes of a path from the variable of a scope.
    pub(super) fn unnamed_path(&mut self, scope: usize, path: &'a ast::Path) {
        let Some(chain) = self.scopes.get(scope).map(|scope| scope.chain.clone()) else {
            return;
        };
        let Some(expr) = chain.last().copied().filter(|expr| is_content(expr)) else {
            return;
        };
        if self.unnamed_scopes.contains(&scope)
            || path.root.is_some()
            || is_elsewhere(&chain)
            || self.is_named(&chain)
        {
            return;
        }
        // A predicate that is no code may name the archetype.
        let first = path.steps.iter().position(|step| step.predicate.is_some());
        let name = first.and_then(|first| path.steps.get(first)?.predicate.as_ref());
        let name = name.and_then(|p| self.node_name(p));
        let (Some(first), Some(name)) = (first, name.filter(|name| is_node_code(name.id))) else {
            return;
        };
        let found = Unnamed {
            code: name.id,
            span: name.span,
            class: root_class(expr),
            compared: format!(
                "in the archetype of each `{}`, whichever it is",
                shown(expr)
            ),
            naming: Cls::parse_any_case(&expr.class.text).unwrap_or(Cls::OBSERVATION),
            expr,
            is_around: false,
            is_nested: false,
        };
        let absent = contrary::of_path(&chain, path, first);
        let never = contrary::of_path_without_id(&chain, path, first);
        self.unnamed(&found, absent, never);
        self.unnamed_scopes.push(scope);
    }

    /// Warns about a code that no archetype of templates has there. Without templates, warns about one
    /// that is not searched in nested archetypes. A code of any archetype may be meant otherwise.
    /// `absent` has a row if any node has the code, and `never` has none.
    fn unnamed(&mut self, found: &Unnamed<'a>, absent: ast::Query, never: ast::Query) {
        if self.names_archetype_elsewhere() {
            return;
        }
        if !self.templates.is_empty() && !self.may_search() {
            return;
        }
        let mut known = place::archetypes_with(self.templates, found.code);
        let everywhere = known.clone();
        known.retain(|id| match (found.class, archetype_class(id)) {
            (Some(wanted), Some(class)) => class.is_a(wanted),
            _ => true,
        });
        let (code, compared) = (found.code, &found.compared);
        let is_absent = known.is_empty() && !self.templates.is_empty();
        let message = match is_absent {
            true => format!("no template has `{code}` here: it is compared {compared}"),
            false if found.is_nested && known.is_empty() => {
                format!("`{code}` is compared {compared}")
            }
            false => return,
        };
        // Archetypes of another class cannot be named at the variable of a path.
        let others = match found.is_around {
            true => everywhere.as_slice(),
            false => &[],
        };
        let (help, is_certain) = (found.help_among(others), !is_absent);
        let contrary = if is_certain { never } else { absent };
        let found = Diagnostic::warning(UNNAMED, found.span, message).with_help(help);
        self.warn(found, contrary, is_certain);
    }

    /// Returns whether a class expression, or one around it up to the next class that always has an
    /// archetype, names its archetype.
    fn is_named(&self, chain: &[&'a ast::ClassExpr]) -> bool {
        for expr in chain.iter().rev() {
            if let Some(predicate) = predicate_of(expr) {
                // A predicate that is no code may name the archetype.
                let name = self.node_name(predicate);
                if name.is_none_or(|name| !is_node_code(name.id)) {
                    return true;
                }
            }
            if root_class(expr).is_some() {
                return false;
            }
        }
        false
    }

    /// Returns whether a condition compares the archetype as a value.
    fn names_archetype_elsewhere(&self) -> bool {
        ["archetype_node_id", "archetype_id"]
            .iter()
            .any(|name| self.text.contains(name))
    }
}

fn predicate_of(expr: &ast::ClassExpr) -> Option<&ast::Predicate> {
    match &expr.predicate {
        Some(ast::ClassPredicate::Node(predicate)) => Some(predicate),
        _ => None,
    }
}

/// Returns the class of an expression whose objects always are roots of archetypes.
fn root_class(expr: &ast::ClassExpr) -> Option<Cls> {
    let class = Cls::parse_any_case(&expr.class.text)?;
    (class.is_a(Cls::COMPOSITION) || class.is_a(Cls::ENTRY)).then_some(class)
}

/// Returns whether a class has nodes with codes: not EHR and VERSION.
fn is_content(expr: &ast::ClassExpr) -> bool {
    Cls::parse_any_case(&expr.class.text).is_some_and(|class| class.is_a(Cls::LOCATABLE))
}

/// Returns whether a class is one of a document that usually has one archetype in a repository, and
/// that no template describes.
fn is_elsewhere(chain: &[&ast::ClassExpr]) -> bool {
    let classes = chain
        .iter()
        .filter_map(|expr| Cls::parse_any_case(&expr.class.text));
    let others = [
        Cls::EHR_STATUS,
        Cls::FOLDER,
        Cls::PARTY,
        Cls::PARTY_RELATIONSHIP,
    ];
    classes
        .into_iter()
        .any(|class| others.iter().any(|other| class.is_a(*other)))
}

/// Returns class and variable of an expression.
fn shown(expr: &ast::ClassExpr) -> String {
    match &expr.variable {
        Some(variable) => format!("{} {}", expr.class.text, variable.text),
        None => expr.class.text.clone(),
    }
}
