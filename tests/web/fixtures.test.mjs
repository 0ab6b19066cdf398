// Fixtures and forms of guides in a real browser. Fixtures run on the guides that they name, cases fill
// the form, and the form uses templates and patients.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readFile } from "node:fs/promises";
import { accessible, expect, hosted, settled } from "./page.mjs";

const PRESSURE = "Sample_blood_pressure_category.v1";
const WARNING = "Sample_early_warning_score.v1";
const SAMPLE = await readFile(
  new URL("../../www/samples/blood_pressure_category.gdl2.json", import.meta.url),
  "utf8",
);

/** A guide that computes an age, so that its outcome depends on the time of evaluation. */
const AGE = JSON.stringify({
  id: "Age.v1",
  gdl_version: "2.0",
  concept: "gt0001",
  language: { original_language: "ISO_639-1::en" },
  definition: {
    data_bindings: {
      gt0002: {
        id: "gt0002",
        model_id: "openEHR-EHR-EVALUATION.birth.v1",
        type: "INPUT",
        elements: { gt0010: { id: "gt0010", path: "/data[at0001]/items[at0002]" } },
      },
      gt0003: {
        id: "gt0003",
        model_id: "openEHR-EHR-EVALUATION.age.v1",
        type: "OUTPUT",
        elements: { gt0030: { id: "gt0030", path: "/data[at0001]/items[at0002]" } },
      },
    },
    rules: {
      gt0040: {
        id: "gt0040",
        priority: 1,
        when: ["$gt0010|Born|!=null"],
        then: ["$gt0030|Age|.magnitude=($currentDateTime-$gt0010)/1,a"],
      },
    },
  },
  ontology: {
    term_definitions: {
      en: {
        terms: {
          gt0001: { id: "gt0001", text: "Age" },
          gt0010: { id: "gt0010", text: "Born" },
          gt0030: { id: "gt0030", text: "Age" },
        },
      },
    },
  },
});

/** Returns a fixture for a guide from the title, the input lines and the expected lines of each case. */
function fixture(guide, cases, head = "") {
  const values = (lines) => lines.map((line) => `        ${line}`).join("\n");
  const one = ([title, input, expected]) =>
    `  - id: ${title}\n    input:\n      "1":\n${values(input)}\n    expected_output:\n      "1":\n${values(expected)}\n`;
  return `${head}guidelines:\n  "1": ${guide}\ntest_cases:\n${cases.map(one).join("")}`;
}

const PRESSURES = fixture(PRESSURE, [
  [
    "normal",
    ["gt0003|Systolic: 122,mm[Hg]", "gt0004|Diastolic: 80,mm[Hg]"],
    ["gt0012|Pulse pressure: 42.0,mm[Hg]", "gt0011|Category: 1|local::at0011|Normal|"],
  ],
  [
    "wrong",
    ["gt0003|Systolic: 15.1,kPa", "gt0004|Diastolic: 80,mm[Hg]"],
    ["gt0012|Pulse pressure: 1,mm[Hg]"],
  ],
]);
const AGES = fixture(
  "Age.v1",
  [["of ten years", ["gt0010|Born: 2010-05-01"], ["gt0030|Age: 10"]]],
  "current_datetime: 2020-05-01T12:00:00Z\n",
);

const site = hosted();

function onGuides(use, options) {
  const opened = async (page) => {
    await page.click("#tab-guide");
    await page.locator(".choice").nth(1).waitFor();
    await use(page);
  };
  return site.visit(opened, options);
}

/** Drops files onto the guide view. */
async function drop(page, files) {
  const transfer = await page.evaluateHandle((files) => {
    const all = new DataTransfer();
    for (const [name, text] of Object.entries(files)) all.items.add(new File([text], name));
    return all;
  }, files);
  await page.dispatchEvent("#view-guide", "drop", { dataTransfer: transfer });
}

const tests = (page) => page.locator("#guide-tests");
const form = (page) => page.locator("#guide-form");
const field = (page, name) => form(page).getByLabel(name, { exact: true });

