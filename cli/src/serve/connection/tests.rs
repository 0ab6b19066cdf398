//! Connections over real sockets, with short times.

use super::*;
use axum::Router;
use axum::body::Body;
use axum::routing::any;
use axum_server::Handle;
use axum_server::accept::DefaultAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const OPENING: Duration = Duration::from_millis(500);

/// Far more than [`OPENING`], for slow machines.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first bytes of a client that keep the protocol unknown.
const UNDECIDED: [&[u8]; 3] = [b"", b"P", b"PRI * HTTP"];

#[tokio::test]
async fn connection_over_the_bound_is_refused_until_another_is_closed() {
    let acceptor = Bounded {
        free: Arc::new(Semaphore::new(1)),
        ..Bounded::new(DefaultAcceptor::new(), OPENING)
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

#[tokio::test]
async fn connection_whose_client_stops_reading_is_closed() {
    let acceptor = Bounded {
        stall_time: OPENING,
        ..Bounded::new(DefaultAcceptor::new(), OPENING)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = TcpStream::connect(address).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let (mut accepted, ()) = acceptor.accept(stream, ()).await.unwrap();
    // More than the buffers of the system hold.
    let bytes = vec![b' '; 100_000_000];
    let written = timeout(PATIENCE, accepted.write_all(&bytes));
    let error = written.await.expect("an end").expect_err("a late client");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(client);
}

/// Returns the request body as soon as it has arrived, and answers slower than [`OPENING`].
fn routes() -> Router {
    let slow = |body: Body| async {
        let body = axum::body::to_bytes(body, 1_000).await.unwrap();
        tokio::time::sleep(OPENING * 2).await;
        body
    };
    Router::new().fallback(any(slow))
}

/// Starts a server without TLS.
async fn plain_server() -> SocketAddr {
    let handle = Handle::new();
    let address = "127.0.0.1:0".parse().unwrap();
    let server = axum_server::bind(address)
        .handle(handle.clone())
        .map(|inner| Bounded::new(inner, OPENING));
    tokio::spawn(server.serve(routes().into_make_service()));
    handle.listening().await.unwrap()
}

/// Starts a server with TLS. Returns the client's configuration, which trusts its certificate.
async fn secure_server() -> (SocketAddr, ClientConfig) {
    drop(rustls::crypto::ring::default_provider().install_default());
    let issued = rcgen::generate_simple_self_signed(vec![String::from("localhost")]).unwrap();
    let certificate = issued.cert.der().clone();
    let key = issued.signing_key.serialize_der();
    let tls = RustlsConfig::from_der(vec![certificate.to_vec()], key)
        .await
        .unwrap();
    let handle = Handle::new();
    let address = "127.0.0.1:0".parse().unwrap();
    let server = axum_server::bind(address)
        .handle(handle.clone())
        .map(|inner| Bounded::new(RustlsAcceptor::new(tls).acceptor(inner), OPENING));
    tokio::spawn(server.serve(routes().into_make_service()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (handle.listening().await.unwrap(), config)
}

/// Sends bytes, and waits for the end of the connection.
async fn assert_closed(mut stream: impl AsyncRead + AsyncWrite + Unpin, first: &[u8]) {
    let started = Instant::now();
    stream.write_all(first).await.unwrap();
    let mut received = Vec::new();
    // Its end may be an error: a reset, or TLS without its closing message.
    let end = timeout(PATIENCE, stream.read_to_end(&mut received)).await;
    assert!(end.is_ok(), "{first:?} keeps the connection open");
    assert_eq!(received, b"", "{first:?}");
    assert!(started.elapsed() >= OPENING / 2, "{first:?}");
}

/// Sends a request slowly: each piece within the time for headers, all of them beyond the deadline
/// of a new connection. Its answer is late too.
async fn assert_answered(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let pieces = [
        "PO",
        "ST / HTTP/1.1\r\nHost: localhost\r\n",
        "Content-Length: 4\r\nConnection: close\r\n\r\n",
        "bo",
        "dy",
    ];
    for piece in pieces {
        stream.write_all(piece.as_bytes()).await.unwrap();
        tokio::time::sleep(OPENING * 2 / 5).await;
    }
    let mut received = Vec::new();
    let end = timeout(PATIENCE, stream.read_to_end(&mut received)).await;
    end.unwrap().unwrap();
    let received = String::from_utf8(received).unwrap();
    assert!(received.starts_with("HTTP/1.1 200"), "{received}");
    assert!(received.ends_with("body"), "{received}");
}

#[tokio::test]
async fn connection_without_a_protocol_is_closed_in_time() {
    let address = plain_server().await;
    for first in UNDECIDED {
        assert_closed(TcpStream::connect(address).await.unwrap(), first).await;
    }
}

#[tokio::test]
async fn connection_without_a_protocol_is_closed_in_time_behind_tls() {
    let (address, config) = secure_server().await;
    for offered in [&[][..], &[b"http/1.1".to_vec()], &[b"h2".to_vec()]] {
        let mut config = config.clone();
        config.alpn_protocols = offered.to_vec();
        let connector = TlsConnector::from(Arc::new(config));
        for first in UNDECIDED {
            let stream = TcpStream::connect(address).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            assert_closed(connector.connect(name, stream).await.unwrap(), first).await;
        }
    }
}

#[tokio::test]
async fn request_in_progress_outlives_the_time_of_a_new_connection() {
    let address = plain_server().await;
    assert_answered(TcpStream::connect(address).await.unwrap()).await;
    let (address, config) = secure_server().await;
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    assert_answered(connector.connect(name, stream).await.unwrap()).await;
}

#[test]
fn protocol_is_known_after_another_byte_or_the_whole_preface() {
    let decided = |pieces: &[&[u8]]| -> Vec<bool> {
        let mut opening = Opening {
            deadline: Box::pin(sleep(OPENING)),
            received: 0,
        };
        let undecided = pieces.iter().map(|bytes| opening.is_undecided_after(bytes));
        undecided.map(|undecided| !undecided).collect()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _context = runtime.enter();
    assert_eq!(decided(&[b"G"]), [true]);
    assert_eq!(decided(&[b"P", b"R", b"O"]), [false, false, true]);
    assert_eq!(decided(&[b"PRI * HTTP", b"/1.1"]), [false, true]);
    assert_eq!(decided(&[b"PRI * HTTP/2.0\r\n\r\n"]), [false]);
    assert_eq!(decided(&[PREFACE]), [true]);
    let (first, rest) = PREFACE.split_at(14);
    assert_eq!(decided(&[first, rest]), [false, true]);
    assert_eq!(decided(&[&[PREFACE, b"\0"].concat()]), [true]);
}
