// Authentication and permissions of callers, in workerd. Keys and signatures are real. The issuer is a
// server of the test, whose keys change.
import assert from "node:assert/strict";
import { createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { AUDIENCE, Issuer, base64url, ec, now, pair, rsa } from "./issuer.mjs";
import { ITS, V1, freshState, sample, start, testOfWorker, uploadTemplates } from "./server.mjs";

const data = sample();
const { ehr_id: ehrId, composition } = data.compositions[0];
const OTHER = "00000000-0000-4000-8000-000000000001";
const later = pair("ec", { namedCurve: "P-256" });
let issuer;
let server;

const token = (claims, options) => issuer.token(claims, options);
const bearer = (claims, options) => issuer.bearer(claims, options);
const as = (...roles) => issuer.as(...roles);
const get = (path, headers = {}) => server.send("GET", path, { headers });

before(async () => {
  issuer = await Issuer.start();
  const vars = {
    ...issuer.variables,
    AUTH: "jwt,access",
    ACCESS_TEAM: issuer.name,
    ACCESS_AUDIENCE: "policy",
    ADMIN: "true",
    ORIGINS: "https://page.example",
    LIMIT_BODY: "200000",
    AUTHORIZATION_ENDPOINT: "https://id.example/authorize",
    TOKEN_ENDPOINT: "https://id.example/token",
  };
  server = await start(freshState("access"), vars);
  const steward = as("read", "write", "define", "query");
  await uploadTemplates(
    {
      send: (method, path, options) => server.send(method, path, { ...options, headers: steward }),
    },
    data,
  );
  for (const id of [ehrId, OTHER])
    assert.equal((await server.send("PUT", `${ITS}/ehr/${id}`, { headers: steward })).status, 201);
});
after(async () => {
  await server?.stop();
  issuer.stop();
});

test("without credentials: 401 with the scheme, and health, OPTIONS and preflight are open", async () => {
  const answer = await get(`${V1}/ehr/${ehrId}`);
  assert.equal(answer.status, 401);
  assert.match(answer.headers.get("www-authenticate"), /^Bearer realm="aqlite"/);
  assert.equal((await get("/health")).status, 200);
  assert.equal((await server.send("OPTIONS", `${V1}/`)).status, 200);
  const ask = {
    origin: "https://page.example",
    "access-control-request-method": "PUT",
    "access-control-request-headers": "authorization",
  };
  const preflight = await server.send("OPTIONS", `${ITS}/ehr/${ehrId}`, { headers: ask });
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-origin"), "https://page.example");
  const stranger = await server.send("OPTIONS", `${ITS}/ehr/${ehrId}`, {
    headers: { ...ask, origin: "https://other.example" },
  });
  assert.equal(stranger.headers.get("access-control-allow-origin"), null);
  assert.equal(stranger.headers.get("vary"), "Origin");
});

test("tokens signed with RS256 and ES256 are accepted", async () => {
  for (const options of [
    { key: rsa, kid: "rsa" },
    { key: ec, kid: "ec" },
  ]) {
    assert.equal(
      (await get(`${V1}/ehr/${ehrId}`, bearer({ roles: ["read"] }, options))).status,
      200,
      options.kid,
    );
  }
});

test("invalid tokens are refused", async () => {
  const pem = rsa.publicKey.export({ type: "spki", format: "pem" });
  const hmac = (secret) => (signed) => createHmac("sha256", secret).update(signed).digest();
  const read = { roles: ["read", "admin"] };
  const cases = {
    "no signature": bearer(read, { header: { alg: "none" }, signature: () => "" }),
    "alg none with a signature": bearer(read, { header: { alg: "none" } }),
    "HS256 with the public key as secret": bearer(read, {
      kid: "rsa",
      header: { alg: "HS256" },
      signature: hmac(pem),
    }),
    "RS256 in the header, HMAC inside": bearer(read, {
      kid: "rsa",
      header: { alg: "RS256" },
      signature: hmac(pem),
    }),
    "ES256 with the RSA key": bearer(read, { kid: "rsa" }),
    RS512: bearer(read, { key: rsa, kid: "rsa", header: { alg: "RS512" } }),
    "another key under a known id": bearer(read, { key: later, kid: "ec" }),
    "no key id": bearer(read, { header: { kid: undefined } }),
    "a key of its own in the header": bearer(read, {
      key: later,
      kid: "mine",
      header: { jwk: later.publicKey.export({ format: "jwk" }) },
    }),
    "a key set of its own in the header": bearer(read, {
      key: later,
      kid: "mine",
      header: { jku: "http://127.0.0.1:1/" },
    }),
    "critical extensions": bearer(read, { header: { crit: ["x"], x: 1 } }),
    expired: bearer({ ...read, exp: now() - 61 }),
    "without end": bearer({ ...read, exp: undefined }),
    "not valid yet": bearer({ ...read, nbf: now() + 120 }),
    "another issuer": bearer({ ...read, iss: "https://evil.example" }),
    "another audience": bearer({ ...read, aud: "other" }),
    "no audience": bearer({ ...read, aud: undefined }),
    nobody: bearer({ ...read, sub: undefined }),
    "changed after signing": {
      authorization: bearer(read).authorization.replace(
        /\.[^.]+\./,
        `.${base64url(JSON.stringify({ iss: issuer.name, aud: AUDIENCE, sub: "root", exp: now() + 60, ...read }))}.`,
      ),
    },
    rubbish: { authorization: "Bearer x.y.z" },
    "very long": { authorization: `Bearer ${"a".repeat(17_000)}.b.c` },
    "an e-mail in a header": { "cf-access-authenticated-user-email": "root@example.org" },
    "basic, which is off": {
      authorization: `Basic ${Buffer.from("root:root").toString("base64")}`,
    },
  };
  for (const [name, headers] of Object.entries(cases)) {
    const answer = await get(`${V1}/ehr/${ehrId}`, headers);
    assert.ok([401, 431].includes(answer.status), `${name}: ${answer.status} ${answer.text}`);
    assert.ok(!answer.text.includes("system_id"), name);
  }
});

test("the clocks may be a minute apart", async () => {
  assert.equal(
    (await get(`${V1}/ehr/${ehrId}`, bearer({ roles: ["read"], exp: now() - 30 }))).status,
    200,
  );
  assert.equal(
    (await get(`${V1}/ehr/${ehrId}`, bearer({ roles: ["read"], nbf: now() + 30 }))).status,
    200,
  );
});

test("Cloudflare Access: the assertion is verified, for its own audience", async () => {
  const assertion = (claims) => ({
    "cf-access-jwt-assertion": token(
      { aud: ["policy"], roles: ["read"], ...claims },
      { key: rsa, kid: "rsa" },
    ),
  });
  assert.equal((await get(`${V1}/ehr/${ehrId}`, assertion({}))).status, 200);
  assert.equal((await get(`${V1}/ehr/${ehrId}`, assertion({ aud: [AUDIENCE] }))).status, 401);
  assert.equal(
    (
      await get(`${V1}/ehr/${ehrId}`, {
        "cf-access-jwt-assertion": token({ aud: "policy" }, { key: later, kid: "rsa" }),
      })
    ).status,
    401,
  );
});

test("roles: 403 for a missing role, and the answer names a sufficient role", async () => {
  const answer = await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, {
    body: JSON.stringify(composition),
    headers: as("read", "query"),
  });
  assert.equal(answer.status, 403);
  assert.match(answer.text, /write/);
  assert.match(answer.headers.get("www-authenticate"), /insufficient_scope/);
  assert.equal(
    (await server.send("DELETE", `${V1}/admin/ehr/${OTHER}`, { headers: as("write", "define") }))
      .status,
    403,
  );
  const population = JSON.stringify({ q: "SELECT count(*) AS n FROM EHR e" });
  assert.equal(
    (await server.send("POST", `${V1}/query/aql`, { body: population, headers: as("query") }))
      .status,
    403,
  );
  assert.equal(
    (await server.send("POST", `${V1}/query/aql`, { body: population, headers: as("population") }))
      .status,
    200,
  );
  const one = { ...as("query"), "openehr-ehr-id": ehrId };
  assert.deepEqual(
    (await server.send("POST", `${V1}/query/aql`, { body: population, headers: one })).json.rows,
    [[1]],
  );
});

