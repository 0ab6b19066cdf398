// The types of the page's TypeScript are correct (esbuild only strips types).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the types of the page are correct", () => {
  const checked = spawnSync("node", ["node_modules/typescript/bin/tsc", "--project", "www"], {
    cwd: root,
    encoding: "utf8",
  });
  assert.equal(checked.status, 0, checked.stdout);
});
