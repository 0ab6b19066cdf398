// The worker in its own workerd, without a proxy, or the program of AQLITE_PROGRAM as `aqlite serve`. The
// host measures the resident memory of the process, and the latency of another client (the neighbor).
import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions } from "wrangler";
import { V1, freshState, program, root, start } from "../server.mjs";
import { startDatabases } from "./apart.mjs";
import { partLeft, ticks } from "./processors.mjs";

/**
 * The bounds that hold during and after every attack: milliseconds, and bytes above the idle process.
 *
 * If other programs use a part of the processors during the attack, the permitted latency is divided by the
 * remaining part (at least a fifth). Use by the worker and by this test does not count as use by others.
 */
const GOAL = {
  latency: 1_000,
  memory: 200_000_000,
  // An instance that grew by less than 96 MiB is not replaced. The rest is garbage that V8 has not
  // collected yet.
  kept: 150_000_000,
  giveBack: Number(process.env.AQLITE_ATTACK_PATIENCE ?? 60_000),
};

const LONG = process.env.AQLITE_ATTACK === "long";

/**
 * The bounds of the test command, which must not fail on a slow or busy machine. They still fail for an attack
 * that blocks the worker. `cargo xtask soak --only attack` applies the goal.
 */
export const CALM = LONG ? GOAL : { ...GOAL, latency: 4_000 };

/** The bounds of attacks that came near the goal in memory, which depends on the load of the machine too. */
export const WIDE = LONG ? GOAL : { ...CALM, memory: 300_000_000, kept: 250_000_000 };

/** The longest time that a single request may take, in milliseconds. */
const DEADLINE = 30_000;

/** The ids of the workerd processes that this process has started. */
function runtimes() {
  const isOurs = (pid) => {
    try {
      const [, name, , parent] =
        /^\d+ \((.*)\) (\S) (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
      return name === "workerd" && Number(parent) === process.pid;
    } catch {
      return false;
    }
  };
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && isOurs(entry))
    .map(Number);
}

/** Returns a line of `/proc/PID/status` in bytes; 0 if the process has ended. */
export function memoryOf(pid, line = "VmRSS") {
  try {
    return (
      Number(
        new RegExp(`${line}:\\s+(\\d+) kB`).exec(
          readFileSync(`/proc/${pid}/status`, "utf8"),
        )?.[1] ?? 0,
      ) * 1024
    );
  } catch {
    return 0;
  }
}

/** Resets the maximum resident size that the kernel records for a process (`VmHWM`) to the present size. */
function forgetPeak(pid) {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, "5");
  } catch {
    // Without permission, the memory samples of the neighbor are the only measurement.
  }
}

export const megabytes = (bytes) => `${Math.round(bytes / 1e6)} MB`;

/** The ids of the databases, by the names of their bindings. */
const idsOf = (databases) =>
  Object.fromEntries(Object.entries(databases).map(([name, of]) => [name, of.id ?? of]));

/**
 * A running worker. Start workers one after another: the new workerd process is the one that did not
 * exist before the start.
 */
export class Host {
  static async start(name, variables = { AUTH: "none" }, { fetchMock, apart = false } = {}) {
    const host = new Host();
    host.name = name;
    host.state = freshState(`attack-${name}`);
    host.options = { variables, fetchMock, apart };
    await host.#run();
    return host;
  }

