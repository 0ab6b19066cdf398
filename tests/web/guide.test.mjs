// The guide view in a real browser: select, open and read a guide, enter values, run and test it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFile } from "node:fs/promises";
import { answered, expect, hosted, inspect, ready, settled } from "./page.mjs";

const sample = JSON.parse(
  await readFile(
    new URL("../../www/samples/early_warning_score.gdl2.json", import.meta.url),
    "utf8",
  ),
);

/** A guide with an input of every kind. */
const GUIDE = {
  id: "Kinds.v1",
  gdl_version: "2.0",
  concept: "gt0001",
  language: { original_language: "ISO_639-1::en" },
  description: {
    details: { en: { purpose: "To show every control" }, de: { purpose: "Jedes Feld zeigen" } },
  },
  definition: {
    data_bindings: {
      gt0002: {
        id: "gt0002",
        model_id: "openEHR-EHR-OBSERVATION.blood_pressure.v2",
        type: "INPUT",
        elements: Object.fromEntries(
          ["gt0010", "gt0011", "gt0012", "gt0013", "gt0014", "gt0015"].map((id) => [
            id,
            {
              id,
              path: `/data[at0001]/events[at0006]/data[at0003]/items[${id.replace("gt", "at")}]`,
            },
          ]),
        ),
      },
      gt0003: {
        id: "gt0003",
        model_id: "openEHR-EHR-EVALUATION.kinds.v1",
        type: "OUTPUT",
        elements: { gt0030: { id: "gt0030", path: "/data[at0001]/items[at0002]" } },
      },
    },
    rules: {
      gt0040: {
        id: "gt0040",
        priority: 2,
        when: [
          "$gt0010|Weight|>80,kg",
          "$gt0011|Grade|==1|local::at0008|High|||$gt0011==0|local::at0007|Low|",
          "$gt0012|Smoker|==true",
          "$gt0013|Visits|.magnitude>2",
        ],
        then: ["$gt0030|Advice|='Come again'"],
        cards: [
          {
            summary: "Weight {$gt0010}",
            indicator: "warning",
            source: { label: "The paper", url: "https://example.org" },
          },
        ],
      },
      gt0041: {
        id: "gt0041",
        priority: 1,
        when: ["$gt0014|Born|.year<1900", "$gt0015|Name|=='x'"],
        then: ["$gt0030.magnitude=1/0"],
      },
    },
  },
  ontology: {
    term_definitions: {
      en: {
        terms: Object.fromEntries(
          Object.entries({
            gt0001: "Kinds of input",
            gt0010: "Weight",
            gt0011: "Grade",
            gt0012: "Smoker",
            gt0013: "Visits",
            gt0014: "Born",
            gt0015: "Name",
            gt0030: "Advice",
          }).map(([id, text]) => [id, { id, text }]),
        ),
      },
      de: { terms: { gt0010: { id: "gt0010", text: "Gewicht" } } },
    },
  },
};

const FIXTURE = `
guidelines:
  "1": Kinds.v1
test_cases:
  - id: heavy smoker
    input:
      "1":
        gt0010|Weight: 90,kg
        gt0011|Grade: 1|local::at0008|High|
        gt0012|Smoker: true
        gt0013|Visits: 3
    expected_output:
      "1":
        gt0030|Advice: Come again
  - id: light
    input:
      "1":
        gt0010|Weight: 50,kg
        gt0099|Unknown: 1
    expected_output:
      "1":
        gt0030|Advice: Come again
`;

const site = hosted();

/** Opens the guide view of a fresh page. No error may occur on it. */
function onGuides(use, options) {
  const opened = async (page) => {
    await page.click("#tab-guide");
    await page.locator(".choice").nth(1).waitFor();
    await use(page);
  };
  return site.visit(opened, options);
}

const file = (name, content) => ({
  name,
  mimeType: "text/plain",
  buffer: Buffer.from(typeof content === "string" ? content : JSON.stringify(content)),
});
const openFiles = (page, ...files) => page.locator("#guide-file").setInputFiles(files);

/** Waits until the selected guide is on the screen. */
const described = (page) => page.locator(".guide-result:not([aria-busy])").waitFor();

/** Opens the guide of this file. */
async function openKinds(page, ...more) {
  await openFiles(page, file("kinds.gdl2.json", GUIDE), ...more);
  await page
    .locator("#guide-about h2", { hasText: "Kinds of input" })
    .waitFor({ state: "attached" });
}

