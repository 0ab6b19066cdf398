// Queries that need too much time or memory, in workerd. Neighbors are answered meanwhile. Memory stays
// bounded, and is released afterwards.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { partLeft, ticks } from "./attack/processors.mjs";
import { V1, freshState, sample, startDev, uploadTemplates } from "./server.mjs";

/**
 * The maximum wait of a neighbor, in milliseconds. It is divided by the part of the processors that
 * other programs left, as the bounds of the attacks are.
 */
const PATIENCE = 1_000;
/** The maximum bytes by which the memory of the server's processes may exceed that of the idle state. */
const SPARE = 200 * 1024 * 1024;

const data = sample();
let server;
let idle;

/** Returns ids and resident bytes of the runtime, without the proxy of the development server. */
function runtime() {
  const found = { pids: [], bytes: 0 };
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(stat);
      const fields = rest.split(" ");
      if (Number(fields[2]) !== server.child.pid || name !== "workerd") continue;
      found.pids.push(pid);
      found.bytes += Number(fields[21]) * 4096;
    } catch {
      // The process has ended.
    }
  }
  return found;
}

const resident = () => runtime().bytes;

const query = (body) => server.send("POST", `${V1}/query/aql`, { body: JSON.stringify(body) });
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs a bomb beside a neighbor that requests the health of the service repeatedly. */
async function beside(bomb) {
  let running = true;
  const before = ticks(...runtime().pids);
  const started = performance.now();
  const answered = bomb().finally(() => (running = false));
  let [longest, peak, asked] = [0, 0, 0];
  while (running) {
    const sent = performance.now();
    assert.equal((await server.send("GET", "/health")).status, 200);
    longest = Math.max(longest, performance.now() - sent);
    peak = Math.max(peak, resident());
    asked += 1;
    await wait(10);
  }
  const answer = await answered;
  const allowed = PATIENCE / partLeft(before, ticks(...runtime().pids));
  return { answer, longest, allowed, peak, asked, ms: performance.now() - started };
}

before(async () => {
  server = await startDev(freshState("starve"), { AUTH: "none" });
  await uploadTemplates(server, data);
  const ehrs = [...new Set(data.compositions.map((each) => each.ehr_id))];
  const lines = (all) => all.map((line) => JSON.stringify(line)).join("\n");
  const type = "application/x-ndjson";
  const stored = [
    lines(ehrs.map((ehr_id) => ({ ehr_id, ehr_status: null }))),
    lines(data.compositions.map(({ ehr_id, composition }) => ({ ehr_id, composition }))),
  ];
  for (const body of stored)
    assert.equal((await server.send("POST", `${V1}/ehr/bulk`, { body, type })).status, 200);
  assert.equal(
    (await server.rows("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c"))[0][0],
    data.compositions.length,
  );
  await wait(1_000);
  idle = resident();
});
after(() => server?.stop());

const elements = "ELEMENT a AND ELEMENT b AND ELEMENT c AND ELEMENT d";
const values = (count) =>
  Array.from(
    { length: count },
    (_, n) => `${n.toString(16).padStart(8, "0")}-0000-4000-8000-000000000000`,
  );
const bombs = [
  [
    "a join of four class expressions",
    408,
    () => query({ q: `SELECT count(a/name/value) AS n FROM EHR e CONTAINS (${elements})` }),
  ],
  [
    "a join within each document",
    408,
    () =>
      query({
        q: `SELECT count(a/name/value) AS n FROM EHR e CONTAINS COMPOSITION k CONTAINS (${elements} AND ELEMENT f)`,
      }),
  ],
  [
    "a join whose rows are wanted",
    408,
    () =>
      query({
        q: `SELECT a, b FROM EHR e CONTAINS (${elements}) WHERE a/name/value > b/name/value AND b/name/value > a/name/value ORDER BY b/name/value`,
      }),
  ],
  [
    "a join of which one side has no row",
    200,
    () =>
      query({
        q: `SELECT a, b FROM EHR e CONTAINS (${elements}) WHERE a/name/value = 'none' ORDER BY b/name/value`,
      }),
  ],
  [
    "a join that exists nowhere",
    200,
    () =>
      query({
        q: `SELECT k/uid/value FROM EHR e CONTAINS COMPOSITION k NOT CONTAINS (${elements} AND CLUSTER z[openEHR-EHR-CLUSTER.none.v1])`,
      }),
  ],
  [
    "whole documents, again for each of their nodes",
    200,
    () => query({ q: "SELECT DISTINCT c, l FROM COMPOSITION c CONTAINS LOCATABLE l LIMIT 100000" }),
  ],
  [
    "whole documents, again for each pair of their nodes",
    400,
    () =>
      query({
        q: "SELECT DISTINCT c, l, m FROM COMPOSITION c CONTAINS (LOCATABLE l AND LOCATABLE m) LIMIT 100000",
      }),
  ],
  [
    "a list of 50,000 uids",
    200,
    () =>
      query({
        q: "SELECT c FROM COMPOSITION c WHERE c/uid/value matches {$p}",
        query_parameters: { p: values(50_000) },
      }),
  ],
  [
    "a list of 300,000 uids",
    413,
    () =>
      query({
        q: "SELECT c FROM COMPOSITION c WHERE c/uid/value matches {$p}",
        query_parameters: { p: values(300_000).map((v) => v.slice(0, 20)) },
      }),
  ],
  [
    "an explanation",
    200,
    () =>
      server.send("POST", `${V1}/query/aql/explain`, {
        body: JSON.stringify({
          q: `SELECT count(a/name/value) AS n FROM EHR e CONTAINS (${elements})`,
        }),
      }),
  ],
];

for (const [name, status, bomb] of bombs) {
  test(`neighbors are answered beside ${name}`, async (t) => {
    const { answer, longest, allowed, peak, asked, ms } = await beside(bomb);
    t.diagnostic(
      `${answer.status} after ${ms.toFixed(0)} ms, ${asked} neighbors, the slowest ${longest.toFixed(0)} ms, ${((peak - idle) / 2 ** 20).toFixed(0)} MB above idle`,
    );
    assert.equal(answer.status, status, answer.text.slice(0, 500));
    assert.ok(longest <= allowed, `a neighbor waited ${longest} ms, ${allowed} are allowed`);
    assert.ok(peak <= idle + SPARE, `${peak} bytes, ${idle} when idle`);
  });
}

test("memory is released within a minute", async (t) => {
  let left = Infinity;
  for (let second = 0; second < 60 && left > SPARE; second += 1) {
    await server.send("GET", "/health");
    await wait(1_000);
    left = resident() - idle;
  }
  t.diagnostic(`${(left / 2 ** 20).toFixed(0)} MB above idle`);
  assert.ok(left <= SPARE, `${left} bytes more than when idle`);
  assert.equal(
    (await server.rows("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c"))[0][0],
    data.compositions.length,
  );
});
