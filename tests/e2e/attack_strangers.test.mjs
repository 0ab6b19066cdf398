// Attacks by callers without credentials, by pages of other origins, and by applications with access to
// one patient.
import assert from "node:assert/strict";
import { pbkdf2Sync, randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { Issuer, base64url, pair } from "./issuer.mjs";
import { ITS, V1 } from "./server.mjs";
import { LONG, gzipBomb } from "./attack/bombs.mjs";
import {
  Host,
  assertCalm,
  composition,
  megabytes,
  newEhr,
  template,
  uidOf,
} from "./attack/host.mjs";

const FOREIGN = "https://evil.example";
const PAGE = "https://page.example";
const json = { "content-type": "application/json" };
const ROLES = ["read", "write", "query", "population", "define", "admin"];
const stranger = pair("ec", { namedCurve: "P-256" });

/** Sends many requests, a few at a time. Returns their answers. */
async function flood(count, ask, together = 20) {
  const answers = [];
  for (let at = 0; at < count; at += together)
    answers.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(together, count - at) }, (_, index) => ask(at + index)),
      )),
    );
  return answers;
}

/** Requests whose bodies do not arrive: their host and answers. They wait during the other tests. */
let stalled;
before(async () => {
  const host = await Host.start("stalled", { AUTH: "none" });
  const send = (body) =>
    host.send("POST", `${V1}/query/aql`, {
      body,
      headers: { ...json, "content-length": String(body.length) },
      stall: 100_000,
      patience: 60_000,
    });
  const sent = ["{}".padEnd(500), "{}".padEnd(2_000_000)].map(send);
  stalled = { host, answers: Promise.allSettled(sent) };
});
after(() => stalled?.host.stop());

