// The page in a real browser, used as a person uses it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { strToU8, zipSync } from "fflate";
import {
  accessible,
  answered,
  built,
  caller,
  expect,
  hosted,
  inspect,
  offlineReady,
  open,
  ready,
  row,
  run,
  scratch,
  settled,
  trap,
  write,
} from "./page.mjs";
import { serve } from "./server.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";

const site = hosted();

const onPage = (use, options) => site.visit(use, options);

test("the first visit shows the answer to a query over sample patients", () =>
  onPage(async (page) => {
    await expect(page.locator("#summary")).toHaveText(/^[1-9]\d* rows? · 4 columns/);
    await expect(page.locator("#state-text")).toHaveText(
      /^[1-9]\d* patients · [1-9]\d* compositions$/,
    );
  }));

test("a typed query runs by keyboard and shows its row", () =>
  onPage(async (page) => {
    await run(page, COUNT);
    await expect(page.locator("#summary")).toHaveText(/^1 row · /);
    const [count] = await row(page, 0);
    assert.ok(Number(count) > 10, count);
  }));

test("every example returns rows, and is marked while it is in the editor", () =>
  onPage(async (page) => {
    const examples = page.locator("#examples button");
    for (let at = 0; at < (await examples.count()); at += 1) {
      const title = await examples.nth(at).locator("strong").textContent();
      await examples.nth(at).click();
      await answered(page);
      await expect(page.locator("#summary"), title).toHaveText(/^[1-9]/);
      await expect(examples.nth(at), title).toHaveAttribute("aria-current", "true");
    }
  }));

test("an error is underlined at its position and explained with a remedy", () =>
  onPage(async (page) => {
    await write(page, "SELECT o/dta AS x FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o");
    await page.locator(".cm-lintRange-error").waitFor();
    await expect(page.locator(".cm-lintRange-error").first()).toContainText("dta");
    await expect(page.locator("#problems")).toHaveText(/line 1, column \d+: .*dta/);
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.locator("#result .problem-list").waitFor();
    await expect(page.locator("#result .problem-list")).toHaveText(/data/);
  }));

for (const width of [390, 1440])
  test(`completion proposes template ids, codes, units and whole archetypes: ${width}`, () =>
    onPage(
      async (page) => {
        const list = page.locator(".cm-tooltip-autocomplete");
        const text = page.locator(".cm-content");
        const id = "c/archetype_details/template_id/value";
        await write(page, `SELECT c FROM EHR e CONTAINS COMPOSITION c WHERE ${id} = `);
        // The editor closes the quote by itself.
        await page.keyboard.type("'");
        await expect(list.locator("li")).toHaveCount(3);
        await expect(list).toContainText("sample.vital_signs.v1");
        await page.keyboard.type("vital");
        await expect(list.locator("li")).toHaveCount(1);
        await list.locator("li").click();
        await expect(text).toContainText("value = 'sample.vital_signs.v1'");
        // After the closing quote of a value, completion proposes nothing unless requested.
        await expect(list).toHaveCount(0);
        await page.keyboard.press("ControlOrMeta+Enter");
        await answered(page);
        await expect(page.locator("#summary")).toHaveText(/^\d\d+ rows/);

        await write(page, "SELECT e FROM EHR e CONTAINS blo");
        await page.keyboard.type("od");
        await list.locator("li", { hasText: "Blood pressure" }).click();
        const pressure = "OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";
        await expect(text).toHaveText(`SELECT e FROM EHR e CONTAINS ${pressure}`);

        const value = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value";
        await write(page, `SELECT o FROM EHR e CONTAINS ${pressure} WHERE ${value}/units = `);
        await page.keyboard.type("'");
        await expect(list).toContainText("mm[Hg]");
        await accessible(page, "completions");
        const cuff = "o/protocol[at0011]/items[at0013]/value/defining_code/code_string";
        await write(page, `SELECT o FROM EHR e CONTAINS ${pressure} WHERE ${cuff} = `);
        await page.keyboard.type("'");
        await expect(list.locator("li").first()).toHaveText(/^at\d+ \w+/);
      },
      { viewport: { width, height: 900 } },
    ));

