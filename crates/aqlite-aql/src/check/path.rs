//! Paths and predicates: variables and attributes.

use super::{
    Checker, MAX_ID, MAX_PATH_STEPS, MAX_PATTERN, MAX_STEPS, all_or_none, did_you_mean, spelled,
};
use crate::MAX_PATHS;
use crate::ast;
use crate::classes::{Classes, archetype_class};
use crate::lint::mismatch;
use crate::print;
use crate::query::{CompareOp, IdentifiedPath, Literal, Predicate, PredicateValue, Step};
use crate::token::{Escapes, is_archetype_id, is_node_code, regex_body, unescape};
use aqlite_engine::answer::compile_pattern;
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Span;
use aqlite_rm::order;
use aqlite_rm::time::Temporal;
use std::sync::Arc;

/// The most attributes that a message lists.
const LISTED_ATTRIBUTES: usize = 24;

impl Checker<'_> {
    /// Resolves a path, and returns its index among the paths of the query.
    pub(super) fn path(&mut self, path: &ast::Path) -> Option<usize> {
        let path = self.identified(path)?;
        Some(self.register(path))
    }

    /// Resolves a path as [`Checker::path`] does, and continues from a coded object to its code,
    /// because value sets contain codes.
    pub(super) fn coded_path(&mut self, path: &ast::Path) -> Option<usize> {
        let (mut path, end) = self.resolved(path)?;
        let bare = |attr| Step {
            attr,
            predicate: None,
        };
        let declared = end.declared();
        // A path that may end at a text is compared as written.
        if declared.iter().any(|c| c.is_primitive()) {
            return Some(self.register(path));
        }
        if declared.contains(&Cls::CODE_PHRASE) {
            path.steps.push(bare(Attr::CODE_STRING));
        } else if declared.iter().any(|c| Cls::DV_CODED_TEXT.is_a(*c)) {
            path.steps
                .extend([bare(Attr::DEFINING_CODE), bare(Attr::CODE_STRING)]);
        }
        Some(self.register(path))
    }

    fn register(&mut self, path: IdentifiedPath) -> usize {
        let same = |p: &IdentifiedPath| {
            p.variable == path.variable && p.steps == path.steps && p.root == path.root
        };
        // Above the limit the planner refuses the query, so a longer search would be wasted work.
        if let Some(known) = self.paths.iter().take(MAX_PATHS).position(same) {
            return known;
        }
        self.paths.push(path);
        self.paths.len() - 1
    }

    /// Resolves a path without adding it to the paths of the query.
    pub(super) fn identified(&mut self, path: &ast::Path) -> Option<IdentifiedPath> {
        self.resolved(path).map(|(path, _)| path)
    }

    fn resolved(&mut self, path: &ast::Path) -> Option<(IdentifiedPath, Classes)> {
        let Some(variable) = self.variable(&path.variable.text) else {
            if self.is_full() {
                return None;
            }
            return self.unknown_variable(&path.variable);
        };
        // The class is already reported; its attributes are unknown.
        if self.unknown_class.contains(&variable) {
            return None;
        }
        let classes = Classes::single(self.variables.get(variable)?.class);
        let root = match &path.root {
            Some(root) => Some(self.predicate(root, &classes)?),
            None => None,
        };
        let (steps, end) = self.steps(&path.steps, &classes)?;
        Some((
            IdentifiedPath {
                variable,
                root,
                steps,
                text: print::path(path),
            },
            end,
        ))
    }

    /// Returns the variable with this name; see [`spelled`].
    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        spelled(name, || {
            self.variables
                .iter()
                .enumerate()
                .filter_map(|(i, v)| v.name.as_deref().map(|n| (i, n)))
        })
    }

    fn unknown_variable<T>(&mut self, name: &ast::Name) -> Option<T> {
        if self.alias(&name.text).is_some() {
            let message = format!("`{}` is a column's alias, not a variable", name.text);
            let help = "an alias is allowed in ORDER BY only; write the column's path";
            return self.error("AQL0202", name.span(), message, help);
        }
        let names = self.variables.iter().filter_map(|v| v.name.clone());
        let names: Vec<String> = names.collect();
        let declared = || {
            if names.is_empty() {
                return "give a class in FROM a variable: `COMPOSITION c`".to_owned();
            }
            let quoted: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
            format!("FROM declares {}", quoted.join(", "))
        };
        let help = did_you_mean(&name.text, &mut names.iter().map(String::as_str), declared);
        let message = format!("the variable `{}` is not declared in FROM", name.text);
        self.error("AQL0202", name.span(), message, help)
    }

    fn steps(&mut self, steps: &[ast::Step], from: &Classes) -> Option<(Vec<Step>, Classes)> {
        if !self.count_steps(steps) {
            return None;
        }
        let mut classes = from.clone();
        let mut out = Vec::with_capacity(steps.len());
        for step in steps {
            let (attr, behind) = self.attribute(&step.attribute, &classes)?;
            // The class of an archetype in brackets decides which attributes may follow.
            classes = narrowed(behind, step.predicate.as_ref());
            let predicate = match &step.predicate {
                Some(predicate) => Some(self.predicate(predicate, &classes)?),
                None => None,
            };
            out.push(Step { attr, predicate });
        }
        Some((out, classes))
    }

    /// Counts the steps of a path. Returns false if the path has too many, or if all paths of the query
    /// have too many together, which is reported once.
    fn count_steps(&mut self, steps: &[ast::Step]) -> bool {
        let before = self.steps;
        self.steps = before.saturating_add(steps.len());
        if let Some(step) = steps.get(MAX_PATH_STEPS) {
            let _ = self.error::<()>(
                "AQL0003",
                step.attribute.span(),
                format!(
                    "the path has {} steps, more than {MAX_PATH_STEPS}",
                    steps.len()
                ),
                "no stored document nests so deep; reach deep nodes by CONTAINS",
            );
            return false;
        }
        if before <= MAX_STEPS && self.steps > MAX_STEPS {
            let span = steps
                .first()
                .map_or(Span::default(), |s| s.attribute.span());
            let _ = self.error::<()>(
                "AQL0003",
                span,
                format!("the paths of the query have more than {MAX_STEPS} steps in all"),
                "order by the columns themselves, or ask in several queries",
            );
        }
        self.steps <= MAX_STEPS
    }

    /// Refuses an id that is longer than any real one, because it is compared with that of every node.
    fn short_id(&mut self, id: &str, span: Span) -> Option<Arc<str>> {
        if id.len() <= MAX_ID {
            return Some(id.into());
        }
        self.error(
            "AQL0003",
            span,
            format!("the node id has more than {MAX_ID} bytes"),
            "name an archetype or a node of one, such as `at0004`",
        )
    }

    /// Refuses a text in brackets that is too long, because it is compared at every node, and with the
    /// texts of other paths.
    fn short_text(&mut self, text: Arc<str>, span: Span) -> Option<Arc<str>> {
        if text.len() <= MAX_PATTERN {
            return Some(text);
        }
        self.error(
            "AQL0003",
            span,
            format!("the text in brackets has more than {MAX_PATTERN} bytes"),
            "compare with a long text in WHERE",
        )
    }

    fn attribute(&mut self, name: &ast::Name, classes: &Classes) -> Option<(Attr, Classes)> {
        if let Some(attr) = Attr::parse(&name.text)
            && let Some(behind) = classes.step(attr)
        {
            return Some((attr, behind));
        }
        // Searching for a similar name costs time, so it is not done for errors that are dropped.
        if self.is_full() {
            return None;
        }
        let known: Vec<&str> = classes.attributes().iter().map(|a| a.name()).collect();
        let help = did_you_mean(&name.text, &mut known.iter().copied(), || {
            let shown: Vec<&str> = known.iter().take(LISTED_ATTRIBUTES).copied().collect();
            let more = if known.len() > shown.len() {
                " …"
            } else {
                ""
            };
            match known.is_empty() {
                true => format!("{} has no attributes", classes.describe()),
                false => format!("its attributes are {}{more}", shown.join(", ")),
            }
        });
        let (attribute, classes) = (&name.text, classes.describe());
        let message = format!("`{attribute}` is not an attribute of {classes}");
        self.error("AQL0203", name.span(), message, help)
    }

    pub(super) fn predicate(
        &mut self,
        predicate: &ast::Predicate,
        classes: &Classes,
    ) -> Option<Predicate> {
        let mut all = self.conjuncts(predicate, classes)?;
        if all.len() == 1 {
            all.pop()
        } else {
            // A conjunct that fails ends the evaluation, so the cheap ones are first.
            order::sort_by_key(&mut all, cost);
            Some(Predicate::And(all))
        }
    }

    fn conjuncts(
        &mut self,
        predicate: &ast::Predicate,
        classes: &Classes,
    ) -> Option<Vec<Predicate>> {
        match predicate {
            // A nested AND is flattened: the engine evaluates conjuncts one by one.
            ast::Predicate::And(all) => {
                let all = all_or_none(all.iter().map(|p| self.conjuncts(p, classes)))?;
                Some(all.into_iter().flatten().collect())
            }
            ast::Predicate::Or(any) => {
                let any = all_or_none(any.iter().map(|p| self.predicate(p, classes)))?;
                Some(vec![Predicate::Or(any)])
            }
            ast::Predicate::Node(node) => {
                self.count_condition(node.at.0)?;
                self.node(node, classes)
            }
            ast::Predicate::Compare(compare) => {
                self.count_condition(compare.at.0)?;
                let path = self.steps(&compare.path, classes);
                let value = self.predicate_value(&compare.value, classes);
                let ((path, end), value) = (path?, value?);
                if let PredicateValue::Literal(literal) = &value {
                    if let ast::PredicateValue::Literal(written) = &compare.value
                        && let Some(message) = mismatch(&end, compare.op, literal)
                    {
                        let help = "compare a value of the same type, or an attribute of an object";
                        self.warn("AQL0612", written.at.0, message, help);
                    }
                    self.check_predicate(&compare.value, literal, &path, classes)?;
                }
                Some(vec![Predicate::Compare(path, compare.op, value)])
            }
            ast::Predicate::Regex(regex) => {
                self.count_condition(regex.regex.span())?;
                let (path, _) = self.steps(&regex.path, classes)?;
                // Slashes delimit the expression in AQL only.
                let body = regex_body(&regex.regex.text).replace("\\/", "/");
                match compile_pattern(&body, regex.regex.span()) {
                    Ok(pattern) => self.count_regex_steps(&pattern, regex.regex.span())?,
                    Err(refused) => {
                        self.add_error(refused);
                        return None;
                    }
                }
                Some(vec![Predicate::Regex(path, body)])
            }
        }
    }

    fn predicate_value(
        &mut self,
        value: &ast::PredicateValue,
        classes: &Classes,
    ) -> Option<PredicateValue> {
        Some(match value {
            ast::PredicateValue::Literal(value) => {
                let literal = self.literal(value)?;
                PredicateValue::Literal(self.short_literal(literal, value.at.0)?)
            }
            ast::PredicateValue::Parameter(name) => {
                let literal = self.bound(name)?;
                PredicateValue::Literal(self.short_literal(literal, name.span())?)
            }
            ast::PredicateValue::Code(code) => {
                PredicateValue::Literal(Literal::Text(code.as_str().into()))
            }
            ast::PredicateValue::Path(path) => PredicateValue::Path(self.steps(path, classes)?.0),
        })
    }

    fn short_literal(&mut self, literal: Literal, span: Span) -> Option<Literal> {
        match literal {
            Literal::Text(text) => self.short_text(text, span).map(Literal::Text),
            other => Some(other),
        }
    }

    fn node(&mut self, node: &ast::NodePredicate, classes: &Classes) -> Option<Vec<Predicate>> {
        // Such a query is valid and returns nothing, so this is a warning.
        if !classes.have_node_id() {
            let message = format!("{} never has a node id", classes.describe());
            let help =
                "only nodes have an archetype or a code: compare an attribute in the brackets";
            self.warn("AQL0601", node.at.0, message, help);
        } else if let Some(class) = pinned(node)
            && !classes.possible().any(|c| c.is_a(class))
        {
            let at = classes.describe();
            let message = format!("an archetype on {class} never occurs at {at}");
            let help = "the class in the archetype id and the class of the node must agree";
            self.warn("AQL0601", node.at.0, message, help);
        }
        let id = match &node.id {
            ast::NodeId::Code(id) | ast::NodeId::Archetype(id) => self.short_id(id, node.at.0),
            ast::NodeId::Parameter(name) => self.node_id(name),
        };
        let name = match &node.name {
            None => Some(Vec::new()),
            Some(name) => self.name_predicates(name, node.at.0),
        };
        let mut all = vec![Predicate::NodeId(id?)];
        all.extend(name?);
        Some(all)
    }

    /// Returns the predicates of a name behind a node id: a text, a code or a term.
    fn name_predicates(&mut self, name: &ast::NodeName, span: Span) -> Option<Vec<Predicate>> {
        match name {
            ast::NodeName::Text(raw) => {
                let text = unescape(raw, Escapes::Text).0;
                let text = self.short_text(text.into(), span)?;
                Some(vec![named(&[Attr::NAME, Attr::VALUE], text)])
            }
            ast::NodeName::Parameter(name) => self.node_name(name),
            // A code without a terminology is in the terminology `local` (AQL § 3.6).
            ast::NodeName::Code(code) => Some(coded("local", code)),
            ast::NodeName::Term(term) => {
                let (terminology, code) = term.split_once("::").unwrap_or(("local", term));
                Some(coded(terminology, code.split('|').next().unwrap_or(code)))
            }
        }
    }

    fn node_id(&mut self, name: &ast::Name) -> Option<Arc<str>> {
        let text = self.bound_text(name, "an archetype id or a node code")?;
        let text = self.short_id(&text, name.span())?;
        if self.options.draft || is_archetype_id(&text) || is_node_code(&text) {
            return Some(text);
        }
        let message = format!(
            "`${}` is bound to neither an archetype id nor a node code",
            name.text
        );
        self.error(
            "AQL0303",
            name.span(),
            message,
            "bind it to a text such as `openEHR-EHR-OBSERVATION.blood_pressure.v2` or `at0004`",
        )
    }

    fn node_name(&mut self, name: &ast::Name) -> Option<Vec<Predicate>> {
        let text = self.bound_text(name, "a node name")?;
        let text = self.short_text(text, name.span())?;
        Some(vec![named(&[Attr::NAME, Attr::VALUE], text)])
    }
}

