// Queries of the whole population, and the wait for the segments that they read.
import { ITS } from "../tests/e2e/server.mjs";
import { expect, seconds, send } from "./http.mjs";

/** The maximum time in milliseconds until all segments are written. */
const PATIENCE = 600_000;

const PRESSURE = "OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";
const SYSTOLIC = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
const TIME = "c/context/start_time/value";
const CONTAINED = `FROM EHR e CONTAINS COMPOSITION c CONTAINS ${PRESSURE}`;

/** The queries of the goals, by the names of their figures. */
export const QUERIES = {
  filter: `SELECT ${TIME} AS time, ${SYSTOLIC} AS systolic ${CONTAINED} WHERE ${SYSTOLIC} >= 160 LIMIT 50`,
  top: `SELECT ${TIME} AS time, ${SYSTOLIC} AS systolic ${CONTAINED} WHERE ${SYSTOLIC} >= 140 ORDER BY systolic DESC LIMIT 50`,
  average: `SELECT avg(${SYSTOLIC}) AS mean, max(${SYSTOLIC}) AS most FROM ${PRESSURE}`,
  archetype:
    "SELECT count(*) AS n FROM COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.body_temperature.v2]",
  both: `SELECT count(*) AS n FROM COMPOSITION c CONTAINS (${PRESSURE} AND OBSERVATION p[openEHR-EHR-OBSERVATION.pulse.v2])`,
  templates:
    "SELECT c/archetype_details/template_id/value AS template, count(*) AS n FROM COMPOSITION c",
  ehrs: "SELECT count(*) AS n FROM EHR e",
};

/** All rows that the filters read. */
export const ALL_ROWS = `SELECT ${TIME} AS time, ${SYSTOLIC} AS systolic ${CONTAINED}`;

/** Returns the rows of a query as JSON. */
export const ask = async (q) => {
  const answer = await expect(200, "POST", `${ITS}/query/aql`, JSON.stringify({ q }));
  return JSON.stringify(JSON.parse(answer.text).rows);
};

/** Waits until a query finds that no rows wait for a segment. */
export async function settle() {
  const until = performance.now() + PATIENCE;
  let last = Infinity;
  while (performance.now() < until) {
    // A query of many rows that are in no segment yet is refused after a while.
    const q = JSON.stringify({ q: QUERIES.average });
    const time = await seconds(() => send("POST", `${ITS}/query/aql`, q));
    if (time * 1000 < 150 && last * 1000 < 150) return;
    last = time;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  throw new Error("the segments were not written");
}
