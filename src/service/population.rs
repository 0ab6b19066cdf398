//! A guide on a population: a line an EHR, an answer a line.
//!
//! `POST {base}/gdl/query?guide_id=…` takes newline-delimited JSON, each line the id of an EHR in quotes. The queries of the guide
//! are asked once for all lines, and each EHR's answer is written before the next is run, so that the memory needed does
//! not grow with the answers. `now`, `language` and `trace` are those of the other executions.
//!
//! | member | meaning |
//! |---|---|
//! | `line`, `status` | which line is answered, and how it went: 200, or what is wrong with this line alone |
//! | `_ehr_id`, `rules_executed`, `results`, `_cards`, `_notes`, `_trace` | of this EHR, as in the answer of the specification |

use super::Service;
use super::bulk::{Lines, NDJSON, numbered};
use super::call::Call;
use super::error::Failure;
use super::execution::{Asked, Asking};
use super::http::Response;
use crate::gdl::output::{EhrRun, line};
use crate::gdl::{CompiledGuide, Subsumptions};
use crate::store::repository::Repository;
use std::collections::HashSet;

impl<R: Repository> Service<R> {
    /// POST /gdl/query with lines
    pub(super) async fn guide_run_on_lines(&self, call: &Call<'_>) -> Result<Response, Failure> {
        let guide_id = call.request.query_value("guide_id").ok_or_else(|| Failure::bad("the parameter `guide_id` is missing"))?;
        call.allowed(guide_id)?;
        let guide = self.guide(guide_id).await?;
        let asked = Asked::of(call, &guide)?;
        let mut asking = self.population(call, &guide, &asked).await?;
        let terms = self.terms(&guide, asking.values()).await?;
        let (mut lines, mut seen) = (Lines::default(), HashSet::new());
        for (number, text) in numbered(call)? {
            match self.guide_line(call, &guide, &asked, (&mut asking, &terms), (text, &mut seen)).await {
                Ok(run) => lines.answer(number, 200, line(run)),
                Err(failure) => lines.refuse(number, &failure),
            }
        }
        Ok(Response::new(200).with_body(NDJSON, lines.into_text()))
    }

    async fn guide_line(
        &self,
        call: &Call<'_>,
        guide: &CompiledGuide,
        asked: &Asked<'_>,
        (asking, terms): (&mut Asking<'_>, &Subsumptions),
        (text, seen): (&str, &mut HashSet<String>),
    ) -> Result<EhrRun, Failure> {
        let id = serde_json::from_str::<String>(text).map_err(|_| Failure::bad("the line is not the id of an EHR in quotes"))?.to_ascii_lowercase();
        if !seen.insert(id.clone()) {
            return Err(Failure::bad("a line before names the same EHR"));
        }
        call.trail.touches(&id);
        call.allowed_on(guide.guide().id.as_str(), &id)?;
        if asking.members.contains(&id) {
            return Ok(asked.run(guide, terms, asking.read(id)));
        }
        let read = self.read_of(call, guide, asked, &id).await?;
        let terms = self.terms(guide, read.values()).await?;
        Ok(asked.run(guide, &terms, read))
    }
}
