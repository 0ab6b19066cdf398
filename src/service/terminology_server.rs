//! The terminology server of a host, and its responses.

#[cfg(feature = "server")]
use super::fhir;
#[cfg(feature = "server")]
use crate::aql::TerminologyError;
use std::pin::Pin;

/// A terminology server that the host can reach.
pub trait TerminologyServer {
    /// Returns the body of a response with status 200 that the host has cached. A host without a
    /// cache has none.
    fn cached<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Option<String>> + 'a>> {
        let _ = address;
        Box::pin(std::future::ready(None))
    }

    /// GETs a URL below the base of the server, such as `ValueSet/$expand?url=…`, as
    /// `application/fhir+json`.
    ///
    /// The host limits the time and the size of a response.
    fn get<'a>(
        &'a self,
        address: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<TerminologyResponse, Unreachable>> + 'a>>;

    /// Caches the body of a response with status 200 to this address, if the host has a cache. The
    /// service has read it: a page for people in its place would be wrong for as long as it is cached.
    fn keep<'a>(
        &'a self,
        address: &'a str,
        body: &'a str,
    ) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        let _ = (address, body);
        Box::pin(std::future::ready(()))
    }
}

/// A response of a terminology server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TerminologyResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// The reason for a missing response.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unreachable {
    /// It did not arrive in time.
    Late,
    /// There is no connection, or the response cannot be read.
    Failed(String),
}

impl std::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unreachable::Late => "the response did not arrive in time",
            Unreachable::Failed(why) => why,
        })
    }
}

impl std::error::Error for Unreachable {}

/// Returns the body of a response of a terminology server.
#[cfg(feature = "server")]
pub(super) fn body_of(
    response: Result<TerminologyResponse, Unreachable>,
) -> Result<String, TerminologyError> {
    match response {
        Ok(TerminologyResponse { status: 200, body }) => Ok(body),
        Ok(TerminologyResponse {
            status: status @ 400..=499,
            body,
            // These statuses concern this service or the moment, not the query.
        }) if !matches!(status, 401 | 403 | 408 | 429) => {
            let why = fhir::outcome(&body)
                .unwrap_or_else(|| format!("the terminology server answers {status}"));
            Err(TerminologyError::Refused(why))
        }
        Ok(TerminologyResponse { status, .. }) => Err(TerminologyError::Failed(format!(
            "the terminology server answers {status}; try again later"
        ))),
        Err(Unreachable::Late) => Err(late()),
        Err(Unreachable::Failed(why)) => Err(TerminologyError::Failed(format!(
            "the terminology server cannot be reached: {why}"
        ))),
    }
}

/// Returns the error of a server that did not answer in time.
#[cfg(feature = "server")]
pub(super) fn late() -> TerminologyError {
    TerminologyError::Late(String::from(
        "the terminology server did not answer in time; try again later",
    ))
}
