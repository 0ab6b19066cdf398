// Texts with markup and scripts in everything that the page shows: documents, templates, guides, names of
// files, errors, queries and links. Nothing of them becomes an element, a script or a request.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { answered, caller, expect, hosted, open, ready, run, settled } from "./page.mjs";

/** Markup in a text. Each element of it has the attribute `data-attack`. */
const MARKUP =
  '"><img data-attack src="https://evil.example/i.png" onerror="globalThis.attacked=1"><script data-attack>globalThis.attacked=1</script><a data-attack href="javascript:globalThis.attacked=1">x</a><svg data-attack onload="globalThis.attacked=1">';
/** The markup inside a string of AQL. */
const AQL = MARKUP.replaceAll('"', "`");
const escaped = MARKUP.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

const site = hosted();

/** Opens a page, uses it, and fails if a text acted. */
async function unharmed(use, address = site.address) {
  const page = await open(site.browser, address, { serviceWorkers: "allow" });
  const foreign = [];
  const own = new URL(site.address).host;
  page.context().on("request", (request) => {
    const url = new URL(request.url());
    if (!["data:", "blob:"].includes(url.protocol) && url.host !== own) foreign.push(request.url());
  });
  page.on("dialog", (dialog) => {
    foreign.push(`dialog ${dialog.message()}`);
    return dialog.dismiss();
  });
  try {
    await ready(page);
    await use(page, async (view) => {
      await expect(page.locator("[data-attack]"), `${view}: an element`).toHaveCount(0);
      await expect(page.locator('[href^="javascript:" i]'), `${view}: a link`).toHaveCount(0);
      assert.equal(await page.evaluate(() => globalThis.attacked), undefined, `${view}: a script`);
      assert.deepEqual(foreign, [], view);
    });
    assert.deepEqual(page.problems, []);
  } finally {
    await page.context().close();
  }
}

const file = (name, text) => ({
  name,
  mimeType: name.endsWith(".opt") ? "application/xml" : "application/json",
  buffer: Buffer.from(text),
});

/** Returns a composition of vital signs whose free texts and names have markup. */
async function composition(page) {
  const call = await caller(page);
  const q =
    "SELECT c FROM EHR e CONTAINS COMPOSITION c WHERE c/archetype_details/template_id/value = 'sample.vital_signs.v1' LIMIT 1";
  const { identity } = await call("query", { q, parameters: {}, from: null });
  const { text } = await call("documents", { q, parameters: {}, identity, format: "JSON" });
  const document = JSON.parse(text, (key, value) => {
    if (key === "uid" && value._type) return undefined;
    return value?._type === "DV_TEXT" ? { ...value, value: `${value.value} ${MARKUP}` } : value;
  });
  document.composer = { _type: "PARTY_IDENTIFIED", name: MARKUP };
  return JSON.stringify(document);
}

test("texts of documents, names of files and errors are shown as text in every view", () =>
  unharmed(async (page, assertUnharmed) => {
    const text = await composition(page);
    await page.click("#tab-data");
    await page.selectOption("#target", { label: "A new patient" });
    const names = [`a${MARKUP.replaceAll("/", "")}.json`, `${MARKUP.replaceAll("/", "")}.xml`];
    await page.locator("#files").setInputFiles([file("a.json", text)]);
    await settled(page);
    await assertUnharmed("data");
    await page
      .locator("#files")
      .setInputFiles([
        file(names[0], JSON.stringify({ _type: MARKUP, [MARKUP]: MARKUP })),
        file(names[1], `<a>${MARKUP}`),
        file("b.opt", `<template xmlns="http://schemas.openehr.org/v1">${escaped}</template>`),
      ]);
    await expect(page.locator("#added")).toContainText("files refused");
    for (const fold of await page.locator("#added summary").all()) await fold.click();
    await expect(page.locator("#added")).toContainText("<img data-attack");
    await assertUnharmed("errors of files");

    await page.click("#tab-query");
    await run(
      page,
      "SELECT c/composer/name AS who, c/name/value AS name, c FROM EHR e CONTAINS COMPOSITION c WHERE c/composer/name LIKE '*data-attack*'",
    );
    await expect(page.locator('[role=gridcell][data-row="0"]').first()).toContainText("<img");
    for (const cell of await page.locator('[role=gridcell][data-row="0"]').all()) {
      await cell.hover();
      await cell.click();
      await assertUnharmed("grid and detail");
    }
    await run(page, `SELECT c FROM COMPOSITION c WHERE c/name/value = '${AQL}'`);
    await assertUnharmed("query");
    await page.click("#tab-patients");
    await settled(page);
    await assertUnharmed("patients");
  }));

test("names of templates and guides are shown as text", () =>
  unharmed(async (page, assertUnharmed) => {
    const small = await readFile(new URL("../cases/template/small.opt", import.meta.url), "utf8");
    const template = small.replace(
      /(<items id="(?:text|description)">)[^<]*</g,
      (_, start) => `${start}${escaped}<`,
    );
    assert.notEqual(template, small);
    await page.click("#tab-data");
    await page.locator("#files").setInputFiles([file("t.opt", template)]);
    await settled(page);
    await page.click("#tab-templates");
    await settled(page);
    await page.locator("#view-templates select").first().selectOption("weight.en.v2");
    await settled(page);
    await assertUnharmed("templates");

    const sample = await readFile(
      new URL("../../www/samples/early_warning_score.gdl2.json", import.meta.url),
      "utf8",
    );
    const guide = JSON.parse(sample, (key, value) =>
      ["text", "description", "purpose", "use", "misuse", "summary", "detail"].includes(key) &&
      typeof value === "string"
        ? `${value} ${MARKUP}`
        : value,
    );
    guide.id = "Attack.v1";
    for (const rule of Object.values(guide.definition.rules))
      rule.cards = [
        {
          summary: MARKUP,
          detail: MARKUP,
          source: { label: MARKUP, url: "javascript:globalThis.attacked=1" },
          links: [{ label: MARKUP, url: "javascript:globalThis.attacked=1" }],
        },
      ];
    await page.click("#tab-guide");
    const [chooser] = await Promise.all([
      page.waitForEvent("filechooser"),
      page.locator("#view-guide").getByText("Open guides or fixtures").first().click(),
    ]);
    await chooser.setFiles([file("g.json", JSON.stringify(guide))]);
    await expect(page.locator("#view-guide")).toContainText("<img data-attack");
    await assertUnharmed("guide");
    for (const fold of await page.locator("#view-guide details:visible > summary").all())
      await fold.click();
    await assertUnharmed("folds of the guide");
  }));

test("a link with a query and settings of another author changes the query alone", () =>
  unharmed(
    async (page, assertUnharmed) => {
      await answered(page);
      await assertUnharmed("link");
      await expect(page.locator("#editor")).toContainText("data-attack");
    },
    `${site.address}#q=${encodeURIComponent(`SELECT '${AQL}' AS a FROM EHR e -- ${MARKUP}`)}&base=${encodeURIComponent("https://evil.example/v1")}&server=${encodeURIComponent("https://evil.example")}&lang=${encodeURIComponent(MARKUP)}&view=${encodeURIComponent(MARKUP)}`,
  ));
