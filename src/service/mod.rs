//! The REST interface as pure asynchronous code over any [`Repository`]: the same in the worker,
//! the browser and the tests.
//!
//! Two mounts of one core: `/v1` speaks the dialect of the service specification,
//! `/rest/openehr/v1` that of openEHR ITS-REST. A host turns its own request into a [`Request`],
//! calls [`Service::handle`], and sends the [`Response`].
//!
//! | step | file |
//! |---|---|
//! | method and path → operation, and what it needs | `route` |
//! | which host is meant, and which site's page asks | `origin` |
//! | who calls, and what they may do | `auth` |
//! | how many requests are worked on at a time | `admission` |
//! | compressed bodies | `gzip` |
//! | headers → what is sent, wanted and expected | `negotiate`, `committal` |
//! | the few differences of the mounts | `dialect` |
//! | whose documents a path is about | `owner` |
//! | one file a resource | `ehr`, `controlled`, `contribution`, `tag`, `versioned`, `template`, `stored_query`, `query`, `explain`, `value_set`, `gdl`, `execution`, `cds`, `admin`, `root` |
//! | what a query asks of terminologies → answers | `terminology`, `fhir` |
//! | body → checked document | `content` |
//! | body → checked document | `content`; without a commit: `examine` |
//! | pages of EHRs and of contributions | `listing` |
//! | references → what they refer to | `resolve` |
//! | many lines in one request | `bulk`, `transfer` |
//! | change set → versions, contribution, one commit | `commit` |
//! | the table of routes as a document | `openapi` |
//! | anything wrong → status and body | `error` |
//!
//! # Choices
//!
//! Where the specifications leave a choice, or contradict each other, this is what is done:
//!
//! - Whatever is created answers 201, updates and deletions 204, without a body unless `Prefer`
//!   asks for one.
//! - `If-Match` is required for every change of a versioned object whose path does not name the
//!   version (400 when it is missing, 412 when it is stale); a deletion that names an old version
//!   in its path answers 409.
//! - Content that breaks a rule of the model or its template answers 422 on the ITS mount and 400
//!   on `/v1`; what cannot be read at all answers 400 on both. All problems are told together, each
//!   with its path.
//! - A page is at most [`Limits::fetch_maximum`] rows. Where nobody says how many rows are wanted,
//!   [`Limits::fetch_default`] are given, and `meta._more` is true when there are others behind
//!   them. A query over a limit is an error, never a partial answer.
//! - `fetch` and `offset` lay a page over LIMIT on `/v1`, and exclude LIMIT on the ITS mount (422).
//!   They exclude TOP.
//! - `GET /v1/query/{name}/{version}` with a complete version and nothing else shows the definition
//!   and, where the query can be run as it stands, its result; with any parameter it is an
//!   execution.
//! - Every error has the body `{error, message, code, errors[]}`; its items are DV_CODED_TEXTs of
//!   the terminology `aqlite` with `_path`, or `_line` and `_column`, beside them.

mod admin;
mod admission;
pub mod auth;
mod bulk;
mod cache;
mod call;
mod cds;
mod commit;
mod committal;
mod content;
mod contribution;
mod controlled;
mod dialect;
mod ehr;
mod error;
mod examine;
mod executed;
mod execution;
mod expansion;
mod explain;
mod fhir;
mod gdl;
mod gzip;
mod http;
mod identity;
mod ids;
mod imported;
mod library;
mod listing;
mod negotiate;
mod openapi;
mod origin;
mod owner;
mod page_state;
mod parameters;
mod pieces;
mod population;
mod query;
mod query_memory;
mod replayed;
mod resolve;
mod root;
mod route;
mod simplified;
mod stored_query;
mod tag;
mod template;
mod terminology;
mod time;
mod transfer;
mod validators;
mod value_set;
mod versioned;

pub use admin::Loaded;
pub use admission::{
    Admission, Concurrency, LARGE, LEASE, Place, Rooms, Turn, Turns, Work, is_heavy, may_be_large,
};
pub use bulk::piece;
pub use explain::Host;
pub use gzip::{Gunzip, GzipError, Progress};
pub use http::{Request, Response};
pub use negotiate::is_compressed;
pub use openapi::openapi;
pub use pieces::{AHEAD, Pieces};
pub use replayed::Replayed;
pub use route::{needs_leave, operation};
pub use terminology::{Answers, Reply, TerminologyServer, Unreachable};
pub use time::days_before;

use crate::aql::Budget;
use crate::document::LayoutStore;
pub use crate::store::repository::Pause;
use crate::store::repository::Repository;
use crate::template::flat::Maker;
use auth::{Caller, Denied, Refusals, Trail};
use call::{Arrived, Call};
use error::Failure;
use library::Library;
use negotiate::Coding;
use query_memory::QueryMemory;
use route::{Matched, Operation};

