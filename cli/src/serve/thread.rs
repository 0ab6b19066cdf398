//! Service threads. Each has a service with its caches, a connection to the database that reads, and
//! a runtime of one thread: the service shares its data by `Rc`.

use super::auth::Gate;
use super::database::{Connections, Databases};
use super::environment;
use super::health::HealthCheck;
use super::memory::Memory;
use super::metrics::Metrics;
use super::parts::PartJob;
use super::query_threads::{OtherThreads, QueryJob};
use super::request;
use super::sqlite::Sqlite;
use super::terminology::FhirServer;
use anyhow::Context;
use aqlite::service::{Admission, Config, Permit, Request, Service, Work};
use aqlite::store::sql::SqlRepository;
use axum::body::Body;
use axum::response::Response;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};

/// Requests that a service thread holds, working or waiting. Further ones are refused.
const HELD: usize = 1_024;

/// The longest time between two checks of a waiting request. It checks earlier if another one ends.
const PAUSE: Duration = Duration::from_millis(10);

/// The configuration of all service threads.
#[derive(Clone)]
pub struct Setup {
    /// The configuration of the service.
    pub config: Config,
    /// The authentication; `None` if no caller is authenticated.
    pub gate: Option<Gate>,
    /// The base URL of a terminology server.
    pub terminology: Option<String>,
    /// The databases.
    pub databases: Databases,
    /// The health check of the databases.
    pub health: HealthCheck,
    /// The figures.
    pub metrics: Arc<Metrics>,
    /// The memory of the server.
    pub memory: Memory,
}

/// Work on its way to a service thread.
pub enum Job {
    /// A request.
    Request(RequestJob),
    /// A part of the body of a request that another service thread, or the same one, answers.
    Part(PartJob),
    /// A part of the documents of a population query that another service thread answers.
    Query(QueryJob),
}

/// A request on its way to a service thread.
pub struct RequestJob {
    /// The request without its body.
    pub head: Request,
    /// The body, if there is one.
    pub body: Option<Body>,
    /// The arrival of the headers.
    pub started: Instant,
    /// Whether the connection has other requests at the same time, as in HTTP/2.
    pub is_multiplexed: bool,
    /// The place of the answer.
    pub answer: oneshot::Sender<Response>,
}

