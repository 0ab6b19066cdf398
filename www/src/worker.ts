// The dedicated worker of the page. It owns the wasm module and the data, so the page stays responsive
// while a query runs.
import {
  describeGuide,
  documentQuery,
  format,
  patientQuery,
  printGuide,
  runGuideOn,
  testGuide,
  tryGuide,
} from "aqlite-wasm";
import type { DescribedGuide, TestedGuide } from "./guide-text";
import { body } from "./code";
import { destination } from "./destination";
import { indexing, indexResult, type ResultIndex } from "./json";
import { importedLines, Local, type Send, type WorkObserver } from "./local";
import { refusal, Refusal, Remote } from "./remote";
import { LISTED, TIMELINE } from "./protocol";
import { fatal, inSlices, slices } from "./slices";
import type {
  Calls,
  Cancel,
  Completions,
  TemplateDescription,
  Diagnostic,
  Explained,
  Failure,
  Hover,
  PageStart,
  Patient,
  Problem,
  Reply,
  Request,
  Result,
} from "./protocol";
import { Fault } from "./fault";

declare const WASM_URL: string;
declare const SAMPLES_URL: string;

const base = new URL("./", location.href);
const opened = Local.open(
  {
    base,
    wasm: fetch(new URL(WASM_URL, base)),
    samples: () => fetch(new URL(SAMPLES_URL, base)),
    compacts: true,
  },
  watch(0),
  () => postMessage({ id: 0, changed: true } satisfies Reply),
);

/** The selected server; `null` for the data of this browser. */
let remote: Remote | null = null;

/** The ids of cancelled calls. */
const cancelled = new Set<number>();
/** The minimum time in milliseconds between two progress messages. */
const SILENCE = 100;

/** The observer of a call. */
interface Watch extends WorkObserver {
  /** Throws if the user stopped the call. */
  check(): void;
}

/** Reports the progress of a call, and throws if the call was cancelled. */
function watch(id: number): Watch {
  let reportedAt = performance.now();
  const report: WorkObserver = (progress) => {
    if (cancelled.delete(id)) throw new Fault("cancelled");
    if (performance.now() - reportedAt < SILENCE) return;
    reportedAt = performance.now();
    postMessage({ id, progress } satisfies Reply);
  };
  const check = () => {
    if (cancelled.delete(id)) throw new Fault("stopped");
  };
  return Object.assign(report, { check });
}

type Handlers = {
  [K in keyof Calls]: (
    argument: Calls[K]["argument"],
    local: Local,
    watch: Watch,
  ) => Promise<Calls[K]["result"]> | Calls[K]["result"];
};

const SUBJECTS =
  "SELECT e/ehr_id/value AS ehr, e/ehr_status/subject/external_ref/id/value AS subject FROM EHR e";

const COMPOSITIONS =
  "SELECT c/uid/value AS uid, c/name/value AS name, c/context/start_time/value AS time, c/archetype_details/template_id/value AS template, c/composer/name AS composer FROM EHR e CONTAINS COMPOSITION c WHERE e/ehr_id/value = $ehr ORDER BY time DESC, uid";

/** The parts of a REVISION_HISTORY that the page shows. */
interface RevisionHistory {
  items: {
    version_id: { value: string };
    audits: {
      time_committed?: { value: string };
      committer?: { name?: string };
      change_type?: { value: string };
    }[];
  }[];
}

/** Returns the number of a version: 2 of `…::2`. Branches follow their trunk. */
function numberOf(uid: string): number {
  return Number.parseFloat(uid.split("::").at(-1) ?? "");
}

/**
 * Calls about the data of this browser. They fail while a server is selected, so that the two
 * cannot be confused.
 */
const OF_THIS_BROWSER: ReadonlySet<keyof Calls> = new Set([
  "generate",
  "startOver",
  "bringBack",
  "undo",
  "createSet",
  "openSet",
  "renameSet",
  "removeSet",
  "restoreSet",
  "export",
  "load",
]);

async function rest(
  local: Local,
  method: string,
  path: string,
  body = "",
  headers: Record<string, string> = {},
  check?: () => void,
): Promise<string> {
  if (remote) return remote.rest(method, path, body, headers);
  const answer = await local.handle({ method, url: local.address(path), headers, body }, check);
  if (answer.status < 300) return answer.body;
  throw refusal(answer.status, answer.body);
}

