// Segments in workerd. The worker writes segments to KV after requests. It reads the rows of damaged and
// absent segments from the database, and uses R2 when a bucket is bound.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Miniflare } from "miniflare";
import { ITS, V1, freshState, root } from "./server.mjs";

/** The number of versions without a segment at which the worker writes a segment. */
const LEAST = 512;
const text = (path) => readFileSync(join(root, "tests/cases", path), "utf8");
const [front, behind] = JSON.stringify(
  JSON.parse(text("rest/weight.json").replace("72.50", "4711.0")),
).split(/4711(?:\.0)?/);
const hex = (number, digits) => number.toString(16).padStart(digits, "0");
const ehrId = (n) => `${hex((n * 2654435761) % 2 ** 32, 8)}-0000-4000-8000-${hex(n, 12)}`;
/** Returns the weight of a patient, with the decimals that were sent. */
const weight = (n) => `${50 + (n % 90)}.${n % 10}0`;
const WEIGHT = "o/data/events/data/items/value/magnitude";
const QUERIES = [
  `SELECT ${WEIGHT} AS kg FROM EHR e CONTAINS OBSERVATION o WHERE ${WEIGHT} >= 100 ORDER BY kg DESC LIMIT 20`,
  `SELECT count(*) AS n, avg(${WEIGHT}) AS mean, max(${WEIGHT}) AS most FROM OBSERVATION o`,
  `SELECT e/ehr_id/value AS ehr, ${WEIGHT} AS kg FROM EHR e CONTAINS OBSERVATION o WHERE ${WEIGHT} = 77.70 ORDER BY ehr`,
  "SELECT count(*) AS n FROM EHR e",
];

/** Starts the worker on a state, with a KV namespace and optionally an R2 bucket. */
async function open(state, hasBucket) {
  const worker = new Miniflare({
    modules: [
      { type: "ESModule", path: join(root, "dist/worker/index.js") },
      { type: "CompiledWasm", path: join(root, "dist/worker/aqlite_worker_bg.wasm") },
    ],
    modulesRoot: root,
    host: "127.0.0.1",
    port: 0,
    compatibilityDate: "2026-04-01",
    d1Databases: {
      DB: "DB",
      LOG: "LOG",
    },
    d1Persist: join(state, "v3/d1"),
    kvNamespaces: ["BLOBS"],
    kvPersist: join(state, "v3/kv"),
    r2Buckets: hasBucket ? ["SEGMENTS"] : [],
    r2Persist: join(state, "v3/r2"),
    bindings: { AUTH: "none", ADMIN: "true", SYSTEM_ID: "aqlite.local" },
    handleRuntimeStdio: (...streams) => streams.forEach((stream) => stream.resume()),
  });
  const address = await worker.ready;
  const send = async (status, method, path, body, type = "application/json") => {
    const headers = { "content-type": type };
    const answer = await fetch(new URL(path, address), { method, headers, body });
    const found = await answer.text();
    assert.equal(answer.status, status, `${method} ${path}: ${found.slice(0, 500)}`);
    return found;
  };
  const ask = async (q) =>
    JSON.parse(await send(200, "POST", `${ITS}/query/aql`, JSON.stringify({ q }))).rows;
  const rows = async () => JSON.stringify(await Promise.all(QUERIES.map(ask)));
  return { worker, send, rows };
}

const kvKeys = async (worker) => {
  const { keys } = await (await worker.getKVNamespace("BLOBS")).list({ prefix: "segment/" });
  return keys.map(({ name }) => name);
};
const bucketKeys = async (worker) => {
  const { objects } = await (await worker.getR2Bucket("SEGMENTS")).list({ prefix: "segment/" });
  return objects.map(({ key }) => key);
};

