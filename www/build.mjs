// Builds the page: `node www/build.mjs [--wasm DIR] [--arrow DIR] [--out DIR] [--openapi FILE] [--dev] [--sizes]`.
//
// The folder of `--wasm` (or AQLITE_WASM; default target/www-wasm) contains the output of `wasm-bindgen
// --target web` for www/wasm: aqlite_wasm.js and aqlite_wasm_bg.wasm. The folder of `--arrow` (default
// target/arrow-wasm) contains the same for www/arrow. The page is written to `--out` (default dist/www).
// The names of all files except index.html, sw.js and the manifest contain a hash of the content, so
// browsers may cache these files without limit.
import { build } from "esbuild";
import { apiPage } from "./api.mjs";
import { NOTICES, notices, packagesOf } from "./notices.mjs";
import { sampleDefinitions } from "./samples.mjs";
import { inHtml, textsOf } from "./texts.mjs";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { brotliCompressSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const { values: options } = parseArgs({
  options: {
    wasm: { type: "string" },
    arrow: { type: "string" },
    out: { type: "string" },
    openapi: { type: "string" },
    dev: { type: "boolean", default: false },
    sizes: { type: "boolean", default: false },
  },
});
const wasm = resolve(options.wasm ?? process.env.AQLITE_WASM ?? join(root, "target/www-wasm"));
const arrow = resolve(options.arrow ?? join(root, "target/arrow-wasm"));
const out = resolve(options.out ?? join(root, "dist/www"));
const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

const csp = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data:",
  // The page may connect to any host, because the user may name any server as the source.
  "connect-src 'self' https: http://localhost:* http://127.0.0.1:*",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Writes `content` under a name with its hash. Returns the name. */
async function stamped(name, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 10);
  const end = extname(name);
  const full = `${basename(name, end)}.${hash}${end}`;
  await writeFile(join(out, full), content);
  return full;
}

/** The files that are part of the page. */
const inputs = new Set(["node_modules/uplot/dist/uPlot.min.css"]);

/** Bundles one entry point. Returns its text. */
async function bundle(entry, format, constants) {
  const result = await build({
    entryPoints: [join(here, "src", entry)],
    bundle: true,
    write: false,
    format,
    target: ["chrome114", "firefox121", "safari17"],
    minify: !options.dev,
    sourcemap: options.dev ? "inline" : false,
    legalComments: "none",
    metafile: true,
    absWorkingDir: root,
    loader: { ".aql": "text" },
    alias: {
      "aqlite-wasm": join(wasm, "aqlite_wasm.js"),
      "aqlite-arrow-wasm": join(arrow, "aqlite_arrow_wasm.js"),
    },
    define: {
      "import.meta.url": '""',
      ...Object.fromEntries(
        Object.entries(constants).map(([name, value]) => [name, JSON.stringify(value)]),
      ),
    },
    logLevel: "warning",
  });
  for (const input of Object.keys(result.metafile.inputs)) inputs.add(input);
  return result.outputFiles[0].text;
}

/** Bundles the texts of each language but English. Returns the names of the files by code. */
async function languageFiles() {
  const found = await readdir(join(here, "src/texts"), { withFileTypes: true });
  const codes = found.filter((entry) => entry.isDirectory() && entry.name !== "en");
  const names = {};
  for (const { name } of codes.sort((a, b) => a.name.localeCompare(b.name)))
    names[name] = await stamped(
      `texts-${name}.js`,
      await bundle(`texts/${name}/index.ts`, "esm", {}),
    );
  return names;
}

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });

const wasmName = await stamped("aqlite.wasm", await readFile(join(wasm, "aqlite_wasm_bg.wasm")));
const samplesName = await stamped("samples.json", await sampleDefinitions());
const workerName = await stamped(
  "worker.js",
  await bundle("worker.ts", "iife", {
    WASM_URL: wasmName,
    SAMPLES_URL: samplesName,
    VERSION: version,
  }),
);
const languages = await languageFiles();
const chartName = await stamped("chart.js", await bundle("chart.ts", "esm", {}));
const zipName = await stamped("zip.js", await bundle("zip.ts", "esm", {}));
const tablesModuleName = await stamped(
  "tables.wasm",
  await readFile(join(arrow, "aqlite_arrow_wasm_bg.wasm")),
);
const tablesName = await stamped(
  "tables.js",
  await bundle("tables.ts", "esm", { TABLES_MODULE_URL: tablesModuleName }),
);
const pageName = await stamped(
  "page.js",
  await bundle("main.ts", "esm", {
    WORKER_URL: workerName,
    CHART_URL: chartName,
    ZIP_URL: zipName,
    TABLES_URL: tablesName,
    LANGUAGES: languages,
    VERSION: version,
  }),
);
const earlyName = await stamped(
  "early.js",
  await bundle("early.ts", "iife", { WORKER_URL: workerName, LANGUAGES: languages }),
);
const styleName = await stamped(
  "styles.css",
  `${await readFile(join(root, "node_modules/uplot/dist/uPlot.min.css"), "utf8")}\n${await readFile(join(here, "styles.css"), "utf8")}`,
);
const iconName = await stamped("icon.svg", await readFile(join(here, "icon.svg")));

