//! The web template as JSON.

use super::{JsonText, Step, WebNode, WebTemplate, input};
use crate::tree::{DefaultValue, Leaves, Multiplicity, Node, Template};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::order;
use std::collections::HashMap;

/// The version of the web template format.
const VERSION: &str = "2.3";

/// Attributes that need another attribute: class, attribute, the required attribute.
const DEPENDENT: [(Cls, Attr, &str); 6] = [
    (Cls::OBSERVATION, Attr::STATE, "data"),
    (Cls::OBSERVATION, Attr::PROTOCOL, "data"),
    (Cls::EVENT, Attr::STATE, "data"),
    (Cls::EVALUATION, Attr::PROTOCOL, "data"),
    (Cls::INSTRUCTION, Attr::PROTOCOL, "activities"),
    (Cls::ACTION, Attr::PROTOCOL, "instruction_details"),
];

/// Returns the JSON text, or `None` if it would have more than `most` bytes.
pub(super) fn to_json(web: &WebTemplate, template: &Template, most: usize) -> Option<String> {
    let mut printer = Printer {
        out: JsonText::default(),
        template,
        annotations: annotations(template),
        annotated: HashMap::new(),
        defaults: defaults(template),
        most,
    };
    let out = &mut printer.out;
    out.open('{');
    out.member("templateId", &template.template_id);
    out.member("semVer", &template.version);
    out.member("version", VERSION);
    out.member("defaultLanguage", &template.language);
    out.texts("languages", template.languages.iter().map(String::as_str));
    if let Some(singleton) = &template.singleton {
        out.key("otherDetails");
        out.object(&[("is_singleton", singleton)]);
    }
    out.key("tree");
    printer.node(&web.tree, None, "", "");
    printer.out.close('}');
    Some(printer.out.finish()).filter(|text| text.len() <= most)
}

/// Returns the annotations of a template by the path below its root, in the spelling of this
/// format.
fn annotations(template: &Template) -> HashMap<String, Vec<(&str, &str)>> {
    let mut found: HashMap<String, Vec<(&str, &str)>> = HashMap::new();
    for note in &template.annotations {
        found
            .entry(below_root(&note.path))
            .or_default()
            .push((&note.key, &note.text));
    }
    found
}

/// Returns the default values of a template by the path below its root.
fn defaults(template: &Template) -> HashMap<String, Vec<&DefaultValue>> {
    let mut found: HashMap<String, Vec<&DefaultValue>> = HashMap::new();
    for value in &template.defaults {
        found
            .entry(below_root(&value.path))
            .or_default()
            .push(value);
    }
    found
}

/// Returns the path of a node, given that of its parent.
pub(super) fn path_below(parent: &str, web: &WebNode) -> String {
    web.steps
        .iter()
        .fold(parent.to_owned(), |path, step| path + &step.path())
}

struct Printer<'t> {
    out: JsonText,
    template: &'t Template,
    /// Pairs of key and text by path.
    annotations: HashMap<String, Vec<(&'t str, &'t str)>>,
    /// The path of the node that has the annotations of a path.
    annotated: HashMap<String, String>,
    /// Default values by path.
    defaults: HashMap<String, Vec<&'t DefaultValue>>,
    /// The maximum size in bytes. Beyond it, no further node is written.
    most: usize,
}

impl<'t> Printer<'t> {
    /// Writes a node. `path` has the node ids of all steps, as the paths of annotations and defaults
    /// have them, and `aql_path` those of LOCATABLE only.
    fn node(&mut self, web: &WebNode, parent: Option<&WebNode>, path: &str, aql_path: &str) {
        // The caller rejects a text above the limit, so the rest would be work for nothing.
        if self.out.len() > self.most {
            return;
        }
        self.out.open('{');
        self.out.member("id", &web.id);
        web.name
            .iter()
            .for_each(|name| self.out.member("name", name));
        self.names(web, parent, path);
        self.out.member("rmType", &class_text(web));
        let step = web.named_step().filter(|s| !s.is_added);
        step.iter()
            .for_each(|step| self.out.member("nodeId", &step.id));
        self.counts("min", "max", web.occurrences);
        self.cardinalities(web, path);
        self.depends_on(web, parent, path);
        self.notes(web, path);
        self.out.member("aqlPath", aql_path);
        if web.in_context {
            self.out.raw_member("inContext", "true");
        }
        input::write_proportion_types(&mut self.out, web);
        let default = self.default(web, path);
        input::write(&mut self.out, self.template, web, parent, default);
        if !web.children.is_empty() {
            self.out.key("children");
            self.out.open('[');
            for child in &web.children {
                let aql_path = child
                    .steps
                    .iter()
                    .fold(aql_path.to_owned(), |path, step| path + &step.aql_path());
                self.node(child, Some(web), &path_below(path, child), &aql_path);
            }
            self.out.close(']');
        }
        self.out.close('}');
    }

