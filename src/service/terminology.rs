//! The answers to `TERMINOLOGY(…)` and `matches {terminology://…}`, from stored value sets and a
//! FHIR server of the host.
//!
//! The core never waits for a terminology: the text of a query determines its requests, the service
//! collects the answers first, and the checker inserts them into the query. openEHR's own groups
//! and code sets are built in (`aql::TerminologyCall::built_in`).
//!
//! | operation | a stored value set | the server (FHIR R4 or R5) |
//! |---|---|---|
//! | `expand` (`url=…`, or the bare URL) | its codes | `ValueSet/$expand`, all pages |
//! | `validate` with `url` | whether it has `code` (and `system`) | `ValueSet/$validate-code` |
//! | `validate` with `system` alone | | `CodeSystem/$validate-code` |
//! | `subsumes` (`system`, `codeA`, `codeB`) | | `CodeSystem/$subsumes`: true when A is B, or above it |
//! | `lookup` (`system`, `code`) | | `CodeSystem/$lookup`: the display |
//! | `map` | | `ConceptMap/$translate`: the codes of the matches |
//!
//! The `is_a` of guides is answered in the same manner, by `validate` and `subsumes`, once the
//! codes of the data are known.

use super::Service;
use super::call::Call;
use super::error::Failure;
use super::execution::GuideWork;
use super::fhir::{self, Canonical, Coding, Page};
use super::http::{decode, encode_value};
#[cfg(feature = "server")]
use super::terminology_server::{body_of, late};
use crate::aql::ast::Query;
use crate::aql::{
    Terminology, TerminologyAnswer, TerminologyCall, TerminologyError, terminology_calls,
};
use crate::gdl::{Subsumption, SubsumptionQuestions, Subsumptions};
use crate::store::repository::Repository;
use std::collections::HashMap;
use std::rc::Rc;

/// The maximum number of different requests of one query.
const MAX_QUESTIONS: usize = 32;
/// The maximum number of requests of a guide for the codes of all EHRs of a call.
const MAX_SUBSUMPTIONS: usize = 200;
/// The steps of each code or value set that a guide tests by `is_a`, in the unit of the work of
/// guides.
const ANCESTOR_STEPS: u64 = 100;
/// The steps of a question besides those of comparing codes. They bound the questions of a call to
/// some hundred thousand, because all answers are kept in memory.
const QUESTION_STEPS: u64 = 1_000;
/// The steps of reading one stored value set.
const SET_STEPS: u64 = 10_000;
/// The steps of each code of such a value set, because the codes are kept in memory.
const CODE_STEPS: u64 = 100;
/// The maximum number of codes of a value set.
pub(super) const MAX_CODES: usize = 100_000;
/// The maximum number of codes of all answers to one query.
const MAX_ANSWERED: usize = 200_000;
/// The number of codes of a requested page.
const PAGE: usize = 10_000;

/// The maximum number of pages of an expansion. Servers may send smaller pages than requested, but
/// one that sends a code at a time would be asked a hundred thousand times.
const MAX_PAGES: usize = 200;

/// The time in microseconds since the beginning of a request of a caller, after which no further
/// request is sent to the server. A request that was sent before has the time limit of the host.
#[cfg(feature = "server")]
const MAX_WAIT: i64 = 60_000_000;

/// The reason for which a request to a terminology server has no answer.
pub(super) enum Unanswered {
    /// An answer to the question, which a query or a guide reports at its place.
    Terminology(TerminologyError),
    /// An error that ends the request of the caller.
    Request(Failure),
}

impl From<TerminologyError> for Unanswered {
    fn from(error: TerminologyError) -> Unanswered {
        Unanswered::Terminology(error)
    }
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Unanswered {
        Unanswered::Request(failure)
    }
}

/// Separates the error of a terminology, which is an answer, from an error of the request.
pub(super) fn separated<T>(
    outcome: Result<T, Unanswered>,
) -> Result<Result<T, TerminologyError>, Failure> {
    match outcome {
        Ok(answer) => Ok(Ok(answer)),
        Err(Unanswered::Terminology(error)) => Ok(Err(error)),
        Err(Unanswered::Request(failure)) => Err(failure),
    }
}

