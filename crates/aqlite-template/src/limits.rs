//! Limits of uploaded templates: counts, lists, texts, expressions, and the size of derived
//! artefacts.
//!
//! The readers measure while they read and record every excess with its position
//! ([`Template::excesses`]). An upload with an excess is rejected. A template that an earlier
//! release stored is still read: examples, web templates and simplified formats have budgets of
//! their own. Each limit is at least ten times the need of the largest published templates.

use super::example::{ExampleKind, TOO_LARGE, example};
use super::pattern::Pattern;
use super::tree::{Constraint, Multiplicity, Node, Template};
use super::web::WebTemplate;
use super::xml::Xml;
use aqlite_rm::diag::{Diagnostic, Span};
use std::collections::HashMap;

/// The maximum lower bound of occurrences, cardinality or existence.
pub const MAX_LOWER_BOUND: u32 = 1_000;
/// The maximum number of constraint nodes.
pub const MAX_NODES: usize = 50_000;
/// The maximum number of alternatives below one attribute.
pub const MAX_ALTERNATIVES: usize = 1_000;
/// The maximum number of alternatives below one attribute with the same id. They are distinguished
/// by names only, which is quadratic.
pub const MAX_ALTERNATIVES_OF_ID: usize = 200;
/// The maximum number of members of one list: codes, texts, numbers, units, ordinals, rules of a
/// slot.
pub const MAX_LIST_LENGTH: usize = 10_000;
/// The maximum number of terms. Those of an archetype count once for each use.
pub const MAX_TERMS: usize = 200_000;
/// The number of terms at which a reader stops. Every use of an archetype has a copy of its terms.
pub(super) const MAX_TERMS_READ: usize = 500_000;
/// The number of states of all expressions at which a reader stops.
const MAX_STEPS_READ: usize = 500_000;
/// The maximum length in bytes of a compiled template in memory, about. Published ones have up to
/// 6 MB.
pub const MAX_COMPILED_BYTES: usize = 15_000_000;
/// The memory in bytes of a constraint node, and of a term beside its texts.
const NODE_BYTES: usize = 300;
const TERM_BYTES: usize = 150;
/// The maximum number of languages.
pub const MAX_LANGUAGES: usize = 100;
/// The maximum length in bytes of a term's text, which is part of paths and keys.
pub const MAX_NAME_BYTES: usize = 2_000;
/// The maximum length in bytes of other texts: descriptions, comments, annotations, listed texts.
pub const MAX_TEXT_BYTES: usize = 50_000;
/// The maximum length in characters of a regular expression.
pub const MAX_EXPRESSION_CHARACTERS: usize = 2_000;
/// The maximum number of states of a compiled regular expression.
pub const MAX_EXPRESSION_STEPS: usize = 5_000;
/// The maximum number of objects in the smallest valid document.
pub const MAX_REQUIRED_OBJECTS: u64 = 5_000;
/// The maximum number of nodes of the web template, without those that values and coded names add.
pub const MAX_WEB_NODES: u64 = 50_000;
/// The maximum length in bytes of the web template as JSON.
pub const MAX_WEB_BYTES: usize = 10_000_000;

/// The maximum number of excesses that are recorded.
const MAX_EXCESSES: usize = 100;

/// A meter of the resources of a template while it is read.
#[derive(Debug, Default)]
pub(super) struct TemplateMeter {
    path: String,
    nodes: usize,
    terms: usize,
    steps: usize,
    /// The memory in bytes of the compiled template, about.
    memory: usize,
    /// The reason why reading stopped: the template would need too much memory.
    pub failed: Option<Diagnostic>,
    excesses: Vec<Diagnostic>,
}

impl TemplateMeter {
    /// Appends a step to the path and returns the previous length for [`TemplateMeter::leave`].
    pub fn enter(&mut self, parts: &[&str]) -> usize {
        let length = self.path.len();
        parts.iter().for_each(|part| self.path.push_str(part));
        length
    }

    /// Removes the step that [`TemplateMeter::enter`] appended.
    pub fn leave(&mut self, length: usize) {
        self.path.truncate(length);
    }