    /// Writes names and descriptions in every language. An alternative has those of its ELEMENT.
    fn names(&mut self, web: &WebNode, parent: Option<&WebNode>, path: &str) {
        let own = web.named_step().filter(|s| !s.code.is_empty());
        let outer = parent
            .filter(|p| p.class == Cls::ELEMENT)
            .and_then(WebNode::named_step);
        let Some(step) = own.or(outer).filter(|s| !s.code.is_empty()) else {
            return;
        };
        let root = step.root;
        let node = Node {
            root,
            ..input::blank()
        };
        let template = self.template;
        let code = step.name_code.as_deref().unwrap_or(&step.code);
        let term = template.term(&node, &template.language, code);
        let term = term.map(|t| t.text.as_str());
        let label = step.label.as_deref().or(web.name.as_deref());
        let label = label.unwrap_or_default();
        let is_renamed =
            step.name_code.is_none() && step.constrained_name().is_some() && term != Some(label);
        let (main, mut names) = if is_renamed {
            (label, vec![(template.language.as_str(), label)])
        } else {
            let terms = input::localized(template, Some(&node), code, false);
            (term.unwrap_or(label), terms)
        };
        let notes = self.annotations(web, path);
        let translations = self.translations(&notes);
        for (language, text) in &translations {
            // A translation in an annotation replaces the term of the archetype in this language.
            names.retain(|(other, _)| other != language);
            names.push((language, text));
        }
        order::sort(&mut names);
        self.out.member("localizedName", main);
        self.out.map("localizedNames", &names);
        let descriptions = input::localized(template, Some(&node), code, true);
        self.out.map("localizedDescriptions", &descriptions);
    }

    /// Returns the names in annotations: `L10n={en=…|sl=…}`, or an id `l10n.en`.
    fn translations(&self, notes: &[(&str, &str)]) -> Vec<(&'t str, String)> {
        let languages = &self.template.languages;
        let known = |language: &str| languages.iter().find(|l| *l == language.trim());
        let mut found = Vec::new();
        for (key, text) in notes {
            let listed = text.split_once("L10n={");
            let listed = listed.and_then(|(_, rest)| Some(rest.split_once('}')?.0));
            let pairs = listed.into_iter().flat_map(|list| list.split('|'));
            let pairs = pairs.filter_map(|pair| pair.split_once('='));
            let single = key
                .split_at_checked(5)
                .filter(|(prefix, _)| prefix.eq_ignore_ascii_case("l10n."))
                .map(|(_, language)| (language, *text));
            for (language, text) in pairs.chain(single) {
                found.extend(known(language).map(|l| (l.as_str(), text.trim().to_owned())));
            }
        }
        found
    }

    /// Returns the annotations of the template for a node: key and text. Their path may lack the name
    /// of a renamed node, or all names. Of several renamed nodes, the first has them.
    fn annotations(&mut self, web: &WebNode, path: &str) -> Vec<(&'t str, &'t str)> {
        let value = web
            .element()
            .and(web.last_step())
            .map(Step::path)
            // Annotations belong to the ELEMENT. The path of its value is longer by one step.
            .unwrap_or_default();
        let path = path.strip_suffix(&value).unwrap_or(path);
        let written = [
            path.to_owned(),
            without_last_name(path),
            without_names(path),
        ];
        let found = written
            .into_iter()
            .find_map(|written| Some((self.annotations.get(&written)?.clone(), written)));
        let Some((notes, written)) = found else {
            return Vec::new();
        };
        let owner = self.annotated.entry(written);
        let is_first = owner.or_insert_with(|| path.to_owned()) == path;
        if is_first { notes } else { Vec::new() }
    }

    fn counts(&mut self, least: &str, most: &str, counts: Multiplicity) {
        self.out.raw_member(least, &counts.lower.to_string());
        self.out.raw_member(
            most,
            &counts
                .upper
                // -1 means that there is no upper limit.
                .map_or_else(|| String::from("-1"), |u| u.to_string()),
        );
    }

