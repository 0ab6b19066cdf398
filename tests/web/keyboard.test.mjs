// The page without a pointer: the steps of a person who uses the keyboard only.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, expect, hosted, settled } from "./page.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const PRESSURES =
  "SELECT e/ehr_id/value AS ehr, c/context/start_time/value AS time, o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value AS systolic FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] LIMIT 30";

const site = hosted();

const byKeyboard = (use, width) => site.visit(use, { viewport: { width, height: 900 } });

/** Whether the focus is in the editor, whose content is in a shadow tree. */
const inEditor = (page) =>
  page.evaluate(() => document.activeElement?.id === "editor" && document.hasFocus());

/** Presses Tab until an element has the focus. Returns the number of steps. */
async function tabTo(page, isThere, most = 60) {
  for (let steps = 1; steps <= most; steps += 1) {
    await page.keyboard.press("Tab");
    if (await isThere()) return steps;
  }
  throw new Error(`not reached in ${most} steps`);
}

const focused = (page, selector) => () =>
  page.evaluate((selector) => document.activeElement?.matches(selector) ?? false, selector);

/** The maximum number of steps from any place of the page over its end to any other place. */
const ROUND = 200;

/** Moves the focus to a skip link by Tab, and presses it. */
async function skip(page, link) {
  await tabTo(page, focused(page, link), ROUND);
  await page.keyboard.press("Enter");
}

/** Moves the focus to the tab of the chosen view by Tab. */
const toTabs = (page) => tabTo(page, focused(page, ".tabs [role=tab][aria-selected=true]"), ROUND);

for (const width of [390, 1440]) {
  test(`Tab reaches the editor and leaves it, in both directions: ${width}`, () =>
    byKeyboard(async (page) => {
      const there = await tabTo(page, () => inEditor(page));
      assert.ok(there > 3, `${there} steps`);
      await page.keyboard.press("Tab");
      assert.equal(await inEditor(page), false);
      await page.keyboard.press("Shift+Tab");
      assert.equal(await inEditor(page), true);
      await tabTo(page, focused(page, "#run"), 3);
    }, width));

  test(`every view has a skip link to its content: ${width}`, () =>
    byKeyboard(async (page) => {
      await skip(page, "#skip-content");
      assert.equal(await inEditor(page), true);
      await skip(page, "#skip-result");
      await expect(page.locator("[role=gridcell]:focus")).toHaveCount(1);
      for (const view of ["templates", "guide", "patients", "data"]) {
        await toTabs(page);
        await page.keyboard.press("ArrowRight");
        await expect(page.locator(`#view-${view}`)).toBeVisible();
        await skip(page, "#skip-content");
        await expect(page.locator(`#view-${view}`)).toBeFocused();
        await page.keyboard.press("Tab");
        await expect(page.locator(`#view-${view} :focus`)).toHaveCount(1);
        await expect(page.locator("#skip-result")).toBeHidden();
      }
    }, width));

  test(`a query is written and run, and its result sorted, opened and drawn: ${width}`, () =>
    byKeyboard(async (page) => {
      await skip(page, "#skip-content");
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.press("Delete");
      await page.keyboard.insertText(PRESSURES);
      await page.keyboard.press("ControlOrMeta+Enter");
      await answered(page);
      await expect(page.locator("#summary")).toHaveText(/^\d+ rows · 3 columns/);
      await skip(page, "#skip-result");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("End");
      await expect(page.locator(".g-name:focus")).toHaveText("systolic");
      await page.keyboard.press("Enter");
      await expect(page.locator(".g-name:focus")).toHaveAttribute("aria-sort", "ascending");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await expect(page.locator("#detail-body")).toBeFocused();
      await page.keyboard.press("Escape");
      await expect(page.locator("#detail")).toBeHidden();
      await expect(page.locator("[role=gridcell]:focus")).toHaveCount(1);
      await tabTo(page, focused(page, "#as-table"), ROUND);
      await page.keyboard.press("ArrowRight");
      await page.locator(".chart-frame canvas").waitFor();
      await tabTo(page, focused(page, ".chart-frame"), 30);
      await page.keyboard.press("ArrowRight");
      await expect(page.locator(".chart-tip")).toHaveText(/systolic .*patient P/);
    }, width));

  test(`a guide is run, and its query opened with the focus on the result: ${width}`, () =>
    byKeyboard(async (page) => {
      await toTabs(page);
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      await tabTo(page, focused(page, "#run-guide"), 30);
      await page.keyboard.press("Enter");
      await page.locator("#guide-outcome:not([aria-busy]) .summary").waitFor();
      await tabTo(page, focused(page, "#guide-outcome details.asked:has(button) > summary"), 30);
      await page.keyboard.press("Enter");
      await tabTo(page, focused(page, "#guide-outcome .asked button"), 4);
      await page.keyboard.press("Enter");
      await answered(page);
      await expect(page.locator("#view-query")).toBeVisible();
      await expect(page.locator("#result")).toBeFocused();
    }, width));

  test(`starting over is confirmed and undone, and the focus is on the next step: ${width}`, () =>
    byKeyboard(async (page) => {
      await toTabs(page);
      await page.keyboard.press("End");
      await tabTo(page, focused(page, "#start-over"), 30);
      await page.keyboard.press("Enter");
      const dialog = page.locator("dialog[open]");
      await expect(dialog.getByRole("button", { name: "Keep everything" })).toBeFocused();
      await page.keyboard.press("Escape");
      await expect(page.locator("#start-over")).toBeFocused();
      await page.keyboard.press("Enter");
      await page.keyboard.press("Shift+Tab");
      await page.keyboard.press("Enter");
      await expect(page.locator("#bring-back")).toBeFocused();
      await settled(page);
      await page.keyboard.press("Enter");
      await expect(page.locator("#bring-back")).toBeFocused();
      await settled(page);
      await skip(page, "#skip-content");
      assert.equal(await inEditor(page), false);
      await toTabs(page);
      await page.keyboard.press("Home");
      await skip(page, "#skip-content");
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.press("Delete");
      await page.keyboard.insertText(COUNT);
      await page.keyboard.press("ControlOrMeta+Enter");
      await answered(page);
      await expect(page.locator("[role=gridcell]")).toHaveText(["32"]);
    }, width));
}
