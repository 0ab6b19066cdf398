//! Completion and diagnostics of a text that is being written.

use super::check::{CheckOptions, Parameters, examine};
use super::classes::{Classes, archetype_class};
use super::draft::{Draft, PathEnd};
use super::expected::Expected;
use super::labels::{Label, Labels};
use super::lint::{LintWarning, lint};
use super::parse::{expected_next, parse};
use super::query::{AggregateFunction, CompareOp, Function};
use super::token::{TokenKind, tokens};
use super::vocabulary::{BOOLEANS, Keyword};
use aqlite_rm::class::Cls;
use aqlite_rm::diag::{Diagnostic, Span};
use aqlite_rm::order;
use aqlite_template::Template;

/// A proposal of completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The text that the editor shows.
    pub label: String,
    /// The kind of the proposal.
    pub kind: CompletionKind,
    /// A class, a path or a meaning; may be empty.
    pub detail: String,
    /// The text that the editor inserts.
    pub insert: String,
    /// The range that the insertion replaces, in bytes.
    pub span: Span,
}

/// The kind of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionKind {
    /// A word or sign of the language.
    Keyword,
    /// A class of the Reference Model.
    Class,
    /// A variable of FROM.
    Variable,
    /// A column's alias.
    Alias,
    /// An attribute of the Reference Model.
    Attribute,
    /// A function.
    Function,
    /// A parameter.
    Parameter,
    /// An archetype id.
    Archetype,
    /// A node code.
    Node,
    /// A whole path to data.
    Path,
    /// A literal.
    Literal,
}

impl CompletionKind {
    /// Returns the name in lower case, as the page reads it.
    pub fn name(self) -> &'static str {
        match self {
            CompletionKind::Keyword => "keyword",
            CompletionKind::Class => "class",
            CompletionKind::Variable => "variable",
            CompletionKind::Alias => "alias",
            CompletionKind::Attribute => "attribute",
            CompletionKind::Function => "function",
            CompletionKind::Parameter => "parameter",
            CompletionKind::Archetype => "archetype",
            CompletionKind::Node => "node",
            CompletionKind::Path => "path",
            CompletionKind::Literal => "literal",
        }
    }
}

/// The classes that queries name most. They come before all others.
const USUAL: [Cls; 14] = [
    Cls::EHR,
    Cls::COMPOSITION,
    Cls::OBSERVATION,
    Cls::EVALUATION,
    Cls::INSTRUCTION,
    Cls::ACTION,
    Cls::ADMIN_ENTRY,
    Cls::SECTION,
    Cls::CLUSTER,
    Cls::ELEMENT,
    Cls::EVENT,
    Cls::EHR_STATUS,
    Cls::FOLDER,
    Cls::VERSION,
];

/// Returns the errors and warnings of a text that is being written. Parameters need not be bound.
pub fn diagnose(text: &str) -> Vec<Diagnostic> {
    diagnose_with(text, &[]).all()
}

/// The problems of a text that is being written.
#[derive(Debug, Default)]
pub struct Diagnosis {
    /// The errors and warnings of parser and checker.
    pub diagnostics: Vec<Diagnostic>,
    /// The warnings of lint, which data may refute.
    pub lint: Vec<LintWarning>,
}

impl Diagnosis {
    /// Returns all problems in the order of the text, as if no data refuted a warning.
    pub fn all(self) -> Vec<Diagnostic> {
        let mut all = self.diagnostics;
        all.extend(self.lint.into_iter().map(|warning| warning.diagnostic));
        order::sort_by_key(&mut all, |d| d.span.start);
        all
    }
}

/// Returns the problems of a text that is being written. It is compared with templates.
pub fn diagnose_with(text: &str, templates: &[&Template]) -> Diagnosis {
    let (query, mut diagnostics) = parse(text);
    let mut warnings = Vec::new();
    if let Some(query) = query {
        let options = CheckOptions {
            draft: true,
            ..CheckOptions::default()
        };
        let (checked, found) = examine(&query, &Parameters::new(), &options);
        diagnostics.extend(found);
        // Lint assumes that each name is known.
        if checked.is_some() {
            warnings = lint(text, &query, &Parameters::new(), templates);
        }
    }
    Diagnosis {
        diagnostics,
        lint: warnings,
    }
}

