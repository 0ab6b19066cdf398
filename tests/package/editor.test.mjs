// The element `<aql-editor>` as a field of a form, in Chromium.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { browse } from "../web/page.mjs";
import { serve } from "../web/server.mjs";
import { unpacked } from "./unpacked.mjs";

const PAGE = `<!doctype html>
<script type="importmap">
  { "imports": { "aqlite/editor": "./node_modules/aqlite/editor.js" } }
</script>
<form><aql-editor name="query" value="SELECT e FROM EHR e"></aql-editor></form>
<script type="module">import "aqlite/editor";</script>
`;
let server, browser, page;

before(async () => {
  const house = await unpacked("editor");
  await writeFile(join(house, "index.html"), PAGE);
  server = await serve(house);
  browser = await browse();
  page = await browser.newPage();
  await page.goto(server.address);
  await page.waitForFunction(() => customElements.get("aql-editor"));
});

after(() => Promise.all([browser?.close(), server?.stop()]));

test("a value that is no text becomes one", async () => {
  const shown = await page.evaluate(() => {
    const editor = document.querySelector("aql-editor");
    return [5, null, undefined, "SELECT", ""].map((value) => {
      editor.value = value;
      return editor.value;
    });
  });
  assert.deepEqual(shown, ["5", "", "undefined", "SELECT", ""]);
});

test("a selection outside of the query ends at its ends", async () => {
  const selected = await page.evaluate(() => {
    const editor = document.querySelector("aql-editor");
    editor.value = "SELECT e FROM EHR e";
    return [
      [-1, 6],
      [7, 1e9],
      [NaN, 1.5],
      [9, 7],
    ].map((range) => {
      editor.select(...range);
      return String(editor.shadowRoot.getSelection?.() ?? getSelection());
    });
  });
  assert.deepEqual(selected, ["SELECT", "e FROM EHR e", "S", "e "]);
});

test("the reset of a form restores the initial query", async () => {
  const [value, field] = await page.evaluate(() => {
    const editor = document.querySelector("aql-editor");
    editor.value = "SELECT c FROM EHR e CONTAINS COMPOSITION c";
    document.forms[0].reset();
    return [editor.value, new FormData(document.forms[0]).get("query")];
  });
  assert.deepEqual([value, field], ["SELECT e FROM EHR e", "SELECT e FROM EHR e"]);
});

test("an editor outside of the document has no listeners on the window, and keeps its text and its undo steps", async () => {
  const seen = await page.evaluate(() => {
    let listeners = 0;
    for (const [name, change] of [
      ["addEventListener", 1],
      ["removeEventListener", -1],
    ]) {
      const former = window[name];
      window[name] = function (type, ...rest) {
        if (type === "resize") listeners += change;
        return former.call(this, type, ...rest);
      };
    }
    const editor = document.createElement("aql-editor");
    const created = listeners;
    document.forms[0].append(editor);
    editor.setAttribute("name", "other");
    editor.value = "SELECT e FROM EHR e";
    const isThere = listeners > 0;
    editor.remove();
    const removed = listeners;
    editor.value = "SELECT";
    const detached = editor.value;
    document.forms[0].append(editor);
    const field = new FormData(document.forms[0]).get("other");
    const lines = editor.shadowRoot.querySelector(".cm-content").textContent;
    editor.focus();
    return { created, isThere, removed, isThereAgain: listeners > 0, detached, field, lines };
  });
  const text = "SELECT";
  assert.deepEqual(seen, {
    created: 0,
    isThere: true,
    removed: 0,
    isThereAgain: true,
    detached: text,
    field: text,
    lines: text,
  });
  await page.keyboard.press("ControlOrMeta+z");
  // Changes within half a second are one step.
  assert.equal(await page.evaluate(() => document.forms[0].lastChild.value), "");
});
