// The connection of the page with its worker: calls, errors, and the replacement of a worker that
// failed.
import {
  EARLY,
  type Calls,
  type Cancel,
  type Contents,
  type Diagnostic,
  type Failure,
  type Misplaced,
  type Progress,
  type Reply,
  type Request,
  type Server,
} from "./protocol";
import { faultText, type FaultText } from "./fault";

/** An error of a call. `diagnostics` have positions if the query text is the cause. */
export class EngineError extends Error {
  readonly diagnostics: Diagnostic[];
  readonly keys: Misplaced[];
  readonly fatal: boolean;

  /** The text in the catalogue; `null` for a text of the core or of a server. */
  readonly fault: FaultText | null;

  constructor(failure: Failure) {
    super(failure.fault ? faultText(failure.fault) : failure.message);
    this.fault = failure.fault;
    this.name = "EngineError";
    this.diagnostics = failure.diagnostics;
    this.keys = failure.keys;
    this.fatal = failure.fatal;
  }
}

/** The time in milliseconds in which a query must end that is stopped. */
const STOPPING = 500;

/** Calls that change data. A worker that is ended during one may leave a part of the change. */
const WRITES: ReadonlySet<keyof Calls> = new Set([
  "add",
  "addFlat",
  "bringBack",
  "createSet",
  "exchangeGuide",
  "generate",
  "import",
  "load",
  "newEhr",
  "openSet",
  "removeSet",
  "renameSet",
  "restoreSet",
  "startOver",
  "undo",
]);

interface Waiting {
  call: keyof Calls;
  resolve(value: unknown): void;
  reject(error: Error): void;
  progress: Follow | undefined;
}

/** The observer of a call. */
export interface Follow {
  progress(progress: Progress): void;
  /** Ends the call when it is aborted. */
  signal?: AbortSignal;
}

/**
 * Returns the worker that `early.ts` started, unless that worker has failed. In this case the page
 * starts another worker, which reports the reason.
 */
function startedEarly(): EarlyWorker | undefined {
  const early = window.earlyWorker;
  delete window.earlyWorker;
  if (early?.failed) early.worker.terminate();
  return early?.failed ? undefined : early;
}

/** The events of the engine for the page. */
export interface Listener {
  /** An instance died for this reason. Its successor was started. */
  crashed(why: string): void;
  /** The progress of the start of an instance. */
  starting(progress: Progress): void;
  /** The data of this browser changed, and not by this engine. */
  changed(): void;
}

/** Whether a query is this text without parameters, from its first row. */
function isPlain({ q, parameters, from }: Calls["query"]["argument"], text: string): boolean {
  return q === text && from === null && Object.keys(parameters).length === 0;
}

/** Returns a failure that the page itself reports. */
function failed(key: "engineDown" | "stopped" | "workerFailed"): Failure {
  return { message: key, keys: [], diagnostics: [], fault: { key, values: {} }, fatal: false };
}

/** The owner of the worker that owns the wasm module. */
export class Engine {
  #worker: Worker | undefined;
  #waiting = new Map<number, Waiting>();
  #last = EARLY;
  /** The query that `early.ts` asked, with its replies, until the page asks its first query. */
  #early: { q: string; replies: Reply[] } | null = null;
  #crashes = 0;
  #server: Server | null = null;
  readonly #url: string;
  readonly #listener: Listener;

  constructor(url: string, listener: Listener) {
    this.#url = url;
    this.#listener = listener;
    this.#start();
  }

