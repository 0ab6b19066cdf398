// The npm package in the form in which users get it: packed and installed. The programs of its README run
// in each host.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { tableFromIPC } from "apache-arrow";
import { parquetReadObjects } from "hyparquet";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { brotliCompressSync } from "node:zlib";
import { startDev } from "../e2e/server.mjs";
import { browse, expect } from "../web/page.mjs";
import { assertNotices, crates, packages } from "../web/parts.mjs";
import { serve } from "../web/server.mjs";
import { packed, root, unpacked } from "./unpacked.mjs";

const program = (name) => join(root, "node_modules/.bin", name);
let house, aqlite;

before(async () => {
  house = await unpacked("package");
  const folder = join(house, "node_modules/aqlite");
  const readme = await readFile(join(folder, "README.md"), "utf8");
  for (const [, code] of readme.matchAll(/```(?:js|html)\n([\s\S]*?)```/g)) {
    const name = /([\w-]+\.(?:mjs|cjs|js|html))/.exec(code.split("\n", 1)[0])?.[1];
    if (name) await writeFile(join(house, name), code);
  }
  aqlite = await import(pathToFileURL(join(folder, "node.js")).href);
});

const aDataSet = (name) => ({ name, folder: join(house, "data") });
const COUNT = "SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c";

test("publint and attw find nothing", async () => {
  const linted = spawnSync(program("publint"), ["run", "--strict", packed], { encoding: "utf8" });
  assert.equal(linted.status, 0, linted.stdout + linted.stderr);
  assert.match(linted.stdout, /All good/);
  const typed = spawnSync(
    program("attw"),
    [packed, "--profile", "esm-only", "--exclude-entrypoints", "aqlite.wasm", "aqlite-arrow.wasm"],
    { encoding: "utf8" },
  );
  assert.equal(typed.status, 0, typed.stdout + typed.stderr);
});

test("the package contains only needed files", async () => {
  const names = (await readdir(join(house, "node_modules/aqlite")))
    .map((name) => name.replace(/-\w{8}\.js/, "-*.js"))
    .sort();
  const types = [
    "codes.d.ts",
    "dispose.d.ts",
    "editor.d.ts",
    "errors.d.ts",
    "host.d.ts",
    "index.d.ts",
    "language.d.ts",
    "repository.d.ts",
    "result.d.ts",
    "slim.d.ts",
    "start.d.ts",
    "types.d.ts",
  ];
  const code = [
    "browser.js",
    "editor.js",
    "node.js",
    ...Array(6).fill("shared-*.js"),
    "slim.js",
    "workerd.js",
  ];
  assert.deepEqual(
    names,
    [
      "LICENSE-APACHE",
      "LICENSE-MIT",
      "README.md",
      "THIRD_PARTY_NOTICES.txt",
      "aqlite-arrow.wasm",
      "aqlite.wasm",
      ...code,
      "package.json",
      ...types,
    ].sort(),
  );
  const written = await Promise.all(
    types.map((name) => readFile(join(house, "node_modules/aqlite", name), "utf8")),
  );
  assert.doesNotMatch(written.join(""), /\.\.\/src|aqlite-wasm/);
});

test("the README states the sizes of the package", async () => {
  const folder = join(house, "node_modules/aqlite");
  const readme = (await readFile(join(folder, "README.md"), "utf8")).replaceAll(/\s+/g, " ");
  const stated = (pattern) => pattern.exec(readme).slice(1).map(Number);
  const sizes = async (name) => {
    const bytes = await readFile(join(folder, name));
    return [bytes.length / 1e6, brotliCompressSync(bytes).length / 1e6];
  };
  const [first, second] = [await sizes("aqlite.wasm"), await sizes("aqlite-arrow.wasm")];
  const pack = (await readFile(packed)).length / 1e6;
  const found = [
    ...stated(/`aqlite\.wasm` has ([\d.]+) MB, or ([\d.]+) MB/),
    ...stated(/`aqlite-arrow\.wasm` has ([\d.]+) MB, or ([\d.]+) MB/),
    ...stated(/packed package has ([\d.]+) MB/),
  ];
  [...first, ...second, pack].forEach((size, at) =>
    assert.ok(
      Math.abs(found[at] / size - 1) < 0.1,
      `${found[at]} MB are stated, ${size} MB are there`,
    ),
  );
});

test("the notices of the package name every foreign part with a license", async () => {
  assertNotices(
    await readFile(join(house, "node_modules/aqlite/THIRD_PARTY_NOTICES.txt"), "utf8"),
    [...packages("www/package"), ...crates()],
  );
});

