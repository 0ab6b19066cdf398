// Runs test files in processes of their own, in the order of the arguments: `node --test` would sort
// them by name. Prints TAP, and writes the milliseconds of each file as JSON, by its path from the
// root.
//
//   node tests/run.mjs --concurrency 2 --durations OUT.json FILE…
import { writeFileSync } from "node:fs";
import { relative, resolve } from "node:path";
import { run } from "node:test";
import { tap } from "node:test/reporters";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  options: { concurrency: { type: "string" }, durations: { type: "string" } },
  allowPositionals: true,
});
const sums = {};

/** Adds the duration of an outermost test to that of its file. */
function add({ nesting, file, details }) {
  if (nesting > 0 || !file) return;
  const name = relative(process.cwd(), file);
  sums[name] = (sums[name] ?? 0) + Math.round(details?.duration_ms ?? 0);
}

run({
  files: positionals.map((file) => resolve(file)),
  concurrency: Number(values.concurrency),
})
  .on("test:pass", add)
  .on("test:fail", (test) => {
    process.exitCode = 1;
    add(test);
  })
  .compose(tap)
  .pipe(process.stdout);

process.on("exit", () => writeFileSync(values.durations, `${JSON.stringify(sums, null, 2)}\n`));
