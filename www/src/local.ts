// The repository of one realm (the page's worker, or the Service Worker): the module, and the data set that this origin works with.
//
// Each realm has its own instance. They hold the same data because both follow the same journal; whoever writes is alone, and has followed first.
import init, { Repository, Samples as Loading, type InitOutput } from "aqlite-wasm";
import { DataSets, type Journal } from "./persist";
import type { Contents, DataSet, Progress, Samples } from "./protocol";
import { MemoryRoot, opfs } from "./storage";

/** The patients of the first visit: those that a local server starts with, too. */
export const SAMPLES: Samples = { ehrs: 36, compositions: 240, seed: 1 };
/** The data set of the first visit. */
const FIRST = "Sample patients";

/** A request of the REST interface. */
export interface Asked {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** An answer of the REST interface. */
export interface Answer {
  status: number;
  headers: [string, string][];
  body: string;
}

/** A line of an export, as far as the next page needs it. */
interface Exported {
  record: { contribution?: { uid: { value: string } } };
}

/** Hears how far a long work is, and may end it by throwing. */
export type Watch = (progress: Progress) => void;

/** What was done could not be kept, so it was undone. */
export class NotKept extends Error {
  override readonly name = "NotKept";
}

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

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** True for requests that cannot change anything: they need nobody to be away. */
export function reads(method: string, url: string): boolean {
  return READS.has(method) || (method === "POST" && /\/(query|gdl)\//.test(new URL(url).pathname) && !/\/definition/.test(url));
}

/** An open repository. */
export class Local {
  repository: Repository;
  readonly sets: DataSets;
  readonly #module: InitOutput;
  readonly #base: string;
  #journal: Journal;
  #milliseconds = 0;
  #busy: Promise<unknown> = Promise.resolve();

  private constructor(base: URL, module: InitOutput, sets: DataSets) {
    this.#base = base.href;
    this.#module = module;
    this.sets = sets;
    this.#journal = sets.journal("");
    this.repository = new Repository(this.#base, true);
  }

  /** Compiles the module and reads the data set; on a first visit it makes one. `base` stands in front of `v1/` in the addresses of the interface. */
  static async open(base: URL, wasm: Promise<Response>, watch: Watch = () => undefined): Promise<Local> {
    const start = performance.now();
    // Where the browser forbids it (private windows of some), everything still works, and is forgotten at the end.
    const files = opfs("aqlite").then((root) => DataSets.open(root ?? new MemoryRoot()));
    const [module, sets] = await Promise.all([init({ module_or_path: wasm }), files]);
    const local = new Local(base, module, sets);
    await sets.alone(() => local.#first(watch));
    await local.#alone(() => local.#follow(watch));
    local.#milliseconds = performance.now() - start;
    return local;
  }

  async #first(watch: Watch): Promise<void> {
    if ((await this.sets.current()) !== null) return;
    const begun = (await this.sets.list()).find(({ name }) => name === FIRST);
    const id = begun?.id ?? (await this.sets.create(FIRST));
    this.#journal = this.sets.journal(id);
    await this.#fill(SAMPLES, watch);
    await this.sets.choose(id);
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
      await this.#follow();
      return run();
    });
  }

  /** The same, and what it did is kept: one writer among all realms. */
  #writing<T>(run: () => T | Promise<T>): Promise<T> {
    return this.sets.alone(() =>
      this.current(async () => {
        const result = await run();
        await this.#keep();
        return result;
      }),
    );
  }