test("programs compile with the types of the package", async () => {
  const good = `import { AqliteError, Repository, format, start, type HostResponse, type QueryResult } from "aqlite";
const repository: Repository = await Repository.open({ name: "x" });
const result: QueryResult = await repository.query(format("SELECT e FROM EHR e"), { parameters: { a: 1, b: { text: "2" } }, timeout: 5 });
for (const row of result) row.length + result.csv({ guard: true }).length;
{
  using other = await Repository.open();
  await start();
  void (other satisfies { [Symbol.dispose](): void });
}
export const answer: Promise<HostResponse> = repository.fetch({ method: "GET", url: "", headers: new Map([["a", "b"]]), text: async () => "" });
export let message: string | undefined;
try { await repository.addComposition("x", {}); } catch (error) { if (error instanceof AqliteError) message = error.diagnostics[0]?.path ?? error.code; }
`;
  const ofBrowser = `import { Repository, start } from "aqlite";
import { AqlEditor } from "aqlite/editor";
const editor = document.createElement("aql-editor") satisfies AqlEditor;
editor.services = await Repository.open();
const ran = ({ detail }: CustomEvent<string>) => detail.trim();
editor.addEventListener("run", ran);
editor.removeEventListener("run", ran);
editor.addEventListener("diagnostics", ({ detail }) => detail[0]?.message);
editor.addEventListener("keydown", ({ key }) => key.length);
await start(await fetch("aqlite.wasm"));
await start(new WebAssembly.Module(new ArrayBuffer(8)));
const controller = new AbortController();
const repository = await Repository.open();
await repository.query("", { signal: controller.signal });
export const answer: Response = await repository.fetch(new Request("https://example.org/v1"));
`;
  await writeFile(join(house, "good.mts"), good);
  await writeFile(join(house, "of-browser.mts"), ofBrowser);
  await writeFile(
    join(house, "bad.mts"),
    'import { Repository } from "aqlite";\n(await Repository.open()).query(5);\n',
  );
  const check = async (file, resolution, lib = ["es2022"]) => {
    const compilerOptions = {
      noEmit: true,
      strict: true,
      skipDefaultLibCheck: true,
      exactOptionalPropertyTypes: true,
      target: "es2022",
      lib,
      types: [],
      ...resolution,
    };
    await writeFile(
      join(house, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: [file] }),
    );
    return spawnSync("node", [join(root, "node_modules/typescript/bin/tsc")], {
      cwd: house,
      encoding: "utf8",
    }).stdout;
  };
  for (const resolution of [
    { module: "nodenext" },
    { module: "esnext", moduleResolution: "bundler" },
  ]) {
    assert.equal(await check("good.mts", resolution), "");
    assert.equal(await check("of-browser.mts", resolution, ["es2022", "dom"]), "");
    assert.match(await check("bad.mts", resolution), /bad\.mts\(2,.*number/);
  }
});

test("CommonJS programs can require the package", () => {
  const code = `const { Repository, format } = require("aqlite");
Repository.open().then((repository) => repository.query(format("select e from EHR e"))).then(({ rows }) => console.log(rows.length));`;
  const ran = spawnSync("node", ["--input-type=commonjs", "--eval", code], {
    cwd: house,
    encoding: "utf8",
  });
  assert.equal(ran.stdout, "0\n", ran.stderr);
});

test("the slim entry starts from bytes and names missing parts", () => {
  const code = `import { readFile } from "node:fs/promises";
import { Repository, format, start } from "aqlite/slim";
const shown = (error) => console.log(error.code, error.message);
await Repository.open().catch(shown);
try { format("select e from EHR e"); } catch (error) { shown(error); }
await start(new TextEncoder().encode("<!doctype html>")).catch(shown);
await start("http://127.0.0.1:1/aqlite.wasm").catch(shown);
const bytes = await readFile(new URL(import.meta.resolve("aqlite/aqlite.wasm")));
await Promise.all([start(bytes), start(bytes)]);
await start();
console.log(format("select e from EHR e").split(/\\s/).length);
await Repository.open({ name: "x" }).catch(shown);`;
  const ran = spawnSync("node", ["--input-type=module", "--eval", code], {
    cwd: house,
    encoding: "utf8",
  });
  assert.match(
    ran.stdout,
    /^NOT_STARTED .*\nNOT_STARTED .*\nMODULE .*the bytes: it has other content.*\nMODULE .*127\.0\.0\.1:1.*\n6\nSTORAGE .*without `name`.*\n$/,
    ran.stderr,
  );
});

