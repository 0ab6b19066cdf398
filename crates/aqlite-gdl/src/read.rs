//! From the tree of a guide file to the model. Names of GDL1 and of GDL2 are accepted in both
//! syntaxes.

use super::cards::INDICATORS;
use super::expr::parse;
use super::guide::{
    Binding, Card, Condition, Details, Direction, Element, Guide, InternalVariable, Link,
    MAX_BYTES, MAX_PROBLEMS, Reference, Rule, Step, SuggestedAction, Suggestion, Template, Term,
    TermBinding, TermDefinition, shown,
};
use super::item::{Item, Kind};
use super::names::{self, Object, misspelt_members};
use super::{gdl1, gdl2, odin};
use aqlite_rm::diag::{Diagnostic, Severity, Span};
use aqlite_rm::json;
use aqlite_rm::path::has_path_form;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;

/// Parses a guide in either language and syntax (see [`super::parse`]).
pub(crate) fn parse(text: &str) -> Result<Guide, Vec<Diagnostic>> {
    let root = tree(text).map_err(|d| vec![d])?;
    let mut reader = GuideReader {
        source: text,
        references: Vec::new(),
        resolved: Cell::new(0),
        unknown: 0,
        expressions: 0,
        problems: Vec::new(),
    };
    let guide = reader.guide(&root);
    if let Some((message, remedy)) = reader.excess() {
        let problem = Diagnostic::error("GDL0604", Span::default(), message);
        return Err(vec![problem.with_help(remedy)]);
    }
    match guide {
        Some(mut guide) => {
            guide.problems = reader.problems;
            Ok(guide)
        }
        None => Err(reader.problems),
    }
}

/// Parses a guide file to a tree, from JSON or ODIN.
pub(crate) fn tree(text: &str) -> Result<Item, Diagnostic> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let base = text.len() - body.len();
    let is_json = body.trim_start().starts_with(['{', '[']);
    if is_json {
        let item = gdl2::read(body, base)?;
        item.check_members().map(|()| item)
    } else {
        odin::read(body, base)
    }
}

/// The maximum number of members that a guide has beside the known ones. Each is compared with all
/// known names, so it costs much more than its bytes.
const MAX_UNKNOWN: usize = 10_000;

/// The maximum bytes of all expressions of a guide, without the texts in quotes. Compiled, each byte
/// takes some hundred bytes of memory. The longest published guide has 25,000.
const MAX_EXPRESSIONS: usize = 200_000;

struct GuideReader<'a> {
    source: &'a str,
    references: Vec<Reference>,
    /// The bytes of references in cards so far. Each card may name one of megabytes, so the sum is
    /// limited.
    resolved: Cell<usize>,
    /// The members so far that are compared with the known names.
    unknown: usize,
    /// The bytes of the expressions so far.
    expressions: usize,
    problems: Vec<Diagnostic>,
}

