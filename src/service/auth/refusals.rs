//! Counts of requests that were rejected before authentication, and some complete records of them.
//!
//! Unauthenticated senders can send any number of such requests, so these must not fill the access
//! log. The counts are written at most once a minute, one record for each operation and status. The
//! store limits the records of a day: see [`MAX_RECORDS_OF_DAY`].

use super::super::Service;
use super::super::time::iso;
use crate::store::repository::{AccessRecord, Repository};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Microseconds between two writes of counts, and within which [`SAMPLES`] requests get complete
/// records.
const WINDOW: i64 = 60_000_000;
/// Requests of a window that get a record of their own.
const SAMPLES: u32 = 5;
/// The maximum number of pairs of operation and status that are counted separately.
const MAX_KINDS: usize = 20;
/// The maximum number of records of rejected requests in a day, of all instances together.
const MAX_RECORDS_OF_DAY: u64 = 5_000;
/// The name of further operations after the first [`MAX_KINDS`].
const OTHERS: &str = "others";

/// The counts that are not written yet. Its clones are the same counts: the services of a process
/// share them, so that one that is asked for the log writes the counts of all.
#[derive(Clone, Default)]
pub(crate) struct RefusalCounts(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    counts: BTreeMap<(String, u16), u64>,
    /// The time of the last write.
    written: i64,
    /// The window of the samples, and their number.
    window: i64,
    samples: u32,
}

impl RefusalCounts {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is complete before anything could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request without a record of its own.
    pub fn count(&self, operation: &str, status: u16) {
        self.add(operation, status, 1);
    }

    fn add(&self, operation: &str, status: u16, requests: u64) {
        let mut state = self.state();
        let known = state.counts.contains_key(&(operation.to_owned(), status));
        // The operations are patterns of the table of routes, but statuses multiply them.
        let operation = if known || state.counts.len() < MAX_KINDS {
            operation
        } else {
            OTHERS
        };
        let count = state
            .counts
            .entry((operation.to_owned(), status))
            .or_default();
        *count = count.saturating_add(requests);
    }

    /// Returns whether a request at this time gets a record of its own.
    fn is_sample(&self, now: i64) -> bool {
        let mut state = self.state();
        let window = now.div_euclid(WINDOW);
        if state.window != window {
            (state.window, state.samples) = (window, 0);
        }
        state.samples = state.samples.saturating_add(1);
        state.samples <= SAMPLES
    }

    /// Returns the records of the counts if it is time to write them, or in any case if `at_once`.
    fn due(&self, now: i64, at_once: bool) -> Vec<AccessRecord> {
        let mut state = self.state();
        if state.counts.is_empty() || !(at_once || now.saturating_sub(state.written) >= WINDOW) {
            return Vec::new();
        }
        state.written = now;
        let entry = |((operation, status), requests)| AccessRecord {
            time: iso(now),
            operation,
            status,
            refused: Some(requests),
            ..AccessRecord::default()
        };
        std::mem::take(&mut state.counts)
            .into_iter()
            .map(entry)
            .collect()
    }
}

impl<R: Repository> Service<R> {
    /// Records a request that was rejected before authentication. A failure of the log does not
    /// change the response, which has no data: the request is counted, and the count written later.
    pub(super) async fn record_refusal(&self, access: AccessRecord, now: i64) {
        // Written first, so that a count never includes a request of a later window.
        let mut entries = self.refusals.due(now, false);
        if self.refusals.is_sample(now) {
            entries.push(AccessRecord {
                refused: Some(1),
                ..access
            });
        } else {
            self.refusals.count(&access.operation, access.status);
        }
        self.write_refusals(entries, now).await;
    }

    /// Writes the counts if it is time to, or at once.
    pub(super) async fn flush_refusals(&self, now: i64, at_once: bool) {
        self.write_refusals(self.refusals.due(now, at_once), now)
            .await;
    }

