// Result sets as files.
import type { Result } from "./protocol";

/** The JSON text of a cell. */
export function cellText(result: Result, row: number, column: number): string {
  const at = 2 * (row * result.columns.length + column);
  return result.text.slice(result.cells[at], result.cells[at + 1]);
}

/** A field of RFC 4180. A text that a spreadsheet would take for a formula gets an apostrophe in front. */
function field(json: string): string {
  if (json === "null") return "";
  if (!json.startsWith("\"") && !json.startsWith("{") && !json.startsWith("[")) return json;
  let text = json.startsWith("\"") ? (JSON.parse(json) as string) : json;
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll("\"", "\"\"")}"` : text;
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
  const names = distinct(result.columns.map(({ name }) => name)).map((name) => JSON.stringify(name));
  const line = (row: number) => `{${names.map((name, column) => `${name}:${cellText(result, row, column)}`).join(",")}}\n`;
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
