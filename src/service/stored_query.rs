//! Stored queries: store, list, show. The module `query` executes them.

use super::Service;
use super::auth::Denied;
use super::call::{Call, validated};
use super::content::malformed;
use super::dialect::Dialect;
use super::error::Failure;
use super::http::Response;
use super::ids::{check_addressable, is_version, select_version};
use super::negotiate::{Return, choose, is_text_body};
use super::route::is_reserved_name;
use super::time::iso;
use super::validators::{
    DEFINITION_ATTEMPTS, definition_etag, definition_response, has_preconditions,
};
use crate::aql;
use crate::diag::Severity;
use crate::rm::json;
use crate::store::repository::{Definition, DefinitionKind, Repository, StoreError};
use serde_json::{Map, Value, json};

const KIND: DefinitionKind = DefinitionKind::Query;

/// The maximum bytes of the texts of a list of stored queries. If they have more together, each
/// text that is longer than an equal share of them is cut.
const MAX_LISTED: usize = 10_000_000;

/// The maximum number of stored queries that are read together.
const TOGETHER: usize = 1_000;

/// The maximum number of versions of one stored query: each execution without a complete version
/// reads all.
const MAX_VERSIONS: usize = 1_000;

impl<R: Repository> Service<R> {
    /// PUT /query/{name}/{version}, PUT /definition/query/{name}[/{version}]
    pub(super) async fn query_store(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let name = call.param(0)?;
        check_name(name)?;
        check_language(call)?;
        call.check_json_acceptable()?;
        let mut definition = self.readable_query(call, name, query_text(call)?)?;
        // Another request may store the version between the checks and this change. A second check
        // then has the answer: the next version, or a precondition that does not hold any more.
        let is_version_named = call.optional_param(1).is_some();
        let attempts = match is_version_named {
            true => 1 + usize::from(has_preconditions(call.request)),
            false => DEFINITION_ATTEMPTS,
        };
        for _ in 0..attempts {
            self.check_version_to_store(call, &mut definition).await?;
            match self.repository.define(KIND, definition.clone()).await {
                Err(StoreError::DefinitionExists) => {}
                outcome => {
                    outcome.map_err(Failure::of_store)?;
                    return Ok(stored(call, &definition));
                }
            }
        }
        Err(match is_version_named {
            true => Failure::of_store(StoreError::DefinitionExists),
            // The client named no version, so none of them is in conflict with its request.
            false => Denied::busy().failure(),
        })
    }

    /// Returns the definition of a query that can be stored, without its version.
    pub(super) fn readable_query(
        &self,
        call: &Call<'_>,
        name: &str,
        text: String,
    ) -> Result<Definition, Failure> {
        check_name(name)?;
        self.check_query(&text)?;
        Ok(Definition {
            name: name.to_owned(),
            version: String::new(),
            format: String::from("aql"),
            created: iso(call.now),
            storing_id: String::new(),
            summary: String::from("{}"),
            bytes: 0,
            body: text,
        })
    }

    /// Sets the version of a query to store, and checks the preconditions of the request.
    async fn check_version_to_store(
        &self,
        call: &Call<'_>,
        definition: &mut Definition,
    ) -> Result<(), Failure> {
        definition.version = self.version_to_store(call, &definition.name).await?;
        // An address without a version is that of the latest one.
        let version = call.optional_param(1);
        self.check_stored(call, KIND, definition, version).await
    }

    /// Returns the version for storing a query: that of the path, or the next one.
    async fn version_to_store(&self, call: &Call<'_>, name: &str) -> Result<String, Failure> {
        let stored = self.versions_of(KIND, name).await?;
        if stored.len() >= MAX_VERSIONS {
            return Err(Failure::new(
                409,
                format!(
                    "the query has {MAX_VERSIONS} versions, no more are allowed: store it under another name"
                ),
            ));
        }
        match call.optional_param(1) {
            Some(version) if is_version(version) => Ok(version.to_owned()),
            Some(version) => Err(Failure::bad_request(format!(
                "the version `{version}` is not complete: expected three numbers such as `1.0.0`"
            ))),
            None if call.dialect.next_version_on_store() => next_version(&stored),
            None => Err(Failure::bad_request(
                "the version is missing: store the query under `/query/{name}/{version}`",
            )),
        }
    }

