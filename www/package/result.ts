// The rows of a query, and how a running query is watched.
import type { Rows } from "aqlite-wasm";
import { aborted } from "./errors";
import type { Json, QueryOptions } from "./types";

interface Table {
  columns: { name: string; path: string | null }[];
  rows: Json[][];
}

/** The rows of a query. `for (const row of result)` goes through them. */
export class QueryResult {
  #rows: Rows | undefined;
  readonly #text: string;
  #parsed: Table | undefined;

  /** @internal */
  constructor(rows: Rows) {
    this.#rows = rows;
    this.#text = rows.json();
  }

  /** `{"columns":[…],"rows":[[…]]}` as text: numbers with the digits that were committed. */
  get text(): string {
    return this.#text;
  }

  /** The columns: alias, or `#` and the number; the path where the column is one. */
  get columns(): { name: string; path: string | null }[] {
    return this.#value().columns;
  }

  /** A cell is a value, or an object of the Reference Model as canonical JSON. */
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

  /** RFC 4180, flat: objects become several columns. `guard` keeps texts from being taken for formulas by spreadsheets. */
  csv({ guard = false }: { guard?: boolean } = {}): string {
    return this.#held().csv(guard);
  }

  /** An object a line, flat as in `csv`. */
  ndjson(): string {
    return this.#held().ndjson();
  }

  [Symbol.iterator](): Iterator<Json[]> {
    return this.rows[Symbol.iterator]();
  }

  /** Gives its memory in the module back. What was read stays; without this call the garbage collector does it, late. */
  free(): void {
    this.#rows?.free();
    this.#rows = undefined;
  }

  #value(): Table {
    this.#parsed ??= JSON.parse(this.#text) as Table;
    return this.#parsed;
  }

  #held(): Rows {
    if (this.#rows) return this.#rows;
    throw new Error(
      "the result was freed: `text`, `columns` and `rows` can still be read, `csv()` and `ndjson()` cannot be made any more",
    );
  }
}

/** Milliseconds between two words about the same work. */
const SILENCE = 20;

/** Watches one run: tells how long it takes, and says when it is to end. */
export class Watch {
  readonly #options: QueryOptions;
  readonly #started = performance.now();
  #told = performance.now();
  /** Why it is to end. */
  reason: unknown;

  constructor(options: QueryOptions) {
    this.#options = options;
    options.signal?.throwIfAborted();
  }

  /** Called by the run now and then; true ends it. */
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
    if (onProgress && now - this.#told >= SILENCE) {
      this.#told = now;
      onProgress({ milliseconds });
    }
    if (signal?.aborted) return signal.reason;
    if (shouldStop?.()) return aborted("the query was stopped");
    if (timeout !== undefined && milliseconds > timeout)
      return aborted(`the query took longer than ${timeout} milliseconds`);
    return undefined;
  }
}
