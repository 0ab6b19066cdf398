// The source of answers: the selected server, or this browser's own repository at its own address. One
// must never answer in place of the other.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  browse,
  built,
  caller,
  inspect,
  offlineReady,
  open,
  ready,
  row,
  run,
  scratch,
  settled,
  visit,
  expect,
} from "./page.mjs";
import { serve } from "./server.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const INTERFACE = /^\/(v1|rest|cds-services|health)(\/|$)/;
const JSON_TYPE = { "content-type": "application/json" };
const LOGIN = "<!doctype html><title>Log in</title>";

/** The answer of the server behind the page. Tests change it. */
let outcome;
/** The requests that reached the server's interface: method, path and body. */
let received = [];
let server;
let browser;

async function bodyOf(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}

async function interfaceOf(request, response) {
  if (!INTERFACE.test(request.url)) return false;
  const asked = { method: request.method, path: request.url, body: await bodyOf(request) };
  received.push(asked);
  const answer = outcome(asked);
  if (answer === "drop") request.socket.destroy();
  else response.writeHead(answer.status, answer.headers ?? JSON_TYPE).end(answer.body ?? "");
  return true;
}

/** A server with seven EHRs, three compositions and no definitions, which accepts every write. */
function healthy({ method, path, body }) {
  const rows = (...rows) => ({
    status: 200,
    body: JSON.stringify({ columns: [{ name: "n", path: null }], rows }),
  });
  if (path.endsWith("/query/aql")) {
    const { q } = JSON.parse(body);
    if (q.includes("COUNT(*)")) return rows([3]);
    return q.includes("COUNT(") ? rows([7]) : rows();
  }
  if (method === "GET") return { status: 200, body: "[]" };
  return {
    status: 201,
    headers: { ...JSON_TYPE, location: path },
    body: '{"ehr_id":{"value":"00000000-0000-4000-8000-000000000001"}}',
  };
}

const away = {
  502: () => ({ status: 502, body: '{"message":"bad gateway"}' }),
  503: () => ({
    status: 503,
    headers: { ...JSON_TYPE, "retry-after": "7" },
    body: '{"message":"away"}',
  }),
  504: () => ({ status: 504, headers: { "content-type": "text/plain" }, body: "timeout" }),
  "a login page": () => ({
    status: 200,
    headers: { "content-type": "text/html; charset=utf-8" },
    body: LOGIN,
  }),
};

