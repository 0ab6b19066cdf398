// The page about the REST interface: its operations, content security policy, accessibility, size on a
// phone, and use without a server.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse, built, expect, inspect, offlineReady, open, ready } from "./page.mjs";
import { serve } from "./server.mjs";

const described = JSON.parse(await readFile(join(built, "openapi.json"), "utf8"));
let browser;
let server;

before(async () => {
  browser = await browse();
  server = await serve(built);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("the page has every operation with its statuses, and obeys its content security policy", async () => {
  const page = await open(browser, `${server.address}api.html`);
  const operations = Object.values(described.paths)
    .flatMap((methods) => Object.values(methods))
    .filter((said) => said.operationId);
  assert.ok(operations.length > 100);
  await expect(page.locator("details")).toHaveCount(operations.length);
  for (const said of operations) {
    const text = await page.locator(`[id="${said.operationId}"]`).textContent();
    for (const status of Object.keys(said.responses))
      assert.ok(text.includes(status), `${said.operationId} ${status}`);
  }
  await expect(page.locator("script:not([src]), [style], style")).toHaveCount(0);
  await page.locator("summary").first().click();
  await expect(page.locator("details[open] table").first()).toBeVisible();
  assert.deepEqual(page.problems, []);
});

test("axe finds nothing on the page", async () => {
  const page = await open(browser, `${server.address}api.html`, { bypassCSP: true });
  await page
    .locator("details")
    .evaluateAll((all) => all.slice(0, 20).forEach((each) => void (each.open = true)));
  await inspect(page, "api");
});

test("a request is sent to the sample data, and its answer is shown", async () => {
  const page = await open(browser, `${server.address}api.html`);
  await page.locator("#post_query_aql summary").click();
  const query = page.locator("#post_query_aql");
  await query.getByRole("button", { name: "Send" }).click();
  await expect(query.locator("pre")).toContainText("200");
  await expect(query.locator("pre")).toContainText('"rows"');
  await page.locator("#get_ehr_ehr_id summary").click();
  const ehr = page.locator("#get_ehr_ehr_id");
  await expect(ehr.getByLabel("ehr_id (path)")).toHaveValue(/^[0-9a-f-]{36}$/);
  await ehr.getByRole("button", { name: "Send" }).click();
  await expect(ehr.locator("pre")).toContainText('"ehr_status"');
  await ehr.getByLabel("ehr_id (path)").fill("00000000-0000-4000-8000-000000000000");
  await ehr.getByRole("button", { name: "Send" }).click();
  await expect(ehr.locator("pre")).toContainText("404");
  assert.deepEqual(
    page.problems.filter((problem) => !/404/.test(problem)),
    [],
  );
});

test("on a phone, nothing is wider than the screen", async () => {
  const page = await open(browser, `${server.address}api.html`, {
    viewport: { width: 390, height: 844 },
    isMobile: true,
    hasTouch: true,
  });
  await page
    .locator("details")
    .evaluateAll((all) => all.forEach((each) => void (each.open = true)));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `${wide} pixels wide`);
  assert.deepEqual(page.problems, []);
});

test("the page and its data work without a server", async () => {
  const page = await open(browser, server.address);
  await ready(page);
  await offlineReady(page);
  await page.context().setOffline(true);
  await page.goto(`${server.address}api.html`);
  await expect(page.locator("h1")).toHaveText("REST interface");
  const data = await page.evaluate(async () => (await fetch("openapi.json")).json());
  assert.deepEqual(data, described);
});
