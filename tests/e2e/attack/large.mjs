// Reads of documents of nine megabytes, and queries with large rows. Entries as in `bombs.mjs`.
import assert from "node:assert/strict";
import { ITS, V1, sample } from "../server.mjs";
import { LONG } from "./bombs.mjs";
import { newEhr } from "./host.mjs";

/** The number of documents of an EHR, and the characters of each document (two bytes a character). */
const [DOCUMENTS, CHARACTERS] = LONG ? [32, 4_500_000] : [8, 4_500_000];

const query = (host, q, more = {}) =>
  host.send("POST", `${V1}/query/aql`, { body: JSON.stringify({ q, ...more }), keep: 1_000 });

/** The EHRs with large documents, by host: the attacks share them. */
const stored = new WeakMap();

/** Creates an EHR with large compositions. The first one has several versions. */
async function largeEhr(host) {
  if (stored.has(host)) return stored.get(host);
  const ehrId = await newEhr(host);
  const document = structuredClone(sample().compositions[0].composition);
  document.name.value = "é".repeat(CHARACTERS);
  const body = JSON.stringify(document);
  let uid;
  for (let at = 0; at < DOCUMENTS; at += 1) {
    const made = await host.expect(201, "POST", `${ITS}/ehr/${ehrId}/composition`, { body });
    uid ??= made.headers.etag.replaceAll('"', "");
  }
  const [object] = uid.split("::");
  for (let at = 0; at < DOCUMENTS / 4; at += 1) {
    const headers = { "if-match": `"${uid}"` };
    const path = `${ITS}/ehr/${ehrId}/composition/${object}`;
    const updated = await host.expect([200, 204], "PUT", path, { body, headers });
    uid = updated.headers.etag.replaceAll('"', "");
  }
  stored.set(host, { ehrId, object });
  return { ehrId, object };
}

const columns = (count, column) =>
  Array.from({ length: count }, (_, index) => column(index)).join(", ");
const reads = {
  "a count": (host, { ehrId }) =>
    query(host, "SELECT count(*) FROM EHR e CONTAINS COMPOSITION c", { ehr_id: ehrId }),
  "a join of them": (host, { ehrId }) =>
    query(host, "SELECT count(*) FROM EHR e CONTAINS (COMPOSITION c AND COMPOSITION d)", {
      ehr_id: ehrId,
    }),
  "a count of the population": (host) =>
    query(host, "SELECT count(*) FROM EHR e CONTAINS COMPOSITION c"),
  "a join of the population": (host) =>
    query(host, "SELECT count(*) FROM EHR e CONTAINS (COMPOSITION c AND COMPOSITION d)"),
  "the contributions": (host, { ehrId }) =>
    host.send("GET", `${ITS}/ehr/${ehrId}/contribution?fetch=1000`, { keep: 1_000 }),
  "a versioned composition": (host, { ehrId, object }) =>
    host.send("GET", `${ITS}/ehr/${ehrId}/versioned_composition/${object}`),
  "a revision history": (host, { ehrId, object }) =>
    host.send("GET", `${ITS}/ehr/${ehrId}/versioned_composition/${object}/revision_history`),
  "an export": (host, { ehrId }) =>
    host.send("GET", `${V1}/admin/export?ehr_id=${ehrId}&limit=1000`, { keep: 1_000 }),
};

const wide = {
  "1,000 columns of DISTINCT": `SELECT DISTINCT ${columns(1_000, (at) => `a/name/value AS c${at}`)} FROM EHR e CONTAINS COMPOSITION c CONTAINS ELEMENT a`,
  "1,000 literals of DISTINCT": `SELECT DISTINCT ${columns(1_000, (at) => `'${"x".repeat(200)}' AS c${at}`)} FROM EHR e CONTAINS COMPOSITION c CONTAINS ELEMENT a`,
  "1,000 keys of ORDER BY": `SELECT ${columns(1_000, (at) => `a/name/value AS c${at}`)} FROM EHR e CONTAINS COMPOSITION c CONTAINS ELEMENT a ORDER BY ${columns(1_000, (at) => `c${at}`)} LIMIT 5`,
  "1,000 keys of groups": `SELECT ${columns(999, (at) => `a/name/value AS c${at}`)}, count(*) AS n FROM EHR e CONTAINS COMPOSITION c CONTAINS ELEMENT a`,
  "existence in vain":
    "SELECT count(*) FROM EHR e NOT CONTAINS (COMPOSITION c CONTAINS (LOCATABLE a CONTAINS (LOCATABLE b CONTAINS ELEMENT z[openEHR-EHR-ELEMENT.never.v1])))",
};

/** An EHR with small compositions, which is created after the one with large ones. */
async function behindLarge(host) {
  await largeEhr(host);
  const ehrId = await newEhr(host);
  const body = JSON.stringify(sample().compositions[0].composition);
  for (let at = 0; at < 4; at += 1)
    await host.expect(201, "POST", `${ITS}/ehr/${ehrId}/composition`, { body });
}

/** Reads the last compositions of the population, three times. */
async function lastPages(host) {
  const from = "FROM EHR e CONTAINS COMPOSITION c";
  const counted = await query(host, `SELECT count(*) AS n ${from}`);
  const [[count]] = JSON.parse(counted.text).rows;
  const pages = [];
  for (const fetch of [4, 2, 1])
    pages.push(
      await host.send("POST", `${V1}/query/aql`, {
        body: JSON.stringify({ q: `SELECT c ${from}`, offset: count - fetch, fetch }),
      }),
    );
  return pages;
}

/** A query with many patterns, each of which is compared with the whole text. */
const PATTERNS = `SELECT count(*) FROM EHR e CONTAINS COMPOSITION c WHERE ${Array.from(
  { length: 100 },
  (_, at) => `c/name/value LIKE '*x${"?".repeat(at)}y*'`,
).join(" OR ")}`;

export const large = [
  ...Object.entries(reads).map(([title, read]) => ({
    item: "large",
    title: `${title}: documents of nine megabytes`,
    prepare: largeEhr,
    attack: async (host, state) => [await read(host, state)],
    expected: [200, 400, 408],
  })),
  {
    item: "large",
    title: "all of them at once: documents of nine megabytes",
    prepare: largeEhr,
    attack: (host, state) => Promise.all(Object.values(reads).map((read) => read(host, state))),
    expected: [200, 400, 408, 429],
  },
  {
    item: "large",
    title: "pages of whole compositions behind those of nine megabytes",
    prepare: behindLarge,
    attack: lastPages,
    expected: [200],
    holds: (pages) =>
      assert.deepEqual(
        pages.map(({ text }) => JSON.parse(text).rows.length),
        [4, 2, 1],
      ),
  },
  {
    item: "query",
    title: "three queries with many patterns on texts of nine megabytes",
    prepare: largeEhr,
    attack: (host) => Promise.all([1, 2, 3].map(() => query(host, PATTERNS))),
    expected: [200, 408, 429],
  },
  ...Object.entries(wide).map(([title, q]) => ({
    item: "query",
    title,
    attack: async (host) => [await query(host, q)],
    expected: [200, 400, 408],
  })),
];
