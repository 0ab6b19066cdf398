//! The arguments and variables of `aqlite serve`.

use super::log::LogLevel;
use super::{memory, page};
use anyhow::{bail, ensure};
use aqlite::service::deployment::{self, Deployment, Variables};
use aqlite::service::{Auth, Config, LoadSizes};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The examples of the help.
const EXAMPLES: &str = "\
Examples:
  Try it out, with sample data: the page and the REST interface on http://127.0.0.1:8080
    aqlite serve --open --sample

  Serve a repository behind a proxy, to callers with tokens of an issuer:
    SYSTEM_ID=cdr.example.org HOSTS=cdr.example.org AUTH=jwt JWT_ISSUER=https://id.example.org \\
    JWT_AUDIENCE=cdr JWT_KEYS=https://id.example.org/certs \\
    aqlite serve --db /var/lib/aqlite/aqlite.db --behind-proxy --metrics 127.0.0.1:9464

Variables of the environment:
  AUTH       who may call: none (as --open), basic, jwt or access; without it only OPTIONS and health are answered
  SYSTEM_ID  the creating system in the uid of each version; choose it before the first document
  HOSTS      the host names of the service; requests to other hosts are refused
  BASE_URL   scheme and host in the addresses of answers, if a proxy changes them
  ORIGINS    the origins of other pages that may call the service
  ADMIN      true opens deletion, loading, export, import and reset to the role admin
docs/deploy.md has all variables, docs/security.md access control and limits.

The page is at /, and the interface at /rest/openehr/v1 (openEHR ITS-REST) and /v1. /openapi.json describes it.
A program of `cargo install` has no page. SIGTERM and Ctrl-C finish the running requests and end the server.";

/// The arguments of `aqlite serve`. Access control, limits and the system id are variables of the
/// environment, the same as those of the worker: see docs/deploy.md and docs/security.md.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The database file; created if it does not exist
    #[arg(long, value_name = "FILE", default_value = super::DATABASE)]
    pub db: PathBuf,
    /// The address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Accept all callers, on a loopback address only (AUTH=none)
    #[arg(long)]
    pub open: bool,
    /// Load sample data into an empty repository
    #[arg(long)]
    pub sample: bool,
    /// The number of service threads; the number of processors if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// The memory that caches, queries and long texts take together, such as 512M or 4G
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = memory::parse)]
    pub memory: usize,
    /// The certificates of the server as PEM, its own first
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the server as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Take the address of a client from the last X-Forwarded-For, which a proxy must set; not with AUTH=none
    #[arg(long)]
    pub behind_proxy: bool,
    /// Answer /metrics for Prometheus at a second address
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<SocketAddr>,
    /// The lines of the log on standard error
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: LogLevel,
}

/// The sizes of the pieces of a load. A thread of its own writes, so a transaction delays other
/// writers only: one of 4 MB by about 20 ms. It is long compared with its fsync, and many of its
/// rows share the pages that it writes.
const LOAD: LoadSizes = LoadSizes {
    part: 4_000_000,
    lines: 4_000,
    commits: 4_000,
    bytes: 8_000_000,
};

/// The description of the interface for people, where the page with `api.html` is absent.
const DOCUMENTATION: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/rest.md");

/// The configuration that arguments and variables describe.
pub struct Settings {
    /// Configuration of the service and of authentication.
    pub deployment: Deployment,
    /// Whether the variable SYSTEM_ID is set.
    pub names_system: bool,
    /// The base URL of a terminology server.
    pub terminology: Option<String>,
    /// The retention of the access log in days.
    pub retention: u32,
}

