// A repository on a server, used through its REST interface.
import { Repository } from "aqlite-wasm";
import { body } from "./code";
import { readAnswer } from "./journaled";
import { resultPage } from "./json";
import type { Contents, Misplaced, PageStart, Server } from "./protocol";
import { inSlices } from "./slices";
import { Fault, faultText, type FaultText } from "./fault";
import { errors } from "./texts/en/errors";

/** The maximum number of templates that are fetched for their names. */
const TEMPLATES = 40;

/** The number of rows after which a call stops. Another call reads the rest. */
const MOST_ROWS = 100_000;

/** A server, reached by its REST interface. */
export class Remote {
  readonly #base: string;
  readonly #authorization: string | null;
  /** A repository in memory with the templates of the server, for names in completion and hover. */
  readonly labels: Repository;
  /**
   * A repository for the warnings about a query. It has all templates of the server, or none: a
   * template that was not fetched may permit the paths that all others lack.
   */
  lint: Repository;
  readonly #opened = performance.now();
  /** The identity of the data of the server, see `Contents`. */
  readonly identity: string;

  private constructor({ base, authorization }: Server) {
    this.#base = base.replace(/\/+$/, "");
    this.identity = this.#base;
    this.#authorization = authorization;
    this.labels = new Repository(this.#base, false);
    this.lint = new Repository(this.#base, false);
  }

  /** Requests the description of the server and its templates. */
  static async open(server: Server): Promise<Remote> {
    const remote = new Remote(server);
    await remote.query("SELECT COUNT(e/ehr_id/value) AS n FROM EHR e", {});
    await remote.#fetchTemplates().catch(() => undefined);
    return remote;
  }

  /** Returns a server that answered before, at once. Its templates are loaded if it answers now. */
  static resume(server: Server): Remote {
    const remote = new Remote(server);
    void remote.#fetchTemplates().catch(() => undefined);
    return remote;
  }

  async #fetchTemplates(): Promise<void> {
    const listed = JSON.parse(await this.rest("GET", "definition/template")) as {
      template_id: string;
    }[];
    let read = 0;
    for (const { template_id } of listed.slice(0, TEMPLATES))
      if (await this.#fetchTemplate(template_id).catch(() => false)) read += 1;
    // With an incomplete set of templates, warnings would be wrong: see `lint`.
    if (read === listed.length) this.lint = this.labels;
  }

  /** Adds a template of the server to `labels`. Returns whether it could be read. */
  async #fetchTemplate(id: string): Promise<boolean> {
    const text = await this.rest("GET", `definition/template/${encodeURIComponent(id)}/1`);
    const request = this.labels.begin_request(
      "POST",
      "/v1/definition/template?type=opt14",
      '{"content-type":"application/xml"}',
      text,
      Date.now(),
      id,
    );
    return readAnswer(await inSlices(request)).status === 201;
  }

  /**
   * Returns whether `labels` finds the problems of documents of a template. The template is fetched
   * if it is missing. If the server has none with this id, this is a problem that `labels` finds.
   */
  async canCheck(template: string): Promise<boolean> {
    if (this.labels.describe(template, "") !== "null") return true;
    return this.#fetchTemplate(template).catch(
      (error: unknown) => error instanceof Refusal && error.status === 404,
    );
  }

