// Stored data: named data sets in the storage of the browser, after reloads, crashes and undo, and shared
// by the realms of an origin.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  browse,
  built,
  caller,
  expect,
  offlineReady,
  open,
  ready,
  row,
  run,
  settled,
  trap,
  visit,
} from "./page.mjs";
import { serve } from "./server.mjs";

const COUNT = "SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c";
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

/**
 * Opens a fresh origin with a page. `call` uses a worker of its own with the protocol of the page.
 */
const onOrigin = (use) =>
  visit(browser, server.address, async (page) => use(page, await caller(page)));

const count = async (call) =>
  JSON.parse((await call("query", { q: COUNT, parameters: {} })).text).rows[0][0];

/** Returns a composition of the data set without its uid. */
async function composition(call) {
  const { text } = await call("query", {
    q: "SELECT c, e/ehr_id/value AS ehr FROM EHR e CONTAINS COMPOSITION c LIMIT 1",
    parameters: {},
  });
  const [document, ehr] = JSON.parse(text).rows[0];
  delete document.uid;
  return { name: "visit.json", text: JSON.stringify(document), ehr };
}

/**
 * Sends a composition to the REST interface of this browser's own repository. Returns the status.
 */
function posted(page, { ehr, text }) {
  return page.evaluate(
    async ({ ehr, text }) =>
      (
        await fetch(`/local/v1/ehr/${ehr}/composition`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: text,
        })
      ).status,
    { ehr, text },
  );
}

test("data sets are created, renamed, opened and removed", () =>
  onOrigin(async (page, call) => {
    const [first] = await call("sets", null);
    assert.equal(first.name, "Sample patients");
    assert.equal(first.current, true);
    assert.ok(first.bytes > 10_000, String(first.bytes));
    const many = await count(call);
    const empty = await call("createSet", "Ward 7");
    assert.equal(empty.compositions, 0);
    assert.equal(empty.set.name, "Ward 7");
    await assert.rejects(call("createSet", " Ward 7 "), /there is a data set `Ward 7` already/);
    await call("renameSet", { id: empty.set.id, name: "Ward 8" });
    assert.deepEqual(
      (await call("sets", null)).map(({ name }) => name),
      ["Sample patients", "Ward 8"],
    );
    await assert.rejects(call("removeSet", empty.set.id), /in use/);
    assert.equal((await call("openSet", first.id)).compositions, many);
    await call("removeSet", empty.set.id);
    assert.deepEqual(
      (await call("sets", null)).map(({ name }) => name),
      ["Sample patients"],
    );
    await assert.rejects(call("openSet", empty.set.id), /not there any more/);
    await page.reload();
    await ready(page);
    assert.equal(await count(await caller(page)), many);
  }));

test("writes of another tab are drawn", () =>
  onOrigin(async (page, call) => {
    const drawn = (many) =>
      page.locator("#state-text", { hasText: ` ${many} compositions` }).waitFor();
    const [many, { name, text, ehr }] = [await count(call), await composition(call)];
    await drawn(many);
    await call("add", { name, text, ehr });
    await drawn(many + 1);
    await call("createSet", "Ward 9");
    await drawn(0);
    await settled(page);
    await page.click("#tab-data");
    await page.getByLabel("Name of Ward 9", { exact: true }).waitFor();
  }));

test("the browser is asked once to keep the data, after a write to the open data set", () =>
  onOrigin(async (page, call) => {
    const [first] = await call("sets", null);
    const { set } = await call("createSet", "Ward 7");
    await call("newEhr", null);
    await call("openSet", first.id);
    await page.reload();
    await ready(page);
    await page.evaluate(() => {
      globalThis.asked = 0;
      navigator.storage.persist = async () => ((globalThis.asked += 1), true);
    });
    const again = await caller(page);
    const drawn = (many) => page.locator("#state-text", { hasText: `${many} patient` }).waitFor();
    await again("openSet", set.id);
    await drawn("1");
    assert.equal(await page.evaluate(() => globalThis.asked), 0);
    await again("newEhr", null);
    await drawn("2");
    assert.equal(await page.evaluate(() => globalThis.asked), 1);
  }));

/** Opens a page whose worker gets an error of this name in place of the storage. */
async function withoutStorage(name, use) {
  const error = `Promise.reject(new DOMException("no storage", "${name}"))`;
  const { address, stop } = await serve(built, 0, async (request, response) => {
    if (!/^\/worker\.\w+\.js$/.test(request.url)) return false;
    const code = await readFile(join(built, request.url), "utf8");
    response.writeHead(200, { "content-type": "text/javascript" });
    response.end(`StorageManager.prototype.getDirectory = () => ${error};${code}`);
    return true;
  });
  const page = await open(browser, address);
  try {
    await use(page);
  } finally {
    await page.context().close();
    await stop();
  }
}

