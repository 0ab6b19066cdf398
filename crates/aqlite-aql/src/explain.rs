//! Explanation: tokens, syntax tree, checked query and plan of a query as data. The engine reports
//! the data that a run touches (`ScanStatistics`).

use super::ast;
use super::check::{CheckOptions, Parameters, examine};
use super::lint::{LintWarning, lint};
use super::parse::parse;
use super::prepare::QueryOptions;
use super::print;
use super::query::{Condition, Expr, Literal, Query, Window};
use super::stages::Stages;
use super::token::{TokenKind, tokens};
use super::vocabulary::{Clause, Keyword};
use super::{Plan, plan};
use aqlite_engine::answer::{Mode, Trie, evaluation_strategy};
use aqlite_rm::diag::{Diagnostic, Severity, Span};
use aqlite_template::Template;
use std::fmt::Write;

/// The result of each step from a text to its plan. A step that was not reached is absent, and the
/// diagnostics have the reason.
#[derive(Debug, Default)]
pub struct Explanation {
    /// The tokens, comments included: kind and position.
    pub tokens: Vec<(&'static str, Span)>,
    /// The syntax tree.
    pub syntax: Option<Part>,
    /// The checked query: names resolved, parameters and value sets written in.
    pub query: Option<Part>,
    /// The plan: the scan of the repository, and the strategy that makes rows.
    pub plan: Option<Part>,
    /// Errors and warnings of parser and checker, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The warnings of lint, which data may refute.
    pub lint: Vec<LintWarning>,
    /// The stages of the query, for a result without rows; absent if it has an error.
    pub stages: Option<Stages>,
}

/// A node of the tree that shows a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// The description, in one line.
    pub label: String,
    /// The position in the text.
    pub span: Option<Span>,
    /// The parts below.
    pub parts: Vec<Part>,
}

impl Part {
    fn leaf(label: impl Into<String>) -> Part {
        Part {
            label: label.into(),
            ..Part::default()
        }
    }

    fn new(label: impl Into<String>, parts: Vec<Part>) -> Part {
        Part {
            label: label.into(),
            span: None,
            parts,
        }
    }

    fn at(self, span: Span) -> Part {
        Part {
            span: Some(span),
            ..self
        }
    }

    /// Returns the tree as indented lines.
    pub fn outline(&self) -> String {
        let mut out = String::new();
        self.write_outline(0, &mut out);
        out
    }

    fn write_outline(&self, depth: usize, out: &mut String) {
        let _ = writeln!(out, "{:1$}{2}", "", depth * 2, self.label);
        self.parts
            .iter()
            .for_each(|part| part.write_outline(depth + 1, out));
    }
}

impl Explanation {
    /// Adds the steps from the text to the plan, as far as the query is valid.
    fn explain(
        &mut self,
        text: &str,
        parameters: &Parameters,
        options: &QueryOptions<'_>,
        templates: &[&Template],
    ) -> Option<Plan> {
        let (ast, diagnostics) = parse(text);
        self.diagnostics = diagnostics;
        let ast = ast?;
        let is_not = |span: &Span| {
            let word = text.get(span.start..span.end);
            word.is_some_and(|word| word.eq_ignore_ascii_case(Keyword::Not.text()))
        };
        let spans = self.tokens.iter().map(|(_, span)| *span);
        let nots: Vec<Span> = spans.filter(is_not).collect();
        self.syntax = Some(syntax(&ast, &nots));
        let options_of_check = CheckOptions {
            terminology: options.terminology,
            ..CheckOptions::default()
        };
        let (query, diagnostics) = examine(&ast, parameters, &options_of_check);
        self.diagnostics.extend(diagnostics);
        // Warnings do not prevent a plan.
        let is_error = |d: &Diagnostic| d.severity == Severity::Error;
        let query = query.filter(|_| !self.diagnostics.iter().any(is_error))?;
        self.query = Some(checked(&query));
        self.lint = lint(text, &ast, parameters, templates);
        self.stages = Some(Stages::of(ast));
        match plan(query, options.ehr, options.exact_archetypes) {
            Ok(plan) => {
                self.plan = Some(planned(&plan));
                Some(plan)
            }
            Err(diagnostics) => {
                self.diagnostics.extend(diagnostics);
                None
            }
        }
    }
}

