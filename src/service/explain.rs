//! Explanation of queries: each compilation step as data, and the data that a run reads.
//! `query/aql/explain` is an extension of the interface.
//!
//! Positions are offsets in UTF-16 units, as editors in browsers count. A layout shows only texts
//! of a template, an archetype or the Reference Model. An explanation never contains values of
//! patients.

use super::Service;
use super::call::Call;
use super::error::Failure;
use super::http::Response;
use super::negotiate::choose;
use super::parameters::QueryRequest;
use super::query_memory::{ReadBudget, StopReason};
use super::time::iso;
use crate::aql::{
    self, Budget, Explanation, Parameters, Part, Plan, QueryError, QueryOptions, Run, Terminology,
    Touched, TouchedLayout,
};
use crate::diag::{Diagnostic, LineIndex, Severity, Span};
use crate::document::Batch;
use crate::store::repository::{BatchSink, Pause, Repository, ScanReads, StoreError};
use crate::store::scan::Progress;
use serde_json::{Map, Value, json};

impl<R: Repository> Service<R> {
    /// GET and POST /query/aql/explain
    pub(super) async fn query_explain(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let request = QueryRequest::read(call, None)?;
        let q = request
            .q
            .as_deref()
            .filter(|q| !q.trim().is_empty())
            .ok_or_else(|| Failure::bad_request("the query text `q` is missing"))?;
        if q.len() > self.config.limits.aql {
            return Err(Failure::too_large("query", self.config.limits.aql));
        }
        if let Some(ehr) = &request.ehr {
            call.trail.add_ehr(ehr);
            self.ehr_with_id(ehr).await?;
        }
        let answers = match aql::parse(q).0 {
            Some(ast) => self.answers(Some(call), &ast).await?,
            None => super::Answers::default(),
        };
        let until = call.now.saturating_add(self.config.limits.query_time);
        let stopped = || call.clock() > until;
        let host = Host {
            now: &iso(call.now),
            stopped: &stopped,
            pause: &|| call.pause(),
            clock: &|| call.clock(),
            until,
        };
        let explanation = self
            .explanation(
                q,
                &request.parameters,
                request.ehr.as_deref(),
                &answers,
                &host,
            )
            .await;
        Ok(Response::json(200, explanation.map_err(Failure::of_store)?))
    }

    /// Returns each compilation step of a query, and the data that its run reads.
    ///
    /// # Errors
    /// If the repository fails. Errors of the query are part of the explanation.
    pub async fn explanation(
        &self,
        q: &str,
        parameters: &Parameters,
        ehr: Option<&str>,
        terminology: &dyn Terminology,
        host: &Host<'_>,
    ) -> Result<Value, StoreError> {
        let options = QueryOptions {
            ehr,
            exact_archetypes: self.config.exact_archetypes,
            terminology: Some(terminology),
        };
        let (explanation, plan) = aql::explain(q, parameters, &options, &[]);
        let mut out = compilation_steps(q, &explanation, host).await;
        if let Some(plan) = plan {
            out.insert(String::from("run"), self.explained_run(&plan, host).await?);
        }
        Ok(Value::Object(out))
    }

    async fn explained_run(&self, plan: &Plan, host: &Host<'_>) -> Result<Value, StoreError> {
        // The rows are counted and not shown, so they need only a part of the memory that queries
        // share.
        let budget = self.budget();
        let budget = Budget {
            bytes: budget.bytes / 4,
            ..budget
        };
        let mut sink = ExplainSink {
            plan,
            touched: Touched::default(),
            run: Run::new(plan, host.now, budget, host.stopped),
            budget,
            is_new: true,
            host,
            reading: ReadBudget::new(self.query_memory.share(), host.until),
            reads: ScanReads::default(),
        };
        self.repository.scan(plan.scan(), &mut sink).await?;
        let ExplainSink {
            touched,
            mut run,
            reading,
            reads,
            ..
        } = sink;
        while run.close() == Progress::Paused {
            (host.pause)().await;
        }
        let work = run.work();
        let outcome = match reading.refusal {
            None => run
                .finish()
                .map(|result| result.len())
                .map_err(|error| error.to_string()),
            Some(StopReason::Late) => Err(QueryError::Stopped.to_string()),
            Some(StopReason::NoRoom(failure)) => Err(failure.into_fields().message),
        };
        Ok(json!({
            "batches": touched.batches,
            "segments": touched.segments,
            "reads": reads_of(&reads),
            "bytes": touched.bytes,
            "ehrs": touched.ehrs,
            "documents": touched.documents,
            "documents_scanned": touched.scanned,
            "shapes": touched.layouts,
            "matching": touched.matching.iter().map(layout).collect::<Value>(),
            "work": work,
            "rows": outcome.as_ref().ok(),
            "error": outcome.as_ref().err(),
        }))
    }
}

