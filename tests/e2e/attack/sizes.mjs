// Concurrent reads and writes of large objects, or of many objects. Entries as in `bombs.mjs`.
import assert from "node:assert/strict";
import { ITS, V1, sample } from "../server.mjs";
import { LONG, many, post } from "./bombs.mjs";
import { composition, newEhr, template, uidOf } from "./host.mjs";

const sized = (short, long) => (LONG ? long : short);
const together = (count, send) => Promise.all(many(count, send));
/** The number of concurrent reads of large objects. Each takes several times the size of its object. */
const READS = sized(12, 32);
const query = (host, q, more = {}) =>
  host.send("POST", `${V1}/query/aql`, { body: JSON.stringify({ q, ...more }), keep: 1_000 });

const once = (prepare) => {
  const made = new WeakMap();
  return (host) => {
    if (!made.has(host)) made.set(host, prepare(host));
    return made.get(host);
  };
};

/** Creates an EHR with one composition of nine megabytes. Its first text has `CHARACTERS` characters. */
const CHARACTERS = 4_500_000;
const withDocument = once(async (host) => {
  const ehrId = await newEhr(host);
  const document = structuredClone(sample().compositions[0].composition);
  document.name.value = "é".repeat(CHARACTERS);
  const made = await host.expect(201, "POST", `${ITS}/ehr/${ehrId}/composition`, {
    body: JSON.stringify(document),
  });
  return { ehrId, uid: uidOf(made), path: `${ITS}/ehr/${ehrId}/composition/${uidOf(made)}` };
});

const audit = (description = "x") => ({
  change_type: {
    value: "creation",
    defining_code: { terminology_id: { value: "openehr" }, code_string: "249" },
  },
  committer: { _type: "PARTY_IDENTIFIED", name: "x" },
  description: { _type: "DV_TEXT", value: description },
});

/** Creates an EHR with a contribution of `count` compositions. Their audits have `length` characters. */
async function contributed(host, count, length) {
  await host.expect([201, 409], "POST", `${ITS}/definition/template/adl1.4`, {
    body: template("weight.en.v2"),
    type: "application/xml",
  });
  const ehrId = await newEhr(host);
  const data = composition();
  const versions = many(count, () => ({
    _type: "ORIGINAL_VERSION",
    commit_audit: audit("d".repeat(length)),
    lifecycle_state: {
      value: "complete",
      defining_code: { terminology_id: { value: "openehr" }, code_string: "532" },
    },
    data,
  }));
  const made = await post(host, `/ehr/${ehrId}/contribution`, { versions, audit: audit() });
  return { ehrId, made };
}

/** Stores value sets. Each is given by its URL and its inclusions. */
async function valueSets(host, sets) {
  const answers = [];
  for (const [url, include] of sets)
    answers.push(
      await host.send("PUT", `${V1}/definition/valueset/${encodeURIComponent(url)}`, {
        body: JSON.stringify({ resourceType: "ValueSet", url, compose: { include } }),
      }),
    );
  return answers;
}

const codes = (count, prefix = "c") => ({
  system: "http://s",
  concept: many(count, (index) => ({ code: `${prefix}${index}` })),
});
const matching = (address) =>
  `SELECT count(*) FROM EHR e CONTAINS COMPOSITION c WHERE c/category/defining_code/code_string matches TERMINOLOGY('expand', 'hl7.org/fhir/4.0', '${address}')`;

const texts = {
  "max, min and count of one text": (count) =>
    many(
      count,
      (at) => `${["max(", "min(", "count(DISTINCT "][at % 3]}c/name/value) AS c${at}`,
    ).join(", "),
  "DISTINCT of one text": (count) =>
    `DISTINCT ${many(count, (at) => `c/name/value AS c${at}`).join(", ")}`,
  "one text in many columns": (count) => many(count, (at) => `c/name/value AS c${at}`).join(", "),
  "the length of one text": (count) =>
    many(count, (at) => `LENGTH(c/name/value) AS c${at}`).join(", "),
};

const readers = {
  "32 reads": {},
  "32 reads of headers": { method: "HEAD" },
  "32 reads of a document that the client has": { has: true },
  "32 reads in XML": { headers: { accept: "application/xml" } },
};

