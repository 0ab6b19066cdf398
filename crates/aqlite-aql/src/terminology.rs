//! The terminology requests of a query as data, and the answers of openEHR's own groups and code
//! sets.
//!
//! A host with other sources reads [`terminology_calls`], fetches the answers, and passes them as a
//! [`Terminology`]. The checker writes the answers into the query, so a run needs no terminology.

use super::ast;
use super::token::{Escapes, unescape};
use aqlite_rm::terminology::{CodeGroup, rubric};
use std::fmt;

/// A terminology request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TerminologyCall {
    /// `TERMINOLOGY(operation, service, parameters)` (AQL § 3.9.5).
    Function {
        /// `expand`, `validate`, `subsumes`, `lookup`, `map`.
        operation: String,
        /// `openehr`, `hl7.org/fhir/4.0` …
        service: String,
        /// The parameters of the call, URL-encoded.
        parameters: String,
    },
    /// `matches {terminology://…}`.
    Uri(String),
}

/// The answer of a terminology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminologyAnswer {
    /// The codes of a value set.
    Codes(Vec<String>),
    /// The outcome of a test.
    Truth(bool),
    /// The text of a code.
    Text(String),
}

/// The failure of a terminology request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TerminologyError {
    /// No source answers for this service. The text is the remedy.
    Absent(String),
    /// The service refuses the request. The text is its reason.
    Refused(String),
    /// The service fails. The text is the reason.
    Failed(String),
    /// The service does not answer in time. The text is the reason.
    Late(String),
}

/// Formats the text: the reason or the remedy.
impl fmt::Display for TerminologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (TerminologyError::Absent(text)
        | TerminologyError::Refused(text)
        | TerminologyError::Failed(text)
        | TerminologyError::Late(text)) = self;
        f.write_str(text)
    }
}

impl std::error::Error for TerminologyError {}

/// A source of value sets beside openEHR's own: uploaded ones, answers that the host has fetched.
pub trait Terminology {
    /// Answers one request.
    ///
    /// # Errors
    /// See the variants of [`TerminologyError`].
    fn ask(&self, call: &TerminologyCall) -> Result<TerminologyAnswer, TerminologyError>;
}

impl TerminologyCall {
    /// Creates the request of a function call, with its strings unescaped.
    pub(super) fn from_syntax(call: &ast::Terminology) -> TerminologyCall {
        let text = |raw: &str| unescape(raw, Escapes::Text).0;
        TerminologyCall::Function {
            operation: text(&call.operation),
            service: text(&call.service),
            parameters: text(&call.parameters),
        }
    }

    /// Returns the service of the request, as the author wrote it.
    pub fn service(&self) -> &str {
        match self {
            TerminologyCall::Function { service, .. } => service,
            TerminologyCall::Uri(uri) => uri,
        }
    }

    /// Returns the answer of openEHR's own groups and code sets; `None` if the request has another
    /// service.
    ///
    /// `TERMINOLOGY('expand', 'openehr', 'group=setting')` with the operations `expand`, `validate`
    /// (`group`, `code`), `subsumes` (`codeA`, `codeB`) and `lookup` (`code`);
    /// `terminology://openehr/setting`; `terminology://ISO_3166-1` for a code set.
    pub fn built_in(&self) -> Option<Result<TerminologyAnswer, TerminologyError>> {
        match self {
            TerminologyCall::Function {
                operation,
                service,
                parameters,
            } => service
                .eq_ignore_ascii_case("openehr")
                .then(|| answer_openehr(operation, &RequestParameters::parse(parameters))),
            TerminologyCall::Uri(uri) => {
                let address = uri.strip_prefix("terminology://")?;
                let (authority, rest) = address.split_once(['/', '?']).unwrap_or((address, ""));
                if authority.eq_ignore_ascii_case("openehr") {
                    return Some(answer_openehr("expand", &RequestParameters::parse(rest)));
                }
                CodeGroup::by_terminology_id(authority).map(|group| Ok(codes(group)))
            }
        }
    }
}

/// Returns every terminology request of a query, for a host that fetches the answers before the
/// check.
pub fn terminology_calls(ast: &ast::Query) -> Vec<TerminologyCall> {
    let mut calls = Vec::new();
    for column in &ast.select.columns {
        if let ast::ColumnValue::Expr(expr) = &column.value {
            collect_from_expr(expr, &mut calls);
        }
    }
    if let Some(condition) = &ast.condition {
        collect_from_condition(condition, &mut calls);
    }
    calls
}

fn collect_from_condition(condition: &ast::Condition, calls: &mut Vec<TerminologyCall>) {
    match condition {
        ast::Condition::And(all) | ast::Condition::Or(all) => {
            all.iter().for_each(|c| collect_from_condition(c, calls))
        }
        ast::Condition::Not(inner) => collect_from_condition(inner, calls),
        ast::Condition::Compare(compare) => [&compare.left, &compare.right]
            .into_iter()
            .for_each(|e| collect_from_expr(e, calls)),
        ast::Condition::Matches(_, ast::MatchesOperand::Terminology(call)) => {
            calls.push(TerminologyCall::from_syntax(call))
        }
        ast::Condition::Matches(_, ast::MatchesOperand::Uri(uri)) => {
            calls.push(TerminologyCall::Uri(uri.text.clone()))
        }
        ast::Condition::Matches(_, ast::MatchesOperand::List(items)) => {
            calls.extend(items.iter().filter_map(|i| match i {
                ast::MatchesItem::Terminology(call) => Some(TerminologyCall::from_syntax(call)),
                _ => None,
            }))
        }
        ast::Condition::Exists(_) | ast::Condition::Like(..) => {}
    }
}

