// Writes the files that the core itself knows, by the module of the page in Node: the OpenAPI document and sample data as `gen-data` writes
// them. The module has the feature `files`.
//
//   node xtask/files.mjs --wasm FOLDER --out FOLDER --ehrs 36 --compositions 240
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";

const { values: given } = parseArgs({
  options: {
    wasm: { type: "string" },
    out: { type: "string" },
    ehrs: { type: "string" },
    compositions: { type: "string" },
  },
});
// Node reads a file `.js` outside a package of modules as CommonJS. A data address has no such doubt.
const bindings = await readFile(join(given.wasm, "aqlite_wasm.js"));
const aqlite = await import(`data:text/javascript;base64,${bindings.toString("base64")}`);
aqlite.initSync({ module: await readFile(join(given.wasm, "aqlite_wasm_bg.wasm")) });

await writeFile(join(given.out, "openapi.json"), aqlite.openapi());
const sample = join(given.out, "sample");
await rm(sample, { recursive: true, force: true });
const files = aqlite.sampleFiles(Number(given.ehrs), Number(given.compositions), 1);
for (const [name, text] of Object.entries(JSON.parse(files))) {
  await mkdir(dirname(join(sample, name)), { recursive: true });
  await writeFile(join(sample, name), text);
}
