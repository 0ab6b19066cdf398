// The texts of the page: the catalogue in each language, and the lint rule that keeps texts out of
// the code.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Linter } from "eslint";
import ts from "typescript-eslint";
import { textsInCatalogue } from "../../www/lint/texts.mjs";
import { languageCodes, textsOf } from "../../www/texts.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const english = await textsOf("en");
const others = (await languageCodes()).filter((code) => code !== "en");
const languages = new Map(
  await Promise.all(others.map(async (code) => [code, await textsOf(code)])),
);

/** Returns all texts by path, except those of the examples, which only other languages have. */
function flat(texts, path = "") {
  return Object.entries(texts).flatMap(([name, text]) => {
    const at = path ? `${path}.${name}` : name;
    if (at === "query.exampleTexts") return [];
    return typeof text === "object" ? flat(text, at) : [[at, text]];
  });
}

/** Returns the names of the values that a text needs. */
function namesOf(text) {
  const names = new Set();
  text(new Proxy({}, { get: (_, name) => names.add(name) && 1 }));
  return [...names].sort();
}

/** Returns a text with a distinct number for each value, and the numbers that occur in the text. */
function filled(text, names) {
  const values = Object.fromEntries(names.map((name, at) => [name, 501 + at]));
  const written = text(values);
  return { written, numbers: new Set(written.match(/5\d\d/g)) };
}

test("there are English, German and Swedish", () => {
  assert.deepEqual(others.sort(), ["de", "sv"]);
  for (const [code, texts] of [["en", english], ...languages]) {
    assert.equal(texts.language, code);
    assert.equal(texts.editor.language, code);
  }
});

for (const [code, texts] of languages) {
  const own = new Map(flat(texts));

  test(`${code} has every text, and no other`, () => {
    assert.deepEqual(
      [...own.keys()].sort(),
      flat(english)
        .map(([path]) => path)
        .sort(),
    );
    for (const [path, text] of own)
      assert.notEqual(typeof text === "string" ? text.trim() : text, "", path);
  });

  test(`${code} has the values of every text`, () => {
    for (const [path, text] of flat(english)) {
      const other = own.get(path);
      assert.equal(typeof other, typeof text, path);
      if (typeof text === "string") {
        const signs = (all) => all.match(/\$|`[^`]*`/g) ?? [];
        assert.deepEqual(signs(other), signs(text), path);
        continue;
      }
      const names = namesOf(text);
      assert.deepEqual(namesOf(other), names, path);
      const [expected, found] = [filled(text, names), filled(other, names)];
      assert.deepEqual(found.numbers, expected.numbers, `${path}: ${found.written}`);
      assert.doesNotMatch(text({ ...Object.fromEntries(names.map((n) => [n, 1])) }), /undefined/);
    }
  });

  test(`${code} keeps words of AQL, ids and formats`, () => {
    const kept =
      /\b(?:SELECT|WHERE|CONTAINS|DISTINCT|LIMIT|OFFSET|MATCHES|LIKE|FLAT|STRUCTURED|OPT|GDL2?|ODIN|AQL|JSON|NDJSON|CSV|CORS|UTC)\b|\.(?:opt|gdl|yml|zip|ndjson)\b/g;
    for (const [path, text] of flat(english)) {
      if (typeof text !== "string") continue;
      const words = (one) => [...new Set(one.match(kept))].sort();
      const there = words(own.get(path));
      for (const word of words(text)) assert.ok(there.includes(word), `${path}: ${word}`);
    }
  });

  test(`${code} has title and purpose of every example`, async () => {
    const queries = await readFile(`${root}www/samples/examples.aql`, "utf8");
    const titles = [...queries.matchAll(/^-- # (.*)$/gm)].map(([, title]) => title);
    assert.deepEqual(Object.keys(texts.query.exampleTexts), titles);
    for (const { title, about } of Object.values(texts.query.exampleTexts))
      assert.ok(title && about);
  });
}

test("numbers and plurals follow the language", () => {
  const { counts } = languages.get("de").frame;
  assert.equal(english.frame.counts({ count: 1234 }), "1,234 patients");
  assert.equal(counts({ count: 1234 }), "1.234 Patienten");
  assert.equal(counts({ count: 1 }), "1 Patient");
  const seconds = languages.get("sv").results.seconds({ seconds: 1.25 });
  assert.equal(seconds, "1,3 s");
});

test("the code of the page uses every text of the catalogue", async () => {
  const files = (await readdir(`${root}www/src`)).filter((name) => name.endsWith(".ts"));
  const sources = await Promise.all(
    files.map((name) => readFile(`${root}www/src/${name}`, "utf8")),
  );
  const all = [...sources, await readFile(`${root}www/index.html`, "utf8")].join("\n");
  // CodeMirror and CDS Hooks select these texts by names of their own, so the code does not name them.
  const foreign = /^(?:editor\.phrases|guideOutcome\.indicators)\./;
  const unused = flat(english)
    .map(([path]) => path)
    .filter((path) => !foreign.test(path))
    .filter((path) => !new RegExp(`\\b${path.split(".").at(-1)}\\b`).test(all));
  assert.deepEqual(unused, []);
});

/** Returns the texts that the rule finds in a source. */
function found(code) {
  const config = {
    files: ["**/*.ts"],
    languageOptions: { parser: ts.parser },
    plugins: { page: { rules: { texts: textsInCatalogue } } },
    rules: { "page/texts": ["error", { allowed: ["by folder"] }] },
  };
  const messages = new Linter().verify(code, config, { filename: "a.ts" });
  return messages.map(({ message }) => JSON.parse(/the text (".*?") into/.exec(message)[1]));
}

test("the lint rule finds texts in elements, labels, errors, messages and prose", () => {
  const cases = {
    'h("p", {}, "one");': ["one"],
    'h("p", {}, x ? "yes" : texts.no);': ["yes"],
    'h("p", {}, ...["Value"].map(f));': ["Value"],
    'h("a", { title: "open" });': ["open"],
    'h("a", { "aria-label": `Open ${name}` });': ["Open ${}"],
    'box.textContent = "gone";': ["gone"],
    'box.append("more");': ["more"],
    'box.setAttribute("title", "open");': ["open"],
    'throw new Error("broken");': ["broken"],
    "const a = `${n} rows were read`;": ["${} rows were read"],
    'const a = { name: "A new patient" };': ["A new patient"],
    'const a = "Loading…";': ["Loading…"],
  };
  for (const [code, texts] of Object.entries(cases)) assert.deepEqual(found(code), texts, code);
});

test("the lint rule accepts technical strings", () => {
  const cases = [
    'h("p", { class: "empty bad", id: "x", role: "status" });',
    'h("p", {}, texts.frame.undo, " · ", String(n));',
    'import a from "some words"; byId("run-key");',
    'if (event.key === "Escape") run();',
    'const q = "SELECT e FROM EHR e";',
    "const width = `${n}px solid var(--line)`;",
    'document.querySelector("input, select, textarea");',
    'const by = "by folder";',
    'const type: "two words" = kind;',
  ];
  for (const code of cases) assert.deepEqual(found(code), [], code);
});
