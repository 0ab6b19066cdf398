//! The core in wasm, in Node.

mod cases;
