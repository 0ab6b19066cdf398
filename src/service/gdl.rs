//! Guides: upload, list, get.

use super::Service;
use super::call::{Call, validated};
use super::error::Failure;
use super::http::Response;
use super::ids::check_addressable;
use super::negotiate::{Return, choose};
use super::time::iso;
use super::validators::{definition_etag, definition_response, listed_text, summary_of};
use crate::diag::{Diagnostic, LineIndex};
use crate::gdl::guide::MAX_BYTES;
use crate::gdl::{self, CompiledGuide};
use crate::rm::json::{self, members};
use crate::store::repository::{Definition, DefinitionKind, Repository};
use serde_json::{Value, json};
use std::rc::Rc;

pub(crate) const KIND: DefinitionKind = DefinitionKind::Guide;
/// The version of every guide: guides are immutable under their id.
pub(crate) const VERSION: &str = "1.0.0";

impl<R: Repository> Service<R> {
    /// POST /definition/gdl: a guide, or `{"gdl": …}`.
    pub(super) async fn guide_upload(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let body = call.text()?;
        call.room(body.len()).await?;
        // Reading a long guide, and checking it, takes many milliseconds without a pause.
        let turn = call.turn_for_body().await?;
        let (guide, definition) = readable_guide(call, guide_text(body)?)?;
        call.check_named_permission(&guide.id)?;
        call.check_json_acceptable()?;
        let compiled = guide.compile();
        drop(turn);
        self.define(call, KIND, &definition, Some(VERSION)).await?;
        uploaded(call, &definition, &compiled)
    }

    /// GET /definition/gdl
    pub(super) async fn guide_list(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let found = self.all_definitions(KIND).await?;
        let entries = found
            .iter()
            .filter(|d| call.check_named_permission(&d.name).is_ok())
            .map(entry)
            .collect::<Result<Value, Failure>>()?;
        Ok(Response::json(200, entries))
    }

    /// GET /definition/gdl/{id}: the text as sent.
    pub(super) async fn guide_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let found = self.stored_guide(call.param(0)?).await?;
        // A guide is stored as JSON or as ODIN, and only JSON begins with a brace.
        let media_type = if found.body.trim_start().starts_with('{') {
            "application/json"
        } else {
            "text/plain"
        };
        choose(call.request, &[media_type])?;
        let (etag, body) = (definition_etag(&found), found.body.clone());
        Ok(definition_response(
            call.request,
            &found,
            &etag,
            media_type,
            body,
        ))
    }

    /// Returns a guide, compiled.
    pub(super) async fn guide(&self, id: &str) -> Result<Rc<CompiledGuide>, Failure> {
        let listed = self.versions_of(KIND, id).await?;
        let find = |one| self.definition_cache.cached_guide(one);
        if let Some(cached) = listed.iter().find_map(find) {
            return Ok(cached);
        }
        let stored = self.select_among(KIND, None, &listed, Some(VERSION));
        let stored = stored.await?.ok_or_else(no_guide)?;
        self.definition_cache.guide(&stored)
    }

    async fn stored_guide(&self, id: &str) -> Result<Definition, Failure> {
        let found = self.select_definition(KIND, None, id, Some(VERSION));
        found.await?.ok_or_else(no_guide)
    }
}

/// Returns the data of a guide for lists, which do not read its text.
fn summary(guide: &gdl::Guide) -> String {
    let language = guide.original_language.as_str();
    let details = guide.details_in(language);
    let purpose = details.map(|d| listed_text(d.purpose.trim()));
    let concept = guide.term(&guide.concept, language).map(listed_text);
    json!({ "concept": concept, "language": listed_text(language), "purpose": purpose }).to_string()
}

/// Reads a guide that can be stored, and makes its definition. Other problems of a guide do not
/// prevent its storage: they are part of the response.
pub(super) fn readable_guide(
    call: &Call<'_>,
    text: String,
) -> Result<(gdl::Guide, Definition), Failure> {
    if text.len() > MAX_BYTES {
        return Err(Failure::too_large("guide", MAX_BYTES));
    }
    let refused = |problems: &[Diagnostic]| Failure::in_text(400, "guide", &text, problems);
    let guide = gdl::parse(&text).map_err(|problems| refused(&problems))?;
    if guide.id.is_empty() {
        return Err(refused(&guide.problems));
    }
    let excesses = guide.excesses();
    if !excesses.is_empty() {
        return Err(refused(&excesses));
    }
    check_addressable("guide", &guide.id)?;
    let definition = Definition {
        name: guide.id.clone(),
        version: VERSION.to_owned(),
        format: format_of(&guide).to_owned(),
        created: iso(call.now),
        storing_id: String::new(),
        summary: summary(&guide),
        bytes: 0,
        body: text,
    };
    Ok((guide, definition))
}

fn format_of(guide: &gdl::Guide) -> &'static str {
    if guide.gdl_version.starts_with('2') {
        "gdl2"
    } else {
        "gdl"
    }
}

/// Returns the response to an upload.
fn uploaded(
    call: &Call<'_>,
    definition: &Definition,
    compiled: &CompiledGuide,
) -> Result<Response, Failure> {
    let response = match call.prefer.returns {
        Return::Representation => {
            let mut entry = entry(definition)?;
            let index = LineIndex::new(&definition.body);
            let problems = compiled.problems.iter();
            let problems: Value = problems.map(|p| p.line_of(&index)).collect();
            entry
                .as_object_mut()
                .map(|members| members.insert(String::from("problems"), problems));
            Response::json(201, entry)
        }
        Return::Identifier => Response::json(201, json!({ "uid": definition.name })),
        Return::Minimal => Response::new(201),
    };
    let path = call.address(&["definition", "gdl", &definition.name]);
    let response = validated(response, &definition_etag(definition), &definition.created);
    Ok(call.preference_applied(response.with_header("Location", path)))
}

fn no_guide() -> Failure {
    Failure::not_found("there is no guide with this id")
}

fn entry(definition: &Definition) -> Result<Value, Failure> {
    let summary = summary_of(definition)?;
    Ok(json!({
        "guide_id": definition.name,
        "type": definition.format,
        "concept": summary.get("concept"),
        "language": summary.get("language"),
        "created_timestamp": definition.created,
    }))
}

/// Returns the guide in a body: the member `gdl` of an object, else the body itself.
fn guide_text(body: &str) -> Result<String, Failure> {
    if body.trim().is_empty() {
        return Err(Failure::bad_request("the body is empty: send the guide"));
    }
    let wrapped = members(body).ok().and_then(|members| {
        members
            .into_iter()
            .find(|(key, _)| key == "gdl")
            .map(|(_, value)| value)
    });
    match wrapped {
        None => Ok(body.to_owned()),
        // Members are raw JSON: a guide in ODIN is a quoted text, one of GDL 2 an object.
        Some(text) if text.starts_with('"') => {
            json::text(text).ok_or_else(|| Failure::bad_request("`gdl` is not a text"))
        }
        Some(object) => Ok(object.to_owned()),
    }
}
