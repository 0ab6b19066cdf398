//! Errors. All have one form: `{error, message, code, errors[]}`.

use super::dialect::Dialect;
#[cfg(feature = "gzip")]
use super::gzip::{GzipError, MAX_RATIO};
use crate::diag::{Diagnostic, Finding, LineIndex, Severity};
use crate::gdl::{Exceeded, Limit};
use crate::rm::tree::{NodeRef, Tree};
use crate::store::repository::StoreError;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// An error response.
///
/// Almost every function of the service returns a [`Result`] with it. Its fields are in a box, so
/// that such a result is small: `?` moves it once for each function on the way.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Failure(Box<FailureFields>);

/// The fields of a [`Failure`].
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct FailureFields {
    /// The status code.
    pub status: u16,
    /// A sentence for people.
    pub message: String,
    /// Every single problem, as DV_CODED_TEXT with metadata (`_path`, `_line`, `_column`,
    /// `_expected`, `_found`, `_help`).
    pub(super) errors: Vec<Value>,
    pub(super) headers: Vec<(String, String)>,
}

impl Deref for Failure {
    type Target = FailureFields;

    fn deref(&self) -> &FailureFields {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut FailureFields {
        &mut self.0
    }
}

impl Failure {
    /// Creates an error with a message only.
    pub fn new(status: u16, message: impl Into<String>) -> Failure {
        Failure(Box::new(FailureFields {
            status,
            message: message.into(),
            errors: Vec::new(),
            headers: Vec::new(),
        }))
    }

    /// Returns the fields, to move values out of them.
    pub fn into_fields(self) -> FailureFields {
        *self.0
    }

    /// Creates an error for a malformed request.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(400, message)
    }