export const sizes = [
  ...Object.entries(readers).map(([title, { method = "GET", has, headers = {} }]) => ({
    item: "sizes",
    title: `${title} of a document of nine megabytes`,
    prepare: withDocument,
    attack: (host, { path, uid }) =>
      together(READS, () =>
        host.send(method, path, {
          headers: has ? { "if-none-match": `"${uid}"` } : headers,
          keep: 1_000,
        }),
      ),
    expected: [200, 304, 429],
    holds: (answers) => {
      const least = method === "HEAD" || has ? READS : 1;
      const given = answers.filter((answer) => answer.status !== 429).length;
      assert.ok(given >= least, `${given} of ${READS} are answered`);
      if (has) assert.ok(answers.every((answer) => answer.status === 304));
    },
  })),
  {
    item: "sizes",
    title: "clients that go away while they read nine megabytes",
    prepare: withDocument,
    attack: async (host, { path }) => {
      await together(READS, () => host.send("GET", path, { patience: 700 }).catch(() => {}));
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      return [await host.send("GET", path, { keep: 1_000 })];
    },
    expected: [200],
  },
  ...Object.entries(texts).flatMap(([title, columns]) =>
    [20, 200].map((count) => ({
      item: "sizes",
      title: `${title} of nine megabytes, ${count} times`,
      prepare: withDocument,
      attack: async (host, { ehrId }) => [
        await query(host, `SELECT ${columns(count)} FROM EHR e CONTAINS COMPOSITION c`, {
          ehr_id: ehrId,
        }),
      ],
      expected: [200, 400, 408],
    })),
  ),
  {
    item: "sizes",
    title: "a list of 320 stored queries of 200 kB",
    prepare: async (host) => {
      const text = `SELECT e/ehr_id/value FROM EHR e WHERE e/ehr_id/value != '${"x".repeat(200_000)}'`;
      for (let at = 0; at < sized(100, 320); at += 1)
        await host.expect(200, "PUT", `${V1}/query/org.large::q${at}/1.0.0`, {
          body: text,
          type: "text/plain",
        });
    },
    attack: async (host) => [
      ...(await together(8, () => host.send("GET", `${ITS}/definition/query`, { keep: 1_000 }))),
      ...(await together(8, () =>
        host.send("GET", `${ITS}/definition/query/org.large::q1`, { keep: 1_000 }),
      )),
    ],
    expected: [200, 400, 429],
  },
  {
    item: "sizes",
    title: "value sets that include one another",
    prepare: (host) =>
      valueSets(host, [
        ["http://x/large", [codes(sized(50_000, 100_000))]],
        ["http://x/often", many(1_000, () => ({ valueSet: ["http://x/large"] }))],
        ...many(50, (at) => [
          `http://x/twice${at}`,
          [{ valueSet: [`http://x/twice${at + 1}`] }, { valueSet: [`http://x/twice${at + 1}`] }],
        ]),
        ["http://x/twice50", [codes(10)]],
        ["http://x/one", [{ valueSet: ["http://x/other"] }]],
        ["http://x/other", [{ valueSet: ["http://x/one"] }]],
        ...many(10, (at) => [`http://x/part${at}`, [codes(50_000, `p${at}`)]]),
        ["http://x/parts", many(10, (at) => ({ valueSet: [`http://x/part${at}`] }))],
      ]),
    attack: (host) =>
      Promise.all(
        ["often", "twice0", "one", "parts"].map((name) =>
          query(host, matching(`http://x/${name}`)),
        ),
      ),
    expected: [200, 400, 429],
    holds: ([often, twice, one]) => {
      assert.notEqual(often.status, 200, "a thousand times 100,000 codes");
      assert.ok(twice.status !== 400, twice.text);
      assert.equal(one.status, 200, one.text);
    },
  },
  {
    item: "sizes",
    title: "300 mentions of a value set of 100,000 codes",
    prepare: (host) => valueSets(host, [["http://x/all", [codes(100_000)]]]),
    attack: (host) => {
      const mention = (address) =>
        `c/category/defining_code/code_string matches TERMINOLOGY('expand', 'hl7.org/fhir/4.0', '${address}')`;
      const of = (count, address) =>
        query(
          host,
          `SELECT count(*) FROM EHR e CONTAINS COMPOSITION c WHERE ${many(count, (at) => mention(address(at))).join(" OR ")}`,
        );
      return Promise.all([
        of(300, () => "http://x/all"),
        of(100, () => "http://x/all"),
        of(30, (at) => `url=http://x/all&a=${at}`),
      ]);
    },
    expected: [200, 400, 408, 429],
  },
  {
    item: "sizes",
    title: "the tags of an EHR with 100,000 of them",
    prepare: once(async (host) => {
      const ehrId = await newEhr(host);
      const tags = many(sized(500, 1_000), (at) => ({
        key: `k${at}`,
        value: "v".repeat(100),
        target_path: "/name",
      }));
      await host.expect([201, 409], "POST", `${ITS}/definition/template/adl1.4`, {
        body: template("weight.en.v2"),
        type: "application/xml",
      });
      for (let at = 0; at < 100; at += 1) {
        const made = await post(host, `/ehr/${ehrId}/composition`, composition());
        const path = `${V1}/ehr/${ehrId}/composition/${uidOf(made)}/tags`;
        await host.expect(204, "PUT", path, { body: JSON.stringify(tags) });
      }
      return ehrId;
    }),
    attack: (host, ehrId) =>
      together(32, () => host.send("GET", `${V1}/ehr/${ehrId}/tags`, { keep: 1_000 })),
    expected: [200, 422, 429],
  },
  {
    item: "sizes",
    title: "a contribution of 1,000 members with audits of 3 kB, its members and a list of it",
    prepare: (host) => newEhr(host),
    attack: async (host) => {
      const { ehrId, made } = await contributed(host, sized(500, 1_000), 3_000);
      if (made.status !== 201) return [made];
      const { pathname } = new URL(made.headers.location);
      return [
        made,
        ...(await together(READS, () =>
          host.send("GET", pathname, { headers: { prefer: "resolve_refs" }, keep: 1_000 }),
        )),
        ...(await together(sized(4, 8), () =>
          host.send("GET", `${ITS}/ehr/${ehrId}/contribution?fetch=1000`, { keep: 1_000 }),
        )),
      ];
    },
    expected: [200, 201, 400, 413, 429],
  },
  {
    item: "sizes",
    title: "32 revision histories of 60 versions with audits of 100 kB, and exports of them",
    prepare: once(async (host) => {
      const { ehrId, made } = await contributed(host, 1, 10);
      const listed = await host.expect(200, "GET", new URL(made.headers.location).pathname);
      let uid = listed.json.versions[0].id.value;
      const [object] = uid.split("::");
      for (let at = 0; at < sized(20, 60); at += 1) {
        const updated = await host.expect(
          [200, 204],
          "PUT",
          `${ITS}/ehr/${ehrId}/composition/${object}`,
          {
            body: JSON.stringify(
              composition(undefined, (document) => {
                document.name.value = "n".repeat(1_000_000);
              }),
            ),
            headers: {
              "if-match": `"${uid}"`,
              "openehr-audit-details": `description.value="${"d".repeat(3_000)}"`,
            },
          },
        );
        uid = uidOf(updated);
      }
      return { ehrId, object };
    }),
    attack: async (host, { ehrId, object }) => [
      ...(await together(READS, () =>
        host.send("GET", `${ITS}/ehr/${ehrId}/versioned_composition/${object}/revision_history`, {
          keep: 1_000,
        }),
      )),
      ...(await together(sized(4, 8), () =>
        host.send("GET", `${V1}/admin/export?ehr_id=${ehrId}&limit=1000`, { keep: 1_000 }),
      )),
    ],
    expected: [200, 408, 422, 429],
  },
  {
    item: "sizes",
    title: "a directory of 60,000 folders, written and read",
    prepare: (host) => newEhr(host),
    attack: async (host, ehrId) => {
      const folder = (name, folders) => ({
        _type: "FOLDER",
        archetype_node_id: "openEHR-EHR-FOLDER.generic.v1",
        name: { _type: "DV_TEXT", value: name },
        ...(folders ? { folders } : {}),
      });
      const inner = many(60_000, (at) => folder(`f${at}`));
      const body = JSON.stringify(folder("root", inner));
      const made = await host.send("POST", `${ITS}/ehr/${ehrId}/directory`, { body });
      return [
        made,
        ...(await together(16, () =>
          host.send("GET", `${ITS}/ehr/${ehrId}/directory?path=f59999`, { keep: 1_000 }),
        )),
        ...(await together(16, () =>
          host.send("GET", `${ITS}/ehr/${ehrId}/directory`, { keep: 1_000 }),
        )),
      ];
    },
    expected: [200, 201, 400, 404, 413, 422, 429],
  },
  {
    item: "sizes",
    title: "templates in ADL 2 with 300,000 nodes",
    attack: (host) => {
      const rows = many(
        150_000,
        (at) => `ELEMENT[id${at + 2}] matches {value matches {DV_TEXT}}\n`,
      ).join("");
      const text = `operational_template (adl_version=2.0.6; rm_release=1.0.4; generated)\n\topenEHR-EHR-CLUSTER.bomb.v1.0.0\n\nlanguage\n\toriginal_language = <[ISO_639-1::en]>\n\ndescription\n\tlifecycle_state = <"unmanaged">\n\ndefinition\n\tCLUSTER[id1] matches {items matches {\n${rows}}}\n\nterminology\n\tterm_definitions = <["en"] = <["id1"] = <text = <"x"> description = <"x">>>>\n`;
      return together(3, () =>
        host.send("POST", `${ITS}/definition/template/adl2`, { body: text, type: "text/plain" }),
      );
    },
    expected: [201, 400, 409, 413, 415, 429],
  },
];
