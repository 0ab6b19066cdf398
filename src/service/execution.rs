//! Guides at work: on one EHR, on several, and one guide after the other.
//!
//! `"guide_ids": ["a", "b"]` in the place of `"guide_id"` is a chain: the guides run in this order on each EHR, each reading the results
//! of all before it beside the record. The answer is a list, with the answer of each guide in order.

use super::Service;
use super::call::Call;
use super::content::malformed;
use super::error::Failure;
use super::http::Response;
use super::negotiate::{choose, is_ndjson, json_body};
use super::query::Whose;
use crate::aql::{Found, Parameter, Parameters, TerminologyError};
use crate::gdl::output::{EhrRun, QueryRun, Response as Answer, response};
use crate::gdl::stored::Reader;
use crate::gdl::time::{Clock, Moment, Precision, Zone};
use crate::gdl::value::Value;
use crate::gdl::{BindingQuery, CompiledGuide, Instance, Options, Output, Population, RunInput, Subsumptions};
use crate::rm::json::members;
use crate::store::repository::Repository;
use std::collections::{HashMap, HashSet};

/// Asks for the EHRs that queries find.
const MEMBERS: &str = "SELECT e/ehr_id/value FROM EHR e";
/// Up to so many EHRs are asked one by one.
const ONE_BY_ONE: usize = 4;
/// How many guides may run one after the other.
const CHAIN: usize = 20;

/// The results of earlier guides, by EHR.
pub(super) type Earlier = HashMap<String, Vec<Output>>;

/// What a client asks for.
struct Order {
    guides: Vec<String>,
    /// True for a list of guides.
    is_chain: bool,
    ehrs: Vec<String>,
}

impl Order {
    fn read(text: &str) -> Result<Order, Failure> {
        let (mut guide, mut guides, mut ehrs) = (None, None, Vec::new());
        for (key, value) in members(text).map_err(|m| malformed("body", text, m))? {
            match &*key {
                "guide_id" => guide = serde_json::from_str::<String>(value).ok(),
                "guide_ids" => guides = Some(texts("guide_ids", value)?),
                "ehr_ids" => ehrs = texts("ehr_ids", value)?,
                _ => {}
            }
        }
        let is_chain = guides.is_some();
        let guides = match (guide, guides) {
            (None, Some(guides)) if guides.is_empty() => {
                return Err(Failure::bad("`guide_ids` is empty: name the guides in the order in which they run"));
            }
            (None, Some(guides)) if guides.len() > CHAIN => {
                return Err(Failure::bad(format!("`guide_ids` names {} guides, at most {CHAIN} are allowed in one call", guides.len())));
            }
            (None, Some(guides)) => guides,
            (Some(guide), None) => vec![guide],
            (Some(_), Some(_)) => return Err(Failure::bad("`guide_id` and `guide_ids` exclude each other: name one guide, or a list")),
            (None, None) => return Err(Failure::bad("`guide_id` is missing")),
        };
        Ok(Order { guides, is_chain, ehrs })
    }
}

fn texts(name: &str, json: &str) -> Result<Vec<String>, Failure> {
    serde_json::from_str(json).map_err(|_| Failure::bad(format!("`{name}` is not a list of texts")))
}

/// What a guide reads of one EHR.
pub(super) struct Read {
    ehr_id: String,
    instances: Vec<Vec<Instance>>,
    /// The queries, each as executed and the milliseconds that it took.
    queries: Vec<(BindingQuery, String, f64)>,
}

impl Read {
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.instances.iter().flatten().flat_map(|instance| &instance.values)
    }
}

impl<R: Repository> Service<R> {
    /// GET /gdl/query/{ehr_id}/{guide_id}
    pub(super) async fn guide_run(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let answers = self.execute(call, &[call.param(1).to_owned()], &[call.param(0).to_owned()]).await?;
        written(&answers.first())
    }