    /// Creates an error for something that does not exist.
    pub fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(404, message)
    }

    /// Creates the error for an EHR that does not exist, or that the caller must not learn of.
    pub fn no_ehr() -> Failure {
        Failure::of_store(StoreError::NoSuchEhr)
    }

    /// Creates an error for something that may be available later.
    pub fn unavailable(message: impl Into<String>) -> Failure {
        Failure::new(503, message).header("Retry-After", "5")
    }

    /// Creates an error for a broken invariant of the service. `what` has no clinical value, because
    /// the message is logged.
    pub fn broken(what: &str) -> Failure {
        let message = format!("an invariant of the service is broken: {what}");
        Failure::with_code(500, message, "SVC0602")
    }

    /// Creates an error for something larger than a limit (bytes).
    pub fn too_large(what: &str, limit: usize) -> Failure {
        Failure::new(
            413,
            format!("the {what} is larger than the limit of {limit} bytes"),
        )
    }

    /// Creates an error for a line of a body that is larger than a limit (bytes).
    pub fn too_long_line(number: u64, limit: usize) -> Failure {
        let failure = Failure::too_large(&format!("line {number}"), limit);
        let mut error = coded(failure.message.clone(), "SVC0302");
        error.insert("_line".into(), number.into());
        failure.with_error(error)
    }

    /// Creates an error for a result above the limit of results (bytes).
    pub fn result_too_large(what: &str, limit: usize) -> Failure {
        Failure::new(
            422,
            format!("{what} would be larger than the limit of {limit} bytes"),
        )
    }

    /// Creates an error for a definition that an earlier release stored and this one cannot read.
    pub fn stored(what: &str, name: &str, source: &str, problems: &[Diagnostic]) -> Failure {
        Failure::in_text(422, what, source, problems).within(&format!(
            "the stored {what} `{name}` cannot be read; store it again within the limits"
        ))
    }

    /// Creates an error for a body that cannot be read or decompressed.
    #[cfg(feature = "gzip")]
    pub fn of_gzip(error: GzipError) -> Failure {
        match error {
            GzipError::Malformed => Failure::bad_request(
                "the body cannot be read: it is cut off, its chunks are malformed, or it is not gzip as its Content-Encoding states",
            ),
            GzipError::Members => Failure::new(
                413,
                "the body has too many short gzip members: compress it as one",
            ),
            GzipError::Ratio => Failure::new(
                413,
                format!(
                    "the body expands to more than {MAX_RATIO} times its size: send it uncompressed, or in smaller parts"
                ),
            ),
        }
    }

    /// Creates an error for a document that cannot be read as its class: 400 on both mounts.
    pub fn unreadable(what: &str, findings: &[Finding]) -> Failure {
        Failure::with_findings(400, format!("the {what} cannot be read"), findings)
    }

    /// Creates an error for a well-formed document that breaks rules.
    pub fn invalid(dialect: Dialect, what: &str, findings: &[Finding]) -> Failure {
        Failure::with_findings(
            dialect.invalid_content(),
            format!("the {what} is not valid"),
            findings,
        )
    }

    /// Creates an error for a document in a simplified format with unusable keys: 400 on both
    /// mounts.
    pub fn unconsumed(dialect: Dialect, findings: &[Finding]) -> Failure {
        let keys: Vec<&str> = findings
            .iter()
            .filter(|f| is_of_key(f))
            .map(|f| f.path.as_str())
            .collect();
        let message = match dialect {
            Dialect::Its if !keys.is_empty() => {
                format!("Could not consume Parts [{}]", keys.join(", "))
            }
            _ => String::from("the composition cannot be read"),
        };
        Failure::with_findings(400, message, findings).map_errors(|error| with_key(error, None))
    }

    /// Adds the key of a simplified format to each problem.
    pub fn with_keys(self, keys: &BTreeMap<String, String>) -> Failure {
        self.map_errors(|error| with_key(error, Some(keys)))
    }

    fn with_findings(status: u16, message: String, findings: &[Finding]) -> Failure {
        let errors = findings.iter().filter(|f| f.severity == Severity::Error);
        let message = with_listed(message, errors.map(Finding::one_line));
        Failure::new(status, message).with_errors(findings.iter().map(of_finding).collect())
    }

    /// Creates an error for a text with problems, each with its position.
    pub fn in_text(status: u16, what: &str, source: &str, diagnostics: &[Diagnostic]) -> Failure {
        let index = LineIndex::new(source);
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
        let lines = errors.map(|d| d.line_of(&index));
        let message = with_listed(format!("the {what} has errors"), lines);
        // A text of megabytes may have a problem at each of its tokens.
        let listed = diagnostics.iter().take(MAX_ERRORS);
        Failure::new(status, message)
            .with_errors(listed.map(|d| of_diagnostic(d, &index)).collect())
    }

    /// Creates an error for a run of a guide that exceeded a limit. The caller can request less, so
    /// it is no error of the service.
    pub fn exceeded(exceeded: &Exceeded) -> Failure {
        let status = match exceeded.limit {
            Limit::Broken(_) => 500,
            Limit::Time => 408,
            _ => 400,
        };
        let mut error = coded(exceeded.to_string(), exceeded.code());
        error.insert("_help".into(), exceeded.help().into());
        Failure::new(status, format!("{exceeded}; {}", exceeded.help())).with_error(error)
    }

    /// Creates an error for an error of a repository, for operations without a more specific one.
    pub fn of_store(error: StoreError) -> Failure {
        let message = error.to_string();
        match error {
            StoreError::NoSuchEhr | StoreError::NoSuchContribution => Failure::not_found(message),
            StoreError::OtherKind { .. } => Failure::with_code(400, message, "SVC0204"),
            StoreError::OtherTemplate { .. } => Failure::with_code(400, message, "SVC0203"),
            StoreError::OtherArchetype { .. } => Failure::with_code(400, message, OTHER_ARCHETYPE),
            StoreError::OtherPersistence { .. } => {
                Failure::with_code(400, message, OTHER_PERSISTENCE)
            }
            StoreError::EhrExists
            | StoreError::StatusExists
            | StoreError::SubjectExists
            | StoreError::UidExists(_)
            | StoreError::DirectoryExists
            | StoreError::NotModifiable
            | StoreError::PreconditionFailed
            | StoreError::DefinitionExists
            | StoreError::TemplateInUse => Failure::new(409, message),
            StoreError::SnapshotGone => Failure::new(410, message),
            // The tags that a change relies on are its precondition, even if the client names none.
            StoreError::TagsChanged => Failure::new(412, message),
            StoreError::NoSuchSnapshot => Failure::bad_request(message),
            // An object without a version has none that the client could read instead.
            StoreError::Stale { latest, .. } if latest.is_empty() => {
                Failure::new(409, "the preceding version does not exist")
            }
            StoreError::Stale { latest, .. } => {
                Failure::new(409, message).header("ETag", format!("\"{latest}\""))
            }
            StoreError::Unavailable(_) => Failure::unavailable(format!(
                "{message}; try again later, and read first whether the change was written"
            )),
            StoreError::Corrupt { ehr_id, .. } => Failure::corrupt(message, ehr_id),
            StoreError::Failed(_) => Failure::new(500, message),
        }
    }

    /// Creates an error with one problem, which has a code.
    fn with_code(status: u16, message: String, code: &str) -> Failure {
        Failure::new(status, message.clone()).with_error(coded(message, code))
    }

    /// Creates an error for an error of a repository about the update of a COMPOSITION at its own
    /// address: a change of a property that all its versions share is invalid content.
    pub fn of_update(dialect: Dialect, error: StoreError) -> Failure {
        let (code, path) = match &error {
            StoreError::OtherArchetype { .. } => (OTHER_ARCHETYPE, "/archetype_node_id"),
            StoreError::OtherPersistence { .. } => {
                (OTHER_PERSISTENCE, "/category/defining_code/code_string")
            }
            _ => return Failure::of_store(error),
        };
        let finding = Finding::error(code, path, error.to_string());
        Failure::invalid(dialect, "composition", &[finding])
    }

    /// Creates an error for stored data that differ from the committed data. No response uses these
    /// data. The message is written to the log, and names no EHR.
    fn corrupt(message: String, ehr_id: String) -> Failure {
        let mut error = coded(message.clone(), "SVC0601");
        error.insert("_ehr_id".into(), ehr_id.into());
        error.insert(
            "_help".into(),
            "restore the database from a backup, or the EHR from an export".into(),
        );
        Failure::new(500, message).with_error(error)
    }

    /// Creates the error for two values of one parameter.
    pub fn repeated(name: &str) -> Failure {
        Failure::bad_request(format!(
            "the parameter `{name}` is given twice, with different values"
        ))
    }

    /// Replaces the problems.
    fn with_errors(mut self, errors: Vec<Value>) -> Failure {
        self.errors = errors;
        self
    }

    /// Changes each problem.
    fn map_errors(mut self, change: impl FnMut(Value) -> Value) -> Failure {
        self.errors = std::mem::take(&mut self.errors)
            .into_iter()
            .map(change)
            .collect();
        self
    }

    /// Adds a problem.
    fn with_error(mut self, error: Map<String, Value>) -> Failure {
        self.errors.push(Value::Object(error));
        self
    }

    /// Adds the name of the part of the request to the message.
    pub fn within(mut self, part: &str) -> Failure {
        self.message = format!("{part}: {}", self.message);
        self
    }

    /// Adds a remedy to the message.
    pub fn with_help(mut self, help: &str) -> Failure {
        self.message = format!("{}; {help}", self.message);
        self
    }

    /// Adds the path of the part of the request that has the problems to their paths. A problem
    /// without a path gets that of the part.
    pub fn below(self, part: &str) -> Failure {
        self.map_errors(|mut error| {
            let Some(members) = error.as_object_mut() else {
                return error;
            };
            let text_of = |name| members.get(name).and_then(Value::as_str);
            let path = text_of("_path").unwrap_or_default().to_owned();
            // The text of a finding begins with its path (`Finding::one_line`).
            let shown = if path.is_empty() { "/" } else { &path };
            let text = text_of("value").and_then(|text| text.strip_prefix(shown));
            let text = text.filter(|text| text.starts_with(": "));
            let text = text.map(|text| format!("{part}{path}{text}"));
            members.insert("_path".into(), format!("{part}{path}").into());
            if let Some(text) = text {
                members.insert("value".into(), text.into());
            }
            error
        })
    }

    /// Adds the number of lines that were stored before the error, and the line from which to send
    /// again.
    pub fn after_lines(mut self, stored: usize) -> Failure {
        let next = stored + 1;
        let lines = match stored {
            1 => String::from("line 1 is stored"),
            _ => format!("lines 1 to {stored} are stored"),
        };
        let text = format!("{lines}: send again from line {next}");
        self.message = format!("{}; {text}", self.message);
        let mut error = coded(text, "SVC0301");
        error.insert("_line".into(), next.into());
        self.with_error(error)
    }

    /// Replaces 422 by 400, for operations whose OpenAPI document in ITS-REST does not list 422.
    pub fn into_bad_request(mut self) -> Failure {
        // Other statuses have their own meaning and stay.
        if self.status == 422 {
            self.status = 400;
        }
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Failure {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Returns the body of the response.
    pub fn body(&self) -> Value {
        json!({ "error": reason(self.status), "message": self.message, "code": self.status, "errors": self.errors })
    }
}

/// Returns the root of a document. Every reader makes one, so a check of it is never left out.
///
/// # Errors
/// 500 for a document without a root.
pub(crate) fn root_of(tree: &Tree) -> Result<NodeRef<'_>, Failure> {
    let root = tree.root();
    root.ok_or_else(|| Failure::broken("a document has no root"))
}

