// The parts of the service that the host adds to the core: compression, URLs, limits, the scheduled
// event, and static files.
import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { Miniflare } from "miniflare";
import {
  ITS,
  V1,
  freshState,
  program,
  root,
  sample,
  start,
  startServed,
  startWith,
  testOfWorker,
  uploadTemplates,
} from "./server.mjs";

const data = sample();
const { ehr_id: ehrId, composition } = data.compositions[0];
let server;

before(async () => {
  server = await start(freshState("host"), {
    AUTH: "none",
    DEBUG: "true",
    BASE_URL: "https://cdr.example.org",
  });
  await uploadTemplates(server, data);
  assert.equal((await server.send("PUT", `${V1}/ehr/${ehrId}`)).status, 201);
});
after(() => server.stop());

/** Sends a request. The body of the answer is not decompressed. */
function raw(method, path, { headers = {}, body, port = server.port, agent } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path, headers, agent }, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () =>
        resolve({
          status: answer.statusCode,
          headers: answer.headers,
          body: Buffer.concat(chunks),
        }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

// `aqlite serve` leaves compression to its proxy.
testOfWorker("an answer is compressed for clients that accept gzip only", async () => {
  const path = `${ITS}/definition/template/adl1.4/${encodeURIComponent(/<template_id>\s*<value>([^<]*)</.exec(data.templates[0])[1])}`;
  const plain = await raw("GET", path, { headers: { accept: "application/xml" } });
  assert.equal(plain.headers["content-encoding"], undefined);
  assert.equal(plain.body.toString(), data.templates[0]);
  const small = await raw("GET", path, {
    headers: { accept: "application/xml", "accept-encoding": "br;q=0, gzip" },
  });
  assert.equal(small.headers["content-encoding"], "gzip");
  assert.ok(
    small.body.length < plain.body.length / 2,
    `${small.body.length} of ${plain.body.length}`,
  );
  assert.equal(gunzipSync(small.body).toString(), data.templates[0]);
  const refused = await raw("GET", path, {
    headers: { accept: "application/xml", "accept-encoding": "gzip;q=0" },
  });
  assert.equal(refused.headers["content-encoding"], undefined);
});

test("a compressed body is expanded, within the limit, or refused", async () => {
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  const path = `${ITS}/ehr/${ehrId}/composition`;
  const made = await raw("POST", path, { headers, body: gzipSync(JSON.stringify(composition)) });
  assert.equal(made.status, 201, made.body.toString());
  const broken = await raw("POST", path, { headers, body: Buffer.from("this is not gzip") });
  assert.equal(broken.status, 400, broken.body.toString());
  assert.match(broken.body.toString(), /gzip/);
  const bomb = await raw("POST", path, { headers, body: gzipSync(Buffer.alloc(30_000_000, 32)) });
  assert.equal(bomb.status, 413, bomb.body.toString());
});

test("addresses begin with BASE_URL behind a proxy", async () => {
  const made = await server.send("POST", `${V1}/ehr`);
  assert.match(made.headers.get("location"), /^https:\/\/cdr\.example\.org\/v1\/ehr\//);
});

test("with DEBUG a result contains the query as executed", async () => {
  const body = JSON.stringify({
    q: "SELECT e/ehr_id/value FROM EHR e WHERE e/ehr_id/value = $id",
    query_parameters: { id: ehrId },
  });
  const answer = await server.send("POST", `${V1}/query/aql`, { body });
  assert.equal(
    answer.json.meta._executed_aql,
    `SELECT e/ehr_id/value FROM EHR e WHERE e/ehr_id/value = '${ehrId}'`,
  );
});

test("a query that is too long for a URL is sent by POST", async () => {
  const many = Array.from({ length: 4000 }, (_, n) => `'${n}'`).join(", ");
  const q = `SELECT e/ehr_id/value FROM EHR e WHERE e/ehr_id/value matches {${many}, '${ehrId}'}`;
  assert.ok(q.length > 30_000);
  const answer = await server.send("POST", `${V1}/query/aql`, { body: JSON.stringify({ q }) });
  assert.deepEqual(answer.json.rows, [[ehrId]]);
  const longer = await server.send("POST", `${V1}/query/aql`, {
    body: JSON.stringify({ q: `${q} -- ${"x".repeat(300_000)}` }),
  });
  assert.equal(longer.status, 413, longer.text.slice(0, 300));
});

test("each limit is a variable and has its own answer", async () => {
  const limits = {
    LIMIT_FETCH: "4",
    LIMIT_FETCH_DEFAULT: "2",
    LIMIT_AQL: "1000",
    LIMIT_TEMPLATE: "1000",
    LIMIT_RESULT: "2000",
    LIMIT_GUIDE_EHRS: "1",
  };
  const small = await start(freshState("limits"), { AUTH: "none", ...limits });
  try {
    const ids = [];
    for (let i = 0; i < 3; i += 1)
      ids.push((await small.send("POST", `${V1}/ehr`)).headers.get("etag").replaceAll('"', ""));
    const ask = (q, more = {}) =>
      small.send("POST", `${V1}/query/aql`, { body: JSON.stringify({ q, ...more }) });
    const page = await ask("SELECT e/ehr_id/value FROM EHR e");
    assert.deepEqual([page.json.rows.length, page.json.meta._more], [2, true]);
    assert.equal((await ask("SELECT e/ehr_id/value FROM EHR e", { fetch: 4 })).json.rows.length, 3);
    const refusals = [
      [400, /largest page of 4 rows/, await ask("SELECT e/ehr_id/value FROM EHR e", { fetch: 5 })],
      [413, /1000 bytes/, await ask(`SELECT e/ehr_id/value FROM EHR e -- ${"x".repeat(1000)}`)],
      [
        400,
        /2000 bytes/,
        await ask(
          `SELECT ${Array.from({ length: 40 }, () => "e/ehr_id/value").join(", ")} FROM EHR e`,
        ),
      ],
      [
        413,
        /1000 bytes/,
        await small.send("POST", `${ITS}/definition/template/adl1.4`, {
          body: data.templates[0],
          type: "application/xml",
        }),
      ],
    ];
    assert.equal(
      (await small.send("POST", `${V1}/definition/gdl`, { body: data.guides[0] })).status,
      201,
    );
    const guide = { guide_id: JSON.parse(data.guides[0]).id, ehr_ids: ids };
    refusals.push([
      400,
      /at most 1/,
      await small.send("POST", `${V1}/gdl/query`, { body: JSON.stringify(guide) }),
    ]);
    for (const [status, message, answer] of refusals) {
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.json.message, message);
    }
  } finally {
    await small.stop();
  }
});

test("more rows than a page are sent in parts, as lines", async () => {
  const limits = { LIMIT_FETCH: "3", LIMIT_FETCH_DEFAULT: "2", LIMIT_STREAM: "20" };
  const small = await start(freshState("parts"), { AUTH: "none", ...limits });
  try {
    const ids = [];
    for (let i = 0; i < 10; i += 1)
      ids.push((await small.send("POST", `${V1}/ehr`)).headers.get("etag").replaceAll('"', ""));
    const ask = (fetch, accept = "application/x-ndjson") =>
      small.send("POST", `${V1}/query/aql`, {
        body: JSON.stringify({ q: "SELECT e/ehr_id/value AS id FROM EHR e", fetch }),
        headers: { accept },
      });
    const rows = (answer) => answer.text.split("\n").filter(Boolean).map(JSON.parse);
    const all = await ask(20);
    assert.deepEqual([all.status, all.headers.get("content-type")], [200, "application/x-ndjson"]);
    assert.deepEqual(
      rows(all).map(({ id }) => id),
      ids,
    );
    assert.match(all.headers.get("aqlite-snapshot"), /^1-/);
    assert.equal(rows(await ask(7)).length, 7);
    const [tooMany, csv] = [await ask(21), await ask(20, "text/csv")];
    assert.deepEqual([tooMany.status, csv.status], [400, 400]);
    assert.match(csv.json.message, /application\/x-ndjson/);
  } finally {
    await small.stop();
  }
});

/** Starts the worker in a workerd that clients reach directly, and that logs nothing. */
async function withoutProxy(state, bindings) {
  if (program) return start(state, bindings);
  const modules = [{ type: "ESModule", path: join(root, "dist/worker/index.js") }];
  modules.push({ type: "CompiledWasm", path: join(root, "dist/worker/aqlite_worker_bg.wasm") });
  const database = {
    d1Databases: { DB: "DB" },
    d1Persist: join(state, "v3/d1"),
    kvNamespaces: ["BLOBS"],
  };
  const handleRuntimeStdio = (...streams) => {
    for (const stream of streams) stream.resume();
  };
  const place = { host: "127.0.0.1", port: 0, modulesRoot: root, compatibilityDate: "2026-04-01" };
  const runtime = new Miniflare({ modules, ...place, ...database, bindings, handleRuntimeStdio });
  return { port: (await runtime.ready).port, stop: () => runtime.dispose() };
}

// workerd closes a connection that was idle for five seconds. Its clock stops while a request computes,
// so a long computation looks like idle time.
test("a query over its limit of time is stopped, and its connection remains usable", async () => {
  const slow = await withoutProxy(freshState("slow"), { AUTH: "none", LIMIT_QUERY_MS: "7000" });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const { port } = slow;
    const ask = async (status, method, path, body, type = "application/json") => {
      const answer = await raw(method, path, {
        headers: { "content-type": type },
        body,
        port,
        agent,
      });
      assert.equal(answer.status, status, answer.body.toString());
    };
    for (const template of data.templates)
      await ask(201, "POST", `${ITS}/definition/template/adl1.4`, template, "application/xml");
    const longest = data.compositions
      .map((each) => JSON.stringify(each.composition))
      .reduce((a, b) => (a.length < b.length ? b : a));
    await ask(201, "PUT", `${V1}/ehr/${ehrId}`);
    await ask(201, "POST", `${V1}/ehr/${ehrId}/composition`, longest);
    const elements = Array.from("abcdefghijkl", (name) => `ELEMENT ${name}`).join(" AND ");
    await ask(
      408,
      "POST",
      `${V1}/query/aql`,
      JSON.stringify({
        q: `SELECT count(a/name/value) AS n FROM EHR z CONTAINS COMPOSITION x CONTAINS (${elements})`,
      }),
    );
    await ask(200, "GET", "/health");
  } finally {
    agent.destroy();
    await slow.stop();
  }
});