    /// POST /gdl/query
    pub(super) async fn guide_run_on(&self, call: &Call<'_>) -> Result<Response, Failure> {
        if is_ndjson(call.request) {
            return self.guide_run_on_lines(call).await;
        }
        choose(call.request, &["application/json"])?;
        json_body(call.request)?;
        let order = Order::read(call.text()?)?;
        order.guides.iter().try_for_each(|guide| call.allowed(guide))?;
        match order.ehrs.len() {
            0 => return Err(Failure::bad("`ehr_ids` is missing or empty: name the EHRs on whose data the guide is executed")),
            many if many > self.config.limits.guide_ehrs => {
                let most = self.config.limits.guide_ehrs;
                return Err(Failure::bad(format!("`ehr_ids` names {many} EHRs, at most {most} are allowed in one call")));
            }
            _ => {}
        }
        let answers = self.execute(call, &order.guides, &order.ehrs).await?;
        if order.is_chain { written(&answers) } else { written(&answers.first()) }
    }

    async fn execute(&self, call: &Call<'_>, guide_ids: &[String], ehr_ids: &[String]) -> Result<Vec<Answer>, Failure> {
        let mut guides = Vec::with_capacity(guide_ids.len());
        for id in guide_ids {
            guides.push(self.guide(id).await.map_err(|failure| failure.within(&format!("guide {}", shortened(id))))?);
        }
        let (mut earlier, mut answers) = (Earlier::new(), Vec::with_capacity(guides.len()));
        let mut started = call.now;
        for guide in guides {
            let asked = Asked::of(call, &guide)?;
            let (runs, queries) = self.run_guide(call, &guide, &asked, ehr_ids, &earlier).await?;
            for run in &runs {
                earlier.entry(run.ehr_id.clone()).or_default().extend(run.run.outputs.iter().cloned());
            }
            let ended = call.clock();
            answers.push(response(&guide, runs, queries, millis(ended - started)));
            started = ended;
        }
        Ok(answers)
    }

    /// Runs a guide on EHRs, each once, in the order given; and tells how many queries that took. Few EHRs are asked one by
    /// one; for many, the query of each binding is asked once for all.
    pub(super) async fn run_guide(
        &self,
        call: &Call<'_>,
        guide: &CompiledGuide,
        asked: &Asked<'_>,
        ehr_ids: &[String],
        earlier: &Earlier,
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
        let mut reads = Vec::with_capacity(ids.len());
        for id in ids {
            let known = population.as_mut().filter(|p| p.members.contains(&id));
            let mut read = match known {
                Some(population) => Read { queries: population.queries(share), ..population.read(id) },
                None => {
                    queries += guide.queries().len();
                    self.read_of(call, guide, asked, &id).await.map_err(|failure| failure.within(&named(guide, &id)))?
                }
            };
            guide.feed(&mut read.instances, earlier.get(&read.ehr_id).map_or(&[], Vec::as_slice), asked.clock().now);
            reads.push(read);
        }
        let terms = self.terms(guide, reads.iter().flat_map(Read::values)).await?;
        Ok((reads.into_iter().map(|read| asked.run(guide, &terms, read)).collect(), queries))
    }

    /// Asks the queries of the bindings once for every EHR.
    pub(super) async fn population<'g>(&self, call: &Call<'_>, guide: &'g CompiledGuide, asked: &'g Asked<'_>) -> Result<Asking<'g>, Failure> {
        let mut population = Population::new(guide, asked.clock(), asked.options);
        let started = call.clock();
        let queries: Vec<String> = population.queries().iter().map(|query| query.population_aql.clone()).collect();
        let texts: Vec<&str> = queries.iter().map(String::as_str).chain([MEMBERS]).collect();
        let mut members = HashSet::new();
        let parameters = Parameters::new();
        let mut take = |query: usize, row: &[Found<'_>]| {
            if query < queries.len() {
                population.add(query, row);
            } else {
                members.extend(row.first().and_then(|id| id.text()).map(str::to_owned));
            }
        };
        self.each_row(call, &texts, &parameters, Whose::Named, &mut take)
            .await
            .map_err(|(index, failure)| in_binding(guide.queries().get(index), failure).within(&format!("guide {}", guide.guide().id)))?;
        let time = (call.clock() - started) / i64::try_from(queries.len().max(1)).unwrap_or(1);
        Ok(Asking { members, times: vec![time; queries.len()], population })
    }

