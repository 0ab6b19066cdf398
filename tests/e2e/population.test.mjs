// Runs of guides on a population, in workerd, with the default limits of a worker.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ITS, V1, freshState, root, start } from "./server.mjs";

const EHRS = 10_000;
const NDJSON = "application/x-ndjson";
const text = (path) => readFileSync(join(root, "tests/cases", path), "utf8");
const ids = Array.from(
  { length: EHRS },
  (_, n) =>
    `${((n * 2654435761) % 2 ** 32).toString(16).padStart(8, "0")}-0000-4000-8000-${n.toString(16).padStart(12, "0")}`,
);
const lines = (some) => some.map((id) => JSON.stringify(id)).join("\n");
/** Returns the weight of every second EHR, and `undefined` for the others. */
const weight = (n) => (n % 2 === 0 ? 60.5 + (n % 100) : undefined);
const rules = (n) => (weight(n) === undefined ? [] : weight(n) > 100 ? ["gt0011"] : ["gt0012"]);
let server;

async function bulk(all) {
  const { status, text } = await server.send("POST", `${V1}/ehr/bulk`, {
    body: all.join("\n"),
    type: NDJSON,
  });
  assert.equal(status, 200, text);
  const bad = text
    .trim()
    .split("\n")
    .find((line) => JSON.parse(line).status !== 201);
  assert.equal(bad, undefined);
}

before(async () => {
  server = await start(freshState("population"), { AUTH: "none" });
  await server.send("POST", `${ITS}/definition/template/adl1.4`, {
    body: text("template/small.opt"),
    type: "application/xml",
  });
  for (const guide of ["weight_class", "class_advice"]) {
    assert.equal(
      (await server.send("POST", `${V1}/definition/gdl`, { body: text(`rest/${guide}.gdl2`) }))
        .status,
      201,
    );
  }
  await bulk(ids.map((ehr_id) => JSON.stringify({ ehr_id, ehr_status: null })));
  const [front, behind] = JSON.stringify(
    JSON.parse(text("rest/weight.json").replace("72.50", "4711.0")),
  ).split(/4711(?:\.0)?/);
  const composition = (n) => `{"ehr_id":"${ids[n]}","composition":${front}${weight(n)}${behind}}`;
  const weighed = ids.map((_, n) => n).filter((n) => weight(n) !== undefined);
  for (let at = 0; at < weighed.length; at += 1000)
    await bulk(weighed.slice(at, at + 1000).map(composition));
});
after(() => server?.stop());

test("a guide runs on 10,000 EHRs in one request, and each is answered as soon as its page is ready", async () => {
  const answer = await fetch(
    `http://127.0.0.1:${server.port}${V1}/gdl/query?guide_id=weight_class.v1`,
    {
      method: "POST",
      headers: { "content-type": NDJSON },
      body: lines(ids),
    },
  );
  assert.equal(answer.status, 200);
  // The length of the answer after each piece of the stream.
  const progress = [];
  let all = "";
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    all += piece;
    progress.push(all.length);
  }
  const found = all
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(found.length, EHRS);
  found.forEach(({ line, status, _ehr_id, rules_executed, results }, n) => {
    assert.deepEqual([line, status, _ehr_id, rules_executed], [n + 1, 200, ids[n], rules(n)]);
    assert.equal(results.length, rules(n).length);
  });
  assert.ok(
    progress.length >= 10 && progress[0] < all.length / 5,
    `${progress.length} pieces, the first of ${progress[0]} of ${all.length}`,
  );
});

test("guides run one after the other on a population", async () => {
  const some = ids.slice(0, 2500);
  const path = `${V1}/gdl/query?guide_id=weight_class.v1&guide_id=class_advice.v1`;
  const answer = await server.send("POST", path, {
    body: lines([...some, "nobody"]),
    type: NDJSON,
  });
  const found = answer.text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(found.pop().status, 404);
  found.forEach(({ line, _ehr_id, guides }, n) => {
    assert.deepEqual([line, _ehr_id, guides[0].rules_executed], [n + 1, ids[n], rules(n)]);
    assert.deepEqual(guides[1].rules_executed, weight(n) > 100 ? ["gt0011"] : []);
  });
  assert.equal(found.length, some.length);
});

test("a call may name 1,000 EHRs, and a call with more is refused", async () => {
  const ask = (some) =>
    server.send("POST", `${V1}/gdl/query`, {
      body: JSON.stringify({ guide_id: "weight_class.v1", ehr_ids: some }),
    });
  const { status, json } = await ask(ids.slice(0, 1000));
  assert.equal(status, 200);
  assert.equal(json.execution_details.query_execution_details.number_of_queries, 1000);
  assert.deepEqual(
    json.results.map(({ _ehr_id }) => _ehr_id),
    ids.slice(0, 1000).filter((_, n) => weight(n) !== undefined),
  );
  const refused = await ask(ids);
  assert.equal(refused.status, 400);
  assert.match(refused.json.message, /10000 EHRs, at most 1000 .* as lines/);
});