describe("without credentials", () => {
  let issuer;
  let host;
  const auditRows = async () => {
    let [rows, after] = [0, 0];
    for (;;) {
      const { entries, next } = (
        await host.expect(200, "GET", `${V1}/admin/access-log?fetch=1000&after=${after}`, {
          headers: issuer.as("audit"),
        })
      ).json;
      rows += entries.length;
      if (entries.length < 1000 || next === undefined) return rows;
      after = next;
    }
  };
  before(async () => {
    issuer = await Issuer.start();
    host = await Host.start("strangers", { ...issuer.variables, ADMIN: "true" });
  });
  after(async () => {
    await host?.stop();
    issuer?.stop();
  });

  test("parallel first requests wait for one fetch of the keys", async () => {
    const headers = issuer.as(...ROLES);
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => host.send("GET", `${V1}/definition/query`, { headers })),
    );
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [200]);
    assert.equal(issuer.asked, 1, "the key set was fetched once");
  });

  test("unknown keys and many Host headers cause no more than one fetch of the keys", async () => {
    const asked = issuer.asked;
    const count = LONG ? 2_000 : 200;
    await flood(count, (index) => {
      const headers = {
        host: `host-${index}.example:${index + 1}`,
        ...issuer.bearer({ roles: ["read"] }, { key: stranger, kid: `kid-${index}` }),
      };
      return host.send("GET", `${V1}/definition/query`, { headers });
    });
    assert.ok(
      issuer.asked - asked <= 1 + (LONG ? 6 : 1),
      `${issuer.asked - asked} fetches for ${count} requests`,
    );
  });

  test("a Host that is not configured causes no other addresses, no cache entries and no memory", async () => {
    const headers = issuer.as(...ROLES);
    const ask = (more) => (index) =>
      host.send("GET", `${V1}/definition/query`, { headers: { ...headers, ...more(index) } });
    const count = LONG ? 2_000 : 300;
    // Each request leaves garbage, which V8 collects only at some hundred megabytes. The test therefore
    // compares many Host headers with one Host header.
    await host.settle();
    const alike = await host.observe(() =>
      flood(
        count,
        ask(() => ({})),
      ),
    );
    await host.settle();
    const { result, failure, seen } = await host.observe(() =>
      flood(
        count,
        ask((index) => ({ host: `host-${index}.example` })),
      ),
    );
    if (failure ?? alike.failure) throw failure ?? alike.failure;
    for (const answer of result)
      assert.ok([200, 421].includes(answer.status), `${answer.status} ${answer.text}`);
    const [kept, allowed] = [seen.kept, Math.max(0, alike.seen.kept) + 50_000_000];
    assert.ok(kept <= allowed, `${megabytes(kept)} kept, ${megabytes(allowed)} without a Host`);
    assertCalm({ seen: { ...seen, memory: 0 }, releasedAfter: 0 });
  });

  const bomb = gzipBomb(LONG ? 1500e6 : 400e6);
  const bodies = {
    "a gzip bomb": { body: bomb, headers: { "content-encoding": "gzip", ...json } },
    "a compressed bulk load": {
      path: "/ehr/bulk",
      body: gzipBomb(LONG ? 300e6 : 50e6, 10),
      headers: { "content-encoding": "gzip", "content-type": "application/x-ndjson" },
    },
    "an import": {
      path: "/admin/import",
      body: gzipBomb(LONG ? 300e6 : 50e6, 10),
      headers: { "content-encoding": "gzip", "content-type": "application/x-ndjson" },
    },
    "a body of nine megabytes": { body: Buffer.alloc(9_000_000, 32), headers: json },
    "a body that stalls": {
      body: Buffer.alloc(1_000, 32),
      headers: json,
      stall: LONG ? 30_000 : 3_000,
    },
  };
  for (const [title, { path = "/query/aql", ...options }] of Object.entries(bodies)) {
    test(`${title} is refused before it is read`, async (context) => {
      await host.settle();
      const send = () =>
        host.send("POST", `${V1}${path}`, options).catch((error) => ({ status: error.code }));
      const { result, seen } = await host.observe(() =>
        Promise.all(Array.from({ length: LONG ? 50 : 10 }, send)),
      );
      const releasedAfter = await host.waitForRelease();
      context.diagnostic(
        `${Math.round(seen.milliseconds)} ms, neighbor ${Math.round(seen.worst)} ms, memory ${megabytes(seen.memory)}, answers ${result.map(({ status }) => status).join(" ")}`,
      );
      // A server that answers early may close the connection while the client still sends.
      for (const { status } of result)
        assert.ok([401, "EPIPE", "ECONNRESET"].includes(status), `${status}`);
      assert.ok(
        result.some(({ status }) => status === 401),
        "no caller got 401",
      );
      assertCalm({ seen, releasedAfter });
    });
  }

  test("refused requests do not grow the access log one by one", async () => {
    const before = await auditRows();
    const count = LONG ? 10_000 : 400;
    const answers = await flood(count, (index) =>
      host.send("GET", `${V1}/ehr/${crypto.randomUUID()}`, {
        headers: index % 2 ? {} : { authorization: `Bearer ${index}` },
      }),
    );
    for (const answer of answers) assert.ok([401, 429].includes(answer.status), `${answer.status}`);
    const grown = (await auditRows()) - before;
    assert.ok(grown <= 40, `${grown} rows for ${count} refused requests`);
  });
});