    /// What a guide reads of one EHR.
    pub(super) async fn read_of(&self, call: &Call<'_>, guide: &CompiledGuide, asked: &Asked<'_>, ehr_id: &str) -> Result<Read, Failure> {
        let ehr = self.ehr_with_id(ehr_id).await?;
        let queries = guide.queries_at(asked.clock());
        let started = call.clock();
        let texts: Vec<&str> = queries.iter().map(|query| query.aql.as_str()).collect();
        let parameters = Parameters::from([(String::from("ehr_id"), Parameter::Text(ehr.ehr_id.clone()))]);
        let (mut rows, mut reader) = (vec![Vec::new(); queries.len()], Reader::default());
        let mut take = |query: usize, row: &[Found<'_>]| {
            if let Some(rows) = rows.get_mut(query) {
                rows.push(row.iter().map(|value| reader.value(*value)).collect());
            }
        };
        self.each_row(call, &texts, &parameters, Whose::Of(&ehr.ehr_id), &mut take)
            .await
            .map_err(|(index, failure)| in_binding(queries.get(index), failure))?;
        let time = millis(call.clock() - started) / queries.len().max(1) as f64;
        let mut read = Read { instances: vec![Vec::new(); guide.guide().bindings.len()], queries: Vec::new(), ehr_id: ehr.ehr_id };
        for (query, rows) in queries.into_iter().zip(rows) {
            if let Some(place) = read.instances.get_mut(query.binding) {
                *place = query.instances(rows, asked.now);
            }
            let aql = query.aql.replace("$ehr_id", &format!("'{}'", read.ehr_id));
            read.queries.push((query, aql, time));
        }
        Ok(read)
    }

    /// What terminologies say of the codes in data, as far as the guide asks by `is_a`.
    pub(super) async fn terms(&self, guide: &CompiledGuide, values: impl Iterator<Item = &Value>) -> Result<Subsumptions, Failure> {
        self.falls_under(guide.subsumptions(values)).await?.map_err(|error| {
            let (status, why) = match error {
                TerminologyError::Late(why) => (504, why),
                TerminologyError::Refused(why) => (400, why),
                TerminologyError::Absent(why) | TerminologyError::Failed(why) => (502, why),
            };
            Failure::new(status, format!("guide {}: `is_a`: {why}", guide.guide().id))
        })
    }
}

fn written(answer: &impl serde::Serialize) -> Result<Response, Failure> {
    let body = serde_json::to_string(answer).map_err(|_| Failure::new(500, "the result cannot be written as JSON"))?;
    Ok(Response::new(200).with_body("application/json", body))
}

fn in_binding(query: Option<&BindingQuery>, failure: Failure) -> Failure {
    match query {
        Some(query) => failure.within(&format!("binding {}", query.id)),
        None => failure,
    }
}

/// How a guide is to be run.
pub(super) struct Asked<'c> {
    now: Moment,
    zone: Option<Box<dyn Zone + 'c>>,
    language: String,
    options: Options,
}

/// A zone that the host knows.
struct OfHost<'c, 'a> {
    call: &'c Call<'a>,
    name: &'c str,
}

impl Zone for OfHost<'_, '_> {
    fn offset(&self, millis: i64) -> i32 {
        self.call.offset(self.name, millis).unwrap_or(0)
    }
}

impl<'c> Asked<'c> {
    /// The language of texts.
    pub(super) fn language(&self) -> &str {
        &self.language
    }

