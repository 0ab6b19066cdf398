// A repository that follows the journal of a data set: what another realm wrote is there, and what is done here is kept.
import { Repository } from "aqlite-wasm";
import type { DataSets, Journal } from "./persist";

/** An answer of the REST interface. */
export interface Answer {
  status: number;
  headers: [string, string][];
  body: string;
}

/**
 * The same as `fetch` gives it. An empty text would be announced as one: it is no body. Of headers with the same name Chromium lets only the first
 * through a Service Worker: they become one.
 */
export function responseOf({ status, headers, body }: Answer, method: string): Response {
  return new Response(body === "" || status === 304 || method === "HEAD" ? null : body, {
    status,
    headers: Object.fromEntries(new Headers(headers)),
  });
}

/** What was done could not be kept, so it was undone. */
export class NotKept extends Error {
  override readonly name = "NotKept";
}

/** Lets messages in: a `setTimeout` would wait for milliseconds. */
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

/** True for requests that cannot change anything: they need nobody to be away. */
export function reads(method: string, url: string): boolean {
  return (
    READS.has(method) ||
    (method === "POST" &&
      /\/(query|gdl)\//.test(new URL(url).pathname) &&
      !/\/definition/.test(url))
  );
}

/** Hears how many bytes of a data set were read, of about how many. */
export type Reading = (done: number, of: number) => void;

/** The repository and its journal, in one realm. */
export class Kept {
  repository: Repository;
  readonly sets: DataSets;
  readonly #base: string;
  readonly #which: () => Promise<string>;
  #journal: Journal;
  #busy: Promise<unknown> = Promise.resolve();

  /** `base` stands in front of `v1` in the addresses of the interface; `which` tells the id of the data set. */
  constructor(base: string, sets: DataSets, which: () => Promise<string>) {
    this.#base = base;
    this.#which = which;
    this.sets = sets;
    this.#journal = sets.journal("");
    this.repository = new Repository(base, true);
  }

  /** The journal as far as it was read. */
  get journal(): Journal {
    return this.#journal;
  }

  /** One thing at a time: nothing may come between a write and its place in the journal. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#busy.then(run, run);
    this.#busy = result.catch(() => undefined);
    return result;
  }

  /** Runs on data that has everything the other realms wrote. */
  current<T>(run: () => T | Promise<T>, reading?: Reading): Promise<T> {
    return this.#inTurn(async () => {
      await this.follow(reading);
      return run();
    });
  }

  /** The same, with no other writer among all realms. */
  alone<T>(run: () => T | Promise<T>): Promise<T> {
    return this.sets.alone(() => this.current(run));
  }

  /** The same, and what it did is kept. */
  writing<T>(run: () => T | Promise<T>): Promise<T> {
    return this.alone(async () => {
      const result = await run();
      await this.#keep();
      return result;
    });
  }

  /** Does what others have written. Only for what runs in turn. */
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
      throw new NotKept(
        `this could not be kept, so it was not done: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }

  /** Begins with nothing. */
  empty(): void {
    this.repository.free();
    this.repository = new Repository(this.#base, true);
  }

  /** Replaces the data set of this id by what `fill` does, a step at a time until it gives false. Only for what runs alone. */
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
