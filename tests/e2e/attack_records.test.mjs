// Attempts to falsify, lose or hide records: invalid versions, repeated loads, writes into locked EHRs,
// imports, and the remains of a deletion.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { ITS, V1 } from "./server.mjs";
import { LONG } from "./attack/bombs.mjs";
import { Host, composition, newEhr, template, uidOf } from "./attack/host.mjs";

const OTHER_TEMPLATE = "other.weight.v1";
const text = (value) => ({ _type: "DV_TEXT", value });
const folder = (name = "root") => ({
  _type: "FOLDER",
  name: text(name),
  archetype_node_id: "openEHR-EHR-FOLDER.generic.v1",
});
const status = (more = {}) => ({
  _type: "EHR_STATUS",
  archetype_node_id: "openEHR-EHR-EHR_STATUS.generic.v1",
  name: text("EHR Status"),
  subject: { _type: "PARTY_SELF" },
  is_queryable: true,
  is_modifiable: true,
  ...more,
});
const coded = (value, code) => ({
  _type: "DV_CODED_TEXT",
  value,
  defining_code: {
    _type: "CODE_PHRASE",
    terminology_id: { _type: "TERMINOLOGY_ID", value: "openehr" },
    code_string: code,
  },
});
const audit = (code = "249") => ({
  _type: "AUDIT_DETAILS",
  system_id: "client",
  committer: { _type: "PARTY_IDENTIFIED", name: "Dr. Ek" },
  change_type: coded("-", code),
});
const member = (data, preceding) => ({
  commit_audit: audit(preceding ? "251" : "249"),
  lifecycle_state: coded("complete", "532"),
  ...(preceding && { preceding_version_uid: { _type: "OBJECT_VERSION_ID", value: preceding } }),
  data,
});
const contribution = (...versions) => ({ versions, audit: audit() });

let host;

before(async () => {
  host = await Host.start("records", { AUTH: "none", ADMIN: "true" });
  for (const id of ["weight.en.v2", OTHER_TEMPLATE])
    await host.expect(201, "POST", `${ITS}/definition/template/adl1.4`, {
      body: template(id),
      type: "application/xml",
    });
});
after(() => host?.stop());

/** Creates a composition. Returns its version uid. */
const compose = async (ehrId, document = composition()) =>
  uidOf(
    await host.expect(201, "POST", `${V1}/ehr/${ehrId}/composition`, {
      body: JSON.stringify(document),
    }),
  );
const statusUid = async (ehrId) =>
  uidOf(await host.expect(200, "GET", `${V1}/ehr/${ehrId}/ehr_status`));

