//! Requests to other servers: issuers of tokens and terminology servers.

use std::time::Duration;
use tokio::task::spawn_blocking;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// An answer of another server.
pub struct FetchedText {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// Requests a text of at most `longest` bytes. Redirects are not followed. Certificates are checked
/// against the store of the system, which has those of a hospital's own authority.
///
/// # Errors
/// If there is no answer in time, or it is too long.
pub async fn get(
    url: &str,
    accept: &'static str,
    patience: Duration,
    longest: u64,
) -> Result<FetchedText, String> {
    let url = url.to_owned();
    let request = spawn_blocking(move || get_now(&url, accept, patience, longest));
    let answer = request.await.map_err(|error| error.to_string())?;
    answer.map_err(|error| error.to_string())
}

fn get_now(
    url: &str,
    accept: &str,
    patience: Duration,
    longest: u64,
) -> Result<FetchedText, ureq::Error> {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(patience))
        .max_redirects(0)
        .http_status_as_error(false)
        .tls_config(tls.build())
        .build()
        .into();
    let mut response = agent.get(url).header("Accept", accept).call()?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(longest);
    Ok(FetchedText {
        status,
        body: body.read_to_string()?,
    })
}
