// AQL as a language: what an editor asks, without any data.
import { Repository as Engine, diagnose as diagnosed, format as formatted } from "./glue.js";
import { ofModule } from "./errors.js";

/** Calls the module; what it throws becomes an error of this package. */
export function guarded(call) {
  try {
    return call();
  } catch (error) {
    throw ofModule(error);
  }
}

let engine;

/** A repository without anything in it. */
function bare() {
  engine ??= new Engine("", false);
  return engine;
}

const text = (q) => {
  if (typeof q === "string") return q;
  throw new TypeError(`the query is ${q === null ? "null" : `of type ${typeof q}`}, expected a text`);
};

export function diagnose(q) {
  return guarded(() => JSON.parse(diagnosed(text(q))));
}

export function parse(q) {
  const { tokens, syntax } = guarded(() => JSON.parse(bare().explain(text(q), "{}", new Date().toISOString())));
  return { tokens, syntax, diagnostics: diagnose(q) };
}

export function format(q) {
  return guarded(() => formatted(text(q)));
}

export function complete(q, offset = q.length) {
  return guarded(() => JSON.parse(bare().complete(text(q), offset)));
}

export function hover(q, offset) {
  return guarded(() => JSON.parse(bare().hover(text(q), offset)));
}
