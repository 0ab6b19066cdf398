//! The memory of this instance and of the isolate around it.
//!
//! Wasm memory never shrinks. While no request is open, the entry module therefore replaces an
//! instance whose memory grew.
//!
//! V8 stores texts of more than about 100,000 bytes in a space that it collects seldom. This module
//! counts the copies of such texts, and forces a collection when they have become many.

use aqlite::service::SEND_TIME;
use std::cell::RefCell;
use std::rc::Rc;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Date;

/// Bytes of a page of wasm memory.
const PAGE: usize = 1 << 16;

/// The number of copies of a text that a message to or from the database leaves as garbage: the
/// message, its decoded form, the values, and the text that passes to wasm.
const COPIES: usize = 4;

#[wasm_bindgen(module = "/garbage.js")]
extern "C" {
    #[wasm_bindgen(js_name = countGarbage)]
    fn count(bytes: usize, is_idle: bool);
}

thread_local! {
    /// Start times of the responses that are still being sent after their request was handled.
    static SENDING: RefCell<Vec<Rc<u64>>> = const { RefCell::new(Vec::new()) };
}

/// A response that is still being sent.
pub struct Sending(Rc<u64>);

impl Sending {
    /// Records the start of a response.
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
        sending.retain(|begun| u128::from(now.saturating_sub(**begun)) < SEND_TIME.as_millis());
        !sending.is_empty()
    })
}

/// Returns the bytes of memory that replacing this instance would free; 0 while a response is being
/// sent.
#[wasm_bindgen]
pub fn replaceable_bytes() -> usize {
    if is_sending() { 0 } else { pages() * PAGE }
}

/// Counts the garbage of a message to the database, or from it.
pub fn count_message(bytes: usize) {
    count(bytes.saturating_mul(COPIES), false);
}

/// Counts the bytes of a response, which are copied once.
pub fn count_response(bytes: usize) {
    count(bytes, false);
}

/// Forces a garbage collection if no response is being sent and enough garbage was counted.
#[wasm_bindgen]
pub fn collect_idle_garbage() {
    count(0, !is_sending());
}

#[cfg(target_family = "wasm")]
fn pages() -> usize {
    core::arch::wasm32::memory_size(0)
}

/// A substitute for lints, which compile the worker as a native crate.
#[cfg(not(target_family = "wasm"))]
fn pages() -> usize {
    0
}
