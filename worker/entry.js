// Entry module of the worker: hands events to the wasm instance, and replaces the instance after an abort.
import * as aqlite from "aqlite-worker";

const state = aqlite.__worker_init_state();

function reviveAfterAbort() {
  if (!state.criticalError) return;
  aqlite.__wbg_reset_state();
  state.criticalError = false;
  state.instanceId += 1;
}

function note(error) {
  if (error instanceof WebAssembly.RuntimeError) state.criticalError = true;
}

addEventListener("error", (event) => note(event.error));

async function guarded(handler, event, env, context) {
  reviveAfterAbort();
  try {
    return await handler(event, env, context);
  } catch (error) {
    note(error);
    throw error;
  }
}

export default {
  async fetch(request, env, context) {
    try {
      return await guarded(aqlite.fetch, request, env, context);
    } catch {
      const message = "internal error: the request was not carried out";
      return Response.json({ error: "Internal Server Error", message, code: 500, errors: [] }, { status: 500 });
    }
  },
  async scheduled(event, env, context) {
    await guarded(aqlite.scheduled, event, env, context);
  },
};