/** A result set as text. */
interface Answered {
  text: string;
  /** Whether the result has further rows. */
  more: boolean;
  /** Time in the engine, or of a server including the network, in milliseconds. */
  milliseconds: number;
  /** The identity of the data, see `Contents`. */
  identity: string;
}

function requireSame(identity: string, expected: string | undefined): void {
  if (expected !== undefined && expected !== identity) throw new Fault("otherData");
}

/** Returns the patients of a query for EHRs and their subjects. */
async function patients(local: Local, q: string): Promise<Patient[]> {
  const { rows } = JSON.parse((await ask(local, q, {})).text) as {
    rows: [string, string | null][];
  };
  return rows.map(([ehr, subject]) => ({ ehr: String(ehr), label: String(subject ?? ehr) }));
}

/**
 * Runs a query. Fails if `expected` is present and is not the identity of the data. `check` may end
 * a query on the data of this browser by throwing.
 */
async function ask(
  local: Local,
  q: string,
  parameters: Record<string, unknown>,
  expected?: string,
  check?: () => void,
): Promise<Answered> {
  const server = remote;
  if (server) {
    requireSame(server.identity, expected);
    return { ...(await server.query(q, parameters)), identity: server.identity };
  }
  // Writes wait for the end of the query, so it reads one state.
  return local.current(async () => {
    const identity = local.identity;
    requireSame(identity, expected);
    const start = performance.now();
    const run = local.repository.begin(q, JSON.stringify(parameters), new Date().toISOString());
    const text = await inSlices(run, check);
    return { text, more: false, milliseconds: performance.now() - start, identity };
  });
}

/** Finds the cells of a result in slices. */
async function indexed(text: string, check: () => void): Promise<ResultIndex> {
  const [steps, pause] = [indexing(text), slices(check)];
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    await pause();
  }
}

/** The number of rows of the first attempt at a page. If the rows are too large, fewer are tried. */
const PAGE = 20_000;

/** Whether the rows of a query are too large to be returned at once. */
function isTooLarge(error: unknown): boolean {
  return (
    error instanceof Error &&
    /takes more than \d+ MB|gives more than \d+ rows|larger than (the limit of )?\d+ bytes/.test(
      error.message,
    )
  );
}

type Page = Answered & ResultIndex & Pick<Result, "offset" | "next">;

/** Runs a query. Returns all rows, or one page if they are too large or if a page is requested. */
async function page(
  local: Local,
  q: string,
  parameters: Record<string, unknown>,
  from: PageStart | null,
  check: () => void,
): Promise<Page> {
  const server = remote;
  if (server) {
    const answer = await server.query(q, parameters, from ?? undefined);
    const about = { offset: from?.offset ?? 0, identity: server.identity };
    return { ...answer, ...(await indexed(answer.text, check)), ...about };
  }
  if (from) return localPage(local, q, parameters, from, check);
  try {
    const answer = await ask(local, q, parameters, undefined, check);
    return { ...answer, ...(await indexed(answer.text, check)), offset: 0, next: null };
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    return localPage(local, q, parameters, { offset: 0, fetch: null, snapshot: null }, check);
  }
}

/** Reads a page by the REST interface, which returns the snapshot for the next page. */
async function localPage(
  local: Local,
  q: string,
  parameters: Record<string, unknown>,
  { offset, fetch, snapshot }: PageStart,
  check: () => void,
): Promise<Page> {
  const start = performance.now();
  const identity = local.identity;
  for (let rows = fetch ?? PAGE; ; rows = Math.floor(rows / 4)) {
    try {
      const window = { offset, fetch: rows, ...(snapshot === null ? {} : { snapshot }) };
      const sent = JSON.stringify({ ...body({ q, parameters }), ...window });
      const headers = { "content-type": "application/json", accept: "application/json" };
      const text = await rest(local, "POST", "query/aql", sent, headers, check);
      const milliseconds = performance.now() - start;
      const index = await indexed(text, check);
      const state = index.meta["_snapshot"];
      const token = typeof state === "string" ? state : null;
      const more = index.rows === rows;
      const next = more ? { offset: offset + rows, fetch: rows, snapshot: token } : null;
      return { text, more, offset, next, identity, milliseconds, ...index };
    } catch (error) {
      if (!isTooLarge(error) || rows < 4) throw error;
    }
  }
}

