// What goes in and comes out, as plain objects.

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Something wrong with a text or a document. */
export interface Diagnostic {
  severity: "error" | "warning";
  /** Stable: `AQL0203`, `TPL0102`, `RM0301`, … */
  code: string;
  message: string;
  /** Start of the place in a text, in UTF-16 units. */
  from?: number;
  /** End of the place in a text. */
  to?: number;
  /** How to put it right. */
  help?: string | null;
  /** The place in a document. */
  path?: string;
  /** What should stand there. */
  expected?: string | null;
  /** What stands there. */
  found?: string | null;
  /** What the template calls the place. */
  label?: string | null;
}

/** A word of a query. */
export interface Token {
  kind: string;
  /** Start and end in UTF-16 units. */
  from: number;
  to: number;
}

/** A node of a tree that explains. */
export interface Part {
  label: string;
  from?: number;
  to?: number;
  parts?: Part[];
}

/** A query as it is read. */
export interface Parsed {
  tokens: Token[];
  /** The syntax tree; `null` where the text is no query. */
  syntax: Part | null;
  diagnostics: Diagnostic[];
}

/** Every rung of a query from text to rows; a rung that is not reached is `null`. */
export interface Explanation extends Parsed {
  query: Part | null;
  plan: Part | null;
  /** What a run touches; absent where the query cannot run. */
  run?: {
    batches: number;
    bytes: number;
    ehrs: number;
    documents: number;
    segments: number;
    documents_scanned: number;
    shapes: number;
    rows: number | null;
    error: string | null;
    /** The shapes that a class of FROM may bind: whether its node matches, and what each row is made of (empty: worked out for each). */
    matching: {
      name: string;
      variable: string;
      fragments: number;
      passes: boolean;
      rows: string[][];
    }[];
  };
}

/** Proposals that replace the text between two offsets, the likeliest first. */
export interface Completions {
  from: number;
  to: number;
  options: { label: string; kind: string; detail: string; insert: string }[];
}

/** What a word of a query means. */
export interface Hover {
  from: number;
  to: number;
  title: string;
  text: string;
}

/** A value for a parameter of a query. `{text}` takes the type of what it is compared with. */
export type Parameter = null | boolean | number | string | { text: string } | Parameter[];

/** How a query runs. */
export interface QueryOptions {
  /** Values by name, without `$`. */
  parameters?: Record<string, Parameter>;
  /** The time that `NOW()` and its kin give; now, if absent. */
  now?: Date;
  /** Ends the query when it is aborted. A run occupies its thread: only what is called from the run (`onProgress`) can abort it. */
  signal?: AbortSignal;
  /** Milliseconds after which the query is ended. */
  timeout?: number;
  /** Ends the query when it gives true; called now and then. */
  shouldStop?: () => boolean;
  /** Hears about a long run, every fiftieth of a second at most. */
  onProgress?: (progress: { milliseconds: number }) => void;
}

/** How far a long work is. */
export interface Progress {
  what: string;
  done: number;
  of: number;
  milliseconds: number;
}

/** How a long work is followed. */
export interface Follow {
  onProgress?: (progress: Progress) => void;
  /** Ends the work when it is aborted; what it began is undone. */
  signal?: AbortSignal;
}

/** A request of the REST interface, below `/v1`. */
export interface RestRequest {
  /** `GET` if absent. */
  method?: string;
  /** `ehr`, `query/aql?q=…`; one with a slash in front is whole: `/rest/openehr/v1/ehr`. */
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/** An answer of the REST interface. */
export interface RestAnswer {
  status: number;
  headers: [name: string, value: string][];
  body: string;
}

/** A data set that is kept. */
export interface DataSet {
  id: string;
  name: string;
  /** Milliseconds since 1970. */
  created: number;
  bytes: number;
}

/** A variable of a binding. */
export interface GuideElement {
  id: string;
  name: string | null;
  path: string;
}

/** A model that a guide reads or makes. */
export interface GuideBinding {
  id: string;
  name: string | null;
  type: "INPUT" | "OUTPUT" | null;
  model_id: string;
  template_id: string | null;
  elements: GuideElement[];
  predicates: string[];
  aql: string | null;
}

/** What a form needs for one variable. */
export interface GuideInput {
  variable: string;
  name: string;
  description?: string;
  binding: string;
  control:
    | "quantity"
    | "count"
    | "ordinal"
    | "coded_text"
    | "text"
    | "boolean"
    | "date_time"
    | "proportion"
    | "duration";
  units?: string[];
  options?: { literal: string; text: string }[];
}

/** A guide in one language; see `describeGuide`. */
export interface GuideDescription {
  id: string;
  gdl_version: string;
  language: string;
  languages: string[];
  concept: string | null;
  purpose: string | null;
  use: string | null;
  misuse: string | null;
  bindings: GuideBinding[];
  inputs: GuideInput[];
  outputs: { variable: string; name: string | null; binding: string; path: string }[];
  pre_conditions: string[];
  default_actions: string[];
  rules: {
    id: string;
    name: string | null;
    priority: number;
    when: string[];
    then: string[];
    cards: number;
  }[];
  terms: { id: string; text: string; description: string }[];
  problems: Diagnostic[];
}

/** What a guide did with the values of a form. */
export interface GuideRun {
  /** Ids of the rules that fired, in order. */
  fired: string[];
  results: { [name: string]: Json }[];
  /** CDS Hooks cards. */
  cards: { [name: string]: Json }[];
  /** Why each rule fired, or did not. */
  trace: Json;
  notes: Json;
}

/** What the cases of a fixture file say about a guide. */
export interface GuideTest {
  guide_id: string | null;
  problems: Diagnostic[];
  cases: {
    id: string;
    line: number;
    passed: boolean;
    differences: Json;
    fired: string[];
    [more: string]: Json;
  }[];
}

/** The forms of a composition in JSON: as the Reference Model has it, or by the ids of a web template. */
export type Format = "JSON" | "FLAT" | "STRUCTURED";

/** A template as people read it. */
export interface TemplateDescription {
  languages: string[];
  tree: TemplateNode;
}

/** A node of a template: what can be recorded. What is empty is absent. */
export interface TemplateNode {
  /** In AQL form, from the root of the document. */
  path?: string;
  label?: string;
  description?: string;
  class: string;
  id?: string;
  occurrences: string;
  mandatory: boolean;
  units?: string[];
  codes?: { terminology: string; code: string; label: string; value: number | null }[];
  limits?: string[];
  children?: TemplateNode[];
}
