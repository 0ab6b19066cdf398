//! Reader of operational templates of ADL 1.4 (`Template.xsd`).
//!
//! It accepts deviations of real files whose meaning is clear: elements out of order, unknown
//! elements, white space, prefixes, missing occurrences. It is strict about the elements that
//! identify a template.

mod sections;
mod value;

use super::limits::TemplateMeter;
use super::reference::References;
use super::tree::{
    Annotation, ArchetypeRoot, Attribute, Binding, Cardinality, Leaves, Multiplicity, Node,
    Template, Term, semantic,
};
use super::xml::{Document, Xml};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::order;
use sections::{annotations, defaults, leaves, view_constraints};
use std::collections::{HashMap, HashSet};

const TOP: [&str; 15] = [
    "language",
    "is_controlled",
    "description",
    "revision_history",
    "uid",
    "template_id",
    "adl_version",
    "concept",
    "definition",
    "ontology",
    "component_ontologies",
    "annotations",
    "constraints",
    "view",
    "rm_release",
];

impl Template {
    /// Reads an operational template of ADL 1.4 (OPT 1.4 XML).
    ///
    /// # Errors
    /// All reasons why the text is not a usable template: codes `TPL01xx` (not well-formed, a
    /// document type, too deep, too large), `TPL02xx` (wrong root; missing, repeated or foreign
    /// top-level element), `TPL03xx` (an unreadable constraint).
    pub fn parse(text: &str) -> Result<Template, Vec<Diagnostic>> {
        Template::of_opt14(&Document::parse(text).map_err(|d| vec![d])?)
    }

    /// Converts the elements of an operational template of ADL 1.4.
    pub(super) fn of_opt14<'a>(document: &'a Document<'a>) -> Result<Template, Vec<Diagnostic>> {
        let Some(root) = document.root() else {
            return Err(Vec::new());
        };
        let mut reader = OptReader::default();
        let template = reader.template(root);
        match template {
            Some(template) if reader.errors.is_empty() => Ok(Template {
                warnings: reader.warnings,
                ..template
            }),
            _ => Err(reader.errors),
        }
    }
}

/// The elements that every template has.
struct Head<'d> {
    language: String,
    template_id: String,
    concept: String,
    definition: Xml<'d>,
}

/// A class as a template writes it.
pub(super) struct ClassName {
    /// The class with its parameter, without white space.
    pub text: String,
    /// The class, if the Reference Model has it.
    pub class: Option<Cls>,
    /// The parameter of a generic class.
    pub parameter: Option<Cls>,
}

impl ClassName {
    /// Reads a class such as `DV_INTERVAL<DV_QUANTITY>`.
    pub(super) fn read(written: Option<&str>) -> ClassName {
        // Editors insert white space into generic class names.
        let characters = written.unwrap_or_default().chars();
        let text: String = characters.filter(|c| !c.is_whitespace()).collect();
        let (outer, parameter) = match text.split_once('<') {
            Some((outer, inner)) => (outer, Cls::parse(inner.trim_end_matches('>'))),
            None => (text.as_str(), None),
        };
        ClassName {
            class: class_named(outer),
            parameter,
            text,
        }
    }
}

#[derive(Default)]
struct OptReader<'t> {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    roots: Vec<ArchetypeRoot>,
    language: String,
    meter: TemplateMeter,
    references: References<'t>,
}

impl<'t> OptReader<'t> {
    fn template(&mut self, root: Xml<'t>) -> Option<Template> {
        self.check_elements(root)?;
        let head = self.head(root)?;
        self.language.clone_from(&head.language);
        let definition = self.node(head.definition, 0);
        self.ontologies(root);
        self.errors.extend(self.meter.failed.take());
        let roots = std::mem::take(&mut self.roots);
        let languages = languages(&head.language, &roots);
        let views = root.all("view").flat_map(|view| view.all("constraints"));
        let annotations: Vec<Annotation> = root
            .all("annotations")
            .flat_map(annotations)
            .chain(views.flat_map(view_constraints))
            .collect();
        annotations
            .iter()
            .for_each(|a| self.meter.text(root, &a.text));
        let meter = std::mem::take(&mut self.meter);
        Some(Template {
            archetype_id: definition.archetype_id.clone().unwrap_or_default(),
            uid: text_of(root, &["uid", "value"]),
            annotations,
            defaults: root.all("constraints").flat_map(defaults).collect(),
            singleton: detail(root, "is_singleton").map(str::to_owned),
            warnings: Vec::new(),
            is_opaque: false,
            excesses: meter.finish(root, &definition, languages.len()),
            version: version(root, &head.template_id),
            template_id: head.template_id,
            concept: head.concept,
            language: head.language,
            languages,
            definition,
            roots,
        })
    }

