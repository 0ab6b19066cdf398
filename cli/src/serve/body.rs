//! The body of a request as it arrives, decompressed in bounded steps.

use aqlite::service::{self, DISCARD_TIME, DISCARDED, EXPANDED, Gunzip, GzipError, Progress};
use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The longest time between two pieces of a body.
const IDLE: Duration = Duration::from_secs(30);

/// The longest time of a body that is read as a whole. A load of lines has no such bound.
const WHOLE: Duration = Duration::from_secs(300);

/// A body that cannot be read completely: an error of gzip, or a broken or idle connection.
pub struct Unread(pub GzipError);

impl From<GzipError> for Unread {
    fn from(error: GzipError) -> Unread {
        Unread(error)
    }
}

/// A body in progress.
pub struct IncomingBody {
    stream: BodyDataStream,
    gunzip: Option<Gunzip>,
}

impl IncomingBody {
    /// Wraps a body of which nothing was read.
    pub fn new(body: Body) -> IncomingBody {
        IncomingBody {
            stream: body.into_data_stream(),
            gunzip: None,
        }
    }

    /// Decompresses the body if necessary. Removes the coding from the headers then.
    pub fn expand(&mut self, head: &mut service::Request) {
        if service::is_compressed(head) {
            head.headers
                .retain(|(name, _)| !name.eq_ignore_ascii_case("Content-Encoding"));
            self.gunzip = Some(Gunzip::default());
        }
    }

    /// Appends the next bytes, about as many as `into` has less than `full`. Returns false at the
    /// end of the body.
    pub async fn next(&mut self, into: &mut Vec<u8>, full: usize) -> Result<bool, Unread> {
        let Some(mut gunzip) = self.gunzip.take() else {
            let chunk = self.chunk().await?;
            into.extend_from_slice(chunk.as_deref().unwrap_or_default());
            return Ok(chunk.is_some());
        };
        // One step of output, however many chunks of input it needs.
        let full = full.min(into.len().saturating_add(EXPANDED));
        while gunzip.expand(into, full.saturating_sub(into.len()))? == Progress::Input {
            match self.chunk().await? {
                Some(chunk) => gunzip.feed(&chunk),
                None => {
                    gunzip.end()?;
                    return Ok(false);
                }
            }
        }
        self.gunzip = Some(gunzip);
        tokio::task::yield_now().await;
        Ok(true)
    }

    /// Reads all of the body. Stops as soon as it exceeds `limit`, which the length then shows.
    pub async fn read_all(mut self, limit: usize) -> Result<Vec<u8>, Unread> {
        let end = Instant::now() + WHOLE;
        let mut body = Vec::new();
        let read = async {
            // One byte more than the limit suffices to show that the body is too long.
            let full = limit.saturating_add(1);
            while self.next(&mut body, full).await? && body.len() <= limit {}
            Ok(())
        };
        let read = timeout_at(end, read).await;
        // The time is over, which counts as a broken connection.
        let read = read.unwrap_or(Err(Unread(GzipError::Malformed)));
        // Also after an error: the connection stays usable only if the body was read.
        self.pass(limit).await;
        read.map(|()| body)
    }

    /// Returns the next piece as it was sent; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Unread> {
        match timeout(IDLE, self.stream.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(chunk))) => Ok(Some(chunk)),
            // The connection is lost or silent, so no client reads the message.
            Ok(Some(Err(_))) | Err(_) => Err(Unread(GzipError::Malformed)),
        }
    }

    /// Reads and discards the rest, as it was sent, up to a bound: a response to a request that is
    /// still being sent would not arrive.
    pub async fn pass(&mut self, limit: usize) {
        let most = limit.max(EXPANDED).saturating_mul(DISCARDED);
        let all = async {
            let mut passed = 0_usize;
            while passed < most {
                let Ok(Some(chunk)) = self.chunk().await else {
                    return;
                };
                passed = passed.saturating_add(chunk.len());
            }
        };
        drop(timeout(DISCARD_TIME, all).await);
    }
}
