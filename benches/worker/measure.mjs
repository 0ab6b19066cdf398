// Measures the worker in workerd on this machine: `node measure.mjs SAMPLE`, where SAMPLE is the
// folder of a generated sample. Prints lines `KEY = VALUE`. Compared requests alternate in one
// process of workerd, so that a busy machine affects all of them.
import { readdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { ITS, V1 } from "../../tests/e2e/server.mjs";
import {
  agent,
  bulk,
  compositions,
  define,
  ehrs,
  expect,
  folder,
  lines,
  low,
  note,
  seconds,
  server,
} from "../http.mjs";
import { counted, restart, start, stop, tell } from "./host.mjs";
import { populationQueries } from "./population.mjs";

/**
 * The number of requests of each kind that are timed, in turns, after `WARM` requests of warm-up.
 */
const ROUNDS = 400;
const WARM = 50;
/** The number of compositions that are committed one by one for comparison. */
const SINGLES = 1_000;
/** The number of compositions of the EHR that is queried. */
const OF_EHR = 200;

/** Returns the first compositions of the sample: EHR and text. */
async function first(count) {
  const found = [];
  for await (const line of lines("compositions.ndjson")) {
    const at = line.indexOf('"composition":') + 14;
    found.push({ ehr: line.slice(11, 47), text: line.slice(at, -1) });
    if (found.length === count) break;
  }
  return found;
}

const commit = ({ ehr, text }) => expect(201, "POST", `${ITS}/ehr/${ehr}/composition`, text);
const uid = (answer) => answer.headers.etag.replaceAll('"', "");

/** Returns the milliseconds of each kind of request, measured in turns. */
async function inTurns(kinds) {
  const times = Object.fromEntries(Object.keys(kinds).map((kind) => [kind, []]));
  for (let round = 0; round < WARM + ROUNDS; round += 1) {
    for (const [kind, work] of Object.entries(kinds)) {
      const time = await seconds(() => work(round));
      if (round >= WARM) times[kind].push(time * 1000);
    }
  }
  for (const [kind, values] of Object.entries(times)) tell(`${kind}.ms`, low(values).toFixed(4));
}

/** Returns the counters of the database for one repeated request: mean of ten. */
async function cost(kind, work) {
  await work(0);
  await counted();
  for (let i = 1; i <= 10; i += 1) await work(i);
  const { trips, rows } = await counted();
  tell(`${kind}.trips`, trips / 10);
  tell(`${kind}.rows`, rows / 10);
}

async function singles(samples) {
  note("commits and reads, in turns with the empty handler");
  const [sample] = samples;
  const made = uid(await commit(sample));
  const object = made.split("::")[0];
  let latest = made;
  const update = async () => {
    const path = `${ITS}/ehr/${sample.ehr}/composition/${object}`;
    const body = sample.text;
    const answer = await new Promise((resolve, reject) => {
      const headers = {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "if-match": `"${latest}"`,
      };
      const sent = request(
        { agent, port: server.port, host: "127.0.0.1", method: "PUT", path, headers },
        (answer) => {
          answer.resume();
          answer.on("end", () => resolve(answer));
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
    if (answer.statusCode >= 300) throw new Error(`PUT: ${answer.statusCode}`);
    latest = uid(answer);
  };
  const get = () => expect(200, "GET", `${ITS}/ehr/${sample.ehr}/composition/${made}`);
  const one = (round) => commit(samples[round % samples.length]);
  for (const each of samples) await commit(each);
  await cost("commit", one);
  await cost("update", update);
  await cost("get", get);
  await inTurns({
    empty_write: (round) =>
      expect(201, "POST", "/empty/write", samples[round % samples.length].text),
    commit: one,
    empty_read: () => expect(200, "GET", "/empty/read"),
    get,
  });
  const rest = samples.slice(0, SINGLES);
  tell(
    "single.rate",
    (
      rest.length /
      (await seconds(async () => {
        for (const each of rest) await commit(each);
      }))
    ).toFixed(1),
  );
}

const Q1 = `SELECT o/data[at0001]/events[at0006]/time/value AS time, o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude AS systolic
  FROM EHR e[ehr_id/value=$ehr] CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2] ORDER BY time DESC LIMIT 1`;

async function queries(ehr) {
  note("queries of one EHR, in a new process and warm");
  const body = JSON.stringify({ q: Q1, query_parameters: { ehr } });
  const query = () => expect(200, "POST", `${ITS}/query/aql`, body);
  await restart();
  await query();
  const { trips } = await counted();
  tell("query_cold.trips", trips);
  await cost("query", query);
  await inTurns({ query_empty: () => expect(200, "GET", "/empty/read"), query });
}

/** The number of EHRs of the goal of guides. */
const GUIDE_EHRS = 10_000;
/** The number of timed runs of a guide. */
const GUIDE_RUNS = 5;

/** Runs a guide on EHRs in one request, one line per EHR. Returns the seconds. */
async function guideRun(guide_id, ids) {
  const lines = ids.map((id) => JSON.stringify(id)).join("\n");
  const path = `${V1}/gdl/query?guide_id=${guide_id}`;
  let answer;
  const time = await seconds(async () => {
    answer = await expect(200, "POST", path, lines, "application/x-ndjson");
  });
  const good = answer.text.match(/"status":200}$/gm)?.length ?? 0;
  if (good !== ids.length) throw new Error(`${guide_id}: ${good} of ${ids.length} EHRs`);
  return time;
}

/** Runs each guide in a new process and warm, then on all EHRs. Prints the slowest. */
async function population(ids) {
  const some = ids.slice(0, GUIDE_EHRS);
  let [cold, warm, rate] = [0, 0, Infinity];
  for (const name of readdirSync(join(folder, "guides"))) {
    const guide_id = name.replace(/\.json$/, "");
    await restart();
    await expect(200, "GET", "/health");
    const first = await guideRun(guide_id, some);
    const times = [];
    for (let run = 0; run < GUIDE_RUNS; run += 1) times.push(await guideRun(guide_id, some));
    const middle = times.sort((a, b) => a - b)[GUIDE_RUNS >> 1];
    const all = await guideRun(guide_id, ids);
    note(
      `${guide_id} on ${some.length} EHRs: first ${first.toFixed(2)} s, warm ${middle.toFixed(2)} s; on ${ids.length}: ${all.toFixed(2)} s`,
    );
    [cold, warm] = [Math.max(cold, first), Math.max(warm, middle)];
    rate = Math.min(rate, ids.length / all);
  }
  tell("population.some", some.length);
  tell("population.first", cold.toFixed(2));
  tell("population.warm", warm.toFixed(2));
  tell("population.ehrs", ids.length);
  tell("population.rate", rate.toFixed(0));
}

try {
  await start();
  await expect(204, "GET", "/empty/table");
  await define();
  const ids = [];
  note(
    `${await bulk(
      (async function* () {
        for await (const line of ehrs()) {
          ids.push(JSON.parse(line).ehr_id);
          yield line;
        }
      })(),
    )} EHRs`,
  );
  const samples = await first(SINGLES);
  tell(
    "json.bytes",
    (samples.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0) / samples.length).toFixed(
      0,
    ),
  );
  await singles(samples);
  note("bulk import");
  const of = new Map();
  const before = (await counted()).bytes;
  let imported = 0;
  const time = await seconds(async () => {
    imported = await bulk(compositions(0, (ehr) => of.set(ehr, (of.get(ehr) ?? 0) + 1)));
  });
  const { bytes, rows, trips } = await counted();
  tell("bulk.compositions", imported);
  tell("bulk.rate", (imported / time).toFixed(0));
  tell("bulk.rows", (rows / imported).toFixed(2));
  tell("bulk.trips", (trips / imported).toFixed(4));
  tell("commit.bytes", ((bytes - before) / imported).toFixed(0));
  const [ehr] = [...of].sort(([, a], [, b]) => Math.abs(a - OF_EHR) - Math.abs(b - OF_EHR))[0];
  note(`the EHR that is queried has ${of.get(ehr)} compositions`);
  await queries(ehr);
  await populationQueries();
  note("guides on the whole population");
  await population(ids);
} finally {
  agent.destroy();
  await stop();
}