impl GuideReader<'_> {
    fn guide(&mut self, root: &Item) -> Option<Guide> {
        let id = self.guide_id(root);
        let definition = self.definition(root)?;
        self.check_members(root, Object::Guide);
        self.check_members(definition, Object::Definition);
        let description = root.get("description");
        self.references = description.map(references).unwrap_or_default();
        let ontology = root.any_of(&["ontology", "terminology"]);
        let language = root
            .get("language")
            .and_then(|l| l.text_of("original_language"))
            .unwrap_or("en");
        let bindings = definition.any_of(&["data_bindings", "archetype_bindings"]);
        let list = |name: &str| definition.get(name).map(Item::elements).unwrap_or_default();
        Some(Guide {
            id,
            gdl_version: root.text_of("gdl_version").unwrap_or("2.0").to_owned(),
            concept: root.text_of("concept").unwrap_or_default().to_owned(),
            original_language: language.rsplit("::").next().unwrap_or(language).to_owned(),
            details: keyed(description.and_then(|d| d.get("details")))
                .map(|(language, item)| details(&language, item))
                .collect(),
            bindings: keyed(bindings)
                .map(|(key, item)| self.binding(&key, item))
                .collect(),
            internal_variables: list("internal_variables")
                .iter()
                .map(internal_variable)
                .collect(),
            templates: keyed(definition.get("templates"))
                .map(|(key, item)| template(&key, item))
                .collect(),
            pre_conditions: list("pre_conditions")
                .iter()
                .map(|i| self.condition(i))
                .collect(),
            default_actions: list("default_actions")
                .iter()
                .map(|i| self.step(i))
                .collect(),
            rules: keyed(definition.get("rules"))
                .map(|(key, item)| self.rule(&key, item))
                .collect(),
            terms: keyed(ontology.and_then(|o| o.get("term_definitions")))
                .map(|(key, item)| term_definition(&key, item))
                .collect(),
            term_bindings: keyed(ontology.and_then(|o| o.get("term_bindings")))
                .map(|(key, item)| term_binding(&key, item))
                .collect(),
            references: std::mem::take(&mut self.references),
            problems: Vec::new(),
        })
    }

    /// Returns the limit that the guide exceeds, and the remedy.
    fn excess(&self) -> Option<(String, &'static str)> {
        if self.unknown > MAX_UNKNOWN {
            let message = format!("the guide has more than {MAX_UNKNOWN} unknown members");
            return Some((message, "leave them out"));
        }
        let (part, most, remedy) = if self.expressions > MAX_EXPRESSIONS {
            let remedy = "divide the guide into several, which run as a chain";
            ("expressions without their texts", MAX_EXPRESSIONS, remedy)
        } else if self.resolved.get() > MAX_BYTES {
            let remedy = "shorten the labels and addresses of the description's references";
            ("references of the cards", MAX_BYTES, remedy)
        } else {
            return None;
        };
        let message = format!("the {part} are longer than {most} bytes in all");
        Some((message, remedy))
    }

    fn check_members(&mut self, item: &Item, object: Object) {
        let left = MAX_UNKNOWN.saturating_sub(self.unknown);
        let (unknown, problems) = misspelt_members(item, object, left);
        self.unknown += unknown;
        problems.into_iter().for_each(|p| self.add_problem(p));
    }

    fn guide_id(&mut self, root: &Item) -> String {
        let id = root.text_of("id").unwrap_or_default();
        if id.is_empty() {
            self.add_problem(
                Diagnostic::error("GDL0304", root.span, "the guide has no `id`")
                    .with_help("add `id`: guides are stored and called by it"),
            );
        }
        id.to_owned()
    }

    fn definition<'i>(&mut self, root: &'i Item) -> Option<&'i Item> {
        // ODIN writes an empty definition as null.
        let definition = root
            .members()
            .iter()
            .find(|(name, _)| name == "definition")
            .map(|(_, item)| item);
        if definition.is_none() {
            self.add_problem(
                Diagnostic::error("GDL0104", root.span, "not a guide: `definition` is missing")
                    .with_help("a guide has `id`, `definition` and `ontology`; a resource or a template is not a guide"),
            );
        }
        definition
    }

    fn binding(&mut self, key: &str, item: &Item) -> Binding {
        let model_id = item.any_of(&["model_id", "archetype_id"]);
        let model_id = model_id.and_then(Item::text).unwrap_or_default();
        if model_id.is_empty() {
            let message = format!("binding `{key}` names no model");
            let problem = Diagnostic::error("GDL0301", item.span, message);
            let help = "add `model_id`: an archetype id or a FHIR class";
            self.add_problem(problem.with_help(help));
        }
        if !names::is_model_id(model_id) {
            let message = format!("`{}` is no archetype id", model_id.escape_debug());
            let problem = Diagnostic::error("GDL0305", item.span, message);
            let help = "write an id such as `openEHR-EHR-OBSERVATION.body_weight.v2`";
            self.add_problem(problem.with_help(help));
        }
        self.check_members(item, Object::Binding);
        let direction = item.any_of(&["type", "domain"]).and_then(Item::text);
        let predicates = item.get("predicates").map(Item::elements);
        let predicates = predicates.unwrap_or_default().iter();
        let mut predicates: Vec<Condition> = predicates.map(|i| self.condition(i)).collect();
        let function = item.text_of("function");
        predicates
            .extend(function.and_then(|f| gdl1::predicate_of_function(f, model_id, item.span)));
        let template_id = item.text_of("template_id").filter(|t| !t.is_empty());
        Binding {
            id: key.to_owned(),
            template_id: template_id.map(str::to_owned),
            direction: self.direction(direction, item.span),
            elements: keyed(item.get("elements"))
                .map(|(key, e)| self.element(&key, e))
                .collect(),
            predicates,
            model_id: model_id.to_owned(),
            span: item.span,
        }
    }

    fn direction(&mut self, text: Option<&str>, span: Span) -> Direction {
        match text.map(str::to_ascii_uppercase).as_deref() {
            None | Some("" | "ANY") => Direction::Any,
            Some("INPUT" | "EHR") => Direction::Input,
            Some("OUTPUT" | "CDS") => Direction::Output,
            Some(other) => {
                let message = format!("`{other}` is no type of binding");
                self.add_problem(
                    Diagnostic::warning("GDL0302", span, message)
                        .with_help("write INPUT or OUTPUT"),
                );
                Direction::Any
            }
        }
    }

    fn element(&mut self, key: &str, item: &Item) -> Element {
        let path = item.text_of("path").unwrap_or_default();
        if path.is_empty() {
            self.add_problem(
                Diagnostic::error(
                    "GDL0303",
                    item.span,
                    format!("variable `{key}` has no path"),
                )
                .with_help("add `path`"),
            );
        }
        let is_path = path.is_empty() || has_path_form(path.trim());
        if !is_path {
            let message = format!("the path of variable `{key}` is invalid");
            let help =
                "write a path such as `/data[at0001]/items[at0002]`; the variable has no value";
            self.add_problem(Diagnostic::error("GDL0306", item.span, message).with_help(help));
        }
        Element {
            id: item.text_of("id").unwrap_or(key).to_owned(),
            // An invalid path must not become a part of a query.
            path: if is_path {
                path.to_owned()
            } else {
                String::new()
            },
            data_type: item.text_of("data_type").map(str::to_owned),
            units: texts(item, "units"),
            allowed_values: texts(item, "allowed_values"),
            span: item.span,
        }
    }

    fn rule(&mut self, key: &str, item: &Item) -> Rule {
        let list = |name: &str| item.get(name).map(Item::elements).unwrap_or_default();
        self.check_members(item, Object::Rule);
        let written = item.text_of("priority");
        let priority = written.map(str::parse);
        if matches!(priority, Some(Err(_))) {
            let message =
                format!("the priority of rule `{key}` is no whole number, and counts as 0");
            let problem = Diagnostic::error("GDL0308", item.span, message);
            self.add_problem(problem.with_help("write a whole number; the highest runs first"));
        }
        Rule {
            id: item.text_of("id").unwrap_or(key).to_owned(),
            priority: priority.and_then(Result::ok).unwrap_or_default(),
            when: list("when").iter().map(|i| self.condition(i)).collect(),
            then: list("then").iter().map(|i| self.step(i)).collect(),
            cards: list("cards").iter().map(|i| self.card(i)).collect(),
            span: item.span,
        }
    }

    fn condition(&mut self, item: &Item) -> Condition {
        let text = item.text().unwrap_or_default();
        let expr = self.parsed(item, text, parse::condition);
        Condition {
            text: text.to_owned(),
            span: item.span,
            expr,
        }
    }

    fn step(&mut self, item: &Item) -> Step {
        let text = item.text().unwrap_or_default();
        let action = self.parsed(item, text, parse::action);
        Step {
            text: text.to_owned(),
            span: item.span,
            action,
        }
    }

    /// Parses an expression; `None` with a problem if it is malformed, and beyond
    /// [`MAX_EXPRESSIONS`].
    fn parsed<T>(
        &mut self,
        item: &Item,
        text: &str,
        parse: fn(&str) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        // A text in quotes takes its own bytes only, and counts two.
        let outside = text.split('\'').step_by(2).map(|part| part.len() + 2);
        self.expressions = self.expressions.saturating_add(outside.sum());
        if self.expressions > MAX_EXPRESSIONS {
            return None;
        }
        parse(text).map_err(|d| self.report(item, text, d)).ok()
    }

    fn add_problem(&mut self, problem: Diagnostic) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Moves the position of a problem from the expression to the file, and records the problem.
    fn report(&mut self, item: &Item, text: &str, mut problem: Diagnostic) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let inner = Span::new(item.span.start + 1, item.span.end.saturating_sub(1));
        let as_written = self.source.get(inner.start..inner.end) == Some(text);
        let (start, end) = (problem.span.start, problem.span.end);
        let span = match as_written {
            true => Span::new(inner.start + start, inner.start + end),
            false => item.span,
        };
        problem.severity = Severity::Error;
        problem.span = span;
        problem.message = format!("{} in `{text}`", problem.message);
        problem.help.get_or_insert_with(|| {
            "the statement is left out: a condition is never true, an action does nothing"
                .to_owned()
        });
        self.add_problem(problem);
    }

    fn card(&mut self, item: &Item) -> Card {
        self.check_card(item);
        Card {
            summary: item.text_of("summary").unwrap_or_default().to_owned(),
            detail: item.text_of("detail").map(str::to_owned),
            indicator: item.text_of("indicator").unwrap_or("info").to_owned(),
            source: item.get("source").map(|s| self.link(s)),
            links: listed_in(item, "links")
                .iter()
                .map(|l| self.link(l))
                .collect(),
            suggestions: listed_in(item, "suggestions")
                .iter()
                .map(|s| self.suggestion(s))
                .collect(),
        }
    }

    /// Checks the members of a card that CDS Hooks 2.0 requires, and those with listed values.
    fn check_card(&mut self, item: &Item) {
        self.required(item, "a card", "summary");
        self.one_of(item, "indicator", &INDICATORS);
        for link in listed_in(item, "links") {
            self.required(link, "a link", "label");
            self.required(link, "a link", "url");
            self.one_of(link, "type", &["absolute", "smart", "app"]);
        }
        for suggestion in listed_in(item, "suggestions") {
            self.required(suggestion, "a suggestion", "label");
            for action in listed_in(suggestion, "actions") {
                self.required(action, "a suggested action", "description");
                if action.get("resource_template").is_none() {
                    self.missing(action, "a suggested action", "resource_template");
                }
                self.one_of(action, "type", &["create", "update", "delete"]);
            }
        }
    }

    /// Reports a member that is missing. A reference of the guide may take its place.
    fn required(&mut self, item: &Item, what: &str, name: &str) {
        let reference = format!("{name}_reference");
        let given = item.text_of(name).or_else(|| item.text_of(&reference));
        if given.is_none_or(str::is_empty) {
            self.missing(item, what, name);
        }
    }

    fn missing(&mut self, item: &Item, what: &str, name: &str) {
        let message = format!("{what} has no `{name}`");
        let help = format!("add `{name}`: CDS Hooks requires it");
        self.add_problem(Diagnostic::warning("GDL0317", item.span, message).with_help(help));
    }

    /// Reports a member whose text is none of these.
    fn one_of(&mut self, item: &Item, name: &str, values: &[&str]) {
        let Some(found) = item.get(name) else { return };
        let text = found.text().unwrap_or_default();
        if !values.contains(&text) {
            let message = format!("`{}` is no {name} of CDS Hooks", shown(text));
            let help = format!("write one of {}", values.join(", "));
            self.add_problem(Diagnostic::warning("GDL0318", found.span, message).with_help(help));
        }
    }

    fn link(&mut self, item: &Item) -> Link {
        let reference = |name: &str| {
            let text = resolve_reference(item.text_of(name)?, &self.references)?;
            self.resolved
                .set(self.resolved.get().saturating_add(text.len()));
            // Beyond the limit the guide is refused.
            (self.resolved.get() <= MAX_BYTES).then(|| text.to_owned())
        };
        let own = |name: &str| {
            item.text_of(name)
                .filter(|t| !t.is_empty())
                .map(str::to_owned)
        };
        let label = reference("label_reference").or_else(|| own("label"));
        let url = reference("url_reference").or_else(|| own("url"));
        let icon = own("icon");
        Link {
            label: label.unwrap_or_default(),
            url: url.filter(|url| self.is_web_address(item, url)),
            icon: icon.filter(|icon| self.is_web_address(item, icon)),
            kind: own("type"),
        }
    }

    /// Returns whether an address is one of the web without placeholders, and reports any other:
    /// clients open addresses of cards, and those of other schemes can contain scripts. A value in an
    /// address would send data of the patient to its server.
    fn is_web_address(&mut self, item: &Item, address: &str) -> bool {
        let begins_with = |scheme: &str| {
            let start = address.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        let is_web = begins_with("https://") || begins_with("http://");
        let is_web = is_web && !address.contains("{$");
        if !is_web {
            let message = format!("`{}` is no address of the web", shown(address));
            let help = "begin it with `https://`, and write no placeholders: a card has no other addresses";
            self.add_problem(Diagnostic::warning("GDL0319", item.span, message).with_help(help));
        }
        is_web
    }

    fn suggestion(&mut self, item: &Item) -> Suggestion {
        let actions = listed_in(item, "actions");
        Suggestion {
            uuid: item.text_of("uuid").map(str::to_owned),
            label: item.text_of("label").unwrap_or_default().to_owned(),
            actions: actions.iter().map(|a| self.suggested_action(a)).collect(),
        }
    }

    fn suggested_action(&mut self, item: &Item) -> SuggestedAction {
        let template = item.get("resource_template").map(|t| {
            let steps = listed_in(t, "assignments")
                .iter()
                .map(|s| self.step(s))
                .collect();
            (
                t.text_of("template_id").unwrap_or_default().to_owned(),
                steps,
            )
        });
        SuggestedAction {
            kind: item.text_of("type").unwrap_or("create").to_owned(),
            description: item.text_of("description").unwrap_or_default().to_owned(),
            template,
        }
    }
}

