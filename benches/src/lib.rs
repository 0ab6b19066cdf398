//! The benchmark: synthetic compositions packed, and the six questions asked; native and in wasm alike.

use aqlite::aql::{Budget, Parameter, Parameters, Plan, QueryOptions, ResultSet, Run, prepare};
use aqlite::document::{Batch, DocRow, EhrRow, ObjectKind, Shapes, pack};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::rm::tree::{Kind, NodeId, Tree};
use aqlite::samples::{self, Generator};
use aqlite::template::Template;
use std::collections::HashSet;

/// The six questions: name, what is asked, AQL.
pub const QUESTIONS: [(&str, &str, &str); 6] = [
    ("Q1", "latest blood pressure of an EHR", samples::Q1),
    ("Q2", "systolic ≥ 140, all EHRs, 4 columns", samples::Q2),
    ("Q3", "count of compositions with body temperature", samples::Q3),
    ("Q4", "mean and maximum systolic of all", samples::Q4),
    ("Q5", "last 20 compositions of an EHR", samples::Q5),
    ("Q6", "systolic ≥ 160 and pulse ≥ 100 in one composition", samples::Q6),
];

/// Compositions in columns, ready to be asked.
pub struct Loaded {
    /// The columns.
    pub batch: Batch,
    /// The generator that made the data.
    pub generator: Generator,
    /// Bytes of the canonical JSON of all compositions.
    pub json_bytes: usize,
    /// Bytes of all packed documents in their text form, versions included.
    pub packed_bytes: usize,
    /// Bytes of the skeletons of all shapes.
    pub shape_bytes: usize,
    /// How many shapes there are.
    pub shapes: usize,
    /// Milliseconds for reading JSON and packing.
    pub load_ms: f64,
    ehr: usize,
}

