// The packed package in a program that esbuild bundles for Node: the modules are files beside it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import esbuild from "esbuild";
import { unpacked } from "./unpacked.mjs";

const NAMES = ["aqlite.wasm", "aqlite-arrow.wasm"];
const PROGRAM = `import { Repository, start, startTables } from "aqlite";
async function main([module, tables]) {
  if (module) await start(module);
  if (tables) await startTables(tables);
  const repository = await Repository.open();
  await repository.createEhr();
  const result = await repository.query("SELECT e/ehr_id/value AS id FROM EHR e");
  console.log(result.rows.length, String.fromCharCode(...(await result.toParquet()).subarray(0, 4)));
}
main(process.argv.slice(2)).catch((error) => console.log(error.code, error.message));
`;
let house;

before(async () => {
  house = await unpacked("esbuild-node");
  await writeFile(join(house, "program.js"), PROGRAM);
});

/** Bundles the program into a folder. Returns a function that runs it. */
async function built(folder, format) {
  const outfile = join(house, folder, format === "cjs" ? "program.cjs" : "program.mjs");
  const entryPoints = [join(house, "program.js")];
  await esbuild.build({
    entryPoints,
    outfile,
    bundle: true,
    platform: "node",
    format,
    logLevel: "error",
  });
  return (...args) => spawnSync("node", [outfile, ...args], { encoding: "utf8", cwd: house });
}

const modules = join("node_modules", "aqlite");

for (const format of ["cjs", "esm"])
  test(`a bundle for Node reads the modules beside it: ${format}`, async () => {
    const folder = `beside-${format}`;
    await mkdir(join(house, folder));
    for (const name of NAMES) await copyFile(join(house, modules, name), join(house, folder, name));
    const ran = (await built(folder, format))();
    assert.equal(ran.stdout, "1 PAR1\n", ran.stderr);
  });

test("a bundle for Node starts from paths and addresses of files", async () => {
  const run = await built("elsewhere", "cjs");
  const [module, tables] = NAMES.map((name) => join(house, modules, name));
  for (const args of [
    [module, tables],
    [`file://${module}`, `file://${tables}`],
    NAMES.map((name) => join(modules, name)),
  ])
    assert.equal(run(...args).stdout, "1 PAR1\n", args.join());
});

test("the error about a missing module names its file and the function that replaces it", async () => {
  const run = await built("missing", "cjs");
  assert.match(run().stdout, /^MODULE .*serve the file `aqlite\.wasm`.*call `start` with/);
  const module = join(modules, "aqlite.wasm");
  const tables = /^MODULE .*serve the file `aqlite-arrow\.wasm`.*call `startTables` with/;
  assert.match(run(module).stdout, tables);
  assert.match(run(module, "none.wasm").stdout, tables);
});
