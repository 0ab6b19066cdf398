// The package in browsers, their workers, Deno and Bun: the module lies beside this file.
import { start } from "./slim";

export * from "./api";

await start(new URL("./aqlite.wasm", import.meta.url));
