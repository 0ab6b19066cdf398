// Arguments and results as plain objects.
import type { DiagnosticCode } from "./codes";
import type { ErrorCode } from "./errors";
import type { SignalLike } from "./host";

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A problem of a text or a document. */
export interface Diagnostic {
  severity: "error" | "warning";
  /** A stable code. Refused lines of an import have the code `IMPORT`. */
  code: DiagnosticCode | "IMPORT";
  message: string;
  /** Start in the text, in UTF-16 units. */
  from?: number;
  /** End in the text. */
  to?: number;
  /** The remedy. */
  help?: string | null;
  /** The change of the text that removes the problem, as offsets like `from` and `to`. */
  fix?: { from: number; to: number; text: string } | null;
  /** The path in a document. */
  path?: string;
  /** The expected value or form. */
  expected?: string | null;
  /** The value that was found. */
  found?: string | null;
  /** The name of the node in the template. */
  label?: string | null;
}

/** A token of a query. */
export interface Token {
  kind: string;
  /** Start and end in UTF-16 units. */
  from: number;
  to: number;
}

/** A node of an explaining tree. */
export interface Part {
  label: string;
  from?: number;
  to?: number;
  parts?: Part[];
}

/** A parsed query. */
export interface Parsed {
  tokens: Token[];
  /** The syntax tree; `null` if the text is not a query. */
  syntax: Part | null;
  diagnostics: Diagnostic[];
}

/** The steps of a query from text to rows. A step that is not reached is `null`. */
export interface Explanation extends Parsed {
  query: Part | null;
  plan: Part | null;
  /** The warnings among the diagnostics. */
  warnings: Diagnostic[];
  /**
   * Only of a result without rows: the rows that the parts of FROM and WHERE leave, up to the part
   * that leaves none.
   */
  empty?: {
    parts: {
      kind: "class" | "predicate" | "contains" | "condition" | "window";
      label: string;
      from: number | null;
      to: number | null;
      rows: number;
      /** The rows of the query without this condition. */
      without: number | null;
    }[];
    /** Whether the part that removes the last rows was found in time. */
    complete: boolean;
  };
  /** The data that a run reads. Absent if the query cannot run. */
  run?: {
    batches: number;
    bytes: number;
    ehrs: number;
    documents: number;
    segments: number;
    /**
     * The reads of a population query of a server from segments and rows. A browser has neither.
     */
    reads: {
      segments: number;
      absent_segments: number;
      blobs: number;
      blob_bytes: number;
      part_bytes: number;
      pages: number;
      rows: number;
    };
    documents_scanned: number;
    /**
     * The rows that a comparison excluded by the range of their column, without reading the column.
     */
    left_out: number;
    layouts: number;
    rows: number | null;
    error: string | null;
    /**
     * The layouts that a class of FROM may bind: whether its node matches, and the columns of each
     * row (empty: computed for each row).
     */
    matching: {
      name: string;
      variable: string;
      fragments: number;
      passes: boolean;
      rows: string[][];
    }[];
  };
}

/** Proposals that replace the text between two offsets, the most likely first. */
export interface Completions {
  from: number;
  to: number;
  options: { label: string; kind: string; detail: string; insert: string }[];
}

/** The description of a word of a query. */
export interface Hover {
  from: number;
  to: number;
  title: string;
  text: string;
}

/**
 * A value for a parameter of a query. `{text}` gets the type of the other operand of its
 * comparison.
 */
export type Parameter = null | boolean | number | string | { text: string } | Parameter[];

/** The options of a query. */
export interface QueryOptions {
  /** Values by name, without `$`. */
  parameters?: Record<string, Parameter>;
  /** The time of `NOW()` and related functions; the current time if absent. */
  now?: Date;
  /**
   * Ends the query when the signal is aborted. A run occupies its thread, so only a function that
   * the run calls (`onProgress`) can abort the signal during the run.
   */
  signal?: SignalLike;
  /**
   * The maximum time in milliseconds. Without effect in Cloudflare Workers, where clocks stand
   * still.
   */
  timeout?: number;
  /** Ends the query when it returns true. Called after about equal amounts of work. */
  shouldStop?: () => boolean;
  /** Receives the progress of a long run, at most every 20 milliseconds. */
  onProgress?: (progress: { milliseconds: number }) => void;
}

/** The options of a query that is read page by page. Each page has `timeout` for itself. */
export interface PageOptions extends QueryOptions {
  /** The maximum number of rows of a page, 10,000 by default. */
  rows?: number;
}

/** The options of a table of Arrow or Parquet. */
export interface TableOptions {
  /**
   * The form of columns whose values are all complete date-times with a zone: points in time
   * (`instant`, the default), texts as they were sent, or both.
   */
  times?: "instant" | "text" | "both";
}

/** The progress of a long work. */
export interface Progress {
  what: string;
  done: number;
  of: number;
  milliseconds: number;
}

/** The observer of a long work. */
export interface Follow {
  onProgress?: (progress: Progress) => void;
  /** Ends the work when it is aborted. The patients that it has created stay. */
  signal?: SignalLike;
}

/** A request of the REST interface, below `/v1`. */
export interface RestRequest {
  /** The method; `GET` if absent. */
  method?: string;
  /**
   * The path: `ehr`, `query/aql?q=…`. A path with a leading slash is complete:
   * `/rest/openehr/v1/ehr`.
   */
  path: string;
  headers?: Record<string, string>;
  body?: string;
}

/** An answer of the REST interface. */
export interface RestAnswer {
  status: number;
  headers: [name: string, value: string][];
  body: string;
  /** The code of an error. */
  code?: ErrorCode;
}

/** A stored data set. */
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

/** A model that a guide reads or writes. */
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

/** The data of a form field for one variable. */
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

/** The result of a guide on the values of a form. */
export interface GuideRun {
  /** Ids of the rules that fired, in order. */
  fired: string[];
  results: { [name: string]: Json }[];
  /** CDS Hooks cards. */
  cards: { [name: string]: Json }[];
  /** The reason why each rule fired or not. */
  trace: Json;
  notes: Json;
}

/** The results of the cases of a fixture file. */
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

/** The JSON formats of a composition: canonical, or by the ids of a web template. */
export type Format = "JSON" | "FLAT" | "STRUCTURED";

/** A template for people. */
export interface TemplateDescription {
  languages: string[];
  tree: TemplateNode;
}

/** A node of a template: a part of the record. Empty members are absent. */
export interface TemplateNode {
  /** The path in AQL form, from the root of the document. */
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
