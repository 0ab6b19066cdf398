// The worker in real workerd, for tests. A test can start the worker, send requests, stop the worker,
// and start it again on the same state. If AQLITE_PROGRAM names the program `aqlite`, `start` runs
// `aqlite serve` in its place, so the same tests hold the program to the behaviour of the worker.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const ITS = "/rest/openehr/v1";
export const V1 = "/v1";

/** The program that `start` runs in place of the worker, or `undefined`. */
export const program = process.env.AQLITE_PROGRAM;
/** The number of instances of the service, each with caches of its own. */
export const instances = program ? 3 : 1;
/** A test of KV, workerd or the configuration of wrangler. It is skipped for the program. */
export const testOfWorker = program ? test.skip : test;
/** A test of the HTTP server of the program. It is skipped for the worker, which has workerd's. */
export const testOfProgram = program ? test : test.skip;

/** The number of attempts to reach a starting server, ten each second. A busy machine needs many. */
const ATTEMPTS = 1200;
/** The reason why a server did not start. Later starts of the same test file fail at once with it. */
let startFailure;

const wrangler = join(root, "node_modules/.bin/wrangler");
const quiet = {
  ...process.env,
  CI: "1",
  NO_COLOR: "1",
  WRANGLER_SEND_METRICS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
};

/**
 * Returns an environment for wrangler with temporary files and logs in the folder of the state. They are
 * removed with this folder, even if wrangler is killed.
 */
function housed(state) {
  const [TMPDIR, WRANGLER_LOG_PATH] = ["tmp", "log"].map((name) => join(state, name));
  mkdirSync(TMPDIR, { recursive: true });
  return { ...quiet, TMPDIR, WRANGLER_LOG_PATH };
}

/** Applies the migrations to the databases of a state folder, by the command of a deployment. */
function migrate(state) {
  for (const database of ["DB", "LOG"]) {
    const args = ["d1", "migrations", "apply", database, "--local", "--persist-to", state];
    const applied = spawnSync(wrangler, args, { cwd: root, env: housed(state), encoding: "utf8" });
    if (applied.status !== 0)
      throw new Error(`migrations failed:\n${applied.stdout}\n${applied.stderr}`);
  }
}

/** The digest of everything that decides how databases look after the migrations. */
function digestOfMigrations() {
  const digest = createHash("sha256");
  const folders = ["migrations", "migrations-log"];
  const scripts = folders.flatMap((folder) =>
    readdirSync(join(root, folder))
      .sort()
      .map((name) => join(folder, name)),
  );
  for (const name of [...scripts, "wrangler.toml", "package-lock.json"])
    digest.update(`${name}\0`).update(readFileSync(join(root, name)));
  return digest.digest("hex").slice(0, 16);
}

/**
 * The folder of databases with the migrations applied, which every state folder is a copy of. It is
 * made once for each text of the migrations, because wrangler takes seconds for them.
 */
function migrated() {
  const folder = join(root, "target/e2e-migrated", digestOfMigrations());
  if (existsSync(folder)) return folder;
  const own = `${folder}-${process.pid}`;
  migrate(own);
  try {
    renameSync(own, folder);
  } catch (error) {
    // A test file that runs at the same time was faster.
    if (!existsSync(folder)) throw error;
    rmSync(own, { recursive: true });
  }
  return folder;
}

/** An empty state folder under target/. That of the worker has the migrations applied. */
export function freshState(name) {
  const state = join(root, "target", program ? "e2e-program" : "e2e", name);
  rmSync(state, { recursive: true, force: true });
  mkdirSync(state, { recursive: true });
  if (!program) cpSync(join(migrated(), "v3"), join(state, "v3"), { recursive: true });
  return state;
}

/** Executes a statement in a database directly. The server must not run meanwhile. */
export async function execute(state, sql, database = "DB") {
  if (program)
    return executeInFile(join(state, database === "DB" ? "a.db" : "a.db.access-log"), sql);
  const { Miniflare, NoOpLog, options } = await describedWorker();
  const runtime = new Miniflare({
    modules: true,
    script: "export default {}",
    d1Databases: options.d1Databases,
    d1Persist: join(state, "v3/d1"),
    log: new NoOpLog(),
  });
  try {
    await (await runtime.getD1Database(database)).prepare(sql).run();
  } finally {
    await runtime.dispose();
  }
}

/** Executes a statement in a file of SQLite, by its shell. */
function executeInFile(file, sql) {
  const done = spawnSync("sqlite3", ["-bail", file, sql], { encoding: "utf8" });
  if (done.status !== 0) throw done.error ?? new Error(done.stderr);
}

/** A client of a running worker, and the lines that the worker has written. */
class Client {
  port = undefined;
  log = "";