    async fn write_refusals(&self, entries: Vec<AccessRecord>, now: i64) {
        let today = iso(now);
        let day = today.get(..10).unwrap_or_default();
        if !entries.is_empty()
            && self
                .repository
                .log_refused_accesses(&entries, day, MAX_RECORDS_OF_DAY)
                .await
                != Ok(true)
        {
            // The log failed, or has all records of this day: the counts are kept and written
            // later.
            entries.iter().for_each(|entry| {
                self.refusals
                    .add(&entry.operation, entry.status, entry.refused.unwrap_or(1))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Auth, Config, Environment, Request, SharedMemory};
    use super::super::{Caller, Denied};
    use super::*;
    use crate::store::memory::Memory;
    use crate::store::ready::now_or_never;
    use crate::store::repository::AccessFilter;

    /// A clock with a settable time.
    struct Clock(i64);

    impl Environment for Clock {
        fn now(&mut self) -> i64 {
            self.0
        }

        fn new_uuid(&mut self) -> String {
            String::from("00000000-0000-4000-8000-000000000001")
        }
    }

    struct Host(Service<Memory>, Clock);

    impl Host {
        fn new() -> Host {
            Host(
                Service::new(
                    Memory::new(),
                    Config {
                        auth: Auth::Known,
                        ..Config::default()
                    },
                ),
                Clock(1_796_000_040_000_000),
            )
        }

        fn send(&mut self, caller: Result<&Caller, &Denied>, target: &str) -> u16 {
            now_or_never(
                self.0
                    .serve(&Request::new("GET", target), caller, &mut self.1),
            )
            .unwrap()
            .status
        }

        fn log(&self) -> Vec<AccessRecord> {
            let filter = AccessFilter {
                limit: 1_000_000,
                ..AccessFilter::default()
            };
            now_or_never(self.0.repository().accesses(&filter))
                .unwrap()
                .unwrap()
                .into_iter()
                .map(|(_, access)| access)
                .collect()
        }
    }

    const PATHS: [&str; 4] = [
        "/v1/ehr",
        "/v1/definition/template",
        "/v1/query/aql?q=x",
        "/v1/admin/access-log",
    ];

    #[test]
    fn unauthenticated_requests_are_counted_and_few_get_records() {
        let (mut host, nobody) = (Host::new(), Denied::no_credentials("Bearer"));
        for second in 0..600 {
            host.1.0 += 1_000_000;
            for path in PATHS.iter().cycle().take(20) {
                assert_eq!(host.send(Err(&nobody), path), 401, "{second}");
            }
        }
        let (minutes, log) = (10, host.log());
        let most = (SAMPLES as usize + PATHS.len()) * (minutes + 1);
        assert!(log.len() <= most, "{} entries of {most}", log.len());
        let auditor = Caller::with_roles("aud", "", &["audit"]);
        assert_eq!(host.send(Ok(&auditor), "/v1/admin/access-log"), 200);
        let counted: u64 = host.log().iter().filter_map(|access| access.refused).sum();
        assert_eq!(
            counted, 12_000,
            "reading the log writes what was counted first"
        );
        let own = host
            .log()
            .into_iter()
            .filter(|access| access.refused.is_none())
            .collect::<Vec<_>>();
        assert_eq!(
            own.iter()
                .map(|access| access.who.as_str())
                .collect::<Vec<_>>(),
            ["aud"]
        );
    }

    #[test]
    fn records_of_a_day_are_limited_and_no_count_is_lost() {
        let (mut host, nobody) = (Host::new(), Denied::no_credentials("Bearer"));
        host.1.0 -= host.1.0.rem_euclid(86_400_000_000);
        for _ in 0..1_439 {
            host.1.0 += 60_000_000;
            for path in PATHS.iter().cycle().take(20) {
                host.send(Err(&nobody), path);
            }
        }
        let of_a_day = host.log().len() as u64;
        assert!(
            (MAX_RECORDS_OF_DAY..MAX_RECORDS_OF_DAY + 10).contains(&of_a_day),
            "{of_a_day}"
        );
        host.1.0 += 120_000_000;
        host.send(Err(&nobody), PATHS[0]);
        let counted: u64 = host.log().iter().filter_map(|access| access.refused).sum();
        assert_eq!(counted, 1_439 * 20 + 1);
    }

    #[test]
    fn requests_that_the_host_refuses_are_counted_in_few_kinds() {
        let mut host = Host::new();
        for number in 0..100 {
            host.0.refusals.add(&format!("GET {number}"), 429, 1);
        }
        for _ in 0..50 {
            assert_eq!(
                host.0
                    .refuse(&Request::new("GET", "/v1/ehr"), &Denied::too_many())
                    .status,
                429
            );
        }
        let auditor = Caller::with_roles("aud", "", &["audit"]);
        assert_eq!(host.send(Ok(&auditor), "/v1/admin/access-log"), 200);
        let log: Vec<AccessRecord> = host
            .log()
            .into_iter()
            .filter(|access| access.refused.is_some())
            .collect();
        assert_eq!(
            (
                log.len(),
                log.iter().filter_map(|access| access.refused).sum::<u64>()
            ),
            (MAX_KINDS + 1, 150)
        );
    }

    /// The threads of a server have a service each.
    #[test]
    fn reading_the_log_of_one_service_writes_the_counts_of_all_that_share_memory() {
        let memory = SharedMemory::default();
        let [mut one, mut other] = [(); 2].map(|()| {
            let Host(service, clock) = Host::new();
            Host(service.with_memory(&memory), clock)
        });
        let nobody = Denied::no_credentials("Bearer");
        for _ in 0..50 {
            for host in [&mut one, &mut other] {
                assert_eq!(host.send(Err(&nobody), "/v1/ehr"), 401);
            }
        }
        let auditor = Caller::with_roles("aud", "", &["audit"]);
        for host in [&mut one, &mut other] {
            assert_eq!(host.send(Ok(&auditor), "/v1/admin/access-log"), 200);
        }
        let counted = |host: &Host| -> u64 {
            let log = host.log().into_iter();
            log.filter_map(|access| access.refused).sum()
        };
        assert_eq!(counted(&one) + counted(&other), 100);
        // Complete records are limited for all together.
        assert!(
            counted(&one) >= 100 - u64::from(SAMPLES),
            "{}",
            counted(&one)
        );
    }

    #[test]
    fn refused_requests_of_known_callers_get_records() {
        let mut host = Host::new();
        let reader = Caller::with_roles("ann", "", &["read"]);
        for _ in 0..30 {
            assert_eq!(host.send(Ok(&reader), "/v1/admin/access-log"), 403);
        }
        assert_eq!(
            host.log()
                .iter()
                .filter(|access| access.who == "ann"
                    && access.status == 403
                    && access.refused.is_none())
                .count(),
            30
        );
    }
}
