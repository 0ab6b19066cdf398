// The Service Worker: the page without a network, and the REST interface without a server.
//
// The shell (the files of the page) comes from the cache first. The interface comes from the server first, and from the same module, here, when
// there is no server. Such answers carry the header `aqlite-answered-by: service-worker`.
import { NotKept, responseOf, type Answer } from "./kept";
import { Local } from "./local";

declare const WASM_URL: string;
declare const SAMPLES_URL: string;
declare const SHELL: string[];
declare const STAMP: string;

/** The little of the Service Worker's scope that is used (the DOM types do not hold it). */
interface Scope {
  readonly registration: { readonly scope: string };
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
  addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
  addEventListener(type: "install" | "activate", listener: (event: Event & { waitUntil(until: Promise<unknown>): void }) => void): void;
  addEventListener(type: "fetch", listener: (event: Event & { readonly request: Request; respondWith(response: Promise<Response>): void }) => void): void;
}
const scope = self as unknown as Scope;
const base = new URL(scope.registration.scope);
const cacheName = `aqlite-shell-${STAMP}`;
const INTERFACE = ["v1", "rest/openehr/v1", "cds-services"].map((path) => new URL(path, base).pathname);

async function install(): Promise<void> {
  const cache = await caches.open(cacheName);
  await cache.addAll(SHELL.map((name) => new Request(new URL(name, base), { cache: "no-cache" })));
}

async function activate(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith("aqlite-shell-") && name !== cacheName) await caches.delete(name);
  await scope.clients.claim();
}

let opened: Promise<Local> | undefined;

/** The repository; opened when first needed, and again after it failed. */
function local(): Promise<Local> {
  opened ??= Local.open({ base, wasm: ofShell(WASM_URL), samples: () => ofShell(SAMPLES_URL) });
  return opened;
}

async function ofShell(name: string): Promise<Response> {
  const url = new URL(name, base);
  return (await caches.match(url)) ?? fetch(url);
}

function problem(status: number, error: string, message: string): Answer {
  return { status, headers: [["content-type", "application/json"]], body: JSON.stringify({ error, message, code: status, errors: [] }) };
}

async function answered(request: Request): Promise<Response> {
  let answer: Answer;
  try {
    const repository = await local();
    answer = await repository.handle({ method: request.method, url: request.url, headers: Object.fromEntries(request.headers), body: await request.text() });
  } catch (error) {
    if (error instanceof NotKept) answer = problem(507, "Insufficient Storage", error.message);
    else {
      opened = undefined;
      answer = problem(500, "Internal Server Error", "internal error: the request was not carried out");
    }
  }
  const response = responseOf(answer, request.method);
  response.headers.set("aqlite-answered-by", "service-worker");
  return response;
}

/** True when this came from something that knows the interface, not from a plain file server or a gateway with nothing behind it. */
function known(response: Response): boolean {
  return ![502, 503, 504].includes(response.status) && !response.headers.get("content-type")?.startsWith("text/html");
}

async function throughInterface(request: Request): Promise<Response> {
  const spare = request.clone();
  try {
    const response = await fetch(request);
    if (known(response)) return response;
  } catch {
    // No server: the module answers.
  }
  return answered(spare);
}

async function fromShell(request: Request): Promise<Response> {
  const cache = await caches.open(cacheName);
  const path = new URL(request.url).pathname.replace(/index\.html$/, "");
  const asked = path === base.pathname ? base.href : request;
  return (await cache.match(asked)) ?? fetch(request);
}

scope.addEventListener("install", (event) => event.waitUntil(install()));
// A new version waits until somebody wants it: pages that are open go on with the files they came with.
scope.addEventListener("message", (event) => {
  if (event.data === "take-over") void scope.skipWaiting();
});
scope.addEventListener("activate", (event) => event.waitUntil(activate()));
scope.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (url.origin !== base.origin) return;
  if (INTERFACE.some((path) => url.pathname === path || url.pathname.startsWith(`${path}/`))) event.respondWith(throughInterface(request));
  else if (request.method === "GET") event.respondWith(fromShell(request));
});
