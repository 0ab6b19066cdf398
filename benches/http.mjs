// Requests to a server on this machine, and the lines of a generated sample.
import { createReadStream, readFileSync, readdirSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { ITS, V1 } from "../tests/e2e/server.mjs";

/** The number of bytes of a bulk import that are written at a time. */
const CHUNK = 1_000_000;

/** The folder of the sample. */
export const folder = process.argv[2];
/** The server that answers: its port. */
export const server = { port: 0 };
export const agent = new Agent({ keepAlive: true, maxSockets: 1 });

export const note = (text) => console.log(`  ${text}`);

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

export const lines = (name) =>
  createInterface({ input: createReadStream(join(folder, name)), crlfDelay: Infinity });
export const seconds = async (work) => {
  const begin = performance.now();
  await work();
  return (performance.now() - begin) / 1000;
};
/** Returns the tenth percentile. Other programs on the machine only add to a time. */
export const low = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 10)];

/** Returns the middle value. */
export const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

/** Uploads the definitions of the sample. */
export async function define() {
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