test("guessing passwords does not starve others", async (context) => {
  const [salt, iterations] = [randomBytes(16), 100_000];
  const hash = pbkdf2Sync("correct horse", salt, iterations, 32, "sha256");
  const host = await Host.start("passwords", {
    AUTH: "basic",
    USERS: `dev:${iterations}:${base64url(salt)}:${base64url(hash)}:read`,
  });
  const signIn = (credentials) =>
    host.send("GET", `${V1}/definition/query`, {
      headers: { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` },
    });
  try {
    assert.equal((await signIn("dev:correct horse")).status, 200);
    for (const name of ["dev", "nobody"]) {
      await host.settle();
      const { result, failure, seen } = await host.observe(() =>
        Promise.all(
          Array.from({ length: LONG ? 1_000 : 150 }, (_, index) =>
            signIn(`${name}:guess ${index}`),
          ),
        ),
      );
      if (failure) throw failure;
      context.diagnostic(
        `${name}: ${Math.round(seen.milliseconds)} ms, neighbor ${Math.round(seen.worst)} ms with ${Math.round(seen.left * 100)} % of the processors`,
      );
      for (const answer of result)
        assert.ok([401, 429].includes(answer.status), `${answer.status} ${answer.text}`);
      assertCalm({ seen, releasedAfter: await host.waitForRelease() });
    }
  } finally {
    await host.stop();
  }
});

describe("cross-site", () => {
  let open;
  let listed;
  before(async () => {
    open = await Host.start("open", { AUTH: "none", ADMIN: "true" });
    listed = await Host.start("listed", { AUTH: "none", ADMIN: "true", ORIGINS: PAGE });
  });
  after(() => Promise.all([open, listed].map((each) => each?.stop())));

  test("a page that was bound to this address reads nothing by means of headers of the runtime", async () => {
    const host = `evil.example:${open.port}`;
    const own = `http://localhost:${open.port}`;
    for (const path of [
      "/ehr?fetch=1",
      "/admin/export",
      "/query/aql?q=SELECT%20e%20FROM%20EHR%20e",
    ])
      for (const name of [
        "mf-original-url",
        "mf-op-original-url",
        "x-original-url",
        "x-rewrite-url",
      ]) {
        const headers = { host, "sec-fetch-site": "same-origin", [name]: `${own}${V1}${path}` };
        for (const sent of [`${V1}${path}`, "/x"]) {
          const answer = await open.send("GET", sent, { headers });
          assert.ok([404, 421].includes(answer.status), `${name}: ${answer.status} ${answer.text}`);
        }
      }
  });

  const origins = {
    "a foreign Origin": [{ origin: FOREIGN }, [403]],
    "the Origin `null`": [{ origin: "null" }, [403]],
    "a foreign Origin on another port": [{ origin: "http://127.0.0.1:1" }, [403]],
    "Sec-Fetch-Site: cross-site": [{ "sec-fetch-site": "cross-site" }, [403]],
    "Sec-Fetch-Site: same-site": [{ "sec-fetch-site": "same-site" }, [403]],
    both: [{ origin: FOREIGN, "sec-fetch-site": "cross-site" }, [403]],
    "a foreign Origin that claims to be the same": [
      { origin: FOREIGN, "sec-fetch-site": "same-origin" },
      [403],
    ],
    "a listed Origin's name with a suffix": [
      { origin: `${PAGE}.evil.example`, "sec-fetch-site": "cross-site" },
      [403],
    ],
  };
  const unsafe = [
    ["POST", "/admin/reset", undefined],
    ["POST", "/ehr", undefined],
    ["POST", "/query/aql", { q: "SELECT e FROM EHR e" }],
    ["PUT", `/ehr/${crypto.randomUUID()}`, undefined],
    ["DELETE", `/admin/ehr/${crypto.randomUUID()}`, undefined],
  ];
  const ehrs = async (host) =>
    (
      await host.send("POST", `${V1}/query/aql`, {
        body: '{"q":"SELECT count(e/ehr_id/value) AS n FROM EHR e"}',
      })
    ).json.rows;
  for (const [title, [headers, expected]] of Object.entries(origins)) {
    test(`${title} is refused on every unsafe method, and changes nothing`, async () => {
      for (const host of [open, listed]) {
        const before = await ehrs(host);
        for (const base of [V1, ITS]) {
          for (const [method, path, body] of unsafe) {
            await host.expect(expected, method, `${base}${path}`, {
              headers: { ...json, ...headers },
              body: body && JSON.stringify(body),
            });
            await host.expect(expected, method, `${base}${path}`, {
              headers,
              body: body && JSON.stringify(body),
              type: null,
            });
          }
        }
        assert.deepEqual(await ehrs(host), before);
      }
    });
  }

  test("a listed Origin may write, and a client without Origin may", async () => {
    await listed.expect(201, "POST", `${V1}/ehr`, {
      headers: { ...json, origin: PAGE, "sec-fetch-site": "cross-site" },
    });
    for (const host of [open, listed]) {
      await host.expect(201, "POST", `${V1}/ehr`, { headers: json });
      await host.expect(201, "POST", `${V1}/ehr`, {
        headers: {
          ...json,
          "sec-fetch-site": "same-origin",
          origin: `http://127.0.0.1:${host.port}`,
        },
      });
      await host.expect(201, "POST", `${V1}/ehr`, {
        headers: { ...json, "sec-fetch-site": "none" },
      });
    }
  });

  test("a body needs a Content-Type that pages cannot send without a preflight", async () => {
    const body = '{"q":"SELECT e FROM EHR e"}';
    for (const type of [
      null,
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "text/plain; application/json",
    ]) {
      await open.expect(415, "POST", `${V1}/query/aql`, { body, type });
      await open.expect(415, "POST", `${V1}/ehr`, { body: "{}", type });
    }
  });

  test("an open service answers loopback names only", async () => {
    const ask = (name, method = "GET", path = "/definition/query") =>
      open.send(method, `${V1}${path}`, { headers: { host: name, ...json } });
    for (const name of [
      "evil.example",
      `evil.example:${open.port}`,
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "10.0.0.1",
      "192.168.0.7:8787",
      "[fd00::1]",
    ]) {
      for (const answer of [
        await ask(name),
        await ask(name, "POST", "/ehr"),
        await ask(name, "GET", "/admin/export"),
      ])
        assert.ok(
          [403, 421].includes(answer.status),
          `${name}: ${answer.status} ${answer.text.slice(0, 200)}`,
        );
    }
    for (const name of [
      "localhost",
      `localhost:${open.port}`,
      "127.0.0.1",
      "[::1]",
      `[::1]:${open.port}`,
    ])
      assert.equal((await ask(name)).status, 200, name);
  });

  test("no answer allows a foreign page to read it", async () => {
    for (const [method, path] of [
      ["GET", "/definition/query"],
      ["OPTIONS", "/ehr"],
      ["GET", "/admin/export"],
    ]) {
      const answer = await listed.send(method, `${V1}${path}`, {
        headers: { origin: FOREIGN, "access-control-request-method": "POST" },
      });
      assert.equal(answer.headers["access-control-allow-origin"], undefined, `${method} ${path}`);
    }
  });
});

describe("one patient", () => {
  let issuer;
  let host;
  let own;
  let other;
  before(async () => {
    issuer = await Issuer.start();
    host = await Host.start("patient", { ...issuer.variables, ADMIN: "true" });
    const headers = issuer.as(...ROLES);
    await host.expect(201, "POST", `${ITS}/definition/template/adl1.4`, {
      body: template("weight.en.v2"),
      type: "application/xml",
      headers,
    });
    [own, other] = [await newEhr(host, headers), await newEhr(host, headers)];
  });
  after(async () => {
    await host?.stop();
    issuer?.stop();
  });

  /**
   * The bound of the statistic of Mann and Whitney: the probability that equal distributions exceed it is
   * one in a million. The requests alternate at random, so that other programs delay both kinds alike.
   */
  const ALIKE = 5;

  /** Returns how far the ranks of the first times are from those of equal distributions. */
  function rankDistance(first, second) {
    const all = [...first.map((time) => [time, true]), ...second.map((time) => [time, false])];
    all.sort(([a], [b]) => a - b);
    const ranks = all.reduce((sum, [, isFirst], at) => sum + (isFirst ? at + 1 : 0), 0);
    const [m, n] = [first.length, second.length];
    const mean = (m * (m + n + 1)) / 2;
    return (ranks - mean) / Math.sqrt((m * n * (m + n + 1)) / 12);
  }

  test("objects of another EHR and missing objects are answered in the same time", async (context) => {
    const steward = { ...issuer.as(...ROLES), ...json };
    const body = JSON.stringify(composition());
    const path = `${V1}/ehr/${other}/composition`;
    const made = await host.expect(201, "POST", path, { headers: steward, body });
    const scope = "patient/composition-*.cruds patient/aql-*.cruds";
    const headers = { ...issuer.bearer({ scope, ehrId: own }), ...json };
    const uids = [() => uidOf(made), () => `${crypto.randomUUID()}::aqlite.local::1`];
    const ask =
      (method, of, more = {}) =>
      (uid) =>
        host.send(method, of(uid), { headers, ...more });
    const at = (kind) => (uid) => `${V1}/ehr/${own}/${kind}/${uid.split("::")[0]}`;
    const requests = {
      read: ask("GET", (uid) => `${V1}/ehr/${own}/composition/${uid}`),
      history: ask("GET", at("versioned_composition")),
      update: (uid) =>
        ask("PUT", at("composition"), { body, headers: { ...headers, "if-match": `"${uid}"` } })(
          uid,
        ),
      deletion: ask("DELETE", (uid) => `${V1}/ehr/${own}/composition/${uid}`),
    };
    for (const [name, send] of Object.entries(requests)) {
      const times = [[], []];
      for (let round = 0; round < 120; round += 1)
        for (const which of Math.random() < 0.5 ? [0, 1] : [1, 0]) {
          const answer = await send(uids[which]());
          assert.equal(answer.status, 404, answer.text);
          // The first answers compile statements and code.
          if (round >= 20) times[which].push(answer.milliseconds);
        }
      const distance = rankDistance(...times);
      context.diagnostic(`${name}: ${distance.toFixed(2)} standard deviations`);
      assert.ok(Math.abs(distance) < ALIKE, `${name}: ${distance} standard deviations`);
    }
  });

  test("objects of another EHR and missing objects get the same answer", async () => {
    const steward = issuer.as(...ROLES);
    const made = await host.expect(201, "POST", `${V1}/ehr/${other}/composition`, {
      headers: { ...steward, ...json },
      body: JSON.stringify(composition()),
    });
    const foreign = uidOf(made);
    const uuid = foreign.split("::")[0];
    const madeUp = crypto.randomUUID();
    const headers = {
      ...issuer.bearer({ scope: "patient/composition-*.cruds patient/aql-*.cruds", ehrId: own }),
      ...json,
    };
    const version = (uid, number = 1) => `${uid}::aqlite.local::${number}`;
    const contribution = (uid, more, data = composition()) =>
      JSON.stringify({
        uid: { _type: "HIER_OBJECT_ID", value: uid },
        audit: audit(),
        versions: [{ commit_audit: audit(), data, ...more }],
      });
    const audit = (code = "249") => ({
      _type: "AUDIT_DETAILS",
      system_id: "x",
      committer: { _type: "PARTY_IDENTIFIED", name: "x" },
      change_type: {
        _type: "DV_CODED_TEXT",
        value: "-",
        defining_code: {
          _type: "CODE_PHRASE",
          terminology_id: { _type: "TERMINOLOGY_ID", value: "openehr" },
          code_string: code,
        },
      },
    });
    const stored = (await host.send("GET", `${V1}/ehr/${other}`, { headers: steward })).json;
    const contributionUid =
      (
        await host.send("GET", `${V1}/admin/export?ehr_id=${other}`, { headers: steward })
      ).text.match(/"contribution":\{.*?"value":"([0-9a-f-]{36})"/)?.[1] ?? madeUp;
    const ask = {
      "read a version": (uid) => ["GET", `/ehr/${own}/composition/${version(uid)}`],
      "read an object": (uid) => ["GET", `/ehr/${own}/composition/${uid}`],
      "read a history": (uid) => [
        "GET",
        `/ehr/${own}/versioned_composition/${uid}/revision_history`,
      ],
      "create under a uid": (uid) => [
        "POST",
        `/ehr/${own}/composition`,
        JSON.stringify(
          composition(
            "weight.en.v2",
            (document) => (document.uid = { _type: "HIER_OBJECT_ID", value: uid }),
          ),
        ),
      ],
      "create under a version uid": (uid) => [
        "POST",
        `/ehr/${own}/composition`,
        JSON.stringify(
          composition(
            "weight.en.v2",
            (document) => (document.uid = { _type: "OBJECT_VERSION_ID", value: version(uid) }),
          ),
        ),
      ],
      update: (uid) => [
        "PUT",
        `/ehr/${own}/composition/${uid}`,
        JSON.stringify(composition()),
        { "if-match": `"${version(uid)}"` },
      ],
      delete: (uid) => ["DELETE", `/ehr/${own}/composition/${version(uid)}`],
      "follow in a contribution": (uid) => [
        "POST",
        `/ehr/${own}/contribution`,
        contribution(crypto.randomUUID(), {
          commit_audit: audit("251"),
          preceding_version_uid: { _type: "OBJECT_VERSION_ID", value: version(uid) },
        }),
      ],
      "create in a contribution": (uid) => [
        "POST",
        `/ehr/${own}/contribution`,
        contribution(crypto.randomUUID(), {
          uid: { _type: "OBJECT_VERSION_ID", value: version(uid) },
        }),
      ],
      "an item tag": (uid) => ["PUT", `/ehr/${own}/tags/${uid}`, '[{"key":"a"}]'],
    };
    for (const [title, make] of Object.entries(ask)) {
      const answers = [];
      for (const uid of [uuid, madeUp]) {
        const [method, path, body, more] = make(uid);
        const answer = await host.send(method, `${V1}${path}`, {
          headers: { ...headers, ...more },
          body,
        });
        answers.push([
          answer.status,
          answer.text.replaceAll(uid, "UID").replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "UUID"),
        ]);
        if (answer.status === 201 && title.startsWith("create")) answers.at(-1)[1] = "";
      }
      assert.deepEqual(answers[0], answers[1], title);
      assert.notEqual(answers[0][0], 500, title);
    }
    for (const uid of [contributionUid, stored.ehr_status.id.value.split("::")[0]]) {
      const pairs = [];
      for (const each of [uid, crypto.randomUUID()]) {
        const answer = await host.send("POST", `${V1}/ehr/${own}/contribution`, {
          headers,
          body: contribution(each, {}),
        });
        pairs.push([
          answer.status,
          answer.status === 201 ? "" : answer.text.replaceAll(each, "UID"),
        ]);
      }
      assert.deepEqual(pairs[0], pairs[1], "a contribution under the uid of another");
    }
  });

  test("the EHR of another patient and a missing EHR get the same answer", async () => {
    const headers = {
      ...issuer.bearer({
        scope: "patient/composition-*.cruds patient/aql-*.cruds patient/guide-*.rs",
        ehrId: own,
      }),
      ...json,
    };
    const absent = crypto.randomUUID();
    for (const [method, path, body] of [
      ["GET", ""],
      ["PUT", ""],
      ["GET", "/ehr_status"],
      ["GET", "/directory"],
      ["POST", "/composition", "{}"],
      ["POST", "/contribution", "{}"],
    ]) {
      const [seen, missing] = await Promise.all(
        [other, absent].map((id) => host.send(method, `${V1}/ehr/${id}${path}`, { headers, body })),
      );
      assert.deepEqual(
        [seen.status, seen.text.replaceAll(other, "ID")],
        [missing.status, missing.text.replaceAll(absent, "ID")],
        `${method} ${path}`,
      );
    }
  });
});

describe("answers as files", () => {
  test("cells of a CSV result are no formulas", async () => {
    const host = await Host.start("csv");
    try {
      await host.expect(201, "POST", `${ITS}/definition/template/adl1.4`, {
        body: template("weight.en.v2"),
        type: "application/xml",
      });
      const ehrId = await newEhr(host);
      const names = [
        "=1+1",
        " =1",
        "\t=1",
        "\u00a0=1",
        "+1",
        "-1+1",
        "@SUM(A1)",
        "x;=1+1",
        "x,=1+1",
        "x\n=1+1",
        "x\r=1",
        "\uFF1D1",
        "|=1",
        "%0A=1",
      ];
      for (const name of names) {
        const body = composition(
          "weight.en.v2",
          (document) => (document.content[0].data.events[0].data.items[0].name.value = name),
        );
        await host.expect([201, 400, 422], "POST", `${V1}/ehr/${ehrId}/composition`, {
          body: JSON.stringify(body),
        });
      }
      const q = "SELECT a/name/value AS n FROM EHR e CONTAINS ELEMENT a";
      const answer = await host.expect(200, "POST", `${V1}/query/aql`, {
        body: JSON.stringify({ q }),
        headers: { ...json, accept: "text/csv" },
      });
      for (const separator of [",", ";", "\t"]) {
        for (const cell of cells(answer.text, separator))
          assert.doesNotMatch(
            cell,
            /^[\s\u00a0]*[=+@\-\uFF1D]/,
            `${JSON.stringify(cell)}, read with ${JSON.stringify(separator)}`,
          );
      }
    } finally {
      await host.stop();
    }
  });
});

test("a request whose body does not arrive is ended, whatever its length", async () => {
  const answers = await stalled.answers;
  assert.deepEqual(
    answers.map(({ value, reason }) => value?.status ?? reason),
    [400, 400],
  );
});

/** Returns the cells that a spreadsheet with this separator reads from a text. */
function cells(text, separator) {
  const [all, rest] = [[], [...text]];
  let [cell, quoted] = ["", false];
  while (rest.length > 0) {
    const letter = rest.shift();
    if (letter === '"' && quoted && rest[0] === '"') cell += rest.shift();
    else if (letter === '"' && (quoted || cell === "")) quoted = !quoted;
    else if (!quoted && (letter === separator || letter === "\n" || letter === "\r"))
      [cell] = ["", all.push(cell)];
    else cell += letter;
  }
  return [...all, cell].filter((each) => each !== "");
}