  /** Starts the program on the state of this host. */
  async #runProgram() {
    const server = await start(this.state, this.options.variables);
    this.runtime = { dispose: () => server.stop() };
    [this.port, this.pid] = [server.port, server.child.pid];
  }

  /** Starts workerd on the state of this host. */
  async #run() {
    if (program) return this.#runProgram();
    const { workerOptions } = unstable_getMiniflareWorkerOptions(join(root, "wrangler.toml"));
    const {
      compatibilityDate,
      compatibilityFlags,
      bindings,
      kvNamespaces,
      d1Databases,
      ratelimits,
    } = workerOptions;
    const modules = [{ type: "ESModule", path: join(root, "dist/worker/index.js") }];
    modules.push({ type: "CompiledWasm", path: join(root, "dist/worker/aqlite_worker_bg.wasm") });
    const { variables, fetchMock, apart } = this.options;
    const d1Persist = join(this.state, "v3/d1");
    this.databases = apart ? await startDatabases(idsOf(d1Databases), d1Persist) : undefined;
    const before = runtimes();
    this.log = "";
    this.runtime = new Miniflare({
      host: "127.0.0.1",
      port: 0,
      modules,
      modulesRoot: root,
      compatibilityDate,
      compatibilityFlags,
      kvNamespaces,
      ...(apart ? { unsafeBindings: this.databases.bindings } : { d1Databases, d1Persist }),
      ratelimits,
      fetchMock,
      bindings: { ...bindings, ...variables },
      kvPersist: join(this.state, "v3/kv"),
      handleRuntimeStdio: (...streams) =>
        streams.forEach((stream) =>
          stream.on("data", (bytes) => (this.log = (this.log + bytes).slice(-200_000))),
        ),
    });
    this.port = Number((await this.runtime.ready).port);
    [this.pid] = runtimes().filter((pid) => !before.includes(pid));
    assert.ok(this.pid, "the process of workerd was not found");
  }

  /** Ends the process and starts another one on the same state, with fresh memory. */
  async restart() {
    await this.runtime.dispose();
    await this.databases?.runtime.dispose();
    await this.#run();
  }

  /**
   * Sends a request. Adds no header except `Content-Type` for a body. `stall` is the time in milliseconds
   * between the two halves of the body. The whole answer is read. `bytes` is its length, `text` its first
   * part.
   */
  send(
    method,
    path,
    {
      headers = {},
      body,
      type = "application/json",
      stall,
      port = this.port,
      keep = 1_000_000,
      patience = DEADLINE,
    } = {},
  ) {
    const typed =
      Object.keys(headers).some((name) => name.toLowerCase() === "content-type") ||
      body === undefined ||
      type === null;
    const all = typed ? headers : { "content-type": type, ...headers };
    const started = performance.now();
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", port, method, path, headers: all, agent: false },
        (answer) => {
          const chunks = [];
          let bytes = 0;
          answer.on("data", (chunk) => {
            if (bytes < keep) chunks.push(chunk);
            bytes += chunk.length;
          });
          answer.on("error", reject);
          answer.on("end", () => {
            const text = Buffer.concat(chunks).toString();
            const isJson =
              /[/+]json\b/.test(answer.headers["content-type"] ?? "") &&
              text !== "" &&
              bytes <= keep;
            resolve({
              status: answer.statusCode,
              headers: answer.headers,
              text,
              bytes,
              json: isJson ? JSON.parse(text) : undefined,
              milliseconds: performance.now() - started,
            });
          });
        },
      );
      const late = setTimeout(
        () => sent.destroy(new Error(`${method} ${path}: no answer in ${patience} ms`)),
        patience,
      );
      sent.on("error", reject).on("close", () => clearTimeout(late));
      if (stall === undefined) return sent.end(body);
      const half = Math.floor(body.length / 2);
      sent.write(body.slice(0, half));
      setTimeout(() => sent.end(body.slice(half)), stall).unref();
    });
  }

  /** Sends a request. The status must be one of `statuses`. Returns the answer. */
  async expect(statuses, method, path, options) {
    const answer = await this.send(method, path, options);
    const wanted = [statuses].flat();
    assert.ok(
      wanted.includes(answer.status),
      `${method} ${path}: ${answer.status} instead of ${wanted.join(" or ")}: ${answer.text.slice(0, 400)}`,
    );
    return answer;
  }

  /** Sends lines of JSON. Returns the outcome of each line. */
  async lines(path, lines, options = {}) {
    const body = lines
      .map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
      .join("\n");
    const answer = await this.expect(200, "POST", path, {
      body,
      type: "application/x-ndjson",
      ...options,
    });
    return answer.text
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  /** Records the present memory as that of the idle process. */
  async settle() {
    for (let i = 0; i < 5; i += 1) await this.expect(200, "GET", "/health");
    await new Promise((resolve) => setTimeout(resolve, 300));
    this.idle = memoryOf(this.pid);
  }

  /** Executes `attack` while a neighbor requests `/health`. Returns its result and the measurements. */
  async observe(attack) {
    forgetPeak(this.pid);
    const neighbor = new Worker(new URL("neighbor.mjs", import.meta.url), {
      workerData: { port: this.port, pid: this.pid },
    });
    const reported = new Promise((resolve, reject) =>
      neighbor.once("message", resolve).once("error", reject),
    );
    const [started, before] = [performance.now(), ticks(this.pid)];
    let result, failure;
    try {
      result = await attack(this);
    } catch (error) {
      failure = error;
    }
    const milliseconds = performance.now() - started;
    const left = partLeft(before, ticks(this.pid));
    neighbor.postMessage("stop");
    const seen = await reported;
    const peak = Math.max(seen.peak, memoryOf(this.pid, "VmHWM"));
    const kept = memoryOf(this.pid) - this.idle;
    return {
      result,
      failure,
      seen: { ...seen, milliseconds, left, memory: peak - this.idle, kept },
    };
  }

  /** Waits until the process has released its memory. Returns the milliseconds; `Infinity` after a minute. */
  async waitForRelease(allowed = WIDE.kept) {
    const started = performance.now();
    for (;;) {
      const passed = performance.now() - started;
      if (memoryOf(this.pid) - this.idle <= allowed) return passed;
      if (passed > CALM.giveBack) return Infinity;
      await new Promise((resolve) => setTimeout(resolve, 250));
      await this.send("GET", "/health");
    }
  }

  /** Whether the worker answers within five seconds. */
  async isAlive() {
    const answer = await this.send("GET", "/health", { patience: 5_000 }).catch(() => undefined);
    return answer?.status === 200;
  }

  /** Ends the process. Kills it if it does not end by itself. */
  async stop() {
    if (!(await this.isAlive())) process.kill(this.pid, "SIGKILL");
    await this.runtime.dispose();
    await this.databases?.runtime.dispose();
  }
}

