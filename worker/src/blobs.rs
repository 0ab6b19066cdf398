//! The blobs of segments, in KV or R2.

use aqlite::store::sql::{BlobFuture, Blobs};
use futures_util::future::{Either, select};
use std::fmt::Display;
use std::pin::pin;
use std::time::Duration;
use worker::{Bucket, Delay, Env, KvStore, Result};

/// The time in which a store must read. The database is read then, which is always possible.
pub const READ: Duration = Duration::from_secs(3);
/// The time in which a store must write or delete.
pub const WRITE: Duration = Duration::from_secs(20);

/// The binding of an optional R2 bucket for segments.
const SEGMENTS: &str = "SEGMENTS";

/// Opens the store of segments: the R2 bucket if one is bound, otherwise the KV namespace `kv`.
///
/// # Errors
/// If there is no such KV namespace.
pub fn open(env: &Env, kv: &str) -> Result<Box<dyn Blobs>> {
    Ok(Box::new(HostBlobs {
        bucket: env.bucket(SEGMENTS).ok(),
        kv: env.kv(kv)?,
    }))
}

/// A KV namespace and an optional R2 bucket as a store of blobs. KV may return a new key late; until
/// then the rows are read.
///
/// Blobs that were stored before the bucket was bound stay in KV until their segments are merged.
/// They are read there, and deletions reach both stores, so that no deleted text remains in KV.
struct HostBlobs {
    bucket: Option<Bucket>,
    kv: KvStore,
}

impl Blobs for HostBlobs {
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            if let Some(bucket) = &self.bucket {
                let object = timely("R2", READ, bucket.get(key).execute()).await?;
                if let Some(body) = object.as_ref().and_then(|object| object.body()) {
                    return timely("R2", READ, body.bytes()).await.map(Some);
                }
            }
            timely("KV", READ, self.kv.get(key).bytes()).await
        })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            if let Some(bucket) = &self.bucket {
                let put = bucket.put(key, bytes).execute();
                return timely("R2", WRITE, put).await.map(drop);
            }
            let put = async { self.kv.put_bytes(key, &bytes)?.execute().await };
            timely("KV", WRITE, put).await
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            if let Some(bucket) = &self.bucket {
                timely("R2", WRITE, bucket.delete(key)).await?;
            }
            timely("KV", WRITE, self.kv.delete(key)).await
        })
    }
}

/// Awaits the outcome of a store for some time. Logs an error, and returns its text.
pub async fn timely<T, E: Display>(
    store: &str,
    patience: Duration,
    operation: impl Future<Output = std::result::Result<T, E>>,
) -> std::result::Result<T, String> {
    let outcome = match select(pin!(operation), Delay::from(patience)).await {
        Either::Left((outcome, _)) => outcome.map_err(|error| error.to_string()),
        Either::Right(_) => Err(format!("no answer in {} s", patience.as_secs())),
    };
    outcome.inspect_err(|error| crate::log::log_problem(store, error))
}
