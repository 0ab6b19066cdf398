/** More bytes than any machine can allocate: 64 TiB. */
const IMPOSSIBLE = 2 ** 46;

/** Bytes of garbage after which it is collected: while requests are handled, and before the isolate idles. */
const [GARBAGE, IDLE_GARBAGE] = [64_000_000, 24_000_000];

/**
 * Collections of copies of texts at most, in the life of an isolate. Each leaves about two megabytes behind: V8 drops
 * compiled code of the wasm module, compiles it again, and does not release the old code. After that many, V8 collects
 * when it decides to.
 */
const COLLECTIONS = 25;

let collections = 0;
let garbage = 0;

function collect() {
  garbage = 0;
  try {
    // V8 collects everything before it reports that an allocation failed.
    new ArrayBuffer(IMPOSSIBLE);
  } catch {
    // The allocation is meant to fail.
  }
}

/**
 * Counts bytes that the runtime does not need any more, and collects them when they are many. `isIdle` is true when no
 * request is open: an idle isolate does not collect, so its garbage would remain mapped.
 */
export function countGarbage(bytes, isIdle) {
  garbage += bytes;
  if (garbage < (isIdle ? IDLE_GARBAGE : GARBAGE) || collections >= COLLECTIONS) return;
  collections += 1;
  collect();
}

/** Collects the memory of an instance that was replaced. */
export const collectReplaced = collect;
