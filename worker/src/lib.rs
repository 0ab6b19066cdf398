//! The Cloudflare host of aqlite: events, D1, KV, clock, random numbers, keys and logs around the core's service. No domain
//! logic lives here.

mod cached;
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

use aqlite::service::auth::{Denied, Gate, KeyRing};
use aqlite::service::{self, Auth, Moment, Pause, Service};
use aqlite::store::sql::{Catalogue, SqlRepository};
use cached::Cached;
use d1::D1;
use std::cell::RefCell;
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
/// The binding of a rate limit, which a deployment may have.
const RATE_LIMIT: &str = "RATE_LIMIT";

/// Milliseconds after which the event loop gets its turn before an answer leaves: workerd counts the five seconds that a connection may
/// idle from when its loop last looked at the clock, and would close it behind the answer.
const LONG: u64 = 1000;

/// What answers requests to one address of this deployment.
struct House {
    service: Service<Cached<SqlRepository<D1>>>,
    gate: Gate,
    ring: KeyRing,
}

thread_local! {
    /// The house of this instance, with its caches; made anew for another address.
    static HOUSE: RefCell<Option<Rc<House>>> = const { RefCell::new(None) };
}

#[event(fetch)]
async fn fetch(request: web_sys::Request, env: Env, _context: Context) -> Result<web_sys::Response> {
    let started = Date::now().as_millis();
    let (mut read, origin) = http::read(&request)?;
    let house = house(&env, env.var("BASE_URL").map_or(origin, |base| base.to_string()))?;
    if read.id().is_empty() {
        read.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("X-Request-Id"));
        read = read.with_header("X-Request-Id", &Runtime.new_uuid());
    }
    let (asked, limit) = (Rc::clone(&house), house.service.config().limits.body);
    let ask = move |read: service::Request| {
        let (house, env) = (Rc::clone(&asked), env.clone());
        async move {
            let response = house.answer(&read, &env).await;
            if Date::now().as_millis().saturating_sub(started) > LONG {
                Delay::from(Duration::ZERO).await;
            }
            log::tell(&read, &response, Date::now().as_millis().saturating_sub(started));
            response
        }
    };
    if let Some(size) = service::piece(&mut read, Runtime.now()).filter(|_| request.body().is_some()) {
        if let Ok(response) = pieces::answer(read.clone(), request, (size, limit), ask).await {
            return Ok(response);
        }
    } else if let Ok(body) = http::body(request, read.header("Content-Length"), limit).await {
        return http::write(ask(service::Request { body, ..read }).await);
    }
    let response = house.service.unreadable(&read);
    log::tell(&read, &response, Date::now().as_millis().saturating_sub(started));
    http::write(response)
}

impl House {
    async fn answer(&self, request: &service::Request, env: &Env) -> service::Response {
        let known = self.service.config().auth == Auth::Known && service::needs_leave(request);
        let caller = match known {
            true => self.gate.recognise(request, &self.ring, &keys::WebCrypto, Runtime.now() / 1_000_000).await,
            false => Err(Denied::nobody(self.gate.challenge())),
        };
        let address = || request.header("CF-Connecting-IP").unwrap_or_default();
        if limited(env, caller.as_ref().map_or_else(|_| address(), |caller| caller.name.as_str())).await {
            return self.service.refuse(request, &Denied::too_many());
        }
        self.service.serve(request, caller.as_ref(), &mut Runtime).await
    }
}

/// True when a rate limit is bound and this key is over it.
async fn limited(env: &Env, key: &str) -> bool {
    let Ok(limiter) = env.rate_limiter(RATE_LIMIT) else { return false };
    match limiter.limit(key.to_owned()).await {
        Ok(outcome) => !outcome.success,
        Err(error) => {
            log::complain("rate limit", &error);
            false
        }
    }
}

/// Steps in which a night removes old entries of the access log, of some thousands each.
const NIGHTLY_STEPS: usize = 50;

/// What is done every night.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    match maintain(&env).await {
        Ok(()) => log::note("maintenance"),
        Err(message) => log::complain("maintenance", &message),
    }
}

async fn maintain(env: &Env) -> std::result::Result<(), String> {
    let days = config::retention(env)?;
    let database = database(env).map_err(|error| error.to_string())?;
    let before = service::days_before(Runtime.now(), days);
    database.maintain(&before, days, NIGHTLY_STEPS).await.map_err(|error| error.to_string())
}

/// The database of the documents, with that of the access log where one is bound. Without it nothing is answered that must be logged.
fn database(env: &Env) -> Result<SqlRepository<D1>> {
    let database = SqlRepository::new(D1::new(env.d1(DATABASE)?), Rc::new(Catalogue::default()));
    Ok(match env.d1(LOG) {
        Ok(log) => database.with_log(D1::new(log)),
        Err(_) => database,
    })
}

/// The house for an address: the one that stands, if it has the same.
fn house(env: &Env, base_url: String) -> Result<Rc<House>> {
    let standing = HOUSE.with_borrow(|house| house.as_ref().filter(|h| h.service.config().base_url == base_url).map(Rc::clone));
    if let Some(house) = standing {
        return Ok(house);
    }
    let config::Setup { config, gate } = config::read(env);
    let service = Service::new(Cached::new(database(env)?, env.kv(BLOBS)?), service::Config { base_url, ..config });
    let service = match env.var("TERMINOLOGY_URL") {
        Ok(base) => service.with_terminology(Box::new(Fhir::new(&base.to_string(), env.kv(BLOBS)?))),
        Err(_) => service,
    };
    let house = Rc::new(House { service, gate, ring: KeyRing::default() });
    HOUSE.replace(Some(Rc::clone(&house)));
    Ok(house)
}

/// The runtime's clock, random numbers and zones.
struct Runtime;

impl Moment for Runtime {
    fn now(&mut self) -> i64 {
        i64::try_from(Date::now().as_millis()).unwrap_or(i64::MAX / 1000).saturating_mul(1000)
    }

    fn new_uuid(&mut self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    /// A turn of the event loop: a promise that is resolved at once would not let other requests in.
    fn pause(&mut self) -> Pause {
        Box::pin(Delay::from(Duration::ZERO))
    }

    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        zone::offset(zone, millis)
    }
}
