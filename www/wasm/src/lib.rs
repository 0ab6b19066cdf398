//! The JavaScript facade of aqlite.
