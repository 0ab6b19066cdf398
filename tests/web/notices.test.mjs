// The notices of the page and of the program name every foreign part.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { browse, built, offlineReady, open, expect } from "./page.mjs";
import { cratesOf } from "../../www/notices.mjs";
import { assertNotices, crates, packages } from "./parts.mjs";
import { serve } from "./server.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the notices of the page name every bundled package and crate, each with a license", () => {
  const parts = [...packages("www/src"), ...crates()];
  assert.ok(parts.length > 40, parts.join("\n"));
  assertNotices(readFileSync(join(built, "THIRD_PARTY_NOTICES.txt"), "utf8"), parts);
});

/** Returns the target of this machine. */
function host() {
  const version = spawnSync("rustc", ["-vV"], { encoding: "utf8" }).stdout;
  return /^host: (.+)$/m.exec(version)[1];
}

test("the notices of the program name every crate of its target, with a license", () => {
  const target = host();
  const out = join(root, "target/notices.txt");
  mkdirSync(join(root, "target"), { recursive: true });
  const program = ["www/notices.mjs", "--package", "aqlite-cli", "--target", target, "--out", out];
  const run = spawnSync(process.execPath, program, { cwd: root, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  const parts = crates(["aqlite-cli"], target);
  assert.ok(parts.length > 200, parts.join("\n"));
  const text = readFileSync(out, "utf8");
  assertNotices(text, parts);
  // Code that a crate copied from elsewhere has its license in a folder of the crate.
  assert.match(text, /^ring 0\..*\n(.*\n)*.*fiat-crypto authors/m);
});

test("each archive of the program contains its notices", () => {
  const workflow = readFileSync(join(root, ".github/workflows/release.yml"), "utf8");
  const [, pack] = /- name: pack\n((?: {8,}.*\n)+)/.exec(workflow);
  const command =
    "node www/notices.mjs --package aqlite-cli --target ${{ matrix.target }} --out aqlite/";
  assert.ok(pack.includes(command), pack);
  assert.ok(pack.indexOf(command) < pack.indexOf("tar -czf"), pack);
});

test("docs/dependencies.md lists each crate of the modules with its place", () => {
  const document = readFileSync(join(root, "docs/dependencies.md"), "utf8");
  const rows = (heading) => {
    const section = document.split("\n## ").find((part) => part.startsWith(heading));
    const table = [...section.matchAll(/^\| `(.+?)` \| (\S+) \| .+? \| (.+?) \|/gm)];
    return new Map(table.map(([, name, version, place]) => [`${name} ${version}`, place]));
  };
  const named = rows("Rust crates that the code names");
  const linked = rows("Rust crates that these link");
  const below = (...tree) => crates(...tree).map((part) => part.replace(/ \(Rust crate, $/, ""));
  const places = { page: new Set(below()), worker: new Set(below(["aqlite-worker"])) };
  for (const part of new Set([...places.page, ...places.worker, ...linked.keys()])) {
    if (named.has(part) && !linked.has(part)) continue;
    const found = Object.keys(places).filter((place) => places[place].has(part));
    assert.equal(linked.get(part), found.join(", "), part);
  }
});

/** Returns whether a license expression can be fulfilled with these licenses alone. */
function isAllowed(expression, allowed) {
  const words = expression.replaceAll("/", " OR ").match(/\(|\)|[^\s()]+(?: WITH [^\s()]+)?/g);
  const either = () => {
    let holds = both();
    while (words[0] === "OR") holds = (words.shift(), both()) || holds;
    return holds;
  };
  const both = () => {
    let holds = one();
    while (words[0] === "AND") holds = (words.shift(), one()) && holds;
    return holds;
  };
  const one = () => {
    const word = words.shift();
    if (word !== "(") return allowed.includes(word);
    const holds = either();
    assert.equal(words.shift(), ")", expression);
    return holds;
  };
  const holds = either();
  assert.deepEqual(words, [], expression);
  return holds;
}

test("every crate of a module or of the program has a license that deny.toml allows", () => {
  const rules = readFileSync(join(root, "deny.toml"), "utf8");
  const [, list] = /^allow = \[(.+)\]$/m.exec(rules);
  const allowed = [...list.matchAll(/"(.+?)"/g)].map(([, name]) => name);
  const [, targets] = /^targets = \[([^\]]+)\]/m.exec(rules);
  assert.ok(targets.includes(`"${host()}"`), "deny.toml checks this platform");
  const wasm = "wasm32-unknown-unknown";
  const linked = [
    ...cratesOf(root, { crates: ["aqlite-cli"], target: host() }),
    ...cratesOf(root, { crates: ["aqlite-wasm", "aqlite-arrow-wasm"], target: wasm }),
    ...cratesOf(root, { crates: ["aqlite-worker"], target: wasm }),
  ];
  assert.ok(linked.length > 300, `${linked.length} crates`);
  const others = linked.filter(({ license }) => !isAllowed(license ?? "none", allowed));
  assert.deepEqual(
    others.map(({ name, license }) => `${name}: ${license}`),
    [],
  );
  assert.deepEqual(
    ["(MIT OR GPL-2.0) AND ISC", "MIT AND GPL-2.0", "GPL-2.0/Zlib"].map((text) =>
      isAllowed(text, allowed),
    ),
    [true, false, true],
  );
});

test("the page links to its notices, offline too", async () => {
  const server = await serve(built);
  const browser = await browse();
  try {
    const page = await open(browser, server.address);
    await offlineReady(page);
    await page.context().setOffline(true);
    await page.getByRole("link", { name: "Licenses" }).click();
    await page.waitForURL(/THIRD_PARTY_NOTICES\.txt$/);
    await expect(page.locator("body")).toHaveText(/nom 8\.\d.*Rust crate, MIT/);
  } finally {
    await browser.close();
    await server.stop();
  }
});