/// Returns the completions at an offset in bytes, the most likely first.
pub fn complete(text: &str, offset: usize, labels: &dyn Labels) -> Vec<Completion> {
    let offset = character_start(text, offset);
    if let Some(open) = values::open_text(text, offset) {
        // A text is completed in its quotes, by values of the compared path only.
        let typed = text.get(open.start + 1..offset).unwrap_or_default();
        let mut collector = Collector::new(text, open, typed, labels);
        collector.values();
        return collector.sorted();
    }
    let (before, after) = text.split_at(offset);
    if is_in_silent_token(text, offset) {
        return Vec::new();
    }
    let start = word_start(before);
    let (before, prefix) = before.split_at(start);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = offset + after.find(|c| !is_word(c)).unwrap_or(after.len());
    let mut collector = Collector::new(text, Span::new(start, end), prefix, labels);
    for expected in expected_next(before) {
        collector.offer(expected);
    }
    collector.sorted()
}

/// Returns the start of the character at an offset.
///
/// The offset of an editor may be inside a character, or behind the end of a text that has changed.
fn character_start(text: &str, offset: usize) -> usize {
    let mut offsets = (0..=offset.min(text.len())).rev();
    // 0 is always the start of a character.
    offsets
        .find(|o| text.is_char_boundary(*o))
        .unwrap_or_default()
}

/// Returns whether an offset is inside a string or a comment, which have no completions.
fn is_in_silent_token(text: &str, offset: usize) -> bool {
    let (tokens, _) = tokens(text);
    let mut silent = tokens.iter().filter(|t| is_silent(t.kind));
    silent.any(|t| t.span.start < offset && offset < t.span.end)
}

/// Returns whether tokens of a kind have no completions inside: strings and comments.
fn is_silent(kind: TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Text | TokenKind::Comment | TokenKind::Regex
    )
}

/// Returns the start of the word under the cursor. In brackets the word may be an archetype id with
/// dots and dashes.
fn word_start(before: &str) -> usize {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let long = before
        .trim_end_matches(|c: char| plain(c) || "-.:".contains(c))
        .len();
    if before
        .get(..long)
        .is_some_and(|head| head.trim_end().ends_with('['))
    {
        long
    } else {
        before.trim_end_matches(plain).len()
    }
}

/// The completions of one position, as they are collected.
struct Collector<'a> {
    whole: Draft<'a>,
    /// The text before the word under the cursor, with the variables of the whole text.
    before: Draft<'a>,
    labels: &'a dyn Labels,
    span: Span,
    /// The word under the cursor, in lower case.
    prefix: String,
    out: Vec<Completion>,
}

impl<'a> Collector<'a> {
    /// Begins the completions that replace `span`, in which `prefix` is written up to the cursor.
    fn new(text: &'a str, span: Span, prefix: &str, labels: &'a dyn Labels) -> Collector<'a> {
        let whole = Draft::new(text);
        let mut before = Draft::new(text.get(..span.start).unwrap_or_default());
        // SELECT precedes FROM, so the variables are declared behind the cursor.
        before.variables.clone_from(&whole.variables);
        Collector {
            whole,
            before,
            labels,
            span,
            prefix: prefix.to_lowercase(),
            out: Vec::new(),
        }
    }

    /// Returns the completions, the most likely first.
    fn sorted(self) -> Vec<Completion> {
        let Collector {
            prefix, mut out, ..
        } = self;
        // The sort is stable: below the labels that begin with the prefix, the order of the grammar
        // remains.
        order::sort_by_key(&mut out, |c| !c.label.to_lowercase().starts_with(&prefix));
        out
    }
}

