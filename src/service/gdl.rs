//! Guides: upload, list, get, and their execution on one EHR or several.

use super::Service;
use super::call::Call;
use super::content::malformed;
use super::error::Failure;
use super::http::Response;
use super::negotiate::{Return, choose, json_body, text_or_json_body};
use super::time::iso;
use crate::aql::{Cell, Parameter, Parameters};
use crate::gdl::bind::value_of_json;
use crate::gdl::output::{EhrRun, QueryRun, response};
use crate::gdl::time::Moment;
use crate::gdl::value::Value as Datum;
use crate::gdl::{self, BindingQuery, CompiledGuide, Instance, Options, QueryColumn, RunInput};
use crate::rm::json::{elements, members};
use crate::store::repository::{Definition, DefinitionKind, Repository};
use serde_json::{Value, json};
use std::rc::Rc;

const KIND: DefinitionKind = DefinitionKind::Guide;
/// Guides are immutable by their id: the version of each is this one.
pub(crate) const VERSION: &str = "1.0.0";

impl<R: Repository> Service<R> {
    /// POST /definition/gdl: a guide as it is, or as `{"gdl": …}`.
    pub(super) async fn guide_upload(&self, call: &Call<'_>) -> Result<Response, Failure> {
        text_or_json_body(call.request)?;
        let text = guide_text(call.text()?)?;
        let guide = gdl::parse(&text).map_err(|problems| Failure::in_text(400, "guide", &text, &problems))?;
        if guide.id.is_empty() {
            return Err(Failure::in_text(400, "guide", &text, &guide.problems));
        }
        call.allowed(&guide.id)?;
        let compiled = guide.compile();
        let definition = Definition {
            name: guide.id.clone(),
            version: VERSION.to_owned(),
            format: String::from(if guide.gdl_version.starts_with('2') { "gdl2" } else { "gdl" }),
            created: iso(call.now),
            summary: json!({ "concept": guide.term(&guide.concept, &guide.original_language), "language": guide.original_language }).to_string(),
            body: text.clone(),
        };
        self.repository.define(KIND, definition.clone()).await.map_err(Failure::of_store)?;
        let path = call.address(&["definition", "gdl", &definition.name]);
        let response = match call.prefer.returns {
            Return::Representation => {
                let mut entry = entry(&definition);
                let problems: Value = compiled.problems.iter().map(|p| p.one_line(&text)).collect();
                entry.as_object_mut().map(|members| members.insert(String::from("problems"), problems));
                Response::json(201, entry)
            }
            Return::Identifier => Response::json(201, json!({ "uid": definition.name })),
            Return::Minimal => Response::new(201),
        };
        Ok(call.preference_applied(response.with_header("Location", path)))
    }

    /// GET /definition/gdl
    pub(super) async fn guide_list(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let found = self.repository.definitions(KIND, "").await.map_err(Failure::of_store)?;
        Ok(Response::json(200, found.iter().filter(|d| call.allowed(&d.name).is_ok()).map(entry).collect::<Value>()))
    }

    /// GET /definition/gdl/{id}: the text as sent.
    pub(super) async fn guide_get(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let found = self.repository.definition(KIND, call.param(0), VERSION).await.map_err(Failure::of_store)?.ok_or_else(no_guide)?;
        let media_type = if found.body.trim_start().starts_with('{') { "application/json" } else { "text/plain" };
        choose(call.request, &[media_type])?;
        Ok(Response::new(200).with_body(media_type, found.body))
    }

    /// GET /gdl/query/{ehr_id}/{guide_id}
    pub(super) async fn guide_run(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        self.execute(call, call.param(1), &[call.param(0).to_owned()]).await
    }

    /// POST /gdl/query
    pub(super) async fn guide_run_on(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        json_body(call.request)?;
        let text = call.text()?;
        let (mut guide_id, mut ehr_ids) = (None, Vec::new());
        for (key, value) in members(text).map_err(|m| malformed("body", text, m))? {
            match &*key {
                "guide_id" => guide_id = serde_json::from_str::<String>(value).ok(),
                "ehr_ids" => ehr_ids = serde_json::from_str::<Vec<String>>(value).map_err(|_| Failure::bad("`ehr_ids` is not a list of texts"))?,
                _ => {}
            }
        }
        let guide_id = guide_id.ok_or_else(|| Failure::bad("`guide_id` is missing"))?;
        call.allowed(&guide_id)?;
        match ehr_ids.len() {
            0 => Err(Failure::bad("`ehr_ids` is missing or empty: name the EHRs on whose data the guide is executed")),
            many if many > self.config.limits.guide_ehrs => {
                Err(Failure::bad(format!("`ehr_ids` names {many} EHRs, at most {} are allowed in one call", self.config.limits.guide_ehrs)))
            }
            _ => self.execute(call, &guide_id, &ehr_ids).await,
        }
    }

