// The files of a deployment: `wrangler deploy --dry-run`, and the settings of wrangler.toml that
// docs/deploy.md promises.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  experimental_patchConfig as patchConfig,
  experimental_readRawConfig as readRawConfig,
} from "wrangler";
import { Issuer } from "./issuer.mjs";
import { V1, freshState, root, startServed, startWith } from "./server.mjs";

const config = readFileSync(join(root, "wrangler.toml"), "utf8");

test("wrangler accepts the deployment without a warning", () => {
  const args = ["deploy", "--dry-run", "--outdir", join(root, "target/e2e/deploy")];
  const env = { ...process.env, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false" };
  const run = spawnSync(join(root, "node_modules/.bin/wrangler"), args, {
    cwd: root,
    encoding: "utf8",
    env,
  });
  const told = run.stdout + run.stderr;
  assert.equal(run.status, 0, told);
  assert.doesNotMatch(told, /WARNING|ERROR|✘|▲/, told);
  for (const binding of ["env.BLOBS", "env.DB", "env.ASSETS", "env.SYSTEM_ID"])
    assert.ok(told.includes(binding), `${binding}:\n${told}`);
  assert.ok(!told.includes("env.AUTH"), "AUTH has no default");
});

test("a first deployment can create its bindings and write their ids into the configuration", () => {
  const copy = join(root, "target/e2e/provisioned.toml");
  mkdirSync(join(root, "target/e2e"), { recursive: true });
  copyFileSync(join(root, "wrangler.toml"), copy);
  const bindings = ({ rawConfig }) => [...rawConfig.d1_databases, ...rawConfig.kv_namespaces];
  const ids = ({ database_id, id }) => database_id ?? id;
  // wrangler creates only bindings without an id.
  assert.deepEqual(bindings(readRawConfig({ config: copy })).map(ids), [
    undefined,
    undefined,
    undefined,
  ]);
  // wrangler does not write ids into a file with comments. Later commands would not find the databases.
  const created = [{ database_id: "one" }, { database_id: "two" }];
  patchConfig(copy, { d1_databases: created, kv_namespaces: [{ id: "three" }] }, false);
  const written = bindings(readRawConfig({ config: copy }));
  assert.deepEqual(written.map(ids), ["one", "two", "three"]);
  assert.deepEqual(
    written.map((binding) => binding.migrations_dir),
    ["migrations", "migrations-log", undefined],
  );
});

/** Runs the smoke test against a deployment. Returns its exit status and output. */
function smoke(port, token) {
  const args = [join(root, "xtask/smoke.mjs"), "--base", `http://127.0.0.1:${port}`];
  const env = { ...process.env, ...(token && { AQLITE_TOKEN: token }) };
  const child = spawn(process.execPath, args, { env });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (text += bytes));
  return new Promise((resolve) => child.on("close", (status) => resolve({ status, text })));
}

test("the smoke test passes with a token and reports an open deployment", async () => {
  const issuer = await Issuer.start();
  const state = freshState("smoke");
  const closed = await startServed(state, { ...issuer.variables, AUTH: "jwt" });
  try {
    const { authorization } = issuer.as("read", "write", "define", "query");
    const passed = await smoke(closed.port, authorization.replace("Bearer ", ""));
    assert.equal(passed.status, 0, passed.text);
    assert.match(passed.text, /the deployment works/);
    const without = await smoke(closed.port);
    assert.equal(without.status, 1, without.text);
    assert.match(without.text, /✗ a template is stored/);
  } finally {
    await closed.stop();
    issuer.stop();
  }
  const open = await startServed(state, { AUTH: "none" });
  try {
    const found = await smoke(open.port, "any");
    assert.match(found.text, /✗ a request without a token is refused/);
    assert.equal(found.status, 1);
  } finally {
    await open.stop();
  }
});

test("observability and the scheduled event are on", () => {
  assert.match(config, /\[observability\]\nenabled = true/);
  assert.match(config, /crons = \["[^"]+"\]/);
});

test("a caller over the bound rate limit is answered 429 with Retry-After, and others are served", async () => {
  const limit =
    '\n[[ratelimits]]\nname = "RATE_LIMIT"\nnamespace_id = "1001"\nsimple = { limit = 5, period = 60 }\n';
  const server = await startWith("limited", (text) => text + limit, { AUTH: "none" });
  try {
    const from = (address) =>
      server.send("GET", `${V1}/definition/query`, { headers: { "cf-connecting-ip": address } });
    const answers = [];
    for (let i = 0; i < 12; i += 1) answers.push(await from("192.0.2.1"));
    const statuses = answers.map((answer) => answer.status);
    assert.ok(statuses.includes(200) && statuses.includes(429), String(statuses));
    const refused = answers.find((answer) => answer.status === 429);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assert.deepEqual([refused.json.code, refused.json.error], [429, "Too Many Requests"]);
    assert.match(refused.headers.get("x-request-id"), /^[0-9a-f-]{36}$/);
  } finally {
    await server.stop();
  }
});
