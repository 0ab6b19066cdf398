#![doc = include_str!("../README.md")]

#[cfg(any(test, feature = "arbitrary"))]
#[doc(hidden)]
pub mod arbitrary;
mod build;
pub mod class;
#[rustfmt::skip]
mod class_table;
pub mod diag;
pub mod exact;
pub mod id;
pub mod imported;
mod invariant;
pub mod json;
pub mod number;
pub mod order;
pub mod path;
pub mod pattern;
mod plain;
pub mod quantity;
mod scan;
pub mod terminology;
pub mod time;
pub mod tree;
pub mod units;
pub mod validate;
pub mod xml;

pub use build::Limits;
pub use scan::Token;
