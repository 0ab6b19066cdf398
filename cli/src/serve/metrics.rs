//! The figures of `/metrics`, in the text format of OpenMetrics that Prometheus reads.

use super::storage::StorageSizes;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The labels of a request: a class of routes and a class of statuses, both of few values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    route: &'static str,
    status: &'static str,
}

/// The label of a histogram of requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: &'static str,
}

/// The label of a size: a file, or all files of segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StoredFile {
    file: &'static str,
}

/// A number of bytes.
type Bytes = Gauge<u64, AtomicU64>;

/// The figures of a server.
pub struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Family<Route, Histogram>,
    active: Gauge,
    refused: Counter,
    commits: Counter,
    groups: Counter,
    group_seconds: Histogram,
    segments: Counter,
    memory: Bytes,
    stored: Family<StoredFile, Bytes>,
    free: Bytes,
}

/// Returns a histogram of times from 0.1 ms to 26 s.
fn seconds() -> Histogram {
    // 0.1 ms times 2 to the power of 18 is 26.2 s.
    Histogram::new(exponential_buckets(0.000_1, 2.0, 19))
}

impl Metrics {
    /// Creates the figures, all zero.
    pub fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("aqlite"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(seconds),
            active: Gauge::default(),
            refused: Counter::default(),
            commits: Counter::default(),
            groups: Counter::default(),
            group_seconds: seconds(),
            segments: Counter::default(),
            memory: Bytes::default(),
            stored: Family::default(),
            free: Bytes::default(),
        };
        metrics.register();
        metrics.register_sizes();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("requests", "Answered requests", self.requests.clone());
        registry.register(
            "request_seconds",
            "Time of requests from the headers to the end of the answer",
            self.seconds.clone(),
        );
        registry.register(
            "active_requests",
            "Requests and parts of loads in service threads, with those that wait there",
            self.active.clone(),
        );
        registry.register(
            "refused_requests",
            "Requests that met a full queue, each answered with 503",
            self.refused.clone(),
        );
        registry.register(
            "write_batches",
            "Batches of the database that wrote, those of the access log too",
            self.commits.clone(),
        );
        registry.register(
            "write_groups",
            "Groups of batches that shared one fsync",
            self.groups.clone(),
        );
        registry.register(
            "write_group_seconds",
            "Time of a group with its fsync",
            self.group_seconds.clone(),
        );
        registry.register(
            "compactions",
            "Compactions that ended without an error",
            self.segments.clone(),
        );
    }

    fn register_sizes(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "resident_memory_bytes",
            "Memory of the process; 0 where the system does not report it",
            self.memory.clone(),
        );
        registry.register(
            "storage_bytes",
            "Sizes of the databases, their write-ahead logs, and all segments",
            self.stored.clone(),
        );
        registry.register(
            "disk_free_bytes",
            "Free space of the disk of the database; 0 where the system does not report it",
            self.free.clone(),
        );
    }

    /// Records the start of a request in a service thread.
    pub fn begin_request(&self) {
        self.active.inc();
    }

    /// Records the end of a request in a service thread.
    pub fn end_request(&self) {
        self.active.dec();
    }

    /// Records a request with the class of its route, when its answer is complete.
    pub fn record_answer(&self, route: &'static str, status: u16, time: Duration) {
        let status = status_class(status);
        self.requests.get_or_create(&Labels { route, status }).inc();
        let seconds = self.seconds.get_or_create(&Route { route });
        seconds.observe(time.as_secs_f64());
    }

    /// Records a request that met a full queue.
    pub fn record_refusal(&self) {
        self.refused.inc();
    }

    /// Records a group of batches that were committed together.
    pub fn record_group(&self, batches: usize, time: Duration) {
        self.commits.inc_by(batches as u64);
        self.groups.inc();
        self.group_seconds.observe(time.as_secs_f64());
    }

    /// Returns the number of batches that wrote.
    pub fn batches(&self) -> u64 {
        self.commits.get()
    }

    /// Returns the number of groups of batches.
    #[cfg(test)]
    pub fn groups(&self) -> u64 {
        self.groups.get()
    }

    /// Records a compaction.
    pub fn record_compaction(&self) {
        self.segments.inc();
    }

    /// Returns all figures as text, with the sizes of the files as they are now.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub fn text(&self, sizes: &StorageSizes) -> Result<String, std::fmt::Error> {
        // Read on demand: the other figures are counted as they occur.
        self.memory.set(resident_bytes().unwrap_or_default());
        self.record_sizes(sizes);
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn record_sizes(&self, sizes: &StorageSizes) {
        for (file, bytes) in [
            ("database", sizes.database),
            ("database_wal", sizes.database_wal),
            ("access_log", sizes.access_log),
            ("access_log_wal", sizes.access_log_wal),
            ("segments", sizes.segments),
        ] {
            self.stored.get_or_create(&StoredFile { file }).set(bytes);
        }
        self.free.set(sizes.free);
    }
}

/// Returns the class of routes of a path. No part of a path becomes a label: it may name a patient.
pub fn route_class(path: &str) -> &'static str {
    const CLASSES: [(&str, &str); 9] = [
        // The first match counts, so `/definition/query` is `query`, and `/ehr/bulk` is `bulk`
        // because it precedes `/ehr`.
        ("/query", "query"),
        ("/gdl", "guide"),
        ("/cds-services", "guide"),
        ("/definition", "definition"),
        ("/admin", "admin"),
        ("/bulk", "bulk"),
        ("/demographic", "demographic"),
        ("/ehr", "ehr"),
        ("/health", "health"),
    ];
    let found = CLASSES.iter().find(|(part, _)| path.contains(part));
    found.map_or("other", |(_, class)| class)
}

/// Returns the class of a status. Those that ask clients to come back are classes of their own.
fn status_class(status: u16) -> &'static str {
    match status {
        429 => "429",
        503 => "503",
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    }
}

/// Returns the resident memory of this process, as Linux reports it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes.saturating_mul(1_024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_classes_and_no_paths() {
        let metrics = Metrics::new();
        let path = "/v1/ehr/7d44b88c-4199-4bad-97dc-d78268e01398/composition";
        for status in [201, 429, 404, 503, 500] {
            metrics.record_answer(route_class(path), status, Duration::from_millis(3));
        }
        metrics.record_group(3, Duration::from_millis(1));
        let sizes = StorageSizes {
            database: 4_096,
            database_wal: 0,
            access_log: 8_192,
            access_log_wal: 0,
            segments: 256_000,
            free: 1_000_000,
        };
        let text = metrics.text(&sizes).unwrap();
        for class in ["2xx", "429", "4xx", "503", "5xx"] {
            let figure = format!("aqlite_requests_total{{route=\"ehr\",status=\"{class}\"}} 1");
            assert!(text.contains(&figure), "{class}: {text}");
        }
        assert!(text.contains("aqlite_write_batches_total 3"));
        assert!(text.contains("aqlite_write_groups_total 1"));
        assert!(text.contains("aqlite_storage_bytes{file=\"segments\"} 256000"));
        assert!(text.contains("aqlite_disk_free_bytes 1000000"));
        assert!(!text.contains("7d44b88c"));
    }
}
