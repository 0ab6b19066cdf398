// Queries that call a FHIR terminology server, in workerd. The test has a small server with the FHIR
// operations.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { gzipBomb } from "./attack/bombs.mjs";
import { after, before, test } from "node:test";
import { ITS, V1, freshState, instances, start } from "./server.mjs";

const FHIR = { "content-type": "application/fhir+json" };
/** Sends 65,536 bytes at a time, until the client breaks off. */
const endless = (response) => {
  const piece = " ".repeat(65_536);
  const more = () => {
    while (!response.destroyed && response.write(piece));
  };
  response.writeHead(200, FHIR).on("drain", more);
  more();
};
const expansion = (inner) => `{"resourceType":"ValueSet","expansion":{${inner}}}`;
const body =
  (text, headers = FHIR) =>
  (response) =>
    response.writeHead(200, headers).end(text);
/** Answers of a server that lies: their function, and the status of the query. */
const LIES = {
  "a page for people": [body("<html>sign in</html>", { "content-type": "text/html" }), 502],
  "an answer without end": [endless, 502],
  "a compressed answer of 400 MB": [
    body(gzipBomb(400e6, 32), { ...FHIR, "content-encoding": "gzip" }),
    502,
  ],
  "five million open brackets": [body("[".repeat(5_000_000)), 502],
  "concepts within concepts": [
    body(expansion(`"contains":[${'{"contains":['.repeat(99_999)}${"]}".repeat(99_999)}]`)),
    502,
  ],
  "a number that is none": [body(expansion('"total":NaN,"contains":[{"code":NaN}]')), 502],
  "numbers and lists for codes": [
    body(expansion('"contains":[{"code":1e999},{"code":[]},1]')),
    502,
  ],
  "a code twice": [body(expansion('"contains":[{"code":"x","code":"y"}]')), 502],
  "bytes that are no text": [
    body(Buffer.from(expansion('"contains":[{"code":"\xff"}]'), "latin1")),
    502,
  ],
  "a resource of another class": [body('{"resourceType":"Parameters"}'), 502],
  "pages without concepts": [body(expansion('"total":1000,"contains":[]')), 502],
  "pages of one code": [
    (response, query) => {
      const offset = query.get("offset") ?? 0;
      body(expansion(`"total":9999,"offset":${offset},"contains":[{"code":"c${offset}"}]`))(
        response,
      );
    },
    400,
  ],
  "a redirect to an address of the machine": [
    (response) => response.writeHead(307, { location: "http://169.254.169.254/" }).end(),
    502,
  ],
  "a connection that breaks": [
    (response) => {
      response.writeHead(200, { "content-length": 1_000 }).write("{");
      setTimeout(() => response.destroy(), 50);
    },
    502,
  ],
};

const ANIMALS = "http://example.org/fhir/ValueSet/animals";
const SNOMED = "http://snomed.info/sct";
/** The codes, each with its parent. */
const TREE = { 387961004: null, 388168008: 387961004, 448771007: 387961004, 125079008: 388168008 };
const asked = [];
let behaviour = "well";
let fhir;
let server;

const parameters = (...parameter) => ({ resourceType: "Parameters", parameter });
const isA = (code, ancestor) =>
  code === ancestor ||
  (TREE[code] !== undefined && TREE[code] !== null && isA(String(TREE[code]), ancestor));
const outcome = (text) => ({
  resourceType: "OperationOutcome",
  issue: [{ severity: "error", code: "not-found", details: { text } }],
});

/** Returns the answer of a FHIR R4 terminology server: status and resource. */
function answer(path, query) {
  switch (path) {
    case "/r4/ValueSet/$expand": {
      const url = query.get("url");
      const root = /fhir_vs=isa\/(\d+)$/.exec(url)?.[1];
      const all =
        url === ANIMALS
          ? Object.keys(TREE)
          : root
            ? Object.keys(TREE).filter((code) => isA(code, root))
            : undefined;
      if (all === undefined) return [404, outcome(`the value set ${url} is unknown`)];
      const offset = Number(query.get("offset") ?? 0);
      // The pages are smaller than requested: a FHIR server may reduce them.
      const contains = all
        .slice(offset, offset + Math.min(3, Number(query.get("count"))))
        .map((code) => ({ system: SNOMED, code, display: code }));
      return [
        200,
        {
          resourceType: "ValueSet",
          url,
          expansion: { timestamp: "2026-01-01T00:00:00Z", total: all.length, offset, contains },
        },
      ];
    }
    case "/r4/CodeSystem/$validate-code":
      return [
        200,
        parameters({
          name: "result",
          valueBoolean: query.get("url") === SNOMED && query.get("code") in TREE,
        }),
      ];
    case "/r4/CodeSystem/$subsumes": {
      const [a, b] = [query.get("codeA"), query.get("codeB")];
      const valueCode =
        a === b
          ? "equivalent"
          : isA(b, a)
            ? "subsumes"
            : isA(a, b)
              ? "subsumed-by"
              : "not-subsumed";
      return [200, parameters({ name: "outcome", valueCode })];
    }
    case "/r4/CodeSystem/$lookup":
      return [
        200,
        parameters(
          { name: "name", valueString: "SNOMED CT" },
          { name: "display", valueString: `animal ${query.get("code")}` },
        ),
      ];
    default:
      return [404, outcome(`${path} is not served`)];
  }
}