/// Returns the elements of a member; none if there is no such member.
fn listed_in<'i>(item: &'i Item, name: &str) -> &'i [Item] {
    item.get(name).map_or(&[], Item::elements)
}

/// Returns the members of a map with their keys. Elements of a list have their ids as keys, or else
/// their numbers from 1.
fn keyed(item: Option<&Item>) -> impl Iterator<Item = (Cow<'_, str>, &Item)> {
    let members = item.map(Item::members).unwrap_or_default();
    let elements = match item.map(|i| &i.kind) {
        Some(Kind::List(items)) => items.as_slice(),
        _ => &[],
    };
    let number = |i: usize| Cow::Owned((i + 1).to_string());
    let listed = elements.iter().enumerate().map(move |(i, item)| {
        (
            item.text_of("id").map_or_else(|| number(i), Cow::Borrowed),
            item,
        )
    });
    members
        .iter()
        .map(|(key, item)| (Cow::Borrowed(key.as_str()), item))
        .chain(listed)
}

/// Returns the texts of a list.
fn texts(item: &Item, name: &str) -> Vec<String> {
    let list = item.get(name).map(Item::elements).unwrap_or_default();
    list.iter()
        .filter_map(Item::text)
        .map(str::to_owned)
        .collect()
}

fn details(language: &str, item: &Item) -> Details {
    let text = |name: &str| item.text_of(name).unwrap_or_default().to_owned();
    Details {
        language: language.to_owned(),
        purpose: text("purpose"),
        use_of: text("use"),
        misuse: text("misuse"),
    }
}

