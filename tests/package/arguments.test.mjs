// Wrong arguments of the npm package: each is an error with the code `ARGUMENT`, before anything is done.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { root, unpacked } from "./unpacked.mjs";

const EHRS = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const HALF = "\ud800";

let aqlite, repository, guide, house;

before(async () => {
  house = await unpacked("arguments");
  aqlite = await import(pathToFileURL(join(house, "node_modules/aqlite/node.js")).href);
  repository = await aqlite.Repository.open();
  const sample = join(root, "www/samples/blood_pressure_category.gdl2.json");
  guide = await readFile(sample, "utf8");
});

after(() => repository?.close());

const isWrong = { name: "AqliteError", code: "ARGUMENT" };

/** Checks that a call returns a promise that is rejected, and that nothing was stored. */
async function refused(cases) {
  for (const [name, call] of Object.entries(cases)) {
    let answer;
    assert.doesNotThrow(() => (answer = call()), `${name} throws instead of rejecting`);
    await assert.rejects(answer, isWrong, name);
  }
  assert.deepEqual((await repository.query(EHRS)).rows, [[0]]);
}

test("options that are no object are refused", async () => {
  const { Repository } = aqlite;
  const id = "7d44b88c-4199-4bad-97dc-d78268e01398";
  await refused({
    "a name as the first argument": () => Repository.open("ward 7"),
    null: () => Repository.open(null),
    "a map": () => Repository.open(new Map([["name", "ward 7"]])),
    "a name that is no text": () => Repository.open({ name: 5, folder: house }),
    "an empty name": () => Repository.open({ name: " ", folder: house }),
    "an id as the first argument": () => repository.createEhr(id),
    "an empty id": () => repository.createEhr({ ehrId: "" }),
    "a subject without namespace": () => repository.createEhr({ subject: { id: "1" } }),
    "a number of patients": () => repository.generate(5),
    "a format as the second argument": () => repository.example("x", "FLAT"),
    "a fraction of rows": () => repository.pages(EHRS, { rows: 1.5 }).next(),
    "a function that is none": () => repository.query(EHRS, { shouldStop: 5 }),
    "a text as time limit": () => repository.query(EHRS, { timeout: "100" }),
  });
});

test("values that the REST interface would read in another way are refused", async () => {
  const cycle = {};
  cycle.self = cycle;
  await refused({
    "half of a character in an id": () => repository.webTemplate(HALF),
    "half of a character in an EHR id": () => repository.addComposition(HALF, {}),
    "a body that is an object": () =>
      repository.request({ method: "POST", path: "query/aql", body: { q: EHRS } }),
    "a header that is a number": () => repository.request({ path: "ehr", headers: { a: 5 } }),
    "no path": () => repository.request({}),
    "no request": () => repository.fetch({ method: "GET", url: "no address" }),
    "a number as composition": () => repository.validate(5),
    "a template id that is an object": () => repository.validate({}, { id: "x" }),
    "a cycle": () => repository.addComposition("x", cycle),
    "a big number": () => repository.addComposition("x", { size: 1n }),
    "a number that is not finite": () => repository.query(EHRS, { parameters: { a: NaN } }),
    "a number beyond the largest": () => repository.generate({ ehrs: 2 ** 31, compositions: 1 }),
    "no compositions": () => repository.generate({ ehrs: 1, compositions: 0 }),
    "a time that is a text": () => repository.explain(EHRS, { now: "2026-01-01" }),
    "no module": () => aqlite.startTables(5),
  });
  await assert.rejects(
    repository.request({ method: "POST", path: "query/aql", body: { q: EHRS } }),
    /pass `JSON\.stringify\(body\)`/,
  );
});

test("a form of a guide with a value that is no text, or an unknown variable, does not run", () => {
  const { runGuide } = aqlite;
  assert.ok(runGuide(guide, { gt0003: "128,mm[Hg]", gt0004: "80,mm[Hg]" }).fired.length > 0);
  assert.throws(
    () => runGuide(guide, { gt0003: 128 }),
    /`gt0003` .*of type number, expected a text/,
  );
  assert.throws(() => runGuide(guide, { gt9999: "1" }), /no variable `gt9999`, only .*gt0003/);
  assert.throws(() => runGuide(guide, ["128,mm[Hg]"]), isWrong);
});

test("conversions and printed guides need a finite number and a known syntax", () => {
  const { convert, printGuide } = aqlite;
  for (const magnitude of [null, "1", NaN, Infinity])
    assert.throws(() => convert(magnitude, "kg", "g"), isWrong);
  assert.throws(
    () => printGuide(guide, "xml"),
    /`syntax` is `xml`, expected one of `json`, `odin`/,
  );
  assert.match(printGuide(guide, "odin"), /gdl_version/);
});

const SLOW =
  "SELECT COUNT(*) AS n FROM EHR e CONTAINS (COMPOSITION a CONTAINS ELEMENT b CONTAINS ELEMENT d) AND COMPOSITION c CONTAINS ELEMENT x";

test("a call from a callback of a query runs after the query", async () => {
  const opened = await aqlite.Repository.open();
  await opened.generate({ ehrs: 20, compositions: 400 });
  const [[before]] = (await opened.query(EHRS)).rows;
  const calls = [];
  const shouldStop = () => {
    if (calls.length < 3) calls.push(opened.createEhr());
    return calls.length === 3;
  };
  await assert.rejects(opened.query(SLOW, { shouldStop }), { code: "ABORTED" });
  assert.equal(new Set(await Promise.all(calls)).size, 3);
  assert.deepEqual((await opened.query(EHRS)).rows, [[before + 3]]);
});

test("a repository that is closed in a callback ends the query, and is closed then", async () => {
  for (const options of [{}, { name: "ward", folder: join(house, "data") }]) {
    const opened = await aqlite.Repository.open(options);
    await opened.generate({ ehrs: 20, compositions: 400 });
    const shouldStop = () => {
      opened.close();
      return true;
    };
    await assert.rejects(opened.query(SLOW, { shouldStop }), { code: "ABORTED" });
    await assert.rejects(opened.query(EHRS), { code: "CLOSED" });
    opened.close();
  }
});

test("sample patients are added to those of another seed, and those of an ended call stay", async () => {
  const opened = await aqlite.Repository.open();
  const sample = { ehrs: 10, compositions: 900, seed: 3 };
  const ended = new AbortController();
  const options = { signal: ended.signal, onProgress: () => ended.abort("enough") };
  await assert.rejects(opened.generate(sample, options), (reason) => reason === "enough");
  const [[begun]] = (await opened.query(EHRS)).rows;
  assert.ok(begun > 0 && begun < 10, String(begun));
  await assert.rejects(opened.generate(sample), { code: "SAMPLES" });
  await opened.generate({ ehrs: 2, compositions: 5, seed: 4 });
  assert.deepEqual((await opened.query(EHRS)).rows, [[begun + 2]]);
});
