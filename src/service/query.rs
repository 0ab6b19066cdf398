//! Queries: ad hoc and stored. A response is a complete page of rows or an error.

use super::Service;
use super::call::Call;
use super::commit::quoted;
use super::error::Failure;
use super::executed::substituted;
use super::http::{Response, encode_value};
use super::ids::{VersionUid, is_uuid, is_version};
use super::negotiate::{NegotiatedFormat, Return, wanted_result};
use super::page_state::PageState;
use super::parameters::Asked;
use super::query_memory::{Reading, Refusal, Share};
use super::root::generator;
use super::stored_query::{detail, qualified_name};
use super::time::iso;
use super::validators::not_modified;
use crate::aql::query::{ColumnValue, Condition, Expr, FunctionGroup, Literal, Query, Window};
use crate::aql::{
    self, Budget, CheckOptions, Parameters, Plan, QueryError, ResultFormat, ResultSet, RowValue,
    Run,
};
use crate::document::{Batch, short_digest};
use crate::rm::class::{Attr, Cls};
use crate::store::repository::{BatchSink, Definition, Pause, Repository};
use crate::store::scan::{Progress, Scan};
use serde_json::{Value, json};
use std::fmt::Write;

/// The header that reports rows after the page, for bodies that cannot.
const MORE: &str = "Aqlite-More";
/// The header with the token of the state of the page.
const SNAPSHOT: &str = "Aqlite-Snapshot";

/// The result of a run.
pub(crate) struct Answer {
    /// The page.
    pub result: ResultSet,
    /// Whether there are rows after a page whose size the client did not choose.
    pub more: bool,
    /// The state that was read.
    state: PageState,
    /// The EHR to which the query was restricted, if it exists.
    of_ehr: Option<String>,
    /// The reserved memory of the page, until it is written.
    share: Share,
}

/// The EHRs that an internal query reads.
#[derive(Clone, Copy)]
pub(crate) enum Whose<'a> {
    /// These EHRs, each named once.
    Of(&'a [String]),
    /// All EHRs that queries may read.
    Everybody,
}

impl<R: Repository> Service<R> {
    /// GET and POST /query/aql
    pub(super) async fn query_ad_hoc(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let format = wanted_result(call.request)?;
        let asked = Asked::of(call, None)?;
        let q = asked
            .q
            .clone()
            .filter(|q| !q.trim().is_empty())
            .ok_or_else(|| Failure::bad("the query text `q` is missing"))?;
        self.respond(call, &asked, &q, None, format).await
    }

    /// GET and POST /query/{name}[/{version}]
    pub(super) async fn query_stored(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let format = wanted_result(call.request)?;
        let stored = self
            .stored_query(call.param(0), call.optional_param(1))
            .await?;
        let complete = call.optional_param(1).is_some_and(is_version);
        let plain = call.request.method != "POST"
            && complete
            && format == NegotiatedFormat::Json
            && !Asked::in_request(call.request);
        if call.dialect.detail_and_result() && plain {
            return self.detail_and_result(call, &stored).await;
        }
        let asked = Asked::of(call, Some(&stored.body))?;
        self.respond(call, &asked, &stored.body, Some(&stored), format)
            .await
    }

    /// Returns the definition of a stored query, together with its result if it needs no
    /// parameters.
    async fn detail_and_result(
        &self,
        call: &Call<'_>,
        stored: &Definition,
    ) -> Result<Response, Failure> {
        let mut body = detail(call.dialect, stored);
        if call.prefer.stated && call.prefer.returns == Return::Minimal {
            return Ok(call.preference_applied(Response::json(200, Value::Object(body))));
        }
        let executed = match Asked::default().confined(call) {
            Ok(asked) => {
                self.respond(
                    call,
                    &asked,
                    &stored.body,
                    Some(stored),
                    NegotiatedFormat::Json,
                )
                .await
            }
            Err(refusal) => Err(refusal),
        };
        let Ok(response) = executed else {
            return Ok(Response::json(200, Value::Object(body)));
        };
        let mut text = Value::Object(std::mem::take(&mut body)).to_string();
        text.pop();
        let result = String::from_utf8_lossy(&response.body).into_owned();
        let members = crate::rm::json::members(&result)
            .map_err(|m| super::content::malformed("result", &result, m))?;
        for (key, value) in members
            .into_iter()
            .filter(|(key, _)| !matches!(&**key, "name" | "q"))
        {
            let _ = write!(text, ",\"{key}\":{value}");
        }
        text.push('}');
        let etag = response.header("ETag").unwrap_or_default().to_owned();
        Ok(Response::new(200)
            .with_body("application/json", text)
            .with_header("ETag", etag))
    }