  /** Sends a request, and returns status, headers, text and (if it is JSON) the parsed body. */
  async send(method, path, { headers = {}, body, type = "application/json" } = {}) {
    // Each request has its own connection. workerd closes an idle connection, and loses a request that
    // arrives at that moment.
    const all = {
      connection: "close",
      ...(body === undefined ? {} : { "content-type": type }),
      ...headers,
    };
    const answer = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      headers: all,
      body,
      redirect: "manual",
    });
    const text = await answer.text();
    const isJson = /[/+]json\b/.test(answer.headers.get("content-type") ?? "");
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      json: isJson && text !== "" ? JSON.parse(text) : undefined,
    };
  }

  /** Runs ad-hoc AQL, and returns the rows. */
  async rows(q, base = ITS) {
    const answer = await this.send("POST", `${base}/query/aql`, { body: JSON.stringify({ q }) });
    if (answer.status !== 200) throw new Error(`${q}: ${answer.status} ${answer.text}`);
    return answer.json.rows;
  }

  /** Waits until the log of the server matches. Lines of the log arrive after the answers. */
  async says(pattern) {
    for (let tries = 0; tries < ATTEMPTS && !pattern.test(this.log) && this.isAlive; tries += 1)
      await new Promise((resolve) => setTimeout(resolve, 100));
    if (!pattern.test(this.log)) throw new Error(`the server never wrote ${pattern}:\n${this.log}`);
  }
}

/** A worker that another process runs. */
class Server extends Client {
  constructor(child) {
    super();
    this.child = child;
    this.exited = new Promise((resolve) => child.once("exit", resolve));
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (bytes) => (this.log += bytes));
  }

  get isAlive() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Ends the server and the processes that it started. */
  async stop(signal = "SIGTERM") {
    try {
      process.kill(-this.child.pid, signal);
    } catch {
      // The process has ended already.
    }
    await this.exited;
  }
}

/** A worker whose workerd this process has started. */
class Hosted extends Client {
  isAlive = true;

  constructor(runtime) {
    super();
    this.runtime = runtime;
  }

  /** Ends workerd. Further calls wait for the same end: miniflare would fail at a second one. */
  async stop() {
    this.isAlive = false;
    this.ended ??= this.runtime.dispose();
    await this.ended;
  }
}

/** The options of miniflare for the worker, as wrangler.toml describes it. */
let described;

async function describedWorker() {
  if (described) return described;
  // Both packages read these variables when they are loaded.
  Object.assign(process.env, quiet, {
    WRANGLER_LOG: "none",
    WRANGLER_LOG_PATH: join(root, "target/e2e/log"),
    X_LOCAL_EXPLORER: "false",
  });
  const { Miniflare, NoOpLog } = await import("miniflare");
  const { unstable_getMiniflareWorkerOptions: optionsOf } = await import("wrangler");
  const { workerOptions, main } = optionsOf(join(root, "wrangler.toml"));
  const modules = [
    { type: "ESModule", path: main },
    { type: "CompiledWasm", path: join(dirname(main), "aqlite_worker_bg.wasm") },
  ];
  const modulesRoot = dirname(main);
  const options = { ...workerOptions, name: "aqlite", modulesRules: undefined, modulesRoot };
  described = { Miniflare, NoOpLog, options: { ...options, modules } };
  return described;
}

/**
 * Starts the worker on a state folder, in a workerd of this process, without a proxy before it. A
 * start of `wrangler dev` takes five times the processor time.
 */
export async function start(state, vars = { AUTH: "none" }) {
  if (program) return startProgram(state, vars);
  const { Miniflare, NoOpLog, options } = await describedWorker();
  const persisted = (kind) => join(state, "v3", kind);
  let server;
  const runtime = new Miniflare({
    workers: [{ ...options, bindings: { ...options.bindings, ...vars } }],
    host: "127.0.0.1",
    port: 0,
    cf: false,
    telemetry: { enabled: false },
    unsafeLocalExplorer: false,
    log: new NoOpLog(),
    handleStructuredLogs: ({ message }) => {
      server.log += `${message}\n`;
    },
    d1Persist: persisted("d1"),
    kvPersist: persisted("kv"),
    cachePersist: persisted("cache"),
  });
  server = new Hosted(runtime);
  try {
    server.port = (await runtime.ready).port;
    if (await answers(server)) return server;
  } catch (error) {
    server.log += String(error);
  }
  await server.stop();
  throw new Error(`the worker did not start:\n${server.log}`);
}

/**
 * Starts the worker on a state folder by `wrangler dev`, and waits until it answers. `more` are further
 * arguments.
 */
