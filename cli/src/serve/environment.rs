//! Clock, random numbers, time zones, and admission control of a service thread, for the service.

use super::parts::PartOrder;
use super::thread::ServiceThread;
use aqlite::service::{
    EarlierCommits, Environment, Pause, Permit, RoomFuture, StorageCheck, Turn, TurnFuture,
    WaitFuture, Work,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// The room of a request in memory, if it has any; returned when its response is sent.
pub type RoomSlot = Rc<RefCell<Option<Permit>>>;

/// The heavy permit of a request, or the permit of its wait for a foreign server, if it has any.
pub type HeavySlot = Rc<RefCell<Option<Permit>>>;

/// The machine: its clock, its random numbers, the zones of the program.
pub struct Machine;

/// Returns the time in microseconds since 1970. A clock before 1970 counts as 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_micros()).unwrap_or(i64::MAX)
}

impl Environment for Machine {
    fn now(&mut self) -> i64 {
        now()
    }

    fn new_uuid(&mut self) -> String {
        uuid::Uuid::new_v4().to_string()
    }

    fn pause(&mut self) -> Pause {
        Box::pin(tokio::task::yield_now())
    }

    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        let time = Timestamp::from_millisecond(millis).ok()?;
        let zone = TimeZone::get(zone).ok()?;
        Some(zone.to_offset(time).seconds())
    }
}

/// The machine together with admission control of a thread, for a request of a caller.
pub struct RequestEnvironment {
    /// The thread of the request.
    pub thread: Rc<ServiceThread>,
    /// The caller in admission control.
    pub key: String,
    /// The room of the request.
    pub room: RoomSlot,
    /// Bytes of memory for the body of the request, which any other room adds to.
    pub body: usize,
    /// The heavy permit of the request.
    pub heavy: HeavySlot,
    /// The position of the request in a longer body, if it is a part of one.
    pub part: Option<Rc<PartOrder>>,
}

impl Environment for RequestEnvironment {
    fn now(&mut self) -> i64 {
        now()
    }

    fn new_uuid(&mut self) -> String {
        Machine.new_uuid()
    }

    fn pause(&mut self) -> Pause {
        Machine.pause()
    }

    fn arrival(&mut self) -> i64 {
        self.part.as_ref().map_or_else(now, |part| part.arrival)
    }

    fn earlier_parts(&mut self) -> Option<EarlierCommits> {
        let part = self.part.clone()?;
        Some(Box::pin(async move { part.is_next().await }))
    }

    fn sends_parts(&self) -> bool {
        true
    }

    fn turn(&mut self) -> TurnFuture {
        let (thread, key) = (Rc::clone(&self.thread), self.key.clone());
        Box::pin(async move {
            // With the longer patience: the request is in progress, and turns are short.
            let permit = thread.permit(&key, Work::Turn, true).await?;
            // Other tasks run before the turn begins, so a chain of turns cannot starve them.
            tokio::task::yield_now().await;
            Some(Turn::new(permit))
        })
    }

    fn room(&mut self, bytes: usize) -> RoomFuture {
        let thread = Rc::clone(&self.thread);
        let bytes = bytes.saturating_add(self.body);
        let (key, room) = (self.key.clone(), Rc::clone(&self.room));
        Box::pin(async move {
            // Returned first: waiting for more while holding some could block two requests forever.
            room.take();
            let permit = thread.permit(&key, Work::Room(bytes), false).await;
            let is_free = permit.is_some();
            room.replace(permit);
            is_free
        })
    }

    fn replace_permit(&mut self, work: Work) -> WaitFuture {
        let (thread, key) = (Rc::clone(&self.thread), self.key.clone());
        let (heavy, is_heavy) = (Rc::clone(&self.heavy), work == Work::Heavy);
        Box::pin(async move {
            let returned = heavy.borrow_mut().take_if(|_| !is_heavy);
            thread.return_permit(returned);
            // With the longer patience for heavy work: the request is in progress.
            let permit = thread.permit(&key, work, is_heavy).await;
            thread.return_permit(heavy.replace(permit));
            heavy.borrow().is_some()
        })
    }

    fn storage_problem(&mut self) -> StorageCheck {
        Box::pin(self.thread.health.clone().problem())
    }

    fn offset(&mut self, zone: &str, millis: i64) -> Option<i32> {
        Machine.offset(zone, millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_have_their_offset_at_a_time() {
        // 2026-07-01T00:00:00Z and 2026-01-01T00:00:00Z
        let (summer, winter) = (1_782_864_000_000, 1_767_225_600_000);
        assert_eq!(Machine.offset("Europe/Stockholm", summer), Some(7_200));
        assert_eq!(Machine.offset("Europe/Stockholm", winter), Some(3_600));
        assert_eq!(Machine.offset("UTC", winter), Some(0));
        assert_eq!(Machine.offset("Europe/Nowhere", winter), None);
    }
}
