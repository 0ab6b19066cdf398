// D1 in a process of its own, as in Cloudflare: miniflare runs it in the process of the worker, whose memory would include it.
import { Miniflare } from "miniflare";

/** The header by which the process of the worker names a database. */
const DATABASE = "x-database";
/** A binding of miniflare with this prefix is the service of the database itself. */
const RAW = "__D1_BETA__";

/** Starts the databases, whose names in the worker are the keys of `databases`, in a process of their own. */
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

/** The plugin of miniflare: bindings as the runtime makes them for D1, whose service is at an address. */
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
