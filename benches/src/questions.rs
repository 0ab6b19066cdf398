//! The six queries: their data, and the answers that every engine must return.

use crate::clock::{seconds, timed};
use crate::uneven::Extras;
use aqlite::aql::{
    Budget, Cell, Parameter, Parameters, Plan, QueryOptions, ResultSet, RowVisit, Run, prepare,
};
use aqlite::document::{Batch, DocRow, EhrRow, LayoutStore, ObjectKind, Packed, Texts, pack};
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json;
use aqlite::rm::tree::{Kind, NodeId, Tree};
use aqlite::samples::{self, Generator};
use aqlite::template::Template;
use std::collections::HashSet;

/// The six queries: name, description, AQL.
pub const QUESTIONS: [(&str, &str, &str); 6] = [
    ("Q1", "latest blood pressure of an EHR", samples::Q1),
    ("Q2", "systolic ≥ 140, all EHRs, 4 columns", samples::Q2),
    (
        "Q3",
        "count of compositions with body temperature",
        samples::Q3,
    ),
    ("Q4", "mean and maximum systolic of all", samples::Q4),
    ("Q5", "last 20 compositions of an EHR", samples::Q5),
    (
        "Q6",
        "systolic ≥ 160 and pulse ≥ 100 in one composition",
        samples::Q6,
    ),
];

/// The time of evaluation of every query.
const NOW: &str = "2026-01-01T00:00:00Z";

/// The rows of an answer as texts that can be compared between engines. Numbers are normalized,
/// NULL is empty. Rows are sorted, unless the query orders them.
pub type Answer = Vec<Vec<String>>;

/// Compositions in columns, ready for queries.
pub struct Loaded {
    /// The columns.
    pub batch: Batch,
    /// The generator that made the data.
    pub generator: Generator,
    /// Bytes of the canonical JSON of all compositions.
    pub json_bytes: usize,
    /// Bytes of all packed documents in their text form, including versions.
    pub packed_bytes: usize,
    /// Bytes of the skeletons of all layouts.
    pub layout_bytes: usize,
    /// The number of layouts.
    pub layouts: usize,
    /// Milliseconds for reading JSON and packing.
    pub load_ms: f64,
    ehr: usize,
}

/// Returns the texts of the sample templates.
pub fn known_texts() -> Texts {
    let templates = samples::templates();
    let templates = templates
        .iter()
        .filter_map(|t| Template::parse(t.text).ok());
    templates
        .flat_map(|t| t.texts().into_iter().map(str::to_owned).collect::<Vec<_>>())
        .chain(Extras::known_texts())
        .collect()
}

/// Reads, packs and stores all compositions of a generator, each with `extras`.
pub fn load(generator: Generator, extras: Extras) -> Loaded {
    let known = known_texts();
    let (mut batch, layouts) = (Batch::new(), LayoutStore::new());
    let (mut known_layouts, mut layout_bytes) = (HashSet::new(), 0);
    let (mut json_bytes, mut packed_bytes, mut load_ms, mut ordinal) = (0, 0, 0.0, 0u64);
    for ehr in 0..generator.ehrs() {
        let sample = generator.ehr(ehr);
        let row = EhrRow {
            ehr_id: sample.ehr_id,
            system_id: "bench".to_owned(),
            time_created: sample.time_created,
            is_queryable: sample.is_queryable,
        };
        let number = batch.add_ehr(row);
        for index in generator.compositions_of(ehr) {
            let mut sample = generator.composition(index);
            sample.json = extras.add(sample.json, index);
            json_bytes += sample.json.len();
            ordinal += 1;
            let row = DocRow {
                kind: ObjectKind::Composition,
                object_id: sample.uid.clone(),
                number: 1,
                ordinal,
                latest: true,
                deleted: false,
            };
            let (time, packed) = seconds(|| {
                let version = version(&sample.json, &sample.uid)?;
                let packed = pack(version.root()?, &known, &layouts);
                batch.add(number, row, &packed);
                Some(packed)
            });
            load_ms += time * 1000.0;
            for layout in packed.iter().flat_map(Packed::layouts) {
                if known_layouts.insert(layout.digest().to_owned()) {
                    layout_bytes += layout.to_text().len();
                }
            }
            let text = packed.and_then(|p| p.to_text(&|_| Some(100), &[]));
            packed_bytes += text.map_or(0, |text| text.len());
        }
    }
    let ehr = (0..generator.ehrs())
        .max_by_key(|e| generator.compositions_of(*e).len().min(60))
        .unwrap_or_default();
    Loaded {
        layouts: known_layouts.len(),
        layout_bytes,
        batch,
        generator,
        json_bytes,
        packed_bytes,
        load_ms,
        ehr,
    }
}