    /// GET /definition/query[/{prefix}]
    pub(super) async fn query_list(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        // Without a prefix, all queries are listed.
        let prefix = call.optional_param(0).unwrap_or_default();
        let listed = self.repository.definitions(KIND, prefix).await;
        let mut listed = listed.map_err(Failure::of_store)?;
        // A permission may name single queries. The list has those that the caller may read, and
        // the others do not count.
        listed.retain(|d| call.check_named_permission(&d.name).is_ok());
        let (bytes, longest) = bytes_of_list(listed.iter().map(|d| d.bytes));
        call.room(bytes).await?;
        let mut entries = Vec::with_capacity(listed.len());
        for (number, some) in listed.chunks(TOGETHER).enumerate() {
            if number > 0 {
                call.pause().await;
            }
            let ids: Vec<_> = some.iter().map(|d| (&*d.name, &*d.version)).collect();
            let found = self.repository.definition_bodies(KIND, &ids, longest).await;
            for mut definition in found.map_err(Failure::of_store)? {
                if definition.bytes > longest {
                    definition.body.push('…');
                }
                entries.push(Value::Object(detail(call.dialect, &definition)));
            }
        }
        Ok(Response::json(200, Value::Array(entries)))
    }

    /// GET /definition/query/{name}/{version}
    pub(super) async fn query_detail(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let found = self
            .stored_query(call.param(0)?, call.optional_param(1))
            .await?;
        let body = Value::Object(detail(call.dialect, &found)).to_string();
        Ok(definition_response(
            call.request,
            &found,
            &definition_etag(&found),
            "application/json",
            body,
        ))
    }

