// The files of a deployment: `wrangler deploy --dry-run`, and the settings of wrangler.toml that
// docs/deploy.md promises.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  experimental_patchConfig as patchConfig,
  experimental_readRawConfig as readRawConfig,
} from "wrangler";
import { Issuer } from "./issuer.mjs";
import { V1, freshState, root, startServed, startWith } from "./server.mjs";

const config = readFileSync(join(root, "wrangler.toml"), "utf8");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Runs `wrangler deploy --dry-run`, with more arguments for another configuration. */
function dryRun(...more) {
  const args = ["deploy", "--dry-run", "--outdir", join(root, "target/e2e/deploy"), ...more];
  const env = { ...process.env, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false" };
  return spawnSync(join(root, "node_modules/.bin/wrangler"), args, {
    cwd: root,
    encoding: "utf8",
    env,
  });
}

test("wrangler accepts the deployment without a warning", () => {
  const run = dryRun();
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

test("the bucket that the page on deployment adds is bound by the next deployment", (context) => {
  const page = readFileSync(join(root, "docs/deploy.md"), "utf8");
  const [bucket] = /^\[\[r2_buckets\]\]\n(?:\w+ = ".*"\n)+/m.exec(page);
  // Paths of a configuration are relative to its folder.
  const altered = join(root, "wrangler.bucket.toml");
  writeFileSync(altered, `${config}\n${bucket}`);
  context.after(() => rmSync(altered));
  const run = dryRun("--config", altered);
  assert.equal(run.status, 0, run.stdout + run.stderr);
  assert.match(run.stdout, /env\.SEGMENTS/);
});

/**
 * Runs a script of package.json with programs that only note their calls. Returns these calls.
 * `programs` has the text of each program.
 */
function runScript(name, programs) {
  const folder = mkdtempSync(join(tmpdir(), "aqlite-script-"));
  const notes = join(folder, "calls");
  writeFileSync(notes, "");
  for (const [program, text] of Object.entries(programs)) {
    const path = join(folder, program);
    writeFileSync(path, `#!/bin/sh\n${text.replaceAll("NOTES", notes)}\n`);
    chmodSync(path, 0o755);
  }
  const run = spawnSync("/bin/sh", ["-c", manifest.scripts[name]], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: `${folder}:/usr/bin:/bin`, HOME: folder },
  });
  return { status: run.status, calls: readFileSync(notes, "utf8").trim().split("\n") };
}

test("the scripts that Cloudflare runs build, deploy and then migrate every database", () => {
  const { d1_databases: databases } = readRawConfig({
    config: join(root, "wrangler.toml"),
  }).rawConfig;
  const migrations = databases.map(({ binding }) => `d1 migrations apply ${binding} --remote`);
  const note = 'echo "$@" >> NOTES';
  assert.deepEqual(runScript("migrate", { wrangler: note }).calls, migrations);
  const npm = 'echo "npm $@" >> NOTES';
  assert.deepEqual(runScript("deploy", { wrangler: note, npm }).calls, [
    "deploy",
    "npm run migrate",
  ]);
  const refused = runScript("deploy", { wrangler: `${note}; exit 3`, npm });
  assert.deepEqual(refused, { status: 3, calls: ["deploy"] });
  assert.deepEqual(runScript("build", { cargo: note }).calls, ["xtask build"]);
});

test("the build installs Rust where it is absent, as in the image of Cloudflare", (context) => {
  if (
    spawnSync("/bin/sh", ["-c", "command -v cargo"], { env: { PATH: "/usr/bin:/bin" } }).status ===
    0
  )
    return context.skip("cargo is a program of the system");
  // The installer of rustup puts cargo into the home folder.
  const cargo = "printf '#!/bin/sh\\necho installed \"$@\" >> NOTES\\n' > $HOME/.cargo/bin/cargo";
  const installer = `mkdir -p $HOME/.cargo/bin; ${cargo}; chmod +x $HOME/.cargo/bin/cargo`;
  const curl = `cat <<'END'\n${installer}\nEND`;
  assert.deepEqual(runScript("build", { curl }).calls, ["installed xtask build"]);
});

test("the button deploys this repository, and each binding that it asks for has a description", () => {
  const [, repository] = /^repository = "(.+)"$/m.exec(
    readFileSync(join(root, "Cargo.toml"), "utf8"),
  );
  const button = `\n[deploy-button]: https://deploy.workers.cloudflare.com/?url=${repository}\n`;
  for (const page of ["README.md", "docs/deploy.md"])
    assert.ok(readFileSync(join(root, page), "utf8").includes(button), page);
  const { rawConfig } = readRawConfig({ config: join(root, "wrangler.toml") });
  const bindings = [...rawConfig.d1_databases, ...rawConfig.kv_namespaces];
  assert.deepEqual(
    Object.keys(manifest.cloudflare.bindings).sort(),
    [...bindings.map(({ binding }) => binding), ...Object.keys(rawConfig.vars)].sort(),
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
