//! The Reference Model: class table, document tree, canonical JSON and XML, paths, values.

pub mod class;
mod class_table;
pub mod tree;
