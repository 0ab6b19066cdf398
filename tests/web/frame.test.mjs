// The parts of the page around its views: links, keys, colors, files, a server with a token, the content
// security policy, and the state of the engine.
import assert from "node:assert/strict";
import { test } from "node:test";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import {
  accessible,
  answered,
  expect,
  hosted,
  offlineReady,
  open,
  ready,
  row,
  run,
  scratch,
  settled,
  write,
} from "./page.mjs";

const COUNT = "SELECT COUNT(e/ehr_id/value) AS n FROM EHR e";
const SYSTOLIC =
  "SELECT c/context/start_time/value AS time, o/data[at0001]/events[at0006]/data[at0003]/items[at0004]/value AS systolic FROM EHR e CONTAINS COMPOSITION c CONTAINS OBSERVATION o[openEHR-EHR-OBSERVATION.blood_pressure.v2]";

const site = hosted();

const onPage = (use, options) => site.visit(use, options);
const written = async (page) => (await page.locator(".cm-content").innerText()).trimEnd();

test("a link contains the query and the form of its result only", () =>
  onPage(
    async (page) => {
      await run(page, SYSTOLIC);
      await page.click("#as-chart");
      await page.evaluate(() => {
        const button = document.querySelector("#share");
        new MutationObserver(() => (button.dataset.said = button.textContent)).observe(button, {
          childList: true,
        });
      });
      await page.click("#share");
      await page.locator("#share[data-said=Copied]").waitFor();
      const link = await page.evaluate(() => navigator.clipboard.readText());
      assert.deepEqual(Object.fromEntries(new URLSearchParams(new URL(link).hash.slice(1))), {
        q: SYSTOLIC,
        as: "chart",
      });
      const other = await page.context().newPage();
      await other.goto(link);
      await settled(other);
      await other.locator("#chart-words", { hasText: "systolic" }).first().waitFor();
      await expect.poll(() => written(other)).toBe(SYSTOLIC);
      await write(other, COUNT);
      await other.reload();
      await settled(other);
      await expect
        .poll(() => written(other), "what was written after the link is there after a reload")
        .toBe(COUNT);
    },
    { permissions: ["clipboard-read", "clipboard-write"] },
  ));

test("the editor closes and matches brackets, formats, and comments", () =>
  onPage(async (page) => {
    await write(page, "select e/ehr_id/value as id from EHR e where e/ehr_id/value != 'x'");
    await page.keyboard.press("Shift+Alt+F");
    await page.locator(".cm-line", { hasText: /^WHERE/ }).waitFor();
    const formatted = await written(page);
    assert.ok(formatted.split("\n").length > 2, formatted);
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.press("ControlOrMeta+/");
    await expect.poll(() => written(page)).toMatch(/^(-- .*(\n|$))+$/);
    await page.keyboard.press("ControlOrMeta+/");
    await expect.poll(() => written(page)).toBe(formatted);
    await page.keyboard.press("Delete");
    await page.keyboard.type("(e");
    await expect.poll(() => written(page)).toBe("(e)");
    await page.keyboard.press("Home");
    await expect(page.locator(".cm-matchingBracket")).toHaveCount(2);
  }));

test("every control works by keyboard, and the key ? lists all keys", () =>
  onPage(async (page) => {
    await page.keyboard.press("Tab");
    await expect(page.locator("#skip-content")).toBeFocused();
    await page.keyboard.press("Enter");
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.press("Delete");
    await page.keyboard.insertText(COUNT);
    await page.keyboard.press("ControlOrMeta+Enter");
    await answered(page);
    await expect(page.locator("#summary")).toHaveText(/^1 row/);
    await page.locator("#tab-query").focus();
    for (const view of ["templates", "guide", "patients", "data"]) {
      await page.keyboard.press("ArrowRight");
      await expect(page.locator(`#view-${view}`), view).toBeVisible();
      await expect(page.locator(`#tab-${view}`)).toHaveAttribute("aria-selected", "true");
    }
    await page.keyboard.press("?");
    const keys = page.locator("#keys[open]");
    await expect(keys).toHaveText(
      /run the query.*format the query.*complete.*comment.*copy the cell/s,
    );
    await page.keyboard.press("Escape");
    await expect(keys).toHaveCount(0);
    const stuck = await page.evaluate(() =>
      [
        ...document.querySelectorAll(
          "button, a[href], input, select, summary, [role=button], label.button",
        ),
      ]
        .filter(
          (element) =>
            element.tabIndex < 0 && !element.matches("[role=radio], [role=tab], label, :disabled"),
        )
        .map((element) => element.outerHTML),
    );
    assert.deepEqual(stuck, []);
  }));

