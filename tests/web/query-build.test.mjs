// Changes of a query text by the builder.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Loads a module of the page. */
async function load(name) {
  const entry = fileURLToPath(new URL(`../../www/src/${name}.ts`, import.meta.url));
  const bundled = await build({ entryPoints: [entry], bundle: true, write: false, format: "esm" });
  return import(`data:text/javascript,${encodeURIComponent(bundled.outputFiles[0].text)}`);
}

const { columnsOf, firstQuery, pathIn, withoutValue, withValue } = await load("query-build");
const { readQuery } = await load("query-text");
const { AGGREGATES } = await load("aql-words");

const step = (name, predicate, rest) => ({ name, predicate, rest: `${rest}/m`, whole: rest });
const archetypes = new Set(["R.x", "O.a", "O.b", "K.c", "O.b,'Left'"]);
const value = (label, ...steps) => ({ label, steps, archetypes });
const ROOT = step("COMPOSITION", "R.x", "r");
const A = value("A value", ROOT, step("OBSERVATION", "O.a", "data/v"));
const B = value("B value", ROOT, step("OBSERVATION", "O.b", "data/w"));
const C = value("C", ROOT, step("OBSERVATION", "O.a", "k/v"), step("CLUSTER", "K.c", "v"));
const OTHER = {
  label: "Other",
  steps: [ROOT, step("OBSERVATION", "O.z", "z")],
  archetypes: new Set(["R.x", "O.z"]),
};

const added = (text, one) => withValue(readQuery(text), one);
const removed = (text, one) => withoutValue(readQuery(text), one);
const query = (from, columns = "e/ehr_id/value") => `SELECT ${columns} FROM ${from}`;
const IN_C = "EHR e CONTAINS COMPOSITION c[R.x]";

/** The place of an added class, FROM before, the value, FROM after, and FROM after its removal. */
const PLACES = [
  ["without CONTAINS", IN_C, A, `${IN_C} CONTAINS OBSERVATION o[O.a]`],
  [
    "beside a class",
    `${IN_C} CONTAINS OBSERVATION p[O.b]`,
    A,
    `${IN_C} CONTAINS (OBSERVATION p[O.b] AND OBSERVATION o[O.a])`,
  ],
  [
    "beside a class that contains others, which gets parentheses",
    `${IN_C} CONTAINS OBSERVATION o[O.a] CONTAINS CLUSTER k[K.c]`,
    B,
    `${IN_C} CONTAINS ((OBSERVATION o[O.a] CONTAINS CLUSTER k[K.c]) AND OBSERVATION o_2[O.b])`,
  ],
  [
    "behind a group without parentheses",
    `${IN_C} CONTAINS OBSERVATION p[O.b] AND CLUSTER`,
    A,
    `${IN_C} CONTAINS OBSERVATION p[O.b] AND CLUSTER AND OBSERVATION o[O.a]`,
  ],
  [
    "beside OR",
    `${IN_C} CONTAINS (OBSERVATION p[O.b] OR CLUSTER)`,
    A,
    `${IN_C} CONTAINS ((OBSERVATION p[O.b] OR CLUSTER) AND OBSERVATION o[O.a])`,
  ],
  [
    "below a class of a group",
    `${IN_C} CONTAINS (OBSERVATION o[O.a] AND OBSERVATION p[O.b])`,
    C,
    `${IN_C} CONTAINS ((OBSERVATION o[O.a] CONTAINS CLUSTER c_2[K.c]) AND OBSERVATION p[O.b])`,
    `${IN_C} CONTAINS OBSERVATION p[O.b]`,
  ],
  [
    "of a template without the bound archetypes: in a COMPOSITION of its own",
    `${IN_C} CONTAINS OBSERVATION o[O.a]`,
    OTHER,
    `EHR e CONTAINS ((COMPOSITION c[R.x] CONTAINS OBSERVATION o[O.a]) AND (COMPOSITION c_2[R.x] CONTAINS OBSERVATION o_2[O.z]))`,
  ],
];

