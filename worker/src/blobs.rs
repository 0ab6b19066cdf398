//! The blobs of segments, in KV or R2.

use aqlite::store::sql::{BlobFuture, Blobs};
use std::fmt::Display;
use worker::{Bucket, Env, KvStore, Result};

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
                let object = logged("R2", bucket.get(key).execute().await)?;
                if let Some(body) = object.as_ref().and_then(|object| object.body()) {
                    return logged("R2", body.bytes().await).map(Some);
                }
            }
            logged("KV", self.kv.get(key).bytes().await)
        })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            if let Some(bucket) = &self.bucket {
                return logged("R2", bucket.put(key, bytes).execute().await).map(drop);
            }
            let put = logged("KV", self.kv.put_bytes(key, &bytes))?;
            logged("KV", put.execute().await)
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            if let Some(bucket) = &self.bucket {
                logged("R2", bucket.delete(key).await)?;
            }
            logged("KV", self.kv.delete(key).await)
        })
    }
}

/// Logs the error of a store and returns its text.
fn logged<T, E: Display>(
    store: &str,
    outcome: std::result::Result<T, E>,
) -> std::result::Result<T, String> {
    outcome.map_err(|error| {
        crate::log::log_problem(store, &error);
        error.to_string()
    })
}