  /** Calls the worker. */
  call<K extends keyof Calls>(
    call: K,
    argument: Calls[K]["argument"],
    follow?: Follow,
  ): Promise<Calls[K]["result"]> {
    return new Promise((resolve, reject) => {
      if (!this.#worker) {
        reject(new EngineError(failed("engineDown")));
        return;
      }
      const early = call === "query" ? this.#takeEarly() : null;
      const isAsked = early !== null && isPlain(argument as Calls["query"]["argument"], early.q);
      const id = isAsked ? EARLY : (this.#last += 1);
      this.#waiting.set(id, {
        call,
        resolve: resolve as (value: unknown) => void,
        reject,
        progress: follow,
      });
      follow?.signal?.addEventListener("abort", () =>
        this.#worker?.postMessage({ cancel: id } satisfies Cancel),
      );
      if (!isAsked) this.#worker.postMessage({ id, call, argument } satisfies Request);
      // If the page asked another query, nobody waits for these replies.
      for (const reply of early?.replies ?? []) this.#answer(reply);
    });
  }

  #takeEarly(): { q: string; replies: Reply[] } | null {
    const early = this.#early;
    this.#early = null;
    return early;
  }

  /**
   * Selects a server for all later calls, or with `null` the data of this browser. If that fails,
   * nothing changes.
   */
  async connect(server: Server | null): Promise<Contents> {
    const contents = await this.call("connect", server);
    this.#server = server;
    return contents;
  }

  /**
   * Ends the running query between two of its steps. If it does not end, or runs on a server, a new
   * worker replaces the present one, and loads the data again. While a write waits for its answer,
   * the worker stays, and only the answer to the query is ignored.
   */
  stop(): void {
    const ids = [...this.#waiting].filter(([, { call }]) => call === "query").map(([id]) => id);
    for (const cancel of ids) this.#worker?.postMessage({ cancel } satisfies Cancel);
    const end = () => {
      if (!ids.some((id) => this.#waiting.has(id))) return;
      if ([...this.#waiting.values()].some(({ call }) => WRITES.has(call))) this.#ignore(ids);
      else this.#replace(failed("stopped"));
    };
    if (this.#server) end();
    else setTimeout(end, STOPPING);
  }

  /** Rejects calls whose answers are ignored when they arrive. */
  #ignore(ids: number[]): void {
    for (const id of ids) {
      this.#waiting.get(id)?.reject(new EngineError(failed("stopped")));
      this.#waiting.delete(id);
    }
  }

  #start(): void {
    const early = startedEarly();
    const worker = early?.worker ?? new Worker(this.#url, { name: "aqlite" });
    const asked = early?.asked ?? null;
    this.#early = asked === null ? null : { q: asked, replies: [] };
    worker.onmessage = (event: MessageEvent<Reply>) => this.#answer(event.data);
    worker.onerror = (event) => {
      event.preventDefault();
      const failure = failed("workerFailed");
      this.#die({
        ...failure,
        ...(event.message ? { message: event.message, fault: null } : {}),
        fatal: true,
      });
    };
    this.#worker = worker;
    // The new worker uses the server of its predecessor, even if the server does not answer: the data
    // of this browser must never answer in place of a server. Later calls then fail with the reason.
    if (this.#server) void this.call("resume", this.#server).catch(() => undefined);
    for (const reply of early?.replies ?? []) this.#answer(reply);
  }

  #answer(reply: Reply): void {
    if (reply.id === EARLY && this.#early !== null) {
      this.#early.replies.push(reply);
      return;
    }
    const waiting = this.#waiting.get(reply.id);
    if ("changed" in reply) {
      this.#listener.changed();
      return;
    }
    if ("progress" in reply) {
      if (reply.id === 0) this.#listener.starting(reply.progress);
      else waiting?.progress?.progress(reply.progress);
      return;
    }
    this.#waiting.delete(reply.id);
    if ("value" in reply) {
      this.#crashes = 0;
      waiting?.resolve(reply.value);
      return;
    }
    waiting?.reject(new EngineError(reply.error));
    if (reply.error.fatal) this.#die(reply.error);
  }

  #die(failure: Failure): void {
    this.#crashes += 1;
    this.#replace(failure);
    this.#listener.crashed(failure.fault ? faultText(failure.fault) : failure.message);
  }

  #replace(failure: Failure): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    // The limit prevents endless restarts of a worker that cannot start.
    if (this.#crashes < 4) this.#start();
    for (const { reject } of waiting) reject(new EngineError(failure));
  }
}
