// Data sets on the disk, for Node. Only one process may use a folder at a time.
import { closeSync, openSync, readSync } from "node:fs";
import { mkdir, open, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Folder, Reader, Root } from "../src/storage";
import { AqliteError } from "./errors";

const LOCK = "lock";

/** The folders that this process has locked. The process may open a locked folder repeatedly. */
const opened = new Map<string, Promise<DiskRoot>>();

/** Opens a folder, which is created if necessary. */
export function openFolder(folder: string | undefined): Promise<Root> {
  if (folder === undefined)
    return Promise.reject(
      new AqliteError("a data set of Node needs a `folder` to be kept in", { code: "STORAGE" }),
    );
  const path = resolve(folder);
  const found = opened.get(path) ?? lockedRoot(path);
  opened.set(path, found);
  found.catch(() => opened.delete(path));
  return found;
}

async function lockedRoot(path: string): Promise<DiskRoot> {
  await mkdir(path, { recursive: true });
  await lock(join(path, LOCK));
  return new DiskRoot(path);
}

class DiskFolder implements Folder {
  protected readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  async names(): Promise<string[]> {
    const entries = await readdir(this.path, { withFileTypes: true });
    return entries.filter((entry) => entry.isFile() && entry.name !== LOCK).map(({ name }) => name);
  }

  async size(name: string): Promise<number> {
    return stat(join(this.path, name)).then(({ size }) => size, unlessMissing(-1));
  }

  async read(name: string, from: number, to?: number): Promise<Uint8Array> {
    const file = await open(join(this.path, name), "r");
    try {
      const bytes = new Uint8Array(Math.max(0, (to ?? (await file.stat()).size) - from));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
      return bytes.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  async write(name: string, at: number, bytes: Uint8Array): Promise<void> {
    const path = join(this.path, name);
    const file =
      (await open(path, "r+").catch(unlessMissing(undefined))) ?? (await open(path, "w+"));
    try {
      await file.truncate(at);
      for (let done = 0; done < bytes.length;)
        done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
      await file.datasync();
    } finally {
      await file.close();
    }
  }

  /** Writes a new file beside the old one, and renames it to replace the old one once it is on the disk. */
  async replace(name: string, bytes: Uint8Array): Promise<void> {
    const path = join(this.path, name);
    await writeFile(`${path}.new`, bytes, { flush: true } as object);
    await rename(`${path}.new`, path);
  }

  async remove(name: string): Promise<void> {
    await rm(join(this.path, name), { force: true });
  }

  /** Opens the file for each read, so no file descriptor stays open longer than the repository. */
  reader(name: string): Promise<Reader> {
    const path = join(this.path, name);
    return Promise.resolve((from, to) => {
      const file = openSync(path, "r");
      try {
        const bytes = new Uint8Array(to - from);
        return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, from));
      } finally {
        closeSync(file);
      }
    });
  }
}

class DiskRoot extends DiskFolder implements Root {
  readonly inPlace = true;

  async folder(name: string): Promise<Folder> {
    const path = join(this.path, name);
    await mkdir(path, { recursive: true });
    return new DiskFolder(path);
  }

  async removeFolder(name: string): Promise<void> {
    await rm(join(this.path, name), { recursive: true, force: true });
  }
}

/**
 * Creates a file with the number of the process that uses the folder. The file of a process that no
 * longer exists is replaced.
 */
async function lock(path: string): Promise<void> {
  const taken = await writeFile(path, String(process.pid), { flag: "wx" }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );
  if (taken) {
    process.once("exit", () => unlock(path));
    return;
  }
  const owner = Number(await readFile(path, "utf8").catch(() => "0"));
  if (isRunning(owner))
    throw new AqliteError(
      `the data sets are open in process ${owner}: close them there (or remove \`${path}\` when that process is none of aqlite)`,
      { code: "LOCKED" },
    );
  await rm(path, { force: true });
  await lock(path);
}

function unlock(path: string): void {
  // Handlers of the event `exit` must be synchronous.
  (process.getBuiltinModule?.("node:fs") as typeof import("node:fs") | undefined)?.rmSync(path, {
    force: true,
  });
}

function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function unlessMissing<T>(instead: T) {
  return (error: NodeJS.ErrnoException): T => {
    if (error.code === "ENOENT") return instead;
    throw error;
  };
}