fn references(description: &Item) -> Vec<Reference> {
    let text = |item: &Item, name: &str| item.text_of(name).unwrap_or_default().to_owned();
    let list = description
        .get("references")
        .map(Item::elements)
        .unwrap_or_default();
    list.iter()
        .map(|r| Reference {
            label: text(r, "label"),
            url: text(r, "url"),
        })
        .collect()
}

/// Resolves `$ref[1].label` or `$ref[1].url` to its text.
fn resolve_reference<'r>(text: &str, references: &'r [Reference]) -> Option<&'r str> {
    let (index, attribute) = text.strip_prefix("$ref[")?.split_once("].")?;
    let reference = references.get(index.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some(if attribute == "url" {
        &reference.url
    } else {
        &reference.label
    })
}

fn internal_variable(item: &Item) -> InternalVariable {
    let text = |name: &str| item.text_of(name).unwrap_or_default().to_owned();
    InternalVariable {
        id: text("id"),
        data_type: text("data_type"),
    }
}

fn template(key: &str, item: &Item) -> Template {
    let object = item.get("object").map(Item::to_json).unwrap_or_default();
    Template {
        id: item.text_of("id").unwrap_or(key).to_owned(),
        name: item.text_of("name").map(str::to_owned),
        model_id: item.text_of("model_id").unwrap_or_default().to_owned(),
        template_id: item.text_of("template_id").map(str::to_owned),
        object: match &object {
            // Some files contain the resource as JSON in a text.
            serde_json::Value::String(text) => json::value(text).unwrap_or(object),
            _ => object,
        },
    }
}

