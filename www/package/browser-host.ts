// The access of browsers to the modules, which are files beside this one.
import { MODULE, TABLES, compiled, type Host } from "./start";

export const browser: Host = {
  // Bundlers recognize this form of an address, and copy the file.
  load: () => compiled(new URL("./aqlite.wasm", import.meta.url), MODULE),
  loadTables: () => compiled(new URL("./aqlite-arrow.wasm", import.meta.url), TABLES),
};
