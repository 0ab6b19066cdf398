// Tests a deployment from outside, as its first client: `cargo xtask smoke` runs it. It creates one EHR with a synthetic composition, and
// deletes the composition again. The EHR remains, because only an administrator can remove it.
//
//   node xtask/smoke.mjs --base https://aqlite.example.workers.dev [--no-page]
//
// AQLITE_TOKEN is sent as bearer token. Without it the deployment must be open (`AUTH=none`); with it, it must refuse requests without it.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values: given } = parseArgs({
  options: { base: { type: "string" }, "no-page": { type: "boolean" } },
});
if (!given.base) throw new Error("`--base` is missing: the address before /v1");
const base = given.base.replace(/\/$/, "");
const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const token = process.env.AQLITE_TOKEN;
const V1 = "/v1";
const TEMPLATE = "sample.vital_signs.v1";

/** Sends a request. `strange` leaves out the token. */
async function send(method, path, { body, type = "application/json", headers = {}, strange } = {}) {
  const answer = await fetch(base + path, {
    method,
    headers: {
      ...(token && !strange ? { authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { "content-type": type }),
      ...headers,
    },
    body,
    redirect: "manual",
  });
  const text = await answer.text();
  const isJson = /[/+]json\b/.test(answer.headers.get("content-type") ?? "");
  const json = isJson && text !== "" ? JSON.parse(text) : undefined;
  return { status: answer.status, headers: answer.headers, text, json };
}

/** Sends a request whose answer must have one of these statuses. */
async function expect(statuses, method, path, more) {
  const answer = await send(method, path, more);
  const said = `${method} ${path} was answered with ${answer.status}, expected ${statuses.join(" or ")}: ${answer.text.slice(0, 400)}`;
  assert.ok(statuses.includes(answer.status), said);
  return answer;
}

/** Does one step of the test, and prints its name and duration. */
async function step(name, work) {
  const started = performance.now();
  try {
    const result = await work();
    console.log(`✓ ${name} (${Math.round(performance.now() - started)} ms)`);
    return result;
  } catch (error) {
    console.log(`✗ ${name}`);
    throw error;
  }
}

const etag = (answer) => answer.headers.get("etag")?.replace(/^W\//, "").replaceAll('"', "");

async function round() {
  await step("the service is up", async () => {
    const { json } = await expect([200], "GET", "/health", { strange: true });
    assert.equal(json?.status, "UP");
  });
  await step("the manifest names the solution", async () => {
    const { json } = await expect([200], "OPTIONS", `${V1}/`, { strange: true });
    assert.equal(json?.solution, "aqlite");
  });
  if (token)
    await step("a request without a token is refused", () =>
      expect([401], "GET", `${V1}/definition/query`, { strange: true }),
    );
  await step("a template is stored", async () => {
    const body = await readFile(join(root, "www/samples/vital_signs.opt"), "utf8");
    const path = `${V1}/definition/template/adl1.4`;
    await expect([200, 201, 204, 409], "POST", path, { body, type: "application/xml" });
  });
  const ehr = await step("an EHR is created", async () =>
    etag(await expect([201], "POST", `${V1}/ehr`)),
  );
  const documents = `${V1}/ehr/${ehr}/composition`;
  const example = await step("the template has an example", async () => {
    const path = `${V1}/definition/template/adl1.4/${TEMPLATE}/example`;
    return (await expect([200], "GET", path, { headers: { accept: "application/json" } })).text;
  });
  const version = await step("a composition is committed", async () =>
    etag(await expect([201], "POST", documents, { body: example })),
  );
  await step("the composition comes back", async () => {
    const { json } = await expect([200], "GET", `${documents}/${version}`);
    assert.equal(json?.uid?.value, version);
  });
  await step("a query finds it", async () => {
    const q = "SELECT c/uid/value FROM COMPOSITION c";
    // A query that names no EHR needs the role `population`.
    const body = JSON.stringify({ q, ehr_id: ehr });
    const { json } = await expect([200], "POST", `${V1}/query/aql`, { body });
    assert.deepEqual(json?.rows, [[version]]);
  });
  await step("an update of a version that is not the latest is rejected", async () => {
    const path = `${documents}/${version.split("::")[0]}`;
    const stale = version.replace(/::1$/, "::9");
    await expect([412], "PUT", path, { body: example, headers: { "if-match": stale } });
  });
  await step("the composition is deleted", () =>
    expect([200, 204], "DELETE", `${documents}/${version}`),
  );
  if (!given["no-page"])
    await step("the page and its description of the interface are served", async () => {
      const page = await expect([200], "GET", "/", { strange: true });
      assert.match(page.text, /<title>/);
      const { json } = await expect([200], "GET", "/openapi.json", { strange: true });
      assert.ok(json?.openapi);
    });
  console.log(`the deployment works; the EHR ${ehr} of this test remains, without a document`);
}

try {
  await round();
} catch (error) {
  console.error(`error: ${error.cause?.message ?? error.message}`);
  process.exitCode = 1;
}
