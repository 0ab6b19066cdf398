// The page in other languages. In every view, all controls are drawn as a whole and axe finds nothing. A
// change of the language keeps queries, result and source.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { textsOf } from "../../www/texts.mjs";
import { whole } from "./controls.mjs";
import {
  accessible,
  answered,
  browse,
  built,
  expect,
  ready,
  row,
  run,
  settled,
  visit,
  write,
} from "./page.mjs";
import { serve } from "./server.mjs";

const SYSTOLIC =
  "SELECT c/context/start_time/value AS time, o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value AS systolic FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";
const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const LIMITED =
  "SELECT e/ehr_id/value AS ehr FROM EHR e WHERE e/ehr_id/value != $id ORDER BY ehr LIMIT 3";

/** A server with seven EHRs. It refuses requests without a token if it has one. */
let token;
let server;
let browser;

async function interfaceOf(request, response) {
  if (!request.url.startsWith("/v1/")) return false;
  let body = "";
  for await (const chunk of request) body += chunk;
  const answer = (status, value) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  if (token && request.headers.authorization !== `Bearer ${token}`)
    answer(401, { message: "who asks?" });
  else if (request.url.endsWith("/query/aql"))
    answer(200, {
      columns: [{ name: "n", path: null }],
      rows: JSON.parse(body).q.includes("COUNT") ? [[7]] : [],
    });
  else answer(200, []);
  return true;
}

