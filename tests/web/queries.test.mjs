// Several queries in tabs: their texts, undo steps, parameters and results.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessible, answered, expect, hosted, inspect, run, write } from "./page.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const ONE = "SELECT e/ehr_id/value AS ehr FROM EHR e WHERE e/ehr_id/value = $ehr";

const site = hosted();

const tabs = (use, width, more) => site.visit(use, { viewport: { width, height: 900 }, ...more });

const tab = (page, name) => page.locator("#queries [role=tab]", { hasText: name });
const names = (page) => page.locator("#queries [role=tab]");
const text = (page) => page.locator("#editor .cm-content");

for (const width of [390, 1440]) {
  test(`each query keeps its text, undo steps, parameters and result: ${width}`, () =>
    tabs(async (page) => {
      await page.locator("#query-new").click();
      await expect(names(page)).toHaveText(["Query 1", "Query 2"]);
      await expect(page.locator("#result")).toContainText("Not run yet");
      await write(page, COUNT);
      await page.locator("#run").click();
      await expect(page.locator("[role=gridcell]")).toHaveText(["32"]);
      await page.locator("#query-new").click();
      await write(page, ONE);
      await page.locator("#parameters input").fill("x");
      await tab(page, "Query 2").click();
      await expect(text(page)).toHaveText(COUNT);
      await expect(page.locator("#parameters")).toBeHidden();
      await expect(page.locator("[role=gridcell]")).toHaveText(["32"]);
      await tab(page, "Query 3").click();
      await expect(page.locator("#parameters input")).toHaveValue("x");
      await tab(page, "Query 2").click();
      await text(page).click();
      await page.keyboard.press("ControlOrMeta+z");
      await expect(page.locator("#editor .cm-placeholder")).toBeVisible();
    }, width));

  test(`queries stay over a reload, and can be renamed: ${width}`, () =>
    tabs(async (page) => {
      await page.locator("#query-new").click();
      await write(page, COUNT);
      await page.locator("#query-rename").click();
      await page.locator("#query-naming-name").fill("How many");
      await page.keyboard.press("Enter");
      await expect(tab(page, "How many")).toBeFocused();
      await page.reload();
      await expect(names(page)).toHaveText(["Query 1", "How many"]);
      await expect(tab(page, "How many")).toHaveAttribute("aria-selected", "true");
      await expect(text(page)).toHaveText(COUNT);
      await expect(page.locator("[role=gridcell]")).toHaveText(["32"]);
      await tab(page, "Query 1").click();
      await expect(text(page)).toContainText("blood_pressure");
    }, width));

  test(`a closed query is restored with its undo steps: ${width}`, () =>
    tabs(async (page) => {
      await expect(page.locator("#query-close")).toBeDisabled();
      await page.locator("#query-new").click();
      await write(page, COUNT);
      await page.locator("#query-close").click();
      await expect(names(page)).toHaveText(["Query 1"]);
      await expect(page.locator("#query-restore")).toBeFocused();
      await expect(text(page)).toContainText("blood_pressure");
      await page.keyboard.press("Enter");
      await expect(names(page)).toHaveText(["Query 1", "Query 2"]);
      await expect(text(page)).toHaveText(COUNT);
      await text(page).click();
      await page.keyboard.press("ControlOrMeta+z");
      await expect(page.locator("#editor .cm-placeholder")).toBeVisible();
    }, width));

  test(`tabs work by keyboard alone: ${width}`, () =>
    tabs(async (page) => {
      await page.locator("#query-new").focus();
      await page.keyboard.press("Enter");
      await page.keyboard.insertText(COUNT);
      await page.keyboard.press("ControlOrMeta+Enter");
      await answered(page);
      await expect(page.locator("[role=gridcell]")).toHaveText(["32"]);
      await tab(page, "Query 2").focus();
      await page.keyboard.press("F2");
      await page.keyboard.insertText("Second");
      await page.keyboard.press("Enter");
      await expect(tab(page, "Second")).toBeFocused();
      await page.keyboard.press("ArrowLeft");
      await expect(tab(page, "Query 1")).toBeFocused();
      await expect(text(page)).toContainText("blood_pressure");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Delete");
      await expect(names(page)).toHaveText(["Query 1"]);
      await expect(tab(page, "Query 1")).toBeFocused();
    }, width));

  test(`axe finds nothing with several queries: ${width}`, () =>
    tabs(async (page) => {
      for (let more = 0; more < 5; more += 1) await page.locator("#query-new").click();
      await page.locator("#query-close").click();
      await inspect(page, "queries");
    }, width));
}

