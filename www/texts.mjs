// The catalogue of texts for scripts in Node: the build and the tests.
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = join(dirname(fileURLToPath(import.meta.url)), "src/texts");

/** Returns the codes of the languages. */
export async function languageCodes() {
  const found = await readdir(folder, { withFileTypes: true });
  return found.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Loads the texts of a language. */
export async function textsOf(code) {
  const { outputFiles } = await build({
    entryPoints: [join(folder, code, "index.ts")],
    bundle: true,
    write: false,
    format: "esm",
  });
  const source = Buffer.from(outputFiles[0].text).toString("base64");
  return (await import(`data:text/javascript;base64,${source}`)).texts;
}

/** Converts a text to HTML. Words in back-ticks become code. */
export function inHtml(text) {
  const safe = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  return safe.replaceAll(/`([^`]*)`/g, "<code>$1</code>");
}
