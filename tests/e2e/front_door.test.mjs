// The checks of the worker before it processes a request: body size, compression, keys, Host, Origin and
// the number of concurrent requests. The tests attack them as a stranger, a page of another site, and a
// caller with too many requests.
import assert from "node:assert/strict";
import {
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync as readlink,
  rmSync,
  statSync,
} from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { constants, deflateRawSync, gzipSync } from "node:zlib";
import { partLeft, ticks } from "./attack/processors.mjs";
import { Issuer } from "./issuer.mjs";
import {
  ITS,
  V1,
  freshState,
  memory,
  processes,
  root,
  sample,
  startServed,
  uploadTemplates,
} from "./server.mjs";

const data = sample();
const { ehr_id: ehrId, composition } = data.compositions[0];
const NDJSON = "application/x-ndjson";
const JSON_TYPE = "application/json";
let issuer;
let server;

before(async () => {
  issuer = await Issuer.start();
  const vars = {
    ...issuer.variables,
    AUTH: "jwt,access",
    ACCESS_TEAM: issuer.name,
    ACCESS_AUDIENCE: "policy",
    ADMIN: "true",
    ORIGINS: "https://page.example",
    LIMIT_CONCURRENCY: "4",
    LIMIT_CONCURRENCY_WAITING: "4",
    LIMIT_CONCURRENCY_HEAVY: "2",
  };
  server = await startServed(freshState("door"), vars);
});
after(async () => {
  await server?.stop();
  issuer.stop();
});

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Sends a request without changing its headers, including Host. `cut` ends the connection without
 * waiting for an answer.
 */
function raw(method, path, { headers = {}, body, port = server.port, read = true, cut } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, method, path, headers: { connection: "close", ...headers } },
      (answer) => {
        const chunks = [];
        answer.on("data", (chunk) => read && chunks.push(chunk));
        answer.on("end", () =>
          resolve({
            status: answer.statusCode,
            headers: answer.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        );
        answer.on("error", reject);
      },
    );
    sent.on("error", (error) => (cut ? resolve({ status: 0 }) : reject(error)));
    if (body !== undefined && cut) sent.write(body);
    else sent.end(body);
    cut?.then(() => sent.destroy());
  });
}

/**
 * Returns a gzip body that expands to `megabytes` of a repeated text. The compressed bytes after the
 * first ten megabytes are copies of earlier ones, so that making the body is fast.
 */
function bomb(megabytes, text) {
  const part = deflateRawSync(Buffer.alloc(10_000_000, text), {
    finishFlush: constants.Z_FULL_FLUSH,
  });
  const parts = Array.from({ length: megabytes / 10 }, () => part);
  return Buffer.concat([
    Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]),
    ...parts,
    Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
  ]);
}

/**
 * Executes a function while a neighbor requests /health. Returns its result, the longest wait of the
 * neighbor, and the maximum memory of the server.
 *
 * The wait is multiplied by the part of the processors that other programs left, as the bounds of the
 * attacks are divided by it.
 */
async function watched(run, of = server) {
  const idle = memory(of);
  const used = () => ticks(...processes(of).map(({ pid }) => pid));
  const before = used();
  let [longest, highest, done] = [0, idle, false];
  const neighbor = (async () => {
    while (!done) {
      const begun = performance.now();
      assert.equal((await raw("GET", "/health", { port: of.port })).status, 200);
      longest = Math.max(longest, performance.now() - begun);
      highest = Math.max(highest, memory(of));
      await sleep(10);
    }
  })();
  const answer = await run().finally(() => (done = true));
  await neighbor;
  return { answer, longest: longest * partLeft(before, used()), growth: highest - idle };
}

const figures = [];
after(() => {
  for (const figure of figures) console.log(figure);
});