    /// Reads the elements that every template has, and reports all that are missing.
    fn head<'d>(&mut self, root: Xml<'d>) -> Option<Head<'d>> {
        let language = self
            .one(root, "language")
            .and_then(|e| self.filled(e, &["code_string"]));
        let template_id = self
            .one(root, "template_id")
            .and_then(|e| self.filled(e, &["value"]));
        let definition = self.one(root, "definition");
        let concept = self.concept(root, definition);
        Some(Head {
            language: language?,
            template_id: template_id?,
            concept: concept?,
            definition: definition?,
        })
    }

    /// Checks the names of the root and of its children. Returns `None` for another root.
    fn check_elements(&mut self, root: Xml<'_>) -> Option<()> {
        if root.name() != "template" {
            let problem = Diagnostic::error(
                "TPL0201",
                root.span(),
                format!("the root element is `{}`, expected `template`", root.name()),
            );
            self.errors.push(problem.with_help(
                "send an operational template (OPT 1.4), as template editors export it",
            ));
            return None;
        }
        for child in root.children().filter(|c| !TOP.contains(&c.name())) {
            let problem = Diagnostic::error(
                "TPL0204",
                child.span(),
                format!("`{}` is not a part of a template", child.name()),
            );
            self.errors.push(problem.with_help("remove the element"));
        }
        Some(())
    }

    /// Returns the child element `name`, and reports it unless it occurs exactly once.
    fn one<'d>(&mut self, root: Xml<'d>, name: &'d str) -> Option<Xml<'d>> {
        let mut found = root.all(name);
        let first = found.next();
        if let Some(second) = found.next() {
            self.errors.push(
                Diagnostic::error("TPL0203", second.span(), format!("`{name}` occurs twice"))
                    .with_help("a template has exactly one; remove the other"),
            );
        }
        if first.is_none() {
            self.errors.push(
                Diagnostic::error("TPL0202", root.span(), format!("`{name}` is missing"))
                    .with_help(format!("add `<{name}>` below `<template>`")),
            );
        }
        first
    }

    fn filled(&mut self, element: Xml<'_>, along: &[&str]) -> Option<String> {
        let text = element.text_along(along).filter(|t| !t.is_empty());
        if text.is_none() {
            let place: Vec<&str> = std::iter::once(element.name())
                .chain(along.iter().copied())
                .collect();
            self.errors.push(
                Diagnostic::error(
                    "TPL0205",
                    element.span(),
                    format!("`{}` is empty", place.join("/")),
                )
                .with_help("fill it in"),
            );
        }
        text.map(str::to_owned)
    }

    /// Returns the concept. A template with an ontology has the term of its root node instead.
    fn concept(&mut self, root: Xml<'_>, definition: Option<Xml<'_>>) -> Option<String> {
        let code = definition.and_then(|d| d.text_along(&["node_id"]));
        let named = root.child("ontology").and_then(|o| {
            let terms = o
                .all("term_definitions")
                .flat_map(|set| set.all("items").chain(std::iter::once(set)));
            let term = terms
                .into_iter()
                .find(|t| t.attribute("code").is_some() && t.attribute("code") == code)?;
            term.all("items")
                .find(|i| i.attribute("id") == Some("text"))
                .map(|i| i.text().to_owned())
        });
        match named {
            Some(named) if root.child("concept").is_none() && !named.is_empty() => Some(named),
            _ => self.one(root, "concept").and_then(|e| self.filled(e, &[])),
        }
    }

    /// Records a part of the definition that is not checked.
    fn warn(&mut self, code: &'static str, xml: Xml<'_>, message: String) {
        if self.warnings.len() < MAX_WARNINGS {
            let warning = Diagnostic::warning(code, xml.span(), message);
            self.warnings.push(warning);
        }
    }

    fn node(&mut self, xml: Xml<'t>, root: usize) -> Node {
        self.meter.node(xml);
        // A root has an archetype id, any other node a node id, a data value neither.
        let id = xml
            .text_along(&["archetype_id", "value"])
            .or_else(|| xml.text_along(&["node_id"]))
            .filter(|id| !id.is_empty());
        let length = self.meter.enter(&id.map_or([""; 3], |id| ["[", id, "]"]));
        let is_reference = xml.xsi_type() == Some("ARCHETYPE_INTERNAL_REF");
        self.references.enter(xml, archetype_id(xml).is_some());
        let node = match is_reference {
            true => self.reference(xml, root),
            false => self.node_here(xml, root),
        };
        self.references.leave();
        self.meter.leave(length);
        node
    }

    /// Reads a reference as its target, with the id and the occurrences of the reference.
    fn reference(&mut self, xml: Xml<'t>, root: usize) -> Node {
        let path = xml.text_along(&["target_path"]).unwrap_or_default();
        let found = self.references.target(path, &self.meter);
        let target = found.map(|target| self.node(target, root));
        self.references.arrive();
        let Some(target) = target else {
            let message =
                format!("the target `{path}` of a reference cannot be used: it is not checked");
            self.warn("TPL0402", xml, message);
            return self.node_here(xml, root);
        };
        let own = xml.child("occurrences");
        let own = own.map(|o| self.multiplicity(o, "occurrences"));
        target.referred(xml.text_along(&["node_id"]), own)
    }

    fn node_here(&mut self, xml: Xml<'t>, root: usize) -> Node {
        let name = ClassName::read(xml.text_along(&["rm_type_name"]));
        // Primitive types are named by their constraint, so an unknown class is expected there.
        if name.class.is_none() && xml.child("item").is_none() {
            let message = format!("`{}` is not a class of the Reference Model", name.text);
            self.warn("TPL0401", xml, message);
        }
        // In a slot, the archetype id is not that of the node.
        let is_slot = xml.xsi_type() == Some("ARCHETYPE_SLOT");
        let archetype_id = archetype_id(xml).filter(|_| !is_slot);
        let root = archetype_id
            .as_ref()
            .map_or(root, |id| self.archetype_root(xml, id));
        let constraint = self.constraint(xml);
        // Attributes below a slot would constrain archetypes that the template does not contain.
        let attributes = xml.all("attributes").filter(|_| !is_slot);
        let attributes = attributes
            .map(|a| self.attribute(a, name.class, root))
            .collect();
        let occurrences = xml
            .child("occurrences")
            .map_or(Multiplicity::ANY, |o| self.multiplicity(o, "occurrences"));
        Node {
            class: name.class,
            parameter: name.parameter,
            node_id: xml.text_along(&["node_id"]).unwrap_or_default().to_owned(),
            archetype_id,
            occurrences,
            root,
            attributes,
            tuples: Vec::new(),
            constraint,
            class_text: name.text,
            assumed: assumed(xml),
        }
    }

    fn archetype_root(&mut self, xml: Xml<'_>, id: &str) -> usize {
        let mut root = ArchetypeRoot {
            archetype_id: id.to_owned(),
            ..ArchetypeRoot::default()
        };
        let terms = xml.all("term_definitions").filter_map(|definition| {
            Some((definition.attribute("code")?.to_owned(), term(definition)))
        });
        let terms = order::map(terms);
        // A copy of the terms at each use costs memory, so the meter counts them each time.
        for term in terms.values() {
            let _is_kept = self.meter.term(xml, term);
        }
        root.terms.insert(self.language.clone(), terms);
        root.bindings = xml.all("term_bindings").flat_map(bindings).collect();
        self.roots.push(root);
        self.roots.len() - 1
    }

    /// Reads an attribute of a class.
    fn attribute(&mut self, xml: Xml<'t>, class: Option<Cls>, root: usize) -> Attribute {
        let name: String = xml
            .text_along(&["rm_attribute_name"])
            .unwrap_or_default()
            .to_owned();
        if name.is_empty() {
            self.errors.push(
                Diagnostic::error(
                    "TPL0301",
                    xml.span(),
                    "an attribute without `rm_attribute_name`",
                )
                .with_help("name the attribute"),
            );
        } else if let Some(class) = class.filter(|class| !is_known(*class, &name)) {
            let message = format!("`{name}` is not an attribute of {class}: it is not checked");
            self.warn("TPL0402", xml, message);
        }
        // The path is recorded while the children are read: excesses are reported with it.
        let length = self.meter.enter(&["/", &name]);
        let attribute = self.attribute_here(xml, name, root);
        self.meter.alternatives(xml, &attribute.children);
        self.meter.leave(length);
        attribute
    }

    fn attribute_here(&mut self, xml: Xml<'t>, name: String, root: usize) -> Attribute {
        Attribute {
            attr: Attr::parse(&name),
            existence: xml
                .child("existence")
                .map(|e| self.multiplicity(e, "existence")),
            cardinality: xml.child("cardinality").map(|c| Cardinality {
                interval: c
                    .child("interval")
                    .map_or(Multiplicity::ANY, |i| self.multiplicity(i, "cardinality")),
                is_ordered: self.flag(c, "is_ordered").unwrap_or(false),
                is_unique: self.flag(c, "is_unique").unwrap_or(false),
            }),
            children: xml.all("children").map(|c| self.node(c, root)).collect(),
            name,
        }
    }

    /// Reads the terms of further languages, which are outside the definition and refer to
    /// archetype ids.
    fn ontologies(&mut self, template: Xml<'_>) {
        let mut uses: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, root) in self.roots.iter().enumerate() {
            let id = root.archetype_id.clone();
            uses.entry(id).or_default().push(index);
        }
        let is_ontology = |name: &str| matches!(name, "ontology" | "component_ontologies");
        for ontology in template.children().filter(|c| is_ontology(c.name())) {
            let id = ontology.attribute("archetype_id").unwrap_or_default();
            for index in uses.get(id).into_iter().flatten() {
                if let Err(excess) = self.add_ontology(*index, ontology) {
                    return self.errors.push(excess);
                }
            }
        }
    }

    /// Adds the terms and bindings of an ontology to one use of its archetype. Terms that are known
    /// are kept.
    ///
    /// # Errors
    /// When the template has too many terms.
    fn add_ontology(&mut self, index: usize, ontology: Xml<'_>) -> Result<(), Diagnostic> {
        let Some(root) = self.roots.get_mut(index) else {
            return Ok(());
        };
        for set in ontology.all("term_definitions") {
            let language = set.attribute("language").unwrap_or(&self.language);
            let terms = root.terms.entry(language.to_owned()).or_default();
            for item in set.all("items") {
                let code = item.attribute("code");
                let Some(code) = code.filter(|code| !terms.contains_key(*code)) else {
                    continue;
                };
                let term = term(item);
                if !self.meter.term(item, &term) {
                    return Err(TemplateMeter::too_many_terms(item));
                }
                terms.insert(code.to_owned(), term);
            }
        }
        let bindings = ontology.all("term_bindings").flat_map(bindings);
        root.bindings.extend(bindings);
        Ok(())
    }
}