for (const [scheme, width] of [
  ["light", 390],
  ["dark", 1440],
])
  test(`guides and fixtures that are dropped together run, and failures come first: ${width}, ${scheme}`, () =>
    onGuides(
      async (page) => {
        await drop(page, {
          "a.test.yml": AGES,
          "p.test.yml": PRESSURES,
          "other.yml": fixture("Absent.v7", [["x", ["gt1: 1"], ["gt2: 2"]]]),
          "age.gdl2.json": AGE,
        });
        const lines = tests(page).locator("tbody tr");
        await expect(lines).toHaveCount(3);
        await expect(lines.nth(0)).toHaveText(/failed.*wrong.*found nothing/);
        await expect(lines.nth(0)).toContainText(PRESSURE);
        await expect(lines.filter({ hasText: "of ten years" })).toHaveText(/passed.*Age\.v1/);
        await expect(tests(page).locator("h2")).toHaveText("1 of 3 cases fails");
        await expect(tests(page).locator(".fixture.bad")).toContainText(
          /other\.yml: not run.*No guide Absent\.v7 is here/s,
        );
        await tests(page).locator("#guide-tests-only").selectOption("Age.v1");
        await expect(lines).toHaveCount(1);
        await expect(tests(page).locator("#guide-tests-only")).toBeFocused();
        await tests(page).locator("#guide-tests-only").selectOption("");
        if (process.env.SHOTS)
          await page.screenshot({
            path: `${process.env.SHOTS}/fixtures-${scheme}-${width}.png`,
            fullPage: true,
          });
        assert.ok(
          await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          "wider than the screen",
        );
        await accessible(page, "fixtures");
      },
      { colorScheme: scheme, viewport: { width, height: 900 } },
    ));

for (const width of [390, 1440])
  test(`fixtures stay over a reload until they are closed: ${width}`, () =>
    onGuides(
      async (page) => {
        const again = async () => {
          await page.reload();
          await settled(page);
          await page.click("#tab-guide");
          await page.click("#guide-tests-tab");
        };
        const lines = tests(page).locator("tbody tr");
        await drop(page, { "p.test.yml": PRESSURES, "a.test.yml": AGES, "age.gdl2.json": AGE });
        await expect(lines).toHaveCount(3);
        await tests(page).locator("#guide-tests-only").waitFor();
        await again();
        await expect(lines).toHaveCount(3);
        await expect(tests(page).locator("h2")).toHaveText("1 of 3 cases fails");
        // Files that are opened later are added to the present ones.
        await drop(page, { "more.yml": PRESSURES });
        await expect(lines).toHaveCount(5);
        await page.click("#guide-tests-clear");
        await expect(tests(page)).toContainText("No fixtures yet");
        await again();
        await expect(tests(page)).toContainText("No fixtures yet");
      },
      { viewport: { width, height: 900 } },
    ));

test("fixtures that exceed the storage run, and the page reports that a reload loses them", () =>
  onGuides(async (page) => {
    await page.evaluate(() => {
      localStorage["filler"] = "x".repeat(1 << 22);
      for (let size = 1 << 20; size > 16; size >>= 1)
        try {
          localStorage[`filler ${size}`] = "x".repeat(size);
        } catch {
          // A larger text would exceed the storage.
        }
    });
    await drop(page, { "p.test.yml": PRESSURES });
    await expect(tests(page).locator("tbody tr")).toHaveCount(2);
    await expect(tests(page)).toContainText("are not kept over a reload");
  }));

test("a fixture whose guide is missing runs when the guide is opened, or on the selected one", () =>
  onGuides(async (page) => {
    await drop(page, { "a.test.yml": AGES });
    await expect(tests(page).locator(".fixture.bad")).toContainText("No guide Age.v1 is here");
    await drop(page, { "age.gdl2.json": AGE });
    await page.click("#guide-tests-tab");
    await expect(tests(page).locator("h2")).toHaveText("Every case passes");
    await drop(page, { "a.test.yml": AGES.replace("Age.v1", "Age.v2") });
    await tests(page).locator("button", { hasText: "Run it on Age.v1" }).click();
    await expect(tests(page).locator("h2")).toHaveText("Every case passes");
    await expect(tests(page).locator(".guide-problems")).toContainText("Age.v2");
    await page.click("#guide-tests-clear");
    await expect(tests(page)).toContainText("No fixtures yet");
  }));

test("the input of a case is copied to the form with its units and time, by keyboard", () =>
  onGuides(async (page) => {
    await drop(page, { "a.test.yml": AGES, "p.test.yml": PRESSURES, "age.gdl2.json": AGE });
    const use = tests(page).locator("tr", { hasText: "wrong" }).locator("button");
    await use.focus();
    await page.keyboard.press("Enter");
    await expect(field(page, "Systolic")).toHaveValue("15.1");
    await expect(field(page, "Systolic")).toBeFocused();
    await expect(form(page).getByLabel("Systolic, unit")).toHaveValue("kPa");
    await expect(form(page).getByLabel("Diastolic, unit")).toHaveValue("mm[Hg]");
    await expect(page.locator("#guide-form-outcome .summary")).toHaveText(/0 rules fired/);
    await page.click("#guide-tests-tab");
    await tests(page).locator("tr", { hasText: "of ten years" }).locator("button").click();
    await expect(page.locator("#guide-form-outcome .outputs .value")).toHaveText("10");
    await expect(field(page, "Time of evaluation")).toHaveValue(/^2020-05-0/);
    await field(page, "Time of evaluation").fill("2031-06-01T12:00:00");
    await expect(page.locator("#guide-form-outcome .outputs .value")).toHaveText("21");
  }));