before(async () => {
  server = await serve(built, 0, interfaceOf);
  browser = await browse();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

afterEach(() => {
  received = [];
});

/**
 * Opens a page that can work offline, without the errors that a browser reports about failed
 * requests.
 */
async function controlled(use, options) {
  outcome = healthy;
  const page = await open(browser, server.address, options);
  try {
    await ready(page);
    await offlineReady(page);
    await use(page);
    assert.deepEqual(
      page.problems.filter((text) => !/Failed to load resource/.test(text)),
      [],
    );
  } finally {
    await page.context().close();
  }
}

function send(page, method, path, body) {
  return page.evaluate(
    async ({ method, path, body }) => {
      try {
        const response = await fetch(path, {
          method,
          headers: { "content-type": "application/json" },
          body,
        });
        const { status, headers } = response;
        return {
          status,
          by: headers.get("aqlite-answered-by"),
          type: headers.get("content-type"),
          retry: headers.get("retry-after"),
          location: headers.get("location"),
          body: await response.text(),
        };
      } catch (error) {
        return { failed: error.name };
      }
    },
    { method, path, body },
  );
}

const localCount = async (page) =>
  JSON.parse((await send(page, "POST", "/local/v1/query/aql", JSON.stringify({ q: COUNT }))).body)
    .rows[0][0];

async function choose(page, source) {
  await page.locator("#source").selectOption(source);
  await settled(page);
}

test("the Service Worker does not answer for an absent server", () =>
  controlled(async (page) => {
    const before = await localCount(page);
    for (const [name, answer] of Object.entries(away)) {
      outcome = answer;
      const { status, headers = JSON_TYPE, body } = answer();
      for (const [method, path, sent] of [
        ["POST", "/v1/ehr"],
        ["GET", "/v1/query/aql?q=SELECT"],
        ["POST", "/rest/openehr/v1/query/aql", "{}"],
        ["GET", "/cds-services"],
        ["GET", "/health"],
      ]) {
        const got = await send(page, method, path, sent);
        assert.deepEqual(
          got,
          {
            status,
            by: null,
            type: headers["content-type"],
            retry: headers["retry-after"] ?? null,
            location: null,
            body,
          },
          `${name}: ${method} ${path}`,
        );
      }
    }
    outcome = () => "drop";
    assert.deepEqual(await send(page, "POST", "/v1/ehr"), { failed: "TypeError" });
    await page.context().setOffline(true);
    assert.deepEqual(await send(page, "POST", "/v1/ehr"), { failed: "TypeError" });
    assert.deepEqual(await send(page, "GET", "/rest/openehr/v1/query/aql?q=SELECT"), {
      failed: "TypeError",
    });
    assert.equal(await localCount(page), before);
  }));

test("this browser's own repository answers below /local on both mounts, without a server", () =>
  controlled(async (page) => {
    const before = await localCount(page);
    const made = await send(page, "POST", "/local/v1/ehr");
    assert.deepEqual([made.status, made.by], [201, "service-worker"]);
    assert.match(made.location, new RegExp(`^${server.address}local/v1/ehr/`));
    assert.equal((await send(page, "GET", new URL(made.location).pathname)).status, 200);
    const its = await send(
      page,
      "POST",
      "/local/rest/openehr/v1/query/aql",
      JSON.stringify({ q: COUNT }),
    );
    assert.deepEqual([its.status, JSON.parse(its.body).rows], [200, [[before + 1]]]);
    assert.equal(
      (await send(page, "GET", "/local/v1/ehr/00000000-0000-4000-8000-000000000000")).status,
      404,
    );
    assert.equal((await send(page, "GET", "/local/nothing")).status, 404);
    assert.deepEqual(received, []);
    await page.context().setOffline(true);
    assert.equal((await send(page, "POST", "/local/v1/ehr")).status, 201);
    await page.reload();
    await ready(page);
    await run(page, COUNT);
    assert.deepEqual(await row(page, 0), [String(before + 2)]);
  }));

test("a form of another site changes nothing in this browser", () =>
  controlled(async (page) => {
    const before = await localCount(page);
    const form = `<form method="post" enctype="text/plain" action="${server.address}local/v1/ehr"></form>`;
    const foreign = await serve(built, 0, (_, response) =>
      Boolean(response.writeHead(200, { "content-type": "text/html" }).end(form)),
    );
    try {
      const tab = await page.context().newPage();
      await tab.goto(foreign.address.replace("127.0.0.1", "localhost"));
      await Promise.all([
        tab.waitForURL(/local\/v1\/ehr$/),
        tab.evaluate(() => document.forms[0].submit()),
      ]);
      await expect(tab.locator("body")).toHaveText(/"code":403/);
    } finally {
      await foreign.stop();
    }
    assert.equal(await localCount(page), before);
  }));

test("a Service Worker that answered for an absent server is replaced at once", async () => {
  const copy = await scratch("migration");
  await cp(built, copy, { recursive: true });
  const current = await readFile(join(copy, "sw.js"), "utf8");
  // The Service Worker of earlier releases: it serves all files from one cache, and answers requests of
  // the REST interface itself if the server is absent.
  await writeFile(
    join(copy, "sw.js"),
    `addEventListener("install", (event) => event.waitUntil(caches.open("aqlite-shell-0123456789").then((cache) => cache.addAll(["./"]))));
    addEventListener("activate", (event) => event.waitUntil(clients.claim()));
    addEventListener("fetch", (event) => {
      const { pathname } = new URL(event.request.url);
      if (pathname.startsWith("/v1")) event.respondWith(fetch(event.request).then((got) => got.ok ? got : new Response("", { status: 201 })));
      else event.respondWith(caches.match(event.request).then((kept) => kept ?? fetch(event.request)));
    });`,
  );
  outcome = away["503"];
  const own = await serve(copy, 0, interfaceOf);
  const page = await open(browser, own.address);
  try {
    await ready(page);
    await offlineReady(page);
    assert.equal((await send(page, "POST", "/v1/ehr")).status, 201, "the old one lies");
    await writeFile(join(copy, "sw.js"), current);
    const replaced = page.evaluate(() =>
      new Promise((resolve) =>
        navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }),
      ).then(() => null),
    );
    await page.evaluate(async () => (await navigator.serviceWorker.getRegistration()).update());
    await replaced;
    assert.equal((await send(page, "POST", "/v1/ehr")).status, 503);
    const names = await page.evaluate(() => caches.keys());
    const [stamp, ...more] = names
      .filter((name) => name.startsWith("aqlite-files-"))
      .map((name) => name.slice("aqlite-files-".length));
    assert.deepEqual(
      [more, names.length],
      [[], 2],
      "the files of tabs that are open with the old version are still there",
    );
    // The next version waits for the user, because the active version never answers for a server.
    assert.ok(current.includes(stamp));
    await writeFile(join(copy, "sw.js"), current.replaceAll(stamp, "ffffffffff"));
    await page.reload();
    await ready(page);
    await page.locator("#notice", { hasText: "A new version is ready" }).waitFor();
    assert.ok(
      await page.evaluate(
        async () => (await navigator.serviceWorker.getRegistration()).waiting !== null,
      ),
      "it waits",
    );
    await Promise.all([page.waitForEvent("load"), page.click("#update")]);
    await ready(page);
    assert.deepEqual(await page.evaluate(() => caches.keys()), [
      `aqlite-files-${stamp}`,
      "aqlite-files-ffffffffff",
    ]);
  } finally {
    await page.context().close();
    await own.stop();
  }
});