before(async () => {
  fhir = createServer((request, response) => {
    const url = new URL(request.url, "http://fhir");
    asked.push(request.url);
    if (behaviour === "silent") return;
    if (typeof behaviour === "function") {
      response.on("error", () => {});
      behaviour(response, url.searchParams);
      return;
    }
    if (behaviour === "redirecting" && url.pathname.startsWith("/r4/")) {
      response.writeHead(302, { location: `/internal${url.pathname}${url.search}` }).end();
      return;
    }
    const [status, resource] =
      behaviour === "broken"
        ? [503, outcome("overloaded")]
        : answer(url.pathname, url.searchParams);
    response.writeHead(status, { "content-type": "application/fhir+json" });
    response.end(JSON.stringify(resource));
  });
  await new Promise((resolve) => fhir.listen(0, "127.0.0.1", resolve));
  server = await start(freshState("terminology"), {
    AUTH: "none",
    TERMINOLOGY_URL: `http://127.0.0.1:${fhir.address().port}/r4/`,
  });
  assert.equal((await server.send("POST", `${ITS}/ehr`)).status, 201);
});
after(async () => {
  await server.stop();
  fhir.closeAllConnections();
  fhir.close();
});

/** Returns the first cell of a query over the only EHR. */
const ask = (q, base = V1) =>
  server.send("POST", `${base}/query/aql`, { body: JSON.stringify({ q }) });
const call = (operation, text) => `TERMINOLOGY('${operation}', 'hl7.org/fhir/4.0', '${text}')`;
const column = async (operation, text) => {
  const got = await ask(`SELECT ${call(operation, text)} AS a FROM EHR e`);
  assert.equal(got.status, 200, got.text);
  return got.json.rows[0][0];
};
/** Returns the number of EHRs whose system is among the codes: 1 if they include the probe, else 0. */
const member = async (set, probe) => {
  const got = await ask(
    `SELECT COUNT(*) FROM EHR e WHERE e/system_id/value matches {${set}, '${probe}'} AND NOT e/system_id/value matches {${set}}`,
  );
  assert.equal(got.status, 200, got.text);
  return got.json.rows[0][0];
};

test("terminology operations return booleans and texts", async () => {
  assert.equal(await column("validate", `system=${SNOMED}&code=388168008`), true);
  assert.equal(await column("validate", `system=${SNOMED}&code=1`), false);
  assert.equal(await column("subsumes", `system=${SNOMED}&codeA=387961004&codeB=125079008`), true);
  assert.equal(await column("subsumes", `system=${SNOMED}&codeA=125079008&codeB=387961004`), false);
  assert.equal(await column("lookup", `system=${SNOMED}&code=448771007`), "animal 448771007");
});

test("an expansion is read page by page, and only once", async () => {
  asked.length = 0;
  assert.equal(await member(call("expand", `url=${ANIMALS}`), "aqlite.local"), 1);
  const pages = asked.length;
  assert.equal(pages, 2, asked.join("\n"));
  // Each instance reads it once.
  for (let n = 0; n < 10; n += 1)
    assert.equal(await member(call("expand", `url=${ANIMALS}`), "aqlite.local"), 1);
  assert.ok(asked.length <= pages * instances, "later on the cache answers");
  const inBraces = await ask(
    "SELECT COUNT(*) FROM EHR e WHERE e/system_id/value matches {terminology://Snomed-CT/hierarchy?rootConceptId=388168008}",
  );
  assert.equal(inBraces.status, 200, inBraces.text);
  assert.match(decodeURIComponent(asked.at(-1)), /fhir_vs=isa\/388168008/);
});

