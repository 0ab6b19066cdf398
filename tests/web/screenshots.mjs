// Pictures of the page: two for the README, or with `--all DIR` every view at three widths, light
// and dark. With PAGE_LOCALE=de the page is in another language.
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { browse, built, open, ready, run, write } from "./page.mjs";
import { serve } from "./server.mjs";

const BLOOD_PRESSURE = `SELECT
  c/context/start_time/value AS time,
  o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value AS systolic,
  e/ehr_status/subject/external_ref/id/value AS patient
FROM EHR e
CONTAINS COMPOSITION c
CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]
WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude >= 150
ORDER BY time DESC`;

async function cell(page) {
  await run(page, BLOOD_PRESSURE);
  await page.locator('[role=gridcell][data-row="1"][data-column="1"]').click();
}

/** The views by name. */
const scenes = {
  query: async (page) => {
    await cell(page);
    await page.locator("#detail-where").click();
    await page.locator(".paper .marked").first().waitFor();
  },
  object: cell,
  chart: async (page) => {
    await run(page, BLOOD_PRESSURE);
    await page.locator("#as-chart").click();
    await page.locator("#chart-words").waitFor();
  },
  explanation: async (page) => {
    await run(page, BLOOD_PRESSURE);
    await page.locator("#as-explain").click();
    await page.locator(".explanation").waitFor();
  },
  problem: async (page) => {
    await write(page, "SELECT o/dta FROM EHR e CONTAINS OBSERVATION o");
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.locator(".problem-list").waitFor();
  },
  templates: async (page) => {
    await page.locator("#tab-templates").click();
    await page.locator("#template").selectOption("sample.vital_signs.v1");
    await page.locator("#template-search").fill("pressure");
    await page.locator(".node-found").first().waitFor();
  },
  form: async (page) => {
    await page.locator("#tab-templates").click();
    await page.locator("#template").selectOption("sample.vital_signs.v1");
    await page.locator("#template-form-tab").click();
    await page.locator("#template-form summary").first().click();
  },
  guide: async (page) => {
    await page.locator("#tab-guide").click();
    await page.locator("#patient option").first().waitFor({ state: "attached" });
    await page.locator("#run-guide").click();
    await page.locator("#guide-outcome:not([aria-busy]) .summary").waitFor();
  },
  editor: async (page) => {
    await page.locator("#tab-guide").click();
    await page.locator("#guide-edit-tab").click();
    await page.locator("#guide-editor .cm-content").waitFor();
    await page.locator("#fill-guide").click();
    await page.locator("#guide-form-outcome .summary").waitFor();
  },
  patient: async (page) => {
    await page.locator("#tab-patients").click();
    await page.locator(".timeline-entry").first().click();
    await page.locator(".paper").waitFor();
  },
  data: async (page) => {
    await page.locator("#tab-data").click();
  },
};

const widths = {
  desktop: { width: 1440, height: 900 },
  tablet: { width: 768, height: 1024 },
  phone: { width: 390, height: 844 },
};

async function picture(browser, address, scene, viewport, colorScheme, path) {
  const locale = process.env.PAGE_LOCALE ?? "en-US";
  const page = await open(browser, address, { viewport, colorScheme, locale });
  await ready(page);
  await scenes[scene](page);
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path, animations: "disabled", caret: "initial" });
  await page.context().close();
  if (page.problems.length > 0) throw new Error(`${path}: ${page.problems.join("; ")}`);
  console.log(path);
}

const [flag, folder] = process.argv.slice(2);
const server = await serve(built);
const browser = await browse();
try {
  if (flag === "--all") {
    await mkdir(folder, { recursive: true });
    for (const scene of Object.keys(scenes)) {
      for (const [name, viewport] of Object.entries(widths)) {
        for (const scheme of ["light", "dark"])
          await picture(
            browser,
            server.address,
            scene,
            viewport,
            scheme,
            `${folder}/${scene}-${name}-${scheme}.png`,
          );
      }
    }
  } else {
    const images = fileURLToPath(new URL("../../docs/images", import.meta.url));
    await mkdir(images, { recursive: true });
    await picture(browser, server.address, "query", widths.desktop, "light", `${images}/query.png`);
    await picture(browser, server.address, "guide", widths.desktop, "dark", `${images}/guide.png`);
  }
} finally {
  await browser.close();
  await server.stop();
}
