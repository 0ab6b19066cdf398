// Numbers in forms: typed and pasted with a point or a comma, in each language of the page. The browser
// has English texts, so a control of the type `number` would drop a comma.
import assert from "node:assert/strict";
import { test } from "node:test";
import { expect, hosted, row, run, settled } from "./page.mjs";

const PRESSURE = "blood_pressure_category.v1";
const LANGUAGES = ["en", "de", "sv"];

const site = hosted();

/** Opens a page in a language, in a browser in English. */
function inLanguage(code, use) {
  const chosen = async (page) => {
    await page.selectOption("#language", code);
    await expect(page.locator("html")).toHaveAttribute("lang", code);
    await settled(page);
    await use(page);
  };
  return site.visit(chosen, {
    locale: "en-US",
    permissions: ["clipboard-read", "clipboard-write"],
  });
}

async function typed(page, field, text) {
  await field.fill("");
  await field.pressSequentially(text);
}

async function pasted(page, field, text) {
  await field.fill("");
  await page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
  await field.press("ControlOrMeta+V");
}

/** Opens the form of the guide of blood pressures. Returns its first two numbers. */
async function pressures(page) {
  await page.click("#tab-guide");
  await page.locator(".choice", { hasText: PRESSURE }).click();
  await page.click("#guide-form-tab");
  const numbers = page.locator("#guide-form input[inputmode=decimal]");
  return [numbers.nth(0), numbers.nth(1)];
}

for (const code of LANGUAGES)
  test(`a decimal comma in the form of a guide is a decimal sign: ${code}`, () =>
    inLanguage(code, async (page) => {
      const [systolic, diastolic] = await pressures(page);
      const outcome = page.locator("#guide-form-outcome");
      await diastolic.fill("80");
      for (const enter of [typed, pasted])
        for (const text of ["128,5", "128.5"]) {
          await enter(page, systolic, text);
          await page.click("#try-guide");
          await expect(systolic).toHaveValue(text);
          await expect(systolic).not.toHaveAttribute("aria-invalid", "true");
          await expect(outcome).toContainText("128.5");
        }
    }));

for (const code of LANGUAGES)
  test(`a form of a guide does not run on a text that is no number: ${code}`, () =>
    inLanguage(code, async (page) => {
      const [systolic, diastolic] = await pressures(page);
      const outcome = page.locator("#guide-form-outcome");
      await diastolic.fill("80");
      for (const enter of [typed, pasted])
        for (const text of ["1 285", "1.285,0", "1,285.5", "1e3", "128,", "x"]) {
          await systolic.fill("128");
          await page.click("#try-guide");
          await outcome.locator(".summary").waitFor();
          await enter(page, systolic, text);
          await page.click("#try-guide");
          await expect(systolic).toHaveAttribute("aria-invalid", "true");
          await expect(page.locator("#guide-form .wrong")).toContainText(text);
          await expect(systolic).toHaveAccessibleDescription(new RegExp(text.replace(/\W/g, ".")));
          await expect(outcome.locator(".summary")).toHaveCount(0);
        }
      await systolic.fill("128");
      await expect(page.locator("#guide-form .wrong")).toHaveCount(0);
      await outcome.locator(".summary").waitFor();
    }));

test("an unreadable text stays in the form while other guides are shown", () =>
  inLanguage("en", async (page) => {
    const [systolic] = await pressures(page);
    await systolic.fill("1 285");
    const other = page.locator(".choice:has(input[name=guide])", { hasNotText: PRESSURE }).first();
    await other.click();
    await expect(other.locator("input")).toBeChecked();
    await pressures(page);
    await expect(systolic).toHaveValue("1 285");
  }));

/** Opens the form of vital signs. Returns the number of the body temperature. */
async function temperature(page) {
  await page.click("#tab-templates");
  await page.selectOption("#template", "sample.vital_signs.v1");
  await page.click("#template-form-tab");
  await page.selectOption("#template-language", "en");
  const form = page.locator("#template-form");
  const group = (within, name) => within.locator(`details:has(> summary:text("${name}"))`);
  const outer = group(form, "Body temperature");
  await outer.locator("> summary").click();
  const event = group(outer, "Any event").first();
  await event.locator("> summary").click();
  const line = event.locator('.form-field:has(> label:text("Temperature"))').first();
  await line.locator("select").selectOption({ index: 1 });
  return line.locator("input").first();
}

for (const code of LANGUAGES)
  test(`a document has the typed digits: ${code}`, () =>
    inLanguage(code, async (page) => {
      const field = await temperature(page);
      await typed(page, field, "3 7");
      for (const button of ["#form-save", "#form-flat"]) {
        await page.click(button);
        await expect(field).toHaveAttribute("aria-invalid", "true");
        await page.locator("#form-outcome .bad").waitFor();
        await expect(page.locator("#form-outcome .good, #form-outcome pre")).toHaveCount(0);
      }
      await pasted(page, field, "36,60");
      await page.click("#form-flat");
      await expect(page.locator("#form-outcome pre")).toContainText(/\|magnitude": 36\.60,?\n/);
      await page.click("#form-save");
      const uid = /\S+::1/.exec(await page.locator("#form-outcome .good").textContent())[0];
      await settled(page);
      await page.click("#tab-query");
      await run(
        page,
        `SELECT o/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude AS temperature FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.body_temperature.v2] WHERE c/uid/value = '${uid}'`,
      );
      assert.deepEqual(await row(page, 0), ["36.60"]);
    }));
