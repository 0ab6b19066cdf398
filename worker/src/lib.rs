//! The Cloudflare host of aqlite: events, D1, KV, clock, random numbers, keys and logs for the
//! service. It has no domain logic.

mod blobs;
mod body_parts;
mod cached;
mod compaction;
mod d1;
mod http;
mod keys;
mod log;
mod memory;
mod pause;
mod row_stream;
mod terminology;
#[path = "../../www/wasm/src/zone.rs"]
mod zone;

use aqlite::service::auth::{Authenticator, Caller, Denied, KeyCache};
use aqlite::service::deployment::{self, Deployment, Variables};
use aqlite::service::{
    self, Admission, Auth, BodyParts, Environment, LARGE, Pause, Permit, RoomFuture, Service, Turn,
    TurnFuture, WaitFuture, Work,
};
use aqlite::store::sql::{LayoutCatalog, Segments, SqlRepository};
use cached::CachedDefinitions;
use d1::D1;
use futures_util::future::select;
use futures_util::pin_mut;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use terminology::FhirServer;
use worker::{Context, Date, Delay, Env, Result, ScheduleContext, ScheduledEvent, event, web_sys};

/// The binding of the database in wrangler.toml.
const DATABASE: &str = "DB";
/// The binding of the database of the access log.
const LOG: &str = "LOG";
/// The binding of the KV namespace.
const BLOBS: &str = "BLOBS";
/// The binding of an optional rate limit.
const RATE_LIMIT: &str = "RATE_LIMIT";

/// The duration of a request, in milliseconds, after which the event loop runs once before the
/// response is sent. workerd closes a connection that was idle for five seconds. It measures this time
/// from the last moment when its event loop read the clock, which a long computation prevents.
const LONG: u64 = 1000;

/// The time between two checks of a waiting request.
const PAUSE: Duration = Duration::from_millis(20);

/// The room of a request (see the glossary), if it has any. It is released when the response is sent.
type RoomSlot = Rc<RefCell<Option<Permit>>>;

/// The heavy permit of a request, or the permit of its wait for a foreign server, if it has any.
type HeavySlot = Rc<RefCell<Option<Permit>>>;

/// The state of this isolate: the service with its caches, for all hosts.
struct IsolateState {
    service: Service<CachedDefinitions<SqlRepository<D1>>>,
    authenticator: Authenticator,
    key_cache: KeyCache,
    admission: Admission,
    /// The same database, for compaction.
    database: SqlRepository<D1>,
    segments: Rc<Segments>,
}

thread_local! {
    static STATE: RefCell<Option<Rc<IsolateState>>> = const { RefCell::new(None) };
}

#[event(fetch)]
async fn fetch(request: web_sys::Request, env: Env, context: Context) -> Result<web_sys::Response> {
    let started = Date::now().as_millis();
    let mut head = with_id(http::read(&request)?);
    let state = state(&env)?;
    let has_body = request.body().is_some();
    let limit = service::body_limit(&head, state.service.config().limits.body);
    let active = match ActiveRequest::admit(state, &head, has_body, &env, started).await {
        Ok(active) => Rc::new(active),
        Err(response) => {
            let millis = Date::now().as_millis().saturating_sub(started);
            log::log_request(&head, &response, millis);
            if has_body {
                http::Body::new(&request, http::CHUNK).pass(limit).await;
            }
            return http::write(response);
        }
    };
    let sizes = active.state.service.config().load_sizes;
    let size = service::part_size(&mut head, Runtime.now(), sizes).filter(|_| has_body);
    if let Some(size) = size {
        let parts = BodyParts::new(size, sizes.lines, limit);
        return body_parts::answer(active, head, &request, parts, limit).await;
    }
    // Held until the response, because the total size of the bodies in memory is limited.
    let _body_permit = match has_body && service::may_be_large(&head) {
        false => None,
        true => match active.body_permit(&head, limit).await {
            Some(permit) => Some(permit),
            None => {
                let denied = active.state.service.refuse(&head, &Denied::busy());
                http::Body::new(&request, http::CHUNK).pass(limit).await;
                return http::write(active.log_response(&head, denied));
            }
        },
    };
    let response = match http::body(request, &mut head, limit).await {
        Ok(body) => {
            head.body = body;
            active.answer(&head).await
        }
        Err(http::Unread(error)) => {
            active.log_response(&head, active.state.service.unreadable(&head, error))
        }
    };
    if response.rest.is_some() {
        return row_stream::send(active, head, response);
    }
    match active.room.take().filter(|_| response.body.len() >= LARGE) {
        Some(room) => write_long(response, room, &context),
        None => http::write(response),
    }
}

