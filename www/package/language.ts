// AQL and GDL as languages: what an editor asks, without any data.
import {
  Repository as Engine,
  convert as converted,
  describeGuide as described,
  diagnose as diagnosed,
  format as formatted,
  printGuide as printed,
  testGuide as tested,
  tryGuide as tried,
} from "aqlite-wasm";
import { guarded } from "./errors";
import type {
  Completions,
  Diagnostic,
  Explanation,
  GuideDescription,
  GuideRun,
  GuideTest,
  Hover,
  Parsed,
} from "./types";

let engine: Engine | undefined;

/** A repository without anything in it. */
function bare(): Engine {
  engine ??= new Engine("", false);
  return engine;
}

/** The text, if it is one: callers without types make mistakes, too. */
export function text(value: string, what = "query"): string {
  if (typeof value === "string") return value;
  throw new TypeError(
    `the ${what} is ${value === null ? "null" : `of type ${typeof value}`}, expected a text`,
  );
}

/** The problems of a query that is being written. */
export function diagnose(q: string): Diagnostic[] {
  return guarded(() => JSON.parse(diagnosed(text(q))) as Diagnostic[]);
}

/** Reads a query: its words, its tree, its problems. Never throws for what is wrong with the query. */
export function parse(q: string): Parsed {
  const { tokens, syntax, diagnostics } = explain(q);
  return { tokens, syntax, diagnostics };
}

/** Every rung of a query from text to plan, and a run over nothing. `Repository.explain` runs it on data. */
export function explain(q: string): Explanation {
  return guarded(
    () => JSON.parse(bare().explain(text(q), "{}", new Date().toISOString())) as Explanation,
  );
}

/** A query in its usual layout. Throws an `AqliteError` with diagnostics where the text is no query. */
export function format(q: string): string {
  return guarded(() => formatted(text(q)));
}

/** What may stand at an offset (in UTF-16 units; the end, if absent). `Repository.complete` knows the names of templates, too. */
export function complete(q: string, offset?: number): Completions {
  return guarded(() => JSON.parse(bare().complete(text(q), offset ?? q.length)) as Completions);
}

/** What the word at an offset (in UTF-16 units) means. */
export function hover(q: string, offset: number): Hover | null {
  return guarded(() => JSON.parse(bare().hover(text(q), offset)) as Hover | null);
}

/** A magnitude in another unit of the same property, by UCUM code; `undefined` where openEHR knows no way between them. */
export function convert(magnitude: number, from: string, to: string): number | undefined {
  return guarded(() => converted(magnitude, text(from, "unit"), text(to, "unit")));
}

/** A guide (GDL1 or GDL2) as people read it: what it asks of a record at a moment, what a form for it needs, its rules, its problems. */
export function describeGuide(
  guide: string,
  language = "en",
  { now = new Date(), convertUnits = false }: { now?: Date; convertUnits?: boolean } = {},
): GuideDescription {
  return guarded(
    () =>
      JSON.parse(
        described(text(guide, "guide"), language, now.toISOString(), convertUnits),
      ) as GuideDescription,
  );
}

/** A guide as GDL2 in JSON (GDL1 is translated), or as ODIN. */
export function printGuide(guide: string, syntax: "json" | "odin" = "json"): string {
  return guarded(() => printed(text(guide, "guide"), syntax));
}

/**
 * Runs a guide on the values of a form, literals by variable: `{ gt0003: "80,kg" }`. With `convertUnits`, quantities of compatible UCUM units
 * are converted where they are compared; without, such a comparison is unknown, and a note names both units.
 */
export function runGuide(
  guide: string,
  inputs: Record<string, string>,
  {
    language = "en",
    now = new Date(),
    convertUnits = false,
  }: { language?: string; now?: Date; convertUnits?: boolean } = {},
): GuideRun {
  return guarded(
    () =>
      JSON.parse(
        tried(
          text(guide, "guide"),
          JSON.stringify(inputs),
          language,
          now.toISOString(),
          convertUnits,
        ),
      ) as GuideRun,
  );
}

/** Runs the cases of a fixture file (YAML) on a guide. */
export function testGuide(
  guide: string,
  fixture: string,
  { now = new Date() }: { now?: Date } = {},
): GuideTest {
  return guarded(
    () =>
      JSON.parse(
        tested(text(guide, "guide"), text(fixture, "fixture"), now.toISOString()),
      ) as GuideTest,
  );
}
