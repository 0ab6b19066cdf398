// Measures `aqlite serve` on this machine: `node measure.mjs SAMPLE PROGRAM`, where SAMPLE is the
// folder of a generated sample. Prints lines `KEY = VALUE`. Each population query is measured with
// as many service threads as the machine has processors, and with one.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ITS, freshState } from "../../tests/e2e/server.mjs";
import {
  agent,
  bulk,
  compositions,
  define,
  ehrs,
  expect,
  median,
  note,
  seconds,
  server,
} from "../http.mjs";
import { QUERIES, ask, settle } from "../population.mjs";

/** The number of timed requests of each warm query. */
const ROUNDS = 30;
const program = process.argv[3];
const state = freshState("bench-serve");
const processors = availableParallelism();
let child;

const tell = (key, value) => console.log(`serve.${key} = ${value}`);

async function start(threads) {
  const options = ["--open", "--listen", "127.0.0.1:0", "--threads", String(threads)];
  child = spawn(program, ["serve", "--db", join(state, "bench.db"), ...options], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const port = line.match(/^aqlite listens on http:\/\/127\.0\.0\.1:(\d+)/)?.[1];
    if (port === undefined) continue;
    server.port = Number(port);
    return;
  }
  throw new Error("aqlite serve ended");
}

async function stop() {
  if (child === undefined || child.exitCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

/** Measures a query in a new process: the first time, and the median of the next ones. */
async function measured(q, threads, path) {
  await stop();
  await start(threads);
  await expect(200, "GET", path);
  let rows;
  const cold = (await seconds(async () => (rows = await ask(q)))) * 1000;
  const [own, empty] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    own.push((await seconds(() => ask(q))) * 1000);
    empty.push((await seconds(() => expect(200, "GET", path))) * 1000);
  }
  return { cold, warm: median(own), empty: median(empty), rows };
}

try {
  await start(processors);
  await define();
  let some;
  const noted = async function* () {
    for await (const line of ehrs()) {
      some ??= JSON.parse(line).ehr_id;
      yield line;
    }
  };
  note(`${await bulk(noted())} EHRs`);
  let imported = 0;
  const time = await seconds(async () => {
    imported = await bulk(compositions(0, () => {}));
  });
  tell("bulk.rate", (imported / time).toFixed(0));
  note("segments are written");
  tell("segments.seconds", (await seconds(settle)).toFixed(1));
  tell("processors", processors);
  for (const [name, q] of Object.entries(QUERIES)) {
    const path = `${ITS}/ehr/${some}`;
    const one = await measured(q, 1, path);
    const all = await measured(q, processors, path);
    if (one.rows !== all.rows) throw new Error(`${name}: other rows with ${processors} threads`);
    note(
      `${name}: first ${all.cold.toFixed(1)} ms, warm ${all.warm.toFixed(2)} ms; on one thread ${one.cold.toFixed(1)} ms, ${one.warm.toFixed(2)} ms; an EHR ${all.empty.toFixed(2)} ms`,
    );
    tell(`${name}.cold_ms`, all.cold.toFixed(2));
    tell(`${name}.ms`, all.warm.toFixed(3));
    tell(`${name}.one_cold_ms`, one.cold.toFixed(2));
    tell(`${name}.one_ms`, one.warm.toFixed(3));
    tell(`${name}.empty_ms`, all.empty.toFixed(3));
  }
} finally {
  agent.destroy();
  await stop();
}
