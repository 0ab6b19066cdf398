// The OpenAPI document is complete enough for openapi-typescript: the generated client compiles in
// strict mode, and works.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { V1, freshState, root, start } from "./server.mjs";

const folder = join(root, "target/e2e/client");
const Q =
  "SELECT c/uid/value, o/data/events/data/items[at0004]/value FROM EHR e[ehr_id/value != ''] CONTAINS COMPOSITION c CONTAINS OBSERVATION o";
const OPTIONS = [
  "--strict",
  "--noEmit",
  "--skipDefaultLibCheck",
  "--exactOptionalPropertyTypes",
  "false",
  "--target",
  "es2022",
  "--module",
  "esnext",
  "--moduleResolution",
  "bundler",
  "--lib",
  "es2022,dom",
];

/** Runs a program of an npm package. A failure includes its output. */
function program(name, ...args) {
  try {
    execFileSync(process.execPath, [join(root, "node_modules", name), ...args], {
      cwd: root,
      encoding: "utf8",
      stdio: "pipe",
    });
  } catch (error) {
    assert.fail(`${name}: ${error.stdout}${error.stderr}`);
  }
}

test("a client that is generated from the document compiles and works", async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const server = await start(freshState("openapi-client"), { AUTH: "none" });
  try {
    writeFileSync(join(folder, "openapi.json"), (await server.send("GET", "/openapi.json")).text);
    program(
      "openapi-typescript/bin/cli.js",
      join(folder, "openapi.json"),
      "--output",
      join(folder, "schema.d.ts"),
    );
    copyFileSync(join(root, "tests/e2e/client/client.ts"), join(folder, "client.ts"));
    program("typescript/bin/tsc", ...OPTIONS, join(folder, "client.ts"));
    await build({
      entryPoints: [join(folder, "client.ts")],
      outfile: join(folder, "client.mjs"),
      bundle: true,
      format: "esm",
      platform: "node",
      logLevel: "error",
    });
    const { round } = await import(pathToFileURL(join(folder, "client.mjs")).href);
    const [template, composition] = ["template/small.opt", "rest/weight.json"].map((name) =>
      readFileSync(join(root, "tests/cases", name), "utf8"),
    );
    const { ehr, stored, kilograms, problem } = await round(
      `http://127.0.0.1:${server.port}${V1}`,
      template,
      JSON.parse(composition),
      Q,
    );
    assert.match(ehr, /^[0-9a-f-]{36}$/);
    assert.equal(stored.length, 1);
    assert.equal(kilograms.units, "kg");
    assert.match(problem, /expected/);
  } finally {
    await server.stop();
  }
});
