// Results as tables of Arrow and Parquet, by a module of its own: it is loaded for the first table.
import { initSync, table as write } from "aqlite-arrow-wasm";
import { choice, object } from "./arguments";
import { AqliteError, reasonOf } from "./errors";
import { loadedTables } from "./start";
import type { TableOptions } from "./types";

/** A result, and the query that it answers. */
export interface Answer {
  /** The result as JSON. */
  text: string;
  /** The text of the query, for the metadata of the table. */
  q: string;
}

/** Writes a result as a table. */
export async function table(
  { text, q }: Answer,
  format: "arrow" | "parquet",
  options: TableOptions,
): Promise<Uint8Array> {
  const { times = "instant" } = object(options);
  choice(times, "`times`", ["instant", "text", "both"]);
  initSync({ module: await loadedTables() });
  try {
    return write(text, format, times, q);
  } catch (error) {
    const message = reasonOf(error);
    const isPanic = error instanceof WebAssembly.RuntimeError;
    throw new AqliteError(
      isPanic ? `the table takes too much memory, or there is a defect: ${message}` : message,
      { code: isPanic ? "PANIC" : "ARGUMENT", cause: error },
    );
  }
}