test("a gzip bomb is refused by its header or at the limit, and does not delay neighbors", async () => {
  const zeros = bomb(1_500, "\0");
  assert.ok(zeros.length < 1_600_000, `${zeros.length}`);
  const newlines = bomb(300, "\n");
  const numbers = bomb(300, "1\n");
  const path = `${ITS}/ehr/${ehrId}/composition`;
  const write = issuer.as("write");
  for (const [name, target, type, body, credentials, status] of [
    ["a stranger's composition", path, JSON_TYPE, zeros, {}, [401]],
    ["a stranger's load", `${V1}/ehr/bulk`, NDJSON, zeros, {}, [401]],
    ["a stranger's import", `${V1}/admin/import`, NDJSON, zeros, {}, [401]],
    ["a reader's composition", path, JSON_TYPE, zeros, issuer.as("read"), [403]],
    ["nobody's path", `${V1}/nowhere`, JSON_TYPE, zeros, {}, [404]],
    ["no method", "/health", JSON_TYPE, zeros, {}, [404, 405]],
    ["a writer's composition", path, JSON_TYPE, zeros, write, [413]],
    ["a writer's load of zeros", `${V1}/ehr/bulk`, NDJSON, zeros, write, [413]],
    ["a writer's load of newlines", `${V1}/ehr/bulk`, NDJSON, newlines, write, [413]],
    ["a writer's load of numbers", `${V1}/ehr/bulk`, NDJSON, numbers, write, [413]],
    [
      "an administrator's import of numbers",
      `${V1}/admin/import`,
      NDJSON,
      numbers,
      issuer.as("admin"),
      [413],
    ],
    [
      "a list of numbers for a guide",
      `${V1}/gdl/query?guide_id=x`,
      NDJSON,
      numbers,
      issuer.as("population", "query"),
      [413],
    ],
  ]) {
    const headers = { "content-type": type, "content-encoding": "gzip", ...credentials };
    const { answer, longest, growth } = await watched(() => raw("POST", target, { headers, body }));
    figures.push(
      `${name}: ${answer.status}, /health ${Math.round(longest)} ms, ${Math.round(growth)} MB above idle`,
    );
    assert.ok(
      status.includes(answer.status),
      `${name}: ${answer.status} ${answer.body.slice(0, 300)}`,
    );
    assert.ok(longest < 1_000, `${name}: a neighbor waited ${longest} ms`);
    assert.ok(growth < 200, `${name}: ${growth} MB above idle`);
  }
});

test("an uncompressed body is bounded in lines and blank lines, and does not delay neighbors", async () => {
  const write = { "content-type": NDJSON, ...issuer.as("write") };
  const blank = await watched(() =>
    raw("POST", `${V1}/ehr/bulk`, { headers: write, body: "\n".repeat(8_000_000) }),
  );
  assert.equal(blank.answer.status, 400, blank.answer.body.slice(0, 300));
  assert.match(blank.answer.body, /1000 of 1000 lines are blank/);
  const short = await watched(() =>
    raw("POST", `${V1}/ehr/bulk`, { headers: write, body: "{}\n".repeat(100_000) }),
  );
  assert.equal(short.answer.status, 200);
  assert.equal(short.answer.body.trimEnd().split("\n").length, 100_000, "each line has its answer");
  for (const { longest, growth } of [blank, short]) {
    assert.ok(longest < 1_000, `a neighbor waited ${longest} ms`);
    assert.ok(growth < 200, `${growth} MB above idle`);
  }
  figures.push(
    `100,000 lines: /health ${Math.round(short.longest)} ms, ${Math.round(short.growth)} MB above idle`,
  );
});

