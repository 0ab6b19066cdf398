// The package without a module: the caller supplies its bytes or the compiled module before any
// other call.
import init, { initSync } from "aqlite-wasm";
import { opfs } from "../src/storage";
import { AqliteError } from "./errors";
import { keepIn } from "./repository";

export * from "./api";

/**
 * Starts the module from its address, a response, its bytes, or a compiled module. A compiled
 * module is started synchronously.
 */
export async function start(
  module: WebAssembly.Module | BufferSource | Response | URL | string,
): Promise<void> {
  keepIn(privateFiles);
  if (module instanceof WebAssembly.Module) initSync({ module });
  else await init({ module_or_path: module });
}

/**
 * A folder of the origin private file system.
 * @internal
 */
export async function privateFiles(folder = "aqlite") {
  const root = await opfs(folder);
  if (root) return root;
  throw new AqliteError(
    "this host has no origin private file system: open the repository without `name`, or in a page of a secure context",
    { code: "STORAGE" },
  );
}
