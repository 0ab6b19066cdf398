// The table of a result in a real browser: opening, sorting, filtering and resizing by pointer and
// by keyboard, patients, pages, CSV, and the time of a running query.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFile } from "node:fs/promises";
import { expect, hosted, inspect, run } from "./page.mjs";

const SYSTOLIC = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value";
const PRESSURES = `SELECT e/ehr_id/value AS ehr, c/context/start_time/value AS time, ${SYSTOLIC} AS systolic, ${SYSTOLIC}/magnitude AS number FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE ${SYSTOLIC}/magnitude > 0`;

const site = hosted();

const onGrid = (use, width) =>
  site.visit(use, {
    viewport: { width, height: 900 },
    hasTouch: width === 390,
  });

const column = (page, at) =>
  page
    .locator(`[role=gridcell][data-column="${at}"]`)
    .evaluateAll((cells) => cells.map((cell) => [Number(cell.dataset.row), cell.textContent]))
    .then((cells) => cells.sort((a, b) => a[0] - b[0]).map(([, text]) => text));

const saved = async (page, button) => {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  return readFile(await download.path(), "utf8");
};

test("patients beyond the listed ones have labels, and are found by them", () =>
  onGrid(async (page) => {
    await page.click("#tab-data");
    await page.fill("#ehrs", "700");
    await page.fill("#compositions", "700");
    await page.click("#generate");
    await expect(page.locator("#state-text")).toHaveText(/^[5-9]\d\d patients/);
    await page.click("#tab-query");
    await run(
      page,
      "SELECT e/ehr_id/value AS ehr, e/ehr_status/subject/external_ref/id/value AS subject FROM EHR e ORDER BY subject DESC",
    );
    const last = page.locator('[role=gridcell][data-row="0"]');
    const subject = await last.nth(1).textContent();
    await expect(last.nth(0).locator(".g-label")).toHaveText(subject);
    await page.click(".grid-filter");
    // No other row shows this label.
    await page.getByLabel("Filter ehr").fill(subject);
    await expect(page.locator("[role=gridcell] .g-label")).toHaveCount(1);
  }, 1440));

