//! Population queries on several threads.
//!
//! The repository divides a scan into parts. Each thread has a service of its own with its caches,
//! and evaluates the query on one part. The thread that answers the request evaluates a part
//! itself, and merges the results in the order of the documents.

use super::super::Service;
use super::super::error::Failure;
use super::super::query_memory::ReadBudget;
use super::super::run_host::RunHost;
use super::evaluation::Evaluated;
use crate::aql::query::Query;
use crate::aql::{PartialResult, Plan, QueryError, Run};
use crate::store::repository::{Division, Repository, ScanPart};
use crate::store::scan::{Progress, Scan, Snapshot};
use std::pin::Pin;
use std::rc::Rc;

/// A query on a part of the documents, for another thread.
pub struct PartQuery {
    query: Query,
    snapshot: Snapshot,
    part: ScanPart,
    /// The time of the request, ISO 8601 with zone.
    pub now: String,
    /// The time at which the evaluation ends without a result, in microseconds since 1970.
    pub deadline: i64,
}

/// The answer to a query on a part of the documents.
pub struct PartAnswer(Result<PartialResult, PartError>);

/// The reason why a part of a query has no result.
enum PartError {
    /// The error is that of the whole query.
    Query(QueryError),
    /// One thread must evaluate the whole query. It may succeed: the parts of a query need memory
    /// at the same time, and a deletion between two of them removes their common state.
    Alone,
}

/// Compiles only if queries and answers can be sent to another thread.
const _: fn(PartQuery, PartAnswer) -> [Box<dyn Send>; 2] =
    |query, answer| [Box::new(query), Box::new(answer)];

/// The future answer of another thread; `None` if the thread cannot answer. Dropping it cancels the
/// query.
pub type PartAnswerFuture = Pin<Box<dyn Future<Output = Option<PartAnswer>>>>;

/// Threads with services over the same repository.
pub trait QueryThreads {
    /// Returns the number of this thread.
    fn own(&self) -> usize;

    /// Returns the numbers of the other threads that have nothing to do.
    fn idle(&self) -> Vec<usize>;

    /// Sends a query to another thread, which calls [`Service::answer_part`].
    fn send(&self, thread: usize, query: PartQuery) -> PartAnswerFuture;
}

impl<R: Repository> Service<R> {
    /// Evaluates population queries on several threads.
    pub fn with_threads(self, threads: Box<dyn QueryThreads>) -> Service<R> {
        Service {
            threads: Some(threads),
            ..self
        }
    }

    /// Answers a query on a part of the documents for another thread. `host` has the times of the
    /// query.
    pub async fn answer_part(&self, query: PartQuery, host: &RunHost<'_>) -> PartAnswer {
        PartAnswer(self.evaluate_part(query, host).await)
    }

    async fn evaluate_part(
        &self,
        query: PartQuery,
        host: &RunHost<'_>,
    ) -> Result<PartialResult, PartError> {
        let exact = self.config.exact_archetypes;
        let plan = self.recent_plans.plan(query.query, None, exact);
        let plan = plan.map_err(|_| PartError::Alone)?;
        let scan = Scan {
            snapshot: Some(query.snapshot),
            ..plan.scan().clone()
        };
        let part = Some(query.part);
        let evaluated = self.evaluate(&plan, (&scan, part), host).await;
        let partial = evaluated.map_err(|_| PartError::Alone)?.run.into_partial();
        self.recent_plans.keep(Rc::clone(&plan));
        partial.map_err(PartError::Query)
    }

    /// Evaluates a plan on several threads. Returns `None` if one thread must evaluate it: it reads
    /// too few documents, or no thread is idle.
    pub(super) async fn evaluate_divided<'r>(
        &self,
        plan: &'r Rc<Plan>,
        scan: &Scan,
        host: &RunHost<'r>,
    ) -> Result<Option<Evaluated<'r>>, Failure> {
        let pays = plan.is_divisible() && !plan.may_end_early();
        let Some(threads) = self.threads.as_deref().filter(|_| pays) else {
            return Ok(None);
        };
        let mut numbers = threads.idle();
        if numbers.is_empty() {
            return Ok(None);
        }
        let division = self.repository.divide(scan, numbers.len() + 1).await;
        let Some(division) = division.map_err(Failure::of_store)? else {
            return Ok(None);
        };
        numbers.truncate(division.parts.len() - 1);
        numbers.push(threads.own());
        // Each thread gets the same part of each query if all are idle, so the parts of segments in
        // its cache are those that it needs again.
        numbers.sort_unstable();
        // The part of this thread then uses the plan, and what it has cached.
        self.recent_plans.keep(Rc::clone(plan));
        let answers = self.answers_of_parts(plan, &division, (threads, &numbers), host);
        self.merge(plan, division.snapshot, answers.await, host)
            .await
    }

    /// Sends the parts of a query to threads, and evaluates the part of this thread. Returns the
    /// answers in the order of the parts.
    async fn answers_of_parts(
        &self,
        plan: &Plan,
        division: &Division,
        (threads, numbers): (&dyn QueryThreads, &[usize]),
        host: &RunHost<'_>,
    ) -> Vec<PartAnswerFuture> {
        let query = |part: ScanPart| PartQuery {
            query: plan.query().of_part(),
            snapshot: division.snapshot,
            part,
            now: host.now.to_owned(),
            deadline: host.deadline,
        };
        let (mut answers, mut own) = (Vec::with_capacity(numbers.len()), None);
        for (number, part) in numbers.iter().zip(&division.parts) {
            let query = query(*part);
            if *number == threads.own() {
                own = Some((answers.len(), query));
            } else {
                answers.push(threads.send(*number, query));
            }
        }
        if let Some((at, query)) = own {
            let answer = self.answer_part(query, host).await;
            answers.insert(at, Box::pin(std::future::ready(Some(answer))));
        }
        answers
    }

    /// Merges the answers to the parts of a query in their order. Returns `None` if a thread could
    /// not answer.
    async fn merge<'r>(
        &self,
        plan: &'r Plan,
        snapshot: Snapshot,
        answers: Vec<PartAnswerFuture>,
        host: &RunHost<'r>,
    ) -> Result<Option<Evaluated<'r>>, Failure> {
        let mut run = Run::new(plan, host.now, self.budget(), host.is_stopped);
        let mut reading = ReadBudget::new(self.query_memory.share(), host.deadline);
        for answer in answers {
            let partial = match answer.await {
                Some(PartAnswer(Ok(partial))) => partial,
                Some(PartAnswer(Err(PartError::Query(error)))) => {
                    return Err(self.run_failure(&error));
                }
                Some(PartAnswer(Err(PartError::Alone))) | None => return Ok(None),
            };
            let progress = run.absorb(partial);
            if !reading.hold(run.footprint(), (host.clock)()) {
                return Ok(None);
            }
            // As on one thread, later documents and their errors do not matter.
            if progress == Progress::Enough {
                break;
            }
        }
        Ok(Some(Evaluated {
            run,
            snapshot,
            of_ehr: None,
            share: reading.share,
        }))
    }
}