/// The answers to all terminology requests of a query.
#[derive(Default)]
pub struct Answers(Vec<(TerminologyCall, Result<TerminologyAnswer, TerminologyError>)>);

impl Answers {
    /// Returns whether a server supplied an answer, so that it may change without a change here.
    pub(crate) fn any(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Terminology for Answers {
    fn ask(&self, call: &TerminologyCall) -> Result<TerminologyAnswer, TerminologyError> {
        self.0
            .iter()
            .find(|(known, _)| known == call)
            .map_or_else(|| Err(absent()), |(_, answer)| answer.clone())
    }
}

fn absent() -> TerminologyError {
    TerminologyError::Absent(String::from(
        "store the value set (PUT definition/valueset/{url}), or set the variable TERMINOLOGY_URL to the base of a FHIR terminology server",
    ))
}

pub(super) fn refused<T>(why: impl Into<String>) -> Result<T, TerminologyError> {
    Err(TerminologyError::Refused(why.into()))
}

/// A terminology request in FHIR terms.
pub(super) struct TerminologyRequest {
    operation: String,
    /// The canonical URL of its value set.
    url: Option<String>,
    /// Whether a FHIR server may know it.
    of_fhir: bool,
    parameters: Vec<(String, String)>,
}

impl TerminologyRequest {
    fn from_call(call: &TerminologyCall) -> TerminologyRequest {
        match call {
            TerminologyCall::Function {
                operation,
                service,
                parameters,
            } => {
                let of_fhir = service.to_ascii_lowercase().contains("fhir");
                TerminologyRequest::new(
                    &operation.to_ascii_lowercase(),
                    of_fhir,
                    read_parameters(parameters),
                )
            }
            TerminologyCall::Uri(uri) => TerminologyRequest::of_uri(uri),
        }
    }

    fn new(
        operation: &str,
        of_fhir: bool,
        parameters: Vec<(String, String)>,
    ) -> TerminologyRequest {
        let url = parameters
            .iter()
            .find(|(key, _)| key == "url")
            .map(|(_, url)| url.clone());
        TerminologyRequest {
            operation: operation.to_owned(),
            url,
            of_fhir,
            parameters,
        }
    }

    /// Reads `terminology://host/ValueSet/$expand?url=…`,
    /// `terminology://SNOMED-CT/hierarchy?rootConceptId=…`, or else the URL of a value set with
    /// another scheme.
    fn of_uri(uri: &str) -> TerminologyRequest {
        let expand_url =
            |url: String| TerminologyRequest::new("expand", true, vec![(String::from("url"), url)]);
        let Some(rest) = uri.strip_prefix("terminology://") else {
            return TerminologyRequest {
                of_fhir: false,
                ..expand_url(uri.to_owned())
            };
        };
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parameters = read_parameters(query);
        if path.ends_with("ValueSet/$expand") {
            return TerminologyRequest::new("expand", true, parameters);
        }
        let authority = path
            .split('/')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let root = parameters
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case("rootConceptId"));
        // The implicit value set of a hierarchy (FHIR, Using SNOMED CT with FHIR).
        match root.filter(|_| matches!(authority.as_str(), "snomed-ct" | "snomed" | "sct")) {
            Some((_, root)) => expand_url(format!("http://snomed.info/sct?fhir_vs=isa/{root}")),
            None => expand_url(format!("http://{rest}")),
        }
    }

    /// Returns the URL below the base of a FHIR server.
    fn address(&self, more: &[(&str, String)]) -> Result<String, TerminologyError> {
        let has = |key: &str| self.parameters.iter().any(|(k, _)| k == key);
        let FhirOperation { path, needed } = self.fhir_operation()?;
        if let Some(missing) = needed.iter().find(|key| !has(key)) {
            return refused(format!(
                "`{}` needs the parameter `{missing}`",
                self.operation
            ));
        }
        let own = self.parameters.iter().flat_map(|(key, value)| {
            let (key, value) = (key.as_str(), value.as_str());
            let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
            match (path, key) {
                // The operations of a code system name the system `url`.
                ("CodeSystem/$validate-code", "system") => vec![pair("url", value)],
                ("ValueSet/$expand" | "ValueSet/$validate-code", "url") => {
                    let canonical = Canonical::read(value);
                    let version = canonical.version.map(|v| pair("valueSetVersion", v));
                    let url = pair("url", canonical.url);
                    [url].into_iter().chain(version).collect()
                }
                _ => vec![pair(key, value)],
            }
        });
        let more = more
            .iter()
            .filter(|(k, _)| !has(k))
            .map(|(k, value)| ((*k).to_owned(), value.clone()));
        let pairs: Vec<String> = own
            .chain(more)
            .map(|(k, value)| format!("{}={}", encode_value(&k), encode_value(&value)))
            .collect();
        Ok(format!("{path}?{}", pairs.join("&")))
    }

    fn fhir_operation(&self) -> Result<FhirOperation, TerminologyError> {
        let of_set = self.parameters.iter().any(|(key, _)| key == "url");
        let (path, needed): (&str, &[&str]) = match self.operation.as_str() {
            "expand" => ("ValueSet/$expand", &["url"]),
            "validate" if of_set => ("ValueSet/$validate-code", &["code"]),
            "validate" => ("CodeSystem/$validate-code", &["system", "code"]),
            "subsumes" => ("CodeSystem/$subsumes", &["system", "codeA", "codeB"]),
            "lookup" => ("CodeSystem/$lookup", &["system", "code"]),
            "map" | "translate" => ("ConceptMap/$translate", &["code"]),
            other => {
                return refused(format!(
                    "`{other}` is no operation: expected expand, validate, subsumes, lookup or map"
                ));
            }
        };
        Ok(FhirOperation { path, needed })
    }

    /// Returns whether the requested code is among these.
    fn is_among(&self, codes: &[Coding]) -> bool {
        let (code, system) = (self.get("code"), self.get("system"));
        codes.iter().any(|c| {
            // A stored code without system matches any, because lists of plain codes are common.
            code == Some(&*c.code) && system.is_none_or(|s| c.system.is_empty() || s == &*c.system)
        })
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }
}

/// An operation of a FHIR server.
struct FhirOperation {
    path: &'static str,
    /// The parameters that it requires.
    needed: &'static [&'static str],
}

