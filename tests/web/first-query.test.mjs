// The first query after a load: the worker gets it before the code of the page, exactly once.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expect, hosted, open, ready, run, settled, write } from "./page.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const DOCUMENTS = "SELECT COUNT(c/uid/value) AS n FROM EHR e CONTAINS COMPOSITION c";
const ONE = "SELECT e/ehr_id/value AS ehr FROM EHR e WHERE e/ehr_id/value = $ehr";
const WRONG = "SELECT e/ehr_id/value FROM";

const site = hosted();

/** Records the queries of a load, and whether they were asked before the code of the page ran. */
function recordQueries() {
  window.asked = [];
  const { postMessage } = Worker.prototype;
  Worker.prototype.postMessage = function (message, ...more) {
    if (message.call === "query")
      window.asked.push({ q: message.argument.q, isEarly: document.readyState === "loading" });
    return postMessage.call(this, message, ...more);
  };
}

/** Opens a page that records the queries of each load. */
async function recorded(use) {
  const page = await open(site.browser, "about:blank");
  try {
    await page.addInitScript(recordQueries);
    await page.goto(site.address);
    await ready(page);
    await use(page, () => page.evaluate(() => window.asked));
    assert.deepEqual(page.problems, []);
  } finally {
    await page.context().close();
  }
}

const cell = (page) => page.locator("[role=gridcell]");

test("the query of this tab is asked once, before the code of the page runs", () =>
  recorded(async (page, asked) => {
    await run(page, COUNT);
    await page.reload();
    await expect(cell(page)).toHaveText(["32"]);
    await settled(page);
    assert.deepEqual(await asked(), [{ q: COUNT, isEarly: true }]);
    // Later runs ask again.
    await page.locator("#run").click();
    await settled(page);
    assert.deepEqual((await asked()).slice(1), [{ q: COUNT, isEarly: false }]);
  }));

test("the query of a link is asked before that of this tab", () =>
  recorded(async (page, asked) => {
    await run(page, COUNT);
    await page.goto("about:blank");
    await page.goto(`${site.address}#${new URLSearchParams({ q: DOCUMENTS })}`);
    await expect(cell(page)).toHaveText(["228"]);
    await settled(page);
    assert.deepEqual(await asked(), [{ q: DOCUMENTS, isEarly: true }]);
  }));

test("a query with parameters waits for the code of the page", () =>
  recorded(async (page, asked) => {
    await write(page, ONE);
    await page.locator("#parameters input").fill("x");
    await page.reload();
    await settled(page);
    assert.deepEqual(await asked(), [{ q: ONE, isEarly: false }]);
  }));

test("an error of the first query is shown with its place", () =>
  recorded(async (page, asked) => {
    await write(page, WRONG);
    await page.reload();
    await expect(page.locator("#result .problem-list")).toContainText("line 1, column 27");
    assert.deepEqual(await asked(), [{ q: WRONG, isEarly: true }]);
  }));
