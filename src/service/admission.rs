//! Admission control: the number of requests that are processed at a time, by caller and in total.
//!
//! A request has a permit of its caller while it is in flight, and a heavy permit (queries, guides,
//! loads, exports) while it is processed. Without a free permit it waits in a short queue. If the
//! queue is full too, the response is 429. One caller never holds all heavy permits, nor more than
//! half of the queue, if other callers could use them.
//!
//! Work that cannot pause (reading a long text, generating from a large template) also takes a
//! [`Turn`]. One request has it at a time, and a host runs all others before it begins. Many such
//! requests therefore delay a neighbor no longer than one does.
//!
//! A long text, stored or sent, and everything made of it, takes [`Work::Room`]: bytes of memory
//! that all requests share. A request has room of one size at a time, from before the database
//! reads the text until the response is sent. A text that needs more than all of it is processed
//! alone.
//!
//! A request that waits for a foreign server, such as a terminology server, holds no heavy permit
//! meanwhile: a slow server delays only those who need it. It holds a permit of its own for the
//! wait ([`Work::ForeignWait`]), until it has a heavy permit again.
//!
//! Permits are returned when the [`Permit`] is dropped. A worker may lose a request without dropping
//! it (a runtime that forgets the work of a client that disconnected). There, a permit that was not
//! used for [`LEASE`] counts as returned. A process drops the work of every request, so its permits
//! have no lease: a slow client keeps its own.

use super::Request;
use super::route::{Operation, RouteTarget, find};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a text or document from which work on it needs a turn: about 10 ms in workerd.
pub const LARGE: usize = 100_000;
/// Bytes of a body above which its request needs a heavy permit.
pub const HEAVY: usize = 1_000_000;
/// Bytes of long bodies in memory for each heavy permit: one body of the default maximum length, or
/// several shorter ones.
const BODIES: usize = 10_000_000;

/// Requests that wait for a foreign server, and as many that wait until they may. It is small,
/// because each of them keeps the answers that it has received before, and no heavy permit bounds
/// these.
const MAX_FOREIGN_WAITS: usize = 8;

/// Default bytes of memory for the long texts of all requests together, and for everything made of
/// them.
const ROOM: usize = 64_000_000;
/// Bytes of memory of a request for each byte of a long stored text: the copies of the database, of
/// the runtime and of this instance, the tree, and the response.
pub(crate) const COPIES: usize = 8;

/// Microseconds after which a permit that was neither dropped nor renewed counts as returned.
pub const LEASE: i64 = 120_000_000;
/// The lease of a request that waits, whose host polls it many times a second, and of a turn,
/// during which nothing is awaited.
const WAITING_LEASE: i64 = 5_000_000;

/// The maximum numbers of requests that are processed at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Concurrency {
    /// Requests of one caller in flight.
    pub caller: usize,
    /// Heavy requests that are processed, of all callers.
    pub heavy: usize,
    /// Requests that wait for a permit.
    pub waiting: usize,
}

impl Default for Concurrency {
    fn default() -> Concurrency {
        Concurrency {
            caller: 32,
            heavy: 4,
            waiting: 64,
        }
    }
}

/// The purpose of a permit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A request of a caller, from its headers to its response.
    Request,
    /// The evaluation of a query or guide, a part of a load, a page of an export, a document
    /// generated from a template, a long body.
    Heavy,
    /// Bytes of a body above `HEAVY` bytes, or of unknown length, from its first byte until the
    /// response.
    Body(usize),
    /// Work that does not pause.
    Turn,
    /// The wait for a response of a foreign server, without a heavy permit.
    ForeignWait,
    /// Bytes of memory, until the response is sent.
    Room(usize),
}

impl Work {
    /// Returns the microseconds that a request waits for its permit before it is refused.
    /// `is_begun` is true for a later part of a load.
    ///
    /// The wait for memory is longer than that for a permit of a request: memory becomes free only
    /// when other responses are sent, and the requests of one caller wait for each other.
    #[must_use]
    pub fn patience(self, is_begun: bool) -> i64 {
        match self {
            Work::Room(_) => 20_000_000,
            _ if is_begun => 60_000_000,
            _ => 5_000_000,
        }
    }
}