/// Returns the ORIGINAL_VERSION that a repository stores around a composition.
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
    /// Returns the EHR that Q1 and Q5 select.
    pub fn ehr_id(&self) -> String {
        self.generator.ehr(self.ehr).ehr_id
    }

    /// Runs a query.
    pub fn ask(&self, aql: &str) -> ResultSet {
        self.prepare(aql)
            .map(|plan| self.execute(&plan))
            .unwrap_or_default()
    }

    /// Runs a query and passes each row to `visit` in its stored form.
    pub fn each(&self, aql: &str, visit: RowVisit<'_>) {
        let Some(plan) = self.prepare(aql) else {
            return;
        };
        let go_on = || false;
        Run::new(&plan, NOW, Budget::default(), &go_on).push_each(&self.batch, visit);
    }

    fn prepare(&self, aql: &str) -> Option<Plan> {
        let parameters = Parameters::from([("ehr_id".to_owned(), Parameter::Text(self.ehr_id()))]);
        prepare(aql, &parameters, &QueryOptions::default()).ok()
    }

    fn execute(&self, plan: &Plan) -> ResultSet {
        let go_on = || false;
        let mut run = Run::new(plan, NOW, Budget::default(), &go_on);
        run.push(&self.batch);
        run.finish().unwrap_or_default()
    }

    /// Returns the milliseconds of each prepared query: as rows, and as JSON text of the rows.
    pub fn times(&self) -> Vec<(f64, f64)> {
        let plans = QUESTIONS.iter().filter_map(|(_, _, aql)| self.prepare(aql));
        let times = plans.map(|plan| {
            let rows = timed(0.5, || self.execute(&plan));
            let text = timed(0.5, || {
                let mut out = String::new();
                self.execute(&plan).write_rows(&mut out);
                out
            });
            (rows, text)
        });
        times.collect()
    }

    /// Checks that the answers are those of the truth table, before anything is measured.
    ///
    /// # Errors
    ///
    /// The name of the query whose answer differs.
    pub fn check(&self) -> Result<(), String> {
        let generator = &self.generator;
        let rows = |i: usize| {
            QUESTIONS
                .get(i)
                .map(|(_, _, aql)| self.ask(aql))
                .unwrap_or_default()
        };
        let number = |result: &ResultSet, column: usize| match result
            .rows()
            .next()
            .and_then(|r| r.get(column))
        {
            Some(Cell::Number(number)) => number.value(),
            _ => f64::NAN,
        };
        let expect = |good: bool, question: &str| {
            if good {
                Ok(())
            } else {
                Err(format!("{question} differs from the truth table"))
            }
        };
        expect(rows(1).len() == generator.systolic_from_140().len(), "Q2")?;
        expect(
            number(&rows(2), 0) == generator.with_body_temperature() as f64,
            "Q3",
        )?;
        let (mean, highest) = generator.mean_and_highest_systolic().unwrap_or_default();
        let found = rows(3);
        expect(
            (number(&found, 0) - mean).abs() < 1e-9 && number(&found, 1) == highest,
            "Q4",
        )?;
        expect(
            rows(4).len() == generator.last_20_compositions(self.ehr).len(),
            "Q5",
        )?;
        expect(
            rows(5).len() == generator.pressure_160_with_pulse_100().len(),
            "Q6",
        )
    }
}

/// Returns the answer of a result set for comparison.
pub fn answer_of(result: &ResultSet, ordered: bool) -> Answer {
    let cell = |cell: Cell<&str>| match cell {
        Cell::Null => String::new(),
        Cell::Boolean(flag) => flag.to_string(),
        Cell::Number(number) => format!("{:.9}", number.value()),
        Cell::Text(text) | Cell::Json(text) => text.to_owned(),
    };
    let mut rows: Answer = result
        .rows()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    if !ordered {
        rows.sort_unstable();
    }
    rows
}