test("repositories and results are freed at the end of a block", async () => {
  const repository = await aqlite.Repository.open();
  const result = await repository.query(COUNT);
  result[Symbol.dispose]();
  assert.throws(() => result.csv(), /was freed/);
  repository[Symbol.dispose]();
  await assert.rejects(repository.query(COUNT), { code: "CLOSED" });
});

test("the README's program runs in Node", () => {
  const ran = spawnSync("node", ["node.mjs"], { cwd: house, encoding: "utf8" });
  assert.equal(ran.status, 0, ran.stderr);
  assert.match(ran.stdout, /systolic/);
  assert.match(ran.stdout, /\[\] [0-9a-f-]{36}::aqlite\.local::1/);
});

test("the README's pages are those of one result", () => {
  const ran = spawnSync("node", ["pages.mjs"], { cwd: house, encoding: "utf8" });
  assert.match(ran.stdout, /^(?:25\n)+(?:\d+\n)?$/, ran.stderr);
});

test("the README's program writes a Parquet file", async () => {
  const ran = spawnSync("node", ["tables.mjs"], { cwd: house, encoding: "utf8" });
  assert.equal(ran.status, 0, ran.stderr);
  const { buffer } = Uint8Array.from(await readFile(join(house, "compositions.parquet")));
  assert.equal((await parquetReadObjects({ file: buffer })).length, 53);
});

test("queries and guides are parsed, explained and formatted without data", () => {
  const { tokens, syntax, diagnostics } = aqlite.parse("SELECT e/dta FROM EHR e");
  assert.equal(tokens[0].kind, "keyword");
  assert.ok(syntax.parts.length > 0);
  assert.deepEqual([diagnostics[0].from, diagnostics[0].to], [9, 12]);
  assert.match(aqlite.format("select e from EHR e"), /^SELECT e\s+FROM EHR e/);
  assert.throws(
    () => aqlite.format("SELECT"),
    (error) =>
      error instanceof aqlite.AqliteError &&
      error.code.startsWith("AQL") &&
      error.diagnostics.length > 0,
  );
  assert.throws(() => aqlite.format(7), /the query is of type number, expected a text/);
  assert.ok(aqlite.complete("SEL").options.some(({ label }) => label === "SELECT"));
  assert.ok(aqlite.hover("SELECT e FROM EHR e", 15).title);
  assert.ok(aqlite.explain("SELECT e FROM EHR e").plan);
  assert.equal(aqlite.convert(1, "kg", "g"), 1000);
});

test("documents, guides and rows have the described forms", async () => {
  const repository = await aqlite.Repository.open({ admin: true });
  await repository.generate({ ehrs: 12, compositions: 90, seed: 3 });
  const { rows } = await repository.query(COUNT);
  assert.ok(rows[0][0] > 50);
  const [template] = await repository.templates();
  const document = await repository.example(template, { kind: "minimal" });
  assert.deepEqual(await repository.validate(document), []);
  const [first] = await repository.validate({ ...document, language: undefined });
  assert.equal(first.severity, "error");
  assert.match(first.path, /language/);
  const ehr = await repository.createEhr({ subject: { id: "17", namespace: "ward" } });
  const text = JSON.stringify(document);
  const uid = await repository.addComposition(ehr, text);
  assert.match(uid, /::1$/);
  await assert.rejects(
    repository.addComposition(ehr, "{"),
    (error) => error instanceof aqlite.AqliteError && error.status === 400,
  );
  await assert.rejects(repository.createEhr({ ehrId: ehr }), { status: 409 });
  const one = await repository.query(
    "SELECT c FROM EHR e[ehr_id/value=$ehr] CONTAINS COMPOSITION c",
    { parameters: { ehr } },
  );
  assert.equal(one.rows[0][0].uid.value, uid);
  assert.match(one.csv(), /^c/);
  one.free();
  assert.throws(() => one.csv(), /was freed/);
  const { tree } = await repository.describeTemplate(template);
  assert.ok(tree.children.length > 0);
  assert.equal((await repository.webTemplate(template)).templateId, template);
  const flat = await repository.example(template, { format: "FLAT" });
  assert.match(
    await repository.addComposition(ehr, flat, { format: "FLAT", templateId: template }),
    /::1$/,
  );
  const { body } = await repository.request({ path: "definition/gdl" });
  const { guide_id } = JSON.parse(body)[0];
  assert.ok(await repository.runGuide(guide_id, ehr, { trace: true }));
  const guide = (await repository.request({ path: `definition/gdl/${guide_id}` })).body;
  assert.equal(aqlite.describeGuide(guide).id, guide_id);
  assert.ok(Array.isArray(aqlite.runGuide(guide, {}).fired));
  const explained = await repository.explain(COUNT);
  assert.ok(explained.run.documents > 50);
  const other =
    "SELECT o FROM OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v1] WHERE o/name = 'x'";
  const found = await repository.diagnose(other);
  assert.deepEqual(
    found.map(({ code }) => code),
    ["AQL0606", "AQL0612"],
  );
  assert.equal(found[0].fix.text, "openEHR-EHR-OBSERVATION.blood_pressure.v2");
  assert.deepEqual(
    aqlite.diagnose(other).map(({ code }) => code),
    ["AQL0612"],
  );
  const { warnings, empty } = await repository.explain(other);
  assert.equal(warnings.length, 2);
  assert.deepEqual(
    empty.parts.map(({ kind, rows }) => [kind, rows > 0]),
    [
      ["class", true],
      ["predicate", false],
    ],
  );
  const answer = await repository.fetch(new Request(`http://localhost/rest/openehr/v1/ehr/${ehr}`));
  assert.deepEqual([answer.status, (await answer.json()).ehr_id.value], [200, ehr]);
  repository.close();
  await assert.rejects(repository.query(COUNT), { code: "CLOSED" });
});

