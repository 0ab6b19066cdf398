//! An HTTP/1.1 client that reads a response while it sends the body of its request.

use crate::server_options::TrustOptions;
use anyhow::{Context, anyhow, bail};
use axum::body::Body;
use axum::http::header::{HOST, HeaderValue};
use axum::http::uri::PathAndQuery;
use axum::http::{Request, Response, Uri};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection to a server.
pub struct HttpClient {
    sender: SendRequest<Body>,
    authority: HeaderValue,
}

impl HttpClient {
    /// Connects to the server of a URL.
    ///
    /// # Errors
    /// If the URL is invalid, or the server cannot be reached or identified.
    pub async fn connect(url: &str, trust: &TrustOptions) -> anyhow::Result<HttpClient> {
        let uri: Uri = url.parse().with_context(|| format!("`{url}`"))?;
        let authority = uri
            .authority()
            .with_context(|| format!("`{url}` has no host"))?;
        let host = authority.host().trim_matches(['[', ']']);
        let (is_secure, port) = match uri.scheme_str() {
            Some("https") => (true, 443),
            Some("http") => (false, 80),
            _ => bail!("`{url}` does not begin with http:// or https://"),
        };
        let port = authority.port_u16().unwrap_or(port);
        let stream = TcpStream::connect((host, port))
            .await
            .with_context(|| format!("{host}:{port}"))?;
        stream.set_nodelay(true)?;
        let sender = match is_secure {
            false => begin(stream).await?,
            true => {
                let config = trust.of_connection()?;
                let name = ServerName::try_from(host.to_owned())?;
                begin(
                    TlsConnector::from(Arc::new(config))
                        .connect(name, stream)
                        .await?,
                )
                .await?
            }
        };
        Ok(HttpClient {
            sender,
            authority: HeaderValue::from_str(authority.as_str())?,
        })
    }

    /// Sends a request to a URL of the server. Its body is sent while the response is read.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn send(&mut self, mut request: Request<Body>) -> anyhow::Result<Response<Body>> {
        let target = request.uri().path_and_query().cloned();
        *request.uri_mut() = Uri::from(target.unwrap_or_else(|| PathAndQuery::from_static("/")));
        request.headers_mut().insert(HOST, self.authority.clone());
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await;
        let response = response.map_err(|error| anyhow!("the server does not answer: {error}"))?;
        Ok(response.map(Body::new))
    }
}

/// Begins HTTP on a connection, which ends with its sender.
async fn begin<S>(stream: S) -> anyhow::Result<SendRequest<Body>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    // An error of the connection is also that of the request in progress.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}