/// Clock, random identifiers, time zones and pauses, provided by the host: the core itself is pure.
pub trait Environment {
    /// Now, in microseconds since 1970-01-01T00:00:00Z.
    fn now(&mut self) -> i64;

    /// A new random UUID in lower case.
    fn new_uuid(&mut self) -> String;

    /// Lets other requests be answered, and resolves after they had their turn: a long request
    /// awaits it between pieces of its work. A host that answers each request in a thread of its
    /// own, or one after the other, has nothing to do.
    fn pause(&mut self) -> Pause {
        Box::pin(std::future::ready(()))
    }

    /// Waits until no other request works without a pause, and lets all others have their turn
    /// first. A host that answers each request in a thread of its own, or one after the other, has
    /// nothing to wait for.
    fn turn(&mut self) -> Turns {
        Box::pin(std::future::ready(Some(Turn::default())))
    }

    /// Waits until the memory of other requests leaves `bytes` bytes to this one, and gives back
    /// those that it had before. They are given back when the answer is sent. A host whose
    /// requests do not share their memory has nothing to wait for.
    fn room(&mut self, bytes: usize) -> Rooms {
        let _ = bytes;
        Box::pin(std::future::ready(true))
    }

    /// Seconds east of UTC in a zone of the IANA database, such as `Europe/Stockholm`, at a number
    /// of milliseconds since 1970; `None` for a zone that the host does not know.
    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        utc_only(zone, millis)
    }
}

/// The offset in a host without a database of time zones.
fn utc_only(zone: &str, _millis: i64) -> Option<i32> {
    (zone == "UTC").then_some(0)
}

/// Who may use the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Auth {
    /// Nobody: only OPTIONS and health are answered. The default of a deployment that nobody
    /// configured.
    Refuse,
    /// Everybody, with every role: for a machine of one's own.
    Open,
    /// Whom the host recognises: see [`Service::serve`].
    Known,
}

/// What a request may cost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a request body; more is answered with 413.
    pub body: usize,
    /// Bytes of a template.
    pub template: usize,
    /// Bytes of an AQL text.
    pub aql: usize,
    /// Rows of a page when the client does not say.
    pub fetch_default: u64,
    /// Most rows of a page.
    pub fetch_maximum: u64,
    /// Microseconds that a query may take; more is answered with 408.
    pub query_time: i64,
    /// Units of work that a query may take, see `Budget::work`; more is answered with 408.
    pub query_work: u64,
    /// Bytes of the parameters of a query; more is answered with 413.
    pub parameters: usize,
    /// Bytes of a result set.
    pub result: usize,
    /// EHRs of one guide execution.
    pub guide_ehrs: usize,
    /// Requests that a host works on at a time; over it, 429.
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
            query_time: 10_000_000,
            query_work: Budget::default().work,
            parameters: 4_000_000,
            result: 50_000_000,
            guide_ehrs: 1_000,
            concurrency: Concurrency::default(),
        }
    }
}

/// How a service is set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The creating system of every version uid, such as `cdr.example.org`.
    pub system_id: String,
    /// Scheme and authority in front of the mounts, without a slash at the end:
    /// `http://127.0.0.1:8787`. Where it is empty, addresses begin as the client addressed the
    /// service ([`Request::base_url`]).
    pub base_url: String,
    /// The hosts that requests may be addressed to, with or without a port; without any, every one.
    /// A request to another host is answered with 421. An open service ([`Auth::Open`]) takes
    /// loopback names as well, and no others.
    pub hosts: Vec<String>,
    /// Who may use it.
    pub auth: Auth,
    /// Every access is written to the access log; without it nothing is answered.
    pub log: bool,
    /// Physical deletes, reset and loading under fixed ids.
    pub admin: bool,
    /// What a request may cost.
    pub limits: Limits,
    /// Members of `/.well-known/smart-configuration` that the issuer of tokens decides; without any
    /// there is no such document.
    pub smart: Vec<(String, String)>,
    /// Archetypes and codes of queries match by equality only, not their specialisations too.
    pub exact_archetypes: bool,
    /// Whose dialect of FLAT and STRUCTURED is written below `/rest/openehr/v1` where a request
    /// does not say.
    pub flat_dialect: Maker,
    /// Compositions are known to be valid: the model and their template are not asked again. For
    /// the samples of this crate.
    pub trusts_compositions: bool,
    /// Result sets carry `_executed_aql` and what was ignored.
    pub debug: bool,
    /// Origins whose pages may call the service; `*` means every one.
    pub origins: Vec<String>,
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
            exact_archetypes: false,
            flat_dialect: Maker::Better,
            trusts_compositions: false,
            debug: false,
            origins: Vec::new(),
        }
    }
}

