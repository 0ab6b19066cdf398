//! The Cloudflare host of aqlite: events, D1, KV, clock, random numbers, keys and logs for the
//! service. It has no domain logic.

mod blobs;
mod cached;
mod compaction;
mod config;
mod d1;
mod http;
mod keys;
mod log;
mod memory;
mod pieces;
mod terminology;
#[path = "../../www/wasm/src/zone.rs"]
mod zone;

use aqlite::service::auth::{Caller, Denied, Gate, KeyRing};
use aqlite::service::{
    self, Admission, Auth, Environment, LARGE, Pause, Place, Rooms, Service, Turn, Turns, Work,
};
use aqlite::store::sql::{Catalogue, Segments, SqlRepository};
use blobs::KvBlobs;
use cached::Cached;
use d1::D1;
use futures_util::future::select;
use futures_util::pin_mut;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use terminology::Fhir;
use worker::{Context, Date, Delay, Env, Result, ScheduleContext, ScheduledEvent, event, web_sys};

/// The binding of the database in wrangler.toml.
const DATABASE: &str = "DB";
/// The binding of the database of the access log.
const LOG: &str = "LOG";
/// The binding of the KV namespace.
const BLOBS: &str = "BLOBS";
/// The binding of an optional rate limit.
const RATE_LIMIT: &str = "RATE_LIMIT";

/// Milliseconds after which the event loop runs once before a response is sent. workerd measures
/// the idle time of a connection (five seconds) from the last time that its loop read the clock,
/// and would close the connection after the response.
const LONG: u64 = 1000;

/// The time between two checks of a waiting request.
const PAUSE: Duration = Duration::from_millis(20);

/// Microseconds that a request waits for a permit, and a later part of a load in progress.
const PATIENCE: [i64; 2] = [5_000_000, 60_000_000];

/// The room of a request in memory, if it has any; returned when its response is sent.
type Room = Rc<RefCell<Option<Place>>>;

/// The state of this isolate: the service with its caches, for all hosts.
struct IsolateState {
    service: Service<Cached<SqlRepository<D1>>>,
    gate: Gate,
    ring: KeyRing,
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
    let mut head = http::read(&request)?;
    if head.id().is_empty() {
        head.headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("X-Request-Id"));
        head = head.with_header("X-Request-Id", &Runtime.new_uuid());
    }
    let state = state(&env)?;
    let (has_body, limit) = (request.body().is_some(), state.service.config().limits.body);
    let visit = match Visit::admit(state, &head, has_body, &env, started).await {
        Ok(visit) => Rc::new(visit),
        Err(response) => {
            log::tell(
                &head,
                &response,
                Date::now().as_millis().saturating_sub(started),
            );
            if has_body {
                http::Body::of(&request, http::CHUNK).pass(limit).await;
            }
            return http::write(response);
        }
    };
    if let Some(size) = service::piece(&mut head, Runtime.now()).filter(|_| has_body) {
        return pieces::answer(visit, head, &request, (size, limit)).await;
    }
    // Held until the response: the bodies in memory are limited in total.
    let _body_place = match has_body && service::may_be_large(&head) {
        false => None,
        true => match visit.state.place(&visit.key, Work::Body, false).await {
            Some(place) => Some(place),
            None => {
                let denied = visit.state.service.refuse(&head, &Denied::busy());
                http::Body::of(&request, http::CHUNK).pass(limit).await;
                return http::write(visit.tell(&head, denied));
            }
        },
    };
    let answer = match http::body(request, &mut head, limit).await {
        Ok(body) => visit.answer(&service::Request { body, ..head }).await,
        Err(http::Unread(error)) => visit.tell(&head, visit.state.service.unreadable(&head, error)),
    };
    let room = visit.room.take().filter(|_| answer.body.len() >= LARGE);
    let Some(room) = room else {
        return http::write(answer);
    };
    // The memory of a long response is held until the client has received it.
    room.shrink(answer.body.len());
    let (response, sent) = http::write_observed(answer)?;
    let sending = memory::Sending::begin();
    context.wait_until(async move {
        let late = Delay::from(memory::LONGEST);
        pin_mut!(sent, late);
        select(sent, late).await;
        drop((room, sending));
    });
    Ok(response)
}

