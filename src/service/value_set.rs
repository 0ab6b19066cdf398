//! Value sets that users store: `definition/valueset/{url}`, an extension of the interface.
//!
//! A value set is a FHIR ValueSet under its canonical URL. Each write makes a new revision; the
//! newest one is in use.

use super::Service;
use super::admission::Turn;
use super::auth::Denied;
use super::call::{Call, validated};
use super::error::{Failure, shortened};
use super::fhir::{Canonical, ValueSet};
use super::http::Response;
use super::ids::check_addressable;
use super::negotiate::{Return, choose};
use super::terminology::MAX_CODES;
use super::time::iso;
use super::validators::{
    DEFINITION_ATTEMPTS, check_preconditions, definition_etag, definition_response, listed_text,
    summary_of,
};
use crate::store::repository::{Definition, DefinitionKind, Repository, StoreError};
use serde_json::{Value, json};

const KIND: DefinitionKind = DefinitionKind::ValueSet;

impl<R: Repository> Service<R> {
    /// PUT /definition/valueset/{url}
    pub(super) async fn value_set_store(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let (named, text) = (named_set(call)?, call.text()?);
        call.check_json_acceptable()?;
        call.room(text.len()).await?;
        let definition = readable_value_set(call, named, text).await?;
        for _ in 0..DEFINITION_ATTEMPTS {
            let response = self.store_value_set(call, &definition).await?;
            if let Some(response) = response {
                return Ok(response);
            }
        }
        // The client named no revision, so none of them is in conflict with its request.
        Err(Denied::busy().failure())
    }

    /// Stores a value set as the revision behind the latest one. Returns `None` if another request
    /// stored a revision after the check of the preconditions, which must be checked again.
    ///
    /// # Errors
    /// 412 for a precondition that does not hold.
    async fn store_value_set(
        &self,
        call: &Call<'_>,
        set: &Definition,
    ) -> Result<Option<Response>, Failure> {
        let url = &set.name;
        let latest = self.latest_value_set(Some(call), url).await?;
        let etag = latest.as_ref().map(definition_etag);
        check_preconditions(call.request, etag.as_deref())?;
        // A repeated upload makes no revision.
        if let Some(known) = latest.as_ref().filter(|known| known.body == set.body) {
            return Ok(Some(stored(call, known, false)));
        }
        let definition = Definition {
            version: format!("{}.0.0", next_revision(latest.as_ref())?),
            ..set.clone()
        };
        match self.repository.define(KIND, definition.clone()).await {
            Err(StoreError::DefinitionExists) => return Ok(None),
            outcome => outcome.map_err(Failure::of_store)?,
        }
        Ok(Some(stored(call, &definition, latest.is_none())))
    }

    /// GET /definition/valueset
    pub(super) async fn value_set_list(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let mut found = self
            .repository
            .definitions(KIND, "")
            .await
            .map_err(Failure::of_store)?;
        // Revisions of one URL are adjacent, the newest last.
        found.dedup_by(|later, earlier| {
            let same = later.name == earlier.name;
            if same {
                std::mem::swap(later, earlier);
            }
            same
        });
        let entries = found
            .iter()
            .filter(|d| call.check_named_permission(&d.name).is_ok())
            .map(entry)
            .collect::<Result<Value, Failure>>()?;
        Ok(Response::json(200, entries))
    }