test("a request is answered below the path of `baseUrl`", async () => {
  for (const baseUrl of ["https://example.org", "https://example.org/openehr/"]) {
    const repository = await aqlite.Repository.open({ baseUrl });
    const of = (path) => `${baseUrl.replace(/\/$/, "")}${path}`;
    const created = await repository.fetch(new Request(of("/v1/ehr"), { method: "POST" }));
    assert.equal(created.status, 201);
    const location = created.headers.get("location");
    assert.ok(location.startsWith(of("/")), location);
    assert.equal((await repository.fetch(new Request(location))).status, 200);
  }
});

test("every error has a stable code", async () => {
  const repository = await aqlite.Repository.open();
  await repository.generate({ ehrs: 2, compositions: 4 });
  const [template] = await repository.templates();
  const ehr = await repository.createEhr();
  const valid = await repository.example(template);
  const codeOf = (call) =>
    Promise.resolve()
      .then(call)
      .then(assert.fail, ({ code }) => code);
  const cases = [
    ["ARGUMENT", () => aqlite.format(7)],
    ["ARGUMENT", () => aqlite.describeGuide("{}", "en", { now: new Date(NaN) })],
    ["ARGUMENT", () => repository.query(COUNT, { parameters: { big: 1n } })],
    ["ARGUMENT", () => repository.query(COUNT, { parameters: "a" })],
    ["AQL0203", () => repository.query("SELECT e/dta FROM EHR e")],
    ["AQL0101", () => aqlite.format("SELECT")],
    ["RM0001", () => repository.addComposition(ehr, "{")],
    ["BAD_REQUEST", () => repository.createEhr({ ehrId: "no id" })],
    ["CONFLICT", () => repository.createEhr({ ehrId: ehr })],
    ["NOT_FOUND", () => repository.runGuide("none", ehr)],
    ["RM0201", () => repository.addComposition(ehr, { ...valid, language: undefined })],
    ["SAMPLES", () => repository.generate({ ehrs: 2, compositions: 4 })],
    ["IMPORT", () => repository.import('{"record":{}}\n')],
    ["STORAGE", () => aqlite.Repository.open({ name: "x" })],
    ["STORAGE", () => aqlite.Repository.open({ name: "x", folder: "/dev/null/x" })],
  ];
  const found = [];
  for (const [, call] of cases) found.push(await codeOf(call));
  assert.deepEqual(
    found,
    cases.map(([code]) => code),
  );
  const broken = new Error("of the caller");
  const throwing = { onProgress: () => assert.fail(broken) };
  const another = await aqlite.Repository.open();
  await assert.rejects(
    another.generate({ ehrs: 1, compositions: 2 }, throwing),
    (error) => error === broken,
  );
});

test("users add templates, compositions and guides", async () => {
  const cases = (name) => readFile(join(root, "tests/cases", name), "utf8");
  const repository = await aqlite.Repository.open();
  const template = await repository.addTemplate(await cases("template/small.opt"));
  assert.deepEqual(await repository.templates(), [template]);
  await assert.rejects(
    repository.addTemplate("<template/>"),
    (error) => error.status === 400 && error.diagnostics.length > 0,
  );
  const ehr = await repository.createEhr();
  const weight = await cases("rest/weight.json");
  assert.match(await repository.addComposition(ehr, weight), /::1$/);
  const { text } = await repository.query("SELECT c FROM EHR e CONTAINS COMPOSITION c");
  assert.match(text, /"magnitude":72\.50/, "the digits are those that were sent");
  const guide = await repository.addGuide(await cases("rest/weight_class.gdl2"));
  assert.ok(await repository.runGuide(guide, ehr));
  await assert.rejects(repository.runGuide("no such guide", ehr), { status: 404 });
});