    fn cardinalities(&mut self, web: &WebNode, path: &str) {
        let ids = |prefix: &str| {
            let children = web.children.iter();
            let below = children.filter(|c| path_below(path, c).starts_with(prefix));
            below.map(|c| c.id.as_str()).collect::<Vec<_>>()
        };
        let groups = web.cardinalities.iter();
        let groups: Vec<(Multiplicity, Vec<&str>)> = groups
            .map(|c| (c.interval, ids(&c.path)))
            .filter(|(_, ids)| !ids.is_empty())
            .collect();
        if groups.is_empty() {
            return;
        }
        self.out.key("cardinalities");
        self.out.open('[');
        for (interval, ids) in groups {
            self.out.open('{');
            self.counts("min", "max", interval);
            self.out.texts("ids", ids);
            self.out.close('}');
        }
        self.out.close(']');
    }

    fn depends_on(&mut self, web: &WebNode, parent: Option<&WebNode>, path: &str) {
        let Some(parent) = parent else { return };
        let Some(parent_path) = path.strip_suffix(&path_below("", web)).map(str::to_owned) else {
            return;
        };
        let (mut at, mut class, mut ids) = (parent_path.clone(), parent.class, Vec::new());
        for step in &web.steps {
            for (_, _, needed) in DEPENDENT
                .iter()
                .filter(|(owner, attr, _)| class.is_a(*owner) && *attr == step.attr)
            {
                let prefix = format!("{at}/{needed}");
                let named = parent
                    .children
                    .iter()
                    .filter(|c| !c.in_context && path_below(&parent_path, c).starts_with(&prefix));
                ids.extend(named.map(|c| c.id.as_str()));
            }
            at += &step.path();
            class = step.class;
        }
        if !ids.is_empty() {
            self.out.texts("dependsOn", ids);
        }
    }

    /// Writes annotations of the template, further entries of the term, and codes of other
    /// terminologies.
    fn notes(&mut self, web: &WebNode, path: &str) {
        let Some(step) = web.named_step() else { return };
        let node = Node {
            root: step.root,
            ..input::blank()
        };
        let code = step.code.as_str();
        let term = if code.is_empty() {
            None
        } else {
            self.template.term(&node, &self.template.language, code)
        };
        let mut notes = self.annotations(web, path);
        notes.extend(
            term.into_iter()
                .flat_map(|t| &t.others)
                .map(|(k, v)| (k.as_str(), v.as_str())),
        );
        self.out.map("annotations", &notes);
        input::write_bindings(&mut self.out, self.template, step.root, code);
    }

    /// Returns the proposed value of a node. Its path is tried with and without the names in it.
    fn default(&self, web: &WebNode, path: &str) -> Option<&'t Leaves> {
        let is_apt = |value: &&&'t DefaultValue| {
            // A default may have a more special or a more general class than the node.
            value
                .class
                .is_none_or(|class| web.class.is_a(class) || class.is_a(web.class))
        };
        let at = |path: &str| self.defaults.get(path).into_iter().flatten();
        let exact = at(path).find(is_apt);
        let nameless = || {
            at(&without_names(path))
                // A default for another name must not match by its nameless path.
                .filter(|value| !value.path.contains('\''))
                .find(is_apt)
        };
        exact.or_else(nameless).map(|value| &value.leaves)
    }
}

/// Converts a path of the template editor to one of a web template: without its root, names behind
/// a comma.
fn below_root(written: &str) -> String {
    let path = if written.starts_with('[') {
        written.split_once(']').map_or(written, |(_, rest)| rest)
    } else {
        written
    };
    path.replace(" and name/value=", ",").replace(", '", ",'")
}

/// Removes the name in the predicate of the last step of a path.
fn without_last_name(path: &str) -> String {
    match path.rsplit_once(",'") {
        Some((front, name)) if path.ends_with("']") && !name.contains('/') => format!("{front}]"),
        _ => path.to_owned(),
    }
}

/// Removes the names in the predicates of a path.
fn without_names(path: &str) -> String {
    let mut parts = path.split(",'");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |front, part| {
        front
            + part.split_once("']").map_or("", |_| "]")
            + part.split_once("']").map_or("", |(_, rest)| rest)
    })
}

/// Returns the class in the spelling of the format: primitive types in upper case.
fn class_text(web: &WebNode) -> String {
    if web.class.is_primitive() {
        web.class.name().to_ascii_uppercase()
    } else {
        web.class_text.clone()
    }
}
