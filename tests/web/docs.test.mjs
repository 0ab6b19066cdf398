// The documentation site (dist/docs) in Chromium, opened from files and from a subfolder of a server:
// search, navigation, light and dark colors.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { browse, expect } from "./page.mjs";
import { serve } from "./server.mjs";

const folder = fileURLToPath(new URL("../../dist", import.meta.url));
const names = readdirSync(`${folder}/docs`).filter((name) => name.endsWith(".html"));

let browser;
let server;

before(async () => {
  server = await serve(folder);
  browser = await browse();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/**
 * Opens the site in a new page of the browser, and returns the result of `use`. Fails after an error of a
 * script, or a request to another host.
 */
async function open(address, options, use) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => {
    const isOwn = ["file:", "data:"].includes(new URL(request.url()).protocol);
    if (!isOwn && !request.url().startsWith(server.address)) problems.push(request.url());
  });
  page.on("requestfailed", (request) => {
    // A page that is left aborts what it still loads: its icon, the search index.
    const reason = request.failure()?.errorText;
    if (reason !== "net::ERR_ABORTED") problems.push(`${reason}: ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) problems.push(`${response.status()}: ${response.url()}`);
  });
  await page.goto(address);
  const result = await use(page);
  await page.waitForLoadState("networkidle");
  await context.close();
  assert.deepEqual(problems, []);
  return result;
}

const sites = {
  "from files": () => pathToFileURL(`${folder}/docs`).href,
  "in a subfolder of a server": () => new URL("docs", server.address).href,
};

for (const [title, site] of Object.entries(sites)) {
  test(`search finds a page ${title}`, () =>
    open(`${site()}/index.html`, {}, async (page) => {
      await page.keyboard.press("s");
      await page.locator("#mdbook-searchbar").pressSequentially("snapshot token");
      const found = page.locator("#mdbook-searchresults a").first();
      await found.waitFor();
      await found.click();
      await page.waitForURL(/\.html/);
      await expect(page.locator("main")).toContainText(/snapshot token/i);
    }));

  test(`the navigation leads to every page ${title}`, () =>
    open(`${site()}/tutorial.html`, {}, async (page) => {
      const links = page.locator(".sidebar a[href$='.html']");
      await links.first().waitFor({ state: "attached" });
      const reached = await links.evaluateAll((all) =>
        all.map((a) => new URL(a.href).pathname.split("/").pop()),
      );
      const extra = new Set(["404.html", "toc.html"]);
      assert.deepEqual(
        [...new Set(reached)].sort(),
        names.filter((name) => !extra.has(name)).sort(),
      );
    }));
}

test("the colors follow the system until the reader chooses others", async () => {
  const address = `${sites["from files"]()}/tutorial.html`;
  const background = (page) =>
    page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await open(address, { colorScheme: "light" }, background);
  const dark = await open(address, { colorScheme: "dark" }, background);
  const brightness = (color) =>
    color
      .match(/\d+/g)
      .slice(0, 3)
      .map(Number)
      .reduce((a, b) => a + b);
  assert.ok(brightness(light) > 600, light);
  assert.ok(brightness(dark) < 200, dark);
});