    fn add_excess(&mut self, xml: Xml<'_>, code: &'static str, message: &str, help: String) {
        // The number of reports is limited, not the number of checks.
        if self.excesses.len() < MAX_EXCESSES {
            let path = if self.path.is_empty() {
                "/"
            } else {
                &self.path
            };
            self.excesses.push(
                Diagnostic::error(code, xml.span(), format!("{path}: {message}")).with_help(help),
            );
        }
    }

    /// Adds an error if an element has more than `max` of something.
    fn check_maximum(&mut self, xml: Xml<'_>, found: usize, max: usize, what: &str) {
        if found > max {
            self.add_excess(
                xml,
                "TPL0304",
                &format!("{found} {what}"),
                format!("at most {max} are allowed: split the template, or leave some out"),
            );
        }
    }

    /// Checks the bounds of a count.
    pub fn count(&mut self, xml: Xml<'_>, what: &str, count: Multiplicity) {
        if count.lower > MAX_LOWER_BOUND {
            let message = format!("{what} {count} asks for at least {} objects", count.lower);
            self.add_excess(
                xml,
                "TPL0303",
                &message,
                format!("lower the bound: at most {MAX_LOWER_BOUND} may be asked for"),
            );
        }
        if count.upper.is_some_and(|upper| upper < count.lower) {
            self.add_excess(
                xml,
                "TPL0303",
                &format!("{what} {count}: the lower bound is above the upper one"),
                String::from("correct one of the bounds"),
            );
        }
    }

    /// Counts a constraint node.
    pub fn node(&mut self, xml: Xml<'_>) {
        self.nodes += 1;
        self.memory += NODE_BYTES;
        // Reported once, at the first node beyond the limit.
        if self.nodes == MAX_NODES + 1 {
            self.add_excess(
                xml,
                "TPL0304",
                &format!("more than {MAX_NODES} nodes"),
                String::from("split the template, or leave some out"),
            );
        }
    }

    /// Returns whether the template may have more constraint nodes.
    pub fn has_room(&self) -> bool {
        self.nodes < MAX_NODES
    }

    /// Checks the number of alternatives below an attribute, and of those that share an id.
    pub fn alternatives(&mut self, xml: Xml<'_>, children: &[Node]) {
        self.check_maximum(
            xml,
            children.len(),
            MAX_ALTERNATIVES,
            "alternatives below one attribute",
        );
        let mut sharing: HashMap<&str, usize> = HashMap::new();
        children
            .iter()
            .for_each(|child| *sharing.entry(child.id()).or_default() += 1);
        let rivals = sharing
            .into_iter()
            // Objects without an id are distinguished by class, which is not quadratic.
            .filter(|(id, _)| !id.is_empty())
            .map(|(_, rivals)| rivals)
            .max();
        self.check_maximum(
            xml,
            rivals.unwrap_or_default(),
            MAX_ALTERNATIVES_OF_ID,
            "alternatives below one attribute with the same id",
        );
    }

    /// Checks the number of members of a list.
    pub fn list(&mut self, xml: Xml<'_>, found: usize) {
        self.check_maximum(xml, found, MAX_LIST_LENGTH, "members of one list");
    }

    /// Checks the length of a text.
    pub fn text(&mut self, xml: Xml<'_>, text: &str) {
        self.check_maximum(xml, text.len(), MAX_TEXT_BYTES, "bytes of one text");
    }

    /// Compiles an expression. Returns `None` as well when the expressions of the template exceed
    /// the limit of the reader.
    pub fn compile(&mut self, xml: Xml<'_>, source: &str) -> Option<Pattern> {
        let length = source.chars().count();
        self.check_maximum(
            xml,
            length,
            MAX_EXPRESSION_CHARACTERS,
            "characters of one expression",
        );
        let pattern = Some(source)
            // Compilation stops at the limit, because the states are the memory in question.
            .filter(|_| length <= MAX_EXPRESSION_CHARACTERS && self.steps <= MAX_STEPS_READ)
            .and_then(Pattern::compile);
        self.steps += pattern.as_ref().map_or(0, Pattern::steps);
        if self.steps > MAX_STEPS_READ && self.failed.is_none() {
            let problem = Diagnostic::error(
                "TPL0304",
                xml.span(),
                format!("the expressions have more than {MAX_STEPS_READ} steps"),
            );
            self.failed = Some(
                problem
                    .with_help("repetitions count as often as they may occur: write shorter ones"),
            );
        }
        pattern
    }

