//! Guides: upload, list, get, and their execution on one EHR or several.

use super::Service;
use super::call::Call;
use super::content::malformed;
use super::error::Failure;
use super::http::Response;
use super::negotiate::{Return, choose, is_ndjson, json_body, text_or_json_body};
use super::time::iso;
use crate::aql::{Cell, Parameter, Parameters};
use crate::gdl::bind::{UTC, value_of_cell};
use crate::gdl::output::{EhrRun, QueryRun, response};
use crate::gdl::time::{Moment, Precision};
use crate::gdl::{self, BindingQuery, CompiledGuide, Instance, Options, Population, Run, RunInput};
use crate::rm::json::members;
use crate::store::repository::{Definition, DefinitionKind, Repository};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::rc::Rc;

pub(crate) const KIND: DefinitionKind = DefinitionKind::Guide;
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
            summary: summary(&guide),
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
        if is_ndjson(call.request) {
            return self.guide_run_on_lines(call).await;
        }
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
        let asked = Asked::of(call, &guide)?;
        let (runs, queries) = self.run_guide(call, &guide, &asked, ehr_ids).await?;
        let response = response(&guide, runs, queries, millis(call.clock() - call.now));
        let body = serde_json::to_string(&response).map_err(|_| Failure::new(500, "the result cannot be written as JSON"))?;
        Ok(Response::new(200).with_body("application/json", body))
    }

    /// Runs a guide on EHRs, each once, in the order given; and tells how many queries that took. Few EHRs are asked one by
    /// one; for many, the query of each binding is asked once for all.
    pub(super) async fn run_guide(
        &self,
        call: &Call<'_>,
        guide: &CompiledGuide,
        asked: &Asked,
        ehr_ids: &[String],
    ) -> Result<(Vec<EhrRun>, usize), Failure> {
        let mut ids: Vec<String> = ehr_ids.iter().map(|id| id.to_ascii_lowercase()).collect();
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(id.clone()));
        for id in &ids {
            call.trail.touches(id);
            call.allowed_on(guide.guide().id.as_str(), id)?;
        }
        let (mut population, mut queries) = (None, 0);
        if ids.len() > ONE_BY_ONE {
            let found = self.population(call, guide, asked).await?;
            queries += found.times.len();
            population = Some(found);
        }
        let share = millis(1) / ids.len() as f64;
        let mut runs = Vec::with_capacity(ids.len());
        for id in ids {
            let known = population.as_mut().filter(|p| p.members.contains(&id));
            let run = match known {
                Some(population) => population.run(guide, asked, id, share),
                None => {
                    queries += guide.queries().len();
                    self.run_on(call, guide, asked, &id).await.map_err(|failure| failure.within(&named(guide, &id)))?
                }
            };
            runs.push(run);
        }
        Ok((runs, queries))
    }

    /// Asks the queries of the bindings once for every EHR that may be found by queries.
    pub(super) async fn population<'g>(&self, call: &Call<'_>, guide: &'g CompiledGuide, asked: &Asked) -> Result<Asking<'g>, Failure> {
        let mut population = Population::new(guide, asked.now);
        let started = call.clock();
        let texts: Vec<&str> = population.queries().iter().map(|query| query.population_aql.as_str()).chain([MEMBERS]).collect();
        let mut results =
            self.rows(call, &texts, &Parameters::new(), None).await.map_err(|(index, failure)| match population.queries().get(index) {
                Some(query) => failure.within(&format!("guide {}, binding {}", guide.guide().id, query.id)),
                None => failure,
            })?;
        let found = results.pop().unwrap_or_default();
        let members = found.rows.iter().filter_map(|row| if let Some(Cell::Text(id)) = row.first() { Some(id.clone()) } else { None }).collect();
        results.iter().enumerate().for_each(|(index, result)| population.take(index, result.rows.iter().map(Vec::as_slice)));
        let time = (call.clock() - started) / i64::try_from(results.len().max(1)).unwrap_or(1);
        Ok(Asking { members, times: vec![time; results.len()], population })
    }

    pub(super) async fn run_on(&self, call: &Call<'_>, guide: &CompiledGuide, asked: &Asked, ehr_id: &str) -> Result<EhrRun, Failure> {
        let ehr = self.ehr_with_id(ehr_id).await?;
        let mut instances: Vec<Vec<Instance>> = vec![Vec::new(); guide.guide().bindings.len()];
        let mut executed = Vec::new();
        let queries = guide.queries_at(asked.now);
        let started = call.clock();
        let texts: Vec<&str> = queries.iter().map(|query| query.aql.as_str()).collect();
        let parameters = Parameters::from([(String::from("ehr_id"), Parameter::Text(ehr.ehr_id.clone()))]);
        let results = self.rows(call, &texts, &parameters, Some(&ehr.ehr_id)).await.map_err(|(index, failure)| match queries.get(index) {
            Some(query) => failure.within(&format!("binding {}", query.id)),
            None => failure,
        })?;
        let time = millis(call.clock() - started) / queries.len().max(1) as f64;
        for (query, result) in queries.into_iter().zip(results) {
            let rows = result.rows.iter().map(|row| row.iter().map(|cell| value_of_cell(cell, UTC)).collect());
            if let Some(place) = instances.get_mut(query.binding) {
                *place = query.instances(rows, asked.now);
            }
            let aql = query.aql.replace("$ehr_id", &format!("'{}'", ehr.ehr_id));
            executed.push((query, aql, time));
        }
        Ok(asked.run(guide, ehr.ehr_id, &instances, executed))
    }

    /// A guide, compiled.
    pub(super) async fn guide(&self, id: &str) -> Result<Rc<CompiledGuide>, Failure> {
        let stored = self.repository.definition(KIND, id, VERSION).await.map_err(Failure::of_store)?.ok_or_else(no_guide)?;
        self.library.guide(&stored)
    }
}

