// The access log in workerd. It has a database of its own, which unauthenticated callers cannot fill.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Issuer } from "./issuer.mjs";
import {
  ITS,
  V1,
  execute,
  freshState,
  root,
  start,
  startDev,
  startWith,
  testOfWorker,
} from "./server.mjs";

const EHR = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";
let issuer;
let state;
let server;
const as = (...roles) => issuer.as(...roles);
const get = (path, headers = {}) => server.send("GET", path, { headers });
const entries = async (query = "") =>
  (await get(`${V1}/admin/access-log?fetch=1000${query}`, as("audit"))).json.entries;

before(async () => {
  issuer = await Issuer.start();
  state = freshState("refusals");
  server = await start(state, { ...issuer.variables, AUTH: "jwt" });
});
after(async () => {
  await server?.stop();
  issuer.stop();
});

test("many requests without credentials make few log entries, which count the requests", async () => {
  const flood = 1_500;
  // Alone, because the order in which the server takes concurrent requests is its own.
  assert.equal((await get(`${V1}/ehr/${EHR}`)).status, 401);
  for (let sent = 0; sent < flood; sent += 50) {
    const paths = Array.from({ length: 50 }, (_, n) =>
      n % 2 ? `${V1}/ehr/${EHR}` : `${ITS}/definition/template/adl1.4`,
    );
    const statuses = (await Promise.all(paths.map((path) => get(path)))).map(
      ({ status }) => status,
    );
    assert.ok(
      statuses.every((status) => status === 401),
      String(statuses),
    );
  }
  const refused = (await entries()).filter((entry) => entry.who === "" && entry.status === 401);
  assert.equal(
    refused.reduce((sum, entry) => sum + entry.requests, 0),
    flood + 1,
  );
  assert.ok(refused.length <= 40, `${refused.length} entries`);
  assert.ok(
    refused.some(
      (entry) => entry.requests === 1 && entry.request_id !== "" && entry.ehr_id === EHR,
    ),
    "the first is kept whole",
  );
});

test("each access of an authenticated caller is recorded, and writes in the transaction of their changes", async () => {
  for (let i = 0; i < 8; i += 1)
    assert.equal((await get(`${V1}/admin/access-log`, as("read"))).status, 403);
  assert.equal(
    (await server.send("PUT", `${ITS}/ehr/${EHR}`, { headers: as("write") })).status,
    201,
  );
  assert.equal((await get(`${ITS}/ehr/${EHR}`, as("read"))).status, 200);
  const own = await entries("&who=ann");
  assert.equal(own.filter((entry) => entry.status === 403).length, 8);
  for (const operation of ["PUT ehr/{ehr_id}", "GET ehr/{ehr_id}"])
    assert.ok(
      own.some((entry) => entry.operation === operation && entry.ehr_id === EHR),
      operation,
    );
  const again = await entries("&who=ann");
  assert.equal(
    again.filter((entry) => entry.operation === "PUT ehr/{ehr_id}").length,
    1,
    "it is moved once",
  );
});

test("the database refuses to change entries and to remove young ones", async () => {
  await server.stop();
  await assert.rejects(execute(state, "DELETE FROM access_log", "LOG"), /kept for the days/);
  await assert.rejects(execute(state, "UPDATE access_log SET who = 'x'", "LOG"), /never changed/);
  await execute(
    state,
    "INSERT INTO access_log (time, who, issuer, operation, status, request_id) VALUES ('2001-01-01T00:00:00.000Z', 'old', '', '', 200, '')",
    "LOG",
  );
  await execute(state, "DELETE FROM access_log WHERE who = 'old'", "LOG");
  server = await start(state, { ...issuer.variables, AUTH: "jwt" });
  assert.ok((await entries("&who=ann")).length > 8);
});

testOfWorker("the nightly event removes entries older than LOG_RETENTION_DAYS", async () => {
  // With static files, the development server sends the event to them (cloudflare/workers-sdk#14177).
  const bare = (config) => config.replace(/\[assets\][\s\S]*?\n\n/, "");
  const vars = { ...issuer.variables, AUTH: "jwt", LOG_RETENTION_DAYS: "30" };
  const folder = join(root, "target/e2e/retained");
  let retained = await startWith("retained", bare, vars);
  const listed = async (who) =>
    (
      await retained.send("GET", `${V1}/admin/access-log?fetch=1000&who=${who}`, {
        headers: as("audit"),
      })
    ).json.entries;
  try {
    assert.equal(
      (await retained.send("PUT", `${ITS}/ehr/${EHR}`, { headers: as("write") })).status,
      201,
    );
    await retained.stop();
    await execute(
      folder,
      "INSERT INTO access_log (time, who, issuer, operation, status, request_id) VALUES ('2026-01-01T00:00:00.000Z', 'older', '', '', 200, '')",
      "LOG",
    );
    retained = await startDev(folder, vars, ["--config", `${folder}.toml`]);
    assert.equal((await listed("older")).length, 1);
    const answer = await retained.send("GET", "/cdn-cgi/handler/scheduled?cron=17+3+*+*+*");
    assert.equal(answer.status, 200, answer.text);
    await retained.says(/\{"level":"INFO","about":"maintenance"\}/);
    assert.deepEqual(await listed("older"), []);
    assert.ok((await listed("ann")).some((entry) => entry.operation === "PUT ehr/{ehr_id}"));
  } finally {
    await retained.stop();
  }
});

testOfWorker(
  "without a database for the log, requests that must be recorded are refused",
  async () => {
    const without = (config) =>
      config.replace(/\[\[d1_databases\]\]\nbinding = "LOG"\n(?:\w.*\n)*/, "");
    assert.notEqual(
      without(readFileSync(new URL("../../wrangler.toml", import.meta.url), "utf8")),
      readFileSync(new URL("../../wrangler.toml", import.meta.url), "utf8"),
    );
    const unlogged = await startWith("unlogged", without, { ...issuer.variables, AUTH: "jwt" });
    try {
      const answer = await unlogged.send("GET", `${V1}/definition/query`, {
        headers: as("read", "query"),
      });
      assert.equal(answer.status, 503, answer.text);
      assert.equal((await unlogged.send("GET", "/health")).status, 200);
    } finally {
      await unlogged.stop();
    }
  },
);

testOfWorker("KV holds nothing of the log", () => {
  const blobs = readdirSync(join(state, "v3/kv"), { recursive: true }).filter((name) =>
    name.includes("blobs/"),
  );
  assert.deepEqual(blobs, []);
});
