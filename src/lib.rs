//! aqlite: an openEHR query (AQL) and decision support (GDL) core.

pub mod diag;
pub mod rm;
