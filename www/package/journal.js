// Lines of a journal, from bytes and to bytes. Each line is one write; a line that was not finished never happened.

const encoder = new TextEncoder();
const NEWLINE = 10;

/** A line with its end. */
export function bytesOf(line) {
  return encoder.encode(`${line}\n`);
}

/** The whole lines of some bytes that come in chunks; `kept` hears at the end how many bytes they are. */
export async function* wholeLines(chunks, kept) {
  const decoder = new TextDecoder();
  let [rest, total, tail] = ["", 0, 0];
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(NEWLINE);
    tail = end < 0 ? tail + chunk.length : chunk.length - end - 1;
    total += chunk.length;
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop();
    yield* lines;
  }
  kept(total - tail);
}
