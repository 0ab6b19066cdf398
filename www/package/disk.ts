// Data sets on the disk, for Node. Only one process may use a folder at a time.
import { closeSync, openSync, readSync, rmSync } from "node:fs";
import {
  link,
  mkdir,
  open,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Folder, Reader, Root } from "../src/storage";
import { AqliteError } from "./errors";

const LOCK = "lock";

/** A folder that this thread has locked. */
interface Locked {
  /** The number of openings that were not closed. */
  uses: number;
  /** Returns the function that unlocks the folder. */
  unlock: Promise<() => void>;
}

/** The folders that this thread has locked. It may open a locked folder repeatedly. */
const opened = new Map<string, Locked>();

/** Opens a folder, which is created if necessary. It is locked until each opening was closed. */
export async function openFolder(folder: string | undefined): Promise<DiskRoot> {
  if (folder === undefined)
    throw new AqliteError("a data set of Node needs a `folder` to be kept in", { code: "STORAGE" });
  const path = resolve(folder);
  const locked = opened.get(path) ?? { uses: 0, unlock: lockedFolder(path) };
  opened.set(path, locked);
  locked.uses += 1;
  const close = (unlock?: () => void) => {
    locked.uses -= 1;
    if (locked.uses > 0) return;
    opened.delete(path);
    unlock?.();
  };
  try {
    const unlock = await locked.unlock;
    return new DiskRoot(path, () => close(unlock));
  } catch (error) {
    close();
    throw error;
  }
}

async function lockedFolder(path: string): Promise<() => void> {
  await mkdir(path, { recursive: true });
  return lock(join(path, LOCK));
}

class DiskFolder implements Folder {
  protected readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  async names(): Promise<string[]> {
    const entries = await readdir(this.path, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && !entry.name.startsWith(LOCK))
      .map(({ name }) => name);
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

  /**
   * Writes a new file beside the old one, and renames it to replace the old one once it is on the
   * disk.
   */
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
  #unlock: (() => void) | undefined;

  constructor(path: string, unlock: () => void) {
    super(path);
    this.#unlock = unlock;
  }

  /** Ends the use of the folder, which must not be used after that. */
  close(): void {
    this.#unlock?.();
    this.#unlock = undefined;
  }

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
 * Creates a file with the number and the start of the process that uses the folder, and an id. The
 * file of a process that no longer exists is replaced. Returns the function that removes the file.
 */
async function lock(path: string): Promise<() => void> {
  const { at, boot } = await processStart();
  const own = [process.pid, at, boot, crypto.randomUUID()].join(" ");
  while (!(await created(path, own))) {
    const found = await readFile(path, "utf8").catch(unlessMissing(null));
    if (found !== null && !(await isStale(found))) throw isLocked(path, found);
    if (found !== null) await removeStale(path, found);
  }
  // Handlers of the event `exit` must be synchronous.
  const unlock = () => {
    process.off("exit", unlock);
    rmSync(path, { force: true });
  };
  process.once("exit", unlock);
  return unlock;
}

/** Creates a file, which has its content from the beginning. Returns false if it exists. */
async function created(path: string, content: string): Promise<boolean> {
  const whole = `${path}.${crypto.randomUUID()}`;
  await writeFile(whole, content);
  try {
    // Some file systems have no links.
    await link(whole, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") throw error;
      return writeFile(path, content, { flag: "wx" });
    });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(whole, { force: true });
  }
}

/**
 * The start of this process in seconds of a clock that nobody sets, and the id of the start of the
 * machine, with which that clock began. Linux alone has the id.
 */
async function processStart(): Promise<{ at: number; boot: string }> {
  const at = Number(process.hrtime.bigint()) / 1e9 - process.uptime();
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  return { at, boot: boot.trim() || "-" };
}

/** The maximum difference in seconds between two readings of the start of one process. */
const SAME_START = 1;

/**
 * Whether the process that created the lock no longer exists. A process of a container often has
 * the number of the former one, but another start.
 */
async function isStale(content: string): Promise<boolean> {
  const [owner = 0, at = NaN] = content.split(" ", 2).map(Number);
  if (owner !== process.pid) return !isRunning(owner);
  const own = await processStart();
  return content.split(" ")[2] !== own.boot || !(Math.abs(at - own.at) < SAME_START);
}

/**
 * Removes a stale lock. Another process may have replaced it since it was read. A lock with other
 * content is restored.
 */
async function removeStale(path: string, content: string): Promise<void> {
  const aside = `${path}.${crypto.randomUUID()}`;
  const isMoved = await rename(path, aside).then(() => true, unlessMissing(false));
  if (!isMoved) return;
  if ((await readFile(aside, "utf8")) !== content) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

function isLocked(path: string, content: string): AqliteError {
  return new AqliteError(
    `the data sets are open in process ${Number.parseInt(content, 10)}: close them there (or remove \`${path}\` when that process is none of aqlite)`,
    { code: "LOCKED" },
  );
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
