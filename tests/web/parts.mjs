// The foreign parts of a build, determined independently of the build: from imports, and from the
// output of Cargo.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Returns the packages that the sources import, and their dependencies. */
export function packages(folder) {
  const sources = readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(root, folder, name), "utf8"));
  const imports = sources.flatMap((text) =>
    [...text.matchAll(/^(?:import|export) (?!type).*from "((?:@[\w-]+\/)?[a-z][\w-]*)"/gm)].map(
      ([, name]) => name,
    ),
  );
  const found = new Set();
  const waiting = imports.filter((name) => !name.startsWith("aqlite-"));
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    waiting.push(
      ...Object.keys(
        JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8"))
          .dependencies ?? {},
      ),
    );
  }
  return [...found].map(
    (name) =>
      `${name} ${JSON.parse(readFileSync(join(root, "node_modules", name, "package.json"), "utf8")).version} (npm package, `,
  );
}

/** The crates of the modules of browsers. */
const MODULES = ["aqlite-wasm", "aqlite-arrow-wasm"];

/** Returns the foreign crates below crates of the workspace, the modules of browsers if none are given. */
export function crates(below = MODULES, target = "wasm32-unknown-unknown") {
  const asked = [
    "tree",
    ...below.flatMap((name) => ["--package", name]),
    "--target",
    target,
    "--edges",
    "normal,no-proc-macro",
    "--prefix",
    "none",
    "--no-dedupe",
    "--locked",
  ];
  const { status, stdout, stderr } = spawnSync(process.env.CARGO ?? "cargo", asked, {
    cwd: root,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  const lines = stdout
    .trim()
    .split("\n")
    .filter((line) => line !== "" && !line.includes("(/") && !line.includes("(proc-macro)"));
  return [...new Set(lines)].map((line) => `${line.replace(" v", " ")} (Rust crate, `);
}

/** Checks that a file of notices names all of these parts, each section with a license. */
export function assertNotices(text, parts) {
  assert.deepEqual(
    parts.filter((part) => !text.includes(part)),
    [],
  );
  for (const section of text.split(/\n\n-{80}\n\n/).slice(1))
    assert.match(section, /permission|licen[cs]e/i, section.slice(0, 200));
}
