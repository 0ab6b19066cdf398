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
import {
  LARGEST,
  choice,
  draft,
  finite,
  flag,
  integer,
  json,
  moment,
  object,
  text,
  texts,
  wrong,
} from "./arguments";
import { guarded } from "./guard";
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
    () => JSON.parse(bare().diagnose(draft(q), new Date().toISOString())) as Diagnostic[],
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
        atOnce(bare().begin_explanation(draft(q), "{}", new Date().toISOString())),
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
  return guarded(() => {
    const at = integer(offset ?? draft(q).length, "the offset", 0, LARGEST);
    return JSON.parse(bare().complete(draft(q), at)) as Completions;
  });
}

/** Describes the word at an offset (in UTF-16 units). */
export function hover(q: string, offset: number): Hover | null {
  return guarded(() => {
    const at = integer(offset, "the offset", 0, LARGEST);
    return JSON.parse(bare().hover(draft(q), at)) as Hover | null;
  });
}

/**
 * Converts a magnitude to another unit of the same property, by UCUM code. Returns `undefined` if
 * openEHR has no factor between them.
 */
export function convert(magnitude: number, from: string, to: string): number | undefined {
  return guarded(() =>
    converted(finite(magnitude, "the magnitude"), text(from, "the unit"), text(to, "the unit")),
  );
}

/**
 * Describes a guide (GDL1 or GDL2): its queries at a moment, its inputs for a form, its rules, its
 * problems.
 */
export function describeGuide(
  guide: string,
  language = "en",
  options: { now?: Date; convertUnits?: boolean } = {},
): GuideDescription {
  const { now = new Date(), convertUnits = false } = object(options);
  return guarded(
    () =>
      JSON.parse(
        described(
          text(guide, "the guide"),
          text(language, "`language`"),
          moment(now),
          flag(convertUnits, "`convertUnits`"),
        ),
      ) as GuideDescription,
  );
}

/** The syntaxes of guides. */
const SYNTAXES = ["json", "odin"] as const;

/** Prints a guide as GDL2 in JSON (GDL1 is translated), or as ODIN. */
export function printGuide(guide: string, syntax: "json" | "odin" = "json"): string {
  return guarded(() => printed(text(guide, "the guide"), choice(syntax, "`syntax`", SYNTAXES)));
}

/**
 * Runs a guide on the values of a form, literals by variable: `{ gt0003: "80,kg" }`. With
 * `convertUnits`, quantities of compatible UCUM units are converted in comparisons. Without it,
 * such a comparison is unknown, and a note names both units. A value that is no text, or whose
 * variable the guide lacks, is an error.
 */
export function runGuide(
  guide: string,
  inputs: Record<string, string>,
  options: { language?: string; now?: Date; convertUnits?: boolean } = {},
): GuideRun {
  const { language = "en", now = new Date(), convertUnits = false } = object(options);
  const form = json(texts(inputs, "`inputs`"), "`inputs`");
  const { bindings } = describeGuide(guide, language, { now, convertUnits });
  const known = bindings.flatMap(({ elements }) => elements.map(({ id }) => id));
  const unknown = Object.keys(inputs).find((variable) => !known.includes(variable));
  if (unknown !== undefined)
    throw wrong(`the guide has no variable \`${unknown}\`, only ${known.join(", ")}`);
  return guarded(
    () => JSON.parse(tried(guide, form, language, moment(now), convertUnits)) as GuideRun,
  );
}

/** Runs the cases of a fixture file (YAML) on a guide. */
export function testGuide(guide: string, fixture: string, options: { now?: Date } = {}): GuideTest {
  const { now = new Date() } = object(options);
  return guarded(
    () =>
      JSON.parse(
        tested(text(guide, "the guide"), text(fixture, "the fixture"), moment(now)),
      ) as GuideTest,
  );
}
