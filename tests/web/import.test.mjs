// Files that a user adds: simplified formats, problems grouped by rule, the choice of patients, and
// adding compositions in spite of problems.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { strToU8, zipSync } from "fflate";
import { serve } from "./server.mjs";
import {
  accessible,
  built,
  caller,
  expect,
  hosted,
  offlineReady,
  settled,
  visit,
} from "./page.mjs";

const site = hosted();

const file = (name, content) => ({
  name,
  mimeType: "application/json",
  buffer: Buffer.from(typeof content === "string" ? content : JSON.stringify(content)),
});

const add = (page, ...files) => page.locator("#files").setInputFiles(files);

/** Returns a composition of the template of vital signs in a format. */
async function sample(page, format) {
  const call = await caller(page);
  const q =
    "SELECT c FROM EHR e CONTAINS COMPOSITION c WHERE c/archetype_details/template_id/value = 'sample.vital_signs.v1' LIMIT 1";
  const { identity } = await call("query", { q, parameters: {}, from: null });
  const { text } = await call("documents", { q, parameters: {}, identity, format });
  // Without uids, because the uid would be that of the stored composition.
  return JSON.parse(text, (key, value) =>
    key === "_uid" || key.endsWith("/_uid") || (key === "uid" && value._type) ? undefined : value,
  );
}

/** Opens the data view of a page with an additional empty patient list. */
const onData = (use, width, options = {}) =>
  site.visit(
    async (page) => {
      await offlineReady(page);
      await page.click("#tab-data");
      await use(page);
    },
    { viewport: { width, height: 900 }, ...options },
  );

const outcome = (page) => page.locator("#added");

test("compositions of another system or version are stored with a new uid, with their digits", () =>
  onData(async (page) => {
    const call = await caller(page);
    const text = JSON.stringify(await sample(page, "JSON"));
    const uid = (system, version) =>
      `"uid":{"_type":"OBJECT_VERSION_ID","value":"${randomUUID()}::${system}::${version}"}`;
    const of = (name, ...id) => file(name, text.replace("{", `{${uid(...id)},`));
    const stored = await sample(page, "JSON");
    await page.selectOption("#target", { label: "A new patient" });
    const digits = file(
      "digits.json",
      text
        .replace("{", `{${uid("other.example.org", 1)},`)
        .replace(/("magnitude":\d+)[\d.]*/, "$1.50"),
    );
    await add(page, digits, of("later.json", "aqlite.local", 3), file("good.json", stored));
    await expect(outcome(page)).toContainText("1 of 3 files added");
    await page.getByRole("button", { name: "Store 2 compositions with a new uid" }).click();
    await expect(outcome(page)).toContainText("2 of 2 files added");
    await settled(page);
    await expect(page.locator(".facts dd").nth(1)).toHaveText("231");
    const q = "SELECT c FROM EHR e CONTAINS COMPOSITION c ORDER BY c/uid/value";
    const answer = await call("query", { q, parameters: {}, from: null });
    assert.match(answer.text, /"magnitude":\d+\.50\D/);
    assert.doesNotMatch(answer.text, /other\.example\.org/);
    await page.click("#undo");
    await expect(page.locator(".facts dd").nth(1)).toHaveText("229");
  }, 1440));

test("a composition that is added again is not offered with a new uid", () =>
  onData(async (page) => {
    const call = await caller(page);
    const q = "SELECT c FROM EHR e CONTAINS COMPOSITION c LIMIT 1";
    const { text } = await call("query", { q, parameters: {}, from: null });
    await page.selectOption("#target", { label: "A new patient" });
    await add(page, file("again.json", JSON.parse(text).rows[0][0]));
    await expect(outcome(page)).toContainText("is in use");
    await expect(page.locator("#add-renewed")).toHaveCount(0);
  }, 1440));

/** Counts the web templates that the module returns from now on, in `self.webTemplates`. */
function countWebTemplates() {
  self.webTemplates = 0;
  const { decode } = TextDecoder.prototype;
  TextDecoder.prototype.decode = function (...given) {
    const text = decode.apply(this, given);
    if (text.includes('"aqlPath"')) self.webTemplates += 1;
    return text;
  };
}

