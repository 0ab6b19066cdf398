// The patients view in a real browser: timeline, readable document, differences of versions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { caller, expect, hosted, inspect, offlineReady, settled } from "./page.mjs";

const site = hosted();

const entries = (page) => page.locator(".timeline-entry");
const people = (page) => page.locator(".person");

/** Opens the patients view of a fresh page. No error may occur on it. */
function onPatients(use, options) {
  const opened = async (page) => {
    await page.click("#tab-patients");
    await entries(page).first().waitFor();
    await use(page);
  };
  return site.visit(opened, options);
}

/** Sends a request to the data of this browser. Returns the text of the answer, with all digits. */
const send = (page, path, options = {}) =>
  page.evaluate(
    async ({ path, options }) => {
      const response = await fetch(`/local/v1/${path}`, options);
      const text = await response.text();
      if (!response.ok) throw new Error(`${response.status} ${text}`);
      return text;
    },
    { path, options },
  );

/** Commits a new version of the opened composition. */
async function changed(page, change) {
  await offlineReady(page);
  const ehr = await page.locator(".person[aria-checked=true]").getAttribute("data-id");
  const uid = await page.locator(".timeline-entry[aria-checked=true]").getAttribute("data-id");
  const text = await send(page, `ehr/${ehr}/composition/${encodeURIComponent(uid)}`, {
    headers: { accept: "application/json" },
  });
  const next = change(text);
  assert.notEqual(next, text);
  await send(page, `ehr/${ehr}/composition/${uid.split("::")[0]}`, {
    method: "PUT",
    headers: { "content-type": "application/json", "if-match": `"${uid}"` },
    body: next,
  });
}

for (const width of [390, 1440])
  test(`the compositions of a patient are a timeline, and one opens as a document: ${width}`, () =>
    onPatients(
      async (page) => {
        await people(page).nth(2).click();
        const name = await people(page).nth(2).locator("strong").textContent();
        await expect(page.locator("#patient-about")).toHaveText(
          new RegExp(`^${name}: \\d+ compositions?$`),
        );
        const number = await entries(page).count();
        await expect(page.locator("#patient-about")).toContainText(`: ${number} `);
        const times = await entries(page).locator("small").allTextContents();
        assert.deepEqual(times, [...times].sort().reverse());
        const title = await entries(page).first().locator("strong").textContent();
        await entries(page).first().click();
        await expect(page.locator("#document-title")).toHaveText(title);
        await expect(page.locator("#document .paper-line").first()).toBeVisible();
        await expect(page.locator("#document .marked")).toHaveCount(0);
        await page.click("#document-tree");
        await expect(page.locator("#document .tree")).toContainText("composition");
        const kinds = page.locator("#timeline-kind");
        await kinds.selectOption({ index: 1 });
        const kind = await kinds.inputValue();
        await expect(entries(page).locator(`strong:not(:text-is("${kind}"))`)).toHaveCount(0);
        await expect(entries(page).first()).toContainText(kind);
        const [download] = await Promise.all([
          page.waitForEvent("download"),
          page.click("#document-download"),
        ]);
        assert.match(download.suggestedFilename(), /^[0-9a-f-]{36}\.json$/);
      },
      { viewport: { width, height: 900 } },
    ));

test("a patient is found by label or by id, and a search without results is reported", () =>
  onPatients(async (page) => {
    const all = await people(page).count();
    const label = await people(page).nth(4).locator("strong").textContent();
    const id = await people(page).nth(4).getAttribute("data-id");
    // The lines of a patient do not overlap the lines of the next patient.
    const [one, next] = [
      await people(page).nth(0).boundingBox(),
      await people(page).nth(1).boundingBox(),
    ];
    const id0 = await people(page).nth(0).locator("small").boundingBox();
    assert.ok(id0.y + id0.height <= one.y + one.height && one.y + one.height <= next.y);
    await page.fill("#patient-find", label.toLowerCase());
    await expect(people(page).first()).toContainText(label);
    await page.fill("#patient-find", id);
    await expect(people(page)).toHaveCount(1);
    await page.fill("#patient-find", "no such patient");
    await expect(page.locator("#patient-list")).toHaveText("No patient fits.");
    const unknown = "00000000-0000-4000-8000-000000000000";
    await page.fill("#patient-find", unknown);
    await people(page).click();
    await expect(page.locator("#timeline")).toContainText("No compositions");
    await page.fill("#patient-find", "");
    await expect(people(page)).toHaveCount(all);
  }));