/// Reads the terms of a language: under `terms`, as in published files, or directly, as in the
/// specification.
fn term_definition(key: &str, item: &Item) -> TermDefinition {
    let terms = keyed(item.get("terms").or(Some(item))).filter(|(_, t)| t.get("text").is_some());
    let term = |(key, item): (Cow<'_, str>, &Item)| Term {
        id: item.text_of("id").unwrap_or(&key).to_owned(),
        text: item.text_of("text").unwrap_or_default().to_owned(),
        description: item.text_of("description").unwrap_or_default().to_owned(),
    };
    let mut terms: Vec<Term> = terms.map(term).collect();
    // Keys of ODIN may be repeated. The first text of a code is shown.
    let mut codes = HashSet::new();
    terms.retain(|term| codes.insert(term.id.clone()));
    TermDefinition {
        language: key.to_owned(),
        terms,
    }
}

fn term_binding(key: &str, item: &Item) -> TermBinding {
    let mut binding = TermBinding {
        terminology: key.to_owned(),
        codes: Vec::new(),
        sets: Vec::new(),
    };
    let entries = keyed(item.get("bindings").or(Some(item)));
    for (key, item) in entries.filter(|(_, b)| b.get("codes").is_some()) {
        let term = item.text_of("id").unwrap_or(&key).to_owned();
        let set = item.text_of("uri").map(str::trim);
        let set = set.filter(|uri| !uri.is_empty());
        let sets = set.map(|set| (term.clone(), set.to_owned()));
        binding.sets.extend(sets);
        binding.codes.push((term, bound_codes(item)));
    }
    binding
}

/// Returns the codes of a term binding without their terminologies.
fn bound_codes(item: &Item) -> Vec<String> {
    let codes = item.get("codes").map(Item::elements).unwrap_or_default();
    let texts = codes.iter().filter_map(Item::text);
    let code = |text: &str| text.rsplit("::").next().unwrap_or(text).trim().to_owned();
    // Every code begins with an empty one.
    texts.map(code).filter(|code| !code.is_empty()).collect()
}
