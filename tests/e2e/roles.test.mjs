// Every route and every role in workerd, generated from the OpenAPI document that the worker serves.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Issuer } from "./issuer.mjs";
import { ITS, V1, freshState, start } from "./server.mjs";

const OWN = "00000000-0000-4000-8000-000000000001";
const OTHER = "00000000-0000-4000-8000-000000000002";
const TOGETHER = 16;
let issuer;
let server;
let routes;

/** The operations of the OpenAPI document: method, pattern, roles. */
function operations(document) {
  const all = [];
  for (const [pattern, methods] of Object.entries(document.paths)) {
    for (const [method, said] of Object.entries(methods)) {
      if (said["x-roles"])
        all.push({ method: method.toUpperCase(), pattern, roles: said["x-roles"] });
    }
  }
  return all;
}

/** Returns a path of a pattern for one EHR. */
function filled(pattern, ehr) {
  // Without a subject, `GET ehr` lists the population, which is another permission.
  const asked = pattern.endsWith("/ehr") ? "subject_id=x&subject_namespace=y" : `ehr_id=${ehr}`;
  return `${pattern
    .replace("{ehr_id}", ehr)
    .replace("{version}", "1.0.0")
    .replace(/\{[^}]*\}/g, "x")}?${asked}`;
}

/** Sends many requests, some at a time. Passes each answer to `check`. */
async function ask(questions, check) {
  for (let at = 0; at < questions.length; at += TOGETHER) {
    await Promise.all(
      questions.slice(at, at + TOGETHER).map(async (question) => {
        const { method, path, headers } = question;
        const body = ["POST", "PUT"].includes(method) ? "{}" : undefined;
        check(await question.of.send(method, path, { headers, body }), question);
      }),
    );
  }
}

before(async () => {
  issuer = await Issuer.start();
  server = await start(freshState("roles"), { ...issuer.variables, ADMIN: "true" });
  const document = await server.send("GET", "/openapi.json");
  assert.equal(document.status, 200, "the document is served");
  routes = operations(document.json);
  assert.ok(routes.length > 100, `${routes.length} operations`);
  const steward = issuer.as("read", "write", "define");
  for (const id of [OWN, OTHER])
    assert.equal((await server.send("PUT", `${V1}/ehr/${id}`, { headers: steward })).status, 201);
  const q = JSON.stringify({ q: "SELECT e/ehr_id/value AS id FROM EHR e" });
  assert.equal(
    (await server.send("PUT", `${V1}/query/x/1.0.0`, { headers: steward, body: q })).status,
    200,
  );
});
after(async () => {
  await server?.stop();
  issuer?.stop();
});

const everywhere = (make) =>
  routes.flatMap((route) => [V1, ITS].flatMap((base) => make(route, base)));

test("no route answers without credentials: 401 with WWW-Authenticate", async () => {
  const questions = everywhere(({ method, pattern }, base) => [
    { of: server, method, path: base + filled(pattern, OWN), headers: {} },
  ]);
  await ask(questions, (answer, { method, path }) => {
    assert.equal(answer.status, 401, `${method} ${path}: ${answer.status} ${answer.text}`);
    assert.match(
      answer.headers.get("www-authenticate") ?? "",
      /^Bearer realm="aqlite"/,
      `${method} ${path}`,
    );
  });
});

test("no route answers a role that it does not name: 403", async () => {
  const known = [...new Set(routes.flatMap(({ roles }) => roles))];
  assert.deepEqual(known.sort(), [
    "admin",
    "audit",
    "define",
    "population",
    "query",
    "read",
    "write",
  ]);
  const questions = everywhere(({ method, pattern, roles }, base) =>
    [...known, "stranger"]
      .filter((role) => !roles.includes(role))
      .map((role) => ({
        of: server,
        method,
        path: base + filled(pattern, OWN),
        headers: issuer.as(role),
        role,
        shows: method === "GET" && base === V1 && pattern === "/query/{name}/{version}",
      })),
  );
  assert.ok(questions.length > 1000, `${questions.length} questions`);
  await ask(questions, (answer, { method, path, role, shows }) => {
    // A role may permit to read the definition of a stored query, but not to execute the query.
    const detail = shows && answer.status === 200 && answer.json.rows === undefined;
    assert.ok(
      answer.status === 403 || detail,
      `${role}: ${method} ${path}: ${answer.status} ${answer.text}`,
    );
  });
});