test("the committer is the caller, unless the request names another committer", async () => {
  const made = await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, {
    body: JSON.stringify(composition),
    headers: bearer({ roles: ["write"], name: "Ann Example" }),
  });
  assert.equal(made.status, 201, made.text);
  const uid = made.headers.get("etag").replaceAll('"', "");
  const version = await get(
    `${ITS}/ehr/${ehrId}/versioned_composition/${uid.split("::")[0]}/version/${uid}`,
    as("read"),
  );
  const { committer } = version.json.commit_audit;
  assert.equal(committer.name, "Ann Example");
  assert.equal(committer.external_ref.id.value, "ann");
  assert.equal(committer.external_ref.namespace, issuer.name);
});

test("SMART scopes: one EHR, one template, 404 for the rest", async () => {
  const template = composition.archetype_details.template_id.value;
  const scope = `openid patient/composition-${encodeURIComponent(template)}.cru patient/aql-*.rs`;
  const app = bearer({ scope, ehrId });
  assert.equal(
    (
      await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, {
        body: JSON.stringify(composition),
        headers: app,
      })
    ).status,
    201,
  );
  assert.equal(
    (
      await server.send("POST", `${ITS}/ehr/${OTHER}/composition`, {
        body: JSON.stringify(composition),
        headers: app,
      })
    ).status,
    404,
  );
  assert.equal(
    (await get(`${ITS}/ehr/${OTHER}/ehr_status`, app)).status,
    403,
    "the scope is not about EHR_STATUS at all",
  );
  const strange = data.compositions.find(
    (entry) => entry.composition.archetype_details.template_id.value !== template,
  ).composition;
  assert.equal(
    (
      await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, {
        body: JSON.stringify(strange),
        headers: app,
      })
    ).status,
    403,
  );
  const q = "SELECT e/ehr_id/value AS id FROM EHR e";
  const rows = await server.send("POST", `${V1}/query/aql`, {
    body: JSON.stringify({ q }),
    headers: app,
  });
  assert.deepEqual(rows.json.rows, [[ehrId]]);
  const escaping = await server.send("POST", `${V1}/query/aql`, {
    body: JSON.stringify({ q: `${q} WHERE e/ehr_id/value = '${OTHER}'` }),
    headers: app,
  });
  assert.deepEqual(escaping.json.rows, []);
  assert.equal(
    (
      await server.send("POST", `${V1}/query/aql`, {
        body: JSON.stringify({ q }),
        headers: { ...app, "openehr-ehr-id": OTHER },
      })
    ).status,
    404,
  );
  const configuration = await get("/.well-known/smart-configuration");
  assert.equal(configuration.json.token_endpoint, "https://id.example/token");
  assert.ok(configuration.json.services["org.openehr.rest"].baseUrl.endsWith(ITS));
});

