// A repository that follows the journal of a data set. It contains the writes of other realms, and
// its own writes are stored.
import { Repository } from "aqlite-wasm";
import type { DataSets, Journal } from "./persist";
import { Fault, reasonOf } from "./fault";

/** An answer of the REST interface. */
export interface Answer {
  status: number;
  headers: [string, string][];
  body: string;
}

/**
 * Converts an answer to a `Response`. An empty text would be sent as a body, so it is omitted.
 * Chromium passes only the first of several headers with one name through a Service Worker, so they
 * are joined.
 */
export function responseOf({ status, headers, body }: Answer, method: string): Response {
  return new Response(body === "" || status === 304 || method === "HEAD" ? null : body, {
    status,
    headers: Object.fromEntries(new Headers(headers)),
  });
}

/** The error of a write that could not be stored and was undone. */
export class NotKept extends Fault<"notKept"> {
  override readonly name = "NotKept";
}

/** Lets messages in. A `setTimeout` would wait for milliseconds. */
export function breathe(): Promise<void> {
  if (typeof MessageChannel === "undefined") return new Promise((resolve) => setTimeout(resolve));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether a request cannot change anything. It then needs no lock. */
export function reads(method: string, url: string): boolean {
  return (
    READS.has(method) ||
    (method === "POST" &&
      /\/(query|gdl)\//.test(new URL(url).pathname) &&
      !/\/definition/.test(url))
  );
}

/** Receives the progress of reading a data set: bytes read, and their approximate total. */
export type Reading = (done: number, of: number) => void;

/** The repository and its journal in one realm. */
export class Kept {
  repository: Repository;
  readonly sets: DataSets;
  readonly #base: string;
  readonly #which: () => Promise<string>;
  #journal: Journal;
  #busy: Promise<unknown> = Promise.resolve();

  /** `base` is the address before `v1` of the interface. `which` returns the id of the data set. */
  constructor(base: string, sets: DataSets, which: () => Promise<string>) {
    this.#base = base;
    this.#which = which;
    this.sets = sets;
    this.#journal = sets.journal("");
    this.repository = new Repository(base, true);
  }

  /** The journal up to the position that was read. */
  get journal(): Journal {
    return this.#journal;
  }

  /**
   * Runs one function after another: nothing may come between a write and its place in the journal.
   */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#busy.then(run, run);
    this.#busy = result.catch(() => undefined);
    return result;
  }

  /** Runs on data that contain all writes of other realms. */
  current<T>(run: () => T | Promise<T>, reading?: Reading): Promise<T> {
    return this.#inTurn(async () => {
      await this.follow(reading);
      return run();
    });
  }

  /** Runs like `current`, with no other writer among all realms. */
  alone<T>(run: () => T | Promise<T>): Promise<T> {
    return this.sets.alone(() => this.current(run));
  }

  /** Runs like `alone`, and stores the writes. */
  writing<T>(run: () => T | Promise<T>): Promise<T> {
    return this.alone(async () => {
      const result = await run();
      await this.#keep();
      return result;
    });
  }

  /** Applies the writes of other realms. The caller must hold the turn. */
  async follow(reading: Reading = () => undefined): Promise<void> {
    const id = await this.#which();
    if (id !== this.#journal.id) this.#journal = this.sets.journal(id);
    let done = 0;
    const repeat = (lines: Uint8Array, of: number) => {
      this.repository.repeat(lines);
      done += lines.length;
      reading(done, of);
    };
    try {
      await this.#journal.follow(() => this.empty(), repeat);
    } catch (error) {
      this.#journal.forget();
      throw error;
    }
  }

  async #keep(): Promise<void> {
    const line = this.repository.written();
    if (!line) return;
    try {
      await this.#journal.append(line);
    } catch (error) {
      this.#journal.forget();
      throw new NotKept("notKept", { reason: reasonOf(error) });
    }
  }

  /** Starts with an empty repository. */
  empty(): void {
    this.repository.free();
    this.repository = new Repository(this.#base, true);
  }

  /**
   * Replaces the data set with this id by the writes of `fill`, step by step until it returns
   * false. The caller must hold the lock.
   */
  async replace(
    id: string,
    samples: Journal["samples"],
    fill: () => Promise<boolean>,
  ): Promise<void> {
    this.#journal = this.sets.journal(id);
    this.empty();
    await this.#journal.rewrite(samples, async (write) => {
      for (let more = true; more;) {
        more = await fill();
        const line = this.repository.written();
        if (line) await write(line);
      }
    });
  }
}
