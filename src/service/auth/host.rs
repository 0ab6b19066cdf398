//! The interface that a host implements for authentication.

use super::token::Algorithm;

/// The functions of a host for authentication.
#[allow(
    async_fn_in_trait,
    reason = "futures of a worker are not Send, and nothing spawns them"
)]
pub trait AuthenticationHost {
    /// Fetches the body at a URL.
    ///
    /// # Errors
    /// If there is no response with status 200.
    async fn fetch(&self, url: &str) -> Result<String, String>;

    /// Waits about twenty milliseconds, during which other requests continue.
    async fn pause(&self);

    /// Returns whether the signature of `data` was made with the key, a JWK as JSON. A key that
    /// cannot be used verifies nothing.
    async fn verify(&self, algorithm: Algorithm, key: &str, data: &[u8], signature: &[u8]) -> bool;

    /// Derives 32 bytes from a password by PBKDF2 with HMAC-SHA-256.
    async fn derive(&self, password: &str, salt: &[u8], iterations: u32) -> Option<Vec<u8>>;
}
