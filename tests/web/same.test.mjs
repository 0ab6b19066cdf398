// The Service Worker gives the same answers as the worker. The test sends the same requests to the worker
// in workerd and to the module in the page's origin (below `/local`): the cases of `tests/cases/rest`,
// and the queries of an external corpus (AQLITE_CORPUS, default ../shared/corpus) on an export of the
// worker.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { freshState, root, start } from "../e2e/server.mjs";
import { browse, caller, offlineReady, open, ready, workerOf } from "./page.mjs";

const LIMIT = { timeout: 1_500_000 };
/** The prefix of the mounts of this browser's own repository. */
const LOCAL = "/local";

/** A file of the page without a script. The page itself would draw its data after each write. */
const QUIET = "THIRD_PARTY_NOTICES.txt";

/**
 * Starts a worker that may administer, and opens a file of its page that the Service Worker controls.
 * `use` has a function that starts the page's worker there.
 */
async function housed(name, use) {
  const server = await start(freshState(name), { AUTH: "none", ADMIN: "true" });
  const browser = await browse();
  try {
    const page = await open(browser, `http://127.0.0.1:${server.port}/`);
    await ready(page);
    await offlineReady(page);
    const worker = workerOf(page);
    await page.addInitScript(SCRIPT);
    await page.goto(new URL(QUIET, page.url()).href);
    await use(page, server, () => caller(page, worker));
  } finally {
    await browser.close();
    await server.stop();
  }
}

/** Creates a data set, and removes the others: the page lists the sizes of all sets after each write. */
async function onlySet(call, name) {
  await call("createSet", name);
  for (const { id, current } of await call("sets")) if (!current) await call("removeSet", id);
}

/* Functions that run in the page, so that a scenario needs one call of the debugger. */

/** Sends a request. */
async function sendInPage({ method, path, headers, body }) {
  const response = await fetch(path, {
    method,
    headers,
    body: ["GET", "HEAD"].includes(method) ? undefined : body,
  });
  const compared = [
    "content-type",
    "etag",
    "location",
    "last-modified",
    "allow",
    "preference-applied",
    "openehr-uri",
  ];
  return {
    status: response.status,
    headers: Object.fromEntries(compared.map((name) => [name, response.headers.get(name)])),
    body: await response.text(),
    by: response.headers.get("aqlite-answered-by"),
  };
}

/** Returns the media type that fits a body if a case states none. */
function usualType(name, body) {
  if (name.endsWith(".ndjson")) return "application/x-ndjson";
  const first = body.trimStart()[0];
  return first === "<"
    ? "application/xml"
    : "{[".includes(first)
      ? "application/json"
      : "text/plain";
}

/** Returns the request of a step. `fill` replaces the names of values. */
function requestOf(step, prefix, fill) {
  const [head, ...lines] = fill(step.head).trimEnd().split("\n");
  const [method, ...path] = head.split(" ");
  // `%{3 ab}` is `ababab`.
  const body = fill(step.body).replace(/%\{(\d+) ([^}]*)\}/g, (_, number, unit) =>
    unit.repeat(Number(number)),
  );
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(":")),
      line.slice(line.indexOf(":") + 1).trim(),
    ]),
  );
  const type = Object.keys(headers).find((name) => name.toLowerCase() === "content-type");
  if (type === undefined && body !== "") headers["Content-Type"] = usualType(step.source, body);
  else if (headers[type] === "none") delete headers[type];
  return { method, path: prefix + path.join(" "), headers, body: body === "" ? undefined : body };
}

/** Stores a part of an answer for later steps. */
function keep(kept, line, { headers, body }) {
  const [name, source] = line.split(" := ");
  const [from, end = "\n"] = source.split(" until ");
  const pointed = () =>
    from
      .split("/")
      .slice(1)
      .reduce((value, key) => value?.[key], JSON.parse(body));
  const value =
    from === "body"
      ? body.trimEnd()
      : from.startsWith("/")
        ? pointed()
        : headers[from.toLowerCase()];
  kept[name.trim()] = String(value ?? "")
    .replaceAll('"', "")
    .split(end)[0];
}