/// Explains a query, and returns its plan if it has one. The query is compared with templates.
pub fn explain(
    text: &str,
    parameters: &Parameters,
    options: &QueryOptions<'_>,
    templates: &[&Template],
) -> (Explanation, Option<Plan>) {
    let words = tokens(text).0.into_iter();
    let words = words.filter(|t| t.kind != TokenKind::End);
    let mut explanation = Explanation {
        tokens: words.map(|t| (t.kind.name(), t.span)).collect(),
        ..Explanation::default()
    };
    let plan = explanation.explain(text, parameters, options, templates);
    (explanation, plan)
}

/// Returns the text that a function of the printer writes.
fn written<T>(write: impl Fn(&mut String, &T), what: &T) -> String {
    let mut out = String::new();
    write(&mut out, what);
    out
}

/// Shows the syntax tree. `nots` are the positions of the words NOT in the text.
fn syntax(query: &ast::Query, nots: &[Span]) -> Part {
    let select = &query.select;
    let top = select
        .top
        .as_ref()
        .map(|top| Part::leaf(written(print::top, top)).at(top.at.0));
    let columns = top
        .into_iter()
        .chain(select.columns.iter().map(column))
        .collect();
    let mut clauses = vec![
        Part::new(written(print::select_words, select), columns).at(select.at.0),
        Part::new(Clause::From.title(), vec![containment(&query.from)]),
    ];
    let predicate = query.condition.as_ref();
    clauses.extend(predicate.map(|c| Part::new(Clause::Where.title(), vec![condition(c, nots)])));
    if !query.order.is_empty() {
        let key = |k: &ast::OrderKey| Part::leaf(written(print::order_key, k)).at(k.path.span());
        let keys = query.order.iter().map(key).collect();
        clauses.push(Part::new(Clause::OrderBy.title(), keys));
    }
    let limit = query.limit.as_ref();
    clauses.extend(limit.map(|limit| Part::leaf(written(print::limit, limit)).at(limit.at.0)));
    Part::new("query", clauses)
}

fn column(column: &ast::Column) -> Part {
    Part::leaf(written(print::write_column, column)).at(column.at.0)
}

fn containment(from: &ast::Containment) -> Part {
    match from {
        ast::Containment::And(all) => {
            Part::new(Keyword::And.text(), all.iter().map(containment).collect())
        }
        ast::Containment::Or(any) => {
            Part::new(Keyword::Or.text(), any.iter().map(containment).collect())
        }
        ast::Containment::Class(class) => {
            let contains = class.contains.as_ref().map(|contains| {
                let words = written(print::contains_words, contains);
                Part::new(words, vec![containment(&contains.inner)]).at(contains.at.0)
            });
            Part::new(
                written(print::class_head, &**class),
                contains.into_iter().collect(),
            )
            .at(class.class.span())
        }
    }
}

/// Shows a condition. `nots` are the positions of the words NOT in the text.
fn condition(whole: &ast::Condition, nots: &[Span]) -> Part {
    let span = print::condition_span(whole);
    let parts = |all: &[ast::Condition]| all.iter().map(|c| condition(c, nots)).collect();
    let part = match whole {
        ast::Condition::And(all) => Part::new(Keyword::And.text(), parts(all)),
        ast::Condition::Or(any) => Part::new(Keyword::Or.text(), parts(any)),
        ast::Condition::Not(inner) => {
            let inner = condition(inner, nots);
            let start = inner.span.map_or(0, |inner| inner.start);
            // Only parentheses and comments are between the word and its condition.
            let word = nots.iter().rfind(|word| word.end <= start);
            let part = Part::new(Keyword::Not.text(), vec![inner]);
            return part.at(word.map_or(span, |word| word.to(span)));
        }
        single => return Part::leaf(written(print::condition, single)).at(span),
    };
    let start = part.parts.first().and_then(|first| first.span);
    part.at(start.map_or(span, |start| start.to(span)))
}