test("compressed and plain bodies have the same effects", async () => {
  const steward = issuer.as("read", "write", "define");
  await uploadTemplates(
    {
      send: (method, path, options) => server.send(method, path, { ...options, headers: steward }),
    },
    data,
  );
  assert.equal((await server.send("PUT", `${ITS}/ehr/${ehrId}`, { headers: steward })).status, 201);
  const text = JSON.stringify(composition);
  const gzip = { "content-encoding": "gzip", ...steward };
  const path = `${ITS}/ehr/${ehrId}/composition`;
  assert.equal(
    (await server.send("POST", path, { headers: gzip, body: gzipSync(text) })).status,
    201,
  );
  assert.equal(
    (
      await server.send("POST", path, {
        headers: { ...gzip, "content-encoding": "X-GZip" },
        body: gzipSync(text),
      })
    ).status,
    201,
  );
  assert.equal(
    (
      await server.send("POST", path, {
        headers: gzip,
        body: Buffer.concat([gzipSync(text.slice(0, 100)), gzipSync(text.slice(100))]),
      })
    ).status,
    201,
  );
  for (const coding of ["br", "deflate", "gzip, gzip", "zstd"]) {
    const answer = await server.send("POST", path, {
      headers: { ...gzip, "content-encoding": coding },
      body: gzipSync(text),
    });
    assert.equal(answer.status, 415, coding);
    assert.equal(answer.headers.get("accept-encoding"), "gzip, identity");
  }
  for (const broken of [
    Buffer.from(text),
    gzipSync(text).subarray(0, 200),
    Buffer.concat([gzipSync(text), Buffer.from("x")]),
  ]) {
    assert.equal((await server.send("POST", path, { headers: gzip, body: broken })).status, 400);
    assert.equal(
      (await server.send("POST", `${V1}/ehr/bulk`, { headers: gzip, body: broken, type: NDJSON }))
        .status,
      400,
    );
  }
  const lines = Array.from({ length: 5 }, () =>
    JSON.stringify({ ehr_id: ehrId, composition }),
  ).join("\n");
  const loaded = await server.send("POST", `${V1}/ehr/bulk`, {
    headers: gzip,
    body: gzipSync(lines),
    type: NDJSON,
  });
  assert.deepEqual(
    loaded.text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).status),
    lines.split("\n").map(() => 201),
  );
});

test("a long load, compressed or not, is processed in pieces, and neighbors are answered between them", async () => {
  const once = data.compositions
    .map((each) => `${JSON.stringify({ ehr_id: ehrId, composition: each.composition })}\n`)
    .join("");
  const text = once.repeat(Math.ceil(12_000_000 / once.length));
  const lines = text.trimEnd().split("\n").length;
  for (const [name, body, coding] of [
    ["plain", text, {}],
    ["compressed", gzipSync(text, { level: 1 }), { "content-encoding": "gzip" }],
  ]) {
    const headers = { "content-type": NDJSON, ...coding, ...issuer.as("write") };
    const begun = performance.now();
    const { answer, longest, growth } = await watched(() =>
      raw("POST", `${V1}/ehr/bulk`, { headers, body }),
    );
    figures.push(
      `12 MB of compositions, ${name}: ${Math.round(performance.now() - begun)} ms, /health ${Math.round(longest)} ms, ${Math.round(growth)} MB above idle`,
    );
    assert.equal(answer.status, 200, answer.body.slice(0, 300));
    const statuses = answer.body
      .trimEnd()
      .split("\n")
      .map((each) => JSON.parse(each).status);
    assert.deepEqual([statuses.length, [...new Set(statuses)]], [lines, [201]]);
    assert.ok(longest < 1_000, `${name}: a neighbor waited ${longest} ms`);
    assert.ok(growth < 200, `${name}: ${growth} MB above idle`);
  }
});

test("a load that expands beyond its limit ends with a line that names the limit", async () => {
  const lines = data.compositions
    .slice(0, 60)
    .map((each) => `${JSON.stringify({ ehr_id: ehrId, composition: each.composition })}\n`);
  const good = deflateRawSync(Buffer.from(lines.join("")), { finishFlush: constants.Z_FULL_FLUSH });
  const body = Buffer.concat([
    Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]),
    good,
    bomb(500, `{"a":"${"x".repeat(990)}"}\n`).subarray(10),
  ]);
  const headers = { "content-type": NDJSON, "content-encoding": "gzip", ...issuer.as("write") };
  const { answer, longest, growth } = await watched(() =>
    raw("POST", `${V1}/ehr/bulk`, { headers, body }),
  );
  assert.equal(answer.status, 200, answer.body.slice(0, 300));
  const answers = answer.body
    .trimEnd()
    .split("\n")
    .map((each) => JSON.parse(each));
  assert.deepEqual(
    [[...new Set(answers.slice(0, 60).map(({ status }) => status))], answers.at(-1).code],
    [[201], 413],
  );
  assert.ok(answers.length < 10_000, `${answers.length} lines`);
  figures.push(
    `a load that turns into a bomb: ${answers.length} lines, /health ${Math.round(longest)} ms, ${Math.round(growth)} MB above idle`,
  );
  assert.ok(longest < 1_000 && growth < 200, `${longest} ms, ${growth} MB`);
});

