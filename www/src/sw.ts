// The Service Worker: the page without a network, and this browser's own repository at `local/v1`
// and `local/rest/openehr/v1`.
//
// It answers two kinds of requests. Static files of the page come from Cache Storage. Requests
// below `local/` are answered by the repository in this browser, never by a network, with the
// header `aqlite-answered-by: service-worker`. Every other request, including the interfaces `v1`,
// `rest/openehr/v1` and `cds-services` of a server, is left to the browser. Its outcome is that of
// the network, including failures.
import { NotStored, responseOf, type Answer } from "./journaled";
import { Local, LOCAL } from "./local";
import { fatal } from "./slices";

declare const WASM_URL: string;
declare const SAMPLES_URL: string;
/** The style sheet. Its name is in the text of every HTML file of this version. */
declare const STYLE_URL: string;
declare const SHELL: string[];
/** The files that the page loads for rare steps only. They are cached after the others. */
declare const RARE: string[];
declare const STAMP: string;

/** A message of a page. The browser may end the Service Worker when `until` is settled. */
type Message = MessageEvent & { waitUntil(until: Promise<unknown>): void };

/** The members of `ServiceWorkerGlobalScope` that are used here, which the DOM types lack. */
interface Scope {
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "message", listener: (event: Message) => void): void;
  addEventListener(
    type: "install" | "activate",
    listener: (event: Event & { waitUntil(until: Promise<unknown>): void }) => void,
  ): void;
  addEventListener(
    type: "fetch",
    listener: (
      event: Event & { readonly request: Request; respondWith(response: Promise<Response>): void },
    ) => void,
  ): void;
}
const scope = self as unknown as Scope;
const base = new URL(scope.registration.scope);
const LOCAL_PATH = new URL(LOCAL, base).pathname;

/** Caches of this and later releases. */
const FILES = "aqlite-files-";
/** Caches of releases whose Service Worker answered at `v1` in place of an absent server. */
const SUBSTITUTING = "aqlite-shell-";
const cacheName = `${FILES}${STAMP}`;
/** The paths of the files that this version has in its cache. */
const files = new Set(SHELL.map((name) => new URL(name, base).pathname));
/** A name with the digest of its content, directly in the folder of the page. */
const STAMPED = /^[\w-]+\.([0-9a-f]{10})\.\w+$/;

async function install(): Promise<void> {
  const cache = await caches.open(cacheName);
  try {
    await Promise.all(
      SHELL.map(async (name) => cache.put(new URL(name, base), await fetched(name))),
    );
  } catch (error) {
    await caches.delete(cacheName);
    throw error;
  }
  // Earlier releases had a Service Worker that answered at `v1` if the server did not. It confirmed
  // writes that no server received, so it is replaced at once.
  if (await replacesSubstituting()) await scope.skipWaiting();
}

/** Adds the rarely used files to the cache. A later start of the page repeats a failure. */
async function cacheRest(): Promise<void> {
  const cache = await caches.open(cacheName);
  for (const name of RARE) {
    const url = new URL(name, base);
    if (!(await cache.match(url))) await cache.put(url, await fetched(name));
  }
}

/**
 * Fetches a file of the page for the cache. Fails if something else arrives, such as the login page
 * of a gateway.
 */
async function fetched(name: string): Promise<Response> {
  const response = await fetch(new Request(new URL(name, base), { cache: "no-cache" }));
  const bytes = await response.arrayBuffer();
  if (!response.ok || !(await isOwn(name, bytes)))
    throw new Error(`${name}: not the file of this version (status ${response.status})`);
  // A new response, because browsers reject redirected responses for navigation, and some hosts
  // redirect to names without `.html`.
  const { status, headers } = response;
  return new Response(bytes, { status, headers });
}

/**
 * Whether the content belongs to the file: by the digest in its name; for HTML by the style sheet
 * of this version; other files must not be HTML.
 */
async function isOwn(name: string, bytes: ArrayBuffer): Promise<boolean> {
  const stamp = STAMPED.exec(name)?.[1];
  if (stamp !== undefined) return (await digest(bytes)).startsWith(stamp);
  const text = new TextDecoder().decode(bytes);
  return /\.html$|\/$/.test(name) ? text.includes(STYLE_URL) : !text.trimStart().startsWith("<");
}

async function digest(bytes: ArrayBuffer): Promise<string> {
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...sum].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function replacesSubstituting(): Promise<boolean> {
  const others = (await caches.keys()).filter((name) => name !== cacheName);
  return (
    others.some((name) => name.startsWith(SUBSTITUTING)) &&
    !others.some((name) => name.startsWith(FILES))
  );
}

/** Removes the caches of older versions except the last, from which open tabs still load files. */
async function activate(): Promise<void> {
  const others = (await caches.keys()).filter(
    (name) => name !== cacheName && (name.startsWith(FILES) || name.startsWith(SUBSTITUTING)),
  );
  for (const name of others.slice(0, -1)) await caches.delete(name);
  await scope.clients.claim();
}

