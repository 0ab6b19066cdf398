// The structure of an AQL text that the builder changes: the columns of SELECT and the class
// expressions of FROM, with their places. The engine decides whether a text is valid.

import { AGGREGATES } from "./aql-words";

/** A token, with its place in the text. */
interface Token {
  text: string;
  from: number;
  to: number;
}

/** A class expression of FROM, such as `OBSERVATION o[openEHR-EHR-OBSERVATION.pulse.v2]`. */
export interface ClassExpression {
  kind: "class";
  name: string;
  variable: string | null;
  /** The text in the square brackets, without white space around it. */
  predicate: string | null;
  from: number;
  /** The end of the class name, where a variable can be inserted. */
  nameEnd: number;
  /** The end of the class with its predicate, without CONTAINS. */
  ownEnd: number;
  to: number;
  /** Start and end, with the parentheses around the expression. */
  outer: Outer;
  below: Containment | null;
  /** Whether `below` is excluded by NOT CONTAINS. */
  isNegated: boolean;
  above: ClassExpression | null;
}

/** Class expressions that are joined by AND or OR. */
export interface Group {
  kind: "AND" | "OR";
  parts: Containment[];
  from: number;
  to: number;
  outer: Outer;
}

interface Outer {
  from: number;
  to: number;
}

export type Containment = ClassExpression | Group;

/** A column of SELECT. */
export interface Column {
  from: number;
  to: number;
  /** The variable and the path behind it; `null` for functions and literals. */
  path: { variable: string; rest: string } | null;
  alias: string | null;
}

/** A query as the builder reads it. */
export interface QueryText {
  text: string;
  columns: Column[];
  /** Whether another column would change the number of rows: DISTINCT, TOP or an aggregate. */
  isSummary: boolean;
  from: Containment;
  /** The end of the FROM clause. */
  fromEnd: number;
  /** All class expressions, outer ones first. */
  classes: ClassExpression[];
  /** The words of the query with their places, without strings, comments and predicates. */
  words: Token[];
}

const TOKEN =
  /--.*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\$\w+|[A-Za-z_]\w*|-?\d+(?:\.\d+)?|\s+|[^]/g;
const CLAUSES = new Set(["where", "order", "limit", "offset"]);

const lower = (token: Token | undefined) => token?.text.toLowerCase() ?? "";
const isWord = (token: Token | undefined): token is Token =>
  token !== undefined && /^[A-Za-z_]\w*$/.test(token.text);

function tokens(text: string): Token[] {
  return [...text.matchAll(TOKEN)]
    .map((found) => ({ text: found[0], from: found.index, to: found.index + found[0].length }))
    .filter(({ text }) => !/^\s/.test(text) && !text.startsWith("--"));
}

/** Returns the index behind the bracket that closes the one at `at`. */
function closing(all: Token[], at: number): number {
  let depth = 0;
  for (let i = at; i < all.length; i += 1) {
    if (all[i]?.text === "[") depth += 1;
    if (all[i]?.text === "]" && (depth -= 1) === 0) return i + 1;
  }
  throw new Error("a bracket is not closed");
}

/** Returns the index of the first token from `at` on that `isEnd` accepts outside of brackets. */
function ahead(all: Token[], at: number, isEnd: (token: Token) => boolean): number {
  let depth = 0;
  for (let i = at; i < all.length; i += 1) {
    const token = all[i] as Token;
    if (depth === 0 && isEnd(token)) return i;
    if ("[({".includes(token.text)) depth += 1;
    if ("])}".includes(token.text)) depth -= 1;
  }
  return all.length;
}

/** Reads the class expressions of FROM. The operand of CONTAINS is everything to its right. */
class ContainmentReader {
  readonly #text: string;
  readonly #all: Token[];
  #at: number;
  readonly classes: ClassExpression[] = [];

  constructor(text: string, all: Token[], at: number) {
    this.#text = text;
    this.#all = all;
    this.#at = at;
  }

  /** The index of the first token that is not read yet. */
  get at(): number {
    return this.#at;
  }

  read(above: ClassExpression | null): Containment {
    return this.#group("OR", () => this.#group("AND", () => this.#unit(above)));
  }

  #group(kind: Group["kind"], part: () => Containment): Containment {
    const first = part();
    const parts = [first];
    while (lower(this.#all[this.#at]) === kind.toLowerCase()) {
      this.#at += 1;
      parts.push(part());
    }
    if (parts.length === 1) return first;
    const place = { from: first.outer.from, to: (parts.at(-1) as Containment).outer.to };
    return { kind, parts, ...place, outer: place };
  }

