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
//   const journal = sets.journal(id)  its writes: `follow` reads new ones, `append` adds,
//                                     `rewrite` and `undo` replace
//   await sets.alone(run)             admits one writer at a time among all realms of the origin
//
// On disk, `index.json` names the sets. Each set has a folder with segments `generation-number.log`.
// A line is one write. A line without its end is ignored, so a write is stored as a whole or not at
// all. A replacement of everything is a new generation, which becomes valid when the index names it.
import { exclusively, type Folder, type Root } from "./storage";
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
}

interface Index {
  format: number;
  current: string | null;
  sets: Record<string, Entry>;
}

/** The version of the file format. */
const FORMAT = 1;
const INDEX = "index.json";
const NEWLINE = 10;
/** The number of bytes that are read at once. */
const PIECE = 4 << 20;
/** The maximum size of a segment that is copied at each write. */
const SEGMENT = 1 << 20;
/** The maximum size of a segment that is written in place. */
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
      old.discarded = Date.now();
      delete fresh.discarded;
      fresh.name = old.name;
      index.current = to;
    });
  }

  /** Erases the sets that were discarded before a time (milliseconds since 1970). */
  async purge(before: number): Promise<void> {
    const erased = await this.#edit((index) => {
      const old = Object.entries(index.sets).filter(
        ([id, { discarded }]) =>
          discarded !== undefined && discarded < before && id !== index.current,
      );
      for (const [id] of old) delete index.sets[id];
      return old.map(([id]) => id);
    });
    for (const id of erased) await this.#root.removeFolder(id);
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

  async #index(): Promise<Index> {
    if ((await this.#root.size(INDEX)) < 0) return { format: FORMAT, current: null, sets: {} };
    const index = JSON.parse(new TextDecoder().decode(await this.#root.read(INDEX, 0))) as Index;
    if (index.format !== FORMAT) throw new Fault("otherRelease");
    return index;
  }

  #edit<T>(change: (index: Index) => T): Promise<T> {
    return exclusively("aqlite/index", async () => {
      const index = await this.#index();
      const result = change(index);
      await this.#root.replace(INDEX, new TextEncoder().encode(JSON.stringify(index)));
      return result;
    }).finally(this.#changed);
  }
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
  #at = { generation: 0, segment: 1, bytes: 0, lines: 0 };
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

  /**
   * Passes the new writes to `repeat` in whole lines, with the approximate total `of` in bytes.
   * Calls `anew` first if the content was replaced.
   */
  async follow(anew: () => void, repeat: (lines: Uint8Array, of: number) => void): Promise<void> {
    const { generation, base, samples } = await this.#entry();
    this.#base = base;
    this.#samples = samples;
    let of = PIECE;
    if (generation !== this.#at.generation) {
      anew();
      this.#at = { generation, segment: 1, bytes: 0, lines: 0 };
      of = await bytes(await this.#folder());
    }
    for await (const lines of this.#news(this.#at)) repeat(lines, of);
  }

  /** Makes the next `follow` start from the beginning. */
  forget(): void {
    this.#at.generation = 0;
  }

  /** Adds a line. The realm must be alone, and have followed. */
  async append(line: Uint8Array): Promise<void> {
    const at = this.#at;
    const longest = this.#root.inPlace ? LONG_SEGMENT : SEGMENT;
    const next = at.bytes >= longest;
    const [segment, bytes] = next ? [at.segment + 1, 0] : [at.segment, at.bytes];
    await (await this.#folder()).write(file(at.generation, segment), bytes, line);
    Object.assign(at, { segment, bytes: bytes + line.length, lines: at.lines + 1 });
  }

  /** Replaces everything by what `fill` writes: sample patients. When it fails, all stays as it was. */
  rewrite(
    samples: Samples | null,
    fill: (write: (line: Uint8Array) => Promise<void>) => Promise<void>,
  ): Promise<void> {
    return this.#renew(fill, (entry) => Object.assign(entry, { samples, base: this.#at.lines }));
  }

  /** Takes back the own writes behind this number of them. The repository has to follow. */
  async undo(added: number): Promise<void> {
    const kept = (await this.#entry()).base + added;
    const from = { ...this.#at, segment: 1, bytes: 0, lines: 0 };
    await this.#renew(
      async (write) => {
        for await (const lines of this.#news(from)) {
          const more = kept - (from.lines - count(lines));
          if (more <= 0) break;
          for (const line of split(lines).slice(0, more)) await write(line);
        }
      },
      () => undefined,
    );
    this.forget();
  }

  async #renew(
    fill: (write: (line: Uint8Array) => Promise<void>) => Promise<void>,
    describe: (entry: Entry) => void,
  ): Promise<void> {
    const before = (await this.#entry()).generation;
    const generation = before + 1;
    await this.#clean(before);
    this.#at = { generation, segment: 1, bytes: 0, lines: 0 };
    try {
      await fill((line) => this.append(line));
      await this.#edit((entry) => {
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

  /** Removes the segments of other generations: replaced ones, and incomplete ones. */
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
  async *#news(at: {
    generation: number;
    segment: number;
    bytes: number;
    lines: number;
  }): AsyncGenerator<Uint8Array> {
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
      if (size < SEGMENT || (await folder.size(file(at.generation, at.segment + 1))) < 0) return;
      at.segment += 1;
      at.bytes = 0;
    }
  }
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