/// The permission to work without a pause, returned when it is dropped.
///
/// It is held during synchronous code only: its holder drops it before awaiting anything.
#[derive(Default)]
pub struct Turn {
    _permit: Option<Permit>,
}

impl Turn {
    /// Creates the turn of a request from its permit.
    #[must_use]
    pub fn new(permit: Permit) -> Turn {
        Turn {
            _permit: Some(permit),
        }
    }
}

/// A future of a turn; `None` if no turn was free in time.
pub type TurnFuture = Pin<Box<dyn Future<Output = Option<Turn>>>>;

/// A future of room; false if no room was free in time.
pub type RoomFuture = Pin<Box<dyn Future<Output = bool>>>;

/// A future of the begin or the end of a wait for a foreign server; false if no permit was free in
/// time.
pub type WaitFuture = Pin<Box<dyn Future<Output = bool>>>;

/// Returns the bytes of memory for processing a long body: its copies, its tree and its stored
/// form. 0 for a body that is not heavy.
#[must_use]
pub fn room_of_body(bytes: usize) -> usize {
    if bytes > HEAVY {
        bytes.saturating_mul(COPIES)
    } else {
        0
    }
}

/// Returns whether the headers allow a body longer than `HEAVY`.
#[must_use]
pub fn may_be_large(head: &Request) -> bool {
    let length = head
        .header("Content-Length")
        .and_then(|length| length.parse::<usize>().ok());
    length.is_none_or(|length| length > HEAVY) || super::is_compressed(head)
}

/// Returns the bytes of memory that a body may take while it is read: its length, or `limit` if
/// that is unknown.
#[must_use]
pub fn body_memory(head: &Request, limit: usize) -> usize {
    let length = head
        .header("Content-Length")
        .and_then(|length| length.parse::<usize>().ok());
    let known = length.filter(|_| !super::is_compressed(head));
    known.map_or(limit, |length| length.min(limit))
}

/// Returns whether a request is heavy, by its operation or by the length of its body.
#[must_use]
pub fn is_heavy(request: &Request) -> bool {
    use Operation::{
        AdminLoad, Bulk, CdsCall, Export, GuideRun, GuideRunOn, GuideUpload, Import, QueryAdHoc,
        QueryExplain, QueryStored, TagsList, TemplateExample, TemplateGet, TemplateUpload,
        TemplateVersions, TemplateWeb, ValueSetStore,
    };
    if request.body.len() > HEAVY {
        return true;
    }
    let Ok(RouteTarget::Operation(found)) = find(request) else {
        return false;
    };
    matches!(
        found.route.operation,
        QueryAdHoc
            | QueryExplain
            | QueryStored
            | GuideRun
            | GuideRunOn
            | CdsCall
            | Bulk
            | Import
            | Export
            | AdminLoad
            | TagsList
            | GuideUpload
            | TemplateExample
            | TemplateGet
            | TemplateUpload
            | TemplateVersions
            | TemplateWeb
            | ValueSetStore
    )
}

/// The permits of a host.
#[derive(Clone, Default)]
pub struct Admission {
    bounds: Concurrency,
    queue: SharedQueue,
    /// The waits for foreign servers, whose queue must not fill that of other requests.
    foreign_waits: SharedQueue,
    rooms: Rooms,
}

/// The memory for long texts, which several hosts of one process may share.
#[derive(Clone, Default)]
pub(super) struct Rooms(SharedQueue);

impl Rooms {
    /// Creates memory of `bytes` bytes.
    pub fn new(bytes: usize) -> Rooms {
        Rooms(SharedQueue::without_lease(bytes))
    }
}

#[derive(Clone, Default)]
struct SharedQueue(Arc<Mutex<Queue>>);