/// What lists of guides show without reading them.
fn summary(guide: &gdl::Guide) -> String {
    let language = guide.original_language.as_str();
    let purpose = guide.details_in(language).map(|d| d.purpose.trim());
    json!({ "concept": guide.term(&guide.concept, language), "language": language, "purpose": purpose }).to_string()
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

/// Asks for the EHRs that queries find.
const MEMBERS: &str = "SELECT e/ehr_id/value FROM EHR e";
/// Up to so many EHRs are asked one by one.
const ONE_BY_ONE: usize = 4;

/// How a guide is to be run.
pub(super) struct Asked {
    /// The time of evaluation, with the zone of results.
    now: Moment,
    language: String,
    options: Options,
}

impl Asked {
    /// The language of texts.
    pub(super) fn language(&self) -> &str {
        &self.language
    }

    /// The parameters of a request: `trace=true`, `language=de`, `now=2024-02-29T12:00:00+01:00`. Without them: no trace, the
    /// first language of Accept-Language that the guide has, the clock.
    pub(super) fn of(call: &Call<'_>, guide: &CompiledGuide) -> Result<Asked, Failure> {
        let clock = Moment::from_millis(call.now / 1000, 0);
        let now = match call.request.query_value("now") {
            None => clock,
            Some(text) => Moment::parse(text, 0)
                .filter(|now| now.precision != Precision::Time)
                .ok_or_else(|| Failure::bad("`now` is not a date-time: expected one such as `2024-02-29T12:00:00+01:00`"))?,
        };
        let guide = guide.guide();
        let accepted = call.request.header("Accept-Language").unwrap_or_default();
        let accepted = accepted.split(',').map(|part| part.split([';', '-']).next().unwrap_or_default().trim());
        let known = |language: &&str| guide.terms.iter().any(|t| t.language.eq_ignore_ascii_case(language));
        let language = call.request.query_value("language").or_else(|| accepted.into_iter().find(known));
        let options = Options { trace: call.request.query_value("trace") == Some("true"), ..Options::default() };
        Ok(Asked { now, language: language.unwrap_or(&guide.original_language).to_owned(), options })
    }

    fn input<'a>(&'a self, instances: &'a [Vec<Instance>]) -> RunInput<'a> {
        RunInput { instances, now: self.now, language: &self.language, options: self.options, terminology: None }
    }

    fn run(&self, guide: &CompiledGuide, ehr_id: String, instances: &[Vec<Instance>], executed: Vec<(BindingQuery, String, f64)>) -> EhrRun {
        let input = self.input(instances);
        let queries = executed.into_iter().map(|(query, aql, time)| {
            let selected = guide.select(query.binding, &input).last().copied();
            let value = query.values_of(selected.and_then(|i| instances.get(query.binding)?.get(i)));
            QueryRun { id: query.id, aql, time, value }
        });
        EhrRun { ehr_id, queries: queries.collect(), run: guide.run(&input) }
    }
}

/// A population that was asked for.
pub(super) struct Asking<'g> {
    /// The EHRs that queries find.
    pub members: HashSet<String>,
    population: Population<'g>,
    /// Microseconds that each query took.
    times: Vec<i64>,
}

impl Asking<'_> {
    /// Runs the guide on one EHR.
    pub fn evaluate(&mut self, guide: &CompiledGuide, asked: &Asked, ehr_id: &str) -> Run {
        let instances = self.population.instances(ehr_id);
        guide.run(&asked.input(&instances))
    }

    /// Runs the guide on one EHR; `share` is its part of a microsecond of the queries, in milliseconds.
    fn run(&mut self, guide: &CompiledGuide, asked: &Asked, ehr_id: String, share: f64) -> EhrRun {
        let queries = self.population.queries().iter().zip(&self.times);
        let executed = queries.map(|(query, time)| (query.clone(), query.population_aql.clone(), *time as f64 * share)).collect();
        let instances = self.population.instances(&ehr_id);
        asked.run(guide, ehr_id, &instances, executed)
    }
}

fn named(guide: &CompiledGuide, ehr_id: &str) -> String {
    format!("guide {}, EHR {}", guide.guide().id, ehr_id.chars().take(40).collect::<String>())
}

fn millis(micros: i64) -> f64 {
    micros as f64 / 1000.0
}
