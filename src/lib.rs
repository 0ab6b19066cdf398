//! aqlite: an openEHR query (AQL) and decision support (GDL) core.
//!
//! [`service::Service`] is the REST interface without a network: it answers requests over a
//! repository, such as [`store::memory::Memory`]. Time and new identifiers are arguments. The
//! modules [`aql`], [`gdl`], [`template`] and [`rm`] work without a repository.
//!
//! # Examples
//!
//! A repository in memory, with one EHR and a query:
//!
//! ```
//! use aqlite::service::{Auth, Config, ReplayEnvironment, Request, Service};
//! use aqlite::store::{memory::Memory, ready::now_or_never};
//!
//! let service = Service::new(Memory::new(), Config { auth: Auth::Open, ..Config::default() });
//! let mut environment = ReplayEnvironment::new(1_700_000_000_000.0, "seed");
//! let mut send = |request: Request| {
//!     now_or_never(service.handle(&request, &mut environment)).expect("memory never waits")
//! };
//!
//! assert_eq!(send(Request::new("PUT", "/v1/ehr/7d44b88c-4199-4bad-97dc-d78268e01398")).status, 201);
//!
//! let query = "/v1/query/aql?q=SELECT%20e/ehr_id/value%20FROM%20EHR%20e";
//! let answer = send(Request::new("GET", query));
//! assert_eq!(answer.status, 200);
//! let text = String::from_utf8_lossy(&answer.body);
//! assert!(text.contains("7d44b88c-4199-4bad-97dc-d78268e01398"), "{text}");
//! ```
//!
//! # Features
//!
//! All three are enabled by default.
//!
//! | feature | adds | without it |
//! |---|---|---|
//! | `arrow` | results as Arrow streams and Parquet files, and the module `arrow` | these media types are answered with 406 |
//! | `gzip` | compressed bodies of requests | they are answered with 415 |
//! | `server` | bulk loads, the access log, results in parts, terminology servers | these routes and options are absent |

pub mod samples;
pub mod service;
pub mod store;

pub use aqlite_aql as aql;
#[cfg(feature = "arrow")]
pub use aqlite_arrow as arrow;
pub use aqlite_engine::document;
pub use aqlite_gdl as gdl;
pub use aqlite_rm as rm;
pub use aqlite_rm::diag;
pub use aqlite_template as template;

/// The example of README.md, compiled and run as documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The examples of docs/reference-model.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../docs/reference-model.md")]
struct ReferenceModel;

/// The examples of docs/guides.md, likewise. Blocks with `file=` are files of its commands.
#[cfg(doctest)]
#[allow(rustdoc::invalid_codeblock_attributes)]
#[doc = include_str!("../docs/guides.md")]
struct Guides;

/// The example of docs/simplified-formats.md, likewise.
#[cfg(doctest)]
#[doc = include_str!("../docs/simplified-formats.md")]
struct SimplifiedFormats;