impl SharedQueue {
    /// Creates the queue of a process, with `room` bytes of memory for long texts.
    fn without_lease(room: usize) -> SharedQueue {
        let queue = Queue {
            room,
            lease: i64::MAX,
            ..Queue::default()
        };
        SharedQueue(Arc::new(Mutex::new(queue)))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic ends the process, or its thread with the requests that have permits. The entries
        // are consistent at any time, so a poisoned lock is used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Queue {
    /// Bytes of memory for long texts.
    room: usize,
    /// Microseconds after which a permit that was not used counts as returned.
    lease: i64,
    next: u64,
    /// In the order of arrival.
    entries: Vec<Entry>,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            room: ROOM,
            lease: LEASE,
            next: 0,
            entries: Vec::new(),
        }
    }
}

struct Entry {
    number: u64,
    caller: String,
    work: Work,
    /// Whether the request is processed; otherwise it waits.
    admitted: bool,
    /// The time of the last call of the host for this entry.
    seen: i64,
}

/// A permit, or a position in the queue for one. Returned when it is dropped.
pub struct Permit {
    bounds: Concurrency,
    queue: SharedQueue,
    number: u64,
}

impl Admission {
    /// Creates admission control with these limits.
    #[must_use]
    pub fn new(bounds: Concurrency) -> Admission {
        Admission {
            bounds,
            ..Admission::default()
        }
    }

    /// Creates admission control of a host in a process, which shares its memory with others.
    pub(super) fn with_rooms(bounds: Concurrency, rooms: Rooms) -> Admission {
        Admission {
            bounds,
            queue: SharedQueue::without_lease(0),
            foreign_waits: SharedQueue::without_lease(0),
            rooms,
        }
    }

    /// Requests a permit at a time (microseconds). Returns `None` if the queue is full. The request
    /// may have to wait: [`Permit::renew`] it until [`Permit::is_admitted`].
    #[must_use]
    pub fn enter(&self, caller: &str, work: Work, now: i64) -> Option<Permit> {
        let (queue, most_waiting) = match work {
            Work::Room(_) => (&self.rooms.0, self.bounds.waiting),
            Work::ForeignWait => (&self.foreign_waits, MAX_FOREIGN_WAITS),
            _ => (&self.queue, self.bounds.waiting),
        };
        let mut list = queue.lock();
        list.remove_expired(now);
        // Waiting requests get free permits before this one.
        list.promote(self.bounds);
        let ahead = list.entries.len();
        let waits = !list.has_permit(self.bounds, caller, work, ahead);
        if waits && !list.may_wait(most_waiting, caller) {
            return None;
        }
        let number = list.next;
        list.next += 1;
        list.entries.push(Entry {
            number,
            caller: caller.to_owned(),
            work,
            admitted: !waits,
            seen: now,
        });
        Some(Permit {
            bounds: self.bounds,
            queue: queue.clone(),
            number,
        })
    }
}

impl Queue {
    /// Removes the entries whose lease has expired at a time (microseconds).
    fn remove_expired(&mut self, now: i64) {
        let lease = |entry: &Entry| match entry.work {
            Work::Request | Work::Heavy | Work::Body(_) | Work::Room(_) | Work::ForeignWait
                if entry.admitted =>
            {
                self.lease
            }
            // A waiting request is polled many times a second, and a turn is held for milliseconds,
            // so a silence of seconds means that the request was lost.
            _ => WAITING_LEASE,
        };
        // The order of arrival must stay: `promote` serves the entries from first to last.
        self.entries.retain(|entry| now - entry.seen < lease(entry));
    }

    /// Returns whether there is a free permit for work of a caller. The first `ahead` entries of
    /// the queue are before this work.
    fn has_permit(&self, bounds: Concurrency, caller: &str, work: Work, ahead: usize) -> bool {
        let held = || {
            self.entries
                .iter()
                .filter(|entry| entry.admitted && entry.work == work)
        };
        let own = held().filter(|entry| entry.caller == caller).count();
        match work {
            // At least one, so that a configured bound of 0 does not lock callers out.
            Work::Request => own < bounds.caller.max(1),
            Work::Turn => held().next().is_none(),
            Work::Room(bytes) => self.has_memory(caller, bytes, ahead),
            Work::Heavy => fits(held().count(), own, bounds.heavy),
            // Half is left to other callers, who may need another response of the server.
            Work::ForeignWait => held().count() < MAX_FOREIGN_WAITS && own < MAX_FOREIGN_WAITS / 2,
            // A slow sender holds no heavy permit, which is taken after the last byte.
            Work::Body(bytes) => self.has_memory_for_body(bounds, caller, bytes),
        }
    }

