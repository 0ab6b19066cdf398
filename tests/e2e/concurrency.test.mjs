// Many clients at once: one wins, nothing is written by halves, and caches stay right after a batch that failed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ITS, V1, freshState, sample, start, uploadTemplates } from "./server.mjs";

const CLIENTS = 50;
const data = sample();
const { ehr_id: ehrId, composition } = data.compositions[0];
const body = JSON.stringify({ ...composition, uid: undefined });
let server;

before(async () => {
  server = await start(freshState("concurrency"));
  await uploadTemplates(server, data);
  assert.equal((await server.send("PUT", `${ITS}/ehr/${ehrId}`)).status, 201);
});
after(() => server.stop());

const race = async (one) => (await Promise.all(Array.from({ length: CLIENTS }, (_, index) => one(index)))).map((answer) => answer.status);
const tally = (statuses, status) => statuses.filter((each) => each === status).length;
const count = async () => (await server.rows("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c"))[0][0];
const audit = (code) => ({
  _type: "AUDIT_DETAILS",
  system_id: "client",
  committer: { _type: "PARTY_IDENTIFIED", name: "Dr. Ek" },
  change_type: { _type: "DV_CODED_TEXT", value: "-", defining_code: { _type: "CODE_PHRASE", terminology_id: { _type: "TERMINOLOGY_ID", value: "openehr" }, code_string: code } },
});

test("of 50 clients with one If-Match exactly one wins", async () => {
  const made = await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, { body });
  const uid = made.headers.get("etag").replaceAll('"', "");
  const object = uid.split("::")[0];
  const statuses = await race(() => server.send("PUT", `${ITS}/ehr/${ehrId}/composition/${object}`, { body, headers: { "if-match": `"${uid}"` } }));
  assert.deepEqual([tally(statuses, 204), tally(statuses, 412)], [1, CLIENTS - 1], String(statuses));
  const history = await server.send("GET", `${ITS}/ehr/${ehrId}/versioned_composition/${object}/revision_history`);
  assert.equal(history.json.items.length, 2);
});

test("of 50 clients that store one version of a query one is answered 200, all others 409", async () => {
  const put = (index) => server.send("PUT", `${V1}/query/org.example::race/1.0.0`, { body: JSON.stringify({ q: `SELECT e/ehr_id/value AS a${index} FROM EHR e` }) });
  const statuses = await race(put);
  assert.deepEqual([tally(statuses, 200), tally(statuses, 409)], [1, CLIENTS - 1], String(statuses));
  const columns = await Promise.all(Array.from({ length: 5 }, () => server.send("GET", `${V1}/query/org.example::race/1.0.0?offset=0`)));
  assert.equal(new Set(columns.map((answer) => answer.json.columns[0].name)).size, 1);
});

test("of 50 clients that create one EHR or one directory one wins", async () => {
  const other = "0d9f2e1c-6f6c-4a3a-9d5e-3f0e8f6c1a77";
  const ehrs = await race(() => server.send("PUT", `${ITS}/ehr/${other}`));
  assert.deepEqual([tally(ehrs, 201), tally(ehrs, 409)], [1, CLIENTS - 1], String(ehrs));
  const folder = JSON.stringify({ _type: "FOLDER", name: { _type: "DV_TEXT", value: "root" }, archetype_node_id: "openEHR-EHR-FOLDER.generic.v1" });
  const folders = await race(() => server.send("POST", `${ITS}/ehr/${other}/directory`, { body: folder }));
  assert.deepEqual([tally(folders, 201), tally(folders, 409)], [1, CLIENTS - 1], String(folders));
});

test("a contribution of 20 members with a bad one writes nothing, and what follows is right", async () => {
  const before = await count();
  const member = (index) => ({ commit_audit: audit("249"), data: index === 13 ? { ...composition, language: undefined } : composition });
  const versions = Array.from({ length: 20 }, (_, index) => member(index));
  const refused = await server.send("POST", `${ITS}/ehr/${ehrId}/contribution`, { body: JSON.stringify({ versions, audit: audit("249") }) });
  assert.equal(refused.status, 400, refused.text);
  assert.match(refused.text, /versions\[13\]/);
  assert.equal(await count(), before);
  const stale = versions.slice(0, 3).concat([{ commit_audit: audit("251"), preceding_version_uid: { value: `${ehrId}::aqlite.local::1` }, data: composition }]);
  const late = await server.send("POST", `${ITS}/ehr/${ehrId}/contribution`, { body: JSON.stringify({ versions: stale, audit: audit("249") }) });
  assert.equal(late.status, 409, late.text);
  assert.equal(await count(), before);
  const whole = await server.send("POST", `${ITS}/ehr/${ehrId}/contribution`, { body: JSON.stringify({ versions: versions.filter((_, index) => index !== 13), audit: audit("249") }) });
  assert.equal(whole.status, 201, whole.text);
  assert.equal(await count(), before + 19);
});

test("pages of a growing repository neither repeat nor lose a row", async () => {
  const q = `SELECT c/uid/value AS uid FROM EHR e[ehr_id/value='${ehrId}'] CONTAINS COMPOSITION c`;
  const seen = (await server.rows(q)).map(([uid]) => uid);
  const found = [];
  for (let offset = 0; offset < seen.length; offset += 5) {
    const page = await server.send("POST", `${V1}/query/aql`, { body: JSON.stringify({ q, offset, fetch: 5 }) });
    found.push(...page.json.rows.map(([uid]) => uid));
    await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, { body });
  }
  assert.deepEqual(found.slice(0, seen.length), seen);
});
