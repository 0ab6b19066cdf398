//! Guides on a population: one line for each EHR, and one line of the response for each.
//!
//! `POST {base}/gdl/query?guide_id=…` reads newline-delimited JSON, each line the id of an EHR in
//! quotes. [`TOGETHER`] lines are read and run at a time, or fewer if their runs have many bytes.
//! So the memory grows neither with the population nor with the answers. A host that sends bodies
//! in parts sends a piece of the answers, and requests the next one ([`Response::rest`]) once the
//! client has read it; the answers together have no limit then.
//!
//! `guide_id` may occur more than once: the guides then run in this order. `now`, `zone`,
//! `language` and `trace` are those of the other executions.
//!
//! | member | meaning |
//! |---|---|
//! | `line`, `status` | the line, and its status: 200, an error of this line alone, or 413 once a response that is sent as a whole has reached the limit of results |
//! | `_ehr_id` | its EHR |
//! | `rules_executed`, `results`, `_cards`, `_notes`, `_trace` | as in the response of the specification |
//! | `guides` | of several guides: for each its `guide_id` and the members of the row above |

use super::Service;
use super::bulk::{Lines, NDJSON, SentLine, numbered};
use super::call::Call;
use super::error::Failure;
use super::execution::{EhrRange, RunFailure, Stage, record_access, unwritten, within_chain};
use super::http::{Response, RowPart};
use super::negotiate::check_ndjson_acceptable;
use crate::gdl::output::line;
use crate::rm::json;
use crate::store::repository::Repository;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The number of lines that are read and run together.
const TOGETHER: usize = 1000;

/// The bytes of answers after which they are sent, if the host sends pieces.
const PIECE_TEXT: usize = 8_000_000;

/// Bytes of answers between two pauses.
const PAUSE: usize = 500_000;

/// The answers of lines in progress.
struct Answers<'a> {
    lines: Lines<'a>,
    /// The limit of the answers in bytes. A single answer may be longer.
    most: usize,
    /// Whether lines after the limit are left for the next piece. Otherwise they are refused one by
    /// one, so that each line has an answer.
    is_piece: bool,
    unpaused: usize,
}

impl<R: Repository> Service<R> {
    /// POST /gdl/query with lines
    pub(super) async fn guide_run_on_lines(&self, call: &Call<'_>) -> Result<Response, Failure> {
        check_ndjson_acceptable(call.request)?;
        let guides = named_guides(call)?;
        let stages = self.stages(call, &guides).await?;
        let all = numbered(call)?;
        let part = call.request.part.as_ref();
        let answered = part.and_then(|part| usize::try_from(part.sent).ok());
        let mut rest = all.get(answered.unwrap_or(0)..).unwrap_or_default();
        let size = part.and_then(|part| usize::try_from(part.rows).ok());
        let mut size = size.unwrap_or(TOGETHER);
        let mut answers = Answers::new(call, self.config.limits.result);
        while !rest.is_empty() {
            let some = rest.get(..size).unwrap_or(rest);
            let answered = self.guide_lines(call, &stages, some, &mut answers).await?;
            rest = rest.get(answered..).unwrap_or_default();
            size = next_size(answered, some.len());
            if answers.is_piece {
                break;
            }
        }
        let mut response = Response::new(200).with_body(NDJSON, answers.lines.into_text());
        response.rest = (!rest.is_empty())
            .then(|| RowPart::of_lines((all.len() - rest.len()) as u64, size as u64));
        Ok(response)
    }