/// Reads `key=value&…`. A bare URL is the value of `url`.
fn read_parameters(text: &str) -> Vec<(String, String)> {
    let bare = ["http:", "https:", "urn:"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    if bare {
        return vec![(String::from("url"), decode(text, false))];
    }
    let pairs = text.split('&').filter(|part| !part.is_empty());
    pairs
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(key, value)| (decode(key, false), decode(value, false)))
        .collect()
}

impl<R: Repository> Service<R> {
    /// Collects the answers to all terminology requests of a query, except those that openEHR
    /// itself defines.
    ///
    /// # Errors
    /// If the query has too many requests, or the repository fails. Errors of a terminology are
    /// part of the answers.
    pub(crate) async fn answers(
        &self,
        call: Option<&Call<'_>>,
        ast: &Query,
    ) -> Result<Answers, Failure> {
        let (mut answers, mut codes) = (Answers::default(), 0);
        for request in terminology_calls(ast)
            .into_iter()
            .filter(|request| request.built_in().is_none())
        {
            // At most `MAX_QUESTIONS` are compared.
            if answers.0.iter().any(|(before, _)| *before == request) {
                continue;
            }
            if answers.0.len() >= MAX_QUESTIONS {
                return Err(Failure::bad_request(format!(
                    "the query asks terminologies more than {MAX_QUESTIONS} questions; ask in several queries"
                )));
            }
            let answer = self
                .answer_of(call, &TerminologyRequest::from_call(&request))
                .await?;
            if let Ok(TerminologyAnswer::Codes(all)) = &answer {
                codes += all.len();
            }
            if codes > MAX_ANSWERED {
                return Err(Failure::bad_request(format!(
                    "the value sets of the query have more than {MAX_ANSWERED} codes together; ask in several queries"
                )));
            }
            answers.0.push((request, answer));
        }
        Ok(answers)
    }

    /// Collects the answers for a host that runs a query by itself.
    ///
    /// # Errors
    /// A message, if the query has too many requests or the repository fails.
    pub async fn terminology_answers(&self, ast: &Query) -> Result<Answers, String> {
        self.answers(None, ast)
            .await
            .map_err(|failure| failure.into_fields().message)
    }