/// The code of a version with another archetype than its object.
const OTHER_ARCHETYPE: &str = "SVC0205";
/// The code of a version that is persistent, and its object is not, or the reverse.
const OTHER_PERSISTENCE: &str = "SVC0206";

/// The maximum number of problems of a text in `errors`.
const MAX_ERRORS: usize = 1_000;

/// The maximum number of problems that the message of an error repeats; `errors` has more of them.
const MAX_LISTED: usize = 20;

/// Appends problems to a message, and the number of those above [`MAX_LISTED`].
fn with_listed(message: String, mut problems: impl Iterator<Item = String>) -> String {
    let shown: Vec<String> = problems.by_ref().take(MAX_LISTED).collect();
    let shown = shown.join(", ");
    match problems.count() {
        _ if shown.is_empty() => message,
        0 => format!("{message}: {shown}"),
        more => format!("{message}: {shown}, and {more} more"),
    }
}

/// Returns whether a finding concerns an unknown key.
fn is_of_key(finding: &Finding) -> bool {
    matches!(finding.code, "FLT0101" | "FLT0102" | "FLT0103")
}

/// Returns an error with `_key`: the key of its path, or its path if that is a key itself.
fn with_key(mut error: Value, keys: Option<&BTreeMap<String, String>>) -> Value {
    let path = error
        .get("_path")
        .and_then(Value::as_str)
        .map(str::to_owned);
    let key =
        // Without a map, the path of a problem is the key itself.
        path.and_then(|path| keys.map_or(Some(path.clone()), |keys| keys.get(&path).cloned()));
    if let (Some(key), Some(members)) = (key, error.as_object_mut()) {
        members.insert("_key".into(), key.into());
    }
    error
}