test("completion proposes clinical names and works by keyboard", () =>
  onPage(async (page) => {
    await write(
      page,
      "SELECT o/dat FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]",
    );
    await page.keyboard.press("Control+Home");
    for (let step = 0; step < "SELECT o/".length; step += 1)
      await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Control+Space");
    await page.locator(".cm-tooltip-autocomplete", { hasText: "Systolic" }).waitFor();
    await page.keyboard.type("dat");
    await page.locator(".cm-tooltip-autocomplete li[aria-selected]", { hasText: "data" }).waitFor();
  }));

test("the list of completions closes when the word is complete", () =>
  onPage(async (page) => {
    const list = page.locator(".cm-tooltip-autocomplete");
    await write(page, "SELECT e/ehr_id/value FROM EHR e ");
    await page.keyboard.type("LIMI");
    await list.locator("li", { hasText: "LIMIT" }).waitFor();
    await page.keyboard.type("T");
    await expect(list).toHaveCount(0);
  }));

test("hovering explains a word", () =>
  onPage(async (page) => {
    await page.locator(".cm-line span", { hasText: "at0004" }).first().hover();
    await page.locator(".cm-meaning", { hasText: "Systolic" }).waitFor();
  }));

test("added files are reported and stay after a reload", () =>
  onPage(async (page) => {
    await page.click("#tab-data");
    await page.locator("#target option").first().waitFor({ state: "attached" });
    const ehr = await page.locator("#target option").nth(1).getAttribute("value");
    await page.selectOption("#target", ehr);
    await page.click("#tab-query");
    await run(page, `SELECT c FROM EHR e[ehr_id/value='${ehr}'] CONTAINS COMPOSITION c LIMIT 1`);
    await page.click("#as-json");
    const composition = JSON.parse(await page.locator("#result .raw").textContent()).rows[0][0];
    delete composition.uid;
    const count = `SELECT COUNT(c/uid/value) AS n FROM EHR e[ehr_id/value='${ehr}'] CONTAINS COMPOSITION c`;
    await page.click("#as-table");
    await run(page, count);
    const before = Number((await row(page, 0))[0]);
    await page.click("#tab-data");
    await page.locator("#files").setInputFiles([
      {
        name: "visit.json",
        mimeType: "application/json",
        buffer: Buffer.from(JSON.stringify(composition)),
      },
      { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no document") },
    ]);
    await page.locator("#added .good", { hasText: "visit.json" }).waitFor();
    await page.locator("#added .bad", { hasText: "notes.txt: expected a template" }).waitFor();
    await settled(page);
    await page.reload();
    await ready(page);
    await page.click("#tab-query");
    await run(page, count);
    assert.equal(Number((await row(page, 0))[0]), before + 1);
  }));

test("an archive is unpacked, each file is reported, and all can be undone", () =>
  onPage(async (page) => {
    const total = async () =>
      Number((await page.locator(".facts dd").nth(1).textContent()).replaceAll(",", ""));
    await run(page, "SELECT c FROM EHR e CONTAINS COMPOSITION c LIMIT 1");
    await page.click("#as-json");
    const composition = JSON.parse(await page.locator("#result .raw").textContent()).rows[0][0];
    await page.click("#tab-data");
    const before = await total();
    const documents = Array.from({ length: 3 }, (_, at) => [
      `visits/${at}.json`,
      strToU8(JSON.stringify({ ...composition, uid: undefined })),
    ]);
    const archive = zipSync({
      ...Object.fromEntries(documents),
      "visits/broken.json": strToU8('{"_type":"COMPOSITION"'),
      "__MACOSX/visits/0.json": strToU8(""),
    });
    await page.selectOption("#target", { label: "A new patient" });
    await page
      .locator("#files")
      .setInputFiles([
        { name: "records.zip", mimeType: "application/zip", buffer: Buffer.from(archive) },
      ]);
    await page.locator("#added", { hasText: "3 of 4 files added" }).waitFor();
    await expect(page.locator("#added .bad")).toHaveText(
      /records\.zip\/visits\/broken\.json: .*line 1/,
    );
    await page.locator("#state[data-state=ready]").waitFor();
    assert.equal(await total(), before + 3);
    await page.click("#undo");
    await settled(page);
    assert.equal(await total(), before);
    await page.reload();
    await ready(page);
    await page.click("#tab-data");
    assert.equal(await total(), before);
  }));

test("a data set survives export and import", () =>
  onPage(async (page) => {
    const whole = await page.locator("#state-text").textContent();
    await page.click("#tab-data");
    const [file] = await Promise.all([page.waitForEvent("download"), page.click("#export")]);
    assert.equal(file.suggestedFilename(), "sample-patients.ndjson");
    const exported = await readFile(await file.path());
    await page.fill("#set-name", "Ward 7");
    await page.click("#set-new");
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(/^0 patients/);
    await page
      .locator("#files")
      .setInputFiles([{ name: "ward.ndjson", mimeType: "application/x-ndjson", buffer: exported }]);
    await page.locator("#added", { hasText: "1 of 1 files added" }).waitFor();
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(whole);
    const altered = exported.toString().replace("Systolic", "Diastolic");
    await page
      .locator("#files")
      .setInputFiles([
        { name: "altered.ndjson", mimeType: "application/x-ndjson", buffer: Buffer.from(altered) },
      ]);
    await page.locator("#added .bad", { hasText: "altered on its way" }).waitFor();
  }));

test("an empty data set accepts a document of a new patient; data sets are named, opened and removed", () =>
  onPage(async (page) => {
    await run(
      page,
      "SELECT c FROM EHR e CONTAINS COMPOSITION c WHERE c/archetype_details/template_id/value = 'sample.vital_signs.v1' LIMIT 1",
    );
    await page.click("#as-json");
    const composition = JSON.parse(await page.locator("#result .raw").textContent()).rows[0][0];
    delete composition.uid;
    await offlineReady(page);
    const template = await page.evaluate(async () => {
      const answer = await fetch("local/v1/definition/template/sample.vital_signs.v1/1");
      if (!answer.ok) throw new Error(`the template: status ${answer.status}`);
      return answer.text();
    });
    await page.click("#tab-data");
    const says = async (words) => {
      await settled(page);
      // After a removal the sets are drawn again. Meanwhile the page shows that it is loading.
      await page.locator("#state-text", { hasText: words }).waitFor();
    };
    // The test does not wait for the page, because the engine executes calls in their order.
    await page.fill("#set-name", "Ward 7");
    await page.click("#set-new");
    await page.selectOption("#target", { label: "A new patient" });
    await page.locator("#files").setInputFiles([
      {
        name: "visit.json",
        mimeType: "application/json",
        buffer: Buffer.from(JSON.stringify(composition)),
      },
      { name: "vital_signs.opt", mimeType: "application/xml", buffer: Buffer.from(template) },
    ]);
    await page.locator("#added", { hasText: "2 of 2 files added" }).waitFor();
    await says(/^1 patient · 1 composition$/);
    await page.getByLabel("Name of Ward 7").fill("Ward 8");
    await page.getByLabel("Name of Ward 7").press("Enter");
    await page.click("[aria-label='Open Sample patients']");
    await says(/^3\d patients/);
    await page.click("[aria-label='Remove Ward 8']");
    await page.locator("dialog[open]").getByRole("button", { name: "Remove" }).click();
    await says(/^3\d patients/);
    await expect(page.locator(".sets li")).toHaveCount(1);
  }));

test("creating many patients shows progress and can be cancelled", () =>
  onPage(async (page) => {
    const before = await page.locator("#state-text").textContent();
    await page.click("#tab-data");
    await page.fill("#ehrs", "100000");
    await page.fill("#compositions", "1000000");
    await page.click("#generate");
    await page
      .locator(".work-words", { hasText: /Making patients: [\d,]+ of 1,000,000 · [\d,]+\/s/ })
      .first()
      .waitFor();
    await page.locator("form .work-bar button").first().click();
    await page.locator("#added", { hasText: "Cancelled" }).waitFor();
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(before);
  }));

test("parameters have fields below the query", () =>
  onPage(async (page) => {
    await write(page, "SELECT e/ehr_id/value AS ehr FROM EHR e WHERE e/ehr_id/value = $which");
    await page.locator("#parameters input[name=which]").fill("unknown");
    await page.click("#run");
    await page.locator("#result h3", { hasText: "No rows" }).waitFor();
    // An unquoted number is compared as a number. As a text, 90 would be greater than 140.
    const magnitude = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
    await write(
      page,
      `SELECT ${magnitude} AS systolic FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE ${magnitude} >= $least`,
    );
    await page.locator("#parameters input[name=least]").fill("140");
    await page.click("#run");
    await answered(page);
    const shown = await page.locator("[role=gridcell]").allTextContents();
    assert.ok(shown.length > 0 && shown.every((text) => Number(text) >= 140), shown.join());
  }));

test("the grid is navigated by keyboard and opens objects", () =>
  onPage(async (page) => {
    await run(
      page,
      "SELECT c/context/start_time/value AS time, c AS document FROM EHR e CONTAINS COMPOSITION c",
    );
    const grid = page.locator("[role=grid]");
    const rows = Number(await grid.getAttribute("aria-rowcount"));
    assert.ok(rows > 100);
    const drawn = await page.locator("[role=row]").count();
    assert.ok(drawn < 80, `only rows on screen exist, not ${drawn}`);
    await page.locator("[role=gridcell]").first().click();
    await page.keyboard.press("Control+End");
    const last = page.locator("[role=gridcell]:focus");
    await expect(last).toHaveAttribute("data-row", String(rows - 2));
    await expect(last).toHaveAttribute("data-column", "1");
    await page.keyboard.press("Enter");
    await page.locator("#detail .t-type", { hasText: "COMPOSITION" }).first().waitFor();
    await page.keyboard.press("Escape");
    await expect(page.locator("#detail")).toBeHidden();
    await expect(page.locator("[role=gridcell]:focus")).toHaveAttribute(
      "data-row",
      String(rows - 2),
    );
  }));

test("results are saved as CSV and JSON with their digits", () =>
  onPage(async (page) => {
    await run(
      page,
      "SELECT o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]",
    );
    const shown = (await row(page, 0))[0];
    const saved = async (button) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
      return readFile(await download.path(), "utf8");
    };
    const csv = await saved("#csv");
    assert.deepEqual(csv.split("\r\n").slice(0, 2), ["systolic", shown]);
    assert.equal((await saved("#ndjson")).split("\n")[0], `{"systolic":${shown}}`);
    const json = await saved("#json");
    assert.ok(json.includes(`"rows":[[${shown}]`), json.slice(0, 200));
  }));

