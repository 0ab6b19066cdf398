//! The service that the AQL suites ask: in this process, on memory or (`--via sqlite`) on SQLite, or over HTTP.

use crate::sqlite::Sqlite;
use aqlite::service::{Auth, Config, Moment, Request, Response, Service};
use aqlite::store::memory::Memory;
use aqlite::store::ready::block_on;
use aqlite::store::repository::Repository;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The mount of the ITS dialect.
const MOUNT: &str = "/rest/openehr/v1";

/// A server with administration switched on.
pub enum Server {
    /// In this process.
    Local(Box<Handler>),
    /// At `host:port`, below a path.
    Remote {
        /// `host:port`
        authority: String,
        /// The path of the ITS mount.
        mount: String,
    },
}

type Handler = dyn Fn(&Request) -> Result<Response, String>;

/// A service in this process.
fn local<R: Repository + 'static>(repository: R, system_id: &str) -> Server {
    let config = Config { system_id: system_id.to_owned(), auth: Auth::Open, admin: true, debug: true, ..Config::default() };
    let service = Service::new(repository, config);
    Server::Local(Box::new(move |request| block_on(service.handle(request, &mut Clock::default())).map_err(|e| e.to_string())))
}

impl Server {
    /// An empty server; a remote one is emptied.
    pub fn empty(via: Option<&str>, system_id: &str) -> Result<Server, String> {
        let base = match via {
            None => return Ok(local(Memory::new(), system_id)),
            Some("sqlite") => return Ok(local(Sqlite::in_memory().repository(), system_id)),
            Some(base) => base,
        };
        let rest = base.trim_end_matches('/').strip_prefix("http://").ok_or("the address must begin with http://")?;
        let (authority, mount) = rest.split_once('/').unwrap_or((rest, MOUNT.trim_start_matches('/')));
        let authority = if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
        let server = Server::Remote { authority, mount: format!("/{mount}") };
        match server.send("POST", "/admin/reset", &[], "")?.status {
            204 => Ok(server),
            status => Err(format!("the server cannot be emptied ({status}): start it with --admin")),
        }
    }

    /// Sends a request below the ITS mount.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Result<Response, String> {
        match self {
            Server::Local(handle) => {
                let request = Request::new(method, &format!("{MOUNT}{path}"));
                let mut request = headers.iter().fold(request, |r, (name, value)| r.with_header(name, value));
                request.body = body.as_bytes().to_vec();
                handle(&request)
            }
            Server::Remote { authority, mount } => {
                over_http(authority, method, &format!("{mount}{path}"), headers, body).map_err(|e| format!("{authority}: {e}"))
            }
        }
    }
}

#[derive(Default)]
struct Clock(u64);

impl Moment for Clock {
    fn now(&mut self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    fn new_uuid(&mut self) -> String {
        self.0 += 1;
        let now = u64::try_from(self.now()).unwrap_or_default();
        format!("{:08x}-{:04x}-4000-8000-{:012x}", now >> 32 & 0xffff_ffff, now >> 16 & 0xffff, (now & 0xffff) << 32 | self.0)
    }
}

fn over_http(authority: &str, method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> std::io::Result<Response> {
    let mut stream = TcpStream::connect(authority)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 16_384];
    loop {
        match stream.read(&mut chunk)? {
            0 => break,
            read => answer.extend_from_slice(chunk.get(..read).unwrap_or_default()),
        }
        if is_whole(&answer) {
            break;
        }
    }
    parse(&answer).ok_or_else(|| std::io::Error::other("the answer is not HTTP"))
}

/// True when the answer has all of its body: servers may keep the connection open although they are asked to close it.
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|w| w == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let body = answer.get(end + 4..).unwrap_or_default();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length:")).and_then(|l| l.trim().parse::<usize>().ok());
    match length {
        Some(length) => body.len() >= length,
        None if head.contains("transfer-encoding: chunked") => body.ends_with(b"0\r\n\r\n"),
        None => head.split_whitespace().nth(1).is_some_and(|status| matches!(status, "204" | "304")),
    }
}

fn parse(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(answer.get(..end)?).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split_whitespace().nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines.filter_map(|l| l.split_once(':')).map(|(n, v)| (n.to_owned(), v.trim().to_owned())).collect();
    let body = answer.get(end + 4..)?;
    let chunked = headers.iter().any(|(n, v)| n.eq_ignore_ascii_case("transfer-encoding") && v.eq_ignore_ascii_case("chunked"));
    Some(Response { status, headers, body: if chunked { joined(body) } else { body.to_vec() } })
}

/// The chunks of a body, joined.
fn joined(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = rest.get(..end).and_then(|s| std::str::from_utf8(s).ok()).and_then(|s| usize::from_str_radix(s.trim(), 16).ok());
        let Some(chunk) = size.filter(|s| *s > 0).and_then(|s| rest.get(end + 2..end + 2 + s)) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + chunk.len()..).unwrap_or_default();
    }
    body
}
