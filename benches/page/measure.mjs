// The page in Chromium with its caches as visitors have them: `node benches/page/measure.mjs
// [--compositions 100000] [--templates DIR]`, after a build.
//
// Prints `KEY = VALUE`, times in milliseconds. The template of DIR whose size is nearest to 400 kB
// is used.
import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { browse, built, caller, offlineReady, open, ready, write } from "../../tests/web/page.mjs";
import { serve } from "../../tests/web/server.mjs";

const { values: options } = parseArgs({
  options: { compositions: { type: "string", default: "100000" }, templates: { type: "string" } },
});
const compositions = Number(options.compositions);
const SYSTOLIC = "o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value/magnitude";
const PRESSURE = "EHR e CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";
const FILTER = `SELECT e/ehr_id/value AS ehr, ${SYSTOLIC} AS systolic FROM ${PRESSURE} WHERE ${SYSTOLIC} >= 160`;
const ROWS =
  "SELECT c/uid/value AS uid, c/name/value AS name, c/context/start_time/value AS time FROM EHR e CONTAINS COMPOSITION c LIMIT 30000";
const SLOW =
  "SELECT COUNT(DISTINCT b/value) AS n FROM EHR e CONTAINS COMPOSITION c CONTAINS ELEMENT b";

const tell = (key, value) => console.log(`page.${key} = ${value.toFixed(2)}`);
const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
/** Returns the median of several measurements. */
async function middle(times, measure) {
  const found = [];
  for (let at = 0; at < times; at += 1) found.push(await measure());
  return median(found);
}

/** Records the time at which the first cell of an answer appears. */
const watchFirstCell = () => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector("[role=gridcell]")) return;
    window.firstCell = performance.now();
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true });
};
const firstCell = async (page) => {
  await page.waitForFunction(() => window.firstCell !== undefined);
  return page.evaluate(() => window.firstCell);
};

const server = await serve(built);
const browser = await browse();

/** Opens the page as a visitor without caches. */
async function fresh() {
  const page = await open(browser, "about:blank");
  await page.addInitScript(watchFirstCell);
  return page;
}

async function module() {
  const page = await fresh();
  await page.goto(server.address);
  await ready(page);
  await offlineReady(page);
  const url = await page.evaluate(
    () =>
      performance
        .getEntriesByType("resource")
        .map(({ name }) => name)
        .find((name) => name.endsWith(".wasm")) ?? "",
  );
  const name =
    url ||
    (await page.evaluate(async () => {
      for (const key of await caches.keys())
        for (const { url } of await (await caches.open(key)).keys())
          if (url.endsWith(".wasm")) return url;
    }));
  const times = await page.evaluate(async (name) => {
    const found = [];
    for (let at = 0; at < 5; at += 1) {
      const bytes = await (await fetch(name)).arrayBuffer();
      const start = performance.now();
      const compiled = await WebAssembly.compile(bytes);
      const imports = {};
      for (const { module, name } of WebAssembly.Module.imports(compiled))
        (imports[module] ??= {})[name] = () => undefined;
      await WebAssembly.instantiate(compiled, imports);
      found.push(performance.now() - start);
    }
    return found;
  }, name);
  tell("module", median(times));
  await page.context().close();
}

async function firstAnswers() {
  const visit = async () => {
    const page = await fresh();
    await page.goto(server.address);
    const time = await firstCell(page);
    await page.context().close();
    return time;
  };
  tell("first", await middle(5, visit));
  const own = await serve(built);
  const page = await fresh();
  await page.goto(own.address);
  await ready(page);
  await offlineReady(page);
  await own.stop();
  const reload = async () => {
    await page.reload();
    return firstCell(page);
  };
  await reload();
  tell("offline", await middle(5, reload));
  await page.context().close();
}

async function many() {
  const page = await fresh();
  await page.goto(server.address);
  await ready(page);
  await page.click("#tab-data");
  await page.fill("#ehrs", String(Math.ceil(compositions / 8)));
  await page.fill("#compositions", String(compositions));
  const start = performance.now();
  await page.click("#generate");
  await page
    .locator("#state[data-state=busy]")
    .waitFor({ timeout: 5000 })
    .catch(() => undefined);
  await page.locator("#state[data-state=ready]").waitFor({ timeout: 300_000 });
  tell("make", performance.now() - start);
  const kept = await page.evaluate(async () => (await navigator.storage.estimate()).usage);
  tell("storage", kept);
  // The page opens the view that was shown last.
  await page.click("#tab-query");
  await page.reload();
  tell("reopen", await firstCell(page));
  await ready(page);
  return page;
}