function explained(
  local: Local,
  { q, parameters }: Calls["explain"]["argument"],
  check: () => void,
): Promise<string> {
  if (remote) return remote.explain(q, parameters);
  return local.current(() => {
    const now = new Date().toISOString();
    const run = local.repository.begin_explanation(q, JSON.stringify(parameters), now);
    return inSlices(run, check);
  });
}

/** Returns the index of the first column of a query whose cells belong to a document. */
function firstPath(q: string): number {
  for (let column = 0; column < 50; column += 1)
    if (documentQuery(q, column) !== undefined) return column;
  return 0;
}

/** An entry of the list of templates. */
interface Listed {
  template_id: string;
  created_timestamp?: string;
}

/** Returns the templates of the source, with the times when they were stored. */
async function listed(local: Local): Promise<Listed[]> {
  return JSON.parse(await rest(local, "GET", "definition/template")) as Listed[];
}

/**
 * A cache: the root ids of web templates, by source, template id and time of storage. The generation
 * of the data is not in the key: it changes when the empty patient of a refused file is taken back.
 */
const roots = new Map<string, string>();

/**
 * Returns the template of a simplified document: the one with this root. If several have it, the
 * name of the file must contain the id of one.
 */
async function templateOf(local: Local, name: string, root: string): Promise<string> {
  const where = remote?.identity ?? local.set;
  const found: string[] = [];
  for (const { template_id: id, created_timestamp: created = "" } of await listed(local)) {
    const key = `${where} ${id} ${created}`;
    if (!roots.has(key)) {
      const web = await rest(
        local,
        "GET",
        `definition/template/${encodeURIComponent(id)}/webtemplate`,
      );
      roots.set(key, (JSON.parse(web) as { tree: { id: string } }).tree.id);
    }
    if (roots.get(key) === root) found.push(id);
  }
  const named = found.filter((id) => name.includes(id));
  const [only] = named.length > 0 ? named : found;
  if (only === undefined) throw new Fault("noTemplateOfRoot", { root });
  if (found.length > 1 && named.length !== 1)
    throw new Fault("templatesOfRoot", { templates: found.join(", "), root });
  return only;
}

/** Returns the findings of the model and of the template about a composition. */
async function problemsOf(local: Local, text: string): Promise<Problem[]> {
  const server = remote;
  if (server) {
    const id = /"template_id"\s*:\s*\{[^{}]*"value"\s*:\s*"([^"\\]+)"/.exec(text)?.[1];
    // The server alone checks a document whose template cannot be read here.
    if (id === undefined || !(await server.canCheck(id))) return [];
  }
  const found = JSON.parse((server?.labels ?? local.repository).validate(text)) as {
    severity: string;
    code: string;
    path: string;
    message: string;
  }[];
  return found
    .filter(({ severity }) => severity === "error")
    .map(({ code, path, message }) => ({ rule: code, path, message }));
}

/** Returns the EHR_STATUS of a patient with this subject. */
function statusOf(subject: string): string {
  return JSON.stringify({
    _type: "EHR_STATUS",
    archetype_node_id: "openEHR-EHR-EHR_STATUS.generic.v1",
    name: { _type: "DV_TEXT", value: "EHR Status" },
    subject: {
      _type: "PARTY_SELF",
      external_ref: {
        _type: "PARTY_REF",
        namespace: "files",
        type: "PERSON",
        id: { _type: "GENERIC_ID", value: subject, scheme: "files" },
      },
    },
    is_queryable: true,
    is_modifiable: true,
  });
}

/**
 * Removes and stores a guide. A guide is immutable under its id, so a replacement removes it first.
 * If the new text is refused, the former one is stored again. Returns the former text.
 */