describe("kinds", () => {
  /**
   * Invalid successors of a version, by title. Each function creates a version in the EHR, and returns
   * its uid and the data of the successor.
   */
  const twists = {
    "a FOLDER after a COMPOSITION": async (ehrId) => [await compose(ehrId), folder()],
    "an EHR_STATUS after a COMPOSITION": async (ehrId) => [
      await compose(ehrId),
      status({ is_modifiable: false }),
    ],
    "a COMPOSITION after an EHR_STATUS": async (ehrId) => [await statusUid(ehrId), composition()],
    "a FOLDER after an EHR_STATUS": async (ehrId) => [await statusUid(ehrId), folder()],
    "a COMPOSITION of another template": async (ehrId) => [
      await compose(ehrId),
      composition(OTHER_TEMPLATE),
    ],
    "a COMPOSITION after one of another EHR": async () => [
      await compose(await newEhr(host)),
      composition(),
    ],
    "an EHR_STATUS after one of another EHR": async () => [
      await statusUid(await newEhr(host)),
      status(),
    ],
  };
  const ways = {
    "a contribution": (ehrId, sent) =>
      host.send("POST", `${V1}/ehr/${ehrId}/contribution`, { body: JSON.stringify(sent) }),
    "a bulk line": async (ehrId, sent) =>
      (await host.lines(`${V1}/ehr/bulk`, [{ ehr_id: ehrId, contribution: sent }]))[0],
  };
  for (const [way, send] of Object.entries(ways)) {
    for (const [title, make] of Object.entries(twists)) {
      test(`${title} is refused in ${way}`, async () => {
        const ehrId = await newEhr(host);
        const kept = await compose(ehrId);
        const [preceding, data] = await make(ehrId);
        const exported = async () =>
          (await host.expect(200, "GET", `${V1}/admin/export?ehr_id=${ehrId}`)).text;
        const before = await exported();
        const answer = await send(ehrId, contribution(member(data, preceding)));
        assert.ok(
          [400, 404, 409, 412, 422].includes(answer.status),
          `${answer.status} ${answer.text ?? JSON.stringify(answer)}`,
        );
        assert.equal(await exported(), before, "the refused contribution changed the EHR");
        await host.expect(200, "GET", `${V1}/ehr/${ehrId}/composition/${kept}`);
        await host.expect(201, "POST", `${V1}/ehr/${ehrId}/directory`, {
          body: JSON.stringify(folder()),
        });
        await host.expect(201, "POST", `${V1}/ehr/${ehrId}/composition`, {
          body: JSON.stringify(composition()),
        });
      });
    }
  }

  test("an import that changes the kind, the owner or the template of an object is refused", async () => {
    const ehrId = await newEhr(host);
    await compose(ehrId);
    const first = (await exportedRecords(ehrId)).at(-1);
    const second = successor(first);
    const forged = {
      kind: successor(
        first,
        (version) => (version.data = { ...folder(), uid: version.data.uid }),
        "FOLDER",
      ),
      template: successor(
        first,
        (version) => (version.data.archetype_details.template_id.value = OTHER_TEMPLATE),
      ),
      owner: { ...second, ehr_id: await newEhr(host) },
    };
    for (const [what, record] of Object.entries(forged)) {
      const [outcome] = await host.lines(`${V1}/admin/import`, [sealed(record)]);
      assert.ok(
        [400, 404, 409, 412, 422].includes(outcome.status),
        `${what}: ${JSON.stringify(outcome)}`,
      );
    }
    const [whole] = await host.lines(`${V1}/admin/import`, [sealed(second)]);
    assert.equal(
      whole.status,
      201,
      `the same record without a change is imported: ${JSON.stringify(whole)}`,
    );
  });
});

/** Returns a line of an import: the record with its digest. */
function sealed(record) {
  const body = typeof record === "string" ? record : JSON.stringify(record);
  return `{"digest":"${createHash("sha256").update(body).digest("hex")}","record":${body}}`;
}

/** Returns the records of the export of an EHR, without the record that ends the export. */
async function exportedRecords(ehrId) {
  const answer = await host.expect(200, "GET", `${V1}/admin/export?ehr_id=${ehrId}`);
  return answer.text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).record)
    .filter((record) => !record.end);
}

/** Returns a record of the next version, in the form of an export of another system. */
function successor(record, change = () => {}, type = "COMPOSITION") {
  const next = structuredClone(record);
  const [version] = next.versions;
  const preceding = version.uid.value;
  const uid = preceding.replace(/\d+$/, (number) => String(Number(number) + 1));
  version.preceding_version_uid = { _type: "OBJECT_VERSION_ID", value: preceding };
  version.uid.value = uid;
  if (version.data.uid) version.data.uid.value = uid;
  version.commit_audit.change_type = coded("modification", "251");
  next.contribution.uid.value = crypto.randomUUID();
  if (version.contribution) version.contribution.id.value = next.contribution.uid.value;
  next.contribution.versions = [
    {
      _type: "OBJECT_REF",
      namespace: "local",
      type,
      id: { _type: "OBJECT_VERSION_ID", value: uid },
    },
  ];
  change(version);
  return next;
}

