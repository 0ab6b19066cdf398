//! The FHIR terminology server of a deployment. Requests have a timeout, and responses are cached
//! in each service thread.

use super::fetch;
use aqlite::service::{TerminologyResponse, TerminologyServer, Unreachable};
use std::cell::RefCell;
use std::collections::HashMap;
use std::pin::Pin;
use std::time::{Duration, Instant};

/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(8);
/// The time for which a response is cached.
const KEPT: Duration = Duration::from_secs(3_600);
/// Maximum bytes of a response.
const LONGEST: u64 = 20_000_000;
/// Maximum bytes of the responses that a service thread caches.
const ROOM: usize = 8_000_000;

/// A terminology server with a cache of its responses.
pub struct FhirServer {
    base: String,
    responses: RefCell<HashMap<String, (Instant, String)>>,
}

impl FhirServer {
    /// Creates a client of the server at a base URL such as `https://tx.fhir.org/r4`.
    pub fn new(base: &str) -> FhirServer {
        FhirServer {
            base: base.trim_end_matches('/').to_owned(),
            responses: RefCell::default(),
        }
    }

    async fn ask(&self, address: &str) -> Result<TerminologyResponse, Unreachable> {
        let url = self.url(address);
        let started = Instant::now();
        let answer = fetch::get(&url, "application/fhir+json", PATIENCE, LONGEST).await;
        let answer = answer.map_err(|error| match started.elapsed() < PATIENCE {
            true => Unreachable::Failed(error),
            false => Unreachable::Late,
        })?;
        Ok(TerminologyResponse {
            status: answer.status,
            body: answer.body,
        })
    }

    fn url(&self, address: &str) -> String {
        format!("{}/{address}", self.base)
    }

    fn kept(&self, url: &str) -> Option<String> {
        let responses = self.responses.borrow();
        let found = responses.get(url).filter(|(at, _)| at.elapsed() < KEPT);
        found.map(|(_, body)| body.clone())
    }

    fn keep_response(&self, url: &str, body: &str) {
        let mut responses = self.responses.borrow_mut();
        let held: usize = responses.values().map(|(_, body)| body.len()).sum();
        if held + body.len() > ROOM {
            // All are dropped at once, because the order of use is not recorded.
            responses.clear();
        }
        if body.len() <= ROOM {
            responses.insert(url.to_owned(), (Instant::now(), body.to_owned()));
        }
    }
}

impl TerminologyServer for FhirServer {
    fn cached<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Option<String>> + 'a>> {
        Box::pin(std::future::ready(self.kept(&self.url(address))))
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
        self.keep_response(&self.url(address), body);
        Box::pin(std::future::ready(()))
    }
}