test("the roots of templates are read once for all files that are refused", () =>
  onData(async (page) => {
    const [worker] = page.workers();
    await worker.evaluate(countWebTemplates);
    await page.selectOption("#target", { label: "A new patient" });
    const flat = JSON.stringify({ "nowhere/x": 1, "ctx/language": "en" });
    await add(page, ...["a.json", "b.json", "c.json"].map((name) => file(name, flat)));
    await expect(outcome(page)).toContainText("0 of 3 files added");
    await settled(page);
    assert.equal(await worker.evaluate(() => self.webTemplates), 3);
  }, 1440));

for (const width of [390, 1440]) {
  test(`FLAT and STRUCTURED documents are added, by the template with their root: ${width}`, () =>
    onData(async (page) => {
      const files = [];
      for (const format of ["FLAT", "STRUCTURED"])
        files.push(file(`sample.vital_signs.v1.${format}.json`, await sample(page, format)));
      await page.selectOption("#target", { label: "A new patient" });
      await add(page, ...files);
      await expect(outcome(page)).toContainText("2 of 2 files added");
      await settled(page);
      await expect(page.locator(".facts dd").nth(1)).toHaveText("230");
      await add(page, file("unknown.json", { "nowhere/x": 1, "ctx/language": "en" }));
      await expect(outcome(page)).toContainText("no template has the root `nowhere`");
    }, width));

  test(`problems are grouped by rule with counts and saved as a report; compositions are loaded with warnings: ${width}`, () =>
    onData(async (page) => {
      const good = await sample(page, "JSON");
      const bad = structuredClone(good);
      delete bad.composer;
      delete bad.language;
      const patients = await page.locator(".facts dd").first().textContent();
      await page.selectOption("#target", { label: "A new patient" });
      await add(page, file("a.json", bad), file("b.json", bad), file("c.json", bad));
      await expect(outcome(page)).toContainText("0 of 3 files added");
      await expect(outcome(page)).toContainText("3 files refused: nothing of them is stored.");
      const folds = outcome(page).locator(".fold");
      await expect(folds.first().locator("summary")).toHaveText(
        /^RM0201: .*, and 1 message like it 6 times in 3 files$/,
      );
      await settled(page);
      await expect(page.locator(".facts dd").first(), "no empty patient").toHaveText(patients);
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        page.click("#save-report"),
      ]);
      const report = (await readFile(await download.path(), "utf8")).trim().split("\r\n");
      assert.equal(report[0], "file,rule,path,problem");
      assert.ok(report.length >= 4 && /^[abc]\.json,/.test(report[1]), report[1]);
      if (process.env.SHOTS)
        await page.screenshot({
          path: join(process.env.SHOTS, `import-${width}.png`),
          fullPage: true,
        });
      await accessible(page, "refused");
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      await page.getByRole("button", { name: "Load 3 compositions with warnings" }).click();
      await expect(outcome(page)).toHaveText(/^3 of 3 compositions added with \d+ warnings/);
      await settled(page);
      await expect(page.locator(".facts dd").nth(1)).toHaveText("231");
      await page.click("#undo");
      await settled(page);
      await expect(page.locator(".facts dd").nth(1)).toHaveText("228");
      await expect(page.locator(".facts dd").first()).toHaveText(patients);
    }, width));

  test(`a folder, a file name or a subject determines the patient; a refused file leaves none: ${width}`, () =>
    onData(async (page) => {
      const good = await sample(page, "JSON");
      const before = Number(await page.locator(".facts dd").first().textContent());
      await page.selectOption("#target", "by file");
      await add(
        page,
        file("anna_1.json", good),
        file("anna_2.json", good),
        file("ben.json", good),
        file("clara.json", { "nowhere/x": 1 }),
      );
      await expect(outcome(page)).toContainText("3 of 4 files added");
      await settled(page);
      await expect(page.locator(".facts dd").first()).toHaveText(String(before + 2));
      await expect(page.locator("#target option", { hasText: "anna" })).toHaveCount(1);
      await add(page, file("anna_3.json", good));
      await expect(outcome(page)).toContainText("1 of 1 files added");
      await settled(page);
      await expect(page.locator(".facts dd").first(), "anna again").toHaveText(String(before + 2));
      await page.selectOption("#target", "by subject");
      const named = structuredClone(good);
      for (const entry of named.content)
        if (entry.subject) entry.subject.external_ref = external("dora");
      await add(page, file("x.json", named), file("y.json", good));
      await expect(outcome(page)).toContainText("1 of 2 files added");
      await expect(outcome(page)).toContainText("it names no subject");
      await settled(page);
      await expect(page.locator("#target option", { hasText: "dora" })).toHaveCount(1);
    }, width));

  test(`broken JSON is refused with line and column: ${width}`, () =>
    onData(async (page) => {
      await add(
        page,
        file("a.json", '{\n  "_type": "COMPOSITION",\n  "name": oops\n}'),
        file("b.json", '{"ctx/language": "en",'),
      );
      await expect(outcome(page)).toContainText(/a\.json:.*line 3, column 11/);
      await expect(outcome(page)).toContainText(/b\.json:.*line 1, column 23/);
    }, width));
}

