// The error class of the package, and its codes.
import type { DiagnosticCode, StatusCode } from "./codes";
import type { Diagnostic, RestAnswer } from "./types";

/** The codes of errors that no text, document or request caused. */
export type HostCode =
  /** `timeout` or `shouldStop` ended the query. The name of the error is `AbortError`. */
  | "ABORTED"
  /** An argument has a wrong type or form. */
  | "ARGUMENT"
  /** The repository was closed. */
  | "CLOSED"
  /** The result was freed. */
  | "FREED"
  /** Lines of an import were refused. */
  | "IMPORT"
  /** Stored writes cannot be read. */
  | "JOURNAL"
  /** Another process uses the folder. */
  | "LOCKED"
  /** The module cannot be loaded. */
  | "MODULE"
  /** The module was not started. */
  | "NOT_STARTED"
  /** The module failed, and cannot be used any more. */
  | "PANIC"
  /** A sample patient was refused, because it exists for instance. */
  | "SAMPLES"
  /** The files of the data set cannot be read or written. */
  | "STORAGE"
  /** The repository in memory failed. */
  | "STORE";

/** The codes of queries that exceed a limit. */
export type LimitCode =
  "RESULT_TOO_LARGE" | "TOO_MANY_COMBINATIONS" | "TOO_MANY_ROWS" | "TOO_MUCH_WORK";

/** The codes of errors. A code keeps its meaning in later releases, which may add others. */
export type ErrorCode = DiagnosticCode | HostCode | LimitCode | StatusCode;

/** The error of any call of this package. */
export class AqliteError extends Error {
  override name = "AqliteError";
  /** A stable code: of the first error among the diagnostics (`AQL0203`), or of the cause. */
  readonly code: ErrorCode;
  /** The HTTP status of the REST interface, if the error is one of its answers; else 0. */
  readonly status: number;
  /** All problems, the most important first. */
  readonly diagnostics: Diagnostic[];

  /** @internal */
  constructor(
    message: string,
    {
      code,
      status = 0,
      diagnostics = [],
      cause,
    }: { code: ErrorCode; status?: number; diagnostics?: Diagnostic[]; cause?: unknown },
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.diagnostics = diagnostics;
  }
}

/**
 * Creates an error like that of `AbortSignal`.
 * @internal
 */
export function aborted(message: string): AqliteError {
  const error = new AqliteError(message, { code: "ABORTED" });
  error.name = "AbortError";
  return error;
}

/**
 * Creates the error of a refusal by the REST interface.
 * @internal
 */
export function ofAnswer({ status, body, code }: RestAnswer): AqliteError {
  const said = parsed(body);
  const diagnostics = (said.errors ?? []).map(diagnostic);
  return new AqliteError(said.message ?? `answered with status ${status}`, {
    code: code ?? "INTERNAL_SERVER_ERROR",
    status,
    diagnostics,
  });
}

/** An entry of `errors`: a DV_CODED_TEXT with additional members behind underscores. */
interface Coded {
  value: string;
  defining_code?: { code_string?: string };
  _severity?: "error" | "warning";
  [more: string]: unknown;
}

function parsed(body: string): { message?: string; errors?: Coded[] } {
  try {
    return (JSON.parse(body) ?? {}) as { message?: string; errors?: Coded[] };
  } catch {
    return {};
  }
}

function diagnostic({ value, defining_code, ...more }: Coded): Diagnostic {
  const known = Object.entries(more).filter(
    ([key]) => key !== "_type" && key !== "_severity" && key.startsWith("_"),
  );
  const rest = Object.fromEntries(known.map(([key, text]) => [key.slice(1), text]));
  return {
    severity: more._severity ?? "error",
    code: defining_code?.code_string as DiagnosticCode,
    message: value,
    ...rest,
  };
}

/**
 * Returns the reason of a failure.
 * @internal
 */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
