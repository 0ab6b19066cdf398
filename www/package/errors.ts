// The error class of the package.
import type { Diagnostic } from "./types";

/** The error of any call of this package. */
export class AqliteError extends Error {
  override name = "AqliteError";
  /**
   * A stable code: of the first diagnostic (`AQL0203`), `ABORTED`, `PANIC`; empty if there is none.
   */
  readonly code: string;
  /** The HTTP status of the REST interface, if the error is one of its answers; else 0. */
  readonly status: number;
  /** All problems, the most important first. */
  readonly diagnostics: Diagnostic[];

  /** @internal */
  constructor(
    message: string,
    {
      code = "",
      status = 0,
      diagnostics = [],
      cause,
    }: { code?: string; status?: number; diagnostics?: Diagnostic[]; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.status = status;
    this.diagnostics = diagnostics;
  }
}

/** Creates an error like that of `AbortSignal`. */
export function aborted(message: string): AqliteError {
  const error = new AqliteError(message, { code: "ABORTED" });
  error.name = "AbortError";
  return error;
}

/** Creates the error of a refusal by the REST interface. */
export function ofAnswer({ status, body }: { status: number; body: string }): AqliteError {
  const said = parsed(body);
  const diagnostics = (said.errors ?? []).map(diagnostic);
  return new AqliteError(said.message ?? `answered with status ${status}`, {
    code: diagnostics[0]?.code ?? "",
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
    code: defining_code?.code_string ?? "",
    message: value,
    ...rest,
  };
}