test("data in memory are not said to be kept, and a failure of the storage is reported", async () => {
  for (const name of ["SecurityError", "UnknownError"])
    await withoutStorage(name, async (page) => {
      await ready(page);
      await expect(page.locator("#notice")).toContainText("The data are not kept.");
      await page.click("#tab-data");
      await expect(page.locator("#destination")).toHaveText(/^They are in the memory of this tab/);
    });
  await withoutStorage("InvalidStateError", async (page) => {
    await expect(page.locator("#state[data-state=bad]")).toContainText("no storage");
    await expect(page.locator("#destination")).toHaveText("");
  });
  await onOrigin(async (page) => {
    await page.click("#tab-data");
    await expect(page.locator("#destination")).toHaveText(/^They stay in this browser/);
    await expect(page.locator("#notice")).toBeHidden();
  });
});

test("the browser is asked to keep the data after an own write", () =>
  onOrigin(async (page, call) => {
    await page.evaluate(() => {
      window.asked = 0;
      StorageManager.prototype.persist = () => Promise.resolve((window.asked += 1) > 0);
    });
    const asked = () => page.evaluate(() => window.asked);
    await page.click("#tab-data");
    await page.click("#tab-query");
    assert.equal(await asked(), 0);
    await call("newEhr", null);
    await expect.poll(asked).toBe(1);
    await call("newEhr", null);
    await expect(page.locator(".facts dt:text-is('Own writes') + dd")).toHaveText("2");
    assert.equal(await asked(), 1);
  }));

test("data sets are listed while another realm renames them", () =>
  onOrigin(async (page, call) => {
    const other = await caller(page);
    const { set } = await call("createSet", "Ward 0");
    const rename = async () => {
      for (let at = 1; at <= 150; at += 1)
        await call("renameSet", { id: set.id, name: `Ward ${at}` });
    };
    const list = async (names) => {
      for (let at = 0; at < 150; at += 1) names.push((await other("sets", null))[1].name);
    };
    const names = [];
    await Promise.all([rename(), list(names)]);
    assert.ok(new Set(names).size > 10, "the two took turns");
    const seen = names.map((name) => Number(name.slice("Ward ".length)));
    assert.deepEqual(
      seen,
      seen.toSorted((a, b) => a - b),
      "what was named last is read",
    );
  }));

test("a realm queries while the Service Worker and another one write", () =>
  onOrigin(async (page, call) => {
    await offlineReady(page);
    const other = await caller(page);
    const file = await composition(call);
    const before = await count(other);
    const add = async () => {
      for (let at = 0; at < 40; at += 1) await call("add", file);
    };
    const post = async () => {
      for (let at = 0; at < 40; at += 1) assert.equal(await posted(page, file), 201);
    };
    const counts = [];
    const ask = async () => {
      while (counts.at(-1) !== before + 80) counts.push(await count(other));
    };
    await Promise.all([add(), post(), ask()]);
    assert.ok(new Set(counts).size > 10, "they took turns");
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
      "nothing that was there is missed",
    );
  }));

test("writes are stored and undone in their order", () =>
  onOrigin(async (page, call) => {
    const before = await count(call);
    const file = await composition(call);
    for (let at = 0; at < 3; at += 1) await call("add", file);
    assert.equal((await call("contents", null)).added, 3);
    await page.reload();
    await ready(page);
    call = await caller(page);
    assert.equal(await count(call), before + 3);
    const { set } = await call("contents", null);
    assert.equal((await call("undo", { set: set.id, from: 3, to: 1 })).compositions, before + 1);
    await page.reload();
    await ready(page);
    call = await caller(page);
    const contents = await call("contents", null);
    assert.deepEqual([contents.compositions, contents.added], [before + 1, 1]);
    await call("add", file);
    assert.equal(await count(call), before + 2);
  }));

test("a torn write is discarded, and the next one is stored", () =>
  onOrigin(async (page, call) => {
    const before = await count(call);
    const file = await composition(call);
    await call("add", file);
    // The test removes the second half of the last line, as a power failure could.
    await page.evaluate(async () => {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle("aqlite");
      for await (const folder of root.values()) {
        if (folder.kind !== "directory") continue;
        const names = (await Array.fromAsync(folder.keys())).filter((n) => n.endsWith(".log"));
        const handle = await folder.getFileHandle(names.sort().at(-1));
        const stream = await handle.createWritable({ keepExistingData: true });
        await stream.truncate((await handle.getFile()).size - 300);
        await stream.close();
      }
    });
    await page.reload();
    await ready(page);
    call = await caller(page);
    assert.equal(await count(call), before);
    await call("add", file);
    await page.reload();
    await ready(page);
    assert.equal(await count(await caller(page)), before + 1);
  }));

