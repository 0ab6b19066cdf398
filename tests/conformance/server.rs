//! The service of the AQL suites: in this process, on memory or on SQLite, or over HTTP.

use crate::over_http;
use crate::sqlite::{Sqlite, compact};
use aqlite::service::{Auth, Config, Environment, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::now_or_never;
use aqlite::store::repository::Repository;
use serde_json::Value;
use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

/// The mount of the ITS dialect.
const MOUNT: &str = "/rest/openehr/v1";

/// The repositories of services in this process.
const IN_PROCESS: [&str; 3] = ["memory", "segments", "sqlite"];

/// The last record of an export, which is the only one of an empty repository.
const END_OF_EXPORT: &str = "\"record\":{\"end\":true}";

/// A server with administration enabled.
pub enum Server {
    /// A service in this process.
    Local(Box<Handler>),
    /// A server at `host:port`, below a path.
    Remote {
        /// `host:port`
        authority: String,
        /// The path of the ITS mount.
        mount: String,
    },
}

type Handler = dyn Fn(&Request) -> Result<Response, String>;

/// Returns the error for a server that refuses an operation of administration.
fn not_administered(status: u16) -> String {
    format!(
        "the server cannot be emptied ({status}): start it with `ADMIN=true`, and `aqlite serve` with `--open`"
    )
}

fn config(system_id: &str) -> Config {
    Config {
        system_id: system_id.to_owned(),
        auth: Auth::Open,
        admin: true,
        debug: true,
        ..Config::default()
    }
}

/// Creates a service in this process that writes segments after each request but queries.
fn segmented(system_id: &str) -> Server {
    let service = Service::new(Sqlite::in_memory().segmented(), config(system_id));
    let serial = Cell::new(0);
    Server::Local(Box::new(move |request| {
        let answer = now_or_never(service.handle(request, &mut Clock::default()));
        if !request.path.contains("/query/") {
            compact(service.repository(), &serial);
        }
        answer.map_err(|e| e.to_string())
    }))
}

/// Creates a service in this process.
fn local<R: Repository + 'static>(repository: R, system_id: &str) -> Server {
    let service = Service::new(repository, config(system_id));
    Server::Local(Box::new(move |request| {
        now_or_never(service.handle(request, &mut Clock::default())).map_err(|e| e.to_string())
    }))
}

impl Server {
    /// Returns an empty server. A remote one is emptied.
    pub fn empty(via: &str, system_id: &str) -> Result<Server, String> {
        match via {
            "memory" => return Ok(local(Memory::new(), system_id)),
            "segments" => return Ok(segmented(system_id)),
            "sqlite" => return Ok(local(Sqlite::in_memory().repository(), system_id)),
            _ => {}
        }
        let server = Server::remote(via)?;
        match server.send("POST", "/admin/reset", &[], "")?.status {
            204 => Ok(server),
            status => Err(not_administered(status)),
        }
    }

    /// Checks that the suites may empty a remote server: its repository is empty, as its export
    /// shows.
    pub fn check_empty(via: &str) -> Result<(), String> {
        if IN_PROCESS.contains(&via) {
            return Ok(());
        }
        let export = Server::remote(via)?.send("GET", "/admin/export?limit=1", &[], "")?;
        let page = String::from_utf8_lossy(&export.body);
        match export.status {
            200 if page.lines().count() == 1 && page.contains(END_OF_EXPORT) => Ok(()),
            200 => Err(format!(
                "the repository at {via} has content, and the suites remove all of it: add `--yes` if it may be lost"
            )),
            status => Err(not_administered(status)),
        }
    }

    /// Returns the server at an address.
    fn remote(base: &str) -> Result<Server, String> {
        let rest = base
            .trim_end_matches('/')
            .strip_prefix("http://")
            .ok_or("the address must begin with http://")?;
        let (authority, mount) = rest
            .split_once('/')
            .unwrap_or((rest, MOUNT.trim_start_matches('/')));
        let authority = if authority.contains(':') {
            authority.to_owned()
        } else {
            format!("{authority}:80")
        };
        Ok(Server::Remote {
            authority,
            mount: format!("/{mount}"),
        })
    }

    /// Returns the system id in the uids that a server assigns. One EHR is created for that.
    pub fn system_id(&self) -> Result<String, String> {
        let created = self.send("POST", "/ehr", &[("Prefer", "return=representation")], "")?;
        let ehr: Value = serde_json::from_slice(&created.body)
            .map_err(|e| format!("{} for POST /ehr: {e}", created.status))?;
        ehr.pointer("/system_id/value")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .ok_or_else(|| "an EHR names no system".to_owned())
    }

    /// Sends a request below the ITS mount.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Response, String> {
        match self {
            Server::Local(handle) => {
                let request = Request::new(method, &format!("{MOUNT}{path}"));
                let mut request = headers
                    .iter()
                    .fold(request, |r, (name, value)| r.with_header(name, value));
                request.body = body.as_bytes().to_vec();
                handle(&request)
            }
            Server::Remote { authority, mount } => over_http::send(
                authority,
                method,
                &format!("{mount}{path}"),
                headers,
                body.as_bytes(),
            )
            .map_err(|e| format!("{authority}: {e}")),
        }
    }
}

/// Checks the status of an answer.
pub fn expect(answer: &Response, status: u16) -> Result<(), String> {
    if answer.status == status {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&answer.body);
    let body: String = body.chars().take(400).collect();
    Err(format!("{} instead of {status}: {body}", answer.status))
}

/// Returns the entity tag of an answer without its quotes.
pub fn tag(answer: &Response) -> Result<String, String> {
    let tag = answer
        .header("ETag")
        .ok_or("the answer has no entity tag")?;
    Ok(tag.trim_matches('"').to_owned())
}

#[derive(Default)]
struct Clock(u64);

impl Environment for Clock {
    fn now(&mut self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn new_uuid(&mut self) -> String {
        self.0 += 1;
        let now = u64::try_from(self.now()).unwrap_or_default();
        format!(
            "{:08x}-{:04x}-4000-8000-{:012x}",
            now >> 32 & 0xffff_ffff,
            now >> 16 & 0xffff,
            (now & 0xffff) << 32 | self.0
        )
    }
}
