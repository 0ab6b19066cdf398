// The package without a module of its own: `start` gets its address, its bytes or the compiled
// module before any other call.
export * from "./api";