test("colors follow the system or the choice, also after a reload", () =>
  onPage(async (page) => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.emulateMedia({ colorScheme: "dark" });
    const dark = await ground();
    assert.notEqual(dark, light);
    await page.click("#theme");
    await expect(page.locator("#theme")).toHaveAttribute("aria-label", "Colours: light");
    assert.equal(await ground(), light);
    await page.reload();
    await settled(page);
    assert.equal(await ground(), light);
    await page.click("#theme");
    await page.emulateMedia({ colorScheme: "light" });
    assert.equal(await ground(), dark);
  }));

/** Returns a composition of the data without its uid. */
async function composition(page) {
  await run(page, "SELECT c FROM EHR e CONTAINS COMPOSITION c LIMIT 1");
  await page.click("#as-json");
  const found = JSON.parse(await page.locator("#result .raw").textContent()).rows[0][0];
  return JSON.stringify({ ...found, uid: undefined });
}

test("each dropped file is reported, and cancelling skips the rest", () =>
  onPage(async (page) => {
    const text = await composition(page);
    await page.click("#tab-data");
    await page.selectOption("#target", { label: "A new patient" });
    // The fourth file blocks until it is released.
    await page.evaluate(() => {
      const { arrayBuffer } = Blob.prototype;
      let read = 0;
      const gate = new Promise((resolve) => (window.release = resolve));
      Blob.prototype.arrayBuffer = function () {
        read += 1;
        return read === 4 ? gate.then(() => arrayBuffer.call(this)) : arrayBuffer.call(this);
      };
    });
    const transfer = await page.evaluateHandle((text) => {
      const all = new DataTransfer();
      for (let at = 0; at < 10; at += 1) all.items.add(new File([text], `${at}.json`));
      return all;
    }, text);
    await page.dispatchEvent("section.drop", "drop", { dataTransfer: transfer });
    await page.locator(".work-words", { hasText: /Adding files: \d of 10/ }).waitFor();
    await accessible(page, "adding");
    await page.locator("section.drop .work-bar button", { hasText: "Cancel" }).click();
    await page.evaluate(() => window.release());
    await page.locator("#added", { hasText: "4 of 10 files added, then cancelled" }).waitFor();
    await settled(page);
    await page.click("#undo");
    await settled(page);
    await expect(page.locator(".facts dt:text-is('Own writes') + dd")).toHaveText("0");
  }));

test("a dropped folder is read recursively", async () => {
  const folder = await scratch("folder");
  await onPage(async (page) => {
    await mkdir(join(folder, "ward", "visits"), { recursive: true });
    await writeFile(join(folder, "ward", "visits", "visit.json"), await composition(page));
    await writeFile(join(folder, "ward", "plan.gdl"), "(GUIDE) <\n id = <5");
    await page.click("#tab-data");
    await page.selectOption("#target", "by folder");
    await page.locator("#folder").setInputFiles(folder);
    await page.locator("#added", { hasText: "1 of 2 files added" }).waitFor();
    await expect(page.locator("#added")).toHaveText(/ward\/visits\/visit\.json: added/);
    await expect(page.locator("#added .bad")).toHaveText(/ward\/plan\.gdl: .*line 2/);
    await settled(page);
  });
});

