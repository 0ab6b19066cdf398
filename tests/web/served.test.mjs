// The page as the worker in workerd serves it. The server answers at `/v1`, and the module in the browser
// at `/local/v1`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { freshState, startDev } from "../e2e/server.mjs";
import { browse, offlineReady, open, ready, row, run, settled, expect } from "./page.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";

/** Sends a request from the page. Returns status, origin of the answer, and body. */
function ask(page, method, path, body) {
  return page.evaluate(
    async ({ method, path, body }) => {
      const response = await fetch(path, {
        method,
        headers: { "content-type": "application/json" },
        body,
      });
      return {
        status: response.status,
        by: response.headers.get("aqlite-answered-by"),
        body: await response.text(),
      };
    },
    { method, path, body },
  );
}

test("the server answers at its address only while it runs; the module answers equally at its own", async () => {
  const server = await startDev(freshState("page"));
  const browser = await browse();
  try {
    const page = await open(browser, `http://127.0.0.1:${server.port}/`);
    await ready(page);
    await offlineReady(page);
    const requests = [
      ["OPTIONS", "/v1"],
      ["GET", "/v1/ehr/00000000-0000-4000-8000-000000000000"],
      ["GET", "/v1/query/no.such::query"],
      ["POST", "/v1/query/aql", JSON.stringify({ q: "SELECT o/dta FROM OBSERVATION o" })],
      [
        "POST",
        "/rest/openehr/v1/query/aql",
        JSON.stringify({ q: "SELECT e FROM EHR e WHERE e/ehr_id/value = $missing" }),
      ],
      ["POST", "/v1/query/aql", "{"],
    ];
    const there = [];
    for (const request of requests) there.push(await ask(page, ...request));
    assert.ok(
      there.every(({ by }) => by === null),
      "the server answers while it is there",
    );
    await server.stop();
    for (const [at, [method, path, body]] of requests.entries()) {
      await assert.rejects(ask(page, method, path, body), /Failed to fetch/, `${method} ${path}`);
      const here = await ask(page, method, `/local${path}`, body);
      assert.equal(here.by, "service-worker", `${method} ${path}`);
      assert.deepEqual({ ...here, by: null }, there[at], `${method} ${path}`);
    }
    await page.reload();
    await ready(page);
    await run(page, COUNT);
    const [count] = await row(page, 0);
    assert.deepEqual(
      JSON.parse(
        (await ask(page, "POST", "/local/v1/query/aql", JSON.stringify({ q: COUNT }))).body,
      ).rows,
      [[Number(count)]],
    );
  } finally {
    await browser.close();
    await server.stop();
  }
});

test("the server of the page can be selected as source", async () => {
  const server = await startDev(freshState("source"));
  const browser = await browse();
  try {
    const page = await open(browser, `http://127.0.0.1:${server.port}/`);
    await ready(page);
    const made = await page.evaluate(async () =>
      (
        await fetch("/v1/ehr", { method: "POST", headers: { prefer: "return=minimal" } })
      ).headers.get("location"),
    );
    await page.locator("#source").selectOption("own");
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText("1 patient · 0 compositions");
    await run(page, "SELECT e/ehr_id/value AS ehr FROM EHR e");
    assert.equal(made.endsWith((await row(page, 0))[0]), true);
    await page.locator("#source").selectOption("here");
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(/^32 patients/);
    assert.deepEqual(page.problems, []);
  } finally {
    await browser.close();
    await server.stop();
  }
});
