// KV and R2 that answer late, with old entries, with entries of other keys or of another deployment, or
// not at all. Answers are those of the database.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Miniflare } from "miniflare";
import { ITS, V1, freshState, root } from "./server.mjs";

/** The number of versions without a segment at which the worker writes a segment. */
const LEAST = 512;
const text = (path) => readFileSync(join(root, "tests/cases", path), "utf8");
const [front, behind] = JSON.stringify(
  JSON.parse(text("rest/weight.json").replace("72.50", "4711.0")),
).split(/4711(?:\.0)?/);
const ehrId = (n) => `00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;
const WEIGHT = "o/data/events/data/items/value/magnitude";
const QUERY = `SELECT count(*) AS n, sum(${WEIGHT}) AS kg, max(${WEIGHT}) AS most FROM OBSERVATION o`;
const EHRS = "SELECT count(*) AS n FROM EHR e";

/** Starts two instances of the worker, `a` and `b`, on one state. `faults` are those of `attack/stores.mjs`. */
async function open(state, faults, bucket = false) {
  const worker = (name) => ({
    name,
    modules: [
      { type: "ESModule", path: join(root, "tests/e2e/attack/stores.mjs") },
      { type: "ESModule", path: join(root, "dist/worker/index.js") },
      { type: "CompiledWasm", path: join(root, "dist/worker/aqlite_worker_bg.wasm") },
    ],
    modulesRoot: root,
    compatibilityDate: "2026-04-01",
    d1Databases: { DB: "DB", LOG: "LOG" },
    kvNamespaces: { BLOBS: "BLOBS" },
    r2Buckets: bucket ? { SEGMENTS: "SEGMENTS" } : {},
    bindings: { AUTH: "none", ADMIN: "true", SYSTEM_ID: "aqlite.local", FAULTS: faults },
  });
  const runtime = new Miniflare({
    workers: [worker("a"), worker("b")],
    host: "127.0.0.1",
    port: 0,
    d1Persist: join(state, "v3/d1"),
    kvPersist: join(state, "v3/kv"),
    r2Persist: join(state, "v3/r2"),
    handleRuntimeStdio: (...streams) => streams.forEach((stream) => stream.resume()),
  });
  await runtime.ready;
  const [a, b] = [await runtime.getWorker("a"), await runtime.getWorker("b")];
  const kv = await runtime.getKVNamespace("BLOBS", "a");
  const blobs = bucket ? await runtime.getR2Bucket("SEGMENTS", "a") : kv;
  return { runtime, a, b, kv, blobs };
}

/** Sends a request to an instance. The status must be `status`. */
async function send(instance, status, method, path, body, type = "application/json") {
  const headers = { host: "127.0.0.1", ...(body === undefined ? {} : { "content-type": type }) };
  const answer = await instance.fetch(`http://127.0.0.1${path}`, { method, headers, body });
  const found = await answer.text();
  assert.equal(answer.status, status, `${method} ${path}: ${found.slice(0, 500)}`);
  return found;
}

const rows = async (instance, q) =>
  JSON.parse(await send(instance, 200, "POST", `${ITS}/query/aql`, JSON.stringify({ q }))).rows;

/** Stores a document of each patient. */
async function add(instance, patients, weightOf) {
  const bulk = async (lines) => {
    const answer = await send(
      instance,
      200,
      "POST",
      `${V1}/ehr/bulk`,
      lines.join("\n"),
      "application/x-ndjson",
    );
    for (const line of answer.trim().split("\n"))
      if (JSON.parse(line).status !== undefined) assert.equal(JSON.parse(line).status, 201, line);
  };
  await bulk(patients.map((n) => JSON.stringify({ ehr_id: ehrId(n), ehr_status: null })));
  await bulk(
    patients.map((n) => `{"ehr_id":"${ehrId(n)}","composition":${front}${weightOf(n)}${behind}}`),
  );
}

const range = (from, count) => Array.from({ length: count }, (_, n) => from + n);
const template = (more) =>
  text("template/small.opt").replace("</template>", `<!--${more.repeat(30_000)}--></template>`);
const uploadTemplate = (instance, body, status = 201) =>
  send(instance, status, "POST", `${ITS}/definition/template/adl1.4`, body, "application/xml");
/** Returns the keys of the segments in a KV namespace or an R2 bucket. */
const keysOf = async (blobs) => {
  const { keys, objects } = await blobs.list({ prefix: "segment/" });
  return keys?.map(({ name }) => name) ?? objects.map(({ key }) => key);
};

