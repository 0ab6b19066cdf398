//! Lint: warnings about valid queries that probably do not mean what their author wants.
//!
//! The rules of [`LINT_RULES`] compare a query with the Reference Model, with templates, and with
//! itself. A template describes the documents that were checked against it, and a repository may
//! have others. Each warning therefore has a query for its contrary: a row of it refutes the
//! warning. Hosts with data run it and drop refuted warnings.

mod codes;
mod conditions;
mod contrary;
mod dates;
mod exclusive;
mod place;

pub(crate) use conditions::mismatch;

use super::ast;
use super::check::{Parameter, Parameters};
use super::classes::{Classes, archetype_class};
use super::query::Literal;
use super::token::{DIAGNOSTICS_LIMIT, Escapes, unescape};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::{Diagnostic, Span, nearest};
use aqlite_rm::id::is_archetype_id;
use aqlite_rm::order;
use aqlite_template::Template;
use place::State;

/// A rule of lint.
pub struct LintRule {
    /// The code of its warnings.
    pub code: &'static str,
    /// The name.
    pub name: &'static str,
    /// The condition for a warning.
    pub meaning: &'static str,
}

macro_rules! rules {
    ($($constant:ident $code:literal $name:literal $meaning:literal)*) => {
        $(const $constant: &str = $code;)*
        /// All rules of lint, by code.
        pub const LINT_RULES: &[LintRule] =
            &[$(LintRule { code: $code, name: $name, meaning: $meaning }),*];
    };
}

rules! {
    ARCHETYPE "AQL0605" "unknown-archetype" "no template has the archetype"
    VERSION "AQL0606" "archetype-version" "templates have the archetype in other versions only"
    CODE "AQL0607" "unknown-node-code" "no template has the node code in the archetype"
    NODE "AQL0608" "absent-node" "no template has the node at this place"
    ATTRIBUTE "AQL0609" "absent-attribute" "no value that templates permit here has the attribute"
    UNIT "AQL0610" "unit" "no template permits the unit here"
    TERM "AQL0611" "code" "no template permits the code or text here"
    TYPES "AQL0612" "types" "the types of a comparison never match"
    EXCLUSIVE "AQL0613" "exclusive-conditions" "two conditions exclude each other"
    ALWAYS "AQL0614" "always-true" "two alternatives cover every value of a type"
    UNNAMED "AQL0615" "unnamed-archetype" "no known archetype has the node code where it is compared"
    DATE "AQL0616" "misspelt-date" "a text looks like a date or time but is none"
}

/// The most archetypes of a query that are searched in templates. Each search visits every node.
const MAX_SEARCHES: usize = 100;

/// The most nodes of templates that the paths of a query reach. Further paths are not compared.
const MAX_REACHED: usize = 500_000;

/// A warning of lint.
#[derive(Clone, Debug)]
pub struct LintWarning {
    /// The warning.
    pub diagnostic: Diagnostic,
    /// The query for the contrary: a row refutes the warning.
    pub contrary: ast::Query,
    /// Whether the warning follows from the language and the Reference Model alone, so that no data
    /// refute it.
    pub is_certain: bool,
}

/// Returns the warnings of a query in the order of the text. `text` is the source of `ast`.
///
/// An unbound parameter can have any value. Without templates, only the rules from
/// `AQL0612` on apply.
pub fn lint(
    text: &str,
    ast: &ast::Query,
    parameters: &Parameters,
    templates: &[&Template],
) -> Vec<LintWarning> {
    // A template that was not understood permits anything.
    let is_opaque = templates.iter().any(|template| template.is_opaque);
    let mut linter = Linter {
        text,
        ast,
        parameters,
        templates: if is_opaque { &[] } else { templates },
        scopes: Vec::new(),
        chain: Vec::new(),
        seen: Vec::new(),
        unnamed_scopes: Vec::new(),
        searches: 0,
        reached: 0,
        out: Vec::new(),
    };
    linter.containment(&ast.from, None);
    linter.paths();
    if let Some(condition) = &ast.condition {
        linter.condition(condition);
    }
    order::sort_by_key(&mut linter.out, |w| w.diagnostic.span.start);
    linter.out
}

/// A variable of FROM.
struct Scope<'a> {
    name: Option<&'a str>,
    /// The nodes that it may bind.
    states: Vec<State<'a>>,
    /// The class expressions from the outermost one to its own.
    chain: Vec<&'a ast::ClassExpr>,
    /// Whether it binds nodes of compositions only. Templates describe nothing else.
    is_inside: bool,
}