for (const width of [390, 1440]) {
  test(`a click or a tap opens any cell, and a patient has a label beside the id: ${width}`, () =>
    onGrid(async (page) => {
      await run(page, PRESSURES);
      for (const at of [1, 2, 3]) {
        const cell = page.locator(`[role=gridcell][data-row="1"][data-column="${at}"]`);
        const shown = await cell.textContent();
        if (width === 390) await cell.tap();
        else await cell.click();
        await expect(page.locator("#detail-title")).toHaveText(/, row 2$/);
        await expect(page.locator("#detail-body")).toContainText(
          shown.replace(/^DV_QUANTITY /, "").split(" ")[0],
        );
        await expect(cell, "the focus stays in the table").toBeFocused();
      }
      await expect(page.locator("[role=gridcell] .g-label").first()).toHaveText(/^P\d+$/);
      await page.keyboard.press("Enter");
      await expect(page.locator("#detail-body")).toBeFocused();
    }, width));

  test(`columns are sorted and filtered, and files keep all rows: ${width}`, () =>
    onGrid(async (page) => {
      await run(page, PRESSURES);
      const before = await saved(page, "#csv");
      const rows = before.trim().split("\r\n").length - 1;
      const values = (await column(page, 3)).map(Number);
      const name = page.locator(".g-name", { hasText: "number" });
      await name.click();
      await expect(name).toHaveAttribute("aria-sort", "ascending");
      const ascending = (await column(page, 3)).map(Number);
      assert.deepEqual(
        ascending,
        [...ascending].sort((a, b) => a - b),
      );
      await name.click();
      await expect(name).toHaveAttribute("aria-sort", "descending");
      const descending = (await column(page, 3)).map(Number);
      assert.ok(descending[0] > ascending[0]);
      // An object is sorted by its magnitude, as the number beside it.
      await page.locator(".g-name", { hasText: "systolic" }).click();
      assert.deepEqual((await column(page, 3)).map(Number), ascending);
      await page.locator(".g-name", { hasText: "systolic" }).click();
      await page.locator(".g-name", { hasText: "systolic" }).click();
      assert.deepEqual((await column(page, 3)).map(Number), values, "the order of the query");
      await page.click(".grid-filter");
      await page.getByLabel("Filter number").fill(">=140");
      await expect(page.locator(".grid-shown")).toHaveText(
        new RegExp(`^\\d+ of ${rows} rows match; saved files have all$`),
      );
      assert.ok((await column(page, 3)).every((text) => Number(text) >= 140));
      const label = await page.locator(".g-label").first().textContent();
      await page.getByLabel("Filter ehr").fill(label);
      await expect(page.locator(".g-label").first()).toHaveText(label);
      await expect
        .poll(async () => (await column(page, 0)).every((text) => text.endsWith(label)))
        .toBe(true);
      assert.equal(await saved(page, "#csv"), before);
      await page.getByLabel("Filter ehr").fill("nothing like this");
      await expect(page.locator(".grid-shown")).toHaveText(new RegExp(`^0 of ${rows} rows`));
      await page.click(".grid-filter");
      await expect(page.locator("[role=grid]")).toHaveAttribute("aria-rowcount", String(rows + 1));
    }, width));

  test(`columns are resized by pointer and by keyboard, and sorted by keyboard: ${width}`, () =>
    onGrid(async (page) => {
      await run(page, PRESSURES);
      const name = page.locator(".g-name").nth(1);
      const wide = async () => (await name.boundingBox()).width;
      const before = await wide();
      await name.scrollIntoViewIfNeeded();
      const edge = await name.locator(".g-edge").boundingBox();
      await page.mouse.move(edge.x + 4, edge.y + 8);
      await page.mouse.down();
      await page.mouse.move(edge.x - 56, edge.y + 8);
      await page.mouse.up();
      await expect.poll(wide).toBe(before - 60);
      await expect(name, "a drag does not sort").not.toHaveAttribute("aria-sort");
      await page.locator('[role=gridcell][data-row="0"][data-column="1"]').click();
      await page.keyboard.press("ArrowUp");
      await expect(name).toBeFocused();
      await page.keyboard.press("Shift+ArrowRight");
      await expect.poll(wide).toBe(before - 36);
      await page.keyboard.press("Enter");
      await expect(name).toHaveAttribute("aria-sort", "ascending");
      await page.keyboard.press("ArrowDown");
      await expect(page.locator("[role=gridcell]:focus")).toHaveAttribute("data-row", "0");
    }, width));

  test(`a result that is too large for the memory is shown in pages: ${width}`, () =>
    onGrid(async (page) => {
      // Every combination of three elements of a composition.
      const columns = ["x", "y", "z"].flatMap((element) =>
        ["name/value", "archetype_node_id", "value"].map((path) => `${element}/${path}`),
      );
      const combinations = `SELECT ${columns.join(", ")} FROM EHR e CONTAINS COMPOSITION c CONTAINS (ELEMENT x AND ELEMENT y AND ELEMENT z)`;
      await run(page, `${combinations} LIMIT 40000`);
      await expect(page.locator("#pager")).toBeHidden();
      const whole = await saved(page, "#ndjson");
      await run(page, combinations);
      await expect(page.locator("#pager")).toBeVisible();
      await expect(page.locator("#summary")).toHaveText(/^rows 1 to 20,000 · /);
      await expect(page.locator("#page-before")).toBeDisabled();
      await expect(page.locator(".grid-bar")).toContainText("concern this page only");
      const first = await saved(page, "#ndjson");
      await page.locator("#page-next").focus();
      await page.keyboard.press("Enter");
      await expect(page.locator(".g-body [role=rowheader]").first()).toHaveText("20001");
      await expect(page.locator("#page-next")).toBeFocused();
      await expect(page.locator("#summary")).toHaveText(/^rows 20,001 to 40,000 · /);
      assert.ok(first + (await saved(page, "#ndjson")) === whole, "no row is lost or repeated");
      await page.locator('[role=gridcell][data-row="0"][data-column="0"]').click();
      await page.click("#detail-where");
      await expect(page.locator(".paper")).toHaveCount(1);
      await page.click("#page-before");
      await expect(page.locator("#summary")).toHaveText(/^rows 1 to 20,000 · /);
      assert.ok((await saved(page, "#ndjson")) === first);
      await run(page, "SELECT e/ehr_id/value AS ehr FROM EHR e");
      await expect(page.locator("#pager")).toBeHidden();
    }, width));

  test(`CSV has a byte order mark on request, also after a reload: ${width}`, () =>
    onGrid(async (page) => {
      const begins = async () => (await saved(page, "#csv")).startsWith("\ufeff");
      assert.equal(await begins(), false);
      await page.locator("#csv-bom").check();
      assert.equal(await begins(), true);
      await page.reload();
      await expect(page.locator("#csv")).toBeEnabled();
      assert.equal(await begins(), true);
    }, width));

  test(`while a query runs, its time replaces the former summary: ${width}`, () =>
    onGrid(async (page) => {
      await expect(page.locator("#summary")).toHaveText(/row/);
      await page.workers()[0].evaluate(() => void (self.postMessage = () => undefined));
      await page.click("#run");
      await expect(page.locator("#summary")).toHaveText("Running");
      await expect(page.locator("#elapsed")).toHaveText(/^\d+\.\d s$/);
      await page.click("#stop");
      await expect(page.locator("#elapsed")).toHaveText("");
    }, width));

  test(`the table fits the screen and is accessible: ${width}`, () =>
    onGrid(async (page) => {
      await run(page, PRESSURES);
      await page.click(".grid-filter");
      await page.getByLabel("Filter number").fill(">100");
      await page.locator(".g-name", { hasText: "number" }).click();
      await inspect(page, "grid");
    }, width));
}
