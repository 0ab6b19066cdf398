// The start of the module. Nothing is loaded before the first call that needs it, so that a bundler
// needs no top-level `await`.
import { initSync } from "aqlite-wasm";
import { wrong } from "./arguments";
import { AqliteError, reasonOf } from "./errors";
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
  /** Reads a file by its path or address. Absent in hosts without files. */
  read?(address: string): Promise<Uint8Array<ArrayBuffer>>;
}

/**
 * A file of the package, and the function that replaces it.
 * @internal
 */
export interface ModuleFile {
  name: string;
  call: string;
}

/** @internal */
export const MODULE: ModuleFile = { name: "aqlite.wasm", call: "start" };
/** @internal */
export const TABLES: ModuleFile = { name: "aqlite-arrow.wasm", call: "startTables" };

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
 * module is the file `aqlite.wasm` of the package. The argument replaces it: an address (in Node, Deno
 * and Bun also a path), a response, bytes, or a compiled module.
 *
 * A failed start throws an error with the code `MODULE`, and can be repeated.
 */
export async function start(module?: ModuleSource): Promise<void> {
  if (isStarted) return;
  if (module instanceof WebAssembly.Module) return run(module);
  // The type `WebAssembly.Module` has no members, so `instanceof` cannot exclude it from the union.
  const loaded = () =>
    module === undefined ? host.load() : compiled(module as UncompiledModule, MODULE);
  starting ??= loaded().then(run);
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
    isCompiled ? Promise.resolve(module) : compiled(module as UncompiledModule, TABLES),
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
  try {
    initSync({ module });
  } catch (error) {
    throw notLoaded(MODULE, "the module", reasonOf(error), error);
  }
  isStarted = true;
}

/**
 * Creates the error of a module that cannot be loaded.
 * @internal
 */
export function notLoaded(
  { name, call }: ModuleFile,
  from: string,
  why: string,
  cause?: unknown,
): AqliteError {
  return new AqliteError(
    `the module cannot be loaded from ${from}: ${why}; serve the file \`${name}\` of the package there, or call \`${call}\` with its address first`,
    { code: "MODULE", cause },
  );
}

/**
 * Compiles a module from an address, a response or bytes.
 * @internal
 */
export async function compiled(
  source: UncompiledModule,
  file: ModuleFile,
): Promise<WebAssembly.Module> {
  const isBytes = source instanceof ArrayBuffer || ArrayBuffer.isView(source);
  const address =
    typeof source === "object" && !isBytes && source && "href" in source ? source.href : source;
  const from = typeof address === "string" ? address : isBytes ? "the bytes" : "the response";
  try {
    if (typeof address === "string") return await addressed(address, file);
    if (isBytes) return await fromBytes(source, from, file);
    if (typeof source === "object" && source && "arrayBuffer" in source)
      return await answered(source, from, file);
  } catch (error) {
    throw error instanceof AqliteError ? error : notLoaded(file, from, reasonOf(error), error);
  }
  throw wrong("the module is no address, no response, no bytes and no `WebAssembly.Module`");
}

async function addressed(address: string, file: ModuleFile): Promise<WebAssembly.Module> {
  if (host.read && !/^(?:https?|data|blob):/i.test(address))
    return fromBytes(await host.read(address), address, file);
  return answered(await fetch(address), address, file);
}

async function answered(
  answer: ResponseLike,
  from: string,
  file: ModuleFile,
): Promise<WebAssembly.Module> {
  if (!answer.ok) throw notLoaded(file, from, `the answer has the status ${answer.status}`);
  const type = answer.headers.get("content-type") ?? "";
  if (type.startsWith("application/wasm") && answer instanceof Response)
    return WebAssembly.compileStreaming(answer);
  return fromBytes(await answer.arrayBuffer(), from, file, type);
}

/** The first bytes of each module: `\0asm`. */
const MAGIC = [0, 0x61, 0x73, 0x6d];

async function fromBytes(
  source: ArrayBuffer | ArrayBufferView,
  from: string,
  file: ModuleFile,
  type = "",
): Promise<WebAssembly.Module> {
  const bytes = ArrayBuffer.isView(source)
    ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength)
    : new Uint8Array(source);
  if (MAGIC.some((byte, at) => bytes[at] !== byte))
    throw notLoaded(file, from, `it has other content${type && ` of the type ${type}`}`);
  return WebAssembly.compile(bytes as Uint8Array<ArrayBuffer>);
}
