// Unit tests of modules of the page: JSON with original digits, files, charts, programs and outlines.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Loads modules of the page, which share the modules that they import. */
async function load(...names) {
  const contents = names.map((name) => `export * from "./${name}";`).join("");
  const resolveDir = fileURLToPath(new URL("../../www/src", import.meta.url));
  const { outputFiles } = await build({
    stdin: { contents, resolveDir },
    bundle: true,
    write: false,
    format: "esm",
  });
  return import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}

const { indexResult, parse, print } = await load("json");
const { cellText, csv, ndjson, textField } = await load("export");
const { ehrsBeside, groupings, histogram, lines, measures, seconds, summary, timeLabels } =
  await load("series");
const { view } = await load("cell");
const { facts } = await load("composition-view");
const { arranged } = await load("arrange");
const { DataSets } = await load("persist");
const { opfs } = await load("storage");
const { decimal, setTexts } = await load("texts");
const { languages } = await load("code");
const { destination } = await load("destination");
const { idOf, nextVersion, outline } = await load("guide-outline");
const { textFiles } = await load("input-files");
const { numberFrom } = await load("typed-number");

const text = String.raw`{ "meta": {"rows": [1]}, "columns": [{"name": "a,b", "path": "/x"}, {"name": "b"}],
  "rows" : [ [1.50, "x]\"[,"] ,[ null , {"_type":"DV_TEXT","value":"}, {"} ], [-0.0e5,[1,[2]]],["=1+1","@x"], [ true ,"über\n"] ] }`;

test("a value has the status of its magnitude, and a time with a status is in its place", () => {
  const quantity = { _type: "DV_QUANTITY", magnitude: 0.01, units: "ng/ml" };
  const shown = (status) => view(JSON.stringify({ ...quantity, magnitude_status: status })).text;
  assert.equal(shown("<"), "<0.01 ng/ml");
  assert.equal(shown("="), "0.01 ng/ml");
  assert.equal(shown(undefined), "0.01 ng/ml");
  const rows = [
    ["2026-11-30", "~"],
    ["2026-11-29", undefined],
    ["2026-12-01", "="],
  ].map(([value, magnitude_status]) => [{ _type: "DV_DATE", value, magnitude_status }]);
  const text = JSON.stringify({ columns: [{ name: "date" }], rows });
  const dates = { text, ...indexResult(text) };
  assert.deepEqual([...arranged(dates, [], { column: 0, descending: false })], [1, 0, 2]);
  assert.equal(measures(dates)[0].values[0], Date.UTC(2026, 10, 30) / 1000);
});

test("a document shows the subject of an entry that is not the patient", () => {
  const text = (value) => ({ _type: "DV_TEXT", value });
  const about = (subject) =>
    facts({ _type: "OBSERVATION", name: text("Diagnosis"), subject }).map(({ text }) => text);
  assert.deepEqual(about({ _type: "PARTY_SELF" }), []);
  const relationship = text("mother");
  assert.deepEqual(about({ _type: "PARTY_RELATED", name: "Anna", relationship }), ["Anna, mother"]);
  assert.deepEqual(about({ _type: "PARTY_RELATED", relationship }), ["mother"]);
});

test("times of an axis are labeled as in ISO 8601, by the distance of the labels", () => {
  const day = 86_400;
  const start = Date.UTC(2026, 10, 30, 22) / 1000;
  assert.deepEqual(timeLabels([start, start + day], day), ["2026-11-30", "2026-12-01"]);
  assert.deepEqual(timeLabels([start], 30 * day), ["2026-11"]);
  assert.deepEqual(timeLabels([start], 365 * day), ["2026"]);
  assert.deepEqual(timeLabels([start, start + 3600, start + 7200], 3600), [
    "22:00\n2026-11-30",
    "23:00",
    "00:00\n2026-12-01",
  ]);
});