  async #follow(watch: Watch = () => undefined): Promise<void> {
    const id = (await this.sets.current()) ?? "";
    if (id !== this.#journal.id) this.#journal = this.sets.journal(id);
    const start = performance.now();
    let done = 0;
    const repeat = (lines: Uint8Array, of: number) => {
      this.repository.repeat(lines);
      done += lines.length;
      watch({ what: "Reading bytes of the data set", done, of, milliseconds: performance.now() - start });
    };
    try {
      await this.#journal.follow(() => this.#empty(), repeat);
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
      throw new NotKept(`this could not be kept, so it was not done: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #empty(): void {
    this.repository.free();
    this.repository = new Repository(this.#base, true);
  }

  /** Makes sample patients the whole data set. */
  async #fill(samples: Samples, watch: Watch): Promise<void> {
    this.#empty();
    const loading = new Loading(samples.ehrs, samples.compositions, samples.seed);
    const start = performance.now();
    try {
      await this.#journal.rewrite(samples, async (write) => {
        for (let more = true; more; ) {
          more = this.repository.load_samples(loading, STEP);
          const line = this.repository.written();
          if (line) await write(line);
          watch({ what: "Making patients", done: loading.done, of: samples.compositions, milliseconds: performance.now() - start });
          await breathe();
        }
      });
    } finally {
      loading.free();
    }
  }

  /** Answers a request of the REST interface; what a write does is kept. */
  handle(asked: Asked): Promise<Answer> {
    const run = () => this.#carryOut(asked);
    return reads(asked.method, asked.url) ? this.current(run) : this.#writing(run);
  }

  #carryOut({ method, url, headers, body }: Asked): Answer {
    return JSON.parse(this.repository.handle(method, url, JSON.stringify(headers), body, Date.now(), crypto.randomUUID())) as Answer;
  }

  /** Everything as newline-delimited JSON with digests: what `POST v1/admin/import` and `import` read. */
  export(watch: Watch): Promise<Blob> {
    return this.current(async () => {
      const [parts, start, of] = [[] as string[], performance.now(), this.#compositions()];
      for (let after = "", done = 0; ; ) {
        const { body } = this.#administer({ method: "GET", url: `${this.#base}v1/admin/export?limit=1000&after=${after}`, headers: {}, body: "" });
        parts.push(body);
        const lines = body.trimEnd().split("\n");
        const { record } = JSON.parse(lines.at(-1) ?? "{}") as Exported;
        done += lines.length;
        watch({ what: "Writing contributions", done, of: Math.max(done, of), milliseconds: performance.now() - start });
        if (!record.contribution) return new Blob(parts, { type: "application/x-ndjson" });
        after = record.contribution.uid.value;
        await breathe();
      }
    });
  }

  /** Takes in what `export` wrote; gives what is wrong with it, a line each. What is there already stays. */
  import(text: string): Promise<string[]> {
    return this.#writing(() => {
      const headers = { "content-type": "application/x-ndjson" };
      const { body } = this.#administer({ method: "POST", url: `${this.#base}v1/admin/import`, headers, body: text });
      const answers = body.trimEnd().split("\n").map((line) => JSON.parse(line) as { line: number; status: number; message?: string });
      return answers.filter(({ status }) => status >= 400).map(({ line, message }) => `line ${line}: ${message ?? "refused"}`);
    });
  }

  #administer(asked: Asked): Answer {
    this.repository.admin = true;
    try {
      return this.#carryOut(asked);
    } finally {
      this.repository.admin = false;
    }
  }

  #compositions(): number {
    return this.#count("SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c");
  }

  /** Makes other sample patients, in every realm, in place of those that are here. Where somebody's own writes stand among them, a data set of their
   * own is made for the new ones, so that nothing is lost. */
  generate(samples: Samples, watch: Watch): Promise<Contents> {
    return this.#made(async () => {
      if (this.#journal.added > 0) await this.#beside(samples, watch);
      else await this.#fill(samples, watch);
    });
  }

  async #beside(samples: Samples, watch: Watch): Promise<void> {
    const name = `${samples.compositions} compositions of ${samples.ehrs} patients, seed ${samples.seed}`;
    const same = (await this.sets.list()).filter((set) => set.name.startsWith(name)).length;
    const id = await this.sets.create(same > 0 ? `${name} (${same + 1})` : name);
    this.#journal = this.sets.journal(id);
    try {
      await this.#fill(samples, watch);
      await this.sets.choose(id);
    } catch (error) {
      await this.sets.remove(id);
      throw error;
    }
  }

  /** Forgets everything but the sample patients. */
  forget(): Promise<Contents> {
    return this.#made(() => this.#fill(SAMPLES, () => undefined));
  }

  #made(run: () => Promise<void>): Promise<Contents> {
    return this.sets.alone(() =>
      this.#alone(async () => {
        const start = performance.now();
        await this.#follow();
        try {
          await run();
        } catch (error) {
          await this.#follow();
          throw error;
        }
        this.#milliseconds = performance.now() - start;
        return this.#contents();
      }),
    );
  }

  /** Takes back the own writes behind this number of them. */
  undo(added: number): Promise<Contents> {
    return this.sets.alone(() =>
      this.#alone(async () => {
        await this.#follow();
        await this.#journal.undo(added);
        await this.#follow();
        return this.#contents();
      }),
    );
  }

  /** Works with another data set from now on, in every realm. */
  async choose(id: string, watch: Watch): Promise<Contents> {
    await this.sets.choose(id);
    return this.#alone(async () => {
      const start = performance.now();
      await this.#follow(watch);
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

  async #contents(): Promise<Contents> {
    const set: DataSet | undefined = (await this.sets.list()).find(({ current }) => current);
    return {
      place: null,
      set: set ?? null,
      ehrs: this.#count("SELECT COUNT(e/ehr_id/value) AS n FROM EHR e"),
      compositions: this.#compositions(),
      samples: this.#journal.samples,
      added: this.#journal.added,
      memory: this.#module.memory.buffer.byteLength,
      milliseconds: this.#milliseconds,
    };
  }
}