/** Measures the time from the keys to the rows on the screen. */
async function filter(page) {
  await write(page, FILTER);
  const once = async () => {
    await page.evaluate(() => {
      const summary = document.querySelector("#summary");
      summary.textContent = "";
      window.answered = new Promise((resolve) => {
        addEventListener(
          "keydown",
          function began(event) {
            if (event.key !== "Enter") return;
            removeEventListener("keydown", began, true);
            const seen = () => {
              if (!/row/.test(summary.textContent)) return requestAnimationFrame(seen);
              requestAnimationFrame(() => resolve(performance.now() - event.timeStamp));
            };
            seen();
          },
          true,
        );
      });
    });
    await page.keyboard.press("ControlOrMeta+Enter");
    return page.evaluate(() => window.answered);
  };
  await once();
  tell("filter", await middle(7, once));
  tell(
    "filter.rows",
    Number((await page.locator("#summary").textContent()).replaceAll(",", "").split(" ")[0]),
  );
}

/** Types while a query runs. Returns the longest time from a key to the next frame. */
async function typing(page) {
  await write(page, SLOW);
  await page.evaluate(() => {
    window.delays = [];
    addEventListener(
      "keydown",
      ({ timeStamp }) =>
        requestAnimationFrame(() => window.delays.push(performance.now() - timeStamp)),
      true,
    );
    document.querySelector("#summary").textContent = "";
  });
  await page.keyboard.press("ControlOrMeta+Enter");
  let keys = 0;
  const start = performance.now();
  while (
    keys < 40 ||
    (performance.now() - start < 8000 && !/row/.test(await page.locator("#summary").textContent()))
  ) {
    await page.keyboard.press(keys % 2 === 0 ? "x" : "Backspace");
    keys += 1;
    if (keys >= 300) break;
  }
  const delays = (await page.evaluate(() => window.delays)).slice(1).sort((a, b) => a - b);
  tell("typing", delays[Math.floor(delays.length * 0.95)]);
  tell("typing.longest", delays.at(-1));
  await page.locator("#summary", { hasText: /row/ }).waitFor({ timeout: 120_000 });
}

/** Scrolls through the rows. Returns the longest time without a frame. */
async function scrolling(page) {
  await write(page, ROWS);
  await page.evaluate(() => (document.querySelector("#summary").textContent = ""));
  await page.keyboard.press("ControlOrMeta+Enter");
  await page.locator("#summary", { hasText: /^[1-9][\d,]* rows/ }).waitFor({ timeout: 60_000 });
  await page.locator("[role=gridcell]").first().hover();
  await page.evaluate(() => {
    window.frames = [];
    const frame = (time) => {
      window.frames.push(time);
      window.scrolling = requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  for (let at = 0; at < 120; at += 1) await page.mouse.wheel(0, at % 3 === 0 ? 20_000 : 900);
  const gaps = await page.evaluate(() => {
    cancelAnimationFrame(window.scrolling);
    return window.frames.slice(1).map((time, at) => time - window.frames[at]);
  });
  tell("scroll.longest", Math.max(...gaps));
  tell("scroll", gaps.sort((a, b) => a - b)[Math.floor(gaps.length * 0.95)]);
}

/** Returns the text of the template of a folder whose size is nearest to 400 kB. */
async function large(folder) {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".opt"));
  const sizes = await Promise.all(
    names.map(async (name) => ({
      name,
      away: Math.abs((await stat(join(folder, name))).size - 400_000),
    })),
  );
  return readFile(join(folder, sizes.sort((a, b) => a.away - b.away)[0].name), "utf8");
}

/** Measures completion key by key, with a large template. */
async function completion(page) {
  const call = await caller(page);
  await call("createSet", "large template");
  const largest = await large(options.templates);
  await call("add", { name: "large.opt", text: largest, ehr: null });
  const id =
    /archetype_id>\s*<value>(openEHR-EHR-(?:OBSERVATION|EVALUATION|INSTRUCTION|ACTION|CLUSTER)[^<]*)</.exec(
      largest,
    )[1];
  const text = `SELECT x/data FROM EHR e CONTAINS COMPOSITION c CONTAINS ${id.split("-")[2].split(".")[0]} x[${id}] WHERE x/`;
  const times = await page.evaluate(
    async ({ text }) => {
      const one = window.tested.at(-1);
      const found = [];
      await one.call("complete", { q: text.slice(0, 8), offset: 8 });
      for (let offset = 1; offset <= text.length; offset += 1) {
        const start = performance.now();
        await one.call("complete", { q: text.slice(0, offset), offset });
        found.push(performance.now() - start);
      }
      return found;
    },
    { text },
  );
  times.sort((a, b) => a - b);
  tell("completion", times[Math.floor(times.length * 0.95)]);
  tell("completion.template", largest.length);
  tell("completion.longest", times.at(-1));
}

try {
  await module();
  await firstAnswers();
  const page = await many();
  await filter(page);
  await typing(page);
  await scrolling(page);
  await page.context().close();
  const other = await fresh();
  await other.goto(server.address);
  await ready(other);
  if (options.templates) await completion(other);
} finally {
  await browser.close();
  await server.stop();
}