/** Creates patients with one document each. */
async function add({ send }, patients) {
  const lines = (each) => patients.map(each).join("\n");
  const bulk = async (path, body) => {
    const answer = await send(200, "POST", path, body, "application/x-ndjson");
    for (const line of answer.trim().split("\n"))
      if (JSON.parse(line).status !== undefined) assert.equal(JSON.parse(line).status, 201, line);
  };
  await bulk(
    `${V1}/ehr/bulk`,
    lines((n) => JSON.stringify({ ehr_id: ehrId(n), ehr_status: null })),
  );
  await bulk(
    `${V1}/ehr/bulk`,
    lines((n) => `{"ehr_id":"${ehrId(n)}","composition":${front}${weight(n)}${behind}}`),
  );
}

/** Waits until `keys` is true, as a result of a compaction after the last request. */
async function until(server, holds, what) {
  for (let round = 0; round < 600; round += 1) {
    if (await holds()) return;
    // The worker starts a compaction only after a request.
    await server.rows();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail(`not within a minute: ${what}`);
}

test("queries return the rows of the database whether segments are intact, damaged or absent", async (t) => {
  const state = freshState("segments");
  let server = await open(state, false);
  // A running worker would keep the test process alive, also after a failure.
  t.after(() => server.worker.dispose());
  await server.send(
    201,
    "POST",
    `${ITS}/definition/template/adl1.4`,
    text("template/small.opt"),
    "application/xml",
  );
  const patients = (from, count) => Array.from({ length: count }, (_, n) => from + n);
  await add(server, patients(0, LEAST));
  await until(server, async () => (await kvKeys(server.worker)).length > 1, "segments in KV");
  let expected = await server.rows();
  const [tops, [[count, , most]], chosen, [[ehrs]]] = JSON.parse(expected);
  assert.equal(tops.length, 20);
  assert.deepEqual([count, most, ehrs], [LEAST, 139.9, LEAST]);
  assert.ok(chosen.length > 0);

  // A new process has no parts in memory, so it reads each damaged blob.
  const damaged = await kvKeys(server.worker);
  await server.worker.dispose();
  server = await open(state, false);
  const again = await server.worker.getKVNamespace("BLOBS");
  for (const key of damaged) await again.put(key, "damaged");
  assert.equal(await server.rows(), expected, "damaged blobs");
  await until(
    server,
    async () => !(await kvKeys(server.worker)).some((key) => damaged.includes(key)),
    "damaged segments are replaced",
  );
  assert.equal(await server.rows(), expected, "replaced segments");
  const kept = await kvKeys(server.worker);
  await server.worker.dispose();

  // With a bucket, segments in KV are still read, and new ones are written to the bucket.
  server = await open(state, true);
  assert.equal(await server.rows(), expected, "segments in KV beside a bucket");
  assert.deepEqual(await bucketKeys(server.worker), []);
  await add(server, patients(LEAST, LEAST));
  await until(server, async () => (await bucketKeys(server.worker)).length > 1, "segments in R2");
  assert.deepEqual(await kvKeys(server.worker), kept);
  expected = await server.rows();
  assert.deepEqual(JSON.parse(expected)[3], [[2 * LEAST]]);
  const inBucket = await bucketKeys(server.worker);
  await server.worker.dispose();
  server = await open(state, true);
  assert.equal(await server.rows(), expected, "segments of both stores in a new process");

  // A physical deletion removes the blobs with data of the patient from both stores.
  for (const n of [0, LEAST]) await server.send(204, "DELETE", `${V1}/admin/ehr/${ehrId(n)}`);
  const left = [...(await kvKeys(server.worker)), ...(await bucketKeys(server.worker))];
  assert.ok(!left.some((key) => kept.includes(key) && key.endsWith("/head")), "blobs left in KV");
  assert.ok(left.filter((key) => inBucket.includes(key)).length < inBucket.length);
  const rest = JSON.parse(await server.rows());
  assert.deepEqual([rest[1][0][0], rest[3]], [2 * LEAST - 2, [[2 * LEAST - 2]]]);
});