test("compositions of several folders go to no patient without a choice", () =>
  onData(async (page) => {
    const good = strToU8(JSON.stringify(await sample(page, "JSON")));
    const zip = {
      name: "ward.zip",
      mimeType: "application/zip",
      buffer: Buffer.from(zipSync({ "anna/a.json": good, "ben/b.json": good })),
    };
    const people = page.locator(".facts dd").first();
    const before = Number(await people.textContent());
    const choice = page.getByRole("dialog").getByLabel("Compositions go to");
    await expect(page.locator("#target option:checked")).toHaveText(/^Ask/);
    await add(page, zip);
    await expect(page.getByRole("dialog")).toContainText("2 folders or archives: anna, ben");
    await accessible(page, "question for the patient");
    await page.click("#target-cancel");
    await expect(outcome(page)).toContainText("0 of 2 files added");
    await expect(outcome(page)).toContainText("no patient was chosen for it");
    await settled(page);
    await expect(people).toHaveText(String(before));
    await add(page, zip);
    await expect(choice.locator("option:checked")).toHaveText("A patient for each folder");
    await page.click("#target-add");
    await expect(outcome(page)).toContainText("2 of 2 files added");
    await expect(outcome(page)).toContainText("Compositions went to: anna (1), ben (1).");
    await settled(page);
    await expect(people).toHaveText(String(before + 2));
    // One file proposes nothing, and a chosen patient is named.
    const one = { name: "c.json", mimeType: "application/json", buffer: Buffer.from(good) };
    await add(page, one);
    await expect(choice).toHaveValue("");
    await choice.selectOption({ label: "anna" });
    await page.click("#target-add");
    await expect(outcome(page)).toContainText("Compositions went to: anna (1).");
    await settled(page);
    await page.locator("#undo").focus();
    await page.keyboard.press("Enter");
    await expect(outcome(page)).toHaveText("The addition of 1 file was undone.");
    await expect(outcome(page).locator("p")).toBeFocused();
    await settled(page);
  }, 1440));

test("lines of an export that was refused in part are counted and numbered, and can be undone", () =>
  onData(async (page) => {
    const call = await caller(page);
    const lines = (await call.text("export", null)).split("\n");
    const wrong = lines.findLastIndex((line) => line.includes("Systolic"));
    lines[wrong] = lines[wrong].replace("Systolic", "Diastolic");
    await page.fill("#set-name", "Ward 7");
    await page.click("#set-new");
    await settled(page);
    // The blank first line is so long that the others are in the second piece.
    const padded = [" ".repeat(4_000_000), ...lines].join("\n");
    await add(page, file("ward.ndjson", padded));
    const stored = `ward.ndjson: ${lines.length - 3} lines are stored, other lines are refused.`;
    await expect(outcome(page)).toContainText(stored);
    await expect(outcome(page)).not.toContainText("nothing of them is stored");
    await expect(outcome(page)).toContainText(`line ${wrong + 2}: `);
    await page.click("#undo");
    await settled(page);
    await expect(page.locator(".facts dd").first()).toHaveText("0");
    await add(page, file("broken.ndjson", "{}"));
    await expect(outcome(page)).toContainText("1 file refused: nothing of them is stored.");
    await expect(page.locator("#undo")).toHaveCount(0);
    await settled(page);
  }, 1440));