impl Options {
    /// Reads the variables of the environment.
    ///
    /// # Errors
    /// If a variable is invalid, or the service would be open to other machines.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        self.settings_of(&|name| std::env::var(name).ok())
    }

    fn settings_of(&self, lookup: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Settings> {
        let given = Variables::new(lookup).text("AUTH");
        let is_other = |auth: &String| self.open && auth.trim() != "none";
        if let Some(auth) = given.filter(is_other) {
            bail!("`--open` and AUTH={auth} contradict each other: remove one of them");
        }
        let lookup = |name: &str| match name {
            "AUTH" if self.open => Some(String::from("none")),
            _ => lookup(name),
        };
        let variables = Variables::new(&lookup);
        let read = deployment::read(&variables);
        if let Some(problem) = read.problem {
            bail!(problem);
        }
        ensure!(
            read.config.auth != Auth::Open || self.listen.ip().is_loopback(),
            "an open service (`--open`, AUTH=none) listens on a loopback address only, such as 127.0.0.1:8080; {} can be \
             reached by other machines: configure AUTH, see docs/security.md",
            self.listen
        );
        ensure!(
            read.config.auth != Auth::Open || !self.behind_proxy,
            "an open service (`--open`, AUTH=none) cannot be behind a proxy, which would open it to other machines: \
             configure AUTH, see docs/security.md, or remove `--behind-proxy`"
        );
        let config = Config {
            load_sizes: LOAD,
            documentation: match page::is_embedded() {
                true => String::new(),
                false => String::from(DOCUMENTATION),
            },
            ..read.config
        };
        Ok(Settings {
            names_system: variables.text("SYSTEM_ID").is_some(),
            terminology: variables.text("TERMINOLOGY_URL"),
            retention: deployment::retention(&variables).map_err(anyhow::Error::msg)?,
            deployment: Deployment {
                problem: None,
                config,
                ..read
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        options: Options,
    }

    fn auth(arguments: &[&str], auth: Option<&str>) -> Result<Auth, String> {
        let arguments = [&["aqlite"], arguments].concat();
        let options = Program::parse_from(arguments).options;
        let lookup = |name: &str| auth.filter(|_| name == "AUTH").map(str::to_owned);
        let settings = options.settings_of(&lookup);
        let auth = settings.map(|settings| settings.deployment.config.auth);
        auth.map_err(|error| error.to_string())
    }

    #[test]
    fn service_is_closed_unless_it_is_configured() {
        assert_eq!(auth(&[], None), Ok(Auth::Refuse));
        assert_eq!(auth(&["--open"], None), Ok(Auth::Open));
        assert_eq!(auth(&[], Some("none")), Ok(Auth::Open));
        assert_eq!(
            auth(&["--open", "--listen", "[::1]:80"], None),
            Ok(Auth::Open)
        );
    }

    #[test]
    fn open_service_listens_on_loopback_only() {
        for (arguments, variable) in [
            (&["--open", "--listen", "0.0.0.0:8080"][..], None),
            (&["--listen", "192.0.2.1:80"], Some("none")),
        ] {
            let error = auth(arguments, variable).unwrap_err();
            assert!(error.contains("loopback address only"), "{error}");
        }
    }

    #[test]
    fn open_service_is_not_behind_a_proxy() {
        for (arguments, variable) in [
            (&["--open", "--behind-proxy"][..], None),
            (&["--behind-proxy"], Some("none")),
        ] {
            let error = auth(arguments, variable).unwrap_err();
            assert!(error.contains("behind a proxy"), "{error}");
        }
        assert_eq!(auth(&["--behind-proxy"], None), Ok(Auth::Refuse));
    }

    #[test]
    fn number_of_threads_is_limited() {
        let parses = |n| Program::try_parse_from(["aqlite", "--threads", n]).is_ok();
        assert!(parses("1") && parses("1024"));
        assert!(!parses("0") && !parses("5000"));
    }

    #[test]
    fn invalid_or_contradictory_access_ends_the_program() {
        let error = auth(&["--open"], Some("jwt")).unwrap_err();
        assert!(error.contains("contradict"), "{error}");
        let error = auth(&[], Some("everyone")).unwrap_err();
        assert!(error.contains("`everyone`"), "{error}");
    }
}
