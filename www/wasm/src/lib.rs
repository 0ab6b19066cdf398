//! The JavaScript facade of aqlite: a repository in memory, and the editor services of AQL.
//!
//! Structured values cross the border as JSON text, which keeps every digit. serde-wasm-bindgen
//! takes 1.1 to 1.9 times as long (ARCHITECTURE.md, "The border of wasm"). Failures are a JavaScript `Error` with a stable `code`. If a query text is the
//! cause, its `diagnostics` have message and position in UTF-16 units. A panic is an `Error` named `Panic`. The instance is then
//! lost, and its owner starts another.

mod error;
#[cfg(feature = "files")]
#[path = "../../../xtask/files.rs"]
mod files;
pub mod guide;
#[cfg(feature = "server")]
mod pages;
mod zone;

use aqlite::aql::{
    self, Budget, Completion, Page, Parameter, Parameters, Plan, QueryOptions, ResultSet,
    TemplateLabels,
};
use aqlite::diag::{Diagnostic, Finding, LineIndex, Severity, Span};
use aqlite::document::ReadBytes;
use aqlite::rm::class::{Attr, Cls};
use aqlite::rm::json as rm_json;
use aqlite::samples::Generator;
use aqlite::service::{
    Answers, Auth, Config, KnownTemplates, LintTemplates, QuerySteps, ReplayEnvironment, Request,
    RunHost, SampleLoading, Service, StepsOutcome, diagnostics_json, json_in_steps, next_poll,
};
use aqlite::store::memory::{CheckpointWork, Memory};
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::StoreError;
use aqlite::store::scan::Snapshot;
use aqlite::template::flat::{self, FlatDialect, Shape};
use aqlite::template::{Template, WebTemplate, describe};
use js_sys::{Function, Uint8Array};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use wasm_bindgen::prelude::*;

/// The maximum number of rows. It exceeds any page, because the whole answer is wanted here.
const ROWS: usize = 2_000_000;
/// The units of work of a step of a query: some milliseconds.
const STEP: u64 = 250_000;

/// The approximate bytes of memory per byte of a journal.
const IN_MEMORY: usize = 6;
/// The approximate bytes of memory per sample composition during loading.
const OF_COMPOSITION: usize = 16_000;
/// The number of sample compositions for which memory grows at once.
const ROOM: usize = 1_000;

/// Grows the memory by about this number of bytes at once. Each step of growing costs a browser
/// more time than the loading that needs it.
fn make_room(bytes: usize) {
    std::hint::black_box(Vec::<u8>::with_capacity(bytes));
}

/// Turns panics into errors named `Panic`. The runtime calls it when the module starts.
#[wasm_bindgen(start)]
pub fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        // The place but not the message: the message of a panic may quote data.
        let place = info
            .location()
            .map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        let error = js_sys::Error::new(&format!("internal error{place}"));
        error.set_name("Panic");
        wasm_bindgen::throw_val(error.into());
    }));
}

/// Sample patients that are loaded in steps: templates, guides, EHRs and compositions. Equal
/// numbers produce equal data.
#[wasm_bindgen]
pub struct Samples(SampleLoading);

#[wasm_bindgen]
impl Samples {
    /// Prepares patients with the texts of their templates and guides. Nothing is loaded yet.
    #[wasm_bindgen(constructor)]
    pub fn new(
        ehrs: usize,
        compositions: usize,
        seed: u32,
        templates: Vec<String>,
        guides: Vec<String>,
    ) -> Samples {
        let seed = u64::from(seed);
        let generator = Generator::with_templates(
            templates.iter().map(String::as_str),
            seed,
            ehrs,
            compositions,
        );
        Samples(SampleLoading::new(generator, seed, templates, guides))
    }

    /// The number of compositions that are loaded.
    #[wasm_bindgen(getter)]
    pub fn done(&self) -> usize {
        self.0.done()
    }
}

/// A checkpoint that is being written. It is void if the repository changes meanwhile.
#[wasm_bindgen]
pub struct Checkpoint(CheckpointWork);

/// A function of the host that returns the bytes of a file between two positions.
struct FileReader(Function);

