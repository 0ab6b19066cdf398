//! Bodies of answers on their way to clients. A client that stops reading loses its answer, so that
//! its memory returns.

use aqlite::service::{IncompleteBody, SEND_TIME};
use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Bytes that a connection takes at a time. It keeps copies of about two such pieces, and the rest
/// of a body stays where it can be dropped.
const PIECE: usize = 65_536;

/// The body of an answer, read piece by piece.
pub struct AnswerBody {
    shared: Arc<Shared>,
    /// Bytes that were not read yet, if the length of the body is known.
    rest: Option<u64>,
}

/// The sender of the parts of a body. Dropping it completes the body.
pub struct AnswerSender {
    shared: Arc<Shared>,
    /// The time in which the client must read a piece.
    patience: Duration,
}

struct Shared {
    state: Mutex<State>,
    /// Notified when a piece was read, and when the body was dropped.
    is_read: Notify,
}

struct State {
    part: Vec<u8>,
    /// Bytes of the part that were read.
    at: usize,
    /// The time at which the last piece was read, or the part was sent.
    read_at: Instant,
    progress: SendProgress,
    waker: Option<Waker>,
}

/// The state of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendProgress {
    /// More parts may follow.
    Open,
    /// All parts are known.
    Complete,
    /// A part failed, or the client stopped reading.
    Incomplete,
    /// The connection needs no more of it.
    Closed,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent at any time, so a poisoned lock is used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns a copy of the next bytes; `None` if there are none.
    fn next_piece(&mut self) -> Option<Bytes> {
        let end = self.at.saturating_add(PIECE).min(self.part.len());
        let piece = self
            .part
            .get(self.at..end)
            .filter(|piece| !piece.is_empty())?;
        self.at = end;
        Some(Bytes::copy_from_slice(piece))
    }

    fn drop_part(&mut self) {
        self.part = Vec::new();
        self.at = 0;
    }

    fn end(&mut self, progress: SendProgress) {
        self.progress = progress;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Returns the body of an answer, of `length` bytes if that is known, and the sender of its parts.
pub fn answer_body(length: Option<u64>) -> (AnswerBody, AnswerSender) {
    patient_body(length, SEND_TIME)
}

fn patient_body(length: Option<u64>, patience: Duration) -> (AnswerBody, AnswerSender) {
    let state = State {
        part: Vec::new(),
        at: 0,
        read_at: Instant::now(),
        progress: SendProgress::Open,
        waker: None,
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        is_read: Notify::new(),
    });
    let body = AnswerBody {
        shared: Arc::clone(&shared),
        rest: length,
    };
    (body, AnswerSender { shared, patience })
}

impl AnswerSender {
    /// Sends a part once all of the one before it was read. Returns false if the client has gone, or
    /// has stopped reading.
    pub async fn send(&self, part: Vec<u8>) -> bool {
        if !self.sent().await {
            return false;
        }
        let mut state = self.shared.lock();
        state.part = part;
        state.at = 0;
        state.read_at = Instant::now();
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        true
    }

    /// Ends the body as incomplete: the connection is closed, so the client cannot mistake the
    /// received part for a complete body.
    pub fn fail(&self) {
        self.shared.lock().end(SendProgress::Incomplete);
    }

    /// Waits until the client has read the part. Returns false if the client has gone, or has
    /// stopped reading, which drops the part.
    pub async fn sent(&self) -> bool {
        loop {
            let deadline = {
                let mut state = self.shared.lock();
                if state.progress != SendProgress::Open {
                    return false;
                }
                if state.at == state.part.len() {
                    // Its memory is not needed while the next part is made.
                    state.drop_part();
                    return true;
                }
                let deadline = state.read_at + self.patience;
                if deadline <= Instant::now() {
                    state.drop_part();
                    state.end(SendProgress::Incomplete);
                    return false;
                }
                deadline
            };
            drop(timeout_at(deadline, self.shared.is_read.notified()).await);
        }
    }
}

impl Drop for AnswerSender {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if state.progress == SendProgress::Open {
            state.end(SendProgress::Complete);
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = IncompleteBody;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, IncompleteBody>>> {
        let mut state = self.shared.lock();
        if let Some(piece) = state.next_piece() {
            state.read_at = Instant::now();
            drop(state);
            self.shared.is_read.notify_one();
            self.rest = self
                .rest
                .map(|rest| rest.saturating_sub(piece.len() as u64));
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match state.progress {
            SendProgress::Open => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
            SendProgress::Incomplete => Poll::Ready(Some(Err(IncompleteBody))),
            SendProgress::Complete | SendProgress::Closed => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.map(SizeHint::with_exact).unwrap_or_default()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.drop_part();
        state.progress = SendProgress::Closed;
        drop(state);
        self.shared.is_read.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::poll_fn;

    const PATIENCE: Duration = Duration::from_millis(200);

    /// Reads the next piece: its bytes, an error, or `None` at the end.
    async fn piece(body: &mut AnswerBody) -> Option<Result<usize, IncompleteBody>> {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        Some(frame.map(|frame| frame.into_data().map_or(0, |data| data.len())))
    }

    #[tokio::test]
    async fn body_is_read_in_pieces_and_its_length_is_known() {
        let (mut body, sender) = patient_body(Some(70_000), PATIENCE);
        assert_eq!(body.size_hint().exact(), Some(70_000));
        assert!(sender.send(vec![1; 70_000]).await);
        assert_eq!(piece(&mut body).await, Some(Ok(PIECE)));
        assert_eq!(body.size_hint().exact(), Some(70_000 - PIECE as u64));
        assert_eq!(piece(&mut body).await, Some(Ok(70_000 - PIECE)));
        sender.sent().await;
        drop(sender);
        assert_eq!(piece(&mut body).await, None);
    }

    #[tokio::test]
    async fn client_that_stops_reading_loses_the_rest() {
        let (mut body, sender) = patient_body(None, PATIENCE);
        assert!(sender.send(vec![1; 3 * PIECE]).await);
        // Each piece gives the client more time.
        for _ in 0..2 {
            tokio::time::sleep(PATIENCE / 2).await;
            assert_eq!(piece(&mut body).await, Some(Ok(PIECE)));
        }
        let started = Instant::now();
        sender.sent().await;
        assert!(started.elapsed() >= PATIENCE / 2, "{:?}", started.elapsed());
        assert!(body.shared.lock().part.is_empty(), "the text is in memory");
        assert_eq!(piece(&mut body).await, Some(Err(IncompleteBody)));
    }

    #[tokio::test]
    async fn parts_wait_for_their_client_and_end_with_it() {
        let (mut body, sender) = patient_body(None, Duration::from_secs(60));
        assert!(sender.send(vec![1]).await);
        let (second, read) = tokio::join!(sender.send(vec![2; 2]), piece(&mut body));
        assert_eq!((second, read), (true, Some(Ok(1))));
        drop(body);
        assert!(!sender.send(vec![3]).await);
        let (mut body, sender) = patient_body(None, PATIENCE);
        sender.fail();
        drop(sender);
        assert_eq!(piece(&mut body).await, Some(Err(IncompleteBody)));
    }
}