    /// Returns the stored query that a name and a complete, partial or absent version select.
    pub(crate) async fn stored_query(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<Definition, Failure> {
        self.select_definition(KIND, None, name, version)
            .await?
            .ok_or_else(|| {
                Failure::not_found("there is no stored query with this name and version")
            })
    }

    /// Checks that a query is valid once its parameters are bound.
    fn check_query(&self, text: &str) -> Result<(), Failure> {
        if text.len() > self.config.limits.aql {
            return Err(Failure::too_large("query", self.config.limits.aql));
        }
        let (ast, mut diagnostics) = aql::parse(text);
        if let Some(ast) = ast {
            let options = aql::CheckOptions {
                // No parameter is bound yet, and a draft may leave them so.
                draft: true,
                ..aql::CheckOptions::default()
            };
            diagnostics.extend(
                aql::check(&ast, &aql::Parameters::new(), &options)
                    .err()
                    .into_iter()
                    .flatten(),
            );
        }
        let wrong = diagnostics.iter().any(|d| d.severity == Severity::Error);
        if wrong {
            Err(Failure::in_text(400, "query", text, &diagnostics))
        } else {
            Ok(())
        }
    }
}

/// Returns the bytes of the texts of a list, and the maximum bytes of a text that is not cut, for
/// the sizes of the whole texts.
fn bytes_of_list(sizes: impl ExactSizeIterator<Item = usize> + Clone) -> (usize, usize) {
    let total = sizes.clone().fold(0, usize::saturating_add);
    if total <= MAX_LISTED {
        return (total, MAX_LISTED);
    }
    let longest = MAX_LISTED / sizes.len().max(1);
    (sizes.map(|size| size.min(longest)).sum(), longest)
}

/// Checks that the text is declared as AQL, or not declared.
fn check_language(call: &Call<'_>) -> Result<(), Failure> {
    let language = ["type", "query_type"]
        .into_iter()
        .find_map(|key| call.request.query_value(key))
        .filter(|t| !t.is_empty());
    match language.filter(|t| !t.eq_ignore_ascii_case("aql")) {
        Some(other) => Err(Failure::bad_request(format!(
            "the query type `{other}` is unknown: expected `{}`",
            call.dialect.aql_type()
        ))),
        None => Ok(()),
    }
}

/// Returns the response to a query that was stored.
fn stored(call: &Call<'_>, definition: &Definition) -> Response {
    let path = match call.dialect {
        Dialect::V1 => call.address(&["query", &definition.name, &definition.version]),
        Dialect::Its => {
            call.address(&["definition", "query", &definition.name, &definition.version])
        }
    };
    let response = match call.prefer.returns {
        Return::Representation => {
            Response::json(200, Value::Object(detail(call.dialect, definition)))
        }
        Return::Identifier => Response::json(200, json!({ "uid": qualified_name(definition) })),
        Return::Minimal => Response::new(200),
    };
    let response = validated(response, &definition_etag(definition), &definition.created);
    call.preference_applied(response.with_header("Location", path))
}

/// Returns the version behind the stored ones: the next patch of the highest one.
///
/// # Errors
/// 409 behind the greatest number, 500 if a stored version has no number.
fn next_version(stored: &[Definition]) -> Result<String, Failure> {
    let Some(last) = select_version(stored.iter().map(|d| d.version.as_str()), None) else {
        return Ok(String::from("1.0.0"));
    };
    let broken = |_| Failure::broken("the version of a stored query is no version");
    let last = semver::Version::parse(last).map_err(broken)?;
    // A client may store the greatest number of 64 bits itself.
    let patch = last.patch.checked_add(1).ok_or_else(|| {
        Failure::new(
            409,
            format!(
                "no version follows `{last}`, whose patch number is the greatest: state a version"
            ),
        )
    })?;
    Ok(semver::Version::new(last.major, last.minor, patch).to_string())
}

/// Returns the name of a stored query with its version: `name/1.0.0`.
pub(crate) fn qualified_name(definition: &Definition) -> String {
    format!("{}/{}", definition.name, definition.version)
}

/// Returns the fields of a stored query in lists and details.
pub(crate) fn detail(dialect: Dialect, definition: &Definition) -> Map<String, Value> {
    let Definition {
        name,
        version,
        created,
        body,
        ..
    } = definition;
    let members = [
        ("name", name.as_str()),
        ("type", dialect.aql_type()),
        ("version", version),
        ("saved", created),
        ("q", body),
    ];
    members
        .into_iter()
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .collect()
}

/// Returns the query text of a body: plain text, or `q` of a JSON object.
fn query_text(call: &Call<'_>) -> Result<String, Failure> {
    let text = call.text()?;
    if is_text_body(call.request) {
        return if text.trim().is_empty() {
            Err(Failure::bad_request(
                "the body is empty: send the query text",
            ))
        } else {
            Ok(text.to_owned())
        };
    }
    let body = json::members(text).map_err(|problem| malformed("body", text, problem))?;
    // Of a member that is repeated, the last one counts, as in `JSON.parse`.
    let q = body.iter().rev().find(|(key, _)| key == "q");
    q.and_then(|(_, q)| json::text(q))
        .filter(|q| !q.trim().is_empty())
        .ok_or_else(|| {
            Failure::bad_request("the body has no text `q`: expected `{\"q\": \"SELECT …\"}`")
        })
}

/// Checks that paths can name a query, and that its characters are those of names.
fn check_name(name: &str) -> Result<(), Failure> {
    check_addressable("stored query", name)?;
    let fits = |c: char| c.is_alphanumeric() || "_.:-~+@".contains(c);
    match name {
        _ if is_reserved_name(name) => Err(Failure::bad_request(
            "the name `aql` is reserved for ad-hoc queries",
        )),
        _ if name.len() > 255 || !name.chars().all(fits) => Err(Failure::bad_request(
            "the name of a query consists of letters, digits and `_ . : - ~ + @`, at most 255 of them",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LISTED, bytes_of_list, check_name};

    #[test]
    fn texts_of_a_long_list_are_cut_to_an_equal_share() {
        let of = |sizes: &[usize]| bytes_of_list(sizes.iter().copied());
        assert_eq!(of(&[]), (0, MAX_LISTED));
        assert_eq!(of(&[MAX_LISTED - 1, 1]), (MAX_LISTED, MAX_LISTED));
        assert_eq!(of(&[MAX_LISTED, 1]), (MAX_LISTED / 2 + 1, MAX_LISTED / 2));
        let many = vec![100; MAX_LISTED];
        assert_eq!(of(&many), (MAX_LISTED, 1));
    }

    // Clients and workerd remove the segments `.` and `..`, so no request over HTTP shows this.
    #[test]
    fn names_that_no_path_can_carry_are_refused() {
        for name in ["", ".", "..", "a b", " ", "a/b", "a\tb", "AQL"] {
            let refused = check_name(name).map_err(|failure| failure.status);
            assert_eq!(refused, Err(400), "{name:?}");
        }
        for name in ["...", "org.example::all", "a+b", "Ärzte", "a~b@c_d-e"] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
    }
}