test("the key set is fetched once for all hosts, and unknown keys cause no further fetch and no refusal of other callers", async () => {
  issuer.delay = 700;
  const fresh = await startServed(freshState("door-keys"), issuer.variables);
  try {
    const begun = issuer.asked;
    const ask = (host, headers = {}) =>
      raw("GET", `${V1}/definition/query`, { headers: { host, ...headers }, port: fresh.port });
    const strangers = await Promise.all(
      Array.from({ length: 10 }, (_, i) => ask(`stranger${i}.example`)),
    );
    assert.deepEqual([...new Set(strangers.map(({ status }) => status))], [401]);
    assert.equal(issuer.asked, begun, "a stranger makes no fetch");
    const first = await Promise.all(
      Array.from({ length: 20 }, (_, i) => ask(`h${i % 5}.example`, issuer.as("read"))),
    );
    assert.deepEqual(
      first.map(({ status }) => status),
      Array(20).fill(200),
      "the first requests wait for the keys",
    );
    assert.equal(issuer.asked, begun + 1, "of many requests one fetches");
  } finally {
    issuer.delay = 0;
    await fresh.stop();
  }
});

test("only configured hosts are served, and addresses in answers have the requested host", async () => {
  const hosted = await startServed(freshState("door-hosts"), {
    ...issuer.variables,
    HOSTS: "cdr.example.org, other.example:8443",
  });
  try {
    const ask = (host, path = `${V1}/definition/query`) =>
      raw("GET", path, { headers: { host, ...issuer.as("read") }, port: hosted.port });
    assert.equal((await ask("cdr.example.org")).status, 200);
    assert.equal((await ask("other.example:8443")).status, 200);
    const unknown = await ask("evil.example");
    assert.equal(unknown.status, 421, unknown.body);
    assert.match(unknown.body, /HOSTS/);
    assert.equal(
      (await ask("evil.example", "/health")).status,
      200,
      "a load balancer asks by address",
    );
  } finally {
    await hosted.stop();
  }
  for (const host of ["a.example", "b.example:81"]) {
    const made = await raw("POST", `${V1}/ehr`, { headers: { host, ...issuer.as("write") } });
    assert.ok(made.headers.location.startsWith(`http://${host}/v1/ehr/`), made.headers.location);
  }
});

/** Headers that browsers add to requests, and whether a write with them is accepted. */
const SITES = [
  [{}, true],
  [{ "sec-fetch-site": "none" }, true],
  [{ origin: "https://page.example", "sec-fetch-site": "cross-site" }, true],
  [{ origin: "https://evil.example", "sec-fetch-site": "cross-site" }, false],
  [{ origin: "https://evil.example" }, false],
  [{ origin: "null", "sec-fetch-site": "cross-site" }, false],
  [{ "sec-fetch-site": "cross-site" }, false],
  [{ "sec-fetch-site": "same-site" }, false],
];

/** The writes and queries of the matrix, by the form of their body. */
const CHANGES = [
  ["POST", `${V1}/ehr`],
  ["POST", `${V1}/query/aql`, JSON.stringify({ q: "SELECT e/ehr_id/value FROM EHR e" })],
  ["DELETE", `${V1}/admin/ehr/00000000-0000-4000-8000-00000000abcd`],
  ["POST", `${V1}/admin/reset`],
];

async function matrix(port, own, credentials) {
  const sites = [
    ...SITES,
    [{ origin: own, "sec-fetch-site": "same-origin" }, true],
    [{ origin: own, "sec-fetch-site": "cross-site" }, false],
  ];
  for (const [site, passes] of sites) {
    for (const [method, path, body] of CHANGES) {
      const headers = { ...credentials, ...site, ...(body ? { "content-type": JSON_TYPE } : {}) };
      const answer = await raw(method, path, { headers, body, port });
      assert.equal(
        answer.status !== 403,
        passes,
        `${method} ${path} ${JSON.stringify(site)}: ${answer.status} ${answer.body}`,
      );
      if (!passes) assert.match(answer.body, /ORIGINS/);
    }
    const read = await raw("GET", `${V1}/definition/query`, {
      headers: { ...credentials, ...site },
      port,
    });
    assert.equal(read.status, 200);
    assert.equal(
      read.headers["access-control-allow-origin"],
      site.origin === "https://page.example" ? site.origin : undefined,
    );
  }
}