test("results are saved as tables of Arrow and Parquet", () =>
  onPage(async (page) => {
    await run(
      page,
      "SELECT o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]",
    );
    const saved = async (button) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
      return [download.suggestedFilename(), await readFile(await download.path())];
    };
    const [arrows, stream] = await saved("#arrow");
    assert.equal(arrows, "result.arrows");
    // The continuation marker of an Arrow message, and the name of the column in the schema.
    assert.equal(stream.readUInt32LE(0), 0xffffffff);
    assert.ok(stream.includes("systolic") && stream.includes("SELECT o/data"));
    const [parquet, file] = await saved("#parquet");
    assert.equal(parquet, "result.parquet");
    assert.equal(
      file.toString("latin1", 0, 4) + file.toString("latin1", file.length - 4),
      "PAR1PAR1",
    );
    assert.ok(file.includes("systolic"));
  }));

test("numbers are drawn over time and as a distribution, with a description", () =>
  onPage(async (page) => {
    await page.click("#as-chart");
    await page.locator("#chart-words", { hasText: /systolic: \d+ values.*median/ }).waitFor();
    await expect(page.locator(".chart-frame canvas")).toHaveCount(1);
    await page.selectOption("#chart-x", { label: "as distribution" });
    await page.getByRole("checkbox", { name: "diastolic" }).check();
    await page.locator("#chart-words", { hasText: /^diastolic/ }).waitFor();
    const drawn = await page.locator(".chart-frame canvas").evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.some((part) => part > 0);
    });
    assert.ok(drawn, "the canvas is empty");
    await run(page, "SELECT e/ehr_id/value AS ehr FROM EHR e");
    await page.locator("#result h3", { hasText: "Nothing to draw" }).waitFor();
  }));

