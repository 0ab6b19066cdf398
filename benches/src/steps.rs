//! The steps from text to columns and back, and from query text to plan, in microseconds each.

use crate::clock::timed;
use crate::questions::known_texts;
use crate::report;
use aqlite::aql::{Parameter, Parameters, QueryOptions, TemplateLabels, complete, prepare};
use aqlite::document::{LayoutStore, Packed, Texts, pack};
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::rm::tree::{NodeRef, Tree};
use aqlite::samples::{self, Generator};
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{Template, WebTemplate};

/// The number of generated documents, and the number of those with about 10 kB.
const DOCUMENTS: usize = 2_000;
const LARGE: usize = 50;

/// Reports every step.
pub fn steps() {
    let mut texts = Samples::drawn();
    texts.report("step");
    texts
        .texts
        .sort_by_key(|(_, text)| text.len().abs_diff(10_000));
    texts.texts.truncate(LARGE);
    texts.report("step10k");
    language();
}

/// Compositions as text, with the templates and texts that the steps need.
struct Samples {
    /// Template id and canonical JSON.
    texts: Vec<(&'static str, String)>,
    /// Templates with their web templates.
    webs: Vec<(Template, WebTemplate)>,
    known: Texts,
    layouts: LayoutStore,
}

impl Samples {
    fn drawn() -> Samples {
        let generator = Generator::new(1, DOCUMENTS / 10, DOCUMENTS);
        let texts = (0..DOCUMENTS)
            .map(|i| generator.composition(i))
            .map(|c| (c.template_id, c.json))
            .collect();
        let templates = samples::templates()
            .into_iter()
            .filter_map(|t| Template::parse(t.text).ok());
        let webs = templates
            .map(|t| (WebTemplate::of(&t), t))
            .map(|(web, template)| (template, web))
            .collect();
        Samples {
            texts,
            webs,
            known: known_texts(),
            layouts: LayoutStore::new(),
        }
    }

    /// Reports the microseconds per composition of each step from text to layout and leaf values
    /// and back.
    fn report(&self, prefix: &str) {
        let trees = self.trees();
        let pack_one = |root: NodeRef<'_>| pack(root, &self.known, &self.layouts);
        let packed: Vec<Packed> = trees.iter().filter_map(Tree::root).map(pack_one).collect();
        let text = |i: usize| self.texts.get(i).map_or("", |(_, text)| text.as_str());
        let read = |i: usize| json::read(text(i), Cls::COMPOSITION).ok();
        let root = |i: usize| trees.get(i).and_then(Tree::root);
        let model = |i: usize| root(i).map_or(0, |root| aqlite::rm::validate::validate(root).len());
        let template = |i: usize| {
            self.template_of(i)
                .zip(root(i))
                .map_or(0, |(template, root)| {
                    aqlite::template::validate(root, template).len()
                })
        };
        let step = |name: &str, work: &dyn Fn(usize) -> usize| {
            let documents = self.texts.len();
            report(
                &format!("{prefix}.{name}"),
                timed(1.0, || (0..documents).map(work).sum::<usize>()) * 1000.0 / documents as f64,
            );
        };
        let bytes = self.texts.iter().map(|(_, text)| text.len()).sum::<usize>() as f64;
        report(&format!("{prefix}.bytes"), bytes / self.texts.len() as f64);
        step("serde", &|i| {
            serde_json::from_str::<serde_json::Value>(text(i))
                .map_or(0, |v| usize::from(v.is_object()))
        });
        step("read", &|i| read(i).map_or(0, |t| t.len()));
        step("pack", &|i| {
            root(i).map_or(0, |root| pack_one(root).layouts().len())
        });
        step("read_pack", &|i| {
            read(i)
                .and_then(|t| Some(pack_one(t.root()?).layouts().len()))
                .unwrap_or_default()
        });
        step("model", &model);
        step("template", &template);
        step("validate", &|i| model(i) + template(i));
        step("write", &|i| {
            root(i).map_or(0, |root| json::write(root).len())
        });
        let flats: Vec<String> = (0..self.texts.len())
            .map(|i| self.flat(i, root(i)).unwrap_or_default())
            .collect();
        step("flat_written", &|i| {
            self.flat(i, root(i)).map_or(0, |t| t.len())
        });
        step("flat", &|i| {
            self.read_flat(i, flats.get(i)).map_or(0, |t| t.len())
        });
        step("unpack", &|i| {
            packed.get(i).map_or(0, |p| p.to_json().len())
        });
    }

