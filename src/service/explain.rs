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
use super::lint::LintTemplates;
use super::negotiate::choose;
use super::parameters::QueryRequest;
use super::run_host::RunHost;
use super::time::iso;
use super::trial::Trial;
use crate::aql::{
    self, Explanation, LayoutStatistics, Parameters, Part, Plan, QueryOptions, ResultSet,
    Terminology,
};
use crate::diag::{Diagnostic, LineIndex, Severity, Span};
use crate::store::repository::{Repository, ScanReads, StoreError};
use aqlite_rm::order;
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
            // An unknown EHR is an error of the request, not a result without rows.
            self.ehr_with_id(ehr).await?;
        }
        let answers = match aql::parse(q).0 {
            Some(ast) => self.answers(Some(call), &ast).await?,
            None => super::Answers::default(),
        };
        let deadline = call.now.saturating_add(self.config.limits.query_time);
        let is_stopped = || call.clock() > deadline;
        let host = RunHost {
            now: &iso(call.now),
            is_stopped: &is_stopped,
            pause: &|| call.pause(),
            clock: &|| call.clock(),
            deadline,
        };
        let templates = self.lint_templates(Some(call)).await?;
        let explanation = self
            .explanation(
                q,
                &request.parameters,
                request.ehr.as_deref(),
                &answers,
                &host,
                &templates,
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
        host: &RunHost<'_>,
        templates: &LintTemplates,
    ) -> Result<Value, StoreError> {
        let options = QueryOptions {
            ehr,
            exact_archetypes: self.config.exact_archetypes,
            terminology: Some(terminology),
            ..QueryOptions::default()
        };
        let (mut explanation, plan) = aql::explain(q, parameters, &options, &templates.all());
        let lint = std::mem::take(&mut explanation.lint);
        let found = self.unrefuted(lint, parameters, &options, host).await?;
        explanation.diagnostics.extend(found);
        order::sort_by_key(&mut explanation.diagnostics, |d| d.span.start);
        let mut out = compilation_steps(q, &explanation, host).await;
        if let Some(plan) = plan {
            let run = self.explained_run(&plan, host).await?;
            // A run that failed has null as its number of rows.
            if run.get("rows") == Some(&Value::from(0))
                && let Some(stages) = &explanation.stages
            {
                let window = plan.query().window;
                let removed = self.removed(stages, window, parameters, &options, host);
                let index = LineIndex::new(q);
                out.insert(String::from("empty"), removed.await?.to_json(&index));
            }
            out.insert(String::from("run"), run);
        }
        Ok(Value::Object(out))
    }

    async fn explained_run(&self, plan: &Plan, host: &RunHost<'_>) -> Result<Value, StoreError> {
        let work = self.budget().work;
        let trial = self.trial(plan, work, true, host).await?;
        let Trial { touched, reads, .. } = &trial;
        let outcome = trial.result.as_ref().map(ResultSet::len);
        Ok(json!({
            "batches": touched.batches,
            "segments": touched.segments,
            "reads": reads_of(reads),
            "bytes": touched.bytes,
            "ehrs": touched.ehrs,
            "documents": touched.documents,
            "documents_scanned": touched.scanned,
            "layouts": touched.layouts,
            "matching": touched.matching.iter().map(layout).collect::<Value>(),
            "left_out": trial.left_out,
            "work": trial.work,
            "rows": outcome.ok(),
            "error": outcome.err(),
        }))
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

/// Bytes of a text above which its explanation is made with pauses.
const LONG: usize = 10_000;
/// Tokens between two pauses.
const TOKENS: usize = 10_000;

fn layout(layout: &LayoutStatistics) -> Value {
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
    host: &RunHost<'_>,
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
    let diagnostics = &explanation.diagnostics;
    let all = diagnostics.iter().map(|d| diagnostic(d, &index));
    out.insert(String::from("diagnostics"), all.collect());
    let warnings = diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Warning);
    let warnings = warnings.map(|d| diagnostic(d, &index)).collect();
    out.insert(String::from("warnings"), warnings);
    out
}

fn token(kind: &str, span: Span, index: &LineIndex<'_>) -> Value {
    json!({ "kind": kind, "from": index.utf16(span.start), "to": index.utf16(span.end) })
}

/// Returns the problems of a text as a list of `{from, to, severity, code, message, help, fix}`.
pub fn diagnostics_json(text: &str, found: &[Diagnostic]) -> Value {
    let index = LineIndex::new(text);
    found.iter().map(|d| diagnostic(d, &index)).collect()
}

fn diagnostic(d: &Diagnostic, index: &LineIndex<'_>) -> Value {
    let (from, to) = (index.utf16(d.span.start), index.utf16(d.span.end));
    let severity = match d.severity {
        Severity::Error => "error",
        _ => "warning",
    };
    let fix = d.fix.as_ref().map(|fix| {
        let (from, to) = (index.utf16(fix.span.start), index.utf16(fix.span.end));
        json!({ "from": from, "to": to, "text": fix.text })
    });
    json!({ "from": from, "to": to, "severity": severity, "code": d.code, "message": d.message, "help": d.help, "fix": fix })
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
