// A repository over the journal of a data set. It applies the writes of other realms (page, workers,
// Service Worker), and appends its own writes to the journal. After many writes it makes a
// checkpoint, so that opening the data set stays fast.
import type { Samples } from "./protocol";
import { Repository } from "aqlite-wasm";
import { Damaged, type DataSets, type Journal, type Piece, type Stored } from "./persist";
import { exclusively } from "./storage";
import { beforeSlices, behindSlices, fatal, nextTask } from "./slices";
import { Fault, reasonOf } from "./fault";

/** An answer of the REST interface. */
export interface Answer {
  status: number;
  headers: [string, string][];
  body: string;
}

/** Reads the text of an answer of the module: a line of JSON, and the body. */
export function readAnswer<T extends Answer>(text: string): T {
  const end = text.indexOf("\n");
  return { ...(JSON.parse(text.slice(0, end)) as Omit<T, "body">), body: text.slice(end + 1) } as T;
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
export class NotStored extends Fault<"notStored"> {
  override readonly name = "NotStored";
}

const READS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Whether a request cannot change data. Such a request needs no lock. */
export function reads(method: string, url: string): boolean {
  return (
    READS.has(method) ||
    (method === "POST" &&
      /\/(query|gdl)\//.test(new URL(url).pathname) &&
      !/\/definition/.test(url))
  );
}

/** Receives the progress of reading a data set: bytes read, and their approximate total. */
export type ReadProgress = (done: number, of: number) => void;

/** The time in milliseconds after the last write at which a checkpoint is begun. */
const IDLE = 2000;
/** The maximum of this time. It doubles after each checkpoint that failed. */
const MOST_PATIENCE = 300_000;

/** Calls the module, and may convert its exceptions. */
export type Call = <T>(run: () => T) => T;

/** The repository and its journal in one realm. */
export class JournaledRepository {
  repository: Repository;
  readonly sets: DataSets;
  readonly #base: string;
  readonly #which: () => Promise<string>;
  readonly #compacts: boolean;
  readonly #call: Call;
  #journal: Journal;
  #busy: Promise<unknown> = Promise.resolve();
  /** The number of functions that read now, and the function to call when the last one ends. */
  #reading = 0;
  #ended = () => undefined;
  /** The file of the checkpoint from which the repository was opened. */
  #file: string | undefined;
  /** The number of physical deletions before the checkpoint was made: no file has their texts. */
  #erased = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #compaction: Promise<void> | undefined;
  #patience = IDLE;

  /**
   * `base` is the address before `v1` of the interface. `which` returns the id of the data set. With
   * `compacts`, this realm makes checkpoints after writes of any realm. `call` makes the calls of the
   * module that read and write the files.
   */
  constructor(
    base: string,
    sets: DataSets,
    which: () => Promise<string>,
    compacts = true,
    call: Call = (run) => run(),
  ) {
    this.#base = base;
    this.#compacts = compacts;
    this.#call = call;
    this.#which = which;
    this.sets = sets;
    this.#journal = sets.journal("");
    this.repository = new Repository(base, true);
  }

  /** The journal up to the position that was read. */
  get journal(): Journal {
    return this.#journal;
  }

  /** Runs one function after another. The turn of a read ends when the read begins. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#busy.then(run, run);
    this.#busy = result.catch(() => undefined);
    return result;
  }

  /**
   * Runs on data that contain all writes of other realms, beside other functions that read. The
   * data do not change until it ends: writes wait, and so do functions behind them.
   */
  async current<T>(run: () => T | Promise<T>, reading?: ReadProgress): Promise<T> {
    for (;;) {
      await this.#inTurn(async () => {
        await beforeSlices(() => this.follow(reading));
        this.#reading += 1;
      });
      try {
        const outcome = await this.#valid(run);
        if (outcome) return outcome.value;
      } finally {
        this.#reading -= 1;
        if (this.#reading === 0) this.#ended();
      }
    }
  }

  /** Waits until no function reads. The caller must hold the turn, so that none begins. */
  async #untilAlone(): Promise<void> {
    if (this.#reading === 0) return;
    await behindSlices(
      () =>
        new Promise((resolve) => {
          this.#ended = () => void resolve();
        }),
    );
  }

  /** Runs a function. Returns `null` if it must run again, because its data were damaged. */
  async #valid<T>(run: () => T | Promise<T>): Promise<{ value: T } | null> {
    const outcome = await settled(run);
    const failure = this.repository.failure;
    if (failure === undefined) {
      if ("error" in outcome) throw outcome.error;
      return outcome;
    }
    // A part of the checkpoint could not be read, so the outcome is not valid. Nothing was stored.
    await this.#recover(failure);
    return null;
  }

  /** Drops a checkpoint that cannot be read. Fails if no earlier starting point has its content. */
  async #recover(failure: string, file = this.#file): Promise<void> {
    if (file !== undefined && (await this.#journal.giveUp(file))) return;
    this.#journal.forget();
    throw new Fault("fileDamaged", { file: file ?? "", reason: failure });
  }

  /** Runs like `current`, with no other function of this realm, and no writer among all realms. */
  alone<T>(run: () => T | Promise<T>): Promise<T> {
    const inTurn = async () => {
      for (;;) {
        await beforeSlices(() => this.follow());
        await this.#untilAlone();
        const outcome = await this.#valid(run);
        if (outcome) return outcome.value;
      }
    };
    return this.sets.alone(() => this.#inTurn(inTurn));
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
  async follow(reading: ReadProgress = () => undefined): Promise<void> {
    const id = await this.#which();
    if (id !== this.#journal.id) {
      await this.#untilAlone();
      this.#journal = this.sets.journal(id);
    }
    let done = 0;
    const repeat = async (lines: Uint8Array, of: number) => {
      await this.#untilAlone();
      this.#call(() => this.repository.replay_journal(lines));
      done += lines.length;
      reading(done, of);
    };
    for (;;) {
      try {
        await this.#journal.follow(async (stored) => {
          await this.#untilAlone();
          this.#open(stored);
        }, repeat);
        break;
      } catch (error) {
        this.#journal.forget();
        const failure = this.repository.failure;
        if (error instanceof Damaged) await this.#recover(error.message, error.file);
        else if (failure !== undefined) await this.#recover(failure);
        else throw error;
      }
    }
    const isDue = this.#journal.isLong || this.#holdsDeleted;
    if (isDue && this.#timer === undefined) this.#later();
  }

  /** Starts with the repository of a checkpoint, or with an empty one. */
  #open(stored: Stored | undefined): void {
    if (!stored) return this.empty();
    const { file, head, read } = stored;
    try {
      this.#adopt(Repository.open(this.#base, head, read));
    } catch (error) {
      throw new Damaged(error instanceof Error ? error.message : String(error), file);
    }
    this.#file = file;
    this.#erased = this.repository.removals;
  }

  #adopt(repository: Repository): void {
    this.repository.free();
    this.repository = repository;
    this.#file = undefined;
    this.#erased = 0;
  }

  /** Whether the journal has texts that were deleted physically. */
  get #holdsDeleted(): boolean {
    return this.repository.removals > this.#erased;
  }

  /** Makes a checkpoint when this realm has been idle for a while. */
  #later(): void {
    if (!this.#compacts) return;
    clearTimeout(this.#timer);
    const compacted = () => {
      this.#patience = IDLE;
    };
    const failed = () => {
      // The next attempt waits longer: if the storage is full, frequent attempts only cost energy.
      this.#patience = Math.min(2 * this.#patience, MOST_PATIENCE);
    };
    const timer: unknown = (this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#compaction = this.compact()
        .then(compacted, failed)
        .finally(() => (this.#compaction = undefined));
    }, this.#patience));
    // In Node, this timer must not keep the process alive.
    (timer as { unref?: () => void }).unref?.();
  }

  /** The compaction that runs now, which never fails; `undefined` if there is none. */
  get compaction(): Promise<void> | undefined {
    return this.#compaction;
  }

  /** Frees the memory of the repository, which must not be used after that. */
  close(): void {
    clearTimeout(this.#timer);
    this.repository.free();
  }

  /**
   * Makes a checkpoint if the journal after the last one is long. The work is done in short steps
   * between other work. Fails if any realm writes meanwhile.
   */
  compact(): Promise<void> {
    return exclusively("aqlite/compact", async () => {
      const begun = await this.current(() => ({
        isDue: this.#journal.isLong || this.#holdsDeleted,
        repository: this.repository,
        position: this.#journal.position,
        journal: this.#journal,
      }));
      if (!begun.isDue) return;
      const { repository, position, journal } = begun;
      const check = () => {
        if (this.repository !== repository || this.#journal.position !== position)
          throw new Fault("changedMeanwhile");
      };
      const next = pieces(repository, (step) =>
        this.#inTurn(async () => {
          check();
          await nextTask();
          return this.#call(step);
        }),
      );
      const written = await journal.save(next);
      await this.alone(async () => {
        check();
        await journal.complete(written, this.#holdsDeleted);
        await this.follow();
      });
    });
  }

  /** Replaces all files by a checkpoint, which does not contain the physically deleted texts. */
  async #erase(): Promise<void> {
    const now = <T>(step: () => T) => Promise.resolve(this.#call(step));
    const written = await this.#journal.save(pieces(this.repository, now));
    await this.#journal.complete(written, true);
    await this.follow();
  }

  /** The write is stored, but its texts could not be erased now. A later checkpoint erases them. */
  #eraseLater(error: unknown): void {
    if (fatal(error)) throw error;
    this.#later();
  }

  async #keep(): Promise<void> {
    const line = this.#call(() => this.repository.take_journal_line());
    if (!line) return;
    try {
      await this.#journal.append(line);
    } catch (error) {
      this.#journal.forget();
      throw new NotStored("notStored", { reason: reasonOf(error) });
    }
    if (this.#holdsDeleted) await this.#erase().catch((error: unknown) => this.#eraseLater(error));
    else if (this.#journal.isLong) this.#later();
  }

  /** Starts with an empty repository. */
  empty(): void {
    this.#adopt(new Repository(this.#base, true));
  }

  /**
   * Replaces the data set with this id by sample patients, which `fill` makes step by step until it
   * returns false. They are stored as a checkpoint, which opens faster than a journal of as many
   * lines. The caller must hold the lock.
   */
  async replace(id: string, samples: Samples, fill: () => Promise<boolean>): Promise<void> {
    this.#journal = this.sets.journal(id);
    // The repository records no journal.
    this.#adopt(new Repository(this.#base, false));
    while (await fill());
    const turn = async <T>(step: () => T) => {
      await nextTask();
      return step();
    };
    await this.#journal.rewriteAsCheckpoint(samples, pieces(this.repository, turn));
  }
}

/** Returns the value or the error of a function. */
async function settled<T>(run: () => T | Promise<T>): Promise<{ value: T } | { error: unknown }> {
  try {
    return { value: await run() };
  } catch (error) {
    return { error };
  }
}

/**
 * Returns a function that returns the pieces of a checkpoint of a repository. Each is made by one
 * call of `turn`.
 */
function pieces(
  repository: Repository,
  turn: <T>(step: () => T) => Promise<T>,
): () => Promise<Piece> {
  const work = repository.checkpoint();
  return () =>
    turn(() => {
      const piece = repository.checkpoint_step(work);
      return piece
        ? { piece, isHead: false }
        : { piece: repository.checkpoint_head(work), isHead: true };
    });
}