test("a code system that the server does not know is an error of the query, with the server's words", async () => {
  const got = await ask(
    `SELECT e FROM EHR e WHERE e/ehr_id/value matches ${call("expand", "url=http://example.org/nothing")}`,
  );
  assert.equal(got.status, 400);
  assert.match(got.text, /AQL0502/);
  assert.match(got.text, /the value set http:\/\/example.org\/nothing is unknown/);
});

test("a failure of the terminology server is reported as its failure", async () => {
  behaviour = "broken";
  const broken = await ask(
    `SELECT e FROM EHR e WHERE ${call("validate", `system=${SNOMED}&code=2`)} = true`,
    ITS,
  );
  assert.equal(broken.status, 502, broken.text);
  assert.match(broken.text, /AQL0505.*answers 503|answers 503.*AQL0505/s);
  behaviour = "silent";
  const started = Date.now();
  const silent = await ask(
    `SELECT e FROM EHR e WHERE ${call("validate", `system=${SNOMED}&code=3`)} = true`,
  );
  assert.equal(silent.status, 504, silent.text);
  assert.match(silent.text, /AQL0506/);
  assert.ok(Date.now() - started < 30_000);
  behaviour = "well";
  assert.equal(await column("validate", `system=${SNOMED}&code=2`), false);
});

test("stored value sets take precedence over the server and survive a restart", async () => {
  const url = "http://example.org/fhir/ValueSet/here";
  const path = `${V1}/definition/valueset/${encodeURIComponent(url)}`;
  const set = {
    resourceType: "ValueSet",
    url,
    compose: { include: [{ system: "s", concept: [{ code: "aqlite.local" }] }] },
  };
  assert.equal((await server.send("PUT", path, { body: JSON.stringify(set) })).status, 201);
  const rows = async () =>
    (await ask(`SELECT COUNT(*) FROM EHR e WHERE e/system_id/value matches ${call("expand", url)}`))
      .json.rows[0][0];
  assert.equal(await rows(), 1);
  set.compose.include[0].concept[0].code = "elsewhere";
  assert.equal((await server.send("PUT", path, { body: JSON.stringify(set) })).status, 204);
  assert.equal(await rows(), 0);
  assert.equal(
    (await server.send("GET", path)).json.compose.include[0].concept[0].code,
    "elsewhere",
  );
  assert.equal((await server.send("DELETE", path)).status, 204);
  assert.equal((await server.send("GET", path)).status, 404);
});

test("a redirect to another address is not followed", async () => {
  behaviour = "redirecting";
  const before = asked.length;
  const lookup = await ask(
    `SELECT ${call("lookup", `system=${SNOMED}&code=redirected`)} AS a FROM EHR e`,
  );
  behaviour = "well";
  assert.equal(lookup.status, 502, lookup.text);
  assert.match(lookup.text, /answers 302/);
  assert.equal(asked.length, before + 1, String(asked.slice(before)));
});

for (const [lie, [answers, status]] of Object.entries(LIES))
  test(`lies: ${lie}`, async () => {
    const set = `http://example.org/fhir/ValueSet/${encodeURIComponent(lie)}`;
    const query = `SELECT COUNT(*) FROM EHR e WHERE e/system_id/value matches ${call("expand", `url=${set}`)}`;
    behaviour = answers;
    const got = await ask(query);
    assert.equal(got.status, status, got.text);
    assert.match(got.text, /AQL050[25]/);
    assert.ok(got.text.length < 5_000, "the error repeats the answer");
    // Pages of few codes are true answers, which may be cached.
    if (status === 400) return;
    behaviour = body(expansion('"contains":[{"code":"aqlite.local"}]'));
    const again = await ask(query);
    assert.equal(again.status, 200, `the lie was cached: ${again.text}`);
    behaviour = "well";
  });

test("requests that wait for a silent server do not delay other queries", async () => {
  behaviour = "silent";
  const waiting = Array.from({ length: 6 }, (_, code) =>
    ask(
      `SELECT e FROM EHR e WHERE ${call("validate", `system=${SNOMED}&code=silent${code}`)} = true`,
    ),
  );
  await new Promise((resolve) => setTimeout(resolve, 500));
  const started = Date.now();
  const got = await ask("SELECT COUNT(*) FROM EHR e");
  assert.equal(got.status, 200, got.text);
  assert.ok(Date.now() - started < 2_000, `the query took ${Date.now() - started} ms`);
  for (const { status, text } of await Promise.all(waiting))
    assert.match(String(status), /^(429|504)$/, text);
  behaviour = "well";
});