test("a form has the units, ranges and choices of the templates", () =>
  onGuides(async (page) => {
    await page.locator(".choice", { hasText: PRESSURE }).click();
    await page.click("#guide-form-tab");
    const unit = form(page).getByLabel("Systolic, unit");
    await expect(unit.locator("option")).toHaveText(["not chosen", "mm[Hg]", "kPa"]);
    await expect(form(page).locator(".form-range").first()).toHaveText(
      "0 to 1000 mm[Hg], 0 to 133 kPa",
    );
    const systolic = field(page, "Systolic");
    await systolic.fill("140");
    await unit.selectOption("kPa");
    await expect(systolic).toHaveClass("outside");
    await expect(systolic).toHaveAccessibleDescription(/^out of range: 0 to 1000 mm\[Hg\], 0 to/);
    await page.locator("#guide-form-outcome .summary").waitFor();
    await unit.selectOption("mm[Hg]");
    await expect(systolic).not.toHaveClass("outside");
    await expect(systolic).toHaveAccessibleDescription(/^0 to 1000/);
  }));

test("times of a case are shown in each form of ISO 8601, and leave the form with the case", () =>
  onGuides(async (page) => {
    const cases = ["20100501T091800Z", "2010-05-01T09:18:00,000+0000", "soon"].map((born, at) => [
      `case ${at}`,
      [`gt0010|Born: ${born}`],
      ["gt0030|Age: 10"],
    ]);
    await drop(page, { "a.test.yml": fixture("Age.v1", cases), "age.gdl2.json": AGE });
    for (const [at, shown] of [/^2010-05-01T/, /^2010-05-01T/, "soon"].entries()) {
      await page.click("#guide-tests-tab");
      await tests(page)
        .locator("tr", { hasText: `case ${at}` })
        .locator("button")
        .click();
      await expect(field(page, "Born")).toHaveValue(shown);
    }
    await page.click("#fill-guide");
    await expect(page.locator("#guide-filled")).toContainText("has no values");
    await expect(field(page, "Born")).toHaveValue("");
    await expect(field(page, "Born")).toHaveAttribute("type", "datetime-local");
  }));

test("the values of a patient fill the form, and those of another patient replace them", () =>
  onGuides(async (page) => {
    await page.locator(".choice", { hasText: WARNING }).click();
    await page.click("#guide-form-tab");
    await page.click("#fill-guide");
    const said = page.locator("#guide-filled");
    const patient = page.locator("#patient");
    await expect(said).toHaveText(/^The values of P\d+ are filled in|has no values/);
    const numbers = form(page).locator("input[inputmode=decimal]");
    const values = () =>
      numbers.evaluateAll((inputs) =>
        inputs
          .map(({ value }) => value)
          .join(" ")
          .trim(),
      );
    const seen = new Set();
    for (const index of [0, 1, 2, 3]) {
      await patient.selectOption({ index });
      const [name] = await patient.locator("option").nth(index).allTextContents();
      await expect(said).toContainText(name);
      await page.locator("#guide-form-outcome .summary").waitFor();
      seen.add(await values());
    }
    assert.ok(seen.size > 2, [...seen].join("; "));
    // The run on the form has the same outcome as the run on the patient.
    const outputs = (where) => page.locator(`${where} .outputs .value`);
    const onForm = await outputs("#guide-form-outcome").allTextContents();
    await page.click("#run-guide");
    await page.locator("#guide-outcome:not([aria-busy]) .summary").waitFor();
    await expect(outputs("#guide-outcome")).toHaveText(onForm);
  }));

test("the choices of a guide keep their literals", () =>
  onGuides(async (page) => {
    const guide = SAMPLE.replaceAll(PRESSURE, "Copy.v1").replaceAll(
      "$gt0003|Systolic|.unit=='mm[Hg]'",
      "$gt0003|Systolic|==local::at0008|High|",
    );
    await drop(page, {
      "copy.gdl2.json": guide,
      "c.yml": fixture("Copy.v1", [["odd", ["gt0003: local::at0077|Odd|"], ["gt0012: 1"]]]),
    });
    await tests(page).locator("button", { hasText: "Use as form" }).click();
    await expect(field(page, "Systolic").locator("option:checked")).toHaveText("Odd");
  }));
