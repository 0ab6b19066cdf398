//! `aqlite serve`: the REST service and the page on one machine, over SQLite.
//!
//! It is a host like the worker, and has no domain logic.
//!
//! | step | file |
//! |---|---|
//! | arguments and variables → configuration | `options` |
//! | files, migrations, connections | `database` |
//! | statements of the core → SQLite; writes in groups | `sqlite`, `writer` |
//! | segments as files; compaction, nightly work | `blobs`, `maintenance` |
//! | memory for each thread, and for all | `memory` |
//! | connections → requests; the page | `server`, `connection`, `http`, `page` |
//! | requests → service threads | `thread` |
//! | population queries → parts for idle service threads | `query_threads` |
//! | authentication, admission, body, answer | `auth`, `request`, `body`, `parts`, `sending`, `environment` |
//! | other servers | `fetch`, `terminology` |
//! | log lines, figures, health | `log`, `metrics`, `storage`, `health` |
//! | signals, folders, owners of files | `system` |
//! | copies of a repository; loads | `backup`, `load`, `http_client` |
//!
//! # Threads
//!
//! Connections belong to a runtime of several threads. It sends each request to the service thread
//! with the fewest requests. A service thread reads the database itself, and sends what writes to
//! the one thread that writes. `ARCHITECTURE.md` has the rules.

mod auth;
pub mod backup;
mod blobs;
mod body;
mod connection;
pub mod database;
mod environment;
mod fetch;
mod health;
mod http;
mod http_client;
pub mod load;
mod log;
mod maintenance;
mod memory;
mod metrics;
mod options;
mod page;
mod parts;
mod query_threads;
mod request;
mod sample;
mod sending;
mod server;
pub mod sqlite;
mod storage;
pub mod system;
mod terminology;
mod thread;
mod writer;

pub use options::Options;
pub use server::run;

/// The database if none is named.
const DATABASE: &str = "aqlite.db";
