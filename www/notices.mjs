// The file of third-party notices: every npm package and every Rust crate that is part of a build,
// with its licence.
//
// The packages are those that esbuild read, and their dependencies. The crates are those that Cargo
// resolves for the module, without build scripts and procedural macros, whose code is not part of
// it. A part without a licence text stops the build, unless its licence is Apache-2.0.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The name of the file in a build. */
export const NOTICES = "THIRD_PARTY_NOTICES.txt";
/** The crates of the modules. */
const CRATES = ["aqlite-wasm", "aqlite-arrow-wasm"];
const LICENCE_FILE = /^(licen[cs]e|copying|copyright|notice|unlicense)/i;

/**
 * A part of a build that others wrote.
 * @typedef {{ kind: string, name: string, version: string, license: string, source: string, folder: string }} Part
 */

/**
 * Returns the packages among the inputs of esbuild (paths relative to `root`), and their
 * dependencies.
 */
export async function packagesOf(inputs, root) {
  const found = new Map();
  const waiting = inputs
    .map((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1])
    .filter((folder) => folder !== undefined);
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    if (found.has(folder)) continue;
    const { name, version, license, repository, dependencies } = JSON.parse(
      await readFile(join(root, folder, "package.json"), "utf8"),
    );
    found.set(folder, {
      kind: "npm package",
      name,
      version,
      license,
      source: repository?.url ?? repository ?? `https://www.npmjs.com/package/${name}`,
      folder: join(root, folder),
    });
    for (const needed of Object.keys(dependencies ?? {})) {
      const nested = `${folder}/node_modules/${needed}`;
      waiting.push(existsSync(join(root, nested)) ? nested : `node_modules/${needed}`);
    }
  }
  return [...found.values()];
}

function cargo(root, args) {
  const { status, stdout, stderr } = spawnSync(process.env.CARGO ?? "cargo", args, {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`cargo ${args[0]}: ${stderr}`);
  return stdout;
}

/**
 * Returns name and version of the crates below the modules, with their features alone:
 * `serde v1.0.0`.
 */
function linked(root) {
  const tree = cargo(root, [
    "tree",
    ...CRATES.flatMap((name) => ["--package", name]),
    "--target",
    "wasm32-unknown-unknown",
    "--edges",
    "normal,no-proc-macro",
    "--prefix",
    "none",
    "--locked",
  ]);
  return new Set(tree.split("\n").map((line) => line.split(" ", 2).join(" ")));
}

/** Returns the crates that are linked into the modules of browsers. */
export function cratesOf(root) {
  const isLinked = linked(root);
  const { packages, resolve } = JSON.parse(
    cargo(root, [
      "metadata",
      "--format-version",
      "1",
      "--locked",
      "--filter-platform",
      "wasm32-unknown-unknown",
    ]),
  );
  const byId = new Map(packages.map((one) => [one.id, one]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const seen = new Set();
  const waiting = packages
    .filter(({ name, source }) => CRATES.includes(name) && source === null)
    .map(({ id }) => id);
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (seen.has(id) || byId.get(id).targets.some(({ kind }) => kind.includes("proc-macro")))
      continue;
    seen.add(id);
    for (const { pkg, dep_kinds } of nodes.get(id).deps)
      if (dep_kinds.some(({ kind }) => kind === null)) waiting.push(pkg);
  }
  return (
    [...seen]
      .map((id) => byId.get(id))
      .filter(({ source }) => source !== null)
      // The metadata have the features of all crates of the workspace together.
      .filter(({ name, version }) => isLinked.has(`${name} v${version}`))
      .map(({ name, version, license, repository, manifest_path }) => ({
        kind: "Rust crate",
        name,
        version,
        license,
        source: repository ?? `https://crates.io/crates/${name}`,
        folder: dirname(manifest_path),
      }))
  );
}

/**
 * Returns the licence files of a part that must be included. If MIT is one of the choices, it is
 * that one.
 */
function chosen(files, license) {
  const mit = files.filter((name) => /mit/i.test(name));
  const mayBeMit = / or |\//i.test(license) && /\bMIT\b/.test(license) && !/ and /i.test(license);
  return mayBeMit && mit.length > 0 ? mit : files;
}

/** Returns the text of a part. Some crates name Apache-2.0 without its text, which is always the same. */
async function licenceOf({ kind, name, license, folder }, root) {
  const files = chosen(
    (await readdir(folder)).filter((file) => LICENCE_FILE.test(file)).sort(),
    license ?? "",
  );
  if (files.length === 0 && kind === "Rust crate" && /\bApache-2\.0\b/.test(license ?? ""))
    return (await readFile(join(root, "LICENSE-APACHE"), "utf8")).trim();
  if (!license || files.length === 0)
    throw new Error(`${kind} ${name} in ${folder}: no licence${license ? " text" : ""}`);
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  return texts.map((text) => text.replaceAll("\r\n", "\n").trim()).join("\n\n");
}

/** The standard library is linked into every module. */
async function standardLibrary(root) {
  const [, version] = cargo(root, ["version"]).split(" ");
  const own = await readFile(join(root, "LICENSE-MIT"), "utf8");
  const terms = own.slice(own.indexOf("Permission is hereby granted"));
  const words =
    "Copyright (c) The Rust Project Developers (see https://thanks.rust-lang.org). Notices of its own parts: https://doc.rust-lang.org/stable/COPYRIGHT-library.html";
  return {
    kind: "Rust crate",
    name: "std (the Rust standard library)",
    version,
    license: "MIT OR Apache-2.0",
    source: "https://github.com/rust-lang/rust",
    text: `${words}\n\n${terms.trim()}`,
  };
}

/** Returns the text of the file for these npm packages and the crates of the module. */
export async function notices(packages, root) {
  const parts = await Promise.all(
    [...packages, ...cratesOf(root)].map(async (part) => ({
      ...part,
      text: await licenceOf(part, root),
    })),
  );
  parts.push(await standardLibrary(root));
  parts.sort((a, b) =>
    a.name === b.name ? a.version.localeCompare(b.version) : a.name < b.name ? -1 : 1,
  );
  const byText = grouped(parts);
  const line = ({ kind, name, version, license, source }) =>
    `${name} ${version} (${kind}, ${license}, ${source.replace(/^git\+|\.git$/g, "")})`;
  const sections = [...byText].map(([text, of]) => `${of.map(line).join("\n")}\n\n${text}`);
  const rule = `\n\n${"-".repeat(80)}\n\n`;
  return `Parts of aqlite that others wrote, each with its licence. aqlite itself is given under MIT or Apache-2.0.${rule}${sections.join(rule)}\n`;
}

function grouped(parts) {
  const byText = new Map();
  for (const part of parts) byText.set(part.text, [...(byText.get(part.text) ?? []), part]);
  return byText;
}
