// The repository of one realm (the page's worker, or the Service Worker): the wasm module, and the
// current data set of the origin.
//
// Each realm has its own instance of the module. The instances have the same data, because each one
// applies the same journal. A writer first takes the lock and applies the new lines of the journal.
import init, {
  Samples as Loading,
  type InitOutput,
  type Repository,
  type Steps,
} from "aqlite-wasm";
import { JournaledRepository, readAnswer, reads, type Answer } from "./journaled";
import { DataSets } from "./persist";
import type {
  Contents,
  DataSet,
  Imported,
  Progress,
  RemovedSet,
  Replacement,
  Samples,
} from "./protocol";
import { refusal } from "./remote";
import { inSlices, nextTask } from "./slices";
import { MemoryRoot, opfs } from "./storage";
import { Fault } from "./fault";
import { errors } from "./texts/en/errors";

/** The patients of the first visit, which are also those of a local server. */
export const SAMPLES: Samples = { ehrs: 36, compositions: 240, seed: 1 };
/** The name of the data set of the first visit. */
const FIRST = "Sample patients";

/**
 * The folder of the interface of this browser's own repository, relative to the page: `local/v1`,
 * `local/rest/openehr/v1`. A server never answers there, so the two cannot be confused.
 */
export const LOCAL = "local/";

/** A request of the REST interface. */
export interface RestRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

/**
 * The files beside the code: the module, and the definitions of the sample patients, which are
 * loaded on demand.
 */
export interface Files {
  /** The folder of the page. */
  base: URL;
  wasm: Promise<Response>;
  samples: () => Promise<Response>;
  /** Whether this realm makes checkpoints after writes. */
  compacts: boolean;
}

/** The part of a line of an export that identifies the position of the line. */
interface Exported {
  record: {
    contribution?: { uid: { value: string } };
    definition?: string;
    name?: string;
    version?: string;
    end?: true;
  };
}

/** Returns the position of a record for the parameter `after` of an export. */
function positionOf({ record }: Exported): string {
  const { contribution, definition = "", name = "", version = "" } = record;
  return contribution?.uid.value ?? `${definition}/${name}/${version}`;
}

/** Receives the progress of a long operation. It may end the operation by throwing. */
export type WorkObserver = (progress: Progress) => void;

/**
 * The time in milliseconds during which a removed data set can be restored. After that it is erased,
 * at the latest by the next start.
 */
const RESTORABLE = 600_000;

/** The number of compositions between two pauses for other work: about ten milliseconds. */
const STEP = 100;

/** Sends a request of the REST interface. Returns the body of the answer; a refusal is an error. */
export type Send = (
  method: string,
  path: string,
  body?: string,
  headers?: Record<string, string>,
) => Promise<string>;

/** An open repository. */
export class Local {
  readonly sets: DataSets;
  readonly #journaled: JournaledRepository;
  readonly #module: InitOutput;
  readonly #files: Files;
  readonly #base: string;
  /** Whether the data are in files, and not in memory only. */
  readonly #isKept: boolean;
  #milliseconds = 0;
  /** The timer of the next erasure. */
  #erasing: ReturnType<typeof setTimeout> | undefined;

