//! Storage: what a query needs as data, what a host must be able to do, and the two repositories.

pub mod repository;
pub mod scan;
