//! Queries: ad hoc and stored. A response is a complete page of rows or an error.

mod checks;
#[cfg(not(target_family = "wasm"))]
mod divided;
mod evaluation;
mod internal;
mod parts;
mod recent_plans;
mod response;
#[cfg(feature = "arrow")]
mod table;

#[cfg(not(target_family = "wasm"))]
pub use divided::{PartAnswer, PartAnswerFuture, PartQuery, QueryThreads};
pub(crate) use internal::{EhrSelection, RowVisitor};
pub(super) use recent_plans::RecentPlans;

use super::Service;
use super::call::{Call, validated};
use super::error::Failure;
use super::http::{Response, RowPart};
use super::ids::is_version;
use super::negotiate::{NegotiatedFormat, Return, wanted_result};
use super::page_state::PageState;
use super::parameters::QueryRequest;
use super::query_memory::{MemoryShare, ReadBudget, StopReason};
use super::run_host::RunHost;
use super::stored_query::detail;
use super::time::iso;
use super::validators::{definition_etag, not_modified};
use crate::aql::query::Query;
use crate::aql::{self, Budget, CheckOptions, Plan, QueryError, ResultFormat, ResultSet};
use crate::document::short_digest;
use crate::store::repository::{Definition, Repository};
use crate::store::scan::{Progress, Scan};
use checks::{reads_clock, status_of};
use evaluation::Evaluated;
use serde_json::{Value, json};
use std::fmt::Write;
use std::rc::Rc;

/// The header that reports rows after the page, for bodies that cannot.
pub(super) const MORE: &str = "Aqlite-More";
/// The header with the token of the state of the page.
const SNAPSHOT: &str = "Aqlite-Snapshot";

/// The result of a run.
pub(crate) struct QueryResult {
    /// The page.
    pub result: ResultSet,
    /// Whether there are rows after a page whose size the client did not choose.
    pub more: bool,
    /// The state that was read.
    state: PageState,
    /// The EHR to which the query was restricted, if it exists.
    of_ehr: Option<String>,
    /// The reserved memory of the page, until it is written.
    share: MemoryShare,
    /// Whether rows of a part were removed because of their length.
    is_cut: bool,
}

impl QueryResult {
    /// Returns the part of the state that an entity tag names: the revision of the repository. For
    /// one EHR the numbers of versions and of deletions, because a deletion and a commit together
    /// may leave their sum as it was.
    fn tagged_state(&self, is_of_ehr: bool) -> Value {
        let snapshot = &self.state.snapshot;
        match is_of_ehr {
            true => json!([snapshot.version, snapshot.removals]),
            false => json!(snapshot.revision),
        }
    }
}

/// A query to execute, and the form of its result.
#[derive(Clone, Copy)]
struct RequestedQuery<'q> {
    request: &'q QueryRequest,
    text: &'q str,
    /// The stored query, if its name was requested.
    stored: Option<&'q Definition>,
    format: NegotiatedFormat,
}

impl<R: Repository> Service<R> {
    /// GET and POST /query/aql
    pub(super) async fn query_ad_hoc(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let format = wanted_result(call.request)?;
        let request = QueryRequest::read(call, None)?;
        let q = request
            .q
            .clone()
            .filter(|q| !q.trim().is_empty())
            .ok_or_else(|| Failure::bad_request("the query text `q` is missing"))?;
        let requested = RequestedQuery {
            request: &request,
            text: &q,
            stored: None,
            format,
        };
        self.respond(call, requested).await
    }

    /// GET and POST /query/{name}[/{version}]
    pub(super) async fn query_stored(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let format = wanted_result(call.request)?;
        let stored = self
            .stored_query(call.param(0)?, call.optional_param(1))
            .await?;
        let complete = call.optional_param(1).is_some_and(is_version);
        let plain = call.request.method != "POST"
            && complete
            && format == NegotiatedFormat::Json
            && !QueryRequest::requests_execution(call.request);
        if call.dialect.detail_and_result() && plain {
            return self.detail_and_result(call, &stored).await;
        }
        let request = QueryRequest::read(call, Some(&stored.body))?;
        let requested = RequestedQuery {
            request: &request,
            text: &stored.body,
            stored: Some(&stored),
            format,
        };
        self.respond(call, requested).await
    }

