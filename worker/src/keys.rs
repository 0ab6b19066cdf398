//! Keys and signatures of the runtime, for authentication in the core.

use crate::PAUSE;
use aqlite::service::auth::{Algorithm, AuthenticationHost};
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Delay;
use worker::js_sys::{Promise, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;

#[wasm_bindgen(module = "/keys.js")]
extern "C" {
    #[wasm_bindgen(js_name = fetchText)]
    fn fetch_text(url: &str) -> Promise;
    fn verify(algorithm: &str, key: &str, data: &[u8], signature: &[u8]) -> Promise;
    fn derive(password: &str, salt: &[u8], iterations: u32) -> Promise;
}

/// WebCrypto.
pub struct WebCrypto;

impl AuthenticationHost for WebCrypto {
    async fn fetch(&self, url: &str) -> Result<String, String> {
        match JsFuture::from(fetch_text(url)).await {
            Ok(text) => text
                .as_string()
                .ok_or_else(|| String::from("the answer is no text")),
            Err(error) => {
                let reason = format!("{error:?}");
                crate::log::log_problem("keys of an issuer", &format!("{url}: {reason}"));
                Err(reason)
            }
        }
    }

    async fn pause(&self) {
        Delay::from(PAUSE).await;
    }

    async fn verify(&self, algorithm: Algorithm, key: &str, data: &[u8], signature: &[u8]) -> bool {
        JsFuture::from(verify(algorithm.name(), key, data, signature))
            .await
            .is_ok_and(|answer| answer == JsValue::TRUE)
    }

    async fn derive(&self, password: &str, salt: &[u8], iterations: u32) -> Option<Vec<u8>> {
        let bits = JsFuture::from(derive(password, salt, iterations))
            .await
            .ok()?;
        bits.dyn_into::<Uint8Array>()
            .ok()
            .map(|bytes| bytes.to_vec())
    }
}
