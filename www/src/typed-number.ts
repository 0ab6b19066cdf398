// Numbers as users type them. A control of the type `number` drops a decimal comma silently in browsers
// whose language has a decimal point, so these controls are texts with a reader of their own.

const DECIMAL = /^([-\u2212]?)0*(\d+)(?:[.,](\d+))?$/;
const WHOLE = /^([-\u2212]?)0*(\d+)$/;

/** The kinds of numbers. */
export type NumberKind = "decimal" | "whole";

/**
 * Returns a typed number as JSON writes it, with the typed digits (`140,0` is `140.0`); `null` if the
 * text is not a number. One point or one comma is the decimal sign. Groups of digits are refused,
 * because `1.285` has another value where the point groups.
 */
export function numberFrom(typed: string, kind: NumberKind): string | null {
  const [, sign, whole = "", fraction] = (kind === "decimal" ? DECIMAL : WHOLE).exec(typed) ?? [];
  if (sign === undefined) return null;
  return `${sign && "-"}${whole}${fraction === undefined ? "" : `.${fraction}`}`;
}