/** Starts a server with one patient that requires the token. `asked` collects its requests. */
async function guarded(token) {
  const asked = [];
  const answer = (request) => {
    if (request.headers.authorization !== `Bearer ${token}`)
      return [401, { error: "Unauthorized", message: "who asks?", code: 401 }];
    if (request.url.endsWith("/query/aql"))
      return [200, { q: "", columns: [{ name: "n", path: null }], rows: [[1]] }];
    return [200, []];
  };
  const http = createServer((request, response) => {
    const open = {
      "access-control-allow-origin": "*",
      "access-control-allow-headers": "*",
      "access-control-allow-methods": "*",
    };
    if (request.method === "OPTIONS") return void response.writeHead(204, open).end();
    asked.push(request.url);
    const [status, body] = answer(request);
    request
      .resume()
      .on("end", () =>
        response
          .writeHead(status, { ...open, "content-type": "application/json" })
          .end(JSON.stringify(body)),
      );
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    http.closeAllConnections();
    http.close();
  };
  return { base: `http://127.0.0.1:${http.address().port}/v1`, asked, stop };
}

test("a token is sent to its server and stored nowhere; its absence is explained", async () => {
  const there = await guarded("sesame");
  const page = await open(site.browser, site.address);
  await ready(page);
  const connect = async (token) => {
    await page.locator("#source").selectOption("other");
    await page.fill("#server-base", there.base);
    await page.fill("#server-token", token);
    await page.locator("#server-form .primary").click();
    await settled(page);
  };
  await connect("");
  await expect(page.locator("#notice")).toHaveText(
    /was not reached\. The data of this browser still answers\. who asks\?; the server wants to know who asks: give it a token/,
  );
  await expect(page.locator("#source")).toHaveValue("here");
  await connect("sesame");
  await expect(page.locator("#source")).toHaveValue("named");
  await expect(page.locator("#state-text")).toHaveText(/^1 patient ·/);
  await run(page, COUNT);
  assert.deepEqual(await row(page, 0), ["1"]);
  const kept = await page.evaluate(
    () =>
      JSON.stringify({ ...localStorage }) +
      JSON.stringify({ ...sessionStorage }) +
      location.href +
      document.cookie,
  );
  assert.equal(kept.includes("sesame"), false);
  // A new worker that replaces a failed one uses the same server.
  const heard = there.asked.length;
  await stopped(page);
  await settled(page);
  assert.ok(there.asked.length > heard);
  await expect(page.locator("#state-text")).toHaveText(/^1 patient ·/);
  // A server that does not answer stays selected. The data of this browser never answer in its place.
  await there.stop();
  await stopped(page);
  await page.locator("#state[data-state=bad]").waitFor();
  await expect(page.locator("#state-text")).toHaveText(/no answer from/);
  await expect(page.locator("#source")).toHaveValue("named");
  await page.click("#run");
  await expect(page.locator("#result h3")).toHaveText("The query did not run");
  await expect(page.locator("[role=gridcell]")).toHaveCount(0);
  await page.click("#tab-data");
  await expect(page.locator(".facts dd")).toHaveText(["not known", "not known"]);
  await page.locator("#source").selectOption("here");
  await settled(page);
  await expect(page.locator("#state-text")).toHaveText(/^3\d patients/);
  await page.context().close();
});

/** Runs the query while the engine sends no answer, as if it hung, and stops the query. */
async function stopped(page) {
  await page.workers()[0].evaluate(() => void (self.postMessage = () => undefined));
  await page.click("#run");
  await page.click("#stop");
  await page.locator("#stop").waitFor({ state: "hidden" });
}

test("a long query is stopped, and the data are available again", () =>
  onPage(async (page) => {
    const before = await page.locator("#state-text").textContent();
    await stopped(page);
    await page.locator("#result h3", { hasText: "Stopped" }).waitFor();
    await settled(page);
    await expect(page.locator("#state-text")).toHaveText(before);
    await run(page, COUNT);
  }));

/** A query that takes many seconds, because each patient has many combinations of elements. */
const SLOW =
  "SELECT COUNT(*) AS n FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b AND ELEMENT c) WHERE a/name/value = b/name/value AND b/value/magnitude < c/value/magnitude";

for (const width of [390, 1440])
  test(`completion and marks answer while a query runs, which is stopped then: ${width}`, () =>
    onPage(
      async (page) => {
        const before = await page.locator("#state-text").textContent();
        const [worker] = page.workers();
        await write(page, SLOW);
        await page.click("#run");
        await page.locator("#stop").waitFor();
        const content = page.locator("#editor .cm-content");
        await content.click();
        await page.keyboard.press("ControlOrMeta+End");
        await page.keyboard.type(" AND c/nam");
        await expect(page.locator("#editor .cm-tooltip-autocomplete")).toContainText("name");
        await page.keyboard.press("Escape");
        await page.keyboard.type("mm = 1");
        await expect(page.locator("#problems")).toHaveText(/nammm/);
        await expect(page.locator("#editor .cm-lintRange").first()).toBeAttached();
        await expect(page.locator("#stop")).toBeVisible();
        await expect(page.locator("#result[aria-busy]")).toHaveCount(1);
        await page.click("#stop");
        await page.locator("#result h3", { hasText: "Stopped" }).waitFor();
        await settled(page);
        // The worker was not replaced.
        assert.equal(page.workers()[0], worker);
        await expect(page.locator("#state-text")).toHaveText(before);
        await run(page, COUNT);
      },
      { viewport: { width, height: 900 } },
    ));

test("marks of an earlier text are removed while a query runs", () =>
  onPage(async (page) => {
    await write(page, "SELECT o/dta FROM EHR e CONTAINS OBSERVATION o");
    await expect(page.locator("#problems")).toHaveText(/dta/);
    const marks = page.locator("#editor .cm-lintRange");
    await expect(marks.first()).toBeAttached();
    // The engine sends no answer, so it cannot check the corrected text.
    await page.workers()[0].evaluate(() => void (self.postMessage = () => undefined));
    await page.locator("#editor .cm-content").click();
    await page.keyboard.press("End");
    await page.keyboard.insertText(" LIMIT 3");
    await page.click("#run");
    await expect(page.locator("#problems")).toHaveText("");
    await expect(page.locator("#editor .cm-lintRange")).toHaveCount(0);
    await page.click("#stop");
    await settled(page);
  }));

test("the page stays usable while the engine works, and can stop it", () =>
  onPage(async (page) => {
    await page.click("#tab-data");
    await page.fill("#ehrs", "100000");
    await page.fill("#compositions", "1000000");
    await page.click("#generate");
    await page.locator(".work-words", { hasText: "Making patients" }).first().waitFor();
    await page.click("#tab-query");
    await write(page, COUNT);
    await expect.poll(() => written(page)).toBe(COUNT);
    await page.click("#tab-data");
    await expect(page.locator("#state")).toHaveAttribute("data-state", "busy");
    await page.locator("form .work-bar button").first().click();
    await page.locator("#added", { hasText: "Cancelled" }).waitFor();
    await settled(page);
  }));

test("only files of the page run or are drawn, and nothing is sent to other hosts", async () => {
  const page = await open(site.browser, "about:blank");
  const sent = [];
  page.context().on("request", (request) => sent.push(new URL(request.url())));
  await page.goto(site.address);
  await ready(page);
  const policy = await page
    .locator("meta[http-equiv=Content-Security-Policy]")
    .getAttribute("content");
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval'/);
  await expect(page.locator("script:not([src]), style, [onclick]")).toHaveCount(0);
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.broken = true";
    document.body.append(script);
  });
  assert.equal(await page.evaluate(() => window.broken), undefined);
  for (const view of ["templates", "guide", "patients", "data", "query"])
    await page.click(`#tab-${view}`);
  await run(page, COUNT);
  await offlineReady(page);
  const home = new URL(site.address).origin;
  assert.deepEqual(
    [...new Set(sent.map(({ origin }) => origin))].filter(
      (origin) => origin !== home && origin !== "null",
    ),
    [],
  );
  await page.context().close();
});

