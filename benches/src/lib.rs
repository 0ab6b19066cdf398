//! The benchmark: queries on synthetic compositions in columns, and every step from text to answer,
//! natively and in wasm. Results are printed as lines `KEY = VALUE`.

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

/// Prints a result.
pub fn report(key: &str, value: f64) {
    let host = if cfg!(target_family = "wasm") {
        "wasm"
    } else {
        "native"
    };
    println!("{host}.{key} = {value}");
}
