// The package in Node: the module and the data sets are files.
import { initSync } from "aqlite-wasm";
import { readFile } from "node:fs/promises";
import { openFolder } from "./disk";
import { keepIn } from "./repository";

export * from "./api";

initSync({ module: await readFile(new URL("./aqlite.wasm", import.meta.url)) });
keepIn(openFolder);
