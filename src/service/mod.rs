//! The REST interface as asynchronous code over any [`Repository`]: the same in the worker, the
//! browser and the tests.
//!
//! One core has two mounts: `/v1` follows the service specification, `/rest/openehr/v1` openEHR
//! ITS-REST. A host converts its own request to a [`Request`], calls [`Service::handle`], and sends
//! the [`Response`].
//!
//! | step | file |
//! |---|---|
//! | variables of a deployment → configuration | `deployment` |
//! | method and path → operation, and its permission | `route` |
//! | checks of host and origin | `origin` |
//! | authentication and authorization | `auth` |
//! | admission control | `admission` |
//! | compressed bodies | `gzip` |
//! | headers → media types, preferences, preconditions, commit metadata | `negotiate`, `committal` |
//! | the differences of the mounts | `dialect` |
//! | the owner of the documents of a path, and their class | `owner`, `document_class` |
//! | the objects that members of a contribution change | `followed` |
//! | one file for each resource | `ehr`, `controlled`, `contribution`, `tag`, `versioned`, `template`, `stored_query`, `query`, `explain`, `value_set`, `gdl`, `execution`, `cds`, `admin`, `root` |
//! | terminology requests of a query → answers | `terminology`, `fhir` |
//! | body → checked document | `content`; without a commit: `validation` |
//! | pages of EHRs and of contributions | `listing` |
//! | references → their objects | `resolve` |
//! | many lines in one request | `bulk`, `transfer` |
//! | change set → versions, contribution, one commit | `commit`, `envelope` |
//! | cached facts first, stored facts if the commit refuses them | `write_policy` |
//! | the table of routes as a document | `openapi` |
//! | errors → status and body | `error` |
//!
//! # Choices
//!
//! Some choices are open in the specifications, or contradict each other there. The service decides
//! them as follows:
//!
//! - A creation is answered with 201, updates and deletions with 204, without a body unless
//!   `Prefer` requests one.
//! - `If-Match` is required for every change of a versioned object whose path does not name the
//!   version (400 if it is missing, 412 if it is stale). A deletion that names an old version in
//!   its path is answered with 409.
//! - Content that breaks a rule of the model or its template is answered with 422 on the ITS mount
//!   and 400 on `/v1`; content that cannot be read at all with 400 on both. All problems are
//!   reported together, each with its path.
//! - A page is at most [`Limits::fetch_maximum`] rows. If a request has no number of rows, it gets
//!   [`Limits::fetch_default`], and `meta._more` is true if there are more. A query over a limit is
//!   an error, never a partial result.
//! - `fetch` and `offset` select a page of the result of LIMIT on `/v1`, and exclude LIMIT on the
//!   ITS mount (422). They exclude TOP.
//! - `GET /v1/query/{name}/{version}` with a complete version and no parameter shows the
//!   definition, and the result if the query needs no parameters. With any parameter it is an
//!   execution.
//! - Every error has the body `{error, message, code, errors[]}`. Its items are DV_CODED_TEXTs of
//!   the terminology `aqlite` with `_path`, or `_line` and `_column`.

mod admin;
mod admission;
pub mod auth;
mod body_parts;
mod bulk;
mod call;
mod cds;
mod commit;
mod committal;
mod content;
mod contribution;
mod controlled;
mod definition_cache;
pub mod deployment;
mod dialect;
mod document_class;
mod ehr;
mod envelope;
mod error;
mod error_response;
mod execution;
mod expansion;
mod explain;
mod fhir;
mod followed;
mod gdl;
#[cfg(feature = "gzip")]
mod gzip;
mod http;
mod identity;
mod ids;
mod imported;
mod imported_form;
mod known_templates;
mod lint;
mod listing;
mod member_data;
mod members;
mod named_uids;
mod negotiate;
mod openapi;
mod origin;
mod owner;
mod page_state;
mod parameters;
mod population;
mod query;
mod query_memory;
mod query_steps;
mod replay;
mod representation;
mod resolve;
mod root;
mod route;
mod row_parts;
mod run_host;
mod run_parameters;
mod sample_loading;
mod shared_memory;
mod simplified;
mod stored_query;
mod stored_size;
#[cfg(feature = "arrow")]
mod table;
mod tag;
mod template;
mod templates;
mod terminology;
mod terminology_server;
mod time;
mod transfer;
mod trial;
mod update_form;
mod validation;
mod validators;
mod value_set;
mod versioned;
mod write_policy;