test("a login page in place of a file is not cached for offline use", async () => {
  const copy = await scratch("gateway");
  await cp(built, copy, { recursive: true });
  let login = true;
  const gateway = async (request, response) => {
    // Some hosts redirect to a name without `.html`.
    if (request.url === "/api.html")
      return Boolean(response.writeHead(307, { location: "/api" }).end());
    if (request.url === "/api")
      return Boolean(
        response
          .writeHead(200, { "content-type": "text/html" })
          .end(await readFile(join(copy, "api.html"))),
      );
    if (
      !login ||
      !/^\/(zip|styles)\.|openapi\.json$/.test(request.url) ||
      request.headers["sec-fetch-dest"] !== "empty"
    )
      return false;
    response.writeHead(200, { "content-type": "text/html" }).end(LOGIN);
    return true;
  };
  const own = await serve(copy, 0, gateway);
  const page = await open(browser, own.address);
  try {
    await ready(page);
    const installed = () =>
      page.evaluate(async () => {
        const registration = await navigator.serviceWorker.register("sw.js");
        const worker = registration.installing;
        if (worker)
          await new Promise((resolve) =>
            worker.addEventListener("statechange", resolve, { once: true }),
          );
        return {
          active: registration.active !== null || registration.waiting !== null,
          caches: await caches.keys(),
        };
      });
    assert.deepEqual(await installed(), { active: false, caches: [] });
    login = false;
    assert.equal((await installed()).active, true);
    await page.reload();
    await offlineReady(page);
    await page.context().setOffline(true);
    await page.goto(`${own.address}api.html`);
    assert.match(await page.title(), /REST/i);
  } finally {
    await page.context().close();
    await own.stop();
  }
});

test("with a server selected, files are added there only, also during an outage", () =>
  controlled(async (page) => {
    await page.click("#tab-data");
    const local = await page.locator("#state-text").textContent();
    await choose(page, "own");
    await expect(page.locator("#state-text")).toHaveText("7 patients · 3 compositions");
    await expect(page.locator("#destination")).toHaveText(
      `They are sent to the server ${server.address}v1, which stores them. Others may read them there.`,
    );
    const files = (name, text) =>
      page
        .locator("#files")
        .setInputFiles([{ name, mimeType: "application/json", buffer: Buffer.from(text) }]);
    const visitFile = ["visit.json", '{"_type":"COMPOSITION"}'];
    await page.selectOption("#target", { index: 1 });
    received = [];
    await files(...visitFile);
    await page.locator("#added", { hasText: "1 of 1 files added" }).waitFor();
    assert.ok(
      received.some(
        ({ method, path }) => method === "POST" && /^\/v1\/ehr\/[^/]+\/composition$/.test(path),
      ),
    );
    await expect(page.locator("#undo"), "a server takes nothing back").toHaveCount(0);
    await files("ward.ndjson", '{"line":1}\n');
    await page.locator("#added p", { hasText: "of 1 files" }).waitFor();
    assert.ok(
      received.some(({ method, path }) => method === "POST" && path === "/v1/admin/import?first=1"),
      "an export goes to the server, too",
    );
    for (const name of ["503", "a login page"]) {
      outcome = away[name];
      await files(...visitFile);
      await page
        .locator("#added .bad", { hasText: name === "503" ? "away" : "web page instead of data" })
        .first()
        .waitFor();
      await expect(page.locator("#added .good"), name).toHaveCount(0);
    }
    outcome = healthy;
    await choose(page, "here");
    await expect(page.locator("#state-text")).toHaveText(local);
    await expect(page.locator("#destination")).toHaveText(
      "They stay in this browser, and are there again after a reload.",
    );
  }));

