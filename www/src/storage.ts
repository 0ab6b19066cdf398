// Folders of files: the origin private file system of a browser, or memory where there is none.
import { Fault } from "./fault";

/** A folder. Names have no separators. */
export interface Folder {
  names(): Promise<string[]>;
  /** Returns the size of a file in bytes; -1 if it does not exist. */
  size(name: string): Promise<number>;
  /** Returns the bytes between two positions, or up to the end. */
  read(name: string, from: number, to?: number): Promise<Uint8Array>;
  /**
   * Writes at a position of a file, which is created if necessary. The written bytes become the end
   * of the file.
   */
  write(name: string, at: number, bytes: Uint8Array): Promise<void>;
  /**
   * Replaces a file atomically. Where that is impossible, a file with the suffix `COPY` has the new
   * content before the file itself is replaced.
   */
  replace(name: string, bytes: Uint8Array): Promise<void>;
  remove(name: string): Promise<void>;
  /** Opens an immutable file for reading without waiting. */
  reader(name: string): Promise<Reader>;
}

/** The suffix of the name of a copy. It is complete if the replacement of its file broke off. */
export const COPY = ".new";

/** Returns the bytes of a file between two positions. Throws if the file is no longer readable. */
export type Reader = (from: number, to: number) => Uint8Array;

/** The maximum size of a file that is read at once. Parts of longer ones are read on request. */
const WHOLE = 96 << 20;
/** The number of bytes that are read at once from a longer file. */
const BLOCK = 1 << 20;

/** The root folder, with one level of folders. */
export interface Root extends Folder {
  /** Returns a folder, which is created if necessary. */
  folder(name: string): Promise<Folder>;
  removeFolder(name: string): Promise<void>;
  /**
   * Whether `write` changes the file in place, so that its cost does not depend on the file's size.
   */
  readonly inPlace: boolean;
}

/**
 * The errors of hosts that allow no files: Firefox and Safari in private windows (Safari has the
 * last one), and pages of insecure origins.
 */
const FORBIDDEN = ["SecurityError", "NotSupportedError", "UnknownError"];

/**
 * Opens a folder in the private file system of this origin. Returns `null` if the host or its user
 * does not allow it. Any other error is thrown: the files exist, perhaps, and must not seem absent.
 */
export async function opfs(name: string): Promise<Root | null> {
  if (!globalThis.navigator?.storage?.getDirectory) return null;
  try {
    const top = await navigator.storage.getDirectory();
    const root = new OpfsRoot(await top.getDirectoryHandle(name, { create: true }));
    await root.names();
    return root;
  } catch (error) {
    if (error instanceof DOMException && FORBIDDEN.includes(error.name)) return null;
    throw error;
  }
}

/**
 * The name of the lock of all files. It is needed for reading, too: a browser may remove a file for
 * a moment while it replaces the file.
 */
const FILES = "aqlite/files";

class OpfsFolder implements Folder {
  protected readonly handle: FileSystemDirectoryHandle;
  readonly #files = new Map<string, FileSystemFileHandle>();

  constructor(handle: FileSystemDirectoryHandle) {
    this.handle = handle;
  }

  async names(): Promise<string[]> {
    const found: string[] = [];
    for await (const name of this.handle.keys()) found.push(name);
    return found;
  }