/// Ten compositions an EHR, seed 1; `clock` gives milliseconds.
pub fn load(compositions: usize, clock: &dyn Fn() -> f64) -> Loaded {
    let generator = Generator::new(1, compositions.div_ceil(10), compositions);
    let known: HashSet<String> = samples::templates()
        .iter()
        .filter_map(|t| Template::parse(t.text).ok())
        .flat_map(|t| t.texts().into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let (mut batch, shapes) = (Batch::new(), Shapes::new());
    let (mut json_bytes, mut packed_bytes, mut load_ms, mut ordinal) = (0, 0, 0.0, 0u64);
    for ehr in 0..generator.ehrs() {
        let sample = generator.ehr(ehr);
        let row =
            EhrRow { ehr_id: sample.ehr_id, system_id: "bench".to_owned(), time_created: sample.time_created, is_queryable: sample.is_queryable };
        let number = batch.add_ehr(row);
        for index in generator.compositions_of(ehr) {
            let sample = generator.composition(index);
            json_bytes += sample.json.len();
            let begin = clock();
            if let Some(version) = version(&sample.json, &sample.uid) {
                let Some(root) = version.root() else { continue };
                let packed = pack(root, &known, &shapes);
                ordinal += 1;
                let row = DocRow { kind: ObjectKind::Composition, object_id: sample.uid, number: 1, ordinal, latest: true, deleted: false };
                batch.add(number, row, &packed);
                load_ms += clock() - begin;
                packed_bytes += packed.to_text(&|_| 100).len();
            }
        }
    }
    let ehr = (0..generator.ehrs()).max_by_key(|e| generator.compositions_of(*e).len().min(60)).unwrap_or_default();
    let shape_bytes = batch.tables().iter().map(|t| t.shape().to_text().len()).sum();
    Loaded { shapes: shapes.len(), shape_bytes, batch, generator, json_bytes, packed_bytes, load_ms, ehr }
}

/// The ORIGINAL_VERSION that a repository stores around a composition.
fn version(composition: &str, uid: &str) -> Option<Tree> {
    let data = json::read(composition, Cls::COMPOSITION).ok()?;
    let mut tree = Tree::with_capacity(composition.len() * 2);
    let root = tree.push_object(None, None, Cls::ORIGINAL_VERSION);
    let leaf = |tree: &mut Tree, parent: NodeId, attr: Attr, text: &str| {
        tree.push_leaf(Some(parent), Some(attr), Cls::STRING, Kind::Text, text);
    };
    let id = tree.push_object(Some(root), Some(Attr::UID), Cls::OBJECT_VERSION_ID);
    leaf(&mut tree, id, Attr::VALUE, &format!("{uid}::bench::1"));
    let audit = tree.push_object(Some(root), Some(Attr::COMMIT_AUDIT), Cls::AUDIT_DETAILS);
    leaf(&mut tree, audit, Attr::SYSTEM_ID, "bench");
    let time = tree.push_object(Some(audit), Some(Attr::TIME_COMMITTED), Cls::DV_DATE_TIME);
    leaf(&mut tree, time, Attr::VALUE, "2026-01-01T00:00:00.000Z");
    tree.close(audit);
    tree.graft(Some(root), Some(Attr::DATA), data.root()?);
    tree.close(root);
    Some(tree)
}

impl Loaded {
    /// The EHR that Q1 and Q5 ask about.
    pub fn ehr_id(&self) -> String {
        self.generator.ehr(self.ehr).ehr_id
    }

    /// The index of that EHR.
    pub fn ehr(&self) -> usize {
        self.ehr
    }

    /// Asks one question.
    pub fn ask(&self, aql: &str) -> ResultSet {
        self.prepare(aql).map(|plan| self.execute(&plan)).unwrap_or_default()
    }

    fn prepare(&self, aql: &str) -> Option<Plan> {
        let parameters = Parameters::from([("ehr_id".to_owned(), Parameter::Text(self.ehr_id()))]);
        prepare(aql, &parameters, &QueryOptions::default()).ok()
    }

    fn execute(&self, plan: &Plan) -> ResultSet {
        let go_on = || false;
        let mut run = Run::new(plan, "2026-01-01T00:00:00Z", Budget::default(), &go_on);
        run.push(&self.batch);
        run.finish().unwrap_or_default()
    }

    /// Median milliseconds of each question, prepared, after a warm-up, as rows and as the JSON text of the rows.
    pub fn times(&self, clock: &dyn Fn() -> f64) -> Vec<(f64, f64)> {
        QUESTIONS
            .iter()
            .filter_map(|(_, _, aql)| {
                let plan = self.prepare(aql)?;
                let warm = clock() + 300.0;
                while clock() < warm {
                    self.execute(&plan);
                }
                let mut rows: Vec<f64> = Vec::new();
                let mut texts: Vec<f64> = Vec::new();
                for _ in 0..9 {
                    let begin = clock();
                    let result = self.execute(&plan);
                    let middle = clock();
                    let mut out = String::new();
                    result.write_rows(&mut out);
                    rows.push(middle - begin);
                    texts.push(clock() - begin);
                }
                Some((median(&mut rows), median(&mut texts)))
            })
            .collect()
    }
}

/// Microseconds a composition (the median of passes over 2,000 of them) for each step from text to columns and back.
pub fn reading(clock: &dyn Fn() -> f64) -> Vec<(&'static str, f64)> {
    let generator = Generator::new(1, 200, 2_000);
    let templates: Vec<Template> = samples::templates().iter().filter_map(|t| Template::parse(t.text).ok()).collect();
    let known: HashSet<String> = templates.iter().flat_map(|t| t.texts().into_iter().map(str::to_owned).collect::<Vec<_>>()).collect();
    let texts: Vec<(&str, String)> = (0..2_000).map(|i| generator.composition(i)).map(|c| (c.template_id, c.json)).collect();
    let trees: Vec<Tree> = texts.iter().filter_map(|(_, text)| json::read(text, Cls::COMPOSITION).ok()).collect();
    let shapes = Shapes::new();
    let packed: Vec<_> = trees.iter().filter_map(|t| t.root()).map(|root| pack(root, &known, &shapes)).collect();
    let template = |id: &str| templates.iter().find(|t| t.template_id == id);
    let steps: [(&str, &dyn Fn(usize) -> usize); 6] = [
        ("serde_json `Value` of the same bytes", &|i| {
            texts.get(i).and_then(|(_, t)| serde_json::from_str::<serde_json::Value>(t).ok()).map_or(0, |v| usize::from(v.is_object()))
        }),
        ("read", &|i| texts.get(i).and_then(|(_, t)| json::read(t, Cls::COMPOSITION).ok()).map_or(0, |t| t.len())),
        ("pack", &|i| trees.get(i).and_then(Tree::root).map_or(0, |root| pack(root, &known, &shapes).shapes().len())),
        ("check invariants", &|i| trees.get(i).and_then(Tree::root).map_or(0, |root| aqlite::rm::validate::validate(root).len())),
        ("check against the template", &|i| {
            let of = texts.get(i).and_then(|(id, _)| template(id)).zip(trees.get(i).and_then(Tree::root));
            of.map_or(0, |(template, root)| aqlite::template::validate(root, template).len())
        }),
        ("unpack to canonical JSON", &|i| packed.get(i).map_or(0, |p| p.to_json().len())),
    ];
    steps
        .iter()
        .map(|(name, step)| {
            let mut passes: Vec<f64> = (0..7)
                .map(|_| {
                    let begin = clock();
                    std::hint::black_box((0..texts.len()).map(step).sum::<usize>());
                    (clock() - begin) * 1000.0 / texts.len() as f64
                })
                .collect();
            (*name, median(&mut passes))
        })
        .collect()
}

/// The middle of some measurements.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