/// Shows the checked query.
fn checked(query: &Query) -> Part {
    let variable = |(i, v): (usize, &super::query::Variable)| {
        let name = v.name.as_deref().unwrap_or("(anonymous)");
        Part::leaf(format!("#{i} {name}: {}", v.class))
    };
    let path =
        |(i, p): (usize, &super::query::IdentifiedPath)| Part::leaf(format!("#{i} {}", p.text));
    let columns = query.select.iter().map(|c| Part::leaf(c.name.clone()));
    let variables = query.variables.iter().enumerate().map(variable);
    let paths = query.paths.iter().enumerate().map(path);
    let mut parts = vec![
        Part::new("variables", variables.collect()),
        Part::new("paths", paths.collect()),
        Part::new("columns", columns.collect()),
    ];
    let condition = query.condition.as_ref();
    parts.extend(condition.map(|c| Part::new("condition", vec![truth(query, c)])));
    parts.extend(query.window.map(window));
    Part::new("query", parts)
}

/// Shows the window of the result.
fn window(window: Window) -> Part {
    Part::leaf(match window {
        Window::First { limit, offset } => {
            format!("window: the first {limit} rows behind {offset}")
        }
        Window::Last { limit } => format!("window: the last {limit} rows"),
    })
}

/// Shows a checked condition.
fn truth(query: &Query, condition: &Condition) -> Part {
    let parts = |all: &[Condition]| all.iter().map(|c| truth(query, c)).collect();
    let value = |e: &Expr| written(value, e);
    match condition {
        Condition::And(all) => Part::new(Keyword::And.text(), parts(all)),
        Condition::Or(any) => Part::new(Keyword::Or.text(), parts(any)),
        Condition::Not(inner) => Part::new(Keyword::Not.text(), vec![truth(query, inner)]),
        Condition::Compare(left, op, right) => {
            Part::leaf(format!("{} {} {}", value(left), op.text(), value(right)))
        }
        Condition::Like(left, _) => Part::leaf(format!("{} LIKE a pattern", value(left))),
        Condition::Matches(left, members) => {
            let shown = members
                .literals()
                .take(MAX_SHOWN_MEMBERS)
                .map(|m| Part::leaf(written(literal, m)));
            let more = members.len().saturating_sub(MAX_SHOWN_MEMBERS);
            let more = (more > 0).then(|| Part::leaf(format!("… and {more} more")));
            Part::new(
                format!("{} matches one of {}", value(left), members.len()),
                shown.chain(more).collect(),
            )
        }
        Condition::Exists(index) => Part::leaf(match query.exists.get(*index) {
            Some(path) => format!("EXISTS {}", path.text),
            None => String::from("EXISTS of a path that the query does not have"),
        }),
        Condition::Constant(truth) => Part::leaf(match truth {
            Some(truth) => format!("always {truth}"),
            None => String::from("always unknown"),
        }),
    }
}

/// The most characters of a text that are shown.
const MAX_TEXT: usize = 200;

/// The most members of a list that are shown.
const MAX_SHOWN_MEMBERS: usize = 20;

fn value(out: &mut String, expr: &Expr) {
    match expr {
        Expr::Path(path) => drop(write!(out, "#{path}")),
        Expr::Literal(value) => literal(out, value),
        Expr::Call(function, arguments) => {
            out.push_str(function.name());
            for (i, argument) in arguments.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "(" });
                value(out, argument);
            }
            out.push_str(if arguments.is_empty() { "()" } else { ")" });
        }
    }
}

fn literal(out: &mut String, literal: &Literal) {
    match literal {
        Literal::Null => out.push_str(Keyword::Null.text()),
        Literal::Boolean(flag) => drop(write!(out, "{flag}")),
        Literal::Number(text) => out.push_str(text),
        Literal::Text(text) | Literal::Untyped(text) => match text.char_indices().nth(MAX_TEXT) {
            Some((end, _)) => drop(write!(out, "'{}…'", text.get(..end).unwrap_or_default())),
            None => drop(write!(out, "'{text}'")),
        },
    }
}

