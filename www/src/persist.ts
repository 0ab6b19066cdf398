// Data sets: named repositories, stored as journals in the origin private file system, for the page,
// the Service Worker and the npm package.
//
//   const sets = await DataSets.open((await opfs("aqlite")) ?? new MemoryRoot());
//   await sets.list()                 all sets: [{ id, name, created, bytes, samples, added, current }]
//   await sets.create("Ward 7")       creates an empty set and returns its id; names are unique
//   await sets.rename(id, "Ward 8")
//   await sets.remove(id)             erases a set, except the current one
//   await sets.discard(id)            hides a set until `restore(id)`, or until `purge` erases it
//   await sets.choose(id)             selects the set of this origin, for all tabs and Service Workers
//   const journal = sets.journal(id)  the writes of a set: `follow` reads new ones, `append` adds
//                                     one, `rewrite` and `undo` replace all
//   await sets.alone(run)             admits one writer at a time among all realms of the origin
//
// On disk, `index.json` names the sets. Each set has a folder with segments `generation-number.log`.
// A line is one write. A line without a line end is ignored, so a write is stored as a whole or not
// at all. A replacement of all content is a new generation. It becomes valid when the index, which is
// replaced atomically, names it.
//
// A checkpoint `generation-id.checkpoint` has the same content as all lines before it. It becomes
// valid when the index names it. A realm opens the newest checkpoint and applies the lines after it.
//
// A starting point is a checkpoint, or the beginning of the journal. The two newest starting points
// stay, so that a damaged checkpoint loses nothing. So do those from which the writes of the last ten
// minutes can be undone. Segments before the oldest starting point are removed.
import { COPY, exclusively, type Folder, type Reader, type Root } from "./storage";
import type { DataSet, Samples } from "./protocol";
import { Fault } from "./fault";

/** The entry of a data set in the index. */
interface Entry {
  name: string;
  /** Milliseconds since 1970. */
  created: number;
  generation: number;
  /** The parameters of its sample patients. */
  samples: Samples | null;
  /**
   * The number of lines of the journal that create the sample patients. Later lines are writes of
   * the user.
   */
  base: number;
  /** When the set was discarded, in milliseconds since 1970. Absent for a set in the list. */
  discarded?: number;
  /** The set that replaced the discarded one. Absent if the user removed the set from the list. */
  replacedBy?: string;
  /** The checkpoints, the oldest first. Absent if there is none. */
  checkpoints?: Checkpoint[] | undefined;
  /** Whether the lines before the oldest checkpoint were removed. */
  isShortened?: boolean | undefined;
  /** The first segment after the newest checkpoint. Earlier segments may end before their maximum. */
  reached?: number | undefined;
}

/** A checkpoint in the index. */
interface Checkpoint {
  /** The name of its file. */
  file: string;
  /** The position of the head in the file, and the size of the file, in bytes. */
  head: number;
  bytes: number;
  /** The number of lines before it. */
  lines: number;
  /** The first segment behind it. */
  segment: number;
  /** Milliseconds since 1970. */
  made: number;
}

/** The file of a checkpoint that was written. */
export type Written = Pick<Checkpoint, "file" | "head" | "bytes">;

/** A checkpoint to be opened. */
export interface Stored {
  file: string;
  head: Uint8Array;
  read: Reader;
}

/** A starting point: a position of the journal at which a repository can be opened. */
interface Start {
  checkpoint: Checkpoint | undefined;
  lines: number;
  segment: number;
}

/** Returns the starting points of a set, the oldest first. */
function startsOf({ checkpoints = [], isShortened = false }: Entry): Start[] {
  const made = checkpoints.map((checkpoint) => ({
    checkpoint,
    lines: checkpoint.lines,
    segment: checkpoint.segment,
  }));
  return isShortened ? made : [{ checkpoint: undefined, lines: 0, segment: 1 }, ...made];
}

interface Index {
  format: number;
  current: string | null;
  sets: Record<string, Entry>;
}

