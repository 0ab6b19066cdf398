// AQL and GDL as languages: the functions of an editor, without data.
import {
  Repository as Engine,
  convert as converted,
  describeGuide as described,
  format as formatted,
  printGuide as printed,
  testGuide as tested,
  tryGuide as tried,
} from "aqlite-wasm";
import { atOnce } from "../src/slices";
import { guarded, json, moment, text } from "./guard";
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

/** Creates an empty repository. */
function bare(): Engine {
  engine ??= new Engine("", false);
  return engine;
}

/**
 * Returns the problems of a query. `Repository.diagnose` also compares it with templates and data.
 */
export function diagnose(q: string): Diagnostic[] {
  return guarded(
    () => JSON.parse(bare().diagnose(text(q), new Date().toISOString())) as Diagnostic[],
  );
}

/** Parses a query: its tokens, its tree, its problems. Problems of the query do not throw. */
export function parse(q: string): Parsed {
  const { tokens, syntax, diagnostics } = explain(q);
  return { tokens, syntax, diagnostics };
}

/**
 * Explains each step of a query from text to plan, and runs it on no data. `Repository.explain`
 * runs it on its data.
 */
export function explain(q: string): Explanation {
  return guarded(
    () =>
      JSON.parse(
        atOnce(bare().begin_explanation(text(q), "{}", new Date().toISOString())),
      ) as Explanation,
  );
}

/** Formats a query. Throws an `AqliteError` with diagnostics if the text is not a query. */
export function format(q: string): string {
  return guarded(() => formatted(text(q)));
}

/**
 * Returns completions at an offset (in UTF-16 units; the end, if absent). `Repository.complete`
 * also knows the names of templates.
 */
export function complete(q: string, offset?: number): Completions {
  return guarded(() => JSON.parse(bare().complete(text(q), offset ?? q.length)) as Completions);
}

/** Describes the word at an offset (in UTF-16 units). */
export function hover(q: string, offset: number): Hover | null {
  return guarded(() => JSON.parse(bare().hover(text(q), offset)) as Hover | null);
}

/**
 * Converts a magnitude to another unit of the same property, by UCUM code. Returns `undefined` if
 * openEHR has no factor between them.
 */
export function convert(magnitude: number, from: string, to: string): number | undefined {
  return guarded(() => converted(magnitude, text(from, "unit"), text(to, "unit")));
}

/**
 * Describes a guide (GDL1 or GDL2): its queries at a moment, its inputs for a form, its rules, its
 * problems.
 */
export function describeGuide(
  guide: string,
  language = "en",
  { now = new Date(), convertUnits = false }: { now?: Date; convertUnits?: boolean } = {},
): GuideDescription {
  return guarded(
    () =>
      JSON.parse(
        described(text(guide, "guide"), language, moment(now), convertUnits),
      ) as GuideDescription,
  );
}

/** Prints a guide as GDL2 in JSON (GDL1 is translated), or as ODIN. */
export function printGuide(guide: string, syntax: "json" | "odin" = "json"): string {
  return guarded(() => printed(text(guide, "guide"), syntax));
}

/**
 * Runs a guide on the values of a form, literals by variable: `{ gt0003: "80,kg" }`. With
 * `convertUnits`, quantities of compatible UCUM units are converted in comparisons. Without it,
 * such a comparison is unknown, and a note names both units.
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
        tried(text(guide, "guide"), json(inputs, "the form"), language, moment(now), convertUnits),
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
      JSON.parse(tested(text(guide, "guide"), text(fixture, "fixture"), moment(now))) as GuideTest,
  );
}
