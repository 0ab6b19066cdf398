//! Authentication in a thread of its own, for all service threads: so the bounds on wrong passwords
//! hold for the whole server, and the keys of an issuer are fetched once.

use super::environment;
use super::fetch;
use aqlite::service::Request;
use aqlite::service::auth::{
    Algorithm, AuthenticationHost, Authenticator, Caller, Denied, KeyCache,
};
use data_encoding::BASE64URL_NOPAD;
use ring::pbkdf2;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_blocking, spawn_local};

/// The time between two checks of a request that waits for keys which another one fetches.
const PAUSE: Duration = Duration::from_millis(20);

/// The timeout of a request to an issuer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum bytes of the keys of an issuer.
const MAX_KEYS_BYTES: u64 = 1_000_000;

/// The outcome of authentication.
pub type Authenticated = Result<Caller, Denied>;

/// The headers of a request, and the place of the outcome.
type Question = (Request, oneshot::Sender<Authenticated>);

/// The sender of requests to the thread that authenticates them.
#[derive(Clone)]
pub struct Gate {
    questions: mpsc::UnboundedSender<Question>,
    challenge: &'static str,
}

impl Gate {
    /// Starts the thread. It ends when all clones are dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(authenticator: Authenticator) -> std::io::Result<Gate> {
        let (questions, asked) = mpsc::unbounded_channel();
        let challenge = authenticator.challenge();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let work = move || LocalSet::new().block_on(&runtime, run(authenticator, asked));
        thread::Builder::new()
            .name("authentication".into())
            .spawn(work)?;
        Ok(Gate {
            questions,
            challenge,
        })
    }

    /// Authenticates the caller of a request by its headers and its address.
    pub async fn authenticate(&self, head: &Request) -> Authenticated {
        let (answer, answered) = oneshot::channel();
        // The body is not sent to the thread.
        let headers = Request {
            headers: head.headers.clone(),
            client_address: head.client_address.clone(),
            ..Request::default()
        };
        let unanswered = |_| Err(Denied::busy());
        match self.questions.send((headers, answer)) {
            Ok(()) => answered.await.unwrap_or_else(unanswered),
            Err(_) => Err(Denied::busy()),
        }
    }

    /// Returns the rejection of a request without credentials.
    pub fn no_credentials(&self) -> Denied {
        Denied::no_credentials(self.challenge)
    }
}

async fn run(authenticator: Authenticator, mut asked: mpsc::UnboundedReceiver<Question>) {
    let shared = Rc::new((authenticator, KeyCache::default()));
    while let Some((head, answer)) = asked.recv().await {
        let shared = Rc::clone(&shared);
        spawn_local(async move {
            let (authenticator, keys) = &*shared;
            let now = environment::now() / 1_000_000;
            let caller = authenticator.authenticate(&head, keys, &Native, now).await;
            // A request that was abandoned needs no answer.
            drop(answer.send(caller));
        });
    }
}

/// The functions of this machine for authentication.
struct Native;

impl AuthenticationHost for Native {
    async fn fetch(&self, url: &str) -> Result<String, String> {
        let answer = fetch::get(url, "application/json", PATIENCE, MAX_KEYS_BYTES).await;
        let read = answer.and_then(|answer| match answer.status {
            200 => Ok(answer.body),
            status => Err(format!("status {status}")),
        });
        read.inspect_err(|error| {
            super::log::problem("keys of an issuer", &format!("{url}: {error}"));
        })
    }

    async fn pause(&self) {
        tokio::time::sleep(PAUSE).await;
    }

    async fn verify(&self, algorithm: Algorithm, key: &str, data: &[u8], signature: &[u8]) -> bool {
        verified(algorithm, key, data, signature).is_some()
    }

    async fn derive(&self, password: &str, salt: &[u8], iterations: u32) -> Option<Vec<u8>> {
        let iterations = NonZeroU32::new(iterations)?;
        let (password, salt) = (password.as_bytes().to_vec(), salt.to_vec());
        // Some ten milliseconds of one processor.
        let derived = spawn_blocking(move || {
            let mut derived = vec![0; 32];
            pbkdf2::derive(
                pbkdf2::PBKDF2_HMAC_SHA256,
                iterations,
                &salt,
                &password,
                &mut derived,
            );
            derived
        });
        derived.await.ok()
    }
}

/// The members of a JWK that this host uses (RFC 7518, section 6).
#[derive(Deserialize)]
struct Key {
    kty: String,
    #[serde(default)]
    crv: String,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

/// Verifies a signature; `None` if it is wrong or the key cannot be used.
fn verified(algorithm: Algorithm, key: &str, data: &[u8], signature: &[u8]) -> Option<()> {
    let key: Key = serde_json::from_str(key).ok()?;
    let bytes = |text: &str| BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    match algorithm {
        Algorithm::Rs256 if key.kty == "RSA" => {
            let key = RsaPublicKeyComponents {
                n: bytes(&key.n)?,
                e: bytes(&key.e)?,
            };
            key.verify(&RSA_PKCS1_2048_8192_SHA256, data, signature)
                .ok()
        }
        Algorithm::Es256 if key.kty == "EC" && key.crv == "P-256" => {
            // An uncompressed point: SEC 1, section 2.3.3.
            let point = [vec![4], bytes(&key.x)?, bytes(&key.y)?].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(data, signature)
                .ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};

    #[test]
    fn signature_of_another_text_or_key_is_rejected() {
        let random = SystemRandom::new();
        let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(signing, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(signing, document.as_ref(), &random).unwrap();
        let point = pair.public_key().as_ref();
        let part = |range| BASE64URL_NOPAD.encode(&point[range]);
        let (x, y) = (part(1..33), part(33..65));
        let key = format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"}}"#);
        let other = format!(r#"{{"kty":"EC","crv":"P-256","x":"{y}","y":"{x}"}}"#);
        let signature = pair.sign(&random, b"text").unwrap();
        let verify = |key: &str, data: &[u8]| {
            verified(Algorithm::Es256, key, data, signature.as_ref()).is_some()
        };
        assert!(verify(&key, b"text"));
        assert!(!verify(&key, b"other"));
        assert!(!verify(&other, b"text"));
        assert!(verified(Algorithm::Rs256, &key, b"text", signature.as_ref()).is_none());
    }
}
