// Shared functions of the page tests: the browser, the built page, and actions of a user.
import assert from "node:assert/strict";
import { mkdir, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before } from "node:test";
import { chromium } from "playwright";
import { expect as retried } from "playwright/test";
import { fileURLToPath } from "node:url";
import { serve } from "./server.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * The maximum time in milliseconds to wait for a state. It is long for busy machines. A passing test
 * continues as soon as the state is reached.
 */
const PATIENCE = Number(process.env.PATIENCE ?? 120_000);

/**
 * Assertions on the page, which are repeated until they hold. An assertion on a value that was
 * read once is a race with the page, so the tests read no element inside of `assert`.
 */
export const expect = retried.configure({ timeout: PATIENCE });

/** The folder of the built page. */
export const built = fileURLToPath(new URL("../../dist/www", import.meta.url));

/** Creates an empty folder for the files of a test. */
export async function scratch(name) {
  const folder = fileURLToPath(new URL(`../../target/web/${name}`, import.meta.url));
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  return folder;
}

/**
 * The features that are turned off. This switch replaces that of Playwright, so its features for all
 * versions of Chromium are repeated.
 *
 * The last three are a menu of the address bar. It is a page of its own, which Chromium loads in a
 * process of its own for each context: half the processor time of a visit.
 */
const TURNED_OFF = [
  "AimEnabled",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsFirstBalancedModeAutoEnable",
  "HttpsUpgrades",
  "LensOverlay",
  "MediaRouter",
  "NetworkTimeServiceQuerying",
  "OptimizationHints",
  "PaintHolding",
  "PreconnectToSearch",
  "ThirdPartyStoragePartitioning",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "WebUIOmniboxPopup",
];

/** Starts the browser. */
export function browse() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      `--disable-features=${TURNED_OFF.join(",")}`,
    ],
  });
}

/** Delays every answer of a worker by up to `most` milliseconds, in order. */
function late(most) {
  const { set } = Object.getOwnPropertyDescriptor(Worker.prototype, "onmessage");
  let last = 0;
  const later = (listen) =>
    function (event) {
      last = Math.max(last + 0.01, performance.now() + Math.random() * most);
      setTimeout(() => listen.call(this, event), last - performance.now());
    };
  Object.defineProperty(Worker.prototype, "onmessage", {
    set(listen) {
      set.call(this, listen && later(listen));
    },
  });
}

/**
 * Opens a page that collects its errors in `page.problems`. Two variables help to find races. With
 * LATE=300, the engine answers up to 300 milliseconds later. With SLOW=6, the page has a sixth of the
 * processor.
 */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const { LATE, SLOW } = process.env;
  if (LATE) await page.addInitScript(late, Number(LATE));
  if (SLOW)
    await (
      await context.newCDPSession(page)
    ).send("Emulation.setCPUThrottlingRate", { rate: Number(SLOW) });
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") page.problems.push(message.text());
  });
  await page.goto(address);
  return page;
}

/**
 * Opens a fresh page, ready for use, and closes it at the end. No error may have occurred on it.
 */
export async function visit(browser, address, use, options) {
  const page = await open(browser, address, options);
  try {
    await ready(page);
    await use(page);
    assert.deepEqual(page.problems, []);
  } finally {
    await page.context().close();
  }
}

/**
 * Starts the built page and a browser before the first test of a file, and stops them after the last.
 * `visit` opens a fresh page.
 */
export function hosted() {
  const site = { visit: (use, options) => visit(site.browser, site.address, use, options) };
  let server;
  before(async () => {
    server = await served();
    site.address = server.address;
    site.browser = await browse();
  });
  after(async () => {
    await site.browser?.close();
    await server?.stop();
  });
  return site;
}

/** Makes the instance of a worker trap when its module returns the next text. */
export function trap(worker) {
  return worker.evaluate(() => {
    const decode = TextDecoder.prototype.decode;
    TextDecoder.prototype.decode = function () {
      TextDecoder.prototype.decode = decode;
      throw new WebAssembly.RuntimeError("unreachable");
    };
  });
}

/** The rules of axe that are checked: all of these tags, or those that depend on colors. */
const RULES = {
  all: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  colors: { type: "rule", values: ["color-contrast", "link-in-text-block"] },
};

/**
 * Checks accessibility: axe finds nothing in the visible page. The policy of the page allows no
 * foreign script, so axe is loaded by the debugger, once for each document.
 */
export async function accessible(page, view, rules = RULES.all) {
  // Waits for busy elements, which are pale, and for transitions: the contrast of both is not final.
  await expect(page.locator("[aria-busy=true]")).toHaveCount(0);
  await page.waitForFunction(() =>
    document
      .getAnimations()
      .every((animation) => animation.effect?.getComputedTiming().iterations === Infinity),
  );
  if (await page.evaluate(() => !globalThis.axe)) await page.evaluate(axe);
  const violations = await page.evaluate(async (runOnly) => {
    const { violations } = await globalThis.axe.run(document, {
      runOnly,
      resultTypes: ["violations"],
    });
    return violations;
  }, rules);
  const found = violations.map(
    ({ id, nodes }) =>
      `${view}: ${id} ${nodes.map((node) => `${node.target.join(" ")} ${node.html}`).join("\n")}`,
  );
  assert.deepEqual(found, []);
}

/**
 * Checks the visible page in both color schemes: nothing is wider than the screen, and axe finds
 * nothing. Only rules about colors are repeated in the second scheme. With SHOTS=FOLDER, a picture
 * of each scheme is saved there. `page` must have the light scheme.
 */