test("a query reports progress and can be stopped", async () => {
  const repository = await aqlite.Repository.open();
  await repository.generate({ ehrs: 60, compositions: 1500 });
  const slow =
    "SELECT COUNT(*) AS n FROM EHR e CONTAINS (COMPOSITION a CONTAINS ELEMENT b CONTAINS ELEMENT d) AND COMPOSITION c CONTAINS ELEMENT x";
  await assert.rejects(repository.query(slow, { timeout: 0 }), {
    name: "AbortError",
    code: "ABORTED",
  });
  await assert.rejects(repository.query(slow, { shouldStop: () => true }), { code: "ABORTED" });
  await assert.rejects(
    repository.query(slow, { signal: AbortSignal.abort("enough") }),
    (reason) => reason === "enough",
  );
  assert.ok((await repository.query(COUNT)).rows[0][0] > 1000);
});

test("a result of more than 64 MB is read in pages of one state", async () => {
  const repository = await aqlite.Repository.open();
  await repository.generate({ ehrs: 40, compositions: 12_000 });
  const q = "SELECT c, c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c";
  await assert.rejects(repository.query(q), { code: "RESULT_TOO_LARGE" });
  const count = (await repository.query(COUNT)).rows[0][0];
  const uids = new Set();
  let [bytes, pages, longest] = [0, 0, 0];
  for await (const page of repository.pages(q, { rows: 50_000 })) {
    if (pages === 0)
      await repository
        .generate({ ehrs: 1, compositions: 3, seed: 2 })
        .catch(() => repository.createEhr());
    bytes += page.text.length;
    longest = Math.max(longest, page.text.length);
    pages += 1;
    for (const [, uid] of page) uids.add(uid);
    page.free();
  }
  assert.equal(uids.size, count);
  assert.ok(bytes > 64 << 20, String(bytes));
  assert.ok(pages > 1 && longest < 100 << 20, `${pages} pages, ${longest} bytes`);
  const none = [];
  for await (const page of repository.pages("SELECT e FROM EHR e WHERE e/ehr_id/value = 'x'"))
    none.push(page.rows.length);
  assert.deepEqual(none, [0]);
  const first = (options) => repository.pages(q, options).next();
  await assert.rejects(first({ rows: 0 }), { code: "ARGUMENT" });
  await assert.rejects(first({ timeout: 0 }), { code: "ABORTED" });
  await assert.rejects(repository.pages("SELECT TOP 2 BACKWARD e FROM EHR e").next(), {
    code: "AQL0406",
  });
});

test("pages show one state, also if the data set is opened from a checkpoint between them", async () => {
  const set = { name: "ward", folder: join(house, "pages") };
  const repository = await aqlite.Repository.open(set);
  await repository.generate({ ehrs: 200, compositions: 1500, seed: 3 });
  const q = "SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c";
  const { rows } = await repository.query(q);
  const [found, checkpoints] = [[], []];
  for await (const page of repository.pages(q, { rows: 500 })) {
    found.push(...page.rows);
    await repository.generate({ ehrs: 10, compositions: 60, seed: found.length });
    // A long journal is compacted when it is opened.
    (await aqlite.Repository.open(set)).close();
    const names = await readdir(set.folder, { recursive: true });
    checkpoints.push(...names.filter((name) => name.endsWith(".checkpoint")));
  }
  assert.ok(checkpoints.length > 0);
  assert.ok(found.length > 1000);
  assert.deepEqual(found, rows);
  repository.close();
});