    /// Tests subsumptions of codes, or their membership in value sets, for a guide. A code that no
    /// terminology knows has no answer.
    pub(super) async fn test_subsumptions(
        &self,
        call: &Call<'_>,
        all: &SubsumptionQuestions<'_>,
        work: &mut GuideWork,
    ) -> Result<Result<Subsumptions, TerminologyError>, Failure> {
        let (mut answers, mut requests) = (Subsumptions::default(), 0);
        let mut sets = StoredSets::default();
        for about in all.ancestors() {
            work.spend(call, ANCESTOR_STEPS).await?;
            let mut set = None;
            if about.is_set {
                let codes = self.stored_codes(call, about.ancestor, &mut sets, work);
                match codes.await? {
                    Ok(codes) => set = codes,
                    Err(error) => return Ok(Err(error)),
                }
            }
            if set.is_none() && self.terminology.is_none() {
                // Without a stored value set and a server, no question about this ancestor has an
                // answer.
                continue;
            }
            for subsumption in about.questions() {
                let codes = set.as_deref().map_or(0, <[Coding]>::len);
                work.spend(call, question_steps(codes)).await?;
                let Some(question) = TerminologyRequest::of_subsumption(&subsumption) else {
                    continue;
                };
                let answer = match &set {
                    Some(codes) => Ok(TerminologyAnswer::Truth(question.is_among(codes))),
                    None if requests >= MAX_SUBSUMPTIONS => {
                        let why = format!(
                            "the data raises more than {MAX_SUBSUMPTIONS} questions to the terminology server; name fewer EHRs"
                        );
                        return Ok(refused(why));
                    }
                    None => {
                        requests += 1;
                        separated(self.ask_server(Some(call), &question).await)?
                    }
                };
                match answer {
                    Ok(TerminologyAnswer::Truth(falls)) => answers.answer(subsumption, falls),
                    // The guide treats a missing answer as unknown, not as false.
                    Ok(_) | Err(TerminologyError::Absent(_) | TerminologyError::Refused(_)) => {}
                    Err(error) => return Ok(Err(error)),
                }
            }
        }
        Ok(Ok(answers))
    }

    /// Returns the codes of a stored value set, which is expanded once; `None` for one that is not
    /// stored. The reason for which a stored one cannot be expanded ends the run: without its codes
    /// the test would compare the codes as texts.
    async fn stored_codes(
        &self,
        call: &Call<'_>,
        url: &str,
        sets: &mut StoredSets,
        work: &mut GuideWork,
    ) -> Result<Result<Option<Rc<[Coding]>>, TerminologyError>, Failure> {
        if let Some(codes) = sets.get(url) {
            return Ok(Ok(codes.clone()));
        }
        work.spend(call, SET_STEPS).await?;
        let codes = match self.expanded(Some(call), url).await?.transpose() {
            Ok(codes) => codes,
            Err(error) => return Ok(Err(error)),
        };
        // The codes are kept until all questions are answered.
        let kept = codes.as_deref().map_or(0, <[Coding]>::len);
        work.spend(call, CODE_STEPS.saturating_mul(kept as u64))
            .await?;
        sets.insert(url.to_owned(), codes.clone());
        Ok(Ok(codes))
    }

    async fn answer_of(
        &self,
        call: Option<&Call<'_>>,
        question: &TerminologyRequest,
    ) -> Result<Result<TerminologyAnswer, TerminologyError>, Failure> {
        if let (Some(url), operation @ ("expand" | "validate")) =
            (&question.url, question.operation.as_str())
            // A stored value set takes precedence over the server.
            && let Some(codes) = self.expanded(call, url).await?
        {
            return Ok(codes.map(|codes| match operation {
                "expand" => TerminologyAnswer::Codes(codes_of(&codes)),
                _ => TerminologyAnswer::Truth(question.is_among(&codes)),
            }));
        }
        separated(self.ask_server(call, question).await)
    }

    async fn ask_server(
        &self,
        call: Option<&Call<'_>>,
        question: &TerminologyRequest,
    ) -> Result<TerminologyAnswer, Unanswered> {
        if !question.of_fhir {
            return Err(absent().into());
        }
        if question.operation == "expand" {
            let codes = self.expand(call, question).await?;
            return Ok(TerminologyAnswer::Codes(codes_of(&codes)));
        }
        let read = |text: &str| fhir::answer(&question.operation, text);
        self.fetch(call, &question.address(&[])?, read).await
    }