fn coded(value: String, code: &str) -> Map<String, Value> {
    let mut item = Map::new();
    item.insert("_type".into(), "DV_CODED_TEXT".into());
    item.insert("value".into(), value.into());
    item.insert(
        "defining_code".into(),
        json!({ "terminology_id": { "value": "aqlite" }, "code_string": code }),
    );
    item
}

fn of_finding(finding: &Finding) -> Value {
    let mut item = coded(finding.one_line(), finding.code);
    item.insert("_path".into(), finding.path.as_str().into());
    let details = [
        ("_expected", &finding.expected),
        ("_found", &finding.found),
        ("_label", &finding.label),
    ];
    for (key, text) in details {
        if let Some(text) = text {
            item.insert(key.into(), text.as_str().into());
        }
    }
    mark_warning(&mut item, finding.severity);
    Value::Object(item)
}

/// Marks a problem that is no error. The first error determines the code of a response.
fn mark_warning(item: &mut Map<String, Value>, severity: Severity) {
    if severity == Severity::Warning {
        item.insert("_severity".into(), "warning".into());
    }
}

fn of_diagnostic(diagnostic: &Diagnostic, index: &LineIndex<'_>) -> Value {
    let mut item = coded(diagnostic.message.clone(), diagnostic.code);
    let (line, column) = index.line_column(diagnostic.span.start);
    item.insert("_line".into(), line.into());
    item.insert("_column".into(), column.into());
    if let Some(help) = &diagnostic.help {
        item.insert("_help".into(), help.as_str().into());
    }
    mark_warning(&mut item, diagnostic.severity);
    Value::Object(item)
}