pub use admin::Loaded;
pub use admission::{
    Admission, Concurrency, HEAVY, LARGE, LEASE, Permit, RoomFuture, Turn, TurnFuture, WaitFuture,
    Work, body_memory, is_heavy, may_be_large, room_of_body,
};
pub use body_parts::{AHEAD, BodyParts, DISCARD_TIME, DISCARDED, EXPANDED, SEND_TIME};
pub use bulk::{LoadSizes, body_limit, may_have_rest, part_size};
pub use explain::diagnostics_json;
#[cfg(feature = "gzip")]
pub use gzip::{Gunzip, GzipError, Needs};
pub use http::{Request, Response, RowPart};
pub use known_templates::KnownTemplates;
pub use lint::LintTemplates;
pub use negotiate::is_compressed;
pub use openapi::openapi;
#[cfg(not(target_family = "wasm"))]
pub use query::{PartAnswer, PartAnswerFuture, PartQuery, QueryThreads};
pub use query_steps::{QuerySteps, StepsOutcome, json_head, json_in_steps, next_poll};
pub use replay::ReplayEnvironment;
pub use route::{needs_permission, only_reads, operation};
pub use row_parts::{IncompleteBody, RowParts};
pub use run_host::RunHost;
pub use sample_loading::SampleLoading;
pub use shared_memory::SharedMemory;
pub use terminology::Answers;
pub use terminology_server::{TerminologyResponse, TerminologyServer, Unreachable};
pub use time::days_before;

use crate::aql::Budget;
use crate::document::LayoutStore;
use crate::store::repository::Repository;
pub use crate::store::repository::{EarlierCommits, Pause};
use crate::template::flat::FlatDialect;
#[cfg(feature = "server")]
use auth::RefusalCounts;
use auth::{AccessTrail, Caller, Denied};
use call::{Call, IncomingRequest};
use controlled::DocumentChange;
use definition_cache::DefinitionCache;
use error::Failure;
use negotiate::ContentCoding;
use query::RecentPlans;
use query_memory::QueryMemory;
use route::{Operation, RouteTarget};
use std::pin::Pin;

/// A check of the storage, which resolves to its problem.
pub type StorageCheck = Pin<Box<dyn Future<Output = Option<String>>>>;

/// Clock, random identifiers, time zones and pauses, which the host provides. The core itself is
/// pure.
pub trait Environment {
    /// Returns the time in microseconds since 1970-01-01T00:00:00Z.
    fn now(&mut self) -> i64;

    /// Returns a new random UUID in lower case.
    fn new_uuid(&mut self) -> String;

    /// Yields to other requests, and resolves after they had their turn. A long request awaits it
    /// between steps of its work. A host that processes each request in a thread of its own, or one
    /// after the other, has nothing to do.
    fn pause(&mut self) -> Pause {
        Box::pin(std::future::ready(()))
    }

    /// Waits until no other request works without a pause, after all others had their turn. A host
    /// that processes each request in a thread of its own, or one after the other, has nothing to
    /// wait for.
    fn turn(&mut self) -> TurnFuture {
        Box::pin(std::future::ready(Some(Turn::default())))
    }

    /// Waits until `bytes` bytes of the memory that requests share are free, and reserves them
    /// until the response is sent. The memory that the request has reserved before is free at once.
    /// A host whose requests do not share their memory has nothing to wait for.
    fn room(&mut self, bytes: usize) -> RoomFuture {
        let _ = bytes;
        Box::pin(std::future::ready(true))
    }