test("a body over a small limit is skipped, and its connection remains usable", async () => {
  const small = await withoutProxy(freshState("past"), { AUTH: "none", LIMIT_BODY: "1000" });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const { port } = small;
    for (const [type, path] of [
      ["application/x-ndjson", `${V1}/ehr/bulk`],
      ["application/json", `${V1}/query/aql`],
    ]) {
      for (const length of [1_001, 90_000, 250_000]) {
        const headers = { "content-type": type, "transfer-encoding": "chunked" };
        const answer = await raw("POST", path, { headers, body: "x".repeat(length), port, agent });
        assert.equal(answer.status, 413, `${path}, ${length} bytes: ${answer.body}`);
        assert.equal(
          (await raw("GET", "/health", { port, agent })).status,
          200,
          `${path}, ${length} bytes`,
        );
      }
    }
  } finally {
    agent.destroy();
    await small.stop();
  }
});

testOfWorker(
  "the document of the interface and its page are served beside the worker",
  async () => {
    const document = await server.send("GET", "/openapi.json");
    assert.equal(document.json.openapi, "3.0.3");
    const page = await server.send("GET", "/api.html");
    assert.equal(
      page.status === 307 ? (await server.send("GET", "/api")).status : page.status,
      200,
    );
  },
);

testOfWorker("the scheduled event refreshes the statistics of the database", async () => {
  // With static files, the development server sends the event to them (cloudflare/workers-sdk#14177).
  const bare = await startWith("bare", (config) => config.replace(/\[assets\][\s\S]*?\n\n/, ""), {
    AUTH: "none",
  });
  try {
    const answer = await bare.send("GET", "/cdn-cgi/handler/scheduled?cron=17+3+*+*+*");
    assert.equal(answer.status, 200, answer.text);
    await bare.says(/\{"level":"INFO","about":"maintenance"\}/);
  } finally {
    await bare.stop();
  }
});