for (const [title, from, one, expected, left = from] of PLACES)
  test(`a class is added ${title}`, () => {
    const text = added(query(from), one);
    assert.equal(text.slice(text.indexOf("FROM ") + 5), expected);
    assert.equal(columnsOf(readQuery(text), one).length, 1);
    assert.equal(removed(text, one), query(left));
  });

test("an archetype that a query binds is not bound again", () => {
  const text = added(added(added("SELECT e/a FROM EHR e", A), C), A);
  assert.equal(text.match(/\[O\.a\]/g).length, 1);
});

test("a class without a variable gets one", () => {
  const text = added(query("EHR e CONTAINS COMPOSITION CONTAINS OBSERVATION [O.a]"), A);
  assert.equal(
    text,
    "SELECT e/ehr_id/value, o/data/v/m AS a_value FROM EHR e CONTAINS COMPOSITION CONTAINS OBSERVATION o [O.a]",
  );
});

test("a class below OR or NOT CONTAINS cannot have a column", () => {
  const either = added(query(`${IN_C} CONTAINS (OBSERVATION o[O.a] OR CLUSTER)`), A);
  assert.match(either, /OR CLUSTER\) AND OBSERVATION o_2\[O\.a\]\)/);
  assert.equal(added(query(`${IN_C} NOT CONTAINS OBSERVATION o[O.a]`), A), null);
});

test("queries that count or have no EHR are refused", () => {
  const aggregates = AGGREGATES.map((name) => query(IN_C, `${name}(e/ehr_id/value) AS n`));
  for (const text of [
    ...aggregates,
    query(IN_C, "DISTINCT e/ehr_id/value"),
    query("OBSERVATION o[O.b]", "o/data/w"),
  ])
    assert.equal(added(text, A), null, text);
  for (const text of ["", "SELECT", "SELECT a FROM", "SELECT a FROM EHR e )"])
    assert.equal(readQuery(text), null, text);
});

test("comments, strings and conditions stay", () => {
  const tail = "-- [ ' (\nWHERE o/x = 'FROM EHR (' AND o/y = \"a\" ORDER BY o/x";
  const text = query(`${IN_C} CONTAINS OBSERVATION o[O.a] ${tail}`, "o/x -- , FROM\n AS x");
  const changed = added(text, A);
  assert.ok(changed.endsWith(tail));
  assert.equal(removed(changed, A), text);
});

test("a class that a condition uses stays when its column is removed", () => {
  const from = `${IN_C} CONTAINS OBSERVATION o[O.a] WHERE o/x > 1`;
  assert.equal(removed(query(from, "e/ehr_id/value, o/data/v/m AS v"), A), query(from));
});

test("the column of ORDER BY and the last column are not removed", () => {
  const from = `${IN_C} CONTAINS OBSERVATION o[O.a]`;
  assert.equal(removed(query(`${from} ORDER BY v`, "e/a, o/data/v/m AS v"), A), null);
  assert.equal(removed(query(from, "o/data/v/m AS v"), A), null);
});

test("the first query of a value becomes empty without it", () => {
  assert.equal(removed(firstQuery(A), A), "");
});

test("aliases and variables are unique and no reserved words", () => {
  const alias = (label) =>
    /m AS (\w+)/.exec(added(query(`${IN_C} CONTAINS OBSERVATION o[O.a]`), { ...A, label }))?.[1];
  assert.equal(alias("Größe (cm)"), "gro_e_cm");
  assert.equal(alias("Order"), "order_2");
  assert.equal(alias("at0004"), "at0004_2");
  assert.equal(alias("24 hours"), "value_24_hours");
  assert.equal(alias("血圧"), "value_2");
  const right = step("OBSERVATION", "openEHR-EHR-OBSERVATION.order_review.v1", "d");
  const one = { label: "x", steps: [ROOT, right], archetypes: new Set([right.predicate]) };
  assert.match(added(query(IN_C), one), /OBSERVATION or_2\[/);
});

test("a path has the variable that the query binds, or else c", () => {
  assert.equal(pathIn(readQuery(query(`${IN_C} CONTAINS OBSERVATION q[O.a]`)), A), "q/data/v/m");
  assert.equal(pathIn(null, A), "c/r/m");
});
