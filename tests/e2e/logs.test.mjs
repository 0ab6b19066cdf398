// The log of the worker: a line of JSON for each request, with its id. No line contains parts of
// documents, queries, paths or credentials.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { V1, execute, freshState, program, sample, start, uploadTemplates } from "./server.mjs";

const data = sample();
const { ehr_id: ehrId, composition } = data.compositions[0];
/** A word that occurs nowhere else. */
const MARK = "Zebulon7193";
/** A pressure that the template permits, and that occurs nowhere else. */
const NUMBER = "719.34243";
const vars = { AUTH: "none", ACCESS_LOG: "on", ADMIN: "true" };
const ids = [];
let state;
let server;
let earlier = "";

/** Sends a request, and records its id. */
async function send(method, path, options = {}) {
  const answer = await server.send(method, `${V1}${path}`, options);
  ids.push([answer.headers.get("x-request-id"), answer.status]);
  return answer;
}

before(async () => {
  state = freshState("logs");
  server = await start(state, vars);
  await uploadTemplates(server, data);
});
after(() => server.stop());

/** Waits until the lines of the log have arrived. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 500));

/** Returns the lines that the worker wrote, without those of the development server. */
const lines = () =>
  (earlier + server.log).split("\n").filter((line) => !/^\s*\[wrangler:info\]/.test(line));

/** Returns the document with the word in the value of each DV_TEXT and in the names of parties. */
function marked(value, key = "") {
  if (Array.isArray(value)) return value.map((item) => marked(item));
  if (value && typeof value === "object")
    return Object.fromEntries(
      Object.entries(value).map(([k, v]) => [k, marked(v, `${value._type ?? ""}.${k}`)]),
    );
  if (["DV_TEXT.value", "PARTY_IDENTIFIED.name"].includes(key)) return `${value} ${MARK}`;
  return value;
}