    /// The time of evaluation in its zone.
    fn clock(&self) -> Clock<'_> {
        self.zone.as_ref().map_or(Clock::from(self.now), |zone| Clock::in_zone(self.now, zone.as_ref()))
    }

    /// The parameters of a request: `trace=true`, `language=de`, `now=2024-02-29T12:00:00+01:00`, `zone=Europe/Stockholm`. Without them: no
    /// trace, the first language of Accept-Language that the guide has, the clock, the offset of `now`. A `now` without offset is one of
    /// the zone.
    pub(super) fn of<'a: 'c>(call: &'c Call<'a>, guide: &CompiledGuide) -> Result<Asked<'c>, Failure> {
        let zone = zone_of(call)?;
        let now = now_of(call, zone.as_deref())?;
        let guide = guide.guide();
        let accepted = call.request.header("Accept-Language").unwrap_or_default();
        let accepted = accepted.split(',').map(|part| part.split([';', '-']).next().unwrap_or_default().trim());
        let known = |language: &&str| guide.terms.iter().any(|t| t.language.eq_ignore_ascii_case(language));
        let language = call.request.query_value("language").or_else(|| accepted.into_iter().find(known));
        let options = Options { trace: call.request.query_value("trace") == Some("true"), ..Options::default() };
        Ok(Asked { now, zone, language: language.unwrap_or(&guide.original_language).to_owned(), options })
    }

    /// Runs a guide on what it reads of an EHR.
    pub(super) fn run(&self, guide: &CompiledGuide, terms: &Subsumptions, read: Read) -> EhrRun {
        let Read { ehr_id, instances, queries } = read;
        let input =
            RunInput { instances: &instances, clock: self.clock(), language: &self.language, options: self.options, terminology: Some(terms) };
        let queries = queries.into_iter().map(|(query, aql, time)| {
            let selected = guide.select(query.binding, &input).last().copied();
            let value = query.values_of(selected.and_then(|i| instances.get(query.binding)?.get(i)));
            QueryRun { id: query.id, aql, time, value }
        });
        EhrRun { ehr_id, queries: queries.collect(), run: guide.run(&input) }
    }
}

fn zone_of<'c, 'a: 'c>(call: &'c Call<'a>) -> Result<Option<Box<dyn Zone + 'c>>, Failure> {
    let Some(name) = call.request.query_value("zone") else { return Ok(None) };
    match call.offset(name, call.now / 1000) {
        Some(_) => Ok(Some(Box::new(OfHost { call, name }))),
        None => {
            let name = shortened(name);
            Err(Failure::bad(format!("the zone `{name}` is not known here: expected one of the IANA database, such as `Europe/Stockholm`")))
        }
    }
}

fn now_of(call: &Call<'_>, zone: Option<&dyn Zone>) -> Result<Moment, Failure> {
    let Some(text) = call.request.query_value("now") else { return Ok(Moment::from_millis(call.now / 1000, 0)) };
    let read = |offset: i32| Moment::parse(text, offset).filter(|now| now.precision != Precision::Time);
    let now = read(0).ok_or_else(|| Failure::bad("`now` is not a date-time: expected one such as `2024-02-29T12:00:00+01:00`"))?;
    Ok(zone.and_then(|zone| read(zone.offset(now.millis))).unwrap_or(now))
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
    /// Every value that was found.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.population.values()
    }

    /// What the guide reads of one EHR.
    pub fn read(&mut self, ehr_id: String) -> Read {
        Read { instances: self.population.instances(&ehr_id), queries: Vec::new(), ehr_id }
    }

    /// The queries as executed for one of the EHRs; `share` is its part of a microsecond, in milliseconds.
    fn queries(&self, share: f64) -> Vec<(BindingQuery, String, f64)> {
        let queries = self.population.queries().iter().zip(&self.times);
        queries.map(|(query, time)| (query.clone(), query.population_aql.clone(), *time as f64 * share)).collect()
    }
}

fn named(guide: &CompiledGuide, ehr_id: &str) -> String {
    format!("guide {}, EHR {}", guide.guide().id, shortened(ehr_id))
}

fn shortened(id: &str) -> String {
    id.chars().take(60).collect()
}

fn millis(micros: i64) -> f64 {
    micros as f64 / 1000.0
}