test("the timeline of a patient on a server has a composition that was added meanwhile", () =>
  controlled(async (page) => {
    const rows = [["a::s::1", "Visit", "2020-01-01T10:00:00Z", "t", "Dr. A"]];
    const result = (rows) => ({
      status: 200,
      body: JSON.stringify({ columns: [], rows }),
    });
    outcome = (asked) => {
      if (asked.body.includes("AS subject FROM"))
        return result([["00000000-0000-4000-8000-000000000001", "P1"]]);
      return asked.body.includes("AS composer FROM") ? result(rows) : healthy(asked);
    };
    await choose(page, "own");
    await page.click("#tab-patients");
    await expect(page.locator(".timeline-entry")).toHaveCount(1);
    await page.click("#tab-data");
    rows.push(["b::s::1", "Visit", "2019-01-01T10:00:00Z", "t", "Dr. A"]);
    await page.selectOption("#target", { label: "P1" });
    await page.locator("#files").setInputFiles([
      {
        name: "visit.json",
        mimeType: "application/json",
        buffer: Buffer.from('{"_type":"COMPOSITION"}'),
      },
    ]);
    await page.locator("#added", { hasText: "1 of 1 files added" }).waitFor();
    await settled(page);
    await page.click("#tab-patients");
    await expect(page.locator(".timeline-entry")).toHaveCount(2);
  }));

test("a query that is stopped does not end the upload of a file", () =>
  controlled(async (page) => {
    await choose(page, "own");
    await page.click("#tab-data");
    await page.selectOption("#target", { label: "A new patient" });
    let release;
    const held = new Promise((resolve) => (release = resolve));
    const hold = async (route) => {
      await held;
      await route.continue();
    };
    const uploaded = page.waitForRequest(/\/composition$/);
    await page.route(/\/composition$/, hold);
    await page.locator("#files").setInputFiles([
      {
        name: "visit.json",
        mimeType: "application/json",
        buffer: Buffer.from('{"_type":"COMPOSITION"}'),
      },
    ]);
    await uploaded;
    await page.route(/\/query\/aql$/, hold);
    await page.click("#tab-query");
    await page.click("#run");
    await page.click("#stop");
    await page.locator("#result h3", { hasText: "Stopped" }).waitFor();
    release();
    await page.click("#tab-data");
    await page.locator("#added", { hasText: "1 of 1 files added" }).waitFor();
    await settled(page);
  }));

test("both texts of a guide are kept if its replacement is interrupted by an outage", () =>
  controlled(async (page) => {
    const sample = await readFile(
      new URL("../../www/samples/early_warning_score.gdl2.json", import.meta.url),
      "utf8",
    );
    const id = "Sample_early_warning_score.v1";
    const stored = sample.replace("Early warning score", "Former score");
    assert.notEqual(stored, sample);
    outcome = ({ method, path, body }) => {
      if (method === "DELETE") return { status: 204 };
      if (method === "POST" && path.endsWith("/definition/gdl")) return away["503"]();
      if (path.endsWith("/definition/gdl"))
        return { status: 200, body: JSON.stringify([{ guide_id: id, concept: "Score" }]) };
      if (path.includes("/definition/gdl/")) return { status: 200, body: stored };
      return healthy({ method, path, body });
    };
    await choose(page, "own");
    await page.click("#tab-guide");
    await page
      .locator("#guide-file")
      .setInputFiles([
        { name: "score.gdl2.json", mimeType: "application/json", buffer: Buffer.from(sample) },
      ]);
    await page.click("#guide-about-tab");
    await page.click("#store-guide");
    await page.locator("dialog[open] button", { hasText: /^Replace$/ }).click();
    const messages = page.locator("#guide-messages");
    await expect(messages).toContainText("neither text could be stored");
    const draft = () =>
      page.evaluate(
        (id) =>
          Object.entries(localStorage)
            .filter(([key]) => key.startsWith("aqlite-guide ") && key.endsWith(id))
            .map(([, text]) => JSON.parse(text).text),
        id,
      );
    assert.deepEqual(await draft(), [sample]);
    await page.click("#guide-undo");
    await expect(messages).toContainText("is back");
    assert.deepEqual(await draft(), [stored]);
    await page.click("#guide-undo");
    await expect.poll(draft).toEqual([sample]);
  }));

