// A repository of EHRs, templates and guides behind the REST interface, in memory or stored.
import { Repository as Engine, Pages, Samples } from "aqlite-wasm";
import { JournaledRepository, readAnswer, reads, responseOf } from "../src/journaled";
import { DataSets } from "../src/persist";
import { atOnce, nextTask } from "../src/slices";
import { opfs, type Root } from "../src/storage";
import { dispose } from "./dispose";
import { AqliteError, ofAnswer, reasonOf } from "./errors";
import {
  LARGEST,
  callback,
  choice,
  document,
  draft,
  flag,
  id,
  integer,
  json,
  moment,
  object,
  optional,
  text,
  texts,
  wrong,
} from "./arguments";
import { guarded, release } from "./guard";
import type { HostResponse, RequestLike } from "./host";
import { QueryResult, RunObserver, throwIfAborted } from "./result";
import { start } from "./start";
import type {
  Completions,
  DataSet,
  Diagnostic,
  Explanation,
  Follow,
  Format,
  Hover,
  Json,
  PageOptions,
  QueryOptions,
  RestAnswer,
  RestRequest,
  TemplateDescription,
} from "./types";

/** The place and the addresses of a repository. */
export interface OpenOptions {
  /**
   * The name of the data set, which is created if it does not exist. Without a name, everything is
   * in memory only.
   */
  name?: string;
  /**
   * The folder of data sets: in a browser a folder of the origin private file system (`aqlite`,
   * which the page uses), in Node one of the disk.
   */
  folder?: string;
  /** The address before `/v1` of the REST interface. */
  baseUrl?: string;
  /** Whether requests may administer: export, import, load under fixed ids, delete physically. */
  admin?: boolean;
  /** Receives the progress of reading a large data set. */
  onProgress?: Follow["onProgress"];
}

/**
 * Opens the folder of data sets where this host keeps files. A host that locks it for this process
 * unlocks it by `close`.
 * @internal
 */
export type Storage = (folder: string | undefined) => Promise<Root & { close?(): void }>;

let storage: Storage = async (folder = "aqlite") => {
  const root = await opfs(folder);
  if (root) return root;
  throw new AqliteError(
    "this host has no origin private file system: open the repository without `name`, or in a page of a secure context",
    { code: "STORAGE" },
  );
};

/** Sets the folder of data sets of a host without origin private file system. @internal */
export function keepIn(where: Storage): void {
  storage = where;
}

/** The data sets of a folder. `close` ends their use. */
interface OpenSets {
  sets: DataSets;
  close(): void;
}

function setsIn(folder: string | undefined): Promise<OpenSets> {
  return stored(async () => {
    const root = await storage(folder);
    const close = () => root.close?.();
    try {
      return { sets: await DataSets.open(root), close };
    } catch (error) {
      close();
      throw error;
    }
  });
}

/** Runs on the data sets of a folder. */
async function withSets<T>(
  folder: string | undefined,
  run: (sets: DataSets) => Promise<T>,
): Promise<T> {
  const { sets, close } = await setsIn(optional(id, folder, "`folder`"));
  return stored(() => run(sets)).finally(close);
}

/** Reads or writes files. Exceptions become errors of this package, except those of callbacks. */
async function stored<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Ended) throw error.reason;
    if (error instanceof AqliteError) throw error;
    throw new AqliteError(reasonOf(error), {
      code: "STORAGE",
      cause: error,
    });
  }
}

/** The default number of rows of a page. */
const PAGE = 10_000;
/** The maximum number of rows of a page. */
const LONGEST_PAGE = 1_000_000;
/** The maximum numbers of sample patients and of their compositions, those of the page. */
const MOST_EHRS = 100_000;
const MOST_COMPOSITIONS = 1_000_000;

const FORMATS = ["JSON", "FLAT", "STRUCTURED"] as const;
const KINDS = ["full", "minimal"] as const;

/** EHRs, templates, guides and stored queries, with the functions to query them. */
export class Repository {
  #memory: Engine | undefined;
  #journaled: JournaledRepository | undefined;
  /** Ends the use of the folder of data sets. */
  #closeSets: (() => void) | undefined;
  readonly #base: string;
  readonly #admin: boolean;
  /** The number of calls that have begun and not ended. */
  #calls = 0;
  /** Whether the module runs a call now, which may call functions of the program. */
  #isRunning = false;
  #isClosed = false;

  private constructor({ baseUrl = "http://localhost", admin = false }: OpenOptions) {
    this.#base = text(baseUrl, "`baseUrl`").replace(/\/+$/, "");
    this.#admin = flag(admin, "`admin`");
  }

