// Calls of the module.
import { AqliteError } from "./errors";
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

function ofModule(error: unknown): Error {
  if (error instanceof AqliteError || error instanceof TypeError) return error;
  const { message = String(error), diagnostics = [] } = (error ?? {}) as {
    message?: string;
    diagnostics?: Diagnostic[];
  };
  if (!isPanic(error))
    return new AqliteError(message, {
      code: diagnostics[0]?.code ?? "",
      diagnostics,
      cause: error,
    });
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
