// Checks of arguments, for callers without types. A wrong argument is an error with the code `ARGUMENT`,
// before anything is done.
import { AqliteError, reasonOf } from "./errors";

/** The largest integer that the module takes. */
export const LARGEST = 2 ** 32 - 1;

/** Creates the error of a wrong argument. */
export function wrong(message: string, cause?: unknown): AqliteError {
  return new AqliteError(message, { code: "ARGUMENT", cause });
}

/** Creates the error of an argument of another type. */
function ofType(argument: string, value: unknown, form: string): AqliteError {
  const type = Array.isArray(value) ? "array" : typeof value;
  return wrong(`${argument} is ${value === null ? "null" : `of type ${type}`}, expected ${form}`);
}

/** Creates the error of an argument whose type may be right. */
function outside(argument: string, value: unknown, form: string): AqliteError {
  const isShown = typeof value === "number" || typeof value === "string";
  return isShown
    ? wrong(`${argument} is \`${value}\`, expected ${form}`)
    : ofType(argument, value, form);
}

/** Returns a text, also one that is being written and has half of a character at its end. */
export function draft(value: string, argument = "the query"): string {
  if (typeof value === "string") return value;
  throw ofType(argument, value, "a text");
}

/** Returns a text of whole characters. The module would replace half of a surrogate pair. */
export function text(value: string, argument = "the query"): string {
  const at = draft(value, argument).search(/[\ud800-\udfff]/u);
  if (at < 0) return value;
  throw wrong(
    `${argument} has half of a surrogate pair at offset ${at}, expected whole characters`,
  );
}

/** Returns a name or an id, which is not empty. */
export function id(value: string, argument: string): string {
  if (text(value, argument).trim() !== "") return value;
  throw wrong(`${argument} is empty`);
}

/** Returns the result of a check, or `undefined` for an absent argument. */
export function optional<T, Args extends unknown[]>(
  check: (value: T, argument: string, ...args: Args) => T,
  value: T | undefined,
  argument: string,
  ...args: Args
): T | undefined {
  return value === undefined ? undefined : check(value, argument, ...args);
}

export function integer(value: number, argument: string, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw outside(argument, value, `an integer from ${min} to ${max}`);
}

export function finite(value: number, argument: string): number {
  if (Number.isFinite(value)) return value;
  throw outside(argument, value, "a finite number");
}

/** Returns a duration in milliseconds. */
export function duration(value: number, argument: string): number {
  if (typeof value === "number" && value >= 0) return value;
  throw outside(argument, value, "a number of milliseconds");
}

export function flag(value: boolean, argument: string): boolean {
  if (typeof value === "boolean") return value;
  throw ofType(argument, value, "true or false");
}

/** Returns one of the listed texts. */
export function choice<T extends string>(value: T, argument: string, list: readonly T[]): T {
  if (list.includes(value)) return value;
  throw outside(argument, value, `one of ${list.map((one) => `\`${one}\``).join(", ")}`);
}

/** Returns a function that the package calls. */
export function callback<T>(value: T, argument: string): T {
  if (typeof value === "function") return value;
  throw ofType(argument, value, "a function");
}

/** Returns an object of options or of members: no list, and no `Map`, whose members are elsewhere. */
export function object<T extends object>(value: T, argument = "`options`"): T {
  const form = Object.prototype.toString.call(value);
  if (typeof value === "object" && form === "[object Object]") return value;
  throw ofType(argument, value, "an object");
}

/** Returns an object whose members are texts. */
export function texts(value: Record<string, string>, argument: string): Record<string, string> {
  for (const [name, member] of Object.entries(object(value, argument)))
    text(member, `\`${name}\` of ${argument}`);
  return value;
}

/** Prints a time. An invalid date is an error. */
export function moment(now: Date): string {
  if (now instanceof Date && !Number.isNaN(now.getTime())) return now.toISOString();
  throw wrong("`now` is no valid `Date`");
}

/**
 * Prints an argument as JSON. A value without a JSON form, such as a `bigint` or a number that is not
 * finite, is an error.
 */
export function json(value: object, argument: string): string {
  const checked = (name: string, member: unknown) => {
    if (typeof member !== "number" || Number.isFinite(member)) return member;
    throw new TypeError(`\`${name}\` is ${member}`);
  };
  let printed: string | undefined;
  try {
    printed = JSON.stringify(value, checked);
  } catch (error) {
    const why = reasonOf(error);
    throw wrong(`${argument} cannot be written as JSON: ${why}`, error);
  }
  if (printed !== undefined) return printed;
  throw ofType(argument, value, "a value with a JSON form");
}

/** Returns a document: a text, or the JSON of an object. */
export function document(value: string | object, argument: string): string {
  return typeof value === "object" && value !== null
    ? json(value, argument)
    : text(value, argument);
}