    /// GET /definition/valueset/{url}: the resource as sent.
    pub(super) async fn value_set_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let named = named_set(call)?;
        let found = self.latest_value_set(Some(call), named.url).await?;
        let found = found.ok_or_else(no_value_set)?;
        check_version(call, named, &found).await?;
        let (etag, body) = (definition_etag(&found), found.body.clone());
        Ok(definition_response(
            call.request,
            &found,
            &etag,
            "application/json",
            body,
        ))
    }

    /// DELETE /definition/valueset/{url}
    pub(super) async fn value_set_delete(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let named = named_set(call)?;
        let url = named.url;
        // A later revision, which another request stores meanwhile, stays.
        let revisions = self.versions_of(KIND, url).await?;
        let latest = self
            .select_among(KIND, Some(call), &revisions, None)
            .await?;
        let latest = latest.ok_or_else(no_value_set)?;
        check_version(call, named, &latest).await?;
        check_preconditions(call.request, Some(&definition_etag(&latest)))?;
        // The newest one is removed last, because it stays in use until then.
        for revision in &revisions {
            self.repository
                .undefine(KIND, url, &revision.version)
                .await
                .map_err(Failure::of_store)?;
        }
        Ok(Response::new(204))
    }

    /// Returns the stored value set with this canonical URL. `None` if none is stored, or one of
    /// another version.
    pub(crate) async fn stored_value_set(
        &self,
        call: Option<&Call<'_>>,
        url: &str,
    ) -> Result<Option<ValueSet>, Failure> {
        let canonical = Canonical::read(url);
        let Some(stored) = self.latest_value_set(call, canonical.url).await? else {
            return Ok(None);
        };
        let set = read_stored(call, &stored).await?;
        Ok(Some(set).filter(|set| canonical.fits(set)))
    }

    async fn latest_value_set(
        &self,
        call: Option<&Call<'_>>,
        url: &str,
    ) -> Result<Option<Definition>, Failure> {
        self.select_definition(KIND, call, url, None).await
    }
}

/// Returns the response to an upload. `is_new` is true for the first revision.
fn stored(call: &Call<'_>, definition: &Definition, is_new: bool) -> Response {
    let status = if is_new { 201 } else { 200 };
    let response = match call.prefer.returns {
        Return::Representation => {
            Response::new(status).with_body("application/json", definition.body.clone())
        }
        Return::Identifier => Response::json(status, json!({ "uid": definition.name })),
        Return::Minimal => Response::new(if is_new { 201 } else { 204 }),
    };
    let path = call.address(&["definition", "valueset", &definition.name]);
    let response = validated(response, &definition_etag(definition), &definition.created);
    call.preference_applied(response.with_header("Location", path))
}

/// Returns the definition that an upload would make of a revision of an import.
///
/// # Errors
/// 400 for a version that is no revision, or that no other could follow.
pub(super) async fn imported_value_set(
    call: &Call<'_>,
    record: &Definition,
) -> Result<Definition, Failure> {
    let named = Canonical::read(&record.name);
    let definition = readable_value_set(call, named, &record.body).await?;
    let revision = record.version.strip_suffix(".0.0");
    match revision.and_then(|number| number.parse::<u64>().ok()) {
        None | Some(0 | u64::MAX) => Err(Failure::bad_request(format!(
            "the `version` of the definition is `{}`, expected a revision such as `1.0.0`",
            shortened(&record.version)
        ))),
        Some(_) => Ok(Definition {
            version: record.version.clone(),
            ..definition
        }),
    }
}

/// Returns the definition of a value set that can be stored, without its revision.
async fn readable_value_set(
    call: &Call<'_>,
    named: Canonical<'_>,
    text: &str,
) -> Result<Definition, Failure> {
    let _turn = call.turn(text.len()).await?;
    let set = ValueSet::read(text)
        .map_err(|why| Failure::bad_request(format!("the value set cannot be used: {why}")))?;
    check_storable(named, &set)?;
    Ok(Definition {
        name: named.url.to_owned(),
        version: String::new(),
        format: String::from("fhir-valueset"),
        created: iso(call.now),
        storing_id: String::new(),
        summary: json!({ "title": listed_text(&set.title) }).to_string(),
        bytes: 0,
        body: text.to_owned(),
    })
}

/// Reads a stored value set.
async fn read_stored(call: Option<&Call<'_>>, stored: &Definition) -> Result<ValueSet, Failure> {
    let _turn = match call {
        Some(call) => call.turn(stored.body.len()).await?,
        None => Turn::default(),
    };
    ValueSet::read(&stored.body).map_err(|why| {
        let name = &stored.name;
        let message = format!("the stored value set `{name}` cannot be read: {why}");
        Failure::new(500, message)
    })
}

/// Returns the URL and the version in the path.
fn named_set<'c>(call: &'c Call<'_>) -> Result<Canonical<'c>, Failure> {
    Ok(Canonical::read(call.param(0)?))
}

