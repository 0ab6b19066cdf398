//! The model of a guide, one for GDL1 and GDL2 in either syntax.
//!
//! Expressions are parsed with the guide. An expression that cannot be parsed becomes an entry of
//! [`Guide::problems`]; a condition is then never true, and an action has no effect. The rest of
//! the guide works, because published guides have such statements.

use super::budget::FRAME;
use super::expr::ast::{Action, Expr};
use super::value::Value;
use aqlite_rm::diag::{Diagnostic, Span};
use std::collections::HashMap;

/// A guideline as read from its file.
#[derive(Clone, Debug)]
pub struct Guide {
    /// The id, such as `BMI_Calculation.v1`.
    pub id: String,
    /// The language version it was written for: `0.1` for GDL1, `2.0` for GDL2.
    pub gdl_version: String,
    /// The code of the term that names the guide.
    pub concept: String,
    /// The language of the author, such as `en`.
    pub original_language: String,
    /// Purpose, use and misuse by language.
    pub details: Vec<Details>,
    /// References of the description, addressed as `$ref[1]`.
    pub references: Vec<Reference>,
    /// Data bindings in file order.
    pub bindings: Vec<Binding>,
    /// Variables that are neither read from records nor written to them.
    pub internal_variables: Vec<InternalVariable>,
    /// Templates of resources.
    pub templates: Vec<Template>,
    pub(crate) pre_conditions: Vec<Condition>,
    pub(crate) default_actions: Vec<Step>,
    pub(crate) rules: Vec<Rule>,
    /// Terms by language.
    pub terms: Vec<TermDefinition>,
    /// Bindings of guide terms to codes of terminologies.
    pub term_bindings: Vec<TermBinding>,
    /// Problems of a guide that can be loaded in spite of them. Positions count bytes of the file.
    pub problems: Vec<Diagnostic>,
}

/// Whether a binding is read, written or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Read from the record: `INPUT`, GDL1 `EHR`.
    Input,
    /// Computed: `OUTPUT`, GDL1 `CDS`.
    Output,
    /// Both: no type given.
    Any,
}

/// A model whose data the guide reads or makes.
#[derive(Clone, Debug)]
pub struct Binding {
    /// Its gt-code, or its number in old guides.
    pub id: String,
    /// The archetype id, or the class of a FHIR resource.
    pub model_id: String,
    /// The template of the data, if the guide names one.
    pub template_id: Option<String>,
    /// Read, written or both.
    pub direction: Direction,
    /// The variables, in file order.
    pub elements: Vec<Element>,
    pub(crate) predicates: Vec<Condition>,
    /// The position in the file.
    pub span: Span,
}

/// A variable bound to a path of a model.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its gt-code.
    pub id: String,
    /// The path in the model.
    pub path: String,
    /// The RM class, if the guide states it.
    pub data_type: Option<String>,
    /// The units that the guide allows. Empty if it states none.
    pub units: Vec<String>,
    /// The codes that the guide allows, as literals such as `1|local::at0005|Low|`. Empty if it
    /// states none.
    pub allowed_values: Vec<String>,
    /// The position in the file.
    pub span: Span,
}

/// A variable that belongs to no binding.
#[derive(Clone, Debug)]
pub struct InternalVariable {
    /// Its gt-code.
    pub id: String,
    /// `quantity`, `count`, `text`, `coded_text` or `ordinal`.
    pub data_type: String,
}

/// A resource with placeholders.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its gt-code.
    pub id: String,
    /// The name, if it has one.
    pub name: Option<String>,
    /// The class of the resource.
    pub model_id: String,
    /// The template id of the resource, if it has one.
    pub template_id: Option<String>,
    /// The resource. Texts such as `{$gt0001}` are placeholders.
    pub object: serde_json::Value,
}

/// Purpose, use and misuse of a guide in one language.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// The language code, such as `en`.
    pub language: String,
    /// The purpose of the guide.
    pub purpose: String,
    /// The situations for which the guide is meant.
    pub use_of: String,
    /// The situations for which the guide is not meant.
    pub misuse: String,
}

/// A reference of the description.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// The title of the reference.
    pub label: String,
    /// The address.
    pub url: String,
}

/// The terms of one language.
#[derive(Clone, Debug)]
pub struct TermDefinition {
    /// The language code, such as `en`.
    pub language: String,
    /// The terms in file order.
    pub terms: Vec<Term>,
}

/// A term of the guide.
#[derive(Clone, Debug)]
pub struct Term {
    /// Its gt-code.
    pub id: String,
    /// The name.
    pub text: String,
    /// The description.
    pub description: String,
}