/** Fails unless neighbors were served in time, and memory stayed within its bound and was released. */
export function assertCalm({ seen, releasedAfter }, bounds = WIDE) {
  const problems = [];
  const latency = bounds.latency / seen.left;
  if (seen.worst > latency)
    problems.push(
      `a neighbor waited ${Math.round(seen.worst)} ms for /health, at most ${Math.round(latency)} ms are allowed`,
    );
  if (seen.refused.length > 0)
    problems.push(`a neighbor was answered ${seen.refused.join(", ")} instead of 200`);
  if (seen.memory > bounds.memory)
    problems.push(
      `resident memory grew by ${megabytes(seen.memory)}, at most ${megabytes(bounds.memory)} are allowed`,
    );
  if (releasedAfter === Infinity)
    problems.push(`${megabytes(seen.kept)} above the idle process were not given back in a minute`);
  assert.deepEqual(problems, [], problems.join("\n"));
}

/** Returns the template `tests/cases/template/small.opt` under another id, changed by `change`. */
export function template(id, change = (text) => text) {
  const text = readFileSync(join(root, "tests/cases/template/small.opt"), "utf8");
  return change(text.replace("<template_id><value>weight.en.v2<", `<template_id><value>${id}<`));
}

/** Returns the composition of `tests/cases/rest/weight.json` with `id` as its template. */
export function composition(id = "weight.en.v2", change = () => {}) {
  const document = JSON.parse(readFileSync(join(root, "tests/cases/rest/weight.json"), "utf8"));
  document.archetype_details.template_id.value = id;
  change(document);
  return document;
}

/** Creates an EHR. Returns its id. */
export async function newEhr(host, headers = {}) {
  const ehrId = crypto.randomUUID();
  await host.expect(201, "PUT", `${V1}/ehr/${ehrId}`, {
    headers: { "content-type": "application/json", ...headers },
  });
  return ehrId;
}

/** Returns the uid in the `ETag` of an answer. */
export const uidOf = (answer) => answer.headers.etag.replaceAll('"', "");
