//! The options of commands that send requests to a server.

use crate::outcome::Failure;
use anyhow::{Context, ensure};
use clap::Args;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::ConfigVerifierExt;
use std::path::{Path, PathBuf};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The options of a command that may send requests to a server.
#[derive(Args, Default)]
pub struct ServerOptions {
    /// The bearer token for a server; without it AQLITE_AUTHORIZATION is sent, if it is set
    #[arg(
        long,
        value_name = "TOKEN",
        env = "AQLITE_TOKEN",
        hide_env_values = true
    )]
    pub token: Option<String>,
    #[command(flatten)]
    pub trust: TrustOptions,
}

impl ServerOptions {
    /// Returns the value of the header `Authorization`, if there is one.
    pub fn authorization(&self) -> Option<String> {
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        bearer.or_else(|| std::env::var("AQLITE_AUTHORIZATION").ok())
    }
}

/// Returns the URL of a mount without a slash at the end: `url` itself, with `mount` if it has no
/// path.
pub fn with_mount(url: &str, mount: &str) -> String {
    let base = url.trim_end_matches('/');
    let authority = base.split_once("://").map_or("", |(_, rest)| rest);
    let mount = if authority.contains('/') { "" } else { mount };
    format!("{base}{mount}")
}

/// The options for certificates of servers.
#[derive(Args, Default)]
pub struct TrustOptions {
    /// A file with the certificates of authorities (PEM) that a server must have; without it, those that the system trusts
    #[arg(long, value_name = "FILE", env = "AQLITE_CACERT")]
    cacert: Option<PathBuf>,
}

impl TrustOptions {
    /// Returns the TLS configuration of an agent.
    ///
    /// # Errors
    /// If the file cannot be read, or has no certificate.
    fn of_agent(&self) -> anyhow::Result<TlsConfig> {
        install_cryptography();
        let roots = match &self.cacert {
            None => RootCerts::PlatformVerifier,
            Some(path) => {
                let read = certificates(path)?;
                let certificate = |der: &CertificateDer<'_>| Certificate::from_der(der).to_owned();
                RootCerts::new_with_certs(&read.iter().map(certificate).collect::<Vec<_>>())
            }
        };
        Ok(TlsConfig::builder().root_certs(roots).build())
    }

    /// Returns an agent whose answers have any status.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the file cannot be read, or has no certificate.
    pub fn agent(&self) -> Result<Agent, Failure> {
        let tls = self.of_agent();
        let tls = tls.map_err(|error| Failure::Usage(format!("{error:#}")))?;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(tls)
            .build();
        Ok(agent.into())
    }

    /// Returns the configuration of a connection.
    ///
    /// # Errors
    /// If the file cannot be read, or has no certificate.
    pub fn of_connection(&self) -> anyhow::Result<ClientConfig> {
        install_cryptography();
        let Some(path) = &self.cacert else {
            return Ok(ClientConfig::with_platform_verifier()?);
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            let shown = path.display();
            roots.add(certificate).with_context(|| format!("{shown}"))?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots);
        Ok(config.with_no_client_auth())
    }
}

/// Makes ring the cryptography of rustls.
fn install_cryptography() {
    // Fails only if a provider is installed already, which is then used.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// Reads the certificates of a file.
fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let shown = path.display();
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read =
        read.with_context(|| format!("{shown}: it cannot be read as certificates in PEM"))?;
    ensure!(!read.is_empty(), "{shown}: it has no certificate in PEM");
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::with_mount;

    #[test]
    fn url_without_a_path_gets_the_mount() {
        for (url, expected) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
            ("https://cdr.example.org/", "https://cdr.example.org/v1"),
            ("http://[::1]:80/v1/", "http://[::1]:80/v1"),
            ("https://example.org/cdr/v1", "https://example.org/cdr/v1"),
        ] {
            assert_eq!(with_mount(url, "/v1"), expected);
        }
    }
}