/// Shows the plan.
fn planned(plan: &Plan) -> Part {
    let scan = plan.scan();
    let flag = |set: bool, label: &str| set.then(|| Part::leaf(label));
    let ehrs = match &scan.ehrs {
        Some(ehrs) => ehrs.join(", "),
        None => String::from("all that are queryable"),
    };
    let kinds: Vec<&str> = scan.kinds.iter().map(|kind| kind.class().name()).collect();
    let kinds = match kinds.is_empty() {
        true => String::from("none"),
        false => kinds.join(", "),
    };
    let mut asked = vec![
        Part::leaf(format!("EHR: {ehrs}")),
        Part::leaf(format!("documents: {kinds}")),
    ];
    asked.extend(flag(scan.all_versions, "all versions, deletions too"));
    asked.extend(flag(scan.whole_ehrs, "all documents of an EHR together"));
    asked.extend(flag(scan.empty_ehrs, "EHRs without documents too"));
    let groups = scan.archetypes.iter().map(|group| group.0.join(" or "));
    asked.extend(groups.map(|ids| Part::leaf(format!("pruned to archetype {ids}"))));
    let mut parts = vec![
        Part::new("scan", asked),
        Part::leaf(format!("strategy: {}", evaluation_strategy(plan))),
    ];
    parts.extend(plan.tries().iter().map(|trie| tree(plan, trie, 0)));
    Part::new("plan", parts)
}

