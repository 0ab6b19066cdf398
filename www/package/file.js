// A journal in a file, for Node.
import { open, readFile, rm, writeFile } from "node:fs/promises";
import { bytesOf, wholeLines } from "./journal.js";

/** Opens a file, which is made when it is not there; nobody else may have it open. */
export async function openFile(path) {
  const release = await lock(`${path}.lock`);
  try {
    return new FileJournal(await open(path, "a+"), release);
  } catch (error) {
    await release();
    throw error;
  }
}

class FileJournal {
  #file;
  #release;

  constructor(file, release) {
    this.#file = file;
    this.#release = release;
  }

  async *read() {
    let whole = 0;
    yield* wholeLines(this.#file.createReadStream({ start: 0, autoClose: false }), (bytes) => (whole = bytes));
    await this.#file.truncate(whole);
  }

  async append(line) {
    await this.#file.appendFile(bytesOf(line));
    await this.#file.datasync();
  }

  async close() {
    await this.#file.close();
    await this.#release();
  }
}

/** A file with the number of the process that has the journal open. One that a process left behind when it died is taken over. */
async function lock(path) {
  const taken = await writeFile(path, String(process.pid), { flag: "wx" }).then(() => true, expected("EEXIST"));
  if (taken) return () => rm(path, { force: true });
  const owner = Number(await readFile(path, "utf8").catch(() => "0"));
  if (isRunning(owner)) throw new Error(`the journal is open in process ${owner}: close it there (or remove \`${path}\` when that process is none of aqlite)`);
  await rm(path, { force: true });
  return lock(path);
}

function expected(code) {
  return (error) => {
    if (error.code === code) return false;
    throw error;
  };
}

function isRunning(pid) {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
