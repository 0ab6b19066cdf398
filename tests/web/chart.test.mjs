// Charts in a real browser: the lines of each patient, the choice of axes, the values of a point, and
// the files of a chart.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFile } from "node:fs/promises";
import { expect, hosted, inspect, run } from "./page.mjs";

const NODE = "o/data[at0001]/events[at0006]/data[at0003]/items";
const FROM =
  "FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";
const TIME = "c/context/start_time/value AS time";
const SYSTOLIC = `${NODE}[at0004]/value AS systolic`;
const DIASTOLIC = `${NODE}[at0005]/value AS diastolic`;
const IN_MMHG = `WHERE ${NODE}[at0004]/value/units = 'mm[Hg]'`;
const WIDTHS = [390, 1440];

const site = hosted();

/** Counts the segments of lines that were drawn since the last call of `window.segments()`. */
function countSegments() {
  let drawn = 0;
  for (const type of [Path2D, CanvasRenderingContext2D]) {
    const { lineTo } = type.prototype;
    type.prototype.lineTo = function (...to) {
      if (type === Path2D) drawn += 1;
      return lineTo.apply(this, to);
    };
  }
  window.segments = () => {
    const all = drawn;
    drawn = 0;
    return all;
  };
}

function onChart(use, width) {
  return site.visit(
    async (page) => {
      await page.evaluate(countSegments);
      await use(page);
    },
    { viewport: { width, height: 900 }, acceptDownloads: true },
  );
}

/** Draws the result of a query. Returns the number of drawn segments. */
async function drawn(page, q) {
  await page.click("#as-table");
  await run(page, q);
  await page.evaluate(() => window.segments());
  await page.click("#as-chart");
  await page.locator(".chart-frame canvas").waitFor();
  return settledSegments(page);
}

/** Returns the number of segments after the next frame, when all observers of the chart have drawn. */
async function settledSegments(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  return page.evaluate(() => window.segments());
}

/** Returns the rows of a result as JSON. */
async function rowsOf(page, q) {
  await page.click("#as-table");
  await run(page, q);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#json")]);
  return JSON.parse(await readFile(await download.path(), "utf8")).rows;
}

/** Redraws the chart once, and returns the number of segments. */
async function redrawn(page, change) {
  await settledSegments(page);
  await change();
  return settledSegments(page);
}

test("a chart that is no longer shown has no listeners on the window", () =>
  onChart(async (page) => {
    await page.evaluate(() => {
      window.listeners = 0;
      for (const [name, change] of [
        ["addEventListener", 1],
        ["removeEventListener", -1],
      ]) {
        const former = window[name];
        window[name] = function (type, ...rest) {
          if (type === "dppxchange") window.listeners += change;
          return former.call(this, type, ...rest);
        };
      }
    });
    const listeners = () => page.evaluate(() => window.listeners);
    await drawn(page, `SELECT ${TIME}, ${SYSTOLIC} ${FROM} ${IN_MMHG} LIMIT 9`);
    const one = await listeners();
    for (const form of ["#as-table", "#as-chart", "#as-json", "#as-chart", "#as-table"]) {
      await page.click(form);
      const isChart = form === "#as-chart";
      await expect(page.locator(".chart-frame canvas")).toHaveCount(isChart ? 1 : 0);
      assert.equal(await listeners(), isChart ? one : one - 1, form);
    }
  }, 1440));

