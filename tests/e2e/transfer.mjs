// A client of exports and imports, written by docs/rest.md alone. The program `aqlite` has another
// one, so that each of them would show a mistake of the other.
//
// The base is a mount, such as http://127.0.0.1:8787/v1. Both functions continue an interrupted run: an
// export behind the last whole line of the file, an import by skipping existing data.
import { createHash } from "node:crypto";
import {
  appendFileSync,
  closeSync,
  createReadStream,
  existsSync,
  openSync,
  readSync,
  fstatSync,
  truncateSync,
} from "node:fs";
import { createInterface } from "node:readline";

const AT_ONCE = 4_000_000;

/** Returns the text of the record in a line. Fails unless it has the digest in the line. */
export function recordOf(line) {
  const match = /^\{"digest":"([0-9a-f]{64})","record":(.*)\}$/s.exec(line);
  if (!match) throw new Error(`not a line of an export: ${line.slice(0, 80)}`);
  const [, digest, record] = match;
  if (createHash("sha256").update(record).digest("hex") !== digest)
    throw new Error("a record does not have its digest: the export was altered");
  return record;
}

async function need(answer) {
  if (answer.ok) return answer;
  throw new Error(`${answer.url}: ${answer.status} ${await answer.text()}`);
}

/** Returns the last whole line of an interrupted export, and cuts what follows it from the file. */
function lastLine(file) {
  if (!existsSync(file)) return undefined;
  const handle = openSync(file, "r");
  const { size } = fstatSync(handle);
  let tail = Buffer.alloc(0);
  let at = size;
  let end = -1;
  let begin = -1;
  while (at > 0 && begin < 0) {
    const length = Math.min(AT_ONCE, at);
    const block = Buffer.alloc(length);
    readSync(handle, block, 0, length, at - length);
    tail = Buffer.concat([block, tail]);
    at -= length;
    end = tail.lastIndexOf(10);
    begin = end > 0 ? tail.lastIndexOf(10, end - 1) : -1;
  }
  closeSync(handle);
  truncateSync(file, at + end + 1);
  return end < 0 ? undefined : tail.subarray(begin + 1, end).toString();
}

/** Returns the position of a record, which the next page follows. */
function positionOf({ contribution, definition, name, version }) {
  return contribution ? contribution.uid.value : `${definition}/${name}/${version}`;
}

/** Exports to a file. Returns the number of records that were added. */
export async function exportTo(base, file, ehrId) {
  const before = lastLine(file);
  let record = before === undefined ? undefined : JSON.parse(recordOf(before));
  let count = 0;
  while (!record?.end) {
    const query = new URLSearchParams({
      ...(ehrId && { ehr_id: ehrId }),
      ...(record && { after: positionOf(record) }),
    });
    const answer = await need(await fetch(`${base}/admin/export?${query}`));
    const text = await answer.text();
    const lines = text.trimEnd().split("\n");
    for (const line of lines) record = JSON.parse(recordOf(line));
    appendFileSync(file, text);
    count += lines.length;
  }
  return count;
}

/**
 * Imports a file. Returns the number of new and of existing records. `findings` is the treatment of
 * compositions with errors: `refuse` or `keep`.
 */
export async function importFrom(base, file, findings = "refuse") {
  const counts = { new: 0, there: 0 };
  let held = "";
  let first = 1;
  let next = 1;
  const send = async () => {
    if (held === "") return;
    const options = {
      method: "POST",
      headers: { "content-type": "application/x-ndjson" },
      body: held,
    };
    const answer = await need(
      await fetch(`${base}/admin/import?first=${first}&findings=${findings}`, options),
    );
    for (const line of (await answer.text()).trim().split("\n").filter(Boolean)) {
      const outcome = JSON.parse(line);
      if (outcome.status >= 300 || outcome.code)
        throw new Error(
          `line ${outcome.line}: ${outcome.status ?? outcome.code} ${outcome.message}`,
        );
      counts[outcome.status === 201 ? "new" : "there"] += 1;
    }
    [held, first] = ["", next];
  };
  for await (const line of createInterface({
    input: createReadStream(file, "utf8"),
    crlfDelay: Infinity,
  })) {
    recordOf(line);
    held += `${line}\n`;
    next += 1;
    if (held.length > AT_ONCE) await send();
  }
  await send();
  return counts;
}