test("files that wait for their turn go to the patient that was chosen when they were added", () =>
  onData(async (page) => {
    const good = await sample(page, "JSON");
    await page.selectOption("#target", "by file");
    await add(page, file("anna.json", good), file("ben.json", good));
    await expect(outcome(page)).toContainText("2 of 2 files added");
    await settled(page);
    await page.selectOption("#target", { label: "anna" });
    // The first file blocks until it is released.
    await page.evaluate(() => {
      const { arrayBuffer } = Blob.prototype;
      const gate = new Promise((resolve) => (window.release = resolve));
      Blob.prototype.arrayBuffer = function () {
        return gate.then(() => arrayBuffer.call(this));
      };
    });
    await add(page, file("first.json", good));
    await add(page, file("second.json", good));
    await page.selectOption("#target", { label: "ben" });
    await page.evaluate(() => window.release());
    await expect(page.locator(".added-to")).toHaveText([
      "Compositions went to: anna (1).",
      "Compositions went to: anna (1).",
    ]);
    await settled(page);
  }, 1440));

test("an archive that cannot be read is refused by its name, and the other files are added", () =>
  onData(async (page) => {
    const good = await sample(page, "JSON");
    await page.selectOption("#target", { label: "A new patient" });
    const broken = { ...file("broken.zip", "no archive"), mimeType: "application/zip" };
    await add(page, broken, file("a.json", good));
    await expect(outcome(page)).toContainText("1 of 2 files added");
    await expect(outcome(page)).toContainText("broken.zip: this archive cannot be read");
    await settled(page);
  }, 1440));

/** Returns a reference to a subject in another system. */
function external(id) {
  return {
    _type: "PARTY_REF",
    namespace: "ward",
    type: "PERSON",
    id: { _type: "GENERIC_ID", value: id, scheme: "ward" },
  };
}

/**
 * Starts the page beside a server with one template, which was added after the page had read the
 * list. Returns the paths of its writes, too.
 */
async function withTemplate(id, text) {
  const writes = [];
  const { address, stop } = await serve(built, 0, async (request, response) => {
    if (!request.url.startsWith("/v1/")) return false;
    let body = "";
    for await (const chunk of request) body += chunk;
    const path = decodeURIComponent(request.url.slice("/v1/".length));
    const answer = (status, value) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (path.startsWith("query/aql")) {
      const isCount = JSON.parse(body).q.includes("COUNT");
      answer(200, { columns: [{ name: "n", path: null }], rows: isCount ? [[0]] : [] });
    } else if (path === `definition/template/${id}/1`)
      response.writeHead(200, { "content-type": "application/xml" }).end(text);
    else if (request.method === "POST") {
      writes.push(path);
      answer(201, { ehr_id: { value: "7d44b88c-4199-4bad-97dc-d78268e01398" } });
    } else if (path.startsWith("definition/template/")) answer(404, { message: "not here" });
    else answer(200, []);
    return true;
  });
  return { address, stop, writes };
}

for (const width of [390, 1440])
  test(`a server gets no patient for a refused file, though its template was not read before: ${width}`, async () => {
    const id = "sample.vital_signs.v1";
    const text = await readFile(
      new URL("../../www/samples/vital_signs.opt", import.meta.url),
      "utf8",
    );
    const there = await withTemplate(id, text);
    const use = async (page) => {
      const good = await sample(page, "JSON");
      await page.locator("#source").selectOption("own");
      await settled(page);
      await page.click("#tab-data");
      await page.selectOption("#target", { label: "A new patient" });
      const { composer: _, ...bad } = good;
      await add(page, file("bad.json", bad));
      await expect(outcome(page)).toContainText("0 of 1 file");
      const foreign = JSON.parse(JSON.stringify(good).replaceAll(id, "unknown.v1"));
      await add(page, file("foreign.json", foreign));
      await expect(outcome(page)).toContainText("foreign.json: /archetype_details/template_id");
      assert.deepEqual(there.writes, []);
      await add(page, file("good.json", good));
      await expect(outcome(page)).toContainText("1 of 1 file");
      assert.deepEqual(there.writes, [
        "ehr",
        "ehr/7d44b88c-4199-4bad-97dc-d78268e01398/composition",
      ]);
    };
    try {
      await visit(site.browser, there.address, use, { viewport: { width, height: 900 } });
    } finally {
      await there.stop();
    }
  });