/// Returns the reason phrase of a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        422 => "Unprocessable Entity",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        504 => "Gateway Timeout",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

/// Returns the beginning of an id or a name, which a message quotes.
pub(super) fn shortened(id: &str) -> String {
    id.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Span;

    #[test]
    fn thousands_of_problems_of_a_long_text_are_bounded() {
        let source = "a line\n".repeat(200_000);
        let problem = |at: usize| Diagnostic::error("AQL0101", Span::new(at, at + 1), "wrong");
        let problems: Vec<Diagnostic> = (0..4_000).map(|i| problem(i * 300)).collect();
        let failure = Failure::in_text(400, "query", &source, &problems);
        assert_eq!(failure.errors.len(), MAX_ERRORS);
        let response = failure.into_response(&super::super::Request::new("GET", "/v1"));
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert!(text.contains("and 3980 more") && text.contains("line 43, column 7: wrong"));
    }

    #[test]
    fn leading_warning_does_not_supply_the_code() {
        let mut warning = Diagnostic::error("AQL0001", Span::new(0, 1), "unusual");
        warning.severity = Severity::Warning;
        let error = Diagnostic::error("AQL0101", Span::new(0, 1), "wrong");
        let failure = Failure::in_text(400, "query", "x", &[warning, error]);
        assert_eq!(failure.errors[0]["_severity"], "warning");
        let response = failure.into_response(&super::super::Request::new("GET", "/v1"));
        assert_eq!(response.code.as_deref(), Some("AQL0101"));
    }

    #[test]
    fn document_without_a_root_is_an_internal_error() {
        let failure = root_of(&Tree::default()).map(|_| ()).unwrap_err();
        assert_eq!(failure.status, 500);
        let response = failure.into_response(&super::super::Request::new("GET", "/v1"));
        assert!(String::from_utf8_lossy(&response.body).contains("SVC0602"));
    }

    #[test]
    fn broken_invariant_of_a_guide_is_an_internal_error() {
        let ended = |limit| Exceeded {
            guide_id: String::from("x.v1"),
            place: String::from("rule gt0001"),
            statement: String::new(),
            limit,
            most: 0,
        };
        assert_eq!(Failure::exceeded(&ended(Limit::Broken("x"))).status, 500);
        assert_eq!(Failure::exceeded(&ended(Limit::Steps)).status, 400);
        assert_eq!(Failure::exceeded(&ended(Limit::Time)).status, 408);
    }
}