test("a query is explained step by step with the data of its run, and an invalid query up to its error", () =>
  onPage(async (page) => {
    await run(page, COUNT);
    await page.locator("#as-explain").click();
    const explanation = page.locator(".explanation");
    await explanation.locator("dt:text-is('Rows') + dd", { hasText: "1" }).waitFor();
    await expect(explanation.locator("dt:text-is('Patients') + dd")).toHaveText(/^3[2-9]$/);
    await explanation.locator("summary", { hasText: "Tokens" }).click();
    await explanation.locator(".token", { hasText: "ehr_id" }).click();
    await page.keyboard.insertText("system_id");
    await expect(page.locator(".cm-content")).toHaveText(COUNT.replace("ehr_id", "system_id"));
    await write(page, "SELECT e/nothing FROM EHR e");
    await page.keyboard.press("ControlOrMeta+Enter");
    await explanation.locator(".problem-list", { hasText: "nothing" }).waitFor();
    await expect(explanation.getByText("It was not run")).toHaveCount(1);
    await page.locator("#as-table").click();
    await page.locator("#result", { hasText: "The query has a problem" }).waitFor();
  }));

test("a template is a tree of names, units and codes; a node becomes a query", () =>
  onPage(async (page) => {
    await page.locator("#tab-templates").click();
    await page.locator("#template").selectOption("sample.vital_signs.v1");
    await page.locator("#template-search").fill("systolic");
    const found = page.locator(".node-found").first();
    await expect(found).toHaveText(/Blood pressure.*Systolic DV_QUANTITY · mm\[Hg\]/);
    await page.locator("#template-language").selectOption("de");
    await page.locator("#template-search").fill("systolisch");
    await page
      .getByRole("button", { name: /^Query Systolisch/ })
      .first()
      .click();
    await answered(page);
    await expect(page.locator("#summary")).toHaveText(/100 rows · 3 columns/);
    const [, time, systolic] = await row(page, 0);
    assert.match(time, /^20\d\d-/);
    assert.ok(Number(systolic) > 50, systolic);
  }));

