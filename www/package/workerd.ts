// The package in workerd (Cloudflare Workers): the module is an import, because workerd does not
// compile code at run time.
import module from "./aqlite.wasm";
import { startIn } from "./start";

export * from "./api";

startIn({ load: () => Promise.resolve(module), loadNow: () => module });