/// The maximum number of warnings about a definition. Further ones are dropped.
pub(super) const MAX_WARNINGS: usize = 100;

/// Returns whether an attribute of a class is checked. Objects may be of a descendant.
pub(super) fn is_known(class: Cls, name: &str) -> bool {
    // Functions of the model, which the validator computes.
    let function = match name {
        "offset" => Some(Cls::EVENT),
        "is_integral" => Some(Cls::DV_PROPORTION),
        _ => None,
    };
    let has = |class: Cls, attr: Attr| class.attr(attr).is_some();
    let is_attribute = |attr: Attr| {
        let mut descendants = Cls::all().filter(|other| other.is_a(class));
        has(class, attr) || descendants.any(|other| has(other, attr))
    };
    function.is_some_and(|of| class.is_a(of)) || Attr::parse(name).is_some_and(is_attribute)
}

/// Returns the class that OPT names: a class of the RM, or a primitive type in upper case or by the
/// name of its constraint.
pub(super) fn class_named(name: &str) -> Option<Cls> {
    let name = name.strip_prefix("C_").unwrap_or(name);
    Cls::parse(name)
        .or_else(|| Cls::parse_any_case(name))
        .or(match name {
            "DATE" | "TIME" | "DATE_TIME" | "DURATION" | "ISO8601_DATE" | "ISO8601_TIME"
            | "ISO8601_DATE_TIME" | "ISO8601_DURATION" => Some(Cls::STRING),
            "TERMINOLOGY_CODE" => Some(Cls::CODE_PHRASE),
            _ => None,
        })
}

