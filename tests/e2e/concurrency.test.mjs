// Many clients at once. One of several conflicting writes succeeds, no write is stored in part, and
// caches stay valid after a failed batch.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ITS, V1, freshState, sample, start, uploadTemplates } from "./server.mjs";

const CLIENTS = 50;
const data = sample();
const { ehr_id: ehrId, composition } = data.compositions[0];
const body = JSON.stringify({ ...composition, uid: undefined });
let server;

before(async () => {
  server = await start(freshState("concurrency"), { AUTH: "none", ADMIN: "true" });
  await uploadTemplates(server, data);
  assert.equal((await server.send("PUT", `${ITS}/ehr/${ehrId}`)).status, 201);
});
after(() => server.stop());

const race = async (one) =>
  (await Promise.all(Array.from({ length: CLIENTS }, (_, index) => one(index)))).map(
    (answer) => answer.status,
  );
const tally = (statuses, status) => statuses.filter((each) => each === status).length;
const count = async () =>
  (await server.rows("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c"))[0][0];
const audit = (code) => ({
  _type: "AUDIT_DETAILS",
  system_id: "client",
  committer: { _type: "PARTY_IDENTIFIED", name: "Dr. Ek" },
  change_type: {
    _type: "DV_CODED_TEXT",
    value: "-",
    defining_code: {
      _type: "CODE_PHRASE",
      terminology_id: { _type: "TERMINOLOGY_ID", value: "openehr" },
      code_string: code,
    },
  },
});

test("of 50 clients with the same If-Match, exactly one succeeds", async () => {
  const made = await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, { body });
  const uid = made.headers.get("etag").replaceAll('"', "");
  const object = uid.split("::")[0];
  const statuses = await race(() =>
    server.send("PUT", `${ITS}/ehr/${ehrId}/composition/${object}`, {
      body,
      headers: { "if-match": `"${uid}"` },
    }),
  );
  assert.deepEqual(
    [tally(statuses, 204), tally(statuses, 412)],
    [1, CLIENTS - 1],
    String(statuses),
  );
  const history = await server.send(
    "GET",
    `${ITS}/ehr/${ehrId}/versioned_composition/${object}/revision_history`,
  );
  assert.equal(history.json.items.length, 2);
});

test("of 50 clients that store the same version of a query, one is answered 200 and all others 409", async () => {
  const put = (index) =>
    server.send("PUT", `${V1}/query/org.example::race/1.0.0`, {
      body: JSON.stringify({ q: `SELECT e/ehr_id/value AS a${index} FROM EHR e` }),
    });
  const statuses = await race(put);
  assert.deepEqual(
    [tally(statuses, 200), tally(statuses, 409)],
    [1, CLIENTS - 1],
    String(statuses),
  );
  const columns = await Promise.all(
    Array.from({ length: 5 }, () =>
      server.send("GET", `${V1}/query/org.example::race/1.0.0?offset=0`),
    ),
  );
  assert.equal(new Set(columns.map((answer) => answer.json.columns[0].name)).size, 1);
});

test("of 50 clients that create the same EHR or directory, one succeeds", async () => {
  const other = "0d9f2e1c-6f6c-4a3a-9d5e-3f0e8f6c1a77";
  const ehrs = await race(() => server.send("PUT", `${ITS}/ehr/${other}`));
  assert.deepEqual([tally(ehrs, 201), tally(ehrs, 409)], [1, CLIENTS - 1], String(ehrs));
  const folder = JSON.stringify({
    _type: "FOLDER",
    name: { _type: "DV_TEXT", value: "root" },
    archetype_node_id: "openEHR-EHR-FOLDER.generic.v1",
  });
  const folders = await race(() =>
    server.send("POST", `${ITS}/ehr/${other}/directory`, { body: folder }),
  );
  assert.deepEqual([tally(folders, 201), tally(folders, 409)], [1, CLIENTS - 1], String(folders));
});

test("a contribution of 20 members with a bad one writes nothing, and the next one succeeds", async () => {
  const before = await count();
  const member = (index) => ({
    commit_audit: audit("249"),
    data: index === 13 ? { ...composition, language: undefined } : composition,
  });
  const versions = Array.from({ length: 20 }, (_, index) => member(index));
  const refused = await server.send("POST", `${ITS}/ehr/${ehrId}/contribution`, {
    body: JSON.stringify({ versions, audit: audit("249") }),
  });
  assert.equal(refused.status, 400, refused.text);
  assert.match(refused.text, /versions\[13\]/);
  assert.equal(await count(), before);
  const stale = versions.slice(0, 3).concat([
    {
      commit_audit: audit("251"),
      preceding_version_uid: { value: `${ehrId}::aqlite.local::1` },
      data: composition,
    },
  ]);
  const late = await server.send("POST", `${ITS}/ehr/${ehrId}/contribution`, {
    body: JSON.stringify({ versions: stale, audit: audit("249") }),
  });
  assert.equal(late.status, 409, late.text);
  assert.equal(await count(), before);
  const whole = await server.send("POST", `${ITS}/ehr/${ehrId}/contribution`, {
    body: JSON.stringify({
      versions: versions.filter((_, index) => index !== 13),
      audit: audit("249"),
    }),
  });
  assert.equal(whole.status, 201, whole.text);
  assert.equal(await count(), before + 19);
});

test("pages of a growing repository neither repeat nor lose a row", async () => {
  const q = `SELECT c/uid/value AS uid FROM EHR e[ehr_id/value='${ehrId}'] CONTAINS COMPOSITION c`;
  const seen = (await server.rows(q)).map(([uid]) => uid);
  const found = [];
  for (let offset = 0; offset < seen.length; offset += 5) {
    const page = await server.send("POST", `${V1}/query/aql`, {
      body: JSON.stringify({ q, offset, fetch: 5 }),
    });
    found.push(...page.json.rows.map(([uid]) => uid));
    await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, { body });
  }
  assert.deepEqual(found.slice(0, seen.length), seen);
});

