//! The Cloudflare host of aqlite: events, D1, KV, clock and random numbers around the core's service. No domain logic lives here.

mod cached;
mod d1;
mod http;
mod terminology;

use aqlite::service::{Auth, Config, Moment, Service};
use aqlite::store::sql::{Catalogue, Sql, SqlRepository, Statement};
use cached::Cached;
use d1::D1;
use std::cell::RefCell;
use std::rc::Rc;
use terminology::Fhir;
use worker::{Context, Date, Env, Request, Response, Result, ScheduleContext, ScheduledEvent, console_error, event};

/// The binding of the database in wrangler.toml.
const DATABASE: &str = "DB";
/// The binding of the KV namespace.
const BLOBS: &str = "BLOBS";

/// What the service stands on here.
type Host = Cached<SqlRepository<D1>>;

thread_local! {
    /// The service of this instance, with its caches; made anew for another configuration.
    static SERVICE: RefCell<Option<Rc<Service<Host>>>> = const { RefCell::new(None) };
}

#[event(fetch)]
async fn fetch(mut request: Request, env: Env, _context: Context) -> Result<Response> {
    let service = service(&env, http::origin(&request.inner().url()))?;
    let read = http::read(&mut request, service.config().limits.body).await?;
    http::write(service.handle(&read, &mut Runtime).await)
}

/// Lets the database refresh the statistics that its query planner uses.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    let outcome = match env.d1(DATABASE) {
        Ok(database) => D1::new(database).batch(vec![Statement::new("PRAGMA optimize")]).await.map_err(|e| e.to_string()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(message) = outcome {
        console_error!("maintenance: {message}");
    }
}

/// The service for this configuration: the one that stands, if it has the same.
fn service(env: &Env, base_url: String) -> Result<Rc<Service<Host>>> {
    let config = configuration(env, base_url);
    let standing = SERVICE.with_borrow(|service| service.as_ref().filter(|s| *s.config() == config).map(Rc::clone));
    if let Some(service) = standing {
        return Ok(service);
    }
    let database = SqlRepository::new(D1::new(env.d1(DATABASE)?), Rc::new(Catalogue::default()));
    let service = Service::new(Cached::new(database, env.kv(BLOBS)?), config);
    let service = match env.var("TERMINOLOGY_URL") {
        Ok(base) => service.with_terminology(Box::new(Fhir::new(&base.to_string(), env.kv(BLOBS)?))),
        Err(_) => service,
    };
    let service = Rc::new(service);
    SERVICE.replace(Some(Rc::clone(&service)));
    Ok(service)
}

/// The variables of the deployment. An unknown value of AUTH refuses, as none does.
fn configuration(env: &Env, base_url: String) -> Config {
    let variable = |name: &str| env.var(name).ok().map(|value| value.to_string());
    let standard = Config::default();
    Config {
        system_id: variable("SYSTEM_ID").unwrap_or_else(|| standard.system_id.clone()),
        base_url,
        auth: if variable("AUTH").as_deref() == Some("none") { Auth::Open } else { Auth::Refuse },
        log: variable("AUTH").as_deref() != Some("none"),
        admin: variable("ADMIN").as_deref() == Some("true"),
        ..standard
    }
}

/// The runtime's clock and random numbers.
struct Runtime;

impl Moment for Runtime {
    fn now(&mut self) -> i64 {
        i64::try_from(Date::now().as_millis()).unwrap_or(i64::MAX / 1000).saturating_mul(1000)
    }

    fn new_uuid(&mut self) -> String {
        uuid::Uuid::new_v4().to_string()
    }
}
