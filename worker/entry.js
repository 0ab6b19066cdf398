// The entry module of the worker. It passes events to the wasm instance, and replaces the instance
// after an abort.
import * as aqlite from "aqlite-worker";
import { collectReplaced } from "./garbage.js";

const state = aqlite.__worker_init_state();

/** The bytes by which an idle instance may have grown. Queries of a million documents need 88 MiB. */
const SPARE = 96 * 1024 * 1024;

/**
 * The maximum number of replacements of grown instances in the life of an isolate. Each replacement
 * needs a garbage collection, which leaks about two megabytes (garbage.js). After this number, a
 * larger instance costs less memory than further leaks.
 */
const REPLACEMENTS = 25;

/** The number of grown instances that were replaced. */
let replacements = 0;
/** The number of requests that are being handled. */
let open = 0;
/** The bytes of memory of an instance before its first request. */
let initial;

function replace() {
  aqlite.__wbg_reset_state();
  state.criticalError = false;
  state.instanceId += 1;
}

function reviveAfterAbort() {
  if (state.criticalError) replace();
}

/**
 * Releases memory when no request is open. An instance whose memory grew is replaced, because wasm
 * memory never shrinks.
 */
function releaseMemory() {
  if (open > 0 || state.criticalError) return;
  const isGrown = aqlite.replaceable_bytes() > initial + SPARE;
  if (!isGrown || replacements >= REPLACEMENTS) return aqlite.collect_idle_garbage();
  replacements += 1;
  replace();
  collectReplaced();
}

/** Marks the instance as unusable if the error is a trap of wasm: its memory may be inconsistent. */
function recordTrap(error) {
  if (error instanceof WebAssembly.RuntimeError) state.criticalError = true;
}

addEventListener("error", (event) => recordTrap(event.error));

async function guarded(handler, event, env, context) {
  reviveAfterAbort();
  initial ??= aqlite.replaceable_bytes();
  open += 1;
  try {
    return await handler(event, env, context);
  } catch (error) {
    recordTrap(error);
    throw error;
  } finally {
    open -= 1;
    releaseMemory();
  }
}

/** Whether segments are being written. */
let compacting = false;

/** Writes segments after a response, if enough rows are not in a segment yet. */
async function compact() {
  if (compacting || state.criticalError) return;
  compacting = true;
  try {
    await guarded(aqlite.compact);
  } catch (error) {
    console.error(JSON.stringify({ level: "ERROR", problem: String(error).slice(0, 500) }));
  } finally {
    compacting = false;
  }
}

/** Returns the response to a request that ended in an abort. */
function failed(request, error) {
  const sent = request.headers.get("x-request-id") ?? "";
  const id = /^[\w.-]{1,64}$/.test(sent) ? sent : crypto.randomUUID();
  console.error(
    JSON.stringify({
      level: "ERROR",
      request_id: id,
      method: request.method,
      status: 500,
      problem: String(error).slice(0, 500),
    }),
  );
  const message = "internal error: the request was not carried out";
  const headers = { "cache-control": "no-store", "x-request-id": id };
  return Response.json(
    { error: "Internal Server Error", message, code: 500, errors: [] },
    { status: 500, headers },
  );
}

export default {
  async fetch(request, env, context) {
    const answer = guarded(aqlite.fetch, request, env, context);
    // Without `waitUntil`, the runtime drops the work of a request whose client disconnects. The
    // permits and the memory that this work holds would then never be returned.
    context.waitUntil?.(
      answer.then(
        () => compact(),
        () => {},
      ),
    );
    try {
      return await answer;
    } catch (error) {
      return failed(request, error);
    }
  },
  async scheduled(event, env, context) {
    await guarded(aqlite.scheduled, event, env, context);
  },
};
