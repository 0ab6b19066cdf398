//! The maintenance thread: compaction of segments while the server runs, and the work of a night.

use super::database::Databases;
use super::environment::{Machine, now};
use super::log;
use super::metrics::Metrics;
use super::sqlite::Sqlite;
use aqlite::service::{self, Environment};
use aqlite::store::repository::StoreError;
use aqlite::store::sql::{CompactionHost, SqlRepository};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::sync::watch;

/// The time between two checks whether segments are due.
const PERIOD: Duration = Duration::from_secs(2);

/// The time between two compactions while others write. A longer one makes fewer segments, which
/// are merged less often.
const BUSY_PERIOD: Duration = Duration::from_secs(10);

/// Versions written in a [`PERIOD`] from which the writing is a load: 2,000 a second.
const LOAD: u64 = 4_000;

/// Versions that wait for a segment during a load. Compaction takes as much work as a third of the
/// load, so it begins when there are enough for three segments of the largest size, or at the end of
/// the load. Population queries read the rows of these versions meanwhile.
const LOAD_WAITING: u64 = 98_304;

/// Milliseconds after which no further segment of one check is begun.
const AT_ONCE: u64 = 20_000;

/// The same of the work of a night.
const AT_NIGHT: u64 = 120_000;

/// Steps of a night that remove old records of the access log, of some thousands each.
const NIGHTLY_STEPS: usize = 50;

/// Microseconds of a day, and the time of the nightly work in it: 03:17 UTC, as the worker has.
const DAY: i64 = 86_400_000_000;
const NIGHT: i64 = (3 * 60 + 17) * 60_000_000;

/// Starts the thread. It ends when `stop` changes or its sender is dropped, between two segments.
///
/// # Errors
/// If the thread cannot be started.
pub fn start(
    databases: Databases,
    metrics: Arc<Metrics>,
    retention: u32,
    stop: watch::Receiver<bool>,
) -> std::io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let work = move || match databases.connect() {
        Ok(connections) => {
            let repository = connections.repository();
            // Dropped, so that the writers end when the service threads have ended.
            drop(databases);
            runtime.block_on(run(&repository, &metrics, retention, stop));
        }
        Err(error) => log::problem("maintenance thread", &error),
    };
    thread::Builder::new()
        .name("maintenance".into())
        .spawn(work)
}

async fn run(
    repository: &SqlRepository<Sqlite>,
    metrics: &Metrics,
    retention: u32,
    mut stop: watch::Receiver<bool>,
) {
    // Different from every count, so that the first check compacts.
    let (mut seen, mut night) = (None, next_night(now()));
    let mut pace = Pace {
        batches: metrics.batches(),
        waiting: 0,
        compacted: Instant::now(),
    };
    while tokio::time::timeout(PERIOD, stop.changed()).await.is_err() {
        let batches = metrics.batches();
        // A failure is reported by the compaction, which reads the same tables.
        let waiting = repository.waiting_versions().await.unwrap_or_default();
        // Without a write since the last compaction, no segment can have become due.
        if pace.is_due(batches, waiting, Instant::now()) && seen != Some(batches) {
            match compact(repository, AT_ONCE).await {
                Ok(()) => metrics.record_compaction(),
                Err(error) => log::problem("compaction", &error),
            }
            (seen, pace.compacted) = (Some(batches), Instant::now());
        }
        if now() >= night {
            // Set before the work, so that a night that fails is not repeated at once.
            night = next_night(now());
            maintain(repository, retention).await;
        }
    }
}

/// The state of the last check, by which the pace of the writers is known.
struct Pace {
    /// Batches that wrote.
    batches: u64,
    /// Versions that waited for a segment.
    waiting: u64,
    /// The end of the last compaction.
    compacted: Instant,
}

impl Pace {
    /// Records a check, and returns whether segments are to be written.
    fn is_due(&mut self, batches: u64, waiting: u64, now: Instant) -> bool {
        let written = waiting.saturating_sub(std::mem::replace(&mut self.waiting, waiting));
        // Nothing was written since the last check, so compaction disturbs no writer.
        let is_quiet = std::mem::replace(&mut self.batches, batches) == batches;
        is_quiet
            || match written >= LOAD {
                true => waiting >= LOAD_WAITING,
                false => now.duration_since(self.compacted) >= BUSY_PERIOD,
            }
    }
}

/// Returns the time of the next night after a time.
fn next_night(now: i64) -> i64 {
    // The number of whole nights since 1970, plus one.
    (now - NIGHT).div_euclid(DAY) * DAY + DAY + NIGHT
}

async fn maintain(repository: &SqlRepository<Sqlite>, retention: u32) {
    let before = service::days_before(now(), retention);
    let removed = repository.maintain(&before, retention, NIGHTLY_STEPS).await;
    let absent = |blob: &str| log::problem("segment that is absent", &blob);
    let renewed = repository.renew_segments(AT_NIGHT, &HOST, absent).await;
    match removed.and(renewed) {
        Ok(()) => log::action("maintenance"),
        Err(error) => log::problem("maintenance", &error),
    }
}

/// Writes segments until none is due. Begins none after `milliseconds` have passed.
pub async fn compact(
    repository: &SqlRepository<Sqlite>,
    milliseconds: u64,
) -> Result<(), StoreError> {
    repository.compact_for(milliseconds, &HOST).await
}

const HOST: CompactionHost<'static> = CompactionHost {
    blob: &|| Machine.new_uuid(),
    now: &|| u64::try_from(now() / 1_000).unwrap_or_default(),
    pause: &|| Machine.pause(),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_waits_for_the_end_of_a_load_or_for_many_versions() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pace = Pace {
            batches: 0,
            waiting: 0,
            compacted: start,
        };
        assert!(pace.is_due(0, 0, at(2)), "nothing is written");
        assert!(!pace.is_due(1, 100, at(4)), "others write");
        assert!(pace.is_due(2, 200, at(10)), "for a long time");
        assert!(!pace.is_due(3, 200 + LOAD, at(12)), "a load");
        assert!(pace.is_due(4, LOAD_WAITING, at(14)), "that is long");
        pace.compacted = at(15);
        assert!(!pace.is_due(5, LOAD, at(16)), "after a compaction");
        assert!(pace.is_due(5, LOAD, at(18)), "the load is over");
    }

    #[test]
    fn night_is_the_next_seventeen_minutes_past_three() {
        assert_eq!(next_night(0), NIGHT);
        assert_eq!(next_night(NIGHT - 1), NIGHT);
        assert_eq!(next_night(NIGHT), NIGHT + DAY);
        assert_eq!(next_night(5 * DAY + NIGHT + 1), 6 * DAY + NIGHT);
    }
}
