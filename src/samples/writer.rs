//! Writes the canonical JSON of a sample composition as text, attributes in canonical order; names come from the templates.

use super::facts::{Analyte, Body, DAY_EVENT, Decimal, Element, Event, Facts, LABORATORY, Moment, Observation, Panel, Problem, Value};
use crate::rm::json::escape_into;
use crate::template::Template;
use std::collections::HashMap;

/// The languages of the samples, with the territory that goes with each.
pub(super) const LANGUAGES: [(&str, &str); 4] = [("en", "GB"), ("de", "DE"), ("es", "ES"), ("sv", "SE")];

const DEVICE: &str = "openEHR-EHR-CLUSTER.device.v1";
const SPECIMEN: &str = "openEHR-EHR-CLUSTER.specimen.v1";
const ANALYTE: &str = "openEHR-EHR-CLUSTER.laboratory_test_analyte.v1";
const PROBLEM: &str = "openEHR-EHR-EVALUATION.problem_diagnosis.v1";

/// The texts of the templates in one language: JSON text (escaped) by archetype and code.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(HashMap<(String, String), String>);

impl Names {
    pub(super) fn of(templates: &[Template], language: &str) -> Names {
        let mut names = HashMap::new();
        for template in templates {
            for root in &template.roots {
                for language in [template.language.as_str(), language] {
                    for (code, term) in root.terms.get(language).into_iter().flatten() {
                        let mut text = String::new();
                        escape_into(&mut text, &term.text);
                        names.insert((root.archetype_id.clone(), code.clone()), text);
                    }
                }
            }
        }
        Names(names)
    }
}

/// Which template and which root archetype a composition has.
pub(super) fn template_of(body: &Body) -> (&'static str, &'static str) {
    match body {
        Body::Vitals(_) => ("sample.vital_signs.v1", "openEHR-EHR-COMPOSITION.encounter.v1"),
        Body::Laboratory { .. } => ("sample.laboratory_report.v1", "openEHR-EHR-COMPOSITION.report-result.v1"),
        Body::Problems(_) => ("sample.problem_list.v1", "openEHR-EHR-COMPOSITION.problem_list.v1"),
    }
}

/// Writes one composition.
pub(super) fn write(facts: &Facts, names: &Names) -> String {
    let (template, archetype) = template_of(&facts.body);
    let mut w = Writer { out: String::with_capacity(8 << 10), names, language: facts.language, archetype };
    w.composition(facts, template);
    w.out
}

struct Writer<'n> {
    out: String,
    names: &'n Names,
    language: usize,
    /// The archetype whose codes are meant.
    archetype: &'static str,
}