impl ReadBytes for FileReader {
    fn read(&self, start: u64, end: u64) -> Result<Vec<u8>, String> {
        let [start, end] = [start, end].map(|at| JsValue::from_f64(at as f64));
        let bytes = self.0.call2(&JsValue::NULL, &start, &end);
        let message = |error: JsValue| String::from(js_sys::Error::from(error).message());
        bytes
            .map(|bytes| Uint8Array::new(&bytes).to_vec())
            .map_err(message)
    }
}

/// A repository in memory behind the REST interface.
#[wasm_bindgen]
pub struct Repository {
    /// Shared with the calls that run in steps.
    service: Rc<Service<Memory>>,
    templates: RefCell<KnownTemplates>,
    /// Whether requests may administer.
    admin: bool,
}

/// A call that runs in steps, so that the host can do other work in between.
#[wasm_bindgen]
pub struct Steps(Pin<Box<dyn Future<Output = Result<String, JsValue>>>>);

#[wasm_bindgen]
impl Steps {
    /// Runs the next step. Returns `undefined` before the last one, and then the result of the
    /// call. It must not be called again after that, or after an error.
    ///
    /// # Errors
    ///
    /// Those of the call.
    pub fn step(&mut self) -> Result<Option<String>, JsValue> {
        let mut context = Context::from_waker(Waker::noop());
        match self.0.as_mut().poll(&mut context) {
            Poll::Pending => Ok(None),
            Poll::Ready(result) => result.map(Some),
        }
    }
}

/// Converts a magnitude to another unit of the same property, by UCUM code or text. `undefined` if
/// the table of openEHR has no factor between them.
#[wasm_bindgen]
pub fn convert(magnitude: f64, from: &str, to: &str) -> Option<f64> {
    aqlite::rm::units::convert(magnitude, from, to)
}

#[wasm_bindgen]
impl Repository {
    /// Creates an empty repository. `base_url` is the address before `/v1` of the interface. With
    /// `journaled`, [`Repository::take_journal_line`] returns the writes.
    #[wasm_bindgen(constructor)]
    pub fn new(base_url: &str, journaled: bool) -> Repository {
        let memory = if journaled {
            Memory::journaled()
        } else {
            Memory::new()
        };
        Repository::of(memory, base_url)
    }

    /// Opens a journaled repository from a checkpoint. `head` are the last bytes of its file, and
    /// `read` returns the bytes between two positions of it, at once.
    ///
    /// # Errors
    ///
    /// The head is damaged, or was written by a later release.
    pub fn open(base_url: &str, head: &[u8], read: Function) -> Result<Repository, JsValue> {
        let memory = Memory::open(head, Box::new(FileReader(read))).map_err(error::of_journal)?;
        Ok(Repository::of(memory, base_url))
    }

    fn of(memory: Memory, base_url: &str) -> Repository {
        let base_url = base_url.trim_end_matches('/').to_owned();
        let config = Config {
            base_url,
            auth: Auth::Open,
            log: false,
            origins: vec![String::from("*")],
            query_piece: STEP,
            ..Config::default()
        };
        Repository {
            service: Rc::new(Service::new(memory, config)),
            templates: RefCell::default(),
            admin: false,
        }
    }

    /// Returns the writes since the last call, as bytes for [`Repository::replay_journal`]; `undefined` if
    /// there are none. They must be stored all or not at all.
    ///
    /// # Errors
    ///
    /// As [`Repository::failure`]. Nothing may be stored then.
    pub fn take_journal_line(&self) -> Result<Option<Vec<u8>>, JsValue> {
        let line = self.service.repository().take_journal_line();
        Ok(line.map_err(error::of_journal)?.map(String::into_bytes))
    }

    /// Returns the reason why a part of the checkpoint could not be read. The repository must then
    /// be discarded, with everything that it returned since it was opened.
    #[wasm_bindgen(getter)]
    pub fn failure(&self) -> Option<String> {
        self.service.repository().failure()
    }

    /// The number of physical deletions. Their texts are in the journal until the next checkpoint.
    #[wasm_bindgen(getter)]
    pub fn removals(&self) -> f64 {
        self.service.repository().removals() as f64
    }