/// Returns a request with a new id if that of the client is absent or invalid, so that log and
/// response agree.
fn with_id(mut head: service::Request) -> service::Request {
    if !head.id().is_empty() {
        return head;
    }
    head.headers
        .retain(|(name, _)| !name.eq_ignore_ascii_case("X-Request-Id"));
    head.with_header("X-Request-Id", &Runtime.new_uuid())
}

/// Writes a long response, and holds its memory until the client has received it.
fn write_long(
    response: service::Response,
    room: Permit,
    context: &Context,
) -> Result<web_sys::Response> {
    room.shrink(response.body.len());
    let (written, sent) = http::write_observed(response)?;
    let sending = memory::Sending::begin();
    context.wait_until(async move {
        let late = Delay::from(service::SEND_TIME);
        pin_mut!(sent, late);
        select(sent, late).await;
        drop((room, sending));
    });
    Ok(written)
}

/// A request in progress.
struct ActiveRequest {
    state: Rc<IsolateState>,
    caller: Result<Caller, Denied>,
    /// The caller in admission control.
    key: String,
    started: u64,
    /// The permit of the request, if it needs one. Dropping it returns it to admission control.
    permit: Option<Permit>,
    /// Whether a part was answered.
    is_begun: Cell<bool>,
    room: RoomSlot,
}

impl ActiveRequest {
    /// Authenticates the caller and checks the headers. Returns the error response of a rejected
    /// request.
    async fn admit(
        state: Rc<IsolateState>,
        head: &service::Request,
        has_body: bool,
        env: &Env,
        started: u64,
    ) -> Result<ActiveRequest, service::Response> {
        let mut active = ActiveRequest {
            caller: Err(Denied::no_credentials(state.authenticator.challenge())),
            state,
            key: String::new(),
            started,
            permit: None,
            is_begun: Cell::new(false),
            room: RoomSlot::default(),
        };
        let state = Rc::clone(&active.state);
        let needs_permission = service::needs_permission(head);
        if needs_permission {
            active.identify(head).await;
            if limited(env, &active.key).await {
                return Err(state.service.refuse(head, &Denied::too_many()));
            }
        }
        if has_body {
            let caller = active.caller.as_ref();
            state.service.screen(head, caller, &mut Runtime).await?;
        }
        if needs_permission {
            let permit = state.permit(&active.key, Work::Request, false).await;
            let permit = permit.ok_or_else(|| state.service.refuse(head, &Denied::busy()))?;
            active.permit = Some(permit);
        }
        Ok(active)
    }

    /// Authenticates the caller, if the service needs that, and sets its key in admission control.
    async fn identify(&mut self, head: &service::Request) {
        let state = Rc::clone(&self.state);
        if state.service.config().auth == Auth::Known {
            let now = Runtime.now() / 1_000_000;
            self.caller = state
                .authenticator
                .authenticate(head, &state.key_cache, &keys::WebCrypto, now)
                .await;
        }
        self.key = match &self.caller {
            Ok(caller) => format!("{} {}", caller.issuer, caller.name),
            Err(_) => head.client_address.clone(),
        };
    }

    /// Waits for memory for the body of the request. `limit` is the longest body.
    async fn body_permit(&self, head: &service::Request, limit: usize) -> Option<Permit> {
        let work = Work::Body(service::body_memory(head, limit));
        self.state.permit(&self.key, work, false).await
    }

