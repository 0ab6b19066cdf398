// Compares Parquet files, as DuckDB reads them, with the rows of JSON: `node tests/tables/duckdb.mjs FOLDER`. The suites of
// AQL write the files (`tests/conformance/tables.rs`). Numbers are compared as doubles; `check.py` compares their digits.
import { DuckDBInstance } from "@duckdb/node-api";
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const terminology = (value) => ({ _type: "TERMINOLOGY_ID", value });
const phrase = ({ terminology: id, code }) => ({
  _type: "CODE_PHRASE",
  terminology_id: terminology(id),
  code_string: code,
});

/** The object that a struct was written from. */
function object(value) {
  const other = value.other === null ? {} : JSON.parse(value.other);
  if ("magnitude" in value) {
    const made = { _type: "DV_QUANTITY", magnitude: Number(value.magnitude) };
    if (value.units !== null) made.units = value.units;
    if (value.precision !== null) made.precision = Number(value.precision);
    return { ...made, ...other };
  }
  if (!("value" in value)) return { ...phrase(value), ...other };
  return {
    _type: "DV_CODED_TEXT",
    value: value.value,
    ...(value.code === null ? {} : { defining_code: phrase(value) }),
    ...other,
  };
}

/** Whether a value of DuckDB is that of a cell of JSON. */
function isSame(sent, read, type) {
  if (read === null || sent === null) return read === sent;
  if (type.startsWith("TIMESTAMP"))
    return Date.parse(sent) === Date.parse(read.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00"));
  if (type.startsWith("STRUCT")) return isDeepEqual(object(read), sent);
  if (typeof sent === "number") return Number(read) === sent;
  if (typeof read === "string" && typeof sent !== "string")
    return isDeepEqual(JSON.parse(read), sent);
  // A text in a column of JSON is quoted.
  return read === sent || read === JSON.stringify(sent);
}

function isDeepEqual(one, other) {
  try {
    assert.deepStrictEqual(one, other);
    return true;
  } catch {
    return false;
  }
}

const folder = process.argv[2];
const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
const connection = await (await DuckDBInstance.create(":memory:")).connect();
await connection.run("SET TimeZone = 'UTC'");
let problems = 0;
for (const name of names) {
  const { rows } = JSON.parse(readFileSync(join(folder, name), "utf8"));
  const file = join(folder, name.replace(/json$/, "parquet")).replaceAll("'", "''");
  const reader = await connection.runAndReadAll(`SELECT * FROM read_parquet('${file}')`);
  const types = reader.columnTypes().map(String);
  const found = reader.getRowsJson();
  const at = rows.findIndex(
    (row, i) => !row.every((cell, j) => isSame(cell, found[i]?.[j], types[j])),
  );
  if (rows.length === found.length && at < 0) continue;
  problems += 1;
  console.error(
    `${name}: ${found.length} of ${rows.length} rows; row ${at}: ${JSON.stringify(found[at])} instead of ${JSON.stringify(rows[at])}`,
  );
}
console.log(`DuckDB read ${names.length} tables, ${problems} with other rows`);
if (problems > 0 || names.length === 0) process.exit(1);