test("a result becomes a table of Arrow and of Parquet", async () => {
  const repository = await aqlite.Repository.open();
  await repository.generate({ ehrs: 10, compositions: 60 });
  const q = `SELECT e/ehr_id/value AS ehr, e/time_created/value AS start,
    o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic
    FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]`;
  const result = await repository.query(q);
  const rows = result.objects();
  assert.ok(rows.length > 10);
  const arrow = tableFromIPC(await result.toArrow());
  assert.equal(arrow.schema.metadata.get("aqlite.aql"), q);
  const types = arrow.schema.fields.map(({ name, type }) => `${name}: ${type}`);
  assert.match(types.join(), /start: Timestamp<MICROSECOND, UTC>,systolic: (?:Int64|Float64)/);
  const milliseconds = (row) => Number(row.start);
  assert.deepEqual(
    arrow.toArray().map((row) => [row.ehr, milliseconds(row), row.systolic]),
    rows.map(({ ehr, start, systolic }) => [ehr, Date.parse(start), systolic]),
  );
  const texts = tableFromIPC(await result.toArrow({ times: "text" }));
  assert.deepEqual(
    texts.toArray().map(({ start }) => start),
    rows.map(({ start }) => start),
  );
  const parquet = (await result.toParquet()).buffer;
  assert.deepEqual(
    (await parquetReadObjects({ file: parquet })).map(({ ehr, start, systolic }) => [
      ehr,
      start.getTime(),
      systolic,
    ]),
    rows.map(({ ehr, start, systolic }) => [ehr, Date.parse(start), systolic]),
  );
  await assert.rejects(result.toArrow({ times: "never" }), { code: "ARGUMENT" });
});

test("a data set on the disk can be opened again and moved", async () => {
  const first = await aqlite.Repository.open(aDataSet("ward"));
  await first.generate({ ehrs: 5, compositions: 30 });
  const all = [...(await first.query(COUNT))];
  first.close();
  const again = await aqlite.Repository.open(aDataSet("ward"));
  assert.deepEqual([...(await again.query(COUNT))], all);
  const copy = await aqlite.Repository.open(aDataSet("copy"));
  const pages = [];
  for await (const page of again.export()) {
    pages.push(page);
    await copy.import(page);
  }
  assert.deepEqual([...(await copy.query(COUNT))], all);
  await assert.rejects(copy.import(pages[0].replace("digest", "digets")), { status: 400 });
  const other = spawnSync(
    "node",
    [
      "--input-type=module",
      "--eval",
      `import { Repository } from "aqlite"; await Repository.open(${JSON.stringify(aDataSet("ward"))});`,
    ],
    { cwd: house, encoding: "utf8" },
  );
  assert.match(other.stderr, /the data sets are open in process \d+/);
  assert.deepEqual(
    (await aqlite.Repository.list(aDataSet())).map(({ name }) => name),
    ["ward", "copy"],
  );
  copy.close();
  assert.equal(await aqlite.Repository.remove("copy", aDataSet()), true);
  assert.equal(await aqlite.Repository.remove("copy", aDataSet()), false);
});

test("a journal with other content is an error of the journal, not of the storage", async () => {
  const where = aDataSet("other");
  const repository = await aqlite.Repository.open(where);
  await repository.createEhr();
  repository.close();
  const { id } = (await aqlite.Repository.list(where)).find(({ name }) => name === "other");
  const folder = join(where.folder, id);
  const [journal] = (await readdir(folder)).filter((name) => name.endsWith(".log"));
  await writeFile(join(folder, journal), "{}\n");
  await assert.rejects(aqlite.Repository.open(where), { code: "JOURNAL" });
  await aqlite.Repository.remove("other", where);
});

test("a folder belongs to one process until its repositories are closed", async () => {
  const where = { name: "x", folder: join(house, "locked") };
  const lock = join(where.folder, "lock");
  const isThere = () => readdir(where.folder).then((names) => names.includes("lock"));
  const entry = pathToFileURL(join(house, "node_modules/aqlite/node.js")).href;
  const program = `import("${entry}").then(({ Repository }) => Repository.open(${JSON.stringify(where)})).catch(({ code }) => console.log(code));`;
  const inProcess = () => spawnSync("node", ["-e", program], { cwd: house, encoding: "utf8" });
  const inThread = async () => {
    const thread = new Worker(program, { eval: true, stdout: true });
    await once(thread, "exit");
    return thread.stdout.read()?.toString() ?? "";
  };
  // A lock of a former process with the number of this one, as in a container.
  await mkdir(where.folder, { recursive: true });
  await writeFile(lock, `${process.pid} 1 - of-the-former-process`);
  const one = await aqlite.Repository.open(where);
  // Since then, the clock was set forward, or the machine slept.
  await utimes(lock, 1, 1);
  const other = await aqlite.Repository.open(where);
  one.close();
  one.close();
  assert.equal(inProcess().stdout, "LOCKED\n");
  assert.equal(await inThread(), "LOCKED\n");
  other.close();
  assert.equal(await isThere(), false);
  assert.equal(inProcess().stdout, "");
  await aqlite.Repository.list(where);
  assert.equal(await isThere(), false);
  // A killed process.
  await writeFile(lock, String(spawnSync("node", ["-e", ""]).pid));
  (await aqlite.Repository.open(where)).close();
});

