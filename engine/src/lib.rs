//! What runs for each document and each row: reading and writing, packing, rows of planned queries. `aqlite` is made of it and
//! re-exports what is for users; this crate is one of its own so that a build can optimise it otherwise than what runs for each request.

pub mod answer;
pub mod case;
pub mod diag;
pub mod document;
pub mod order;
pub mod pattern;
pub mod rm;