test("a page of another site changes nothing: tokens, the cookie of Cloudflare Access, and a service that is open", async () => {
  const own = `http://127.0.0.1:${server.port}`;
  const roles = ["read", "write", "query", "population", "admin"];
  await matrix(server.port, own, issuer.as(...roles));
  const assertion = issuer.token({ aud: ["policy"], roles });
  await matrix(server.port, own, {
    cookie: `CF_Authorization=${assertion}`,
    "cf-access-jwt-assertion": assertion,
  });
  const open = await startServed(freshState("door-open"), {
    AUTH: "none",
    ADMIN: "true",
    ORIGINS: "https://page.example",
  });
  try {
    await matrix(open.port, `http://127.0.0.1:${open.port}`, {});
    const ask = (host, method = "GET", headers = {}) =>
      raw(method, `${V1}/ehr${method === "GET" ? "/x" : ""}`, {
        headers: { host, ...headers },
        port: open.port,
      });
    for (const name of ["127.0.0.1", "localhost", "page.localhost", "[::1]"])
      assert.equal((await ask(`${name}:${open.port}`)).status, 404, name);
    const rebound = `evil.example:${open.port}`;
    for (const method of ["GET", "POST"]) {
      const answer = await ask(rebound, method, {
        origin: `http://${rebound}`,
        "sec-fetch-site": "same-origin",
      });
      assert.equal(answer.status, 421, answer.body);
      assert.match(answer.body, /loopback/);
    }
    for (const type of [
      undefined,
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
    ]) {
      const headers = type ? { "content-type": type } : {};
      const answer = await raw("POST", `${V1}/query/aql`, {
        headers,
        body: '{"q":"SELECT e FROM EHR e"}',
        port: open.port,
      });
      assert.equal(answer.status, 415, type);
    }
  } finally {
    await open.stop();
  }
});

test("a caller has a limit of concurrent requests: 429 beyond it, other callers continue, and abandoned requests release their places", async () => {
  const ann = issuer.bearer({ roles: ["write"], sub: "ann-of-the-queue" });
  const bob = issuer.bearer({ roles: ["read"], sub: "bob-of-the-queue" });
  const headers = { "content-type": JSON_TYPE, "content-length": "1000", ...ann };
  let leave;
  const cut = new Promise((resolve) => (leave = resolve));
  // A request whose body never ends occupies its permit. The bodies declare a short length, because a
  // long one needs a permit for long bodies in addition.
  const held = Array.from({ length: 4 }, () =>
    raw("POST", `${V1}/ehr`, { headers, body: "{", cut }),
  );
  await sleep(300);
  const waiting = Array.from({ length: 6 }, () => raw("POST", `${V1}/ehr`, { headers: ann }));
  const statuses = [];
  for (const one of waiting) one.then(({ status }) => statuses.push(status));
  await sleep(1_000);
  assert.deepEqual(statuses, [429, 429, 429, 429], "two wait, the others are refused at once");
  assert.equal((await raw("GET", "/health")).status, 200);
  assert.equal((await raw("OPTIONS", `${V1}/`)).status, 200);
  assert.equal(
    (await raw("GET", `${V1}/definition/query`, { headers: bob })).status,
    200,
    "another caller has places of his own",
  );
  leave();
  await Promise.all(held);
  const late = await Promise.all(waiting);
  assert.deepEqual(
    late.map(({ status }) => status).sort(),
    [201, 201, 429, 429, 429, 429],
    "those that waited are answered when places are free",
  );
  assert.ok(
    late
      .filter(({ status }) => status === 429)
      .every((answer) => answer.headers["retry-after"] !== undefined),
  );
  for (let round = 0; round < 20; round += 1) {
    await Promise.all(
      Array.from({ length: 4 }, () =>
        raw("POST", `${V1}/ehr`, { headers: { ...headers }, body: "{", cut: sleep(5) }),
      ),
    );
  }
  await sleep(1_000);
  const again = await Promise.all(
    Array.from({ length: 4 }, () => raw("POST", `${V1}/ehr`, { headers: ann })),
  );
  assert.deepEqual(
    again.map(({ status }) => status),
    [201, 201, 201, 201],
    "eighty requests whose clients went away hold nothing",
  );
});

