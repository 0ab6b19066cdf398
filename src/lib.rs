//! aqlite: an openEHR query (AQL) and decision support (GDL) core.

pub mod aql;
pub mod diag;
pub mod document;
pub mod gdl;
pub mod rm;
pub mod samples;
pub mod service;
pub mod store;
pub mod template;
