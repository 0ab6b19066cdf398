// The changes that the builder makes in a query. It adds and removes columns, with the class
// expressions that they need. Everything else in the text stays as the user wrote it.
import { FUNCTIONS, KEYWORDS, LITERALS } from "./aql-words";
import {
  isRequired,
  readQuery,
  type ClassExpression,
  type Column,
  type Containment,
  type Group,
  type QueryText,
} from "./query-text";

/** An archetype on the way to a value. */
export interface Step {
  /** The class of the archetype. */
  name: string;
  /** The predicate that selects it: its id, with a name if siblings share the id. */
  predicate: string;
  /** The path from the archetype to the selected attribute, without a leading slash. */
  rest: string;
  /** The path from the archetype to the whole data value. */
  whole: string;
}

/** A value of a template that can be a column. */
export interface Value {
  label: string;
  /** The archetypes from the root of the template to the value. */
  steps: [Step, ...Step[]];
  /** All predicates of archetypes in the template. */
  archetypes: ReadonlySet<string>;
}

/** A class expression that binds an archetype of a value. */
interface Bound {
  found: ClassExpression;
  step: Step;
  /** The index of the step. */
  at: number;
}

const RESERVED = new Set([...KEYWORDS, ...LITERALS, ...FUNCTIONS]);
/** The maximum length of an alias. */
const LONGEST = 40;

const compact = (predicate: string | null) => predicate?.replaceAll(/\s*,\s*/g, ",") ?? null;

/** Returns a class expression and those around it, the outermost first. */
function lineage(found: ClassExpression): ClassExpression[] {
  return found.above ? [...lineage(found.above), found] : [found];
}

/** Returns the index of the step that a class expression binds, or -1. */
function stepOf(value: Value, found: ClassExpression): number {
  let at = -1;
  for (const one of lineage(found)) {
    if (/^(ehr|version)$/i.test(one.name)) continue;
    const predicate = compact(one.predicate);
    const isAnyRoot = at < 0 && predicate === null && one.name === value.steps[0].name;
    const next = isAnyRoot
      ? 0
      : value.steps.findIndex((step, index) => index > at && step.predicate === predicate);
    if (next < 0) return -1;
    at = next;
  }
  return at;
}

/** Whether documents of the template can contain all archetypes below a class expression. */
function fits(value: Value, query: QueryText, found: ClassExpression): boolean {
  return query.classes.every(
    (one) =>
      one === found ||
      !lineage(one).includes(found) ||
      one.predicate === null ||
      value.archetypes.has(compact(one.predicate) ?? ""),
  );
}

/** Returns the class expression that binds the innermost bound archetype of a value. */
function innermost(query: QueryText, value: Value): Bound | null {
  let best: Bound | null = null;
  for (const found of query.classes) {
    const at = stepOf(value, found);
    const step = value.steps[at];
    if (!step || at <= (best?.at ?? -1) || !isRequired(query, found)) continue;
    const document = lineage(found).find((one) => stepOf(value, one) === 0);
    if (!document || fits(value, query, document)) best = { found, step, at };
  }
  return best;
}

/** Returns the columns that select a value. */
export function columnsOf(query: QueryText, value: Value): Column[] {
  return query.columns.filter(({ path }) => {
    const found = path && query.classes.find(({ variable }) => variable === path.variable);
    const step = found ? value.steps[stepOf(value, found)] : undefined;
    return step !== undefined && (path?.rest === step.rest || path?.rest === step.whole);
  });
}

/** Returns the path of a value behind the variable of the query, or behind `c` if none is bound. */
export function pathIn(query: QueryText | null, value: Value): string {
  const bound = query && innermost(query, value);
  return bound?.found.variable
    ? `${bound.found.variable}/${bound.step.rest}`
    : `c/${value.steps[0].rest}`;
}

/** Returns `text` with insertions. Insertions at the same place keep their order. */
function inserted(text: string, insertions: { at: number; text: string }[]): string {
  const sorted = [...insertions].sort((a, b) => a.at - b.at);
  let end = 0;
  const parts = sorted.map((insertion) => {
    const part = text.slice(end, insertion.at) + insertion.text;
    end = insertion.at;
    return part;
  });
  return parts.join("") + text.slice(end);
}

const cut = (text: string, from: number, to: number) => text.slice(0, from) + text.slice(to);

const isBare = ({ outer, from }: Containment) => outer.from === from;

