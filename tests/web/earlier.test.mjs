// State that must not be mistaken for the present one: results of an earlier query, pages of a large
// result, and the source of answers after a reload.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, answered, browse, expect, open, ready, run, settled } from "./page.mjs";
import { visit, write } from "./page.mjs";
import { built, caller } from "./page.mjs";
import { serve } from "./server.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const ONE = "SELECT e/ehr_id/value AS ehr FROM EHR e WHERE e/ehr_id/value != $ehr";

let server;
let browser;
/** Whether the REST interface of the server answers. */
let isAway = false;

/** Answers as a server with seven patients. */
async function rest(request, response) {
  const { pathname } = new URL(request.url, "http://localhost");
  if (!pathname.startsWith("/v1")) return false;
  for await (const part of request) assert.ok(part);
  const body = pathname.endsWith("/query/aql")
    ? { columns: [{ name: "n" }], rows: [[7]] }
    : pathname === "/v1"
      ? { system_id: "test" }
      : [];
  response.writeHead(isAway ? 503 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(isAway ? { message: "away" } : body));
  return true;
}

before(async () => {
  server = await serve(built, 0, rest);
  browser = await browse();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const mark = (page) => page.locator("#earlier");

for (const width of [390, 1440])
  test(`a result is marked when the text or a value has changed since: ${width}`, () =>
    visit(
      browser,
      server.address,
      async (page) => {
        await run(page, COUNT);
        await expect(mark(page)).toBeEmpty();
        await write(page, ONE);
        await expect(mark(page)).toContainText("Of an earlier query");
        await expect(mark(page)).toContainText(COUNT);
        await accessible(page, "result of an earlier query");
        await page.locator("#parameters input").fill("x");
        await page.keyboard.press("ControlOrMeta+Enter");
        await answered(page);
        await expect(mark(page)).toBeEmpty();
        await page.locator("#parameters input").fill("y");
        await expect(mark(page)).toContainText("$ehr = x");
        await page.locator("#parameters input").fill("x");
        await expect(mark(page)).toBeEmpty();
      },
      { viewport: { width, height: 900 } },
    ));

test("the selected server stays after a reload, or a notice says that it does not", async () => {
  const page = await open(browser, server.address);
  try {
    await ready(page);
    await page.locator("#source").selectOption("own");
    await settled(page);
    await run(page, COUNT);
    await page.reload();
    await expect(page.locator("[role=gridcell]")).toHaveText(["7"]);
    await expect(page.locator("#source")).toHaveValue("own");
    isAway = true;
    await page.reload();
    await expect(page.locator("#notice")).toContainText("The data of this browser still answers");
    await expect(page.locator("#source")).toHaveValue("here");
  } finally {
    isAway = false;
    await page.context().close();
  }
});

test("two tabs keep the saved queries of each other", async () => {
  const page = await open(browser, server.address);
  try {
    await ready(page);
    const other = await page.context().newPage();
    await other.goto(server.address);
    await ready(other);
    const save = async (tab, name) => {
      await tab.bringToFront();
      await tab.click("#keep");
      await tab.fill("#naming-name", name);
      await tab.keyboard.press("Enter");
      await expect(tab.locator("#saved .example", { hasText: name })).toHaveCount(1);
    };
    await save(page, "first");
    await save(other, "second");
    await expect(page.locator("#saved .example")).toHaveText(["first", "second"]);
    await save(page, "third");
    await expect(other.locator("#saved .example")).toHaveText(["first", "second", "third"]);
    await page.bringToFront();
    await page.locator("#saved .icon").first().focus();
    await page.keyboard.press("Enter");
    await expect(page.locator("#saved .forgotten button")).toBeFocused();
    await save(other, "fourth");
    await page.bringToFront();
    await page.locator("#saved .forgotten button").focus();
    await page.keyboard.press("Enter");
    const all = ["first", "fourth", "second", "third"];
    await expect(page.locator("#saved .example")).toHaveText(all);
    await expect(page.locator("#saved .example").first()).toBeFocused();
  } finally {
    await page.context().close();
  }
});

test("steps of data sets keep the focus", () =>
  visit(browser, server.address, async (page) => {
    await page.click("#tab-data");
    await page.fill("#set-name", "Ward 7");
    await page.click("#set-new");
    await settled(page);
    await page.getByLabel("Open Sample patients").focus();
    await page.keyboard.press("Enter");
    await settled(page);
    await expect(page.getByLabel("Name of Sample patients")).toBeFocused();
    await page.getByLabel("Remove Ward 7").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await settled(page);
    await expect(page.locator(".restore")).toBeFocused();
    const call = await caller(page);
    await call("newEhr", null);
    await expect(page.locator(".facts dt:text-is('Own writes') + dd")).toHaveText("1");
    await settled(page);
    await expect(page.locator(".restore")).toBeFocused();
    await page.keyboard.press("Enter");
    await settled(page);
    await expect(page.getByLabel("Name of Ward 7")).toBeFocused();
  }));

test("the undo of a removed data set ends when the data set is erased", () =>
  visit(browser, server.address, async (page) => {
    await page.clock.install();
    await page.reload();
    await ready(page);
    const call = await caller(page);
    const [first] = await call("sets", null);
    const { set } = await call("createSet", "Ward 7");
    await call("openSet", first.id);
    await call("removeSet", set.id);
    await page.click("#tab-data");
    await page.locator(".restore").waitFor();
    await page.clock.fastForward("09:00");
    await expect(page.locator(".restore")).toHaveCount(1);
    await page.clock.fastForward("01:01");
    await expect(page.locator(".restore")).toHaveCount(0);
  }));

test("values of parameters return with their names", () =>
  visit(browser, server.address, async (page) => {
    await write(page, ONE);
    const value = page.locator("#parameters input");
    await value.fill("x");
    await page.locator("#editor .cm-content").click();
    await page.keyboard.press("ControlOrMeta+End");
    await page.keyboard.type("s");
    await expect(page.locator("#parameters label")).toHaveText("$ehrs");
    await page.keyboard.press("Backspace");
    await expect(page.locator("#parameters label")).toHaveText("$ehr");
    await expect(value).toHaveValue("x");
  }));

test("values of a form of a guide return after another guide was shown", () =>
  visit(browser, server.address, async (page) => {
    await page.click("#tab-guide");
    await page.click("#guide-form-tab");
    const field = page.locator("#guide-form input[inputmode=decimal]").first();
    await field.fill("151");
    const guides = page.locator(".choice:has(input[name=guide])");
    await guides.nth(1).click();
    await expect(guides.nth(1).locator("input")).toBeChecked();
    await expect(field).not.toHaveValue("151");
    await guides.nth(0).click();
    await expect(field).toHaveValue("151");
  }));

test("two tabs keep the fixtures of each other", async () => {
  const page = await open(browser, server.address);
  try {
    await ready(page);
    const other = await page.context().newPage();
    await other.goto(server.address);
    await ready(other);
    const names = () =>
      page.evaluate(() => JSON.parse(localStorage["aqlite-fixtures "]).map(({ name }) => name));
    const fixture = (name) => ({
      name,
      mimeType: "application/yaml",
      buffer: Buffer.from("guidelines:\n  1: Missing.v1\ntest_cases: []\n"),
    });
    for (const [tab, name] of [
      [page, "a.yml"],
      [other, "b.yml"],
      [page, "c.yml"],
    ]) {
      await tab.bringToFront();
      await tab.click("#tab-guide");
      await tab.locator("#guide-file").setInputFiles(fixture(name));
      await expect.poll(names).toContain(name);
    }
    await expect.poll(names).toEqual(["a.yml", "b.yml", "c.yml"]);
  } finally {
    await page.context().close();
  }
});