testOfWorker("the path of a request is that of its target, with every Host header", async () => {
  // Sent directly to workerd, because the proxy of the development server rewrites the Host header.
  const served = await startServed(freshState("authority"));
  const { port } = served;
  try {
    for (const [target, host] of [
      ["/health", "127.0.0.1/v1/ehr?x="],
      [`${V1}/ehr`, "127.0.0.1/health?"],
      [`${V1}/ehr`, "127.0.0.1/health#"],
      [`${V1}/ehr`, "127.0.0.1\\health?"],
      [`${V1}/ehr`, "ann@127.0.0.1"],
    ]) {
      const answer = await raw("GET", target, { headers: { host }, port });
      assert.equal(answer.status, 400, `${target} ${host}: ${answer.body}`);
    }
    const sound = await raw("GET", "/health", { headers: { host: "127.0.0.1:1" }, port });
    assert.equal(sound.status, 200);
  } finally {
    await served.stop();
  }
});

testOfWorker("a header that rewrites the URL does not hide the requested host", async () => {
  // The development runtime replaces the URL of a request by the header `MF-Original-URL` of any client.
  // A page whose name was bound to this machine (DNS rebinding) could send this header.
  const served = await startServed(freshState("rebound"));
  const { port } = served;
  try {
    const headers = {
      host: `evil.example:${port}`,
      "mf-original-url": `http://localhost:${port}${V1}/ehr`,
      "sec-fetch-site": "same-origin",
    };
    const answer = await raw("GET", "/x", { headers, port });
    assert.equal(answer.status, 421, answer.body);
  } finally {
    await served.stop();
  }
});