/** The versions of the file format: without, and with checkpoints in the index. */
const FORMAT = 1;
const WITH_CHECKPOINTS = 2;
/** The time in milliseconds during which the writes before a checkpoint can be undone. */
const UNDOABLE = 600_000;
/** The minimum bytes of a journal after the last checkpoint at which another checkpoint is due. */
const LONG = 2 << 20;
const INDEX = "index.json";
const INDEX_COPY = `${INDEX}${COPY}`;
const NEWLINE = 10;
/** The number of bytes that are read or written at once. */
const PIECE = 4 << 20;
/** The maximum size of a segment in a store that copies the whole file at each write. */
const SEGMENT = 1 << 20;
/** The maximum size of a segment in a store that writes in place. */
const LONG_SEGMENT = 64 << 20;

/** The error about a data set that another tab has removed. */
export class Gone extends Fault<"setGone"> {
  override readonly name = "Gone";
}

/** The data sets of an origin. */
export class DataSets {
  readonly #root: Root;
  readonly #changed: () => void;

  private constructor(root: Root, changed: () => void) {
    this.#root = root;
    this.#changed = changed;
  }

  /**
   * Opens the sets in a folder. Fails if a newer release has written them. `changed` is called
   * after every possible change by this realm.
   */
  static async open(root: Root, changed: () => void = () => undefined): Promise<DataSets> {
    const sets = new DataSets(root, changed);
    await sets.#index();
    return sets;
  }

  /** Returns all sets, the oldest first. */
  async list(): Promise<DataSet[]> {
    const { sets, current } = await this.#index();
    const all = Object.entries(sets)
      .filter(([, { discarded }]) => discarded === undefined)
      .sort(([, a], [, b]) => a.created - b.created);
    return Promise.all(
      all.map(async ([id, { name, created, samples }]) => ({
        id,
        name,
        created,
        samples,
        bytes: await bytes(await this.#root.folder(id)),
        current: id === current,
      })),
    );
  }

  /** Returns the set that the origin works with. */
  async current(): Promise<string | null> {
    return (await this.#index()).current;
  }

  /** Creates an empty set. Returns its id. */
  create(name: string): Promise<string> {
    const id = crypto.randomUUID();
    return this.#edit((index) => {
      index.sets[id] = {
        name: free(index, name),
        created: Date.now(),
        generation: 1,
        samples: null,
        base: 0,
      };
      return id;
    });
  }