test("every role that a route names is answered with neither 401 nor 403", async () => {
  const safe = routes.filter(
    ({ method, pattern }) =>
      method === "GET" && pattern !== "/query/aql" && !pattern.startsWith("/query/aql/"),
  );
  const questions = safe.flatMap(({ method, pattern, roles }) =>
    roles.map((role) => ({
      of: server,
      method,
      path: V1 + filled(pattern, OWN),
      headers: issuer.as(role),
      role,
    })),
  );
  await ask(questions, (answer, { method, path, role }) => {
    assert.ok(
      ![401, 403, 500].includes(answer.status),
      `${role}: ${method} ${path}: ${answer.status} ${answer.text}`,
    );
  });
});

test("an application with access to one patient reads nothing of another EHR", async () => {
  const scope = ["composition", "template", "aql", "guide", "party"]
    .map((what) => `patient/${what}-*.cruds`)
    .join(" ");
  const headers = issuer.bearer({ scope, ehrId: OWN });
  const inEhrs = everywhere(({ method, pattern }, base) =>
    pattern.includes("{ehr_id}")
      ? [{ of: server, method, path: base + filled(pattern, OTHER), headers }]
      : [],
  );
  assert.ok(inEhrs.length > 60, `${inEhrs.length} questions`);
  await ask(inEhrs, (answer, { method, path }) => {
    const expected = path.includes("/admin/") ? 403 : 404;
    assert.equal(answer.status, expected, `${method} ${path}: ${answer.status} ${answer.text}`);
  });
  const nowhere = await server.send("GET", `${V1}/ehr/00000000-0000-4000-8000-00000000ffff`, {
    headers,
  });
  const other = await server.send("GET", `${V1}/ehr/${OTHER}`, { headers });
  assert.equal(
    other.text,
    nowhere.text,
    "what may not be seen and what is not there are told apart",
  );
  const query = (q, more = {}) =>
    server.send("POST", `${V1}/query/aql`, {
      headers: { ...headers, ...more },
      body: JSON.stringify({ q }),
    });
  for (const q of [
    "SELECT e/ehr_id/value FROM EHR e",
    `SELECT e/ehr_id/value FROM EHR e WHERE e/ehr_id/value != '${OWN}' OR true = true`,
  ]) {
    const answer = await query(q);
    if (answer.status === 200)
      assert.ok(
        answer.json.rows.every(([id]) => id === OWN),
        `${q}: ${answer.text}`,
      );
    else assert.equal(answer.status, 400, answer.text);
  }
  assert.deepEqual((await query("SELECT COUNT(e/ehr_id/value) FROM EHR e")).json.rows, [[1]]);
  assert.deepEqual(
    (await query("SELECT s/uid/value FROM EHR e CONTAINS EHR_STATUS s")).json.rows.length,
    1,
  );
  assert.equal((await query("SELECT e FROM EHR e", { "openehr-ehr-id": OTHER })).status, 404);
  const explained = await server.send("POST", `${V1}/query/aql/explain`, {
    headers,
    body: JSON.stringify({ q: "SELECT e/ehr_id/value FROM EHR e" }),
  });
  assert.deepEqual([explained.status, explained.json.run.rows], [200, 1], explained.text);
  const line = (id) => `${JSON.stringify({ ehr_id: id, composition: { _type: "COMPOSITION" } })}\n`;
  const bulk = await server.send("POST", `${V1}/ehr/bulk`, {
    headers,
    body: line(OTHER) + line("00000000-0000-4000-8000-00000000ffff"),
    type: "application/x-ndjson",
  });
  const [there, away] = bulk.text
    .trim()
    .split("\n")
    .map((answer) => JSON.parse(answer));
  assert.deepEqual([there.status, there.message], [404, away.message]);
  assert.equal((await server.send("POST", `${V1}/ehr`, { headers })).status, 403);
  assert.equal((await server.send("GET", `${V1}/demographic/tags`, { headers })).status, 403);
});

test("a worker without AUTH refuses every route, and answers OPTIONS and health", async () => {
  const closed = await start(freshState("roles-closed"), { ADMIN: "true" });
  try {
    const questions = everywhere(({ method, pattern }, base) => [
      { of: closed, method, path: base + filled(pattern, OWN), headers: {} },
    ]);
    await ask(questions, (answer, { method, path }) =>
      assert.equal(answer.status, 401, `${method} ${path}: ${answer.status}`),
    );
    for (const base of [V1, ITS]) {
      assert.equal((await closed.send("OPTIONS", `${base}/`)).json.solution, "aqlite");
      assert.equal((await closed.send("OPTIONS", `${base}/ehr`)).status, 200);
    }
    for (const path of ["/health", "/status", "/rest/status"])
      assert.equal((await closed.send("GET", path)).json.status, "UP", path);
    assert.match((await closed.send("GET", `${V1}/ehr/${OWN}`)).text, /AUTH/);
  } finally {
    await closed.stop();
  }
});