    async fn respond(
        &self,
        call: &Call<'_>,
        asked: &Asked,
        q: &str,
        stored: Option<&Definition>,
        format: NegotiatedFormat,
    ) -> Result<Response, Failure> {
        call.trail.asks(&short_digest(q));
        if let Some(ehr) = &asked.ehr {
            call.trail.touches(ehr);
        }
        let prepared = match self.prepare(call, asked, q).await {
            Ok(prepared) => prepared,
            Err(failure) => return Err(self.no_ehr(asked).await.unwrap_or(failure)),
        };
        // Whether the snapshot still exists, and how often one EHR has changed, is known only after
        // reading it.
        let (lasts, of_one_ehr) = (prepared.lasts, prepared.plan.scan().ehr().is_some());
        if lasts
            && !of_one_ehr
            && asked.snapshot.is_none()
            && call.request.header("If-None-Match").is_some()
        {
            let revision = self
                .repository
                .revision()
                .await
                .map_err(Failure::of_store)?;
            let etag = self.etag(call, asked, q, revision, format);
            if let Some(response) = not_modified(call.request, &etag) {
                return Ok(response);
            }
        }
        let answer = self.run(call, prepared).await?;
        if answer.of_ehr != asked.ehr
            && let Some(failure) = self.no_ehr(asked).await
        {
            return Err(failure);
        }
        let etag = self.etag(call, asked, q, answer.state.snapshot.revision, format);
        if lasts && let Some(response) = not_modified(call.request, &etag) {
            return Ok(response);
        }
        let (media_type, body) = match format {
            NegotiatedFormat::Json => {
                let head = self.result_head(call, asked, q, stored, &answer);
                (
                    "application/json",
                    self.written(call, &answer, ResultFormat::Json, head)
                        .await?
                        + "}",
                )
            }
            NegotiatedFormat::Csv(options) => {
                let result_format = ResultFormat::Csv(options, answer.result.csv_columns());
                (
                    "text/csv; charset=utf-8; header=present",
                    self.written(call, &answer, result_format, String::new())
                        .await?,
                )
            }
            NegotiatedFormat::Ndjson => ("application/x-ndjson", {
                let result_format = ResultFormat::Ndjson(answer.result.column_names());
                self.written(call, &answer, result_format, String::new())
                    .await?
            }),
        };
        let response = Response::new(200)
            .with_body(media_type, body)
            .with_header("ETag", format!("\"{etag}\""));
        let response = response.with_header(SNAPSHOT, answer.state.to_string());
        Ok(if answer.more && format != NegotiatedFormat::Json {
            response.with_header(MORE, "true")
        } else {
            response
        })
    }

    /// Returns the error if the EHR of the request does not exist. The EHR is read only if nothing
    /// else has shown that it exists.
    async fn no_ehr(&self, asked: &Asked) -> Option<Failure> {
        self.ehr_with_id(asked.ehr.as_deref()?).await.err()
    }

