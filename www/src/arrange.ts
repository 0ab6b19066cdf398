// The order and the selection of the rows of a result in the grid: sorted by one column, filtered by
// any. The result itself, its exports and its chart stay as they are.
import { view } from "./cell";
import { cellText } from "./export";
import { numberOf, seconds, withoutStatus } from "./series";
import type { Result } from "./protocol";

/** The order of rows by a column. */
export interface Order {
  column: number;
  descending: boolean;
}

/** The sort key of a cell. Numbers come before texts, and cells without a value come last. */
type Key = number | string | null;

/** A text that starts with a date. Its sort key is the number of seconds since 1970. */
const DATED = /^\d{4}-\d\d/;

function keyOf(json: string): Key {
  const number = numberOf(json);
  if (number) return number.value;
  const { kind, text } = view(json);
  if (kind === "null" || text === "") return null;
  const exact = withoutStatus(text);
  return (DATED.test(exact) ? seconds(exact) : null) ?? text;
}

const letters = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function compare(a: Key, b: Key): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return letters.compare(a, b);
  return typeof a === "number" ? -1 : 1;
}

/** A condition of a filter on the text of a cell. */
type Condition = (json: string, shown: string) => boolean;

/**
 * Reads a filter: `>=140`, `<5`, `=text`, `!=text`, or a part of the text, in any letter case.
 * Comparisons are numeric if the operand is a number, else by the beginning of a date or a text.
 */
export function condition(written: string): Condition {
  const found = /^(<=|>=|!=|=|<|>)\s*(.+)$/.exec(written.trim());
  const sought = (found?.[2] ?? written).trim().toLowerCase();
  if (!found) return (_, shown) => shown.toLowerCase().includes(sought);
  const [, operator = ""] = found;
  const operand = Number(sought);
  const isNumber = sought !== "" && !Number.isNaN(operand);
  return (json, shown) => {
    const number = isNumber ? numberOf(json) : null;
    if (isNumber && !number) return operator === "!=";
    const order = number ? number.value - operand : letters.compare(shown, sought);
    const holds: Record<string, boolean> = {
      "<": order < 0,
      "<=": order <= 0,
      ">": order > 0,
      ">=": order >= 0,
      "=": order === 0,
      "!=": order !== 0,
    };
    return shown !== "" && (holds[operator] ?? false);
  };
}

/**
 * Returns the indices of the rows that match all filters (by column, empty for none), in the order.
 * Rows with equal keys keep the order of the query; cells without a value are last.
 */
export function arranged(
  result: Result,
  filters: string[],
  order: Order | null,
  label: (row: number, column: number) => string = () => "",
): Uint32Array {
  const conditions = filters.flatMap((written, column) =>
    written.trim() === "" ? [] : [{ column, holds: condition(written) }],
  );
  const rows: number[] = [];
  for (let row = 0; row < result.rows; row += 1) {
    const matches = conditions.every(({ column, holds }) => {
      const json = cellText(result, row, column);
      const shown = [view(json).text, label(row, column)].filter(Boolean).join(" ");
      return holds(json, shown);
    });
    if (matches) rows.push(row);
  }
  if (order) {
    const keys = new Map(rows.map((row) => [row, keyOf(cellText(result, row, order.column))]));
    const sign = order.descending ? -1 : 1;
    rows.sort((one, other) => {
      const [a = null, b = null] = [keys.get(one), keys.get(other)];
      if (a === null || b === null) return Number(a === null) - Number(b === null);
      return sign * compare(a, b);
    });
  }
  return Uint32Array.from(rows);
}