    /// Returns the definition of a stored query, together with its result if it needs no
    /// parameters.
    async fn detail_and_result(
        &self,
        call: &Call<'_>,
        stored: &Definition,
    ) -> Result<Response, Failure> {
        let mut body = detail(call.dialect, stored);
        let of_definition = |body| {
            let response = Response::json(200, Value::Object(body));
            validated(response, &definition_etag(stored), &stored.created)
        };
        if call.prefer.stated && call.prefer.returns == Return::Minimal {
            return Ok(call.preference_applied(of_definition(body)));
        }
        let response = match self.result_without_parameters(call, stored).await {
            Ok(response) => response,
            // A query with parameters, for example, or one that needs a terminology server.
            Err(failure) if ![500, 503].contains(&failure.status) => {
                return Ok(of_definition(body));
            }
            Err(failure) => return Err(failure),
        };
        let mut text = Value::Object(std::mem::take(&mut body)).to_string();
        // The closing brace: the members of the result follow.
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
        let etag = response.header("ETag");
        let etag = etag.ok_or_else(|| Failure::broken("a result has no entity tag"))?;
        Ok(Response::new(200)
            .with_body("application/json", text)
            .with_header("ETag", etag))
    }

    /// Executes a stored query as if its request had no parameters.
    async fn result_without_parameters(
        &self,
        call: &Call<'_>,
        stored: &Definition,
    ) -> Result<Response, Failure> {
        let requested = RequestedQuery {
            request: &QueryRequest::default().confined(call)?,
            text: &stored.body,
            stored: Some(stored),
            format: NegotiatedFormat::Json,
        };
        self.respond(call, requested).await
    }

    /// Runs a query and returns the response: 304, a page, or the first part of a long result.
    async fn respond(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
    ) -> Result<Response, Failure> {
        let request = requested.request;
        call.trail.set_query(&short_digest(requested.text));
        if let Some(ehr) = &request.ehr {
            call.trail.add_ehr(ehr);
        }
        let prepared = match self.prepare(call, requested, None).await {
            Ok(prepared) => prepared,
            // A missing EHR is reported first, as in every other operation.
            Err(failure) => return Err(self.no_ehr(request).await.unwrap_or(failure)),
        };
        if let Some(response) = self.unchanged(call, requested, &prepared).await? {
            return Ok(response);
        }
        let is_cacheable = prepared.is_cacheable;
        let is_of_ehr = prepared.plan.scan().ehr().is_some();
        let (answer, part) = self.run_part(call, requested, prepared).await?;
        // The scan met no document of the EHR, so it may not exist.
        if answer.of_ehr != request.ehr
            && let Some(failure) = self.no_ehr(request).await
        {
            return Err(failure);
        }
        let etag = self.etag(call, requested, &answer.tagged_state(is_of_ehr));
        if is_cacheable && let Some(response) = not_modified(call.request, &etag) {
            return Ok(response);
        }
        let mut response = self
            .result_response(call, requested, &answer, part.as_ref())
            .await?
            .with_header("ETag", format!("\"{etag}\""));
        let limits = &self.config.limits;
        response.rest = part.and_then(|part| part.next(request, &answer, limits));
        Ok(response)
    }

    /// Runs a query. A part of a long result gets fewer rows until they fit into memory.
    async fn run_part(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
        mut prepared: PreparedQuery,
    ) -> Result<(QueryResult, Option<RowPart>), Failure> {
        loop {
            let part = prepared.part.clone();
            let failure = match self.run(call, prepared).await {
                Err(failure) => failure,
                Ok(mut answer) => {
                    answer.is_cut = part.is_some()
                        && parts::cut_to_bytes(&mut answer.result, self.config.limits.result);
                    return Ok((answer, part));
                }
            };
            // A run fails with 400 if its rows are too large together.
            let smaller = part.and_then(|part| part.smaller());
            let smaller = smaller.filter(|_| failure.status == 400).ok_or(failure)?;
            prepared = self.prepare(call, requested, Some(smaller)).await?;
        }
    }

    /// Returns the response 304 if it is certain without a run that the result is unchanged.
    ///
    /// Whether a snapshot still exists, and how often one EHR has changed, is known only after
    /// reading it.
    async fn unchanged(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
        prepared: &PreparedQuery,
    ) -> Result<Option<Response>, Failure> {
        if !prepared.is_cacheable
            || prepared.plan.scan().ehr().is_some()
            || requested.request.snapshot.is_some()
            || call.request.header("If-None-Match").is_none()
        {
            return Ok(None);
        }
        let revision = self.repository.revision().await;
        let revision = revision.map_err(Failure::of_store)?;
        let etag = self.etag(call, requested, &json!(revision));
        Ok(not_modified(call.request, &etag))
    }

    /// Writes a result in the requested form.
    async fn result_response(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
        answer: &QueryResult,
        part: Option<&RowPart>,
    ) -> Result<Response, Failure> {
        let format = requested.format;
        // Hosts without tables do not need the part.
        let _ = part;
        let response = match format {
            #[cfg(feature = "arrow")]
            NegotiatedFormat::Table(table) => {
                let wanted = table::RequestedTable {
                    requested,
                    answer,
                    table,
                };
                let body = self.write_table(call, wanted, part).await?;
                Response::new(200)
                    .with_body(table.format.media_type(), body)
                    .with_header("Content-Disposition", table::disposition(requested, table))
            }
            _ => self.result_text(call, requested, answer).await?,
        };
        let response = response.with_header(SNAPSHOT, answer.state.to_string());
        Ok(if answer.more && format != NegotiatedFormat::Json {
            response.with_header(MORE, "true")
        } else {
            response
        })
    }