    /// Requests all pages of an expansion.
    pub(super) async fn expand(
        &self,
        call: Option<&Call<'_>>,
        question: &TerminologyRequest,
    ) -> Result<Vec<Coding>, Unanswered> {
        let mut codes: Vec<Coding> = Vec::new();
        let mut offset = 0;
        for _ in 0..MAX_PAGES {
            let more = [("count", PAGE.to_string()), ("offset", offset.to_string())];
            // The first page needs no offset.
            let more = if offset == 0 { &more[..1] } else { &more };
            let read = |text: &str| {
                let page = Page::read(text).map_err(TerminologyError::Failed)?;
                let follows = page.check_follows(&codes, offset);
                follows.map(|()| page).map_err(TerminologyError::Failed)
            };
            let page = self.fetch(call, &question.address(more)?, read).await?;
            offset += page.concepts;
            codes.extend(page.codes);
            // The announced total stops a large expansion on its first page.
            if offset.max(page.total.unwrap_or(0)) > MAX_CODES {
                let why = format!("the value set has more than {MAX_CODES} codes");
                return Err(TerminologyError::Refused(why).into());
            }
            // A server without paging returns all codes at once, with no total, or with the same
            // total.
            if page.concepts == 0 || page.total.is_none_or(|total| offset >= total) {
                return Ok(codes);
            }
        }
        let why = format!("the server sends the value set in more than {MAX_PAGES} pages");
        Err(TerminologyError::Refused(why).into())
    }

    /// A host without the feature `server` has no terminology server.
    #[cfg(not(feature = "server"))]
    async fn fetch<T>(
        &self,
        _call: Option<&Call<'_>>,
        _address: &str,
        _read: impl Fn(&str) -> Result<T, TerminologyError>,
    ) -> Result<T, Unanswered> {
        Err(absent().into())
    }

    /// Requests a resource, and reads it by `read`. A resource is cached once it has been read.
    /// Admission control counts the wait for the server apart from heavy work.
    #[cfg(feature = "server")]
    async fn fetch<T>(
        &self,
        call: Option<&Call<'_>>,
        address: &str,
        read: impl Fn(&str) -> Result<T, TerminologyError>,
    ) -> Result<T, Unanswered> {
        let server = self.terminology.as_ref().ok_or_else(absent)?;
        let cached = server.cached(address).await;
        if let Some(Ok(found)) = cached.as_deref().map(&read) {
            return Ok(found);
        }
        if let Some(call) = call {
            if call.clock() > call.now.saturating_add(MAX_WAIT) {
                return Err(late().into());
            }
            call.begin_wait().await?;
        }
        let response = server.get(address).await;
        if let Some(call) = call {
            call.end_wait().await?;
        }
        let body = body_of(response)?;
        let found = read(&body)?;
        server.keep(address, &body).await;
        Ok(found)
    }
}

/// The codes of value sets by canonical URL; `None` for one that no stored value set has.
type StoredSets = HashMap<String, Option<Rc<[Coding]>>>;

/// Returns the steps of a question about a value set of `codes` codes, which are compared in turn.
fn question_steps(codes: usize) -> u64 {
    QUESTION_STEPS.saturating_add(codes as u64 / 4)
}

fn codes_of(codings: &[Coding]) -> Vec<String> {
    codings.iter().map(|c| String::from(&*c.code)).collect()
}

impl TerminologyRequest {
    /// Creates the request for all codes of a value set that a server may know.
    pub(super) fn of_import(url: &str) -> TerminologyRequest {
        TerminologyRequest::of_uri(url).of_server(url)
    }

    /// Creates the request for a subsumption; `None` if the terminology has no URL that servers
    /// know.
    fn of_subsumption(subsumption: &Subsumption) -> Option<TerminologyRequest> {
        let Subsumption {
            terminology,
            ancestor,
            is_set,
            code,
        } = subsumption;
        let system = system_of(terminology);
        let pair = |key: &str, value: &str| (String::from(key), value.to_owned());
        Some(match is_set {
            true => {
                let system = system.map(|system| pair("system", &system));
                TerminologyRequest::new(
                    "validate",
                    true,
                    [pair("url", ancestor), pair("code", code)]
                        .into_iter()
                        .chain(system)
                        .collect(),
                )
            }
            false => TerminologyRequest::new(
                "subsumes",
                true,
                vec![
                    pair("system", &system?),
                    pair("codeA", ancestor),
                    pair("codeB", code),
                ],
            ),
        })
    }