    /// Replaces the permit of the request by one for other work, and waits for it.
    ///
    /// Before a wait for a foreign server, the request returns its permit for heavy work, and gets
    /// one for [`Work::ForeignWait`]. After the wait it gets one for [`Work::Heavy`], and only then
    /// returns the other. A host without admission control has nothing to wait for.
    fn replace_permit(&mut self, work: Work) -> WaitFuture {
        let _ = work;
        Box::pin(std::future::ready(true))
    }

    /// Returns the time of arrival of the request, which is that of its changes. A part of a body
    /// has a time that is not before that of the parts before it.
    fn arrival(&mut self) -> i64 {
        self.now()
    }

    /// Returns a future that is true once the parts of the body before this one are written, and
    /// false if this one must change nothing. `None` if the host processes the parts one after the
    /// other.
    fn earlier_parts(&mut self) -> Option<EarlierCommits> {
        None
    }

    /// Returns whether the host sends bodies in parts: see [`Response::rest`]. Other hosts answer
    /// pages only.
    fn sends_parts(&self) -> bool {
        false
    }

    /// Checks that the storage answers, and returns the problem, for the log, if it does not. A
    /// host that does not check its storage has no problem to report.
    fn storage_problem(&mut self) -> StorageCheck {
        Box::pin(std::future::ready(None))
    }

    /// Returns the offset from UTC in seconds of a zone of the IANA database, such as
    /// `Europe/Stockholm`, at a time in milliseconds since 1970; `None` for a zone that the host
    /// does not know.
    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        utc_only(zone, millis)
    }
}

/// Returns the offset in a host without a database of time zones.
fn utc_only(zone: &str, _millis: i64) -> Option<i32> {
    (zone == "UTC").then_some(0)
}

/// The authentication mode of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Auth {
    /// Rejects all callers: only OPTIONS and health are answered. The default of a deployment
    /// without configuration.
    Refuse,
    /// Accepts all callers, with every role: for a personal machine.
    Open,
    /// Accepts the callers that the host authenticates: see [`Service::serve`].
    Known,
}

/// The limits of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Maximum bytes of a request body (413).
    pub body: usize,
    /// Maximum bytes of a template.
    pub template: usize,
    /// Maximum bytes of an AQL text.
    pub aql: usize,
    /// Rows of a page by default.
    pub fetch_default: u64,
    /// Maximum rows of a page.
    pub fetch_maximum: u64,
    /// Maximum rows of a result that is sent in parts.
    pub stream_maximum: u64,
    /// Maximum microseconds of a query (408).
    pub query_time: i64,
    /// Maximum units of work of a query, see `Budget::work` (408).
    pub query_work: u64,
    /// Maximum bytes of the parameters of a query (413).
    pub parameters: usize,
    /// Maximum bytes of a result set.
    pub result: usize,
    /// Maximum EHRs of one guide execution.
    pub guide_ehrs: usize,
    /// Maximum requests that a host processes at a time (429).
    pub concurrency: Concurrency,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 10_000_000,
            template: 8_000_000,
            aql: 256_000,
            fetch_default: 10_000,
            fetch_maximum: 100_000,
            stream_maximum: 1_000_000,
            query_time: 10_000_000,
            query_work: Budget::default().work,
            parameters: 4_000_000,
            result: 50_000_000,
            guide_ehrs: 1_000,
            concurrency: Concurrency::default(),
        }
    }
}