/// A place among the requests that a service thread holds. Dropping it frees the place.
pub struct Held(Arc<AtomicUsize>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The service threads of a server.
#[derive(Clone)]
pub struct Pool {
    handles: Arc<[Handle<mpsc::Sender<Job>>]>,
    /// The number of requests that were sent. It chooses among threads with equally many requests.
    sent: Arc<AtomicUsize>,
}

/// A service thread as others see it.
struct Handle<S> {
    jobs: S,
    /// Its requests, working or waiting.
    active: Arc<AtomicUsize>,
}

/// The service threads as one of them sees them. They end while peers are held: only a [`Pool`]
/// keeps them running.
#[derive(Clone)]
pub struct Peers {
    handles: Arc<[Handle<mpsc::WeakSender<Job>>]>,
    /// The number of jobs that were sent. It chooses among threads with equally many requests.
    sent: Arc<AtomicUsize>,
}

/// Returns the handle with the fewest requests. Of several ones, threads take turns: `sent` is the
/// number of choices before this one.
fn least_busy<S>(handles: &[Handle<S>], sent: usize) -> Option<&Handle<S>> {
    let first = sent % handles.len().max(1);
    let (before, from_first) = handles.split_at_checked(first).unwrap_or_default();
    // The first of several minima is taken.
    let ordered = from_first.iter().chain(before);
    ordered.min_by_key(|handle| handle.active.load(Ordering::Relaxed))
}

impl Peers {
    /// Sends a job to the thread with the fewest requests. Returns false if that thread is full or
    /// has ended.
    #[must_use]
    pub fn send(&self, job: Job) -> bool {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        least_busy(&self.handles, sent).is_some_and(|handle| handle.send(job))
    }

    /// Returns the numbers of the threads without a request, ascending.
    pub fn idle(&self) -> impl Iterator<Item = usize> {
        let numbered = self.handles.iter().enumerate();
        numbered.filter_map(|(number, handle)| {
            let is_idle = handle.active.load(Ordering::Relaxed) == 0;
            is_idle.then_some(number)
        })
    }

    /// Sends a job to a thread. Returns false if that thread is full or has ended.
    #[must_use]
    pub fn send_to(&self, number: usize, job: Job) -> bool {
        let handle = self.handles.get(number);
        handle.is_some_and(|handle| handle.send(job))
    }
}

impl Handle<mpsc::WeakSender<Job>> {
    /// Sends a job. Returns false if the thread is full or has ended.
    fn send(&self, job: Job) -> bool {
        let jobs = self.jobs.upgrade();
        jobs.is_some_and(|jobs| enqueue(&jobs, &self.active, job))
    }
}

/// Sends a job, and counts it as a request of its thread.
fn enqueue(jobs: &mpsc::Sender<Job>, active: &AtomicUsize, job: Job) -> bool {
    // Counted before sending: the thread may subtract it before `try_send` returns. The number
    // guards no other data, so no stronger ordering is needed.
    let held = active.fetch_add(1, Ordering::Relaxed);
    let is_sent = held < HELD && jobs.try_send(job).is_ok();
    if !is_sent {
        active.fetch_sub(1, Ordering::Relaxed);
    }
    is_sent
}

impl Pool {
    /// Starts service threads. They end when all clones are dropped and their requests are
    /// answered.
    ///
    /// # Errors
    /// If a database cannot be opened or a thread cannot be started.
    pub fn start(count: usize, setup: &Setup) -> anyhow::Result<(Pool, Vec<JoinHandle<()>>)> {
        // The channel never fills: a thread that holds as many requests is sent no more.
        let channels: Vec<_> = (0..count.max(1)).map(|_| mpsc::channel(HELD)).collect();
        let (senders, receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
        let handle = |jobs| Handle {
            jobs,
            active: Arc::default(),
        };
        let handles: Arc<[Handle<mpsc::Sender<Job>>]> = senders.into_iter().map(handle).collect();
        let peer = |handle: &Handle<mpsc::Sender<Job>>| Handle {
            // A strong sender in each thread would keep the channels of all threads open, and no
            // thread would end.
            jobs: handle.jobs.downgrade(),
            active: Arc::clone(&handle.active),
        };
        let peers = Peers {
            handles: handles.iter().map(peer).collect(),
            sent: Arc::default(),
        };
        let mut threads = Vec::new();
        for (number, (received, handle)) in receivers.into_iter().zip(handles.iter()).enumerate() {
            let active = Arc::clone(&handle.active);
            let setup = setup.clone();
            let peers = OtherThreads {
                own: number,
                peers: peers.clone(),
            };
            // Each thread has files of its own open, and the system limits those of a process.
            let started = start(setup, received, active, peers);
            threads.push(started.with_context(|| {
                let number = number + 1;
                format!("service thread {number} of {count}: name fewer by --threads, or let the process open more files")
            })?);
        }
        let pool = Pool {
            handles,
            sent: Arc::default(),
        };
        Ok((pool, threads))
    }

    /// Returns whether a thread can hold one more request.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let mut handles = self.handles.iter();
        handles.any(|handle| handle.active.load(Ordering::Relaxed) < HELD)
    }

    /// Sends a request to the thread with the fewest requests. Returns false if that thread is full.
    #[must_use]
    pub fn send(&self, job: Job) -> bool {
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        let Some(handle) = least_busy(&self.handles, sent) else {
            return false;
        };
        enqueue(&handle.jobs, &handle.active, job)
    }
}

fn start(
    setup: Setup,
    received: mpsc::Receiver<Job>,
    active: Arc<AtomicUsize>,
    others: OtherThreads,
) -> anyhow::Result<JoinHandle<()>> {
    // Opened here, so that a failure ends the start of the server.
    drop(setup.databases.connect()?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let thread = thread::Builder::new().name(format!("service-{}", others.own));
    Ok(thread.spawn(move || {
        LocalSet::new().block_on(&runtime, run(setup, received, active, others));
    })?)
}

async fn run(
    setup: Setup,
    mut jobs: mpsc::Receiver<Job>,
    active: Arc<AtomicUsize>,
    others: OtherThreads,
) {
    let thread = match ServiceThread::open(setup, others) {
        Ok(thread) => Rc::new(thread),
        Err(error) => return super::log::problem("service thread", &error),
    };
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            // Finished tasks are removed, so that the set does not grow.
            Some(_) = running.join_next() => {}
            job = jobs.recv() => {
                let Some(job) = job else { break };
                let (thread, held) = (Rc::clone(&thread), Held(Arc::clone(&active)));
                running.spawn_local(async move {
                    match job {
                        Job::Request(job) => {
                            thread.metrics.begin_request();
                            request::answer(Rc::clone(&thread), job, held).await;
                            thread.metrics.end_request();
                        }
                        Job::Part(job) => job.answer(&thread).await,
                        Job::Query(job) => job.answer(&thread).await,
                    }
                });
            }
        }
    }
    // The pool was dropped. Requests in progress are still answered.
    while running.join_next().await.is_some() {}
}