pub(super) fn term(xml: Xml<'_>) -> Term {
    let mut term = Term::default();
    for item in xml.all("items") {
        match item.attribute("id") {
            Some("text") => item.text().clone_into(&mut term.text),
            Some("description") => item.text().clone_into(&mut term.description),
            Some(other) => term.others.push((other.to_owned(), item.text().to_owned())),
            None => {}
        }
    }
    term
}

fn bindings(set: Xml<'_>) -> Vec<Binding> {
    let name = set.attribute("terminology").unwrap_or_default();
    let binding = |item: Xml<'_>| {
        let terminology = item
            .text_along(&["value", "terminology_id", "value"])
            .unwrap_or(name)
            .to_owned();
        let target = item.text_along(&["value", "code_string"])?.to_owned();
        Some(Binding {
            set: name.to_owned(),
            code: item.attribute("code")?.to_owned(),
            terminology,
            target,
            is_permitted_in_data: false,
        })
    };
    set.all("items").filter_map(binding).collect()
}

/// Returns the text along a path of elements, unless it is empty.
fn text_of(xml: Xml<'_>, along: &[&str]) -> Option<String> {
    let text = xml.text_along(along).filter(|t| !t.is_empty());
    text.map(str::to_owned)
}

/// Returns the archetype id of a node.
fn archetype_id(xml: Xml<'_>) -> Option<String> {
    let id = xml
        .text_along(&["archetype_id", "value"])
        // Both forms of the element occur in published templates.
        .or_else(|| xml.text_along(&["archetype_id"]));
    id.filter(|t| !t.is_empty()).map(str::to_owned)
}

