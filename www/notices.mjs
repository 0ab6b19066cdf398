// The file of third-party notices: every npm package and every Rust crate that is part of a build,
// with its license.
//
// The builds of page and npm package call `notices`. For a program of Rust alone:
// `node www/notices.mjs --package aqlite-cli --target x86_64-unknown-linux-gnu --out FILE`.
//
// The packages are those that esbuild read, and their dependencies. The crates are those that Cargo
// resolves for the target, without build scripts and procedural macros, whose code is not part of
// the result. A part without a license text stops the build, unless its license is Apache-2.0.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** The name of the file in a build. */
export const NOTICES = "THIRD_PARTY_NOTICES.txt";
/**
 * A binary: its crates in this workspace, and the target that they are compiled for.
 * @typedef {{ crates: string[], target: string }} Binary
 */
/** The modules of page and npm package. */
const MODULES = {
  crates: ["aqlite-wasm", "aqlite-arrow-wasm"],
  target: "wasm32-unknown-unknown",
};
const LICENSE_FILE = /^(licen[cs]e|copying|copyright|notice|unlicense)/i;
/** Source files with such a name, which contain code. */
const CODE_FILE = /\.(rs|c|h|py|sh|html)$/i;
/** Folders of a crate that are not compiled into what depends on it. */
const NOT_LINKED = /^(tests?|benche?s?|examples|fuzz|doc|docs)[/\\]/i;

/**
 * A part of a build that others wrote. Only crates have `authors`.
 * @typedef {{ kind: string, name: string, version: string, license: string, source: string, folder: string, authors?: string[] }} Part
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
 * Returns name and version of the crates below a binary, with their features alone:
 * `serde v1.0.0`.
 */
function linked(root, { crates, target }) {
  const tree = cargo(root, [
    "tree",
    ...crates.flatMap((name) => ["--package", name]),
    "--target",
    target,
    "--edges",
    "normal,no-proc-macro",
    "--prefix",
    "none",
    "--locked",
  ]);
  return new Set(tree.split("\n").map((line) => line.split(" ", 2).join(" ")));
}

/** Returns the foreign crates that are linked into a binary. */
export function cratesOf(root, binary) {
  const isLinked = linked(root, binary);
  const { packages, resolve } = JSON.parse(
    cargo(root, [
      "metadata",
      "--format-version",
      "1",
      "--locked",
      "--filter-platform",
      binary.target,
    ]),
  );
  const byId = new Map(packages.map((one) => [one.id, one]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const seen = new Set();
  const waiting = packages
    .filter(({ name, source }) => binary.crates.includes(name) && source === null)
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
      .map(({ name, version, license, repository, manifest_path, authors }) => ({
        kind: "Rust crate",
        name,
        version,
        license,
        source: repository ?? `https://crates.io/crates/${name}`,
        folder: dirname(manifest_path),
        authors,
      }))
  );
}

/**
 * Returns the license files of a part that must be included. If MIT is one of the choices, it is
 * that one.
 */
function chosen(files, license) {
  const mit = files.filter((name) => /mit/i.test(name));
  const mayBeMit = / or |\//i.test(license) && /\bMIT\b/.test(license) && !/ and /i.test(license);
  return mayBeMit && mit.length > 0 ? mit : files;
}

/** Returns the license files of a folder, for a crate also those of its folders of linked code. */
async function licenseFiles({ kind, folder }) {
  const isCrate = kind === "Rust crate";
  const entries = await readdir(folder, { withFileTypes: true, recursive: isCrate });
  return entries
    .filter((entry) => entry.isFile() && LICENSE_FILE.test(entry.name))
    .map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)))
    .filter((file) => !NOT_LINKED.test(file) && !CODE_FILE.test(file))
    .sort();
}

/** Returns the terms of MIT, without a line of copyright. */
async function termsOfMit(root) {
  const own = await readFile(join(root, "LICENSE-MIT"), "utf8");
  return own.slice(own.indexOf("Permission is hereby granted")).trim();
}

/**
 * Returns the text of a crate without a license file, or undefined. The texts of Apache-2.0 and MIT
 * are always the same. The holders of the copyright of MIT are the authors in the manifest.
 */
async function namedLicense({ kind, license, authors }, root) {
  if (kind !== "Rust crate") return undefined;
  if (/\bApache-2\.0\b/.test(license))
    return (await readFile(join(root, "LICENSE-APACHE"), "utf8")).trim();
  if (!/\bMIT\b/.test(license) || authors.length === 0) return undefined;
  return `Copyright (c) ${authors.join(", ")}\n\n${await termsOfMit(root)}`;
}

/** Returns the text of a part. */
async function licenseOf(part, root) {
  const { kind, name, license, folder } = part;
  if (!license) throw new Error(`${kind} ${name} in ${folder}: no license`);
  const all = await licenseFiles(part);
  // A text in a folder is that of code from elsewhere, which has no part in the choice.
  const isOwn = (file) => dirname(file) === ".";
  const files = [...chosen(all.filter(isOwn), license), ...all.filter((file) => !isOwn(file))];
  if (files.length === 0) {
    const text = await namedLicense(part, root);
    if (text === undefined) throw new Error(`${kind} ${name} in ${folder}: no license text`);
    return text;
  }
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")));
  return texts.map((text) => text.replaceAll("\r\n", "\n").trim()).join("\n\n");
}

/** The standard library is linked into every binary. */
async function standardLibrary(root) {
  const [, version] = cargo(root, ["version"]).split(" ");
  const words =
    "Copyright (c) The Rust Project Developers (see https://thanks.rust-lang.org). Notices of its own parts: https://doc.rust-lang.org/stable/COPYRIGHT-library.html";
  return {
    kind: "Rust crate",
    name: "std (the Rust standard library)",
    version,
    license: "MIT OR Apache-2.0",
    source: "https://github.com/rust-lang/rust",
    text: `${words}\n\n${await termsOfMit(root)}`,
  };
}

/**
 * Returns the text of the file for these npm packages and the crates of a binary, the modules if no
 * other is given.
 */
export async function notices(packages, root, binary = MODULES) {
  const parts = await Promise.all(
    [...packages, ...cratesOf(root, binary)].map(async (part) => ({
      ...part,
      text: await licenseOf(part, root),
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
  return `Parts of aqlite that others wrote, each with its license. aqlite itself is given under MIT or Apache-2.0.${rule}${sections.join(rule)}\n`;
}

function grouped(parts) {
  const byText = new Map();
  for (const part of parts) byText.set(part.text, [...(byText.get(part.text) ?? []), part]);
  return byText;
}

/** Writes the notices of a binary of this workspace, as the arguments of the program name it. */
async function main() {
  const { values } = parseArgs({
    options: {
      package: { type: "string", multiple: true },
      target: { type: "string" },
      out: { type: "string" },
    },
  });
  const { package: crates, target, out } = values;
  if (!crates || !target || !out) throw new Error("expected --package, --target and --out");
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  await writeFile(resolve(out), await notices([], root, { crates, target }));
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) await main();
