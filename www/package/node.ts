// The package in Node, Deno and Bun: the module and the data sets are files.
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { openFolder } from "./disk";
import { reasonOf } from "./errors";
import { keepIn } from "./repository";
import { MODULE, TABLES, notLoaded, startIn, type ModuleFile } from "./start";

export * from "./api";

/** The folder of a bundle in CommonJS, which has no `import.meta.url`. */
declare const __dirname: string | undefined;

// Bundlers recognize this form of an address, and copy the file.
const moduleAddress = () => new URL("./aqlite.wasm", import.meta.url);
const tablesAddress = () => new URL("./aqlite-arrow.wasm", import.meta.url);

keepIn(openFolder);
startIn({
  load: () => compiledFile(MODULE, moduleAddress),
  loadTables: () => compiledFile(TABLES, tablesAddress),
  loadNow() {
    try {
      return new WebAssembly.Module(readFileSync(placeOf(MODULE, moduleAddress)));
    } catch (error) {
      return missing(MODULE, error);
    }
  },
  read: (address) => readFile(address.startsWith("file:") ? new URL(address) : address),
});

/** Returns the place of a file of the package: beside this module, or beside the bundle. */
function placeOf({ name }: ModuleFile, address: () => URL): URL | string {
  try {
    return address();
  } catch {
    return join(typeof __dirname === "undefined" ? "." : __dirname, name);
  }
}

async function compiledFile(file: ModuleFile, address: () => URL): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(await readFile(placeOf(file, address)));
  } catch (error) {
    return missing(file, error);
  }
}

function missing(file: ModuleFile, error: unknown): never {
  const why = reasonOf(error);
  throw notLoaded(file, "the folder of the program", why, error);
}