  private constructor(files: Files, module: InitOutput, sets: DataSets, isKept: boolean) {
    this.#isKept = isKept;
    this.#files = files;
    this.#base = new URL(LOCAL, files.base).href;
    this.#module = module;
    this.sets = sets;
    this.#journaled = new JournaledRepository(
      this.#base,
      sets,
      async () => (await sets.current()) ?? "",
      files.compacts,
    );
  }

  /**
   * Compiles the module and reads the data set, which is created on a first visit. `changed` is
   * called after writes of another realm.
   */
  static async open(
    from: Files,
    watch: WorkObserver = () => undefined,
    changed: () => void = () => undefined,
  ): Promise<Local> {
    const start = performance.now();
    const realms = new BroadcastChannel("aqlite");
    realms.onmessage = changed;
    // Some browsers forbid storage in private windows. The data are then in memory only.
    const files = opfs("aqlite").then(async (root) => ({
      sets: await DataSets.open(root ?? new MemoryRoot(), () => realms.postMessage(null)),
      isKept: root !== null,
    }));
    const begun = Promise.all([init({ module_or_path: from.wasm }), files]);
    begun.catch(() => realms.close());
    const [module, { sets, isKept }] = await begun;
    const local = new Local(from, module, sets, isKept);
    await local.#erase();
    if ((await sets.current()) === null) await sets.alone(() => local.#first(watch));
    // If the data cannot be read, the start succeeds: the first call that needs the data reports
    // the error, and the user can still open another set.
    await local.#journaled.current(() => undefined, reading(watch)).catch(() => undefined);
    local.#milliseconds = performance.now() - start;
    return local;
  }

  /** Erases the data sets that can no longer be restored, now and when the next one expires. */
  async #erase(): Promise<void> {
    clearTimeout(this.#erasing);
    // If erasing fails now, a later start repeats it.
    const next = await this.sets.purge(Date.now() - RESTORABLE).catch(() => null);
    if (next === null) return;
    const wait = Math.max(0, next + RESTORABLE - Date.now()) + 1;
    this.#erasing = setTimeout(() => void this.#erase(), wait);
  }

  /** Returns the removed data sets that can still be restored, the earliest first. */
  async removed(): Promise<RemovedSet[]> {
    const removed = await this.sets.removed(Date.now() - RESTORABLE);
    return removed.map(({ id, name, at }) => ({ id, name, until: at + RESTORABLE }));
  }

  /** Removes a data set from the list. It can be restored for a while. */
  async discard(id: string): Promise<void> {
    await this.sets.discard(id);
    await this.#erase();
  }

  async #first(watch: WorkObserver): Promise<void> {
    if ((await this.sets.current()) !== null) return;
    const begun = (await this.sets.list()).find(({ name }) => name === FIRST);
    const id = begun?.id ?? (await this.sets.create(FIRST));
    await this.#fill(id, SAMPLES, watch);
    await this.sets.choose(id);
  }

  /** The id of the data set. */
  get set(): string {
    return this.#journaled.journal.id;
  }

  /** The identity of the data up to the applied position of the journal, see `Contents`. */
  get identity(): string {
    const { id, generation } = this.#journaled.journal;
    return `${id} ${generation}`;
  }

  /**
   * The repository. Within `current` it is valid until the end of the run; elsewhere until the next
   * `await`, which may replace it.
   */
  get repository(): Repository {
    return this.#journaled.repository;
  }

  /** Runs on data that contain all writes of the other realm, and that do not change meanwhile. */
  current<T>(run: () => T | Promise<T>): Promise<T> {
    return this.#journaled.current(run);
  }

  /** Replaces the whole data set by sample patients. */
  async #fill(id: string, samples: Samples, watch: WorkObserver): Promise<void> {
    const definitions = await this.#files.samples();
    if (!definitions.ok) throw new Fault("samplesMissing", { status: definitions.status });
    const { templates, guides } = (await definitions.json()) as {
      templates: string[];
      guides: string[];
    };
    const loading = new Loading(
      samples.ehrs,
      samples.compositions,
      samples.seed,
      templates,
      guides,
    );
    const start = performance.now();
    try {
      await this.#journaled.replace(id, samples, async () => {
        const more = this.repository.load_samples(loading, STEP);
        watch({
          what: "makingPatients",
          done: loading.done,
          of: samples.compositions,
          milliseconds: performance.now() - start,
        });
        await nextTask();
        return more;
      });
    } finally {
      loading.free();
    }
  }

  /** Returns the address of a resource of the interface, such as `ehr` or `query/aql`. */
  address(path: string): string {
    return `${this.#base}v1/${path}`;
  }

  /**
   * Answers a request of the REST interface and stores its writes. `check` may end a request that
   * only reads by throwing.
   */
  handle(asked: RestRequest, check?: () => void): Promise<Answer> {
    return reads(asked.method, asked.url)
      ? this.#journaled.current(() => answerOf(this.#begin(asked), check))
      : this.#journaled.writing(() => answerOf(this.#begin(asked)));
  }

  #begin({ method, url, headers, body }: RestRequest): Steps {
    return this.repository.begin_request(
      method,
      url,
      JSON.stringify(headers),
      body,
      Date.now(),
      crypto.randomUUID(),
    );
  }

  /**
   * Exports everything as newline-delimited JSON with digests, the input of `POST v1/admin/import`
   * and `import`.
   */
  export(watch: WorkObserver): Promise<Blob> {
    return this.#journaled.current(async () => {
      const of = await this.#compositions();
      const [parts, start] = [[] as Blob[], performance.now()];
      for (let after = "", done = 0; ;) {
        const { body } = await this.#administer({
          method: "GET",
          url: this.address(`admin/export?limit=250&after=${encodeURIComponent(after)}`),
          headers: {},
          body: "",
        });
        // A blob of blobs is made at once. One of long texts would encode all of them.
        parts.push(new Blob([body]));
        const lines = body.trimEnd().split("\n");
        const last = JSON.parse(lines.at(-1) ?? "{}") as Exported;
        done += lines.length;
        watch({
          what: "writingContributions",
          done,
          of: Math.max(done, of),
          milliseconds: performance.now() - start,
        });
        if (last.record.end) return new Blob(parts, { type: "application/x-ndjson" });
        after = positionOf(last);
        await nextTask();
      }
    });
  }

  /**
   * Imports lines of an export, whose numbers begin with `first`. Existing data stay. Compositions
   * that their repository accepted with findings are accepted here, too.
   */
  import(text: string, first: number): Promise<Imported> {
    return this.#journaled.writing(async () => {
      const headers = { "content-type": "application/x-ndjson" };
      const { status, body } = await this.#administer({
        method: "POST",
        url: this.address(`admin/import?findings=keep&first=${first}`),
        headers,
        body: text,
      });
      // Imported in one request, which is refused as a whole if it is too long.
      if (status >= 300) throw refusal(status, body);
      return importedLines(body);
    });
  }

  /**
   * Adds a composition in spite of its findings, as an import from a system that had accepted it.
   * Returns the number of findings.
   */
  load(ehr: string, text: string): Promise<number> {
    return this.#journaled.writing(async () => {
      // The version gets an id of its own: the uid of the document may be that of a stored one.
      const { uid: _, ...data } = JSON.parse(text) as Record<string, unknown>;
      const line = { ehr_id: ehr, version_uid: `${crypto.randomUUID()}::files::1`, data };
      const { status, body } = await this.#administer({
        method: "POST",
        url: this.address("admin/load"),
        headers: { "content-type": "application/json" },
        body: JSON.stringify(line),
      });
      if (status >= 300) throw refusal(status, body);
      return (JSON.parse(body) as { findings: unknown[] }).findings.length;
    });
  }

  /**
   * Runs requests as an administrator, and stores their writes together. A refusal is an error
   * inside of `run`.
   */
  async administering<T>(run: (send: Send) => Promise<T>): Promise<T> {
    const send: Send = async (method, path, body = "", headers = {}) => {
      const answer = await this.#administer({ method, url: this.address(path), headers, body });
      if (answer.status < 300) return answer.body;
      throw refusal(answer.status, answer.body);
    };
    // If `run` fails, its writes so far are stored as well: the repository in memory has applied
    // them, and must stay equal to the journal.
    const done = await this.#journaled.writing(() =>
      run(send).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      ),
    );
    if ("error" in done) throw done.error;
    return done.value;
  }

  #administer(asked: RestRequest): Promise<Answer> {
    this.repository.admin = true;
    try {
      return answerOf(this.#begin(asked));
    } finally {
      // The request has kept the permission; other requests may begin before its end.
      this.repository.admin = false;
    }
  }

  #compositions(): Promise<number> {
    return this.#count("SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c");
  }

  /**
   * Replaces the sample patients in every realm. If the set contains writes of the user, the new
   * patients get a data set of their own, so that nothing is lost.
   */
  generate(samples: Samples, watch: WorkObserver): Promise<Contents> {
    return this.#made(() =>
      this.#journaled.journal.added > 0
        ? this.#beside(samples, watch)
        : this.#fill(this.#journaled.journal.id, samples, watch),
    );
  }

  async #beside(samples: Samples, watch: WorkObserver): Promise<void> {
    const name = `${samples.compositions} compositions of ${samples.ehrs} patients, seed ${samples.seed}`;
    const same = (await this.sets.list()).filter((set) => set.name.startsWith(name)).length;
    const id = await this.sets.create(same > 0 ? `${name} (${same + 1})` : name);
    try {
      await this.#fill(id, samples, watch);
      await this.sets.choose(id);
    } catch (error) {
      await this.sets.remove(id);
      throw error;
    }
  }

  /** Replaces the current set by a new set of sample patients. The old one can be restored. */
  async startOver(): Promise<Replacement> {
    const replacement = { discarded: "", current: "" };
    await this.#made(async () => {
      replacement.discarded = this.#journaled.journal.id;
      replacement.current = await this.sets.create(
        `Sample patients, begun ${new Date().toISOString()}`,
      );
      try {
        await this.#fill(replacement.current, SAMPLES, () => undefined);
        await this.sets.exchange(replacement.discarded, replacement.current);
      } catch (error) {
        await this.sets.remove(replacement.current);
        throw error;
      }
    });
    await this.#erase();
    return replacement;
  }

  /** Undoes `startOver`. The set that was current can be restored in turn. */
  bringBack({ discarded, current }: Replacement): Promise<Contents> {
    return this.#made(async () => {
      await this.sets.exchange(current, discarded);
      await this.#erase();
    });
  }

  /** Undoes the user's writes of a set behind the first `to`, if there are still `from` of them. */
  undo({ set, from, to }: { set: string; from: number; to: number }): Promise<Contents> {
    return this.#made(async () => {
      const { id, added } = this.#journaled.journal;
      if (id !== set) throw new Fault("otherSetOpen");
      if (added !== from) throw new Fault("moreWritten");
      await this.#journaled.journal.undo(to);
    });
  }

  /** Runs a function that creates other data. If it fails, the previous data stay. */
  #made(run: () => Promise<void>): Promise<Contents> {
    return this.#journaled.alone(async () => {
      const start = performance.now();
      try {
        await run();
      } finally {
        await this.#journaled.follow();
      }
      this.#milliseconds = performance.now() - start;
      return this.#contents();
    });
  }

  /** Selects another data set in every realm. */
  async choose(id: string, watch: WorkObserver): Promise<Contents> {
    const start = performance.now();
    await this.sets.choose(id);
    await this.#journaled.current(() => undefined, reading(watch));
    this.#milliseconds = performance.now() - start;
    return this.contents();
  }

  /** Returns the content of the data set. */
  contents(): Promise<Contents> {
    return this.#journaled.current(() => this.#contents());
  }

  async #count(q: string): Promise<number> {
    const run = this.repository.begin(q, "{}", new Date().toISOString());
    const answer = JSON.parse(await inSlices(run)) as { rows: [[number]] };
    return answer.rows[0][0];
  }

  async #contents(): Promise<Contents> {
    const [sets, replaced] = await Promise.all([this.sets.list(), this.sets.replaced()]);
    const set: DataSet | undefined = sets.find(({ current }) => current);
    return {
      place: null,
      set: set ?? null,
      isKept: this.#isKept,
      ehrs: await this.#count("SELECT COUNT(e/ehr_id/value) AS n FROM EHR e"),
      compositions: await this.#compositions(),
      identity: this.identity,
      samples: this.#journaled.journal.samples,
      added: this.#journaled.journal.added,
      replaced: replaced && { id: replaced.id, until: replaced.at + RESTORABLE },
      memory: this.#module.memory.buffer.byteLength,
      milliseconds: this.#milliseconds,
    };
  }
}

/** Answers a request in slices. `check` may end it by throwing. */
async function answerOf(request: Steps, check?: () => void): Promise<Answer> {
  return readAnswer(await inSlices(request, check));
}

/** Returns the outcome in the answer of an import, which is empty for a text without records. */
export function importedLines(body: string): Imported {
  const answers = body
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { line: number; status: number; message?: string });
  const refused = answers
    .filter(({ status }) => status >= 400)
    .map(({ line, message }) => errors.refusedLine({ line, reason: message ?? errors.refused() }));
  return { stored: answers.length - refused.length, refused };
}

function reading(watch: WorkObserver): (done: number, of: number) => void {
  const start = performance.now();
  return (done, of) =>
    watch({
      what: "readingBytes",
      done,
      of,
      milliseconds: performance.now() - start,
    });
}
