// The cases of tests/cases/rest over HTTP against the worker in workerd. Native tests run the same
// cases in the core.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, before, test } from "node:test";
import { freshState, root, start } from "./server.mjs";

/** The settings of the native runner of the cases, as variables of a deployment. */
const common = {
  SYSTEM_ID: "test.example",
  LIMIT_BODY: "200000",
  LIMIT_TEMPLATE: "150000",
  LIMIT_QUERY_WORK: "20000000",
  LIMIT_PARAMETERS: "100000",
  ORIGINS: "https://page.example",
};
const kinds = {
  open: { ...common, AUTH: "none", ACCESS_LOG: "on", ADMIN: "true" },
  exact: {
    ...common,
    AUTH: "none",
    ACCESS_LOG: "on",
    ADMIN: "true",
    SPECIALISATION: "exact",
    FLAT_DIALECT: "ehrbase",
  },
  plain: { ...common, AUTH: "none" },
  closed: common,
};
const servers = {};

before(async () => {
  for (const [kind, vars] of Object.entries(kinds))
    servers[kind] = await start(freshState(`cases-${kind}`), vars);
});
after(() => Promise.all(Object.values(servers).map((server) => server.stop())));

test("the cases of the REST interface hold in workerd", async () => {
  const hosts = Object.entries(servers)
    .map(([kind, { port }]) => `${kind}=127.0.0.1:${port}`)
    .join(" ");
  // The packages that the calling command has compiled: others would compile the core again.
  const packages = process.env.AQLITE_TEST_PACKAGES ?? "--package aqlite";
  const args = [
    "test",
    "--quiet",
    "--profile",
    "checked",
    ...packages.split(" "),
    "--test",
    "it",
    "--",
    "--ignored",
    "--exact",
    "rest::the_cases_hold_over_http",
  ];
  const child = spawn("cargo", args, {
    cwd: root,
    env: { ...process.env, AQLITE_HOSTS: hosts },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (out += bytes));
  const status = await new Promise((resolve) => child.once("exit", resolve));
  assert.equal(status, 0, out);
  assert.match(out, /1 passed/, "the test is there");
});
