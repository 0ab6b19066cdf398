// The repository of one realm (the page's worker, or the Service Worker): module, sample patients, and the writes of the journal.
//
// Each realm has its own instance. They hold the same data because all of it follows from what they share: the sample settings and the journal.
import init, { Repository, Samples as Loading, type InitOutput } from "aqlite-wasm";
import { Shared, type Entry, type Origin } from "./idb";
import type { Contents, Progress, Samples } from "./protocol";

/** The patients of the first visit: those that a local server starts with, too. */
export const SAMPLES: Samples = { ehrs: 36, compositions: 240, seed: 1 };

/** An answer of the REST interface. */
export interface Answer {
  status: number;
  headers: [string, string][];
  body: string;
}

/** Hears how far a long work is, and may end it by throwing. */
export type Watch = (progress: Progress) => void;

/** Compositions between two looks at what else there is to do. */
const STEP = 250;

/** Lets messages in: a `setTimeout` would wait for milliseconds. */
function breathe(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** The generation of a repository that is being built. */
const UNFINISHED = -1;

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** True for requests that cannot change anything: they need no place in the journal. */
export function reads(method: string, url: string): boolean {
  return READS.has(method) || (method === "POST" && /\/(query|gdl)\//.test(new URL(url).pathname) && !/\/definition/.test(url));
}

/** An open repository. */
export class Local {
  repository: Repository;
  readonly #shared: Shared;
  readonly #module: InitOutput;
  #origin: Origin;
  #sequence = 0;
  #milliseconds = 0;
  #busy: Promise<unknown> = Promise.resolve();

  readonly #base: string;

  private constructor(base: URL, module: InitOutput, shared: Shared, origin: Origin) {
    this.#base = base.href;
    this.#module = module;
    this.#shared = shared;
    this.#origin = origin;
    this.repository = new Repository(this.#base);
  }

  /** Compiles the module, makes the patients, repeats the journal. `base` stands in front of `v1/` in the addresses of the interface. */
  static async open(base: URL, wasm: Promise<Response>, watch: Watch = () => undefined): Promise<Local> {
    const start = performance.now();
    const [module, shared] = await Promise.all([init({ module_or_path: wasm }), Shared.open(SAMPLES)]);
    const local = new Local(base, module, shared, await shared.origin());
    await local.#fill(watch);
    await local.#repeat();
    local.#milliseconds = performance.now() - start;
    return local;
  }

  async #fill(watch: Watch): Promise<void> {
    const { ehrs, compositions, seed } = this.#origin.samples;
    if (ehrs === 0) return;
    const samples = new Loading(ehrs, compositions, seed);
    const start = performance.now();
    try {
      while (this.repository.load_samples(samples, STEP)) {
        watch({ what: "Making patients", done: samples.done, of: compositions, milliseconds: performance.now() - start });
        await breathe();
      }
    } finally {
      samples.free();
    }
  }

  async #repeat(): Promise<void> {
    for (const entry of await this.#shared.after(this.#sequence)) {
      this.#carryOut(entry);
      this.#sequence = entry.sequence ?? this.#sequence;
    }
  }

  #carryOut(entry: Entry): Answer {
    const { method, url, headers, body, now, seed } = entry;
    return JSON.parse(this.repository.handle(method, url, JSON.stringify(headers), body, now, seed)) as Answer;
  }

  /** One thing at a time: nothing may come between a write and its place in the journal. */
  #alone<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#busy.then(run, run);
    this.#busy = result.catch(() => undefined);
    return result;
  }

  /** Runs on data that has everything the other realm wrote. */
  current<T>(run: () => T | Promise<T>): Promise<T> {
    return this.#alone(async () => {
      await this.#catchUp();
      return run();
    });
  }

  async #catchUp(): Promise<void> {
    const origin = await this.#shared.origin();
    if (origin.generation !== this.#origin.generation) {
      this.#origin = origin;
      await this.#build();
    }
    await this.#repeat();
  }

  async #build(watch: Watch = () => undefined): Promise<void> {
    this.#sequence = 0;
    this.repository.free();
    this.repository = new Repository(this.#base);
    await this.#fill(watch);
  }

  /** Answers a request of the REST interface; a write that succeeds goes into the journal. */
  async handle(method: string, url: string, headers: Record<string, string>, body: string): Promise<Answer> {
    const entry = { method, url, headers, body, now: Date.now(), seed: crypto.randomUUID() };
    if (reads(method, url)) return this.current(() => this.#carryOut(entry));
    // One writer among all realms: the journal has the writes in the order in which they were carried out.
    const write = () =>
      this.current(async () => {
        const answer = this.#carryOut(entry);
        if (answer.status >= 200 && answer.status < 300) this.#sequence = (await this.#shared.append(entry)) ?? this.#sequence;
        return answer;
      });
    return await navigator.locks.request("aqlite-write", write);
  }

  /** Makes other sample patients, in every realm; the writes of the journal come on top again. */
  generate(samples: Samples, watch: Watch): Promise<Contents> {
    return this.#renew(samples, false, watch);
  }

  /** Forgets everything but the sample patients. */
  forget(): Promise<Contents> {
    return this.#renew(SAMPLES, true, () => undefined);
  }

  /** Takes back the writes behind this place of the journal. */
  undo(sequence: number): Promise<Contents> {
    return this.#alone(async () => {
      await this.#shared.forget(sequence);
      this.#origin = { ...this.#origin, generation: Date.now() };
      await this.#build();
      await this.#shared.setOrigin(this.#origin);
      await this.#repeat();
      return this.#contents();
    });
  }

  #renew(samples: Samples, forget: boolean, watch: Watch): Promise<Contents> {
    return this.#alone(async () => {
      const start = performance.now();
      // Until all of it is there, the old settings stand: what cannot be made is not tried again at the next start.
      this.#origin = { samples, generation: UNFINISHED };
      await this.#build(watch);
      if (forget) await this.#shared.clear();
      this.#origin = { samples, generation: Date.now() };
      await this.#shared.setOrigin(this.#origin);
      await this.#repeat();
      this.#milliseconds = performance.now() - start;
      return this.#contents();
    });
  }

  /** What is in it. */
  contents(): Promise<Contents> {
    return this.current(() => this.#contents());
  }

  #count(q: string): number {
    const answer = JSON.parse(this.repository.query(q, "{}", new Date().toISOString())) as { rows: [[number]] };
    return answer.rows[0][0];
  }

  #contents(): Contents {
    return {
      place: null,
      ehrs: this.#count("SELECT COUNT(e/ehr_id/value) AS n FROM EHR e"),
      compositions: this.#count("SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c"),
      samples: this.#origin.samples,
      added: this.#sequence,
      memory: this.#module.memory.buffer.byteLength,
      milliseconds: this.#milliseconds,
    };
  }
}