test("with a server selected, the data of this browser cannot change", () =>
  controlled(async (page) => {
    const call = await caller(page);
    const { set } = await call("contents", null);
    await call("connect", { base: `${server.address}v1`, authorization: null });
    const { ehrs } = await call("contents", null);
    assert.equal(ehrs, 7);
    const calls = {
      generate: { ehrs: 1, compositions: 1, seed: 1 },
      startOver: null,
      undo: { set: set.id, from: 0, to: 0 },
      createSet: "Ward 1",
      openSet: set.id,
      removeSet: set.id,
      renameSet: { id: set.id, name: "x" },
      export: null,
    };
    for (const [name, argument] of Object.entries(calls))
      await assert.rejects(call(name, argument), /a server is chosen/, name);
    outcome = away["503"];
    await assert.rejects(call("newEhr", null), /away/);
    await assert.rejects(call("query", { q: COUNT, parameters: {} }), /away/);
    await call("connect", null);
    assert.equal((await call("sets", null)).length, 1);
  }));

test("the notice about an unreachable server names it, and the server that still answers", () =>
  controlled(async (page) => {
    const { host } = new URL(server.address);
    const asked = async (base) => {
      await page.locator("#source").selectOption("other");
      await page.fill("#server-base", base);
      await page.locator("#server-form .primary").click();
    };
    await asked(`${server.address}v1`);
    await expect(page.locator("#source option:checked")).toHaveText(host);
    await asked("http://127.0.0.1:9/v1");
    await expect(page.locator("#notice")).toContainText(
      `The server at 127.0.0.1:9 was not reached. The server at ${host} still answers.`,
    );
    await expect(page.locator("#source option:checked")).toHaveText(host);
  }));

test("an unreachable source leaves name, state, counts and result unchanged", () =>
  controlled(async (page) => {
    await run(page, COUNT);
    const state = async () => ({
      name: await page.locator("#source").inputValue(),
      dot: await page.locator("#state").getAttribute("data-state"),
      counts: await page.locator("#state-text").textContent(),
      result: await row(page, 0),
      destination: await page.locator("#destination").textContent(),
    });
    const before = await state();
    const outages = {
      ...away,
      "a connection that is cut": () => "drop",
      // The server answers the first request only.
      "a server that fails half way": (asked) =>
        asked.body.includes("COUNT(*)") ? away["503"]() : healthy(asked),
    };
    for (const [name, answer] of Object.entries(outages)) {
      outcome = answer;
      await page.locator("#source").selectOption("own");
      await page
        .locator("#notice", { hasText: "was not reached. The data of this browser still answers." })
        .waitFor();
      await settled(page);
      assert.deepEqual(await state(), before, name);
    }
    await run(page, COUNT);
    assert.deepEqual(await row(page, 0), before.result, "and the data here answer");
  }));

test("counts and rows of a lost server are not replaced by those of this browser", () =>
  controlled(async (page) => {
    await choose(page, "own");
    await run(page, COUNT);
    assert.deepEqual(await row(page, 0), ["7"]);
    outcome = away["503"];
    await page.click("#run");
    await page.locator("#result h3", { hasText: "The query did not run" }).waitFor();
    await expect(page.locator("#source")).toHaveValue("own");
    await expect(page.locator("#csv")).toBeDisabled();
    await page.click("#tab-data");
    await page.locator("#files").setInputFiles([
      {
        name: "visit.json",
        mimeType: "application/json",
        buffer: Buffer.from('{"_type":"COMPOSITION"}'),
      },
    ]);
    await page.locator("#state[data-state=bad]").waitFor();
    await expect(page.locator(".facts dd")).toHaveText(["not known", "not known"]);
  }));

