// The measures of a result: its numeric and temporal columns as numbers, and their distribution.
import { view } from "./cell";
import { cellText } from "./export";
import { NumberText, parse } from "./json";
import type { Result } from "./protocol";

/** A column for charts: one number per row, or `null`. */
export interface Measure {
  name: string;
  kind: "number" | "time";
  /** Numbers, or seconds since 1970. */
  values: (number | null)[];
  /** The unit of the numbers; empty without one. */
  unit: string;
  /** The number of rows with a number in another unit. */
  others: number;
  /** The index of the column. */
  column: number;
}

/** Equal intervals of the range of a measure, and the number of values in each. */
export interface Histogram {
  /** Lower bounds. */
  starts: number[];
  counts: number[];
  width: number;
}

/** A summary of a measure in five numbers. */
export interface Summary {
  count: number;
  missing: number;
  min: number;
  median: number;
  mean: number;
  max: number;
}

const ISO =
  /^(\d{4})(?:-?(\d\d)(?:-?(\d\d))?)?(?:T(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?$/;

/**
 * Returns the seconds since 1970 of an ISO 8601 date or date-time. A partial time means its start,
 * for instance January for a year. A time without a zone is UTC.
 */
export function seconds(text: string): number | null {
  const found = ISO.exec(text);
  if (!found) return null;
  const part = (at: number, otherwise: number) =>
    found[at] === undefined ? otherwise : Number(found[at]);
  const zone = /^([+-])(\d\d):?(\d\d)?$/.exec(found[8] ?? "");
  const offset = zone
    ? (zone[1] === "-" ? -1 : 1) * (Number(zone[2]) * 60 + Number(zone[3] ?? 0))
    : 0;
  const fraction = found[7] === undefined ? 0 : Number(`0.${found[7]}`);
  const date = Date.UTC(
    part(1, 0),
    part(2, 1) - 1,
    part(3, 1),
    part(4, 0),
    part(5, 0) - offset,
    part(6, 0),
  );
  return Number.isNaN(date) ? null : date / 1000 + fraction;
}

/**
 * Returns the number of a cell, either plain or the magnitude of an object, with its digits and its
 * unit.
 */
export function numberOf(text: string): { value: number; digits: string; unit: string } | null {
  const { kind } = view(text);
  if (kind === "number") return { value: Number(text), digits: text, unit: "" };
  if (kind !== "object" || !text.startsWith("{")) return null;
  const object = parse(text) as Record<string, unknown>;
  const magnitude = object["magnitude"];
  if (!(magnitude instanceof NumberText)) return null;
  return {
    value: Number(magnitude.text),
    digits: magnitude.text,
    unit: typeof object["units"] === "string" ? object["units"] : "",
  };
}

/** Returns the text of a time without the status of its magnitude: `2026-11` of `~2026-11`. */
export function withoutStatus(text: string): string {
  return text.replace(/^(?:[<>]=?|~)(?=\d{4})/, "");
}

function timeOf(text: string): number | null {
  const { kind, text: shown, type } = view(text);
  const temporal =
    kind === "text" || (kind === "object" && (type === "DV_DATE_TIME" || type === "DV_DATE"));
  const exact = withoutStatus(shown);
  // A bare year is more likely a number or a code.
  return temporal && exact.length > 4 ? seconds(exact) : null;
}

function texts(result: Result, column: number): string[] {
  return Array.from({ length: result.rows }, (_, row) => cellText(result, row, column));
}

/** Returns the times of a column in seconds since 1970; `null` if it does not contain times. */
function times(result: Result, column: number): Measure[] {
  const values = texts(result, column).map(timeOf);
  // A column that starts with ten other values does not contain times.
  if (values.slice(0, 10).every((value) => value === null)) return [];
  return [
    { name: result.columns[column]?.name ?? "", kind: "time", values, unit: "", others: 0, column },
  ];
}

/** Returns the numbers of a column by unit, because kPa and mm[Hg] do not share an axis. */
function numbers(result: Result, column: number): Measure[] {
  const found = texts(result, column)
    .map(numberOf)
    .map((one) => (one && Number.isFinite(one.value) ? one : null));
  const there = found.filter((one) => one !== null);
  const units = [...new Set(there.map(({ unit }) => unit))];
  const of = (unit: string) => found.map((one) => (one?.unit === unit ? one.value : null));
  return units.map((unit) => ({
    name: result.columns[column]?.name ?? "",
    kind: "number",
    values: of(unit),
    unit,
    others: there.filter((one) => one.unit !== unit).length,
    column,
  }));
}

/** Returns the columns that can be drawn. */
export function measures(result: Result): Measure[] {
  return result.columns.flatMap((_, column) => {
    const found = numbers(result, column);
    return found.length > 0 ? found : times(result, column);
  });
}

/** A column of texts that divides the rows of a result into groups, such as wards. */
export interface Grouping {
  name: string;
  /** The text of each row; `null` without one. */
  keys: (string | null)[];
  groups: string[];
}

/** Returns the distinct texts in natural order. */
function distinct(keys: (string | null)[]): string[] {
  const groups = [...new Set(keys.filter((text) => text !== null))];
  return groups.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** Whether a column has the ids of EHRs. */
export function isEhrId(path: string | null): boolean {
  return path !== null && /(^|\/)ehr_id\/value$/.test(path);
}

/**
 * Returns the columns of texts with at least two distinct texts, those with the fewest first. Columns
 * of EHR ids are left out, because the chart groups by patient separately.
 */
export function groupings(result: Result): Grouping[] {
  const found = result.columns.flatMap(({ name, path }, column): Grouping[] => {
    if (isEhrId(path)) return [];
    const cells = texts(result, column).map((text) => view(text));
    const keys = cells.map(({ kind, text }) => (kind === "text" ? text : null));
    const groups = distinct(keys);
    const named = keys.every((text) => text === null || seconds(text) === null);
    return named && groups.length > 1 ? [{ name, keys, groups }] : [];
  });
  return found.sort((a, b) => a.groups.length - b.groups.length);
}

/** Returns the EHR id of each row from a column of the result; `null` without such a column. */
export function ehrColumn(result: Result): (string | null)[] | null {
  const column = result.columns.findIndex(({ path }) => isEhrId(path));
  return column < 0 ? null : textsOf(result, column);
}

function textsOf(result: Result, column: number): (string | null)[] {
  return texts(result, column).map((json) => {
    const { kind, text } = view(json);
    return kind === "text" ? text : null;
  });
}

/**
 * Returns the EHR id of each row from the last column of a second result, whose other columns are
 * those of the first. Returns `null` if any cell differs, because documents were added meanwhile.
 */
export function ehrsBeside(result: Result, wider: Result): (string | null)[] | null {
  const columns = result.columns.length;
  if (wider.rows !== result.rows || wider.columns.length !== columns + 1) return null;
  for (let row = 0; row < result.rows; row += 1)
    for (let column = 0; column < columns; column += 1)
      if (cellText(result, row, column) !== cellText(wider, row, column)) return null;
  return textsOf(wider, columns);
}

/** A point of a chart, and the row that it comes from. */
export interface Point {
  x: number;
  y: number;
  row: number;
}

/** The points of one measure, one group and one patient, ordered by x. */
export interface Line {
  measure: Measure;
  /** The text of the grouping column; `null` without one. */
  group: string | null;
  /** The id of the EHR. `null` if it is not known: the points are then not connected. */
  patient: string | null;
  points: Point[];
}

/**
 * Divides measures into lines. Each line has the points of one patient, so a line between two
 * points never connects readings of different patients. `patients` has the EHR id of each row.
 */
export function lines(
  x: Measure,
  measures: Measure[],
  groups: (string | null)[] | null,
  patients: (string | null)[] | null,
): Line[] {
  return measures.flatMap((measure) => {
    const found = new Map<string, Line>();
    measure.values.forEach((y, row) => {
      const at = x.values[row] ?? null;
      if (y === null || at === null) return;
      const [group, patient] = [groups?.[row] ?? null, patients?.[row] ?? null];
      const key = JSON.stringify([group, patient]);
      const line = found.get(key) ?? { measure, group, patient, points: [] };
      line.points.push({ x: at, y, row });
      found.set(key, line);
    });
    for (const { points } of found.values()) points.sort((a, b) => a.x - b.x);
    return [...found.values()];
  });
}

/** The number of points from which on a chart draws no lines between points. */
const JOINED = 12_000;

/** Whether a chart has so many points that lines between them would hide each other. */
export function isDense(all: Line[]): boolean {
  return all.reduce((sum, { points }) => sum + points.length, 0) > JOINED;
}

/** Returns the non-null values, sorted. */
function sorted(values: (number | null)[]): number[] {
  return values.filter((value) => value !== null).sort((a, b) => a - b);
}

/**
 * Returns a step of 1, 2 or 5 times a power of ten that divides the range into about `parts` parts.
 */
function niceStep(range: number, parts: number): number {
  const rough = range / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough) ?? rough;
}

/** Returns the distribution of the values over at most about fifty intervals. */
export function histogram(values: (number | null)[]): Histogram {
  const there = sorted(values);
  const [min, max] = [there[0] ?? 0, there.at(-1) ?? 0];
  const parts = Math.min(50, Math.max(5, Math.ceil(Math.sqrt(there.length))));
  const width = max > min ? niceStep(max - min, parts) : 1;
  // A quotient can be slightly below the whole number that it is in decimals: 35.3 / 0.1.
  const place = (value: number) => {
    const quotient = value / width;
    return Math.floor(quotient + Math.max(1, Math.abs(quotient)) * 1e-12);
  };
  const first = place(min);
  const counts = new Array<number>(place(max) - first + 1).fill(0);
  for (const value of there) {
    const at = place(value) - first;
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return { starts: counts.map((_, at) => (first + at) * width), counts, width };
}

/** Returns count, range and median of the values. */
export function summary(values: (number | null)[]): Summary {
  const there = sorted(values);
  const middle = there.length / 2;
  const median = ((there[Math.ceil(middle) - 1] ?? 0) + (there[Math.floor(middle)] ?? 0)) / 2;
  const mean = there.reduce((sum, value) => sum + value, 0) / Math.max(1, there.length);
  return {
    count: there.length,
    missing: values.length - there.length,
    min: there[0] ?? 0,
    median,
    mean,
    max: there.at(-1) ?? 0,
  };
}

const [MINUTE, DAY] = [60, 86_400];

/**
 * Returns the labels of times on an axis, in the form of ISO 8601 as in the table. `step` is the
 * distance of the labels in seconds. Below a day, the date follows where it changes.
 */
export function timeLabels(times: number[], step: number): string[] {
  let former = "";
  return times.map((time) => {
    const iso = new Date(time * 1000).toISOString();
    if (step >= DAY) return iso.slice(0, step >= 365 * DAY ? 4 : step >= 28 * DAY ? 7 : 10);
    const [date, clock] = [iso.slice(0, 10), iso.slice(11, step >= MINUTE ? 16 : 19)];
    const isNew = date !== former;
    former = date;
    return isNew ? `${clock}\n${date}` : clock;
  });
}