/// The configuration of a service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The creating system of every version uid, such as `cdr.example.org`.
    pub system_id: String,
    /// Scheme and authority before the mounts, without a slash at the end: `http://127.0.0.1:8787`.
    /// If empty, URLs in responses begin as in the request ([`Request::base_url`]).
    pub base_url: String,
    /// The hosts of the deployment, with or without a port; empty allows all. A request to another
    /// host gets 421, unless it is the host of `base_url`. An open service ([`Auth::Open`]) accepts
    /// loopback names, these hosts and the host of `base_url` only; for it, an empty list allows no
    /// other host.
    pub hosts: Vec<String>,
    /// The authentication mode.
    pub auth: Auth,
    /// Whether every access is written to the access log. If that fails, the request fails.
    pub log: bool,
    /// Whether physical deletion, reset and loading under fixed ids are available.
    pub admin: bool,
    /// The limits of a request.
    pub limits: Limits,
    /// Members of `/.well-known/smart-configuration` that depend on the issuer of tokens; if empty,
    /// there is no such document.
    pub smart: Vec<(String, String)>,
    /// The address of a description of the interface for people; if empty, that of the page.
    pub documentation: String,
    /// Whether archetypes and codes of queries match by equality only, without specializations.
    pub exact_archetypes: bool,
    /// The dialect of FLAT and STRUCTURED in responses below `/rest/openehr/v1`, if a request has
    /// none.
    pub flat_dialect: FlatDialect,
    /// Whether compositions are known to be valid, and are not checked against the model and their
    /// template. For the samples of this crate.
    pub trusts_compositions: bool,
    /// Whether result sets have `_executed_aql` and the ignored parameters.
    pub debug: bool,
    /// Origins whose pages may call the service; `*` allows all.
    pub origins: Vec<String>,
    /// The sizes of the pieces of a load.
    pub load_sizes: LoadSizes,
    /// Bytes of the compiled templates, with their web templates, and guides that stay in memory.
    pub compiled_bytes: usize,
    /// The units of work of a query between two pauses, see `Budget::piece`.
    pub query_piece: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            system_id: String::from("aqlite.local"),
            base_url: String::new(),
            hosts: Vec::new(),
            auth: Auth::Refuse,
            log: true,
            admin: false,
            limits: Limits::default(),
            smart: Vec::new(),
            documentation: String::new(),
            exact_archetypes: false,
            flat_dialect: FlatDialect::Better,
            trusts_compositions: false,
            debug: false,
            origins: Vec::new(),
            load_sizes: LoadSizes::default(),
            compiled_bytes: 40_000_000,
            query_piece: Budget::default().piece,
        }
    }
}

impl Config {
    /// Returns the URL before the mounts in a response.
    fn base_url_of<'a>(&'a self, request: &'a Request) -> &'a str {
        if self.base_url.is_empty() {
            &request.base_url
        } else {
            &self.base_url
        }
    }

    /// Returns whether pages of an origin may call the service.
    fn allows_origin(&self, origin: &str) -> bool {
        self.origins
            .iter()
            .any(|allowed| allowed == "*" || allowed == origin)
    }
}

/// The future of an operation.
type OperationFuture<'c> = Pin<Box<dyn Future<Output = Result<Response, Failure>> + 'c>>;

/// The service: a repository, a configuration, and caches of immutable data.
pub struct Service<R> {
    repository: R,
    config: Config,
    layouts: LayoutStore,
    definition_cache: DefinitionCache,
    terminology: Option<Box<dyn TerminologyServer>>,
    #[cfg(feature = "server")]
    refusals: RefusalCounts,
    query_memory: QueryMemory,
    recent_plans: RecentPlans,
    /// The other threads that evaluate population queries; `None` if there are none.
    #[cfg(not(target_family = "wasm"))]
    threads: Option<Box<dyn QueryThreads>>,
    /// The caller of an open service.
    everyone: Caller,
}

impl<R: Repository> Service<R> {
    /// Creates a service over a repository.
    pub fn new(repository: R, config: Config) -> Service<R> {
        Service {
            repository,
            layouts: LayoutStore::new(),
            definition_cache: DefinitionCache::new(config.compiled_bytes),
            config,
            terminology: None,
            #[cfg(feature = "server")]
            refusals: RefusalCounts::default(),
            query_memory: QueryMemory::default(),
            recent_plans: RecentPlans::default(),
            #[cfg(not(target_family = "wasm"))]
            threads: None,
            everyone: Caller::everyone(),
        }
    }