    /// Writes a result as a text.
    async fn result_text(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
        answer: &QueryResult,
    ) -> Result<Response, Failure> {
        let result = &answer.result;
        let mut head = String::new();
        let (media_type, format, end) = match requested.format {
            NegotiatedFormat::Csv(options) => (
                "text/csv; charset=utf-8; header=present",
                ResultFormat::Csv(options, self.csv_columns(call, answer).await?),
                "",
            ),
            NegotiatedFormat::Ndjson => (
                "application/x-ndjson",
                ResultFormat::Ndjson(result.column_names()),
                "",
            ),
            // Tables have a function of their own.
            _ => {
                head = self.result_head(call, requested, answer);
                ("application/json", ResultFormat::Json, "}")
            }
        };
        let body = self.write_rows(call, answer, format, head).await?;
        Ok(Response::new(200).with_body(media_type, body + end))
    }

    /// Returns the error if the EHR of the request does not exist. The EHR is read only if nothing
    /// else has shown that it exists.
    async fn no_ehr(&self, request: &QueryRequest) -> Option<Failure> {
        self.ehr_with_id(request.ehr.as_deref()?).await.err()
    }

    /// Returns a function that returns whether the time of a query is over.
    fn deadline(&self, call: &Call<'_>) -> impl Fn() -> bool {
        let deadline = self.deadline_at(call);
        move || call.clock() > deadline
    }

    fn deadline_at(&self, call: &Call<'_>) -> i64 {
        call.now.saturating_add(self.config.limits.query_time)
    }

    fn stop_failure(&self, refusal: StopReason) -> Failure {
        match refusal {
            StopReason::Late => self.run_failure(&QueryError::Stopped),
            StopReason::NoRoom(failure) => failure,
        }
    }

    /// Returns the budget of one query.
    pub(super) fn budget(&self) -> Budget {
        Budget {
            work: self.config.limits.query_work,
            piece: self.config.query_piece,
            ..Budget::default()
        }
    }

    /// Returns the error of a run: 400 or 408 for a limit, 500 for a broken invariant.
    fn run_failure(&self, error: &QueryError) -> Failure {
        let seconds = self.config.limits.query_time / 1_000_000;
        match error {
            QueryError::TooManyRows(_)
            | QueryError::TooManyCombinations(_)
            | QueryError::TooLarge(_) => Failure::bad_request(error.to_string()),
            QueryError::TooMuchWork(_) => Failure::new(408, error.to_string()),
            QueryError::Stopped => Failure::new(
                408,
                format!(
                    "the query took longer than {seconds} s; narrow it by an EHR, an archetype or a template"
                ),
            ),
            // A broken invariant, and each error that a later engine adds.
            _ => Failure::new(500, error.to_string()),
        }
    }

    /// Checks and plans a query. `smaller` replaces the part that the request names.
    async fn prepare(
        &self,
        call: &Call<'_>,
        requested: RequestedQuery<'_>,
        smaller: Option<RowPart>,
    ) -> Result<PreparedQuery, Failure> {
        let (request, q) = (requested.request, requested.text);
        if q.len() > self.config.limits.aql {
            return Err(Failure::too_large("query", self.config.limits.aql));
        }
        let (ast, diagnostics) = aql::parse(q);
        let ast = ast.ok_or_else(|| Failure::in_text(400, "query", q, &diagnostics))?;
        self.check_page(call, request, &ast)?;
        let answers = self.answers(Some(call), &ast).await?;
        let options = CheckOptions {
            terminology: Some(&answers),
            nulls: &request.nulls,
            unused: &request.unused,
            ..CheckOptions::default()
        };
        let mut query = aql::check(&ast, &request.parameters, &options)
            .map_err(|d| Failure::in_text(status_of(&d), "query", q, &d))?;
        if let Some(status) = call.dialect.strict_version_uids() {
            self.check_uids(call, (q, &ast), request, status).await?;
        }
        let is_cacheable = !answers.any() && !reads_clock(&query);
        let part = RowPart::of(call, request, &query, requested.format)?;
        let part = smaller.or(part);
        let of_part = part.as_ref().map(|part| part.page(request)).transpose()?;
        let request = of_part.as_ref().unwrap_or(request);
        let default_page = self.window(request, &mut query);
        let (ehr, exact) = (request.ehr.as_deref(), self.config.exact_archetypes);
        let plan = self.recent_plans.plan(query, ehr, exact);
        let plan = plan.map_err(|d| Failure::in_text(status_of(&d), "query", q, &d))?;
        Ok(PreparedQuery {
            plan,
            default_page,
            is_cacheable,
            state: request.snapshot,
            part,
        })
    }