before(async () => {
  server = await serve(built, 0, interfaceOf);
  browser = await browse();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const onPage = (use, options) => visit(browser, server.address, use, options);

/** The views by name, each in a state with many controls. */
const views = {
  table: async (page) => {
    await run(page, SYSTOLIC);
    await page.locator('[role=gridcell][data-row="1"][data-column="1"]').click();
    await page.locator("#detail-where").click();
    await page.locator(".paper .marked").first().waitFor();
  },
  chart: async (page) => {
    await page.locator("#detail-close").click();
    await page.locator("#as-chart").click();
    await page.locator("#chart-words").waitFor();
  },
  explanation: async (page) => {
    await page.locator("#as-explain").click();
    await page.locator(".explanation").waitFor();
  },
  problem: async (page) => {
    await write(page, "SELECT o/dta FROM EHR e CONTAINS OBSERVATION o WHERE o/uid = $id");
    await page.locator("#problems .fix").waitFor();
  },
  builder: async (page) => {
    await page.locator("#build").click();
    await page.locator("#builder-tree [role=treeitem]").first().waitFor();
  },
  templates: async (page) => {
    await page.locator("#tab-templates").click();
    await page.locator("#template-tree summary").first().waitFor();
  },
  form: async (page) => {
    await page.locator("#template-form-tab").click();
    await page.locator("#template-form summary").first().click();
  },
  guide: async (page) => {
    await page.locator("#tab-guide").click();
    await page.locator("#patient option").first().waitFor({ state: "attached" });
    await page.locator("#run-guide").click();
    await page.locator("#guide-outcome:not([aria-busy]) .summary").waitFor();
  },
  "text of a guide": async (page) => {
    await page.locator("#guide-edit-tab").click();
    await page.locator("#guide-editor .cm-content").waitFor();
    await page.locator("#try-guide").click();
    await page.locator("#guide-form-outcome .summary").waitFor();
  },
  "about a guide": (page) => page.locator("#guide-about-tab").click(),
  fixtures: (page) => page.locator("#guide-tests-tab").click(),
  patients: async (page) => {
    await page.locator("#tab-patients").click();
    await page.locator(".timeline-entry").first().click();
    await page.locator("#document .paper").waitFor();
  },
  data: async (page) => {
    await page.locator("#tab-data").click();
    await page.locator("#start-over").waitFor();
  },
  keys: async (page) => {
    await page.locator("#tab-data").focus();
    await page.keyboard.press("?");
    await page.locator("#keys[open]").waitFor();
  },
};

const SCREENS = [
  [390, "light"],
  [1440, "dark"],
];

// Colours do not depend on the language. The tests of each view have all four screens, in English.
for (const [locale, code] of [
  ["en-GB", "en"],
  ["de-AT", "de"],
  ["sv", "sv"],
])
  for (const [width, colorScheme] of SCREENS)
    test(`every view in ${code} is whole and accessible: ${width}, ${colorScheme}`, () =>
      onPage(
        async (page) => {
          const { frame } = await textsOf(code);
          await expect(page.locator("html")).toHaveAttribute("lang", code);
          await expect(page.locator("#tab-guide")).toHaveText(frame.guides);
          await expect(page).toHaveTitle(frame.title);
          for (const [view, show] of Object.entries(views)) {
            await show(page);
            if (process.env.SHOTS)
              await page.screenshot({
                path: `${process.env.SHOTS}/${code}-${view}-${width}-${colorScheme}.png`,
                fullPage: true,
              });
            await whole(page, `${view} in ${code}`);
            await accessible(page, `${view} in ${code}`);
          }
        },
        { locale, colorScheme, viewport: { width, height: 844 } },
      ));

// The layout changes at several widths between the two screens above.
for (const [locale, code] of [
  ["en-GB", "en"],
  ["de-AT", "de"],
  ["sv", "sv"],
])
  test(`every view in ${code} is whole at the widths between a phone and a wide screen`, () =>
    onPage(
      async (page) => {
        for (const [view, show] of Object.entries(views)) {
          await page.setViewportSize({ width: 1440, height: 844 });
          await show(page);
          for (const width of [1200, 1024, 960, 900, 768, 700, 420]) {
            await page.setViewportSize({ width, height: 844 });
            await whole(page, `${view} in ${code} at ${width}`);
          }
        }
      },
      { locale },
    ));

/** Changes the language, and waits for the page in that language. */
async function speak(page, code) {
  await page.locator("#language").selectOption(code);
  await expect(page.locator("html")).toHaveAttribute("lang", code);
  await expect(page.locator("#language")).toHaveValue(code);
}

for (const width of [390, 1440])
  test(`a change of the language keeps queries, values and result: ${width}`, () =>
    onPage(
      async (page) => {
        await run(page, COUNT);
        await page.locator("#query-new").click();
        await write(page, LIMITED);
        await page.locator("#parameters input").fill("x");
        await page.keyboard.press("ControlOrMeta+Enter");
        await page.locator("#run").click();
        await answered(page);
        await expect(page.locator("#summary")).toHaveText(/^3 rows/);
        // The labels of patients follow the rows.
        const labelled = [expect.stringMatching(/^[0-9a-f-]+ P\d+$/)];
        await expect.poll(() => row(page, 1)).toEqual(labelled);
        const rows = await row(page, 1);
        await page.locator("#as-json").click();
        await speak(page, "de");
        await expect(page.locator("#summary")).toHaveText(/^3 Zeilen · 1 Spalte · \d+,\d ms$/);
        await expect(page.locator("#as-json")).toHaveAttribute("aria-checked", "true");
        await page.locator("#as-table").click();
        await expect.poll(() => row(page, 1)).toEqual(rows);
        await expect(page.locator("#parameters input")).toHaveValue("x");
        await expect(page.locator("#queries [role=tab]")).toHaveText(["Query 1", "Query 2"]);
        assert.equal(await page.evaluate(() => sessionStorage["aqlite-resume"]), undefined);
        await page.locator("#queries [role=tab]").first().click();
        await expect(page.locator(".cm-content")).toHaveText(COUNT);
        // The choice is stored for the next visit, and overrides the languages of the browser.
        await page.reload();
        await ready(page);
        await expect(page.locator("#tab-data")).toHaveText("Daten");
        await page.locator("#tab-patients").click();
        await speak(page, "sv");
        await expect(page.locator("#view-patients")).toBeVisible();
        await speak(page, "en");
        await settled(page);
        await expect(page.locator("#tab-data")).toHaveText("Data");
      },
      { viewport: { width, height: 844 } },
    ));

test("a change of the language keeps the server, which answers again", () =>
  onPage(async (page) => {
    await page.locator("#source").selectOption("own");
    await expect(page.locator("#state-text")).toContainText("7 patients");
    await run(page, COUNT);
    assert.deepEqual(await row(page, 0), ["7"]);
    await speak(page, "de");
    await expect(page.locator("#source")).toHaveValue("own");
    await expect(page.locator("#state-text")).toContainText("7 Patienten");
    await expect(page.locator("[role=gridcell]").first()).toHaveText("7");
  }));

test("a token is not stored: the dialog asks for it after a change of the language", () =>
  onPage(async (page) => {
    token = "secret-token";
    try {
      const base = `${server.address.replace(/\/$/, "")}/v1`;
      await page.locator("#source").selectOption("other");
      await page.locator("#server-base").fill(base);
      await page.locator("#server-token").fill(token);
      await page.locator("#server-form .primary").click();
      await expect(page.locator("#state-text")).toContainText("7 patients");
      const stored = page
        .waitForEvent("framenavigated")
        .then(() =>
          page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }])),
        );
      await speak(page, "sv");
      assert.ok(!(await stored).includes(token));
      await expect(page.locator("#server-base")).toHaveValue(base);
      await expect(page.locator("#server[open] h2")).toHaveText("Fråga en annan server");
      await page.locator("#server-token").fill(token);
      await page.locator("#server-form .primary").click();
      await expect(page.locator("#state-text")).toContainText("7 patienter");
    } finally {
      token = undefined;
    }
  }));