/** Returns the files below a folder that contain a text. */
function holding(folder, text) {
  const files = readdirSync(folder, { recursive: true })
    .map((name) => join(folder, name))
    .filter((name) => statSync(name, { throwIfNoEntry: false })?.isFile());
  return files.filter((name) => readFileSync(name).includes(text));
}

/** Returns the ports on which the processes of a server listen. */
function ports(of) {
  const sockets = processes(of).flatMap(({ pid }) => {
    try {
      return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
        try {
          return /^socket:\[(\d+)\]$/.exec(readlink(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
        } catch {
          return [];
        }
      });
    } catch {
      return [];
    }
  });
  const lines = ["tcp", "tcp6"]
    .flatMap((name) => readFileSync(`/proc/net/${name}`, "utf8").trim().split("\n").slice(1))
    .map((line) => line.trim().split(/\s+/));
  return lines
    .filter((line) => line[3] === "0A" && sockets.includes(line[9]))
    .map((line) => Number.parseInt(line[1].split(":")[1], 16));
}

test("a local server stores text of patients in its database only, and opens no inspector", async () => {
  const home = join(root, "target/e2e/door-home");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  const state = freshState("door-served");
  const MARK = "Zebulon7193";
  const served = await startServed(
    state,
    { AUTH: "none" },
    {
      HOME: home,
      XDG_CONFIG_HOME: join(home, ".config"),
      XDG_STATE_HOME: join(home, ".state"),
      XDG_CACHE_HOME: join(home, ".cache"),
    },
  );
  try {
    const status = {
      _type: "EHR_STATUS",
      archetype_node_id: "openEHR-EHR-EHR_STATUS.generic.v1",
      name: { _type: "DV_TEXT", value: MARK },
      subject: { _type: "PARTY_SELF" },
      is_queryable: true,
      is_modifiable: true,
    };
    const headers = { prefer: "return=representation" };
    const made = await served.send("POST", `${V1}/ehr`, { body: JSON.stringify(status), headers });
    assert.equal(made.status, 201, made.text);
    assert.ok(
      (
        await served.send("GET", new URL(made.headers.get("location")).pathname + "/ehr_status")
      ).text.includes(MARK),
    );
    assert.equal((await served.send("GET", `${V1}/ehr/${MARK}?x=${MARK}`)).status, 404);
    await sleep(500);
    assert.deepEqual(holding(home, MARK), []);
    assert.deepEqual(
      holding(state, MARK).filter((name) => !name.includes(join("v3", "d1"))),
      [],
    );
    assert.ok(holding(state, MARK).length > 0, "the search finds what is there");
    assert.ok(!served.log.includes(MARK));
    const open = ports(served);
    assert.ok(open.includes(Number(served.port)), `${open}`);
    for (const port of open) {
      for (const path of ["/json", "/json/version", "/json/list"]) {
        const answer = await raw("GET", path, { port }).catch(() => ({ body: "" }));
        assert.ok(
          !/webSocketDebuggerUrl|devtoolsFrontendUrl/.test(answer.body),
          `an inspector on ${port}`,
        );
      }
    }
    for (const path of [
      "/cdn-cgi/explorer",
      "/cdn-cgi/explorer/api/d1/database",
      "/cdn-cgi/handler/scheduled",
    ]) {
      const answer = await raw("GET", path, { port: served.port });
      assert.ok(answer.status >= 400, `${path}: ${answer.status}`);
    }
  } finally {
    await served.stop();
  }
  assert.deepEqual(holding(home, MARK), []);
});