const english = await textsOf("en");

/** Returns an English text of the catalogue as HTML, by its path; `undefined` if there is none. */
function englishText(path) {
  const text = path.split(".").reduce((part, name) => part?.[name], english);
  return typeof text === "string" ? inHtml(text) : undefined;
}

const fill = async (name, values) => {
  let text = await readFile(join(here, name), "utf8");
  for (const [key, value] of Object.entries(values)) text = text.replaceAll(`{{${key}}}`, value);
  text = text.replaceAll(/\{\{([\w.]+)\}\}/g, (whole, path) => englishText(path) ?? whole);
  const left = /\{\{[\w.]+\}\}/.exec(text);
  if (left) throw new Error(`${name}: nothing to put in place of ${left[0]}`);
  await writeFile(join(out, name), text);
};
await fill("index.html", {
  csp,
  page: pageName,
  early: earlyName,
  styles: styleName,
  icon: iconName,
  version,
  notices: NOTICES,
});
await fill("manifest.webmanifest", { icon: iconName });

const api = options.openapi
  ? JSON.parse(await readFile(resolve(options.openapi), "utf8"))
  : undefined;
const apiName = api && (await stamped("api.js", await bundle("api.ts", "esm", {})));
if (api) {
  await writeFile(join(out, "openapi.json"), JSON.stringify(api));
  await writeFile(
    join(out, "api.html"),
    apiPage(api, { csp, styles: styleName, icon: iconName, script: apiName }),
  );
}

await writeFile(join(out, NOTICES), await notices(await packagesOf([...inputs], root), root));

const shell = [
  "./",
  pageName,
  chartName,
  ...Object.values(languages),
  zipName,
  tablesName,
  earlyName,
  workerName,
  wasmName,
  samplesName,
  styleName,
  iconName,
  "manifest.webmanifest",
  NOTICES,
  ...(api ? ["api.html", apiName, "openapi.json"] : []),
];
const stamp = createHash("sha256")
  .update(await readFile(join(out, "index.html")))
  .update(JSON.stringify(api ?? null))
  .digest("hex")
  .slice(0, 10);
await writeFile(
  join(out, "sw.js"),
  await bundle("sw.ts", "iife", {
    WASM_URL: wasmName,
    SAMPLES_URL: samplesName,
    STYLE_URL: styleName,
    SHELL: shell,
    // The module of tables has half a megabyte, and few visitors need it.
    RARE: [tablesModuleName],
    STAMP: stamp,
    VERSION: version,
  }),
);
// Hosts that read this file (such as Cloudflare's asset server) also send the policy as a header,
// and let stamped files be cached without limit.
const stampedNames = [...shell, tablesModuleName].filter((name) => /\.[0-9a-f]{10}\./.test(name));
await writeFile(
  join(out, "_headers"),
  [
    `/*\n  Content-Security-Policy: ${csp}; frame-ancestors 'none'\n  X-Content-Type-Options: nosniff\n  Referrer-Policy: no-referrer\n`,
    ...stampedNames.map(
      (name) => `/${name}\n  Cache-Control: public, max-age=31536000, immutable\n`,
    ),
  ].join("\n"),
);

/** Prints the size of each file, and its size after brotli, which takes ten seconds. */
async function printSizes() {
  let total = 0;
  for (const name of (await readdir(out)).sort()) {
    const bytes = await readFile(join(out, name));
    const packed = brotliCompressSync(bytes).length;
    if (!name.endsWith(".wasm")) total += packed;
    console.log(
      `${String((await stat(join(out, name))).size).padStart(9)} ${String(packed).padStart(8)} br  ${name}`,
    );
  }
  console.log(`first load beside the wasm: ${(total / 1000).toFixed(0)} kB brotli`);
}
if (options.sizes) await printSizes();