fn collect_from_expr(expr: &ast::Expr, calls: &mut Vec<TerminologyCall>) {
    match expr {
        ast::Expr::Terminology(call) => calls.push(TerminologyCall::from_syntax(call)),
        ast::Expr::Call(call) => call
            .arguments
            .iter()
            .for_each(|e| collect_from_expr(e, calls)),
        ast::Expr::Path(_) | ast::Expr::Literal(_) | ast::Expr::Parameter(_) => {}
    }
}

/// The parameters of a request: `key=value&…`, or one value without a key.
struct RequestParameters<'t>(Vec<(&'t str, &'t str)>);

impl<'t> RequestParameters<'t> {
    fn parse(text: &'t str) -> RequestParameters<'t> {
        let pairs = text
            .trim_start_matches('?')
            .split('&')
            .filter(|p| !p.is_empty());
        RequestParameters(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or(("", pair)))
                .collect(),
        )
    }

    fn get(&self, key: &str) -> Option<&'t str> {
        self.0
            .iter()
            .find(|(k, _)| k.eq_ignore_ascii_case(key))
            .map(|(_, value)| *value)
    }

    fn need(&self, key: &str) -> Result<&'t str, TerminologyError> {
        self.get(key)
            .ok_or_else(|| TerminologyError::Refused(format!("the parameter `{key}` is missing")))
    }

    fn group(&self) -> Result<&'static CodeGroup, TerminologyError> {
        let name = ["group", "url", "code_set", ""]
            .into_iter()
            .find_map(|key| self.get(key))
            .unwrap_or_default();
        let identifier = name
            .replace("%20", "_")
            .replace([' ', '-', '+'], "_")
            .to_ascii_lowercase();
        let found = CodeGroup::by_name(&identifier).or_else(|| CodeGroup::by_terminology_id(name));
        found.ok_or_else(|| {
            TerminologyError::Refused(format!(
                "openEHR has no group or code set `{name}`; name one: `group=setting`"
            ))
        })
    }
}

fn answer_openehr(
    operation: &str,
    parameters: &RequestParameters<'_>,
) -> Result<TerminologyAnswer, TerminologyError> {
    Ok(match operation.to_ascii_lowercase().as_str() {
        "expand" => codes(parameters.group()?),
        "validate" => {
            TerminologyAnswer::Truth(parameters.group()?.contains(parameters.need("code")?))
        }
        "subsumes" => {
            TerminologyAnswer::Truth(parameters.need("codeA")? == parameters.need("codeB")?)
        }
        "lookup" => {
            let code = parameters
                .need("code")
                .or_else(|missing| parameters.get("").ok_or(missing))?;
            let text = rubric(code).ok_or_else(|| {
                TerminologyError::Refused(format!("the rubric of `{code}` is not known here"))
            })?;
            TerminologyAnswer::Text(text.to_owned())
        }
        _ => {
            return Err(TerminologyError::Refused(format!(
                "`{operation}` is no operation of `openehr`: expected expand, validate, subsumes or lookup"
            )));
        }
    })
}

fn codes(group: &CodeGroup) -> TerminologyAnswer {
    TerminologyAnswer::Codes(group.codes().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Option<Result<TerminologyAnswer, TerminologyError>> {
        TerminologyCall::Uri(text.to_owned()).built_in()
    }

    fn function(operation: &str, parameters: &str) -> Result<TerminologyAnswer, TerminologyError> {
        let call = TerminologyCall::Function {
            operation: operation.to_owned(),
            service: "openEHR".to_owned(),
            parameters: parameters.to_owned(),
        };
        call.built_in().unwrap()
    }

    #[test]
    fn groups_have_identifiers_and_names() {
        let codes =
            |codes: &str| TerminologyAnswer::Codes(codes.split(' ').map(str::to_owned).collect());
        assert_eq!(
            function("expand", "group=null_flavours"),
            Ok(codes("271 253 272 273"))
        );
        assert_eq!(
            function("EXPAND", "Null%20flavours"),
            Ok(codes("271 253 272 273"))
        );
        assert_eq!(
            uri("terminology://openehr/null_flavours"),
            Some(Ok(codes("271 253 272 273")))
        );
        assert_eq!(
            uri("terminology://openehr?group=null%20flavours"),
            Some(Ok(codes("271 253 272 273")))
        );
        assert!(
            matches!(uri("terminology://ISO_3166-1"), Some(Ok(TerminologyAnswer::Codes(all))) if all.len() > 200)
        );
        assert_eq!(
            uri("terminology://snomed-ct/hierarchy?rootConceptId=1"),
            None
        );
    }

    #[test]
    fn other_operations() {
        assert_eq!(
            function("validate", "group=setting&code=225"),
            Ok(TerminologyAnswer::Truth(true))
        );
        assert_eq!(
            function("validate", "group=setting&code=1"),
            Ok(TerminologyAnswer::Truth(false))
        );
        assert_eq!(
            function("subsumes", "codeA=225&codeB=225"),
            Ok(TerminologyAnswer::Truth(true))
        );
        assert_eq!(
            function("lookup", "code=433"),
            Ok(TerminologyAnswer::Text("event".to_owned()))
        );
        for (operation, parameters) in [
            ("expand", "group=moods"),
            ("validate", "group=setting"),
            ("lookup", "code=0815"),
            ("guess", ""),
        ] {
            assert!(
                matches!(
                    function(operation, parameters),
                    Err(TerminologyError::Refused(_))
                ),
                "{operation}"
            );
        }
    }
}
