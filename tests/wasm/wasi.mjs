// Runs a test binary of target wasm32-wasip1 in Node: `node wasi.mjs FILE [ARGUMENT…]`. The unit
// tests of the core run in wasm by this program. The folder of AQLITE_CORPUS is mounted under its
// own name, because reading a large file below the root of the machine ends Node 20.
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { WASI } from "node:wasi";

const [file, ...args] = process.argv.slice(2);
// The tests of each package start in its own folder, but the corpus is relative to that of the
// project.
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
// Direct calls of node:wasi use a fast path that corrupts the heap of JavaScript
// (nodejs/node#53087): the process ends by a segmentation fault, mostly at its end.
for (const calls of Object.values(imports)) {
  for (const [name, call] of Object.entries(calls)) calls[name] = (...given) => call(...given);
}
const { instance } = await WebAssembly.instantiate(await readFile(file), imports);
process.exit(wasi.start(instance));