/** Returns the group that joins a class expression with others, or `null`. */
function groupOf(query: QueryText, found: Containment): Group | null {
  const search = (one: Containment | null): Group | null => {
    if (!one || one.kind === "class") return null;
    if (one.parts.includes(found)) return one;
    return one.parts.map(search).find((group) => group !== null) ?? null;
  };
  const tops = [query.from, ...query.classes.map(({ below }) => below)];
  return tops.map(search).find((group) => group !== null) ?? null;
}

/** Returns the parentheses around a part whose CONTAINS would otherwise include the text after it. */
function wrapping(part: Containment): { at: number; text: string }[] {
  const isOpen = isBare(part) && (part.kind === "OR" || (part.kind === "class" && part.below));
  return isOpen
    ? [
        { at: part.from, text: "(" },
        { at: part.to, text: ")" },
      ]
    : [];
}

/** Adds a class expression below another one. Returns `null` if the text forbids it. */
function withClass(query: QueryText, above: ClassExpression, added: string): string | null {
  const { below, ownEnd } = above;
  if (above.isNegated) return null;
  if (!below) {
    const isJoined = isBare(above) && groupOf(query, above) !== null;
    return inserted(query.text, [
      ...(isJoined ? [{ at: above.from, text: "(" }] : []),
      { at: ownEnd, text: ` CONTAINS ${added}${isJoined ? ")" : ""}` },
    ]);
  }
  if (below.kind === "AND")
    return inserted(query.text, [
      ...wrapping(below.parts.at(-1) as Containment),
      { at: below.to, text: ` AND ${added}` },
    ]);
  return inserted(query.text, [
    { at: below.outer.from, text: "(" },
    ...wrapping(below),
    { at: below.outer.to, text: ` AND ${added})` },
  ]);
}