  async #send(
    method: string,
    path: string,
    content: string,
    headers: Record<string, string>,
  ): Promise<Response> {
    const authorization: Record<string, string> = this.#authorization
      ? { authorization: this.#authorization }
      : {};
    let response: Response;
    try {
      response = await fetch(`${this.#base}/${path}`, {
        method,
        headers: { ...headers, ...authorization },
        ...(content ? { body: content } : {}),
      });
    } catch {
      throw new Fault("noAnswer", { base: this.#base });
    }
    if (response.headers.has("aqlite-answered-by"))
      throw new Fault("ownData", { base: this.#base });
    // The login page of a gateway has status 200. It is not an answer of the server.
    if (response.ok && response.headers.get("content-type")?.startsWith("text/html"))
      throw new Fault("webPage", { base: this.#base });
    return response;
  }

  /**
   * Sends a request. Returns the text of its answer. A refusal is an error with the server's
   * message.
   */
  async rest(
    method: string,
    path: string,
    content = "",
    headers: Record<string, string> = {},
  ): Promise<string> {
    const response = await this.#send(method, path, content, headers);
    const text = await response.text();
    if (response.ok) return text;
    throw refusal(response.status, text);
  }

  /**
   * Returns the result set as text, whether it has further rows, and the time including the
   * network. Pages of a result are joined, up to a limit, if the server names their snapshot. The
   * rest follows in a further call with `next`.
   */
  async query(
    q: string,
    parameters: Record<string, unknown>,
    from: PageStart = { offset: 0, fetch: null, snapshot: null },
  ): Promise<{ text: string; more: boolean; next: PageStart | null; milliseconds: number }> {
    const start = performance.now();
    const { offset: begin, snapshot, fetch: rows } = from;
    const first = await this.#page(
      q,
      parameters,
      snapshot === null ? {} : { offset: begin, fetch: rows, snapshot },
    );
    const { meta, from: at, to, count } = resultPage(first);
    const pieces = [first.slice(at, to)];
    const token = typeof meta._snapshot === "string" ? meta._snapshot : null;
    // A server that announces further rows and gives none would be asked without end.
    let more = count > 0 && (snapshot === null ? meta._more === true : count === rows);
    let read = count;
    while (token !== null && more && read < MOST_ROWS) {
      const text = await this.#page(q, parameters, {
        offset: begin + read,
        fetch: count,
        snapshot: token,
      });
      const page = resultPage(text);
      if (page.count > 0) pieces.push(text.slice(page.from, page.to));
      more = page.count === count;
      read += page.count;
    }
    return {
      text: `${first.slice(0, at)}${pieces.join(",")}${first.slice(to)}`,
      more,
      next: more && token !== null ? { offset: begin + read, fetch: count, snapshot: token } : null,
      milliseconds: performance.now() - start,
    };
  }

  #page(
    q: string,
    parameters: Record<string, unknown>,
    page: Record<string, unknown> = {},
  ): Promise<string> {
    return this.rest("POST", "query/aql", JSON.stringify({ ...body({ q, parameters }), ...page }), {
      "content-type": "application/json",
      accept: "application/json",
    });
  }

  /**
   * Returns the steps of a query as JSON text. This is an extension of the interface that other
   * servers may lack.
   */
  async explain(q: string, parameters: Record<string, unknown>): Promise<string> {
    return this.rest("POST", "query/aql/explain", JSON.stringify(body({ q, parameters })), {
      "content-type": "application/json",
      accept: "application/json",
    });
  }

  async #count(q: string): Promise<number> {
    const { rows } = JSON.parse((await this.query(q, {})).text) as { rows: [[number]] };
    return rows[0][0];
  }

  /** Returns the content of the repository. */
  async contents(): Promise<Contents> {
    return {
      place: this.#base,
      set: null,
      isKept: true,
      ehrs: await this.#count("SELECT COUNT(e/ehr_id/value) AS n FROM EHR e"),
      compositions: await this.#count("SELECT COUNT(*) AS n FROM EHR e CONTAINS COMPOSITION c"),
      identity: this.identity,
      samples: null,
      added: 0,
      replaced: null,
      memory: 0,
      milliseconds: performance.now() - this.#opened,
    };
  }
}

/** A refusal, with the problems by key of a FLAT document. */
export class Refusal extends Error {
  readonly status: number;
  readonly keys: Misplaced[];
  /** The text in the catalogue, if the server wrote none. */
  readonly fault: FaultText | null;

  constructor(status: number, message: string, keys: Misplaced[], fault: FaultText | null) {
    super(message);
    this.status = status;
    this.keys = keys;
    this.fault = fault;
  }
}

/** Returns a refusal with the server's messages, one line per finding, and their remedies. */
export function refusal(status: number, text: string): Refusal {
  const helps: Record<number, FaultText> = {
    401: { key: "unauthorized", values: {} },
    403: { key: "forbidden", values: {} },
  };
  let said: { message?: string; errors?: { value?: string; _key?: string }[] } = {};
  try {
    said = JSON.parse(text) as typeof said;
  } catch {
    // The body is not an answer of this interface.
  }
  const help = helps[status];
  const first = [said.message ?? errors.status({ status }), help ? faultText(help) : ""]
    .filter(Boolean)
    .join("; ");
  const findings = (said.errors ?? [])
    .map(({ value }) => value ?? "")
    .filter((value) => value !== "" && !first.includes(value));
  const keys = (said.errors ?? []).flatMap(({ value, _key }) =>
    value && _key ? [{ key: _key, message: value }] : [],
  );
  const own: FaultText = helps[status] ?? { key: "status", values: { status } };
  const isOwn = said.message === undefined && findings.length === 0;
  return new Refusal(status, [first, ...findings].join("\n"), keys, isOwn ? own : null);
}
