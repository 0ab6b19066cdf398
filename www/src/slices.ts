// Long calls of the module in slices, so that this realm answers other calls between them.

/** A call of the module that runs in steps: `step` returns `undefined` before the last one. */
export interface Steps {
  step(): string | undefined;
  free(): void;
}

/**
 * The time in milliseconds that a call runs before other calls, such as those of the editor, have
 * their turn. If several calls run in slices, a key waits for one slice of each, so a slice is much
 * shorter than a person notices. The wait for the next task takes some hundredths of a millisecond.
 */
const SLICE = 10;

/**
 * Whether an error, or its cause, makes the instance unusable: its memory is in an unknown state.
 */
export function fatal(error: unknown): boolean {
  return (
    error instanceof WebAssembly.RuntimeError ||
    error instanceof RangeError ||
    (error instanceof Error && (error.name === "Panic" || fatal(error.cause)))
  );
}

/** Waits for the next task, so that messages are handled. `setTimeout` would wait for milliseconds. */
export function nextTask(): Promise<void> {
  if (typeof MessageChannel === "undefined") return new Promise((resolve) => setTimeout(resolve));
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}

/** Whether a call waits for files before it begins. One call of a realm does so at a time. */
let isBeginning = false;

/**
 * Runs the begin of a call, which waits for files several times. Calls that run in slices stop for
 * it: otherwise a short call would wait for a slice of each of them as often as for files.
 */
export async function beforeSlices(begin: () => Promise<void>): Promise<void> {
  isBeginning = true;
  try {
    await begin();
  } finally {
    isBeginning = false;
  }
}

/** Waits within `beforeSlices` for other calls, which therefore run meanwhile. */
export async function behindSlices(wait: () => Promise<void>): Promise<void> {
  const stops = isBeginning;
  isBeginning = false;
  await wait();
  isBeginning = stops;
}

/** Waits for the next task whenever a slice is over. `check` may end the work by throwing. */
export function slices(check: () => void = () => undefined): () => Promise<void> | undefined {
  let begun = performance.now();
  const next = async () => {
    do await nextTask();
    while (isBeginning);
    check();
    begun = performance.now();
  };
  return () => {
    if (performance.now() - begun < SLICE) return undefined;
    return next();
  };
}

/** Runs all steps of a call at once. */
export function atOnce(call: Steps): string {
  for (;;) {
    const text = call.step();
    if (text === undefined) continue;
    call.free();
    return text;
  }
}

/** Runs a call to its end, with pauses for other calls. `check` may end it by throwing. */
export async function inSlices(call: Steps, check?: () => void): Promise<string> {
  const pause = slices(check);
  let text: string | undefined;
  try {
    check?.();
    while ((text = call.step()) === undefined) await pause();
  } catch (error) {
    // The memory of an instance that failed is not used again.
    if (!fatal(error)) call.free();
    throw error;
  }
  call.free();
  return text;
}
