// What goes wrong, as one class.

/** What a call of this package fails with. */
export class AqliteError extends Error {
  constructor(message, { code = "", status = 0, diagnostics = [], cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "AqliteError";
    this.code = code;
    this.status = status;
    this.diagnostics = diagnostics;
  }
}

/** An error that says the same in the words of `AbortSignal`. */
export function aborted(message) {
  const error = new AqliteError(message, { code: "ABORTED" });
  error.name = "AbortError";
  return error;
}

/** What the module threw. */
export function ofModule(error) {
  if (!isPanic(error)) return new AqliteError(error?.message ?? String(error), { code: error?.diagnostics?.[0]?.code, diagnostics: error?.diagnostics, cause: error });
  const help = "the memory of the module cannot be trusted any more: start it anew, in a new worker or process, and open the repository again";
  return new AqliteError(`${error.message}; ${help}`, { code: "PANIC", cause: error });
}

/** After these the instance is lost. */
export function isPanic(error) {
  return error instanceof WebAssembly.RuntimeError || error instanceof RangeError || error?.name === "Panic";
}

/** What an answer of the REST interface says is wrong. */
export function ofAnswer({ status, body }) {
  const said = parsed(body);
  const diagnostics = (said.errors ?? []).map(diagnostic);
  return new AqliteError(said.message ?? `answered with status ${status}`, { code: diagnostics[0]?.code, status, diagnostics });
}

function parsed(body) {
  try {
    return JSON.parse(body) ?? {};
  } catch {
    return {};
  }
}

/** A DV_CODED_TEXT with metadata, as a diagnostic. */
function diagnostic({ value, defining_code, ...more }) {
  const found = { severity: more._severity ?? "error", code: defining_code?.code_string ?? "", message: value };
  for (const [key, text] of Object.entries(more)) {
    if (key !== "_type" && key !== "_severity" && key.startsWith("_")) found[key.slice(1)] = text;
  }
  return found;
}
