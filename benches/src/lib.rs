//! The benchmark: synthetic compositions packed, questions asked of them, and every step from text
//! to answer; native and in wasm alike. What is measured is told as lines `KEY = VALUE`.

mod clock;
mod guides;
mod questions;
mod steps;
mod uneven;

pub use clock::{seconds, timed};
pub use guides::{guides, population};
pub use questions::{Answer, Loaded, QUESTIONS, answer_of, known_texts, load};
pub use steps::steps;
pub use uneven::Extras;

/// Tells what was measured here, natively or in wasm.
pub fn tell(key: &str, value: f64) {
    let host = if cfg!(target_family = "wasm") {
        "wasm"
    } else {
        "native"
    };
    println!("{host}.{key} = {value}");
}