test("text that is typed over a selection violates no policy, and brackets enclose it", () =>
  onPage(async (page) => {
    const keys = (...pressed) =>
      pressed.reduce((last, key) => last.then(() => page.keyboard.press(key)), Promise.resolve());
    const content = page.locator("#editor .cm-content");
    await content.click();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("SELECT e FROM EHR e ");
    await expect(content).toHaveText("SELECT e FROM EHR e ");
    await keys("Home", ...Array(6).fill("Shift+ArrowRight"));
    await page.keyboard.type("x");
    await expect(content).toHaveText("x e FROM EHR e ");
    await keys("Home", "Shift+ArrowRight");
    await page.keyboard.type("(");
    await expect(content).toHaveText("(x) e FROM EHR e ");
    await page.keyboard.press("ControlOrMeta+z");
    await expect(content).toHaveText("x e FROM EHR e ");
    await page.click("#tab-guide");
    await page.click("#guide-edit-tab");
    const guide = page.locator("#guide-editor .cm-content");
    await guide.click();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.type("none");
    await expect(guide).toHaveText("none");
  }));

for (const width of [390, 1440])
  test(`the chosen view is shown again after a reload, but not in place of a link: ${width}`, () =>
    onPage(
      async (page) => {
        const link = `${site.address}#${new URLSearchParams({ q: COUNT })}`;
        await page.click("#tab-data");
        await page.reload();
        await ready(page);
        await expect(page.locator("#view-data")).toBeVisible();
        await expect(page.locator("#tab-data")).toHaveAttribute("aria-selected", "true");
        await page.click("#tab-query");
        await page.locator("[role=gridcell]").first().waitFor();
        await page.click("#tab-guide");
        await page.goto("about:blank");
        await page.goto(link);
        await ready(page);
        await expect(page.locator("#view-query")).toBeVisible();
        await page.click("#tab-patients");
        await page.reload();
        await ready(page);
        await expect(page.locator("#view-patients")).toBeVisible();
        await expect(page.locator(".person").first()).toBeVisible();
      },
      { viewport: { width, height: 844 } },
    ));

