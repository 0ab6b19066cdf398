// Runs the worker in workerd on this machine, on 127.0.0.1, by the API of miniflare: no proxy before
// it, no inspector, no log files. The development server of wrangler writes what the database
// answers into a log file, and its inspector shows it to every local program.
//
//   node xtask/serve.mjs --port 8787 --state FOLDER [--worker FOLDER] [--page FOLDER]
//     [--waiting-page FOLDER] [--config wrangler.toml] [--var NAME=VALUE]… [--log info]
//     [-- PROGRAM ARGUMENT…]
//
// PROGRAM starts when the server answers, and stops with it. With `--waiting-page`, PROGRAM builds
// the page: the server has the waiting page until PROGRAM ends without an error.
import { spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { values: given, positionals: program } = parseArgs({
  allowPositionals: true,
  options: {
    port: { type: "string", default: "8787" },
    state: { type: "string" },
    worker: { type: "string" },
    page: { type: "string" },
    "waiting-page": { type: "string" },
    config: { type: "string", default: join(root, "wrangler.toml") },
    var: { type: "string", multiple: true, default: [] },
    log: { type: "string", default: "error" },
  },
});
if (!given.state) throw new Error("`--state` is missing: the folder of the databases");
const state = resolve(given.state);

// Both packages read these variables when they are loaded: the folder of temporary files, and the
// absence of a network.
const temporary = join(state, "tmp");
mkdirSync(temporary, { recursive: true });
const log = join(temporary, "log");
const environment = { ...process.env };
Object.assign(process.env, {
  TMPDIR: temporary,
  WRANGLER_LOG_PATH: log,
  WRANGLER_LOG: "none",
  WRANGLER_SEND_METRICS: "false",
  X_LOCAL_EXPLORER: "false",
});
const { Miniflare, NoOpLog } = await import("miniflare");
const { experimental_readRawConfig: readRawConfig, unstable_getMiniflareWorkerOptions: optionsOf } =
  await import("wrangler");

/**
 * Returns the file of the configuration: the one of a deployment, or a copy with other folders of
 * worker and page.
 */
function config(page) {
  if (!given.worker) return resolve(given.config);
  const { rawConfig } = readRawConfig({ config: resolve(given.config) });
  const copy = join(temporary, "wrangler.json");
  const [main, directory] = [resolve(given.worker, "index.js"), resolve(page)];
  const assets = { ...rawConfig.assets, directory };
  const changed = { ...rawConfig, main, base_dir: resolve(given.worker), assets };
  writeFileSync(copy, JSON.stringify(changed));
  return copy;
}

/** Returns the worker as the configuration of a deployment describes it. */
function worker(page) {
  const { workerOptions, main } = optionsOf(config(page));
  const folder = dirname(main);
  const vars = Object.fromEntries(
    given.var.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]),
  );
  const modules = [
    { type: "ESModule", path: main },
    { type: "CompiledWasm", path: join(folder, "aqlite_worker_bg.wasm") },
  ];
  return {
    ...workerOptions,
    name: "aqlite",
    modulesRules: undefined,
    modulesRoot: folder,
    modules,
    bindings: { ...workerOptions.bindings, ...vars },
  };
}

/** Prints lines of the worker: errors always, others on request. */
function printLog({ level, message }) {
  if (level === "error") console.error(message);
  else if (given.log === "info") console.log(message);
}

/** Returns the options of miniflare with a folder of the page. */
function serverOptions(page) {
  const persisted = (kind) => join(state, "v3", kind);
  return {
    workers: [worker(page)],
    host: "127.0.0.1",
    port: Number(given.port),
    cf: false,
    telemetry: { enabled: false },
    unsafeLocalExplorer: false,
    log: new NoOpLog(),
    handleStructuredLogs: printLog,
    d1Persist: persisted("d1"),
    kvPersist: persisted("kv"),
    cachePersist: persisted("cache"),
  };
}

const miniflare = new Miniflare(serverOptions(given["waiting-page"] ?? given.page));

// Reading the configuration leaves a file without data of the user. Nothing else is written there.
const forget = () => rmSync(log, { recursive: true, force: true });
process.on("exit", forget);

let isEnding = false;
/** Whether workerd is being replaced: it does not answer. */
let isChanging = false;
/** The process of PROGRAM. */
let companion;

function end(code) {
  isEnding = true;
  return miniflare.dispose().finally(() => process.exit(code));
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => end(0));

const { port } = await miniflare.ready;
forget();
console.log(`ready on http://127.0.0.1:${port}`);
if (program.length > 0) startCompanion();

/**
 * Starts PROGRAM as the leader of a process group: a signal to the group reaches the compilers that
 * PROGRAM starts.
 */
function startCompanion() {
  const [name, ...args] = program;
  companion = spawn(name, args, {
    cwd: root,
    env: environment,
    detached: process.platform !== "win32",
    stdio: ["ignore", "inherit", "inherit"],
  });
  companion.on("error", ({ message }) => console.error(`${name}: ${message}`));
  companion.on("exit", (code) => {
    if (!isEnding && given["waiting-page"]) finishPage(code === 0);
  });
}

/**
 * Stops PROGRAM and the processes that it started. It must not wait: wrangler listens to signals
 * too, and ends this process before `end` does.
 */
function stopCompanion() {
  const hasEnded = companion?.exitCode !== null || companion.signalCode !== null;
  if (companion?.pid === undefined || hasEnded) return;
  if (process.platform === "win32") companion.kill();
  else process.kill(-companion.pid, "SIGTERM");
}
process.on("exit", stopCompanion);

/** Replaces the waiting page by the complete one. workerd starts again for it, with the same port. */
async function finishPage(isBuilt) {
  if (!isBuilt)
    return console.error(
      "the page was not built; the REST interface remains. Correct the error, and start again",
    );
  isChanging = true;
  await miniflare.setOptions(serverOptions(given.page));
  await miniflare.ready;
  forget();
  isChanging = false;
  console.log(`the page is ready: http://127.0.0.1:${port}/`);
}

// If workerd ends, this process ends too, with a status that a supervisor sees.
setInterval(() => {
  if (isChanging) return;
  const probe = connect(Number(port), "127.0.0.1", () => probe.destroy());
  probe.on("error", ({ code }) => {
    if (code !== "ECONNREFUSED" || isChanging) return;
    console.error("workerd ended");
    end(1);
  });
}, 2_000);
