// The package in browsers and their workers: the module is a file beside this one.
import { compiled, startIn } from "./start";

export * from "./api";

// Bundlers recognize this form of an address, and copy the file.
startIn({
  load: () => compiled(new URL("./aqlite.wasm", import.meta.url)),
  loadTables: () => compiled(new URL("./aqlite-arrow.wasm", import.meta.url)),
});