test("every access is in the access log, also a refused one, and auditors can read the log", async () => {
  await get(`${V1}/ehr/${OTHER}`, { ...as("read"), "x-request-id": "trace-7" });
  await get(`${V1}/ehr/${OTHER}`);
  const answer = await get(`${V1}/admin/access-log?ehr_id=${OTHER}&fetch=1000`, as("audit"));
  assert.equal(answer.status, 200, answer.text);
  const seen = answer.json.entries.find((entry) => entry.request_id === "trace-7");
  assert.deepEqual(
    [seen.who, seen.issuer, seen.operation, seen.status],
    ["ann", issuer.name, "GET ehr/{ehr_id}", 200],
  );
  const everything = await get(`${V1}/admin/access-log?fetch=1000`, as("audit"));
  const strangers = everything.json.entries.filter(
    (entry) => entry.status === 401 && entry.who === "" && entry.operation === "GET ehr/{ehr_id}",
  );
  assert.ok(
    strangers.reduce((sum, entry) => sum + entry.requests, 0) > 20,
    "requests of strangers are counted",
  );
  const first = await get(`${V1}/admin/access-log?fetch=2`, as("audit"));
  const second = await get(`${V1}/admin/access-log?fetch=2&after=${first.json.next}`, as("audit"));
  assert.equal(first.json.entries.length, 2);
  assert.ok(second.json.entries[0].number > first.json.entries[1].number);
  assert.equal(
    (await get(`${V1}/admin/access-log`, as("read", "write", "define", "admin"))).status,
    403,
  );
  const writes = (
    await get(`${V1}/admin/access-log?ehr_id=${ehrId}&fetch=1000`, as("audit"))
  ).json.entries.filter((entry) => entry.operation === "POST ehr/{ehr_id}/composition");
  assert.ok(writes.some((entry) => entry.status === 201 && entry.object.endsWith("::1")));
});

