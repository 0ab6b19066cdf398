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

/**
 * Frees an object of the module. A module that has failed cannot free it. The error of that failure
 * was thrown, and is not hidden by another one.
 */
export function release(held: { free(): void } | undefined): void {
  try {
    held?.free();
  } catch {
    // See above.
  }
}