/** Runs the steps of a scenario. `kept` has the values that requests can name. */
async function playInPage({ steps, prefix, kept }) {
  const fill = (text) =>
    Object.entries(kept).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, value), text);
  const played = [];
  for (const step of steps) {
    const request = requestOf(step, prefix, fill);
    const answer = await sendInPage(request);
    for (const line of step.keeps) keep(kept, line, answer);
    played.push({ request, answer });
  }
  return played;
}

/** The functions above as a script of the page, which names those that the test calls. */
const SCRIPT = `${[sendInPage, usualType, requestOf, keep, playInPage].join("\n")}
Object.assign(globalThis, { sendInPage, playInPage });`;

/** Sends requests from the page, one after another. */
function ask(page, requests) {
  return page.evaluate(async (requests) => {
    const played = [];
    for (const request of requests) played.push({ request, answer: await sendInPage(request) });
    return played;
  }, requests);
}

/**
 * Normalizes an answer: values that differ between two runs of one host (new identifiers, times,
 * durations, digests that include times) are replaced by the number of their first occurrence.
 */
function comparable({ status, headers, body }) {
  const seen = new Map();
  const place = (what) => (found) => {
    if (!seen.has(found)) seen.set(found, `<${what} ${seen.size}>`);
    return seen.get(found);
  };
  return `${status} ${JSON.stringify(headers)}\n${body}`
    .replace(
      /[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/g,
      place("uuid"),
    )
    .replace(/\b[0-9a-f]{32}\b/g, place("digest"))
    .replace(/("\w*time\w*"):[\d.]+/g, "$1:<duration>")
    .replace(/"run":\{"batches".*$/s, '"run":<documents that this host read>')
    .replace(/("_snapshot"):"[^"]*"/g, "$1:<token>")
    .replace(/\bsnapshot=[0-9a-f-]+/g, "snapshot=<token>")
    .replace(/\b20(?:2[5-9]|3\d)-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, "<time>")
    .replace(/(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g, "<date>");
}

/** Replaces the mounts of the module by those of the worker in an answer. */
function withoutLocal(answer) {
  return answer
    .replaceAll(`${LOCAL}/v1`, "/v1")
    .replaceAll(`${LOCAL}/rest/openehr/v1`, "/rest/openehr/v1");
}

/** Compares the answers of both hosts. */
function differences(name, there, here) {
  const found = [];
  for (const [at, { request, answer }] of there.entries()) {
    const { method, path, body } = request;
    const other = here[at].answer;
    assert.equal(answer.by, null, `${name}: ${method} ${path} was not answered by the server`);
    assert.equal(other.by, "service-worker", `${name}: ${method} ${path}`);
    const [wanted, got] = [comparable(answer), withoutLocal(comparable(other))];
    if (wanted !== got)
      found.push(
        `${name}: ${method} ${path} ${String(body ?? "").slice(0, 200)}\n  worker:         ${around(wanted, got)}\n  service worker: ${around(got, wanted)}`,
      );
  }
  return found;
}

/** Fails with some of the differences. */
function none(found) {
  assert.ok(
    found.length === 0,
    `${found.length} answers differ:\n${found.slice(0, 15).join("\n")}`,
  );
}

/** Returns the part of a text where it begins to differ from another. */
function around(text, other) {
  let at = 0;
  while (at < text.length && text[at] === other[at]) at += 1;
  return JSON.stringify(text.slice(Math.max(0, at - 80), at + 160));
}

/* The cases of tests/cases/rest. tests/it/rest.rs describes the form of the files. */

const folder = join(root, "tests/cases/rest");
const EHR = "6ba7b810-9dad-41d1-80b4-00c04fd430c8";

/**
 * Returns the scenarios that do not depend on the settings of a host: administration (which the manifest
 * shows), callers, limits, log, origins and methods. Bulk loads are left out, because only servers have
 * them.
 */
function scenarios() {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".rest"))
    .sort();
  const all = files.flatMap((file) =>
    readFileSync(join(folder, file), "utf8")
      .split("\n=== ")
      .slice(1)
      .map((text) => ({ name: `${file}: ${text.split("\n", 1)[0]}`, text })),
  );
  return all.filter(
    ({ text }) =>
      !/^(admin: off|auth: off|archetypes: exact)$/m.test(text) &&
      !/^> \w+ \/(admin|ehr\/bulk|\/\/)|^> OPTIONS \/?$|^> BREW|@large|@deep|@blank-lines|\ufffd|^Origin: /m.test(
        text,
      ) &&
      steps(text).every(({ head }) => isSendable(head)),
  );
}

/** Returns whether a page can send the headers: ASCII characters without changes. */
function isSendable(head) {
  return [...head].every((character) => character.codePointAt(0) < 128);
}

/** Returns the steps of a scenario: head and body of a request, and the values that are kept. */
function steps(text) {
  return text
    .split("\n> ")
    .slice(1)
    .map((step) => {
      const [asked, expected = ""] = step.split("\n< ");
      const [head, ...rest] = asked.split("\n\n");
      const source = rest.join("\n\n").trim();
      const keeps = expected.split("\n").filter((line) => line.includes(" := "));
      return { head, source, body: bodyOf(source), keeps };
    });
}

/** Returns as many FOLDERs inside one another as `@folders 60` says. */
function nestedFolders(count) {
  const folder =
    '{"_type":"FOLDER","archetype_node_id":"openEHR-EHR-FOLDER.generic.v1","name":{"_type":"DV_TEXT","value":"ward"}';
  return `${`${folder},"folders":[`.repeat(count - 1)}${folder}}${"]}".repeat(count - 1)}`;
}

/** Returns a body with the files that it names. */
function bodyOf(text) {
  if (text.startsWith("@folders ")) return nestedFolders(Number(text.slice("@folders ".length)));
  if (text.startsWith("@")) {
    const [file, change = ""] = text.slice(1).split(" with ");
    const whole = readFileSync(join(folder, file.trim()), "utf8");
    const [from, to] = change.split(" => ");
    return to === undefined ? whole : whole.replaceAll(from, to);
  }
  return text.replace(/<<(.*?)>>/g, (_, file) => bodyOf(`@${file}`));
}

/**
 * Runs a scenario at a host ("" for the worker, LOCAL for the module). Returns requests and
 * answers.
 */
function play(page, text, mount, host) {
  const prefix = host + (mount === "v1" ? "/v1" : "/rest/openehr/v1");
  const kept = { ehr: EHR, base: new URL(page.url()).origin + prefix };
  return page.evaluate((scenario) => playInPage(scenario), { steps: steps(text), prefix, kept });
}

test("the cases of the REST interface get the same answers", LIMIT, () =>
  housed("same-rest", async (page, server, startWorker) => {
    const played = scenarios().flatMap(({ name, text }) =>
      ["v1", "its"]
        .filter((mount) => !text.split("\n").includes(mount === "v1" ? "mount: its" : "mount: v1"))
        .map((mount) => ({ name: `${name} [${mount}]`, text, mount })),
    );
    for (const one of played) {
      assert.ok((await server.send("POST", "/v1/admin/reset")).status < 300);
      one.there = await play(page, one.text, one.mount, "");
    }
    await server.stop();
    const call = await startWorker();
    const found = [];
    let compared = 0;
    for (const { name, text, mount, there } of played) {
      await onlySet(call, name);
      const here = await play(page, text, mount, LOCAL);
      compared += here.length;
      found.push(...differences(name, there, here));
    }
    const servers = await ask(
      page,
      [
        ["POST", "ehr/bulk"],
        ["GET", "admin/access-log"],
      ].map(([method, path]) => ({
        method,
        path: `${LOCAL}/v1/${path}`,
        headers: { "content-type": "application/x-ndjson" },
        body: "{}",
      })),
    );
    assert.deepEqual(
      servers.map(({ answer }) => answer.status),
      [501, 501],
      "the module leaves out the operations of servers",
    );
    console.log(`# ${played.length} scenarios, ${compared} requests`);
    assert.ok(compared > 400, String(compared));
    none(found);
  }),
);

/* The queries of the corpus. */

const corpus = resolve(root, process.env.AQLITE_CORPUS ?? "../shared/corpus");
const data = (name) => readFileSync(join(corpus, "aql", name), "utf8");

/** Returns the request of a step of a set-up, which loads under fixed ids. */
function load(step) {
  const line = (kind, version_uid, data) => ({
    method: "POST",
    path: "/v1/admin/load",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      ehr_id: step.ehr_id,
      kind,
      version_uid,
      preceding: step.preceding,
      data,
    }),
  });
  const file = (name) => JSON.parse(data(name));
  if (step.op === "upload_template")
    return {
      method: "POST",
      path: "/rest/openehr/v1/definition/template/adl1.4",
      headers: { "content-type": "application/xml" },
      body: data(step.file),
    };
  if (step.op === "create_ehr") {
    const status = file(step.ehr_status_file);
    if (status.subject?.external_ref)
      Object.assign(status.subject.external_ref, {
        id: { ...status.subject.external_ref.id, value: step.subject_id },
        namespace: step.subject_namespace,
      });
    return line("EHR_STATUS", step.ehr_status_uid, status);
  }
  if (step.op.endsWith("_composition"))
    return line("COMPOSITION", step.uid, step.file && file(step.file));
  if (step.op === "update_ehr_status") return line("EHR_STATUS", step.uid, file(step.file));
  if (step.op === "create_directory") return line("FOLDER", step.uid, file(step.file));
  if (step.op === "delete_ehr")
    return { method: "DELETE", path: `/v1/admin/ehr/${step.ehr_id}`, headers: {} };
  return null;
}

