//! The blobs of segments, in KV or R2.

use aqlite::store::sql::{BlobFuture, Blobs};
use worker::{Bucket, Env, KvStore, Result};

/// The binding of an optional R2 bucket for segments.
const SEGMENTS: &str = "SEGMENTS";

/// Opens the store of segments: the R2 bucket if one is bound, otherwise the KV namespace `kv`.
///
/// # Errors
/// If there is no such KV namespace.
pub fn open(env: &Env, kv: &str) -> Result<Box<dyn Blobs>> {
    let kv = KvBlobs(env.kv(kv)?);
    Ok(match env.bucket(SEGMENTS) {
        Ok(bucket) => Box::new(R2Blobs { bucket, kv }),
        Err(_) => Box::new(kv),
    })
}

/// A KV namespace as a store of blobs. KV may return a new key late; until then the rows are read.
struct KvBlobs(KvStore);

impl Blobs for KvBlobs {
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let read = self.0.get(key).bytes().await;
            read.map_err(|error| logged("KV", &error))
        })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            let put = self.0.put_bytes(key, &bytes);
            let put = put.map_err(|error| logged("KV", &error))?;
            put.execute().await.map_err(|error| logged("KV", &error))
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            let deleted = self.0.delete(key).await;
            deleted.map_err(|error| logged("KV", &error))
        })
    }
}

/// An R2 bucket as a store of blobs.
///
/// Segments that were written before the bucket was bound stay in KV until they are merged. They
/// are read there, and deletions reach both stores, so that no deleted text remains in KV.
struct R2Blobs {
    bucket: Bucket,
    kv: KvBlobs,
}

impl R2Blobs {
    async fn read(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let Some(object) = self.bucket.get(key).execute().await? else {
            return Ok(None);
        };
        match object.body() {
            Some(body) => body.bytes().await.map(Some),
            None => Ok(None),
        }
    }
}

impl Blobs for R2Blobs {
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let read = self.read(key).await;
            match read.map_err(|error| logged("R2", &error))? {
                Some(bytes) => Ok(Some(bytes)),
                None => self.kv.get(key).await,
            }
        })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            let put = self.bucket.put(key, bytes).execute().await;
            put.map(drop).map_err(|error| logged("R2", &error))
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            let deleted = self.bucket.delete(key).await;
            deleted.map_err(|error| logged("R2", &error))?;
            self.kv.delete(key).await
        })
    }
}

/// Logs an error of a store and returns its text.
fn logged(store: &str, error: &dyn std::fmt::Display) -> String {
    crate::log::log_problem(store, error);
    error.to_string()
}
