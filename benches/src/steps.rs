//! The steps from text to columns and back, and from query text to plan.

use crate::clock::timed;
use crate::questions::known_texts;
use aqlite::aql::{Parameter, Parameters, QueryOptions, prepare};
use aqlite::document::{Packed, Shapes, pack};
use aqlite::rm::class::Cls;
use aqlite::rm::json;
use aqlite::rm::tree::Tree;
use aqlite::samples::{self, Generator};
use aqlite::template::Template;

/// A step: its name, and microseconds for one document.
pub type Step = (&'static str, f64);

/// Documents of a pass.
const DOCUMENTS: usize = 2_000;

/// Microseconds a composition for each step from text to shape and slots and back.
pub fn reading() -> Vec<Step> {
    let generator = Generator::new(1, DOCUMENTS / 10, DOCUMENTS);
    let templates: Vec<Template> = samples::templates().iter().filter_map(|t| Template::parse(t.text).ok()).collect();
    let known = known_texts();
    let texts: Vec<(&str, String)> = (0..DOCUMENTS).map(|i| generator.composition(i)).map(|c| (c.template_id, c.json)).collect();
    let trees: Vec<Tree> = texts.iter().filter_map(|(_, text)| json::read(text, Cls::COMPOSITION).ok()).collect();
    let shapes = Shapes::new();
    let packed: Vec<Packed> = trees.iter().filter_map(Tree::root).map(|root| pack(root, &known, &shapes)).collect();
    let template = |id: &str| templates.iter().find(|t| t.template_id == id);
    let read = |text: &str| json::read(text, Cls::COMPOSITION).ok();
    let all = |step: &dyn Fn(usize) -> usize| timed(1.0, || (0..DOCUMENTS).map(step).sum::<usize>()) * 1000.0 / DOCUMENTS as f64;
    let text = |i: usize| texts.get(i).map_or("", |(_, text)| text.as_str());
    let root = |i: usize| trees.get(i).and_then(Tree::root);
    vec![
        (
            "serde_json `Value` of the same bytes",
            all(&|i| serde_json::from_str::<serde_json::Value>(text(i)).map_or(0, |v| usize::from(v.is_object()))),
        ),
        ("read", all(&|i| read(text(i)).map_or(0, |t| t.len()))),
        ("pack", all(&|i| root(i).map_or(0, |root| pack(root, &known, &shapes).shapes().len()))),
        ("read and pack", all(&|i| read(text(i)).and_then(|t| Some(pack(t.root()?, &known, &shapes).shapes().len())).unwrap_or_default())),
        ("check invariants", all(&|i| root(i).map_or(0, |root| aqlite::rm::validate::validate(root).len()))),
        (
            "check against the template",
            all(&|i| {
                let of = texts.get(i).and_then(|(id, _)| template(id)).zip(root(i));
                of.map_or(0, |(template, root)| aqlite::template::validate(root, template).len())
            }),
        ),
        ("unpack to canonical JSON", all(&|i| packed.get(i).map_or(0, |p| p.to_json().len()))),
    ]
}

/// Microseconds for what is read once: a query and a template of 147 kB.
pub fn language() -> Vec<Step> {
    let parameters = Parameters::from([("ehr_id".to_owned(), Parameter::Text("7d44b88c-4199-4bad-97dc-d78268e01398".to_owned()))]);
    let query = |aql: &str| timed(0.5, || prepare(aql, &parameters, &QueryOptions::default()).is_ok()) * 1000.0;
    let largest = samples::templates().iter().map(|t| t.text).max_by_key(|t| t.len()).unwrap_or_default();
    let template = timed(0.5, || Template::parse(largest).is_ok()) * 1000.0 * 100_000.0 / largest.len() as f64;
    vec![
        ("parse, check and plan Q1", query(samples::Q1)),
        ("parse, check and plan Q6", query(samples::Q6)),
        ("parse a template, for each 100 kB of it", template),
    ]
}