describe("repetitions", () => {
  const line = (ehrId, uid, document = composition()) => ({
    ehr_id: ehrId,
    contribution: {
      uid: { _type: "HIER_OBJECT_ID", value: uid },
      ...contribution(member(document)),
    },
  });
  const heavier = composition(
    "weight.en.v2",
    (document) => (document.content[0].data.events[0].data.items[0].value.magnitude = 99),
  );

  test("a uid that exists with other content is a conflict, in one load and in the next", async () => {
    const ehrId = await newEhr(host);
    const uid = crypto.randomUUID();
    const outcomes = await host.lines(`${V1}/ehr/bulk`, [
      line(ehrId, uid),
      line(ehrId, uid, heavier),
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      [201, 409],
      JSON.stringify(outcomes),
    );
    assert.deepEqual(
      (await host.lines(`${V1}/ehr/bulk`, [line(ehrId, uid, heavier)])).map(
        (outcome) => outcome.status,
      ),
      [409],
    );
    assert.deepEqual(
      (await host.lines(`${V1}/ehr/bulk`, [line(ehrId, uid)])).map((outcome) => outcome.status),
      [409],
      "a repetition without a key",
    );
  });

  test("under one Idempotency-Key, only an identical load is a repetition", async () => {
    const ehrId = await newEhr(host);
    const headers = { "idempotency-key": crypto.randomUUID() };
    const load = (document, uid) =>
      host.lines(
        `${V1}/ehr/bulk`,
        [uid ? line(ehrId, uid, document) : { ehr_id: ehrId, composition: document }],
        { headers },
      );
    const [first] = await load(composition());
    assert.equal(first.status, 201, JSON.stringify(first));
    const [again] = await load(composition());
    assert.deepEqual([again.status, again.uid], [200, first.uid], JSON.stringify(again));
    const [other] = await load(heavier);
    assert.equal(other.status, 201, JSON.stringify(other));
    assert.notEqual(other.uid, first.uid);
  });
});

describe("locks", () => {
  const lock = async (ehrId) => member(status({ is_modifiable: false }), await statusUid(ehrId));

  test("lines after the line that locks an EHR are refused", async () => {
    const ehrId = await newEhr(host);
    const line = { ehr_id: ehrId, composition: composition() };
    const outcomes = await host.lines(`${V1}/ehr/bulk`, [
      line,
      { ehr_id: ehrId, contribution: contribution(await lock(ehrId)) },
      line,
      line,
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      [201, 201, 409, 409],
      JSON.stringify(outcomes),
    );
  });

  test("lines after an EHR that is created locked are refused", async () => {
    const ehrId = crypto.randomUUID();
    const line = { ehr_id: ehrId, composition: composition() };
    const outcomes = await host.lines(`${V1}/ehr/bulk`, [
      { ehr_id: ehrId, ehr_status: status({ is_modifiable: false }) },
      line,
      { ehr_id: ehrId, contribution: contribution(member(composition())) },
    ]);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      [201, 409, 409],
      JSON.stringify(outcomes),
    );
  });

  test("a contribution that locks an EHR and writes into it is stored as a whole", async () => {
    const ehrId = await newEhr(host);
    const answer = await host.send("POST", `${V1}/ehr/${ehrId}/contribution`, {
      body: JSON.stringify(contribution(await lock(ehrId), member(composition()))),
    });
    assert.equal(answer.status, 201, answer.text);
    const [{ status: later }] = await host.lines(`${V1}/ehr/bulk`, [
      { ehr_id: ehrId, composition: composition() },
    ]);
    assert.equal(later, 409);
  });

  /** All requests that write into an EHR, by title. `made` are existing compositions. */
  const writes = {
    "create a COMPOSITION": (ehrId) =>
      host.send("POST", `${V1}/ehr/${ehrId}/composition`, { body: JSON.stringify(composition()) }),
    "update a COMPOSITION": (ehrId, made) =>
      host.send("PUT", `${V1}/ehr/${ehrId}/composition/${made[0].split("::")[0]}`, {
        body: JSON.stringify(composition()),
        headers: { "if-match": `"${made[0]}"` },
      }),
    "delete a COMPOSITION": (ehrId, made) =>
      host.send("DELETE", `${V1}/ehr/${ehrId}/composition/${made[1]}`),
    "create a directory": (ehrId) =>
      host.send("POST", `${V1}/ehr/${ehrId}/directory`, { body: JSON.stringify(folder()) }),
    "commit a CONTRIBUTION": (ehrId) =>
      host.send("POST", `${V1}/ehr/${ehrId}/contribution`, {
        body: JSON.stringify(contribution(member(composition()))),
      }),
    "load lines": (ehrId) =>
      host.lines(`${V1}/ehr/bulk`, [
        { ehr_id: ehrId, composition: composition() },
        { ehr_id: ehrId, contribution: contribution(member(composition())) },
      ]),
  };

  test("clients that race with a lock commit no version after the lock", async () => {
    const later = (milliseconds, send) =>
      new Promise((resolve) => setTimeout(resolve, milliseconds)).then(send);
    let behind = 0;
    for (let round = 0; round < (LONG ? 100 : 20); round += 1) {
      const ehrId = await newEhr(host);
      const uid = await statusUid(ehrId);
      const made = [await compose(ehrId), await compose(ehrId)];
      const body = JSON.stringify(status({ is_modifiable: false }));
      const sent = Object.values(writes).flatMap((write, index) =>
        [0, 1, 2].map((turn) => later((turn * 6 + index + round) % 18, () => write(ehrId, made))),
      );
      sent.push(
        later(9, () =>
          host.expect([200, 204], "PUT", `${V1}/ehr/${ehrId}/ehr_status`, {
            body,
            headers: { "if-match": `"${uid}"` },
          }),
        ),
      );
      await Promise.all(sent);
      const records = await exportedRecords(ehrId);
      const locked = records.findIndex((record) =>
        record.versions.some((version) => version.data?.is_modifiable === false),
      );
      assert.ok(locked > 0, "the EHR was locked");
      behind += records.length - 1 - locked;
    }
    assert.equal(behind, 0, "contributions behind the lock");
  });

  test("every way to write is refused once the EHR is locked", async () => {
    const ehrId = await newEhr(host);
    const made = [await compose(ehrId), await compose(ehrId)];
    await host.expect([200, 204], "PUT", `${V1}/ehr/${ehrId}/ehr_status`, {
      body: JSON.stringify(status({ is_modifiable: false })),
      headers: { "if-match": `"${await statusUid(ehrId)}"` },
    });
    for (const [title, write] of Object.entries(writes)) {
      const answers = [await write(ehrId, made)].flat();
      assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [409], title);
    }
  });
});

