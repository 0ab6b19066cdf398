// The packed package in bundlers: each builds one program, which runs in Chromium.
import { nodeResolve } from "@rollup/plugin-node-resolve";
import assert from "node:assert/strict";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import esbuild from "esbuild";
import { rollup } from "rollup";
import webpack from "webpack";
import { browse } from "../web/page.mjs";
import { serve } from "../web/server.mjs";
import { unpacked } from "./unpacked.mjs";

/** The longest time in milliseconds until a program has its rows. */
const PATIENCE = 120_000;
/** The program that each bundler builds. It needs both wasm modules, and chunks that load on demand. */
const PROGRAM = `import { AqliteError, Repository, format } from "aqlite";
async function main() {
  try {
    format("select e from EHR e");
  } catch (error) {
    if (!(error instanceof AqliteError) || error.code !== "NOT_STARTED") throw error;
  }
  const repository = await Repository.open();
  await repository.generate({ ehrs: 3, compositions: 20 });
  const q = format("select count(*) as n from EHR e contains COMPOSITION c");
  const result = await repository.query(q);
  const table = await result.toParquet();
  const magic = String.fromCharCode(...table.subarray(0, 4));
  if (magic !== "PAR1") throw new Error("the table begins with " + magic);
  document.title = "rows " + result.rows[0][0];
}
main().catch((error) => (document.title = "failed: " + error.message));
`;
const PAGE =
  '<!doctype html>\n<link rel="icon" href="data:,">\n<script type="module" src="./app.js"></script>\n';
let house, browser;

before(async () => {
  house = await unpacked("bundlers");
  browser = await browse();
});
after(() => browser.close());

/** Creates the sources of the program in a folder. Returns the folder. */
async function program(name) {
  const folder = join(house, name);
  await mkdir(join(folder, "dist"), { recursive: true });
  await writeFile(join(folder, "index.html"), PAGE);
  await writeFile(join(folder, "app.js"), PROGRAM);
  return folder;
}

/** Opens an address and returns the title that the program sets. */
async function titleAt(address) {
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(address);
  await page
    .waitForFunction(() => document.title !== "", undefined, { timeout: PATIENCE })
    .catch(() => assert.fail(`no title after ${PATIENCE} ms: ${problems.join(", ")}`));
  return page.title();
}

/** Runs the build in a folder, and expects rows. */
async function runs(folder) {
  const server = await serve(folder);
  try {
    assert.match(await titleAt(server.address), /^rows [1-9]/);
  } finally {
    await server.stop();
  }
}

/** Copies the page and the modules beside a build, as the README says. */
async function completed(folder) {
  const dist = join(folder, "dist");
  await copyFile(join(folder, "index.html"), join(dist, "index.html"));
  for (const name of ["aqlite.wasm", "aqlite-arrow.wasm"])
    await copyFile(join(house, "node_modules/aqlite", name), join(dist, name));
  return dist;
}

test("esbuild", async () => {
  const folder = await program("esbuild");
  await esbuild.build({
    entryPoints: [join(folder, "app.js")],
    outdir: join(folder, "dist"),
    bundle: true,
    format: "esm",
    logLevel: "error",
  });
  await runs(await completed(folder));
});

test("Rollup", async () => {
  const folder = await program("rollup");
  const bundle = await rollup({
    input: join(folder, "app.js"),
    plugins: [nodeResolve({ browser: true })],
    onwarn: ({ message }) => assert.fail(message),
  });
  await bundle.write({ dir: join(folder, "dist"), format: "es" });
  await bundle.close();
  await runs(await completed(folder));
});

test("webpack", async () => {
  const folder = await program("webpack");
  const compiler = webpack({
    context: folder,
    mode: "production",
    entry: "./app.js",
    output: { path: join(folder, "dist"), filename: "app.js" },
    performance: { hints: false },
  });
  const stats = await new Promise((resolve, reject) =>
    compiler.run((error, found) => (error ? reject(error) : resolve(found))),
  );
  assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());
  await copyFile(join(folder, "index.html"), join(folder, "dist/index.html"));
  await runs(join(folder, "dist"));
});

for (const version of [6, 7, 8]) {
  const config = (folder) => ({
    root: folder,
    configFile: false,
    logLevel: "error",
    cacheDir: join(folder, "cache"),
    // The development server of these versions copies packages without their other files.
    ...(version < 8 ? { optimizeDeps: { exclude: ["aqlite"] } } : {}),
  });

  test(`Vite ${version}`, async () => {
    const { build } = await import(`vite${version}`);
    const folder = await program(`vite${version}`);
    await build({ ...config(folder), build: { emptyOutDir: true } });
    await runs(join(folder, "dist"));
  });

  test(`the server of Vite ${version}`, async () => {
    const { createServer } = await import(`vite${version}`);
    const folder = await program(`vite${version}-server`);
    const server = await createServer({
      ...config(folder),
      server: { host: "127.0.0.1", port: 0, ws: false, watch: null },
    });
    await server.listen();
    try {
      assert.match(await titleAt(server.resolvedUrls.local[0]), /^rows [1-9]/);
    } finally {
      await server.close();
    }
  });
}
