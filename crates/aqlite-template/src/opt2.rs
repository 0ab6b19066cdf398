//! A reader of operational templates of ADL 2 in XML (AOM 2).
//!
//! Both published forms are supported: multiplicities as elements, and multiplicities as texts
//! (`P_ARCHETYPE`). A value with several ranges becomes alternatives, a reference a copy of its
//! target. A constraint that the tree cannot represent leaves its node unchecked. A definition with
//! a class that the Reference Model does not have is opaque: documents are checked by the Reference
//! Model alone.

mod terminology;
mod tuple;
mod value;

use super::adl2;
use super::limits::TemplateMeter;
use super::opt::{ClassName, MAX_WARNINGS, is_known};
use super::reference::References;
use super::tree::{
    ArchetypeRoot, Attribute, Cardinality, Constraint, Multiplicity, Node, Template, semantic,
};
use super::xml::{Document, Xml};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::order;
use std::collections::BTreeMap;
use std::collections::HashMap;
use terminology::{bindings, substitute_prescribed, terms, value_sets};
use tuple::{Columns, MAX_TUPLES};
use value::PROXY;

impl Template {
    /// Reads an operational template of ADL 2, as ADL text or as XML.
    ///
    /// The XML root is `template`, `operational_template` or `archetype`, with an id and a
    /// definition. A constraint that is not supported is a warning (`TPL0404`), and a template with a
    /// foreign class is opaque ([`Template::is_opaque`]).
    ///
    /// # Errors
    /// All reasons why the text is not a template: codes `TPL01xx` (not well-formed, a document
    /// type, too deep, too large), `TPL02xx` (wrong root, no id, no definition, a template of ADL
    /// 1.4), `TPL03xx` (an unreadable boolean, too many terms).
    pub fn parse_opt2(text: &str) -> Result<Template, Vec<Diagnostic>> {
        Template::of_opt2(&opt2_document(text).map_err(|d| vec![d])?)
    }

    /// Converts the elements of an operational template of ADL 2.
    pub(super) fn of_opt2<'a>(document: &'a Document<'a>) -> Result<Template, Vec<Diagnostic>> {
        let Some(root) = document.root() else {
            return Err(Vec::new());
        };
        check_root(root).map_err(|d| vec![d])?;
        let missing = |name: &str| {
            Diagnostic::error("TPL0202", root.span(), format!("`{name}` is missing"))
                .with_help(format!("add `<{name}>`"))
        };
        let id = root
            .child("template_id")
            .or_else(|| root.child("archetype_id"));
        let (id, definition) = (id.and_then(full_id), root.child("definition"));
        let mut errors = Vec::new();
        errors.extend(id.is_none().then(|| missing("archetype_id")));
        errors.extend(definition.is_none().then(|| missing("definition")));
        match (id, definition) {
            (Some(id), Some(definition)) => template(root, definition, id).map_err(|d| vec![d]),
            _ => Err(errors),
        }
    }
}

/// Parses a text that is XML or ADL into elements.
pub(super) fn opt2_document(text: &str) -> Result<Document<'_>, Diagnostic> {
    if adl2::is_adl(text) {
        adl2::document(text)
    } else {
        Document::parse(text)
    }
}

/// Checks that the root is that of an operational template of ADL 2.
fn check_root(root: Xml<'_>) -> Result<(), Diagnostic> {
    let (code, message, help) = if !ROOTS.contains(&root.name()) {
        let message = format!(
            "the root element is `{}`, expected `operational_template`, `template` or `archetype`",
            root.name()
        );
        let help = "send an operational template of ADL 2 as XML";
        ("TPL0201", message, help)
    } else if is_opt14(root) {
        let message = "this is an operational template of ADL 1.4, expected one of ADL 2";
        let help = "send it as `opt14`, or below `definition/template/adl1.4`";
        ("TPL0206", message.to_owned(), help)
    } else {
        return Ok(());
    };
    Err(Diagnostic::error(code, root.span(), message).with_help(help))
}

/// The names of a root element.
const ROOTS: [&str; 3] = ["template", "operational_template", "archetype"];

/// Returns whether a template is of ADL 1.4.
///
/// `Template.xsd` requires a concept and a definition with an archetype id. AOM 2 requires an
/// archetype id and a terminology of the template itself, which `Template.xsd` does not define.
fn is_opt14(root: Xml<'_>) -> bool {
    let has = |name: &str| root.child(name).is_some();
    let names_archetype = root
        .child("definition")
        .is_some_and(|definition| definition.child("archetype_id").is_some());
    root.name() == "template"
        && has("concept")
        && names_archetype
        && !has("archetype_id")
        && !has("terminology")
}