/// Returns the value to assume if data have none.
fn assumed(xml: Xml<'_>) -> Leaves {
    xml.child("assumed_value")
        .or_else(|| xml.child("item")?.child("assumed_value"))
        .map(leaves)
        .unwrap_or_default()
}

/// Returns an entry of the description's details.
fn detail<'d>(root: Xml<'d>, id: &str) -> Option<&'d str> {
    root.child("description")?
        .all("other_details")
        .find(|d| d.attribute("id") == Some(id))
        .map(Xml::text)
        .filter(|t| !t.is_empty())
}

fn version(root: Xml<'_>, template_id: &str) -> String {
    let stated = detail(root, "sem_ver").and_then(semantic);
    stated
        .or_else(|| suffix_version(template_id))
        .unwrap_or_else(|| "1.0.0".to_owned())
}

/// Returns the version at the end of an id: `x.v1`, `x.v1.2.3`, `x_v1.2.3`.
fn suffix_version(id: &str) -> Option<String> {
    id.match_indices(['.', '_'])
        .filter_map(|(i, _)| id.get(i + 1..)?.strip_prefix('v'))
        .find_map(semantic)
}

fn languages(own: &str, roots: &[ArchetypeRoot]) -> Vec<String> {
    let mut seen = HashSet::from([own]);
    let further = roots
        .iter()
        .flat_map(|r| r.terms.keys())
        .filter(|language| seen.insert(language.as_str()));
    std::iter::once(own.to_owned())
        .chain(further.cloned())
        .collect()
}

#[cfg(test)]
mod tests;