    /// Checks that the page of a request is allowed for the query.
    fn check_page(
        &self,
        call: &Call<'_>,
        request: &QueryRequest,
        ast: &aql::ast::Query,
    ) -> Result<(), Failure> {
        let paged = request.offset.is_some() || request.fetch.is_some();
        if paged && ast.select.top.is_some() {
            return Err(Failure::bad_request(
                "`offset` and `fetch` cannot be combined with TOP; use LIMIT, or leave the page to `fetch`",
            ));
        }
        let beside_limit = paged && ast.limit.is_some();
        if let Some(status) = call.dialect.page_beside_limit().filter(|_| beside_limit) {
            return Err(Failure::new(
                status,
                "the query contains a LIMIT clause: the parameters `fetch` and `offset` must not be used with it",
            ));
        }
        Ok(())
    }

    /// Applies the page to the LIMIT of the query. Without a requested number of rows, reads one
    /// row more than the default page, to find out whether there are more, and returns the size of
    /// that page.
    fn window(&self, request: &QueryRequest, query: &mut Query) -> Option<u64> {
        let has_limit = query.window.is_some();
        let default = self.config.limits.fetch_default;
        let default_page = (request.fetch.is_none() && !has_limit).then_some(default);
        let rows = match (request.fetch, default_page) {
            (Some(fetch), _) => fetch,
            (None, Some(page)) => page.saturating_add(1),
            (None, None) => u64::MAX,
        };
        // TOP … BACKWARD has no pages: `check_page` has rejected a page beside it.
        if !query.narrow_to_page(request.offset.unwrap_or(0), rows) {
            return None;
        }
        default_page
    }

    /// Runs a prepared query over the documents of its state.
    async fn run(&self, call: &Call<'_>, prepared: PreparedQuery) -> Result<QueryResult, Failure> {
        let PreparedQuery {
            plan,
            default_page,
            state,
            ..
        } = prepared;
        state.map_or(Ok(()), |state| state.check(plan.scan().ehr(), call.now))?;
        let time = state.map_or(call.now, |state| state.now);
        let now = iso(time);
        let (is_stopped, pause, clock) = (self.deadline(call), || call.pause(), || call.clock());
        let host = RunHost {
            now: &now,
            is_stopped: &is_stopped,
            pause: &pause,
            clock: &clock,
            deadline: self.deadline_at(call),
        };
        let scan = Scan {
            snapshot: state.map(|state| state.snapshot),
            ..plan.scan().clone()
        };
        let evaluated = self.evaluate_all(&plan, &scan, &host).await?;
        let Evaluated {
            mut run,
            snapshot,
            of_ehr,
            share,
        } = evaluated;
        // Sorting and grouping of a large result pause too.
        while run.close() == Progress::Paused {
            call.pause().await;
        }
        let result = run.finish();
        self.recent_plans.keep(Rc::clone(&plan));
        let mut result = result.map_err(|error| self.run_failure(&error))?;
        let more = cut_to_page(&mut result, default_page);
        Ok(QueryResult {
            result,
            more,
            state: PageState::new(snapshot, time, plan.scan().ehr()),
            of_ehr,
            share,
            is_cut: false,
        })
    }

    /// Returns the memory and the time that one request may use to read.
    fn read_budget(&self, call: &Call<'_>) -> ReadBudget {
        ReadBudget::new(self.query_memory.share(), self.deadline_at(call))
    }
}

/// Removes the rows after the default page, if that is requested. Returns whether there were any.
fn cut_to_page(result: &mut ResultSet, default_page: Option<u64>) -> bool {
    let page = default_page
        .and_then(|rows| usize::try_from(rows).ok())
        .unwrap_or(usize::MAX);
    let more = result.len() > page;
    result.truncate(page);
    more
}

/// A query that is ready to run.
struct PreparedQuery {
    plan: Rc<Plan>,
    /// The size of the default page, if that is requested.
    default_page: Option<u64>,
    /// Whether only the data can change the result: the query reads no clock and no terminology.
    is_cacheable: bool,
    /// The requested state.
    state: Option<PageState>,
    /// The part of a long result that is read.
    part: Option<RowPart>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Config, Request};
    use crate::store::memory::Memory;
    use serde_json::json;

    #[test]
    fn a_broken_invariant_of_the_engine_is_answered_500_and_logged() {
        let service = Service::new(Memory::new(), Config::default());
        let answer = |error: QueryError| {
            service
                .run_failure(&error)
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
                "an error that the client can mend is not logged"
            );
        }
    }
}
