// The rows of a query, and how a running query is watched.
import { aborted } from "./errors.js";

/** Where the runtime does not know it, it is found under the name that others use. */
export const DISPOSE = Symbol.dispose ?? Symbol.for("Symbol.dispose");

/** The rows of a query. */
export class QueryResult {
  #rows;
  #text;
  #parsed;

  constructor(rows) {
    this.#rows = rows;
    this.#text = rows.json();
  }

  get text() {
    return this.#text;
  }

  get columns() {
    return this.#value().columns;
  }

  get rows() {
    return this.#value().rows;
  }

  /** The rows as objects by column name. */
  objects() {
    const names = this.columns.map(({ name }, index) => name ?? `#${index}`);
    return this.rows.map((row) => Object.fromEntries(row.map((cell, index) => [names[index], cell])));
  }

  csv({ guard = false } = {}) {
    return this.#held().csv(guard);
  }

  ndjson() {
    return this.#held().ndjson();
  }

  [Symbol.iterator]() {
    return this.rows[Symbol.iterator]();
  }

  free() {
    this.#rows?.free();
    this.#rows = undefined;
  }

  [DISPOSE]() {
    this.free();
  }

  #value() {
    this.#parsed ??= JSON.parse(this.#text);
    return this.#parsed;
  }

  #held() {
    if (this.#rows) return this.#rows;
    throw new Error("the result was freed: `text`, `columns` and `rows` can still be read, `csv()` and `ndjson()` cannot be made any more");
  }
}

/** Milliseconds between two words about the same work. */
const SILENCE = 50;

/** Watches one run: tells how long it takes, and says when it is to end. */
export class Watch {
  #options;
  #started = performance.now();
  #told = performance.now();
  #checks = 0;
  /** Why it is to end. */
  reason;

  constructor(options) {
    this.#options = options;
    if (options.signal?.aborted) throw options.signal.reason;
  }

  /** Called by the run now and then; true ends it. */
  step = () => {
    if (this.reason) return true;
    this.#checks += 1;
    try {
      this.reason = this.#told_to_end();
    } catch (error) {
      this.reason = error;
    }
    return this.reason !== undefined;
  };

  #told_to_end() {
    const { onProgress, shouldStop, signal, timeout } = this.#options;
    const now = performance.now();
    const milliseconds = now - this.#started;
    if (onProgress && now - this.#told >= SILENCE) {
      this.#told = now;
      onProgress({ milliseconds, checks: this.#checks });
    }
    if (signal?.aborted) return signal.reason;
    if (shouldStop?.()) return aborted("the query was stopped");
    if (timeout !== undefined && milliseconds > timeout) return aborted(`the query took longer than ${timeout} milliseconds`);
    return undefined;
  }
}
