// The usual work with a repository in workerd: upload, commit, query, conflicts, and the same data after
// a restart.
import assert from "node:assert/strict";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ITS, V1, freshState, sample, start, testOfWorker, uploadTemplates } from "./server.mjs";

const data = sample();
const { ehr_id: ehrId } = data.compositions[0];
const mine = data.compositions
  .filter((entry) => entry.ehr_id === ehrId)
  .map((entry) => entry.composition);
let state;
let server;

before(async () => {
  state = freshState("repository");
  server = await start(state);
});
after(() => server.stop());

const commit = (composition) =>
  server.send("POST", `${ITS}/ehr/${ehrId}/composition`, { body: JSON.stringify(composition) });
const count = async () =>
  (await server.rows("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c"))[0][0];

test("both mounts describe themselves", async () => {
  for (const [base, version] of [
    [V1, "0.9.2"],
    [ITS, "1.0.3"],
  ]) {
    const answer = await server.send("OPTIONS", `${base}/`);
    assert.equal(answer.status, 200);
    assert.equal(answer.json.solution, "aqlite");
    assert.equal(answer.json.restapi_specs_version, version);
    assert.ok(answer.headers.get("allow"));
  }
});

test("a template is uploaded once and returned byte for byte", async () => {
  await uploadTemplates(server, data);
  const again = await server.send("POST", `${ITS}/definition/template/adl1.4`, {
    body: data.templates[0],
    type: "application/xml",
  });
  assert.equal(again.status, 409);
  const list = await server.send("GET", `${V1}/definition/template`);
  assert.equal(list.json.length, data.templates.length);
  const id = /<template_id>\s*<value>([^<]*)</.exec(data.templates[0])[1];
  const got = await server.send(
    "GET",
    `${ITS}/definition/template/adl1.4/${encodeURIComponent(id)}`,
    { headers: { accept: "application/xml" } },
  );
  assert.equal(got.status, 200);
  assert.equal(got.text, data.templates[0]);
});

test("an EHR is created once", async () => {
  const made = await server.send("PUT", `${ITS}/ehr/${ehrId}`);
  assert.equal(made.status, 201);
  assert.equal(made.headers.get("etag"), `"${ehrId}"`);
  assert.equal((await server.send("PUT", `${ITS}/ehr/${ehrId}`)).status, 409);
  assert.equal((await server.send("GET", `${V1}/ehr/${ehrId}`)).status, 200);
});

test("a composition is committed, updated and read in each version", async () => {
  const made = await commit(mine[0]);
  assert.equal(made.status, 201, made.text);
  const first = made.headers.get("etag").replaceAll('"', "");
  const object = first.split("::")[0];
  assert.match(first, /^[0-9a-f-]{36}::aqlite\.local::1$/);
  const path = `${ITS}/ehr/${ehrId}/composition`;
  const got = await server.send("GET", `${path}/${first}`);
  assert.equal(got.status, 200);
  assert.deepEqual(got.json.content, mine[0].content);

  const body = JSON.stringify({ ...mine[0], uid: undefined });
  const put = await server.send("PUT", `${path}/${object}`, {
    body,
    headers: { "if-match": `"${first}"` },
  });
  assert.equal(put.status, 204, put.text);
  const second = put.headers.get("etag").replaceAll('"', "");
  assert.ok(second.endsWith("::2"));

  const stale = await server.send("PUT", `${path}/${object}`, {
    body,
    headers: { "if-match": `"${first}"` },
  });
  assert.equal(stale.status, 412);
  assert.equal(stale.headers.get("etag").replaceAll('"', ""), second);
  const unguarded = await server.send("PUT", `${path}/${object}`, { body });
  assert.equal(unguarded.status, 400);

  assert.equal((await server.send("DELETE", `${path}/${first}`)).status, 409);
  const removed = await server.send("DELETE", `${path}/${second}`);
  assert.equal(removed.status, 204);
  assert.equal((await server.send("GET", `${path}/${object}`)).status, 204);
  assert.equal((await server.send("GET", `${path}/${first}`)).status, 200);
});

test("of two writers with the same If-Match, one succeeds", async () => {
  const made = await commit(mine[0]);
  const first = made.headers.get("etag");
  const path = `${ITS}/ehr/${ehrId}/composition/${first.replaceAll('"', "").split("::")[0]}`;
  const put = () =>
    server.send("PUT", path, { body: JSON.stringify(mine[0]), headers: { "if-match": first } });
  const statuses = (await Promise.all([put(), put(), put(), put()])).map((answer) => answer.status);
  assert.equal(statuses.filter((status) => status < 300).length, 1, String(statuses));
  assert.ok(
    statuses.filter((status) => status >= 300).every((status) => status === 412),
    String(statuses),
  );
});