    /// Checks the number of states of an expression.
    pub fn expression(&mut self, xml: Xml<'_>, steps: usize) {
        self.check_maximum(
            xml,
            steps,
            MAX_EXPRESSION_STEPS,
            "steps of one expression: repetitions count as often as they may occur",
        );
    }

    /// Counts a term and checks its texts. Returns false when the limit of the reader is exceeded.
    pub fn term(&mut self, xml: Xml<'_>, term: &super::tree::Term) -> bool {
        self.check_maximum(
            xml,
            term.text.len(),
            MAX_NAME_BYTES,
            "bytes of the text of a term",
        );
        self.text(xml, &term.description);
        term.others
            .iter()
            .for_each(|(_, text)| self.text(xml, text));
        let others = term.others.iter().map(|(key, text)| key.len() + text.len());
        self.memory +=
            TERM_BYTES + term.text.len() + term.description.len() + others.sum::<usize>();
        self.terms += 1;
        if self.terms == MAX_TERMS + 1 {
            let help = String::from(
                "each use of an archetype counts its terms: leave out terms or languages that are not used",
            );
            self.add_excess(
                xml,
                "TPL0304",
                &format!("more than {MAX_TERMS} terms"),
                help,
            );
        }
        // The reader's limit is higher than that of uploads: stored templates must remain readable.
        self.terms <= MAX_TERMS_READ
    }

    /// Returns the error about a template with more terms than the limit of the reader.
    pub fn too_many_terms(xml: Xml<'_>) -> Diagnostic {
        Diagnostic::error(
            "TPL0304",
            xml.span(),
            format!(
                "more than {MAX_TERMS_READ} terms, those of an archetype counted once for each use"
            ),
        )
        .with_help("leave out terms or languages that are not used")
    }

    /// Checks the sizes of derived artefacts, and returns every excess.
    pub fn finish(mut self, xml: Xml<'_>, definition: &Node, languages: usize) -> Vec<Diagnostic> {
        self.path.clear();
        self.check_maximum(xml, languages, MAX_LANGUAGES, "languages");
        self.check_maximum(
            xml,
            self.memory,
            MAX_COMPILED_BYTES,
            "bytes of compiled nodes and terms",
        );
        let (required, web) = (required(definition), web_nodes(definition));
        if required > MAX_REQUIRED_OBJECTS {
            let message =
                format!("the smallest document that meets the lower bounds has {required} objects");
            self.add_excess(xml, "TPL0303", &message, format!("lower the bounds: they multiply where they are nested; at most {MAX_REQUIRED_OBJECTS} are allowed"));
        }
        if web > MAX_WEB_NODES {
            let message = format!("the web template has {web} nodes");
            self.add_excess(xml, "TPL0304", &message, format!("give fewer coded names: each repeats what is below it; at most {MAX_WEB_NODES} are allowed"));
        }
        self.excesses
    }
}

/// Returns the number of objects that the lower bounds require. Bounds of nested lists multiply.
fn required(node: &Node) -> u64 {
    // Saturating arithmetic: nested bounds of billions would overflow.
    let attributes = node.attributes.iter().map(|attribute| {
        let members = attribute
            .children
            .iter()
            .map(|child| u64::from(child.occurrences.lower).saturating_mul(required(child)));
        let listed = attribute
            .cardinality
            .map_or(0, |c| u64::from(c.interval.lower));
        // A cardinality requires members even if no occurrence does.
        members.fold(0, u64::saturating_add).max(listed)
    });
    attributes.fold(1, u64::saturating_add)
}

