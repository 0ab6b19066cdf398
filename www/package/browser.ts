// The package in browsers, their workers, Deno and Bun: the module is a file beside this one.
import { start } from "./slim";

export * from "./api";

await start(new URL("./aqlite.wasm", import.meta.url));