async function exchanged(
  send: Send,
  remove: string | null,
  add: string | null,
): Promise<string | null> {
  const type = { "content-type": "text/plain", prefer: "return=minimal" };
  const former =
    remove === null ? null : await send("GET", `definition/gdl/${encodeURIComponent(remove)}`);
  if (remove !== null) await send("DELETE", `admin/gdl/${encodeURIComponent(remove)}`);
  try {
    if (add !== null) await send("POST", "definition/gdl", add, type);
  } catch (error) {
    if (former !== null)
      await send("POST", "definition/gdl", former, type).catch(() => {
        throw new Fault("guideLost", { id: remove ?? "", former });
      });
    throw error;
  }
  return former;
}

const handlers: Handlers = {
  connect: async (server, local) => {
    const next = server && (await Remote.open(server));
    // If this first step fails, nothing has changed.
    const contents = await (next ?? local).contents();
    remote = next;
    return contents;
  },
  resume: (server) => {
    remote = Remote.resume(server);
    return null;
  },
  contents: (_, local) => (remote ? remote.contents() : local.contents()),
  templates: async (_, local) => (await listed(local)).map(({ template_id }) => template_id),
  describe: ({ template, language }, local) =>
    JSON.parse(
      (remote?.labels ?? local.repository).describe(template, language),
    ) as TemplateDescription | null,
  document: async ({ q, parameters, identity, row, column, cells: shown }, local) => {
    const asked = documentQuery(q, column, row);
    if (asked === undefined) return null;
    const { text } = await ask(local, asked, parameters, identity);
    const { cells } = indexResult(text);
    const textOf = (at: number) => text.slice(cells[2 * at], cells[2 * at + 1]);
    if (shown.some((cell, at) => cell !== textOf(at))) throw new Fault("otherData");
    return textOf(shown.length);
  },
  documents: async ({ q, parameters, identity, format }, local, { check }) => {
    const labels = remote?.labels;
    const asked = documentQuery(q, firstPath(q));
    if (asked === undefined) return { text: "", count: 0 };
    const { text } = await ask(local, asked, parameters, identity, check);
    const { cells, columns } = await indexed(text, check);
    const documents = new Set<string>();
    for (let at = 2 * (columns.length - 1); at < cells.length; at += 2 * columns.length)
      documents.add(text.slice(cells[at], cells[at + 1]));
    documents.delete("null");
    const lines: string[] = [];
    const pause = slices(check);
    for (const document of documents) {
      lines.push(
        format === "JSON" ? document : (labels ?? local.repository).simplified(document, format),
      );
      await pause();
    }
    return { text: lines.map((line) => `${line}\n`).join(""), count: lines.length };
  },
  withEhrs: async ({ q, parameters, identity }, local, { check }) => {
    const asked = patientQuery(q);
    if (asked === undefined) return null;
    const answer = await ask(local, asked, parameters, identity, check);
    const { text, more, milliseconds } = answer;
    const about = { more, offset: 0, next: null, identity, milliseconds };
    const { meta: _, ...index } = await indexed(text, check);
    return { text, ...index, ...about } satisfies Result;
  },
  webTemplate: (id, local) =>
    rest(local, "GET", `definition/template/${encodeURIComponent(id)}/webtemplate`),
  addFlat: async ({ ehr, template, text }, local) => {
    const headers = {
      "content-type": "application/openehr.wt.flat+json",
      accept: "application/json",
      prefer: "return=identifier",
    };
    const answer = await rest(
      local,
      "POST",
      `ehr/${ehr}/composition?templateId=${encodeURIComponent(template)}`,
      text,
      headers,
    );
    return (JSON.parse(answer) as { uid: string }).uid;
  },
  query: async ({ q, parameters, from }, local, { check }) => {
    const { meta: _, ...result } = await page(local, q, parameters, from, check);
    return result satisfies Result;
  },
  explain: async (asked, local, { check }) => {
    const start = performance.now();
    const text = await explained(local, asked, check);
    return {
      ...(JSON.parse(text) as Omit<Explained, "milliseconds">),
      milliseconds: performance.now() - start,
    };
  },
  diagnose: ({ q }, local) =>
    JSON.parse(
      (remote?.lint ?? local.repository).diagnose(q, new Date().toISOString()),
    ) as Diagnostic[],
  complete: ({ q, offset }, local) =>
    JSON.parse((remote?.labels ?? local.repository).complete(q, offset)) as Completions,
  hover: ({ q, offset }, local) =>
    JSON.parse((remote?.labels ?? local.repository).hover(q, offset)) as Hover | null,
  format: ({ q }) => format(q),
  guides: async (_, local) => {
    const listed = JSON.parse(await rest(local, "GET", "definition/gdl")) as {
      guide_id: string;
      concept?: string | null;
    }[];
    return listed.map(({ guide_id, concept }) => ({ id: guide_id, title: concept ?? guide_id }));
  },
  guideText: (id, local) => rest(local, "GET", `definition/gdl/${encodeURIComponent(id)}`),
  exchangeGuide: ({ remove, add }, local) =>
    remote
      ? exchanged(remote.rest.bind(remote), remove, add)
      : local.administering((send) => exchanged(send, remove, add)),
  describeGuide: ({ text, language }) =>
    JSON.parse(describeGuide(text, language, new Date().toISOString())) as DescribedGuide,
  printGuide: ({ text, syntax }) => printGuide(text, syntax),
  tryGuide: ({ text, inputs, language, now }) => {
    const start = performance.now();
    const at = now ?? new Date().toISOString();
    const answer = tryGuide(text, JSON.stringify(inputs), language, at);
    return { text: answer, milliseconds: performance.now() - start };
  },
  testGuide: ({ text, fixture }) =>
    JSON.parse(testGuide(text, fixture, new Date().toISOString())) as TestedGuide,
  patients: (_, local) => patients(local, `${SUBJECTS} ORDER BY subject, ehr LIMIT ${LISTED}`),
  patientsOf: ({ ehrs }, local) => {
    const ids = ehrs.map((ehr) => `'${ehr.replace(/[\\']/g, "\\$&")}'`);
    return patients(local, `${SUBJECTS} WHERE e/ehr_id/value matches {${ids.join(", ")}}`);
  },
  compositions: async ({ ehr, offset }, local) => {
    const { text } = await ask(local, `${COMPOSITIONS} LIMIT ${TIMELINE} OFFSET ${offset}`, {
      ehr,
    });
    const { rows } = JSON.parse(text) as { rows: (string | null)[][] };
    return rows.map(([uid, name, time, template, composer]) => ({
      uid: uid ?? "",
      name: name ?? "",
      time: time ?? null,
      template: template ?? null,
      composer: composer ?? null,
    }));
  },
  versions: async ({ ehr, uid }, local) => {
    const object = encodeURIComponent(uid.split("::")[0] ?? uid);
    const path = `ehr/${ehr}/versioned_composition/${object}/revision_history`;
    const { items } = JSON.parse(
      await rest(local, "GET", path, "", { accept: "application/json" }),
    ) as RevisionHistory;
    return items
      .map(({ version_id, audits: [audit] }) => ({
        uid: version_id.value,
        committed: audit?.time_committed?.value ?? "",
        committer: audit?.committer?.name ?? "",
        change: audit?.change_type?.value ?? "",
      }))
      .sort((a, b) => numberOf(a.uid) - numberOf(b.uid));
  },
  version: ({ ehr, uid }, local) =>
    rest(local, "GET", `ehr/${ehr}/composition/${encodeURIComponent(uid)}`, "", {
      accept: "application/json",
    }),
  runGuide: async ({ guide, ehr, language }, local) => {
    const start = performance.now();
    const asked = new URLSearchParams({ trace: "true", ...(language ? { language } : {}) });
    const text = await rest(
      local,
      "GET",
      `gdl/query/${encodeURIComponent(ehr)}/${encodeURIComponent(guide)}?${asked}`,
    );
    return { text, milliseconds: performance.now() - start };
  },
  runGuideText: async ({ text, ehr, language }, local) => {
    const [start, now] = [performance.now(), new Date().toISOString()];
    const { bindings } = JSON.parse(describeGuide(text, language, now)) as DescribedGuide;
    const answers: Record<string, string> = {};
    let from: string | undefined;
    for (const { id, aql } of bindings) {
      if (aql === null) continue;
      const answer = await ask(local, aql, { ehr_id: ehr }, from);
      from = answer.identity;
      answers[id] = answer.text;
    }
    return {
      text: runGuideOn(text, JSON.stringify(answers), language, now),
      milliseconds: performance.now() - start,
    };
  },
  generate: (samples, local, watch) => local.generate(samples, watch),
  add: async ({ name, text, ehr }, local) => {
    const { scope, path, type, root } = destination(name, text);
    if (scope === "ehr" && !ehr) return false;
    const template = root === undefined ? "" : await templateOf(local, name, root);
    const query = template ? `?templateId=${encodeURIComponent(template)}` : "";
    await rest(
      local,
      "POST",
      scope === "ehr" ? `ehr/${ehr}/${path}${query}` : `${scope}/${path}`,
      text,
      {
        "content-type": type,
        prefer: "return=minimal",
      },
    );
    return true;
  },
  problems: ({ name, text }, local) => {
    const { scope, root } = destination(name, text);
    return scope === "ehr" && root === undefined ? problemsOf(local, text) : [];
  },
  load: ({ ehr, text }, local) => local.load(ehr, text),
  newEhr: async (subject, local) => {
    const made = JSON.parse(
      await rest(local, "POST", "ehr", subject === null ? "" : statusOf(subject), {
        prefer: "return=representation",
        accept: "application/json",
        ...(subject === null ? {} : { "content-type": "application/json" }),
      }),
    ) as { ehr_id: { value: string } };
    return made.ehr_id.value;
  },
  startOver: (_, local) => local.startOver(),
  bringBack: (replacement, local) => local.bringBack(replacement),
  undo: (writes, local) => local.undo(writes),
  sets: (_, local) => local.sets.list(),
  removedSets: (_, local) => local.removed(),
  createSet: async (name, local, watch) => local.choose(await local.sets.create(name), watch),
  openSet: (id, local, watch) => local.choose(id, watch),
  renameSet: async ({ id, name }, local) => {
    await local.sets.rename(id, name);
    return null;
  },
  removeSet: async (id, local) => {
    await local.discard(id);
    return null;
  },
  restoreSet: async (id, local) => {
    await local.sets.restore(id);
    return null;
  },
  export: (_, local, watch) => local.export(watch),
  import: async ({ text, first }, local) =>
    remote
      ? importedLines(
          await remote.rest("POST", `admin/import?first=${first}`, text, {
            "content-type": "application/x-ndjson",
          }),
        )
      : local.import(text, first),
};

