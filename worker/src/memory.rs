//! The memory of this instance, for the entry module: wasm memory never shrinks, so an instance
//! whose memory grew is replaced by a new one while no request is open.

use std::cell::Cell;
use wasm_bindgen::prelude::wasm_bindgen;

/// Bytes of a page of wasm memory.
const PAGE: usize = 1 << 16;

thread_local! {
    /// Answers that are still being sent, after their request was handled.
    static SENDING: Cell<usize> = const { Cell::new(0) };
}

/// An answer that is still being sent.
pub struct Sending;

impl Sending {
    /// The answer begins.
    pub fn begin() -> Sending {
        SENDING.set(SENDING.get() + 1);
        Sending
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        SENDING.set(SENDING.get().saturating_sub(1));
    }
}

/// Bytes of memory that replacing this instance would give back; 0 while an answer is being sent
/// from it.
#[wasm_bindgen]
pub fn replaceable_bytes() -> usize {
    if SENDING.get() > 0 { 0 } else { pages() * PAGE }
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