/** Returns a name that no word of the query has. */
function unused(query: QueryText | null, wanted: string): string {
  const taken = new Set(query?.words.map(({ text }) => text.toLowerCase()));
  const isFree = (name: string) =>
    !taken.has(name) && !RESERVED.has(name) && !/^(?:at|id|ac)\d+$/.test(name);
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}_${number}`;
    if (isFree(name)) return name;
  }
}

/** Returns a variable for an archetype: the initials of its concept. */
function variableFor(query: QueryText | null, { name, predicate }: Step): string {
  if (name === "COMPOSITION") return unused(query, "c");
  const concept = /-[A-Z_]+\.([a-z][\w-]*)/i.exec(predicate)?.[1] ?? name.toLowerCase();
  return unused(
    query,
    concept
      .split(/[_-]+/)
      .flatMap((word) => word[0] ?? [])
      .join("")
      .toLowerCase(),
  );
}

/** Returns an alias for a label: its letters and digits in lower case. */
function aliasFor(query: QueryText | null, label: string): string {
  const words = label
    .normalize("NFD")
    .replaceAll(/\p{Mark}/gu, "")
    .replaceAll(/[^A-Za-z0-9]+/g, "_")
    .toLowerCase()
    .slice(0, LONGEST)
    .replaceAll(/^_+|_+$/g, "");
  return unused(query, /^[a-z]/.test(words) ? words : words ? `value_${words}` : "value");
}

const classFor = (query: QueryText | null, step: Step) =>
  `${step.name} ${variableFor(query, step)}[${step.predicate}]`;

/** Returns a query of one value. */
export function firstQuery(value: Value): string {
  const [root] = value.steps;
  const from = `FROM EHR e CONTAINS ${classFor(readQuery("SELECT e FROM EHR e"), root)}`;
  const bare = readQuery(`SELECT e/ehr_id/value AS ehr ${from}`);
  const time = root.name === "COMPOSITION" ? ", c/context/start_time/value AS time" : "";
  const start = readQuery(`SELECT e/ehr_id/value AS ehr${time} ${from}`) ?? bare;
  return (start && withValue(start, value)) ?? "";
}

/** Adds the class expression of the next archetype on the way to a value. */
function withNextClass(query: QueryText, value: Value, bound: Bound | null): string | null {
  const step = value.steps[(bound?.at ?? -1) + 1];
  const above = bound?.found ?? (query.from.kind === "class" ? query.from : null);
  if (!step || !above || (!bound && above.name.toUpperCase() !== "EHR")) return null;
  return withClass(query, above, classFor(query, step));
}

/** Adds the column of a bound value behind the last one. */
function withColumn(query: QueryText, { found, step }: Bound, label: string): string {
  const variable = found.variable ?? variableFor(query, step);
  const [before, last] = query.columns.slice(-2);
  const between = before && last ? query.text.slice(before.to, last.from) : ", ";
  const separator = /^\s*,\s*$/.test(between) ? between : ",\n  ";
  const selected = `${separator}${variable}/${step.rest} AS ${aliasFor(query, label)}`;
  return inserted(query.text, [
    { at: query.columns.at(-1)?.to ?? 0, text: selected },
    ...(found.variable ? [] : [{ at: found.nameEnd, text: ` ${variable}` }]),
  ]);
}

/** Adds the column of a value. Returns `null` if that is not possible without other changes. */
export function withValue(query: QueryText, value: Value): string | null {
  if (query.isSummary) return null;
  let present = query;
  for (let missing = value.steps.length; missing >= 0; missing -= 1) {
    const bound = innermost(present, value);
    if (bound?.at === value.steps.length - 1) return withColumn(present, bound, value.label);
    const text = withNextClass(present, value, bound);
    const next = text === null ? null : readQuery(text);
    if (!next) return null;
    present = next;
  }
  return null;
}

/** Whether a word of the query outside of a column is the alias of the column. */
function isReferenced(query: QueryText, { alias, from, to }: Column): boolean {
  return query.words.some(
    (word) =>
      word.text === alias &&
      (word.from < from || word.to > to) &&
      query.text[word.from - 1] !== "/",
  );
}

function withoutColumn(query: QueryText, column: Column): string {
  const at = query.columns.indexOf(column);
  const [before, next] = [query.columns[at - 1], query.columns[at + 1]];
  return next
    ? cut(query.text, column.from, next.from)
    : cut(query.text, before?.to ?? column.from, column.to);
}

/** Removes CONTAINS with everything that a class expression contains, and the needless parentheses. */
function withoutContains(text: string, { from, ownEnd, outer }: ClassExpression): string {
  return text.slice(0, outer.from) + text.slice(from, ownEnd) + text.slice(outer.to);
}

/** Removes a class expression that contains no other. Returns `null` if that is not possible. */
function withoutClass(query: QueryText, found: ClassExpression): string | null {
  const { text } = query;
  const group = groupOf(query, found);
  if (!group) return found.above ? withoutContains(text, found.above) : null;
  if (group.kind === "OR") return null;
  const at = group.parts.indexOf(found);
  const [before, next] = [group.parts[at - 1], group.parts[at + 1]];
  const other = before ?? next;
  if (group.parts.length === 2 && other) {
    const isSafe = other.kind === "class" && !groupOf(query, group);
    const kept = isSafe ? other : other.outer;
    const left = text.slice(kept.from, kept.to);
    return text.slice(0, group.outer.from) + left + text.slice(group.outer.to);
  }
  return next
    ? cut(text, found.outer.from, next.outer.from)
    : cut(text, before?.outer.to ?? found.outer.from, found.outer.to);
}

/** Removes a class expression, and those around it that no other part of the query needs. */
function withoutUnused(text: string, variable: string): string {
  const query = readQuery(text);
  const found = query?.classes.find((one) => one.variable === variable);
  if (!query || !found?.above || found.below || !isRequired(query, found)) return text;
  if (query.words.filter((word) => word.text === variable).length > 1) return text;
  // The last COMPOSITION stays: without it, the query would return a row for each EHR.
  if (!found.above.above && !groupOf(query, found)) return text;
  const left = withoutClass(query, found);
  if (left === null) return text;
  return found.above.variable ? withoutUnused(left, found.above.variable) : left;
}

/** Whether a query is the initial query of the builder without its value. */
function isBlank({ columns, classes, text, fromEnd }: QueryText): boolean {
  const aliases = columns.map(({ alias }) => alias).join();
  return (
    ["ehr", "ehr,time"].includes(aliases) &&
    classes.length <= 2 &&
    text.slice(fromEnd).trim() === ""
  );
}

/**
 * Removes the columns of a value, and the class expressions that only they needed. Returns `null`
 * if the rest of the query needs a column.
 */
export function withoutValue(query: QueryText, value: Value): string | null {
  let present = query;
  for (;;) {
    const [column] = columnsOf(present, value);
    if (!column) return isBlank(present) ? "" : present.text;
    if (present.isSummary || present.columns.length === 1 || isReferenced(present, column))
      return null;
    const next = readQuery(
      withoutUnused(withoutColumn(present, column), column.path?.variable ?? ""),
    );
    if (!next) return null;
    present = next;
  }
}
