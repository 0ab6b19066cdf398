// The worker's script must stay small: Cloudflare's limit counts what gzip leaves.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { root } from "./server.mjs";

const LIMIT = 900_000;
const folder = join(root, "dist/worker");
const files = readdirSync(folder).map((name) => ({ name, gzip: gzipSync(readFileSync(join(folder, name))).length }));
const total = files.reduce((sum, file) => sum + file.gzip, 0);
console.log(files.map(({ name, gzip }) => `${name} ${gzip}`).join(", "));
console.log(`worker script: ${total} bytes gzip, at most ${LIMIT}`);
process.exit(total > LIMIT ? 1 : 0);