test("a long journal is compacted, and deleted data are in no file", async () => {
  const folder = join(house, "compacted");
  const set = { name: "ward", folder, admin: true };
  const names = async () => {
    const [entry] = (await readdir(folder, { withFileTypes: true })).filter((e) => e.isDirectory());
    return (await readdir(join(folder, entry.name))).map((name) => join(folder, entry.name, name));
  };
  const repository = await aqlite.Repository.open(set);
  await repository.generate({ ehrs: 200, compositions: 1500, seed: 3 });
  const count = async (opened) => (await opened.query(COUNT)).rows[0][0];
  const many = await count(repository);
  const exported = async (opened) => {
    let text = "";
    for await (const page of opened.export()) text += page;
    return text;
  };
  const text = await exported(repository);
  repository.close();
  const again = await aqlite.Repository.open(set);
  assert.equal((await names()).filter((name) => name.endsWith(".checkpoint")).length, 1);
  assert.equal(await count(again), many);
  assert.equal(await exported(again), text);
  const ehr = await again.createEhr({ subject: { id: "confidential", namespace: "ward" } });
  const holders = async (id = ehr) => {
    const texts = await Promise.all((await names()).map((name) => readFile(name, "latin1")));
    return texts.filter((bytes) => bytes.includes(id)).length;
  };
  assert.equal(await holders(), 1);
  const deleted = await again.request({ method: "DELETE", path: `admin/ehr/${ehr}` });
  assert.ok(deleted.status < 300, deleted.body);
  assert.equal(await holders(), 0);
  assert.equal((await names()).length, 1);
  // A deletion is stored also if the texts cannot be erased at once. They are when the set is opened.
  const other = await again.createEhr();
  const { randomUUID } = crypto;
  crypto.randomUUID = () => {
    crypto.randomUUID = () => "no folder/of this name";
    return randomUUID.call(crypto);
  };
  const kept = await again.request({ method: "DELETE", path: `admin/ehr/${other}` });
  crypto.randomUUID = randomUUID;
  assert.ok(kept.status < 300, kept.body);
  assert.equal(await holders(other), 1);
  again.close();
  const last = await aqlite.Repository.open(set);
  assert.equal(await exported(last), text);
  assert.equal(await holders(other), 0);
  last.close();
});

test("a deletion whose module fails before its texts are erased is not acknowledged", async () => {
  const set = { name: "ward", folder: join(house, "unerased"), admin: true };
  const repository = await aqlite.Repository.open(set);
  const ehr = await repository.createEhr();
  const { randomUUID } = crypto;
  const { slice } = Uint8Array.prototype;
  const restored = () => {
    crypto.randomUUID = randomUUID;
    Uint8Array.prototype.slice = slice;
  };
  // The second id is the name of the checkpoint.
  crypto.randomUUID = () => {
    crypto.randomUUID = () => {
      Uint8Array.prototype.slice = () => {
        throw new WebAssembly.RuntimeError("unreachable");
      };
      return randomUUID.call(crypto);
    };
    return randomUUID.call(crypto);
  };
  const deleting = repository.request({ method: "DELETE", path: `admin/ehr/${ehr}` });
  await assert.rejects(deleting.finally(restored), { code: "PANIC" });
  repository.close();
});

test("a process that dies during a write leaves whole requests", async () => {
  const folder = join(house, "killed");
  const writer = `import { Repository } from "aqlite";
const repository = await Repository.open({ name: "ward", folder: ${JSON.stringify(folder)} });
for (;;) { await repository.createEhr(); process.stdout.write("."); }`;
  const child = spawn("node", ["--input-type=module", "--eval", writer], { cwd: house });
  let reported = 0;
  await new Promise((resolve) =>
    child.stdout.on("data", (bytes) => (reported += bytes.length) > 40 && resolve()),
  );
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("exit", resolve));
  const repository = await aqlite.Repository.open({ name: "ward", folder });
  const [[kept]] = [...(await repository.query("SELECT COUNT(e/ehr_id/value) AS n FROM EHR e"))];
  assert.ok(kept >= reported, `${kept} of ${reported} that were reported`);
  await repository.createEhr();
});