function failure(error: unknown): Failure {
  const diagnostics = (error as { diagnostics?: Diagnostic[] } | null)?.diagnostics ?? [];
  return {
    message: error instanceof Error ? error.message : String(error),
    keys: error instanceof Refusal ? error.keys : [],
    diagnostics,
    fault: (error as Partial<Fault> | null)?.fault ?? null,
    fatal: fatal(error),
  };
}

/** Calls that change the source of answers. Later calls wait for them. */
const TURNING: ReadonlySet<keyof Calls> = new Set([
  "connect",
  "resume",
  "createSet",
  "openSet",
  "startOver",
  "bringBack",
]);
let turned: Promise<unknown> = opened;

/** Executes a call when its turn comes. */
async function carryOut({ id, call, argument }: Request): Promise<unknown> {
  await turned;
  if (remote && OF_THIS_BROWSER.has(call)) throw new Fault("serverChosen");
  const handler = handlers[call] as (argument: unknown, local: Local, watch: Watch) => unknown;
  return handler(argument, await opened, watch(id));
}

async function answer(request: Request): Promise<void> {
  const { id, call } = request;
  try {
    const carried = carryOut(request);
    if (TURNING.has(call)) turned = carried.catch(() => undefined);
    const value = await carried;
    const moved = call === "query" ? [(value as Result).cells.buffer] : [];
    postMessage({ id, value } satisfies Reply, { transfer: moved });
  } catch (error) {
    postMessage({ id, error: failure(error) } satisfies Reply);
  }
}

addEventListener("message", ({ data }: MessageEvent<Request | Cancel>) => {
  if ("cancel" in data) cancelled.add(data.cancel);
  else void answer(data);
});
