// The package in workerd (Cloudflare Workers): the module is an import, because workerd does not
// compile code at run time.
import { initSync } from "aqlite-wasm";
import module from "./aqlite.wasm";

export * from "./api";

initSync({ module });