/// The state of a service thread.
pub struct ServiceThread {
    /// The service.
    pub service: Service<SqlRepository<Sqlite>>,
    /// The authentication; `None` if no caller is authenticated.
    pub gate: Option<Gate>,
    /// The health check of the databases.
    pub health: HealthCheck,
    /// The figures.
    pub metrics: Arc<Metrics>,
    /// All service threads, which share the parts of long bodies.
    pub peers: Peers,
    /// Parts of one load in progress.
    pub load_parts: usize,
    connections: Connections,
    admission: Admission,
    /// Notified when a permit is returned.
    freed: Notify,
}

impl ServiceThread {
    fn open(setup: Setup, others: OtherThreads) -> rusqlite::Result<ServiceThread> {
        let connections = setup.databases.connect()?;
        let shared = &setup.memory.shared;
        let admission = shared.admission(setup.config.limits.concurrency);
        let peers = others.peers.clone();
        let config = Config {
            compiled_bytes: setup.memory.compiled,
            ..setup.config
        };
        let service = Service::new(connections.repository(), config).with_memory(shared);
        let service = service.with_threads(Box::new(others));
        let service = match setup.terminology {
            Some(base) => service.with_terminology(Box::new(FhirServer::new(&base))),
            None => service,
        };
        Ok(ServiceThread {
            service,
            gate: setup.gate,
            health: setup.health,
            metrics: setup.metrics,
            peers,
            load_parts: setup.memory.load_parts,
            connections,
            admission,
            freed: Notify::new(),
        })
    }

    /// Returns a permit for work of a caller, or `None` if none is free in time.
    pub async fn permit(&self, key: &str, work: Work, is_begun: bool) -> Option<Permit> {
        let permit = self.admission.enter(key, work, environment::now())?;
        let until = environment::now() + work.patience(is_begun);
        loop {
            // Created before the check, so that a permit that is returned in between is noticed.
            let freed = self.freed.notified();
            if permit.renew(environment::now()).is_admitted() {
                return Some(permit);
            }
            if environment::now() > until {
                return None;
            }
            // The time passes without a notification: only the clock shows an expired lease.
            drop(tokio::time::timeout(PAUSE, freed).await);
        }
    }

    /// Returns a permit, and lets waiting requests check theirs.
    pub fn return_permit(&self, permit: Option<Permit>) {
        if permit.is_some() {
            drop(permit);
            self.freed.notify_waiters();
        }
    }

    /// Writes segments that cannot be read again. Only the thread whose queries found them
    /// unreadable knows them; all other compaction is done by the maintenance thread.
    pub async fn replace_lost_segments(&self) {
        let lost = self.connections.segments().lost();
        if lost.is_empty() {
            return;
        }
        for blob in lost {
            super::log::problem("segment that cannot be read", &blob);
        }
        if let Err(error) = super::maintenance::compact(&self.connections.repository(), 1).await {
            super::log::problem("compaction", &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_holds_a_limited_number_of_requests() {
        let (jobs, mut received) = mpsc::channel(HELD);
        let active = Arc::default();
        let job = || {
            let (answer, _) = oneshot::channel();
            Job::Request(RequestJob {
                head: Request::new("GET", "/v1/ehr"),
                body: None,
                started: Instant::now(),
                is_multiplexed: false,
                answer,
            })
        };
        let mut held = Vec::new();
        for _ in 0..HELD {
            assert!(enqueue(&jobs, &active, job()));
            // The thread takes each request from the channel at once.
            assert!(received.try_recv().is_ok());
            held.push(Held(Arc::clone(&active)));
        }
        assert!(!enqueue(&jobs, &active, job()));
        held.pop();
        assert!(enqueue(&jobs, &active, job()));
    }
}
