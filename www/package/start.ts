// The start of the module. Nothing is loaded before the first call that needs it, so that a bundler
// needs no top-level `await`.
import { initSync } from "aqlite-wasm";
import { AqliteError } from "./errors";
import type { ModuleSource, ResponseLike, UncompiledModule } from "./host";

/**
 * The access of one host to the module.
 * @internal
 */
export interface Host {
  /** Loads the module. */
  load(): Promise<WebAssembly.Module>;
  /** Loads the module of tables. Absent in hosts where the program names it. */
  loadTables?(): Promise<WebAssembly.Module>;
  /** Loads the module at once. Absent in hosts that can only wait for it. */
  loadNow?(): WebAssembly.Module;
}

let host: Host = {
  load: () =>
    Promise.reject(
      new AqliteError("`aqlite/slim` has no module of its own: call `await start(module)` first", {
        code: "NOT_STARTED",
      }),
    ),
};
let tables: Promise<WebAssembly.Module> | undefined;
let isStarted = false;
let starting: Promise<void> | undefined;

/**
 * Sets the host of this entry point.
 * @internal
 */
export function startIn(found: Host): void {
  host = found;
}

/**
 * Starts the module. Later calls have no effect.
 *
 * `Repository.open` calls it. A program calls it before it uses a function of AQL or GDL without a
 * repository, except in Node, Deno, Bun and workerd, which need no call. Without an argument the
 * module is the file `aqlite.wasm` of the package. The argument replaces it: an address, a
 * response, bytes, or a compiled module.
 *
 * A failed start throws an error with the code `MODULE`, and can be repeated.
 */
export function start(module?: ModuleSource): Promise<void> {
  if (isStarted) return Promise.resolve();
  if (module instanceof WebAssembly.Module) return Promise.resolve(run(module));
  // The type `WebAssembly.Module` has no members, so `instanceof` cannot exclude it from the union.
  starting ??= (module ? compiled(module as UncompiledModule) : host.load()).then(run);
  starting.catch(() => (starting = undefined));
  return starting;
}

/**
 * Starts the module at once where the host can, otherwise throws.
 * @internal
 */
export function started(): void {
  if (isStarted) return;
  if (!host.loadNow)
    throw new AqliteError(
      "the module is not started: call `await start()` first, or open a repository",
      { code: "NOT_STARTED" },
    );
  run(host.loadNow());
}

/**
 * Sets the module of `toArrow` and `toParquet`: the file `aqlite-arrow.wasm` of the package. Later
 * calls have no effect.
 *
 * Only workerd and `aqlite/slim` need this call. Elsewhere the first table loads the file.
 */
export async function startTables(module: ModuleSource): Promise<void> {
  const isCompiled = module instanceof WebAssembly.Module;
  // The type `WebAssembly.Module` has no members, so `instanceof` cannot exclude it from the union.
  await loadedTables(() =>
    isCompiled ? Promise.resolve(module) : compiled(module as UncompiledModule),
  );
}

/**
 * Loads the module of tables.
 * @internal
 */
export function loadedTables(load = host.loadTables): Promise<WebAssembly.Module> {
  if (!load && !tables)
    return Promise.reject(
      new AqliteError(
        "the module of tables is not started: call `await startTables(module)` with `aqlite/aqlite-arrow.wasm` first",
        { code: "NOT_STARTED" },
      ),
    );
  if (load) tables ??= load();
  const loading = tables as Promise<WebAssembly.Module>;
  loading.catch(() => (tables = undefined));
  return loading;
}

function run(module: WebAssembly.Module): void {
  if (isStarted) return;
  initSync({ module });
  isStarted = true;
}

/**
 * Creates the error of a module that cannot be loaded.
 * @internal
 */
export function notLoaded(from: string, why: string, cause?: unknown): AqliteError {
  return new AqliteError(
    `the module cannot be loaded from ${from}: ${why}; serve the file \`aqlite.wasm\` of the package there, or call \`start\` with its address first`,
    { code: "MODULE", cause },
  );
}

/**
 * Compiles a module from an address, a response or bytes.
 * @internal
 */
export async function compiled(source: UncompiledModule): Promise<WebAssembly.Module> {
  if (typeof source === "string") return fetched(source);
  if ("href" in source) return fetched(source.href);
  if ("arrayBuffer" in source) return answered(source, "the response");
  return fromBytes(source, "the bytes");
}

async function fetched(address: string): Promise<WebAssembly.Module> {
  const answer = await fetch(address).catch((error: unknown) => {
    throw notLoaded(address, error instanceof Error ? error.message : String(error), error);
  });
  return answered(answer, address);
}

async function answered(answer: ResponseLike, from: string): Promise<WebAssembly.Module> {
  if (!answer.ok) throw notLoaded(from, `the answer has the status ${answer.status}`);
  const type = answer.headers.get("content-type") ?? "";
  if (type.startsWith("application/wasm") && answer instanceof Response)
    return WebAssembly.compileStreaming(answer);
  return fromBytes(await answer.arrayBuffer(), from, type);
}

/** The first bytes of each module: `\0asm`. */
const MAGIC = [0, 0x61, 0x73, 0x6d];

async function fromBytes(
  source: ArrayBuffer | ArrayBufferView,
  from: string,
  type = "",
): Promise<WebAssembly.Module> {
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  if (MAGIC.some((byte, at) => bytes[at] !== byte))
    throw notLoaded(from, `it has other content${type && ` of the type ${type}`}`);
  return WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>);
}
