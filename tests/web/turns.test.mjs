// The order of answers of the page's worker: calls of the editor and small reads do not wait for a
// long call, a write waits for it, and a cancelled call ends at once. No test measures time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { caller, hosted } from "./page.mjs";

const site = hosted();

/** Many seconds of work: all combinations of three elements of an EHR. */
const ENDLESS =
  "SELECT COUNT(a/value/magnitude) AS n FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b AND ELEMENT c) WHERE a/value/magnitude < b/value/magnitude AND b/value/magnitude < c/value/magnitude";
/** Many slices of work: all pairs of elements of an EHR. */
const LONG =
  "SELECT COUNT(a/value/magnitude) AS n FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b) WHERE a/name/value = b/name/value AND a/value/magnitude < b/value/magnitude";
const EHRS = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const query = (q) => ["query", { q, parameters: {}, from: null }];

/**
 * Sends calls at once, in their order. Returns their names in the order of their answers, and the
 * answers by name: a value, or the message of an error.
 */
async function together(call, calls) {
  await call("contents", null);
  return call.together(calls);
}

/** Returns the number in the only cell of an answer. */
const numberOf = ({ text }) => JSON.parse(text).rows[0][0];

/** Runs queries one after the other. Returns their numbers. */
async function numbers(call, ...queries) {
  const found = [];
  for (const q of queries) found.push(numberOf(await call(...query(q))));
  return found;
}

/** Generates patients with so many compositions that `LONG` has many slices. */
async function patients(call) {
  await call("generate", { ehrs: 8, compositions: 480, seed: 1 });
}

test("the editor and small reads are answered while a query runs", () =>
  site.visit(async (page) => {
    const call = await caller(page);
    await patients(call);
    const q = "SELECT c/na FROM EHR e CONTAINS COMPOSITION c";
    const { order, answers } = await together(call, {
      long: query(LONG),
      complete: ["complete", { q, offset: 11 }],
      diagnose: ["diagnose", { q }],
      hover: ["hover", { q, offset: 2 }],
      small: query(EHRS),
      templates: ["templates", null],
    });
    assert.equal(order.at(-1), "long", order.join(" "));
    assert.equal(order[0], "complete", order.join(" "));
    assert.ok(answers.complete.options.length > 0);
    assert.ok(answers.diagnose.length > 0);
    assert.ok(numberOf(answers.small) > 0);
    assert.ok(numberOf(answers.long) > 0);
  }));

test("a page of a result, an explanation and an export are answered beside each other", () =>
  site.visit(async (page) => {
    const call = await caller(page);
    await patients(call);
    const q = "SELECT c/na FROM EHR e CONTAINS COMPOSITION c";
    const from = { offset: 0, fetch: 1, snapshot: null };
    const [expected] = await numbers(call, LONG);
    const { order, answers } = await together(call, {
      paged: ["query", { q: LONG, parameters: {}, from }],
      explain: ["explain", { q: LONG, parameters: {} }],
      export: ["export", null],
      complete: ["complete", { q, offset: 11 }],
      small: query(EHRS),
    });
    const place = (name) => order.indexOf(name);
    assert.equal(place("complete"), 0, order.join(" "));
    assert.ok(place("small") < place("paged"), order.join(" "));
    assert.ok(place("small") < place("explain"), order.join(" "));
    assert.equal(numberOf(answers.paged), expected);
    assert.equal(answers.explain.run.rows, 1);
  }));

test("a write waits for a query, whose answer it does not change", () =>
  site.visit(async (page) => {
    const call = await caller(page);
    await patients(call);
    const [before, ehrs] = await numbers(call, LONG, EHRS);
    const { order, answers } = await together(call, {
      long: query(LONG),
      write: ["newEhr", "a new patient"],
      complete: ["complete", { q: "SELECT ", offset: 7 }],
    });
    assert.deepEqual(order, ["complete", "long", "write"]);
    assert.equal(numberOf(answers.long), before);
    assert.deepEqual(await numbers(call, EHRS), [ehrs + 1]);
  }));

test("a write of another tab waits until the query of this one has ended", () =>
  site.visit(async (page) => {
    const [call, other] = [await caller(page), await caller(page)];
    await patients(call);
    await other("contents", null);
    const [before, ehrs] = await numbers(call, LONG, EHRS);
    const long = call(...query(LONG));
    await other("newEhr", "a new patient");
    const small = call(...query(EHRS));
    assert.equal(numberOf(await long), before);
    assert.equal(numberOf(await small), ehrs + 1);
  }));

test("a cancelled query ends at once, and the calls behind it are answered", () =>
  site.visit(async (page) => {
    const call = await caller(page);
    await patients(call);
    const from = { offset: 0, fetch: 9, snapshot: null };
    const { order, answers } = await together(call, {
      first: query(LONG),
      stopped: query(ENDLESS),
      page: ["query", { q: ENDLESS, parameters: {}, from }],
      small: query(EHRS),
      cancel: ["cancel", { calls: ["stopped", "page"], after: "small" }],
      write: ["newEhr", null],
    });
    assert.equal(order[0], "small");
    assert.deepEqual(order.slice(1, 3).sort(), ["page", "stopped"], order.join(" "));
    assert.deepEqual(order.slice(3), ["first", "write"]);
    assert.match(answers.stopped, /stopped/);
    assert.match(answers.page, /stopped/);
  }));
