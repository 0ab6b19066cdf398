//! The FHIR terminology server of a deployment. Requests have a timeout, and responses are cached
//! here and in KV.

use crate::cached;
use aqlite::service::{TerminologyResponse, TerminologyServer, Unreachable};
use futures_util::future::{Either, select};
use futures_util::{StreamExt, pin_mut};
use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;
use worker::{
    AbortController, AbortSignal, Date, Delay, Fetch, Headers, KvStore, Request, RequestInit,
};

/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(8);
/// Seconds for which a response is cached.
const KEPT: u64 = 3600;
/// Maximum bytes of a response.
const LONGEST: usize = 20_000_000;
/// Maximum bytes of the responses that this instance caches.
const ROOM: usize = 8_000_000;

/// A terminology server with a cache of its responses.
pub struct FhirServer {
    base: String,
    kv: KvStore,
    near: RefCell<HashMap<String, (u64, String)>>,
}

impl FhirServer {
    /// Creates a client of the server at a base URL such as `https://tx.fhir.org/r4`.
    pub fn new(base: &str, kv: KvStore) -> FhirServer {
        FhirServer {
            base: base.trim_end_matches('/').to_owned(),
            kv,
            near: RefCell::default(),
        }
    }

    async fn ask(&self, address: &str) -> Result<TerminologyResponse, Unreachable> {
        let url = self.url(address);
        let controller = AbortController::default();
        let (answer, late) = (fetch(&url, controller.signal()), Delay::from(PATIENCE));
        pin_mut!(answer, late);
        match select(answer, late).await {
            Either::Left((answer, _)) => {
                answer.map_err(|error| Unreachable::Failed(error.to_string()))
            }
            Either::Right(_) => {
                controller.abort();
                Err(Unreachable::Late)
            }
        }
    }

    fn url(&self, address: &str) -> String {
        format!("{}/{address}", self.base)
    }

    async fn kept(&self, url: &str) -> Option<String> {
        let fresh = |at: u64| seconds().saturating_sub(at) < KEPT;
        if let Some((_, body)) = self.near.borrow().get(url).filter(|(at, _)| fresh(*at)) {
            return Some(body.clone());
        }
        cached::read_text(&self.kv, &key(url)?).await
    }

    fn keep_near(&self, url: &str, body: &str) {
        let mut near = self.near.borrow_mut();
        let held: usize = near.values().map(|(_, body)| body.len()).sum();
        if held + body.len() > ROOM {
            near.clear();
        }
        if body.len() <= ROOM {
            near.insert(url.to_owned(), (seconds(), body.to_owned()));
        }
    }
}

impl TerminologyServer for FhirServer {
    fn cached<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Option<String>> + 'a>> {
        Box::pin(async move { self.kept(&self.url(address)).await })
    }

    fn get<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<TerminologyResponse, Unreachable>> + 'a>> {
        Box::pin(self.ask(address))
    }

    fn keep<'a>(
        &'a self,
        address: &'a str,
        body: &'a str,
    ) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(async move {
            let url = self.url(address);
            self.keep_near(&url, body);
            if let Some(key) = key(&url) {
                cached::write_text(&self.kv, &key, body, KEPT).await;
            }
        })
    }
}

fn key(url: &str) -> Option<String> {
    cached::short(format!("terminology/{url}"))
}

fn seconds() -> u64 {
    Date::now().as_millis() / 1000
}

/// Requests a response. Redirects are not followed: the deployment has named the server.
async fn fetch(url: &str, signal: AbortSignal) -> worker::Result<TerminologyResponse> {
    let headers = Headers::new();
    headers.set("Accept", "application/fhir+json")?;
    let mut init = RequestInit::new();
    init.with_headers(headers)
        .with_redirect(worker::RequestRedirect::Manual);
    let request = Request::new_with_init(url, &init)?;
    let mut answer = Fetch::Request(request).send_with_signal(&signal).await?;
    let (status, mut body, mut chunks) = (answer.status_code(), Vec::new(), answer.stream()?);
    while let Some(chunk) = chunks.next().await {
        body.extend(chunk?);
        if body.len() > LONGEST {
            return Err(worker::Error::RustError(format!(
                "its answer is longer than {LONGEST} bytes"
            )));
        }
    }
    let body = String::from_utf8(body);
    let body = body.map_err(|_| worker::Error::from("its answer is not UTF-8"))?;
    Ok(TerminologyResponse { status, body })
}