fn named(path: &[Attr], text: Arc<str>) -> Predicate {
    let steps = path
        .iter()
        .map(|attr| Step {
            attr: *attr,
            predicate: None,
        })
        .collect();
    Predicate::Compare(
        steps,
        CompareOp::Eq,
        PredicateValue::Literal(Literal::Text(text)),
    )
}

/// Returns the predicates of a name that is a coded text with this code.
fn coded(terminology: &str, code: &str) -> Vec<Predicate> {
    vec![
        named(
            &[Attr::NAME, Attr::DEFINING_CODE, Attr::CODE_STRING],
            code.into(),
        ),
        named(
            &[
                Attr::NAME,
                Attr::DEFINING_CODE,
                Attr::TERMINOLOGY_ID,
                Attr::VALUE,
            ],
            terminology.into(),
        ),
    ]
}

/// Returns the classes behind a step, narrowed by the archetype in its predicate.
fn narrowed(classes: Classes, predicate: Option<&ast::Predicate>) -> Classes {
    let class = match predicate {
        Some(ast::Predicate::Node(node)) => pinned(node),
        Some(ast::Predicate::And(all)) => all.iter().find_map(|p| {
            if let ast::Predicate::Node(node) = p {
                pinned(node)
            } else {
                None
            }
        }),
        _ => None,
    };
    class.map_or_else(|| classes.clone(), |class| classes.narrowed(class))
}

fn pinned(node: &ast::NodePredicate) -> Option<Cls> {
    if let ast::NodeId::Archetype(id) = &node.id {
        archetype_class(id)
    } else {
        None
    }
}

/// Returns the rank of a predicate by the time that it takes for one node: equality of plain texts
/// reads at most their bytes, temporal values are parsed, and regular expressions are run.
fn cost(predicate: &Predicate) -> u8 {
    match predicate {
        Predicate::NodeId(_) => 0,
        Predicate::Compare(_, CompareOp::Eq | CompareOp::Ne, PredicateValue::Literal(literal))
            if !may_be_temporal(literal) =>
        {
            1
        }
        Predicate::Compare(..) => 2,
        Predicate::Regex(..) => 3,
        Predicate::And(terms) | Predicate::Or(terms) => {
            terms.iter().map(cost).max().unwrap_or_default()
        }
    }
}

fn may_be_temporal(literal: &Literal) -> bool {
    match literal {
        Literal::Text(text) | Literal::Untyped(text) => Temporal::classify(text).is_some(),
        Literal::Null | Literal::Boolean(_) | Literal::Number(_) => false,
    }
}
