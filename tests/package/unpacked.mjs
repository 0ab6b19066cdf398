// The packed npm package, installed in a folder of its own.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const packed = join(root, "dist/aqlite.tgz");

/** Installs the package in an empty folder under `target`. Returns the path of the folder. */
export async function unpacked(name) {
  const project = join(root, "target", name);
  const folder = join(project, "node_modules/aqlite");
  await rm(project, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const { status, stderr } = spawnSync(
    "tar",
    ["--extract", "--gzip", "--file", packed, "--directory", folder, "--strip-components=1"],
    { encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
  await writeFile(join(project, "package.json"), '{ "type": "module" }');
  return project;
}