    async fn execute(&self, call: &Call<'_>, guide_id: &str, ehr_ids: &[String]) -> Result<Response, Failure> {
        let guide = self.guide(guide_id).await?;
        let mut runs = Vec::with_capacity(ehr_ids.len());
        for ehr_id in ehr_ids {
            let run = self.execute_on(call, &guide, ehr_id).await;
            runs.push(run.map_err(|failure| failure.within(&format!("EHR {}", ehr_id.chars().take(40).collect::<String>())))?);
        }
        let response = response(&guide, runs, millis(call.clock() - call.now));
        let body = serde_json::to_string(&response).map_err(|_| Failure::new(500, "the result cannot be written as JSON"))?;
        Ok(Response::new(200).with_body("application/json", body))
    }

    async fn execute_on(&self, call: &Call<'_>, guide: &CompiledGuide, ehr_id: &str) -> Result<EhrRun, Failure> {
        call.allowed_on(guide.guide().id.as_str(), ehr_id)?;
        let ehr = self.ehr_with_id(ehr_id).await?;
        let now = Moment::from_millis(call.now / 1000, 0);
        let mut instances: Vec<Vec<Instance>> = vec![Vec::new(); guide.guide().bindings.len()];
        let mut queries = Vec::new();
        for query in guide.queries() {
            let started = call.clock();
            let parameters = Parameters::from([(String::from("ehr_id"), Parameter::Text(ehr.ehr_id.clone()))]);
            let result = self.rows(call, &query.aql, &parameters, &ehr.ehr_id).await?;
            let rows = result.rows.iter().map(|row| row.iter().map(datum).collect::<Vec<_>>());
            let found = query.instances(rows, now);
            let aql = query.aql.replace("$ehr_id", &format!("'{}'", ehr.ehr_id));
            queries.push(QueryRun { id: query.id.clone(), aql, time: millis(call.clock() - started), value: Vec::new() });
            if let Some(place) = instances.get_mut(query.binding) {
                *place = found;
            }
        }
        let options = Options { trace: call.request.query_value("trace") == Some("true"), ..Options::default() };
        let language = guide.guide().original_language.as_str();
        let input = RunInput { instances: &instances, now, language, options, terminology: None };
        for (query, executed) in guide.queries().iter().zip(&mut queries) {
            let selected = guide.select(query.binding, &input).last().copied();
            executed.value = used(query, selected.and_then(|i| instances.get(query.binding)?.get(i)));
        }
        let run = guide.run(&input);
        Ok(EhrRun { ehr_id: ehr.ehr_id, run, queries })
    }

    /// A guide, compiled.
    async fn guide(&self, id: &str) -> Result<Rc<CompiledGuide>, Failure> {
        let stored = self.repository.definition(KIND, id, VERSION).await.map_err(Failure::of_store)?.ok_or_else(no_guide)?;
        self.library.guide(&stored)
    }
}

fn no_guide() -> Failure {
    Failure::missing("there is no guide with this id")
}

fn entry(definition: &Definition) -> Value {
    let summary: Value = serde_json::from_str(&definition.summary).unwrap_or_default();
    json!({
        "guide_id": definition.name,
        "type": definition.format,
        "concept": summary.get("concept"),
        "language": summary.get("language"),
        "created_timestamp": definition.created,
    })
}

/// The guide in a body: the member `gdl` where the body is an object that has one, else the body itself.
fn guide_text(body: &str) -> Result<String, Failure> {
    if body.trim().is_empty() {
        return Err(Failure::bad("the body is empty: send the guide"));
    }
    let wrapped = members(body).ok().and_then(|members| members.into_iter().find(|(key, _)| key == "gdl").map(|(_, value)| value));
    match wrapped {
        None => Ok(body.to_owned()),
        Some(text) if text.starts_with('"') => serde_json::from_str(text).map_err(|_| Failure::bad("`gdl` is not a text")),
        Some(object) => Ok(object.to_owned()),
    }
}

fn datum(cell: &Cell) -> Datum {
    let mut json = String::new();
    cell.write_json(&mut json);
    match json.starts_with('[') {
        true => elements(&json).ok().and_then(|all| all.first().map(|first| value_of_json(first, 0))).unwrap_or(Datum::Null),
        false => value_of_json(&json, 0),
    }
}

/// What the instance that counts holds, by variable or path.
fn used(query: &BindingQuery, instance: Option<&Instance>) -> Vec<(String, Datum)> {
    let names = query.columns.iter().filter_map(|column| match column {
        QueryColumn::Value { path, variable } => Some(variable.clone().unwrap_or_else(|| path.clone())),
        QueryColumn::Time | QueryColumn::Source => None,
    });
    names.zip(instance.into_iter().flat_map(|i| i.values.iter().cloned())).collect()
}

fn millis(micros: i64) -> f64 {
    micros as f64 / 1000.0
}