for (const width of WIDTHS) {
  test(`a line never connects readings of different patients, also if the query does not select them: ${width}`, () =>
    onChart(async (page) => {
      const rows = await rowsOf(
        page,
        `SELECT e/ehr_id/value AS ehr, ${TIME}, ${SYSTOLIC} ${FROM} ${IN_MMHG}`,
      );
      const timed = rows.filter(([, time, value]) => time && value?.magnitude !== undefined);
      const patients = new Set(timed.map(([ehr]) => ehr)).size;
      assert.ok(patients > 4, `${patients} patients`);
      const each = timed.length - patients;
      for (const q of [
        `SELECT ${TIME}, ${SYSTOLIC} ${FROM} ${IN_MMHG}`,
        `SELECT ${TIME}, ${SYSTOLIC}, e/ehr_id/value AS ehr ${FROM} ${IN_MMHG}`,
        // Two templates, each with many patients.
        `SELECT ${TIME}, ${SYSTOLIC}, c/archetype_details/template_id/value AS template ${FROM} ${IN_MMHG}`,
      ]) {
        await drawn(page, q);
        const segments = await redrawn(page, () =>
          page.locator("#chart-x").dispatchEvent("change"),
        );
        assert.equal(segments, each, q);
        await expect(page.locator("#chart-words")).toContainText(
          "A line connects the readings of one patient.",
        );
        for (const grouping of await page.locator("#chart-group option").allTextContents()) {
          await page.selectOption("#chart-group", { label: grouping });
          const grouped = await redrawn(page, () =>
            page.locator("#chart-member").dispatchEvent("change"),
          );
          assert.ok(grouped <= each, `${q} by ${grouping}: ${grouped} segments`);
        }
      }
      const merged = `SELECT DISTINCT ${TIME}, ${NODE}[at0004]/value/magnitude AS systolic ${FROM} ${IN_MMHG}`;
      await drawn(page, merged);
      assert.equal(
        await redrawn(page, () => page.locator("#chart-x").dispatchEvent("change")),
        0,
        "a DISTINCT row may be of several patients",
      );
      await expect(page.locator("#chart-words")).toContainText("Readings are not connected");
    }, width));

  test(`systolic and diastolic are drawn together; a point shows value, unit, time and patient: ${width}`, () =>
    onChart(async (page) => {
      await drawn(page, `SELECT ${TIME}, ${SYSTOLIC}, ${DIASTOLIC} ${FROM} ${IN_MMHG} LIMIT 40`);
      const boxes = page.locator(".chart-measures input");
      await expect(boxes).toHaveCount(2);
      for (const at of [0, 1]) await expect(boxes.nth(at)).toBeChecked();
      await expect(page.locator("#chart-words")).toHaveText(
        /^systolic \(mm\[Hg\]\): .*\. diastolic \(mm\[Hg\]\): /,
      );
      await expect(page.locator("#chart-group")).toHaveValue("patient");
      const tip = page.locator(".chart-tip");
      const seen =
        /systolic \d+(\.\d+)? mm\[Hg\].*diastolic \d+(\.\d+)? mm\[Hg\]\d{4}-\d\d-\d\dT.*patient P\d+/;
      const over = await page.locator(".chart-frame .u-over").boundingBox();
      const points = over.width * over.height;
      assert.ok(points > 0);
      await page.locator(".chart-frame").scrollIntoViewIfNeeded();
      const { x, y, width: wide, height: high } = await page.locator(".u-over").boundingBox();
      search: for (let across = 0.02; across < 1; across += 0.04)
        for (let down = 0.05; down < 1; down += 0.08) {
          await page.mouse.move(x + wide * across, y + high * down);
          if (await tip.isVisible()) break search;
        }
      await expect(tip).toHaveText(/(systolic|diastolic) .*patient P\d+/);
      await page.mouse.move(0, 0);
      await expect(tip).toBeHidden();
      // The arrow keys show the same points.
      await page.locator(".chart-frame").focus();
      await page.keyboard.press("ArrowRight");
      await expect(tip).toHaveText(seen);
      const first = await tip.textContent();
      for (let step = 0; step < 3; step += 1) await page.keyboard.press("ArrowRight");
      await expect(tip).not.toHaveText(first);
      await page.keyboard.press("Escape");
      await expect(tip).toBeHidden();
      // One measure, one patient.
      await boxes.nth(1).uncheck();
      await expect(page.locator("#chart-words")).not.toContainText("diastolic");
      await page.selectOption("#chart-member", { index: 1 });
      const name = await page.locator("#chart-member option").nth(1).textContent();
      await expect(page.locator("#chart-words")).toHaveText(new RegExp(`^${name}: systolic`));
      await boxes.nth(0).click();
      await expect(boxes.nth(0), "one measure stays").toBeChecked();
    }, width));

  test(`a measure is drawn against another one, and as a distribution: ${width}`, () =>
    onChart(async (page) => {
      await drawn(page, `SELECT ${TIME}, ${SYSTOLIC}, ${DIASTOLIC} ${FROM} ${IN_MMHG} LIMIT 40`);
      await page.selectOption("#chart-x", { label: "against diastolic (mm[Hg])" });
      await expect(page.locator(".chart-frame canvas")).toHaveCount(1);
      await page.selectOption("#chart-x", { label: "as distribution" });
      await expect(page.locator("#chart-group")).toBeHidden();
      await expect(page.locator(".chart-measures input:checked")).toHaveCount(1);
      await page.getByRole("checkbox", { name: "diastolic" }).check();
      await expect(page.locator(".chart-measures input:checked")).toHaveCount(1);
      await expect(page.locator("#chart-words")).toHaveText(/^diastolic/);
      // The values of a bar are shown while the pointer is on it.
      const legend = page.locator(".chart-frame .u-legend");
      await page.mouse.move(0, 0);
      await expect(legend).toBeHidden();
      await page.locator(".chart-frame .u-over").hover();
      await expect(legend).toHaveText(/diastolic.*\d.*rows.*\d/s);
      await expect(legend).toBeVisible();
    }, width));

  test(`a chart is saved as a picture and as numbers: ${width}`, () =>
    onChart(async (page) => {
      await drawn(page, `SELECT ${TIME}, ${SYSTOLIC}, ${DIASTOLIC} ${FROM} ${IN_MMHG} LIMIT 9`);
      const saved = async (button) => {
        const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
        return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
      };
      const picture = await saved("#chart-png");
      assert.equal(picture.name, "chart.png");
      assert.equal(picture.bytes.subarray(1, 4).toString(), "PNG");
      assert.ok(picture.bytes.length > 3000, `${picture.bytes.length} bytes`);
      const numbers = await saved("#chart-csv");
      assert.equal(numbers.name, "chart.csv");
      const lines = numbers.bytes.toString().trimEnd().split("\r\n");
      assert.equal(lines[0], 'time,ehr_id,patient,"systolic (mm[Hg])","diastolic (mm[Hg])"');
      assert.match(lines[1], /^20\d\d-[^,]*,[0-9a-f-]{36},P\d+,[\d.]+,[\d.]*$/);
    }, width));

  test(`the chart fits the screen and is accessible: ${width}`, () =>
    onChart(async (page) => {
      await drawn(page, `SELECT ${TIME}, ${SYSTOLIC}, ${DIASTOLIC} ${FROM} ${IN_MMHG}`);
      await page.locator(".chart-frame").focus();
      await page.keyboard.press("ArrowRight");
      await inspect(page, "chart");
    }, width));
}