/// The host functions of a run.
pub struct Host<'h> {
    /// The time of the request, ISO 8601 with zone.
    pub now: &'h str,
    /// Returns whether to stop. Called regularly.
    pub stopped: &'h dyn Fn() -> bool,
    /// Yields to other requests, see [`super::Environment::pause`].
    pub pause: &'h dyn Fn() -> Pause,
    /// Reads the clock, in microseconds since 1970.
    pub clock: &'h dyn Fn() -> i64,
    /// The time at which a run ends without a result.
    pub until: i64,
}

/// A sink that runs a query and records the data that it reads.
struct ExplainSink<'r, 'h> {
    plan: &'r Plan,
    touched: Touched,
    run: Run<'r>,
    budget: Budget,
    /// False between the steps of one batch.
    is_new: bool,
    host: &'h Host<'h>,
    reading: ReadBudget,
    reads: ScanReads,
}

impl<'h: 'r, 'r> BatchSink for ExplainSink<'r, 'h> {
    fn take(&mut self, batch: &Batch) -> Progress {
        if self.is_new {
            self.touched.add(self.plan, batch);
        }
        let progress = self.run.advance(batch);
        self.is_new = progress != Progress::Paused;
        let held = self.run.footprint();
        if self.reading.hold(held, (self.host.clock)()) {
            progress
        } else {
            Progress::Enough
        }
    }

    fn admit(&mut self, bytes: usize) -> bool {
        let held = self.run.footprint();
        self.reading.admit(bytes, held, (self.host.clock)())
    }

    fn restart(&mut self) -> bool {
        self.run = Run::new(self.plan, self.host.now, self.budget, self.host.stopped);
        self.touched = Touched::default();
        self.is_new = true;
        self.reading.restart()
    }

    fn observe(&mut self, reads: &ScanReads) {
        self.reads = *reads;
    }

    fn pause(&self) -> Pause {
        (self.host.pause)()
    }
}

fn reads_of(reads: &ScanReads) -> Value {
    json!({
        "segments": reads.segments,
        "absent_segments": reads.absent_segments,
        "blobs": reads.blobs,
        "blob_bytes": reads.blob_bytes,
        "part_bytes": reads.part_bytes,
        "pages": reads.pages,
        "rows": reads.rows,
    })
}

/// Bytes of a text above which its explanation is made with pauses, and tokens between two of them.
const LONG: usize = 10_000;
const TOKENS: usize = 10_000;

fn layout(layout: &TouchedLayout) -> Value {
    json!({
        "name": layout.name,
        "variable": layout.variable,
        "fragments": layout.fragments,
        "passes": layout.passes,
        "rows": layout.rows,
    })
}

/// Returns the result of each compilation step, with pauses between them: a long text has many
/// tokens and parts.
async fn compilation_steps(
    q: &str,
    explanation: &Explanation,
    host: &Host<'_>,
) -> Map<String, Value> {
    let is_long = q.len() > LONG;
    let index = LineIndex::new(q);
    let mut out = Map::new();
    let mut tokens = Vec::with_capacity(explanation.tokens.len());
    for some in explanation.tokens.chunks(TOKENS) {
        tokens.extend(some.iter().map(|(kind, span)| token(kind, *span, &index)));
        if is_long {
            (host.pause)().await;
        }
    }
    out.insert(String::from("tokens"), Value::Array(tokens));
    for (name, rung) in [
        ("syntax", &explanation.syntax),
        ("query", &explanation.query),
        ("plan", &explanation.plan),
    ] {
        if is_long {
            (host.pause)().await;
        }
        out.insert(
            name.to_owned(),
            rung.as_ref().map_or(Value::Null, |rung| part(rung, &index)),
        );
    }
    let diagnostics = explanation.diagnostics.iter();
    let diagnostics = diagnostics.map(|d| diagnostic(d, &index)).collect();
    out.insert(String::from("diagnostics"), diagnostics);
    out
}

fn token(kind: &str, span: Span, index: &LineIndex<'_>) -> Value {
    json!({ "kind": kind, "from": index.utf16(span.start), "to": index.utf16(span.end) })
}

fn diagnostic(d: &Diagnostic, index: &LineIndex<'_>) -> Value {
    let (from, to) = (index.utf16(d.span.start), index.utf16(d.span.end));
    let severity = match d.severity {
        Severity::Error => "error",
        _ => "warning",
    };
    json!({ "from": from, "to": to, "severity": severity, "code": d.code, "message": d.message, "help": d.help })
}

fn part(of: &Part, index: &LineIndex<'_>) -> Value {
    let mut out = Map::new();
    out.insert(String::from("label"), of.label.as_str().into());
    if let Some(span) = of.span {
        out.insert(String::from("from"), index.utf16(span.start).into());
        out.insert(String::from("to"), index.utf16(span.end).into());
    }
    if !of.parts.is_empty() {
        out.insert(
            String::from("parts"),
            of.parts.iter().map(|p| part(p, index)).collect(),
        );
    }
    Value::Object(out)
}
