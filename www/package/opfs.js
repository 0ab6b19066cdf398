// A journal in the origin private file system of a browser, in segments: a page can only replace files, so they stay small.
import { bytesOf, wholeLines } from "./journal.js";

/** Bytes of a segment; a longer line has one to itself. */
const SEGMENT = 1 << 20;

/** Opens the journal of this name, which is made when it is not there; no other tab or worker may have it open. */
export async function openOpfs(name) {
  if (!/^[\w.-]{1,100}$/.test(name)) throw new Error(`\`${name}\` cannot name a repository: expected letters, digits, \`_\`, \`.\` and \`-\``);
  const storage = globalThis.navigator?.storage;
  if (!storage?.getDirectory) throw new Error("this host has no origin private file system: use another storage, or a page of a secure context");
  const release = await lock(`aqlite/${name}`);
  try {
    const all = await (await storage.getDirectory()).getDirectoryHandle("aqlite", { create: true });
    return new OpfsJournal(await all.getDirectoryHandle(name, { create: true }), release);
  } catch (error) {
    release();
    throw error;
  }
}

class OpfsJournal {
  #folder;
  #release;
  #number = 1;
  #size = 0;
  #writer;

  constructor(folder, release) {
    this.#folder = folder;
    this.#release = release;
  }

  async *read() {
    const names = [];
    for await (const name of this.#folder.keys()) names.push(name);
    for (const name of names.filter((name) => /^\d{8}\.ndjson$/.test(name)).sort()) {
      this.#number = Number.parseInt(name, 10);
      const bytes = new Uint8Array(await (await (await this.#segment()).getFile()).arrayBuffer());
      yield* wholeLines([bytes], (whole) => (this.#size = whole));
    }
  }

  async append(line) {
    const bytes = bytesOf(line);
    if (this.#size > 0 && this.#size + bytes.length > SEGMENT) await this.#next();
    this.#writer ??= await writer(await this.#segment());
    await this.#writer.write(bytes, this.#size);
    this.#size += bytes.length;
  }

  async close() {
    this.#writer?.close();
    this.#writer = undefined;
    this.#release();
  }

  async #next() {
    this.#writer?.close();
    this.#writer = undefined;
    this.#number += 1;
    this.#size = 0;
  }

  #segment() {
    return this.#folder.getFileHandle(`${String(this.#number).padStart(8, "0")}.ndjson`, { create: true });
  }
}

/** Writes to a file: in place where the host can (dedicated workers), else by replacing it. What stands behind `at` is cut off. */
async function writer(file) {
  if (!file.createSyncAccessHandle) return { write: (bytes, at) => replace(file, bytes, at), close: () => undefined };
  const handle = await file.createSyncAccessHandle();
  const write = (bytes, at) => {
    handle.truncate(at);
    for (let done = 0; done < bytes.length; ) {
      const written = handle.write(bytes.subarray(done), { at: at + done });
      if (written === 0) throw new Error("nothing more could be written: is the storage full?");
      done += written;
    }
    handle.flush();
  };
  return { write, close: () => handle.close() };
}

async function replace(file, data, position) {
  const stream = await file.createWritable({ keepExistingData: true });
  await stream.truncate(position);
  await stream.write({ type: "write", position, data });
  await stream.close();
}

/** Held until the function that this gives is called, or the page or worker ends. */
function lock(name) {
  return new Promise((resolve, reject) => {
    const held = (lock) => {
      if (lock) return new Promise((release) => resolve(release));
      reject(new Error("the repository is open in another tab or worker: close it there, or open it under another name"));
      return undefined;
    };
    navigator.locks.request(name, { ifAvailable: true }, held).catch(reject);
  });
}
