// What would be published: `wrangler deploy --dry-run`, and what the configuration promises.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { V1, root, startWith } from "./server.mjs";

const config = readFileSync(join(root, "wrangler.toml"), "utf8");

test("a deployment would be accepted as it is, without a warning", () => {
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

test("observability and the scheduled event are on", () => {
  assert.match(config, /\[observability\]\nenabled = true/);
  assert.match(config, /crons = \["[^"]+"\]/);
});

test("a rate limit is one binding: over it 429 with Retry-After, and the others are served", async () => {
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
