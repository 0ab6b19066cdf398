//! Guides on a population: one line for each EHR, and one line of the response for each.
//!
//! `POST {base}/gdl/query?guide_id=…` reads newline-delimited JSON, each line the id of an EHR in
//! quotes. [`TOGETHER`] lines are read and run at a time, so that the memory does not grow with the
//! population. `guide_id` may occur more than once: the guides then run in this order. `now`,
//! `zone`, `language` and `trace` are those of the other executions.
//!
//! | member | meaning |
//! |---|---|
//! | `line`, `status` | the line, and its status: 200, an error of this line alone, or 413 once the response has reached the limit of results |
//! | `_ehr_id` | its EHR |
//! | `rules_executed`, `results`, `_cards`, `_notes`, `_trace` | as in the response of the specification |
//! | `guides` | of several guides: for each its `guide_id` and the members of the row above |

use super::Service;
use super::bulk::{Lines, NDJSON, SentLine, numbered};
use super::call::Call;
use super::error::Failure;
use super::execution::{Stage, record_access, unwritten, within_chain};
use super::http::Response;
use super::owner::no_ehr;
use crate::gdl::output::line;
use crate::rm::json;
use crate::store::repository::Repository;
use aqlite_rm::order;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// The number of lines that are read and run together.
const TOGETHER: usize = 1000;

impl<R: Repository> Service<R> {
    /// POST /gdl/query with lines
    pub(super) async fn guide_run_on_lines(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let guides = named_guides(call)?;
        let stages = self.stages(call, &guides).await?;
        let (all, mut lines) = (numbered(call)?.collect::<Vec<_>>(), Lines::default());
        let most = self.config.limits.result;
        for some in all.chunks(TOGETHER) {
            if lines.len() <= most {
                self.guide_lines(call, &stages, some, &mut lines).await?;
                continue;
            }
            // Lines after the limit are refused one by one, so that each line has an answer.
            let full = Failure::new(
                413,
                format!("the answers have more than {most} bytes: send this line in another call"),
            );
            some.iter()
                .for_each(|line| lines.refuse(line.number, &full));
        }
        Ok(Response::new(200).with_body(NDJSON, lines.into_text()))
    }

    async fn guide_lines(
        &self,
        call: &Call<'_>,
        stages: &[Stage<'_>],
        some: &[SentLine<'_>],
        lines: &mut Lines<'_>,
    ) -> Result<(), Failure> {
        let requested: Vec<(u64, Result<String, Failure>)> = some
            .iter()
            .map(|line| (line.number, requested_ehr(call, stages, line.text)))
            .collect();
        // An EHR that occurs in several lines is read and run once.
        let ids = requested.iter().filter_map(|(_, id)| id.as_ref().ok());
        let parts = self
            .parts(call, stages, &order::distinct(ids.cloned()))
            .await?;
        for (number, id) in requested {
            let answer = id.and_then(|id| match parts.get(&id) {
                Some(parts) => Ok(response_line(&id, parts)),
                None => Err(no_ehr()),
            });
            match answer {
                Ok(answer) => lines.answer(number, 200, &answer),
                Err(failure) => lines.refuse(number, &failure),
            }
        }
        Ok(())
    }

    /// Returns the result of each guide for each EHR that exists, as JSON.
    async fn parts(
        &self,
        call: &Call<'_>,
        stages: &[Stage<'_>],
        ids: &[String],
    ) -> Result<HashMap<String, Vec<String>>, Failure> {
        let ran = self.run_stages(call, stages, ids, false).await?;
        let mut parts: HashMap<String, Vec<String>> = HashMap::with_capacity(ids.len());
        for (stage, runs) in stages.iter().zip(ran.stages) {
            let guide_id = (stages.len() > 1).then(|| stage.id());
            // The results of an EHR are freed once they are written.
            for run in runs {
                let part = line(&run, guide_id).map_err(|_| unwritten())?;
                parts.entry(run.ehr_id).or_default().push(part);
            }
        }
        Ok(parts)
    }
}

/// Returns the ids of the requested guides. The caller has the permission for all of them.
fn named_guides(call: &Call<'_>) -> Result<Vec<String>, Failure> {
    let parameters = call.request.query.iter();
    let ids = parameters.filter(|(key, _)| key == "guide_id");
    let guides = within_chain("guide_id", ids.map(|(_, id)| id.clone()).collect())?;
    if guides.is_empty() {
        return Err(Failure::bad_request("the parameter `guide_id` is missing"));
    }
    guides
        .iter()
        .try_for_each(|guide| call.check_named_permission(guide))?;
    Ok(guides)
}

/// Returns the EHR of a line. A missing permission concerns this line only.
fn requested_ehr(call: &Call<'_>, stages: &[Stage<'_>], line: &str) -> Result<String, Failure> {
    let id = json::text(line)
        .ok_or_else(|| Failure::bad_request("the line is not the id of an EHR in quotes"))?;
    let id = id.to_ascii_lowercase();
    record_access(call, stages, &id)?;
    Ok(id)
}

fn response_line<'p>(ehr_id: &str, parts: &'p [String]) -> Cow<'p, str> {
    match parts {
        [only] => Cow::Borrowed(only),
        parts => {
            let (id, guides) = (Value::from(ehr_id), parts.join(","));
            Cow::Owned(format!(r#"{{"_ehr_id":{id},"guides":[{guides}]}}"#))
        }
    }
}
