//! Start and end of the server.

use super::auth::Gate;
use super::connection::Bounded;
use super::database::{Databases, Files};
use super::health::HealthCheck;
use super::http::{self, Figures, Server};
use super::memory::Memory;
use super::metrics::Metrics;
use super::options::{Options, Settings};
use super::storage::folder_of;
use super::system::{Hangups, StopSignals, other_owner};
use super::thread::{Pool, Setup};
use super::{log, maintenance, page, sample};
use crate::terminal::print_line;
use anyhow::{Context, anyhow};
use aqlite::service::Auth;
use aqlite::service::deployment::Deployment;
use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::io::IsTerminal as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{JoinHandle, available_parallelism};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::LocalSet;

/// The time that running requests have after a signal to stop.
const GRACE: Duration = Duration::from_secs(30);

/// The time within which a client must send the headers of a request. Of a new connection, it is
/// also the time from the connection, and the handshake of TLS, to its first bytes.
const HEADERS_TIME: Duration = Duration::from_secs(20);

/// Bytes of the headers of a request.
const HEADERS_BYTES: u32 = 65_536;

/// Headers of a request.
pub const HEADERS: usize = 100;

/// Requests of one HTTP/2 connection at a time.
const STREAMS: u32 = 128;

/// Serves a repository until a signal to stop.
///
/// # Errors
/// If the configuration is invalid, or a file or an address cannot be used.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let settings = options.settings()?;
    let _log = log::start(options.log);
    // Fails only if a provider is installed already, which is then used.
    drop(rustls::crypto::ring::default_provider().install_default());
    let files = Files::beside(&options.db)?;
    warn_root(&files);
    let lock = files.lock()?;
    let metrics = Arc::new(Metrics::new());
    let cores = available_parallelism().map_or(1, usize::from);
    let threads = options.threads.map_or(cores, usize::from);
    let memory = Memory::divide(options.memory, threads);
    let (databases, writers) = Databases::open(files, &metrics, &memory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("http")
        .build()?;
    let service = ServiceThreads { threads, memory };
    let served = runtime.block_on(serve(options, settings, databases, metrics, service));
    // The writers end when all that could write has ended. Their last step writes the log back.
    writers.into_iter().for_each(join);
    drop(lock);
    served
}

/// Warns if root serves a repository in the folder of another user.
fn warn_root(files: &Files) {
    let folder = folder_of(&files.database);
    if let Some(owner) = other_owner(folder) {
        let (user, folder) = (owner.user, folder.display());
        print_line!(
            "warning: root serves files in a folder of user {user}, who cannot open those that it creates: run `chown -R \
             --reference={folder} {folder}`, and serve them as that user"
        );
    }
}

fn join(thread: JoinHandle<()>) {
    // A thread that panicked has ended, which is all that is awaited here.
    drop(thread.join());
}

/// The number of service threads, and their memory.
struct ServiceThreads {
    threads: usize,
    memory: Memory,
}

/// Starts all threads but the writers, serves, and waits for their end.
async fn serve(
    options: &Options,
    settings: Settings,
    databases: Databases,
    metrics: Arc<Metrics>,
    service: ServiceThreads,
) -> anyhow::Result<()> {
    if !settings.names_system {
        databases.check_default_system(&settings.deployment.config.system_id)?;
    }
    let listener = TcpListener::bind(options.listen)
        .with_context(|| format!("cannot listen on {}", options.listen))?;
    let address = listener.local_addr()?;
    let Deployment {
        config,
        authenticator,
        ..
    } = settings.deployment;
    if options.sample {
        let loaded = LocalSet::new()
            .run_until(sample::load(&databases, &config.system_id))
            .await?;
        print_line!("{loaded}");
    }
    let auth = config.auth;
    let gate = match auth {
        Auth::Known => Some(Gate::start(authenticator)?),
        Auth::Refuse | Auth::Open => None,
    };
    let setup = Setup {
        config,
        gate,
        terminology: settings.terminology,
        health: HealthCheck::new(databases.files().clone()),
        databases,
        metrics: Arc::clone(&metrics),
        memory: service.memory,
    };
    let (pool, threads) = Pool::start(service.threads, &setup)?;
    let (stop, stopped) = watch::channel(false);
    let (databases, metrics) = (setup.databases, setup.metrics);
    let files = databases.files().clone();
    let maintenance =
        maintenance::start(databases, Arc::clone(&metrics), settings.retention, stopped)?;
    let server = Server {
        pool,
        metrics: Arc::clone(&metrics),
        scheme: if options.tls_cert.is_some() {
            "https"
        } else {
            "http"
        },
        is_behind_proxy: options.behind_proxy,
    };
    if let Some(address) = options.metrics {
        serve_metrics(address, Figures { metrics, files }).await?;
    }
    // Before the address is printed: a manager that reads it may stop the server at once.
    let signals = StopSignals::new()?;
    // Without a certificate, a closed terminal ends the server.
    let receives_hangups = options.tls_cert.is_some() || !std::io::stdin().is_terminal();
    let hangups = receives_hangups.then(Hangups::new).transpose()?;
    greet(&server, address, auth);
    let routes = http::routes(server);
    let served = listen(options, (listener, signals, hangups), routes).await;
    // Receivers that are gone need no signal.
    let _ = stop.send(true);
    tokio::task::spawn_blocking(move || {
        threads.into_iter().for_each(join);
        join(maintenance);
    })
    .await?;
    served
}

