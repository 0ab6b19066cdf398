//! Opt2Reader of operational templates of ADL 2 (AOM 2 XML).
//!
//! Both published forms are supported: multiplicities as elements, and multiplicities as texts
//! (`P_ARCHETYPE`). A definition with constraints that the tree cannot represent (references,
//! several ranges of one value, tuples of classes other than quantities, ordinals and scales) is
//! opaque. Such a template has names and a root class, and documents are checked by the Reference
//! Model alone.

use super::adl2;
use super::limits::Gauge;
use super::opt::{class_named, term};
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
        if !["template", "operational_template", "archetype"].contains(&root.name()) {
            let message = format!(
                "the root element is `{}`, expected `operational_template`, `template` or `archetype`",
                root.name()
            );
            return Err(vec![
                Diagnostic::error("TPL0201", root.span(), message)
                    .with_help("send an operational template of ADL 2 as XML"),
            ]);
        }
        if is_opt14(root) {
            let message = "this is an operational template of ADL 1.4, expected one of ADL 2";
            return Err(vec![
                Diagnostic::error("TPL0206", root.span(), message)
                    .with_help("send it as `opt14`, or below `definition/template/adl1.4`"),
            ]);
        }
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
    let terminology = root.child("terminology");
    let mut gauge = Gauge::default();
    let own_terms = terminology
        .map(|t| terms(t, &mut gauge))
        .transpose()?
        .unwrap_or_default();
    let own = ArchetypeRoot {
        archetype_id: archetype.clone(),
        terms: own_terms,
        bindings: Vec::new(),
    };
    let mut reader = Opt2Reader {
        components: component_terminologies(root),
        seen: HashSet::new(),
        gauge,
        failed: None,
        sets: terminology.map(value_sets).unwrap_or_default(),
        roots: vec![own],
        unknown: None,
    };
    let mut node = reader.node(definition, 0);
    node.archetype_id = Some(archetype.clone());
    if let Some(failed) = reader.failed.or(reader.gauge.failed.take()) {
        return Err(failed);
    }
    let mut warnings = Vec::new();
    if let Some(unknown) = reader.unknown {
        warnings.push(unknown);
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
        uid: root
            .text_along(&["uid", "value"])
            .or_else(|| root.text_along(&["uid"]))
            .filter(|u| !u.is_empty())
            .map(str::to_owned),
        is_opaque: !warnings.is_empty(),
        template_id: id,
        language,
        definition: node,
        roots: reader.roots,
        annotations: Vec::new(),
        defaults: Vec::new(),
        singleton: None,
        warnings,
    })
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
        let language = set
            .attribute("language")
            .or(set.attribute("id"))
            .unwrap_or_default();
        let mut terms = all.remove(language).unwrap_or_default();
        for item in set.all("items") {
            if let Some(code) = item.attribute("code").or(item.attribute("id")) {
                let within = |name: &str| item.text_along(&[name]).unwrap_or_default().to_owned();
                let as_elements = || Term {
                    text: within("text"),
                    description: within("description"),
                    others: Vec::new(),
                };
                let term = if item.child("text").is_some() {
                    as_elements()
                } else {
                    term(item)
                };
                if !gauge.term(item, &term) {
                    return Err(Gauge::too_many_terms(item));
                }
                terms.insert(code.to_owned(), term);
            }
        }
        all.insert(language.to_owned(), terms);
    }
    Ok(all)
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
        let class_text: String = xml
            .attribute("rm_type_name")
            .unwrap_or_default()
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        let (name, parameter) = match class_text.split_once('<') {
            Some((name, inner)) => (name, Cls::parse(inner.trim_end_matches('>'))),
            None => (class_text.as_str(), None),
        };
        let class = class_named(name);
        let kind = xml.xsi_type().unwrap_or("C_COMPLEX_OBJECT");
        // The prefix `P_` marks the persistent form, which has the same meaning.
        let kind = kind.strip_prefix("P_").unwrap_or(kind);
        if class.is_none() && matches!(kind, "C_COMPLEX_OBJECT" | "C_ARCHETYPE_ROOT") {
            self.unknown(xml, &format!("the class `{class_text}`"));
        }
        let used = xml
            .attribute("archetype_ref")
            .or_else(|| xml.text_along(&["archetype_ref"]))
            .filter(|_| kind == "C_ARCHETYPE_ROOT")
            .map(str::to_owned);
        // Terms of the archetype apply to everything below its root.
        let root = match &used {
            Some(id) => self.used(id),
            None => outer,
        };
        let mut constraint = self.constraint(xml, kind);
        let mut attributes: Vec<Attribute> = xml
            .all("attributes")
            .map(|a| self.attribute(a, root))
            .collect();
        // A tuple replaces the constraints on its attributes one by one.
        for tuple in xml.all("attribute_tuples") {
            match tupled(class, tuple, &mut attributes) {
                Some(together) => constraint = together,
                None => self.unknown(tuple, "a tuple of attributes"),
            }
        }
        Node {
            class,
            parameter,
            node_id: xml.attribute("node_id").unwrap_or_default().to_owned(),
            archetype_id: used,
            occurrences: self
                .multiplicity(xml, "occurrences")
                .unwrap_or(Multiplicity::ANY),
            root,
            attributes,
            constraint,
            class_text,
            assumed: Vec::new(),
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
        let name = xml
            .attribute("rm_attribute_name")
            .unwrap_or_default()
            .to_owned();
        let attr = Attr::parse(&name);
        if attr.is_none()
            // A differential path would constrain a node elsewhere, which the tree cannot
            // represent.
            || xml
                .text_along(&["differential_path"])
                .is_some_and(|p| !p.is_empty())
        {
            self.unknown(xml, &format!("the attribute `{name}`"));
        }
        // The attribute form is `0..1; unordered; unique`, the element form has children.
        let written = xml.attribute("cardinality").unwrap_or_default();
        let element = xml.child("cardinality");
        let says = |flag: &str, word: &str| {
            written.contains(word) || element.is_some_and(|c| c.text_along(&[flag]) == Some("true"))
        };
        let interval = match element {
            Some(c) => c.child("interval").and_then(|i| self.bounds(i)),
            None => multiplicity(written.split(';').next().unwrap_or_default()),
        };
        let (is_ordered, is_unique) = (says("is_ordered", " ordered"), says("is_unique", "unique"));
        let length = self.gauge.enter(&["/", &name]);
        interval
            .into_iter()
            .for_each(|count| self.gauge.count(xml, "cardinality", count));
        let attribute = Attribute {
            attr,
            existence: self.multiplicity(xml, "existence"),
            cardinality: interval.map(|interval| Cardinality {
                interval,
                is_ordered,
                is_unique,
            }),
            children: xml.all("children").map(|c| self.node(c, root)).collect(),
            name,
        };
        self.gauge.alternatives(xml, &attribute.children);
        self.gauge.leave(length);
        attribute
    }

    fn constraint(&mut self, xml: Xml<'d>, kind: &str) -> Constraint {
        match kind {
            "C_COMPLEX_OBJECT" | "C_ARCHETYPE_ROOT" => Constraint::Open,
            "ARCHETYPE_SLOT" => Constraint::Slot {
                includes: self.assertions(xml, "includes"),
                excludes: self.assertions(xml, "excludes"),
            },
            "C_BOOLEAN" => {
                let allows = |value: &str| {
                    xml.child("constraint").is_none()
                        || xml
                            .all("constraint")
                            .any(|c| c.text().eq_ignore_ascii_case(value))
                };
                Constraint::Boolean {
                    true_valid: allows("true"),
                    false_valid: allows("false"),
                }
            }
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
        fn expression(text: &str) -> Option<&str> {
            text.strip_prefix('/').and_then(|t| t.strip_suffix('/'))
        }
        match all.as_slice() {
            [one] if expression(one).is_some() => {
                let pattern = expression(one).and_then(|source| self.gauge.compile(xml, source));
                if pattern.is_none() {
                    self.unknown(xml, &format!("the expression `{one}`"));
                }
                Constraint::Text {
                    pattern,
                    list: Vec::new(),
                    open: false,
                }
            }
            list => {
                if list.iter().any(|text| expression(text).is_some()) {
                    self.unknown(xml, "a list with expressions");
                }
                Constraint::Text {
                    pattern: None,
                    list: list.iter().map(|text| (*text).to_owned()).collect(),
                    open: false,
                }
            }
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
            let sent = xml
                .text_along(&[name])
                .or_else(|| xml.attribute(name))
                .filter(|t| !t.is_empty() && !says(&format!("{name}_unbounded"), false))?;
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
    let count = members.first()?.children.len();
    let is_known = |known: &[&str]| {
        members.len() == names.len()
            && members
                .iter()
                .all(|m| known.contains(&m.name.as_str()) && m.children.len() == count)
    };
    let cell = |name: &str, row: usize| {
        members
            .iter()
            .find(|m| m.name == name)
            .and_then(|m| m.children.get(row))
    };
    match class? {
        Cls::DV_QUANTITY if is_known(&["units", "magnitude", "precision"]) => {
            let item = |row| {
                let range =
                    |name: &str| cell(name, row).and_then(|node| range_of(&node.constraint));
                let units = cell("units", row).and_then(|node| only_text(&node.constraint))?;
                Some(QuantityItem {
                    units,
                    magnitude: range("magnitude"),
                    precision: range("precision"),
                })
            };
            Some(Constraint::Quantity {
                property: None,
                list: (0..count).map(item).collect::<Option<_>>()?,
            })
        }
        Cls::DV_ORDINAL | Cls::DV_SCALE if is_known(&["value", "symbol"]) => {
            let item = |row| {
                let range = cell("value", row).and_then(|node| range_of(&node.constraint))?;
                let value = range.lower.filter(|lower| range.upper == Some(*lower))?;
                ordinal_item(value, &cell("symbol", row)?.constraint)
            };
            Some(Constraint::Ordinal {
                list: (0..count).map(item).collect::<Option<_>>()?,
            })
        }
        _ => None,
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
