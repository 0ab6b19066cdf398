//! The body of a request as it arrives, decompressed in bounded steps.

use aqlite::service::{self, DISCARD_TIME, DISCARDED, EXPANDED, Gunzip, GzipError, Needs};
use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::StreamExt;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// The longest time between two pieces of a body.
const IDLE: Duration = Duration::from_secs(30);

/// The longest time of a body that is read as a whole, and of the rest of a long line. A load of
/// lines has no such bound, because it may be of any length.
pub const WHOLE: Duration = Duration::from_secs(300);

/// The time that the server waits for [`PACE_BYTES`] of a body, at most. A load holds the permit of
/// its request, so it must not last forever.
const PACE: Duration = Duration::from_secs(300);

/// Bytes of a body, as it was sent, that must arrive within [`PACE`]: 33 in a second. A program
/// that makes the lines while it sends them meets it with one short composition in a minute.
const PACE_BYTES: usize = 10_000;

/// A body that cannot be read completely: an error of gzip, or a broken or idle connection.
pub struct Unread(pub GzipError);

impl Unread {
    /// Returns the error of a body whose time is over, which counts as a broken connection.
    pub fn late() -> Unread {
        Unread(GzipError::Malformed)
    }
}

impl From<GzipError> for Unread {
    fn from(error: GzipError) -> Unread {
        Unread(error)
    }
}

/// A body in progress.
pub struct IncomingBody {
    stream: BodyDataStream,
    gunzip: Option<Gunzip>,
    pace: Pace,
    /// Whether the client waits for `100 Continue`, which hyper sends as soon as the body is read.
    awaits_continue: bool,
}

/// The pace of a body: bytes that arrived, and the time that was spent waiting for them.
struct Pace {
    limit: Duration,
    waited: Duration,
    bytes: usize,
}

impl Pace {
    fn new(limit: Duration) -> Pace {
        Pace {
            limit,
            waited: Duration::ZERO,
            bytes: 0,
        }
    }

    /// Returns the time for which the next piece may be awaited.
    fn rest(&self) -> Duration {
        self.limit.saturating_sub(self.waited).min(IDLE)
    }

    /// Records a piece. The time between two reads does not count: the server was busy then.
    fn record(&mut self, waited: Duration, bytes: usize) {
        self.waited = self.waited.saturating_add(waited);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= PACE_BYTES {
            *self = Pace::new(self.limit);
        }
    }
}

impl IncomingBody {
    /// Wraps a body of which nothing was read.
    pub fn new(body: Body, head: &service::Request) -> IncomingBody {
        let expected = head.header("Expect").unwrap_or_default();
        IncomingBody {
            stream: body.into_data_stream(),
            gunzip: None,
            pace: Pace::new(PACE),
            awaits_continue: expected.trim().eq_ignore_ascii_case("100-continue"),
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
        while gunzip.expand(into, full.saturating_sub(into.len()))? == Needs::Input {
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
        let read = read.unwrap_or(Err(Unread::late()));
        // Also after an error: the connection stays usable only if the body was read.
        self.pass(limit).await;
        read.map(|()| body)
    }

    /// Returns the next piece as it was sent; `None` at the end.
    async fn chunk(&mut self) -> Result<Option<Bytes>, Unread> {
        self.awaits_continue = false;
        let started = Instant::now();
        match timeout(self.pace.rest(), self.stream.next()).await {
            Ok(None) => Ok(None),
            Ok(Some(Ok(chunk))) => {
                self.pace.record(started.elapsed(), chunk.len());
                Ok(Some(chunk))
            }
            // The connection is lost, silent or too slow, so no client reads the message.
            Ok(Some(Err(_))) | Err(_) => Err(Unread(GzipError::Malformed)),
        }
    }

    /// Reads and discards the rest, as it was sent, up to a bound: a response to a request that is
    /// still being sent would not arrive. A client that waits for `100 Continue` sends nothing, and
    /// gets the response instead (RFC 9110, section 10.1.1).
    pub async fn pass(&mut self, limit: usize) {
        if self.awaits_continue {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::convert::Infallible;
    use tokio::time::sleep;

    /// Reads a body of pieces of `bytes` that arrive each `gap`, `pause` after each read. Returns
    /// the number of pieces.
    async fn read(pieces: usize, bytes: usize, gap: Duration, pause: Duration) -> Option<usize> {
        let sent = stream::iter(0..pieces).then(move |_| async move {
            sleep(gap).await;
            Ok::<_, Infallible>(Bytes::from(vec![b' '; bytes]))
        });
        let head = service::Request::new("POST", "/");
        let mut body = IncomingBody::new(Body::from_stream(sent), &head);
        body.pace = Pace::new(LIMIT);
        let (mut count, mut into) = (0, Vec::new());
        while body.next(&mut into, usize::MAX).await.ok()? {
            count += 1;
            sleep(pause).await;
        }
        Some(count)
    }

    const LIMIT: Duration = Duration::from_millis(400);
    const GAP: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn body_that_trickles_ends_when_its_time_is_over() {
        let started = Instant::now();
        assert_eq!(read(1_000, 1, GAP, Duration::ZERO).await, None);
        let time = started.elapsed();
        assert!(time >= LIMIT && time < GAP * 1_000, "{time:?}");
    }

    #[tokio::test]
    async fn body_that_keeps_the_pace_may_last_longer() {
        let started = Instant::now();
        // Two pieces are the bytes of one period.
        let found = read(60, PACE_BYTES / 2, GAP, Duration::ZERO).await;
        assert_eq!(found, Some(60));
        assert!(started.elapsed() > LIMIT * 2);
    }

    #[tokio::test]
    async fn time_of_the_server_itself_does_not_count() {
        let found = read(4, 1, Duration::ZERO, LIMIT / 2).await;
        assert_eq!(found, Some(4));
    }
}