test("nothing is committed after a lock, however many clients write while it is set", async () => {
  const status = (isModifiable) =>
    JSON.stringify({
      _type: "EHR_STATUS",
      name: { _type: "DV_TEXT", value: "EHR Status" },
      archetype_node_id: "openEHR-EHR-EHR_STATUS.generic.v1",
      archetype_details: {
        _type: "ARCHETYPED",
        archetype_id: { _type: "ARCHETYPE_ID", value: "openEHR-EHR-EHR_STATUS.generic.v1" },
        rm_version: "1.1.0",
      },
      subject: { _type: "PARTY_SELF" },
      is_queryable: true,
      is_modifiable: isModifiable,
    });
  const contribution = JSON.stringify({
    versions: [{ commit_audit: audit("249"), data: JSON.parse(body) }],
    audit: audit("249"),
  });
  const ndjson = "application/x-ndjson";
  const outcomes = new Map();
  for (let round = 0; round < 15; round += 1) {
    const id = crypto.randomUUID();
    assert.equal(
      (await server.send("PUT", `${ITS}/ehr/${id}`, { body: status(true) })).status,
      201,
    );
    const latest = (await server.send("GET", `${ITS}/ehr/${id}/ehr_status`)).headers.get("etag");
    const made = await server.send("POST", `${ITS}/ehr/${id}/composition`, { body });
    const uid = made.headers.get("etag").replaceAll('"', "");
    const exported = await server.send("GET", `${V1}/admin/export?ehr_id=${id}`);
    const imported = exported.text.split("\n").find((line) => line.includes(uid));
    const line = `{"ehr_id":"${id}","composition":${body}}`;
    const writes = [
      () => server.send("POST", `${ITS}/ehr/${id}/composition`, { body }),
      () => server.send("POST", `${ITS}/ehr/${id}/contribution`, { body: contribution }),
      () =>
        server.send("POST", `${V1}/ehr/bulk`, {
          body: Array.from({ length: 5 }, () => line).join("\n"),
          type: ndjson,
        }),
      () =>
        server.send("POST", `${V1}/ehr/bulk`, {
          body: `{"ehr_id":"${id}","contribution":${contribution}}`,
          type: ndjson,
        }),
      () =>
        server.send("PUT", `${ITS}/ehr/${id}/composition/${uid.split("::")[0]}`, {
          body,
          headers: { "if-match": `"${uid}"` },
        }),
      () => server.send("POST", `${ITS}/ehr/${id}/composition`, { body }),
    ];
    const lock = () =>
      server.send("PUT", `${ITS}/ehr/${id}/ehr_status`, {
        body: status(false),
        headers: { "if-match": latest },
      });
    const half = round % (writes.length + 1);
    const answers = await Promise.all(
      [...writes.slice(0, half), lock, ...writes.slice(half)].map((send) => send()),
    );
    assert.equal(answers[half].status, 204, answers[half].text);
    for (const answer of answers) {
      assert.ok(answer.status < 500, answer.text);
      outcomes.set(answer.status, (outcomes.get(answer.status) ?? 0) + 1);
    }
    const records = (await server.send("GET", `${V1}/admin/export?ehr_id=${id}&limit=1000`)).text
      .trim()
      .split("\n")
      .map((text) => JSON.parse(text).record);
    const locks = records.map(
      (record) =>
        record.versions?.some((version) => version.data?.is_modifiable === false) ?? false,
    );
    assert.equal(
      locks.indexOf(true),
      records.length - 2,
      `round ${round}: ${records.length - 2 - locks.indexOf(true)} contributions behind the lock`,
    );
    // The same rule holds for the lines of an import, in their order.
    const late = await server.send("POST", `${V1}/admin/import`, { body: imported, type: ndjson });
    assert.equal(JSON.parse(late.text).status, 200, late.text);
    const bulk = await server.send("POST", `${V1}/ehr/bulk`, { body: line, type: ndjson });
    assert.equal(JSON.parse(bulk.text).status, 409, bulk.text);
  }
  assert.ok(outcomes.get(409) > 0 && outcomes.get(201) > 0, JSON.stringify([...outcomes]));
});

test("parallel definitions without a version get consecutive versions", async () => {
  const names = Array.from({ length: 24 }, (_, index) => `1.0.${index}`);
  const path = `${ITS}/definition/query/org.example::parallel`;
  const stored = await Promise.all(
    names.map((_, index) =>
      server.send("PUT", path, {
        body: `SELECT e/ehr_id/value AS a${index} FROM EHR e`,
        type: "text/plain",
      }),
    ),
  );
  for (const { status, text } of stored) assert.equal(status, 200, text);
  const versions = stored.map(({ headers }) => headers.get("location").split("/").at(-1));
  const inOrder = (list) => list.toSorted((a, b) => a.split(".")[2] - b.split(".")[2]);
  assert.deepEqual(inOrder(versions), names);
  const url = "http://example.org/fhir/ValueSet/parallel";
  const sets = await Promise.all(
    names.map((code) =>
      server.send("PUT", `${V1}/definition/valueset/${encodeURIComponent(url)}`, {
        body: JSON.stringify({
          resourceType: "ValueSet",
          url,
          compose: { include: [{ system: "s", concept: [{ code }] }] },
        }),
      }),
    ),
  );
  const statuses = sets.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [201, ...names.slice(1).map(() => 204)]);
});
