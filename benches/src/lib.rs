//! The benchmark: synthetic compositions packed, questions asked of them, and every step from text to answer; native and
//! in wasm alike.

mod clock;
mod guides;
mod questions;
mod steps;

pub use clock::{seconds, timed};
pub use guides::{Fixture, guide_of_30_kb, guide_runs, sample_fixtures};
pub use questions::{Answer, Loaded, QUESTIONS, answer_of, known_texts, load};
pub use steps::{Step, language, reading};