test("another source or data set runs the query again, and results are explored on their own data only", () =>
  controlled(async (page) => {
    await run(page, COUNT);
    const [here] = await row(page, 0);
    await choose(page, "own");
    assert.deepEqual(await row(page, 0), ["7"]);
    await choose(page, "here");
    assert.deepEqual(await row(page, 0), [here]);
    await page.click("#tab-data");
    await page.fill("#set-name", "Ward 7");
    await page.click("#set-new");
    await settled(page);
    await page.click("#tab-query");
    assert.deepEqual(await row(page, 0), ["0"]);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#csv")]);
    assert.equal(await readFile(await download.path(), "utf8"), "n\r\n0\r\n");
    // The user is writing another query, which is not run. The former result is removed.
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.insertText(" WHERE");
    await page.click("#tab-data");
    await page.click("[aria-label='Open Sample patients']");
    await settled(page);
    await page.click("#tab-query");
    await page.locator("#result h3", { hasText: "Other data" }).waitFor();
    await expect(page.locator("#csv")).toBeDisabled();
    const call = await caller(page);
    const { identity } = await call("query", {
      q: "SELECT c FROM EHR e CONTAINS COMPOSITION c",
      parameters: {},
    });
    await call("createSet", "Ward 8");
    for (const name of ["document", "documents"])
      await assert.rejects(
        call(name, {
          q: "SELECT c FROM EHR e CONTAINS COMPOSITION c",
          parameters: {},
          identity,
          row: 0,
          column: 0,
          format: "JSON",
        }),
        /not those of this result/,
      );
  }));

test("a program for a result of this browser warns that a server has other data", () =>
  controlled(
    async (page) => {
      await run(page, COUNT);
      const copied = async (language) => {
        await page.evaluate(() => navigator.clipboard.writeText(""));
        await page.locator("#copy-as").selectOption(language);
        await page.waitForFunction(async () => (await navigator.clipboard.readText()) !== "");
        return page.evaluate(() => navigator.clipboard.readText());
      };
      assert.match(
        await copied("curl"),
        /^# The data of this browser gave the result on the page\.\n# This asks the server at http:.*\/v1, which answers from its own data\.\ncurl -s http:/,
      );
      assert.match(await copied("javascript"), /^\/\/ The data of this browser/);
      await choose(page, "own");
      assert.match(await copied("curl"), /^curl -s http:/);
    },
    { permissions: ["clipboard-read", "clipboard-write"] },
  ));

/** The kinds of outages of a server, with the texts by which the page reports them. */
const outages = {
  "a status 503": { answer: away["503"], words: /away/ },
  "a login page": { answer: away["a login page"], words: /web page instead of data/ },
  "a connection that is cut": { answer: () => "drop", words: /no answer from/ },
};

/** A template that the server has, for the form. */
async function templateOf(page) {
  return page.evaluate(async () => {
    const found = {};
    for (const part of ["", "/webtemplate", "/1"]) {
      const answer = await fetch(`local/v1/definition/template/sample.vital_signs.v1${part}`);
      found[part] = await answer.text();
    }
    return found;
  });
}