export async function inspect(page, view) {
  await expect
    .poll(() => page.evaluate(() => document.documentElement.scrollWidth - innerWidth), view)
    .toBeLessThanOrEqual(0);
  for (const [colorScheme, rules] of [
    ["light", RULES.all],
    ["dark", RULES.colors],
  ]) {
    await page.emulateMedia({ colorScheme });
    await accessible(page, `${view}, ${colorScheme}`, rules);
    const name = `${view}-${page.viewportSize().width}-${colorScheme}.png`;
    if (process.env.SHOTS)
      await page.screenshot({ path: join(process.env.SHOTS, name), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Returns the server of BASE_URL. Without it, the built page is served by a plain file server. */
export async function served() {
  return process.env.BASE_URL
    ? { address: process.env.BASE_URL, stop: async () => {} }
    : await serve(built);
}

/**
 * Waits until a started change is finished and drawn. The page is busy from the click that changes
 * its data.
 */
export async function settled(page) {
  await page.locator("#state[data-state=ready]").waitFor();
  await page.locator("#result:not([aria-busy])").waitFor({ state: "attached" });
}

/** Waits until sample patients are loaded and the first query is answered. A hidden result has no cells. */
export async function ready(page) {
  await settled(page);
  await page
    .locator("[role=gridcell]:visible, #view-query[hidden]")
    .first()
    .waitFor({ state: "attached" });
}

/** Waits until the page can work without its server. */
export async function offlineReady(page) {
  await page.locator("#offline", { hasText: "Ready for offline use" }).waitFor();
  await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
}

/** Replaces the query by user input. */
export async function write(page, q) {
  await page.locator("#editor .cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  // Pasted as a whole, because the editor adds a closing bracket to each typed opening one.
  await page.keyboard.insertText(q);
}

/**
 * Writes a query, runs it by keyboard and waits for its answer. The result is busy from the key
 * until the answer to the last key is drawn.
 */
export async function run(page, q) {
  await write(page, q);
  await page.keyboard.press("ControlOrMeta+Enter");
  await answered(page);
  // The summary of an answer has a number in every language. While the query runs, it has none.
  await expect(page.locator("#summary"), q).toHaveText(/\d/);
}

/** Waits for the answer to the query. */
export async function answered(page) {
  await page.locator("#result:not([aria-busy])").waitFor({ state: "attached" });
}

/** Returns the texts of a row of the grid, counted from 0. */
export async function row(page, number) {
  return page.locator(`[role=gridcell][data-row="${number}"]`).allTextContents();
}

/** Returns the address of the page's worker. */
export function workerOf(page) {
  return page
    .workers()
    .find((worker) => /worker\.\w+\.js$/.test(worker.url()))
    .url();
}

/**
 * Starts a second worker with the protocol of the page: `call(name, argument)`. `call.cancelled`
 * ends the call at its first progress, `call.text` reads a Blob, `call.after` waits for a number of
 * answers, `call.together` sends several calls at once, `call.kill` ends the worker.
 */
export async function caller(page, url = workerOf(page)) {
  const number = await page.evaluate((url) => {
    const all = (window.tested ??= []);
    const worker = new Worker(url);
    const waiting = new Map();
    const one = { worker, answered: 0, last: 0 };
    worker.onmessage = ({ data }) => {
      const call = waiting.get(data.id);
      // Ignores messages that are not answers: the start of the worker, and changes by other realms.
      if (data.id === 0) return;
      if (data.progress) {
        if (call?.cancel) worker.postMessage({ cancel: data.id });
        return;
      }
      one.answered += 1;
      waiting.delete(data.id);
      if (data.error) call?.reject(new Error(data.error.message));
      else call?.resolve(data.value);
    };
    one.call = (call, argument, cancel) =>
      new Promise((resolve, reject) => {
        const id = (one.last += 1);
        waiting.set(id, { resolve, reject, cancel });
        worker.postMessage({ id, call, argument });
      });
    one.together = async (calls) => {
      const [order, answers, ids, ended] = [[], {}, {}, {}];
      for (const [name, [call, argument]] of Object.entries(calls)) {
        // A cancellation has no answer.
        if (call === "cancel") {
          const { calls, after } = argument;
          const cancel = () => calls.forEach((name) => worker.postMessage({ cancel: ids[name] }));
          void ended[after].then(cancel);
          continue;
        }
        ids[name] = one.last + 1;
        ended[name] = one
          .call(call, argument)
          .catch(({ message }) => message)
          .then((answer) => {
            answers[name] = answer;
            order.push(name);
          });
      }
      await Promise.all(Object.values(ended));
      return { order, answers };
    };
    return all.push(one) - 1;
  }, url);
  const ask = (call, argument, cancel) =>
    page.evaluate(
      ({ number, call, argument, cancel }) => window.tested[number].call(call, argument, cancel),
      { number, call, argument, cancel },
    );
  const call = (name, argument) => ask(name, argument, false);
  call.cancelled = (name, argument) => ask(name, argument, true);
  call.text = (name, argument) =>
    page.evaluate(
      async ({ number, name, argument }) =>
        (await window.tested[number].call(name, argument)).text(),
      { number, name, argument },
    );
  call.after = (answers) =>
    page.waitForFunction(({ number, answers }) => window.tested[number].answered >= answers, {
      number,
      answers,
    });
  call.together = (calls) =>
    page.evaluate(({ number, calls }) => window.tested[number].together(calls), { number, calls });
  call.kill = () => page.evaluate((number) => window.tested[number].worker.terminate(), number);
  return call;
}