/** Requests until the worker has written segments. */
async function compacted({ a, blobs }) {
  for (let round = 0; round < 600 && (await keysOf(blobs)).length < 4; round += 1) {
    await rows(a, EHRS);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.ok((await keysOf(blobs)).length >= 4, "no segments were written");
}

/** Fails unless both instances answer with the patients of `weights`. */
async function assertSame({ a, b }, weights, what) {
  const all = [...weights.values()];
  const expected = [[all.length, all.reduce((x, y) => x + y, 0), Math.max(...all)]];
  for (const [name, instance] of Object.entries({ a, b })) {
    assert.deepEqual(await rows(instance, QUERY), expected, `${what}, ${name}`);
    assert.deepEqual(await rows(instance, EHRS), [[all.length]], `${what}, EHRs, ${name}`);
  }
}

/** Fails unless both instances, asked twice, return the template with this mark. */
async function assertTemplate({ a, b }, mark) {
  for (const instance of [a, b, a, b]) {
    const path = `${ITS}/definition/template/adl1.4/weight.en.v2`;
    assert.equal(/<!--(.)/.exec(await send(instance, 200, "GET", path))?.[1], mark);
  }
}

/** Stores patients and adds their weights to `weights`. */
async function addTo(instance, weights, patients) {
  const weightOf = (n) => 30 + ((n * 7) % 90);
  await add(instance, patients, weightOf);
  for (const n of patients) weights.set(n, weightOf(n));
}

describe("stores", () => {
  for (const [faults, bucket] of [
    ["stale", false],
    ["failing", false],
    ["stale", true],
  ])
    test(`answers are those of the database if KV is ${faults}${bucket ? ", beside R2" : ""}`, async (t) => {
      const host = await open(freshState("attack-stores"), faults, bucket);
      t.after(() => host.runtime.dispose());
      const { a, b } = host;
      await uploadTemplate(a, template("1"));
      await assertTemplate(host, "1");
      for (const [remover, storer, mark] of [
        [b, a, "2"],
        [a, b, "3"],
      ]) {
        await send(remover, 200, "DELETE", `${V1}/admin/template/weight.en.v2`);
        await uploadTemplate(storer, template(mark));
        await assertTemplate(host, mark);
      }
      const weights = new Map();
      await addTo(a, weights, range(0, LEAST));
      await assertSame(host, weights, "rows");
      if (faults === "stale") await compacted(host);
      await assertSame(host, weights, "segments");
      await addTo(b, weights, range(LEAST, 100));
      await assertSame(host, weights, "rows behind segments");
      for (const [instance, n] of [
        [a, 3],
        [b, LEAST - 1],
      ]) {
        await send(instance, 204, "DELETE", `${V1}/admin/ehr/${ehrId(n)}`);
        weights.delete(n);
        await assertSame(host, weights, "a deletion");
      }
      for (let round = 0; round < 5; round += 1) await assertSame(host, weights, "compactions");
      await send(b, 204, "POST", `${V1}/admin/reset`, "{}");
      assert.deepEqual(await rows(a, QUERY), [[0, null, null]]);
      await uploadTemplate(b, template("4"));
      await assertTemplate(host, "4");
      weights.clear();
      await addTo(a, weights, range(0, LEAST));
      for (let round = 0; round < 3; round += 1) await assertSame(host, weights, "after a reset");
    });

  test("events of the timer change no answer during loads, deletions and a reset", async (t) => {
    const host = await open(freshState("attack-timer"), "");
    t.after(() => host.runtime.dispose());
    const { a, b } = host;
    const timers = () => [a, b].map((instance) => instance.scheduled({ cron: "17 3 * * *" }));
    const beside = async (work) => {
      const [first, , ...outcomes] = [...timers(), work()];
      await new Promise((resolve) => setTimeout(resolve, 20));
      const done = await Promise.all([first, ...outcomes, ...timers()]);
      for (const { outcome } of done.filter((each) => each?.outcome)) assert.equal(outcome, "ok");
    };
    await uploadTemplate(a, template("1"));
    const weights = new Map();
    await beside(() => addTo(a, weights, range(0, LEAST)));
    await assertSame(host, weights, "a load");
    await beside(() => addTo(b, weights, range(LEAST, LEAST)));
    await assertSame(host, weights, "another load");
    const gone = range(100, 20);
    await beside(() =>
      Promise.all(
        gone.map((n) => send(n % 2 ? a : b, 204, "DELETE", `${V1}/admin/ehr/${ehrId(n)}`)),
      ),
    );
    gone.forEach((n) => weights.delete(n));
    await assertSame(host, weights, "deletions");
    await beside(() => send(a, 204, "POST", `${V1}/admin/reset`, "{}"));
    weights.clear();
    await uploadTemplate(a, template("1"));
    await addTo(b, weights, range(0, 50));
    await Promise.all(timers());
    await assertSame(host, weights, "a reset");
  });

  test("requests are answered from the database if KV does not answer", async (t) => {
    const state = freshState("attack-hanging");
    let host = await open(state, "");
    t.after(() => host.runtime.dispose());
    const weights = new Map();
    await uploadTemplate(host.a, template("1"));
    await addTo(host.a, weights, range(0, LEAST));
    await compacted(host);
    await assertTemplate(host, "1");
    await host.runtime.dispose();
    host = await open(state, "hanging");
    const late = new Promise((_, reject) => {
      setTimeout(() => reject(new Error("no answer in 40 s")), 40_000).unref();
    });
    const answered = Promise.all([
      assertSame(host, weights, "without KV"),
      assertTemplate(host, "1"),
    ]);
    await Promise.race([answered, late]);
  });

  test("intact blobs of another deployment are not read", async (t) => {
    const filled = async (name, most) => {
      const host = await open(freshState(`attack-${name}`), "");
      t.after(() => host.runtime.dispose());
      await uploadTemplate(host.a, template("1"));
      await add(host.a, range(0, LEAST), (n) => most - (n % 50));
      await compacted(host);
      const heads = (await keysOf(host.kv)).filter((key) => key.endsWith("/head"));
      const read = async (key) => [key, await host.kv.get(key, "arrayBuffer")];
      const segments = await Promise.all(
        heads.map(async (head) => [await read(head), await read(head.replace(/head$/, "0"))]),
      );
      // Segments with the same content have values of about the same size.
      const bytes = ([[, head], [, value]]) => head.byteLength * 1_000_000 + value.byteLength;
      return { host, segments: segments.sort((x, y) => bytes(x) - bytes(y)) };
    };
    const own = await filled("own", 99);
    const expected = await rows(own.host.a, QUERY);
    const other = await filled("other", 199);
    assert.notDeepEqual(await rows(other.host.a, QUERY), expected);
    for (const [at, blobs] of own.segments.entries())
      for (const [which, [key]] of blobs.entries())
        await own.host.kv.put(key, other.segments[at][which][1]);
    assert.deepEqual(await rows(own.host.b, QUERY), expected);
  });
});