    /// Returns whether there is memory for a body of `bytes` bytes: for as many long ones as heavy
    /// work is permitted. If that is more than one, a caller leaves memory for one to others.
    fn has_memory_for_body(&self, bounds: Concurrency, caller: &str, bytes: usize) -> bool {
        let held = |entry: &Entry| match entry.work {
            Work::Body(bytes) if entry.admitted => bytes,
            _ => 0,
        };
        let own = self.entries.iter().filter(|entry| entry.caller == caller);
        let fits = |held: usize, permits: usize| {
            let bound = permits.max(1).saturating_mul(BODIES);
            held == 0 || held.saturating_add(bytes) <= bound
        };
        fits(self.entries.iter().map(held).sum(), bounds.heavy)
            && fits(own.map(held).sum(), bounds.heavy.saturating_sub(1))
    }

    /// Returns whether a caller may have `bytes` more bytes of memory: half of all at most, so that
    /// other callers find some. Requests of one caller are admitted in their order, so that smaller
    /// ones do not overtake a large one forever.
    fn has_memory(&self, caller: &str, bytes: usize, ahead: usize) -> bool {
        let own = |entry: &&Entry| entry.caller == caller;
        let is_overtaken = |entry: &Entry| !entry.admitted && matches!(entry.work, Work::Room(_));
        if self
            .entries
            .iter()
            .take(ahead)
            .filter(own)
            .any(is_overtaken)
        {
            return false;
        }
        let held = |entry: &Entry| match entry.work {
            Work::Room(bytes) if entry.admitted => bytes,
            _ => 0,
        };
        // A text that needs more than all memory runs alone: it fits where nothing is held.
        let fits = |held: usize, bound: usize| held == 0 || held.saturating_add(bytes) <= bound;
        fits(self.entries.iter().map(held).sum(), self.room)
            && fits(
                self.entries.iter().filter(own).map(held).sum(),
                self.room / 2,
            )
    }

    /// Returns whether a caller may have one more waiting request, if `most` may wait in total.
    fn may_wait(&self, most: usize, caller: &str) -> bool {
        let waiting = || self.entries.iter().filter(|entry| !entry.admitted);
        waiting().count() < most
            // Half of the queue stays free for other callers.
            && waiting().filter(|entry| entry.caller == caller).count() < most.div_ceil(2)
    }

    /// Assigns permits to waiting requests, in the order of arrival.
    fn promote(&mut self, bounds: Concurrency) {
        // Quadratic in the length of the queue, which `Concurrency` bounds.
        for at in 0..self.entries.len() {
            let fits = self
                .entries
                .get(at)
                .is_some_and(|e| !e.admitted && self.has_permit(bounds, &e.caller, e.work, at));
            if let Some(entry) = self.entries.get_mut(at).filter(|_| fits) {
                entry.admitted = true;
            }
        }
    }
}

/// Returns whether one more of `bound` permits is free. If there are at least two, one is left to
/// other callers.
fn fits(held: usize, own: usize, bound: usize) -> bool {
    held < bound.max(1) && own < bound.saturating_sub(1).max(1)
}

impl Permit {
    /// Renews the lease at a time (microseconds), and returns the permit.
    ///
    /// Permits whose lease has expired become free before, and waiting requests get them in the
    /// order of arrival. A request that waits must renew its lease too, or it loses its position.
    pub fn renew(&self, now: i64) -> &Permit {
        let mut list = self.queue.lock();
        list.remove_expired(now);
        list.promote(self.bounds);
        if let Some(entry) = list.entries.iter_mut().find(|e| e.number == self.number) {
            entry.seen = now;
        }
        self
    }