test("an unreadable data set is reported, and another one can be opened", () =>
  onOrigin(async (page, call) => {
    await call("add", await composition(call));
    const { set } = await call("createSet", "Good");
    const [broken] = (await call("sets", null)).filter(({ id }) => id !== set.id);
    await page.evaluate(async (id) => {
      const folder = await (
        await (await navigator.storage.getDirectory()).getDirectoryHandle("aqlite")
      ).getDirectoryHandle(id);
      const names = await Array.fromAsync(folder.keys());
      const journal = names.find((name) => name.endsWith(".log"));
      const stream = await (await folder.getFileHandle(journal)).createWritable();
      await stream.write("nonsense\n");
      await stream.close();
    }, broken.id);
    await assert.rejects(
      call("openSet", broken.id),
      /the journal is broken: there is no record `nonsense`/,
    );
    await call.kill();
    call = await caller(page);
    await assert.rejects(call("contents", null), /the journal is broken/);
    assert.equal((await call("openSet", set.id)).compositions, 0);
    await call("removeSet", broken.id);
  }));

test("a worker that is killed during a write leaves whole requests", () =>
  onOrigin(async (page, call) => {
    const before = await count(call);
    const file = await composition(call);
    let sent = 0;
    for (; sent < 60; sent += 1) call("add", file).catch(() => undefined);
    // The worker has answered two calls before: those above.
    await call.after(22);
    await call.kill();
    const again = await caller(page);
    const kept = await count(again);
    assert.ok(kept >= before + 20 && kept <= before + sent, `${kept} of ${before} and ${sent}`);
    assert.equal((await again("contents", null)).added, kept - before);
    await again("add", file);
    assert.equal(await count(again), kept + 1);
  }));

test("many sample patients get a data set of their own, open again in seconds, and leave nothing when cancelled", () =>
  onOrigin(async (_, call) => {
    await call("add", await composition(call));
    const mine = await count(call);
    const made = await call("generate", { ehrs: 300, compositions: 3000, seed: 5 });
    assert.ok(made.compositions > 2500, String(made.compositions));
    assert.equal((await call("sets", null)).length, 2);
    await assert.rejects(
      call.cancelled("generate", { ehrs: 50_000, compositions: 500_000, seed: 5 }),
      /cancelled/,
    );
    assert.equal(await count(call), made.compositions);
    const { bytes } = (await call("sets", null)).find(({ current }) => current);
    assert.ok(bytes < 3000 * 4000, String(bytes));
    const [first] = await call("sets", null);
    assert.equal((await call("openSet", first.id)).compositions, mine);
  }));

test("all data survive export and import", () =>
  onOrigin(async (_, call) => {
    const before = await call("contents", null);
    const text = await call.text("export", null);
    assert.ok(text.endsWith('{"end":true}}\n'), text.slice(-100));
    await call("createSet", "Copy");
    assert.deepEqual((await call("import", { text, first: 1 })).refused, []);
    const copied = await call("contents", null);
    assert.deepEqual([copied.ehrs, copied.compositions], [before.ehrs, before.compositions]);
    assert.equal(await call.text("export", null), text);
    const damaged = text.replace("COMPOSITION", "COMPOSITIOM");
    assert.equal((await call("import", { text: damaged, first: 1 })).refused.length, 1);
  }));

test("the page and the Service Worker see each other's writes", () =>
  onOrigin(async (page, call) => {
    await offlineReady(page);
    const file = await composition(call);
    const before = await count(call);
    const seen = () =>
      page.evaluate(
        async (q) =>
          (await (await fetch(`/local/v1/query/aql?q=${encodeURIComponent(q)}`)).json()).rows[0][0],
        COUNT,
      );
    assert.equal(await posted(page, file), 201);
    assert.equal(await count(call), before + 1);
    await call("add", file);
    assert.equal(await seen(), before + 2);
    await Promise.all([
      posted(page, file),
      call("add", file),
      posted(page, file),
      call("add", file),
      posted(page, file),
    ]);
    assert.deepEqual([await seen(), await count(call)], [before + 7, before + 7]);
    await call("createSet", "Empty");
    assert.equal(await seen(), 0);
  }));

test("a panic is reported, and the stored data are available again", () =>
  onOrigin(async (page, call) => {
    await call("add", await composition(call));
    const all = await count(call);
    await trap(page.workers()[0]);
    await page.click("#run");
    await page.locator("#notice", { hasText: "started again with the same data" }).waitFor();
    await settled(page);
    await run(page, COUNT);
    assert.equal(Number((await row(page, 0))[0]), all);
  }));
