//! Opt2Reader of operational templates of ADL 2 (AOM 2 XML).
//!
//! Both published forms are supported: multiplicities as elements, and multiplicities as texts
//! (`P_ARCHETYPE`). A definition with constraints that the tree cannot represent (references,
//! several ranges of one value, tuples of classes other than quantities, ordinals and scales) is
//! opaque. Such a template has names and a root class, and documents are checked by the Reference
//! Model alone.

use super::adl2;
use super::limits::Gauge;
use super::opt::{ClassName, term};
use super::pattern::Pattern;
use super::tree::{
    ArchetypeRoot, Attribute, Cardinality, Constraint, Interval, Multiplicity, Node, OrdinalItem,
    QuantityItem, Template, Term, Validity, semantic,
};
use super::xml::{Document, Xml};
use aqlite_rm::class::{Attr, Cls};
use aqlite_rm::diag::Diagnostic;
use aqlite_rm::number::TextForm;
use aqlite_rm::order;
use aqlite_rm::time::TemporalKind;
use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};

impl Template {
    /// Reads an operational template of ADL 2, as ADL text or as XML.
    ///
    /// The XML root is `template`, `operational_template` or `archetype`, with an id and a
    /// definition. A template with unsupported constraints is read as opaque
    /// ([`Template::is_opaque`]).
    ///
    /// # Errors
    /// All reasons why the text is not a template: codes `TPL01xx` (not well-formed, a document
    /// type, too deep, too large), `TPL02xx` (wrong root, no id, no definition, a template of ADL
    /// 1.4).
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
    if let Some(failed) = reader.failed.or(reader.gauge.failed.take()) {
        return Err(failed);
    }
    let is_opaque = reader.unknown.is_some();
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
        excesses: reader.gauge.finish(root, &node, languages.len()),
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
        warnings: reader.unknown.into_iter().collect(),
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

/// Reads the terms of a terminology by language.
fn terms(
    terminology: Xml<'_>,
    gauge: &mut Gauge,
) -> Result<BTreeMap<String, BTreeMap<String, Term>>, Diagnostic> {
    let mut all: BTreeMap<String, BTreeMap<String, Term>> = BTreeMap::new();
    for set in terminology.all("term_definitions") {
        let language = set.attribute("language").or(set.attribute("id"));
        let language = language.unwrap_or_default().to_owned();
        let terms = all.entry(language).or_default();
        for item in set.all("items") {
            if let Some(code) = item.attribute("code").or(item.attribute("id")) {
                let term = term_of(item);
                if !gauge.term(item, &term) {
                    return Err(Gauge::too_many_terms(item));
                }
                terms.insert(code.to_owned(), term);
            }
        }
    }
    Ok(all)
}

/// Reads a term, whose parts are elements with their names, or items with ids as in OPT 1.4.
fn term_of(item: Xml<'_>) -> Term {
    if item.child("text").is_none() {
        return term(item);
    }
    let within = |name: &str| item.text_along(&[name]).unwrap_or_default().to_owned();
    Term {
        text: within("text"),
        description: within("description"),
        others: Vec::new(),
    }
}

/// Reads the codes of each value set.
fn value_sets(terminology: Xml<'_>) -> BTreeMap<String, Vec<String>> {
    let sets = terminology.all("value_sets").filter_map(|set| {
        let id = set.attribute("id").or_else(|| set.text_along(&["id"]))?;
        Some((
            id.to_owned(),
            set.all("members").map(|m| m.text().to_owned()).collect(),
        ))
    });
    order::map(sets)
}

struct Opt2Reader<'d> {
    /// The terminologies of the archetypes used, by archetype id.
    components: HashMap<&'d str, Xml<'d>>,
    /// The archetypes whose value sets have been read.
    seen: HashSet<&'d str>,
    gauge: Gauge,
    /// The reason why reading stopped.
    failed: Option<Diagnostic>,
    sets: BTreeMap<String, Vec<String>>,
    roots: Vec<ArchetypeRoot>,
    /// The first constraint that the tree cannot represent.
    unknown: Option<Diagnostic>,
}

