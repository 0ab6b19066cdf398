// The query builder: ticks in the tree of templates build a query.
import assert from "node:assert/strict";
import { test } from "node:test";
import { answered, expect, hosted, inspect, row, write } from "./page.mjs";

const PRESSURE = "openEHR-EHR-OBSERVATION.blood_pressure.v2";
const PULSE = "openEHR-EHR-OBSERVATION.pulse.v2";
const FIRST = `SELECT
  e/ehr_id/value AS ehr,
  c/context/start_time/value AS time,
  bp/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic
FROM EHR e
  CONTAINS COMPOSITION c[openEHR-EHR-COMPOSITION.encounter.v1]
    CONTAINS OBSERVATION bp[${PRESSURE}]`;

const site = hosted();

const build = (use, width) => site.visit(use, { viewport: { width, height: 900 } });

const node = (page, name) => page.getByRole("treeitem", { name });
const box = (line) => line.locator(".builder-box");
const text = (page) => page.locator("#editor .cm-content");

/** Returns the query; an empty editor shows a placeholder. */
async function written(page) {
  const isEmpty = (await page.locator("#editor .cm-placeholder").count()) > 0;
  return isEmpty ? "" : (await text(page).innerText()).trimEnd();
}

/** Waits until the query is `q`. */
const isQuery = (page, q) => expect.poll(() => written(page)).toBe(q);

/** Opens the panel on an empty query, and the blood pressure of the vital signs. */
async function begin(page) {
  await page.locator("#build").click();
  await page.locator("#builder-new").click();
  await node(page, /^Encounter/).click();
  await node(page, /^Blood pressure/).click();
  await node(page, /^Any event/).click();
}

for (const width of [390, 1440]) {
  test(`ticks build a query, which runs, and can be undone: ${width}`, () =>
    build(async (page) => {
      await begin(page);
      const systolic = node(page, /^Systolic/).first();
      const diastolic = node(page, /^Diastolic/).first();
      await expect(systolic).toHaveAttribute("aria-checked", "false");
      await box(systolic).click();
      await expect(systolic).toHaveAttribute("aria-checked", "true");
      await isQuery(page, FIRST);
      await box(diastolic).click();
      await expect(diastolic).toHaveAttribute("aria-checked", "true");
      await page.locator("#run").click();
      await answered(page);
      await expect(page.locator("#summary")).toHaveText(/^\d+ rows · 4 columns/);
      const cells = await row(page, 0);
      assert.match(cells[2], /^\d+/);
      assert.match(cells[3], /^\d+/);
      await box(diastolic).click();
      await isQuery(page, FIRST);
      await box(systolic).click();
      await isQuery(page, "");
      await text(page).click();
      await page.keyboard.press("ControlOrMeta+z");
      await isQuery(page, FIRST);
      await expect(systolic).toHaveAttribute("aria-checked", "true");
    }, width));

  test(`a second archetype is joined in the same composition: ${width}`, () =>
    build(async (page) => {
      await begin(page);
      await box(node(page, /^Systolic/).first()).click();
      await page.locator("#builder-search").fill("rate");
      const rate = node(page, /Pulse.*Rate/).first();
      await box(rate).click();
      await expect(rate).toHaveAttribute("aria-checked", "true");
      await expect(text(page)).toContainText(`AND OBSERVATION p[${PULSE}]`);
      await page.locator("#run").click();
      await answered(page);
      await expect(page.locator("#summary")).toHaveText(/^\d+ rows · 4 columns/);
      await box(rate).click();
      await isQuery(page, FIRST);
    }, width));

  test(`a tick adds a column to a query that was written by hand, and keeps the rest: ${width}`, () =>
    build(async (page) => {
      const condition =
        "WHERE p/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude > 80 -- fast";
      const written = `SELECT   e/ehr_id/value FROM EHR e CONTAINS COMPOSITION CONTAINS OBSERVATION p[${PULSE}]\n${condition}`;
      await write(page, written);
      await page.locator("#build").click();
      await page.locator("#builder-search").fill("systolic");
      const systolic = node(page, /Any event.*Systolic/).first();
      await box(systolic).click();
      await expect(systolic).toHaveAttribute("aria-checked", "true");
      const path = "bp/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
      await isQuery(
        page,
        `SELECT   e/ehr_id/value, ${path} AS systolic FROM EHR e CONTAINS COMPOSITION CONTAINS (OBSERVATION p[${PULSE}] AND OBSERVATION bp[${PRESSURE}])\n${condition}`,
      );
      await page.locator("#run").click();
      await answered(page);
      await expect(page.locator("#summary")).toHaveText(/^\d+ rows · 2 columns/);
      await box(systolic).click();
      await isQuery(page, written);
    }, width));

  test(`an unsuitable query is replaced only after a confirmation, and can be restored: ${width}`, () =>
    build(async (page) => {
      const count = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
      await write(page, count);
      await page.locator("#build").click();
      await page.locator("#builder-search").fill("systolic");
      const systolic = node(page, /Any event.*Systolic/).first();
      await box(systolic).click();
      await page.getByRole("button", { name: "Keep the query" }).click();
      await isQuery(page, count);
      await box(systolic).click();
      await page.getByRole("button", { name: "Replace it" }).click();
      await isQuery(page, FIRST);
      await page.locator("#builder-undo").click();
      await isQuery(page, count);
    }, width));

  test(`a column that the rest of the query needs stays: ${width}`, () =>
    build(async (page) => {
      await write(page, `${FIRST}\nORDER BY systolic DESC`);
      // The list of completions would cover the button.
      await page.keyboard.press("Escape");
      await page.locator("#build").click();
      await page.locator("#builder-search").fill("systolic");
      const systolic = node(page, /Any event.*Systolic/).first();
      await expect(systolic).toHaveAttribute("aria-checked", "true");
      await box(systolic).click();
      await expect(page.locator("#builder-status")).toContainText("needs “Systolic”");
      await isQuery(page, `${FIRST}\nORDER BY systolic DESC`);
    }, width));

  test(`a query is built by keyboard alone: ${width}`, () =>
    build(async (page) => {
      await page.locator("#build").focus();
      await page.keyboard.press("Enter");
      await expect(page.locator("#builder-search")).toBeFocused();
      await page.keyboard.press("Shift+Tab");
      await page.keyboard.press("Shift+Tab");
      await page.keyboard.press("Enter");
      await isQuery(page, "");
      await expect(page.locator("#builder-search")).toBeFocused();
      await page.keyboard.press("Tab");
      await page.keyboard.press("End");
      await expect(page.locator("[role=treeitem]:focus")).toContainText("Encounter");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowRight");
      await expect(page.locator("[role=treeitem]:focus")).toContainText("Start time");
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.press("ArrowLeft");
      await expect(node(page, /^Encounter/)).toHaveAttribute("aria-expanded", "false");
      await page.locator("#builder-search").focus();
      await page.keyboard.insertText("any event systolic");
      await expect(page.getByRole("treeitem")).toHaveCount(1);
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Space");
      await isQuery(page, FIRST);
      await expect(page.locator("[role=treeitem]:focus")).toHaveAttribute("aria-checked", "true");
      await page.keyboard.press("ControlOrMeta+z");
      await isQuery(page, "");
      await page.keyboard.press("ControlOrMeta+Shift+z");
      await isQuery(page, FIRST);
      await page.keyboard.press("ControlOrMeta+Enter");
      await answered(page);
      await expect(page.locator("#summary")).toHaveText(/^\d+ rows · 3 columns/);
    }, width));

  test(`the panel stays open over a reload, and can be closed: ${width}`, () =>
    build(async (page) => {
      await page.locator("#build").click();
      await page.reload();
      await expect(node(page, /^Encounter/)).toBeVisible();
      await page.getByRole("button", { name: "Close the builder" }).click();
      await expect(page.locator("#builder")).toBeHidden();
      await expect(page.locator("#build")).toBeFocused();
      await expect(page.locator("#build")).toHaveAttribute("aria-expanded", "false");
    }, width));

  test(`axe finds nothing and nothing overflows: ${width}`, () =>
    build(async (page) => {
      await begin(page);
      await box(node(page, /^Systolic/).first()).click();
      await expect(node(page, /^Systolic/).first()).toHaveAttribute("aria-checked", "true");
      await page.locator("#run").click();
      await answered(page);
      await inspect(page, "builder");
    }, width));
}