impl Collector<'_> {
    fn push(&mut self, kind: CompletionKind, label: &str, insert: &str, detail: &str) {
        // Any part of a label may match, so that `press` finds `Blood pressure`.
        let fits = |text: &str| text.to_lowercase().contains(&self.prefix);
        let new = Completion {
            label: label.to_owned(),
            kind,
            detail: detail.to_owned(),
            insert: insert.to_owned(),
            span: self.span,
        };
        if (fits(label) || fits(insert)) && !self.out.contains(&new) {
            self.out.push(new);
        }
    }

    /// Offers the texts of one alternative of the grammar.
    fn offer(&mut self, expected: Expected) {
        match expected {
            Expected::Column => {
                self.variables();
                self.labelled_paths();
                self.aggregates();
                self.functions();
            }
            Expected::Path => {
                self.variables();
                self.labelled_paths();
            }
            Expected::PathOrFunction | Expected::Function => {
                self.variables();
                self.labelled_paths();
                self.functions();
            }
            Expected::Value | Expected::Argument => {
                self.values();
                self.variables();
                self.parameters();
                self.functions();
                self.literals();
            }
            Expected::Literal => {
                self.values();
                self.literals();
            }
            Expected::Text => self.values(),
            Expected::Parameter => self.parameters(),
            Expected::Alias => self.aliases(),
            Expected::ClassName => {
                self.classes();
                self.archetyped_classes();
            }
            Expected::Attribute => self.attributes(),
            Expected::Predicate => self.predicates(),
            Expected::NodeName => self.node_names(),
            Expected::Comparison => self.comparisons(),
            Expected::Clause(clause) => self.word(clause.title(), clause.keyword()),
            Expected::Word(word) => self.word(word.text(), word),
            Expected::NotContains => {
                self.word("NOT CONTAINS", Keyword::Not);
            }
            // The author invents these texts, or they are a single sign.
            Expected::Sign(_)
            | Expected::End
            | Expected::Name
            | Expected::Variable
            | Expected::WholeNumber
            | Expected::Number
            | Expected::Operation
            | Expected::Service
            | Expected::ServiceParameters
            | Expected::Uri
            | Expected::Regex => {}
        }
    }

    fn word(&mut self, text: &str, word: Keyword) {
        self.push(CompletionKind::Keyword, text, text, word.entry().meaning);
    }

    fn comparisons(&mut self) {
        for operator in CompareOp::ALL {
            let text = operator.text();
            self.push(CompletionKind::Keyword, text, text, "");
        }
    }

    fn aggregates(&mut self) {
        for entry in AggregateFunction::ALL.iter().map(|f| f.entry()) {
            let insert = format!("{}(", entry.name);
            self.push(CompletionKind::Function, entry.name, &insert, entry.meaning);
        }
    }

    fn variables(&mut self) {
        for variable in self.whole.variables.clone() {
            let detail = variable.archetype.as_deref().map_or_else(
                || variable.class.name().to_owned(),
                |a| format!("{} {a}", variable.class),
            );
            self.push(
                CompletionKind::Variable,
                &variable.name,
                &variable.name,
                &detail,
            );
        }
    }

    /// Offers the paths to data below the archetypes of FROM, by their clinical names.
    fn labelled_paths(&mut self) {
        for variable in self.whole.variables.clone() {
            for label in variable
                .archetype
                .iter()
                .flat_map(|a| self.labels.paths(a, &[]))
                .collect::<Vec<_>>()
            {
                let path = format!("{}/{}", variable.name, label.id);
                self.push(CompletionKind::Path, &label.text, &path, &path);
            }
        }
    }

    fn functions(&mut self) {
        for entry in Function::ALL.iter().map(|f| f.entry()) {
            let close = if entry.parameters.is_empty() { ")" } else { "" };
            let insert = format!("{}({close}", entry.name);
            let detail = format!("{}: {}", entry.arguments(), entry.meaning);
            self.push(CompletionKind::Function, entry.name, &insert, &detail);
        }
    }

    /// Offers the parameters that the text uses elsewhere.
    fn parameters(&mut self) {
        let own = self.span;
        let others = self
            .whole
            .tokens
            .iter()
            .enumerate()
            .filter(|(_, t)| t.kind == TokenKind::Parameter && t.span.start != own.start);
        for index in others.map(|(i, _)| i).collect::<Vec<_>>() {
            let word = self.whole.word(index);
            self.push(CompletionKind::Parameter, word, word, "");
        }
    }

    fn literals(&mut self) {
        for word in [Keyword::Null.text()].into_iter().chain(BOOLEANS) {
            self.push(CompletionKind::Literal, word, word, "");
        }
    }

    fn aliases(&mut self) {
        // The text up to ORDER BY is complete, even if the key is not.
        let (Some(query), _) = parse(self.before.before_order()) else {
            return;
        };
        for alias in query.select.columns.iter().filter_map(|c| c.alias.as_ref()) {
            self.push(CompletionKind::Alias, &alias.text, &alias.text, "");
        }
    }

    fn classes(&mut self) {
        for class in USUAL
            .into_iter()
            .chain(Cls::all().filter(|c| !c.is_primitive()))
        {
            let detail = if class.parent() == Cls::ANY {
                ""
            } else {
                class.parent().name()
            };
            self.push(CompletionKind::Class, class.name(), class.name(), detail);
        }
    }

    /// Offers whole class expressions by the names of their archetypes.
    fn archetyped_classes(&mut self) {
        for label in self.labels.archetypes(Cls::LOCATABLE) {
            let Some(class) = archetype_class(&label.id) else {
                continue;
            };
            let variable = self.free_variable(class);
            let insert = format!("{class} {variable}[{}]", label.id);
            let shown = if label.text.is_empty() {
                &label.id
            } else {
                &label.text
            };
            self.push(CompletionKind::Archetype, shown, &insert, &label.id);
        }
    }

    /// Returns a name that no variable has: `o`, `o2`, `o3` for an OBSERVATION.
    fn free_variable(&self, class: Cls) -> String {
        let first = class.name().get(..1).unwrap_or("v").to_lowercase();
        let numbered = (2..).map(|number: usize| format!("{first}{number}"));
        let mut names = std::iter::once(first.clone()).chain(numbered);
        names
            .find(|name| self.whole.variable(name).is_none())
            .unwrap_or(first)
    }

    fn attributes(&mut self) {
        let Some(end) = self.before.owner(self.before.tokens.len()) else {
            return;
        };
        if let Some(archetype) = &end.archetype {
            for label in self.labels.paths(archetype, &end.steps) {
                self.push(CompletionKind::Path, &label.text, &label.id, &label.id);
            }
        }
        self.attributes_of(&end.classes);
    }

    fn attributes_of(&mut self, classes: &Classes) {
        for attr in classes.attributes() {
            let detail = classes.step(attr).map(|c| c.describe()).unwrap_or_default();
            self.push(CompletionKind::Attribute, attr.name(), attr.name(), &detail);
        }
    }

    fn predicates(&mut self) {
        let here = self.before.tokens.len();
        let Some(open) = self.before.open_bracket(here) else {
            return;
        };
        let Some(end) = self.before.path_end_before(open) else {
            return;
        };
        for label in self.nodes(&end) {
            let (kind, shown) = match archetype_class(&label.id) {
                Some(_) => (CompletionKind::Archetype, label.id.clone()),
                None => (CompletionKind::Node, format!("{} {}", label.id, label.text)),
            };
            let detail = if kind == CompletionKind::Archetype {
                label.text
            } else {
                label.detail
            };
            self.push(kind, &shown, &label.id, &detail);
        }
        self.parameters();
        self.attributes_of(&end.classes);
    }

    /// Returns the nodes that templates have at the end of a path, otherwise every archetype on its
    /// classes.
    fn nodes(&self, end: &PathEnd) -> Vec<Label> {
        let known = match &end.archetype {
            Some(archetype) if !end.steps.is_empty() => self.labels.nodes(archetype, &end.steps),
            _ => Vec::new(),
        };
        if !known.is_empty() {
            return known;
        }
        end.classes
            .declared()
            .iter()
            .flat_map(|class| self.labels.archetypes(*class))
            .collect()
    }

    fn node_names(&mut self) {
        let here = self.before.tokens.len();
        let Some((open, end)) = self
            .before
            .open_bracket(here)
            .and_then(|open| Some((open, self.before.path_end_before(open)?)))
        else {
            return;
        };
        let id = self.before.word(open + 1);
        for label in self
            .nodes(&end)
            .into_iter()
            .filter(|l| l.id == id && !l.text.is_empty())
        {
            let quoted = format!(
                "'{}'",
                label.text.replace('\\', "\\\\").replace('\'', "\\'")
            );
            self.push(CompletionKind::Literal, &quoted, &quoted, &label.detail);
        }
        self.parameters();
    }
}

mod values;

#[cfg(test)]
mod tests;
