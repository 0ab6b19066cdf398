// Limits of the size of files after gzip: the script of the worker, which Cloudflare limits, and the
// modules of the page.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { root } from "./server.mjs";

const LIMITS = [
  {
    what: "worker script",
    folder: "dist/worker",
    files: /./,
    packed: gzipSync,
    by: "gzip",
    limit: 1_500_000,
  },
  {
    what: "page module",
    folder: "dist/www",
    files: /^aqlite\.\w+\.wasm$/,
    packed: brotliCompressSync,
    by: "brotli",
    limit: 988_500,
  },
  {
    what: "module of tables",
    folder: "dist/www",
    files: /^tables\.\w+\.wasm$/,
    packed: brotliCompressSync,
    by: "brotli",
    limit: 440_000,
  },
];

for (const { what, folder, files: ofPart, packed, by, limit } of LIMITS) {
  const files = readdirSync(join(root, folder)).filter((name) => ofPart.test(name));
  const total = files.reduce(
    (sum, name) => sum + packed(readFileSync(join(root, folder, name))).length,
    0,
  );
  console.log(`${what} (${files.length} files): ${total} bytes ${by}, at most ${limit}`);
  if (files.length === 0 || total > limit) process.exitCode = 1;
}
