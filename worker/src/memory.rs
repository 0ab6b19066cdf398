//! The memory of this instance, for the entry module: wasm memory never shrinks, so an instance
//! whose memory grew is replaced by a new one while no request is open.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Date;

/// Bytes of a page of wasm memory.
const PAGE: usize = 1 << 16;

/// The time after which an answer counts as sent: the runtime may forget the work of a client that
/// went away.
pub const LONGEST: Duration = Duration::from_secs(120);

thread_local! {
    /// Answers that are still being sent, after their request was handled: when each began.
    static SENDING: RefCell<Vec<Rc<u64>>> = const { RefCell::new(Vec::new()) };
}

/// An answer that is still being sent.
pub struct Sending(Rc<u64>);

impl Sending {
    /// The answer begins.
    pub fn begin() -> Sending {
        let begun = Rc::new(Date::now().as_millis());
        SENDING.with_borrow_mut(|sending| sending.push(Rc::clone(&begun)));
        Sending(begun)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        SENDING.with_borrow_mut(|sending| sending.retain(|begun| !Rc::ptr_eq(begun, &self.0)));
    }
}

fn is_sending() -> bool {
    let now = Date::now().as_millis();
    SENDING.with_borrow_mut(|sending| {
        sending.retain(|begun| u128::from(now.saturating_sub(**begun)) < LONGEST.as_millis());
        !sending.is_empty()
    })
}

/// Bytes of memory that replacing this instance would give back; 0 while an answer is being sent
/// from it.
#[wasm_bindgen]
pub fn replaceable_bytes() -> usize {
    if is_sending() { 0 } else { pages() * PAGE }
}

#[cfg(target_family = "wasm")]
fn pages() -> usize {
    core::arch::wasm32::memory_size(0)
}

/// The lints look at the worker as a native crate too.
#[cfg(not(target_family = "wasm"))]
fn pages() -> usize {
    0
}
