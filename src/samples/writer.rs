//! Builds the document of a sample composition, with attributes in canonical order. Names come from
//! the templates.

use super::facts::{
    Analyte, Body, DAY_EVENT, Decimal, Element, Event, Facts, LABORATORY, Moment, Observation,
    Panel, Problem, Value,
};
use crate::rm::class::{Attr, Cls};
use crate::rm::tree::{Kind, NodeId, Tree};
use crate::template::Template;
use std::collections::BTreeMap;

/// The languages of the samples, each with its territory.
pub(super) const LANGUAGES: [(&str, &str); 4] =
    [("en", "GB"), ("de", "DE"), ("es", "ES"), ("sv", "SE")];

const DEVICE: &str = "openEHR-EHR-CLUSTER.device.v1";
const SPECIMEN: &str = "openEHR-EHR-CLUSTER.specimen.v1";
const ANALYTE: &str = "openEHR-EHR-CLUSTER.laboratory_test_analyte.v1";
const PROBLEM: &str = "openEHR-EHR-EVALUATION.problem_diagnosis.v1";

/// The texts of the templates in one language, by archetype and code.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeMap<String, BTreeMap<String, String>>);

impl Names {
    pub(super) fn from_templates(templates: &[Template], language: &str) -> Names {
        let mut names: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (template, root) in templates
            .iter()
            .flat_map(|template| template.roots.iter().map(move |root| (template, root)))
        {
            let mut own = names.remove(&root.archetype_id).unwrap_or_default();
            // Terms that lack a translation have the text of the template's original language.
            for language in [template.language.as_str(), language] {
                own.extend(
                    root.terms
                        .get(language)
                        .into_iter()
                        .flatten()
                        .map(|(code, term)| (code.clone(), term.text.clone())),
                );
            }
            names.insert(root.archetype_id.clone(), own);
        }
        Names(names)
    }

    fn get(&self, archetype: &str, code: &str) -> Option<&str> {
        self.0.get(archetype)?.get(code).map(String::as_str)
    }
}

/// Returns the template and the root archetype of a composition.
pub(super) fn template_of(body: &Body) -> (&'static str, &'static str) {
    match body {
        Body::Vitals(_) => (
            "sample.vital_signs.v1",
            "openEHR-EHR-COMPOSITION.encounter.v1",
        ),
        Body::Laboratory { .. } => (
            "sample.laboratory_report.v1",
            "openEHR-EHR-COMPOSITION.report-result.v1",
        ),
        Body::Problems(_) => (
            "sample.problem_list.v1",
            "openEHR-EHR-COMPOSITION.problem_list.v1",
        ),
    }
}

/// Builds the document of one composition.
pub(super) fn write(facts: &Facts, names: &Names) -> Tree {
    let (template, archetype) = template_of(&facts.body);
    let mut w = Writer {
        tree: Tree::with_capacity(8 << 10),
        open_nodes: Vec::new(),
        attribute: None,
        names,
        language: facts.language,
        archetype,
    };
    w.composition(facts, template);
    w.tree
}

struct Writer<'n> {
    tree: Tree,
    /// The objects and lists that are open.
    open_nodes: Vec<OpenNode>,
    /// The attribute of the next value.
    attribute: Option<Attr>,
    names: &'n Names,
    language: usize,
    /// The archetype that defines the codes.
    archetype: &'static str,
}

#[derive(Clone, Copy)]
struct OpenNode {
    id: NodeId,
    cls: Cls,
    /// For a list: the attribute of its elements.
    elements: Option<Attr>,
}