  #unit(above: ClassExpression | null): Containment {
    const open = this.#all[this.#at];
    if (open?.text !== "(") return this.#class(above);
    this.#at += 1;
    const inner = this.read(above);
    const close = this.#all[this.#at];
    if (close?.text !== ")") throw new Error("a parenthesis is not closed");
    this.#at += 1;
    inner.outer = { from: open.from, to: close.to };
    return inner;
  }

  #class(above: ClassExpression | null): ClassExpression {
    const name = this.#all[this.#at];
    if (!isWord(name)) throw new Error("a class is missing");
    this.#at += 1;
    const variable = this.#variable();
    const predicate = this.#predicate();
    const ownEnd = this.#all[this.#at - 1]?.to ?? name.to;
    const found: ClassExpression = {
      ...{ kind: "class", name: name.text, variable, predicate, above },
      ...{ from: name.from, nameEnd: name.to, ownEnd, to: ownEnd },
      ...{ outer: { from: name.from, to: ownEnd }, below: null, isNegated: false },
    };
    this.classes.push(found);
    this.#below(found);
    return found;
  }

  #variable(): string | null {
    const token = this.#all[this.#at];
    if (!isWord(token) || /^(contains|and|or|not)$/i.test(token.text)) return null;
    if (CLAUSES.has(lower(token))) return null;
    this.#at += 1;
    return token.text;
  }

  #predicate(): string | null {
    const open = this.#all[this.#at];
    if (open?.text !== "[") return null;
    this.#at = closing(this.#all, this.#at);
    return this.#text.slice(open.to, this.#all[this.#at - 1]?.from).trim();
  }

  #below(found: ClassExpression): void {
    if (lower(this.#all[this.#at]) === "not") {
      found.isNegated = true;
      this.#at += 1;
    }
    if (lower(this.#all[this.#at]) !== "contains") return;
    this.#at += 1;
    found.below = this.read(found);
    found.to = found.below.outer.to;
    found.outer = { from: found.from, to: found.to };
  }
}

function column(text: string, part: Token[]): Column {
  const [first, slash] = part;
  const as = part.findIndex((token) => lower(token) === "as");
  const end = part[(as < 0 ? part.length : as) - 1] ?? (first as Token);
  const isPath =
    isWord(first) &&
    slash?.text === "/" &&
    ahead(part, 0, (t) => "+-*(".includes(t.text)) >= part.length;
  return {
    from: (first as Token).from,
    to: (part.at(-1) as Token).to,
    path: isPath
      ? { variable: first.text, rest: text.slice(slash.to, end.to).replaceAll(/\s+/g, "") }
      : null,
    alias: as < 0 ? null : (part[as + 1]?.text ?? null),
  };
}

function columns(text: string, part: Token[]): Column[] {
  const found: Column[] = [];
  for (let at = 0; at < part.length;) {
    const end = ahead(part, at, (token) => token.text === ",");
    if (end === at) throw new Error("a column is missing");
    found.push(column(text, part.slice(at, end)));
    at = end + 1;
  }
  return found;
}

/** Returns the words outside of square brackets. */
function words(all: Token[]): Token[] {
  let depth = 0;
  return all.filter((token) => {
    if (token.text === "[") depth += 1;
    if (token.text === "]") depth -= 1;
    return depth === 0 && isWord(token);
  });
}

function read(text: string): QueryText {
  const all = tokens(text);
  if (lower(all[0]) !== "select") throw new Error("SELECT is missing");
  const from = ahead(all, 0, (token) => lower(token) === "from");
  const isDistinct = ["distinct", "top"].includes(lower(all[1]));
  const listed = all.slice(isDistinct ? 2 : 1, from);
  const reader = new ContainmentReader(text, all, from + 1);
  const containment = reader.read(null);
  const next = all[reader.at];
  if (next && !CLAUSES.has(lower(next))) throw new Error("FROM is followed by something else");
  const last = all[reader.at - 1] as Token;
  const isAggregate = listed.some(
    (token, at) => AGGREGATES.includes(lower(token)) && listed[at + 1]?.text === "(",
  );
  return {
    ...{ text, columns: columns(text, listed), isSummary: isDistinct || isAggregate },
    ...{ from: containment, fromEnd: last.to, classes: reader.classes },
    words: words(all),
  };
}

/** Reads a query. Returns `null` for a text that the builder does not understand. */
export function readQuery(text: string): QueryText | null {
  try {
    return read(text);
  } catch {
    return null;
  }
}

/** Whether a class expression is required: it is neither below OR nor below NOT CONTAINS. */
export function isRequired(query: QueryText, found: ClassExpression): boolean {
  const holds = (one: Containment): boolean => {
    if (one.kind !== "class") return one.kind === "AND" && one.parts.some(holds);
    return one === found || (one.below !== null && !one.isNegated && holds(one.below));
  };
  return holds(query.from);
}
