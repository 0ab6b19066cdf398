// The package without a wasm module. The program passes the address, the bytes or the compiled module to
// `start` before any other call.
export * from "./api";