test("the description of a guide has bindings, rules, terms and queries", () =>
  onGuides(async (page) => {
    await page.locator(".choice", { hasText: sample.id }).click();
    await page.click("#guide-about-tab");
    await described(page);
    const about = page.locator("#guide-about");
    await about.locator(".binding").first().waitFor();
    await about.locator(".rules > li").nth(3).waitFor();
    await about.locator("#guide-terms summary").click();
    await about.locator(".terms dt").nth(5).waitFor();
    const [inEnglish, german] = [await about.textContent(), page.locator("#guide-language")];
    await german.selectOption("de");
    await described(page);
    await expect(about).not.toHaveText(inEnglish);
    await about.locator(".binding .asked summary").first().click();
    await expect(about.locator(".binding .asked code").first()).toHaveText(
      /CONTAINS COMPOSITION c CONTAINS OBSERVATION/,
    );
    await about.locator(".binding .asked button").first().click();
    await answered(page);
    await expect(page.locator("#summary")).toHaveText(/row/);
    await expect(page.locator("#view-query")).toBeVisible();
    await expect(page.locator(".cm-content")).toHaveText(/ehr_id\/value='[0-9a-f-]{36}'/);
  }));

test("an opened guide has a form with fitting controls and shows its outcome", () =>
  onGuides(async (page) => {
    await openKinds(page);
    await page.click("#guide-form-tab");
    const form = page.locator("#guide-form");
    await expect(form.locator("select[aria-label='Weight, unit'] option")).toHaveText([
      "not chosen",
      "kg",
    ]);
    await expect(form.getByLabel("Grade").locator("option:not(:first-child)")).toHaveText([
      "Low",
      "High",
    ]);
    await expect(form.getByLabel("Born")).toHaveAttribute("type", "datetime-local");
    await expect(form.getByLabel("Visits")).toHaveAttribute("inputmode", "numeric");
    await expect(form.getByLabel("Name")).toHaveAttribute("type", "text");
    await form.getByLabel("Weight", { exact: true }).fill("90");
    await form.getByLabel("Grade").selectOption({ label: "High" });
    await form.getByLabel("Smoker").selectOption({ label: "yes" });
    await form.getByLabel("Visits").fill("3");
    await page.click("#try-guide");
    const outcome = page.locator("#guide-form-outcome");
    await outcome.locator(".summary", { hasText: "1 rule fired" }).waitFor();
    await expect(outcome.locator(".outputs")).toHaveText(/Advice.*Come again/);
    await expect(outcome.locator(".advice")).toHaveText(/warning.*Weight 90 kg/);
    await expect(outcome.locator(".missing")).toHaveText(/Born, Name/);
    await form.getByLabel("Weight", { exact: true }).fill("50");
    await page.click("#try-guide");
    await outcome.locator(".summary", { hasText: "0 rules fired" }).waitFor();
    const why = outcome.locator(".rules details").first();
    await why.locator("summary").click();
    await expect(why).toHaveText(/false.*Weight: 50 kg/);
  }));

for (const width of [390, 1440])
  test(`a number is the same in card, result and trace: ${width}`, () =>
    onGuides(
      async (page) => {
        const pressure = JSON.parse(
          await readFile(
            new URL("../../www/samples/blood_pressure_category.gdl2.json", import.meta.url),
            "utf8",
          ),
        );
        const rule = pressure.definition.rules.gt0037;
        // Markdown, in which the value has escapes.
        const detail = "\\*Measured\\* &amp; shown: {$gt0012}";
        rule.cards = [{ summary: "Pulse pressure {$gt0012}", detail, indicator: "info" }];
        await openFiles(page, file("pressure.gdl2.json", pressure));
        await page.click("#guide-form-tab");
        const form = page.locator("#guide-form");
        for (const [name, value] of [
          ["Systolic", "122.5"],
          ["Diastolic", "80"],
        ]) {
          await form.getByLabel(name, { exact: true }).fill(value);
          await form.getByLabel(`${name}, unit`).selectOption("mm[Hg]");
        }
        await page.click("#try-guide");
        const outcome = page.locator("#guide-form-outcome");
        await expect(outcome.locator(".advice")).toContainText(["Pulse pressure 42.5 mm[Hg]"]);
        const words = "*Measured* & shown: 42.5 mm[Hg]";
        await expect(outcome.locator(".advice .words")).toHaveText(words);
        await expect(outcome.locator(".outputs .value")).toContainText(["42.5 mm[Hg]"]);
        const fired = outcome.locator(".rules details", { hasText: "Pulse pressure" }).last();
        await fired.locator("summary").click();
        await expect(fired.locator(".set")).toContainText("Pulse pressure: 42.5 mm[Hg]");
      },
      { viewport: { width, height: 900 } },
    ));

