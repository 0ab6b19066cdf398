// D1 in a process of its own, as at Cloudflare. miniflare runs D1 in the process of the worker, so that
// the memory of D1 would count as memory of the worker.
import { Miniflare } from "miniflare";

/** The header with the name of the database in requests of the worker's process. */
const DATABASE = "x-database";
/** A binding of miniflare with this prefix is the service of the database itself. */
const RAW = "__D1_BETA__";

/** Starts the databases in a process of their own. The keys of `databases` are the names of the bindings. */
export async function startDatabases(databases, d1Persist) {
  const named = Object.entries(databases).map(([name, id]) => [`${RAW}${name}`, id]);
  const runtime = new Miniflare({
    host: "127.0.0.1",
    port: 0,
    modules: true,
    script: `export default {
      fetch: (request, env) => env["${RAW}" + request.headers.get("${DATABASE}")].fetch(request),
    };`,
    d1Databases: Object.fromEntries(named),
    d1Persist,
  });
  const { host } = await runtime.ready;
  const binding = (name) => ({
    name,
    type: "d1",
    plugin: { package: new URL(import.meta.url).pathname, name: "apart" },
    options: { address: host },
  });
  return { runtime, bindings: Object.keys(databases).map(binding) };
}

const service = (name) => `apart:${name}`;

/** The plugin of miniflare. It creates D1 bindings whose service is at an address. */
export const plugins = {
  apart: {
    options: { parse: (options) => options },
    getBindings: (bindings) =>
      (bindings ?? []).map(({ name }) => ({
        name,
        wrapped: {
          moduleName: "cloudflare-internal:d1-api",
          innerBindings: [{ name: "fetcher", service: { name: service(name) } }],
        },
      })),
    getNodeBindings: () => ({}),
    getServices: ({ options }) =>
      (options ?? []).map(({ name, options: { address } }) => ({
        name: service(name),
        external: { address, http: { injectRequestHeaders: [{ name: DATABASE, value: name }] } },
      })),
  },
};