/// Shows a step of the merged paths, with the steps below.
fn tree(plan: &Plan, trie: &Trie, at: usize) -> Part {
    let Some(node) = trie.nodes.get(at) else {
        return Part::leaf("a step that the plan does not have");
    };
    let mut label = match at {
        0 => {
            let variable = plan.query().variables.get(trie.variable);
            let name = variable.and_then(|v| v.name.as_deref());
            format!("rows of {}", name.unwrap_or("(anonymous)"))
        }
        _ => node.attr.name().to_owned(),
    };
    let filters = node.paths.iter().filter(|(_, filter)| filter.is_some());
    let filters = filters.count();
    if filters > 0 {
        let _ = write!(label, " [{filters} with a predicate]");
    }
    if node.mode == Mode::Inner {
        label.push_str(" (inner join: without rows below it vanishes)");
    }
    let ends: Vec<String> = node.ends.iter().map(|p| format!("#{p}")).collect();
    if !ends.is_empty() {
        let _ = write!(label, " → {}", ends.join(", "));
    }
    let children = node.children.iter().map(|child| tree(plan, trie, *child));
    Part::new(label, children.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of each condition, the outer before the inner ones.
    fn texts<'q>(query: &'q str, part: &Part) -> Vec<&'q str> {
        let span = part.span.unwrap();
        let below = part.parts.iter().flat_map(|part| texts(query, part));
        std::iter::once(&query[span.start..span.end])
            .chain(below)
            .collect()
    }

    #[test]
    fn conditions_have_their_whole_text() {
        let query = "SELECT c FROM EHR e NOT CONTAINS COMPOSITION c WHERE NOT (EXISTS e/ehr_id AND NOT not e/ehr_id/value = 'a') OR e/ehr_id/value = 'b'";
        let explanation = explain(query, &Parameters::new(), &QueryOptions::default(), &[]).0;
        let syntax = explanation.syntax.unwrap();
        let clause = syntax.parts.iter().find(|part| part.label == "WHERE");
        let found = texts(query, &clause.unwrap().parts[0]);
        assert_eq!(
            found,
            [
                "NOT (EXISTS e/ehr_id AND NOT not e/ehr_id/value = 'a') OR e/ehr_id/value = 'b'",
                "NOT (EXISTS e/ehr_id AND NOT not e/ehr_id/value = 'a'",
                "e/ehr_id AND NOT not e/ehr_id/value = 'a'",
                "e/ehr_id",
                "NOT not e/ehr_id/value = 'a'",
                "not e/ehr_id/value = 'a'",
                "e/ehr_id/value = 'a'",
                "e/ehr_id/value = 'b'",
            ]
        );
    }

    const Q: &str = "SELECT o/data/events/time/value AS t, COUNT(*)\nFROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.x.v1]\n\
        WHERE NOT o/name/value matches {'a', $b} -- why\nORDER BY t DESC LIMIT 5";

    #[test]
    fn every_step_is_explained() {
        let parameters =
            Parameters::from([(String::from("b"), crate::Parameter::Text(String::from("c")))]);
        let (explanation, plan) = explain(Q, &parameters, &QueryOptions::default(), &[]);
        assert!(plan.is_some() && explanation.diagnostics.is_empty());
        assert_eq!(
            explanation.tokens.first().map(|(kind, _)| *kind),
            Some("keyword")
        );
        assert!(explanation.tokens.iter().any(|(kind, span)| {
            *kind == "comment"
                && Q.get(span.start..span.end)
                    .is_some_and(|t| t.starts_with("-- why"))
        }));
        let syntax = explanation.syntax.unwrap().outline();
        assert!(
            syntax.contains("SELECT\n    o/data/events/time/value AS t\n    COUNT(*)"),
            "{syntax}"
        );
        assert!(
            syntax.contains(
                "EHR e\n      CONTAINS\n        OBSERVATION o[openEHR-EHR-OBSERVATION.x.v1]"
            ),
            "{syntax}"
        );
        let query = explanation.query.unwrap().outline();
        assert!(
            query.contains("#1 o: OBSERVATION")
                && query.contains("matches one of 2\n        'a'\n        'c'"),
            "{query}"
        );
        let plan = explanation.plan.unwrap().outline();
        assert!(
            plan.contains("documents: COMPOSITION\n")
                && plan.contains("pruned to archetype openEHR-EHR-OBSERVATION.x.v1"),
            "{plan}"
        );
        assert!(
            plan.contains("strategy: by row templates")
                && plan.contains("time\n          value → #0"),
            "{plan}"
        );
    }

    #[test]
    fn documents_that_no_row_needs_are_not_asked_for() {
        let asked = |q: &str| {
            let plan = explain(q, &Parameters::new(), &QueryOptions::default(), &[])
                .0
                .plan
                .unwrap()
                .outline();
            plan.lines()
                .find_map(|line| Some(line.trim().strip_prefix("documents: ")?.to_owned()))
                .unwrap()
        };
        assert_eq!(asked("SELECT e/ehr_id/value FROM EHR e"), "none");
        assert_eq!(
            asked("SELECT e/ehr_status/subject FROM EHR e"),
            "EHR_STATUS"
        );
        assert_eq!(
            asked("SELECT c, d FROM EHR e CONTAINS (COMPOSITION c AND OBSERVATION d)"),
            "COMPOSITION"
        );
        assert_eq!(
            asked("SELECT e/ehr_status, c FROM EHR e CONTAINS COMPOSITION c"),
            "COMPOSITION, EHR_STATUS"
        );
        assert_eq!(
            asked("SELECT e/ehr_id/value FROM EHR e NOT CONTAINS COMPOSITION c"),
            "COMPOSITION"
        );
        assert_eq!(
            asked("SELECT e/directory FROM EHR e"),
            "COMPOSITION, EHR_STATUS, FOLDER"
        );
        assert_eq!(
            asked("SELECT f, c FROM EHR e CONTAINS FOLDER f CONTAINS COMPOSITION c"),
            "COMPOSITION, EHR_STATUS, FOLDER"
        );
    }

    #[test]
    fn a_wrong_query_is_explained_as_far_as_it_goes() {
        let (explanation, plan) = explain(
            "SELECT x FROM EHR e",
            &Parameters::new(),
            &QueryOptions::default(),
            &[],
        );
        assert!(plan.is_none() && explanation.syntax.is_some() && explanation.query.is_none());
        assert_eq!(
            explanation.diagnostics.first().map(|d| d.code),
            Some("AQL0202")
        );
        let (explanation, _) = explain("SELECT", &Parameters::new(), &QueryOptions::default(), &[]);
        assert!(
            explanation.syntax.is_none()
                && !explanation.tokens.is_empty()
                && !explanation.diagnostics.is_empty()
        );
    }
}
