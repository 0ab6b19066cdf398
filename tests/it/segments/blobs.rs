//! A store of blobs that fails at random.

use aqlite::store::sql::{BlobFuture, Blobs};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{poll_fn, ready};
use std::rc::Rc;
use std::task::{Context, Poll};

/// A store whose readings and writings fail at random.
#[derive(Clone, Default)]
pub(super) struct Unreliable {
    pub blobs: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    /// One operation in this number fails; 0: none.
    pub one_fails_in: Rc<Cell<u64>>,
    pub state: Rc<Cell<u64>>,
    pub reads: Rc<Cell<usize>>,
    /// Readings wait for one turn each.
    pub is_slow: Rc<Cell<bool>>,
}

impl Unreliable {
    /// A number from 0 to 3 where the operation fails.
    fn fault(&self) -> Option<u64> {
        let state = self.state.get().wrapping_mul(6_364_136_223_846_793_005) + 1;
        self.state.set(state);
        let every = self.one_fails_in.get();
        (every > 0 && (state >> 33).is_multiple_of(every)).then_some(state >> 40 & 3)
    }
}

impl Blobs for Unreliable {
    fn get<'a>(&'a self, key: &'a str) -> BlobFuture<'a, Option<Vec<u8>>> {
        self.reads.set(self.reads.get() + 1);
        let mut blob = self.blobs.borrow().get(key).cloned();
        let answer = match (self.fault(), &mut blob) {
            (Some(0), _) => Err(String::from("the store is away")),
            (Some(1), Some(bytes)) => {
                let middle = bytes.len() / 2;
                bytes.iter_mut().skip(middle).take(1).for_each(|b| *b ^= 1);
                Ok(blob)
            }
            (Some(2), Some(bytes)) => {
                bytes.truncate(bytes.len() / 2);
                Ok(blob)
            }
            (Some(_), _) => Ok(None),
            (None, _) => Ok(blob),
        };
        let mut waits = self.is_slow.get();
        let mut answer = Some(answer);
        Box::pin(poll_fn(move |context: &mut Context<'_>| {
            if std::mem::take(&mut waits) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(answer.take().unwrap_or(Ok(None)))
        }))
    }

    fn put<'a>(&'a self, key: &'a str, bytes: Vec<u8>) -> BlobFuture<'a, ()> {
        let answer = match self.fault() {
            Some(_) => Err(String::from("the store is away")),
            None => {
                let before = self.blobs.borrow_mut().insert(key.to_owned(), bytes);
                assert!(before.is_none(), "a key is stored once");
                Ok(())
            }
        };
        Box::pin(ready(answer))
    }

    fn delete<'a>(&'a self, key: &'a str) -> BlobFuture<'a, ()> {
        let answer = match self.fault() {
            Some(_) => Err(String::from("the store is away")),
            None => {
                self.blobs.borrow_mut().remove(key);
                Ok(())
            }
        };
        Box::pin(ready(answer))
    }
}
