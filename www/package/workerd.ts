// The package in workerd (Cloudflare Workers): the module is an import, since code is not compiled at run time there.
import { initSync } from "aqlite-wasm";
import module from "./aqlite.wasm";

export * from "./api";

initSync({ module });