describe("leftovers", () => {
  test("after a reset, a definition with the same name and time is read as the new one", async () => {
    const own = await Host.start("reset", { AUTH: "none", ADMIN: "true" });
    try {
      const created = "2026-01-01T00:00:00.000Z";
      const long = (word) => `SELECT e/ehr_id/value AS ${word} FROM EHR e -- ${"x".repeat(20_000)}`;
      const define = (word) =>
        own.lines(`${V1}/admin/import`, [
          sealed({
            definition: "query",
            name: "org.example::left",
            version: "1.0.0",
            format: "AQL",
            created,
            summary: "{}",
            body: long(word),
          }),
        ]);
      const path = `${V1}/definition/query/org.example::left/1.0.0`;
      for (const word of ["before", "behind"]) {
        assert.equal((await define(word))[0].status, 201);
        for (let i = 0; i < 3; i += 1)
          assert.match((await own.expect(200, "GET", path)).text, new RegExp(`AS ${word}`));
        await own.expect([200, 204], "POST", `${V1}/admin/reset`, {
          headers: { "content-type": "application/json" },
          body: "{}",
        });
        await own.expect(404, "GET", path);
      }
    } finally {
      await own.stop();
    }
  });
});

describe("oddities", () => {
  const imported = async (change) => {
    const ehrId = await newEhr(host);
    await compose(ehrId);
    const record = successor((await exportedRecords(ehrId)).at(-1));
    const changed = change(record) ?? record;
    return (await host.lines(`${V1}/admin/import`, [sealed(changed)]))[0];
  };
  const refused = {
    "an ehr_id that is none": (record) => ({ ...record, ehr_id: "../../etc/passwd" }),
    "an invalid COMPOSITION": (record) => void delete record.versions[0].data.language,
    "a COMPOSITION that its template refuses": (record) =>
      void (record.versions[0].data.content[0].data.events[0].data.items[0].value.magnitude = -5),
    "the time 9999-99-99": (record) =>
      void (record.contribution.audit.time_committed.value = "9999-99-99T00:00:00Z"),
    "a time of a version that is none": (record) =>
      void (record.versions[0].commit_audit.time_committed.value = "9999-99-99"),
    "a contribution without its versions": (record) => ({ ...record, versions: [] }),
    "a contribution whose member is missing": (record) => ({ ...record, versions: undefined }),
    "a version number beyond its range": (record) =>
      JSON.parse(JSON.stringify(record).replaceAll("::2", "::99999999999")),
  };
  test("an import of an ehr_id in upper case is written to the EHR of that id", async () => {
    const outcome = await imported((record) => ({
      ...record,
      ehr_id: record.ehr_id.toUpperCase(),
    }));
    assert.equal(outcome.status, 201, JSON.stringify(outcome));
  });

  for (const [title, change] of Object.entries(refused)) {
    test(`an import of ${title} is refused`, async () => {
      const outcome = await imported(change);
      assert.equal(outcome.status, 400, JSON.stringify(outcome));
    });
  }

  test("no version follows number 4294967295", async () => {
    const outcome = await imported((record) => {
      const uid = record.versions[0].uid.value.replace(/\d+$/, "4294967295");
      const whole = JSON.parse(
        JSON.stringify(record).replaceAll(record.versions[0].uid.value, uid),
      );
      delete whole.versions[0].preceding_version_uid;
      return whole;
    });
    assert.equal(outcome.status, 409, JSON.stringify(outcome));
    const ehrId = await newEhr(host);
    const object = crypto.randomUUID();
    const data = composition(
      "weight.en.v2",
      (document) =>
        (document.uid = { _type: "OBJECT_VERSION_ID", value: `${object}::far::4294967295` }),
    );
    const loaded = await host.send("POST", `${V1}/admin/load`, {
      body: JSON.stringify({
        ehr_id: ehrId,
        version_uid: `${object}::far::4294967295`,
        data,
      }),
    });
    assert.equal(loaded.status, 200, loaded.text);
    for (const [uid, status] of [
      [`${object}::far::4294967295`, 409],
      [`${object}::far::4294967296`, 400],
      [`${object}::far::18446744073709551616`, 400],
    ]) {
      const answer = await host.send("PUT", `${V1}/ehr/${ehrId}/composition/${object}`, {
        body: JSON.stringify(composition()),
        headers: { "if-match": `"${uid}"` },
      });
      assert.equal(answer.status, status, `${uid}: ${answer.text}`);
      const sent = await host.send("POST", `${V1}/ehr/${ehrId}/contribution`, {
        body: JSON.stringify(contribution(member(composition(), uid))),
      });
      assert.equal(sent.status, status, `${uid}: ${sent.text}`);
    }
  });

  test("a directory that was deleted and created many times is read", async () => {
    const ehrId = await newEhr(host);
    const path = `${V1}/ehr/${ehrId}/directory`;
    const cycles = LONG ? 1_001 : 150;
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      const uid = uidOf(
        await host.expect(201, "POST", path, { body: JSON.stringify(folder(`cycle ${cycle}`)) }),
      );
      assert.equal((await host.expect(200, "GET", path)).json.name.value, `cycle ${cycle}`);
      await host.expect(204, "DELETE", path, { headers: { "if-match": `"${uid}"` } });
    }
    await host.expect(201, "POST", path, { body: JSON.stringify(folder("last")) });
    assert.equal((await host.expect(200, "GET", path)).json.name.value, "last");
  });

  for (const id of ["..", ".", "../x", "a/b", "a?b", "%2e%2e", ""]) {
    test(`a template with the id ${JSON.stringify(id)} is refused or reached under its id`, async () => {
      const stored = await host.send("POST", `${ITS}/definition/template/adl1.4`, {
        body: template(id),
        type: "application/xml",
      });
      // An id that is not a segment of a path has no URL.
      const status = ["", ".", ".."].includes(id) ? 400 : 201;
      assert.equal(stored.status, status, stored.text);
      if (status === 201)
        await host.expect(
          200,
          "GET",
          `${ITS}/definition/template/adl1.4/${encodeURIComponent(id)}`,
          { headers: { accept: "application/xml" } },
        );
    });
  }
});
