// Calls of the module.
import { AqliteError, type ErrorCode } from "./errors";
import { started } from "./start";
import type { Diagnostic } from "./types";

/** Calls the module, once it is started. Its exceptions become errors of this package. */
export function guarded<T>(call: () => T): T {
  started();
  try {
    return call();
  } catch (error) {
    throw ofModule(error);
  }
}

/** An exception of the module: an `Error` with these members. */
interface Thrown {
  message?: string;
  code?: ErrorCode;
  diagnostics?: Diagnostic[];
}

function ofModule(error: unknown): Error {
  if (error instanceof AqliteError) return error;
  const { message = String(error), code, diagnostics = [] } = (error ?? {}) as Thrown;
  if (error instanceof TypeError)
    return new AqliteError(message, { code: "ARGUMENT", cause: error });
  if (code !== undefined && !isPanic(error))
    return new AqliteError(message, { code, diagnostics, cause: error });
  const help =
    "the memory of the module cannot be trusted any more: start it anew, in a new worker or process, and open the repository again";
  return new AqliteError(`${message}; ${help}`, { code: "PANIC", cause: error });
}

/** Whether the error makes the instance unusable. */
function isPanic(error: unknown): boolean {
  return (
    error instanceof WebAssembly.RuntimeError ||
    error instanceof RangeError ||
    (error instanceof Error && error.name === "Panic")
  );
}

/** Checks that an argument is a text, for callers without types. */
export function text(value: string, what = "query"): string {
  if (typeof value === "string") return value;
  throw new AqliteError(
    `the ${what} is ${value === null ? "null" : `of type ${typeof value}`}, expected a text`,
    { code: "ARGUMENT" },
  );
}

/** Prints a time. An invalid date is an error. */
export function moment(now: Date): string {
  if (now instanceof Date && !Number.isNaN(now.getTime())) return now.toISOString();
  throw new AqliteError("`now` is no valid `Date`", { code: "ARGUMENT" });
}

/** Prints an argument as JSON. A value without a JSON form, such as a `bigint`, is an error. */
export function json(value: unknown, what: string): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw new AqliteError(
      `${what} cannot be written as JSON: ${error instanceof Error ? error.message : String(error)}`,
      { code: "ARGUMENT", cause: error },
    );
  }
}