test("answers have a request id, are not cached, and logs contain no content", async () => {
  const answer = await get(`${V1}/ehr/${ehrId}`, { ...as("read"), origin: "https://page.example" });
  assert.match(answer.headers.get("x-request-id"), /^[0-9a-f-]{36}$/);
  assert.equal(answer.headers.get("cache-control"), "no-store");
  assert.match(answer.headers.get("access-control-expose-headers"), /X-Request-Id/);
  const odd = await get(`${V1}/ehr/${ehrId}`, { ...as("read"), "x-request-id": 'a b"<script>' });
  assert.match(odd.headers.get("x-request-id"), /^[0-9a-f-]{36}$/);
  await get(`${V1}/ehr?subject_id=Zebulon&subject_namespace=n`, as("read"));
  await get(`${V1}/ehr/Zebulon`, as("read"));
  await new Promise((resolve) => setTimeout(resolve, 300));
  await server.says(/"level".*GET ehr\/\{ehr_id\}/);
  const lines = server.log
    .split("\n")
    .map((line) => /\{"(?:timestamp|level)".*\}/.exec(line)?.[0])
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  assert.ok(
    lines.some(
      (line) => line.operation === "GET ehr/{ehr_id}" && line.status === 200 && line.request_id,
    ),
    server.log.slice(0, 2000),
  );
  assert.ok(!JSON.stringify(lines).includes("Zebulon"), "a path or query string is in the log");
});

test("limits are variables", async () => {
  const answer = await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, {
    body: `{"x":"${"x".repeat(200_000)}"}`,
    headers: as("write"),
  });
  assert.equal(answer.status, 413);
});

/** When the worker requested the keys of the issuer last. It does so once in ten seconds. */
let requestedKeys;

test("an unknown key causes one request for the keys of the issuer", async () => {
  const asked = issuer.asked;
  for (let i = 0; i < 5; i += 1)
    assert.equal(
      (await get(`${V1}/ehr/${ehrId}`, bearer({ roles: ["read"] }, { key: later, kid: "unknown" })))
        .status,
      401,
    );
  assert.ok(issuer.asked <= asked + 1, `asked ${issuer.asked - asked} times`);
  requestedKeys = performance.now();
});

test("basic authentication accepts the users of the deployment only", async () => {
  const salt = randomBytes(16);
  const hash = pbkdf2Sync("correct horse", salt, 10_000, 32, "sha256");
  const USERS = `dev:10000:${base64url(salt)}:${base64url(hash)}:read,audit`;
  const basic = await start(freshState("basic"), { AUTH: "basic", USERS });
  try {
    const ask = (path, credentials) =>
      basic.send("GET", path, {
        headers: credentials
          ? { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` }
          : {},
      });
    assert.equal((await ask(`${V1}/ehr/${ehrId}`, "dev:correct horse")).status, 404);
    for (const wrong of [undefined, "dev:wrong", "other:correct horse", "dev:", "dev"]) {
      const answer = await ask(`${V1}/ehr/${ehrId}`, wrong);
      assert.equal(answer.status, 401, wrong);
      assert.match(answer.headers.get("www-authenticate"), /^Basic realm="aqlite"/);
    }
    assert.equal((await ask(`${V1}/admin/access-log`, "dev:correct horse")).status, 200);
  } finally {
    await basic.stop();
  }
});

// The program ends with an error instead.
testOfWorker("a deployment with wrong settings refuses every request", async () => {
  const state = freshState("closed");
  for (const vars of [
    { AUTH: "jwt", JWT_ISSUER: "x" },
    { AUTH: "none,jwt" },
    { AUTH: "basic", USERS: "admin:admin" },
  ]) {
    const closed = await start(state, vars);
    try {
      assert.equal(
        (await closed.send("GET", `${V1}/definition/query`)).status,
        401,
        JSON.stringify(vars),
      );
      assert.equal((await closed.send("GET", "/health")).status, 200);
      await closed.says(/the service stays closed/);
    } finally {
      await closed.stop();
    }
  }
});

// The last test, because the pause of ten seconds passes during the tests before it.
test("a new key of the issuer is accepted, and a withdrawn key is refused", async () => {
  issuer.keys.delete("ec");
  issuer.keys.set("later", later);
  const wait = requestedKeys + 11_000 - performance.now();
  await new Promise((resolve) => setTimeout(resolve, wait));
  assert.equal(
    (await get(`${V1}/ehr/${ehrId}`, bearer({ roles: ["read"] }, { key: later, kid: "later" })))
      .status,
    200,
  );
  assert.equal(
    (await get(`${V1}/ehr/${ehrId}`, bearer({ roles: ["read"] }, { key: ec, kid: "ec" }))).status,
    401,
  );
});
