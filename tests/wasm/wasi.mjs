// Runs a test binary of target wasm32-wasip1 in Node: `node wasi.mjs FILE [ARGUMENT…]`. The core's own unit tests run so, inside wasm.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [file, ...args] = process.argv.slice(2);
const env = { ...process.env, RUST_TEST_THREADS: "1" };
const wasi = new WASI({ version: "preview1", args: [file, ...args], env, preopens: { "/": "/", ".": process.cwd() }, returnOnExit: true });
const { instance } = await WebAssembly.instantiate(await readFile(file), wasi.getImportObject());
process.exit(wasi.start(instance));
