// The notices of the page and of the program name every foreign part.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { browse, built, offlineReady, open, expect } from "./page.mjs";
import { assertNotices, crates, packages } from "./parts.mjs";
import { serve } from "./server.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the notices of the page name every bundled package and crate, each with a licence", () => {
  const parts = [...packages("www/src"), ...crates()];
  assert.ok(parts.length > 40, parts.join("\n"));
  assertNotices(readFileSync(join(built, "THIRD_PARTY_NOTICES.txt"), "utf8"), parts);
});

test("the notices of the program name every crate of its target, with a licence", () => {
  const version = spawnSync("rustc", ["-vV"], { encoding: "utf8" }).stdout;
  const [, host] = /^host: (.+)$/m.exec(version);
  const out = join(root, "target/notices.txt");
  mkdirSync(join(root, "target"), { recursive: true });
  const program = ["www/notices.mjs", "--package", "aqlite-cli", "--target", host, "--out", out];
  const run = spawnSync(process.execPath, program, { cwd: root, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  const parts = crates(["aqlite-cli"], host);
  assert.ok(parts.length > 200, parts.join("\n"));
  const text = readFileSync(out, "utf8");
  assertNotices(text, parts);
  // Code that a crate copied from elsewhere has its licence in a folder of the crate.
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

test("the page links to its notices, offline too", async () => {
  const server = await serve(built);
  const browser = await browse();
  try {
    const page = await open(browser, server.address);
    await offlineReady(page);
    await page.context().setOffline(true);
    await page.getByRole("link", { name: "Licences" }).click();
    await page.waitForURL(/THIRD_PARTY_NOTICES\.txt$/);
    await expect(page.locator("body")).toHaveText(/nom 8\.\d.*Rust crate, MIT/);
  } finally {
    await browser.close();
    await server.stop();
  }
});
