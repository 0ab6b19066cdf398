// The page shows the whole result of a server, however small the server's pages are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { V1, freshState, start } from "../e2e/server.mjs";
import { browse, open, ready, run, settled, expect } from "./page.mjs";

const EHRS = 11;

test("the pages of a result are joined under one snapshot", async () => {
  const server = await start(freshState("web-paging"), { AUTH: "none", LIMIT_FETCH_DEFAULT: "4" });
  const browser = await browse();
  try {
    for (let at = 0; at < EHRS; at += 1)
      assert.equal((await server.send("POST", `${V1}/ehr`)).status, 201);
    const page = await open(browser, `http://127.0.0.1:${server.port}/`);
    await ready(page);
    const asked = [];
    page.on(
      "request",
      (request) =>
        request.url().endsWith("/query/aql") && asked.push(JSON.parse(request.postData())),
    );
    await page.locator("#source").selectOption("own");
    await settled(page);
    asked.length = 0;
    await run(page, "SELECT e/ehr_id/value AS id FROM EHR e");
    await expect(page.locator("#summary")).toHaveText(/^11 rows /);
    const [first, ...others] = asked.filter(({ q }) => q.startsWith("SELECT e/ehr_id/value AS id"));
    assert.equal(first.snapshot, undefined);
    assert.deepEqual(
      others.map(({ offset, fetch }) => [offset, fetch]),
      [
        [4, 4],
        [8, 4],
      ],
    );
    assert.equal(new Set(others.map(({ snapshot }) => snapshot)).size, 1);
  } finally {
    await browser.close();
    await server.stop();
  }
});

test("a server that announces further rows and gives none is asked once", async () => {
  const server = await start(freshState("web-paging-empty"), { AUTH: "none" });
  const browser = await browse();
  try {
    const page = await open(browser, `http://127.0.0.1:${server.port}/`);
    await ready(page);
    await page.locator("#source").selectOption("own");
    await settled(page);
    let asked = 0;
    await page.route("**/query/aql", (route) => {
      asked += 1;
      return route.fulfill({
        json: {
          meta: { _more: true, _snapshot: "1" },
          q: route.request().postDataJSON().q,
          columns: [{ name: "id", path: "/ehr_id/value" }],
          rows: [],
        },
      });
    });
    await run(page, "SELECT e/ehr_id/value AS id FROM EHR e");
    await expect(page.locator("#summary")).toHaveText(/^0 rows /);
    assert.equal(asked, 1);
  } finally {
    await browser.close();
    await server.stop();
  }
});