fn template(root: Xml<'_>, definition: Xml<'_>, id: String) -> Result<Template, Diagnostic> {
    let language = original_language(root).to_owned();
    let archetype = root
        .child("archetype_id")
        .and_then(full_id)
        .unwrap_or_else(|| id.clone());
    let mut reader = Opt2Reader::of(root, &archetype)?;
    let mut node = reader.node(definition, 0);
    node.archetype_id = Some(archetype.clone());
    // A document has one root.
    node.occurrences.upper.get_or_insert(1);
    if let Some(failed) = reader.failed.or(reader.meter.failed.take()) {
        return Err(failed);
    }
    let is_opaque = reader.is_opaque;
    if is_opaque {
        node.attributes.clear();
        node.constraint = Constraint::Open;
    }
    let own = reader.roots.first();
    let concept = own
        .and_then(|r| r.terms.get(&language)?.get(&node.node_id))
        .map(|t| t.text.clone());
    let languages = languages_of(own, &language);
    Ok(Template {
        version: version(&id),
        concept: concept.unwrap_or_else(|| concept_of(&id).to_owned()),
        archetype_id: archetype,
        excesses: reader.meter.finish(root, &node, languages.len()),
        languages,
        uid: uid(root),
        is_opaque,
        template_id: id,
        language,
        definition: node,
        roots: reader.roots,
        annotations: Vec::new(),
        defaults: Vec::new(),
        singleton: None,
        warnings: reader.unknown,
    })
}

/// Returns the uid, unless it is empty.
fn uid(root: Xml<'_>) -> Option<String> {
    let uid = root
        .text_along(&["uid", "value"])
        .or_else(|| root.text_along(&["uid"]));
    uid.filter(|u| !u.is_empty()).map(str::to_owned)
}

fn original_language<'d>(root: Xml<'d>) -> &'d str {
    ["language", "original_language"]
        .iter()
        .find_map(|name| root.text_along(&[name, "code_string"]))
        .unwrap_or("en")
}

/// Returns the terminologies of the archetypes used, by archetype id. The first of an id counts.
fn component_terminologies<'d>(root: Xml<'d>) -> HashMap<&'d str, Xml<'d>> {
    let mut components: HashMap<&str, Xml<'_>> = HashMap::new();
    for component in root.all("component_terminologies") {
        let ids = [
            component.attribute("id"),
            component.attribute("archetype_id"),
        ];
        for id in ids.into_iter().flatten() {
            components.entry(id).or_insert(component);
        }
    }
    components
}

/// Returns the languages with terms, the original language first.
fn languages_of(own: Option<&ArchetypeRoot>, original: &str) -> Vec<String> {
    let mut languages: Vec<String> = own
        .map(|r| r.terms.keys().cloned().collect())
        .unwrap_or_default();
    order::sort_by_key(&mut languages, |l| l != original);
    if languages.is_empty() {
        languages.push(original.to_owned());
    }
    languages
}

/// Returns an id given as text, or as the parts of an ARCHETYPE_HRID.
fn full_id(xml: Xml<'_>) -> Option<String> {
    let written = xml
        .attribute("physical_id")
        .or_else(|| xml.text_along(&["value"]))
        .unwrap_or_else(|| xml.text())
        .trim();
    if !written.is_empty() {
        return Some(written.to_owned());
    }
    let part = |name: &str| xml.attribute(name).filter(|p| !p.is_empty());
    let concept = xml.text_along(&["concept_id"]).filter(|c| !c.is_empty())?;
    Some(format!(
        "{}-{}-{}.{concept}.v{}",
        part("rm_publisher")?,
        part("rm_package")?,
        part("rm_class")?,
        part("release_version")?
    ))
}

fn version(id: &str) -> String {
    id.rsplit_once(".v")
        .and_then(|(_, version)| semantic(version))
        .unwrap_or_else(|| "1.0.0".to_owned())
}

fn concept_of(id: &str) -> &str {
    let front = id.rsplit_once(".v").map_or(id, |(front, _)| front);
    front.rsplit_once('.').map_or(front, |(_, concept)| concept)
}