/// Checks that a stored value set has the version in the path, if that has one.
///
/// # Errors
/// 404 for another version.
async fn check_version(
    call: &Call<'_>,
    named: Canonical<'_>,
    stored: &Definition,
) -> Result<(), Failure> {
    if named.version.is_some() && !named.fits(&read_stored(Some(call), stored).await?) {
        return Err(no_value_set());
    }
    Ok(())
}

/// Checks that a value set can be stored under this address, and used then.
fn check_storable(named: Canonical<'_>, set: &ValueSet) -> Result<(), Failure> {
    let url = named.url;
    if url.trim().is_empty() {
        return Err(Failure::bad_request(
            "the URL of a value set is blank: name it as its canonical URL",
        ));
    }
    check_addressable("value set", url)?;
    if !set.url.is_empty() && Canonical::read(&set.url).url != url {
        return Err(Failure::bad_request(format!(
            "the value set calls itself `{}`, but the path calls it `{url}`",
            set.url
        )));
    }
    if !named.fits(set) {
        return Err(Failure::bad_request(format!(
            "the value set has the version `{}`, but the path names the version `{}`",
            set.version,
            named.version.unwrap_or_default()
        )));
    }
    if set.size() > MAX_CODES {
        return Err(Failure::bad_request(format!(
            "the value set lists more than {MAX_CODES} codes: divide it"
        )));
    }
    Ok(())
}

/// Returns the number of the revision after the latest one, from 1.
///
/// # Errors
/// 500 if the latest one has no number: a lower number would leave it the latest.
fn next_revision(latest: Option<&Definition>) -> Result<u64, Failure> {
    let Some(latest) = latest else {
        return Ok(1);
    };
    let next = semver::Version::parse(&latest.version)
        .ok()
        .and_then(|version| version.major.checked_add(1));
    next.ok_or_else(|| Failure::broken("the revision of a value set has no successor"))
}

fn no_value_set() -> Failure {
    Failure::not_found("there is no value set with this address")
}

fn entry(definition: &Definition) -> Result<Value, Failure> {
    let summary = summary_of(definition)?;
    Ok(
        json!({ "url": definition.name, "title": summary.get("title"), "revision": definition.version, "saved": definition.created }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(version: &str, summary: &str) -> Definition {
        Definition {
            name: String::from("u:a"),
            version: version.to_owned(),
            format: String::from("fhir-valueset"),
            created: String::new(),
            storing_id: String::new(),
            summary: summary.to_owned(),
            bytes: 0,
            body: String::new(),
        }
    }

    #[test]
    fn revision_that_is_no_version_has_no_successor() {
        let next = |version| next_revision(Some(&stored(version, "{}"))).map_err(|f| f.status);
        assert_eq!([next("1.0.0"), next("9.0.0")], [Ok(2), Ok(10)]);
        assert_eq!([next("x"), next("")], [Err(500), Err(500)]);
        assert_eq!(next_revision(None).map_err(|f| f.status), Ok(1));
    }

    #[test]
    fn value_set_with_more_codes_than_a_query_may_use_is_not_stored() {
        let set = |count: usize| {
            let concepts: Vec<_> = (0..count)
                .map(|n| json!({ "code": n.to_string() }))
                .collect();
            let set = json!({ "resourceType": "ValueSet", "compose": { "include": [{ "system": "s", "concept": concepts }] } });
            ValueSet::read(&set.to_string()).unwrap()
        };
        let stored = |count| check_storable(Canonical::read("u:a"), &set(count));
        assert_eq!(stored(MAX_CODES).map_err(|f| f.status), Ok(()));
        assert_eq!(stored(MAX_CODES + 1).map_err(|f| f.status), Err(400));
    }

    #[test]
    fn summary_that_is_no_json_is_an_internal_error() {
        assert_eq!(entry(&stored("1.0.0", "")).map_err(|f| f.status), Err(500));
        assert!(entry(&stored("1.0.0", r#"{"title":"a"}"#)).is_ok());
    }
}