test("a double click and a drag insert the path with the variable of the query", () =>
  build(async (page) => {
    await begin(page);
    await box(node(page, /^Systolic/).first()).click();
    await isQuery(page, FIRST);
    await text(page).click();
    await page.keyboard.press("ControlOrMeta+End");
    await page.keyboard.insertText("\nWHERE ");
    await node(page, /^Diastolic/)
      .first()
      .locator(".builder-label")
      .dblclick();
    const path = "bp/data[at0001]/events[at0006]/data[at0003]/items[at0005]/value/magnitude";
    await isQuery(page, `${FIRST}\nWHERE ${path}`);
    await page.keyboard.insertText(" > 100 AND ");
    await node(page, /^Diastolic/)
      .first()
      .dragTo(page.locator("#editor .cm-line").last(), { targetPosition: { x: 3, y: 8 } });
    await expect.poll(async () => (await written(page)).split(path).length).toBe(3);
  }, 1440));

test("clusters of a report are bound below their entry, and a value of another template is joined by EHR", () =>
  build(async (page) => {
    await page.locator("#build").click();
    await page.locator("#builder-new").click();
    const find = async (words, name) => {
      await page.locator("#builder-search").fill(words);
      const line = node(page, name).first();
      await box(line).click();
      await expect(line).toHaveAttribute("aria-checked", "true");
    };
    const columns = async (number) => {
      await page.locator("#run").click();
      await answered(page);
      const summary = new RegExp(`^[1-9][\\d,]* rows · ${number} columns`);
      await expect(page.locator("#summary")).toHaveText(summary);
      await expect(page.locator("#problems")).toBeEmpty();
    };
    await find("analyte name", /Analyte name/);
    await find("analyte result quantity", /quantity DV_QUANTITY/);
    await find("specimen type", /Specimen type/);
    await expect(text(page)).toContainText("AND CLUSTER s[openEHR-EHR-CLUSTER.specimen.v1]");
    await columns(5);
    await find("report id", /Report ID/);
    await columns(6);
    await find("diagnosis name", /Problem\/Diagnosis name/);
    await expect(text(page)).toContainText(
      "COMPOSITION c_2[openEHR-EHR-COMPOSITION.problem_list.v1]",
    );
    await columns(7);
  }, 1440));