/// A request in progress.
struct Visit {
    state: Rc<IsolateState>,
    caller: Result<Caller, Denied>,
    /// The caller in admission control.
    key: String,
    started: u64,
    /// Its permit, unless it needs none; returned when this is dropped.
    place: Option<Place>,
    /// Whether a part was answered.
    is_begun: Cell<bool>,
    room: Room,
}

impl Visit {
    /// Authenticates the caller and checks the headers. Returns the error response of a rejected
    /// request.
    async fn admit(
        state: Rc<IsolateState>,
        head: &service::Request,
        has_body: bool,
        env: &Env,
        started: u64,
    ) -> Result<Visit, service::Response> {
        let mut visit = Visit {
            caller: Err(Denied::nobody(state.gate.challenge())),
            state,
            key: String::new(),
            started,
            place: None,
            is_begun: Cell::new(false),
            room: Room::default(),
        };
        if service::needs_leave(head) {
            let state = Rc::clone(&visit.state);
            if state.service.config().auth == Auth::Known {
                visit.caller = state
                    .gate
                    .recognise(
                        head,
                        &state.ring,
                        &keys::WebCrypto,
                        Runtime.now() / 1_000_000,
                    )
                    .await;
            }
            visit.key = match &visit.caller {
                Ok(caller) => format!("{} {}", caller.issuer, caller.name),
                Err(_) => head
                    .header("CF-Connecting-IP")
                    .unwrap_or_default()
                    .to_owned(),
            };
            if limited(env, &visit.key).await {
                return Err(state.service.refuse(head, &Denied::too_many()));
            }
            if has_body {
                state
                    .service
                    .screen(head, visit.caller.as_ref(), &mut Runtime)
                    .await?;
            }
            visit.place = Some(
                state
                    .place(&visit.key, Work::Request, false)
                    .await
                    .ok_or_else(|| state.service.refuse(head, &Denied::busy()))?,
            );
        } else if has_body {
            visit
                .state
                .service
                .screen(head, visit.caller.as_ref(), &mut Runtime)
                .await?;
        }
        Ok(visit)
    }

    /// Responds to the request, or to a part of it. Heavy work has a heavy permit meanwhile.
    async fn answer(&self, request: &service::Request) -> service::Response {
        let is_begun = self.is_begun.replace(true);
        self.room.take();
        let place = match service::is_heavy(request) {
            true => self
                .state
                .place(&self.key, Work::Heavy, is_begun)
                .await
                .map(Some)
                .ok_or_else(Denied::busy),
            false => Ok(None),
        };
        let response = match place {
            Ok(_place) => {
                self.state
                    .service
                    .serve(request, self.caller.as_ref(), &mut self.host())
                    .await
            }
            Err(denied) => self.state.service.refuse(request, &denied),
        };
        if Date::now().as_millis().saturating_sub(self.started) > LONG {
            Delay::from(Duration::ZERO).await;
        }
        let _ = self
            .place
            .as_ref()
            .is_some_and(|place| place.is_admitted(Runtime.now()));
        self.tell(request, response)
    }

    /// Returns the environment of the service for this request.
    fn host(&self) -> Host {
        Host {
            state: Rc::clone(&self.state),
            key: self.key.clone(),
            room: Rc::clone(&self.room),
        }
    }

    /// Writes the log line of a response.
    fn tell(&self, request: &service::Request, response: service::Response) -> service::Response {
        log::tell(
            request,
            &response,
            Date::now().as_millis().saturating_sub(self.started),
        );
        response
    }
}