test("values in forms are lost only after a confirmation", () =>
  onPage(async (page) => {
    await page.locator("#tab-guide").click();
    await page.locator("#guide-form-tab").click();
    await page.locator("#guide-form input").first().fill("120");
    await page.locator("#language").selectOption("de");
    await expect(page.locator("dialog.removal h2")).toHaveText("Change the language?");
    await page.locator("dialog.removal button", { hasText: "Keep the forms" }).click();
    await expect(page.locator("#language")).toHaveValue("en");
    await expect(page.locator("#guide-form input").first()).toHaveValue("120");
    await page.locator("#language").selectOption("de");
    await page.locator("dialog.removal .primary").click();
    await expect(page.locator("#tab-guide")).toHaveText("Leitlinien");
  }));

test("texts of the core are marked as English, errors of the page are translated", () =>
  onPage(
    async (page) => {
      await write(page, "SELECT o/dta FROM EHR e CONTAINS OBSERVATION o");
      const problem = page.locator("#problems .link");
      await expect(problem).toHaveText(/^Zeile 1, Spalte 10: dta is not an attribute/);
      await expect(problem.locator("[lang=en]")).toHaveText(/^dta is not/);
      await page.locator("#tab-data").click();
      await page.locator("#set-name").fill("Sample patients");
      await page.locator("#set-new").click();
      await expect(page.locator(".bad", { hasText: "Sample patients" })).toHaveText(
        "einen Datensatz `Sample patients` gibt es schon: wählen Sie einen anderen Namen",
      );
      await page.locator("#files").setInputFiles({
        ...{ name: "broken.json", mimeType: "application/json", buffer: Buffer.from('{"a": }') },
      });
      await expect(page.locator("#added")).toContainText("das ist kein JSON");
      await expect(page.locator("#added")).toContainText("1 Datei abgelehnt");
    },
    { locale: "de-DE" },
  ));

test("the first load in English reads no other language", () =>
  onPage(async (page) => {
    const loaded = () =>
      page.evaluate(() =>
        performance.getEntriesByType("resource").filter(({ name, initiatorType }) => {
          return /\/texts-/.test(name) && initiatorType !== "fetch";
        }),
      );
    assert.deepEqual(await loaded(), []);
    await speak(page, "de");
    assert.equal((await loaded()).length > 0, true);
  }));
