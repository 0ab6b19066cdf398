// Runs a test binary of target wasm32-wasip1 in Node: `node wasi.mjs FILE [ARGUMENT…]`. The core's own unit tests run so, inside wasm.
// The folder that AQLITE_CORPUS names is open to it by its own name: below the root of the machine, reading a large file ends Node 20.
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { WASI } from "node:wasi";

const [file, ...args] = process.argv.slice(2);
// Each package's tests start in its own folder; the corpus is named from that of the project.
const corpus = resolve(
  dirname(fileURLToPath(import.meta.url)),
  "../..",
  process.env.AQLITE_CORPUS ?? ".",
);
const env = {
  ...process.env,
  RUST_TEST_THREADS: "1",
  ...(process.env.AQLITE_CORPUS && { AQLITE_CORPUS: corpus }),
};
const wasi = new WASI({
  version: "preview1",
  args: [file, ...args],
  env,
  preopens: { "/": "/", [corpus]: corpus, ".": process.cwd() },
  returnOnExit: true,
});
const imports = wasi.getImportObject();
// Called directly, the functions of node:wasi take a short way that breaks the heap of JavaScript (nodejs/node#53087): the process ends by
// a segmentation fault, mostly when all is done.
for (const calls of Object.values(imports)) {
  for (const [name, call] of Object.entries(calls)) calls[name] = (...given) => call(...given);
}
const { instance } = await WebAssembly.instantiate(await readFile(file), imports);
process.exit(wasi.start(instance));
