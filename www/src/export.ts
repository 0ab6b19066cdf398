// Result sets as files.
import type { Result } from "./protocol";

declare const TABLES_URL: string;

/** The file types of tables. */
export const TABLES = {
  arrow: { name: "result.arrows", type: "application/vnd.apache.arrow.stream" },
  parquet: { name: "result.parquet", type: "application/vnd.apache.parquet" },
};

/** Writes a result as a table with typed columns. The first call loads the module of tables. */
export async function table(result: Result, q: string, format: keyof typeof TABLES): Promise<Blob> {
  const { write } = (await import(
    new URL(TABLES_URL, document.baseURI).href
  )) as typeof import("./tables");
  return new Blob([await write(result.text, q, format)], { type: TABLES[format].type });
}

/** Returns the JSON text of a cell. */
export function cellText(result: Result, row: number, column: number): string {
  const at = 2 * (row * result.columns.length + column);
  return result.text.slice(result.cells[at], result.cells[at + 1]);
}

/**
 * A piece of a text that some reader of CSV interprets as a cell, with the separator at its end. A
 * comma inside quotes does not separate.
 */
const PIECE = /[^;\t|\r\n]*[;\t|\r\n]|[^;\t|\r\n]+$/g;
/**
 * Characters that readers remove at the start of a cell: white space, controls, invisible
 * characters, quotes.
 */
const DROPPED = "\\p{Cc}\\p{Default_Ignorable_Code_Point}\\p{Quotation_Mark}`´\uff40";
/**
 * The start of a piece that a spreadsheet would execute: a formula sign, or a Unicode variant of a
 * formula sign, after characters that readers remove.
 */
const FORMULA = new RegExp(`^[\\s${DROPPED}]*[\\p{Dash}=+@⁺⁼₊₌\ufb29﹢﹦﹫＋＝＠]`, "u");
/**
 * A text that starts with a tab or a line end, after blanks and quotes. Some readers remove them, and
 * then interpret the rest.
 */
const CONTROL = new RegExp(`^(?:[^\\S\\t\\r\\n]|(?![\\t\\r\\n])[${DROPPED}])*[\\t\\r\\n]`, "u");
/** A text without characters that separate cells, quote, call or combine. */
const PLAIN = /^[\p{Alphabetic}\p{N} _.:/#[\]-]+$/u;

/**
 * Inserts an apostrophe before each piece that a spreadsheet would execute.
 * `crates/aqlite-engine/src/answer/csv_guard.rs` has the same rule.
 */
function guarded(text: string): string {
  const pieces = text.match(PIECE) ?? [];
  return pieces
    .map((piece, at) =>
      FORMULA.test(piece) || (at === 0 && CONTROL.test(text)) ? `'${piece}` : piece,
    )
    .join("");
}

/** Writes a text as a field of RFC 4180 that no spreadsheet executes. */
export function textField(text: string): string {
  const safe = guarded(text);
  return PLAIN.test(safe) && safe.trim() === safe ? safe : `"${safe.replaceAll('"', '""')}"`;
}

/**
 * Writes a field: numbers and booleans unchanged, null as an empty field, everything else as a
 * text.
 */
function field(json: string): string {
  if (json === "null") return "";
  if (/^["{[]/.test(json))
    return textField(json.startsWith('"') ? (JSON.parse(json) as string) : json);
  return json;
}

/** Writes RFC 4180. Numbers keep their stored digits, objects are JSON. */
export function csv(result: Result): string {
  const lines = [result.columns.map(({ name }) => field(JSON.stringify(name))).join(",")];
  for (let row = 0; row < result.rows; row += 1) {
    lines.push(result.columns.map((_, column) => field(cellText(result, row, column))).join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

/**
 * Writes one JSON object per row with the names of the columns. A repeated name gets a number.
 * Digits are kept.
 */
export function ndjson(result: Result): string {
  const names = distinct(result.columns.map(({ name }) => name)).map((name) =>
    JSON.stringify(name),
  );
  const line = (row: number) =>
    `{${names.map((name, column) => `${name}:${cellText(result, row, column)}`).join(",")}}\n`;
  return Array.from({ length: result.rows }, (_, row) => line(row)).join("");
}

function distinct(names: string[]): string[] {
  const seen = new Set<string>();
  return names.map((name) => {
    let one = name;
    for (let number = 2; seen.has(one); number += 1) one = `${name}_${number}`;
    seen.add(one);
    return one;
  });
}
