//! The Reference Model: class table, document tree, canonical JSON and XML, paths, values.
//!
//! [`class`] is the table that everything else is driven by; [`tree`] the document, built by [`json`] or [`xml`], walked
//! by [`path`], checked by [`validate`]. [`time`], [`quantity`], [`id`] and [`terminology`] know what values mean.
//!
//! ```
//! use aqlite_engine::rm::{class::Cls, json, quantity, validate, xml};
//!
//! let text = r#"{"_type":"DV_QUANTITY","magnitude":37.50,"units":"Cel"}"#;
//! let tree = json::read(text, Cls::DATA_VALUE).expect("canonical JSON");
//! let value = tree.root().expect("a value");
//!
//! assert_eq!(json::write(value), text); // digits as sent
//! assert_eq!(quantity::magnitude(value), Some(37.5));
//! assert!(validate::validate(value).is_empty());
//! assert!(xml::write(value, "value").expect("XML").contains("<magnitude>37.50</magnitude>"));
//!
//! let findings = json::read(r#"{"_type":"DV_QUANTITY","magnitude":"37.5"}"#, Cls::DATA_VALUE).expect_err("a text is no number");
//! assert_eq!(findings[0].one_line(), "/magnitude: wrong kind of value; expected a number, found a text (RM0106)");
//! ```

#[cfg(test)]
pub(crate) mod arbitrary;
mod build;
pub mod class;
#[rustfmt::skip]
mod class_table;
pub mod id;
mod invariant;
pub mod json;
pub mod number;
pub mod path;
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
