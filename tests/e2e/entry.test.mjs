// The entry module of the worker. A stub replaces the wasm module, and aborts on request.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { root } from "./server.mjs";

const folder = join(root, "target/e2e/entry");

/** The entry module, bundled with the stub. */
async function entry() {
  mkdirSync(folder, { recursive: true });
  const standIn = join(folder, "stand-in.mjs");
  writeFileSync(
    standIn,
    `
    const state = { criticalError: false, instanceId: 0 };
    export const __worker_init_state = () => state;
    export const __wbg_reset_state = () => { globalThis.resets = (globalThis.resets ?? 0) + 1; };
    export async function fetch(request) {
      const body = await request.text();
      if (body === "wait") await globalThis.waiting;
      if (body === "abort") throw new WebAssembly.RuntimeError("unreachable");
      return new Response(JSON.stringify({ body, encoding: request.headers.get("content-encoding") }));
    }
    export async function scheduled() {}
    export const replaceable_bytes = () => globalThis.bytes ?? 1_000_000;
    export const collect_idle_garbage = () => {};
  `,
  );
  const outfile = join(folder, "entry.mjs");
  globalThis.addEventListener ??= () => {};
  await build({
    entryPoints: [join(root, "worker/entry.js")],
    bundle: true,
    format: "esm",
    outfile,
    alias: { "aqlite-worker": standIn },
    logLevel: "error",
  });
  return (await import(pathToFileURL(outfile))).default;
}

const post = (body, headers = {}) =>
  new Request("http://127.0.0.1/v1/ehr/secret", { method: "POST", body, headers });

test("an abort is answered with the request id of the log, and the next request uses a new instance", async () => {
  const worker = await entry();
  const told = [];
  const error = console.error;
  console.error = (line) => told.push(JSON.parse(line));
  try {
    const answer = await worker.fetch(post("abort", { "x-request-id": "my-id.1" }), {}, {});
    assert.equal(answer.status, 500);
    assert.equal(answer.headers.get("x-request-id"), "my-id.1");
    assert.equal(answer.headers.get("cache-control"), "no-store");
    assert.deepEqual((await answer.json()).errors, []);
    const odd = await worker.fetch(post("abort", { "x-request-id": "a b" }), {}, {});
    assert.match(odd.headers.get("x-request-id"), /^[0-9a-f-]{36}$/);
  } finally {
    console.error = error;
  }
  assert.deepEqual(
    [told.length, told[0].request_id, told[0].status, told[0].method],
    [2, "my-id.1", 500, "POST"],
  );
  assert.ok(!JSON.stringify(told).includes("secret"), "a path is in the log");
  const before = globalThis.resets;
  const next = await (await worker.fetch(post("hello"), {}, {})).json();
  assert.deepEqual([next.body, globalThis.resets], ["hello", before + 1]);
  const sent = await (
    await worker.fetch(post("hello", { "content-encoding": "gzip" }), {}, {})
  ).json();
  assert.deepEqual(
    sent,
    { body: "hello", encoding: "gzip" },
    "a body is handed over as it was sent: the caller is not known yet",
  );
  const kept = [];
  await worker.fetch(post("abort"), {}, { waitUntil: (promise) => kept.push(promise) });
  assert.deepEqual(
    await Promise.all(kept),
    [undefined],
    "work goes on where the client goes away, and its abort is answered once",
  );
});

test("an instance whose memory grew is replaced once no request is open, never before", async () => {
  const worker = await entry();
  await worker.fetch(post("hello"), {}, {});
  const before = globalThis.resets ?? 0;
  let go;
  globalThis.waiting = new Promise((resolve) => (go = resolve));
  const first = worker.fetch(post("wait"), {}, {});
  globalThis.bytes = 1_000_000 + 97 * 1024 * 1024;
  await worker.fetch(post("hello"), {}, {});
  assert.equal(globalThis.resets ?? 0, before, "replaced under an open request");
  go();
  await first;
  assert.equal(globalThis.resets, before + 1);
  globalThis.bytes = 94 * 1024 * 1024;
  await worker.fetch(post("hello"), {}, {});
  assert.equal(globalThis.resets, before + 1, "replaced without need");
});

test("the memory of a replaced instance is collected at once, although the isolate is idle", async () => {
  const worker = await entry();
  await worker.fetch(post("hello"), {}, {});
  const memory = new WeakRef(new ArrayBuffer(1_000_000));
  // The target of a WeakRef stays alive until the end of the task that created the reference.
  await new Promise((resolve) => setTimeout(resolve));
  const before = globalThis.resets ?? 0;
  globalThis.bytes = 1_000_000 + 97 * 1024 * 1024;
  await worker.fetch(post("hello"), {}, {});
  assert.equal(globalThis.resets, before + 1);
  assert.equal(memory.deref(), undefined, "nothing was collected");
});

test("many copies of texts cause a garbage collection, a bounded number of times", async () => {
  const { countGarbage } = await import("../../worker/garbage.js");
  const isCollected = async (bytes, isIdle) => {
    const memory = new WeakRef(new ArrayBuffer(1_000_000));
    await new Promise((resolve) => setTimeout(resolve));
    countGarbage(bytes, isIdle);
    return memory.deref() === undefined;
  };
  assert.equal(await isCollected(23_000_000, true), false, "little garbage");
  assert.equal(await isCollected(1_000_000, true), true);
  assert.equal(await isCollected(63_000_000, false), false, "a request is open");
  assert.equal(await isCollected(1_000_000, false), true);
  for (let left = 23; left > 0; left -= 1) countGarbage(64_000_000, false);
  assert.equal(await isCollected(64_000_000, true), false, "each collection leaves code behind");
});

test("the number of replacements is bounded", async () => {
  const worker = await entry();
  await worker.fetch(post("hello"), {}, {});
  globalThis.bytes = 1_000_000 + 97 * 1024 * 1024;
  const before = globalThis.resets ?? 0;
  for (let number = 0; number < 40; number += 1) await worker.fetch(post("hello"), {}, {});
  assert.ok(globalThis.resets - before <= 25, `${globalThis.resets - before}`);
});