    /// Replaces the configuration. The repository and the caches stay.
    pub fn with_config(self, config: Config) -> Service<R> {
        Service { config, ..self }
    }

    /// Adds a terminology server.
    pub fn with_terminology(self, server: Box<dyn TerminologyServer>) -> Service<R> {
        Service {
            terminology: Some(server),
            ..self
        }
    }

    /// Shares memory for queries, and counts of refused requests, with other services.
    pub fn with_memory(self, memory: &SharedMemory) -> Service<R> {
        Service {
            query_memory: memory.queries(),
            #[cfg(feature = "server")]
            refusals: memory.refusals(),
            ..self
        }
    }

    /// Returns the repository.
    pub fn repository(&self) -> &R {
        &self.repository
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Responds to an unauthenticated request. Never fails: each error becomes a status with a body
    /// that describes it and its position.
    pub async fn handle(&self, request: &Request, environment: &mut dyn Environment) -> Response {
        self.serve(
            request,
            Err(&Denied::no_credentials("Bearer realm=\"aqlite\"")),
            environment,
        )
        .await
    }

    /// Responds to a request whose caller the host has authenticated or rejected. [`Config::auth`]
    /// may replace that decision.
    pub async fn serve(
        &self,
        request: &Request,
        caller: Result<&Caller, &Denied>,
        environment: &mut dyn Environment,
    ) -> Response {
        let trail = AccessTrail::default();
        let response = match self.answer(request, caller, &trail, environment).await {
            Ok(response) => response,
            Err(failure) => failure.into_response(request),
        };
        #[cfg(feature = "server")]
        // After the answer, because the record has its status. An answer is replaced by an error if
        // the access cannot be recorded.
        let response = self.record_after(request, &trail, response).await;
        self.finish(request, response)
    }

    /// Responds to a rejected request.
    #[cfg(feature = "server")]
    pub fn refuse(&self, request: &Request, denied: &Denied) -> Response {
        let response = denied.failure().into_response(request);
        if self.keeps_log() {
            self.refusals
                .count(&operation(request).unwrap_or_default(), response.status);
        }
        self.finish(request, response)
    }

    /// Checks the headers of a request before its body is read: host, caller, permission, origin,
    /// length, coding and media type of the body. [`Service::serve`] checks the same again; a host
    /// that reads bodies calls this first.
    ///
    /// # Errors
    /// The response to a rejected request.
    #[cfg(feature = "server")]
    pub async fn screen(
        &self,
        head: &Request,
        caller: Result<&Caller, &Denied>,
        environment: &mut dyn Environment,
    ) -> Result<(), Response> {
        let trail = AccessTrail::default();
        let outcome = match route::find(head) {
            Ok(RouteTarget::Operation(found)) => {
                trail.set_route(head, &found, environment.now());
                self.admit(head, &found, caller, &trail).map(drop)
            }
            // Health and OPTIONS need no permission. An unknown path is an error.
            other => other.map(drop),
        };
        let Err(failure) = outcome else { return Ok(()) };
        let response = self
            .record_after(head, &trail, failure.into_response(head))
            .await;
        Err(self.finish(head, response))
    }

    /// Responds to a request whose body cannot be read completely.
    #[cfg(feature = "gzip")]
    pub fn unreadable(&self, request: &Request, error: GzipError) -> Response {
        self.finish(request, Failure::of_gzip(error).into_response(request))
    }

    /// Finds and admits the operation of a request, decodes its body, and performs the operation.
    async fn answer(
        &self,
        request: &Request,
        caller: Result<&Caller, &Denied>,
        trail: &AccessTrail,
        environment: &mut dyn Environment,
    ) -> Result<Response, Failure> {
        let matched = match route::find(request)? {
            RouteTarget::Health => {
                let problem = environment.storage_problem().await;
                return Ok(root::health(request, problem));
            }
            RouteTarget::Smart => return self.smart(request),
            RouteTarget::Options { dialect, allow } => {
                return Ok(self.options(request, dialect, &allow));
            }
            RouteTarget::Operation(found) => found,
        };
        let now = environment.arrival();
        trail.set_route(request, &matched, now);
        // Before decompression: only admitted callers may cause that work.
        let caller = self.admit(request, &matched, caller, trail)?;
        caller.check_time(now / 1_000_000)?;
        let expanded = self.decompressed(request)?;
        let request = expanded.as_ref().unwrap_or(request);
        let converted = self.in_utf8(request)?;
        let request = converted.as_ref().unwrap_or(request);
        let call = Call::new(
            IncomingRequest {
                request,
                config: &self.config,
                trail,
                now,
            },
            matched,
            caller,
            environment,
        );
        // A parameter that occurs twice could be read in two ways by two programs.
        call.check_unambiguous()?;
        let named = admin::ehrs_of_parameters(&call);
        named.iter().for_each(|ehr_id| trail.add_ehr(ehr_id));
        // The first part of a long result has recorded the access.
        #[cfg(feature = "server")]
        if request.part.is_none() {
            self.record_before(trail).await?;
        }
        self.dispatch(&call).await
    }

    /// Returns a request with its body decompressed; `None` if it was not compressed.
    ///
    /// A host without the feature `gzip` sends bodies that are not compressed:
    /// [`ContentCoding::from_headers`] refuses all others.
    #[cfg(not(feature = "gzip"))]
    fn decompressed(&self, request: &Request) -> Result<Option<Request>, Failure> {
        ContentCoding::from_headers(request).map(|_| None)
    }

    /// Returns a request with its body decompressed; `None` if it was not compressed.
    #[cfg(feature = "gzip")]
    fn decompressed(&self, request: &Request) -> Result<Option<Request>, Failure> {
        if ContentCoding::from_headers(request)? == ContentCoding::Identity
            || request.body.is_empty()
        {
            return Ok(None);
        }
        let limit = bulk::body_limit(request, self.config.limits.body);
        let (mut gunzip, mut body) = (Gunzip::default(), Vec::new());
        gunzip.feed(&request.body);
        gunzip
            // One byte more than the limit shows that the body is too long, without expanding the
            // rest.
            .expand(&mut body, limit.saturating_add(1))
            .map_err(Failure::of_gzip)?;
        if body.len() > limit {
            return Err(Failure::too_large("body", limit));
        }
        // Below the limit all input was consumed, so it must have ended with a complete trailer.
        gunzip.end().map_err(Failure::of_gzip)?;
        Ok(Some(request.replacing_body(body)))
    }

    /// Returns a request with its body in UTF-8; `None` if it was.
    fn in_utf8(&self, request: &Request) -> Result<Option<Request>, Failure> {
        let Some(body) = negotiate::decoded(request)? else {
            return Ok(None);
        };
        if body.len() > self.config.limits.body {
            return Err(Failure::too_large("body in UTF-8", self.config.limits.body));
        }
        Ok(Some(request.replacing_body(body)))
    }

    /// Returns the future of the operation of a request.
    ///
    /// Each operation has a future of its own on the heap, which is a function of its own in the
    /// binary. Awaited here, they would all be part of one function, by far the largest one, and
    /// each request would need the memory of the largest operation.
    fn dispatch<'c>(&'c self, call: &'c Call<'_>) -> OperationFuture<'c> {
        match call.operation {
            Operation::EhrCreate => Box::pin(self.ehr_create(call)),
            Operation::EhrCreateWithId => Box::pin(self.ehr_create_with_id(call)),
            Operation::EhrBySubject => Box::pin(self.ehr_by_subject(call)),
            Operation::EhrGet => Box::pin(self.ehr_get(call)),
            Operation::Create(what) => Box::pin(self.change(call, what, DocumentChange::Create)),
            Operation::Read(what) => Box::pin(self.read(call, what)),
            Operation::Update(what) => Box::pin(self.change(call, what, DocumentChange::Update)),
            Operation::Delete(what) => Box::pin(self.change(call, what, DocumentChange::Delete)),
            Operation::Versioned(what, part) => Box::pin(self.versioned(call, what, part)),
            Operation::TagsList => Box::pin(self.tags_list(call)),
            Operation::TagsGet(what) => Box::pin(self.tags_get(call, what)),
            Operation::TagsPut(what) => Box::pin(self.tags_put(call, what)),
            Operation::TagsDelete(what) => Box::pin(self.tags_delete(call, what)),
            Operation::ContributionCreate => Box::pin(self.contribution_create(call)),
            Operation::ContributionList => Box::pin(self.contribution_list(call)),
            Operation::ContributionGet => Box::pin(self.contribution_get(call)),
            Operation::TemplateUpload => Box::pin(self.template_upload(call)),
            Operation::TemplateList => Box::pin(self.template_list(call)),
            Operation::TemplateVersions => Box::pin(self.template_versions(call)),
            Operation::TemplateGet => Box::pin(self.template_get(call)),
            Operation::TemplateExample => Box::pin(self.template_example(call)),
            Operation::TemplateWeb => Box::pin(self.template_web(call)),
            Operation::QueryList => Box::pin(self.query_list(call)),
            Operation::QueryStore => Box::pin(self.query_store(call)),
            Operation::QueryDetail => Box::pin(self.query_detail(call)),
            Operation::QueryAdHoc => Box::pin(self.query_ad_hoc(call)),
            Operation::QueryExplain => Box::pin(self.query_explain(call)),
            Operation::QueryStored => Box::pin(self.query_stored(call)),
            Operation::ValueSetStore => Box::pin(self.value_set_store(call)),
            Operation::ValueSetList => Box::pin(self.value_set_list(call)),
            Operation::ValueSetGet => Box::pin(self.value_set_get(call)),
            Operation::ValueSetDelete => Box::pin(self.value_set_delete(call)),
            Operation::GuideUpload => Box::pin(self.guide_upload(call)),
            Operation::GuideList => Box::pin(self.guide_list(call)),
            Operation::GuideGet => Box::pin(self.guide_get(call)),
            Operation::GuideRun => Box::pin(self.guide_run(call)),
            Operation::GuideRunOn => Box::pin(self.guide_run_on(call)),
            #[cfg(feature = "server")]
            Operation::Bulk => Box::pin(self.bulk(call)),
            Operation::Export => Box::pin(self.export(call)),
            Operation::Import => Box::pin(self.import(call)),
            Operation::CdsDiscovery => Box::pin(self.cds_discovery(call)),
            Operation::CdsCall => Box::pin(self.cds_call(call)),
            Operation::AdminLoad => Box::pin(self.admin_load(call)),
            Operation::AdminReset => Box::pin(self.admin_reset(call)),
            Operation::AdminDeleteEhr => Box::pin(self.admin_delete_ehr(call)),
            Operation::AdminDeleteObject(what) => Box::pin(self.admin_delete_object(call, what)),
            Operation::AdminDeleteDefinition(kind) => {
                Box::pin(self.admin_delete_definition(call, kind))
            }
            #[cfg(feature = "server")]
            Operation::AccessLog => Box::pin(self.access_log(call)),
            #[cfg(not(feature = "server"))]
            Operation::Bulk | Operation::AccessLog => {
                let absent = Failure::new(501, "only a server has this operation");
                Box::pin(std::future::ready(Err(absent)))
            }
        }
    }
}