    /// Runs internal queries, such as those of a guide, over one scan, and calls `visit` for each
    /// row with the number of its query. Returns the named EHRs that do not exist. An error has the
    /// number of the query that failed.
    pub(crate) async fn each_row(
        &self,
        call: &Call<'_>,
        queries: &[&str],
        parameters: &Parameters,
        whose: Whose<'_>,
        visit: &mut dyn FnMut(usize, &[RowValue<'_>]),
    ) -> Result<Vec<String>, (usize, Failure)> {
        let named = if let Whose::Of(ehrs) = whose {
            Some(ehrs.to_vec())
        } else {
            None
        };
        let mut plans: Vec<Plan> = Vec::with_capacity(queries.len());
        for (i, q) in queries.iter().enumerate() {
            let plan = self.own_plan(q, parameters, named.as_deref());
            plans.push(plan.map_err(|failure| (i, failure))?);
            if plans.len().is_multiple_of(TOGETHER) {
                call.pause().await;
            }
        }
        let mut missing = named.clone().unwrap_or_default();
        let nothing = Scan {
            kinds: Vec::new(),
            whole_ehrs: false,
            empty_ehrs: named.is_some(),
            unqueryable: named.is_some(),
            ehrs: named,
            ..Scan::default()
        };
        let scan = plans
            .iter()
            .fold(nothing, |all, plan| all.with(plan.scan()));
        let now = iso(call.now);
        let stopped = self.deadline(call);
        let budget = self.budget();
        let runs = plans
            .iter()
            .map(|plan| Run::new(plan, &now, budget, &stopped))
            .collect();
        let mut sink = EachRow {
            call,
            reading: Reading::new(self.query_memory.share(), self.deadline_at(call)),
            runs,
            at: 0,
            goes_on: false,
            work: 0,
            most: budget.work,
            missing: &mut missing,
            visit,
        };
        self.repository
            .scan(&scan, &mut sink)
            .await
            .map_err(|error| (0, Failure::of_store(error)))?;
        if let Some(refusal) = sink.reading.refusal.take() {
            return Err((0, self.refused(refusal)));
        }
        if sink.work > sink.most {
            let error = QueryError::TooMuchWork(sink.most);
            return Err((sink.at, self.given_up(&error)));
        }
        sink.runs.into_iter().enumerate().try_for_each(|(i, run)| {
            run.finish()
                .map(drop)
                .map_err(|error| (i, self.given_up(&error)))
        })?;
        Ok(missing)
    }

    fn own_plan(
        &self,
        q: &str,
        parameters: &Parameters,
        ehrs: Option<&[String]>,
    ) -> Result<Plan, Failure> {
        let (ast, diagnostics) = aql::parse(q);
        let ast = ast.ok_or_else(|| Failure::in_text(400, "query", q, &diagnostics))?;
        let query = aql::check(&ast, parameters, &CheckOptions::default())
            .map_err(|d| Failure::in_text(400, "query", q, &d))?;
        let plan = aql::plan(query, None, self.config.exact_archetypes)
            .map_err(|d| Failure::in_text(400, "query", q, &d))?;
        Ok(if let Some(ehrs) = ehrs {
            plan.among(ehrs)
        } else {
            plan
        })
    }

    /// Returns a function that returns whether the time of a query is over.
    fn deadline(&self, call: &Call<'_>) -> impl Fn() -> bool {
        let deadline = self.deadline_at(call);
        move || call.clock() > deadline
    }

    fn deadline_at(&self, call: &Call<'_>) -> i64 {
        call.now.saturating_add(self.config.limits.query_time)
    }

    fn refused(&self, refusal: Refusal) -> Failure {
        match refusal {
            Refusal::Late => self.given_up(&QueryError::Stopped),
            Refusal::NoRoom(failure) => failure,
        }
    }

    /// Returns the budget of one query.
    pub(super) fn budget(&self) -> Budget {
        Budget {
            work: self.config.limits.query_work,
            ..Budget::default()
        }
    }

    fn given_up(&self, error: &QueryError) -> Failure {
        let seconds = self.config.limits.query_time / 1_000_000;
        match error {
            QueryError::TooManyRows(_)
            | QueryError::TooManyCombinations(_)
            | QueryError::TooLarge(_) => Failure::bad(error.to_string()),
            QueryError::TooMuchWork(_) => Failure::new(408, error.to_string()),
            QueryError::Broken(_) => Failure::new(500, error.to_string()),
            QueryError::Stopped => Failure::new(
                408,
                format!(
                    "the query took longer than {seconds} s; narrow it by an EHR, an archetype or a template"
                ),
            ),
        }
    }

    async fn prepare(&self, call: &Call<'_>, asked: &Asked, q: &str) -> Result<Prepared, Failure> {
        if q.len() > self.config.limits.aql {
            return Err(Failure::too_large("query", self.config.limits.aql));
        }
        let (ast, diagnostics) = aql::parse(q);
        let ast = ast.ok_or_else(|| Failure::in_text(400, "query", q, &diagnostics))?;
        self.check_page(call, asked, &ast)?;
        let answers = self.answers(Some(call), &ast).await?;
        let options = CheckOptions {
            terminology: Some(&answers),
            ..CheckOptions::default()
        };
        let mut query = aql::check(&ast, &asked.parameters, &options)
            .map_err(|d| Failure::in_text(status_of(&d), "query", q, &d))?;
        if let Some(status) = call.dialect.strict_version_uids() {
            check_uids(&query, &self.config.system_id, status)?;
        }
        let lasts = !answers.any() && !reads_clock(&query);
        let default_page = self.window(asked, &mut query);
        let plan = aql::plan(query, asked.ehr.as_deref(), self.config.exact_archetypes)
            .map_err(|d| Failure::in_text(status_of(&d), "query", q, &d))?;
        Ok(Prepared {
            plan,
            default_page,
            lasts,
            state: asked.snapshot,
        })
    }

    /// Checks that the page of a request is allowed for the query.
    fn check_page(
        &self,
        call: &Call<'_>,
        asked: &Asked,
        ast: &aql::ast::Query,
    ) -> Result<(), Failure> {
        let paged = asked.offset.is_some() || asked.fetch.is_some();
        if paged && ast.select.top.is_some() {
            return Err(Failure::bad(
                "`offset` and `fetch` cannot be combined with TOP; use LIMIT, or leave the page to `fetch`",
            ));
        }
        if let Some(status) = call.dialect.page_beside_limit()
            && paged
            && ast.limit.is_some()
        {
            return Err(Failure::new(
                status,
                "the query contains a LIMIT clause: the parameters `fetch` and `offset` must not be used with it",
            ));
        }
        match asked.fetch {
            Some(fetch) if fetch > self.config.limits.fetch_maximum => Err(Failure::bad(format!(
                "`fetch` is larger than the largest page of {} rows",
                self.config.limits.fetch_maximum
            ))),
            _ => Ok(()),
        }
    }

    /// Applies the page to the LIMIT of the query. Without a requested number of rows, reads one
    /// row more than the default page, to find out whether there are more, and returns the size of
    /// that page.
    fn window(&self, asked: &Asked, query: &mut Query) -> Option<u64> {
        let offset = asked.offset.unwrap_or(0);
        let (own, start) = match query.window {
            Some(Window::Last { .. }) => return None,
            Some(Window::First { limit, offset }) => (Some(limit), offset),
            None => (None, 0),
        };
        let rest = own.map(|limit| limit.saturating_sub(offset));
        let default_page =
            (asked.fetch.is_none() && own.is_none()).then_some(self.config.limits.fetch_default);
        let limit = match (asked.fetch, rest) {
            (Some(fetch), Some(rest)) => fetch.min(rest),
            (Some(fetch), None) => fetch,
            (None, Some(rest)) => rest,
            (None, None) => self.config.limits.fetch_default.saturating_add(1),
        };
        query.window = Some(Window::First {
            limit,
            offset: start.saturating_add(offset),
        });
        default_page
    }

    async fn run(&self, call: &Call<'_>, prepared: Prepared) -> Result<Answer, Failure> {
        let Prepared {
            plan,
            default_page,
            state,
            ..
        } = prepared;
        let time = state.map_or(call.now, |state| state.now);
        let now = iso(time);
        let stopped = self.deadline(call);
        let begin = || Run::new(&plan, &now, self.budget(), &stopped);
        let mut sink = OneQuery {
            call,
            run: begin(),
            begin: &begin,
            ehr: plan.scan().ehr(),
            seen: false,
            reading: Reading::new(self.query_memory.share(), self.deadline_at(call)),
        };
        state.map_or(Ok(()), |state| state.must_be_of(plan.scan().ehr()))?;
        let scan = Scan {
            snapshot: state.map(|state| state.snapshot),
            ..plan.scan().clone()
        };
        let snapshot = self
            .repository
            .scan(&scan, &mut sink)
            .await
            .map_err(Failure::of_store)?;
        let of_ehr = sink.ehr.filter(|_| sink.seen).map(str::to_owned);
        let OneQuery {
            mut run, reading, ..
        } = sink;
        if let Some(refusal) = reading.refusal {
            return Err(self.refused(refusal));
        }
        let share = reading.share;
        while run.close() == Progress::Paused {
            call.pause().await;
        }
        let mut result = run.finish().map_err(|error| self.given_up(&error))?;
        let page = default_page
            .and_then(|rows| usize::try_from(rows).ok())
            .unwrap_or(usize::MAX);
        let more = result.len() > page;
        result.truncate(page);
        Ok(Answer {
            result,
            more,
            state: PageState::new(snapshot, time, plan.scan().ehr()),
            of_ehr,
            share,
        })
    }

    /// Returns the entity tag of a result. It changes whenever the result may, with the data, the
    /// query, its parameters, the page and the mount.
    ///
    /// It is a digest of JSON of a fixed form, so that a new release returns the same tag for the
    /// same result.
    fn etag(
        &self,
        call: &Call<'_>,
        asked: &Asked,
        q: &str,
        revision: u64,
        format: NegotiatedFormat,
    ) -> String {
        let format = match format {
            NegotiatedFormat::Json => "json",
            NegotiatedFormat::Csv(options) if options.guard => "csv",
            NegotiatedFormat::Csv(_) => "csv;guard=off",
            NegotiatedFormat::Ndjson => "ndjson",
        };
        let page = self.config.limits.fetch_default;
        let archetypes = if self.config.exact_archetypes {
            "exact"
        } else {
            "specialised"
        };
        short_digest(
            &json!([
                revision,
                call.dialect.mount(),
                format,
                page,
                archetypes,
                q,
                asked.to_json()
            ])
            .to_string(),
        )
    }

    /// Writes the rows of a result after a head, with pauses between steps.
    ///
    /// # Errors
    /// As soon as the text is larger than the limit of a result.
    async fn written(
        &self,
        call: &Call<'_>,
        answer: &Answer,
        format: ResultFormat,
        head: String,
    ) -> Result<String, Failure> {
        let (mut out, mut rows, limit) = (head, 0, self.config.limits.result);
        let (result, held) = (&answer.result, answer.result.footprint());
        format.begin(&mut out);
        while rows < result.len() {
            let (start, next) = (out.len(), result.row_bytes(rows));
            if next > PIECE && start.saturating_add(next) <= limit {
                // The size of a row of long texts is checked before it is written.
                out.reserve_exact(next.saturating_add(2 * PIECE));
                answer
                    .share
                    .hold(held.saturating_add(out.capacity()), call.clock())?;
                call.pause().await;
            }
            if start.saturating_add(next) <= limit {
                rows = result.write_piece(&format, rows, (start + PIECE, limit), &mut out);
            }
            if out.len().max(start.saturating_add(next)) > limit {
                let remedy = "ask for fewer rows by `fetch`, or for paths instead of whole objects";
                return Err(Failure::bad(format!(
                    "the result is larger than {limit} bytes: {remedy}"
                )));
            }
            if rows < result.len() {
                // Reserves memory for the remaining rows, estimated from those so far: doubling the
                // text would take twice as much.
                let foretold =
                    (out.len() as u64).saturating_mul(result.len() as u64) / rows.max(1) as u64;
                let room = usize::try_from(foretold)
                    .unwrap_or(limit)
                    .min(limit)
                    .saturating_sub(out.len());
                out.reserve_exact(room.saturating_add(2 * PIECE).min(limit));
                answer
                    .share
                    .hold(held.saturating_add(out.capacity()), call.clock())?;
                call.pause().await;
            }
        }
        format.end(&mut out);
        Ok(out)
    }

    /// Returns the members of a result before its rows.
    fn result_head(
        &self,
        call: &Call<'_>,
        asked: &Asked,
        q: &str,
        stored: Option<&Definition>,
        answer: &Answer,
    ) -> String {
        let mut out = String::from(r#"{"meta":{"#);
        if call.request.method != "POST" {
            let _ = write!(out, r#""_href":{},"#, quoted(&href(call)));
        }
        let _ = write!(
            out,
            r#""_type":"RESULTSET","_schema_version":"{}","_created":"{}","_generator":"{}""#,
            call.dialect.specs_version(),
            iso(call.now),
            generator()
        );
        if answer.more {
            out.push_str(r#","_more":true"#);
        }
        let _ = write!(out, r#","_snapshot":"{}""#, answer.state);
        if self.config.debug || call.dialect.full_result_meta() {
            let _ = write!(
                out,
                r#","_executed_aql":{}"#,
                quoted(&substituted(q, &asked.parameters))
            );
        }
        if call.dialect.full_result_meta() {
            let _ = write!(out, r#","resultsize":{}"#, answer.result.len());
            for (name, value) in [("fetch", asked.fetch), ("offset", asked.offset)] {
                if let Some(value) = value {
                    let _ = write!(out, r#","{name}":{value}"#);
                }
            }
        }
        out.push('}');
        if let Some(stored) = stored {
            let _ = write!(out, r#","name":{}"#, quoted(&qualified_name(stored)));
        }
        let _ = write!(out, r#","q":{},"columns":["#, quoted(q));
        for (i, column) in answer.result.columns.iter().enumerate() {
            let _ = write!(
                out,
                r#"{}{{"name":{}"#,
                if i > 0 { "," } else { "" },
                quoted(&column.name)
            );
            if let Some(path) = &column.path {
                let path = if call.dialect.column_paths_name_the_variable() {
                    path.as_str()
                } else {
                    without_variable(path)
                };
                let _ = write!(out, r#","path":{}"#, quoted(path));
            }
            out.push('}');
        }
        out.push_str(r#"],"rows":"#);
        out
    }
}

/// The number of internal queries that are planned, or that read a batch, between two pauses.
const TOGETHER: usize = 16;

/// Bytes of a result that are written between two pauses.
const PIECE: usize = 1 << 20;

/// A sink that runs one query over the batches of a scan.
struct OneQuery<'r, 'c, 'a> {
    call: &'c Call<'a>,
    run: Run<'r>,
    /// Starts the run again.
    begin: &'c dyn Fn() -> Run<'r>,
    /// The EHR to which the query is restricted.
    ehr: Option<&'r str>,
    /// Whether that EHR was in a batch.
    seen: bool,
    reading: Reading,
}

impl BatchSink for OneQuery<'_, '_, '_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        self.seen |= self.ehr.is_some_and(|ehr| batch.ehr_number(ehr).is_some());
        let progress = self.run.advance(batch);
        if self.reading.hold(self.run.footprint(), self.call.clock()) {
            progress
        } else {
            Progress::Enough
        }
    }

    fn admit(&mut self, bytes: usize) -> bool {
        self.reading
            .admit(bytes, self.run.footprint(), self.call.clock())
    }

    fn restart(&mut self) -> bool {
        self.run = (self.begin)();
        self.seen = false;
        self.reading.restart()
    }

    fn pause(&self) -> Pause {
        self.call.pause()
    }
}

/// A sink that runs several queries over the batches of a scan, one after the other, and passes
/// their rows on.
struct EachRow<'r, 'c, 'a, 'v> {
    call: &'c Call<'a>,
    reading: Reading,
    runs: Vec<Run<'r>>,
    /// The query that reads the present batch.
    at: usize,
    /// Whether an earlier query needs more batches.
    goes_on: bool,
    /// The work of all queries together, and its maximum.
    work: u64,
    most: u64,
    /// The named EHRs that were in no batch so far.
    missing: &'v mut Vec<String>,
    visit: &'v mut dyn FnMut(usize, &[RowValue<'_>]),
}

impl BatchSink for EachRow<'_, '_, '_, '_> {
    fn take(&mut self, batch: &Batch) -> Progress {
        if self.at == 0 {
            self.missing.retain(|id| batch.ehr_number(id).is_none());
        }
        while let Some(run) = self.runs.get_mut(self.at) {
            let (at, visit, before) = (self.at, &mut *self.visit, run.work());
            let progress = run.advance_each(batch, &mut |row| visit(at, row));
            self.work = self.work.saturating_add(run.work().saturating_sub(before));
            if self.work > self.most {
                return Progress::Enough;
            }
            match progress {
                Progress::Paused => return Progress::Paused,
                Progress::More => self.goes_on = true,
                Progress::Enough => {}
            }
            self.at += 1;
            // Each query reads all tables of the batch, even without a result, so this bounds the
            // time without a pause.
            if self.at.is_multiple_of(TOGETHER) && self.at < self.runs.len() {
                return Progress::Paused;
            }
        }
        self.at = 0;
        let goes_on = std::mem::take(&mut self.goes_on) || self.runs.is_empty();
        if goes_on {
            Progress::More
        } else {
            Progress::Enough
        }
    }

    fn admit(&mut self, bytes: usize) -> bool {
        let held = self.runs.iter().map(Run::footprint).sum();
        self.reading.admit(bytes, held, self.call.clock())
    }

    fn pause(&self) -> Pause {
        self.call.pause()
    }
}

/// A query that is ready to run.
struct Prepared {
    plan: Plan,
    /// The size of the default page, if that is requested.
    default_page: Option<u64>,
    /// Whether only the data can change the result: the query reads no clock and no terminology.
    lasts: bool,
    /// The requested state.
    state: Option<PageState>,
}

/// Returns the path of a column without its variable: `/uid/value`; `/` for a variable alone.
fn without_variable(path: &str) -> &str {
    let mut depth = 0_u32;
    for (at, c) in path.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => return path.get(at..).unwrap_or("/"),
            _ => {}
        }
    }
    "/"
}

/// Returns the URL of a query that was sent by GET.
fn href(call: &Call<'_>) -> String {
    let pairs: Vec<String> = call
        .request
        .query
        .iter()
        .map(|(key, value)| format!("{}={}", encode_value(key), encode_value(value)))
        .collect();
    let path = format!("{}{}", call.base_url(), call.request.path);
    if pairs.is_empty() {
        path
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

/// Returns 400 if the query is wrong or a terminology refuses it; otherwise the status of a feature
/// that this host lacks (501) or of a service that fails (502, 504). A broken invariant is 500,
/// whatever else the diagnostics contain.
fn status_of(diagnostics: &[crate::diag::Diagnostic]) -> u16 {
    if diagnostics.iter().any(|d| d.code == aql::BROKEN_INVARIANT) {
        return 500;
    }
    let of_code = |code: &str| match code {
        "AQL0501" | "AQL0504" => 501,
        "AQL0505" => 502,
        "AQL0506" => 504,
        _ => 400,
    };
    diagnostics
        .iter()
        .map(|d| of_code(d.code))
        .min()
        .unwrap_or(400)
}

fn reads_clock(query: &Query) -> bool {
    let selected = query
        .select
        .iter()
        .any(|c| matches!(&c.value, ColumnValue::Expr(expr) if expr_reads_clock(expr)));
    selected || query.condition.as_ref().is_some_and(condition_reads_clock)
}

fn condition_reads_clock(condition: &Condition) -> bool {
    match condition {
        Condition::And(all) | Condition::Or(all) => all.iter().any(condition_reads_clock),
        Condition::Not(inner) => condition_reads_clock(inner),
        Condition::Compare(left, _, right) => expr_reads_clock(left) || expr_reads_clock(right),
        Condition::Like(expr, _) | Condition::Matches(expr, _) => expr_reads_clock(expr),
        Condition::Exists(_) | Condition::Constant(_) => false,
    }
}

fn expr_reads_clock(expr: &Expr) -> bool {
    match expr {
        Expr::Call(function, arguments) => {
            function.entry().group == FunctionGroup::Clock || arguments.iter().any(expr_reads_clock)
        }
        Expr::Path(_) | Expr::Literal(_) => false,
    }
}

/// Rejects comparisons of COMPOSITION.uid with a text that cannot be a uid of this server, on a
/// mount that requires it.
fn check_uids(query: &Query, system_id: &str, status: u16) -> Result<(), Failure> {
    fn visit(
        query: &Query,
        condition: &Condition,
        check: &dyn Fn(&str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match condition {
            Condition::And(all) | Condition::Or(all) => {
                all.iter().try_for_each(|c| visit(query, c, check))
            }
            Condition::Not(inner) => visit(query, inner, check),
            Condition::Compare(Expr::Path(path), _, Expr::Literal(Literal::Text(text)))
                if is_composition_uid(query, *path) =>
            {
                check(text)
            }
            _ => Ok(()),
        }
    }
    let check = |text: &str| match VersionUid::parse(text) {
        _ if is_uuid(text) || without_system(text) => Ok(()),
        Some(uid) if uid.system_id == system_id => Ok(()),
        Some(uid) => Err(Failure::new(
            status,
            format!(
                "the system id `{}` does not match this server ({system_id})",
                uid.system_id
            ),
        )),
        None => Err(Failure::new(
            status,
            format!(
                "`{}` is not a valid OBJECT_VERSION_ID/UID",
                text.chars().take(80).collect::<String>()
            ),
        )),
    };
    query
        .condition
        .as_ref()
        .map_or(Ok(()), |condition| visit(query, condition, &check))
}

/// Returns true for `uuid::::2`.
fn without_system(text: &str) -> bool {
    text.split_once("::::")
        .is_some_and(|(object, number)| is_uuid(object) && number.parse::<u32>().is_ok())
}

fn is_composition_uid(query: &Query, path: usize) -> bool {
    query.paths.get(path).is_some_and(|path| {
        let class = query.variables.get(path.variable).map(|v| v.class);
        class == Some(Cls::COMPOSITION)
            && path
                .steps
                .iter()
                .map(|s| s.attr)
                .eq([Attr::UID, Attr::VALUE])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Config, Request};
    use crate::store::memory::Memory;

    #[test]
    fn a_broken_invariant_of_the_engine_is_answered_500_and_logged() {
        let service = Service::new(Memory::new(), Config::default());
        let answer = |error: QueryError| {
            service
                .given_up(&error)
                .into_response(&Request::new("POST", "/v1/query/aql"))
        };
        let broken = answer(QueryError::Broken("a block of rows does not fit its table"));
        assert_eq!(broken.status, 500);
        assert_eq!(
            broken.problem.as_deref(),
            Some("an invariant of the engine is broken: a block of rows does not fit its table")
        );
        let body: Value = serde_json::from_slice(&broken.body).unwrap();
        assert_eq!(
            (&body["code"], &body["error"]),
            (&json!(500), &json!("Internal Server Error"))
        );
        let errors = [
            (QueryError::TooManyRows(1), 400),
            (QueryError::TooLarge(1), 400),
            (QueryError::TooMuchWork(1), 408),
            (QueryError::Stopped, 408),
        ];
        for (error, status) in errors {
            let response = answer(error);
            assert_eq!(
                (response.status, response.problem),
                (status, None),
                "what a client can change is not logged"
            );
        }
    }

    #[test]
    fn columns_lose_their_variable() {
        assert_eq!(without_variable("c/uid/value"), "/uid/value");
        assert_eq!(without_variable("o[name/value='x']/data"), "/data");
        assert_eq!(without_variable("c"), "/");
    }
}