/** Returns the requests of a case on both mounts. A stored query is stored first. */
function queries({ request }) {
  const [method, path] = request.via.split(" ");
  const stored = !path.endsWith("/aql");
  const named = path.split("/").length > 3 ? path : `${path}/1.0.0`;
  const store = stored
    ? [
        {
          method: "PUT",
          path: `/rest/openehr/v1/definition${named}`,
          headers: { "content-type": "text/plain" },
          body: request.q,
        },
      ]
    : [];
  const { q, query_parameters, offset, fetch, ehr_id, url_params } = request;
  const given = Object.entries({
    q: stored ? null : q,
    query_parameters,
    offset,
    fetch,
    ehr_id,
  }).filter(([, value]) => value !== null && value !== undefined);
  const asked = ["/v1", "/rest/openehr/v1"].map((mount) => {
    if (method !== "GET")
      return {
        method,
        path: mount + path,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(Object.fromEntries(given)),
      };
    const flat = {
      ...Object.fromEntries(given.filter(([name]) => name !== "query_parameters")),
      ...query_parameters,
      ...url_params,
    };
    return { method, path: `${mount}${path}?${new URLSearchParams(flat)}`, headers: {} };
  });
  return [...store, ...asked];
}

test(
  "the queries of the corpus get the same answers on exported data",
  {
    ...LIMIT,
    skip: existsSync(join(corpus, "aql/cases.json")) ? false : `there is no corpus at ${corpus}`,
  },
  () =>
    housed("same-aql", async (page, server, startWorker) => {
      const { cases } = JSON.parse(data("cases.json"));
      const { setups } = JSON.parse(data("setups.json"));
      const played = setups
        .map(({ id, steps }) => ({
          id,
          steps,
          requests: cases.filter(({ setup }) => setup === id).flatMap(queries),
        }))
        .filter(({ requests }) => requests.length > 0);
      for (const one of played) {
        assert.ok((await server.send("POST", "/v1/admin/reset")).status < 300);
        // Data that the worker refuses to load are absent in both hosts.
        for (const step of one.steps.map(load).filter(Boolean))
          await server.send(step.method, step.path, { headers: step.headers, body: step.body });
        one.exported = (await server.send("GET", "/v1/admin/export?limit=1000")).text;
        one.there = await ask(page, one.requests);
      }
      await server.stop();
      const call = await startWorker();
      const found = [];
      let rows = 0;
      for (const { id, requests, exported, there } of played) {
        await onlySet(call, id);
        const { refused } = await call("import", { text: exported, first: 1 });
        assert.deepEqual(refused, [], id);
        const here = await ask(
          page,
          requests.map((request) => ({ ...request, path: LOCAL + request.path })),
        );
        rows += here.reduce(
          (sum, { answer: { body } }) =>
            sum + (body.startsWith("{") ? (JSON.parse(body).rows?.length ?? 0) : 0),
          0,
        );
        found.push(...differences(id, there, here));
      }
      const compared = played.reduce((sum, { requests }) => sum + requests.length, 0);
      console.log(`# ${played.length} set-ups, ${compared} requests, ${rows} rows`);
      assert.ok(compared > 1200 && rows > 2000, `${compared} requests, ${rows} rows`);
      none(found);
    }),
);
