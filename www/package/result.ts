// The rows of a query, and the observation of a running query.
import type { Rows } from "aqlite-wasm";
import { callback, duration, flag, object, optional, wrong } from "./arguments";
import { dispose } from "./dispose";
import { AqliteError, aborted } from "./errors";
import { release } from "./guard";
import type { SignalLike } from "./host";
import type { Json, QueryOptions, TableOptions } from "./types";

interface Table {
  columns: { name: string; path: string | null }[];
  rows: Json[][];
}

/** The rows of a query. `for (const row of result)` iterates over them. */
export class QueryResult {
  #rows: Rows | undefined;
  readonly #text: string;
  readonly #q: string;
  #parsed: Table | undefined;

  /** @internal */
  constructor(rows: Rows, q: string) {
    this.#rows = rows;
    this.#text = rows.json();
    this.#q = q;
  }

  /** `{"columns":[…],"rows":[[…]]}` as text. Numbers have the digits that were committed. */
  get text(): string {
    return this.#text;
  }

  /** The columns: alias, or `#` and the number; and the path, if the column is one. */
  get columns(): { name: string; path: string | null }[] {
    return this.#value().columns;
  }

  /** The rows. A cell is a value, or an object of the Reference Model as canonical JSON. */
  get rows(): Json[][] {
    return this.#value().rows;
  }

  /** The rows as objects by column name. */
  objects(): Record<string, Json>[] {
    const names = this.columns.map(({ name }) => name);
    return this.rows.map((row) =>
      Object.fromEntries(row.map((cell, index) => [names[index] ?? `#${index}`, cell])),
    );
  }

  /**
   * Returns RFC 4180. Objects become several columns. With `guard`, spreadsheets do not interpret
   * texts as formulas.
   */
  csv(options: { guard?: boolean } = {}): string {
    const { guard = false } = object(options);
    return this.#held().csv(flag(guard, "`guard`"));
  }

  /** Returns one object per line, with the columns of `csv`. */
  ndjson(): string {
    return this.#held().ndjson();
  }

  /** Returns the stream format of Apache Arrow, with typed columns. */
  async toArrow(options: TableOptions = {}): Promise<Uint8Array> {
    return this.#table("arrow", options);
  }

  /** Returns a file of Apache Parquet with typed columns, compressed by Snappy. */
  async toParquet(options: TableOptions = {}): Promise<Uint8Array> {
    return this.#table("parquet", options);
  }

  async #table(format: "arrow" | "parquet", options: TableOptions): Promise<Uint8Array> {
    const { table } = await import("./tables");
    return table({ text: this.#text, q: this.#q }, format, options);
  }

  [Symbol.iterator](): Iterator<Json[]> {
    return this.rows[Symbol.iterator]();
  }

  /**
   * Frees its memory in the module. Rows that were read stay. Without this call the garbage
   * collector frees it later.
   */
  free(): void {
    release(this.#rows);
    this.#rows = undefined;
  }

  /** Frees the result at the end of a block with `using`. */
  [dispose](): void {
    this.free();
  }

  #value(): Table {
    this.#parsed ??= JSON.parse(this.#text) as Table;
    return this.#parsed;
  }

  #held(): Rows {
    if (this.#rows) return this.#rows;
    throw new AqliteError(
      "the result was freed: `text`, `columns` and `rows` can still be read, `csv()` and `ndjson()` cannot be made any more",
      { code: "FREED" },
    );
  }
}

/**
 * Throws the reason of a signal that is aborted, like `AbortSignal.throwIfAborted`.
 * @internal
 */
export function throwIfAborted(signal: SignalLike | undefined): void {
  if (signal === undefined) return;
  if (typeof signal?.aborted !== "boolean") throw wrong("`signal` is no `AbortSignal`");
  if (signal.aborted) throw signal.reason;
}

/** The minimum time in milliseconds between two progress messages. */
const SILENCE = 20;

/**
 * The observer of one run: it reports progress and ends the run on request.
 * @internal
 */
export class RunObserver {
  readonly #options: QueryOptions;
  readonly #started = performance.now();
  #reportedAt = performance.now();
  /** The reason to end the run. */
  reason: unknown;

  constructor(options: QueryOptions) {
    this.#options = options;
    optional(callback, options.onProgress, "`onProgress`");
    optional(callback, options.shouldStop, "`shouldStop`");
    optional(duration, options.timeout, "`timeout`");
    throwIfAborted(options.signal);
  }

  /** Called by the run from time to time. True ends it. */
  step = (): boolean => {
    try {
      this.reason ??= this.#end();
    } catch (error) {
      this.reason = error;
    }
    return this.reason !== undefined;
  };

  #end(): unknown {
    const { onProgress, shouldStop, signal, timeout } = this.#options;
    const now = performance.now();
    const milliseconds = now - this.#started;
    if (onProgress && now - this.#reportedAt >= SILENCE) {
      this.#reportedAt = now;
      onProgress({ milliseconds });
    }
    if (signal?.aborted) return signal.reason;
    if (shouldStop?.()) return aborted("the query was stopped");
    if (timeout !== undefined && milliseconds > timeout)
      return aborted(`the query took longer than ${timeout} milliseconds`);
    return undefined;
  }
}