for (const width of [390, 1440]) {
  const viewport = { width, height: 900 };

  test(`without the server, every kind of write fails and changes nothing in this browser: ${width}`, () =>
    controlled(
      async (page) => {
        const template = await templateOf(page);
        const withTemplate = (asked) => {
          const { method, path } = asked;
          const json = (body) => ({ status: 200, body });
          if (method !== "GET" || !path.includes("/definition/template")) {
            if (path.endsWith("/query/aql") && asked.body.includes("subject"))
              return json(
                '{"columns":[{"name":"ehr"},{"name":"subject"}],"rows":[["00000000-0000-4000-8000-000000000001","P1"]]}',
              );
            return healthy(asked);
          }
          if (path.endsWith("/webtemplate")) return json(template["/webtemplate"]);
          return path.endsWith("/1")
            ? { status: 200, headers: { "content-type": "application/xml" }, body: template["/1"] }
            : json('[{"template_id":"sample.vital_signs.v1"}]');
        };
        const guide = await page.evaluate(async () =>
          (await fetch("local/v1/definition/gdl/Early_warning_score.v1")).text().catch(() => ""),
        );
        assert.equal(typeof guide, "string");
        const call = await caller(page);
        const before = await call.text("export", null);
        outcome = withTemplate;
        await choose(page, "own");
        const files = (name, text) =>
          page
            .locator("#files")
            .setInputFiles([{ name, mimeType: "application/json", buffer: Buffer.from(text) }]);
        const ways = {
          "a file": async (words) => {
            await page.click("#tab-data");
            await page.selectOption("#target", { index: 1 });
            await files("visit.json", '{"_type":"COMPOSITION"}');
            await expect(page.locator("#added .bad").first()).toHaveText(words);
          },
          "an export": async (words) => {
            await page.click("#tab-data");
            await files("ward.ndjson", '{"line":1}\n');
            await expect(page.locator("#added .bad").first()).toHaveText(words);
          },
          "a form": async (words) => {
            await page.click("#tab-templates");
            await page.click("#template-form-tab");
            await page.click("#form-save");
            await expect(page.locator("#form-outcome")).toHaveText(words);
            await expect(page.locator("#form-outcome .good")).toHaveCount(0);
          },
          "a guide": async (words) => {
            await page.click("#tab-guide");
            await page.click("#guide-about-tab");
            await page.click("#store-guide");
            await expect(page.locator("#guide-messages .bad")).toHaveText(words);
            await expect(page.locator("#guide-messages .good")).toHaveCount(0);
          },
        };
        await page.click("#tab-templates");
        await page.click("#template-form-tab");
        await expect(page.locator("#form-destination")).toHaveText(
          `It is sent to the server ${server.address}v1, which stores it.`,
        );
        await page.locator("#template-form details").first().waitFor();
        await page.selectOption("#form-patient", { label: "P1" });
        await page.click("#tab-guide");
        const guideFile = await readFile(
          new URL("../../www/samples/early_warning_score.gdl2.json", import.meta.url),
        );
        await page
          .locator("#guide-file")
          .setInputFiles([
            { name: "score.gdl2.json", mimeType: "application/json", buffer: guideFile },
          ]);
        await page.click("#guide-about-tab");
        await expect(page.locator("#guide-destination")).toHaveText(/^It is sent to the server/);
        for (const [outage, { answer, words }] of Object.entries(outages)) {
          for (const [way, write] of Object.entries(ways)) {
            outcome = answer;
            await write(words).catch((error) => {
              throw new Error(`${way}, ${outage}: ${error.message}`);
            });
            // The page reads the content of the source again after each write.
            await expect(page.locator("#state"), `${way}, ${outage}`).not.toHaveAttribute(
              "data-state",
              "busy",
            );
            await expect(page.locator("#source")).toHaveValue("own");
          }
        }
        await page.context().setOffline(true);
        await ways["a file"](/no answer from/);
        await page.context().setOffline(false);
        assert.equal(await call.text("export", null), before, "nothing changed in this browser");
      },
      { viewport },
    ));

  test(`no rows can be exported while the source changes, and afterwards no rows of the former source: ${width}`, () =>
    controlled(
      async (page) => {
        await run(page, COUNT);
        await expect(page.locator("#csv")).toBeEnabled();
        // The server answers the connection, but not the content.
        let release;
        const held = new Promise((resolve) => (release = resolve));
        let asked = 0;
        outcome = (request) => {
          if (request.path.endsWith("/query/aql")) asked += 1;
          return asked > 3 ? away["503"]() : healthy(request);
        };
        await page.route("**/v1/query/aql", async (route) => {
          await held;
          await route.continue();
        });
        await page.locator("#source").selectOption("own");
        await expect(page.locator("#csv")).toBeDisabled();
        await expect(page.locator("#save-documents")).toBeDisabled();
        release();
        await page.locator("#state[data-state=bad]").waitFor();
        await page.locator("#result:not([aria-busy])").waitFor({ state: "attached" });
        await expect(page.locator("#source")).toHaveValue("own");
        await expect(page.locator("#csv")).toBeDisabled();
        await expect(page.locator("[role=gridcell]"), "no row of this browser").toHaveCount(0);
        await page.click("#tab-data");
        await expect(page.locator("#contents-title")).toHaveText(
          `In the repository at ${server.address}v1`,
        );
        await expect(page.locator("#destination")).toHaveText(/^They are sent to the server/);
        await expect(page.locator(".facts dd")).toHaveText(["not known", "not known"]);
      },
      { viewport },
    ));

  test(`every replacement of data is announced and can be undone: ${width}`, () =>
    visit(
      browser,
      server.address,
      async (page) => {
        const count = page.locator("#state-text");
        const before = await count.textContent();
        await page.click("#tab-data");
        await expect(page.locator("#fate")).toHaveText(
          "New patients replace the present ones (240 compositions of 36 patients, seed 1), which can be made again.",
        );
        await page.fill("#ehrs", "5");
        await page.fill("#compositions", "9");
        await page.click("#generate");
        await page.locator("#make-former").waitFor();
        await expect(page.locator("#state[data-state=ready]")).toHaveCount(1);
        await expect(count).not.toHaveText(before);
        await page.click("#make-former");
        await expect(count).toHaveText(before);
        const call = await caller(page);
        await call("newEhr", null);
        await expect(page.locator("#fate")).toHaveText(
          "“Sample patients” has 1 write of your own, so new patients get a data set beside it.",
        );
        await settled(page);
        const written = await count.textContent();
        await page.click("#start-over");
        await page.locator("dialog[open]").getByRole("button", { name: "Start over" }).click();
        await page.locator("#bring-back").waitFor();
        await expect(count).toHaveText(before);
        // Writes after the start remain when the former data are restored.
        await call("newEhr", null);
        await call("newEhr", null);
        await page.click("#bring-back");
        await expect(count).toHaveText(written);
        await page.locator("#bring-back").waitFor();
        await page.click("#bring-back");
        await expect(count).toHaveText(/^34 patients/);
      },
      { viewport },
    ));

  test(`a replaced saved query and the values of a form that was left are not lost: ${width}`, () =>
    visit(
      browser,
      server.address,
      async (page) => {
        const save = async () => {
          await page.click("#keep");
          await page.fill("#naming-name", "How many");
        };
        await run(page, COUNT);
        await save();
        await expect(page.locator("#naming-taken")).toBeHidden();
        await page.locator("#naming-form .primary").click();
        await run(page, "SELECT e/ehr_id/value AS ehr FROM EHR e LIMIT 2");
        await save();
        await expect(page.locator("#naming-taken")).toHaveText(/replaces it; you can undo/);
        await page.locator("#naming-form .primary").click();
        await expect(page.locator("#saved .forgotten")).toHaveText(/“How many” is replaced/);
        await page.locator("#saved").getByRole("button", { name: "Undo" }).click();
        await page.locator("#saved .example", { hasText: "How many" }).click();
        await expect(page.locator("#summary")).toHaveText(/^1 row · 1 column/);
        await page.click("#tab-templates");
        await page.selectOption("#template", "sample.vital_signs.v1");
        await page.click("#template-form-tab");
        const group = (within, name) =>
          within.locator(`details:has(> summary:text("${name}"))`).first();
        const temperature = group(page.locator("#template-form"), "Body temperature");
        await temperature.locator("> summary").click();
        const event = group(temperature, "Any event");
        await event.locator("> summary").click();
        await event
          .locator('.form-field:has(> label:text("Comment")) input')
          .first()
          .fill("felt warm");
        const entered = () =>
          page
            .locator("#template-form input")
            .evaluateAll((all) => all.some(({ value }) => value === "felt warm"));
        await page.selectOption("#template", { index: 0 });
        await expect.poll(entered).toBe(false);
        await page.selectOption("#template", "sample.vital_signs.v1");
        await expect.poll(entered).toBe(true);
      },
      { viewport },
    ));
}

for (const width of [390, 1440])
  test(`new parts fit the screen and are accessible: ${width}`, () =>
    controlled(
      async (page) => {
        await page.click("#tab-data");
        await inspect(page, "data");
        await page.click("#start-over");
        await inspect(page, "start-over");
        await page.locator("dialog[open]").getByRole("button", { name: "Start over" }).click();
        await page.locator("#bring-back").waitFor();
        await settled(page);
        await inspect(page, "started-over");
        await choose(page, "own");
        await inspect(page, "data-server");
        outcome = () => "drop";
        await choose(page, "here");
        await page.locator("#source").selectOption("own");
        await page.locator("#notice", { hasText: "was not reached" }).waitFor();
        await settled(page);
        await inspect(page, "not-reached");
      },
      { viewport: { width, height: 900 } },
    ));