test("the README's page and worker run in Chromium and store data", async () => {
  await writeFile(
    join(house, "worker.html"),
    '<!doctype html><script>window.worker = new Worker("worker.js", { type: "module" });</script>',
  );
  const server = await serve(house);
  const browser = await browse();
  after(() => browser.close());
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  const shown = async () => {
    await page.goto(`${server.address}browser.html`);
    await page.waitForFunction(() => document.body?.textContent.includes("COUNT"));
    return Number(/: (\d+)/.exec(await page.evaluate(() => document.body.textContent))[1]);
  };
  const made = await shown();
  assert.ok(made > 30, String(made));
  assert.equal(await shown(), made);
  await page.goto(`${server.address}worker.html`);
  const answers = await page.evaluate(async (q) => {
    const { worker } = window;
    const next = () =>
      new Promise((resolve) =>
        worker.addEventListener("message", ({ data }) => data.progress || resolve(data), {
          once: true,
        }),
      );
    const ready = await next();
    worker.postMessage({ id: 1, q });
    const good = await next();
    worker.postMessage({ id: 2, q: "SELECT" });
    return [ready, good, await next()];
  }, COUNT);
  assert.equal(answers[0], "ready");
  assert.deepEqual(JSON.parse(answers[1].text).rows, [[made]]);
  assert.match(answers[2].diagnostics[0].code, /^AQL/);
  assert.deepEqual(problems, []);
  await server.stop();
});

test("the README's editor checks, completes, formats and runs a query in Chromium", async () => {
  const server = await serve(house);
  const browser = await browse();
  after(() => Promise.all([browser.close(), server.stop()]));
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(`${server.address}editor.html`);
  const editor = page.locator("aql-editor");
  await page.waitForFunction(() => document.querySelector("aql-editor").services.query);
  await editor.getByRole("textbox", { name: "Query" }).click();
  await page.keyboard.press("Control+Enter");
  await expect(page.locator("output")).toHaveText(/^n\s+5\d/);
  const changed = await page.evaluate(async () => {
    const editor = document.querySelector("aql-editor");
    const events = [];
    for (const type of ["input", "change"])
      document.addEventListener(type, () => events.push(type));
    const checked = new Promise((resolve) =>
      editor.addEventListener("diagnostics", ({ detail }) => detail.length && resolve(detail)),
    );
    editor.value = "select e/dta from EHR e";
    const [{ code, from, to }] = await checked;
    const isQuery = editor.format();
    const { value, diagnostics } = editor;
    editor.blur();
    return {
      events,
      problem: [code, from, to, diagnostics.length],
      isQuery,
      value,
      field: new FormData(document.forms[0]).get("query"),
    };
  });
  assert.equal(changed.value, "SELECT e/dta\nFROM EHR e\n");
  assert.deepEqual(changed.problem, ["AQL0203", 9, 12, 1]);
  assert.deepEqual(changed.events, ["input", "input", "change"]);
  assert.deepEqual([changed.isQuery, changed.field], [true, changed.value]);
  await page.evaluate(() => (document.querySelector("aql-editor").value = ""));
  await editor.getByRole("textbox").click();
  await page.keyboard.type("SEL");
  const proposal = editor.locator(".cm-tooltip-autocomplete li").first();
  await expect(proposal).toContainText("SELECT");
  await proposal.click();
  await expect(editor.getByRole("textbox")).toContainText("SELECT");
  await page.evaluate(() => document.querySelector("aql-editor").toggleAttribute("readonly", true));
  await page.keyboard.type("x");
  assert.equal(
    (await page.evaluate(() => document.querySelector("aql-editor").value)).trim(),
    "SELECT",
  );
  assert.deepEqual(problems, []);
});

test("a server that renders pages imports the editor", () => {
  const code = 'import { AqlEditor } from "aqlite/editor"; console.log(typeof AqlEditor);';
  const ran = spawnSync("node", ["--input-type=module", "--eval", code], {
    cwd: house,
    encoding: "utf8",
  });
  assert.equal(ran.stdout, "function\n", ran.stderr);
});

test("the README's worker runs in workerd", async () => {
  await writeFile(
    join(house, "wrangler.toml"),
    'name = "readme"\nmain = "workerd.mjs"\ncompatibility_date = "2025-04-01"\nsend_metrics = false\n',
  );
  const server = await startDev(join(house, "state"), {}, [
    "--config",
    join(house, "wrangler.toml"),
  ]);
  try {
    const { status, text, json } = await server.send(
      "GET",
      `/v1/query/aql?q=${encodeURIComponent(COUNT)}`,
    );
    assert.equal(status, 200, `${text}\n${server.log}`);
    assert.ok(json.rows[0][0] > 30);
  } finally {
    await server.stop();
  }
});
