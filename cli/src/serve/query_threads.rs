//! Parts of a population query on the service threads that have nothing to do.

use super::environment::now;
use super::thread::{Job, Peers, ServiceThread};
use aqlite::service::{PartAnswer, PartAnswerFuture, PartQuery, QueryThreads, RunHost};
use tokio::sync::oneshot;
use tokio::task::yield_now;

/// The service threads, for the service of one of them.
pub struct OtherThreads {
    /// The number of this thread.
    pub own: usize,
    /// All service threads.
    pub peers: Peers,
}

impl QueryThreads for OtherThreads {
    fn own(&self) -> usize {
        self.own
    }

    fn idle(&self) -> Vec<usize> {
        let idle = self.peers.idle();
        idle.filter(|number| *number != self.own).collect()
    }

    fn send(&self, thread: usize, query: PartQuery) -> PartAnswerFuture {
        let (answer, answered) = oneshot::channel();
        let job = Job::Query(QueryJob { query, answer });
        // A job that cannot be sent is dropped, and its receiver reports that.
        let _ = self.peers.send_to(thread, job);
        Box::pin(async { answered.await.ok() })
    }
}

/// A part of a query on its way to a service thread.
pub struct QueryJob {
    query: PartQuery,
    answer: oneshot::Sender<PartAnswer>,
}

impl QueryJob {
    /// Answers the query. It ends without an answer once the request has ended.
    pub async fn answer(self, thread: &ServiceThread) {
        let QueryJob { query, answer } = self;
        let deadline = query.deadline;
        let time = query.now.clone();
        let is_stopped = || answer.is_closed() || now() > deadline;
        let host = RunHost {
            now: &time,
            is_stopped: &is_stopped,
            pause: &|| Box::pin(yield_now()),
            clock: &now,
            deadline,
        };
        let found = thread.service.answer_part(query, &host).await;
        // The request may have ended.
        let _ = answer.send(found);
    }
}