    /// Responds to the request, or to a part of it. Heavy work has a heavy permit meanwhile.
    async fn answer(&self, request: &service::Request) -> service::Response {
        let is_begun = self.is_begun.replace(true);
        self.room.take();
        let mut host = self.host(service::room_of_body(request.body.len()));
        let permit = match service::is_heavy(request) {
            true if host.body > 0 && !host.room(0).await => Err(Denied::busy()),
            true => self
                .state
                .permit(&self.key, Work::Heavy, is_begun)
                .await
                .map(Some)
                .ok_or_else(Denied::busy),
            false => Ok(None),
        };
        let response = match permit {
            Ok(permit) => {
                host.heavy.replace(permit);
                let (service, caller) = (&self.state.service, self.caller.as_ref());
                service.serve(request, caller, &mut host).await
            }
            Err(denied) => self.state.service.refuse(request, &denied),
        };
        host.heavy.take();
        if Date::now().as_millis().saturating_sub(self.started) > LONG {
            pause::turn().await;
        }
        // Renews the lease: the next part of a load may come long after this one.
        if let Some(permit) = &self.permit {
            permit.renew(Runtime.now());
        }
        self.log_response(request, response)
    }

    /// Returns the environment of the service for this request. `body` is the memory for its body.
    fn host(&self, body: usize) -> Host {
        let (state, room) = (Rc::clone(&self.state), Rc::clone(&self.room));
        let key = self.key.clone();
        Host {
            state,
            key,
            room,
            body,
            heavy: HeavySlot::default(),
        }
    }

    /// Writes the log line of a response.
    fn log_response(
        &self,
        request: &service::Request,
        response: service::Response,
    ) -> service::Response {
        let millis = Date::now().as_millis().saturating_sub(self.started);
        log::log_request(request, &response, millis);
        response
    }
}

impl IsolateState {
    /// Returns a permit for work of a caller, or `None` if none is free in time.
    async fn permit(&self, key: &str, work: Work, is_begun: bool) -> Option<Permit> {
        let permit = self.admission.enter(key, work, Runtime.now())?;
        let until = Runtime.now() + work.patience(is_begun);
        while !permit.renew(Runtime.now()).is_admitted() {
            if Runtime.now() > until {
                return None;
            }
            Delay::from(PAUSE).await;
        }
        Some(permit)
    }
}

/// Returns whether a rate limit is bound and this key exceeds it.
async fn limited(env: &Env, key: &str) -> bool {
    let Ok(limiter) = env.rate_limiter(RATE_LIMIT) else {
        return false;
    };
    match limiter.limit(key.to_owned()).await {
        Ok(outcome) => !outcome.success,
        Err(error) => {
            log::log_problem("rate limit", &error);
            false
        }
    }
}

/// Steps of a night that remove old records of the access log, of some thousands each.
const NIGHTLY_STEPS: usize = 50;

/// Runs the maintenance of a night.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    match maintain(&env).await {
        Ok(()) => log::log_action("maintenance"),
        Err(message) => log::log_problem("maintenance", &message),
    }
}

async fn maintain(env: &Env) -> std::result::Result<(), String> {
    let lookup = lookup(env);
    let days = deployment::retention(&Variables::new(&lookup))?;
    let Databases { database, .. } = Databases::open(env).map_err(|error| error.to_string())?;
    let before = service::days_before(Runtime.now(), days);
    let maintained = database.maintain(&before, days, NIGHTLY_STEPS).await;
    let compacted = compaction::nightly(&database).await;
    maintained.and(compacted).map_err(|error| error.to_string())
}

/// The database of the documents, and its caches.
struct Databases {
    database: SqlRepository<D1>,
    catalog: Rc<LayoutCatalog>,
    segments: Rc<Segments>,
}

impl Databases {
    /// Opens the databases of the bindings.
    fn open(env: &Env) -> Result<Databases> {
        let segments = Rc::new(Segments::new(blobs::open(env, BLOBS)?));
        let catalog = Rc::default();
        Ok(Databases {
            database: database(env, &catalog, &segments)?,
            catalog,
            segments,
        })
    }
}

/// Opens the database of the documents, with that of the access log if one is bound. Without it,
/// requests that need a record are rejected.
fn database(
    env: &Env,
    catalog: &Rc<LayoutCatalog>,
    segments: &Rc<Segments>,
) -> Result<SqlRepository<D1>> {
    let database = SqlRepository::new(D1::new(env.d1(DATABASE)?), Rc::clone(catalog))
        .with_segments(Rc::clone(segments));
    Ok(match env.d1(LOG) {
        Ok(log) => database.with_log(D1::new(log)),
        Err(_) => database,
    })
}

