// A task of a person who knows the page: from an own template and twenty compositions to a query with
// a chart of one patient, counted in actions. A click, a text, a choice and a drop of files are one
// action each.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFile } from "node:fs/promises";
import { answered, caller, expect, hosted, settled } from "./page.mjs";

/** The maximum number of actions. */
const MOST = 25;
const OWN = "ward.observations.v1";
const SAMPLE = "sample.vital_signs.v1";

const site = hosted();

/** Returns the own template: the sample under another id. */
async function template() {
  const sample = await readFile(
    new URL("../../www/samples/vital_signs.opt", import.meta.url),
    "utf8",
  );
  const buffer = Buffer.from(sample.replaceAll(SAMPLE, OWN));
  return { name: "ward.opt", mimeType: "application/xml", buffer };
}

/** Returns twenty compositions of the own template, one a day, with different pressures. */
async function compositions(page) {
  const call = await caller(page);
  const q = `SELECT c FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE c/archetype_details/template_id/value = '${SAMPLE}' LIMIT 1`;
  const { identity } = await call("query", { q, parameters: {}, from: null });
  const { text } = await call("documents", { q, parameters: {}, identity, format: "JSON" });
  return Array.from({ length: 20 }, (_, day) => {
    const document = JSON.parse(text.replaceAll(SAMPLE, OWN), (key, value) => {
      if (key === "uid" && value._type) return undefined;
      return key === "magnitude" && value > 100 ? 110 + day : value;
    });
    document.context.start_time.value = `2026-03-${String(day + 1).padStart(2, "0")}T08:00:00Z`;
    const buffer = Buffer.from(JSON.stringify(document));
    return { name: `day-${day + 1}.json`, mimeType: "application/json", buffer };
  });
}

/** Returns the id of the EHR with the own compositions. The page shows it, as the patient has no label. */
async function owner(page) {
  const q = `SELECT DISTINCT e/ehr_id/value FROM EHR e CONTAINS COMPOSITION c WHERE c/archetype_details/template_id/value = '${OWN}'`;
  const { text } = await (await caller(page))("query", { q, parameters: {}, from: null });
  return JSON.parse(text).rows[0][0];
}

for (const width of [390, 1440])
  test(`a query and a chart of one patient, from an own template, in ${MOST} actions: ${width}`, () =>
    site.visit(
      async (page) => {
        const files = [await template(), ...(await compositions(page))];
        let actions = 0;
        const act = async (step) => {
          actions += 1;
          await step;
        };
        await act(page.click("#tab-data"));
        await act(page.selectOption("#target", { label: "A new patient" }));
        await act(page.locator("#files").setInputFiles(files));
        await expect(page.locator("#added")).toContainText("21 of 21 files added");
        await settled(page);

        await act(page.click("#tab-query"));
        await act(page.click("#build"));
        await act(page.click("#builder-new"));
        for (const words of ["systolic", "diastolic"]) {
          await act(page.fill("#builder-search", words));
          const line = page.getByRole("treeitem", { name: new RegExp(`Any event.*${words}`, "i") });
          await act(line.first().locator(".builder-box").click());
          await expect(line.first()).toHaveAttribute("aria-checked", "true");
        }
        await act(page.click("#run"));
        await answered(page);
        await expect(page.locator("#summary")).toHaveText(/^\d+ rows · 4 columns/);
        await act(page.click("#as-chart"));
        await page.locator(".chart-frame canvas").waitFor();
        await act(page.selectOption("#chart-member", { label: await owner(page) }));
        const words = /systolic: 20 values; 110 to 129.*diastolic: 20 values/;
        await expect(page.locator("#chart-words")).toHaveText(words);
        assert.ok(actions <= MOST, `${actions} actions`);
      },
      { viewport: { width, height: 900 } },
    ));