    /// Answers the first of these lines, one at least. Returns the number of lines that have an
    /// answer.
    async fn guide_lines(
        &self,
        call: &Call<'_>,
        stages: &[Stage<'_>],
        some: &[SentLine<'_>],
        answers: &mut Answers<'_>,
    ) -> Result<usize, Failure> {
        if answers.is_full() {
            some.iter()
                .for_each(|line| answers.refuse_full(line.number));
            return Ok(some.len());
        }
        let requested: Vec<Result<String, Failure>> = some
            .iter()
            .map(|line| requested_ehr(call, stages, line.text))
            .collect();
        // An EHR that occurs in several lines is read and run once. The order is that of the lines,
        // because the first EHRs have runs.
        let mut seen = HashSet::new();
        let ids = requested.iter().filter_map(|id| id.as_ref().ok());
        let ids: Vec<String> = ids.filter(|id| seen.insert(*id)).cloned().collect();
        let ran = self.run_first_lines(call, stages, &ids).await?;
        for (at, (line, id)) in some.iter().zip(requested).enumerate() {
            let is_left = id.as_ref().is_ok_and(|id| ran.left.contains(id));
            // The first line always has an answer, or the call would not end.
            if is_left || (at > 0 && answers.is_piece && answers.is_full()) {
                return Ok(at);
            }
            match (&id, &ran.refused) {
                (Ok(id), Some((ehr_id, failure))) if id == ehr_id => {
                    answers.refuse_ehr(line.number, id, failure);
                }
                _ => {
                    let answer = id.and_then(|id| match ran.parts.get(&id) {
                        Some(parts) => Ok(response_line(&id, parts)),
                        None => Err(Failure::no_ehr()),
                    });
                    answers.add(line.number, answer);
                }
            }
            answers.pause(call).await;
        }
        Ok(some.len())
    }

    /// Runs the guides on the first of these EHRs: on all, or on fewer if they have too much data
    /// together. An EHR that fails alone is refused, and those behind it are left.
    async fn run_first_lines(
        &self,
        call: &Call<'_>,
        stages: &[Stage<'_>],
        ids: &[String],
    ) -> Result<LineRuns, Failure> {
        let mut size = ids.len();
        loop {
            let some = ids.get(..size).unwrap_or(ids);
            let (refused, failure) = match self.run_lines(call, stages, some).await {
                Ok(mut ran) => {
                    ran.left.extend(ids.iter().skip(size).cloned());
                    return Ok(ran);
                }
                Err(RunFailure::Ehr(ehr_id, failure)) => (ehr_id, failure),
                Err(RunFailure::Data(failure)) => match some {
                    [only] => (only.clone(), failure),
                    _ => {
                        size = (size / 2).max(1);
                        call.pause().await;
                        continue;
                    }
                },
                Err(RunFailure::Call(failure)) => return Err(failure),
            };
            let behind = ids.iter().skip_while(|id| **id != refused).skip(1);
            return Ok(LineRuns {
                parts: HashMap::new(),
                left: behind.cloned().collect(),
                refused: Some((refused, failure)),
            });
        }
    }

    /// Runs the guides on the first of these EHRs.
    async fn run_lines(
        &self,
        call: &Call<'_>,
        stages: &[Stage<'_>],
        ids: &[String],
    ) -> Result<LineRuns, RunFailure> {
        let ran = self
            .run_stages(call, stages, ids, EhrRange::Piece, false)
            .await?;
        let mut parts: HashMap<String, Vec<String>> = HashMap::with_capacity(ids.len());
        let mut unpaused = 0;
        for (stage, runs) in stages.iter().zip(ran.stages) {
            let guide_id = (stages.len() > 1).then(|| stage.id());
            // The results of an EHR are freed once they are written.
            for run in runs {
                let part = line(&run, guide_id).map_err(|_| unwritten())?;
                unpaused += part.len();
                parts.entry(run.ehr_id).or_default().push(part);
                if unpaused >= PAUSE {
                    unpaused = 0;
                    call.pause().await;
                }
            }
        }
        Ok(LineRuns {
            parts,
            left: ran.left,
            refused: None,
        })
    }
}

/// The runs of lines.
struct LineRuns {
    /// The result of each guide as JSON, for each EHR that has runs.
    parts: HashMap<String, Vec<String>>,
    /// The EHRs that are left for the next piece.
    left: HashSet<String>,
    /// The EHR whose run failed, with the failure. EHRs before it do not exist.
    refused: Option<(String, Failure)>,
}

impl<'a> Answers<'a> {
    /// Creates the state before the first answer. `result` is the limit of a result.
    fn new(call: &Call<'_>, result: usize) -> Answers<'a> {
        Answers {
            lines: Lines::default(),
            most: match call.sends_parts {
                true => PIECE_TEXT.min(result),
                false => result,
            },
            is_piece: call.sends_parts,
            unpaused: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.lines.len() > self.most
    }

    /// Adds the answer of a line.
    fn add(&mut self, number: u64, answer: Result<Cow<'_, str>, Failure>) {
        let before = self.lines.len();
        match answer {
            _ if self.is_full() && !self.is_piece => self.refuse_full(number),
            Ok(answer) => self.lines.answer(number, 200, &answer),
            Err(failure) => self.lines.refuse(number, &failure),
        }
        self.unpaused += self.lines.len() - before;
    }

    /// Adds the error of the line of an EHR.
    fn refuse_ehr(&mut self, number: u64, ehr_id: &str, failure: &Failure) {
        let before = self.lines.len();
        if self.is_full() && !self.is_piece {
            return self.refuse_full(number);
        }
        let mut body = failure.body();
        if let Some(members) = body.as_object_mut() {
            members.insert("_ehr_id".into(), ehr_id.into());
        }
        self.lines.answer(number, failure.status, &body.to_string());
        self.unpaused += self.lines.len() - before;
    }

    fn refuse_full(&mut self, number: u64) {
        let full = format!(
            "the answers have more than {} bytes: send this line in another call",
            self.most
        );
        self.lines.refuse(number, &Failure::new(413, full));
    }

    /// Yields to other requests after some bytes.
    async fn pause(&mut self, call: &Call<'_>) {
        if self.unpaused >= PAUSE {
            self.unpaused = 0;
            call.pause().await;
        }
    }
}

/// Returns the number of lines that run together after `answered` of `some` lines were answered:
/// about as many as a piece has, because each line of a piece reads the data of its EHR again if it
/// is left for the next one.
fn next_size(answered: usize, some: usize) -> usize {
    match answered == some {
        true => some.saturating_mul(2).clamp(1, TOGETHER),
        false => answered.saturating_add(answered / 4).clamp(1, TOGETHER),
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
