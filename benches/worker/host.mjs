// The worker in workerd on this machine, with a generated sample: start, requests, bulk import.
import { createReadStream, readFileSync, readdirSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { Miniflare } from "miniflare";
import { ITS, V1, freshState, root } from "../../tests/e2e/server.mjs";

/** The number of bytes of a bulk import that are written at a time. */
const CHUNK = 1_000_000;

/** The folder of the sample. */
export const folder = process.argv[2];
const state = freshState("bench");
export const agent = new Agent({ keepAlive: true, maxSockets: 1 });
export let server;

export const tell = (key, value) => console.log(`worker.${key} = ${value}`);
export const note = (text) => console.log(`  ${text}`);

export async function start() {
  const modules = ["benches/worker/entry.mjs", "dist/worker/index.js"].map((path) => ({
    type: "ESModule",
    path: join(root, path),
  }));
  modules.push({ type: "CompiledWasm", path: join(root, "dist/worker/aqlite_worker_bg.wasm") });
  server = new Miniflare({
    modules,
    modulesRoot: root,
    compatibilityDate: "2026-04-01",
    host: "127.0.0.1",
    port: 0,
    bindings: { AUTH: "none", SYSTEM_ID: "aqlite.bench" },
    d1Databases: { DB: "DB", EMPTY: "empty" },
    d1Persist: join(state, "v3/d1"),
    kvNamespaces: ["BLOBS"],
    kvPersist: join(state, "v3/kv"),
    handleRuntimeStdio: (out, err) => [out, err].forEach((stream) => stream.resume()),
  });
  server.port = (await server.ready).port;
}

/** Restarts the worker with empty memory and unchanged databases. */
export async function restart() {
  await server.dispose();
  await start();
}

/** Sends a request, and returns status, headers and text. */
export function send(method, path, body, type = "application/json") {
  return new Promise((resolve, reject) => {
    const headers =
      body === undefined ? {} : { "content-type": type, "content-length": Buffer.byteLength(body) };
    const sent = request(
      { agent, port: server.port, host: "127.0.0.1", method, path, headers },
      (answer) => {
        const chunks = [];
        answer.on("data", (chunk) => chunks.push(chunk));
        answer.on("end", () =>
          resolve({
            status: answer.statusCode,
            headers: answer.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        );
        answer.on("error", reject);
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

export async function expect(status, method, path, body, type) {
  const answer = await send(method, path, body, type);
  if (answer.status !== status)
    throw new Error(`${method} ${path}: ${answer.status} ${answer.text.slice(0, 1000)}`);
  return answer;
}

export const counted = async () => JSON.parse((await expect(200, "GET", "/empty/counted")).text);
export const lines = (name) =>
  createInterface({ input: createReadStream(join(folder, name)), crlfDelay: Infinity });
export const seconds = async (work) => {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
};
/** Returns the tenth percentile. Other programs on the machine only add to a time. */
export const low = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 10)];

/** Uploads the definitions of the sample. */
export async function define() {
  await expect(204, "GET", "/empty/table");
  const files = (kind) =>
    readdirSync(join(folder, kind)).map((name) => readFileSync(join(folder, kind, name), "utf8"));
  for (const template of files("templates"))
    await expect(201, "POST", `${ITS}/definition/template/adl1.4`, template, "application/xml");
  for (const guide of files("guides")) await expect(201, "POST", `${V1}/definition/gdl`, guide);
}

/** Sends lines in bulk, as one request that is written while its answers come; each line must be written; how many there were. */
export async function bulk(texts) {
  let sent = 0;
  async function* body() {
    let [pending, bytes] = [[], 0];
    for await (const text of texts) {
      pending.push(text, "\n");
      sent += 1;
      bytes += text.length;
      if (bytes < CHUNK) continue;
      yield pending.join("");
      [pending, bytes] = [[], 0];
    }
    yield pending.join("");
  }
  const path = `${V1}/ehr/bulk`;
  const call = request({
    agent,
    port: server.port,
    host: "127.0.0.1",
    method: "POST",
    path,
    headers: { "content-type": "application/x-ndjson" },
  });
  const answered = new Promise((resolve, reject) =>
    call.on("response", resolve).on("error", reject),
  );
  const writing = pipeline(body, call);
  let written = 0;
  for await (const line of createInterface({ input: await answered })) {
    if (!line.endsWith('"status":201}')) throw new Error(`bulk: ${line}`);
    written += 1;
  }
  await writing;
  if (written !== sent) throw new Error(`bulk: ${written} of ${sent}`);
  return written;
}

export async function* ehrs() {
  for await (const line of lines("ehrs.ndjson")) {
    const { ehr_id, ehr_status } = JSON.parse(line);
    yield JSON.stringify({ ehr_id, ehr_status });
  }
}

/**
 * Yields the compositions behind the first `skip` as lines of a bulk import. `seen` receives the
 * EHR of each.
 */
export async function* compositions(skip, seen) {
  let number = 0;
  for await (const line of lines("compositions.ndjson")) {
    if (number++ < skip) continue;
    // A copy: a slice would keep the whole part of the file from which the line was read.
    seen(Buffer.from(line.slice(11, 47)).toString());
    yield line.replace(/"uid":"[^"]*","template_id":"[^"]*",/, "");
  }
}