impl Config {
    /// What stands in front of the mounts in addresses of an answer.
    fn base_url_of<'a>(&'a self, request: &'a Request) -> &'a str {
        if self.base_url.is_empty() {
            &request.base_url
        } else {
            &self.base_url
        }
    }

    /// True where pages of an origin may call the service.
    fn allows_origin(&self, origin: &str) -> bool {
        self.origins
            .iter()
            .any(|allowed| allowed == "*" || allowed == origin)
    }
}

/// The service: a repository, a configuration, and caches of what never changes.
pub struct Service<R> {
    repository: R,
    config: Config,
    layouts: LayoutStore,
    library: Library,
    terminology: Option<Box<dyn TerminologyServer>>,
    refusals: Refusals,
    query_memory: QueryMemory,
    /// The caller of a service that is open.
    everyone: Caller,
}

impl<R: Repository> Service<R> {
    /// A service over a repository.
    pub fn new(repository: R, config: Config) -> Service<R> {
        let (library, refusals) = (Library::default(), Refusals::default());
        let query_memory = QueryMemory::default();
        Service {
            repository,
            config,
            layouts: LayoutStore::new(),
            library,
            terminology: None,
            refusals,
            query_memory,
            everyone: Caller::everyone(),
        }
    }

    /// The same repository and caches under another configuration.
    pub fn with_config(self, config: Config) -> Service<R> {
        Service { config, ..self }
    }

    /// The same, with a terminology server to ask.
    pub fn with_terminology(self, server: Box<dyn TerminologyServer>) -> Service<R> {
        Service {
            terminology: Some(server),
            ..self
        }
    }

    /// The repository.
    pub fn repository(&self) -> &R {
        &self.repository
    }

    /// How it is set up.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Answers a request of somebody who was not recognised. Never fails: everything wrong becomes
    /// a status with a body that says what and where.
    pub async fn handle(&self, request: &Request, environment: &mut dyn Environment) -> Response {
        self.serve(
            request,
            Err(&Denied::nobody("Bearer realm=\"aqlite\"")),
            environment,
        )
        .await
    }

    /// Answers a request of somebody whom the host has recognised; what counts otherwise is
    /// [`Config::auth`].
    pub async fn serve(
        &self,
        request: &Request,
        caller: Result<&Caller, &Denied>,
        environment: &mut dyn Environment,
    ) -> Response {
        let trail = Trail::default();
        let response = match self.answer(request, caller, &trail, environment).await {
            Ok(response) => response,
            Err(failure) => failure.into_response(request),
        };
        let response = self.note_after(request, &trail, response).await;
        self.finish(request, response)
    }

    /// Answers a request that is not served at all.
    pub fn refuse(&self, request: &Request, denied: &Denied) -> Response {
        let response = denied.failure().into_response(request);
        if self.keeps_log() {
            self.refusals
                .count(&operation(request).unwrap_or_default(), response.status);
        }
        self.finish(request, response)
    }

    /// Checks what the head of a request tells, before its body is read: host, caller, leave,
    /// origin, length, coding and type of the body. [`Service::serve`] checks the same again; a
    /// host that reads bodies asks here first.
    ///
    /// # Errors
    /// The answer, where the request is refused.
    pub async fn screen(
        &self,
        head: &Request,
        caller: Result<&Caller, &Denied>,
        environment: &mut dyn Environment,
    ) -> Result<(), Response> {
        let trail = Trail::default();
        let outcome = match route::find(head) {
            Ok(Matched::Operation(found)) => {
                trail.found(head, &found, environment.now());
                self.admit(head, &found, caller, &trail).map(drop)
            }
            other => other.map(drop),
        };
        let Err(failure) = outcome else { return Ok(()) };
        let response = self
            .note_after(head, &trail, failure.into_response(head))
            .await;
        Err(self.finish(head, response))
    }

    /// Answers a request whose body cannot be read to its end.
    pub fn unreadable(&self, request: &Request, error: GzipError) -> Response {
        self.finish(request, Failure::of_gzip(error).into_response(request))
    }

