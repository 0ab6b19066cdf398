//! Data sets: files of documents and templates that answer queries.

pub mod answer;
pub mod block;
pub mod catalog;
pub mod content;
pub mod document;
pub mod export;
pub mod files;
pub mod load;
pub mod locate;
pub mod options;
pub mod owner;
pub mod set;
pub mod store;
pub mod templates;
pub mod version;

pub use options::DataOptions;
pub use set::{DataSet, templates_of};