test("two versions are compared value by value", () =>
  onPatients(async (page) => {
    await entries(page).first().click();
    await page.click("#document-changes");
    await expect(page.locator("#document")).toContainText("One version");
    await changed(page, (text) =>
      text.replace(/("composer":\{[^}]*"name":")[^"]*/, "$1Dr. Changed"),
    );
    await settled(page);
    await expect(page.locator(".document-bar .summary")).toHaveText(/^2 versions/);
    const lines = page.locator(".changes-table tbody tr");
    await expect(lines).toHaveCount(1);
    await expect(lines.first()).toHaveText(/composer.*Dr\. Changed$/);
    await expect(lines.first().locator("ins")).toHaveText("Dr. Changed");
    await page.locator("#version-from").selectOption({ index: 1 });
    await expect(page.locator(".changes")).toContainText("The two versions are equal.");
    await page.click("#document-document");
    await expect(page.locator("#document")).toContainText("Dr. Changed");
  }));

test("a patient and a document are chosen by keyboard", () =>
  onPatients(async (page) => {
    await page.locator(".person[aria-checked=true]").focus();
    const before = await page.locator("#patient-about").textContent();
    await page.keyboard.press("ArrowDown");
    await expect(people(page).nth(1)).toBeFocused();
    await expect(page.locator("#patient-about")).not.toHaveText(before);
    await page.locator(".timeline-entry[tabindex='0']").focus();
    await page.keyboard.press("ArrowDown");
    await expect(page.locator("#document .paper")).toBeVisible();
    await expect(page.locator(".timeline-entry:focus")).toHaveAttribute("aria-checked", "true");
    await page.keyboard.press("Tab");
    await expect(page.locator("#document-document")).toBeFocused();
    await page.keyboard.press("ArrowRight");
    await expect(page.locator("#document")).toContainText("One version");
  }));

test("further compositions of a patient are not drawn as those of the next one", () =>
  site.visit(async (page) => {
    const call = await caller(page);
    await call("generate", { ehrs: 2, compositions: 900, seed: 1 });
    await page.click("#tab-patients");
    await page.locator("#timeline-more").waitFor();
    const ehr = await people(page).nth(1).getAttribute("data-id");
    const listed = await call("compositions", { ehr, offset: 0 });
    // The answer about the second patient cannot arrive between two clicks of one task.
    await page.evaluate(() => {
      document.querySelectorAll(".person")[1].click();
      document.querySelector("#timeline-more").click();
    });
    await page.locator("#timeline:not([aria-busy])").waitFor();
    const drawn = await entries(page).evaluateAll((all) => all.map(({ dataset }) => dataset.id));
    assert.deepEqual(
      drawn,
      listed.map(({ uid }) => uid),
    );
  }));

test("another data set empties the view", () =>
  onPatients(async (page) => {
    await entries(page).first().click();
    await page.locator("#document .paper").waitFor();
    await page.click("#tab-data");
    await page.fill("#set-name", "Empty ward");
    await page.click("#set-new");
    await settled(page);
    await page.click("#tab-patients");
    await expect(page.locator("#patient-list")).toHaveText("There are no patients.");
    await expect(entries(page)).toHaveCount(0);
    await expect(page.locator("#document")).toContainText("No document");
  }));

for (const width of [390, 1440])
  test(`axe finds nothing and nothing overflows: ${width}`, () =>
    onPatients(
      async (page) => {
        await entries(page).first().click();
        await page.locator("#document .paper").waitFor();
        await inspect(page, "patients-document");
        await changed(page, (text) =>
          text.replace(/("composer":\{[^}]*"name":")[^"]*/, "$1Dr. Changed"),
        );
        await page.click("#document-changes");
        await page.locator(".changes-table").waitFor();
        await inspect(page, "patients-changes");
      },
      { viewport: { width, height: 844 } },
    ));
