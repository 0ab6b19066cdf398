// A JSON parser that keeps every digit: numbers stay texts, as in the source.
//
// `JSON.parse` with access to the source text could replace `parse`, but not the scanner below it:
// `indexResult` and `resultPage` need the positions of cells and rows. Runtimes without that access
// (Safari before 18.4, Firefox before 135, Node 20) would still need `parse`, and the unit tests run
// in Node 20. So the page has one parser for all, of twenty lines on top of the scanner.

/** A number with its original digits. */
export class NumberText {
  constructor(readonly text: string) {}
}

/** A JSON value whose numbers are texts. */
export type Json = null | boolean | string | NumberText | Json[] | { [name: string]: Json };

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;
const COLON = 58;

function skipSpace(text: string, at: number): number {
  let code = text.charCodeAt(at);
  while (code === 32 || code === 10 || code === 13 || code === 9) code = text.charCodeAt((at += 1));
  return at;
}

function skipString(text: string, at: number): number {
  at += 1;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (Number.isNaN(code)) throw new SyntaxError("the JSON text ends inside a string");
    // The character behind a backslash cannot end the string.
    at += code === BACKSLASH ? 2 : 1;
  }
}

/** Returns the end of the value that starts at `at`. Brackets are counted, not matched. */
function skipValue(text: string, at: number): number {
  let depth = 0;
  for (;;) {
    const code = text.charCodeAt(at);
    if (Number.isNaN(code)) return at;
    if (code === QUOTE) {
      at = skipString(text, at);
      if (depth === 0) return at;
      continue;
    }
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && code === COMMA) return at;
    at += 1;
  }
}

/** Returns the position behind a value and its comma. */
function skipComma(text: string, at: number): number {
  at = skipSpace(text, at);
  return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at;
}

/** Returns the name of the member at `at`, and the start of its value. */
function memberAt(text: string, at: number): { name: string; start: number } {
  const end = skipString(text, at);
  const name = JSON.parse(text.slice(at, end)) as string;
  at = skipSpace(text, end);
  if (text.charCodeAt(at) !== COLON) throw new SyntaxError("expected a colon");
  return { name, start: skipSpace(text, at + 1) };
}

/** Calls `visit` with the range of each member of the object that starts at `at`. */
function members(
  text: string,
  at: number,
  visit: (name: string, start: number, end: number) => void,
): void {
  at = skipSpace(text, at + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const { name, start } = memberAt(text, at);
    const end = skipValue(text, start);
    visit(name, start, end);
    at = skipComma(text, end);
  }
}

/**
 * Calls `visit` with the range of each element of the array that starts at `at`. Returns the end of
 * the array.
 */
function elements(text: string, at: number, visit: (start: number, end: number) => void): number {
  at = skipSpace(text, at + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = skipValue(text, at);
    let stop = end;
    while (stop > at && text.charCodeAt(stop - 1) <= 32) stop -= 1;
    visit(at, stop);
    at = skipComma(text, end);
  }
  return at + 1;
}

/** The parts of a result set from which pages are joined. */
export interface ResultPage {
  meta: Record<string, unknown>;
  /** Start and end of the text between the brackets of `rows`. */
  from: number;
  to: number;
  count: number;
}

/** Finds the rows and the metadata of a result set. */
export function resultPage(text: string): ResultPage {
  const page: ResultPage = { meta: {}, from: text.length, to: text.length, count: 0 };
  members(text, skipSpace(text, 0), (name, start, end) => {
    if (name === "meta") page.meta = JSON.parse(text.slice(start, end)) as Record<string, unknown>;
    if (name !== "rows") return;
    [page.from, page.to] = [start + 1, end - 1];
    elements(text, start, () => (page.count += 1));
  });
  return page;
}

/** The cells of a result set. */
export interface ResultIndex {
  columns: { name: string; path: string | null }[];
  /** Start and end of each cell, row by row. */
  cells: Uint32Array;
  rows: number;
  meta: Record<string, unknown>;
}

/** The number of rows that are indexed in one step. */
const STEP = 500;

/** Finds the range of every cell of a result set, without building values. */
export function indexResult(text: string): ResultIndex {
  const steps = indexing(text);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Indexes a result set like `indexResult`, in short steps. */
export function* indexing(text: string): Generator<undefined, ResultIndex> {
  let columns: { name: string; path: string | null }[] = [];
  let meta: Record<string, unknown> = {};
  let cells = new Uint32Array(1024);
  let used = 0;
  let rows = 0;
  const cell = (start: number, end: number) => {
    // The size is unknown in advance. Doubling the array keeps the amortized cost of a cell constant.
    if (used + 2 > cells.length) {
      const larger = new Uint32Array(cells.length * 2);
      larger.set(cells);
      cells = larger;
    }
    cells[used] = start;
    cells[used + 1] = end;
    used += 2;
  };
  let at = skipSpace(text, skipSpace(text, 0) + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const { name, start } = memberAt(text, at);
    if (name === "rows" && text.charCodeAt(start) === OPEN_BRACKET) {
      at = skipSpace(text, start + 1);
      while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET) {
        at = skipComma(text, elements(text, at, cell));
        rows += 1;
        if (rows % STEP === 0) yield;
      }
      at = skipComma(text, at + 1);
      continue;
    }
    const end = skipValue(text, start);
    const value = () => JSON.parse(text.slice(start, end)) as unknown;
    if (name === "columns") {
      const sent = value() as { name: string; path?: string | null }[];
      columns = sent.map((column) => ({ name: column.name, path: column.path ?? null }));
    } else if (name === "meta") meta = value() as Record<string, unknown>;
    at = skipComma(text, end);
  }
  return { columns, cells: cells.slice(0, used), rows, meta };
}

/** Parses a JSON text. Numbers keep their digits. */
export function parse(text: string): Json {
  const value = (at: number, end: number): Json => {
    const code = text.charCodeAt(at);
    if (code === OPEN_BRACE) {
      const object: { [name: string]: Json } = {};
      members(text, at, (name, start, stop) => (object[name] = value(start, stop)));
      return object;
    }
    if (code === OPEN_BRACKET) {
      const list: Json[] = [];
      elements(text, at, (start, stop) => list.push(value(start, stop)));
      return list;
    }
    const word = text.slice(at, end).trim();
    if (code === QUOTE) return JSON.parse(word) as string;
    if (word === "null") return null;
    if (word === "true" || word === "false") return word === "true";
    return new NumberText(word);
  };
  const start = skipSpace(text, 0);
  return value(start, skipValue(text, start));
}

/** Prints a value, indented by two spaces. Numbers keep their digits. */
export function print(value: Json, indent = ""): string {
  if (value instanceof NumberText) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return `[\n${value.map((item) => inner + print(item, inner)).join(",\n")}\n${indent}]`;
  }
  const names = Object.entries(value);
  if (names.length === 0) return "{}";
  return `{\n${names.map(([name, item]) => `${inner}${JSON.stringify(name)}: ${print(item, inner)}`).join(",\n")}\n${indent}}`;
}
