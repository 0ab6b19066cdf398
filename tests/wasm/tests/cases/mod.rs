//! The tests for both hosts. They use the cases and data of the native tests.

mod aql;
#[path = "../../../it/rows/case.rs"]
#[allow(dead_code, reason = "the native tests use more of it")]
mod case;
mod facade;
mod gdl;
#[path = "../../../it/notation.rs"]
#[allow(dead_code, reason = "the native tests use more of it")]
mod notation;
mod rm;
mod service;

/// A composition that follows [`TEMPLATE`]: a body weight of 72.50 kg.
const WEIGHT: &str = include_str!("../../../cases/rest/weight.json");
/// A template of one body weight.
const TEMPLATE: &str = include_str!("../../../cases/template/small.opt");
/// A guide that sorts a body weight into class 1 or, above 100 kg, 2.
const GUIDE: &str = include_str!("../../../cases/rest/weight_class.gdl2");
/// The time of requests and queries.
const NOW: &str = "2026-12-01T00:00:00Z";
/// The same, in milliseconds since 1970.
const NOW_MILLIS: f64 = 1_796_083_200_000.0;
