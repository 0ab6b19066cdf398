// Entry module of the worker: hands events to the wasm instance, and replaces the instance after an abort.
import * as aqlite from "aqlite-worker";
import { collectReplaced } from "./garbage.js";

const state = aqlite.__worker_init_state();

/** Bytes that the memory of an instance may have more than at its start while nobody asks anything. */
const SPARE = 72 * 1024 * 1024;

/**
 * Replacements of grown instances at most. A collection frees the memory of each, and leaves two megabytes behind
 * (garbage.js): a larger instance takes less in the long run.
 */
const REPLACEMENTS = 25;

/** Grown instances that were replaced. */
let replacements = 0;
/** Requests that are being handled. */
let open = 0;
/** Bytes of the memory of an instance before its first request. */
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
 * Gives memory back once no request is open. An instance whose memory grew is replaced, because wasm memory never
 * shrinks.
 */
function giveMemoryBack() {
  if (open > 0 || state.criticalError) return;
  const isGrown = aqlite.replaceable_bytes() > initial + SPARE;
  if (!isGrown || replacements >= REPLACEMENTS) return aqlite.collect_idle_garbage();
  replacements += 1;
  replace();
  collectReplaced();
}

function note(error) {
  if (error instanceof WebAssembly.RuntimeError) state.criticalError = true;
}

addEventListener("error", (event) => note(event.error));

async function guarded(handler, event, env, context) {
  reviveAfterAbort();
  initial ??= aqlite.replaceable_bytes();
  open += 1;
  try {
    return await handler(event, env, context);
  } catch (error) {
    note(error);
    throw error;
  } finally {
    open -= 1;
    giveMemoryBack();
  }
}

/** Whether segments are being written. */
let compacting = false;

/** Writes segments behind a request, if enough rows are in none. */
async function compact() {
  if (compacting || state.criticalError) return;
  compacting = true;
  try {
    await guarded(aqlite.compact);
  } catch (error) {
    console.error(JSON.stringify({ level: "error", problem: String(error).slice(0, 500) }));
  } finally {
    compacting = false;
  }
}

/** The answer to a request that ended in an abort. */
function failed(request, error) {
  const sent = request.headers.get("x-request-id") ?? "";
  const id = /^[\w.-]{1,64}$/.test(sent) ? sent : crypto.randomUUID();
  console.error(
    JSON.stringify({
      level: "error",
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
    // Work goes on to its end where the client goes away: the runtime would drop it, and what it holds would never be given back.
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