    fn trees(&self) -> Vec<Tree> {
        self.texts
            .iter()
            .filter_map(|(_, text)| json::read(text, Cls::COMPOSITION).ok())
            .collect()
    }

    fn flat(&self, index: usize, root: Option<NodeRef<'_>>) -> Option<String> {
        let (template, web) = self.webs.get(self.place_of(index)?)?;
        let written = flat::write(root?, Shape::Flat, template, web, FlatDialect::Better);
        Some(written.ok()?.text)
    }

    fn read_flat(&self, index: usize, text: Option<&String>) -> Option<Tree> {
        let (template, web) = self.webs.get(self.place_of(index)?)?;
        flat::read(text?, Shape::Flat, template, web, "2026-11-20T09:30:00Z").ok()
    }

    fn template_of(&self, index: usize) -> Option<&Template> {
        self.webs
            .get(self.place_of(index)?)
            .map(|(template, _)| template)
    }

    fn place_of(&self, index: usize) -> Option<usize> {
        let (id, _) = self.texts.get(index)?;
        self.webs.iter().position(|(t, _)| t.template_id == *id)
    }
}

/// Reports the microseconds of texts that are read once: a query, and 100 kB of template.
fn language() {
    let parameters = Parameters::from([(
        "ehr_id".to_owned(),
        Parameter::Text("7d44b88c-4199-4bad-97dc-d78268e01398".to_owned()),
    )]);
    let query = |aql: &str| {
        timed(0.5, || {
            prepare(aql, &parameters, &QueryOptions::default()).is_ok()
        }) * 1000.0
    };
    report("query.Q1", query(samples::Q1));
    report("query.Q6", query(samples::Q6));
    let largest = samples::templates()
        .iter()
        .map(|t| t.text)
        .max_by_key(|t| t.len())
        .unwrap_or_default();
    report(
        "opt.parse_100kB",
        timed(0.5, || Template::parse(largest).is_ok()) * 1000.0 * 100_000.0 / largest.len() as f64,
    );
    keys(&grown(largest, 400_000));
}

/// Reports the microseconds of completion at each key of a query, and of the slowest key, with the
/// names of a template.
fn keys(template: &str) {
    let Ok(template) = Template::parse(template) else {
        return;
    };
    let labels = TemplateLabels {
        templates: vec![&template],
        language: "en",
    };
    let at = |end: usize| {
        samples::Q6
            .get(..end)
            .map_or(0, |typed| complete(typed, end, &labels).len())
    };
    let each: Vec<f64> = (1..=samples::Q6.len())
        .map(|end| timed(0.005, || at(end)) * 1000.0)
        .collect();
    report("complete.key", each.iter().sum::<f64>() / each.len() as f64);
    report(
        "complete.slowest_key",
        each.iter().copied().fold(0.0, f64::max),
    );
}

/// Returns a template of about `bytes` bytes: its content is repeated under other archetype ids.
fn grown(template: &str, bytes: usize) -> String {
    let content = template
        .find("<rm_attribute_name>content<")
        .and_then(|at| Some(at + template.get(at..)?.find("<children ")?));
    let end = template
        .rfind("</children>")
        .map(|at| at + "</children>".len());
    let (Some(start), Some(end)) = (content, end) else {
        return template.to_owned();
    };
    let (head, rest) = template.split_at(start);
    let (roots, tail) = rest.split_at(end - start);
    let mut out = head.to_owned();
    for number in 0..=bytes.saturating_sub(template.len()).div_ceil(roots.len()) {
        let other = if number == 0 {
            String::new()
        } else {
            format!("another_{number}_")
        };
        out.push_str(&roots.replace(
            "openEHR-EHR-OBSERVATION.",
            &format!("openEHR-EHR-OBSERVATION.{other}"),
        ));
    }
    out + tail
}
