// Result sets as files.
import type { Result } from "./protocol";

/** The JSON text of a cell. */
export function cellText(result: Result, row: number, column: number): string {
  const at = 2 * (row * result.columns.length + column);
  return result.text.slice(result.cells[at], result.cells[at + 1]);
}

/** A piece of a text that some reader of CSV takes for a cell: with the separator at its end. Commas separate nothing inside of quotes. */
const PIECE = /[^;\t|\r\n]*[;\t|\r\n]|[^;\t|\r\n]+$/g;
/** What readers drop at the start of a cell: white space, controls, what nobody sees, quotes. */
const DROPPED = "\\p{Cc}\\p{Default_Ignorable_Code_Point}\\p{Quotation_Mark}`´\uff40";
/** A piece that a spreadsheet would run: a dash, or what is compatible with another sign of formulas, behind what readers drop. */
const FORMULA = new RegExp(`^[\\s${DROPPED}]*[\\p{Dash}=+@⁺⁼₊₌\ufb29﹢﹦﹫＋＝＠]`, "u");
/** A text that begins, behind blanks and quotes, with a tab or an end of line: some readers drop those. */
const CONTROL = new RegExp(`^(?:[^\\S\\t\\r\\n]|(?![\\t\\r\\n])[${DROPPED}])*[\\t\\r\\n]`, "u");
/** A text without a character that separates cells, quotes, calls or combines. */
const PLAIN = /^[\p{Alphabetic}\p{N} _.:/#[\]-]+$/u;

/** The text with an apostrophe before each piece that a spreadsheet would run. The rule is that of `crates/aqlite-engine/src/answer/csv_guard.rs`. */
function guarded(text: string): string {
  const pieces = text.match(PIECE) ?? [];
  return pieces
    .map((piece, at) =>
      FORMULA.test(piece) || (at === 0 && CONTROL.test(text)) ? `'${piece}` : piece,
    )
    .join("");
}

/** Writes a text as a field of RFC 4180 that no spreadsheet runs. */
export function textField(text: string): string {
  const safe = guarded(text);
  return PLAIN.test(safe) && safe.trim() === safe ? safe : `"${safe.replaceAll('"', '""')}"`;
}

/** A field: numbers and truth values as they are, null as nothing, everything else as a text. */
function field(json: string): string {
  if (json === "null") return "";
  if (/^["{[]/.test(json))
    return textField(json.startsWith('"') ? (JSON.parse(json) as string) : json);
  return json;
}

/** RFC 4180, numbers with the digits that were stored, objects as JSON. */
export function csv(result: Result): string {
  const lines = [result.columns.map(({ name }) => field(JSON.stringify(name))).join(",")];
  for (let row = 0; row < result.rows; row += 1) {
    lines.push(result.columns.map((_, column) => field(cellText(result, row, column))).join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

/** One JSON object a row, by the names of the columns (a name that comes again gets a number), digits kept. */
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
