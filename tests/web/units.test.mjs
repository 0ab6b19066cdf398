// The page's own small machines: JSON that keeps digits, and CSV that opens safely.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Loads a module of the page. */
async function load(name) {
  const entry = fileURLToPath(new URL(`../../www/src/${name}.ts`, import.meta.url));
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, write: false, format: "esm" });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}

const { indexResult, parse, print } = await load("json");
const { cellText, csv } = await load("export");

const text = String.raw`{ "meta": {"rows": [1]}, "columns": [{"name": "a,b", "path": "/x"}, {"name": "b"}],
  "rows" : [ [1.50, "x]\"[,"] ,[ null , {"_type":"DV_TEXT","value":"}, {"} ], [-0.0e5,[1,[2]]],["=1+1","@x"], [ true ,"über\n"] ] }`;

test("every cell of a result is found, with its digits", () => {
  const result = { text, ...indexResult(text) };
  assert.equal(result.rows, 5);
  assert.deepEqual(result.columns, [{ name: "a,b", path: "/x" }, { name: "b", path: null }]);
  const cells = Array.from({ length: 5 }, (_, row) => [cellText(result, row, 0), cellText(result, row, 1)]);
  assert.deepEqual(cells, [
    ["1.50", String.raw`"x]\"[,"`],
    ["null", '{"_type":"DV_TEXT","value":"}, {"}'],
    ["-0.0e5", "[1,[2]]"],
    ['"=1+1"', '"@x"'],
    ["true", String.raw`"über\n"`],
  ]);
});

test("an empty result has no cells", () => {
  const { rows, cells } = indexResult('{"columns":[],"rows":[]}');
  assert.deepEqual([rows, cells.length], [0, 0]);
});

test("JSON is read and printed with its digits", () => {
  const printed = print(parse('{"a":[1.0,{"b":1e400}],"c":"\\u00e9","d":{},"e":[]}'));
  assert.equal(printed, '{\n  "a": [\n    1.0,\n    {\n      "b": 1e400\n    }\n  ],\n  "c": "é",\n  "d": {},\n  "e": []\n}');
  assert.throws(() => parse('{"a":"open'));
});

test("CSV follows RFC 4180, and no text becomes a formula", () => {
  assert.deepEqual(csv({ text, ...indexResult(text) }).split("\r\n"), [
    '"a,b",b',
    '1.50,"x]""[,"',
    ',"{""_type"":""DV_TEXT"",""value"":""}, {""}"',
    '-0.0e5,"[1,[2]]"',
    "'=1+1,'@x",
    'true,"über\n"',
    "",
  ]);
});
