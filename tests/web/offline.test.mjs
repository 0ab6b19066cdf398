// The page without its server: the files of the page, the data, and this browser's own repository.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFile } from "node:fs/promises";
import { browse, built, expect, offlineReady, open, ready, row, run, trap } from "./page.mjs";
import { serve } from "./server.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";

let browser;

before(async () => {
  browser = await browse();
});

after(async () => {
  await browser?.close();
});

test("without its server, the page opens and runs queries, and its own repository answers", async () => {
  const own = await serve(built);
  const page = await open(browser, own.address);
  await ready(page);
  await offlineReady(page);
  await own.stop();
  await page.reload();
  await ready(page);
  await run(page, COUNT);
  const [count] = await row(page, 0);
  const asked = await page.evaluate(async (q) => {
    const answer = async (path, init) => {
      const response = await fetch(path, init);
      return {
        status: response.status,
        by: response.headers.get("aqlite-answered-by"),
        body: await response.json(),
      };
    };
    const post = (path, body) =>
      answer(path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    return {
      post: await post("/local/v1/query/aql", { q }),
      get: await answer(`/local/v1/query/aql?q=${encodeURIComponent(q)}`),
      its: await post("/local/rest/openehr/v1/query/aql", { q }),
      wrong: await post("/local/v1/query/aql", { q: "SELECT" }),
      absent: await answer("/local/v1/ehr/00000000-0000-4000-8000-000000000000"),
    };
  }, COUNT);
  for (const name of ["post", "get", "its"]) {
    assert.equal(asked[name].status, 200, name);
    assert.equal(asked[name].by, "service-worker", name);
    assert.deepEqual(asked[name].body.rows, [[Number(count)]], name);
  }
  assert.equal(asked.wrong.status, 400);
  assert.equal(asked.absent.status, 404);
  await page.context().close();
});

test("offline writes are stored and shown on the page", async () => {
  const own = await serve(built);
  const page = await open(browser, own.address);
  await ready(page);
  await offlineReady(page);
  await own.stop();
  await run(page, COUNT);
  const before = Number((await row(page, 0))[0]);
  const created = await page.evaluate(async () => {
    const response = await fetch("/local/v1/ehr", {
      method: "POST",
      headers: { prefer: "return=minimal" },
    });
    return { status: response.status, location: response.headers.get("location") };
  });
  assert.equal(created.status, 201);
  await run(page, COUNT);
  assert.equal(Number((await row(page, 0))[0]), before + 1);
  await page.reload();
  await ready(page);
  await run(page, COUNT);
  assert.equal(Number((await row(page, 0))[0]), before + 1);
  const path = new URL(created.location, page.url()).pathname;
  assert.equal(await page.evaluate(async (path) => (await fetch(path)).status, path), 200);
  await page.context().close();
});

test("a table is saved offline after a first visit without tables", async () => {
  const own = await serve(built);
  const page = await open(browser, own.address);
  try {
    await ready(page);
    await offlineReady(page);
    const cached = async () => {
      const [name] = await caches.keys();
      return (await (await caches.open(name)).keys()).map(({ url }) => url).join(" ");
    };
    await expect.poll(() => page.evaluate(cached)).toMatch(/\/tables\.\w+\.wasm/);
    await own.stop();
    await page.reload();
    await ready(page);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#parquet")]);
    const table = await readFile(await download.path());
    assert.equal(table.subarray(0, 4).toString(), "PAR1");
    assert.deepEqual(page.problems, []);
  } finally {
    await page.context().close();
    await own.stop();
  }
});

test("after a failure of its module, the Service Worker refuses requests and says why", async () => {
  const own = await serve(built);
  const page = await open(browser, own.address);
  try {
    await ready(page);
    await offlineReady(page);
    const created = () =>
      page.evaluate(async () => {
        const response = await fetch("/local/v1/ehr", { method: "POST" });
        return [response.status, await response.text()];
      });
    assert.equal((await created())[0], 201);
    await trap(page.context().serviceWorkers()[0]);
    assert.equal((await created())[0], 500);
    const [status, message] = await created();
    assert.equal(status, 503, message);
    assert.match(message, /has failed: wait for a minute/);
  } finally {
    await page.context().close();
    await own.stop();
  }
});