/// Returns the function that reads the variables of the deployment.
fn lookup(env: &Env) -> impl Fn(&str) -> Option<String> {
    |name| env.var(name).ok().map(|value| value.to_string())
}

/// Returns the state of this isolate, which the first request creates.
fn state(env: &Env) -> Result<Rc<IsolateState>> {
    if let Some(state) = STATE.with_borrow(|state| state.as_ref().map(Rc::clone)) {
        return Ok(state);
    }
    let lookup = lookup(env);
    let Deployment {
        config,
        authenticator,
        problem,
    } = deployment::read(&Variables::new(&lookup));
    if let Some(problem) = problem {
        log::log_problem("the service stays closed", &problem);
    }
    let admission = Admission::new(config.limits.concurrency);
    let store = Databases::open(env)?;
    // Two repositories over the same caches: the service owns one, compaction uses the other.
    let served = database(env, &store.catalog, &store.segments)?;
    let service = Service::new(CachedDefinitions::new(served, env.kv(BLOBS)?), config);
    let service = match env.var("TERMINOLOGY_URL") {
        Ok(base) => {
            service.with_terminology(Box::new(FhirServer::new(&base.to_string(), env.kv(BLOBS)?)))
        }
        Err(_) => service,
    };
    let state = Rc::new(IsolateState {
        service,
        authenticator,
        key_cache: KeyCache::default(),
        admission,
        database: store.database,
        segments: store.segments,
    });
    STATE.replace(Some(Rc::clone(&state)));
    Ok(state)
}

/// The runtime together with admission control of this isolate, for a request of a caller.
struct Host {
    state: Rc<IsolateState>,
    key: String,
    room: RoomSlot,
    /// The bytes of memory for the body of the request. They are part of any room that is requested.
    body: usize,
    heavy: HeavySlot,
}

impl Environment for Host {
    fn now(&mut self) -> i64 {
        Runtime.now()
    }

    fn new_uuid(&mut self) -> String {
        Runtime.new_uuid()
    }

    fn pause(&mut self) -> Pause {
        Runtime.pause()
    }

    fn sends_parts(&self) -> bool {
        true
    }

    fn turn(&mut self) -> TurnFuture {
        let (state, key) = (Rc::clone(&self.state), self.key.clone());
        Box::pin(async move {
            // `true` selects the longer timeout: the request has done a part of its work, and
            // the turns of other requests are short.
            let permit = state.permit(&key, Work::Turn, true).await?;
            pause::turn().await;
            Some(Turn::new(permit))
        })
    }

    fn room(&mut self, bytes: usize) -> RoomFuture {
        let (state, key, room) = (
            Rc::clone(&self.state),
            self.key.clone(),
            Rc::clone(&self.room),
        );
        let bytes = bytes.saturating_add(self.body);
        Box::pin(async move {
            // The present room is released first. Two requests that hold some room and wait for
            // more would block each other forever.
            room.take();
            let permit = state.permit(&key, Work::Room(bytes), false).await;
            let is_free = permit.is_some();
            room.replace(permit);
            is_free
        })
    }

    fn replace_permit(&mut self, work: Work) -> WaitFuture {
        let (state, key) = (Rc::clone(&self.state), self.key.clone());
        let (heavy, is_heavy) = (Rc::clone(&self.heavy), work == Work::Heavy);
        Box::pin(async move {
            heavy.borrow_mut().take_if(|_| !is_heavy);
            let permit = state.permit(&key, work, is_heavy).await;
            heavy.replace(permit);
            heavy.borrow().is_some()
        })
    }

    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        Runtime.offset(zone, millis)
    }
}

/// The runtime's clock, random numbers and zones.
struct Runtime;

impl Environment for Runtime {
    fn now(&mut self) -> i64 {
        i64::try_from(Date::now().as_millis())
            .unwrap_or(i64::MAX / 1000)
            .saturating_mul(1000)
    }

    fn new_uuid(&mut self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    fn pause(&mut self) -> Pause {
        Box::pin(pause::pause())
    }

    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        zone::offset(zone, millis)
    }
}
