// The packed package in Deno, Bun and Next, which take too long to install for every test.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { root, unpacked } from "../package/unpacked.mjs";
import { browse } from "../web/page.mjs";
import { serve } from "../web/server.mjs";

const tools = join(root, "tests/soak/bundlers/node_modules");
let house;

before(async () => {
  house = await unpacked("soak-bundlers");
  const readme = await readFile(join(house, "node_modules/aqlite/README.md"), "utf8");
  for (const [, name, code] of readme.matchAll(
    /```js\n\/\/ ((?:node|tables)\.mjs)\n([\s\S]*?)```/g,
  ))
    await writeFile(join(house, name), code);
});

/** Runs a program of `node_modules`, and returns what it prints. */
function run(name, args, folder = house) {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", DENO_NO_UPDATE_CHECK: "1" };
  const { status, stdout, stderr } = spawnSync(join(tools, ".bin", name), args, {
    cwd: folder,
    encoding: "utf8",
    env,
  });
  assert.equal(status, 0, `${name} ${args.join(" ")}:\n${stdout}\n${stderr}`);
  return stdout;
}

for (const [name, args] of [
  ["deno", ["run", "--allow-all", "--no-remote", "--node-modules-dir=manual"]],
  ["bun", []],
])
  test(`the README's programs run in ${name}`, async () => {
    assert.match(run(name, [...args, "node.mjs"]), /::aqlite\.local::1/);
    run(name, [...args, "tables.mjs"]);
    const written = await readFile(join(house, "compositions.parquet"));
    assert.equal(written.toString("latin1", 0, 4), "PAR1");
  });

const PAGE = `"use client";
import { useEffect, useState } from "react";
import { Repository, format } from "aqlite";

async function answer() {
  const repository = await Repository.open();
  await repository.generate({ ehrs: 3, compositions: 20 });
  const result = await repository.query(format("select count(*) as n from EHR e contains COMPOSITION c"));
  const table = await result.toParquet();
  return \`rows \${result.rows[0][0]} \${String.fromCharCode(...table.subarray(0, 4))}\`;
}

export default function Page() {
  const [text, setText] = useState("");
  useEffect(() => {
    import("aqlite/editor");
    answer().then(setText, (error) => setText("failed: " + error.message));
  }, []);
  return <main><p id="answer">{text}</p><aql-editor value="SELECT e FROM EHR e" /></main>;
}
`;
const LAYOUT = 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;\n';

for (const bundler of ["turbopack", "webpack"])
  test(`a client component of Next runs (${bundler})`, async () => {
    const folder = join(house, `next-${bundler}`);
    await mkdir(join(folder, "app"), { recursive: true });
    await mkdir(join(folder, "node_modules"));
    for (const name of ["next", "react", "react-dom"])
      await symlink(join(tools, name), join(folder, "node_modules", name));
    await symlink(join(house, "node_modules/aqlite"), join(folder, "node_modules/aqlite"));
    await writeFile(join(folder, "package.json"), '{ "private": true }');
    // The folder of the project is above that of the test, so Next needs its root.
    const config = { output: "export", turbopack: { root }, outputFileTracingRoot: root };
    await writeFile(join(folder, "next.config.mjs"), `export default ${JSON.stringify(config)};\n`);
    await writeFile(join(folder, "app/layout.jsx"), LAYOUT);
    await writeFile(join(folder, "app/page.jsx"), PAGE);
    run("next", ["build", `--${bundler}`], folder);
    const server = await serve(join(folder, "out"));
    const browser = await browse();
    try {
      const page = await browser.newPage();
      await page.goto(server.address);
      await page.waitForFunction(() => document.querySelector("#answer").textContent !== "");
      assert.match(await page.textContent("#answer"), /^rows [1-9]\d* PAR1$/);
      await page.waitForFunction(() => document.querySelector("aql-editor").value !== undefined);
    } finally {
      await browser.close();
      await server.stop();
    }
  });