    /// Begins a checkpoint: a file from which [`Repository::open`] opens the same repository.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.service.repository().checkpoint())
    }

    /// Returns the next bytes of the file of a checkpoint; `undefined` before its head.
    ///
    /// # Errors
    ///
    /// The repository has changed, or a part of the last checkpoint cannot be read.
    pub fn checkpoint_step(&self, work: &mut Checkpoint) -> Result<Option<Vec<u8>>, JsValue> {
        let step = self.service.repository().checkpoint_step(&mut work.0);
        step.map_err(error::of_journal)
    }

    /// Returns the head of a checkpoint, the last bytes of its file.
    ///
    /// # Errors
    ///
    /// As [`Repository::checkpoint_step`].
    pub fn checkpoint_head(&self, work: Checkpoint) -> Result<Vec<u8>, JsValue> {
        let head = self.service.repository().checkpoint_head(work.0);
        head.map_err(error::of_journal)
    }

    /// Repeats writes: all since the first, in their order, in pieces that end where a result of
    /// [`Repository::take_journal_line`] ended.
    ///
    /// # Errors
    ///
    /// The bytes are not such writes. The repository must then be discarded.
    pub fn replay_journal(&self, lines: &[u8]) -> Result<(), JsValue> {
        let lines = std::str::from_utf8(lines).map_err(error::of_journal)?;
        make_room(lines.len() * IN_MEMORY);
        self.service
            .repository()
            .replay_journal(lines)
            .map_err(error::of_journal)
    }

    /// Loads at least `compositions` more compositions of the sample patients, in whole EHRs.
    /// Returns true while there are more.
    ///
    /// # Errors
    ///
    /// The repository refuses one of them, for instance because it exists.
    pub fn load_samples(
        &mut self,
        samples: &mut Samples,
        compositions: usize,
    ) -> Result<bool, JsValue> {
        if samples.done() % ROOM < compositions {
            make_room(ROOM * OF_COMPOSITION);
        }
        let before = self.service.config().clone();
        self.configure(Config {
            trusts_compositions: true,
            ..before.clone()
        });
        let loaded = samples.0.step(&self.service, compositions);
        self.configure(before);
        loaded.map_err(error::of_samples)
    }

    /// Sets whether later requests may administer: export, import, load under fixed ids, delete
    /// physically.
    #[wasm_bindgen(setter)]
    pub fn set_admin(&mut self, admin: bool) {
        self.admin = admin;
    }

    /// Begins to answer a request of the REST interface. The result is the JSON text `{status,
    /// headers: [[name, value]]}` with the `code` of an error, a line end, and the body.
    ///
    /// `url` is the whole address, `headers` a JSON object, `now` milliseconds since 1970. New
    /// identifiers follow from `seed`: the same call on the same data returns the same answer,
    /// including identifiers.
    ///
    /// # Errors
    ///
    /// `headers` is not a JSON object of texts. A wrong request results in a status, as over HTTP.
    pub fn begin_request(
        &self,
        method: &str,
        url: &str,
        headers: &str,
        body: &str,
        now: f64,
        seed: &str,
    ) -> Result<Steps, JsValue> {
        let headers = rm_json::members(headers)
            .map_err(|problem| error::of_argument(problem.describe(headers)))?;
        let target = url
            .strip_prefix(&self.service.config().base_url)
            .unwrap_or(url);
        let mut request = Request::new(method, target);
        request.headers = headers
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_owned(), rm_json::text(value)?)))
            .collect();
        request.body = body.as_bytes().to_vec();
        request.administers = self.admin;
        let service = Rc::clone(&self.service);
        let mut environment = ReplayEnvironment::new(now, seed)
            .with_zones(zone::offset)
            .with_pauses(next_poll);
        Ok(Steps(Box::pin(async move {
            let response = service.handle(&request, &mut environment).await;
            Ok(response.into_text())
        })))
    }

    /// Begins to run a query on all data. The result is the JSON text `{"columns":[{name, path}],
    /// "rows":[[…]]}` with every row.
    ///
    /// `parameters` is a JSON object. A value `{"text": "…"}` takes the type of the other side of
    /// its comparison. `now` is ISO 8601 with zone.
    ///
    /// # Errors
    ///
    /// An `Error` with `diagnostics` if the query or a parameter is wrong. A step fails without them
    /// if the result is too large.
    pub fn begin(&self, q: &str, parameters: &str, now: &str) -> Result<Steps, JsValue> {
        let run = self.steps(self.plan(q, parameters, None)?, now, None)?;
        Ok(Steps(Box::pin(async {
            let (rows, _) = outcome_of(run.await)?;
            Ok(json_in_steps(&rows).await)
        })))
    }

    /// Returns the findings that a commit would have for a composition (canonical JSON or XML):
    /// JSON text of a list of `{severity, code, path, message, expected, found, label}`. The
    /// template is the one with this id, or else the one named in the composition.
    ///
    /// # Errors
    ///
    /// The repository fails.
    pub fn validate(&self, text: &str, template_id: Option<String>) -> Result<String, JsValue> {
        let found = now_or_never(
            self.service
                .validate_composition(text, template_id.as_deref()),
        )
        .map_err(error::of_wait)?;
        Ok(found
            .map_err(error::of_store_message)?
            .iter()
            .map(finding_json)
            .collect::<Value>()
            .to_string())
    }

    /// Begins to explain each step of a query and the data that its run reads. The result is the
    /// JSON text of `query/aql/explain`. Parameters as in [`Repository::begin`].
    ///
    /// # Errors
    ///
    /// A parameter cannot be read. Problems of the query are part of the explanation.
    pub fn begin_explanation(
        &self,
        q: &str,
        parameters: &str,
        now: &str,
    ) -> Result<Steps, JsValue> {
        let parameters = bound(parameters)?;
        let (answers, templates) = (self.answers(q)?, self.templates()?);
        let (service, q, now) = (Rc::clone(&self.service), q.to_owned(), now.to_owned());
        Ok(Steps(Box::pin(async move {
            let host = RunHost {
                pause: &next_poll,
                ..RunHost::in_memory(&now, &clock)
            };
            service
                .explanation(&q, &parameters, None, &answers, &host, &templates)
                .await
                .map(|explanation| explanation.to_string())
                .map_err(|failed| error::of_store(&failed))
        })))
    }

    /// Returns the problems of a query, compared with the templates and the data: JSON text of a
    /// list of `{from, to, severity, code, message, help, fix}`; `fix` is `{from, to, text}`.
    ///
    /// # Errors
    ///
    /// The repository fails.
    pub fn diagnose(&self, q: &str, now: &str) -> Result<String, JsValue> {
        let templates = self.templates()?;
        ready(async {
            let found = self
                .service
                .diagnosis(q, &RunHost::in_memory(now, &clock), &templates)
                .await;
            found.map(|found| diagnostics_json(q, &found).to_string())
        })
    }

    /// Returns completions at an offset (in UTF-16 units) of a query, with the names of the
    /// templates: JSON text `{from, to, options: [{label, kind, detail, insert}]}`, the most likely
    /// first. Proposals that do not fit the letters before the offset are left out.
    ///
    /// # Errors
    ///
    /// The repository fails.
    pub fn complete(&self, q: &str, offset: usize) -> Result<String, JsValue> {
        let at = byte_offset(q, offset);
        let found = self.labelled(|labels| aql::complete(q, at, labels))?;
        let span = found.first().map_or(Span::new(at, at), |c| c.span);
        let option = |c: &Completion| json!({ "label": c.label, "kind": c.kind.name(), "detail": c.detail, "insert": c.insert });
        let options: Vec<Value> = found.iter().map(option).collect();
        let index = LineIndex::new(q);
        let (from, to) = (index.utf16(span.start), index.utf16(span.end));
        Ok(json!({ "from": from, "to": to, "options": options }).to_string())
    }

    /// Describes a template, in a language if it has it: JSON text of a tree `{path, label, class,
    /// occurrences, units, codes, …}` with its languages, or `null` for an unknown template.
    ///
    /// # Errors
    ///
    /// The repository fails.
    pub fn describe(&self, template: &str, language: &str) -> Result<String, JsValue> {
        let described = self.of_template(
            template,
            |t| json!({ "languages": t.languages, "tree": describe(t, language).to_json() }),
        )?;
        Ok(Value::from(described).to_string())
    }

    /// Converts a composition (canonical JSON) to the format `FLAT` or `STRUCTURED`.
    ///
    /// # Errors
    ///
    /// The text is not a composition, or its template is unknown.
    pub fn simplified(&self, composition: &str, format: &str) -> Result<String, JsValue> {
        let tree = rm_json::read(composition, Cls::COMPOSITION)
            .map_err(|_| error::of_argument("the document is no composition"))?;
        let root = tree
            .root()
            .ok_or_else(|| error::of_argument("the document is empty"))?;
        let id = root
            .text_along(&[Attr::ARCHETYPE_DETAILS, Attr::TEMPLATE_ID, Attr::VALUE])
            .unwrap_or_default();
        let shape = if format == "FLAT" {
            Shape::Flat
        } else {
            Shape::Structured
        };
        let written = self.of_template(id, |t| {
            flat::write(root, shape, t, &WebTemplate::of(t), FlatDialect::Better)
        })?;
        let written = written
            .ok_or_else(|| error::of_argument(format!("the template `{id}` is not here")))?;
        let written = written.map_err(error::of_argument)?;
        Ok(written.text)
    }

    /// Describes the word at an offset (in UTF-16 units) of a query: JSON text `{from, to, title,
    /// text}`, or `null`.
    ///
    /// # Errors
    ///
    /// The repository fails.
    pub fn hover(&self, q: &str, offset: usize) -> Result<String, JsValue> {
        let index = LineIndex::new(q);
        let found = self.labelled(|labels| aql::hover(q, byte_offset(q, offset), labels))?;
        let hover = found.map(|h| json!({ "from": index.utf16(h.span.start), "to": index.utf16(h.span.end), "title": h.title, "text": h.text }));
        Ok(Value::from(hover).to_string())
    }
}

