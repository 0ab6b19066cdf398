// Bad input in workerd: each request gets an error with the right status, never a 500, and writes
// nothing.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, test } from "node:test";
import { ITS, V1, freshState, sample, start, testOfWorker, uploadTemplates } from "./server.mjs";

const data = sample();
const { ehr_id: ehrId, composition } = data.compositions[0];
const good = JSON.stringify(composition);
const UNKNOWN = "00000000-0000-4000-8000-000000000000";
let server;

before(async () => {
  server = await start(freshState("bad_input"));
  await uploadTemplates(server, data);
  assert.equal((await server.send("PUT", `${ITS}/ehr/${ehrId}`)).status, 201);
});
after(() => server.stop());

/** Sends a bad request. The answer must have this status and a matching message. */
async function refused(status, message, method, path, options) {
  const answer = await server.send(method, path, options);
  assert.equal(
    answer.status,
    status,
    `${method} ${path}: ${answer.status} ${answer.text.slice(0, 400)}`,
  );
  assert.match(answer.text, message);
  assert.equal(answer.json?.code, status, "the body repeats the status");
  return answer;
}

const compositions = `${ITS}/ehr/${ehrId}/composition`;
const native = `${V1}/ehr/${ehrId}/composition`;
const deep = (open, close) => open.repeat(10_000) + close.repeat(10_000);

test("broken JSON is refused", () =>
  refused(400, /line 1/, "POST", compositions, { body: '{"_type":"COMPOSITION",' }));
test("broken XML is refused", () =>
  refused(400, /./, "POST", compositions, {
    body: "<composition><name>",
    type: "application/xml",
  }));
test("an unknown class is refused", () =>
  refused(400, /BLOOD/, "POST", native, { body: good.replace('"OBSERVATION"', '"BLOOD"') }));
test("an unknown attribute is refused", () =>
  refused(400, /colour/, "POST", native, { body: good.replace('"name":', '"colour":1,"name":') }));
test("a wrong content type is refused", () =>
  refused(415, /./, "POST", compositions, { body: good, type: "image/png" }));

test("an unknown template is refused", async () => {
  const body = good.replace(/"template_id":\{[^}]*\}/, '"template_id":{"value":"nobody.knows.v0"}');
  await refused(422, /nobody\.knows\.v0/, "POST", compositions, { body });
  await refused(400, /nobody\.knows\.v0/, "POST", native, { body });
});

test("a text that is not a template is refused", () =>
  refused(400, /./, "POST", `${ITS}/definition/template/adl1.4`, {
    body: "<template>",
    type: "application/xml",
  }));
test("a duplicate template is refused", () =>
  refused(409, /./, "POST", `${ITS}/definition/template/adl1.4`, {
    body: data.templates[0],
    type: "application/xml",
  }));

test("malformed AQL is answered with position and expectation", async () => {
  const answer = await refused(400, /expected/, "POST", `${V1}/query/aql`, {
    body: JSON.stringify({ q: "SELECT e/ehr_id\nFRM EHR e" }),
  });
  assert.match(answer.text, /line 2|2:1/);
});

test("an unbound parameter is named", () =>
  refused(400, /\$?who/, "POST", `${V1}/query/aql`, {
    body: JSON.stringify({ q: "SELECT e FROM EHR e WHERE e/ehr_id/value = $who" }),
  }));

test("missing resources are answered 404", async () => {
  await refused(404, /./, "GET", `${V1}/ehr/${UNKNOWN}`);
  await refused(404, /./, "POST", `${ITS}/ehr/${UNKNOWN}/composition`, { body: good });
  await refused(404, /./, "GET", `${V1}/gdl/query/${ehrId}/no_such_guide.v1`);
  await refused(404, /./, "GET", `${compositions}/${UNKNOWN}::aqlite.local::1`);
  await refused(404, /./, "GET", `${V1}/no/such/place`);
});

test("a body over the limit is refused", () =>
  refused(413, /./, "POST", compositions, { body: `{"x":"${"x".repeat(10_500_000)}"}` }));

test("a body over the limit without a declared length is refused", () => {
  const chunk = new Uint8Array(1_000_000).fill(32);
  let left = 12;
  const stream = new ReadableStream({
    pull: (to) => (left-- > 0 ? to.enqueue(chunk) : to.close()),
  });
  const path = `http://127.0.0.1:${server.port}${compositions}`;
  const sent = fetch(path, {
    method: "POST",
    body: stream,
    duplex: "half",
    headers: { "content-type": "application/json" },
  });
  return sent.then((answer) => assert.equal(answer.status, 413));
});

test("a line over the limit is refused, and the next request of the connection is answered", async () => {
  const line = `{"ehr_id":"${ehrId}","composition":"${"x".repeat(15_000_000)}`;
  await refused(413, /./, "POST", `${V1}/ehr/bulk`, { body: line, type: "application/x-ndjson" });
  await refused(413, /guide/, "POST", `${V1}/definition/gdl`, {
    body: "(".repeat(3_000_000),
    type: "text/plain",
  });
  await refused(400, /./, "POST", `${V1}/definition/gdl`, {
    body: "(".repeat(1_900_000),
    type: "text/plain",
  });
});

test("a text that is nested 10,000 levels deep is refused", async () => {
  await refused(400, /deep|nest/, "POST", compositions, { body: deep('{"content":[', "]}") });
  await refused(400, /./, "POST", compositions, {
    body: deep("<a>", "</a>"),
    type: "application/xml",
  });
  await refused(400, /./, "POST", `${V1}/query/aql`, {
    body: JSON.stringify({ q: `SELECT e FROM EHR e WHERE ${deep("(", ")")}` }),
  });
  await refused(400, /./, "POST", `${V1}/query/aql`, { body: deep("[", "]") });
  await refused(400, /./, "POST", `${V1}/definition/gdl`, { body: deep('{"a":', "}") });
  await refused(400, /./, "POST", `${ITS}/definition/template/adl1.4`, {
    body: deep("<a>", "</a>"),
    type: "application/xml",
  });
});

testOfWorker("a committer that is not UTF-8, which the runtime replaces", async () => {
  // The client of Node writes the characters of a header as bytes of ISO 8859-1.
  const send = (name) =>
    new Promise((resolve, reject) => {
      const headers = {
        "openEHR-AUDIT_DETAILS.committer": `name="${name}"`,
        "content-length": 0,
        connection: "close",
      };
      const path = `${ITS}/ehr`;
      request({ host: "127.0.0.1", port: server.port, method: "POST", path, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (part) => (text += part));
        answer.on("end", () => resolve({ status: answer.statusCode, text }));
      })
        .on("error", reject)
        .end();
    });
  const refused = await send("\u00c5sa");
  assert.equal(refused.status, 400, refused.text);
  assert.match(refused.text, /not UTF-8/);
  const utf8 = Buffer.from("\u00c5sa").toString("latin1");
  assert.equal((await send(utf8)).status, 201);
});

test("no refused request has written anything", async () => {
  assert.deepEqual(await server.rows("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c"), [
    [0],
  ]);
  const list = await server.send("GET", `${V1}/definition/template`);
  assert.equal(list.json.length, data.templates.length);
  assert.ok(!/panicked|RuntimeError/.test(server.log), server.log);
});