/// The codes of one terminology that are bound to guide terms.
#[derive(Clone, Debug)]
pub struct TermBinding {
    /// The name of the terminology, such as `ATC`.
    pub terminology: String,
    /// Pairs of a guide term and its codes.
    pub codes: Vec<(String, Vec<String>)>,
    /// Pairs of a guide term and the address of the value set with its codes: the `uri` of the
    /// binding.
    pub sets: Vec<(String, String)>,
}

/// A condition or predicate.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub text: String,
    pub span: Span,
    /// The parsed text. `None` if it cannot be parsed.
    pub expr: Option<Expr>,
}

/// An action.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub text: String,
    pub span: Span,
    /// The parsed text. `None` if it cannot be parsed.
    pub action: Option<Action>,
}

/// A rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub id: String,
    pub priority: i64,
    pub when: Vec<Condition>,
    pub then: Vec<Step>,
    pub cards: Vec<Card>,
    pub span: Span,
}

/// A card of CDS Hooks as written in the guide: texts with placeholders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Card {
    pub summary: String,
    pub detail: Option<String>,
    pub indicator: String,
    pub source: Option<Link>,
    pub links: Vec<Link>,
    pub suggestions: Vec<Suggestion>,
}

/// A link or the source of a card. References such as `$ref[1].url` are resolved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    pub label: String,
    pub url: Option<String>,
    pub icon: Option<String>,
    pub kind: Option<String>,
}

/// A suggestion of a card.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suggestion {
    pub uuid: Option<String>,
    pub label: String,
    pub actions: Vec<SuggestedAction>,
}

/// An action of a suggestion.
#[derive(Clone, Debug, Default)]
pub(crate) struct SuggestedAction {
    pub kind: String,
    pub description: String,
    pub template: Option<(String, Vec<Step>)>,
}

impl Card {
    /// Visits the texts whose placeholders are filled.
    pub fn each_filled_text(&self, visit: &mut dyn FnMut(&str)) {
        visit(&self.summary);
        self.detail.iter().for_each(|detail| visit(detail));
        self.links.iter().for_each(|link| visit(&link.label));
        for suggestion in &self.suggestions {
            visit(&suggestion.label);
            let actions = suggestion.actions.iter();
            actions.for_each(|action| visit(&action.description));
        }
    }

    /// Returns the bytes of the texts, as an answer writes them.
    pub fn size(&self) -> usize {
        let link = |l: &Link| {
            let parts = [&l.url, &l.icon, &l.kind].into_iter().flatten();
            FRAME + l.label.len() + parts.map(String::len).sum::<usize>()
        };
        let action = |a: &SuggestedAction| FRAME + a.kind.len() + a.description.len();
        let suggestion =
            |s: &Suggestion| FRAME + s.label.len() + s.actions.iter().map(action).sum::<usize>();
        let links = self.links.iter().chain(&self.source);
        let detail = self.detail.as_ref().map_or(0, String::len);
        FRAME
            + self.summary.len()
            + detail
            + links.map(link).sum::<usize>()
            + self.suggestions.iter().map(suggestion).sum::<usize>()
    }
}

impl TermBinding {
    /// Returns the codes and the addresses of value sets that are bound to a term.
    pub fn bound_to<'a>(&'a self, term: &'a str) -> impl Iterator<Item = &'a String> {
        let codes = self
            .codes
            .iter()
            .filter(move |(own, _)| own == term)
            .flat_map(|(_, codes)| codes);
        codes.chain(
            self.sets
                .iter()
                .filter(move |(own, _)| own == term)
                .map(|(_, set)| set),
        )
    }
}

/// The maximum number of problems that a guide reports.
pub const MAX_PROBLEMS: usize = 1_000;

/// The maximum number of characters of a statement, term or name that a problem repeats.
const SHOWN: usize = 1_000;