struct Linter<'a> {
    text: &'a str,
    ast: &'a ast::Query,
    parameters: &'a Parameters,
    templates: &'a [&'a Template],
    scopes: Vec<Scope<'a>>,
    /// The class expressions around the present one.
    chain: Vec<&'a ast::ClassExpr>,
    /// The ranges that have a warning: a path occurs in several clauses, and each part once.
    seen: Vec<(&'static str, Span)>,
    /// The scopes with a warning about an archetype that is not named.
    unnamed_scopes: Vec<usize>,
    /// The number of archetypes that were searched in templates.
    searches: usize,
    /// The number of nodes that paths reached.
    reached: usize,
    out: Vec<LintWarning>,
}

/// The id of a node in brackets.
#[derive(Clone, Copy)]
struct NodeName<'a> {
    id: &'a str,
    span: Span,
    /// Whether it is written in the query and not bound to a parameter.
    is_written: bool,
}

impl<'a> Linter<'a> {
    fn warn(&mut self, diagnostic: Diagnostic, contrary: ast::Query, is_certain: bool) {
        let key = (diagnostic.code, diagnostic.span);
        if self.out.len() < DIAGNOSTICS_LIMIT && !self.seen.contains(&key) {
            self.seen.push(key);
            self.out.push(LintWarning {
                diagnostic,
                contrary,
                is_certain,
            });
        }
    }

    /// Counts a search of an archetype in all templates; false if there were too many.
    fn may_search(&mut self) -> bool {
        self.searches += 1;
        self.searches <= MAX_SEARCHES && !self.templates.is_empty()
    }

    fn containment(&mut self, from: &'a ast::Containment, above: Option<usize>) {
        match from {
            ast::Containment::And(all) | ast::Containment::Or(all) => {
                all.iter().for_each(|c| self.containment(c, above));
            }
            ast::Containment::Class(expr) => self.class(expr, above),
        }
    }

    fn class(&mut self, expr: &'a ast::ClassExpr, above: Option<usize>) {
        let Some(class) = Cls::parse_any_case(&expr.class.text) else {
            return;
        };
        self.chain.push(expr);
        let around = above.and_then(|at| self.scopes.get(at));
        let is_inside = class.is_a(Cls::COMPOSITION)
            || class.is_a(Cls::CONTENT_ITEM)
            || around.is_some_and(|scope| scope.is_inside);
        let predicate = match &expr.predicate {
            Some(ast::ClassPredicate::Node(predicate)) => Some(predicate),
            _ => None,
        };
        let name = predicate.and_then(|predicate| self.node_name(predicate));
        let open = vec![State::open(Classes::single(class))];
        let states = match name {
            Some(name) if is_inside && is_archetype_id(name.id) => {
                let around = around.map(|scope| scope.states.clone());
                self.archetype(name, around).unwrap_or(open)
            }
            _ => open,
        };
        self.scopes.push(Scope {
            name: expr.variable.as_ref().map(|name| name.text.as_str()),
            states,
            chain: self.chain.clone(),
            is_inside,
        });
        self.unnamed_class();
        if let Some(contains) = &expr.contains {
            self.containment(&contains.inner, Some(self.scopes.len() - 1));
        }
        self.chain.pop();
    }