    fn of_server(self, url: &str) -> TerminologyRequest {
        TerminologyRequest {
            of_fhir: true,
            parameters: vec![(String::from("url"), url.to_owned())],
            ..self
        }
    }
}

/// Returns the URL of a code system by its name in guides and documents.
fn system_of(terminology: &str) -> Option<String> {
    const NAMES: [(&str, &str); 8] = [
        ("SNOMEDCT", "http://snomed.info/sct"),
        ("LOINC", "http://loinc.org"),
        ("ATC", "http://www.whocc.no/atc"),
        ("ICD10", "http://hl7.org/fhir/sid/icd-10"),
        ("ICD10CM", "http://hl7.org/fhir/sid/icd-10-cm"),
        ("ICD9CM", "http://hl7.org/fhir/sid/icd-9-cm"),
        ("ICPC2", "http://hl7.org/fhir/sid/icpc-2"),
        ("RXNORM", "http://www.nlm.nih.gov/research/umls/rxnorm"),
    ];
    if terminology.contains(':') {
        return Some(terminology.to_owned());
    }
    let name: String = terminology
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_uppercase())
        .collect();
    NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, system)| (*system).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(operation: &str, parameters: &str) -> TerminologyRequest {
        let (operation, service, parameters) = (
            operation.to_owned(),
            String::from("hl7.org/fhir/4.0"),
            parameters.to_owned(),
        );
        TerminologyRequest::from_call(&TerminologyCall::Function {
            operation,
            service,
            parameters,
        })
    }

    fn address(question: &TerminologyRequest) -> Result<String, TerminologyError> {
        question.address(&[])
    }

    #[test]
    fn terminology_requests_become_addresses() {
        for (operation, parameters, expected) in [
            (
                "expand",
                "http://snomed.info/sct?fhir_vs=isa/1",
                "ValueSet/$expand?url=http%3A%2F%2Fsnomed.info%2Fsct%3Ffhir_vs%3Disa%2F1",
            ),
            (
                "EXPAND",
                "url=http%3A%2F%2Fx%2Fa&filter=a b",
                "ValueSet/$expand?url=http%3A%2F%2Fx%2Fa&filter=a%20b",
            ),
            (
                "validate",
                "system=http://s&code=1",
                "CodeSystem/$validate-code?url=http%3A%2F%2Fs&code=1",
            ),
            (
                "validate",
                "url=http://v&system=http://s&code=1",
                "ValueSet/$validate-code?url=http%3A%2F%2Fv&system=http%3A%2F%2Fs&code=1",
            ),
            (
                "subsumes",
                "system=s&codeA=1&codeB=2",
                "CodeSystem/$subsumes?system=s&codeA=1&codeB=2",
            ),
        ] {
            assert_eq!(address(&function(operation, parameters)).unwrap(), expected);
        }
        for (operation, parameters) in [
            ("expand", "filter=a"),
            ("validate", "code=1"),
            ("subsumes", "system=s&codeA=1"),
            ("guess", ""),
        ] {
            assert!(
                matches!(
                    address(&function(operation, parameters)),
                    Err(TerminologyError::Refused(_))
                ),
                "{operation}"
            );
        }
    }

    #[test]
    fn addresses_of_value_sets_in_braces() {
        for (uri, url) in [
            (
                "terminology://fhir.example.org/ValueSet/$expand?url=http://x/a",
                "http://x/a",
            ),
            (
                "terminology://Snomed-CT/hierarchy?rootConceptId=50697003",
                "http://snomed.info/sct?fhir_vs=isa/50697003",
            ),
            (
                "terminology://hl7.org/fhir/ValueSet/surface",
                "http://hl7.org/fhir/ValueSet/surface",
            ),
        ] {
            assert_eq!(
                TerminologyRequest::from_call(&TerminologyCall::Uri(uri.to_owned()))
                    .url
                    .as_deref(),
                Some(url)
            );
        }
    }
}
