// The notices of the page name every foreign part.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { browse, built, offlineReady, open, expect } from "./page.mjs";
import { assertNotices, crates, packages } from "./parts.mjs";
import { serve } from "./server.mjs";

test("the notices of the page name every bundled package and crate, each with a licence", () => {
  const parts = [...packages("www/src"), ...crates()];
  assert.ok(parts.length > 40, parts.join("\n"));
  assertNotices(readFileSync(join(built, "THIRD_PARTY_NOTICES.txt"), "utf8"), parts);
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
