// Builds the npm package: `node www/package/build.mjs --wasm DIR --arrow DIR --out DIR`.
//
// The folders of `--wasm` and `--arrow` have the bindings (`--target web`) of www/wasm and www/arrow. The
// package is written to `--out`: an entry module for each host, which share one chunk, declarations
// generated from the sources, the wasm modules, README and licenses.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { NOTICES, notices, packagesOf } from "../notices.mjs";
import { sampleDefinitions } from "../samples.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, "../..");
const { values: options } = parseArgs({
  options: { wasm: { type: "string" }, arrow: { type: "string" }, out: { type: "string" } },
});
const wasm = resolve(options.wasm ?? join(root, "target/package-wasm"));
const arrow = resolve(options.arrow ?? join(root, "target/arrow-wasm"));
const out = resolve(options.out ?? join(root, "dist/package"));
/** The sources whose declarations are public. */
const DECLARED = [
  "api",
  "codes",
  "dispose",
  "editor",
  "errors",
  "host",
  "language",
  "repository",
  "result",
  "slim",
  "start",
  "types",
];
const { version, license } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

/** Removes the default module address from the bindings: bundlers would search the file of this name. */
const withoutDefault = {
  name: "without-default",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^aqlite-wasm$/ }, () => ({ path: join(wasm, "aqlite_wasm.js") }));
    onResolve({ filter: /^aqlite-arrow-wasm$/ }, () => ({
      path: join(arrow, "aqlite_arrow_wasm.js"),
    }));
    onResolve({ filter: /\.wasm$/ }, ({ path }) => ({ path, external: true }));
    onLoad({ filter: /aqlite_(?:arrow_)?wasm\.js$/ }, async ({ path }) => {
      const glue = await readFile(path, "utf8");
      const found = /new URL\('[^']+', import\.meta\.url\)/;
      if (!found.test(glue))
        throw new Error(`${path}: the glue finds its module in another way now`);
      return { contents: glue.replace(found, "undefined"), loader: "js" };
    });
  },
};

/** The definitions of the sample patients: a chunk of its own, loaded on demand. */
const withSamples = {
  name: "with-samples",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^aqlite-samples$/ }, ({ path }) => ({ path, namespace: "samples" }));
    onLoad({ filter: /.*/, namespace: "samples" }, async () => ({
      contents: await sampleDefinitions(),
      loader: "json",
    }));
  },
};

/** The colors of the page, for the editor. */
const withColors = {
  name: "with-colors",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^aqlite-colors$/ }, ({ path }) => ({ path, namespace: "colors" }));
    onLoad({ filter: /.*/, namespace: "colors" }, async () => {
      const style = await readFile(join(root, "www/styles.css"), "utf8");
      const [light, dark] = [/^:root \{([^}]*)\}/m, /^:root\[data-theme="dark"\] \{([^}]*)\}/m].map(
        (block) => block.exec(style)?.[1].replace(/\s+/g, " "),
      );
      if (!light || !dark) throw new Error("www/styles.css has its colors in another place now");
      const contents = `export const light = ${JSON.stringify(light)}, dark = ${JSON.stringify(dark)};`;
      return { contents, loader: "js" };
    });
  },
};

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const { metafile } = await build({
  entryPoints: ["browser", "editor", "node", "workerd", "slim"].map((name) =>
    join(here, `${name}.ts`),
  ),
  outdir: out,
  bundle: true,
  splitting: true,
  chunkNames: "shared-[hash]",
  format: "esm",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  absWorkingDir: root,
  external: ["node:*"],
  plugins: [withoutDefault, withSamples, withColors],
  logLevel: "warning",
});
await cp(join(wasm, "aqlite_wasm_bg.wasm"), join(out, "aqlite.wasm"));
await cp(join(arrow, "aqlite_arrow_wasm_bg.wasm"), join(out, "aqlite-arrow.wasm"));
const typed = spawnSync(
  "node",
  [
    join(root, "node_modules/typescript/bin/tsc"),
    "--project",
    join(here, "tsconfig.json"),
    "--outDir",
    join(out, "types"),
  ],
  { encoding: "utf8" },
);
if (typed.status !== 0) throw new Error(`types: ${typed.stdout}`);
await publicTypes();
for (const name of ["LICENSE-MIT", "LICENSE-APACHE"]) await cp(join(root, name), join(out, name));
await writeFile(
  join(out, NOTICES),
  await notices(await packagesOf(Object.keys(metafile.inputs), root), root),
);
await cp(join(here, "README.md"), join(out, "README.md"));

/**
 * Writes the declarations of the exports as files beside each other, without those of the page and
 * of the bindings.
 */
async function publicTypes() {
  const from = join(out, "types/package");
  for (const name of DECLARED) {
    const text = await readFile(join(from, `${name}.d.ts`), "utf8");
    const own = text
      .replace(/^import .* from "(?:aqlite-wasm|\.\.\/src\/[\w-]+)";\n/gm, "")
      .replace(/from "\.\/(\w+)"/g, 'from "./$1.js"');
    const lib = { dispose: "esnext.disposable", editor: "dom" }[name];
    await writeFile(
      join(out, `${name === "api" ? "index" : name}.d.ts`),
      lib ? `/// <reference lib="${lib}" />\n${own}` : own,
    );
  }
  await rm(join(out, "types"), { recursive: true });
  await writeFile(
    join(out, "slim.d.ts"),
    (await readFile(join(out, "slim.d.ts"), "utf8")).replace('"./api.js"', '"./index.js"'),
  );
}

const files = {
  types: "./index.d.ts",
  workerd: "./workerd.js",
  node: "./node.js",
  default: "./browser.js",
};
await writeFile(
  join(out, "package.json"),
  `${JSON.stringify(
    {
      name: "aqlite",
      version,
      description:
        "openEHR in JavaScript: AQL queries, guides (GDL), templates and compositions, in memory or kept in the browser, as WebAssembly",
      keywords: ["openehr", "aql", "gdl", "ehr", "webassembly", "fhir", "cds-hooks"],
      license,
      repository: {
        type: "git",
        url: "git+https://github.com/aqlite/aqlite.git",
        directory: "www/package",
      },
      homepage: "https://github.com/aqlite/aqlite/tree/main/www/package#readme",
      bugs: "https://github.com/aqlite/aqlite/issues",
      // The release workflow publishes, and the registry states where the package was built.
      publishConfig: { access: "public", provenance: true },
      type: "module",
      engines: { node: ">=20" },
      sideEffects: ["./browser.js", "./editor.js", "./node.js", "./workerd.js"],
      types: "./index.d.ts",
      exports: {
        ".": files,
        "./editor": { types: "./editor.d.ts", default: "./editor.js" },
        "./slim": { types: "./slim.d.ts", default: "./slim.js" },
        "./aqlite.wasm": "./aqlite.wasm",
        "./aqlite-arrow.wasm": "./aqlite-arrow.wasm",
        "./package.json": "./package.json",
      },
    },
    null,
    2,
  )}\n`,
);