/// Prints the address and the state of access control.
fn greet(server: &Server, address: SocketAddr, auth: Auth) {
    print_line!("aqlite listens on {}://{address}", server.scheme);
    if !page::is_embedded() {
        print_line!(
            "without the page: it was not built before the program (`cargo xtask build` builds it)"
        );
    }
    match auth {
        Auth::Refuse => print_line!(
            "closed: only OPTIONS and health are answered; set AUTH (docs/security.md), or try it out with `--open`"
        ),
        Auth::Open => print_line!("open: every program of this machine has access with every role"),
        Auth::Known => {}
    }
}

async fn serve_metrics(address: SocketAddr, figures: Figures) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    print_line!("metrics on http://{}/metrics", listener.local_addr()?);
    let routes = http::metrics_routes(figures);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            log::problem("metrics", &error);
        }
    });
    Ok(())
}

/// Accepts connections until a signal to stop, and then waits for the running requests.
async fn listen(
    options: &Options,
    (listener, signals, hangups): (TcpListener, StopSignals, Option<Hangups>),
    routes: Router,
) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let handle = Handle::new();
    let stopping = tokio::spawn(stop(signals, handle.clone()));
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    let served = match (&options.tls_cert, &options.tls_key) {
        (Some(cert), Some(key)) => {
            let tls = tls_of(cert, key).await?;
            tokio::spawn(reload(hangups, tls.clone(), cert.clone(), key.clone()));
            let server = axum_server::from_tcp_rustls(listener, tls)?.handle(handle);
            let mut server = server.map(|inner| Bounded::new(inner, HEADERS_TIME));
            bound(server.http_builder());
            server.serve(service).await
        }
        _ => {
            tokio::spawn(survive(hangups));
            let server = axum_server::from_tcp(listener)?.handle(handle);
            let mut server = server.map(|inner| Bounded::new(inner, HEADERS_TIME));
            bound(server.http_builder());
            server.serve(service).await
        }
    };
    stopping.abort();
    Ok(served?)
}

/// Reads the certificate and its key.
async fn tls_of(cert: &Path, key: &Path) -> anyhow::Result<RustlsConfig> {
    RustlsConfig::from_pem_file(cert, key)
        .await
        .map_err(|error| anyhow!("{} or {}: {error}", cert.display(), key.display()))
}

/// Sets the limits of headers and connections.
fn bound(builder: &mut Builder<TokioExecutor>) {
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIME)
        .max_buf_size(HEADERS_BYTES as usize)
        .max_headers(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEADERS_BYTES)
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(HEADERS_TIME);
}

/// Waits for a signal to stop, and stops the server.
async fn stop(signals: StopSignals, handle: Handle<SocketAddr>) -> std::io::Result<()> {
    signals.received().await?;
    log::action("stopping");
    handle.graceful_shutdown(Some(GRACE));
    Ok(())
}

/// Reads certificate and key again at each SIGHUP.
async fn reload(hangups: Option<Hangups>, tls: RustlsConfig, cert: PathBuf, key: PathBuf) {
    let Some(mut hangups) = hangups else { return };
    while hangups.next().await {
        match tls.reload_from_pem_file(&cert, &key).await {
            Ok(()) => log::action("certificate read again"),
            Err(error) => log::problem("certificate", &error),
        }
    }
}

/// Resolves at each SIGHUP, with which a service manager asks to read files again. Without a
/// certificate there are none.
async fn survive(hangups: Option<Hangups>) {
    let Some(mut hangups) = hangups else { return };
    while hangups.next().await {
        log::action("nothing to read again: there is no certificate");
    }
}
