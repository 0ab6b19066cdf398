//! The number of connections, and their options.

use axum_server::accept::Accept;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at a time. Further ones are closed at once.
const CONNECTIONS: usize = 4_096;

/// An acceptor that bounds the number of connections of another one.
#[derive(Clone)]
pub struct Bounded<A> {
    inner: A,
    free: Arc<Semaphore>,
}

impl<A> Bounded<A> {
    /// Bounds the connections of an acceptor.
    pub fn new(inner: A) -> Bounded<A> {
        Bounded {
            inner,
            free: Arc::new(Semaphore::new(CONNECTIONS)),
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
        Box::pin(async move {
            // An error makes axum-server close the connection without an answer.
            let permit = permit.map_err(|_| io::Error::other("too many connections"))?;
            set?;
            let (stream, service) = accepted.await?;
            let stream = Counted {
                stream,
                _permit: permit,
            };
            Ok((stream, service))
        })
    }
}

/// A connection with its permit, which is returned when the connection is closed.
pub struct Counted<S> {
    stream: S,
    _permit: OwnedSemaphorePermit,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum_server::accept::DefaultAcceptor;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn connection_over_the_bound_is_refused_until_another_is_closed() {
        let acceptor = Bounded {
            inner: DefaultAcceptor::new(),
            free: Arc::new(Semaphore::new(1)),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || async {
            let client = TcpStream::connect(address).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            (client, acceptor.accept(stream, ()).await)
        };
        let (_client, first) = connect().await;
        assert!(first.is_ok());
        assert!(connect().await.1.is_err());
        drop(first);
        assert!(connect().await.1.is_ok());
    }
}