test("a link opens its query in a new tab, and the other queries stay", () =>
  tabs(async (page) => {
    await write(page, COUNT);
    await expect.poll(() => page.evaluate(() => sessionStorage["aqlite-queries"])).toContain(COUNT);
    const hash = new URLSearchParams({ q: ONE });
    await page.goto("about:blank");
    await page.goto(`${site.address}#${hash}`);
    await expect(names(page)).toHaveText(["Query 1", "Query 2"]);
    await expect(text(page)).toHaveText(ONE);
    await tab(page, "Query 1").click();
    await expect(text(page)).toHaveText(COUNT);
  }, 1440));

for (const width of [390, 1440])
  test(`a link that is followed on the open page opens a new tab: ${width}`, () =>
    tabs(async (page) => {
      await run(page, COUNT);
      const follow = (settings) =>
        page.evaluate((hash) => (location.hash = hash), String(new URLSearchParams(settings)));
      await follow({ q: ONE, as: "json", "value.ehr": "7" });
      await expect(names(page)).toHaveText(["Query 1", "Query 2"]);
      await expect(text(page)).toHaveText(ONE);
      await answered(page);
      await expect(page.locator("#as-json")).toHaveAttribute("aria-checked", "true");
      await expect(page.locator("#parameters input")).toHaveValue("7");
      await tab(page, "Query 1").click();
      await expect(text(page)).toHaveText(COUNT);
      await answered(page);
      // A tab with this query exists, so it is shown, and no third tab is opened.
      await follow({ q: ONE, as: "table" });
      await expect(text(page)).toHaveText(ONE);
      await expect(names(page)).toHaveText(["Query 1", "Query 2"]);
      await page.locator("#query-new").click();
      await follow({ q: "SELECT e FROM EHR e LIMIT 1" });
      await expect(names(page)).toHaveText(["Query 1", "Query 2", "Query 3"]);
    }, width));

for (const width of [390, 1440])
  test(`links and saved queries contain values of parameters only if the user chooses so: ${width}`, () =>
    tabs(
      async (page) => {
        const copied = async () => {
          await page.locator("#share").click();
          await page.locator("#share", { hasText: "Copied" }).waitFor();
          return page.evaluate(() => navigator.clipboard.readText());
        };
        const value = page.locator("#parameters input");
        const keep = page.getByLabel("Links and saved queries keep these values");
        await expect(keep).toBeHidden();
        await write(page, ONE);
        await value.fill("'7d44'");
        await expect(keep).not.toBeChecked();
        assert.doesNotMatch(await copied(), /7d44/);
        await page.locator("#share", { hasText: "Copy link" }).waitFor();
        await keep.check();
        const link = await copied();
        assert.match(link, /7d44/);
        await page.locator("#keep").click();
        await page.locator("#naming-name").fill("One patient");
        await page.keyboard.press("Enter");
        await value.fill("other");
        await page.locator("#saved .example").click();
        await expect(value).toHaveValue("'7d44'");
        await accessible(page, "parameters");
        await page.goto("about:blank");
        await page.goto(link);
        await expect(value).toHaveValue("'7d44'");
        await expect(keep).not.toBeChecked();
        await page.locator("#saved summary").click();
        await write(page, COUNT);
        await page.locator("#saved .example").click();
        await expect(value).toHaveValue("'7d44'");
      },
      width,
      { permissions: ["clipboard-read", "clipboard-write"] },
    ));
