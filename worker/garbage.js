/** More bytes than any machine can allocate: 64 TiB. */
const IMPOSSIBLE = 2 ** 46;

/** The bytes of garbage that start a collection: while requests are open, and when none is open. */
const [GARBAGE, IDLE_GARBAGE] = [64_000_000, 24_000_000];

/**
 * The maximum number of forced collections in the life of an isolate. Each one leaks about two
 * megabytes: V8 drops compiled code of the wasm module, compiles it again, and does not release the
 * old code. After this number, V8 alone decides when it collects.
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
 * Adds to the count of bytes that the runtime no longer needs. Forces a collection when the count
 * exceeds its limit. `isIdle` is true when no request is open. The limit is then lower, because an
 * idle isolate does not collect by itself, and its garbage would stay in memory.
 */
export function countGarbage(bytes, isIdle) {
  garbage += bytes;
  if (garbage < (isIdle ? IDLE_GARBAGE : GARBAGE) || collections >= COLLECTIONS) return;
  collections += 1;
  collect();
}

/** Collects the memory of an instance that was replaced. */
export const collectReplaced = collect;