export async function startDev(state, vars = { AUTH: "none" }, more = []) {
  // With port 0, the system assigns a free port. A port that was found free before the start may belong
  // to another program by then, and the test would talk to that program.
  const ports = ["--ip", "127.0.0.1", "--port", "0", "--inspector-port", "0"];
  const args = [
    "dev",
    "--local",
    ...ports,
    "--persist-to",
    state,
    "--show-interactive-dev-session=false",
    ...more,
  ];
  for (const [name, value] of Object.entries(vars)) args.push("--var", `${name}:${value}`);
  if (startFailure) throw startFailure;
  const child = spawn(wrangler, args, {
    cwd: root,
    env: housed(state),
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const server = new Server(child);
  for (let tries = 0; tries < ATTEMPTS && server.isAlive; tries += 1) {
    server.port ??= /Ready on http:\S+:(\d+)/.exec(server.log)?.[1];
    if (server.port !== undefined && (await answers(server))) return server;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const reason = new Error(`the worker did not start:\n${server.log}`);
  if (server.isAlive) startFailure = reason;
  await server.stop("SIGKILL");
  throw reason;
}

/**
 * Starts the worker like `cargo xtask serve`: in workerd, without a proxy. `env` adds variables to the
 * environment.
 */
export async function startServed(state, vars = { AUTH: "none" }, env = {}) {
  const args = [join(root, "xtask/serve.mjs"), "--port", "0", "--state", state, "--log", "info"];
  for (const [name, value] of Object.entries(vars)) args.push("--var", `${name}=${value}`);
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const server = new Server(child);
  for (let tries = 0; tries < ATTEMPTS && server.isAlive; tries += 1) {
    server.port ??= /ready on http:\S+:(\d+)/.exec(server.log)?.[1];
    if (server.port !== undefined && (await answers(server))) return server;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await server.stop("SIGKILL");
  throw new Error(`the worker did not start:\n${server.log}`);
}

/** Starts the program as `aqlite serve`, on the database in a folder. */
async function startProgram(state, vars) {
  const address = ["--listen", "127.0.0.1:0"];
  const args = ["serve", "--db", join(state, "a.db"), ...address, "--threads", String(instances)];
  const child = spawn(program, args, {
    cwd: state,
    env: vars,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const server = new Server(child);
  const listens = /aqlite listens on http:\S+:(\d+)/;
  await server.says(listens);
  server.port = listens.exec(server.log)[1];
  return server;
}

/** Returns the processes of a server: those of its process group. */
export function processes(server) {
  const stat = (pid) => {
    try {
      const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"));
      return { pid: Number(pid), name, group: Number(rest.split(" ")[2]) };
    } catch {
      return {};
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(stat)
    .filter(({ group }) => group === server.child.pid);
}

/** Returns the resident memory of the workerd processes of a server, in megabytes. */
export function memory(server) {
  const resident = ({ pid }) =>
    Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) /
    1000;
  return processes(server)
    .filter(({ name }) => name.startsWith("workerd"))
    .map(resident)
    .reduce((a, b) => a + b, 0);
}

/** Whether the worker itself answers, not a proxy. The manifest needs no credentials. */
async function answers(server) {
  try {
    const { status, json } = await server.send("OPTIONS", `${V1}/`);
    return status === 200 && json?.solution === "aqlite";
  } catch {
    return false;
  }
}

/** Starts the worker on a fresh state, with wrangler.toml as changed by `change`. */
export function startWith(name, change, vars) {
  const file = join(root, "target/e2e", `${name}.toml`);
  const state = freshState(name);
  const config = readFileSync(join(root, "wrangler.toml"), "utf8");
  writeFileSync(
    file,
    change(config)
      .replaceAll('"dist/', '"../../dist/')
      .replaceAll('"migrations', '"../../migrations'),
  );
  return startDev(state, vars, ["--config", file]);
}

/** The generated sample: templates as text, guides as text, compositions as `{ehr_id, composition}`. */
export function sample() {
  const folder = join(root, "target/sample");
  const texts = (kind) =>
    readdirSync(join(folder, kind))
      .sort()
      .map((name) => readFileSync(join(folder, kind, name), "utf8"));
  const lines = readFileSync(join(folder, "compositions.ndjson"), "utf8").trim().split("\n");
  return {
    templates: texts("templates"),
    guides: texts("guides"),
    compositions: lines.map((line) => JSON.parse(line)),
  };
}

/** Stores all templates of the sample. */
export async function uploadTemplates(server, { templates }) {
  for (const body of templates) {
    const answer = await server.send("POST", `${ITS}/definition/template/adl1.4`, {
      body,
      type: "application/xml",
    });
    if (answer.status !== 201) throw new Error(`template: ${answer.status} ${answer.text}`);
  }
}
