// Queries of the whole population over HTTP: cold in a new process, and warm, compared with an
// empty read of the database.
import { ITS } from "../../tests/e2e/server.mjs";
import { bulk, compositions, expect, median, note, seconds, server } from "../http.mjs";
import { ALL_ROWS, QUERIES, ask, settle } from "../population.mjs";
import { counted, restart, tell } from "./host.mjs";

/** The number of timed requests of each warm query. */
const ROUNDS = 20;
/** The number of versions that are in no segment when a query is measured. */
const FRESH = 1_000;
/** The number of measurements after writes. */
const WRITES = 5;
/** Rows of a response that is sent in parts. */
const MANY = 300_000;

const query = async (body) =>
  JSON.parse((await expect(200, "POST", `${ITS}/query/aql`, JSON.stringify(body))).text);

/** The first compositions of the sample, which are written once more. */
async function* again(count) {
  for await (const line of compositions(0, () => {})) {
    if (count-- === 0) return;
    yield line;
  }
}

/** The second page of a result, after a write. */
async function secondPage() {
  const times = [];
  for (let round = 0; round < WRITES; round += 1) {
    const page = { q: `${ALL_ROWS} ORDER BY systolic DESC`, fetch: 50 };
    const snapshot = (await query(page)).meta._snapshot;
    await bulk(again(1));
    times.push((await seconds(() => query({ ...page, offset: 50, snapshot }))) * 1000);
  }
  tell("population_page.ms", median(times).toFixed(1));
}

/** A query right after writes that no segment holds. */
async function afterWrites() {
  const times = [];
  for (let round = 0; round < WRITES; round += 1) {
    await bulk(again(FRESH));
    times.push((await seconds(() => ask(QUERIES.average))) * 1000);
    await settle();
  }
  tell("population_fresh.ms", median(times).toFixed(1));
}

/** Many rows in one response, as NDJSON. */
async function manyRows() {
  const begin = performance.now();
  const answer = await fetch(`http://127.0.0.1:${server.port}${ITS}/query/aql`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/x-ndjson" },
    body: JSON.stringify({ q: ALL_ROWS, fetch: MANY }),
  });
  let [first, rows] = [undefined, 0];
  for await (const chunk of answer.body) {
    first ??= performance.now() - begin;
    rows += chunk.reduce((count, byte) => count + (byte === 10 ? 1 : 0), 0);
  }
  tell("population_rows.rows", rows);
  tell("population_rows.first_ms", first.toFixed(1));
  tell("population_rows.ms", (performance.now() - begin).toFixed(1));
}

export async function populationQueries() {
  await expect(201, "POST", "/empty/write", "{}");
  note("segments are written behind queries");
  tell("segments.seconds", (await seconds(settle)).toFixed(1));
  const [[documents]] = JSON.parse(await ask("SELECT count(*) AS n FROM COMPOSITION c"));
  const { bytes } = JSON.parse((await expect(200, "GET", "/empty/segments")).text);
  tell("segments.bytes", (bytes / documents).toFixed(0));
  let most = 0;
  for (const [name, q] of Object.entries(QUERIES)) {
    await restart();
    await expect(200, "GET", "/empty/read");
    await expect(200, "GET", "/health");
    await counted();
    const cold = (await seconds(() => ask(q))) * 1000;
    const { blobs } = await counted();
    await ask(q);
    most = Math.max(most, (await counted()).trips);
    const [own, empty] = [[], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      own.push((await seconds(() => ask(q))) * 1000);
      empty.push((await seconds(() => expect(200, "GET", "/empty/read"))) * 1000);
    }
    note(
      `${name}: cold ${cold.toFixed(0)} ms, warm ${median(own).toFixed(1)} ms, an empty read ${median(empty).toFixed(1)} ms`,
    );
    tell(`population_${name}.cold_ms`, cold.toFixed(1));
    tell(`population_${name}.blobs`, blobs);
    tell(`population_${name}.ms`, median(own).toFixed(2));
    tell(`population_${name}.empty_ms`, median(empty).toFixed(2));
  }
  tell("population.trips", most);
  note("pages, many rows, and a query right after writes");
  await secondPage();
  await manyRows();
  await afterWrites();
}