test("a typed number keeps its digits, and has a point or a comma as the decimal sign", () => {
  const decimals = [
    ["140.0", "140.0"],
    ["128,50", "128.50"],
    ["007,5", "7.5"],
    ["0", "0"],
    ["0,0", "0.0"],
    ["-2,5", "-2.5"],
    ["\u22122.5", "-2.5"],
    ...["", ",5", "5,", "1 285", "1,285.5", "1.2.3", "1e3", "+5", "0x10", "x"].map((no) => [
      no,
      null,
    ]),
  ];
  for (const [typed, read] of decimals) assert.equal(numberFrom(typed, "decimal"), read, typed);
  for (const [typed, read] of [
    ["12", "12"],
    ["-3", "-3"],
    ["012", "12"],
    ...["1,5", "1.0", "1 2", "1e3", ""].map((no) => [no, null]),
  ])
    assert.equal(numberFrom(typed, "whole"), read, typed);
});

test("every cell of a result is found with its original digits", () => {
  const result = { text, ...indexResult(text) };
  assert.equal(result.rows, 5);
  assert.deepEqual(result.columns, [
    { name: "a,b", path: "/x" },
    { name: "b", path: null },
  ]);
  const cells = Array.from({ length: 5 }, (_, row) => [
    cellText(result, row, 0),
    cellText(result, row, 1),
  ]);
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

test("JSON is parsed and printed with its original digits", () => {
  const printed = print(parse('{"a":[1.0,{"b":1e400}],"c":"\\u00e9","d":{},"e":[]}'));
  assert.equal(
    printed,
    '{\n  "a": [\n    1.0,\n    {\n      "b": 1e400\n    }\n  ],\n  "c": "é",\n  "d": {},\n  "e": []\n}',
  );
  assert.throws(() => parse('{"a":"open'));
});

test("CSV follows RFC 4180, and no text becomes a formula", () => {
  assert.deepEqual(csv({ text, ...indexResult(text) }).split("\r\n"), [
    '"a,b",b',
    '1.50,"x]""[,"',
    ',"{""_type"":""DV_TEXT"",""value"":""}, {""}"',
    '-0.0e5,"[1,[2]]"',
    '"\'=1+1","\'@x"',
    'true,"über\n"',
    "",
  ]);
});

test("CSV is guarded by the rule of the core", async () => {
  const cases = (await readFile(new URL("../cases/csv/guard.ndjson", import.meta.url), "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.ok(cases.length > 30);
  for (const { text, csv } of cases) assert.equal(textField(text), csv, JSON.stringify(text));
});

test("NDJSON has one object per row with unique names", () => {
  const twice =
    '{"columns":[{"name":"x"},{"name":"x"}],"rows":[[1.0,"a"],[null,{"_type":"DV_TEXT","value":"b"}]]}';
  assert.equal(
    ndjson({ text: twice, ...indexResult(twice) }),
    '{"x":1.0,"x_2":"a"}\n{"x":null,"x_2":{"_type":"DV_TEXT","value":"b"}}\n',
  );
});

test("dates and date-times of any precision and zone are times", () => {
  const cases = {
    "1970-01-01T00:00:01Z": 1,
    "1970-01-02": 86400,
    "1970-01": 0,
    "19700101T010000+0100": 0,
    "1970-01-01T00:00:00.5": 0.5,
    "1970-01-01T00:00:00-01:30": 5400,
    nonsense: null,
    "12:30": null,
  };
  for (const [written, expected] of Object.entries(cases))
    assert.equal(seconds(written), expected, written);
});

test("columns of numbers, quantities and times can be drawn, and no others", () => {
  const sent = `{"columns":[{"name":"ehr"},{"name":"time"},{"name":"weight"},{"name":"n"}],"rows":[
    ["a","2020-01-01",{"_type":"DV_QUANTITY","magnitude":70.50,"units":"kg"},1],
    ["b",{"_type":"DV_DATE_TIME","value":"2021-01-01T00:00:00Z"},null,3],
    ["c",null,{"_type":"DV_QUANTITY","magnitude":80,"units":"kg"},2]]}`;
  const found = measures({ text: sent, ...indexResult(sent) });
  assert.deepEqual(
    found.map(({ name, kind, unit }) => [name, kind, unit]),
    [
      ["time", "time", ""],
      ["weight", "number", "kg"],
      ["n", "number", ""],
    ],
  );
  assert.deepEqual(found[1].values, [70.5, null, 80]);
  assert.deepEqual(summary(found[1].values), {
    count: 2,
    missing: 1,
    min: 70.5,
    median: 75.25,
    mean: 75.25,
    max: 80,
  });
});

test("units are separated, and grouping columns are found", () => {
  const quantity = (magnitude, units) =>
    `{"_type":"DV_QUANTITY","magnitude":${magnitude},"units":"${units}"}`;
  const sent = `{"columns":[{"name":"time"},{"name":"pressure"},{"name":"ward"},{"name":"patient"}],"rows":[
    ["2020-01-01",${quantity(120, "mm[Hg]")},"w","a"],["2020-01-02",${quantity(16, "kPa")},"w","b"],["2020-01-03",${quantity(130, "mm[Hg]")},"w","a"]]}`;
  const result = { text: sent, ...indexResult(sent) };
  const numbers = measures(result).filter(({ kind }) => kind === "number");
  assert.deepEqual(
    numbers.map(({ unit, values, others }) => [unit, values, others]),
    [
      ["mm[Hg]", [120, null, 130], 1],
      ["kPa", [null, 16, null], 2],
    ],
  );
  assert.deepEqual(groupings(result), [
    { name: "patient", keys: ["a", "b", "a"], groups: ["a", "b"] },
  ]);
});

test("a line has the readings of one patient; rows are matched with their patients cell by cell", () => {
  const rows = [
    ["2020-01-03", 130],
    ["2020-01-01", 120],
    ["2020-01-02", 110],
    [null, 1],
  ];
  const ehrs = ["a", "a", "b", "a"];
  const resultOf = (columns, rows) => {
    const sent = JSON.stringify({ columns: columns.map((name) => ({ name })), rows });
    return { text: sent, ...indexResult(sent) };
  };
  const result = resultOf(["time", "n"], rows);
  const wider = (rows) => resultOf(["time", "n", "ehr"], rows);
  const withEhrs = rows.map((row, at) => [...row, ehrs[at]]);
  assert.deepEqual(ehrsBeside(result, wider(withEhrs)), ehrs);
  assert.equal(ehrsBeside(result, wider(withEhrs.slice(1))), null);
  assert.equal(ehrsBeside(result, wider([...withEhrs].reverse())), null);
  const [time, number] = measures(result);
  const drawn = (groups, patients) =>
    lines(time, [number], groups, patients).map(({ group, patient, points }) => [
      group,
      patient,
      points.map(({ y }) => y),
    ]);
  assert.deepEqual(drawn(null, ehrs), [
    [null, "a", [120, 130]],
    [null, "b", [110]],
  ]);
  assert.deepEqual(drawn(["w", "w", "w", "w"], ehrs), [
    ["w", "a", [120, 130]],
    ["w", "b", [110]],
  ]);
  assert.deepEqual(drawn(null, null), [[null, null, [120, 110, 130]]]);
});

test("a distribution counts each decimal in its own interval, and small numbers have digits", () => {
  const tenths = Array.from({ length: 70 }, (_, at) => (350 + at) / 10);
  const several = tenths.flatMap((value) => new Array(40).fill(value));
  const { counts, width } = histogram(several);
  assert.equal(width, 0.2);
  assert.deepEqual(counts, new Array(35).fill(80));
  setTexts({ language: "en" });
  assert.deepEqual(
    [0.004, 0.51234, 1.2345, 0, -0.02].map((value) => decimal(value)),
    ["0.004", "0.512", "1.23", "0", "-0.02"],
  );
  assert.equal(decimal(1.2345, 0.0005), "1.2345");
});

test("a distribution counts every value once", () => {
  for (const values of [
    [5],
    [1, 1, 1],
    [0, 0.1, 0.2, 0.30000000000000004],
    Array.from({ length: 1000 }, (_, at) => at % 97),
    [-3, null, 4],
  ]) {
    const { counts, starts, width } = histogram(values);
    const there = values.filter((value) => value !== null);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      there.length,
    );
    assert.ok(starts[0] <= Math.min(...there) && Math.max(...there) <= starts.at(-1) + width);
    assert.ok(counts.length <= 101);
  }
});

test("broken JSON is reported with line and column, in every browser", () => {
  for (const [text, place] of [
    ['{\n  "a": oops\n}', "line 2, column 8: this is not JSON: found `oops`"],
    ['{"a": 1,}', "line 1, column 9: this is not JSON: found `}`"],
    ['{"a": [1 2]}', "line 1, column 10: this is not JSON: found `2]}`"],
    ['{"a" 1}', "line 1, column 6: this is not JSON: found `1}`"],
    ['{"a": [1,', "line 1, column 10: this is not JSON: found the end of the text"],
    ['{"a": "b\nc"}', 'line 1, column 7: this is not JSON: found `"b`'],
    ['{"a": 1} {}', "line 1, column 10: this is not JSON: found `{}`"],
  ])
    assert.throws(() => destination("x.json", text), { message: place }, text);
});

test("a file is read in its encoding, and refused if it has another", async () => {
  const read = async (...parts) => {
    const [file] = await textFiles([new File(parts, "a.xml")]);
    return file.text();
  };
  const xml = (encoding) => `<?xml version="1.0" encoding="${encoding}"?><a>Fieber: 38 °C</a>`;
  const latin = (text) => Buffer.from(text, "latin1");
  const wide = (text) => Buffer.from(`\uFEFF${text}`, "utf16le");
  assert.equal(await read(xml("UTF-8")), xml("UTF-8"));
  assert.equal(await read("\uFEFF", xml("utf-8")), xml("UTF-8"));
  assert.equal(await read(latin(xml("ISO-8859-1"))), xml("UTF-8"));
  assert.equal(await read(wide(xml("ISO-8859-1"))), xml("UTF-8"));
  assert.equal(await read(wide(xml("UTF-16"))), xml("UTF-8"));
  assert.equal(await read(xml("utf-16le")), xml("UTF-8"));
  assert.equal(await read(wide('{"a":"°"}').swap16()), '{"a":"°"}');
  await assert.rejects(read(latin('{"a":"°"}')), /cannot be read as UTF-8/);
  await assert.rejects(read(latin(xml("UTF-8"))), /cannot be read as UTF-8/);
  await assert.rejects(read(xml("x-unknown")), /cannot be read as x-unknown/);
});

test("the format of a document is known by its content", () => {
  const destinationOf = (json) => destination("x.json", JSON.stringify(json));
  assert.equal(destinationOf({ _type: "COMPOSITION" }).type, "application/json");
  assert.deepEqual(destinationOf({ "ctx/language": "en", "encounter/a:0/b|magnitude": 1 }), {
    scope: "ehr",
    path: "composition",
    type: "application/openehr.wt.flat+json",
    root: "encounter",
  });
  assert.deepEqual(destinationOf({ ctx: { language: "en" }, encounter: { a: [{ b: [1] }] } }), {
    scope: "ehr",
    path: "composition",
    type: "application/openehr.wt.structured+json",
    root: "encounter",
  });
  for (const other of [{}, { a: 1 }, { "a/b": 1, "c/d": 2 }])
    assert.throws(() => destinationOf(other), /expected a template/);
});

test("an excluded limit of a template is outside, and said to be excluded", async () => {
  const { hintsFrom, isOutside, setTexts } = await load("guide-hints", "texts");
  setTexts((await load("texts/en")).texts);
  const hint = (range) => {
    const inputs = [{ suffix: "unit", list: [{ value: "kPa", validation: { range } }] }];
    const tree = { rmType: "DV_QUANTITY", aqlPath: "/content[m]/items[at0001]/value", inputs };
    const bindings = [{ model_id: "m", elements: [{ id: "gt0001", path: "/items[at0001]" }] }];
    return hintsFrom([{ tree }], { bindings }, "en").get("gt0001");
  };
  const outside = (range) => [0, 9, 10, 99].filter((n) => isOutside(`${n},kPa`, hint(range)));
  const both = { min: 0, minOp: ">=", max: 10, maxOp: "<" };
  assert.deepEqual(outside(both), [10, 99]);
  assert.equal(hint(both).words, "at least 0 and less than 10 kPa");
  assert.deepEqual(outside({ min: 0, minOp: ">" }), [0]);
  assert.equal(hint({ min: 0, minOp: ">" }).words, "more than 0 kPa");
  assert.deepEqual(outside({ ...both, maxOp: "<=" }), [99]);
  assert.equal(hint({ ...both, maxOp: "<=" }).words, "0 to 10 kPa");
  assert.deepEqual([outside({}), hint({}).words], [[], ""]);
});

test("a query with any content is printed as a program", () => {
  const call = {
    base: "https://cdr.example.org/v1/",
    q: "SELECT 'it''s' AS \"x\"\nFROM EHR e WHERE e/n = $n",
    parameters: { n: { text: "140" }, from: { text: "2020-01-01" }, list: ["a", 1] },
  };
  const curl = languages.curl.write(call);
  assert.match(curl, /^curl -s https:\/\/cdr\.example\.org\/v1\/query\/aql /);
  // The shell command contains the body as a quoted text, which a shell must read as the JSON text.
  const quoted = curl.slice(curl.indexOf(" -d '") + 5, -1).replaceAll("'\\''", "'");
  assert.deepEqual(JSON.parse(quoted), {
    q: call.q,
    query_parameters: { n: 140, from: "2020-01-01", list: ["a", 1] },
  });
  assert.match(languages.pandas.write(call), /"n": 140, "from": "2020-01-01", "list": \["a", 1\]/);
  assert.match(languages.r.write(call), /n = 140, from = "2020-01-01", list = list\("a", 1\)/);
  assert.doesNotThrow(
    () => new Function(`return async () => { ${languages.javascript.write(call)} }`),
  );
});

/** Returns the items of an outline as words, and checks that their positions are those of the codes. */
function items(text) {
  return outline(text).map(({ kind, code, language, from, to }) => {
    assert.ok(text.slice(from, to).includes(`"${code}"`), `${code} at ${from}`);
    return [kind, code, language].filter(Boolean).join(" ");
  });
}

const TERMS = ["term gt1 en", "term gt2 en", "term gt1 de"];

test("the outline of a guide in JSON has bindings, elements, rules and terms", () => {
  const text = `{"id": "A.v1", "definition": {
    "data_bindings": {"gt1": {"id": "gt1", "elements": {"gt2": {"path": "/a[at1]"}}}},
    "rules": {"gt3": {"when": ["$gt2|Weight {\\"x\\"}| == '}'"]}}},
    "ontology": {"term_definitions": {"en": {"terms": {"gt1": {"text": "rules: {"}, "gt2": {}}}, "de": {"terms": {"gt1": {}}}}}}`;
  assert.deepEqual(items(text), ["binding gt1", "element gt2", "rule gt3", ...TERMS]);
});

test("the outline of a guide in ODIN has bindings, elements, rules and terms", () => {
  const text = `(GUIDE) <
    id = <"A.v1">  -- "rules" = <
    definition = (GUIDE_DEFINITION) <
      archetype_bindings = < ["gt1"] = (ARCHETYPE_BINDING) < elements = < ["gt2"] = (ELEMENT_BINDING) < path = <"/a[at1]"> > > > >
      rules = < ["gt3"] = (RULE) < when = <"$gt2 > 3,kg", "a \\" > b",...> priority = <1> > > >
    ontology = (GUIDE_ONTOLOGY) < term_definitions = <
      ["en"] = (TERM_DEFINITION) < terms = < ["gt1"] = (TERM) < text = <"one
        [\\"gt9\\"] = <"> > ["gt2"] = (TERM) < > > >
      ["de"] = (TERM_DEFINITION) < terms = < ["gt1"] = (TERM) < > > > > > >`;
  assert.deepEqual(items(text), ["binding gt1", "element gt2", "rule gt3", ...TERMS]);
});

test("an incomplete text has the outline of its beginning", () => {
  assert.deepEqual(items('{"definition": {"rules": {"gt3": {"when": ["$gt'), ["rule gt3"]);
  assert.deepEqual(items(""), []);
  assert.deepEqual(items('}}>"'), []);
});

test("the id of a guide is found at its root only, and the next free version is named", () => {
  const json = '{"description": {"id": "en"}, "id": "Äß.v1"}';
  const { id, from, to } = idOf(json);
  assert.equal(id, "Äß.v1");
  assert.equal(json.slice(from, to), id);
  const odin = '(GUIDE) <\n\tlanguage = <id = <"en">>\n\tid = <"B.v2">\n>';
  assert.equal(odin.slice(idOf(odin).from, idOf(odin).to), "B.v2");
  assert.equal(idOf('{"a": {"id": "x"}}'), null);
  const taken = new Set(["A.v2", "A.v3"]);
  assert.equal(
    nextVersion("A.v1", (one) => taken.has(one)),
    "A.v4",
  );
  assert.equal(
    nextVersion("plain", () => false),
    "plain.v2",
  );
});

/** A folder of files in a browser that writes in place only. `write` is called before each write. */
function folderInPlace(write) {
  const files = new Map();
  const handleOf = (name) => ({
    getFile: async () => new Blob([files.get(name)]),
    createSyncAccessHandle: async () => ({
      truncate: (size) => files.set(name, files.get(name).slice(0, size)),
      write: (bytes) => {
        write(name);
        files.set(name, Uint8Array.from([...files.get(name), ...bytes]));
        return bytes.length;
      },
      flush: () => undefined,
      close: () => undefined,
    }),
  });
  return {
    keys: () => files.keys(),
    getDirectoryHandle: async () => folderInPlace(write),
    getFileHandle: async (name, { create }) => {
      if (!files.has(name) && !create) throw new DOMException("", "NotFoundError");
      if (!files.has(name)) files.set(name, new Uint8Array());
      return handleOf(name);
    },
  };
}

test("data sets are read if the replacement of their index in place broke off", async () => {
  /** The name of the file at whose next write the tab is closed. */
  let broken = "index.json.new";
  const root = folderInPlace((name) => {
    if (broken === name) throw new Error("the tab was closed");
  });
  globalThis.FileSystemFileHandle = class {
    createSyncAccessHandle() {}
  };
  const storage = { getDirectory: async () => ({ getDirectoryHandle: async () => root }) };
  Object.defineProperty(globalThis, "navigator", { value: { storage }, configurable: true });
  const names = async () => {
    const sets = await DataSets.open(await opfs("aqlite"));
    return (await sets.list()).map(({ name }) => name);
  };
  const sets = await DataSets.open(await opfs("aqlite"));
  await assert.rejects(sets.create("Ward 6"), /closed/);
  assert.deepEqual(await names(), []);
  // An earlier release left this.
  await root.getFileHandle("index.json", { create: true });
  assert.deepEqual(await names(), []);
  broken = "";
  await sets.create("Ward 7");
  broken = "index.json";
  await assert.rejects(sets.create("Ward 8"), /closed/);
  assert.deepEqual((await names()).sort(), ["Ward 7", "Ward 8"]);
  broken = "index.json.new";
  await assert.rejects(sets.create("Ward 9"), /closed/);
  assert.deepEqual((await names()).sort(), ["Ward 7", "Ward 8"]);
  broken = "";
  const { getFileHandle } = root;
  root.getFileHandle = async (...given) => ({ getFile: (await getFileHandle(...given)).getFile });
  const reading = await DataSets.open(await opfs("aqlite"));
  assert.equal((await reading.list()).length, 2);
  await assert.rejects(reading.create("Ward 9"), /in a Service Worker, this browser can only read/);
});
