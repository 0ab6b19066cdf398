// A reporter of node:test: the milliseconds of each test file as JSON, by its path from the root.
import { relative } from "node:path";

/** Sums the durations of the outermost tests of each file. */
export default async function* durations(events) {
  const sums = {};
  for await (const { type, data } of events) {
    if (!["test:pass", "test:fail"].includes(type) || data.nesting > 0 || !data.file) continue;
    const file = relative(process.cwd(), data.file);
    sums[file] = (sums[file] ?? 0) + (data.details?.duration_ms ?? 0);
  }
  yield JSON.stringify(sums, null, 1);
}