impl<'d> Opt2Reader<'d> {
    /// Reads the terminology of the template itself, whose root has the id `archetype`.
    fn of(root: Xml<'d>, archetype: &str) -> Result<Opt2Reader<'d>, Diagnostic> {
        let terminology = root.child("terminology");
        let mut gauge = Gauge::default();
        let own_terms = terminology.map(|t| terms(t, &mut gauge)).transpose()?;
        let own = ArchetypeRoot {
            archetype_id: archetype.to_owned(),
            terms: own_terms.unwrap_or_default(),
            bindings: Vec::new(),
        };
        Ok(Opt2Reader {
            components: component_terminologies(root),
            seen: HashSet::new(),
            gauge,
            failed: None,
            sets: terminology.map(value_sets).unwrap_or_default(),
            roots: vec![own],
            unknown: None,
        })
    }
    fn unknown(&mut self, xml: Xml<'d>, what: &str) {
        self.unknown.get_or_insert_with(|| {
            Diagnostic::warning(
                "TPL0404",
                xml.span(),
                format!("{what} is not understood: the definition is not checked"),
            )
        });
    }

    fn node(&mut self, xml: Xml<'d>, outer: usize) -> Node {
        self.gauge.node(xml);
        let id = xml
            .attribute("archetype_ref")
            .or_else(|| xml.attribute("node_id"))
            .filter(|id| !id.is_empty());
        let length = self.gauge.enter(&id.map_or([""; 3], |id| ["[", id, "]"]));
        let node = self.node_here(xml, outer);
        node.constraint.measure(xml, &mut self.gauge);
        self.gauge.leave(length);
        node
    }

    fn node_here(&mut self, xml: Xml<'d>, outer: usize) -> Node {
        let name = ClassName::read(xml.attribute("rm_type_name"));
        let kind = xml.xsi_type().unwrap_or("C_COMPLEX_OBJECT");
        // The prefix `P_` marks the persistent form, which has the same meaning.
        let kind = kind.strip_prefix("P_").unwrap_or(kind);
        if name.class.is_none() && matches!(kind, "C_COMPLEX_OBJECT" | "C_ARCHETYPE_ROOT") {
            self.unknown(xml, &format!("the class `{}`", name.text));
        }
        let used = xml
            .attribute("archetype_ref")
            .or_else(|| xml.text_along(&["archetype_ref"]))
            .filter(|_| kind == "C_ARCHETYPE_ROOT")
            .map(str::to_owned);
        // Terms of the archetype apply to everything below its root.
        let root = used.as_ref().map_or(outer, |id| self.used(id));
        let constraint = self.constraint(xml, kind);
        let attributes = xml.all("attributes");
        let attributes: Vec<Attribute> = attributes.map(|a| self.attribute(a, root)).collect();
        let occurrences = self.multiplicity(xml, "occurrences");
        let mut node = Node {
            class: name.class,
            parameter: name.parameter,
            node_id: xml.attribute("node_id").unwrap_or_default().to_owned(),
            archetype_id: used,
            occurrences: occurrences.unwrap_or(Multiplicity::ANY),
            root,
            attributes,
            constraint,
            class_text: name.text,
            assumed: Vec::new(),
        };
        self.tuples(xml, &mut node);
        node
    }

    /// Reads the tuples of attributes. A tuple replaces the constraints on its attributes.
    fn tuples(&mut self, xml: Xml<'d>, node: &mut Node) {
        for tuple in xml.all("attribute_tuples") {
            match tupled(node.class, tuple, &mut node.attributes) {
                Some(together) => node.constraint = together,
                None => self.unknown(tuple, "a tuple of attributes"),
            }
        }
    }

    /// Reads the component terminology of an archetype that the template uses. Returns its index.
    fn used(&mut self, id: &str) -> usize {
        let own = self
            .components
            .get_key_value(id)
            .filter(|_| self.failed.is_none());
        let mut own_terms = BTreeMap::new();
        if let Some((id, component)) = own {
            let terminology = component.child("terminology").unwrap_or(*component);
            // Value sets are shared by all uses of an archetype, terms are copied for each use.
            if self.seen.insert(id) {
                self.sets.extend(value_sets(terminology));
            }
            match terms(terminology, &mut self.gauge) {
                Ok(read) => own_terms = read,
                Err(problem) => self.failed = Some(problem),
            }
        }
        self.roots.push(ArchetypeRoot {
            archetype_id: id.to_owned(),
            terms: own_terms,
            bindings: Vec::new(),
        });
        self.roots.len() - 1
    }

    fn attribute(&mut self, xml: Xml<'d>, root: usize) -> Attribute {
        let name = xml.attribute("rm_attribute_name").unwrap_or_default();
        let attr = Attr::parse(name);
        // A differential path would constrain a node elsewhere, which the tree cannot represent.
        let path = xml.text_along(&["differential_path"]);
        let is_elsewhere = path.is_some_and(|p| !p.is_empty());
        if attr.is_none() || is_elsewhere {
            self.unknown(xml, &format!("the attribute `{name}`"));
        }
        let cardinality = self.cardinality(xml);
        let length = self.gauge.enter(&["/", name]);
        if let Some(c) = cardinality {
            self.gauge.count(xml, "cardinality", c.interval);
        }
        let attribute = Attribute {
            attr,
            existence: self.multiplicity(xml, "existence"),
            cardinality,
            children: xml.all("children").map(|c| self.node(c, root)).collect(),
            name: name.to_owned(),
        };
        self.gauge.alternatives(xml, &attribute.children);
        self.gauge.leave(length);
        attribute
    }

    /// Reads a cardinality: an attribute such as `0..1; unordered; unique`, or an element.
    fn cardinality(&mut self, xml: Xml<'d>) -> Option<Cardinality> {
        let written = xml.attribute("cardinality").unwrap_or_default();
        let element = xml.child("cardinality");
        let says = |flag: &str, word: &str| {
            written.contains(word) || element.is_some_and(|c| c.text_along(&[flag]) == Some("true"))
        };
        let interval = match element {
            Some(c) => c.child("interval").and_then(|i| self.bounds(i)),
            None => multiplicity(written.split(';').next().unwrap_or_default()),
        };
        Some(Cardinality {
            interval: interval?,
            is_ordered: says("is_ordered", " ordered"),
            is_unique: says("is_unique", "unique"),
        })
    }

    fn constraint(&mut self, xml: Xml<'d>, kind: &str) -> Constraint {
        match kind {
            "C_COMPLEX_OBJECT" | "C_ARCHETYPE_ROOT" => Constraint::Open,
            "ARCHETYPE_SLOT" => Constraint::Slot {
                includes: self.assertions(xml, "includes"),
                excludes: self.assertions(xml, "excludes"),
            },
            "C_BOOLEAN" => boolean(xml),
            "C_STRING" => self.text(xml),
            "C_INTEGER" => match points(xml) {
                Some(list) => Constraint::Integer { range: None, list },
                None => Constraint::Integer {
                    range: self.range(xml),
                    list: Vec::new(),
                },
            },
            "C_REAL" => match points(xml) {
                Some(list) => Constraint::Real { range: None, list },
                None => Constraint::Real {
                    range: self.range(xml),
                    list: Vec::new(),
                },
            },
            "C_TERMINOLOGY_CODE" => self.code(xml),
            "C_DATE" => self.temporal(xml, TemporalKind::Date),
            "C_TIME" => self.temporal(xml, TemporalKind::Time),
            "C_DATE_TIME" => self.temporal(xml, TemporalKind::DateTime),
            "C_DURATION" => self.temporal(xml, TemporalKind::Duration),
            other => {
                self.unknown(xml, &format!("a constraint of type `{other}`"));
                Constraint::Open
            }
        }
    }

    /// Reads a list of texts, or one expression between slashes.
    fn text(&mut self, xml: Xml<'d>) -> Constraint {
        let all: Vec<&str> = xml.all("constraint").map(Xml::text).collect();
        let (pattern, list) = match all.as_slice() {
            [one] if expression(one).is_some() => {
                let pattern = expression(one).and_then(|source| self.gauge.compile(xml, source));
                if pattern.is_none() {
                    self.unknown(xml, &format!("the expression `{one}`"));
                }
                (pattern, Vec::new())
            }
            list => {
                if list.iter().any(|text| expression(text).is_some()) {
                    self.unknown(xml, "a list with expressions");
                }
                (None, list.iter().map(|text| (*text).to_owned()).collect())
            }
        };
        Constraint::Text {
            pattern,
            list,
            open: false,
        }
    }

    /// Reads a code of the archetype, or a value set.
    fn code(&mut self, xml: Xml<'d>) -> Constraint {
        let named = xml.text_along(&["constraint"]).unwrap_or_default();
        match self.sets.get(named) {
            _ if named.is_empty() => Constraint::Open,
            Some(members) => Constraint::Code {
                terminology: "local".to_owned(),
                codes: members.clone(),
            },
            None if named.starts_with("ac") => Constraint::CodeSet {
                reference: named.to_owned(),
            },
            None => Constraint::Code {
                terminology: "local".to_owned(),
                codes: vec![named.to_owned()],
            },
        }
    }

    fn temporal(&mut self, xml: Xml<'d>, kind: TemporalKind) -> Constraint {
        let pattern = xml
            .text_along(&["pattern_constraint"])
            .or(xml.attribute("pattern_constraint"))
            .filter(|p| !p.is_empty())
            .map(str::to_owned);
        Constraint::Temporal {
            kind,
            pattern,
            range: self.range(xml),
            fraction: Validity::Optional,
            zone: Validity::Optional,
        }
    }

    /// Reads the range of a value. A lower limit alone, without `upper_unbounded`, is a single
    /// value.
    fn range<T: TextForm + Clone>(&mut self, xml: Xml<'d>) -> Option<Interval<T>> {
        let mut all = xml.all("constraint");
        let first = all.next()?;
        if let Some(second) = all.next() {
            self.unknown(second, "a value with several ranges");
        }
        let mut range = self.interval::<T>(first)?;
        if range.upper.is_none() && is_point(first) {
            range.upper.clone_from(&range.lower);
        }
        Some(range)
    }

    fn interval<T: TextForm>(&mut self, xml: Xml<'d>) -> Option<Interval<T>> {
        let says = |name: &str, default: bool| {
            xml.attribute(name)
                .or_else(|| xml.text_along(&[name]))
                .map_or(default, |t| t == "true")
        };
        let mut limit = |name: &str| {
            let sent = xml.text_along(&[name]).or_else(|| xml.attribute(name));
            let is_unbounded = || says(&format!("{name}_unbounded"), false);
            let sent = sent.filter(|t| !t.is_empty() && !is_unbounded())?;
            let read = T::from_text(sent);
            if read.is_none() {
                self.unknown(xml, &format!("the limit `{sent}`"));
            }
            read
        };
        let (lower, upper) = (limit("lower"), limit("upper"));
        let is_bounded = lower.is_some() || upper.is_some();
        is_bounded.then(|| Interval {
            lower,
            upper,
            lower_included: says("lower_included", true),
            upper_included: says("upper_included", true),
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
            None => xml.attribute(name).and_then(multiplicity),
        };
        count
            .into_iter()
            .for_each(|count| self.gauge.count(xml, name, count));
        count
    }

    fn assertions(&mut self, slot: Xml<'d>, name: &'d str) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for assertion in slot.all(name) {
            let written = assertion
                .text_along(&["string_expression"])
                .and_then(|s| Some(s.split_once("{/")?.1.rsplit_once("/}")?.0));
            match written.and_then(|source| self.gauge.compile(assertion, source)) {
                Some(pattern) => patterns.push(pattern),
                None => self.unknown(assertion, "the rule of a slot"),
            }
        }
        patterns
    }
}

/// Returns whether a range is one value: equal limits, or a lower limit without `upper_unbounded`.
fn is_point(range: Xml<'_>) -> bool {
    let said = |name: &str| {
        range
            .attribute(name)
            .or_else(|| range.text_along(&[name]))
            .filter(|t| !t.is_empty())
    };
    match (said("lower"), said("upper")) {
        (Some(_), None) => said("upper_unbounded") != Some("true"),
        (lower, upper) => lower.is_some() && lower == upper,
    }
}

/// Returns the regular expression between slashes.
fn expression(text: &str) -> Option<&str> {
    text.strip_prefix('/').and_then(|t| t.strip_suffix('/'))
}

/// Reads the permitted booleans: both, if none is listed.
fn boolean(xml: Xml<'_>) -> Constraint {
    let allows = |value: &str| {
        let mut listed = xml.all("constraint");
        xml.child("constraint").is_none() || listed.any(|c| c.text().eq_ignore_ascii_case(value))
    };
    Constraint::Boolean {
        true_valid: allows("true"),
        false_valid: allows("false"),
    }
}

/// Reads several single numbers. Returns `None` for one range, or if any range is not a single
/// number.
fn points<T: TextForm>(xml: Xml<'_>) -> Option<Vec<T>> {
    let all: Vec<Xml<'_>> = xml.all("constraint").collect();
    let number = |range: &Xml<'_>| {
        range
            .text_along(&["lower"])
            .filter(|_| is_point(*range))
            .and_then(T::from_text)
    };
    if all.len() < 2 {
        None
    } else {
        all.iter().map(number).collect()
    }
}