let opened: Promise<Local> | undefined;
/**
 * Whether the instance of the module has failed. A new one needs a new start of this Service
 * Worker.
 */
let isBroken = false;

/** Returns the repository. It is opened on first use, and again if that failed. */
function local(): Promise<Local> {
  opened ??= Local.open({
    base,
    wasm: ofShell(WASM_URL),
    samples: () => ofShell(SAMPLES_URL),
    compacts: false,
  }).catch((error: unknown) => {
    opened = undefined;
    return failed(error);
  });
  return opened;
}

function failed(error: unknown): never {
  isBroken ||= fatal(error);
  throw error;
}

async function ofShell(name: string): Promise<Response> {
  const url = new URL(name, base);
  return (await caches.match(url)) ?? fetch(url);
}

/** The error about a request that may come from another site. */
class Foreign extends Error {
  override readonly name = "Foreign";
}

/** The error about a module that has failed. */
class Broken extends Error {
  override readonly name = "Broken";
}

/** The error about a body that cannot be decompressed. */
class Undecodable extends Error {
  override readonly name = "Undecodable";
}

function problem(status: number, error: string, message: string): Answer {
  return {
    status,
    headers: [["content-type", "application/json"]],
    body: JSON.stringify({ error, message, code: status, errors: [] }),
  };
}

/** Returns the text of a body, which may be compressed by gzip. The module cannot decompress. */
async function textOf(request: Request): Promise<string> {
  const isGzip = request.headers.get("content-encoding")?.trim().toLowerCase() === "gzip";
  if (!isGzip || request.body === null) return request.text();
  const inflated = request.body.pipeThrough(new DecompressionStream("gzip"));
  return new Response(inflated).text().catch(() => {
    throw new Undecodable("the body is not the gzip that its content encoding says");
  });
}

/**
 * Answers a request for this browser's own repository. A navigation with another method than GET
 * may be a form of any site and must not change anything. Requests by `fetch` come from pages of
 * this origin.
 */
async function answered(request: Request): Promise<Response> {
  let answer: Answer;
  try {
    if (request.mode === "navigate" && !["GET", "HEAD"].includes(request.method))
      throw new Foreign(
        "a form may not change the data of this browser: send the request by `fetch` from a page of this address",
      );
    if (isBroken)
      throw new Broken(
        "the repository of this browser has failed: wait for a minute without requests, until the browser has ended its Service Worker",
      );
    const repository = await local();
    const headers = Object.fromEntries(request.headers);
    if (headers["content-encoding"]?.trim().toLowerCase() === "gzip")
      delete headers["content-encoding"];
    const [{ method, url }, body] = [request, await textOf(request)];
    answer = await repository.handle({ method, url, headers, body }).catch(failed);
  } catch (error) {
    if (error instanceof Foreign) answer = problem(403, "Forbidden", error.message);
    else if (error instanceof Undecodable) answer = problem(400, "Bad Request", error.message);
    else if (error instanceof NotStored)
      answer = problem(507, "Insufficient Storage", error.message);
    else if (error instanceof Broken) answer = problem(503, "Service Unavailable", error.message);
    else
      answer = problem(
        500,
        "Internal Server Error",
        "internal error: the request was not carried out",
      );
  }
  const response = responseOf(answer, request.method);
  response.headers.set("aqlite-answered-by", "service-worker");
  return response;
}

/** Returns the path of the cached file for a request; `null` if the network must answer it. */
function fileOf({ method, url }: Request): string | null {
  if (method !== "GET") return null;
  const { pathname, search } = new URL(url);
  const path = pathname === `${base.pathname}index.html` ? base.pathname : pathname;
  if (files.has(path)) return path === base.pathname || search === "" ? path : null;
  // A file of a previous version may be requested. The digest in the name identifies its content.
  const name = path.startsWith(base.pathname) ? path.slice(base.pathname.length) : "";
  return STAMPED.test(name) && search === "" ? path : null;
}

async function fromCache(path: string, request: Request): Promise<Response> {
  const url = new URL(path, base);
  const own = await (await caches.open(cacheName)).match(url);
  return (
    own ??
    (STAMPED.test(path.slice(base.pathname.length)) ? await caches.match(url) : undefined) ??
    fetch(request)
  );
}

scope.addEventListener("install", (event) => event.waitUntil(install()));
// A new version waits until the user asks for it. Open pages continue with their files.
scope.addEventListener("message", (event) => {
  if (event.data === "take-over") void scope.skipWaiting();
  if (event.data === "cache-rest") event.waitUntil(cacheRest().catch(() => undefined));
});
scope.addEventListener("activate", (event) => event.waitUntil(activate()));
scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (url.origin !== base.origin) return;
  if (url.pathname.startsWith(LOCAL_PATH)) return event.respondWith(answered(request));
  const path = fileOf(request);
  if (path !== null) event.respondWith(fromCache(path, request));
});
