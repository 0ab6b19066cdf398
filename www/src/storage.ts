// Folders of files for what has to stay: the origin private file system of a browser, or memory where there is none.

/** A folder; names are plain. */
export interface Folder {
  names(): Promise<string[]>;
  /** Bytes of a file; -1 when there is none. */
  size(name: string): Promise<number>;
  /** The bytes between two places, or up to the end. */
  read(name: string, from: number, to?: number): Promise<Uint8Array>;
  /** Writes at a place of a file, which is made when it is not there. What stood behind the place is gone. */
  write(name: string, at: number, bytes: Uint8Array): Promise<void>;
  /** Writes a file anew: all of it or nothing. */
  replace(name: string, bytes: Uint8Array): Promise<void>;
  remove(name: string): Promise<void>;
}

/** The folder of everything, with one level of folders in it. */
export interface Root extends Folder {
  /** A folder, which is made when it is not there. */
  folder(name: string): Promise<Folder>;
  removeFolder(name: string): Promise<void>;
  /** True when one call of `write` is cheap however large the file is. */
  readonly inPlace: boolean;
}

/** The folder `name` in the private file system of this origin; `null` where the host or its user does not allow one. */
export async function opfs(name: string): Promise<Root | null> {
  try {
    const top = await navigator.storage.getDirectory();
    const root = new OpfsRoot(await top.getDirectoryHandle(name, { create: true }));
    await root.names();
    return root;
  } catch {
    return null;
  }
}

/** The lock of all files: one that is written cannot be read, and for a moment is not even there. */
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
      if (!content) throw new Error(`the file ${name} is gone`);
      return new Uint8Array(await content.slice(from, to ?? content.size).arrayBuffer());
    });
  }

  write(name: string, at: number, bytes: Uint8Array): Promise<void> {
    return exclusively(FILES, () => this.#write(name, at, bytes));
  }

  replace(name: string, bytes: Uint8Array): Promise<void> {
    return exclusively(FILES, async () => {
      const file = await this.#file(name, true);
      return "createWritable" in file ? this.#swap(file, 0, bytes) : this.#write(name, 0, bytes);
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
        if (written === 0) throw new Error("nothing more can be kept: the storage is full");
        done += written;
      }
      handle.flush();
    } finally {
      handle.close();
    }
  }

  async remove(name: string): Promise<void> {
    this.#files.delete(name);
    await this.handle.removeEntry(name).catch(unlessMissing);
  }

  /** A copy is written and takes the place of the file when it is whole. */
  async #swap(file: FileSystemFileHandle, at: number, bytes: Uint8Array): Promise<void> {
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

class OpfsRoot extends OpfsFolder implements Root {
  readonly inPlace = "createSyncAccessHandle" in FileSystemFileHandle.prototype;

  async folder(name: string): Promise<Folder> {
    return new OpfsFolder(await this.handle.getDirectoryHandle(name, { create: true }));
  }

  async removeFolder(name: string): Promise<void> {
    await this.handle.removeEntry(name, { recursive: true }).catch(unlessMissing);
  }
}

/** What dedicated workers have (the types of the page do not hold it). */
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
}

/** Files that are forgotten at the end. */
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

/** Where the host has no locks (Node), the order of this realm. */
const waiting = new Map<string, Promise<unknown>>();

/** Runs something while nobody else of this origin holds the lock. */
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
