//! The blobs of segments in KV.

use aqlite::store::sql::{BlobFuture, Blobs};
use worker::KvStore;

/// A KV namespace as a store of blobs. KV may return a new key late; until then the rows are read.
pub struct KvBlobs(pub KvStore);

impl Blobs for KvBlobs {
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move { self.0.get(key).bytes().await.map_err(text) })
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        Box::pin(async move {
            let put = self.0.put_bytes(key, &bytes).map_err(text)?;
            put.execute().await.map_err(text)
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        Box::pin(async move { self.0.delete(key).await.map_err(text) })
    }
}

/// Logs an error and returns its text.
fn text(error: worker::KvError) -> String {
    crate::log::log_problem("KV", &error);
    error.to_string()
}