test("a stored query runs under its name on both mounts", async () => {
  const q =
    "SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c WHERE e/ehr_id/value = $ehr";
  const put = () =>
    server.send("PUT", `${V1}/query/org.example::mine/1.0.0`, { body: JSON.stringify({ q }) });
  assert.equal((await put()).status, 200);
  assert.equal((await put()).status, 409);
  const found = await server.send("GET", `${V1}/query/org.example::mine/1.0.0?ehr=${ehrId}`);
  assert.equal(found.status, 200, found.text);
  assert.equal(found.json.rows.length, 1);
  const its = await server.send("POST", `${ITS}/query/org.example::mine`, {
    body: JSON.stringify({ query_parameters: { ehr: ehrId } }),
  });
  assert.deepEqual(its.json.rows, found.json.rows);
  assert.equal((await server.send("GET", `${V1}/query/org.example::other/1.0.0`)).status, 404);
  const list = await server.send("GET", `${V1}/definition/query/org.example`);
  assert.equal(list.json.length, 1);
});

test("guides are stored and run", async () => {
  for (const guide of data.guides) {
    const put = await server.send("POST", `${V1}/definition/gdl`, { body: guide });
    assert.equal(put.status, 201, put.text);
  }
  const list = await server.send("GET", `${V1}/definition/gdl`);
  assert.equal(list.json.length, data.guides.length);
  const { id } = JSON.parse(data.guides[0]);
  const ran = await server.send("GET", `${V1}/gdl/query/${ehrId}/${id}`);
  assert.equal(ran.status, 200, ran.text);
  assert.equal((await server.send("GET", `${V1}/gdl/query/${ehrId}/no_such_guide.v1`)).status, 404);
});

test("commits survive a restart", async () => {
  for (const composition of mine.slice(1, 6)) assert.equal((await commit(composition)).status, 201);
  const before = await count();
  const uids = await server.rows(
    "SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c ORDER BY c/uid/value",
  );
  await server.stop();
  server = await start(state);
  assert.equal(await count(), before);
  assert.deepEqual(
    await server.rows(
      "SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c ORDER BY c/uid/value",
    ),
    uids,
  );
  const got = await server.send("GET", `${V1}/ehr/${ehrId}/composition/${uids[0][0]}`);
  assert.equal(got.status, 200);
  assert.equal(
    (await server.send("GET", `${V1}/query/org.example::mine/1.0.0?ehr=${ehrId}`)).status,
    200,
  );
});

testOfWorker("large definitions are cached in KV and read from there unchanged", async () => {
  const id = /<template_id>\s*<value>([^<]*)</.exec(data.templates[0])[1];
  const get = () =>
    server.send("GET", `${ITS}/definition/template/adl1.4/${encodeURIComponent(id)}`, {
      headers: { accept: "application/xml" },
    });
  const [first, second] = [await get(), await get()];
  assert.equal(first.text, data.templates[0]);
  assert.equal(second.text, first.text);
  assert.equal(second.headers.get("etag"), first.headers.get("etag"));
  assert.ok(
    readdirSync(join(state, "v3/kv"), { recursive: true }).some((name) => name.includes("blobs")),
    "KV holds a blob",
  );
});

testOfWorker("after KV was emptied, every request is answered as before", async () => {
  const template = /<template_id>\s*<value>([^<]*)</.exec(data.templates[0])[1];
  const { id: guide } = JSON.parse(data.guides[0]);
  const asks = [
    `${ITS}/definition/template/adl1.4/${encodeURIComponent(template)}`,
    `${ITS}/definition/template/adl1.4`,
    `${V1}/definition/query`,
    `${V1}/definition/gdl/${guide}`,
    `${ITS}/ehr/${ehrId}`,
    `${V1}/query/org.example::mine/1.0.0?ehr=${ehrId}`,
  ];
  const answers = () =>
    Promise.all(
      asks.map(async (path) => {
        const { status, text, json } = await server.send("GET", path);
        return [status, json?.rows ?? text];
      }),
    );
  const before = await answers();
  assert.deepEqual(
    before.map(([status]) => status),
    asks.map(() => 200),
  );
  await server.stop();
  rmSync(join(state, "v3/kv"), { recursive: true });
  server = await start(state);
  assert.deepEqual(await answers(), before);
  assert.equal((await commit(mine[0])).status, 201, "a template is there to check it by");
  assert.equal((await server.send("GET", `${V1}/gdl/query/${ehrId}/${guide}`)).status, 200);
});

test("without AUTH a worker answers OPTIONS and health only", async () => {
  const closed = await start(freshState("repository-closed"), {});
  try {
    assert.equal((await closed.send("OPTIONS", `${V1}/`)).status, 200);
    assert.equal((await closed.send("GET", "/health")).status, 200);
    for (const base of [V1, ITS]) {
      for (const [method, path] of [
        ["GET", `/ehr/${ehrId}`],
        ["GET", "/query/aql?q=SELECT%201"],
        ["GET", "/definition/query"],
        ["PUT", `/ehr/${ehrId}`],
      ]) {
        const answer = await closed.send(method, base + path);
        assert.ok([401, 403].includes(answer.status), `${method} ${base}${path}: ${answer.status}`);
      }
    }
  } finally {
    await closed.stop();
  }
});
