// Checkpoints of data sets in the storage of the browser: reload, several realms, undo, damage.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, built, caller, offlineReady, ready, settled, visit } from "./page.mjs";
import { serve } from "./server.mjs";

const COUNT = "SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c";
const SYSTOLIC = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
const HIGHEST = `SELECT c/uid/value AS uid, ${SYSTOLIC} AS systolic FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] ORDER BY systolic DESC, uid LIMIT 20`;
let server;
let browser;

before(async () => {
  server = await serve(built);
  browser = await browse();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const onOrigin = (use) =>
  visit(browser, server.address, async (page) => use(page, await caller(page)));

const rows = async (call, q) => JSON.parse((await call("query", { q, parameters: {} })).text).rows;
const count = async (call) => (await rows(call, COUNT))[0][0];

/** Returns a composition of the data set without its uid. */
async function composition(call) {
  const [[document, ehr]] = await rows(
    call,
    "SELECT c, e/ehr_id/value AS ehr FROM EHR e CONTAINS COMPOSITION c LIMIT 1",
  );
  delete document.uid;
  return { name: "visit.json", text: JSON.stringify(document), ehr };
}

/** Returns the names of the files of a data set. */
const files = (page, id) =>
  page.evaluate(async (id) => {
    const root = await (await navigator.storage.getDirectory()).getDirectoryHandle("aqlite");
    return (await Array.fromAsync((await root.getDirectoryHandle(id)).keys())).sort();
  }, id);

/** Waits until the data set has the expected files. */
async function until(page, id, isAsExpected) {
  for (let at = 0; at < 300; at += 1) {
    const names = await files(page, id);
    if (isAsExpected(names)) return names;
    await page.waitForTimeout(100);
  }
  throw new Error(`the files stay ${await files(page, id)}`);
}

const checkpoints = (names) => names.filter((name) => name.endsWith(".checkpoint"));
const journals = (names) => names.filter((name) => name.endsWith(".log"));

/** Changes every 500th byte of a file, once its writer has closed it. */
const damage = (page, id, name) =>
  page.evaluate(
    async ({ id, name }) => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle("aqlite");
      const handle = await (await root.getDirectoryHandle(id)).getFileHandle(name);
      const open = () => handle.createWritable();
      const isOpen = (error) => error.name === "NoModificationAllowedError";
      let stream;
      for (let at = 0; stream === undefined; at += 1)
        stream = await open().catch((error) => {
          if (!isOpen(error) || at === 100) throw error;
          return new Promise((resolve) => setTimeout(resolve, 100));
        });
      const bytes = new Uint8Array(await (await handle.getFile()).arrayBuffer());
      for (let at = 0; at < bytes.length; at += 500) bytes[at] ^= 1;
      await stream.write(bytes);
      await stream.close();
    },
    { id, name },
  );

async function reloaded(page) {
  await page.reload();
  await ready(page);
  return caller(page);
}

/** Generates more patients than those of a first visit. Returns the content of the data set. */
const generated = (call) => call("generate", { ehrs: 60, compositions: 600, seed: 5 });

/** Creates a set with these data as one write of the user, which is so long that it is compacted. */
async function imported(call) {
  await call("generate", { ehrs: 150, compositions: 1200, seed: 5 });
  const text = await call.text("export", null);
  const { set } = await call("createSet", "Imported");
  assert.deepEqual((await call("import", { text, first: 1 })).refused, []);
  return set.id;
}

test("sample patients are stored as a checkpoint, and later writes in the journal", () =>
  onOrigin(async (page, call) => {
    const made = await generated(call);
    const { id } = made.set;
    const names = await files(page, id);
    assert.deepEqual([checkpoints(names).length, names.length], [1, 1], String(names));
    const highest = await rows(call, HIGHEST);
    assert.equal(highest.length, 20);
    const text = await call.text("export", null);
    call = await reloaded(page);
    assert.deepEqual(await rows(call, HIGHEST), highest);
    const contents = await call("contents", null);
    assert.deepEqual(
      [contents.compositions, contents.ehrs, contents.added],
      [made.compositions, made.ehrs, 0],
    );
    assert.equal(await call.text("export", null), text);
    const file = await composition(call);
    for (let at = 0; at < 3; at += 1) await call("add", file);
    assert.equal(journals(await files(page, id)).length, 1);
    call = await reloaded(page);
    assert.equal(await count(call), made.compositions + 3);
    const undone = await call("undo", { set: id, from: 3, to: 1 });
    assert.deepEqual([undone.compositions, undone.added], [made.compositions + 1, 1]);
    call = await reloaded(page);
    assert.equal(await count(call), made.compositions + 1);
    const none = await call("undo", { set: id, from: 1, to: 0 });
    assert.deepEqual([none.compositions, none.added], [made.compositions, 0]);
    assert.equal(await call.text("export", null), text);
  }));

test("tabs and the Service Worker append writes after one checkpoint", () =>
  onOrigin(async (page, call) => {
    await offlineReady(page);
    const { compositions } = await generated(call);
    const other = await caller(page);
    const { ehr, text, name } = await composition(call);
    const post = () =>
      page.evaluate(
        async ({ ehr, text }) => {
          const headers = { "content-type": "application/json" };
          const target = `/local/v1/ehr/${ehr}/composition`;
          return (await fetch(target, { method: "POST", headers, body: text })).status;
        },
        { ehr, text },
      );
    const seen = () =>
      page.evaluate(async (q) => {
        const answer = await fetch(`/local/v1/query/aql?q=${encodeURIComponent(q)}`);
        return (await answer.json()).rows[0][0];
      }, COUNT);
    assert.equal(await seen(), compositions);
    assert.equal(await post(), 201);
    await call("add", { ehr, text, name });
    assert.equal(await count(other), compositions + 2);
    await Promise.all([post(), call("add", { ehr, text, name }), post()]);
    assert.deepEqual(
      [await seen(), await count(call), await count(other)],
      [compositions + 5, compositions + 5, compositions + 5],
    );
  }));

test("a long journal is compacted, and its writes can still be undone", () =>
  onOrigin(async (page, call) => {
    const id = await imported(call);
    const text = await call.text("export", null);
    const many = await count(call);
    const names = await until(page, id, (names) => checkpoints(names).length === 1);
    // The lines before the first checkpoint stay, so their content is stored twice.
    assert.equal(journals(names).length, 1);
    assert.equal(await call.text("export", null), text);
    const file = await composition(call);
    await call("add", file);
    const other = await reloaded(page);
    assert.equal(await count(other), many + 1);
    assert.equal((await other("contents", null)).added, 2);
    assert.equal((await other("undo", { set: id, from: 2, to: 1 })).compositions, many);
    assert.equal(await other.text("export", null), text);
    assert.equal((await other("undo", { set: id, from: 1, to: 0 })).compositions, 0);
    await page.reload();
    // The first query has no rows now.
    await settled(page);
    assert.equal(await count(await caller(page)), 0);
  }));

test("a damaged checkpoint is dropped if the journal has its content", () =>
  onOrigin(async (page, call) => {
    const id = await imported(call);
    const text = await call.text("export", null);
    const [name] = checkpoints(await until(page, id, (names) => checkpoints(names).length === 1));
    await damage(page, id, name);
    const again = await reloaded(page);
    assert.equal(await again.text("export", null), text);
    await again("add", await composition(again));
    assert.equal((await again("contents", null)).added, 2);
  }));

test("a damaged checkpoint that is the only copy is reported", () =>
  onOrigin(async (page, call) => {
    const { set } = await generated(call);
    const other = await call("createSet", "Good");
    const [name] = await files(page, set.id);
    await damage(page, set.id, name);
    await assert.rejects(call("openSet", set.id), (error) => {
      assert.match(error.message, /is damaged .* import an export of this one/);
      assert.ok(error.message.includes(name), error.message);
      return true;
    });
    assert.equal((await call("openSet", other.set.id)).compositions, 0);
    await call("removeSet", set.id);
    const sets = await call("sets", null);
    assert.deepEqual(
      sets.map(({ id }) => id),
      [other.set.id],
    );
  }));

test("undoing a start over restores the patients of a checkpoint", () =>
  onOrigin(async (page, call) => {
    const made = await generated(call);
    const highest = await rows(call, HIGHEST);
    const replacement = await call("startOver", null);
    assert.ok((await count(call)) < made.compositions);
    call = await reloaded(page);
    assert.equal((await call("bringBack", replacement)).compositions, made.compositions);
    assert.deepEqual(await rows(call, HIGHEST), highest);
  }));