impl Repository {
    /// Replaces the configuration, unless a call runs in steps.
    fn configure(&mut self, config: Config) {
        let spare = Service::new(Memory::new(), config.clone());
        if let Some(service) = Rc::get_mut(&mut self.service) {
            *service = std::mem::replace(service, spare).with_config(config);
        }
    }

    fn of_template<T>(
        &self,
        id: &str,
        make: impl FnOnce(&Template) -> T,
    ) -> Result<Option<T>, JsValue> {
        self.read_templates()?;
        let known = self.templates.borrow();
        let mut known = known.templates().iter();
        Ok(known.find(|t| t.template_id == id).map(make))
    }

    /// Plans a query, or one page of it.
    fn plan(&self, q: &str, parameters: &str, page: Option<Page>) -> Result<Plan, JsValue> {
        let parameters = bound(parameters)?;
        let answers = self.answers(q)?;
        let options = QueryOptions {
            terminology: Some(&answers),
            page,
            ..QueryOptions::default()
        };
        aql::prepare(q, &parameters, &options).map_err(|found| query_error(q, &found))
    }

    /// Begins to run a plan on a state of the data; without one on the newest.
    fn steps(
        &self,
        plan: Plan,
        now: &str,
        snapshot: Option<Snapshot>,
    ) -> Result<QuerySteps, JsValue> {
        let budget = Budget {
            rows: ROWS,
            piece: STEP,
            ..Budget::default()
        };
        let memory = self.service.repository();
        QuerySteps::new(memory, plan, now.to_owned(), budget, snapshot)
            .map_err(|failed| error::of_store(&failed))
    }