/// Cuts a text of a guide to the length that a problem repeats.
pub(crate) fn shown(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

/// The maximum size of the text of an uploaded guide, in bytes.
pub const MAX_BYTES: usize = 2_000_000;

impl Guide {
    /// Returns one problem (`GDL0604`) for each limit of an upload that the guide exceeds: 2,000
    /// rules, 1,000 bindings, 10,000 variables, 20,000 statements, 20,000 terms of a language and
    /// 100 languages. Published guides have less than a tenth of that.
    pub fn excesses(&self) -> Vec<Diagnostic> {
        let statements = self.rules.iter().map(|r| r.when.len()).sum::<usize>()
            + self.steps().count()
            + self.pre_conditions.len();
        let variables = self.bindings.iter().map(|b| b.elements.len()).sum();
        let terms = self.terms.iter().map(|t| t.terms.len()).max();
        let counts = [
            ("rules", self.rules.len(), 2_000),
            ("bindings", self.bindings.len(), 1_000),
            ("variables", variables, 10_000),
            ("statements", statements, 20_000),
            ("terms of one language", terms.unwrap_or_default(), 20_000),
            ("languages", self.terms.len(), 100),
        ];
        let exceeded = counts.into_iter().filter(|(_, found, most)| found > most);
        let excess = |(what, found, most): (&str, usize, usize)| {
            let message = format!("the guide has {found} {what}");
            Diagnostic::error("GDL0604", Span::default(), message)
                .with_help(format!("at most {most} are allowed: split the guide"))
        };
        exceeded.map(excess).collect()
    }

    /// Returns the terms in a language, or else in the language of the author, or else in any.
    pub fn terms_in(&self, language: &str) -> &[Term] {
        let find = |language: &str| {
            self.terms
                .iter()
                .find(|t| t.language.eq_ignore_ascii_case(language))
        };
        find(language)
            .or_else(|| find(&self.original_language))
            .or(self.terms.first())
            .map_or(&[], |t| &t.terms)
    }

    /// Returns purpose and use in a language, or else in the language of the author, or else in
    /// any.
    pub fn details_in(&self, language: &str) -> Option<&Details> {
        let find = |language: &str| {
            self.details
                .iter()
                .find(|d| d.language.eq_ignore_ascii_case(language))
        };
        find(language)
            .or_else(|| find(&self.original_language))
            .or(self.details.first())
    }

    /// Returns the text of a term in a language.
    pub fn term(&self, code: &str, language: &str) -> Option<&str> {
        self.terms_in(language)
            .iter()
            .find(|t| t.id == code)
            .map(|t| t.text.as_str())
    }

    /// Returns the number of distinct literals in the expressions of the guide.
    pub fn number_of_constants(&self) -> usize {
        let mut seen: HashMap<u64, Vec<Value>> = HashMap::new();
        let mut count = 0;
        let mut visit = |v: &Value| {
            let alike = seen.entry(v.digest()).or_default();
            if !alike.contains(v) {
                alike.push(v.clone());
                count += 1;
            }
        };
        self.each_expr(&mut |e| e.literals(&mut visit));
        count
    }

    /// Calls `visit` with every expression that could be parsed.
    pub(crate) fn each_expr<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        let predicates = self.bindings.iter().flat_map(|b| &b.predicates);
        let conditions = predicates
            .chain(&self.pre_conditions)
            .chain(self.rules.iter().flat_map(|r| &r.when));
        conditions
            .filter_map(|c| c.expr.as_ref())
            .for_each(&mut *visit);
        for action in self.steps().filter_map(|s| s.action.as_ref()) {
            match action {
                Action::Assign(_, e) => visit(e),
                Action::Create(_, list) | Action::UseTemplate(_, list) => {
                    list.iter().for_each(|(_, e)| visit(e))
                }
                Action::UseTemplateEach(..) => {}
            }
        }
    }

    /// Returns every action of the guide, including those of suggestions.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        let suggested = self
            .rules
            .iter()
            .flat_map(|r| &r.cards)
            .flat_map(|c| &c.suggestions)
            .flat_map(|s| &s.actions);
        let suggested = suggested
            .filter_map(|a| a.template.as_ref())
            .flat_map(|(_, steps)| steps);
        self.default_actions
            .iter()
            .chain(self.rules.iter().flat_map(|r| &r.then))
            .chain(suggested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_card_is_that_of_its_texts_and_a_frame_for_each_object() {
        let link = |label: &str, url: &str| Link {
            label: label.to_owned(),
            url: Some(url.to_owned()),
            ..Link::default()
        };
        let action = |kind: &str, description: &str| SuggestedAction {
            kind: kind.to_owned(),
            description: description.to_owned(),
            template: None,
        };
        let card = Card {
            summary: String::from("Refer"),
            detail: Some(String::from("to cardiology")),
            indicator: String::from("info"),
            source: Some(link("ESC", "http://esc.org")),
            links: vec![link("Form", "http://a.b")],
            suggestions: vec![
                Suggestion {
                    uuid: None,
                    label: String::from("Write a letter"),
                    actions: vec![action("create", "Letter"), action("update", "Plan")],
                },
                Suggestion::default(),
            ],
        };
        let texts = "Refer,to cardiology,ESC,http://esc.org,Form,http://a.b,Write a letter";
        let texts = [texts, ",create,Letter,update,Plan"].concat();
        let bytes = texts.replace(',', "").len();
        // The card, two links, two suggestions and two actions.
        assert_eq!(card.size(), bytes + 7 * FRAME);
    }
}
