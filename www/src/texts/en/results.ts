// The texts of the result: table, chart, cell, files and programs.
import { formats } from "../formats";

const t = /* @__PURE__ */ formats("en");

export const results = {
  title: "Result",
  running: "Running",
  showAs: "Show the result as",
  table: "Table",
  chart: "Chart",
  explain: "Explain",
  save: "Save the result",
  saveCsv: "Save as CSV",
  saveNdjson: "Save as NDJSON, one object a row",
  saveJson: "Save as JSON",
  saveParquet: "Save as Parquet, with typed columns",
  saveArrow: "Save as an Arrow stream, with typed columns",
  saveDocuments: "Save the compositions behind the rows",
  documents: "Documents…",
  copyProgram: "Copy the query as a program",
  copyAs: "Copy as…",
  pages: "Pages of the result",
  earlier: ({ q }: { q: string }) =>
    `Of an earlier query: the text or a value has changed since. Table, chart and saved files belong to: ${q}`,
  earlierExplained: ({ q }: { q: string }) =>
    `Of an earlier query: the text or a value has changed since. This explains: ${q}`,
  thisPage: "Sorting and filters concern this page only.",
  unfiltered: "The filters of the table do not apply here: the chart draws all rows.",
  paged: "The result is shown in pages, and saved page by page.",
  pageBefore: "Previous page",
  pageNext: "Next page",
  window: ({ from, to }: { from: number; to: number }) =>
    `rows ${t.number(from)} to ${t.number(to)}`,
  rows: ({ count }: { count: number }) => t.counted(count, { one: "row", other: "rows" }),
  columns: ({ count }: { count: number }) => t.counted(count, { one: "column", other: "columns" }),
  milliseconds: ({ milliseconds }: { milliseconds: number }) => `${t.number(milliseconds, 1)} ms`,
  seconds: ({ seconds }: { seconds: number }) => `${t.number(seconds, 1)} s`,
  times: ({ engine, total }: { engine: number; total: number }) =>
    `${t.number(engine, 2)} ms in the engine, ${t.number(total, 1)} ms until the rows were here`,
  noDocuments:
    "these rows belong to no documents of their own: they are counted, distinct, or values of the EHR itself",
  noTable: ({ reason }: { reason: string }) => `no table was written: ${reason}`,
  notExplained: "This query cannot be explained here",
  noRows: "No rows",
  noRowsAbout: "Nothing in the data matches. Loosen a condition in WHERE, or a CONTAINS.",
  noRowsWarned: "Nothing in the data matches, perhaps because of a warning about the query:",
  bom: "CSV with BOM",
  bomAbout: "Begin saved CSV with a byte order mark, so that Excel reads all letters",
  json: "Result as JSON",
  moreRows: ({ count }: { count: number }) =>
    `… ${t.number(count)} more rows: save as JSON to see them all`,
  nothingToDraw: "Nothing to draw",
  nothingToDrawAbout:
    "A chart needs a column of numbers or quantities; with a column of dates beside it, they are drawn over time.",
  cell: ({ name, row }: { name: string; row: number }) => `${name}, row ${t.number(row)}`,
  object: "Object",
  closeObject: "Close the object",
  showCell: "Show the cell",
  itself: "Itself",
  inDocument: "In its document",
  copy: "Copy",
  objectContent: "Content of the object",
  noDocument:
    "This cell belongs to no single document: it is counted, computed, or a value of the EHR itself.",
  filter: "Filter",
  filters: "Filters",
  filterColumn: ({ name }: { name: string }) => `Filter ${name}`,
  filterExample: "text, >5, =x",
  gridTitle: "Rows of the result",
  clickToSort: "Click to sort",
  matching: ({ count, of }: { count: number; of: number }) =>
    `${t.number(count)} of ${t.number(of)} rows match; saved files have all`,
  partLeavesNone: "The marked part leaves no row.",
  partsNotCounted: "Not all parts were counted.",
  part: "Part of the query",
  rowsLeft: "Rows left",
  rowsWithout: "Rows without it",
  interval: ({ lower, upper }: { lower: string; upper: string }) => `${lower} to ${upper}`,
  list: "list",
  programOfBrowser: "The data of this browser gave the result on the page.",
  programOfServer: ({ base }: { base: string }) =>
    `This asks the server at ${base}, which answers from its own data.`,
};

export const chart = {
  title: "Chart. Arrow keys read its points.",
  drawn: "drawn",
  by: "by",
  bringOut: "bring out",
  over: ({ name }: { name: string }) => `over ${name}`,
  against: ({ name }: { name: string }) => `against ${name}`,
  distribution: "as distribution",
  patient: "patient",
  nothing: "nothing",
  measures: "Measures",
  all: ({ count }: { count: number }) => `all ${t.number(count)}`,
  ofPatient: ({ name }: { name: string }) => `patient ${name}`,
  values: ({ count }: { count: number }) => t.counted(count, { one: "value", other: "values" }),
  otherUnits: ({ count }: { count: number }) => `${t.number(count)} in another unit`,
  without: ({ count }: { count: number }) => `${t.number(count)} without`,
  measured: ({
    label,
    counts,
    min,
    max,
    median,
    mean,
  }: {
    label: string;
    counts: string;
    min: string;
    max: string;
    median: string;
    mean: string;
  }) => `${label}: ${counts}; ${min} to ${max}, median ${median}, mean ${mean}`,
  range: ({ from, to }: { from: string; to: string }) => `${from} to ${to}`,
  joined: "A line connects the readings of one patient.",
  notJoined:
    "Readings are not connected, because a row may be of several patients: without DISTINCT and aggregates, each patient has a line.",
  utc: "Times are in UTC.",
  rows: "rows",
};
