// The entry module of a worker whose KV namespace and R2 bucket misbehave. It runs in workerd; the
// binding `FAULTS` selects the faults:
//
// | fault | meaning |
// |---|---|
// | `stale` | a key that was read once is answered in the same way for ever, also if it was absent: a cache of a distant location that never expires |
// | `failing` | every second reading and writing fails |
// | `hanging` | a reading never ends |
import worker from "../../../dist/worker/index.js";

/** Milliseconds beyond every limit of a request. */
const FOREVER = 600_000;
/** The answers of readings, by key and type. They belong to the isolate, as a location has a cache. */
const seen = new Map();
let operations = 0;

/** Returns a store whose operations have the faults of its environment. */
function faulty(store, faults) {
  const fail = () => {
    operations += 1;
    if (faults.includes("failing") && operations % 2 === 0) throw new Error("the store is away");
  };
  const read = async (key, options) => {
    fail();
    if (faults.includes("hanging")) await new Promise((resolve) => setTimeout(resolve, FOREVER));
    if (!faults.includes("stale")) return store.get(key, options);
    const name = `${key} ${JSON.stringify(options ?? null)}`;
    if (!seen.has(name)) seen.set(name, await store.get(key, options));
    const found = seen.get(name);
    // The reader may detach a buffer.
    return found instanceof ArrayBuffer ? found.slice(0) : found;
  };
  const write = async (...given) => {
    fail();
    return store.put(...given);
  };
  return {
    get: read,
    getWithMetadata: (...given) => store.getWithMetadata(...given),
    put: write,
    list: (...given) => store.list(...given),
    delete: (...given) => store.delete(...given),
  };
}

const withFaults = (env) => ({ ...env, BLOBS: faulty(env.BLOBS, env.FAULTS ?? "") });

export default {
  fetch: (request, env, context) => worker.fetch(request, withFaults(env), context),
  scheduled: (event, env, context) => worker.scheduled(event, withFaults(env), context),
};
