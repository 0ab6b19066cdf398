// A database or a cache that was altered by another program. The worker refuses an altered document
// with an error that names the document, and answers all other requests.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  ITS,
  execute,
  freshState,
  sample,
  start,
  testOfWorker,
  uploadTemplates,
} from "./server.mjs";

const data = sample();
const [{ ehr_id: ehrId, composition }] = data.compositions;
const MARK = "Zarathustra Quux";
const path = `${ITS}/ehr/${ehrId}/composition`;
const get = (uid) => server.send("GET", `${path}/${uid}`);
const count = () =>
  server.send(
    "GET",
    `${ITS}/query/aql?q=${encodeURIComponent("SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c")}`,
  );
const exported = () => server.send("GET", `/v1/admin/export?limit=1000`);
let state, server, uid, good;

before(async () => {
  state = freshState("altered");
  server = await start(state, { AUTH: "none", ADMIN: "true" });
  await uploadTemplates(server, data);
  assert.equal((await server.send("PUT", `${ITS}/ehr/${ehrId}`)).status, 201);
  const commit = async (body) => {
    const answer = await server.send("POST", path, { body: JSON.stringify(body) });
    assert.equal(answer.status, 201, answer.text);
    return answer.headers.get("etag").replaceAll('"', "");
  };
  good = await commit(composition);
  uid = await commit({ ...composition, composer: { _type: "PARTY_IDENTIFIED", name: MARK } });
  for (const answer of [await get(uid), await get(good), await count(), await exported()])
    assert.equal(answer.status, 200, answer.text);
});
after(() => server.stop());

/** Executes SQL on the database while no worker runs. */
async function altered(sql) {
  await server.stop();
  await execute(state, sql);
  server = await start(state, { AUTH: "none", ADMIN: "true" });
}

async function refused(answer) {
  assert.equal(answer.status, 500, answer.text);
  const { message, code, errors } = answer.json;
  assert.ok(message.includes(uid) && !message.includes(MARK), message);
  assert.deepEqual(
    [code, errors.map((error) => [error.defining_code.code_string, error._ehr_id])],
    [500, [["SVC0601", ehrId]]],
  );
  const id = answer.headers.get("x-request-id");
  assert.match(id, /^[0-9a-f-]{36}$/);
  await server.says(new RegExp(`"level":"ERROR".*${id}`));
  const line = server.log
    .split("\n")
    .find((one) => one.includes('"level":"ERROR"') && one.includes(id));
  assert.ok(line.includes(uid) && !line.includes(MARK) && !line.includes(ehrId), line);
}

testOfWorker(
  "a definition whose copy in KV was cut, replaced or stored under another key is read from the database",
  async () => {
    const templates = `${ITS}/definition/template/adl1.4`;
    const { json } = await server.send("GET", templates);
    const ids = json.map(({ template_id }) => template_id);
    const read = async (id) => {
      const answer = await server.send("GET", `${templates}/${id}`, {
        headers: { accept: "application/xml" },
      });
      return [answer.status, answer.text];
    };
    const readAll = async () =>
      Object.fromEntries(await Promise.all(ids.map(async (id) => [id, await read(id)])));
    const intact = await readAll();
    const kv = await server.runtime.getKVNamespace("BLOBS");
    const { keys } = await kv.list();
    const names = keys.map(({ name }) => name).filter((name) => /definition\//.test(name));
    assert.ok(names.length >= 3, String(names));
    const entries = await Promise.all(names.map((name) => kv.get(name)));
    const damages = [
      (entry) => entry.slice(0, entry.length / 2),
      (entry) => entry.replace("<", " "),
      (entry) => entry.slice(entry.indexOf("\n") + 1),
      (_, at) => entries[(at + 1) % entries.length],
      () => "",
    ];
    for (const damaged of damages) {
      for (const [at, name] of names.entries()) await kv.put(name, damaged(entries[at], at));
      assert.deepEqual(await readAll(), intact, String(damaged));
    }
  },
);

test("an altered document is refused when it is read, queried or exported", async () => {
  await altered(
    `UPDATE version SET document = replace(document, '${MARK}', 'Somebody Else') WHERE document LIKE '%${MARK}%'`,
  );
  for (const read of [
    () => get(uid),
    () => get(`${uid.split("::")[0]}?version_at_time=2100-01-01T00:00:00Z`),
    count,
    exported,
  ])
    await refused(await read());
  assert.equal((await get(good)).status, 200);
  assert.equal((await server.send("GET", `${ITS}/ehr/${ehrId}`)).status, 200);
});

test("a document is readable again after its row was restored", async () => {
  await altered(`UPDATE version SET document = replace(document, 'Somebody Else', '${MARK}')`);
  for (const answer of [await get(uid), await count(), await exported()])
    assert.equal(answer.status, 200, answer.text);
});

test("a document whose layout was removed is refused", async () => {
  await altered(
    "DELETE FROM shape WHERE id IN (SELECT value FROM version v, json_each(v.shapes) WHERE v.kind = 1)",
  );
  await refused(await get(uid));
  assert.equal((await count()).status, 500);
});