test("a cell is marked in its document", () =>
  onPage(async (page) => {
    await run(
      page,
      "SELECT o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude > 0",
    );
    const [systolic] = await row(page, 0);
    await page.locator('[role=gridcell][data-row="0"]').first().click();
    await page.keyboard.press("Enter");
    await page.locator("#detail-where").click();
    const marked = page.locator(".paper .marked");
    await marked.first().waitFor();
    await expect(marked.first()).toHaveText(new RegExp(`^S.*${systolic}`));
    await page.locator("#detail-close").click();
    await run(page, COUNT);
    await page.locator("[role=gridcell]").first().click();
    await page.keyboard.press("Enter");
    await page.locator("#detail-where").click();
    await page.locator("#detail-body", { hasText: "belongs to no single document" }).waitFor();
  }));

test("no document is shown for a row that has moved", () =>
  onPage(async (page) => {
    const q =
      "SELECT c/uid/value AS uid, c/context/start_time/value AS time FROM EHR e CONTAINS COMPOSITION c ORDER BY time DESC LIMIT 3";
    await run(page, q);
    const call = await caller(page);
    const asked = { q: q.replace("c/uid/value AS uid", "c, e/ehr_id/value"), parameters: {} };
    const { text } = await call("query", { ...asked, from: null });
    const [{ uid: _, ...document }, ehr, time] = JSON.parse(text).rows[0];
    document.context.start_time.value = time.replace(/^\d+/, (year) => String(Number(year) + 1));
    await call("add", { name: "later.json", text: JSON.stringify(document), ehr });
    await page.locator('[role=gridcell][data-row="0"]').first().click();
    await page.locator("#detail-where").click();
    await expect(page.locator("#detail-body")).toHaveText(/not those of this result any more/);
    await page.click("#run");
    await answered(page);
    await page.locator('[role=gridcell][data-row="0"]').first().click();
    await page.locator("#detail-where").click();
    await page.locator("#detail-body .paper").waitFor();
  }));

test("executed queries are listed, and saved queries stay under their names", () =>
  onPage(async (page) => {
    await run(page, COUNT);
    await page.click("#recent summary");
    await page.locator("#recent .example", { hasText: "COUNT" }).waitFor();
    await page.click("#keep");
    await page.fill("#naming-name", "How many");
    await page.locator("#naming-form .primary").click();
    await page.reload();
    await ready(page);
    await run(page, "SELECT e/ehr_id/value AS ehr FROM EHR e LIMIT 2");
    await page.click("#saved summary");
    await page.locator("#saved .example", { hasText: "How many" }).click();
    await answered(page);
    await expect(page.locator("#summary")).toHaveText(/^1 row · 1 column/);
    await page.getByRole("button", { name: "Forget How many" }).click();
    await expect(page.locator("#saved .example")).toHaveCount(0);
    await page.locator("#saved").getByRole("button", { name: "Undo" }).click();
    await expect(page.locator("#saved .example strong")).toHaveText(["How many"]);
  }));