  rename(id: string, name: string): Promise<void> {
    return this.#edit((index) => {
      listed(index, id).name = free(index, name, id);
    });
  }

  choose(id: string): Promise<void> {
    return this.#edit((index) => {
      listed(index, id);
      index.current = id;
    });
  }

  /** Removes a set with all its data. The current one cannot be removed. */
  async remove(id: string): Promise<void> {
    await this.#edit((index) => {
      entry(index, id);
      if (index.current === id) throw new Fault("setInUse");
      delete index.sets[id];
    });
    await this.#root.removeFolder(id);
  }

  /**
   * Removes a set from the list. Its data stay until `purge` erases them. The current one stays in
   * the list.
   */
  discard(id: string): Promise<void> {
    return this.#edit((index) => {
      const discarded = listed(index, id);
      if (index.current === id) throw new Fault("setInUse");
      discarded.discarded = Date.now();
    });
  }

  /** Returns a discarded set to the list. If another set has its name, it gets a number. */
  restore(id: string): Promise<void> {
    return this.#edit((index) => restored(index, id));
  }

  /**
   * Makes `to` the current set under the name of `from`, which is discarded. Fails if `from` is no
   * longer the current one.
   */
  exchange(from: string, to: string): Promise<void> {
    return this.#edit((index) => {
      const [old, fresh] = [entry(index, from), entry(index, to)];
      if (index.current !== from) throw new Fault("setOpened");
      [old.discarded, old.replacedBy] = [Date.now(), to];
      delete fresh.discarded;
      delete fresh.replacedBy;
      fresh.name = old.name;
      index.current = to;
    });
  }

  /** Returns the set that the current one replaced last, and when; `null` without one. */
  async replaced(): Promise<{ id: string; at: number } | null> {
    const { sets, current } = await this.#index();
    const found = Object.entries(sets).flatMap(([id, { discarded: at, replacedBy }]) =>
      at !== undefined && replacedBy === current ? [{ id, at }] : [],
    );
    return found.sort((a, b) => b.at - a.at)[0] ?? null;
  }

  /** Returns the sets that the user removed from the list since a time, the earliest first. */
  async removed(since: number): Promise<{ id: string; name: string; at: number }[]> {
    const { sets } = await this.#index();
    return Object.entries(sets)
      .flatMap(([id, { name, discarded: at = 0, replacedBy }]) =>
        at > since && replacedBy === undefined ? [{ id, name, at }] : [],
      )
      .sort((a, b) => a.at - b.at);
  }

  /**
   * Erases the sets that were discarded before a time. Returns the time at which the oldest of the
   * others was discarded; `null` without any. Times are in milliseconds since 1970.
   */
  async purge(before: number): Promise<number | null> {
    const index = await this.#index();
    const left = Object.values(index.sets).flatMap(({ discarded = 0 }) =>
      discarded >= before && discarded > 0 ? [discarded] : [],
    );
    const oldest = left.length > 0 ? Math.min(...left) : null;
    // Most starts find nothing to erase, and need not write the index.
    if (discardedSets(index, before).length === 0) return oldest;
    const erased = await this.#edit((index) => {
      const old = discardedSets(index, before);
      for (const id of old) delete index.sets[id];
      return old;
    });
    for (const id of erased) await this.#root.removeFolder(id);
    return oldest;
  }

  /** Returns the journal of a set. */
  journal(id: string): Journal {
    return new Journal(
      id,
      this.#root,
      async () => entry(await this.#index(), id),
      (change) => this.#edit((index) => change(entry(index, id))),
    );
  }

  /** Runs a function while no other realm of this origin writes. */
  alone<T>(run: () => Promise<T>): Promise<T> {
    return exclusively("aqlite/write", run).finally(this.#changed);
  }

  /**
   * Returns the index. If its replacement broke off, it is that of the copy. With `restores`, it is
   * then written back: an edit begins with the copy, which must not be the only complete one.
   */
  async #index(restores = false): Promise<Index> {
    if (await this.#isNew()) return { format: FORMAT, current: null, sets: {} };
    const index = await this.#indexIn(INDEX).catch(async (error: unknown) => {
      if (!(error instanceof SyntaxError)) throw error;
      const copy = await this.#indexIn(INDEX_COPY);
      if (restores) await this.#root.write(INDEX, 0, await this.#root.read(INDEX_COPY, 0));
      return copy;
    });
    if (index.format !== FORMAT && index.format !== WITH_CHECKPOINTS)
      throw new Fault("otherRelease");
    return index;
  }

  /** Whether no index was ever complete: it is absent, or empty without a copy. */
  async #isNew(): Promise<boolean> {
    const size = await this.#root.size(INDEX);
    return size < 0 || (size === 0 && (await this.#root.size(INDEX_COPY)) <= 0);
  }

  async #indexIn(name: string): Promise<Index> {
    return JSON.parse(new TextDecoder().decode(await this.#root.read(name, 0))) as Index;
  }

  #edit<T>(change: (index: Index) => T): Promise<T> {
    return exclusively("aqlite/index", async () => {
      const index = await this.#index(true);
      const result = change(index);
      // A release without checkpoints would read a shortened journal as the whole content. The higher
      // version makes such a release refuse the index.
      const hasCheckpoints = Object.values(index.sets).some((set) => set.checkpoints?.length);
      index.format = hasCheckpoints ? WITH_CHECKPOINTS : FORMAT;
      await this.#root.replace(INDEX, new TextEncoder().encode(JSON.stringify(index)));
      return result;
    }).finally(this.#changed);
  }
}

/** Returns the ids of the sets that were discarded before a time. */
function discardedSets(index: Index, before: number): string[] {
  return Object.entries(index.sets)
    .filter(
      ([id, { discarded }]) =>
        discarded !== undefined && discarded < before && id !== index.current,
    )
    .map(([id]) => id);
}

function entry(index: Index, id: string): Entry {
  const found = index.sets[id];
  if (!found) throw new Gone("setGone");
  return found;
}

/** Returns the entry of a set in the list. */
function listed(index: Index, id: string): Entry {
  const found = entry(index, id);
  if (found.discarded !== undefined) throw new Gone("setGone");
  return found;
}

function restored(index: Index, id: string): void {
  const set = entry(index, id);
  const name = set.name;
  for (let number = 2; taken(index, set.name, id); number += 1) set.name = `${name} (${number})`;
  delete set.discarded;
}

/** Whether another set in the list has this name. */
function taken(index: Index, name: string, own?: string): boolean {
  return Object.entries(index.sets).some(
    ([id, set]) => id !== own && set.discarded === undefined && set.name === name,
  );
}

/** Returns the name. Fails if another set has it. */
function free(index: Index, name: string, own?: string): string {
  const wanted = name.trim();
  if (wanted === "") throw new Fault("setUnnamed");
  if (taken(index, wanted, own)) throw new Fault("setNameTaken", { name: wanted });
  return wanted;
}

/** The writes of one set, up to the position that this realm has read. */
export class Journal {
  readonly id: string;
  readonly #root: Root;
  readonly #entry: () => Promise<Entry>;
  readonly #edit: (change: (entry: Entry) => void) => Promise<void>;
  #opened: Promise<Folder> | undefined;
  /** The position of the next read and write. Generation 0 means that nothing was read. */
  #at = startOf(0);
  /** The bytes of the journal after the checkpoint. */
  #tail = 0;
  /** The bytes of the checkpoint; 0 without one. */
  #before = 0;
  #base = 0;
  #samples: Samples | null = null;

  constructor(
    id: string,
    root: Root,
    entry: () => Promise<Entry>,
    edit: (change: (entry: Entry) => void) => Promise<void>,
  ) {
    this.id = id;
    this.#root = root;
    this.#entry = entry;
    this.#edit = edit;
  }

  /** The parameters of the sample patients of the set. */
  get samples(): Samples | null {
    return this.#samples;
  }

  /**
   * The number of times that the whole content was replaced. Equal numbers of a set mean the same
   * content or a continuation of it.
   */
  get generation(): number {
    return this.#at.generation;
  }

  /** The number of writes of the user. */
  get added(): number {
    return this.#at.lines - this.#base;
  }

  /** A text that identifies the position: equal texts mean equal content. */
  get position(): string {
    const { generation, file, segment, bytes } = this.#at;
    return [this.id, generation, file, segment, bytes].join(" ");
  }

  /**
   * Whether another checkpoint is due. A checkpoint has the whole content, so writing one pays only
   * after new lines of at least an eighth of its size.
   */
  get isLong(): boolean {
    return this.#tail > Math.max(LONG, this.#before / 8);
  }

  /**
   * Passes the new writes to `repeat` in whole lines, with the approximate total `of` in bytes.
   * Calls `anew` first if the content was replaced or if there is a new checkpoint. `anew` opens the
   * checkpoint, or starts empty without one.
   */
  async follow(
    anew: (stored: Stored | undefined) => Promise<void>,
    repeat: (lines: Uint8Array, of: number) => Promise<void>,
  ): Promise<void> {
    const set = await this.#entry();
    const { generation, base, samples } = set;
    const start = startsOf(set).at(-1);
    this.#base = base;
    this.#samples = samples;
    let of = PIECE;
    if (generation !== this.#at.generation || start?.checkpoint?.file !== this.#at.file) {
      await anew(start?.checkpoint && (await this.#open(start.checkpoint)));
      this.#at = startOf(generation, start);
      this.#tail = 0;
      this.#before = start?.checkpoint?.bytes ?? 0;
      of = await bytes(await this.#folder());
    }
    for await (const lines of this.#news(this.#at, set.reached)) {
      this.#tail += lines.length;
      await repeat(lines, of);
    }
  }

  /** Makes the next `follow` start from the beginning. */
  forget(): void {
    this.#at.generation = 0;
  }

  async #open({ file, head, bytes }: Checkpoint): Promise<Stored> {
    try {
      const read = await (await this.#folder()).reader(file);
      return { file, head: read(head, bytes), read };
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new Damaged(message, file, { cause });
    }
  }

  /**
   * Drops a checkpoint whose file cannot be read. Returns false, and drops nothing, if there is no
   * earlier starting point.
   */
  async giveUp(file: string): Promise<boolean> {
    this.forget();
    let goesOn = true;
    await this.#edit((set) => {
      const starts = startsOf(set);
      if (starts.at(-1)?.checkpoint?.file !== file) return;
      goesOn = starts.length > 1;
      if (goesOn) set.checkpoints = set.checkpoints?.slice(0, -1);
    });
    return goesOn;
  }

  /** Writes the file of a checkpoint, which `next` returns piece by piece, the head last. */
  async save(next: () => Promise<Piece>): Promise<Written> {
    const file = `${this.#at.generation}-${crypto.randomUUID()}.checkpoint`;
    const folder = await this.#folder();
    let bytes = 0;
    let pieces: Uint8Array[] = [];
    const flush = async () => {
      const whole = joined(pieces);
      await folder.write(file, bytes, whole);
      bytes += whole.length;
      pieces = [];
    };
    try {
      for (let held = 0; ;) {
        const { piece, isHead } = await next();
        if (isHead) await flush();
        const head = bytes;
        pieces.push(piece);
        held += piece.length;
        if (isHead || held >= PIECE) {
          await flush();
          held = 0;
        }
        if (isHead) return { file, head, bytes };
      }
    } catch (error) {
      await folder.remove(file).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Makes a checkpoint of the present position valid. The caller must hold the lock and have applied
   * all lines. With `erases`, all earlier lines and checkpoints are removed.
   */
  async complete(written: Written, erases = false): Promise<void> {
    const { lines, segment } = this.#at;
    await this.#edit((set) => {
      const made = { ...written, lines, segment: segment + 1, made: Date.now() };
      set.checkpoints = [...(set.checkpoints ?? []), made];
      set.reached = made.segment;
      dropStarts(set, erases);
    });
    this.forget();
    await this.#drop();
  }

  /** Removes the files that the index does not need: of dropped starting points, and incomplete ones. */
  async #drop(): Promise<void> {
    const set = await this.#entry();
    const kept = new Set(set.checkpoints?.map(({ file }) => file));
    const oldest = file(set.generation, startsOf(set)[0]?.segment ?? 1);
    const folder = await this.#folder();
    for (const name of await folder.names())
      if (name.endsWith(".log") ? name < oldest : !kept.has(name)) await folder.remove(name);
  }

  /** Adds a line. The caller must hold the lock and have applied all lines. */
  async append(line: Uint8Array): Promise<void> {
    const at = this.#at;
    const longest = this.#root.inPlace ? LONG_SEGMENT : SEGMENT;
    const next = at.bytes >= longest;
    const [segment, bytes] = next ? [at.segment + 1, 0] : [at.segment, at.bytes];
    await (await this.#folder()).write(file(at.generation, segment), bytes, line);
    Object.assign(at, { segment, bytes: bytes + line.length, lines: at.lines + 1 });
    this.#tail += line.length;
  }

  /** Replaces all content by a checkpoint of sample patients. The caller must then call `follow`. */
  async rewriteAsCheckpoint(samples: Samples, next: () => Promise<Piece>): Promise<void> {
    const made = { lines: 0, segment: 1, made: Date.now() };
    let written: Written | undefined;
    await this.#renew(
      async () => {
        written = await this.save(next);
      },
      (entry) => {
        const checkpoints = written && [{ ...written, ...made }];
        Object.assign(entry, { samples, base: 0, checkpoints, isShortened: true });
      },
    );
    this.forget();
  }

  /** Undoes the user's writes after the first `added` ones. The caller must then call `follow`. */
  async undo(added: number): Promise<void> {
    const set = await this.#entry();
    const kept = set.base + added;
    // From the oldest possible starting point, so that earlier writes can still be undone afterwards.
    const start = startsOf(set).find(({ lines }) => lines <= kept);
    if (!start) throw new Fault("undoExpired");
    const from = startOf(set.generation, start);
    let checkpoints: Checkpoint[] | undefined;
    await this.#renew(
      async () => {
        checkpoints = start.checkpoint && [await this.#copy(start.checkpoint)];
        this.#at.lines = start.lines;
        for await (const lines of this.#news(from, set.reached)) {
          const more = kept - (from.lines - count(lines));
          if (more <= 0) break;
          for (const line of split(lines).slice(0, more)) await this.append(line);
        }
      },
      (entry) => Object.assign(entry, { checkpoints, isShortened: checkpoints !== undefined }),
    );
    this.forget();
  }

  /** Copies a checkpoint to the beginning of the new generation. */
  async #copy(checkpoint: Checkpoint): Promise<Checkpoint> {
    const read = await (await this.#folder()).reader(checkpoint.file);
    let at = 0;
    const next = () => {
      const from = at;
      at = Math.min(from + PIECE, from < checkpoint.head ? checkpoint.head : checkpoint.bytes);
      return Promise.resolve({ piece: read(from, at), isHead: at === checkpoint.bytes });
    };
    return { ...checkpoint, ...(await this.save(next)), segment: 1 };
  }

  async #renew(fill: () => Promise<void>, describe: (entry: Entry) => void): Promise<void> {
    const before = (await this.#entry()).generation;
    const generation = before + 1;
    await this.#clean(before);
    this.#at = startOf(generation);
    try {
      await fill();
      await this.#edit((entry) => {
        delete entry.checkpoints;
        delete entry.isShortened;
        delete entry.reached;
        describe(entry);
        entry.generation = generation;
      });
    } catch (error) {
      this.forget();
      await this.#clean(before);
      throw error;
    }
    await this.#clean(generation);
  }

  /** Removes the segments of other generations, which were replaced or never completed. */
  async #clean(generation: number): Promise<void> {
    const folder = await this.#folder();
    for (const name of await folder.names())
      if (!name.startsWith(`${generation}-`)) await folder.remove(name);
  }

  #folder(): Promise<Folder> {
    this.#opened ??= this.#root.folder(this.id);
    return this.#opened;
  }

  /** Yields whole lines from a position, and advances it. */
  async *#news(at: Position, reached = 1): AsyncGenerator<Uint8Array> {
    const folder = await this.#folder();
    for (;;) {
      const name = file(at.generation, at.segment);
      const size = await folder.size(name);
      for (let piece = PIECE; at.bytes < size;) {
        const bytes = await folder.read(name, at.bytes, Math.min(size, at.bytes + piece));
        const end = bytes.lastIndexOf(NEWLINE) + 1;
        if (end === 0) {
          if (at.bytes + piece >= size) break;
          piece *= 2;
          continue;
        }
        const lines = bytes.subarray(0, end);
        at.bytes += end;
        at.lines += count(lines);
        yield lines;
      }
      const isLast = async () =>
        size < SEGMENT || (await folder.size(file(at.generation, at.segment + 1))) < 0;
      if (at.segment >= reached && (await isLast())) return;
      at.segment += 1;
      at.bytes = 0;
    }
  }
}

