// The package in Node, Deno and Bun: the module and the data sets are files.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { openFolder } from "./disk";
import { keepIn } from "./repository";
import { notLoaded, startIn } from "./start";

export * from "./api";

keepIn(openFolder);
startIn({
  load: () => compiledFile(() => new URL("./aqlite.wasm", import.meta.url)),
  loadTables: () => compiledFile(() => new URL("./aqlite-arrow.wasm", import.meta.url)),
  loadNow() {
    try {
      return new WebAssembly.Module(readFileSync(new URL("./aqlite.wasm", import.meta.url)));
    } catch (error) {
      return missing(error);
    }
  },
});

async function compiledFile(file: () => URL): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(await readFile(file()));
  } catch (error) {
    return missing(error);
  }
}

function missing(error: unknown): never {
  throw notLoaded(
    "the folder of the program",
    error instanceof Error ? error.message : String(error),
    error,
  );
}