  /** Opens a repository, and starts the module before. */
  static async open(options: OpenOptions = {}): Promise<Repository> {
    const { name, folder, onProgress } = object(options);
    optional(id, name, "`name`");
    optional(id, folder, "`folder`");
    optional(callback, onProgress, "`onProgress`");
    const repository = new Repository(options);
    await start();
    if (name === undefined) repository.#memory = guarded(() => new Engine(repository.#base, false));
    else await repository.#open(name, options);
    return repository;
  }

  async #open(name: string, options: OpenOptions): Promise<void> {
    const { sets, close } = await setsIn(options.folder);
    this.#closeSets = close;
    try {
      await this.#read(sets, name, options);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  async #read(sets: DataSets, name: string, { onProgress }: OpenOptions): Promise<void> {
    const id = await stored(() =>
      sets.alone(
        async () =>
          (await sets.list()).find((set) => set.name === name.trim())?.id ?? sets.create(name),
      ),
    );
    const kept = guarded(
      () => new JournaledRepository(this.#base, sets, () => Promise.resolve(id), true, guarded),
    );
    this.#journaled = kept;
    const started = performance.now();
    const reading = (done: number, of: number) => {
      try {
        const milliseconds = performance.now() - started;
        onProgress?.({ what: "reading bytes", done, of, milliseconds });
      } catch (error) {
        throw new Ended(error);
      }
    };
    await stored(() => kept.current(() => undefined, reading));
    // A short-lived process may never be idle, so a long journal is compacted when it is opened.
    await stored(() => kept.compact());
  }

  /** Returns the data sets of a folder, the oldest first. */
  static async list(options: { folder?: string } = {}): Promise<DataSet[]> {
    const all = await withSets(object(options).folder, (sets) => sets.list());
    return all.map(({ id, name, created, bytes }) => ({ id, name, created, bytes }));
  }

  /** Removes a data set with all its data. Returns false if it does not exist. */
  static async remove(name: string, options: { folder?: string } = {}): Promise<boolean> {
    const sought = id(name, "the name").trim();
    return withSets(object(options).folder, async (sets) => {
      const found = (await sets.list()).find((set) => set.name === sought);
      if (found) await sets.remove(found.id);
      return found !== undefined;
    });
  }

  /** Returns the repository of the module. */
  #engine(): Engine {
    const engine = this.#journaled?.repository ?? this.#memory;
    if (engine && !this.#isClosed) return engine;
    throw new AqliteError("the repository was closed: open it again", { code: "CLOSED" });
  }

  /** Runs on data that contain all writes of other tabs and workers. */
  #reading<T>(run: (engine: Engine) => T): Promise<T> {
    return this.#counted(run, (kept, call) => kept.current(call));
  }