    /// Returns the answers of the stored value sets to the terminology calls of a query. No server
    /// is called here.
    fn answers(&self, q: &str) -> Result<Answers, JsValue> {
        let ast = aql::parse(q).0;
        let answers = ast.map(|ast| now_or_never(self.service.terminology_answers(&ast)));
        answers
            .unwrap_or_else(|| Ok(Ok(Answers::default())))
            .map_err(error::of_wait)?
            .map_err(error::of_store_message)
    }

    fn templates(&self) -> Result<LintTemplates, JsValue> {
        now_or_never(self.service.templates_of_lint())
            .map_err(error::of_wait)?
            .map_err(error::of_store_message)
    }

    /// Calls `ask` with the labels of the present templates.
    fn labelled<T>(&self, ask: impl FnOnce(&TemplateLabels<'_>) -> T) -> Result<T, JsValue> {
        self.read_templates()?;
        Ok(ask(&TemplateLabels {
            templates: self.templates.borrow().templates().iter().collect(),
            language: "en",
        }))
    }

    fn read_templates(&self) -> Result<(), JsValue> {
        let mut known = self.templates.borrow_mut();
        ready(known.renew(self.service.repository()))
    }
}

/// Formats a query.
///
/// # Errors
///
/// An `Error` with `diagnostics` if the text is not a query.
#[wasm_bindgen]
pub fn format(q: &str) -> Result<String, JsValue> {
    aql::format(q).map_err(|found| query_error(q, &found))
}

/// Returns the query for the document that contains a cell (column and row from 0): one row with
/// the whole COMPOSITION in its last column. `undefined` if the cell belongs to no document.
///
/// # Errors
///
/// An `Error` with `diagnostics` if the text is not a query.
#[wasm_bindgen(js_name = documentQuery)]
pub fn document_query(q: &str, column: usize, row: Option<u32>) -> Result<Option<String>, JsValue> {
    aql::document_query(q, column, row.map(u64::from)).map_err(|found| query_error(q, &found))
}

/// Returns the query for the EHRs of all rows: the id of the EHR is in its last column. `undefined`
/// if rows may belong to several EHRs.
///
/// # Errors
///
/// An `Error` with `diagnostics` if the text is not a query.
#[wasm_bindgen(js_name = patientQuery)]
pub fn patient_query(q: &str) -> Result<Option<String>, JsValue> {
    aql::patient_query(q).map_err(|found| query_error(q, &found))
}

/// Returns the result of a future of the repository in memory, which never waits.
fn ready<T>(future: impl Future<Output = Result<T, StoreError>>) -> Result<T, JsValue> {
    now_or_never(future)
        .map_err(error::of_wait)?
        .map_err(|failed| error::of_store(&failed))
}

/// Reads the clock, in microseconds since 1970.
fn clock() -> i64 {
    (js_sys::Date::now() * 1000.0) as i64
}

fn outcome_of(outcome: StepsOutcome) -> Result<(ResultSet, Snapshot), JsValue> {
    let (result, snapshot) = outcome.map_err(|failed| error::of_store(&failed))?;
    Ok((result.map_err(|ended| error::of_run(&ended))?, snapshot))
}

/// Converts an offset in UTF-16 units to one in bytes.
fn byte_offset(text: &str, units: usize) -> usize {
    let mut left = units;
    let found = text.char_indices().find(|(_, c)| {
        let here = left == 0;
        left = left.saturating_sub(c.len_utf16());
        here
    });
    found.map_or(text.len(), |(at, _)| at)
}

/// Parses the parameters of a JSON object.
fn bound(parameters: &str) -> Result<Parameters, JsValue> {
    let parameters = match rm_json::value(parameters)
        .map_err(|problem| error::of_argument(problem.describe(parameters)))?
    {
        Value::Object(members) => members,
        _ => return Err(error::of_argument("expected an object of parameters")),
    };
    // A loop, because `collect` into a map would add code of its own to the module.
    let mut all = Parameters::new();
    all.extend(
        parameters
            .into_iter()
            .map(|(name, value)| (name, parameter(value))),
    );
    Ok(all)
}

fn parameter(value: Value) -> Parameter {
    match value {
        Value::Null => Parameter::Null,
        Value::Bool(flag) => Parameter::Boolean(flag),
        Value::Number(number) => Parameter::Number(number.to_string()),
        Value::String(text) => Parameter::Text(text),
        Value::Array(items) => Parameter::List(items.into_iter().map(parameter).collect()),
        Value::Object(untyped) => Parameter::Untyped(
            untyped
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        ),
    }
}

fn finding_json(f: &Finding) -> Value {
    let severity = severity(f.severity);
    json!({ "severity": severity, "code": f.code, "path": f.path, "message": f.message, "expected": f.expected, "found": f.found, "label": f.label })
}

fn severity(severity: Severity) -> &'static str {
    if severity == Severity::Error {
        "error"
    } else {
        "warning"
    }
}

/// Creates an `Error` with the message of the first problem, and all of them as its `diagnostics`.
fn query_error(q: &str, found: &[Diagnostic]) -> JsValue {
    let message = found
        .first()
        .map_or_else(|| String::from("the query is wrong"), |d| d.one_line(q));
    error::of_text(message, found, &diagnostics_json(q, found))
}