impl Writer<'_> {
    fn composition(&mut self, facts: &Facts, template: &str) {
        let (language, territory) = LANGUAGES.get(facts.language).copied().unwrap_or_default();
        self.root(Cls::COMPOSITION, self.archetype, Some(template));
        self.code(Attr::LANGUAGE, "ISO_639-1", language);
        self.code(Attr::TERRITORY, "ISO_3166-1", territory);
        let (category, rubric) = if matches!(facts.body, Body::Problems(_)) {
            ("431", "persistent")
        } else {
            ("433", "event")
        };
        self.attribute(Attr::CATEGORY);
        self.coded("openehr", category, rubric);
        self.attribute(Attr::COMPOSER);
        self.open(Cls::PARTY_IDENTIFIED);
        self.leaf(Attr::NAME, facts.composer);
        self.close();
        self.context(facts);
        self.list(Attr::CONTENT, |w| match &facts.body {
            Body::Vitals(observations) => observations.iter().for_each(|o| w.observation(o)),
            Body::Laboratory { panels, .. } => panels.iter().for_each(|p| w.panel(p)),
            Body::Problems(problems) => problems.iter().for_each(|p| w.problem(p)),
        });
        self.close();
    }

    /// Writes the EVENT_CONTEXT.
    fn context(&mut self, facts: &Facts) {
        self.attribute(Attr::CONTEXT);
        self.open(Cls::EVENT_CONTEXT);
        self.time(Attr::START_TIME, facts.start);
        self.attribute(Attr::SETTING);
        self.coded("openehr", "228", "primary medical care");
        if let Body::Laboratory { number, status, .. } = &facts.body {
            let report = [
                ("at0002", Value::Text(number.clone())),
                ("at0005", Value::Text((*status).to_owned())),
            ];
            self.item_tree(Attr::OTHER_CONTEXT, "at0001", &report);
        }
        self.close();
    }

    fn entry(&mut self, class: Cls, archetype: &'static str) {
        self.archetype = archetype;
        self.root(class, archetype, None);
        let (language, _) = LANGUAGES.get(self.language).copied().unwrap_or_default();
        self.code(Attr::LANGUAGE, "ISO_639-1", language);
        self.code(Attr::ENCODING, "IANA_character-sets", "UTF-8");
        self.attribute(Attr::SUBJECT);
        self.open(Cls::PARTY_SELF);
        self.close();
    }

    fn observation(&mut self, observation: &Observation) {
        let frame = observation.frame;
        self.entry(Cls::OBSERVATION, frame.archetype);
        if !observation.protocol.is_empty() || observation.device.is_some() {
            self.protocol(observation);
        }
        self.attribute(Attr::DATA);
        self.node(Cls::HISTORY, frame.history);
        if let Some(first) = observation.events.first() {
            self.time(Attr::ORIGIN, first.time);
        }
        self.list(Attr::EVENTS, |w| {
            observation
                .events
                .iter()
                .for_each(|e| w.event(observation, e))
        });
        self.close();
        self.close();
    }

    /// Writes the protocol with the device, which has an archetype of its own.
    fn protocol(&mut self, observation: &Observation) {
        let frame = observation.frame;
        self.attribute(Attr::PROTOCOL);
        self.node(Cls::ITEM_TREE, frame.protocol);
        self.list(Attr::ITEMS, |w| {
            w.elements(&observation.protocol);
            if let Some(device) = &observation.device {
                w.cluster(DEVICE, device);
                w.archetype = frame.archetype;
            }
        });
        self.close();
    }

    /// Writes a CLUSTER. The archetype stays that of the cluster: elements are named by it.
    fn cluster(&mut self, archetype: &'static str, elements: &[Element]) {
        self.archetype = archetype;
        self.root(Cls::CLUSTER, archetype, None);
        self.list(Attr::ITEMS, |w| w.elements(elements));
        self.close();
    }

    /// Writes an ITEM_TREE as the value of an attribute.
    fn item_tree(&mut self, attribute: Attr, node: &str, elements: &[Element]) {
        self.attribute(attribute);
        self.node(Cls::ITEM_TREE, node);
        self.list(Attr::ITEMS, |w| w.elements(elements));
        self.close();
    }

    fn event(&mut self, observation: &Observation, event: &Event) {
        let frame = observation.frame;
        if event.is_day {
            self.node(Cls::INTERVAL_EVENT, DAY_EVENT);
        } else {
            self.node(Cls::POINT_EVENT, frame.event);
        }
        self.time(Attr::TIME, event.time);
        self.item_tree(Attr::DATA, frame.tree, &event.data);
        if !event.state.is_empty() {
            self.item_tree(Attr::STATE, frame.state, &event.state);
        }
        if event.is_day {
            self.attribute(Attr::WIDTH);
            self.value_object(Cls::DV_DURATION, "PT24H");
            self.attribute(Attr::MATH_FUNCTION);
            self.coded("openehr", "146", "mean");
        }
        self.close();
    }

    fn panel(&mut self, panel: &Panel) {
        self.entry(Cls::OBSERVATION, LABORATORY.archetype);
        if !panel.protocol.is_empty() {
            self.item_tree(Attr::PROTOCOL, LABORATORY.protocol, &panel.protocol);
        }
        self.attribute(Attr::DATA);
        self.node(Cls::HISTORY, LABORATORY.history);
        self.time(Attr::ORIGIN, panel.time);
        self.list(Attr::EVENTS, |w| {
            w.node(Cls::POINT_EVENT, LABORATORY.event);
            w.time(Attr::TIME, panel.time);
            w.attribute(Attr::DATA);
            w.node(Cls::ITEM_TREE, LABORATORY.tree);
            w.list(Attr::ITEMS, |w| w.results(panel));
            w.close();
            w.close();
        });
        self.close();
        self.close();
    }

    fn results(&mut self, panel: &Panel) {
        self.elements(&panel.elements);
        if !panel.specimen.is_empty() {
            self.cluster(SPECIMEN, &panel.specimen);
        }
        panel.analytes.iter().for_each(|a| self.analyte(a));
        self.archetype = LABORATORY.archetype;
        self.elements(&panel.conclusion);
    }

    fn analyte(&mut self, analyte: &Analyte) {
        self.archetype = ANALYTE;
        self.root(Cls::CLUSTER, ANALYTE, None);
        self.list(Attr::ITEMS, |w| {
            w.elements(&analyte.elements);
            analyte.details.iter().for_each(|d| w.analyte(d));
        });
        self.close();
    }

    fn problem(&mut self, problem: &Problem) {
        self.entry(Cls::EVALUATION, PROBLEM);
        if !problem.protocol.is_empty() {
            self.item_tree(Attr::PROTOCOL, "at0032", &problem.protocol);
        }
        self.item_tree(Attr::DATA, "at0001", &problem.data);
        self.close();
    }

    fn elements(&mut self, elements: &[Element]) {
        elements
            .iter()
            .for_each(|(code, value)| self.element(code, value));
    }

    fn element(&mut self, code: &str, value: &Value) {
        self.node(Cls::ELEMENT, code);
        if let Value::Missing(flavour) = value {
            self.attribute(Attr::NULL_FLAVOUR);
            let rubric = match *flavour {
                "271" => "no information",
                "253" => "unknown",
                "272" => "masked",
                _ => "not applicable",
            };
            self.coded("openehr", flavour, rubric);
        } else {
            self.attribute(Attr::VALUE);
            self.value(value);
        }
        self.close();
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Quantity(number, unit) => self.quantity(*number, unit),
            Value::Range(low, high, unit) => self.interval(*low, *high, unit),
            Value::Percent(share) => self.percent(*share),
            Value::Count(count) => {
                self.open(Cls::DV_COUNT);
                self.leaf(Attr::MAGNITUDE, &count.to_string());
                self.close();
            }
            Value::Flag(flag) => {
                self.value_object(Cls::DV_BOOLEAN, if *flag { "true" } else { "false" })
            }
            Value::Code(terminology, code) => {
                let rubric = self.names.get(self.archetype, code).unwrap_or_default();
                self.coded(terminology, code, rubric);
            }
            Value::Text(text) => self.value_object(Cls::DV_TEXT, text),
            Value::Time(moment) => self.moment(*moment),
            Value::Missing(_) => {}
        }
    }

    /// Writes a closed DV_INTERVAL.
    fn interval(&mut self, low: Decimal, high: Decimal, unit: &str) {
        self.open(Cls::DV_INTERVAL);
        self.attribute(Attr::LOWER);
        self.quantity(low, unit);
        self.attribute(Attr::UPPER);
        self.quantity(high, unit);
        self.leaf(Attr::LOWER_INCLUDED, "true");
        self.leaf(Attr::UPPER_INCLUDED, "true");
        self.leaf(Attr::LOWER_UNBOUNDED, "false");
        self.leaf(Attr::UPPER_UNBOUNDED, "false");
        self.close();
    }

    fn percent(&mut self, share: Decimal) {
        self.open(Cls::DV_PROPORTION);
        self.number(Attr::NUMERATOR, share);
        self.leaf(Attr::DENOMINATOR, "100");
        self.leaf(Attr::TYPE, "2");
        self.close();
    }

    fn quantity(&mut self, number: Decimal, unit: &str) {
        self.open(Cls::DV_QUANTITY);
        self.number(Attr::MAGNITUDE, number);
        self.leaf(Attr::UNITS, unit);
        self.close();
    }

    fn coded(&mut self, terminology: &str, code: &str, rubric: &str) {
        self.open(Cls::DV_CODED_TEXT);
        self.leaf(Attr::VALUE, rubric);
        self.code(Attr::DEFINING_CODE, terminology, code);
        self.close();
    }

    fn code(&mut self, attribute: Attr, terminology: &str, code: &str) {
        self.attribute(attribute);
        self.open(Cls::CODE_PHRASE);
        self.identifier(Attr::TERMINOLOGY_ID, Cls::TERMINOLOGY_ID, terminology);
        self.leaf(Attr::CODE_STRING, code);
        self.close();
    }

    fn time(&mut self, attribute: Attr, moment: Moment) {
        self.attribute(attribute);
        self.moment(moment);
    }

    fn moment(&mut self, moment: Moment) {
        self.value_object(Cls::DV_DATE_TIME, &moment.text());
    }

    /// Opens the root of an archetype, with its id, name and details.
    fn root(&mut self, class: Cls, archetype: &str, template: Option<&str>) {
        self.named(class, archetype, "at0000");
        self.attribute(Attr::ARCHETYPE_DETAILS);
        self.open(Cls::ARCHETYPED);
        self.identifier(Attr::ARCHETYPE_ID, Cls::ARCHETYPE_ID, archetype);
        if let Some(template) = template {
            self.identifier(Attr::TEMPLATE_ID, Cls::TEMPLATE_ID, template);
        }
        self.leaf(Attr::RM_VERSION, "1.1.0");
        self.close();
    }

    fn node(&mut self, class: Cls, code: &str) {
        self.named(class, code, code);
    }

    fn named(&mut self, class: Cls, id: &str, code: &str) {
        self.open(class);
        self.leaf(Attr::ARCHETYPE_NODE_ID, id);
        self.attribute(Attr::NAME);
        let names = self.names;
        self.value_object(
            Cls::DV_TEXT,
            names.get(self.archetype, code).unwrap_or(code),
        );
    }

    fn identifier(&mut self, attribute: Attr, class: Cls, value: &str) {
        self.attribute(attribute);
        self.value_object(class, value);
    }

    /// Writes an object that has a value and nothing else.
    fn value_object(&mut self, class: Cls, value: &str) {
        self.open(class);
        self.leaf(Attr::VALUE, value);
        self.close();
    }

    fn list(&mut self, attribute: Attr, items: impl FnOnce(&mut Self)) {
        let Some(place) = self.open_nodes.last().copied() else {
            return;
        };
        let cls = place.cls.attr(attribute).map_or(Cls::ANY, |def| def.ty);
        let id = self.tree.push_list(place.id, attribute, cls);
        self.open_nodes.push(OpenNode {
            id,
            cls,
            elements: Some(attribute),
        });
        items(self);
        self.close();
    }

    /// Writes an attribute of a primitive type.
    fn leaf(&mut self, attribute: Attr, text: &str) {
        let Some(place) = self.open_nodes.last().copied() else {
            return;
        };
        let cls = place.cls.attr(attribute).map_or(Cls::STRING, |def| def.ty);
        let kind = match cls {
            Cls::BOOLEAN => Kind::Boolean,
            Cls::REAL | Cls::INTEGER | Cls::INTEGER64 => Kind::Number,
            _ => Kind::Text,
        };
        self.tree
            .push_leaf(Some(place.id), Some(attribute), cls, kind, text);
    }

    fn number(&mut self, attribute: Attr, number: Decimal) {
        let mut text = String::new();
        number.write(&mut text);
        self.leaf(attribute, &text);
    }

    fn attribute(&mut self, attribute: Attr) {
        self.attribute = Some(attribute);
    }

    /// Opens an object: the root, the value of an attribute, or an element of a list.
    fn open(&mut self, cls: Cls) {
        let place = self.open_nodes.last().copied();
        let attribute = place
            .and_then(|place| place.elements)
            .or_else(|| self.attribute.take());
        let id = self
            .tree
            .push_object(place.map(|place| place.id), attribute, cls);
        self.open_nodes.push(OpenNode {
            id,
            cls,
            elements: None,
        });
    }

    fn close(&mut self) {
        self.open_nodes.pop();
    }
}