/// Returns the number of nodes of the web template. The content of a node with coded names is
/// repeated for each name.
fn web_nodes(node: &Node) -> u64 {
    let children = node
        .attributes
        .iter()
        .flat_map(|attribute| &attribute.children);
    let sizes = children.map(|child| {
        // Each coded name repeats the node.
        u64::try_from(child.name_codes().len().max(1))
            .unwrap_or(u64::MAX)
            .saturating_mul(web_nodes(child))
    });
    sizes.fold(1, u64::saturating_add)
}

impl Constraint {
    /// Checks the lists, texts and expressions of a constraint.
    pub(super) fn measure(&self, xml: Xml<'_>, meter: &mut TemplateMeter) {
        match self {
            Constraint::Slot { includes, excludes } => {
                meter.list(xml, includes.len() + excludes.len());
                includes
                    .iter()
                    .chain(excludes)
                    .for_each(|p| meter.expression(xml, p.steps()));
            }
            Constraint::Text { pattern, list, .. } => {
                meter.list(xml, list.len());
                list.iter().for_each(|text| meter.text(xml, text));
                pattern
                    .iter()
                    .for_each(|p| meter.expression(xml, p.steps()));
            }
            Constraint::Integer { list, .. } => meter.list(xml, list.len()),
            Constraint::Real { list, .. } => meter.list(xml, list.len()),
            Constraint::Code { codes, .. } => meter.list(xml, codes.len()),
            Constraint::Quantity { list, .. } => meter.list(xml, list.len()),
            Constraint::Ordinal { list } => meter.list(xml, list.len()),
            Constraint::Temporal { pattern, .. } => pattern.iter().for_each(|p| meter.text(xml, p)),
            Constraint::Open | Constraint::Boolean { .. } | Constraint::CodeSet { .. } => {}
        }
    }
}

/// Creates an excess that concerns a derived artefact.
fn of_derived(message: &str, help: String) -> Diagnostic {
    Diagnostic::error("TPL0304", Span::default(), message).with_help(help)
}

/// Returns the reason to reject an upload because of the size of its web template.
pub fn web_excess(template: &Template, web: &WebTemplate) -> Option<Diagnostic> {
    if !web.is_complete {
        let help = "coded names and elements without a constrained value repeat what is below them: constrain values, or split the template";
        return Some(of_derived(
            "the web template would be too large",
            help.to_owned(),
        ));
    }
    if web.to_json_within(template, MAX_WEB_BYTES).is_some() {
        return None;
    }
    let help = format!("at most {MAX_WEB_BYTES} are allowed: leave out languages or nodes");
    Some(of_derived(
        &format!("the web template has more than {MAX_WEB_BYTES} bytes"),
        help,
    ))
}

/// Returns the reason to reject an upload because no example document can be generated within the
/// limits.
pub fn example_excess(template: &Template, now: &str) -> Option<Diagnostic> {
    let findings = example(template, ExampleKind::Full, None, now).err()?;
    let excess = findings.iter().find(|f| f.code == TOO_LARGE)?;
    let help = excess.expected.clone().unwrap_or_default();
    Some(of_derived("the example document would be too large", help))
}

impl Template {
    /// Returns the violations of the limits of an upload. A template that is stored already may
    /// have some.
    pub fn excesses(&self) -> &[Diagnostic] {
        &self.excesses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::Document;

    #[test]
    fn expressions_may_have_exactly_the_steps_of_the_limit() {
        let steps = Pattern::compile("[a-z]{3}").unwrap().steps();
        assert!(steps > 0);
        for (before, fails) in [
            (MAX_STEPS_READ - steps, false),
            (MAX_STEPS_READ - steps + 1, true),
        ] {
            let mut meter = TemplateMeter {
                steps: before,
                ..TemplateMeter::default()
            };
            let text = "<pattern>[a-z]{3}</pattern>";
            let document = Document::parse(text).unwrap();
            let xml = document.root().unwrap();
            assert!(meter.compile(xml, "[a-z]{3}").is_some());
            assert_eq!(
                meter.failed.as_ref().map(|p| p.code),
                fails.then_some("TPL0304")
            );
            // No more is compiled after the limit.
            let next = meter.compile(xml, "[a-z]{3}");
            assert_eq!(next.is_none(), fails);
        }
    }
}