/// Reads attributes that are constrained together as tuples.
///
/// These are units, magnitude and precision of a quantity, and value and symbol of an ordinal or
/// scale. They are removed from the attributes that are constrained one by one.
fn tupled(
    class: Option<Cls>,
    tuple: Xml<'_>,
    attributes: &mut Vec<Attribute>,
) -> Option<Constraint> {
    let names: Vec<&str> = tuple.all("members").map(Xml::text).collect();
    // Supported tuples have at most three members.
    if names.len() > 3 {
        return None;
    }
    let (members, others): (Vec<Attribute>, Vec<Attribute>) = std::mem::take(attributes)
        .into_iter()
        .partition(|a| names.contains(&a.name.as_str()));
    *attributes = others;
    let table = TupleTable {
        rows: members.first()?.children.len(),
        members,
    };
    let is_known = |known: &[&str]| table.members.len() == names.len() && table.has_only(known);
    match class? {
        Cls::DV_QUANTITY if is_known(&["units", "magnitude", "precision"]) => {
            let list = (0..table.rows).map(|row| table.quantity(row));
            Some(Constraint::Quantity {
                property: None,
                list: list.collect::<Option<_>>()?,
            })
        }
        Cls::DV_ORDINAL | Cls::DV_SCALE if is_known(&["value", "symbol"]) => {
            let list = (0..table.rows).map(|row| table.ordinal(row));
            Some(Constraint::Ordinal {
                list: list.collect::<Option<_>>()?,
            })
        }
        _ => None,
    }
}

