// Results as tables of Arrow and Parquet. This chunk and its wasm module are loaded for the first
// table.
import init, { table } from "aqlite-arrow-wasm";

declare const TABLES_MODULE_URL: string;

let started: Promise<unknown> | undefined;

/** Writes the JSON text of a result as a table, with the query in its metadata. */
export async function write(
  text: string,
  q: string,
  format: "arrow" | "parquet",
): Promise<Uint8Array<ArrayBuffer>> {
  started ??= init({ module_or_path: new URL(TABLES_MODULE_URL, document.baseURI) });
  started.catch(() => (started = undefined));
  await started;
  return new Uint8Array(table(text, format, "instant", q));
}