  /** Runs like `#reading`, and stores the writes before this resolves. */
  #writing<T>(run: (engine: Engine) => T): Promise<T> {
    return this.#counted(run, (kept, call) => kept.writing(call));
  }

  /** Runs a call. The memory of the repository is freed after the last call has ended. */
  async #counted<T>(
    run: (engine: Engine) => T,
    inTurn: (kept: JournaledRepository, call: () => T) => Promise<T>,
  ): Promise<T> {
    const call = () => this.#run(run);
    this.#calls += 1;
    try {
      // The call may come from a function that a run calls. That run ends before this continues.
      while (this.#isRunning) await undefined;
      const kept = this.#journaled;
      return kept ? await stored(() => inTurn(kept, call)) : call();
    } finally {
      this.#calls -= 1;
      if (this.#isClosed) this.#free();
    }
  }

  #run<T>(run: (engine: Engine) => T): T {
    const engine = this.#engine();
    this.#isRunning = true;
    try {
      return guarded(() => run(engine));
    } finally {
      this.#isRunning = false;
    }
  }

  /** Answers a request of the REST interface. A wrong request results in a status, as over HTTP. */
  async request(request: RestRequest): Promise<RestAnswer> {
    const { method = "GET", path, headers = {}, body = "" } = object(request, "the request");
    if (typeof body === "object") throw wrong("the body is an object: pass `JSON.stringify(body)`");
    const url = `${this.#base}${text(path, "the path").startsWith("/") ? path : `/v1/${path}`}`;
    return this.#send(
      text(method, "the method").toUpperCase(),
      url,
      texts(headers, "`headers`"),
      text(body, "the body"),
    );
  }

  #send(
    method: string,
    url: string,
    headers: Record<string, string>,
    body: string,
  ): Promise<RestAnswer> {
    const run = (engine: Engine) => {
      engine.admin = this.#admin;
      return readAnswer<RestAnswer>(
        atOnce(
          engine.begin_request(
            method,
            url,
            JSON.stringify(headers),
            body,
            Date.now(),
            crypto.randomUUID(),
          ),
        ),
      );
    };
    return reads(method, url.startsWith("http") ? url : `http://localhost${url}`)
      ? this.#reading(run)
      : this.#writing(run);
  }

  /** Answers a `Request` with a `Response`, for Service Workers, workerd, Deno and Bun. */
  async fetch(request: RequestLike): Promise<HostResponse> {
    const { method, path, headers, body } = await requestOf(request, this.#base);
    const answer = await this.#send(method, `${this.#base}${path}`, headers, body);
    return responseOf(answer, method);
  }

  /** Sends a request. Throws if it is refused. */
  async #ask(asked: RestRequest): Promise<RestAnswer> {
    const answer = await this.request(asked);
    if (answer.status < 300) return answer;
    throw ofAnswer(answer);
  }

  /** Creates an EHR. Returns its id. `subject` is the external reference of its EHR_STATUS. */
  async createEhr(
    options: { ehrId?: string; subject?: { id: string; namespace: string } } = {},
  ): Promise<string> {
    const { ehrId, subject } = object(options);
    const { headers } = await this.#ask({
      method: ehrId === undefined ? "POST" : "PUT",
      path: ehrId === undefined ? "ehr" : `ehr/${inPath(ehrId, "the EHR id")}`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(statusOf(subject)),
    });
    return tag(headers);
  }

  /** Adds an operational template (OPT 1.4). Returns its id. */
  async addTemplate(opt: string): Promise<string> {
    const { headers } = await this.#ask({
      method: "POST",
      path: "/rest/openehr/v1/definition/template/adl1.4",
      headers: { "content-type": "application/xml" },
      body: text(opt, "the template"),
    });
    return lastOf(headers);
  }

  /** Returns the ids of the templates. */
  async templates(): Promise<string[]> {
    const { body } = await this.#ask({ path: "definition/template" });
    return (JSON.parse(body) as { template_id: string }[]).map(({ template_id }) => template_id);
  }

  /**
   * Describes a template, in a language if it has it. Returns `null` if there is none with this id.
   */
  async describeTemplate(id: string, language = ""): Promise<TemplateDescription | null> {
    text(id, "the template id");
    text(language, "the language");
    return this.#reading(
      (engine) => JSON.parse(engine.describe(id, language)) as TemplateDescription | null,
    );
  }

  /** Returns a web template: the JSON of the media type `application/openehr.wt+json`. */
  async webTemplate(id: string): Promise<{ [name: string]: Json }> {
    const { body } = await this.#ask({
      path: `definition/template/${inPath(id, "the template id")}/webtemplate`,
    });
    return JSON.parse(body) as { [name: string]: Json };
  }

  /**
   * Returns an example composition that is valid for the template, as canonical JSON or in another
   * format.
   */
  async example(
    templateId: string,
    options: { kind?: "full" | "minimal"; language?: string; format?: Format } = {},
  ): Promise<{ [name: string]: Json }> {
    const { kind = "full", language, format = "JSON" } = object(options);
    const query = new URLSearchParams({
      kind: choice(kind, "`kind`", KINDS),
      format: choice(format, "`format`", FORMATS),
      ...(optional(text, language, "`language`") ? { language } : {}),
    });
    const { body } = await this.#ask({
      path: `/rest/openehr/v1/definition/template/adl1.4/${inPath(templateId, "the template id")}/example?${query}`,
      headers: { accept: "application/json" },
    });
    return JSON.parse(body) as { [name: string]: Json };
  }

  /**
   * Commits a composition: canonical JSON (text, or an object) or XML, or by `format` FLAT or
   * STRUCTURED of the template `templateId`. Returns the uid of the version. Text keeps every
   * digit. An object has the precision of JavaScript numbers.
   */
  async addComposition(
    ehrId: string,
    composition: string | { [name: string]: Json },
    options: { format?: Format; templateId?: string } = {},
  ): Promise<string> {
    const { format, templateId } = object(options);
    const body = document(composition, "the composition");
    const type = body.trimStart().startsWith("<") ? "application/xml" : "application/json";
    const query = new URLSearchParams({
      ...(optional(choice, format, "`format`", FORMATS) ? { format } : {}),
      ...(optional(id, templateId, "`templateId`") ? { templateId } : {}),
    });
    const { headers } = await this.#ask({
      method: "POST",
      path: `ehr/${inPath(ehrId, "the EHR id")}/composition?${query}`,
      headers: { "content-type": type, prefer: "return=minimal" },
      body,
    });
    return tag(headers);
  }

  /**
   * Returns the findings that a commit would have for a composition (canonical JSON or XML). Empty
   * if it is valid. The template is the given one, or else the one named in the composition.
   */
  async validate(
    composition: string | { [name: string]: Json },
    templateId?: string,
  ): Promise<Diagnostic[]> {
    const written = document(composition, "the composition");
    optional(id, templateId, "the template id");
    return this.#reading(
      (engine) => JSON.parse(engine.validate(written, templateId)) as Diagnostic[],
    );
  }

  /** Adds a guide (GDL1 or GDL2). Returns its id. */
  async addGuide(guide: string): Promise<string> {
    const type = text(guide, "the guide").trimStart().startsWith("{")
      ? "application/json"
      : "text/plain";
    const { headers } = await this.#ask({
      method: "POST",
      path: "definition/gdl",
      headers: { "content-type": type },
      body: guide,
    });
    return lastOf(headers);
  }

  /**
   * Runs a stored guide on an EHR. Returns fired rules, results and cards. With `trace`, also the
   * reason why each rule fired or not.
   */
  async runGuide(
    guideId: string,
    ehrId: string,
    options: { trace?: boolean; language?: string; now?: Date } = {},
  ): Promise<{ [name: string]: Json }> {
    const { trace = false, language, now } = object(options);
    const query = new URLSearchParams({
      trace: String(flag(trace, "`trace`")),
      ...(optional(text, language, "`language`") ? { language } : {}),
      ...(now === undefined ? {} : { now: moment(now) }),
    });
    const { body } = await this.#ask({
      path: `gdl/query/${inPath(ehrId, "the EHR id")}/${inPath(guideId, "the guide id")}?${query}`,
    });
    return JSON.parse(body) as { [name: string]: Json };
  }

  /** Runs a query on all data. */
  async query(q: string, options: QueryOptions = {}): Promise<QueryResult> {
    const { parameters, now } = bound(options);
    text(q);
    const rows = await this.#watched(options, (engine, step) =>
      engine.rows(q, parameters, now, step),
    );
    return new QueryResult(rows, q);
  }

  /** Runs a query that is observed. */
  #watched<T>(options: QueryOptions, run: (engine: Engine, step: () => boolean) => T): Promise<T> {
    const watch = new RunObserver(options);
    return this.#reading((engine) => {
      try {
        return run(engine, watch.step);
      } catch (error) {
        throw watch.reason === undefined ? error : new Ended(watch.reason);
      }
    }).catch((error: unknown) => {
      throw error instanceof AqliteError && error.cause instanceof Ended
        ? error.cause.reason
        : error;
    });
  }

  /**
   * Runs a query page by page, for results that are too large to be held at once. All pages show
   * the state that the first one read, also while data are written. A page has at most `rows` rows,
   * and fewer if they would take more than 64 MB. The first page may be empty.
   *
   * A state is gone (`GONE`) after a physical deletion, or if the data set was replaced.
   */
  async *pages(q: string, options: PageOptions = {}): AsyncGenerator<QueryResult> {
    const { parameters, now } = bound(options);
    let most = integer(options.rows ?? PAGE, "`rows`", 1, LONGEST_PAGE);
    const pages = guarded(() => new Pages(text(q), parameters, now));
    let origin: string | undefined;
    try {
      for (;;) {
        const page = await this.#watched(options, (engine, step) => {
          origin ??= this.#content();
          if (this.#content() !== origin) throw gone();
          return engine.page(pages, most, step);
        }).catch((error: unknown) => {
          if (most === 1 || !isTooLarge(error)) throw error;
          return null;
        });
        if (page === undefined) return;
        if (page) yield new QueryResult(page, q);
        else most = Math.ceil(most / 4);
      }
    } finally {
      release(pages);
    }
  }

  /**
   * Returns the identity of the content, which a checkpoint keeps: after it, the same states exist.
   */
  #content(): string {
    const { id = "", generation = 0 } = this.#journaled?.journal ?? {};
    return `${id} ${generation}`;
  }

  /** Explains each step of a query from text to rows, and the data that its run reads. */
  async explain(
    q: string,
    options: Pick<QueryOptions, "parameters" | "now"> = {},
  ): Promise<Explanation> {
    const { parameters, now } = bound(options);
    draft(q);
    return this.#reading(
      (engine) => JSON.parse(atOnce(engine.begin_explanation(q, parameters, now))) as Explanation,
    );
  }

  /**
   * Returns the problems of a query that is being written, with the warnings that templates give
   * and no data refute. Parameters need not be bound.
   */
  async diagnose(q: string): Promise<Diagnostic[]> {
    draft(q);
    return this.#reading(
      (engine) => JSON.parse(engine.diagnose(q, new Date().toISOString())) as Diagnostic[],
    );
  }

  /**
   * Returns completions at an offset (in UTF-16 units; the end, if absent), with the names of the
   * templates.
   */
  async complete(q: string, offset?: number): Promise<Completions> {
    const at = integer(offset ?? draft(q).length, "the offset", 0, LARGEST);
    draft(q);
    return this.#reading((engine) => JSON.parse(engine.complete(q, at)) as Completions);
  }

  /** Describes the word at an offset (in UTF-16 units), with the names of the templates. */
  async hover(q: string, offset: number): Promise<Hover | null> {
    draft(q);
    const at = integer(offset, "the offset", 0, LARGEST);
    return this.#reading((engine) => JSON.parse(engine.hover(q, at)) as Hover | null);
  }

  /**
   * Creates sample patients with templates and guides. Equal numbers produce equal patients. They
   * must not exist yet. Patients that were created before `signal` or an error ended it stay.
   */
  async generate(
    samples: { ehrs: number; compositions: number; seed?: number },
    options: Follow = {},
  ): Promise<void> {
    const { ehrs, compositions, seed = 1 } = object(samples, "the sample");
    integer(ehrs, "`ehrs`", 1, MOST_EHRS);
    integer(compositions, "`compositions`", 1, MOST_COMPOSITIONS);
    integer(seed, "`seed`", 0, LARGEST);
    const { onProgress, signal } = object(options);
    optional(callback, onProgress, "`onProgress`");
    throwIfAborted(signal);
    const { templates, guides } = await import("aqlite-samples");
    const loading = guarded(() => new Samples(ehrs, compositions, seed, templates, guides));
    const start = performance.now();
    try {
      for (let more = true; more;) {
        throwIfAborted(signal);
        more = await this.#writing((engine) => engine.load_samples(loading, 250));
        onProgress?.({
          what: "compositions",
          done: loading.done,
          of: compositions,
          milliseconds: performance.now() - start,
        });
        await nextTask();
      }
    } finally {
      release(loading);
    }
  }

  /**
   * Exports everything as pages of newline-delimited JSON with digests, the input of `import` and
   * of `POST /v1/admin/import`.
   */
  async *export(): AsyncGenerator<string> {
    for (let after = ""; ;) {
      const path = `admin/export?limit=1000&after=${encodeURIComponent(after)}`;
      const { body } = await this.#administer({ path });
      yield body;
      const { record } = JSON.parse(body.trimEnd().split("\n").at(-1) ?? "") as {
        record: {
          contribution?: { uid: { value: string } };
          definition?: string;
          name?: string;
          version?: string;
          end?: true;
        };
      };
      if (record.end) return;
      const { contribution, definition = "", name = "", version = "" } = record;
      after = contribution?.uid.value ?? `${definition}/${name}/${version}`;
    }
  }

  /**
   * Imports a page of an export. Existing data stay. A refused line throws after the others were
   * imported.
   */
  async import(page: string): Promise<void> {
    const { body } = await this.#administer({
      method: "POST",
      path: "admin/import?findings=keep",
      headers: { "content-type": "application/x-ndjson" },
      body: text(page, "the export"),
    });
    const answers = body
      .trimEnd()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { line: number; status: number; message?: string });
    const diagnostics = answers
      .filter(({ status }) => status >= 400)
      .map(({ line, message }): Diagnostic => ({
        severity: "error",
        code: "IMPORT",
        message: message ?? "refused",
        path: `line ${line}`,
      }));
    if (diagnostics.length > 0)
      throw new AqliteError(
        `${diagnostics.length} lines were refused; the first: ${diagnostics[0]?.path}: ${diagnostics[0]?.message}`,
        { code: "IMPORT", status: 400, diagnostics },
      );
  }

  /** Sends an administrative request, also if requests may not administer. */
  async #administer({
    method = "GET",
    path,
    headers = {},
    body = "",
  }: RestRequest): Promise<RestAnswer> {
    const run = (engine: Engine) => {
      engine.admin = true;
      return readAnswer<RestAnswer>(
        atOnce(
          engine.begin_request(
            method,
            `${this.#base}/v1/${path}`,
            JSON.stringify(headers),
            body,
            Date.now(),
            crypto.randomUUID(),
          ),
        ),
      );
    };
    const answer = await (method === "GET" ? this.#reading(run) : this.#writing(run));
    if (answer.status < 300) return answer;
    throw ofAnswer(answer);
  }

  /**
   * Closes the repository: later calls are refused. Its memory is freed when the calls that have
   * begun have ended. A stored data set can be opened again.
   */
  close(): void {
    this.#isClosed = true;
    this.#free();
  }

  #free(): void {
    if (this.#calls > 0) return;
    const [journaled, closeSets] = [this.#journaled, this.#closeSets];
    const compaction = journaled?.compaction;
    release(journaled && { free: () => journaled.close() });
    release(this.#memory);
    if (compaction) void compaction.finally(closeSets);
    else closeSets?.();
    this.#closeSets = undefined;
    this.#journaled = undefined;
    this.#memory = undefined;
  }

  /** Closes the repository at the end of a block with `using`. */
  [dispose](): void {
    this.close();
  }
}

/** Returns an id as a part of a path. */
function inPath(value: string, what: string): string {
  return encodeURIComponent(id(value, what));
}

/** Returns the parameters and the time of a query as the module takes them. */
function bound(options: Pick<QueryOptions, "parameters" | "now">): {
  parameters: string;
  now: string;
} {
  const { parameters = {}, now = new Date() } = object(options);
  const what = "`parameters`";
  return { parameters: json(object(parameters, what), what), now: moment(now) };
}

/** Reads a `Request`. Its path is that below `base`. */
async function requestOf(request: RequestLike, base: string) {
  try {
    const { pathname, search } = new URL(request.url);
    const headers: Record<string, string> = {};
    request.headers.forEach((value, name) => (headers[name] = value));
    const [method, body] = [request.method.toUpperCase(), await request.text()];
    const path = `${below(base, pathname)}${search}`;
    return { method, path, headers, body: text(body, "the body") };
  } catch (error) {
    const why = reasonOf(error);
    throw wrong(`the request cannot be read: ${why}`, error);
  }
}

/** Returns the path of a request below the path of the address before `/v1`. */
function below(base: string, path: string): string {
  const prefix = new URL(base, "http://localhost").pathname.replace(/\/$/, "");
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path;
}

/** Returns a new EHR_STATUS. */
function statusOf(subject: { id: string; namespace: string } | undefined): object {
  const reference = subject !== undefined && {
    external_ref: {
      _type: "PARTY_REF",
      id: {
        _type: "GENERIC_ID",
        value: id(object(subject, "the subject").id, "the id of the subject"),
        scheme: "id",
      },
      namespace: id(subject.namespace, "the namespace of the subject"),
      type: "PERSON",
    },
  };
  const archetype = "openEHR-EHR-EHR_STATUS.generic.v1";
  return {
    _type: "EHR_STATUS",
    archetype_node_id: archetype,
    archetype_details: { archetype_id: { value: archetype }, rm_version: "1.1.0" },
    name: { _type: "DV_TEXT", value: "EHR status" },
    subject: { _type: "PARTY_SELF", ...reference },
    is_queryable: true,
    is_modifiable: true,
  };
}

/** Creates the error of a data set that was replaced between two pages. */
function gone(): AqliteError {
  return new AqliteError("the data set was replaced since the first page: run the query again", {
    code: "GONE",
  });
}

function isTooLarge(error: unknown): boolean {
  return error instanceof AqliteError && error.code === "RESULT_TOO_LARGE";
}

/** The error that carries the reason of an aborted run through the errors of the module. */
class Ended extends Error {
  constructor(readonly reason: unknown) {
    super("ended");
  }
}

/** Returns the last part of the address of a created resource. */
function lastOf(headers: [string, string][]): string {
  return decodeURIComponent(
    headers
      .find(([name]) => name.toLowerCase() === "location")?.[1]
      ?.split("/")
      .at(-1) ?? "",
  );
}

/** Returns the content of the ETag: the id of an EHR, the uid of a version. */
function tag(headers: [string, string][]): string {
  return (headers.find(([name]) => name.toLowerCase() === "etag")?.[1] ?? "")
    .replace(/^W\//, "")
    .replaceAll('"', "");
}
