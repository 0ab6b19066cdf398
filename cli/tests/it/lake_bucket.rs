//! The command `lake sync` to a bucket, and several syncs at once.

use super::lake_sync::latest;
use super::program::{Folder, Ran, generator, ran};
use aqlite::rm::time::format_utc;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const NAMES: &str = "SELECT c/name/value AS name FROM EHR e CONTAINS COMPOSITION c";

/// Microseconds from 0001-01-01 to 1970-01-01.
const UNIX: i64 = 62_135_596_800_000_000;

/// A server with one bucket and the requests of S3 that a lake needs.
#[derive(Clone, Default)]
struct Bucket(Arc<Mutex<Objects>>);

#[derive(Default)]
struct Objects {
    /// The contents by key, with the number of the write that is their entity tag.
    all: BTreeMap<String, (Vec<u8>, u64)>,
    writes: u64,
    /// Whether writes of data files wait.
    holds_data: bool,
    /// Whether a data file is written.
    has_data_request: bool,
    /// The age of all objects.
    age: Duration,
}

impl Bucket {
    /// Starts the server, and returns its address.
    fn start(&self) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(self.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                axum::serve(listener, router).await.unwrap();
            });
        });
        format!("http://{address}")
    }

    fn change<T>(&self, change: impl FnOnce(&mut Objects) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    /// Writes the lake into a folder.
    fn copy(&self, folder: &Folder, to: &str) {
        let all = self.change(|objects| objects.all.clone());
        for (key, (content, _)) in all {
            let path = folder
                .path()
                .join(to)
                .join(key.strip_prefix("lake/").unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
}

/// Answers a request.
async fn answer(
    State(bucket): State<Bucket>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let key = uri
        .path()
        .trim_start_matches("/bucket")
        .trim_start_matches('/')
        .to_owned();
    let query = uri.query().unwrap_or_default().to_owned();
    if method == Method::PUT && key.contains("/data/") {
        bucket.change(|objects| objects.has_data_request = true);
        while bucket.change(|objects| objects.holds_data) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let header = |name: &str| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap().to_owned())
    };
    bucket.change(|objects| match method {
        Method::PUT => objects.put(&key, &body, header("if-match"), header("if-none-match")),
        Method::POST => objects.delete(std::str::from_utf8(&body).unwrap()),
        Method::GET if key.is_empty() => objects.list(&query),
        _ => objects.get(&key),
    })
}

fn status(status: StatusCode) -> Response {
    Response::builder()
        .status(status)
        .body(Body::empty())
        .unwrap()
}

impl Objects {
    fn put(
        &mut self,
        key: &str,
        body: &[u8],
        expected: Option<String>,
        absent: Option<String>,
    ) -> Response {
        let before = self.all.get(key).map(|(_, tag)| format!("\"{tag}\""));
        if expected.is_some() && expected != before || absent.is_some() && before.is_some() {
            return status(StatusCode::PRECONDITION_FAILED);
        }
        self.writes += 1;
        self.all
            .insert(key.to_owned(), (body.to_vec(), self.writes));
        let tag = format!("\"{}\"", self.writes);
        Response::builder()
            .header("ETag", tag)
            .body(Body::empty())
            .unwrap()
    }

    fn get(&self, key: &str) -> Response {
        let Some((content, tag)) = self.all.get(key) else {
            return status(StatusCode::NOT_FOUND);
        };
        let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
        let time = self.time();
        let month: usize = time[5..7].parse().unwrap();
        let month = &months[(month - 1) * 3..month * 3];
        let (day, year, clock) = (&time[8..10], &time[..4], &time[11..19]);
        Response::builder()
            .header("ETag", format!("\"{tag}\""))
            .header("Last-Modified", format!("{day} {month} {year} {clock} GMT"))
            .header("Content-Length", content.len())
            .body(Body::from(content.clone()))
            .unwrap()
    }

    /// The time of modification of all objects.
    fn time(&self) -> String {
        let time = (SystemTime::now() - self.age)
            .duration_since(UNIX_EPOCH)
            .unwrap();
        format_utc(i64::try_from(time.as_micros()).unwrap() + UNIX).unwrap()
    }

    fn list(&self, query: &str) -> Response {
        let prefix = query
            .split('&')
            .find_map(|part| part.strip_prefix("prefix="));
        let prefix = prefix.unwrap_or_default().replace("%2F", "/");
        let (mut out, time) = (String::from("<ListBucketResult>"), self.time());
        for (key, (content, tag)) in self.all.iter().filter(|(key, _)| key.starts_with(&prefix)) {
            let size = content.len();
            out += &format!(
                "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{time}</LastModified><ETag>\"{tag}\"</ETag></Contents>"
            );
        }
        Response::new(Body::from(out + "</ListBucketResult>"))
    }

    fn delete(&mut self, body: &str) -> Response {
        for part in body.split("<Key>").skip(1) {
            self.all.remove(part.split('<').next().unwrap());
        }
        Response::new(Body::from("<DeleteResult></DeleteResult>"))
    }
}

/// Writes compositions of the sample, with the query of a view.
fn data(compositions: usize) -> Folder {
    let (folder, generator) = (Folder::new(), generator());
    for index in 0..compositions {
        let one = generator.composition(index);
        let ehr = generator.ehr(one.ehr).ehr_id;
        folder.write(&format!("data/{ehr}/{index:04}.json"), &one.json);
    }
    folder.write("names.aql", NAMES);
    folder
}

/// Returns the arguments of a sync of the view to a place.
fn arguments(to: &str) -> Vec<&str> {
    let of_data = ["lake", "sync", "-d", "data", "--to", to];
    [&of_data[..], &["--view", "names.aql"]].concat()
}

fn command(folder: &Folder, url: &str) -> Command {
    let mut command = folder.command(&arguments("s3://bucket/lake"));
    command
        .env("AWS_ENDPOINT_URL", url)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn sync(folder: &Folder, url: &str) -> Ran {
    ran(command(folder, url).output().unwrap())
}

/// Checks that the lake has the rows of the data, and only files of the last sync.
fn assert_is_whole(bucket: &Bucket, folder: &Folder) {
    bucket.copy(folder, "copy");
    let ran = folder.run(&arguments("fresh"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let fresh = latest(&folder.path().join("fresh"), "names");
    assert_eq!(latest(&folder.path().join("copy"), "names"), fresh);
    let keys = bucket.change(|objects| objects.all.keys().cloned().collect::<Vec<_>>());
    let data = keys.iter().filter(|key| key.contains("/data/"));
    assert_eq!(data.count(), 1, "{keys:?}");
    assert!(!keys.iter().any(|key| key.ends_with("/lock")), "{keys:?}");
}

#[test]
fn second_sync_of_a_bucket_is_refused_and_a_killed_one_expires() {
    let (bucket, folder) = (Bucket::default(), data(12));
    let url = bucket.start();
    bucket.change(|objects| objects.holds_data = true);
    let mut first = command(&folder, &url).spawn().unwrap();
    let begun = Instant::now();
    while !bucket.change(|objects| objects.has_data_request) {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no data file is written"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let refused = || {
        let ran = sync(&folder, &url);
        assert_eq!(ran.code, Some(1), "{}", ran.out);
        let expected = "another sync writes to s3://bucket/lake";
        assert!(ran.err.contains(expected), "{}", ran.err);
    };
    refused();
    first.kill().unwrap();
    first.wait().unwrap();
    bucket.change(|objects| objects.holds_data = false);
    // Its lock is as fresh as that of a sync that runs.
    refused();
    bucket.change(|objects| objects.age = Duration::from_secs(172_800));
    let ran = sync(&folder, &url);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out, "names: 12 rows of 12 compositions\n");
    assert_is_whole(&bucket, &folder);
    bucket.change(|objects| objects.age = Duration::ZERO);
    let ran = sync(&folder, &url);
    assert_eq!(ran.out, "names: no changes\n", "{}", ran.err);
}

#[test]
fn syncs_of_a_bucket_at_once_leave_one_lake() {
    let (bucket, folder) = (Bucket::default(), data(12));
    let url = bucket.start();
    let all: Vec<_> = (0..4)
        .map(|_| command(&folder, &url).spawn().unwrap())
        .collect();
    let all: Vec<Ran> = all
        .into_iter()
        .map(|child| ran(child.wait_with_output().unwrap()))
        .collect();
    assert!(all.iter().any(|ran| ran.code == Some(0)), "{all:?}");
    for ran in all.iter().filter(|ran| ran.code != Some(0)) {
        assert!(ran.err.contains("another sync writes to"), "{}", ran.err);
    }
    assert_is_whole(&bucket, &folder);
}

#[test]
fn folder_that_another_process_has_locked_is_refused() {
    let folder = data(3);
    let arguments = arguments("lake");
    assert_eq!(folder.run(&arguments).code, Some(0));
    let lock = File::open(folder.path().join("lake/_aqlite/lock")).unwrap();
    lock.lock().unwrap();
    let ran = folder.run(&arguments);
    assert_eq!(ran.code, Some(1), "{}", ran.out);
    assert!(ran.err.contains("another sync writes to"), "{}", ran.err);
    drop(lock);
    assert_eq!(folder.run(&arguments).out, "names: no changes\n");
}