for (const [locale, words] of [
  ["en-US", "32 patients"],
  ["de-DE", "32 Patienten"],
  ["sv-SE", "32 patienter"],
])
  test(`on a phone, the state of the source and the first keys are visible: ${locale}`, () =>
    onPage(
      async (page) => {
        const state = page.locator("#state-text");
        await expect(state).toContainText(words);
        const cut = () => state.evaluate((text) => text.scrollWidth - text.clientWidth);
        await expect.poll(cut).toBeLessThanOrEqual(0);
        const small = () =>
          [...document.querySelectorAll("body *")].filter(
            (element) =>
              element.checkVisibility() &&
              [...element.childNodes].some((node) => node.nodeValue?.trim()) &&
              Number.parseFloat(getComputedStyle(element).fontSize) < 12,
          ).length;
        for (const view of ["query", "templates", "guide", "patients", "data"]) {
          await page.click(`#tab-${view}`);
          await expect.poll(() => page.evaluate(small), view).toBe(0);
        }
        await page.click("#help");
        const scrolled = () => page.locator("#keys").evaluate((dialog) => dialog.scrollTop);
        await expect.poll(scrolled).toBe(0);
      },
      { viewport: { width: 390, height: 844 }, locale },
    ));

test("the page can be installed, and warns against entering real patients", () =>
  onPage(async (page) => {
    await offlineReady(page);
    const session = await page.context().newCDPSession(page);
    const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
    // The only permitted obstacle to an installation is the incognito mode of the test browser.
    assert.deepEqual(
      installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== "in-incognito"),
      [],
    );
    await expect(page.locator(".foot")).toHaveText(
      /nothing is sent anywhere.*think before you load real ones/,
    );
  }));