    /// Returns the nodes of an archetype below those of the enclosing class; `None` if nothing is
    /// known about them.
    fn archetype(
        &mut self,
        name: NodeName<'a>,
        around: Option<Vec<State<'a>>>,
    ) -> Option<Vec<State<'a>>> {
        if !self.may_search() {
            return None;
        }
        let around = around.filter(|states| states.iter().all(|s| s.node().is_some()));
        let everywhere = place::roots(self.templates);
        let found = place::below(around.as_ref().unwrap_or(&everywhere), name.id);
        if !found.is_empty() {
            return Some(found);
        }
        let contrary = contrary::of_classes(&self.chain);
        if around.is_some() && !place::below(&everywhere, name.id).is_empty() {
            let message = format!("no template has `{}` below the class around it", name.id);
            let help = "correct the archetype of either class, or load the template";
            let found = Diagnostic::warning(NODE, name.span, message).with_help(help);
            self.warn(found, contrary, false);
        } else {
            self.unknown_archetype(name, contrary);
        }
        None
    }

    fn unknown_archetype(&mut self, name: NodeName<'a>, contrary: ast::Query) {
        let roots = self.templates.iter().flat_map(|t| &t.roots);
        let known: Vec<&str> = roots.map(|root| root.archetype_id.as_str()).collect();
        let front = |id: &'a str| id.rsplit_once(".v").map_or(id, |(front, _)| front);
        let other = known.iter().find(|id| front(id) == front(name.id));
        let class = archetype_class(name.id);
        // An archetype of another class is never meant.
        let mut candidates = known
            .iter()
            .copied()
            .filter(|id| archetype_class(id) == class);
        let (code, version, near) = match other {
            Some(other) => (VERSION, " in this version", Some(*other)),
            None => (ARCHETYPE, "", nearest(name.id, &mut candidates)),
        };
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => String::from("load a template that has it"),
        };
        let message = format!("no template has `{}`{version}", name.id);
        let found = Diagnostic::warning(code, name.span, message).with_help(help);
        self.warn(with_name(found, name, near), contrary, false);
    }

    /// Returns the archetype id or node code of a predicate.
    fn node_name(&self, predicate: &'a ast::Predicate) -> Option<NodeName<'a>> {
        let node = match predicate {
            ast::Predicate::Node(node) => node,
            ast::Predicate::And(all) => return all.iter().find_map(|p| self.node_name(p)),
            _ => return None,
        };
        let (id, span, is_written) = match &node.id {
            ast::NodeId::Code(id) | ast::NodeId::Archetype(id) => (id, node.at.0, true),
            ast::NodeId::Parameter(name) => match self.parameters.get(&name.text)? {
                Parameter::Text(id) | Parameter::Untyped(id) => (id, name.span(), false),
                _ => return None,
            },
        };
        Some(NodeName {
            id,
            span,
            is_written,
        })
    }

    /// Checks the paths of all clauses.
    fn paths(&mut self) {
        let ast = self.ast;
        for column in &ast.select.columns {
            match &column.value {
                ast::ColumnValue::Expr(expr) => self.expr(expr),
                ast::ColumnValue::Aggregate(aggregate) => {
                    aggregate.path.iter().for_each(|path| drop(self.path(path)));
                }
            }
        }
        for key in &ast.order {
            // A path behind an alias starts at no variable.
            let _ = self.path(&key.path);
        }
    }

    fn expr(&mut self, expr: &'a ast::Expr) {
        match expr {
            ast::Expr::Path(path) => drop(self.path(path)),
            ast::Expr::Call(call) => call.arguments.iter().for_each(|a| self.expr(a)),
            _ => {}
        }
    }

    /// Follows a path through the templates. Returns its ends; `None` if its variable is unknown.
    fn path(&mut self, path: &'a ast::Path) -> Option<Vec<State<'a>>> {
        self.path_before(path, path.steps.len())
    }

    /// Follows the first steps of a path.
    fn path_before(&mut self, path: &'a ast::Path, count: usize) -> Option<Vec<State<'a>>> {
        // Further warnings would be dropped.
        if self.out.len() >= DIAGNOSTICS_LIMIT {
            return None;
        }
        let name = path.variable.text.as_str();
        let at = super::check::spelled(name, || {
            let scopes = self.scopes.iter().enumerate();
            scopes.filter_map(|(i, scope)| scope.name.map(|name| (i, name)))
        })?;
        self.unnamed_path(at, path);
        let mut states = self.scopes.get(at)?.states.clone();
        for (i, step) in path.steps.iter().enumerate().take(count) {
            states = self.step(at, path, i, step, states)?;
        }
        Some(states)
    }

    /// Returns whether no template has an archetype, neither at a place nor elsewhere. `found` are
    /// the states of the nodes at the place.
    fn is_unknown(&self, class: Cls, id: &str, found: &[State<'a>]) -> bool {
        // Only entries and sections are always described by templates. Structures and clusters
        // also occur where templates constrain nothing, as in FEEDER_AUDIT.
        let is_described = found.is_empty() || class.is_a(Cls::CONTENT_ITEM);
        let is_open = is_described && found.iter().all(|s| s.node().is_none());
        is_open && place::below(&place::roots(self.templates), id).is_empty()
    }

    /// Follows a step of a path. Returns its ends; `None` if there are none, or too many.
    fn step(
        &mut self,
        scope: usize,
        path: &'a ast::Path,
        index: usize,
        step: &'a ast::Step,
        states: Vec<State<'a>>,
    ) -> Option<Vec<State<'a>>> {
        let attr = Attr::parse(&step.attribute.text)?;
        let behind: Vec<State<'a>> = states.iter().flat_map(|s| s.step(attr)).collect();
        let name = step.predicate.as_ref().and_then(|p| self.node_name(p));
        self.reached += behind.len();
        if self.reached > MAX_REACHED {
            return None;
        }
        let is_archetype = name.is_some_and(|name| is_archetype_id(name.id));
        let may_search = is_archetype && self.may_search();
        let scope = self.scopes.get(scope)?;
        let until = || contrary::of_path(&scope.chain, path, index);
        if behind.is_empty() {
            let contrary = until();
            self.absent_attribute(path, index, &states, contrary);
            return None;
        }
        let Some(name) = name else {
            return Some(behind);
        };
        let class = archetype_class(name.id).filter(|_| is_archetype_id(name.id));
        let found: Vec<State<'a>> = behind
            .iter()
            .filter_map(|state| state.selected(name.id, class))
            .collect();
        if let Some(class) = class
            && scope.is_inside
            && may_search
            && self.is_unknown(class, name.id, &found)
        {
            let contrary = until();
            self.unknown_archetype(name, contrary);
            return Some(vec![State::open(Classes::single(class))]);
        }
        if found.is_empty() {
            let contrary = until();
            self.absent_node(name, &behind, contrary);
            return None;
        }
        Some(found)
    }

    fn absent_attribute(
        &mut self,
        path: &'a ast::Path,
        index: usize,
        owners: &[State<'a>],
        contrary: ast::Query,
    ) {
        let Some(step) = path.steps.get(index) else {
            return;
        };
        let classes = order::distinct(owners.iter().flat_map(|s| s.classes.declared().to_vec()));
        let names: Vec<&str> = classes.iter().map(|class| class.name()).collect();
        let attribute = &step.attribute.text;
        let message = format!(
            "templates permit only {} here, without `{attribute}`",
            names.join(" or ")
        );
        let main = classes.first().map(|class| place::main_path(*class));
        // The steps behind the attribute would belong to another one.
        let is_last = index + 1 == path.steps.len();
        let near = main.filter(|_| is_last && classes.len() == 1);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("ask for an attribute of {}", names.join(" or ")),
        };
        let span = step.attribute.span();
        let mut found = Diagnostic::warning(ATTRIBUTE, span, message).with_help(help);
        if let Some(near) = near {
            found = found.with_fix(span, near);
        }
        self.warn(found, contrary, false);
    }

    fn absent_node(&mut self, name: NodeName<'a>, siblings: &[State<'a>], contrary: ast::Query) {
        let archetypes = order::distinct(siblings.iter().filter_map(State::archetype));
        let is_defined = siblings.iter().any(|s| s.defines(name.id));
        let found = if is_defined || is_archetype_id(name.id) || archetypes.is_empty() {
            let message = format!("no template has `{}` at this place", name.id);
            Diagnostic::warning(NODE, name.span, message)
        } else {
            let archetypes = archetypes.join(", ");
            let message = format!("no template has `{}` in {archetypes}", name.id);
            Diagnostic::warning(CODE, name.span, message)
        };
        self.warn(with_sibling(found, name, siblings), contrary, false);
    }

    /// Returns the value of an operand; `None` if it is not one known value.
    fn literal(&self, expr: &ast::Expr) -> Option<Literal> {
        match expr {
            ast::Expr::Literal(literal) => Some(value_of(literal)),
            ast::Expr::Parameter(name) => match self.parameters.get(&name.text)? {
                Parameter::Boolean(flag) => Some(Literal::Boolean(*flag)),
                Parameter::Number(digits) => Some(Literal::Number(digits.as_str().into())),
                // A text of a parameter takes the type of the value that it is compared with.
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the value of a literal.
fn value_of(literal: &ast::Literal) -> Literal {
    match &literal.value {
        ast::LiteralValue::Null => Literal::Null,
        ast::LiteralValue::Boolean(flag) => Literal::Boolean(*flag),
        ast::LiteralValue::Number(digits) => Literal::Number(digits.as_str().into()),
        ast::LiteralValue::Text(raw) => Literal::Text(unescape(raw, Escapes::Text).0.into()),
    }
}

/// Adds the change to another id, if the id is written in the query.
fn with_name(found: Diagnostic, name: NodeName<'_>, near: Option<&str>) -> Diagnostic {
    match near.filter(|_| name.is_written) {
        Some(near) => found.with_fix(name.span, near),
        None => found,
    }
}

/// The most nodes that a help lists.
const LISTED: usize = 8;

/// Adds the nodes at a place as help, and the change to the nearest one.
fn with_sibling(found: Diagnostic, name: NodeName<'_>, siblings: &[State<'_>]) -> Diagnostic {
    let named = siblings.iter().filter_map(State::labelled);
    let known = order::distinct(named.filter(|(id, _)| !id.is_empty()));
    let shown = |(id, label): &(&str, &str)| match label.is_empty() {
        true => format!("`{id}`"),
        false => format!("`{id}` ({label})"),
    };
    let ids = || known.iter().map(|(id, _)| *id);
    let near = match known.as_slice() {
        [only] => Some(only.0),
        _ => nearest(name.id, &mut ids()),
    };
    let near = near.and_then(|near| known.iter().find(|(id, _)| *id == near));
    let all: Vec<String> = known.iter().take(LISTED).map(shown).collect();
    let help = match near {
        Some(near) => format!("did you mean {}?", shown(near)),
        None if all.is_empty() => String::from("correct the path, or load the template"),
        None => format!("templates have {} here", all.join(", ")),
    };
    with_name(found.with_help(help), name, near.map(|(id, _)| *id))
}

#[cfg(test)]
mod tests;