test("a query is copied as a program", () =>
  onPage(
    async (page) => {
      await run(page, COUNT);
      // The message is visible for a moment only, so every text is recorded.
      await page.evaluate(() => {
        const menu = document.querySelector("#copy-as");
        new MutationObserver(
          () => (menu.dataset.said = `${menu.dataset.said ?? ""} ${menu.options[0].textContent}`),
        ).observe(menu, { childList: true, subtree: true, characterData: true });
      });
      await page.locator("#copy-as").selectOption("curl");
      await page.locator("#copy-as[data-said*=Copied]").waitFor();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(copied, /^# .*\n# .*\ncurl -s http:.*\/v1\/query\/aql .*COUNT/);
    },
    { permissions: ["clipboard-read", "clipboard-write"] },
  ));

test("an unreachable server is reported, and the data of this browser stay selected", async () => {
  const page = await open(site.browser, site.address);
  await ready(page);
  await page.locator("#source").selectOption("other");
  await page.fill("#server-base", "http://127.0.0.1:9/v1");
  await page.locator("#server-form .primary").click();
  await page
    .locator("#notice", {
      hasText: "The server at 127.0.0.1:9 was not reached. The data of this browser still answers.",
    })
    .waitFor();
  await expect(page.locator("#source")).toHaveValue("here");
  await run(page, COUNT);
  assert.ok(Number((await row(page, 0))[0]) > 10);
  await page.context().close();
});

test("a new version is offered and activated on request", async (t) => {
  if (process.env.BASE_URL) return t.skip("the server is not ours to change");
  const copy = await scratch("page");
  await cp(built, copy, { recursive: true });
  const own = await serve(copy);
  const page = await open(site.browser, own.address);
  await ready(page);
  await offlineReady(page);
  const worker = join(copy, "sw.js");
  await writeFile(worker, `${await readFile(worker, "utf8")}\n// newer`);
  await page.reload();
  await ready(page);
  await page.locator("#notice", { hasText: "A new version is ready" }).waitFor();
  await Promise.all([page.waitForEvent("load"), page.click("#update")]);
  await ready(page);
  await expect(page.locator("#notice")).toBeHidden();
  await page.context().close();
  await own.stop();
});

test("a guide runs on a patient and shows the rules that fired", () =>
  onPage(async (page) => {
    await page.click("#tab-guide");
    const patients = await page.locator("#patient option").count();
    let fired = 0;
    for (let at = 0; at < Math.min(patients, 12) && fired === 0; at += 1) {
      await page.locator("#patient").selectOption({ index: at });
      await page.click("#run-guide");
      await page
        .locator("#guide-outcome:not([aria-busy]) .summary", { hasText: /rules? fired/ })
        .waitFor();
      fired = await page.locator("#guide-outcome .mark.fired").count();
    }
    assert.ok(fired > 0, "no rule fired for any patient");
    await page.locator("#guide-outcome .output").first().waitFor({ state: "attached" });
    await page.locator("#guide-outcome .asked").first().waitFor({ state: "attached" });
    const other = page.locator("#guide-outcome .rules details", { hasText: "not fired" }).first();
    await other.locator("summary").click();
    await expect(other.locator("ul")).toHaveText(/false|unknown/);
  }));

test("equal numbers create equal sample patients", () =>
  onPage(async (page) => {
    const make = async (ehrs, compositions, seed) => {
      await page.click("#tab-data");
      await page.fill("#ehrs", String(ehrs));
      await page.fill("#compositions", String(compositions));
      await page.fill("#seed", String(seed));
      await page.click("#generate");
      await settled(page);
      await page.click("#tab-query");
      await run(page, "SELECT e/ehr_id/value AS ehr FROM EHR e ORDER BY ehr");
      return page.locator("[role=gridcell]").first().textContent();
    };
    const first = await make(12, 60, 7);
    assert.notEqual(await make(12, 60, 8), first);
    assert.equal(await make(12, 60, 7), first);
  }));

test("an internal error is reported, and the engine is restarted", async () => {
  const page = await open(site.browser, site.address);
  await ready(page);
  await trap(page.workers()[0]);
  await page.click("#run");
  await page.locator("#notice", { hasText: "started again with the same data" }).waitFor();
  await settled(page);
  await run(page, COUNT);
  assert.ok(Number((await row(page, 0))[0]) > 10);
  await page.context().close();
});

test("the page is accessible: axe finds nothing, and nothing overflows", () =>
  onPage(async (page) => {
    await inspect(page, "query");
    await page.click("#as-chart");
    await page.locator("#chart-words", { hasText: "median" }).waitFor();
    await inspect(page, "chart");
    await page.click("#as-explain");
    await page.locator(".explanation").waitFor();
    await inspect(page, "explanation");
    await page.click("#as-table");
    await page.click("#keep");
    await inspect(page, "naming");
    await page.click("#naming-cancel");
    await page.locator("#source").selectOption("other");
    await inspect(page, "server");
    await page.click("#server-cancel");
    await page.locator("#examples button", { hasText: "Whole objects" }).click();
    await answered(page);
    await page.locator(".g-cell.object").first().click();
    await inspect(page, "object");
    await page.click("#detail-where");
    await page.locator(".paper").waitFor();
    await inspect(page, "document");
    await page.click("#tab-templates");
    await page.locator("#template-tree details").first().waitFor();
    await inspect(page, "templates");
    await page.locator("#template-search").fill("a");
    await inspect(page, "templates, search");
    await page.click("#template-form-tab");
    await page.locator("#template-form .form-field").first().waitFor();
    await inspect(page, "form");
    await page.click("#tab-query");
    await page.click("#tab-guide");
    await page.click("#run-guide");
    await page.locator("#guide-outcome:not([aria-busy]) .summary").waitFor();
    await inspect(page, "guide");
    await page.click("#tab-data");
    await inspect(page, "data");
    await page.click("#help");
    await inspect(page, "keys");
  }));

test("the page fits a phone: nothing is wider than the screen", () =>
  onPage(
    async (page) => {
      for (const tab of ["query", "templates", "guide", "data"]) {
        await page.click(`#tab-${tab}`);
        assert.ok(
          await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth),
          tab,
        );
      }
    },
    { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
  ));

const OTHER_VERSION =
  "SELECT o FROM EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v1]";

for (const width of [390, 1440])
  test(`a warning of lint is corrected by one click, ${width} pixels wide`, () =>
    onPage(
      async (page) => {
        await write(page, OTHER_VERSION);
        await page.locator(".cm-lintRange-warning").waitFor();
        await expect(page.locator(".cm-lintRange-warning")).toHaveText(/blood_pressure\.v1/);
        const fix = page.locator("#problems .fix");
        await expect(fix).toHaveText("Change to openEHR-EHR-OBSERVATION.blood_pressure.v2");
        await accessible(page, "a warning with its change");
        await fix.click();
        await expect(page.locator(".cm-content")).toContainText("blood_pressure.v2]");
        await expect(page.locator("#problems")).toHaveText("");
        await expect(page.locator(".cm-lintRange-warning")).toHaveCount(0);
      },
      { viewport: { width, height: 900 } },
    ));

test("the tooltip of a warning has a button that corrects it", () =>
  onPage(async (page) => {
    await write(page, OTHER_VERSION);
    await page.locator(".cm-lintRange-warning").waitFor();
    await page.locator(".cm-lintRange-warning").hover();
    await page.locator(".cm-diagnosticAction").click();
    await expect(page.locator(".cm-content")).toContainText("blood_pressure.v2]");
  }));

test("a form of a template shows problems at its fields, is saved and queried", () =>
  onPage(async (page) => {
    await page.click("#tab-templates");
    await page
      .locator("#template option", { hasText: "vital_signs" })
      .waitFor({ state: "attached" });
    await page.selectOption("#template", {
      label: await page.locator("#template option", { hasText: "vital_signs" }).textContent(),
    });
    await page.click("#template-form-tab");
    const group = (within, name) => within.locator(`details:has(> summary:text("${name}"))`);
    const field = (within, name) =>
      within.locator(`.form-field:has(> label:text("${name}"))`).first();
    const temperature = group(page.locator("#template-form"), "Body temperature");
    await temperature.locator("> summary").click();
    const event = group(temperature, "Any event");
    await event.locator("> summary").click();
    await field(event.first(), "Comment").locator("input").fill("felt warm");
    await temperature.getByRole("button", { name: "Another Any event" }).click();
    await event.nth(1).locator("> summary").click();
    await field(event.nth(1), "Comment").locator("input").fill("felt cold");
    // In another language the form keeps the entered values.
    await page.selectOption("#template-language", "de");
    await group(page.locator("#template-form"), "Körpertemperatur").waitFor();
    const comments = () =>
      page
        .locator("#template-form .form-field input")
        .evaluateAll((all) =>
          all.map(({ value }) => value).filter((value) => value.startsWith("felt")),
        );
    assert.deepEqual(await comments(), ["felt warm", "felt cold"]);
    // The values also stay if another language is chosen before the form is drawn.
    await page.locator("#template-language").evaluate((select) => {
      for (const language of ["en", "de", "en"]) {
        select.value = language;
        select.dispatchEvent(new Event("change"));
      }
    });
    await temperature.waitFor();
    assert.deepEqual(await comments(), ["felt warm", "felt cold"]);
    await field(event.nth(1), "Comment").locator("input").fill("");
    await page.click("#form-save");
    await page
      .locator("#form-outcome .bad", { hasText: "Not saved: one field has a problem" })
      .waitFor();
    const value = field(event.first(), "Temperature");
    await value.locator(".wrong").waitFor();
    await expect(value.locator("[aria-invalid]")).toHaveCount(1);
    await value.locator("input").first().fill("37.2");
    const unit = value.locator("select");
    if ((await unit.count()) > 0) await unit.selectOption({ index: 1 });
    await page.click("#form-save");
    await page.locator("#form-outcome .good", { hasText: "Saved as" }).waitFor();
    await settled(page);
    await expect(page.locator("#template-form .wrong")).toHaveCount(0);
    const uid = (await page.locator("#form-outcome .good").textContent()).replace("Saved as ", "");
    await page.click("#tab-query");
    await run(
      page,
      `SELECT o/data[at0002]/events[at0003]/data[at0001]/items[at0004]/value/magnitude AS temperature FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.body_temperature.v2] WHERE c/uid/value = '${uid}'`,
    );
    assert.deepEqual(await row(page, 0), ["37.2"]);
  }));

test("a form is stored once, and goes to no other patient if the chosen one is gone", () =>
  onPage(async (page) => {
    await page.evaluate(() => {
      const { postMessage } = Worker.prototype;
      window.saved = [];
      Worker.prototype.postMessage = function (message) {
        if (message.call === "addFlat") window.saved.push(message.argument.ehr);
        postMessage.call(this, message);
      };
    });
    await page.click("#tab-templates");
    await page.click("#template-form-tab");
    await page.selectOption("#form-patient", { index: 2 });
    const chosen = await page.locator("#form-patient").inputValue();
    const save = page.locator("#form-save");
    await save.evaluate((button) => [button.click(), button.click()]);
    await page.locator("#form-outcome p").first().waitFor();
    assert.deepEqual(await page.evaluate(() => window.saved), [chosen]);
    await expect(save).toBeEnabled();
    await page.click("#tab-data");
    await page.fill("#seed", "2");
    await page.click("#generate");
    await settled(page);
    await page.click("#tab-templates");
    await expect(page.locator("#form-patient option:checked")).toHaveText("Choose…");
    await save.click();
    await expect(page.locator("#form-patient")).toBeFocused();
    assert.deepEqual(await page.evaluate(() => window.saved), [chosen]);
    await page.selectOption("#form-patient", { index: 3 });
    await save.click();
    await expect.poll(() => page.evaluate(() => window.saved.length)).toBe(2);
    await settled(page);
    await expect(page.locator("#form-patient option", { hasText: "Choose…" })).toHaveCount(0);
  }));

test("the documents behind a result are saved as FLAT", () =>
  onPage(async (page) => {
    const systolic = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
    await run(
      page,
      `SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] WHERE ${systolic} > 0 LIMIT 3`,
    );
    // A document with several measurements is saved once.
    const documents = new Set([
      (await row(page, 0))[0],
      (await row(page, 1))[0],
      (await row(page, 2))[0],
    ]).size;
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.selectOption("#save-documents", "FLAT"),
    ]);
    assert.equal(download.suggestedFilename(), "documents.flat.ndjson");
    const lines = (await readFile(await download.path(), "utf8")).trim().split("\n");
    assert.equal(lines.length, documents);
    assert.ok(
      Object.keys(JSON.parse(lines[0])).some((key) => key.endsWith("/systolic|magnitude")),
      lines[0].slice(0, 300),
    );
  }));