impl Writer<'_> {
    fn composition(&mut self, facts: &Facts, template: &str) {
        let (language, territory) = LANGUAGES.get(facts.language).copied().unwrap_or_default();
        self.root("COMPOSITION", self.archetype, Some(template));
        self.code("language", "ISO_639-1", language);
        self.code("territory", "ISO_3166-1", territory);
        let (category, rubric) = if matches!(facts.body, Body::Problems(_)) { ("431", "persistent") } else { ("433", "event") };
        self.attribute("category");
        self.coded("openehr", category, rubric);
        self.attribute("composer");
        self.open("PARTY_IDENTIFIED");
        self.text("name", facts.composer);
        self.close();
        self.attribute("context");
        self.open("EVENT_CONTEXT");
        self.time("start_time", facts.start);
        self.attribute("setting");
        self.coded("openehr", "228", "primary medical care");
        if let Body::Laboratory { number, status, .. } = &facts.body {
            self.attribute("other_context");
            self.node("ITEM_TREE", "at0001");
            self.list("items", |w| {
                w.element("at0002", &Value::Text(number.clone()));
                w.element("at0005", &Value::Text((*status).to_owned()));
            });
            self.close();
        }
        self.close();
        self.list("content", |w| match &facts.body {
            Body::Vitals(observations) => observations.iter().for_each(|o| w.observation(o)),
            Body::Laboratory { panels, .. } => panels.iter().for_each(|p| w.panel(p)),
            Body::Problems(problems) => problems.iter().for_each(|p| w.problem(p)),
        });
        self.close();
    }

    fn entry(&mut self, class: &str, archetype: &'static str) {
        self.archetype = archetype;
        self.root(class, archetype, None);
        let (language, _) = LANGUAGES.get(self.language).copied().unwrap_or_default();
        self.code("language", "ISO_639-1", language);
        self.code("encoding", "IANA_character-sets", "UTF-8");
        self.attribute("subject");
        self.open("PARTY_SELF");
        self.close();
    }

    fn observation(&mut self, observation: &Observation) {
        let frame = observation.frame;
        self.entry("OBSERVATION", frame.archetype);
        if !observation.protocol.is_empty() || observation.device.is_some() {
            self.attribute("protocol");
            self.node("ITEM_TREE", frame.protocol);
            self.list("items", |w| {
                w.elements(&observation.protocol);
                if let Some(device) = &observation.device {
                    w.archetype = DEVICE;
                    w.root("CLUSTER", DEVICE, None);
                    w.list("items", |w| w.elements(device));
                    w.close();
                    w.archetype = frame.archetype;
                }
            });
            self.close();
        }
        self.attribute("data");
        self.node("HISTORY", frame.history);
        if let Some(first) = observation.events.first() {
            self.time("origin", first.time);
        }
        self.list("events", |w| observation.events.iter().for_each(|e| w.event(observation, e)));
        self.close();
        self.close();
    }

    fn event(&mut self, observation: &Observation, event: &Event) {
        let frame = observation.frame;
        if event.is_day {
            self.node("INTERVAL_EVENT", DAY_EVENT);
        } else {
            self.node("POINT_EVENT", frame.event);
        }
        self.time("time", event.time);
        self.attribute("data");
        self.node("ITEM_TREE", frame.tree);
        self.list("items", |w| w.elements(&event.data));
        self.close();
        if !event.state.is_empty() {
            self.attribute("state");
            self.node("ITEM_TREE", frame.state);
            self.list("items", |w| w.elements(&event.state));
            self.close();
        }
        if event.is_day {
            self.attribute("width");
            self.open("DV_DURATION");
            self.text("value", "PT24H");
            self.close();
            self.attribute("math_function");
            self.coded("openehr", "146", "mean");
        }
        self.close();
    }

    fn panel(&mut self, panel: &Panel) {
        self.entry("OBSERVATION", LABORATORY.archetype);
        if !panel.protocol.is_empty() {
            self.attribute("protocol");
            self.node("ITEM_TREE", LABORATORY.protocol);
            self.list("items", |w| w.elements(&panel.protocol));
            self.close();
        }
        self.attribute("data");
        self.node("HISTORY", LABORATORY.history);
        self.time("origin", panel.time);
        self.list("events", |w| {
            w.node("POINT_EVENT", LABORATORY.event);
            w.time("time", panel.time);
            w.attribute("data");
            w.node("ITEM_TREE", LABORATORY.tree);
            w.list("items", |w| {
                w.elements(&panel.elements);
                if !panel.specimen.is_empty() {
                    w.archetype = SPECIMEN;
                    w.root("CLUSTER", SPECIMEN, None);
                    w.list("items", |w| w.elements(&panel.specimen));
                    w.close();
                }
                panel.analytes.iter().for_each(|a| w.analyte(a));
                w.archetype = LABORATORY.archetype;
                w.elements(&panel.conclusion);
            });
            w.close();
            w.close();
        });
        self.close();
        self.close();
    }

    fn analyte(&mut self, analyte: &Analyte) {
        self.archetype = ANALYTE;
        self.root("CLUSTER", ANALYTE, None);
        self.list("items", |w| {
            w.elements(&analyte.elements);
            analyte.details.iter().for_each(|d| w.analyte(d));
        });
        self.close();
    }

    fn problem(&mut self, problem: &Problem) {
        self.entry("EVALUATION", PROBLEM);
        if !problem.protocol.is_empty() {
            self.attribute("protocol");
            self.node("ITEM_TREE", "at0032");
            self.list("items", |w| w.elements(&problem.protocol));
            self.close();
        }
        self.attribute("data");
        self.node("ITEM_TREE", "at0001");
        self.list("items", |w| w.elements(&problem.data));
        self.close();
        self.close();
    }

    fn elements(&mut self, elements: &[Element]) {
        elements.iter().for_each(|(code, value)| self.element(code, value));
    }

    fn element(&mut self, code: &str, value: &Value) {
        self.node("ELEMENT", code);
        if let Value::Missing(flavour) = value {
            self.attribute("null_flavour");
            let rubric = match *flavour {
                "271" => "no information",
                "253" => "unknown",
                "272" => "masked",
                _ => "not applicable",
            };
            self.coded("openehr", flavour, rubric);
        } else {
            self.attribute("value");
            self.value(value);
        }
        self.close();
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Quantity(number, unit) => self.quantity(*number, unit),
            Value::Range(low, high, unit) => {
                self.open("DV_INTERVAL");
                self.attribute("lower");
                self.quantity(*low, unit);
                self.attribute("upper");
                self.quantity(*high, unit);
                self.out.push_str(",\"lower_included\":true,\"upper_included\":true,\"lower_unbounded\":false,\"upper_unbounded\":false");
                self.close();
            }
            Value::Percent(share) => {
                self.open("DV_PROPORTION");
                self.attribute("numerator");
                share.write(&mut self.out);
                self.out.push_str(",\"denominator\":100,\"type\":2");
                self.close();
            }
            Value::Count(count) => {
                self.open("DV_COUNT");
                self.attribute("magnitude");
                self.out.push_str(&count.to_string());
                self.close();
            }
            Value::Flag(flag) => {
                self.open("DV_BOOLEAN");
                self.attribute("value");
                self.out.push_str(if *flag { "true" } else { "false" });
                self.close();
            }
            Value::Code(terminology, code) => {
                let names = self.names;
                let rubric = names.0.get(&(self.archetype.to_owned(), (*code).to_owned())).map_or("", String::as_str);
                self.coded(terminology, code, rubric);
            }
            Value::Text(text) => {
                self.open("DV_TEXT");
                self.text("value", text);
                self.close();
            }
            Value::Time(moment) => self.moment(*moment),
            Value::Missing(_) => {}
        }
    }

    fn quantity(&mut self, number: Decimal, unit: &str) {
        self.open("DV_QUANTITY");
        self.attribute("magnitude");
        number.write(&mut self.out);
        self.text("units", unit);
        self.close();
    }

    /// `rubric` is JSON text already.
    fn coded(&mut self, terminology: &str, code: &str, rubric: &str) {
        self.open("DV_CODED_TEXT");
        self.attribute("value");
        self.raw(rubric);
        self.code("defining_code", terminology, code);
        self.close();
    }

    fn code(&mut self, attribute: &str, terminology: &str, code: &str) {
        self.attribute(attribute);
        self.out.push_str("{\"_type\":\"CODE_PHRASE\",\"terminology_id\":{\"_type\":\"TERMINOLOGY_ID\",\"value\":\"");
        self.out.push_str(terminology);
        self.out.push_str("\"},\"code_string\":\"");
        self.out.push_str(code);
        self.out.push_str("\"}");
    }

    fn time(&mut self, attribute: &str, moment: Moment) {
        self.attribute(attribute);
        self.moment(moment);
    }

    fn moment(&mut self, moment: Moment) {
        self.open("DV_DATE_TIME");
        self.out.push_str(",\"value\":\"");
        moment.write(&mut self.out);
        self.out.push_str("\"}");
    }

    /// Opens the root of an archetype: with its id, name and details.
    fn root(&mut self, class: &str, archetype: &str, template: Option<&str>) {
        self.named(class, archetype, "at0000");
        self.out.push_str(",\"archetype_details\":{\"_type\":\"ARCHETYPED\",\"archetype_id\":{\"_type\":\"ARCHETYPE_ID\",\"value\":\"");
        self.out.push_str(archetype);
        if let Some(template) = template {
            self.out.push_str("\"},\"template_id\":{\"_type\":\"TEMPLATE_ID\",\"value\":\"");
            self.out.push_str(template);
        }
        self.out.push_str("\"},\"rm_version\":\"1.1.0\"}");
    }

    fn node(&mut self, class: &str, code: &str) {
        self.named(class, code, code);
    }

    fn named(&mut self, class: &str, id: &str, code: &str) {
        self.open(class);
        self.out.push_str(",\"archetype_node_id\":\"");
        self.out.push_str(id);
        self.out.push_str("\",\"name\":{\"_type\":\"DV_TEXT\",\"value\":");
        let names = self.names;
        self.raw(names.0.get(&(self.archetype.to_owned(), code.to_owned())).map_or(code, String::as_str));
        self.out.push('}');
    }

    fn list(&mut self, attribute: &str, items: impl FnOnce(&mut Self)) {
        self.attribute(attribute);
        self.out.push('[');
        items(self);
        self.out.push(']');
    }

    fn text(&mut self, attribute: &str, text: &str) {
        self.attribute(attribute);
        self.out.push('"');
        escape_into(&mut self.out, text);
        self.out.push('"');
    }

    fn raw(&mut self, text: &str) {
        self.out.push('"');
        self.out.push_str(text);
        self.out.push('"');
    }

    fn attribute(&mut self, name: &str) {
        self.out.push_str(",\"");
        self.out.push_str(name);
        self.out.push_str("\":");
    }

    /// Opens an object: the root, the value of an attribute, or a member of a list.
    fn open(&mut self, class: &str) {
        if self.out.ends_with('}') {
            self.out.push(',');
        }
        self.out.push_str("{\"_type\":\"");
        self.out.push_str(class);
        self.out.push('"');
    }

    fn close(&mut self) {
        self.out.push('}');
    }
}