test("an opened guide runs on a patient, runs again after changes, and can be stored", () =>
  onGuides(async (page) => {
    await openKinds(page);
    await page.click("#run-guide");
    await page
      .locator("#guide-outcome:not([aria-busy]) .summary", { hasText: "0 rules fired" })
      .waitFor();
    const changed = structuredClone(GUIDE);
    changed.definition.rules.gt0040.when = [];
    await openKinds(page, file("changed.gdl2.json", changed));
    await page.click("#run-guide");
    await page
      .locator("#guide-outcome:not([aria-busy]) .summary", { hasText: "1 rule fired" })
      .waitFor();
    await page.click("#guide-about-tab");
    await page.click("#store-guide");
    await page.locator("#guide-messages .good").waitFor();
    await settled(page);
    await page.reload();
    await ready(page);
    await page.click("#tab-guide");
    await page.locator(".choice", { hasText: "Kinds of input" }).click();
    await described(page);
    await page.click("#run-guide");
    await page
      .locator("#guide-outcome:not([aria-busy]) .summary", { hasText: "1 rule fired" })
      .waitFor();
  }));

test("problems of a guide have positions, and other files are refused with a reason", () =>
  onGuides(async (page) => {
    const wrong = structuredClone(GUIDE);
    wrong.definition.rules.gt0041.when = ["$gt0099 == 1", "$gt0010|Wieght| > 5,kg"];
    await openFiles(
      page,
      file("wrong.gdl2.json", wrong),
      file("broken.gdl", "(GUIDE) <\n id = <5"),
      file("notes.json", '{"a": 1}'),
    );
    await page.locator("#guide-messages", { hasText: "notes.json" }).waitFor();
    await expect(page.locator("#guide-messages")).toHaveText(
      /broken\.gdl: .*line 2.*notes\.json: .*definition/,
    );
    const problems = await page.locator("#guide-about .guide-problems").textContent();
    for (const expected of [
      "gt0099 is bound to nothing",
      "is labelled Wieght",
      "rule gt0041 can never fire",
    ])
      assert.ok(problems.includes(expected), problems);
  }));

test("a guide is downloaded in the other syntax and opened again", () =>
  onGuides(async (page) => {
    await openKinds(page);
    await page.click("#guide-about-tab");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.click("#guide-odin"),
    ]);
    assert.equal(download.suggestedFilename(), "Kinds.v1.gdl");
    const odin = await readFile(await download.path(), "utf8");
    assert.ok(odin.startsWith("(GUIDE) <"));
    await openFiles(page, file("kinds.gdl", odin.replace("Kinds of input", "Kinds in ODIN")));
    await page.locator("#guide-about h2", { hasText: "Kinds in ODIN" }).waitFor();
  }));

test("dropped fixtures run and are checked, and failures come first", () =>
  onGuides(async (page) => {
    await openKinds(page);
    const transfer = await page.evaluateHandle((text) => {
      const all = new DataTransfer();
      all.items.add(new File([text], "kinds.test.yml"));
      return all;
    }, FIXTURE);
    await page.dispatchEvent("#view-guide", "drop", { dataTransfer: transfer });
    const tests = page.locator("#guide-tests");
    await tests.locator(".summary", { hasText: "1 of 2 cases pass" }).waitFor();
    await expect(tests.locator("tbody tr").first()).toHaveText(
      /failed.*light.*gt0030: expected .*found nothing/,
    );
    await expect(tests.locator(".guide-problems")).toHaveText(/no variable gt0099/);
    await openFiles(page, file("x.yml", "a: ["));
    await tests.locator(".fixture.bad").waitFor();
  }));

for (const width of [390, 1440])
  test(`axe finds nothing and nothing overflows: ${width}`, () =>
    onGuides(
      async (page) => {
        await page.locator(".choice", { hasText: sample.id }).click();
        await page.click("#run-guide");
        await page.locator("#guide-outcome:not([aria-busy]) .rules summary").first().click();
        await inspect(page, "guide-patient");
        await openKinds(page);
        await page.locator("#guide-about .binding summary").first().click();
        await inspect(page, "guide-about");
        await page.click("#guide-form-tab");
        await page.locator("#guide-form").getByLabel("Weight", { exact: true }).fill("90");
        await page.click("#try-guide");
        await page.locator("#guide-form-outcome .summary").waitFor();
        await inspect(page, "guide-form");
        await openFiles(page, file("kinds.test.yml", FIXTURE));
        await page.locator("#guide-tests .summary").waitFor();
        await inspect(page, "guide-tests");
      },
      { viewport: { width, height: 844 } },
    ));