impl IsolateState {
    /// Returns a permit for work of a caller, or `None` if none is free in time.
    async fn place(&self, key: &str, work: Work, is_begun: bool) -> Option<Place> {
        let [usual, begun] = PATIENCE;
        let (place, until) = (
            self.admission.enter(key, work, Runtime.now())?,
            Runtime.now() + if is_begun { begun } else { usual },
        );
        while !place.is_admitted(Runtime.now()) {
            if Runtime.now() > until {
                return None;
            }
            Delay::from(PAUSE).await;
        }
        Some(place)
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
            log::complain("rate limit", &error);
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
        Ok(()) => log::note("maintenance"),
        Err(message) => log::complain("maintenance", &message),
    }
}

async fn maintain(env: &Env) -> std::result::Result<(), String> {
    let days = config::retention(env)?;
    let Store { database, .. } = Store::open(env).map_err(|error| error.to_string())?;
    let before = service::days_before(Runtime.now(), days);
    let maintained = database.maintain(&before, days, NIGHTLY_STEPS).await;
    let compacted = compaction::run(&database, compaction::NIGHTLY).await;
    maintained.and(compacted).map_err(|error| error.to_string())
}

/// The database of the documents, and its caches.
struct Store {
    database: SqlRepository<D1>,
    catalogue: Rc<Catalogue>,
    segments: Rc<Segments>,
}

impl Store {
    /// Opens the databases of the bindings.
    fn open(env: &Env) -> Result<Store> {
        let blobs = Box::new(KvBlobs(env.kv(BLOBS)?));
        let (catalogue, segments) = (Rc::default(), Rc::new(Segments::new(blobs)));
        Ok(Store {
            database: database(env, &catalogue, &segments)?,
            catalogue,
            segments,
        })
    }
}

/// Opens the database of the documents, with that of the access log if one is bound. Without it,
/// requests that need a record are rejected.
fn database(
    env: &Env,
    catalogue: &Rc<Catalogue>,
    segments: &Rc<Segments>,
) -> Result<SqlRepository<D1>> {
    let database = SqlRepository::new(D1::new(env.d1(DATABASE)?), Rc::clone(catalogue))
        .with_segments(Rc::clone(segments));
    Ok(match env.d1(LOG) {
        Ok(log) => database.with_log(D1::new(log)),
        Err(_) => database,
    })
}

/// Returns the state of this isolate, which the first request creates.
fn state(env: &Env) -> Result<Rc<IsolateState>> {
    if let Some(state) = STATE.with_borrow(|state| state.as_ref().map(Rc::clone)) {
        return Ok(state);
    }
    let config::Setup { config, gate } = config::read(env);
    let admission = Admission::new(config.limits.concurrency);
    let store = Store::open(env)?;
    let served = database(env, &store.catalogue, &store.segments)?;
    let service = Service::new(Cached::new(served, env.kv(BLOBS)?), config);
    let service = match env.var("TERMINOLOGY_URL") {
        Ok(base) => {
            service.with_terminology(Box::new(Fhir::new(&base.to_string(), env.kv(BLOBS)?)))
        }
        Err(_) => service,
    };
    let state = Rc::new(IsolateState {
        service,
        gate,
        ring: KeyRing::default(),
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
    room: Room,
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

    fn turn(&mut self) -> Turns {
        let (state, key) = (Rc::clone(&self.state), self.key.clone());
        Box::pin(async move {
            let place = state.place(&key, Work::Turn, true).await?;
            Delay::from(Duration::ZERO).await;
            Some(Turn::of(place))
        })
    }

    fn room(&mut self, bytes: usize) -> Rooms {
        let (state, key, room) = (
            Rc::clone(&self.state),
            self.key.clone(),
            Rc::clone(&self.room),
        );
        Box::pin(async move {
            room.take();
            let place = state.place(&key, Work::Room(bytes), false).await;
            let is_free = place.is_some();
            room.replace(place);
            is_free
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

    /// Waits for a turn of the event loop. A promise that is resolved at once would not let other
    /// requests run.
    fn pause(&mut self) -> Pause {
        Box::pin(Delay::from(Duration::ZERO))
    }

    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        zone::offset(zone, millis)
    }
}