    async fn answer(
        &self,
        request: &Request,
        caller: Result<&Caller, &Denied>,
        trail: &Trail,
        environment: &mut dyn Environment,
    ) -> Result<Response, Failure> {
        let matched = match route::find(request)? {
            Matched::Health => return Ok(root::health()),
            Matched::Smart => return self.smart(request),
            Matched::Options { dialect, allow } => {
                return Ok(self.options(request, dialect, &allow));
            }
            Matched::Operation(found) => found,
        };
        let now = environment.now();
        trail.found(request, &matched, now);
        let caller = self.admit(request, &matched, caller, trail)?;
        let expanded = self.decompressed(request)?;
        let request = expanded.as_ref().unwrap_or(request);
        let call = Call::new(
            Arrived {
                request,
                config: &self.config,
                trail,
                now,
            },
            matched,
            caller,
            environment,
        );
        call.is_unambiguous()?;
        self.note_before(trail).await?;
        self.dispatch(&call).await
    }

    /// A request whose body was compressed, with the body as it was before; `None` where it was
    /// not.
    fn decompressed(&self, request: &Request) -> Result<Option<Request>, Failure> {
        if Coding::of(request)? == Coding::Identity || request.body.is_empty() {
            return Ok(None);
        }
        let (mut gunzip, mut body, limit) =
            (Gunzip::default(), Vec::new(), self.config.limits.body);
        gunzip.feed(&request.body);
        let progress = gunzip
            .expand(&mut body, limit.saturating_add(1))
            .map_err(Failure::of_gzip)?;
        if body.len() > limit {
            return Err(Failure::too_large("body", limit));
        }
        if progress == Progress::Input {
            gunzip.end().map_err(Failure::of_gzip)?;
        }
        Ok(Some(Request {
            body,
            ..request.clone()
        }))
    }

    async fn dispatch(&self, call: &Call<'_>) -> Result<Response, Failure> {
        match call.operation {
            Operation::EhrCreate => self.ehr_create(call).await,
            Operation::EhrCreateWithId => self.ehr_create_with_id(call).await,
            Operation::EhrBySubject => self.ehr_by_subject(call).await,
            Operation::EhrGet => self.ehr_get(call).await,
            Operation::Create(what) => self.create(call, what).await,
            Operation::Read(what) => self.read(call, what).await,
            Operation::Update(what) => self.update(call, what).await,
            Operation::Delete(what) => self.delete(call, what).await,
            Operation::Versioned(what, part) => self.versioned(call, what, part).await,
            Operation::TagsList => self.tags_list(call).await,
            Operation::TagsGet(what) => self.tags_get(call, what).await,
            Operation::TagsPut(what) => self.tags_put(call, what).await,
            Operation::TagsDelete(what) => self.tags_delete(call, what).await,
            Operation::ContributionCreate => self.contribution_create(call).await,
            Operation::ContributionList => self.contribution_list(call).await,
            Operation::ContributionGet => self.contribution_get(call).await,
            Operation::TemplateUpload => self.template_upload(call).await,
            Operation::TemplateList => self.template_list(call).await,
            Operation::TemplateVersions => self.template_versions(call).await,
            Operation::TemplateGet => self.template_get(call).await,
            Operation::TemplateExample => self.template_example(call).await,
            Operation::TemplateWeb => self.template_web(call).await,
            Operation::QueryList => self.query_list(call).await,
            Operation::QueryStore => self.query_store(call).await,
            Operation::QueryDetail => self.query_detail(call).await,
            Operation::QueryAdHoc => self.query_ad_hoc(call).await,
            Operation::QueryExplain => self.query_explain(call).await,
            Operation::QueryStored => self.query_stored(call).await,
            Operation::ValueSetStore => self.value_set_store(call).await,
            Operation::ValueSetList => self.value_set_list(call).await,
            Operation::ValueSetGet => self.value_set_get(call).await,
            Operation::ValueSetDelete => self.value_set_delete(call).await,
            Operation::GuideUpload => self.guide_upload(call).await,
            Operation::GuideList => self.guide_list(call).await,
            Operation::GuideGet => self.guide_get(call).await,
            Operation::GuideRun => self.guide_run(call).await,
            Operation::GuideRunOn => self.guide_run_on(call).await,
            Operation::Bulk => self.bulk(call).await,
            Operation::Export => self.export(call).await,
            Operation::Import => self.import(call).await,
            Operation::CdsDiscovery => self.cds_discovery(call).await,
            Operation::CdsCall => self.cds_call(call).await,
            Operation::AdminLoad => self.admin_load(call).await,
            Operation::AdminReset => self.admin_reset().await,
            Operation::AdminDeleteEhr => self.admin_delete_ehr(call).await,
            Operation::AdminDeleteObject(what) => self.admin_delete_object(call, what).await,
            Operation::AdminDeleteDefinition(kind) => {
                self.admin_delete_definition(call, kind).await
            }
            Operation::AccessLog => self.access_log(call).await,
        }
    }
}
