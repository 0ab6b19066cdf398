//! The number of connections, the time of their first bytes and of their writes, and their options.

use aqlite::service::SEND_TIME;
use axum_server::accept::Accept;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// Connections at a time. Further ones are closed at once.
const CONNECTIONS: usize = 4_096;

/// The first bytes of a connection with HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// An acceptor that bounds the number of connections of another one, and the time of their first
/// bytes.
#[derive(Clone)]
pub struct Bounded<A> {
    inner: A,
    free: Arc<Semaphore>,
    /// The time from the connection to the bytes that show its protocol.
    opening_time: Duration,
    /// The time in which a client must take bytes that wait for it.
    stall_time: Duration,
}

impl<A> Bounded<A> {
    /// Bounds the connections of an acceptor.
    pub fn new(inner: A, opening_time: Duration) -> Bounded<A> {
        Bounded {
            inner,
            free: Arc::new(Semaphore::new(CONNECTIONS)),
            opening_time,
            stall_time: SEND_TIME,
        }
    }
}

impl<A, S> Accept<TcpStream, S> for Bounded<A>
where
    A: Accept<TcpStream, S>,
    A::Future: Send + 'static,
{
    type Stream = Counted<A::Stream>;
    type Service = A::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let permit = Arc::clone(&self.free).try_acquire_owned();
        // Without it, a small part of an answer waits for the acknowledgement of the one before.
        let set = stream.set_nodelay(true);
        let accepted = self.inner.accept(stream, service);
        let (opening, stall_time) = (Opening::new(self.opening_time), self.stall_time);
        Box::pin(async move {
            // An error makes axum-server close the connection without an answer.
            let permit = permit.map_err(|_| io::Error::other("too many connections"))?;
            set?;
            let (stream, service) = accepted.await?;
            let stream = Counted {
                stream,
                opening: Some(opening),
                stall_time,
                stalled: None,
                _permit: permit,
            };
            Ok((stream, service))
        })
    }
}

/// A connection whose protocol is unknown so far.
///
/// hyper measures the time of headers only after it has found the protocol. It finds HTTP/1 by the
/// first byte that differs from the preface of HTTP/2, and HTTP/2 by the whole preface. Before
/// that, a silent client would keep its connection forever.
struct Opening {
    deadline: Pin<Box<Sleep>>,
    /// Bytes that were read. All of them are a prefix of the preface.
    received: usize,
}

impl Opening {
    fn new(time: Duration) -> Opening {
        Opening {
            deadline: Box::pin(sleep(time)),
            received: 0,
        }
    }

    /// Records bytes that were read. Returns whether the protocol is still unknown.
    fn is_undecided_after(&mut self, bytes: &[u8]) -> bool {
        let rest = PREFACE.get(self.received..).unwrap_or_default();
        self.received = self.received.saturating_add(bytes.len());
        bytes.len() < rest.len() && rest.starts_with(bytes)
    }

    /// Fails when the time is over. Otherwise the task is woken at that time.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.deadline
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// A connection with its permit, which is returned when the connection is closed.
pub struct Counted<S> {
    stream: S,
    /// `None` once the protocol is known: then reads have no deadline here.
    opening: Option<Opening>,
    /// The time in which the client must take bytes that wait for it.
    stall_time: Duration,
    /// The end of this time; `None` if no bytes wait.
    stalled: Option<Pin<Box<Sleep>>>,
    _permit: OwnedSemaphorePermit,
}

impl<S> Counted<S> {
    /// Fails if writes make no progress for too long: a client that stops reading would keep its
    /// connection, and the answer on it, forever.
    fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let time = self.stall_time;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(time)));
        let late = stalled.as_mut().poll(context);
        late.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let Some(opening) = &mut this.opening else {
            return read;
        };
        if read.is_pending() {
            return opening.poll_deadline(context);
        }
        let bytes = buffer.filled().get(before..).unwrap_or_default();
        // No bytes are the end of the stream, which hyper handles.
        if bytes.is_empty() || !opening.is_undecided_after(bytes) {
            this.opening = None;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