  size(name: string): Promise<number> {
    return locked(FILES, "shared", async () => (await this.#content(name))?.size ?? -1);
  }

  read(name: string, from: number, to?: number): Promise<Uint8Array> {
    return locked(FILES, "shared", async () => {
      const content = await this.#content(name);
      if (!content) throw new Fault("fileGone", { name });
      return new Uint8Array(await content.slice(from, to ?? content.size).arrayBuffer());
    });
  }

  write(name: string, at: number, bytes: Uint8Array): Promise<void> {
    return exclusively(FILES, () => this.#write(name, at, bytes));
  }

  replace(name: string, bytes: Uint8Array): Promise<void> {
    return exclusively(FILES, async () => {
      if ("createWritable" in FileSystemFileHandle.prototype)
        return this.#swap(await this.#file(name, true), 0, bytes);
      // Safari before version 26 can only write in place. The file itself is opened after the copy
      // is complete, because opening creates an absent one.
      await this.#write(`${name}${COPY}`, 0, bytes);
      return this.#write(name, 0, bytes);
    });
  }

  async #write(name: string, at: number, bytes: Uint8Array): Promise<void> {
    const file = await this.#file(name, true);
    if (!("createSyncAccessHandle" in file)) return this.#swap(file, at, bytes);
    const handle = await (file as Synchronous).createSyncAccessHandle();
    try {
      handle.truncate(at);
      for (let done = 0; done < bytes.length;) {
        const written = handle.write(bytes.subarray(done), { at: at + done });
        if (written === 0) throw new Fault("storageFull");
        done += written;
      }
      handle.flush();
    } finally {
      handle.close();
    }
  }

  /** Waits for the file to be closed: an open one cannot be removed. */
  remove(name: string): Promise<void> {
    return exclusively(FILES, async () => {
      this.#files.delete(name);
      await this.handle.removeEntry(name).catch(unlessMissing);
    });
  }

  async reader(name: string): Promise<Reader> {
    const content = await locked(FILES, "shared", () => this.#content(name));
    if (!content) throw new Fault("fileGone", { name });
    // Service Workers cannot read files without waiting.
    if (content.size <= WHOLE || typeof FileReaderSync === "undefined")
      return readerOf(new Uint8Array(await content.arrayBuffer()));
    return inBlocks(content);
  }

  /** Writes a copy, which replaces the file once it is complete. */
  async #swap(file: FileSystemFileHandle, at: number, bytes: Uint8Array): Promise<void> {
    // A Service Worker of Safari before version 26 has no function that writes.
    if (!("createWritable" in file)) throw new Fault("onlyReads");
    const stream = await file.createWritable({ keepExistingData: at > 0 });
    try {
      await stream.truncate(at);
      await stream.write({ type: "write", position: at, data: bytes as Uint8Array<ArrayBuffer> });
      await stream.close();
    } catch (error) {
      await stream.abort().catch(() => undefined);
      throw error;
    }
  }

  async #content(name: string): Promise<File | undefined> {
    try {
      return await (await this.#file(name, false)).getFile();
    } catch (error) {
      this.#files.delete(name);
      return unlessMissing(error);
    }
  }

  async #file(name: string, create: boolean): Promise<FileSystemFileHandle> {
    const known = this.#files.get(name) ?? (await this.handle.getFileHandle(name, { create }));
    this.#files.set(name, known);
    return known;
  }
}

/** A reader of bytes in memory. */
export function readerOf(bytes: Uint8Array): Reader {
  return (from, to) => bytes.subarray(from, to);
}

/** The function of dedicated workers that the DOM types of the page lack. */
declare const FileReaderSync: new () => { readAsArrayBuffer(blob: Blob): ArrayBuffer };

/** A reader that caches the last block of the file: the parts that a query reads are neighbors. */
function inBlocks(file: File): Reader {
  const sync = new FileReaderSync();
  const read = (from: number, to: number) =>
    new Uint8Array(sync.readAsArrayBuffer(file.slice(from, to)));
  let block = { from: 0, bytes: new Uint8Array() };
  return (from, to) => {
    if (from < block.from || to > block.from + block.bytes.length)
      block = { from, bytes: read(from, Math.max(to, from + BLOCK)) };
    return block.bytes.subarray(from - block.from, to - block.from);
  };
}

class OpfsRoot extends OpfsFolder implements Root {
  readonly inPlace = "createSyncAccessHandle" in FileSystemFileHandle.prototype;

  async folder(name: string): Promise<Folder> {
    return new OpfsFolder(await this.handle.getDirectoryHandle(name, { create: true }));
  }

  removeFolder(name: string): Promise<void> {
    return exclusively(FILES, () =>
      this.handle.removeEntry(name, { recursive: true }).catch(unlessMissing),
    );
  }
}

/** The access handle of dedicated workers, which the DOM types of the page lack. */
interface Synchronous {
  createSyncAccessHandle(): Promise<{
    truncate(size: number): void;
    write(bytes: Uint8Array, options: { at: number }): number;
    flush(): void;
    close(): void;
  }>;
}

function unlessMissing(error: unknown): undefined {
  if (error instanceof DOMException && error.name === "NotFoundError") return undefined;
  throw error;
}

class MemoryFolder implements Folder {
  readonly #files = new Map<string, Uint8Array>();

  names(): Promise<string[]> {
    return Promise.resolve([...this.#files.keys()]);
  }

  size(name: string): Promise<number> {
    return Promise.resolve(this.#files.get(name)?.length ?? -1);
  }

  read(name: string, from: number, to?: number): Promise<Uint8Array> {
    return Promise.resolve((this.#files.get(name) ?? new Uint8Array()).subarray(from, to));
  }

  write(name: string, at: number, bytes: Uint8Array): Promise<void> {
    const before = this.#files.get(name)?.subarray(0, at) ?? new Uint8Array();
    const whole = new Uint8Array(before.length + bytes.length);
    whole.set(before);
    whole.set(bytes, before.length);
    return this.replace(name, whole);
  }

  replace(name: string, bytes: Uint8Array): Promise<void> {
    this.#files.set(name, bytes);
    return Promise.resolve();
  }

  remove(name: string): Promise<void> {
    this.#files.delete(name);
    return Promise.resolve();
  }

  reader(name: string): Promise<Reader> {
    const bytes = this.#files.get(name);
    return bytes
      ? Promise.resolve(readerOf(bytes))
      : Promise.reject(new Fault("fileGone", { name }));
  }
}

/** Files in memory. They are lost when the tab, worker or process ends. */
export class MemoryRoot extends MemoryFolder implements Root {
  readonly inPlace = false;
  readonly #folders = new Map<string, Folder>();

  folder(name: string): Promise<Folder> {
    const found = this.#folders.get(name) ?? new MemoryFolder();
    this.#folders.set(name, found);
    return Promise.resolve(found);
  }

  removeFolder(name: string): Promise<void> {
    this.#folders.delete(name);
    return Promise.resolve();
  }
}

/** The order of locks within this realm, for hosts without locks (Node). */
const waiting = new Map<string, Promise<unknown>>();

/** Runs a function while no other realm of this origin holds the lock. */
export function exclusively<T>(name: string, run: () => Promise<T>): Promise<T> {
  return locked(name, "exclusive", run);
}

function locked<T>(name: string, mode: LockMode, run: () => Promise<T>): Promise<T> {
  if (globalThis.navigator?.locks)
    return navigator.locks.request(name, { mode }, run) as Promise<T>;
  const result = (waiting.get(name) ?? Promise.resolve()).then(run, run);
  waiting.set(
    name,
    result.catch(() => undefined),
  );
  return result;
}
