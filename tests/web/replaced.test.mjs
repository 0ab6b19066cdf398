// Data that were replaced by "Start over", or removed: they can be restored for ten minutes, also after
// a reload, and are erased then.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, built, caller, expect, ready, settled, visit } from "./page.mjs";
import { serve } from "./server.mjs";

let server;
let browser;

before(async () => {
  server = await serve(built);
  browser = await browse();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** Starts over from data with an own write, and loads the page again. */
const startedOver = (use) =>
  visit(browser, server.address, async (page) => {
    const call = await caller(page);
    await call("newEhr", null);
    const { discarded } = await call("startOver", null);
    await call.kill();
    await page.reload();
    await ready(page);
    await page.click("#tab-data");
    await use(page, discarded);
  });

/** Changes the time at which a data set was discarded, to this many milliseconds ago. */
const age = (page, id, milliseconds) =>
  page.evaluate(
    async ({ id, milliseconds }) => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle("aqlite");
      const file = await root.getFileHandle("index.json");
      const index = JSON.parse(await (await file.getFile()).text());
      index.sets[id].discarded = Date.now() - milliseconds;
      const stream = await file.createWritable();
      await stream.write(JSON.stringify(index));
      await stream.close();
    },
    { id, milliseconds },
  );

const folders = (page) =>
  page.evaluate(async () => {
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle("aqlite");
    return Array.fromAsync(root.keys());
  });

test("starting over can be undone after a reload", () =>
  startedOver(async (page) => {
    await expect(page.locator("#state-text")).toHaveText(/^32 patients/);
    await page.click("#bring-back");
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(/^33 patients/);
    await expect(page.locator("#bring-back")).toBeFocused();
  }));

test("other steps do not end the undo of a start over", () =>
  startedOver(async (page) => {
    await page.fill("#seed", "2");
    await page.click("#generate");
    await page.locator("#make-former").waitFor();
    await settled(page);
    await expect(page.locator("#bring-back")).toBeVisible();
    await page.fill("#set-name", "Ward 7");
    await page.click("#set-new");
    await settled(page);
    await expect(page.locator("#bring-back")).toHaveCount(0);
    await page.getByLabel("Open Sample patients").click();
    await settled(page);
    await page.click("#bring-back");
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(/^33 patients/);
  }));

test("other steps and a reload do not end the undo of a removed data set", () =>
  visit(browser, server.address, async (page) => {
    const call = await caller(page);
    const [first] = await call("sets", null);
    for (const name of ["Ward 7", "Ward 8"]) await call("createSet", name);
    await call("openSet", first.id);
    await page.click("#tab-data");
    for (const name of ["Ward 7", "Ward 8"]) {
      await page.getByLabel(`Remove ${name}`).click();
      await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
      await settled(page);
    }
    await page.reload();
    await ready(page);
    await page.click("#tab-data");
    const removed = page.locator(".sets-removed li");
    await expect(removed).toHaveText(["“Ward 8” is removed. Undo", "“Ward 7” is removed. Undo"]);
    await removed.nth(1).getByRole("button").click();
    await settled(page);
    await expect(page.getByLabel("Name of Ward 7")).toBeFocused();
    await expect(removed).toHaveText(["“Ward 8” is removed. Undo"]);
  }));

test("replaced data are erased after ten minutes, by an open page and by the next start", () =>
  startedOver(async (page, discarded) => {
    assert.ok((await folders(page)).includes(discarded));
    await age(page, discarded, 570_000);
    await page.reload();
    await ready(page);
    await expect(page.locator("#bring-back")).toBeVisible();
    await expect.poll(() => folders(page)).not.toContain(discarded);
    await expect(page.locator("#bring-back")).toHaveCount(0);
    const call = await caller(page);
    const second = await call("startOver", null);
    await call.kill();
    await age(page, second.discarded, 601_000);
    await page.reload();
    await ready(page);
    await expect(page.locator("#bring-back")).toHaveCount(0);
    assert.ok(!(await folders(page)).includes(second.discarded));
  }));

test("starting over needs a confirmation that names the lost data, and can be undone", () =>
  visit(browser, server.address, async (page) => {
    const call = await caller(page);
    await call("newEhr", null);
    await call("newEhr", null);
    await page.locator("#state-text", { hasText: "34 patients" }).waitFor();
    const before = await page.locator("#state-text").textContent();
    await page.click("#tab-data");
    const dialog = page.locator("dialog[open]");
    await page.click("#start-over");
    await expect(dialog).toHaveText(
      /“Sample patients”.*2 writes of your own \(files, forms, requests\) in it go with them\. You can undo it/,
    );
    await page.keyboard.press("Escape");
    await settled(page);
    await expect(page.locator("#state-text"), "closed, nothing happens").toHaveText(before);
    await page.click("#start-over");
    await dialog.getByRole("button", { name: "Start over" }).click();
    await page.locator("#bring-back").waitFor();
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(/^32 patients/);
    assert.deepEqual(
      (await call("sets", null)).map(({ name }) => name),
      ["Sample patients"],
    );
    await page.reload();
    await ready(page);
    await expect(page.locator("#state-text")).toHaveText(/^32 patients/);
    await page.click("#tab-data");
    await page.click("#start-over");
    await expect(dialog).toHaveText(/Nothing of your own was written to it\./);
    await dialog.getByRole("button", { name: "Start over" }).click();
    const again = await caller(page);
    await page.locator("#bring-back").click();
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(/^32 patients/);
    assert.equal((await again("sets", null)).length, 1);
  }));

test("undoing a start over restores all writes", () =>
  visit(browser, server.address, async (page) => {
    const call = await caller(page);
    await call("newEhr", null);
    const before = await call.text("export", null);
    const replaced = await call("startOver", null);
    assert.notEqual(await call.text("export", null), before);
    await call("bringBack", replaced);
    assert.equal(await call.text("export", null), before);
    await assert.rejects(call("bringBack", replaced), /another data set was opened meanwhile/);
  }));

test("a removed data set is restored; writes of others are not undone", () =>
  visit(browser, server.address, async (page) => {
    const call = await caller(page);
    const [first] = await call("sets", null);
    await call("createSet", "Ward 7");
    await call("newEhr", null);
    await call("openSet", first.id);
    await page.click("#tab-data");
    await page.click("[aria-label='Remove Ward 7']");
    const dialog = page.locator("dialog[open]");
    await expect(dialog).toHaveText(
      /Its patients and everything written to it, .* since .*, are removed from this browser\. You can undo it/,
    );
    await dialog.getByRole("button", { name: "Remove" }).click();
    await page.locator(".restore").waitFor();
    await settled(page);
    await expect(page.locator(".sets li")).toHaveCount(1);
    await page.click(".restore");
    await settled(page);
    await expect(page.locator(".sets li")).toHaveCount(2);
    await page.click("[aria-label='Open Ward 7']");
    await page.locator("#state-text", { hasText: "1 patient ·" }).waitFor();
    const { set, added } = await call("contents", null);
    await call("newEhr", null);
    await assert.rejects(
      call("undo", { set: set.id, from: added, to: 0 }),
      /more was written meanwhile/,
    );
    await assert.rejects(
      call("undo", { set: first.id, from: added + 1, to: 0 }),
      /another data set is open/,
    );
    assert.equal((await call("undo", { set: set.id, from: added + 1, to: 0 })).ehrs, 0);
  }));