/** A position in the journal. `file` is the checkpoint from which the repository was opened. */
interface Position {
  generation: number;
  file: string | undefined;
  segment: number;
  bytes: number;
  lines: number;
}

function startOf(generation: number, start?: Start): Position {
  const { lines = 0, segment = 1, checkpoint } = start ?? {};
  return { generation, file: checkpoint?.file, segment, bytes: 0, lines };
}

/** A piece of the file of a checkpoint. The last piece is the head. */
export interface Piece {
  piece: Uint8Array;
  isHead: boolean;
}

/** The error about the file of a checkpoint that cannot be read. */
export class Damaged extends Error {
  override readonly name = "Damaged";
  readonly file: string;

  constructor(message: string, file: string, options?: ErrorOptions) {
    super(message, options);
    this.file = file;
  }
}

/**
 * Drops the starting points that are no longer needed. The two newest stay, and those from which
 * writes of the last minutes can be undone. With `erases`, only the newest stays.
 */
function dropStarts(set: Entry, erases: boolean): void {
  const starts = startsOf(set);
  const newest = starts.length - (erases ? 1 : 2);
  const kept = starts.filter((_, at) => {
    const made = starts[at + 1]?.checkpoint?.made ?? 0;
    return at >= newest || (!erases && Date.now() - made < UNDOABLE);
  });
  set.checkpoints = kept.flatMap(({ checkpoint }) => checkpoint ?? []);
  set.isShortened = kept[0]?.checkpoint !== undefined;
}

function joined(pieces: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

async function bytes(folder: Folder): Promise<number> {
  const sizes = await Promise.all((await folder.names()).map((name) => folder.size(name)));
  return sizes.reduce((sum, size) => sum + Math.max(size, 0), 0);
}

function file(generation: number, segment: number): string {
  return `${generation}-${String(segment).padStart(6, "0")}.log`;
}

function count(lines: Uint8Array): number {
  let found = 0;
  for (let at = lines.indexOf(NEWLINE); at >= 0; at = lines.indexOf(NEWLINE, at + 1)) found += 1;
  return found;
}

function split(lines: Uint8Array): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let at = 0; at < lines.length;) {
    const end = lines.indexOf(NEWLINE, at) + 1;
    found.push(lines.subarray(at, end));
    at = end;
  }
  return found;
}