/// The rows of a tuple: each member has one child for each row.
struct TupleTable {
    members: Vec<Attribute>,
    rows: usize,
}

impl TupleTable {
    /// Returns whether all members have these names and a child for each row.
    fn has_only(&self, known: &[&str]) -> bool {
        let mut members = self.members.iter();
        members.all(|m| known.contains(&m.name.as_str()) && m.children.len() == self.rows)
    }

    fn cell(&self, name: &str, row: usize) -> Option<&Constraint> {
        let member = self.members.iter().find(|m| m.name == name)?;
        Some(&member.children.get(row)?.constraint)
    }

    fn quantity(&self, row: usize) -> Option<QuantityItem> {
        let range = |name: &str| self.cell(name, row).and_then(range_of);
        Some(QuantityItem {
            units: self.cell("units", row).and_then(only_text)?,
            magnitude: range("magnitude"),
            precision: range("precision"),
        })
    }

    fn ordinal(&self, row: usize) -> Option<OrdinalItem> {
        let range = self.cell("value", row).and_then(range_of)?;
        let value = range.lower.filter(|lower| range.upper == Some(*lower))?;
        ordinal_item(value, self.cell("symbol", row)?)
    }
}

/// Returns a pair of value and symbol, if the symbol is exactly one code.
fn ordinal_item(value: f64, symbol: &Constraint) -> Option<OrdinalItem> {
    let Constraint::Code { terminology, codes } = symbol else {
        return None;
    };
    let [code] = codes.as_slice() else {
        return None;
    };
    Some(OrdinalItem {
        value,
        terminology: terminology.clone(),
        code: code.clone(),
    })
}

fn range_of(constraint: &Constraint) -> Option<Interval<f64>> {
    match constraint {
        Constraint::Integer { range, .. } | Constraint::Real { range, .. } => range.clone(),
        _ => None,
    }
}

fn only_text(constraint: &Constraint) -> Option<String> {
    match constraint {
        Constraint::Text {
            pattern: None,
            list,
            ..
        } if list.len() == 1 => list.first().cloned(),
        _ => None,
    }
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