struct Opt2Reader<'d> {
    /// The terminologies of the archetypes used, by archetype id.
    components: HashMap<&'d str, Xml<'d>>,
    meter: TemplateMeter,
    references: References<'d>,
    /// The reason why reading stopped.
    failed: Option<Diagnostic>,
    /// The value sets by archetype id, then by code.
    sets: HashMap<String, BTreeMap<String, Vec<String>>>,
    roots: Vec<ArchetypeRoot>,
    /// The constraints that the tree cannot represent.
    unknown: Vec<Diagnostic>,
    /// Whether the definition has a class that the Reference Model does not have.
    is_opaque: bool,
}

impl<'d> Opt2Reader<'d> {
    /// Reads the terminology of the template itself, whose root has the id `archetype`.
    fn of(root: Xml<'d>, archetype: &str) -> Result<Opt2Reader<'d>, Diagnostic> {
        let terminology = root.child("terminology");
        let mut meter = TemplateMeter::default();
        let own_terms = terminology.map(|t| terms(t, &mut meter)).transpose()?;
        let own = ArchetypeRoot {
            archetype_id: archetype.to_owned(),
            terms: own_terms.unwrap_or_default(),
            bindings: terminology.map(bindings).unwrap_or_default(),
        };
        let sets = terminology.map(value_sets).unwrap_or_default();
        Ok(Opt2Reader {
            components: component_terminologies(root),
            meter,
            references: References::default(),
            failed: None,
            sets: HashMap::from([(archetype.to_owned(), sets)]),
            roots: vec![own],
            unknown: Vec::new(),
            is_opaque: false,
        })
    }

    /// Records a constraint that is not checked.
    fn unknown(&mut self, xml: Xml<'d>, what: &str) {
        if self.unknown.len() < MAX_WARNINGS {
            let message = format!("{what} is not understood: it is not checked");
            let warning = Diagnostic::warning("TPL0404", xml.span(), message);
            // A value with several constraints is read twice.
            if !self.unknown.contains(&warning) {
                self.unknown.push(warning);
            }
        }
    }

    /// Reads an object. A value with several ranges becomes one alternative for each.
    fn alternatives(&mut self, xml: Xml<'d>, root: usize) -> Vec<Node> {
        let node = self.node(xml, root);
        let mut all = Vec::new();
        for constraint in self.further_constraints(xml, root) {
            self.meter.node(xml);
            constraint.measure(xml, &mut self.meter);
            all.push(Node {
                constraint,
                ..node.clone()
            });
        }
        all.insert(0, node);
        all
    }

    fn node(&mut self, xml: Xml<'d>, outer: usize) -> Node {
        self.meter.node(xml);
        let id = xml
            .attribute("archetype_ref")
            .or_else(|| xml.attribute("node_id"))
            .filter(|id| !id.is_empty());
        let length = self.meter.enter(&id.map_or([""; 3], |id| ["[", id, "]"]));
        let kind = kind_of(xml);
        self.references.enter(xml, kind == "C_ARCHETYPE_ROOT");
        let node = match kind == PROXY {
            true => self.reference(xml, outer),
            false => self.node_here(xml, outer),
        };
        self.references.leave();
        node.constraint.measure(xml, &mut self.meter);
        self.meter.leave(length);
        node
    }

    /// Reads a reference as its target, with the id and the occurrences of the reference.
    fn reference(&mut self, xml: Xml<'d>, outer: usize) -> Node {
        let path = xml
            .attribute("target_path")
            .or_else(|| xml.text_along(&["target_path"]))
            .unwrap_or_default();
        let found = self.references.target(path, &self.meter);
        let target = found.map(|target| self.node(target, outer));
        self.references.arrive();
        let Some(target) = target else {
            self.unknown(xml, &format!("the target `{path}` of a reference"));
            return self.node_here(xml, outer);
        };
        let own = self.multiplicity(xml, "occurrences");
        target.referred(xml.attribute("node_id"), own)
    }

    fn node_here(&mut self, xml: Xml<'d>, outer: usize) -> Node {
        let name = ClassName::read(xml.attribute("rm_type_name"));
        let kind = kind_of(xml);
        if name.class.is_none() && matches!(kind, "C_COMPLEX_OBJECT" | "C_ARCHETYPE_ROOT") {
            self.unknown(xml, &format!("the class `{}`", name.text));
            self.is_opaque = true;
        }
        let used = xml
            .attribute("archetype_ref")
            .or_else(|| xml.text_along(&["archetype_ref"]))
            .filter(|_| kind == "C_ARCHETYPE_ROOT")
            .map(str::to_owned);
        // Terms of the archetype apply to everything below its root.
        let root = used.as_ref().map_or(outer, |id| self.used(id));
        let constraint = self.constraint(xml, kind, root);
        let attributes = xml.all("attributes");
        let mut columns = Columns::of(xml);
        let mut attributes: Vec<Attribute> = attributes
            .map(|a| self.attribute(a, name.class, root, &mut columns))
            .collect();
        if let Some(class) = name.class {
            for attribute in &mut attributes {
                substitute_prescribed(class, attribute, &self.roots);
            }
        }
        let occurrences = self.multiplicity(xml, "occurrences");
        // The value of a constraint that is not understood may be of any primitive type.
        let is_object = matches!(
            kind,
            "C_COMPLEX_OBJECT" | "C_ARCHETYPE_ROOT" | "ARCHETYPE_SLOT"
        );
        let class = name.class.or((!is_object).then_some(Cls::STRING));
        let mut node = Node {
            class,
            parameter: name.parameter,
            node_id: xml.attribute("node_id").unwrap_or_default().to_owned(),
            archetype_id: used,
            occurrences: occurrences.unwrap_or(Multiplicity::ANY),
            root,
            attributes,
            tuples: Vec::new(),
            constraint,
            class_text: name.text,
            assumed: Vec::new(),
        };
        for (number, tuple) in xml.all("attribute_tuples").enumerate() {
            if number >= MAX_TUPLES || columns.constrain(&mut node, tuple).is_none() {
                self.unknown(tuple, "a tuple of attributes");
            }
        }
        node
    }

    /// Reads the component terminology of an archetype that the template uses. Returns its index.
    fn used(&mut self, id: &str) -> usize {
        let own = self
            .components
            .get_key_value(id)
            .filter(|_| self.failed.is_none());
        let mut own_terms = BTreeMap::new();
        let mut own_bindings = Vec::new();
        if let Some((id, component)) = own {
            let terminology = component.child("terminology").unwrap_or(*component);
            // Value sets are shared by all uses of an archetype, terms are copied for each use.
            if !self.sets.contains_key(*id) {
                self.sets.insert((*id).to_owned(), value_sets(terminology));
            }
            own_bindings = bindings(terminology);
            match terms(terminology, &mut self.meter) {
                Ok(read) => own_terms = read,
                Err(problem) => self.failed = Some(problem),
            }
        }
        self.roots.push(ArchetypeRoot {
            archetype_id: id.to_owned(),
            terms: own_terms,
            bindings: own_bindings,
        });
        self.roots.len() - 1
    }

    /// Reads an attribute of a class. `columns` are the attributes that tuples constrain.
    fn attribute(
        &mut self,
        xml: Xml<'d>,
        class: Option<Cls>,
        root: usize,
        columns: &mut Columns<'d>,
    ) -> Attribute {
        let name = xml.attribute("rm_attribute_name").unwrap_or_default();
        let attr = Attr::parse(name);
        // A differential path would constrain a node elsewhere, which the tree cannot represent.
        let path = xml.text_along(&["differential_path"]);
        let is_elsewhere = path.is_some_and(|p| !p.is_empty());
        let is_known = match class {
            Some(class) => is_known(class, name),
            None => attr.is_some(),
        };
        if !is_known || is_elsewhere {
            self.unknown(xml, &format!("the attribute `{name}`"));
        }
        let cardinality = self.cardinality(xml);
        let length = self.meter.enter(&["/", name]);
        if let Some(c) = cardinality {
            self.meter.count(xml, "cardinality", c.interval);
        }
        let mut attribute = Attribute {
            attr: attr.filter(|_| !is_elsewhere),
            existence: self.multiplicity(xml, "existence"),
            cardinality,
            children: Vec::new(),
            name: name.to_owned(),
        };
        columns.begin(name);
        let definition = class.zip(attr).and_then(|(class, attr)| class.attr(attr));
        let is_coded_text = definition.is_some_and(|d| d.ty == Cls::DV_CODED_TEXT);
        for child in xml.all("children") {
            let mut read = self.alternatives(child, root);
            if is_coded_text && kind_of(child) == "C_TERMINOLOGY_CODE" {
                read.iter().for_each(|_| self.meter.node(child));
                read = read.into_iter().map(coded_text).collect();
            }
            attribute.children.extend(read);
            columns.end_cell(name, attribute.children.len());
        }
        if definition.is_some_and(|definition| !definition.card.is_list()) {
            for child in &mut attribute.children {
                // AOM 2, `C_OBJECT.effective_occurrences`: the attribute has one value.
                child.occurrences.upper.get_or_insert(1);
            }
        }
        self.meter.alternatives(xml, &attribute.children);
        self.meter.leave(length);
        attribute
    }

    /// Reads a cardinality: an attribute such as `0..1; unordered; unique`, or an element.
    fn cardinality(&mut self, xml: Xml<'d>) -> Option<Cardinality> {
        let written = xml.attribute("cardinality").unwrap_or_default();
        let element = xml.child("cardinality");
        let mut says = |flag: &str, word: &str| {
            let is_set = element.and_then(|c| self.flag(c, flag));
            written.contains(word) || is_set == Some(true)
        };
        let (is_ordered, is_unique) = (says("is_ordered", " ordered"), says("is_unique", "unique"));
        let interval = match element {
            Some(c) => c.child("interval").and_then(|i| self.bounds(i)),
            None => self.written_multiplicity(
                xml,
                "cardinality",
                written.split_once(';').map_or(written, |(count, _)| count),
            ),
        };
        Some(Cardinality {
            interval: interval?,
            is_ordered,
            is_unique,
        })
    }

    fn bounds(&mut self, xml: Xml<'d>) -> Option<Multiplicity> {
        self.interval::<u32>(xml).map(|i| Multiplicity {
            lower: i.lower.unwrap_or_default(),
            upper: i.upper,
        })
    }

    /// Reads a multiplicity: an element with limits, or an attribute such as `0..1`.
    fn multiplicity(&mut self, xml: Xml<'d>, name: &str) -> Option<Multiplicity> {
        let count = match xml.child(name) {
            Some(element) => self.bounds(element),
            None => {
                let written = xml.attribute(name).unwrap_or_default();
                self.written_multiplicity(xml, name, written)
            }
        };
        count
            .into_iter()
            .for_each(|count| self.meter.count(xml, name, count));
        count
    }
    /// Reads the text of a multiplicity. An empty one counts as absent, and an unreadable one is
    /// reported.
    fn written_multiplicity(
        &mut self,
        xml: Xml<'d>,
        name: &str,
        written: &str,
    ) -> Option<Multiplicity> {
        let count = multiplicity(written);
        if count.is_none() && !written.trim().is_empty() {
            self.unknown(xml, &format!("the {name} `{written}`"));
        }
        count
    }
}

/// Returns the coded text with a code. A template may constrain a coded text, such as the symbol of
/// an ordinal, by its code alone.
fn coded_text(code: Node) -> Node {
    Node {
        class: Some(Cls::DV_CODED_TEXT),
        parameter: None,
        node_id: String::new(),
        archetype_id: None,
        occurrences: code.occurrences,
        root: code.root,
        tuples: Vec::new(),
        constraint: Constraint::Open,
        class_text: Cls::DV_CODED_TEXT.to_string(),
        assumed: Vec::new(),
        attributes: vec![Attribute {
            attr: Some(Attr::DEFINING_CODE),
            existence: None,
            cardinality: None,
            name: Attr::DEFINING_CODE.to_string(),
            children: vec![Node {
                occurrences: Multiplicity {
                    upper: Some(1),
                    ..Multiplicity::ANY
                },
                ..code
            }],
        }],
    }
}

/// Returns the class of a constraint. The prefix `P_` marks the persistent form, which has the same
/// meaning.
fn kind_of<'d>(xml: Xml<'d>) -> &'d str {
    let kind = xml.xsi_type().unwrap_or("C_COMPLEX_OBJECT");
    kind.strip_prefix("P_").unwrap_or(kind)
}

/// Parses `1`, `0..1` or `1..*`.
fn multiplicity(text: &str) -> Option<Multiplicity> {
    let (lower, upper) = text
        .trim()
        .split_once("..")
        .unwrap_or((text.trim(), text.trim()));
    let upper = if upper.trim() == "*" {
        None
    } else {
        Some(upper.trim().parse().ok()?)
    };
    let lower = if lower == "*" {
        0
    } else {
        lower.trim().parse().ok()?
    };
    Some(Multiplicity { lower, upper })
}

#[cfg(test)]
mod tests;
