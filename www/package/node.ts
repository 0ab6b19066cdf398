// The package in Node, Deno and Bun: the module and the data sets are files.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { openFolder } from "./disk";
import { keepIn } from "./repository";
import { notLoaded, startIn } from "./start";

export * from "./api";

keepIn(openFolder);
startIn({
  load: async () => WebAssembly.compile(await readFile(file()).catch(missing)),
  loadNow() {
    try {
      return new WebAssembly.Module(readFileSync(file()));
    } catch (error) {
      return missing(error);
    }
  },
});

function file(): URL {
  return new URL("./aqlite.wasm", import.meta.url);
}

function missing(error: unknown): never {
  throw notLoaded(
    "the folder of the program",
    error instanceof Error ? error.message : String(error),
    error,
  );
}