test("a day of work, with every kind of failure, leaves none of its content in the log", async () => {
  const status = {
    _type: "EHR_STATUS",
    archetype_node_id: "openEHR-EHR-EHR_STATUS.generic.v1",
    name: { _type: "DV_TEXT", value: MARK },
    subject: {
      _type: "PARTY_SELF",
      external_ref: {
        _type: "PARTY_REF",
        id: { _type: "GENERIC_ID", value: MARK, scheme: "s" },
        namespace: MARK,
        type: "PERSON",
      },
    },
    is_queryable: true,
    is_modifiable: true,
  };
  assert.equal((await send("PUT", `/ehr/${ehrId}`, { body: JSON.stringify(status) })).status, 201);
  assert.equal((await send("POST", "/ehr", { body: JSON.stringify(status) })).status, 409);
  assert.equal(
    (await send("GET", `/ehr?subject_id=${MARK}&subject_namespace=${MARK}`)).status,
    200,
  );
  assert.equal((await send("GET", `/ehr?subject_id=${MARK}&subject_namespace=other`)).status, 404);
  assert.equal((await send("GET", `/ehr/${MARK}`)).status, 404);
  const body = JSON.stringify(marked(composition)).replace(
    /"magnitude":[0-9.]+/,
    `"magnitude":${NUMBER}`,
  );
  assert.ok(body.includes(MARK) && body.includes(NUMBER));
  const committal = {
    "openEHR-AUDIT_DETAILS.committer": `name="${MARK}"`,
    "openEHR-AUDIT_DETAILS.description": `value="${MARK}"`,
  };
  const made = await send("POST", `/ehr/${ehrId}/composition`, {
    body,
    headers: { ...committal, "openehr-item-tag": `key="${MARK}"` },
  });
  assert.equal(made.status, 201, made.text);
  const uid = made.headers.get("etag").replaceAll('"', "");
  assert.equal((await send("GET", `/ehr/${ehrId}/composition/${uid}`)).status, 200);
  assert.equal((await send("GET", `/ehr/${ehrId}/composition/${MARK}`)).status, 404);
  assert.equal((await send("GET", `/ehr/${ehrId}/directory?path=${MARK}`)).status, 404);
  assert.equal(
    (
      await send("POST", `/ehr/${ehrId}/composition`, {
        body: `{"_type":"COMPOSITION","${MARK}":"${MARK}"}`,
      })
    ).status,
    400,
  );
  assert.equal(
    (await send("POST", `/ehr/${ehrId}/composition`, { body: `{"_type":"${MARK}` })).status,
    400,
  );
  assert.equal(
    (await send("POST", `/ehr/${ehrId}/composition`, { body: MARK, type: `text/${MARK}` })).status,
    415,
  );
  assert.equal(
    (
      await send("PUT", `/ehr/${ehrId}/composition/${uid.split("::")[0]}`, {
        body,
        headers: { "if-match": `${MARK}` },
      })
    ).status,
    400,
  );
  for (const [q, expected] of [
    [`SELECT c FROM COMPOSITION c WHERE c/name/value = '${MARK}'`, 200],
    [`SELECT c FROM COMPOSITION c WHERE c/${MARK} = 1`, 400],
    [`SELECT ${MARK} FRM`, 400],
    [
      `SELECT c FROM COMPOSITION c WHERE c/name/value matches TERMINOLOGY('expand', '${MARK}', 'url=${MARK}')`,
      501,
    ],
    [`SELECT c FROM EHR e CONTAINS CONTRIBUTION c WHERE c/uid/value = '${MARK}'`, 501],
  ]) {
    assert.equal(
      (await send("POST", "/query/aql", { body: JSON.stringify({ q }) })).status,
      expected,
      q,
    );
    await send("GET", `/query/aql?q=${encodeURIComponent(q)}&name=${MARK}`);
  }
  assert.equal((await send("GET", `/query/${MARK}?name=${MARK}`)).status, 404);
  assert.equal((await send("GET", `/nothing/${MARK}`)).status, 404);
  assert.equal((await send("GET", `/gdl/query/${ehrId}/${MARK}`)).status, 404);
  assert.equal(
    (
      await send("POST", "/gdl/query", {
        body: JSON.stringify({ guide_id: MARK, ehr_ids: [MARK] }),
      })
    ).status,
    404,
  );
  assert.equal(
    (
      await send("POST", "/demographic/person", {
        body: JSON.stringify({ _type: "PERSON", name: { _type: "DV_TEXT", value: MARK } }),
      })
    ).status,
    400,
  );
  assert.equal(
    (
      await send("GET", "/definition/query", {
        headers: { authorization: `Bearer ${MARK}`, cookie: MARK },
      })
    ).status,
    200,
  );
  // The database lacks a table. Every request fails, and the logged message does not quote the request.
  await settled();
  await server.stop();
  earlier = server.log;
  // The program would not start on such a database.
  if (program) server = await start(state, vars);
  await execute(state, "ALTER TABLE version RENAME TO lost");
  if (!program) server = await start(state, vars);
  const failed = await send("POST", `/ehr/${ehrId}/composition`, {
    body: JSON.stringify(composition),
    headers: committal,
  });
  assert.deepEqual([failed.status, failed.headers.get("retry-after")], [503, "5"], failed.text);
  await settled();
  const text = lines().join("\n");
  for (const secret of [MARK, NUMBER])
    assert.ok(
      !text.includes(secret),
      lines().find((line) => line.includes(secret)),
    );
});

test("every request has its line, with the id of its answer", () => {
  const told = new Map();
  for (const line of lines()) {
    const json = /\{"(?:timestamp|about|level|method).*\}/.exec(line)?.[0];
    if (!json) continue;
    const said = JSON.parse(json);
    if (said.request_id) told.set(said.request_id, said);
  }
  assert.ok(ids.length > 25);
  for (const [id, status] of ids) {
    assert.match(id, /^[0-9a-f-]{36}$/);
    assert.equal(told.get(id)?.status, status, `${id} ${status}`);
  }
  const failed = told.get(ids.at(-1)[0]);
  assert.deepEqual([failed.level, failed.operation], ["ERROR", "POST ehr/{ehr_id}/composition"]);
  assert.match(failed.problem, /no such table/);
});