    /// Returns whether the permit may be used, as of the last change of the queue.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        let list = self.queue.lock();
        let entry = list.entries.iter().find(|e| e.number == self.number);
        // The lease may have expired while the request was processed, so its work continues.
        entry.is_none_or(|entry| entry.admitted)
    }

    /// Reduces the bytes of memory, to those of a response that is being sent.
    pub fn shrink(&self, most: usize) {
        let mut list = self.queue.lock();
        let own = list.entries.iter_mut().find(|e| e.number == self.number);
        if let Some(Entry {
            work: Work::Room(bytes),
            ..
        }) = own
        {
            // Never more than before: growing here would bypass the queue.
            *bytes = most.min(*bytes);
        }
        list.promote(self.bounds);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut list = self.queue.lock();
        list.entries.retain(|entry| entry.number != self.number);
        list.promote(self.bounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Concurrency = Concurrency {
        caller: 2,
        heavy: 2,
        waiting: 4,
    };

    #[test]
    fn requests_in_flight_are_limited_for_each_caller() {
        let admission = Admission::new(BOUNDS);
        let mut ann: Vec<Permit> = (0..4)
            .filter_map(|_| admission.enter("ann", Work::Request, 0))
            .collect();
        let state = |places: &[Permit]| {
            places
                .iter()
                .map(|permit| permit.renew(0).is_admitted())
                .collect::<Vec<_>>()
        };
        assert_eq!(state(&ann), [true, true, false, false]);
        assert!(
            admission.enter("ann", Work::Request, 0).is_none(),
            "half of the queue is for others"
        );
        let bob = admission.enter("bob", Work::Request, 0).unwrap();
        assert!(bob.renew(0).is_admitted());
        ann.remove(0);
        assert_eq!(
            state(&ann),
            [true, true, false],
            "the request that waits longest is next"
        );
        let late = admission.enter("ann", Work::Request, 0).unwrap();
        assert!(!late.renew(0).is_admitted(), "no request overtakes another");
    }

    #[test]
    fn memory_of_long_bodies_is_limited_and_one_caller_leaves_some() {
        let admission = Admission::new(BOUNDS);
        let ann: Vec<Permit> = (0..4)
            .filter_map(|_| admission.enter("ann", Work::Body(BODIES / 2), 0))
            .collect();
        let admitted = ann
            .iter()
            .filter(|permit| permit.renew(0).is_admitted())
            .count();
        assert_eq!(
            admitted, 2,
            "memory for a long body is left to other callers"
        );
        let body = |bytes| admission.enter("bob", Work::Body(bytes), 0).unwrap();
        let long = body(BODIES + 1);
        assert!(
            !long.renew(0).is_admitted(),
            "together they need too much memory"
        );
        drop((long, ann));
        assert!(
            body(BODIES + 1).renew(0).is_admitted(),
            "a single body is processed"
        );
        let heavy = admission.enter("ann", Work::Heavy, 0).unwrap();
        assert!(heavy.renew(0).is_admitted(), "bodies take no heavy permit");
    }

    #[test]
    fn a_body_may_be_large_unless_its_length_is_known_and_short() {
        let head =
            |name: &str, value: &str| Request::new("PUT", "/v1/ehr").with_header(name, value);
        assert!(!may_be_large(&head("Content-Length", "1000000")));
        assert!(may_be_large(&head("Content-Length", "1000001")));
        assert!(may_be_large(&head("Accept", "*/*")), "chunked");
        let compressed = head("Content-Length", "10").with_header("Content-Encoding", "gzip");
        assert!(may_be_large(&compressed));
        assert_eq!(body_memory(&compressed, 9), 9);
        assert_eq!(body_memory(&head("Content-Length", "7"), 9), 7);
    }

    #[test]
    fn heavy_permits_are_limited_and_one_caller_leaves_one() {
        let admission = Admission::new(BOUNDS);
        let first = admission.enter("ann", Work::Heavy, 0).unwrap();
        let second = admission.enter("ann", Work::Heavy, 0).unwrap();
        assert_eq!(
            (first.renew(0).is_admitted(), second.renew(0).is_admitted()),
            (true, false)
        );
        let bob = admission.enter("bob", Work::Heavy, 0).unwrap();
        assert!(bob.renew(0).is_admitted());
        let eve = admission.enter("eve", Work::Heavy, 0).unwrap();
        assert!(!eve.renew(0).is_admitted());
        drop(bob);
        assert!(
            eve.renew(0).is_admitted() && !second.renew(0).is_admitted(),
            "a caller without a right to the permit is skipped"
        );
        drop(first);
        assert!(second.renew(0).is_admitted());
        let alone = Admission::new(Concurrency { heavy: 1, ..BOUNDS });
        assert!(
            alone
                .enter("ann", Work::Heavy, 0)
                .unwrap()
                .renew(0)
                .is_admitted(),
            "a single permit may go to any caller"
        );
    }

    #[test]
    fn waits_for_a_foreign_server_have_permits_and_a_queue_of_their_own() {
        let admission = Admission::new(BOUNDS);
        let enter = |caller| admission.enter(caller, Work::ForeignWait, 0);
        let waits = |caller| -> Vec<Permit> { (0..20).filter_map(|_| enter(caller)).collect() };
        let (ann, bob) = (waits("ann"), waits("bob"));
        let admitted = |permits: &[Permit]| {
            let is_admitted = |permit: &&Permit| permit.renew(0).is_admitted();
            (permits.len(), permits.iter().filter(is_admitted).count())
        };
        let half = MAX_FOREIGN_WAITS / 2;
        assert_eq!(
            [admitted(&ann), admitted(&bob)],
            [(2 * half, half), (2 * half, half)],
            "one caller has half of the permits, and half of the queue"
        );
        assert!(enter("eve").is_none(), "the queue is full");
        for work in [Work::Request, Work::Heavy] {
            let eve = admission.enter("eve", work, 0).unwrap();
            assert!(eve.renew(0).is_admitted(), "other work is not delayed");
        }
        drop(ann);
        assert!(enter("eve").unwrap().renew(0).is_admitted());
    }

    #[test]
    fn one_request_of_all_callers_has_the_turn() {
        let admission = Admission::new(BOUNDS);
        let first = admission.enter("ann", Work::Turn, 0).unwrap();
        let second = admission.enter("bob", Work::Turn, 0).unwrap();
        let heavy = admission.enter("bob", Work::Heavy, 0).unwrap();
        assert!(
            first.renew(0).is_admitted()
                && !second.renew(0).is_admitted()
                && heavy.renew(0).is_admitted()
        );
        drop(Turn::new(first));
        assert!(second.renew(0).is_admitted());
        let third = admission.enter("ann", Work::Turn, 1).unwrap();
        std::mem::forget(second);
        assert!(!third.renew(1).is_admitted(), "the turn is taken");
        assert!(
            third.renew(WAITING_LEASE).is_admitted(),
            "a lost turn is free at once"
        );
    }

    #[test]
    fn memory_is_shared_and_one_caller_leaves_half_of_it() {
        let admission = Admission::new(BOUNDS);
        let room = |caller, bytes| admission.enter(caller, Work::Room(bytes), 0).unwrap();
        let alone = room("ann", 2 * ROOM);
        assert!(
            alone.renew(0).is_admitted(),
            "a text larger than all memory is processed alone"
        );
        let behind = room("bob", 1);
        assert!(!behind.renew(0).is_admitted());
        alone.shrink(ROOM / 4);
        assert!(
            behind.renew(0).is_admitted(),
            "a response that is being sent needs less memory"
        );
        let second = room("ann", ROOM / 2);
        let small = room("ann", 1);
        assert!(!second.renew(0).is_admitted(), "half is for others");
        assert!(
            !small.renew(0).is_admitted(),
            "requests of one caller keep their order"
        );
        assert!(room("eve", ROOM / 2).renew(0).is_admitted());
        drop(alone);
        assert!(second.renew(0).is_admitted() && !small.renew(0).is_admitted());
    }

    #[test]
    fn bodies_of_nine_megabytes_are_processed_one_after_the_other() {
        let admission = Admission::new(BOUNDS);
        assert_eq!(room_of_body(HEAVY), 0);
        let room = |bytes| {
            let work = Work::Room(room_of_body(bytes));
            admission.enter("ann", work, 0).unwrap()
        };
        let (first, second) = (room(9_000_000), room(9_000_000));
        assert_eq!(
            (first.renew(0).is_admitted(), second.renew(0).is_admitted()),
            (true, false)
        );
        drop(first);
        assert!(second.renew(0).is_admitted());
        drop(second);
        let small: Vec<Permit> = (0..3).map(|_| room(1_300_000)).collect();
        assert!(small.iter().all(|permit| permit.renew(0).is_admitted()));
    }

    #[test]
    fn long_body_makes_any_request_heavy() {
        let body = |bytes: usize| Request {
            body: vec![b' '; bytes],
            ..Request::new("POST", "/v1/ehr/1/composition")
        };
        assert!(!is_heavy(&body(HEAVY)) && is_heavy(&body(HEAVY + 1)));
    }

    #[test]
    fn permit_of_a_lost_request_becomes_free() {
        let admission = Admission::new(BOUNDS);
        let lost: Vec<Permit> = (0..4)
            .filter_map(|_| admission.enter("ann", Work::Request, 0))
            .collect();
        lost.into_iter().for_each(std::mem::forget);
        assert!(admission.enter("ann", Work::Request, 1).is_none());
        let later = admission
            .enter("ann", Work::Request, WAITING_LEASE)
            .unwrap();
        assert!(
            !later.renew(WAITING_LEASE).is_admitted(),
            "two are still processed"
        );
        assert!(later.renew(WAITING_LEASE + 1).is_admitted() || later.renew(LEASE).is_admitted());
        let permit = admission.enter("bob", Work::Heavy, 0).unwrap();
        assert!(
            permit.renew(10 * LEASE).is_admitted() && permit.renew(20 * LEASE).is_admitted(),
            "work in progress is not stopped"
        );
    }

    #[test]
    fn expensive_operations_are_heavy() {
        for (method, path, heavy) in [
            ("POST", "/v1/query/aql", true),
            ("POST", "/v1/query/aql/explain", true),
            ("GET", "/rest/openehr/v1/query/a::b/1.0.0", true),
            ("POST", "/v1/ehr/bulk", true),
            ("GET", "/v1/admin/export", true),
            ("GET", "/v1/gdl/query/1/2", true),
            ("POST", "/v1/definition/template?type=opt14", true),
            ("GET", "/rest/openehr/v1/definition/template/adl1.4/a", true),
            (
                "GET",
                "/rest/openehr/v1/definition/template/adl1.4/a/webtemplate",
                true,
            ),
            ("PUT", "/v1/definition/valueset/a", true),
            ("GET", "/v1/ehr/1/tags", true),
            ("POST", "/v1/ehr", false),
            ("GET", "/v1/ehr/1", false),
            ("OPTIONS", "/v1/query/aql", false),
            ("GET", "/health", false),
        ] {
            assert_eq!(
                is_heavy(&Request::new(method, path)),
                heavy,
                "{method} {path}"
            );
        }
    }

    #[test]
    fn permits_in_a_process_have_no_lease() {
        let admission = Admission::with_rooms(BOUNDS, Rooms::new(10));
        for work in [Work::Request, Work::Body(BODIES), Work::Room(5)] {
            let held: Vec<_> = (0..2).map(|_| admission.enter("ann", work, 0)).collect();
            let later = admission.enter("ann", work, 10 * LEASE).unwrap();
            assert!(!later.renew(10 * LEASE).is_admitted(), "{work:?}");
            drop(held);
        }
    }
}
